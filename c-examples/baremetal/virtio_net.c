#include "virtio_net.h"

#include "board.h"

/* Registers, as indices of words (4.2.2). */
enum {
	MAGIC = 0x000 / 4,
	VERSION = 0x004 / 4,
	DEVICE_ID = 0x008 / 4,
	DEVICE_FEATURES = 0x010 / 4,
	DEVICE_FEATURES_SEL = 0x014 / 4,
	DRIVER_FEATURES = 0x020 / 4,
	DRIVER_FEATURES_SEL = 0x024 / 4,
	QUEUE_SEL = 0x030 / 4,
	QUEUE_NUM_MAX = 0x034 / 4,
	QUEUE_NUM = 0x038 / 4,
	QUEUE_READY = 0x044 / 4,
	QUEUE_NOTIFY = 0x050 / 4,
	STATUS = 0x070 / 4,
	QUEUE_DESC = 0x080 / 4,
	QUEUE_DRIVER = 0x090 / 4,
	QUEUE_DEVICE = 0x0a0 / 4,
	CONFIG = 0x100 / 4,
};

enum { ACKNOWLEDGE = 1, DRIVER = 2, DRIVER_OK = 4, FEATURES_OK = 8 };
enum { FEATURE_MAC = 1u << 5, FEATURE_VERSION_1 = 1u << 0 /* of the second word */ };
enum { WRITE = 2, NO_NOTIFY = 1 };
enum { RX, TX };

/* Before each frame (5.1.6): nothing to say in it, without offloads. Two bytes more put the IPv4 header on a multiple of 4. */
enum { HEADER = 12, PAD = 2 };

static void order(void)
{
	/* The device sees memory as it was before this, and we what it wrote. */
#ifdef __riscv
	__asm__ volatile("fence iorw, iorw" ::: "memory"); /* the compiler's orders memory only, not the device's registers */
#else
	__sync_synchronize();
#endif
}

static void address(struct virtio_net *card, unsigned reg, const void *at)
{
	card->regs[reg] = (uint32_t)(uintptr_t)at;
	card->regs[reg + 1] = (uint32_t)((uint64_t)(uintptr_t)at >> 32);
}

static int queue(struct virtio_net *card, unsigned number, struct virtq *q, uint16_t size)
{
	card->regs[QUEUE_SEL] = number;
	if (card->regs[QUEUE_READY] || card->regs[QUEUE_NUM_MAX] < size)
		return LACE_ENODEV;
	q->size = size;
	card->regs[QUEUE_NUM] = size;
	address(card, QUEUE_DESC, q->desc);
	address(card, QUEUE_DRIVER, &q->avail);
	address(card, QUEUE_DEVICE, &q->used);
	card->regs[QUEUE_READY] = 1;
	return 0;
}

/* Hands a descriptor to the device, which is woken if it wants to be. */
static void offer(struct virtio_net *card, unsigned number, struct virtq *q, uint16_t id)
{
	q->avail.ring[q->avail.index & (q->size - 1)] = id;
	order();
	*(volatile uint16_t *)&q->avail.index = (uint16_t)(q->avail.index + 1);
	order();
	if (!(*(volatile uint16_t *)&q->used.flags & NO_NOTIFY))
		card->regs[QUEUE_NOTIFY] = number;
}

/* Whether the device has given one back. */
static int given_back(struct virtq *q, uint32_t *id, uint32_t *length)
{
	if (*(volatile uint16_t *)&q->used.index == q->seen)
		return 0;
	order();
	*id = q->used.ring[q->seen & (q->size - 1)].id;
	*length = q->used.ring[q->seen & (q->size - 1)].length;
	q->seen++;
	return *id < q->size;
}

