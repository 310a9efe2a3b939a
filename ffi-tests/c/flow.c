/* What a boot does, over every kind of driver. */
#include "wire.h"

static void get_file(struct wire *w, uint32_t len)
{
	struct lace_tftp_get get;
	struct lace_sink ram;
	uint8_t *file = wire_file(len), *to = (uint8_t *)malloc(len + 64);
	uint32_t i;

	CHECK(to);
	memset(to, 0xa5, len + 64);
	w->file = file;
	w->file_len = len;
	CHECK_EQ(lace_tftp_get_init(&get, sizeof get), 0);
	get.server.name = "10.0.0.1";
	get.path = "kernel";
	get.progress = wire_progress;
	get.done = wire_done;
	get.ctx = w;
	CHECK_EQ(lace_sink_memory(&ram, sizeof ram, to + 32, len), 0);
	CHECK_EQ(lace_tftp_get(w->net, &get, &ram), len);
	CHECK(!memcmp(to + 32, file, len));
	for (i = 0; i < 32; i++)
		CHECK(to[i] == 0xa5 && to[32 + len + i] == 0xa5);
	CHECK_EQ(w->done_result, len);
	free(file);
	free(to);
	w->file = NULL;
}

static void boot(struct wire *w)
{
	struct lace_lease lease;
	char text[LACE_IP_TEXT], option[4];
	struct lace_ip ip;
	uint32_t prefix;

	CHECK_EQ(lace_lease_init(&lease, sizeof lease), 0);
	CHECK_EQ(lace_dhcp(w->net, w->nic, NULL, &lease), 0);
	CHECK(lace_ip_format(&lease.ip, text, sizeof text) > 0 && !strcmp(text, "10.0.0.9"));
	CHECK_EQ(lease.prefix, 24);
	CHECK_EQ(lease.lease_s, 3600);
	CHECK(lace_ip_format(&lease.server, text, sizeof text) > 0 && !strcmp(text, "10.0.0.1"));
	CHECK(lace_ip_format(&lease.gateway, text, sizeof text) > 0 && !strcmp(text, "10.0.0.1"));
	CHECK(lace_ip_format(&lease.dns[0], text, sizeof text) > 0 && !strcmp(text, "10.0.0.3"));
	CHECK_EQ(lease.dns[1].family, LACE_IP_NONE);
	CHECK(!strcmp(lease.domain, "lab.net") && !strcmp(lease.boot_file, "kernel"));
	CHECK(!lease.boot_server.name);
	CHECK(lace_ip_format(&lease.boot_server.ip, text, sizeof text) > 0 && !strcmp(text, "10.0.0.1"));
	CHECK_EQ(lace_lease_option(&lease, 224, option, 2), 3);
	CHECK(option[0] == 1 && option[1] == 2);
	CHECK_EQ(lace_lease_option(&lease, 225, option, 4), LACE_ENOENT);
	CHECK_EQ(lace_addr_get(w->net, w->nic, 0, &ip, &prefix), 0);
	CHECK(!memcmp(&ip, &lease.ip, sizeof ip) && prefix == 24);
	CHECK_EQ(lace_addr_get(w->net, w->nic, 1, &ip, NULL), LACE_EADDRNOTAVAIL);
	CHECK_EQ(lace_dns_get(w->net, 0, &ip), 0);
	CHECK(!memcmp(&ip, &lease.dns[0], sizeof ip));
	CHECK_EQ(lace_dhcp_state(w->net, w->nic), LACE_DHCP_BOUND);
	get_file(w, 70000);
}

static void pull(void)
{
	struct wire w;

	wire_bare(&w, NULL);
	boot(&w);
	CHECK_EQ(lace_dhcp_release(w.net, w.nic), 0);
	wire_wait(&w, 1500);
	CHECK_EQ(w.releases, 1);
	CHECK_EQ(lace_dhcp_state(w.net, w.nic), LACE_DHCP_OFF);
	wire_down(&w);
}

static void push(void)
{
	struct wire w;

	wire_bare(&w, wire_push_only);
	boot(&w);
	CHECK(w.pumps > 0 && w.recvs == 0);
	wire_down(&w);
}

static void setup_own_frames(struct wire *w)
{
	w->driver.tx_buffer = NULL;
	w->driver.tx_align = 64;
}

static void own_frames(void)
{
	struct wire w;

	wire_bare(&w, setup_own_frames);
	boot(&w);
	wire_down(&w);
}

static void setup_gather(struct wire *w)
{
	w->driver.tx_buffer = NULL;
	w->driver.caps = LACE_NIC_GATHER;
	w->config.tx_frames = 1;
}

static void gather(void)
{
	struct wire w;

	wire_bare(&w, setup_gather);
	boot(&w);
	wire_down(&w);
}

/* An asynchronous NIC reports from pump what it has sent. */
static void report_sent(struct wire *w, enum where where)
{
	if (where == IN_PUMP)
		while (w->token_count)
			CHECK_EQ(lace_nic_tx_done(w->net, w->nic, w->tokens[--w->token_count]), 0);
}

static void setup_async(struct wire *w)
{
	wire_push_only(w);
	w->driver.tx_buffer = NULL;
	w->driver.caps = LACE_NIC_GATHER | LACE_NIC_ASYNC;
	w->config.tx_frames = 4;
	w->inside = report_sent;
}

