//! A segment arrives at a connection (RFC 9293 §3.10.7): which segments count, what they change, and how the states follow
//! one another. Where payload goes is decided before the checksum is known and takes effect after (design §2).

use super::conn::{Connection, Context, Due, Events, State};
use super::options::{DEFAULT_MSS, MIN_MSS, Stamps};
use super::pages::Pages;
use super::sender::{Ack, Heard};
use super::seq::Pos;
use super::spans::{Confirmed, Stored};
use crate::FAST;
use crate::stack::ingress::Packet;
use crate::stack::stats::Counter;
use crate::storage::checksum::Sum;
use crate::storage::error::Error;
use crate::storage::host::Host;
use crate::storage::time::Instant;
use crate::wire::tcp::{Flags, Options, Segment, SeqNumber};

/// What the table must do besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Done,
    /// Answer with a reset that has this sequence number.
    Reset(SeqNumber),
    /// The connection rests in TIME-WAIT and the segment opens a new one (RFC 6191).
    Reopen,
}

/// The sum of a segment of `len` bytes but for its payload.
#[inline]
fn head_sum(pseudo: Sum, len: usize, segment: &Segment<'_>) -> Sum {
    let len = u16::try_from(len).unwrap_or(u16::MAX);
    let mut sum = pseudo + Sum::of_u16(len) + Sum::of_array(segment.head());
    if !segment.option_bytes().is_empty() {
        sum += Sum::of(segment.option_bytes());
    }
    sum
}

impl<'a, H: Host> Connection<'a, H> {
    /// A segment for this connection.
    #[inline(never)]
    pub(super) fn receive(
        &mut self,
        cx: &mut Context<'_, 'a, H>,
        packet: &Packet<'_>,
        segment: &Segment<'_>,
    ) -> Verdict {
        if FAST && self.receive_expected(cx, packet.sum_ok, packet.payload.len(), segment) {
            return Verdict::Done;
        }
        // What it waited for may have come; whether it has, its turn shows.
        self.ready |= core::mem::take(&mut self.blocked);
        self.take_acks(cx.pages);
        self.attention = true;
        self.receive_any(cx, packet, segment)
    }

    /// The common case, in few steps: the next bytes in order, or an acknowledgement of new data, and nothing else. Returns
    /// whether it was; nothing has changed when not. `sum_ok`: the NIC has verified the checksum of the `total` bytes.
    #[inline]
    pub(super) fn receive_expected(
        &mut self,
        cx: &mut Context<'_, 'a, H>,
        sum_ok: bool,
        total: usize,
        segment: &Segment<'_>,
    ) -> bool {
        if self.state != State::Established || self.orphan {
            return false;
        }
        let payload = segment.payload();
        let next = self.rx.queue.next();
        if segment.flags().difference(Flags::PSH) != Flags::ACK
            || segment.seq() != next.seq(self.irs)
            || self.rx.fin.is_some()
            || payload.len() as u64 > self.rx.edge.since(next)
        {
            return false;
        }
        let now = cx.stack.now;
        let stamps = match (&self.stamps, segment.option_bytes()) {
            (None, []) => None,
            (Some(own), &[1, 1, 8, 10, a, b, c, d, e, f, g, h]) => {
                let value = u32::from_be_bytes([a, b, c, d]);
                if own.is_old(now, value) {
                    return false;
                }
                Some((value, u32::from_be_bytes([e, f, g, h])))
            }
            _ => return false,
        };
        let una = self.tx.acked();
        let ack = una.near(self.iss, segment.ack());
        if ack < una || ack > self.tx.nxt {
            return false;
        }
        let window = u64::from(segment.window()) << self.tx.shift;
        let same = ack == una && ack + window == self.tx.edge;
        if (payload.is_empty() && same) || self.tx.persisting {
            return false;
        }
        let last = next + payload.len() as u64;
        let stored = (!payload.is_empty()).then(|| self.rx.queue.store(next, payload, last));
        if !sum_ok {
            let sum = stored.as_ref().map_or(Sum::ZERO, |stored| stored.sum);
            if !(head_sum(self.pseudo, total, segment) + sum).holds() {
                cx.stack.stats.count(Counter::DropTcpChecksum);
                return true;
            }
        }
        self.blocked = false;
        self.heard(now);
        if let (Some(own), Some((value, _))) = (&mut self.stamps, stamps)
            && next <= self.rx.last_ack
        {
            own.recent = value;
            own.recent_at = now;
        }
        if let Some(stored) = stored {
            let len = payload.len() as u32;
            self.attention |= self.rx.confirm(now, stored, len, self.options.delayed_ack).1;
            if stored.end < last {
                self.no_room(cx);
            }
            self.raise(if self.rx.queue.regions() > 0 { Events::REGION | Events::READABLE } else { Events::READABLE });
        }
        if !same {
            self.tx.update_window(next, ack, window);
            // Several in one pass are one: they come at one time. The first puts the connection in line for its turn.
            let waits = self.tx.has_heard();
            if ack > una {
                self.tx.hear(ack, now, stamps.map(|(_, echo)| echo));
            }
            if !waits {
                self.ready = true;
                self.attention = true;
            }
        }
        true
    }

