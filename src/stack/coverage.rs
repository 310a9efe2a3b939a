//! Which bytes of a fragmented datagram have come, and whether a further fragment fits in (RFC 815 asks the same with
//! holes). Fragments of one size, as every sender makes them, take a bit each, so that a datagram of 64 KiB in any order
//! needs a few words; up to [`EXTRA`] others are kept one by one. Boundaries are never forgotten: that is what tells an
//! exact duplicate from an overlap.

/// Fragments off the grid that one datagram may have.
pub const EXTRA: usize = 8;
/// Most payload bytes of an IPv4 datagram (RFC 791 §3.1: total length 65,535).
pub const MAX_TOTAL: u32 = 65_515;

/// What a fragment is to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// New bytes, now counted as received.
    New,
    /// The same offset, length and flag came before: to be ignored.
    Duplicate,
    /// It overlaps others, or contradicts where the datagram ends: the datagram is to be discarded (RFC 5722 §4).
    Overlap,
    /// No fragment can be like that.
    Malformed,
    /// More odd pieces than can be kept: the datagram is to be discarded.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    start: u32,
    end: u32,
}

impl Extent {
    fn meets(&self, other: Extent) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// Fragments on the grid that are told apart.
const CELLS: u32 = 128;

/// The bytes received of one datagram.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// Length of the fragments on the grid; 0 until one was seen.
    unit: u32,
    received: u32,
    end: u32,
    /// Where the last fragment begins, once it has come; before, where none may reach beyond.
    limit: u32,
    /// Where the last fragment ends; 0 until it has come.
    total: u32,
    cells: [u32; CELLS as usize / 32],
    extra: heapless::Vec<Extent, EXTRA>,
}

impl Default for Coverage {
    fn default() -> Self {
        Self::new()
    }
}

impl Coverage {
    /// Nothing received.
    pub const fn new() -> Self {
        Coverage {
            unit: 0,
            received: 0,
            end: 0,
            limit: MAX_TOTAL,
            total: 0,
            cells: [0; CELLS as usize / 32],
            extra: heapless::Vec::new(),
        }
    }

    /// Length of the whole payload, once the last fragment has come.
    pub fn total(&self) -> Option<u32> {
        (self.total != 0).then_some(self.total)
    }