static int start_at(struct virtio_net *card, volatile uint32_t *regs)
{
	uint32_t features;

	card->regs = regs;
	regs[STATUS] = 0;
	regs[STATUS] = ACKNOWLEDGE;
	regs[STATUS] = ACKNOWLEDGE | DRIVER;
	regs[DEVICE_FEATURES_SEL] = 1;
	if (!(regs[DEVICE_FEATURES] & FEATURE_VERSION_1))
		return LACE_ENODEV;
	regs[DEVICE_FEATURES_SEL] = 0;
	features = regs[DEVICE_FEATURES] & FEATURE_MAC;
	regs[DRIVER_FEATURES_SEL] = 0;
	regs[DRIVER_FEATURES] = features;
	regs[DRIVER_FEATURES_SEL] = 1;
	regs[DRIVER_FEATURES] = FEATURE_VERSION_1;
	regs[STATUS] = ACKNOWLEDGE | DRIVER | FEATURES_OK;
	if (!(regs[STATUS] & FEATURES_OK))
		return LACE_ENODEV;
	if (queue(card, RX, &card->rx, VIRTIO_RX) || queue(card, TX, &card->tx, VIRTIO_TX))
		return LACE_ENODEV;
	for (unsigned i = 0; i < 6; i++)
		card->mac[i] = features ? ((volatile uint8_t *)(regs + CONFIG))[i] : (uint8_t)(i ? i : 2);
	regs[STATUS] = ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK;
	for (uint16_t i = 0; i < VIRTIO_RX; i++) {
		struct virtq_desc *d = &card->rx.desc[i];

		d->address = (uintptr_t)card->rx_buffers[i] + PAD;
		d->length = VIRTIO_BUFFER - PAD;
		d->flags = WRITE;
		offer(card, RX, &card->rx, i);
	}
	for (uint16_t i = 0; i < VIRTIO_TX; i++) {
		card->tx.desc[i].address = (uintptr_t)card->tx_buffers[i] + PAD; /* its header stays 0 */
		card->tx_free[card->tx_count++] = i;
	}
	return 0;
}

int virtio_net_start(struct virtio_net *card)
{
	for (unsigned slot = 0; slot < VIRTIO_SLOTS; slot++) {
		volatile uint32_t *regs = (volatile uint32_t *)(uintptr_t)(VIRTIO_BASE + slot * VIRTIO_STRIDE);

		if (regs[MAGIC] == 0x74726976 && regs[VERSION] == 2 && regs[DEVICE_ID] == 1)
			return start_at(card, regs);
	}
	return LACE_ENODEV;
}

void virtio_net_stop(struct virtio_net *card)
{
	card->regs[STATUS] = 0; /* reset */
	while (card->regs[STATUS])
		;
}

/* Lends the oldest received frame, where the device has put it. */
static int nic_recv(void *ctx, struct lace_frame *frame)
{
	struct virtio_net *card = ctx;
	uint32_t id, length;

	if (!given_back(&card->rx, &id, &length))
		return 0;
	frame->data = card->rx_buffers[id] + PAD + HEADER;
	frame->len = length > HEADER ? length - HEADER : 0;
	frame->flags = 0;
	frame->cookie = id;
	return 1;
}

static void nic_release(void *ctx, const struct lace_frame *frame)
{
	struct virtio_net *card = ctx;

	offer(card, RX, &card->rx, (uint16_t)frame->cookie);
}

static void *nic_buffer(void *ctx, uint32_t len)
{
	struct virtio_net *card = ctx;
	uint32_t id, length;

	while (given_back(&card->tx, &id, &length))
		card->tx_free[card->tx_count++] = (uint16_t)id;
	if (!card->tx_count || len > VIRTIO_BUFFER - PAD - HEADER)
		return NULL;
	return card->tx_buffers[card->tx_free[card->tx_count - 1]] + PAD + HEADER;
}

static int nic_send(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token)
{
	struct virtio_net *card = ctx;
	uint16_t id;

	(void)token;
	if (n == 0)
		return 0; /* the buffer was not used: it is still the last free one */
	id = card->tx_free[--card->tx_count];
	card->tx.desc[id].length = HEADER + spans[0].len;
	offer(card, TX, &card->tx, id);
	return 0;
}

void virtio_net_nic(struct virtio_net *card, struct lace_nic *nic)
{
	nic->ctx = card;
	nic->send = nic_send;
	nic->recv = nic_recv;
	nic->release = nic_release;
	nic->tx_buffer = nic_buffer;
	for (unsigned i = 0; i < 6; i++)
		nic->mac[i] = card->mac[i];
}
