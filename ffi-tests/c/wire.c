#include "wire.h"

const char *const where_names[WHERES] = {
	"now", "random", "log", "send", "recv", "release", "tx_buffer", "link", "filter", "write",
	"pump", "poll", "idle", "datagram", "hook", "progress", "done", "lost"
};

static const uint8_t our_mac[6] = { 2, 0, 0, 0, 0, 9 }, their_mac[6] = { 2, 0, 0, 0, 0, 1 };
static const uint8_t our_ip[4] = { 10, 0, 0, 9 }, their_ip[4] = { 10, 0, 0, 1 };

static void inside(struct wire *w, enum where where)
{
	if (!w->inside)
		return;
	if (++w->inside_depth > w->inside_deepest)
		w->inside_deepest = w->inside_depth;
	w->inside(w, where);
	w->inside_depth--;
}

/* The host. */

static uint64_t now_us(void *ctx)
{
	struct wire *w = (struct wire *)ctx;

	inside(w, IN_NOW);
	w->nows++;
	w->now += w->step;
	return w->host.clock_bits == 32 ? (uint32_t)w->now : w->now;
}

static uint32_t random32(void *ctx)
{
	struct wire *w = (struct wire *)ctx;

	inside(w, IN_RANDOM);
	w->seed = w->seed * 1664525u + 1013904223u;
	return w->seed ^ (w->seed >> 16);
}

static int poll(void *ctx)
{
	struct wire *w = (struct wire *)ctx;

	inside(w, IN_POLL);
	return ++w->polls > w->poll_after ? w->poll_result : 0;
}

static void idle(void *ctx, uint32_t max_us)
{
	struct wire *w = (struct wire *)ctx;

	CHECK(max_us > 0);
	inside(w, IN_IDLE);
	w->idles++;
	w->now += max_us;
}

static void log_event(void *ctx, uint32_t event, uint64_t a, uint64_t b)
{
	struct wire *w = (struct wire *)ctx;

	(void)event, (void)a, (void)b;
	w->log_count++;
	inside(w, IN_LOG);
}

/* The driver. */

static int send_frame(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token)
{
	struct wire *w = (struct wire *)ctx;
	uint32_t len = 0, i, at = 0;
	uint8_t *frame;

	inside(w, IN_SEND);
	if (w->tx) {
		if (n) {
			CHECK_EQ(n, 1);
			CHECK(spans[0].data == w->tx + w->tx_offset);
		}
		w->tx_back++;
	}
	for (i = 0; i < n; i++)
		len += spans[i].len;
	frame = (uint8_t *)malloc(len ? len : 1);
	CHECK(frame);
	for (i = 0; i < n; at += spans[i++].len)
		memcpy(frame + at, spans[i].data, spans[i].len);
	free(w->tx);
	w->tx = NULL;
	w->sends++;
	if (!n || w->send_result || (w->busy_every && w->sends % w->busy_every == 0)) {
		free(frame);
		return !n ? 0 : w->send_result ? w->send_result : LACE_EAGAIN;
	}
	CHECK(len >= 60);
	if (w->sent_count == QUEUE)
		wire_forget(w);
	if (w->driver.caps & LACE_NIC_ASYNC && token)
		w->tokens[w->token_count++] = token;
	else
		CHECK(!token || !(w->driver.caps & LACE_NIC_ASYNC));
	w->sent_len[w->sent_count] = len;
	w->sent[w->sent_count++] = frame;
	if (w->other_end)
		w->other_end(w, frame, len);
	return 0;
}

static int recv_frame(void *ctx, struct lace_frame *frame)
{
	struct wire *w = (struct wire *)ctx;
	unsigned at = w->rx_head % QUEUE;

	inside(w, IN_RECV);
	w->recvs++;
	CHECK(!w->lent);
	if (w->rx_head == w->rx_tail)
		return 0;
	w->rx_head++;
	w->lent = w->rx[at].block;
	w->lent_count++;
	frame->data = w->lent + w->rx_offset;
	frame->len = w->rx[at].len;
	frame->flags = w->rx[at].flags;
	frame->cookie = (uintptr_t)w->lent;
	return 1;
}

