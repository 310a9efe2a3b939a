/*
 * The floor for `make bench-tap`: NFS READs over UDP with no stack at all, several in flight. Fragments are copied to where
 * they belong, summed in the same pass, as they come in order; nothing else is on the wire. Same card and same way of
 * waiting as the `lace` tool.
 *
 *   bare_nfs TAP OWN-IP SERVER-IP EXPORT FILE READ-SIZE DEPTH [OUTPUT]
 *
 * Prints `BYTES bytes MICROSECONDS us`: from the first call about the file to the last byte.
 */
#define _DEFAULT_SOURCE
#include "bare.h"
#include "linux_nic.h"

#include <stdio.h>
#include <stdlib.h>

#define HEAD   42u /* Ethernet, IPv4, UDP */
#define MEMORY (320u << 20)
#define RETRY  1000000u
#define DEPTH  16u

/* A reply that comes in fragments. */
struct reply {
	uint16_t id;   /* of its IP packets; 0: none */
	uint64_t sum;
	size_t next;   /* bytes of UDP that have come */
	size_t len;    /* of UDP in all */
	uint16_t check;
	uint8_t *to;   /* where the next bytes go */
	unsigned read; /* which READ it answers */
};

struct read {
	uint32_t xid; /* 0: none is in flight */
	uint64_t offset;
	uint32_t len;
	uint64_t sent_us;
};

struct bare {
	struct linux_nic *nic;
	uint8_t peer_mac[6], own_ip[4], peer_ip[4];
	uint16_t port;
	uint8_t out[HEAD + 1500];
	uint8_t *memory;
	size_t size, got, asked;
	uint32_t read_size, xid, mount_xid;
	unsigned depth, known; /* known: 0 nothing, 1 the peer's address, 2 the export, 3 the file */
	uint8_t root[64], file[64];
	uint32_t root_len, file_len;
	struct read reads[DEPTH];
	struct reply replies[DEPTH];
};

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v & 0xffff);
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

/* Sends n bytes already at out + HEAD to a port. */
static void udp(struct bare *b, unsigned port, size_t n)
{
	uint8_t *f = b->out;
	struct iovec piece = { f, HEAD + n };
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
	put16(f + 34, b->port);
	put16(f + 36, port);
	put16(f + 38, (unsigned)(8 + n));
	put16(f + 40, 0);
	s = (uint16_t)~fold(pseudo(f + 26, 8 + n) + sum(f + 34, 8 + n));
	s = s ? s : 0xffff;
	memcpy(f + 40, &s, 2);
	linux_nic_send(b->nic, &piece, 1);
}

/* The header of a call with the credentials of root; where its arguments begin. */
static uint8_t *call(struct bare *b, uint32_t xid, uint32_t program, uint32_t procedure)
{
	const uint32_t words[] = { xid, 0, 2, program, 3, procedure, 1, 20, 0, 0, 0, 0, 0, 0, 0 };
	uint8_t *p = b->out + HEAD;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++, p += 4)
		put32(p, words[i]);
	return p;
}

static uint8_t *opaque(uint8_t *p, const void *data, uint32_t n)
{
	put32(p, n);
	memset(p + 4 + n, 0, (4 - n % 4) % 4);
	memcpy(p + 4, data, n);
	return p + 4 + ((n + 3) & ~3u);
}

/* Asks for what is not known yet. */
static void ask(struct bare *b, const char *export, const char *name)
{
	uint8_t *p;

	if (b->known == 0) {
		arp(b, 1);
	} else if (b->known == 1) {
		p = call(b, b->mount_xid, 100005, 1);
		p = opaque(p, export, (uint32_t)strlen(export));
		udp(b, 20048, (size_t)(p - b->out) - HEAD);
	} else if (b->known == 2) {
		p = call(b, b->mount_xid + 1, 100003, 3);
		p = opaque(p, b->root, b->root_len);
		p = opaque(p, name, (uint32_t)strlen(name));
		udp(b, 2049, (size_t)(p - b->out) - HEAD);
	}
}

