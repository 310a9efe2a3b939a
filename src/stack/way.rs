//! Ways: what is the same for every packet of a flow, found once: interface, hardware addresses, Ethernet and IPv4 header
//! but for length, identification and checksum. A stream sends thousands of packets one way; each costs it a few words
//! of header here. A way is found anew when routes, neighbours, addresses or path MTUs have changed, and every second, so
//! that a neighbour that is used stays known.

use super::Stack;
use super::egress::{self, Fill, Hop, MAX_BODY, MAX_HEADERS, TxError, copy_out, copy_spans, sum_spans};
use super::frames::TxFrames;
use super::gather::{Tail, send_gathered};
use super::interface::{Interface, NicId};
use super::stats::Counter;
use crate::storage::checksum::Sum;
use crate::storage::host::{Host, Memory, Nic, NicCaps, Span, Token};
use crate::storage::time::{Duration, Instant};
use crate::wire::ethernet::{self, Address, EtherType, MIN_FRAME_LEN, TAGGED_HEADER_LEN, Tag};
use crate::wire::ipv4::{self, Protocol};
use core::net::Ipv4Addr;

/// How long a way is used before it is found anew.
const VALID: Duration = Duration::from_secs(1);
/// Most bytes before the transport header.
const MAX_HEAD: usize = TAGGED_HEADER_LEN + ipv4::HEADER_LEN;

/// What tells a flow's packets from others of their kind.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Source address, one of ours.
    pub src: Ipv4Addr,
    /// Destination address of one host.
    pub dst: Ipv4Addr,
    /// Interface.
    pub nic: NicId,
    /// Transport protocol.
    pub protocol: Protocol,
    /// Time to live.
    pub ttl: u8,
    /// Type of service byte.
    pub tos: u8,
    /// Don't-fragment flag.
    pub dont_fragment: bool,
}

/// The way of a flow. What is too long for one frame does not go this way.
#[derive(Clone, Debug)]
pub struct Way {
    pub(super) nic: NicId,
    until: Instant,
    head: [u8; MAX_HEAD],
    head_len: u8,
    /// Sum of the IPv4 header with length, identification and checksum zero.
    pub(super) ip: Sum,
    /// Sum of the pseudo header without its length.
    pub(super) pseudo: Sum,
    /// What a checksum of zero is sent as.
    pub(super) zero: [u8; 2],
    /// Largest transport header and payload, in bytes.
    pub(super) room: u16,
    /// That of the stack when the way was found.
    version: u32,
}

impl Way {
    /// All bytes before the transport header; length, identification and checksum are zero.
    #[inline]
    pub(super) fn head(&self) -> &[u8] {
        self.head.get(..usize::from(self.head_len)).unwrap_or_default()
    }
}

/// What follows the transport header.
pub enum Load<'l, 'p, M> {
    /// Bytes where they lie.
    Spans(&'l [Span<'p, M>]),
    /// So many bytes that a function writes into the frame and sums.
    Fill(usize, &'l mut Fill<'l>),
}

/// Writes `part` at `at`.
#[inline]
fn put<const N: usize>(out: &mut [u8], at: usize, part: [u8; N]) -> Option<()> {
    *out.get_mut(at..)?.first_chunk_mut::<N>()? = part;
    Some(())
}

/// What is written around a body.
struct Frame<'f> {
    way: &'f Way,
    ident: u16,
    /// Transport header, and where its checksum goes.
    l4: &'f [u8],
    sum_at: usize,
    /// Length of transport header and body.
    l4_len: u16,
    ip_offload: bool,
    /// The hardware makes the transport checksum.
    offload: bool,
}

