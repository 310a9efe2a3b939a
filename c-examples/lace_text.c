/* Addresses and progress as text: what the subcommands of the `lace` tool share. */
#include "lace_tool.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *tool_ip_text(const struct lace_ip *ip, char text[LACE_IP_TEXT])
{
	if (lace_ip_format(ip, text, LACE_IP_TEXT) < 0)
		snprintf(text, LACE_IP_TEXT, "?");
	return text;
}

void tool_peer(struct lace_peer *peer, const char *text, uint16_t port)
{
	memset(peer, 0, sizeof *peer);
	peer->name = text;
	peer->port = port;
}

void tool_begin(struct tool *tool)
{
	tool->start_us = tool->shown_us = linux_now_us();
}

void tool_progress(void *ctx, lace_op op, uint64_t done, uint64_t total)
{
	struct tool *tool = ctx;
	uint64_t now = linux_now_us();
	double seconds = (double)(now - tool->start_us) / 1e6, rate = (double)done / (seconds > 0 ? seconds : 1e-6);

	(void)op;
	if (tool->quiet || now - tool->shown_us < 200000)
		return;
	tool->shown_us = now;
	fprintf(stderr, "\r%8.1f MiB", (double)done / 1048576);
	if (total && done <= total && rate > 0)
		fprintf(stderr, " of %.1f MiB, %3.0f %%, %7.2f MiB/s, %.0f s left   ", (double)total / 1048576,
			100.0 * (double)done / (double)total, rate / 1048576, (double)(total - done) / rate);
	else
		fprintf(stderr, ", %7.2f MiB/s   ", rate / 1048576);
	fflush(stderr);
}

int tool_failed(const char *what, int64_t error)
{
	fprintf(stderr, "%s: %s (%lld)\n", what, lace_strerror(error), (long long)error);
	return 1;
}

int tool_failed_op(struct tool *tool, const char *what, lace_op op, int64_t error)
{
	static const char *const kinds[] = { "", "TFTP", "ICMP", "DNS", "DHCP", "NFS", "RPC", "HTTP" };
	struct lace_detail d;
	char from[LACE_IP_TEXT];

	if (lace_detail_init(&d, sizeof d) || lace_op_detail(tool->net, op, &d) || d.kind == LACE_DETAIL_NONE)
		return tool_failed(what, error);
	fprintf(stderr, "%s: %s (%lld): %s says", what, lace_strerror(error), (long long)error,
		d.from.family ? tool_ip_text(&d.from, from) : "the server");
	if (d.text[0])
		fprintf(stderr, " \"%s\"", d.text);
	if (d.kind == LACE_DETAIL_ICMP)
		fprintf(stderr, " ICMP type %u code %u\n", (unsigned)d.code / 256, (unsigned)d.code % 256);
	else
		fprintf(stderr, " (%s error %u)\n", kinds[d.kind < LACE_DETAIL_HTTP ? d.kind : LACE_DETAIL_HTTP],
			(unsigned)d.code);
	return 1;
}

void tool_done(struct tool *tool, int64_t n)
{
	double seconds = (double)(linux_now_us() - tool->start_us) / 1e6;

	if (tool->shown_us != tool->start_us)
		fputc('\n', stderr);
	printf("%lld bytes in %.6f s (%.2f MiB/s)\n", (long long)n, seconds,
	       (double)n / 1048576 / (seconds > 0 ? seconds : 1e-6));
}
