/* See linux_nic.h. */
#define _GNU_SOURCE
#include "linux_nic.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifdef WITH_SLIRP
#include <slirp/libslirp.h>
#endif

#define FRAME_MAX 65550u /* an IPv4 datagram of any length in one frame */
#define DRAIN_MAX 4096u  /* frames a ring model looks at in one poll */
#define QUEUE     256u   /* frames libslirp may hand over before we fetch them */
#define QUEUE_LEN 2048u
#define SMALL     256u /* bytes of a frame that is sent in one piece in any case */

struct held {
	size_t len;
	uint8_t *data;
};

struct linux_nic {
	enum linux_nic_kind kind;
	int fd; /* -1 with libslirp */
	uint8_t mac[6];
	FILE *pcap;
	unsigned long dropped;
	struct held *held; /* a queue of frames already taken in: the ring model's, or libslirp's */
	unsigned held_max, held_len, first, count;
	unsigned ring;
	uint8_t *frame; /* FRAME_MAX bytes */
	uint8_t *out;   /* as many, lent to a stack that does not gather */
	lace_stack *net;
	lace_nic_id id;
	unsigned mode, turn;
#ifdef WITH_SLIRP
	Slirp *slirp;
	struct pollfd *polls;
	int npolls, polls_max;
#endif
};

uint64_t linux_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

uint32_t linux_random(void)
{
	uint32_t r = 0;

	if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
		r = (uint32_t)linux_now_us() * 2654435761u;
	return r;
}

/* ---- pcap ---- */

static FILE *pcap_open(const char *path)
{
	static const struct {
		uint32_t magic;
		uint16_t major, minor;
		uint32_t zone, accuracy, snap, link; /* 1: Ethernet */
	} head = { 0xa1b2c3d4u, 2, 4, 0, 0, 262144, 1 };
	FILE *f = fopen(path, "wb");

	if (!f)
		return NULL;
	if (fwrite(&head, sizeof head, 1, f) == 1)
		return f;
	fclose(f);
	return NULL;
}

static void pcap_write(FILE *f, const struct iovec *pieces, int n)
{
	struct timespec t;
	uint32_t head[4], len = 0;

	if (!f)
		return;
	for (int i = 0; i < n; i++)
		len += (uint32_t)pieces[i].iov_len;
	clock_gettime(CLOCK_REALTIME, &t);
	head[0] = (uint32_t)t.tv_sec;
	head[1] = (uint32_t)(t.tv_nsec / 1000);
	head[2] = head[3] = len;
	fwrite(head, sizeof head, 1, f);
	for (int i = 0; i < n; i++)
		fwrite(pieces[i].iov_base, 1, pieces[i].iov_len, f);
}

/* ---- frames already taken in ---- */

static int held_alloc(struct linux_nic *nic, unsigned max, unsigned len)
{
	nic->held = calloc(max, sizeof *nic->held);
	if (!nic->held)
		return -1;
	nic->held_max = max;
	nic->held_len = len;
	for (unsigned i = 0; i < max; i++) {
		nic->held[i].data = malloc(len);
		if (!nic->held[i].data)
			return -1;
	}
	return 0;
}

static void held_put(struct linux_nic *nic, const void *data, size_t len)
{
	struct held *h;

	if (nic->count == nic->held_max || len > nic->held_len) {
		nic->dropped++;
		return;
	}
	h = &nic->held[(nic->first + nic->count++) % nic->held_max];
	h->len = len;
	memcpy(h->data, data, len);
}

static int held_get(struct linux_nic *nic, const uint8_t **frame, size_t *len)
{
	if (!nic->count)
		return 0;
	*frame = nic->held[nic->first].data;
	*len = nic->held[nic->first].len;
	nic->first = (nic->first + 1) % nic->held_max;
	nic->count--;
	return 1;
}

/* ---- TAP and AF_PACKET ---- */

