//! Receiving blocks: where they land, when they are acknowledged, what counts as lost, and what the windows come to
//! (RFC 1350, RFC 7440, design §5.1).

use super::dest::{Dest, Taken};
use super::session::{Room, Session, UNSENT_WAIT};
use super::transfer::{Direction, Turn};
use super::window::{Class, Window};
use crate::client::operation::{Cx, Datagram};
use crate::stack::egress::TxError;
use crate::stack::landing::{Flow, Place, Spot};
use crate::stack::stats::Counter;
use crate::storage::checksum::Sum;
use crate::storage::error::Error;
use crate::storage::host::{Host, Memory, Span};
use crate::storage::saturating;
use crate::storage::time::{Duration, Instant};
use crate::udp::Meta;
use crate::udp::lane::Arrived;
use crate::wire::tftp::{Access, DATA_HEADER_LEN, ErrorCode, Packet, emit_ack};
use core::net::Ipv4Addr;

/// Shortest time without any block after which a transfer is begun anew with less.
const NOTHING_FLOOR: Duration = Duration::from_millis(500);
/// How often a sink that refused is asked again.
const SINK_RETRY: Duration = Duration::from_millis(1);
/// Most calls of a sink that takes little, in one pass.
const SINK_CALLS: u32 = 64;
/// The end of a transfer whose bytes find no room.
const NO_ROOM: (ErrorCode, &[u8]) = (ErrorCode::DISK_FULL, b"no room");

/// A block the sink has not taken yet.
#[derive(Clone, Copy, Debug)]
struct Refused {
    since: Instant,
    /// Bytes of it, if the socket's queue keeps it.
    staged: Option<u16>,
}

/// Holes of two blocks and more since the request that are no chance any more, whatever it costs to begin anew.
const CUTS: u8 = 2;
/// Blocks that must come beyond a missing one before it counts as lost, until some were seen to be overtaken.
const OVERTAKERS: u32 = 2;
/// Frames that may still come when something new is asked for.
const QUIET: u64 = 2;

/// Blocks of a file whose length is not known, for the question whether it is early.
const LENGTH: u64 = 4096;

/// What the windows since the (last) request came to.
#[derive(Clone, Copy, Debug, Default)]
struct Yield {
    /// When the first block was asked for.
    opened: Instant,
    /// Time spent waiting for timers.
    stalled: Duration,
    /// Windows in a row whose end did not come.
    tails: u8,
    /// Windows in a row that did not come whole.
    broken: u8,
    /// Most blocks that came whole in one of these.
    best: u16,
    /// Holes of two blocks and more, in any window: what a receive ring loses that is smaller than the window. One block
    /// alone may be lost to chance.
    cuts: u8,
    /// Blocks that came before those of these holes that some came before, all together, and the number of those.
    before: u16,
    measured: u8,
    /// Blocks that came, and blocks that did not or came for nothing.
    useful: u32,
    wasted: u32,
}

impl Yield {
    fn whole(&mut self, blocks: u32) {
        self.tails = 0;
        self.broken = 0;
        self.best = 0;
        self.useful = self.useful.saturating_add(blocks);
    }

    fn broken(&mut self, arrived: u32, window: u16) {
        self.broken = self.broken.saturating_add(1);
        self.best = self.best.max(u16::try_from(arrived).unwrap_or(u16::MAX));
        self.useful = self.useful.saturating_add(arrived);
        self.wasted = self.wasted.saturating_add(u32::from(window).saturating_sub(arrived));
    }

    /// The end of a window did not come.
    fn tail(&mut self, arrived: u32, window: u16) {
        self.tails = self.tails.saturating_add(1);
        self.broken(arrived, window);
        if arrived.saturating_add(2) <= u32::from(window) {
            self.cut(arrived);
        }
    }

    /// Two blocks or more are missing behind `arrived` of a window.
    fn cut(&mut self, arrived: u32) {
        self.cuts = self.cuts.saturating_add(1);
        self.before = self.before.saturating_add(u16::try_from(arrived).unwrap_or(u16::MAX));
        self.measured = self.measured.saturating_add(u8::from(arrived > 0));
    }

