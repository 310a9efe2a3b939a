//! Receiving a file: the operation. It says where blocks land, acknowledges them, notices what is lost, and adapts the
//! window to what arrives (RFC 1350, RFC 7440, design §5.1).

use super::dest::{Dest, Taken, Target};
use super::session::{Agreement, Session, error_meaning};
use super::window::{Class, Window};
use super::{Mode, Tuning};
use crate::client::dns::{Resolve, Resolved};
use crate::client::engine::Shared;
use crate::client::file::pull::Pull;
use crate::client::operation::{Cx, Datagram, DetailKind, Operation, Server, Step};
use crate::stack::egress::TxError;
use crate::stack::icmp::IcmpError;
use crate::stack::interface::is_host_address;
use crate::stack::landing::{Flow, Place, Spot};
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host, Memory, SinkOf, Span};
use crate::storage::time::{Duration, Instant};
use crate::udp::Meta;
use crate::wire::tftp::{Access, DATA_HEADER_LEN, ErrorCode, PORT, Packet, emit_ack};
use core::net::Ipv4Addr;

/// Shortest time without any block after which a transfer is begun anew with less.
const NOTHING_FLOOR: Duration = Duration::from_millis(500);
/// How often a sink that refused is asked again.
const SINK_RETRY: Duration = Duration::from_millis(1);
/// Most calls of a sink that takes little, in one pass.
const SINK_CALLS: u32 = 64;

/// What to receive.
pub struct Request<H: Host> {
    /// From whom; port 0: 69.
    pub server: Server<H::Text>,
    /// File name as the server knows it, without NUL, at most about 450 bytes.
    pub path: H::Text,
    /// Octet, or netascii.
    pub mode: Mode,
    /// Where to.
    pub sink: SinkOf<H>,
    /// Numbers.
    pub tuning: Tuning,
    /// How long the sink may take nothing; zero: [`super::DEFAULT_SINK_STALL`].
    pub sink_stall: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The name of the server is to be looked up.
    Resolve,
    /// A port is to be opened.
    Begin,
    /// The request is out.
    Asking,
    /// Blocks come.
    Data,
    /// It has failed.
    Failed(Error),
    /// All has come.
    Done,
}

/// A block the sink has not taken yet.
#[derive(Clone, Copy, Debug)]
struct Refused {
    since: Instant,
    /// Bytes of it, if the socket's queue keeps it.
    staged: Option<u16>,
}

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

    /// Whether going on costs more than beginning anew with windows that arrive whole. `blocks`: those of the whole file,
    /// if known.
    fn is_poor(&self, now: Instant, blocks: Option<u64>) -> bool {
        if self.tails < 2 && self.broken < 2 {
            return false;
        }
        // What came took `spent`, and would have taken `needed` without waits and without what came for nothing. The
        // rest of the file is to come at the one rate, or the whole of it at the other. Units of 64 us: no overflow.
        let spent = now.since(self.opened).as_micros() >> 6;
        let busy = now.since(self.opened + self.stalled).as_micros() >> 6;
        let useful = u64::from(self.useful.max(1));
        let sent = useful.saturating_add(u64::from(self.wasted));
        let needed = busy.saturating_mul(useful).checked_div(sent).unwrap_or(0);
        let (rest, all) = match blocks {
            Some(all) => (all.saturating_sub(useful), all),
            None => (1, 2),
        };
        rest.saturating_mul(spent) > all.saturating_mul(needed)
    }
}

/// The operation; its result is the number of bytes of the file.
pub struct Get<H: Host> {
    server: Server<H::Text>,
    path: H::Text,
    mode: Mode,
    dest: Dest<H>,
    sink_stall: Duration,
    phase: Phase,
    planned: bool,
    lookup: Resolve,
    session: Session,
    window: Window,
    /// The last block acknowledged.
    acked: u64,
    /// The first missing block of the gap that was acknowledged last, and when.
    gap: u64,
    gap_at: Instant,
    /// Blocks that must come beyond a missing one before it counts as lost.
    overtakers: u32,
    ack_due: bool,
    /// The acknowledgement that is due answers a whole window: what comes next tells the round trip time.
    ack_clean: bool,
    /// When the server was last heard saying something of use, or told something.
    stirred: Instant,
    /// Bytes of the file, once the last block has come.
    length: u64,
    yields: Yield,
    refused: Option<Refused>,
    /// An acknowledgement is held back until a reader has room for what it would bring.
    held: bool,
}

