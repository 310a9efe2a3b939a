/* Bad input: pointers, sizes, handles, clocks, frames. Each gets a documented code or a counted drop. */
#include "wire.h"

static const struct lace_ip them = { LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 1 } };

static uint64_t zero_now(void *ctx)
{
	(void)ctx;
	return 0;
}

static uint32_t zero_random(void *ctx)
{
	(void)ctx;
	return 4;
}

static int sent_nothing(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token)
{
	(void)ctx, (void)spans, (void)n, (void)token;
	return 0;
}

/* A stack cannot be made of NULL, misaligned, short or wrapping memory, nor of structs that were not set up. */
static void init(void)
{
	struct lace_config config, bad_config;
	struct lace_host host, bad_host;
	lace_stack *net = NULL;
	uint8_t *memory;
	size_t size;
	unsigned i;

	CHECK_EQ(lace_config_init(NULL, sizeof config), LACE_EFAULT);
	CHECK_EQ(lace_config_init(&config, 4), LACE_EINVAL);
	CHECK_EQ(lace_config_init(&config, 0), LACE_EINVAL);
	CHECK_EQ(lace_config_init(&config, (size_t)-1), LACE_EINVAL);
	CHECK_EQ(lace_config_full(NULL, sizeof config), LACE_EFAULT);
	CHECK_EQ(lace_config_full(&config, sizeof config), 0);
	CHECK(lace_stack_size(&config) <= (int64_t)LACE_STACK_SIZE_FULL);
	CHECK_EQ(lace_config_init(&config, sizeof config), 0);
	CHECK(lace_stack_size(&config) <= (int64_t)LACE_STACK_SIZE_TFTP);
	CHECK_EQ(lace_stack_size(NULL), lace_stack_size(&config));
	CHECK_EQ(lace_host_init(NULL, sizeof host), LACE_EFAULT);
	CHECK_EQ(lace_host_init(&host, sizeof host - 1), LACE_EINVAL);
	CHECK_EQ(lace_host_init(&host, sizeof host), 0);
	host.now_us = zero_now;
	host.random = zero_random;
	size = (size_t)lace_stack_size(&config);
	memory = (uint8_t *)malloc(size + 16);
	CHECK(memory);
	CHECK_EQ(lace_stack_init(NULL, size, &config, &host, &net), LACE_EFAULT);
	CHECK_EQ(lace_stack_init(memory, size, NULL, &host, &net), LACE_EFAULT);
	CHECK_EQ(lace_stack_init(memory, size, &config, NULL, &net), LACE_EFAULT);
	CHECK_EQ(lace_stack_init(memory, size, &config, &host, NULL), LACE_EFAULT);
	for (i = 1; i < 16; i++)
		CHECK_EQ(lace_stack_init(memory + i, size, &config, &host, &net), LACE_EINVAL);
	for (i = 1; i <= size; i += i < 64 ? 1 : 97)
		CHECK_EQ(lace_stack_init(memory, size - i, &config, &host, &net), LACE_ENOMEM);
	CHECK_EQ(lace_stack_init((void *)(uintptr_t)-16, size, &config, &host, &net), LACE_EFAULT);
	bad_host = host;
	bad_host.now_us = NULL;
	CHECK_EQ(lace_stack_init(memory, size, &config, &bad_host, &net), LACE_EINVAL);
	bad_host = host;
	bad_host.random = NULL;
	CHECK_EQ(lace_stack_init(memory, size, &config, &bad_host, &net), LACE_EINVAL);
	bad_host = host;
	bad_host.clock_bits = 16;
	CHECK_EQ(lace_stack_init(memory, size, &config, &bad_host, &net), LACE_EINVAL);
	bad_host = host;
	bad_host.size = 0;
	CHECK_EQ(lace_stack_init(memory, size, &config, &bad_host, &net), LACE_EINVAL);
	bad_config = config;
	bad_config.size = 0xffffffff;
	CHECK_EQ(lace_stack_init(memory, size, &bad_config, &host, &net), LACE_EINVAL);
	bad_config = config;
	bad_config.nics = 0;
	CHECK_EQ(lace_stack_init(memory, size, &bad_config, &host, &net), LACE_EINVAL);
	CHECK(!net);
	CHECK_EQ(lace_stack_init(memory, size, &config, &host, &net), 0);
	CHECK((uint8_t *)net == memory);
	CHECK_EQ(lace_stack_stop(net), 0);
	free(memory);
}

