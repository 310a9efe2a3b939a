//! Memory by address, as a bootloader names it: where payload lands, and where it is sent from. All stacks are measured
//! on the same bytes, so that what the caches hold of them is the same for all.

use crate::case::{Case, DESTINATION, source_bytes};
use bootlace::storage::checksum::Sum;
use bootlace::storage::host::{Memory, OutOfBounds};
use core::ptr::NonNull;
use std::cell::{Cell, OnceCell};

/// Memory that lasts as long as the program, by address and length. Copies name the same bytes; one thread uses them, and
/// never two slices at a time.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    start: NonNull<u8>,
    len: usize,
}

impl Region {
    /// The bytes of `memory`; nothing else refers to them from now on.
    pub fn new(memory: &'static mut [u8]) -> Region {
        Region { len: memory.len(), start: NonNull::from(memory).cast() }
    }

    /// Some of its bytes. For looking at while nobody writes them.
    #[inline]
    pub fn bytes(&self, at: usize, len: usize) -> Result<&[u8], OutOfBounds> {
        self.slice_mut(at, len).map(|bytes| &*bytes)
    }

    /// Memory of `len` bytes, every page of it touched, in large pages where the system gives them: a bootloader's memory
    /// costs no page walks.
    pub fn lasting(len: usize) -> Region {
        const LARGE_PAGE: usize = 2 << 20;
        let memory = vec![0u8; len + LARGE_PAGE].leak();
        let skip = memory.as_ptr().align_offset(LARGE_PAGE);
        let memory = &mut memory[skip..][..len];
        // SAFETY: the range is this program's own, and the advice changes nothing that it holds.
        unsafe { libc::madvise(memory.as_mut_ptr().cast(), len, libc::MADV_HUGEPAGE) };
        memory.fill(1);
        Region::new(memory)
    }

    #[inline]
    fn place(&self, at: usize, len: usize) -> Result<*mut u8, OutOfBounds> {
        match at.checked_add(len) {
            Some(end) if end <= self.len => Ok(self.start.as_ptr().wrapping_add(at)),
            _ => Err(OutOfBounds),
        }
    }

    /// Some of its bytes, for one pass over them.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "a region is shared, as the memory of a bootloader is")]
    pub fn slice_mut(&self, at: usize, len: usize) -> Result<&mut [u8], OutOfBounds> {
        let place = self.place(at, len)?;
        // SAFETY: the memory lasts, the range lies in it, and no reference outlives the call that made it.
        Ok(unsafe { core::slice::from_raw_parts_mut(place, len) })
    }
}

impl Memory for Region {
    #[inline]
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn copy_sum(&self, at: usize, src: &[u8]) -> Result<Sum, OutOfBounds> {
        Sum::copy(self.slice_mut(at, src.len())?, src).ok_or(OutOfBounds)
    }

    #[inline]
    fn write(&self, at: usize, src: &[u8]) -> Result<(), OutOfBounds> {
        self.copy_sum(at, src).map(|_| ())
    }

    #[inline]
    fn read_sum(&self, at: usize, dst: &mut [u8]) -> Result<Sum, OutOfBounds> {
        Sum::copy(dst, self.slice_mut(at, dst.len())?).ok_or(OutOfBounds)
    }

    #[inline]
    fn sum(&self, at: usize, len: usize) -> Result<Sum, OutOfBounds> {
        Ok(Sum::of(self.slice_mut(at, len)?))
    }

    fn move_within(&self, from: usize, to: usize, len: usize) -> Result<(), OutOfBounds> {
        let (from, to) = (self.place(from, len)?, self.place(to, len)?);
        // SAFETY: both ranges lie in the region.
        unsafe { core::ptr::copy(from, to, len) };
        Ok(())
    }

    #[inline]
    fn prefetch(&self, at: usize, len: usize) {
        // As in the library.
        #[cfg(target_arch = "x86_64")]
        for offset in (at..at.saturating_add(len).min(self.len)).step_by(64) {
            use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            // SAFETY: every x86-64 has the instruction, and it never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(self.start.as_ptr().wrapping_add(offset).cast_const().cast()) };
        }
        let _ = (at, len);
    }

    fn slice(&self, at: usize, len: usize) -> Result<Self, OutOfBounds> {
        let start = NonNull::new(self.place(at, len)?).ok_or(OutOfBounds)?;
        Ok(Region { start, len })
    }
}

thread_local! {
    static DESTINATIONS: OnceCell<Region> = const { OnceCell::new() };
    static SOURCES: OnceCell<Region> = const { OnceCell::new() };
    static SOURCE_OF: Cell<Option<Case>> = const { Cell::new(None) };
}

/// Where received payloads go; one for each thread.
pub fn destination() -> Region {
    DESTINATIONS.with(|region| *region.get_or_init(|| Region::lasting(DESTINATION)))
}

/// Memory that holds what `case` sends; one for each thread. What it held for another case is gone.
pub fn source(case: Case) -> Region {
    let region = SOURCES.with(|region| *region.get_or_init(|| Region::lasting(DESTINATION)));
    if SOURCE_OF.replace(Some(case)) != Some(case) {
        let bytes = source_bytes(case);
        region.write(0, &bytes).expect("the source is no longer than the destination");
    }
    region
}
