/*
 * Field case K02: from inside every kind of callback, every call. Leaf callbacks get LACE_EBUSY from whatever takes the
 * stack, but may close, cancel and stop; upcalls may do everything that does not block.
 */
#include "wire.h"

static const struct lace_ip them = { LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 1 } };

static int is_leaf(enum where where)
{
	return where <= IN_WRITE;
}

/* What the code inside a callback works with. */
static lace_udp handled, spare;
static lace_hook hooked;
static lace_op pinging, spare_op;
static enum where target;     /* Where the code inside acts. */
static unsigned acted;
static struct lace_tftp_get get;
static struct lace_sink sink;
static uint8_t sum_before;

static void on_frame(void *ctx, const struct lace_packet *packet)
{
	struct wire *w = (struct wire *)ctx;

	CHECK(packet->frame_len >= 60);
	w->hook_count++;
	if (w->inside)
		w->inside(w, IN_HOOK);
	/* Whatever was closed in the meantime, the frame is still there. */
	CHECK(((const uint8_t *)packet->frame)[12] == 0x88);
}

static void on_datagram(void *ctx, const struct lace_datagram *d)
{
	const uint8_t *payload = (const uint8_t *)d->payload;

	sum_before = (uint8_t)(payload[0] + payload[d->payload_len - 1]);
	wire_datagram(ctx, d);
	CHECK_EQ((uint8_t)(payload[0] + payload[d->payload_len - 1]), sum_before);
	CHECK(((const uint8_t *)d->frame)[12] == 8);
}

static void on_lost(void *ctx, lace_nic_id nic, const struct lace_ip *ip)
{
	struct wire *w = (struct wire *)ctx;

	CHECK(nic == w->nic && ip->bytes[3] == 9);
	w->inside_depth++;
	w->inside(w, IN_LOST);
	w->inside_depth--;
}

/* Every call that takes the stack, from where it is not allowed at all or must be. */
static void all_calls(struct wire *w, enum where where)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	static const uint8_t frame[60] = { 2, 0, 0, 0, 0, 1 };
	struct lace_ping ping;
	struct lace_detail detail;
	struct lace_datagram d;
	struct lace_route route;
	struct lace_ping_stats stats;
	struct lace_ip ip;
	struct lace_span span = { "x", 1, 0 };
	uint8_t room[64], hw[6];
	uint64_t done;
	uint32_t prefix;
	uint16_t block;
	int busy = is_leaf(where), i;
	lace_udp s;
	lace_hook h;
	lace_op op;

	/* From a pump each call here makes more frames than it takes. */
	if (where != target || acted++ >= 50)
		return;
	CHECK(w->inside_depth <= 2);
	/* Nothing recurses, wherever it comes from. */
	CHECK_EQ(lace_poll(w->net, 1), LACE_EBUSY);
	CHECK_EQ(lace_op_wait(w->net, pinging), LACE_EBUSY);
	CHECK_EQ(lace_op_finish(w->net, 0), LACE_EBADF);
	lace_ping_init(&ping, sizeof ping);
	lace_detail_init(&detail, sizeof detail);
	lace_datagram_init(&d, sizeof d);
	lace_route_init(&route, sizeof route);
	lace_ping_stats_init(&stats, sizeof stats);
	ping.peer.ip = them;
	route.nic = w->nic;
	route.prefix = 8;
	route.network = them;