/* A TAP that was just opened loses what the kernel sends until its carrier has come up: a moment later. */
static void tap_settle(const char *name)
{
	struct timespec ms = { 0, 1000000 };
	struct ifreq r;
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memset(&r, 0, sizeof r);
	snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
	for (int i = 0; s >= 0 && i < 1000 && ioctl(s, SIOCGIFFLAGS, &r) == 0; i++) {
		if (!(r.ifr_flags & IFF_UP) || (r.ifr_flags & IFF_RUNNING))
			break;
		nanosleep(&ms, NULL);
	}
	if (s >= 0)
		close(s);
}

static int tap_open(const char *name)
{
	struct ifreq r;
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -1;
	memset(&r, 0, sizeof r);
	snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
	r.ifr_flags = IFF_TAP | IFF_NO_PI;
	if (ioctl(fd, TUNSETIFF, &r) == 0) {
		tap_settle(r.ifr_name);
		return fd;
	}
	close(fd);
	return -1;
}

static int packet_open(const char *name)
{
	struct sockaddr_ll a;
	struct packet_mreq m;
	int big = 4 << 20, one = 1, fd;

	memset(&a, 0, sizeof a);
	a.sll_family = AF_PACKET;
	a.sll_protocol = htons(ETH_P_ALL);
	a.sll_ifindex = (int)if_nametoindex(name);
	if (!a.sll_ifindex)
		return -1;
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	/* We answer to an address of our own, beside the kernel's. */
	memset(&m, 0, sizeof m);
	m.mr_ifindex = a.sll_ifindex;
	m.mr_type = PACKET_MR_PROMISC;
	if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof m) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) ||
	    bind(fd, (struct sockaddr *)&a, sizeof a)) {
		close(fd);
		return -1;
	}
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof big))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &big, sizeof big);
	return fd;
}

/* One frame from the kernel into nic->frame: its length, 0 for none, -1 when the descriptor is dead. */
static ssize_t fd_read(struct linux_nic *nic)
{
	ssize_t n = read(nic->fd, nic->frame, FRAME_MAX);

	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EINTR || errno == ENETDOWN ? 0 : -1;
}

static int fd_send(struct linux_nic *nic, const struct iovec *pieces, int n)
{
	uint8_t small[SMALL];
	size_t len = 0;
	ssize_t r;

	for (int i = 0; i < n; i++)
		len += pieces[i].iov_len;
	if (n == 1) {
		r = write(nic->fd, pieces[0].iov_base, len);
	} else if (len <= sizeof small) {
		/* cheaper than to have the kernel gather */
		len = 0;
		for (int i = 0; i < n; i++) {
			memcpy(small + len, pieces[i].iov_base, pieces[i].iov_len);
			len += pieces[i].iov_len;
		}
		r = write(nic->fd, small, len);
	} else {
		r = writev(nic->fd, pieces, n);
	}

	if (r >= 0)
		return 0;
	return errno == EAGAIN || errno == ENOBUFS ? 1 : -1;
}

/* ---- libslirp ---- */

#ifdef WITH_SLIRP
struct timer {
	SlirpTimerCb call;
	void *ctx;
};

static ssize_t slirp_out(const void *data, size_t len, void *ctx)
{
	struct linux_nic *nic = ctx;

	/* One place stays free: the frame before the queue's first may be on loan. */
	if (nic->count + 1 < nic->held_max)
		held_put(nic, data, len);
	else
		nic->dropped++;
	return (ssize_t)len;
}

static void slirp_complain(const char *text, void *ctx)
{
	(void)ctx;
	fprintf(stderr, "libslirp: %s\n", text);
}

static int64_t slirp_clock(void *ctx)
{
	(void)ctx;
	return (int64_t)linux_now_us() * 1000;
}

/* libslirp has one timer, for IPv6 router advertisements, which are off: it never needs to fire. */
static void *slirp_timer(SlirpTimerCb call, void *cb_ctx, void *ctx)
{
	struct timer *t = malloc(sizeof *t);

	(void)ctx;
	if (t) {
		t->call = call;
		t->ctx = cb_ctx;
	}
	return t;
}

static void slirp_timer_free(void *timer, void *ctx)
{
	(void)ctx;
	free(timer);
}

