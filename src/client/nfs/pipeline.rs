//! Several READs in flight: which parts of a file are asked for, what is lost, and how many and how large READs the way
//! and the NIC's ring bear. No I/O: `get` sends and receives.
//!
//! - A READ that three later ones have overtaken is lost, once twice the round trip has passed; with fewer in flight, one
//!   that all others have overtaken (as RFC 5827 does for segments). When nothing is answered for the time of RFC 6298,
//!   all are.
//! - A loss shrinks the window once a round trip, to seven tenths; it grows by one for each reply at first, after a loss
//!   by one for each window, and ever more slowly to where losses come again and again.
//! - A long reply is many fragments, of which one lost loses all. The size of READs is halved where more than a third are
//!   lost; when the first one ends in pieces, or a later one twice; and when one is lost three times without a trace, as
//!   with servers whose longest replies nobody sees. After a long time without loss it is doubled.

use crate::client::rpc::rtt::Rtt;
use crate::storage::time::{Duration, Instant};

/// READs in flight at most.
pub const DEPTH: usize = 16;
/// READs in flight at first.
const FIRST_WINDOW: u16 = 2;
/// READs answered without much loss before their size is doubled, at first; twice as many each time it was halved.
const GROW_AFTER: u32 = 32;
/// Most doublings of the wait before a window is tried again at which READs were lost.
const MAX_RELUCTANCE: u8 = 4;
/// Loss is reckoned in parts of this.
const WHOLE: u32 = 1 << 12;

/// State of a READ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Unused.
    Free,
    /// To be sent, for the first time or again.
    Due,
    /// Sent.
    Waiting,
}

/// A part of the file that is being read.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    state: State,
    /// Transaction of the call last sent.
    pub xid: u32,
    /// Offset in the file of what is still to come.
    pub offset: u64,
    /// Bytes still to come.
    pub len: u32,
    /// Bytes that the call last sent asks for; 0: none was.
    pub asked: u32,
    /// How often that call was sent.
    pub tries: u8,
    sent: Instant,
    /// Number of the sending.
    order: u32,
    /// Later READs answered since.
    passed: u8,
}

impl Read {
    const FREE: Read = Read {
        state: State::Free,
        xid: 0,
        offset: 0,
        len: 0,
        asked: 0,
        tries: 0,
        sent: Instant::ZERO,
        order: 0,
        passed: 0,
    };
}

/// The READs of a transfer.
#[derive(Debug)]
pub struct Pipeline {
    reads: [Read; DEPTH],
    next: u64,
    end: u64,
    /// Nothing from here on is asked for yet.
    hold: u64,
    /// Bytes of the ring that the file passes through, which no READ reaches across the end of; 0: there is none.
    ring: u64,
    size: u32,
    smallest: u32,
    largest: u32,
    /// A READ of this size, or of more, has been answered.
    proved: bool,
    /// READs in flight at most: of those that come in fragments, and of others.
    depths: (u16, u16),
    window: u16,
    /// Where the window met a loss; `None`: it has not.
    ceiling: Option<u16>,
    /// How often in turn it was lost there again: so many times the wait before trying that window again is doubled.
    reluctance: u8,
    credit: u32,
    order: u32,
    /// Sendings before this one are no news when they are lost.
    recover: u32,
    loss: u32,
    good: u32,
    grow_after: u32,
    rtt: Rtt,
    answered: Instant,
    /// Length of the header of the usual reply.
    header: usize,
    /// Length of the last reply that was shorter than asked.
    short: u32,
    /// Nothing is lost but whole connections, of which this is the number.
    reliable: bool,
    line: u16,
}

/// Limits of a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Size of READs to begin with, in bytes.
    pub size: u32,
    /// Smallest and largest size.
    pub sizes: (u32, u32),
    /// READs in flight at most: of those larger than the smallest size, and of others.
    pub depths: (u16, u16),
    /// Timer until the first READ is answered.
    pub initial: Duration,
    /// Nothing is lost but whole connections: [`Pipeline::on_line`].
    pub reliable: bool,
    /// Bytes of the ring that the file passes through, which no READ is to reach across the end of; 0: there is none.
    pub ring: u64,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self::new()
    }
}

