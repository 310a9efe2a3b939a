//! # TCP
//!
//! Connections (RFC 9293). What is received goes through a ring of the stack's, or straight into regions that the
//! host queues: a header can be read from the ring and the body land in memory, in one connection. What is sent goes
//! through a ring as well, or comes from a source that is asked again for what was lost. Handlers are told what
//! happens; hosts that poll ask `lace_tcp_status`.

use super::addr::{lace_ip, lace_peer, v4_at};
use super::guard::{Upcall, enter, lace_stack};
use super::handle::{Kind, pack, request};
use super::op::{Notify, begin, lace_done, lace_op, lace_progress};
use super::region::Region;
use super::results::{LACE_EAGAIN, LACE_EFAULT, LACE_EINVAL, LACE_EOPNOTSUPP, code, status, value};
use super::run::{block, borrowed};
use super::sink::{lace_source, source_at};
use super::structs::{Sized32, init, read_or_fresh, writable, write};
use super::udp::Handler;
use crate::client::ops::Client;
use crate::client::stream::{Connect, Sendfile};
use crate::storage::host::Endpoint;
use crate::storage::slots::Key;
use crate::storage::time::Duration;
use crate::tcp::{Algorithm, Event, Events, Keepalive, Options, State};
use core::ffi::{c_int, c_void};

/// Names a TCP connection: positive.
pub type lace_tcp = i32;
/// Names a TCP listener: positive.
pub type lace_listener = i32;

/// Event: the connection is established.
pub const LACE_TCP_CONNECTED: u32 = 1;
/// Event: the ring has bytes to read, or the peer has finished.
pub const LACE_TCP_READABLE: u32 = 2;
/// Event: the ring has room for bytes to send.
pub const LACE_TCP_WRITABLE: u32 = 4;
/// Event: the first queued region has grown, or is full.
pub const LACE_TCP_REGION: u32 = 8;
/// Event: everything given to be sent is acknowledged.
pub const LACE_TCP_SENT: u32 = 16;
/// Event: a file was sent, or its sending has failed.
pub const LACE_TCP_FILE: u32 = 32;
/// Event: the peer has finished sending.
pub const LACE_TCP_FINISHED: u32 = 64;
/// Event: the connection is over; `lace_tcp_error` tells why.
pub const LACE_TCP_CLOSED: u32 = 128;
/// Event: a listener has a connection to accept.
pub const LACE_TCP_ACCEPT: u32 = 256;

/// Called when something has happened on a connection or a listener: `events` are bits of `LACE_TCP_...`, gathered
/// since the last call. Upcall: it may send, receive and close.
pub type lace_tcp_handler = Option<unsafe extern "C" fn(ctx: *mut c_void, handle: i32, events: u32)>;

/// How a connection is to behave. Set up by `lace_tcp_init`; copied by the call that it is given to.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_tcp_options {
    /// Size of this struct.
    pub size: u32,
    /// Largest receive window in bytes, ring and regions together; 0: 2 MiB. It counts from the beginning of a
    /// connection on. More than the NIC's ring of frames holds only makes frames drop.
    pub receive_max: u32,
    /// How long a connection may take to be established, in milliseconds; 0: 180000.
    pub connect_timeout_ms: u32,
    /// How long sent data may go unacknowledged, in milliseconds; 0: 120000.
    pub user_timeout_ms: u32,
    /// Longest wait before data is acknowledged, in milliseconds, below 500; 0: 40.
    pub delayed_ack_ms: u32,
    /// Smallest part of the retransmission timeout beyond the round trip, in milliseconds; 0: 200.
    pub min_rto_ms: u32,
    /// How long nothing must have come before the first keepalive probe, in milliseconds; 0: no probes. Probes follow
    /// each other at a ninety-sixth of that; nine go unanswered before the connection is given up.
    pub keepalive_ms: u32,
    /// 1: send short segments at once (no Nagle algorithm).
    pub no_delay: u8,
    /// 1: congestion control by NewReno instead of CUBIC.
    pub new_reno: u8,
    /// 1: offer no timestamps.
    pub no_timestamps: u8,
    /// 1: offer no selective acknowledgements.
    pub no_sack: u8,
    /// Time to live; 0: 64.
    pub ttl: u8,
    /// Type of service byte.
    pub tos: u8,
    /// Port of ours, in host order; 0: an unpredictable one.
    pub port: u16,
    /// Address of ours; none: the one that fits the way.
    pub ip: lace_ip,
}

