/*
 * lace http: files by HTTP into memory, as a boot loader would, and from there to a file if asked. What has come of a file
 * when a transfer fails is kept with --resume, beside what tells whether the rest is still that of the same file (FILE.tag).
 */
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
#define TAG 129

struct job {
	struct lace_http http;
	const char *output;
	char tag_path[512], tag[TAG], fields[2049];
	uint8_t *memory;
	size_t room, have; /* bytes that earlier runs fetched */
	int resume, hash;
};

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

static size_t load(const char *path, void *data, size_t room)
{
	FILE *f = fopen(path, "rb");
	size_t len = f ? fread(data, 1, room, f) : 0;

	if (f)
		fclose(f);
	return len;
}

/* Takes up what an earlier run left. */
static void take_up(struct job *job)
{
	size_t len = load(job->tag_path, job->tag, sizeof job->tag - 1);

	job->tag[len] = 0;
	if (!len)
		return;
	job->have = load(job->output, job->memory, job->room - 1);
	job->http.offset = job->have;
	job->http.if_range = job->have ? job->tag : NULL;
}

/* Keeps what came of a file for a later run; n: the bytes that did. */
static void keep(struct job *job, lace_stack *net, lace_op op, size_t n)
{
	char tag[TAG];
	int len = lace_http_validator(net, op, tag, sizeof tag);

	if (len < 0 && job->have) /* no response came this time */
		len = snprintf(tag, sizeof tag, "%s", job->tag);
	if (len <= 0 || !n || save(job->output, job->memory, n) || save(job->tag_path, tag, (size_t)len))
		return;
	fprintf(stderr, "%s: %zu bytes are kept; --resume fetches the rest\n", job->output, n);
}

static int64_t fetch(struct tool *tool, struct job *job)
{
	struct lace_sink sink;
	uint64_t done = 0;
	lace_op op;
	int64_t n;

	lace_sink_memory(&sink, sizeof sink, job->memory + job->have, job->room - job->have);
	tool_begin(tool);
	op = lace_http_get_start(tool->net, &job->http, &sink);
	n = lace_op_wait(tool->net, op);
	if (n < 0)
		tool_failed_op(tool, job->http.url, op, n);
	if (n < 0 && op >= 0 && job->resume && n != LACE_ESTALE) {
		lace_op_progress(tool->net, op, &done, NULL);
		keep(job, tool->net, op, job->have + (size_t)done);
	}
	if (op >= 0)
		lace_op_close(tool->net, op);
	return n;
}

static int add_field(struct job *job, const char *field)
{
	size_t len = strlen(job->fields);

	if (len + strlen(field) + 2 > sizeof job->fields)
		return 2;
	snprintf(job->fields + len, sizeof job->fields - len, "%s\n", field);
	job->http.fields = job->fields;
	return 0;
}

/* Reads FIRST- or FIRST-LAST. */
static int range(struct job *job, const char *text)
{
	char *end;
	unsigned long long first = strtoull(text, &end, 10), last;

	if (end == text || *end != '-')
		return 2;
	job->http.offset = first;
	if (!end[1])
		return 0;
	last = strtoull(end + 1, &end, 10);
	if (*end || last < first)
		return 2;
	job->http.len = last - first + 1;
	return 0;
}

/* Reads the options that both subcommands have; 0, or 2 for one that is none. */
static int options(struct job *job, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "sha256", no_argument, NULL, 'S' },	    { "room", required_argument, NULL, 'R' },
		{ "timeout", required_argument, NULL, 't' }, { "retries", required_argument, NULL, 'r' },
		{ "resume", no_argument, NULL, 'C' },	    { "range", required_argument, NULL, 'g' },
		{ "user", required_argument, NULL, 'u' },    { "redirects", required_argument, NULL, 'L' },
		{ NULL, 0, NULL, 0 },
	};
	char *colon;
	int c, bad = 0;

	while (!bad && (c = getopt_long(argc, argv, "o:H:u:t:r:", longs, NULL)) != -1) {
		switch (c) {
		case 'o':
			job->output = optarg;
			snprintf(job->tag_path, sizeof job->tag_path, "%s.tag", optarg);
			break;
		case 'H':
			bad = add_field(job, optarg);
			break;
		case 'u':
			colon = strchr(optarg, ':');
			if (colon)
				*colon = 0;
			job->http.user = optarg;
			job->http.password = colon ? colon + 1 : NULL;
			break;
		case 't':
			job->http.timeout_ms = (uint32_t)tool_number(optarg, 1, 3600000);
			break;
		case 'r':
			job->http.retries = (uint32_t)tool_number(optarg, 0, 255);
			break;
		case 'L':
			job->http.redirects = (uint32_t)tool_number(optarg, 0, 255);
			break;
		case 'g':
			bad = range(job, optarg);
			break;
		case 'S':
			job->hash = 1;
			break;
		case 'R':
			job->room = tool_number(optarg, 1, ROOM);
			break;
		case 'C':
			job->resume = 1;
			break;
		default:
			bad = 2;
		}
	}
	if (optind + 1 != argc || (job->resume && (!job->output || job->http.offset || job->http.len != UINT64_MAX)))
		return 2;
	job->http.url = argv[optind];
	return bad;
}

static int get(struct tool *tool, struct job *job)
{
	char hex[65];
	size_t len;
	int64_t n;
	int rc;

	job->http.progress = tool_progress;
	job->http.ctx = tool;
	job->memory = mmap(NULL, job->room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (job->memory == MAP_FAILED) {
		perror("memory");
		return 1;
	}
	if (job->resume)
		take_up(job);
	n = fetch(tool, job);
	if (n == LACE_ESTALE && job->have) {
		/* Another file by now: from its beginning. */
		job->have = 0;
		job->http.offset = 0;
		job->http.if_range = NULL;
		n = fetch(tool, job);
	}
	rc = n < 0;
	if (!rc) {
		tool_done(tool, n);
		len = job->have + (size_t)n;
		rc = job->output && save(job->output, job->memory, len);
		if (job->resume)
			remove(job->tag_path);
		if (job->hash) {
			sha256_hex(job->memory, len, hex);
			printf("sha256 %s\n", hex);
		}
	}
	munmap(job->memory, job->room);
	return rc;
}

static int head(struct tool *tool, struct job *job)
{
	lace_op op = lace_http_head_start(tool->net, &job->http);
	int64_t n = lace_op_wait(tool->net, op);
	char text[4097];

	if (n < 0)
		tool_failed_op(tool, job->http.url, op, n);
	else if (lace_http_field(tool->net, op, NULL, text, sizeof text) > 0)
		fputs(text, stdout);
	if (op >= 0)
		lace_op_close(tool->net, op);
	return n < 0;
}

int lace_cmd_http(struct tool *tool, int argc, char **argv)
{
	static struct job job;

	if (argc < 2)
		return 2;
	job.room = ROOM;
	lace_http_init(&job.http, sizeof job.http);
	if (options(&job, argc - 1, argv + 1))
		return 2;
	if (!strcmp(argv[1], "get"))
		return get(tool, &job);
	if (!strcmp(argv[1], "head"))
		return head(tool, &job);
	return 2;
}
