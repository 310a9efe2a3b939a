/*
 * The largest blocks where memory is smallest: windows of 16 blocks of 65,464 bytes, each in 45 fragments that come in an
 * order of its own and overtake those of the next, into a region of GIANT_MIB, with the smallest limits that boot (ram_tftp of
 * docs/SIZES.md); then with two TCP connections on top. On 32-bit machines these stacks may ask for 6 and 10 KiB.
 */
#define HOST_TICK 2
#include "bytes.h"
#include "host.h"

#ifndef GIANT_MIB
#define GIANT_MIB 2
#endif
#define FILE_SIZE ((uint32_t)(GIANT_MIB << 20) - 1021) /* ends in a block of several fragments, the last of odd length */
#define BLOCK 65464u
#define PIECE 1480u
#define HEAD 12u /* UDP and TFTP */

static const uint8_t our_mac[6] = { 0x52, 0, 0, 0, 0, 1 }, their_mac[6] = { 0x52, 0, 0, 0, 0, 2 };

static struct server {
	unsigned port, window;
	uint32_t first, end; /* blocks that are to leave */
	uint32_t block;      /* the one whose fragments leave, */
	unsigned piece;      /* the next of them, */
	uint32_t late;       /* the block whose last fragment was overtaken; 0: none */
	uint8_t small[128];  /* ARP replies and OACKs go first */
	unsigned small_len;
	unsigned alignment, fragments;
	uint32_t id;
} server;

static uint8_t frame_space[1514 + 8] LACE_ALIGNED;
static uint8_t arena[10240] LACE_ALIGNED;
static uint8_t memory[FILE_SIZE + 16] LACE_ALIGNED;

/* Bytes 4 * at to 4 * at + 3 of the file, the first one highest. */
static uint32_t word(uint32_t at)
{
	uint32_t x = at * 2654435761u;

	return x ^ x >> 15;
}

static uint8_t *put32(uint8_t *at, uint32_t value)
{
	return put16(put16(at, value >> 16), value & 0xffff);
}

static unsigned fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static uint32_t block_length(uint32_t block)
{
	uint32_t rest = FILE_SIZE - (block - 1) * BLOCK;

	return rest < BLOCK ? rest : BLOCK;
}

static unsigned pieces(uint32_t block)
{
	return (block_length(block) + HEAD + PIECE - 1) / PIECE;
}

/* An Ethernet and an IPv4 header; the place behind them. */
static uint8_t *headers(uint8_t *at, unsigned payload, unsigned id, unsigned fragment)
{
	static const uint8_t ips[8] = { 10, 0, 2, 2, 10, 0, 2, 15 };
	uint32_t sum = 0;
	uint8_t *ip;

	at = put(put(at, our_mac, 6), their_mac, 6);
	ip = put16(at, 0x0800);
	at = put16(put16(put16(put16(ip, 0x4500), payload + 20), id), fragment);
	at = put(put16(put16(at, 0x4011), 0), ips, 8);
	for (unsigned i = 0; i < 20; i += 2)
		sum += get16(ip + i);
	put16(ip + 10, ~fold(sum) & 0xffff);
	return at;
}

/* The sum of a whole datagram of `length` bytes of UDP, for its header. */
static unsigned checksum(uint32_t block, uint32_t length)
{
	uint32_t at = (block - 1) * (BLOCK / 4), n = (length - HEAD) / 4, left = (length - HEAD) % 4;
	uint32_t high = 0x0a00 + 0x0202 + 0x0a00 + 0x020f + 17 + length; /* the pseudo-header */
	uint32_t low = 4000 + server.port + length + 3 + (block & 0xffff);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t w = word(at + i);

		high += w >> 16;
		low += w & 0xffff;
	}
	if (left) {
		uint32_t w = word(at + n) & ~(0xffffffffu >> 8 * left);

		high += w >> 16;
		low += w & 0xffff;
	}
	high = fold(fold(high) + fold(low));
	return high == 0xffff ? 0xffff : ~high & 0xffff;
}

/* Fragment number `nth` to leave of a block: each block has an order of its own. */
static unsigned fragment(uint8_t *frame, uint32_t block, unsigned nth)
{
	static const uint8_t steps[] = { 1, 2, 7, 44, 16, 31, 4, 43 }; /* have no divisor in common with 45 */
	unsigned count = pieces(block), length = block_length(block) + HEAD;
	unsigned step = count == 45 ? steps[block & 7] : count - 1, i = (nth * step + block % count) % count;
	uint32_t from = i * PIECE, n = length - from < PIECE ? length - from : PIECE, end = from + n;
	uint8_t *at = headers(frame, n, (server.id + block) & 0xffff, from / 8 | (i + 1 < count ? 0x2000 : 0));

	if (!i) {
		at = put16(put16(put16(put16(at, 4000), server.port), length), checksum(block, length));
		at = put16(put16(at, 3), block & 0xffff);
		from = HEAD;
	}
	for (uint32_t w = (block - 1) * (BLOCK / 4) + (from - HEAD) / 4; from < end; from += 4, w++)
		at = put32(at, word(w));
	server.fragments += count > 1;
	return n + 34;
}

