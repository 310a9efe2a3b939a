//! One request and its response over a byte stream: the head goes through the stream's own buffer, the body straight to
//! its place. What a response means, and what follows when the stream breaks, is for `get`.

use super::body::Framing;
use super::dest::Dest;
use super::head::Scan;
use super::{Fault, MAX_HEAD};
use crate::storage::error::Error;
use crate::storage::host::{Host, Memory};
use crate::tcp::stream::ByteStream;

/// Pieces up to this size, in bytes, are copied as they come, with no region queued for them.
const SMALL: u64 = 256;

/// What it is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// So many bytes of the request are sent.
    Sending(usize),
    /// The head of the response is being gathered.
    Head(Scan),
    /// The body.
    Body(Framing),
}

/// How it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// At once.
    On,
    /// When more has come, or the stream takes more.
    Wait,
    /// When the sink takes more.
    Refused,
    /// The head of the response is there.
    Head,
    /// The body has come.
    Over,
}

/// Why it does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The stream has ended too early.
    Broken(Error),
    /// The server broke the protocol.
    Fault(Fault),
    /// Something else, which another connection would not change.
    Failed(Error),
}

/// An exchange.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    stage: Stage,
    /// Bytes of the response so far.
    heard: u64,
    /// Bytes of data that are still to be passed over.
    skip: u64,
    /// Offset of the next byte of data in the destination, and where the data that is wanted ends.
    at: u64,
    end: u64,
    /// Bytes of the region that the stream has for data; 0: none.
    queued: u64,
    /// How many of them have come.
    filled: u64,
}

type Result<T> = core::result::Result<T, Trouble>;

impl Exchange {
    /// A request is to be sent.
    pub fn new() -> Self {
        Exchange { stage: Stage::Sending(0), heard: 0, skip: 0, at: 0, end: 0, queued: 0, filled: 0 }
    }

    /// Bytes of the response that have come.
    pub fn heard(&self) -> u64 {
        self.heard.wrapping_add(self.filled)
    }

    /// Offset in the destination up to which all bytes have come.
    pub fn edge(&self) -> u64 {
        self.at.wrapping_add(self.filled)
    }

