/* Bootlace and a second Rust library in one freestanding program. */
#include "runtime.h"

#include <bootlace.h>

extern uint64_t LACE_CALL other_sum(const uint32_t *values, uint32_t index, uint64_t divisor);

int bare_main(void)
{
	static const uint32_t values[4] = { 1, 2, 30, 4 };

	return other_sum(values, 2, 3) == 10 && lace_version() != 0 ? 0 : 1;
}
