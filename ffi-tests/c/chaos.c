/*
 * Chaos: random calls of every function, with fresh, old and foreign handles, also from inside callbacks, on two stacks
 * joined by a cable that loses, doubles and spoils frames, while sinks and sources lie, NICs, addresses and links come
 * and go, and clocks jump. Nothing may crash or hang meanwhile. Afterwards every place of every kind is free again, every
 * page lent was returned once, nothing was written that is not a stack's to write, and the stacks do their work.
 *
 *     chaos SEED STEPS        one run; a failure tells seed and step
 *     chaos names             the names of the calls
 */
#include "chaos.h"
#include <signal.h>

enum { AREAS = 8, GUARD = 64, NESTED = 3, OPERATIONS = 6, CONNECTIONS = 5, SOCKETS = 6, RECENT = 24 };

struct wire ends[2];
const struct lace_ip end_ip[2] = {
	{ LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 9 } }, { LACE_IP_V4, 0, { 0, 0 }, { 10, 0, 0, 8 } }
};
struct lace_lease leases[2];
const uint8_t *data;
unsigned nesting;
int calm;

static uint32_t seed, chance;
/* Where we are, for whoever has to look into a failure. */
static unsigned long step, step_count, calls_made;
static const char *last_call = "none";
static int ended;               /* Passed; else the end of the program is a failure. */

/* Chance. */

uint32_t below(uint32_t n)
{
	chance ^= chance << 13;
	chance ^= chance >> 17;
	chance ^= chance << 5;
	return n ? (chance >> 4) % n : 0;
}

int one_in(uint32_t n)
{
	return below(n) == 0;
}

int storm(uint32_t n)
{
	return !calm && one_in(n);
}

unsigned end_of(const struct wire *w)
{
	return w == &ends[1];
}

const struct lace_ip *peer_ip(const struct wire *w)
{
	return &end_ip[!end_of(w)];
}

/* Handles: all that were ever given out, because at the end each that is still open is closed by its name. */

static struct {
	int32_t *all;
	unsigned count, size;
} given[2];

void keep(struct wire *w, int64_t handle)
{
	unsigned k = end_of(w);

	if (handle <= 0 || handle > INT32_MAX)
		return;
	if (given[k].count == given[k].size) {
		given[k].size = given[k].size ? 2 * given[k].size : 1024;
		given[k].all = (int32_t *)realloc(given[k].all, given[k].size * sizeof *given[k].all);
		CHECK(given[k].all);
	}
	given[k].all[given[k].count++] = (int32_t)handle;
}

int32_t any_handle(const struct wire *w)
{
	unsigned k = end_of(w);
	unsigned recent = given[k].count < RECENT ? given[k].count : RECENT;

	switch (below(40)) {
	case 0: return 0;
	case 1: return -1;
	case 2: return (int32_t)below(UINT32_MAX);
	case 3: return given[!k].count ? given[!k].all[below(given[!k].count)] : 1;
	case 4: return given[k].count ? given[k].all[below(given[k].count)] : 1;
	default: return recent ? given[k].all[given[k].count - 1 - below(recent)] : 1;
	}
}

/* Memory: areas that stacks may write, each with a guard before and behind, and data that they may only read. */

static uint8_t *areas[AREAS], *pattern;

static uint8_t pattern_byte(uint32_t at)
{
	return (uint8_t)(at * 7 + at / 251);
}

static void memory_up(void)
{
	unsigned i;

	pattern = (uint8_t *)malloc(DATA);
	CHECK(pattern);
	for (i = 0; i < DATA; i++)
		pattern[i] = pattern_byte(i);
	data = pattern;
	for (i = 0; i < AREAS; i++) {
		areas[i] = (uint8_t *)malloc(GUARD + ROOM + GUARD);
		CHECK(areas[i]);
		memset(areas[i], 0xa5, GUARD + ROOM + GUARD);
	}
}

/* Ends where the guard begins, so that one byte too many shows. */
void *room(uint32_t len)
{
	CHECK(len <= ROOM);
	return areas[below(AREAS)] + GUARD + ROOM - len;
}

