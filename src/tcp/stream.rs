//! A byte stream as clients see it: HTTP and NFS over TCP now, TLS later. What carries it is for the implementation.

use super::{Events, Tcp, Ticket};
use crate::stack::Stack;
use crate::storage::error::{Error, Result};
use crate::storage::host::{Host, SourceOf};
use crate::storage::slots::Key;

/// Both directions of a stream. Nothing here blocks: what cannot be done now is done in a later pass, and the client
/// looks again when its connection has events.
pub trait ByteStream<H: Host> {
    /// Whether the stream is open. `Ok(false)`: not yet.
    ///
    /// # Errors
    /// Why it is not, or was ended.
    fn is_open(&self) -> Result<bool>;
    /// Gives bytes to be sent; how many were taken.
    ///
    /// # Errors
    /// The stream's own, or [`Error::NotConnected`] after [`Self::finish`].
    fn send(&mut self, bytes: &[u8]) -> Result<usize>;
    /// Gives `count` bytes of a file from `offset` on to be sent.
    ///
    /// # Errors
    /// As [`Self::send`]; [`Error::Again`] when too many files are queued.
    fn send_file(&mut self, source: SourceOf<H>, offset: u64, count: u64) -> Result<Ticket>;
    /// Sends the end of the stream behind everything given.
    fn finish(&mut self) -> Result<()>;
    /// What has come and can be read, where it lies, as two spans.
    fn peek(&self) -> Result<(&[u8], &[u8])>;
    /// Drops the first `count` of these bytes; how many that were.
    fn consume(&mut self, count: usize) -> Result<usize>;
    /// Has the bytes that follow land in `len` bytes of `memory` from `at` on. What of them has come moves there.
    fn receive_into(&mut self, memory: &H::Memory, at: usize, len: usize) -> Result<()>;
    /// Bytes of the region at the front that have come in order; `None` when none is queued.
    fn received(&self) -> Result<Option<usize>>;
    /// Takes the region at the front back, full or not; bytes that had come in order.
    fn take_back(&mut self) -> Result<usize>;
    /// Whether nothing more will come; what has come can still be read. `None`: more may come. Within: the peer has
    /// finished, or why the stream was ended before that.
    fn ended(&self) -> Option<Result<()>>;
    /// Whether the peer has finished and everything was read.
    ///
    /// # Errors
    /// Why the stream was ended before that.
    fn is_finished(&self) -> Result<bool>;
}

/// A TCP connection as a byte stream.
pub struct TcpStream<'t, 'a, H: Host> {
    /// The connections.
    pub tcp: &'t mut Tcp<'a, H>,
    /// The stack.
    pub stack: &'t mut Stack<'a, H>,
    /// This one.
    pub key: Key,
}

impl<H: Host> ByteStream<H> for TcpStream<'_, '_, H> {
    fn is_open(&self) -> Result<bool> {
        match self.tcp.error(self.key)? {
            Some(error) => Err(error),
            None => Ok(self.tcp.readiness(self.key)?.contains(Events::CONNECTED)),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<usize> {
        self.tcp.send(self.key, bytes)
    }

    fn send_file(&mut self, source: SourceOf<H>, offset: u64, count: u64) -> Result<Ticket> {
        self.tcp.sendfile(self.key, source, offset, count)
    }

    fn finish(&mut self) -> Result<()> {
        self.tcp.shutdown(self.stack, self.key)
    }

    fn peek(&self) -> Result<(&[u8], &[u8])> {
        self.tcp.peek(self.key)
    }

    fn consume(&mut self, count: usize) -> Result<usize> {
        self.tcp.consume(self.stack, self.key, count)
    }

    fn receive_into(&mut self, memory: &H::Memory, at: usize, len: usize) -> Result<()> {
        self.tcp.recv_into(self.stack, self.key, memory, at, len)
    }

    fn received(&self) -> Result<Option<usize>> {
        Ok(self.tcp.region(self.key)?.map(|region| region.filled))
    }

    fn take_back(&mut self) -> Result<usize> {
        Ok(self.tcp.finish_region(self.stack, self.key)?.map_or(0, |region| region.filled))
    }

    fn ended(&self) -> Option<Result<()>> {
        match self.tcp.readiness(self.key) {
            Ok(now) if now.contains(Events::FINISHED) => Some(Ok(())),
            Ok(now) if now.contains(Events::CLOSED) => {
                Some(Err(self.tcp.error(self.key).ok().flatten().unwrap_or(Error::ConnectionReset)))
            }
            Ok(_) => None,
            Err(e) => Some(Err(e)),
        }
    }

    fn is_finished(&self) -> Result<bool> {
        // What had come before an error is still to be read.
        let finished = self.tcp.is_finished(self.key)?;
        match self.tcp.error(self.key)? {
            Some(Error::ConnectionAborted) | None => Ok(finished),
            Some(error) if finished => Err(error),
            Some(_) => Ok(false),
        }
    }
}
