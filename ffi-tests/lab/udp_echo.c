/*
 * Answers every datagram to port 7 from within the upcall, and every one to port 8 from its polled queue; gives up after
 * a datagram "quit" to port 7.
 *
 *   udp_echo TAP OWN-IP
 */
#define _DEFAULT_SOURCE
#include "bootlace.h"
#include "linux_nic.h"

#include <stdio.h>
#include <string.h>

static uint8_t arena[LACE_STACK_SIZE_FULL] LACE_ALIGNED;

struct echo {
	lace_stack *net;
	int quit, upcalls;
};

static void on_datagram(void *ctx, const struct lace_datagram *d)
{
	struct echo *e = ctx;
	int rc;

	e->upcalls++;
	if (d->payload_len == 4 && !memcmp(d->payload, "quit", 4))
		e->quit = 1;
	/* The whole frame is there, too. */
	if ((const uint8_t *)d->payload != (const uint8_t *)d->frame + d->payload_offset)
		puts("payload is not in the frame");
	rc = lace_udp_send(e->net, d->socket, &d->src, d->src_port, d->payload, d->payload_len);
	if (rc < 0)
		printf("send: %s\n", lace_strerror(rc));
}

/* Echoes what waits in the queue. */
static int drain(struct echo *e, lace_udp queue)
{
	static uint8_t data[2048];
	struct lace_datagram d;
	int64_t n;

	lace_datagram_init(&d, sizeof d);
	while ((n = lace_udp_recv(e->net, queue, data, sizeof data, &d)) >= 0) {
		int rc = lace_udp_send(e->net, queue, &d.src, d.src_port, data, (size_t)n);

		if (rc < 0 || n != d.payload_len)
			return printf("queue: %s, %lld of %u\n", lace_strerror(rc), (long long)n, (unsigned)d.payload_len);
	}
	return n != LACE_EAGAIN;
}

int main(int argc, char **argv)
{
	struct linux_nic_options options = { .kind = LINUX_NIC_TAP };
	struct lace_config config;
	struct lace_host host;
	struct lace_ip own;
	struct linux_nic *card;
	struct echo e = { NULL, 0, 0 };
	lace_udp handler, queue;
	lace_nic_id nic;

	if (argc != 3)
		return 2;
	options.name = argv[1];
	card = linux_nic_open(&options);
	if (!card)
		return 1;
	lace_config_full(&config, sizeof config);
	linux_nic_host(card, &host);
	if (lace_stack_init(arena, sizeof arena, &config, &host, &e.net) < 0)
		return 1;
	nic = linux_nic_add(card, e.net, 0);
	if (nic < 0 || lace_ip_parse(argv[2], &own) < 0 || lace_addr_add(e.net, nic, &own, 24) < 0)
		return 1;
	handler = lace_udp_open(e.net, on_datagram, &e);
	queue = lace_udp_open_queue(e.net);
	if (lace_udp_bind(e.net, handler, 0, NULL, 7) < 0 || lace_udp_bind(e.net, queue, 0, NULL, 8) < 0)
		return 1;
	puts("ready");
	fflush(stdout);
	while (!e.quit) {
		int64_t left;

		while (lace_poll(e.net, 32) > 0)
			;
		if (drain(&e, queue))
			return 1;
		left = lace_next_deadline(e.net);
		linux_nic_wait(card, left < 10000 ? (uint32_t)left : 10000);
	}
	printf("%d upcalls\n", e.upcalls);
	if (lace_stack_stop(e.net) < 0)
		return 1;
	linux_nic_close(card);
	return 0;
}
