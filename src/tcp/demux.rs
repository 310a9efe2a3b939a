//! Which connection a segment or an ICMP error is for; new connections at listeners, and resets for what is for nobody
//! (RFC 9293 §3.10.7.1, §3.10.7.2).

use super::Tcp;
use super::conn::{Context, Due, Limit, State};
use super::lane::Lane;
use super::send::emit_header;
use super::seq::Pos;
use super::state::Verdict;
use super::table::Between;
use crate::FAST;
use crate::stack::Stack;
use crate::stack::egress::{Packet as Outgoing, pseudo_header};
use crate::stack::front::Front;
use crate::stack::icmp::{ErrorKind, IcmpError};
use crate::stack::ingress::Packet;
use crate::stack::interface::{Cast, NicId};
use crate::stack::stats::Counter;
use crate::storage::checksum::Sum;
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host, RxFlags, Token};
use crate::storage::slots::Key;
use crate::wire::icmpv4::Unreachable;
use crate::wire::ipv4::Protocol;
use crate::wire::tcp::{Flags, Options, Repr, Segment, SeqNumber};

impl<'a, H: Host> Tcp<'a, H> {
    /// Takes a frame that is the next of the connection whose segments came last, if it is what was expected of that: the
    /// whole way of a segment in one place. `false`: it is not, and nothing has changed.
    #[inline]
    pub fn take(&mut self, stack: &mut Stack<'a, H>, nic: NicId, frame: &[u8], flags: RxFlags) -> bool {
        let Some(lane) = self.lane.as_ref().filter(|_| FAST) else { return false };
        let Some(bytes) = lane.front.take(stack.version(), nic, frame, flags) else { return false };
        let Ok(segment) = Segment::parse(bytes) else { return false };
        let key = lane.key;
        let Some(conn) = self.table.get_mut(key) else { return false };
        let mut cx = Context { stack, pages: &mut self.pages, time_wait: self.time_wait };
        if !conn.receive_expected(&mut cx, flags.contains(RxFlags::L4_SUM_OK), bytes.len(), &segment) {
            return false;
        }
        let settles = conn.attention | conn.rx.ack_now;
        stack.stats.count(Counter::RxFrames);
        if settles {
            self.settle(stack, key.index);
        }
        true
    }

    /// A TCP segment came.
    #[inline(never)]
    pub fn receive(&mut self, stack: &mut Stack<'a, H>, packet: &Packet<'_>) {
        let Ok(segment) = Segment::parse(packet.payload) else {
            stack.stats.count(Counter::DropTcpMalformed);
            return;
        };
        let (local, remote) = (segment.destination_port(), segment.source_port());
        let between = Between {
            local: Endpoint { addr: packet.dst, port: local },
            remote: Endpoint { addr: packet.src, port: remote },
        };
        let Some(index) = self.table.find(&self.secret, between) else {
            self.receive_unknown(stack, packet, &segment);
            return;
        };
        if FAST {
            self.find_lane(stack, index, packet);
        }
        let Some(slot) = self.table.at_mut(index) else { return };
        let mut cx = Context { stack, pages: &mut self.pages, time_wait: self.time_wait };
        let verdict = slot.conn.receive(&mut cx, packet, &segment);
        if slot.conn.attention | slot.conn.rx.ack_now {
            self.settle(stack, index);
        }
        match verdict {
            Verdict::Done => {}
            Verdict::Reset(seq) => self.reset(stack, packet, &segment, Some(seq)),
            Verdict::Reopen => self.reopen(stack, index, packet, &segment),
        }
    }

    /// Remembers what the frames of a connection look like of which a second segment comes in a row.
    #[inline]
    fn find_lane(&mut self, stack: &Stack<'a, H>, index: u16, packet: &Packet<'_>) {
        let Some(key) = self.table.key(index) else { return };
        if self.candidate.replace(key) == Some(key)
            && let Some(interface) = stack.interface(packet.nic)
        {
            let front = Front::of(interface, packet.nic, packet.frame, stack.version());
            self.lane = front.map(|front| Lane { front, key });
        }
    }