static void async(void)
{
	struct wire w;
	uint32_t token;

	wire_bare(&w, setup_async);
	boot(&w);
	/* What is out holds the stop up until it is done. */
	wire_settle(&w);
	w.inside = NULL;
	w.silent = 1;
	CHECK_EQ(lace_dhcp_release(w.net, w.nic), 0);
	lace_poll(w.net, 32);
	CHECK_EQ(w.token_count, 1);
	token = w.tokens[0];
	CHECK_EQ(lace_nic_tx_done(w.net, w.nic, token + 1), LACE_EINVAL);
	CHECK_EQ(lace_stack_stop(w.net), LACE_EAGAIN);
	CHECK_EQ(lace_stack_stop(w.net), LACE_EAGAIN);
	CHECK_EQ(lace_udp_open_queue(w.net), LACE_ENETDOWN);
	CHECK_EQ(lace_nic_tx_done(w.net, w.nic, token), 0);
	CHECK_EQ(lace_nic_tx_done(w.net, w.nic, token), LACE_EINVAL);
	wire_down(&w);
}

static void setup_two(struct wire *w)
{
	setup_async(w);
	w->config.nics = 2;
	w->inside = NULL;
}

/* A token is that NIC's which was given the frame: what another one says of it frees nothing. */
static void async_two(void)
{
	struct wire w;
	struct lace_nic second;
	lace_nic_id other;
	uint8_t frame[60] = { 255, 255, 255, 255, 255, 255 };

	wire_bare(&w, setup_two);
	second = w.driver;
	second.mac[5] ^= 1;
	other = lace_nic_add(w.net, &second);
	CHECK(other > 0 && other != w.nic);
	CHECK_EQ(lace_send_frame(w.net, w.nic, frame, sizeof frame), 0);
	CHECK_EQ(w.token_count, 1);
	CHECK_EQ(lace_nic_tx_done(w.net, other, w.tokens[0]), LACE_EINVAL);
	CHECK_EQ(lace_nic_reset(w.net, other), 0);
	CHECK_EQ(lace_stack_stop(w.net), LACE_EAGAIN);
	CHECK_EQ(lace_nic_tx_done(w.net, w.nic, w.tokens[0]), 0);
	CHECK_EQ(lace_nic_tx_done(w.net, w.nic, w.tokens[0]), LACE_EINVAL);
	wire_down(&w);
}

static void async_reset(void)
{
	struct wire w;
	struct lace_ping ping;

	wire_up(&w, setup_async);
	w.inside = NULL;
	w.silent = 1;
	CHECK_EQ(lace_ping_init(&ping, sizeof ping), 0);
	CHECK_EQ(lace_ip_parse("10.0.0.1", &ping.peer.ip), 0);
	CHECK(lace_ping_start(w.net, &ping) > 0);
	CHECK_EQ(w.token_count, 1);
	CHECK_EQ(lace_stack_stop(w.net), LACE_EAGAIN);
	CHECK_EQ(lace_nic_reset(w.net, w.nic), 0);
	wire_down(&w);
}

static void setup_busy(struct wire *w)
{
	w->busy_every = 2;
}

/* nic.send says LACE_EAGAIN every other time: nothing is lost, and nothing waits for a timer. */
static void busy(void)
{
	struct wire w;
	uint64_t start;

	wire_up(&w, setup_busy);
	start = w.now;
	get_file(&w, 70000);
	CHECK_EQ(w.tftp_requests, 1);
	CHECK(w.now - start < 1000000);
	CHECK_EQ(wire_stat(&w, "tftp_retransmit"), 0);
	CHECK(wire_stat(&w, "tx_busy") > 100);
	wire_down(&w);
}

static void setup_fails(struct wire *w)
{
	w->send_result = -77;
}

/* A NIC that fails: what it says is counted, and an operation ends in time. */
static void nic_fails(void)
{
	struct wire w;
	struct lace_ping ping;

	wire_up(&w, setup_fails);
	CHECK_EQ(lace_ping_init(&ping, sizeof ping), 0);
	CHECK_EQ(lace_ip_parse("10.0.0.1", &ping.peer.ip), 0);
	CHECK(lace_ping(w.net, &ping, NULL) < 0);
	CHECK(wire_stat(&w, "tx_failed") > 0);
	w.send_result = 0;
	wire_wait(&w, 4000);
	CHECK_EQ(lace_ping(w.net, &ping, NULL), 1);
	w.link = 0;
	wire_wait(&w, 600);
	CHECK(lace_ping(w.net, &ping, NULL) < 0);
	w.link = 1;
	wire_wait(&w, 600);
	CHECK_EQ(lace_ping(w.net, &ping, NULL), 1);
	CHECK_EQ(lace_nic_remove(w.net, w.nic), 0);
	CHECK_EQ(lace_nic_remove(w.net, w.nic), LACE_EBADF);
	CHECK(lace_ping(w.net, &ping, NULL) < 0);
	w.nic = lace_nic_add(w.net, &w.driver);
	CHECK(w.nic > 0);
	wire_down(&w);
}

