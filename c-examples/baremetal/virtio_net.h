/*
 * A network card by virtio 1 over MMIO (Virtual I/O Device specification, sections 2.7, 4.2 and 5.1), polled, for little-endian
 * machines. Its receive buffers are lent to the stack as they are and go back into the ring on release; its transmit
 * buffers are lent for the stack to write frames into.
 */
#ifndef VIRTIO_NET_H
#define VIRTIO_NET_H

#include <bootlace.h>

#define VIRTIO_RX 256 /* buffers: powers of two */
#define VIRTIO_TX 16
#define VIRTIO_BUFFER 1536

/* The queues as the device sees them (2.7.5 to 2.7.8). */
struct virtq_desc {
	uint64_t address;
	uint32_t length;
	uint16_t flags;
	uint16_t next;
};

struct virtq_avail {
	uint16_t flags;
	uint16_t index;
	uint16_t ring[VIRTIO_RX];
};

struct virtq_used {
	uint16_t flags;
	uint16_t index;
	struct {
		uint32_t id;
		uint32_t length;
	} ring[VIRTIO_RX];
};

struct virtq {
	struct virtq_desc desc[VIRTIO_RX] __attribute__((aligned(16)));
	struct virtq_avail avail;
	struct virtq_used used __attribute__((aligned(4)));
	uint16_t size;
	uint16_t seen; /* used entries that were looked at */
};

struct virtio_net {
	volatile uint32_t *regs;
	struct virtq rx, tx;
	uint16_t tx_free[VIRTIO_TX]; /* buffers that the device has given back */
	unsigned tx_count;
	uint8_t mac[6];
	uint8_t rx_buffers[VIRTIO_RX][VIRTIO_BUFFER] __attribute__((aligned(16)));
	uint8_t tx_buffers[VIRTIO_TX][VIRTIO_BUFFER] __attribute__((aligned(16)));
};

/* Finds and starts the first card. Returns 0, or LACE_ENODEV. */
int virtio_net_start(struct virtio_net *card);

/* Fills in `*nic`, which was set up by lace_nic_init. */
void virtio_net_nic(struct virtio_net *card, struct lace_nic *nic);

/* Stops it: nothing is written to memory any more. */
void virtio_net_stop(struct virtio_net *card);

#endif
