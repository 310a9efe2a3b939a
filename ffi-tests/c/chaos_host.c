/* The host of the chaos test: sinks and sources that lie, handlers that call, servers that are none, a bad cable. */
#include "chaos.h"

enum { PAGES = 256 };

/* Reads all of it, for valgrind. */
static void touch(const void *bytes, uint32_t len)
{
	const uint8_t *p = (const uint8_t *)bytes;
	volatile uint8_t sum = 0;

	while (len--)
		sum ^= *p++;
}

/* Sinks and sources. */

static int64_t sink_write(void *ctx, uint64_t offset, const void *bytes, uint32_t len)
{
	(void)offset;
	touch(bytes, len);
	maybe_call((struct wire *)ctx);
	if (storm(30))
		return (int64_t)below(len + 6) - 3;
	return storm(200) ? INT64_MIN + below(3) : len;
}

static int64_t source_read(void *ctx, uint64_t offset, void *buffer, uint32_t len)
{
	memset(buffer, (int)offset, len);
	maybe_call((struct wire *)ctx);
	if (storm(40))
		return (int64_t)below(len + 6) - 3;
	return storm(200) ? INT64_MAX - below(3) : len;
}

static struct { void *block; uint64_t offset; uint32_t len; } lent[2][PAGES];
unsigned lent_count[2];

/* Each page is a block of its own. The lies lend nothing. */
static int64_t source_map(void *ctx, uint64_t offset, uint32_t len, const void **page)
{
	struct wire *w = (struct wire *)ctx;
	unsigned k = end_of(w);

	maybe_call(w);
	CHECK(len > 0 && lent_count[k] < PAGES);
	if (storm(60))
		return LACE_EIO;
	if (storm(60))
		return 0; /* The file is shorter than was said. */
	if (storm(60))
		return *page = NULL, len;
	if (storm(60))
		return *page = w->memory, len;
	if (storm(60))
		return *page = data, (int64_t)len + 1;
	if (len > 4096)
		len = 4096;
	if (storm(5))
		len = 1 + below(len);
	lent[k][lent_count[k]].block = malloc(len);
	lent[k][lent_count[k]].offset = offset;
	lent[k][lent_count[k]].len = len;
	*page = lent[k][lent_count[k]].block;
	CHECK(*page);
	memset(lent[k][lent_count[k]++].block, 7, len);
	return len;
}

static void source_release(void *ctx, uint64_t offset, const void *page, uint32_t len)
{
	struct wire *w = (struct wire *)ctx;
	unsigned k = end_of(w), i;

	if (page == NULL || page == w->memory || page == data)
		return;
	for (i = 0; i < lent_count[k] && lent[k][i].block != page; i++)
		;
	CHECK(i < lent_count[k] && lent[k][i].offset == offset && lent[k][i].len == len);
	free(lent[k][i].block);
	lent[k][i] = lent[k][--lent_count[k]];
	maybe_call(w);
}

void any_sink(struct wire *w, struct lace_sink *sink)
{
	uint32_t len = below(60000);

	switch (below(4)) {
	case 0:
		CHECK_EQ(lace_sink_discard(sink, sizeof *sink), 0);
		break;
	case 1:
		CHECK_EQ(lace_sink_write(sink, sizeof *sink, sink_write, w), 0);
		break;
	default: /* The stack's own memory is refused when the operation starts. */
		CHECK_EQ(lace_sink_memory(sink, sizeof *sink, one_in(10) ? w->memory : room(len), len), 0);
	}
}

void paged_source(struct wire *w, struct lace_source *source)
{
	CHECK_EQ(lace_source_map(source, sizeof *source, source_map, source_release, w), 0);
}

void any_source(struct wire *w, struct lace_source *source)
{
	switch (below(3)) {
	case 0:
		CHECK_EQ(lace_source_read(source, sizeof *source, source_read, w), 0);
		break;
	case 1:
		paged_source(w, source);
		break;
	default:
		CHECK_EQ(lace_source_memory(source, sizeof *source, data + below(1000), below(DATA - 1000)), 0);
	}
}

/* Upcalls. */

void on_progress(void *ctx, lace_op op, uint64_t done, uint64_t total)
{
	CHECK(op > 0 && (!total || done <= total));
	maybe_call((struct wire *)ctx);
}

