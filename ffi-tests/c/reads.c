/* How the interface reads: the listing of the design, in C and in C++. Compiled, not run. */
#include <bootlace.h>
#include <bootlace_sync.h>
#include <stdio.h>
#include <string.h>

struct mac {
	uint8_t addr[6];
};

uint64_t board_now_us(void *ctx);
uint32_t board_random(void *ctx);
int board_poll(void *ctx);
int mac_send(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token);
int mac_recv(void *ctx, struct lace_frame *frame);
void mac_release(void *ctx, const struct lace_frame *frame);
void show_progress(void *ctx, lace_op op, uint64_t done, uint64_t total);
void on_datagram(void *ctx, const struct lace_datagram *datagram);
void blink(void);
int boot(void *board, struct mac *mac, void *load_addr, size_t load_size);

static uint8_t arena[LACE_STACK_SIZE_TFTP] LACE_ALIGNED;

int boot(void *board, struct mac *mac, void *load_addr, size_t load_size)
{
	struct lace_config cfg;
	struct lace_host host;
	struct lace_nic nic;
	struct lace_lease lease;
	struct lace_tftp_get get;
	struct lace_sink ram;
	lace_stack *net;
	lace_nic_id eth0;
	lace_udp s;
	lace_op op;
	int64_t n;
	int rc;

	lace_config_init(&cfg, sizeof cfg);                    /* limits: NICs, sockets, operations, fragments */
	lace_host_init(&host, sizeof host);
	host.ctx = board;
	host.now_us = board_now_us;
	host.random = board_random;
	host.poll = board_poll;
	rc = lace_stack_init(arena, sizeof arena, &cfg, &host, &net);
	if (rc)
		return rc;

	lace_nic_init(&nic, sizeof nic);
	nic.ctx = mac;
	nic.send = mac_send;
	nic.recv = mac_recv;
	nic.release = mac_release;
	memcpy(nic.mac, mac->addr, 6);
	eth0 = lace_nic_add(net, &nic);
	if (eth0 < 0)
		return eth0;

	lace_lease_init(&lease, sizeof lease);
	rc = (int)lace_dhcp(net, eth0, NULL, &lease);          /* blocks over host.poll; lace_dhcp_start does not */
	if (rc)
		return rc;

	lace_tftp_get_init(&get, sizeof get);                  /* blksize 0, windowsize 0: the best that works */
	get.server = lease.boot_server;
	get.path = lease.boot_file;
	get.progress = show_progress;
	lace_sink_memory(&ram, sizeof ram, load_addr, load_size);
	n = lace_tftp_get(net, &get, &ram);
	if (n < 0)
		printf("tftp: %s\n", lace_strerror(n));

	op = lace_tftp_get_start(net, &get, &ram);             /* the same, beside other work */
	while (lace_op_status(net, op) == LACE_EAGAIN) {
		lace_poll(net, 32);
		blink();
	}
	lace_op_close(net, op);

	s = lace_udp_open(net, on_datagram, board);            /* the stack alone, under the host's own client */
	lace_udp_close(net, s);
	return lace_stack_stop(net);
}
