//! ARP for IPv4 over Ethernet (RFC 826). What to learn, and when to answer, is left to the stack.

use super::ethernet::Address;
use super::{Error, Result};
use core::net::Ipv4Addr;

/// Length of a packet in bytes; what follows is Ethernet padding.
pub const PACKET_LEN: usize = 28;

/// What an ARP packet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Asks who has the target address.
    Request,
    /// Tells that the sender has the sender address.
    Reply,
}

/// A view of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    bytes: &'a [u8; PACKET_LEN],
    operation: Operation,
}

impl<'a> Packet<'a> {
    /// Views the front of `bytes` as a packet. [`Error::Truncated`] below 28 bytes; [`Error::Malformed`] unless the
    /// hardware is Ethernet, the protocol IPv4, their lengths 6 and 4, and the operation a request or a reply.
    pub fn parse(bytes: &'a [u8]) -> Result<Packet<'a>> {
        let bytes = bytes.first_chunk::<PACKET_LEN>().ok_or(Error::Truncated)?;
        let [h0, h1, p0, p1, hlen, plen, o0, o1, ..] = *bytes;
        // RFC 826, Packet Reception: "?Do I have the hardware type … ?Do I speak the protocol"; lengths are checked too.
        if [h0, h1, p0, p1, hlen, plen] != [0, 1, 0x08, 0x00, 6, 4] {
            return Err(Error::Malformed);
        }
        let operation = match u16::from_be_bytes([o0, o1]) {
            1 => Operation::Request,
            2 => Operation::Reply,
            _ => return Err(Error::Malformed),
        };
        Ok(Packet { bytes, operation })
    }

    /// Request or reply.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// MAC address of the sender.
    pub fn sender_mac(&self) -> Address {
        let b = self.bytes;
        Address([b[8], b[9], b[10], b[11], b[12], b[13]])
    }

    /// IPv4 address of the sender; 0.0.0.0 in a probe (RFC 5227 §1.1).
    pub fn sender_ip(&self) -> Ipv4Addr {
        let b = self.bytes;
        Ipv4Addr::new(b[14], b[15], b[16], b[17])
    }

    /// MAC address of the target; of no meaning in a request.
    pub fn target_mac(&self) -> Address {
        let b = self.bytes;
        Address([b[18], b[19], b[20], b[21], b[22], b[23]])
    }

    /// IPv4 address of the target.
    pub fn target_ip(&self) -> Ipv4Addr {
        let b = self.bytes;
        Ipv4Addr::new(b[24], b[25], b[26], b[27])
    }

    /// Whether sender and target IPv4 address are the same: an announcement, or "gratuitous ARP" (RFC 5227 §3).
    pub fn is_gratuitous(&self) -> bool {
        self.sender_ip() == self.target_ip()
    }
}

/// The values of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Request or reply.
    pub operation: Operation,
    /// MAC address of the sender.
    pub sender_mac: Address,
    /// IPv4 address of the sender.
    pub sender_ip: Ipv4Addr,
    /// MAC address of the target.
    pub target_mac: Address,
    /// IPv4 address of the target.
    pub target_ip: Ipv4Addr,
}

impl Repr {
    /// The values of a packet.
    pub fn parse(packet: &Packet<'_>) -> Repr {
        Repr {
            operation: packet.operation(),
            sender_mac: packet.sender_mac(),
            sender_ip: packet.sender_ip(),
            target_mac: packet.target_mac(),
            target_ip: packet.target_ip(),
        }
    }

    /// The packet.
    pub fn emit(&self) -> [u8; PACKET_LEN] {
        let op = match self.operation {
            Operation::Request => 1,
            Operation::Reply => 2,
        };
        let Address([a, b, c, d, e, f]) = self.sender_mac;
        let [g, h, i, j] = self.sender_ip.octets();
        let Address([k, l, m, n, o, p]) = self.target_mac;
        let [q, r, s, t] = self.target_ip.octets();
        [0, 1, 0x08, 0x00, 6, 4, 0, op, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::each_cut;

    const REPR: Repr = Repr {
        operation: Operation::Reply,
        sender_mac: Address([2, 1, 2, 3, 4, 5]),
        sender_ip: Ipv4Addr::new(10, 0, 0, 1),
        target_mac: Address([2, 9, 8, 7, 6, 5]),
        target_ip: Ipv4Addr::new(10, 0, 0, 2),
    };

    #[test]
    fn round_trip() {
        for operation in [Operation::Request, Operation::Reply] {
            let repr = Repr { operation, ..REPR };
            let mut frame = repr.emit().to_vec();
            frame.resize(46, 0); // Ethernet padding
            assert_eq!(Repr::parse(&Packet::parse(&frame).unwrap()), repr);
        }
    }

    #[test]
    fn gratuitous() {
        let bytes = Repr { target_ip: REPR.sender_ip, ..REPR }.emit();
        assert!(Packet::parse(&bytes).unwrap().is_gratuitous());
        let bytes = REPR.emit();
        assert!(!Packet::parse(&bytes).unwrap().is_gratuitous());
    }

    #[test]
    fn case_a05_wire_stunted_and_foreign() {
        let valid = REPR.emit();
        each_cut(&valid, |cut| assert_eq!(Packet::parse(cut).unwrap_err(), Error::Truncated));
        for (at, value) in
            [(0, 1), (1, 6), (2, 0x86), (3, 1), (4, 255), (4, 0), (5, 16), (5, 0), (6, 1), (7, 0), (7, 3), (7, 9)]
        {
            let mut bad = valid;
            bad[at] = value;
            assert_eq!(Packet::parse(&bad).unwrap_err(), Error::Malformed, "byte {at} = {value}");
        }
        assert!(Packet::parse(&valid).is_ok());
    }
}
