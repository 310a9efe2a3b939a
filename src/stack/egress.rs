//! Sending: route, neighbour, header bytes, and the frame's way into the NIC. The payload is summed where it lies when
//! the NIC gathers, and copied and summed in one pass when it does not.

use super::Stack;
use super::fragment::Filled;
use super::frames::{TxFrames, WaitQueue};
use super::gather::{Tail, send_gathered};
use super::interface::{Interface, NicId};
use super::neighbour::Lookup;
use super::stats::{Counter, Stats};
use crate::storage::checksum::Sum;
use crate::storage::host::{Host, HostError, Memory, Nic, NicCaps, SendError, Span, Stretch, Token};
use crate::wire::ethernet::{self, Address, EtherType, MIN_FRAME_LEN, TAGGED_HEADER_LEN, Tag};
use crate::wire::ipv4::{self, Protocol};
use core::net::Ipv4Addr;

/// Most bytes of a transport header: TCP with all options.
pub const MAX_L4: usize = 60;
/// Most bytes of all headers: Ethernet, VLAN tag, IPv4, transport.
pub const MAX_HEADERS: usize = TAGGED_HEADER_LEN + ipv4::HEADER_LEN + MAX_L4;
/// Most spans a frame's body is made of.
pub const MAX_BODY: usize = 4;

/// Why a packet was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxError {
    /// The next hop's hardware address is being asked for: try again when woken.
    Resolving,
    /// The NIC has no room: try again next pass.
    Busy,
    /// The next hop does not answer.
    HostUnreachable,
    /// No route, or its gateway is not on the link.
    NetworkUnreachable,
    /// No interface, or its link is down.
    NetworkDown,
    /// Larger than the MTU; holds the largest transport payload that fits.
    TooBig(usize),
    /// Lent memory or the request itself is impossible.
    Invalid,
    /// The frame is lost.
    Failed(HostError),
}

impl TxError {
    /// Whether trying again later can help.
    pub fn is_transient(self) -> bool {
        matches!(self, TxError::Resolving | TxError::Busy)
    }
}

impl From<TxError> for crate::storage::error::Error {
    fn from(e: TxError) -> Self {
        use crate::storage::error::Error;
        match e {
            TxError::Resolving | TxError::Busy => Error::Again,
            TxError::HostUnreachable => Error::HostUnreachable,
            TxError::NetworkUnreachable => Error::NetworkUnreachable,
            TxError::NetworkDown => Error::NetworkDown,
            TxError::TooBig(_) => Error::MessageSize,
            TxError::Invalid => Error::Invalid,
            TxError::Failed(code) => Error::Host(code),
        }
    }
}

/// Which checksum a transport header has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L4Sum {
    /// None.
    None,
    /// That of ICMP and IGMP, over header and body only.
    Plain,
    /// TCP's, with the pseudo header.
    Tcp,
    /// UDP's, with the pseudo header, zero sent as 0xffff (RFC 768).
    Udp,
}

impl L4Sum {
    /// Offset of the field in the header.
    #[inline]
    pub const fn at(self) -> usize {
        match self {
            L4Sum::None => 0,
            L4Sum::Plain => 2,
            L4Sum::Tcp => 16,
            L4Sum::Udp => 6,
        }
    }
}

/// A transport header, its checksum field zero.
#[derive(Clone, Copy, Debug)]
pub struct L4Header<'p> {
    bytes: &'p [u8],
    sum: L4Sum,
}

