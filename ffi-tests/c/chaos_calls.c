/* The calls of the stack itself, of UDP, raw frames, operations and TCP. */
#include "chaos.h"

/* Arguments; those that chaos.h names serve the clients, too. */

static const char *const texts[] = { "f", "/export/f", "", "../..", "a.example", "10.0.0.8", "lab.net other.example" };

const char *any_text(void)
{
	return texts[below(sizeof texts / sizeof *texts)];
}

lace_nic_id any_nic(const struct turn *t)
{
	return one_in(8) ? t->handle : t->w->nic;
}

const struct lace_ip *any_ip(struct lace_ip *ip)
{
	*ip = end_ip[below(2)];
	if (one_in(6))
		ip->bytes[below(4)] = (uint8_t)below(256);
	if (one_in(12))
		lace_ip_v4(ip, 224, 0, 0, 9);
	if (one_in(20))
		ip->family = (uint8_t)below(8);
	return one_in(20) ? NULL : ip;
}

/* UDP ports at which the other stack may listen. */
static uint16_t any_port(void)
{
	static const uint16_t ports[] = { 7, 8, 53, 67, 69, 111, 2049 };

	return ports[below(7)];
}

uint64_t any_count(uint32_t below_what)
{
	return one_in(8) ? UINT64_MAX - below(5) : below(below_what);
}

lace_done any_done(void)
{
	return one_in(4) ? NULL : on_done;
}

struct lace_peer any_peer(const struct turn *t, uint16_t port)
{
	struct lace_peer peer;

	memset(&peer, 0, sizeof peer);
	peer.ip = *peer_ip(t->w);
	peer.port = one_in(3) ? (uint16_t)below(100) : port;
	if (one_in(10))
		peer.name = any_text();
	return peer;
}

static const struct lace_tcp_options *any_options(struct lace_tcp_options *o)
{
	lace_tcp_init(o, sizeof *o);
	o->user_timeout_ms = 1000 + below(100000);
	o->port = one_in(4) ? (uint16_t)(1000 + below(3)) : 0;
	if (one_in(4))
		o->receive_max = 1 + below(70000);
	o->no_sack = (uint8_t)below(2);
	o->no_timestamps = (uint8_t)below(2);
	o->new_reno = (uint8_t)below(2);
	return one_in(2) ? o : NULL;
}

static struct lace_route any_route(const struct turn *t)
{
	struct lace_route route;

	lace_route_init(&route, sizeof route);
	route.nic = any_nic(t);
	any_ip(&route.network);
	route.prefix = below(34);
	route.gateway = *peer_ip(t->w);
	return route;
}

/* The stack and its NICs. */

CALL(lace_poll) { lace_poll(t->net, below(3)); }
CALL(lace_next_deadline) { lace_next_deadline(t->net); }
CALL(lace_input) { lace_input(t->net, any_nic(t), data + below(100), below(one_in(3) ? DATA - 100 : 100), below(16)); }
CALL(lace_nic_reset) { lace_nic_reset(t->net, one_in(4) ? any_nic(t) : t->handle); }
CALL(lace_nic_tx_done) { lace_nic_tx_done(t->net, any_nic(t), below(32)); }
CALL(lace_nic_link) { lace_nic_link(t->net, any_nic(t), !one_in(12)); }
CALL(lace_nic_set_mac) { lace_nic_set_mac(t->net, any_nic(t), one_in(4) ? NULL : t->w->driver.mac); }
CALL(lace_nic_list) { lace_nic_id nic; lace_nic_list(t->net, below(3), one_in(3) ? NULL : &nic); }
CALL(lace_nic_add) { struct lace_nic bad = t->w->driver; bad.send = NULL; lace_nic_add(t->net, &bad); }

CALL(lace_nic_remove) { if (one_in(12)) lace_nic_remove(t->net, any_nic(t)); }

/* Addresses, routes and neighbours. */

