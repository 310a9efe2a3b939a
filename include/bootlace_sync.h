/*
 * Blocking forms: start, wait, close, and nothing more. While they wait they poll the stack and call host.poll, so the
 * watchdog is fed and a key can end them (LACE_EINTR). From a callback they return LACE_EBUSY.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef BOOTLACE_SYNC_H
#define BOOTLACE_SYNC_H

#include "bootlace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Waits for an operation and closes it. A negative `op`, what a failed start returned, is returned as it is. */
static inline int64_t lace_op_finish(lace_stack *net, lace_op op)
{
	int64_t result = lace_op_wait(net, op);

	if (op >= 0)
		lace_op_close(net, op);
	return result;
}

/* Gets an address for a NIC: see lace_dhcp_start. Returns 0 or why not. */
static inline int64_t lace_dhcp(lace_stack *net, lace_nic_id nic, const struct lace_dhcp *dhcp, struct lace_lease *lease)
{
	return lace_op_finish(net, lace_dhcp_start(net, nic, dhcp, lease));
}

/* Looks a name up: see lace_dns_start. Returns the number of addresses or why there is none; the first goes to `*ip`. */
static inline int64_t lace_dns(lace_stack *net, const char *name, struct lace_ip *ip)
{
	struct lace_dns dns;
	lace_op op;
	int64_t result;

	lace_dns_init(&dns, sizeof dns);
	dns.name = name;
	op = lace_dns_start(net, &dns);
	result = lace_op_wait(net, op);
	if (op >= 0) {
		if (result > 0 && lace_dns_address(net, op, 0, ip) < 0)
			result = LACE_EFAULT;
		lace_op_close(net, op);
	}
	return result;
}

/* Pings a host: see lace_ping_start. Returns the number of answers or why there was none; `stats`, set up, may be NULL. */
static inline int64_t lace_ping(lace_stack *net, const struct lace_ping *ping, struct lace_ping_stats *stats)
{
	lace_op op = lace_ping_start(net, ping);
	int64_t result = lace_op_wait(net, op);

	if (op >= 0) {
		if (stats)
			lace_ping_result(net, op, stats);
		lace_op_close(net, op);
	}
	return result;
}

/* Receives a file by TFTP: see lace_tftp_get_start. Returns its bytes or why it did not come; `detail`, set up, may be NULL. */
static inline int64_t lace_tftp_get_detail(lace_stack *net, const struct lace_tftp_get *get, const struct lace_sink *sink,
					   struct lace_detail *detail)
{
	lace_op op = lace_tftp_get_start(net, get, sink);
	int64_t result = lace_op_wait(net, op);

	if (op >= 0) {
		if (detail)
			lace_op_detail(net, op, detail);
		lace_op_close(net, op);
	}
	return result;
}

/* The same without the server's words. */
static inline int64_t lace_tftp_get(lace_stack *net, const struct lace_tftp_get *get, const struct lace_sink *sink)
{
	return lace_tftp_get_detail(net, get, sink, (struct lace_detail *)0);
}

/* Sends a file by TFTP: see lace_tftp_put_start. Returns its bytes or why it did not go; `detail`, set up, may be NULL. */
static inline int64_t lace_tftp_put_detail(lace_stack *net, const struct lace_tftp_put *put, const struct lace_source *source,
					   struct lace_detail *detail)
{
	lace_op op = lace_tftp_put_start(net, put, source);
	int64_t result = lace_op_wait(net, op);

	if (op >= 0) {
		if (detail)
			lace_op_detail(net, op, detail);
		lace_op_close(net, op);
	}
	return result;
}

/* The same without the server's words. */
static inline int64_t lace_tftp_put(lace_stack *net, const struct lace_tftp_put *put, const struct lace_source *source)
{
	return lace_tftp_put_detail(net, put, source, (struct lace_detail *)0);
}

/* Opens a file: see lace_file_open_start. Returns the file, open, or why not. */
static inline lace_file lace_file_open(lace_stack *net, const struct lace_tftp_get *get, void *readahead, size_t len)
{
	lace_file file = lace_file_open_start(net, get, readahead, len);
	int64_t result = lace_file_wait(net, file);

	if (file >= 0 && result < 0)
		lace_op_close(net, file);
	return result < 0 ? (lace_file)result : file;
}

/* Opens a file on an NFS export: see lace_nfs_open_start. Returns the file, open, or why not. */
static inline lace_file lace_nfs_open(lace_stack *net, const struct lace_nfs_get *get, void *readahead, size_t len)
{
	lace_file file = lace_nfs_open_start(net, get, readahead, len);
	int64_t result = lace_file_wait(net, file);

	if (file >= 0 && result < 0)
		lace_op_close(net, file);
	return result < 0 ? (lace_file)result : file;
}

/* Reads from a file: see lace_file_read_start. Returns the bytes read, less than len only at the end, or why not. */
static inline int64_t lace_file_read(lace_stack *net, lace_file file, void *buffer, size_t len)
{
	int rc = lace_file_read_start(net, file, buffer, len);

	return rc < 0 ? rc : lace_file_wait(net, file);
}

/* Closes a file; its memory for reading ahead belongs to the caller again. */
static inline int lace_file_close(lace_stack *net, lace_file file)
{
	return lace_op_close(net, file);
}

