//! # UDP sockets
//!
//! A socket has a handler, which is called for each datagram, or a queue, which is polled. It may send to and receive
//! from anybody, or be connected to one peer. Broadcast needs no option.

use super::addr::{lace_ip, v4_at};
use super::guard::{enter, lace_stack};
use super::handle::{Kind, request};
use super::nic::{handle_of, lace_nic_id, lace_span, nic_or_any};
use super::results::{
    LACE_EADDRNOTAVAIL, LACE_EBADF, LACE_EFAULT, LACE_EINVAL, LACE_ENOTCONN, LACE_EOPNOTSUPP, code, status, value,
};
use super::run::{borrowed, place};
use super::structs::{Sized32, init, writable, write};
use crate::stack::egress::{MAX_BODY, TxError};
use crate::storage::host::{Endpoint, Span};
use crate::udp::{Meta, Owner};
use core::ffi::{c_int, c_void};

/// Names a UDP socket: positive.
pub type lace_udp = i32;

/// A received datagram. It begins with its size: later versions may have more fields.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_datagram {
    /// Size of this struct.
    pub size: u32,
    /// The socket.
    pub socket: lace_udp,
    /// The NIC it came in on.
    pub nic: lace_nic_id,
    /// Who sent it: port, in host order.
    pub src_port: u16,
    /// The socket's port, in host order.
    pub dst_port: u16,
    /// Who sent it: address.
    pub src: lace_ip,
    /// The address it was sent to: one of the NIC's, a broadcast address or a group.
    pub dst: lace_ip,
    /// The payload: `frame` + `payload_offset`. NULL from `lace_udp_recv`.
    pub payload: *const c_void,
    /// Bytes of payload.
    pub payload_len: u32,
    /// Where the payload begins in the frame.
    pub payload_offset: u32,
    /// The whole Ethernet frame. NULL from `lace_udp_recv`.
    pub frame: *const c_void,
    /// Bytes of the frame.
    pub frame_len: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: integers and pointers; the size is in front.
unsafe impl Sized32 for lace_datagram {
    const MIN: usize = size_of::<lace_datagram>();
    const PRESET: Option<fn(&mut Self)> = Some(|datagram| datagram.size = size_of::<lace_datagram>() as u32);
}

impl lace_datagram {
    /// The datagram that lies at `payload` (offset and length) of `frame`.
    pub(super) fn of(
        net: &lace_stack,
        socket: lace_udp,
        meta: &Meta,
        port: u16,
        frame: (*const u8, usize),
        payload: (usize, usize),
    ) -> Self {
        lace_datagram {
            socket,
            nic: handle_of(net, meta.nic),
            src_port: meta.src.port,
            dst_port: port,
            src: meta.src.addr.into(),
            dst: meta.dst.into(),
            payload: frame.0.wrapping_add(payload.0).cast(),
            payload_len: payload.1 as u32,
            payload_offset: payload.0 as u32,
            frame: frame.0.cast(),
            frame_len: frame.1 as u32,
            ..lace_datagram::fresh()
        }
    }
}

/// Called for each datagram that comes to a socket. Upcall: it may send, and what it sends leaves at once; it may
/// close the socket. `*datagram` and what it names are *borrowed for the call*, whatever is closed meanwhile.
pub type lace_udp_handler = Option<unsafe extern "C" fn(ctx: *mut c_void, datagram: *const lace_datagram)>;

/// A handler of the host's with its context.
#[derive(Clone, Copy, Debug)]
pub struct Handler<F> {
    /// The function.
    pub call: F,
    /// Passed to it.
    pub ctx: *mut c_void,
}

impl<F> Default for Handler<Option<F>> {
    fn default() -> Self {
        Handler { call: None, ctx: core::ptr::null_mut() }
    }
}

/// Sets up `*datagram` for `lace_udp_recv`, `size` being `sizeof *datagram`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_datagram_init(datagram: *mut lace_datagram, size: usize) -> c_int {
    init(datagram, size)
}

