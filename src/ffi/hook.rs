//! # Raw hooks
//!
//! For protocols the stack does not know: a handler for an EtherType or an IP protocol, and frames or packets that
//! are sent as they are given.

use super::addr::{lace_ip, v4_at};
use super::guard::{enter, lace_stack};
use super::handle::{Kind, request};
use super::nic::{lace_nic_id, lace_span, nic_at, nic_or_any};
use super::results::{LACE_EADDRINUSE, LACE_EFAULT, LACE_EINVAL, LACE_EMFILE, status, value};
use super::run::borrowed;
use super::structs::Sized32;
use super::udp::{Handler, spans_at, tx_code};
use crate::stack::egress::{L4Header, L4Sum, MAX_BODY, Packet};
use crate::stack::hooks::Hook;
use crate::storage::host::{Span, Token};
use crate::wire::ethernet::EtherType;
use crate::wire::ipv4::Protocol;
use core::ffi::{c_int, c_void};

/// Names a raw hook: positive.
pub type lace_hook = i32;

/// What a raw hook is given. It begins with its size: later versions may have more fields.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_packet {
    /// Size of this struct.
    pub size: u32,
    /// The hook.
    pub hook: lace_hook,
    /// The NIC it came in on.
    pub nic: lace_nic_id,
    /// Where the packet begins in the frame.
    pub packet_offset: u32,
    /// The packet, behind the Ethernet header (and VLAN tag): for an IP protocol from the IPv4 header on, without the
    /// frame's padding.
    pub packet: *const c_void,
    /// The whole Ethernet frame.
    pub frame: *const c_void,
    /// Bytes of the packet.
    pub packet_len: u32,
    /// Bytes of the frame.
    pub frame_len: u32,
}

// SAFETY: integers and pointers; the size is in front.
unsafe impl Sized32 for lace_packet {
    const MIN: usize = size_of::<lace_packet>();
    const PRESET: Option<fn(&mut Self)> = Some(|packet| packet.size = size_of::<lace_packet>() as u32);
}

impl lace_packet {
    /// The packet at `part` (offset and length) of `frame`.
    pub(super) fn of(hook: lace_hook, nic: lace_nic_id, frame: (*const u8, usize), part: (usize, usize)) -> Self {
        lace_packet {
            hook,
            nic,
            packet_offset: part.0 as u32,
            packet: frame.0.wrapping_add(part.0).cast(),
            frame: frame.0.cast(),
            packet_len: part.1 as u32,
            frame_len: frame.1 as u32,
            ..lace_packet::fresh()
        }
    }
}

/// Called for each frame or packet of a raw hook. Upcall. `*packet` and what it names are *borrowed for the call*,
/// whatever is closed meanwhile.
pub type lace_hook_handler = Option<unsafe extern "C" fn(ctx: *mut c_void, packet: *const lace_packet)>;

fn open(net: *mut lace_stack, hook: Hook, handler: lace_hook_handler, ctx: *mut c_void) -> i32 {
    value(enter(net).and_then(|net| {
        if handler.is_none() {
            return Err(LACE_EFAULT);
        }
        net.call(|core| {
            let added = core.engine.stack.hooks.add(hook);
            let index = added.map_err(|taken| if taken { LACE_EADDRINUSE } else { LACE_EMFILE })?;
            if let Some(place) = core.hooks.get_mut(index) {
                *place = Handler { call: handler, ctx };
            }
            Ok(net.hooks.open_next(index))
        })
    }))
}