static void memory_check(void)
{
	unsigned i, n;

	for (i = 0; i < DATA; i++)
		CHECK(pattern[i] == pattern_byte(i));
	for (i = 0; i < AREAS; i++)
		for (n = 0; n < GUARD; n++)
			CHECK(areas[i][n] == 0xa5 && areas[i][GUARD + ROOM + n] == 0xa5);
}

static void memory_down(void)
{
	unsigned i;

	memory_check();
	for (i = 0; i < AREAS; i++)
		free(areas[i]);
	free(pattern);
	free(given[0].all);
	free(given[1].all);
}

/* One random call, on one of the two. */
static void one_call(struct wire *w)
{
	const struct call *table, *call;
	struct turn turn = { w, w->net, any_handle(w) };
	static unsigned total;
	unsigned pick;

	if (!total) {
		for (call = core_calls; call->name; call++)
			total += call->weight;
		for (call = client_calls; call->name; call++)
			total += call->weight;
	}
	pick = below(total);
	for (table = core_calls;; table = client_calls)
		for (call = table; call->name; pick -= call++->weight)
			if (pick < call->weight) {
				calls_made++;
				last_call = call->name;
				call->make(&turn);
				return;
			}
}

/* What a callback does before its own work. */
void maybe_call(struct wire *w)
{
	if (nesting >= NESTED || !storm(100))
		return;
	nesting++;
	one_call(w);
	nesting--;
}

static void inside(struct wire *w, enum where where)
{
	w->inside_deepest = 0; /* Calls from calls are meant here. */
	if (where == IN_NOW)
		CHECK(w->nows < 1000000); /* No call and no step waits for ever. */
	maybe_call(w);
}

/* Four kinds of driver, by the seed. */
static void setup(struct wire *w)
{
	CHECK_EQ(lace_config_full(&w->config, sizeof w->config), 0);
	w->config.operations = OPERATIONS;
	w->config.http_jobs = 2;
	w->config.tcp_connections = CONNECTIONS;
	w->config.tcp_listeners = 2;
	w->config.tcp_pages = 4;
	w->config.udp_sockets = SOCKETS;
	w->config.udp_queues = 2;
	w->config.hooks = 2;
	w->other_end = cross;
	w->poll_result = 1; /* Calls that wait end at once. */
	w->driver.mac[5] = (uint8_t)(9 - end_of(w));
	if (seed & 1) {
		w->driver.caps |= LACE_NIC_GATHER;
		w->driver.tx_buffer = NULL;
	}
	if (seed & 2) {
		w->driver.caps |= LACE_NIC_ASYNC;
		w->driver.tx_buffer = NULL;
	}
}

/* An asynchronous NIC's. Those that a reset took are refused. */
static void return_tokens(struct wire *w)
{
	while (w->token_count)
		lace_nic_tx_done(w->net, w->nic, w->tokens[--w->token_count]);
}

static void poll_end(struct wire *w, uint32_t budget)
{
	w->nows = 0;
	CHECK(lace_poll(w->net, budget) >= 0);
	return_tokens(w);
}

static void run_both(unsigned rounds, uint32_t us)
{
	unsigned k;

	while (rounds--)
		for (k = 0; k < 2; k++) {
			poll_end(&ends[k], 32);
			ends[k].now += us;
		}
}

/* NIC, cable and address come back, so that there is something to spoil. */
void mend(struct wire *w)
{
	lace_nic_id nic;

	w->send_result = 0;
	if (lace_nic_list(w->net, 0, &nic) > 0)
		w->nic = nic;
	else
		w->nic = lace_nic_add(w->net, &w->driver);
	CHECK(w->nic > 0);
	lace_addr_add(w->net, w->nic, &end_ip[end_of(w)], 24);
	CHECK(lace_nic_link(w->net, w->nic, 1) == 0 || !calm);
}

/* The end. */

