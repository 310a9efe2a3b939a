/*
 * Files sent by TCP through the C interface, over a cable that loses, overtakes and refuses, by a card that is late with
 * its tokens, from sources that shrink, fail, and call back.
 */
#include "wire.h"

enum { LENGTH = 120000, PAGE = 1024, OUT = 256 };

static struct wire a, b;
static const struct lace_ip a_ip = { LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 9 } };
static const struct lace_ip b_ip = { LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 8 } };
static lace_tcp client, server;
static lace_listener listener;

/* The file, and what is out of it. */
static struct {
	uint8_t *bytes;
	uint32_t len, piece;
	uint64_t acked;          /* as the operation's progress told */
	unsigned lent[LENGTH / PAGE + 1], carried[LENGTH / PAGE + 1], lends, backs, calls;
	uint32_t top, fail_again; /* highest byte given; bytes before are refused a second time below this */
	int64_t says;            /* what to return instead, if it is not 0 */
	const void *shows;
	void (*inside)(void);    /* the test's own code in the source */
} file;

/* Frames that an asynchronous card holds: the range of the file that each carries. */
static struct {
	uint32_t token, from, to;
} out[OUT];
static unsigned n_out;
static int (*plain_send)(void *, const struct lace_span *, uint32_t, uint32_t);

static unsigned loss, overtake, seed;
static struct {
	struct wire *to;
	uint32_t len;
	uint8_t frame[1514];
} held;

static unsigned chance(unsigned most)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % most;
}

static void cross(struct wire *w, const uint8_t *frame, uint32_t len)
{
	struct wire *other = w == &a ? &b : &a;

	if (w->silent || other->silent || chance(1000) < loss)
		return;
	if (!held.to && chance(1000) < overtake) {
		held.to = other;
		held.len = len;
		memcpy(held.frame, frame, len);
		return;
	}
	wire_put(other, frame, len);
	if (held.to == other) {
		wire_put(other, held.frame, held.len);
		held.to = NULL;
	}
}

static int late_send(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token)
{
	struct wire *w = (struct wire *)ctx;
	int rc = plain_send(ctx, spans, n, token);
	uint32_t i, k;

	w->token_count = 0;
	if (rc || !token)
		return rc;
	CHECK(n_out < OUT);
	out[n_out].token = token;
	out[n_out].from = out[n_out].to = 0;
	for (i = 0; i < n; i++) {
		const uint8_t *p = (const uint8_t *)spans[i].data;

		if (file.bytes && p >= file.bytes && p < file.bytes + LENGTH) {
			uint32_t from = (uint32_t)(p - file.bytes);

			if (!out[n_out].to)
				out[n_out].from = from;
			out[n_out].to = from + spans[i].len;
		}
	}
	for (k = out[n_out].from / PAGE; k * PAGE < out[n_out].to; k++) {
		CHECK(file.lent[k] == 1 || !file.lends);
		file.carried[k]++;
	}
	n_out++;
	return 0;
}

/* The card is done with some of what it holds, in no order. */
static void report(unsigned most)
{
	while (n_out && most--) {
		unsigned i = chance(n_out);
		uint32_t token = out[i].token, k;

		for (k = out[i].from / PAGE; k * PAGE < out[i].to; k++)
			file.carried[k]--;
		out[i] = out[--n_out];
		CHECK_EQ(lace_nic_tx_done(a.net, a.nic, token), 0);
	}
}

static void setup(struct wire *w)
{
	w->config.tcp_connections = 2;
	w->config.tcp_listeners = 1;
	w->config.tcp_pages = 64;
	w->config.operations = 4;
	w->other_end = cross;
	if (w == &b)
		w->driver.mac[5] = 8;
}

static void setup_gather(struct wire *w)
{
	setup(w);
	w->driver.tx_buffer = NULL;
	w->driver.caps = LACE_NIC_GATHER;
}