impl<'p> L4Header<'p> {
    /// A header of `bytes`; what is beyond [`MAX_L4`] is cut off.
    #[inline]
    pub fn new(bytes: &'p [u8], sum: L4Sum) -> Self {
        L4Header { bytes: bytes.get(..MAX_L4).unwrap_or(bytes), sum }
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// A packet to send.
#[derive(Debug)]
pub struct Packet<'p, M> {
    /// Source address; unspecified: the one that fits the route.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Interface to use; `None`: the one the route says.
    pub nic: Option<NicId>,
    /// What the transport is.
    pub protocol: Protocol,
    /// Time to live.
    pub ttl: u8,
    /// Type of service byte.
    pub tos: u8,
    /// Don't-fragment flag.
    pub dont_fragment: bool,
    /// Transport header.
    pub header: L4Header<'p>,
    /// What follows it.
    pub body: &'p [Span<'p, M>],
    /// Names the frame to an asynchronous NIC.
    pub token: Token,
    /// Whether to keep a copy while the neighbour is asked for, instead of [`TxError::Resolving`].
    pub queue: bool,
}

/// Where a packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The interface.
    pub nic: NicId,
    /// The address from which.
    pub src: Ipv4Addr,
    /// The host on the link it goes to; broadcast and multicast addresses stand for themselves.
    pub next: Ipv4Addr,
}

/// How a packet leaves.
struct Leaving {
    hop: Hop,
    /// The next hop's hardware address, if it is known.
    mac: Result<Address, TxError>,
    /// Bytes of transport header and body.
    l4_len: usize,
    /// How many of those a frame has room for.
    room: usize,
}

pub(super) fn sum_spans<M: Memory>(spans: &[Span<'_, M>]) -> Result<Sum, TxError> {
    let mut sum = Sum::ZERO;
    let mut at = 0usize;
    for span in spans {
        let part = match span {
            Span::Bytes(b) => Sum::of(b),
            Span::Memory { memory, at, len } => memory.sum(*at, *len).map_err(|_| TxError::Invalid)?,
        };
        sum += part.at(at);
        at = at.wrapping_add(span.len());
    }
    Ok(sum)
}

/// Copies what spans hold from `from` on to `out` until it is full, and sums it in the same pass.
pub(super) fn copy_spans<M: Memory>(mut out: &mut [u8], spans: &[Span<'_, M>], from: usize) -> Result<Sum, TxError> {
    let mut sum = Sum::ZERO;
    let mut at = 0usize;
    for span in Stretch::new(spans, from, out.len()) {
        let len = span.len();
        let (part, rest) = out.split_at_mut_checked(len).ok_or(TxError::Invalid)?;
        let piece = match span {
            Span::Bytes(b) => Sum::copy(part, b).ok_or(TxError::Invalid)?,
            Span::Memory { memory, at, .. } => memory.read_sum(at, part).map_err(|_| TxError::Invalid)?,
        };
        sum += piece.at(at);
        at = at.wrapping_add(len);
        out = rest;
    }
    if out.is_empty() { Ok(sum) } else { Err(TxError::Invalid) }
}

/// The headers of a frame, as values: they are written once, where they leave from.
pub(super) struct Headers<'p> {
    link: ethernet::Repr,
    vlan: Option<u16>,
    ip: ipv4::Repr,
    /// The hardware fills in the IPv4 checksum.
    ip_offload: bool,
    /// The transport's; empty behind the first fragment.
    pub(super) l4: &'p L4Header<'p>,
    pseudo: Sum,
}

impl Headers<'_> {
    /// Their length in bytes.
    fn len(&self) -> usize {
        let link = if self.vlan.is_none() { ethernet::HEADER_LEN } else { TAGGED_HEADER_LEN };
        link.wrapping_add(ipv4::HEADER_LEN).wrapping_add(self.l4.bytes.len())
    }

    /// Length of the whole frame in bytes, padding apart.
    fn frame_len(&self) -> usize {
        let payload = usize::from(self.ip.payload_len);
        self.len().wrapping_sub(self.l4.bytes.len()).wrapping_add(payload)
    }

    /// Writes them to `out`, which is as long as they are, with the transport checksum over header and `body`, or what
    /// hardware needs to fill it in.
    #[inline]
    fn write(&self, out: &mut [u8], body: Sum, offload: bool) -> Option<()> {
        let rest = match self.vlan {
            None => put(out, &self.link.emit())?,
            Some(vlan) => put(out, &self.link.emit_tagged(Tag::new(vlan)))?,
        };
        let zero = self.ip.emit([0; 2]);
        let ip = if self.ip_offload { zero } else { self.ip.emit(Sum::of_header(&zero).to_field()) };
        let l4 = put(rest, &ip)?;
        let header = Sum::copy(l4, self.l4.bytes)?;
        let sum = self.l4.sum;
        let total = match sum {
            L4Sum::None => return Some(()),
            L4Sum::Plain => header + body,
            L4Sum::Tcp | L4Sum::Udp => self.pseudo + header + body,
        };
        let field = match (sum, total.to_field()) {
            // The hardware adds header and body to what stands in the field.
            (L4Sum::Tcp | L4Sum::Udp, _) if offload => self.pseudo.fold().to_ne_bytes(),
            // RFC 768: an all-zero field means "no checksum", so a computed zero goes as ones.
            (L4Sum::Udp, [0, 0]) => [0xff, 0xff],
            (_, field) => field,
        };
        *l4.get_mut(sum.at()..)?.first_chunk_mut::<2>()? = field;
        Some(())
    }
}

