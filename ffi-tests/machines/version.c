/* The least that shows a library of the right machine, byte order and calling convention. */
#include "runtime.h"

#include <bootlace.h>

int bare_main(void)
{
	bare_print("version ");
	bare_print_number(lace_version());
	bare_print("\n");
	return lace_version() != 0 && lace_version() < 0x1000000 ? 0 : 1;
}