static void setup_late(struct wire *w)
{
	setup_gather(w);
	if (w != &a)
		return;
	w->driver.caps |= LACE_NIC_ASYNC;
	w->config.tx_frames = 32;
	plain_send = w->driver.send;
	w->driver.send = late_send;
}

static void pass(uint32_t us)
{
	CHECK(lace_poll(a.net, 16) >= 0);
	CHECK(lace_poll(b.net, 16) >= 0);
	wire_forget(&a);
	wire_forget(&b);
	a.now += us;
	b.now += us;
}

static void up(void (*how)(struct wire *))
{
	struct lace_peer peer;
	lace_op op;
	unsigned i;

	memset(&file, 0, sizeof file);
	file.bytes = wire_file(LENGTH);
	file.len = LENGTH;
	loss = overtake = n_out = 0;
	held.to = NULL;
	wire_bare(&a, how);
	wire_bare(&b, how);
	CHECK_EQ(lace_addr_add(a.net, a.nic, &a_ip, 24), 0);
	CHECK_EQ(lace_addr_add(b.net, b.nic, &b_ip, 24), 0);
	memset(&peer, 0, sizeof peer);
	peer.ip = b_ip;
	peer.port = 80;
	listener = lace_tcp_listen(b.net, NULL, 80, 2, NULL);
	op = lace_tcp_connect_start(a.net, &peer, NULL, NULL, NULL);
	for (i = 0; i < 20; i++)
		pass(100), report(OUT);
	client = (lace_tcp)lace_op_status(a.net, op);
	CHECK(listener > 0 && client > 0);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	server = lace_tcp_accept(b.net, listener);
	CHECK(server > 0);
}

static void down(void)
{
	unsigned i;

	for (i = 0; i < LENGTH / PAGE + 1; i++)
		CHECK_EQ(file.lent[i], 0);
	CHECK_EQ(file.lends, file.backs);
	n_out = 0;
	if (lace_poll(a.net, 0) >= 0)
		CHECK_EQ(lace_nic_reset(a.net, a.nic), 0);
	a.busy_every = b.busy_every = 0;
	CHECK(lace_stack_stop(b.net) == 0);
	if (lace_stack_stop(a.net))
		CHECK_EQ(lace_nic_reset(a.net, a.nic), 0);
	wire_down(&a);
	wire_down(&b);
	free(file.bytes);
	file.bytes = NULL;
}

/* ---- sources ---- */

/* What every call of a source sees to; how many of `len` bytes there are, or what is to be returned. */
static int64_t asked(uint64_t offset, uint32_t len)
{
	file.calls++;
	CHECK(offset >= file.acked && len > 0);
	if (file.inside)
		file.inside();
	if (file.says)
		return file.says;
	if (offset < file.fail_again && offset < file.top)
		return -88;
	if (offset >= file.len)
		return 0;
	if (len > file.len - offset)
		len = (uint32_t)(file.len - offset);
	return len;
}

static int64_t fill(void *ctx, uint64_t offset, void *buffer, uint32_t len)
{
	int64_t n = asked(offset, len);

	(void)ctx;
	if (n <= 0 || n > len)
		return n;
	if (file.piece && n > file.piece)
		n = file.piece;
	memcpy(buffer, file.bytes + offset, (size_t)n);
	if (offset + (uint64_t)n > file.top)
		file.top = (uint32_t)(offset + (uint64_t)n);
	return n;
}

static int64_t map(void *ctx, uint64_t offset, uint32_t len, const void **page)
{
	int64_t n = asked(offset, len);

	(void)ctx;
	*page = file.shows ? file.shows : file.bytes + offset;
	if (n <= 0 || n > len)
		return n;
	if (n > (int64_t)(PAGE - offset % PAGE))
		n = (int64_t)(PAGE - offset % PAGE);
	if (offset + (uint64_t)n > file.top)
		file.top = (uint32_t)(offset + (uint64_t)n);
	CHECK_EQ(file.lent[offset / PAGE]++, 0);
	file.lends++;
	return n;
}

