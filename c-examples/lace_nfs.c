/* lace nfs: an NFS export, as a boot loader would look at it and boot from it. */
#define _GNU_SOURCE
#include "bootlace_sync.h"
#include "lace_tool.h"
#include "sha256.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROOM (1ul << 30) /* address space; pages that no byte reaches cost nothing */

/* What the command line says. */
struct request {
	struct lace_nfs nfs;
	struct lace_nfs_get get;
	const char *path, *output;
	size_t room, piece, readahead;
	int hash;
};

static const char short_options[] = "tur:d:o:";
static const struct option long_options[] = {
	{ "tcp", no_argument, NULL, 't' },          { "udp", no_argument, NULL, 'u' },
	{ "offset", required_argument, NULL, 'O' }, { "length", required_argument, NULL, 'L' },
	{ "room", required_argument, NULL, 'R' },   { "timeout", required_argument, NULL, 'T' },
	{ "sha256", no_argument, NULL, 'H' },       { "piece", required_argument, NULL, 'P' },
	{ "readahead", required_argument, NULL, 'A' },
	{ NULL, 0, NULL, 0 },
};

/* Reads options and operands, of which the first is HOST:EXPORT; nonzero if they make no sense. */
static int parse(struct request *q, int argc, char **argv, int operands)
{
	char *colon;
	int c;

	memset(q, 0, sizeof *q);
	lace_nfs_init(&q->nfs, sizeof q->nfs);
	lace_nfs_get_init(&q->get, sizeof q->get);
	q->room = ROOM;
	q->readahead = 1u << 18;
	while ((c = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		switch (c) {
		case 't':
			q->nfs.transport = LACE_NFS_TCP;
			break;
		case 'u':
			q->nfs.transport = LACE_NFS_UDP;
			break;
		case 'r':
			q->get.read_size = (uint32_t)tool_number(optarg, 64, 1u << 20);
			break;
		case 'd':
			q->get.depth = (uint32_t)tool_number(optarg, 1, 255);
			break;
		case 'o':
			q->output = optarg;
			break;
		case 'O':
			q->get.offset = tool_number(optarg, 0, ~0ul >> 1);
			break;
		case 'L':
			q->get.len = tool_number(optarg, 0, ~0ul >> 1);
			break;
		case 'R':
			q->room = tool_number(optarg, 1, ROOM);
			break;
		case 'T':
			q->nfs.timeout_ms = q->get.timeout_ms = (uint32_t)tool_number(optarg, 1, 3600000);
			break;
		case 'H':
			q->hash = 1;
			break;
		case 'P':
			q->piece = tool_number(optarg, 1, ROOM);
			break;
		case 'A':
			q->readahead = tool_number(optarg, 512, ROOM);
			break;
		default:
			return 1;
		}
	}
	if (optind + operands != argc)
		return 1;
	colon = strchr(argv[optind], ':');
	if (colon)
		*colon = 0;
	tool_peer(&q->nfs.server, argv[optind], 0);
	q->nfs.path = colon ? colon + 1 : NULL;
	q->path = operands > 1 ? argv[optind + 1] : "";
	return operands > 1 && !colon;
}

/* Waits for an operation; says why it failed. It stays open. */
static int64_t finish(struct tool *tool, const char *what, lace_op op)
{
	int64_t n = lace_op_wait(tool->net, op);

	if (n < 0)
		tool_failed_op(tool, what, op, n);
	return n;
}

static int mount(struct tool *tool, struct request *q, struct lace_mount *mount)
{
	lace_op op = lace_nfs_mount_start(tool->net, &q->nfs);
	int64_t n = finish(tool, q->nfs.path, op);

	lace_mount_init(mount, sizeof *mount);
	if (n >= 0 && (n = lace_nfs_mount_result(tool->net, op, mount)) < 0)
		tool_failed(q->nfs.path, n);
	lace_op_close(tool->net, op);
	q->get.mount = mount;
	q->get.path = q->path;
	return n < 0;
}

static void *memory(size_t room)
{
	void *p = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p != MAP_FAILED)
		return p;
	perror("memory");
	return NULL;
}

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

/* Reads a file as a file system driver would: in pieces, one after the other. */
static int64_t read_pieces(struct tool *tool, const struct request *q, char *to)
{
	void *ahead = memory(q->readahead);
	lace_file file = lace_nfs_open_start(tool->net, &q->get, ahead, q->readahead);
	int64_t n = lace_file_wait(tool->net, file);
	size_t sum = 0;

	while (n >= 0 && sum < q->room) {
		size_t piece = q->room - sum < q->piece ? q->room - sum : q->piece;

		n = lace_file_read(tool->net, file, to + sum, piece);
		if (n <= 0)
			break;
		sum += (size_t)n;
	}
	if (n < 0)
		tool_failed_op(tool, q->path, file, n);
	else
		tool_done(tool, (int64_t)sum);
	if (file >= 0)
		lace_file_close(tool->net, file);
	munmap(ahead, q->readahead);
	return n < 0 ? n : (int64_t)sum;
}

static int64_t read_whole(struct tool *tool, struct request *q, void *to)
{
	struct lace_sink sink;
	lace_op op;
	int64_t n;

	q->get.progress = tool_progress;
	q->get.ctx = tool;
	lace_sink_memory(&sink, sizeof sink, to, q->room);
	op = lace_nfs_get_start(tool->net, &q->get, &sink);
	n = finish(tool, q->path, op);
	if (n >= 0)
		tool_done(tool, n);
	lace_op_close(tool->net, op);
	return n;
}

