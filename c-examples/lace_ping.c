/* lace ping: echo requests, with statistics. */
#define _DEFAULT_SOURCE
#include "bootlace_sync.h"
#include "lace_tool.h"

#include <stdio.h>
#include <unistd.h>

int lace_cmd_ping(struct tool *tool, int argc, char **argv)
{
	struct lace_ping ping;
	struct lace_ping_stats stats;
	lace_op op;
	int64_t n;
	int c;

	lace_ping_init(&ping, sizeof ping);
	lace_ping_stats_init(&stats, sizeof stats);
	ping.count = 4;
	while ((c = getopt(argc, argv, "c:i:s:W:M")) != -1) {
		switch (c) {
		case 'c':
			ping.count = (uint32_t)tool_number(optarg, 1, 1000000);
			break;
		case 'i':
			ping.interval_ms = (uint32_t)tool_number(optarg, 1, 3600000);
			break;
		case 's':
			ping.payload = (uint32_t)tool_number(optarg, 0, 65507);
			break;
		case 'W':
			ping.timeout_ms = (uint32_t)tool_number(optarg, 1, 3600000);
			break;
		case 'M':
			ping.dont_fragment = 1;
			break;
		default:
			return 2;
		}
	}
	if (optind + 1 != argc)
		return 2;
	n = lace_dns(tool->net, argv[optind], &ping.peer.ip);
	if (n < 0)
		return tool_failed(argv[optind], n);
	op = lace_ping_start(tool->net, &ping);
	if (op < 0)
		return tool_failed("ping", op);
	n = lace_op_wait(tool->net, op);
	if (lace_ping_result(tool->net, op, &stats) == LACE_OK)
		printf("%u sent, %u received, %u duplicates, %u errors, min/avg/max %u/%u/%u us\n", stats.sent,
		       stats.received, stats.duplicates, stats.errors, stats.min_us, stats.mean_us, stats.max_us);
	if (n < 0)
		tool_failed_op(tool, "ping", op, n);
	lace_op_close(tool->net, op);
	return n < 0;
}
