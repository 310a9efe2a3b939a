/* See lace_ftp.h. */
#define _GNU_SOURCE
#include "lace_ftp.h"
#include "bootlace_sync.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT 21
#define MOST_LINES 1000   /* of one reply */
#define MOST_IDLE_US 5000 /* between two looks for signals */
#define GOODBYE_MS 2000

int ftp_turn(struct ftp *ftp)
{
	int rc = lace_poll(ftp->tool->net, 32);
	int64_t wait;

	if (rc < 0)
		return rc;
	if (tool_interrupted())
		return LACE_EINTR;
	wait = rc ? 0 : lace_next_deadline(ftp->tool->net);
	if (wait > 0)
		linux_nic_wait(ftp->tool->card, wait < MOST_IDLE_US ? (uint32_t)wait : MOST_IDLE_US);
	return 0;
}

/* The next byte of the control connection, or why there is none by `until_us`. */
static int next_byte(struct ftp *ftp, uint64_t until_us)
{
	int64_t n;
	int rc;

	while (ftp->at == ftp->len) {
		n = lace_tcp_recv(ftp->tool->net, ftp->tcp, ftp->in, sizeof ftp->in);
		if (n > 0) {
			ftp->at = 0;
			ftp->len = (size_t)n;
			break;
		}
		if (n == 0)
			return LACE_ECONNRESET;
		if (n != LACE_EAGAIN)
			return (int)n;
		if (linux_now_us() > until_us)
			return LACE_ETIMEDOUT;
		rc = ftp_turn(ftp);
		if (rc < 0)
			return rc;
	}
	return (unsigned char)ftp->in[ftp->at++];
}

/* Reads a line without its end; what does not fit into `line` is left out. */
static int next_line(struct ftp *ftp, char *line, size_t size, uint64_t until_us)
{
	size_t len = 0;
	int c;

	while ((c = next_byte(ftp, until_us)) != '\n') {
		if (c < 0)
			return c;
		if (c != '\r' && len + 1 < size)
			line[len++] = (char)c;
	}
	line[len] = 0;
	if (ftp->verbose)
		fprintf(stderr, "< %s\n", line);
	return 0;
}

/* The three digits at the beginning of a line, or 0. */
static int code_of(const char *line)
{
	for (int i = 0; i < 3; i++)
		if (line[i] < '0' || line[i] > '9')
			return 0;
	return line[3] == 0 || line[3] == ' ' || line[3] == '-' ? atoi(line) : 0;
}

/*
 * Waits for a reply: its code. One of several lines begins with "NNN-" and ends with a line that begins with the same
 * code and a blank (RFC 959 §4.2); lines between may begin with anything.
 */
static int reply_within(struct ftp *ftp, uint32_t ms)
{
	uint64_t until_us = linux_now_us() + (uint64_t)ms * 1000;
	char line[sizeof ftp->text];
	int code, rc = next_line(ftp, ftp->text, sizeof ftp->text, until_us);

	if (rc < 0)
		return rc;
	code = code_of(ftp->text);
	if (code < 100 || code > 599)
		return LACE_EPROTO;
	if (ftp->text[3] != '-')
		return code;
	for (int i = 0; i < MOST_LINES; i++) {
		rc = next_line(ftp, line, sizeof line, until_us);
		if (rc < 0)
			return rc;
		if (code_of(line) == code && line[3] != '-')
			return code;
	}
	return LACE_EPROTO;
}

static int reply(struct ftp *ftp)
{
	return reply_within(ftp, ftp->timeout_ms);
}

/* Sends a command. A line's end in an argument would be another command. */
static int command(struct ftp *ftp, const char *verb, const char *argument)
{
	char line[1100];
	int n = snprintf(line, sizeof line, "%s%s%s\r\n", verb, argument ? " " : "", argument ? argument : "");
	int64_t sent;

	if (n < 0 || (size_t)n >= sizeof line)
		return LACE_ENAMETOOLONG;
	if (argument && strpbrk(argument, "\r\n"))
		return LACE_EINVAL;
	if (ftp->verbose)
		fprintf(stderr, "> %s %s\n", verb, !argument ? "" : strcmp(verb, "PASS") ? argument : "...");
	sent = lace_tcp_send_all(ftp->tool->net, ftp->tcp, line, (size_t)n);
	return sent == n ? 0 : sent < 0 ? (int)sent : LACE_ECONNRESET;
}

/* Sends a command and waits for its reply. */
static int ask(struct ftp *ftp, const char *verb, const char *argument)
{
	int rc = command(ftp, verb, argument);

	return rc < 0 ? rc : reply(ftp);
}

/* The server has refused: shows what it said. A code below zero is what went wrong before it could. */
static int refused(struct ftp *ftp, int code)
{
	if (code < 0)
		return code;
	fprintf(stderr, "the server says \"%s\"\n", ftp->text);
	return LACE_EREMOTEIO;
}

