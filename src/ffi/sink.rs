//! # Sinks and sources
//!
//! A *sink* is where received bytes go: a region of memory, in which every byte lands at its last place as it comes,
//! or a `write` callback, to which bytes are offered in order. A *source* is where sent bytes come from.

use super::region::Region;
use super::results::{LACE_EFAULT, LACE_EINVAL};
use super::structs::{Sized32, init, read};
use crate::storage::host::{HostError, Pager, Reader, Sink, Writer};
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
    fn fresh() -> Self {
        lace_sink {
            size: 0,
            kind: DISCARD,
            memory: core::ptr::null_mut(),
            len: 0,
            write: None,
            ctx: core::ptr::null_mut(),
        }
    }
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

fn set(sink: *mut lace_sink, size: usize, value: lace_sink) -> i32 {
    match init(sink, size) {
        0 => super::results::status(super::structs::write(sink, &value)),
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
        match usize::try_from(taken) {
            Ok(taken) if taken <= data.len() => Ok(taken),
            // A callback that takes more than it was given is at fault.
            Ok(_) => Err(HostError(super::results::LACE_EIO)),
            Err(_) => Err(HostError(i32::try_from(taken).unwrap_or(super::results::LACE_EIO))),
        }
    }
}

/// A source of C's that fills buffers.
#[derive(Clone, Copy, Debug)]
pub struct CReader {}

impl Reader for CReader {
    fn read(&mut self, _offset: u64, _buf: &mut [u8]) -> Result<usize, HostError> {
        Err(HostError(LACE_EINVAL))
    }
}

/// A source of C's that lends pages.
#[derive(Clone, Copy, Debug)]
pub struct CPager {}

impl Pager for CPager {
    type Memory = Region;

    fn map(&mut self, _offset: u64, _len: usize) -> Result<Region, HostError> {
        Err(HostError(LACE_EINVAL))
    }

    fn release(&mut self, _offset: u64, _page: &Region) {}
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
