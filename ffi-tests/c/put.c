/* Sending a file by TFTP: every kind of source, over a copying and a gathering NIC, and what is refused. */
#include "wire.h"

enum { LENGTH = 5000 };

/* The server: takes one file without options, a block of 512 bytes at a time; loses the acknowledgement of block `deaf` once. */
static struct {
	uint8_t got[LENGTH + 512];
	uint32_t len, requests, blocks;
	uint16_t next, deaf, error, client;
} server;

static void answer(struct wire *w, uint16_t to, uint16_t opcode, uint16_t number)
{
	uint8_t frame[1514], reply[9] = { 0, (uint8_t)opcode, (uint8_t)(number >> 8), (uint8_t)number, 'f', 'u', 'l', 'l', 0 };

	wire_put(w, frame, wire_udp(frame, 4000, to, reply, opcode == 5 ? 9 : 4));
}

static void tftp_server(struct wire *w, const uint8_t *frame, uint32_t len)
{
	uint16_t from, to, number;
	uint32_t n = 0;
	const uint8_t *p = wire_payload(frame, len, &from, &to, &n);

	if (p && to == 69 && n > 4 && p[1] == 2) {
		server.requests++;
		server.client = from;
		CHECK(!strcmp((const char *)p + 2, "up/load") && !strcmp((const char *)p + 10, "octet"));
		server.next = 1;
		server.len = 0;
		if (server.error)
			answer(w, from, 5, server.error);
		else
			answer(w, from, 4, 0);
	} else if (p && to == 4000 && n >= 4 && p[1] == 3) {
		number = (uint16_t)(p[2] << 8 | p[3]);
		server.blocks++;
		if (number == server.next) {
			CHECK(server.len + n - 4 <= sizeof server.got);
			memcpy(server.got + server.len, p + 4, n - 4);
			server.len += n - 4;
			server.next++;
			if (number == server.deaf) {
				server.deaf = 0;
				return;
			}
		}
		answer(w, from, 4, number);
	} else {
		wire_host(w, frame, len);
	}
}

/* A source that gives at most 100 bytes at a time. */
struct slow {
	const uint8_t *file;
	uint32_t len, calls, lent, back, fail_at;
};

static int64_t slow_read(void *ctx, uint64_t offset, void *buffer, uint32_t len)
{
	struct slow *s = ctx;
	uint32_t left = offset < s->len ? s->len - (uint32_t)offset : 0;

	s->calls++;
	if (s->fail_at && offset >= s->fail_at)
		return -1234;
	if (len > 100)
		len = 100;
	if (len > left)
		len = left;
	memcpy(buffer, s->file + offset, len);
	return len;
}

static int64_t slow_map(void *ctx, uint64_t offset, uint32_t len, const void **page)
{
	struct slow *s = ctx;
	uint32_t left = offset < s->len ? s->len - (uint32_t)offset : 0;

	if (len > 100)
		len = 100;
	if (len > left)
		len = left;
	s->lent += len;
	*page = s->file + offset;
	return len;
}

static void slow_unmap(void *ctx, uint64_t offset, const void *page, uint32_t len)
{
	struct slow *s = ctx;

	CHECK(page == s->file + offset);
	s->back += len;
}

static void begin(struct lace_tftp_put *put)
{
	memset(&server, 0, sizeof server);
	CHECK_EQ(lace_tftp_put_init(put, sizeof *put), 0);
	CHECK_EQ(put->len, UINT64_MAX);
	CHECK_EQ(lace_ip_parse("10.0.0.1", &put->server.ip), 0);
	put->path = "up/load";
}

static void same(const uint8_t *file, uint32_t len)
{
	CHECK_EQ(server.len, len);
	CHECK(!memcmp(server.got, file, len));
}

static void all_sources(void (*setup)(struct wire *w))
{
	static const uint32_t lengths[] = { 0, 1, 511, 512, 513, 1024, 4999, LENGTH };
	struct wire w;
	struct lace_tftp_put put;
	struct lace_source source;
	struct slow slow = { 0 };
	uint16_t block, window;
	uint64_t done, total;
	uint8_t *file;
	uint32_t i;
	lace_op op;

	wire_up(&w, setup);
	w.other_end = tftp_server;
	for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		uint32_t len = lengths[i];

		file = wire_file(len);
		begin(&put);
		server.deaf = i == 6 ? 3 : 0;
		CHECK_EQ(lace_source_memory(&source, sizeof source, file, len), 0);
		CHECK_EQ(lace_tftp_put(w.net, &put, &source), len);
		same(file, len);
		/* A source that ends by itself, and one whose length was promised. */
		slow.file = file;
		slow.len = len;
		begin(&put);
		put.done = wire_done;
		put.progress = wire_progress;
		put.ctx = &w;
		CHECK_EQ(lace_source_read(&source, sizeof source, slow_read, &slow), 0);
		op = lace_tftp_put_start(w.net, &put, &source);
		CHECK_EQ(lace_op_wait(w.net, op), len);
		same(file, len);
		CHECK_EQ(w.done_result, len);
		CHECK_EQ(lace_op_progress(w.net, op, &done, &total), 0);
		CHECK_EQ(done, len);
		CHECK_EQ(lace_tftp_agreed(w.net, op, &block, &window), 0);
		CHECK(block == 512 && window == 1);
		CHECK_EQ(lace_op_close(w.net, op), 0);
		begin(&put);
		put.len = len;
		CHECK_EQ(lace_source_map(&source, sizeof source, slow_map, slow_unmap, &slow), 0);
		CHECK_EQ(lace_tftp_put(w.net, &put, &source), len);
		same(file, len);
		CHECK_EQ(slow.lent, slow.back);
		free(file);
	}
	wire_down(&w);
}

