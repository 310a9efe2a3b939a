//! The Internet checksum (RFC 1071) over slices, and the primitive that copies and sums in one pass. Which bytes a
//! protocol sums, and its pseudo header, is for `wire`; raw pointers and their alignment are for `ffi`.
//!
//! Sums stay in native byte order: a one's-complement sum of swapped words is the swapped sum (RFC 1071 §2 (B)), so
//! words are loaded as they lie and constants are swapped once. One primitive has two bodies: machines with 64-bit
//! registers add 64-bit words without widening them, in a form that compilers turn into vectors; 32-bit machines run a
//! carry chain. On targets where unaligned loads are not allowed, words of byte slices are put together byte by byte;
//! there [`Sum::of_words`], [`Sum::copy_words`] and [`Sum::copy_shifted`] do the bulk over aligned words.
//!
//! Two things here look odd and are deliberate. A copy loop that the compiler can recognise becomes a call to `memcpy`
//! and a second pass for the sum, and `memcpy` may be a byte loop in a bootloader; so the block is loaded, stored and
//! then summed from the same value. And a loop over the last few bytes would become such a call too; so the tails are
//! straight lines.

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

use core::ops::{Add, AddAssign};

/// A partial one's-complement sum, kept in native byte order. Sums of spans that begin at an even offset of the summed
/// data add with `+`; a span that begins at an odd offset goes through [`Sum::swapped`] first. Sums are equal when they
/// fold to the same 16 bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u32);

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Sum = Sum(0);

    /// The sum of `bytes`; an odd last byte counts as followed by a zero byte. Exact below 32 GiB.
    #[inline]
    pub fn of(bytes: &[u8]) -> Sum {
        // Headers are short: no call for them.
        if bytes.len() < body::BLOCK { Sum::from_wide(tail_sum(bytes)) } else { Sum::of_long(bytes) }
    }

    fn of_long(bytes: &[u8]) -> Sum {
        let (blocks, rest) = bytes.as_chunks::<{ body::BLOCK }>();
        Sum::from_wide(body::sum_blocks(blocks).wrapping_add(tail_sum(rest)))
    }

    /// The sum of an array whose length the compiler knows, such as a fixed header: meant to be inlined and unrolled.
    #[inline]
    pub fn of_array<const N: usize>(bytes: &[u8; N]) -> Sum {
        let mut acc = 0u64;
        let (words, rest) = bytes.as_chunks::<4>();
        for word in words {
            acc = acc.wrapping_add(u64::from(u32::from_ne_bytes(*word)));
        }
        Sum::from_wide(acc.wrapping_add(tail_sum(rest)))
    }

    /// The sum of an IPv4 header without options.
    #[inline]
    pub fn of_header(bytes: &[u8; 20]) -> Sum {
        Sum::of_array(bytes)
    }

    /// Copies `src` over `dst` and sums it in the same pass. `None`, and nothing copied, when the lengths differ.
    #[inline]
    pub fn copy(dst: &mut [u8], src: &[u8]) -> Option<Sum> {
        if dst.len() != src.len() {
            return None;
        }
        // Headers are short: no call for them.
        if src.len() < body::BLOCK { Some(Sum::from_wide(tail_copy(dst, src))) } else { Sum::copy_long(dst, src) }
    }

    fn copy_long(dst: &mut [u8], src: &[u8]) -> Option<Sum> {
        // A store over the end of a cache line costs two, so blocks are stored at multiples of their length.
        let skip = if src.len() >= ALIGN_FROM { dst.as_ptr().align_offset(body::BLOCK) } else { 0 };
        let (to_front, to) = dst.split_at_mut_checked(skip)?;
        let (front, from) = src.split_at_checked(skip)?;
        let (to, to_rest) = to.as_chunks_mut::<{ body::BLOCK }>();
        let (from, from_rest) = from.as_chunks::<{ body::BLOCK }>();
        let sum = Sum::from_wide(body::copy_blocks(to, from).wrapping_add(tail_copy(to_rest, from_rest)));
        if skip == 0 {
            return Some(sum);
        }
        Some(Sum::from_wide(tail_copy(to_front, front)) + sum.at(skip))
    }

    /// Copies `src` over `dst` without summing it, never by a call to `memcpy`, which may be a byte loop. `None`, and
    /// nothing copied, when the lengths differ.
    pub fn copy_only(dst: &mut [u8], src: &[u8]) -> Option<()> {
        if dst.len() != src.len() {
            return None;
        }
        let (to, to_rest) = dst.as_chunks_mut::<64>();
        let (from, from_rest) = src.as_chunks::<64>();
        for (d, s) in to.iter_mut().zip(from) {
            // Four stores with gaps between them from one turn to the next: not a pattern that becomes a call.
            for (d, s) in d.as_chunks_mut::<16>().0.iter_mut().zip(s.as_chunks::<16>().0) {
                let block = *s;
                *d = block;
            }
        }
        let (to, to_rest) = to_rest.as_chunks_mut::<16>();
        let (from, from_rest) = from_rest.as_chunks::<16>();
        // At most three blocks are left; as a loop they would become such a call.
        let ([to_a, to_b @ ..], [from_a, from_b @ ..]) = (to, from) else {
            tail_copy(to_rest, from_rest);
            return Some(());
        };
        *to_a = *from_a;
        if let ([to_b, to_c @ ..], [from_b, from_c @ ..]) = (to_b, from_b) {
            *to_b = *from_b;
            if let ([to_c, ..], [from_c, ..]) = (to_c, from_c) {
                *to_c = *from_c;
            }
        }
        tail_copy(to_rest, from_rest);
        Some(())
    }

    /// The sum of aligned words, which begin at an even offset of the summed data.
    pub fn of_words(words: &[u32]) -> Sum {
        let (blocks, rest) = words.as_chunks::<4>();
        let mut acc = 0u32;
        for &[a, b, c, d] in blocks {
            acc = add_block(acc, a, b, c, d);
        }
        for &word in rest {
            acc = add_carry(acc, word);
        }
        Sum(acc)
    }

    /// Copies bytes that lie across aligned words into aligned words, and sums them in the same pass: `dst` gets what begins
    /// `skip` bytes, 1 to 3, into `src`, which has one word more. `None`, and nothing copied, when it has not.
    pub fn copy_shifted(dst: &mut [u32], src: &[u32], skip: u32) -> Option<Sum> {
        let (first, src) = src.split_first()?;
        if dst.len() != src.len() {
            return None;
        }
        let bits = skip.wrapping_mul(8);
        let join = |have: u32, next: u32| {
            let rest = 32u32.wrapping_sub(bits);
            if cfg!(target_endian = "little") {
                have.wrapping_shr(bits) | next.wrapping_shl(rest)
            } else {
                have.wrapping_shl(bits) | next.wrapping_shr(rest)
            }
        };
        let (to, to_rest) = dst.as_chunks_mut::<4>();
        let (from, from_rest) = src.as_chunks::<4>();
        let mut have = *first;
        let mut acc = 0u32;
        for (d, &[w, x, y, z]) in to.iter_mut().zip(from) {
            let block = [join(have, w), join(w, x), join(x, y), join(y, z)];
            *d = block;
            have = z;
            let [w, x, y, z] = block;
            acc = add_block(acc, w, x, y, z);
        }
        for (d, s) in to_rest.iter_mut().zip(from_rest) {
            let word = join(have, *s);
            *d = word;
            have = *s;
            acc = add_carry(acc, word);
        }
        Some(Sum(acc))
    }

    /// Copies aligned words and sums them in the same pass. `None`, and nothing copied, when the lengths differ.
    pub fn copy_words(dst: &mut [u32], src: &[u32]) -> Option<Sum> {
        if dst.len() != src.len() {
            return None;
        }
        let (to, to_rest) = dst.as_chunks_mut::<4>();
        let (from, from_rest) = src.as_chunks::<4>();
        let mut acc = 0u32;
        for (d, s) in to.iter_mut().zip(from) {
            let block = *s;
            *d = block;
            let [w, x, y, z] = block;
            acc = add_block(acc, w, x, y, z);
        }
        // At most three words are left; as a loop they would become a call to memcpy.
        let (to_two, to) = to_rest.as_chunks_mut::<2>();
        let (two, from) = from_rest.as_chunks::<2>();
        if let (Some(d), Some(s)) = (to_two.first_mut(), two.first()) {
            let [x, y] = *s;
            *d = [x, y];
            acc = add_carry(add_carry(acc, x), y);
        }
        if let (Some(d), Some(s)) = (to.first_mut(), from.first()) {
            *d = *s;
            acc = add_carry(acc, *s);
        }
        Some(Sum(acc))
    }

    /// The sum of one 16-bit word given in host order, as it would lie in network order.
    #[inline]
    pub const fn of_u16(word: u16) -> Sum {
        Sum(word.to_be() as u32)
    }

    /// The sum of one 32-bit word given in host order, as it would lie in network order at an even offset.
    #[inline]
    pub const fn of_u32(word: u32) -> Sum {
        Sum(word.to_be())
    }

    /// This sum as it counts when its span begins at an odd offset.
    #[inline]
    pub const fn swapped(self) -> Sum {
        Sum(self.fold().swap_bytes() as u32)
    }

    /// This sum placed at `offset` of the whole: swapped when `offset` is odd.
    #[inline]
    pub const fn at(self, offset: usize) -> Sum {
        if offset & 1 == 1 { self.swapped() } else { self }
    }

    /// Folded to 16 bits, native order, not complemented. Zero only where every summed byte was zero.
    #[inline]
    pub const fn fold(self) -> u16 {
        let once = (self.0 & 0xffff).wrapping_add(self.0 >> 16);
        ((once & 0xffff).wrapping_add(once >> 16)) as u16
    }

    /// Whether data that includes its checksum field holds: the folded sum is all ones.
    #[inline]
    pub const fn holds(self) -> bool {
        self.fold() == 0xffff
    }

    /// The checksum field for data summed with that field zero, as it goes on the wire.
    #[inline]
    pub const fn to_field(self) -> [u8; 2] {
        (!self.fold()).to_ne_bytes()
    }

    /// Folds a sum of 16-bit or 32-bit words to 32 bits with end-around carry.
    #[inline]
    const fn from_wide(acc: u64) -> Sum {
        let once = (acc & 0xffff_ffff).wrapping_add(acc >> 32);
        Sum((once as u32).wrapping_add((once >> 32) as u32))
    }
}