/// Writes `part` to the front of `out`; what is left of it.
#[inline]
fn put<'o, const N: usize>(out: &'o mut [u8], part: &[u8; N]) -> Option<&'o mut [u8]> {
    let (front, rest) = out.split_first_chunk_mut::<N>()?;
    *front = *part;
    Some(rest)
}

/// The pseudo header's sum (RFC 768, RFC 9293 §3.1).
#[inline]
pub fn pseudo_header(src: Ipv4Addr, dst: Ipv4Addr, protocol: Protocol, len: usize) -> Sum {
    let len = u16::try_from(len).unwrap_or(u16::MAX);
    Sum::of_array(&ipv4::pseudo_header(src, dst, protocol, len))
}

impl<'a, H: Host> Stack<'a, H> {
    /// Decides where a packet to `dst` leaves.
    // The usual case is short, and what it returns is taken apart at once; on a small machine the size of seven copies counts more.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline(always))]
    pub fn route(&self, src: Ipv4Addr, dst: Ipv4Addr, nic: Option<NicId>) -> Result<Hop, TxError> {
        if dst == Ipv4Addr::BROADCAST || dst.is_multicast() {
            return self.route_to_many(src, dst, nic);
        }
        // On the link of one of our addresses.
        for (id, iface) in self.each_interface().filter(|(id, _)| nic.is_none_or(|n| n == *id)) {
            for cidr in iface.addresses() {
                if cidr.contains(dst) && cidr.prefix > 0 {
                    let next = if cidr.broadcast() == Some(dst) { Ipv4Addr::BROADCAST } else { dst };
                    let src = if src.is_unspecified() { cidr.addr } else { src };
                    return Ok(Hop { nic: id, src, next });
                }
            }
        }
        self.route_beyond(src, dst, nic)
    }

    #[cold]
    #[inline(never)]
    fn route_to_many(&self, src: Ipv4Addr, dst: Ipv4Addr, nic: Option<NicId>) -> Result<Hop, TxError> {
        let nic = nic.or_else(|| self.first_up()).ok_or(TxError::NetworkDown)?;
        let iface = self.interface(nic).ok_or(TxError::NetworkDown)?;
        let src = if src.is_unspecified() { iface.source_for(dst) } else { src };
        Ok(Hop { nic, src, next: dst })
    }

