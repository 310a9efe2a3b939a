// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * barebox's net/net.c over Bootlace: the stack is replaced, the clients (tftp, nfs, dhcp, dns, ping, sntp, netconsole,
 * fastboot) and net/eth.c stay as they are. One Bootlace stack serves every eth_device, each a NIC of its own.
 *
 * What the clients see is barebox's own interface: a net_connection has a packet with room for its headers, whose fields
 * they read and set (ports, addresses); received packets come to their handler as whole Ethernet frames. What a client set
 * in those fields counts when it sends.
 *
 * See README.md for how it is built in, and docs/PORTING.md for what every port supplies.
 */
#define pr_fmt(fmt) "net: " fmt

#include <clock.h>
#include <command.h>
#include <common.h>
#include <console.h>
#include <environment.h>
#include <errno.h>
#include <globalvar.h>
#include <init.h>
#include <led.h>
#include <linux/err.h>
#include <linux/hw_random.h>
#include <machine_id.h>
#include <magicvar.h>
#include <malloc.h>
#include <net.h>
#include <poller.h>
#include <stdlib.h>
#include <linux/uuid.h>
#include <xfuncs.h>

#include "bootlace.h"

/* NICs the stack can have; further eth_devices are refused with -ENOSPC. */
#define LACE_PORTS 8
/* How often the background poller looks at the NICs. */
#define POLL_EVERY (10 * MSECOND)
/* How often addresses and the list of devices are compared with what the stack knows, while nobody opens a connection. */
#define SYNC_EVERY (100 * MSECOND)
/* How often the stack's timers are looked at: none of them is finer. What is received needs no look at them. */
#define TIMERS_EVERY MSECOND
#define POLLS_PER_CLOCK 8
/* Pollers run several times between two polls of a client that waits. */
#define POLLERS_PER_POLL 4
/* How long opening a connection waits for a hardware address where the stack itself cannot go on: in a handler. */
#define RESOLVE_AT_MOST (6 * SECOND)

/* An eth_device and what the stack was told of it. */
struct port {
	struct eth_device *edev;
	lace_nic_id nic;
	void *tx;
	/* What the driver said of the last frame. */
	int error;
	IPaddr_t ip;
	IPaddr_t netmask;
	IPaddr_t gateway;
	u8 mac[ETH_ALEN];
	bool seen;
};

/* A connection: what the client has of it, and its socket. */
struct connection {
	struct net_connection con;
	lace_udp socket;
	u16 port;
};

char *net_server, *net_fetchdir;
IPaddr_t net_gateway;
static IPaddr_t net_nameserver;
static char *net_domainname;

static lace_stack *lace;
static struct port ports[LACE_PORTS];
static LIST_HEAD(connections);
static lace_hook icmp_hook;
/* Set while the stack or a driver runs: pollers that come back then find nothing to do. */
static bool in_net;
/* The stack's time in ns. Clocks can be slow to read, and nothing here needs a fine one: it is read every few polls. */
static u64 now;
static unsigned int polls_to_clock;
/* Calls of the background poller that find that somebody polls in the foreground. */
static unsigned int foreground;

static void look_at_clock(void)
{
	now = get_time_ns();
	polls_to_clock = POLLS_PER_CLOCK;
}

static int to_errno(int rc)
{
	/* Bootlace's numbers are those of Linux, as barebox's are. An address that nobody answers for is a timeout here. */
	return rc == LACE_EHOSTUNREACH ? -ETIMEDOUT : rc;
}

static struct lace_ip to_lace(IPaddr_t addr)
{
	const u8 *b = (const u8 *)&addr;
	struct lace_ip ip;

	lace_ip_v4(&ip, b[0], b[1], b[2], b[3]);
	return ip;
}

/* ---- the stack's callbacks ---- */

static uint64_t host_now_us(void *ctx)
{
	return div_u64(now, 1000);
}

static uint32_t host_random(void *ctx)
{
	uint32_t value;

	/* barebox complains aloud when it is asked and has no generator. */
	if (!IS_ERR(hwrng_get_first()) && !get_crypto_bytes(&value, sizeof(value)))
		return value;
	clocksource_srand();
	get_noncrypto_bytes(&value, sizeof(value));
	return value;
}

