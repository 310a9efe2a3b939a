/*
 * From inside every kind of callback, every call of TCP, HTTP, NFS and files: leaf callbacks get LACE_EBUSY from whatever
 * takes the stack, but may close and stop; upcalls may do everything that does not block. Two stacks on one cable.
 */
#include "wire.h"

/* Further callbacks, behind those of the wire. */
enum { IN_READ = WHERES, IN_MAP, IN_UNMAP, IN_SINK, IN_HANDLER, PLACES };

static struct wire a, b;
static const struct lace_ip a_ip = { LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 9 } };
static const struct lace_ip b_ip = { LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 8 } };
static uint8_t data[20000], got[20000], ahead[1024];
static int target;
static unsigned acted, lent;
static void (*act)(int leaf);
static lace_listener ours, theirs;
static lace_tcp client, server[3];
static lace_op sending, fetching;
static lace_file file;

static void at(int where)
{
	static unsigned depth;

	if (where != target || !act || depth)
		return;
	depth++;
	act(where <= IN_WRITE || (where >= IN_READ && where <= IN_SINK));
	depth--;
}

static void inside(struct wire *w, enum where where)
{
	if (w == &a)
		at(where);
}

static int64_t fill(void *ctx, uint64_t offset, void *buffer, uint32_t len)
{
	(void)ctx;
	at(IN_READ);
	memcpy(buffer, data + offset, len);
	return len;
}

static int64_t map(void *ctx, uint64_t offset, uint32_t len, const void **page)
{
	(void)ctx;
	at(IN_MAP);
	lent++;
	*page = data + offset;
	return len < 4096 ? len : 4096;
}

static void unmap(void *ctx, uint64_t offset, const void *page, uint32_t len)
{
	(void)ctx, (void)len;
	CHECK(page == data + offset && lent);
	lent--;
	at(IN_UNMAP);
}

static int64_t take(void *ctx, uint64_t offset, const void *bytes, uint32_t len)
{
	(void)ctx;
	CHECK(!memcmp(bytes, data + offset, len));
	at(IN_SINK);
	return len;
}

static void handler(void *ctx, int32_t handle, uint32_t events)
{
	CHECK(ctx == &a && handle > 0 && events);
	at(IN_HANDLER);
}

static void cross(struct wire *w, const uint8_t *frame, uint32_t len)
{
	wire_put(w == &a ? &b : &a, frame, len);
}

static void setup(struct wire *w)
{
	CHECK_EQ(lace_config_full(&w->config, sizeof w->config), 0);
	w->config.operations = 8;
	w->other_end = cross;
	if (w == &b)
		w->driver.mac[5] = 8;
	else if (target == IN_PUMP)
		wire_push_only(w);
}

/* b answers what it is asked, once per connection; a is polled with the blocking call, so that every callback is called. */
static int run(unsigned passes)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n";
	struct lace_source source;
	unsigned i;
	int alive = 1;

	CHECK_EQ(lace_source_memory(&source, sizeof source, data, sizeof data), 0);
	while (passes-- && alive) {
		alive = lace_poll(a.net, 16) >= 0;
		CHECK(lace_poll(b.net, 16) >= 0);
		for (i = 0; i < 3; i++) {
			static uint8_t in[4096];

			if (server[i] <= 0) {
				server[i] = lace_tcp_accept(b.net, theirs);
				continue;
			}
			while (lace_tcp_recv(b.net, server[i], in, sizeof in) > 0)
				if (!memcmp(in, "GET ", 4)) {
					CHECK(lace_tcp_send(b.net, server[i], head, sizeof head - 1) > 0);
					CHECK(lace_tcp_sendfile_start(b.net, server[i], &source, 0, 20000, NULL, NULL, NULL) > 0);
				}
		}
		a.now += 100;
		b.now += 100;
	}
	return alive;
}

