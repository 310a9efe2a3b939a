/* What board.h and the headers under include/ declare. */
#include <stdarg.h>

#include "board.h"

#undef free

u64 board_now = SECOND;
u64 board_step = 100000;
u64 board_ctrlc_at;
long board_blocks;
long board_memory = -1;
unsigned int board_messages;
struct board_peer board_peer = { IP(10, 0, 0, 1), { 2, 0, 0, 0, 0, 1 }, false };
LIST_HEAD(host_devices);
static LIST_HEAD(pollers);

void board_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	exit(1);
}

/* ---- memory ---- */

void *host_alloc(size_t size, size_t align)
{
	void *block = NULL;

	if (board_memory == 0)
		return NULL;
	if (board_memory > 0)
		board_memory--;
	CHECK(!posix_memalign(&block, align, size));
	memset(block, 0, size);
	board_blocks++;
	return block;
}

void host_free(void *block)
{
	if (block)
		board_blocks--;
	free(block);
}

char *host_strdup(const char *text)
{
	char *copy = host_alloc(strlen(text) + 1, 16);

	CHECK(copy);
	return strcpy(copy, text);
}

/* Of barebox's formats only the one that is used. */
char *xasprintf(const char *format, const void *ip)
{
	const u8 *b = ip;
	char text[16];

	CHECK(!strcmp(format, "%pI4"));
	snprintf(text, sizeof(text), "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
	return host_strdup(text);
}

/* ---- clock, pollers, keyboard ---- */

u64 get_time_ns(void)
{
	return board_now += 100;
}

static void run_pollers(void)
{
	static bool running;
	struct poller_struct *poller;

	if (running)
		return;
	running = true;
	list_for_each_entry(poller, &pollers, list)
		poller->func(poller);
	running = false;
}

int is_timeout_non_interruptible(u64 start, u64 length)
{
	return get_time_ns() - start >= length;
}

int is_timeout(u64 start, u64 length)
{
	if (length >= 100000)
		run_pollers();
	return is_timeout_non_interruptible(start, length);
}

int ctrlc(void)
{
	board_now += board_step;
	run_pollers();
	return board_ctrlc_at && board_now >= board_ctrlc_at;
}

int poller_register(struct poller_struct *poller, const char *name)
{
	CHECK(name);
	list_add_tail(&poller->list, &pollers);
	return 0;
}

/* ---- chance, identity, variables, messages ---- */

static u32 chance = 1;

void clocksource_srand(void)
{
	chance ^= (u32)board_now;
}

void get_noncrypto_bytes(void *buffer, size_t len)
{
	u8 *at = buffer;

	while (len--) {
		chance = chance * 1664525 + 1013904223;
		*at++ = chance >> 24;
	}
}

struct hwrng *hwrng_get_first(void)
{
	return ERR_PTR(-ENODEV);
}

int get_crypto_bytes(void *buffer, int len)
{
	/* It says so on the console. */
	board_messages++;
	return -ENODEV;
}

const char *barebox_get_hostname(void)
{
	return "board";
}

int machine_id_get_app_specific(uuid_t *id, ...)
{
	static const u8 value[16] = { 0x11, 0x22, 0x33, 0x44, 0x55, 0xfe };

	memcpy(id->b, value, sizeof(value));
	return 0;
}

int globalvar_add_simple_ip(const char *name, IPaddr_t *ip)
{
	return name && ip ? 0 : -EINVAL;
}

int globalvar_add_simple_string(const char *name, char **text)
{
	return name && text ? 0 : -EINVAL;
}

int host_setenv(const char *name, const char *text)
{
	return (setenv)(name, text, 1);
}

void led_trigger_network(enum led_trigger trigger)
{
}

void host_say(const char *format, ...)
{
	CHECK(format);
	board_messages++;
}

int string_to_ip(const char *text, IPaddr_t *ip)
{
	unsigned int a, b, c, d;
	char more;

	if (!text || sscanf(text, "%u.%u.%u.%u%c", &a, &b, &c, &d, &more) != 4 || (a | b | c | d) > 255)
		return -EINVAL;
	*ip = IP(a, b, c, d);
	return 0;
}

int resolv(const char *name, IPaddr_t *ip)
{
	if (name && !strcmp(name, "server")) {
		*ip = board_peer.ip;
		return 0;
	}
	return string_to_ip(name, ip);
}

/* ---- net/eth.c: devices, carrier, slices, monitors ---- */

struct queued {
	struct list_head list;
	int length;
	u8 bytes[PKTSIZE];
};

static int send_raw(struct eth_device *edev, void *packet, int length)
{
	if (edev->tx_monitor)
		edev->tx_monitor(edev, packet, length);
	return edev->send(edev, packet, length);
}

int eth_send(struct eth_device *edev, void *packet, int length)
{
	struct board_device *dev = edev->priv;
	struct queued *q;
	int rc;

	if (!edev->active)
		return -ENETDOWN;
	if (edev->slice) {
		q = calloc(1, sizeof(*q));
		CHECK(q && length <= PKTSIZE);
		q->length = length;
		memcpy(q->bytes, packet, length);
		list_add_tail(&q->list, &edev->send_queue);
		return 0;
	}
	if (!dev->carrier)
		return -ENETDOWN;
	edev->slice++;
	rc = send_raw(edev, packet, length);
	edev->slice--;
	return rc;
}

int eth_rx(void)
{
	struct eth_device *edev;
	struct queued *q, *next;

	for_each_netdev(edev) {
		if (!edev->active || edev->slice || !((struct board_device *)edev->priv)->carrier)
			continue;
		edev->slice++;
		edev->recv(edev);
		list_for_each_entry_safe(q, next, &edev->send_queue, list) {
			send_raw(edev, q->bytes, q->length);
			list_del(&q->list);
			free(q);
		}
		edev->slice--;
	}
	return 0;
}

int eth_set_ethaddr(struct eth_device *edev, const char *ethaddr)
{
	if (ethaddr != edev->ethaddr)
		memcpy(edev->ethaddr, ethaddr, ETH_ALEN);
	return 0;
}

/* ---- the other end of the cable ---- */

static u16 ip_sum(const u8 *at, int len)
{
	u32 sum = 0;

	for (; len > 1; len -= 2, at += 2)
		sum += at[0] << 8 | at[1];
	if (len)
		sum += at[0] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((u16)~sum);
}

void board_push_ip(struct board_device *dev, IPaddr_t src, IPaddr_t dst, u8 protocol, const void *body, int len)
{
	u8 frame[PKTSIZE] = { 0 };
	struct ethernet *et = (struct ethernet *)frame;
	struct iphdr *ip = (struct iphdr *)(et + 1);
	int total = sizeof(*et) + sizeof(*ip) + len;

	memcpy(et->et_dest, dev->edev.ethaddr, ETH_ALEN);
	memcpy(et->et_src, board_peer.mac, ETH_ALEN);
	et->et_protlen = htons(PROT_IP);
	ip->hl_v = 0x45;
	ip->tot_len = htons((u16)(sizeof(*ip) + len));
	ip->ttl = 64;
	ip->protocol = protocol;
	ip->saddr = src;
	ip->daddr = dst;
	ip->check = ip_sum((u8 *)ip, sizeof(*ip));
	memcpy(ip + 1, body, len);
	board_push(dev, frame, total < 60 ? 60 : total);
}

void board_push_udp(struct board_device *dev, IPaddr_t src, u16 sport, IPaddr_t dst, u16 dport, const void *payload, int len)
{
	u8 body[PKTSIZE];
	struct udphdr udp = { htons(sport), htons(dport), htons((u16)(sizeof(udp) + len)), 0 };

	memcpy(body, &udp, sizeof(udp));
	memcpy(body + sizeof(udp), payload, len);
	board_push_ip(dev, src, dst, IPPROTO_UDP, body, sizeof(udp) + len);
}

void board_push(struct board_device *dev, const void *bytes, int len)
{
	struct board_frame *frame = calloc(1, sizeof(*frame));

	CHECK(frame);
	frame->len = len;
	frame->bytes = malloc(len);
	CHECK(frame->bytes);
	memcpy(frame->bytes, bytes, len);
	*dev->end = frame;
	dev->end = &frame->next;
}

static void peer_gets(struct board_device *dev, const u8 *frame, int len)
{
	const struct ethernet *et = (const struct ethernet *)frame;
	const struct iphdr *ip = (const struct iphdr *)(et + 1);
	const u8 *arp = (const u8 *)ip;
	u8 reply[PKTSIZE];
	struct icmphdr *icmp = (struct icmphdr *)reply;
	struct udphdr *udp = (struct udphdr *)reply;
	int body = ntohs(ip->tot_len) - (int)sizeof(*ip);

	CHECK(len >= 60);
	if (board_peer.silent)
		return;
	if (et->et_protlen == htons(PROT_ARP)) {
		if (arp[7] != 1 || net_read_ip(arp + 24) != board_peer.ip)
			return;
		memset(reply, 0, sizeof(reply));
		memcpy(reply, et->et_src, 6);
		memcpy(reply + 6, board_peer.mac, 6);
		memcpy(reply + 12, frame + 12, 8);
		reply[21] = 2;
		memcpy(reply + 22, board_peer.mac, 6);
		net_write_ip(reply + 28, board_peer.ip);
		memcpy(reply + 32, arp + 8, 10);
		board_push(dev, reply, 60);
		return;
	}
	if (et->et_protlen != htons(PROT_IP) || memcmp(et->et_dest, board_peer.mac, 6))
		return;
	CHECK(ip_sum((const u8 *)ip, sizeof(*ip)) == 0 && body >= 8 && body + 34 <= len);
	memcpy(reply, ip + 1, body);
	if (ip->protocol == IPPROTO_ICMP && icmp->type == ICMP_ECHO_REQUEST) {
		CHECK(ip_sum(reply, body) == 0);
		icmp->type = ICMP_ECHO_REPLY;
		icmp->checksum = 0;
		icmp->checksum = ip_sum(reply, body);
		board_push_ip(dev, ip->daddr, ip->saddr, IPPROTO_ICMP, reply, body);
	} else if (ip->protocol == IPPROTO_UDP && udp->uh_dport == htons(7)) {
		board_push_udp(dev, ip->daddr, 7, ip->saddr, ntohs(udp->uh_sport), udp + 1, body - (int)sizeof(*udp));
	}
}

static int device_send(struct eth_device *edev, void *packet, int length)
{
	struct board_device *dev = edev->priv;

	CHECK(!dev->sending && length <= PKTSIZE);
	dev->sending = true;
	if (dev->on_send)
		dev->on_send(dev);
	memcpy(dev->sent, packet, length);
	dev->sent_len = length;
	dev->sent_frames++;
	if (((struct ethernet *)packet)->et_protlen == htons(PROT_ARP))
		dev->sent_arp++;
	peer_gets(dev, packet, length);
	dev->sending = false;
	return 0;
}

/* One frame a call, as most of barebox's drivers do. */
static void device_recv(struct eth_device *edev)
{
	struct board_device *dev = edev->priv;
	struct board_frame *frame = dev->waiting;

	CHECK(!dev->sending);
	if (!frame)
		return;
	dev->waiting = frame->next;
	if (!dev->waiting)
		dev->end = &dev->waiting;
	net_receive(edev, frame->bytes, frame->len);
	free(frame->bytes);
	free(frame);
}

struct board_device *board_add(IPaddr_t ip)
{
	struct board_device *dev = calloc(1, sizeof(*dev));
	static char last;
	char mac[ETH_ALEN] = { 2, 0, 0, 0, 1, ++last };

	CHECK(dev);
	dev->end = &dev->waiting;
	dev->carrier = true;
	dev->edev.priv = dev;
	dev->edev.active = 1;
	dev->edev.ifup = ip != 0;
	dev->edev.ipaddr = ip;
	dev->edev.netmask = ip ? IP(255, 255, 255, 0) : 0;
	dev->edev.send = device_send;
	dev->edev.recv = device_recv;
	memcpy(dev->edev.ethaddr, mac, ETH_ALEN);
	dev->edev.send_queue.next = dev->edev.send_queue.prev = &dev->edev.send_queue;
	list_add_tail(&dev->edev.list, &host_devices);
	return dev;
}

void board_remove(struct board_device *dev)
{
	struct board_frame *frame;

	list_del(&dev->edev.list);
	while ((frame = dev->waiting)) {
		dev->waiting = frame->next;
		free(frame->bytes);
		free(frame);
	}
	free(dev);
}

void board_start(void)
{
	CHECK(host_postcore_initcall() == 0);
	CHECK(host_device_initcall() == 0);
}

void board_wait(unsigned int ms)
{
	u64 start = board_now;

	while (board_now - start < ms * MSECOND) {
		ctrlc();
		net_poll();
	}
}
