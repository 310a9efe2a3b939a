//! IPv4 headers (RFC 791). Verifying the header checksum (a sum over [`Packet::header_bytes`]), judging addresses and
//! reassembly are left to the stack.

use super::{Error, Result};
use core::net::Ipv4Addr;

/// Length of a header without options, in bytes.
pub const HEADER_LEN: usize = 20;
/// Longest header, with 40 bytes of options.
pub const MAX_HEADER_LEN: usize = 60;
/// Longest payload of a packet whose header has no options, in bytes.
pub const MAX_PAYLOAD_LEN: u16 = u16::MAX - HEADER_LEN as u16;

/// A protocol number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(pub u8);

impl Protocol {
    /// ICMP (RFC 792).
    pub const ICMP: Protocol = Protocol(1);
    /// IGMP (RFC 2236).
    pub const IGMP: Protocol = Protocol(2);
    /// TCP (RFC 9293).
    pub const TCP: Protocol = Protocol(6);
    /// UDP (RFC 768).
    pub const UDP: Protocol = Protocol(17);
}

/// Length of a header with the router alert option, in bytes.
pub const ROUTER_ALERT_HEADER_LEN: usize = 24;

/// The pseudo header that UDP and TCP checksums cover (RFC 768, RFC 9293 §3.1). `len` is the length of the datagram or
/// segment, header included, in bytes.
#[inline]
pub fn pseudo_header(source: Ipv4Addr, destination: Ipv4Addr, protocol: Protocol, len: u16) -> [u8; 12] {
    let [a, b, c, d] = source.octets();
    let [e, f, g, h] = destination.octets();
    let [m, n] = len.to_be_bytes();
    [a, b, c, d, e, f, g, h, 0, protocol.0, m, n]
}

