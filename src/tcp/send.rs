//! Output: segments of a connection, and what becomes of them at the NIC. There is one way out for data, whether it is sent
//! for the first time, again or as a probe, and whatever its source. A segment the NIC or the neighbour cache has no room
//! for changes nothing: neither sequence numbers nor timers move.

use super::conn::{Connection, Context, Due, State};
use super::pages::Pages;
use super::sender::Choice;
use super::seq::Pos;
use super::source::{Body, Obstacle};
use super::train::Full;
use crate::FAST;
use crate::stack::Stack;
use crate::stack::egress::{Hop, L4Header, L4Sum, Packet, TxError};
use crate::stack::stats::Counter;
use crate::stack::way::{Flow as WayFlow, Load, Way};
use crate::storage::error::Error;
use crate::storage::host::{Host, Token};
use crate::storage::time::Instant;
use crate::wire::ethernet::Address;
use crate::wire::ipv4::Protocol;
use crate::wire::tcp::{Flags, HEADER_LEN, MAX_HEADER_LEN, Options, Repr, Timestamps};

/// Where the checksum lies in a header.
pub(super) const SUM_AT: usize = 16;
/// Segments a connection sends in one turn, before others have theirs.
pub(super) const BURST: usize = 16;

/// Why output stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// There is nothing more that may be sent.
    Idle,
    /// The turn is over; there is more.
    More,
    /// The NIC has no room.
    Busy,
    /// The neighbour is being asked for, or no place for a lent page is left: a wake-up brings it back.
    Blocked,
    /// The connection cannot go on.
    Fatal(Error),
}

/// Why one segment was not sent.
enum Stop {
    Busy,
    Blocked,
    /// Nothing was sent, but the next choice will be another.
    Again,
    Fatal(Error),
}

impl From<Stop> for Flow {
    #[inline]
    fn from(stop: Stop) -> Flow {
        match stop {
            Stop::Busy => Flow::Busy,
            Stop::Blocked => Flow::Blocked,
            Stop::Again => Flow::More,
            Stop::Fatal(error) => Flow::Fatal(error),
        }
    }
}

impl<'a, H: Host> Connection<'a, H> {
    /// Whether a turn finds nothing to do but to acknowledge, when [`Self::output_asked`] is done: what a receiver does is
    /// little, and is done apart.
    #[inline]
    pub(super) fn only_acknowledges(&self) -> bool {
        let tx = &self.tx;
        !tx.has_heard() && tx.una == tx.nxt && tx.end() == tx.nxt
    }

    /// Sends an acknowledgement, if one is due.
    #[inline]
    pub(super) fn acknowledge(&mut self, cx: &mut Context<'_, 'a, H>) -> Flow {
        self.tx.limited = false;
        if !(self.rx.ack_now | self.rx.ack_soon) {
            return Flow::Idle;
        }
        match self.send_ack(cx) {
            Ok(()) => Flow::Idle,
            Err(stop) => stop.into(),
        }
    }

    /// The connection cannot go on: its peer is told.
    #[cold]
    #[inline(never)]
    pub(super) fn break_off(&mut self, cx: &mut Context<'_, 'a, H>, error: Error) {
        if self.state.is_synchronized() {
            self.send_reset(cx);
        }
        self.end(cx.pages, Some(error));
    }

    /// Sends what a timer asks for; [`Self::output`], under whose frame it need not lie, sends the rest.
    #[inline]
    pub(super) fn output_asked(&mut self, cx: &mut Context<'_, 'a, H>) -> Result<(), Flow> {
        if self.due == Due::Nothing {
            return Ok(());
        }
        self.take_acks(cx.pages);
        self.output_due(cx).map_err(Flow::from)
    }

    /// Sends what may be sent, up to a turn's worth.
    #[inline(never)]
    pub(super) fn output(&mut self, cx: &mut Context<'_, 'a, H>) -> Flow {
        self.take_acks(cx.pages);
        self.tx.limited = false;
        // An obstacle in the source may make another choice necessary once or twice; the budget bounds that too.
        let mut left = BURST;
        while left > 0 {
            left = left.saturating_sub(match self.output_train(cx, left) {
                Ok(count) => count,
                Err(Full) => return Flow::Busy,
            });
            if left == 0 {
                break;
            }
            left = left.saturating_sub(1);
            match self.output_one(cx) {
                Ok(true) => {}
                Ok(false) => return Flow::Idle,
                Err(Stop::Again) => {}
                Err(stop) => return stop.into(),
            }
        }
        // Stopped by the turn, not by a want of data: the window may grow.
        self.tx.limited = true;
        Flow::More
    }

