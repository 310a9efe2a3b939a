//! # Sinks and sources
//!
//! A *sink* is where received bytes go: a region of memory, in which every byte lands at its last place as it comes,
//! or a `write` callback, to which bytes are offered in order. A *source* is where sent bytes come from.

use super::region::Region;
use super::results::{LACE_EFAULT, LACE_EINVAL, LACE_EIO};
use super::structs::{Sized32, init, read};
use crate::storage::host::{HostError, Memory, Pager, Reader, Sink, Source, Writer};
use core::ffi::{c_int, c_void};
use core::ops::Range;

/// Takes `len` bytes at `data`, *borrowed for the call*; the first is byte `offset` of the stream. Bytes are offered
/// in ascending order, each until it was taken. Leaf.
///
/// Returns how many were taken, 0 to `len`: the rest is offered again later, and the peer is held back meanwhile.
/// Negative: the operation ends with that result, and the peer is told.
pub type lace_write = Option<unsafe extern "C" fn(ctx: *mut c_void, offset: u64, data: *const c_void, len: u32) -> i64>;

/// Where received bytes go. Set up by `lace_sink_memory`, `lace_sink_write` or `lace_sink_discard`; copied by the
/// call that starts an operation. What it names must live until the operation has ended.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_sink {
    /// Size of this struct.
    pub size: u32,
    /// 0: discard; 1: memory; 2: write.
    pub kind: u32,
    /// The region.
    pub memory: *mut c_void,
    /// Bytes of the region.
    pub len: u64,
    /// The callback.
    pub write: lace_write,
    /// Passed to it.
    pub ctx: *mut c_void,
}

// SAFETY: integers, pointers and optional functions; the size is in front.
unsafe impl Sized32 for lace_sink {
    const MIN: usize = size_of::<lace_sink>();
}

const DISCARD: u32 = 0;
const MEMORY: u32 = 1;
const WRITE: u32 = 2;

/// Sets up `*sink` (`size` is `sizeof *sink`) to put bytes into the `len` bytes at `memory`. Nothing beyond them is
/// ever written; bytes behind what an operation confirmed are undefined afterwards. What does not fit ends the
/// operation with `LACE_EFBIG`.
///
/// Returns 0; `LACE_EINVAL` for a wrong size; `LACE_EFAULT` for memory that contains address 0 or wraps. Memory that
/// overlaps the stack's own is refused where it is used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_sink_memory(sink: *mut lace_sink, size: usize, memory: *mut c_void, len: usize) -> c_int {
    if Region::new(memory, len, &(0..0)).is_err() {
        return LACE_EFAULT;
    }
    set(sink, size, lace_sink { kind: MEMORY, memory, len: len as u64, ..lace_sink::fresh() })
}

/// Sets up `*sink` (`size` is `sizeof *sink`) to offer bytes to `write`.
///
/// Returns 0; `LACE_EINVAL` for a wrong size; `LACE_EFAULT` without `write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_sink_write(
    sink: *mut lace_sink,
    size: usize,
    write: lace_write,
    ctx: *mut c_void,
) -> c_int {
    if write.is_none() {
        return LACE_EFAULT;
    }
    set(sink, size, lace_sink { kind: WRITE, write, ctx, ..lace_sink::fresh() })
}

/// Sets up `*sink` (`size` is `sizeof *sink`) to check and count bytes and throw them away.
///
/// Returns 0; `LACE_EINVAL` for a wrong size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_sink_discard(sink: *mut lace_sink, size: usize) -> c_int {
    init(sink, size)
}

fn set<T: Sized32>(to: *mut T, size: usize, value: T) -> c_int {
    match init(to, size) {
        0 => super::results::status(super::structs::write(to, &value)),
        code => code,
    }
}

/// The sink behind a pointer of C's, as the core has it.
#[allow(dead_code)] // Not without a client that receives.
pub(super) fn sink_at(sink: *const lace_sink, arena: &Range<usize>) -> Result<Sink<Region, CWriter>, i32> {
    let sink = read(sink)?;
    match sink.kind {
        DISCARD => Ok(Sink::Discard),
        MEMORY => {
            let len = usize::try_from(sink.len).map_err(|_| LACE_EFAULT)?;
            Ok(Sink::Memory(Region::new(sink.memory, len, arena)?))
        }
        WRITE if sink.write.is_some() => Ok(Sink::Writer(CWriter { write: sink.write, ctx: sink.ctx })),
        _ => Err(LACE_EINVAL),
    }
}

