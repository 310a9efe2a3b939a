/* lace tftp: files by TFTP into memory, as a boot loader would, and from there to a file if asked; and files to a server. */
#define _GNU_SOURCE
#include "bootlace_sync.h"
#include "lace_tool.h"
#include "sha256.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define AHEAD (256u << 10) /* what a transfer that is read in pieces may be ahead of the reader */
#define ROOM (1ul << 30) /* address space; pages that no byte reaches cost nothing */

static int save(const char *path, const void *data, size_t len)
{
	FILE *f = fopen(path, "wb");
	int bad = !f || fwrite(data, 1, len, f) != len;

	if (f && fclose(f))
		bad = 1;
	if (bad)
		perror(path);
	return bad;
}

/* Reads a file as a file system driver would: in pieces, one after the other, the transfer running ahead. */
static int64_t read_pieces(struct tool *tool, const struct lace_tftp_get *get, char *to, size_t room, size_t piece,
			   lace_op *op)
{
	static uint8_t ahead[AHEAD];
	size_t sum = 0;
	int64_t n;

	*op = lace_file_open_start(tool->net, get, ahead, sizeof ahead);
	n = lace_file_wait(tool->net, *op);
	while (n >= 0 && sum < room) {
		n = lace_file_read(tool->net, *op, to + sum, room - sum < piece ? room - sum : piece);
		if (n <= 0)
			break;
		sum += (size_t)n;
	}
	return n < 0 ? n : (int64_t)sum;
}

static int get(struct tool *tool, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "sha256", no_argument, NULL, 'H' },
		{ "room", required_argument, NULL, 'R' },
		{ "piece", required_argument, NULL, 'P' },
		{ "timeout", required_argument, NULL, 't' },
		{ "retries", required_argument, NULL, 'r' },
		{ "local-port", required_argument, NULL, 'L' },
		{ NULL, 0, NULL, 0 },
	};
	struct lace_tftp_get get;
	struct lace_sink sink;
	const char *output = NULL;
	size_t room = ROOM, piece = 0;
	int hash = 0, rc = 1, c;
	char hex[65];
	void *memory;
	lace_op op;
	int64_t n;

	lace_tftp_get_init(&get, sizeof get);
	while ((c = getopt_long(argc, argv, "b:w:o:t:r:", longs, NULL)) != -1) {
		switch (c) {
		case 'b':
			get.blksize = (uint16_t)tool_number(optarg, 8, 65464);
			break;
		case 'w':
			get.windowsize = (uint16_t)tool_number(optarg, 1, 32767);
			break;
		case 't':
			get.timeout_ms = (uint32_t)tool_number(optarg, 1, 255000);
			break;
		case 'r':
			get.retries = (uint32_t)tool_number(optarg, 1, 255);
			break;
		case 'L':
			get.local_port = (uint16_t)tool_number(optarg, 1, 65535);
			break;
		case 'o':
			output = optarg;
			break;
		case 'H':
			hash = 1;
			break;
		case 'R':
			room = tool_number(optarg, 1, ROOM);
			break;
		case 'P':
			piece = tool_number(optarg, 1, ROOM);
			break;
		default:
			return 2;
		}
	}
	if (optind + 2 != argc)
		return 2;
	memory = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		perror("memory");
		return 1;
	}
	tool_peer(&get.server, argv[optind], 0);
	get.path = argv[optind + 1];
	get.progress = tool_progress;
	get.ctx = tool;
	lace_sink_memory(&sink, sizeof sink, memory, room);
	tool_begin(tool);
	if (piece) {
		n = read_pieces(tool, &get, memory, room, piece, &op);
	} else {
		op = lace_tftp_get_start(tool->net, &get, &sink);
		n = lace_op_wait(tool->net, op);
	}
	if (n < 0) {
		tool_failed_op(tool, get.path, op, n);
	} else {
		tool_done(tool, n);
		rc = output && save(output, memory, (size_t)n);
		if (hash) {
			sha256_hex(memory, (size_t)n, hex);
			printf("sha256 %s\n", hex);
		}
	}
	lace_op_close(tool->net, op);
	munmap(memory, room);
	return rc;
}

/* A source that is read: what a file on a medium, with no memory to hold it, would be. */
static int64_t read_file(void *ctx, uint64_t offset, void *buffer, uint32_t len)
{
	FILE *f = ctx;
	size_t n;

	if (fseeko(f, (off_t)offset, SEEK_SET))
		return LACE_EIO;
	n = fread(buffer, 1, len, f);
	return !n && ferror(f) ? LACE_EIO : (int64_t)n;
}

/* The file at `path` as a source: in memory, or read as it is sent. */
static int load(const char *path, int stream, struct lace_source *source, FILE **file, void **memory, size_t *len)
{
	*file = fopen(path, "rb");
	if (!*file || fseeko(*file, 0, SEEK_END)) {
		perror(path);
		return 1;
	}
	*len = (size_t)ftello(*file);
	if (stream)
		return lace_source_read(source, sizeof *source, read_file, *file) < 0;
	*memory = malloc(*len ? *len : 1);
	if (!*memory || fseeko(*file, 0, SEEK_SET) || fread(*memory, 1, *len, *file) != *len) {
		perror(path);
		return 1;
	}
	return lace_source_memory(source, sizeof *source, *memory, *len) < 0;
}

static int put(struct tool *tool, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "stream", no_argument, NULL, 'S' },
		{ "timeout", required_argument, NULL, 't' },
		{ "retries", required_argument, NULL, 'r' },
		{ "local-port", required_argument, NULL, 'L' },
		{ NULL, 0, NULL, 0 },
	};
	struct lace_tftp_put put;
	struct lace_source source;
	void *memory = NULL;
	FILE *file = NULL;
	int stream = 0, rc = 1, c;
	size_t len = 0;
	lace_op op;
	int64_t n;

	lace_tftp_put_init(&put, sizeof put);
	while ((c = getopt_long(argc, argv, "b:w:t:r:", longs, NULL)) != -1) {
		switch (c) {
		case 'b':
			put.blksize = (uint16_t)tool_number(optarg, 8, 65464);
			break;
		case 'w':
			put.windowsize = (uint16_t)tool_number(optarg, 1, 32767);
			break;
		case 't':
			put.timeout_ms = (uint32_t)tool_number(optarg, 1, 255000);
			break;
		case 'r':
			put.retries = (uint32_t)tool_number(optarg, 1, 255);
			break;
		case 'L':
			put.local_port = (uint16_t)tool_number(optarg, 1, 65535);
			break;
		case 'S':
			stream = 1;
			break;
		default:
			return 2;
		}
	}
	if (optind + 3 != argc)
		return 2;
	if (!load(argv[optind], stream, &source, &file, &memory, &len)) {
		tool_peer(&put.server, argv[optind + 1], 0);
		put.path = argv[optind + 2];
		put.progress = tool_progress;
		put.ctx = tool;
		tool_begin(tool);
		op = lace_tftp_put_start(tool->net, &put, &source);
		n = lace_op_wait(tool->net, op);
		if (n < 0) {
			tool_failed_op(tool, put.path, op, n);
		} else {
			tool_done(tool, n);
			rc = 0;
		}
		lace_op_close(tool->net, op);
	}
	if (file)
		fclose(file);
	free(memory);
	return rc;
}

int lace_cmd_tftp(struct tool *tool, int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "get"))
		return get(tool, argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "put"))
		return put(tool, argc - 1, argv + 1);
	return 2;
}
