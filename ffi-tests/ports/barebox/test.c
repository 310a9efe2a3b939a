/*
 * The glue of c-examples/barebox, driven as barebox and its clients drive net/net.c. `test NAME` runs one test; exit
 * status 0 when it holds.
 */
#include "board.h"

#define HERE IP(10, 0, 0, 2)

/* What a handler has seen. */
struct seen {
	struct net_connection *con;
	unsigned int calls;
	unsigned int len;
	u8 payload[64];
	u16 sport;
	IPaddr_t from;
	/* Datagrams it still sends back. */
	unsigned int answers;
	bool unregister;
};

static void handler(void *ctx, char *packet, unsigned int len)
{
	struct seen *seen = ctx;
	struct net_udp_pkt udp;

	CHECK(net_eth_to_udp(packet, len, &udp) == 0);
	CHECK(udp.len <= sizeof(seen->payload));
	seen->calls++;
	seen->len = udp.len;
	memcpy(seen->payload, udp.payload, udp.len);
	seen->sport = ntohs(udp.udp->uh_sport);
	seen->from = net_read_ip(&net_eth_to_iphdr(packet)->saddr);
	if (seen->answers) {
		seen->answers--;
		memcpy(net_udp_get_payload(seen->con), "again", 5);
		CHECK(net_udp_send(seen->con, 5) == 0);
	}
	if (seen->unregister) {
		net_unregister(seen->con);
		seen->con = NULL;
		/* The frame is the driver's, whatever happened to the connection. */
		CHECK(net_eth_to_udp(packet, len, &udp) == 0 && udp.len == seen->len);
	}
}

static struct net_connection *open_udp(IPaddr_t dest, u16 port, struct seen *seen)
{
	struct net_connection *con = net_udp_new(dest, port, handler, seen);

	CHECK(!IS_ERR(con));
	seen->con = con;
	return con;
}

static int send_text(struct net_connection *con, const char *text)
{
	memcpy(net_udp_get_payload(con), text, strlen(text));
	return net_udp_send(con, strlen(text));
}

/* Headers of the frame that was sent last. */
static struct iphdr *sent_ip(struct board_device *dev)
{
	return net_eth_to_iphdr((char *)dev->sent);
}

static struct udphdr *sent_udp(struct board_device *dev)
{
	return (struct udphdr *)(sent_ip(dev) + 1);
}

static void test_open(void)
{
	struct board_device *dev = board_add(HERE);
	struct seen seen = { 0 };
	struct net_connection *con = open_udp(board_peer.ip, 69, &seen);

	CHECK(dev->sent_arp == 1);
	CHECK(!memcmp(con->et->et_dest, board_peer.mac, 6) && !memcmp(con->et->et_src, dev->edev.ethaddr, 6));
	CHECK(con->edev == &dev->edev && con->proto == IPPROTO_UDP);
	CHECK(con->ip->saddr == HERE && con->ip->daddr == board_peer.ip);
	CHECK(con->udp->uh_dport == htons(69) && con->udp->uh_sport != 0);
	CHECK(net_udp_get_payload(con) == con->packet + 42);
	/* What is known is not asked for again. */
	net_unregister(con);
	net_unregister(open_udp(board_peer.ip, 69, &seen));
	CHECK(dev->sent_arp == 1);
}

static void test_nobody(void)
{
	struct board_device *dev = board_add(HERE);
	u64 start = board_now;
	long blocks = board_blocks;
	struct net_connection *con;

	con = net_udp_new(IP(10, 0, 0, 99), 69, handler, NULL);
	CHECK(PTR_ERR(con) == -ETIMEDOUT);
	CHECK(dev->sent_arp == 4);
	CHECK(board_now - start > 3 * SECOND && board_now - start < 7 * SECOND);
	/* The NIC's own buffer is all that stays. */
	CHECK(board_blocks <= blocks + 1);
	/* Ctrl-C while it waits. */
	board_ctrlc_at = board_now + 50 * MSECOND;
	con = net_udp_new(IP(10, 0, 0, 98), 69, handler, NULL);
	CHECK(PTR_ERR(con) == -EINTR && board_now - board_ctrlc_at < 100 * MSECOND);
	con = net_icmp_new(IP(10, 0, 0, 98), handler, NULL);
	CHECK(PTR_ERR(con) == -EINTR);
	CHECK(board_blocks <= blocks + 1);
}