#define IS(call, good) CHECK_EQ(call, busy ? LACE_EBUSY : (good))
	if (where != IN_PUMP && where != IN_POLL)
		CHECK_EQ(lace_input(w->net, w->nic, frame, 60, 0), LACE_EBUSY);
	if (busy) {
		CHECK_EQ(lace_next_deadline(w->net), LACE_EBUSY);
		CHECK_EQ(lace_ping_start(w->net, &ping), LACE_EBUSY);
		CHECK_EQ(lace_ping(w->net, &ping, NULL), LACE_EBUSY);
		CHECK_EQ(lace_tftp_get_start(w->net, &get, &sink), LACE_EBUSY);
		CHECK_EQ(lace_tftp_get(w->net, &get, &sink), LACE_EBUSY);
		CHECK_EQ(lace_dhcp_start(w->net, w->nic, NULL, NULL), LACE_EBUSY);
		CHECK_EQ(lace_udp_open(w->net, on_datagram, w), LACE_EBUSY);
		CHECK_EQ(lace_udp_open_queue(w->net), LACE_EBUSY);
		CHECK_EQ(lace_hook_ethertype(w->net, 0x9999, on_frame, w), LACE_EBUSY);
		CHECK_EQ(lace_nic_add(w->net, &w->driver), LACE_EBUSY);
		CHECK_EQ(lace_dhcp_state(w->net, w->nic), LACE_EBUSY);
		CHECK_EQ(lace_stat_get(w->net, 0), LACE_EBUSY);
		CHECK_EQ(lace_op_status(w->net, pinging), LACE_EBUSY);
	} else {
		CHECK(lace_next_deadline(w->net) >= 0);
		/* Started, not waited for, closed. */
		CHECK_EQ(lace_ping(w->net, &ping, NULL), LACE_EBUSY);
		op = lace_ping_start(w->net, &ping);
		CHECK(op > 0);
		/* Without an address there is no way to ping anybody. */
		i = where == IN_LOST;
		CHECK_EQ(lace_op_status(w->net, op), i ? LACE_ENETUNREACH : LACE_EAGAIN);
		CHECK_EQ(lace_op_notify(w->net, op, NULL, NULL, NULL), 0);
		CHECK_EQ(lace_op_cancel(w->net, op), 0);
		CHECK_EQ(lace_op_status(w->net, op), i ? LACE_ENETUNREACH : LACE_ECANCELED);
		CHECK_EQ(lace_op_close(w->net, op), 0);
		CHECK_EQ(lace_op_close(w->net, op), LACE_EBADF);
		s = lace_udp_open(w->net, on_datagram, w);
		CHECK(s > 0);
		CHECK_EQ(lace_udp_close(w->net, s), 0);
		CHECK_EQ(lace_udp_close(w->net, s), LACE_EBADF);
		h = lace_hook_ethertype(w->net, 0x9999, on_frame, w);
		CHECK(h > 0);
		CHECK_EQ(lace_hook_close(w->net, h), 0);
		CHECK(lace_dhcp_state(w->net, w->nic) >= 0);
		CHECK(lace_stat_get(w->net, 0) >= 0);
		CHECK_EQ(lace_nic_add(w->net, &w->driver), LACE_EMFILE);
	}
	IS(lace_op_progress(w->net, spare_op, &done, NULL), 0);
	IS(lace_op_detail(w->net, spare_op, &detail), 0);
	IS(lace_ping_result(w->net, spare_op, &stats), 0);
	IS(lace_tftp_agreed(w->net, spare_op, &block, NULL), LACE_EINVAL);
	IS(lace_udp_bind(w->net, spare, 0, NULL, 6000), 0);
	IS(lace_udp_connect(w->net, spare, &them, 7), 0);
	IS(lace_udp_set(w->net, spare, LACE_UDP_TTL, 9), 0);
	IS(lace_udp_port(w->net, spare), 6000);
	i = lace_udp_recv(w->net, spare, room, sizeof room, &d);
	CHECK(i == (busy ? LACE_EBUSY : LACE_EAGAIN) || (!busy && i > 0));
	i = lace_udp_send(w->net, spare, NULL, 0, "x", 1);
	CHECK(busy ? i == LACE_EBUSY : i == 0 || i == LACE_ENETUNREACH || i == LACE_ENETDOWN || i == LACE_EAGAIN);
	i = lace_udp_sendv(w->net, spare, NULL, 0, &span, 1);
	CHECK(busy ? i == LACE_EBUSY : i == 0 || i == LACE_ENETUNREACH || i == LACE_ENETDOWN || i == LACE_EAGAIN);
	i = lace_send_ip(w->net, 0, NULL, &them, 200, 0, &span, 1);
	CHECK(busy ? i == LACE_EBUSY : i == 0 || i == LACE_ENETUNREACH || i == LACE_ENETDOWN || i == LACE_EAGAIN);
	IS(lace_send_frame(w->net, w->nic, frame, 60), 0);
	IS(lace_route_add(w->net, &route), 0);
	IS(lace_route_get(w->net, 0, &route), 0);
	IS(lace_route_remove(w->net, &route), 0);
	IS(lace_gateway_set(w->net, w->nic, &them), 0);
	IS(lace_gateway_set(w->net, w->nic, NULL), 0);
	i = lace_addr_get(w->net, w->nic, 0, &ip, &prefix);
	CHECK(busy ? i == LACE_EBUSY : i == 0 || i == LACE_EADDRNOTAVAIL);
	IS(lace_dns_set(w->net, &them, 1), 0);
	IS(lace_dns_set_search(w->net, "a.example"), 0);
	IS(lace_dns_get(w->net, 0, &ip), 0);
	IS(lace_nic_link(w->net, w->nic, 1), 0);
	IS(lace_nic_set_mac(w->net, w->nic, mac), 0);
	IS(lace_nic_tx_done(w->net, w->nic, 12345), LACE_EINVAL);
	IS(lace_dhcp_on_lost(w->net, w->nic, on_lost, w), 0);
	i = lace_neighbour_get(w->net, w->nic, &them, hw);
	CHECK(busy ? i == LACE_EBUSY : i != LACE_EBUSY);
