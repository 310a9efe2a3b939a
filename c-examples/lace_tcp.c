/*
 * lace tcp: one connection, as netcat has it. What comes on stdin goes to the peer and back; files go from memory and to
 * memory, without a buffer between, as a boot loader would have them.
 */
#define _GNU_SOURCE
#include "bootlace_sync.h"
#include "lace_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOM (1ul << 30)  /* address space for a received file; pages that no byte reaches cost nothing */
#define MOST_IDLE_US 5000 /* between two looks at stdin and for signals */

struct stream {
	struct tool *tool;
	lace_tcp tcp;
	const char *send, *recv; /* files, or NULL for stdin and stdout */
	int ring;                /* files go through the rings of the stack */
	int keep;                /* send our end only after the peer's */
	int info;
	size_t room;

	int in, out;     /* descriptors for the rings; -1: none */
	int ended;       /* nothing more comes from `in`, or the file was given */
	int shut;        /* our end was sent */
	void *region;    /* where a received file lands */
	void *file;      /* the file to send */
	size_t file_len;
	lace_op op;      /* its sending */
	char held[65536]; /* read from `in`, not yet taken by the stack */
	size_t held_at, held_len;
	uint64_t received;
	uint64_t finished_us; /* when the peer's end was seen */
};

static int failed_file(const char *name)
{
	fprintf(stderr, "%s: %s\n", name, strerror(errno));
	return -1;
}