    #[inline(never)]
    fn route_beyond(&self, src: Ipv4Addr, dst: Ipv4Addr, nic: Option<NicId>) -> Result<Hop, TxError> {
        let route = self.routes.lookup(dst, nic).ok_or(TxError::NetworkUnreachable)?;
        let iface = self.interface(route.nic).ok_or(TxError::NetworkDown)?;
        let next = if route.gateway.is_unspecified() { dst } else { route.gateway };
        // RFC 1122 §3.3.1.2: a gateway must be on a connected network.
        let reachable = route.gateway.is_unspecified()
            || iface.addresses().iter().any(|c| c.contains(route.gateway))
            || self.routes.iter().any(|r| r.nic == route.nic && r.gateway.is_unspecified() && r.covers(route.gateway));
        if !reachable || iface.addresses().is_empty() || iface.owns(next) {
            return Err(TxError::NetworkUnreachable);
        }
        let src = if src.is_unspecified() { iface.source_for(next) } else { src };
        Ok(Hop { nic: route.nic, src, next })
    }

    /// The interface and hardware address that a packet to `dst` leaves by; asks for the address if it is not known.
    ///
    /// # Errors
    /// [`TxError::Resolving`] while it is asked for; else as [`Self::send`].
    pub fn resolve(&mut self, dst: Ipv4Addr, nic: Option<NicId>) -> Result<(NicId, Address), TxError> {
        let hop = self.route(Ipv4Addr::UNSPECIFIED, dst, nic)?;
        if !self.interface(hop.nic).is_some_and(|i| i.link) {
            return Err(TxError::NetworkDown);
        }
        Ok((hop.nic, self.next_hop_mac(&hop)?))
    }

    /// Largest transport payload (header included) that goes to `dst` in one frame, in bytes.
    pub fn path_room(&self, dst: Ipv4Addr, nic: Option<NicId>) -> Result<usize, TxError> {
        let hop = self.route(Ipv4Addr::UNSPECIFIED, dst, nic)?;
        let link = self.interface(hop.nic).ok_or(TxError::NetworkDown)?.mtu;
        let mtu = self.path_mtu.get(self.now, dst).unwrap_or(link).min(link);
        Ok(usize::from(mtu).saturating_sub(ipv4::HEADER_LEN))
    }

