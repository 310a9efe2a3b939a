//! A bounded, sorted set of disjoint half-open ranges: which bytes of a datagram or of a file have come, what a TCP
//! receiver holds out of order, what a peer has selectively acknowledged. Storage is the caller's: an array in place, or
//! a slice of the arena. What the offsets count, and what an overlap means, is for the layer that uses it.
//!
//! Every operation walks the stored ranges at most a few times, so its cost is bounded by the capacity.

#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

/// An unsigned integer that may count bytes: `u32`, `u64` or `usize`.
pub trait Offset: Copy + Ord + Default {
    /// How far this lies beyond `start`; zero when it lies before.
    fn beyond(self, start: Self) -> u64;
}

impl Offset for u32 {
    fn beyond(self, start: u32) -> u64 {
        u64::from(self.saturating_sub(start))
    }
}

impl Offset for u64 {
    fn beyond(self, start: u64) -> u64 {
        self.saturating_sub(start)
    }
}

impl Offset for usize {
    fn beyond(self, start: usize) -> u64 {
        self.saturating_sub(start) as u64
    }
}

/// The offsets from `start` up to, not including, `end`. Empty when `end <= start`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval<T> {
    /// First offset inside.
    pub start: T,
    /// First offset beyond.
    pub end: T,
}

impl<T: Offset> Interval<T> {
    /// The interval `start .. end`.
    pub const fn new(start: T, end: T) -> Interval<T> {
        Interval { start, end }
    }

    /// Whether nothing lies inside.
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }

    /// Number of offsets inside.
    pub fn len(&self) -> u64 {
        self.end.beyond(self.start)
    }

    /// Whether `offset` lies inside.
    pub fn contains(&self, offset: T) -> bool {
        self.start <= offset && offset < self.end
    }

    /// What lies inside both; empty when they do not meet.
    pub fn intersection(&self, other: Interval<T>) -> Interval<T> {
        Interval { start: self.start.max(other.start), end: self.end.min(other.end) }
    }
}

/// What became of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// Nothing of it was there; now it is.
    Inserted,
    /// All of it was there, or it is empty; nothing changed.
    AlreadyCovered,
    /// Part of it was there; now all of it is.
    Overlaps,
    /// It meets no stored range and there is no room for one more; nothing changed.
    Full,
}

/// How much of an interval the set holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// No offset of it.
    None,
    /// Some, not all.
    Partial,
    /// All; so it is for an empty interval.
    Whole,
}

/// The set, in storage `S`: `[Interval<T>; N]` or `&mut [Interval<T>]`. Ranges that touch are one range.
#[derive(Clone, Copy, Debug)]
pub struct Ranges<T, S> {
    used: usize,
    store: S,
    offset: core::marker::PhantomData<T>,
}

/// A set of at most `N` ranges, stored in place.
pub type RangeArray<T, const N: usize> = Ranges<T, [Interval<T>; N]>;

impl<T: Offset, const N: usize> Ranges<T, [Interval<T>; N]> {
    /// The empty set.
    pub fn new() -> Self {
        Ranges::new_in([Interval::default(); N])
    }
}

impl<T: Offset, const N: usize> Default for Ranges<T, [Interval<T>; N]> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Offset, S: AsRef<[Interval<T>]> + AsMut<[Interval<T>]>> Ranges<T, S> {
    /// The empty set, in `store`; what was there is ignored.
    pub const fn new_in(store: S) -> Self {
        Ranges { used: 0, store, offset: core::marker::PhantomData }
    }