static void release_frame(void *ctx, const struct lace_frame *frame)
{
	struct wire *w = (struct wire *)ctx;

	inside(w, IN_RELEASE);
	CHECK(w->lent && frame->cookie == (uintptr_t)w->lent);
	w->released_count++;
	free(w->lent);
	w->lent = NULL;
}

static void pump(void *ctx)
{
	struct wire *w = (struct wire *)ctx;
	unsigned at = w->rx_head % QUEUE;

	w->pumps++;
	inside(w, IN_PUMP);
	if (w->rx_head == w->rx_tail)
		return;
	w->rx_head++;
	w->lent_count++;
	CHECK_EQ(lace_input(w->net, w->nic, w->rx[at].block + w->rx_offset, w->rx[at].len, w->rx[at].flags), 0);
	free(w->rx[at].block);
	w->released_count++;
}

static void *tx_buffer(void *ctx, uint32_t len)
{
	struct wire *w = (struct wire *)ctx;

	inside(w, IN_TX_BUFFER);
	CHECK(!w->tx);
	w->tx = (uint8_t *)malloc(len + w->tx_offset);
	CHECK(w->tx);
	w->tx_lent++;
	return w->tx + w->tx_offset;
}

static int link_state(void *ctx)
{
	struct wire *w = (struct wire *)ctx;

	inside(w, IN_LINK);
	return w->link;
}

static void set_filter(void *ctx, const uint8_t *macs, uint32_t n, int promisc)
{
	struct wire *w = (struct wire *)ctx;

	inside(w, IN_FILTER);
	CHECK_EQ(promisc, 0);
	w->filter_count = n;
	memcpy(w->filter, macs, n * 6 < sizeof w->filter ? n * 6 : sizeof w->filter);
}

/* The test's own callbacks. */

int64_t wire_write(void *ctx, uint64_t offset, const void *data, uint32_t len)
{
	struct wire *w = (struct wire *)ctx;

	inside(w, IN_WRITE);
	CHECK_EQ(offset, w->sink_len);
	w->sink = (uint8_t *)realloc(w->sink, w->sink_len + len + 1);
	CHECK(w->sink);
	memcpy(w->sink + w->sink_len, data, len);
	w->sink_len += len;
	return len;
}

void wire_progress(void *ctx, lace_op op, uint64_t done, uint64_t total)
{
	struct wire *w = (struct wire *)ctx;

	CHECK(op > 0 && (!total || done <= total));
	w->progress_count++;
	inside(w, IN_PROGRESS);
}

void wire_done(void *ctx, lace_op op, int64_t result)
{
	struct wire *w = (struct wire *)ctx;

	CHECK(op > 0);
	w->done_count++;
	w->done_result = result;
	inside(w, IN_DONE);
}

void wire_datagram(void *ctx, const struct lace_datagram *datagram)
{
	struct wire *w = (struct wire *)ctx;

	CHECK_EQ(datagram->size, sizeof *datagram);
	w->datagram_count++;
	inside(w, IN_DATAGRAM);
}

/* Setting up. */

void wire_push_only(struct wire *w)
{
	w->driver.recv = NULL;
	w->driver.release = NULL;
	w->driver.pump = pump;
}

static const struct lace_ip ours = { LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 9 } };