static void unmap(void *ctx, uint64_t offset, const void *page, uint32_t len)
{
	(void)ctx;
	CHECK(len > 0 && (file.shows || page == file.bytes + offset));
	CHECK_EQ(file.lent[offset / PAGE]--, 1);
	CHECK_EQ(file.carried[offset / PAGE], 0);
	file.backs++;
}

static void progress(void *ctx, lace_op op, uint64_t done, uint64_t total)
{
	(void)ctx;
	(void)op;
	CHECK(done <= total && done >= file.acked);
	file.acked = done;
}

enum { MEMORY, READ, MAP, KINDS };

static lace_op start(unsigned kind, uint64_t offset, uint64_t count)
{
	struct lace_source source;

	if (kind == MEMORY)
		CHECK_EQ(lace_source_memory(&source, sizeof source, file.bytes, LENGTH), 0);
	else if (kind == READ)
		CHECK_EQ(lace_source_read(&source, sizeof source, fill, NULL), 0);
	else
		CHECK_EQ(lace_source_map(&source, sizeof source, map, unmap, NULL), 0);
	return lace_tcp_sendfile_start(a.net, client, &source, offset, count, offset ? NULL : progress, NULL, NULL);
}

/* Runs until the operation is over: what it came to. What the server gets goes to `got`, `*len` counts it. */
static int64_t finish(lace_op op, uint8_t *got, uint32_t *len, uint32_t room)
{
	int64_t n, result = LACE_EAGAIN;
	unsigned i;

	for (i = 0; i < 100000 && result == LACE_EAGAIN; i++) {
		pass(2000);
		report(chance(3));
		while ((n = lace_tcp_recv(b.net, server, got + *len, room - *len)) > 0)
			*len += (uint32_t)n;
		result = lace_op_status(a.net, op);
	}
	CHECK(i < 100000);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	/* What is still under way. */
	for (i = 0; i < 50; i++) {
		pass(2000);
		report(OUT);
		while ((n = lace_tcp_recv(b.net, server, got + *len, room - *len)) > 0)
			*len += (uint32_t)n;
	}
	return result;
}

/* ---- tests ---- */

static void hostile_with(void (*how)(struct wire *))
{
	uint8_t *got = (uint8_t *)malloc(LENGTH + 1);
	unsigned kind;
	uint32_t len;

	CHECK(got);
	for (kind = 0; kind < KINDS; kind++) {
		seed = 7 + kind;
		len = 0;
		up(how);
		loss = 30;
		overtake = 50;
		a.busy_every = 5;
		CHECK_EQ(finish(start(kind, 0, LENGTH), got, &len, LENGTH + 1), LENGTH);
		CHECK_EQ(len, LENGTH);
		CHECK(!memcmp(got, file.bytes, LENGTH));
		/* Where the card keeps what it is lent, all of it was lent. */
		CHECK(kind != MAP || file.lends >= LENGTH / PAGE);
		loss = overtake = 0;
		down();
	}
	free(got);
}

static void hostile_copied(void)
{
	hostile_with(setup);
}

static void hostile_gathered(void)
{
	hostile_with(setup_gather);
}

static void hostile_late(void)
{
	hostile_with(setup_late);
}