/* Opens a connection: see lace_tcp_connect_start. Returns it or why not. */
static inline lace_tcp lace_tcp_connect(lace_stack *net, const struct lace_peer *peer, const struct lace_tcp_options *options)
{
	return (lace_tcp)lace_op_finish(net, lace_tcp_connect_start(net, peer, options, 0, (void *)0));
}

/* Gives all len bytes to be sent, waiting for room. Returns len, or what was given before it failed, or why nothing was. */
static inline int64_t lace_tcp_send_all(lace_stack *net, lace_tcp tcp, const void *data, size_t len)
{
	size_t sent = 0;

	while (sent < len) {
		int64_t n = lace_tcp_send(net, tcp, (const uint8_t *)data + sent, len - sent);

		if (n == LACE_EAGAIN) {
			int ready = lace_tcp_wait(net, tcp, LACE_TCP_WRITABLE);

			n = ready < 0 ? ready : 0;
		}
		if (n < 0)
			return sent ? (int64_t)sent : n;
		sent += (size_t)n;
	}
	return (int64_t)sent;
}

/* Receives up to len bytes, waiting for the first. Returns how many, 0 when the peer has finished, or why not. */
static inline int64_t lace_tcp_recv_wait(lace_stack *net, lace_tcp tcp, void *buffer, size_t len)
{
	int ready = lace_tcp_wait(net, tcp, LACE_TCP_READABLE);

	return ready < 0 ? ready : lace_tcp_recv(net, tcp, buffer, len);
}

/* Sends a file: see lace_tcp_sendfile_start. Returns its bytes, all acknowledged, or why not. */
static inline int64_t lace_tcp_sendfile(lace_stack *net, lace_tcp tcp, const struct lace_source *source, uint64_t offset,
					uint64_t count)
{
	return lace_op_finish(net, lace_tcp_sendfile_start(net, tcp, source, offset, count, 0, 0, (void *)0));
}

/* Mounts an export: see lace_nfs_mount_start. Fills in *mount, set up before. Returns 0 or why not. */
static inline int64_t lace_nfs_mount(lace_stack *net, const struct lace_nfs *nfs, struct lace_mount *mount)
{
	lace_op op = lace_nfs_mount_start(net, nfs);
	int64_t result = lace_op_wait(net, op);

	if (op >= 0) {
		if (result >= 0)
			result = lace_nfs_mount_result(net, op, mount);
		lace_op_close(net, op);
	}
	return result;
}

/* Tells a server that an export is no longer in use. Returns 0 or why not. */
static inline int64_t lace_nfs_unmount(lace_stack *net, const struct lace_nfs *nfs)
{
	return lace_op_finish(net, lace_nfs_unmount_start(net, nfs));
}

/* Lists the exports of a server: see lace_nfs_exports_start. Returns their number or why not. */
static inline int64_t lace_nfs_exports(lace_stack *net, const struct lace_nfs *nfs, const struct lace_sink *sink)
{
	return lace_op_finish(net, lace_nfs_exports_start(net, nfs, sink));
}

/* Reads a file: see lace_nfs_get_start. Returns its bytes or why not. */
static inline int64_t lace_nfs_get(lace_stack *net, const struct lace_nfs_get *get, const struct lace_sink *sink)
{
	return lace_op_finish(net, lace_nfs_get_start(net, get, sink));
}

/* Attributes of a file, into *attr, set up before. Returns its size or why not. */
static inline int64_t lace_nfs_getattr(lace_stack *net, const struct lace_mount *mount, const char *path, int follow,
				       struct lace_nfs_attr *attr)
{
	lace_op op = lace_nfs_getattr_start(net, mount, path, follow, 0, (void *)0);
	int64_t result = lace_op_wait(net, op);

	if (op >= 0) {
		if (result >= 0 && attr)
			lace_nfs_attributes(net, op, attr);
		lace_op_close(net, op);
	}
	return result;
}

/* Lists a directory: see lace_nfs_list_start. Returns the number of names or why not. */
static inline int64_t lace_nfs_list(lace_stack *net, const struct lace_mount *mount, const char *path,
				    const struct lace_sink *sink)
{
	return lace_op_finish(net, lace_nfs_list_start(net, mount, path, sink, 0, (void *)0));
}

/* Fetches a file: see lace_http_get_start. Returns its bytes or why not. */
static inline int64_t lace_http_get(lace_stack *net, const struct lace_http *http, const struct lace_sink *sink)
{
	return lace_op_finish(net, lace_http_get_start(net, http, sink));
}

/* Opens a file to be read in pieces: see lace_http_open_start. Returns it or why not. */
static inline lace_file lace_http_open(lace_stack *net, const struct lace_http *http)
{
	lace_file file = lace_http_open_start(net, http);
	int64_t result = lace_file_wait(net, file);

	if (file >= 0 && result < 0)
		lace_op_close(net, file);
	return result < 0 ? (lace_file)result : file;
}

/* Asks how long a file is: see lace_http_head_start. Returns that, 0 if it is not told, or why not. */
static inline int64_t lace_http_head(lace_stack *net, const struct lace_http *http)
{
	return lace_op_finish(net, lace_http_head_start(net, http));
}

#ifdef __cplusplus
}
#endif

#endif /* BOOTLACE_SYNC_H */
