//! Trails: what is the same for every fragment of a datagram, checked once. What a lane of UDP sockets is for whole
//! datagrams: of the fragments behind the first that was looked at, only lengths, offset and checksum are.
//!
//! A trail holds until anything changes that decided whom the packet is for, and as long as its datagram has its slot:
//! see [`super::landing::Landing::version`].

use super::ingress::Packet;
use super::interface::{Interface, NicId};
use crate::storage::checksum::Sum;
use crate::storage::host::{Nic, RxFlags};
use crate::wire::ethernet::{self, FCS_LEN};
use crate::wire::ipv4;

/// Bytes of the headers: Ethernet without a tag, IPv4 without options.
const HEADERS: usize = ethernet::HEADER_LEN + ipv4::HEADER_LEN;

/// A fragment of a datagram of which others have come.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'f> {
    /// The datagram's slot.
    pub index: usize,
    /// Offset in the datagram, in bytes, not 0.
    pub start: usize,
    /// Whether others follow.
    pub more: bool,
    /// The bytes.
    pub payload: &'f [u8],
}

/// The trail of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Trail {
    version: u32,
    nic: NicId,
    /// Ethernet header, IP version, type of service.
    front: [u64; 2],
    /// Identification, time to live, protocol: see [`SAME`].
    middle: u64,
    addresses: u64,
    /// Sum of what is the same in each IPv4 header.
    ip: Sum,
    /// The longest frame.
    longest: u32,
    index: u16,
}

/// What is the same in each fragment from identification to checksum.
const SAME: u64 = u64::from_ne_bytes([0xff, 0xff, 0, 0, 0xff, 0xff, 0, 0]);

/// The headers of a frame in the parts that a trail tells apart.
struct Parts {
    front: [u64; 2],
    total: [u8; 2],
    /// Identification, flags and fragment offset, time to live, protocol, checksum.
    middle: [u8; 8],
    addresses: u64,
}

impl Parts {
    #[inline(always)] // Loads, no more.
    fn of(head: &[u8; HEADERS]) -> Option<Parts> {
        let (front, rest) = head.split_first_chunk::<8>()?;
        let (next, rest) = rest.split_first_chunk::<8>()?;
        let (total, rest) = rest.split_first_chunk::<2>()?;
        let (middle, rest) = rest.split_first_chunk::<8>()?;
        Some(Parts {
            front: [u64::from_ne_bytes(*front), u64::from_ne_bytes(*next)],
            total: *total,
            middle: *middle,
            addresses: u64::from_ne_bytes(*rest.first_chunk::<8>()?),
        })
    }
}

impl Trail {
    /// Notes the trail of the datagram in slot `index`, of which `packet` is a fragment, in `place`; none where headers are
    /// not the usual ones. Where it lies: what is copied in wider words than it was written in waits for the payload that
    /// was stored before.
    #[inline(never)]
    pub fn note<N: Nic>(
        place: &mut Option<Trail>,
        interface: &Interface<N>,
        packet: &Packet<'_>,
        index: usize,
        version: u32,
    ) {
        *place = None;
        let (Some(parts), Ok(index)) = (packet.frame.first_chunk().and_then(Parts::of), u16::try_from(index)) else {
            return;
        };
        let [.., a, b, version_ihl, tos] = parts.front[1].to_ne_bytes();
        // A frame without a tag may be for a VLAN where the NIC takes tags off: that is looked at each time.
        if [a, b, version_ihl] != [8, 0, 0x45] || interface.vlan.is_some() {
            return;
        }
        let payload = usize::from(interface.frame_mtu).saturating_add(FCS_LEN);
        *place = Some(Trail {
            version,
            nic: packet.nic,
            front: parts.front,
            middle: u64::from_ne_bytes(parts.middle),
            addresses: parts.addresses,
            ip: Sum::of_array(&[version_ihl, tos])
                + Sum::of_array(&parts.addresses.to_ne_bytes())
                + Sum::of_array(&(u64::from_ne_bytes(parts.middle) & SAME).to_ne_bytes()),
            longest: payload.saturating_add(ethernet::HEADER_LEN) as u32,
            index,
        });
    }

    /// The fragment in `frame`, if it is one of this datagram, not its first, and nothing is odd about it; what is, is
    /// looked at the long way.
    #[inline(always)] // What it returns is taken apart at once.
    pub fn take<'f>(&self, version: u32, nic: NicId, frame: &'f [u8], flags: RxFlags) -> Option<Piece<'f>> {
        let parts = Parts::of(frame.first_chunk::<HEADERS>()?)?;
        let [front, next] = parts.front;
        let [our_front, our_next] = self.front;
        let middle = u64::from_ne_bytes(parts.middle);
        let differ = (front ^ our_front)
            | (next ^ our_next)
            | (parts.addresses ^ self.addresses)
            | ((middle ^ self.middle) & SAME);
        if differ != 0 || version != self.version || nic != self.nic || frame.len() > self.longest as usize {
            return None;
        }
        let [_, _, a, b, _, _, c, d] = parts.middle;
        let fragment = u16::from_be_bytes([a, b]);
        let start = usize::from(fragment << 3);
        let end = usize::from(u16::from_be_bytes(parts.total)).wrapping_add(ethernet::HEADER_LEN);
        let payload = frame.get(HEADERS..end).filter(|_| start > 0)?;
        let ip = self.ip + Sum::of_array(&parts.total) + Sum::of_array(&[a, b]) + Sum::of_array(&[c, d]);
        if !flags.contains(RxFlags::IP_SUM_OK) && !ip.holds() {
            return None;
        }
        Some(Piece { index: usize::from(self.index), start, more: fragment & 0x2000 != 0, payload })
    }
}
