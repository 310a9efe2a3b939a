/*
 * TCP both ways, between two stacks of one program: files from memory, from a callback that fills and from one that lends, into
 * regions at odd addresses and through rings, in both directions at once, then with losses. Then HTTP over it: a body of a told
 * length and one in chunks. Frames lie at every alignment.
 */
#define HOST_TICK 5
#define HOST_SEED 99
#include "host.h"

#define FILE_SIZE 300007u
#define BACK_SIZE 40001u
#define RING 64

struct end {
	lace_stack *net;
	struct end *other;
	unsigned first, count, alignment;
	uint16_t length[RING];
	uint8_t frames[RING][1514];
	uint8_t lent[1514 + 8];
	uint8_t arena[65536] LACE_ALIGNED;
};

static struct end ends[2];
static uint8_t memory[FILE_SIZE + 16];
static uint8_t source[FILE_SIZE + 8];
static uint32_t lose, seen, lost;
static unsigned pages;

static int LACE_CALL nic_send(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token)
{
	struct end *to = ((struct end *)ctx)->other;
	unsigned at = (to->first + to->count) % RING;
	uint32_t length = 0;

	(void)token;
	if (to->count == RING)
		return LACE_EAGAIN;
	if (lose && ++seen % lose == 0) {
		lost++;
		return 0;
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < spans[i].len; k++)
			to->frames[at][length++] = ((const uint8_t *)spans[i].data)[k];
	to->length[at] = (uint16_t)length;
	to->count++;
	return 0;
}

static int LACE_CALL nic_recv(void *ctx, struct lace_frame *frame)
{
	struct end *end = ctx;
	uint8_t *at = end->lent;

	if (!end->count)
		return 0;
	while (((uintptr_t)at & 7) != (end->alignment & 7))
		at++;
	end->alignment++;
	for (unsigned i = 0; i < end->length[end->first]; i++)
		at[i] = end->frames[end->first][i];
	frame->data = at;
	frame->len = end->length[end->first];
	frame->flags = 0;
	end->first = (end->first + 1) % RING;
	end->count--;
	return 1;
}

static void up(struct end *end, unsigned number)
{
	struct lace_config config;
	struct lace_host host;
	struct lace_nic nic;
	struct lace_ip ip;
	int eth, rc;

	end->other = &ends[!number];
	lace_config_init(&config, sizeof config);
	config.tcp_connections = 2;
	config.tcp_listeners = 1;
	config.tcp_pages = 8;
	config.http_jobs = 1;
	lace_host_init(&host, sizeof host);
	host.now_us = now_us;
	host.random = random_bits;
	rc = lace_stack_init(end->arena, sizeof end->arena, &config, &host, &end->net);
	expect(rc == 0, "stack", rc ? lace_stack_size(&config) : 0);
	lace_nic_init(&nic, sizeof nic);
	nic.ctx = end;
	nic.caps = number ? 0 : LACE_NIC_GATHER;
	nic.send = nic_send;
	nic.recv = nic_recv;
	nic.release = nic_release;
	nic.mac[0] = 2;
	nic.mac[5] = (uint8_t)(number + 1);
	eth = lace_nic_add(end->net, &nic);
	expect(eth > 0, "nic", eth);
	lace_ip_v4(&ip, 10, 0, 0, (uint8_t)(number + 1));
	rc = lace_addr_add(end->net, eth, &ip, 24);
	expect(rc == 0, "address", rc);
}

/* A pass of each; when nothing moved, time goes on to what comes first. */
static void step(void)
{
	int64_t next, other;

	if (lace_poll(ends[0].net, 8) + lace_poll(ends[1].net, 8))
		return;
	next = lace_next_deadline(ends[0].net);
	other = lace_next_deadline(ends[1].net);
	next = next < other ? next : other;
	now += next < 1000000 ? (uint64_t)next : 1000000;
}

static int64_t LACE_CALL fill(void *ctx, uint64_t offset, void *buffer, uint32_t len)
{
	uint8_t *to = buffer;

	(void)ctx;
	for (uint32_t i = 0; i < len; i++)
		to[i] = peer_byte((uint32_t)offset + i);
	return len;
}

static int64_t LACE_CALL lend(void *ctx, uint64_t offset, uint32_t len, const void **page)
{
	(void)ctx;
	pages++;
	*page = source + offset + 1;
	return len < 4000 ? len : 4000;
}

static void LACE_CALL take_back(void *ctx, uint64_t offset, const void *page, uint32_t len)
{
	(void)ctx;
	(void)len;
	expect(page == source + offset + 1, "page", (int64_t)offset);
	pages--;
}

