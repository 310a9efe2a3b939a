/* The frame suite: ARP, ICMP echo, UDP, 802.1Q, IP options, fragments. */
#include "frames.h"

static uint8_t *arp(unsigned operation, const uint8_t *sender, const uint8_t *target)
{
	uint8_t *at = frame_start(0x0806, -1);

	at = put16(put16(put16(put16(at, 1), 0x0800), 0x0604), operation);
	for (unsigned i = 0; i < 6; i++)
		*at++ = their_mac[i];
	for (unsigned i = 0; i < 4; i++)
		*at++ = sender[i];
	for (unsigned i = 0; i < 6; i++)
		*at++ = 0;
	for (unsigned i = 0; i < 4; i++)
		*at++ = target[i];
	return at;
}

void frames_arp(void)
{
	static const uint8_t third[4] = { 10, 0, 2, 99 };
	uint8_t *end;

	/* Nobody asks for us: nothing is said. */
	frame_give(arp(1, their_ip, third));
	expect(sent_count == 0, "answer for another", sent_count);
	/* An answer nobody asked for. */
	frame_dropped(arp(2, third, our_ip), "drop_arp_ignored");
	/* Ethernet addresses of 5 bytes; an operation that is none; a piece of a packet. */
	end = arp(1, their_ip, our_ip);
	end[-24] = 5;
	frame_dropped(end, "drop_arp_malformed");
	frame_dropped(arp(9, their_ip, our_ip), "drop_arp_malformed");
	end = arp(1, their_ip, our_ip);
	frame_dropped_raw(14 + 27, "drop_arp_malformed");

	frame_give(arp(1, their_ip, our_ip));
	expect(sent_count == 1 && get16(sent + 12) == 0x0806 && get16(sent + 20) == 2, "answer by ARP", sent_count);
	for (unsigned i = 0; i < 6; i++)
		expect(sent[22 + i] == our_mac[i] && sent[32 + i] == their_mac[i], "addresses by ARP", i);
	expect(get32(sent + 28) == get32(our_ip) && get32(sent + 38) == get32(their_ip), "IP addresses by ARP", sent[31]);
}

/* A second passes, for answers are limited; they are heard of again, so that their address is not asked for. */
void frames_rest(void)
{
	frames_tick(1000000);
	frame_give(arp(1, their_ip, our_ip));
}

/* An echo request of `length` bytes of data, in a frame that was started. */
static uint8_t *echo(uint8_t *at, size_t length)
{
	put32(put32(at, 0x08000000), 0x12340001);
	for (size_t i = 0; i < length; i++)
		at[8 + i] = pattern(3, i);
	put16(at + 2, ~sum(0, at, length + 8) & 0xffff);
	return at + 8 + length;
}

static void answered(size_t length)
{
	unsigned wrong = 0;

	expect(sent_count == 1 && sent[23] == ICMP && get16(sent + 34) == 0, "answer to an echo", (int64_t)length);
	expect(get16(sent + 16) == length + 28, "length of an answer", get16(sent + 16));
	expect(get32(sent + 38) == 0x12340001, "identifier of an answer", (int64_t)get32(sent + 38));
	for (size_t i = 0; i < length; i++)
		wrong += sent[42 + i] != pattern(3, i);
	expect(wrong == 0, "contents of an answer", wrong);
}

void frames_echo(void)
{
	static const uint16_t longer[] = { 255, 256, 257, 511, 515, MOST_UDP - 3, MOST_UDP - 2, MOST_UDP - 1, MOST_UDP };
	uint8_t *end;

	for (size_t length = 0; length < 70; length++) {
		frames_rest();
		frame_give(echo(frame_ip(frame_start(0x0800, -1), ICMP, length + 8, 0, NULL, 0), length));
		answered(length);
	}
	for (unsigned i = 0; i < sizeof longer / sizeof *longer; i++) {
		frames_rest();
		frame_give(echo(frame_ip(frame_start(0x0800, -1), ICMP, longer[i] + 8u, 0, NULL, 0), longer[i]));
		answered(longer[i]);
	}
	end = echo(frame_ip(frame_start(0x0800, -1), ICMP, 41, 0, NULL, 0), 33);
	end[-1] ^= 1;
	frame_dropped(end, "drop_icmp_checksum");
}

/* Gives a datagram and expects it at the handler, and its echo. */
static void through(uint8_t *end, size_t length, unsigned seed)
{
	unsigned wrong = 0, delivered = frames_delivered;

	frame_give(end);
	expect(frames_delivered == delivered + 1, "delivered", (int64_t)length);
	expect(sent_count == 1 && get16(sent + 38) == length + 8, "echo by UDP", (int64_t)length);
	for (size_t i = 0; i < length; i++)
		wrong += sent[42 + i] != pattern(seed, i);
	expect(wrong == 0, "contents by UDP", wrong);
}

static uint8_t *whole(int tag, const uint8_t *options, size_t n, size_t length, unsigned seed)
{
	return frame_udp(frame_ip(frame_start(0x0800, tag), UDP, length + 8, 0, options, n), frames_port, length, seed);
}