/* The drivers want one contiguous buffer they can map for DMA. */
static void *nic_tx_buffer(void *ctx, uint32_t len)
{
	struct port *port = ctx;

	return len <= PKTSIZE ? port->tx : NULL;
}

static int nic_send(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token)
{
	struct port *port = ctx;
	bool was = in_net;
	int rc;

	if (!n)
		return 0;
	in_net = true;
	/* eth_send minds the slice, the carrier, LEDs and the transmit monitor; it copies if it has to queue. */
	rc = eth_send(port->edev, (void *)spans[0].data, spans[0].len);
	in_net = was;
	port->error = rc;
	return rc == -EAGAIN ? -EIO : rc;
}

/* ---- devices ---- */

static struct port *port_of(const struct eth_device *edev)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ports); i++)
		if (edev && ports[i].edev == edev)
			return &ports[i];
	return NULL;
}

static void port_remove(struct port *port)
{
	lace_nic_remove(lace, port->nic);
	net_free_packet(port->tx);
	memset(port, 0, sizeof(*port));
}

static int port_add(struct eth_device *edev)
{
	struct port *port = NULL;
	struct lace_nic nic;
	unsigned int i;
	int rc;

	for (i = 0; i < ARRAY_SIZE(ports) && !port; i++)
		if (!ports[i].edev)
			port = &ports[i];
	if (!port)
		return -ENOSPC;

	port->tx = net_alloc_packet();
	if (!port->tx)
		return -ENOMEM;
	lace_nic_init(&nic, sizeof(nic));
	nic.ctx = port;
	nic.send = nic_send;
	nic.tx_buffer = nic_tx_buffer;
	memcpy(nic.mac, edev->ethaddr, ETH_ALEN);
	rc = lace_nic_add(lace, &nic);
	if (rc < 0) {
		net_free_packet(port->tx);
		port->tx = NULL;
		return rc;
	}
	port->edev = edev;
	port->nic = rc;
	memcpy(port->mac, edev->ethaddr, ETH_ALEN);
	return 0;
}

/* A device needs a hardware address before anything can be sent. */
static void give_ethaddr(struct eth_device *edev)
{
	bool stable;

	if (is_valid_ether_addr(edev->ethaddr))
		return;
	stable = !generate_ether_addr(edev->ethaddr, edev->dev.id);
	if (!stable)
		random_ether_addr(edev->ethaddr);
	dev_warn(&edev->dev, "has no MAC address, uses %s %pM\n",
		 stable ? "one made from the machine ID:" : "a random one:", edev->ethaddr);
	eth_set_ethaddr(edev, edev->ethaddr);
}

/* Tells the stack what was changed on a device: parameters are plain variables in barebox. */
static int port_sync(struct eth_device *edev)
{
	struct port *port = port_of(edev);
	IPaddr_t gateway = edev->ifup ? net_gateway : 0;
	struct lace_ip ip;
	int rc;

	if (!port) {
		if (!is_valid_ether_addr(edev->ethaddr))
			return -EADDRNOTAVAIL;
		rc = port_add(edev);
		if (rc)
			return rc;
		port = port_of(edev);
	}
	port->seen = true;
	if (memcmp(port->mac, edev->ethaddr, ETH_ALEN) && is_valid_ether_addr(edev->ethaddr)) {
		memcpy(port->mac, edev->ethaddr, ETH_ALEN);
		lace_nic_set_mac(lace, port->nic, port->mac);
	}
	if (port->ip != edev->ipaddr || port->netmask != edev->netmask) {
		if (port->ip) {
			ip = to_lace(port->ip);
			lace_addr_remove(lace, port->nic, &ip);
		}
		port->ip = edev->ipaddr;
		port->netmask = edev->netmask;
		if (port->ip) {
			ip = to_lace(port->ip);
			rc = lace_addr_add(lace, port->nic, &ip, netmask_to_prefix(port->netmask));
			if (rc)
				dev_warn(&edev->dev, "address refused: %s\n", lace_strerror(rc));
		}
	}
	if (gateway && (gateway & edev->netmask) != (edev->ipaddr & edev->netmask))
		gateway = 0;
	if (port->gateway != gateway) {
		port->gateway = gateway;
		ip = to_lace(gateway);
		lace_gateway_set(lace, port->nic, gateway ? &ip : NULL);
	}
	return 0;
}

