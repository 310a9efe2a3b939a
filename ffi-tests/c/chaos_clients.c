/* The calls of the clients: DHCP, DNS, ping, TFTP, NFS, HTTP, and of the files that some of them open. */
#include "chaos.h"

/* Arguments. */

static struct lace_http any_http(const struct turn *t)
{
	static const char *const urls[] = { "http://10.0.0.8/a", "http://10.0.0.9/a", "http://10.0.0.8:81/",
					    "http://name.example/x", "http://u:p@10.0.0.8/q?x", "http://10.0.0.77/", "x" };
	struct lace_http http;

	lace_http_init(&http, sizeof http);
	http.url = one_in(3) ? urls[below(7)] : urls[end_of(t->w)];
	if (one_in(3))
		http.offset = any_count(100);
	if (one_in(4))
		http.len = any_count(100);
	if (one_in(6))
		http.if_range = "\"a\"";
	http.timeout_ms = below(2000);
	http.retries = below(9);
	http.close = below(2);
	http.progress = on_progress;
	http.done = any_done();
	http.ctx = t->w;
	return http;
}

static struct lace_tftp_get any_tftp_get(const struct turn *t)
{
	struct lace_tftp_get get;

	lace_tftp_get_init(&get, sizeof get);
	get.server = any_peer(t, 0);
	get.path = any_text();
	get.progress = on_progress;
	get.done = any_done();
	get.ctx = t->w;
	return get;
}

static struct lace_nfs any_nfs(const struct turn *t)
{
	struct lace_nfs nfs;

	lace_nfs_init(&nfs, sizeof nfs);
	nfs.server = any_peer(t, 0);
	nfs.transport = below(3);
	nfs.path = any_text();
	nfs.done = any_done();
	nfs.ctx = t->w;
	return nfs;
}

/* A mount that the other stack, which is no NFS server, never gave. */
static const struct lace_mount *any_mount(const struct turn *t)
{
	static struct lace_mount mounts[2];
	struct lace_mount *mount = &mounts[end_of(t->w)];

	lace_mount_init(mount, sizeof *mount);
	mount->server = *peer_ip(t->w);
	mount->transport = 1 + below(2);
	mount->nfs_port = one_in(2) ? 80 : 2049;
	mount->root_len = below(66);
	mount->path = "/export";
	return mount;
}

static struct lace_nfs_get any_nfs_get(const struct turn *t)
{
	struct lace_nfs_get get;

	lace_nfs_get_init(&get, sizeof get);
	get.mount = any_mount(t);
	get.path = any_text();
	get.offset = any_count(100);
	get.progress = on_progress;
	get.done = any_done();
	get.ctx = t->w;
	return get;
}

/* DHCP, DNS and ping. */

CALL(lace_dhcp_start)
{
	struct lace_dhcp dhcp;

	lace_dhcp_init(&dhcp, sizeof dhcp);
	dhcp.timeout_ms = 1 + below(20000);
	dhcp.inform = (uint8_t)below(2);
	dhcp.probe = (uint8_t)below(2);
	dhcp.done = any_done();
	dhcp.ctx = t->w;
	keep(t->w, lace_dhcp_start(t->net, any_nic(t), one_in(3) ? NULL : &dhcp, one_in(2) ? NULL : &leases[end_of(t->w)]));
}

CALL(lace_dhcp_release) { lace_dhcp_release(t->net, any_nic(t)); }
CALL(lace_dhcp_stop) { lace_dhcp_stop(t->net, any_nic(t)); }
CALL(lace_dhcp_state) { lace_dhcp_state(t->net, any_nic(t)); }
CALL(lace_dhcp_on_lost) { lace_dhcp_on_lost(t->net, any_nic(t), on_lost, t->w); }
CALL(lace_dns_set) { lace_dns_set(t->net, peer_ip(t->w), below(2)); }
CALL(lace_dns_get) { struct lace_ip ip; lace_dns_get(t->net, below(4), &ip); }
CALL(lace_dns_set_search) { lace_dns_set_search(t->net, one_in(3) ? NULL : any_text()); }
CALL(lace_dns_address) { struct lace_ip ip; lace_dns_address(t->net, t->handle, below(4), &ip); }

