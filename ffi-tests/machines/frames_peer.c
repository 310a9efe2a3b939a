/* The frame suite: ICMP errors and answers for operations, malformed packets, TCP. */
#include "frames.h"

/* Starts an ICMP error of `type` and `code` that quotes the packet sent last: all of it, or `most` bytes. */
static void quote(int tag, const uint8_t *options, size_t n, unsigned type_code, uint32_t rest, size_t most)
{
	size_t length = get16(sent + 16);
	uint8_t *at, *start;

	if (length > most)
		length = most;
	start = at = frame_ip(frame_start(0x0800, tag), ICMP, length + 8, 0, options, n);
	at = put32(put32(at, (uint32_t)type_code << 16), rest);
	for (size_t i = 0; i < length; i++)
		*at++ = sent[14 + i];
	put16(start + 2, ~sum(0, start, length + 8) & 0xffff);
}

/* The end of a frame whose IPv4 header is in place. */
static uint8_t *end_of_ip(void)
{
	return frame_header() + get16(frame_header() + 2);
}

static lace_op tftp(const struct lace_sink *sink)
{
	struct lace_tftp_get get;
	lace_op op;

	lace_tftp_get_init(&get, sizeof get);
	lace_ip_v4(&get.server.ip, their_ip[0], their_ip[1], their_ip[2], their_ip[3]);
	get.path = "boot/odd";
	op = lace_tftp_get_start(net, &get, sink);
	expect(op > 0, "start of TFTP", op);
	frames_tick(0);
	expect(get16(sent + 36) == 69, "request by TFTP", get16(sent + 36));
	return op;
}

void frames_errors(void)
{
	static const uint8_t options[8] = { 1, 7, 7, 4, 0, 0, 0, 0 };
	struct lace_detail detail;
	struct lace_sink sink;
	struct lace_ping ping;
	lace_op op;
	int64_t result;

	lace_sink_discard(&sink, sizeof sink);
	/* With and without a tag and options: the quoted packet lies at every place modulo 4. All of it, or the 28 bytes that RFC 792
	 * asks for, or an odd count. */
	for (unsigned kind = 0; kind < 12; kind++) {
		int tag = kind & 1 ? 0 : -1;
		size_t n = kind & 2 ? 8 : 0, most = kind / 4 == 0 ? 28 : kind / 4 == 1 ? 29 : 500;

		frames_rest();
		op = tftp(&sink);
		/* About another port of ours: not about the operation. */
		quote(tag, options, n, 0x0303, 0, most);
		{
			uint8_t *icmp = frame_header() + 20 + n;
			size_t length = get16(frame_header() + 2) - 20 - n;

			put16(icmp + 8 + 20, get16(icmp + 8 + 20) ^ 1);
			put16(icmp + 2, 0);
			put16(icmp + 2, ~sum(0, icmp, length) & 0xffff);
			frame_give(end_of_ip());
			result = lace_op_status(net, op);
			expect(result == LACE_EAGAIN, "an error about another port", result);
			/* Its own checksum is wrong. */
			quote(tag, options, n, 0x0303, 0, most);
			icmp[9] ^= 1;
			frame_dropped(end_of_ip(), "drop_icmp_checksum");
			result = lace_op_status(net, op);
			expect(result == LACE_EAGAIN, "an error that is damaged", result);
		}
		/* Too short to name a port. */
		quote(tag, options, n, 0x0303, 0, 21);
		frame_give(end_of_ip());
		result = lace_op_status(net, op);
		expect(result == LACE_EAGAIN, "an error that quotes too little", result);
		/* The right one. */
		quote(tag, options, n, 0x0303, 0, most);
		frame_give(end_of_ip());
		result = lace_op_status(net, op);
		expect(result == LACE_ECONNREFUSED, "an error reaches the operation", result);
		lace_detail_init(&detail, sizeof detail);
		lace_op_detail(net, op, &detail);
		expect(detail.kind == LACE_DETAIL_ICMP && detail.code == 0x0303, "detail of an ICMP error", detail.code);
		expect(get32(detail.from.bytes) == get32(their_ip), "sender of an ICMP error", detail.from.bytes[3]);
		lace_op_close(net, op);
	}

	/* A ping: its answer, at every length of four. */
	for (uint16_t length = 56; length < 60; length++) {
		uint8_t *at, *start;
		size_t total;

		frames_rest();
		lace_ping_init(&ping, sizeof ping);
		lace_ip_v4(&ping.peer.ip, their_ip[0], their_ip[1], their_ip[2], their_ip[3]);
		ping.count = 1;
		ping.payload = length;
		op = lace_ping_start(net, &ping);
		frames_tick(0);
		expect(sent[23] == ICMP && sent[34] == 8, "a ping leaves", sent[34]);
		total = get16(sent + 16) - 20u;
		start = at = frame_ip(frame_start(0x0800, -1), ICMP, total, 0, NULL, 0);
		for (size_t i = 0; i < total; i++)
			*at++ = sent[34 + i];
		start[0] = 0;
		put16(start + 2, 0);
		put16(start + 2, ~sum(0, start, total) & 0xffff);
		frame_give(at);
		result = lace_op_status(net, op);
		expect(result == 1, "ping", result);
		lace_op_close(net, op);
	}
}

