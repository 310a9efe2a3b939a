/*
 * Many small files, one after the other, on a stack with one operation and one UDP socket.
 *
 *   small_files TAP OWN-IP SERVER-IP COUNT
 *
 * File number i is named "s" and i; it has i * 37 % 1500 bytes, of which number j is i * 31 + j * 7.
 */
#define _DEFAULT_SOURCE
#include "bootlace_sync.h"
#include "linux_nic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t arena[LACE_STACK_SIZE_TFTP] LACE_ALIGNED;

static int fail(const char *what, int64_t code)
{
	printf("%s: %s (%lld)\n", what, lace_strerror(code), (long long)code);
	return 1;
}

static void nothing(void *ctx, const struct lace_datagram *datagram)
{
	(void)ctx;
	(void)datagram;
}

static int check(unsigned i, const uint8_t *data, int64_t n)
{
	if (n != i * 37 % 1500)
		return 1;
	for (int64_t j = 0; j < n; j++)
		if (data[j] != (uint8_t)(i * 31 + (unsigned)j * 7))
			return 1;
	return data[n] != 0xa5; /* nothing behind the end */
}

int main(int argc, char **argv)
{
	struct linux_nic_options options = { .kind = LINUX_NIC_TAP };
	struct lace_config config;
	struct lace_host host;
	struct lace_ip own;
	struct linux_nic *card;
	lace_stack *net;
	lace_nic_id nic;
	unsigned count;
	int rc;

	if (argc != 5)
		return 2;
	options.name = argv[1];
	count = (unsigned)strtoul(argv[4], NULL, 10);
	card = linux_nic_open(&options);
	if (!card)
		return 1;
	lace_config_init(&config, sizeof config);
	config.operations = 1;
	config.udp_sockets = 1;
	linux_nic_host(card, &host);
	rc = lace_stack_init(arena, sizeof arena, &config, &host, &net);
	if (rc < 0)
		return fail("stack", rc);
	nic = linux_nic_add(card, net, 0);
	if (nic < 0 || lace_ip_parse(argv[2], &own) < 0 || lace_addr_add(net, nic, &own, 24) < 0)
		return fail("address", nic);
	for (unsigned i = 0; i < count; i++) {
		static uint8_t data[2000];
		struct lace_tftp_get get;
		struct lace_sink sink;
		char name[32];
		int64_t n;

		snprintf(name, sizeof name, "s%u", i);
		memset(data, 0xa5, sizeof data);
		lace_tftp_get_init(&get, sizeof get);
		get.server.name = argv[3];
		get.path = name;
		lace_sink_memory(&sink, sizeof sink, data, sizeof data);
		n = lace_tftp_get(net, &get, &sink);
		if (n < 0)
			return fail(name, n);
		if (check(i, data, n)) {
			printf("%s: wrong contents, %lld bytes\n", name, (long long)n);
			return 1;
		}
	}
	/* What a leak would have used up is still there. */
	for (int i = 0; i < 2; i++) {
		lace_udp s = lace_udp_open(net, nothing, NULL);

		if ((i == 0) != (s > 0))
			return fail("one socket and no more", s);
	}
	rc = lace_stack_stop(net);
	if (rc < 0)
		return fail("stop", rc);
	linux_nic_close(card);
	printf("%u files\n", count);
	return 0;
}