impl Pipeline {
    /// Nothing to read.
    pub const fn new() -> Self {
        Pipeline {
            reads: [Read::FREE; DEPTH],
            next: 0,
            end: 0,
            hold: 0,
            ring: 0,
            size: 0,
            smallest: 0,
            largest: 0,
            proved: false,
            depths: (1, 1),
            window: 1,
            ceiling: None,
            reluctance: 0,
            credit: 0,
            order: 0,
            recover: 0,
            loss: 0,
            good: 0,
            grow_after: GROW_AFTER,
            rtt: Rtt::new(Duration::ZERO),
            answered: Instant::ZERO,
            header: 0,
            short: 0,
            reliable: false,
            line: 0,
        }
    }

    /// Starts to read from `start` to `end`, offsets in the file.
    pub fn begin(&mut self, start: u64, end: u64, limits: &Limits) {
        self.reads.fill(Read::FREE);
        self.next = start;
        self.end = end;
        self.ring = limits.ring;
        self.hold = if limits.ring > 0 { start } else { u64::MAX };
        self.size = limits.size;
        (self.smallest, self.largest) = limits.sizes;
        self.proved = false;
        self.depths = limits.depths;
        self.window = FIRST_WINDOW.min(self.depth());
        self.ceiling = None;
        self.reluctance = 0;
        self.credit = 0;
        self.order = 0;
        self.recover = 0;
        self.loss = 0;
        self.good = 0;
        self.grow_after = GROW_AFTER;
        self.rtt = Rtt::new(limits.initial);
        self.answered = Instant::ZERO;
        self.header = super::get::HEADER_WITH_ATTRIBUTES;
        self.short = 0;
        self.reliable = limits.reliable;
    }

    /// Size of READs now.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// READs allowed in flight now.
    pub fn window(&self) -> u16 {
        self.window
    }

    /// Offset in the file at which the transfer ends.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Length of the header of the usual reply.
    pub fn header(&self) -> usize {
        self.header
    }

    /// How long the pieces of one reply may take.
    pub fn patience(&self) -> Duration {
        self.rtt.patience()
    }

    /// READs in flight.
    pub fn in_flight(&self) -> u16 {
        self.reads.iter().filter(|r| r.state == State::Waiting).count() as u16
    }

    /// Whether everything has come.
    pub fn is_complete(&self) -> bool {
        self.next >= self.end && self.reads.iter().all(|r| r.state == State::Free)
    }

    /// The READ in flight with this transaction, and its number.
    pub fn find(&self, xid: u32) -> Option<(usize, &Read)> {
        self.reads.iter().enumerate().find(|(_, r)| r.state == State::Waiting && r.xid == xid)
    }

    /// The `nth` oldest READ in flight.
    pub fn nth(&self, nth: usize) -> Option<&Read> {
        let older = |r: &Read| self.reads.iter().filter(|o| o.state == State::Waiting && o.order < r.order).count();
        self.reads.iter().find(|r| r.state == State::Waiting && older(r) == nth)
    }

    /// The READ to send next: what was lost, in order of offset, then what comes next in the file. `only`: nothing but
    /// what holds this offset.
    pub fn pick(&mut self, only: Option<u64>) -> Option<(usize, Read)> {
        let wanted = |r: &&(usize, &mut Read)| {
            only.is_none_or(|at| at.checked_sub(r.1.offset).is_some_and(|within| within < u64::from(r.1.len)))
        };
        let due = self.reads.iter_mut().enumerate().filter(|(_, r)| r.state == State::Due);
        let found = due.filter(|r| wanted(&r)).min_by_key(|(_, r)| r.offset);
        if let Some((index, read)) = found {
            // Less may be asked for than was before; that is another call.
            let asked = read.len.min(self.size);
            if asked != read.asked {
                read.asked = asked;
                read.tries = 0;
            }
            return Some((index, *read));
        }
        let len = self.span().filter(|_| only.is_none_or(|at| at == self.next))?;
        let (index, read) = self.reads.iter_mut().enumerate().find(|(_, r)| r.state == State::Free)?;
        *read = Read { state: State::Due, offset: self.next, len, asked: len, ..Read::FREE };
        self.next = self.next.saturating_add(u64::from(len));
        Some((index, *read))
    }

