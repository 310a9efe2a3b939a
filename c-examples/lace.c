/*
 * lace: Bootlace on Linux, from the command line. Options for the card and the address come first, then a subcommand.
 * Each subcommand has its own file or function; see lace_tool.h.
 */
#define _GNU_SOURCE
#include "lace_tool.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*run)(struct tool *, int, char **);
	const char *usage;
} commands[] = {
	{ "dhcp", lace_cmd_dhcp, "dhcp [--timeout MS] [--pxe ARCHITECTURE]" },
	{ "dns", lace_cmd_dns, "dns [--timeout MS] NAME" },
	{ "ftp", lace_cmd_ftp,
	  "ftp put [-u USER:PASSWORD] [--copy | --ascii | --stream] [--pasv] [--resume | --offset N] [-t MS] [-v] FILE HOST PATH\n"
	  "  ftp get [the same] [-o FILE] [--sha256] [--room BYTES] HOST PATH" },
	{ "iperf", lace_cmd_iperf, "iperf -c HOST [-t SECONDS | -n BYTES] [-P STREAMS] [-p PORT] [--copy]\n"
	  "  iperf -s [-1] [-p PORT] [--copy]" },
	{ "nfs", lace_cmd_nfs,
	  "nfs get [--tcp | --udp] [-r READSIZE] [-d DEPTH] [--offset N] [--length N] [--timeout MS] [-o FILE] [--sha256]\n"
	  "                       [--room BYTES] [--piece BYTES [--readahead BYTES]] HOST:EXPORT PATH\n"
	  "  nfs ls | stat | cat [--tcp | --udp] HOST:EXPORT PATH\n"
	  "  nfs exports [--tcp | --udp] HOST" },
	{ "http", lace_cmd_http,
	  "http get [-o FILE [--resume]] [--range FIRST-[LAST]] [-u USER:PASSWORD] [-H FIELD] [-t MS] [-r RETRIES]\n"
	  "                       [--redirects N] [--sha256] [--room BYTES] URL\n"
	  "  http head URL" },
	{ "ping", lace_cmd_ping, "ping [-c COUNT] [-i MS] [-s SIZE] [-W MS] HOST" },
	{ "tcp", lace_cmd_tcp,
	  "tcp [-l] [-k] [--send FILE] [--recv FILE] [--ring] [--info] [--window BYTES] [--room BYTES] [--new-reno]\n"
	  "                       [--no-sack] [--no-timestamps] HOST PORT | -l PORT" },
	{ "tftp", lace_cmd_tftp, "tftp get [-b BLKSIZE] [-w WINDOWSIZE] [-t MS] [-r RETRIES] [-o FILE] [--sha256] [--room BYTES]\n"
	  "                       [--piece BYTES] [--local-port PORT] HOST PATH\n"
	  "  tftp put [-b BLKSIZE] [-w WINDOWSIZE] [-t MS] [-r RETRIES] [--stream] [--local-port PORT] FILE HOST PATH" },
};

#define PAGES 512 /* pieces of files that may be lent to the card at a time */

enum { TAP = 256, PACKET, SLIRP, PCAP, IP, GW, DNS, RING, PUSH, COPY, BUSY, ARENA, STATS, RINGS };

static const struct option options[] = {
	{ "tap", required_argument, NULL, TAP },       { "packet", required_argument, NULL, PACKET },
	{ "slirp", optional_argument, NULL, SLIRP },   { "pcap", required_argument, NULL, PCAP },
	{ "ip", required_argument, NULL, IP },         { "gw", required_argument, NULL, GW },
	{ "dns", required_argument, NULL, DNS },       { "ring", required_argument, NULL, RING },
	{ "push", no_argument, NULL, PUSH },           { "copy", no_argument, NULL, COPY },
	{ "busy", no_argument, NULL, BUSY },           { "arena", required_argument, NULL, ARENA },
	{ "stats", no_argument, NULL, STATS },         { "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },            { "rings", required_argument, NULL, RINGS },
	{ NULL, 0, NULL, 0 },
};

static void usage(FILE *out)
{
	fputs("usage: lace CARD [OPTIONS] COMMAND ARGUMENTS\n"
	      "cards:   --tap NAME | --packet INTERFACE | --slirp[=TFTP-FOLDER]\n"
	      "options: --ip ADDRESS/LENGTH  no DHCP        --gw ADDRESS    --dns ADDRESS (more than once)\n"
	      "         --pcap FILE   write every frame     --ring N        model a card with N receive buffers\n"
	      "         --push        the card pushes       --copy          the card lends transmit buffers\n"
	      "         --busy        the card has no room every other time\n"
	      "         --arena BYTES memory for the stack  --stats         show the counters at the end\n"
	      "         --rings BYTES rings of TCP          --quiet         no progress\n"
	      "commands:\n",
	      out);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		fprintf(out, "  %s\n", commands[i].usage);
}

unsigned long tool_number(const char *text, unsigned long min, unsigned long max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n < min || n > max) {
		fprintf(stderr, "lace: %s is not a number from %lu to %lu\n", text, min, max);
		exit(2);
	}
	return n;
}

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static int32_t host_poll(void *ctx)
{
	(void)ctx;
	return interrupted;
}

int tool_interrupted(void)
{
	return interrupted;
}

/* What the options say. */
struct settings {
	struct linux_nic_options card;
	unsigned mode;
	size_t arena;
	uint32_t rings; /* of each TCP connection, both ways; 0: as the library has it */
	struct lace_ip ip, gateway, dns[3];
	unsigned prefix, n_dns;
	int stats, have_card;
};

static void address(struct lace_ip *ip, const char *text)
{
	if (lace_ip_parse(text, ip) < 0) {
		fprintf(stderr, "lace: %s is not an address\n", text);
		exit(2);
	}
}

