/*
 * lace ftp: files to and from FTP servers (RFC 959, RFC 2428, RFC 3659). A file goes out from where it is mapped, a piece
 * at a time lent to the card, and comes in where it is to lie: no buffer between. With --copy it goes through the rings
 * of the stack instead, by read and send, as most FTP clients do it; with --ascii it must. The control connection is in
 * lace_ftp_control.c.
 */
#define _GNU_SOURCE
#include "bootlace_sync.h"
#include "lace_ftp.h"
#include "sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOM (1ul << 30) /* address space; pages that no byte reaches cost nothing */
#define LEND 16384u      /* most of a file that is lent at a time */
#define COPY 65536u      /* of each read with --copy */

struct job {
	struct ftp ftp;
	const char *local, *path; /* the file here, or NULL; the file there */
	int copy, ascii, stream, resume, hash;
	uint64_t offset;
	/* What is sent. */
	int fd;
	uint8_t *map;
	uint64_t len;
	uint64_t lent, given_back;
	/* What is received. */
	uint8_t *memory;
	size_t room;
	uint64_t expected; /* bytes that the server says will come, or UINT64_MAX */
};

static int64_t failed_file(const char *name)
{
	fprintf(stderr, "%s: %s\n", name, strerror(errno));
	return LACE_EIO;
}

/* ---- put ---- */

/* Lends a piece of the mapped file. What a file that was cut short no longer has must not be touched. */
static int64_t map_piece(void *ctx, uint64_t offset, uint32_t len, const void **page)
{
	struct job *job = ctx;
	uint64_t n = LEND - offset % LEND;
	struct stat st;

	if (fstat(job->fd, &st))
		return LACE_EIO;
	if (offset >= job->len || offset >= (uint64_t)st.st_size)
		return 0;
	if (n > len)
		n = len;
	if (n > (uint64_t)st.st_size - offset)
		n = (uint64_t)st.st_size - offset;
	*page = job->map + offset;
	job->lent += n;
	return (int64_t)n;
}

static void piece_done(void *ctx, uint64_t offset, const void *page, uint32_t len)
{
	struct job *job = ctx;

	(void)offset;
	(void)page;
	job->given_back += len;
}

/* What a file on a medium, with no memory to hold it, would do: fills the card's own buffer. */
static int64_t read_piece(void *ctx, uint64_t offset, void *buffer, uint32_t len)
{
	struct job *job = ctx;
	ssize_t n = pread(job->fd, buffer, len, (off_t)offset);

	return n < 0 ? LACE_EIO : n;
}

/* Sends the file from where it lies, or as it is read. Its end is queued behind it: a file that ends early resets the connection. */
static int64_t send_whole(struct job *job, lace_tcp data)
{
	lace_stack *net = job->ftp.tool->net;
	struct lace_source source;
	int64_t n;
	lace_op op;

	if (job->stream)
		lace_source_read(&source, sizeof source, read_piece, job);
	else
		lace_source_map(&source, sizeof source, map_piece, piece_done, job);
	op = lace_tcp_sendfile_start(net, data, &source, job->offset, job->len - job->offset, tool_progress, NULL,
				     job->ftp.tool);
	if (op < 0)
		return op;
	n = lace_tcp_shutdown(net, data);
	if (n >= 0)
		n = lace_op_wait(net, op);
	lace_op_close(net, op);
	if (n >= 0 && job->lent != job->given_back) {
		fprintf(stderr, "%llu bytes were lent, %llu given back\n", (unsigned long long)job->lent,
			(unsigned long long)job->given_back);
		return LACE_EIO;
	}
	return n;
}

/* Sends the file by read and send. */
static int64_t send_copied(struct job *job, lace_tcp data)
{
	static char in[COPY], out[2 * COPY];
	lace_stack *net = job->ftp.tool->net;
	uint64_t done = job->offset;
	int64_t rc;

	while (done < job->len) {
		ssize_t n = pread(job->fd, in, COPY, (off_t)done), len = n;
		const char *bytes = in;

		if (n < 0)
			return failed_file(job->local);
		if (n == 0) {
			lace_tcp_abort(net, data);
			return LACE_ENODATA;
		}
		if (job->ascii) {
			len = 0;
			bytes = out;
			for (ssize_t i = 0; i < n; i++) {
				if (in[i] == '\n')
					out[len++] = '\r';
				out[len++] = in[i];
			}
		}
		rc = lace_tcp_send_all(net, data, bytes, (size_t)len);
		if (rc != len)
			return rc < 0 ? rc : LACE_ECONNRESET;
		done += (uint64_t)n;
		tool_progress(job->ftp.tool, 0, done, job->len);
	}
	rc = lace_tcp_shutdown(net, data);
	return rc < 0 ? rc : (int64_t)(done - job->offset);
}