impl Frame<'_> {
    /// Writes all headers to `out`, which is as long as they are. `body`: its sum, unless hardware sums.
    #[inline]
    fn write(&self, out: &mut [u8], body: Option<Sum>) -> Option<()> {
        let way = self.way;
        // Without a VLAN tag, as nearly always, lengths are known here, and copies are a few moves.
        let (head, rest) = match out.split_first_chunk_mut::<{ ethernet::HEADER_LEN + ipv4::HEADER_LEN }>() {
            Some((head, rest)) if usize::from(way.head_len) == head.len() => {
                *head = *way.head.first_chunk()?;
                (&mut head[..], rest)
            }
            _ => {
                let (head, rest) = out.split_first_chunk_mut::<MAX_HEAD>()?;
                *head = way.head;
                (&mut head[..], rest)
            }
        };
        let ip = head.last_chunk_mut::<{ ipv4::HEADER_LEN }>()?;
        let total = self.l4_len.wrapping_add(ipv4::HEADER_LEN as u16);
        [ip[2], ip[3]] = total.to_be_bytes();
        [ip[4], ip[5]] = self.ident.to_be_bytes();
        if !self.ip_offload {
            let sum = way.ip + Sum::of_u16(total) + Sum::of_u16(self.ident);
            [ip[10], ip[11]] = sum.to_field();
        }
        let pseudo = way.pseudo + Sum::of_u16(self.l4_len);
        let header = if let Ok(l4) = <&[u8; 8]>::try_from(self.l4) {
            copy_array(rest, l4)?
        } else if let Ok(l4) = <&[u8; 20]>::try_from(self.l4) {
            copy_array(rest, l4)?
        } else if let Ok(l4) = <&[u8; 32]>::try_from(self.l4) {
            copy_array(rest, l4)?
        } else {
            Sum::copy(rest, self.l4)?
        };
        let field = match body {
            Some(body) => match (pseudo + header + body).to_field() {
                [0, 0] => way.zero,
                field => field,
            },
            // The hardware adds header and body to what stands in the field.
            None => pseudo.fold().to_ne_bytes(),
        };
        put(rest, self.sum_at, field)
    }
}

/// Copies a header whose length the compiler knows, and sums it.
#[inline]
fn copy_array<const N: usize>(out: &mut [u8], header: &[u8; N]) -> Option<Sum> {
    *out.first_chunk_mut::<N>()? = *header;
    Some(Sum::of_array(header))
}

/// Has a NIC that does not gather, or lends nothing, copy what goes along a way.
#[inline(never)]
fn copy_along<N: Nic>(
    iface: &mut Interface<N>,
    frames: &mut TxFrames<'_>,
    frame: &Frame<'_>,
    load: Load<'_, '_, N::Memory>,
) -> Result<(), TxError> {
    let nic = frame.way.nic;
    let headers = usize::from(frame.way.head_len).wrapping_add(frame.l4.len());
    let len = usize::from(frame.way.head_len).wrapping_add(usize::from(frame.l4_len));
    match load {
        // Each kind has a closure of its own: what is moved into one that serves all is stored in parts and loaded as a
        // whole, and waits for the payload's stores.
        Load::Spans([span]) => copy_out(iface, frames, nic, len, |out| {
            let (head, rest) = out.split_at_mut_checked(headers).ok_or(TxError::Invalid)?;
            let body = match span {
                Span::Bytes(bytes) => Sum::copy(rest, bytes).ok_or(TxError::Invalid)?,
                Span::Memory { memory, at, .. } => memory.read_sum(*at, rest).map_err(|_| TxError::Invalid)?,
            };
            frame.write(head, if frame.offload { None } else { Some(body) }).ok_or(TxError::Invalid)
        }),
        Load::Spans(spans) => copy_out(iface, frames, nic, len, |out| {
            let (head, rest) = out.split_at_mut_checked(headers).ok_or(TxError::Invalid)?;
            let body = copy_spans(rest, spans, 0)?;
            frame.write(head, if frame.offload { None } else { Some(body) }).ok_or(TxError::Invalid)
        }),
        Load::Fill(_, fill) => copy_out(iface, frames, nic, len, |out| {
            let (head, rest) = out.split_at_mut_checked(headers).ok_or(TxError::Invalid)?;
            let body = fill(rest)?;
            frame.write(head, if frame.offload { None } else { Some(body) }).ok_or(TxError::Invalid)
        }),
    }
}

impl<'a, H: Host> Stack<'a, H> {
    /// Finds the way of a flow; asks for the neighbour's hardware address if it is not known.
    ///
    /// # Errors
    /// [`TxError::Resolving`] while the neighbour is asked for; the others of [`Self::send`].
    pub fn find_way(&mut self, flow: &Flow) -> Result<Way, TxError> {
        let (hop, mac) = self.find_hop(flow)?;
        self.way_over(flow, &hop, mac)
    }

