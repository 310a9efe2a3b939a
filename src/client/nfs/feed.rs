//! Leads records, entries of a list, to a sink. A reply whose records the sink does not take in whole is asked for
//! again later, and what was taken before is passed over: nothing is kept here but counts.

use super::dest::Dest;
use crate::storage::error::Error;
use crate::storage::host::{Host, SinkOf};

/// A sink for records.
pub struct Feed<H: Host> {
    dest: Dest<H>,
    /// Bytes the sink has taken.
    taken: u64,
    /// Where the next record begins.
    position: u64,
    /// Where the records of this reply begin.
    reply: u64,
    /// The sink has refused bytes of this reply.
    full: bool,
}

impl<H: Host> Feed<H> {
    /// Nothing was taken yet.
    pub fn new(sink: SinkOf<H>) -> Self {
        Feed { dest: Dest::new(sink), taken: 0, position: 0, reply: 0, full: false }
    }

    /// Bytes the sink has taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The records of a reply begin, perhaps not for the first time.
    pub fn begin(&mut self) {
        self.position = self.reply;
        self.full = false;
    }

    /// Offers a part of a record, unless the sink has refused something before.
    ///
    /// # Errors
    /// As [`Dest::put`].
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let skip = usize::try_from(self.taken.saturating_sub(self.position)).unwrap_or(usize::MAX);
        self.position = self.position.wrapping_add(bytes.len() as u64);
        let Some(rest) = bytes.get(skip..).filter(|rest| !rest.is_empty() && !self.full) else { return Ok(()) };
        let count = self.dest.put(self.taken, rest)?;
        self.taken = self.taken.wrapping_add(count as u64);
        self.full = count < rest.len();
        Ok(())
    }

    /// The records of a reply end; `false` if they are needed once more.
    pub fn end(&mut self) -> bool {
        if !self.full {
            self.reply = self.position;
        }
        !self.full
    }
}