    /// Largest transport payload (header included) that can be received from `src`, in bytes: the one place that knows
    /// what reassembly takes. `lands`: it goes to a region of the caller's, not to a staging buffer.
    ///
    /// # Errors
    /// As [`Self::path_room`].
    pub fn receive_room(&self, src: Ipv4Addr, nic: Option<NicId>, lands: bool) -> Result<usize, TxError> {
        let whole = self.path_room(src, nic)?;
        let longest = usize::from(u16::MAX).saturating_sub(ipv4::HEADER_LEN);
        let pieces = match lands {
            true if self.landing.capacity() > 0 => longest,
            true => 0,
            false => self.landing.staging_room().min(longest),
        };
        Ok(whole.max(pieces))
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// See [`TxError`]; nothing was sent.
    pub fn send(&mut self, packet: &Packet<'_, H::Memory>) -> Result<(), TxError> {
        self.send_with(packet, None)
    }

    /// Sends a packet whose body, `len` bytes, is written into the frame by `fill`, which returns its sum: the way of a
    /// source that can only be read. The packet's own body is not looked at, and it is not queued for a neighbour. An
    /// error of `fill` is handed back; nothing was sent then.
    ///
    /// # Errors
    /// See [`TxError`]; nothing was sent.
    pub fn send_filled(
        &mut self,
        packet: &Packet<'_, H::Memory>,
        len: usize,
        fill: &mut Fill<'_>,
    ) -> Result<(), TxError> {
        self.send_with(packet, Some(&mut Filled { len, pieces: false, fill }))
    }

    /// The same where `fill` can write the body in pieces, each call the next one, and anew after the last: a packet that is
    /// too large goes in fragments.
    ///
    /// # Errors
    /// See [`TxError`]; fragments before the one that failed were sent.
    pub fn send_pieces(
        &mut self,
        packet: &Packet<'_, H::Memory>,
        len: usize,
        fill: &mut Fill<'_>,
    ) -> Result<(), TxError> {
        self.send_with(packet, Some(&mut Filled { len, pieces: true, fill }))
    }

    /// Whether the NIC keeps spans of lent memory until the packet's token is done.
    #[inline]
    pub fn keeps_spans(&self, nic: NicId) -> bool {
        self.iface(nic).is_some_and(|i| i.caps.contains(NicCaps::GATHER | NicCaps::ASYNC))
    }

    fn send_with(&mut self, packet: &Packet<'_, H::Memory>, fill: Option<&mut Filled<'_>>) -> Result<(), TxError> {
        let body = fill.as_ref().map(|filled| (filled.len, filled.pieces));
        let Leaving { hop, mac, l4_len, room } = self.leaving(packet, body)?;
        if l4_len <= room {
            self.send_whole(packet, &hop, mac, l4_len, fill)
        } else {
            self.send_fragments(packet, &hop, mac?, l4_len, room & !7, fill)
        }
    }

    /// Where a packet leaves. `filled`: the bytes of a body that is written, and whether in pieces. Apart, so that what asks for
    /// a neighbour does not lie under what sends.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    fn leaving(&mut self, packet: &Packet<'_, H::Memory>, filled: Option<(usize, bool)>) -> Result<Leaving, TxError> {
        let hop = self.route(packet.src, packet.dst, packet.nic).inspect_err(|_| self.stats.count(Counter::NoRoute))?;
        let iface = self.interface(hop.nic).ok_or(TxError::NetworkDown)?;
        if !iface.link {
            return Err(TxError::NetworkDown);
        }
        let (body_len, cuts) = match filled {
            Some(filled) => filled,
            None => (packet.body.iter().map(Span::len).sum(), true),
        };
        let l4_len = packet.header.len().saturating_add(body_len);
        let mtu = self.path_mtu.get(self.now, packet.dst).unwrap_or(iface.mtu).min(iface.mtu);
        let room = usize::from(mtu).saturating_sub(ipv4::HEADER_LEN);
        let too_long = packet.dont_fragment || l4_len > usize::from(ipv4::MAX_PAYLOAD_LEN);
        if l4_len > room && (too_long || !cuts || room & !7 <= packet.header.len()) {
            return Err(TxError::TooBig(room));
        }
        let mac = self.next_hop_mac(&hop);
        Ok(Leaving { hop, mac, l4_len, room })
    }