impl PartialEq for Sum {
    fn eq(&self, other: &Sum) -> bool {
        self.fold() == other.fold()
    }
}

impl Eq for Sum {}

impl Add for Sum {
    type Output = Sum;
    #[inline]
    fn add(self, other: Sum) -> Sum {
        Sum(add_carry(self.0, other.0))
    }
}

impl AddAssign for Sum {
    #[inline]
    fn add_assign(&mut self, other: Sum) {
        *self = *self + other;
    }
}

/// One's-complement addition: the carry goes around the end, and cannot carry twice.
#[inline]
const fn add_carry(a: u32, b: u32) -> u32 {
    let (sum, carry) = a.overflowing_add(b);
    sum.wrapping_add(carry as u32)
}

/// Four words through one carry chain.
#[inline]
fn add_block(acc: u32, a: u32, b: u32, c: u32, d: u32) -> u32 {
    let (acc, carry) = acc.carrying_add(a, false);
    let (acc, carry) = acc.carrying_add(b, carry);
    let (acc, carry) = acc.carrying_add(c, carry);
    let (acc, carry) = acc.carrying_add(d, carry);
    acc.wrapping_add(carry as u32)
}

/// The sum of fewer than 16 bytes.
#[inline]
fn tail_sum(bytes: &[u8]) -> u64 {
    let (eight, rest) = bytes.as_chunks::<8>();
    let (four, rest) = rest.as_chunks::<4>();
    let (two, rest) = rest.as_chunks::<2>();
    let mut acc = 0u64;
    if let Some(word) = eight.first() {
        let word = u64::from_ne_bytes(*word);
        acc = (word & 0xffff_ffff).wrapping_add(word >> 32);
    }
    if let Some(word) = four.first() {
        acc = acc.wrapping_add(u64::from(u32::from_ne_bytes(*word)));
    }
    if let Some(word) = two.first() {
        acc = acc.wrapping_add(u64::from(u16::from_ne_bytes(*word)));
    }
    if let Some(&byte) = rest.first() {
        acc = acc.wrapping_add(u64::from(u16::from_ne_bytes([byte, 0])));
    }
    acc
}