/* Opens what is to be sent and received. */
static int open_files(struct stream *s)
{
	struct stat st;
	int fd;

	s->in = STDIN_FILENO;
	s->out = STDOUT_FILENO;
	s->op = -1;
	if (s->send) {
		fd = open(s->send, O_RDONLY);
		if (fd < 0 || fstat(fd, &st))
			return failed_file(s->send);
		s->in = fd;
		if (!s->ring) {
			s->in = -1;
			s->file_len = (size_t)st.st_size;
			s->file = s->file_len ? mmap(NULL, s->file_len, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0) : NULL;
			close(fd);
			if (s->file == MAP_FAILED)
				return failed_file(s->send);
		}
	}
	if (s->recv && s->ring) {
		s->out = open(s->recv, O_WRONLY | O_CREAT | O_TRUNC, 0666);
		if (s->out < 0)
			return failed_file(s->recv);
	} else if (s->recv) {
		s->region = mmap(NULL, s->room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (s->region == MAP_FAILED)
			return failed_file("memory");
	}
	return 0;
}

/* Gives the stack what has no ring between: the file to send, the memory to receive into. */
static int begin(struct stream *s)
{
	struct lace_source source;
	int rc = 0;

	if (s->region)
		rc = lace_tcp_recv_into(s->tool->net, s->tcp, s->region, s->room);
	if (rc < 0)
		return rc;
	if (s->in < 0) {
		s->ended = 1;
		if (s->file_len) {
			lace_source_memory(&source, sizeof source, s->file, s->file_len);
			s->op = lace_tcp_sendfile_start(s->tool->net, s->tcp, &source, 0, s->file_len, tool_progress, NULL,
							s->tool);
			rc = s->op < 0 ? s->op : 0;
		}
	}
	return rc;
}

/* Moves bytes from `in` to the ring: how many, 0 for none now, or why not. */
static int64_t feed(struct stream *s)
{
	struct pollfd p = { s->in, POLLIN, 0 };
	int64_t n;

	if (s->held_at == s->held_len) {
		if (s->ended || poll(&p, 1, 0) <= 0)
			return 0;
		n = read(s->in, s->held, sizeof s->held);
		s->ended = n <= 0;
		if (n <= 0)
			return 0;
		s->held_at = 0;
		s->held_len = (size_t)n;
	}
	n = lace_tcp_send(s->tool->net, s->tcp, s->held + s->held_at, s->held_len - s->held_at);
	if (n > 0)
		s->held_at += (size_t)n;
	return n == LACE_EAGAIN ? 0 : n;
}

/* Moves bytes from the ring to `out`: how many, 0 for none now, or why not. */
static int64_t drain(struct stream *s)
{
	char buffer[65536];
	int64_t n = lace_tcp_recv(s->tool->net, s->tcp, buffer, sizeof buffer);

	for (int64_t at = 0; n > 0 && at < n;) {
		ssize_t m = write(s->out, buffer + at, (size_t)(n - at));

		if (m < 0)
			return failed_file("output") < 0 ? LACE_EIO : 0;
		at += m;
	}
	if (n > 0)
		s->received += (uint64_t)n;
	return n == LACE_EAGAIN ? 0 : n;
}

/* Moves bytes both ways until both ends are over. */
static int64_t exchange(struct stream *s)
{
	lace_stack *net = s->tool->net;

	for (;;) {
		int64_t fed = s->in < 0 ? 0 : feed(s), drained = s->region ? 0 : drain(s), wait;
		int now = lace_tcp_status(net, s->tcp), rc;

		if (fed < 0 || drained < 0 || now < 0)
			return fed < 0 ? fed : drained < 0 ? drained : now;
		if (now & LACE_TCP_FINISHED && !s->finished_us)
			s->finished_us = linux_now_us();
		if (!s->shut && s->ended && s->held_at == s->held_len && (!s->keep || (now & LACE_TCP_FINISHED))) {
			rc = lace_tcp_shutdown(net, s->tcp);
			if (rc < 0)
				return rc;
			s->shut = 1;
		}
		if (now & LACE_TCP_CLOSED && !drained)
			return lace_tcp_error(net, s->tcp);
		rc = lace_poll(net, 32);
		if (rc < 0)
			return rc;
		if (tool_interrupted())
			return LACE_EINTR;
		if (rc > 0 || fed > 0 || drained > 0)
			continue;
		wait = lace_next_deadline(net);
		if (wait > 0)
			linux_nic_wait(s->tool->card, wait < MOST_IDLE_US ? (uint32_t)wait : MOST_IDLE_US);
	}
}

/* Writes the received file, and sees that all of a given one was sent. */
static int64_t finish(struct stream *s)
{
	int64_t n, sent;
	FILE *f;

	if (s->region) {
		n = lace_tcp_region_finish(s->tool->net, s->tcp);
		if (n < 0)
			return n;
		s->received = (uint64_t)n;
		if ((size_t)n == s->room && lace_tcp_peek(s->tool->net, s->tcp, &sent, 1) > 0)
			return LACE_EFBIG;
		f = fopen(s->recv, "wb");
		if (!f || fwrite(s->region, 1, (size_t)n, f) != (size_t)n || fclose(f))
			return failed_file(s->recv) < 0 ? LACE_EIO : 0;
	}
	if (s->op >= 0) {
		sent = lace_op_status(s->tool->net, s->op);
		lace_op_close(s->tool->net, s->op);
		if (sent < 0)
			return sent;
	}
	return 0;
}

static void show_info(struct stream *s, double seconds)
{
	struct lace_tcp_info i;

	lace_tcp_info_init(&i, sizeof i);
	if (lace_tcp_info_get(s->tool->net, s->tcp, &i) < 0)
		return;
	fprintf(stderr, "sent %llu bytes, received %llu bytes in %.6f s\n", (unsigned long long)i.bytes_sent,
		(unsigned long long)i.bytes_received, seconds);
	if (s->info && s->finished_us)
		fprintf(stderr, "the peer's end came after %.6f s\n", (double)(s->finished_us - s->tool->start_us) / 1e6);
	if (s->info)
		fprintf(stderr,
			"rtt %u us, deviation %u us, timeout %u us, segment %u bytes, window %u bytes, threshold %u bytes, "
			"sent again %u\n",
			(unsigned)i.rtt_us, (unsigned)i.rtt_deviation_us, (unsigned)i.rto_us, (unsigned)i.segment_size,
			(unsigned)i.congestion_window, (unsigned)i.slow_start_threshold, (unsigned)i.retransmits);
}

/* Waits for a connection at a port. */
static lace_tcp accept_one(struct tool *tool, uint16_t port, const struct lace_tcp_options *options)
{
	lace_listener listener = lace_tcp_listen(tool->net, NULL, port, 1, options);
	lace_tcp tcp = LACE_EAGAIN;

	if (listener < 0)
		return listener;
	fprintf(stderr, "listening at port %u\n", port);
	while (tcp == LACE_EAGAIN) {
		int64_t wait = lace_next_deadline(tool->net);
		int rc;

		if (wait > 0)
			linux_nic_wait(tool->card, wait < MOST_IDLE_US ? (uint32_t)wait : MOST_IDLE_US);
		rc = lace_poll(tool->net, 32);
		tcp = rc < 0 ? rc : tool_interrupted() ? LACE_EINTR : lace_tcp_accept(tool->net, listener);
	}
	lace_tcp_unlisten(tool->net, listener);
	return tcp;
}

static int run(struct stream *s)
{
	int64_t rc = begin(s);
	double seconds;

	if (rc >= 0)
		rc = exchange(s);
	seconds = (double)(linux_now_us() - s->tool->start_us) / 1e6;
	if (rc >= 0)
		rc = finish(s);
	show_info(s, seconds);
	lace_tcp_close(s->tool->net, s->tcp);
	return rc < 0 ? tool_failed("tcp", rc) : 0;
}

int lace_cmd_tcp(struct tool *tool, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "listen", no_argument, NULL, 'l' },     { "send", required_argument, NULL, 's' },
		{ "recv", required_argument, NULL, 'r' }, { "keep", no_argument, NULL, 'k' },
		{ "ring", no_argument, NULL, 'R' },       { "info", no_argument, NULL, 'i' },
		{ "window", required_argument, NULL, 'w' }, { "room", required_argument, NULL, 'm' },
		{ "new-reno", no_argument, NULL, 'n' },   { "no-sack", no_argument, NULL, 'S' },
		{ "no-timestamps", no_argument, NULL, 'T' }, { NULL, 0, NULL, 0 },
	};
	static struct stream s;
	struct lace_tcp_options options;
	struct lace_peer peer;
	int listening = 0, c;
	uint16_t port;

	s.tool = tool;
	s.room = ROOM;
	lace_tcp_init(&options, sizeof options);
	while ((c = getopt_long(argc, argv, "lk", longs, NULL)) != -1) {
		switch (c) {
		case 'l':
			listening = 1;
			break;
		case 's':
			s.send = optarg;
			break;
		case 'r':
			s.recv = optarg;
			break;
		case 'k':
			s.keep = 1;
			break;
		case 'R':
			s.ring = 1;
			break;
		case 'i':
			s.info = 1;
			break;
		case 'w':
			options.receive_max = (uint32_t)tool_number(optarg, 1, 1u << 30);
			break;
		case 'm':
			s.room = tool_number(optarg, 1, ROOM);
			break;
		case 'n':
			options.new_reno = 1;
			break;
		case 'S':
			options.no_sack = 1;
			break;
		case 'T':
			options.no_timestamps = 1;
			break;
		default:
			return 2;
		}
	}
	if (optind + (listening ? 1 : 2) != argc)
		return 2;
	port = (uint16_t)tool_number(argv[argc - 1], 1, 65535);
	if (open_files(&s))
		return 1;
	if (listening) {
		s.tcp = accept_one(tool, port, &options);
	} else {
		tool_peer(&peer, argv[optind], port);
		s.tcp = lace_tcp_connect(tool->net, &peer, &options);
	}
	if (s.tcp < 0)
		return tool_failed(listening ? "listen" : argv[optind], s.tcp);
	tool_begin(tool);
	return run(&s);
}