/* A result may be a new connection. */
void on_done(void *ctx, lace_op op, int64_t result)
{
	struct wire *w = (struct wire *)ctx;

	CHECK(op > 0);
	keep(w, result);
	maybe_call(w);
	if (storm(2))
		lace_op_close(w->net, op);
}

/* Servers, as good as they are. */

static void answer_http(struct wire *w, lace_tcp tcp)
{
	static const char *const answers[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 100 C\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n", "garbage\r\n\r\n",
		"HTTP/1.1 302 X\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 206 P\r\nContent-Range: bytes 5-9/50\r\n\r\n12345",
		"HTTP/1.1 404 N\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 401 N\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 3000\r\n\r\n"
	};
	const char *answer = answers[below(sizeof answers / sizeof *answers)];

	lace_tcp_send(w->net, tcp, answer, strlen(answer));
	if (one_in(2))
		lace_tcp_send(w->net, tcp, data, below(3000));
}

void on_tcp(void *ctx, int32_t handle, uint32_t events)
{
	struct wire *w = (struct wire *)ctx;
	uint8_t bytes[300];
	lace_tcp tcp;

	CHECK(handle > 0 && events);
	maybe_call(w);
	if (events & LACE_TCP_ACCEPT) {
		tcp = lace_tcp_accept(w->net, handle);
		keep(w, tcp);
		if (tcp > 0)
			lace_tcp_notify(w->net, tcp, on_tcp, w);
	}
	if (events & LACE_TCP_READABLE && one_in(2) && lace_tcp_recv(w->net, handle, bytes, sizeof bytes) > 0 && !one_in(4))
		answer_http(w, handle);
	if (events & LACE_TCP_CLOSED && !one_in(4))
		lace_tcp_close(w->net, handle);
}

/* Datagrams stay whole while we call; now and then they are answered, as by a server of TFTP, DNS or RPC. */
void on_datagram(void *ctx, const struct lace_datagram *datagram)
{
	static const uint8_t oack[] = "\0\6tsize\0" "600", first[] = "\0\3\0\1data", ack[] = "\0\4\0", error[] = "\0\5\0\1no";
	struct wire *w = (struct wire *)ctx;
	struct lace_datagram d = *datagram;
	uint8_t echo[600];
	uint32_t len = d.payload_len < sizeof echo ? d.payload_len : sizeof echo;

	touch(d.payload, d.payload_len);
	maybe_call(w);
	touch(d.payload, d.payload_len);
	touch(d.frame, d.frame_len);
	if (calm || len < 8)
		return;
	memcpy(echo, d.payload, len);
	echo[2] |= 0x80;
	echo[7] = (uint8_t)below(2);
	switch (below(7)) {
	case 0: lace_udp_send(w->net, d.socket, &d.src, d.src_port, oack, sizeof oack); break;
	case 1: lace_udp_send(w->net, d.socket, &d.src, d.src_port, first, sizeof first); break;
	case 2: lace_udp_send(w->net, d.socket, &d.src, d.src_port, ack, sizeof ack); break;
	case 3: lace_udp_send(w->net, d.socket, &d.src, d.src_port, error, sizeof error); break;
	case 4: lace_udp_send(w->net, d.socket, &d.src, d.src_port, echo, len); break;
	default: break;
	}
}

void on_packet(void *ctx, const struct lace_packet *packet)
{
	struct lace_packet p = *packet;

	maybe_call((struct wire *)ctx);
	touch(p.packet, p.packet_len);
	touch(p.frame, p.frame_len);
}

void on_lost(void *ctx, lace_nic_id nic, const struct lace_ip *ip)
{
	CHECK(nic > 0 && ip);
	maybe_call((struct wire *)ctx);
}

/* The cable. */
void cross(struct wire *w, const uint8_t *frame, uint32_t len)
{
	struct wire *other = &ends[!end_of(w)];
	unsigned copies = storm(60) ? 0 : storm(60) ? 2 : 1;
	uint8_t copy[2048];

	CHECK(len <= sizeof copy);
	memcpy(copy, frame, len);
	if (storm(200))
		copy[below(len)] ^= (uint8_t)(1 << below(8));
	while (copies--)
		if (other->rx_tail - other->rx_head < QUEUE - 4)
			wire_put(other, copy, len);
}

