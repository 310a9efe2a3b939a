/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the files of U-Boot's port share: net-lace.c (the stack, the device, net_loop), net-lace-load.c (files: TFTP, NFS,
 * HTTP) and net-lace-ask.c (questions: DHCP, ping, DNS, SNTP).
 */
#ifndef NET_LACE_H
#define NET_LACE_H

/* Since October 2024 U-Boot has two stacks of its own, and headers common to both. */
#ifdef CONFIG_NET_LEGACY
#define LACE_NEW_TREE 1
#else
#define LACE_NEW_TREE 0
#include <common.h>
#endif

#include <net.h>

#include "bootlace_sync.h"

#define WITH_DNS (IS_ENABLED(CONFIG_CMD_DNS) || IS_ENABLED(CONFIG_DNS))
#define WITH_HTTP (IS_ENABLED(CONFIG_CMD_WGET) || IS_ENABLED(CONFIG_WGET))

/* The stack, set up; NULL if there was no memory. */
extern lace_stack *lace;
/* The current Ethernet device in it. */
extern lace_nic_id lace_nic;

/* Tells the stack what has changed: device, hardware address, VLAN, addresses, gateway, name servers. 0, or a LACE_E... */
int lace_sync(void);
/* Waits for an operation, looking at the watchdog and the keyboard, and closes it; `detail`, set up, may be NULL. */
int64_t lace_finish(lace_op op, struct lace_detail *detail);
/* Prints why an operation failed, in the server's words where it has said some. */
void lace_explain(const char *what, int64_t result, const struct lace_detail *detail);
/* Declared in net.h only where a command wants it. */
extern struct in_addr net_ping_ip;

/* A server by its address. */
void lace_server(struct lace_peer *peer, struct in_addr addr, uint16_t port);
struct lace_ip lace_from(struct in_addr addr);
struct in_addr lace_to(const struct lace_ip *ip);
/* An address in the environment, or 0. */
struct in_addr lace_env_ip(const char *name);

/* A transfer as the console shows it. */
struct lace_show {
	ulong start;
	u64 total;
	u32 hashes;
	bool quiet;
};

void lace_show_start(struct lace_show *show, const char *how);
void lace_show_progress(void *ctx, lace_op op, uint64_t done, uint64_t total);
/*
 * The memory at image_load_addr as a sink of at most `most` bytes, which ends where something begins that must stay; `own`:
 * the caller has seen to that. `room` must live as long as the sink.
 */
int lace_place(struct lace_sink *sink, u64 *room, bool own, u64 most);
/* The end of a load: its result, told to the user, to EFI (as come from `device`, if any) and to whoever reserves memory. */
int lace_loaded(const char *what, int64_t result, const struct lace_detail *detail, struct lace_show *show,
		const char *device, const char *name);

/* The protocols: 0 or less than 0, -EINTR when a key has ended it. */
int lace_tftp_load(void);
int lace_tftp_save(void);
int lace_nfs_load(void);
int lace_http_load(void);
int lace_dhcp_ask(void);
int lace_ping_ask(void);
int lace_dns_ask(void);
int lace_sntp_ask(void);

#endif
