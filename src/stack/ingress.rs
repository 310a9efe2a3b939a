//! Receiving: from the frame to the transport's bytes. Ethernet, VLAN, ARP and IPv4 are dealt with here; a packet for us
//! is handed up as a disposition, its transport checksum not yet looked at (it is verified in the
//! pass that copies the payload).

use super::Stack;
use super::hooks::Hook;
use super::icmp::{EchoReply, IcmpError};
use super::interface::{Cast, Interface, NicId};
use super::stats::Counter;
use crate::storage::checksum::Sum;
use crate::storage::host::{Host, Nic, RxFlags};
use crate::wire::ethernet::{EtherType, FCS_LEN, Frame, Protocol as LinkProtocol};
use crate::wire::ipv4::{self, Protocol};
use core::net::Ipv4Addr;

/// A whole IPv4 packet for us.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'f> {
    /// Interface it came in on.
    pub nic: NicId,
    /// How it was addressed.
    pub cast: Cast,
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Transport protocol.
    pub protocol: Protocol,
    /// Transport header and payload.
    pub payload: &'f [u8],
    /// The IPv4 header and what follows, within the total length: what ICMP errors quote.
    pub ip: ipv4::Packet<'f>,
    /// The NIC has verified the transport checksum.
    pub sum_ok: bool,
    /// The whole frame.
    pub frame: &'f [u8],
}

/// What an ICMP message means for those above, beyond what the stack did itself.
#[derive(Debug)]
pub enum Action<'f> {
    /// Nothing: it was handled, or dropped and counted.
    Done,
    /// An echo reply.
    EchoReply(EchoReply<'f>),
    /// An error about a packet of ours.
    Error(IcmpError),
}

/// A raw hook that wants to see a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Index of the hook.
    pub hook: usize,
    /// Where what it asked for begins in the frame: behind the Ethernet header.
    pub at: usize,
    /// How many bytes that is.
    pub len: usize,
}

/// The disposition of a frame. It is matched on as soon as it is made: only then is the packet in it never copied.
#[derive(Debug)]
pub enum Ingress<'f> {
    /// Handled, or dropped and counted.
    Done,
    /// Something that only a raw hook wants to see.
    Hooked(Hit),
    /// An IPv4 packet for us, whole or a fragment.
    Packet(Packet<'f>),
}

/// What a frame is, once its headers are found right.
enum Sound<'f> {
    /// An IPv4 packet for us.
    Ipv4(Packet<'f>),
    /// An ARP packet.
    Arp(&'f [u8]),
    /// Anything else, and what follows the Ethernet header.
    Other(EtherType, &'f [u8]),
}

/// Checks the Ethernet header.
#[inline(always)] // It has one caller, and what it returns is large.
fn check_frame<'f, N: Nic>(
    interface: &Interface<N>,
    nic: NicId,
    bytes: &'f [u8],
    flags: RxFlags,
) -> Result<Sound<'f>, Counter> {
    let frame = Frame::parse(bytes).map_err(|_| Counter::DropShort)?;
    if frame.payload().len() > usize::from(interface.frame_mtu).saturating_add(FCS_LEN) {
        return Err(Counter::DropOversize);
    }
    let to = frame.destination();
    if to != interface.mac && !to.is_multicast() {
        return Err(Counter::DropNotOurs);
    }
    // IEEE 802.1Q §9.6: a priority tag (VID 0) says nothing of the VLAN.
    let tagged = frame.vlan();
    if tagged != interface.vlan && !(flags.contains(RxFlags::VLAN_STRIPPED) && tagged.is_none()) {
        return Err(Counter::DropVlan);
    }
    match frame.protocol() {
        LinkProtocol::Ipv4 => check_ipv4(interface, nic, bytes, frame.payload(), flags).map(Sound::Ipv4),
        LinkProtocol::Arp => Ok(Sound::Arp(frame.payload())),
        LinkProtocol::Llc => Err(Counter::DropLlc),
        LinkProtocol::Ipv6 => Ok(Sound::Other(EtherType::IPV6, frame.payload())),
        LinkProtocol::Other(kind) => Ok(Sound::Other(kind, frame.payload())),
    }
}

