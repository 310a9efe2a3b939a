//! Lanes: what is the same for every datagram of a flow, checked once. The first datagram of a flow is looked at by
//! Ethernet, IPv4 and the socket table; those that follow have the same header but for lengths, identification and
//! checksums, and only these are looked at. What [`crate::stack::way`] is for sending.
//!
//! A lane holds until anything changes that decided whom its datagrams are for: see [`super::Udp::version`].

use super::{Meta, Owner};
use crate::stack::ingress::Packet;
use crate::stack::interface::{Interface, NicId};
use crate::storage::checksum::Sum;
use crate::storage::host::{Endpoint, Nic, RxFlags};
use crate::storage::slots::Key;
use crate::wire::ethernet::{self, FCS_LEN};
use crate::wire::ipv4;
use crate::wire::udp::{self, Datagram};

/// Bytes of all headers: Ethernet without a tag, IPv4 without options, UDP.
const HEADERS: usize = ethernet::HEADER_LEN + ipv4::HEADER_LEN + udp::HEADER_LEN;

/// A datagram that has found its socket. Its checksum has not been looked at yet.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'f> {
    /// The socket.
    pub socket: Key,
    /// Who takes what it receives.
    pub owner: Owner,
    /// Where from and where to.
    pub meta: Meta,
    /// The port it was sent to.
    pub port: u16,
    /// The payload.
    pub payload: &'f [u8],
    /// The sum of what the checksum covers ahead of the payload.
    pub before: Sum,
    /// The checksum holds, or there is none (RFC 768: zero means none).
    pub verified: bool,
}

impl<'f> Arrived<'f> {
    /// What `packet` carries: `datagram`, for `socket`.
    pub fn of(packet: &Packet<'f>, datagram: &Datagram<'f>, socket: Key, owner: Owner) -> Self {
        let src = Endpoint { addr: packet.src, port: datagram.source_port() };
        Arrived {
            socket,
            owner,
            meta: Meta { src, dst: packet.dst, nic: packet.nic },
            port: datagram.destination_port(),
            payload: datagram.payload(),
            before: super::sum_before_payload(packet, datagram),
            verified: packet.sum_ok || !datagram.has_checksum(),
        }
    }

    /// Whether the checksum holds.
    #[inline]
    pub fn holds(&self) -> bool {
        self.verified || (self.before + Sum::of(self.payload)).holds()
    }
}

/// The lane of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    version: u32,
    /// Ethernet header, IP version, type of service.
    front: [u64; 2],
    /// Flags and fragment offset, time to live, protocol.
    middle: u32,
    /// Addresses, and ports.
    addresses: u64,
    ports: u32,
    /// Sum of these as far as they are in the IPv4 header.
    ip: Sum,
    /// Sum of pseudo header and ports.
    pseudo: Sum,
    /// The longest frame.
    longest: u32,
    socket: Key,
    owner: Owner,
    meta: Meta,
    port: u16,
}

/// The headers of a frame in the parts that a lane tells apart.
struct Parts {
    front: [u64; 2],
    /// Total length and identification, as they lie.
    lengths: [u8; 4],
    middle: u32,
    checksum: [u8; 2],
    addresses: u64,
    ports: u32,
    udp_len: [u8; 2],
    udp_checksum: [u8; 2],
}

impl Parts {
    #[inline(always)] // Loads, no more.
    fn of(head: &[u8; HEADERS]) -> Option<Parts> {
        let (front, rest) = head.split_first_chunk::<8>()?;
        let (next, rest) = rest.split_first_chunk::<8>()?;
        let (lengths, rest) = rest.split_first_chunk::<4>()?;
        let (middle, rest) = rest.split_first_chunk::<4>()?;
        let (checksum, rest) = rest.split_first_chunk::<2>()?;
        let (addresses, rest) = rest.split_first_chunk::<8>()?;
        let (ports, rest) = rest.split_first_chunk::<4>()?;
        let (udp_len, rest) = rest.split_first_chunk::<2>()?;
        Some(Parts {
            front: [u64::from_ne_bytes(*front), u64::from_ne_bytes(*next)],
            lengths: *lengths,
            middle: u32::from_ne_bytes(*middle),
            checksum: *checksum,
            addresses: u64::from_ne_bytes(*addresses),
            ports: u32::from_ne_bytes(*ports),
            udp_len: *udp_len,
            udp_checksum: *rest.first_chunk::<2>()?,
        })
    }
}

