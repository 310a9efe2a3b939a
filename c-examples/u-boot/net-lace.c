// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * U-Boot's net/net.c over Bootlace. net_loop() is where the commands (cmd/net.c), bootstd, pxe, DFU and EFI come in, and
 * eth_rx()/eth_send() of net/eth-uclass.c is where frames go out: what lies between is the library's.
 *
 * One stack for as long as U-Boot runs, with the current Ethernet device as its one NIC: what was learned of neighbours and
 * servers is kept from one command to the next. The device runs during a command only, as always.
 */
#include "net-lace.h"

#include <bootstage.h>
#include <command.h>
#include <console.h>
#include <dm.h>
#include <env.h>
#include <env_internal.h>
#include <errno.h>
#include <image.h>
#include <log.h>
#include <malloc.h>
#include <rand.h>
#include <time.h>
#include <vsprintf.h>
#include <watchdog.h>
#include <net/tftp.h>
#ifdef CONFIG_DM_RNG
#include <rng.h>
#endif
#ifdef CONFIG_CMD_PCAP
#include <net/pcap.h>
#endif

/* Between two tries of all devices (netretry). */
#define RETRY_PAUSE_MS 10000

/* ---- what U-Boot's other parts read and write ---- */

struct in_addr net_netmask, net_gateway, net_dns_server, net_server_ip;
#ifdef CONFIG_BOOTP_DNS2
struct in_addr net_dns_server2;
#endif
u8 net_ethaddr[ARP_HLEN], net_server_ethaddr[ARP_HLEN];
const u8 net_bcast_ethaddr[ARP_HLEN] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
const u8 net_null_ethaddr[ARP_HLEN];
uchar *net_tx_packet, *net_rx_packet;
int net_rx_packet_len;
int net_restart_wrap;
ushort net_our_vlan = 0xffff, net_native_vlan = 0xffff;
bool net_boot_file_name_explicit;
int __maybe_unused net_busy_flag;
#if defined(CONFIG_API) || defined(CONFIG_EFI_LOADER)
void (*push_packet)(void *packet, int length);
#endif
#if LACE_NEW_TREE
char *pxelinux_configfile;
#else
enum net_loop_state net_state;
struct in_addr net_ip;
char net_boot_file_name[1024];
u32 net_boot_file_size;
u32 net_boot_file_expected_size_in_blocks;
uchar *net_rx_packets[PKTBUFSRX];
#endif

static uchar packets[(PKTBUFSRX + 1) * PKTSIZE_ALIGN + PKTALIGN];

/* ---- the stack ---- */

lace_stack *lace;
lace_nic_id lace_nic;
static void *arena;
static struct udevice *nic_dev;
static u8 nic_mac[ARP_HLEN];
static ushort nic_vlan;
static struct in_addr nic_ip, nic_netmask, nic_gateway;
static int tries;

struct lace_ip lace_from(struct in_addr addr)
{
	const u8 *b = (const u8 *)&addr.s_addr;
	struct lace_ip ip;

	lace_ip_v4(&ip, b[0], b[1], b[2], b[3]);
	if (!addr.s_addr)
		memset(&ip, 0, sizeof(ip));
	return ip;
}

struct in_addr lace_to(const struct lace_ip *ip)
{
	struct in_addr addr = { 0 };

	if (ip->family == LACE_IP_V4)
		memcpy(&addr, ip->bytes, sizeof(addr));
	return addr;
}

struct in_addr lace_env_ip(const char *name)
{
	return string_to_ip(env_get(name));
}

void lace_server(struct lace_peer *peer, struct in_addr addr, uint16_t port)
{
	peer->name = NULL;
	peer->ip = lace_from(addr);
	peer->port = port;
}

static uint64_t host_now_us(void *ctx)
{
	return timer_get_us();
}