#undef IS
}

/* Closes and cancels everything that it can name, among it what the callback belongs to. */
static void close_all(struct wire *w, enum where where)
{
	int leaf = is_leaf(where);

	if (where != target || acted++)
		return;
	CHECK_EQ(lace_op_cancel(w->net, spare_op), 0);
	CHECK_EQ(lace_op_close(w->net, spare_op), 0);
	CHECK_EQ(lace_op_cancel(w->net, pinging), 0);
	CHECK_EQ(lace_op_close(w->net, pinging), 0);
	CHECK_EQ(lace_udp_close(w->net, handled), 0);
	CHECK_EQ(lace_udp_close(w->net, spare), 0);
	CHECK_EQ(lace_hook_close(w->net, hooked), 0);
	/* In a leaf it takes effect later, and asking again does no harm; in an upcall the handle is stale at once. */
	CHECK_EQ(lace_op_close(w->net, pinging), leaf ? 0 : LACE_EBADF);
	CHECK_EQ(lace_udp_close(w->net, handled), leaf ? 0 : LACE_EBADF);
	CHECK_EQ(lace_hook_close(w->net, hooked), leaf ? 0 : LACE_EBADF);
	CHECK_EQ(lace_op_cancel(w->net, 0), LACE_EBADF);
	CHECK_EQ(lace_op_cancel(w->net, spare), LACE_EBADF);
}

static void stop(struct wire *w, enum where where)
{
	if (where != target || acted++)
		return;
	CHECK_EQ(lace_stack_stop(w->net), 0);
	CHECK_EQ(lace_stack_stop(w->net), 0);
	/* It takes effect later; nothing new begins. */
	CHECK_EQ(lace_udp_open_queue(w->net), is_leaf(where) ? LACE_EBUSY : LACE_ENETDOWN);
}

static void remove_nic(struct wire *w, enum where where)
{
	if (where != target || acted++)
		return;
	CHECK_EQ(lace_nic_reset(w->net, w->nic), 0);
	CHECK_EQ(lace_nic_remove(w->net, w->nic), 0);
	CHECK_EQ(lace_nic_list(w->net, 0, NULL), 1);
}