/// A view of a packet. The header checksum is not verified.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    head: &'a [u8; HEADER_LEN],
    header: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Views `bytes` as a packet; what lies beyond the total length is link padding and cut off. [`Error::Malformed`] if
    /// the version is not 4, the header length below 20 or the total length below the header's;
    /// [`Error::Truncated`] if the header or the packet is not whole.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Packet<'a>> {
        let (head, header_len, total_len) = Self::lengths(bytes)?;
        if total_len < header_len {
            return Err(Error::Malformed);
        }
        let packet = bytes.get(..total_len).ok_or(Error::Truncated)?;
        let (header, payload) = packet.split_at_checked(header_len).ok_or(Error::Truncated)?;
        Ok(Packet { head, header, payload })
    }

    /// Views the packet that an ICMP error quotes. Its header must be whole, its payload may be cut anywhere (RFC 792
    /// quotes 8 bytes of it, RFC 1812 §4.3.2.3 more); the total length field may have been spoilt on the way.
    pub fn parse_quoted(bytes: &'a [u8]) -> Result<Packet<'a>> {
        let (head, header_len, total_len) = Self::lengths(bytes)?;
        let (header, rest) = bytes.split_at_checked(header_len).ok_or(Error::Truncated)?;
        let payload = total_len.checked_sub(header_len).and_then(|len| rest.get(..len)).unwrap_or(rest);
        Ok(Packet { head, header, payload })
    }

    #[inline]
    fn lengths(bytes: &'a [u8]) -> Result<(&'a [u8; HEADER_LEN], usize, usize)> {
        let head = bytes.first_chunk::<HEADER_LEN>().ok_or(Error::Truncated)?;
        let header_len = usize::from(head[0] & 0x0f) << 2;
        if head[0] >> 4 != 4 || header_len < HEADER_LEN {
            return Err(Error::Malformed);
        }
        Ok((head, header_len, usize::from(u16::from_be_bytes([head[2], head[3]]))))
    }

    /// The header with its options: its sum must be all ones.
    #[inline]
    pub fn header_bytes(&self) -> &'a [u8] {
        self.header
    }

    /// The header without its options.
    #[inline]
    pub fn head(&self) -> &'a [u8; HEADER_LEN] {
        self.head
    }

    /// What follows the header, within the total length.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Length of the header in bytes, 20 to 60.
    #[inline]
    pub fn header_len(&self) -> usize {
        self.header.len()
    }

    /// The total length field, in bytes.
    #[inline]
    pub fn total_len(&self) -> u16 {
        u16::from_be_bytes([self.head[2], self.head[3]])
    }

    /// The options, up to 40 bytes; empty in nearly every packet.
    #[inline]
    pub fn options(&self) -> &'a [u8] {
        self.header.get(HEADER_LEN..).unwrap_or_default()
    }

    /// Whether the options hold a loose or strict source route (RFC 791 §3.1). A broken option ends the search.
    pub fn has_source_route(&self) -> bool {
        let mut rest = self.options();
        while let [kind, tail @ ..] = rest {
            rest = match (*kind, tail) {
                (0, _) => return false, // end of list
                (1, _) => tail,         // no operation
                (131 | 137, _) => return true,
                (_, [len, ..]) if *len >= 2 => rest.get(usize::from(*len)..).unwrap_or_default(),
                _ => return false,
            };
        }
        false
    }

    /// Type of service: DSCP and ECN (RFC 2474, RFC 3168).
    #[inline]
    pub fn tos(&self) -> u8 {
        self.head[1]
    }

    /// Identification; of meaning in fragments only (RFC 6864 §4.1).
    #[inline]
    pub fn identification(&self) -> u16 {
        u16::from_be_bytes([self.head[4], self.head[5]])
    }

    /// Whether routers may not fragment the packet.
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        self.head[6] & 0x40 != 0
    }

    /// Whether fragments with higher offsets exist.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.head[6] & 0x20 != 0
    }

    /// Where the payload lies in the whole datagram, in bytes: a multiple of 8 up to 65528.
    #[inline]
    pub fn fragment_offset(&self) -> u16 {
        u16::from_be_bytes([self.head[6], self.head[7]]) << 3
    }

    /// Whether the packet is a fragment of a larger datagram.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        u16::from_be_bytes([self.head[6], self.head[7]]) & 0x3fff != 0
    }

    /// Time to live: routers the packet may yet pass.
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.head[8]
    }

    /// What the payload is.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        Protocol(self.head[9])
    }

    /// The header checksum as it lies in the packet.
    #[inline]
    pub fn checksum(&self) -> [u8; 2] {
        [self.head[10], self.head[11]]
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> Ipv4Addr {
        let [.., a, b, c, d, _, _, _, _] = *self.head;
        Ipv4Addr::from([a, b, c, d])
    }

    /// Destination address.
    #[inline]
    pub fn destination(&self) -> Ipv4Addr {
        let [.., a, b, c, d] = *self.head;
        Ipv4Addr::from([a, b, c, d])
    }

    /// Source and destination address side by side, as a pseudo header begins.
    #[inline]
    pub fn addresses(&self) -> [u8; 8] {
        let [.., a, b, c, d, e, f, g, h] = *self.head;
        [a, b, c, d, e, f, g, h]
    }
}

/// The values of a header without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// What the payload is.
    pub protocol: Protocol,
    /// Length of the payload in bytes, at most [`MAX_PAYLOAD_LEN`]; larger values are emitted as if they were that.
    pub payload_len: u16,
    /// Type of service.
    pub tos: u8,
    /// Time to live.
    pub ttl: u8,
    /// Identification.
    pub identification: u16,
    /// Routers may not fragment.
    pub dont_fragment: bool,
    /// Fragments with higher offsets follow.
    pub more_fragments: bool,
    /// Where the payload lies in the whole datagram, in bytes; a multiple of 8.
    pub fragment_offset: u16,
}

impl Repr {
    /// The values of a packet's header, its options left out.
    pub fn parse(packet: &Packet<'_>) -> Repr {
        Repr {
            source: packet.source(),
            destination: packet.destination(),
            protocol: packet.protocol(),
            payload_len: u16::try_from(packet.payload().len()).unwrap_or(u16::MAX),
            tos: packet.tos(),
            ttl: packet.ttl(),
            identification: packet.identification(),
            dont_fragment: packet.dont_fragment(),
            more_fragments: packet.more_fragments(),
            fragment_offset: packet.fragment_offset(),
        }
    }