static void close_all(void)
{
	unsigned k, i;

	for (k = 0; k < 2; k++) {
		lace_dhcp_stop(ends[k].net, ends[k].nic);
		for (i = 0; i < given[k].count; i++) {
			lace_stack *net = ends[k].net;
			int32_t handle = given[k].all[i];

			lace_op_close(net, handle);
			lace_tcp_abort(net, handle);
			lace_tcp_unlisten(net, handle);
			lace_udp_close(net, handle);
			lace_hook_close(net, handle);
		}
	}
}

/* A file of pages goes over a connection whole. */
static void carries(lace_tcp from, lace_tcp to)
{
	enum { FILE_BYTES = 40000 };
	struct lace_source source;
	uint8_t bytes[4096];
	uint32_t came = 0;
	unsigned round;
	int64_t n, i;

	paged_source(&ends[0], &source);
	CHECK(lace_tcp_sendfile_start(ends[0].net, from, &source, 0, FILE_BYTES, NULL, NULL, NULL) > 0);
	for (round = 0; came < FILE_BYTES && round < 2000; round++) {
		run_both(1, 1000);
		n = lace_tcp_recv(ends[1].net, to, bytes, sizeof bytes);
		CHECK(n > 0 || n == LACE_EAGAIN);
		for (i = 0; i < n; i++)
			CHECK(bytes[i] == 7);
		came += n > 0 ? (uint32_t)n : 0;
	}
	CHECK_EQ(came, FILE_BYTES);
	run_both(100, 1000);
	CHECK_EQ(lent_count[0], 0);
}

/* As many of each kind as the configuration says can be opened again, and no more. */
static void all_is_free(void)
{
	lace_stack *net = ends[0].net;
	lace_op ops[OPERATIONS];
	lace_tcp tcps[CONNECTIONS], first = 0;
	struct lace_http http;
	struct lace_sink sink;
	struct lace_peer peer;
	struct lace_ping ping;
	lace_listener listener;
	unsigned k, i;

	memset(&peer, 0, sizeof peer);
	peer.ip = end_ip[1];
	peer.port = 80;
	for (k = 0; k < 2; k++)
		CHECK(lace_tcp_listen(ends[k].net, NULL, 81, 1, NULL) > 0);
	listener = lace_tcp_listen(ends[1].net, NULL, 80, CONNECTIONS, NULL);
	CHECK(listener > 0 && lace_tcp_listen(ends[1].net, NULL, 82, 1, NULL) < 0);
	for (i = 0; i < CONNECTIONS; i++) {
		ops[i] = lace_tcp_connect_start(net, &peer, NULL, NULL, NULL);
		CHECK(ops[i] > 0);
	}
	lace_ping_init(&ping, sizeof ping);
	ping.peer.ip = end_ip[1];
	ping.count = 1;
	ops[CONNECTIONS] = lace_ping_start(net, &ping);
	CHECK(ops[CONNECTIONS] > 0 && lace_ping_start(net, &ping) < 0);
	run_both(500, 10000);
	CHECK_EQ(lace_op_status(net, ops[CONNECTIONS]), 1);
	for (i = 0; i < CONNECTIONS; i++) {
		tcps[i] = (lace_tcp)lace_op_status(net, ops[i]);
		CHECK(tcps[i] > 0);
		k = (unsigned)lace_tcp_accept(ends[1].net, listener);
		CHECK((lace_tcp)k > 0);
		first = i ? first : (lace_tcp)k;
	}
	for (i = 0; i < OPERATIONS; i++)
		CHECK_EQ(lace_op_close(net, ops[i]), 0);
	carries(tcps[0], first);
	for (i = 0; i < CONNECTIONS; i++)
		CHECK_EQ(lace_tcp_abort(net, tcps[i]), 0);
	lace_http_init(&http, sizeof http);
	lace_sink_discard(&sink, sizeof sink);
	http.url = "http://10.0.0.8/";
	for (i = 0; i < 3; i++) {
		ops[i] = lace_http_get_start(net, &http, &sink);
		CHECK(ops[i] > 0);
	}
	run_both(10, 1000);
	CHECK(lace_op_status(net, ops[0]) == LACE_EAGAIN && lace_op_status(net, ops[1]) == LACE_EAGAIN);
	CHECK_EQ(lace_op_status(net, ops[2]), LACE_EMFILE);
	for (k = 0; k < 2; k++) {
		net = ends[k].net;
		for (i = 0; i < SOCKETS; i++)
			CHECK((i < 2 ? lace_udp_open_queue(net) : lace_udp_open(net, on_datagram, &ends[k])) > 0);
		CHECK(lace_udp_open(net, on_datagram, &ends[k]) < 0);
		for (i = 0; i < 2; i++)
			CHECK(lace_hook_ethertype(net, (uint16_t)(0x9000 + i), on_packet, &ends[k]) > 0);
		CHECK(lace_hook_ethertype(net, 0x9002, on_packet, &ends[k]) < 0);
	}
}

