//! ICMP for IPv4 (RFC 792): echo and the errors a client hears of. The checksum, a plain sum over the whole message, and
//! limits on how often to answer, are left to the stack.

use super::ipv4;
use super::{Error, Result};
use core::net::Ipv4Addr;

/// Length of the fixed part of a message in bytes.
pub const HEADER_LEN: usize = 8;

/// Why a destination is unreachable (RFC 792, RFC 1122 §3.2.2.1, RFC 1812 §5.2.7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable(pub u8);

impl Unreachable {
    /// No route to the network.
    pub const NET: Unreachable = Unreachable(0);
    /// The host does not answer.
    pub const HOST: Unreachable = Unreachable(1);
    /// The host does not speak the protocol.
    pub const PROTOCOL: Unreachable = Unreachable(2);
    /// Nobody listens on the port.
    pub const PORT: Unreachable = Unreachable(3);
    /// The packet is too long and may not be fragmented.
    pub const FRAGMENTATION_NEEDED: Unreachable = Unreachable(4);
    /// A source route failed.
    pub const SOURCE_ROUTE_FAILED: Unreachable = Unreachable(5);
    /// Forbidden by a filter.
    pub const PROHIBITED: Unreachable = Unreachable(13);
}

/// A message: a view whose fixed part is already taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Asks for an echo.
    EchoRequest {
        /// Names the asker.
        id: u16,
        /// Number of the request.
        seq: u16,
        /// Bytes to send back.
        data: &'a [u8],
    },
    /// Answers an echo request.
    EchoReply {
        /// As in the request.
        id: u16,
        /// As in the request.
        seq: u16,
        /// As in the request.
        data: &'a [u8],
    },
    /// A packet of ours could not be delivered.
    Unreachable {
        /// Why.
        code: Unreachable,
        /// With [`Unreachable::FRAGMENTATION_NEEDED`] the next link's MTU in bytes, 0 from routers that do not tell (RFC 1191 §4).
        next_hop_mtu: u16,
        /// Front of our packet; see [`Message::quoted`].
        quoted: &'a [u8],
    },
    /// A packet of ours was on its way too long (code 0), or a fragment of it went missing (code 1).
    TimeExceeded {
        /// Code.
        code: u8,
        /// Front of our packet.
        quoted: &'a [u8],
    },
    /// A router names a better one.
    Redirect {
        /// Code.
        code: u8,
        /// The better router.
        gateway: Ipv4Addr,
        /// Front of our packet.
        quoted: &'a [u8],
    },
    /// A packet of ours has a bad field.
    ParameterProblem {
        /// Code.
        code: u8,
        /// Offset of the bad byte if the code is 0.
        pointer: u8,
        /// Front of our packet.
        quoted: &'a [u8],
    },
    /// Any other message.
    Other {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
}