/// Checks the IPv4 header.
#[inline(always)] // As above.
fn check_ipv4<'f, N: Nic>(
    interface: &Interface<N>,
    nic: NicId,
    bytes: &'f [u8],
    payload: &'f [u8],
    flags: RxFlags,
) -> Result<Packet<'f>, Counter> {
    let ip = ipv4::Packet::parse(payload).map_err(|_| Counter::DropIpMalformed)?;
    let plain = ip.options().is_empty();
    if !flags.contains(RxFlags::IP_SUM_OK) {
        let sum = if plain { Sum::of_header(ip.head()) } else { Sum::of(ip.header_bytes()) };
        if !sum.holds() {
            return Err(Counter::DropIpChecksum);
        }
    }
    let (src, dst) = (ip.source(), ip.destination());
    // RFC 1122 §3.2.1.3: neither a group nor a broadcast can be a source, nor can we.
    if !super::interface::is_host_address(src) || interface.owns_or_broadcasts(src) {
        return Err(Counter::DropIpSource);
    }
    let cast = interface.cast(dst).ok_or(Counter::DropIpNotOurs)?;
    if !plain && ip.has_source_route() {
        return Err(Counter::DropIpOptions);
    }
    Ok(Packet {
        nic,
        cast,
        src,
        dst,
        protocol: ip.protocol(),
        payload: ip.payload(),
        ip,
        sum_ok: flags.contains(RxFlags::L4_SUM_OK),
        frame: bytes,
    })
}

impl<'a, H: Host> Stack<'a, H> {
    /// Takes a received frame.
    #[inline]
    pub fn receive<'f>(&mut self, nic: NicId, bytes: &'f [u8], flags: RxFlags) -> Ingress<'f> {
        self.stats.count(Counter::RxFrames);
        let Some(interface) = self.iface(nic) else { return Ingress::Done };
        match check_frame(interface, nic, bytes, flags) {
            Ok(Sound::Ipv4(packet)) => Ingress::Packet(packet),
            Ok(Sound::Arp(payload)) => {
                self.receive_arp(nic, payload);
                Ingress::Done
            }
            Ok(Sound::Other(kind, payload)) => self.receive_hooked(kind, bytes, payload),
            Err(counter) => self.drop_frame(counter),
        }
    }

    #[cold]
    #[inline(never)]
    fn drop_frame(&mut self, counter: Counter) -> Ingress<'static> {
        self.stats.count(counter);
        Ingress::Done
    }

    #[inline(never)]
    fn receive_hooked(&mut self, kind: EtherType, bytes: &[u8], payload: &[u8]) -> Ingress<'static> {
        let Some(hook) = self.hooks.find(Hook::EtherType(kind)) else {
            return self.drop_frame(Counter::DropEthertype);
        };
        let at = bytes.len().saturating_sub(payload.len());
        Ingress::Hooked(Hit { hook, at, len: payload.len() })
    }

    /// Takes a packet put together from fragments, with its rebuilt headers; `None`: dropped and counted.
    #[inline(never)]
    pub fn receive_reassembled<'f>(&mut self, nic: NicId, bytes: &'f [u8], flags: RxFlags) -> Option<Packet<'f>> {
        let parsed = Frame::parse(bytes).and_then(|frame| ipv4::Packet::parse(frame.payload()));
        let Ok(ip) = parsed else {
            self.stats.count(Counter::DropIpMalformed);
            return None;
        };
        let Some(cast) = self.iface(nic).and_then(|i| i.cast(ip.destination())) else {
            self.stats.count(Counter::DropIpNotOurs);
            return None;
        };
        Some(Packet {
            nic,
            cast,
            src: ip.source(),
            dst: ip.destination(),
            protocol: ip.protocol(),
            payload: ip.payload(),
            ip,
            sum_ok: flags.contains(RxFlags::L4_SUM_OK),
            frame: bytes,
        })
    }

    /// Takes a packet of a protocol that is not handled here: for a raw hook, else its sender is told.
    #[cold]
    #[inline(never)]
    pub fn receive_other(&mut self, packet: &Packet<'_>) -> Option<Hit> {
        let hit = self.protocol_hit(packet);
        if hit.is_none() {
            self.stats.count(Counter::DropIpProtocol);
            self.send_unreachable(packet, crate::wire::icmpv4::Unreachable::PROTOCOL);
        }
        hit
    }

    /// The raw hook that wants to see `packet`.
    pub fn protocol_hit(&self, packet: &Packet<'_>) -> Option<Hit> {
        let hook = self.hooks.find(Hook::Protocol(packet.protocol))?;
        let len = packet.ip.header_len().saturating_add(packet.payload.len());
        let frame = Frame::parse(packet.frame).ok()?;
        let at = packet.frame.len().saturating_sub(frame.payload().len());
        Some(Hit { hook, at, len })
    }
}