static uint8_t *good(size_t length)
{
	return frame_udp(frame_ip(frame_start(0x0800, -1), UDP, length + 8, 0, NULL, 0), frames_port, length, 4);
}

void frames_malformed(void)
{
	unsigned delivered;
	uint8_t *end;

	/* Cut short at every byte. */
	for (size_t length = 1; length < 14; length++) {
		good(33);
		frame_dropped_raw(length, "drop_short");
	}
	for (size_t length = 14; length < 75; length++) {
		good(33);
		frame_dropped_raw(length, "drop_ip_malformed");
	}
	delivered = frames_delivered;
	good(33);
	frame_give_raw(75);
	expect(frames_delivered == delivered + 1, "a whole one without padding", frames_delivered);

	end = good(33);
	frame_header()[0] = 0x55;
	frame_ip_sum();
	frame_dropped(end, "drop_ip_malformed");
	end = good(33);
	frame_header()[0] = 0x44;
	frame_ip_sum();
	frame_dropped(end, "drop_ip_malformed");
	end = good(33);
	frame_header()[0] = 0x4f; /* a header of 60 bytes, of what were ports and payload */
	frame_header()[20] = 7;   /* an option longer than the header */
	frame_header()[21] = 200;
	frame_ip_sum();
	delivered = frames_delivered;
	frame_give(end);
	expect(frames_delivered == delivered && sent_count <= 1, "options beyond the header", frames_delivered);
	end = good(33);
	frame_header()[10] ^= 1;
	frame_dropped(end, "drop_ip_checksum");
	end = good(33);
	put16(frame_header() + 24, 7);
	frame_dropped(end, "drop_udp_malformed");
	end = good(33);
	put16(frame_header() + 24, 42);
	frame_dropped(end, "drop_udp_malformed");
	end = good(33);
	frame_header()[19] = 77;
	frame_ip_sum();
	frame_dropped(end, "drop_ip_not_ours");
	end = frame_ip(frame_start(0x0800, -1), ICMP, 5, 0, NULL, 0) + 5;
	for (unsigned i = 1; i < 6; i++)
		end[-(int)i] = 0;
	put16(end - 3, 0xffff);
	frame_dropped(end, "drop_icmp_malformed");
	end = frame_ip(frame_start(0x0800, -1), UDP, 5, 0, NULL, 0) + 5;
	frame_dropped(end, "drop_udp_malformed");
	end = frame_start(0x88cc, -1) + 46;
	frame_dropped(end, "drop_ethertype");
	end = frame_start(0x0020, -1) + 46;
	frame_dropped(end, "drop_llc");
}

