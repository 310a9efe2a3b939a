/*
 * What bootlace.h takes from the host: integer types and an alignment attribute.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Needed: int8_t to uint64_t, uintptr_t and size_t. A hosted or freestanding C99 compiler has them in <stdint.h> and
 * <stddef.h>; U-Boot and barebox build with -nostdinc and have them in <linux/types.h>. Elsewhere, name a header that
 * has them: -DLACE_PORT_HEADER='"my_types.h"'. That header may also define LACE_ALIGNED.
 */
#ifndef BOOTLACE_PORT_H
#define BOOTLACE_PORT_H

#if defined(LACE_PORT_HEADER)
#include LACE_PORT_HEADER
#elif defined(__UBOOT__) || defined(__BAREBOX__)
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

/*
 * Stands behind the declarator of a block of memory for a stack: `static uint8_t arena[SIZE] LACE_ALIGNED;`. Sixteen
 * bytes satisfy every type of every supported machine.
 */
#ifndef LACE_ALIGNED
#if defined(__GNUC__) || defined(__clang__)
#define LACE_ALIGNED __attribute__((__aligned__(16)))
#else
#error "define LACE_ALIGNED as this compiler's way to align a variable to 16 bytes"
#endif
#endif

/*
 * Stands before the name of every function that the library calls: the calling convention, where the library's is not the
 * one that the bootloader is compiled with. Only the header of x86-regparm3 sets it.
 */
#ifndef LACE_CALL
#define LACE_CALL
#endif

#endif /* BOOTLACE_PORT_H */
