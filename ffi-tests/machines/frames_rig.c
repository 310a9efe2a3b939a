/* The frame suite's ground: a stack and its driver, whose buffers lie at a chosen alignment, and the making of frames. */
#include "frames.h"
#include "runtime.h"

const uint8_t our_mac[6] = { 0x52, 0x54, 0, 0, 0, 1 }, their_mac[6] = { 0x52, 0x54, 0, 0x12, 0x34, 2 };
const uint8_t our_ip[4] = { 10, 0, 2, 15 }, their_ip[4] = { 10, 0, 2, 2 };

#ifdef SMALL_BOARD
#define ARENA 5120
#else
#define ARENA 49152
#endif

static uint8_t arena[ARENA] LACE_ALIGNED;
static uint8_t rx_space[FRAME_MAX + 24] LACE_ALIGNED;
static uint8_t tx_space[FRAME_MAX + 24] LACE_ALIGNED;
static uint8_t *rx, *tx;
static uint32_t pending;
static uint64_t now;
static uint32_t chance;
static uint32_t digest;
static unsigned failures;
static int lent;

lace_stack *net;
lace_udp frames_socket;
unsigned frames_port, frames_delivered;
const uint8_t *sent;
uint32_t sent_len;
unsigned sent_count;

void expect(int good, const char *what, int64_t value)
{
	if (good)
		return;
	failures++;
	bare_print("FAIL ");
	bare_print(what);
	bare_print(value < 0 ? " -" : " ");
	bare_print_number((uint64_t)(value < 0 ? -value : value));
	bare_print(" at ");
	bare_print_number((uint64_t)(rx - rx_space) * 10 + (uint64_t)(tx - tx_space) - 88);
	bare_print("\n");
}

unsigned frames_failures(void)
{
	return failures;
}

void frames_note(uint32_t value)
{
	digest = (digest ^ value) * 16777619u;
	digest ^= digest >> 15;
}

static void note_bytes(const uint8_t *at, size_t n)
{
	while (n--)
		frames_note(*at++);
}

uint32_t frames_digest(void)
{
	return digest;
}

unsigned get16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

uint32_t get32(const uint8_t *at)
{
	return (uint32_t)get16(at) << 16 | get16(at + 2);
}

uint8_t *put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

uint8_t *put32(uint8_t *at, uint32_t value)
{
	return put16(put16(at, value >> 16), value & 0xffff);
}

static uint8_t *put(uint8_t *at, const uint8_t *from, size_t n)
{
	while (n--)
		*at++ = *from++;
	return at;
}

uint32_t sum(uint32_t start, const uint8_t *at, size_t n)
{
	for (; n > 1; n -= 2, at += 2)
		start += get16(at);
	if (n)
		start += (unsigned)at[0] << 8;
	while (start >> 16)
		start = (start & 0xffff) + (start >> 16);
	return start;
}

/* Whatever is sent is well formed: lengths, checksums, padding. */
static void check_sent(const uint8_t *frame, uint32_t len)
{
	const uint8_t *ip = frame + 14;
	uint32_t total, payload;

	expect(len >= 60 && len <= FRAME_MAX, "length of a sent frame", len);
	for (unsigned i = 0; i < 6; i++)
		expect(frame[6 + i] == our_mac[i], "source of a sent frame", frame[6 + i]);
	if (get16(frame + 12) != 0x0800)
		return;
	total = get16(ip + 2);
	expect(ip[0] == 0x45 && total + 14 <= len, "IPv4 length", total);
	expect(sum(0, ip, 20) == 0xffff, "IPv4 checksum", get16(ip + 10));
	for (uint32_t i = total + 14; i < len; i++)
		expect(frame[i] == 0, "padding", frame[i]);
	if (get16(ip + 6) & 0x3fff)
		return; /* a fragment */
	payload = total - 20;
	if (ip[9] == ICMP)
		expect(sum(0, ip + 20, payload) == 0xffff, "ICMP checksum", get16(ip + 22));
	else
		expect(sum(sum(ip[9] + payload, ip + 12, 8), ip + 20, payload) == 0xffff, "UDP or TCP checksum", ip[9]);
}

static uint64_t LACE_CALL now_us(void *ctx)
{
	(void)ctx;
	return now += 20;
}