static void setup_limits(struct wire *w)
{
	w->config.operations = 6;
	w->config.udp_sockets = 8;
	w->config.hooks = 4;
	w->config.wait_frames = 2;
	w->step = 50;
}

static void setup_pump(struct wire *w)
{
	setup_limits(w);
	wire_push_only(w);
}

/* A stack on which everything is going on. */
static void set_up(struct wire *w, void (*inside)(struct wire *, enum where))
{
	struct lace_ping ping;
	uint8_t frame[64] = { 2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x88, 0xcc };

	acted = 0;
	if (target == IN_LOST)
		wire_bare(w, setup_limits);
	else
		wire_up(w, target == IN_PUMP ? setup_pump : setup_limits);
	w->file = wire_file(5000);
	w->file_len = 5000;
	lace_tftp_get_init(&get, sizeof get);
	get.server.ip = them;
	get.path = "kernel";
	CHECK_EQ(lace_sink_write(&sink, sizeof sink, wire_write, w), 0);
	get.progress = wire_progress;
	get.done = wire_done;
	get.ctx = w;
	lace_ping_init(&ping, sizeof ping);
	ping.peer.ip = them;
	ping.count = 3;
	ping.done = wire_done;
	ping.ctx = w;
	handled = lace_udp_open(w->net, on_datagram, w);
	CHECK_EQ(lace_udp_bind(w->net, handled, 0, NULL, 5000), 0);
	spare = lace_udp_open_queue(w->net);
	CHECK_EQ(lace_udp_bind(w->net, spare, 0, NULL, 6000), 0);
	hooked = lace_hook_ethertype(w->net, 0x88cc, on_frame, w);
	CHECK(handled > 0 && spare > 0 && hooked > 0);
	pinging = lace_ping_start(w->net, &ping);
	ping.peer.ip.bytes[3] = 77;
	ping.done = NULL;
	spare_op = lace_ping_start(w->net, &ping);
	CHECK(pinging > 0 && spare_op > 0);
	wire_put(w, frame, 60);
	wire_put(w, frame, wire_udp(frame, 4000, 5000, "hello", 5));
	w->inside = inside;
}

/* Makes every callback be called; ends early when the stack is gone. */
static void drive(struct wire *w)
{
	lace_op op = lace_tftp_get_start(w->net, &get, &sink);
	unsigned i;
	struct lace_ip group = { LACE_IP_V4, 0, { 0, 0 }, { 239, 1, 2, 3 } };

	if (target == IN_LOST) {
		/* A lease that nobody renews. */
		if (lace_dhcp_on_lost(w->net, w->nic, on_lost, w) == 0 && lace_dhcp(w->net, w->nic, NULL, NULL) == 0) {
			w->silent = 1;
			for (i = 0; i < 4000 && lace_poll(w->net, 8) >= 0; i++)
				w->now += 1000000;
		}
	}
	lace_mcast_join(w->net, w->nic, &group);
	lace_op_wait(w->net, op);
	lace_op_wait(w->net, pinging);
	lace_op_wait(w->net, spare_op);
	for (i = 0; i < 200 && lace_poll(w->net, 8) >= 0; i++)
		w->now += 100000;
	lace_op_close(w->net, op);
}

static void tear_down(struct wire *w)
{
	w->inside = NULL;
	CHECK(acted > 0);
	free((void *)(uintptr_t)w->file);
	wire_down(w);
}

/* Once for each kind of callback. */
static void each(void (*run)(struct wire *, enum where))
{
	static struct wire w;
	int where;

	for (where = 0; where < WHERES; where++) {
		target = (enum where)where;
		if (getenv("WIRE_TRACE"))
			fprintf(stderr, "in %s\n", where_names[where]);
		run(&w, target);
	}
}

static void every_call_one(struct wire *w, enum where where)
{
	(void)where;
	set_up(w, all_calls);
	drive(w);
	tear_down(w);
}

static void every_call(void)
{
	each(every_call_one);
}

