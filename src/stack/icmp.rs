//! ICMP (RFC 792, RFC 1122 §3.2.2): answers echo requests, reports what became of packets of ours, tells others of
//! ports nobody listens on, and obeys no redirect.

use super::Stack;
use super::egress::{L4Header, L4Sum, Packet as Outgoing, TxError};
use super::ingress::{Action, Packet};
use super::interface::{Cast, NicId};
use super::stats::Counter;
use crate::storage::checksum::Sum;
use crate::storage::host::{Host, Span, Token};
use crate::storage::time::{Duration, Instant};
use crate::wire::icmpv4::{Message, Unreachable};
use crate::wire::ipv4::Protocol;
use crate::wire::udp;
use core::net::Ipv4Addr;

/// An echo reply that has come.
#[derive(Clone, Copy, Debug)]
pub struct EchoReply<'f> {
    /// Who answered.
    pub src: Ipv4Addr,
    /// Interface it came in on.
    pub nic: NicId,
    /// Identifier of the request.
    pub id: u16,
    /// Sequence number of the request.
    pub seq: u16,
    /// The bytes sent back.
    pub data: &'f [u8],
    /// Time to live left when it came.
    pub ttl: u8,
}

/// What an ICMP error says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Destination unreachable, with its code.
    Unreachable(Unreachable),
    /// Too long for a link, and may not be fragmented: the link's MTU, 0 where the router does not tell (RFC 1191).
    FragmentationNeeded(u16),
    /// Too many hops, or a fragment missing.
    TimeExceeded,
    /// A header field the other side cannot accept.
    ParameterProblem,
}

/// An ICMP error about a packet that may be ours; whoever owns the flow must agree that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// Who says so.
    pub from: Ipv4Addr,
    /// What is said.
    pub kind: ErrorKind,
    /// Source address of the quoted packet.
    pub src: Ipv4Addr,
    /// Its destination address.
    pub dst: Ipv4Addr,
    /// Its total length.
    pub len: u16,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its source port, or the identifier of an echo request.
    pub src_port: u16,
    /// Its destination port, or the sequence number of an echo request.
    pub dst_port: u16,
    /// The four bytes after the ports: a TCP sequence number, a UDP length and checksum.
    pub rest: [u8; 4],
}

/// How often ICMP errors may be sent (RFC 1812 §4.3.2.8): a bucket of tokens.
#[derive(Debug)]
pub struct ErrorLimit {
    tokens: u8,
    refilled: Instant,
}

impl ErrorLimit {
    /// Tokens a full bucket holds.
    const BURST: u8 = 6;
    /// Time in which one token comes back.
    const REFILL: Duration = Duration::from_millis(100);

    /// A full bucket.
    pub const fn new() -> Self {
        ErrorLimit { tokens: Self::BURST, refilled: Instant::ZERO }
    }

    /// Whether one more may be sent at `now`.
    pub fn take(&mut self, now: Instant) -> bool {
        while self.tokens < Self::BURST && now.since(self.refilled) >= Self::REFILL {
            self.tokens = self.tokens.saturating_add(1);
            self.refilled += Self::REFILL;
        }
        if self.tokens == Self::BURST {
            self.refilled = now;
        }
        match self.tokens.checked_sub(1) {
            Some(left) => {
                self.tokens = left;
                true
            }
            None => false,
        }
    }
}