#ifdef SMALL_BOARD
void frames_tcp(void)
{
	/* No room for connections: their arithmetic is the one of the other machines. */
}
#else

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };

static struct {
	uint32_t seq, ack; /* the next of theirs; what they have of ours */
	unsigned port;
	int stamps;
	uint32_t clock;
	uint32_t echo; /* of our last timestamp */
} them;

static uint8_t *segment_to(unsigned port, unsigned flags, uint32_t seq, const uint8_t *options, size_t n, size_t length, unsigned seed)
{
	uint8_t *start, *at;

	start = at = frame_ip(frame_start(0x0800, -1), TCP, 20 + n + length, 0, NULL, 0);
	at = put32(put32(put16(put16(at, them.port), port), seq), flags & ACK ? them.ack : 0);
	at = put32(put32(at, (uint32_t)(5 + n / 4) << 28 | flags << 16 | 65000), 0);
	for (size_t i = 0; i < n; i++)
		*at++ = options[i];
	for (size_t i = 0; i < length; i++)
		*at++ = pattern(seed, i);
	put16(start + 16, ~sum(frame_pseudo(TCP, 20 + n + length), start, 20 + n + length) & 0xffff);
	return at;
}

static uint8_t *segment(unsigned flags, uint32_t seq, size_t length, unsigned seed)
{
	uint8_t options[12];

	if (!them.stamps)
		return segment_to(7, flags, seq, NULL, 0, length, seed);
	put32(put32(put32(options, 0x0101080a), ++them.clock), them.echo);
	return segment_to(7, flags, seq, options, 12, length, seed);
}

/* What came of ours is acknowledged with the next segment of theirs. */
static size_t take_ours(void)
{
	const uint8_t *tcp = sent + 34;
	size_t head = (tcp[12] >> 4) * 4u, length = get16(sent + 16) - 20u - head;

	if (!sent_count || sent[23] != TCP)
		return 0;
	if (them.stamps && head >= 32 && get32(tcp + 20) == 0x0101080a)
		them.echo = get32(tcp + 24);
	if (get32(tcp + 4) == them.ack)
		them.ack += (uint32_t)length + !!(tcp[13] & FIN);
	return length;
}

/* `length` bytes there and back. */
static void to_and_fro(lace_tcp tcp, size_t length, unsigned seed)
{
	static uint8_t buffer[1500];
	int64_t n;
	unsigned wrong = 0;

	frame_give(segment(ACK | PSH, them.seq, length, seed));
	them.seq += (uint32_t)length;
	take_ours();
	n = lace_tcp_recv(net, tcp, buffer + seed % 8, sizeof buffer - 8);
	expect(n == (int64_t)length, "received by TCP", n);
	for (size_t i = 0; i < length; i++)
		wrong += buffer[seed % 8 + i] != pattern(seed, i);
	expect(wrong == 0, "contents by TCP", wrong);
	sent_count = 0;
	n = lace_tcp_send(net, tcp, buffer + seed % 8, length);
	expect(n == (int64_t)length, "given to TCP", n);
	frames_tick(0);
	n = (int64_t)take_ours();
	expect(n == (int64_t)length, "sent by TCP", n);
	for (size_t i = 0; i < length; i++)
		wrong += sent[34 + (sent[46] >> 4) * 4u + i] != pattern(seed, i);
	expect(wrong == 0, "contents of what TCP sent", wrong);
}

