//! Where the bytes of received blocks go.

use crate::storage::error::Error;
use crate::storage::host::{Host, Memory, SinkOf, Writer};

/// The destination of a transfer.
#[derive(Debug)]
pub enum Dest<H: Host> {
    /// A region: blocks land at their places, in any order.
    Memory(H::Memory),
    /// A writer that has taken so many bytes.
    Writer(H::Writer, u64),
    /// Nowhere.
    Discard,
}

/// What became of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is where it belongs.
    All,
    /// It came ahead of another, and there is no place for it.
    NoPlace,
    /// The sink does not take all of it now; `true`: it took some.
    Refused(bool),
}

impl<H: Host> Dest<H> {
    /// Of a sink.
    pub fn new(sink: SinkOf<H>) -> Self {
        match sink {
            SinkOf::<H>::Memory(memory) => Dest::Memory(memory),
            SinkOf::<H>::Writer(writer) => Dest::Writer(writer, 0),
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

    /// Whether what it cannot take now must be kept for it.
    pub fn may_refuse(&self) -> bool {
        matches!(self, Dest::Writer(..))
    }

    /// Takes the bytes from `offset` of the file on. `in_order`: all before them has been taken.
    ///
    /// # Errors
    /// [`Error::TooBig`]: they reach beyond the region; [`Error::Host`]: the sink failed.
    #[inline]
    pub fn take(&mut self, offset: u64, data: &[u8], in_order: bool) -> Result<Taken, Error> {
        match self {
            Dest::Memory(memory) => {
                let at = usize::try_from(offset).map_err(|_| Error::TooBig)?;
                memory.write(at, data).map_err(|_| Error::TooBig)?;
                Ok(Taken::All)
            }
            Dest::Discard => Ok(Taken::All),
            Dest::Writer(..) if !in_order => Ok(Taken::NoPlace),
            Dest::Writer(writer, taken) => {
                // What was taken before a restart, or of a block refused in part, is not offered again.
                let skip = usize::try_from(taken.saturating_sub(offset)).unwrap_or(usize::MAX);
                let Some(rest) = data.get(skip..).filter(|rest| !rest.is_empty()) else { return Ok(Taken::All) };
                let count = writer.write(*taken, rest).map_err(Error::Host)?.min(rest.len());
                *taken = taken.saturating_add(count as u64);
                Ok(if count == rest.len() { Taken::All } else { Taken::Refused(count > 0) })
            }
        }
    }
}