// SAFETY: integers only, the size in front.
unsafe impl Sized32 for lace_tcp_options {
    const MIN: usize = size_of::<lace_tcp_options>();
}

impl lace_tcp_options {
    fn options(&self) -> Result<Options, i32> {
        let default = Options::default();
        let or = |ms: u32, default| if ms == 0 { default } else { Duration::from_millis(u64::from(ms)) };
        if self.delayed_ack_ms >= 500 {
            return Err(LACE_EINVAL);
        }
        Ok(Options {
            nagle: self.no_delay == 0,
            delayed_ack: or(self.delayed_ack_ms, default.delayed_ack),
            keepalive: keepalive(self.keepalive_ms),
            user_timeout: or(self.user_timeout_ms, default.user_timeout),
            connect_timeout: or(self.connect_timeout_ms, default.connect_timeout),
            recv_max: if self.receive_max == 0 { default.recv_max } else { self.receive_max },
            congestion: if self.new_reno != 0 { Algorithm::NewReno } else { Algorithm::Cubic },
            min_rto: or(self.min_rto_ms, default.min_rto),
            timestamps: self.no_timestamps == 0,
            sack: self.no_sack == 0,
            ttl: if self.ttl == 0 { default.ttl } else { self.ttl },
            tos: self.tos,
            ..default
        })
    }

    fn local(&self) -> Result<Endpoint, i32> {
        Ok(Endpoint { addr: self.ip.v4()?, port: self.port })
    }
}

fn keepalive(idle_ms: u32) -> Option<Keepalive> {
    let idle = Duration::from_millis(u64::from(idle_ms));
    (idle_ms != 0).then(|| Keepalive { idle, interval: idle.divided_by(96).max(Duration::from_millis(1)), count: 9 })
}

/// Sets up `*options`, `size` being `sizeof *options`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_init(options: *mut lace_tcp_options, size: usize) -> c_int {
    init(options, size)
}

/// Starts to open a connection to `*peer`; `options` NULL: the defaults. The operation's result is the connection, a
/// `lace_tcp`, which is the host's once it was told of it: closing the operation does not close it then. `done` may be
/// NULL.
///
/// Returns the operation; `LACE_EINVAL` for port 0 or no address; `LACE_EFAULT`, `LACE_EAFNOSUPPORT`, `LACE_EMFILE`,
/// `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_ECONNREFUSED`; `LACE_ETIMEDOUT`;
/// `LACE_EHOSTUNREACH`, `LACE_ENETUNREACH`; `LACE_EADDRINUSE`: there is such a connection; `LACE_EMFILE`:
/// `lace_config.tcp_connections` is reached; what looking a name up fails with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_connect_start(
    net: *mut lace_stack,
    peer: *const lace_peer,
    options: *const lace_tcp_options,
    done: lace_done,
    ctx: *mut c_void,
) -> lace_op {
    if peer.is_null() {
        return LACE_EFAULT;
    }
    let options = match read_or_fresh(options) {
        Ok(options) => options,
        Err(code) => return code,
    };
    // SAFETY: not null, and the caller vouches for it.
    let peer = unsafe { peer.read_unaligned() };
    begin(net, &Notify { progress: None, done, ctx }, |_| {
        let connect = Connect::new(peer.to_server()?, options.local()?, options.options()?);
        connect.map(Client::Connect).map_err(code)
    })
}

/// The handle of a connection that an operation has opened; `first`: the host has not heard of it before. Later it may
/// have been closed, and its place be another's.
pub(super) fn opened(net: &lace_stack, key: Key, first: bool) -> lace_tcp {
    if first { net.tcp.open(key) } else { pack(Kind::Tcp, key) }
}