void frames_tcp(void)
{
	static const uint8_t offers[] = { 2, 4, 5, 0xb4, 1, 3, 3, 2, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0 };
	/* Whole segments: 1460 bytes less the timestamp, and what a peer that says nothing takes (RFC 9293 section 3.7.1). */
	static const uint16_t longer[2][6] = { { 101, 255, 256, 1000, 1447, 1448 }, { 101, 255, 256, 500, 535, 536 } };
	struct lace_tcp_options options;
	lace_listener listener;
	lace_tcp tcp;
	uint32_t held;
	size_t head;
	uint8_t *end;
	uint8_t small[16];
	int64_t n;

	lace_tcp_init(&options, sizeof options);
	options.no_delay = 1;
	listener = lace_tcp_listen(net, NULL, 7, 2, &options);
	expect(listener > 0, "listener", listener);
	/* To a port where nobody listens. */
	them.port = 3000;
	frames_rest();
	frame_give(segment_to(8, SYN, 100, offers, 4, 0, 0));
	expect(sent_count == 1 && sent[47] == (RST | ACK) && get32(sent + 42) == 101, "reset", sent[47]);
	for (int kind = 0; kind < 2; kind++) { /* all options, and none */
		them.port = 3001u + (unsigned)kind;
		them.stamps = 0;
		them.seq = 0xffffff00u; /* which wraps soon */
		them.clock = 1;
		frame_give(segment_to(7, SYN, them.seq++, offers, kind ? 0 : sizeof offers, 0, 0));
		expect(sent_count == 1 && sent[47] == (SYN | ACK), "SYN and ACK", sent[47]);
		expect(get32(sent + 42) == them.seq, "acknowledgement of the SYN", (int64_t)get32(sent + 42));
		them.ack = get32(sent + 38) + 1;
		them.stamps = !kind;
		for (const uint8_t *at = sent + 54; !kind && at < sent + 34 + (sent[46] >> 4) * 4u;) /* our timestamp */
			if (*at == 8) {
				them.echo = get32(at + 2);
				break;
			} else {
				at += *at == 1 ? 1 : at[1];
			}
		frame_give(segment(ACK, them.seq, 0, 0));
		tcp = lace_tcp_accept(net, listener);
		expect(tcp > 0, "accepted", tcp);
		for (size_t length = 1; length < 40; length++)
			to_and_fro(tcp, length, (unsigned)length);
		for (unsigned i = 0; i < 6; i++)
			to_and_fro(tcp, longer[kind][i], i);
		/* Out of order: told by SACK, then delivered in order. */
		held = counter("tcp_out_of_order");
		frame_give(segment(ACK, them.seq + 5, 8, 1));
		expect(counter("tcp_out_of_order") == held + 1, "kept", 1);
		expect(sent_count == 1 && get32(sent + 42) == them.seq, "a gap is told", sent_count);
		if (!kind)
			expect((sent[46] >> 4) == 11 && get32(sent + 70) == them.seq + 5, "SACK", sent[46] >> 4);
		frame_give(segment(ACK, them.seq, 5, 2));
		them.seq += 13;
		take_ours();
		n = lace_tcp_recv(net, tcp, small, sizeof small);
		expect(n == 13 && small[4] == pattern(2, 4) && small[5] == pattern(1, 0) && small[12] == pattern(1, 7), "order", n);
		/* Damaged; a header too short; an option that runs out of the header, which is no reason to drop. */
		end = segment(ACK, them.seq, 7, 3);
		end[-1] ^= 2;
		frame_dropped(end, "drop_tcp_checksum");
		end = segment(ACK, them.seq, 0, 3);
		frame_header()[32] = 0x40;
		put16(frame_header() + 36, 0);
		head = (size_t)(end - frame_header()) - 20;
		put16(frame_header() + 36, ~sum(frame_pseudo(TCP, head), frame_header() + 20, head) & 0xffff);
		frame_dropped(end, "drop_tcp_malformed");
		to_and_fro(tcp, 9, 9);
		/* They finish, we finish. */
		frame_give(segment(ACK | FIN, them.seq++, 0, 0));
		n = lace_tcp_recv(net, tcp, small, sizeof small);
		expect(n == 0, "the end of the stream", n);
		sent_count = 0;
		n = lace_tcp_close(net, tcp);
		expect(n == 0, "close", n);
		frames_tick(0);
		take_ours();
		expect(sent[47] & FIN, "FIN", sent[47]);
		frame_give(segment(ACK, them.seq, 0, 0));
	}
	expect(lace_tcp_unlisten(net, listener) == 0, "unlisten", 0);
}
#endif
