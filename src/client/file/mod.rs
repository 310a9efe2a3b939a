//! A file that is read in pieces, as a file system driver wants it: open, read, seek, size, close. The bytes come by a
//! transfer that runs ahead of the reader into memory the host gives; `pull` says where they land. An open file is an
//! operation; it ends when it is closed, or with the error its transfer ended with.

pub mod pull;

#[cfg(test)]
mod tests;

use super::operation::{Cx, Datagram, Operation, Server, Step};
use super::tftp::{Get, Tuning};
use crate::client::engine::Shared;
use crate::client::reader::take_back;
use crate::stack::icmp::IcmpError;
use crate::stack::landing::{Flow, Place};
use crate::storage::error::{Error, Result};
use crate::storage::host::{Host, Memory};
use crate::storage::time::{Duration, Instant};
use core::net::Ipv4Addr;
use pull::Pull;

/// Least memory for reading ahead, in bytes: a block of a server that knows no options (RFC 1350).
pub const MIN_READAHEAD: usize = 512;

/// What to open.
pub struct Request<H: Host> {
    /// The TFTP server; port 0: 69.
    pub server: Server<H::Text>,
    /// File name as the server knows it.
    pub path: H::Text,
    /// Numbers of the transfer. Blocks are never larger than a frame, nor than the memory for reading ahead; the window is
    /// never more than half of that.
    pub tuning: Tuning,
    /// Memory for reading ahead, at least [`MIN_READAHEAD`] bytes; lent until the file is closed.
    pub readahead: H::Memory,
}

/// An open file.
pub struct File<H: Host> {
    get: Get<H>,
    /// Where the next read begins.
    cursor: u64,
    /// A read was asked for.
    asked: Option<H::Memory>,
    /// What the read that ended came to.
    result: Option<Result<usize>>,
    /// Length as the server told it; `u64::MAX` where it did not.
    told: u64,
    /// The reader made the server wait since the last request: should that have been too long for it, it is asked again.
    waited: bool,
}

impl<H: Host> File<H> {
    /// A file that is yet to be asked for.
    ///
    /// # Errors
    /// [`Error::NoMemory`]: less than [`MIN_READAHEAD`]; else as [`Get::new`].
    pub fn new(request: Request<H>) -> Result<Self> {
        let Request { server, path, tuning, readahead } = request;
        if readahead.len() < MIN_READAHEAD {
            return Err(Error::NoMemory);
        }
        let get = Get::pulled(server, path, Pull::new(readahead), tuning)?;
        Ok(File { get, cursor: 0, asked: None, result: None, told: u64::MAX, waited: false })
    }

    /// Begins a read of `memory.len()` bytes from the cursor on, to be polled until [`Self::take_result`] has one. The
    /// memory is lent until then.
    ///
    /// # Errors
    /// [`Error::Again`]: a read is under way.
    pub fn read(&mut self, memory: H::Memory) -> Result<()> {
        if self.is_reading() {
            return Err(Error::Again);
        }
        self.result = None;
        self.asked = Some(memory);
        Ok(())
    }

    /// Whether a read is under way.
    pub fn is_reading(&self) -> bool {
        self.asked.is_some() || self.get.reader().is_some_and(|p| p.wanted().is_some())
    }

    /// What the read came to, once it has ended: the number of bytes, less than asked for only at the end of the file.
    /// The cursor has moved on by as much.
    pub fn take_result(&mut self) -> Option<Result<usize>> {
        self.result.take()
    }

    /// Ends the read under way, also if its result was not taken yet; the cursor is where it was.
    pub fn stop_reading(&mut self) {
        take_back(&mut self.result, &mut self.cursor);
        self.asked = None;
        if let Some(pull) = self.get.pull() {
            pull.abandon();
        }
    }

    /// Where the next read begins.
    pub fn position(&self) -> u64 {
        self.cursor
    }

