/*
 * The host that the test programs are to the stack: a clock that counts its readings, numbers that look random and are the same
 * in each run, a NIC whose other end is peer.c, and what failed. A program may define HOST_TICK (microseconds a reading) and
 * HOST_SEED before it includes this.
 */
#ifndef BARE_HOST_H
#define BARE_HOST_H

#include "peer.h"
#include "runtime.h"

#include <bootlace.h>

#ifndef HOST_TICK
#define HOST_TICK 20
#endif
#ifndef HOST_SEED
#define HOST_SEED 12345
#endif

static uint64_t now;
static uint32_t chance = HOST_SEED;
static int failures;

static inline void expect(int good, const char *what, int64_t value)
{
	if (good)
		return;
	failures++;
	bare_print("FAIL ");
	bare_print(what);
	bare_print(value < 0 ? " -" : " ");
	bare_print_number((uint64_t)(value < 0 ? -value : value));
	bare_print("\n");
}

static inline uint64_t LACE_CALL now_us(void *ctx)
{
	(void)ctx;
	return now += HOST_TICK;
}

static inline uint32_t LACE_CALL random_bits(void *ctx)
{
	(void)ctx;
	chance ^= chance << 13;
	chance ^= chance >> 17;
	return chance ^= chance << 5;
}

static inline void LACE_CALL idle(void *ctx, uint32_t max_us)
{
	(void)ctx;
	now += max_us;
}

static inline int LACE_CALL peer_nic_send(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token)
{
	(void)token;
	expect(n == 1, "one span without gather", n);
	peer_take(ctx, spans->data, spans->len);
	return 0;
}

static inline int LACE_CALL peer_nic_recv(void *ctx, struct lace_frame *frame)
{
	size_t length;
	const uint8_t *data = peer_next(ctx, &length);

	if (!data)
		return 0;
	frame->data = data;
	frame->len = (uint32_t)length;
	frame->flags = 0;
	return 1;
}

/* What was lent is used again with the next frame. */
static inline void LACE_CALL nic_release(void *ctx, const struct lace_frame *frame)
{
	(void)ctx;
	(void)frame;
}

/* The least that boots a file: one NIC, one operation, the socket it takes. ram_tftp of docs/SIZES.md. */
static inline void smallest_limits(struct lace_config *config)
{
	lace_config_init(config, sizeof *config);
	config->nics = 1;
	config->operations = 1;
	config->udp_sockets = 1;
	config->routes = 1;
	config->neighbours = 1;
	config->wait_frames = 0;
}

/* Runs an operation to its end. */
static inline int64_t finish(struct lace_stack *net, lace_op op)
{
	int64_t result = lace_op_wait(net, op);

	if (op > 0)
		expect(lace_op_close(net, op) == 0, "close", op);
	return result;
}

#endif