static void set_up(void (*what)(int))
{
	struct lace_peer peer;
	struct lace_source source;
	struct lace_sink sink;
	struct lace_http http;
	lace_op op;

	act = NULL;
	acted = lent = 0;
	memset(server, 0, sizeof server);
	wire_bare(&a, setup);
	wire_bare(&b, setup);
	CHECK_EQ(lace_addr_add(a.net, a.nic, &a_ip, 24), 0);
	CHECK_EQ(lace_addr_add(b.net, b.nic, &b_ip, 24), 0);
	CHECK((theirs = lace_tcp_listen(b.net, NULL, 80, 3, NULL)) > 0);
	CHECK((ours = lace_tcp_listen(a.net, NULL, 80, 3, NULL)) > 0);
	memset(&peer, 0, sizeof peer);
	peer.ip = b_ip;
	peer.port = 80;
	op = lace_tcp_connect_start(a.net, &peer, NULL, NULL, NULL);
	run(30);
	CHECK((client = (lace_tcp)lace_op_status(a.net, op)) > 0);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	CHECK_EQ(lace_tcp_notify(a.net, client, handler, &a), 0);
	a.inside = inside;
	/* A file is sent, one is fetched, and one is open. */
	if (target == IN_READ)
		CHECK_EQ(lace_source_read(&source, sizeof source, fill, NULL), 0);
	else
		CHECK_EQ(lace_source_map(&source, sizeof source, map, unmap, NULL), 0);
	CHECK_EQ(lace_sink_write(&sink, sizeof sink, take, NULL), 0);
	CHECK_EQ(lace_http_init(&http, sizeof http), 0);
	http.url = "http://10.0.0.8/x";
	http.progress = wire_progress;
	http.done = wire_done;
	http.ctx = &a;
	sending = lace_tcp_sendfile_start(a.net, client, &source, 0, sizeof data, wire_progress, wire_done, &a);
	fetching = lace_http_get_start(a.net, &http, &sink);
	file = lace_http_open_start(a.net, &http);
	CHECK(sending > 0 && fetching > 0 && file > 0);
	act = what;
}

/* Until everything has come, or has gone. */
static int drive(void)
{
	unsigned i;

	for (i = 0; i < 40; i++) {
		/* This calls host.poll and host.idle. */
		a.poll_result = 1;
		a.poll_after = a.polls + 3;
		lace_tcp_wait(a.net, client, LACE_TCP_FINISHED);
		a.poll_result = 0;
		if (!run(20) || lace_poll(a.net, 1) < 0)
			return 0;
		lace_file_read_start(a.net, file, got, 500);
	}
	/* The link is looked at now and then. */
	a.now += 600000;
	lace_poll(a.net, 1);
	return lace_poll(a.net, 1) >= 0;
}

static void every_call_one(int leaf)
{
	struct lace_peer peer;
	struct lace_source source;
	struct lace_sink sink;
	struct lace_http http;
	struct lace_tftp_get get;
	struct lace_tftp_put put;
	struct lace_nfs nfs;
	struct lace_tcp_info info;
	char text[32];
	uint8_t room[16];
	lace_op op;

	if (acted++ >= 20)
		return;
	memset(&peer, 0, sizeof peer);
	peer.ip = b_ip;
	peer.port = 81;
	CHECK_EQ(lace_source_memory(&source, sizeof source, data, 1), 0);
	CHECK_EQ(lace_sink_discard(&sink, sizeof sink), 0);
	CHECK_EQ(lace_http_init(&http, sizeof http), 0);
	http.url = "http://10.0.0.8:81/";
	CHECK_EQ(lace_tftp_get_init(&get, sizeof get), 0);
	CHECK_EQ(lace_tftp_put_init(&put, sizeof put), 0);
	get.server.ip = put.server.ip = b_ip;
	get.path = put.path = "x";
	CHECK_EQ(lace_nfs_init(&nfs, sizeof nfs), 0);
	nfs.server.ip = b_ip;
	nfs.path = "/x";
	CHECK_EQ(lace_tcp_info_init(&info, sizeof info), 0);
	/* None of these blocks inside. */
	CHECK_EQ(lace_tcp_wait(a.net, client, 1), LACE_EBUSY);
	CHECK_EQ(lace_file_wait(a.net, file), LACE_EBUSY);
	CHECK_EQ(lace_op_wait(a.net, fetching), LACE_EBUSY);
#define NOT_LEAF(call) do { long long r_ = (long long)(call); CHECK(leaf ? r_ == LACE_EBUSY : r_ != LACE_EBUSY); } while (0)
#define STARTS(call) do { op = (call); CHECK(leaf ? op == LACE_EBUSY : op > 0); if (op > 0) CHECK_EQ(lace_op_close(a.net, op), 0); } while (0)
	STARTS(lace_tcp_connect_start(a.net, &peer, NULL, NULL, NULL));
	STARTS(lace_tcp_sendfile_start(a.net, client, &source, 0, 1, NULL, NULL, NULL));
	STARTS(lace_http_get_start(a.net, &http, &sink));
	STARTS(lace_http_head_start(a.net, &http));
	STARTS(lace_http_open_start(a.net, &http));
	STARTS(lace_file_open_start(a.net, &get, ahead, sizeof ahead));
	STARTS(lace_tftp_put_start(a.net, &put, &source));
	STARTS(lace_nfs_mount_start(a.net, &nfs));
	STARTS(lace_nfs_unmount_start(a.net, &nfs));
	STARTS(lace_nfs_exports_start(a.net, &nfs, &sink));
	NOT_LEAF(lace_tcp_listen(a.net, NULL, 80, 1, NULL));
	NOT_LEAF(lace_tcp_accept(a.net, ours));
	NOT_LEAF(lace_tcp_notify(a.net, ours, handler, &a));
	NOT_LEAF(lace_tcp_status(a.net, client));
	NOT_LEAF(lace_tcp_error(a.net, client));
	NOT_LEAF(lace_tcp_recv(a.net, client, room, sizeof room));
	NOT_LEAF(lace_tcp_peek(a.net, client, room, sizeof room));
	NOT_LEAF(lace_tcp_region(a.net, client));
	NOT_LEAF(lace_tcp_recv_ring(a.net, client, 1));
	NOT_LEAF(lace_tcp_recv_into(a.net, client, room, sizeof room));
	NOT_LEAF(lace_tcp_region_finish(a.net, client));
	NOT_LEAF(lace_tcp_send(a.net, client, "", 1));
	NOT_LEAF(lace_tcp_set(a.net, client, LACE_TCP_NO_DELAY, 1));
	NOT_LEAF(lace_tcp_info_get(a.net, client, &info));
	NOT_LEAF(lace_http_status(a.net, fetching));
	NOT_LEAF(lace_http_field(a.net, fetching, "ETag", text, sizeof text));
	NOT_LEAF(lace_http_validator(a.net, fetching, text, sizeof text));
	NOT_LEAF(lace_file_read_start(a.net, file, got, 100));
	NOT_LEAF(lace_file_status(a.net, file));
	NOT_LEAF(lace_file_seek(a.net, file, 0));
	NOT_LEAF(lace_file_position(a.net, file));
	NOT_LEAF(lace_file_size(a.net, file));
}