fn open(net: *mut lace_stack, owner: Owner, handler: lace_udp_handler, ctx: *mut c_void) -> i32 {
    value(enter(net).and_then(|net| {
        net.call(|core| {
            let engine = &mut core.engine;
            let key = engine.udp.open(&mut engine.stack, owner).map_err(code)?;
            if let Some(place) = place(core.sockets, key) {
                *place = Handler { call: handler, ctx };
            }
            Ok(net.udp.open(key))
        })
    }))
}

/// Opens a socket on an unpredictable free port, whose datagrams go to `handler` with `ctx`. Both must live until it
/// is closed.
///
/// Returns the socket; `LACE_EFAULT` without a handler; `LACE_EMFILE`: `lace_config.udp_sockets` is reached;
/// `LACE_EBUSY`, `LACE_EBADF`, `LACE_ENETDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_udp_open(net: *mut lace_stack, handler: lace_udp_handler, ctx: *mut c_void) -> lace_udp {
    if handler.is_none() {
        return LACE_EFAULT;
    }
    open(net, Owner::Handler, handler, ctx)
}

/// Opens a socket on an unpredictable free port, whose datagrams wait in a queue for `lace_udp_recv`. What does not
/// fit the queue is dropped and counted.
///
/// Returns the socket; `LACE_EMFILE`: `lace_config.udp_sockets` or `udp_queues` is reached; `LACE_EBUSY`,
/// `LACE_EBADF`, `LACE_ENETDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_udp_open_queue(net: *mut lace_stack) -> lace_udp {
    open(net, Owner::Queue, None, core::ptr::null_mut())
}

/// Closes a socket; its handler is not called again.
///
/// Returns 0; `LACE_EBADF`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_udp_close(net: *mut lace_stack, socket: lace_udp) -> c_int {
    status(
        enter(net)
            .and_then(|net| net.ask(&net.udp, socket, request::CLOSE, |core, _| core.close(net, Kind::Udp, socket))),
    )
}

/// Binds a socket: to `port` (0: the one it has), to the address `ip` (NULL or none: any), to one NIC (0: any). It
/// then sends from there, and receives what comes there. On a NIC without an address it sends from 0.0.0.0 and
/// receives whatever is sent to its hardware address.
///
/// Returns 0; `LACE_EADDRINUSE`: another socket has the port on that NIC; `LACE_EADDRNOTAVAIL`: `ip` is not the
/// stack's; `LACE_EBADF`, `LACE_EAFNOSUPPORT`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_udp_bind(
    net: *mut lace_stack,
    socket: lace_udp,
    nic: lace_nic_id,
    ip: *const lace_ip,
    port: u16,
) -> c_int {
    status(enter(net).and_then(|net| {
        let (key, _) = net.udp.find(socket)?;
        let nic = nic_or_any(net, nic)?;
        let addr = v4_at(ip)?;
        net.call(|core| {
            let engine = &mut core.engine;
            let ours = addr.is_unspecified() || engine.stack.each_interface().any(|(_, i)| i.owns(addr));
            if !ours {
                return Err(LACE_EADDRNOTAVAIL);
            }
            engine.udp.bind(key, nic, Endpoint { addr, port }).map_err(code)
        })
    }))
}

/// Connects a socket to the peer `ip`, `port`: it sends there, and receives from nobody else. NULL: to nobody again.
///
/// Returns 0; `LACE_EINVAL` for port 0 or no address; `LACE_EBADF`, `LACE_EAFNOSUPPORT`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_udp_connect(
    net: *mut lace_stack,
    socket: lace_udp,
    ip: *const lace_ip,
    port: u16,
) -> c_int {
    status(enter(net).and_then(|net| {
        let (key, _) = net.udp.find(socket)?;
        let peer = if ip.is_null() {
            None
        } else {
            let addr = v4_at(ip)?;
            if port == 0 || addr.is_unspecified() {
                return Err(LACE_EINVAL);
            }
            Some(Endpoint { addr, port })
        };
        net.call(|core| {
            core.engine.udp.get_mut(key).ok_or(LACE_EBADF)?.peer = peer;
            Ok(())
        })
    }))
}

