/*
 * Bootlace: a network stack for code that runs before, or without, an operating system.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Made from src/ffi by `make header`: change it there.
 */
#ifndef BOOTLACE_H
#define BOOTLACE_H

#include "bootlace_port.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------------------
 * Overview
 *
 * Give the library a block of memory, a clock and a network card; it gives back files:
 *
 *     static uint8_t arena[LACE_STACK_SIZE_TFTP] LACE_ALIGNED;
 *     struct lace_config cfg;
 *     struct lace_host host;
 *     struct lace_nic nic;
 *     lace_stack *net;
 *
 *     lace_config_init(&cfg, sizeof cfg);
 *     lace_host_init(&host, sizeof host);
 *     host.now_us = board_now_us;
 *     host.random = board_random;
 *     host.poll = board_poll;
 *     rc = lace_stack_init(arena, sizeof arena, &cfg, &host, &net);
 *
 *     lace_nic_init(&nic, sizeof nic);
 *     nic.ctx = mac;
 *     nic.send = mac_send;
 *     nic.recv = mac_recv;
 *     nic.release = mac_release;
 *     memcpy(nic.mac, mac->addr, 6);
 *     eth0 = lace_nic_add(net, &nic);
 *
 * Words with a fixed meaning, said of every pointer that crosses this interface:
 *
 *   borrowed for the call   the callee uses it until it returns, and keeps nothing of it
 *   lent until release      whoever got it uses it until it calls the function that gives it back
 *   owned                   whoever got it has it until it is said otherwise
 *
 * Rules that hold everywhere:
 *
 *   - A struct that begins with `size` is set up by its `lace_..._init(&x, sizeof x)` before anything else; a field that
 *     is then left alone has its default. Structs grow only at their end. A descriptor is copied by the call that it is given
 *     to; strings, memory and contexts that it names must live until the operation that was started ends, unless
 *     its text says otherwise.
 *   - A handle is a positive number. One that is stale, or names something of another kind, is LACE_EBADF.
 *   - NULL where a pointer is needed is LACE_EFAULT.
 *   - Callbacks take their context first. Each says whether it is mandatory, what it is (leaf or upcall, see "Host"), how long
 *     what it is given lives, and what its return means.
 */

/* A stack: see "Stack". */
typedef struct lace_stack lace_stack;

/*
 * Sizes of a block of memory that are enough for lace_config_init and lace_config_full, in bytes, for a pointer of 8 bytes
 * and a smaller one. lace_stack_size says exactly how many a configuration takes.
 */
#define LACE_STACK_SIZE_TFTP (sizeof(void *) > 4 ? 8960u : 8192u)
#define LACE_STACK_SIZE_FULL (sizeof(void *) > 4 ? 203776u : 199168u)

/* ----------------------------------------------------------------------------
 * Results
 *
 * Every function that can fail returns `int` or `int64_t`: 0 or a count on success, one of the negative codes below
 * otherwise. The numbers are those of Linux where Linux has one, never taken from the host's own headers.
 * `LACE_EAGAIN` is not a failure: nothing was done, or nothing is finished yet; poll and ask again. A callback of
 * the host's that fails may return any negative number; what ends because of it has that number as its result.
 */

/** Version of this header: `major << 16 | minor << 8 | patch`. */
#define LACE_VERSION 256
/** Done. */
#define LACE_OK 0
/** The server has no such file, directory or name. */
#define LACE_ENOENT (-2)
/** `host.poll` asked to stop; the operation was cancelled and its server told. */
#define LACE_EINTR (-4)
/** A callback of the host's failed without a code of its own. */
#define LACE_EIO (-5)
/** A handle that is stale or of another kind, or a stack that is not running. */
#define LACE_EBADF (-9)
/** Not now: poll and ask again. */
#define LACE_EAGAIN (-11)
/** The block of memory is too small for the configuration. */
#define LACE_ENOMEM (-12)
/** The server denies access. */
#define LACE_EACCES (-13)
/** A pointer that must not be null is, or memory contains address 0, wraps, or overlaps memory it must not overlap. */
#define LACE_EFAULT (-14)
/** Called from a callback from which this call is not allowed. */
#define LACE_EBUSY (-16)
/** The file exists already. */
#define LACE_EEXIST (-17)
/** No such NIC. */
#define LACE_ENODEV (-19)
/** A part of the path is not a directory. */
#define LACE_ENOTDIR (-20)
/** What was named is a directory. */
#define LACE_EISDIR (-21)
/** An argument has a value that is not allowed. */
#define LACE_EINVAL (-22)
/** Every place of the kind needed is in use: a limit of the configuration. */
#define LACE_EMFILE (-24)
/** The data is larger than the sink, or than a limit. */
#define LACE_EFBIG (-27)
/** The server has no room. */
#define LACE_ENOSPC (-28)
/** A name or path is longer than its protocol, or this library, allows. */
#define LACE_ENAMETOOLONG (-36)
/** Too many links or redirects. */
#define LACE_ELOOP (-40)
/** The file ended before the count that was promised. */
#define LACE_ENODATA (-61)
/** The sink took nothing for too long. */
#define LACE_ETIME (-62)
/** The peer broke its protocol. */
#define LACE_EPROTO (-71)
/** A datagram is larger than what can be sent, or than the room given for it. */
#define LACE_EMSGSIZE (-90)
/** Not offered by the server, or not built into this library. */
#define LACE_EOPNOTSUPP (-95)
/** An address of a family that is not supported. */
#define LACE_EAFNOSUPPORT (-97)
/** The port or the hook is taken. */
#define LACE_EADDRINUSE (-98)
/** The address is not one of the stack's. */
#define LACE_EADDRNOTAVAIL (-99)
/** The NIC is down or gone, or the stack is being stopped. */
#define LACE_ENETDOWN (-100)
/** No route leads to the destination. */
#define LACE_ENETUNREACH (-101)
/** The connection was ended here. */
#define LACE_ECONNABORTED (-103)
/** The peer ended the connection. */
#define LACE_ECONNRESET (-104)
/** The socket has a peer already. */
#define LACE_EISCONN (-106)
/** The socket has no peer. */
#define LACE_ENOTCONN (-107)
/** Nothing came in time. */
#define LACE_ETIMEDOUT (-110)
/** The peer said that nothing listens there. */
#define LACE_ECONNREFUSED (-111)
/** The next hop does not answer, or a router said that the host cannot be reached. */
#define LACE_EHOSTUNREACH (-113)
/** The file at the server changed between two parts of a transfer. */
#define LACE_ESTALE (-116)
/** The server failed. */
#define LACE_EREMOTEIO (-121)
/** The operation was cancelled. */
#define LACE_ECANCELED (-125)

/**
 * The text of a result, in English, without punctuation: never NULL, static. A positive result is "success"; a
 * number that is no `LACE_E...` code is "error of the host".
 */
const char *lace_strerror(int64_t result);

/** The version of the library that is linked in, as `major << 16 | minor << 8 | patch`. */
uint32_t lace_version(void);

/**
 * Whether a program compiled against the header of version `header` (pass `LACE_VERSION`) works with this library:
 * the major numbers must agree (before 1.0 the minor ones too), and the library must not be the older one.
 *
 * Returns 0, or `LACE_EOPNOTSUPP`.
 */
int lace_abi_check(uint32_t header);

/* ----------------------------------------------------------------------------
 * Addresses
 *
 * Addresses are in network order, ports in host order. A server is a `lace_peer`: a name to look up, or an address.
 */

/** `lace_ip.family`: no address. Where an address may be left out, this leaves it out. */
#define LACE_IP_NONE 0
/** `lace_ip.family`: IPv4; the first four bytes count. */
#define LACE_IP_V4 4
/** `lace_ip.family`: IPv6; not supported yet (`LACE_EAFNOSUPPORT`). */
#define LACE_IP_V6 6
/** Room that the text of any address needs, NUL included. */
#define LACE_IP_TEXT 46

/** An IP address. All bytes zero is "no address". The layout is frozen. */
struct lace_ip {
    /** `LACE_IP_NONE`, `LACE_IP_V4` or `LACE_IP_V6`. */
    uint8_t family;
    /** For IPv6 later: the interface of a link-local address. 0. */
    uint8_t zone;
    /** 0. */
    uint8_t reserved[2];
    /** The address in network order: 4 or 16 bytes. */
    uint8_t bytes[16];
};

/** A server. The layout is frozen. */
struct lace_peer {
    /**
     * Name, or address as text, NUL-terminated; NULL: `ip` counts. Must live until the operation that was given it
     * has ended.
     */
    const char *name;
    /** Address, when there is no name. */
    struct lace_ip ip;
    /** Port in host order; 0: the protocol's own. */
    uint16_t port;
    /** 0. */
    uint16_t reserved;
};

/** Sets `*ip` to the IPv4 address `a.b.c.d`. `ip` must not be NULL. */
void lace_ip_v4(struct lace_ip *ip, uint8_t a, uint8_t b, uint8_t c, uint8_t d);

/**
 * Reads an address from `text`, NUL-terminated, such as "192.0.2.1", into `*ip`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for anything that is no address, in which case `*ip` is
 * unchanged.
 */
int lace_ip_parse(const char *text, struct lace_ip *ip);

/**
 * Writes `*ip` as NUL-terminated text of at most `size` bytes to `text`; no address is written as "".
 *
 * Returns the length without the NUL; `LACE_EFAULT` for NULL; `LACE_EMSGSIZE` when it does not fit (`LACE_IP_TEXT`
 * bytes always do); `LACE_EAFNOSUPPORT`.
 */
int lace_ip_format(const struct lace_ip *ip, char *text, size_t size);

/* ----------------------------------------------------------------------------
 * Configuration
 *
 * Limits are numbers of the configuration, not of the library: a stack takes one block of memory from its caller, as
 * large as `lace_stack_size` says for them, and no other. All knobs of a stack:
 *
 * | field | default | full | what |
 * |---|---|---|---|
 * | `nics` | 1 | 4 | NICs |
 * | `operations` | 2 | 8 | operations that run, or wait to be closed, at a time |
 * | `udp_sockets` | 4 | 16 | UDP sockets; an operation takes one or two while it runs |
 * | `udp_queues` | 0 | 4 | queues: of sockets that are polled (`lace_udp_open_queue`), and for a block that a `write` sink refuses |
 * | `udp_queue_bytes` | 2048 | 4096 | bytes for what waits in each of them; 16 bytes a datagram are for its sender |
 * | `hooks` | 0 | 4 | raw hooks |
 * | `routes` | 4 | 16 | routes beside the networks of the NICs' own addresses |
 * | `neighbours` | 4 | 16 | hosts on the links whose hardware addresses are remembered |
 * | `mtu` | 1500 | 1500 | largest MTU of any NIC; 9000 for jumbo frames |
 * | `tx_frames` | 1 | 8 | frames of the stack's own for NICs without `tx_buffer`: 1 unless asynchronous; 0 when every NIC has it |
 * | `wait_frames` | 1 | 4 | frames kept while a hardware address is asked for; with 0, sending says `LACE_EAGAIN` instead |
 * | `reassembly_slots` | 2 | 16 | fragmented datagrams that are put together at a time |
 * | `reassembly_buffers` | 0 | 2 | buffers for those whose bytes have no place in a sink's memory |
 * | `reassembly_bytes` | 9216 | 9216 | bytes of payload that each buffer holds, up to 65535 |
 * | `reassembly_timeout_ms` | 30000 | 30000 | how long a datagram in a buffer may be incomplete |
 * | `dns_names` | 2 | 16 | names remembered |
 * | `tcp_connections` | 0 | 4 | TCP connections; one that is being closed keeps its place until the peer has answered |
 * | `tcp_listeners` | 0 | 2 | TCP listeners |
 * | `tcp_receive_bytes` | 8192 | 8192 | bytes of each connection's receive ring: its window beside the regions queued |
 * | `tcp_send_bytes` | 8192 | 8192 | bytes of each connection's send ring; files need none |
 * | `tcp_segments` | 64 | 64 | segments in flight of each connection that are told apart; 8 do for short paths |
 * | `tcp_ranges` | 8 | 32 | ranges received out of order that each connection keeps; 0: none is kept |
 * | `tcp_pages` | 0 | 16 | pages of files lent to NICs at a time, of all connections; a file in memory takes one |
 * | `nfs_jobs` | 0 | 3 | NFS operations that run at a time, open files among them |
 * | `http_jobs` | 0 | 3 | HTTP operations that run, or wait to be closed, at a time |
 * | `tx_align` | 64 | 64 | alignment of the stack's own frames: a power of two, 1 to 4096 |
 *
 * Each operation has its own knobs in the struct that starts it; 0 there stands for the default, unless the field's
 * text says "default:", which is what its `lace_..._init` puts there.
 */

/** Limits of a stack: see the table. Set up by `lace_config_init` or `lace_config_full`. */
struct lace_config {
    /** Size of this struct, set by `lace_config_init`. */
    uint32_t size;
    /** NICs, 1 to 255. */
    uint16_t nics;
    /** Operations, 0 to 255. */
    uint16_t operations;
    /** UDP sockets, 0 to 2048. */
    uint16_t udp_sockets;
    /** UDP sockets that can be polled. */
    uint16_t udp_queues;
    /** Bytes of each of their queues. */
    uint32_t udp_queue_bytes;
    /** Raw hooks. */
    uint16_t hooks;
    /** Routes. */
    uint16_t routes;
    /** Neighbours, at least 1. */
    uint16_t neighbours;
    /** Largest MTU in bytes, 68 to 65535. */
    uint16_t mtu;
    /** Frames being sent. */
    uint16_t tx_frames;
    /** Frames waiting for a neighbour. */
    uint16_t wait_frames;
    /** Alignment of frames in bytes. */
    uint16_t tx_align;
    /** Fragmented datagrams at a time. */
    uint16_t reassembly_slots;
    /** Buffers for them. */
    uint16_t reassembly_buffers;
    /** Names remembered. */
    uint16_t dns_names;
    /** Bytes of payload of each buffer. */
    uint32_t reassembly_bytes;
    /** Milliseconds. */
    uint32_t reassembly_timeout_ms;
    /** NFS operations at a time, open files among them, 0 to 255. */
    uint16_t nfs_jobs;
    /** HTTP operations at a time, 0 to 255. */
    uint16_t http_jobs;
    /** TCP connections. */
    uint16_t tcp_connections;
    /** TCP listeners. */
    uint16_t tcp_listeners;
    /** Segments in flight of each connection that are told apart, at least 8. */
    uint16_t tcp_segments;
    /** Ranges received out of order of each connection. */
    uint16_t tcp_ranges;
    /** Pages lent to NICs at a time, of all connections. */
    uint16_t tcp_pages;
    /** 0. */
    uint16_t reserved;
    /** Bytes of each connection's receive ring. */
    uint32_t tcp_receive_bytes;
    /** Bytes of each connection's send ring. */
    uint32_t tcp_send_bytes;
};

