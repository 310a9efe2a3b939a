//! Where received bytes go: a queue of memory regions, and the ring for everything between and behind them (design §2,
//! "Streams"). Also which bytes beyond the next one have come. Sequence numbers, acknowledgements and checksums are for
//! `receive`.
//!
//! A region names a range of the stream for good; the ring takes every other byte. Bytes are stored before they are
//! known to be right, but only where nothing confirmed lies: [`ReceiveQueue::store`] sums what overlaps confirmed bytes
//! and writes none of it, and [`ReceiveQueue::confirm`] makes stored bytes count.

use super::seq::Pos;
use crate::storage::checksum::Sum;
use crate::storage::host::Memory;
use crate::storage::ranges::{Insertion, Interval, Ranges};
use crate::storage::ring::ByteRing;
use crate::storage::saturating;
use heapless::Vec;

/// Most regions in a queue.
pub const REGIONS: usize = 4;

#[derive(Clone, Debug)]
struct Region<M> {
    memory: M,
    start: Pos,
    end: Pos,
}

/// What became of a region that was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionState {
    /// Bytes received in order, from its beginning.
    pub filled: usize,
    /// Its length.
    pub len: usize,
}

impl RegionState {
    /// Whether it is full.
    pub const fn is_full(&self) -> bool {
        self.filled == self.len
    }
}

/// What became of a payload that was stored.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// Sum of all its bytes, stored or not.
    pub sum: Sum,
    /// The range of the stream that has its bytes now, once they are confirmed; empty when none has.
    pub start: Pos,
    /// Its end.
    pub end: Pos,
    /// All of it follows what had come, and lies in one place: in a region, or in the ring.
    simple: Option<Simple>,
}

/// The one place of bytes in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Simple {
    Region,
    Ring,
}

/// What a confirmation changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmed {
    /// So many bytes more are in order.
    InOrder(u64),
    /// The bytes are kept for when the ones before them come.
    Held,
    /// All of them had come before.
    Duplicate,
    /// There is no memory to keep track of them: they count as not received.
    NoRoom,
}

/// The queue of one connection.
#[derive(Debug)]
pub struct ReceiveQueue<'a, M> {
    ring: ByteRing<'a>,
    regions: Vec<Region<M>, REGIONS>,
    /// The next position to be read: the ring's first byte, or where the first region begins.
    read: Pos,
    /// The next position to be received.
    next: Pos,
    /// Where the next region begins, if the reader has not come farther.
    queue_end: Pos,
    /// Confirmed ranges beyond `next`.
    held: Ranges<Pos, &'a mut [Interval<Pos>]>,
}

/// One place for bytes: how many fit, in order.
enum Place<'q, M> {
    Region { memory: &'q M, at: usize, room: u64 },
    Ring { at: usize, room: u64 },
}

impl<M> Place<'_, M> {
    fn room(&self) -> u64 {
        match self {
            Place::Region { room, .. } | Place::Ring { room, .. } => *room,
        }
    }
}

