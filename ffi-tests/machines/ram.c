/* Bytes of memory that stacks ask for on this machine, for target/size.tsv. */
#include "runtime.h"

#include <bootlace.h>

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
	/* The least that boots a file: one NIC, one operation, the socket it takes. */
	lace_config_init(&config, sizeof config);
	config.nics = 1;
	config.operations = 1;
	config.udp_sockets = 1;
	config.routes = 1;
	config.neighbours = 1;
	config.wait_frames = 0;
	smallest = lace_stack_size(&config);
	say("ram_tftp", smallest);
	lace_config_full(&config, sizeof config);
	say("ram_full", lace_stack_size(&config));
	return smallest < 0 || smallest > lace_stack_size(NULL);
}
