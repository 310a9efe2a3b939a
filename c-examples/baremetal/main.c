/*
 * Firmware that boots from the network: an address by DHCP, the file that the DHCP server names by TFTP, straight to its load
 * address. A boot loader would jump there; this one says what it has: the last line is
 * `boot: OK BYTES bytes sha256 HEX`, or `boot: FAILED at WHAT: WHY`.
 */
#include "../sha256.h"
#include "board.h"
#include "virtio_net.h"

#include <bootlace.h>
#include <bootlace_sync.h>

int main(void);

static uint8_t arena[LACE_STACK_SIZE_TFTP] LACE_ALIGNED;
static struct virtio_net card;
static struct lace_lease lease;

static uint64_t now_us(void *ctx)
{
	(void)ctx;
	return board_now_us();
}

/* The board has no source of chance. A product takes its own; ports and identifiers here can be guessed. */
static uint32_t chance(void *ctx)
{
	static uint32_t state;

	(void)ctx;
	state = (state ^ (uint32_t)board_now_us()) * 2654435761u + card.mac[5];
	return state ^ state >> 15;
}

static void print_ip(const struct lace_ip *ip)
{
	char text[LACE_IP_TEXT];

	if (lace_ip_format(ip, text, sizeof text) > 0)
		board_print(text);
}

static void fail(const char *what, int64_t why)
{
	board_print("boot: FAILED at ");
	board_print(what);
	board_print(": ");
	board_print(lace_strerror(why));
	board_print("\n");
	board_off();
}

int main(void)
{
	struct lace_config config;
	struct lace_host host;
	struct lace_nic nic;
	struct lace_tftp_get get;
	struct lace_sink ram;
	lace_stack *net;
	lace_nic_id eth0;
	uint64_t start, us;
	char hex[65];
	int64_t n;
	int rc;

	board_print("boot: Bootlace on " BOARD_NAME "\n");
	rc = virtio_net_start(&card);
	if (rc < 0)
		fail("the card", rc);

	lace_config_init(&config, sizeof config);
	config.tx_frames = 0; /* the card lends its own */
	lace_host_init(&host, sizeof host);
	host.now_us = now_us;
	host.random = chance;
	rc = lace_stack_init(arena, sizeof arena, &config, &host, &net);
	if (rc < 0)
		fail("the stack", rc);
	lace_nic_init(&nic, sizeof nic);
	virtio_net_nic(&card, &nic);
	eth0 = lace_nic_add(net, &nic);
	if (eth0 < 0)
		fail("the NIC", eth0);

	lace_lease_init(&lease, sizeof lease);
	n = lace_dhcp(net, eth0, NULL, &lease);
	if (n < 0)
		fail("DHCP", n);
	board_print("boot: address ");
	print_ip(&lease.ip);
	board_print(", file \"");
	board_print(lease.boot_file);
	board_print("\" at ");
	print_ip(&lease.boot_server.ip);
	board_print("\n");

	lace_tftp_get_init(&get, sizeof get);
	get.server = lease.boot_server;
	get.path = lease.boot_file;
	lace_sink_memory(&ram, sizeof ram, board_load_start, (size_t)(board_load_end - board_load_start));
	start = board_now_us();
	n = lace_tftp_get(net, &get, &ram);
	us = board_now_us() - start;
	if (n < 0)
		fail("TFTP", n);
	while (lace_stack_stop(net) == LACE_EAGAIN)
		lace_poll(net, 32);
	virtio_net_stop(&card); /* before anything else gets the memory */

	board_print("boot: ");
	board_print_number((uint64_t)n);
	board_print(" bytes in ");
	board_print_number((uint32_t)us / 1000); /* under 71 minutes */
	board_print(" ms, ");
	board_print_number((uint32_t)n / ((uint32_t)us / 1000 + 1));
	board_print(" kB/s\n");
	sha256_hex(board_load_start, (size_t)n, hex);
	board_print("boot: OK ");
	board_print_number((uint64_t)n);
	board_print(" bytes sha256 ");
	board_print(hex);
	board_print("\n");
	board_off();
}
