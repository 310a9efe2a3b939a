/*
 * What the parts of the chaos test share. chaos.c has the runs and their checks, chaos_host.c the callbacks, chaos_calls.c
 * and chaos_clients.c the tables of calls: every function of bootlace.h that takes a stack. To add one: a CALL that makes
 * it once, with arguments that make sense now and then, and a ROW in the table below it. The test of the header in abi.rs
 * fails until then.
 */
#ifndef CHAOS_H
#define CHAOS_H

#include "wire.h"

/* Who makes a call: on which stack, with what for a handle. */
struct turn {
	struct wire *w;
	lace_stack *net;
	int32_t handle;         /* Mostly one that this stack gave out, of any kind and any age. */
};

struct call {
	const char *name;       /* Of the function in bootlace.h. */
	unsigned weight;        /* How often it is made, against the others. */
	void (*make)(const struct turn *t);
};
/* Each ends with one without a name. */
extern const struct call core_calls[], client_calls[];

#define CALL(function) static void call_##function(const struct turn *t)
#define ROW(function, weight) { #function, weight, call_##function }

enum { DATA = 70000, ROOM = 70000 };
extern const uint8_t *data;             /* DATA bytes that the stacks may read only. */
extern struct wire ends[2];
extern const struct lace_ip end_ip[2];
extern struct lace_lease leases[2];
extern unsigned nesting;                /* How many callbacks are under way that make a call. */

/* A number below n; all chance of a run comes from its seed. */
uint32_t below(uint32_t n);
int one_in(uint32_t n);
/* The same, but never once it is calm: then nobody lies, nothing is lost, and callbacks make no calls. */
int storm(uint32_t n);
extern int calm;
/* What a callback does before its own work. */
void maybe_call(struct wire *w);
/* Which end of the cable a stack is at, and the address at the other. */
unsigned end_of(const struct wire *w);
const struct lace_ip *peer_ip(const struct wire *w);
/* Remembers a handle, if it is one, for later calls and for the end. */
void keep(struct wire *w, int64_t handle);
/* Mostly a recent one of this stack, but also older, foreign and impossible ones. */
int32_t any_handle(const struct wire *w);
/* Memory of len bytes, at most ROOM, that a stack may write; a guard follows it. */
void *room(uint32_t len);
/* A sink or a source of any kind; those with callbacks lie now and then. */
void any_sink(struct wire *w, struct lace_sink *sink);
void any_source(struct wire *w, struct lace_source *source);
/* A source of pages, each a block of its own. */
void paged_source(struct wire *w, struct lace_source *source);
/* Pages lent by sources and not given back yet, for each end. */
extern unsigned lent_count[2];
/* NIC, cable and address come back. */
void mend(struct wire *w);
/* The cable. */
void cross(struct wire *w, const uint8_t *frame, uint32_t len);

/* Arguments: what fits mostly, and what does not now and then. */
const char *any_text(void);
lace_nic_id any_nic(const struct turn *t);
const struct lace_ip *any_ip(struct lace_ip *ip);               /* Writes *ip; NULL now and then. */
uint64_t any_count(uint32_t below_what);                        /* Or one at the edge of its type. */
lace_done any_done(void);
struct lace_peer any_peer(const struct turn *t, uint16_t port); /* The other end, mostly at that port. */

/* The callbacks, which make calls themselves. Their context is the stack's wire. */
void on_progress(void *ctx, lace_op op, uint64_t done, uint64_t total);
void on_done(void *ctx, lace_op op, int64_t result);
void on_tcp(void *ctx, int32_t handle, uint32_t events);
void on_datagram(void *ctx, const struct lace_datagram *datagram);
void on_packet(void *ctx, const struct lace_packet *packet);
void on_lost(void *ctx, lace_nic_id nic, const struct lace_ip *ip);

#endif
