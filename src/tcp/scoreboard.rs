//! What is in flight: consecutive ranges from SND.UNA to SND.NXT, each with the time it was last sent and what became of
//! it. Bounded, whatever the window: ranges sent at nearly the same time are one range. What the marks mean for
//! retransmission and the congestion window is for `recovery`.
//!
//! Adding and cumulative acknowledgement are O(1); selective acknowledgements search by halving and insert at most two
//! ranges. When memory is full, the neighbours sent at the most similar times become one (keeping the later time, so
//! that nothing is thought lost too early), and if there are none, the highest selective acknowledgement is forgotten:
//! at worst those bytes are sent again.

use super::seq::Pos;
use crate::storage::time::Instant;

/// What is known of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// Sent once.
    #[default]
    Flying,
    /// Sent more than once, and out again.
    Again,
    /// Lost, to be sent again.
    Lost,
    /// Selectively acknowledged (RFC 2018).
    Sacked,
}

/// The end of a range; it begins where the one before it ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    end: Pos,
    time: Instant,
    mark: Mark,
    /// Was sent more than once, whatever the mark.
    again: bool,
}

impl Sent {
    /// An empty place.
    pub const EMPTY: Sent = Sent { end: Pos::SYN, time: Instant::ZERO, mark: Mark::Flying, again: false };
}

/// A range as the scoreboard shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First position.
    pub start: Pos,
    /// First position beyond.
    pub end: Pos,
    /// When it was last sent.
    pub time: Instant,
    /// What is known of it.
    pub mark: Mark,
    /// Whether it was sent more than once.
    pub again: bool,
}

impl Range {
    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        self.end.since(self.start)
    }
}

/// Fewest places a scoreboard works with.
pub const MIN_PLACES: usize = 8;

/// The scoreboard, in memory given at start.
#[derive(Debug)]
pub struct Scoreboard<'a> {
    places: &'a mut [Sent],
    head: usize,
    len: usize,
    start: Pos,
    sacked: u64,
    lost: u64,
    /// Bytes marked `Again`.
    again: u64,
}

impl<'a> Scoreboard<'a> {
    /// An empty scoreboard over `places`; it needs at least [`MIN_PLACES`].
    pub fn new(places: &'a mut [Sent]) -> Self {
        Scoreboard { places, head: 0, len: 0, start: Pos::SYN, sacked: 0, lost: 0, again: 0 }
    }

    /// Forgets everything; the next range begins at `start`.
    pub fn reset(&mut self, start: Pos) {
        self.head = 0;
        self.len = 0;
        self.start = start;
        (self.sacked, self.lost, self.again) = (0, 0, 0);
    }

    /// Whether nothing is in flight.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes selectively acknowledged.
    #[inline]
    pub const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Bytes lost and not yet sent again.
    #[inline]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes sent again and neither acknowledged nor lost.
    #[inline]
    pub const fn again(&self) -> u64 {
        self.again
    }

    /// One beyond the last range.
    pub fn end(&self) -> Pos {
        match self.len.checked_sub(1).and_then(|last| self.at(last)) {
            Some(sent) => sent.end,
            None => self.start,
        }
    }

    #[inline]
    fn slot(&self, index: usize) -> usize {
        let at = self.head.wrapping_add(index);
        match at.checked_sub(self.places.len()) {
            Some(wrapped) => wrapped,
            None => at,
        }
    }

    #[inline]
    fn at(&self, index: usize) -> Option<&Sent> {
        if index >= self.len {
            return None;
        }
        self.places.get(self.slot(index))
    }

    #[inline]
    fn at_mut(&mut self, index: usize) -> Option<&mut Sent> {
        if index >= self.len {
            return None;
        }
        let slot = self.slot(index);
        self.places.get_mut(slot)
    }

    fn start_of(&self, index: usize) -> Pos {
        match index.checked_sub(1).and_then(|before| self.at(before)) {
            Some(sent) => sent.end,
            None => self.start,
        }
    }

    /// The range with number `index`.
    pub fn range(&self, index: usize) -> Option<Range> {
        let sent = self.at(index)?;
        Some(Range { start: self.start_of(index), end: sent.end, time: sent.time, mark: sent.mark, again: sent.again })
    }

