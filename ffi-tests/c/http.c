/* HTTP through the C interface: two stacks on one cable, one of them a server of a few lines. */
#include "wire.h"

static struct wire a, b;
static const struct lace_ip a_ip = { LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 9 } };
static const struct lace_ip b_ip = { LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 8 } };
static lace_listener listener;
static lace_tcp server;
static uint8_t file[5000], got[5000 + 16];
static char asked[1024];
static size_t asked_len;

static void cross(struct wire *w, const uint8_t *frame, uint32_t len)
{
	wire_put(w == &a ? &b : &a, frame, len);
}

static void setup(struct wire *w)
{
	w->config.tcp_connections = 3;
	w->config.tcp_listeners = 1;
	w->config.operations = 4;
	w->config.http_jobs = 2;
	w->other_end = cross;
	if (w == &b)
		w->driver.mac[5] = 8;
}

static void up(void)
{
	wire_bare(&a, setup);
	wire_bare(&b, setup);
	CHECK_EQ(lace_addr_add(a.net, a.nic, &a_ip, 24), 0);
	CHECK_EQ(lace_addr_add(b.net, b.nic, &b_ip, 24), 0);
	listener = lace_tcp_listen(b.net, NULL, 80, 2, NULL);
	CHECK(listener > 0);
	server = 0;
	for (size_t i = 0; i < sizeof file; i++)
		file[i] = (uint8_t)(i * 7 + i / 251);
	memset(got, 0xa5, sizeof got);
}