/* The same structs, longer and shorter. */
static void sizes(void)
{
	struct { struct lace_config known; uint32_t later[4]; } longer;
	struct { struct lace_ping_stats known; uint32_t later; } stats;
	struct lace_ping ping;
	struct wire w;
	lace_op op;

	CHECK_EQ(lace_config_init(&longer.known, sizeof longer), 0);
	CHECK_EQ(longer.known.size, sizeof longer);
	CHECK_EQ(lace_stack_size(&longer.known), lace_stack_size(NULL));
	longer.later[3] = 1;
	CHECK_EQ(lace_stack_size(&longer.known), LACE_EINVAL);
	longer.later[3] = 0;
	longer.known.size = 8;
	CHECK_EQ(lace_stack_size(&longer.known), LACE_EINVAL);
	wire_up(&w, NULL);
	CHECK_EQ(lace_ping_init(&ping, sizeof ping), 0);
	ping.peer.ip = them;
	ping.size = 7;
	CHECK_EQ(lace_ping_start(w.net, &ping), LACE_EINVAL);
	ping.size = sizeof ping;
	op = lace_ping_start(w.net, &ping);
	CHECK_EQ(lace_op_wait(w.net, op), 1);
	/* What is handed out fills in what it knows, no more than there is room for. */
	memset(&stats, 0xee, sizeof stats);
	CHECK_EQ(lace_ping_result(w.net, op, &stats.known), LACE_EINVAL);
	CHECK_EQ(lace_ping_stats_init(&stats.known, sizeof stats.known), 0);
	CHECK_EQ(stats.later, 0xeeeeeeee);
	CHECK_EQ(lace_ping_result(w.net, op, &stats.known), 0);
	CHECK(stats.known.sent == 1 && stats.known.received == 1 && stats.later == 0xeeeeeeee);
	CHECK_EQ(stats.known.size, sizeof stats.known);
	CHECK_EQ(lace_ping_result(w.net, op, NULL), LACE_EFAULT);
	CHECK_EQ(lace_op_close(w.net, op), 0);
	/* What is reserved is zero. */
	ping.peer.reserved = 1;
	CHECK_EQ(lace_ping_start(w.net, &ping), LACE_EINVAL);
	wire_down(&w);
}

/* Handles that are stale, of another kind, or nonsense; a stack that is none. */
static void handles(void)
{
	struct wire w;
	struct lace_ping ping;
	struct lace_ip ip;
	struct lace_detail detail;
	lace_op op, again;
	lace_udp s;
	static const int32_t nonsense[] = { 0, -1, 1, 2, 0x7fffffff, -2147483647 - 1 };
	uint64_t not_a_stack[64] = { 0 };
	unsigned i;

	wire_up(&w, NULL);
	CHECK_EQ(lace_ping_init(&ping, sizeof ping), 0);
	ping.peer.ip = them;
	CHECK_EQ(lace_detail_init(&detail, sizeof detail), 0);
	s = lace_udp_open_queue(w.net);
	op = lace_ping_start(w.net, &ping);
	CHECK(op > 0 && s > 0);
	for (i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
		CHECK_EQ(lace_op_status(w.net, nonsense[i]), LACE_EBADF);
		CHECK_EQ(lace_op_cancel(w.net, nonsense[i]), LACE_EBADF);
		CHECK_EQ(lace_op_close(w.net, nonsense[i]), LACE_EBADF);
		CHECK_EQ(lace_op_detail(w.net, nonsense[i], &detail), LACE_EBADF);
		CHECK_EQ(lace_udp_close(w.net, nonsense[i]), LACE_EBADF);
		CHECK_EQ(lace_hook_close(w.net, nonsense[i]), LACE_EBADF);
		CHECK_EQ(lace_nic_remove(w.net, nonsense[i]), LACE_EBADF);
		CHECK_EQ(lace_nic_link(w.net, nonsense[i], 1), LACE_EBADF);
		CHECK_EQ(lace_addr_get(w.net, nonsense[i], 0, &ip, NULL), LACE_EBADF);
		CHECK_EQ(lace_dhcp_start(w.net, nonsense[i], NULL, NULL), LACE_EBADF);
	}
	CHECK_EQ(lace_op_status(w.net, s), LACE_EBADF);
	CHECK_EQ(lace_op_wait(w.net, w.nic), LACE_EBADF);
	CHECK_EQ(lace_udp_port(w.net, op), LACE_EBADF);
	CHECK_EQ(lace_nic_reset(w.net, op), LACE_EBADF);
	/* A negative one, as a failed start gives, comes back from a wait. */
	CHECK_EQ(lace_op_wait(w.net, LACE_EMFILE), LACE_EMFILE);
	/* The same place, another handle, for longer than anybody lives. */
	CHECK_EQ(lace_op_close(w.net, op), 0);
	for (i = 0; i < 70000; i++) {
		again = lace_ping_start(w.net, &ping);
		CHECK(again > 0 && again != op);
		if (i == 65533) /* Then the generation of the first one comes again. */
			op = 0;
		CHECK_EQ(lace_op_close(w.net, again), 0);
	}
	/* No stack. */
	CHECK_EQ(lace_poll(NULL, 1), LACE_EFAULT);
	CHECK_EQ(lace_op_status(NULL, 1), LACE_EFAULT);
	CHECK_EQ(lace_next_deadline(NULL), LACE_EFAULT);
	CHECK_EQ(lace_stack_stop(NULL), LACE_EFAULT);
	CHECK_EQ(lace_poll((lace_stack *)not_a_stack, 1), LACE_EBADF);
	CHECK_EQ(lace_poll((lace_stack *)((uint8_t *)w.net + 1), 1), LACE_EBADF);
	CHECK_EQ(lace_stack_stop((lace_stack *)not_a_stack), LACE_EBADF);
	CHECK_EQ(lace_stat_get(w.net, lace_stat_count()), LACE_EINVAL);
	CHECK(!lace_stat_name(lace_stat_count()) && !lace_stat_name(0xffffffff));
	CHECK(!strcmp(lace_strerror(LACE_EBADF), "bad handle") && !strcmp(lace_strerror(7), "success"));
	CHECK(!strcmp(lace_strerror(-123456), "error of the host"));
	CHECK(!strcmp(lace_strerror(-9000000000000), "error of the host"));
	CHECK_EQ(lace_abi_check(LACE_VERSION + 1), LACE_EOPNOTSUPP);
	CHECK(lace_version() == LACE_VERSION);
	wire_down(&w);
}