    /// A segment for no connection.
    #[cold]
    #[inline(never)]
    fn receive_unknown(&mut self, stack: &mut Stack<'a, H>, packet: &Packet<'_>, segment: &Segment<'_>) {
        if packet.cast != Cast::Unicast || !stack.interface(packet.nic).is_some_and(|i| i.owns(packet.dst)) {
            // RFC 1122 §4.2.3.10: nothing addressed to many may open, or be answered.
            stack.stats.count(Counter::DropTcpAddress);
            return;
        }
        let pseudo = pseudo_header(packet.src, packet.dst, Protocol::TCP, packet.payload.len());
        if !packet.sum_ok && !(pseudo + Sum::of(packet.payload)).holds() {
            stack.stats.count(Counter::DropTcpChecksum);
            return;
        }
        let flags = segment.flags();
        let opens = flags.contains(Flags::SYN) && !flags.intersects(Flags::ACK | Flags::RST);
        if opens && let Some(listener) = self.listener_at(packet, segment) {
            self.open_passive(stack, listener, packet, segment);
            return;
        }
        stack.stats.count(Counter::DropTcpNoConnection);
        if !flags.contains(Flags::RST) {
            self.reset(stack, packet, segment, None);
        }
    }

    /// The listener for a segment: one at its address before one at any.
    fn listener_at(&self, packet: &Packet<'_>, segment: &Segment<'_>) -> Option<Key> {
        let port = segment.destination_port();
        let fits = |addr| move |(_, l): &(Key, &super::Listener)| l.local == Endpoint { addr, port };
        let exact = self.listeners.iter().find(fits(packet.dst));
        let any = || self.listeners.iter().find(fits(core::net::Ipv4Addr::UNSPECIFIED));
        exact.or_else(any).map(|(key, _)| key)
    }

    /// A SYN for a listener (RFC 9293 §3.10.7.2).
    #[cold]
    #[inline(never)]
    fn open_passive(&mut self, stack: &mut Stack<'a, H>, parent: Key, packet: &Packet<'_>, segment: &Segment<'_>) {
        let Some(listener) = self.listeners.get(parent) else { return };
        let (backlog, options) = (listener.backlog, listener.options);
        if segment.source_port() == 0 {
            stack.stats.count(Counter::DropTcpMalformed);
            return;
        }
        let waiting = self.table.iter().filter(|s| s.conn.parent == Some(parent) && s.conn.state != State::Closed);
        let full = waiting.count() >= usize::from(backlog);
        if (full || self.table.free().is_none()) && !self.evict_half_open(stack, full.then_some(parent)) {
            // The peer's SYN will come again.
            stack.stats.count(Counter::DropTcpBacklog);
            return;
        }
        let local = Endpoint { addr: packet.dst, port: segment.destination_port() };
        let remote = Endpoint { addr: packet.src, port: segment.source_port() };
        let nic = stack.route(packet.dst, packet.src, None).map_or(packet.nic, |hop| hop.nic);
        let Ok(key) = self.open(stack, local, remote, nic, options) else {
            stack.stats.count(Counter::DropTcpBacklog);
            return;
        };
        let now = stack.now;
        if let Some(conn) = self.table.get_mut_even_closed(key) {
            conn.state = State::SynReceived;
            conn.parent = Some(parent);
            conn.irs = segment.seq();
            conn.agree(now, &segment.options());
            conn.tx.window_from = (Pos::SYN, Pos::SYN);
            conn.tx.edge = Pos::DATA + u64::from(segment.window());
            conn.tx.give_up_at = now + conn.options.connect_timeout;
            conn.due = Due::Syn;
            conn.ready = true;
            conn.receive_with_syn(now, segment.payload());
        }
        self.settle(stack, key.index);
    }

    /// Gives up the oldest half-open connection, of one listener or of any, that has had a second to be completed: a flood of
    /// SYNs must not keep others out for longer. Whether there was one.
    fn evict_half_open(&mut self, stack: &mut Stack<'a, H>, of: Option<Key>) -> bool {
        let now = stack.now;
        let half = self.table.iter().filter(|slot| {
            let conn = &slot.conn;
            conn.state == State::SynReceived
                && conn.parent.is_some()
                && of.is_none_or(|parent| conn.parent == Some(parent))
                && now.since(conn.tx.last_sent) >= crate::storage::time::Duration::from_secs(1)
        });
        let Some(index) = half.min_by_key(|slot| slot.age).map(|slot| slot.conn.index) else { return false };
        stack.stats.count(Counter::TcpEvicted);
        if let Some(slot) = self.table.at_mut(index) {
            slot.conn.end(&mut self.pages, None);
        }
        self.settle(stack, index);
        true
    }