    /// What [`Self::cut`] was told of was no hole: the blocks were only overtaken.
    fn uncut(&mut self, arrived: u16) {
        self.cuts = self.cuts.saturating_sub(1);
        self.before = self.before.saturating_sub(arrived);
        self.measured = self.measured.saturating_sub(u8::from(arrived > 0));
    }

    /// Whether the receiver cannot take what comes at once, and it is early enough to begin anew with less. The first hole
    /// is only acknowledged (RFC 7440 §4, design §5.1); one is enough where the window was made smaller before. So are
    /// windows in a row of which half comes for nothing.
    fn overflows(&self, smaller: bool, blocks: Option<u64>) -> bool {
        let (useful, all) = (u64::from(self.useful), blocks.unwrap_or(LENGTH));
        let enough = if smaller { 1 } else { CUTS };
        let halves = self.broken >= 4 && self.wasted >= self.useful;
        (halves || self.cuts >= enough) && useful.saturating_mul(2) <= all
    }

    /// The window that is likely to come whole: what came before a hole, on average, and no more than the next power of
    /// two below, for what came may have been taken out while more came.
    fn fitting(&self) -> u16 {
        match self.before.checked_div(u16::from(self.measured)) {
            None => self.best,
            Some(mean) => 1u16.checked_shl(mean.max(1).ilog2()).unwrap_or(1),
        }
    }

    /// Whether going on costs more than beginning anew with windows that arrive whole. `blocks`: those of the whole file,
    /// if known.
    fn is_poor(&self, now: Instant, blocks: Option<u64>) -> bool {
        if self.tails < 2 && self.broken < 2 {
            return false;
        }
        // What came took `spent`, and would have taken `needed` without waits and without what came for nothing. The
        // rest of the file is to come at the one rate, or the whole of it at the other. Units of 64 us: no overflow.
        let since = |begin| now.since(begin).as_micros() >> 6;
        let (spent, busy) = (since(self.opened), since(self.opened + self.stalled));
        let useful = u64::from(self.useful.max(1));
        let sent = useful.wrapping_add(u64::from(self.wasted));
        let needed = saturating::div(saturating::mul(busy, useful), sent);
        let (rest, all) = match blocks {
            Some(all) => (all.saturating_sub(useful), all),
            None => (1, 2),
        };
        saturating::mul(rest, spent) > saturating::mul(all, needed)
    }
}

/// Blocks of the whole file, if its length is known.
fn blocks_of<H: Host>(s: &Session, cx: &Cx<'_, '_, H>) -> Option<u64> {
    cx.progress.total.map(|size| saturating::div(size, u64::from(s.blksize)))
}

/// One attempt.
#[derive(Debug)]
pub struct Course {
    window: Window,
    /// The last block acknowledged.
    acked: u64,
    /// The first missing block of the gap that was acknowledged last, and when.
    gap: u64,
    gap_at: Instant,
    /// The blocks that came before it, if it counted as a hole.
    gap_cut: Option<u16>,
    /// Blocks that must come beyond a missing one before it counts as lost.
    overtakers: u32,
    ack_due: bool,
    /// The acknowledgement that is due answers a whole window: what comes next tells the round trip time.
    ack_clean: bool,
    /// An acknowledgement is held back until a reader has room for what it would bring.
    held: bool,
    /// When the server was last heard saying something of use, or told something.
    stirred: Instant,
    /// Bytes of the file, once the last block has come.
    length: u64,
    yields: Yield,
    refused: Option<Refused>,
}

impl Course {
    /// Position up to which all bytes have come, and the first block of which nothing has.
    pub fn edges(&self, session: &Session) -> (u64, u64) {
        let edge = if self.window.complete() { self.length } else { session.offset(self.window.next()) };
        (edge, self.window.beyond().wrapping_sub(1))
    }

    /// Whether an acknowledgement waits for the reader.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Blocks that have come in order since the last acknowledgement.
    fn unacknowledged(&self) -> u32 {
        self.window.confirmed().wrapping_sub(self.acked) as u32
    }

    /// The last block that may come before the next acknowledgement.
    fn edge(&self, session: &Session) -> u64 {
        self.acked.wrapping_add(u64::from(session.window))
    }

