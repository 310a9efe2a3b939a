//! Regions of the caller's memory: pointer and length, never a Rust reference that lives longer than one copy. The
//! primitive that copies and sums is `storage::checksum`'s; here it is told where, and helped over targets that
//! cannot load words from any address.

use super::results::LACE_EFAULT;
use crate::storage::checksum::Sum;
use crate::storage::host::{Memory, OutOfBounds};
use core::ffi::c_void;
use core::ops::Range;

/// Whether bulk copies go over aligned 32-bit words where source and destination agree: on machines whose compiler
/// puts a word of a byte slice together from single bytes, or whose byte-slice code is longer (see
/// `storage::checksum`).
const ALIGNED_WORDS: bool = cfg!(not(any(
    target_arch = "x86",
    target_arch = "x86_64",
    target_arch = "s390x",
    all(target_arch = "aarch64", not(target_os = "none"))
)));

/// Whether bulk copies go over aligned words also where the two do not agree, each word being put together from two: on
/// machines without an unaligned load, where bytes would be loaded one by one. MIPS has instructions for it.
const SHIFTED_WORDS: bool = cfg!(any(
    target_arch = "riscv32",
    target_arch = "riscv64",
    all(target_arch = "aarch64", target_os = "none"),
    all(target_arch = "arm", not(target_feature = "mclass")),
    all(target_arch = "arm", not(target_has_atomic = "32")) // ARMv6-M, as far as a stable compiler tells
));

/// Whether cache lines are fetched ahead: on machines whose compiler gives the instruction.
const FETCHES: bool = cfg!(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "arm", not(target_feature = "mclass"), target_has_atomic = "32")
));

/// Bytes of a cache line, for fetching.
const LINE: usize = 64;

/// A region. Copies name the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    start: *mut u8,
    len: usize,
}

impl Region {
    /// No bytes, nowhere.
    pub const EMPTY: Region = Region { start: core::ptr::without_provenance_mut(1), len: 0 };

    /// The region of `len` bytes at `start`, for the caller to vouch for: that many bytes may be read and written
    /// there until whatever uses the region has ended. `LACE_EFAULT` when it contains address 0, wraps, or overlaps
    /// `arena`.
    pub fn new(start: *mut c_void, len: usize, arena: &Range<usize>) -> Result<Region, i32> {
        let at = start.addr();
        if at == 0 || at.checked_add(len).is_none() || overlaps(&(at..at.wrapping_add(len)), arena) {
            return Err(LACE_EFAULT);
        }
        Ok(Region { start: start.cast(), len })
    }

    /// Where `len` bytes at offset `at` lie.
    fn place(&self, at: usize, len: usize) -> Result<*mut u8, OutOfBounds> {
        let end = at.checked_add(len).ok_or(OutOfBounds)?;
        if end > self.len || len > isize::MAX as usize {
            return Err(OutOfBounds);
        }
        Ok(self.start.wrapping_add(at))
    }

    /// The same, apart from `other`.
    fn place_apart(&self, at: usize, other: &[u8]) -> Result<*mut u8, OutOfBounds> {
        let place = self.place(at, other.len())?;
        let (to, from) = (place.addr(), other.as_ptr().addr());
        if overlaps(&(to..to.wrapping_add(other.len())), &(from..from.wrapping_add(other.len()))) {
            return Err(OutOfBounds);
        }
        Ok(place)
    }

    /// Where it begins.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start
    }
}

/// Whether two ranges of addresses have a byte in common.
pub fn overlaps(a: &Range<usize>, b: &Range<usize>) -> bool {
    !a.is_empty() && !b.is_empty() && a.start < b.end && b.start < a.end
}

impl Memory for Region {
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn copy_sum(&self, at: usize, src: &[u8]) -> Result<Sum, OutOfBounds> {
        let place = self.place_apart(at, src)?;
        // SAFETY: the caller vouches for the region, the range lies in it, and `src` lies elsewhere.
        let dst = unsafe { core::slice::from_raw_parts_mut(place, src.len()) };
        copy::<ALIGNED_WORDS, SHIFTED_WORDS>(dst, src)
    }