    /// Sends a packet that fits a frame.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    fn send_whole(
        &mut self,
        packet: &Packet<'_, H::Memory>,
        hop: &Hop,
        mac: Result<Address, TxError>,
        l4_len: usize,
        fill: Option<&mut Filled<'_>>,
    ) -> Result<(), TxError> {
        let dst_mac = match mac {
            Ok(mac) => mac,
            Err(TxError::Resolving) if packet.queue && fill.is_none() && self.queue.has_slots() => Address([0; 6]),
            Err(e) => return Err(e),
        };
        let id = self.next_ident();
        let iface = self.interfaces.get_mut(usize::from(hop.nic.0)).and_then(Option::as_mut);
        let iface = iface.ok_or(TxError::NetworkDown)?;
        let part = Part { len: l4_len, id, more: false, offset: 0 };
        let headers = build_headers(iface, hop, dst_mac, packet, part, l4_len);
        if mac.is_err() {
            let offload = iface.caps.contains(NicCaps::TX_L4_SUM);
            let kept = keep(&mut self.queue, &mut self.stats, hop, &headers, packet.body, offload, false);
            return if kept { Ok(()) } else { Err(TxError::Resolving) };
        }
        let (body, nic, token) = (packet.body, hop.nic, packet.token);
        let frames = &mut self.frames;
        let mut out = Transmission { iface, frames, nic, headers: &headers, body, from: 0, sum: None, token };
        let sent = match fill {
            None => transmit(&mut out),
            Some(filled) => transmit_filled(&mut out, filled.fill),
        };
        let Err(error) = sent else {
            self.stats.count(Counter::TxFrames);
            return Ok(());
        };
        count_tx(&mut self.stats, &sent);
        if error == TxError::Busy {
            self.blocked = true;
            if packet.queue && self.queue.has_room(hop.nic, hop.next) {
                let offload = iface.caps.contains(NicCaps::TX_L4_SUM);
                let kept = keep(&mut self.queue, &mut self.stats, hop, &headers, packet.body, offload, true);
                return if kept { Ok(()) } else { sent };
            }
        }
        sent
    }

    /// Sends the frames that have waited for a neighbour and may go, or have waited for room in the NIC.
    pub(super) fn flush_waiting(&mut self) {
        let Stack { queue, interfaces, frames, stats, blocked, .. } = self;
        queue.flush(|nic, frame| {
            let Some(iface) = interfaces.get_mut(usize::from(nic.0)).and_then(Option::as_mut) else { return true };
            let sent = copy_out(iface, frames, nic, frame.len(), |out| {
                out.copy_from_slice(frame);
                Ok(())
            });
            count_tx(stats, &sent);
            *blocked |= sent == Err(TxError::Busy);
            sent != Err(TxError::Busy)
        });
    }

    /// Sends a frame whose bytes are all given, Ethernet header included; padded to the minimum.
    pub fn send_frame(&mut self, nic: NicId, frame: &[u8]) -> Result<(), TxError> {
        let iface = self.interfaces.get_mut(usize::from(nic.0)).and_then(Option::as_mut).ok_or(TxError::NetworkDown)?;
        if !iface.link {
            return Err(TxError::NetworkDown);
        }
        if frame.len() > usize::from(iface.mtu).saturating_add(TAGGED_HEADER_LEN) {
            return Err(TxError::TooBig(usize::from(iface.mtu)));
        }
        let sent = copy_out(iface, &mut self.frames, nic, frame.len(), |out| {
            out.copy_from_slice(frame);
            Ok(())
        });
        count_tx(&mut self.stats, &sent);
        self.blocked |= sent == Err(TxError::Busy);
        sent
    }

    #[inline]
    pub(super) fn next_hop_mac(&mut self, hop: &Hop) -> Result<Address, TxError> {
        match self.neighbours.known(self.now, hop.nic, hop.next) {
            Some(mac) => Ok(mac),
            None => self.find_next_hop(hop),
        }
    }

    fn find_next_hop(&mut self, hop: &Hop) -> Result<Address, TxError> {
        if hop.next == Ipv4Addr::BROADCAST {
            return Ok(Address::BROADCAST);
        }
        if hop.next.is_multicast() {
            return Ok(Address::for_group(hop.next));
        }
        let (found, evicted) = self.neighbours.lookup(self.now, hop.nic, hop.next);
        if evicted {
            self.stats.count(Counter::NeighbourEvicted);
        }
        match found {
            Lookup::Known(mac) => Ok(mac),
            Lookup::Failed => Err(TxError::HostUnreachable),
            Lookup::Resolving { ask } => {
                if ask && self.ask_neighbour(hop.nic, hop.next, None) == Err(TxError::Busy) {
                    self.neighbours.unasked(self.now, hop.nic, hop.next);
                }
                Err(TxError::Resolving)
            }
        }
    }
}