/**
 * Sets up `*config`, `size` being `sizeof *config`, with the defaults: one NIC, DHCP, ping and a TFTP boot.
 * `LACE_STACK_SIZE_TFTP` bytes are enough for it.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_config_init(struct lace_config *config, size_t size);

/** The same with the limits of the table's column "full". `LACE_STACK_SIZE_FULL` bytes are enough for it. */
int lace_config_full(struct lace_config *config, size_t size);

/**
 * Bytes of memory that a stack with these limits takes (NULL: the defaults), aligned to 16 bytes. Up to 4 GiB.
 *
 * Returns the number of bytes, or `LACE_EINVAL` for limits outside their ranges.
 */
int64_t lace_stack_size(const struct lace_config *config);

/* ----------------------------------------------------------------------------
 * Host
 *
 * What the stack asks of the program around it: the time, chance, and in blocking calls a look at the watchdog and
 * the keyboard. Callbacks are of two kinds.
 *
 * *Leaf callbacks* run inside the stack: `now_us`, `random`, `log`, all of the NIC's but `pump`, and the `write`,
 * `read`, `map` and `release` of sinks and sources. In one of them, closing, cancelling and `lace_stack_stop` return
 * 0 and take effect when the stack is left; every other call that takes the stack returns `LACE_EBUSY`.
 *
 * *Upcalls* run while the stack is at rest: `poll`, `idle`, the NIC's `pump`, handlers of datagrams and raw hooks,
 * `progress`, `done`. In one of them every call that does not block works; `lace_poll` and whatever waits return
 * `LACE_EBUSY`. Closing and cancelling take effect at once, but memory lent to the upcall stays valid until it
 * returns. `lace_stack_stop`, `lace_nic_reset` and `lace_nic_remove` return 0 and wait until the outermost upcall
 * has returned. `lace_input` is accepted from `pump`, from `poll` and from outside only.
 *
 * Each stack is used by one thread at a time; different stacks have nothing in common. Interrupt handlers call
 * nothing.
 */

/** Log event: an address was bound by DHCP. a: index of the NIC, b: IPv4 address. */
#define LACE_LOG_DHCP_BOUND 1
/** Log event: a lease was lost. a: index of the NIC, b: IPv4 address. */
#define LACE_LOG_DHCP_LOST 2
/** Log event: another host answers for an address of ours. a: index of the NIC, b: IPv4 address. */
#define LACE_LOG_ADDRESS_CONFLICT 3
/** Log event: a transfer was restarted with smaller windows or blocks. a: block size, b: window size. */
#define LACE_LOG_TRANSFER_SHRUNK 4
/** Log event: a server's answer was refused. a: kind of operation, b: reason. */
#define LACE_LOG_BAD_REPLY 5
/** Log event: a neighbour did not answer. a: IPv4 address, b: tries. */
#define LACE_LOG_NEIGHBOUR_FAILED 6

/** The host's callbacks. Set up by `lace_host_init`; copied by `lace_stack_init`. */
struct lace_host {
    /** Size of this struct, set by `lace_host_init`. */
    uint32_t size;
    /**
     * Bits of `now_us` that count, 32 or 64; default 64. A clock of 32 bits wraps after 71 minutes, and the stack
     * must be polled more often than that while anything is going on.
     */
    uint32_t clock_bits;
    /** Passed to every callback here. Must live as long as the stack. */
    void *ctx;
    /**
     * Mandatory, leaf. Microseconds since any moment. May stand still for a while and step back by less than a
     * second: time then stands still for the stack.
     */
    uint64_t (*now_us)(void *ctx);
    /** Mandatory, leaf. 32 random bits: ports and identifiers that strangers must not guess are made of them. */
    uint32_t (*random)(void *ctx);
    /**
     * Optional, upcall. Called from blocking calls: feeds the watchdog, looks at the keyboard. A return other than 0
     * ends the blocking call with `LACE_EINTR` after the operation was cancelled and its server told. It is called
     * when the NICs are empty, at most once a millisecond while frames flow, and at latest every 10 ms.
     */
    int (*poll)(void *ctx);
    /**
     * Optional, upcall. Called from blocking calls when nothing is to be done for `max_us` microseconds: may sleep
     * as long, or until a frame comes. It need not sleep at all.
     */
    void (*idle)(void *ctx, uint32_t max_us);
    /** Optional, leaf. `event` is one of `LACE_LOG_...`, which say what `a` and `b` are. */
    void (*log)(void *ctx, uint32_t event, uint64_t a, uint64_t b);
};

/**
 * Sets up `*host`, `size` being `sizeof *host`: no callbacks, a clock of 64 bits.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_host_init(struct lace_host *host, size_t size);

/* ----------------------------------------------------------------------------
 * NICs
 *
 * A driver lends received frames when it is asked (`recv`, `release`), or pushes them (`lace_input`, and `pump`,
 * which asks it to); it may do both. It sends frames it is given (`send`), gathered from several spans if it can,
 * else from one buffer: its own (`tx_buffer`) or the stack's. A driver that keeps what it was given after `send` has
 * returned is *asynchronous*: it sets `LACE_NIC_ASYNC` and says `lace_nic_tx_done` later.
 */

/** `lace_nic.caps`: verifies the IPv4 header checksum of received frames and says so per frame. */
#define LACE_NIC_RX_IP_SUM 1
/** `lace_nic.caps`: verifies UDP, TCP and ICMP checksums of received frames and says so per frame. */
#define LACE_NIC_RX_L4_SUM 2
/** `lace_nic.caps`: fills in the IPv4 header checksum of sent frames. */
#define LACE_NIC_TX_IP_SUM 4
/** `lace_nic.caps`: fills in the UDP or TCP checksum of sent frames; the field holds the sum of the pseudo header. */
#define LACE_NIC_TX_L4_SUM 8
/** `lace_nic.caps`: takes a frame as several spans, at most 6. */
#define LACE_NIC_GATHER 16
/** `lace_nic.caps`: keeps the spans of a frame until `lace_nic_tx_done`. */
#define LACE_NIC_ASYNC 32
/** `lace_frame.flags`: the NIC has verified the IPv4 header checksum. */
#define LACE_FRAME_IP_SUM_OK 1
/** `lace_frame.flags`: the NIC has verified the UDP, TCP or ICMP checksum. */
#define LACE_FRAME_L4_SUM_OK 2
/** `lace_frame.flags`: the NIC has taken the VLAN tag, the one of `lace_nic.vlan`, out of the frame. */
#define LACE_FRAME_VLAN_STRIPPED 4

/** A piece of a frame to send, or of a datagram. The layout is frozen. */
struct lace_span {
    /** The bytes. */
    const void *data;
    /** How many. */
    uint32_t len;
    /** 0. */
    uint32_t reserved;
};

/** A received frame. The layout is frozen. */
struct lace_frame {
    /**
     * The Ethernet frame from the destination address on, with or without its check sequence, at any alignment.
     * *Lent until release*; never written to.
     */
    const void *data;
    /** Bytes. */
    uint32_t len;
    /** `LACE_FRAME_...`. */
    uint32_t flags;
    /** For the driver's own use: it finds it unchanged in `release`. */
    size_t cookie;
};

/** A driver. Set up by `lace_nic_init`; copied by `lace_nic_add`. */
struct lace_nic {
    /** Size of this struct, set by `lace_nic_init`. */
    uint32_t size;
    /** `LACE_NIC_...`: what it can do. */
    uint32_t caps;
    /** Passed to every callback here. Must live until `lace_nic_remove` or the end of the stack. */
    void *ctx;
    /**
     * Mandatory, leaf. Sends one frame, the `n` spans one behind the other: one, unless `LACE_NIC_GATHER`. At least
     * 60 bytes; the check sequence is the NIC's. The spans are *borrowed for the call*; with `LACE_NIC_ASYNC` and a
     * `token` other than 0 they are *lent until* `lace_nic_tx_done` of that token.
     *
     * A buffer lent by `tx_buffer` is given back by the next `send`, whatever that returns; `n` of 0 gives it back
     * unused.
     *
     * Returns 0; `LACE_EAGAIN`: nothing was sent, the stack tries again in the next pass or at `lace_nic_tx_done`;
     * any other negative number: the frame is lost, as on the wire.
     */
    int (*send)(void *ctx, const struct lace_span *spans, uint32_t n, uint32_t token);
    /**
     * Optional, leaf. Lends one received frame by filling in `*frame`. No second one is asked for before the first
     * was released.
     *
     * Returns 1 if there is one; 0 if not; negative: none, because of an error.
     */
    int (*recv)(void *ctx, struct lace_frame *frame);
    /** Optional, leaf. Takes a frame that `recv` lent back. */
    void (*release)(void *ctx, const struct lace_frame *frame);
    /**
     * Optional, upcall. Asks the driver to hand over received frames by `lace_input`, as many as it likes, and to
     * report what it has sent and how its link is. Called again in the same pass as long as frames come.
     */
    void (*pump)(void *ctx);
    /**
     * Optional, leaf. Lends a buffer of at least `len` bytes, aligned as the hardware wants it, for the next `send`;
     * the stack writes the frame into it. NULL: no room now, as `LACE_EAGAIN` from `send`. Not used with
     * `LACE_NIC_GATHER` and `LACE_NIC_ASYNC` together when file pages are sent.
     */
    void *(*tx_buffer)(void *ctx, uint32_t len);
    /**
     * Optional, leaf. Returns 1 if the link is up, 0 if not. Asked when the NIC is added and about twice a second;
     * without it the link is up until `lace_nic_link` says otherwise.
     */
    int (*link)(void *ctx);
    /**
     * Optional, leaf. Says which multicast addresses are wanted: `n` of 6 bytes each, one behind the other,
     * *borrowed for the call*. `promisc` 1: more than that, receive everything. Without it the NIC must receive all
     * multicast frames.
     */
    void (*set_rx_filter)(void *ctx, const uint8_t *macs, uint32_t n, int promisc);
    /** Hardware address: not zero, not a multicast one. */
    uint8_t mac[6];
    /** Largest IP packet in bytes, 68 to `lace_config.mtu`; default 1500. */
    uint16_t mtu;
    /** VLAN that frames are tagged with, 1 to 4094; 0: untagged. */
    uint16_t vlan;
    /** Alignment in bytes that the stack's own frames need, a power of two up to `lace_config.tx_align`; 0: none. */
    uint16_t tx_align;
    /** 0. */
    uint32_t reserved;
};

/** Names a NIC: positive. 0 where any NIC will do. */
typedef int32_t lace_nic_id;

/**
 * Sets up `*nic`, `size` being `sizeof *nic`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_nic_init(struct lace_nic *nic, size_t size);

/**
 * Adds a NIC; no frame leaves it before it has an address, DHCP runs on it, or something is sent over it by name.
 *
 * Returns its id; `LACE_EFAULT`, `LACE_EINVAL`: see the fields of `lace_nic`, and `lace_config.tx_frames` is at
 * least 1 for a NIC without `tx_buffer`; `LACE_EMFILE`: `lace_config.nics` is reached; `LACE_EBUSY`;
 * `LACE_ENETDOWN`.
 */
lace_nic_id lace_nic_add(lace_stack *net, const struct lace_nic *nic);

/**
 * Takes a NIC out with its addresses, routes and neighbours. Frames it still holds count as done: it must be halted
 * before. From an upcall it takes effect when the outermost upcall has returned.
 *
 * Returns 0; `LACE_EBADF`.
 */
int lace_nic_remove(lace_stack *net, lace_nic_id nic);

/**
 * Says that the NIC was reset and holds no frame any more: all its tokens are done. From an upcall it takes effect
 * when the outermost upcall has returned.
 *
 * Returns 0; `LACE_EBADF`.
 */
int lace_nic_reset(lace_stack *net, lace_nic_id nic);

/**
 * Says that an asynchronous NIC is done with the frame of `token`.
 *
 * Returns 0; `LACE_EBADF`; `LACE_EINVAL` for a token that is not out with that NIC; `LACE_EBUSY` from a leaf callback:
 * report from `pump`.
 */
int lace_nic_tx_done(lace_stack *net, lace_nic_id nic, uint32_t token);

/**
 * Says whether the link is up (`up` not 0) or down. While it is down nothing is sent, and what was learned of the
 * neighbours is forgotten.
 *
 * Returns 0; `LACE_EBADF`; `LACE_EBUSY`.
 */
int lace_nic_link(lace_stack *net, lace_nic_id nic, int up);

/**
 * Changes the hardware address to the 6 bytes at `mac`. Peers learn it with the next frame.
 *
 * Returns 0; `LACE_EBADF`; `LACE_EINVAL` for an address that no host can have; `LACE_EFAULT`; `LACE_EBUSY`.
 */
int lace_nic_set_mac(lace_stack *net, lace_nic_id nic, const uint8_t *mac);

/* ----------------------------------------------------------------------------
 * Stack
 *
 * A stack lives in one block of memory of its caller's; any number of stacks may live in one program. It does
 * nothing by itself: `lace_poll` takes what has come and does what is due, blocking calls do so until what they wait
 * for has happened. A program that does not block calls `lace_poll` often, and at latest after `lace_next_deadline`
 * microseconds.
 */

/**
 * Sets up a stack in the `len` bytes at `memory`, aligned to 16 bytes (`LACE_ALIGNED`), *owned* by the stack until
 * `lace_stack_stop` has returned 0. It needs no other memory. `*config` and `*host` are copied; the clock is read
 * and random numbers are taken.
 *
 * Returns 0 and the stack in `*net`; `LACE_EFAULT` for a NULL pointer or memory that wraps; `LACE_EINVAL` for
 * misaligned memory, a wrong size of a struct, limits outside their ranges, a mandatory callback that is missing, or
 * `clock_bits` other than 32 and 64; `LACE_ENOMEM` when `len` is less than `lace_stack_size(config)`.
 */
int lace_stack_init(void *memory, size_t len, const struct lace_config *config, const struct lace_host *host, lace_stack **net);

/**
 * One pass: reads the clock, takes at most `budget` frames (0 counts as 1; 32 is a good number) from the NICs in
 * turn, then does what is due, then makes the upcalls. What a `pump` pushes at once is taken whole. When the budget
 * ends before the frames do, timers wait for the next pass: nothing expires whose answer may lie in the NIC.
 *
 * Returns the number of frames taken; `LACE_EBUSY` from a callback; `LACE_EBADF`, `LACE_EFAULT`.
 */
int lace_poll(lace_stack *net, uint32_t budget);

/**
 * Microseconds until `lace_poll` has something to do even if no frame comes: 0 when it has now, `INT64_MAX` when
 * never.
 *
 * Returns that, or `LACE_EBUSY`, `LACE_EBADF`, `LACE_EFAULT`.
 */