static void test_no_way(void)
{
	struct board_device *dev = board_add(HERE), *bare = board_add(0);
	struct seen seen = { 0 };
	struct net_connection *con;
	u64 start = board_now;

	CHECK(PTR_ERR(net_udp_new(IP(192, 0, 2, 1), 69, handler, NULL)) == -EHOSTUNREACH);
	CHECK(PTR_ERR(net_udp_eth_new(&bare->edev, board_peer.ip, 69, handler, NULL)) == -ENETDOWN);
	dev->edev.active = 0;
	CHECK(PTR_ERR(net_udp_new(IP(10, 0, 0, 7), 69, handler, NULL)) == -ENETDOWN);
	dev->edev.active = 1;
	dev->carrier = false;
	CHECK(PTR_ERR(net_udp_new(IP(10, 0, 0, 8), 69, handler, NULL)) == -ENETDOWN);
	dev->carrier = true;
	dev->edev.ifup = false;
	CHECK(PTR_ERR(net_udp_new(board_peer.ip, 69, handler, NULL)) == -EHOSTUNREACH);
	dev->edev.ifup = true;
	CHECK(board_now - start < 100 * MSECOND);
	/* Its twin: with a gateway the far host is reached, through it. */
	net_set_gateway(NULL, board_peer.ip);
	con = open_udp(IP(192, 0, 2, 1), 69, &seen);
	CHECK(!memcmp(con->et->et_dest, board_peer.mac, 6));
	CHECK(send_text(con, "far") == 0);
	CHECK(sent_ip(dev)->daddr == IP(192, 0, 2, 1) && !memcmp(dev->sent, board_peer.mac, 6));
	net_unregister(con);
}

static void test_send_in_handler(void)
{
	struct board_device *dev = board_add(HERE);
	struct seen seen = { .answers = 3 };
	struct net_connection *con = open_udp(board_peer.ip, 7, &seen);

	CHECK(send_text(con, "hello") == 0);
	CHECK(sent_ip(dev)->frag_off == htons(0x4000));
	board_wait(1);
	CHECK(seen.calls == 4 && seen.len == 5 && !memcmp(seen.payload, "again", 5));
	CHECK(seen.sport == 7 && seen.from == board_peer.ip);
	net_unregister(con);
}

static void test_bind(void)
{
	struct board_device *dev = board_add(HERE);
	struct seen seen = { 0 }, other = { 0 };
	struct net_connection *con = net_udp_eth_new(&dev->edev, IP_BROADCAST, 0, handler, &seen);

	/* fastboot: bound after it was opened, then it only listens. */
	CHECK(!IS_ERR(con));
	net_udp_bind(con, 5554);
	board_push_udp(dev, board_peer.ip, 4000, HERE, 5554, "abc", 3);
	board_push_udp(dev, board_peer.ip, 4000, HERE, 5555, "none", 4);
	board_wait(1);
	CHECK(seen.calls == 1 && seen.len == 3 && seen.sport == 4000);
	/* It answers whom it heard: address, port and hardware address are set in its headers. */
	net_write_ip(&con->ip->daddr, seen.from);
	memcpy(con->et->et_dest, board_peer.mac, 6);
	con->udp->uh_dport = htons(seen.sport);
	CHECK(send_text(con, "ok") == 0);
	board_wait(1);
	CHECK(sent_ip(dev)->daddr == board_peer.ip && sent_udp(dev)->uh_dport == htons(4000));
	CHECK(sent_udp(dev)->uh_sport == htons(5554) && !memcmp(dev->sent, board_peer.mac, 6));
	CHECK(!memcmp(sent_udp(dev) + 1, "ok", 2) && sent_udp(dev)->uh_ulen == htons(10));
	/* tftp: the server goes on from another port. */
	net_unregister(con);
	con = open_udp(board_peer.ip, 69, &other);
	con->udp->uh_dport = htons(3333);
	CHECK(send_text(con, "ack") == 0 && sent_udp(dev)->uh_dport == htons(3333));
	net_unregister(con);
}

