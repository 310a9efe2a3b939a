//! A file that is read in pieces: open, read, seek, size, close. READs run ahead of the reader into a ring of memory that
//! the host gives, further the longer it reads in order; from there bytes are copied to the reader's buffers. An open file
//! is an operation that holds a job; it ends when it is closed, or with the error its READs ended with.

use super::get::Get;
use super::{Mount, Tuning};
use crate::client::engine::Shared;
use crate::client::operation::{Cx, Datagram, Operation, Step};
use crate::client::reader::take_back;
use crate::stack::icmp::IcmpError;
use crate::stack::landing::{Flow, Place, Spot};
use crate::storage::error::{Error, Result};
use crate::storage::host::{Host, Memory};
use crate::storage::saturating::{add, sub};
use crate::storage::time::{Duration, Instant};
use core::net::Ipv4Addr;

/// Least memory for reading ahead, in bytes.
pub const MIN_READAHEAD: usize = 512;

/// What to open.
pub struct Request<H: Host> {
    /// The export.
    pub mount: Mount<H::Text>,
    /// Path below its root, at most [`super::MAX_PATH`] bytes.
    pub path: H::Text,
    /// Where the first read begins.
    pub position: u64,
    /// Numbers. READs are never larger than half the memory for reading ahead.
    pub tuning: Tuning,
    /// Memory for reading ahead, at least [`MIN_READAHEAD`] bytes; lent until the file is closed.
    pub readahead: H::Memory,
}

/// The read under way.
struct Reading<M> {
    memory: M,
    /// Position in the file of its first byte.
    start: u64,
}

/// An open file.
pub struct File<H: Host> {
    get: Get<H>,
    /// Where the next read begins.
    cursor: u64,
    /// A read was asked for and has not begun.
    asked: Option<H::Memory>,
    reading: Option<Reading<H::Memory>>,
    /// What the read that ended came to.
    result: Option<Result<usize>>,
    /// Position of the next byte that is copied.
    front: u64,
    /// What the ring holds begins here, or later.
    origin: u64,
    /// Bytes to read ahead.
    ahead: u64,
    size: Option<u64>,
}

impl<H: Host> File<H> {
    /// A file that is yet to be found.
    ///
    /// # Errors
    /// [`Error::NoMemory`]: less than [`MIN_READAHEAD`]; [`Error::NameTooLong`] as [`super::check_path`].
    pub fn new(request: Request<H>) -> Result<Self> {
        let Request { mount, path, position, tuning, readahead } = request;
        if readahead.len() < MIN_READAHEAD {
            return Err(Error::NoMemory);
        }
        Ok(File {
            get: Get::pulled(mount, path, readahead, tuning)?,
            cursor: position,
            asked: None,
            reading: None,
            result: None,
            front: position,
            origin: 0,
            ahead: 0,
            size: None,
        })
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

    /// Ends the read under way, also if its result was not taken yet; the cursor is where it was.
    pub fn stop_reading(&mut self) {
        take_back(&mut self.result, &mut self.cursor);
        self.asked = None;
        self.reading = None;
    }

    /// Where the next read begins.
    pub fn position(&self) -> u64 {
        self.cursor
    }

    /// Moves the cursor, with the next read; beyond the end of the file reads get nothing. What the ring still holds is
    /// not asked for again.
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

    /// Bytes of the file when it was opened; `None` before.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Whether the file was found.
    pub fn is_open(&self) -> bool {
        self.size.is_some()
    }

    /// The connection that it waits for.
    #[cfg(feature = "tcp")]
    pub fn connection(&self, shared: &Shared<'_>) -> Option<crate::storage::slots::Key> {
        self.get.connection(shared)
    }

    /// Begins the read that was asked for, moves what has come to the reader, and says how far may be read ahead. `true`:
    /// READs are to be sent.
    fn serve(&mut self, cx: &mut Cx<'_, '_, H>) -> bool {
        if !self.get.is_found() {
            return false;
        }
        let Some(pipeline) = self.get.pipeline(cx.shared) else { return false };
        let Some((ring, len)) = self.get.ring() else { return false };
        let room = len as u64;
        self.size = Some(pipeline.end());
        if let Some(memory) = self.asked.take() {
            let one = u64::from(pipeline.size());
            let in_order = self.cursor == self.front;
            self.ahead = if in_order { self.ahead.max(one).saturating_mul(2).min(room) } else { one };
            let oldest = self.origin.max(sub(pipeline.reach(), room));
            if self.cursor < oldest || self.cursor > pipeline.reach() {
                pipeline.seek(self.cursor);
                self.origin = self.cursor;
                // What is on its way belongs where other bytes will lie.
                cx.stack.landing.end_claims(cx.op);
            }
            self.front = self.cursor;
            self.reading = Some(Reading { memory, start: self.cursor });
        }
        let mut wanted = 0;
        if let Some(reading) = &self.reading {
            let end = add(reading.start, reading.memory.len() as u64).min(pipeline.end());
            let edge = pipeline.edge().min(end);
            // At most once around, and one more.
            for _ in 0..2 {
                if self.front >= edge {
                    break;
                }
                let at = self.front.checked_rem(room).unwrap_or(0);
                let count = sub(edge, self.front).min(sub(room, at));
                let to = sub(self.front, reading.start);
                if ring.copy_to(at as usize, &reading.memory, to as usize, count as usize).is_err() {
                    break;
                }
                self.front = add(self.front, count);
            }
            wanted = sub(end, self.front);
            if wanted == 0 {
                let count = sub(self.front, reading.start);
                self.cursor = add(self.cursor, count);
                self.result = Some(Ok(usize::try_from(count).unwrap_or(usize::MAX)));
                self.reading = None;
            }
        }
        let ahead = self.ahead.max(add(wanted, u64::from(pipeline.size()))).min(room);
        // Nothing is read before somebody reads.
        if self.ahead > 0 {
            pipeline.hold(add(self.front, ahead));
        }
        pipeline.is_due()
    }
}

impl<H: Host> Operation<H> for File<H> {
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        let mut next = Instant::NEVER;
        // What comes over TCP comes while it is polled; then there may be room for more.
        for _ in 0..2 {
            self.serve(cx);
            match super::poll(&mut self.get, cx) {
                Step::Pending(at) => next = at,
                Step::Done(Ok(_)) => return Step::Done(Ok(0)),
                Step::Done(Err(why)) => {
                    if self.is_reading() {
                        self.stop_reading();
                        self.result = Some(Err(why));
                    }
                    return Step::Done(Err(why));
                }
            }
            if !self.serve(cx) {
                break;
            }
        }
        Step::Pending(next)
    }

    #[inline]
    fn place(&self, shared: &Shared<'_>, flow: &Flow, head: &[u8], len: usize) -> Place<H::Memory> {
        self.get.place(shared, flow, head, len)
    }

    fn guess(&self, shared: &Shared<'_>, src: Ipv4Addr, nth: usize) -> Option<Spot<H::Memory>> {
        self.get.guess(shared, src, nth)
    }

    fn patience(&self, shared: &Shared<'_>) -> Duration {
        self.get.patience(shared)
    }

    #[inline]
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
