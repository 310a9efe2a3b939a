//! Ethernet II frames, with at most one IEEE 802.1Q tag. Whom a frame is for, and minimum length padding, are left to the
//! stack; so is refusing frames that are too long for the NIC.

use super::{Error, Result};
use core::net::Ipv4Addr;

/// Length of a header without a tag, in bytes.
pub const HEADER_LEN: usize = 14;
/// Bytes of a frame check sequence, which some drivers leave in.
pub const FCS_LEN: usize = 4;
/// Length of a header with one 802.1Q tag, in bytes.
pub const TAGGED_HEADER_LEN: usize = 18;
/// Least length of a frame without its check sequence, in bytes: shorter ones are padded with zeros (IEEE 802.3 §4A.2.3.2.4).
pub const MIN_FRAME_LEN: usize = 60;

/// A MAC address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Address(pub [u8; 6]);

impl Address {
    /// All stations.
    pub const BROADCAST: Address = Address([0xff; 6]);
    /// All zeros: no station has it; ARP requests carry it as the unknown target.
    pub const ZERO: Address = Address([0; 6]);

    /// The multicast address that carries the IPv4 group `group`: its low 23 bits under 01:00:5e (RFC 1112 §6.4).
    pub const fn for_group(group: Ipv4Addr) -> Address {
        let [_, b, c, d] = group.octets();
        Address([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// Whether this is the broadcast address.
    #[inline]
    pub fn is_broadcast(self) -> bool {
        self == Address::BROADCAST
    }

    /// Whether the group bit is set; broadcast is a group too.
    #[inline]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Whether this can be the address of one station: not a group, not all zeros.
    #[inline]
    pub fn is_unicast(self) -> bool {
        !self.is_multicast() && self != Address::ZERO
    }
}

/// An EtherType, in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4 (RFC 894).
    pub const IPV4: EtherType = EtherType(0x0800);
    /// ARP (RFC 826).
    pub const ARP: EtherType = EtherType(0x0806);
    /// A customer VLAN tag (IEEE 802.1Q §9.4).
    pub const VLAN: EtherType = EtherType(0x8100);
    /// IPv6 (RFC 2464).
    pub const IPV6: EtherType = EtherType(0x86dd);

    /// Values below this are lengths of 802.3 frames (IEEE 802.3 §3.2.6).
    pub const MIN: EtherType = EtherType(0x0600);
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// An IPv4 packet.
    Ipv4,
    /// An ARP packet.
    Arp,
    /// An IPv6 packet.
    Ipv6,
    /// 802.3 with LLC: the type field is a length. Spanning tree and the like, to be ignored.
    Llc,
    /// Anything else, a second VLAN tag included.
    Other(EtherType),
}

/// Tag control information of an 802.1Q tag, in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(pub u16);

impl Tag {
    /// The tag for VLAN `vid` (0 to 4094) at priority 0.
    pub const fn new(vid: u16) -> Tag {
        Tag(vid & 0x0fff)
    }

    /// VLAN identifier. 0 is a priority tag: the frame belongs to no VLAN, as if it were untagged (IEEE 802.1Q §9.6).
    #[inline]
    pub const fn vid(self) -> u16 {
        self.0 & 0x0fff
    }

    /// Priority code point, 0 to 7.
    #[inline]
    pub const fn priority(self) -> u8 {
        (self.0 >> 13) as u8
    }
}

/// A view of a received frame, without its check sequence.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    head: &'a [u8; HEADER_LEN],
    tag: Option<Tag>,
    ether_type: EtherType,
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Views `bytes` as a frame. [`Error::Truncated`] if the header, with its tag, is not whole.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Frame<'a>> {
        let (head, rest) = bytes.split_first_chunk::<HEADER_LEN>().ok_or(Error::Truncated)?;
        let ether_type = EtherType(u16::from_be_bytes([head[12], head[13]]));
        if ether_type != EtherType::VLAN {
            return Ok(Frame { head, tag: None, ether_type, payload: rest });
        }
        let (inner, payload) = rest.split_first_chunk::<4>().ok_or(Error::Truncated)?;
        let tag = Some(Tag(u16::from_be_bytes([inner[0], inner[1]])));
        Ok(Frame { head, tag, ether_type: EtherType(u16::from_be_bytes([inner[2], inner[3]])), payload })
    }

    /// Destination address.
    #[inline]
    pub fn destination(&self) -> Address {
        // The front of an array is there; as a whole it is compared in two steps.
        self.head.first_chunk().map_or(Address::ZERO, |front| Address(*front))
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> Address {
        let [_, _, _, _, _, _, a, b, c, d, e, f, ..] = *self.head;
        Address([a, b, c, d, e, f])
    }

    /// The 802.1Q tag, if there is one; a priority tag (VID 0) is one too.
    #[inline]
    pub fn tag(&self) -> Option<Tag> {
        self.tag
    }

    /// VLAN the frame belongs to; `None` without a tag and with a priority tag.
    #[inline]
    pub fn vlan(&self) -> Option<u16> {
        self.tag.map(Tag::vid).filter(|&vid| vid != 0)
    }

    /// The type field behind the tag, whatever it says.
    #[inline]
    pub fn ether_type(&self) -> EtherType {
        self.ether_type
    }

    /// What the frame carries.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        match self.ether_type {
            EtherType::IPV4 => Protocol::Ipv4,
            EtherType::ARP => Protocol::Arp,
            EtherType::IPV6 => Protocol::Ipv6,
            other if other.0 < EtherType::MIN.0 => Protocol::Llc,
            other => Protocol::Other(other),
        }
    }

    /// What follows the header, padding included.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// The values of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Destination address.
    pub destination: Address,
    /// Source address.
    pub source: Address,
    /// Type of the payload.
    pub ether_type: EtherType,
}