static void test_dhcp(void)
{
	struct board_device *dev[2] = { board_add(0), board_add(0) };
	struct seen seen[2] = { { 0 }, { 0 } };
	struct net_connection *con[2];
	int i;

	for (i = 0; i < 2; i++) {
		con[i] = net_udp_eth_new(&dev[i]->edev, IP_BROADCAST, 67, handler, &seen[i]);
		CHECK(!IS_ERR(con[i]));
		net_udp_bind(con[i], 68);
		CHECK(!memcmp(con[i]->et->et_src, dev[i]->edev.ethaddr, 6));
		CHECK(send_text(con[i], "discover") == 0);
	}
	for (i = 0; i < 2; i++) {
		CHECK(dev[i]->sent_frames == 1 && dev[i]->sent[0] == 0xff && dev[i]->sent[5] == 0xff);
		CHECK(sent_ip(dev[i])->saddr == 0 && sent_ip(dev[i])->daddr == IP_BROADCAST);
		CHECK(sent_udp(dev[i])->uh_sport == htons(68) && sent_udp(dev[i])->uh_dport == htons(67));
	}
	/* An offer sent to the address offered, and one to everybody. */
	board_push_udp(dev[1], board_peer.ip, 67, IP(10, 0, 0, 50), 68, "offer", 5);
	board_wait(1);
	CHECK(seen[0].calls == 0 && seen[1].calls == 1);
	board_push_udp(dev[0], board_peer.ip, 67, IP_BROADCAST, 68, "offer", 5);
	board_wait(1);
	CHECK(seen[0].calls == 1 && seen[1].calls == 1);
	/* The address counts from the next connection on. */
	net_set_ip(&dev[1]->edev, IP(10, 0, 0, 50));
	net_set_netmask(&dev[1]->edev, IP(255, 255, 255, 0));
	dev[1]->edev.ifup = true;
	net_unregister(con[0]);
	net_unregister(con[1]);
	con[0] = open_udp(board_peer.ip, 7, &seen[0]);
	CHECK(con[0]->edev == &dev[1]->edev && send_text(con[0], "x") == 0);
	CHECK(sent_ip(dev[1])->saddr == IP(10, 0, 0, 50));
	net_unregister(con[0]);
}

static unsigned int echoes;
static struct net_connection *ping;

static void ping_handler(void *ctx, char *packet, unsigned int len)
{
	struct icmphdr *icmp = net_eth_to_icmphdr(packet);

	CHECK(len >= 42 && ctx == &echoes);
	if (icmp->type == ICMP_ECHO_REPLY && icmp->un.echo.sequence == htons(5))
		echoes++;
	if (echoes == 2) {
		net_unregister(ping);
		ping = NULL;
	}
}

static void test_ping(void)
{
	struct board_device *dev = board_add(HERE);
	static const u8 request[] = { 8, 0, 0xf7, 0xfd, 0, 1, 0, 1, 0, 0 };
	int i;

	ping = net_icmp_new(board_peer.ip, ping_handler, &echoes);
	CHECK(!IS_ERR(ping) && ping->proto == IPPROTO_ICMP);
	for (i = 0; i < 2; i++) {
		ping->icmp->type = ICMP_ECHO_REQUEST;
		ping->icmp->code = 0;
		ping->icmp->un.echo.id = 0;
		ping->icmp->un.echo.sequence = htons(5);
		memcpy(ping->icmp + 1, "123456789", 9);
		CHECK(net_icmp_send(ping, 9) == 0);
		board_wait(1);
		CHECK(echoes == (unsigned int)i + 1);
	}
	CHECK(!ping);
	/* The peer pings us. */
	board_push_ip(dev, board_peer.ip, HERE, IPPROTO_ICMP, request, sizeof(request));
	board_wait(1);
	CHECK(sent_ip(dev)->protocol == IPPROTO_ICMP && sent_ip(dev)->daddr == board_peer.ip);
	CHECK(net_eth_to_icmphdr((char *)dev->sent)->type == ICMP_ECHO_REPLY);
}

