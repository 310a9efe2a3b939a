#include "peer.h"
#include "bytes.h"

static const uint8_t peer_mac[6] = { 0x52, 0x54, 0, 0x12, 0x34, 2 };
static const uint8_t peer_ip[4] = { 10, 0, 2, 2 };
static const uint8_t client_ip[4] = { 10, 0, 2, 15 };
static const uint8_t anyone[4] = { 255, 255, 255, 255 };

static int same(const void *a, const void *b, size_t n)
{
	const uint8_t *x = a;
	const uint8_t *y = b;

	while (n--)
		if (*x++ != *y++)
			return 0;
	return 1;
}

static uint32_t sum(uint32_t start, const uint8_t *at, size_t n)
{
	for (; n > 1; n -= 2, at += 2)
		start += get16(at);
	if (n)
		start += (unsigned)at[0] << 8;
	while (start >> 16)
		start = (start & 0xffff) + (start >> 16);
	return start;
}

uint8_t peer_byte(uint32_t at)
{
	uint32_t x = at * 2654435761u;

	return (uint8_t)(x >> 24 ^ x >> 13 ^ at);
}

void peer_init(struct peer *p, uint32_t file_size)
{
	uint8_t *at = (uint8_t *)p;

	for (size_t i = 0; i < sizeof *p; i++)
		at[i] = 0;
	p->file_size = file_size;
	p->mtu = 1500;
	p->ip_id = 77;
}

/* A place at the end of the queue; what does not fit is lost, as in a ring. */
static uint8_t *slot(struct peer *p, size_t length)
{
	unsigned at = (p->first + p->count) % PEER_FRAMES;

	if (p->count == PEER_FRAMES || length > PEER_FRAME) {
		p->lost++;
		return NULL;
	}
	p->count++;
	p->length[at] = (uint16_t)(length < 60 ? 60 : length);
	for (size_t i = 0; i < 60; i++)
		p->frames[at][i] = 0;
	return p->frames[at];
}

static uint8_t *ethernet(struct peer *p, uint8_t *at, unsigned type)
{
	at = put(at, p->client_mac, 6);
	at = put(at, peer_mac, 6);
	return put16(at, type);
}

static void ip_header(struct peer *p, uint8_t *ip, const uint8_t *to, unsigned protocol, size_t payload, unsigned fragment)
{
	ip[0] = 0x45;
	ip[1] = 0;
	put16(ip + 2, (unsigned)payload + 20);
	put16(ip + 4, p->ip_id);
	put16(ip + 6, fragment);
	ip[8] = 64;
	ip[9] = (uint8_t)protocol;
	put16(ip + 10, 0);
	put(ip + 12, peer_ip, 4);
	put(ip + 16, to, 4);
	put16(ip + 10, ~sum(0, ip, 20) & 0xffff);
}

/*
 * Sends a datagram whose bytes are told by `byte(p, ctx, offset)`. A datagram larger than the MTU leaves in fragments, the
 * last one first.
 */
typedef uint8_t byte_fn(const struct peer *p, uint32_t ctx, uint32_t offset);

static void send_ip(struct peer *p, const uint8_t *to, unsigned protocol, size_t length, byte_fn *byte, uint32_t ctx)
{
	size_t most = (p->mtu - 20) & ~7u;
	size_t pieces = length <= p->mtu - 20 ? 1 : (length + most - 1) / most;

	p->ip_id++;
	for (size_t i = pieces; i--;) {
		size_t from = i * most;
		size_t n = pieces == 1 ? length : length - from < most ? length - from : most;
		uint8_t *frame = slot(p, 34 + n);
		uint8_t *at;

		p->fragments += pieces > 1;
		if (!frame)
			continue;
		at = ethernet(p, frame, 0x0800);
		ip_header(p, at, to, protocol, n, (unsigned)(from / 8) | (i + 1 < pieces ? 0x2000 : 0));
		at += 20;
		for (size_t k = 0; k < n; k++)
			at[k] = byte(p, ctx, (uint32_t)(from + k));
	}
}

/* UDP: header and payload are put together in a byte function over a small prefix and the file. */
struct udp_out {
	uint8_t prefix[560]; /* UDP header, and the payload's front */
	uint32_t prefix_length;
	uint32_t file_at;
};

