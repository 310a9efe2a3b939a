//! Receiving: from the frame to the transport's bytes. Ethernet, VLAN, ARP and IPv4 are dealt with here; what belongs to
//! a socket or a client is handed up as a disposition, its transport checksum not yet looked at (it is verified in the
//! pass that copies the payload).

use super::Stack;
use super::hooks::Hook;
use super::icmp::{EchoReply, IcmpError};
use super::interface::{Cast, NicId};
use super::stats::Counter;
use crate::storage::checksum::Sum;
use crate::storage::host::{Host, RxFlags};
use crate::wire::ethernet::{EtherType, Frame, Protocol as LinkProtocol};
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

/// What is to be done with a frame, beyond what the stack did itself.
#[derive(Debug)]
pub enum Action<'f> {
    /// Nothing: it was handled, or dropped and counted.
    Done,
    /// A UDP datagram.
    Udp(Packet<'f>),
    /// A TCP segment.
    Tcp(Packet<'f>),
    /// A fragment of either.
    Fragment(Packet<'f>),
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

/// The disposition of a frame.
#[derive(Debug)]
pub struct Ingress<'f> {
    /// What is to be done.
    pub action: Action<'f>,
    /// Who else wants to see it.
    pub hit: Option<Hit>,
}

const DONE: Ingress<'static> = Ingress { action: Action::Done, hit: None };

/// Bytes beyond the MTU that a frame may have: Ethernet header, VLAN tag, and a frame check sequence that some drivers
/// leave in.
const FRAME_EXTRA: usize = 14 + 4 + 4;

impl<'a, H: Host> Stack<'a, H> {
    /// Takes a received frame.
    #[inline]
    pub fn receive<'f>(&mut self, nic: NicId, bytes: &'f [u8], flags: RxFlags) -> Ingress<'f> {
        self.stats.count(Counter::RxFrames);
        let Some(interface) = self.interface(nic) else { return DONE };
        if bytes.len() > usize::from(interface.frame_mtu).saturating_add(FRAME_EXTRA) {
            return self.drop_frame(Counter::DropOversize);
        }
        let Ok(frame) = Frame::parse(bytes) else { return self.drop_frame(Counter::DropShort) };
        let to = frame.destination();
        if to != interface.mac && !to.is_multicast() {
            return self.drop_frame(Counter::DropNotOurs);
        }
        // IEEE 802.1Q §9.6: a priority tag (VID 0) says nothing of the VLAN.
        let tagged = frame.vlan();
        if tagged != interface.vlan && !(flags.contains(RxFlags::VLAN_STRIPPED) && tagged.is_none()) {
            return self.drop_frame(Counter::DropVlan);
        }
        match frame.protocol() {
            LinkProtocol::Ipv4 => self.receive_ipv4(nic, bytes, frame.payload(), flags),
            LinkProtocol::Arp => {
                self.receive_arp(nic, frame.payload());
                DONE
            }
            LinkProtocol::Llc => self.drop_frame(Counter::DropLlc),
            LinkProtocol::Ipv6 => self.receive_hooked(EtherType::IPV6, bytes, frame.payload()),
            LinkProtocol::Other(kind) => self.receive_hooked(kind, bytes, frame.payload()),
        }
    }

    #[cold]
    fn drop_frame(&mut self, counter: Counter) -> Ingress<'static> {
        self.stats.count(counter);
        DONE
    }

    fn receive_hooked(&mut self, kind: EtherType, bytes: &[u8], payload: &[u8]) -> Ingress<'static> {
        let Some(hook) = self.hooks.find(Hook::EtherType(kind)) else {
            return self.drop_frame(Counter::DropEthertype);
        };
        let at = bytes.len().saturating_sub(payload.len());
        Ingress { action: Action::Done, hit: Some(Hit { hook, at, len: payload.len() }) }
    }

    #[inline]
    fn receive_ipv4<'f>(&mut self, nic: NicId, bytes: &'f [u8], payload: &'f [u8], flags: RxFlags) -> Ingress<'f> {
        let Ok(ip) = ipv4::Packet::parse(payload) else { return self.drop_frame(Counter::DropIpMalformed) };
        if !flags.contains(RxFlags::IP_SUM_OK) {
            let sum = if ip.options().is_empty() { Sum::of_header(ip.head()) } else { Sum::of(ip.header_bytes()) };
            if !sum.holds() {
                return self.drop_frame(Counter::DropIpChecksum);
            }
        }
        let (src, dst) = (ip.source(), ip.destination());
        // RFC 1122 §3.2.1.3: neither a group nor a broadcast can be a source.
        if !super::interface::is_host_address(src) {
            return self.drop_frame(Counter::DropIpSource);
        }
        let Some(interface) = self.interface(nic) else { return DONE };
        let Some(cast) = interface.cast(dst) else { return self.drop_frame(Counter::DropIpNotOurs) };
        if interface.owns(src) || interface.addresses().iter().any(|c| c.broadcast() == Some(src)) {
            return self.drop_frame(Counter::DropIpSource);
        }
        if !ip.options().is_empty() && ip.has_source_route() {
            return self.drop_frame(Counter::DropIpOptions);
        }
        let packet = Packet {
            nic,
            cast,
            src,
            dst,
            protocol: ip.protocol(),
            payload: ip.payload(),
            ip,
            sum_ok: flags.contains(RxFlags::L4_SUM_OK),
            frame: bytes,
        };
        if ip.is_fragment() {
            self.stats.count(Counter::RxFragments);
            return Ingress { action: Action::Fragment(packet), hit: None };
        }
        self.receive_transport(packet)
    }

    /// Takes a packet put together from fragments, with its rebuilt headers.
    pub fn receive_reassembled<'f>(&mut self, nic: NicId, bytes: &'f [u8], flags: RxFlags) -> Ingress<'f> {
        let parsed = Frame::parse(bytes).and_then(|frame| ipv4::Packet::parse(frame.payload()));
        let Ok(ip) = parsed else { return self.drop_frame(Counter::DropIpMalformed) };
        let cast = self.interface(nic).and_then(|i| i.cast(ip.destination()));
        let Some(cast) = cast else { return self.drop_frame(Counter::DropIpNotOurs) };
        self.receive_transport(Packet {
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

    /// Takes a whole packet.
    #[inline]
    fn receive_transport<'f>(&mut self, packet: Packet<'f>) -> Ingress<'f> {
        match packet.protocol {
            Protocol::UDP => Ingress { action: Action::Udp(packet), hit: None },
            #[cfg(feature = "tcp")]
            Protocol::TCP => Ingress { action: Action::Tcp(packet), hit: None },
            Protocol::ICMP => {
                let action = self.receive_icmp(&packet);
                Ingress { action, hit: self.protocol_hit(&packet) }
            }
            _ => {
                let hit = self.protocol_hit(&packet);
                if hit.is_none() {
                    self.stats.count(Counter::DropIpProtocol);
                    self.send_unreachable(&packet, crate::wire::icmpv4::Unreachable::PROTOCOL);
                }
                Ingress { action: Action::Done, hit }
            }
        }
    }

    fn protocol_hit(&self, packet: &Packet<'_>) -> Option<Hit> {
        let hook = self.hooks.find(Hook::Protocol(packet.protocol))?;
        let len = packet.ip.header_len().saturating_add(packet.payload.len());
        let frame = Frame::parse(packet.frame).ok()?;
        let at = packet.frame.len().saturating_sub(frame.payload().len());
        Some(Hit { hook, at, len })
    }
}