/// Option of a socket: time to live of what it sends, 1 to 255; default 64.
pub const LACE_UDP_TTL: u32 = 1;
/// Option of a socket: type of service byte of what it sends; default 0.
pub const LACE_UDP_TOS: u32 = 2;
/// Option of a socket: don't-fragment flag of what it sends, 0 or 1; default 0.
pub const LACE_UDP_DONT_FRAGMENT: u32 = 3;

/// Sets an option of a socket, one of `LACE_UDP_...`.
///
/// Returns 0; `LACE_EINVAL` for a value out of range; `LACE_EOPNOTSUPP` for an unknown option; `LACE_EBADF`,
/// `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_udp_set(net: *mut lace_stack, socket: lace_udp, option: u32, value: u32) -> c_int {
    status(enter(net).and_then(|net| {
        let (key, _) = net.udp.find(socket)?;
        let byte = u8::try_from(value).map_err(|_| LACE_EINVAL)?;
        net.call(|core| {
            let s = core.engine.udp.get_mut(key).ok_or(LACE_EBADF)?;
            match option {
                LACE_UDP_TTL if byte > 0 => s.ttl = byte,
                LACE_UDP_TOS => s.tos = byte,
                LACE_UDP_DONT_FRAGMENT if byte <= 1 => s.dont_fragment = byte == 1,
                LACE_UDP_TTL | LACE_UDP_DONT_FRAGMENT => return Err(LACE_EINVAL),
                _ => return Err(LACE_EOPNOTSUPP),
            }
            Ok(())
        })
    }))
}

/// The port of a socket, in host order.
///
/// Returns it; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_udp_port(net: *mut lace_stack, socket: lace_udp) -> c_int {
    value(enter(net).and_then(|net| {
        let (key, _) = net.udp.find(socket)?;
        net.call_always(|core| core.engine.udp.get(key).map(|s| i32::from(s.local.port)).ok_or(LACE_EBADF))
    }))
}

fn send_parts(
    net: *mut lace_stack,
    socket: lace_udp,
    ip: *const lace_ip,
    port: u16,
    parts: impl FnOnce(&lace_stack) -> Result<heapless::Vec<&'static [u8], MAX_BODY>, i32>,
) -> i32 {
    status(enter(net).and_then(|net| {
        let (key, _) = net.udp.find(socket)?;
        let dst = if ip.is_null() { None } else { Some(Endpoint { addr: v4_at(ip)?, port }) };
        if dst.is_some_and(|d| d.port == 0 || d.addr.is_unspecified()) {
            return Err(LACE_EINVAL);
        }
        let body: heapless::Vec<Span<'_, super::region::Region>, MAX_BODY> =
            parts(net)?.iter().map(|bytes| Span::Bytes(bytes)).collect();
        net.call(|core| {
            let engine = &mut core.engine;
            if dst.is_none() && engine.udp.get(key).is_some_and(|s| s.peer.is_none()) {
                return Err(LACE_ENOTCONN);
            }
            engine.udp.send(&mut engine.stack, key, dst, &body, true).map_err(tx_code)
        })
    }))
}

/// The code for a packet that was not sent.
pub(super) fn tx_code(e: TxError) -> i32 {
    code(e.into())
}