int64_t lace_next_deadline(lace_stack *net);

/**
 * Hands over a received frame: the `len` bytes at `bytes`, *borrowed for the call*, `flags` as in `lace_frame`. What
 * belongs to a handler is delivered before this returns. Accepted from `nic.pump`, from `host.poll` and from outside
 * the stack.
 *
 * Returns 0, also for a frame that is dropped and counted; `LACE_EFAULT` for a NULL pointer; `LACE_EBADF`;
 * `LACE_EBUSY` from any other callback.
 */
int lace_input(lace_stack *net, lace_nic_id nic, const void *bytes, size_t len, uint32_t flags);

/**
 * Ends the stack: operations are cancelled and their peers told, sockets closed, frames given back; no upcall is
 * made. It never blocks. Only after it has returned 0 may the NICs be halted, their memory be reused and the kernel
 * be started; the block of memory belongs to the caller again, and every handle is stale.
 *
 * Returns 0; 0 from a callback, too, where it takes effect when the stack is left: a blocking call then returns
 * `LACE_ECANCELED`; `LACE_EAGAIN` while an asynchronous NIC holds frames: poll and call again, or say
 * `lace_nic_reset`; `LACE_EBADF`, `LACE_EFAULT`. Calling it again after it has returned 0 does no harm.
 */
int lace_stack_stop(lace_stack *net);

/* ----------------------------------------------------------------------------
 * Addresses of NICs, routes, groups
 *
 * A NIC has up to 4 addresses, each with the length of its network prefix, up to 4 multicast groups, and any number
 * of routes within the configuration's limit. DHCP adds and removes what its lease says by the same rules.
 */

/** A route. Set up by `lace_route_init`. */
struct lace_route {
    /** Size of this struct. */
    uint32_t size;
    /** The NIC it leads through. */
    lace_nic_id nic;
    /** The network; none, or 0.0.0.0 with a prefix of 0: everything. */
    struct lace_ip network;
    /** Length of the network's prefix in bits. */
    uint32_t prefix;
    /** 1 if a DHCP lease added it; set by `lace_route_get`. */
    uint32_t dhcp;
    /** The next hop; none: the network is on the link itself. */
    struct lace_ip gateway;
};

/**
 * Gives a NIC the address `ip` in a network whose prefix has `prefix` bits, 0 to 32; changes the prefix of one it
 * has. An address that DHCP had set goes.
 *
 * Returns 0; `LACE_EINVAL` for an address that no host can have; `LACE_EMFILE`: it has 4; `LACE_EBADF`,
 * `LACE_EAFNOSUPPORT`, `LACE_EBUSY`.
 */
int lace_addr_add(lace_stack *net, lace_nic_id nic, const struct lace_ip *ip, uint32_t prefix);

/**
 * Takes an address from a NIC.
 *
 * Returns 0; `LACE_EADDRNOTAVAIL`: it does not have it; `LACE_EBADF`, `LACE_EAFNOSUPPORT`, `LACE_EBUSY`.
 */
int lace_addr_remove(lace_stack *net, lace_nic_id nic, const struct lace_ip *ip);

/**
 * The address number `index`, from 0, of a NIC: into `*ip`, and the length of its prefix into `*prefix` unless that
 * is NULL.
 *
 * Returns 0; `LACE_EADDRNOTAVAIL`: it has no more; `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_addr_get(lace_stack *net, lace_nic_id nic, uint32_t index, struct lace_ip *ip, uint32_t *prefix);

/**
 * Sets up `*route`, `size` being `sizeof *route`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_route_init(struct lace_route *route, size_t size);

/**
 * Adds a route, in place of one to the same network through the same NIC.
 *
 * Returns 0; `LACE_EINVAL` for a prefix above 32 bits or a gateway that no host can be; `LACE_EMFILE`:
 * `lace_config.routes` is reached; `LACE_EBADF`, `LACE_EFAULT`, `LACE_EAFNOSUPPORT`, `LACE_EBUSY`.
 */
int lace_route_add(lace_stack *net, const struct lace_route *route);

/**
 * Removes the route to that network through that NIC; the gateway is not looked at.
 *
 * Returns 0; `LACE_ENETUNREACH`: there is none; `LACE_EBADF`, `LACE_EINVAL`, `LACE_EFAULT`, `LACE_EBUSY`.
 */
int lace_route_remove(lace_stack *net, const struct lace_route *route);

/**
 * Route number `index`, from 0, into `*route`.
 *
 * Returns 0; `LACE_ENETUNREACH`: there are no more; `LACE_EFAULT`, `LACE_EINVAL`, `LACE_EBUSY`.
 */
int lace_route_get(lace_stack *net, uint32_t index, struct lace_route *route);

/**
 * Sends what no other route leads to through `gateway` on `nic`; NULL or none: no longer.
 *
 * Returns as `lace_route_add`.
 */
int lace_gateway_set(lace_stack *net, lace_nic_id nic, const struct lace_ip *gateway);

/**
 * The hardware address to which a packet for `ip` is sent: the host's own, its gateway's, or the one of a group or
 * broadcast; into the 6 bytes at `mac` unless that is NULL. `nic` 0: the one the route says. What is not known is
 * asked for: once a second, four times.
 *
 * Returns the id of the NIC it is sent over; `LACE_EAGAIN` while it is asked for: poll and call again;
 * `LACE_EHOSTUNREACH`: the next hop does not answer; `LACE_ENETUNREACH`, `LACE_ENETDOWN`, `LACE_EAFNOSUPPORT`,
 * `LACE_EINVAL` for no address, `LACE_EBADF`, `LACE_EBUSY`.
 */
lace_nic_id lace_neighbour_get(lace_stack *net, lace_nic_id nic, const struct lace_ip *ip, uint8_t *mac);

/**
 * How many NICs there are, and, when `index` is below that, the id of that one into `*nic` unless it is NULL.
 *
 * Returns the number; `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_nic_list(lace_stack *net, uint32_t index, lace_nic_id *nic);

/* ----------------------------------------------------------------------------
 * Multicast groups
 *
 * Feature `mcast`.
 */

/**
 * Joins a multicast group on a NIC: the NIC's filter lets it in, and routers are told (IGMP version 2). Sockets then
 * receive what is sent to it.
 *
 * Returns 0; `LACE_EINVAL`: not a group; `LACE_EMFILE`: the NIC is in 4 groups; `LACE_EBADF`, `LACE_EAFNOSUPPORT`,
 * `LACE_EBUSY`.
 */
int lace_mcast_join(lace_stack *net, lace_nic_id nic, const struct lace_ip *group);

/**
 * Leaves a multicast group.
 *
 * Returns 0; `LACE_ENOTCONN`: the NIC is not in it; `LACE_EBADF`, `LACE_EAFNOSUPPORT`, `LACE_EBUSY`.
 */
int lace_mcast_leave(lace_stack *net, lace_nic_id nic, const struct lace_ip *group);

/* ----------------------------------------------------------------------------
 * UDP sockets
 *
 * A socket has a handler, which is called for each datagram, or a queue, which is polled. It may send to and receive
 * from anybody, or be connected to one peer. Broadcast needs no option.
 */

/** Option of a socket: time to live of what it sends, 1 to 255; default 64. */
#define LACE_UDP_TTL 1
/** Option of a socket: type of service byte of what it sends; default 0. */
#define LACE_UDP_TOS 2
/** Option of a socket: don't-fragment flag of what it sends, 0 or 1; default 0. */
#define LACE_UDP_DONT_FRAGMENT 3

/** Names a UDP socket: positive. */
typedef int32_t lace_udp;

/** A received datagram. It begins with its size: later versions may have more fields. */
struct lace_datagram {
    /** Size of this struct. */
    uint32_t size;
    /** The socket. */
    lace_udp socket;
    /** The NIC it came in on. */
    lace_nic_id nic;
    /** Who sent it: port, in host order. */
    uint16_t src_port;
    /** The socket's port, in host order. */
    uint16_t dst_port;
    /** Who sent it: address. */
    struct lace_ip src;
    /** The address it was sent to: one of the NIC's, a broadcast address or a group. */
    struct lace_ip dst;
    /** The payload: `frame` + `payload_offset`. NULL from `lace_udp_recv`. */
    const void *payload;
    /** Bytes of payload. */
    uint32_t payload_len;
    /** Where the payload begins in the frame. */
    uint32_t payload_offset;
    /** The whole Ethernet frame. NULL from `lace_udp_recv`. */
    const void *frame;
    /** Bytes of the frame. */
    uint32_t frame_len;
    /** 0. */
    uint32_t reserved;
};

/**
 * Called for each datagram that comes to a socket. Upcall: it may send, and what it sends leaves at once; it may
 * close the socket. `*datagram` and what it names are *borrowed for the call*, whatever is closed meanwhile.
 */
typedef void (*lace_udp_handler)(void *ctx, const struct lace_datagram *datagram);

/**
 * Sets up `*datagram` for `lace_udp_recv`, `size` being `sizeof *datagram`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_datagram_init(struct lace_datagram *datagram, size_t size);

/**
 * Opens a socket on an unpredictable free port, whose datagrams go to `handler` with `ctx`. Both must live until it
 * is closed.
 *
 * Returns the socket; `LACE_EFAULT` without a handler; `LACE_EMFILE`: `lace_config.udp_sockets` is reached;
 * `LACE_EBUSY`, `LACE_EBADF`, `LACE_ENETDOWN`.
 */
lace_udp lace_udp_open(lace_stack *net, lace_udp_handler handler, void *ctx);

/**
 * Opens a socket on an unpredictable free port, whose datagrams wait in a queue for `lace_udp_recv`. What does not
 * fit the queue is dropped and counted.
 *
 * Returns the socket; `LACE_EMFILE`: `lace_config.udp_sockets` or `udp_queues` is reached; `LACE_EBUSY`,
 * `LACE_EBADF`, `LACE_ENETDOWN`.
 */
lace_udp lace_udp_open_queue(lace_stack *net);

/**
 * Closes a socket; its handler is not called again.
 *
 * Returns 0; `LACE_EBADF`.
 */
int lace_udp_close(lace_stack *net, lace_udp socket);

/**
 * Binds a socket: to `port` (0: the one it has), to the address `ip` (NULL or none: any), to one NIC (0: any). It
 * then sends from there, and receives what comes there. On a NIC without an address it sends from 0.0.0.0 and
 * receives whatever is sent to its hardware address.
 *
 * Returns 0; `LACE_EADDRINUSE`: another socket has the port on that NIC; `LACE_EADDRNOTAVAIL`: `ip` is not the
 * stack's; `LACE_EBADF`, `LACE_EAFNOSUPPORT`, `LACE_EBUSY`.
 */
int lace_udp_bind(lace_stack *net, lace_udp socket, lace_nic_id nic, const struct lace_ip *ip, uint16_t port);

/**
 * Connects a socket to the peer `ip`, `port`: it sends there, and receives from nobody else. NULL: to nobody again.
 *
 * Returns 0; `LACE_EINVAL` for port 0 or no address; `LACE_EBADF`, `LACE_EAFNOSUPPORT`, `LACE_EBUSY`.
 */
int lace_udp_connect(lace_stack *net, lace_udp socket, const struct lace_ip *ip, uint16_t port);

/**
 * Sets an option of a socket, one of `LACE_UDP_...`.
 *
 * Returns 0; `LACE_EINVAL` for a value out of range; `LACE_EOPNOTSUPP` for an unknown option; `LACE_EBADF`,
 * `LACE_EBUSY`.
 */
int lace_udp_set(lace_stack *net, lace_udp socket, uint32_t option, uint32_t value);

/**
 * The port of a socket, in host order.
 *
 * Returns it; `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_udp_port(lace_stack *net, lace_udp socket);

/**
 * Sends the `len` bytes at `data`, *borrowed for the call*, to the address `ip` and `port`; NULL: to the connected
 * peer.
 *
 * Nothing is sent from the stack's own memory (`LACE_EFAULT`), where a datagram that came in fragments lies: copy it
 * first. While the hardware address of the next hop is asked for, one datagram for it is kept (`lace_config.wait_frames`).
 *
 * Returns 0; `LACE_EAGAIN`: the NIC has no room now, or the hardware address is still being asked for: poll and send
 * again; `LACE_ENOTCONN`: no peer; `LACE_EINVAL`: no address or port 0; `LACE_EMSGSIZE`: more than the MTU holds;
 * `LACE_ENETUNREACH`, `LACE_EHOSTUNREACH`, `LACE_ENETDOWN`, `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`; what
 * `nic.send` said.
 */
int lace_udp_send(lace_stack *net,
                  lace_udp socket,
                  const struct lace_ip *ip,
                  uint16_t port,
                  const void *data,
                  size_t len);

/**
 * The same for a datagram in `n` pieces, at most 4, one behind the other.
 *
 * Returns as `lace_udp_send`; `LACE_EINVAL` for more pieces.
 */
int lace_udp_sendv(lace_stack *net,
                   lace_udp socket,
                   const struct lace_ip *ip,
                   uint16_t port,
                   const struct lace_span *spans,
                   uint32_t n);

/**
 * Takes the oldest datagram out of a socket's queue: as much of it as fits into the `len` bytes at `buffer`.
 * `datagram`, if not NULL, was set up by `lace_datagram_init`; it tells who sent it, and its whole length in
 * `payload_len`.
 *
 * Returns the number of bytes copied; `LACE_EAGAIN`: the queue is empty; `LACE_EOPNOTSUPP`: the socket has a
 * handler; `LACE_EFAULT`, `LACE_EINVAL`, `LACE_EBADF`, `LACE_EBUSY`.
 */
int64_t lace_udp_recv(lace_stack *net, lace_udp socket, void *buffer, size_t len, struct lace_datagram *datagram);

/* ----------------------------------------------------------------------------
 * Raw hooks
 *
 * For protocols the stack does not know: a handler for an EtherType or an IP protocol, and frames or packets that
 * are sent as they are given.
 */

/** Names a raw hook: positive. */
typedef int32_t lace_hook;

/** What a raw hook is given. It begins with its size: later versions may have more fields. */
struct lace_packet {
    /** Size of this struct. */
    uint32_t size;
    /** The hook. */
    lace_hook hook;
    /** The NIC it came in on. */
    lace_nic_id nic;
    /** Where the packet begins in the frame. */
    uint32_t packet_offset;
    /**
     * The packet, behind the Ethernet header (and VLAN tag): for an IP protocol from the IPv4 header on, without the
     * frame's padding.
     */
    const void *packet;
    /** The whole Ethernet frame. */
    const void *frame;
    /** Bytes of the packet. */
    uint32_t packet_len;
    /** Bytes of the frame. */
    uint32_t frame_len;
};

/**
 * Called for each frame or packet of a raw hook. Upcall. `*packet` and what it names are *borrowed for the call*,
 * whatever is closed meanwhile.
 */
