//! Positions in one direction of a connection. A sequence number names a byte modulo 2³²; a position names it once and for
//! all, so windows, ranges and counts beyond 4 GiB need no modular comparison (RFC 9293 §3.4). The SYN stands at
//! [`Pos::SYN`], the first byte of data behind it, the FIN behind the last.

use crate::storage::ranges::Offset;
use crate::storage::saturating;
use crate::wire::tcp::SeqNumber;
use core::ops::{Add, AddAssign, Sub};

/// A position. Additions wrap at 2⁶⁴, which no connection reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pos(u64);

impl Pos {
    /// Where the SYN stands. A multiple of 2³², so that a position's low half is its distance from the initial sequence
    /// number; not 0, so that segments from before the connection have positions too.
    pub const SYN: Pos = Pos(1 << 32);
    /// Where the first byte of data stands.
    pub const DATA: Pos = Pos((1 << 32) + 1);

    /// How far this lies beyond `earlier`; zero when it lies before.
    #[inline]
    pub const fn since(self, earlier: Pos) -> u64 {
        saturating::sub(self.0, earlier.0)
    }

    /// The position nearest to this one that has sequence number `seq`, where the SYN had `first`.
    #[inline]
    pub const fn near(self, first: SeqNumber, seq: SeqNumber) -> Pos {
        let step = seq.0.wrapping_sub(self.seq(first).0) as i32;
        Pos(self.0.wrapping_add_signed(step as i64))
    }

    /// The sequence number of this position, where the SYN had `first`.
    #[inline]
    pub const fn seq(self, first: SeqNumber) -> SeqNumber {
        SeqNumber(first.0.wrapping_add(self.0 as u32))
    }

    /// No position that a host can ask for lies behind this one.
    pub const LAST: Pos = Pos(i64::MAX as u64);

    /// The position `n` bytes on; `None` when it lies behind [`Self::LAST`].
    pub fn ahead(self, n: u64) -> Option<Pos> {
        self.0.checked_add(n).map(Pos).filter(|pos| *pos <= Pos::LAST)
    }

    /// The later of two.
    #[inline]
    pub const fn later(self, other: Pos) -> Pos {
        if other.0 > self.0 { other } else { self }
    }

    /// The earlier of two.
    #[inline]
    pub const fn earlier(self, other: Pos) -> Pos {
        if other.0 < self.0 { other } else { self }
    }
}

impl Add<u64> for Pos {
    type Output = Pos;
    #[inline]
    fn add(self, n: u64) -> Pos {
        Pos(self.0.wrapping_add(n))
    }
}

impl AddAssign<u64> for Pos {
    #[inline]
    fn add_assign(&mut self, n: u64) {
        *self = *self + n;
    }
}

impl Sub<u64> for Pos {
    type Output = Pos;
    #[inline]
    fn sub(self, n: u64) -> Pos {
        Pos(self.0.wrapping_sub(n))
    }
}

impl Offset for Pos {
    #[inline]
    fn beyond(self, start: Pos) -> u64 {
        self.since(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_positions_agree_across_the_wrap() {
        let first = SeqNumber(0xffff_fff0);
        let data = Pos::DATA + 0x20;
        assert_eq!(data.seq(first), SeqNumber(0x11));
        assert_eq!(Pos::DATA.near(first, SeqNumber(0x11)), data);
        assert_eq!(data.near(first, first), Pos::SYN);
        // Two laps on, the same number means another byte.
        let far = data + (2 << 32);
        assert_eq!(far.near(first, SeqNumber(0x12)), far + 1);
        assert_eq!(far.near(first, SeqNumber(0x10)), far - 1);
        // Numbers from before the SYN have a position too.
        assert_eq!(Pos::SYN.near(first, first - 5), Pos::SYN - 5);
        assert_eq!((Pos::SYN - 5).since(Pos::SYN), 0);
    }
}
