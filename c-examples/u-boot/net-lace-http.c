// SPDX-License-Identifier: MIT OR Apache-2.0
/* wget for U-Boot over Bootlace, also for EFI's HTTP protocol and HTTP boot (wget_request, in trees that have it). */
#include "net-lace.h"

#include <env.h>
#include <image.h>
#include <mapmem.h>
#include <vsprintf.h>

#if LACE_NEW_TREE
#define QUIET (wget_info && wget_info->silent)
#define HEAD (wget_info && wget_info->method == WGET_HTTP_METHOD_HEAD)
/* EFI fetches into memory that it has reserved itself. */
#define OWN (wget_info && !wget_info->set_bootdev)
#define ROOM (wget_info && wget_info->buffer_size ? wget_info->buffer_size : U32_MAX)
#else
#define QUIET 0
#define HEAD 0
#define OWN 0
#define ROOM U32_MAX
#endif

/*
 * "http://host[:port]/file" as it is; "[server:]file" as U-Boot's stacks have it, without a server from `httpserverip`, else
 * `serverip`, at the port `httpdstp`.
 */
static void make_url(char *url, size_t size)
{
	const char *ours = env_get("httpserverip");
	struct in_addr server = ours ? string_to_ip(ours) : net_server_ip;
	char file[sizeof(net_boot_file_name)];

	if (!strncmp(net_boot_file_name, "http://", 7)) {
		snprintf(url, size, "%s", net_boot_file_name);
		return;
	}
	if (!net_parse_bootfile(&server, file, sizeof(file)))
		file[0] = '\0';
	snprintf(url, size, "http://%pI4:%lu%s%s", &server, env_get_ulong("httpdstp", 10, 80), file[0] == '/' ? "" : "/", file);
}

/* What U-Boot's callers want to know of the response. */
static void tell_status(lace_op op)
{
#if LACE_NEW_TREE
	char text[128];
	int n = 0;

	if (!wget_info)
		return;
	wget_info->status_code = max(lace_http_status(lace, op), 0);
	if (lace_http_field(lace, op, "Content-Length", text, sizeof(text)) > 0)
		wget_info->hdr_cont_len = simple_strtoul(text, NULL, 10);
	if (!wget_info->headers)
		return;
	n = sprintf(wget_info->headers, "HTTP/1.1 %u\r\nContent-Length: %u\r\n", wget_info->status_code,
		    wget_info->hdr_cont_len);
	if (lace_http_field(lace, op, "Content-Type", text, sizeof(text)) > 0)
		n += sprintf(wget_info->headers + n, "Content-Type: %s\r\n", text);
	strcpy(wget_info->headers + n, "\r\n");
#endif
}

int lace_http_load(void)
{
	char url[sizeof(net_boot_file_name) + 32];
	struct lace_detail detail;
	struct lace_http http;
	struct lace_sink sink;
	struct lace_show show = { .quiet = QUIET };
	int64_t result;
	lace_op op;
	u64 room;
	int rc;

	make_url(url, sizeof(url));
	rc = lace_place(&sink, &room, OWN, ROOM);
	if (rc)
		return rc;
	lace_http_init(&http, sizeof(http));
	http.url = url;
	http.receive_max = 64 << 10; /* more than that is lost in small rings */
	http.progress = lace_show_progress;
	http.ctx = &show;
	lace_detail_init(&detail, sizeof(detail));
	lace_show_start(&show, "Loading");
	op = HEAD ? lace_http_head_start(lace, &http) : lace_http_get_start(lace, &http, &sink);
	result = lace_op_wait(lace, op);
	if (op >= 0) {
		tell_status(op);
		lace_op_detail(lace, op, &detail);
		lace_op_close(lace, op);
	}
#if LACE_NEW_TREE
	if (wget_info)
		wget_info->file_size = result > 0 && !HEAD ? result : 0;
#endif
	return lace_loaded("wget", HEAD && result > 0 ? 0 : result, &detail, &show, OWN ? NULL : "Http", url);
}

#if LACE_NEW_TREE
int wget_do_request(ulong dst_addr, char *uri)
{
	int rc;

	image_load_addr = dst_addr;
	snprintf(net_boot_file_name, sizeof(net_boot_file_name), "%s", uri);
	rc = net_loop(WGET);
	return rc < 0 ? rc : 0;
}

bool wget_validate_uri(char *uri)
{
	const char *c, *host = uri + 7;

	for (c = uri; *c; c++)
		if (*c <= ' ' || *c == 0x7f)
			return false;
	/* A host, without a user's name, and a path. */
	c = strncmp(uri, "http://", 7) ? NULL : strchr(host, '/');
	return c && c != host && !memchr(host, '@', c - host);
}
#endif