/* Drivers that cannot be. */
static void drivers(void)
{
	struct wire w;
	struct lace_nic nic;

	wire_up(&w, NULL);
	CHECK_EQ(lace_nic_remove(w.net, w.nic), 0);
#define REFUSED(field, value, code) \
	do { \
		CHECK_EQ(lace_nic_init(&nic, sizeof nic), 0); \
		nic.send = sent_nothing; \
		nic.mac[0] = 2; \
		nic.field = value; \
		CHECK_EQ(lace_nic_add(w.net, &nic), code); \
	} while (0)
	REFUSED(mac[0], 1, LACE_EINVAL);
	REFUSED(mac[0], 0, LACE_EINVAL);
	REFUSED(send, NULL, LACE_EINVAL);
	REFUSED(mtu, 67, LACE_EINVAL);
	REFUSED(mtu, 1501, LACE_EINVAL);
	REFUSED(vlan, 4095, LACE_EINVAL);
	REFUSED(tx_align, 3, LACE_EINVAL);
	REFUSED(tx_align, 128, LACE_EINVAL);
	REFUSED(caps, 1u << 30, LACE_EINVAL);
	REFUSED(reserved, 1, LACE_EINVAL);
	REFUSED(size, 3, LACE_EINVAL);
#undef REFUSED
	CHECK_EQ(lace_nic_add(w.net, NULL), LACE_EFAULT);
	w.nic = lace_nic_add(w.net, &w.driver);
	CHECK(w.nic > 0);
	CHECK_EQ(lace_nic_add(w.net, &w.driver), LACE_EMFILE);
	CHECK_EQ(lace_nic_set_mac(w.net, w.nic, NULL), LACE_EFAULT);
	CHECK_EQ(lace_nic_set_mac(w.net, w.nic, (const uint8_t *)"\1\0\0\0\0\0"), LACE_EINVAL);
	CHECK_EQ(lace_nic_set_mac(w.net, w.nic, (const uint8_t *)"\0\0\0\0\0\0"), LACE_EINVAL);
	CHECK_EQ(lace_nic_set_mac(w.net, w.nic, (const uint8_t *)"\2\0\0\0\0\7"), 0);
	wire_down(&w);
}

static void setup_no_frames(struct wire *w)
{
	w->config.tx_frames = 0;
	w->config.wait_frames = 0;
}

