//! The receiving half of a connection: the window, when to acknowledge, and the SACK blocks to report. Where bytes go is
//! for `spans`; which segments are acceptable is for `state`.

use super::seq::Pos;
use super::spans::{Confirmed, ReceiveQueue, Stored};
use crate::storage::host::Memory;
use crate::storage::ranges::Interval;
use crate::storage::time::{Duration, Instant};
use crate::wire::tcp::{SackBlock, SackBlocks, SeqNumber};

/// Segments at the beginning that are acknowledged without merging; of them the first so many one by one, so that the
/// peer's window opens quickly.
const START: u8 = 20;
const QUICK: u8 = 4;
/// Most segments that one acknowledgement stands for, when they come in one pass.
const MERGED: u32 = 16;
/// Blocks that a SACK option can hold beside timestamps.
const BLOCKS: usize = 4;

/// The receiving half.
#[derive(Debug)]
pub struct Receiver<'a, M> {
    /// Where bytes go.
    pub queue: ReceiveQueue<'a, M>,
    /// The right edge announced, the highest that the window field's grain has made of `aim`.
    pub edge: Pos,
    /// The right edge meant: never moves left (RFC 9293 §3.8.6).
    aim: Pos,
    /// Where the peer's FIN stands, once it is known.
    pub fin: Option<Pos>,
    /// Whether the FIN was reached: everything before it has come.
    pub fin_taken: bool,
    /// Shift of the window field we send.
    pub shift: u8,
    /// Largest window, in bytes.
    pub max: u32,
    /// Largest segment we offered to take.
    pub mss: u32,
    /// An acknowledgement must be sent now.
    pub ack_now: bool,
    /// An acknowledgement must be sent at the end of this pass.
    pub ack_soon: bool,
    /// An acknowledgement must be sent then.
    pub ack_at: Instant,
    /// The acknowledgement number sent last.
    pub last_ack: Pos,
    /// Bytes in order since the last acknowledgement.
    unacked: u32,
    /// Largest payload seen.
    largest: u32,
    quick: u8,
    /// A position in each held range, the one that came last first (RFC 2018 §4).
    recent: [Pos; BLOCKS],
    recent_len: usize,
    /// A range that came twice, to be reported once (RFC 2883).
    twice: Option<Interval<Pos>>,
    /// The window field told last, while nothing has changed.
    field: Option<u16>,
}

impl<'a, M: Memory> Receiver<'a, M> {
    /// A fresh half over a queue that was reset.
    pub fn new(queue: ReceiveQueue<'a, M>) -> Self {
        Receiver {
            queue,
            edge: Pos::DATA,
            aim: Pos::DATA,
            fin: None,
            fin_taken: false,
            shift: 0,
            max: u32::from(u16::MAX),
            mss: 536,
            ack_now: false,
            ack_soon: false,
            ack_at: Instant::NEVER,
            last_ack: Pos::SYN,
            unacked: 0,
            largest: 1,
            quick: START,
            recent: [Pos::SYN; BLOCKS],
            recent_len: 0,
            twice: None,
            field: None,
        }
    }

    /// RCV.NXT: the next position to be received, the FIN included.
    #[inline]
    pub fn next(&self) -> Pos {
        self.queue.next() + u64::from(self.fin_taken)
    }

    /// The window in bytes.
    #[inline]
    pub fn window(&self) -> u64 {
        self.edge.since(self.next())
    }

    /// Least growth of the window worth telling of (RFC 9293 §3.8.6.2.2).
    fn worthwhile(&self) -> u64 {
        u64::from(self.mss).min((self.queue.ring_size() as u64) >> 1).max(1)
    }

    #[inline]
    fn end_of_room(&self) -> Pos {
        self.end_of_room_at(self.shift)
    }

    #[inline]
    fn end_of_room_at(&self, shift: u8) -> Pos {
        // Rounding up to the window's grain tells of a little more than there is; the ring keeps that much back.
        let slack = (1u64 << shift).wrapping_sub(1);
        self.queue.end_of_room(slack).earlier(self.queue.next() + u64::from(self.max))
    }

    /// Moves the edge as far as there is room and it is worthwhile; returns the window field.
    #[inline]
    pub fn advertise(&mut self) -> u16 {
        match self.field {
            Some(field) => field,
            None => self.advertise_anew(),
        }
    }

    fn advertise_anew(&mut self) -> u16 {
        let next = self.next();
        let room = self.end_of_room();
        if room.since(self.aim) >= self.worthwhile() {
            self.aim = room;
        }
        // Rounded up, so that the edge stays where it was, and the last bytes of a region can come though no ring follows.
        // What is rounded is what was meant, lest each rounding add to the one before it (RFC 7323 §2.4).
        let grain = (1u64 << self.shift).wrapping_sub(1);
        let field = self.aim.since(next).saturating_add(grain) >> self.shift;
        let field = field.min(u64::from(u16::MAX));
        self.edge = self.edge.later(next + (field << self.shift));
        self.field = Some(field as u16);
        field as u16
    }

    /// The queue changed, or the edge was taken back: the window must be computed again.
    #[inline]
    pub fn changed(&mut self) {
        self.field = None;
    }

    /// Nothing was sent after all: the edge is where it was.
    #[cold]
    #[inline(never)]
    pub fn take_back(&mut self, edge: Pos) {
        self.edge = edge;
        self.field = None;
    }

    /// One beyond the last position there is room for, before a window was announced.
    pub fn room_at_start(&self, shift: u8) -> Pos {
        self.end_of_room_at(shift)
    }