    /// Something came from the peer.
    #[inline]
    fn heard(&mut self, now: Instant) {
        self.last_heard = now;
        self.keep_missed = 0;
    }

    /// Takes in the acknowledgements that have come and were as expected.
    #[inline]
    pub(super) fn take_acks(&mut self, pages: &mut Pages<'a, H::Memory>) {
        if FAST && self.tx.has_heard() {
            self.take_heard(pages);
        }
    }

    #[inline(never)]
    fn take_heard(&mut self, pages: &mut Pages<'a, H::Memory>) {
        let Some(Heard { ack, at, echo, times }) = self.tx.take_heard() else { return };
        let echo = match (&self.stamps, echo) {
            (Some(own), Some(echo)) => Some((echo, own.passed(at, echo))),
            _ => None,
        };
        let ack = Ack { ack, bare: false, blocks: &[], echo, times };
        self.tx.acknowledge(pages, at, &ack, self.options.user_timeout);
        self.acknowledged();
    }

    /// Bytes came for which there is no place any more.
    #[cold]
    #[inline(never)]
    fn no_room(&mut self, cx: &mut Context<'_, 'a, H>) {
        cx.stack.stats.count(Counter::DropTcpNoRoom);
        self.rx.ack_now = true;
    }

    /// Sent bytes were acknowledged.
    #[inline]
    fn acknowledged(&mut self) {
        let mut events = Events::WRITABLE;
        if self.tx.is_done() {
            events |= Events::SENT;
        }
        if self.tx.queue.any_file_done() {
            events |= Events::FILE;
        }
        self.raise(events);
    }