    /// All ranges, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Range> {
        (0..self.len).filter_map(|index| self.range(index))
    }

    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn tally(&mut self, mark: Mark, bytes: u64, add: bool) {
        let counter = match mark {
            Mark::Flying => return,
            Mark::Again => &mut self.again,
            Mark::Lost => &mut self.lost,
            Mark::Sacked => &mut self.sacked,
        };
        *counter = if add { counter.saturating_add(bytes) } else { counter.saturating_sub(bytes) };
    }

    /// Gives the range at `index` another mark.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn remark(&mut self, index: usize, mark: Mark) {
        let Some(range) = self.range(index) else { return };
        self.tally(range.mark, range.bytes(), false);
        self.tally(mark, range.bytes(), true);
        if let Some(sent) = self.at_mut(index) {
            sent.mark = mark;
        }
    }

    /// Adds `len` bytes sent at `now` behind the last; they share the last range if that was sent in the same span of
    /// 2^`shift` microseconds.
    #[inline]
    pub fn push(&mut self, len: u64, now: Instant, shift: u32) {
        let end = self.end() + len;
        let span = |t: Instant| t.as_micros().checked_shr(shift).unwrap_or(0);
        if let Some(last) = self.len.checked_sub(1).and_then(|last| self.at_mut(last))
            && last.mark == Mark::Flying
            && span(last.time) == span(now)
        {
            last.end = end;
            last.time = now;
            return;
        }
        if self.len == self.places.len() {
            self.make_room();
        }
        self.len = self.len.saturating_add(1).min(self.places.len());
        if let Some(last) = self.at_mut(self.len.saturating_sub(1)) {
            *last = Sent { end, time: now, mark: Mark::Flying, again: false };
        }
    }

    /// Everything before `to` is acknowledged; tells `each` the ranges, or parts, that go.
    #[inline]
    pub fn acknowledge(&mut self, to: Pos, mut each: impl FnMut(Range)) {
        // Each turn but the last takes a range out.
        while let Some(range) = self.range(0) {
            if to <= range.start {
                break;
            }
            let gone = Range { end: range.end.earlier(to), ..range };
            self.tally(range.mark, gone.bytes(), false);
            self.start = gone.end;
            each(gone);
            if to < range.end {
                break;
            }
            self.head = self.slot(1);
            self.len = self.len.saturating_sub(1);
        }
        if self.len == 0 {
            self.start = self.start.later(to);
        }
    }

    /// The range that `pos` lies in.
    fn find(&self, pos: Pos) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low.midpoint(high);
            if self.at(middle).is_some_and(|sent| sent.end <= pos) {
                low = middle.wrapping_add(1);
            } else {
                high = middle;
            }
        }
        low
    }

    /// `left .. right` was selectively acknowledged; tells `each` the parts that were not before.
    pub fn sack(&mut self, left: Pos, right: Pos, mut each: impl FnMut(Range)) {
        let (left, right) = (left.later(self.start), right.earlier(self.end()));
        let mut at = left;
        // At most one turn for each range; a split adds a range that the next turn passes.
        for _ in 0..self.places.len().saturating_mul(2) {
            if at >= right {
                break;
            }
            let index = self.find(at);
            let Some(range) = self.range(index) else { break };
            if range.mark == Mark::Sacked {
                at = range.end;
                continue;
            }
            let part = Range { start: at, end: range.end.earlier(right), ..range };
            if !self.set(part.start, part.end, Mark::Sacked, range.time, range.again) {
                break;
            }
            each(part);
            at = part.end;
        }
    }

    /// Gives `start .. end`, which lies in one range, a mark of its own. `false` when there is no room for it.
    fn set(&mut self, start: Pos, end: Pos, mark: Mark, time: Instant, again: bool) -> bool {
        let mut index = self.find(start);
        let Some(range) = self.range(index) else { return false };
        let splits = usize::from(range.start < start).saturating_add(usize::from(end < range.end));
        if splits > self.places.len().saturating_sub(self.len) {
            for _ in 0..splits {
                self.make_room();
            }
            // Room was made by joining ranges: the one looked for may be part of a longer one now.
            index = self.find(start);
        }
        let Some(range) = self.range(index) else { return false };
        let before = range.start < start;
        let after = end < range.end;
        let splits = usize::from(before).saturating_add(usize::from(after));
        if splits > self.places.len().saturating_sub(self.len) || end > range.end {
            return false;
        }
        let kept = Sent { end: range.end, time: range.time, mark: range.mark, again: range.again };
        if before {
            self.insert(index, Sent { end: start, ..kept });
            index = index.wrapping_add(1);
        }
        if after {
            self.insert(index, Sent { end, ..kept });
        }
        let bytes = end.since(start);
        self.tally(range.mark, bytes, false);
        self.tally(mark, bytes, true);
        if let Some(sent) = self.at_mut(index) {
            *sent = Sent { end, time, mark, again };
        }
        self.join_around(index);
        true
    }

    fn insert(&mut self, index: usize, sent: Sent) {
        self.len = self.len.saturating_add(1).min(self.places.len());
        let mut carried = sent;
        for at in index..self.len {
            if let Some(place) = self.at_mut(at) {
                core::mem::swap(place, &mut carried);
            }
        }
    }

    fn remove(&mut self, index: usize) {
        for at in index..self.len.saturating_sub(1) {
            if let Some(next) = self.at(at.wrapping_add(1)).copied()
                && let Some(place) = self.at_mut(at)
            {
                *place = next;
            }
        }
        self.len = self.len.saturating_sub(1);
    }

    /// Joins the range at `index` with neighbours of which nothing tells it apart.
    fn join_around(&mut self, index: usize) {
        for first in [index, index.saturating_sub(1)] {
            let (Some(a), Some(b)) = (self.at(first).copied(), self.at(first.wrapping_add(1)).copied()) else {
                continue;
            };
            let alike = match (a.mark, b.mark) {
                (Mark::Sacked, Mark::Sacked) | (Mark::Lost, Mark::Lost) => a.again == b.again,
                (Mark::Again, Mark::Again) => a.time == b.time,
                _ => false,
            };
            if alike {
                self.join(first);
            }
        }
    }

    /// Makes the range at `index` and the next one, of equal mark, one.
    fn join(&mut self, index: usize) {
        let Some(a) = self.at(index).copied() else { return };
        if let Some(b) = self.at_mut(index.wrapping_add(1)) {
            b.time = b.time.max(a.time);
            b.again |= a.again;
        }
        self.remove(index);
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let mut best: Option<(u64, usize)> = None;
        for index in 0..self.len.saturating_sub(1) {
            if let (Some(a), Some(b)) = (self.at(index), self.at(index.wrapping_add(1)))
                && a.mark == b.mark
            {
                let apart = a.time.max(b.time).since(a.time.min(b.time)).as_micros();
                if best.is_none_or(|(least, _)| apart < least) {
                    best = Some((apart, index));
                }
            }
        }
        if let Some((_, index)) = best {
            self.join(index);
            return;
        }
        // No two neighbours are alike, so at least every other range is of another mark: forget the highest SACK. Marks
        // without SACK: the first range counts as its neighbour does; if it was lost, its timer brings it back.
        let sacked = (0..self.len).rev().find(|i| self.at(*i).is_some_and(|s| s.mark == Mark::Sacked)).unwrap_or(0);
        let neighbour = sacked.checked_sub(1).unwrap_or(1);
        if let Some(mark) = self.at(neighbour).map(|s| s.mark) {
            self.remark(sacked, mark);
            self.join(sacked.min(neighbour));
        }
    }

    /// Marks as lost what is in flight and of which `which` says so, looking at each range once.
    pub fn mark_lost(&mut self, mut which: impl FnMut(&Range) -> bool) -> u64 {
        let before = self.lost;
        let mut index = 0;
        while let Some(range) = self.range(index) {
            if matches!(range.mark, Mark::Flying | Mark::Again) && which(&range) {
                self.remark(index, Mark::Lost);
            }
            index = index.wrapping_add(1);
        }
        self.lost.wrapping_sub(before)
    }

    /// Marks all that is in flight as lost.
    #[cold]
    #[inline(never)]
    pub fn mark_all_lost(&mut self) {
        self.mark_lost(|_| true);
    }

    /// Marks the first `len` bytes in flight as lost, whatever their time: what three duplicate acknowledgements or a
    /// partial one say without SACK (RFC 6582).
    pub fn mark_front_lost(&mut self, len: u64) -> u64 {
        let Some(front) = self.range(0) else { return 0 };
        if !matches!(front.mark, Mark::Flying | Mark::Again) {
            return 0;
        }
        let end = front.end.earlier(front.start + len);
        let before = self.lost;
        self.set(front.start, end, Mark::Lost, front.time, front.again);
        self.lost.wrapping_sub(before)
    }

    /// The lowest lost range.
    pub fn first_lost(&self) -> Option<Range> {
        if self.lost == 0 {
            return None;
        }
        self.iter().find(|range| range.mark == Mark::Lost)
    }

    /// `start .. end`, which lies in one range, was sent again at `now`.
    pub fn sent_again(&mut self, start: Pos, end: Pos, now: Instant) {
        self.set(start, end, Mark::Again, now, true);
    }

    /// The last range.
    pub fn last(&self) -> Option<Range> {
        self.len.checked_sub(1).and_then(|last| self.range(last))
    }

    /// The range at the front.
    pub fn first(&self) -> Option<Range> {
        self.range(0)
    }

    /// Forgets all selective acknowledgements: the receiver has thrown those bytes away (RFC 2018 §8).
    pub fn forget_sacks(&mut self) {
        for index in 0..self.len {
            if self.at(index).is_some_and(|sent| sent.mark == Mark::Sacked) {
                self.remark(index, Mark::Flying);
            }
        }
    }

    /// Takes losses back: what was declared lost by a timeout that was none is in flight.
    pub fn forget_losses(&mut self) {
        for index in 0..self.len {
            if let Some(sent) = self.at(index).filter(|sent| sent.mark == Mark::Lost) {
                self.remark(index, if sent.again { Mark::Again } else { Mark::Flying });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn at(us: u64) -> Instant {
        Instant::from_micros(us)
    }

    fn pos(n: u64) -> Pos {
        Pos::DATA + n
    }

    fn board(places: &mut [Sent]) -> Scoreboard<'_> {
        let mut b = Scoreboard::new(places);
        b.reset(Pos::DATA);
        b
    }

    fn shown(b: &Scoreboard<'_>) -> Vec<(u64, u64, Mark)> {
        b.iter().map(|r| (r.start.since(Pos::DATA), r.end.since(Pos::DATA), r.mark)).collect()
    }

    #[test]
    fn segments_of_one_time_share_a_range() {
        let mut places = [Sent::EMPTY; 8];
        let mut b = board(&mut places);
        for n in 0..4 {
            b.push(100, at(1000 + n), 4);
        }
        b.push(100, at(1016), 4);
        assert_eq!(shown(&b), [(0, 400, Mark::Flying), (400, 500, Mark::Flying)]);
        assert_eq!(b.range(0).unwrap().time, at(1003));
        let mut gone = Vec::new();
        b.acknowledge(pos(450), |r| gone.push(r.bytes()));
        assert_eq!(gone, [400, 50]);
        assert_eq!(shown(&b), [(450, 500, Mark::Flying)]);
        b.acknowledge(pos(500), |_| ());
        assert!(b.is_empty());
        assert_eq!(b.end(), pos(500));
    }

    #[test]
    fn sacks_split_ranges_and_count_once() {
        let mut places = [Sent::EMPTY; 8];
        let mut b = board(&mut places);
        b.push(1000, at(0), 4);
        let mut new = 0;
        b.sack(pos(200), pos(300), |r| new += r.bytes());
        b.sack(pos(250), pos(400), |r| new += r.bytes());
        b.sack(pos(200), pos(400), |r| new += r.bytes());
        assert_eq!((new, b.sacked()), (200, 200));
        assert_eq!(shown(&b), [(0, 200, Mark::Flying), (200, 400, Mark::Sacked), (400, 1000, Mark::Flying)]);
        assert_eq!(b.mark_lost(|r| r.end <= pos(200)), 200);
        let lost = b.first_lost().unwrap();
        assert_eq!((lost.start, lost.end), (pos(0), pos(200)));
        b.sent_again(pos(0), pos(120), at(9));
        assert_eq!((b.lost(), b.again()), (80, 120));
        b.sent_again(pos(120), pos(200), at(9));
        assert_eq!((b.lost(), b.again()), (0, 200));
        assert_eq!(shown(&b)[0], (0, 200, Mark::Again));
        b.acknowledge(pos(1000), |_| ());
        assert_eq!((b.sacked(), b.again(), b.lost()), (0, 0, 0));
    }

    #[test]
    fn full_memory_joins_what_is_alike_then_forgets_sacks() {
        let mut places = [Sent::EMPTY; 8];
        let mut b = board(&mut places);
        for n in 0..20 {
            b.push(100, at(n * 1000), 0);
        }
        assert_eq!((b.iter().count(), b.end()), (8, pos(2000)));
        assert!(b.iter().zip(b.iter().skip(1)).all(|(x, y)| x.end == y.start && x.time <= y.time));
        b.reset(Pos::DATA);
        b.push(10_000, at(0), 0);
        for n in 0..20 {
            b.sack(pos(n * 200 + 100), pos(n * 200 + 200), |_| ());
        }
        let total: u64 = b.iter().map(|r| r.bytes()).sum();
        let sacked: u64 = b.iter().filter(|r| r.mark == Mark::Sacked).map(|r| r.bytes()).sum();
        assert_eq!((total, sacked), (10_000, b.sacked()));
        assert!(b.sacked() > 0 && b.iter().count() <= 8);
    }

    /// Random operations against one mark a byte.
    #[test]
    fn marks_agree_with_a_model_of_single_bytes() {
        for seed in 0..400u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut random = |bound: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((state >> 33) * bound) >> 31
            };
            let mut places = [Sent::EMPTY; 64];
            let mut b = board(&mut places);
            let mut model: Vec<Mark> = Vec::new();
            let (mut una, mut now) = (0usize, 0);
            for _ in 0..60 {
                now += random(50);
                match random(6) {
                    0 | 1 => {
                        let len = random(20) + 1;
                        b.push(len, at(now), 3);
                        model.extend((0..len).map(|_| Mark::Flying));
                    }
                    2 => {
                        let left = una as u64 + random(40);
                        let right = left + random(20);
                        let stop = right.min(model.len() as u64);
                        let mut told = 0;
                        b.sack(pos(left), pos(right), |r| told += r.bytes());
                        let mut want = 0;
                        for n in left..stop {
                            want += u64::from(model[n as usize] != Mark::Sacked);
                            model[n as usize] = Mark::Sacked;
                        }
                        assert_eq!(told, want);
                    }
                    3 => {
                        let to = (una as u64 + random(15)).min(model.len() as u64);
                        b.acknowledge(pos(to), |_| ());
                        una = to as usize;
                    }
                    4 => {
                        if let Some(range) = b.first_lost() {
                            let end = range.start + (1 + random(range.bytes()));
                            b.sent_again(range.start, end, at(now));
                            let from = range.start.since(Pos::DATA) as usize;
                            model[from..end.since(Pos::DATA) as usize].fill(Mark::Again);
                        }
                    }
                    _ => {
                        let limit = random(now + 1);
                        let mut marked: Vec<(usize, usize)> = Vec::new();
                        b.mark_lost(|r| {
                            let old = r.time <= at(limit);
                            if old {
                                marked.push((r.start.since(Pos::DATA) as usize, r.end.since(Pos::DATA) as usize));
                            }
                            old
                        });
                        marked.into_iter().for_each(|(from, to)| model[from..to].fill(Mark::Lost));
                    }
                }
                let mut flat: Vec<Mark> = Vec::new();
                b.iter().for_each(|r| flat.extend((0..r.bytes()).map(|_| r.mark)));
                assert_eq!(flat, model[una..], "seed {seed}");
                let count = |m| model[una..].iter().filter(|x| **x == m).count() as u64;
                assert_eq!(
                    (b.sacked(), b.lost(), b.again()),
                    (count(Mark::Sacked), count(Mark::Lost), count(Mark::Again))
                );
            }
        }
    }
}