/// Has frames of an EtherType, such as 0x88cc, handed to `handler` with `ctx`; a VLAN tag is looked through. Both
/// must live until the hook is closed.
///
/// Returns the hook; `LACE_EINVAL` for IPv4, ARP and numbers below 0x600; `LACE_EADDRINUSE`: there is a hook for it;
/// `LACE_EMFILE`: `lace_config.hooks` is reached; `LACE_EFAULT` without a handler; `LACE_EBADF`, `LACE_EBUSY`,
/// `LACE_ENETDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_hook_ethertype(
    net: *mut lace_stack,
    ethertype: u16,
    handler: lace_hook_handler,
    ctx: *mut c_void,
) -> lace_hook {
    let kind = EtherType(ethertype);
    if ethertype < 0x600 || kind == EtherType::IPV4 || kind == EtherType::ARP {
        return LACE_EINVAL;
    }
    open(net, Hook::EtherType(kind), handler, ctx)
}

/// Has IPv4 packets of a protocol, such as 1 for ICMP, handed to `handler` with `ctx`. ICMP is handled by the stack
/// as well.
///
/// Returns the hook; `LACE_EINVAL` for UDP and TCP; else as `lace_hook_ethertype`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_hook_protocol(
    net: *mut lace_stack,
    protocol: u8,
    handler: lace_hook_handler,
    ctx: *mut c_void,
) -> lace_hook {
    let protocol = Protocol(protocol);
    if protocol == Protocol::UDP || protocol == Protocol::TCP {
        return LACE_EINVAL;
    }
    open(net, Hook::Protocol(protocol), handler, ctx)
}

/// Closes a raw hook; its handler is not called again.
///
/// Returns 0; `LACE_EBADF`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_hook_close(net: *mut lace_stack, hook: lace_hook) -> c_int {
    status(
        enter(net)
            .and_then(|net| net.ask(&net.hooks, hook, request::CLOSE, |core, _| core.close(net, Kind::Hook, hook))),
    )
}

/// Sends the `len` bytes at `frame`, *borrowed for the call*, as they are: an Ethernet frame from the destination
/// address on, without check sequence; padded to 60 bytes.
///
/// Returns 0; `LACE_EAGAIN`: the NIC has no room now; `LACE_EINVAL` for less than an Ethernet header;
/// `LACE_EMSGSIZE`; `LACE_ENETDOWN`, `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`; what `nic.send` said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_send_frame(
    net: *mut lace_stack,
    nic: lace_nic_id,
    frame: *const c_void,
    len: usize,
) -> c_int {
    status(enter(net).and_then(|net| {
        let id = nic_at(net, nic)?;
        let frame = borrowed(net, frame, len)?;
        if frame.len() < crate::wire::ethernet::HEADER_LEN {
            return Err(LACE_EINVAL);
        }
        net.call(|core| core.engine.stack.send_frame(id, frame).map_err(tx_code))
    }))
}

/// Sends an IPv4 packet of `protocol` to `ip`: the stack finds the way and makes the headers below, the payload is
/// the `n` pieces at `spans`, at most 4, *borrowed for the call*. `nic` 0: the one the route says. `src` NULL or
/// none: the one that fits.
///
/// Returns as `lace_udp_send`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_send_ip(
    net: *mut lace_stack,
    nic: lace_nic_id,
    src: *const lace_ip,
    ip: *const lace_ip,
    protocol: u8,
    ttl: u8,
    spans: *const lace_span,
    n: u32,
) -> c_int {
    status(enter(net).and_then(|net| {
        let nic = nic_or_any(net, nic)?;
        let (src, dst) = (v4_at(src)?, v4_at(ip)?);
        if dst.is_unspecified() {
            return Err(LACE_EINVAL);
        }
        let body: heapless::Vec<Span<'_, super::region::Region>, MAX_BODY> =
            spans_at(net, spans, n)?.iter().map(|bytes| Span::Bytes(bytes)).collect();
        let packet = Packet {
            src,
            dst,
            nic,
            protocol: Protocol(protocol),
            ttl: if ttl == 0 { 64 } else { ttl },
            tos: 0,
            dont_fragment: false,
            header: L4Header::new(&[], L4Sum::None),
            body: &body,
            token: Token(0),
            queue: true,
        };
        net.call(|core| core.engine.stack.send(&packet).map_err(tx_code))
    }))
}