static void gathers(struct wire *w)
{
	w->driver.caps |= LACE_NIC_GATHER;
	w->driver.tx_buffer = NULL;
}

static void copied(void)
{
	all_sources(NULL);
}

static void gathered(void)
{
	all_sources(gathers);
}

static void errors(void)
{
	struct wire w;
	struct lace_tftp_put put;
	struct lace_source source;
	struct lace_detail detail;
	struct slow slow = { 0 };
	uint8_t *file = wire_file(LENGTH);
	lace_udp socket;

	wire_up(&w, NULL);
	w.other_end = tftp_server;
	/* The server's words. */
	begin(&put);
	server.error = 3;
	CHECK_EQ(lace_source_memory(&source, sizeof source, file, LENGTH), 0);
	CHECK_EQ(lace_detail_init(&detail, sizeof detail), 0);
	CHECK_EQ(lace_tftp_put_detail(w.net, &put, &source, &detail), LACE_ENOSPC);
	CHECK(detail.kind == LACE_DETAIL_TFTP && detail.code == 3 && !strcmp(detail.text, "full"));
	CHECK_EQ(server.len, 0);
	/* A source that fails, and one that is shorter than promised. */
	slow.file = file;
	slow.len = LENGTH;
	slow.fail_at = 1100;
	begin(&put);
	CHECK_EQ(lace_source_read(&source, sizeof source, slow_read, &slow), 0);
	CHECK_EQ(lace_tftp_put(w.net, &put, &source), -1234);
	CHECK_EQ(server.len, 1024);
	slow.fail_at = 0;
	begin(&put);
	put.len = LENGTH + 1;
	CHECK_EQ(lace_tftp_put(w.net, &put, &source), LACE_ENODATA);
	begin(&put);
	put.len = LENGTH - 1;
	CHECK_EQ(lace_tftp_put(w.net, &put, &source), LENGTH - 1);
	same(file, LENGTH - 1);
	/* A port of the caller's choice, and one that is taken. */
	begin(&put);
	put.local_port = 4711;
	CHECK_EQ(lace_tftp_put(w.net, &put, &source), LENGTH);
	CHECK_EQ(server.client, 4711);
	socket = lace_udp_open(w.net, wire_datagram, &w);
	CHECK_EQ(lace_udp_bind(w.net, socket, 0, NULL, 4711), 0);
	CHECK_EQ(lace_tftp_put(w.net, &put, &source), LACE_EADDRINUSE);
	CHECK_EQ(lace_udp_close(w.net, socket), 0);
	put.reserved = 1;
	CHECK_EQ(lace_tftp_put(w.net, &put, &source), LACE_EINVAL);
	/* Ended by host.poll. */
	begin(&put);
	w.other_end = NULL;
	w.poll_result = 1;
	CHECK_EQ(lace_tftp_put(w.net, &put, &source), LACE_EINTR);
	w.poll_result = 0;
	w.other_end = tftp_server;
	/* Arguments. */
	begin(&put);
	CHECK_EQ(lace_tftp_put_start(w.net, NULL, &source), LACE_EFAULT);
	CHECK_EQ(lace_tftp_put_start(w.net, &put, NULL), LACE_EFAULT);
	put.retries = 256;
	CHECK_EQ(lace_tftp_put_start(w.net, &put, &source), LACE_EINVAL);
	put.retries = 0;
	put.blksize = 7;
	CHECK_EQ(lace_tftp_put_start(w.net, &put, &source), LACE_EINVAL);
	put.blksize = 65465;
	CHECK_EQ(lace_tftp_put_start(w.net, &put, &source), LACE_EINVAL);
	put.blksize = 0;
	put.timeout_ms = 255001;
	CHECK_EQ(lace_tftp_put_start(w.net, &put, &source), LACE_EINVAL);
	put.timeout_ms = 0;
	put.path = "";
	CHECK_EQ(lace_tftp_put_start(w.net, &put, &source), LACE_EINVAL);
	put.path = NULL;
	CHECK_EQ(lace_tftp_put_start(w.net, &put, &source), LACE_EFAULT);
	put.path = "up/load";
	CHECK_EQ(lace_source_memory(&source, sizeof source, w.memory, 600), 0);
	CHECK_EQ(lace_tftp_put_start(w.net, &put, &source), LACE_EFAULT);
	CHECK_EQ(lace_tftp_put_init(NULL, sizeof put), LACE_EFAULT);
	CHECK_EQ(lace_tftp_put_init(&put, 8), LACE_EINVAL);
	CHECK_EQ(server.requests, 0);
	free(file);
	wire_down(&w);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = { { "copied", copied }, { "gathered", gathered }, { "errors", errors } };

	return wire_main(tests, sizeof tests / sizeof *tests, argc, argv);
}
