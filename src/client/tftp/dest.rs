//! Where the bytes of received blocks go: straight to a region, or in order through a writer; lines of text are
//! converted on the way.

use super::netascii::Decoder;
use super::session::Room;
use super::{Mode, Pull};
use crate::storage::error::Error;
use crate::storage::host::{Host, Memory, SinkOf, Writer};

/// Bytes converted at once.
const CHUNK: usize = 128;

/// What takes the bytes.
pub enum Target<H: Host> {
    /// A sink.
    Sink(SinkOf<H>),
    /// A file's reader.
    Pull(Pull<H::Memory>),
}

/// The destination of a transfer.
pub struct Dest<H: Host> {
    /// What takes the bytes.
    pub target: Target<H>,
    text: Option<Decoder>,
    /// Bytes of the file, as it is on the wire, taken by what takes them in order.
    taken: u64,
    /// Bytes that makes of them.
    stored: u64,
}

/// What became of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is where it belongs.
    All,
    /// There is no place for it now.
    NoPlace,
    /// The sink does not take all of it now; `true`: it took some.
    Refused(bool),
}

impl<H: Host> Dest<H> {
    /// Of a sink or a reader.
    pub fn new(target: Target<H>, mode: Mode) -> Self {
        let text = (mode == Mode::Netascii).then(Decoder::default);
        Dest { target, text, taken: 0, stored: 0 }
    }

    /// The most bytes it can hold, if there is a limit that the size of the file at the server can be held against.
    pub fn capacity(&self) -> Option<u64> {
        match (&self.target, &self.text) {
            (Target::Sink(SinkOf::<H>::Memory(memory)), None) => Some(memory.len() as u64),
            _ => None,
        }
    }

    /// What blocks go to; `keeps`: bytes of a refused block that can be kept.
    pub fn room(&self, keeps: Option<usize>) -> Room {
        match (&self.target, keeps) {
            (Target::Sink(SinkOf::<H>::Memory(_)), _) if self.text.is_none() => Room::Region,
            (Target::Sink(SinkOf::<H>::Writer(_)), Some(bytes)) => Room::Kept(bytes),
            (Target::Sink(_), _) => Room::Passing,
            (Target::Pull(pull), _) => Room::Ring(pull.ring_len()),
        }
    }

    /// The transfer begins with blocks of `block` bytes.
    pub fn begin(&mut self, block: u16) {
        if let Target::Pull(pull) = &mut self.target {
            pull.begin(block);
        }
    }

    /// How many bytes it holds, if that is not the length on the wire.
    pub fn converted(&self) -> Option<u64> {
        self.text.map(|_| self.stored)
    }

    /// The region that blocks land in as they are, and where in it `len` bytes from `offset` of the file on belong;
    /// `usize::MAX` where they do not fit.
    #[inline]
    pub fn spot(&self, offset: u64, len: usize) -> Option<(&H::Memory, usize)> {
        match (&self.target, &self.text) {
            (Target::Sink(SinkOf::<H>::Memory(memory)), None) => {
                let at = usize::try_from(offset).unwrap_or(usize::MAX);
                let fits = at.checked_add(len).is_some_and(|end| end <= memory.len());
                Some((memory, if fits { at } else { usize::MAX }))
            }
            (Target::Pull(pull), _) => pull.spot(offset, len),
            _ => None,
        }
    }

    /// The region that blocks land in as they are, where its bounds are those of the file.
    #[inline]
    pub fn region(&self) -> Option<&H::Memory> {
        match (&self.target, &self.text) {
            (Target::Sink(SinkOf::<H>::Memory(memory)), None) => Some(memory),
            _ => None,
        }
    }

    /// Whether blocks land in a region whose bounds are those of the file.
    pub fn is_region(&self) -> bool {
        matches!((&self.target, &self.text), (Target::Sink(SinkOf::<H>::Memory(_)), None))
    }