static int64_t open_local(struct job *job)
{
	struct stat st;

	job->fd = open(job->local, O_RDONLY);
	if (job->fd < 0 || fstat(job->fd, &st))
		return failed_file(job->local);
	job->len = (uint64_t)st.st_size;
	if (job->len && !job->copy && !job->stream)
		job->map = mmap(NULL, job->len, PROT_READ, MAP_SHARED | MAP_POPULATE, job->fd, 0);
	return job->map == MAP_FAILED ? failed_file(job->local) : 0;
}

static int64_t put(struct job *job)
{
	struct ftp *ftp = &job->ftp;
	int64_t rc, n;
	lace_tcp data;

	if (job->resume) {
		rc = ftp_size(ftp, job->path);
		if (rc < 0 && rc != LACE_EREMOTEIO)
			return rc;
		job->offset = rc < 0 ? 0 : (uint64_t)rc;
	}
	if (job->offset > job->len)
		return LACE_EINVAL;
	tool_begin(ftp->tool);
	data = ftp_transfer(ftp, "STOR", job->path, job->offset);
	if (data < 0)
		return data;
	n = job->copy ? send_copied(job, data) : send_whole(job, data);
	/* The server has its say about the file in any case; one that refuses to go on resets the connection. */
	rc = ftp_transfer_end(ftp, data, n < 0);
	if (rc == LACE_EREMOTEIO || n >= 0)
		return rc < 0 ? rc : n;
	return n;
}

/* ---- get ---- */

/* Receives to where the file is to lie. */
static int64_t receive_placed(struct job *job, lace_tcp data)
{
	lace_stack *net = job->ftp.tool->net;
	int64_t n = 0, done = -1;
	char byte;
	int now, rc = lace_tcp_recv_into(net, data, job->memory, job->room);

	while (rc >= 0) {
		now = lace_tcp_status(net, data);
		if (now < 0)
			return now;
		if (done < 0) {
			n = lace_tcp_region(net, data);
			if (n < 0)
				return n;
			tool_progress(job->ftp.tool, 0, (uint64_t)n, job->expected == UINT64_MAX ? 0 : job->expected);
			if ((uint64_t)n == job->room || (now & (LACE_TCP_FINISHED | LACE_TCP_CLOSED)))
				done = lace_tcp_region_finish(net, data);
		}
		/* What comes behind a full region comes through the ring. */
		if (done >= 0 && lace_tcp_peek(net, data, &byte, 1) > 0)
			return LACE_EFBIG;
		if (now & (LACE_TCP_FINISHED | LACE_TCP_CLOSED)) {
			rc = lace_tcp_error(net, data);
			return rc < 0 ? rc : done;
		}
		rc = ftp_turn(&job->ftp);
	}
	return rc;
}

/* Receives through the ring. */
static int64_t receive_copied(struct job *job, lace_tcp data)
{
	static char in[COPY];
	lace_stack *net = job->ftp.tool->net;
	size_t done = 0;
	int held = 0; /* a CR that may be half of a line's end */
	int64_t n;

	while ((n = lace_tcp_recv_wait(net, data, in, COPY)) > 0 || n == LACE_EAGAIN) {
		if (n > 0 && done + (size_t)n + 1 > job->room)
			return LACE_EFBIG;
		if (n > 0 && !job->ascii) {
			memcpy(job->memory + done, in, (size_t)n);
			done += (size_t)n;
		}
		for (int64_t i = 0; job->ascii && i < n; i++) {
			if (held && in[i] != '\n')
				job->memory[done++] = '\r';
			held = in[i] == '\r';
			if (!held)
				job->memory[done++] = (uint8_t)in[i];
		}
		tool_progress(job->ftp.tool, 0, done, job->expected == UINT64_MAX ? 0 : job->expected);
	}
	if (held)
		job->memory[done++] = '\r';
	return n < 0 ? n : (int64_t)done;
}