static uint32_t LACE_CALL random_bits(void *ctx)
{
	(void)ctx;
	chance ^= chance << 13;
	chance ^= chance >> 17;
	return chance ^= chance << 5;
}

static void *LACE_CALL nic_buffer(void *ctx, uint32_t len)
{
	(void)ctx;
	expect(len <= FRAME_MAX, "buffer", len);
	return tx;
}

static int LACE_CALL nic_send(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token)
{
	(void)ctx;
	(void)token;
	if (n == 0)
		return 0;
	expect(n == 1 && spans->data == tx, "the buffer that was lent", n);
	sent = spans->data;
	sent_len = spans->len;
	sent_count++;
	check_sent(sent, sent_len);
	frames_note(sent_len);
	note_bytes(sent, sent_len);
	return 0;
}

static int LACE_CALL nic_recv(void *ctx, struct lace_frame *frame)
{
	(void)ctx;
	if (!pending)
		return 0;
	frame->data = rx;
	frame->len = pending;
	frame->flags = 0;
	pending = 0;
	lent++;
	return 1;
}

static void LACE_CALL nic_release(void *ctx, const struct lace_frame *frame)
{
	(void)ctx;
	expect(frame->data == rx && lent == 1, "release", lent);
	lent--;
}

/* The socket's handler: notes the payload and echoes it. */
static void LACE_CALL handler(void *ctx, const struct lace_datagram *datagram)
{
	static uint8_t copy[MOST_UDP]; /* a reassembled datagram lies in the stack's own memory, from which nothing is sent */
	int rc;

	(void)ctx;
	frames_delivered++;
	frames_note(datagram->payload_len);
	note_bytes(datagram->payload, datagram->payload_len);
	note_bytes(datagram->frame, datagram->payload_offset);
	put(copy, datagram->payload, datagram->payload_len);
	rc = lace_udp_send(net, datagram->socket, &datagram->src, datagram->src_port, copy, datagram->payload_len);
	expect(rc == 0, "echo by UDP", rc);
}

void frames_up(unsigned rx_offset, unsigned tx_offset)
{
	struct lace_config config;
	struct lace_host host;
	struct lace_nic nic;
	struct lace_ip ip;
	int eth, rc;

	rx = rx_space + 8 + rx_offset;
	tx = tx_space + 8 + tx_offset;
	for (size_t i = 0; i < sizeof tx_space; i++)
		tx_space[i] = 0xa5;
	now = 1000000;
	chance = 2463534242u;
	digest = 2166136261u;
	pending = 0;
	frame_id = 1;
	sent = NULL;
	frames_delivered = sent_count = 0;
	lace_config_init(&config, sizeof config);
	config.operations = 1;
	config.udp_sockets = 2;
	config.routes = 1;
	config.neighbours = 2;
	config.tx_frames = 0;
	config.wait_frames = 0;
	config.reassembly_buffers = 1;
	config.reassembly_bytes = 256;
	config.dns_names = 0;
	config.hooks = 0;
	config.mtu = FRAME_MAX - 18;
#ifndef SMALL_BOARD
	config.reassembly_bytes = 3000;
	config.tcp_connections = 2;
	config.tcp_listeners = 1;
#endif
	lace_host_init(&host, sizeof host);
	host.now_us = now_us;
	host.random = random_bits;
	rc = lace_stack_init(arena, sizeof arena, &config, &host, &net);
	expect(rc == 0, "stack", rc ? lace_stack_size(&config) : 0);
	lace_nic_init(&nic, sizeof nic);
	nic.send = nic_send;
	nic.recv = nic_recv;
	nic.release = nic_release;
	nic.tx_buffer = nic_buffer;
	nic.mtu = FRAME_MAX - 18;
	put(nic.mac, our_mac, 6);
	eth = lace_nic_add(net, &nic);
	expect(eth > 0, "nic", eth);
	lace_ip_v4(&ip, our_ip[0], our_ip[1], our_ip[2], our_ip[3]);
	rc = lace_addr_add(net, eth, &ip, 24);
	expect(rc == 0, "address", rc);
	frames_socket = lace_udp_open(net, handler, NULL);
	expect(frames_socket > 0, "socket", frames_socket);
	frames_port = (unsigned)lace_udp_port(net, frames_socket);
}