    /// Where a flow leaves, and to which hardware address: the first half of [`Self::find_way`], which is the deeper one.
    ///
    /// # Errors
    /// As there.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    pub fn find_hop(&mut self, flow: &Flow) -> Result<(Hop, Address), TxError> {
        let hop = self.route(flow.src, flow.dst, Some(flow.nic)).inspect_err(|_| self.stats.count(Counter::NoRoute))?;
        let mac = self.next_hop_mac(&hop)?;
        Ok((hop, mac))
    }

    /// The way over `hop`, whose hardware address is `mac`.
    ///
    /// # Errors
    /// [`TxError::NetworkDown`].
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    pub fn way_over(&self, flow: &Flow, hop: &Hop, mac: Address) -> Result<Way, TxError> {
        let now = self.now;
        let iface = self.interface(hop.nic).ok_or(TxError::NetworkDown)?;
        let link = ethernet::Repr { destination: mac, source: iface.mac, ether_type: EtherType::IPV4 };
        let ip = ipv4::Repr {
            source: hop.src,
            destination: flow.dst,
            protocol: flow.protocol,
            payload_len: 0,
            tos: flow.tos,
            ttl: flow.ttl,
            identification: 0,
            dont_fragment: flow.dont_fragment,
            more_fragments: false,
            fragment_offset: 0,
        };
        let mut head = [0u8; MAX_HEAD];
        let link_len = match iface.vlan {
            None => put(&mut head, 0, link.emit()).map(|()| ethernet::HEADER_LEN),
            Some(vlan) => put(&mut head, 0, link.emit_tagged(Tag::new(vlan))).map(|()| TAGGED_HEADER_LEN),
        };
        let link_len = link_len.ok_or(TxError::Invalid)?;
        let mut bytes = ip.emit([0; 2]);
        if let Some(length) = bytes.get_mut(2..4) {
            length.fill(0);
        }
        put(&mut head, link_len, bytes).ok_or(TxError::Invalid)?;
        let mtu = self.path_mtu.get(now, flow.dst).unwrap_or(iface.mtu).min(iface.mtu);
        Ok(Way {
            nic: hop.nic,
            until: now + VALID,
            head,
            head_len: link_len.saturating_add(ipv4::HEADER_LEN) as u8,
            ip: Sum::of_header(&bytes),
            pseudo: egress::pseudo_header(hop.src, flow.dst, flow.protocol, 0),
            // RFC 768: an all-zero field means "no checksum", so a computed zero goes as ones.
            zero: if flow.protocol == Protocol::UDP { [0xff; 2] } else { [0; 2] },
            room: mtu.saturating_sub(ipv4::HEADER_LEN as u16),
            version: self.version(),
        })
    }

    /// Whether a way may still be used: nothing that it was found by has changed, and it is not too old.
    #[inline]
    pub fn is_valid(&self, way: &Way) -> bool {
        way.version == self.version() && self.now < way.until
    }

    /// Sends a packet along a way that is valid: transport header `l4`, whose checksum goes to `sum_at`, and `load`.
    ///
    /// # Errors
    /// See [`TxError`]; nothing was sent.
    #[inline]
    pub fn send_along(
        &mut self,
        way: &Way,
        l4: &[u8],
        sum_at: usize,
        load: Load<'_, '_, H::Memory>,
        token: Token,
    ) -> Result<(), TxError> {
        let body_len = match &load {
            Load::Spans(spans) => spans.iter().fold(0usize, |sum, span| sum.wrapping_add(span.len())),
            Load::Fill(len, _) => *len,
        };
        let l4_len = l4.len().wrapping_add(body_len);
        let room = usize::from(way.room);
        if l4_len > room {
            return Err(TxError::TooBig(room));
        }
        let ident = self.next_ident();
        let iface = self.interfaces.get_mut(usize::from(way.nic.0)).and_then(Option::as_mut);
        let iface = iface.filter(|iface| iface.link).ok_or(TxError::NetworkDown)?;
        let caps = iface.caps;
        let (offload, ip_offload) = (caps.contains(NicCaps::TX_L4_SUM), caps.contains(NicCaps::TX_IP_SUM));
        let headers = usize::from(way.head_len).wrapping_add(l4.len());
        let len = headers.wrapping_add(body_len);
        let lends = match &load {
            Load::Spans(spans) => spans.iter().any(|s| matches!(s, Span::Memory { .. })),
            Load::Fill(..) => false,
        };
        let gathers = caps.contains(NicCaps::GATHER) && (lends || !caps.contains(NicCaps::ASYNC));
        let frames = &mut self.frames;
        let frame = Frame { way, ident, l4, sum_at, l4_len: l4_len as u16, ip_offload, offload };
        let sent = match load {
            Load::Spans(spans) if gathers => {
                let body = if offload { Ok(None) } else { sum_spans(spans).map(Some) };
                body.and_then(|body| {
                    let mut head = [0u8; MAX_HEADERS];
                    let head = head.get_mut(..headers).ok_or(TxError::Invalid)?;
                    frame.write(head, body).ok_or(TxError::Invalid)?;
                    let tail = Tail { spans, from: 0, len: body_len, pad: MIN_FRAME_LEN.saturating_sub(len) };
                    send_gathered(iface, frames, way.nic, head, &tail, token)
                })
            }
            load => copy_along(iface, frames, &frame, load),
        };
        egress::count_tx(&mut self.stats, &sent);
        sent
    }
}