    /// Whether a new block is taken: one of the window, or the next one, though the window's acknowledgement may still wait for
    /// room in the NIC. A server that answers each repeated acknowledgement with a block (RFC 1123 §4.2.3.1) has more under way
    /// than the window, and never sends a block twice.
    fn is_wanted(&self, session: &Session, block: u64) -> bool {
        block <= self.edge(session) || block == self.window.next()
    }

    /// Whether nothing of use has come or gone for as long as an answer takes: a repetition then means a loss.
    fn is_quiet(&self, now: Instant, session: &Session) -> bool {
        now.since(self.stirred) >= session.rtt.tail(session.timeout())
    }

    /// Whether the window was made smaller and a further hole means that it is still too wide: not where blocks overtake
    /// each other.
    fn is_narrowed(&self, session: &Session) -> bool {
        session.has_shrunk() && self.overtakers == OVERTAKERS
    }

    fn nothing_came(&self) -> bool {
        self.window.confirmed() == 0 && self.window.ahead() == 0
    }

    /// When an attempt is given up of which nothing has come.
    fn barren_at(&self, session: &Session) -> Instant {
        let rtt = session.rtt.smoothed().unwrap_or(Duration::ZERO);
        self.yields.opened + NOTHING_FLOOR.max(rtt.times(4))
    }

    /// Asks for a missing block, once, when two blocks beyond it have come, or none can come any more: a block that was
    /// only overtaken is not missing (RFC 7440 §4).
    #[inline]
    fn notice_gap(&mut self, now: Instant, window: u16, block: u64, edge: u64, is_last: bool) {
        let next = self.window.next();
        if block < next || self.gap == next || window == 1 {
            return;
        }
        if block == edge || is_last || self.window.ahead() >= self.overtakers {
            self.gap = next;
            self.gap_at = now;
            self.yields.broken(self.unacknowledged(), window);
            self.gap_cut = None;
            if self.window.hole() > 1 {
                self.yields.cut(self.unacknowledged());
                self.gap_cut = Some(u16::try_from(self.unacknowledged()).unwrap_or(u16::MAX));
            }
            self.ack_due = true;
            self.ack_clean = false;
        }
    }

    /// A block that had come before.
    fn old_block(&mut self, now: Instant, session: &Session, block: u64) {
        // RFC 1123 §4.2.3.1: a copy that follows its original at once must not make two of everything that comes after;
        // a copy after a silence means that the acknowledgement was lost.
        if self.is_quiet(now, session) {
            if block <= self.acked && self.refused.is_none() {
                self.ack_due = true;
                self.ack_clean = false;
            }
            self.stirred = now;
        } else if block > self.acked {
            // The server is repeating this window: more of it will come.
            self.stirred = now;
        }
    }

    /// The sink does not take all of the next block: it is kept in the socket's queue if that has room, else the server
    /// is asked for it again.
    fn refuse<H: Host>(&mut self, s: &mut Session, cx: &mut Cx<'_, '_, H>, meta: &Meta, data: &[u8], some: bool) {
        let now = cx.now();
        let kept = s.socket().is_some_and(|socket| cx.udp.enqueue(socket, *meta, data));
        let since = match self.refused {
            Some(refused) if !some => refused.since,
            _ => now,
        };
        self.refused = Some(Refused { since, staged: kept.then_some(data.len() as u16) });
        s.deadline = now + s.timeout().divided_by(2);
    }

    /// Nothing has come for as long as the timer ran.
    #[inline(never)]
    fn expired<H: Host>(&mut self, s: &mut Session, cx: &mut Cx<'_, '_, H>) -> Turn {
        let now = cx.now();
        self.ack_due = true;
        self.ack_clean = false;
        if self.refused.is_some() {
            // The server hears of us, so that it does not give up (design §5.1).
            s.deadline = now + s.timeout().divided_by(2);
            return Turn::Stay;
        }
        let timeout = s.timeout();
        self.yields.stalled = self.yields.stalled + s.rtt.timer(timeout);
        let arrived = self.unacknowledged();
        if arrived > 0 || self.window.ahead() > 0 {
            self.yields.tail(arrived, s.window);
        } else {
            cx.stack.stats.count(Counter::TftpRetransmit);
        }
        let blocks = blocks_of(s, cx);
        let too_much = self.yields.is_poor(now, blocks) || self.yields.overflows(self.is_narrowed(s), blocks);
        if too_much && s.shrink(cx, self.yields.fitting()) {
            return Turn::Again;
        }
        match s.expire() {
            Ok(()) => s.arm(now),
            Err(why) => return Turn::Fail(why, ErrorCode::NOT_DEFINED, b"timeout"),
        }
        Turn::Stay
    }