impl Default for ErrorLimit {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, H: Host> Stack<'a, H> {
    /// Takes a received ICMP message.
    #[inline(never)]
    pub fn receive_icmp<'f>(&mut self, packet: &Packet<'f>) -> Action<'f> {
        let Ok(message) = Message::parse(packet.payload) else {
            self.stats.count(Counter::DropIcmpMalformed);
            return Action::Done;
        };
        if !packet.sum_ok && !Sum::of(packet.payload).holds() {
            self.stats.count(Counter::DropIcmpChecksum);
            return Action::Done;
        }
        let kind = match message {
            Message::EchoRequest { id, seq, data } => {
                self.answer_echo(packet, id, seq, data);
                return Action::Done;
            }
            Message::EchoReply { id, seq, data } => {
                let (src, nic, ttl) = (packet.src, packet.nic, packet.ip.ttl());
                return Action::EchoReply(EchoReply { src, nic, id, seq, data, ttl });
            }
            Message::Unreachable { code: Unreachable::FRAGMENTATION_NEEDED, next_hop_mtu, .. } => {
                ErrorKind::FragmentationNeeded(next_hop_mtu)
            }
            Message::Unreachable { code, .. } => ErrorKind::Unreachable(code),
            Message::TimeExceeded { .. } => ErrorKind::TimeExceeded,
            Message::ParameterProblem { .. } => ErrorKind::ParameterProblem,
            // RFC 1122 §3.2.2.2 lets a host obey redirects; a bootloader has no use for another router.
            Message::Redirect { .. } => {
                self.stats.count(Counter::DropIcmpRedirect);
                return Action::Done;
            }
            Message::Other { .. } => {
                self.stats.count(Counter::DropIcmpIgnored);
                return Action::Done;
            }
        };
        let quoted = message.quoted().and_then(|ip| {
            let [a, b, c, d, rest @ ..] = *ip.payload().first_chunk::<8>()?;
            let ports = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]), rest);
            // An echo request quotes type and code first, then checksum, identifier and sequence number.
            let ports = match (ip.protocol(), ports) {
                (Protocol::ICMP, (_, _, [e, f, g, h])) if a == 8 => {
                    (u16::from_be_bytes([e, f]), u16::from_be_bytes([g, h]), [0; 4])
                }
                (_, ports) => ports,
            };
            Some((ip, ports))
        });
        let Some((ip, (src_port, dst_port, rest))) = quoted else {
            self.stats.count(Counter::DropIcmpMalformed);
            return Action::Done;
        };
        // Only what we sent from this address can be about us; nor may an error be about a broadcast (RFC 1122 §3.2.2).
        if ip.source() != packet.dst || packet.cast != Cast::Unicast || ip.fragment_offset() != 0 {
            self.stats.count(Counter::DropIcmpIgnored);
            return Action::Done;
        }
        Action::Error(IcmpError {
            from: packet.src,
            kind,
            src: ip.source(),
            dst: ip.destination(),
            len: ip.total_len(),
            protocol: ip.protocol(),
            src_port,
            dst_port,
            rest,
        })
    }

    fn answer_echo(&mut self, packet: &Packet<'_>, id: u16, seq: u16, data: &[u8]) {
        // RFC 1122 §3.2.2.6 lets a host ignore requests to broadcasts; it must not answer before it has an address.
        let owned = self.interface(packet.nic).is_some_and(|i| i.owns(packet.dst));
        if packet.cast != Cast::Unicast || !owned {
            self.stats.count(Counter::DropIcmpIgnored);
            return;
        }
        let header = Message::EchoReply { id, seq, data }.emit_head([0; 2]);
        let answer = Outgoing {
            src: packet.dst,
            dst: packet.src,
            nic: Some(packet.nic),
            protocol: Protocol::ICMP,
            ttl: 64,
            tos: packet.ip.tos(),
            dont_fragment: false,
            header: L4Header::new(&header, L4Sum::Plain),
            body: &[Span::Bytes(data)],
            token: Token(0),
            queue: true,
        };
        if self.send(&answer).is_ok() {
            self.stats.count(Counter::IcmpEchoAnswered);
        }
    }

    /// Tells the sender of `packet` that it was not delivered (RFC 1122 §3.2.2.1), unless that is forbidden (§3.2.2) or
    /// was told too often.
    pub fn send_unreachable(&mut self, packet: &Packet<'_>, code: Unreachable) {
        let owned = self.interface(packet.nic).is_some_and(|i| i.owns(packet.dst));
        if packet.cast != Cast::Unicast || !owned {
            return;
        }
        self.send_icmp_error(packet, Message::Unreachable { code, next_hop_mtu: 0, quoted: &[] });
    }

    /// Tells the sender of a fragmented datagram that pieces of it did not come (RFC 792, type 11 code 1).
    pub(super) fn send_reassembly_timeout(&mut self, nic: NicId, from: Ipv4Addr, to: Ipv4Addr, quote: &[u8]) {
        if !self.interface(nic).is_some_and(|i| i.owns(from)) {
            return;
        }
        if !self.icmp_errors.take(self.now) {
            self.stats.count(Counter::IcmpRateLimited);
            return;
        }
        let header = Message::TimeExceeded { code: 1, quoted: &[] }.emit_head([0; 2]);
        let error = Outgoing {
            src: from,
            dst: to,
            nic: Some(nic),
            protocol: Protocol::ICMP,
            ttl: 64,
            tos: 0,
            dont_fragment: false,
            header: L4Header::new(&header, L4Sum::Plain),
            body: &[Span::Bytes(quote)],
            token: Token(0),
            queue: false,
        };
        // Errors are best effort: one that cannot leave now is not tried again.
        let _: Result<(), TxError> = self.send(&error);
    }

    /// Sends an ICMP error that quotes the header and the first 8 bytes of `packet`.
    pub(super) fn send_icmp_error(&mut self, packet: &Packet<'_>, message: Message<'_>) {
        if !self.icmp_errors.take(self.now) {
            self.stats.count(Counter::IcmpRateLimited);
            return;
        }
        let quoted = packet.payload.get(..udp::HEADER_LEN).unwrap_or(packet.payload);
        let header = message.emit_head([0; 2]);
        let error = Outgoing {
            src: packet.dst,
            dst: packet.src,
            nic: Some(packet.nic),
            protocol: Protocol::ICMP,
            ttl: 64,
            tos: 0,
            dont_fragment: false,
            header: L4Header::new(&header, L4Sum::Plain),
            body: &[Span::Bytes(packet.ip.header_bytes()), Span::Bytes(quoted)],
            token: Token(0),
            queue: false,
        };
        // Errors are best effort: one that cannot leave now is not tried again.
        let _: Result<(), TxError> = self.send(&error);
    }
}