const _: () = assert!(MAX_BODY >= 2, "a ring's bytes lie in two spans");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::host::{SimMemory, SimNic};
    use crate::sim::packets::Station;
    use crate::sim::rig::{Limits, Rig};
    use crate::stack::egress::{L4Header, L4Sum, Packet};
    use crate::stack::interface::{Cidr, Interface};
    use std::vec;
    use std::vec::Vec;

    fn header() -> [u8; 20] {
        let mut header = [0u8; 20];
        for (n, byte) in header.iter_mut().enumerate() {
            *byte = n as u8 * 7;
        }
        header[16] = 0;
        header[17] = 0;
        header
    }

    /// The same packet by `send` and by a way, for every kind of NIC: the frames are equal but for the identification.
    #[test]
    fn a_way_sends_what_send_does() {
        let data: Vec<u8> = (0..1000u32).map(|n| (n * 31) as u8).collect();
        let memory = SimMemory::from(data.clone());
        let (them, header) = (Station::new(2), header());
        for bits in 0..64u32 {
            let caps = NicCaps::from_bits_truncate(bits);
            for (lends, vlan, len) in [(true, None, 1000), (false, None, 333), (false, Some(7), 1), (true, Some(5), 0)]
            {
                let mut rig = Rig::bare(1, Limits::default(), caps, lends);
                let nic = SimNic::new(caps, lends);
                let wire = nic.state.clone();
                let mut interface = Interface::new(nic, rig.us.mac, 1500, vlan);
                interface.add_address(Cidr { addr: rig.us.ip, prefix: 24 });
                *rig.engine.stack.interface_mut(rig.nic).unwrap() = interface;
                rig.know(them);
                let stack = &mut rig.engine.stack;
                let (src, dst, nic) = (rig.us.ip, them.ip, rig.nic);
                let flow = Flow { src, dst, nic, protocol: Protocol::TCP, ttl: 60, tos: 3, dont_fragment: true };
                let way = stack.find_way(&flow).unwrap();
                let bytes = Span::Bytes(&data[..len / 3]);
                let rest = Span::Memory { memory: &memory, at: len / 3, len: len - len / 3 };
                let spans = if len == 0 { vec![] } else { vec![bytes, rest] };
                stack.send_along(&way, &header, 16, Load::Spans(&spans), Token(0)).unwrap();
                let packet = Packet {
                    src: rig.us.ip,
                    dst: them.ip,
                    nic: None,
                    protocol: Protocol::TCP,
                    ttl: 60,
                    tos: 3,
                    dont_fragment: true,
                    header: L4Header::new(&header, L4Sum::Tcp),
                    body: &spans,
                    token: Token(0),
                    queue: false,
                };
                stack.send(&packet).unwrap();
                let mut sent: Vec<Vec<u8>> = wire.borrow_mut().sent.drain(..).collect();
                assert_eq!(sent.len(), 2);
                let ip = if vlan.is_some() { 18 } else { 14 };
                for frame in &mut sent {
                    frame[ip + 4..ip + 6].fill(0);
                    if !caps.contains(NicCaps::TX_IP_SUM) {
                        frame[ip + 10..ip + 12].fill(0);
                    }
                }
                assert_eq!(sent[0], sent[1], "{caps:?} {vlan:?} {len}");
            }
        }
    }

    #[test]
    fn the_ip_checksum_holds_and_what_is_too_long_is_refused() {
        let mut rig = Rig::new(1);
        let them = Station::new(2);
        rig.know(them);
        let (src, dst, nic) = (rig.us.ip, them.ip, rig.nic);
        let flow = Flow { src, dst, nic, protocol: Protocol::TCP, ttl: 64, tos: 0, dont_fragment: true };
        let stack = &mut rig.engine.stack;
        let way = stack.find_way(&flow).unwrap();
        let data = [7u8; 1461];
        for len in [0, 1, 6, 1460] {
            stack.send_along(&way, &header(), 16, Load::Spans(&[Span::Bytes(&data[..len])]), Token(0)).unwrap();
        }
        let long = stack.send_along(&way, &header(), 16, Load::Spans(&[Span::Bytes(&data)]), Token(0));
        assert_eq!(long, Err(TxError::TooBig(1480)));
        for frame in rig.sent() {
            assert!(Sum::of(&frame[14..34]).holds());
        }
        assert!(rig.engine.stack.is_valid(&way));
        rig.engine.stack.now += VALID;
        assert!(!rig.engine.stack.is_valid(&way));
        rig.engine.stack.set_link(rig.nic, false);
        let down = rig.engine.stack.send_along(&way, &header(), 16, Load::Spans(&[]), Token(0));
        assert_eq!(down, Err(TxError::NetworkDown));
    }
}
