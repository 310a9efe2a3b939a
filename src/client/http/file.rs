//! A file that is read in pieces: open, read, seek, size, close. Bytes land in the reader's buffers; between reads the
//! connection's window holds the server back, and nothing is done. To read elsewhere is another request, for the range
//! from there on. An open file is an operation; it ends when it is closed, or with the error its transfer ended with.

use super::{Get, Request};
use crate::client::engine::Shared;
use crate::client::operation::{Cx, Datagram, Operation, Step};
use crate::client::reader::take_back;
use crate::stack::icmp::IcmpError;
use crate::storage::error::{Error, Result};
use crate::storage::host::{Host, Memory};
use crate::storage::slots::Key;
use crate::storage::time::Instant;

/// The read under way.
struct Reading {
    /// Bytes it wants.
    len: u64,
    /// Position of its first byte.
    start: u64,
}

/// An open file.
pub struct File<H: Host> {
    get: Get<H>,
    /// Where the next read begins.
    cursor: u64,
    /// A read was asked for and has not begun.
    asked: Option<H::Memory>,
    reading: Option<Reading>,
    /// What the read that ended came to.
    result: Option<Result<usize>>,
    /// No response is being read: the next read needs another request.
    parked: bool,
    /// A read was stopped whose buffer may still be written.
    torn: bool,
}

impl<H: Host> File<H> {
    /// A file that is yet to be asked for; its first read begins at the request's offset. Sink, method and length do not
    /// count.
    ///
    /// # Errors
    /// As [`Get::new`].
    pub fn new(request: Request<H>) -> Result<Self> {
        let cursor = request.offset;
        let get = Get::pulled(request)?;
        Ok(File { get, cursor, asked: None, reading: None, result: None, parked: false, torn: false })
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
        self.asked.is_some() || self.reading.is_some()
    }

    /// What the read came to, once it has ended: the number of bytes, less than asked for only at the end of the file.
    /// The cursor has moved on by as much.
    pub fn take_result(&mut self) -> Option<Result<usize>> {
        self.result.take()
    }

    /// Ends the read under way, also if its result was not taken yet; the cursor is where it was. The operation is to be polled then.
    pub fn stop_reading(&mut self) {
        take_back(&mut self.result, &mut self.cursor);
        self.asked = None;
        self.torn |= self.reading.take().is_some();
    }

    /// Where the next read begins.
    pub fn position(&self) -> u64 {
        self.cursor
    }

    /// Moves the cursor, with the next read; beyond the end of the file reads get nothing.
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

    /// Bytes of the file; `None` while they are not known.
    pub fn size(&self) -> Option<u64> {
        self.get.total()
    }

    /// Whether the server has begun to give the file.
    pub fn is_open(&self) -> bool {
        self.get.is_found()
    }

    /// The connection that it waits for.
    pub fn connection(&self, shared: &Shared<'_>) -> Option<Key> {
        self.get.connection(shared)
    }

    /// The transfer that brings the bytes.
    pub fn get(&self) -> &Get<H> {
        &self.get
    }

    /// Begins the read that was asked for.
    fn begin(&mut self, cx: &mut Cx<'_, '_, H>) {
        let Some(memory) = self.asked.take() else { return };
        let len = memory.len() as u64;
        let ends = self.size().is_some_and(|size| self.cursor >= size);
        if len == 0 || ends {
            self.result = Some(Ok(0));
            return;
        }
        if self.parked || self.get.position() != self.cursor {
            self.get.restart(cx, self.cursor);
            self.parked = false;
        }
        self.get.set_window(cx.now(), Some(memory));
        self.reading = Some(Reading { len, start: self.cursor });
    }

    /// Ends the read if it has what it wants, or all there is.
    fn deliver(&mut self, over: bool, now: Instant) {
        let Some(reading) = &self.reading else { return };
        let count = self.get.position().saturating_sub(reading.start);
        if count < reading.len && !over {
            return;
        }
        self.reading = None;
        self.cursor = self.cursor.saturating_add(count);
        self.result = Some(Ok(usize::try_from(count).unwrap_or(usize::MAX)));
        self.get.set_window(now, None);
    }
}

impl<H: Host> Operation<H> for File<H> {
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        if core::mem::take(&mut self.torn) {
            self.get.set_window(cx.now(), None);
            self.get.cancel(cx);
            self.parked = true;
        }
        if self.is_open() {
            self.begin(cx);
            if self.reading.is_none() {
                return Step::Pending(Instant::NEVER);
            }
        }
        let step = self.get.poll(cx);
        let now = cx.now();
        match step {
            Step::Pending(at) => {
                self.deliver(false, now);
                // What was asked for while the file was being opened begins at once.
                let more = self.is_open() && self.asked.is_some();
                Step::Pending(if more { now } else { at })
            }
            Step::Done(Ok(_)) => {
                self.deliver(true, now);
                self.parked = true;
                Step::Pending(if self.asked.is_some() { now } else { Instant::NEVER })
            }
            Step::Done(Err(why)) => {
                if self.is_reading() {
                    self.asked = None;
                    self.reading = None;
                    self.result = Some(Err(why));
                }
                Step::Done(Err(why))
            }
        }
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

    fn forget(&mut self, cx: &mut Cx<'_, '_, H>) {
        self.get.forget(cx);
    }
}