typedef void (*lace_hook_handler)(void *ctx, const struct lace_packet *packet);

/**
 * Has frames of an EtherType, such as 0x88cc, handed to `handler` with `ctx`; a VLAN tag is looked through. Both
 * must live until the hook is closed.
 *
 * Returns the hook; `LACE_EINVAL` for IPv4, ARP and numbers below 0x600; `LACE_EADDRINUSE`: there is a hook for it;
 * `LACE_EMFILE`: `lace_config.hooks` is reached; `LACE_EFAULT` without a handler; `LACE_EBADF`, `LACE_EBUSY`,
 * `LACE_ENETDOWN`.
 */
lace_hook lace_hook_ethertype(lace_stack *net, uint16_t ethertype, lace_hook_handler handler, void *ctx);

/**
 * Has IPv4 packets of a protocol, such as 1 for ICMP, handed to `handler` with `ctx`. ICMP is handled by the stack
 * as well.
 *
 * Returns the hook; `LACE_EINVAL` for UDP and TCP; else as `lace_hook_ethertype`.
 */
lace_hook lace_hook_protocol(lace_stack *net, uint8_t protocol, lace_hook_handler handler, void *ctx);

/**
 * Closes a raw hook; its handler is not called again.
 *
 * Returns 0; `LACE_EBADF`.
 */
int lace_hook_close(lace_stack *net, lace_hook hook);

/**
 * Sends the `len` bytes at `frame`, *borrowed for the call*, as they are: an Ethernet frame from the destination
 * address on, without check sequence; padded to 60 bytes.
 *
 * Returns 0; `LACE_EAGAIN`: the NIC has no room now; `LACE_EINVAL` for less than an Ethernet header;
 * `LACE_EMSGSIZE`; `LACE_ENETDOWN`, `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`; what `nic.send` said.
 */
int lace_send_frame(lace_stack *net, lace_nic_id nic, const void *frame, size_t len);

/**
 * Sends an IPv4 packet of `protocol` to `ip`: the stack finds the way and makes the headers below, the payload is
 * the `n` pieces at `spans`, at most 4, *borrowed for the call*. `nic` 0: the one the route says. `src` NULL or
 * none: the one that fits.
 *
 * Returns as `lace_udp_send`.
 */
int lace_send_ip(lace_stack *net,
                 lace_nic_id nic,
                 const struct lace_ip *src,
                 const struct lace_ip *ip,
                 uint8_t protocol,
                 uint8_t ttl,
                 const struct lace_span *spans,
                 uint32_t n);

/* ----------------------------------------------------------------------------
 * Operations
 *
 * Whatever takes time is an operation: `lace_..._start` gives a handle at once, `lace_poll` does the work. A result
 * stays until the operation is closed. Every blocking form in `bootlace_sync.h` is start, wait and close, nothing
 * more.
 */

/** `lace_detail.kind`: nothing is known. */
#define LACE_DETAIL_NONE 0
/** `lace_detail.kind`: `code` is a TFTP error code; the server's text comes with it. */
#define LACE_DETAIL_TFTP 1
/** `lace_detail.kind`: `code` is an ICMP type * 256 + code; `from` sent it. */
#define LACE_DETAIL_ICMP 2
/** `lace_detail.kind`: `code` is a DNS response code. */
#define LACE_DETAIL_DNS 3
/** `lace_detail.kind`: a DHCP server's text. */
#define LACE_DETAIL_DHCP 4
/** `lace_detail.kind`: `code` is an NFS or MOUNT status. */
#define LACE_DETAIL_NFS 5
/** `lace_detail.kind`: `code` is an RPC reply status. */
#define LACE_DETAIL_RPC 6
/** `lace_detail.kind`: `code` is an HTTP status. */
#define LACE_DETAIL_HTTP 7

/** Why an operation failed, in the words of who made it fail. Set up by `lace_detail_init`. */
struct lace_detail {
    /** Size of this struct. */
    uint32_t size;
    /** `LACE_DETAIL_...`. */
    uint32_t kind;
    /** A code of that kind. */
    uint32_t code;
    /** Who said so; none if not known. */
    struct lace_ip from;
    /** Text that came with it, NUL-terminated, cut to fit; control characters are '?'. */
    char text[68];
};

/** Names an operation: positive. */
typedef int32_t lace_op;

/**
 * Called when an operation has come further, at most once a pass. `done` and `total` in bytes, or in what the
 * operation counts; `total` 0: not known. Upcall.
 */
typedef void (*lace_progress)(void *ctx, lace_op op, uint64_t done, uint64_t total);

/** Called once when an operation has ended, with its result. Upcall: it may close the operation and start others. */
typedef void (*lace_done)(void *ctx, lace_op op, int64_t result);

/**
 * Sets up `*detail`, `size` being `sizeof *detail`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_detail_init(struct lace_detail *detail, size_t size);

/**
 * What has become of an operation.
 *
 * Returns `LACE_EAGAIN` while it runs; its result once it has ended: 0 or a count of what its kind says, or why it
 * failed; `LACE_EBADF`, `LACE_EBUSY`.
 */
int64_t lace_op_status(lace_stack *net, lace_op op);

/**
 * How far an operation is: `*done` of `*total`, in bytes or in what it counts; `*total` is 0 while it is not known.
 * Either pointer may be NULL.
 *
 * Returns 0; `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_op_progress(lace_stack *net, lace_op op, uint64_t *done, uint64_t *total);

/**
 * Why an operation failed: fills in `*detail`.
 *
 * Returns 0; `LACE_EFAULT`, `LACE_EINVAL` for a `*detail` that was not set up; `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_op_detail(lace_stack *net, lace_op op, struct lace_detail *detail);

/**
 * Has an operation call `progress` and `done` (either may be NULL) with `ctx`, instead of those it was started with.
 * If it has ended and no `done` was called, this one is called in the next pass.
 *
 * Returns 0; `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_op_notify(lace_stack *net, lace_op op, lace_progress progress, lace_done done, void *ctx);

/**
 * Cancels an operation: its peer is told, its result is `LACE_ECANCELED`. Nothing happens to one that has ended. Its
 * handle stays until it is closed; nothing is written to its sink any more.
 *
 * Returns 0; `LACE_EBADF`.
 */
int lace_op_cancel(lace_stack *net, lace_op op);

/**
 * Closes an operation, after cancelling it if it still runs. Its handle is stale from now on, and no callback of its
 * is called any more.
 *
 * Returns 0; `LACE_EBADF`.
 */
int lace_op_close(lace_stack *net, lace_op op);

/**
 * Polls until an operation has ended, looking at `host.poll` meanwhile.
 *
 * Returns its result; `LACE_EINTR` when `host.poll` ended it: it is cancelled then, and yet to be closed;
 * `LACE_ECANCELED` when the stack was stopped; `LACE_EBADF`, also when a callback closed it; `LACE_EBUSY` from a
 * callback. A negative `op`, such as a failed start gives, is returned as it is.
 */
int64_t lace_op_wait(lace_stack *net, lace_op op);

/* ----------------------------------------------------------------------------
 * Sinks and sources
 *
 * A *sink* is where received bytes go: a region of memory, in which every byte lands at its last place as it comes,
 * or a `write` callback, to which bytes are offered in order. A *source* is where sent bytes come from.
 */

/**
 * Takes `len` bytes at `data`, *borrowed for the call*; the first is byte `offset` of the stream. Bytes are offered
 * in ascending order, each until it was taken. Leaf.
 *
 * Returns how many were taken, 0 to `len`: the rest is offered again later, and the peer is held back meanwhile.
 * Negative: the operation ends with that result, and the peer is told.
 */
typedef int64_t (*lace_write)(void *ctx, uint64_t offset, const void *data, uint32_t len);

/**
 * Where received bytes go. Set up by `lace_sink_memory`, `lace_sink_write` or `lace_sink_discard`; copied by the
 * call that starts an operation. What it names must live until the operation has ended.
 */
struct lace_sink {
    /** Size of this struct. */
    uint32_t size;
    /** 0: discard; 1: memory; 2: write. */
    uint32_t kind;
    /** The region. */
    void *memory;
    /** Bytes of the region. */
    uint64_t len;
    /** The callback. */
    lace_write write;
    /** Passed to it. */
    void *ctx;
};

/**
 * Fills the `len` bytes at `buffer`, *borrowed for the call*, from byte `offset` of the file on. The same bytes may
 * be asked for again, and must be the same. Leaf.
 *
 * Returns how many bytes were given, 1 to `len`; 0 only at the end of the file. Negative: sending ends there with
 * that result.
 */
typedef int64_t (*lace_read)(void *ctx, uint64_t offset, void *buffer, uint32_t len);

/**
 * Lends memory of the file's own that holds at least one and at most `len` bytes from byte `offset` on: sets
 * `*page`. It must not change *until release*. The same bytes may be asked for again. Leaf.
 *
 * Returns how many bytes are lent, 1 to `len`; 0 only at the end of the file. Negative: sending ends there with that
 * result.
 */
typedef int64_t (*lace_map)(void *ctx, uint64_t offset, uint32_t len, const void **page);

/**
 * Gives back the `len` bytes at `page` that `map` lent for `offset`: they were acknowledged, and no NIC holds them.
 * Leaf.
 */
typedef void (*lace_unmap)(void *ctx, uint64_t offset, const void *page, uint32_t len);

/**
 * Where sent bytes come from. Set up by `lace_source_memory`, `lace_source_read` or `lace_source_map`; copied by the
 * call that starts an operation. What it names must live until the operation has ended.
 */
struct lace_source {
    /** Size of this struct. */
    uint32_t size;
    /** 1: memory; 2: read; 3: map. */
    uint32_t kind;
    /** The region. */
    const void *memory;
    /** Bytes of the region. */
    uint64_t len;
    /** The callback that fills. */
    lace_read read;
    /** The callback that lends. */
    lace_map map;
    /** The callback that is given pages back. */
    lace_unmap release;
    /** Passed to them. */
    void *ctx;
};

/**
 * Sets up `*sink` (`size` is `sizeof *sink`) to put bytes into the `len` bytes at `memory`. Nothing beyond them is
 * ever written; bytes behind what an operation confirmed are undefined afterwards. What does not fit ends the
 * operation with `LACE_EFBIG`.
 *
 * Returns 0; `LACE_EINVAL` for a wrong size; `LACE_EFAULT` for memory that contains address 0 or wraps. Memory that
 * overlaps the stack's own is refused where it is used.
 */
int lace_sink_memory(struct lace_sink *sink, size_t size, void *memory, size_t len);

/**
 * Sets up `*sink` (`size` is `sizeof *sink`) to offer bytes to `write`.
 *
 * Returns 0; `LACE_EINVAL` for a wrong size; `LACE_EFAULT` without `write`.
 */
int lace_sink_write(struct lace_sink *sink, size_t size, lace_write write, void *ctx);

/**
 * Sets up `*sink` (`size` is `sizeof *sink`) to check and count bytes and throw them away.
 *
 * Returns 0; `LACE_EINVAL` for a wrong size.
 */
int lace_sink_discard(struct lace_sink *sink, size_t size);

/**
 * Sets up `*source` (`size` is `sizeof *source`) to be the `len` bytes at `memory`, which a gathering NIC sends from
 * where they lie.
 *
 * Returns 0; `LACE_EINVAL` for a wrong size; `LACE_EFAULT` for memory that contains address 0 or wraps.
 */
int lace_source_memory(struct lace_source *source, size_t size, const void *memory, size_t len);

/**
 * Sets up `*source` (`size` is `sizeof *source`) to ask `read` for bytes.
 *
 * Returns 0; `LACE_EINVAL` for a wrong size; `LACE_EFAULT` without `read`.
 */
int lace_source_read(struct lace_source *source, size_t size, lace_read read, void *ctx);

/**
 * Sets up `*source` (`size` is `sizeof *source`) to have `map` lend pages; `release` may be NULL.
 *
 * Returns 0; `LACE_EINVAL` for a wrong size; `LACE_EFAULT` without `map`.
 */
int lace_source_map(struct lace_source *source, size_t size, lace_map map, lace_unmap release, void *ctx);

/* ----------------------------------------------------------------------------
 * TCP
 *
 * Connections (RFC 9293). What is received goes through a ring of the stack's, or straight into regions that the
 * host queues: a header can be read from the ring and the body land in memory, in one connection. What is sent goes
 * through a ring as well, or comes from a source that is asked again for what was lost. Handlers are told what
 * happens; hosts that poll ask `lace_tcp_status`.
 */

/** Event: the connection is established. */
#define LACE_TCP_CONNECTED 1
/** Event: the ring has bytes to read, or the peer has finished. */
#define LACE_TCP_READABLE 2
/** Event: the ring has room for bytes to send. */
#define LACE_TCP_WRITABLE 4
/** Event: the first queued region has grown, or is full. */
#define LACE_TCP_REGION 8
/** Event: everything given to be sent is acknowledged. */
#define LACE_TCP_SENT 16
/** Event: a file was sent, or its sending has failed. */
#define LACE_TCP_FILE 32
/** Event: the peer has finished sending. */
#define LACE_TCP_FINISHED 64
/** Event: the connection is over; `lace_tcp_error` tells why. */
#define LACE_TCP_CLOSED 128
/** Event: a listener has a connection to accept. */
#define LACE_TCP_ACCEPT 256
/** Option of a connection: 1: send short segments at once; 0: Nagle's algorithm. */
#define LACE_TCP_NO_DELAY 1
/** Option of a connection: idle time before keepalive probes in milliseconds; 0: none. */
#define LACE_TCP_KEEPALIVE_MS 2
/** Option of a connection: how long sent data may go unacknowledged, in milliseconds. */
#define LACE_TCP_USER_TIMEOUT_MS 3

/** How a connection is to behave. Set up by `lace_tcp_init`; copied by the call that it is given to. */
struct lace_tcp_options {
    /** Size of this struct. */
    uint32_t size;
    /**
     * Largest receive window in bytes, ring and regions together; 0: 2 MiB. It counts from the beginning of a
     * connection on. More than the NIC's ring of frames holds only makes frames drop.
     */
    uint32_t receive_max;
    /** How long a connection may take to be established, in milliseconds; 0: 180000. */
    uint32_t connect_timeout_ms;
    /** How long sent data may go unacknowledged, in milliseconds; 0: 120000. */
    uint32_t user_timeout_ms;
    /** Longest wait before data is acknowledged, in milliseconds, below 500; 0: 40. */
    uint32_t delayed_ack_ms;
    /** Smallest part of the retransmission timeout beyond the round trip, in milliseconds; 0: 200. */
    uint32_t min_rto_ms;
    /**
     * How long nothing must have come before the first keepalive probe, in milliseconds; 0: no probes. Probes follow
     * each other at a ninety-sixth of that; nine go unanswered before the connection is given up.
     */
    uint32_t keepalive_ms;
    /** 1: send short segments at once (no Nagle algorithm). */
    uint8_t no_delay;
    /** 1: congestion control by NewReno instead of CUBIC. */
    uint8_t new_reno;
    /** 1: offer no timestamps. */
    uint8_t no_timestamps;
    /** 1: offer no selective acknowledgements. */
    uint8_t no_sack;
    /** Time to live; 0: 64. */
    uint8_t ttl;
    /** Type of service byte. */
    uint8_t tos;
    /** Port of ours, in host order; 0: an unpredictable one. */
    uint16_t port;
    /** Address of ours; none: the one that fits the way. */
    struct lace_ip ip;
};