static uint32_t host_random(void *ctx)
{
	static unsigned int seed;
	uint32_t value;
#ifdef CONFIG_DM_RNG
	struct udevice *rng;

	if (!uclass_get_device(UCLASS_RNG, 0, &rng) && !dm_rng_read(rng, &value, sizeof(value)))
		return value;
#endif
	/* No generator: the moment at which the stack asks, and the card's own number. */
	memcpy(&value, net_ethaddr + 2, sizeof(value));
	seed = seed * 1664525 + (unsigned int)get_ticks() + value;
	value = rand_r(&seed);
	return value << 16 ^ rand_r(&seed);
}

static int host_poll(void *ctx)
{
	schedule();
	return ctrlc();
}

/* Drivers map it for DMA: the one transmit buffer that U-Boot has for its stacks. */
static void *nic_tx_buffer(void *ctx, uint32_t len)
{
	return len <= PKTSIZE ? net_tx_packet : NULL;
}

static int nic_send(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token)
{
	int rc = n ? eth_send((void *)spans[0].data, spans[0].len) : 0;

	/* What the driver refuses is lost, as on the wire. */
	return rc < 0 ? LACE_EIO : 0;
}

/* The driver's ring, as often as it has frames: they come back by net_process_received_packet. */
static void nic_pump(void *ctx)
{
	eth_rx();
}

void net_process_received_packet(uchar *in_packet, int len)
{
	net_rx_packet = in_packet;
	net_rx_packet_len = len;
#ifdef CONFIG_CMD_PCAP
	pcap_post(in_packet, len, false);
#endif
#if defined(CONFIG_API) || defined(CONFIG_EFI_LOADER)
	if (push_packet) {
		push_packet(in_packet, len);
		return;
	}
#endif
	if (lace && len > 0)
		lace_input(lace, lace_nic, in_packet, len, 0);
}

static int start_stack(void)
{
	struct lace_config config;
	struct lace_host host;
	int64_t size;
	int rc;

	lace_config_init(&config, sizeof(config));
	config.operations = 3;
	config.udp_sockets = 4;
	config.tx_frames = 0;
	config.neighbours = 8;
	config.dns_names = 4;
	config.reassembly_slots = 16;
	if (IS_ENABLED(CONFIG_CMD_NFS) || WITH_HTTP) {
		config.tcp_connections = 4;
		config.tcp_receive_bytes = 4096;
		config.tcp_send_bytes = 2048;
		config.tcp_segments = 8;
	}
	config.nfs_jobs = IS_ENABLED(CONFIG_CMD_NFS);
	config.http_jobs = WITH_HTTP;
	size = lace_stack_size(&config);
	if (size < 0)
		return size;
	arena = memalign(64, size);
	if (!arena)
		return -ENOMEM;
	lace_host_init(&host, sizeof(host));
	host.clock_bits = 8 * sizeof(unsigned long);
	host.now_us = host_now_us;
	host.random = host_random;
	host.poll = host_poll;
	rc = lace_stack_init(arena, size, &config, &host, &lace);
	if (rc) {
		free(arena);
		arena = NULL;
		lace = NULL;
	}
	return rc;
}

int net_init(void)
{
	int i;

	if (!net_tx_packet) {
		net_tx_packet = packets + PKTALIGN - 1;
		net_tx_packet -= (ulong)net_tx_packet % PKTALIGN;
		for (i = 0; i < PKTBUFSRX; i++)
			net_rx_packets[i] = net_tx_packet + (i + 1) * PKTSIZE_ALIGN;
	}
	if (!eth_get_dev())
		return -ENONET;
	memcpy(net_ethaddr, eth_get_ethaddr(), ARP_HLEN);
	return lace ? 0 : start_stack();
}

static uint16_t vlan_id(void)
{
	ushort vlan = ntohs(net_our_vlan) & VLAN_IDMASK;

	return vlan == VLAN_NONE ? 0 : vlan;
}

