/*
 * A conversation with a host made of arithmetic (peer.c): ARP and ping of many sizes. Received frames lie at every alignment in turn. Time is counted, not measured.
 */
#include "peer.h"
#include "runtime.h"

#include <bootlace.h>

#ifdef __ARM_ARCH_6M__ /* a board of 16 KiB */
#define FILE_SIZE 20000
#define ARENA LACE_STACK_SIZE_TFTP
#else
#define FILE_SIZE 300000
#define ARENA 65536
#endif

static uint8_t arena[ARENA] LACE_ALIGNED;
static struct peer peer;
static uint64_t now;
static uint32_t chance = 12345;
static int failures;

static void expect(int good, const char *what, int64_t value)
{
	if (good)
		return;
	failures++;
	bare_print("FAIL ");
	bare_print(what);
	bare_print(value < 0 ? " -" : " ");
	bare_print_number((uint64_t)(value < 0 ? -value : value));
	bare_print("\n");
}

static uint64_t now_us(void *ctx)
{
	(void)ctx;
	return now += 20;
}

static uint32_t random_bits(void *ctx)
{
	(void)ctx;
	chance ^= chance << 13;
	chance ^= chance >> 17;
	return chance ^= chance << 5;
}

static void idle(void *ctx, uint32_t max_us)
{
	(void)ctx;
	now += max_us;
}

static int nic_send(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token)
{
	expect(n == 1, "one span without gather", n);
	expect(token == 0, "no token without async", token);
	peer_take(ctx, spans->data, spans->len);
	return 0;
}

static int nic_recv(void *ctx, struct lace_frame *frame)
{
	size_t length;
	const uint8_t *data = peer_next(ctx, &length);

	if (!data)
		return 0;
	frame->data = data;
	frame->len = (uint32_t)length;
	frame->flags = 0;
	return 1;
}

static void nic_release(void *ctx, const struct lace_frame *frame)
{
	(void)ctx;
	(void)frame;
}

/* Runs an operation to its end. */
static int64_t finish(struct lace_stack *net, lace_op op)
{
	int64_t result = lace_op_wait(net, op);

	if (op > 0)
		expect(lace_op_close(net, op) == 0, "close", op);
	return result;
}

int bare_main(void)
{
	struct lace_config config;
	struct lace_host host;
	struct lace_nic nic;
	lace_ip address;
	struct lace_ping ping;
	struct lace_stack *net = NULL;
	int64_t n;
	int eth;

	peer_init(&peer, FILE_SIZE);
	lace_config_init(&config, sizeof config);
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
	nic.send = nic_send;
	nic.recv = nic_recv;
	nic.release = nic_release;
	nic.mac[0] = 0x52;
	nic.mac[5] = 1;
	eth = lace_nic_add(net, &nic);
	expect(eth > 0, "nic", eth);

	lace_ip_v4(&address, 10, 0, 2, 15);
	n = lace_addr_add(net, eth, &address, 24);
	expect(n == 0, "address", n);

	for (uint32_t payload = 0; payload <= 1400; payload += 7 + payload / 4) {
		lace_ping_init(&ping, sizeof ping);
		lace_ip_v4(&ping.peer.ip, 10, 0, 2, 2);
		ping.count = 8; /* once at each alignment */
		ping.payload = payload;
		ping.interval_ms = 1;
		n = finish(net, lace_ping_start(net, &ping));
		expect(n == 8, "ping", n);
	}

	expect(lace_stack_stop(net) == 0, "stop", 0);
	if (!failures)
		bare_print("ok\n");
	return failures != 0;
}
