//! Sending blocks: a window at a time, again from the first that was not acknowledged when the server says so or says
//! nothing, never because an acknowledgement comes twice (RFC 1123 §4.2.3.1).

use super::session::{Room, Session};
use super::supply::{self, Cursor};
use super::transfer::{Direction, Turn};
use super::window::distance;
use crate::client::operation::{Cx, Datagram};
use crate::stack::egress::TxError;
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::{Host, Memory, Source, SourceOf, Span};
use crate::storage::time::{Duration, Instant};
use crate::wire::tftp::{Access, DATA_HEADER_LEN, ErrorCode, Packet, emit_data_head};

/// Most blocks sent in one pass.
const BURST: u32 = 64;
/// How often a NIC that is busy is asked again, beside when it says that it is not.
const BUSY_RETRY: Duration = Duration::from_millis(100);

/// One attempt.
#[derive(Debug)]
pub struct Course {
    /// The server has said what it agrees to.
    open: bool,
    /// The last block acknowledged.
    acked: u64,
    /// The block to be sent next, and the one after the last that was ever sent.
    next: u64,
    beyond: u64,
    /// The last block of the file; `u64::MAX` before it is known.
    last: u64,
    /// Where block `acked + 1` begins, and where block `next` does, when lines are converted.
    base: Cursor,
    cursor: Cursor,
    /// The NIC keeps what it is lent, so that blocks are copied.
    copies: bool,
}

/// Sending: where the bytes come from.
pub struct Sending<H: Host> {
    source: SourceOf<H>,
    /// Bytes of the file; `None` before its end was seen.
    size: Option<u64>,
    /// The host has promised that size.
    promised: bool,
    text: bool,
}

/// What became of a block that was to be sent.
enum Sent {
    Yes,
    Later,
    Failed(Error),
}

impl<H: Host> Sending<H> {
    /// From a source of `size` bytes, or until its end; `text`: as lines.
    pub fn new(source: SourceOf<H>, size: Option<u64>, text: bool) -> Self {
        let size = match (&source, size) {
            (Source::Memory(memory), None) => Some(memory.len() as u64),
            (_, size) => size,
        };
        Sending { source, size, promised: size.is_some(), text }
    }

    /// Bytes of block `c.next`, and whether it is known to be the last; for lines, where the next begins.
    fn measure(&mut self, c: &Course, s: &Session) -> Result<(usize, Cursor), Error> {
        let full = usize::from(s.blksize);
        if self.text {
            let mut end = c.cursor;
            let len = supply::skip::<H>(&mut self.source, &mut end, full)?;
            return Ok((len, end));
        }
        let rest = self.size.map_or(u64::MAX, |size| size.saturating_sub(s.offset(c.next)));
        Ok((usize::try_from(rest).unwrap_or(usize::MAX).min(full), c.cursor))
    }

    /// Sends block `c.next`.
    fn send(&mut self, c: &mut Course, s: &Session, cx: &mut Cx<'_, '_, H>) -> Sent {
        let Some(socket) = s.socket() else { return Sent::Failed(Error::Invalid) };
        let offset = s.offset(c.next);
        let head = emit_data_head(c.next as u16);
        // The second turn is for a source whose end was seen in the first.
        for _ in 0..2 {
            let (len, end) = match self.measure(c, s) {
                Ok(measured) => measured,
                Err(why) => return Sent::Failed(why),
            };
            let mut broken = None;
            let sent = match &mut self.source {
                Source::Memory(memory) if !self.text && !c.copies => {
                    let at = usize::try_from(offset).unwrap_or(usize::MAX);
                    if at.checked_add(len).is_none_or(|end| end > memory.len()) {
                        return Sent::Failed(Error::EndOfFile);
                    }
                    cx.send(socket, s.peer, &[Span::Bytes(&head), Span::Memory { memory, at, len }])
                }
                source => {
                    let mut cursor = c.cursor;
                    let mut cursor = self.text.then_some(&mut cursor);
                    let whole = DATA_HEADER_LEN.saturating_add(len);
                    cx.udp.send_filled(cx.stack, socket, s.peer, whole, &mut |out| {
                        supply::fill::<H>(source, offset, cursor.as_deref_mut(), &head, out).map_err(|e| {
                            broken = Some(e);
                            TxError::Invalid
                        })
                    })
                }
            };
            match (sent, broken) {
                (_, Some((got, Error::EndOfFile))) if !self.promised && self.size.is_none() && !self.text => {
                    self.size = Some(offset.saturating_add(got as u64));
                }
                (_, Some((_, why))) => return Sent::Failed(why),
                (Err(TxError::Resolving | TxError::Busy), None) => return Sent::Later,
                (Err(TxError::TooBig(_)), None) => return Sent::Failed(Error::MessageSize),
                // A lost frame, or a next hop that does not answer for now: the timer repeats it.
                (Ok(()) | Err(_), None) => {
                    if len < usize::from(s.blksize) {
                        c.last = c.next;
                    }
                    if c.next < c.beyond {
                        cx.stack.stats.count(Counter::TftpRetransmit);
                    }
                    c.cursor = end;
                    c.next = c.next.saturating_add(1);
                    c.beyond = c.beyond.max(c.next);
                    return Sent::Yes;
                }
            }
        }
        Sent::Failed(Error::EndOfFile)
    }