static struct udp_out out;

static uint8_t udp_byte(const struct peer *p, uint32_t ctx, uint32_t offset)
{
	uint32_t at = out.file_at + (offset - out.prefix_length);

	(void)ctx;
	return offset < out.prefix_length ? out.prefix[offset] : at < p->file_size ? peer_byte(at) : 0;
}

static void send_udp(struct peer *p, const uint8_t *to, unsigned from_port, unsigned to_port, size_t front, size_t file_bytes)
{
	size_t length = 8 + front + file_bytes;
	uint8_t pair[2];
	uint32_t s;

	out.prefix_length = (uint32_t)(8 + front);
	put16(put16(put16(put16(out.prefix, from_port), to_port), (unsigned)length), 0);
	s = sum(17 + (uint32_t)length, peer_ip, 4);
	s = sum(s, to, 4);
	for (uint32_t i = 0; i < length; i += 2) {
		pair[0] = udp_byte(p, 0, i);
		pair[1] = i + 1 < length ? udp_byte(p, 0, i + 1) : 0;
		s = sum(s, pair, 2);
	}
	put16(out.prefix + 6, s == 0xffff ? 0xffff : ~s & 0xffff);
	send_ip(p, to, 17, length, udp_byte, 0);
}

void peer_answer(struct peer *p, unsigned from_port, unsigned to_port, const uint8_t *front, size_t n, uint32_t file_at, size_t file_bytes)
{
	put(out.prefix + 8, front, n);
	out.file_at = file_at;
	send_udp(p, client_ip, from_port, to_port, n, file_bytes);
}

static void arp(struct peer *p, const uint8_t *packet, size_t length)
{
	uint8_t *at;

	if (length < 28 || get16(packet + 6) != 1 || !same(packet + 24, peer_ip, 4) || !(at = slot(p, 42)))
		return;
	at = ethernet(p, at, 0x0806);
	at = put16(put16(at, 1), 0x0800);
	*at++ = 6;
	*at++ = 4;
	at = put16(at, 2);
	at = put(put(at, peer_mac, 6), peer_ip, 4);
	put(put(at, packet + 8, 6), packet + 14, 4);
}

static void dhcp(struct peer *p, const uint8_t *message, size_t length)
{
	static const uint8_t tail[] = { 54, 4, 10, 0, 2, 2, 51, 4, 0, 1, 0x51, 0x80, 1, 4, 255, 255, 255, 0, 3, 4, 10, 0, 2, 2, 255 };
	const uint8_t *option = message + 240;
	uint8_t *payload = out.prefix + 8;
	unsigned kind = 0;

	if (length < 240)
		return;
	while (option + 1 < message + length && *option != 255) {
		if (*option == 0) {
			option++;
			continue;
		}
		if (*option == 53)
			kind = option[2];
		option += 2 + option[1];
	}
	if (kind != 1 && kind != 3)
		return;
	for (unsigned i = 0; i < 300; i++)
		payload[i] = 0;
	put(payload, message, 44);
	payload[0] = 2;
	put(payload + 16, client_ip, 4);
	put(payload + 20, peer_ip, 4);
	put(payload + 108, "kernel", 6);
	put(payload + 236, "\x63\x82\x53\x63\x35\x01", 6);
	payload[242] = kind == 1 ? 2 : 5;
	put(payload + 243, tail, sizeof tail);
	send_udp(p, anyone, 67, 68, 300, 0);
}

static void data(struct peer *p, uint32_t block)
{
	uint32_t at = (block - 1) * p->blksize;
	uint32_t n;

	if (at > p->file_size)
		return;
	n = p->file_size - at < p->blksize ? p->file_size - at : p->blksize;
	put16(put16(out.prefix + 8, 3), block & 0xffff);
	out.file_at = at;
	p->data_blocks++;
	send_udp(p, client_ip, 4000, p->client_port, 4, n);
}

static const uint8_t *text_end(const uint8_t *at, const uint8_t *end)
{
	while (at < end && *at)
		at++;
	return at < end ? at + 1 : end;
}

