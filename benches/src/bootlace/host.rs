//! The host that Bootlace is measured on: memory by address, as `ffi` has it, and a NIC that is the shared line.

use crate::nic::Line;
use bootlace::storage::checksum::Sum;
use bootlace::storage::host::{
    Host, HostError, LeasePart, LeaseStore, LogEvent, Memory, Nic, NicCaps, OutOfBounds, Pager, Reader, SendError,
    Span, Token, Writer,
};
use core::ptr::NonNull;

/// Memory that lasts as long as the program, by address and length. Copies name the same bytes.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    start: NonNull<u8>,
    len: usize,
}

impl Region {
    /// The bytes of `memory`, which is never freed; nothing else refers to them from now on.
    pub fn new(memory: Vec<u8>) -> Region {
        let memory = memory.leak();
        Region { len: memory.len(), start: NonNull::from(memory).cast() }
    }

    /// What the memory holds, to be looked at while nothing runs.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: leaked memory lasts, and what writes it is not running.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    #[inline]
    fn place(&self, at: usize, len: usize) -> Result<*mut u8, OutOfBounds> {
        match at.checked_add(len) {
            Some(end) if end <= self.len => Ok(self.start.as_ptr().wrapping_add(at)),
            _ => Err(OutOfBounds),
        }
    }

    #[inline]
    fn slice_mut(&self, at: usize, len: usize) -> Result<&mut [u8], OutOfBounds> {
        let place = self.place(at, len)?;
        // SAFETY: leaked memory lasts, the range lies in it, and no reference outlives the call that made it.
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

    fn touch(&self, at: usize, len: usize) {
        for line in self.slice_mut(at, len).iter().flat_map(|bytes| bytes.iter().step_by(64)) {
            core::hint::black_box(*line);
        }
    }

    fn slice(&self, at: usize, len: usize) -> Result<Self, OutOfBounds> {
        let start = NonNull::new(self.place(at, len)?).ok_or(OutOfBounds)?;
        Ok(Region { start, len })
    }
}

/// The NIC's sending side. It is told where the line is before anything is sent.
#[derive(Debug)]
pub struct Port {
    line: Option<NonNull<Line>>,
    caps: NicCaps,
}

impl Port {
    /// A port that can do so much.
    pub fn new(caps: NicCaps) -> Port {
        Port { line: None, caps }
    }

    /// Sends go to `line` from now on. The line must stay where it is, untouched by others, until the next call.
    #[inline]
    pub fn attach(&mut self, line: &mut Line) {
        self.line = Some(NonNull::from(line));
    }

    #[inline]
    fn line(&mut self) -> Result<&mut Line, SendError> {
        match &mut self.line {
            // SAFETY: as `attach` demands.
            Some(line) => Ok(unsafe { line.as_mut() }),
            None => Err(SendError::Busy),
        }
    }
}

impl Nic for Port {
    type Memory = Region;

    fn caps(&self) -> NicCaps {
        self.caps
    }

    #[inline]
    fn send(&mut self, spans: &[Span<'_, Region>], _: Token) -> Result<(), SendError> {
        let summed = !self.caps.contains(NicCaps::TX_L4_SUM);
        let mut pieces = [&[][..]; 6];
        for (piece, span) in pieces.iter_mut().zip(spans) {
            *piece = match span {
                Span::Bytes(bytes) => bytes,
                Span::Memory { memory, at, len } => {
                    memory.slice_mut(*at, *len).map_err(|_| SendError::Failed(HostError(-14)))?
                }
            };
        }
        let used = pieces.get(..spans.len()).ok_or(SendError::Failed(HostError(-22)))?;
        self.line()?.send_spans(used, summed);
        Ok(())
    }

    #[inline]
    fn has_tx_buffer(&self) -> bool {
        !self.caps.contains(NicCaps::GATHER)
    }

    #[inline]
    fn tx_buffer(&mut self, len: usize) -> Option<&mut [u8]> {
        self.line().ok().map(|line| line.buffer(len))
    }

    #[inline]
    fn send_buffer(&mut self, len: usize, _: Token) -> Result<(), SendError> {
        if len > 0 {
            self.line()?.send(len);
        }
        Ok(())
    }

    fn set_rx_filter(&mut self, _: &[[u8; 6]]) {}
}

/// What no case needs: writers, readers, pagers, leases.
#[derive(Clone, Copy, Debug)]
pub struct Unused;

impl Writer for Unused {
    fn write(&mut self, _: u64, data: &[u8]) -> Result<usize, HostError> {
        Ok(data.len())
    }
}

impl Reader for Unused {
    fn read(&mut self, _: u64, _: &mut [u8]) -> Result<usize, HostError> {
        Ok(0)
    }
}

impl Pager for Unused {
    type Memory = Region;
    fn map(&mut self, _: u64, _: usize) -> Result<Region, HostError> {
        Err(HostError(-5))
    }
    fn release(&mut self, _: u64, _: &Region) {}
}

impl LeaseStore for Unused {
    fn store(&mut self, _: LeasePart, _: &[u8]) {}
}

/// The host.
#[derive(Debug)]
pub struct Bare(pub u32);

impl Host for Bare {
    type Memory = Region;
    type Nic = Port;
    type Writer = Unused;
    type Reader = Unused;
    type Pager = Unused;
    type Text = &'static [u8];
    type Lease = Unused;

    fn random(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
        self.0 ^ (self.0 >> 15)
    }

    fn log(&mut self, _: LogEvent, _: u64, _: u64) {}
}