    /// Goes back to the first block that was not acknowledged.
    fn rewind(c: &mut Course, s: &mut Session) {
        c.next = c.acked.saturating_add(1);
        c.cursor = c.base;
        s.rtt.spoil();
    }

    fn acknowledged(&mut self, c: &mut Course, s: &mut Session, cx: &mut Cx<'_, '_, H>, wire: u16) -> Turn {
        let now = cx.now();
        let count = u64::from(distance(c.acked, wire));
        if count == 0 || count >= c.beyond.saturating_sub(c.acked) {
            // Had before, or of what was never sent.
            cx.stack.stats.count(if count == 0 { Counter::TftpDuplicate } else { Counter::DropTftpBlock });
            return Turn::Stay;
        }
        if self.text {
            // Blocks have no offsets of their own: the place is found by going there.
            for _ in 0..count {
                if let Err(why) = supply::skip::<H>(&mut self.source, &mut c.base, usize::from(s.blksize)) {
                    return Turn::Fail(why, ErrorCode::NOT_DEFINED, b"read error");
                }
            }
        }
        c.acked = c.acked.saturating_add(count);
        s.progress(now);
        cx.progress.done = s.offset(c.acked.saturating_add(1)).min(self.size.unwrap_or(u64::MAX));
        if c.next > c.acked.saturating_add(1) || c.next <= c.acked {
            // RFC 7440 §4: the server has nothing beyond the block it acknowledges.
            Self::rewind(c, s);
        }
        Turn::Stay
    }
}

impl<H: Host> Direction<H> for Sending<H> {
    type Course = Course;
    const ACCESS: Access = Access::Write;

    fn room(&self, cx: &Cx<'_, '_, H>, _: Option<usize>) -> Room {
        Room::Source(matches!(self.source, Source::Memory(_)) && !self.text && !copies(cx))
    }

    fn size(&self) -> Option<u64> {
        self.size.filter(|_| !self.text)
    }

    fn start(&mut self, _: Instant, _: &Session) -> Course {
        Course {
            open: false,
            acked: 0,
            next: 1,
            beyond: 1,
            last: u64::MAX,
            base: Cursor::default(),
            cursor: Cursor::default(),
            copies: true,
        }
    }

    fn agreed(&mut self, c: &mut Course, s: &mut Session, cx: &mut Cx<'_, '_, H>, _: Option<u64>) -> Turn {
        c.copies = copies(cx);
        c.open = true;
        s.arm(cx.now());
        cx.progress.total = self.size();
        Turn::Stay
    }

    fn agreed_again(&mut self, _: &mut Course, _: &Session, _: Instant) {
        // The first block is on its way, or the timer sends it again.
    }

    fn is_plain_answer(packet: &Packet<'_>) -> bool {
        matches!(packet, Packet::Ack { block: 0 })
    }

    fn packet(
        &mut self,
        c: &mut Course,
        s: &mut Session,
        cx: &mut Cx<'_, '_, H>,
        _: &Datagram<'_>,
        packet: &Packet<'_>,
    ) -> Turn {
        match packet {
            Packet::Ack { block: 0 } if !c.open => self.agreed(c, s, cx, None),
            Packet::Ack { block } => self.acknowledged(c, s, cx, *block),
            _ => {
                cx.stack.stats.count(Counter::DropTftpMalformed);
                Turn::Stay
            }
        }
    }

    fn poll(&mut self, c: &mut Course, s: &mut Session, cx: &mut Cx<'_, '_, H>) -> Turn {
        let now = cx.now();
        if c.acked >= c.last {
            let size = self.size.filter(|_| !self.text).unwrap_or(cx.progress.done);
            return Turn::Done(size, c.acked);
        }
        if now >= s.deadline {
            if let Err(why) = s.expire() {
                return Turn::Fail(why, ErrorCode::NOT_DEFINED, b"timeout");
            }
            Self::rewind(c, s);
            s.arm(now);
        }
        let edge = c.acked.saturating_add(u64::from(s.window));
        for _ in 0..BURST {
            if c.next > edge.min(c.last) {
                return Turn::Stay;
            }
            let first = c.next == c.acked.saturating_add(1) && c.next == c.beyond;
            match self.send(c, s, cx) {
                Sent::Yes if first => {
                    s.rtt.start(now);
                    s.arm(now);
                }
                Sent::Yes => s.arm(now),
                Sent::Later => return Turn::At(s.deadline.min(now + BUSY_RETRY)),
                Sent::Failed(why) => return Turn::Fail(why, ErrorCode::NOT_DEFINED, b"read error"),
            }
        }
        Turn::At(now)
    }
}

/// Whether some NIC keeps spans of lent memory: then blocks are copied, for the memory may be gone when it is done.
fn copies<H: Host>(cx: &Cx<'_, '_, H>) -> bool {
    cx.stack.each_interface().any(|(id, _)| cx.stack.keeps_spans(id))
}