    /// Sends the acknowledgement that is due. `false`: later.
    #[inline]
    fn acknowledge<H: Host>(&mut self, s: &mut Session, cx: &mut Cx<'_, '_, H>) -> bool {
        let now = cx.now();
        let confirmed = self.window.confirmed();
        let sent = s.send(cx, &[Span::Bytes(&emit_ack(confirmed as u16))]);
        if let Err(TxError::Resolving | TxError::Busy) = sent {
            return false;
        }
        // A lost frame, or a next hop that does not answer for now, is as good as sent: the timer repeats it.
        self.ack_due = false;
        self.acked = confirmed;
        self.stirred = now;
        if core::mem::take(&mut self.ack_clean) {
            s.rtt.start(now);
        } else {
            s.rtt.spoil();
        }
        if self.refused.is_none() {
            s.arm(now);
        }
        true
    }
}

/// Receiving: where the bytes go.
pub struct Receiving<H: Host> {
    /// The destination.
    pub dest: Dest<H>,
    sink_stall: Duration,
}

impl<H: Host> Receiving<H> {
    /// To a destination, which may take nothing for `sink_stall`; zero: [`super::DEFAULT_SINK_STALL`].
    pub fn new(dest: Dest<H>, sink_stall: Duration) -> Self {
        let sink_stall = if sink_stall == Duration::ZERO { super::DEFAULT_SINK_STALL } else { sink_stall };
        Receiving { dest, sink_stall }
    }

    /// Takes a block that is the next one, whole and not the last, straight to a region: nearly every block is like that.
    /// Comes to what [`Self::place`], landing and [`Self::block`] come to; `None` where anything is not as usual.
    #[inline]
    pub fn usual(&self, c: &mut Course, s: &mut Session, cx: &mut Cx<'_, '_, H>, arrived: &Arrived<'_>) -> Option<()> {
        let (header, data) = arrived.payload.split_first_chunk::<DATA_HEADER_LEN>()?;
        let block = c.window.next();
        let [zero, kind, a, b] = *header;
        let expected = u16::from_be_bytes([zero, kind]) == 3
            && u16::from_be_bytes([a, b]) == block as u16
            && data.len() == usize::from(s.blksize)
            && arrived.meta.src == s.peer
            && !c.window.complete()
            && c.refused.is_none()
            // Fragments of another copy may have claimed the range.
            && cx.stack.landing.is_idle();
        let memory = self.dest.region().filter(|_| expected)?;
        let offset = s.offset(block);
        let at = usize::try_from(offset).ok()?;
        if arrived.verified {
            memory.write(at, data).ok()?;
        } else {
            let sum = arrived.before + Sum::of_array(header) + memory.copy_sum(at, data).ok()?;
            if !sum.holds() {
                return None;
            }
        }
        self.taken(c, s, cx, block, offset, data.len(), false);
        Some(())
    }