    /// The header with `checksum` in its field: zeros for summing, or for a NIC that fills it in.
    #[inline]
    pub fn emit(&self, checksum: [u8; 2]) -> [u8; HEADER_LEN] {
        self.header(checksum, 0x45, HEADER_LEN as u16)
    }

    /// The header with a router alert option (RFC 2113), as IGMP needs (RFC 2236 §2).
    pub fn emit_router_alert(&self, checksum: [u8; 2]) -> [u8; ROUTER_ALERT_HEADER_LEN] {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] =
            self.header(checksum, 0x46, ROUTER_ALERT_HEADER_LEN as u16);
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, 148, 4, 0, 0]
    }

    #[inline]
    fn header(&self, checksum: [u8; 2], version: u8, header_len: u16) -> [u8; HEADER_LEN] {
        let [l0, l1] = self.payload_len.saturating_add(header_len).to_be_bytes();
        let [i0, i1] = self.identification.to_be_bytes();
        let flags = (u16::from(self.dont_fragment) << 14) | (u16::from(self.more_fragments) << 13);
        let [f0, f1] = (flags | (self.fragment_offset >> 3)).to_be_bytes();
        let [c0, c1] = checksum;
        let [s0, s1, s2, s3] = self.source.octets();
        let [d0, d1, d2, d3] = self.destination.octets();
        [version, self.tos, l0, l1, i0, i1, f0, f1, self.ttl, self.protocol.0, c0, c1, s0, s1, s2, s3, d0, d1, d2, d3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::{each_cut, each_mutation};
    use std::vec::Vec;

    const REPR: Repr = Repr {
        source: Ipv4Addr::new(192, 0, 2, 1),
        destination: Ipv4Addr::new(198, 51, 100, 2),
        protocol: Protocol::UDP,
        payload_len: 12,
        tos: 0xb8,
        ttl: 64,
        identification: 0xbeef,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
    };

    fn packet(repr: &Repr) -> Vec<u8> {
        let mut bytes = repr.emit([0x12, 0x34]).to_vec();
        bytes.extend_from_slice(b"twelve bytes");
        bytes
    }

    /// A packet with `options`, padded to 4 bytes, and the payload `data`.
    fn with_options(options: &[u8]) -> Vec<u8> {
        let mut padded = options.to_vec();
        padded.resize(options.len().next_multiple_of(4), 0);
        let mut bytes = packet(&REPR);
        bytes[0] = 0x45 + (padded.len() / 4) as u8;
        bytes[3] = (32 + padded.len()) as u8;
        bytes.splice(20..20, padded);
        bytes
    }

    #[test]
    fn round_trip() {
        for (dont_fragment, more_fragments, fragment_offset) in
            [(true, false, 0), (false, true, 0), (false, true, 1480), (false, false, 65528)]
        {
            let repr = Repr { dont_fragment, more_fragments, fragment_offset, ..REPR };
            let bytes = packet(&repr);
            let view = Packet::parse(&bytes).unwrap();
            assert_eq!(Repr::parse(&view), repr);
            assert_eq!(view.is_fragment(), more_fragments || fragment_offset != 0);
            assert_eq!((view.header_bytes(), view.payload()), (&bytes[..20], &b"twelve bytes"[..]));
            assert_eq!(view.checksum(), [0x12, 0x34]);
            assert_eq!(view.total_len(), 32);
            assert_eq!(view.addresses(), [192, 0, 2, 1, 198, 51, 100, 2]);
            assert!(view.options().is_empty());
        }
    }

    #[test]
    fn link_padding_is_cut_off() {
        let mut bytes = packet(&REPR);
        bytes.resize(46, 0xaa);
        assert_eq!(Packet::parse(&bytes).unwrap().payload(), b"twelve bytes");
        assert_eq!(Packet::parse_quoted(&bytes).unwrap().payload(), b"twelve bytes");
    }

    #[test]
    fn cut_everywhere() {
        each_cut(&packet(&REPR), |cut| assert_eq!(Packet::parse(cut).unwrap_err(), Error::Truncated));
        let bytes = with_options(&[1; 40]);
        assert_eq!(Packet::parse(&bytes).unwrap().header_len(), MAX_HEADER_LEN);
        each_cut(&bytes, |cut| assert_eq!(Packet::parse(cut).unwrap_err(), Error::Truncated));
    }

    #[test]
    fn bad_versions_and_lengths() {
        for (at, value) in [(0, 0x65), (0, 0x44), (0, 0x40), (0, 0x05), (3, 19), (3, 0)] {
            let mut bytes = packet(&REPR);
            bytes[at] = value;
            assert_eq!(Packet::parse(&bytes).unwrap_err(), Error::Malformed);
        }
        let mut bytes = packet(&REPR);
        bytes[0] = 0x46; // header of 24 bytes, total length 23
        bytes[3] = 23;
        assert_eq!(Packet::parse(&bytes).unwrap_err(), Error::Malformed);
        bytes[3] = 24;
        assert!(Packet::parse(&bytes).unwrap().payload().is_empty());
        bytes[3] = 33;
        assert_eq!(Packet::parse(&bytes).unwrap_err(), Error::Truncated);
    }

    #[test]
    fn source_routes_are_found() {
        let routed = |options: &[u8]| Packet::parse(&with_options(options)).unwrap().has_source_route();
        assert!(routed(&[131, 7, 4, 10, 0, 0, 1])); // loose
        assert!(routed(&[1, 137, 7, 4, 10, 0, 0, 1])); // strict, after a no-operation
        assert!(routed(&[148, 4, 0, 0, 131, 3, 4])); // after a router alert
        assert!(!routed(&[148, 4, 0, 0])); // router alert alone
        assert!(!routed(&[7, 7, 4, 131, 131, 131, 131])); // inside a record route
        assert!(!routed(&[0, 131, 7, 4])); // after the end of the list
        assert!(!routed(&[148, 0, 131, 7])); // length 0 must not loop
        assert!(!routed(&[148, 1, 131, 7]));
        assert!(!routed(&[148, 200, 131, 7])); // runs over the end
        assert!(!routed(&[1, 1, 1, 148])); // no length
        assert!(!Packet::parse(&packet(&REPR)).unwrap().has_source_route());
    }

    #[test]
    fn quoted_payload_may_be_short() {
        let bytes = packet(&REPR);
        each_cut(&bytes, |cut| match Packet::parse_quoted(cut) {
            Ok(view) => assert_eq!(view.payload(), &bytes[20..cut.len()]),
            Err(e) => assert!(e == Error::Truncated && cut.len() < 20),
        });
        let mut spoilt = bytes.clone();
        spoilt[2..4].copy_from_slice(&[0, 0]);
        assert_eq!(Packet::parse_quoted(&spoilt).unwrap().payload(), b"twelve bytes");
    }

    #[test]
    fn mutations_do_no_harm() {
        each_mutation(&with_options(&[148, 4, 0, 0, 7, 7, 4, 0, 0, 0, 0]), |bytes| {
            for view in [Packet::parse(bytes), Packet::parse_quoted(bytes)].into_iter().flatten() {
                view.has_source_route();
                assert!(view.header_len() + view.payload().len() <= bytes.len());
                assert_eq!(view.header_len(), 20 + view.options().len());
            }
        });
    }

    #[test]
    fn pseudo_header_layout() {
        assert_eq!(
            pseudo_header(REPR.source, REPR.destination, Protocol::TCP, 0x102),
            [192, 0, 2, 1, 198, 51, 100, 2, 0, 6, 1, 2]
        );
    }

    #[test]
    fn router_alert() {
        let mut bytes = REPR.emit_router_alert([0x12, 0x34]).to_vec();
        bytes.extend_from_slice(b"twelve bytes");
        let view = Packet::parse(&bytes).unwrap();
        assert_eq!((Repr::parse(&view), view.options()), (REPR, &[148, 4, 0, 0][..]));
    }

    #[test]
    fn longest_payload() {
        assert_eq!(Repr { payload_len: MAX_PAYLOAD_LEN, ..REPR }.emit([0; 2])[2..4], [0xff, 0xff]);
        assert_eq!(Repr { payload_len: u16::MAX, ..REPR }.emit([0; 2])[2..4], [0xff, 0xff]);
    }
}