/** Names a TCP listener: positive. */
typedef int32_t lace_listener;

/** Names a TCP connection: positive. */
typedef int32_t lace_tcp;

/**
 * Called when something has happened on a connection or a listener: `events` are bits of `LACE_TCP_...`, gathered
 * since the last call. Upcall: it may send, receive and close.
 */
typedef void (*lace_tcp_handler)(void *ctx, int32_t handle, uint32_t events);

/**
 * How a connection is doing. Set up by `lace_tcp_info_init`. Times in microseconds, the rest in bytes where nothing
 * else is said.
 */
struct lace_tcp_info {
    /** Size of this struct. */
    uint32_t size;
    /**
     * State: 0 closed, 1 SYN sent, 2 SYN received, 3 established, 4 FIN-WAIT-1, 5 FIN-WAIT-2, 6 CLOSE-WAIT, 7
     * closing, 8 LAST-ACK, 9 TIME-WAIT.
     */
    uint32_t state;
    /** Our end. */
    struct lace_ip local;
    /** The peer's end. */
    struct lace_ip remote;
    /** Our port. */
    uint16_t local_port;
    /** The peer's port. */
    uint16_t remote_port;
    /** Smoothed round-trip time; 0 before the first measurement. */
    uint32_t rtt_us;
    /** Its mean deviation. */
    uint32_t rtt_deviation_us;
    /** Retransmission timeout. */
    uint32_t rto_us;
    /** Congestion window. */
    uint32_t congestion_window;
    /** Slow start threshold. */
    uint32_t slow_start_threshold;
    /** Most data in a segment. */
    uint32_t segment_size;
    /** Segments sent again. */
    uint32_t retransmits;
    /** In flight. */
    uint64_t in_flight;
    /** The peer's window. */
    uint64_t send_window;
    /** Our window. */
    uint64_t receive_window;
    /** Acknowledged by the peer. */
    uint64_t bytes_sent;
    /** Received in order. */
    uint64_t bytes_received;
    /** Received out of order and kept. */
    uint64_t bytes_held;
};

/**
 * Sets up `*options`, `size` being `sizeof *options`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_tcp_init(struct lace_tcp_options *options, size_t size);

/**
 * Starts to open a connection to `*peer`; `options` NULL: the defaults. The operation's result is the connection, a
 * `lace_tcp`, which is the host's once it was told of it: closing the operation does not close it then. `done` may be
 * NULL.
 *
 * Returns the operation; `LACE_EINVAL` for port 0 or no address; `LACE_EFAULT`, `LACE_EAFNOSUPPORT`, `LACE_EMFILE`,
 * `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_ECONNREFUSED`; `LACE_ETIMEDOUT`;
 * `LACE_EHOSTUNREACH`, `LACE_ENETUNREACH`; `LACE_EADDRINUSE`: there is such a connection; `LACE_EMFILE`:
 * `lace_config.tcp_connections` is reached; what looking a name up fails with.
 */
lace_op lace_tcp_connect_start(lace_stack *net,
                               const struct lace_peer *peer,
                               const struct lace_tcp_options *options,
                               lace_done done,
                               void *ctx);

/**
 * Listens at `port`, for connections to `ip` or, if that is NULL or none, to any address of ours; `backlog`
 * connections may wait to be accepted. `options` (NULL: the defaults) are those of the connections.
 *
 * Returns the listener; `LACE_EINVAL` for port 0; `LACE_EADDRINUSE`; `LACE_EMFILE`: `lace_config.tcp_listeners` is
 * reached; `LACE_EFAULT`, `LACE_EAFNOSUPPORT`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`.
 */
lace_listener lace_tcp_listen(lace_stack *net,
                              const struct lace_ip *ip,
                              uint16_t port,
                              uint16_t backlog,
                              const struct lace_tcp_options *options);

/**
 * Takes the connection that has waited longest at a listener.
 *
 * Returns the connection; `LACE_EAGAIN`: none waits; `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`.
 */
lace_tcp lace_tcp_accept(lace_stack *net, lace_listener listener);

/**
 * Stops listening; connections that were not accepted are reset.
 *
 * Returns 0; `LACE_EBADF`.
 */
int lace_tcp_unlisten(lace_stack *net, lace_listener listener);

/**
 * Has `handler` (NULL: nobody) called with `ctx` when something happens on a connection or a listener. What is so
 * already is told in the next pass.
 *
 * Returns 0; `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_tcp_notify(lace_stack *net, int32_t handle, lace_tcp_handler handler, void *ctx);

/**
 * What is so on a connection now: bits of `LACE_TCP_...`.
 *
 * Returns them; `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_tcp_status(lace_stack *net, lace_tcp tcp);

/**
 * Why a connection ended.
 *
 * Returns 0 if it did not, or in good order; `LACE_ECONNRESET`, `LACE_ETIMEDOUT`, `LACE_ECONNABORTED` and others;
 * `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_tcp_error(lace_stack *net, lace_tcp tcp);

/**
 * Polls until one of `events` is so on a connection, or it is over, looking at `host.poll` meanwhile.
 *
 * Returns what is so, as `lace_tcp_status`; `LACE_EINTR` when `host.poll` said so: the connection stays;
 * `LACE_ECANCELED` when the stack was stopped; `LACE_EBADF`, also when a callback closed it; `LACE_EBUSY` from a
 * callback.
 */
int lace_tcp_wait(lace_stack *net, lace_tcp tcp, uint32_t events);

/**
 * Gives the `len` bytes at `data`, *borrowed for the call*, to be sent: as many as the ring has room for. What
 * fills segments that may go leaves at once, if nothing waits before it: `nic.send` may be called. The rest leaves in
 * the next pass.
 *
 * Returns how many, at least 1; 0 for `len` 0; `LACE_EAGAIN`: the ring is full; `LACE_ENOTCONN`: nothing more can be
 * sent; what the connection ended with; `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`.
 */
int64_t lace_tcp_send(lace_stack *net, lace_tcp tcp, const void *data, size_t len);

/**
 * Takes received bytes out of the ring: as many as there are, at most `len`, into the memory at `buffer`.
 *
 * Returns how many; 0: the peer has finished; `LACE_EAGAIN`: none yet, or a queued region comes first; what the
 * connection ended with, once all that had come was read; `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`,
 * `LACE_ENETDOWN`.
 */
int64_t lace_tcp_recv(lace_stack *net, lace_tcp tcp, void *buffer, size_t len);

/**
 * Copies received bytes that stay in the ring: as many as there are, at most `len`, into the memory at `buffer`.
 *
 * Returns how many, 0 when there are none; `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`.
 */
int64_t lace_tcp_peek(lace_stack *net, lace_tcp tcp, void *buffer, size_t len);

/**
 * Queues the `len` bytes at `memory` for what comes next in the stream: it lands there as it comes. At most four
 * regions wait in a row. The memory is *lent until* the region was finished (`lace_tcp_region_finish`), or the
 * connection was closed.
 *
 * Returns 0; `LACE_EAGAIN`: four are queued; `LACE_EINVAL` for `len` 0, or behind all that follow
 * (`lace_tcp_recv_ring`); `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`.
 */
int lace_tcp_recv_into(lace_stack *net, lace_tcp tcp, void *memory, size_t len);

/**
 * Has the next `count` bytes of the stream, behind what is queued, go through the ring before any region that is
 * queued later; from 2^63 - 1 on: all that follow.
 *
 * Returns 0; `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`.
 */
int lace_tcp_recv_ring(lace_stack *net, lace_tcp tcp, uint64_t count);

/**
 * How much of the first queued region has come.
 *
 * Returns its bytes in order from its beginning; `LACE_EAGAIN`: no region is queued; `LACE_EBADF`, `LACE_EBUSY`.
 */
int64_t lace_tcp_region(lace_stack *net, lace_tcp tcp);

/**
 * Takes the first region out of the queue, full or not: nothing is written to it again. Bytes beyond those that came
 * in order are undefined; the peer sends them again.
 *
 * Returns as `lace_tcp_region`.
 */
int64_t lace_tcp_region_finish(lace_stack *net, lace_tcp tcp);

/**
 * Starts to send `count` bytes of `*source` from byte `offset` on, behind what was given before; at most four files
 * of a connection at a time, one behind the other. The operation's result is `count`, when all of them are
 * acknowledged and no NIC holds a page of them; for `count` 0 at once. `count` has 64 bits; no source need know its
 * length. `progress` counts what is acknowledged, also of a file that fails. Lost bytes are asked for again at their
 * own offset, never below what was acknowledged. What the source names must live until the operation has ended; only
 * pages that a NIC still holds after a cancel are released later.
 *
 * Bytes given to `lace_tcp_send` before and after go before and after. `lace_tcp_shutdown` and `lace_tcp_close` may
 * follow at once: the FIN stands behind the last byte, and the operation goes on to its end. If then the file ends
 * early, or cannot be read, the connection is reset instead (RFC 9293 §3.10.5): a FIN would say that this was all.
 * Without them the bytes that there were are acknowledged first, what was queued behind is dropped, and the
 * connection is left as it is. A source that fails for bytes sent before ends the connection. Cancelling ends the
 * connection, unless nothing was sent yet.
 *
 * Returns the operation; `LACE_EFAULT`, `LACE_EINVAL`, `LACE_EMFILE`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`.
 * The operation fails with `LACE_ENODATA`: the file ended before; what the source said; what the connection ended
 * with; `LACE_ENOTCONN`; `LACE_EMFILE`: four files are being sent; `LACE_EINVAL`: more than a memory source has, or
 * than 2^62 bytes.
 */
lace_op lace_tcp_sendfile_start(lace_stack *net,
                                lace_tcp tcp,
                                const struct lace_source *source,
                                uint64_t offset,
                                uint64_t count,
                                lace_progress progress,
                                lace_done done,
                                void *ctx);

/**
 * Sends nothing more: a FIN follows what was given. Receiving goes on.
 *
 * Returns 0; `LACE_ENOTCONN`; `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`.
 */
int lace_tcp_shutdown(lace_stack *net, lace_tcp tcp);

/**
 * Closes a connection: what was given is still sent, files included, then a FIN. If received bytes were not read, or
 * more come, the peer gets a reset instead. Queued regions are the host's again.
 *
 * Returns 0; `LACE_EBADF`.
 */
int lace_tcp_close(lace_stack *net, lace_tcp tcp);

/**
 * Ends a connection at once: the peer gets a reset.
 *
 * Returns 0; `LACE_EBADF`.
 */
int lace_tcp_abort(lace_stack *net, lace_tcp tcp);

/**
 * Changes an option of a connection: one of those above.
 *
 * Returns 0; `LACE_EINVAL` for a value out of range; `LACE_EOPNOTSUPP` for an unknown option; `LACE_EBADF`,
 * `LACE_EBUSY`.
 */
int lace_tcp_set(lace_stack *net, lace_tcp tcp, uint32_t option, uint32_t value);

/**
 * Sets up `*info`, `size` being `sizeof *info`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_tcp_info_init(struct lace_tcp_info *info, size_t size);

/**
 * How a connection is doing: fills in `*info`.
 *
 * Returns 0; `LACE_EFAULT`, `LACE_EINVAL` for `*info` that was not set up; `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_tcp_info_get(lace_stack *net, lace_tcp tcp, struct lace_tcp_info *info);

/* ----------------------------------------------------------------------------
 * DHCP
 *
 * A NIC gets its address from a server (RFC 2131), or by BOOTP. The operation ends when the address is set; closing
 * it leaves the lease with the NIC, where it takes neither an operation nor a socket: `lace_poll` renews it until it
 * is released, until the host sets an address of its own, or until it is lost.
 */

/** For `lace_dhcp.timeout_ms`: try for ever. */
#define LACE_FOREVER 4294967295
/** `lace_dhcp_state`: DHCP does not run. */
#define LACE_DHCP_OFF 0
/** `lace_dhcp_state`: the NIC has its address; while it is renewed, too. */
#define LACE_DHCP_BOUND 1
/** `lace_dhcp_state`: on its way there, or giving it back. */
#define LACE_DHCP_BUSY 2

/**
 * What to ask for. Set up by `lace_dhcp_init`; copied at start. The texts and lists are *borrowed for the call* that
 * starts the operation; together they hold at most 232 bytes.
 */
struct lace_dhcp {
    /** Size of this struct. */
    uint32_t size;
    /** How long to try, in milliseconds; 0: 90000; `LACE_FOREVER`. */
    uint32_t timeout_ms;
    /** Address to ask for again; none: any. */
    struct lace_ip ip;
    /** 1: ask for `ip` straight away, without looking for servers first (INIT-REBOOT). */
    uint8_t reboot;
    /** 1: keep the NIC's address and ask for the other parameters alone (DHCPINFORM). */
    uint8_t inform;
    /** 1, the default: ask for answers by broadcast. */
    uint8_t broadcast;
    /** 1, the default: take BOOTP replies. */
    uint8_t bootp;
    /** 1, the default: ask by ARP whether another host has the address before it is used. */
    uint8_t probe;
    /** 1, the default: take classless routes (option 121). */
    uint8_t classless_routes;
    /** 1: say that this is a PXE client, and take boot data from a proxyDHCP server. */
    uint8_t pxe;
    /** 1: send `arch` (option 93). */
    uint8_t has_arch;
    /** Client system architecture (RFC 4578). */
    uint16_t arch;
    /** 1: send `ndi` (option 94). */
    uint8_t has_ndi;
    /** Network interface identifier: type, major, minor. */
    uint8_t ndi[3];
    /** 0. */
    uint8_t reserved[2];
    /** How long to wait for a proxyDHCP server, in milliseconds; 0: 1000 for a PXE client, else not at all. */
    uint32_t proxy_wait_ms;
    /** Lease time to ask for, in seconds; 0: leave it to the server. */
    uint32_t lease_s;
    /** Host name (option 12), NUL-terminated, or NULL. */
    const char *host_name;
    /** Vendor class (option 60), NUL-terminated, or NULL. */
    const char *vendor_class;
    /** User class (option 77), NUL-terminated, sent as it is, or NULL. */
    const char *user_class;
    /** Client identifier (option 61), its type byte in front, or NULL. */
    const uint8_t *client_id;
    /** Machine identifier (option 97): 16 bytes, or NULL. */
    const uint8_t *uuid;
    /** Codes of options to ask for beside the usual ones, at most 16. */
    const uint8_t *parameters;
    /** Options to send with every message, each as code, length and value. */
    const uint8_t *options;
    /** Bytes of `client_id`. */
    uint32_t client_id_len;
    /** Bytes of `parameters`. */
    uint32_t parameters_len;
    /** Bytes of `options`. */
    uint32_t options_len;
    /** 0. */
    uint32_t reserved2;
    /** Optional. */
    lace_done done;
    /** Passed to it. */
    void *ctx;
};