/* Compares all devices with what the stack knows; forgets those that are gone. */
static void sync_ports(void)
{
	struct eth_device *edev;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ports); i++)
		ports[i].seen = false;
	for_each_netdev(edev)
		if (edev->active || edev->ipaddr || port_of(edev))
			port_sync(edev);
	for (i = 0; i < ARRAY_SIZE(ports); i++)
		if (ports[i].edev && !ports[i].seen)
			port_remove(&ports[i]);
}

/* ---- receiving ---- */

static bool intercepted(struct eth_device *edev, unsigned char **pkt, int *len, int *rc)
{
	if (edev->rx_monitor)
		edev->rx_monitor(edev, *pkt, *len);
	*rc = edev->rx_preprocessor ? edev->rx_preprocessor(edev, pkt, len) : 0;
	if (*rc == -ENOMSG) {
		*rc = 0;
		return true;
	}
	return *rc != 0;
}

int net_receive(struct eth_device *edev, unsigned char *pkt, int len)
{
	struct port *port;
	int rc;

	led_trigger_network(LED_TRIGGER_NET_RX);
	if (len < ETH_HLEN)
		return 0;
	if (intercepted(edev, &pkt, &len, &rc))
		return rc;
	port = port_of(edev);
	if (!port || !lace)
		return 0;
	return lace_input(lace, port->nic, pkt, len, 0);
}

/* A client may set its source port at any time, by a macro that tells nobody. */
static int rebind(struct connection *c)
{
	struct port *port = port_of(c->con.edev);
	u16 wanted = ntohs(c->con.udp->uh_sport);
	int rc;

	if (wanted == c->port)
		return 0;
	rc = lace_udp_bind(lace, c->socket, port ? port->nic : 0, NULL, wanted);
	if (!rc)
		c->port = wanted;
	return rc;
}

void net_poll(void)
{
	static u64 last_sync, last_timers;
	struct connection *c;

	if (in_net || !lace)
		return;
	in_net = true;
	foreground = POLLERS_PER_POLL;
	if (!polls_to_clock--)
		look_at_clock();
	if (now - last_sync >= SYNC_EVERY) {
		last_sync = now;
		sync_ports();
	}
	list_for_each_entry(c, &connections, con.list)
		if (c->con.proto == IPPROTO_UDP)
			rebind(c);
	/* Drivers call net_receive for each frame they have. */
	eth_rx();
	if (now - last_timers >= TIMERS_EVERY) {
		last_timers = now;
		lace_poll(lace, 1);
	}
	in_net = false;
}

static void poll_in_background(struct poller_struct *poller)
{
	static u64 last;

	if (foreground) {
		foreground--;
		return;
	}
	/* Reading a USB adapter takes milliseconds: what is not waited for is looked at seldom. */
	look_at_clock();
	if (now - last < POLL_EVERY)
		return;
	net_poll();
	look_at_clock();
	last = now;
}

static struct poller_struct net_poller = {
	.func = poll_in_background,
};

static void udp_received(void *ctx, const struct lace_datagram *datagram)
{
	struct connection *c = ctx;

	c->con.handler(c->con.priv, (char *)datagram->frame, datagram->frame_len);
}

static void icmp_received(void *ctx, const struct lace_packet *packet)
{
	struct connection *c, *next;

	list_for_each_entry_safe(c, next, &connections, con.list)
		if (c->con.proto == IPPROTO_ICMP)
			c->con.handler(c->con.priv, (char *)packet->frame, packet->frame_len);
}

/* ---- connections ---- */

struct eth_device *net_route(IPaddr_t dest)
{
	struct eth_device *edev;

	for_each_netdev(edev)
		if (edev->ifup && edev->ipaddr && !((edev->ipaddr ^ dest) & edev->netmask))
			return edev;
	return NULL;
}