/* Without frames of the stack's own a NIC must lend buffers, and a datagram waits with its sender for the neighbour. */
static void no_frames(void)
{
	struct wire w;
	struct lace_nic nic;
	lace_udp s;

	wire_up(&w, setup_no_frames);
	nic = w.driver;
	nic.tx_buffer = NULL;
	CHECK_EQ(lace_nic_add(w.net, &nic), LACE_EINVAL);
	s = lace_udp_open_queue(w.net);
	CHECK_EQ(lace_udp_send(w.net, s, &them, 7, "x", 1), LACE_EAGAIN);
	wire_settle(&w);
	CHECK_EQ(lace_udp_send(w.net, s, &them, 7, "x", 1), 0);
	wire_down(&w);
}

/* Field case E02: frames of every length, lent and pushed. */
static const uint32_t lengths[] = { 0, 1, 13, 14, 41, 42, 59, 60, 1514, 1518, 1519, 9018, 65518, 65535, 0xffffffff };

static void *null_recv_data;
static int null_recv(void *ctx, struct lace_frame *frame)
{
	uint32_t *len = (uint32_t *)ctx;

	if (!*len)
		return 0;
	frame->data = null_recv_data;
	frame->len = *len;
	*len = 0;
	return 1;
}

static unsigned drops(struct wire *w)
{
	return wire_stat(w, "drop_short") + wire_stat(w, "drop_oversize") + wire_stat(w, "drop_ip_malformed");
}

static void frame_lengths(void)
{
	struct wire w;
	uint8_t *frame = (uint8_t *)malloc(70000), good[64];
	uint8_t payload[1472];
	unsigned i, k, n, seen;
	lace_udp s;
	uint32_t len;
	lace_nic_id other;
	struct lace_nic nic;

	CHECK(frame);
	memset(payload, 7, sizeof payload);
	for (k = 0; k < 2; k++) {
		wire_up(&w, k ? wire_push_only : NULL);
		s = lace_udp_open(w.net, wire_datagram, &w);
		CHECK_EQ(lace_udp_bind(w.net, s, 0, NULL, 5000), 0);
		for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			n = drops(&w);
			seen = w.datagram_count;
			len = lengths[i];
			if (len == 0xffffffff)
				continue;
			memset(frame, 0xee, 70000);
			wire_udp(frame, 4000, 5000, payload, len < 42 ? 0 : len > 1514 ? 1472 : len - 42);
			if (len > 42 && len < 60)
				memset(frame + len, 0xee, 60 - len);
			wire_put(&w, frame, len);
			wire_settle(&w);
			if (len >= 42 && len <= 1518) {
				CHECK_EQ(w.datagram_count, seen + 1);
				CHECK_EQ(drops(&w), n);
			} else {
				CHECK_EQ(w.datagram_count, seen);
				CHECK_EQ(drops(&w), n + 1);
			}
			wire_put(&w, good, wire_udp(good, 4000, 5000, "good", 4));
			wire_settle(&w);
			CHECK_EQ(w.datagram_count, seen + 1 + (len >= 42 && len <= 1518));
		}
		/* Lengths that no buffer has, from nowhere and in the stack itself. */
		n = drops(&w);
		CHECK_EQ(lace_input(w.net, w.nic, NULL, 60, 0), LACE_EFAULT);
		CHECK_EQ(lace_input(w.net, w.nic, NULL, (size_t)-1, 0), LACE_EFAULT);
		CHECK_EQ(lace_input(w.net, w.nic, NULL, 0, 0), LACE_EFAULT);
		CHECK_EQ(lace_input(w.net, w.nic, good, (size_t)-1, 0), 0);
		CHECK_EQ(lace_input(w.net, w.nic, good, 0, 0), 0);
		CHECK_EQ(lace_input(w.net, w.nic, w.memory, 60, 0), 0);
		CHECK_EQ(lace_input(w.net, w.nic, (void *)(uintptr_t)-30, 60, 0), 0);
		CHECK_EQ(drops(&w), n + 7);
		/* The same from a driver that lends them. */
		CHECK_EQ(lace_nic_remove(w.net, w.nic), 0);
		CHECK_EQ(lace_nic_init(&nic, sizeof nic), 0);
		nic.ctx = &len;
		nic.send = sent_nothing;
		nic.recv = null_recv;
		nic.mac[5] = 9;
		nic.mac[0] = 2;
		other = lace_nic_add(w.net, &nic);
		CHECK(other > 0);
		for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			n = drops(&w);
			len = lengths[i];
			null_recv_data = i & 1 ? NULL : w.memory;
			CHECK_EQ(lace_poll(w.net, 1), lengths[i] != 0);
			CHECK_EQ(drops(&w), n + (lengths[i] != 0));
		}
		w.inside = NULL;
		wire_down(&w);
	}
	free(frame);
}

