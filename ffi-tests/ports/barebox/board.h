/*
 * A barebox of one file: clock, pollers, keyboard, memory that is counted, Ethernet devices with queues, and what sits at
 * the other end of their cables. Time passes only when somebody looks at the clock or the keyboard.
 */
#ifndef BOARD_H
#define BOARD_H

#include "net.h"

#define IP(a, b, c, d) htonl((u32)(a) << 24 | (b) << 16 | (c) << 8 | (d))

/* Ends the test unless `condition` holds. */
#define CHECK(condition) \
	do { \
		if (!(condition)) \
			board_fail(__FILE__, __LINE__, #condition); \
	} while (0)
void board_fail(const char *file, int line, const char *what);

/* ns since the start. */
extern u64 board_now;
/* ns that a look at the keyboard takes. */
extern u64 board_step;
/* When Ctrl-C is pressed; 0: never. It stays pressed. */
extern u64 board_ctrlc_at;
/* Blocks of memory that are out. */
extern long board_blocks;
/* Allocations that still succeed; negative: all. */
extern long board_memory;
/* What was said to the user. */
extern unsigned int board_messages;

struct board_frame {
	struct board_frame *next;
	int len;
	u8 *bytes;
};

/* A device: frames that wait in it, the last one sent, and whether there is a cable. */
struct board_device {
	struct eth_device edev;
	struct board_frame *waiting;
	struct board_frame **end;
	bool carrier;
	/* What `send` does besides sending. */
	void (*on_send)(struct board_device *dev);
	bool sending;
	u8 sent[PKTSIZE];
	int sent_len;
	unsigned int sent_frames;
	unsigned int sent_arp;
};

/* The host at the other end: answers ARP and echo requests, and sends datagrams for its port 7 back. */
struct board_peer {
	IPaddr_t ip;
	u8 mac[ETH_ALEN];
	bool silent;
};
extern struct board_peer board_peer;

/* Starts the glue: its initcalls, in barebox's order. */
void board_start(void);
/* A new device, active and up; `ip` 0: no address. The netmask is 255.255.255.0. */
struct board_device *board_add(IPaddr_t ip);
/* The device is unregistered and freed. */
void board_remove(struct board_device *dev);
/* A frame comes: a copy of exactly its length waits in the device. */
void board_push(struct board_device *dev, const void *frame, int len);
/* An IPv4 packet comes, its header made for it; a datagram. */
void board_push_ip(struct board_device *dev, IPaddr_t src, IPaddr_t dst, u8 protocol, const void *body, int len);
void board_push_udp(struct board_device *dev, IPaddr_t src, u16 sport, IPaddr_t dst, u16 dport, const void *payload, int len);
/* Polls as a client that waits does, for `ms` milliseconds. */
void board_wait(unsigned int ms);

#endif