/**
 * What the servers granted. Set up by `lace_lease_init`; filled in while the operation runs, complete when it has
 * ended with 0. It holds its texts itself, and `boot_server.name` points into it: do not copy it. It must live until
 * the operation was closed.
 */
struct lace_lease {
    /** Size of this struct. */
    uint32_t size;
    /** Length of the network's prefix in bits. */
    uint32_t prefix;
    /** The address. */
    struct lace_ip ip;
    /** The DHCP server; none for BOOTP. */
    struct lace_ip server;
    /** The first router; none if none was named. */
    struct lace_ip gateway;
    /** Name servers; the first none ends the list. */
    struct lace_ip dns[3];
    /** Seconds the lease lasts from the request on; 0xffffffff: for ever. */
    uint32_t lease_s;
    /** MTU of the link in bytes; 0: not told. */
    uint32_t mtu;
    /**
     * Where to boot from: the address of option 150, of option 66, or of `siaddr`; else the name of option 66 or
     * `sname`; else the DHCP server. A proxyDHCP or boot server's word counts before that.
     */
    struct lace_peer boot_server;
    /** What to boot: option 67 or `file`; NUL-terminated, "" if not told. */
    char boot_file[256];
    /** Name of the boot server, if one was told. */
    char boot_server_name[128];
    /** Host name (option 12), or "". */
    char host_name[64];
    /** Domain (option 15), or "". */
    char domain[128];
    /** Root path (option 17), or "". */
    char root_path[256];
    /** Bytes of `options` in use. */
    uint32_t options_len;
    /** 1: not all options had room. */
    uint32_t options_cut;
    /** All options that came, for `lace_lease_option`. */
    uint8_t options[1024];
};

/**
 * Called when a NIC has lost its address: it expired, the server refused to prolong it, or another host has it. DHCP
 * goes on looking for another. Upcall.
 */
typedef void (*lace_dhcp_lost)(void *ctx, lace_nic_id nic, const struct lace_ip *ip);

/**
 * Sets up `*dhcp`, `size` being `sizeof *dhcp`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_dhcp_init(struct lace_dhcp *dhcp, size_t size);

/**
 * Sets up `*lease`, `size` being `sizeof *lease`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_lease_init(struct lace_lease *lease, size_t size);

/**
 * Starts DHCP on a NIC; `dhcp` NULL: the usual request; `lease` NULL: nobody wants to know more than that the
 * address is set. What ran on that NIC before is ended. The operation's result is 0.
 *
 * Returns the operation; `LACE_EFAULT`, also for a lease that overlaps the stack's own memory; `LACE_EINVAL` for
 * options that do not parse, or that the client sets itself; `LACE_ENAMETOOLONG` for more texts than fit;
 * `LACE_EMFILE`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_ETIMEDOUT`: no usable
 * answer; its detail has the text of the last refusal.
 */
lace_op lace_dhcp_start(lace_stack *net, lace_nic_id nic, const struct lace_dhcp *dhcp, struct lace_lease *lease);

/**
 * Option `code` as it came, all its parts put together: as much as fits into the `size` bytes at `buffer`, which may
 * be NULL when `size` is 0. Options that have to do with booting are a proxyDHCP or boot server's, if one had them.
 *
 * Returns the option's whole length; `LACE_ENOENT`: it did not come; `LACE_EFAULT`, `LACE_EINVAL`.
 */
int lace_lease_option(const struct lace_lease *lease, uint8_t code, void *buffer, size_t size);

/**
 * Gives a NIC's address back to its server. The address goes when the message has left, at latest after a second.
 *
 * Returns 0; `LACE_EADDRNOTAVAIL`: it has none from DHCP; `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_dhcp_release(lace_stack *net, lace_nic_id nic);

/**
 * Ends DHCP on a NIC without a word to the server: an address that it has set goes.
 *
 * Returns 0; `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_dhcp_stop(lace_stack *net, lace_nic_id nic);

/**
 * What DHCP does on a NIC.
 *
 * Returns `LACE_DHCP_OFF`, `LACE_DHCP_BOUND` or `LACE_DHCP_BUSY`; `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_dhcp_state(lace_stack *net, lace_nic_id nic);

/**
 * Has `lost` (NULL: nobody) called with `ctx` when a NIC loses an address that DHCP had set.
 *
 * Returns 0; `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_dhcp_on_lost(lace_stack *net, lace_nic_id nic, lace_dhcp_lost lost, void *ctx);

/* ----------------------------------------------------------------------------
 * Names
 *
 * Which name servers are asked. Those that the host names come before those of DHCP leases.
 */

/**
 * Sets the name servers that the host names, in the order in which they are asked: `n` addresses at `servers`, at
 * most 6; 0 for none.
 *
 * Returns 0; `LACE_EINVAL` for too many or an address that no host can have; `LACE_EFAULT`, `LACE_EAFNOSUPPORT`,
 * `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_dns_set(lace_stack *net, const struct lace_ip *servers, uint32_t n);

/**
 * Name server number `index`, from 0, in the order in which they are asked: into `*server`.
 *
 * Returns 0; `LACE_EADDRNOTAVAIL`: there are no more; `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_dns_get(lace_stack *net, uint32_t index, struct lace_ip *server);

/**
 * Sets the domains that are tried for names without a dot: `domains`, NUL-terminated, with spaces between, at most
 * 128 bytes; "" or NULL for none, and then those of leases count.
 *
 * Returns 0; `LACE_ENAMETOOLONG`, `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_dns_set_search(lace_stack *net, const char *domains);

/* ----------------------------------------------------------------------------
 * Looking names up
 *
 * Addresses of names (RFC 1035). Every client takes a name for its server and looks it up itself; answers are
 * remembered for as long as they say.
 */

/** What to look up. Set up by `lace_dns_init`; copied at start; the name must live until the operation has ended. */
struct lace_dns {
    /** Size of this struct. */
    uint32_t size;
    /** How long to try, in milliseconds; 0: until every server was asked four times. */
    uint32_t timeout_ms;
    /** Mandatory: the name, or an address as text, NUL-terminated. */
    const char *name;
    /** Optional. */
    lace_done done;
    /** Passed to it. */
    void *ctx;
};

/**
 * Sets up `*dns`, `size` being `sizeof *dns`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_dns_init(struct lace_dns *dns, size_t size);

/**
 * Starts to look a name up. The operation's result is the number of addresses found, at least 1: see
 * `lace_dns_address`.
 *
 * Returns the operation; `LACE_EFAULT` without a name; `LACE_EINVAL` for an empty one; `LACE_ENAMETOOLONG`;
 * `LACE_EMFILE`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_ENOENT`: there is no
 * such name, or it has no address; `LACE_EINVAL`: no name can be like that; `LACE_ENETUNREACH`: there is no server
 * to ask; `LACE_ETIMEDOUT`: nobody answered; `LACE_ECONNREFUSED`, `LACE_EACCES`, `LACE_EREMOTEIO`: every server
 * failed, the last one so (see the detail); `LACE_ELOOP`: too many aliases; `LACE_EOPNOTSUPP`: the answer does not
 * fit a datagram.
 */
lace_op lace_dns_start(lace_stack *net, const struct lace_dns *dns);

/**
 * Address number `index`, from 0, that a lookup has found, in the server's order: into `*ip`.
 *
 * Returns 0; `LACE_EADDRNOTAVAIL`: there are no more; `LACE_EINVAL` for an operation that is no lookup;
 * `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_dns_address(lace_stack *net, lace_op op, uint32_t index, struct lace_ip *ip);

/* ----------------------------------------------------------------------------
 * Ping
 *
 * Echo requests (RFC 792) to one host.
 */

/** What to ask. Set up by `lace_ping_init`; copied at start. */
struct lace_ping {
    /** Size of this struct. */
    uint32_t size;
    /** How often; 0: once. */
    uint32_t count;
    /** Whom; its name is looked up, and must live until the operation has ended. */
    struct lace_peer peer;
    /**
     * Bytes of payload; default 56. Answers that come in fragments need `lace_config.reassembly_buffers`, of
     * `reassembly_bytes` that hold them.
     */
    uint32_t payload;
    /** Time between requests in milliseconds; 0: 1000. */
    uint32_t interval_ms;
    /** Time to wait for the last answer in milliseconds; 0: 1000. */
    uint32_t timeout_ms;
    /** Time to live; 0: 64. */
    uint8_t ttl;
    /** 1: don't-fragment flag. */
    uint8_t dont_fragment;
    /** 1: end with the first answer. */
    uint8_t until_answer;
    /** 0. */
    uint8_t reserved;
    /** Optional: counts answers. */
    lace_progress progress;
    /** Optional. */
    lace_done done;
    /** Passed to both. */
    void *ctx;
};

/** What came of it so far. Set up by `lace_ping_stats_init`. Times in microseconds. */
struct lace_ping_stats {
    /** Size of this struct. */
    uint32_t size;
    /** Requests sent. */
    uint32_t sent;
    /** Requests answered. */
    uint32_t received;
    /** Further answers to the same request. */
    uint32_t duplicates;
    /** ICMP errors. */
    uint32_t errors;
    /** Shortest round trip. */
    uint32_t min_us;
    /** Mean of all round trips. */
    uint32_t mean_us;
    /** Longest round trip. */
    uint32_t max_us;
};

/**
 * Sets up `*ping`, `size` being `sizeof *ping`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_ping_init(struct lace_ping *ping, size_t size);

/**
 * Starts to ping. The operation's result is the number of answers, at least 1.
 *
 * Returns the operation; `LACE_EINVAL`, `LACE_EMSGSIZE` for a payload above 65507 bytes; `LACE_EMFILE`,
 * `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_ETIMEDOUT`: no answer;
 * `LACE_ENOENT`: there is no such name; `LACE_ENETUNREACH`; `LACE_EHOSTUNREACH` and `LACE_ECONNREFUSED`, also by
 * ICMP (see its detail); `LACE_EMSGSIZE`: more than fits where fragmenting is not allowed.
 */
lace_op lace_ping_start(lace_stack *net, const struct lace_ping *ping);

/**
 * Sets up `*stats`, `size` being `sizeof *stats`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_ping_stats_init(struct lace_ping_stats *stats, size_t size);

/**
 * What came of a ping so far: fills in `*stats`.
 *
 * Returns 0; `LACE_EINVAL` for an operation that is no ping, or `*stats` that was not set up; `LACE_EFAULT`,
 * `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_ping_result(lace_stack *net, lace_op op, struct lace_ping_stats *stats);

/* ----------------------------------------------------------------------------
 * TFTP
 *
 * Receiving a file, and sending one (below) (RFC 1350) with options (RFC 2347 to 2349) and windows (RFC 7440). What is left at 0 is
 * negotiated: the largest block that fits the link, a window of 32 blocks, less where that does not arrive. Servers
 * that know no options are served as well.
 */

/**
 * What to receive. Set up by `lace_tftp_get_init`; copied at start; the texts must live until the operation has
 * ended.
 */
struct lace_tftp_get {
    /** Size of this struct. */
    uint32_t size;
    /** Block size in bytes, 8 to 65464; 0: what fits one packet of the link. The server may choose less. */
    uint16_t blksize;
    /** Blocks that come without being acknowledged one by one, 1 to 32767; 0: 32. The server may choose less. */
    uint16_t windowsize;
    /** The server; port 0: 69. */
    struct lace_peer server;
    /** Mandatory: name of the file, as the server knows it. */
    const char *path;
    /**
     * Longest wait before a packet is repeated, in milliseconds, up to 255000; 0: 1000. The server is asked for the
     * same.
     */
    uint32_t timeout_ms;
    /**
     * Waits for the whole timeout in a row, without an answer, before the transfer fails, up to 255; 0: 8. Waits for the
     * first answer are short at first and double, up to 4 s: with 8, a silent server is given up after half a minute, a
     * host that does not answer ARP after one.
     */
    uint32_t retries;
    /** How long a `write` sink may take nothing before the transfer fails, in milliseconds; 0: 120000. */
    uint32_t sink_stall_ms;
    /** 1: convert line ends (mode netascii); 0: bytes as they are (mode octet). */
    uint32_t netascii;
    /** Optional: bytes confirmed, of the file's size if the server tells it. */
    lace_progress progress;
    /** Optional. */
    lace_done done;
    /** Passed to both. */
    void *ctx;
    /**
     * UDP port of the client, for firewalls that let only that one through; 0: one that nobody can guess, another for
     * each transfer (RFC 1350 section 4), which is safer. The operation fails with `LACE_EADDRINUSE` while a socket or
     * another transfer has the port.
     */
    uint16_t local_port;
    /** 0. */
    uint16_t reserved[3];
};

/**
 * Sets up `*get`, `size` being `sizeof *get`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_tftp_get_init(struct lace_tftp_get *get, size_t size);

/**
 * Starts to receive a file into `*sink`. The operation's result is the number of bytes; bytes of a memory sink
 * beyond what was confirmed (see its progress) are undefined.
 *
 * Returns the operation; `LACE_EFAULT`, also for memory of the sink that contains address 0, wraps, or overlaps the
 * stack's; `LACE_EINVAL`: no server, an empty path, numbers out of range; `LACE_ENAMETOOLONG`; `LACE_EMFILE`;
 * `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_ENOENT`, `LACE_EACCES`,
 * `LACE_EREMOTEIO` and others for what the server says (see its detail); `LACE_ETIMEDOUT`: no answer;
 * `LACE_EHOSTUNREACH`, `LACE_ENETUNREACH`: no such host, no way to it; `LACE_ECONNREFUSED`: nothing listens there;
 * `LACE_EFBIG`: the sink is too small; `LACE_EPROTO`; `LACE_ETIME`: the sink stalled; what the sink said, or looking the
 * name up fails with.
 */
lace_op lace_tftp_get_start(lace_stack *net,
                            const struct lace_tftp_get *get,
                            const struct lace_sink *sink);

/**
 * What was agreed with the server: the block size in bytes and the window in blocks. Either pointer may be NULL.
 *
 * Returns 0; `LACE_EINVAL` for an operation that is no TFTP transfer; `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_tftp_agreed(lace_stack *net, lace_op op, uint16_t *blksize, uint16_t *windowsize);

/* ----------------------------------------------------------------------------
 * Sending files by TFTP
 *
 * Feature `put`.
 */