/// A sink of C's.
#[derive(Clone, Copy, Debug)]
pub struct CWriter {
    write: lace_write,
    ctx: *mut c_void,
}

impl Writer for CWriter {
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<usize, HostError> {
        let Some(write) = self.write else { return Err(HostError(LACE_EINVAL)) };
        let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        // SAFETY: the host vouches for its callback; the bytes live during the call.
        let taken = unsafe { write(self.ctx, offset, data.as_ptr().cast(), len) };
        counted(taken, data.len())
    }
}

/// Fills the `len` bytes at `buffer`, *borrowed for the call*, from byte `offset` of the file on. The same bytes may
/// be asked for again, and must be the same. Leaf.
///
/// Returns how many bytes were given, 1 to `len`; 0 only at the end of the file. Negative: sending ends there with
/// that result.
pub type lace_read = Option<unsafe extern "C" fn(ctx: *mut c_void, offset: u64, buffer: *mut c_void, len: u32) -> i64>;

/// Lends memory of the file's own that holds at least one and at most `len` bytes from byte `offset` on: sets
/// `*page`. It must not change *until release*. The same bytes may be asked for again. Leaf.
///
/// Returns how many bytes are lent, 1 to `len`; 0 only at the end of the file. Negative: sending ends there with that
/// result.
pub type lace_map =
    Option<unsafe extern "C" fn(ctx: *mut c_void, offset: u64, len: u32, page: *mut *const c_void) -> i64>;

/// Gives back the `len` bytes at `page` that `map` lent for `offset`: they were acknowledged, and no NIC holds them.
/// Leaf.
pub type lace_unmap = Option<unsafe extern "C" fn(ctx: *mut c_void, offset: u64, page: *const c_void, len: u32)>;

/// Where sent bytes come from. Set up by `lace_source_memory`, `lace_source_read` or `lace_source_map`; copied by the
/// call that starts an operation. What it names must live until the operation has ended.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_source {
    /// Size of this struct.
    pub size: u32,
    /// 1: memory; 2: read; 3: map.
    pub kind: u32,
    /// The region.
    pub memory: *const c_void,
    /// Bytes of the region.
    pub len: u64,
    /// The callback that fills.
    pub read: lace_read,
    /// The callback that lends.
    pub map: lace_map,
    /// The callback that is given pages back.
    pub release: lace_unmap,
    /// Passed to them.
    pub ctx: *mut c_void,
}

// SAFETY: integers, pointers and optional functions; the size is in front.
unsafe impl Sized32 for lace_source {
    const MIN: usize = size_of::<lace_source>();
}

const READ: u32 = 2;
const MAP: u32 = 3;

/// Sets up `*source` (`size` is `sizeof *source`) to be the `len` bytes at `memory`, which a gathering NIC sends from
/// where they lie.
///
/// Returns 0; `LACE_EINVAL` for a wrong size; `LACE_EFAULT` for memory that contains address 0 or wraps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_source_memory(
    source: *mut lace_source,
    size: usize,
    memory: *const c_void,
    len: usize,
) -> c_int {
    if Region::new(memory.cast_mut(), len, &(0..0)).is_err() {
        return LACE_EFAULT;
    }
    set(source, size, lace_source { kind: MEMORY, memory, len: len as u64, ..lace_source::fresh() })
}

/// Sets up `*source` (`size` is `sizeof *source`) to ask `read` for bytes.
///
/// Returns 0; `LACE_EINVAL` for a wrong size; `LACE_EFAULT` without `read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_source_read(
    source: *mut lace_source,
    size: usize,
    read: lace_read,
    ctx: *mut c_void,
) -> c_int {
    if read.is_none() {
        return LACE_EFAULT;
    }
    set(source, size, lace_source { kind: READ, read, ctx, ..lace_source::fresh() })
}

/// Sets up `*source` (`size` is `sizeof *source`) to have `map` lend pages; `release` may be NULL.
///
/// Returns 0; `LACE_EINVAL` for a wrong size; `LACE_EFAULT` without `map`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_source_map(
    source: *mut lace_source,
    size: usize,
    map: lace_map,
    release: lace_unmap,
    ctx: *mut c_void,
) -> c_int {
    if map.is_none() {
        return LACE_EFAULT;
    }
    set(source, size, lace_source { kind: MAP, map, release, ctx, ..lace_source::fresh() })
}

