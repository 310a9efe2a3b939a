/* SHA-256 (FIPS 180-4) of a block of memory, for programs that show what they received. */
#ifndef SHA256_H
#define SHA256_H

#include <stddef.h>

/* Writes the digest of len bytes as 64 hexadecimal digits and a NUL. */
void sha256_hex(const void *data, size_t len, char hex[65]);

#endif
