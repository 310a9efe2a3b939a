/*
 * A program with nothing under it: what the library leaves undefined is exactly what stands here. Linked with
 * -nostdlib under a bootloader's flags; it need not run.
 */
#include <bootlace.h>

void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int value, size_t n);
int memcmp(const void *a, const void *b, size_t n);

void *memcpy(void *to, const void *from, size_t n)
{
	volatile unsigned char *t = to;
	const unsigned char *f = from;

	while (n--)
		*t++ = *f++;
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	volatile unsigned char *t = to;
	const unsigned char *f = from;

	if ((uintptr_t)to - (uintptr_t)from >= n)
		return memcpy(to, from, n);
	while (n--)
		t[n] = f[n];
	return to;
}

void *memset(void *to, int value, size_t n)
{
	volatile unsigned char *t = to;

	while (n--)
		*t++ = (unsigned char)value;
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const volatile unsigned char *x = a;
	const volatile unsigned char *y = b;

	for (; n--; x++, y++)
		if (*x != *y)
			return *x < *y ? -1 : 1;
	return 0;
}

uint32_t result;
void _start(void);
void __start(void);

void _start(void)
{
	result = lace_version();
	for (;;)
		;
}

void __start(void)
{
	_start();
}