    /// Moves the cursor; beyond the end of the file reads get nothing. Forwards, what lies between is passed over;
    /// backwards, the file is asked for again (TFTP knows no offsets) and passed over up to there, with the next read.
    ///
    /// # Errors
    /// [`Error::Again`]: a read is under way.
    pub fn seek(&mut self, position: u64) -> Result<()> {
        if self.is_reading() {
            return Err(Error::Again);
        }
        self.cursor = position;
        Ok(())
    }

    /// Bytes of the file: as they came, else as the server told (RFC 2349); `None` while neither is known.
    pub fn size(&self) -> Option<u64> {
        self.get.finished().or((self.told != u64::MAX).then_some(self.told))
    }

    /// Whether the server has agreed to send the file.
    pub fn is_open(&self) -> bool {
        self.get.is_open()
    }

    /// Starts what was asked for.
    fn start(&mut self, cx: &mut Cx<'_, '_, H>) {
        let (_, seen) = self.get.edges();
        let cursor = self.cursor;
        let length = self.get.finished();
        let Some(pull) = self.get.pull() else { return };
        let backwards = !pull.holds(cursor);
        let Some(memory) = self.asked.take() else { return };
        pull.seek(cursor);
        pull.start(memory, seen);
        let ends = length.is_some_and(|length| cursor >= length);
        if backwards && !ends {
            self.restart(cx);
        }
    }

    fn restart(&mut self, cx: &mut Cx<'_, '_, H>) {
        self.waited = false;
        self.get.again(cx);
        if let Some(pull) = self.get.pull() {
            pull.forget();
        }
    }

    /// Moves what has come to the reader and ends the read if it has what it wants.
    fn deliver(&mut self) {
        let (edge, _) = self.get.edges();
        let over = self.get.finished().is_some();
        let Some(pull) = self.get.pull() else { return };
        pull.deliver(edge);
        let Some(wanted) = pull.wanted() else { return };
        if wanted == 0 || (over && pull.position() >= edge) {
            let count = pull.finish();
            self.cursor = self.cursor.saturating_add(count as u64);
            self.result = Some(Ok(count));
        }
    }
}

impl<H: Host> Operation<H> for File<H> {
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        // Twice at most: an attempt that failed is followed by one more.
        for _ in 0..2 {
            if self.asked.is_some() {
                self.start(cx);
            }
            self.deliver();
            if self.get.finished().is_some() {
                return Step::Pending(Instant::NEVER);
            }
            let step = self.get.poll(cx);
            self.told = cx.progress.total.unwrap_or(self.told);
            self.waited |= self.get.is_held();
            match step {
                Step::Pending(at) => {
                    self.deliver();
                    return Step::Pending(at);
                }
                Step::Done(Ok(_)) => self.get.close(cx),
                Step::Done(Err(Error::Timeout | Error::Refused | Error::ConnectionReset)) if self.waited => {
                    self.restart(cx);
                }
                Step::Done(Err(why)) => {
                    if self.is_reading() {
                        self.stop_reading();
                        self.result = Some(Err(why));
                    }
                    return Step::Done(Err(why));
                }
            }
        }
        self.deliver();
        Step::Pending(if self.get.finished().is_some() { Instant::NEVER } else { cx.now() })
    }

    fn place(&self, shared: &Shared<'_>, flow: &Flow, head: &[u8], len: usize) -> Place<H::Memory> {
        self.get.place(shared, flow, head, len)
    }

    fn guess(&self, shared: &Shared<'_>, src: Ipv4Addr, nth: usize) -> Option<crate::stack::landing::Spot<H::Memory>> {
        self.get.guess(shared, src, nth)
    }

    fn patience(&self, shared: &Shared<'_>) -> Duration {
        self.get.patience(shared)
    }

    fn datagram(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>) {
        self.get.datagram(cx, datagram);
    }

    fn icmp_error(&mut self, cx: &mut Cx<'_, '_, H>, error: &IcmpError) {
        self.get.icmp_error(cx, error);
    }

    fn cancel(&mut self, cx: &mut Cx<'_, '_, H>) {
        self.get.cancel(cx);
    }
}
