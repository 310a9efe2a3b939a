//! Fronts: what is the same in front of every packet of a flow, Ethernet header, IPv4 header and ports, compared at once. Of the
//! packets behind the first only lengths, identification and checksums are looked at. What a lane of UDP or TCP knows beside
//! that is its own; what [`super::way`] is for sending.
//!
//! A front holds until anything changes that decided whom its packets are for: its owner names a version of that.

use super::interface::{Interface, NicId};
use crate::storage::checksum::Sum;
use crate::storage::host::{Nic, RxFlags};
use crate::wire::ethernet::{self, FCS_LEN};
use crate::wire::ipv4;

/// Bytes before the transport header: Ethernet without a tag, IPv4 without options.
const HEADERS: usize = ethernet::HEADER_LEN + ipv4::HEADER_LEN;
/// Bytes of both ports.
const PORTS: usize = 4;

/// The front of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Front {
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
}

/// The headers of a frame in the parts that a front tells apart.
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
    fn of(head: &[u8; HEADERS + PORTS]) -> Option<Parts> {
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
            ports: u32::from_ne_bytes(*rest.first_chunk::<PORTS>()?),
        })
    }
}

impl Front {
    /// The front of the flow of a packet that came whole, in `frame`. `None` where headers are not the usual ones.
    #[inline(never)]
    pub fn of<N: Nic>(interface: &Interface<N>, nic: NicId, frame: &[u8], version: u32) -> Option<Front> {
        let parts = Parts::of(frame.first_chunk()?)?;
        let [.., a, b, version_ihl, tos] = parts.front[1].to_ne_bytes();
        // A frame without a tag may be for a VLAN where the NIC takes tags off: that is looked at each time.
        if [a, b, version_ihl] != [8, 0, 0x45] || interface.vlan.is_some() {
            return None;
        }
        let payload = usize::from(interface.frame_mtu).saturating_add(FCS_LEN);
        Some(Front {
            version,
            nic,
            front: parts.front,
            middle: parts.middle,
            addresses: parts.addresses,
            ports: parts.ports,
            ip: Sum::of_array(&[version_ihl, tos])
                + Sum::of_array(&parts.middle.to_ne_bytes())
                + Sum::of_array(&parts.addresses.to_ne_bytes()),
            longest: payload.saturating_add(ethernet::HEADER_LEN) as u32,
        })
    }

    /// The sum of the pseudo header without its length, and of the ports.
    pub fn pseudo(&self) -> Sum {
        let [_, _, _, protocol] = self.middle.to_ne_bytes();
        Sum::of_array(&self.addresses.to_ne_bytes())
            + Sum::of_u16(u16::from(protocol))
            + Sum::of_array(&self.ports.to_ne_bytes())
    }

    /// What the packet in `frame` carries, transport header and payload, if it is one of this flow and nothing is odd about
    /// its headers; what is, is looked at the long way.
    #[inline(always)] // What it returns is taken apart at once.
    pub fn take<'f>(&self, version: u32, nic: NicId, frame: &'f [u8], flags: RxFlags) -> Option<&'f [u8]> {
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