    /// Sends one segment; whether there was one to send.
    #[inline]
    fn output_one(&mut self, cx: &mut Context<'_, 'a, H>) -> Result<bool, Stop> {
        let now = cx.stack.now;
        if self.state.sends() {
            let options = self.options_len();
            let room = self.room(options);
            if self.tx.una == self.tx.nxt && self.tx.end() > self.tx.nxt {
                self.tx.restart_after_idle(now);
            }
            if let Some(choice) = self.tx.choose(now, self.options.nagle, room) {
                self.transmit(cx, choice)?;
                return Ok(true);
            }
        }
        if self.rx.ack_now | self.rx.ack_soon {
            self.send_ack(cx)?;
        }
        Ok(false)
    }

    /// Sends what a timer asks for.
    #[cold]
    #[inline(never)]
    fn output_due(&mut self, cx: &mut Context<'_, 'a, H>) -> Result<(), Stop> {
        let now = cx.stack.now;
        let room = self.room(self.options_len());
        match self.due {
            Due::Nothing => {}
            Due::Syn => self.send_syn(cx)?,
            Due::Keepalive => {
                let before = self.tx.una - 1;
                self.emit(cx, before, Flags::ACK, &Options::default())?;
            }
            Due::Persist => {
                let choice = if self.tx.nxt > self.tx.una {
                    Some(self.tx.part(self.tx.una, self.tx.una + 1, 1))
                } else {
                    let end = self.tx.queue.end();
                    let usable = self.tx.edge.since(self.tx.nxt).clamp(1, u64::from(room));
                    let len = end.since(self.tx.nxt).min(usable);
                    let fin = self.tx.fin && self.tx.nxt + len == end;
                    let choice = Choice { at: self.tx.nxt, len: usize::try_from(len).unwrap_or(0), fin, again: false };
                    (len > 0 || fin).then_some(choice)
                };
                if let Some(choice) = choice {
                    self.transmit(cx, choice)?;
                    if self.tx.edge <= self.tx.una {
                        self.tx.persisted(now, self.options.user_timeout);
                    }
                }
            }
            Due::Tail => {
                let nxt = self.tx.nxt;
                let left = self.tx.queue.end().since(nxt).min(self.tx.edge.since(nxt)).min(u64::from(room));
                let choice = if left > 0 {
                    let len = usize::try_from(left).unwrap_or(0);
                    Some(Choice { at: nxt, len, fin: self.tx.fin && nxt + left == self.tx.queue.end(), again: false })
                } else {
                    self.tx.probe_again(room)
                };
                // What the window no longer covers is left to the retransmission timer.
                if let Some(choice) = choice.filter(|choice| choice.at < self.tx.edge) {
                    self.transmit(cx, choice)?;
                    self.tx.recovery.probe_sent(self.tx.nxt, choice.again);
                    self.tx.probe_at = Instant::NEVER;
                    self.tx.rto_at = now + self.tx.rtt.rto();
                }
            }
        }
        self.due = Due::Nothing;
        Ok(())
    }

    /// Bytes of options on the next segment with data.
    #[inline]
    pub(super) fn options_len(&self) -> usize {
        let stamps = self.stamp_len();
        if self.tx.sack && self.rx.has_sack() {
            let blocks = self.rx.sack_blocks(self.irs).as_slice().len().min(36usize.saturating_sub(stamps) >> 3);
            return stamps.saturating_add(4).saturating_add(blocks << 3);
        }
        stamps
    }

