/*
 * lace iperf: measures TCP with iperf 2 at the other end, which may be the client or the server. What is sent is one
 * buffer that is lent to the card over and over; what is received lands in four regions in turn. With --copy both go
 * through the rings of the stack.
 */
#define _GNU_SOURCE
#include "bootlace_sync.h"
#include "lace_tool.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT 5001
#define STREAMS 4 /* at a time */
#define REGIONS 4 /* the most that a connection queues */
#define REGION (256u << 10)
#define BLOCK (128u << 10)
#define MOST_IDLE_US 5000 /* between two looks for signals */

struct stream {
	lace_tcp tcp; /* 0: free */
	lace_op op;   /* its sending; negative: none */
	unsigned id;
	int shut, over;
	unsigned queued, next; /* regions */
	uint64_t start_us, end_us, bytes, highest;
	uint8_t *regions[REGIONS];
	struct iperf *iperf;
};

struct iperf {
	struct tool *tool;
	int copy, server, once;
	uint64_t end_us, bytes; /* when, or after how many bytes of each stream, to stop; 0: that does not matter */
	unsigned seconds, parallel, begun, live;
	struct stream streams[STREAMS];
	uint8_t block[BLOCK];
};

static void report(const struct stream *s)
{
	double seconds = (double)(s->end_us - s->start_us) / 1e6;

	printf("[%3u] 0.00-%.2f sec  %llu bytes  %.2f Mbits/sec\n", s->id, seconds, (unsigned long long)s->bytes,
	       (double)s->bytes * 8 / 1e6 / (seconds > 0 ? seconds : 1e-6));
	fflush(stdout);
}

/* ---- sending ---- */

static int enough(const struct stream *s, uint64_t sent)
{
	const struct iperf *i = s->iperf;

	return (i->bytes && sent >= i->bytes) || (i->end_us && linux_now_us() >= i->end_us);
}

/* A file without an end, until it is enough. What was lent once is there for as long as it may be sent again. */
static int64_t map_block(void *ctx, uint64_t offset, uint32_t len, const void **page)
{
	struct stream *s = ctx;
	uint64_t n = BLOCK - offset % BLOCK;

	if (offset >= s->highest && enough(s, offset))
		return 0;
	if (n > len)
		n = len;
	if (s->iperf->bytes && n > s->iperf->bytes - offset)
		n = s->iperf->bytes - offset;
	*page = s->iperf->block + offset % BLOCK;
	if (offset + n > s->highest)
		s->highest = offset + n;
	return (int64_t)n;
}

static int begin_sending(struct stream *s)
{
	struct lace_source source;

	s->op = -1;
	if (s->iperf->copy)
		return 0;
	lace_source_map(&source, sizeof source, map_block, NULL, s);
	s->op = lace_tcp_sendfile_start(s->iperf->tool->net, s->tcp, &source, 0, 1ull << 50, NULL, NULL, NULL);
	return s->op < 0 ? s->op : 0;
}

/* Gives a connection what it can take, then its end. */
static int send_more(struct stream *s, int now)
{
	lace_stack *net = s->iperf->tool->net;
	int64_t n;

	if (s->shut)
		return now & LACE_TCP_CLOSED ? lace_tcp_error(net, s->tcp) : 0;
	if (s->iperf->copy) {
		while (!enough(s, s->bytes)) {
			size_t len = BLOCK - s->bytes % BLOCK;

			if (s->iperf->bytes && len > s->iperf->bytes - s->bytes)
				len = (size_t)(s->iperf->bytes - s->bytes);
			n = lace_tcp_send(net, s->tcp, s->iperf->block + s->bytes % BLOCK, len);
			if (n == LACE_EAGAIN)
				return 0;
			if (n < 0)
				return (int)n;
			s->bytes += (uint64_t)n;
		}
	} else {
		n = lace_op_status(net, s->op);
		if (n == LACE_EAGAIN)
			return 0;
		/* The file ends when we say so; everything before is acknowledged. */
		if (n < 0 && n != LACE_ENODATA)
			return (int)n;
		lace_op_progress(net, s->op, &s->bytes, NULL);
		lace_op_close(net, s->op);
		s->op = -1;
	}
	s->shut = 1;
	return lace_tcp_shutdown(net, s->tcp);
}

/* ---- receiving ---- */

