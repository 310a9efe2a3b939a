/*
 * Start, output and exit for programs under qemu-user (Linux system calls) and on Cortex-M boards of qemu-system
 * (semihosting), and the mem functions a bootloader has. No C library: its ABI is not the bootloader's.
 */
#include "runtime.h"

void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int value, size_t n);
int memcmp(const void *a, const void *b, size_t n);
void bare_start(void);

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

#ifdef __arm__
/* libgcc's division calls this for a divisor of 0. */
int raise(int signal);
int raise(int signal)
{
	bare_print("FAIL division by zero\n");
	return signal;
}
#endif

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'

extern uint32_t __data_load[], __data_start[], __data_end[], __bss_start__[], __bss_end__[], __stack_top[];

static void semihost(uint32_t operation, const void *argument)
{
	register uint32_t r0 __asm__("r0") = operation;
	register const void *r1 __asm__("r1") = argument;

	__asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void put(const char *text, size_t length)
{
	char line[2] = { 0, 0 };

	for (; length--; text++) {
		line[0] = *text;
		semihost(4, line); /* SYS_WRITE0 */
	}
}

static void quit(int status)
{
	const uint32_t block[2] = { 0x20026, (uint32_t)status }; /* ADP_Stopped_ApplicationExit */

	semihost(0x20, block); /* SYS_EXIT_EXTENDED */
	for (;;)
		;
}

static void reset(void)
{
	uint32_t *from = __data_load;

	for (uint32_t *to = __data_start; to < __data_end;)
		*to++ = *from++;
	for (uint32_t *to = __bss_start__; to < __bss_end__;)
		*to++ = 0;
	bare_start();
}

static void fault(void)
{
	bare_print("FAIL fault\n");
	quit(3);
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
	(void (*)(void))__stack_top, reset, fault, fault, fault, fault, fault,
};

void bare_trap_unaligned(void)
{
	*(volatile uint32_t *)0xe000ed14 |= 8; /* CCR.UNALIGN_TRP; ARMv6-M always traps */
}

#elif defined(BOARD)

/* qemu's board `virt`, memory management off: semihosting as above. */
#ifdef __aarch64__
typedef uint64_t word;
#define SEMIHOST "hlt 0xf000"
#define R0 "x0"
#define R1 "x1"
__asm__(".globl _start\n_start:\n\tldr x0, =__stack_top\n\tmov sp, x0\n\tbl bare_start\n");
#else
typedef uint32_t word;
#define SEMIHOST "svc 0x123456"
#define R0 "r0"
#define R1 "r1"
__asm__(".globl _start\n_start:\n\tldr sp, =__stack_top\n\tbl bare_start\n");
#endif

static void semihost(word operation, const void *argument)
{
	register word r0 __asm__(R0) = operation;
	register const void *r1 __asm__(R1) = argument;

	__asm__ volatile(SEMIHOST : "+r"(r0) : "r"(r1) : "memory", "cc");
}

static void put(const char *text, size_t length)
{
	char line[2] = { 0, 0 };

	for (; length--; text++) {
		line[0] = *text;
		semihost(4, line); /* SYS_WRITE0 */
	}
}

static void quit(int status)
{
	const word block[2] = { 0x20026, (word)status }; /* ADP_Stopped_ApplicationExit */

	semihost(0x20, block); /* SYS_EXIT_EXTENDED */
	for (;;)
		;
}

void bare_fault(void);
void bare_fault(void)
{
	bare_print("FAIL fault\n");
	quit(3);
}

/* SCTLR.A, and vectors that end the program. */
void bare_trap_unaligned(void)
{
#ifdef __aarch64__
	uint64_t control;

	__asm__ volatile("adr x9, bare_vectors\n\tmsr vbar_el1, x9" ::: "x9");
	__asm__ volatile("mrs %0, sctlr_el1" : "=r"(control));
	__asm__ volatile("msr sctlr_el1, %0\n\tisb" ::"r"(control | 2));
#else
	uint32_t control;

	__asm__ volatile("ldr r2, =bare_vectors\n\tmcr p15, 0, r2, c12, c0, 0" ::: "r2");
	__asm__ volatile("mrc p15, 0, %0, c1, c0, 0" : "=r"(control));
	__asm__ volatile("mcr p15, 0, %0, c1, c0, 0\n\tisb" ::"r"(control | 2));
#endif
}

#ifdef __aarch64__
__asm__(".balign 2048\nbare_vectors:\n\t.rept 16\n\t.balign 128\n\tb bare_fault\n\t.endr\n");
#else
__asm__(".balign 32\nbare_vectors:\n\t.rept 8\n\tb bare_abort\n\t.endr\nbare_abort:\n\tldr sp, =__stack_top\n\tb bare_fault\n");
#endif

#else

void bare_trap_unaligned(void)
{
	/* The kernel's choice: qemu-user traps where the machine knows no unaligned access. */
}

#if defined(__aarch64__) || defined(__riscv)
enum { SYS_WRITE = 64, SYS_EXIT = 93 };
#elif defined(__x86_64__)
enum { SYS_WRITE = 1, SYS_EXIT = 60 };
#elif defined(__mips__)
enum { SYS_WRITE = 4004, SYS_EXIT = 4001 };
#else
enum { SYS_WRITE = 4, SYS_EXIT = 1 };
#endif

/* A system call of three arguments. What it returns is of no interest here. */
static void call(long number, long a, long b, long c)
{
#if defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
#elif defined(__arm__)
	register long r7 __asm__("r7") = number;
	register long r0 __asm__("r0") = a;
	register long r1 __asm__("r1") = b;
	register long r2 __asm__("r2") = c;
	__asm__ volatile("svc 0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2) : "memory");
#elif defined(__riscv)
	register long a7 __asm__("a7") = number;
	register long a0 __asm__("a0") = a;
	register long a1 __asm__("a1") = b;
	register long a2 __asm__("a2") = c;
	__asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2) : "memory");
#elif defined(__mips__)
	register long v0 __asm__("$2") = number;
	register long a0 __asm__("$4") = a;
	register long a1 __asm__("$5") = b;
	register long a2 __asm__("$6") = c;
	register long a3 __asm__("$7");
	__asm__ volatile("syscall"
			 : "+r"(v0), "=r"(a3)
			 : "r"(a0), "r"(a1), "r"(a2)
			 : "memory", "$1", "$3", "$8", "$9", "$10", "$11", "$12", "$13", "$14", "$15", "$24", "$25", "hi", "lo");
#elif defined(__powerpc__)
	register long r0 __asm__("r0") = number;
	register long r3 __asm__("r3") = a;
	register long r4 __asm__("r4") = b;
	register long r5 __asm__("r5") = c;
	__asm__ volatile("sc"
			 : "+r"(r0), "+r"(r3), "+r"(r4), "+r"(r5)
			 :
			 : "memory", "cr0", "ctr", "r6", "r7", "r8", "r9", "r10", "r11", "r12");
#elif defined(__x86_64__)
	long rax = number;
	__asm__ volatile("syscall" : "+a"(rax) : "D"(a), "S"(b), "d"(c) : "memory", "rcx", "r11");
#elif defined(__i386__)
	long eax = number;
	__asm__ volatile("int $0x80" : "+a"(eax) : "b"(a), "c"(b), "d"(c) : "memory");
#elif defined(__s390x__)
	register long r1 __asm__("r1") = number;
	register long r2 __asm__("r2") = a;
	register long r3 __asm__("r3") = b;
	register long r4 __asm__("r4") = c;
	__asm__ volatile("svc 0" : "+r"(r2) : "r"(r1), "r"(r3), "r"(r4) : "memory", "cc");
#else
#error "no system call for this machine"
#endif
}