/* One connection: a file to the client's region, and at the same time bytes through the rings to the server. */
static void exchange(unsigned kind)
{
	static uint8_t piece[1000];
	struct lace_tcp_options options;
	struct lace_source file;
	struct lace_peer peer = { .name = NULL, .port = 80 };
	lace_stack *client = ends[1].net, *server = ends[0].net;
	lace_listener listener;
	lace_tcp a = 0, b = 0;
	lace_op op, sending = 0;
	uint32_t given = 0, got = 0, wrong = 0, turns = 0;
	int64_t n = 0;

	for (uint32_t i = 0; i < sizeof memory; i++)
		memory[i] = 0xa5;
	lace_tcp_init(&options, sizeof options);
	options.receive_max = 40000; /* not more than the ring of frames holds */
	listener = lace_tcp_listen(server, NULL, 80, 1, &options);
	expect(listener > 0, "listener", listener);
	lace_ip_v4(&peer.ip, 10, 0, 0, 1);
	op = lace_tcp_connect_start(client, &peer, &options, NULL, NULL);
	while (lace_op_status(client, op) == LACE_EAGAIN && turns++ < 100000)
		step();
	b = (lace_tcp)lace_op_status(client, op);
	expect(b > 0, "connected", b);
	lace_op_close(client, op);
	while ((a = lace_tcp_accept(server, listener)) == LACE_EAGAIN && turns++ < 100000)
		step();
	expect(a > 0, "accepted", a);
	if (a <= 0 || b <= 0)
		return;
	n = lace_tcp_recv_into(client, b, memory + 8 + kind, FILE_SIZE);
	expect(n == 0, "region", n);
	if (kind == 0)
		lace_source_memory(&file, sizeof file, source + 1, FILE_SIZE);
	else if (kind == 1)
		lace_source_read(&file, sizeof file, fill, NULL);
	else
		lace_source_map(&file, sizeof file, lend, take_back, NULL);
	sending = lace_tcp_sendfile_start(server, a, &file, 0, FILE_SIZE, NULL, NULL, NULL);
	expect(sending > 0, "sendfile", sending);
	while (turns++ < 1000000) {
		int64_t region = lace_tcp_region(client, b);

		if (given < BACK_SIZE) {
			uint32_t most = BACK_SIZE - given < 999 ? BACK_SIZE - given : 999;

			for (uint32_t i = 0; i < most; i++)
				piece[1 + i] = peer_byte(given + i + 7);
			n = lace_tcp_send(client, b, piece + 1, most);
			given += n > 0 ? (uint32_t)n : 0;
			expect(n > 0 || n == LACE_EAGAIN, "given to the ring", n);
		}
		while ((n = lace_tcp_recv(server, a, piece + got % 8, 500)) > 0) {
			for (uint32_t i = 0; i < (uint32_t)n; i++)
				wrong += piece[got % 8 + i] != peer_byte(got + i + 7);
			got += (uint32_t)n;
		}
		if (region == FILE_SIZE && got == BACK_SIZE && lace_op_status(server, sending) != LACE_EAGAIN)
			break;
		if (failures)
			return;
		step();
	}
	expect(got == BACK_SIZE && wrong == 0, "through the rings", wrong ? wrong : got);
	n = lace_op_status(server, sending);
	expect(n == FILE_SIZE, "sent", n);
	lace_op_close(server, sending);
	n = lace_tcp_region_finish(client, b);
	expect(n == FILE_SIZE, "landed", n);
	wrong = 0;
	for (uint32_t i = 0; i < FILE_SIZE; i++)
		wrong += memory[8 + kind + i] != peer_byte(i);
	for (uint32_t i = 0; i < sizeof memory; i++)
		if (i < 8 + kind || i >= 8 + kind + FILE_SIZE)
			wrong += memory[i] != 0xa5;
	expect(wrong == 0, "contents of the file", wrong);
	/* Good order: each finishes, each is told. */
	n = lace_tcp_shutdown(server, a);
	expect(n == 0, "shutdown", n);
	while (!(lace_tcp_status(client, b) & LACE_TCP_FINISHED) && turns++ < 1000000)
		step();
	n = lace_tcp_recv(client, b, piece, sizeof piece);
	expect(n == 0, "end of the stream", n);
	n = lace_tcp_close(client, b);
	expect(n == 0, "close", n);
	while (!(lace_tcp_status(server, a) & LACE_TCP_FINISHED) && turns++ < 1000000)
		step();
	n = lace_tcp_error(server, a);
	expect(n == 0, "ended in good order", n);
	n = lace_tcp_close(server, a);
	expect(n == 0 && lace_tcp_unlisten(server, listener) == 0, "close of the server", n);
	for (unsigned i = 0; i < 200; i++)
		step();
	expect(pages == 0, "pages given back", pages);
	expect(turns < 1000000, "turns", turns);
}

/* Hands a piece to the ring, in as many passes as it takes. */
static void say(lace_tcp to, const uint8_t *text, uint32_t n)
{
	for (uint32_t turns = 0; n && turns < 100000 && !failures; turns++) {
		int64_t taken = lace_tcp_send(ends[0].net, to, text, n);

		expect(taken > 0 || taken == LACE_EAGAIN, "said", taken);
		text += taken > 0 ? taken : 0;
		n -= taken > 0 ? (uint32_t)taken : 0;
		step();
	}
}

