//! Where the bytes of a body go: a sink, or the buffer of the read under way.

use crate::storage::error::Error;
use crate::storage::host::{Host, Memory, SinkOf, Writer};

/// The destination of a transfer. Offsets count from the first byte that was asked for.
pub enum Dest<H: Host> {
    /// A region.
    Memory(H::Memory),
    /// A writer, which takes bytes in order.
    Writer(H::Writer),
    /// Nowhere.
    Discard,
    /// The buffer of the read under way, and the offset of its first byte; without one nothing is taken.
    Window(Option<H::Memory>, u64),
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

    /// The memory that byte `offset` goes to, where in it, and how many bytes have room there.
    pub fn place(&self, offset: u64) -> Option<(&H::Memory, usize, u64)> {
        let (memory, from) = match self {
            Dest::Memory(memory) => (memory, 0),
            Dest::Window(Some(memory), from) => (memory, *from),
            _ => return None,
        };
        let at = usize::try_from(offset.saturating_sub(from)).unwrap_or(usize::MAX).min(memory.len());
        Some((memory, at, memory.len().saturating_sub(at) as u64))
    }

    /// Gives bytes to what takes them by call; how many were taken.
    ///
    /// # Errors
    /// What the sink said.
    pub fn put(&mut self, offset: u64, data: &[u8]) -> Result<usize, Error> {
        match self {
            Dest::Writer(_) if data.is_empty() => Ok(0),
            Dest::Writer(writer) => Ok(writer.write(offset, data).map_err(Error::Host)?.min(data.len())),
            Dest::Memory(_) | Dest::Window(..) => Ok(0),
            Dest::Discard => Ok(data.len()),
        }
    }
}
