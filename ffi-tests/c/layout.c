/* Layouts that programs already compiled rely on. A struct may grow at its end; what stands here never changes. */
#include <bootlace.h>
#include <stddef.h>

#define AT(type, field, offset32, offset64) \
	_Static_assert(offsetof(struct type, field) == (sizeof(void *) > 4 ? (offset64) : (offset32)), #type "." #field)
#define SIZE(type, size32, size64) \
	_Static_assert(sizeof(struct type) == (sizeof(void *) > 4 ? (size64) : (size32)), #type)

SIZE(lace_ip, 20, 20);
AT(lace_ip, bytes, 4, 4);
SIZE(lace_peer, 28, 32);
AT(lace_peer, ip, 4, 8);
AT(lace_peer, port, 24, 28);
SIZE(lace_frame, 16, 24);
AT(lace_frame, len, 4, 8);
AT(lace_frame, flags, 8, 12);
AT(lace_frame, cookie, 12, 16);
SIZE(lace_span, 12, 16);
AT(lace_span, len, 4, 8);

AT(lace_config, nics, 4, 4);
AT(lace_config, operations, 6, 6);
AT(lace_config, udp_sockets, 8, 8);
AT(lace_config, udp_queue_bytes, 12, 12);
AT(lace_config, mtu, 22, 22);
AT(lace_config, tx_align, 28, 28);

AT(lace_host, clock_bits, 4, 4);
AT(lace_host, ctx, 8, 8);
AT(lace_host, now_us, 12, 16);
AT(lace_host, random, 16, 24);
AT(lace_host, poll, 20, 32);
AT(lace_host, idle, 24, 40);
AT(lace_host, log, 28, 48);
SIZE(lace_host, 32, 56);

AT(lace_nic, caps, 4, 4);
AT(lace_nic, ctx, 8, 8);
AT(lace_nic, send, 12, 16);
AT(lace_nic, recv, 16, 24);
AT(lace_nic, release, 20, 32);
AT(lace_nic, pump, 24, 40);
AT(lace_nic, tx_buffer, 28, 48);
AT(lace_nic, link, 32, 56);
AT(lace_nic, set_rx_filter, 36, 64);
AT(lace_nic, mac, 40, 72);
AT(lace_nic, mtu, 46, 78);
AT(lace_nic, vlan, 48, 80);
AT(lace_nic, tx_align, 50, 82);

AT(lace_datagram, socket, 4, 4);
AT(lace_datagram, nic, 8, 8);
AT(lace_datagram, src_port, 12, 12);
AT(lace_datagram, src, 16, 16);
AT(lace_datagram, dst, 36, 36);
AT(lace_datagram, payload, 56, 56);
AT(lace_datagram, payload_len, 60, 64);
AT(lace_datagram, frame, 68, 72);
AT(lace_packet, packet, 16, 16);
AT(lace_packet, frame, 20, 24);
AT(lace_detail, from, 12, 12);
AT(lace_detail, text, 32, 32);

_Static_assert(sizeof(lace_op) == 4 && sizeof(lace_udp) == 4 && sizeof(lace_hook) == 4 && sizeof(lace_nic_id) == 4, "handles");
_Static_assert(LACE_EAGAIN == -11 && LACE_EBUSY == -16 && LACE_EINVAL == -22 && LACE_ETIMEDOUT == -110, "Linux's numbers");
