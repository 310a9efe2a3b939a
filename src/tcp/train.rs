//! Trains of segments: full segments of new data that leave behind each other, from one look at the connection. They come
//! from the send queue in a turn of the connection, or from what its user gives, as it is given: then each byte goes to the
//! frame and to the ring, from where it would be sent again, while the caches have it. Whatever is not as usual is left to
//! the segments that `send` makes one by one.

use super::conn::{Connection, Context};
use super::send::SUM_AT;
use super::sender::Choice;
use super::seq::Pos;
use crate::FAST;
use crate::stack::Stack;
use crate::stack::egress::TxError;
use crate::stack::train::{Carried, Train};
use crate::storage::host::{Host, Span, Token};
use crate::wire::tcp::Flags;

/// Where the sequence number lies in a header.
const SEQ_AT: usize = 4;
/// Segments that leave while one call gives bytes.
const AT_ONCE: usize = 64;

/// The NIC has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// A train that is being sent.
struct Going {
    train: Train,
    start: Pos,
    /// Where the next segment begins, and how long each is.
    at: Pos,
    len: usize,
    edge: Pos,
}

impl<'a, H: Host> Connection<'a, H> {
    /// Largest payload of a segment of a train; `None`: what is to be sent now is not as usual.
    #[inline]
    fn train_room(&self) -> Option<u32> {
        let usual = FAST && self.state.sends() && !self.rx.has_sack();
        usual.then(|| self.room(self.stamp_len()))
    }

    /// Begins a train of segments with `room` bytes each.
    #[inline]
    fn begin(&mut self, stack: &mut Stack<'a, H>, room: u32) -> Option<Going> {
        let len = room as usize;
        let start = self.tx.nxt;
        self.find_way(stack).ok()?;
        let edge = self.rx.edge;
        let mut header = self.header(stack.now, start, Flags::ACK);
        *header.bytes.get_mut(SEQ_AT..)?.first_chunk_mut::<4>()? = [0; 4];
        match self.way.as_ref().map(|way| stack.train(way, header.bytes(), SUM_AT, SEQ_AT, len)) {
            Some(Ok(train)) => Some(Going { train, start, at: start, len, edge }),
            _ => {
                self.rx.take_back(edge);
                None
            }
        }
    }

    /// Ends a train: what was sent of it counts.
    #[inline]
    fn arrive(&mut self, stack: &Stack<'a, H>, going: &Going) {
        let sent = usize::try_from(going.at.since(going.start)).unwrap_or(0);
        if sent == 0 {
            self.rx.take_back(going.edge);
            return;
        }
        self.rx.acked();
        let all = Choice { at: going.start, len: sent, fin: false, again: false };
        self.tx.sent(stack.now, &all, self.options.user_timeout);
    }

    /// Sends full segments of what is queued, at most `most`; how many.
    #[inline]
    pub(super) fn output_train(&mut self, cx: &mut Context<'_, 'a, H>, most: usize) -> Result<usize, Full> {
        if self.tx.una == self.tx.nxt {
            return Ok(0);
        }
        let Some(room) = self.train_room() else { return Ok(0) };
        let left = self.tx.queue.end().since(self.tx.nxt);
        match self.tx.full_segments(left, room, most) {
            0 | 1 => Ok(0),
            count => self.send_train(cx, room, count),
        }
    }

    fn send_train(&mut self, cx: &mut Context<'_, 'a, H>, room: u32, count: usize) -> Result<usize, Full> {
        let Context { stack, pages, .. } = cx;
        if self.tx.queue.span(pages, self.tx.nxt, room as usize).is_none() {
            return Ok(0);
        }
        let Some(mut going) = self.begin(stack, room) else { return Ok(0) };
        let keeps = stack.keeps_spans(self.nic);
        let (mut sent, mut full) = (0usize, false);
        while sent < count {
            let Some((span, token)) = self.tx.queue.span(pages, going.at, going.len) else { break };
            let seq = going.at.seq(self.iss).0.to_be_bytes();
            match stack.send_in_train(&mut going.train, seq, Carried::Span(span), token) {
                Ok(()) if keeps && token != Token(0) => pages.lend(token),
                // A frame that is lost is sent.
                Ok(()) | Err(TxError::Failed(_)) => {}
                Err(error) => {
                    full = error == TxError::Busy;
                    break;
                }
            }
            sent = sent.saturating_add(1);
            going.at += u64::from(room);
        }
        self.arrive(stack, &going);
        if full { Err(Full) } else { Ok(sent) }
    }

    /// Sends full segments of `bytes` at once and keeps a copy in the ring, where less than a segment waits before them; how
    /// many bytes were taken. The last byte is left to the next turn, which knows whether it is the last.
    pub(super) fn send_through(&mut self, cx: &mut Context<'_, 'a, H>, bytes: &[u8]) -> usize {
        let Context { stack, pages, .. } = cx;
        let Some(room) = self.train_room() else { return 0 };
        let len = room as usize;
        let waiting = self.tx.queue.end().since(self.tx.nxt);
        if waiting >= u64::from(room) || self.tx.fin {
            return 0;
        }
        self.tx.restart_after_idle(stack.now);
        let all = waiting.saturating_add(bytes.len().min(self.tx.queue.free()) as u64);
        let count = self.tx.full_segments(all, room, AT_ONCE);
        if count == 0 {
            return 0;
        }
        let Some(mut going) = self.begin(stack, room) else { return 0 };
        // What waits is made a segment.
        let missing = if waiting > 0 { len.saturating_sub(waiting as usize) } else { 0 };
        let (first, mut rest) = bytes.split_at_checked(missing).unwrap_or_default();
        self.tx.queue.push(first);
        for number in 0..count {
            let piece = match rest.split_at_checked(len) {
                _ if waiting > 0 && number == 0 => None,
                Some((piece, more)) => {
                    rest = more;
                    Some(piece)
                }
                None => break,
            };
            let (carried, kept) = match piece {
                None => match self.tx.queue.span(pages, going.at, len) {
                    Some((span, _)) => (Carried::Span(span), true),
                    None => break,
                },
                Some(piece) => match self.tx.queue.ahead(len) {
                    Some(copy) => (Carried::Through(piece, copy), true),
                    // In the ring it would lie in two pieces.
                    None => (Carried::Span(Span::Bytes(piece)), false),
                },
            };
            let seq = going.at.seq(self.iss).0.to_be_bytes();
            match (stack.send_in_train(&mut going.train, seq, carried, Token(0)), piece) {
                (Ok(()), Some(_)) if kept => self.tx.queue.take_ahead(len),
                // A frame that is lost is sent, and what it carried must be in the ring.
                (Ok(()) | Err(TxError::Failed(_)), Some(piece)) => {
                    self.tx.queue.push(piece);
                }
                (Ok(()) | Err(TxError::Failed(_)), None) => {}
                (Err(_), _) => break,
            }
            going.at += u64::from(room);
        }
        self.arrive(stack, &going);
        let sent = usize::try_from(going.at.since(going.start)).unwrap_or(0);
        sent.saturating_sub(waiting as usize).max(first.len())
    }
}