/* Field case E05: received frames and buffers to send at every alignment, as sent and as landed. */
static void alignments(void)
{
	static const uint32_t sizes[] = { 0, 1, 511, 512, 513, 1467, 5001 };
	struct lace_tftp_get get;
	struct lace_sink ram;
	struct lace_ping ping;
	struct wire w;
	uint8_t *file, *to;
	unsigned rx, tx, at, i;

	for (rx = 0; rx < 8; rx++)
		for (tx = 0; tx < 8; tx++) {
			wire_up(&w, NULL);
			w.rx_offset = rx;
			w.tx_offset = tx;
			CHECK_EQ(lace_ping_init(&ping, sizeof ping), 0);
			ping.peer.ip = them;
			ping.payload = 100 + rx + tx;
			CHECK_EQ(lace_ping(w.net, &ping, NULL), 1);
			for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
				at = (rx + tx + i) % 8;
				file = wire_file(sizes[i]);
				to = (uint8_t *)malloc(sizes[i] + at + !sizes[i]);
				CHECK(to);
				w.file = file;
				w.file_len = sizes[i];
				CHECK_EQ(lace_tftp_get_init(&get, sizeof get), 0);
				get.server.ip = them;
				get.path = "kernel";
				CHECK_EQ(lace_sink_memory(&ram, sizeof ram, to + at, sizes[i]), 0);
				CHECK_EQ(lace_tftp_get(w.net, &get, &ram), sizes[i]);
				CHECK(!memcmp(to + at, file, sizes[i]));
				free(to);
				free(file);
			}
			wire_down(&w);
		}
}

/* Field case K01: what a stack does follows from the time that has passed, not from where its clock stands. */
struct trace {
	uint64_t hash;
	unsigned frames;
};

static struct trace *tracing;
static uint64_t trace_start;

static void record(struct wire *w, const uint8_t *frame, uint32_t len)
{
	uint32_t i;
	uint64_t h = tracing->hash ^ (w->now - trace_start);

	for (i = 0; i < len; i++)
		h = (h ^ frame[i]) * 1099511628211u;
	tracing->hash = h;
	tracing->frames++;
	/* ARP and DHCP get answers, everything else is left alone. */
	w->silent = frame[13] != 6 && !(frame[13] == 0 && frame[23] == 17 && frame[37] == 67);
	wire_host(w, frame, len);
	w->silent = 0;
}

static uint64_t start_at;
static unsigned start_bits;

static void setup_clock(struct wire *w)
{
	w->now = start_at;
	w->host.clock_bits = start_bits;
	w->other_end = record;
	w->step = 0;
	w->config.reassembly_slots = 2;
	w->config.reassembly_buffers = 2;
}

static struct trace trace(uint64_t start, unsigned bits)
{
	struct trace t = { 14695981039346656037u, 0 };
	struct wire w;
	struct lace_ping ping;
	struct lace_tftp_get get;
	struct lace_sink none;
	uint8_t frame[64];
	unsigned i, acks;
	lace_op op, transfer, dhcp;
	static const uint8_t announce[60] = {
		255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1,
		2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 9
	};