impl<'a> Message<'a> {
    /// Takes `bytes`, the whole payload of an IPv4 packet, apart. [`Error::Truncated`] below 8 bytes;
    /// [`Error::Malformed`] for an echo with a code other than 0.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>> {
        let (head, rest) = bytes.split_first_chunk::<HEADER_LEN>().ok_or(Error::Truncated)?;
        let [kind, code, _, _, a, b, c, d] = *head;
        let (id, seq) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Ok(match kind {
            0 | 8 if code != 0 => return Err(Error::Malformed),
            0 => Message::EchoReply { id, seq, data: rest },
            8 => Message::EchoRequest { id, seq, data: rest },
            3 => Message::Unreachable { code: Unreachable(code), next_hop_mtu: seq, quoted: rest },
            5 => Message::Redirect { code, gateway: Ipv4Addr::new(a, b, c, d), quoted: rest },
            11 => Message::TimeExceeded { code, quoted: rest },
            12 => Message::ParameterProblem { code, pointer: a, quoted: rest },
            _ => Message::Other { kind, code },
        })
    }

    /// What follows the fixed part: echo data, or the front of the quoted packet.
    pub fn data(&self) -> &'a [u8] {
        match *self {
            Message::EchoRequest { data, .. } | Message::EchoReply { data, .. } => data,
            Message::Unreachable { quoted, .. }
            | Message::TimeExceeded { quoted, .. }
            | Message::Redirect { quoted, .. }
            | Message::ParameterProblem { quoted, .. } => quoted,
            Message::Other { .. } => &[],
        }
    }

    /// The packet an error is about; its payload may be cut. `None` for messages that quote nothing and for quotations
    /// whose header is not whole.
    pub fn quoted(&self) -> Option<ipv4::Packet<'a>> {
        match *self {
            Message::Unreachable { quoted, .. }
            | Message::TimeExceeded { quoted, .. }
            | Message::Redirect { quoted, .. }
            | Message::ParameterProblem { quoted, .. } => ipv4::Packet::parse_quoted(quoted).ok(),
            _ => None,
        }
    }

    /// The fixed part, with `checksum` in its field; [`Message::data`] follows it on the wire.
    pub fn emit_head(&self, checksum: [u8; 2]) -> [u8; HEADER_LEN] {
        let pair = |id: u16, seq: u16| {
            let ([a, b], [c, d]) = (id.to_be_bytes(), seq.to_be_bytes());
            [a, b, c, d]
        };
        let (kind, code, [a, b, c, d]) = match *self {
            Message::EchoReply { id, seq, .. } => (0, 0, pair(id, seq)),
            Message::EchoRequest { id, seq, .. } => (8, 0, pair(id, seq)),
            Message::Unreachable { code, next_hop_mtu, .. } => (3, code.0, pair(0, next_hop_mtu)),
            Message::Redirect { code, gateway, .. } => (5, code, gateway.octets()),
            Message::TimeExceeded { code, .. } => (11, code, [0; 4]),
            Message::ParameterProblem { code, pointer, .. } => (12, code, [pointer, 0, 0, 0]),
            Message::Other { kind, code } => (kind, code, [0; 4]),
        };
        let [c0, c1] = checksum;
        [kind, code, c0, c1, a, b, c, d]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::{each_cut, each_mutation};
    use crate::wire::{ipv4, udp};
    use std::vec::Vec;

    /// The front of a UDP packet of ours as a router quotes it: header and 8 bytes.
    fn ours() -> Vec<u8> {
        let ip = ipv4::Repr {
            source: Ipv4Addr::new(10, 0, 0, 2),
            destination: Ipv4Addr::new(10, 9, 9, 9),
            protocol: ipv4::Protocol::UDP,
            payload_len: 1000,
            tos: 0,
            ttl: 1,
            identification: 7,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
        };
        let mut bytes = ip.emit([0; 2]).to_vec();
        bytes.extend_from_slice(&udp::Repr { source_port: 4000, destination_port: 69, payload_len: 992 }.emit([1, 2]));
        bytes
    }

    fn bytes(message: &Message<'_>) -> Vec<u8> {
        let mut bytes = message.emit_head([0xaa, 0x55]).to_vec();
        bytes.extend_from_slice(message.data());
        bytes
    }

    #[test]
    fn round_trip() {
        let quoted = &ours()[..];
        for message in [
            Message::EchoRequest { id: 0x1234, seq: 1, data: b"abcdefg" },
            Message::EchoReply { id: 0x1234, seq: 65535, data: b"" },
            Message::Unreachable { code: Unreachable::PORT, next_hop_mtu: 0, quoted },
            Message::Unreachable { code: Unreachable::FRAGMENTATION_NEEDED, next_hop_mtu: 1400, quoted },
            Message::TimeExceeded { code: 1, quoted },
            Message::Redirect { code: 1, gateway: Ipv4Addr::new(10, 0, 0, 254), quoted },
            Message::ParameterProblem { code: 0, pointer: 20, quoted },
            Message::Other { kind: 13, code: 0 },
        ] {
            let wire = bytes(&message);
            assert_eq!(wire[2..4], [0xaa, 0x55]);
            assert_eq!(Message::parse(&wire).unwrap(), message);
        }
    }

    #[test]
    fn quotation_leads_to_the_socket() {
        let quoted = ours();
        let wire = bytes(&Message::Unreachable { code: Unreachable::PORT, next_hop_mtu: 0, quoted: &quoted });
        let packet = Message::parse(&wire).unwrap().quoted().unwrap();
        assert_eq!(packet.destination(), Ipv4Addr::new(10, 9, 9, 9));
        let datagram = udp::Datagram::parse_partial(packet.payload()).unwrap();
        assert_eq!((datagram.source_port(), datagram.destination_port(), datagram.len()), (4000, 69, 1000));
    }

    #[test]
    fn quotation_may_be_missing() {
        let wire = bytes(&Message::Unreachable { code: Unreachable::HOST, next_hop_mtu: 0, quoted: &[] });
        assert!(Message::parse(&wire).unwrap().quoted().is_none());
        let wire = bytes(&Message::EchoReply { id: 1, seq: 2, data: &ours() });
        assert!(Message::parse(&wire).unwrap().quoted().is_none());
    }

    #[test]
    fn echo_with_a_code_is_refused() {
        for kind in [0, 8] {
            assert_eq!(Message::parse(&[kind, 1, 0, 0, 0, 1, 0, 1]).unwrap_err(), Error::Malformed);
            assert!(Message::parse(&[kind, 0, 0, 0, 0, 1, 0, 1]).is_ok());
        }
    }

    #[test]
    fn cut_and_mutated() {
        let quoted = ours();
        let wire = bytes(&Message::Unreachable { code: Unreachable::PORT, next_hop_mtu: 0, quoted: &quoted });
        each_cut(&wire, |cut| match Message::parse(cut) {
            Ok(message) => assert_eq!(message.quoted().is_some(), cut.len() >= 8 + 20),
            Err(e) => assert!(e == Error::Truncated && cut.len() < 8),
        });
        each_mutation(&wire, |bytes| {
            if let Some(packet) = Message::parse(bytes).ok().and_then(|message| message.quoted()) {
                assert!(packet.payload().len() <= bytes.len());
            }
        });
    }
}