/* Nothing; two in a row; closed behind; more than 4 GiB promised. */
static void in_a_row(void)
{
	uint8_t *got = (uint8_t *)malloc(2 * LENGTH);
	lace_op first, second, none;
	uint64_t total;
	uint32_t len = 0;
	char byte;

	CHECK(got);
	up(setup_gather);
	none = start(MAP, 0, 0);
	first = start(MAP, 0, 40000);
	second = start(READ, 40000, LENGTH - 40000);
	CHECK_EQ(lace_tcp_send(a.net, client, "x", 1), 1);
	CHECK_EQ(lace_tcp_close(a.net, client), 0);
	pass(100);
	CHECK_EQ(lace_op_status(a.net, none), 0);
	CHECK_EQ(file.acked, 0);
	CHECK_EQ(lace_op_close(a.net, none), 0);
	CHECK_EQ(finish(first, got, &len, 2 * LENGTH), 40000);
	CHECK_EQ(finish(second, got, &len, 2 * LENGTH), LENGTH - 40000);
	CHECK(!memcmp(got, file.bytes, 40000));
	CHECK(len == LENGTH + 1 && got[LENGTH] == 'x');
	CHECK_EQ(lace_tcp_recv(b.net, server, &byte, 1), 0);
	down();
	up(setup);
	len = 0;
	first = start(READ, 0, 1ull << 33);
	CHECK_EQ(lace_op_progress(a.net, first, NULL, &total), 0);
	CHECK_EQ(finish(first, got, &len, LENGTH + 1), LACE_ENODATA);
	CHECK_EQ(len, LENGTH);
	CHECK_EQ(start(READ, UINT64_MAX, 2) > 0, 1);
	pass(100);
	down();
	free(got);
}

static void shrink(void)
{
	if (file.calls == 30)
		file.len = file.top - 100;
}

/* A file that becomes shorter, reads of one byte, errors at the first call and when bytes are asked for again. */
static void bad_files(void)
{
	uint8_t *got = (uint8_t *)malloc(LENGTH + 1);
	unsigned kind, i, calls;
	uint64_t done;
	uint32_t len;
	int64_t rc;
	lace_op op;

	CHECK(got);
	for (kind = READ; kind < KINDS; kind++) {
		up(setup_gather);
		len = 0;
		file.inside = shrink;
		rc = finish(start(kind, 0, LENGTH), got, &len, LENGTH + 1);
		CHECK(rc == LACE_ENODATA);
		CHECK(len < LENGTH && len > 10000 && !memcmp(got, file.bytes, len));
		calls = file.calls;
		for (i = 0; i < 100; i++)
			pass(100000);
		CHECK_EQ(file.calls, calls);
		down();

		up(setup_gather);
		len = 0;
		file.piece = 1;
		CHECK_EQ(finish(start(kind, 0, 3000), got, &len, LENGTH + 1), 3000);
		CHECK(len == 3000 && !memcmp(got, file.bytes, len));
		/* Returns that no source may give. */
		static const int64_t says[] = { -77, LACE_EIO, INT64_MIN, INT64_MAX, 1ll << 32 };
		static const int64_t wants[] = { -77, LACE_EIO, LACE_EIO, LACE_EIO, LACE_EIO };
		for (i = 0; i < 5; i++) {
			file.acked = 0;
			file.says = says[i];
			op = start(kind, 0, 3000);
			CHECK_EQ(finish(op, got, &len, LENGTH + 1), wants[i]);
			CHECK_EQ(len, 3000);
		}
		file.says = 0;
		/* The connection lives on. */
		file.acked = 0;
		CHECK_EQ(finish(start(kind, 0, 1000), got, &len, LENGTH + 1), 1000);
		CHECK_EQ(len, 4000);
		down();
	}
	/* Pages that cannot be. */
	up(setup_gather);
	len = 0;
	file.shows = a.memory;
	CHECK_EQ(finish(start(MAP, 0, 3000), got, &len, LENGTH + 1), LACE_EFAULT);
	CHECK_EQ(len, 0);
	file.shows = NULL;
	down();
	/* Bytes that were sent are refused when they are to be sent again: the peer must not take what it has for all. */
	up(setup_gather);
	len = 0;
	file.fail_again = LENGTH;
	b.silent = 1;
	op = start(READ, 0, LENGTH);
	for (i = 0; i < 5; i++)
		pass(1000);
	b.silent = 0;
	CHECK_EQ(finish(op, got, &len, LENGTH + 1), -88);
	CHECK_EQ(len, 0);
	CHECK_EQ(lace_tcp_recv(b.net, server, got, 1), LACE_ECONNRESET);
	CHECK_EQ(lace_tcp_error(a.net, client), -88);
	CHECK_EQ(lace_op_progress(a.net, op, &done, NULL), LACE_EBADF);
	down();
	free(got);
}