static int get(struct tool *tool, int argc, char **argv)
{
	struct lace_mount m;
	struct request q;
	char hex[65];
	void *room;
	int64_t n;
	int rc = 1;

	if (parse(&q, argc, argv, 2))
		return 2;
	if (mount(tool, &q, &m) || !(room = memory(q.room)))
		return 1;
	tool_begin(tool);
	n = q.piece ? read_pieces(tool, &q, room) : read_whole(tool, &q, room);
	if (n >= 0) {
		printf("transport %s\n", m.transport == LACE_NFS_TCP ? "tcp" : "udp");
		rc = q.output && save(q.output, room, (size_t)n);
		if (q.hash) {
			sha256_hex(room, (size_t)n, hex);
			printf("sha256 %s\n", hex);
		}
	}
	munmap(room, q.room);
	return rc;
}

static int64_t to_stdout(void *ctx, uint64_t offset, const void *data, uint32_t len)
{
	(void)ctx;
	(void)offset;
	return fwrite(data, 1, len, stdout) == len ? (int64_t)len : LACE_EIO;
}

static int cat(struct tool *tool, int argc, char **argv)
{
	struct lace_mount m;
	struct lace_sink sink;
	struct request q;
	lace_op op;
	int64_t n;

	if (parse(&q, argc, argv, 2))
		return 2;
	if (mount(tool, &q, &m))
		return 1;
	lace_sink_write(&sink, sizeof sink, to_stdout, NULL);
	op = lace_nfs_get_start(tool->net, &q.get, &sink);
	n = finish(tool, q.path, op);
	lace_op_close(tool->net, op);
	return n < 0 || fflush(stdout);
}

/* One line for a file: type and permissions, size, time of the last change. */
static void line(unsigned kind, unsigned mode, uint64_t size, unsigned mtime)
{
	printf("%c%04o %12llu %10u ", "?-dbclsp"[kind < 8 ? kind : 0], mode & 07777, (unsigned long long)size, mtime);
}

static int ls(struct tool *tool, int argc, char **argv)
{
	struct lace_mount m;
	struct lace_sink sink;
	struct request q;
	char *room, *p;
	lace_op op;
	int64_t n;

	if (parse(&q, argc, argv, 2))
		return 2;
	if (mount(tool, &q, &m) || !(room = memory(q.room)))
		return 1;
	lace_sink_memory(&sink, sizeof sink, room, q.room);
	op = lace_nfs_list_start(tool->net, &m, q.path, &sink, NULL, NULL);
	n = finish(tool, q.path, op);
	p = room;
	for (int64_t i = 0; i < n; i++) {
		const struct lace_nfs_entry *e = (const void *)p;

		line(e->kind, e->mode, e->size, e->mtime_s);
		puts(p + sizeof *e);
		p += e->record_len;
	}
	lace_op_close(tool->net, op);
	munmap(room, q.room);
	return n < 0;
}

static int stat(struct tool *tool, int argc, char **argv)
{
	struct lace_nfs_attr a;
	struct lace_mount m;
	struct lace_sink sink;
	struct request q;
	char target[1025] = "";
	lace_op op;
	int64_t n;

	if (parse(&q, argc, argv, 2))
		return 2;
	if (mount(tool, &q, &m))
		return 1;
	lace_nfs_attr_init(&a, sizeof a);
	op = lace_nfs_getattr_start(tool->net, &m, q.path, 0, NULL, NULL);
	n = finish(tool, q.path, op);
	if (n >= 0)
		lace_nfs_attributes(tool->net, op, &a);
	lace_op_close(tool->net, op);
	if (n < 0)
		return 1;
	if (a.kind == LACE_NFS_LINK) {
		lace_sink_memory(&sink, sizeof sink, target, sizeof target - 1);
		op = lace_nfs_readlink_start(tool->net, &m, q.path, &sink, NULL, NULL);
		n = finish(tool, q.path, op);
		lace_op_close(tool->net, op);
	}
	line(a.kind, a.mode, a.file_size, a.mtime_s);
	printf("%s%s%s\n", q.path, *target ? " -> " : "", target);
	printf("links %u user %u group %u used %llu file %llu\n", a.links, a.uid, a.gid, (unsigned long long)a.used,
	       (unsigned long long)a.fileid);
	return n < 0;
}

static int exports(struct tool *tool, int argc, char **argv)
{
	struct lace_sink sink;
	struct request q;
	lace_op op;
	int64_t n;

	if (parse(&q, argc, argv, 1))
		return 2;
	lace_sink_write(&sink, sizeof sink, to_stdout, NULL);
	op = lace_nfs_exports_start(tool->net, &q.nfs, &sink);
	n = finish(tool, argv[optind], op);
	lace_op_close(tool->net, op);
	return n < 0 || fflush(stdout);
}

int lace_cmd_nfs(struct tool *tool, int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(struct tool *, int, char **);
	} commands[] = { { "ls", ls }, { "stat", stat }, { "cat", cat }, { "get", get }, { "exports", exports } };

	for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(tool, argc - 1, argv + 1);
	return 2;
}