/* Two stacks in one program, and a third in the memory of a stopped one. */
static void two_stacks(void)
{
	static struct wire a, b;

	wire_bare(&a, NULL);
	wire_bare(&b, wire_push_only);
	boot(&a);
	boot(&b);
	get_file(&a, 1000);
	CHECK_EQ(lace_stack_stop(a.net), 0);
	get_file(&b, 1500);
	CHECK_EQ(lace_stack_init(a.memory, (size_t)lace_stack_size(&a.config), &a.config, &a.host, &a.net), 0);
	a.nic = lace_nic_add(a.net, &a.driver);
	boot(&a);
	wire_down(&a);
	wire_down(&b);
}

/* A nonzero host.poll ends every blocking call, and the server is told. */
static void poll_ends(void)
{
	struct wire w;
	struct lace_tftp_get get;
	struct lace_sink none;
	struct lace_ping ping;
	struct lace_lease lease;
	uint8_t *file = wire_file(1 << 20);
	lace_op op;

	wire_bare(&w, NULL);
	w.poll_result = 1;
	w.poll_after = 5;
	w.silent = 1;
	CHECK_EQ(lace_lease_init(&lease, sizeof lease), 0);
	CHECK_EQ(lace_dhcp(w.net, w.nic, NULL, &lease), LACE_EINTR);
	CHECK_EQ(lace_dhcp_state(w.net, w.nic), LACE_DHCP_OFF);
	w.silent = 0;
	w.poll_result = 0;
	CHECK_EQ(lace_dhcp(w.net, w.nic, NULL, &lease), 0);
	CHECK_EQ(lace_ping_init(&ping, sizeof ping), 0);
	CHECK_EQ(lace_ip_parse("10.0.0.2", &ping.peer.ip), 0);
	w.poll_result = -1;
	w.polls = 0;
	CHECK_EQ(lace_ping(w.net, &ping, NULL), LACE_EINTR);
	/* In the middle of a transfer, whose server never lets the NIC run empty. */
	w.step = 5000;
	w.file = file;
	w.file_len = 1 << 20;
	CHECK_EQ(lace_tftp_get_init(&get, sizeof get), 0);
	get.server.name = "10.0.0.1";
	get.path = "kernel";
	CHECK_EQ(lace_sink_discard(&none, sizeof none), 0);
	w.polls = 0;
	op = lace_tftp_get_start(w.net, &get, &none);
	CHECK(op > 0);
	CHECK_EQ(lace_op_wait(w.net, op), LACE_EINTR);
	CHECK_EQ(lace_op_status(w.net, op), LACE_EINTR);
	CHECK_EQ(lace_op_wait(w.net, op), LACE_EINTR);
	CHECK_EQ(w.tftp_errors, 1);
	CHECK_EQ(lace_op_close(w.net, op), 0);
	CHECK_EQ(lace_op_wait(w.net, op), LACE_EBADF);
	free(file);
	wire_down(&w);
}

/* A send from a handler leaves at once: before the poll that delivered the datagram returns. */
static struct wire *pong;
static lace_udp pong_socket;

static void answer(void *ctx, const struct lace_datagram *d)
{
	struct wire *w = (struct wire *)ctx;
	unsigned before = w->sent_count;
	const uint8_t *payload = (const uint8_t *)d->payload;

	wire_datagram(ctx, d);
	CHECK_EQ(d->socket, pong_socket);
	CHECK_EQ(d->nic, w->nic);
	CHECK_EQ(d->src_port, 4000);
	CHECK_EQ(d->payload_len, 5);
	CHECK(payload == (const uint8_t *)d->frame + d->payload_offset && d->frame_len == 60);
	CHECK(!memcmp(payload, "hello", 5) && d->src.bytes[3] == 1 && d->dst.bytes[3] == 9);
	CHECK_EQ(lace_udp_send(w->net, d->socket, &d->src, d->src_port, "there", 5), 0);
	CHECK_EQ(w->sent_count, before + 1);
}

static void send_from_handler(void)
{
	struct wire w;
	uint8_t frame[64];
	const uint8_t *payload;
	uint16_t from, to;
	uint32_t len;

	pong = &w;
	wire_up(&w, NULL);
	pong_socket = lace_udp_open(w.net, answer, &w);
	CHECK(pong_socket > 0);
	CHECK_EQ(lace_udp_bind(w.net, pong_socket, 0, NULL, 5000), 0);
	CHECK_EQ(lace_udp_port(w.net, pong_socket), 5000);
	/* The first answer waits for the neighbour, in a frame of the stack's: ask for it before. */
	CHECK_EQ(lace_udp_send(w.net, pong_socket, &(struct lace_ip){ LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 1 } }, 9, "x", 1), 0);
	wire_settle(&w);
	wire_forget(&w);
	wire_put(&w, frame, wire_udp(frame, 4000, 5000, "hello", 5));
	CHECK_EQ(lace_poll(w.net, 1), 1);
	CHECK_EQ(w.datagram_count, 1);
	CHECK_EQ(w.sent_count, 1);
	payload = wire_payload(w.sent[0], w.sent_len[0], &from, &to, &len);
	CHECK(payload && from == 5000 && to == 4000 && len == 5 && !memcmp(payload, "there", 5));
	/* From lace_input as well. */
	CHECK_EQ(lace_input(w.net, w.nic, frame, 60, 0), 0);
	CHECK_EQ(w.sent_count, 2);
	wire_down(&w);
}