static void send_read(struct bare *b, struct read *r)
{
	uint8_t *p = call(b, r->xid, 100003, 6);

	p = opaque(p, b->file, b->file_len);
	put32(p, (uint32_t)(r->offset >> 32));
	put32(p + 4, (uint32_t)r->offset);
	put32(p + 8, r->len);
	udp(b, 2049, (size_t)(p + 12 - b->out) - HEAD);
	r->sent_us = linux_now_us();
}

/* Keeps as many READs in flight as there are to be. */
static void fill(struct bare *b)
{
	for (unsigned i = 0; i < b->depth && b->asked < b->size; i++) {
		struct read *r = &b->reads[i];

		if (r->xid)
			continue;
		r->xid = ++b->xid;
		r->offset = b->asked;
		r->len = b->size - b->asked < b->read_size ? (uint32_t)(b->size - b->asked) : b->read_size;
		b->asked += r->len;
		send_read(b, r);
	}
}

static void learn(struct bare *b, const uint8_t *p, size_t n)
{
	uint32_t len;

	/* xid, reply, accepted, no verifier, success, status */
	if (n < 32 || get32(p + 4) != 1 || get32(p + 8) || get32(p + 20) || get32(p + 24))
		return;
	len = get32(p + 28);
	if (len > 64 || n < 32 + len)
		return;
	if (b->known == 1 && get32(p) == b->mount_xid) {
		memcpy(b->root, p + 32, b->root_len = len);
		b->known = 2;
	} else if (b->known == 2 && get32(p) == b->mount_xid + 1) {
		memcpy(b->file, p + 32, b->file_len = len);
		p += 32 + ((len + 3) & ~3u);
		/* attributes follow: type, mode, links, uid, gid, size */
		if (get32(p) == 1)
			b->size = (size_t)get32(p + 28);
		b->known = b->size <= MEMORY ? 3 : 2;
	}
}

/* The first bytes of a reply: n of len bytes of UDP at p, header included. */
static struct reply *begin(struct bare *b, const uint8_t *f, size_t n, size_t len)
{
	const uint8_t *p = f + HEAD;
	struct reply *free_one = NULL;
	size_t header;

	if (n < 8 + 128 || get32(p + 4) != 1 || get32(p + 8) || get32(p + 20) || get32(p + 24))
		return NULL;
	header = get32(p + 28) ? 28 + 4 + 84 : 28 + 4; /* with attributes or without, then count, eof, length */
	for (unsigned i = 0; i < b->depth; i++)
		if (!b->replies[i].id)
			free_one = &b->replies[i];
	for (unsigned i = 0; free_one && i < b->depth; i++) {
		struct read *r = &b->reads[i];

		if (!r->xid || r->xid != get32(p) || get32(p + header) != r->len || len < 8 + header + 12 + r->len)
			continue;
		free_one->id = get16(f + 18);
		free_one->len = len;
		free_one->next = n;
		free_one->read = i;
		free_one->to = b->memory + r->offset;
		n -= 8 + header + 12;
		n = n < r->len ? n : r->len;
		free_one->sum = pseudo(f + 26, len) + sum(f + 34, 8 + header + 12) + copy_sum(free_one->to, p + header + 12, n);
		free_one->to += n;
		return free_one;
	}
	return NULL;
}