    /// The window field of a SYN, which is not scaled (RFC 7323 §2.2); those that follow may be, by `shift`.
    pub fn advertise_in_syn(&mut self, shift: u8) -> u16 {
        let next = self.next();
        let window = self.end_of_room_at(shift).since(next).min(u64::from(u16::MAX));
        self.aim = self.aim.later(next + window);
        self.edge = self.edge.later(self.aim);
        self.field = None;
        window as u16
    }

    /// Whether the reader has made so much room that the peer should be told at once.
    pub fn should_update(&self) -> bool {
        if self.fin.is_some() {
            return false;
        }
        let gain = self.end_of_room().since(self.edge);
        let half = (self.queue.ring_size() as u64 >> 1).max(1);
        gain >= half.min(u64::from(self.mss).saturating_mul(2)) || (self.window() == 0 && gain >= self.worthwhile())
    }

    /// Bytes came in order. Every second segment is acknowledged (RFC 9293 §3.8.6.3), others after `delay`. What comes in
    /// one pass is acknowledged together at its end, as receivers do whose hardware merges segments, but not more than
    /// [`MERGED`] segments, and not while the connection is young: some peers count acknowledgements in slow start.
    /// Returns whether a timer was set, or an acknowledgement is due at the end of the pass that was not before.
    #[inline]
    fn in_order(&mut self, now: Instant, payload: u32, delay: Duration) -> bool {
        self.unacked = self.unacked.wrapping_add(payload);
        if payload > self.largest {
            self.largest = payload.min(self.mss);
        }
        let pair = self.largest << 1;
        if self.unacked >= pair {
            if self.unacked >= pair.saturating_mul(MERGED >> 1) || self.quick > 0 {
                self.quick = self.quick.saturating_sub(2);
                self.ack_now = true;
            }
            return !core::mem::replace(&mut self.ack_soon, true);
        }
        if self.quick > START.saturating_sub(QUICK) || delay == Duration::ZERO {
            self.quick = self.quick.saturating_sub(1);
            self.ack_now = true;
            return false;
        }
        if self.ack_at == Instant::NEVER {
            self.ack_at = now + delay;
            return true;
        }
        false
    }

    /// Confirms stored bytes and decides when to acknowledge. Also tells whether a timer was set or an acknowledgement is
    /// due that was not before.
    #[inline]
    pub fn confirm(&mut self, now: Instant, stored: Stored, payload: u32, delay: Duration) -> (Confirmed, bool) {
        self.field = None;
        if self.queue.confirm_next(&stored) {
            let news = self.in_order(now, payload, delay);
            return (Confirmed::InOrder(u64::from(payload)), news);
        }
        (self.confirm_any(now, stored, payload, delay), true)
    }

    /// The same for bytes that are not simply the next ones.
    #[cold]
    #[inline(never)]
    fn confirm_any(&mut self, now: Instant, stored: Stored, payload: u32, delay: Duration) -> Confirmed {
        let out_of_order = !self.queue.held().is_empty();
        let confirmed = self.queue.confirm(stored.start, stored.end);
        match confirmed {
            Confirmed::InOrder(_) => {
                self.in_order(now, payload, delay);
                // RFC 5681 §4.2: at once when a gap, or part of one, is filled.
                self.ack_now |= out_of_order;
            }
            Confirmed::Held => {
                self.remember(stored.start);
                self.ack_now = true;
            }
            Confirmed::Duplicate | Confirmed::NoRoom => self.ack_now = true,
        }
        confirmed
    }

    /// `start .. end` came although it was there.
    pub fn came_twice(&mut self, start: Pos, end: Pos) {
        self.twice = Some(Interval::new(start, end));
        self.ack_now = true;
    }

    fn remember(&mut self, pos: Pos) {
        let range = self.queue.held_at(pos);
        let mut kept = [pos; BLOCKS];
        let mut len = 1usize;
        for old in self.recent.iter().take(self.recent_len) {
            if range.is_some_and(|range| range.contains(*old)) || self.queue.held_at(*old).is_none() {
                continue;
            }
            if let Some(slot) = kept.get_mut(len) {
                *slot = *old;
                len = len.saturating_add(1);
            }
        }
        self.recent = kept;
        self.recent_len = len;
    }

    /// The blocks of the next acknowledgement: a duplicate first, then ranges by how lately they grew.
    pub fn sack_blocks(&self, irs: SeqNumber) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let mut push =
            |range: Interval<Pos>| blocks.push(SackBlock { left: range.start.seq(irs), right: range.end.seq(irs) });
        if let Some(twice) = self.twice {
            push(twice);
            // RFC 2883 §4: the block that holds the duplicate follows, if it lies beyond the acknowledgement.
            if let Some(around) = self.queue.held_at(twice.start) {
                push(around);
            }
        }
        let around = self.twice.and_then(|twice| self.queue.held_at(twice.start));
        for pos in self.recent.iter().take(self.recent_len) {
            if let Some(range) = self.queue.held_at(*pos)
                && Some(range) != around
                && !push(range)
            {
                break;
            }
        }
        blocks
    }

    /// Whether the next acknowledgement has SACK blocks.
    #[inline]
    pub fn has_sack(&self) -> bool {
        self.twice.is_some() || !self.queue.held().is_empty()
    }

    /// An acknowledgement was sent, alone or with data.
    #[inline]
    pub fn acked(&mut self) {
        self.ack_now = false;
        self.ack_soon = false;
        self.ack_at = Instant::NEVER;
        self.unacked = 0;
        self.twice = None;
        self.last_ack = self.next();
    }
}