    /// Whether the next `len` bytes from `offset` of the file on may come.
    #[inline]
    pub fn has_room(&self, offset: u64, len: u64) -> bool {
        match &self.target {
            Target::Pull(pull) => pull.has_room(offset, len),
            Target::Sink(_) => true,
        }
    }

    /// Takes the bytes from `offset` of the file on. `in_order`: all before them has been taken; `is_last`: none come
    /// after them. Bytes that were taken before, in an earlier attempt or in part, are passed over.
    ///
    /// # Errors
    /// [`Error::TooBig`]: they reach beyond the region; [`Error::Host`]: the sink failed.
    pub fn take(&mut self, offset: u64, data: &[u8], in_order: bool, is_last: bool) -> Result<Taken, Error> {
        match &mut self.target {
            Target::Pull(pull) => return Ok(pull.take(offset, data)),
            Target::Sink(SinkOf::<H>::Memory(memory)) if self.text.is_none() => {
                let at = usize::try_from(offset).map_err(|_| Error::TooBig)?;
                memory.write(at, data).map_err(|_| Error::TooBig)?;
                return Ok(Taken::All);
            }
            Target::Sink(SinkOf::<H>::Discard) if self.text.is_none() => return Ok(Taken::All),
            Target::Sink(_) if !in_order => return Ok(Taken::NoPlace),
            Target::Sink(_) => {}
        }
        let skip = usize::try_from(self.taken.saturating_sub(offset)).unwrap_or(usize::MAX);
        let rest = data.get(skip..).unwrap_or(&[]);
        if self.text.is_some() { self.take_text(rest, is_last) } else { self.take_plain(rest) }
    }

    fn take_plain(&mut self, rest: &[u8]) -> Result<Taken, Error> {
        if rest.is_empty() {
            return Ok(Taken::All);
        }
        let count = self.put(rest)?;
        self.taken = self.taken.saturating_add(count as u64);
        Ok(if count == rest.len() { Taken::All } else { Taken::Refused(count > 0) })
    }

    fn take_text(&mut self, mut rest: &[u8], is_last: bool) -> Result<Taken, Error> {
        let mut any = false;
        loop {
            let Some(before) = self.text else { return Ok(Taken::All) };
            let mut buffer = [0; CHUNK];
            let mut after = before;
            let mut done = after.convert(rest, &mut buffer);
            if is_last && rest.is_empty() && before.has_rest() {
                buffer = [b'\r'; CHUNK];
                (after, done.made) = (Decoder::default(), 1);
            }
            let count = if done.made == 0 { 0 } else { self.put(buffer.get(..done.made).unwrap_or(&[]))? };
            any |= count > 0;
            if count < done.made {
                // As far as what was taken goes.
                if count > 0 {
                    after = before;
                    done = after.convert(rest, buffer.get_mut(..count).unwrap_or(&mut []));
                    self.text = Some(after);
                    self.taken = self.taken.saturating_add(done.used as u64);
                }
                return Ok(Taken::Refused(any));
            }
            self.text = Some(after);
            self.taken = self.taken.saturating_add(done.used as u64);
            rest = rest.get(done.used..).unwrap_or(&[]);
            if rest.is_empty() && !(is_last && after.has_rest()) {
                return Ok(Taken::All);
            }
        }
    }

    /// Gives bytes to a sink that takes them in order; how many it took.
    fn put(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let count = match &mut self.target {
            Target::Sink(SinkOf::<H>::Writer(writer)) => {
                writer.write(self.stored, bytes).map_err(Error::Host)?.min(bytes.len())
            }
            Target::Sink(SinkOf::<H>::Memory(memory)) => {
                let at = usize::try_from(self.stored).map_err(|_| Error::TooBig)?;
                memory.write(at, bytes).map_err(|_| Error::TooBig)?;
                bytes.len()
            }
            _ => bytes.len(),
        };
        self.stored = self.stored.saturating_add(count as u64);
        Ok(count)
    }
}