    /// Sends one segment with data or FIN.
    fn transmit(&mut self, cx: &mut Context<'_, 'a, H>, choice: Choice) -> Result<(), Stop> {
        let Context { stack, pages, .. } = cx;
        let mut choice = choice;
        let mut fill = false;
        if choice.len > 0 {
            match self.tx.queue.prepare(pages, self.index, choice.at, choice.len) {
                Ok(prepared) => {
                    choice.fin &= prepared.len == choice.len;
                    choice.len = prepared.len;
                    fill = prepared.fill;
                }
                Err(obstacle) => return Err(self.obstacle(pages, obstacle)),
            }
        }
        let end = choice.at + choice.len as u64;
        let mut flags = Flags::ACK;
        if choice.fin {
            flags |= Flags::FIN;
        }
        if choice.len > 0 && end == self.tx.queue.end() {
            flags |= Flags::PSH;
        }
        let edge = self.rx.edge;
        let header = self.header(stack.now, choice.at, flags);
        let mut ended = None;
        let flow = self.flow();
        let sent = match self.find_way(stack) {
            Err(error) => Err(error),
            Ok(()) => {
                let Connection { way, tx, .. } = self;
                let queue = &mut tx.queue;
                if fill {
                    let mut fill = |out: &mut [u8]| {
                        queue.fill(pages, choice.at, out).map_err(|obstacle| {
                            ended = Some(obstacle);
                            TxError::Invalid
                        })
                    };
                    hand_over(stack, way, &flow, &header, Load::Fill(choice.len, &mut fill), Token(0))
                } else {
                    let mut body: Body<'_, H::Memory> = Body::new();
                    let token = match choice.len {
                        0 => Some(Token(0)),
                        len => queue.spans(pages, choice.at, len, &mut body),
                    };
                    let Some(token) = token else { return Err(Stop::Fatal(Error::Invalid)) };
                    let sent = hand_over(stack, way, &flow, &header, Load::Spans(&body), token);
                    if token != Token(0) && sent.is_ok() && stack.keeps_spans(self.nic) {
                        drop(body);
                        pages.lend(token);
                    }
                    sent
                }
            }
        };
        if let Some(obstacle) = ended {
            self.rx.take_back(edge);
            return Err(self.obstacle(pages, obstacle));
        }
        if let Err(error) = sent {
            self.refused(error).inspect_err(|_| self.rx.take_back(edge))?;
        }
        if choice.again {
            stack.stats.count(Counter::TcpRetransmit);
        }
        self.rx.acked();
        self.tx.sent(stack.now, &choice, self.options.user_timeout);
        if choice.fin {
            self.state = match self.state {
                State::Established => State::FinWait1,
                State::CloseWait => State::LastAck,
                other => other,
            };
        }
        Ok(())
    }

    /// A source gives less than it should, or nothing now.
    #[cold]
    #[inline(never)]
    fn obstacle(&mut self, pages: &mut Pages<'a, H::Memory>, obstacle: Obstacle) -> Stop {
        match obstacle {
            Obstacle::NoPage => Stop::Blocked,
            // Bytes that were sent and cannot be had again: the stream is broken.
            Obstacle::Ended(at, error) if at < self.tx.nxt => Stop::Fatal(error),
            Obstacle::Ended(at, error) => {
                self.tx.queue.fail(pages, at, error);
                self.raise(super::conn::Events::FILE);
                // A FIN would tell the peer that this was all.
                if self.tx.fin { Stop::Fatal(error) } else { Stop::Again }
            }
        }
    }

    /// What the stack's refusal means: `Ok` when the segment counts as sent and lost.
    #[cold]
    #[inline(never)]
    fn refused(&mut self, error: TxError) -> Result<(), Stop> {
        match error {
            TxError::Busy => Err(Stop::Busy),
            TxError::Resolving => Err(Stop::Blocked),
            TxError::TooBig(room) => {
                self.way = None;
                let mtu = u16::try_from(room.saturating_add(crate::wire::ipv4::HEADER_LEN)).unwrap_or(u16::MAX);
                if self.path.limit(mtu) {
                    self.resize();
                    return Err(Stop::Again);
                }
                Ok(())
            }
            TxError::Invalid => Err(Stop::Fatal(Error::Invalid)),
            TxError::Failed(_) => Ok(()),
            TxError::HostUnreachable | TxError::NetworkUnreachable | TxError::NetworkDown => {
                self.way = None;
                let error = Error::from(error);
                // RFC 1122 §4.2.3.9: what holds for errors from routers holds for our own; a connection that stands
                // waits for the path to come back.
                if self.state == State::SynSent {
                    return Err(Stop::Fatal(error));
                }
                self.soft_error = Some(error);
                Ok(())
            }
        }
    }