/// The source behind a pointer of C's, as the core has it.
#[allow(dead_code)] // Not without a client that sends.
pub(super) fn source_at(
    source: *const lace_source,
    arena: &Range<usize>,
) -> Result<Source<Region, CReader, CPager>, i32> {
    let source = read(source)?;
    match source.kind {
        MEMORY => {
            let len = usize::try_from(source.len).map_err(|_| LACE_EFAULT)?;
            Ok(Source::Memory(Region::new(source.memory.cast_mut(), len, arena)?))
        }
        READ if source.read.is_some() => Ok(Source::Reader(CReader { read: source.read, ctx: source.ctx })),
        MAP if source.map.is_some() => Ok(Source::Pager(CPager {
            map: source.map,
            release: source.release,
            ctx: source.ctx,
            arena: arena.clone(),
        })),
        _ => Err(LACE_EINVAL),
    }
}

/// What a callback's return says of `most` bytes asked for.
fn counted(returned: i64, most: usize) -> Result<usize, HostError> {
    match usize::try_from(returned) {
        Ok(count) if count <= most => Ok(count),
        // A callback that gives or takes more than was asked is at fault.
        Ok(_) => Err(HostError(LACE_EIO)),
        Err(_) => Err(HostError(i32::try_from(returned).unwrap_or(LACE_EIO))),
    }
}

/// A source of C's that fills buffers.
#[derive(Clone, Copy, Debug)]
pub struct CReader {
    read: lace_read,
    ctx: *mut c_void,
}

impl Reader for CReader {
    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, HostError> {
        let Some(read) = self.read else { return Err(HostError(LACE_EINVAL)) };
        let len = u32::try_from(buf.len()).unwrap_or(u32::MAX);
        // SAFETY: the host vouches for its callback; the buffer lives during the call.
        let given = unsafe { read(self.ctx, offset, buf.as_mut_ptr().cast(), len) };
        counted(given, buf.len())
    }
}

/// A source of C's that lends pages.
#[derive(Clone, Debug)]
pub struct CPager {
    map: lace_map,
    release: lace_unmap,
    ctx: *mut c_void,
    arena: Range<usize>,
}

impl Pager for CPager {
    type Memory = Region;

    fn map(&mut self, offset: u64, len: usize) -> Result<Region, HostError> {
        let Some(map) = self.map else { return Err(HostError(LACE_EINVAL)) };
        let asked = u32::try_from(len).unwrap_or(u32::MAX);
        let mut page = core::ptr::null();
        // SAFETY: the host vouches for its callback; it fills in the pointer.
        let given = unsafe { map(self.ctx, offset, asked, &raw mut page) };
        let given = counted(given, len)?;
        if given == 0 {
            return Ok(Region::EMPTY);
        }
        match Region::new(page.cast_mut(), given, &self.arena) {
            Ok(region) => Ok(region),
            Err(code) => {
                self.give_back(offset, page, given);
                Err(HostError(code))
            }
        }
    }

    fn release(&mut self, offset: u64, page: &Region) {
        self.give_back(offset, page.as_ptr().cast_const().cast(), page.len());
    }
}

impl CPager {
    fn give_back(&self, offset: u64, page: *const c_void, len: usize) {
        if let Some(release) = self.release
            && len > 0
        {
            // SAFETY: the host vouches for its callback.
            unsafe { release(self.ctx, offset, page, len as u32) };
        }
    }
}

/// A text of C's that lives until the operation it was given to has ended.
#[derive(Clone, Copy, Debug)]
pub struct CText {
    start: *const u8,
    len: usize,
}

impl CText {
    /// The text `bytes`, for the caller of the C function to keep alive.
    #[allow(dead_code)] // Not without a client that takes a text.
    pub(super) fn new(bytes: &[u8]) -> CText {
        CText { start: bytes.as_ptr(), len: bytes.len() }
    }
}

impl AsRef<[u8]> for CText {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the caller of the C function keeps the text alive and unchanged until the operation has ended, which is
        // as long as this value lives.
        unsafe { core::slice::from_raw_parts(self.start, self.len) }
    }
}

/// No lease, where DHCP is left out.
#[cfg(not(feature = "dhcp"))]
#[derive(Clone, Copy, Debug)]
pub struct NoLease;

#[cfg(not(feature = "dhcp"))]
impl crate::storage::host::LeaseStore for NoLease {
    fn clear(&mut self) {}
    fn store(&mut self, _: crate::storage::host::LeasePart, _: &[u8]) {}
}