/* ---- sources that call back ---- */

static lace_op running;
static unsigned inside_calls;

static void call_all(void)
{
	struct lace_source source;

	inside_calls++;
	CHECK_EQ(lace_poll(a.net, 1), LACE_EBUSY);
	CHECK_EQ(lace_tcp_send(a.net, client, "x", 1), LACE_EBUSY);
	CHECK_EQ(lace_tcp_wait(a.net, client, LACE_TCP_SENT), LACE_EBUSY);
	CHECK_EQ(lace_op_status(a.net, running), LACE_EBUSY);
	CHECK_EQ(lace_source_read(&source, sizeof source, fill, NULL), 0);
	CHECK_EQ(lace_tcp_sendfile_start(a.net, client, &source, 0, 1, NULL, NULL, NULL), LACE_EBUSY);
}

static void cancel_inside(void)
{
	if (++inside_calls == 20)
		CHECK_EQ(lace_op_cancel(a.net, running), 0);
}

static void close_inside(void)
{
	if (++inside_calls == 20)
		CHECK_EQ(lace_tcp_close(a.net, client), 0);
}

static void stop_inside(void)
{
	if (++inside_calls == 20)
		CHECK(lace_stack_stop(a.net) <= 0);
}

static void calls_back(void)
{
	uint8_t *got = (uint8_t *)malloc(LENGTH + 1);
	unsigned kind, i;
	uint32_t len;
	int64_t rc;

	CHECK(got);
	for (kind = READ; kind < KINDS; kind++) {
		len = inside_calls = 0;
		up(setup_gather);
		file.inside = call_all;
		running = start(kind, 0, LENGTH);
		CHECK_EQ(finish(running, got, &len, LENGTH + 1), LENGTH);
		CHECK(inside_calls > 50 && !memcmp(got, file.bytes, LENGTH));
		down();

		len = inside_calls = 0;
		up(setup_gather);
		file.inside = cancel_inside;
		running = start(kind, 0, LENGTH);
		CHECK_EQ(finish(running, got, &len, LENGTH + 1), LACE_ECANCELED);
		CHECK(len < LENGTH && !memcmp(got, file.bytes, len));
		down();

		len = inside_calls = 0;
		up(setup_gather);
		file.inside = close_inside;
		running = start(kind, 0, LENGTH);
		CHECK_EQ(finish(running, got, &len, LENGTH + 1), LENGTH);
		CHECK(len == LENGTH && !memcmp(got, file.bytes, LENGTH));
		CHECK_EQ(lace_tcp_recv(b.net, server, got, 1), 0);
		down();

		inside_calls = 0;
		up(setup_gather);
		file.inside = stop_inside;
		running = start(kind, 0, LENGTH);
		rc = 0;
		for (i = 0; i < 1000 && rc >= 0; i++) {
			rc = lace_poll(a.net, 16);
			CHECK(lace_poll(b.net, 16) >= 0);
			while (lace_tcp_recv(b.net, server, got, LENGTH) > 0)
				;
			wire_forget(&a);
			wire_forget(&b);
			a.now += 1000;
			b.now += 1000;
		}
		CHECK_EQ(rc, LACE_EBADF); /* It is stopped, and nothing of the file is out. */
		down();
	}
	free(got);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "hostile_copied", hostile_copied }, { "hostile_gathered", hostile_gathered }, { "hostile_late", hostile_late },
		{ "in_a_row", in_a_row }, { "bad_files", bad_files }, { "calls_back", calls_back },
	};

	return wire_main(tests, sizeof tests / sizeof *tests, argc, argv);
}