    /// The ranges, ascending.
    pub fn as_slice(&self) -> &[Interval<T>] {
        self.store.as_ref().get(..self.used).unwrap_or(&[])
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> core::iter::Copied<core::slice::Iter<'_, Interval<T>>> {
        self.as_slice().iter().copied()
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether there is no range.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Most ranges it can hold.
    pub fn capacity(&self) -> usize {
        self.store.as_ref().len()
    }

    /// Forgets all ranges.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Number of offsets in the set.
    pub fn total(&self) -> u64 {
        self.iter().fold(0, |sum, range| sum.saturating_add(range.len()))
    }

    /// One beyond the highest offset in the set.
    pub fn end(&self) -> Option<T> {
        self.as_slice().last().map(|range| range.end)
    }

    /// Whether `offset` is in the set.
    pub fn contains(&self, offset: T) -> bool {
        self.containing(offset).is_some()
    }

    /// The range that `offset` lies in.
    pub fn containing(&self, offset: T) -> Option<Interval<T>> {
        self.iter().find(|range| range.contains(offset))
    }

    /// How much of `span` the set holds.
    pub fn coverage(&self, span: Interval<T>) -> Coverage {
        if span.is_empty() {
            return Coverage::Whole;
        }
        match self.iter().find(|range| range.end > span.start) {
            Some(range) if range.start >= span.end => Coverage::None,
            Some(range) if range.start <= span.start && range.end >= span.end => Coverage::Whole,
            Some(_) => Coverage::Partial,
            None => Coverage::None,
        }
    }

    /// Number of offsets of `span` in the set.
    pub fn count_in(&self, span: Interval<T>) -> u64 {
        self.iter().fold(0, |sum, range| sum.saturating_add(range.intersection(span).len()))
    }

    /// One beyond the last offset of the run that begins at `start`: `start` itself when it is not in the set.
    pub fn contiguous_from(&self, start: T) -> T {
        self.containing(start).map_or(start, |range| range.end)
    }

    /// The parts of `span` that are not in the set, ascending: at most one more than there are ranges.
    pub fn gaps(&self, span: Interval<T>) -> Gaps<'_, T> {
        Gaps { rest: self.as_slice().iter(), at: span.start, end: span.end }
    }

    /// The lowest part of `span` that is not in the set.
    pub fn first_gap(&self, span: Interval<T>) -> Option<Interval<T>> {
        self.gaps(span).next()
    }

    /// Adds `span`, merging it with the ranges it overlaps or touches. Full when it would be one range too many.
    pub fn insert(&mut self, span: Interval<T>) -> Insertion {
        let before = self.coverage(span);
        if before == Coverage::Whole {
            return Insertion::AlreadyCovered;
        }
        // The stored ranges are: some that end before `span`, some that meet it, the rest.
        let below = self.iter().take_while(|range| range.end < span.start).count();
        let mut merged = span;
        let mut meeting = 0usize;
        for range in self.iter().skip(below).take_while(|range| range.start <= span.end) {
            merged.start = merged.start.min(range.start);
            merged.end = merged.end.max(range.end);
            meeting = meeting.saturating_add(1);
        }
        if meeting == 0 {
            let grown = self.used.saturating_add(1);
            let Some(tail) = self.store.as_mut().get_mut(below..grown) else {
                return Insertion::Full;
            };
            let mut carried = merged;
            for slot in tail {
                core::mem::swap(slot, &mut carried);
            }
            self.used = grown;
        } else {
            if let Some(slot) = self.store.as_mut().get_mut(below) {
                *slot = merged;
            }
            self.close_up(below.saturating_add(1), meeting.saturating_sub(1));
        }
        if before == Coverage::None { Insertion::Inserted } else { Insertion::Overlaps }
    }

    /// Takes every offset below `limit` out of the set.
    pub fn remove_below(&mut self, limit: T) {
        let gone = self.iter().take_while(|range| range.end <= limit).count();
        self.close_up(0, gone);
        if let Some(first) = self.store.as_mut().first_mut()
            && self.used > 0
        {
            first.start = first.start.max(limit);
        }
    }

    /// Takes every offset at or beyond `limit` out of the set.
    pub fn remove_from(&mut self, limit: T) {
        self.used = self.iter().take_while(|range| range.start < limit).count();
        if let Some(last) = self.store.as_mut().get_mut(..self.used).and_then(|ranges| ranges.last_mut()) {
            last.end = last.end.min(limit);
        }
    }