impl Lane {
    /// The lane of the flow of a datagram that came whole, in one frame, and has found its socket. `None` where headers
    /// are not the usual ones.
    #[inline(never)]
    pub fn of<N: Nic>(interface: &Interface<N>, frame: &[u8], arrived: &Arrived<'_>, version: u32) -> Option<Lane> {
        let parts = Parts::of(frame.first_chunk()?)?;
        let [.., a, b, version_ihl, tos] = parts.front[1].to_ne_bytes();
        // A frame without a tag may be for a VLAN where the NIC takes tags off: that is looked at each time.
        if [a, b, version_ihl] != [8, 0, 0x45] || interface.vlan.is_some() {
            return None;
        }
        let addresses = Sum::of_array(&parts.addresses.to_ne_bytes());
        let [_, _, _, protocol] = parts.middle.to_ne_bytes();
        let ip = Sum::of_array(&[version_ihl, tos]) + Sum::of_array(&parts.middle.to_ne_bytes());
        let payload = usize::from(interface.frame_mtu).saturating_add(FCS_LEN);
        Some(Lane {
            version,
            front: parts.front,
            middle: parts.middle,
            addresses: parts.addresses,
            ports: parts.ports,
            ip: ip + addresses,
            pseudo: addresses + Sum::of_u16(u16::from(protocol)) + Sum::of_array(&parts.ports.to_ne_bytes()),
            longest: payload.saturating_add(ethernet::HEADER_LEN) as u32,
            socket: arrived.socket,
            owner: arrived.owner,
            meta: arrived.meta,
            port: arrived.port,
        })
    }

    /// The datagram in `frame`, if it is one of this flow and nothing is odd about it; what is, is looked at the long
    /// way.
    #[inline(always)] // What it returns is taken apart at once.
    pub fn take<'f>(&self, version: u32, nic: NicId, frame: &'f [u8], flags: RxFlags) -> Option<Arrived<'f>> {
        let head = frame.first_chunk::<HEADERS>()?;
        let parts = Parts::of(head)?;
        let same = parts.front == self.front
            && parts.addresses == self.addresses
            && parts.ports == self.ports
            && parts.middle == self.middle;
        if !same || version != self.version || nic != self.meta.nic || frame.len() > self.longest as usize {
            return None;
        }
        let [a, b, ..] = parts.lengths;
        let total = usize::from(u16::from_be_bytes([a, b]));
        let udp_len = u16::from_be_bytes(parts.udp_len);
        let end = usize::from(udp_len).wrapping_add(ethernet::HEADER_LEN + ipv4::HEADER_LEN);
        let ip_end = total.wrapping_add(ethernet::HEADER_LEN);
        if end > ip_end || ip_end > frame.len() {
            return None;
        }
        let payload = frame.get(HEADERS..end)?;
        let ip = self.ip + Sum::of_array(&parts.lengths) + Sum::of_array(&parts.checksum);
        if !flags.contains(RxFlags::IP_SUM_OK) && !ip.holds() {
            return None;
        }
        let len = Sum::of_array(&parts.udp_len);
        Some(Arrived {
            socket: self.socket,
            owner: self.owner,
            meta: self.meta,
            port: self.port,
            payload,
            // The length counts twice: in the pseudo header, and in the header.
            before: self.pseudo + len + len + Sum::of_array(&parts.udp_checksum),
            verified: flags.contains(RxFlags::L4_SUM_OK) || parts.udp_checksum == [0, 0],
        })
    }
}