/** What to send. Set up by `lace_tftp_put_init`; copied at start; the texts must live until the operation has ended. */
struct lace_tftp_put {
    /** Size of this struct. */
    uint32_t size;
    /**
     * Block size in bytes, 8 to 65464; 0: what fits one packet of the link. The server may choose less. Blocks of a
     * source that is not memory, and those of mode netascii, are never larger than one packet.
     */
    uint16_t blksize;
    /** Blocks that are sent before one acknowledgement is waited for, 1 to 32767; 0: 32. The server may choose less. */
    uint16_t windowsize;
    /** The server; port 0: 69. */
    struct lace_peer server;
    /** Mandatory: name of the file, as the server is to know it. */
    const char *path;
    /**
     * Bytes to send; default: the whole memory, or until `read` or `map` says that the file ends. The server is told
     * beforehand (RFC 2349).
     */
    uint64_t len;
    /**
     * Longest wait before packets are repeated, in milliseconds, up to 255000; 0: 1000. The server is asked for the
     * same.
     */
    uint32_t timeout_ms;
    /**
     * Waits for the whole timeout in a row, without an answer, before the transfer fails, up to 255; 0: 8. Waits for the
     * first answer are short at first and double, up to 4 s: with 8, a silent server is given up after half a minute, a
     * host that does not answer ARP after one.
     */
    uint32_t retries;
    /** 1: convert line ends (mode netascii); 0: bytes as they are (mode octet). */
    uint32_t netascii;
    /** UDP port of the client; 0: one that nobody can guess. See `lace_tftp_get`. */
    uint16_t local_port;
    /** 0. */
    uint16_t reserved;
    /** Optional: bytes the server has acknowledged, of `len` if that is known. */
    lace_progress progress;
    /** Optional. */
    lace_done done;
    /** Passed to both. */
    void *ctx;
};

/**
 * Sets up `*put`, `size` being `sizeof *put`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_tftp_put_init(struct lace_tftp_put *put, size_t size);

/**
 * Starts to send a file from `*source` (RFC 1350 section 4, RFC 7440). The operation's result is the number of bytes
 * of the file. What the source names must live, and must not change, until the operation has ended; `read` and `map`
 * are asked for the same bytes again when packets were lost.
 *
 * Returns the operation; `LACE_EFAULT`, also for memory of the source that contains address 0, wraps, or overlaps the
 * stack's; `LACE_EINVAL`: no server, an empty path, numbers out of range; `LACE_ENAMETOOLONG`; `LACE_EMFILE`;
 * `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_EACCES`, `LACE_EEXIST`, `LACE_ENOSPC`,
 * `LACE_EREMOTEIO` and others for what the server says (see its detail); `LACE_ENODATA`: the source ended before
 * `len`; `LACE_ETIMEDOUT`: no answer; `LACE_EHOSTUNREACH`, `LACE_ENETUNREACH`: no such host, no way to it;
 * `LACE_ECONNREFUSED`: nothing listens there; `LACE_EPROTO`; what the source said, or looking the name up fails with.
 */
lace_op lace_tftp_put_start(lace_stack *net, const struct lace_tftp_put *put, const struct lace_source *source);

/* ----------------------------------------------------------------------------
 * Files
 *
 * A file at a TFTP server, on an NFS export (`lace_nfs_open_start`) or at an HTTP server (`lace_http_open_start`), read in
 * pieces, as a file system driver wants it. From TFTP and NFS the transfer runs ahead of the reader into memory that the
 * reader lends. From TFTP, what fits the reader's own buffer lands there directly. An open file is an operation:
 * `lace_op_detail` says why it failed, `lace_op_close` closes it.
 */

/** Names an open file: an operation. */
typedef lace_op lace_file;

/**
 * Opens the file that `*get` names (feature `file`). `progress` and `done` are called as for a transfer; `done` when it was closed by
 * an error. The `len` bytes at `readahead`, at least 512, are *lent until* the file is closed; a few blocks more
 * than the window make the transfer run at full speed.
 *
 * Returns the file, which is open when `lace_file_wait` or `lace_file_status` says so; `LACE_ENOMEM`: too little
 * memory; else as `lace_tftp_get_start`.
 */
lace_file lace_file_open_start(lace_stack *net,
                               const struct lace_tftp_get *get,
                               void *readahead,
                               size_t len);

/**
 * Begins to read `len` bytes from the file's position on into the memory at `buffer`, *lent until* the read has
 * ended. What lies behind the bytes that `lace_file_status` counts may have changed too.
 *
 * Returns 0; `LACE_EAGAIN`: a read is under way; `LACE_EFAULT`; `LACE_EBADF`; `LACE_EBUSY`; what the file ended
 * with.
 */
int lace_file_read_start(lace_stack *net, lace_file file, void *buffer, size_t len);

/**
 * What has become of the read that was begun last: told once.
 *
 * Returns the number of bytes read, less than asked for only at the end of the file, where it is 0; `LACE_EAGAIN`
 * while it goes on, or the file is still being opened; 0 also when the file is open and nothing was asked for;
 * `LACE_EBADF`; `LACE_EBUSY`; what the file ended with, as from `lace_tftp_get_start`.
 */
int64_t lace_file_status(lace_stack *net, lace_file file);

/**
 * Polls until the read that was begun last has ended, or else the file is open, looking at `host.poll` meanwhile.
 *
 * Returns as `lace_file_status`; `LACE_EINTR` when `host.poll` ended it: the read is given up, the file stays open
 * at the position where it was; `LACE_ECANCELED` when the stack was stopped; `LACE_EBUSY` from a callback. A
 * negative `file`, such as a failed open gives, is returned as it is.
 */
int64_t lace_file_wait(lace_stack *net, lace_file file);

/**
 * Moves the position at which the next read begins; beyond the end reads get nothing. From TFTP, which knows no
 * offsets, what lies between is passed over forwards; backwards, the file is asked for again.
 *
 * Returns 0; `LACE_EAGAIN`: a read is under way; `LACE_EBADF`; `LACE_EBUSY`; what the file ended with.
 */
int lace_file_seek(lace_stack *net, lace_file file, uint64_t position);

/**
 * Where the next read begins.
 *
 * Returns that; `LACE_EBADF`; `LACE_EBUSY`; what the file ended with.
 */
int64_t lace_file_position(lace_stack *net, lace_file file);

/**
 * Bytes of the file.
 *
 * Returns that; `LACE_ENODATA` while it is not known: some servers do not tell before the end; `LACE_EBADF`;
 * `LACE_EBUSY`; what the file ended with.
 */
int64_t lace_file_size(lace_stack *net, lace_file file);

/* ----------------------------------------------------------------------------
 * NFS
 *
 * Reading from servers of NFS version 3 (RFC 1813). A mount is a value that the host holds: `lace_nfs_mount_start`
 * fills it in, everything else works with it. Paths are those below the export's root; symbolic links on the way are
 * followed. Stacks of `lace_config_init` have no memory for NFS (`LACE_EMFILE`): set `nfs_jobs`, for TCP
 * `tcp_connections` too, to two more than are to be open at a time, or take `lace_config_full`.
 */

/** `lace_nfs.transport`: whatever the server offers. */
#define LACE_NFS_AUTO 0
/** `lace_nfs.transport`: UDP. */
#define LACE_NFS_UDP 1
/** `lace_nfs.transport`: TCP. */
#define LACE_NFS_TCP 2
/** `lace_nfs_access_start`: read a file or directory. */
#define LACE_NFS_READ 1
/** `lace_nfs_access_start`: find a name in a directory. */
#define LACE_NFS_LOOKUP 2
/** `lace_nfs_access_start`: rewrite or change. */
#define LACE_NFS_MODIFY 4
/** `lace_nfs_access_start`: add data or names. */
#define LACE_NFS_EXTEND 8
/** `lace_nfs_access_start`: remove names. */
#define LACE_NFS_DELETE 16
/** `lace_nfs_access_start`: execute a file. */
#define LACE_NFS_EXECUTE 32
/** Type: regular file. */
#define LACE_NFS_FILE 1
/** Type: directory. */
#define LACE_NFS_DIRECTORY 2
/** Type: block device. */
#define LACE_NFS_BLOCK 3
/** Type: character device. */
#define LACE_NFS_CHARACTER 4
/** Type: symbolic link. */
#define LACE_NFS_LINK 5
/** Type: socket. */
#define LACE_NFS_SOCKET 6
/** Type: named pipe. */
#define LACE_NFS_FIFO 7

/**
 * A server and one of its exports. Set up by `lace_nfs_init`; copied at start; the texts must live until the
 * operation has ended, the path as long as the mount is used.
 */
struct lace_nfs {
    /** Size of this struct. */
    uint32_t size;
    /** `LACE_NFS_...`: how calls travel. */
    uint32_t transport;
    /** The server; its port is the port mapper's, 0: 111. */
    struct lace_peer server;
    /** Path of the export, NUL-terminated, at most 1024 bytes. Not needed to list exports. */
    const char *path;
    /** As whom files are read: user. */
    uint32_t uid;
    /** Group. */
    uint32_t gid;
    /** 1: without any credentials (`AUTH_NONE`). */
    uint32_t nobody;
    /** How long the server may say nothing, in milliseconds; 0: as long as suits most. */
    uint32_t timeout_ms;
    /** Port of the NFS program; 0: the port mapper is asked. */
    uint16_t nfs_port;
    /** Port of the MOUNT program; 0: the port mapper is asked. */
    uint16_t mount_port;
    /** 0. */
    uint32_t reserved;
    /** Optional. */
    lace_done done;
    /** Passed to it. */
    void *ctx;
};

/**
 * A mounted export. Set up by `lace_mount_init`, filled in by `lace_nfs_mount_result`. It may be copied; nothing of
 * the stack's is held for it.
 */
struct lace_mount {
    /** Size of this struct. */
    uint32_t size;
    /** How calls travel. */
    uint32_t transport;
    /** The server. */
    struct lace_ip server;
    /** Port of the NFS program. */
    uint16_t nfs_port;
    /** Port of the MOUNT program; 0: not known. */
    uint16_t mount_port;
    /** User. */
    uint32_t uid;
    /** Group. */
    uint32_t gid;
    /** 1: without credentials. */
    uint32_t nobody;
    /** Most bytes of a READ that the server gives; 0: not known. */
    uint32_t read_max;
    /** Bytes of a part of a directory that the server likes; 0: not known. */
    uint32_t dir_preferred;
    /** Bytes of `root`. */
    uint32_t root_len;
    /** Handle of the export. */
    uint8_t root[64];
    /** Path of the export; must live as long as the mount is used. */
    const char *path;
};

/**
 * What to read. Set up by `lace_nfs_get_init`; copied at start; the mount is *borrowed for the call*; the path must
 * live until the operation has ended.
 */
struct lace_nfs_get {
    /** Size of this struct. */
    uint32_t size;
    /** Bytes of a READ; 0: what works best, remembered per server. */
    uint32_t read_size;
    /** Mandatory: the export. */
    const struct lace_mount *mount;
    /** Mandatory: path below its root, NUL-terminated. */
    const char *path;
    /** First byte. */
    uint64_t offset;
    /** Most bytes; default: all that follow. */
    uint64_t len;
    /** READs in flight; 0: as many as work. */
    uint32_t depth;
    /** How long the server may say nothing, in milliseconds; 0: as long as suits most. */
    uint32_t timeout_ms;
    /** How long a `write` sink may take nothing before the transfer fails, in milliseconds; 0: 120000. */
    uint32_t sink_stall_ms;
    /** 0. */
    uint32_t reserved;
    /** Optional: bytes confirmed. */
    lace_progress progress;
    /** Optional. */
    lace_done done;
    /** Passed to both. */
    void *ctx;
};

/** Attributes of a file. Set up by `lace_nfs_attr_init`. */
struct lace_nfs_attr {
    /** Size of this struct. */
    uint32_t size;
    /** Type. */
    uint32_t kind;
    /** Permissions. */
    uint32_t mode;
    /** Hard links. */
    uint32_t links;
    /** Owner. */
    uint32_t uid;
    /** Group. */
    uint32_t gid;
    /** Size of the file in bytes. */
    uint64_t file_size;
    /** Bytes of disk used. */
    uint64_t used;
    /** File system. */
    uint64_t fsid;
    /** File number. */
    uint64_t fileid;
    /** Device number: major. */
    uint32_t rdev_major;
    /** Minor. */
    uint32_t rdev_minor;
    /** Last access: seconds since 1970. */
    uint32_t atime_s;
    /** And nanoseconds. */
    uint32_t atime_ns;
    /** Last change of the contents. */
    uint32_t mtime_s;
    /** And nanoseconds. */
    uint32_t mtime_ns;
    /** Last change of the attributes. */
    uint32_t ctime_s;
    /** And nanoseconds. */
    uint32_t ctime_ns;
};

/** How full a file system is. Set up by `lace_nfs_stat_init`. */
struct lace_nfs_stat {
    /** Size of this struct. */
    uint32_t size;
    /** 0. */
    uint32_t reserved;
    /** Size in bytes. */
    uint64_t total_bytes;
    /** Free bytes. */
    uint64_t free_bytes;
    /** Free bytes that the user may have. */
    uint64_t available_bytes;
    /** Files there can be. */
    uint64_t total_files;
    /** Files there can yet be. */
    uint64_t free_files;
    /** Files the user can yet make. */
    uint64_t available_files;
};

/**
 * One name of a listing, followed by the name itself, a NUL, and padding: the next one begins `record_len` bytes
 * after this. In the byte order of this machine. The layout is frozen.
 */
struct lace_nfs_entry {
    /** File number. */
    uint64_t fileid;
    /** Size in bytes. */
    uint64_t size;
    /** Last change of the contents: seconds since 1970. */
    uint32_t mtime_s;
    /** And nanoseconds. */
    uint32_t mtime_ns;
    /** Permissions. */
    uint32_t mode;
    /** `LACE_NFS_FILE` and so on; 0: the server does not tell, and only file number and name count. */
    uint32_t kind;
    /** Bytes of this record, name and padding included: a multiple of 8. */
    uint32_t record_len;
    /** Bytes of the name. */
    uint32_t name_len;
};

/**
 * Sets up `*nfs`, `size` being `sizeof *nfs`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_nfs_init(struct lace_nfs *nfs, size_t size);

/**
 * Sets up `*mount`, `size` being `sizeof *mount`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_mount_init(struct lace_mount *mount, size_t size);

/**
 * Starts to mount an export. The operation's result is 0; `lace_nfs_mount_result` then gives the mount.
 *
 * Returns the operation; `LACE_EINVAL`, `LACE_EFAULT`, `LACE_ENAMETOOLONG`, `LACE_EOPNOTSUPP` for a transport that
 * is not built in, `LACE_EMFILE`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with
 * `LACE_EACCES`, `LACE_ENOENT` and others for what the server says (see its detail); `LACE_EOPNOTSUPP`: it has no
 * such program; `LACE_ETIMEDOUT`; `LACE_ECONNREFUSED`; `LACE_EMFILE`: `lace_config.nfs_jobs` is reached.
 */
