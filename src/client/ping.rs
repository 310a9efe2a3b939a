//! Ping: echo requests (RFC 792) to one host, with round-trip statistics.

use super::dns::{Resolve, Resolved};
use super::operation::{Cx, Datagram, DetailKind, Operation, Step, icmp_meaning};
use crate::stack::egress::{L4Header, L4Sum, Packet, TxError};
use crate::stack::icmp::{EchoReply, ErrorKind, IcmpError};
use crate::storage::checksum::Sum;
use crate::storage::error::Error;
use crate::storage::host::{Host, Token};
use crate::storage::time::{Duration, Instant};
use crate::wire::icmpv4::Message;
use crate::wire::ipv4::Protocol;
use core::net::Ipv4Addr;

/// Most payload bytes of one request: what fits an IPv4 packet.
pub const MAX_SIZE: usize = 65_507;

/// What to ask for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Whom; for [`Ping::named`] it does not count.
    pub dst: Ipv4Addr,
    /// How often, at least 1.
    pub count: u32,
    /// Payload bytes.
    pub size: usize,
    /// Time between requests.
    pub interval: Duration,
    /// How long to wait for the last answer.
    pub timeout: Duration,
    /// Don't-fragment flag.
    pub dont_fragment: bool,
    /// Time to live.
    pub ttl: u8,
    /// End with the first answer.
    pub until_answer: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requests sent.
    pub sent: u32,
    /// Answers, each request's first.
    pub received: u32,
    /// Further answers to the same request.
    pub duplicates: u32,
    /// ICMP errors.
    pub errors: u32,
    /// Shortest round trip.
    pub min: Duration,
    /// Longest round trip.
    pub max: Duration,
    /// Sum of all round trips.
    pub total: Duration,
}

/// How long a NIC may have no room for a request, or to ask for the next hop.
const STUCK: Duration = Duration::from_secs(10);
/// Requests whose sending times are remembered at once.
const REMEMBERED: usize = 8;

/// The operation; its result is the number of answers, at least 1. It fails with [`Error::Timeout`] when nobody answered,
/// with what an ICMP error means when one came, and as [`Resolve`] does where a name is to be looked up.
#[derive(Debug)]
pub struct Ping<H: Host> {
    request: Request,
    /// The name of the host, until its address is known.
    name: Option<(H::Text, Resolve)>,
    id: Option<u16>,
    statistics: Statistics,
    /// Sending times of the latest requests, by sequence number modulo the length; `None` once answered.
    sent_at: [Option<Instant>; REMEMBERED],
    next_send: Instant,
    /// Since when the NIC has had no room for a request.
    stuck: Option<Instant>,
    failed: Option<Error>,
}

impl<H: Host> Ping<H> {
    /// A ping that is yet to be sent.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a count of 0 or an address that is no host's; [`Error::MessageSize`] above [`MAX_SIZE`].
    pub fn new(request: Request) -> Result<Self, Error> {
        if request.dst.is_unspecified() || request.dst.is_multicast() {
            return Err(Error::Invalid);
        }
        Ping::with(request, None)
    }

    /// A ping of the host called `name`: a name to look up, or a dotted address.
    ///
    /// # Errors
    /// As [`Self::new`], but for the address.
    pub fn named(name: H::Text, request: Request) -> Result<Self, Error> {
        Ping::with(request, Some((name, Resolve::new())))
    }

    fn with(request: Request, name: Option<(H::Text, Resolve)>) -> Result<Self, Error> {
        if request.count == 0 {
            return Err(Error::Invalid);
        }
        if request.size > MAX_SIZE {
            return Err(Error::MessageSize);
        }
        Ok(Ping {
            request,
            name,
            id: None,
            statistics: Statistics::default(),
            sent_at: [None; REMEMBERED],
            next_send: Instant::ZERO,
            stuck: None,
            failed: None,
        })
    }

    /// What has come of it so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn remembered(&mut self, seq: u16) -> Option<&mut Option<Instant>> {
        self.sent_at.get_mut(usize::from(seq).wrapping_rem(REMEMBERED))
    }

    /// Whether `seq` is the number of one of the latest requests.
    fn is_recent(&self, seq: u16) -> bool {
        let age = (self.statistics.sent as u16).wrapping_sub(1).wrapping_sub(seq);
        usize::from(age) < REMEMBERED && u32::from(age) < self.statistics.sent
    }

    fn send(&mut self, cx: &mut Cx<'_, '_, H>, id: u16) -> Result<(), TxError> {
        let seq = self.statistics.sent as u16;
        let header = Message::EchoRequest { id, seq, data: &[] }.emit_head([0; 2]);
        let packet = Packet {
            src: Ipv4Addr::UNSPECIFIED,
            dst: self.request.dst,
            nic: None,
            protocol: Protocol::ICMP,
            ttl: self.request.ttl,
            tos: 0,
            dont_fragment: self.request.dont_fragment,
            header: L4Header::new(&header, L4Sum::Plain),
            body: &[],
            token: Token(0),
            queue: false,
        };
        let size = self.request.size;
        let mut at = 0;
        cx.stack.send_pieces(&packet, size, &mut |out| {
            at = if at < size { at } else { 0 };
            for byte in out.iter_mut() {
                *byte = pattern(at);
                at = at.wrapping_add(1);
            }
            Ok(Sum::of(out))
        })
    }
}

