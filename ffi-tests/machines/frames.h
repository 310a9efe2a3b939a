/* The frame suite: a stack, a driver whose buffers lie where they are told to, and frames made byte by byte. */
#ifndef FRAMES_H
#define FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include <bootlace.h>

#ifdef SMALL_BOARD /* a board of 16 KiB */
#define FRAME_MAX 614
#define MOST_UDP 568u
#else
#define FRAME_MAX 1518
#define MOST_UDP 1472u
#endif

enum { ICMP = 1, TCP = 6, UDP = 17 };

/* The stack under test, its socket's port, and what that socket was given last. */
extern lace_stack *net;
extern lace_udp frames_socket;
extern unsigned frames_port;
extern unsigned frames_delivered;

/* The last frame sent, where it lies; how many were sent since the last frame was given. */
extern const uint8_t *sent;
extern uint32_t sent_len;
extern unsigned sent_count;

void expect(int good, const char *what, int64_t value);
unsigned frames_failures(void);

void frames_up(unsigned rx_offset, unsigned tx_offset);
uint32_t frames_digest(void);
uint32_t frames_down(void);
void frames_note(uint32_t value);
void frames_tick(uint32_t us); /* time passes, a pass is made */
void frames_rest(void);

/* Bytes in network order. */
unsigned get16(const uint8_t *at);
uint32_t get32(const uint8_t *at);
uint8_t *put16(uint8_t *at, unsigned value);
uint8_t *put32(uint8_t *at, uint32_t value);
uint32_t sum(uint32_t start, const uint8_t *at, size_t n);

/*
 * A frame from the peer is made from the front: `frame_start` gives the place behind the Ethernet header (and tag), `frame_ip`
 * the one behind the IPv4 header, and so on. `frame_give` hands it over: `length` bytes, 60 at least.
 */
uint8_t *frame_start(unsigned ethertype, int tag); /* tag: the TCI; -1: none */
uint8_t *frame_ip(uint8_t *at, unsigned protocol, size_t payload, unsigned fragment, const uint8_t *options, size_t n);
void frame_ip_sum(void); /* again, after a change */
uint8_t *frame_header(void); /* the IPv4 header */
extern unsigned frame_id;    /* of the next fragment; a whole packet takes one more */
void frame_give(const uint8_t *end);
void frame_give_raw(size_t length);
uint32_t frame_pseudo(unsigned protocol, size_t length);

/* Gives the frame and expects it to be dropped, and counted there. */
void frame_dropped(const uint8_t *end, const char *counter);
void frame_dropped_raw(size_t length, const char *counter);

/* A whole UDP datagram to `port`, checksum included, into a frame that was started; bytes by `pattern`. */
uint8_t pattern(unsigned seed, size_t at);
uint8_t *frame_udp(uint8_t *at, unsigned port, size_t length, unsigned seed);

uint32_t counter(const char *name);

void frames_arp(void);
void frames_echo(void);
void frames_udp(void);
void frames_vlan(void);
void frames_options(void);
void frames_fragments(void);
void frames_errors(void);
void frames_malformed(void);
void frames_tcp(void);

extern const uint8_t our_mac[6], their_mac[6], our_ip[4], their_ip[4];

#endif