    /// Sends our SYN, or the SYN that answers the peer's.
    fn send_syn(&mut self, cx: &mut Context<'_, 'a, H>) -> Result<(), Stop> {
        // An answer offers what both want; it was settled when the peer's SYN came.
        let answer = self.state == State::SynReceived;
        let mss = u16::try_from(self.rx.mss).unwrap_or(u16::MAX);
        let mut options = Options { max_segment_size: Some(mss), ..Options::default() };
        options.sack_permitted = if answer { self.tx.sack } else { self.options.sack };
        let scaled = if answer { self.scaled } else { self.options.window_scaling };
        options.window_scale = scaled.then(|| self.options.window_shift());
        options.timestamps = self.stamps.map(|stamps| Timestamps {
            value: stamps.value(cx.stack.now),
            echo: if answer { stamps.recent } else { 0 },
        });
        let flags = if answer { Flags::SYN | Flags::ACK } else { Flags::SYN };
        self.emit(cx, Pos::SYN, flags, &options)?;
        let now = cx.stack.now;
        self.tx.nxt = self.tx.nxt.later(Pos::DATA);
        self.syns = self.syns.saturating_add(1);
        self.tx.rto_at = now + self.tx.rtt.backed_off(self.tx.backoff);
        if self.syns == 1 {
            self.tx.give_up_at = now + self.options.connect_timeout;
            self.tx.last_sent = now;
        }
        Ok(())
    }

    /// Sends an acknowledgement without data.
    fn send_ack(&mut self, cx: &mut Context<'_, 'a, H>) -> Result<(), Stop> {
        let edge = self.rx.edge;
        let header = self.header(cx.stack.now, self.tx.nxt, Flags::ACK);
        match self.send_bare(cx.stack, &header) {
            Ok(()) => {}
            Err(TxError::Busy) => {
                self.rx.take_back(edge);
                return Err(Stop::Busy);
            }
            Err(TxError::Resolving) => {
                self.rx.take_back(edge);
                return Err(Stop::Blocked);
            }
            // An acknowledgement that is lost is lost.
            Err(_) => {}
        }
        self.rx.acked();
        Ok(())
    }

    /// Sends an acknowledgement that is due, if the NIC takes it; else it stays due.
    #[inline]
    pub(super) fn try_ack(&mut self, cx: &mut Context<'_, 'a, H>) -> bool {
        self.send_ack(cx).is_ok()
    }

    /// Sends a reset for this connection (RFC 9293 §3.10.5). It is best effort.
    pub(super) fn send_reset(&mut self, cx: &mut Context<'_, 'a, H>) {
        let header = self.header(cx.stack.now, self.tx.nxt, Flags::RST | Flags::ACK);
        if self.send_bare(cx.stack, &header).is_ok() {
            cx.stack.stats.count(Counter::TcpResetSent);
        }
    }

    /// Sends a segment without data.
    fn emit(&mut self, cx: &mut Context<'_, 'a, H>, at: Pos, flags: Flags, options: &Options) -> Result<(), Stop> {
        let edge = self.rx.edge;
        let header = match flags.contains(Flags::SYN) {
            true => self.syn_header(flags, options),
            false => self.header(cx.stack.now, at, flags),
        };
        let sent = self.send_bare(cx.stack, &header);
        if let Err(error) = sent {
            self.refused(error).inspect_err(|_| self.rx.take_back(edge))?;
        }
        self.rx.acked();
        Ok(())
    }

    fn syn_header(&mut self, flags: Flags, options: &Options) -> Header {
        let repr = Repr {
            source_port: self.local.port,
            destination_port: self.remote.port,
            seq: self.iss,
            ack: if flags.contains(Flags::ACK) { self.rx.next().seq(self.irs) } else { crate::wire::tcp::SeqNumber(0) },
            flags,
            window: self.rx.advertise_in_syn(options.window_scale.unwrap_or(0)),
            options: *options,
        };
        emit_header(&repr)
    }

