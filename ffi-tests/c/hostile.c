/* What careless hosts do, on two stacks on one cable. */
#include "wire.h"

static struct wire a, b;
static const struct lace_ip a_ip = { LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 9 } };
static const struct lace_ip b_ip = { LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 8 } };
static lace_listener listener;

static void cross(struct wire *w, const uint8_t *frame, uint32_t len)
{
	struct wire *other = w == &a ? &b : &a;

	if (!w->silent && !other->silent)
		wire_put(other, frame, len);
}

static void setup(struct wire *w)
{
	w->config.tcp_connections = 3;
	w->config.tcp_listeners = 1;
	w->config.tcp_pages = 4;
	w->config.operations = 4;
	w->config.http_jobs = 2;
	w->other_end = cross;
	if (w == &b)
		w->driver.mac[5] = 8;
}

static void setup_all(struct wire *w)
{
	CHECK_EQ(lace_config_full(&w->config, sizeof w->config), 0);
	w->config.operations = 9;
	w->other_end = cross;
}

static void run(unsigned passes)
{
	while (passes--) {
		CHECK(lace_poll(a.net, 16) >= 0);
		CHECK(lace_poll(b.net, 16) >= 0);
		a.now += 100;
		b.now += 100;
	}
}

static void up(void)
{
	wire_bare(&a, setup);
	wire_bare(&b, setup);
	CHECK_EQ(lace_addr_add(a.net, a.nic, &a_ip, 24), 0);
	CHECK_EQ(lace_addr_add(b.net, b.nic, &b_ip, 24), 0);
	listener = lace_tcp_listen(b.net, NULL, 80, 2, NULL);
	CHECK(listener > 0);
}

static void down(void)
{
	wire_down(&a);
	wire_down(&b);
}

static lace_op dial(lace_done done)
{
	struct lace_peer peer;
	lace_op op;

	memset(&peer, 0, sizeof peer);
	peer.ip = b_ip;
	peer.port = 80;
	op = lace_tcp_connect_start(a.net, &peer, NULL, done, &a);
	CHECK(op > 0);
	run(20);
	return op;
}

/* An operation that is kept names the connection that it opened, whatever has become of the connection's place. */
static void stale_connect(void)
{
	lace_op first, second;
	lace_tcp one, two;

	up();
	first = dial(NULL);
	one = (lace_tcp)lace_op_status(a.net, first);
	CHECK(one > 0);
	CHECK_EQ(lace_tcp_abort(a.net, one), 0);
	run(20);
	CHECK_EQ(lace_op_status(a.net, first), one);
	CHECK_EQ(lace_tcp_status(a.net, one), LACE_EBADF);
	second = dial(NULL);
	two = (lace_tcp)lace_op_status(a.net, second);
	CHECK(two > 0 && two != one);
	CHECK_EQ(lace_op_status(a.net, first), one);
	CHECK_EQ(lace_tcp_status(a.net, one), LACE_EBADF);
	CHECK(lace_tcp_status(a.net, two) & LACE_TCP_CONNECTED);
	CHECK_EQ(lace_op_close(a.net, first), 0);
	CHECK_EQ(lace_op_close(a.net, second), 0);
	CHECK(lace_tcp_status(a.net, two) & LACE_TCP_CONNECTED);
	CHECK_EQ(lace_tcp_close(a.net, two), 0);
	down();
}

/* A connection that nobody was told of ends with the operation that opened it. */
static void untold_connect(void)
{
	lace_tcp told;
	lace_op op;
	unsigned i;

	up();
	for (i = 0; i < 5; i++) {
		CHECK_EQ(lace_op_close(a.net, dial(NULL)), 0);
		run(20);
	}
	/* host.poll ends the wait in the pass in which the connection was opened. */
	op = dial(NULL);
	a.poll_result = 1;
	CHECK(lace_op_wait(a.net, op) > 0);
	a.poll_result = 0;
	CHECK_EQ(lace_op_close(a.net, op), 0);
	/* Told by the callback alone. */
	op = dial(wire_done);
	told = (lace_tcp)a.done_result;
	CHECK(a.done_count == 1 && told > 0);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	run(20);
	CHECK(lace_tcp_status(a.net, told) & LACE_TCP_CONNECTED);
	down();
}

/* Whoever asks to be told after the end is told. */
static void late_notify(void)
{
	lace_op op;

	up();
	op = dial(NULL);
	CHECK_EQ(lace_op_notify(a.net, op, NULL, wire_done, &a), 0);
	run(2);
	CHECK(a.done_count == 1 && a.done_result > 0);
	CHECK_EQ(lace_op_notify(a.net, op, NULL, wire_done, &a), 0);
	run(2);
	CHECK_EQ(a.done_count, 1);
	CHECK_EQ(lace_op_status(a.net, op), a.done_result);
	CHECK(lace_tcp_status(a.net, (lace_tcp)a.done_result) & LACE_TCP_CONNECTED);
	down();
}