    /// Takes a block.
    #[inline]
    pub fn block(
        &mut self,
        c: &mut Course,
        s: &mut Session,
        cx: &mut Cx<'_, '_, H>,
        datagram: &Datagram<'_>,
        wire: u16,
    ) -> Turn {
        let now = cx.now();
        // Of a block that landed only the length counts: its bytes need not be here.
        let data = datagram.payload.get(DATA_HEADER_LEN..).unwrap_or(&[]);
        let len = datagram.len.saturating_sub(DATA_HEADER_LEN);
        let blksize = usize::from(s.blksize);
        if len > blksize {
            cx.stack.stats.count(Counter::DropTftpMalformed);
            return Turn::Stay;
        }
        let block = match c.window.classify(wire) {
            Class::New(block) => block,
            Class::Old(block) => {
                cx.stack.stats.count(Counter::TftpDuplicate);
                c.old_block(now, s, block);
                return Turn::Stay;
            }
            Class::Outside => {
                cx.stack.stats.count(Counter::DropTftpBlock);
                return Turn::Stay;
            }
        };
        let edge = c.edge(s);
        let in_order = block == c.window.next();
        let is_last = len < blksize;
        if !c.is_wanted(s, block) {
            cx.stack.stats.count(Counter::DropTftpBlock);
            return Turn::Stay;
        }
        if c.refused.is_some_and(|r| r.staged.is_some()) {
            // The sink has yet to take what is kept for it.
            return Turn::Stay;
        }
        let offset = s.offset(block);
        let taken = match datagram.landed {
            None => self.dest.take(offset, data, in_order, is_last),
            Some(landed) if landed.len == len => Ok(Taken::All),
            // `place` found no room for it.
            Some(_) => Err(Error::TooBig),
        };
        match taken {
            Ok(Taken::All) => {}
            Ok(Taken::NoPlace) => {
                cx.stack.stats.count(Counter::DropTftpBlock);
                c.stirred = now;
                c.notice_gap(now, s.window, block, edge, true);
                return Turn::Stay;
            }
            Ok(Taken::Refused(some)) => {
                c.refuse(s, cx, &datagram.meta, data, some);
                return Turn::Stay;
            }
            Err(why) => return Turn::Fail(why, NO_ROOM.0, NO_ROOM.1),
        }
        c.refused = None;
        self.taken(c, s, cx, block, offset, len, is_last);
        if !c.ack_due {
            c.notice_gap(now, s.window, block, edge, is_last);
            if c.ack_due && c.yields.overflows(c.is_narrowed(s), blocks_of(s, cx)) {
                if edge.saturating_sub(block) <= QUIET && s.shrink(cx, c.yields.fitting()) {
                    return Turn::Again;
                }
                // The answer to a new request would be lost in what is still to come: not before that has ended. The
                // timer does it.
                c.ack_due = false;
            }
        }
        Turn::Stay
    }

    /// Goes on after a block is where it belongs.
    #[inline]
    #[allow(clippy::too_many_arguments)] // One step of `block` and of `offer`.
    fn taken(
        &self,
        c: &mut Course,
        s: &mut Session,
        cx: &mut Cx<'_, '_, H>,
        block: u64,
        offset: u64,
        len: usize,
        is_last: bool,
    ) {
        let now = cx.now();
        c.window.take(block, is_last);
        if block == c.gap && s.rtt.smoothed().is_some_and(|rtt| now.since(c.gap_at) < rtt) {
            // It comes sooner than an answer can: it was not lost but overtaken. More patience from now on.
            if let Some(arrived) = c.gap_cut.take() {
                c.yields.uncut(arrived);
            }
            c.overtakers = c.overtakers.saturating_mul(2).min(64);
        }
        s.progress(now);
        c.stirred = now;
        if is_last {
            c.length = self.dest.converted().unwrap_or(offset.saturating_add(len as u64));
        }
        let blocks = c.unacknowledged();
        if c.window.complete() {
            // RFC 7440 §4, RFC 1350 §6: the last block is acknowledged at once.
            c.ack_due = true;
            cx.progress.done = c.length;
            return;
        }
        cx.progress.done = s.offset(c.window.next());
        if blocks >= u32::from(s.window) {
            c.yields.whole(blocks);
            c.ack_due = true;
            c.ack_clean = true;
        }
    }

