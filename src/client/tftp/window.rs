//! Which blocks of a file have come: the receiving side of the windows of RFC 7440, of which lock-step (RFC 1350) is the
//! window of one. Block numbers are 64 bits here, which no file reaches; on the wire they are taken modulo 65536. When to
//! acknowledge is for `get`.

/// Blocks from the next one on that are remembered when they come early.
pub const AHEAD: u64 = 64;

/// How far block number `wire` lies beyond `block`, modulo 65536.
pub fn distance(block: u64, wire: u16) -> u16 {
    wire.wrapping_sub(block as u16)
}

/// What a block number means to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It is new: the next one, or one beyond it.
    New(u64),
    /// It had come before, or comes before everything.
    Old(u64),
    /// It cannot be: too far ahead, or beyond the last.
    Outside,
}

/// The blocks that have come.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    next: u64,
    /// Bit `i`: block `next + i` has come. Bit 0 is never set.
    held: u64,
    /// The file's last block; `u64::MAX` before it has come.
    last: u64,
}

impl Window {
    /// Nothing has come; block 1 is the first (RFC 1350 §2).
    pub const fn new() -> Self {
        Window { next: 1, held: 0, last: u64::MAX }
    }

    /// The first block that has not come.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The last block of those that came without a gap; 0 before the first.
    pub fn confirmed(&self) -> u64 {
        self.next.wrapping_sub(1)
    }

    /// Blocks missing in a row from the next one on, once one beyond them has come.
    pub fn hole(&self) -> u32 {
        if self.held == 0 { 0 } else { self.held.trailing_zeros() }
    }

    /// Blocks that came ahead of a gap.
    pub fn ahead(&self) -> u32 {
        self.held.count_ones()
    }

    /// The first block beyond all that have come.
    pub fn beyond(&self) -> u64 {
        self.next.wrapping_add(u64::from(u64::BITS.wrapping_sub(self.held.leading_zeros())))
    }

    /// The `nth` block that has not come, from the next one on.
    pub fn missing(&self, nth: usize) -> Option<u64> {
        let free = (0..AHEAD).filter(|i| self.held.unbounded_shr(*i as u32) & 1 == 0);
        let block = self.next.wrapping_add({ free }.nth(nth)?);
        (block <= self.last).then_some(block)
    }

    /// Whether everything has come.
    pub fn complete(&self) -> bool {
        self.next > self.last
    }

    /// What block number `wire` means: of all blocks with that number the one nearest to the next.
    #[inline]
    pub fn classify(&self, wire: u16) -> Class {
        let distance = wire.wrapping_sub(self.next as u16);
        if distance >= 0x8000 {
            let behind = u64::from(distance.wrapping_neg());
            return Class::Old(self.next.saturating_sub(behind));
        }
        let distance = u64::from(distance);
        let block = self.next.wrapping_add(distance);
        if distance >= AHEAD || block > self.last {
            return Class::Outside;
        }
        if self.held != 0 && self.held.unbounded_shr(distance as u32) & 1 == 1 {
            return Class::Old(block);
        }
        Class::New(block)
    }

    /// Notes that `block`, which is new, has come; `is_last` when it is shorter than a block.
    #[inline]
    pub fn take(&mut self, block: u64, is_last: bool) {
        if is_last {
            self.last = block;
        }
        if block == self.next && self.held == 0 {
            self.next = self.next.wrapping_add(1);
            return;
        }
        let distance = block.saturating_sub(self.next);
        self.held |= 1u64.unbounded_shl(u32::try_from(distance).unwrap_or(u32::MAX));
        let run = self.held.trailing_ones();
        self.held = self.held.unbounded_shr(run);
        self.next = self.next.wrapping_add(u64::from(run));
    }
}

impl Default for Window {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_in_any_order_become_one_run() {
        let mut w = Window::new();
        assert_eq!(w.classify(1), Class::New(1));
        assert_eq!(w.classify(0), Class::Old(0));
        for block in [3, 2, 5, 7] {
            assert_eq!(w.classify(block as u16), Class::New(block));
            w.take(block, block == 7);
            assert_eq!(w.classify(block as u16), Class::Old(block));
            assert_eq!(w.next(), 1);
        }
        assert_eq!((w.ahead(), w.beyond()), (4, 8));
        assert_eq!([0, 1, 2, 3].map(|n| w.missing(n)), [Some(1), Some(4), Some(6), None]);
        assert_eq!(w.classify(8), Class::Outside, "beyond the last");
        w.take(1, false);
        assert_eq!((w.next(), w.ahead()), (4, 2));
        w.take(4, false);
        assert_eq!((w.next(), w.complete()), (6, false));
        w.take(6, false);
        assert!(w.complete());
        assert_eq!(w.confirmed(), 7);
    }

    #[test]
    fn numbers_wrap_and_nothing_is_remembered_beyond_the_room() {
        let mut w = Window::new();
        for block in 1..=200_000u64 {
            assert_eq!(w.classify(block as u16), Class::New(block));
            assert_eq!(w.classify((block - 1) as u16), Class::Old(block - 1));
            let far = block + AHEAD - 1;
            assert_eq!(w.classify(far as u16), Class::New(far));
            assert_eq!(w.classify((far + 1) as u16), Class::Outside);
            w.take(block, false);
        }
        w.take(200_000 + AHEAD, false);
        assert_eq!(w.ahead(), 1);
        assert_eq!(w.next(), 200_001);
    }
}