    /// Whether the body has ended, and what follows on the stream would be another response.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Body(framing) if framing.is_over())
    }

    /// Whether the head has come, and the body is being read.
    pub fn has_body(&self) -> bool {
        matches!(self.stage, Stage::Body(_))
    }

    /// Whether less has come than was to be passed over.
    pub fn is_short(&self) -> bool {
        self.skip > 0
    }

    /// Another head is to come: that was an interim response.
    pub fn again(&mut self) {
        self.stage = Stage::Head(Scan::default());
    }

    /// A body comes: its first `skip` bytes are passed over, the others go to `at` of the destination and on, up to `end`.
    pub fn body(&mut self, framing: Framing, skip: u64, at: u64, end: u64) {
        self.stage = Stage::Body(framing);
        (self.skip, self.at, self.end) = (skip, at, end);
    }

    /// Does one thing. `text`: the request; then the head of the response.
    pub fn turn<H: Host, S: ByteStream<H>>(
        &mut self,
        stream: &mut S,
        text: &mut heapless::Vec<u8, MAX_HEAD>,
        dest: &mut Dest<H>,
    ) -> Result<Turn> {
        match self.stage {
            Stage::Sending(sent) => {
                let rest = text.get(sent..).unwrap_or(&[]);
                let count = stream.send(rest).map_err(Trouble::Broken)?;
                if count >= rest.len() {
                    text.clear();
                    self.again();
                    return Ok(Turn::On);
                }
                self.stage = Stage::Sending(sent.saturating_add(count));
                Ok(Turn::Wait)
            }
            Stage::Head(scan) => self.head(stream, text, scan),
            Stage::Body(framing) => self.data(stream, dest, framing),
        }
    }

    fn head<H: Host, S: ByteStream<H>>(
        &mut self,
        stream: &mut S,
        text: &mut heapless::Vec<u8, MAX_HEAD>,
        mut scan: Scan,
    ) -> Result<Turn> {
        let part = front(stream)?;
        if part.is_empty() {
            return self.nothing(stream);
        }
        let (count, ended) = scan.feed(part);
        let kept = text.extend_from_slice(part.get(..count).unwrap_or(part));
        self.consume(stream, count)?;
        self.stage = Stage::Head(scan);
        match (kept, ended) {
            (Err(_), _) => Err(Trouble::Fault(Fault::HeadTooLong)),
            (_, true) => Ok(Turn::Head),
            _ => Ok(Turn::On),
        }
    }

    /// Nothing can be read: more is waited for, unless nothing will come.
    fn nothing<H: Host, S: ByteStream<H>>(&mut self, stream: &mut S) -> Result<Turn> {
        match (stream.ended(), &mut self.stage) {
            (None, _) => Ok(Turn::Wait),
            (Some(Ok(())), Stage::Body(framing @ Framing::UntilEnd)) => {
                *framing = Framing::Length(0);
                Ok(Turn::Over)
            }
            (Some(Ok(())), Stage::Body(_)) => Err(Trouble::Broken(Error::EndOfFile)),
            (Some(Ok(())), _) => Err(Trouble::Broken(Error::ConnectionReset)),
            (Some(Err(why)), _) => Err(Trouble::Broken(why)),
        }
    }

    fn consume<H: Host, S: ByteStream<H>>(&mut self, stream: &mut S, count: usize) -> Result<()> {
        stream.consume(count).map_err(Trouble::Broken)?;
        self.heard = self.heard.wrapping_add(count as u64);
        Ok(())
    }

    /// So much data has come to its place.
    fn took(&mut self, mut framing: Framing, count: u64) {
        framing.took(count);
        self.stage = Stage::Body(framing);
        self.at = self.at.wrapping_add(count);
    }

    /// Looks at the region that the stream has.
    fn region<H: Host, S: ByteStream<H>>(&mut self, stream: &mut S, framing: Framing) -> Result<Turn> {
        self.filled = stream.received().map_err(Trouble::Broken)?.unwrap_or(0) as u64;
        if self.filled < self.queued && stream.ended().is_none() {
            return Ok(Turn::Wait);
        }
        self.give_back(stream, framing)?;
        Ok(Turn::On)
    }

    fn give_back<H: Host, S: ByteStream<H>>(&mut self, stream: &mut S, framing: Framing) -> Result<()> {
        let count = stream.take_back().map_err(Trouble::Broken)? as u64;
        self.queued = 0;
        self.filled = 0;
        self.heard = self.heard.wrapping_add(count);
        self.took(framing, count);
        Ok(())
    }

    /// Takes the region back from a stream that is given up, so that what has come counts.
    pub fn abandon<H: Host, S: ByteStream<H>>(&mut self, stream: &mut S) {
        if let Stage::Body(framing) = self.stage
            && self.queued > 0
            && self.give_back(stream, framing).is_err()
        {
            self.queued = 0;
            self.filled = 0;
        }
    }

    fn data<H: Host, S: ByteStream<H>>(
        &mut self,
        stream: &mut S,
        dest: &mut Dest<H>,
        mut framing: Framing,
    ) -> Result<Turn> {
        if self.queued > 0 {
            return self.region(stream, framing);
        }
        let part = front(stream)?;
        if framing.is_over() {
            // RFC 9112 §6.3: nothing was asked for that this could be.
            return if part.is_empty() { Ok(Turn::Over) } else { Err(Trouble::Fault(Fault::Longer)) };
        }
        let left = framing.data();
        if left == 0 {
            if part.is_empty() {
                return self.nothing(stream);
            }
            let count = framing.frame(part).map_err(Trouble::Fault)?;
            self.consume(stream, count)?;
            self.stage = Stage::Body(framing);
            return Ok(Turn::On);
        }
        if self.skip > 0 {
            if part.is_empty() {
                return self.nothing(stream);
            }
            let count = self.skip.min(left).min(part.len() as u64);
            self.consume(stream, count as usize)?;
            framing.took(count);
            self.stage = Stage::Body(framing);
            self.skip = self.skip.wrapping_sub(count);
            return Ok(Turn::On);
        }
        if self.at >= self.end {
            // All that was wanted; the rest is not waited for.
            return Ok(Turn::Over);
        }
        let most = left.min(self.end.wrapping_sub(self.at));
        if let Some((memory, at, room)) = dest.place(self.at) {
            let memory = memory.clone();
            return self.land(stream, framing, &memory, at, most, room, matches!(dest, Dest::Window(..)));
        }
        if matches!(dest, Dest::Window(..)) {
            return Ok(Turn::Refused);
        }
        if part.is_empty() {
            return self.nothing(stream);
        }
        let offered = part.get(..usize::try_from(most).unwrap_or(usize::MAX)).unwrap_or(part);
        let (offered, count) = (offered.len(), dest.put(self.at, offered).map_err(Trouble::Failed)?);
        self.consume(stream, count)?;
        self.took(framing, count as u64);
        Ok(if count < offered { Turn::Refused } else { Turn::On })
    }

    /// Leads up to `most` bytes to `memory`, which has room for `room` bytes from `at` on.
    #[allow(clippy::too_many_arguments)] // Each is a number of its own.
    fn land<H: Host, S: ByteStream<H>>(
        &mut self,
        stream: &mut S,
        framing: Framing,
        memory: &H::Memory,
        at: usize,
        most: u64,
        room: u64,
        window: bool,
    ) -> Result<Turn> {
        let part = front(stream)?;
        let known = framing != Framing::UntilEnd;
        if room == 0 || (known && !window && most > room) {
            return match () {
                () if window => Ok(Turn::Refused),
                // Perhaps the stream ends here as well.
                () if !known && part.is_empty() => self.nothing(stream),
                () => Err(Trouble::Failed(Error::TooBig)),
            };
        }
        let want = most.min(room);
        if !part.is_empty() && (part.len() as u64 >= want || want <= SMALL) {
            let piece = part.get(..usize::try_from(want).unwrap_or(usize::MAX)).unwrap_or(part);
            let count = piece.len();
            memory.write(at, piece).map_err(|_| Trouble::Failed(Error::TooBig))?;
            self.consume(stream, count)?;
            self.took(framing, count as u64);
            return Ok(Turn::On);
        }
        if want <= SMALL {
            return self.nothing(stream);
        }
        if part.is_empty() && stream.ended().is_some() {
            return self.nothing(stream);
        }
        let len = usize::try_from(want).unwrap_or(usize::MAX);
        stream.receive_into(memory, at, len).map_err(Trouble::Broken)?;
        self.queued = len as u64;
        Ok(Turn::On)
    }
}

/// The bytes of a stream that can be read at once.
fn front<H: Host, S: ByteStream<H>>(stream: &S) -> Result<&[u8]> {
    let (front, back) = stream.peek().map_err(Trouble::Broken)?;
    Ok(if front.is_empty() { back } else { front })
}
