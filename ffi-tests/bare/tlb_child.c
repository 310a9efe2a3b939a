/*
 * What the group `tlb` of the benchmarks traces: Bootlace receives or sends over 64 connections among many idle ones, in
 * an arena of so many megabytes, to or from memory of so many. The card and the peer are here; they are quiet while the
 * stack works: stores to `MARKS` tell the reader of the trace where it begins and ends. Everything that is not the
 * library's lies at addresses that the reader knows, the few instructions of this program before and behind the marks too:
 * it is linked with --section-start, without position independence, as images of a bootloader are. The machine stack ends
 * with a page; where the system puts it depends on the environment.
 *
 * tlb_child rx|tx MEGABYTES
 */
#define _GNU_SOURCE
#include "bootlace.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define MARKS ((volatile uint32_t *)0x100000000ul)
#define RING  ((uint8_t *)0x110000000ul)
#define DATA  ((uint8_t *)0x200000000ul)
#define ARENA ((uint8_t *)0x300000000ul)

#define STACK ((uint8_t *)0x118000000ul)

#define STACK_BYTES 65536
#define OURS        __attribute__((section("tlb_child"))) /* code that runs between the marks of entry and leaving */
#define OUR_DATA    __attribute__((section("tlb_child_data")))

#define ACTIVE 64
#define TRAIN  32 /* frames that wait in the ring when the stack is polled */
#define BUFFER 2048
#define MSS    1460
#define ROUNDS 3 /* trains of each connection; the first warms up */
#define RINGS  61440u
#define PORT   80

enum { BEGIN, END, ENTER, LEAVE, PASS };

struct peer {
	uint32_t sent, acked; /* sequence numbers of the peer's bytes: next, and acknowledged by the stack */
	uint32_t received;    /* the next one of the stack's */
	int established, owes;
};

static OUR_DATA struct peer peers[2048];
static OUR_DATA unsigned n_peers, waiting, taken;
static OUR_DATA uint32_t lens[TRAIN];
static OUR_DATA uint64_t now = 1000000;
static lace_tcp conns[2048];
static OUR_DATA lace_stack *net;

OURS static void mark(int which)
{
	MARKS[which * 16] = 1;
}

static void fail(const char *what, long long code)
{
	fprintf(stderr, "tlb_child: %s: %lld\n", what, code);
	exit(1);
}

static void put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v & 0xffff);
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Puts a segment of the peer's into the ring. The card says that the sums are right, so none is made. */
static void segment(unsigned who, uint8_t flags, uint32_t len)
{
	uint8_t *f = RING + waiting * BUFFER;
	static const uint8_t head[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0 };

	if (waiting == TRAIN)
		fail("the ring is full", who);
	memcpy(f, head, sizeof head);
	put16(f + 16, 40 + len);
	put32(f + 18, 0x00004000);
	f[22] = 64;
	f[23] = 6;
	put16(f + 24, 0);
	put32(f + 26, 0x0a000001);
	put32(f + 30, 0x0a000002);
	put16(f + 34, 10000 + who);
	put16(f + 36, PORT);
	put32(f + 38, peers[who].sent);
	put32(f + 42, peers[who].received);
	f[46] = 0x50;
	f[47] = flags;
	put16(f + 48, 0xffff);
	put32(f + 50, 0);
	lens[waiting++] = 54 + len < 60 ? 60 : 54 + len;
	peers[who].sent += len + (flags & 2 ? 1 : 0);
}

/* ---- the card ---- */

OURS static int card_recv(void *ctx, struct lace_frame *frame)
{
	int got = 0;

	(void)ctx;
	mark(LEAVE);
	if (taken < waiting) {
		frame->data = RING + taken * BUFFER;
		frame->len = lens[taken++];
		frame->flags = LACE_FRAME_IP_SUM_OK | LACE_FRAME_L4_SUM_OK;
		got = 1;
	} else {
		taken = waiting = 0;
	}
	mark(ENTER);
	return got;
}

OURS static void card_release(void *ctx, const struct lace_frame *frame)
{
	(void)ctx;
	(void)frame;
}