/// Listens at `port`, for connections to `ip` or, if that is NULL or none, to any address of ours; `backlog`
/// connections may wait to be accepted. `options` (NULL: the defaults) are those of the connections.
///
/// Returns the listener; `LACE_EINVAL` for port 0; `LACE_EADDRINUSE`; `LACE_EMFILE`: `lace_config.tcp_listeners` is
/// reached; `LACE_EFAULT`, `LACE_EAFNOSUPPORT`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_listen(
    net: *mut lace_stack,
    ip: *const lace_ip,
    port: u16,
    backlog: u16,
    options: *const lace_tcp_options,
) -> lace_listener {
    value(enter(net).and_then(|net| {
        let options = read_or_fresh(options)?.options()?;
        let local = Endpoint { addr: v4_at(ip)?, port };
        net.call(|core| {
            let key = core.engine.tcp.listen(local, backlog, options).map_err(code)?;
            core.handle_tcp(net, Kind::Listener, key, Handler::default());
            Ok(net.listeners.open(key))
        })
    }))
}

/// Takes the connection that has waited longest at a listener.
///
/// Returns the connection; `LACE_EAGAIN`: none waits; `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_accept(net: *mut lace_stack, listener: lace_listener) -> lace_tcp {
    value(enter(net).and_then(|net| {
        let (key, _) = net.listeners.find(listener)?;
        net.call(|core| {
            let key = core.engine.tcp.accept(key).map_err(code)?;
            core.handle_tcp(net, Kind::Tcp, key, Handler::default());
            Ok(net.tcp.open(key))
        })
    }))
}

/// Stops listening; connections that were not accepted are reset.
///
/// Returns 0; `LACE_EBADF`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_unlisten(net: *mut lace_stack, listener: lace_listener) -> c_int {
    status(enter(net).and_then(|net| {
        net.ask(&net.listeners, listener, request::CLOSE, |core, _| core.close(net, Kind::Listener, listener))
    }))
}

/// Has `handler` (NULL: nobody) called with `ctx` when something happens on a connection or a listener. What is so
/// already is told in the next pass.
///
/// Returns 0; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_notify(
    net: *mut lace_stack,
    handle: i32,
    handler: lace_tcp_handler,
    ctx: *mut c_void,
) -> c_int {
    status(enter(net).and_then(|net| {
        let (kind, key) = match net.tcp.find(handle) {
            Ok((key, _)) => (Kind::Tcp, key),
            Err(_) => (Kind::Listener, net.listeners.find(handle)?.0),
        };
        net.call(|core| {
            core.handle_tcp(net, kind, key, Handler { call: handler, ctx });
            if kind == Kind::Tcp {
                core.engine.tcp.tell_again(key);
            }
            Ok(())
        })
    }))
}

/// What is so on a connection now: bits of `LACE_TCP_...`.
///
/// Returns them; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_status(net: *mut lace_stack, tcp: lace_tcp) -> c_int {
    value(with(net, tcp, |core, key| core.engine.tcp.readiness(key).map(|e| i32::from(e.bits())).map_err(code)))
}

/// Why a connection ended.
///
/// Returns 0 if it did not, or in good order; `LACE_ECONNRESET`, `LACE_ETIMEDOUT`, `LACE_ECONNABORTED` and others;
/// `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_error(net: *mut lace_stack, tcp: lace_tcp) -> c_int {
    status(with(net, tcp, |core, key| match core.engine.tcp.error(key) {
        Ok(None) => Ok(()),
        Ok(Some(why)) | Err(why) => Err(code(why)),
    }))
}

/// Polls until one of `events` is so on a connection, or it is over, looking at `host.poll` meanwhile.
///
/// Returns what is so, as `lace_tcp_status`; `LACE_EINTR` when `host.poll` said so: the connection stays;
/// `LACE_ECANCELED` when the stack was stopped; `LACE_EBADF`, also when a callback closed it; `LACE_EBUSY` from a
/// callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_wait(net: *mut lace_stack, tcp: lace_tcp, events: u32) -> c_int {
    let events = Events::from_bits_truncate(events as u16) | Events::CLOSED;
    value(enter(net).and_then(|net| {
        net.tcp.find(tcp)?;
        block(net, |core| {
            let ready = net.tcp.find(tcp).and_then(|(key, _)| core.engine.tcp.readiness(key).map_err(code));
            match ready {
                Ok(now) if now.intersects(events) => Some(Ok(i32::from(now.bits()))),
                Ok(_) => None,
                Err(code) => Some(Err(code)),
            }
        })?
    }))
}