static void closing_one(struct wire *w, enum where where)
{
	unsigned datagrams;
	uint8_t frame[64];

	(void)where;
	set_up(w, close_all);
	drive(w);
	/* Closed is closed. */
	w->inside = NULL;
	CHECK_EQ(lace_udp_close(w->net, handled), LACE_EBADF);
	CHECK_EQ(lace_udp_close(w->net, spare), LACE_EBADF);
	CHECK_EQ(lace_hook_close(w->net, hooked), LACE_EBADF);
	CHECK_EQ(lace_op_close(w->net, pinging), LACE_EBADF);
	CHECK_EQ(lace_op_close(w->net, spare_op), LACE_EBADF);
	datagrams = w->datagram_count;
	wire_put(w, frame, wire_udp(frame, 4000, 5000, "hello", 5));
	wire_settle(w);
	CHECK_EQ(w->datagram_count, datagrams);
	CHECK(wire_stat(w, "drop_udp_no_socket") >= 1);
	/* Their places are free again. */
	CHECK((handled = lace_udp_open(w->net, on_datagram, w)) > 0);
	CHECK((spare = lace_udp_open_queue(w->net)) > 0);
	tear_down(w);
}

static void closing(void)
{
	each(closing_one);
}

static void stopping_one(struct wire *w, enum where where)
{
	(void)where;
	set_up(w, stop);
	drive(w);
	w->inside = NULL;
	CHECK(acted > 0);
	/* It has taken effect: the stack is gone, every frame given back. */
	CHECK_EQ(lace_poll(w->net, 1), LACE_EBADF);
	CHECK_EQ(lace_op_status(w->net, pinging), LACE_EBADF);
	tear_down(w);
}

static void stopping(void)
{
	each(stopping_one);
}

/* A stop ends the blocking call that runs. */
static void stop_ends_wait(void)
{
	static struct wire w;

	target = IN_POLL;
	set_up(&w, stop);
	w.silent = 1;
	CHECK_EQ(lace_op_wait(w.net, pinging), LACE_ECANCELED);
	tear_down(&w);
}

static void removing_one(struct wire *w, enum where where)
{
	(void)where;
	set_up(w, remove_nic);
	drive(w);
	w->inside = NULL;
	CHECK_EQ(lace_nic_list(w->net, 0, NULL), 0);
	CHECK_EQ(lace_nic_remove(w->net, w->nic), LACE_EBADF);
	CHECK_EQ(lace_input(w->net, w->nic, "x", 1, 0), LACE_EBADF);
	tear_down(w);
}

static void removing(void)
{
	each(removing_one);
}

/* The other way round: what ends an operation in its own done callback, and starts the next one from there. */
static unsigned chain_left;

static void next(void *ctx, lace_op op, int64_t result)
{
	struct lace_ping ping;

	CHECK_EQ(result, 1);
	CHECK_EQ(lace_op_close((lace_stack *)ctx, op), 0);
	if (!--chain_left)
		return;
	lace_ping_init(&ping, sizeof ping);
	ping.peer.ip = them;
	ping.done = next;
	ping.ctx = ctx;
	CHECK(lace_ping_start((lace_stack *)ctx, &ping) > 0);
}

static void chain(void)
{
	static struct wire w;
	struct lace_ping ping;

	wire_up(&w, NULL);
	chain_left = 1000;
	lace_ping_init(&ping, sizeof ping);
	ping.peer.ip = them;
	ping.done = next;
	ping.ctx = w.net;
	CHECK(lace_ping_start(w.net, &ping) > 0);
	while (chain_left)
		CHECK(lace_poll(w.net, 32) >= 0);
	wire_down(&w);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "every_call", every_call }, { "closing", closing }, { "stopping", stopping },
		{ "stop_ends_wait", stop_ends_wait }, { "removing", removing }, { "chain", chain },
	};

	return wire_main(tests, sizeof tests / sizeof *tests, argc, argv);
}