impl<H: Host> Get<H> {
    /// A transfer that has yet to begin.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a server that is no host, an empty path or impossible numbers.
    pub fn new(request: Request<H>) -> Result<Self, Error> {
        let Request { server, path, mode, sink, tuning, sink_stall } = request;
        let dest = Dest::new(Target::Sink(sink), mode);
        Get::with(server, path, mode, dest, tuning, sink_stall)
    }

    /// A transfer to a reader, of octets.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn pulled(
        server: Server<H::Text>,
        path: H::Text,
        pull: Pull<H::Memory>,
        tuning: Tuning,
    ) -> Result<Self, Error> {
        let dest = Dest::new(Target::Pull(pull), Mode::Octet);
        Get::with(server, path, Mode::Octet, dest, tuning, Duration::ZERO)
    }

    fn with(
        server: Server<H::Text>,
        path: H::Text,
        mode: Mode,
        dest: Dest<H>,
        tuning: Tuning,
        sink_stall: Duration,
    ) -> Result<Self, Error> {
        tuning.check()?;
        if path.as_ref().is_empty() || (server.name.is_none() && !is_host_address(server.addr)) {
            return Err(Error::Invalid);
        }
        let port = if server.port == 0 { PORT } else { server.port };
        let session = Session::new(tuning, Endpoint { addr: server.addr, port });
        let sink_stall = if sink_stall == Duration::ZERO { super::DEFAULT_SINK_STALL } else { sink_stall };
        Ok(Get {
            phase: if server.name.is_some() { Phase::Resolve } else { Phase::Begin },
            server,
            path,
            mode,
            dest,
            sink_stall,
            planned: false,
            lookup: Resolve::new(),
            session,
            window: Window::new(),
            acked: 0,
            gap: 0,
            gap_at: Instant::ZERO,
            overtakers: 2,
            ack_due: false,
            ack_clean: false,
            stirred: Instant::ZERO,
            length: 0,
            yields: Yield::default(),
            refused: None,
            held: false,
        })
    }

    /// Block size and window agreed with the server.
    pub fn agreed(&self) -> (u16, u16) {
        (self.session.blksize, self.session.window)
    }

    fn offset(&self, block: u64) -> u64 {
        block.saturating_sub(1).saturating_mul(u64::from(self.session.blksize))
    }

    /// Blocks that have come in order since the last acknowledgement.
    fn unacknowledged(&self) -> u32 {
        self.window.confirmed().saturating_sub(self.acked) as u32
    }

    /// The last block that may come before the next acknowledgement.
    fn edge(&self) -> u64 {
        self.acked.saturating_add(u64::from(self.session.window))
    }

    /// Ends the transfer, telling the server if it takes part in it.
    fn fail(&mut self, cx: &mut Cx<'_, '_, H>, why: Error, code: ErrorCode, text: &[u8]) {
        self.session.give_up(cx, code, text);
        self.phase = Phase::Failed(why);
    }

    /// Looks the server's name up. `Some` of when to go on, while its address is not known.
    fn resolve(&mut self, cx: &mut Cx<'_, '_, H>) -> Option<Instant> {
        let name = self.server.name.as_ref().map_or(&[][..], AsRef::as_ref);
        self.phase = match self.lookup.poll(cx, name) {
            Resolved::Pending(at) => return Some(at),
            Resolved::Ready(addr) if is_host_address(addr) => {
                self.session.set_server(Endpoint { addr, port: self.session.peer.port });
                Phase::Begin
            }
            Resolved::Ready(_) => Phase::Failed(Error::Invalid),
            Resolved::Failed(why) => Phase::Failed(why),
        };
        None
    }

    fn begin(&mut self, cx: &mut Cx<'_, '_, H>) -> Result<(), Error> {
        self.session.begin(cx)?;
        if !self.planned {
            let room = self.dest.room(self.session.staging(cx));
            self.session.plan(cx, room)?;
            self.planned = true;
        }
        self.window = Window::new();
        self.acked = 0;
        self.gap = 0;
        self.ack_due = false;
        self.length = 0;
        self.refused = None;
        self.held = false;
        cx.progress.done = 0;
        self.phase = Phase::Asking;
        Ok(())
    }

    /// The server has answered from `from`: blocks come from there.
    fn open(&mut self, now: Instant, from: Endpoint) {
        self.session.bind(now, from);
        self.dest.begin(self.session.blksize);
        self.phase = Phase::Data;
        self.yields = Yield { opened: now, ..Yield::default() };
        self.stirred = now;
        self.session.arm(now);
    }

    fn option_ack(&mut self, cx: &mut Cx<'_, '_, H>, from: Endpoint, options: crate::wire::tftp::Options<'_>) {
        let now = cx.now();
        if self.phase == Phase::Data {
            // The acknowledgement of block 0 was lost; not when it has only just left.
            if self.window.confirmed() == 0 && self.window.ahead() == 0 && self.is_quiet(now) {
                self.ack_due = true;
            }
            return;
        }
        let agreement = self.session.agree(options);
        self.open(now, from);
        match agreement {
            Agreement::Holds(size) => {
                cx.progress.total = size;
                if let (Some(size), Some(room), Mode::Octet) = (size, self.dest.capacity(), self.mode)
                    && size > room
                {
                    self.fail(cx, Error::TooBig, ErrorCode::DISK_FULL, b"file too large");
                    return;
                }
                self.ack_due = true;
                self.ack_clean = true;
            }
            Agreement::Impossible => {
                self.session.tell(cx, ErrorCode::OPTION_REFUSED, b"option refused");
                self.without_options(cx, Error::Protocol);
            }
        }
    }

    /// Begins anew without options, or ends if that was so already.
    fn without_options(&mut self, _cx: &mut Cx<'_, '_, H>, why: Error) {
        if self.session.plan.options {
            self.session.plan.options = false;
            self.phase = Phase::Begin;
        } else {
            self.phase = Phase::Failed(why);
        }
    }

    fn error(&mut self, cx: &mut Cx<'_, '_, H>, from: Endpoint, code: ErrorCode, message: &[u8]) {
        if code == ErrorCode::OPTION_REFUSED && self.phase == Phase::Asking && self.session.plan.options {
            self.without_options(cx, Error::NotSupported);
            return;
        }
        cx.detail.set(DetailKind::Tftp, u32::from(code.0), Some(from.addr), message);
        self.phase = Phase::Failed(error_meaning(code));
    }

    /// Whether nothing of use has come or gone for as long as an answer takes: a repetition then means a loss.
    fn is_quiet(&self, now: Instant) -> bool {
        now.since(self.stirred) >= self.session.rtt.tail(self.session.timeout())
    }

    /// Takes a block.
    #[inline]
    fn block(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>, wire: u16) {
        let now = cx.now();
        // Of a block that landed only the length counts: its bytes need not be here.
        let data = datagram.payload.get(DATA_HEADER_LEN..).unwrap_or(&[]);
        let len = datagram.len.saturating_sub(DATA_HEADER_LEN);
        let blksize = usize::from(self.session.blksize);
        if len > blksize {
            cx.stack.stats.count(Counter::DropTftpMalformed);
            return;
        }
        let block = match self.window.classify(wire) {
            Class::New(block) => block,
            Class::Old(block) => return self.old_block(cx, block),
            Class::Outside => {
                cx.stack.stats.count(Counter::DropTftpBlock);
                return;
            }
        };
        let edge = self.edge();
        let in_order = block == self.window.next();
        let is_last = len < blksize;
        if block > edge {
            cx.stack.stats.count(Counter::DropTftpBlock);
            return;
        }
        if self.refused.is_some_and(|r| r.staged.is_some()) {
            // The sink has yet to take what is kept for it.
            return;
        }
        let offset = self.offset(block);
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
                self.stirred = now;
                self.notice_gap(now, block, edge, true);
                return;
            }
            Ok(Taken::Refused(some)) => return self.refuse(cx, &datagram.meta, data, some),
            Err(why) => return self.fail(cx, why, ErrorCode::DISK_FULL, b"no room"),
        }
        self.refused = None;
        self.taken(cx, block, offset, len, is_last);
        if !self.ack_due {
            self.notice_gap(now, block, edge, is_last);
        }
    }

    /// Goes on after a block is where it belongs.
    #[inline]
    fn taken(&mut self, cx: &mut Cx<'_, '_, H>, block: u64, offset: u64, len: usize, is_last: bool) {
        let now = cx.now();
        self.window.take(block, is_last);
        if block == self.gap && self.session.rtt.smoothed().is_some_and(|rtt| now.since(self.gap_at) < rtt) {
            // It comes sooner than an answer can: it was not lost but overtaken. More patience from now on.
            self.overtakers = self.overtakers.saturating_mul(2).min(64);
        }
        self.session.progress(now);
        self.stirred = now;
        if is_last {
            self.length = self.dest.converted().unwrap_or(offset.saturating_add(len as u64));
        }
        let confirmed = self.window.confirmed();
        let blocks = self.unacknowledged();
        if self.window.complete() {
            // RFC 7440 §4, RFC 1350 §6: the last block is acknowledged at once.
            self.ack_due = true;
            cx.progress.done = self.length;
            return;
        }
        cx.progress.done = confirmed.saturating_mul(u64::from(self.session.blksize));
        if blocks >= u32::from(self.session.window) {
            self.yields.whole(blocks);
            self.ack_due = true;
            self.ack_clean = true;
        }
    }

    /// Asks for a missing block, once, when two blocks beyond it have come, or none can come any more: a block that was
    /// only overtaken is not missing (RFC 7440 §4).
    #[inline]
    fn notice_gap(&mut self, now: Instant, block: u64, edge: u64, is_last: bool) {
        let next = self.window.next();
        if block < next || self.gap == next || self.session.window == 1 {
            return;
        }
        if block == edge || is_last || self.window.ahead() >= self.overtakers {
            self.gap = next;
            self.gap_at = now;
            self.yields.broken(self.unacknowledged(), self.session.window);
            self.ack_due = true;
            self.ack_clean = false;
        }
    }

    /// A block that had come before.
    fn old_block(&mut self, cx: &mut Cx<'_, '_, H>, block: u64) {
        cx.stack.stats.count(Counter::TftpDuplicate);
        let now = cx.now();
        // RFC 1123 §4.2.3.1: a copy that follows its original at once must not make two of everything that comes after;
        // a copy after a silence means that the acknowledgement was lost.
        if self.is_quiet(now) {
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
    fn refuse(&mut self, cx: &mut Cx<'_, '_, H>, meta: &Meta, data: &[u8], some: bool) {
        let now = cx.now();
        let kept = self.session.socket().is_some_and(|socket| cx.udp.enqueue(socket, *meta, data));
        let since = match self.refused {
            Some(refused) if !some => refused.since,
            _ => now,
        };
        self.refused = Some(Refused { since, staged: kept.then_some(data.len() as u16) });
        self.session.deadline = now + self.session.timeout().divided_by(2);
    }

    /// Offers the kept block again.
    fn offer(&mut self, cx: &mut Cx<'_, '_, H>) {
        let (Some(refused), Some(socket)) = (self.refused, self.session.socket()) else { return };
        let Some(len) = refused.staged.map(usize::from) else { return };
        let block = self.window.next();
        let offset = self.offset(block);
        let is_last = len < usize::from(self.session.blksize);
        let mut progress = false;
        for _ in 0..SINK_CALLS {
            let Some((front, back)) = cx.udp.front(socket) else { return };
            let middle = offset.saturating_add(front.len() as u64);
            let taken = match self.dest.take(offset, front, true, false) {
                Ok(Taken::All) => self.dest.take(middle, back, true, is_last),
                other => other,
            };
            match taken {
                Ok(Taken::All) => {
                    self.refused = None;
                    cx.udp.drop_front(socket);
                    self.taken(cx, block, offset, len, is_last);
                    // What came meanwhile was dropped: the server goes on from here.
                    self.ack_due = true;
                    self.ack_clean = true;
                    return;
                }
                Ok(Taken::Refused(some)) => {
                    progress |= some;
                    if !some {
                        break;
                    }
                }
                Ok(Taken::NoPlace) => break,
                Err(why) => return self.fail(cx, why, ErrorCode::DISK_FULL, b"no room"),
            }
        }
        if progress && let Some(refused) = &mut self.refused {
            refused.since = cx.now();
        }
    }

    /// Nothing has come for as long as the timer ran.
    fn expired(&mut self, cx: &mut Cx<'_, '_, H>) {
        let now = cx.now();
        self.ack_due = true;
        self.ack_clean = false;
        if self.refused.is_some() {
            // The server hears of us, so that it does not give up (design §5.1).
            self.session.deadline = now + self.session.timeout().divided_by(2);
            return;
        }
        let timeout = self.session.timeout();
        self.yields.stalled = self.yields.stalled + self.session.rtt.timer(timeout);
        let confirmed = self.window.confirmed();
        let arrived = self.unacknowledged();
        if arrived > 0 || self.window.ahead() > 0 {
            self.yields.tails = self.yields.tails.saturating_add(1);
            self.yields.broken(arrived, self.session.window);
        } else {
            cx.stack.stats.count(Counter::TftpRetransmit);
        }
        let rtt = self.session.rtt.smoothed().unwrap_or(Duration::ZERO);
        let nothing = confirmed == 0 && self.window.ahead() == 0;
        let barren = nothing && now.since(self.yields.opened) >= NOTHING_FLOOR.max(rtt.times(4));
        let blocks = cx.progress.total.map(|size| size.checked_div(u64::from(self.session.blksize)).unwrap_or(0));
        if barren || self.yields.is_poor(now, blocks) {
            let best = if nothing { self.session.window } else { self.yields.best };
            if self.session.shrink(cx, best) {
                self.session.tell(cx, ErrorCode::NOT_DEFINED, b"asking again");
                self.phase = Phase::Begin;
                return;
            }
        }
        match self.session.expire() {
            Ok(()) => self.session.arm(now),
            Err(why) => self.fail(cx, why, ErrorCode::NOT_DEFINED, b"timeout"),
        }
    }

    /// Whether the acknowledgement that is due must wait for a reader. The server hears of us all the same, so that it
    /// does not give up: it is told again what it was told last.
    #[inline]
    fn hold(&mut self, cx: &mut Cx<'_, '_, H>) -> bool {
        let next = self.window.next();
        let bytes = u64::from(self.session.window).saturating_mul(u64::from(self.session.blksize));
        if self.window.complete() || self.dest.has_room(self.offset(next), bytes) {
            if core::mem::take(&mut self.held) {
                self.ack_clean = false;
            }
            return false;
        }
        let now = cx.now();
        if !self.held {
            self.held = true;
            self.session.deadline = now + self.session.timeout().divided_by(2);
        }
        if now >= self.session.deadline {
            // What it brings has a place already, or is told apart by its number.
            let _ = self.session.send(cx, &[Span::Bytes(&emit_ack(self.acked as u16))]);
            cx.stack.stats.count(Counter::TftpRetransmit);
            self.session.deadline = now + self.session.timeout().divided_by(2);
        }
        true
    }

    /// Sends the acknowledgement that is due. `false`: later.
    #[inline]
    fn acknowledge(&mut self, cx: &mut Cx<'_, '_, H>) -> bool {
        let now = cx.now();
        let confirmed = self.window.confirmed();
        let sent = self.session.send(cx, &[Span::Bytes(&emit_ack(confirmed as u16))]);
        if let Err(TxError::Resolving | TxError::Busy) = sent {
            return false;
        }
        // A lost frame, or a next hop that does not answer for now, is as good as sent: the timer repeats it.
        self.ack_due = false;
        self.acked = confirmed;
        self.stirred = now;
        if core::mem::take(&mut self.ack_clean) {
            self.session.rtt.start(now);
        } else {
            self.session.rtt.spoil();
        }
        if self.refused.is_none() {
            self.session.arm(now);
        }
        true
    }

    /// Ends the attempt under way, if there is one, and begins again with the next poll.
    pub(crate) fn again(&mut self, cx: &mut Cx<'_, '_, H>) {
        if self.phase == Phase::Data {
            self.session.tell(cx, ErrorCode::NOT_DEFINED, b"asking again");
        }
        self.window = Window::new();
        self.phase = if self.phase == Phase::Resolve { Phase::Resolve } else { Phase::Begin };
    }

    /// Closes the port of a transfer that has ended.
    pub(crate) fn close(&mut self, cx: &mut Cx<'_, '_, H>) {
        self.session.close(cx);
    }

    /// The reader the blocks go to.
    pub(crate) fn pull(&mut self) -> Option<&mut Pull<H::Memory>> {
        match &mut self.dest.target {
            Target::Pull(pull) => Some(pull),
            Target::Sink(_) => None,
        }
    }

    /// The same, to look at.
    pub(crate) fn reader(&self) -> Option<&Pull<H::Memory>> {
        match &self.dest.target {
            Target::Pull(pull) => Some(pull),
            Target::Sink(_) => None,
        }
    }

    /// Position up to which all bytes have come, and the first block of which nothing has.
    pub(crate) fn edges(&self) -> (u64, u64) {
        let edge = if self.window.complete() { self.length } else { self.offset(self.window.next()) };
        (edge, self.window.beyond().saturating_sub(1))
    }

    /// Whether the server has agreed to send.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Data | Phase::Done)
    }

    /// Bytes of the file, once all have come.
    pub(crate) fn finished(&self) -> Option<u64> {
        (self.phase == Phase::Done).then_some(self.length)
    }

    /// Whether an acknowledgement waits for the reader.
    pub(crate) fn is_held(&self) -> bool {
        self.held
    }

    fn poll_data(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        let now = cx.now();
        if self.refused.is_some() {
            self.offer(cx);
        }
        if self.refused.is_some_and(|r| now.since(r.since) >= self.sink_stall) {
            self.fail(cx, Error::SinkStalled, ErrorCode::DISK_FULL, b"no room");
        }
        if now >= self.session.deadline && !self.held && self.phase == Phase::Data {
            self.expired(cx);
        }
        if self.phase != Phase::Data {
            // Begins anew, or has ended: next time, which is at once.
            return Step::Pending(Instant::ZERO);
        }
        if self.ack_due && self.hold(cx) {
            return Step::Pending(self.session.deadline);
        }
        if self.ack_due && !self.acknowledge(cx) {
            return Step::Pending(now + Duration::from_millis(100));
        }
        if self.window.complete() {
            self.session.finish(cx, self.window.confirmed());
            self.phase = Phase::Done;
            return Step::Done(Ok(self.length));
        }
        match self.refused {
            Some(Refused { staged: Some(_), .. }) => Step::Pending(self.session.deadline.min(now + SINK_RETRY)),
            _ => Step::Pending(self.session.deadline),
        }
    }
}