void frames_udp(void)
{
	static const uint16_t longer[] = { 127, 129, 511, 513, MOST_UDP - 7, MOST_UDP - 3, MOST_UDP - 2, MOST_UDP - 1, MOST_UDP };
	uint8_t *end;

	for (size_t length = 0; length < 70; length++)
		through(whole(-1, NULL, 0, length, (unsigned)length), length, (unsigned)length);
	for (unsigned i = 0; i < sizeof longer / sizeof *longer; i++)
		through(whole(-1, NULL, 0, longer[i], i), longer[i], i);
	/* No checksum; a wrong one in the last byte of an odd length. */
	end = whole(-1, NULL, 0, 21, 5);
	put16(frame_header() + 26, 0);
	through(end, 21, 5);
	end = whole(-1, NULL, 0, 21, 5);
	end[-1] ^= 0x80;
	frame_dropped(end, "drop_udp_checksum");
	/* Another port: said so by ICMP, which quotes the datagram. */
	frames_rest();
	frame_dropped(frame_udp(frame_ip(frame_start(0x0800, -1), UDP, 29, 0, NULL, 0), frames_port ^ 1, 21, 5), "drop_udp_no_socket");
	expect(sent_count == 1 && get16(sent + 34) == 0x0303, "port unreachable", sent_count);
	expect(get16(sent + 62) == 4000, "the quoted port", get16(sent + 62));
}

void frames_vlan(void)
{
	for (size_t length = 0; length < 20; length++) { /* priority tags: VLAN 0 */
		through(whole(0xe000, NULL, 0, length, 9), length, 9);
		frames_rest();
		frame_give(echo(frame_ip(frame_start(0x0800, 0), ICMP, length + 8, 0, NULL, 0), length));
		answered(length);
	}
	frame_dropped(whole(7, NULL, 0, 33, 1), "drop_vlan");
	through(whole(0, NULL, 0, MOST_UDP - 4, 9), MOST_UDP - 4, 9);
}

void frames_options(void)
{
	uint8_t options[40];

	for (size_t n = 0; n <= 40; n += 4)
		for (size_t length = 0; length < 8; length++) {
			for (size_t i = 0; i < n; i++)
				options[i] = 1; /* no operation */
			if (n >= 8) { /* record route: room for one address, at an odd place */
				options[0] = 1;
				options[1] = 7;
				options[2] = 7;
				options[3] = 4;
				put32(options + 4, 0);
			}
			through(whole(-1, options, n, length, 2), length, 2);
			frames_rest();
			frame_give(echo(frame_ip(frame_start(0x0800, -1), ICMP, length + 8, 0, options, n), length));
			answered(length);
			if (n >= 8) { /* a loose source route */
				options[1] = 0x83;
				frame_dropped(whole(-1, options, n, length, 2), "drop_ip_options");
			}
		}
}

/* Piece `i` of a datagram of `length` bytes whose pieces begin at `cut[i]`, behind `n` bytes of options. */
static uint8_t scratch[160];

static uint8_t *piece(unsigned protocol, const uint16_t *cut, unsigned i, unsigned pieces, size_t length, const uint8_t *options, size_t n)
{
	size_t from = cut[i], to = i + 1 < pieces ? cut[i + 1] : length;
	unsigned more = i + 1 < pieces ? 0x2000 : 0;
	uint8_t *at = frame_ip(frame_start(0x0800, -1), protocol, to - from, more | (unsigned)from / 8, options, n);

	for (size_t k = from; k < to; k++)
		*at++ = scratch[k];
	return at;
}

void frames_fragments(void)
{
	static const uint16_t cut[] = { 0, 8, 32, 40 };
	static const uint8_t none[4] = { 1, 1, 1, 1 };
	size_t length = 8 + 53;
	unsigned delivered, order;

	for (order = 0; order < 24; order++) {
		unsigned left = 15, code = order, first = 1, id = ++frame_id;

		frames_rest();
		frame_udp(scratch, frames_port, length - 8, order);
		delivered = frames_delivered;
		for (unsigned size = 4; size; size--) { /* the permutation number `order` */
			unsigned skip = code % size, i = 0;

			code /= size;
			for (;; i++)
				if (left >> i & 1 && !skip--)
					break;
			left &= ~(1u << i);
			frame_id = id;
			if (first && order % 3 == 0) { /* the same piece twice */
				frame_give(piece(UDP, cut, i, 4, length, none, 0));
				frame_dropped(piece(UDP, cut, i, 4, length, none, 0), "drop_fragment_duplicate");
			} else {
				frame_give(piece(UDP, cut, i, 4, length, none, i & 1 ? 4 : 0));
			}
			first = 0;
			expect(frames_delivered == delivered + !left, "reassembled too early or late", order);
		}
		expect(sent_count == 1 && get16(sent + 38) == length, "echo of what was reassembled", order);
		for (size_t i = 0; i < length - 8; i++)
			if (sent[42 + i] != pattern(order, i)) {
				expect(0, "contents of what was reassembled", order);
				break;
			}
	}
	/* An echo request in pieces, last one first. */
	frames_rest();
	echo(scratch, 53);
	frame_id++;
	for (unsigned i = 4; i--;)
		frame_give(piece(ICMP, cut, i, 4, length, none, 0));
	answered(53);
	/* A wrong byte in a piece; pieces that overlap; a piece that is not a multiple of 8 long. */
	frame_udp(scratch, frames_port, length - 8, 1);
	scratch[length - 1] ^= 4;
	frame_id++;
	for (unsigned i = 0; i < 3; i++)
		frame_give(piece(UDP, cut, i, 4, length, none, 0));
	frame_dropped(piece(UDP, cut, 3, 4, length, none, 0), "drop_udp_checksum");
	frame_id++;
	frame_give(piece(UDP, cut, 1, 4, length, none, 0));
	{
		static const uint16_t other[] = { 0, 16, 40, 48 };

		frame_dropped(piece(UDP, other, 1, 4, length, none, 0), "drop_fragment_overlap");
	}
	frames_tick(31000000);
	frame_id++;
	{
		static const uint16_t other[] = { 0, 13 };

		frame_dropped(piece(UDP, other, 0, 2, length, none, 0), "drop_fragment_malformed");
	}
	frames_tick(31000000);
	frames_rest();
}