/* Waits until the hardware address of the next hop is known. */
static int resolve(struct port *port, IPaddr_t dest, u8 *mac)
{
	struct lace_ip ip = to_lace(dest);
	u64 start;
	int rc;

	if (dest == IP_BROADCAST) {
		memset(mac, 0xff, ETH_ALEN);
		return 0;
	}
	port->error = 0;
	look_at_clock();
	start = now;
	while ((rc = lace_neighbour_get(lace, port->nic, &ip, mac)) == LACE_EAGAIN) {
		/* The stack takes it for a frame lost on the wire; here it is what the user is told: no link, or no device. */
		if (port->error)
			return port->error;
		if (ctrlc())
			return -EINTR;
		look_at_clock();
		if (now - start >= RESOLVE_AT_MOST)
			return -ETIMEDOUT;
		net_poll();
	}
	return rc < 0 ? to_errno(rc) : 0;
}

static void free_connection(struct connection *c)
{
	if (c->socket > 0)
		lace_udp_close(lace, c->socket);
	net_free_packet(c->con.packet);
	free(c);
}

static struct net_connection *connect(struct eth_device *edev, IPaddr_t dest, int proto, rx_handler_f *handler, void *ctx)
{
	struct connection *c;
	struct port *port;
	int rc;

	if (!edev)
		edev = net_route(dest);
	if (!edev && net_gateway)
		edev = net_route(net_gateway);
	if (!edev || !lace)
		return ERR_PTR(-EHOSTUNREACH);
	give_ethaddr(edev);
	/* Without an address only broadcasts can be sent. */
	if (!edev->ipaddr && dest != IP_BROADCAST)
		return ERR_PTR(-ENETDOWN);
	rc = port_sync(edev);
	if (rc)
		return ERR_PTR(rc);
	port = port_of(edev);

	c = xzalloc(sizeof(*c));
	c->con.packet = net_alloc_packet();
	if (!c->con.packet) {
		free(c);
		return ERR_PTR(-ENOMEM);
	}
	memset(c->con.packet, 0, PKTSIZE);
	c->con.edev = edev;
	c->con.handler = handler;
	c->con.priv = ctx;
	c->con.proto = proto;
	c->con.et = (struct ethernet *)c->con.packet;
	c->con.ip = net_eth_to_iphdr(c->con.packet);
	c->con.icmp = net_eth_to_icmphdr(c->con.packet);
	c->con.udp = (struct udphdr *)c->con.icmp;

	rc = resolve(port, dest, c->con.et->et_dest);
	if (rc)
		goto out;
	if (proto == IPPROTO_UDP) {
		rc = c->socket = lace_udp_open(lace, udp_received, c);
		if (rc < 0)
			goto out;
		rc = lace_udp_bind(lace, c->socket, port->nic, NULL, 0);
		if (rc)
			goto out;
		lace_udp_set(lace, c->socket, LACE_UDP_DONT_FRAGMENT, 1);
		c->port = lace_udp_port(lace, c->socket);
		c->con.udp->uh_sport = htons(c->port);
	}
	/* What the clients read; the stack makes the headers that are sent. */
	memcpy(c->con.et->et_src, edev->ethaddr, ETH_ALEN);
	c->con.et->et_protlen = htons(PROT_IP);
	c->con.ip->hl_v = 0x45;
	c->con.ip->protocol = proto;
	net_write_ip(&c->con.ip->saddr, edev->ipaddr);
	net_write_ip(&c->con.ip->daddr, dest);
	list_add_tail(&c->con.list, &connections);
	return &c->con;
out:
	free_connection(c);
	return ERR_PTR(rc);
}

struct net_connection *net_udp_eth_new(struct eth_device *edev, IPaddr_t dest, uint16_t dport, rx_handler_f *handler,
				       void *ctx)
{
	struct net_connection *con = connect(edev, dest, IPPROTO_UDP, handler, ctx);

	if (!IS_ERR(con))
		con->udp->uh_dport = htons(dport);
	return con;
}

struct net_connection *net_udp_new(IPaddr_t dest, uint16_t dport, rx_handler_f *handler, void *ctx)
{
	return net_udp_eth_new(NULL, dest, dport, handler, ctx);
}