static void test_unregister_in_handler(void)
{
	struct seen seen = { .unregister = true }, stays = { 0 };
	struct net_connection *con;

	board_add(HERE);
	con = open_udp(board_peer.ip, 7, &stays);
	open_udp(board_peer.ip, 7, &seen);
	CHECK(send_text(seen.con, "a") == 0 && send_text(con, "b") == 0);
	board_wait(1);
	CHECK(seen.calls == 1 && !seen.con && stays.calls == 1);
	net_unregister(con);
}

/* A driver that waits for its DMA, by a timeout that runs the pollers. */
static void slow_send(struct board_device *dev)
{
	CHECK(dev->sending);
	board_now += 20 * MSECOND;
	is_timeout(board_now, MSECOND);
}

static void test_poller_in_send(void)
{
	struct board_device *dev = board_add(HERE), *second = board_add(IP(10, 1, 0, 2));
	struct seen seen = { 0 }, listener = { 0 };
	struct net_connection *con = open_udp(board_peer.ip, 9, &seen);
	unsigned int calls;
	struct net_connection *far = net_udp_eth_new(&second->edev, IP_BROADCAST, 1, handler, &listener);

	CHECK(!IS_ERR(far));
	net_udp_bind(far, 500);
	net_poll();
	dev->on_send = slow_send;
	board_push_udp(dev, board_peer.ip, 9, HERE, ntohs(con->udp->uh_sport), "one", 3);
	board_push_udp(second, IP(10, 1, 0, 1), 9, IP(10, 1, 0, 2), 500, "two", 3);
	CHECK(send_text(con, "x") == 0);
	/* Nothing was received inside the send, and nothing was lost. */
	CHECK(seen.calls == 0 && listener.calls == 0 && dev->waiting && second->waiting);
	board_wait(1);
	CHECK(seen.calls == 1 && listener.calls == 1);
	/* The background poller alone receives too, 10 ms after the last time. */
	board_push_udp(second, IP(10, 1, 0, 1), 9, IP(10, 1, 0, 2), 500, "two", 3);
	board_now += 20 * MSECOND;
	for (calls = 0; listener.calls == 1; calls++) {
		CHECK(calls < 10);
		is_timeout(board_now, MSECOND);
	}
	CHECK(listener.calls == 2);
	net_unregister(con);
	net_unregister(far);
}

static unsigned int monitored_rx, monitored_tx;
static int preprocessed;

static void rx_monitor(struct eth_device *edev, void *packet, int length)
{
	CHECK(edev && packet && length >= 60);
	monitored_rx++;
}

static void tx_monitor(struct eth_device *edev, void *packet, int length)
{
	CHECK(edev && packet && length >= 60);
	monitored_tx++;
}

/* A switch's tag behind the frame is cut off; other results stand for frames that are somebody else's. */
static int preprocessor(struct eth_device *edev, unsigned char **packet, int *length)
{
	CHECK(edev && *packet && *length > 4);
	*length -= 4;
	return preprocessed;
}

static void test_hooks(void)
{
	struct board_device *dev = board_add(HERE);
	struct seen seen = { 0 };
	struct net_connection *con = open_udp(board_peer.ip, 7, &seen);
	u8 frame[80] = { 0 };

	dev->edev.rx_monitor = rx_monitor;
	dev->edev.tx_monitor = tx_monitor;
	CHECK(send_text(con, "abc") == 0);
	board_wait(1);
	CHECK(monitored_rx == 1 && monitored_tx == 1 && seen.calls == 1);
	dev->edev.rx_preprocessor = preprocessor;
	CHECK(send_text(con, "0123456789abcdefghij") == 0);
	preprocessed = -ENOMSG;
	board_wait(1);
	CHECK(monitored_rx == 2 && seen.calls == 1);
	preprocessed = -EIO;
	memcpy(frame, dev->sent, 60);
	CHECK(net_receive(&dev->edev, frame, 60) == -EIO && seen.calls == 1);
	preprocessed = 0;
	CHECK(send_text(con, "0123456789abc") == 0);
	board_wait(1);
	CHECK(monitored_rx == 4 && seen.calls == 2 && seen.len == 13);
	/* Shorter than a header, and from a device the stack does not know. */
	dev->edev.rx_preprocessor = NULL;
	CHECK(net_receive(&dev->edev, frame, 13) == 0 && monitored_rx == 4);
	net_unregister(con);
}