	tracing = &t;
	trace_start = start_at = start;
	start_bits = bits;
	wire_bare(&w, setup_clock);
	/* DHCP, and its T1 and T2. */
	dhcp = lace_dhcp_start(w.net, w.nic, NULL, NULL);
	CHECK(dhcp > 0);
	for (i = 0; lace_op_status(w.net, dhcp) == LACE_EAGAIN && i < 1000; i++) {
		w.now += 1000;
		lace_poll(w.net, 8);
	}
	CHECK_EQ(lace_op_close(w.net, dhcp), 0);
	CHECK_EQ(w.acks, 1);
	/* Resolution that fails. */
	CHECK_EQ(lace_ping_init(&ping, sizeof ping), 0);
	ping.peer.ip = them;
	ping.peer.ip.bytes[3] = 200;
	op = lace_ping_start(w.net, &ping);
	/* A transfer whose server is known and says nothing. */
	wire_put(&w, announce, 60);
	wire_settle(&w);
	CHECK_EQ(lace_tftp_get_init(&get, sizeof get), 0);
	get.server.ip = them;
	get.path = "kernel";
	CHECK_EQ(lace_sink_discard(&none, sizeof none), 0);
	transfer = lace_tftp_get_start(w.net, &get, &none);
	CHECK(transfer > 0);
	/* The first half of a datagram. */
	wire_put(&w, frame, wire_udp(frame, 4000, 5000, "0123456789abcdef01234567", 24));
	{
		/* 20 bytes of header, 32 of payload, more to come. */
		uint8_t *ip = w.rx[(w.rx_tail - 1) % QUEUE].block + 14;

		ip[6] = 0x20;
		ip[10] = (uint8_t)(ip[10] - 0x20 - (ip[10] < 0x20));
	}
	CHECK(lace_udp_open_queue(w.net) > 0);
	for (i = 0; i < 60000; i++) {
		w.now += 1000;
		lace_poll(w.net, 8);
		t.hash = (t.hash ^ (uint64_t)lace_op_status(w.net, op)) * 1099511628211u;
		t.hash = (t.hash ^ (uint64_t)lace_op_status(w.net, transfer)) * 1099511628211u;
		t.hash = (t.hash ^ wire_stat(&w, "drop_reassembly_timeout")) * 1099511628211u;
	}
	CHECK_EQ(lace_op_status(w.net, op), LACE_EHOSTUNREACH);
	CHECK_EQ(lace_op_status(w.net, transfer), LACE_ETIMEDOUT);
	/* Long ones: a lease of an hour is renewed until somebody stops asking. */
	acks = w.acks;
	for (i = 0; i < 24 * 60; i++) {
		w.now += 60000000;
		lace_poll(w.net, 8);
		lace_poll(w.net, 8);
	}
	CHECK(w.acks - acks >= 40 && w.acks - acks <= 50);
	t.hash = (t.hash ^ w.acks) * 1099511628211u;
	wire_down(&w);
	return t;
}

static void clock_wraps(void)
{
	struct trace zero = trace(0, 64), wrap;
	static const struct { uint64_t start; unsigned bits; } clocks[] = {
		{ 0xffffff00, 32 }, { 0, 32 }, { 0xffffffff - 30000000u, 32 }, { 0xffffff00, 64 }, { (uint64_t)-256, 64 },
	};
	unsigned i;

	CHECK(zero.frames > 50);
	for (i = 0; i < sizeof clocks / sizeof *clocks; i++) {
		wrap = trace(clocks[i].start, clocks[i].bits);
		CHECK_EQ(wrap.frames, zero.frames);
		CHECK(wrap.hash == zero.hash);
	}
}

/* A clock that stands, or steps back by 5 ms at every other look, makes no storm; one that jumps ends nothing whose answer
 * lies in the NIC. */
static void clock_stands(void)
{
	struct wire w;
	struct lace_ping ping;
	uint8_t answer[64], frame[2048];
	uint32_t len;
	unsigned i, k;
	lace_op op;

	for (k = 0; k < 2; k++) {
		wire_up(&w, NULL);
		w.step = 0;
		w.silent = 1;
		CHECK_EQ(lace_ping_init(&ping, sizeof ping), 0);
		ping.peer.ip = them;
		op = lace_ping_start(w.net, &ping);
		for (i = 0; i < 20000; i++) {
			if (k)
				w.now += i & 1 ? (uint64_t)5000 : (uint64_t)-5000;
			CHECK_EQ(lace_poll(w.net, 8), 0);
		}
		CHECK(w.sent_count <= 1);
		CHECK_EQ(lace_op_status(w.net, op), LACE_EAGAIN);
		CHECK(lace_next_deadline(w.net) > 0);
		wire_down(&w);
	}
	/* An hour passes without a poll. The answer came in time: it is taken before anything expires. */
	wire_up(&w, NULL);
	w.silent = 0;
	CHECK_EQ(lace_ping(w.net, &ping, NULL), 1);
	w.rx_head = w.rx_tail;
	op = lace_ping_start(w.net, &ping);
	CHECK(w.rx_head != w.rx_tail);
	len = w.rx[w.rx_head % QUEUE].len;
	memcpy(frame, w.rx[w.rx_head % QUEUE].block, len);
	/* In front of it, more frames than the budget of one pass. */
	free(w.rx[w.rx_head++ % QUEUE].block);
	for (i = 0; i < 12; i++)
		wire_put(&w, answer, wire_udp(answer, 1, 2, "noise", 5));
	wire_put(&w, frame, len);
	w.now += 3600000000u;
	CHECK_EQ(lace_poll(w.net, 8), 8);
	CHECK_EQ(lace_op_status(w.net, op), LACE_EAGAIN);
	CHECK_EQ(lace_poll(w.net, 8), 5);
	CHECK_EQ(lace_op_status(w.net, op), 1);
	wire_down(&w);
	/* With more noise than two budgets it expires all the same. */
	wire_up(&w, NULL);
	CHECK_EQ(lace_ping(w.net, &ping, NULL), 1);
	w.silent = 1;
	op = lace_ping_start(w.net, &ping);
	for (i = 0; i < 40; i++)
		wire_put(&w, answer, wire_udp(answer, 1, 2, "noise", 5));
	w.now += 3600000000u;
	CHECK_EQ(lace_poll(w.net, 8), 8);
	CHECK_EQ(lace_op_status(w.net, op), LACE_EAGAIN);
	CHECK_EQ(lace_poll(w.net, 8), 8);
	CHECK_EQ(lace_op_status(w.net, op), LACE_ETIMEDOUT);
	wire_down(&w);
}