OURS static int card_send(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token)
{
	uint8_t f[64];
	uint32_t len = 0;
	unsigned who;

	(void)ctx;
	(void)token;
	mark(LEAVE);
	for (uint32_t i = 0; i < n; i++)
		len += spans[i].len;
	memset(f, 0, sizeof f);
	memcpy(f, spans[0].data, spans[0].len < 64 ? spans[0].len : 64);
	if (f[12] == 8 && f[13] == 0 && f[23] == 6) {
		who = (unsigned)(f[36] << 8 | f[37]) - 10000;
		len = (uint32_t)(f[16] << 8 | f[17]) - 20 - (f[46] >> 4) * 4;
		if (who >= n_peers)
			fail("a segment for nobody", who);
		if (f[47] & 4)
			fail("reset", who);
		if (f[47] & 2) {
			peers[who].received = get32(f + 38) + 1;
			peers[who].established = 1;
		} else if (len) {
			if (get32(f + 38) != peers[who].received)
				fail("a segment out of order", who);
			peers[who].received += len;
			peers[who].owes = 1;
		}
		peers[who].acked = get32(f + 42);
	}
	mark(ENTER);
	return 0;
}

OURS static uint64_t host_now(void *ctx)
{
	(void)ctx;
	return now;
}

OURS static uint32_t host_random(void *ctx)
{
	static OUR_DATA uint32_t state = 1;

	(void)ctx;
	state = state * 1664525u + 1013904223u;
	return state ^ state >> 15;
}

OURS static __attribute__((noinline)) void pass(void)
{
	int rc;

	now += 100;
	mark(ENTER);
	rc = lace_poll(net, 64);
	mark(LEAVE);
	mark(PASS);
	if (rc < 0)
		fail("lace_poll", rc);
}

/* ---- the work ---- */

static void *at(void *where, size_t len)
{
	void *p = mmap(where, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
		       0);

	if (p != where)
		fail("mmap", (long long)(uintptr_t)where);
	return p;
}

static void set_up(size_t bytes, int files)
{
	static const uint8_t arp[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0,
				       1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2 };
	struct lace_tcp_options options;
	struct lace_config config;
	struct lace_host host;
	struct lace_nic nic;
	struct lace_ip ip;
	lace_listener listener;
	int64_t need;
	int id, rc;

	lace_config_full(&config, sizeof config);
	if (files)
		config.operations = ACTIVE;
	config.tcp_receive_bytes = config.tcp_send_bytes = RINGS;
	config.tcp_pages = ACTIVE;
	/* Idle connections fill the arena. */
	for (n_peers = ACTIVE; n_peers < 2048; n_peers += ACTIVE) {
		config.tcp_connections = (uint16_t)(n_peers + ACTIVE);
		if (lace_stack_size(&config) > (int64_t)bytes)
			break;
	}
	config.tcp_connections = (uint16_t)n_peers;
	need = lace_stack_size(&config);
	if (need < 0 || (size_t)need > bytes)
		fail("lace_stack_size", need);
	lace_host_init(&host, sizeof host);
	host.now_us = host_now;
	host.random = host_random;
	rc = lace_stack_init(ARENA, bytes, &config, &host, &net);
	if (rc < 0)
		fail("lace_stack_init", rc);
	lace_nic_init(&nic, sizeof nic);
	nic.caps = LACE_NIC_GATHER | LACE_NIC_RX_IP_SUM | LACE_NIC_RX_L4_SUM;
	nic.send = card_send;
	nic.recv = card_recv;
	nic.release = card_release;
	nic.mac[0] = nic.mac[5] = 2;
	id = lace_nic_add(net, &nic);
	lace_ip_parse("10.0.0.2", &ip);
	if (id < 0 || (rc = lace_addr_add(net, id, &ip, 24)) < 0)
		fail("lace_nic_add", id < 0 ? id : rc);
	lace_tcp_init(&options, sizeof options);
	options.receive_max = 65535;
	listener = lace_tcp_listen(net, NULL, PORT, 4, &options);
	if (listener < 0)
		fail("lace_tcp_listen", listener);
	memset(RING, 0, 60);
	memcpy(RING, arp, sizeof arp);
	lens[0] = 60;
	waiting = 1;
	pass();
	for (unsigned i = 0; i < n_peers; i++) {
		peers[i].sent = 1000 * i;
		segment(i, 2, 0);
		pass();
		if (!peers[i].established)
			fail("no answer to a SYN", i);
		segment(i, 16, 0);
		pass();
		conns[i] = lace_tcp_accept(net, listener);
		if (conns[i] < 0)
			fail("lace_tcp_accept", conns[i]);
	}
}