void wire_bare(struct wire *w, void (*setup)(struct wire *))
{
	int64_t size;

	memset(w, 0, sizeof *w);
	w->now = 5000000;
	w->step = 10;
	w->seed = 42;
	w->link = 1;
	w->other_end = wire_host;
	w->poll_result = 0;
	CHECK_EQ(lace_abi_check(LACE_VERSION), 0);
	CHECK_EQ(lace_config_init(&w->config, sizeof w->config), 0);
	CHECK_EQ(lace_host_init(&w->host, sizeof w->host), 0);
	CHECK_EQ(lace_nic_init(&w->driver, sizeof w->driver), 0);
	w->config.hooks = 2;
	w->config.udp_queues = 1;
	w->host.ctx = w;
	w->host.now_us = now_us;
	w->host.random = random32;
	w->host.poll = poll;
	w->host.idle = idle;
	w->host.log = log_event;
	w->driver.ctx = w;
	w->driver.send = send_frame;
	w->driver.recv = recv_frame;
	w->driver.release = release_frame;
	w->driver.tx_buffer = tx_buffer;
	w->driver.link = link_state;
	w->driver.set_rx_filter = set_filter;
	memcpy(w->driver.mac, our_mac, 6);
	if (setup)
		setup(w);
	size = lace_stack_size(&w->config);
	CHECK(size > 0);
	w->memory = malloc((size_t)size);
	CHECK(w->memory && (uintptr_t)w->memory % 16 == 0);
	CHECK_EQ(lace_stack_init(w->memory, (size_t)size, &w->config, &w->host, &w->net), 0);
	w->nic = lace_nic_add(w->net, &w->driver);
	CHECK(w->nic > 0);
}

void wire_up(struct wire *w, void (*setup)(struct wire *))
{
	wire_bare(w, setup);
	CHECK_EQ(lace_addr_add(w->net, w->nic, &ours, 24), 0);
}

void wire_forget(struct wire *w)
{
	while (w->sent_count)
		free(w->sent[--w->sent_count]);
}

void wire_down(struct wire *w)
{
	CHECK_EQ(lace_stack_stop(w->net), 0);
	CHECK_EQ(lace_stack_stop(w->net), 0);
	CHECK_EQ(lace_poll(w->net, 1), LACE_EBADF);
	CHECK(!w->lent && !w->tx);
	CHECK_EQ(w->lent_count, w->released_count);
	CHECK_EQ(w->tx_lent, w->tx_back);
	CHECK(w->inside_deepest <= 2); /* A datagram delivered from within pump. */
	wire_forget(w);
	while (w->rx_head != w->rx_tail)
		free(w->rx[w->rx_head++ % QUEUE].block);
	free(w->sink);
	free(w->memory);
}

void wire_put(struct wire *w, const void *frame, uint32_t len)
{
	uint8_t *block = (uint8_t *)malloc(len + w->rx_offset + !len);

	CHECK(block && w->rx_tail - w->rx_head < QUEUE);
	memcpy(block + w->rx_offset, frame, len);
	w->rx[w->rx_tail % QUEUE].block = block;
	w->rx[w->rx_tail % QUEUE].flags = 0;
	w->rx[w->rx_tail++ % QUEUE].len = len;
}

void wire_settle(struct wire *w)
{
	unsigned quiet = 0, i;

	for (i = 0; quiet < 3; i++) {
		int n = lace_poll(w->net, 8);

		CHECK(n >= 0 && i < 10000);
		quiet = n || w->rx_head != w->rx_tail ? 0 : quiet + 1;
	}
}

void wire_wait(struct wire *w, unsigned ms)
{
	while (ms--) {
		w->now += 1000;
		wire_settle(w);
	}
}

unsigned wire_stat(struct wire *w, const char *name)
{
	uint32_t i;

	for (i = 0; i < lace_stat_count(); i++)
		if (!strcmp(lace_stat_name(i), name)) {
			CHECK(lace_stat_get(w->net, i) >= 0);
			return (unsigned)lace_stat_get(w->net, i);
		}
	fprintf(stderr, "no counter %s\n", name);
	exit(1);
}

/* Frames. */

