/* lace dhcp: gets a lease and shows it, one thing a line. */
#define _GNU_SOURCE
#include "bootlace_sync.h"
#include "lace_tool.h"

#include <getopt.h>
#include <stdio.h>

static void show(const char *what, const struct lace_ip *ip)
{
	char text[LACE_IP_TEXT];

	if (ip->family)
		printf("%s %s\n", what, tool_ip_text(ip, text));
}

static void show_text(const char *what, const char *text)
{
	if (text[0])
		printf("%s %s\n", what, text);
}

/* An option that is a list of addresses. */
static void show_option(const char *what, const struct lace_lease *lease, uint8_t code)
{
	uint8_t b[255];
	int n = lace_lease_option(lease, code, b, sizeof b);

	for (int i = 0; i + 4 <= n && i + 4 <= (int)sizeof b; i += 4)
		printf("%s %u.%u.%u.%u\n", what, b[i], b[i + 1], b[i + 2], b[i + 3]);
}

static void show_lease(const struct lace_lease *lease)
{
	char text[LACE_IP_TEXT];

	printf("address %s/%u\n", tool_ip_text(&lease->ip, text), (unsigned)lease->prefix);
	show("router", &lease->gateway);
	for (int i = 0; i < 3; i++)
		show("dns", &lease->dns[i]);
	show_option("ntp", lease, 42);
	show_text("domain", lease->domain);
	show_text("host-name", lease->host_name);
	show("server", &lease->server);
	if (lease->boot_server.name)
		show_text("boot-server", lease->boot_server.name);
	else
		show("boot-server", &lease->boot_server.ip);
	show_text("boot-file", lease->boot_file);
	show_text("root-path", lease->root_path);
	if (lease->mtu)
		printf("mtu %u\n", (unsigned)lease->mtu);
	if (lease->lease_s == 0xffffffff)
		printf("lease for ever\n");
	else
		printf("lease %u s\n", (unsigned)lease->lease_s);
}

static int get_lease(struct tool *tool, const struct lace_dhcp *dhcp)
{
	int64_t n;

	lace_lease_init(&tool->lease, sizeof tool->lease);
	n = lace_dhcp(tool->net, tool->nic, dhcp, &tool->lease);
	if (n < 0)
		return tool_failed("dhcp", n);
	tool->leased = 1;
	return 0;
}

int tool_dhcp(struct tool *tool, uint32_t timeout_ms)
{
	struct lace_dhcp dhcp;

	lace_dhcp_init(&dhcp, sizeof dhcp);
	dhcp.timeout_ms = timeout_ms;
	return get_lease(tool, &dhcp);
}

int lace_cmd_dhcp(struct tool *tool, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "timeout", required_argument, NULL, 't' },
		{ "pxe", required_argument, NULL, 'p' },
		{ NULL, 0, NULL, 0 },
	};
	struct lace_dhcp dhcp;
	int c;

	lace_dhcp_init(&dhcp, sizeof dhcp);
	while ((c = getopt_long(argc, argv, "t:p:", longs, NULL)) != -1) {
		if (c == 't') {
			dhcp.timeout_ms = (uint32_t)tool_number(optarg, 1, 3600000);
		} else if (c == 'p') {
			dhcp.pxe = 1;
			dhcp.has_arch = 1;
			dhcp.arch = (uint16_t)tool_number(optarg, 0, 65535);
		} else {
			return 2;
		}
	}
	if (optind != argc)
		return 2;
	if (get_lease(tool, &dhcp))
		return 1;
	show_lease(&tool->lease);
	return 0;
}
