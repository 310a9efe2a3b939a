/*
 * A network card for Bootlace on Linux: a TAP, an AF_PACKET socket on an interface, or a virtual network inside this
 * process (libslirp, no privileges). One file for all examples and tests; a board's driver takes its place.
 */
#ifndef LINUX_NIC_H
#define LINUX_NIC_H

#include "bootlace.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum linux_nic_kind { LINUX_NIC_TAP, LINUX_NIC_PACKET, LINUX_NIC_SLIRP };

struct linux_nic_options {
	enum linux_nic_kind kind;
	const char *name;      /* interface; with libslirp, unused */
	const char *pcap;      /* write every frame to this file, or NULL */
	const uint8_t *mac;    /* 6 bytes, or NULL: made from the name */
	unsigned ring;         /* model a card with this many receive buffers: the rest is dropped at each poll; 0: off */
	const char *tftp_root; /* libslirp: folder its TFTP server serves, or NULL */
	const char *boot_file; /* libslirp: boot file its DHCP server names, or NULL */
	int open;              /* libslirp: nonzero allows connections to the world outside */
};

struct linux_nic;

/* Opens the card. NULL on failure, with a message on stderr. */
struct linux_nic *linux_nic_open(const struct linux_nic_options *options);
/* Closes it and completes the pcap file. NULL is allowed. */
void linux_nic_close(struct linux_nic *nic);

enum {
	LINUX_NIC_PUSH = 1, /* received frames are pushed by lace_input, not lent by recv */
	LINUX_NIC_COPY = 2, /* no gathering: the card lends a transmit buffer */
	LINUX_NIC_BUSY = 4, /* for tests: the card has no room every other time */
};

/* Adds the card to a stack; mode is LINUX_NIC_... or 0. The id, or a negative result. */
lace_nic_id linux_nic_add(struct linux_nic *nic, lace_stack *net, unsigned mode);
/* Sets up a host whose clock, chance and sleep are Linux's; its ctx is the card. */
int linux_nic_host(struct linux_nic *nic, struct lace_host *host);

/* What follows is the card without a stack. */

/* The card's own address, 6 bytes. */
const uint8_t *linux_nic_mac(const struct linux_nic *nic);
/* Lends the next frame until the next call: 1, or 0 when there is none, or -1 when the card is gone. */
int linux_nic_recv(struct linux_nic *nic, const uint8_t **frame, size_t *len);
/* Sends one frame made of n pieces: 0, or 1 when there is no room now, or -1 when it is lost. */
int linux_nic_send(struct linux_nic *nic, const struct iovec *pieces, int n);
/* Sleeps until a frame may be there, at most max_us microseconds. */
void linux_nic_wait(struct linux_nic *nic, uint32_t max_us);
/* Frames dropped because the ring was full. */
unsigned long linux_nic_dropped(const struct linux_nic *nic);

/* Microseconds of a clock that only goes forward. */
uint64_t linux_now_us(void);
/* 32 random bits from the kernel. */
uint32_t linux_random(void);

#endif