static uint32_t sum(const uint8_t *p, uint32_t len, uint32_t acc)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		acc += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (acc >> 16)
		acc = (acc & 0xffff) + (acc >> 16);
	return acc;
}

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* Ethernet and IPv4 headers from 10.0.0.1; returns the length of the frame. */
static uint32_t ip_frame(uint8_t *f, const uint8_t *dst_mac, const uint8_t *dst, uint8_t protocol, uint32_t payload)
{
	uint32_t len = 34 + payload;

	memcpy(f, dst_mac, 6);
	memcpy(f + 6, their_mac, 6);
	put16(f + 12, 0x0800);
	memset(f + 14, 0, 20);
	f[14] = 0x45;
	put16(f + 16, 20 + payload);
	f[22] = 64;
	f[23] = protocol;
	memcpy(f + 26, their_ip, 4);
	memcpy(f + 30, dst, 4);
	put16(f + 24, ~sum(f + 14, 20, 0) & 0xffff);
	while (len < 60)
		f[len++] = 0;
	return len;
}

static uint32_t udp_frame(uint8_t *f, const uint8_t *dst_mac, const uint8_t *dst, uint16_t from, uint16_t to,
			  const void *payload, uint32_t len)
{
	uint32_t total, check;

	memcpy(f + 42, payload, len);
	total = ip_frame(f, dst_mac, dst, 17, 8 + len);
	put16(f + 34, from);
	put16(f + 36, to);
	put16(f + 38, 8 + len);
	put16(f + 40, 0);
	check = ~sum(f + 34, 8 + len, sum(f + 26, 8, 17 + 8 + len)) & 0xffff;
	put16(f + 40, check ? check : 0xffff);
	return total;
}

uint32_t wire_udp(uint8_t *frame, uint16_t from, uint16_t to, const void *payload, uint32_t len)
{
	return udp_frame(frame, our_mac, our_ip, from, to, payload, len);
}

const uint8_t *wire_payload(const uint8_t *f, uint32_t len, uint16_t *from, uint16_t *to, uint32_t *payload_len)
{
	uint32_t udp;

	if (len < 42 || get16(f + 12) != 0x0800 || f[23] != 17)
		return NULL;
	udp = get16(f + 38);
	CHECK(f[14] == 0x45 && get16(f + 16) == 20 + udp && 34 + udp <= len);
	CHECK_EQ(sum(f + 14, 20, 0), 0xffff);
	CHECK_EQ(sum(f + 34, udp, sum(f + 26, 8, 17 + udp)), 0xffff);
	*from = get16(f + 34);
	*to = get16(f + 36);
	*payload_len = udp - 8;
	return f + 42;
}

/* The host at the other end. */

static void tftp_block(struct wire *w, uint16_t block)
{
	uint8_t packet[516], frame[600];
	uint32_t at = (uint32_t)(block - 1) * 512, len;

	if (at > w->file_len)
		return;
	len = w->file_len - at < 512 ? w->file_len - at : 512;
	put16(packet, 3);
	put16(packet + 2, block);
	memcpy(packet + 4, w->file + at, len);
	wire_put(w, frame, wire_udp(frame, 1069, w->tftp_client, packet, 4 + len));
}