impl Repr {
    /// The values of a frame's header, its tag left out.
    pub fn parse(frame: &Frame<'_>) -> Repr {
        Repr { destination: frame.destination(), source: frame.source(), ether_type: frame.ether_type() }
    }

    /// The header without a tag.
    #[inline]
    pub fn emit(&self) -> [u8; HEADER_LEN] {
        let Address([a, b, c, d, e, f]) = self.destination;
        let Address([g, h, i, j, k, l]) = self.source;
        let [m, n] = self.ether_type.0.to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n]
    }

    /// The header with `tag`.
    #[inline]
    pub fn emit_tagged(&self, tag: Tag) -> [u8; TAGGED_HEADER_LEN] {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = self.emit();
        let [s, t] = EtherType::VLAN.0.to_be_bytes();
        let [u, v] = tag.0.to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l, s, t, u, v, m, n]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::each_cut;

    const REPR: Repr = Repr {
        destination: Address([0x02, 1, 2, 3, 4, 5]),
        source: Address([0x02, 9, 8, 7, 6, 5]),
        ether_type: EtherType::IPV4,
    };

    #[test]
    fn round_trip() {
        let mut bytes = REPR.emit().to_vec();
        bytes.extend_from_slice(b"payload");
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!(Repr::parse(&frame), REPR);
        assert_eq!((frame.tag(), frame.vlan(), frame.protocol()), (None, None, Protocol::Ipv4));
        assert_eq!(frame.payload(), b"payload");
    }

    #[test]
    fn round_trip_tagged() {
        let mut bytes = REPR.emit_tagged(Tag(0x6123)).to_vec();
        assert_eq!(bytes[12..18], [0x81, 0x00, 0x61, 0x23, 0x08, 0x00]);
        bytes.extend_from_slice(b"payload");
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!(Repr::parse(&frame), REPR);
        assert_eq!(frame.vlan(), Some(0x123));
        assert_eq!(frame.tag().unwrap().priority(), 3);
        assert_eq!(frame.payload(), b"payload");
    }

    #[test]
    fn priority_tag_belongs_to_no_vlan() {
        let bytes = REPR.emit_tagged(Tag(0xe000));
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!((frame.tag(), frame.vlan()), (Some(Tag(0xe000)), None));
        assert_eq!(frame.protocol(), Protocol::Ipv4);
    }

    #[test]
    fn lengths_are_llc() {
        for (value, expect) in [
            (0, Protocol::Llc),
            (38, Protocol::Llc),
            (0x05ff, Protocol::Llc),
            (0x0600, Protocol::Other(EtherType(0x600))),
            (0x0806, Protocol::Arp),
            (0x86dd, Protocol::Ipv6),
            (0x88cc, Protocol::Other(EtherType(0x88cc))),
        ] {
            let bytes = Repr { ether_type: EtherType(value), ..REPR }.emit();
            assert_eq!(Frame::parse(&bytes).unwrap().protocol(), expect);
        }
    }

    #[test]
    fn second_tag_is_not_entered() {
        let bytes = Repr { ether_type: EtherType::VLAN, ..REPR }.emit_tagged(Tag::new(5));
        assert_eq!(Frame::parse(&bytes).unwrap().protocol(), Protocol::Other(EtherType::VLAN));
    }

    #[test]
    fn cut_everywhere() {
        each_cut(&REPR.emit(), |cut| assert_eq!(Frame::parse(cut).unwrap_err(), Error::Truncated));
        each_cut(&REPR.emit_tagged(Tag::new(1)), |cut| assert_eq!(Frame::parse(cut).unwrap_err(), Error::Truncated));
        assert!(Frame::parse(&REPR.emit()).unwrap().payload().is_empty());
    }

    #[test]
    fn address_kinds() {
        assert!(Address::BROADCAST.is_broadcast() && Address::BROADCAST.is_multicast());
        assert!(!Address::BROADCAST.is_unicast() && !Address::ZERO.is_unicast() && !Address::ZERO.is_multicast());
        assert!(Address([0x02, 0, 0, 0, 0, 0]).is_unicast());
        assert!(!Address([0x01, 0, 0, 0, 0, 1]).is_unicast());
        // RFC 1112 §6.4: only 23 bits of the group are carried.
        assert_eq!(Address::for_group(Ipv4Addr::new(239, 129, 2, 3)), Address([1, 0, 0x5e, 1, 2, 3]));
    }
}
