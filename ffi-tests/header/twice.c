/* The headers alone, twice, as C and as C++: they need nothing before them and leave nothing behind. */
#include <bootlace.h>
#include <bootlace.h>
#ifdef WITH_SYNC
#include <bootlace_sync.h>
#include <bootlace_sync.h>
#endif

static uint8_t arena[64] LACE_ALIGNED;

int lace_header_test(void);
int lace_header_test(void)
{
	return (int)((uintptr_t)arena % 16) + (lace_version() == 0);
}