/// Gives the `len` bytes at `data`, *borrowed for the call*, to be sent: as many as the ring has room for. What
/// fills segments that may go leaves at once, if nothing waits before it: `nic.send` may be called. The rest leaves in
/// the next pass.
///
/// Returns how many, at least 1; 0 for `len` 0; `LACE_EAGAIN`: the ring is full; `LACE_ENOTCONN`: nothing more can be
/// sent; what the connection ended with; `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_send(net: *mut lace_stack, tcp: lace_tcp, data: *const c_void, len: usize) -> i64 {
    counted(enter(net).and_then(|net| {
        let bytes = borrowed(net, data, len)?;
        let (key, _) = net.tcp.find(tcp)?;
        net.call(|core| match core.engine.tcp.send_now(&mut core.engine.stack, key, bytes).map_err(code)? {
            0 if !bytes.is_empty() => Err(LACE_EAGAIN),
            count => Ok(count),
        })
    }))
}

/// Takes received bytes out of the ring: as many as there are, at most `len`, into the memory at `buffer`.
///
/// Returns how many; 0: the peer has finished; `LACE_EAGAIN`: none yet, or a queued region comes first; what the
/// connection ended with, once all that had come was read; `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`,
/// `LACE_ENETDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_recv(net: *mut lace_stack, tcp: lace_tcp, buffer: *mut c_void, len: usize) -> i64 {
    counted(enter(net).and_then(|net| {
        let (key, _) = net.tcp.find(tcp)?;
        let buffer = room(net, buffer, len)?;
        net.call(|core| core.engine.tcp.recv(&mut core.engine.stack, key, buffer).map_err(code))
    }))
}

/// Copies received bytes that stay in the ring: as many as there are, at most `len`, into the memory at `buffer`.
///
/// Returns how many, 0 when there are none; `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_peek(net: *mut lace_stack, tcp: lace_tcp, buffer: *mut c_void, len: usize) -> i64 {
    counted(enter(net).and_then(|net| {
        let (key, _) = net.tcp.find(tcp)?;
        let buffer = room(net, buffer, len)?;
        net.call_always(|core| {
            let (first, second) = core.engine.tcp.peek(key).map_err(code)?;
            let mut count = 0;
            for (to, from) in buffer.iter_mut().zip(first.iter().chain(second)) {
                *to = *from;
                count += 1;
            }
            Ok(count)
        })
    }))
}

/// Queues the `len` bytes at `memory` for what comes next in the stream: it lands there as it comes. At most four
/// regions wait in a row. The memory is *lent until* the region was finished (`lace_tcp_region_finish`), or the
/// connection was closed.
///
/// Returns 0; `LACE_EAGAIN`: four are queued; `LACE_EINVAL` for `len` 0, or behind all that follow
/// (`lace_tcp_recv_ring`); `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_recv_into(
    net: *mut lace_stack,
    tcp: lace_tcp,
    memory: *mut c_void,
    len: usize,
) -> c_int {
    status(enter(net).and_then(|net| {
        let (key, _) = net.tcp.find(tcp)?;
        let region = Region::new(memory, len, &net.arena)?;
        net.call(|core| core.engine.tcp.recv_into(&mut core.engine.stack, key, &region, 0, len).map_err(code))
    }))
}

/// Has the next `count` bytes of the stream, behind what is queued, go through the ring before any region that is
/// queued later; from 2^63 - 1 on: all that follow.
///
/// Returns 0; `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_recv_ring(net: *mut lace_stack, tcp: lace_tcp, count: u64) -> c_int {
    status(with(net, tcp, |core, key| core.engine.tcp.queue_ring(key, count).map_err(code)))
}

/// How much of the first queued region has come.
///
/// Returns its bytes in order from its beginning; `LACE_EAGAIN`: no region is queued; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_region(net: *mut lace_stack, tcp: lace_tcp) -> i64 {
    counted(with(net, tcp, |core, key| match core.engine.tcp.region(key).map_err(code)? {
        Some(region) => Ok(region.filled),
        None => Err(LACE_EAGAIN),
    }))
}

