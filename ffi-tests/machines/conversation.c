/*
 * A boot, as far as a machine without network can have one: an address by DHCP, a ping, a file by TFTP, against servers
 * made of arithmetic (peer.c). Received frames lie at every alignment in turn. Time is counted, not measured.
 */
#include "host.h"

#ifdef SMALL_BOARD /* a board of 16 KiB */
#define FILE_SIZE 20000
#define ARENA 5632 /* what is left is the machine's stack */
#else
#define FILE_SIZE 300000
#define ARENA 65536
static uint8_t memory[FILE_SIZE + 64];
#endif

static uint8_t arena[ARENA] LACE_ALIGNED;
static struct peer peer;

/* A sink that looks at each byte and keeps none. */
struct look {
	uint64_t next;
	uint32_t wrong;
};

static int64_t LACE_CALL look_at(void *ctx, uint64_t offset, const void *data, uint32_t len)
{
	struct look *look = ctx;
	const uint8_t *bytes = data;

	look->wrong += offset != look->next;
	for (uint32_t i = 0; i < len; i++)
		look->wrong += bytes[i] != peer_byte((uint32_t)offset + i);
	look->next = offset + len;
	return len;
}

static int64_t fetch(struct lace_stack *net, const struct lace_sink *sink, uint16_t blksize, uint16_t windowsize)
{
	struct lace_tftp_get get;

	lace_tftp_get_init(&get, sizeof get);
	lace_ip_v4(&get.server.ip, 10, 0, 2, 2);
	get.path = "kernel";
	get.blksize = blksize;
	get.windowsize = windowsize;
	return finish(net, lace_tftp_get_start(net, &get, sink));
}

int bare_main(void)
{
	struct lace_config config;
	struct lace_host host;
	struct lace_nic nic;
	struct lace_lease lease;
	struct lace_ping ping;
	struct lace_sink sink;
	struct look look = { 0, 0 };
	struct lace_stack *net = NULL;
	int64_t n;
	int eth;

	peer_init(&peer, FILE_SIZE);
#ifdef SMALL_BOARD
	smallest_limits(&config);
#else
	lace_config_init(&config, sizeof config);
#endif
	lace_host_init(&host, sizeof host);
	host.now_us = now_us;
	host.random = random_bits;
	host.idle = idle;
	n = lace_stack_init(arena, sizeof arena, &config, &host, &net);
	expect(n == 0, "stack", n);
	if (n)
		return 1;

	lace_nic_init(&nic, sizeof nic);
	nic.ctx = &peer;
	nic.send = peer_nic_send;
	nic.recv = peer_nic_recv;
	nic.release = nic_release;
	nic.mac[0] = 0x52;
	nic.mac[5] = 1;
	eth = lace_nic_add(net, &nic);
	expect(eth > 0, "nic", eth);

	lace_lease_init(&lease, sizeof lease);
	n = finish(net, lace_dhcp_start(net, eth, NULL, &lease));
	expect(n == 0, "dhcp", n);
	expect(lease.ip.bytes[0] == 10 && lease.ip.bytes[3] == 15, "lease", lease.ip.bytes[3]);

	lace_ping_init(&ping, sizeof ping);
	lace_ip_v4(&ping.peer.ip, 10, 0, 2, 2);
	ping.count = 8;
	ping.payload = 57;
	ping.interval_ms = 1;
	n = finish(net, lace_ping_start(net, &ping));
	expect(n == 8, "ping", n);

	/* Lock-step, into a callback. */
	lace_sink_write(&sink, sizeof sink, look_at, &look);
	n = fetch(net, &sink, 512, 1);
	expect(n == FILE_SIZE, "tftp to a callback", n);
	expect(look.next == FILE_SIZE && look.wrong == 0, "contents", look.wrong);

#ifndef SMALL_BOARD
	/* To memory at an odd address, with guards around it. */
	for (unsigned at = 1; at < 8; at += 3) {
		uint32_t wrong = 0;

		for (unsigned i = 0; i < sizeof memory; i++)
			memory[i] = 0xa5;
		lace_sink_memory(&sink, sizeof sink, memory + at, FILE_SIZE);
		n = fetch(net, &sink, 1468, 1);
		expect(n == FILE_SIZE, "tftp to memory", n);
		for (uint32_t i = 0; i < FILE_SIZE; i++)
			wrong += memory[at + i] != peer_byte(i);
		for (unsigned i = 0; i < sizeof memory; i++)
			if (i < at || i >= at + FILE_SIZE)
				wrong += memory[i] != 0xa5;
		expect(wrong == 0, "contents in memory", wrong);
	}

	/* Windows of four blocks, then blocks in fragments, which come last one first. */
	n = fetch(net, &sink, 1468, 4);
	expect(n == FILE_SIZE, "tftp with windows", n);
	n = fetch(net, &sink, 8192, 4);
	expect(n == FILE_SIZE, "tftp in fragments", n);
	expect(peer.fragments > FILE_SIZE / 1480, "fragments", peer.fragments);
	for (uint32_t i = 0; i < FILE_SIZE; i++)
		if (memory[7 + i] != peer_byte(i)) {
			expect(0, "contents of fragments", i);
			break;
		}
	n = fetch(net, &sink, 65464, 1);
	expect(n == FILE_SIZE, "tftp in the largest blocks", n);

	/* Every ninth frame of ours is lost. */
	peer.lose = 9;
	n = fetch(net, &sink, 1468, 1);
	expect(n == FILE_SIZE, "tftp with losses", n);
	expect(peer.lost > 0, "losses", peer.lost);
	peer.lose = 0;
#endif

	expect(lace_stack_stop(net) == 0, "stop", 0);
	if (!failures)
		bare_print("ok\n");
	return failures != 0;
}