static void setup_nfs(struct wire *w)
{
	w->config.nfs_jobs = 1;
}

/* NFS: what is asked for is checked before anything is sent, and a server that says nothing ends in time. */
static void nfs(void)
{
	struct lace_nfs nfs;
	struct lace_mount mount;
	struct lace_nfs_get get;
	struct lace_nfs_attr attr;
	struct lace_nfs_stat stat;
	struct lace_sink none;
	char name[1100];
	struct wire w;
	lace_op op;

	wire_up(&w, setup_nfs);
	w.silent = 1;
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = 0;
	CHECK_EQ(lace_nfs_init(&nfs, sizeof nfs), 0);
	CHECK_EQ(lace_mount_init(&mount, sizeof mount), 0);
	CHECK_EQ(lace_nfs_get_init(&get, sizeof get), 0);
	CHECK_EQ(lace_nfs_attr_init(&attr, sizeof attr), 0);
	CHECK_EQ(lace_nfs_stat_init(&stat, sizeof stat), 0);
	CHECK_EQ(lace_sink_discard(&none, sizeof none), 0);
	CHECK_EQ(lace_nfs_mount_start(w.net, NULL), LACE_EFAULT);
	CHECK_EQ(lace_nfs_mount_start(w.net, &nfs), LACE_EFAULT);
	nfs.path = "";
	CHECK_EQ(lace_nfs_mount_start(w.net, &nfs), LACE_EINVAL);
	nfs.path = "/export";
	CHECK_EQ(lace_nfs_mount_start(w.net, &nfs), LACE_EINVAL);
	nfs.server.ip = them;
	nfs.path = name;
	CHECK_EQ(lace_nfs_mount_start(w.net, &nfs), LACE_ENAMETOOLONG);
	nfs.path = "/export";
	nfs.transport = 3;
	CHECK_EQ(lace_nfs_mount_start(w.net, &nfs), LACE_EINVAL);
	nfs.transport = LACE_NFS_AUTO;
	nfs.timeout_ms = 2000;
	op = lace_nfs_mount_start(w.net, &nfs);
	CHECK(op > 0);
	CHECK_EQ(lace_nfs_mount_result(w.net, op, &mount), LACE_EAGAIN);
	CHECK_EQ(lace_nfs_attributes(w.net, op, &attr), LACE_EINVAL);
	CHECK(lace_op_wait(w.net, op) < 0);
	CHECK_EQ(lace_nfs_mount_result(w.net, op, &mount), LACE_EINVAL);
	CHECK_EQ(lace_nfs_mount_result(w.net, op, NULL), LACE_EFAULT);
	CHECK_EQ(lace_op_close(w.net, op), 0);
	CHECK(lace_nfs_mount(w.net, &nfs, &mount) < 0);
	/* A mount that was never filled in. */
	get.path = "Image";
	CHECK_EQ(lace_nfs_get_start(w.net, &get, &none), LACE_EFAULT);
	get.mount = &mount;
	CHECK_EQ(lace_nfs_get_start(w.net, &get, &none), LACE_EINVAL);
	mount.server = them;
	mount.nfs_port = 2049;
	mount.root_len = 65;
	CHECK_EQ(lace_nfs_get_start(w.net, &get, &none), LACE_EINVAL);
	mount.root_len = 8;
	CHECK_EQ(lace_nfs_get_start(w.net, &get, NULL), LACE_EFAULT);
	get.depth = 256;
	CHECK_EQ(lace_nfs_get_start(w.net, &get, &none), LACE_EINVAL);
	get.depth = 0;
	get.timeout_ms = 1000;
	op = lace_nfs_get_start(w.net, &get, &none);
	CHECK(op > 0);
	CHECK(lace_op_wait(w.net, op) < 0);
	CHECK_EQ(lace_op_close(w.net, op), 0);
	op = lace_nfs_fsstat_start(w.net, &mount, "/", NULL, NULL);
	CHECK_EQ(lace_nfs_fsstat(w.net, op, &stat), LACE_EAGAIN);
	/* One job: a second operation has none. */
	CHECK_EQ(lace_nfs_getattr(w.net, &mount, "/", 1, &attr), LACE_EMFILE);
	CHECK_EQ(lace_op_close(w.net, op), 0);
	CHECK_EQ(lace_nfs_fsstat(w.net, op, &stat), LACE_EBADF);
	CHECK_EQ(lace_nfs_list_start(w.net, &mount, NULL, &none, NULL, NULL), LACE_EFAULT);
	CHECK_EQ(lace_nfs_readlink_start(w.net, &mount, "/l", NULL, NULL, NULL), LACE_EFAULT);
	wire_down(&w);
}