/// Takes the first region out of the queue, full or not: nothing is written to it again. Bytes beyond those that came
/// in order are undefined; the peer sends them again.
///
/// Returns as `lace_tcp_region`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_region_finish(net: *mut lace_stack, tcp: lace_tcp) -> i64 {
    counted(with(net, tcp, |core, key| {
        match core.engine.tcp.finish_region(&mut core.engine.stack, key).map_err(code)? {
            Some(region) => Ok(region.filled),
            None => Err(LACE_EAGAIN),
        }
    }))
}

/// Starts to send `count` bytes of `*source` from byte `offset` on, behind what was given before; at most four files
/// of a connection at a time, one behind the other. The operation's result is `count`, when all of them are
/// acknowledged and no NIC holds a page of them; for `count` 0 at once. `count` has 64 bits; no source need know its
/// length. `progress` counts what is acknowledged, also of a file that fails. Lost bytes are asked for again at their
/// own offset, never below what was acknowledged. What the source names must live until the operation has ended; only
/// pages that a NIC still holds after a cancel are released later.
///
/// Bytes given to `lace_tcp_send` before and after go before and after. `lace_tcp_shutdown` and `lace_tcp_close` may
/// follow at once: the FIN stands behind the last byte, and the operation goes on to its end. If then the file ends
/// early, or cannot be read, the connection is reset instead (RFC 9293 §3.10.5): a FIN would say that this was all.
/// Without them the bytes that there were are acknowledged first, what was queued behind is dropped, and the
/// connection is left as it is. A source that fails for bytes sent before ends the connection. Cancelling ends the
/// connection, unless nothing was sent yet.
///
/// Returns the operation; `LACE_EFAULT`, `LACE_EINVAL`, `LACE_EMFILE`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`.
/// The operation fails with `LACE_ENODATA`: the file ended before; what the source said; what the connection ended
/// with; `LACE_ENOTCONN`; `LACE_EMFILE`: four files are being sent; `LACE_EINVAL`: more than a memory source has, or
/// than 2^62 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_sendfile_start(
    net: *mut lace_stack,
    tcp: lace_tcp,
    source: *const lace_source,
    offset: u64,
    count: u64,
    progress: lace_progress,
    done: lace_done,
    ctx: *mut c_void,
) -> lace_op {
    begin(net, &Notify { progress, done, ctx }, |net| {
        let (key, _) = net.tcp.find(tcp)?;
        Ok(Client::Sendfile(Sendfile::new(key, source_at(source, &net.arena)?, offset, count)))
    })
}

/// Sends nothing more: a FIN follows what was given. Receiving goes on.
///
/// Returns 0; `LACE_ENOTCONN`; `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_shutdown(net: *mut lace_stack, tcp: lace_tcp) -> c_int {
    status(with(net, tcp, |core, key| core.engine.tcp.shutdown(&mut core.engine.stack, key).map_err(code)))
}

/// Closes a connection: what was given is still sent, files included, then a FIN. If received bytes were not read, or
/// more come, the peer gets a reset instead. Queued regions are the host's again.
///
/// Returns 0; `LACE_EBADF`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_close(net: *mut lace_stack, tcp: lace_tcp) -> c_int {
    status(enter(net).and_then(|net| net.ask(&net.tcp, tcp, request::CLOSE, |core, _| core.close(net, Kind::Tcp, tcp))))
}

/// Ends a connection at once: the peer gets a reset.
///
/// Returns 0; `LACE_EBADF`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_abort(net: *mut lace_stack, tcp: lace_tcp) -> c_int {
    status(enter(net).and_then(|net| net.ask(&net.tcp, tcp, request::ABORT, |core, _| core.abort(net, tcp))))
}

/// Option of a connection: 1: send short segments at once; 0: Nagle's algorithm.
pub const LACE_TCP_NO_DELAY: u32 = 1;
/// Option of a connection: idle time before keepalive probes in milliseconds; 0: none.
pub const LACE_TCP_KEEPALIVE_MS: u32 = 2;
/// Option of a connection: how long sent data may go unacknowledged, in milliseconds.
pub const LACE_TCP_USER_TIMEOUT_MS: u32 = 3;