static void dhcp(struct wire *w, const uint8_t *m, uint32_t len)
{
	static const uint8_t broadcast[4] = { 255, 255, 255, 255 };
	static const uint8_t all[6] = { 255, 255, 255, 255, 255, 255 };
	static const uint8_t options[] = {
		54, 4, 10, 0, 0, 1, 51, 4, 0, 0, 14, 16, 1, 4, 255, 255, 255, 0, 3, 4, 10, 0, 0, 1, 6, 4, 10, 0, 0, 3,
		15, 7, 'l', 'a', 'b', '.', 'n', 'e', 't', 66, 8, '1', '0', '.', '0', '.', '0', '.', '1',
		67, 6, 'k', 'e', 'r', 'n', 'e', 'l', 224, 3, 1, 2, 3, 255
	};
	uint8_t reply[320], frame[400];
	uint32_t at = 240;
	uint8_t type = 0;

	while (at + 1 < len && m[at] != 255) {
		if (m[at] == 53)
			type = m[at + 2];
		at += m[at] ? 2u + m[at + 1] : 1u;
	}
	if (type == 7)
		w->releases++;
	if (type != 1 && type != 3)
		return;
	memset(reply, 0, sizeof reply);
	memcpy(reply, m, 44);
	reply[0] = 2;
	memcpy(reply + 16, our_ip, 4);
	memcpy(reply + 236, m + 236, 4);
	reply[240] = 53;
	reply[241] = 1;
	reply[242] = type == 1 ? 2 : 5;
	memcpy(reply + 243, options, sizeof options);
	*(type == 1 ? &w->offers : &w->acks) += 1;
	wire_put(w, frame, udp_frame(frame, all, broadcast, 67, 68, reply, sizeof reply));
}

void wire_host(struct wire *w, const uint8_t *f, uint32_t len)
{
	uint8_t frame[2048];
	const uint8_t *payload;
	uint16_t from, to;
	uint32_t n;

	if (w->silent)
		return;
	if (get16(f + 12) == 0x0806 && get16(f + 20) == 1 && !memcmp(f + 38, their_ip, 4)) {
		memset(frame, 0, 60);
		memcpy(frame, f + 6, 6);
		memcpy(frame + 6, their_mac, 6);
		memcpy(frame + 12, f + 12, 8);
		put16(frame + 20, 2);
		memcpy(frame + 22, their_mac, 6);
		memcpy(frame + 28, their_ip, 4);
		memcpy(frame + 32, f + 22, 10);
		wire_put(w, frame, 60);
		return;
	}
	if (get16(f + 12) == 0x0800 && f[23] == 1 && f[34] == 8 && !memcmp(f + 30, their_ip, 4)) {
		n = get16(f + 16) - 20u;
		memcpy(frame + 34, f + 34, n);
		frame[34] = 0;
		put16(frame + 36, 0);
		put16(frame + 36, ~sum(frame + 34, n, 0) & 0xffff);
		wire_put(w, frame, ip_frame(frame, our_mac, our_ip, 1, n));
		return;
	}
	payload = wire_payload(f, len, &from, &to, &n);
	if (!payload)
		return;
	if (to == 67)
		dhcp(w, payload, n);
	if (memcmp(f + 30, their_ip, 4))
		return;
	if (to == 7)
		wire_put(w, frame, wire_udp(frame, 7, from, payload, n));
	if (to == 69 && get16(payload) == 1) {
		w->tftp_requests++;
		w->tftp_client = from;
		if (!w->file) {
			static const uint8_t error[] = { 0, 5, 0, 1, 'g', 'o', 'n', 'e', 0 };

			wire_put(w, frame, wire_udp(frame, 1069, from, error, sizeof error));
			return;
		}
		tftp_block(w, 1);
	}
	if (to == 1069 && from == w->tftp_client) {
		if (get16(payload) == 5)
			w->tftp_errors++;
		if (get16(payload) == 4)
			tftp_block(w, (uint16_t)(get16(payload + 2) + 1));
	}
}

uint8_t *wire_file(uint32_t len)
{
	uint8_t *file = (uint8_t *)malloc(len + 1);
	uint32_t i;

	CHECK(file);
	for (i = 0; i < len; i++)
		file[i] = (uint8_t)(i * 7 + i / 251 + i / 65521);
	return file;
}

int wire_main(const struct test *tests, unsigned count, int argc, char **argv)
{
	unsigned i, ran = 0;

	for (i = 0; i < count; i++)
		if (argc < 2 || !strcmp(argv[1], tests[i].name)) {
			tests[i].run();
			ran++;
		}
	if (!ran) {
		fprintf(stderr, "no such test\n");
		return 2;
	}
	return 0;
}