/* Sockets with queues, peers, options; sending in pieces; errors. */
static void sockets(void)
{
	struct wire w;
	struct lace_ip them, far, none;
	struct lace_datagram d;
	struct lace_span parts[5];
	uint8_t frame[2048], buffer[64], big[1600];
	lace_udp s, other;
	uint16_t port;
	unsigned i;

	wire_up(&w, NULL);
	memset(big, 1, sizeof big);
	memset(&none, 0, sizeof none);
	CHECK_EQ(lace_ip_parse("10.0.0.1", &them), 0);
	CHECK_EQ(lace_ip_parse("192.0.2.7", &far), 0);
	s = lace_udp_open_queue(w.net);
	CHECK(s > 0);
	CHECK_EQ(lace_udp_open_queue(w.net), LACE_EMFILE);
	other = lace_udp_open(w.net, wire_datagram, &w);
	CHECK(other > 0);
	port = (uint16_t)lace_udp_port(w.net, s);
	CHECK(port >= 49152);
	CHECK_EQ(lace_udp_bind(w.net, other, 0, NULL, port), LACE_EADDRINUSE);
	CHECK_EQ(lace_udp_bind(w.net, other, 0, &them, 7777), LACE_EADDRNOTAVAIL);
	CHECK_EQ(lace_udp_recv(w.net, other, buffer, sizeof buffer, NULL), LACE_EOPNOTSUPP);
	CHECK_EQ(lace_udp_recv(w.net, s, buffer, sizeof buffer, NULL), LACE_EAGAIN);
	CHECK_EQ(lace_udp_send(w.net, s, NULL, 0, "x", 1), LACE_ENOTCONN);
	CHECK_EQ(lace_udp_send(w.net, s, &them, 0, "x", 1), LACE_EINVAL);
	CHECK_EQ(lace_udp_send(w.net, s, &none, 7, "x", 1), LACE_EINVAL);
	CHECK_EQ(lace_udp_send(w.net, s, &far, 7, "x", 1), LACE_ENETUNREACH);
	CHECK_EQ(lace_udp_send(w.net, s, &them, 7, NULL, 1), LACE_EFAULT);
	CHECK_EQ(lace_udp_send(w.net, s, &them, 7, w.memory, 1), LACE_EFAULT);
	CHECK_EQ(lace_udp_set(w.net, s, LACE_UDP_DONT_FRAGMENT, 1), 0);
	CHECK_EQ(lace_udp_send(w.net, s, &them, 7, big, 1473), LACE_EMSGSIZE);
	CHECK_EQ(lace_udp_set(w.net, s, LACE_UDP_TTL, 0), LACE_EINVAL);
	CHECK_EQ(lace_udp_set(w.net, s, LACE_UDP_TTL, 256), LACE_EINVAL);
	CHECK_EQ(lace_udp_set(w.net, s, 99, 1), LACE_EOPNOTSUPP);
	CHECK_EQ(lace_udp_set(w.net, s, LACE_UDP_TTL, 3), 0);
	CHECK_EQ(lace_udp_set(w.net, s, LACE_UDP_TOS, 0x10), 0);
	for (i = 0; i < 5; i++) {
		parts[i].data = "abcde" + i;
		parts[i].len = 1;
		parts[i].reserved = 0;
	}
	CHECK_EQ(lace_udp_sendv(w.net, s, &them, 7, parts, 5), LACE_EINVAL);
	CHECK_EQ(lace_udp_sendv(w.net, s, &them, 7, NULL, 1), LACE_EFAULT);
	/* The first datagram waits for the neighbour, and is echoed. */
	CHECK_EQ(lace_udp_sendv(w.net, s, &them, 7, parts, 4), 0);
	wire_settle(&w);
	CHECK_EQ(w.sent[w.sent_count - 1][22], 3);
	CHECK_EQ(w.sent[w.sent_count - 1][15], 0x10);
	CHECK_EQ(lace_datagram_init(&d, sizeof d), 0);
	CHECK_EQ(lace_udp_recv(w.net, s, buffer, 3, &d), 3);
	CHECK(!memcmp(buffer, "abc", 3));
	CHECK(d.payload_len == 4 && d.src_port == 7 && !memcmp(&d.src, &them, sizeof them) && d.nic == w.nic);
	CHECK(d.dst_port == port && d.socket == s && !d.payload && !d.frame);
	/* A connected socket hears its peer alone. */
	CHECK_EQ(lace_udp_connect(w.net, s, &them, 0), LACE_EINVAL);
	CHECK_EQ(lace_udp_connect(w.net, s, &them, 7), 0);
	CHECK_EQ(lace_udp_send(w.net, s, NULL, 0, "ping", 4), 0);
	wire_put(&w, frame, wire_udp(frame, 8, port, "no", 2));
	wire_settle(&w);
	CHECK_EQ(lace_udp_recv(w.net, s, buffer, sizeof buffer, NULL), 4);
	CHECK_EQ(lace_udp_recv(w.net, s, buffer, sizeof buffer, NULL), LACE_EAGAIN);
	CHECK_EQ(wire_stat(&w, "drop_udp_peer"), 1);
	/* A queue that is full drops and counts. */
	for (i = 0; i < 3; i++) {
		wire_put(&w, frame, wire_udp(frame, 7, port, big, 1000));
	}
	wire_settle(&w);
	CHECK_EQ(wire_stat(&w, "drop_udp_queue"), 1);
	CHECK_EQ(lace_udp_recv(w.net, s, NULL, 0, &d), 0);
	CHECK_EQ(d.payload_len, 1000);
	CHECK_EQ(lace_udp_recv(w.net, s, NULL, 8, &d), LACE_EFAULT);
	/* Closing one and the handles that are left. */
	CHECK_EQ(lace_udp_close(w.net, s), 0);
	CHECK_EQ(lace_udp_close(w.net, s), LACE_EBADF);
	CHECK_EQ(lace_udp_send(w.net, s, &them, 7, "x", 1), LACE_EBADF);
	CHECK_EQ(lace_op_close(w.net, other), LACE_EBADF);
	CHECK_EQ(lace_udp_close(w.net, w.nic), LACE_EBADF);
	s = lace_udp_open_queue(w.net);
	CHECK(s > 0);
	/* A socket takes datagrams of any number until the limit of the configuration. */
	for (i = 2; i < w.config.udp_sockets; i++)
		CHECK(lace_udp_open(w.net, wire_datagram, &w) > 0);
	CHECK_EQ(lace_udp_open(w.net, wire_datagram, &w), LACE_EMFILE);
	wire_down(&w);
}