static int64_t fill(void *ctx, uint64_t offset, void *buffer, uint32_t len)
{
	(void)ctx;
	if (offset >= 3000)
		return 0;
	len = len < 3000 - offset ? len : (uint32_t)(3000 - offset);
	memset(buffer, 'x', len);
	return len;
}

/* Counts that no stream has: of a file, and of bytes for the ring. */
static void endless(void)
{
	static uint8_t got[4096];
	struct lace_source source;
	lace_tcp client, server;
	lace_op op;

	up();
	op = dial(NULL);
	client = (lace_tcp)lace_op_status(a.net, op);
	CHECK(client > 0);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	server = lace_tcp_accept(b.net, listener);
	CHECK(server > 0);
	CHECK_EQ(lace_source_read(&source, sizeof source, fill, NULL), 0);
	for (uint64_t count = UINT64_MAX; count >= UINT64_MAX - 2; count--) {
		op = lace_tcp_sendfile_start(a.net, client, &source, 0, count, NULL, NULL, NULL);
		CHECK_EQ(lace_op_status(a.net, op), LACE_EINVAL);
		CHECK_EQ(lace_op_close(a.net, op), 0);
	}
	CHECK_EQ(lace_tcp_send(a.net, client, "hello", 5), 5);
	run(20);
	CHECK_EQ(lace_tcp_recv(b.net, server, got, sizeof got), 5);
	CHECK(!memcmp(got, "hello", 5));
	/* The most there can be ends where the file does. */
	op = lace_tcp_sendfile_start(a.net, client, &source, 0, (uint64_t)1 << 62, NULL, NULL, NULL);
	run(500);
	CHECK_EQ(lace_op_status(a.net, op), LACE_ENODATA);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	CHECK_EQ(lace_tcp_recv(b.net, server, got, sizeof got), 3000);
	CHECK_EQ(lace_tcp_recv_into(b.net, server, got, 100), 0);
	CHECK_EQ(lace_tcp_recv_ring(b.net, server, UINT64_MAX - 50), 0);
	CHECK_EQ(lace_tcp_recv_into(b.net, server, got + 200, 100), LACE_EINVAL);
	CHECK_EQ(lace_tcp_send(a.net, client, got + 1000, 150), 150);
	run(20);
	CHECK_EQ(lace_tcp_region_finish(b.net, server), 100);
	CHECK_EQ(lace_tcp_recv(b.net, server, got, sizeof got), 50);
	down();
}

/* Since the frames were forgotten, all of them were such as the NIC may send; how many carried TCP. */
static unsigned all_sent_from(uint8_t mac, uint32_t longest)
{
	unsigned i, n = 0;

	for (i = 0; i < a.sent_count; i++) {
		CHECK_EQ(a.sent[i][11], mac);
		CHECK(a.sent_len[i] <= longest);
		n += a.sent[i][13] == 0 && a.sent[i][23] == 6;
	}
	return n;
}

/* A NIC gives way to one with another address and shorter frames, under a connection. */
static void nic_replaced(void)
{
	static uint8_t data[2000], got[2000];
	lace_tcp client, server;
	size_t i;

	up();
	for (i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7);
	client = (lace_tcp)lace_op_status(a.net, dial(NULL));
	CHECK(client > 0);
	server = lace_tcp_accept(b.net, listener);
	CHECK(server > 0);
	CHECK_EQ(lace_nic_remove(a.net, a.nic), 0);
	a.driver.mac[5] = 0x77;
	a.driver.mtu = 600;
	a.nic = lace_nic_add(a.net, &a.driver);
	CHECK(a.nic > 0);
	CHECK_EQ(lace_addr_add(a.net, a.nic, &a_ip, 24), 0);
	wire_forget(&a);
	CHECK_EQ(lace_tcp_send(a.net, client, data, sizeof data), sizeof data);
	run(40000);
	CHECK(all_sent_from(0x77, 614) >= 4);
	CHECK_EQ(lace_tcp_recv(b.net, server, got, sizeof got), sizeof got);
	CHECK(!memcmp(got, data, sizeof got));
	/* Another address alone. */
	a.driver.mac[5] = 0x78;
	CHECK_EQ(lace_nic_set_mac(a.net, a.nic, a.driver.mac), 0);
	wire_forget(&a);
	CHECK_EQ(lace_tcp_send(a.net, client, data, 10), 10);
	run(2);
	CHECK(all_sent_from(0x78, 614) >= 1);
	down();
}