    /// Any segment, in the order of RFC 9293 §3.10.7.4.
    #[inline(never)]
    fn receive_any(&mut self, cx: &mut Context<'_, 'a, H>, packet: &Packet<'_>, segment: &Segment<'_>) -> Verdict {
        let now = cx.stack.now;
        let flags = segment.flags();
        let payload = segment.payload();
        let options = segment.options();
        let next = self.rx.next();
        let seq = next.near(self.irs, segment.seq());
        let last = seq + payload.len() as u64;
        let ack = self.tx.una.near(self.iss, segment.ack());
        let old = self.is_old(now, flags, &options);
        let acceptable = self.is_acceptable(seq, last, flags);
        let ack_fits = ack <= self.tx.nxt && self.tx.una.since(ack) <= self.tx.max_window.max(65_535);
        let plain = flags.contains(Flags::ACK) && !flags.intersects(Flags::RST | Flags::SYN);
        let takes = acceptable && !old && plain && ack_fits && self.state.receives() && !payload.is_empty();
        let limit = self.rx.fin.unwrap_or(self.rx.edge).earlier(self.rx.edge);
        let stored = takes.then(|| self.rx.queue.store(seq, payload, limit));
        if !packet.sum_ok {
            let sum = stored.map_or_else(|| Sum::of(payload), |stored| stored.sum);
            if !(head_sum(self.pseudo, packet.payload.len(), segment) + sum).holds() {
                cx.stack.stats.count(Counter::DropTcpChecksum);
                return Verdict::Done;
            }
        }
        if self.state == State::SynSent {
            return self.receive_in_syn_sent(cx, segment, &options);
        }
        if old {
            // RFC 7323 §5.3, R1: acknowledged and dropped. A segment without the option is dropped without a word.
            cx.stack.stats.count(Counter::DropTcpStamp);
            if options.timestamps.is_some() && (!payload.is_empty() || self.limit.take(now)) {
                self.rx.ack_now = true;
            }
            return Verdict::Done;
        }
        if self.state == State::TimeWait
            && flags.intersection(Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN
            && self.opens_anew(seq, &options)
        {
            return Verdict::Reopen;
        }
        if !acceptable {
            return self.unacceptable(cx, seq, last, flags);
        }
        if flags.contains(Flags::RST) {
            self.receive_reset(cx, seq);
            return Verdict::Done;
        }
        if self.is_syn_again(seq, flags) {
            return Verdict::Done;
        }
        if flags.contains(Flags::SYN) {
            // RFC 5961 §4.2: the peer's own reset will tell whether it means it.
            self.challenge(cx);
            return Verdict::Done;
        }
        if !flags.contains(Flags::ACK) {
            cx.stack.stats.count(Counter::DropTcpUnacceptable);
            return Verdict::Done;
        }
        if self.state == State::SynReceived {
            if ack != Pos::DATA {
                return Verdict::Reset(segment.ack());
            }
            self.established(cx, seq, u64::from(segment.window()) << self.tx.shift);
        } else if !ack_fits {
            // RFC 5961 §5: acknowledgements of what was not sent, or was long ago.
            self.challenge(cx);
            return Verdict::Done;
        }
        self.heard(now);
        if let (Some(own), Some(stamps)) = (&mut self.stamps, options.timestamps)
            && seq <= self.rx.last_ack
        {
            own.recent = stamps.value;
            own.recent_at = now;
        }
        self.receive_ack(cx, segment, seq, ack, &options);
        if self.state == State::Closed {
            return Verdict::Done;
        }
        // The urgent pointer is of no account: urgent data is data (RFC 9293 §3.8.5, field case C16).
        if let Some(stored) = stored {
            if self.orphan {
                // RFC 9293 §3.6.1, RFC 2525 §2.17: nobody will read it, and the peer must know.
                let seq = self.tx.nxt.seq(self.iss);
                self.end(cx.pages, Some(Error::ConnectionAborted));
                return Verdict::Reset(seq);
            }
            self.receive_data(cx, seq, last, stored, payload.len() as u32);
        }
        self.receive_fin(cx, seq, last, flags.contains(Flags::FIN));
        if self.state == State::TimeWait && flags.contains(Flags::FIN) {
            self.rx.ack_now = true;
        }
        Verdict::Done
    }

    /// Whether a segment is older than what came before it, or lacks the timestamp that was agreed on.
    fn is_old(&self, now: Instant, flags: Flags, options: &Options) -> bool {
        let Some(own) = &self.stamps else { return false };
        if !self.state.is_synchronized() || flags.intersects(Flags::RST | Flags::SYN) {
            return false;
        }
        match options.timestamps {
            Some(stamps) => own.is_old(now, stamps.value),
            None => true,
        }
    }

    /// RFC 9293 §3.10.7.4, first step, but that a segment without data may stand at the window's right edge, and that at a
    /// closed window the acknowledgement of the next data counts.
    fn is_acceptable(&self, seq: Pos, last: Pos, flags: Flags) -> bool {
        let next = self.rx.next();
        let edge = self.rx.edge.later(next);
        let end = last + u64::from(flags.contains(Flags::FIN)) + u64::from(flags.contains(Flags::SYN));
        if seq == end {
            return next <= seq && seq <= edge;
        }
        if self.state == State::SynReceived && seq == Pos::DATA && end <= next {
            // Data that came with the SYN, sent again with the acknowledgement of ours.
            return true;
        }
        seq == next || (seq < edge.later(next + 1) && end > next)
    }

    /// A segment outside the window (RFC 9293 §3.10.7.4): one with data is always answered, or a lossy link would stand still
    /// (field case C04); so is a keepalive probe (C18). Others get answers within a limit, lest two ends answer each other
    /// for ever.
    #[cold]
    #[inline(never)]
    fn unacceptable(&mut self, cx: &mut Context<'_, 'a, H>, seq: Pos, last: Pos, flags: Flags) -> Verdict {
        let now = cx.stack.now;
        cx.stack.stats.count(Counter::DropTcpUnacceptable);
        if flags.contains(Flags::RST) {
            return Verdict::Done;
        }
        if flags.contains(Flags::SYN) {
            if !self.is_syn_again(seq, flags) {
                self.challenge(cx);
            }
            return Verdict::Done;
        }
        let next = self.rx.next();
        if seq < last {
            if seq < next && self.tx.sack && self.state.is_synchronized() {
                self.rx.came_twice(seq, last.earlier(next));
            }
            self.rx.ack_now = true;
        } else if seq + 1 == next || flags.contains(Flags::FIN) || self.limit.take(now) {
            self.rx.ack_now = true;
        }
        if self.state == State::TimeWait && flags.contains(Flags::FIN) {
            // Our last acknowledgement was lost (RFC 9293 §3.10.7.4, eighth step).
            self.enter_time_wait(now, cx.time_wait);
        }
        Verdict::Done
    }

    /// Whether this is the SYN that opened the connection, come again because our answer was lost: it is answered again.
    fn is_syn_again(&mut self, seq: Pos, flags: Flags) -> bool {
        let again = self.state == State::SynReceived
            && seq == Pos::SYN
            && flags.intersection(Flags::SYN | Flags::ACK) == Flags::SYN;
        if again {
            self.due = Due::Syn;
            self.ready = true;
        }
        again
    }

    /// Data that came with the peer's SYN, whose checksum holds (RFC 9293 §3.10.7.2, §3.10.7.3). The user gets it once the
    /// connection is established; what finds no place comes again.
    pub(super) fn receive_with_syn(&mut self, now: Instant, payload: &[u8]) {
        if payload.is_empty() {
            return;
        }
        let room = self.rx.room_at_start(self.options.window_shift());
        let stored = self.rx.queue.store(Pos::DATA, payload, room);
        if stored.start < stored.end {
            self.rx.confirm(now, stored, payload.len() as u32, self.options.delayed_ack);
            self.raise(if self.rx.queue.regions() > 0 { Events::REGION | Events::READABLE } else { Events::READABLE });
        }
    }

    /// Whether a SYN in TIME-WAIT can only be of a new connection (RFC 6191 §2, RFC 9293 §3.6.1).
    fn opens_anew(&self, seq: Pos, options: &Options) -> bool {
        match (&self.stamps, options.timestamps) {
            (Some(own), Some(stamps)) if stamps.value != own.recent => {
                (stamps.value.wrapping_sub(own.recent) as i32) > 0
            }
            _ => seq > self.rx.next(),
        }
    }

    /// Answers what may be an attack with an acknowledgement, within a limit (RFC 5961).
    #[cold]
    #[inline(never)]
    fn challenge(&mut self, cx: &mut Context<'_, 'a, H>) {
        if self.limit.take(cx.stack.now) {
            cx.stack.stats.count(Counter::TcpChallengeAck);
            self.rx.ack_now = true;
        } else {
            cx.stack.stats.count(Counter::DropTcpUnacceptable);
        }
    }

    /// A reset inside the window: believed where it stands exactly at the next byte (RFC 5961 §3.2).
    #[cold]
    #[inline(never)]
    fn receive_reset(&mut self, cx: &mut Context<'_, 'a, H>, seq: Pos) {
        if self.state == State::TimeWait {
            // RFC 1337: a reset must not end TIME-WAIT early.
            cx.stack.stats.count(Counter::DropTcpUnacceptable);
            return;
        }
        if seq != self.rx.next() {
            self.challenge(cx);
            return;
        }
        cx.stack.stats.count(Counter::TcpResetReceived);
        let error = match self.state {
            State::SynReceived => Some(Error::Refused),
            // Everything was exchanged; the peer only forgot us early.
            State::LastAck | State::Closing if self.tx.una >= self.tx.queue.end() => None,
            _ => Some(Error::ConnectionReset),
        };
        self.end(cx.pages, error);
    }

    /// The answer to our SYN (RFC 9293 §3.10.7.3).
    #[cold]
    #[inline(never)]
    fn receive_in_syn_sent(
        &mut self,
        cx: &mut Context<'_, 'a, H>,
        segment: &Segment<'_>,
        options: &Options,
    ) -> Verdict {
        let flags = segment.flags();
        let has_ack = flags.contains(Flags::ACK);
        if has_ack && segment.ack() != Pos::DATA.seq(self.iss) {
            cx.stack.stats.count(Counter::DropTcpUnacceptable);
            if flags.contains(Flags::RST) {
                return Verdict::Done;
            }
            if self.syns == 1 {
                // The peer remembers a connection from before this host began anew; the reset ends it, and the SYN that
                // follows need not wait for its timer (RFC 9293 §3.5.1, figure 9). Once: who forges this gets no flood.
                self.due = Due::Syn;
                self.ready = true;
            }
            return Verdict::Reset(segment.ack());
        }
        if flags.contains(Flags::RST) {
            if has_ack {
                cx.stack.stats.count(Counter::TcpResetReceived);
                self.end(cx.pages, Some(Error::Refused));
            }
            return Verdict::Done;
        }
        if !flags.contains(Flags::SYN) {
            cx.stack.stats.count(Counter::DropTcpUnacceptable);
            return Verdict::Done;
        }
        self.irs = segment.seq();
        self.agree(cx.stack.now, options);
        if has_ack {
            self.established(cx, Pos::SYN, u64::from(segment.window()));
            self.receive_with_syn(cx.stack.now, segment.payload());
            self.rx.ack_now = true;
        } else {
            // Both ends opened at once (RFC 9293 §3.5): our SYN goes again, with an acknowledgement.
            self.state = State::SynReceived;
            self.tx.window_from = (Pos::SYN, Pos::SYN);
            self.tx.edge = Pos::DATA + u64::from(segment.window());
            self.due = Due::Syn;
            self.ready = true;
        }
        Verdict::Done
    }

    /// Settles what both ends offered in their SYNs.
    pub(super) fn agree(&mut self, now: Instant, peer: &Options) {
        self.scaled = self.options.window_scaling && peer.window_scale.is_some();
        if self.scaled {
            self.tx.shift = peer.window_scale.unwrap_or(0);
            self.rx.shift = self.options.window_shift();
        } else {
            self.rx.max = self.rx.max.min(u32::from(u16::MAX));
        }
        self.rx.changed();
        self.tx.sack = self.options.sack && peer.sack_permitted;
        self.tx.mss = u32::from(peer.max_segment_size.unwrap_or(DEFAULT_MSS).max(MIN_MSS));
        self.stamps = match (self.stamps, peer.timestamps) {
            (Some(own), Some(stamps)) => Some(Stamps { recent: stamps.value, recent_at: now, ..own }),
            _ => None,
        };
    }

    /// Both SYNs are acknowledged.
    #[cold]
    #[inline(never)]
    fn established(&mut self, cx: &mut Context<'_, 'a, H>, seq: Pos, window: u64) {
        let now = cx.stack.now;
        self.state = State::Established;
        self.due = Due::Nothing;
        self.tx.una = Pos::DATA;
        self.tx.nxt = Pos::DATA;
        self.tx.board.reset(Pos::DATA);
        self.tx.edge = Pos::DATA + window;
        self.tx.max_window = window;
        self.tx.window_from = (seq, Pos::DATA);
        self.tx.congestion = super::congestion::Congestion::new(self.options.congestion, self.room(self.stamp_len()));
        if self.syns > 1 {
            self.tx.congestion.syn_lost();
            self.tx.rtt.syn_lost();
        } else {
            self.tx.rtt.sample(now, now.since(self.tx.last_sent));
        }
        self.tx.backoff = 0;
        self.tx.rto_at = Instant::NEVER;
        self.tx.give_up_at = Instant::NEVER;
        self.last_heard = now;
        if let Some(keepalive) = &self.options.keepalive {
            self.keep_at = now + keepalive.idle;
        }
        self.ready = true;
        self.raise(Events::CONNECTED | Events::WRITABLE);
    }

    /// The acknowledgement and the window of an acceptable segment.
    fn receive_ack(
        &mut self,
        cx: &mut Context<'_, 'a, H>,
        segment: &Segment<'_>,
        seq: Pos,
        ack: Pos,
        options: &Options,
    ) {
        let now = cx.stack.now;
        let window = u64::from(segment.window()) << self.tx.shift;
        let moved = ack >= self.tx.una && self.tx.update_window(seq, ack, window);
        let told = if self.tx.sack { options.sack.as_slice() } else { &[] };
        let mut blocks = [(Pos::SYN, Pos::SYN); 4];
        for (slot, block) in blocks.iter_mut().zip(told) {
            let (left, right) = (self.tx.una.near(self.iss, block.left), self.tx.una.near(self.iss, block.right));
            // Edges that make no block are left out here, so that what follows can trust them.
            if left < right && right <= self.tx.nxt {
                *slot = (left, right);
            }
        }
        let blocks = blocks.get(..told.len()).unwrap_or_default();
        // Data alone lets nothing out: its acknowledgement need not wait for this connection's turn.
        self.ready |= moved || ack > self.tx.una || !told.is_empty() || segment.payload().is_empty();
        // What answers a probe of a closed window is no duplicate.
        let bare =
            segment.payload().is_empty() && !segment.flags().contains(Flags::FIN) && !moved && !self.tx.persisting;
        let echo = match (&self.stamps, options.timestamps) {
            (Some(own), Some(stamps)) => Some((stamps.echo, own.passed(now, stamps.echo))),
            _ => None,
        };
        if ack >= self.tx.una {
            let ack = Ack { ack, bare, blocks, echo, times: 1 };
            let delivered = self.tx.acknowledge(cx.pages, now, &ack, self.options.user_timeout);
            if delivered.acked > 0 {
                self.acknowledged();
            }
        }
        if self.tx.persisting {
            // The peer is there, however long its window stays closed (RFC 9293 §3.8.6.1).
            self.tx.give_up_at = Instant::NEVER;
            if self.tx.edge > self.tx.una {
                self.tx.leave_persist(now, self.options.user_timeout);
                self.ready = true;
            }
        } else if self.tx.persist_at != Instant::NEVER && self.tx.edge > self.tx.nxt {
            self.tx.leave_persist(now, self.options.user_timeout);
            self.ready = true;
        }
        if self.tx.fin_acked() {
            match self.state {
                State::FinWait1 => {
                    self.state = State::FinWait2;
                    self.limit_fin_wait_2(now, cx.time_wait);
                }
                State::Closing => self.enter_time_wait(now, cx.time_wait),
                State::LastAck => self.end(cx.pages, None),
                _ => {}
            }
        }
    }

    /// In FIN-WAIT-2 nobody may be left to read: then the peer has so long to finish.
    pub(super) fn limit_fin_wait_2(&mut self, now: Instant, time_wait: crate::storage::time::Duration) {
        if self.orphan && self.state == State::FinWait2 {
            self.state_at = now + time_wait;
        }
    }

    /// The payload of an acceptable segment whose checksum holds.
    fn receive_data(&mut self, cx: &mut Context<'_, 'a, H>, seq: Pos, last: Pos, stored: Stored, len: u32) {
        let now = cx.stack.now;
        let next = self.rx.queue.next();
        if seq < next && self.tx.sack {
            self.rx.came_twice(seq, last.earlier(next));
        } else if let Some(held) = self.rx.queue.held_at(seq)
            && self.tx.sack
        {
            self.rx.came_twice(seq, last.earlier(held.end));
        }
        if stored.start < stored.end {
            match self.rx.confirm(now, stored, len, self.options.delayed_ack).0 {
                Confirmed::InOrder(_) => {
                    self.raise(Events::READABLE);
                    if self.rx.queue.regions() > 0 {
                        self.raise(Events::REGION);
                    }
                }
                Confirmed::Held => cx.stack.stats.count(Counter::TcpOutOfOrder),
                Confirmed::Duplicate => cx.stack.stats.count(Counter::TcpDuplicate),
                Confirmed::NoRoom => cx.stack.stats.count(Counter::DropTcpNoRoom),
            }
        } else {
            self.rx.ack_now = true;
        }
        if last > stored.end && self.rx.fin.is_none() {
            // Beyond the window, or without a place.
            cx.stack.stats.count(Counter::DropTcpNoRoom);
            self.rx.ack_now = true;
        }
    }

    /// The FIN, once everything before it has come (RFC 9293 §3.10.7.4, eighth step).
    fn receive_fin(&mut self, cx: &mut Context<'_, 'a, H>, seq: Pos, last: Pos, has_fin: bool) {
        let now = cx.stack.now;
        if has_fin && self.rx.fin.is_none() && self.state.receives() {
            // A FIN counts where all data before it lies in the window (field case C20).
            if last <= self.rx.edge.later(self.rx.queue.next()) && seq >= Pos::DATA {
                self.rx.fin = Some(last);
            }
            self.rx.ack_now = true;
        }
        if self.rx.fin_taken || self.rx.fin != Some(self.rx.queue.next()) || !self.state.receives() {
            return;
        }
        self.rx.fin_taken = true;
        self.rx.changed();
        self.rx.ack_now = true;
        self.raise(Events::FINISHED | Events::READABLE | Events::REGION);
        match self.state {
            State::Established | State::SynReceived => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now, cx.time_wait),
            _ => {}
        }
    }
}
