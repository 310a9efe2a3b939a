//! The lane of a connection: what is the same in every frame of it, compared at once. What [`crate::udp::lane`] is for
//! datagrams: of the segments behind the first, Ethernet and IPv4 look at lengths, identification and checksum only, and
//! nobody looks for their connection.
//!
//! A lane holds until anything changes that decided whom its frames are for: see [`crate::stack::Stack::version`].

use crate::stack::ingress::Packet;
use crate::stack::interface::{Interface, NicId};
use crate::storage::checksum::Sum;
use crate::storage::host::{Nic, RxFlags};
use crate::storage::slots::Key;
use crate::wire::ethernet::{self, FCS_LEN};
use crate::wire::{ipv4, tcp};

/// Bytes before the transport header: Ethernet without a tag, IPv4 without options.
const HEADERS: usize = ethernet::HEADER_LEN + ipv4::HEADER_LEN;

/// The lane of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    version: u32,
    nic: NicId,
    /// Ethernet header, IP version, type of service.
    front: [u64; 2],
    /// Flags and fragment offset, time to live, protocol.
    middle: u32,
    /// Addresses, and ports.
    addresses: u64,
    ports: u32,
    /// Sum of these as far as they are in the IPv4 header.
    ip: Sum,
    /// The longest frame.
    longest: u32,
    /// The connection.
    pub(super) key: Key,
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
}

impl Parts {
    #[inline(always)] // Loads, no more.
    fn of(head: &[u8; HEADERS + tcp::HEADER_LEN]) -> Option<Parts> {
        let (front, rest) = head.split_first_chunk::<8>()?;
        let (next, rest) = rest.split_first_chunk::<8>()?;
        let (lengths, rest) = rest.split_first_chunk::<4>()?;
        let (middle, rest) = rest.split_first_chunk::<4>()?;
        let (checksum, rest) = rest.split_first_chunk::<2>()?;
        let (addresses, rest) = rest.split_first_chunk::<8>()?;
        Some(Parts {
            front: [u64::from_ne_bytes(*front), u64::from_ne_bytes(*next)],
            lengths: *lengths,
            middle: u32::from_ne_bytes(*middle),
            checksum: *checksum,
            addresses: u64::from_ne_bytes(*addresses),
            ports: u32::from_ne_bytes(*rest.first_chunk::<4>()?),
        })
    }
}

impl Lane {
    /// The lane of the connection named `key`, which `packet` is for. `None` where headers are not the usual ones.
    #[inline(never)]
    pub(super) fn of<N: Nic>(interface: &Interface<N>, packet: &Packet<'_>, key: Key, version: u32) -> Option<Lane> {
        let parts = Parts::of(packet.frame.first_chunk()?)?;
        let [.., a, b, version_ihl, tos] = parts.front[1].to_ne_bytes();
        // A frame without a tag may be for a VLAN where the NIC takes tags off: that is looked at each time.
        if [a, b, version_ihl] != [8, 0, 0x45] || interface.vlan.is_some() {
            return None;
        }
        let middle = parts.middle.to_ne_bytes();
        let payload = usize::from(interface.frame_mtu).saturating_add(FCS_LEN);
        Some(Lane {
            version,
            nic: packet.nic,
            front: parts.front,
            middle: parts.middle,
            addresses: parts.addresses,
            ports: parts.ports,
            ip: Sum::of_array(&[version_ihl, tos])
                + Sum::of_array(&middle)
                + Sum::of_array(&parts.addresses.to_ne_bytes()),
            longest: payload.saturating_add(ethernet::HEADER_LEN) as u32,
            key,
        })
    }

    /// The segment in `frame`, if it is one of this connection and nothing is odd about its headers; what is, is looked
    /// at the long way.
    #[inline(always)] // What it returns is taken apart at once.
    pub(super) fn take<'f>(&self, version: u32, nic: NicId, frame: &'f [u8], flags: RxFlags) -> Option<&'f [u8]> {
        let parts = Parts::of(frame.first_chunk()?)?;
        let same = parts.front == self.front
            && parts.addresses == self.addresses
            && parts.ports == self.ports
            && parts.middle == self.middle;
        if !same || version != self.version || nic != self.nic || frame.len() > self.longest as usize {
            return None;
        }
        let ip = self.ip + Sum::of_array(&parts.lengths) + Sum::of_array(&parts.checksum);
        if !flags.contains(RxFlags::IP_SUM_OK) && !ip.holds() {
            return None;
        }
        let [a, b, ..] = parts.lengths;
        let end = usize::from(u16::from_be_bytes([a, b])).wrapping_add(ethernet::HEADER_LEN);
        frame.get(HEADERS..end)
    }
}
