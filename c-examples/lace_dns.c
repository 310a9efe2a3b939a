/* lace dns: looks a name up and shows every address, one a line. */
#define _DEFAULT_SOURCE
#include "lace_tool.h"

#include <getopt.h>
#include <stdio.h>

int lace_cmd_dns(struct tool *tool, int argc, char **argv)
{
	static const struct option longs[] = { { "timeout", required_argument, NULL, 't' }, { NULL, 0, NULL, 0 } };
	struct lace_dns dns;
	struct lace_ip ip;
	char text[LACE_IP_TEXT];
	lace_op op;
	int64_t n;
	int c;

	lace_dns_init(&dns, sizeof dns);
	while ((c = getopt_long(argc, argv, "t:", longs, NULL)) != -1) {
		if (c != 't')
			return 2;
		dns.timeout_ms = (uint32_t)tool_number(optarg, 1, 3600000);
	}
	if (optind + 1 != argc)
		return 2;
	dns.name = argv[optind];
	op = lace_dns_start(tool->net, &dns);
	n = lace_op_wait(tool->net, op);
	if (n < 0)
		tool_failed_op(tool, dns.name, op, n);
	for (uint32_t i = 0; i < n && lace_dns_address(tool->net, op, i, &ip) == LACE_OK; i++)
		puts(tool_ip_text(&ip, text));
	if (op >= 0)
		lace_op_close(tool->net, op);
	return n < 0;
}
