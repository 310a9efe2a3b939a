/*
 * Bootlace: a network stack for code that runs before, or without, an operating system.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Made from src/ffi by `make header`: change it there.
 */

#ifndef BOOTLACE_H
#define BOOTLACE_H

#include "bootlace_port.h"

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library that is linked in, as `major << 16 | minor << 8 | patch`. A program compiled against
 * another version's header runs as long as the major numbers agree and the library is not the older one.
 */
uint32_t lace_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BOOTLACE_H */
