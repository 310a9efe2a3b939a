//! IGMP version 2 (RFC 2236), as far as a host needs it: reports and leaves to send, queries to answer. When to send is
//! left to the stack. IGMP packets go out with a TTL of 1 and the router alert option.

use super::{Error, Result};
use core::net::Ipv4Addr;

/// Length of a message in bytes.
pub const MESSAGE_LEN: usize = 8;
/// Where leaves go: all routers.
pub const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
/// Where general queries go: all hosts.
pub const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A router asks who is a member.
    Query {
        /// The group asked for; unspecified in a general query.
        group: Ipv4Addr,
        /// Longest time until the answer, in tenths of a second. Version 1 queries say 0 and mean 100 (RFC 2236 §4).
        max_response_ds: u16,
    },
    /// A host is a member, in the form of version 1 or 2.
    Report {
        /// The group.
        group: Ipv4Addr,
    },
    /// A host is no longer a member.
    Leave {
        /// The group.
        group: Ipv4Addr,
    },
}

impl Message {
    /// Takes `bytes`, the payload of an IPv4 packet, apart; a version 3 query (RFC 3376) is read as one of version 2.
    /// [`Error::Truncated`] below 8 bytes; [`Error::Malformed`] for other types, queries of 9 to 11 bytes (RFC 3376 §7.1) and
    /// groups that are not multicast.
    pub fn parse(bytes: &[u8]) -> Result<Message> {
        let &[kind, time, _, _, a, b, c, d] = bytes.first_chunk::<MESSAGE_LEN>().ok_or(Error::Truncated)?;
        let group = Ipv4Addr::new(a, b, c, d);
        let message = match kind {
            0x11 if matches!(bytes.len(), 9..=11) => return Err(Error::Malformed),
            0x11 => {
                let max_response_ds = match time {
                    0 if bytes.len() == MESSAGE_LEN => 100,
                    // Version 3: a floating-point code from 128 on (RFC 3376 §4.1.1).
                    128.. if bytes.len() > MESSAGE_LEN => {
                        (u16::from(time & 0x0f) | 0x10) << ((time >> 4) & 0x07).wrapping_add(3)
                    }
                    time => u16::from(time),
                };
                if group.is_unspecified() {
                    return Ok(Message::Query { group, max_response_ds });
                }
                Message::Query { group, max_response_ds }
            }
            0x12 | 0x16 => Message::Report { group },
            0x17 => Message::Leave { group },
            _ => return Err(Error::Malformed),
        };
        if group.is_multicast() { Ok(message) } else { Err(Error::Malformed) }
    }

    /// The message with `checksum`, a plain sum over it, in its field. Reports are of version 2.
    pub fn emit(&self, checksum: [u8; 2]) -> [u8; MESSAGE_LEN] {
        let (kind, time, group) = match *self {
            Message::Query { group, max_response_ds } => (0x11, max_response_ds.min(255) as u8, group),
            Message::Report { group } => (0x16, 0, group),
            Message::Leave { group } => (0x17, 0, group),
        };
        let ([a, b, c, d], [c0, c1]) = (group.octets(), checksum);
        [kind, time, c0, c1, a, b, c, d]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::each_cut;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);

    #[test]
    fn round_trip() {
        for message in [
            Message::Query { group: GROUP, max_response_ds: 25 },
            Message::Query { group: Ipv4Addr::UNSPECIFIED, max_response_ds: 100 },
            Message::Report { group: GROUP },
            Message::Leave { group: GROUP },
        ] {
            let wire = message.emit([0x12, 0x34]);
            assert_eq!(wire[2..4], [0x12, 0x34]);
            assert_eq!(Message::parse(&wire), Ok(message));
            each_cut(&wire, |cut| assert_eq!(Message::parse(cut), Err(Error::Truncated)));
        }
    }

    #[test]
    fn queries_of_versions_1_and_3() {
        let v1 = [0x11, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Message::parse(&v1), Ok(Message::Query { group: Ipv4Addr::UNSPECIFIED, max_response_ds: 100 }));
        let mut v3 = [0x11, 0x8a, 0, 0, 239, 1, 2, 3, 0, 0, 0, 0];
        let query = |max_response_ds| Ok(Message::Query { group: GROUP, max_response_ds });
        assert_eq!(Message::parse(&v3), query(0x1a << 3));
        assert_eq!(Message::parse(&v3[..8]), query(0x8a));
        for n in 9..12 {
            assert_eq!(Message::parse(&v3[..n]), Err(Error::Malformed));
        }
        v3[1] = 0xff;
        assert_eq!(Message::parse(&v3), query(0x1f << 10));
        v3[1] = 0;
        assert_eq!(Message::parse(&v3), query(0));
    }

    #[test]
    fn other_types_and_groups_are_refused() {
        for kind in [0x00, 0x13, 0x22, 0xff] {
            assert_eq!(Message::parse(&[kind, 0, 0, 0, 239, 1, 2, 3]), Err(Error::Malformed));
        }
        for kind in [0x11, 0x12, 0x16, 0x17] {
            assert_eq!(Message::parse(&[kind, 0, 0, 0, 10, 0, 0, 1]), Err(Error::Malformed));
        }
        assert_eq!(Message::parse(&[0x16, 0, 0, 0, 0, 0, 0, 0]), Err(Error::Malformed));
        assert_eq!(Message::parse(&[0x12, 0, 0, 0, 239, 1, 2, 3]), Ok(Message::Report { group: GROUP }));
    }
}