    /// Whether every byte has come.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.total != 0 && self.total == self.received
    }

    /// End of the highest fragment so far.
    pub fn end(&self) -> u32 {
        self.end
    }

    /// Adds a fragment that is not the last, if it is one as nearly all are: on the grid, and new. `false`, and nothing has
    /// changed: what it is, [`Self::add`] says.
    #[inline]
    pub fn add_usual(&mut self, start: u32, len: u32) -> bool {
        let end = start.saturating_add(len);
        let Some(cell) = start.checked_div(self.unit) else { return false };
        if len != self.unit || cell.wrapping_mul(len) != start || end > self.limit || !self.extra.is_empty() {
            return false;
        }
        let Some(word) = self.cells.get_mut((cell >> 5) as usize) else { return false };
        let bit = 1u32.wrapping_shl(cell);
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        self.received = self.received.wrapping_add(len);
        self.end = self.end.max(end);
        true
    }

    /// Adds a fragment of `len` bytes at offset `start`; `more`: the MF flag.
    pub fn add(&mut self, start: u32, len: u32, more: bool) -> Piece {
        let end = start.saturating_add(len);
        if len == 0 || end > MAX_TOTAL || start & 7 != 0 || (more && len & 7 != 0) {
            return Piece::Malformed;
        }
        let new = Extent { start, end };
        if !more {
            return self.add_last(new);
        }
        if end > self.limit {
            return Piece::Overlap;
        }
        if self.unit == 0 {
            self.unit = len;
        }
        if self.add_usual(start, len) {
            return Piece::New;
        }
        let cell = start.checked_div(self.unit).filter(|cell| cell.wrapping_mul(len) == start && *cell < CELLS);
        let on_grid = cell.filter(|_| len == self.unit);
        if on_grid.is_some_and(|cell| self.has(cell)) || self.extra.contains(&new) {
            return Piece::Duplicate;
        }
        if self.meets_any(new) {
            return Piece::Overlap;
        }
        match on_grid.and_then(|cell| Some((cell, self.cells.get_mut((cell >> 5) as usize)?))) {
            Some((cell, word)) => *word |= 1u32.wrapping_shl(cell),
            None if self.extra.push(new).is_err() => return Piece::Full,
            None => {}
        }
        self.count(new);
        Piece::New
    }

    fn add_last(&mut self, new: Extent) -> Piece {
        if self.total != 0 {
            let same = new == Extent { start: self.limit, end: self.total };
            return if same { Piece::Duplicate } else { Piece::Overlap };
        }
        if self.end > new.start {
            return Piece::Overlap;
        }
        (self.limit, self.total) = (new.start, new.end);
        self.count(new);
        Piece::New
    }

    fn count(&mut self, new: Extent) {
        self.received = self.received.saturating_add(new.end.saturating_sub(new.start));
        self.end = self.end.max(new.end);
    }

    /// Whether the fragment in place `cell` of the grid has come.
    fn has(&self, cell: u32) -> bool {
        self.cells.get((cell >> 5) as usize).is_some_and(|word| word & 1u32.wrapping_shl(cell) != 0)
    }

    fn meets_any(&self, new: Extent) -> bool {
        if self.extra.iter().any(|e| e.meets(new)) {
            return true;
        }
        let first = new.start.checked_div(self.unit).unwrap_or(0);
        let last = new.end.saturating_sub(1).checked_div(self.unit).unwrap_or(0);
        // At most as many cells as there are.
        (first..=last.min(CELLS)).any(|cell| self.has(cell))
    }

    /// Calls `each` with every received extent in turn: offset and length, in no order.
    pub fn each(&self, mut each: impl FnMut(u32, u32)) {
        for cell in (0..CELLS).filter(|cell| self.has(*cell)) {
            each(cell.saturating_mul(self.unit), self.unit);
        }
        let last = Extent { start: self.limit, end: self.total };
        for e in self.extra.iter().chain((self.total != 0).then_some(&last)) {
            each(e.start, e.end.saturating_sub(e.start));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::host::splitmix;
    use std::vec::Vec;

    #[test]
    fn all_orders_of_four() {
        let pieces = [(0, 1480, true), (1480, 1480, true), (2960, 1480, true), (4440, 100, false)];
        let mut orders = Vec::new();
        for a in 0..4 {
            for b in (0..4).filter(|b| *b != a) {
                for c in (0..4).filter(|c| *c != a && *c != b) {
                    orders.push([a, b, c, 6 - a - b - c]);
                }
            }
        }
        assert_eq!(orders.len(), 24);
        for order in orders {
            let mut coverage = Coverage::new();
            for (n, i) in order.into_iter().enumerate() {
                assert!(!coverage.is_complete());
                let (start, len, more) = pieces[i];
                assert_eq!(coverage.add(start, len, more), Piece::New, "{order:?} {n}");
                assert_eq!(coverage.add(start, len, more), Piece::Duplicate, "{order:?} {n}");
            }
            assert!(coverage.is_complete(), "{order:?}");
            assert_eq!(coverage.total(), Some(4540));
        }
    }

    #[test]
    fn overlaps_are_told_from_duplicates() {
        let sets: [&[(u32, u32, bool)]; 7] = [
            &[(0, 24, true), (8, 8, true)],
            &[(0, 16, true), (24, 16, true), (8, 24, true)],
            &[(8, 16, true), (0, 16, true)],
            &[(0, 40, true), (24, 4, false)],
            &[(24, 4, false), (0, 32, true)],
            &[(0, 8, true), (8, 8, false), (8, 16, false)],
            &[(0, 8, true), (16, 8, true), (8, 8, false)],
        ];
        for set in sets {
            let mut coverage = Coverage::new();
            let (last, before) = set.split_last().unwrap();
            for (start, len, more) in before {
                assert_eq!(coverage.add(*start, *len, *more), Piece::New, "{set:?}");
            }
            assert_eq!(coverage.add(last.0, last.1, last.2), Piece::Overlap, "{set:?}");
        }
    }

    #[test]
    fn impossible_fragments() {
        let mut c = Coverage::new();
        assert_eq!(c.add(0, 0, true), Piece::Malformed);
        assert_eq!(c.add(0, 12, true), Piece::Malformed);
        assert_eq!(c.add(4, 8, true), Piece::Malformed);
        assert_eq!(c.add(65_528, 8, false), Piece::Malformed);
        assert_eq!(c.add(65_512, 4, false), Piece::Malformed);
        assert_eq!(c.add(65_512, 3, false), Piece::New);
    }

    /// Against a map of bytes: whatever comes, the bytes counted are the bytes seen, and nothing is counted twice.
    #[test]
    fn random_sets_agree_with_a_map() {
        let mut seed = 7;
        for _ in 0..20_000 {
            let mut coverage = Coverage::new();
            let mut map = [false; 512];
            let mut seen: Vec<(u32, u32, bool)> = Vec::new();
            let mut total = None;
            for _ in 0..12 {
                let unit = if splitmix(&mut seed).is_multiple_of(4) { 8 * (splitmix(&mut seed) % 4 + 1) } else { 32 };
                let start = (splitmix(&mut seed) % 12 * if unit == 32 { 32 } else { 8 }) as u32;
                let more = !splitmix(&mut seed).is_multiple_of(6);
                let len = unit as u32;
                let (from, to) = (start as usize, (start + len) as usize);
                let touches = map[from..to].iter().any(|b| *b);
                let beyond = total.is_some_and(|t| to > t) || (!more && map[to..].iter().any(|b| *b));
                match coverage.add(start, len, more) {
                    Piece::New => {
                        assert!(!touches && !beyond && (total.is_none() || more));
                        map[from..to].fill(true);
                        seen.push((start, len, more));
                        if !more {
                            total = Some(to);
                        }
                    }
                    Piece::Duplicate => assert!(seen.contains(&(start, len, more))),
                    Piece::Overlap => assert!(touches || beyond || (total.is_some() && !more)),
                    Piece::Full => assert!(seen.len() >= EXTRA),
                    Piece::Malformed => panic!("none here"),
                }
                let whole = total.is_some_and(|t| map[..t].iter().all(|b| *b));
                assert_eq!(coverage.is_complete(), whole);
                let mut again = [false; 512];
                coverage.each(|s, l| again[s as usize..(s + l) as usize].fill(true));
                assert_eq!(map, again);
            }
        }
    }
}