int64_t ftp_open(struct ftp *ftp, const char *host, int ascii)
{
	struct lace_peer peer;
	int code;

	tool_peer(&peer, host, PORT);
	ftp->tcp = lace_tcp_connect(ftp->tool->net, &peer, NULL);
	if (ftp->tcp < 0) {
		code = ftp->tcp;
		ftp->tcp = 0;
		return code;
	}
	/* A server that is not ready says when it expects to be, and then that it is. */
	do
		code = reply(ftp);
	while (code == 120);
	if (code != 220)
		return refused(ftp, code);
	code = ask(ftp, "USER", ftp->user);
	if (code == 331)
		code = ask(ftp, "PASS", ftp->password);
	if (code != 230 && code != 202)
		return refused(ftp, code);
	code = ask(ftp, "TYPE", ascii ? "A" : "I");
	return code == 200 ? 0 : refused(ftp, code);
}

int64_t ftp_size(struct ftp *ftp, const char *path)
{
	int code = ask(ftp, "SIZE", path);
	unsigned long long n;
	char *end;

	if (code != 213)
		return code < 0 ? code : LACE_EREMOTEIO;
	if (strlen(ftp->text) < 5 || ftp->text[4] < '0' || ftp->text[4] > '9')
		return LACE_EPROTO;
	n = strtoull(ftp->text + 4, &end, 10);
	return n > INT64_MAX || (*end && *end != ' ') ? LACE_EPROTO : (int64_t)n;
}

/* The port in "229 ... (|||6446|)" (RFC 2428 §3): any character may stand for the bar. */
static int epsv_port(const char *text)
{
	const char *at = strchr(text, '(');
	unsigned long port;
	char *end;

	if (!at || strlen(at) < 5 || at[1] != at[2] || at[1] != at[3] || at[4] < '0' || at[4] > '9')
		return LACE_EPROTO;
	port = strtoul(at + 4, &end, 10);
	return *end == at[1] && port > 0 && port < 65536 ? (int)port : LACE_EPROTO;
}

/* The port in "227 ... h1,h2,h3,h4,p1,p2": there need be no brackets (RFC 1123 §4.1.2.6). */
static int pasv_port(const char *text)
{
	unsigned h[6];

	for (text += 4; *text; text++)
		if (*text >= '0' && *text <= '9')
			break;
	if (sscanf(text, "%3u,%3u,%3u,%3u,%3u,%3u", h, h + 1, h + 2, h + 3, h + 4, h + 5) != 6 || h[4] > 255 || h[5] > 255)
		return LACE_EPROTO;
	return h[4] * 256 + h[5] ? (int)(h[4] * 256 + h[5]) : LACE_EPROTO;
}

/*
 * Opens a data connection to where the server listens: at the address of the control connection, whatever a 227 says.
 * Behind a translator of addresses its own is wrong, and another host's would be an attack (RFC 2577 §3).
 */
static lace_tcp open_data(struct ftp *ftp)
{
	struct lace_tcp_info info;
	struct lace_peer peer = { 0 };
	int code = 500, port, rc;

	if (!ftp->pasv)
		code = ask(ftp, "EPSV", NULL);
	if (code >= 500) { /* not known there */
		ftp->pasv = 1;
		code = ask(ftp, "PASV", NULL);
	}
	if (code != 229 && code != 227)
		return refused(ftp, code);
	port = code == 229 ? epsv_port(ftp->text) : pasv_port(ftp->text);
	if (port < 0)
		return port;
	lace_tcp_info_init(&info, sizeof info);
	rc = lace_tcp_info_get(ftp->tool->net, ftp->tcp, &info);
	if (rc < 0)
		return rc;
	peer.ip = info.remote;
	peer.port = (uint16_t)port;
	return lace_tcp_connect(ftp->tool->net, &peer, NULL);
}

lace_tcp ftp_transfer(struct ftp *ftp, const char *verb, const char *path, uint64_t offset)
{
	lace_tcp data = open_data(ftp);
	char number[24];
	int code = 350;

	if (data < 0)
		return data;
	if (offset) {
		snprintf(number, sizeof number, "%llu", (unsigned long long)offset);
		code = ask(ftp, "REST", number);
	}
	if (code == 350)
		code = ask(ftp, verb, path);
	if (code == 125 || code == 150)
		return data;
	lace_tcp_abort(ftp->tool->net, data);
	return refused(ftp, code);
}

int64_t ftp_transfer_end(struct ftp *ftp, lace_tcp data, int failed)
{
	int code;

	/* What was given to be sent still is. */
	if (failed)
		lace_tcp_abort(ftp->tool->net, data);
	else
		lace_tcp_close(ftp->tool->net, data);
	/* Of a transfer that failed a server may have nothing to say. */
	code = tool_interrupted() ? LACE_EINTR : reply_within(ftp, failed ? GOODBYE_MS : ftp->timeout_ms);
	return code == 226 || code == 250 ? 0 : refused(ftp, code);
}

void ftp_close(struct ftp *ftp)
{
	if (ftp->tcp <= 0)
		return;
	if (!tool_interrupted() && command(ftp, "QUIT", NULL) == 0)
		reply_within(ftp, GOODBYE_MS);
	lace_tcp_close(ftp->tool->net, ftp->tcp);
	ftp->tcp = 0;
}