static int sync_nic(void)
{
	struct udevice *dev = eth_get_dev();
	struct lace_nic nic;

	if (lace_nic > 0 && (dev != nic_dev || net_our_vlan != nic_vlan)) {
		lace_nic_remove(lace, lace_nic);
		lace_nic = 0;
	}
	if (lace_nic > 0) {
		if (!memcmp(nic_mac, net_ethaddr, ARP_HLEN))
			return 0;
		memcpy(nic_mac, net_ethaddr, ARP_HLEN);
		return lace_nic_set_mac(lace, lace_nic, nic_mac);
	}
	lace_nic_init(&nic, sizeof(nic));
	nic.send = nic_send;
	nic.tx_buffer = nic_tx_buffer;
	nic.pump = nic_pump;
	nic.vlan = vlan_id();
	memcpy(nic.mac, net_ethaddr, ARP_HLEN);
	lace_nic = lace_nic_add(lace, &nic);
	if (lace_nic < 0)
		return lace_nic;
	nic_dev = dev;
	nic_vlan = net_our_vlan;
	memcpy(nic_mac, net_ethaddr, ARP_HLEN);
	nic_ip.s_addr = 0;
	nic_gateway.s_addr = 0;
	return 0;
}

/* Bits of a netmask. */
static unsigned int prefix_of(struct in_addr mask)
{
	u32 bits = ntohl(mask.s_addr);
	unsigned int n = 0;

	for (; bits & 0x80000000; bits <<= 1)
		n++;
	return n;
}

int lace_sync(void)
{
	struct lace_ip ip, dns[2];
	unsigned int n = 0;
	int rc;

	rc = sync_nic();
	if (rc)
		return rc;
	if (nic_ip.s_addr != net_ip.s_addr || nic_netmask.s_addr != net_netmask.s_addr) {
		ip = lace_from(nic_ip);
		if (nic_ip.s_addr)
			lace_addr_remove(lace, lace_nic, &ip);
		ip = lace_from(net_ip);
		rc = net_ip.s_addr ? lace_addr_add(lace, lace_nic, &ip, prefix_of(net_netmask)) : 0;
		if (rc) {
			printf("*** ERROR: address %pI4 refused: %s\n", &net_ip, lace_strerror(rc));
			nic_ip.s_addr = 0;
			return rc;
		}
		nic_ip = net_ip;
		nic_netmask = net_netmask;
	}
	if (nic_gateway.s_addr != net_gateway.s_addr) {
		ip = lace_from(net_gateway);
		lace_gateway_set(lace, lace_nic, net_gateway.s_addr ? &ip : NULL);
		nic_gateway = net_gateway;
	}
	if (net_dns_server.s_addr)
		dns[n++] = lace_from(net_dns_server);
#ifdef CONFIG_BOOTP_DNS2
	if (net_dns_server2.s_addr)
		dns[n++] = lace_from(net_dns_server2);
#endif
	return lace_dns_set(lace, dns, n);
}

int64_t lace_finish(lace_op op, struct lace_detail *detail)
{
	int64_t result = lace_op_wait(lace, op);

	if (op >= 0) {
		if (detail)
			lace_op_detail(lace, op, detail);
		lace_op_close(lace, op);
	}
	return result;
}

void lace_explain(const char *what, int64_t result, const struct lace_detail *detail)
{
	if (result == LACE_EINTR)
		return;
	if (detail->kind != LACE_DETAIL_NONE && detail->text[0])
		printf("\n%s error: '%s' (%d)\n", what, detail->text, detail->code);
	else
		printf("\n%s error: %s\n", what, lace_strerror(result));
}

/* ---- net_loop ---- */