    /// Bytes of the READ that comes next in the file; `None`: none is to be sent.
    fn span(&self) -> Option<u32> {
        let stop = self.end.min(self.hold);
        let left = stop.saturating_sub(self.next);
        let to_edge = self.next.checked_rem(self.ring).map_or(u64::MAX, |at| self.ring.saturating_sub(at));
        let most = u64::from(self.size).min(to_edge);
        // Where the reader makes room bit by bit, there will be room for a whole one soon.
        if left == 0 || (left < most && stop < self.end) {
            return None;
        }
        Some(left.min(most) as u32)
    }

    /// Whether there is a READ to be sent, now or when one in flight has been answered.
    pub fn is_due(&self) -> bool {
        self.span().is_some() || self.reads.iter().any(|r| r.state == State::Due)
    }

    /// Nothing from `offset` on is to be asked for yet.
    pub fn hold(&mut self, offset: u64) {
        self.hold = offset;
    }

    /// Goes on from `offset`, as if nothing had been asked for. What was in flight is stale.
    pub fn seek(&mut self, offset: u64) {
        self.reads.fill(Read::FREE);
        self.recover = self.order;
        self.next = offset;
        self.hold = offset;
    }

    /// Offset in the file up to which everything has come.
    pub fn edge(&self) -> u64 {
        let open = self.reads.iter().filter(|r| r.state != State::Free).map(|r| r.offset).min();
        open.unwrap_or(self.next)
    }

    /// Offset in the file up to which everything has come or was asked for.
    pub fn reach(&self) -> u64 {
        self.next
    }

    /// READ number `index` was sent.
    pub fn sent(&mut self, index: usize, xid: u32, now: Instant) {
        let order = self.order;
        self.order = self.order.wrapping_add(1);
        if let Some(read) = self.reads.get_mut(index) {
            let tries = read.tries.saturating_add(1);
            *read = Read { state: State::Waiting, xid, tries, sent: now, order, passed: 0, ..*read };
        }
    }

    /// READ number `index` was answered with `count` bytes, which are where they belong; `header`: length of what came
    /// before them. Says how many bytes of it are still to come; they will be asked for.
    pub fn answered(&mut self, index: usize, count: u32, header: usize, now: Instant) -> u32 {
        let Some(read) = self.reads.get_mut(index) else { return 0 };
        let was = *read;
        read.offset = read.offset.saturating_add(u64::from(count));
        read.len = read.len.saturating_sub(count);
        let left = read.len;
        read.state = if left == 0 { State::Free } else { State::Due };
        read.asked = 0;
        read.tries = 0;
        if was.tries == 1 {
            self.rtt.sample(was.sent, now);
        }
        self.rtt.relax();
        self.answered = now;
        self.header = header;
        for other in self.reads.iter_mut().filter(|r| r.state == State::Waiting && r.order < was.order) {
            other.passed = other.passed.saturating_add(1);
        }
        self.learn_size(&was, count);
        self.grow();
        left
    }

    /// READ number `index` was answered, but what came has no place yet, or the server puts it off: it is due again.
    pub fn again(&mut self, index: usize, now: Instant) {
        if let Some(read) = self.reads.get_mut(index) {
            read.state = State::Due;
            read.asked = 0;
            read.tries = 0;
        }
        self.answered = now;
    }

    /// A server that gives less than asked, twice the same, gives no more.
    fn learn_size(&mut self, was: &Read, count: u32) {
        if count < was.asked && count < was.len && count >= self.smallest {
            if self.short == count {
                self.size = count & !3;
                self.largest = self.size;
            }
            self.short = count;
        }
        if was.asked >= self.size {
            self.proved = true;
        }
    }

    fn grow(&mut self) {
        self.loss = self.loss.saturating_sub(self.loss / 16);
        self.good = self.good.saturating_add(1);
        if self.good >= self.grow_after && self.size < self.largest && self.loss < WHOLE / 16 {
            self.size = self.size.saturating_mul(2).min(self.largest);
            self.proved = false;
            self.good = 0;
            self.window = self.window.min(self.depth());
        }
        let window = u32::from(self.window);
        let needed = match self.ceiling {
            None => 1,
            Some(ceiling) if self.window.saturating_add(1) < ceiling => window,
            Some(_) => window.unbounded_shl(u32::from(self.reluctance)),
        };
        self.credit = self.credit.saturating_add(1);
        if self.credit >= needed && self.window < self.depth() {
            self.credit = 0;
            self.window = self.window.saturating_add(1);
        }
    }