    fn write(&self, at: usize, src: &[u8]) -> Result<(), OutOfBounds> {
        let place = self.place_apart(at, src)?;
        // SAFETY: as in `copy_sum`. The sum is thrown away: the host's memcpy may be a loop over bytes, this is not.
        let dst = unsafe { core::slice::from_raw_parts_mut(place, src.len()) };
        copy::<ALIGNED_WORDS, SHIFTED_WORDS>(dst, src).map(|_| ())
    }

    #[inline]
    fn read_sum(&self, at: usize, dst: &mut [u8]) -> Result<Sum, OutOfBounds> {
        let place = self.place_apart(at, dst)?;
        // SAFETY: as in `copy_sum`, the other way.
        let src = unsafe { core::slice::from_raw_parts(place, dst.len()) };
        copy::<ALIGNED_WORDS, SHIFTED_WORDS>(dst, src)
    }

    fn sum(&self, at: usize, len: usize) -> Result<Sum, OutOfBounds> {
        let place = self.place(at, len)?;
        // SAFETY: the caller vouches for the region, and the range lies in it.
        let src = unsafe { core::slice::from_raw_parts(place, len) };
        Ok(sum::<ALIGNED_WORDS>(src))
    }

    fn move_within(&self, from: usize, to: usize, len: usize) -> Result<(), OutOfBounds> {
        let (from, to) = (self.place(from, len)?, self.place(to, len)?);
        // SAFETY: both ranges lie in the region.
        unsafe { core::ptr::copy(from, to, len) };
        Ok(())
    }

    #[inline]
    fn prefetch(&self, at: usize, len: usize) {
        if FETCHES && at < self.len {
            fetch(self.start.wrapping_add(at), len.min(self.len.wrapping_sub(at)));
        }
    }

    fn slice(&self, at: usize, len: usize) -> Result<Self, OutOfBounds> {
        Ok(Region { start: self.place(at, len)?, len })
    }
}

/// Fetches the cache lines of `len` bytes at `start` into the second level of the cache: near enough, and out of nobody's
/// way.
#[inline(never)] // Its callers have no register to spare.
fn fetch(start: *mut u8, len: usize) {
    let mut at = start;
    for _ in 0..len / (4 * LINE) {
        fetch_lines::<4>(at);
        at = at.wrapping_add(4 * LINE);
    }
    for _ in 0..len % (4 * LINE) / LINE {
        fetch_lines::<1>(at);
        at = at.wrapping_add(LINE);
    }
}

/// The instructions for one line or four.
#[inline(always)] // As above.
fn fetch_lines<const LINES: usize>(at: *mut u8) {
    macro_rules! fetch {
        ($one:literal, $four:literal) => {
            // SAFETY: these instructions read and write nothing that a program could see, and never fault.
            unsafe {
                match LINES {
                    1 => core::arch::asm!($one, in(reg) at, options(readonly, nostack, preserves_flags)),
                    _ => core::arch::asm!($four, in(reg) at, options(readonly, nostack, preserves_flags)),
                }
            }
        };
    }
    #[cfg(target_arch = "x86_64")]
    fetch!("prefetcht1 [{0}]", "prefetcht1 [{0}]\nprefetcht1 [{0}+64]\nprefetcht1 [{0}+128]\nprefetcht1 [{0}+192]");
    #[cfg(target_arch = "aarch64")]
    fetch!(
        "prfm pstl2keep, [{0}]",
        "prfm pstl2keep, [{0}]\nprfm pstl2keep, [{0}, #64]\nprfm pstl2keep, [{0}, #128]\nprfm pstl2keep, [{0}, #192]"
    );
    #[cfg(all(target_arch = "arm", not(target_feature = "mclass"), target_has_atomic = "32"))]
    fetch!("pld [{0}]", "pld [{0}]\npld [{0}, #64]\npld [{0}, #128]\npld [{0}, #192]");
    let _ = at;
}

