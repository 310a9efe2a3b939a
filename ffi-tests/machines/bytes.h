/* Packets byte by byte: no machine's order or alignment is in them. */
#ifndef BARE_BYTES_H
#define BARE_BYTES_H

#include <stddef.h>
#include <stdint.h>

static inline unsigned get16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

/* These write at `at` and return the place behind. */
static inline uint8_t *put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static inline uint8_t *put(uint8_t *at, const void *from, size_t n)
{
	const uint8_t *f = from;

	while (n--)
		*at++ = *f++;
	return at;
}

/* A number in decimal, ended by a NUL. */
static inline uint8_t *decimal(uint8_t *at, uint32_t value)
{
	uint8_t digits[10];
	unsigned n = 0;

	do
		digits[n++] = (uint8_t)('0' + value % 10);
	while (value /= 10);
	while (n)
		*at++ = digits[--n];
	*at++ = 0;
	return at;
}

#endif
