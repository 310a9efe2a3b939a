/* TCP through the C interface: two stacks on one cable. */
#include "wire.h"

static struct wire a, b;
static const struct lace_ip a_ip = { LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 9 } };
static const struct lace_ip b_ip = { LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 8 } };

static void cross(struct wire *w, const uint8_t *frame, uint32_t len)
{
	struct wire *other = w == &a ? &b : &a;

	if (w->silent || other->silent)
		return;
	wire_put(other, frame, len);
}

static void setup(struct wire *w)
{
	w->config.tcp_connections = 3;
	w->config.tcp_listeners = 2;
	w->config.tcp_pages = 4;
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

static void report_sent(struct wire *w, enum where where)
{
	if (where == IN_PUMP)
		while (w->token_count)
			CHECK_EQ(lace_nic_tx_done(w->net, w->nic, w->tokens[--w->token_count]), 0);
}

static void setup_async(struct wire *w)
{
	setup(w);
	wire_push_only(w);
	w->driver.tx_buffer = NULL;
	w->driver.caps = LACE_NIC_GATHER | LACE_NIC_ASYNC;
	w->config.tx_frames = 8;
	w->inside = report_sent;
}

/* Both stacks run until nothing moves. */
static void run(unsigned passes)
{
	while (passes--) {
		CHECK(lace_poll(a.net, 16) >= 0);
		CHECK(lace_poll(b.net, 16) >= 0);
		a.now += 100;
		b.now += 100;
	}
}

static void up(void (*how)(struct wire *))
{
	wire_bare(&a, how);
	wire_bare(&b, how);
	CHECK_EQ(lace_addr_add(a.net, a.nic, &a_ip, 24), 0);
	CHECK_EQ(lace_addr_add(b.net, b.nic, &b_ip, 24), 0);
}

static void down(void)
{
	struct wire *w;
	int rc;

	for (w = &a; w; w = w == &a ? &b : NULL) {
		w->inside = NULL;
		/* The last words of an asynchronous card's connections hold it up. */
		rc = lace_stack_stop(w->net);
		CHECK(rc == (w->token_count ? LACE_EAGAIN : 0));
		if (rc)
			CHECK_EQ(lace_nic_reset(w->net, w->nic), 0);
		wire_down(w);
	}
}

static lace_tcp client, server;
static lace_listener listener;

static void connected(void)
{
	struct lace_peer peer;
	lace_op op;

	memset(&peer, 0, sizeof peer);
	peer.name = "10.0.0.8";
	peer.port = 80;
	listener = lace_tcp_listen(b.net, NULL, 80, 2, NULL);
	CHECK(listener > 0);
	CHECK_EQ(lace_tcp_listen(b.net, NULL, 80, 2, NULL), LACE_EADDRINUSE);
	CHECK_EQ(lace_tcp_accept(b.net, listener), LACE_EAGAIN);
	op = lace_tcp_connect_start(a.net, &peer, NULL, wire_done, &a);
	CHECK(op > 0);
	CHECK_EQ(lace_op_status(a.net, op), LACE_EAGAIN);
	run(20);
	client = (lace_tcp)lace_op_status(a.net, op);
	CHECK(client > 0);
	CHECK(a.done_count == 1 && a.done_result == client);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	server = lace_tcp_accept(b.net, listener);
	CHECK(server > 0);
	CHECK(lace_tcp_status(a.net, client) & LACE_TCP_CONNECTED);
	CHECK_EQ(lace_tcp_error(a.net, client), 0);
}

static void exchange(void)
{
	char text[32];
	struct lace_tcp_info info;

	up(setup);
	connected();
	CHECK_EQ(lace_tcp_recv(b.net, server, text, sizeof text), LACE_EAGAIN);
	CHECK_EQ(lace_tcp_send(a.net, client, "hello", 5), 5);
	CHECK_EQ(lace_tcp_send(a.net, client, NULL, 5), LACE_EFAULT);
	CHECK_EQ(lace_tcp_send(a.net, client, a.memory, 5), LACE_EFAULT);
	run(10);
	CHECK(lace_tcp_status(b.net, server) & LACE_TCP_READABLE);
	CHECK_EQ(lace_tcp_peek(b.net, server, text, 3), 3);
	CHECK_EQ(lace_tcp_recv(b.net, server, NULL, 3), LACE_EFAULT);
	CHECK_EQ(lace_tcp_recv(b.net, server, text, sizeof text), 5);
	CHECK(!memcmp(text, "hello", 5));
	CHECK_EQ(lace_tcp_info_init(&info, sizeof info), 0);
	CHECK_EQ(lace_tcp_info_get(a.net, client, &info), 0);
	CHECK(info.state == 3 && info.bytes_sent == 5 && info.remote_port == 80 && info.remote.bytes[3] == 8);
	CHECK_EQ(lace_tcp_set(a.net, client, LACE_TCP_NO_DELAY, 2), LACE_EINVAL);
	CHECK_EQ(lace_tcp_set(a.net, client, LACE_TCP_NO_DELAY, 1), 0);
	CHECK_EQ(lace_tcp_set(a.net, client, 99, 1), LACE_EOPNOTSUPP);
	/* Half close. */
	CHECK_EQ(lace_tcp_shutdown(a.net, client), 0);
	CHECK_EQ(lace_tcp_send(a.net, client, "x", 1), LACE_ENOTCONN);
	run(10);
	CHECK_EQ(lace_tcp_recv(b.net, server, text, sizeof text), 0);
	CHECK_EQ(lace_tcp_send(b.net, server, "bye", 3), 3);
	CHECK_EQ(lace_tcp_close(b.net, server), 0);
	CHECK_EQ(lace_tcp_close(b.net, server), LACE_EBADF);
	CHECK_EQ(lace_tcp_status(b.net, server), LACE_EBADF);
	run(10);
	CHECK_EQ(lace_tcp_recv(a.net, client, text, sizeof text), 3);
	CHECK_EQ(lace_tcp_recv(a.net, client, text, sizeof text), 0);
	CHECK_EQ(lace_tcp_close(a.net, client), 0);
	CHECK_EQ(lace_udp_close(a.net, client), LACE_EBADF);
	down();
}

/* Nobody listens; nobody is there; too many. */
static void refusals(void)
{
	struct lace_peer peer;
	lace_op op, more[4];
	unsigned i;

	up(setup);
	memset(&peer, 0, sizeof peer);
	peer.ip = b_ip;
	CHECK_EQ(lace_tcp_connect_start(a.net, &peer, NULL, NULL, NULL), LACE_EINVAL);
	CHECK_EQ(lace_tcp_connect_start(a.net, NULL, NULL, NULL, NULL), LACE_EFAULT);
	peer.port = 81;
	op = lace_tcp_connect_start(a.net, &peer, NULL, NULL, NULL);
	run(20);
	CHECK_EQ(lace_op_status(a.net, op), LACE_ECONNREFUSED);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	peer.ip.bytes[3] = 77;
	op = lace_tcp_connect_start(a.net, &peer, NULL, NULL, NULL);
	for (i = 0; i < 400 && lace_op_status(a.net, op) == LACE_EAGAIN; i++) {
		a.now += 1000000;
		run(2);
	}
	CHECK(lace_op_status(a.net, op) == LACE_EHOSTUNREACH || lace_op_status(a.net, op) == LACE_ETIMEDOUT);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	b.silent = 1;
	peer.ip = b_ip;
	for (i = 0; i < 4; i++)
		more[i] = lace_tcp_connect_start(a.net, &peer, NULL, NULL, NULL);
	run(2);
	CHECK_EQ(lace_op_status(a.net, more[2]), LACE_EAGAIN);
	CHECK_EQ(lace_op_status(a.net, more[3]), LACE_EMFILE);
	/* A connection that is being opened ends with its operation. */
	for (i = 0; i < 4; i++)
		CHECK_EQ(lace_op_close(a.net, more[i]), 0);
	b.silent = 0;
	run(10);
	connected();
	down();
}

/* A header through the ring, the body in memory, what follows through the ring again. */
static void regions(void)
{
	enum { BODY = 60000 };
	uint8_t *body = wire_file(BODY), *to = (uint8_t *)malloc(BODY), text[16];
	uint32_t sent = 0;
	unsigned i;

	CHECK(to);
	up(setup);
	connected();
	CHECK_EQ(lace_tcp_region(b.net, server), LACE_EAGAIN);
	CHECK_EQ(lace_tcp_recv_ring(b.net, server, 6), 0);
	CHECK_EQ(lace_tcp_recv_into(b.net, server, to, 0), LACE_EINVAL);
	CHECK_EQ(lace_tcp_recv_into(b.net, server, NULL, 10), LACE_EFAULT);
	CHECK_EQ(lace_tcp_recv_into(b.net, server, b.memory, 10), LACE_EFAULT);
	CHECK_EQ(lace_tcp_recv_into(b.net, server, to, BODY), 0);
	CHECK_EQ(lace_tcp_send(a.net, client, "header", 6), 6);
	for (i = 0; i < 2000 && sent < BODY; i++) {
		int64_t n = lace_tcp_send(a.net, client, body + sent, BODY - sent);

		CHECK(n > 0 || n == LACE_EAGAIN);
		if (n > 0)
			sent += (uint32_t)n;
		run(4);
	}
	CHECK_EQ(lace_tcp_send(a.net, client, "trailer", 7), 7);
	/* Longer than a delayed acknowledgement. */
	run(1000);
	CHECK_EQ(lace_tcp_recv(b.net, server, text, sizeof text), 6);
	CHECK(!memcmp(text, "header", 6));
	CHECK(lace_tcp_status(b.net, server) & LACE_TCP_REGION);
	CHECK_EQ(lace_tcp_recv(b.net, server, text, sizeof text), LACE_EAGAIN);
	CHECK_EQ(lace_tcp_region(b.net, server), BODY);
	CHECK_EQ(lace_tcp_region_finish(b.net, server), BODY);
	CHECK(!memcmp(to, body, BODY));
	CHECK_EQ(lace_tcp_recv(b.net, server, text, sizeof text), 7);
	free(to);
	free(body);
	down();
}

/* Sending a file from every kind of source. */
struct pages {
	const uint8_t *file;
	uint32_t len, lent, most, fail_at;
};

static int64_t fill(void *ctx, uint64_t offset, void *buffer, uint32_t len)
{
	struct pages *p = (struct pages *)ctx;

	if (p->fail_at && offset + len > p->fail_at)
		return offset < p->fail_at ? (int64_t)(memcpy(buffer, p->file + offset, p->fail_at - offset), p->fail_at - offset) : -77;
	if (offset >= p->len)
		return 0;
	if (len > p->len - offset)
		len = (uint32_t)(p->len - offset);
	memcpy(buffer, p->file + offset, len);
	return len;
}

static int64_t map(void *ctx, uint64_t offset, uint32_t len, const void **page)
{
	struct pages *p = (struct pages *)ctx;

	if (offset >= p->len)
		return 0;
	if (len > p->len - offset)
		len = (uint32_t)(p->len - offset);
	if (len > 4096 - offset % 4096)
		len = (uint32_t)(4096 - offset % 4096);
	*page = p->file + offset;
	if (++p->lent > p->most)
		p->most = p->lent;
	return len;
}

static void unmap(void *ctx, uint64_t offset, const void *page, uint32_t len)
{
	struct pages *p = (struct pages *)ctx;

	CHECK((const uint8_t *)page == p->file + offset && len > 0 && len <= 4096);
	CHECK(p->lent > 0);
	p->lent--;
}

static void take_all(lace_op op, const uint8_t *file, uint32_t want)
{
	uint8_t *got = (uint8_t *)malloc(want + 1);
	uint32_t at = 0;
	unsigned i;

	CHECK(got);
	for (i = 0; i < 20000 && (at < want || lace_op_status(a.net, op) == LACE_EAGAIN); i++) {
		int64_t n = lace_tcp_recv(b.net, server, got + at, want + 1 - at);

		CHECK(n > 0 || n == LACE_EAGAIN);
		if (n > 0)
			at += (uint32_t)n;
		run(1);
	}
	CHECK_EQ(at, want);
	CHECK(!memcmp(got, file, want));
	free(got);
}

static void send_files(void (*how)(struct wire *))
{
	enum { LENGTH = 100000 };
	uint8_t *file = wire_file(LENGTH);
	struct pages pages = { file, LENGTH, 0, 0, 0 };
	struct lace_source source;
	uint64_t done, total;
	unsigned kind;
	lace_op op;

	up(how);
	connected();
	for (kind = 0; kind < 3; kind++) {
		if (kind == 0)
			CHECK_EQ(lace_source_memory(&source, sizeof source, file, LENGTH), 0);
		if (kind == 1)
			CHECK_EQ(lace_source_read(&source, sizeof source, fill, &pages), 0);
		if (kind == 2)
			CHECK_EQ(lace_source_map(&source, sizeof source, map, unmap, &pages), 0);
		op = lace_tcp_sendfile_start(a.net, client, &source, 1000, LENGTH - 1000, wire_progress, wire_done, &a);
		CHECK(op > 0);
		take_all(op, file + 1000, LENGTH - 1000);
		CHECK_EQ(lace_op_status(a.net, op), LENGTH - 1000);
		CHECK_EQ(lace_op_progress(a.net, op, &done, &total), 0);
		CHECK(done == LENGTH - 1000 && total == done);
		CHECK_EQ(lace_op_close(a.net, op), 0);
		CHECK_EQ(pages.lent, 0);
	}
	CHECK(pages.most > 0 && pages.most <= 4);
	/* A file that is shorter than its count, and one whose source fails. */
	CHECK_EQ(lace_source_read(&source, sizeof source, fill, &pages), 0);
	op = lace_tcp_sendfile_start(a.net, client, &source, LENGTH - 500, 1000, NULL, NULL, NULL);
	take_all(op, file + LENGTH - 500, 500);
	CHECK_EQ(lace_op_status(a.net, op), LACE_ENODATA);
	CHECK_EQ(lace_op_progress(a.net, op, &done, NULL), 0);
	CHECK_EQ(done, 500);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	pages.fail_at = 3000;
	op = lace_tcp_sendfile_start(a.net, client, &source, 0, 10000, NULL, NULL, NULL);
	take_all(op, file, 3000);
	CHECK_EQ(lace_op_status(a.net, op), -77);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	/* Arguments. */
	CHECK_EQ(lace_tcp_sendfile_start(a.net, client, NULL, 0, 1, NULL, NULL, NULL), LACE_EFAULT);
	CHECK_EQ(lace_tcp_sendfile_start(a.net, listener, &source, 0, 1, NULL, NULL, NULL), LACE_EBADF);
	CHECK_EQ(lace_source_memory(&source, sizeof source, NULL, 1), LACE_EFAULT);
	CHECK_EQ(lace_source_read(&source, sizeof source, NULL, NULL), LACE_EFAULT);
	CHECK_EQ(lace_source_map(&source, 3, map, unmap, NULL), LACE_EINVAL);
	/* A file that is cancelled while the peer is deaf: its pages come back. */
	pages.fail_at = 0;
	CHECK_EQ(lace_source_map(&source, sizeof source, map, unmap, &pages), 0);
	b.silent = 1;
	op = lace_tcp_sendfile_start(a.net, client, &source, 0, LENGTH, NULL, NULL, NULL);
	run(10);
	CHECK_EQ(lace_op_cancel(a.net, op), 0);
	CHECK_EQ(lace_op_status(a.net, op), LACE_ECANCELED);
	run(2);
	CHECK_EQ(pages.lent, 0);
	b.silent = 0;
	free(file);
	down();
}

static void files_copied(void)
{
	send_files(setup);
}

static void files_gathered(void)
{
	send_files(setup_gather);
}

static void files_async(void)
{
	send_files(setup_async);
}

/* Handlers do the work: an echo server that lives in its upcalls. */
static unsigned echo_events;

static void echo(void *ctx, int32_t handle, uint32_t events)
{
	struct wire *w = (struct wire *)ctx;
	uint8_t text[64];
	int64_t n;

	if (events & LACE_TCP_ACCEPT) {
		lace_tcp c = lace_tcp_accept(w->net, handle);

		CHECK(c > 0);
		CHECK_EQ(lace_tcp_notify(w->net, c, echo, ctx), 0);
		return;
	}
	echo_events |= events;
	CHECK_EQ(lace_poll(w->net, 1), LACE_EBUSY);
	while ((n = lace_tcp_recv(w->net, handle, text, sizeof text)) > 0)
		CHECK_EQ(lace_tcp_send(w->net, handle, text, (size_t)n), n);
	if (n == 0)
		CHECK_EQ(lace_tcp_close(w->net, handle), 0);
}

static void handlers(void)
{
	struct lace_peer peer;
	char text[16];
	lace_op op;

	up(setup);
	memset(&peer, 0, sizeof peer);
	peer.ip = b_ip;
	peer.port = 7;
	listener = lace_tcp_listen(b.net, &b_ip, 7, 1, NULL);
	CHECK_EQ(lace_tcp_notify(b.net, listener, echo, &b), 0);
	CHECK_EQ(lace_tcp_notify(b.net, b.nic, echo, &b), LACE_EBADF);
	op = lace_tcp_connect_start(a.net, &peer, NULL, NULL, NULL);
	run(20);
	client = (lace_tcp)lace_op_status(a.net, op);
	CHECK(client > 0);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	CHECK_EQ(lace_tcp_send(a.net, client, "echo?", 5), 5);
	run(20);
	CHECK_EQ(lace_tcp_recv(a.net, client, text, sizeof text), 5);
	CHECK(!memcmp(text, "echo?", 5));
	CHECK_EQ(lace_tcp_shutdown(a.net, client), 0);
	run(20);
	CHECK_EQ(lace_tcp_recv(a.net, client, text, sizeof text), 0);
	CHECK(echo_events & LACE_TCP_READABLE && echo_events & LACE_TCP_FINISHED);
	CHECK_EQ(lace_tcp_close(a.net, client), 0);
	/* A reset. */
	connected();
	CHECK_EQ(lace_tcp_abort(b.net, server), 0);
	CHECK_EQ(lace_tcp_abort(b.net, server), LACE_EBADF);
	run(10);
	CHECK_EQ(lace_tcp_recv(a.net, client, text, sizeof text), LACE_ECONNRESET);
	CHECK_EQ(lace_tcp_error(a.net, client), LACE_ECONNRESET);
	CHECK_EQ(lace_tcp_wait(a.net, client, LACE_TCP_READABLE) & LACE_TCP_CLOSED, LACE_TCP_CLOSED);
	CHECK_EQ(lace_tcp_close(a.net, client), 0);
	CHECK_EQ(lace_tcp_unlisten(b.net, listener), 0);
	CHECK_EQ(lace_tcp_unlisten(b.net, listener), LACE_EBADF);
	down();
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "exchange", exchange }, { "refusals", refusals }, { "regions", regions }, { "files_copied", files_copied },
		{ "files_gathered", files_gathered }, { "files_async", files_async }, { "handlers", handlers },
	};

	return wire_main(tests, sizeof tests / sizeof *tests, argc, argv);
}