static void test_device_goes(void)
{
	long blocks = board_blocks;
	struct board_device *dev = board_add(HERE);
	struct seen seen = { 0 };
	struct net_connection *con = open_udp(board_peer.ip, 7, &seen);

	/* The address is changed under an open connection: what it sends has the new one. */
	dev->edev.ipaddr = IP(10, 0, 0, 3);
	board_wait(150);
	CHECK(send_text(con, "x") == 0 && sent_ip(dev)->saddr == IP(10, 0, 0, 3));
	board_wait(1);
	CHECK(seen.calls == 1);
	/* The carrier goes and comes back in the middle. */
	dev->carrier = false;
	CHECK(send_text(con, "x") == -ENETDOWN);
	board_wait(500);
	CHECK(seen.calls == 1);
	dev->carrier = true;
	CHECK(send_text(con, "x") == 0);
	board_wait(1);
	CHECK(seen.calls == 2);
	/* ifdown: barebox's own error. */
	dev->edev.active = 0;
	CHECK(send_text(con, "x") == -ENETDOWN);
	dev->edev.active = 1;
	/* The device is unregistered with a connection open. */
	board_remove(dev);
	board_wait(150);
	CHECK(send_text(con, "x") < 0);
	net_unregister(con);
	CHECK(board_blocks == blocks);
	/* Another one takes its place. */
	dev = board_add(HERE);
	con = open_udp(board_peer.ip, 7, &seen);
	CHECK(send_text(con, "x") == 0);
	board_wait(1);
	CHECK(seen.calls == 3);
	net_unregister(con);
}

static void test_growth(void)
{
	struct net_connection *con[64];
	struct seen seen = { 0 };
	long blocks;
	int i, n;

	board_add(HERE);
	net_unregister(open_udp(board_peer.ip, 7, &seen));
	blocks = board_blocks;
	for (i = 0; i < 600; i++) {
		open_udp(board_peer.ip, 7, &seen);
		CHECK(send_text(seen.con, "file") == 0);
		while (seen.calls == (unsigned int)i)
			net_poll();
		net_unregister(seen.con);
		CHECK(board_blocks == blocks);
	}
	/* More at a time than there are sockets. */
	for (n = 0; n < 64; n++) {
		con[n] = net_udp_new(board_peer.ip, 7, handler, &seen);
		if (IS_ERR(con[n]))
			break;
	}
	CHECK(n == 32 && PTR_ERR(con[n]) == -EMFILE);
	while (n)
		net_unregister(con[--n]);
	CHECK(board_blocks == blocks);
}

static void test_no_memory(void)
{
	struct seen seen = { 0 };
	void *packets[3];
	long blocks;

	board_add(HERE);
	net_unregister(open_udp(board_peer.ip, 7, &seen));
	blocks = board_blocks;
	board_memory = 1;
	CHECK(PTR_ERR(net_udp_new(board_peer.ip, 7, handler, &seen)) == -ENOMEM);
	board_memory = 2;
	CHECK(net_alloc_packets(packets, 3) == -ENOMEM);
	CHECK(board_blocks == blocks);
	board_memory = -1;
	CHECK(net_alloc_packets(packets, 3) == 0 && board_blocks == blocks + 3);
	net_free_packets(packets, 3);
	CHECK(board_blocks == blocks);
}

static long opened_inside;

static void opening_handler(void *ctx, char *packet, unsigned int len)
{
	CHECK(ctx && packet && len);
	opened_inside = PTR_ERR(net_udp_new(IP(10, 0, 0, 77), 1, handler, NULL));
}

static void test_open_in_handler(void)
{
	struct net_connection *con;
	int dummy;
	u64 start;

	board_add(HERE);
	con = net_udp_new(board_peer.ip, 7, opening_handler, &dummy);
	CHECK(!IS_ERR(con) && send_text(con, "x") == 0);
	start = board_now;
	/* Nothing can be received while a handler runs: it ends, as barebox's own stack does. */
	net_poll();
	CHECK(opened_inside == -ETIMEDOUT && board_now - start < 10 * SECOND);
	net_unregister(con);
}