/// Byte `i` of a request's payload.
fn pattern(i: usize) -> u8 {
    i as u8
}

/// Whether `data` is what a request of `size` bytes carried.
fn is_pattern(data: &[u8], size: usize) -> bool {
    data.len() == size && data.iter().enumerate().all(|(i, byte)| *byte == pattern(i))
}

impl<H: Host> Operation<H> for Ping<H> {
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        let now = cx.now();
        if let Some(error) = self.failed {
            return Step::Done(Err(error));
        }
        if let Some((name, resolve)) = &mut self.name {
            match resolve.poll(cx, name.as_ref()) {
                Resolved::Pending(at) => return Step::Pending(at),
                Resolved::Failed(e) => return Step::Done(Err(e)),
                Resolved::Ready(addr) if addr.is_unspecified() || addr.is_multicast() => {
                    return Step::Done(Err(Error::Invalid));
                }
                Resolved::Ready(addr) => {
                    self.request.dst = addr;
                    self.name = None;
                }
            }
        }
        let answered = self.statistics.received;
        if answered >= self.request.count || (answered > 0 && self.request.until_answer) {
            return Step::Done(Ok(u64::from(answered)));
        }
        let id = match self.id {
            Some(id) => id,
            None => {
                let id = cx.random() as u16;
                self.id = Some(id);
                id
            }
        };
        if self.statistics.sent >= self.request.count {
            if now < self.next_send {
                return Step::Pending(self.next_send);
            }
            return Step::Done(if answered > 0 { Ok(u64::from(answered)) } else { Err(Error::Timeout) });
        }
        if now < self.next_send {
            return Step::Pending(self.next_send);
        }
        match self.send(cx, id) {
            Ok(()) => {
                self.stuck = None;
                let seq = self.statistics.sent as u16;
                if let Some(slot) = self.remembered(seq) {
                    *slot = Some(now);
                }
                self.statistics.sent = self.statistics.sent.saturating_add(1);
                let last = self.statistics.sent >= self.request.count;
                self.next_send = now + if last { self.request.timeout } else { self.request.interval };
                Step::Pending(self.next_send)
            }
            Err(e) if e.is_transient() && now.since(*self.stuck.get_or_insert(now)) >= STUCK => {
                Step::Done(if answered > 0 { Ok(u64::from(answered)) } else { Err(Error::Timeout) })
            }
            // Woken when the neighbour is known or the NIC has room; asked again in a while in any case.
            Err(e) if e.is_transient() => Step::Pending(now + Duration::from_millis(100)),
            Err(e) => Step::Done(Err(e.into())),
        }
    }

    fn datagram(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>) {
        if let Some((name, resolve)) = &mut self.name {
            resolve.datagram(cx, name.as_ref(), datagram);
        }
    }

    fn cancel(&mut self, cx: &mut Cx<'_, '_, H>) {
        if let Some((_, resolve)) = &mut self.name {
            resolve.cancel(cx);
        }
    }

    fn echo_reply(&mut self, cx: &mut Cx<'_, '_, H>, reply: &EchoReply<'_>) -> bool {
        let ours = Some(reply.id) == self.id && reply.src == self.request.dst && self.is_recent(reply.seq);
        if !ours || !is_pattern(reply.data, self.request.size) {
            return false;
        }
        let now = cx.now();
        match self.remembered(reply.seq).and_then(Option::take) {
            None => self.statistics.duplicates = self.statistics.duplicates.saturating_add(1),
            Some(sent) => {
                let rtt = now.since(sent);
                let s = &mut self.statistics;
                s.min = if s.received == 0 { rtt } else { s.min.min(rtt) };
                s.max = s.max.max(rtt);
                s.total = s.total + rtt;
                s.received = s.received.saturating_add(1);
                cx.progress.done = u64::from(s.received);
                cx.progress.total = Some(u64::from(self.request.count));
            }
        }
        true
    }

    fn icmp_error(&mut self, cx: &mut Cx<'_, '_, H>, error: &IcmpError) {
        if let Some((_, resolve)) = &mut self.name {
            return resolve.icmp_error(cx, error);
        }
        let ours = error.protocol == Protocol::ICMP
            && error.dst == self.request.dst
            && Some(error.src_port) == self.id
            && self.is_recent(error.dst_port);
        if !ours {
            return;
        }
        self.statistics.errors = self.statistics.errors.saturating_add(1);
        let (kind, code) = match error.kind {
            ErrorKind::Unreachable(code) => (3, u32::from(code.0)),
            ErrorKind::FragmentationNeeded(_) => (3, 4),
            ErrorKind::TimeExceeded => (11, 0),
            ErrorKind::ParameterProblem => (12, 0),
        };
        cx.detail.set(DetailKind::Icmp, (kind << 8) | code, Some(error.from), &[]);
        self.failed = match error.kind {
            ErrorKind::FragmentationNeeded(_) => Some(Error::MessageSize),
            ErrorKind::TimeExceeded => Some(Error::HostUnreachable),
            _ => icmp_meaning(error),
        };
    }
}

#[cfg(test)]
mod tests;
