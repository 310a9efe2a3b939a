/* What the frame suite rests on: a load that is not aligned ends this program, on the machines that say they trap. */
#include "runtime.h"

int bare_main(void)
{
	static uint32_t words[2];
	volatile uintptr_t place = (uintptr_t)words + 1; /* not known to the compiler */
	uint32_t value;

	bare_trap_unaligned();
#if defined(__mips__)
	__asm__ volatile("lw %0, 0(%1)" : "=r"(value) : "r"(place) : "memory");
#elif defined(__arm__)
	__asm__ volatile("ldr %0, [%1]" : "=r"(value) : "r"(place) : "memory");
#elif defined(__aarch64__)
	__asm__ volatile("ldr %w0, [%1]" : "=r"(value) : "r"(place) : "memory");
#else
	value = *(volatile uint32_t *)place;
#endif
	bare_print("an unaligned load went through\n");
	return value != 0;
}
