//! Where bytes go: a sink with its offsets, or the ring of a file's reader.

use crate::storage::error::Error;
use crate::storage::host::{Host, Memory, SinkOf, Writer};

/// The destination of a transfer.
pub enum Dest<H: Host> {
    /// A region.
    Memory(H::Memory),
    /// A writer, which takes bytes in order.
    Writer(H::Writer),
    /// Nowhere.
    Discard,
    /// The first `len` bytes of a region, which the file passes through: offset 0 of the file belongs to its beginning, as
    /// does offset `len`. Whoever reads them sees to it that nothing comes for what is still to be read.
    Ring {
        /// The region.
        memory: H::Memory,
        /// Bytes of it that are used.
        len: usize,
    },
}

impl<H: Host> Dest<H> {
    /// Of a sink.
    pub fn new(sink: SinkOf<H>) -> Self {
        match sink {
            SinkOf::<H>::Memory(memory) => Dest::Memory(memory),
            SinkOf::<H>::Writer(writer) => Dest::Writer(writer),
            SinkOf::<H>::Discard => Dest::Discard,
        }
    }

    /// The most bytes it can hold, if there is a limit.
    pub fn capacity(&self) -> Option<u64> {
        match self {
            Dest::Memory(memory) => Some(memory.len() as u64),
            _ => None,
        }
    }

    /// The region that bytes at `offset` belong to, and where in it; for offsets that no region has, where there is nothing.
    #[inline]
    pub fn spot(&self, offset: u64) -> Option<(&H::Memory, usize)> {
        match self {
            Dest::Memory(memory) => Some((memory, usize::try_from(offset).unwrap_or(usize::MAX))),
            Dest::Ring { memory, len } => {
                let at = offset.checked_rem(*len as u64).and_then(|at| usize::try_from(at).ok());
                Some((memory, at.unwrap_or(usize::MAX)))
            }
            Dest::Writer(_) | Dest::Discard => None,
        }
    }

    /// Whether bytes must come in order.
    pub fn is_ordered(&self) -> bool {
        matches!(self, Dest::Writer(_))
    }

    /// Puts `data` at `offset`; says how many bytes were taken, fewer only by a writer.
    ///
    /// # Errors
    /// [`Error::TooBig`]: they reach beyond the region; [`Error::Host`]: the sink failed.
    pub fn put(&mut self, offset: u64, data: &[u8]) -> Result<usize, Error> {
        match self {
            Dest::Memory(_) | Dest::Ring { .. } => {
                let (memory, at) = self.spot(offset).ok_or(Error::TooBig)?;
                memory.write(at, data).map_err(|_| Error::TooBig)?;
                Ok(data.len())
            }
            Dest::Writer(_) if data.is_empty() => Ok(0),
            Dest::Writer(writer) => Ok(writer.write(offset, data).map_err(Error::Host)?.min(data.len())),
            Dest::Discard => Ok(data.len()),
        }
    }
}