/// Copies and sums; over aligned words when `WORDS` is set and both sides agree modulo four, or `SHIFTED` is set as well.
#[inline]
fn copy<const WORDS: bool, const SHIFTED: bool>(dst: &mut [u8], src: &[u8]) -> Result<Sum, OutOfBounds> {
    if !WORDS || dst.as_ptr().addr() % 4 != src.as_ptr().addr() % 4 {
        let sum = if SHIFTED { copy_across(dst, src) } else { Sum::copy(dst, src) };
        return sum.ok_or(OutOfBounds);
    }
    // SAFETY: any four bytes are a `u32`, and any `u32` is four bytes.
    let ((to_front, to, to_back), (front, from, back)) = unsafe { (dst.align_to_mut::<u32>(), src.align_to::<u32>()) };
    let middle = front.len();
    let mut sum = Sum::copy(to_front, front).ok_or(OutOfBounds)?;
    sum += Sum::copy_words(to, from).ok_or(OutOfBounds)?.at(middle);
    // The words' length is even.
    sum += Sum::copy(to_back, back).ok_or(OutOfBounds)?.at(middle);
    Ok(sum)
}

/// Copies and sums where the two sides do not agree modulo four: each word stored is put together from two that are loaded.
fn copy_across(dst: &mut [u8], src: &[u8]) -> Option<Sum> {
    let to_word = dst.as_ptr().addr().wrapping_neg() % 4;
    // The first word goes by bytes: then the one before a loaded word is a whole one, too.
    let front = to_word.wrapping_add(4);
    if dst.len() != src.len() || dst.len() < 32 {
        return Sum::copy(dst, src);
    }
    let skip = src.as_ptr().addr().wrapping_add(to_word) % 4;
    if skip == 0 {
        return Sum::copy(dst, src);
    }
    // SAFETY: any four bytes are a `u32`.
    let (_, words, _) = unsafe { src.get(to_word..)?.align_to::<u32>() };
    let count = (dst.len().wrapping_sub(front) / 4).min(words.len().wrapping_sub(1));
    let words = words.get(..count.wrapping_add(1))?;
    let (to_front, to) = dst.split_at_mut_checked(front)?;
    let (to, to_back) = to.split_at_mut_checked(count.wrapping_mul(4))?;
    let (from_front, from) = src.split_at_checked(front)?;
    let (_, from_back) = from.split_at_checked(count.wrapping_mul(4))?;
    // SAFETY: any `u32` is four bytes; `to` begins and ends on a multiple of four.
    let (_, to, _) = unsafe { to.align_to_mut::<u32>() };
    let middle = Sum::copy_shifted(to, words, skip as u32)?;
    Some(Sum::copy(to_front, from_front)? + (middle + Sum::copy(to_back, from_back)?).at(front))
}