CALL(lace_dns_start)
{
	struct lace_dns dns;

	lace_dns_init(&dns, sizeof dns);
	dns.name = any_text();
	dns.done = any_done();
	dns.ctx = t->w;
	keep(t->w, lace_dns_start(t->net, &dns));
}

CALL(lace_ping_start)
{
	struct lace_ping ping;

	lace_ping_init(&ping, sizeof ping);
	ping.peer = any_peer(t, 0);
	any_ip(&ping.peer.ip);
	ping.count = below(4);
	ping.progress = on_progress;
	ping.done = any_done();
	ping.ctx = t->w;
	keep(t->w, lace_ping_start(t->net, &ping));
}

CALL(lace_ping_result)
{
	struct lace_ping_stats stats;

	lace_ping_stats_init(&stats, sizeof stats);
	lace_ping_result(t->net, t->handle, &stats);
}

/* TFTP and files. */

CALL(lace_tftp_get_start)
{
	struct lace_tftp_get get = any_tftp_get(t);
	struct lace_sink sink;

	any_sink(t->w, &sink);
	keep(t->w, lace_tftp_get_start(t->net, &get, &sink));
}

CALL(lace_tftp_put_start)
{
	struct lace_tftp_put put;
	struct lace_source source;

	lace_tftp_put_init(&put, sizeof put);
	put.server = any_peer(t, 0);
	put.path = any_text();
	put.len = one_in(3) ? any_count(5000) : 0;
	put.progress = on_progress;
	put.done = any_done();
	put.ctx = t->w;
	any_source(t->w, &source);
	keep(t->w, lace_tftp_put_start(t->net, &put, &source));
}

CALL(lace_tftp_agreed) { uint16_t blksize; lace_tftp_agreed(t->net, t->handle, one_in(2) ? NULL : &blksize, NULL); }

CALL(lace_file_open_start)
{
	struct lace_tftp_get get = any_tftp_get(t);
	uint32_t len = below(9000);

	keep(t->w, lace_file_open_start(t->net, &get, room(len), len));
}

CALL(lace_file_read_start) { uint32_t len = below(9000); lace_file_read_start(t->net, t->handle, room(len), len); }
CALL(lace_file_status) { lace_file_status(t->net, t->handle); }
CALL(lace_file_wait) { lace_file_wait(t->net, t->handle); }
CALL(lace_file_seek) { lace_file_seek(t->net, t->handle, any_count(5000)); }
CALL(lace_file_position) { lace_file_position(t->net, t->handle); }
CALL(lace_file_size) { lace_file_size(t->net, t->handle); }

/* NFS. */

CALL(lace_nfs_mount_start) { struct lace_nfs nfs = any_nfs(t); keep(t->w, lace_nfs_mount_start(t->net, &nfs)); }
CALL(lace_nfs_unmount_start) { struct lace_nfs nfs = any_nfs(t); keep(t->w, lace_nfs_unmount_start(t->net, &nfs)); }

CALL(lace_nfs_mount_result)
{
	struct lace_mount mount;

	lace_mount_init(&mount, sizeof mount);
	lace_nfs_mount_result(t->net, t->handle, &mount);
}

CALL(lace_nfs_exports_start)
{
	struct lace_nfs nfs = any_nfs(t);
	struct lace_sink sink;

	any_sink(t->w, &sink);
	keep(t->w, lace_nfs_exports_start(t->net, &nfs, &sink));
}

CALL(lace_nfs_get_start)
{
	struct lace_nfs_get get = any_nfs_get(t);
	struct lace_sink sink;

	any_sink(t->w, &sink);
	keep(t->w, lace_nfs_get_start(t->net, &get, &sink));
}

CALL(lace_nfs_open_start)
{
	struct lace_nfs_get get = any_nfs_get(t);
	uint32_t len = below(9000);

	keep(t->w, lace_nfs_open_start(t->net, &get, room(len), len));
}

CALL(lace_nfs_getattr_start)
{
	keep(t->w, lace_nfs_getattr_start(t->net, any_mount(t), any_text(), (int)below(2), any_done(), t->w));
}

CALL(lace_nfs_access_start)
{
	keep(t->w, lace_nfs_access_start(t->net, any_mount(t), any_text(), below(64), any_done(), t->w));
}