/* Before an address is set a host's own client sends from 0.0.0.0 and hears unicasts. */
static void without_address(void)
{
	static const struct lace_ip all = { LACE_IP_V4, 0, { 0, 0 }, { 255, 255, 255, 255 } };
	struct wire w;
	uint8_t frame[64];
	lace_udp s;

	wire_bare(&w, NULL);
	s = lace_udp_open(w.net, wire_datagram, &w);
	CHECK_EQ(lace_udp_bind(w.net, s, w.nic, NULL, 68), 0);
	CHECK_EQ(lace_udp_send(w.net, s, &all, 9, "x", 1), 0);
	CHECK_EQ(w.sent_count, 1);
	CHECK(!memcmp(w.sent[0] + 26, "\0\0\0\0\377\377\377\377", 8) && !memcmp(w.sent[0], "\377\377\377\377\377\377", 6));
	wire_put(&w, frame, wire_udp(frame, 67, 68, "offer", 5));
	wire_settle(&w);
	CHECK_EQ(w.datagram_count, 1);
	wire_down(&w);
}

static void on_packet(void *ctx, const struct lace_packet *p)
{
	struct wire *w = (struct wire *)ctx;

	CHECK_EQ(p->size, sizeof *p);
	CHECK((const uint8_t *)p->packet == (const uint8_t *)p->frame + p->packet_offset);
	CHECK_EQ(p->packet_offset, 14);
	CHECK_EQ(p->nic, w->nic);
	w->hook_count++;
	/* The IPv4 packet without the frame's padding; other frames whole. */
	CHECK_EQ(p->packet_len, ((const uint8_t *)p->frame)[12] == 8 && ((const uint8_t *)p->frame)[13] == 0 ? 28 : 46);
	if (w->inside)
		w->inside(w, IN_HOOK);
}

static void hooks(void)
{
	static const struct lace_ip them = { LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 1 } };
	struct wire w;
	uint8_t frame[64] = { 2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x88, 0xcc, 1, 2, 3 };
	struct lace_span part = { "payload!", 8, 0 };
	lace_hook lldp, icmp;

	wire_up(&w, NULL);
	w.silent = 1;
	CHECK_EQ(lace_hook_ethertype(w.net, 0x800, on_packet, &w), LACE_EINVAL);
	CHECK_EQ(lace_hook_ethertype(w.net, 0x806, on_packet, &w), LACE_EINVAL);
	CHECK_EQ(lace_hook_ethertype(w.net, 46, on_packet, &w), LACE_EINVAL);
	CHECK_EQ(lace_hook_protocol(w.net, 17, on_packet, &w), LACE_EINVAL);
	CHECK_EQ(lace_hook_ethertype(w.net, 0x88cc, NULL, &w), LACE_EFAULT);
	wire_put(&w, frame, 60);
	wire_settle(&w);
	CHECK_EQ(wire_stat(&w, "drop_ethertype"), 1);
	lldp = lace_hook_ethertype(w.net, 0x88cc, on_packet, &w);
	CHECK(lldp > 0);
	CHECK_EQ(lace_hook_ethertype(w.net, 0x88cc, on_packet, &w), LACE_EADDRINUSE);
	icmp = lace_hook_protocol(w.net, 1, on_packet, &w);
	CHECK(icmp > 0);
	CHECK_EQ(lace_hook_protocol(w.net, 2, on_packet, &w), LACE_EMFILE);
	wire_put(&w, frame, 60);
	wire_settle(&w);
	CHECK_EQ(w.hook_count, 1);
	/* Sent as it is. */
	CHECK_EQ(lace_send_frame(w.net, w.nic, frame, 13), LACE_EINVAL);
	CHECK_EQ(lace_send_frame(w.net, w.nic, NULL, 60), LACE_EFAULT);
	CHECK_EQ(lace_send_frame(w.net, lldp, frame, 60), LACE_EBADF);
	CHECK_EQ(lace_send_frame(w.net, w.nic, frame, 17), 0);
	CHECK(w.sent_count == 1 && w.sent_len[0] == 60 && !memcmp(w.sent[0], frame, 60));
	/* An echo request that the stack answers as well. */
	w.silent = 0;
	CHECK_EQ(lace_send_ip(w.net, 0, NULL, &them, 1, 5, &part, 1), 0);
	wire_settle(&w);
	CHECK(w.sent[w.sent_count - 1][23] == 1 && !memcmp(w.sent[w.sent_count - 1] + 34, "payload!", 8));
	CHECK_EQ(w.sent[w.sent_count - 1][22], 5);
	{
		struct lace_span echo = { "\010\0\367\377\0\0\0\0", 8, 0 };

		CHECK_EQ(lace_send_ip(w.net, w.nic, NULL, &them, 1, 0, &echo, 1), 0);
	}
	wire_settle(&w);
	CHECK_EQ(w.hook_count, 2);
	CHECK_EQ(lace_hook_close(w.net, lldp), 0);
	CHECK_EQ(lace_hook_close(w.net, lldp), LACE_EBADF);
	wire_put(&w, frame, 60);
	wire_settle(&w);
	CHECK_EQ(w.hook_count, 2);
	lldp = lace_hook_ethertype(w.net, 0x88cc, on_packet, &w);
	CHECK(lldp > 0);
	wire_down(&w);
}

