/* A small network of one host, made of arithmetic alone: ARP, ping, DHCP and TFTP servers that answer a frame with frames. */
#ifndef PEER_H
#define PEER_H

#include <stddef.h>
#include <stdint.h>

#ifndef PEER_FRAMES
#define PEER_FRAMES 64
#endif
#ifndef PEER_FRAME
#define PEER_FRAME 1514
#endif

struct peer {
	uint32_t file_size;    /* bytes of the file that TFTP serves */
	unsigned mtu;          /* what is longer leaves in fragments, last one first */
	unsigned alignment;    /* of the next frame handed out, modulo 8 */
	unsigned lose;         /* every so many-th frame is lost; 0: none */
	/* Takes UDP to ports other than those of DHCP and TFTP; NULL: nobody. */
	void (*udp)(struct peer *p, unsigned from_port, unsigned to_port, const uint8_t *message, size_t length);
	uint32_t seen, lost, fragments, data_blocks;
	uint8_t client_mac[6];
	uint16_t client_port;
	uint16_t blksize;
	uint16_t window;
	uint16_t ip_id;
	unsigned count;        /* frames that wait */
	unsigned first;
	uint16_t length[PEER_FRAMES];
	uint8_t frames[PEER_FRAMES][PEER_FRAME];
	uint8_t lent[PEER_FRAME + 8];
};

/* Byte `at` of the file. */
uint8_t peer_byte(uint32_t at);

void peer_init(struct peer *p, uint32_t file_size);

/* What the stack sends. */
void peer_take(struct peer *p, const uint8_t *frame, size_t length);

/* The next frame for the stack, at the next alignment; it lives until the next call. NULL: none. */
const uint8_t *peer_next(struct peer *p, size_t *length);

/* Sends `n` bytes at `front`, at most 552, then `file_bytes` of the file from `file_at` on, 0 behind its end, by UDP. */
void peer_answer(struct peer *p, unsigned from_port, unsigned to_port, const uint8_t *front, size_t n, uint32_t file_at, size_t file_bytes);

#endif