    /// A READ that was sent as number `order` was lost.
    fn lose(&mut self, order: u32, silent: bool) {
        self.loss = self.loss.saturating_add(WHOLE.saturating_sub(self.loss) / 16);
        if order >= self.recover {
            self.recover = self.order;
            let known = silent && self.window > 1 && self.ceiling.is_some_and(|ceiling| self.window >= ceiling);
            self.reluctance = match known {
                true => self.reluctance.saturating_add(1).min(MAX_RELUCTANCE),
                false => self.reluctance.saturating_sub(1),
            };
            if self.window > 1 {
                self.ceiling = Some(self.window);
            }
            self.window = (self.window.saturating_mul(7) / 10).max(1);
            self.credit = 0;
        }
        if self.loss > WHOLE / 3 {
            self.halve();
        }
    }

    /// READs in flight at most.
    fn depth(&self) -> u16 {
        let (long, short) = self.depths;
        let depth = if self.size > self.smallest { long } else { short };
        depth.clamp(1, DEPTH as u16)
    }

    fn halve(&mut self) {
        if self.size <= self.smallest {
            return;
        }
        self.size = (self.size / 2).max(self.smallest) & !3;
        self.loss = 0;
        self.good = 0;
        self.grow_after = self.grow_after.saturating_mul(2).min(1 << 14);
    }

    /// No READ is to ask for more than `size` bytes, as far as that is more than the smallest.
    pub fn limit(&mut self, size: u32) {
        self.largest = (size & !3).clamp(self.smallest, self.largest.max(self.smallest));
        self.size = self.size.min(self.largest);
    }

    /// Calls are sent on connection number `line` now: those sent on an earlier one are lost.
    pub fn on_line(&mut self, line: u16) {
        if self.line != line {
            self.line = line;
            for read in self.reads.iter_mut().filter(|r| r.state == State::Waiting) {
                read.state = State::Due;
            }
        }
    }

    /// When [`Self::expire`] has something to do.
    pub fn deadline(&self) -> Instant {
        if self.reliable {
            return Instant::NEVER;
        }
        let needed = self.needed();
        let round = self.round();
        let waiting = || self.reads.iter().filter(|r| r.state == State::Waiting);
        let oldest = waiting().map(|r| r.sent).min();
        let silent = oldest.map_or(Instant::NEVER, |sent| sent.max(self.answered) + self.rtt.timer());
        let passed = waiting().filter(|r| r.passed >= needed).map(|r| r.sent + round).min();
        silent.min(passed.unwrap_or(Instant::NEVER))
    }

    /// How many later READs must have been answered for one to count as lost.
    fn needed(&self) -> u8 {
        (self.in_flight().saturating_sub(1)).clamp(1, 3) as u8
    }

    /// How long a READ that was overtaken may still come.
    fn round(&self) -> Duration {
        self.rtt.smoothed().unwrap_or(Duration::from_secs(1)).times(2)
    }

    /// Finds out what is lost at `now`. `in_pieces`: pieces of the reply to a READ have come, so that it is not the server
    /// that is slow.
    pub fn expire(&mut self, now: Instant, in_pieces: impl Fn(&Read) -> bool) {
        if now < self.deadline() {
            return;
        }
        let (needed, round) = (self.needed(), self.round());
        for index in 0..DEPTH {
            let Some(read) = self.reads.get_mut(index) else { break };
            if read.state == State::Waiting && read.passed >= needed && now >= read.sent + round {
                read.state = State::Due;
                let order = read.order;
                self.lose(order, false);
            }
        }
        let timer = self.rtt.timer();
        let Some(oldest) = self.nth(0).copied() else { return };
        if now < oldest.sent.max(self.answered) + timer {
            return;
        }
        for read in self.reads.iter_mut().filter(|r| r.state == State::Waiting) {
            if now >= read.sent + timer || read.order == oldest.order {
                read.state = State::Due;
            }
        }
        self.lose(oldest.order, true);
        self.window = 1;
        let pieces = in_pieces(&oldest);
        if oldest.tries >= 3 || (pieces && (oldest.tries >= 2 || !self.proved)) {
            self.halve();
        }
        if !pieces || self.size <= self.smallest {
            self.rtt.back_off();
        }
    }
}