static void routes(void)
{
	struct wire w;
	struct lace_route r;
	struct lace_ip gw, ip;
	uint32_t i;

	wire_up(&w, NULL);
	CHECK_EQ(lace_route_init(&r, sizeof r), 0);
	r.nic = w.nic;
	CHECK_EQ(lace_ip_parse("192.0.2.99", &r.network), 0);
	CHECK_EQ(lace_ip_parse("10.0.0.1", &r.gateway), 0);
	r.prefix = 33;
	CHECK_EQ(lace_route_add(w.net, &r), LACE_EINVAL);
	r.prefix = 24;
	CHECK_EQ(lace_route_add(w.net, &r), 0);
	CHECK_EQ(lace_route_add(w.net, &r), 0);
	CHECK_EQ(lace_ip_parse("10.0.0.2", &gw), 0);
	CHECK_EQ(lace_gateway_set(w.net, w.nic, &gw), 0);
	memset(&r, 0xee, sizeof r);
	CHECK_EQ(lace_route_init(&r, sizeof r), 0);
	CHECK_EQ(lace_route_get(w.net, 0, &r), 0);
	CHECK(r.prefix == 24 && r.network.bytes[3] == 0 && r.network.bytes[0] == 192 && r.nic == w.nic && !r.dhcp);
	CHECK_EQ(lace_route_get(w.net, 1, &r), 0);
	CHECK(r.prefix == 0 && !memcmp(&r.gateway, &gw, sizeof gw));
	CHECK_EQ(lace_route_get(w.net, 2, &r), LACE_ENETUNREACH);
	for (i = 2; i < w.config.routes; i++) {
		r.prefix = i;
		CHECK_EQ(lace_route_add(w.net, &r), 0);
	}
	r.prefix = 30;
	CHECK_EQ(lace_route_add(w.net, &r), LACE_EMFILE);
	r.prefix = 2;
	CHECK_EQ(lace_route_remove(w.net, &r), 0);
	CHECK_EQ(lace_route_remove(w.net, &r), LACE_ENETUNREACH);
	CHECK_EQ(lace_gateway_set(w.net, w.nic, NULL), 0);
	CHECK_EQ(lace_ip_parse("224.0.0.1", &ip), 0);
	CHECK_EQ(lace_gateway_set(w.net, w.nic, &ip), LACE_EINVAL);
	CHECK_EQ(lace_addr_add(w.net, w.nic, &ip, 24), LACE_EINVAL);
	CHECK_EQ(lace_ip_parse("10.0.0.255", &ip), 0);
	CHECK_EQ(lace_addr_add(w.net, w.nic, &ip, 24), LACE_EINVAL);
	for (i = 20; i < 23; i++) {
		ip.bytes[3] = (uint8_t)i;
		CHECK_EQ(lace_addr_add(w.net, w.nic, &ip, 24), 0);
	}
	ip.bytes[3] = 30;
	CHECK_EQ(lace_addr_add(w.net, w.nic, &ip, 24), LACE_EMFILE);
	CHECK_EQ(lace_addr_remove(w.net, w.nic, &ip), LACE_EADDRNOTAVAIL);
	ip.bytes[3] = 20;
	CHECK_EQ(lace_addr_remove(w.net, w.nic, &ip), 0);
	ip.family = LACE_IP_V6;
	CHECK_EQ(lace_addr_add(w.net, w.nic, &ip, 24), LACE_EAFNOSUPPORT);
	CHECK_EQ(lace_nic_list(w.net, 0, NULL), 1);
	wire_down(&w);
}