/// Copies and sums fewer than 16 bytes; both slices have one length.
#[inline]
fn tail_copy(dst: &mut [u8], src: &[u8]) -> u64 {
    let (to_eight, to) = dst.as_chunks_mut::<8>();
    let (eight, from) = src.as_chunks::<8>();
    let (to_four, to) = to.as_chunks_mut::<4>();
    let (four, from) = from.as_chunks::<4>();
    let (to_two, to) = to.as_chunks_mut::<2>();
    let (two, from) = from.as_chunks::<2>();
    let mut acc = 0u64;
    if let (Some(d), Some(s)) = (to_eight.first_mut(), eight.first()) {
        *d = *s;
        let word = u64::from_ne_bytes(*s);
        acc = (word & 0xffff_ffff).wrapping_add(word >> 32);
    }
    if let (Some(d), Some(s)) = (to_four.first_mut(), four.first()) {
        *d = *s;
        acc = acc.wrapping_add(u64::from(u32::from_ne_bytes(*s)));
    }
    if let (Some(d), Some(s)) = (to_two.first_mut(), two.first()) {
        *d = *s;
        acc = acc.wrapping_add(u64::from(u16::from_ne_bytes(*s)));
    }
    if let (Some(d), Some(&byte)) = (to.first_mut(), from.first()) {
        *d = byte;
        acc = acc.wrapping_add(u64::from(u16::from_ne_bytes([byte, 0])));
    }
    acc
}

