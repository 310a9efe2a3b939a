/* Bytes of memory that stacks ask for on this machine, for target/size.tsv. */
#include "host.h"

static void say(const char *name, int64_t bytes)
{
	bare_print(name);
	bare_print(bytes < 0 ? " refused\n" : " ");
	if (bytes < 0)
		return;
	bare_print_number((uint64_t)bytes);
	bare_print("\n");
}

int bare_main(void)
{
	struct lace_config config;
	int64_t smallest;

	say("ram_default", lace_stack_size(NULL));
	smallest_limits(&config);
	smallest = lace_stack_size(&config);
	say("ram_tftp", smallest);
	lace_config_full(&config, sizeof config);
	say("ram_full", lace_stack_size(&config));
	return smallest < 0 || smallest > lace_stack_size(NULL);
}