/* Errors of a server reach the result and the detail; a write sink gets the bytes in order. */
static void tftp_errors(void)
{
	struct wire w;
	struct lace_tftp_get get;
	struct lace_sink sink;
	struct lace_detail detail;
	uint8_t *file = wire_file(3000), small[1000];
	uint64_t done, total;
	uint16_t block, window;
	lace_op op;

	wire_up(&w, NULL);
	CHECK_EQ(lace_tftp_get_init(&get, sizeof get), 0);
	CHECK_EQ(lace_ip_parse("10.0.0.1", &get.server.ip), 0);
	get.path = "nothing";
	CHECK_EQ(lace_sink_write(&sink, sizeof sink, NULL, &w), LACE_EFAULT);
	CHECK_EQ(lace_sink_write(&sink, sizeof sink, wire_write, &w), 0);
	CHECK_EQ(lace_detail_init(&detail, sizeof detail), 0);
	CHECK_EQ(lace_tftp_get_detail(w.net, &get, &sink, &detail), LACE_ENOENT);
	CHECK(detail.kind == LACE_DETAIL_TFTP && detail.code == 1 && !strcmp(detail.text, "gone"));
	w.file = file;
	w.file_len = 3000;
	op = lace_tftp_get_start(w.net, &get, &sink);
	CHECK_EQ(lace_op_status(w.net, op), LACE_EAGAIN);
	CHECK_EQ(lace_op_wait(w.net, op), 3000);
	CHECK(w.sink_len == 3000 && !memcmp(w.sink, file, 3000));
	CHECK_EQ(lace_op_progress(w.net, op, &done, &total), 0);
	CHECK_EQ(done, 3000);
	CHECK_EQ(lace_op_progress(w.net, op, NULL, NULL), 0);
	CHECK_EQ(lace_tftp_agreed(w.net, op, &block, &window), 0);
	CHECK(block == 512 && window == 1);
	CHECK_EQ(lace_ping_result(w.net, op, NULL), LACE_EFAULT);
	CHECK_EQ(lace_op_close(w.net, op), 0);
	CHECK_EQ(lace_tftp_agreed(w.net, op, &block, &window), LACE_EBADF);
	/* A port of the caller's choice, and one that is taken. */
	get.local_port = 4711;
	w.sink_len = 0;
	CHECK_EQ(lace_tftp_get(w.net, &get, &sink), 3000);
	CHECK_EQ(w.tftp_client, 4711);
	op = lace_udp_open(w.net, wire_datagram, &w);
	CHECK_EQ(lace_udp_bind(w.net, op, 0, NULL, 4711), 0);
	CHECK_EQ(lace_tftp_get(w.net, &get, &sink), LACE_EADDRINUSE);
	CHECK_EQ(lace_udp_close(w.net, op), 0);
	w.sink_len = 0;
	CHECK_EQ(lace_tftp_get(w.net, &get, &sink), 3000);
	/* A program compiled before the struct had that field. */
	get.size = offsetof(struct lace_tftp_get, local_port);
	w.sink_len = 0;
	CHECK_EQ(lace_tftp_get(w.net, &get, &sink), 3000);
	CHECK(w.tftp_client != 4711);
	get.size--;
	CHECK_EQ(lace_tftp_get(w.net, &get, &sink), LACE_EINVAL);
	CHECK_EQ(lace_tftp_get_init(&get, offsetof(struct lace_tftp_get, local_port)), 0);
	CHECK_EQ(lace_tftp_get_init(&get, sizeof get), 0);
	CHECK_EQ(get.local_port, 0);
	CHECK_EQ(lace_ip_parse("10.0.0.1", &get.server.ip), 0);
	get.path = "nothing";
	get.reserved[0] = 1;
	CHECK_EQ(lace_tftp_get(w.net, &get, &sink), LACE_EINVAL);
	get.reserved[0] = 0;
	/* Too small a region: nothing beyond it, and the server is told. */
	memset(small, 0xa5, sizeof small);
	CHECK_EQ(lace_sink_memory(&sink, sizeof sink, small, 600), 0);
	CHECK_EQ(lace_tftp_get(w.net, &get, &sink), LACE_EFBIG);
	CHECK_EQ(w.tftp_errors, 1);
	CHECK(small[600] == 0xa5 && small[999] == 0xa5);
	/* Arguments. */
	get.retries = 256;
	CHECK_EQ(lace_tftp_get_start(w.net, &get, &sink), LACE_EINVAL);
	get.retries = 0;
	get.blksize = 7;
	CHECK_EQ(lace_tftp_get_start(w.net, &get, &sink), LACE_EINVAL);
	get.blksize = 0;
	get.path = "";
	CHECK_EQ(lace_tftp_get_start(w.net, &get, &sink), LACE_EINVAL);
	get.path = NULL;
	CHECK_EQ(lace_tftp_get_start(w.net, &get, &sink), LACE_EFAULT);
	get.path = "kernel";
	CHECK_EQ(lace_tftp_get_start(w.net, &get, NULL), LACE_EFAULT);
	CHECK_EQ(lace_tftp_get_start(w.net, NULL, &sink), LACE_EFAULT);
	CHECK_EQ(lace_sink_memory(&sink, sizeof sink, w.memory, 600), 0);
	CHECK_EQ(lace_tftp_get_start(w.net, &get, &sink), LACE_EFAULT);
	CHECK_EQ(lace_sink_memory(&sink, sizeof sink, NULL, 600), LACE_EFAULT);
	CHECK_EQ(lace_sink_memory(&sink, sizeof sink, (void *)(uintptr_t)-16, 17), LACE_EFAULT);
	CHECK_EQ(lace_sink_memory(&sink, 8, small, 600), LACE_EINVAL);
	free(file);
	wire_down(&w);
}