static void put(const char *text, size_t length)
{
	call(SYS_WRITE, 1, (long)text, (long)length);
}

static void quit(int status)
{
	for (;;)
		call(SYS_EXIT, status, 0, 0);
}

/* The kernel enters with an aligned stack; each ABI wants a little room above it. */
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\tcall bare_start\n");
#elif defined(__i386__)
__asm__(".globl _start\n_start:\n\tand $-16, %esp\n\tcall bare_start\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tbl bare_start\n");
#elif defined(__arm__)
/* The assembler is in the state that the function before left it in, and the entry point does not tell ARM from Thumb. */
__asm__(".arm\n.balign 4\n.globl _start\n_start:\n\tbl bare_start\n");
#elif defined(__riscv)
__asm__(".globl _start\n_start:\n\tcall bare_start\n");
#elif defined(__mips__)
__asm__(".globl _start\n.set noreorder\n_start:\n\taddiu $sp, $sp, -32\n\tjal bare_start\n\tnop\n.set reorder\n");
#elif defined(__powerpc__)
__asm__(".globl _start\n_start:\n\tstwu 1, -32(1)\n\tbl bare_start\n");
#elif defined(__s390x__)
__asm__(".globl _start\n_start:\n\taghi %r15, -160\n\tbrasl %r14, bare_start\n");
#endif

#endif

void bare_print(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	put(text, length);
}

void bare_print_number(uint64_t number)
{
	/* Decimal without a division of 64 bits, which is a library call on small machines. */
	static const uint32_t billion = 1000000000;
	uint32_t parts[3] = { 0, 0, 0 };
	char text[28];
	size_t at = sizeof text;

	for (int bit = 63; bit >= 0; bit--) {
		uint32_t carry = (uint32_t)(number >> bit) & 1;

		for (int i = 0; i < 3; i++) {
			parts[i] = parts[i] * 2 + carry;
			carry = parts[i] >= billion;
			parts[i] -= carry ? billion : 0;
		}
	}
	text[--at] = 0;
	for (int i = 0; i < 3; i++)
		for (int digit = 0; digit < 9; digit++) {
			text[--at] = (char)('0' + parts[i] % 10);
			parts[i] /= 10;
			if (!parts[0] && !parts[1] && !parts[2])
				goto done;
		}
done:
	bare_print(text + at);
}

void bare_start(void)
{
	quit(bare_main());
}
