//! Frames for packet scripts: built from the wire formats, checksums right unless a test spoils them.

use crate::stack::egress::pseudo_header;
use crate::storage::checksum::Sum;
use crate::wire::ethernet::{Address, EtherType, Frame};
use crate::wire::ipv4::{self, Protocol};
use crate::wire::{arp, ethernet, udp};
use core::net::Ipv4Addr;
use std::vec::Vec;

/// A host of a script: its two addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    /// Hardware address.
    pub mac: Address,
    /// IPv4 address.
    pub ip: Ipv4Addr,
}

impl Station {
    /// The host 10.0.0.`n` with a hardware address that ends in `n`.
    pub const fn new(n: u8) -> Self {
        Station { mac: Address([2, 0, 0, 0, 0, n]), ip: Ipv4Addr::new(10, 0, 0, n) }
    }
}

/// An Ethernet frame, padded to the minimum.
pub fn ethernet(dst: Address, src: Address, ether_type: EtherType, payload: &[u8]) -> Vec<u8> {
    let mut frame = ethernet::Repr { destination: dst, source: src, ether_type }.emit().to_vec();
    frame.extend_from_slice(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// An IPv4 packet around `payload`; `tweak` changes the header's values before it is summed.
pub fn ipv4_with(
    src: Ipv4Addr,
    dst: Ipv4Addr,
    protocol: Protocol,
    payload: &[u8],
    tweak: impl FnOnce(&mut ipv4::Repr),
) -> Vec<u8> {
    let mut repr = ipv4::Repr {
        source: src,
        destination: dst,
        protocol,
        payload_len: payload.len() as u16,
        tos: 0,
        ttl: 64,
        identification: 1,
        dont_fragment: false,
        more_fragments: false,
        fragment_offset: 0,
    };
    tweak(&mut repr);
    let sum = Sum::of(&repr.emit([0; 2])).to_field();
    let mut packet = repr.emit(sum).to_vec();
    packet.extend_from_slice(payload);
    packet
}

/// A UDP datagram with its checksum.
pub fn udp_datagram(src: (Ipv4Addr, u16), dst: (Ipv4Addr, u16), payload: &[u8]) -> Vec<u8> {
    let repr = udp::Repr { source_port: src.1, destination_port: dst.1, payload_len: payload.len() as u16 };
    let mut datagram = repr.emit([0; 2]).to_vec();
    datagram.extend_from_slice(payload);
    let sum = pseudo_header(src.0, dst.0, Protocol::UDP, datagram.len()) + Sum::of(&datagram);
    let field = match sum.to_field() {
        [0, 0] => [0xff, 0xff],
        field => field,
    };
    datagram[6..8].copy_from_slice(&field);
    datagram
}

/// A whole frame with a UDP datagram from `src` to `dst`.
pub fn udp(src: Station, src_port: u16, dst: Station, dst_port: u16, payload: &[u8]) -> Vec<u8> {
    let datagram = udp_datagram((src.ip, src_port), (dst.ip, dst_port), payload);
    let packet = ipv4_with(src.ip, dst.ip, Protocol::UDP, &datagram, |_| ());
    ethernet(dst.mac, src.mac, EtherType::IPV4, &packet)
}

/// A whole frame with an ICMP message; its checksum field is filled in.
pub fn icmp(src: Station, dst: Station, message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    message[2..4].fill(0);
    let field = Sum::of(&message).to_field();
    message[2..4].copy_from_slice(&field);
    let packet = ipv4_with(src.ip, dst.ip, Protocol::ICMP, &message, |_| ());
    ethernet(dst.mac, src.mac, EtherType::IPV4, &packet)
}

/// An ARP packet in a frame to `dst`.
pub fn arp(dst: Address, repr: arp::Repr) -> Vec<u8> {
    ethernet(dst, repr.sender_mac, EtherType::ARP, &repr.emit())
}

/// `from`'s answer to `to`, who asked for its address.
pub fn arp_reply(from: Station, to: Station) -> Vec<u8> {
    arp(
        to.mac,
        arp::Repr {
            operation: arp::Operation::Reply,
            sender_mac: from.mac,
            sender_ip: from.ip,
            target_mac: to.mac,
            target_ip: to.ip,
        },
    )
}

/// `from` asks for `target`.
pub fn arp_request(from: Station, target: Ipv4Addr) -> Vec<u8> {
    arp(
        Address::BROADCAST,
        arp::Repr {
            operation: arp::Operation::Request,
            sender_mac: from.mac,
            sender_ip: from.ip,
            target_mac: Address::ZERO,
            target_ip: target,
        },
    )
}

/// A UDP datagram taken apart, its checksums checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpSeen {
    /// Destination hardware address.
    pub mac: Address,
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Payload.
    pub payload: Vec<u8>,
}

/// Takes a frame apart that holds an unfragmented UDP datagram; panics if a checksum is wrong, `None` for other frames.
pub fn parse_udp(frame: &[u8]) -> Option<UdpSeen> {
    let frame = Frame::parse(frame).ok()?;
    if frame.ether_type() != EtherType::IPV4 {
        return None;
    }
    let ip = ipv4::Packet::parse(frame.payload()).expect("a well-formed packet");
    assert!(Sum::of(ip.header_bytes()).holds(), "IPv4 checksum");
    if ip.protocol() != Protocol::UDP || ip.is_fragment() {
        return None;
    }
    let datagram = udp::Datagram::parse(ip.payload()).expect("a well-formed datagram");
    if datagram.has_checksum() {
        let sum = pseudo_header(ip.source(), ip.destination(), Protocol::UDP, datagram.bytes().len());
        assert!((sum + Sum::of(datagram.bytes())).holds(), "UDP checksum");
    }
    Some(UdpSeen {
        mac: frame.destination(),
        src: ip.source(),
        dst: ip.destination(),
        src_port: datagram.source_port(),
        dst_port: datagram.destination_port(),
        payload: datagram.payload().to_vec(),
    })
}

/// The ARP packet in a frame, if it holds one.
pub fn parse_arp(frame: &[u8]) -> Option<arp::Repr> {
    let frame = Frame::parse(frame).ok()?;
    if frame.ether_type() != EtherType::ARP {
        return None;
    }
    arp::Packet::parse(frame.payload()).ok().map(|p| arp::Repr::parse(&p))
}