static void test_helpers(void)
{
	u8 frame[64] = { 0 }, mac[6], again[6], next[6];
	struct net_udp_pkt udp;
	u8 odd[3] = { 1, 2, 3 }, even[4] = { 1, 2, 3, 0 };
	struct udphdr *header = (struct udphdr *)(frame + 34);
	struct board_device *dev;
	struct seen seen = { 0 };

	/* Headers and 22 bytes of payload in a frame of 64. */
	header->uh_ulen = htons(30);
	CHECK(net_eth_to_udp((char *)frame, 64, &udp) == 0 && udp.len == 22 && udp.payload == frame + 42);
	CHECK(net_eth_to_udp((char *)frame, 63, &udp) == -EINVAL);
	CHECK(net_eth_to_udp((char *)frame, 41, &udp) == -EINVAL);
	header->uh_ulen = htons(7);
	CHECK(net_eth_to_udp((char *)frame, 64, &udp) == -EINVAL);
	header->uh_ulen = htons(8);
	CHECK(net_eth_to_udp((char *)frame, 42, &udp) == 0 && udp.len == 0);

	CHECK(net_checksum(odd, 3) == net_checksum(even, 4));
	CHECK(net_checksum_ok((u8 *)"\xff\xff\0\0", 4) && !net_checksum_ok(even, 4));

	CHECK(generate_ether_addr(mac, 0) == 0 && generate_ether_addr(again, 0) == 0 && generate_ether_addr(next, 1) == 0);
	CHECK(!memcmp(mac, again, 6) && memcmp(mac, next, 6) && (mac[0] & 3) == 2);
	/* A device without a hardware address gets that one, and the user is told. */
	dev = board_add(HERE);
	memset(dev->edev.ethaddr, 0, 6);
	open_udp(board_peer.ip, 7, &seen);
	CHECK(!memcmp(dev->edev.ethaddr, mac, 6) && !memcmp(dev->sent + 6, mac, 6) && board_messages == 1);
	net_unregister(seen.con);

	CHECK(net_get_server() == NULL);
	net_set_serverip_empty(IP(10, 0, 0, 1));
	net_set_serverip_empty(IP(10, 0, 0, 9));
	CHECK(!strcmp(net_get_server(), "10.0.0.1") && net_get_serverip() == IP(10, 0, 0, 1));
	net_set_serverip(IP(10, 0, 0, 9));
	CHECK(net_get_serverip() == IP(10, 0, 0, 9));
	net_set_nameserver(IP(10, 0, 0, 53));
	CHECK(net_get_nameserver() == IP(10, 0, 0, 53));
	net_set_domainname("lab.test");
	CHECK(!strcmp(net_get_domainname(), "lab.test"));
	net_set_domainname(NULL);
	CHECK(!strcmp(net_get_domainname(), ""));
	net_set_gateway(NULL, IP(10, 0, 0, 254));
	CHECK(net_get_gateway() == IP(10, 0, 0, 254) && net_get_ip(&dev->edev) == HERE);
	CHECK(setenv_ip("serverip", IP(10, 0, 0, 1)) == 0 && getenv_ip("serverip") == IP(10, 0, 0, 1));
	CHECK(host_setenv("name", "server") == 0 && getenv_ip("name") == board_peer.ip && getenv_ip("missing") == 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		{ "open", test_open },
		{ "nobody", test_nobody },
		{ "no_way", test_no_way },
		{ "send_in_handler", test_send_in_handler },
		{ "bind", test_bind },
		{ "dhcp", test_dhcp },
		{ "ping", test_ping },
		{ "unregister_in_handler", test_unregister_in_handler },
		{ "poller_in_send", test_poller_in_send },
		{ "hooks", test_hooks },
		{ "device_goes", test_device_goes },
		{ "growth", test_growth },
		{ "no_memory", test_no_memory },
		{ "open_in_handler", test_open_in_handler },
		{ "helpers", test_helpers },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tests); i++)
		if (argc == 2 && !strcmp(argv[1], tests[i].name)) {
			board_start();
			tests[i].run();
			return 0;
		}
	fprintf(stderr, "no such test\n");
	return 2;
}