/// Copies of so many bytes and more bring their stores into line, where a store is a whole block.
const ALIGN_FROM: usize = if cfg!(target_pointer_width = "64") { 256 } else { usize::MAX };

#[cfg(target_pointer_width = "64")]
use wide as body;

#[cfg(not(target_pointer_width = "64"))]
use narrow as body;

/// The body for 64-bit registers and vectors. Words add up modulo 2⁶⁴ in `a`, their upper halves in `b`; the sum of all
/// 32-bit halves is then `a − (b << 32) + b`: three vector operations a block where widening would take five.
#[cfg(any(test, target_pointer_width = "64"))]
mod wide {
    use core::hint::black_box;

    /// Bytes in a block.
    pub(super) const BLOCK: usize = 16;

    #[inline]
    fn halves(a: u64, b: u64) -> u64 {
        a.wrapping_sub(b << 32).wrapping_add(b)
    }

    /// Adds a block to two lanes of either sum.
    #[inline(always)]
    fn add(a: &mut [u64; 2], b: &mut [u64; 2], block: &[u8; BLOCK]) {
        for ((a, b), word) in a.iter_mut().zip(b).zip(block.as_chunks::<8>().0) {
            let word = u64::from_ne_bytes(*word);
            *a = a.wrapping_add(word);
            *b = b.wrapping_add(word >> 32);
        }
    }

    /// The sum of all lanes.
    #[inline]
    fn all(lanes: [[u64; 2]; 4]) -> u64 {
        let [[s, t], [u, v], [w, x], [y, z]] = lanes;
        let even = s.wrapping_add(u).wrapping_add(w).wrapping_add(y);
        even.wrapping_add(t.wrapping_add(v).wrapping_add(x).wrapping_add(z))
    }

    // A turn of each loop is a cache line, every block of it in lanes of its own: sums that were put together before they
    // are added to a lane would need registers for what they are made of.

    #[inline]
    pub(super) fn sum_blocks(blocks: &[[u8; BLOCK]]) -> u64 {
        let (lines, rest) = blocks.as_flattened().as_chunks::<64>();
        let (mut a, mut b) = ([0u64; 8], [0u64; 8]);
        for line in lines {
            for ((a, b), word) in a.iter_mut().zip(&mut b).zip(line.as_chunks::<8>().0) {
                let word = u64::from_ne_bytes(*word);
                *a = a.wrapping_add(word);
                *b = b.wrapping_add(word >> 32);
            }
        }
        let lanes = |[s, t, u, v, w, x, y, z]: [u64; 8]| all([[s, t], [u, v], [w, x], [y, z]]);
        let (mut a, mut b) = (lanes(a), lanes(b));
        for word in rest.as_chunks::<8>().0 {
            let word = u64::from_ne_bytes(*word);
            a = a.wrapping_add(word);
            b = b.wrapping_add(word >> 32);
        }
        halves(a, b)
    }

    #[inline]
    pub(super) fn copy_blocks(dst: &mut [[u8; BLOCK]], src: &[[u8; BLOCK]]) -> u64 {
        let (mut a, mut b) = ([[0u64; 2]; 4], [[0u64; 2]; 4]);
        let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (&mut a, &mut b);
        let (to_lines, to) = dst.as_chunks_mut::<4>();
        let (lines, from) = src.as_chunks::<4>();
        for (d, s) in to_lines.iter_mut().zip(lines) {
            let [w, x, y, z] = *s;
            *d = [w, x, y, z];
            add(a0, b0, &w);
            add(a1, b1, &x);
            add(a2, b2, &y);
            add(a3, b3, &z);
        }
        // The sums leave the loop as vectors in memory. Without this the compiler finds scalar registers as good.
        let (mut a, mut b) = black_box((a, b));
        for ((d, s), (a, b)) in to.iter_mut().zip(from).zip(a.iter_mut().zip(&mut b)) {
            let block = *s;
            *d = block;
            add(a, b, &block);
        }
        halves(all(a), all(b))
    }
}