struct net_connection *net_icmp_new(IPaddr_t dest, rx_handler_f *handler, void *ctx)
{
	return connect(NULL, dest, IPPROTO_ICMP, handler, ctx);
}

void net_unregister(struct net_connection *con)
{
	struct connection *c = container_of(con, struct connection, con);

	list_del(&con->list);
	free_connection(c);
}

int net_udp_send(struct net_connection *con, int len)
{
	struct connection *c = container_of(con, struct connection, con);
	struct lace_ip ip = to_lace(net_read_ip(&con->ip->daddr));
	int rc = rebind(c);

	if (rc)
		return rc;
	rc = lace_udp_send(lace, c->socket, &ip, ntohs(con->udp->uh_dport), net_udp_get_payload(con), len);
	/* No room in the card now: lost, as on the wire; the client repeats it. */
	return rc == LACE_EAGAIN ? 0 : to_errno(rc);
}

int net_icmp_send(struct net_connection *con, int len)
{
	struct port *port = port_of(con->edev);
	struct lace_ip ip = to_lace(net_read_ip(&con->ip->daddr));
	struct lace_span message = { .data = con->icmp, .len = sizeof(struct icmphdr) + len };
	int rc;

	con->icmp->checksum = 0;
	con->icmp->checksum = ~net_checksum((unsigned char *)con->icmp, message.len);
	rc = lace_send_ip(lace, port ? port->nic : 0, NULL, &ip, IPPROTO_ICMP, 255, &message, 1);
	return rc == LACE_EAGAIN ? 0 : to_errno(rc);
}

int net_eth_to_udp(char *pkt, unsigned int framelen, struct net_udp_pkt *udp_pkt)
{
	struct udphdr *udp = (struct udphdr *)net_eth_to_icmphdr(pkt);
	unsigned int headers = (char *)(udp + 1) - pkt;
	unsigned int len;

	if (framelen < headers)
		return -EINVAL;
	len = ntohs(udp->uh_ulen);
	if (len < sizeof(*udp) || len - sizeof(*udp) > framelen - headers)
		return -EINVAL;
	udp_pkt->udp = udp;
	udp_pkt->payload = udp + 1;
	udp_pkt->len = len - sizeof(*udp);
	return 0;
}

/* RFC 1071, for the clients that make their own messages. */
uint16_t net_checksum(unsigned char *ptr, int len)
{
	uint32_t sum = 0;
	uint16_t word;

	for (; len > 1; len -= 2, ptr += 2) {
		memcpy(&word, ptr, sizeof(word));
		sum += word;
	}
	if (len) {
		word = 0;
		memcpy(&word, ptr, 1);
		sum += word;
	}
	sum = (sum & 0xffff) + (sum >> 16);
	return sum + (sum >> 16);
}

int net_checksum_ok(unsigned char *ptr, int len)
{
	return net_checksum(ptr, len) == 0xffff;
}

int net_alloc_packets(void **packets, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		packets[i] = net_alloc_packet();
		if (!packets[i]) {
			net_free_packets(packets, i);
			return -ENOMEM;
		}
	}
	return 0;
}

void net_free_packets(void **packets, unsigned int count)
{
	while (count)
		net_free_packet(packets[--count]);
}

/* ---- configuration ---- */

void net_set_ip(struct eth_device *edev, IPaddr_t ip)
{
	edev->ipaddr = ip;
}

IPaddr_t net_get_ip(struct eth_device *edev)
{
	return edev->ipaddr;
}
EXPORT_SYMBOL(net_get_ip);

void net_set_netmask(struct eth_device *edev, IPaddr_t netmask)
{
	edev->netmask = netmask;
}

void net_set_gateway(struct eth_device *edev, IPaddr_t gateway)
{
	net_gateway = gateway;
}

IPaddr_t net_get_gateway(void)
{
	return net_gateway;
}

void net_set_nameserver(IPaddr_t nameserver)
{
	net_nameserver = nameserver;
}

IPaddr_t net_get_nameserver(void)
{
	return net_nameserver;
}

