/*
 * A network of one cable for tests of the C interface: a NIC whose other end is a small host in this program, a clock in
 * the test's hand, and memory that valgrind watches. Every received frame lies in a block of its own, exactly as long as
 * it is, and is freed at its release.
 */
#ifndef WIRE_H
#define WIRE_H

#include <bootlace.h>
#include <bootlace_sync.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
			exit(1); \
		} \
	} while (0)

#define CHECK_EQ(is, should) \
	do { \
		long long is_ = (long long)(is), should_ = (long long)(should); \
		if (is_ != should_) { \
			fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #is, is_, should_); \
			exit(1); \
		} \
	} while (0)

enum { QUEUE = 512 };

/* From which callback a test's own code is called. */
enum where {
	IN_NOW, IN_RANDOM, IN_LOG, IN_SEND, IN_RECV, IN_RELEASE, IN_TX_BUFFER, IN_LINK, IN_FILTER, IN_WRITE,
	IN_PUMP, IN_POLL, IN_IDLE, IN_DATAGRAM, IN_HOOK, IN_PROGRESS, IN_DONE, IN_LOST, WHERES
};
extern const char *const where_names[WHERES];

struct wire {
	lace_stack *net;
	lace_nic_id nic;
	void *memory;           /* The stack's block. */
	struct lace_config config;
	struct lace_host host;
	struct lace_nic driver;

	uint64_t now;           /* Microseconds, as the host's clock shows them. */
	uint32_t step;          /* How far the clock goes by itself at each reading. */
	uint32_t seed;
	int poll_result;        /* What host.poll says... */
	unsigned poll_after;    /* ...after so many calls. */
	unsigned polls, idles;

	struct { uint8_t *block; uint32_t len, flags; } rx[QUEUE];
	unsigned rx_head, rx_tail;
	unsigned rx_offset;     /* Alignment of received frames. */
	uint8_t *lent;
	unsigned lent_count, released_count, recvs, pumps, nows;

	uint8_t *sent[QUEUE];
	uint32_t sent_len[QUEUE];
	unsigned sent_count;
	unsigned sends, busy_every;  /* Every so many sends nic.send says LACE_EAGAIN. */
	int send_result;
	uint32_t tokens[QUEUE];
	unsigned token_count;
	uint8_t *tx;            /* Lent by tx_buffer. */
	unsigned tx_offset, tx_lent, tx_back;
	int link;
	uint8_t filter[64];
	unsigned filter_count;

	void (*other_end)(struct wire *w, const uint8_t *frame, uint32_t len);
	void (*inside)(struct wire *w, enum where where);  /* The test's own code in callbacks. */
	unsigned inside_depth, inside_deepest;

	/* The host at the other end. */
	const uint8_t *file;
	uint32_t file_len;
	uint16_t tftp_client, tftp_block;
	unsigned tftp_requests, tftp_errors, silent;
	unsigned offers, acks, releases;

	uint8_t *sink;          /* Bytes that a write sink took. */
	uint32_t sink_len;
	int64_t done_result;
	unsigned done_count, progress_count, datagram_count, hook_count, log_count;
};

/* 10.0.0.9/24 on a wire whose other end is 10.0.0.1. `setup`, if any, changes configuration, host and driver before. */
void wire_up(struct wire *w, void (*setup)(struct wire *w));
/* The same without address. */
void wire_bare(struct wire *w, void (*setup)(struct wire *w));
/* Stops the stack and frees everything; every frame must have been given back. */
void wire_down(struct wire *w);
/* Puts a frame on the wire towards us. */
void wire_put(struct wire *w, const void *frame, uint32_t len);
/* Forgets the frames sent. */
void wire_forget(struct wire *w);
/* Polls until nothing moves any more. */
void wire_settle(struct wire *w);
/* Moves the clock on by ms milliseconds, polling. */
void wire_wait(struct wire *w, unsigned ms);
/* Value of a counter. */
unsigned wire_stat(struct wire *w, const char *name);
/* A UDP frame from 10.0.0.1 to us; returns its length. */
uint32_t wire_udp(uint8_t *frame, uint16_t from, uint16_t to, const void *payload, uint32_t len);
/* The UDP payload of a frame, NULL if it is none; checks its sums. */
const uint8_t *wire_payload(const uint8_t *frame, uint32_t len, uint16_t *from, uint16_t *to, uint32_t *payload_len);
/* The host at the other end: ARP, echo, UDP echo (7), TFTP (69), DHCP (67). */
void wire_host(struct wire *w, const uint8_t *frame, uint32_t len);
/* Calls of a write sink that takes everything. */
int64_t wire_write(void *ctx, uint64_t offset, const void *data, uint32_t len);
void wire_progress(void *ctx, lace_op op, uint64_t done, uint64_t total);
void wire_done(void *ctx, lace_op op, int64_t result);
void wire_datagram(void *ctx, const struct lace_datagram *datagram);
/* The other driver: pushes. */
void wire_push_only(struct wire *w);
/* A file of len bytes. */
uint8_t *wire_file(uint32_t len);

struct test {
	const char *name;
	void (*run)(void);
};
/* Runs the test that is named. */
int wire_main(const struct test *tests, unsigned count, int argc, char **argv);

#endif