static void card(struct settings *s, enum linux_nic_kind kind, const char *name)
{
	s->card.kind = kind;
	if (kind == LINUX_NIC_SLIRP)
		s->card.tftp_root = name;
	else
		s->card.name = name;
	s->have_card = 1;
}

/* Reads the options; returns the index of the subcommand, or ends the program. */
static int parse(struct tool *tool, struct settings *s, int argc, char **argv)
{
	char *slash;
	int c;

	while ((c = getopt_long(argc, argv, "+qh", options, NULL)) != -1) {
		switch (c) {
		case TAP:
			card(s, LINUX_NIC_TAP, optarg);
			break;
		case PACKET:
			card(s, LINUX_NIC_PACKET, optarg);
			break;
		case SLIRP:
			card(s, LINUX_NIC_SLIRP, optarg);
			break;
		case PCAP:
			s->card.pcap = optarg;
			break;
		case IP:
			slash = strchr(optarg, '/');
			s->prefix = slash ? (unsigned)tool_number(slash + 1, 0, 32) : 24;
			if (slash)
				*slash = 0;
			address(&s->ip, optarg);
			break;
		case GW:
			address(&s->gateway, optarg);
			break;
		case DNS:
			if (s->n_dns < sizeof s->dns / sizeof *s->dns)
				address(&s->dns[s->n_dns++], optarg);
			break;
		case RING:
			s->card.ring = (unsigned)tool_number(optarg, 1, 4096);
			break;
		case PUSH:
			s->mode |= LINUX_NIC_PUSH;
			break;
		case COPY:
			s->mode |= LINUX_NIC_COPY;
			break;
		case BUSY:
			s->mode |= LINUX_NIC_BUSY;
			break;
		case ARENA:
			s->arena = tool_number(optarg, 1, 1u << 30);
			break;
		case RINGS:
			s->rings = (uint32_t)tool_number(optarg, 0, 1u << 26);
			break;
		case STATS:
			s->stats = 1;
			break;
		case 'q':
			tool->quiet = 1;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (optind == argc || !s->have_card) {
		usage(stderr);
		fputs(s->have_card ? "lace: no command\n" : "lace: no card\n", stderr);
		exit(2);
	}
	return optind;
}

/* A stack with one card and, if the options say so, an address. */
static int set_up(struct tool *tool, const struct settings *s, void **arena)
{
	struct lace_config config;
	struct lace_host host;
	int64_t size;
	int rc;

	lace_config_full(&config, sizeof config);
	config.tcp_pages = PAGES;
	if (s->rings)
		config.tcp_receive_bytes = config.tcp_send_bytes = s->rings;
	size = s->arena ? (int64_t)s->arena : lace_stack_size(&config);
	if (size < 0)
		return (int)size;
	if (posix_memalign(arena, 64, (size_t)size))
		return LACE_ENOMEM;
	linux_nic_host(tool->card, &host);
	host.poll = host_poll;
	rc = lace_stack_init(*arena, (size_t)size, &config, &host, &tool->net);
	if (rc < 0)
		return rc;
	tool->nic = linux_nic_add(tool->card, tool->net, s->mode);
	if (tool->nic < 0)
		return tool->nic;
	rc = lace_dns_set(tool->net, s->dns, s->n_dns);
	if (rc < 0 || !s->ip.family)
		return rc;
	rc = lace_addr_add(tool->net, tool->nic, &s->ip, s->prefix);
	if (rc == LACE_OK && s->gateway.family)
		rc = lace_gateway_set(tool->net, tool->nic, &s->gateway);
	return rc;
}

static void show_stats(lace_stack *net)
{
	for (uint32_t i = 0; i < lace_stat_count(); i++)
		if (lace_stat_get(net, i) > 0)
			fprintf(stderr, "%s %lld\n", lace_stat_name(i), (long long)lace_stat_get(net, i));
}

int main(int argc, char **argv)
{
	struct tool tool = { 0 };
	struct settings s = { .have_card = 0 };
	struct sigaction action = { .sa_handler = on_signal };
	int (*run)(struct tool *, int, char **) = NULL;
	const char *how = NULL;
	void *arena = NULL;
	int at, rc;

	at = parse(&tool, &s, argc, argv);
	tool.quiet |= !isatty(2);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (!strcmp(argv[at], commands[i].name)) {
			run = commands[i].run;
			how = commands[i].usage;
		}
	if (!run) {
		usage(stderr);
		fprintf(stderr, "lace: no such command: %s\n", argv[at]);
		return 2;
	}
	if (at + 1 < argc && !strcmp(argv[at + 1], "--help")) {
		printf("usage: lace CARD [OPTIONS]\n  %s\n", how);
		return 0;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	tool.card = linux_nic_open(&s.card);
	if (!tool.card)
		return 1;
	rc = set_up(&tool, &s, &arena);
	if (rc < 0) {
		rc = tool_failed("stack", rc);
	} else if (!s.ip.family && run != lace_cmd_dhcp && tool_dhcp(&tool, 0)) {
		rc = 1;
	} else {
		optind = 0;
		rc = run(&tool, argc - at, argv + at);
		if (rc == 2)
			fprintf(stderr, "usage: lace CARD [OPTIONS]\n  %s\n", how);
	}
	if (s.stats && tool.net) {
		show_stats(tool.net);
		fprintf(stderr, "ring_full %lu\n", linux_nic_dropped(tool.card));
	}
	if (tool.net && lace_stack_stop(tool.net) < 0)
		rc = rc ? rc : 1;
	linux_nic_close(tool.card);
	free(arena);
	return rc;
}