    /// Offers the kept block again.
    fn offer(&mut self, c: &mut Course, s: &mut Session, cx: &mut Cx<'_, '_, H>) -> Turn {
        let (Some(refused), Some(socket)) = (c.refused, s.socket()) else { return Turn::Stay };
        let Some(len) = refused.staged.map(usize::from) else { return Turn::Stay };
        let block = c.window.next();
        let offset = s.offset(block);
        let is_last = len < usize::from(s.blksize);
        let mut progress = false;
        for _ in 0..SINK_CALLS {
            let Some((front, back)) = cx.udp.front(socket) else { return Turn::Stay };
            let middle = offset.saturating_add(front.len() as u64);
            let taken = match self.dest.take(offset, front, true, false) {
                Ok(Taken::All) => self.dest.take(middle, back, true, is_last),
                other => other,
            };
            match taken {
                Ok(Taken::All) => {
                    c.refused = None;
                    cx.udp.drop_front(socket);
                    self.taken(c, s, cx, block, offset, len, is_last);
                    // What came meanwhile was dropped: the server goes on from here.
                    c.ack_due = true;
                    c.ack_clean = true;
                    return Turn::Stay;
                }
                Ok(Taken::Refused(some)) => {
                    progress |= some;
                    if !some {
                        break;
                    }
                }
                Ok(Taken::NoPlace) => break,
                Err(why) => return Turn::Fail(why, NO_ROOM.0, NO_ROOM.1),
            }
        }
        if progress && let Some(refused) = &mut c.refused {
            refused.since = cx.now();
        }
        Turn::Stay
    }

    /// Whether the acknowledgement that is due must wait for a reader. The server hears of us all the same, so that it
    /// does not give up: it is told again what it was told last.
    #[inline]
    fn hold(&self, c: &mut Course, s: &mut Session, cx: &mut Cx<'_, '_, H>) -> bool {
        let next = c.window.next();
        let bytes = u64::from(u32::from(s.window).wrapping_mul(u32::from(s.blksize)));
        if c.window.complete() || self.dest.has_room(s.offset(next), bytes) {
            if core::mem::take(&mut c.held) {
                c.ack_clean = false;
            }
            return false;
        }
        let now = cx.now();
        if !c.held {
            c.held = true;
            s.deadline = now + s.timeout().divided_by(2);
        }
        if now >= s.deadline {
            // What it brings has a place already, or is told apart by its number.
            let _ = s.send(cx, &[Span::Bytes(&emit_ack(c.acked as u16))]);
            cx.stack.stats.count(Counter::TftpRetransmit);
            s.deadline = now + s.timeout().divided_by(2);
        }
        true
    }

    #[inline]
    /// See [`crate::client::operation::Operation::place`].
    pub fn place(&self, c: &Course, s: &Session, flow: &Flow, head: &[u8], len: usize) -> Place<H::Memory> {
        let (&[0, 3, a, b, ..], Some(len)) = (head, len.checked_sub(DATA_HEADER_LEN)) else { return Place::Stage };
        if (flow.src, flow.src_port) != (s.peer.addr, s.peer.port) {
            return Place::Stage;
        }
        // Landing rule (a): what has come, or must not come, is summed and not stored.
        let (block, wanted) = match c.window.classify(u16::from_be_bytes([a, b])) {
            Class::New(block) => (block, c.is_wanted(s, block) && len <= usize::from(s.blksize)),
            _ => (1, false),
        };
        let Some((memory, at)) = self.dest.spot(s.offset(block), len) else { return Place::Stage };
        let (at, len) = match wanted && at != usize::MAX {
            true => (at, len),
            // What a reader has no room for now is taken as a whole, and may be passed over.
            false if wanted && !self.dest.is_region() => return Place::Stage,
            false => (memory.len(), 0),
        };
        Place::Region(Spot { memory: memory.clone(), at, len, header: DATA_HEADER_LEN })
    }

    /// See [`crate::client::operation::Operation::guess`].
    pub fn guess(&self, c: &Course, s: &Session, src: Ipv4Addr, nth: usize) -> Option<Spot<H::Memory>> {
        if !self.dest.is_region() || src != s.peer.addr {
            return None;
        }
        let block = c.window.missing(nth).filter(|block| c.is_wanted(s, *block))?;
        let (memory, at) = self.dest.spot(s.offset(block), 0)?;
        let len = memory.len().checked_sub(at)?.min(usize::from(s.blksize));
        (len > 0).then(|| Spot { memory: memory.clone(), at, len, header: DATA_HEADER_LEN })
    }
}

impl<H: Host> Direction<H> for Receiving<H> {
    type Course = Course;
    const ACCESS: Access = Access::Read;