/// Changes an option of a connection: one of those above.
///
/// Returns 0; `LACE_EINVAL` for a value out of range; `LACE_EOPNOTSUPP` for an unknown option; `LACE_EBADF`,
/// `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_set(net: *mut lace_stack, tcp: lace_tcp, option: u32, value: u32) -> c_int {
    status(with(net, tcp, |core, key| {
        let engine = &mut core.engine;
        let changed = match option {
            LACE_TCP_NO_DELAY if value <= 1 => engine.tcp.set_nagle(key, value == 0),
            LACE_TCP_KEEPALIVE_MS => engine.tcp.set_keepalive(&engine.stack, key, keepalive(value)),
            LACE_TCP_USER_TIMEOUT_MS if value > 0 => {
                engine.tcp.set_user_timeout(key, Duration::from_millis(u64::from(value)))
            }
            LACE_TCP_NO_DELAY | LACE_TCP_USER_TIMEOUT_MS => return Err(LACE_EINVAL),
            _ => return Err(LACE_EOPNOTSUPP),
        };
        changed.map_err(code)
    }))
}

/// How a connection is doing. Set up by `lace_tcp_info_init`. Times in microseconds, the rest in bytes where nothing
/// else is said.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_tcp_info {
    /// Size of this struct.
    pub size: u32,
    /// State: 0 closed, 1 SYN sent, 2 SYN received, 3 established, 4 FIN-WAIT-1, 5 FIN-WAIT-2, 6 CLOSE-WAIT, 7
    /// closing, 8 LAST-ACK, 9 TIME-WAIT.
    pub state: u32,
    /// Our end.
    pub local: lace_ip,
    /// The peer's end.
    pub remote: lace_ip,
    /// Our port.
    pub local_port: u16,
    /// The peer's port.
    pub remote_port: u16,
    /// Smoothed round-trip time; 0 before the first measurement.
    pub rtt_us: u32,
    /// Its mean deviation.
    pub rtt_deviation_us: u32,
    /// Retransmission timeout.
    pub rto_us: u32,
    /// Congestion window.
    pub congestion_window: u32,
    /// Slow start threshold.
    pub slow_start_threshold: u32,
    /// Most data in a segment.
    pub segment_size: u32,
    /// Segments sent again.
    pub retransmits: u32,
    /// In flight.
    pub in_flight: u64,
    /// The peer's window.
    pub send_window: u64,
    /// Our window.
    pub receive_window: u64,
    /// Acknowledged by the peer.
    pub bytes_sent: u64,
    /// Received in order.
    pub bytes_received: u64,
    /// Received out of order and kept.
    pub bytes_held: u64,
}

// SAFETY: integers only, the size in front.
unsafe impl Sized32 for lace_tcp_info {
    const MIN: usize = size_of::<lace_tcp_info>();
}

/// Sets up `*info`, `size` being `sizeof *info`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_info_init(info: *mut lace_tcp_info, size: usize) -> c_int {
    init(info, size)
}

/// How a connection is doing: fills in `*info`.
///
/// Returns 0; `LACE_EFAULT`, `LACE_EINVAL` for `*info` that was not set up; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tcp_info_get(net: *mut lace_stack, tcp: lace_tcp, info: *mut lace_tcp_info) -> c_int {
    status(with(net, tcp, |core, key| {
        writable(info)?;
        let i = core.engine.tcp.info(key).map_err(code)?;
        let us = |d: Duration| u32::try_from(d.as_micros()).unwrap_or(u32::MAX);
        let value = lace_tcp_info {
            size: 0,
            state: match i.state {
                State::Closed => 0,
                State::SynSent => 1,
                State::SynReceived => 2,
                State::Established => 3,
                State::FinWait1 => 4,
                State::FinWait2 => 5,
                State::CloseWait => 6,
                State::Closing => 7,
                State::LastAck => 8,
                State::TimeWait => 9,
            },
            local: lace_ip::or_none(i.local.addr),
            remote: lace_ip::or_none(i.remote.addr),
            local_port: i.local.port,
            remote_port: i.remote.port,
            rtt_us: us(i.rtt),
            rtt_deviation_us: us(i.rtt_deviation),
            rto_us: us(i.rto),
            congestion_window: i.congestion_window,
            slow_start_threshold: i.slow_start_threshold,
            segment_size: i.segment_size,
            retransmits: i.retransmits,
            in_flight: i.in_flight,
            send_window: i.send_window,
            receive_window: i.receive_window,
            bytes_sent: i.bytes_sent,
            bytes_received: i.bytes_received,
            bytes_held: i.bytes_held,
        };
        write(info, &value)
    }))
}