static void down(void)
{
	CHECK_EQ(lace_stack_stop(a.net), 0);
	CHECK_EQ(lace_stack_stop(b.net), 0);
	wire_down(&a);
	wire_down(&b);
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

/* Runs until a whole request has come. */
static void request(void)
{
	int64_t n;

	asked_len = 0;
	memset(asked, 0, sizeof asked);
	for (int i = 0; i < 200 && !strstr(asked, "\r\n\r\n"); i++) {
		run(1);
		if (server <= 0)
			server = lace_tcp_accept(b.net, listener);
		n = server > 0 ? lace_tcp_recv(b.net, server, asked + asked_len, sizeof asked - 1 - asked_len) : 0;
		asked_len += n > 0 ? (size_t)n : 0;
	}
	CHECK(strstr(asked, "\r\n\r\n"));
}

static void answer(const char *head, const void *body, size_t len)
{
	CHECK_EQ(lace_tcp_send(b.net, server, head, strlen(head)), (int64_t)strlen(head));
	if (len)
		CHECK_EQ(lace_tcp_send(b.net, server, body, len), (int64_t)len);
	run(60);
}

static void whole(void)
{
	struct lace_http http;
	struct lace_sink sink;
	char text[256];
	uint64_t done, total;
	lace_op op;

	up();
	CHECK_EQ(lace_http_init(&http, sizeof http), 0);
	CHECK_EQ(http.redirects, 8);
	http.url = "http://10.0.0.8/boot/Image?x=1";
	http.user = "Aladdin";
	http.password = "open sesame";
	http.fields = "X-Serial: 7\nX-More: 8";
	http.done = wire_done;
	http.ctx = &a;
	CHECK_EQ(lace_sink_memory(&sink, sizeof sink, got, 5000), 0);
	op = lace_http_get_start(a.net, &http, &sink);
	CHECK(op > 0);
	CHECK_EQ(lace_http_status(a.net, op), LACE_EAGAIN);
	CHECK_EQ(lace_http_field(a.net, op, "ETag", text, sizeof text), LACE_EAGAIN);
	CHECK_EQ(lace_http_validator(a.net, op, text, sizeof text), LACE_ENOENT);
	request();
	CHECK(!strncmp(asked, "GET /boot/Image?x=1 HTTP/1.1\r\nHost: 10.0.0.8\r\n", 46));
	CHECK(strstr(asked, "\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"));
	CHECK(strstr(asked, "\r\nX-Serial: 7\r\nX-More: 8\r\n\r\n"));
	answer("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\nETag: \"v1\"\r\n\r\n", file, 2000);
	CHECK_EQ(lace_op_status(a.net, op), LACE_EAGAIN);
	a.now += 200000;
	run(5);
	CHECK_EQ(lace_op_progress(a.net, op, &done, &total), 0);
	CHECK(done == 2000 && total == 5000);
	CHECK_EQ(lace_http_status(a.net, op), 200);
	CHECK_EQ(lace_tcp_send(b.net, server, file + 2000, 3000), 3000);
	run(60);
	CHECK_EQ(lace_op_status(a.net, op), 5000);
	CHECK(a.done_count == 1 && a.done_result == 5000);
	CHECK(!memcmp(got, file, 5000) && got[5000] == 0xa5);
	CHECK_EQ(lace_http_field(a.net, op, "etag", text, sizeof text), 4);
	CHECK(!strcmp(text, "\"v1\""));
	CHECK_EQ(lace_http_field(a.net, op, "etag", text, 3), 4);
	CHECK(!strcmp(text, "\"v"));
	CHECK_EQ(lace_http_field(a.net, op, "etag", NULL, 0), 4);
	CHECK_EQ(lace_http_field(a.net, op, "etag", NULL, 1), LACE_EFAULT);
	CHECK_EQ(lace_http_field(a.net, op, "missing", text, sizeof text), LACE_ENOENT);
	CHECK_EQ(lace_http_field(a.net, op, NULL, text, sizeof text), 53);
	CHECK(!strncmp(text, "HTTP/1.1 200 OK\r\nContent-Length", 31));
	CHECK_EQ(lace_http_validator(a.net, op, text, 4), LACE_EMSGSIZE);
	CHECK_EQ(lace_http_validator(a.net, op, text, 5), 4);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	CHECK_EQ(lace_http_status(a.net, op), LACE_EBADF);
	/* The rest of a file, on the same connection; then another file. */
	http.offset = 4000;
	http.if_range = text;
	op = lace_http_get_start(a.net, &http, &sink);
	request();
	CHECK(strstr(asked, "\r\nRange: bytes=4000-\r\nIf-Range: \"v1\"\r\n"));
	answer("HTTP/1.1 206 Part\r\nContent-Range: bytes 4000-4999/5000\r\nContent-Length: 1000\r\n\r\n", file + 4000, 1000);
	CHECK_EQ(lace_op_status(a.net, op), 1000);
	CHECK(!memcmp(got, file + 4000, 1000));
	CHECK_EQ(lace_op_close(a.net, op), 0);
	op = lace_http_get_start(a.net, &http, &sink);
	request();
	answer("HTTP/1.1 200 OK\r\nETag: \"v2\"\r\nContent-Length: 5000\r\n\r\n", file, 1000);
	CHECK_EQ(lace_op_status(a.net, op), LACE_ESTALE);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	down();
}

static void failures(void)
{
	struct lace_http http;
	struct lace_sink sink;
	struct lace_detail detail;
	lace_op op, ops[2];

	up();
	CHECK_EQ(lace_http_init(&http, sizeof http), 0);
	CHECK_EQ(lace_sink_discard(&sink, sizeof sink), 0);
	CHECK_EQ(lace_http_get_start(a.net, &http, &sink), LACE_EFAULT);
	CHECK_EQ(lace_http_get_start(a.net, NULL, &sink), LACE_EFAULT);
	http.url = "http://10.0.0.8/";
	CHECK_EQ(lace_http_get_start(a.net, &http, NULL), LACE_EFAULT);
	http.url = "https://10.0.0.8/";
	CHECK_EQ(lace_http_get_start(a.net, &http, &sink), LACE_EOPNOTSUPP);
	http.url = "http://[2001:db8::1]:8080/";
	CHECK_EQ(lace_http_get_start(a.net, &http, &sink), LACE_EAFNOSUPPORT);
	http.url = "boot/Image";
	CHECK_EQ(lace_http_get_start(a.net, &http, &sink), LACE_EINVAL);
	http.url = "http://10.0.0.8/";
	http.fields = "Host: x";
	CHECK_EQ(lace_http_get_start(a.net, &http, &sink), LACE_EINVAL);
	http.fields = NULL;
	http.retries = 256;
	CHECK_EQ(lace_http_get_start(a.net, &http, &sink), LACE_EINVAL);
	http.retries = 8;
	op = lace_http_head_start(a.net, &http);
	request();
	CHECK(!strncmp(asked, "HEAD / HTTP/1.1\r\n", 17));
	answer("HTTP/1.1 404 Not here\r\nContent-Length: 0\r\n\r\n", NULL, 0);
	CHECK_EQ(lace_op_status(a.net, op), LACE_ENOENT);
	CHECK_EQ(lace_http_status(a.net, op), 404);
	CHECK_EQ(lace_detail_init(&detail, sizeof detail), 0);
	CHECK_EQ(lace_op_detail(a.net, op, &detail), 0);
	CHECK(detail.kind == LACE_DETAIL_HTTP && detail.code == 404 && !strcmp(detail.text, "Not here"));
	CHECK_EQ(lace_op_close(a.net, op), 0);
	/* As many as there are jobs. */
	for (int i = 0; i < 2; i++)
		ops[i] = lace_http_get_start(a.net, &http, &sink);
	op = lace_http_get_start(a.net, &http, &sink);
	CHECK_EQ(lace_op_status(a.net, op), LACE_EMFILE);
	CHECK_EQ(lace_op_close(a.net, op), 0);
	CHECK_EQ(lace_op_cancel(a.net, ops[0]), 0);
	CHECK_EQ(lace_op_status(a.net, ops[0]), LACE_ECANCELED);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(lace_op_close(a.net, ops[i]), 0);
	down();
}

static void pieces(void)
{
	struct lace_http http;
	lace_file f;

	up();
	CHECK_EQ(lace_http_init(&http, sizeof http), 0);
	http.url = "http://10.0.0.8/f";
	f = lace_http_open_start(a.net, &http);
	CHECK(f > 0);
	CHECK_EQ(lace_file_status(a.net, f), LACE_EAGAIN);
	request();
	answer("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 5000\r\n\r\n", file, 5000);
	CHECK_EQ(lace_file_status(a.net, f), 0);
	CHECK_EQ(lace_file_size(a.net, f), 5000);
	CHECK_EQ(lace_http_status(a.net, f), 200);
	CHECK_EQ(lace_file_read_start(a.net, f, got, 1200), 0);
	run(60);
	CHECK_EQ(lace_file_status(a.net, f), 1200);
	CHECK(!memcmp(got, file, 1200) && got[1200] == 0xa5);
	CHECK_EQ(lace_file_seek(a.net, f, 4500), 0);
	CHECK_EQ(lace_file_read_start(a.net, f, got, 1000), 0);
	run(5);
	if (server > 0) /* the connection was given up */
		lace_tcp_close(b.net, server);
	server = 0;
	request();
	CHECK(strstr(asked, "\r\nRange: bytes=4500-\r\nIf-Range: \"v1\"\r\n"));
	answer("HTTP/1.1 206 Part\r\nContent-Range: bytes 4500-4999/5000\r\nContent-Length: 500\r\n\r\n", file + 4500, 500);
	CHECK_EQ(lace_file_status(a.net, f), 500);
	CHECK(!memcmp(got, file + 4500, 500));
	CHECK_EQ(lace_file_position(a.net, f), 5000);
	CHECK_EQ(lace_op_close(a.net, f), 0);
	down();
}

int main(int argc, char **argv)
{
	static const struct test tests[] = { { "whole", whole }, { "failures", failures }, { "pieces", pieces } };

	return wire_main(tests, sizeof tests / sizeof *tests, argc, argv);
}