fn to_usize(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

impl<'a, M: Memory> ReceiveQueue<'a, M> {
    /// An empty queue over a ring's bytes and places for ranges out of order.
    pub fn new(ring: &'a mut [u8], held: &'a mut [Interval<Pos>]) -> Self {
        ReceiveQueue {
            ring: ByteRing::new(ring),
            regions: Vec::new(),
            read: Pos::DATA,
            next: Pos::DATA,
            queue_end: Pos::DATA,
            held: Ranges::new_in(held),
        }
    }

    /// Forgets everything, for another connection.
    pub fn reset(&mut self) {
        self.ring.clear();
        self.regions.clear();
        self.read = Pos::DATA;
        self.next = Pos::DATA;
        self.queue_end = Pos::DATA;
        self.held.clear();
    }

    /// The next position to be received.
    #[inline]
    pub fn next(&self) -> Pos {
        self.next
    }

    /// Size of the ring in bytes.
    pub fn ring_size(&self) -> usize {
        self.ring.capacity()
    }

    /// The ranges beyond the next position that have come.
    #[inline]
    pub fn held(&self) -> &[Interval<Pos>] {
        self.held.as_slice()
    }

    /// The range that has come and that `pos` lies in.
    pub fn held_at(&self, pos: Pos) -> Option<Interval<Pos>> {
        self.held.containing(pos)
    }

    /// Bytes of `from .. to` that go through the ring: all that no region names.
    #[inline]
    fn in_ring(&self, from: Pos, to: Pos) -> usize {
        let all = to.since(from);
        to_usize(
            self.regions
                .iter()
                .fold(all, |rest, r| saturating::sub(rest, r.end.earlier(to).since(r.start.later(from).earlier(to)))),
        )
    }

    /// The place of `pos`, which is not before the next position.
    #[inline]
    fn place(&self, pos: Pos) -> Place<'_, M> {
        let mut stop = None;
        for region in &self.regions {
            if pos < region.start {
                stop = Some(region.start);
                break;
            }
            if pos < region.end {
                let at = to_usize(pos.since(region.start));
                return Place::Region { memory: &region.memory, at, room: region.end.since(pos) };
            }
        }
        let ahead = self.in_ring(self.next, pos);
        let free = self.ring.free().saturating_sub(ahead) as u64;
        Place::Ring { at: ahead, room: stop.map_or(free, |stop| free.min(stop.since(pos))) }
    }

    /// One beyond the last position that has a place. The ring's part is `slack` bytes short of the whole.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub fn end_of_room(&self, slack: u64) -> Pos {
        let mut free = self.ring.free() as u64;
        let mut pos = self.next;
        for region in &self.regions {
            let gap = region.start.since(pos);
            if gap > free {
                return pos + free.saturating_sub(slack);
            }
            free = free.saturating_sub(gap);
            pos = pos.later(region.end);
        }
        pos + free.saturating_sub(slack)
    }

    /// Writes bytes that have one place in common, and sums them; `None` where they do not.
    #[inline]
    fn write(&mut self, pos: Pos, bytes: &[u8]) -> Option<(Sum, Simple)> {
        match self.place(pos) {
            Place::Region { memory, at, room } if room >= bytes.len() as u64 => {
                memory.copy_sum(at, bytes).ok().map(|sum| (sum, Simple::Region))
            }
            Place::Ring { at, room } if room >= bytes.len() as u64 => {
                self.ring.write_ahead(at, bytes).map(|sum| (sum, Simple::Ring))
            }
            _ => None,
        }
    }

    /// Stores a payload whose first byte stands at `pos`: what lies before `limit`, was not confirmed and has a place.
    /// All of it is summed.
    #[inline]
    pub fn store(&mut self, pos: Pos, bytes: &[u8], limit: Pos) -> Stored {
        let last = pos + bytes.len() as u64;
        if pos == self.next
            && last <= limit
            && self.held.is_empty()
            && let Some((sum, place)) = self.write(pos, bytes)
        {
            return Stored { sum, start: pos, end: last, simple: Some(place) };
        }
        self.store_pieces(pos, bytes, limit)
    }

    #[cold]
    #[inline(never)]
    fn store_pieces(&mut self, first: Pos, bytes: &[u8], limit: Pos) -> Stored {
        let last = first + bytes.len() as u64;
        let start = first.later(self.next).earlier(last);
        let mut end = last.earlier(limit).later(start);
        let mut sum = Sum::ZERO;
        let mut pos = first;
        let mut rest = bytes;
        // Every second turn takes at least one byte; every turn but one begins at an edge of a range or a region.
        while !rest.is_empty() {
            let (len, keep) = if pos < start {
                (start.since(pos), false)
            } else if pos >= end {
                (rest.len() as u64, false)
            } else if let Some(held) = self.held.containing(pos) {
                (held.end.earlier(end).since(pos), false)
            } else {
                let gap = self.held.first_gap(Interval::new(pos, end));
                let room = gap.map_or(0, |gap| gap.end.since(pos)).min(self.place(pos).room());
                if room == 0 {
                    end = pos;
                    continue;
                }
                (room, true)
            };
            let Some((piece, tail)) = rest.split_at_checked(to_usize(len)) else { break };
            let part = match keep {
                true => self.write(pos, piece).map(|(sum, _)| sum),
                false => None,
            };
            if keep && part.is_none() {
                end = pos;
            }
            sum += part.unwrap_or_else(|| Sum::of(piece)).at(to_usize(pos.since(first)));
            pos += len;
            rest = tail;
        }
        Stored { sum, start, end, simple: None }
    }

    /// Confirms what was stored, where that is the next bytes and they lie in one place; whether it was.
    #[inline]
    pub fn confirm_next(&mut self, stored: &Stored) -> bool {
        match stored.simple {
            Some(Simple::Region) => {}
            Some(Simple::Ring) => {
                self.ring.advance(to_usize(stored.end.since(stored.start)));
            }
            None => return false,
        }
        self.next = stored.end;
        true
    }

    /// Confirms what [`Self::store`] has stored: its checksum holds.
    #[cold]
    #[inline(never)]
    pub fn confirm(&mut self, start: Pos, end: Pos) -> Confirmed {
        if end <= self.next {
            return Confirmed::Duplicate;
        }
        if start > self.next {
            return match self.held.insert(Interval::new(start, end)) {
                Insertion::Inserted | Insertion::Overlaps => Confirmed::Held,
                Insertion::AlreadyCovered => Confirmed::Duplicate,
                Insertion::Full => Confirmed::NoRoom,
            };
        }
        let mut to = end;
        if !self.held.is_empty() {
            to = self.held.contiguous_from(end);
            self.held.remove_below(to);
        }
        let gained = to.since(self.next);
        self.ring.advance(self.in_ring(self.next, to));
        self.next = to;
        Confirmed::InOrder(gained)
    }

    /// Bytes that can be read from the ring now. A region that is not finished with stands before what comes behind it.
    pub fn readable(&self) -> usize {
        match self.regions.first() {
            Some(region) => self.ring.len().min(to_usize(region.start.since(self.read))),
            None => self.ring.len(),
        }
    }

    /// Readable bytes where they lie, as two spans.
    pub fn peek(&self) -> (&[u8], &[u8]) {
        self.ring.peek(0, self.readable()).unwrap_or((&[], &[]))
    }

    /// Drops the first `count` readable bytes; how many that were.
    pub fn consume(&mut self, count: usize) -> usize {
        let count = self.ring.consume(count.min(self.readable()));
        self.read += count as u64;
        count
    }

    /// Moves readable bytes to `out`; how many.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let count = out.len().min(self.readable());
        match out.get_mut(..count).and_then(|out| self.ring.copy_out(0, out)) {
            Some(_) => self.consume(count),
            None => 0,
        }
    }

    /// Has the next `count` bytes behind the queue go through the ring, before any region queued later.
    pub fn queue_ring(&mut self, count: u64) {
        let end = self.queue_end.later(self.read);
        self.queue_end = end.later(end.ahead(count).unwrap_or(Pos::LAST));
    }

    /// Queues a region for the bytes that follow the queue. What of them has come already moves there from the ring.
    /// `false`, and nothing changed, when it is empty or the queue is full.
    pub fn queue_region(&mut self, memory: M) -> bool {
        let len = memory.len() as u64;
        let start = self.queue_end.later(self.read);
        let Some(end) = start.ahead(len) else { return false };
        if len == 0 || self.regions.is_full() {
            return false;
        }
        let before = self.in_ring(self.read, start);
        let in_order = self.next.since(start);
        let taken = in_order.min(len);
        // Bytes are confirmed, and the region is as long as it says: the writes succeed.
        if let Some((first, second)) = self.ring.peek(before, to_usize(taken)) {
            let _ = memory.write(0, first).and_then(|()| memory.write(first.len(), second));
        }
        for index in 0..self.held.len() {
            let Some(range) = self.held.as_slice().get(index).copied() else { break };
            let part = range.intersection(Interval::new(start, end));
            if part.is_empty() {
                continue;
            }
            let ahead = self.in_ring(self.next, part.start);
            if let Some((first, second)) = self.ring.peek_ahead(ahead, to_usize(part.len())) {
                let at = to_usize(part.start.since(start));
                let _ = memory.write(at, first).and_then(|()| memory.write(at.saturating_add(first.len()), second));
            }
        }
        if taken < in_order {
            self.ring.remove(before, to_usize(taken));
        } else {
            self.ring.truncate(before);
            // What lies beyond the region has another place in the ring now: it must come again.
            self.held.remove_from(end.later(self.next));
        }
        self.queue_end = end;
        self.regions.push(Region { memory, start, end }).is_ok()
    }

    /// Number of regions in the queue.
    pub fn regions(&self) -> usize {
        self.regions.len()
    }

    /// The region that is to be finished with next.
    pub fn front(&self) -> Option<RegionState> {
        let region = self.regions.first()?;
        let len = to_usize(region.end.since(region.start));
        Some(RegionState { filled: to_usize(self.next.since(region.start)).min(len), len })
    }

    /// Takes the first region out of the queue, full or not; how far it was filled. Nothing is written to it again. The
    /// rest of a region that was not full goes to the ring, and bytes that had come out of order must come again
    /// (RFC 2018 §8).
    pub fn finish_front(&mut self) -> Option<RegionState> {
        let state = self.front()?;
        let region = self.regions.first()?;
        let (start, end) = (region.start, region.end);
        if !state.is_full() {
            self.held.remove_from(self.next);
        }
        if self.read >= start {
            self.read = self.read.later(self.next.earlier(end));
        } else if !state.is_full() && state.filled > 0 {
            // Bytes before it were not read: they stay, and the region's own are skipped over when they have been.
            self.close_gap(start, start + state.filled as u64);
        } else if state.is_full() {
            self.close_gap(start, end);
        }
        // At most four regions: taking out the first moves three.
        self.regions.remove(0);
        if self.regions.is_empty() && !state.is_full() {
            self.queue_end = self.read;
        }
        Some(state)
    }

    /// Takes `start .. end` out of the count between `read` and the ring's later bytes: positions before it move up.
    fn close_gap(&mut self, start: Pos, end: Pos) {
        self.read += end.since(start);
    }

    /// Whether bytes were received and not yet taken, by a region or from the ring.
    pub fn has_unread(&self) -> bool {
        !self.ring.is_empty()
    }
}

#[cfg(test)]
mod tests;