/// The body for 32-bit registers: four words a block through one carry chain.
#[cfg(any(test, not(target_pointer_width = "64")))]
mod narrow {
    use super::add_block;

    /// Bytes in a block.
    pub(super) const BLOCK: usize = 16;

    #[inline]
    fn add(acc: u32, block: [u8; BLOCK]) -> u32 {
        match *block.as_chunks::<4>().0 {
            [a, b, c, d] => add_block(
                acc,
                u32::from_ne_bytes(a),
                u32::from_ne_bytes(b),
                u32::from_ne_bytes(c),
                u32::from_ne_bytes(d),
            ),
            _ => acc,
        }
    }

    #[inline]
    pub(super) fn sum_blocks(blocks: &[[u8; BLOCK]]) -> u64 {
        let mut acc = 0u32;
        for block in blocks {
            acc = add(acc, *block);
        }
        u64::from(acc)
    }

    #[inline]
    pub(super) fn copy_blocks(dst: &mut [[u8; BLOCK]], src: &[[u8; BLOCK]]) -> u64 {
        let mut acc = 0u32;
        for (d, s) in dst.iter_mut().zip(src) {
            let block = *s;
            *d = block;
            acc = add(acc, block);
        }
        u64::from(acc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// RFC 1071 §1 as it reads: big-endian words, folded, in network order.
    fn naive(bytes: &[u8]) -> u16 {
        let mut acc = 0u32;
        for pair in bytes.chunks(2) {
            acc += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            acc = (acc & 0xffff) + (acc >> 16);
        }
        acc as u16
    }

    fn noise(len: usize, mut seed: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(len);
        for _ in 0..len {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            out.push((seed >> 56) as u8);
        }
        out
    }

    fn network(sum: Sum) -> u16 {
        u16::from_be(sum.fold())
    }

    #[test]
    fn copies_without_a_sum_are_copies() {
        let data = noise(1024, 7);
        for len in 0..1000 {
            let mut out = std::vec![0xa5u8; len + 16];
            let at = len % 13;
            assert!(Sum::copy_only(&mut out[at..at + len], &data[3..3 + len]).is_some());
            assert_eq!(out[at..at + len], data[3..3 + len], "length {len}");
            assert!(out[..at].iter().chain(&out[at + len..]).all(|b| *b == 0xa5), "stray byte at length {len}");
        }
        assert_eq!(Sum::copy_only(&mut [0; 3], &[0; 4]), None);
    }

    #[test]
    fn every_length_to_4096_at_moving_alignments() {
        let data = noise(4096 + 32, 1);
        for len in 0..=4096 {
            let src = &data[len * 7 % 16..][..len];
            let want = naive(src);
            assert_eq!(network(Sum::of(src)), want, "length {len}");
            let mut out = std::vec![0xa5u8; len + 32];
            let at = len * 5 % 16 + 1;
            assert_eq!(network(Sum::copy(&mut out[at..at + len], src).unwrap()), want, "copy of length {len}");
            assert_eq!(&out[at..at + len], src);
            assert!(out[..at].iter().chain(&out[at + len..]).all(|b| *b == 0xa5), "stray byte at length {len}");
        }
    }

    #[test]
    fn every_pair_of_alignments_of_short_spans() {
        let data = noise(160, 2);
        for len in 0..=70 {
            for from in 0..16 {
                for to in 0..16 {
                    let src = &data[from..from + len];
                    let mut out = [0u8; 96];
                    assert_eq!(network(Sum::copy(&mut out[to..to + len], src).unwrap()), naive(src));
                    assert_eq!(&out[to..to + len], src);
                }
            }
        }
    }

    #[test]
    fn a_long_run_of_all_ones_and_of_zeros() {
        for len in [65_535, 65_536, 1 << 20] {
            let ones = std::vec![0xffu8; len];
            let mut out = std::vec![0u8; len];
            assert_eq!(network(Sum::of(&ones)), naive(&ones));
            assert_eq!(network(Sum::copy(&mut out, &ones).unwrap()), naive(&ones));
            assert_eq!(out, ones);
            assert_eq!(Sum::of(&std::vec![0u8; len]).fold(), 0);
        }
        assert!(Sum::of(&[0xff; 65_536]).holds());
        assert!(!Sum::of(&[0xff; 65_535]).holds());
    }

    #[test]
    fn spans_split_anywhere_combine() {
        let data = noise(97, 3);
        for first in 0..=data.len() {
            for second in first..=data.len() {
                let parts = Sum::of(&data[..first])
                    + Sum::of(&data[first..second]).at(first)
                    + Sum::of(&data[second..]).at(second);
                assert_eq!(network(parts), naive(&data));
            }
        }
    }

    #[test]
    fn words_match_bytes() {
        let data = noise(4 * 70, 4);
        let words: Vec<u32> = data.as_chunks::<4>().0.iter().map(|w| u32::from_ne_bytes(*w)).collect();
        for from in 0..4 {
            for len in 0..=60 {
                let span = &words[from..from + len];
                let want = naive(&data[from * 4..(from + len) * 4]);
                assert_eq!(network(Sum::of_words(span)), want);
                let mut out = std::vec![0u32; len];
                assert_eq!(network(Sum::copy_words(&mut out, span).unwrap()), want);
                assert_eq!(out, span);
            }
        }
        assert_eq!(network(Sum::of_words(&[u32::MAX; 16_384])), 0xffff);
    }

    #[test]
    fn both_bodies_agree() {
        let data = noise(16 * 40 + 3, 7);
        for at in 0..4 {
            for count in 0..=39 {
                let blocks = data[at..at + 16 * count].as_chunks::<16>().0;
                let want = naive(blocks.as_flattened());
                assert_eq!(network(Sum::from_wide(wide::sum_blocks(blocks))), want);
                assert_eq!(network(Sum::from_wide(narrow::sum_blocks(blocks))), want);
                let mut out = std::vec![[0u8; 16]; count];
                assert_eq!(network(Sum::from_wide(wide::copy_blocks(&mut out, blocks))), want);
                assert_eq!(out, blocks);
                out.fill([0; 16]);
                assert_eq!(network(Sum::from_wide(narrow::copy_blocks(&mut out, blocks))), want);
                assert_eq!(out, blocks);
            }
        }
    }

    #[test]
    fn lengths_must_agree() {
        let mut out = [1u8; 4];
        assert_eq!(Sum::copy(&mut out, &[2; 3]), None);
        assert_eq!(Sum::copy(&mut out, &[2; 5]), None);
        assert_eq!(out, [1; 4]);
        assert_eq!(Sum::copy_words(&mut [0; 2], &[1; 3]), None);
    }

    #[test]
    fn arrays_and_words_match_slices() {
        let data: [u8; 20] = noise(20, 5).try_into().unwrap();
        assert_eq!(network(Sum::of_header(&data)), naive(&data));
        let odd: [u8; 11] = noise(11, 6).try_into().unwrap();
        assert_eq!(network(Sum::of_array(&odd)), naive(&odd));
        assert_eq!(Sum::of_u16(0x1234), Sum::of(&[0x12, 0x34]));
        assert_eq!(Sum::of_u32(0x1234_5678), Sum::of(&[0x12, 0x34, 0x56, 0x78]));
    }

    #[test]
    fn an_ipv4_header_of_rfc_form_holds_and_yields_its_field() {
        let mut header = [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 192, 168, 0, 1, 192, 168, 0, 199];
        assert_eq!(Sum::of_header(&header).to_field(), [0xb8, 0x61]);
        header[10..12].copy_from_slice(&[0xb8, 0x61]);
        assert!(Sum::of_header(&header).holds());
        header[8] -= 1;
        assert!(!Sum::of_header(&header).holds());
    }

    #[test]
    fn addition_keeps_all_ones_apart_from_zero() {
        let ones = Sum::of(&[0xff, 0xff]);
        assert_eq!((ones + ones).fold(), 0xffff);
        assert_eq!((Sum::of(&[0xff; 4]) + Sum::of_u16(1)).fold(), Sum::of_u16(1).fold());
        assert_eq!((Sum::ZERO + Sum::ZERO).fold(), 0);
        let mut total = Sum::ZERO;
        total += ones.swapped();
        assert!(total.holds());
    }
}
