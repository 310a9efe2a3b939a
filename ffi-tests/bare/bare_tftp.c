/*
 * The floor for `make bench-tap`: a TFTP get with no stack at all. It parses, checks the UDP sum while it copies, and
 * acknowledges; one server, one file, nothing else on the wire. Same card and same way of waiting as the `lace` tool.
 *
 *   bare_tftp TAP OWN-IP SERVER-IP FILE BLKSIZE WINDOWSIZE [OUTPUT]
 *
 * Prints `BYTES bytes MICROSECONDS us`: from the first request to the last acknowledgement.
 */
#define _DEFAULT_SOURCE
#include "bare.h"
#include "linux_nic.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD   42u /* Ethernet, IPv4, UDP */
#define MEMORY (320u << 20)
#define RETRY  1000000u

struct bare {
	struct linux_nic *nic;
	uint8_t peer_mac[6], own_ip[4], peer_ip[4];
	uint16_t own_port, peer_port;
	uint8_t out[HEAD + 512];
	size_t out_len;
	uint8_t *memory;
	size_t size, blksize;
	unsigned window, since_ack;
	uint32_t next; /* block wanted */
	int state;     /* 0: ARP, 1: request sent, 2: data, 3: done */
};

static void transmit(struct bare *b)
{
	struct iovec piece = { b->out, b->out_len };

	linux_nic_send(b->nic, &piece, 1);
}

static void arp(struct bare *b, unsigned op)
{
	uint8_t f[60] = { 0 };
	struct iovec piece = { f, sizeof f };

	memset(f, 0xff, 6);
	if (op == 2)
		memcpy(f, b->peer_mac, 6);
	memcpy(f + 6, linux_nic_mac(b->nic), 6);
	memcpy(f + 12, "\x08\x06\x00\x01\x08\x00\x06\x04", 8);
	put16(f + 20, op);
	memcpy(f + 22, f + 6, 6);
	memcpy(f + 28, b->own_ip, 4);
	memcpy(f + 32, b->peer_mac, 6);
	memcpy(f + 38, b->peer_ip, 4);
	linux_nic_send(b->nic, &piece, 1);
}

/* Sends n bytes already at out + HEAD. */
static void udp(struct bare *b, size_t n)
{
	uint8_t *f = b->out;
	uint16_t c, s;

	memcpy(f, b->peer_mac, 6);
	memcpy(f + 6, linux_nic_mac(b->nic), 6);
	memcpy(f + 12, "\x08\x00\x45\x00", 4);
	put16(f + 16, (unsigned)(28 + n));
	memcpy(f + 18, "\0\0\x40\0\x40\x11\0\0", 8);
	memcpy(f + 26, b->own_ip, 4);
	memcpy(f + 30, b->peer_ip, 4);
	c = (uint16_t)~fold(sum(f + 14, 20));
	memcpy(f + 24, &c, 2);
	put16(f + 34, b->own_port);
	put16(f + 36, b->peer_port);
	put16(f + 38, (unsigned)(8 + n));
	put16(f + 40, 0);
	s = (uint16_t)~fold(pseudo(f + 26, 8 + n) + sum(f + 34, 8 + n));
	s = s ? s : 0xffff;
	memcpy(f + 40, &s, 2);
	b->out_len = HEAD + n < 60 ? 60 : HEAD + n;
	memset(f + HEAD + n, 0, b->out_len - HEAD - n);
	transmit(b);
}

static void request(struct bare *b, const char *file, int options)
{
	char *p = (char *)b->out + HEAD;
	int n = 2;

	put16(b->out + HEAD, 1);
	n += snprintf(p + n, 256, "%s%coctet%c", file, 0, 0);
	n += snprintf(p + n, 64, "blksize%c%zu%c", 0, b->blksize, 0);
	if (options > 1)
		n += snprintf(p + n, 64, "windowsize%c%u%c", 0, b->window, 0);
	udp(b, (size_t)n);
}

static void ack(struct bare *b)
{
	put16(b->out + HEAD, 4);
	put16(b->out + HEAD + 2, (b->next - 1) & 0xffff);
	b->since_ack = 0;
	udp(b, 4);
}