static int begin_receiving(struct stream *s)
{
	s->op = -1;
	for (unsigned i = 0; i < REGIONS && !s->iperf->copy; i++) {
		int rc;

		if (!s->regions[i])
			s->regions[i] = malloc(REGION);
		rc = s->regions[i] ? lace_tcp_recv_into(s->iperf->tool->net, s->tcp, s->regions[i], REGION) : LACE_ENOMEM;
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Takes what has come; `now` is what was so before. */
static int receive_more(struct stream *s, int now)
{
	lace_stack *net = s->iperf->tool->net;
	int ended = now & (LACE_TCP_FINISHED | LACE_TCP_CLOSED);
	int64_t n;
	int rc;

	if (s->iperf->copy) {
		static char in[65536];

		while ((n = lace_tcp_recv(net, s->tcp, in, sizeof in)) > 0)
			s->bytes += (uint64_t)n;
		if (n < 0 && n != LACE_EAGAIN)
			return (int)n;
	} else {
		for (;;) {
			n = lace_tcp_region(net, s->tcp);
			if (n < 0 || ((uint64_t)n < REGION && !ended))
				break;
			n = lace_tcp_region_finish(net, s->tcp);
			s->bytes += (uint64_t)n;
			rc = ended ? 0 : lace_tcp_recv_into(net, s->tcp, s->regions[s->next], REGION);
			if (rc < 0)
				return rc;
			s->next = (s->next + 1) % REGIONS;
		}
		if (n < 0 && n != LACE_EAGAIN)
			return (int)n;
	}
	if (ended && !s->shut) {
		s->shut = 1;
		return now & LACE_TCP_CLOSED ? lace_tcp_error(net, s->tcp) : lace_tcp_shutdown(net, s->tcp);
	}
	return 0;
}

/* ---- streams ---- */

static int begin(struct iperf *i, struct stream *s, lace_tcp tcp)
{
	s->iperf = i;
	s->tcp = tcp;
	s->id = ++i->begun;
	s->shut = s->over = 0;
	s->next = 0;
	s->bytes = s->highest = 0;
	s->start_us = linux_now_us();
	i->live++;
	return i->server ? begin_receiving(s) : begin_sending(s);
}

/* Looks after one stream; what went wrong with it, if anything did. */
static int attend(struct iperf *i, struct stream *s)
{
	int now = lace_tcp_status(i->tool->net, s->tcp);
	int rc = now < 0 ? now : i->server ? receive_more(s, now) : send_more(s, now);

	/* A client waits for the server's end: then everything has arrived. */
	if (rc >= 0 && !(s->shut && (i->server || (now & (LACE_TCP_FINISHED | LACE_TCP_CLOSED)))))
		return 0;
	s->end_us = linux_now_us();
	if (rc < 0)
		tool_failed("stream", rc);
	report(s);
	if (s->op >= 0)
		lace_op_close(i->tool->net, s->op);
	lace_tcp_close(i->tool->net, s->tcp);
	s->tcp = 0;
	i->live--;
	return rc;
}

static int run(struct iperf *i, lace_listener listener)
{
	lace_stack *net = i->tool->net;
	int failed = 0, rc;

	for (;;) {
		for (unsigned n = 0; n < STREAMS; n++) {
			struct stream *s = &i->streams[n];

			if (!s->tcp && i->server) {
				lace_tcp tcp = lace_tcp_accept(net, listener);

				if (tcp > 0 && begin(i, s, tcp) < 0)
					failed = 1;
			}
			if (s->tcp && attend(i, s) < 0)
				failed = 1;
		}
		if (!i->live && (!i->server || (i->once && i->begun)))
			return failed;
		if (tool_interrupted())
			return i->server ? failed : tool_failed("iperf", LACE_EINTR);
		rc = lace_poll(net, 32);
		if (rc < 0)
			return tool_failed("iperf", rc);
		if (rc == 0) {
			int64_t wait = lace_next_deadline(net);

			if (wait > 0)
				linux_nic_wait(i->tool->card, wait < MOST_IDLE_US ? (uint32_t)wait : MOST_IDLE_US);
		}
	}
}

static int client(struct iperf *i, const char *host, uint16_t port)
{
	struct lace_peer peer;
	int rc;

	tool_peer(&peer, host, port);
	/* iperf 2 takes the first word for flags; none set is an ordinary test. */
	for (unsigned n = 64; n < BLOCK; n++)
		i->block[n] = (uint8_t)('0' + n % 10);
	for (unsigned n = 0; n < i->parallel; n++) {
		lace_tcp tcp = lace_tcp_connect(i->tool->net, &peer, NULL);

		if (tcp < 0)
			return tool_failed(host, tcp);
		if (!n && !i->bytes)
			i->end_us = linux_now_us() + i->seconds * 1000000ull;
		rc = begin(i, &i->streams[n], tcp);
		if (rc < 0)
			return tool_failed(host, rc);
	}
	return run(i, 0);
}

static int server(struct iperf *i, uint16_t port)
{
	lace_listener listener = lace_tcp_listen(i->tool->net, NULL, port, STREAMS, NULL);
	int rc;

	if (listener < 0)
		return tool_failed("listen", listener);
	printf("listening at port %u\n", port);
	fflush(stdout);
	rc = run(i, listener);
	lace_tcp_unlisten(i->tool->net, listener);
	return rc;
}

int lace_cmd_iperf(struct tool *tool, int argc, char **argv)
{
	static const struct option longs[] = { { "copy", no_argument, NULL, 'C' }, { NULL, 0, NULL, 0 } };
	static struct iperf i;
	const char *host = NULL;
	uint16_t port = PORT;
	int c, rc;

	i.tool = tool;
	i.seconds = 10;
	i.parallel = 1;
	while ((c = getopt_long(argc, argv, "sc:p:t:n:P:1", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			i.server = 1;
			break;
		case 'c':
			host = optarg;
			break;
		case 'p':
			port = (uint16_t)tool_number(optarg, 1, 65535);
			break;
		case 't':
			i.seconds = (unsigned)tool_number(optarg, 1, 86400);
			break;
		case 'n':
			i.bytes = tool_number(optarg, 1, 1ul << 50);
			break;
		case 'P':
			i.parallel = (unsigned)tool_number(optarg, 1, STREAMS);
			break;
		case '1':
			i.once = 1;
			break;
		case 'C':
			i.copy = 1;
			break;
		default:
			return 2;
		}
	}
	if (optind != argc || i.server == (host != NULL))
		return 2;
	rc = host ? client(&i, host, port) : server(&i, port);
	for (unsigned n = 0; n < STREAMS; n++) {
		/* An open connection still has its regions. */
		if (i.streams[n].tcp)
			lace_tcp_abort(tool->net, i.streams[n].tcp);
		for (unsigned r = 0; r < REGIONS; r++)
			free(i.streams[n].regions[r]);
	}
	return rc;
}