static void finish(struct wire *w)
{
	unsigned again = 0;

	w->nows = 0;
	for (return_tokens(w); lace_stack_stop(w->net) != 0; return_tokens(w))
		CHECK(w->driver.caps & LACE_NIC_ASYNC && again++ < 4);
	wire_down(w);
	CHECK_EQ(lent_count[end_of(w)], 0);
}

/* Tells how far it came, when it ends otherwise than it should. */

static void tell(void)
{
	if (!ended)
		fprintf(stderr, "chaos: seed %lu, step %lu of %lu, in or after call %lu, %s\n", (unsigned long)seed, step, step_count,
			calls_made, last_call);
}

static void crashed(int number)
{
	tell();
	signal(number, SIG_DFL);
	raise(number);
}

static void run(void)
{
	static const int crashes[] = { SIGSEGV, SIGABRT, SIGILL, SIGFPE, SIGTERM };
	unsigned k, polls;

	atexit(tell);
	for (k = 0; k < sizeof crashes / sizeof *crashes; k++)
		signal(crashes[k], crashed);
	chance = seed * 2654435761u + 1;
	memory_up();
	for (k = 0; k < 2; k++) {
		wire_bare(&ends[k], setup);
		CHECK_EQ(lace_addr_add(ends[k].net, ends[k].nic, &end_ip[k], 24), 0);
		CHECK_EQ(lace_lease_init(&leases[k], sizeof leases[k]), 0);
		ends[k].inside = inside;
	}
	for (step = 1; step <= step_count; step++) {
		one_call(&ends[below(2)]);
		for (k = 0; k < 2; k++)
			for (polls = below(6); polls; polls--) {
				poll_end(&ends[k], 1 + below(16));
				ends[k].now += below(1000);
			}
		if (step % 1024 == 0)
			memory_check();
	}
	if (!(seed & 4)) { /* Else both are stopped as they are. */
		calm = 1;
		for (k = 0; k < 2; k++) {
			close_all();
			run_both(1000, 1000000);
			mend(&ends[0]);
			mend(&ends[1]);
		}
		CHECK(lent_count[0] == 0 && lent_count[1] == 0);
		all_is_free();
	}
	last_call = "the end";
	finish(&ends[0]);
	finish(&ends[1]);
	memory_down();
	ended = 1;
	printf("seed %lu: %lu calls, %u and %u frames\n", (unsigned long)seed, calls_made, ends[0].sends, ends[1].sends);
}

int main(int argc, char **argv)
{
	const struct call *call;

	if (argc == 2 && !strcmp(argv[1], "names")) {
		for (call = core_calls; call->name; call++)
			puts(call->name);
		for (call = client_calls; call->name; call++)
			puts(call->name);
		return 0;
	}
	if (argc != 3) {
		fputs("chaos SEED STEPS | chaos names\n", stderr);
		return 2;
	}
	seed = (uint32_t)strtoul(argv[1], NULL, 0);
	step_count = strtoul(argv[2], NULL, 0);
	run();
	return 0;
}