/* One frame. Nonzero when it was of use. */
static int frame(struct bare *b, const uint8_t *f, size_t len)
{
	size_t n, payload;
	unsigned op;

	if (len >= 42 && get16(f + 12) == 0x0806) {
		if (memcmp(f + 38, b->own_ip, 4) || memcmp(f + 28, b->peer_ip, 4))
			return 0;
		memcpy(b->peer_mac, f + 22, 6);
		if (get16(f + 20) == 1)
			arp(b, 2);
		return 1;
	}
	if (len < HEAD + 4 || get16(f + 12) != 0x0800 || f[14] != 0x45 || f[23] != 17 || (get16(f + 20) & 0x3fff))
		return 0;
	if (memcmp(f + 26, b->peer_ip, 4) || memcmp(f + 30, b->own_ip, 4) || get16(f + 36) != b->own_port)
		return 0;
	n = get16(f + 38);
	if (n < 12 || n > len - 34 || fold(sum(f + 14, 20)) != 0xffff)
		return 0;
	op = get16(f + HEAD);
	if (b->state == 1 && (op == 6 || op == 3)) {
		b->peer_port = get16(f + 34);
		b->state = 2;
		b->next = 1;
		if (op == 6) {
			ack(b);
			return 1;
		}
		b->blksize = 512;
		b->window = 1;
	}
	if (op == 5) {
		fprintf(stderr, "server: %.*s\n", (int)(n - 13), (const char *)f + HEAD + 4);
		exit(1);
	}
	if (b->state != 2 || op != 3 || get16(f + 34) != b->peer_port)
		return 0;
	if (get16(f + HEAD + 2) != (b->next & 0xffff)) {
		if (b->since_ack || b->window == 1)
			ack(b); /* a gap, or our acknowledgement was lost */
		return 0;
	}
	payload = n - 12;
	if (payload > b->blksize || b->size + payload > MEMORY)
		return 0;
	if (fold(pseudo(f + 26, n) + sum(f + 34, 12) + copy_sum(b->memory + b->size, f + HEAD + 4, payload)) != 0xffff)
		return 0;
	b->size += payload;
	b->next++;
	if (payload < b->blksize)
		b->state = 3;
	if (++b->since_ack >= b->window || b->state == 3)
		ack(b);
	return 1;
}

int main(int argc, char **argv)
{
	struct linux_nic_options o = { .kind = LINUX_NIC_TAP };
	struct bare *b = calloc(1, sizeof *b);
	uint64_t start = 0, last;
	const uint8_t *f;
	size_t len;
	int tries = 0;

	if (argc < 7 || !b) {
		fprintf(stderr, "usage: bare_tftp TAP OWN-IP SERVER-IP FILE BLKSIZE WINDOWSIZE [OUTPUT]\n");
		return 2;
	}
	o.name = argv[1];
	b->nic = linux_nic_open(&o);
	b->memory = malloc(MEMORY);
	b->blksize = strtoul(argv[5], NULL, 10);
	b->window = (unsigned)strtoul(argv[6], NULL, 10);
	if (!b->nic || !b->memory || strlen(argv[4]) > 255 || b->blksize < 8 || !b->window ||
	    inet_pton(AF_INET, argv[2], b->own_ip) != 1 || inet_pton(AF_INET, argv[3], b->peer_ip) != 1) {
		fprintf(stderr, "bare_tftp: bad arguments\n");
		return 2;
	}
	b->own_port = (uint16_t)(0xc000 | (linux_random() & 0x3fff));
	b->peer_port = 69;
	arp(b, 1);
	last = linux_now_us();
	while (b->state < 3) {
		while (b->state < 3 && linux_nic_recv(b->nic, &f, &len) > 0)
			if (frame(b, f, len))
				last = linux_now_us();
		if (b->state == 3)
			break;
		if (b->state == 0 && (b->peer_mac[0] | b->peer_mac[5])) {
			b->state = 1;
			start = linux_now_us();
			request(b, argv[4], b->window > 1 ? 2 : 1);
		}
		linux_nic_wait(b->nic, RETRY);
		if (linux_now_us() - last >= RETRY) {
			if (++tries > 20) {
				fprintf(stderr, "bare_tftp: no answer\n");
				return 1;
			}
			if (b->state)
				transmit(b);
			else
				arp(b, 1);
			last = linux_now_us();
		}
	}
	printf("%zu bytes %llu us\n", b->size, (unsigned long long)(linux_now_us() - start));
	if (argc > 7) {
		FILE *out = fopen(argv[7], "wb");

		if (!out || fwrite(b->memory, 1, b->size, out) != b->size || fclose(out)) {
			perror(argv[7]);
			return 1;
		}
	}
	linux_nic_close(b->nic);
	free(b->memory);
	free(b);
	return 0;
}