static void tftp(struct peer *p, unsigned port, unsigned to_port, const uint8_t *message, size_t length)
{
	const uint8_t *end = message + length;
	const uint8_t *option;
	uint8_t *at = out.prefix + 8;
	uint8_t *start = at;

	if (length >= 4 && to_port == 4000 && get16(message) == 4) {
		for (unsigned i = 1; i <= p->window; i++)
			data(p, get16(message + 2) + i);
		return;
	}
	if (length < 4 || to_port != 69 || get16(message) != 1)
		return;
	p->client_port = (uint16_t)port;
	p->blksize = 512;
	p->window = 1;
	at = put16(at, 6);
	option = text_end(text_end(message + 2, end), end); /* name, mode */
	while (option < end) {
		const uint8_t *value = text_end(option, end);
		uint32_t number = 0;

		for (const uint8_t *digit = value; digit < end && *digit; digit++)
			number = number * 10 + (*digit - '0');
		if (same(option, "blksize", 8)) {
			p->blksize = (uint16_t)number;
			at = decimal(put(at, "blksize", 8), number);
		} else if (same(option, "tsize", 6)) {
			at = decimal(put(at, "tsize", 6), p->file_size);
		} else if (same(option, "windowsize", 11)) {
			p->window = (uint16_t)(number < 4 ? number : 4);
			at = decimal(put(at, "windowsize", 11), p->window);
		}
		option = text_end(value, end);
	}
	if (at == start + 2)
		data(p, 1);
	else
		send_udp(p, client_ip, 4000, port, (size_t)(at - start), 0);
}

static const uint8_t *echo_from;

static uint8_t echo_byte(const struct peer *p, uint32_t ctx, uint32_t offset)
{
	(void)p;
	return offset == 0 ? 0 : offset == 2 ? (uint8_t)(ctx >> 8) : offset == 3 ? (uint8_t)ctx : echo_from[offset];
}

static void ipv4(struct peer *p, const uint8_t *ip, size_t length)
{
	size_t head, total;
	const uint8_t *l4;

	if (length < 20 || sum(0, ip, 20) != 0xffff)
		return;
	head = (ip[0] & 15) * 4u;
	total = get16(ip + 2);
	if (total > length || head > total)
		return;
	l4 = ip + head;
	total -= head;
	if (ip[9] == 17 && total >= 8 && total == get16(l4 + 4)) {
		uint32_t s = sum(sum(17 + (uint32_t)total, ip + 12, 8), l4, total);

		if (get16(l4 + 6) && s != 0xffff)
			return;
		if (get16(l4 + 2) == 67)
			dhcp(p, l4 + 8, total - 8);
		else if (p->udp && get16(l4 + 2) != 69 && get16(l4 + 2) != 4000)
			p->udp(p, get16(l4), get16(l4 + 2), l4 + 8, total - 8);
		else
			tftp(p, get16(l4), get16(l4 + 2), l4 + 8, total - 8);
	} else if (ip[9] == 1 && total >= 8 && l4[0] == 8 && sum(0, l4, total) == 0xffff) {
		uint32_t s = get16(l4 + 2) + 0x0800; /* RFC 1624: the type turns from 8 to 0 */

		echo_from = l4;
		send_ip(p, client_ip, 1, total, echo_byte, (s & 0xffff) + (s >> 16));
	}
}

void peer_take(struct peer *p, const uint8_t *frame, size_t length)
{
	if (length < 60)
		return;
	p->seen++;
	if (p->lose && p->seen % p->lose == 0) {
		p->lost++;
		return;
	}
	put(p->client_mac, frame + 6, 6);
	if (get16(frame + 12) == 0x0806)
		arp(p, frame + 14, length - 14);
	else if (get16(frame + 12) == 0x0800)
		ipv4(p, frame + 14, length - 14);
}

const uint8_t *peer_next(struct peer *p, size_t *length)
{
	uint8_t *at = p->lent;

	if (!p->count)
		return NULL;
	while (((uintptr_t)at & 7) != (p->alignment & 7))
		at++;
	p->alignment++;
	*length = p->length[p->first];
	put(at, p->frames[p->first], *length);
	p->first = (p->first + 1) % PEER_FRAMES;
	p->count--;
	return at;
}