CALL(lace_addr_add) { lace_addr_add(t->net, any_nic(t), &end_ip[end_of(t->w)], one_in(4) ? below(34) : 24); }
CALL(lace_addr_remove) { if (one_in(4)) lace_addr_remove(t->net, any_nic(t), &end_ip[end_of(t->w)]); }
CALL(lace_addr_get) { struct lace_ip ip; uint32_t prefix; lace_addr_get(t->net, any_nic(t), below(3), &ip, &prefix); }
CALL(lace_route_add) { struct lace_route route = any_route(t); lace_route_add(t->net, &route); }
CALL(lace_route_remove) { struct lace_route route = any_route(t); lace_route_remove(t->net, &route); }
CALL(lace_route_get) { struct lace_route route = any_route(t); lace_route_get(t->net, below(9), &route); }
CALL(lace_gateway_set) { struct lace_ip ip; lace_gateway_set(t->net, any_nic(t), any_ip(&ip)); }

CALL(lace_neighbour_get)
{
	struct lace_ip ip;
	uint8_t mac[6];

	lace_neighbour_get(t->net, any_nic(t), any_ip(&ip), mac);
}

CALL(lace_mcast_join) { struct lace_ip ip; lace_mcast_join(t->net, any_nic(t), any_ip(&ip)); }
CALL(lace_mcast_leave) { struct lace_ip ip; lace_mcast_leave(t->net, any_nic(t), any_ip(&ip)); }

/* UDP and raw frames. */

CALL(lace_udp_open) { keep(t->w, lace_udp_open(t->net, on_datagram, t->w)); }
CALL(lace_udp_open_queue) { keep(t->w, lace_udp_open_queue(t->net)); }
CALL(lace_udp_close) { lace_udp_close(t->net, t->handle); }
CALL(lace_udp_set) { lace_udp_set(t->net, t->handle, below(5), below(300)); }
CALL(lace_udp_port) { lace_udp_port(t->net, t->handle); }
CALL(lace_udp_connect) { struct lace_ip ip; lace_udp_connect(t->net, t->handle, any_ip(&ip), any_port()); }

CALL(lace_udp_bind)
{
	struct lace_ip ip;

	lace_udp_bind(t->net, t->handle, one_in(2) ? 0 : any_nic(t), one_in(2) ? NULL : any_ip(&ip), any_port());
}

CALL(lace_udp_send)
{
	struct lace_ip ip;

	lace_udp_send(t->net, t->handle, any_ip(&ip), any_port(), data, below(one_in(3) ? DATA : 2000));
}

CALL(lace_udp_sendv)
{
	struct lace_span spans[2] = { { data, below(2000), 0 }, { data + 1, below(20), 0 } };
	struct lace_ip ip;

	lace_udp_sendv(t->net, t->handle, any_ip(&ip), any_port(), spans, below(3));
}

CALL(lace_udp_recv)
{
	struct lace_datagram datagram;
	uint32_t len = below(2000);

	lace_datagram_init(&datagram, sizeof datagram);
	lace_udp_recv(t->net, t->handle, room(len), len, &datagram);
}

CALL(lace_hook_ethertype) { keep(t->w, lace_hook_ethertype(t->net, one_in(2) ? 0x88cc : 0x0806, on_packet, t->w)); }
CALL(lace_hook_protocol) { keep(t->w, lace_hook_protocol(t->net, (uint8_t)below(20), on_packet, t->w)); }
CALL(lace_hook_close) { lace_hook_close(t->net, t->handle); }
CALL(lace_send_frame) { lace_send_frame(t->net, any_nic(t), data, below(2000)); }

CALL(lace_send_ip)
{
	struct lace_span span = { data, below(2000), 0 };
	struct lace_ip ip;

	lace_send_ip(t->net, any_nic(t), any_ip(&ip), peer_ip(t->w), (uint8_t)below(256), (uint8_t)below(256), &span, 1);
}

/* Operations. A result may be a handle that we are told of by it. */

