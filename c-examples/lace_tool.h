/*
 * What the subcommands of the `lace` tool share. A subcommand is a function `int lace_cmd_NAME(struct tool *, int, char **)`
 * in a file lace_NAME.c of its own and a line in the table of lace.c; argv[0] is its name, and it returns an exit status:
 * 2 has the usage shown.
 */
#ifndef LACE_TOOL_H
#define LACE_TOOL_H

#include "bootlace.h"
#include "linux_nic.h"

struct tool {
	struct linux_nic *card;
	lace_stack *net;
	int nic;                 /* handle of the card in the stack */
	struct lace_lease lease; /* what DHCP gave, where it was asked */
	int leased;
	int quiet;
	uint64_t shown_us; /* when progress was last shown */
	uint64_t start_us;
};

/* Makes a peer of an address or a name; the text must live as long as the peer. */
void tool_peer(struct lace_peer *peer, const char *text, uint16_t port);
/* Writes an address into text and returns it. */
const char *tool_ip_text(const struct lace_ip *ip, char text[LACE_IP_TEXT]);
/* Progress of an operation on stderr: bytes, rate, time left. A `progress` callback whose ctx is the tool. */
void tool_progress(void *ctx, lace_op op, uint64_t done, uint64_t total);
/* Starts the clock that tool_progress and tool_done show. */
void tool_begin(struct tool *tool);
/* Says how long n bytes took: the last line on stdout. */
void tool_done(struct tool *tool, int64_t n);
/* Says why an operation failed; returns exit status 1. */
int tool_failed(const char *what, int64_t error);
/* The same with what the operation's detail knows. */
int tool_failed_op(struct tool *tool, const char *what, lace_op op, int64_t error);
/* Reads a number in [min, max] of a command line, or ends the program with a message. */
unsigned long tool_number(const char *text, unsigned long min, unsigned long max);
/* Whether a signal asks the program to end. */
int tool_interrupted(void);
/* Asks DHCP unless an address was given: 0, or an exit status. Every subcommand but dhcp has it done already. */
int tool_dhcp(struct tool *tool, uint32_t timeout_ms);

int lace_cmd_dhcp(struct tool *tool, int argc, char **argv);
int lace_cmd_dns(struct tool *tool, int argc, char **argv);
int lace_cmd_ftp(struct tool *tool, int argc, char **argv);
int lace_cmd_iperf(struct tool *tool, int argc, char **argv);
int lace_cmd_nfs(struct tool *tool, int argc, char **argv);
int lace_cmd_http(struct tool *tool, int argc, char **argv);
int lace_cmd_ping(struct tool *tool, int argc, char **argv);
int lace_cmd_tcp(struct tool *tool, int argc, char **argv);
int lace_cmd_tftp(struct tool *tool, int argc, char **argv);

#endif