lace_op lace_nfs_mount_start(lace_stack *net, const struct lace_nfs *nfs);

/**
 * Fills in `*mount` from the operation that has mounted it.
 *
 * Returns 0; `LACE_EAGAIN` while it goes on; `LACE_EINVAL`: it is another kind of operation, it failed, or `*mount`
 * was not set up; `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_nfs_mount_result(lace_stack *net, lace_op op, struct lace_mount *mount);

/**
 * Starts to tell a server that an export is no longer in use. The operation's result is 0.
 *
 * Returns as `lace_nfs_mount_start`.
 */
lace_op lace_nfs_unmount_start(lace_stack *net, const struct lace_nfs *nfs);

/**
 * Starts to list the exports of a server into `*sink`: a line each, the path, then the hosts and groups that may
 * mount it, with tabs between. The operation's result is their number.
 *
 * Returns as `lace_nfs_mount_start`.
 */
lace_op lace_nfs_exports_start(lace_stack *net, const struct lace_nfs *nfs, const struct lace_sink *sink);

/**
 * Sets up `*get`, `size` being `sizeof *get`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_nfs_get_init(struct lace_nfs_get *get, size_t size);

/**
 * Starts to read a file, or a part of it, into `*sink`. The operation's result is the number of bytes: fewer than
 * asked for only where the file ends.
 *
 * Returns the operation; `LACE_EFAULT`, also for memory of the sink that contains address 0, wraps, or overlaps the
 * stack's; `LACE_EINVAL`: a mount that is none, numbers out of range; `LACE_ENAMETOOLONG`; `LACE_EMFILE`;
 * `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_ENOENT`, `LACE_EACCES`, `LACE_EISDIR`,
 * `LACE_ENOTDIR`, `LACE_ESTALE`, `LACE_EREMOTEIO` and others for what the server says (see its detail);
 * `LACE_ELOOP`: too many links; `LACE_ETIMEDOUT`; `LACE_EFBIG`: the sink is too small; `LACE_ETIME`: the sink
 * stalled; what the sink said.
 */
lace_op lace_nfs_get_start(lace_stack *net, const struct lace_nfs_get *get, const struct lace_sink *sink);

/**
 * Opens the file that `*get` names on an NFS export. The position is `offset` at first; `get->len` and
 * `sink_stall_ms` do not matter. `progress` and `done` are called as for a transfer; `done` when it was closed by an
 * error. The `len` bytes at `readahead`, at least 512, are *lent until* the file is closed; 256 KiB make reading in order
 * run at full speed, less does elsewhere. Each open file takes one of `lace_config.nfs_jobs`, and over TCP a
 * connection.
 *
 * Returns the file, which is open when `lace_file_wait` or `lace_file_status` says so; `LACE_ENOMEM`: too little
 * memory; else as `lace_nfs_get_start`.
 */
lace_file lace_nfs_open_start(lace_stack *net,
                              const struct lace_nfs_get *get,
                              void *readahead,
                              size_t len);

/**
 * Starts to ask for the attributes of a file, or, with `follow` 0, of the link that the path may name. The
 * operation's result is the file's size in bytes; `lace_nfs_attributes` gives the rest. The path must live until the
 * operation has ended; so it is with the other questions.
 *
 * Returns and fails as `lace_nfs_get_start`.
 */
lace_op lace_nfs_getattr_start(lace_stack *net,
                               const struct lace_mount *mount,
                               const char *path,
                               int follow,
                               lace_done done,
                               void *ctx);

/**
 * Starts to ask which of `bits` (`LACE_NFS_READ` to `LACE_NFS_EXECUTE`) are allowed. The operation's result is those
 * bits.
 *
 * Returns and fails as `lace_nfs_get_start`.
 */
lace_op lace_nfs_access_start(lace_stack *net,
                              const struct lace_mount *mount,
                              const char *path,
                              uint32_t bits,
                              lace_done done,
                              void *ctx);

/**
 * Starts to ask where a symbolic link leads, into `*sink`. The operation's result is the length in bytes.
 *
 * Returns and fails as `lace_nfs_get_start`.
 */
lace_op lace_nfs_readlink_start(lace_stack *net,
                                const struct lace_mount *mount,
                                const char *path,
                                const struct lace_sink *sink,
                                lace_done done,
                                void *ctx);

/**
 * Starts to list a directory, without "." and "..", into `*sink`: a `struct lace_nfs_entry` for each name. The
 * operation's result is their number.
 *
 * Returns and fails as `lace_nfs_get_start`.
 */
lace_op lace_nfs_list_start(lace_stack *net,
                            const struct lace_mount *mount,
                            const char *path,
                            const struct lace_sink *sink,
                            lace_done done,
                            void *ctx);

/**
 * Starts to ask how full the file system of a path is. The operation's result is the bytes that the user may still
 * have; `lace_nfs_fsstat` gives the rest.
 *
 * Returns and fails as `lace_nfs_get_start`.
 */
lace_op lace_nfs_fsstat_start(lace_stack *net,
                              const struct lace_mount *mount,
                              const char *path,
                              lace_done done,
                              void *ctx);

/**
 * Sets up `*attr`, `size` being `sizeof *attr`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_nfs_attr_init(struct lace_nfs_attr *attr, size_t size);

/**
 * Fills in `*attr` from the operation that has asked for attributes.
 *
 * Returns 0; `LACE_EAGAIN` while it goes on; `LACE_EINVAL`: it is another kind of operation, it failed, or `*attr`
 * was not set up; `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_nfs_attributes(lace_stack *net, lace_op op, struct lace_nfs_attr *attr);

/**
 * Sets up `*stat`, `size` being `sizeof *stat`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_nfs_stat_init(struct lace_nfs_stat *stat, size_t size);

/**
 * Fills in `*stat` from the operation that has asked how full a file system is.
 *
 * Returns as `lace_nfs_attributes`.
 */
int lace_nfs_fsstat(lace_stack *net, lace_op op, struct lace_nfs_stat *stat);

/* ----------------------------------------------------------------------------
 * HTTP
 *
 * Files by HTTP/1.1 (RFC 9110, RFC 9112), whole or in part. A body goes straight to its sink, without a buffer between.
 * A connection that breaks is opened again, and the transfer goes on where it was if the server says that the file is
 * still the same; so a result is never a mixture of two files, nor a part of one taken for the whole. A connection
 * waits 4 s for the next operation with the same server. Stacks of `lace_config_init` have no memory for HTTP
 * (`LACE_EMFILE`): set `http_jobs`, and `tcp_connections` to two more than are to be open at a time, or take
 * `lace_config_full`.
 */

/** What to fetch. Set up by `lace_http_init`; copied at start; the texts must live until the operation has ended. */
struct lace_http {
    /** Size of this struct. */
    uint32_t size;
    /** Redirects that are followed, 0 to 255; default: 8. */
    uint32_t redirects;
    /**
     * Mandatory: `http://HOST[:PORT][/PATH][?QUERY]`, NUL-terminated, at most 1024 bytes. `USER:PASSWORD@` before the
     * host counts unless `user` is given.
     */
    const char *url;
    /**
     * Optional: user name for Basic authorisation (RFC 7617), NUL-terminated, at most 255 bytes, without a colon. It
     * is told to the host and port of `url` only, wherever redirects lead.
     */
    const char *user;
    /** Its password; NULL: an empty one. */
    const char *password;
    /**
     * Optional: further fields of the request, NUL-terminated, at most 2048 bytes: lines "Name: value" with a line
     * feed, or CR and LF, between them. They are told to the host and port of `url` only.
     */
    const char *fields;
    /**
     * Optional: what `lace_http_validator` told when the bytes before `offset` came. If the file is another one by
     * now, the operation fails with `LACE_ESTALE` and the sink gets nothing.
     */
    const char *if_range;
    /** First byte; the sink's first byte is that one. */
    uint64_t offset;
    /** Most bytes; default: all that follow. */
    uint64_t len;
    /** How long the server may say nothing, in milliseconds; 0: 30000. */
    uint32_t timeout_ms;
    /**
     * Connections that may break before the transfer fails, 0 to 255; each mebibyte that comes makes up for all
     * before; default: 8.
     */
    uint32_t retries;
    /** How long a `write` sink may take nothing before the transfer fails, in milliseconds; 0: 120000. */
    uint32_t sink_stall_ms;
    /** 1: the connection is not kept for the next operation. */
    uint32_t close;
    /**
     * Largest receive window in bytes, as in `lace_tcp_options`; 0: 2 MiB. More than the NIC's ring of frames holds only
     * makes frames drop. It counts for connections that are opened, not for one that is kept.
     */
    uint32_t receive_max;
    /** 0. */
    uint32_t reserved;
    /** Optional: bytes that have come, of those that will, if the server tells it. */
    lace_progress progress;
    /** Optional. */
    lace_done done;
    /** Passed to both. */
    void *ctx;
};

/**
 * Sets up `*http`, `size` being `sizeof *http`.
 *
 * Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
 */
int lace_http_init(struct lace_http *http, size_t size);

/**
 * Starts to fetch a file, or a part of it, into `*sink`. The operation's result is the number of bytes: fewer than
 * `len` only where the file ends. When it failed, as many bytes of a memory sink as its progress says are those of the
 * file; the others are undefined.
 *
 * Returns the operation; `LACE_EFAULT`, also for memory of the sink that contains address 0, wraps, or overlaps the
 * stack's; `LACE_EINVAL`: a URL that is none, fields or a validator that cannot be, numbers out of range;
 * `LACE_ENAMETOOLONG`; `LACE_EMSGSIZE`: too many fields; `LACE_EOPNOTSUPP`: an `https` URL; `LACE_EAFNOSUPPORT`: an IPv6 address;
 * `LACE_EMFILE`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_ENOENT`, `LACE_EACCES`,
 * `LACE_EREMOTEIO` and others for the status that the server gives (see its detail, `lace_http_status` and
 * `lace_http_field`); with what looking the name up and opening the connection fail with; `LACE_EMFILE`:
 * `lace_config.http_jobs` or `tcp_connections` is reached; `LACE_ETIMEDOUT`; `LACE_ENODATA`: the body ended before the
 * length that was promised, or the file before `offset`; `LACE_ESTALE`: the file changed between two parts;
 * `LACE_ELOOP`: too many redirects; `LACE_EFBIG`: the sink is too small, or the length is no file's; `LACE_EMSGSIZE`:
 * the response's head is longer than 4096 bytes or has more than 64 fields; `LACE_EOPNOTSUPP`: the body is compressed,
 * or a redirect leads to another scheme; `LACE_EPROTO`: the detail says how the server broke the protocol;
 * `LACE_ECONNRESET`; `LACE_ETIME`: the sink stalled; what the sink said.
 */
lace_op lace_http_get_start(lace_stack *net,
                            const struct lace_http *http,
                            const struct lace_sink *sink);

/**
 * Starts to ask what would be said of a file, without its bytes (method HEAD); `offset`, `len` and `if_range` do not
 * count. The operation's result is the file's length, 0 if the server does not tell; see `lace_http_field` too.
 *
 * Returns as `lace_http_get_start`.
 */
lace_op lace_http_head_start(lace_stack *net, const struct lace_http *http);

/**
 * Opens the file that `*http` names, to be read in pieces by `lace_file_read_start` and its kin. The position is
 * `offset` at first; `len` and `sink_stall_ms` do not count. Bytes land in the buffers they are read into; between
 * reads the server is held back. To read elsewhere is another request, for what lies there; servers that give no parts
 * send the file from its beginning, which is passed over. `progress` and `done` are called as for a transfer; `done`
 * when it was closed by an error. Each open file takes one of `lace_config.http_jobs` and a connection.
 *
 * Returns the file, which is open when `lace_file_wait` or `lace_file_status` says so; else as `lace_http_get_start`.
 * Reads fail as that does, with `LACE_ESTALE` when the file at the server is no longer the one that was opened.
 */
lace_file lace_http_open_start(lace_stack *net, const struct lace_http *http);

/**
 * The status code of the last response, such as 200; after redirects, of the response that they led to.
 *
 * Returns that; `LACE_EAGAIN` before a response came; `LACE_EINVAL` for an operation of another kind; `LACE_EBADF`,
 * `LACE_EBUSY`.
 */
int lace_http_status(lace_stack *net, lace_op op);

/**
 * Writes the value of the first field `name` of the last response's head, such as "Content-Type", NUL-terminated, to
 * the `size` bytes at `text`, cut to fit. With NULL for `name` the whole head, lines with CR and LF at their ends.
 * `text` may be NULL if `size` is 0. Bytes are as the server sent them. Readable until the operation is closed.
 *
 * Returns the length of the whole value without the NUL; `LACE_ENOENT`: there is no such field; `LACE_EAGAIN` before a
 * response came; `LACE_EFAULT`; `LACE_EMSGSIZE`: a name of more than 64 bytes; `LACE_EINVAL` for an operation of
 * another kind; `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_http_field(lace_stack *net, lace_op op, const char *name, char *text, size_t size);

/**
 * Writes what tells this state of the file from others, a strong entity tag or a date, NUL-terminated, to the `size`
 * bytes at `text`: what `lace_http.if_range` wants when the rest of the file is fetched later. 129 bytes are always
 * enough. Readable until the operation is closed, also when it failed.
 *
 * Returns its length without the NUL; `LACE_ENOENT`: the server told none, or no response came; `LACE_EMSGSIZE`: too
 * little room; `LACE_EFAULT`; `LACE_EINVAL` for an operation of another kind; `LACE_EBADF`, `LACE_EBUSY`.
 */
int lace_http_validator(lace_stack *net, lace_op op, char *text, size_t size);

/* ----------------------------------------------------------------------------
 * Statistics
 *
 * One counter for each kind of drop and for each event worth counting, numbered from 0. They wrap at 2^32. Numbers
 * keep their meaning; new ones are added at the end.
 */

/** How many counters there are. */
uint32_t lace_stat_count(void);

/** The name of counter `id`, such as "drop_udp_checksum"; static. NULL for a number that no counter has. */
const char *lace_stat_name(uint32_t id);

/**
 * The value of counter `id`.
 *
 * Returns it; `LACE_EINVAL` for a number that no counter has; `LACE_EBADF`, `LACE_EBUSY`.
 */
int64_t lace_stat_get(lace_stack *net, uint32_t id);

#ifdef __cplusplus
}
#endif

#endif /* BOOTLACE_H */