    /// The header of a segment that is not a SYN; takes the edge of the window along.
    #[inline]
    pub(super) fn header(&mut self, now: Instant, at: Pos, flags: Flags) -> Header {
        let window = self.rx.advertise();
        let mut repr = Repr {
            source_port: self.local.port,
            destination_port: self.remote.port,
            seq: at.seq(self.iss),
            ack: self.rx.next().seq(self.irs),
            flags,
            window,
            options: Options::default(),
        };
        let stamps = self.stamps.as_ref().map(|own| Timestamps { value: own.value(now), echo: own.recent });
        if !FAST || (self.tx.sack && self.rx.has_sack()) {
            repr.options.timestamps = stamps;
            if self.tx.sack {
                repr.options.sack = self.rx.sack_blocks(self.irs);
            }
            return emit_header(&repr);
        }
        // Without SACK blocks, as nearly always, the bytes are known at once.
        let mut header = Header { bytes: [0; MAX_HEADER_LEN], len: HEADER_LEN };
        if let Some(stamps) = stamps {
            header.len = HEADER_LEN.wrapping_add(12);
            if let Some(place) = header.bytes.get_mut(HEADER_LEN..).and_then(|rest| rest.first_chunk_mut::<12>()) {
                *place = stamps.emit();
            }
        }
        if let Some(place) = header.bytes.first_chunk_mut::<HEADER_LEN>() {
            *place = repr.emit_fixed([0; 2], header.len);
        }
        header
    }

    /// Sees to it that there is a valid way to the peer.
    #[inline]
    pub(super) fn find_way(&mut self, stack: &mut Stack<'a, H>) -> Result<(), TxError> {
        if !FAST || self.way.as_ref().is_some_and(|way| stack.is_valid(way)) {
            return Ok(());
        }
        self.way = None;
        let flow = self.flow();
        let (hop, mac) = stack.find_hop(&flow)?;
        self.note_way(stack, &flow, &hop, mac)
    }

    /// Apart, so that what asks for a neighbour does not lie under it.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    fn note_way(&mut self, stack: &Stack<'a, H>, flow: &WayFlow, hop: &Hop, mac: Address) -> Result<(), TxError> {
        self.way = Some(stack.way_over(flow, hop, mac)?);
        Ok(())
    }

    /// What the packets of this connection have in common.
    #[inline]
    fn flow(&self) -> WayFlow {
        WayFlow {
            src: self.local.addr,
            dst: self.remote.addr,
            nic: self.nic,
            protocol: Protocol::TCP,
            ttl: self.options.ttl,
            tos: self.options.tos,
            dont_fragment: true,
        }
    }

    /// Sends a header without data.
    fn send_bare(&mut self, stack: &mut Stack<'a, H>, header: &Header) -> Result<(), TxError> {
        self.find_way(stack)?;
        self.send_header(stack, header)
    }

    /// The same where the way is known: what asks for a neighbour does not lie under it.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn send_header(&self, stack: &mut Stack<'a, H>, header: &Header) -> Result<(), TxError> {
        hand_over(stack, &self.way, &self.flow(), header, Load::Spans(&[]), Token(0))
    }
}

/// Gives the stack a segment: it goes the way of its connection, or, without the short ways, as any packet does.
#[inline]
fn hand_over<H: Host>(
    stack: &mut Stack<'_, H>,
    way: &Option<Way>,
    flow: &WayFlow,
    header: &Header,
    load: Load<'_, '_, H::Memory>,
    token: Token,
) -> Result<(), TxError> {
    if FAST {
        let way = way.as_ref().ok_or(TxError::NetworkDown)?;
        return stack.send_along(way, header.bytes(), SUM_AT, load, token);
    }
    let mut packet = Packet {
        src: flow.src,
        dst: flow.dst,
        nic: Some(flow.nic),
        protocol: flow.protocol,
        ttl: flow.ttl,
        tos: flow.tos,
        dont_fragment: flow.dont_fragment,
        header: header.l4(),
        body: &[],
        token,
        queue: false,
    };
    match load {
        Load::Spans(spans) => {
            packet.body = spans;
            stack.send(&packet)
        }
        Load::Fill(len, fill) => stack.send_filled(&packet, len, fill),
    }
}

/// The bytes of a header, for the stack to finish.
pub(super) struct Header {
    pub(super) bytes: [u8; MAX_HEADER_LEN],
    len: usize,
}

impl Header {
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// As the stack takes it for a single packet.
    pub(super) fn l4(&self) -> L4Header<'_> {
        L4Header::new(self.bytes(), L4Sum::Tcp)
    }
}

/// The bytes of a header.
#[inline]
pub(super) fn emit_header(repr: &Repr) -> Header {
    let mut bytes = [0u8; MAX_HEADER_LEN];
    // 60 bytes hold any header.
    let len = repr.emit([0; 2], &mut bytes).unwrap_or(0);
    Header { bytes, len }
}