static uint32_t length_of(const char *text)
{
	uint32_t n = 0;

	while (text[n])
		n++;
	return n;
}

static void say_text(lace_tcp to, const char *text)
{
	say(to, (const uint8_t *)text, length_of(text));
}

/* The server's side of one request: its end is found, then the answer follows. */
static void serve(lace_tcp a, int chunks)
{
	static const char hex[] = "0123456789abcdef";
	struct lace_source file;
	uint8_t request[512];
	uint32_t got = 0, turns = 0;
	lace_op op;

	while (turns++ < 100000 && (got < 4 || request[got - 1] != '\n' || request[got - 3] != '\n')) {
		int64_t n = lace_tcp_recv(ends[0].net, a, request + got, sizeof request - got);

		got += n > 0 ? (uint32_t)n : 0;
		step();
	}
	for (uint32_t i = 0; i < 12; i++)
		expect(got > 12 && request[i] == "GET /file HT"[i], "request", request[i]);
	if (!chunks) {
		say_text(a, "HTTP/1.1 200 OK\r\nContent-Length: 300007\r\n\r\n");
		lace_source_memory(&file, sizeof file, source + 1, FILE_SIZE);
		op = lace_tcp_sendfile_start(ends[0].net, a, &file, 0, FILE_SIZE, NULL, NULL, NULL);
		while (lace_op_status(ends[0].net, op) == LACE_EAGAIN && turns++ < 1000000)
			step();
		lace_op_close(ends[0].net, op);
		return;
	}
	say_text(a, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (uint32_t at = 0, size; at < FILE_SIZE; at += size) {
		char head[8] = { 0, 0, 0, 0, '\r', '\n', 0, 0 };

		size = 1 + at * 7 % 4093;
		size = FILE_SIZE - at < size ? FILE_SIZE - at : size;
		for (unsigned i = 0; i < 4; i++)
			head[i] = hex[size >> (12 - 4 * i) & 15];
		say_text(a, head);
		say(a, source + 1 + at, size);
		say_text(a, "\r\n");
	}
	say_text(a, "0\r\n\r\n");
}

static void http(int chunks)
{
	struct lace_http get;
	struct lace_sink sink;
	lace_listener listener = lace_tcp_listen(ends[0].net, NULL, 80, 1, NULL);
	lace_tcp a;
	lace_op op;
	uint32_t wrong = 0, turns = 0;
	int64_t n;

	for (uint32_t i = 0; i < sizeof memory; i++)
		memory[i] = 0xa5;
	expect(listener > 0, "listener", listener);
	lace_http_init(&get, sizeof get);
	get.url = "http://10.0.0.1/file";
	get.close = 1;
	get.receive_max = 40000;
	lace_sink_memory(&sink, sizeof sink, memory + 5, FILE_SIZE);
	op = lace_http_get_start(ends[1].net, &get, &sink);
	expect(op > 0, "HTTP", op);
	while ((a = lace_tcp_accept(ends[0].net, listener)) == LACE_EAGAIN && turns++ < 100000)
		step();
	expect(a > 0, "accepted", a);
	if (failures)
		return;
	serve(a, chunks);
	while ((n = lace_op_status(ends[1].net, op)) == LACE_EAGAIN && turns++ < 1000000)
		step();
	expect(n == FILE_SIZE, chunks ? "body in chunks" : "body", n);
	lace_op_close(ends[1].net, op);
	for (uint32_t i = 0; i < sizeof memory; i++)
		wrong += memory[i] != (i < 5 || i >= 5 + FILE_SIZE ? 0xa5 : peer_byte(i - 5));
	expect(wrong == 0, "contents of the body", wrong);
	lace_tcp_close(ends[0].net, a);
	lace_tcp_unlisten(ends[0].net, listener);
	for (unsigned i = 0; i < 200; i++)
		step();
}

int bare_main(void)
{
	for (uint32_t i = 0; i < FILE_SIZE; i++)
		source[1 + i] = peer_byte(i);
	for (unsigned number = 0; number < 2; number++)
		up(&ends[number], number);
	for (unsigned kind = 0; kind < 3 && !failures; kind++)
		exchange(kind);
	lose = 37;
	for (unsigned kind = 0; kind < 3 && !failures; kind++)
		exchange(kind);
	expect(lost > 10, "losses", lost);
	for (int chunks = 0; chunks < 2 && !failures; chunks++)
		http(chunks);
	lose = 0;
	for (int chunks = 0; chunks < 2 && !failures; chunks++)
		http(chunks);
	for (unsigned number = 0; number < 2; number++)
		expect(lace_stack_stop(ends[number].net) == 0, "stop", number);
	if (!failures)
		bare_print("ok\n");
	return failures != 0;
}
