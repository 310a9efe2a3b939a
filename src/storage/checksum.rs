//! The Internet checksum (RFC 1071) over slices, and the primitive that copies and sums in one pass.

use core::ops::{Add, AddAssign};

/// A partial one's-complement sum, kept in native byte order. Sums of spans that begin at an even offset of the summed
/// data add with `+`; a span that begins at an odd offset goes through [`Sum::swapped`] first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u32);

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Sum = Sum(0);

    /// The sum of `bytes`; an odd last byte counts as followed by a zero byte.
    pub fn of(bytes: &[u8]) -> Sum {
        let mut acc = 0u64;
        for pair in bytes.chunks(2) {
            if let [a, b] = *pair {
                acc = acc.wrapping_add(u64::from(u16::from_ne_bytes([a, b])));
            } else if let [a] = *pair {
                acc = acc.wrapping_add(u64::from(u16::from_ne_bytes([a, 0])));
            }
        }
        Sum::from_wide(acc)
    }

    /// Copies `src` over `dst` and sums it in the same pass. `None`, and nothing copied, when the lengths differ.
    pub fn copy(dst: &mut [u8], src: &[u8]) -> Option<Sum> {
        if dst.len() != src.len() {
            return None;
        }
        dst.copy_from_slice(src);
        Some(Sum::of(src))
    }

    /// The sum of one 16-bit word given in host order, as it would lie in network order.
    pub const fn of_u16(word: u16) -> Sum {
        Sum(word.to_be() as u32)
    }

    /// This sum as it counts when its span begins at an odd offset.
    pub const fn swapped(self) -> Sum {
        Sum(self.fold().swap_bytes() as u32)
    }

    /// This sum placed at `offset` of the whole: swapped when `offset` is odd.
    pub const fn at(self, offset: usize) -> Sum {
        if offset & 1 == 1 { self.swapped() } else { self }
    }

    /// Folded to 16 bits, native order, not complemented.
    pub const fn fold(self) -> u16 {
        let once = (self.0 & 0xffff).wrapping_add(self.0 >> 16);
        ((once & 0xffff).wrapping_add(once >> 16)) as u16
    }

    /// Whether data that includes its checksum field holds: the folded sum is all ones.
    pub const fn holds(self) -> bool {
        self.fold() == 0xffff
    }

    /// The checksum field for data summed with that field zero, as it goes on the wire.
    pub const fn to_field(self) -> [u8; 2] {
        (!self.fold()).to_ne_bytes()
    }

    const fn from_wide(acc: u64) -> Sum {
        let half = (acc & 0xffff_ffff).wrapping_add(acc >> 32);
        let half = (half & 0xffff_ffff).wrapping_add(half >> 32);
        Sum((half & 0xffff).wrapping_add(half >> 16) as u32)
    }
}

impl Add for Sum {
    type Output = Sum;
    fn add(self, other: Sum) -> Sum {
        Sum(u32::from(self.fold()).wrapping_add(u32::from(other.fold())))
    }
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Sum) {
        *self = *self + other;
    }
}