void net_set_domainname(const char *name)
{
	char *copy = xstrdup(name ? name : "");

	free(net_domainname);
	net_domainname = copy;
}

const char *net_get_domainname(void)
{
	return net_domainname;
}

const char *net_get_server(void)
{
	return net_server && *net_server ? net_server : NULL;
}

void net_set_serverip(IPaddr_t ip)
{
	free(net_server);
	net_server = xasprintf("%pI4", &ip);
}

void net_set_serverip_empty(IPaddr_t ip)
{
	if (!net_get_server())
		net_set_serverip(ip);
}

IPaddr_t net_get_serverip(void)
{
	IPaddr_t ip;

	return resolv(net_server, &ip) ? 0 : ip;
}

IPaddr_t getenv_ip(const char *name)
{
	const char *text = getenv(name);
	IPaddr_t ip = 0;

	if (text && string_to_ip(text, &ip))
		resolv(text, &ip);
	return ip;
}

int setenv_ip(const char *name, IPaddr_t ip)
{
	char *text = xasprintf("%pI4", &ip);
	int rc = setenv(name, text);

	free(text);
	return rc;
}

/* A hardware address that follows from the machine's identity: unicast, locally administered, the same at each boot. */
int generate_ether_addr(u8 *addr, int ethid)
{
	const char *hostname = barebox_get_hostname();
	uuid_t id;
	int rc;

	if (!IS_ENABLED(CONFIG_NET_ETHADDR_FROM_MACHINE_ID))
		return -ENOSYS;
	if (!hostname)
		return -EINVAL;
	/* The same name as barebox's own: the address does not change with the stack. */
	rc = machine_id_get_app_specific(&id, ARRAY_AND_SIZE("barebox-macaddr:"), hostname, strlen(hostname), NULL);
	if (rc)
		return rc;
	memcpy(addr, &id.b, ETH_ALEN);
	eth_addr_add(addr, ethid);
	addr[0] = (addr[0] & ~0x01) | 0x02;
	return 0;
}

/* ---- start ---- */

static int net_init(void)
{
	struct lace_config config;
	struct lace_host host;
	int64_t size;
	void *memory;
	int rc;

	net_fetchdir = xstrdup("/mnt/tftp");
	globalvar_add_simple_ip("net.nameserver", &net_nameserver);
	globalvar_add_simple_string("net.domainname", &net_domainname);
	globalvar_add_simple_string("net.server", &net_server);
	globalvar_add_simple_ip("net.gateway", &net_gateway);
	globalvar_add_simple_string("net.fetchdir", &net_fetchdir);

	/* Only the stack is used: no operations, sockets enough for every client at once, and room for fragments. */
	lace_config_full(&config, sizeof(config));
	config.nics = LACE_PORTS;
	config.operations = 0;
	config.udp_sockets = 32;
	config.udp_queues = 0;
	config.tx_frames = 0;
	size = lace_stack_size(&config);
	if (size < 0)
		return size;
	memory = memalign(64, size);
	if (!memory)
		return -ENOMEM;
	lace_host_init(&host, sizeof(host));
	look_at_clock();
	host.now_us = host_now_us;
	host.random = host_random;
	rc = lace_stack_init(memory, size, &config, &host, &lace);
	if (rc) {
		free(memory);
		pr_err("stack: %s\n", lace_strerror(rc));
		return rc;
	}
	icmp_hook = lace_hook_protocol(lace, IPPROTO_ICMP, icmp_received, NULL);
	return icmp_hook < 0 ? icmp_hook : 0;
}
postcore_initcall(net_init);

static int net_poller_init(void)
{
	return poller_register(&net_poller, "net");
}
device_initcall(net_poller_init);

BAREBOX_MAGICVAR(global.net.nameserver, "Name server that host names are looked up at");
BAREBOX_MAGICVAR(global.net.domainname, "Domain that host names are looked up in");
BAREBOX_MAGICVAR(global.net.server, "Server that TFTP and NFS use by default");
BAREBOX_MAGICVAR(global.net.fetchdir, "Where files for network boot are fetched to (default: /mnt/tftp)");