/// Keeps a copy of a packet in the queue; whether it was kept. `ready`: its destination is known.
fn keep<M: Memory>(
    queue: &mut WaitQueue<'_>,
    stats: &mut Stats,
    hop: &Hop,
    headers: &Headers<'_>,
    body: &[Span<'_, M>],
    offload: bool,
    ready: bool,
) -> bool {
    let body_len: usize = body.iter().map(Span::len).sum();
    let total = headers.len().saturating_add(body_len).max(MIN_FRAME_LEN);
    let stored = queue.store(hop.nic, hop.next, total, ready, |out| {
        let (head, rest) = out.split_at_mut_checked(headers.len())?;
        let sum = copy_spans(rest.get_mut(..body_len)?, body, 0).ok()?;
        headers.write(head, sum, offload)
    });
    if stored.displaced {
        stats.count(Counter::DropNeighbourQueue);
    }
    stored.stored
}

pub(super) fn count_tx(stats: &mut Stats, sent: &Result<(), TxError>) {
    stats.count(match sent {
        Ok(()) => Counter::TxFrames,
        Err(TxError::Busy) => Counter::TxBusy,
        Err(_) => Counter::TxFailed,
    });
}

#[inline(always)] // What it is given and what it returns is taken apart at once.
pub(super) fn build_headers<'p, N: Nic<Memory = M>, M: Memory>(
    iface: &Interface<N>,
    hop: &Hop,
    dst: Address,
    packet: &'p Packet<'p, M>,
    part: Part,
    l4_len: usize,
) -> Headers<'p> {
    let ip = ipv4::Repr {
        source: hop.src,
        destination: packet.dst,
        protocol: packet.protocol,
        payload_len: u16::try_from(part.len).unwrap_or(u16::MAX),
        tos: packet.tos,
        ttl: packet.ttl,
        identification: part.id,
        dont_fragment: packet.dont_fragment,
        more_fragments: part.more,
        fragment_offset: part.offset,
    };
    Headers {
        link: ethernet::Repr { destination: dst, source: iface.mac, ether_type: EtherType::IPV4 },
        vlan: iface.vlan,
        ip,
        ip_offload: iface.caps.contains(NicCaps::TX_IP_SUM),
        l4: if part.offset == 0 { &packet.header } else { &L4Header { bytes: &[], sum: L4Sum::None } },
        pseudo: pseudo_header(hop.src, packet.dst, packet.protocol, l4_len),
    }
}

/// The part of a datagram that one frame carries.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) len: usize,
    pub(super) id: u16,
    pub(super) more: bool,
    pub(super) offset: u16,
}

/// Writes a body into a frame and returns its sum.
pub type Fill<'f> = dyn FnMut(&mut [u8]) -> Result<Sum, TxError> + 'f;

/// A frame on its way out.
pub(super) struct Transmission<'t, 'f, N: Nic> {
    pub(super) iface: &'t mut Interface<N>,
    pub(super) frames: &'t mut TxFrames<'f>,
    pub(super) nic: NicId,
    pub(super) headers: &'t Headers<'t>,
    /// What the frame carries of this begins at `from`.
    pub(super) body: &'t [Span<'t, N::Memory>],
    pub(super) from: usize,
    /// What the checksum covers behind the transport header, where that is more than this frame carries. Then no hardware
    /// sums: it knows nothing of other fragments.
    pub(super) sum: Option<Sum>,
    pub(super) token: Token,
}

impl<N: Nic> Transmission<'_, '_, N> {
    /// Whether the hardware sums.
    fn offloads(&self) -> bool {
        self.iface.caps.contains(NicCaps::TX_L4_SUM) && self.sum.is_none()
    }
}

/// Sends a frame.
#[inline]
pub(super) fn transmit<N: Nic>(out: &mut Transmission<'_, '_, N>) -> Result<(), TxError> {
    let lends = out.body.iter().any(|s| matches!(s, Span::Memory { .. }));
    let caps = out.iface.caps;
    if !caps.contains(NicCaps::GATHER) || (caps.contains(NicCaps::ASYNC) && !lends) {
        return transmit_copied(out);
    }
    transmit_gathered(out)
}

/// Has `fill` write the body.
pub(super) fn transmit_filled<N: Nic>(out: &mut Transmission<'_, '_, N>, fill: &mut Fill<'_>) -> Result<(), TxError> {
    let offload = out.offloads();
    let Transmission { iface, frames, nic, headers, sum, .. } = out;
    copy_out(iface, frames, *nic, headers.frame_len(), |out| {
        let (head, body) = out.split_at_mut_checked(headers.len()).ok_or(TxError::Invalid)?;
        let filled = fill(body)?;
        headers.write(head, sum.unwrap_or(filled), offload).ok_or(TxError::Invalid)
    })
}