static void slirp_timer_set(void *timer, int64_t ms, void *ctx)
{
	(void)timer;
	(void)ms;
	(void)ctx;
}

static void slirp_fd(int fd, void *ctx)
{
	(void)fd;
	(void)ctx;
}

static void slirp_kick(void *ctx)
{
	(void)ctx;
}

static const SlirpCb slirp_calls = {
	.send_packet = slirp_out,
	.guest_error = slirp_complain,
	.clock_get_ns = slirp_clock,
	.timer_new = slirp_timer,
	.timer_free = slirp_timer_free,
	.timer_mod = slirp_timer_set,
	.register_poll_fd = slirp_fd,
	.unregister_poll_fd = slirp_fd,
	.notify = slirp_kick,
};

static int slirp_open(struct linux_nic *nic, const struct linux_nic_options *o)
{
	SlirpConfig c;

	memset(&c, 0, sizeof c);
	c.version = 1;
	c.restricted = !o->open;
	c.in_enabled = true;
	c.vnetwork.s_addr = htonl(0x0a000200); /* 10.0.2.0/24 */
	c.vnetmask.s_addr = htonl(0xffffff00);
	c.vhost.s_addr = htonl(0x0a000202);
	c.vdhcp_start.s_addr = htonl(0x0a00020f);
	c.vnameserver.s_addr = htonl(0x0a000203);
	c.tftp_path = o->tftp_root;
	c.bootfile = o->boot_file;
	if (held_alloc(nic, QUEUE, QUEUE_LEN))
		return -1;
	nic->slirp = slirp_new(&c, &slirp_calls, nic);
	return nic->slirp ? 0 : -1;
}

static int slirp_add_poll(int fd, int events, void *ctx)
{
	struct linux_nic *nic = ctx;
	short e = 0;

	if (nic->npolls == nic->polls_max) {
		int max = nic->polls_max ? 2 * nic->polls_max : 16;
		struct pollfd *p = realloc(nic->polls, (size_t)max * sizeof *p);

		if (!p)
			return -1;
		nic->polls = p;
		nic->polls_max = max;
	}
	if (events & SLIRP_POLL_IN)
		e |= POLLIN;
	if (events & SLIRP_POLL_OUT)
		e |= POLLOUT;
	if (events & SLIRP_POLL_PRI)
		e |= POLLPRI;
	nic->polls[nic->npolls].fd = fd;
	nic->polls[nic->npolls].events = e;
	nic->polls[nic->npolls].revents = 0;
	return nic->npolls++;
}

static int slirp_revents(int i, void *ctx)
{
	struct linux_nic *nic = ctx;
	short e = i < 0 ? 0 : nic->polls[i].revents;

	return (e & POLLIN ? SLIRP_POLL_IN : 0) | (e & POLLOUT ? SLIRP_POLL_OUT : 0) |
	       (e & POLLPRI ? SLIRP_POLL_PRI : 0) | (e & POLLERR ? SLIRP_POLL_ERR : 0) |
	       (e & POLLHUP ? SLIRP_POLL_HUP : 0);
}

static void slirp_wait(struct linux_nic *nic, uint32_t max_us)
{
	uint32_t ms = max_us / 1000;
	struct timespec t;
	int r;

	if (nic->count)
		return;
	nic->npolls = 0;
	slirp_pollfds_fill(nic->slirp, &ms, slirp_add_poll, nic);
	if (ms < max_us / 1000)
		max_us = ms * 1000;
	t.tv_sec = max_us / 1000000;
	t.tv_nsec = (long)(max_us % 1000000) * 1000;
	r = ppoll(nic->polls, (nfds_t)nic->npolls, &t, NULL);
	slirp_pollfds_poll(nic->slirp, r < 0, slirp_revents, nic);
}

static int slirp_send(struct linux_nic *nic, const struct iovec *pieces, int n)
{
	size_t len = 0;

	for (int i = 0; i < n; i++) {
		if (pieces[i].iov_len > FRAME_MAX - len)
			return -1;
		memcpy(nic->frame + len, pieces[i].iov_base, pieces[i].iov_len);
		len += pieces[i].iov_len;
	}
	slirp_input(nic->slirp, nic->frame, (int)len);
	return 0;
}
#endif