CALL(lace_op_status) { keep(t->w, lace_op_status(t->net, t->handle)); }
CALL(lace_op_progress) { uint64_t done, total; lace_op_progress(t->net, t->handle, &done, &total); }
CALL(lace_op_notify) { lace_op_notify(t->net, t->handle, on_progress, any_done(), t->w); }
CALL(lace_op_cancel) { lace_op_cancel(t->net, t->handle); }
CALL(lace_op_close) { lace_op_close(t->net, t->handle); }
CALL(lace_op_wait) { keep(t->w, lace_op_wait(t->net, t->handle)); }

CALL(lace_op_detail)
{
	struct lace_detail detail;

	lace_detail_init(&detail, sizeof detail);
	lace_op_detail(t->net, t->handle, &detail);
}

/* TCP. */

CALL(lace_tcp_connect_start)
{
	struct lace_peer peer = any_peer(t, 80);
	struct lace_tcp_options options;

	keep(t->w, lace_tcp_connect_start(t->net, &peer, any_options(&options), any_done(), t->w));
}

CALL(lace_tcp_listen)
{
	uint16_t port = one_in(6) ? (uint16_t)below(100) : 80;
	struct lace_tcp_options options;
	struct lace_ip ip;
	lace_listener listener;

	listener = lace_tcp_listen(t->net, one_in(2) ? NULL : any_ip(&ip), port, (uint16_t)below(3), any_options(&options));
	keep(t->w, listener);
	if (listener > 0)
		lace_tcp_notify(t->net, listener, on_tcp, t->w);
}

CALL(lace_tcp_accept) { keep(t->w, lace_tcp_accept(t->net, t->handle)); }
CALL(lace_tcp_unlisten) { lace_tcp_unlisten(t->net, t->handle); }
CALL(lace_tcp_notify) { lace_tcp_notify(t->net, t->handle, one_in(3) ? NULL : on_tcp, t->w); }
CALL(lace_tcp_status) { lace_tcp_status(t->net, t->handle); }
CALL(lace_tcp_error) { lace_tcp_error(t->net, t->handle); }
CALL(lace_tcp_wait) { lace_tcp_wait(t->net, t->handle, below(512)); }
CALL(lace_tcp_send) { lace_tcp_send(t->net, t->handle, data, below(5000)); }
CALL(lace_tcp_recv) { uint32_t len = below(5000); lace_tcp_recv(t->net, t->handle, room(len), len); }
CALL(lace_tcp_peek) { uint32_t len = below(5000); lace_tcp_peek(t->net, t->handle, room(len), len); }
CALL(lace_tcp_recv_into) { uint32_t len = below(30000); lace_tcp_recv_into(t->net, t->handle, room(len), len); }
CALL(lace_tcp_recv_ring) { lace_tcp_recv_ring(t->net, t->handle, any_count(1000)); }
CALL(lace_tcp_region) { lace_tcp_region(t->net, t->handle); }
CALL(lace_tcp_region_finish) { lace_tcp_region_finish(t->net, t->handle); }
CALL(lace_tcp_shutdown) { lace_tcp_shutdown(t->net, t->handle); }
CALL(lace_tcp_close) { lace_tcp_close(t->net, t->handle); }
CALL(lace_tcp_abort) { lace_tcp_abort(t->net, t->handle); }
CALL(lace_tcp_set) { lace_tcp_set(t->net, t->handle, below(5), one_in(5) ? UINT32_MAX : below(2000)); }

CALL(lace_tcp_sendfile_start)
{
	struct lace_source source;
	uint64_t offset = any_count(1000), count = any_count(60000);

	any_source(t->w, &source);
	keep(t->w, lace_tcp_sendfile_start(t->net, t->handle, &source, offset, count, on_progress, any_done(), t->w));
}

CALL(lace_tcp_info_get)
{
	struct lace_tcp_info info;

	lace_tcp_info_init(&info, sizeof info);
	lace_tcp_info_get(t->net, t->handle, &info);
}

/* What else happens to a stack. */

static void driver_mood(const struct turn *t)
{
	t->w->send_result = one_in(12) ? (one_in(2) ? LACE_EAGAIN : LACE_EIO) : 0;
}