static void closing_one(int leaf)
{
	int again = leaf ? 0 : LACE_EBADF;
	unsigned i;

	if (acted++)
		return;
	for (i = 0; i < 2; i++) {
		CHECK_EQ(lace_tcp_abort(a.net, client), i ? again : 0);
		CHECK_EQ(lace_tcp_close(a.net, client), again);
		CHECK_EQ(lace_tcp_unlisten(a.net, ours), i ? again : 0);
		CHECK_EQ(lace_op_close(a.net, sending), i ? again : 0);
		CHECK_EQ(lace_op_close(a.net, fetching), i ? again : 0);
		CHECK_EQ(lace_op_close(a.net, file), i ? again : 0);
	}
}

static void stopping_one(int leaf)
{
	(void)leaf;
	if (!acted++)
		CHECK_EQ(lace_stack_stop(a.net), 0);
}

static void tear_down(void)
{
	act = NULL;
	a.inside = NULL;
	a.inside_deepest = 0;
	/* Both, before what they say last is thrown away. */
	CHECK(lace_stack_stop(a.net) == 0 && lace_stack_stop(b.net) == 0);
	wire_down(&a);
	wire_down(&b);
	CHECK_EQ(lent, 0);
}

/* Once for each kind of callback that these make: no random numbers, hooks, datagrams or leases are. */
static void each(void (*what)(int), int stops)
{
	lace_op ops[5];
	unsigned i;

	for (target = 0; target < PLACES; target++) {
		if (target == IN_RANDOM || target == IN_LOG || target == IN_FILTER || target == IN_WRITE || target == IN_DATAGRAM
		    || target == IN_HOOK || target == IN_LOST)
			continue;
		if (getenv("WIRE_TRACE"))
			fprintf(stderr, "in %d\n", target);
		set_up(what);
		CHECK_EQ(drive(), !stops);
		CHECK(acted);
		if (!stops) {
			/* Nothing is left behind. */
			act = NULL;
			lace_op_close(a.net, sending);
			lace_op_close(a.net, fetching);
			lace_op_close(a.net, file);
			lace_tcp_abort(a.net, client);
			for (i = 0; i < 3; i++)
				lace_tcp_abort(b.net, server[i]);
			run(20);
			a.now += 10000000;
			run(20);
			for (i = 0; i < 4; i++) {
				struct lace_peer peer;

				memset(&peer, 0, sizeof peer);
				peer.ip = b_ip;
				peer.port = 82;
				CHECK((ops[i] = lace_tcp_connect_start(a.net, &peer, NULL, NULL, NULL)) > 0);
				CHECK_EQ(lace_op_status(a.net, ops[i]), LACE_EAGAIN);
			}
		}
		tear_down();
	}
}

static void every_call(void)
{
	each(every_call_one, 0);
}

static void closing(void)
{
	each(closing_one, 0);
}

static void stopping(void)
{
	each(stopping_one, 1);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "every_call", every_call }, { "closing", closing }, { "stopping", stopping },
	};
	unsigned i;

	for (i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	return wire_main(tests, sizeof tests / sizeof *tests, argc, argv);
}