static void setup_full(struct wire *w)
{
	CHECK_EQ(lace_config_full(&w->config, sizeof w->config), 0);
}

/* The stack's own memory is nobody's to be read from, landed in or kept for later. */
static void own_memory(void)
{
	struct lace_tftp_get get;
	struct lace_mount mount;
	struct lace_nfs_get nfs;
	struct lace_sink sink;
	struct lace_source source;
	struct lace_tftp_put put;
	struct lace_span span;
	struct lace_lease *lease, was;
	struct wire w;
	uint8_t *own;
	lace_udp s;

	wire_up(&w, setup_full);
	own = (uint8_t *)w.memory + lace_stack_size(&w.config) - 5008;
	lease = (struct lace_lease *)own;
	s = lace_udp_open_queue(w.net);
	CHECK(s > 0);
	CHECK_EQ(lace_udp_send(w.net, s, &them, 7, own, 10), LACE_EFAULT);
	CHECK_EQ(lace_udp_recv(w.net, s, own, 10, NULL), LACE_EFAULT);
	span.data = (uint8_t *)w.memory - 1;
	span.len = 2;
	CHECK_EQ(lace_udp_sendv(w.net, s, &them, 7, &span, 1), LACE_EFAULT);
	CHECK_EQ(lace_send_ip(w.net, w.nic, NULL, &them, 99, 1, &span, 1), LACE_EFAULT);
	CHECK_EQ(lace_send_frame(w.net, w.nic, own, 60), LACE_EFAULT);
	CHECK_EQ(lace_tftp_get_init(&get, sizeof get), 0);
	get.server.ip = them;
	get.path = "f";
	CHECK_EQ(lace_sink_memory(&sink, sizeof sink, own, 10), 0);
	CHECK_EQ(lace_tftp_get_start(w.net, &get, &sink), LACE_EFAULT);
	CHECK_EQ(lace_file_open_start(w.net, &get, own, 1000), LACE_EFAULT);
	CHECK_EQ(lace_tftp_put_init(&put, sizeof put), 0);
	put.server.ip = them;
	put.path = "f";
	CHECK_EQ(lace_source_memory(&source, sizeof source, own, 10), 0);
	CHECK_EQ(lace_tftp_put_start(w.net, &put, &source), LACE_EFAULT);
	CHECK_EQ(lace_mount_init(&mount, sizeof mount), 0);
	CHECK_EQ(lace_nfs_get_init(&nfs, sizeof nfs), 0);
	mount.server = them;
	mount.transport = LACE_NFS_UDP;
	mount.nfs_port = 2049;
	mount.root_len = 4;
	mount.path = "/";
	nfs.mount = &mount;
	nfs.path = "f";
	CHECK_EQ(lace_nfs_get_start(w.net, &nfs, &sink), LACE_EFAULT);
	CHECK_EQ(lace_nfs_open_start(w.net, &nfs, own, 1000), LACE_EFAULT);
	memcpy(&was, lease, sizeof was);
	lease->size = sizeof was;
	CHECK_EQ(lace_dhcp_start(w.net, w.nic, NULL, lease), LACE_EFAULT);
	memcpy(lease, &was, sizeof was);
	wire_down(&w);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "init", init }, { "sizes", sizes }, { "handles", handles }, { "drivers", drivers },
		{ "no_frames", no_frames }, { "frame_lengths", frame_lengths }, { "alignments", alignments },
		{ "clock_wraps", clock_wraps }, { "clock_stands", clock_stands }, { "nfs", nfs },
		{ "own_memory", own_memory },
	};

	return wire_main(tests, sizeof tests / sizeof *tests, argc, argv);
}