// On small machines the two ways out have a frame each.
#[cfg_attr(target_pointer_width = "32", inline(never))]
#[cfg_attr(not(target_pointer_width = "32"), inline)]
fn transmit_copied<N: Nic>(out: &mut Transmission<'_, '_, N>) -> Result<(), TxError> {
    let offload = out.offloads();
    let Transmission { iface, frames, nic, headers, body, from, sum, .. } = out;
    copy_out(iface, frames, *nic, headers.frame_len(), |out| {
        let (head, rest) = out.split_at_mut_checked(headers.len()).ok_or(TxError::Invalid)?;
        let copied = copy_spans(rest, body, *from)?;
        headers.write(head, sum.unwrap_or(copied), offload).ok_or(TxError::Invalid)
    })
}

#[cfg_attr(target_pointer_width = "32", inline(never))]
#[cfg_attr(not(target_pointer_width = "32"), inline)]
fn transmit_gathered<N: Nic>(out: &mut Transmission<'_, '_, N>) -> Result<(), TxError> {
    let offload = out.offloads();
    let Transmission { iface, frames, nic, headers, body, from, sum, token } = out;
    let len = headers.frame_len();
    let sum = match *sum {
        Some(sum) => sum,
        None if offload || headers.l4.sum == L4Sum::None => Sum::ZERO,
        None => sum_spans(body)?,
    };
    let mut head = [0; MAX_HEADERS];
    let head = head.get_mut(..headers.len()).ok_or(TxError::Invalid)?;
    headers.write(head, sum, offload).ok_or(TxError::Invalid)?;
    let tail =
        Tail { spans: body, from: *from, len: len.saturating_sub(head.len()), pad: MIN_FRAME_LEN.saturating_sub(len) };
    send_gathered(iface, frames, *nic, head, &tail, *token)
}

/// Has `fill` write a frame of `len` bytes into the NIC's own buffer, or into a frame of the stack's where the NIC has
/// none, and sends it, padded with zeros to the minimum (RFC 894, RFC 1042).
pub(super) fn copy_out<N: Nic>(
    iface: &mut Interface<N>,
    frames: &mut TxFrames<'_>,
    nic: NicId,
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<(), TxError>,
) -> Result<(), TxError> {
    let total = len.max(MIN_FRAME_LEN);
    if iface.nic.has_tx_buffer() {
        let filled = match iface.nic.tx_buffer(total) {
            None => return Err(TxError::Busy),
            Some(out) => fill_padded(out, len, fill),
        };
        if let Err(e) = filled {
            // Gives the buffer back unused; should that fail, nothing is different.
            let _ = iface.nic.send_buffer(0, Token(0));
            return Err(e);
        }
        return iface.nic.send_buffer(total, Token(0)).map_err(TxError::from);
    }
    let asynchronous = iface.caps.contains(NicCaps::ASYNC);
    let (slot, token) = frames.claim(nic, Token(0)).ok_or(TxError::Busy)?;
    let sent = match slot.get_mut(..total) {
        None => Err(TxError::TooBig(0)),
        Some(out) => fill_padded(out, len, fill).and_then(|()| iface.nic.send_whole(out, token).map_err(TxError::from)),
    };
    if !asynchronous || sent.is_err() {
        frames.done(nic, token);
    }
    sent
}

fn fill_padded(out: &mut [u8], len: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), TxError>) -> Result<(), TxError> {
    let (frame, pad) = out.split_at_mut_checked(len).ok_or(TxError::Invalid)?;
    fill(frame)?;
    pad.fill(0);
    Ok(())
}

impl From<SendError> for TxError {
    fn from(e: SendError) -> Self {
        match e {
            SendError::Busy => TxError::Busy,
            SendError::Failed(code) => TxError::Failed(code),
        }
    }
}