/* Ends the stack; a digest of its counters. */
uint32_t frames_down(void)
{
	digest = 2166136261u;
	for (uint32_t i = 0; i < lace_stat_count(); i++)
		frames_note((uint32_t)lace_stat_get(net, i));
	expect(lace_stack_stop(net) == 0, "stop", 0);
	for (uint8_t *at = tx_space; at < tx; at++)
		expect(*at == 0xa5, "written before the buffer", tx - at);
	return digest;
}

uint32_t counter(const char *name)
{
	for (uint32_t i = 0; i < lace_stat_count(); i++) {
		const char *a = lace_stat_name(i), *b = name;

		while (*a && *a == *b)
			a++, b++;
		if (*a == *b)
			return (uint32_t)lace_stat_get(net, i);
	}
	expect(0, name, 0);
	return 0;
}

void frames_tick(uint32_t us)
{
	now += us;
	lace_poll(net, 1);
}

uint8_t *frame_start(unsigned ethertype, int tag)
{
	uint8_t *at = put(put(rx, our_mac, 6), their_mac, 6);

	if (tag >= 0)
		at = put16(put16(at, 0x8100), (unsigned)tag);
	return put16(at, ethertype);
}

static uint8_t *header;
unsigned frame_id;

uint8_t *frame_header(void)
{
	return header;
}

void frame_ip_sum(void)
{
	put16(header + 10, 0);
	put16(header + 10, ~sum(0, header, (header[0] & 15) * 4u) & 0xffff);
}

uint8_t *frame_ip(uint8_t *at, unsigned protocol, size_t payload, unsigned fragment, const uint8_t *options, size_t n)
{
	header = at;
	at[0] = (uint8_t)(0x45 + n / 4);
	at[1] = 0;
	put16(at + 2, (unsigned)(20 + n + payload));
	if (!fragment)
		frame_id++;
	put16(at + 4, frame_id);
	put16(at + 6, fragment);
	at[8] = 64;
	at[9] = (uint8_t)protocol;
	put(put(at + 12, their_ip, 4), our_ip, 4);
	put(at + 20, options, n);
	frame_ip_sum();
	return at + 20 + n;
}

uint32_t frame_pseudo(unsigned protocol, size_t length)
{
	return sum(sum(protocol + (uint32_t)length, their_ip, 4), our_ip, 4);
}

uint8_t pattern(unsigned seed, size_t at)
{
	return (uint8_t)(at * 7 + seed + (at >> 8) * 3);
}

uint8_t *frame_udp(uint8_t *at, unsigned port, size_t length, unsigned seed)
{
	uint32_t s;

	put16(put16(put16(put16(at, 4000), port), (unsigned)length + 8), 0);
	for (size_t i = 0; i < length; i++)
		at[8 + i] = pattern(seed, i);
	s = sum(frame_pseudo(UDP, length + 8), at, length + 8);
	put16(at + 6, s == 0xffff ? 0xffff : ~s & 0xffff);
	return at + 8 + length;
}

void frame_give_raw(size_t length)
{
	uint32_t before = 0, after = 0;

	expect(length <= FRAME_MAX + 8, "frame", (int64_t)length);
	for (size_t i = 0; i < length; i++)
		before = before * 31 + rx[i];
	pending = (uint32_t)length;
	sent_count = 0;
	lace_poll(net, 1);
	lace_poll(net, 1); /* TCP answers when the NIC is empty */
	expect(!pending && !lent, "taken and given back", pending);
	for (size_t i = 0; i < length; i++)
		after = after * 31 + rx[i];
	expect(before == after, "a received frame was written to", (int64_t)length);
}

void frame_give(const uint8_t *end)
{
	size_t length = (size_t)(end - rx);

	for (; length < 60; length++)
		rx[length] = 0;
	frame_give_raw(length);
}

void frame_dropped_raw(size_t length, const char *name)
{
	uint32_t count = counter(name);
	unsigned delivered = frames_delivered;

	frame_give_raw(length);
	count = counter(name) - count;
	if (count != 1)
		bare_print(name);
	expect(count == 1, "drops", count);
	expect(frames_delivered == delivered, "delivered in spite of", frames_delivered);
}

void frame_dropped(const uint8_t *end, const char *name)
{
	size_t length = (size_t)(end - rx);

	for (; length < 60; length++)
		rx[length] = 0;
	frame_dropped_raw(length, name);
}