static void mending(const struct turn *t)
{
	if (!nesting)
		mend(t->w);
}

/* Operations that have ended are closed, and some connections, lest they keep others from starting. */
static void tidying(const struct turn *t)
{
	unsigned tries;
	int32_t handle;
	int64_t result;

	for (tries = 0; tries < 8; tries++) {
		handle = any_handle(t->w);
		result = lace_op_status(t->net, handle);
		keep(t->w, result);
		if (result != LACE_EAGAIN)
			lace_op_close(t->net, handle);
		if (one_in(3))
			lace_tcp_abort(t->net, handle);
	}
}

static void clock_jump(const struct turn *t)
{
	t->w->now += one_in(25) ? below(200000000) : below(1000000);
	if (one_in(20))
		t->w->now -= below(1000000);
}

const struct call core_calls[] = {
	ROW(lace_poll, 4),
	ROW(lace_next_deadline, 1),
	ROW(lace_input, 1),
	ROW(lace_nic_reset, 1),
	ROW(lace_nic_tx_done, 1),
	ROW(lace_nic_link, 1),
	ROW(lace_nic_set_mac, 1),
	ROW(lace_nic_list, 1),
	ROW(lace_nic_add, 1),
	ROW(lace_nic_remove, 1),
	ROW(lace_addr_add, 1),
	ROW(lace_addr_remove, 1),
	ROW(lace_addr_get, 1),
	ROW(lace_route_add, 1),
	ROW(lace_route_remove, 1),
	ROW(lace_route_get, 1),
	ROW(lace_gateway_set, 1),
	ROW(lace_neighbour_get, 1),
	ROW(lace_mcast_join, 1),
	ROW(lace_mcast_leave, 1),
	ROW(lace_udp_open, 2),
	ROW(lace_udp_open_queue, 1),
	ROW(lace_udp_close, 8),
	ROW(lace_udp_set, 1),
	ROW(lace_udp_port, 1),
	ROW(lace_udp_connect, 1),
	ROW(lace_udp_bind, 3),
	ROW(lace_udp_send, 4),
	ROW(lace_udp_sendv, 1),
	ROW(lace_udp_recv, 1),
	ROW(lace_hook_ethertype, 1),
	ROW(lace_hook_protocol, 1),
	ROW(lace_hook_close, 3),
	ROW(lace_send_frame, 1),
	ROW(lace_send_ip, 1),
	ROW(lace_op_status, 4),
	ROW(lace_op_progress, 1),
	ROW(lace_op_notify, 1),
	ROW(lace_op_cancel, 1),
	ROW(lace_op_close, 6),
	ROW(lace_op_wait, 1),
	ROW(lace_op_detail, 1),
	ROW(lace_tcp_connect_start, 12),
	ROW(lace_tcp_listen, 4),
	ROW(lace_tcp_accept, 4),
	ROW(lace_tcp_unlisten, 3),
	ROW(lace_tcp_notify, 4),
	ROW(lace_tcp_status, 1),
	ROW(lace_tcp_error, 1),
	ROW(lace_tcp_wait, 1),
	ROW(lace_tcp_send, 10),
	ROW(lace_tcp_recv, 6),
	ROW(lace_tcp_peek, 1),
	ROW(lace_tcp_recv_into, 8),
	ROW(lace_tcp_recv_ring, 1),
	ROW(lace_tcp_region, 1),
	ROW(lace_tcp_region_finish, 1),
	ROW(lace_tcp_shutdown, 3),
	ROW(lace_tcp_close, 8),
	ROW(lace_tcp_abort, 6),
	ROW(lace_tcp_set, 1),
	ROW(lace_tcp_sendfile_start, 12),
	ROW(lace_tcp_info_get, 1),
	{ "the driver's mood", 1, driver_mood },
	{ "mending", 40, mending },
	{ "tidying", 40, tidying },
	{ "a jump of the clock", 1, clock_jump },
	{ NULL, 0, NULL }
};