/* Active connections lie spread over all, and so does their memory. */
static unsigned nth(unsigned n)
{
	return n * (n_peers / ACTIVE);
}

static void receive(size_t bytes)
{
	for (unsigned n = 0; n < ACTIVE; n++) {
		int rc = lace_tcp_recv_into(net, conns[nth(n)], DATA + n * (bytes / ACTIVE), bytes / ACTIVE);

		if (rc < 0)
			fail("lace_tcp_recv_into", rc);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		if (round == 1)
			mark(BEGIN);
		for (unsigned n = 0; n < ACTIVE; n++) {
			unsigned who = nth(n);

			for (unsigned i = 0; i < TRAIN; i++)
				segment(who, 16, MSS);
			pass();
			if (peers[who].acked != peers[who].sent)
				fail("bytes are missing", who);
		}
	}
	mark(END);
	for (unsigned n = 0; n < ACTIVE; n++)
		if (lace_tcp_region(net, conns[nth(n)]) != ROUNDS * TRAIN * MSS)
			fail("lace_tcp_region", n);
}

static void send_all(size_t bytes)
{
	uint64_t count = (ROUNDS - 1) * TRAIN * MSS;
	struct lace_source source;
	lace_op ops[ACTIVE];
	unsigned live = ACTIVE;

	for (unsigned n = 0; n < ACTIVE; n++) {
		lace_source_memory(&source, sizeof source, DATA + n * (bytes / ACTIVE), bytes / ACTIVE);
		ops[n] = lace_tcp_sendfile_start(net, conns[nth(n)], &source, 0, count, NULL, NULL, NULL);
		if (ops[n] < 0)
			fail("lace_tcp_sendfile_start", ops[n]);
	}
	mark(BEGIN);
	for (unsigned idle = 0; live; idle++) {
		if (idle == 100000)
			fail("the transfers hang", live);
		pass();
		for (unsigned n = 0; n < ACTIVE && waiting < TRAIN; n++) {
			if (peers[nth(n)].owes) {
				peers[nth(n)].owes = 0;
				segment(nth(n), 16, 0);
			}
			if (ops[n] >= 0 && lace_op_status(net, ops[n]) == (int64_t)count) {
				lace_op_close(net, ops[n]);
				ops[n] = -1;
				live--;
			}
		}
	}
	mark(END);
}

static char *way;
static size_t bytes;

static void work(void)
{
	set_up(bytes, strcmp(way, "rx"));
	if (!strcmp(way, "rx"))
		receive(bytes);
	else
		send_all(bytes);
}

int main(int argc, char **argv)
{
	ucontext_t here, there;

	bytes = argc == 3 ? strtoul(argv[2], NULL, 10) << 20 : 0;
	if (bytes < 32u << 20 || bytes > 256u << 20)
		return 2;
	way = argv[1];
	at((void *)(uintptr_t)MARKS, 4096);
	at(RING, TRAIN * BUFFER);
	at(STACK, STACK_BYTES);
	at(DATA, bytes);
	at(ARENA, bytes);
	if (getcontext(&there) < 0)
		fail("getcontext", 0);
	there.uc_stack.ss_sp = STACK;
	there.uc_stack.ss_size = STACK_BYTES;
	there.uc_link = &here;
	makecontext(&there, work, 0);
	if (swapcontext(&here, &there) < 0)
		fail("swapcontext", 0);
	printf("connections %u\nbytes %u\n", n_peers, ACTIVE * (ROUNDS - 1) * TRAIN * MSS);
	return 0;
}