/* A connection that waits for the next HTTP operation does not outlive the stack at the server. */
static void waiting_http(void)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
	struct lace_http http;
	struct lace_sink sink;
	lace_tcp server;
	lace_op op;

	up();
	CHECK_EQ(lace_http_init(&http, sizeof http), 0);
	http.url = "http://10.0.0.8/";
	CHECK_EQ(lace_sink_discard(&sink, sizeof sink), 0);
	op = lace_http_get_start(a.net, &http, &sink);
	run(20);
	server = lace_tcp_accept(b.net, listener);
	CHECK(server > 0);
	CHECK_EQ(lace_tcp_send(b.net, server, answer, sizeof answer - 1), sizeof answer - 1);
	run(20);
	CHECK_EQ(lace_op_status(a.net, op), 2);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	run(20);
	CHECK(!(lace_tcp_status(b.net, server) & LACE_TCP_CLOSED));
	CHECK_EQ(lace_stack_stop(a.net), 0);
	CHECK(lace_poll(b.net, 16) > 0);
	CHECK(lace_tcp_status(b.net, server) & LACE_TCP_CLOSED);
	CHECK_EQ(lace_tcp_error(b.net, server), LACE_ECONNRESET);
	down();
}

/* A NIC that never has room again ends whatever wants to send, in time. */
static void stuck_nic(void)
{
	static uint8_t readahead[2048];
	struct lace_tftp_get get;
	struct lace_tftp_put put;
	struct lace_ping ping;
	struct lace_http http;
	struct lace_nfs nfs;
	struct lace_dns dns;
	struct lace_peer peer;
	struct lace_sink sink;
	struct lace_source source;
	lace_op ops[9];
	unsigned i, t;

	memset(&peer, 0, sizeof peer);
	peer.port = 80;
	CHECK_EQ(lace_ping_init(&ping, sizeof ping), 0);
	CHECK_EQ(lace_tftp_get_init(&get, sizeof get), 0);
	CHECK_EQ(lace_tftp_put_init(&put, sizeof put), 0);
	CHECK_EQ(lace_nfs_init(&nfs, sizeof nfs), 0);
	CHECK_EQ(lace_http_init(&http, sizeof http), 0);
	CHECK_EQ(lace_dns_init(&dns, sizeof dns), 0);
	CHECK_EQ(lace_sink_discard(&sink, sizeof sink), 0);
	CHECK_EQ(lace_source_memory(&source, sizeof source, readahead, sizeof readahead), 0);
	peer.ip = ping.peer.ip = get.server.ip = put.server.ip = nfs.server.ip = b_ip;
	get.path = put.path = nfs.path = "/x";
	http.url = "http://10.0.0.8/";
	dns.name = "a.example";
	up();
	wire_down(&a);
	wire_bare(&a, setup_all);
	CHECK_EQ(lace_addr_add(a.net, a.nic, &a_ip, 24), 0);
	CHECK_EQ(lace_dns_set(a.net, &b_ip, 1), 0);
	a.send_result = LACE_EAGAIN;
	ops[0] = lace_ping_start(a.net, &ping);
	ops[1] = lace_tftp_get_start(a.net, &get, &sink);
	ops[2] = lace_tftp_put_start(a.net, &put, &source);
	ops[3] = lace_file_open_start(a.net, &get, readahead, sizeof readahead);
	ops[4] = lace_http_get_start(a.net, &http, &sink);
	ops[5] = lace_nfs_mount_start(a.net, &nfs);
	ops[6] = lace_tcp_connect_start(a.net, &peer, NULL, NULL, NULL);
	ops[7] = lace_dns_start(a.net, &dns);
	ops[8] = lace_dhcp_start(a.net, a.nic, NULL, NULL);
	for (t = 0; t < 3000; t++) {
		CHECK(lace_poll(a.net, 8) >= 0);
		a.now += 100000;
	}
	for (i = 0; i < 9; i++) {
		CHECK(ops[i] > 0);
		CHECK_EQ(lace_op_status(a.net, ops[i]), LACE_ETIMEDOUT);
		CHECK_EQ(lace_op_close(a.net, ops[i]), 0);
	}
	down();
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "stale_connect", stale_connect }, { "untold_connect", untold_connect }, { "late_notify", late_notify },
		{ "endless", endless }, { "nic_replaced", nic_replaced },
		{ "waiting_http", waiting_http }, { "stuck_nic", stuck_nic },
	};

	return wire_main(tests, sizeof tests / sizeof *tests, argc, argv);
}