/* What a protocol needs before it begins. */
static int check(enum proto_t protocol)
{
	bool tftp = protocol == TFTPGET || protocol == TFTPPUT, ask = protocol == DHCP || protocol == BOOTP;

	if (protocol == PING && !net_ping_ip.s_addr)
		puts("*** ERROR: ping address not given\n");
	else if (protocol == DNS && !net_dns_server.s_addr)
		puts("*** ERROR: DNS server address not given\n");
	else if ((tftp || protocol == NFS) && !net_server_ip.s_addr && !is_serverip_in_cmd() &&
		 !lace_env_ip(tftp ? "tftpserverip" : "nfsserverip").s_addr)
		puts("*** ERROR: `serverip' not set\n");
	else if (!ask && !net_ip.s_addr)
		puts("*** ERROR: `ipaddr' not set\n");
	else if (is_zero_ethaddr(net_ethaddr))
		printf(eth_get_dev_index() ? "*** ERROR: `eth%daddr' not set\n" : "*** ERROR: `ethaddr' not set\n",
		       eth_get_dev_index());
	else
		return 0;
	return -ENODEV;
}

/* After DHCP: the file that was asked for, by the protocol that `autoload` names. */
static int autoload(void)
{
	const char *how = env_get("autoload");
	bool nfs = IS_ENABLED(CONFIG_CMD_NFS) && how && !strcmp(how, "NFS");
	int rc;

	if (!nfs && (env_get_yesno("autoload") == 0 || !IS_ENABLED(CONFIG_CMD_TFTPBOOT)))
		return 0;
	if (check(nfs ? NFS : TFTPGET)) {
		if (IS_ENABLED(CONFIG_BOOTP_SERVERIP))
			return 0;
		printf("Cannot autoload with %s\n", nfs ? "NFS" : "TFTPGET");
		return -ENODEV;
	}
	rc = lace_sync();
	if (rc)
		return rc;
	return nfs ? lace_nfs_load() : lace_tftp_load();
}

static int run(enum proto_t protocol)
{
	int rc = lace_sync();

	if (rc)
		return rc;
	if (IS_ENABLED(CONFIG_CMD_TFTPBOOT) && protocol == TFTPGET)
		return lace_tftp_load();
	if (IS_ENABLED(CONFIG_CMD_TFTPPUT) && protocol == TFTPPUT)
		return lace_tftp_save();
	if (IS_ENABLED(CONFIG_CMD_NFS) && protocol == NFS)
		return lace_nfs_load();
	if (WITH_HTTP && protocol == WGET)
		return lace_http_load();
	if (IS_ENABLED(CONFIG_CMD_PING) && protocol == PING)
		return lace_ping_ask();
	if (WITH_DNS && protocol == DNS)
		return lace_dns_ask();
	if (IS_ENABLED(CONFIG_CMD_SNTP) && protocol == UDP)
		return lace_sntp_ask();
	if (IS_ENABLED(CONFIG_CMD_BOOTP) && (protocol == DHCP || protocol == BOOTP)) {
		rc = lace_dhcp_ask();
		return rc ? rc : autoload();
	}
	puts("*** ERROR: not supported by this network stack\n");
	return -ENOSYS;
}

/* Whether to try again after a failure, as `netretry` has it, and if so with which device: 0: yes. */
int net_start_again(void)
{
	const char *retry = env_get("netretry");
	ulong start, most = 0;
	int rc;

	if (retry && !strcmp(retry, "yes"))
		most = ULONG_MAX;
	else if (retry && !strcmp(retry, "once"))
		most = 1;
	else if (retry && strcmp(retry, "no"))
		most = simple_strtoul(retry, NULL, 0);
	eth_halt();
	if (tries > most)
		return -ETIMEDOUT;
#ifndef CONFIG_NET_DO_NOT_TRY_ANOTHER
	eth_try_another(tries == 1);
#endif
	tries++;
	rc = eth_init();
	/* All devices were tried: a pause, which a key ends. */
	for (start = get_timer(0); rc >= 0 && net_restart_wrap && get_timer(start) < RETRY_PAUSE_MS;)
		rc = host_poll(NULL) ? -EINTR : rc;
	net_restart_wrap = 0;
	return rc < 0 ? rc : 0;
}