    /// A SYN that opens a new connection in the place of one in TIME-WAIT (RFC 6191).
    #[cold]
    #[inline(never)]
    fn reopen(&mut self, stack: &mut Stack<'a, H>, index: u16, packet: &Packet<'_>, segment: &Segment<'_>) {
        let Some(listener) = self.listener_at(packet, segment) else {
            // Nobody would take it: the old connection's rest goes on.
            stack.stats.count(Counter::DropTcpUnacceptable);
            return;
        };
        if let Some(slot) = self.table.at_mut(index) {
            slot.conn.end(&mut self.pages, None);
        }
        self.settle(stack, index);
        self.open_passive(stack, listener, packet, segment);
    }

    /// Answers a segment with a reset (RFC 9293 §3.10.7.1), within a limit.
    #[cold]
    #[inline(never)]
    fn reset(&mut self, stack: &mut Stack<'a, H>, packet: &Packet<'_>, segment: &Segment<'_>, seq: Option<SeqNumber>) {
        let limit: &mut Limit = &mut self.resets;
        if !limit.take(stack.now) {
            stack.stats.count(Counter::TcpRateLimited);
            return;
        }
        let acks = segment.flags().contains(Flags::ACK);
        let (seq, ack, flags) = match seq {
            Some(seq) => (seq, SeqNumber(0), Flags::RST),
            None if acks => (segment.ack(), SeqNumber(0), Flags::RST),
            None => (SeqNumber(0), segment.seq() + segment.seq_len(), Flags::RST | Flags::ACK),
        };
        let repr = Repr {
            source_port: segment.destination_port(),
            destination_port: segment.source_port(),
            seq,
            ack,
            flags,
            window: 0,
            options: Options::default(),
        };
        let header = emit_header(&repr);
        let reset = Outgoing {
            src: packet.dst,
            dst: packet.src,
            nic: None,
            protocol: Protocol::TCP,
            ttl: 64,
            tos: 0,
            dont_fragment: true,
            header: header.l4(),
            body: &[],
            token: Token(0),
            queue: true,
        };
        if stack.send(&reset).is_ok() {
            stack.stats.count(Counter::TcpResetSent);
        }
    }

    /// An ICMP error about a segment of ours came. Whether it was about one of these connections.
    pub fn icmp_error(&mut self, stack: &mut Stack<'a, H>, error: &IcmpError) -> bool {
        if error.protocol != Protocol::TCP {
            return false;
        }
        let between = Between {
            local: Endpoint { addr: error.src, port: error.src_port },
            remote: Endpoint { addr: error.dst, port: error.dst_port },
        };
        let Some(index) = self.table.find(&self.secret, between) else { return false };
        let Some(slot) = self.table.at_mut(index) else { return false };
        let conn = &mut slot.conn;
        conn.take_acks(&mut self.pages);
        let now = stack.now;
        // RFC 5927 §4.1: only what is in flight can have been reported.
        let seq = conn.tx.una.near(conn.iss, SeqNumber(u32::from_be_bytes(error.rest)));
        if seq < conn.tx.una || seq >= conn.tx.nxt {
            stack.stats.count(Counter::DropIcmpIgnored);
            return true;
        }
        match error.kind {
            ErrorKind::FragmentationNeeded(mtu) => {
                // A router that claims a link no narrower than the packet tells nothing (RFC 1191 §5).
                let told = if mtu >= error.len { 0 } else { mtu };
                if conn.path.too_big(told, now) {
                    // What was too long is sent again at once; the path lost it, not a queue.
                    conn.resize();
                    conn.tx.board.mark_all_lost();
                    conn.ready = true;
                }
            }
            ErrorKind::Unreachable(code) => {
                let hard = code == Unreachable::PORT || code == Unreachable::PROTOCOL;
                let kind = if hard { Error::Refused } else { Error::HostUnreachable };
                // RFC 1122 §4.2.3.9, RFC 5461: only an attempt to connect is given up, and only where nothing listens.
                if hard && conn.state == State::SynSent {
                    conn.end(&mut self.pages, Some(kind));
                } else {
                    conn.soft_error = Some(kind);
                }
            }
            ErrorKind::TimeExceeded => conn.soft_error = Some(Error::HostUnreachable),
            ErrorKind::ParameterProblem => conn.soft_error = Some(Error::Protocol),
        }
        self.settle(stack, index);
        true
    }
}