/// Calls `work` on the connection a handle names.
fn with<R>(
    net: *mut lace_stack,
    tcp: lace_tcp,
    work: impl FnOnce(&mut super::arena::Core, Key) -> Result<R, i32>,
) -> Result<R, i32> {
    enter(net).and_then(|net| {
        let (key, _) = net.tcp.find(tcp)?;
        net.call_always(|core| work(core, key))
    })
}

/// What a function that returns a count of bytes gives.
fn counted(result: Result<usize, i32>) -> i64 {
    result.map(|n| i64::try_from(n).unwrap_or(i64::MAX)).unwrap_or_else(i64::from)
}

/// Memory of C's that is written during the call.
fn room<'b>(net: &lace_stack, buffer: *mut c_void, len: usize) -> Result<&'b mut [u8], i32> {
    if len == 0 {
        return Ok(&mut []);
    }
    // No ring is longer.
    let len = len.min(u32::MAX as usize).min(isize::MAX as usize);
    let region = Region::new(buffer, len, &net.arena)?;
    // SAFETY: the caller gives the buffer for the call, and it does not overlap the stack's memory.
    Ok(unsafe { core::slice::from_raw_parts_mut(region.as_ptr(), len) })
}

impl super::arena::Core {
    /// Sets the handler of a connection or listener.
    pub(super) fn handle_tcp(&mut self, net: &lace_stack, kind: Kind, key: Key, handler: Handler<lace_tcp_handler>) {
        let first = if kind == Kind::Tcp { 0 } else { net.tcp.entries.len() };
        if let Some(place) = self.tcp.get_mut(first + usize::from(key.index)) {
            let before = core::mem::replace(place, handler);
            self.tcp_handlers =
                self.tcp_handlers + u32::from(handler.call.is_some()) - u32::from(before.call.is_some());
        }
    }
}

/// Tells of what has happened on connections and listeners.
pub(super) fn tell_events(net: &lace_stack) {
    // Each of them has something to tell at most once; what happens meanwhile is for the next pass.
    for _ in 0..net.tcp.entries.len() + net.listeners.entries.len() {
        let Some(event) = net.access(|core| core.engine.next_tcp_event()) else { break };
        let (handle, events, at) = match event {
            Event::Connection(key, events) => (pack(Kind::Tcp, key), u32::from(events.bits()), usize::from(key.index)),
            Event::Listener(key) => {
                (pack(Kind::Listener, key), LACE_TCP_ACCEPT, net.tcp.entries.len() + usize::from(key.index))
            }
        };
        // Where nobody wants to be told, neither handlers nor handles are looked at.
        if net.access(|core| core.tcp_handlers > 0) {
            tell_event(net, at, handle, events);
        }
    }
}

#[inline(never)]
fn tell_event(net: &lace_stack, at: usize, handle: i32, events: u32) {
    if let Some(handler) = net.access(|core| core.tcp.get(at).copied())
        && let Some(call) = handler.call
        && (net.tcp.find(handle).is_ok() || net.listeners.find(handle).is_ok())
    {
        // SAFETY: the host vouches for its callback.
        net.upcall(Upcall::Other, || unsafe { call(handler.ctx, handle, events) });
    }
}

const _: () = {
    assert!(
        LACE_TCP_CONNECTED == Events::CONNECTED.bits() as u32 && LACE_TCP_READABLE == Events::READABLE.bits() as u32
    );
    assert!(LACE_TCP_WRITABLE == Events::WRITABLE.bits() as u32 && LACE_TCP_REGION == Events::REGION.bits() as u32);
    assert!(LACE_TCP_SENT == Events::SENT.bits() as u32 && LACE_TCP_FILE == Events::FILE.bits() as u32);
    assert!(LACE_TCP_FINISHED == Events::FINISHED.bits() as u32 && LACE_TCP_CLOSED == Events::CLOSED.bits() as u32);
    assert!(LACE_TCP_ACCEPT == Events::ACCEPT.bits() as u32);
};