static void succeeded(void)
{
	if (!net_boot_file_size)
		return;
	printf("Bytes transferred = %u (%x hex)\n", net_boot_file_size, net_boot_file_size);
	env_set_hex("filesize", net_boot_file_size);
	env_set_hex("fileaddr", image_load_addr);
}

int net_loop(enum proto_t protocol)
{
	enum net_loop_state before = net_state;
	int rc, again = 1;

	bootstage_mark_name(BOOTSTAGE_ID_ETH_START, "eth_start");
	if (protocol != PING)
		net_ping_ip.s_addr = 0;
	tries = 1;
	net_boot_file_size = 0;
	rc = net_init();
	if (rc)
		return rc;
	eth_halt();
	eth_set_current();
	rc = eth_init();
	if (rc < 0) {
		eth_halt();
		return rc;
	}
	net_busy_flag = 1;
	do {
		net_set_state(NETLOOP_CONTINUE);
		net_init();
		rc = check(protocol);
		if (rc)
			break;
		net_boot_file_size = 0;
		rc = run(protocol);
		again = rc < 0 && rc != LACE_EINTR ? net_start_again() : 1;
	} while (!again);
	if (rc == LACE_EINTR || again == -EINTR) {
		puts("\nAbort\n");
		rc = -EINTR;
	}
	net_busy_flag = 0;
	if (rc >= 0)
		succeeded();
	eth_halt();
	eth_set_last_protocol(rc < 0 ? BOOTP : protocol);
	net_set_state(before);
#ifdef CONFIG_CMD_PCAP
	if (pcap_active())
		pcap_print_status();
#endif
	if (rc < 0)
		return rc;
	return LACE_NEW_TREE ? !!net_boot_file_size : net_boot_file_size;
}

/* ---- the environment ---- */

/* A function that keeps `variable` as the environment has it. */
#define FOLLOWS(name, variable, convert) \
	static int on_##name(const char *n, const char *value, enum env_op op, int flags) \
	{ \
		if (!(flags & H_PROGRAMMATIC)) \
			variable = convert(value); \
		return 0; \
	} \
	U_BOOT_ENV_CALLBACK(name, on_##name)

FOLLOWS(ipaddr, net_ip, string_to_ip);
FOLLOWS(gatewayip, net_gateway, string_to_ip);
FOLLOWS(netmask, net_netmask, string_to_ip);
FOLLOWS(serverip, net_server_ip, string_to_ip);
FOLLOWS(nvlan, net_native_vlan, string_to_vlan);
FOLLOWS(vlan, net_our_vlan, string_to_vlan);
FOLLOWS(dnsip, net_dns_server, string_to_ip);

int is_serverip_in_cmd(void)
{
	return strchr(net_boot_file_name, ':') != NULL;
}

/* "[server:]file" of the command line or of `bootfile`. */
int net_parse_bootfile(struct in_addr *ipaddr, char *filename, int max_len)
{
	const char *file = net_boot_file_name, *colon = strchr(file, ':');
	struct in_addr ip = { 0 };

	if (!*file)
		return 0;
	if (colon)
		ip = string_to_ip(file);
	if (ip.s_addr) {
		file = colon + 1;
		if (ipaddr)
			*ipaddr = ip;
	}
	snprintf(filename, max_len, "%s", file);
	return 1;
}

ushort string_to_vlan(const char *s)
{
	return htons(s && *s >= '0' && *s <= '9' ? (ushort)dectoul(s, NULL) : VLAN_NONE);
}

#if !LACE_NEW_TREE
void copy_filename(char *dst, const char *src, int size)
{
	bool quoted = src && *src == '"';
	int len = 0;

	if (quoted)
		src++;
	for (; src && src[len] && src[len] != '"' && len < size - 1; len++)
		dst[len] = src[len];
	dst[len] = '\0';
}

void ip_to_string(struct in_addr x, char *s)
{
	const u8 *b = (const u8 *)&x.s_addr;

	sprintf(s, "%d.%d.%d.%d", b[0], b[1], b[2], b[3]);
}
#endif