    /// Removes the `count` ranges from position `at` on.
    fn close_up(&mut self, at: usize, count: usize) {
        let left = self.used.saturating_sub(count);
        if count > 0 {
            let ranges = self.store.as_mut();
            for to in at..left {
                if let Some(moved) = ranges.get(to.saturating_add(count)).copied()
                    && let Some(slot) = ranges.get_mut(to)
                {
                    *slot = moved;
                }
            }
        }
        self.used = left;
    }
}

/// The parts of an interval that a set does not hold; see [`Ranges::gaps`].
#[derive(Clone, Debug)]
pub struct Gaps<'r, T> {
    rest: core::slice::Iter<'r, Interval<T>>,
    at: T,
    end: T,
}

impl<T: Offset> Iterator for Gaps<'_, T> {
    type Item = Interval<T>;

    fn next(&mut self) -> Option<Interval<T>> {
        while self.at < self.end {
            let start = self.at;
            match self.rest.next() {
                Some(range) => {
                    self.at = start.max(range.end);
                    if range.start > start {
                        return Some(Interval { start, end: range.start.min(self.end) });
                    }
                }
                None => {
                    self.at = self.end;
                    return Some(Interval { start, end: self.end });
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    type Set<const N: usize> = RangeArray<u32, N>;

    fn span(start: u32, end: u32) -> Interval<u32> {
        Interval::new(start, end)
    }

    fn set_of<const N: usize>(spans: &[(u32, u32)]) -> Set<N> {
        let mut set = Set::new();
        for &(start, end) in spans {
            assert_eq!(set.insert(span(start, end)), Insertion::Inserted);
        }
        set
    }

    fn listed<const N: usize>(set: &Set<N>) -> Vec<(u32, u32)> {
        set.iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn ranges_that_touch_or_overlap_become_one() {
        let mut set: Set<4> = set_of(&[(10, 20), (30, 40), (50, 60)]);
        assert_eq!(set.insert(span(20, 30)), Insertion::Inserted);
        assert_eq!(listed(&set), [(10, 40), (50, 60)]);
        assert_eq!(set.insert(span(35, 55)), Insertion::Overlaps);
        assert_eq!(listed(&set), [(10, 60)]);
        assert_eq!(set.insert(span(12, 60)), Insertion::AlreadyCovered);
        assert_eq!(set.insert(span(0, 100)), Insertion::Overlaps);
        assert_eq!(listed(&set), [(0, 100)]);
    }

    #[test]
    fn a_full_set_takes_what_merges_and_refuses_what_does_not() {
        let mut set: Set<2> = set_of(&[(10, 20), (30, 40)]);
        assert_eq!(set.insert(span(22, 28)), Insertion::Full);
        assert_eq!(set.insert(span(50, 60)), Insertion::Full);
        assert_eq!(set.insert(span(0, 5)), Insertion::Full);
        assert_eq!(listed(&set), [(10, 20), (30, 40)]);
        assert_eq!(set.insert(span(40, 45)), Insertion::Inserted);
        assert_eq!(set.insert(span(5, 10)), Insertion::Inserted);
        assert_eq!(listed(&set), [(5, 20), (30, 45)]);
        assert_eq!(Set::<0>::new().insert(span(0, 1)), Insertion::Full);
    }

    #[test]
    fn empty_and_backward_spans_change_nothing() {
        let mut set: Set<2> = set_of(&[(10, 20)]);
        assert_eq!(set.insert(span(15, 15)), Insertion::AlreadyCovered);
        assert_eq!(set.insert(span(90, 80)), Insertion::AlreadyCovered);
        assert_eq!(listed(&set), [(10, 20)]);
        assert_eq!(set.gaps(span(30, 25)).count(), 0);
    }

    #[test]
    fn the_top_of_the_number_line_is_an_end() {
        let mut set: RangeArray<u64, 2> = RangeArray::new();
        assert_eq!(set.insert(Interval::new(u64::MAX - 1, u64::MAX)), Insertion::Inserted);
        assert_eq!(set.insert(Interval::new(0, u64::MAX)), Insertion::Overlaps);
        assert_eq!(set.total(), u64::MAX);
        assert_eq!(set.first_gap(Interval::new(0, u64::MAX)), None);
    }

    #[test]
    fn storage_may_be_a_slice() {
        let mut store = [Interval::default(); 3];
        let mut set = Ranges::new_in(&mut store[..]);
        assert_eq!(set.insert(span(4, 8)), Insertion::Inserted);
        assert_eq!(set.insert(span(0, 2)), Insertion::Inserted);
        assert_eq!(set.as_slice(), [span(0, 2), span(4, 8)]);
        assert_eq!(set.capacity(), 3);
        set.clear();
        assert!(set.is_empty());
    }

    /// The model: one flag an offset.
    struct Model([bool; 64]);

    impl Model {
        fn runs_of(&self, value: bool, within: Interval<u32>) -> Vec<Interval<u32>> {
            let mut runs: Vec<Interval<u32>> = Vec::new();
            for at in within.start..within.end {
                if self.0[at as usize] == value {
                    match runs.last_mut() {
                        Some(run) if run.end == at => run.end = at + 1,
                        _ => runs.push(span(at, at + 1)),
                    }
                }
            }
            runs
        }
    }

    fn check<const N: usize>(set: &Set<N>, model: &Model, probe: Interval<u32>) {
        assert_eq!(set.as_slice(), model.runs_of(true, span(0, 64)));
        assert_eq!(set.total(), model.0.iter().filter(|set| **set).count() as u64);
        let gaps = model.runs_of(false, probe);
        assert_eq!(set.gaps(probe).collect::<Vec<_>>(), gaps);
        assert_eq!(set.first_gap(probe), gaps.first().copied());
        let held = (probe.start..probe.end).filter(|at| model.0[*at as usize]).count() as u64;
        assert_eq!(set.count_in(probe), held);
        let coverage = match held {
            held if held == probe.len() => Coverage::Whole,
            0 => Coverage::None,
            _ => Coverage::Partial,
        };
        assert_eq!(set.coverage(probe), coverage);
        for at in 0..64 {
            assert_eq!(set.contains(at), model.0[at as usize]);
            let run = (at..64).take_while(|at| model.0[*at as usize]).count() as u32;
            assert_eq!(set.contiguous_from(at), at + run);
        }
        assert_eq!(set.end(), (0..64).rev().find(|at| model.0[*at as usize]).map(|at| at + 1));
    }

    #[test]
    fn random_histories_match_a_bitmap() {
        let mut seed = 1u64;
        let mut random = |bound: u32| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (((seed >> 32) * u64::from(bound)) >> 32) as u32
        };
        let mut seen = [0usize; 4];
        for _ in 0..400 {
            let mut set: Set<5> = Set::new();
            let mut model = Model([false; 64]);
            for _ in 0..40 {
                let start = random(60);
                let of = span(start, (start + random(9)).min(64));
                match random(12) {
                    0 => {
                        set.remove_below(start / 3);
                        model.0[..start as usize / 3].fill(false);
                    }
                    1 => {
                        set.remove_from(start + 4);
                        model.0[start as usize + 4..].fill(false);
                    }
                    _ => {
                        let held =
                            model.0[of.start as usize..of.end as usize].iter().filter(|set| **set).count() as u64;
                        let mut after = Model(model.0);
                        after.0[of.start as usize..of.end as usize].fill(true);
                        let fits = after.runs_of(true, span(0, 64)).len() <= 5;
                        let want = match held {
                            held if held == of.len() => Insertion::AlreadyCovered,
                            _ if !fits => Insertion::Full,
                            0 => Insertion::Inserted,
                            _ => Insertion::Overlaps,
                        };
                        assert_eq!(set.insert(of), want);
                        seen[want as usize] += 1;
                        if fits {
                            model = after;
                        }
                    }
                }
                let start = random(64);
                check(&set, &model, span(start, (start + random(40)).min(64)));
            }
        }
        assert!(seen.iter().all(|count| *count > 50), "each outcome must have been met: {seen:?}");
    }
}
