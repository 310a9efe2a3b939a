/*
 * What copying and summing costs, at each alignment of the source to the destination: blocks of two lengths, 1 KiB apart, are
 * received by TFTP into memory. `bare_mark` is called before and after each: scripts/copysum.sh counts the instructions between.
 * Run alone it checks that what landed is what was sent.
 */
#include "peer.h"
#include "runtime.h"

#include <bootlace.h>

#define ARENA 32768
#define LONG 1408u
#define SHORT 384u

void bare_mark(void);

static uint8_t arena[ARENA] LACE_ALIGNED;
static uint8_t space[1520] LACE_ALIGNED;
static uint8_t memory[LONG] LACE_ALIGNED;
static uint64_t now;
static uint32_t chance = 5;
static unsigned client_port;

__attribute__((noinline)) void bare_mark(void)
{
	__asm__ volatile("" ::: "memory");
}

static uint64_t LACE_CALL now_us(void *ctx)
{
	(void)ctx;
	return now += 2;
}

static uint32_t LACE_CALL random_bits(void *ctx)
{
	(void)ctx;
	return chance = chance * 1664525 + 1013904223;
}

static int LACE_CALL nic_send(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token)
{
	const uint8_t *frame = spans->data;

	(void)ctx;
	(void)token;
	if (n == 1 && spans->len > 60 && frame[12] == 8 && frame[13] == 0)
		client_port = frame[34] * 256u + frame[35];
	return 0;
}

static uint8_t *put(uint8_t *at, const char *bytes, size_t n)
{
	while (n--)
		*at++ = (uint8_t)*bytes++;
	return at;
}

static void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static unsigned sum(const uint8_t *at, size_t n, uint32_t start)
{
	for (size_t i = 0; i < n; i++)
		start += i & 1 ? at[i] : (uint32_t)at[i] << 8;
	while (start >> 16)
		start = (start & 0xffff) + (start >> 16);
	return ~start & 0xffff;
}

/* Makes the headers of a UDP datagram of `n` bytes, which lie at frame + 42 already. */
static size_t datagram(uint8_t *frame, size_t n)
{
	uint8_t *ip = frame + 14;

	put(frame, "\x02\0\0\0\0\1\x02\0\0\0\0\2\x08\0", 14);
	put(ip, "\x45\0\0\0\0\0\x40\0\x40\x11\0\0\x0a\0\0\2\x0a\0\0\1", 20);
	put16(ip + 2, (unsigned)n + 28);
	put16(ip + 10, sum(ip, 20, 0));
	put16(ip + 20, 4000);
	put16(ip + 22, client_port);
	put16(ip + 24, (unsigned)n + 8);
	put16(ip + 26, 0);
	put16(ip + 26, sum(ip + 12, n + 16, 17 + (unsigned)n + 8));
	return n + 42;
}

/* A transfer of one block; the payload, at 46 of the frame, lies `at` behind a multiple of 8. */
static int fetch(lace_stack *net, int eth, unsigned at, unsigned length)
{
	uint8_t *frame = space + 2 + at;
	struct lace_tftp_get get;
	struct lace_sink sink;
	lace_op op;
	int64_t n;
	int rc;
	uint8_t *end;

	lace_tftp_get_init(&get, sizeof get);
	lace_ip_v4(&get.server.ip, 10, 0, 0, 2);
	get.path = "k";
	get.blksize = LONG + 8; /* one block is the file */
	get.windowsize = 1;
	lace_sink_memory(&sink, sizeof sink, memory, sizeof memory);
	op = lace_tftp_get_start(net, &get, &sink);
	lace_poll(net, 1);
	end = put(frame + 42, "\0\6blksize\0001416\0", 15);
	rc = op > 0 ? lace_input(net, eth, frame, datagram(frame, (size_t)(end - frame) - 42), 0) : 1;
	lace_poll(net, 1);
	put(frame + 42, "\0\3\0\1", 4);
	for (unsigned i = 0; i < length; i++)
		frame[46 + i] = peer_byte(i);
	datagram(frame, length + 4);
	for (unsigned i = 0; i < sizeof memory; i++)
		memory[i] = 0;
	bare_mark();
	rc |= lace_input(net, eth, frame, length + 46, 0);
	bare_mark();
	n = lace_op_wait(net, op);
	rc |= n != length || lace_op_close(net, op);
	for (unsigned i = 0; i < length; i++)
		rc |= memory[i] != peer_byte(i);
	return rc;
}

int bare_main(void)
{
	static const char arp[] = "\x02\0\0\0\0\1\x02\0\0\0\0\2\x08\6\0\1\x08\0\6\4\0\1\x02\0\0\0\0\2\x0a\0\0\2\0\0\0\0\0\0\x0a\0\0\1";
	struct lace_config config;
	struct lace_host host;
	struct lace_nic nic;
	struct lace_stack *net;
	struct lace_ip ip;
	int eth, rc;

	lace_config_init(&config, sizeof config);
	config.operations = 1;
	config.udp_sockets = 1;
	config.routes = 1;
	config.neighbours = 1;
	config.wait_frames = 0;
	lace_host_init(&host, sizeof host);
	host.now_us = now_us;
	host.random = random_bits;
	rc = lace_stack_init(arena, sizeof arena, &config, &host, &net);
	if (rc)
		return 1;
	lace_nic_init(&nic, sizeof nic);
	nic.send = nic_send;
	nic.mac[0] = 2;
	nic.mac[5] = 1;
	eth = lace_nic_add(net, &nic);
	lace_ip_v4(&ip, 10, 0, 0, 1);
	rc = lace_addr_add(net, eth, &ip, 24);
	for (unsigned i = 0; i < sizeof space; i++)
		space[i] = 0;
	put(space, arp, 42);
	rc |= lace_input(net, eth, space, 60, 0);
	lace_poll(net, 1);
	for (unsigned at = 0; at < 8; at++)
		rc |= fetch(net, eth, at, SHORT) | fetch(net, eth, at, LONG);
	return rc;
}
