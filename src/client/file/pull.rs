//! The memory of a reader: a ring of blocks read ahead, and the buffer of the read under way. A block that lies wholly in
//! that buffer lands there; others land in the ring and are copied once. What the reader has no room for is held back.

use crate::client::tftp::Taken;
use crate::storage::host::Memory;
use crate::storage::saturating::{add, mul, sub};

/// The read under way.
#[derive(Clone, Debug)]
struct Reading<M> {
    memory: M,
    /// Position in the file of its first byte.
    start: u64,
    /// The first block that lands in it; those before it had come when it began.
    direct_from: u64,
}

/// Where a file's blocks go.
#[derive(Clone, Debug)]
pub struct Pull<M> {
    ring: M,
    /// Bytes of a block; 0 before the transfer has agreed on it.
    block: u16,
    /// Blocks the ring holds.
    slots: u32,
    /// Position of the next byte the reader wants.
    position: u64,
    reading: Option<Reading<M>>,
    /// A block between here and the edge lay in a buffer that is gone, or was passed over.
    torn: bool,
    /// So did the short last block, within which `position` lies: what is before that is not in the ring.
    tail_gone: bool,
}

impl<M: Memory> Pull<M> {
    /// A reader at the beginning of a file.
    pub fn new(ring: M) -> Self {
        Pull { ring, block: 0, slots: 0, position: 0, reading: None, torn: false, tail_gone: false }
    }

    /// Bytes of the ring.
    pub fn ring_len(&self) -> usize {
        self.ring.len()
    }

    /// A transfer begins, with blocks of `block` bytes.
    pub fn begin(&mut self, block: u16) {
        self.block = block.max(1);
        let slots = self.ring.len().checked_div(usize::from(self.block)).unwrap_or(0);
        self.slots = u32::try_from(slots).unwrap_or(u32::MAX);
        if let Some(reading) = &mut self.reading {
            reading.direct_from = 0;
        }
    }

    /// Position of the next byte the reader wants.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether the bytes from `position` on are here or yet to come.
    pub fn holds(&self, position: u64) -> bool {
        let begin = mul(self.index(self.position), self.block());
        !self.torn && position >= if self.tail_gone { self.position } else { begin }
    }

    /// Puts the reader elsewhere; not during a read. What was passed over is not here.
    pub fn seek(&mut self, position: u64) {
        self.torn |= !self.holds(position);
        self.position = position;
    }

    /// Nothing has come: the transfer begins again.
    pub fn forget(&mut self) {
        self.torn = false;
        self.tail_gone = false;
        if let Some(reading) = &mut self.reading {
            // Bytes delivered stay; the rest may land.
            reading.direct_from = 0;
        }
    }

    /// Ends the read under way; the reader is back where it began. What had come for it may be gone.
    pub fn abandon(&mut self) {
        if let Some(reading) = self.reading.take() {
            self.position = reading.start;
            self.torn = true;
        }
    }

    /// Begins a read into `memory`. `seen`: the first block of which nothing has come.
    pub fn start(&mut self, memory: M, seen: u64) {
        self.reading = Some(Reading { memory, start: self.position, direct_from: seen });
    }

    /// Bytes the read under way still wants; `None` without one.
    pub fn wanted(&self) -> Option<u64> {
        let reading = self.reading.as_ref()?;
        Some(sub(self.end_of(reading), self.position))
    }

    /// Ends the read under way; how many bytes it got.
    pub fn finish(&mut self) -> usize {
        let Some(reading) = self.reading.take() else { return 0 };
        usize::try_from(self.position.saturating_sub(reading.start)).unwrap_or(usize::MAX)
    }

    fn end_of(&self, reading: &Reading<M>) -> u64 {
        add(reading.start, reading.memory.len() as u64)
    }

    fn block(&self) -> u64 {
        u64::from(self.block)
    }

    fn slots(&self) -> u64 {
        u64::from(self.slots)
    }

    fn index(&self, offset: u64) -> u64 {
        offset.checked_div(self.block()).unwrap_or(0)
    }

    /// The block at which the ring begins.
    fn base(&self) -> u64 {
        self.index(self.position)
    }

    /// Whether `len` bytes from `offset` on, a block, land in the buffer of the read under way, and where.
    fn direct(&self, offset: u64, len: u64) -> Option<(&M, usize)> {
        let reading = self.reading.as_ref()?;
        let whole = self.index(offset) >= reading.direct_from
            && offset >= reading.start
            && add(offset, len) <= self.end_of(reading)
            // A short last block counts as whole only if a whole one had its place there: whether it is short is not
            // known to all who ask.
            && add(offset, self.block()) <= self.end_of(reading);
        let at = usize::try_from(offset.saturating_sub(reading.start)).ok()?;
        whole.then_some((&reading.memory, at))
    }

    /// Where a block of `len` bytes lands; `usize::MAX` where it has no place.
    #[inline]
    pub fn spot(&self, offset: u64, len: usize) -> Option<(&M, usize)> {
        if let Some(direct) = self.direct(offset, len as u64) {
            return Some(direct);
        }
        let index = self.index(offset);
        let base = self.base();
        if index < base || index >= add(base, self.slots()) || len as u64 > self.block() {
            return Some((&self.ring, usize::MAX));
        }
        let slot = index.checked_rem(self.slots()).unwrap_or(0);
        Some((&self.ring, usize::try_from(slot.saturating_mul(self.block())).unwrap_or(usize::MAX)))
    }

    /// Takes a block that has not landed.
    pub fn take(&mut self, offset: u64, data: &[u8]) -> Taken {
        if self.index(offset) < self.base() {
            // Passed over: the reader is further on.
            return Taken::All;
        }
        match self.spot(offset, data.len()) {
            Some((memory, at)) if memory.write(at, data).is_ok() => Taken::All,
            _ => Taken::NoPlace,
        }
    }

    /// Whether the blocks of `len` bytes from `offset` on all have a place, or are passed over.
    pub fn has_room(&self, offset: u64, len: u64) -> bool {
        let mut limit = add(self.base(), self.slots());
        if let Some(reading) = &self.reading {
            let first = self.index(add(reading.start, sub(self.block(), 1))).max(reading.direct_from);
            if first <= limit {
                limit = limit.max(self.index(self.end_of(reading)));
            }
        }
        self.index(add(add(offset, len), sub(self.block(), 1))) <= limit
    }

    /// Moves what has come to the read under way. `edge`: position up to which all bytes of the file have come.
    pub fn deliver(&mut self, edge: u64) {
        let Some(reading) = self.reading.clone() else { return };
        let end = edge.min(self.end_of(&reading));
        // Each turn moves at least one byte, and all but the first and the last a block.
        while self.position < end {
            let index = self.index(self.position);
            let from = mul(index, self.block());
            let upto = add(from, self.block()).min(end);
            let len = usize::try_from(upto.saturating_sub(self.position)).unwrap_or(0);
            let direct = self.direct(from, 1).is_some();
            if !direct {
                let within = sub(self.position, from);
                let slot = mul(index.checked_rem(self.slots()).unwrap_or(0), self.block());
                let at = usize::try_from(slot.saturating_add(within)).unwrap_or(usize::MAX);
                let to = usize::try_from(self.position.saturating_sub(reading.start)).unwrap_or(usize::MAX);
                if self.ring.copy_to(at, &reading.memory, to, len).is_err() {
                    return;
                }
            }
            self.tail_gone = direct && upto < add(from, self.block());
            self.position = upto.max(add(self.position, 1));
        }
    }
}