/// Sums, over aligned words when `WORDS` is set.
fn sum<const WORDS: bool>(src: &[u8]) -> Sum {
    if !WORDS {
        return Sum::of(src);
    }
    // SAFETY: any four bytes are a `u32`.
    let (front, words, back) = unsafe { src.align_to::<u32>() };
    let middle = front.len();
    Sum::of(front) + Sum::of_words(words).at(middle) + Sum::of(back).at(middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn region(bytes: &mut [u8]) -> Region {
        Region::new(bytes.as_mut_ptr().cast(), bytes.len(), &(0..0)).unwrap()
    }

    #[test]
    fn address_0_wrapping_and_the_arena_are_refused() {
        let at = |start: usize, len| Region::new(core::ptr::without_provenance_mut(start), len, &(1000..2000));
        assert_eq!(at(0, 10), Err(LACE_EFAULT));
        assert_eq!(at(0, 0), Err(LACE_EFAULT));
        assert_eq!(at(usize::MAX - 3, 5), Err(LACE_EFAULT));
        assert!(at(usize::MAX - 5, 5).is_ok());
        assert_eq!(at(1, usize::MAX), Err(LACE_EFAULT));
        for (start, len) in [(999, 2), (1000, 1), (1500, 10), (1999, 1), (1, 5000)] {
            assert_eq!(at(start, len), Err(LACE_EFAULT), "{start} {len}");
        }
        assert!(at(990, 10).is_ok() && at(2000, 1).is_ok());
    }

    #[test]
    fn fetching_ahead_changes_nothing_wherever_it_is_asked_for() {
        let mut bytes = [7u8; 1000];
        let r = region(&mut bytes[..900]);
        for (at, len) in [(0, 900), (1, 2000), (899, 1), (900, 5), (usize::MAX, usize::MAX), (5, usize::MAX), (64, 0)] {
            r.prefetch(at, len);
        }
        assert_eq!(bytes, [7; 1000]);
    }

    #[test]
    fn nothing_reaches_beyond_a_region_or_into_its_own_source() {
        let mut bytes = [1u8; 64];
        let r = region(&mut bytes[8..40]);
        assert!(r.copy_sum(0, &[2; 32]).is_ok());
        assert_eq!(r.copy_sum(0, &[2; 33]), Err(OutOfBounds));
        assert_eq!(r.copy_sum(1, &[2; 32]), Err(OutOfBounds));
        assert_eq!(r.write(usize::MAX, &[2; 2]), Err(OutOfBounds));
        assert_eq!(r.sum(30, 3), Err(OutOfBounds));
        assert_eq!(r.move_within(0, 31, 2), Err(OutOfBounds));
        assert!(r.slice(32, 0).is_ok() && r.slice(32, 1).is_err());
        // SAFETY: the bytes live; the slice stands for a frame that lies in the region itself.
        let own = unsafe { core::slice::from_raw_parts(r.as_ptr(), 16) };
        assert_eq!(r.copy_sum(15, own), Err(OutOfBounds));
        assert!(r.copy_sum(16, own).is_ok());
        assert_eq!(&bytes[..8], [1; 8]);
        assert_eq!(&bytes[40..], [1; 24]);
    }

    #[test]
    fn case_e05_every_alignment_of_source_and_destination() {
        let data: Vec<u8> = (0..1600u32).map(|i| (i * 7 + i / 256) as u8).collect();
        for (from, to) in (0..8).flat_map(|f| (0..8).map(move |t| (f, t))) {
            for len in [0usize, 1, 2, 3, 4, 5, 7, 15, 16, 17, 63, 64, 65, 1467, 1468] {
                let src = &data[from..from + len];
                let mut dst = vec![0xeeu8; 1600];
                let want = Sum::of(src);
                assert_eq!(copy::<true, false>(&mut dst[to..to + len], src), Ok(want));
                assert_eq!((&dst[..to], &dst[to..to + len]), (&[0xee; 8][..to], src));
                assert!(dst[to + len..].iter().all(|b| *b == 0xee));
                assert_eq!(copy::<false, false>(&mut dst[to..to + len], src), Ok(want));
                if from % 4 != to % 4 {
                    dst.fill(0xee);
                    assert_eq!(copy::<true, true>(&mut dst[to..to + len], src), Ok(want));
                    assert_eq!((&dst[..to], &dst[to..to + len]), (&[0xee; 8][..to], src));
                    assert!(dst[to + len..].iter().all(|b| *b == 0xee));
                }
                assert_eq!((sum::<true>(src), sum::<false>(src)), (want, want));
                let r = region(&mut dst);
                assert_eq!(r.copy_sum(to, src), Ok(want));
                assert_eq!(r.sum(to, len), Ok(want));
                let mut back = vec![0u8; len];
                assert_eq!(r.read_sum(to, &mut back), Ok(want));
                assert_eq!(back, src);
            }
        }
    }
}
