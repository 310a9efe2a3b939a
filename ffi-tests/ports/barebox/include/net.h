/*
 * What barebox's net.h has that the port's glue and its clients use: our own declarations (see host.h). The fields of
 * `net_connection`, `eth_device` and the protocol headers have barebox's names, because clients name them.
 */
#ifndef NET_H
#define NET_H

#include "host.h"

#define ETH_ALEN 6
#define ETH_HLEN 14
#define PKTSIZE 1536
#define PROT_IP 0x0800
#define PROT_ARP 0x0806
#define IPPROTO_ICMP 1
#define IPPROTO_UDP 17
#define IP_BROADCAST 0xffffffffu
#define ICMP_ECHO_REPLY 0
#define ICMP_ECHO_REQUEST 8

struct ethernet {
	u8 et_dest[6];
	u8 et_src[6];
	u16 et_protlen;
} __attribute__((packed));

struct iphdr {
	u8 hl_v;
	u8 tos;
	u16 tot_len;
	u16 id;
	u16 frag_off;
	u8 ttl;
	u8 protocol;
	u16 check;
	u32 saddr;
	u32 daddr;
} __attribute__((packed));

struct udphdr {
	u16 uh_sport;
	u16 uh_dport;
	u16 uh_ulen;
	u16 uh_sum;
} __attribute__((packed));

struct icmphdr {
	u8 type;
	u8 code;
	u16 checksum;
	union {
		struct {
			u16 id;
			u16 sequence;
		} echo;
		u32 gateway;
	} un;
} __attribute__((packed));

struct device {
	int id;
};

struct eth_device {
	int active;
	int (*send)(struct eth_device *edev, void *packet, int length);
	void (*recv)(struct eth_device *edev);
	int (*rx_preprocessor)(struct eth_device *edev, unsigned char **packet, int *length);
	void (*rx_monitor)(struct eth_device *edev, void *packet, int length);
	void (*tx_monitor)(struct eth_device *edev, void *packet, int length);
	void *priv;
	struct device dev;
	IPaddr_t ipaddr;
	IPaddr_t netmask;
	char ethaddr[6];
	bool ifup;
	/* barebox has a struct slice and a class of devices. */
	int slice;
	struct list_head send_queue;
	struct list_head list;
};

extern struct list_head host_devices;
#define for_each_netdev(edev) list_for_each_entry(edev, &host_devices, list)

typedef void rx_handler_f(void *ctx, char *packet, unsigned int len);

struct net_connection {
	struct ethernet *et;
	struct iphdr *ip;
	struct udphdr *udp;
	struct eth_device *edev;
	struct icmphdr *icmp;
	unsigned char *packet;
	struct list_head list;
	rx_handler_f *handler;
	int proto;
	void *priv;
};

struct net_udp_pkt {
	struct udphdr *udp;
	void *payload;
	unsigned int len;
};

/* ---- net/eth.c, which stays ---- */

int eth_send(struct eth_device *edev, void *packet, int length);
int eth_rx(void);
int eth_set_ethaddr(struct eth_device *edev, const char *ethaddr);

/* ---- small things ---- */

static inline char *net_alloc_packet(void)
{
	return dma_alloc(PKTSIZE);
}

static inline void net_free_packet(char *packet)
{
	dma_free(packet);
}

static inline struct iphdr *net_eth_to_iphdr(char *packet)
{
	return (struct iphdr *)(packet + sizeof(struct ethernet));
}

static inline struct icmphdr *net_eth_to_icmphdr(char *packet)
{
	return (struct icmphdr *)(packet + sizeof(struct ethernet) + sizeof(struct iphdr));
}

static inline void *net_udp_get_payload(struct net_connection *con)
{
	return con->packet + sizeof(struct ethernet) + sizeof(struct iphdr) + sizeof(struct udphdr);
}

static inline int net_udp_bind(struct net_connection *con, u16 port)
{
	con->udp->uh_sport = htons(port);
	return 0;
}

static inline IPaddr_t net_read_ip(const void *from)
{
	IPaddr_t ip;

	memcpy(&ip, from, sizeof(ip));
	return ip;
}

static inline void net_write_ip(void *to, IPaddr_t ip)
{
	memcpy(to, &ip, sizeof(ip));
}

static inline int netmask_to_prefix(IPaddr_t netmask)
{
	return __builtin_popcount(netmask);
}

static inline bool is_valid_ether_addr(const u8 *mac)
{
	static const u8 zero[ETH_ALEN];

	return !(mac[0] & 1) && memcmp(mac, zero, ETH_ALEN);
}

static inline void random_ether_addr(u8 *mac)
{
	get_noncrypto_bytes(mac, ETH_ALEN);
	mac[0] = (mac[0] & ~1) | 2;
}

static inline void eth_addr_add(u8 *mac, long n)
{
	int i;

	for (i = ETH_ALEN - 1; i >= 0; i--, n >>= 8) {
		n += mac[i];
		mac[i] = n;
	}
}

int string_to_ip(const char *text, IPaddr_t *ip);
int resolv(const char *name, IPaddr_t *ip);

/* ---- net/net.c, which the glue stands for ---- */

int net_receive(struct eth_device *edev, unsigned char *pkt, int len);
void net_poll(void);
struct eth_device *net_route(IPaddr_t dest);
struct net_connection *net_udp_new(IPaddr_t dest, uint16_t dport, rx_handler_f *handler, void *ctx);
struct net_connection *net_udp_eth_new(struct eth_device *edev, IPaddr_t dest, uint16_t dport, rx_handler_f *handler,
				       void *ctx);
struct net_connection *net_icmp_new(IPaddr_t dest, rx_handler_f *handler, void *ctx);
void net_unregister(struct net_connection *con);
int net_udp_send(struct net_connection *con, int len);
int net_icmp_send(struct net_connection *con, int len);
int net_eth_to_udp(char *pkt, unsigned int framelen, struct net_udp_pkt *udp_pkt);
uint16_t net_checksum(unsigned char *ptr, int len);
int net_checksum_ok(unsigned char *ptr, int len);
int net_alloc_packets(void **packets, int count);
void net_free_packets(void **packets, unsigned int count);
int generate_ether_addr(u8 *addr, int ethid);
void net_set_ip(struct eth_device *edev, IPaddr_t ip);
IPaddr_t net_get_ip(struct eth_device *edev);
void net_set_netmask(struct eth_device *edev, IPaddr_t netmask);
void net_set_gateway(struct eth_device *edev, IPaddr_t gateway);
IPaddr_t net_get_gateway(void);
void net_set_nameserver(IPaddr_t nameserver);
IPaddr_t net_get_nameserver(void);
void net_set_domainname(const char *name);
const char *net_get_domainname(void);
const char *net_get_server(void);
void net_set_serverip(IPaddr_t ip);
void net_set_serverip_empty(IPaddr_t ip);
IPaddr_t net_get_serverip(void);
IPaddr_t getenv_ip(const char *name);
int setenv_ip(const char *name, IPaddr_t ip);
extern char *net_server, *net_fetchdir;
extern IPaddr_t net_gateway;

#endif
