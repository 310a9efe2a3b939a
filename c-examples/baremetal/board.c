#include "board.h"

static volatile uint32_t *reg(uintptr_t address)
{
	return (volatile uint32_t *)address;
}

static void put(char c)
{
#ifdef __riscv
	while (!(*(volatile uint8_t *)0x10000005 & 0x20)) /* 16550: transmitter holding register empty */
		;
	*(volatile uint8_t *)0x10000000 = (uint8_t)c;
#else
	while (*reg(0x09000018) & 0x20) /* PL011: transmit FIFO full */
		;
	*reg(0x09000000) = (uint8_t)c;
#endif
}

void board_print(const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			put('\r');
		put(*text);
	}
}

void board_print_number(uint64_t number)
{
	/* Below 2^32 there is no division of 64 bits, which would be a library call on ARMv7. */
	char text[12];
	size_t at = sizeof text;
	uint32_t rest = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;

	text[--at] = 0;
	do
		text[--at] = (char)('0' + rest % 10);
	while (rest /= 10);
	board_print(text + at);
}

/* Ticks of the machine's counter, and how many there are in a second. */
static uint64_t ticks(void)
{
#ifdef __riscv
	return *(volatile uint64_t *)0x0200bff8; /* CLINT: mtime */
#elif defined(__aarch64__)
	uint64_t t;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(t));
	return t;
#else
	uint32_t low, high;

	__asm__ volatile("isb\n\tmrrc p15, 1, %0, %1, c14" : "=r"(low), "=r"(high));
	return (uint64_t)high << 32 | low;
#endif
}

static uint32_t frequency(void)
{
#ifdef __riscv
	return 10000000;
#elif defined(__aarch64__)
	uint64_t f;

	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(f));
	return (uint32_t)f;
#else
	uint32_t f;

	__asm__ volatile("mrc p15, 0, %0, c14, c0, 0" : "=r"(f));
	return f;
#endif
}

uint64_t board_now_us(void)
{
	/* Microseconds = ticks * (2^32 / ticks in a microsecond) / 2^32, in two halves that do not overflow. */
	static uint32_t scale;
	uint64_t t = ticks();

	if (!scale) {
		uint32_t f = frequency();
		uint32_t whole = 0, rest = 1000000;

		for (int i = 0; i < 32; i++) { /* 2^32 * 1000000 / f, bit by bit; f is above 1 MHz */
			rest *= 2;
			whole = whole << 1 | (rest >= f);
			rest -= rest >= f ? f : 0;
		}
		scale = whole;
	}
	return (t >> 32) * scale + ((t & 0xffffffff) * scale >> 32);
}

void board_off(void)
{
#ifdef __riscv
	*reg(0x00100000) = 0x5555; /* test finisher */
#elif defined(__aarch64__)
	register uint64_t x0 __asm__("x0") = 0x84000008; /* PSCI SYSTEM_OFF */

	__asm__ volatile("hvc 0" : "+r"(x0)::"memory");
#else
	register uint32_t r0 __asm__("r0") = 0x84000008;

	__asm__ volatile(".arch_extension virt\n\thvc 0" : "+r"(r0)::"memory");
#endif
	for (;;)
		;
}

#ifdef __arm__
/* libgcc's division calls this for a divisor of 0. */
int raise(int signal);
int raise(int signal)
{
	board_print("division by zero\n");
	return signal;
}
#endif

/* What a compiler may call and a firmware therefore has. Payload does not go through these. */
void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int value, size_t n);
int memcmp(const void *a, const void *b, size_t n);

void *memcpy(void *to, const void *from, size_t n)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	while (n--)
		*t++ = *f++;
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	if ((uintptr_t)to - (uintptr_t)from >= n)
		return memcpy(to, from, n);
	while (n--)
		t[n] = f[n];
	return to;
}

void *memset(void *to, int value, size_t n)
{
	uint8_t *t = to;

	while (n--)
		*t++ = (uint8_t)value;
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const uint8_t *x = a, *y = b;

	for (; n--; x++, y++)
		if (*x != *y)
			return *x < *y ? -1 : 1;
	return 0;
}