static int64_t get(struct job *job)
{
	struct ftp *ftp = &job->ftp;
	int64_t rc, n;
	lace_tcp data;
	struct stat st;

	if (job->resume && job->local && !stat(job->local, &st))
		job->offset = (uint64_t)st.st_size;
	job->expected = UINT64_MAX;
	if (!job->ascii) {
		rc = ftp_size(ftp, job->path);
		if (rc < 0 && rc != LACE_EREMOTEIO)
			return rc;
		if (rc >= 0 && (uint64_t)rc < job->offset)
			return LACE_EINVAL;
		if (rc >= 0)
			job->expected = (uint64_t)rc - job->offset;
		if (job->expected != UINT64_MAX && job->expected > job->room)
			return LACE_EFBIG;
	}
	tool_begin(ftp->tool);
	data = ftp_transfer(ftp, "RETR", job->path, job->offset);
	if (data < 0)
		return data;
	n = job->copy ? receive_copied(job, data) : receive_placed(job, data);
	rc = ftp_transfer_end(ftp, data, n < 0);
	if (rc == LACE_EREMOTEIO || n >= 0)
		n = rc < 0 ? rc : n;
	/* The end of the connection is the end of the file (RFC 959 §3.4.1), wherever that came. */
	if (n >= 0 && job->expected != UINT64_MAX && (uint64_t)n != job->expected)
		return LACE_ENODATA;
	return n;
}

static int64_t store(struct job *job, size_t n)
{
	FILE *f = fopen(job->local, job->resume ? "ab" : "wb");
	int bad = !f || fwrite(job->memory, 1, n, f) != n;

	if (f && fclose(f))
		bad = 1;
	return bad ? failed_file(job->local) : 0;
}

/* ---- the command ---- */

static int options(struct job *job, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "copy", no_argument, NULL, 'c' },	 { "ascii", no_argument, NULL, 'a' },
		{ "resume", no_argument, NULL, 'C' },	 { "sha256", no_argument, NULL, 'S' },
		{ "pasv", no_argument, NULL, 'p' },	 { "offset", required_argument, NULL, 'O' },
		{ "room", required_argument, NULL, 'R' }, { "timeout", required_argument, NULL, 't' },
		{ "verbose", no_argument, NULL, 'v' },	 { "stream", no_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	char *colon;
	int c;

	while ((c = getopt_long(argc, argv, "o:u:t:v", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			job->copy = 1;
			break;
		case 'a':
			job->ascii = job->copy = 1;
			break;
		case 's':
			job->stream = 1;
			break;
		case 'C':
			job->resume = 1;
			break;
		case 'S':
			job->hash = 1;
			break;
		case 'p':
			job->ftp.pasv = 1;
			break;
		case 'O':
			job->offset = tool_number(optarg, 0, 1ul << 40);
			break;
		case 'R':
			job->room = tool_number(optarg, 1, ROOM);
			break;
		case 't':
			job->ftp.timeout_ms = (uint32_t)tool_number(optarg, 1, 3600000);
			break;
		case 'v':
			job->ftp.verbose = 1;
			break;
		case 'o':
			job->local = optarg;
			break;
		case 'u':
			colon = strchr(optarg, ':');
			if (colon)
				*colon = 0;
			job->ftp.user = optarg;
			job->ftp.password = colon ? colon + 1 : "";
			break;
		default:
			return 2;
		}
	}
	/* Offsets count bytes of the file as it lies there, which differ from those of lines (RFC 3659 §5). */
	return job->ascii && (job->resume || job->offset) ? 2 : 0;
}

int lace_cmd_ftp(struct tool *tool, int argc, char **argv)
{
	static struct job job;
	int putting = argc > 1 && !strcmp(argv[1], "put");
	const char *host;
	char hex[65];
	int64_t n = 0;

	job.fd = -1;
	job.room = ROOM;
	job.ftp.tool = tool;
	job.ftp.user = "anonymous";
	job.ftp.password = "lace@";
	job.ftp.timeout_ms = 30000;
	if (argc < 2 || (!putting && strcmp(argv[1], "get")) || options(&job, argc - 1, argv + 1))
		return 2;
	argc -= 1;
	argv += 1;
	if (optind + 2 + putting != argc)
		return 2;
	if (putting) {
		job.local = argv[optind++];
		n = open_local(&job);
		if (n < 0)
			return 1;
	} else {
		job.memory = mmap(NULL, job.room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (job.memory == MAP_FAILED)
			return failed_file("memory") < 0;
	}
	host = argv[optind];
	job.path = argv[optind + 1];
	n = ftp_open(&job.ftp, host, job.ascii);
	if (n >= 0)
		n = putting ? put(&job) : get(&job);
	if (n >= 0)
		tool_done(tool, n);
	else if (n != LACE_EREMOTEIO) /* then what the server said was shown */
		tool_failed(host, n);
	ftp_close(&job.ftp);
	if (n >= 0 && !putting && job.local && store(&job, (size_t)n) < 0)
		return 1;
	if (n >= 0 && !putting && job.hash) {
		sha256_hex(job.memory, (size_t)n, hex);
		printf("sha256 %s\n", hex);
	}
	return n < 0;
}