impl<H: Host> Operation<H> for Get<H> {
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        // Each turn but the last changes the phase: from `Data` back to `Begin` and on to `Asking` at most.
        for _ in 0..4 {
            match self.phase {
                Phase::Resolve => {
                    if let Some(at) = self.resolve(cx) {
                        return Step::Pending(at);
                    }
                }
                Phase::Begin => {
                    if let Err(why) = self.begin(cx) {
                        self.phase = Phase::Failed(why);
                    }
                }
                Phase::Asking => match self.session.ask(cx, Access::Read, self.path.as_ref(), self.mode, Some(0)) {
                    Ok(at) => return Step::Pending(at),
                    Err(why) => self.phase = Phase::Failed(why),
                },
                Phase::Data => match self.poll_data(cx) {
                    Step::Pending(_) if self.phase != Phase::Data => {}
                    step => return step,
                },
                Phase::Failed(why) => return Step::Done(Err(why)),
                Phase::Done => return Step::Done(Ok(self.length)),
            }
        }
        Step::Pending(cx.now())
    }

    #[inline]
    fn place(&self, _: &Shared<'_>, flow: &Flow, head: &[u8], len: usize) -> Place<H::Memory> {
        let Phase::Data = self.phase else { return Place::Stage };
        let (&[0, 3, a, b, ..], Some(len)) = (head, len.checked_sub(DATA_HEADER_LEN)) else { return Place::Stage };
        if (flow.src, flow.src_port) != (self.session.peer.addr, self.session.peer.port) {
            return Place::Stage;
        }
        // Landing rule (a): what has come, or must not come, is summed and not stored.
        let (block, wanted) = match self.window.classify(u16::from_be_bytes([a, b])) {
            Class::New(block) => (block, block <= self.edge() && len <= usize::from(self.session.blksize)),
            _ => (0, false),
        };
        let Some((memory, at)) = self.dest.spot(self.offset(block), len) else { return Place::Stage };
        let (at, len) = match wanted && at != usize::MAX {
            true => (at, len),
            // What a reader has no room for now is taken as a whole, and may be passed over.
            false if wanted && !self.dest.is_region() => return Place::Stage,
            false => (memory.len(), 0),
        };
        Place::Region(Spot { memory: memory.clone(), at, len, header: DATA_HEADER_LEN })
    }

    fn guess(&self, _: &Shared<'_>, src: Ipv4Addr, nth: usize) -> Option<Spot<H::Memory>> {
        if self.phase != Phase::Data || !self.dest.is_region() || src != self.session.peer.addr {
            return None;
        }
        let block = self.window.missing(nth).filter(|block| *block <= self.edge())?;
        let (memory, at) = self.dest.spot(self.offset(block), 0)?;
        let len = memory.len().checked_sub(at)?.min(usize::from(self.session.blksize));
        (len > 0).then(|| Spot { memory: memory.clone(), at, len, header: DATA_HEADER_LEN })
    }

    fn patience(&self, _: &Shared<'_>) -> Duration {
        match self.session.rtt.smoothed() {
            None => Duration::from_secs(1),
            Some(rtt) => rtt.times(4).max(Duration::from_millis(250)),
        }
    }

    #[inline]
    fn datagram(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>) {
        let Datagram { payload, meta, landed, .. } = datagram;
        if let (Some(_), &[_, _, a, b, ..]) = (landed, *payload) {
            return self.block(cx, datagram, u16::from_be_bytes([a, b]));
        }
        if self.phase == Phase::Resolve {
            let name = self.server.name.as_ref().map_or(&[][..], AsRef::as_ref);
            return self.lookup.datagram(cx, name, datagram);
        }
        if !matches!(self.phase, Phase::Asking | Phase::Data) {
            return;
        }
        if !self.session.is_peer(cx, meta.src) {
            return self.session.refuse_stranger(cx, meta, payload);
        }
        match Packet::parse(payload) {
            // Less than four bytes is no packet.
            _ if payload.len() < 4 => cx.stack.stats.count(Counter::DropTftpMalformed),
            Ok(Packet::Data { block, data }) => {
                if self.phase == Phase::Asking {
                    // RFC 2347: a server that knows no options sends the first block at once.
                    if block != 1 || data.len() > usize::from(super::session::PLAIN_BLOCK) {
                        cx.stack.stats.count(Counter::DropTftpBlock);
                        return;
                    }
                    self.open(cx.now(), meta.src);
                }
                self.block(cx, datagram, block);
            }
            Ok(Packet::Oack(options)) => self.option_ack(cx, meta.src, options),
            Ok(Packet::Error { code, message }) => self.error(cx, meta.src, code, message),
            _ => cx.stack.stats.count(Counter::DropTftpMalformed),
        }
    }

    fn icmp_error(&mut self, cx: &mut Cx<'_, '_, H>, error: &IcmpError) {
        if self.phase == Phase::Resolve {
            return self.lookup.icmp_error(cx, error);
        }
        if !matches!(self.phase, Phase::Asking | Phase::Data) {
            return;
        }
        if let Some(why) = self.session.icmp_error(cx.detail, error) {
            self.phase = Phase::Failed(why);
        }
    }

    fn cancel(&mut self, cx: &mut Cx<'_, '_, H>) {
        match self.phase {
            Phase::Resolve => self.lookup.cancel(cx),
            Phase::Data => self.session.give_up(cx, ErrorCode::NOT_DEFINED, b"cancelled"),
            _ => {}
        }
    }
}