static int LACE_CALL nic_recv(void *ctx, struct lace_frame *out)
{
	uint8_t *frame = frame_space + (server.alignment++ & 7);

	(void)ctx;
	out->flags = 0;
	out->data = frame;
	if (server.small_len) {
		put(frame, server.small, out->len = server.small_len);
		server.small_len = 0;
		return 1;
	}
	if (server.late && server.piece == 1) { /* after the first of the next block */
		out->len = fragment(frame, server.late, pieces(server.late) - 1);
		server.late = 0;
		return 1;
	}
	if (server.block >= server.end)
		return 0;
	if (server.piece + 1 == pieces(server.block) && server.block + 1 < server.end && !server.late) {
		server.late = server.block++;
		server.piece = 0;
	}
	out->len = fragment(frame, server.block, server.piece++);
	if (server.piece == pieces(server.block)) {
		server.block++;
		server.piece = 0;
	}
	return 1;
}

static void answer_arp(const uint8_t *arp)
{
	uint8_t *at = put16(put(put(server.small, our_mac, 6), their_mac, 6), 0x0806);

	at = put(put16(put(at, arp, 6), 2), their_mac, 6);
	at = put(put(put(at, arp + 24, 4), our_mac, 6), arp + 14, 4);
	for (server.small_len = 60; at < server.small + 60;)
		*at++ = 0;
}

static int LACE_CALL nic_send(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token)
{
	const uint8_t *frame = spans->data, *udp = frame + 34;
	uint8_t *at;

	(void)ctx;
	(void)token;
	expect(n == 1 && spans->len >= 60, "a whole frame", n);
	if (get16(frame + 12) == 0x0806) {
		if (get16(frame + 20) == 1 && frame[41] == 2)
			answer_arp(frame + 14);
		return 0;
	}
	if (get16(udp + 2) == 69) { /* it asks for what it is to get */
		server.port = get16(udp);
		at = put(put16(server.small + 42, 6), "blksize\00065464\0windowsize\00016", 28);
		at = decimal(put(at, "tsize", 6), FILE_SIZE);
		server.small_len = (unsigned)(at - server.small);
		at = headers(server.small, server.small_len - 34, server.id++ & 0xffff, 0);
		put16(put16(put16(put16(at, 4000), server.port), server.small_len - 34), 0); /* without a checksum */
		server.first = server.end = server.block = 1;
		server.late = 0;
	} else if (get16(udp + 8) == 4) {
		uint32_t last = FILE_SIZE / BLOCK + 1, before = server.first - 1;

		server.block = server.first = before + (uint16_t)(get16(udp + 10) - before) + 1;
		server.end = server.first + 16 < last + 1 ? server.first + 16 : last + 1;
		server.piece = server.late = 0;
	} else
		expect(0, "no error", get16(udp + 10));
	return 0;
}

/* With `tcp`: two connections on top, which are not used meanwhile. */
static void boot(int tcp, int64_t most)
{
	struct lace_config config;
	struct lace_host host;
	struct lace_nic nic;
	struct lace_ip ip;
	struct lace_tftp_get get;
	struct lace_sink sink;
	lace_stack *net = NULL;
	uint32_t wrong = 0;
	int64_t n;
	int eth;

	smallest_limits(&config);
	if (tcp) {
		config.tcp_connections = 2;
		config.tcp_receive_bytes = 256;
		config.tcp_send_bytes = 128;
		config.tcp_segments = 8;
		config.tcp_ranges = 4;
	}
	n = lace_stack_size(&config);
	expect(n > 0 && (sizeof(void *) > 4 || n <= most), "memory", n);
	lace_host_init(&host, sizeof host);
	host.now_us = now_us;
	host.random = random_bits;
	host.idle = idle;
	n = lace_stack_init(arena, sizeof arena, &config, &host, &net);
	if (n == LACE_ENOMEM && sizeof(void *) > 4)
		return; /* not the machines that the limit is for */
	expect(n == 0, "stack", n);
	lace_nic_init(&nic, sizeof nic);
	nic.send = nic_send;
	nic.recv = nic_recv;
	nic.release = nic_release;
	put(nic.mac, our_mac, 6);
	eth = lace_nic_add(net, &nic);
	lace_ip_v4(&ip, 10, 0, 2, 15);
	n = lace_addr_add(net, eth, &ip, 24);
	expect(eth > 0 && n == 0, "nic", eth);

	for (uint32_t i = 0; i < sizeof memory; i++)
		memory[i] = 0xa5;
	server.fragments = 0;
	lace_sink_memory(&sink, sizeof sink, memory + 3, FILE_SIZE);
	lace_tftp_get_init(&get, sizeof get);
	lace_ip_v4(&get.server.ip, 10, 0, 2, 2);
	get.path = "giant";
	get.blksize = BLOCK;
	get.windowsize = 16;
	n = finish(net, lace_tftp_get_start(net, &get, &sink));
	expect(n == FILE_SIZE, "file", n);
	for (uint32_t i = 0; i < FILE_SIZE; i++)
		wrong += memory[3 + i] != (uint8_t)(word(i / 4) >> 8 * (3 - i % 4));
	for (uint32_t i = 0; i < sizeof memory; i++)
		if (i < 3 || i >= 3 + FILE_SIZE)
			wrong += memory[i] != 0xa5;
	expect(wrong == 0, "contents", wrong);
	expect(server.fragments < FILE_SIZE / PIECE + FILE_SIZE / BLOCK + 3, "fragments sent once", server.fragments);
	expect(lace_stack_stop(net) == 0, "stop", 0);
}

int bare_main(void)
{
	boot(0, 6144);
	boot(1, 10240);
	if (!failures)
		bare_print("ok\n");
	return failures != 0;
}
