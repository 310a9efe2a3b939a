/* What the loops without a stack share: bytes in network order, and the Internet checksum. */
#ifndef BARE_H
#define BARE_H

#include <arpa/inet.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline void put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Sums of native 16-bit words, folded late; odd lengths end with a zero byte. */
static inline uint64_t sum(const uint8_t *p, size_t n)
{
	uint64_t s = 0;
	uint32_t w;
	uint16_t h = 0;

	for (; n >= 4; p += 4, n -= 4) {
		memcpy(&w, p, 4);
		s += w;
	}
	if (n >= 2) {
		memcpy(&h, p, 2);
		s += h;
		p += 2;
		n -= 2;
	}
	h = 0;
	memcpy(&h, p, n);
	return s + h;
}

static inline uint64_t copy_sum(uint8_t *to, const uint8_t *from, size_t n)
{
	uint64_t s[4] = { 0, 0, 0, 0 };
	size_t i = 0;

	for (; i + 32 <= n; i += 32) {
		uint64_t w[4];

		memcpy(w, from + i, 32);
		memcpy(to + i, w, 32);
		for (int k = 0; k < 4; k++)
			s[k] += (w[k] & 0xffffffffu) + (w[k] >> 32);
	}
	memcpy(to + i, from + i, n - i);
	return s[0] + s[1] + s[2] + s[3] + sum(to + i, n - i);
}

static inline uint16_t fold(uint64_t s)
{
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)s;
}

/* Pseudo header of a datagram of n bytes, addresses at p, as native words. */
static inline uint64_t pseudo(const uint8_t *addresses, size_t n)
{
	return sum(addresses, 8) + htons(17) + htons((uint16_t)n);
}

#endif