/* ---- the card ---- */

static int nic_open(struct linux_nic *nic, const struct linux_nic_options *o)
{
	switch (o->kind) {
	case LINUX_NIC_TAP:
		nic->fd = tap_open(o->name);
		break;
	case LINUX_NIC_PACKET:
		nic->fd = packet_open(o->name);
		break;
	case LINUX_NIC_SLIRP:
#ifdef WITH_SLIRP
		return slirp_open(nic, o);
#else
		errno = ENOTSUP;
		return -1;
#endif
	}
	if (nic->fd < 0)
		return -1;
	nic->ring = o->ring;
	return o->ring ? held_alloc(nic, o->ring, FRAME_MAX) : 0;
}

struct linux_nic *linux_nic_open(const struct linux_nic_options *o)
{
	struct linux_nic *nic = calloc(1, sizeof *nic);
	const char *name = o->name ? o->name : "slirp";
	uint32_t hash = 2166136261u;

	if (!nic)
		return NULL;
	nic->kind = o->kind;
	nic->fd = -1;
	/* A locally administered address, the same in each run on the same interface. */
	for (const char *c = name; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 16777619u;
	nic->mac[0] = 0x02;
	nic->mac[1] = 0xb1;
	for (int i = 0; i < 4; i++)
		nic->mac[2 + i] = (uint8_t)(hash >> (8 * i));
	if (o->mac)
		memcpy(nic->mac, o->mac, sizeof nic->mac);
	nic->frame = malloc(FRAME_MAX);
	if (!nic->frame || nic_open(nic, o)) {
		fprintf(stderr, "%s: %s\n", name, strerror(errno));
		linux_nic_close(nic);
		return NULL;
	}
	if (o->pcap && !(nic->pcap = pcap_open(o->pcap))) {
		fprintf(stderr, "%s: %s\n", o->pcap, strerror(errno));
		linux_nic_close(nic);
		return NULL;
	}
	return nic;
}

void linux_nic_close(struct linux_nic *nic)
{
	if (!nic)
		return;
#ifdef WITH_SLIRP
	if (nic->slirp)
		slirp_cleanup(nic->slirp);
	free(nic->polls);
#endif
	if (nic->fd >= 0)
		close(nic->fd);
	if (nic->pcap && fclose(nic->pcap))
		fprintf(stderr, "pcap: %s\n", strerror(errno));
	for (unsigned i = 0; i < nic->held_max; i++)
		free(nic->held[i].data);
	free(nic->held);
	free(nic->frame);
	free(nic->out);
	free(nic);
}

const uint8_t *linux_nic_mac(const struct linux_nic *nic)
{
	return nic->mac;
}

unsigned long linux_nic_dropped(const struct linux_nic *nic)
{
	return nic->dropped;
}

/* The ring model: what waits in the kernel beyond the ring's buffers would not have fitted into a real card. */
static int ring_refill(struct linux_nic *nic)
{
	ssize_t n = 0;

	for (unsigned i = 0; i < DRAIN_MAX && (n = fd_read(nic)) > 0; i++)
		held_put(nic, nic->frame, (size_t)n);
	return n < 0 ? -1 : 0;
}

int linux_nic_recv(struct linux_nic *nic, const uint8_t **frame, size_t *len)
{
	int got;

	if (nic->held) {
		if (!nic->count && nic->ring && ring_refill(nic))
			return -1;
#ifdef WITH_SLIRP
		if (!nic->count && nic->slirp)
			slirp_wait(nic, 0);
#endif
		got = held_get(nic, frame, len);
	} else {
		ssize_t n = fd_read(nic);

		*frame = nic->frame;
		*len = n > 0 ? (size_t)n : 0;
		got = n > 0 ? 1 : (int)n;
	}
	if (got > 0 && nic->pcap) {
		struct iovec piece = { (void *)(uintptr_t)*frame, *len };

		pcap_write(nic->pcap, &piece, 1);
	}
	return got;
}

int linux_nic_send(struct linux_nic *nic, const struct iovec *pieces, int n)
{
	int r;

#ifdef WITH_SLIRP
	if (nic->slirp)
		r = slirp_send(nic, pieces, n);
	else
#endif
		r = fd_send(nic, pieces, n);
	if (r == 0)
		pcap_write(nic->pcap, pieces, n);
	return r;
}

void linux_nic_wait(struct linux_nic *nic, uint32_t max_us)
{
	struct pollfd p = { nic->fd, POLLIN, 0 };
	struct timespec t = { max_us / 1000000, (long)(max_us % 1000000) * 1000 };

#ifdef WITH_SLIRP
	if (nic->slirp) {
		slirp_wait(nic, max_us);
		return;
	}
#endif
	if (!nic->count)
		ppoll(&p, 1, &t, NULL);
}

/* ---- the card as a driver of Bootlace's ---- */

static int32_t driver_send(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token)
{
	struct linux_nic *nic = ctx;
	struct iovec pieces[8];

	(void)token; /* nothing is kept */
	if (n == 0)
		return LACE_OK; /* an unused buffer comes back */
	if ((nic->mode & LINUX_NIC_BUSY) && nic->turn++ % 2 == 0)
		return LACE_EAGAIN;
	if (n > sizeof pieces / sizeof *pieces)
		return LACE_EMSGSIZE;
	for (uint32_t i = 0; i < n; i++) {
		pieces[i].iov_base = (void *)(uintptr_t)spans[i].data;
		pieces[i].iov_len = spans[i].len;
	}
	switch (linux_nic_send(nic, pieces, (int)n)) {
	case 0:
		return LACE_OK;
	case 1:
		return LACE_EAGAIN;
	default:
		return LACE_EIO;
	}
}

static int32_t driver_recv(void *ctx, struct lace_frame *frame)
{
	const uint8_t *data;
	size_t len;
	int got = linux_nic_recv(ctx, &data, &len);

	if (got <= 0)
		return got < 0 ? LACE_EIO : 0;
	frame->data = data;
	frame->len = (uint32_t)len;
	frame->flags = 0;
	return 1;
}

static void driver_pump(void *ctx)
{
	struct linux_nic *nic = ctx;
	const uint8_t *data;
	size_t len;

	for (int i = 0; i < 32 && linux_nic_recv(nic, &data, &len) > 0; i++)
		lace_input(nic->net, nic->id, data, len, 0);
}

static void *driver_buffer(void *ctx, uint32_t len)
{
	struct linux_nic *nic = ctx;

	return len <= FRAME_MAX ? nic->out : NULL;
}

lace_nic_id linux_nic_add(struct linux_nic *nic, lace_stack *net, unsigned mode)
{
	struct lace_nic driver;
	int rc = lace_nic_init(&driver, sizeof driver);

	if (rc < 0)
		return rc;
	driver.ctx = nic;
	driver.send = driver_send;
	memcpy(driver.mac, nic->mac, sizeof driver.mac);
	if (mode & LINUX_NIC_PUSH)
		driver.pump = driver_pump;
	else
		driver.recv = driver_recv;
	if (mode & LINUX_NIC_COPY) {
		nic->out = nic->out ? nic->out : malloc(FRAME_MAX);
		if (!nic->out)
			return LACE_ENOMEM;
		driver.tx_buffer = driver_buffer;
	} else {
		driver.caps = LACE_NIC_GATHER;
	}
	nic->net = net;
	nic->mode = mode;
	nic->id = lace_nic_add(net, &driver);
	return nic->id;
}

static uint64_t host_now(void *ctx)
{
	(void)ctx;
	return linux_now_us();
}

static uint32_t host_random(void *ctx)
{
	(void)ctx;
	return linux_random();
}

static void host_idle(void *ctx, uint32_t max_us)
{
	linux_nic_wait(ctx, max_us);
}

int linux_nic_host(struct linux_nic *nic, struct lace_host *host)
{
	int rc = lace_host_init(host, sizeof *host);

	host->ctx = nic;
	host->now_us = host_now;
	host->random = host_random;
	host->idle = host_idle;
	return rc;
}