/// Sends the `len` bytes at `data`, *borrowed for the call*, to the address `ip` and `port`; NULL: to the connected
/// peer.
///
/// Nothing is sent from the stack's own memory (`LACE_EFAULT`), where a datagram that came in fragments lies: copy it
/// first. While the hardware address of the next hop is asked for, one datagram for it is kept (`lace_config.wait_frames`).
///
/// Returns 0; `LACE_EAGAIN`: the NIC has no room now, or the hardware address is still being asked for: poll and send
/// again; `LACE_ENOTCONN`: no peer; `LACE_EINVAL`: no address or port 0; `LACE_EMSGSIZE`: more than the MTU holds;
/// `LACE_ENETUNREACH`, `LACE_EHOSTUNREACH`, `LACE_ENETDOWN`, `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`; what
/// `nic.send` said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_udp_send(
    net: *mut lace_stack,
    socket: lace_udp,
    ip: *const lace_ip,
    port: u16,
    data: *const c_void,
    len: usize,
) -> c_int {
    send_parts(net, socket, ip, port, |net| {
        let mut parts = heapless::Vec::new();
        // One fits.
        let _ = parts.push(borrowed(net, data, len)?);
        Ok(parts)
    })
}

/// The same for a datagram in `n` pieces, at most 4, one behind the other.
///
/// Returns as `lace_udp_send`; `LACE_EINVAL` for more pieces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_udp_sendv(
    net: *mut lace_stack,
    socket: lace_udp,
    ip: *const lace_ip,
    port: u16,
    spans: *const lace_span,
    n: u32,
) -> c_int {
    send_parts(net, socket, ip, port, |net| spans_at(net, spans, n))
}

/// The pieces behind a pointer of C's.
pub(super) fn spans_at(
    net: &lace_stack,
    spans: *const lace_span,
    n: u32,
) -> Result<heapless::Vec<&'static [u8], MAX_BODY>, i32> {
    if spans.is_null() && n > 0 {
        return Err(LACE_EFAULT);
    }
    let mut parts = heapless::Vec::new();
    for i in 0..n.min(MAX_BODY as u32 + 1) {
        // SAFETY: the caller gives `n` spans.
        let span = unsafe { spans.add(i as usize).read_unaligned() };
        parts.push(borrowed(net, span.data, span.len as usize)?).map_err(|_| LACE_EINVAL)?;
    }
    Ok(parts)
}

/// Takes the oldest datagram out of a socket's queue: as much of it as fits into the `len` bytes at `buffer`.
/// `datagram`, if not NULL, was set up by `lace_datagram_init`; it tells who sent it, and its whole length in
/// `payload_len`.
///
/// Returns the number of bytes copied; `LACE_EAGAIN`: the queue is empty; `LACE_EOPNOTSUPP`: the socket has a
/// handler; `LACE_EFAULT`, `LACE_EINVAL`, `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_udp_recv(
    net: *mut lace_stack,
    socket: lace_udp,
    buffer: *mut c_void,
    len: usize,
    datagram: *mut lace_datagram,
) -> i64 {
    let got = enter(net).and_then(|net| {
        let (key, _) = net.udp.find(socket)?;
        if !datagram.is_null() {
            writable(datagram)?;
        }
        let buffer: &mut [u8] = if len == 0 {
            &mut []
        } else {
            let region = super::region::Region::new(buffer, len.min(65_535), &net.arena)?;
            // SAFETY: the caller gives the buffer for the call, and it does not overlap the stack's memory.
            unsafe { core::slice::from_raw_parts_mut(region.as_ptr(), len.min(65_535)) }
        };
        let (received, port) = net.call(|core| {
            let s = core.engine.udp.get(key).ok_or(LACE_EBADF)?;
            if s.owner != Owner::Queue {
                return Err(LACE_EOPNOTSUPP);
            }
            let port = s.local.port;
            Ok((core.engine.udp.dequeue(key, buffer).map_err(code)?, port))
        })?;
        if !datagram.is_null() {
            let mut d = lace_datagram::of(net, socket, &received.meta, port, (core::ptr::null(), 0), (0, received.len));
            d.payload = core::ptr::null();
            write(datagram, &d)?;
        }
        Ok(received.copied as i64)
    });
    got.unwrap_or_else(i64::from)
}
