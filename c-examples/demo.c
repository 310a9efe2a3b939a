/*
 * Boots a file without privileges: a virtual network inside this process (libslirp) stands for the board's network card
 * and for the servers. An address by DHCP, a ping, a file by TFTP into memory, its SHA-256 compared.
 *
 *   demo [BYTES]        size of the file; 16 MiB by default
 */
#define _GNU_SOURCE
#include "bootlace_sync.h"
#include "linux_nic.h"
#include "sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint8_t arena[LACE_STACK_SIZE_TFTP] LACE_ALIGNED;

static int fail(const char *what, int64_t code)
{
	printf("demo: %s: %s (%lld)\n", what, lace_strerror(code), (long long)code);
	return 1;
}

/* Writes len bytes that do not repeat to path and their digest to hex. */
static int make_file(const char *path, size_t len, char hex[65])
{
	uint8_t *data = malloc(len ? len : 1);
	uint32_t x = 2463534242u;
	FILE *f = fopen(path, "wb");
	int bad;

	for (size_t i = 0; data && i < len; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		data[i] = (uint8_t)x;
	}
	bad = !data || !f || fwrite(data, 1, len, f) != len;
	if (f && fclose(f))
		bad = 1;
	if (!bad)
		sha256_hex(data, len, hex);
	free(data);
	return bad;
}

static void progress(void *ctx, lace_op op, uint64_t done, uint64_t total)
{
	unsigned percent = total ? (unsigned)(done * 100 / total) : 0;
	unsigned *shown = ctx;

	(void)op;
	if (percent / 10 == *shown / 10)
		return;
	*shown = percent;
	printf("  %3u %%\n", percent);
}

/* The boot itself, as a boot loader would write it. Returns the number of bytes now at memory, or an error. */
static int64_t boot(struct linux_nic *card, void *memory, size_t room)
{
	struct lace_config config;
	struct lace_host host;
	struct lace_lease lease;
	struct lace_ping ping;
	struct lace_tftp_get get;
	struct lace_sink ram;
	char text[LACE_IP_TEXT];
	unsigned shown = 0;
	lace_stack *net;
	lace_nic_id eth0;
	int64_t n;
	int rc;

	lace_config_init(&config, sizeof config);
	linux_nic_host(card, &host);
	rc = lace_stack_init(arena, sizeof arena, &config, &host, &net);
	if (rc < 0)
		return rc;
	eth0 = linux_nic_add(card, net, 0);
	if (eth0 < 0)
		return eth0;

	lace_lease_init(&lease, sizeof lease);
	n = lace_dhcp(net, eth0, NULL, &lease);
	if (n < 0)
		return n;
	lace_ip_format(&lease.ip, text, sizeof text);
	printf("demo: address %s", text);
	lace_ip_format(&lease.boot_server.ip, text, sizeof text);
	printf(", boot file \"%s\" at %s\n", lease.boot_file, text);

	lace_ping_init(&ping, sizeof ping);
	lace_ip_v4(&ping.peer.ip, 10, 0, 2, 2);
	n = lace_ping(net, &ping, NULL);
	if (n < 0)
		return n;
	printf("demo: 10.0.2.2 answers ping\n");

	lace_tftp_get_init(&get, sizeof get);
	get.server = lease.boot_server;
	get.path = lease.boot_file;
	get.progress = progress;
	get.ctx = &shown;
	lace_sink_memory(&ram, sizeof ram, memory, room);
	n = lace_tftp_get(net, &get, &ram);

	while ((rc = lace_stack_stop(net)) == LACE_EAGAIN)
		lace_poll(net, 32);
	return n < 0 ? n : rc < 0 ? rc : n;
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/bootlace-demo.XXXXXX", path[64], want[65], have[65];
	size_t len = argc > 1 ? strtoul(argv[1], NULL, 10) : 16u << 20;
	struct linux_nic_options options = { .kind = LINUX_NIC_SLIRP, .tftp_root = folder, .boot_file = "kernel.img" };
	uint8_t *memory = malloc(len + 1);
	struct linux_nic *card;
	int rc = 1;
	int64_t n;

	if (!memory || !mkdtemp(folder))
		return fail("temporary folder", LACE_EIO);
	snprintf(path, sizeof path, "%s/kernel.img", folder);
	if (make_file(path, len, want)) {
		fail(path, LACE_EIO);
	} else if ((card = linux_nic_open(&options))) {
		n = boot(card, memory, len + 1);
		linux_nic_close(card);
		if (n < 0) {
			fail("boot", n);
		} else if ((size_t)n != len) {
			fail("length", LACE_EIO);
		} else {
			sha256_hex(memory, len, have);
			rc = strcmp(have, want) != 0;
			if (rc)
				fail("sha256", LACE_EIO);
			else
				printf("demo: OK %zu bytes sha256 %s\n", len, have);
		}
	}
	unlink(path);
	rmdir(folder);
	free(memory);
	return rc;
}