/* A file that is read in pieces, forwards, backwards and beyond its end. */
static void file_reads(void)
{
	enum { LENGTH = 100000 };
	static const uint32_t sizes[] = { 1, 511, 512, 513, 4000, 0, 20000, 100000 };
	struct wire w;
	struct lace_tftp_get get;
	uint8_t *file = wire_file(LENGTH), *buffer = (uint8_t *)malloc(LENGTH), *ahead = (uint8_t *)malloc(4096);
	uint32_t at = 0, i;
	lace_file f;

	CHECK(buffer && ahead);
	wire_up(&w, NULL);
	w.file = file;
	w.file_len = LENGTH;
	CHECK_EQ(lace_tftp_get_init(&get, sizeof get), 0);
	CHECK_EQ(lace_ip_parse("10.0.0.1", &get.server.ip), 0);
	get.path = "kernel";
	CHECK_EQ(lace_file_open(w.net, &get, ahead, 511), LACE_ENOMEM);
	CHECK_EQ(lace_file_open(w.net, &get, NULL, 4096), LACE_EFAULT);
	CHECK_EQ(lace_file_open(w.net, &get, w.memory, 4096), LACE_EFAULT);
	f = lace_file_open(w.net, &get, ahead, 4096);
	CHECK(f > 0);
	CHECK_EQ(lace_file_size(w.net, f), LACE_ENODATA);
	CHECK_EQ(lace_file_status(w.net, f), 0);
	for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint32_t want = LENGTH - at < sizes[i] ? LENGTH - at : sizes[i];

		memset(buffer, 0xa5, LENGTH);
		CHECK_EQ(lace_file_read(w.net, f, buffer, sizes[i]), want);
		CHECK(!memcmp(buffer, file + at, want));
		at += want;
		CHECK_EQ(lace_file_position(w.net, f), at);
	}
	CHECK_EQ(at, LENGTH);
	CHECK_EQ(lace_file_read(w.net, f, buffer, 10), 0);
	CHECK_EQ(lace_file_size(w.net, f), LENGTH);
	CHECK_EQ(lace_file_seek(w.net, f, 777), 0);
	CHECK_EQ(lace_file_read(w.net, f, buffer, 1000), 1000);
	CHECK(!memcmp(buffer, file + 777, 1000));
	CHECK_EQ(lace_file_seek(w.net, f, 90000), 0);
	CHECK_EQ(lace_file_read(w.net, f, buffer, 1000), 1000);
	CHECK(!memcmp(buffer, file + 90000, 1000));
	CHECK_EQ(lace_file_seek(w.net, f, LENGTH + 5), 0);
	CHECK_EQ(lace_file_read(w.net, f, buffer, 10), 0);
	/* A read that host.poll ends leaves the file where it was. */
	CHECK_EQ(lace_file_seek(w.net, f, 0), 0);
	w.silent = 1;
	w.poll_result = 1;
	CHECK_EQ(lace_file_read(w.net, f, buffer, 1000), LACE_EINTR);
	w.poll_result = 0;
	w.silent = 0;
	CHECK_EQ(lace_file_position(w.net, f), 0);
	CHECK_EQ(lace_file_read_start(w.net, f, buffer, 1000), 0);
	CHECK_EQ(lace_file_read_start(w.net, f, buffer, 1000), LACE_EAGAIN);
	CHECK_EQ(lace_file_seek(w.net, f, 5), LACE_EAGAIN);
	CHECK_EQ(lace_file_wait(w.net, f), 1000);
	CHECK(!memcmp(buffer, file, 1000));
	CHECK_EQ(lace_file_close(w.net, f), 0);
	CHECK_EQ(lace_file_read(w.net, f, buffer, 1), LACE_EBADF);
	CHECK_EQ(lace_file_position(w.net, f), LACE_EBADF);
	/* None there. */
	w.file = NULL;
	CHECK_EQ(lace_file_open(w.net, &get, ahead, 4096), LACE_ENOENT);
	free(file);
	free(buffer);
	free(ahead);
	wire_down(&w);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "pull", pull }, { "push", push }, { "own_frames", own_frames }, { "gather", gather }, { "async", async },
		{ "async_two", async_two }, { "async_reset", async_reset }, { "busy", busy }, { "nic_fails", nic_fails },
		{ "two_stacks", two_stacks },
		{ "poll_ends", poll_ends }, { "send_from_handler", send_from_handler }, { "sockets", sockets },
		{ "without_address", without_address }, { "hooks", hooks }, { "routes", routes },
		{ "tftp_errors", tftp_errors }, { "file_reads", file_reads },
	};

	return wire_main(tests, sizeof tests / sizeof *tests, argc, argv);
}