    fn room(&self, _: &Cx<'_, '_, H>, keeps: Option<usize>) -> Room {
        self.dest.room(keeps)
    }

    fn size(&self) -> Option<u64> {
        // RFC 2349: a zero asks for it.
        Some(0)
    }

    fn start(&mut self, now: Instant, session: &Session) -> Course {
        self.dest.begin(session.blksize);
        Course {
            window: Window::new(),
            acked: 0,
            gap: 0,
            gap_at: now,
            gap_cut: None,
            overtakers: OVERTAKERS,
            ack_due: false,
            ack_clean: false,
            held: false,
            stirred: now,
            length: 0,
            yields: Yield { opened: now, ..Yield::default() },
            refused: None,
        }
    }

    fn agreed(&mut self, c: &mut Course, session: &mut Session, cx: &mut Cx<'_, '_, H>, size: Option<u64>) -> Turn {
        cx.progress.total = size;
        if let (Some(size), Some(room)) = (size, self.dest.capacity())
            && size > room
        {
            return Turn::Fail(Error::TooBig, ErrorCode::DISK_FULL, b"file too large");
        }
        if self.dest.is_region() && size.is_some_and(|size| session.grow(size)) {
            return Turn::Again;
        }
        c.ack_due = true;
        c.ack_clean = true;
        Turn::Stay
    }

    fn agreed_again(&mut self, c: &mut Course, session: &Session, now: Instant) {
        // The acknowledgement of block 0 was lost; not when it has only just left.
        if c.nothing_came() && c.is_quiet(now, session) {
            c.ack_due = true;
        }
    }

    fn is_plain_answer(packet: &Packet<'_>) -> bool {
        matches!(packet, Packet::Data { block: 1, data } if data.len() <= usize::from(super::session::PLAIN_BLOCK))
    }

    fn packet(
        &mut self,
        c: &mut Course,
        session: &mut Session,
        cx: &mut Cx<'_, '_, H>,
        datagram: &Datagram<'_>,
        packet: &Packet<'_>,
    ) -> Turn {
        match packet {
            Packet::Data { block, .. } => self.block(c, session, cx, datagram, *block),
            _ => {
                cx.stack.stats.count(Counter::DropTftpMalformed);
                Turn::Stay
            }
        }
    }

    #[inline]
    fn rests(c: &Course, s: &Session, now: Instant) -> Option<Instant> {
        // Before the first block has come, there is a second timer.
        let rests = !c.ack_due && c.refused.is_none() && c.window.confirmed() > 0 && now < s.deadline;
        rests.then_some(s.deadline)
    }

    fn poll(&mut self, c: &mut Course, s: &mut Session, cx: &mut Cx<'_, '_, H>) -> Turn {
        let now = cx.now();
        if c.refused.is_some() {
            let turn = self.offer(c, s, cx);
            if !matches!(turn, Turn::Stay) {
                return turn;
            }
        }
        if c.refused.is_some_and(|r| now.since(r.since) >= self.sink_stall) {
            return Turn::Fail(Error::SinkStalled, NO_ROOM.0, NO_ROOM.1);
        }
        let nothing = c.nothing_came() && c.refused.is_none() && !c.held;
        if nothing && now >= c.barren_at(s) && s.shrink(cx, s.window) {
            return Turn::Again;
        }
        if now >= s.deadline && !c.held {
            let turn = c.expired(s, cx);
            if !matches!(turn, Turn::Stay) {
                return turn;
            }
        }
        if c.ack_due && self.hold(c, s, cx) {
            return Turn::Stay;
        }
        if c.ack_due && !c.acknowledge(s, cx) {
            return Turn::At(now + UNSENT_WAIT);
        }
        if c.window.complete() {
            return Turn::Done(c.length, c.window.confirmed());
        }
        match c.refused {
            Some(Refused { staged: Some(_), .. }) => Turn::At(s.deadline.min(now + SINK_RETRY)),
            _ if nothing && now < c.barren_at(s) => Turn::At(s.deadline.min(c.barren_at(s))),
            _ => Turn::Stay,
        }
    }
}