/* One frame. Nonzero when it was of use. */
static int frame(struct bare *b, const uint8_t *f, size_t len)
{
	struct reply *r = NULL;
	struct read *read;
	size_t n, at;

	if (len >= 42 && get16(f + 12) == 0x0806) {
		if (memcmp(f + 38, b->own_ip, 4) || memcmp(f + 28, b->peer_ip, 4))
			return 0;
		memcpy(b->peer_mac, f + 22, 6);
		b->known = b->known ? b->known : 1;
		if (get16(f + 20) == 1)
			arp(b, 2);
		return 1;
	}
	if (len < HEAD || get16(f + 12) != 0x0800 || f[14] != 0x45 || f[23] != 17 || fold(sum(f + 14, 20)) != 0xffff)
		return 0;
	if (memcmp(f + 26, b->peer_ip, 4) || memcmp(f + 30, b->own_ip, 4) || get16(f + 16) < 28 || get16(f + 16) > len - 14)
		return 0;
	n = get16(f + 16) - 20u;
	at = (get16(f + 20) & 0x1fffu) * 8u;
	if (at == 0) {
		if (get16(f + 36) != b->port)
			return 0;
		if (b->known < 3) {
			learn(b, f + HEAD, n - 8);
			return 1;
		}
		r = begin(b, f, n, get16(f + 38));
	} else {
		for (unsigned i = 0; i < b->depth; i++)
			if (b->replies[i].id == get16(f + 18) && b->replies[i].id)
				r = &b->replies[i];
		if (!r || at != r->next || at + n > r->len)
			return 0;
		r->sum += copy_sum(r->to, f + 34, n);
		r->to += n;
		r->next += n;
	}
	if (!r || r->next < r->len)
		return r != NULL;
	read = &b->reads[r->read];
	if (fold(r->sum) == 0xffff && read->xid) {
		b->got += read->len;
		read->xid = 0;
		fill(b);
	}
	r->id = 0;
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

	if (argc < 8 || !b) {
		fprintf(stderr, "usage: bare_nfs TAP OWN-IP SERVER-IP EXPORT FILE READ-SIZE DEPTH [OUTPUT]\n");
		return 2;
	}
	o.name = argv[1];
	b->nic = linux_nic_open(&o);
	b->memory = malloc(MEMORY + 8);
	b->read_size = (uint32_t)strtoul(argv[6], NULL, 10);
	b->depth = (unsigned)strtoul(argv[7], NULL, 10);
	if (!b->nic || !b->memory || strlen(argv[4]) > 500 || strlen(argv[5]) > 255 || !b->read_size || b->read_size > 65000 ||
	    b->read_size % 8 || !b->depth || b->depth > DEPTH || inet_pton(AF_INET, argv[2], b->own_ip) != 1 ||
	    inet_pton(AF_INET, argv[3], b->peer_ip) != 1) {
		fprintf(stderr, "bare_nfs: bad arguments\n");
		return 2;
	}
	b->xid = (uint32_t)linux_now_us();
	b->mount_xid = b->xid - 16;
	b->port = (uint16_t)(700 + b->xid % 300);
	ask(b, argv[4], argv[5]);
	last = linux_now_us();
	while (b->known < 3 || b->got < b->size) {
		while ((b->known < 3 || b->got < b->size) && linux_nic_recv(b->nic, &f, &len) > 0) {
			unsigned known = b->known;

			if (frame(b, f, len))
				last = linux_now_us();
			if (b->known == known)
				continue;
			if (b->known == 2)
				start = linux_now_us();
			if (b->known == 3)
				fill(b);
			else
				ask(b, argv[4], argv[5]);
		}
		if (b->known == 3 && b->got >= b->size)
			break;
		linux_nic_wait(b->nic, RETRY);
		if (linux_now_us() - last < RETRY)
			continue;
		if (++tries > 20) {
			fprintf(stderr, "bare_nfs: no answer\n");
			return 1;
		}
		memset(b->replies, 0, sizeof b->replies);
		for (unsigned i = 0; i < b->depth && b->known == 3; i++)
			if (b->reads[i].xid)
				send_read(b, &b->reads[i]);
		ask(b, argv[4], argv[5]);
		last = linux_now_us();
	}
	printf("%zu bytes %llu us\n", b->size, (unsigned long long)(linux_now_us() - start));
	if (argc > 8) {
		FILE *out = fopen(argv[8], "wb");

		if (!out || fwrite(b->memory, 1, b->size, out) != b->size || fclose(out)) {
			perror(argv[8]);
			return 1;
		}
	}
	linux_nic_close(b->nic);
	free(b->memory);
	free(b);
	return 0;
}