CALL(lace_nfs_readlink_start)
{
	struct lace_sink sink;

	any_sink(t->w, &sink);
	keep(t->w, lace_nfs_readlink_start(t->net, any_mount(t), any_text(), &sink, any_done(), t->w));
}

CALL(lace_nfs_list_start)
{
	struct lace_sink sink;

	any_sink(t->w, &sink);
	keep(t->w, lace_nfs_list_start(t->net, any_mount(t), any_text(), &sink, any_done(), t->w));
}

CALL(lace_nfs_fsstat_start) { keep(t->w, lace_nfs_fsstat_start(t->net, any_mount(t), any_text(), any_done(), t->w)); }

CALL(lace_nfs_attributes)
{
	struct lace_nfs_attr attr;

	lace_nfs_attr_init(&attr, sizeof attr);
	lace_nfs_attributes(t->net, t->handle, &attr);
}

CALL(lace_nfs_fsstat)
{
	struct lace_nfs_stat stat;

	lace_nfs_stat_init(&stat, sizeof stat);
	lace_nfs_fsstat(t->net, t->handle, &stat);
}

/* HTTP. */

CALL(lace_http_get_start)
{
	struct lace_http http = any_http(t);
	struct lace_sink sink;

	any_sink(t->w, &sink);
	keep(t->w, lace_http_get_start(t->net, &http, &sink));
}

CALL(lace_http_head_start) { struct lace_http http = any_http(t); keep(t->w, lace_http_head_start(t->net, &http)); }
CALL(lace_http_open_start) { struct lace_http http = any_http(t); keep(t->w, lace_http_open_start(t->net, &http)); }
CALL(lace_http_status) { lace_http_status(t->net, t->handle); }

CALL(lace_http_field)
{
	uint32_t size = below(300);

	lace_http_field(t->net, t->handle, one_in(2) ? NULL : "ETag", (char *)room(size), size);
}

CALL(lace_http_validator)
{
	uint32_t size = below(300);

	lace_http_validator(t->net, t->handle, (char *)room(size), size);
}

/* Counters. */

CALL(lace_stat_get) { lace_stat_get(t->net, below(lace_stat_count() + 2)); }

const struct call client_calls[] = {
	ROW(lace_dhcp_start, 1),
	ROW(lace_dhcp_release, 1),
	ROW(lace_dhcp_stop, 1),
	ROW(lace_dhcp_state, 1),
	ROW(lace_dhcp_on_lost, 1),
	ROW(lace_dns_set, 1),
	ROW(lace_dns_get, 1),
	ROW(lace_dns_set_search, 1),
	ROW(lace_dns_address, 1),
	ROW(lace_dns_start, 1),
	ROW(lace_ping_start, 1),
	ROW(lace_ping_result, 1),
	ROW(lace_tftp_get_start, 4),
	ROW(lace_tftp_put_start, 4),
	ROW(lace_tftp_agreed, 1),
	ROW(lace_file_open_start, 1),
	ROW(lace_file_read_start, 8),
	ROW(lace_file_status, 1),
	ROW(lace_file_wait, 1),
	ROW(lace_file_seek, 1),
	ROW(lace_file_position, 1),
	ROW(lace_file_size, 1),
	ROW(lace_nfs_mount_start, 1),
	ROW(lace_nfs_unmount_start, 1),
	ROW(lace_nfs_mount_result, 1),
	ROW(lace_nfs_exports_start, 1),
	ROW(lace_nfs_get_start, 1),
	ROW(lace_nfs_open_start, 1),
	ROW(lace_nfs_getattr_start, 1),
	ROW(lace_nfs_access_start, 1),
	ROW(lace_nfs_readlink_start, 1),
	ROW(lace_nfs_list_start, 1),
	ROW(lace_nfs_fsstat_start, 1),
	ROW(lace_nfs_attributes, 1),
	ROW(lace_nfs_fsstat, 1),
	ROW(lace_http_get_start, 12),
	ROW(lace_http_head_start, 1),
	ROW(lace_http_open_start, 6),
	ROW(lace_http_status, 1),
	ROW(lace_http_field, 1),
	ROW(lace_http_validator, 1),
	ROW(lace_stat_get, 1),
	{ NULL, 0, NULL }
};
