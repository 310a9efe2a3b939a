//! One connection: its variables, what its user sees of it, and the slot it lives in. What segments do to it is in `state`,
//! what it sends in `send`, its timers in `timers`.

use super::options::{Options, Stamps};
use super::pages::Pages;
use super::pmtu::Path;
use super::receive::Receiver;
use super::scoreboard::{Scoreboard, Sent};
use super::sender::Sender;
use super::seq::Pos;
use super::source::SendQueue;
use super::spans::ReceiveQueue;
use crate::stack::Stack;
use crate::stack::interface::NicId;
use crate::stack::way::Way;
use crate::storage::checksum::Sum;
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host};
use crate::storage::ranges::Interval;
use crate::storage::slots::Key;
use crate::storage::time::{Duration, Instant};
use crate::wire::tcp::SeqNumber;
use core::net::Ipv4Addr;

/// The states of RFC 9293 §3.3.2. LISTEN is not one: a listener is a thing of its own, and its connections begin in
/// `SynReceived`. `FinWait1` and `LastAck` are entered when the FIN is sent, not when it is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection.
    Closed,
    /// A SYN was sent.
    SynSent,
    /// A SYN came, and ours was sent.
    SynReceived,
    /// Data flows.
    Established,
    /// Our FIN was sent.
    FinWait1,
    /// Our FIN was acknowledged.
    FinWait2,
    /// The peer's FIN came.
    CloseWait,
    /// Both FINs were sent, ours is not acknowledged.
    Closing,
    /// The peer's FIN came first, and ours is not acknowledged.
    LastAck,
    /// Both FINs were acknowledged: late segments are waited for.
    TimeWait,
}

impl State {
    /// Whether both SYNs were acknowledged.
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, State::Closed | State::SynSent | State::SynReceived)
    }

    /// Whether the peer may still send data.
    #[inline]
    pub const fn receives(self) -> bool {
        matches!(self, State::SynReceived | State::Established | State::FinWait1 | State::FinWait2)
    }

    /// Whether data may still be sent, for the first time or again.
    #[inline]
    pub const fn sends(self) -> bool {
        matches!(self, State::Established | State::CloseWait | State::FinWait1 | State::Closing | State::LastAck)
    }
}

bitflags::bitflags! {
    /// What has happened on a connection since its user last looked, and what is so now.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Events: u16 {
        /// The connection was established.
        const CONNECTED = 1;
        /// The ring has bytes to read, or the peer has finished.
        const READABLE = 2;
        /// The ring has room for bytes to send.
        const WRITABLE = 4;
        /// The region at the front grew, or is full.
        const REGION = 8;
        /// Everything given to be sent is acknowledged.
        const SENT = 16;
        /// A file was sent or has failed.
        const FILE = 32;
        /// The peer has finished: what comes after the bytes that have come is nothing.
        const FINISHED = 64;
        /// The connection is over; its error, if any, tells why.
        const CLOSED = 128;
        /// A listener has a connection to accept.
        const ACCEPT = 256;
    }
}

/// How a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// State.
    pub state: State,
    /// Our end.
    pub local: Endpoint,
    /// The peer's end.
    pub remote: Endpoint,
    /// Smoothed round-trip time; zero before the first measurement.
    pub rtt: Duration,
    /// Its mean deviation.
    pub rtt_deviation: Duration,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Congestion window in bytes.
    pub congestion_window: u32,
    /// Slow start threshold in bytes.
    pub slow_start_threshold: u32,
    /// Most data in a segment, in bytes.
    pub segment_size: u32,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The peer's window in bytes.
    pub send_window: u64,
    /// Our window in bytes.
    pub receive_window: u64,
    /// Segments sent again.
    pub retransmits: u32,
    /// Bytes acknowledged by the peer.
    pub bytes_sent: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Bytes received out of order and kept.
    pub bytes_held: u64,
    /// An error the network reported that did not end the connection (RFC 9293 §3.9.2.2).
    pub soft_error: Option<Error>,
}

/// The memory of one connection. Each length is a limit of its own.
#[derive(Debug)]
pub struct SlotMemory<'a> {
    /// Receive ring; may be empty where all data goes to regions.
    pub receive: &'a mut [u8],
    /// Send ring; may be empty where all data comes from files.
    pub send: &'a mut [u8],
    /// Scoreboard, at least [`super::scoreboard::MIN_PLACES`] places; 64 do for lossy paths.
    pub sent: &'a mut [Sent],
    /// Ranges received out of order: with none, what comes out of order is dropped.
    pub held: &'a mut [Interval<Pos>],
}

/// Answers to segments that must not cause an answer each (RFC 5961 §7): a bucket of tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    tokens: u8,
    burst: u8,
    refill: Duration,
    refilled: Instant,
}

impl Limit {
    /// A full bucket of `burst`, one more each `refill`.
    pub(super) const fn new(burst: u8, refill: Duration) -> Limit {
        Limit { tokens: burst, burst, refill, refilled: Instant::ZERO }
    }

    /// Whether one more answer may be sent.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        // At most as many turns as the bucket holds.
        while self.tokens < self.burst && now.since(self.refilled) >= self.refill {
            self.tokens = self.tokens.saturating_add(1);
            self.refilled += self.refill;
        }
        if self.tokens == self.burst {
            self.refilled = now;
        }
        match self.tokens.checked_sub(1) {
            Some(left) => {
                self.tokens = left;
                true
            }
            None => false,
        }
    }
}

/// A connection.
pub struct Connection<'a, H: Host> {
    pub(super) index: u16,
    pub(super) state: State,
    pub(super) local: Endpoint,
    pub(super) remote: Endpoint,
    pub(super) nic: NicId,
    /// Sum of the pseudo header without its length.
    pub(super) pseudo: Sum,
    pub(super) iss: SeqNumber,
    pub(super) irs: SeqNumber,
    pub(super) options: Options,
    pub(super) tx: Sender<'a, H>,
    pub(super) rx: Receiver<'a, H::Memory>,
    pub(super) stamps: Option<Stamps>,
    /// The way to the peer, while it is valid.
    pub(super) way: Option<Way>,
    pub(super) path: Path,
    /// When TIME-WAIT ends, or an orphan's FIN-WAIT-2.
    pub(super) state_at: Instant,
    pub(super) keep_at: Instant,
    pub(super) keep_missed: u8,
    pub(super) last_heard: Instant,
    pub(super) limit: Limit,
    pub(super) error: Option<Error>,
    pub(super) soft_error: Option<Error>,
    pub(super) events: Events,
    /// Nobody will ask for this connection again.
    pub(super) orphan: bool,
    /// The listener it came through, until it is accepted.
    pub(super) parent: Option<Key>,
    /// A segment that a timer asks for.
    pub(super) due: Due,
    /// How often a SYN was sent.
    pub(super) syns: u8,
    /// Both ends scale their windows.
    pub(super) scaled: bool,
    /// Something changed that may let segments out.
    pub(super) ready: bool,
    /// The table must look after this connection: it is ready, has something to tell, or a timer is set.
    pub(super) attention: bool,
    /// Output waits for a neighbour or a page.
    pub(super) blocked: bool,
}

/// A segment that is to be sent whatever the windows say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// None.
    Nothing,
    /// Our SYN.
    Syn,
    /// Into a closed or small window (RFC 9293 §3.8.6.1).
    Persist,
    /// A tail loss probe (RFC 8985 §7.3).
    Tail,
    /// A keepalive probe (RFC 9293 §3.8.4).
    Keepalive,
}

/// What handlers of a connection reach besides it.
pub struct Context<'c, 'a, H: Host> {
    /// The stack.
    pub stack: &'c mut Stack<'a, H>,
    /// Lent pages.
    pub pages: &'c mut Pages<'a, H::Memory>,
    /// 2 MSL.
    pub time_wait: Duration,
}

impl<'a, H: Host> Connection<'a, H> {
    /// No connection, in memory of its own.
    pub(super) fn new(index: u16, memory: SlotMemory<'a>) -> Self {
        let options = Options::default();
        let tx = Sender::new(SendQueue::new(memory.send), Scoreboard::new(memory.sent), &options);
        let rx = Receiver::new(ReceiveQueue::new(memory.receive, memory.held));
        Self::with(index, tx, rx, options)
    }

    // In place: a copy of a connection on the stack is nearly a kilobyte.
    #[inline(always)]
    fn with(index: u16, tx: Sender<'a, H>, rx: Receiver<'a, H::Memory>, options: Options) -> Self {
        let nowhere = Endpoint { addr: Ipv4Addr::UNSPECIFIED, port: 0 };
        Connection {
            index,
            state: State::Closed,
            local: nowhere,
            remote: nowhere,
            nic: NicId(0),
            pseudo: Sum::ZERO,
            iss: SeqNumber(0),
            irs: SeqNumber(0),
            options,
            tx,
            rx,
            stamps: None,
            way: None,
            path: Path::new(1500),
            state_at: Instant::NEVER,
            keep_at: Instant::NEVER,
            keep_missed: 0,
            last_heard: Instant::ZERO,
            limit: Limit::new(10, Duration::from_millis(100)),
            error: None,
            soft_error: None,
            events: Events::empty(),
            orphan: false,
            parent: None,
            due: Due::Nothing,
            syns: 0,
            scaled: false,
            ready: false,
            attention: true,
            blocked: false,
        }
    }

    /// Begins another connection: every variable is new, only the memory stays.
    pub(super) fn renew(&mut self, options: Options) {
        let nothing = || SendQueue::new(&mut []);
        let mut queue = core::mem::replace(&mut self.tx.queue, nothing());
        let mut board = core::mem::replace(&mut self.tx.board, Scoreboard::new(&mut []));
        let mut spans = core::mem::replace(&mut self.rx.queue, ReceiveQueue::new(&mut [], &mut []));
        queue.reset();
        board.reset(Pos::DATA);
        spans.reset();
        let tx = Sender::new(queue, board, &options);
        let mut rx = Receiver::new(spans);
        rx.max = options.recv_max;
        *self = Self::with(self.index, tx, rx, options);
    }

    /// The bit that is set when a user is to be told.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    pub(super) fn raise(&mut self, events: Events) {
        if !self.events.contains(events) {
            self.events |= events;
            self.attention = true;
        }
    }

    /// Whether the slot can be used for another connection.
    pub(super) fn is_free(&self) -> bool {
        self.state == State::Closed && self.orphan && !self.tx.queue.is_held()
    }

    /// Ends the connection: nothing is sent or received again.
    pub(super) fn end(&mut self, pages: &mut Pages<'a, H::Memory>, error: Option<Error>) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.error = self.error.or(error);
        let reason = error.unwrap_or(Error::ConnectionAborted);
        self.tx.queue.abort(pages, reason);
        self.tx.una = self.tx.queue.end();
        self.tx.nxt = self.tx.una;
        self.tx.fin = false;
        self.tx.take_heard();
        self.tx.board.reset(self.tx.una);
        for timer in [
            &mut self.tx.rto_at,
            &mut self.tx.probe_at,
            &mut self.tx.reorder_at,
            &mut self.tx.persist_at,
            &mut self.tx.give_up_at,
            &mut self.rx.ack_at,
            &mut self.state_at,
            &mut self.keep_at,
        ] {
            *timer = Instant::NEVER;
        }
        self.rx.ack_now = false;
        self.rx.ack_soon = false;
        self.raise(Events::CLOSED | Events::READABLE | Events::FILE);
    }

    /// Enters TIME-WAIT, or restarts it (RFC 9293 §3.6.1).
    pub(super) fn enter_time_wait(&mut self, now: Instant, time_wait: Duration) {
        if self.state != State::TimeWait {
            self.raise(Events::CLOSED);
        }
        self.state = State::TimeWait;
        self.state_at = now + time_wait;
        self.keep_at = Instant::NEVER;
        self.tx.give_up_at = Instant::NEVER;
    }

    /// The earliest time at which a timer is due.
    #[inline]
    pub(super) fn deadline(&self) -> Instant {
        let tx = &self.tx;
        tx.rto_at
            .min(tx.probe_at)
            .min(tx.reorder_at)
            .min(tx.persist_at)
            .min(tx.give_up_at)
            .min(self.rx.ack_at)
            .min(self.state_at)
            .min(self.keep_at)
    }

    /// Largest data of a segment that carries `options` bytes of options.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    pub(super) fn room(&self, options: usize) -> u32 {
        self.tx.mss.min(self.path.mss()).saturating_sub(options as u32).max(1)
    }

    /// The path takes segments of another size.
    #[cold]
    #[inline(never)]
    pub(super) fn resize(&mut self) {
        self.tx.congestion.set_mss(self.room(self.stamp_len()));
    }

    /// Bytes of options on each segment.
    #[inline]
    pub(super) fn stamp_len(&self) -> usize {
        if self.stamps.is_some() { 12 } else { 0 }
    }

    /// How the connection is doing.
    pub(super) fn info(&self) -> Info {
        let tx = &self.tx;
        let held = self.rx.queue.held().iter().fold(0u64, |sum, range| sum.saturating_add(range.len()));
        Info {
            state: self.state,
            local: self.local,
            remote: self.remote,
            rtt: tx.rtt.smoothed().unwrap_or_default(),
            rtt_deviation: tx.rtt.deviation(),
            rto: tx.rtt.backed_off(tx.backoff),
            congestion_window: tx.congestion.window(),
            slow_start_threshold: tx.congestion.threshold(),
            segment_size: self.room(self.stamp_len()),
            in_flight: tx.pipe(),
            send_window: tx.edge.since(tx.una),
            receive_window: self.rx.window(),
            retransmits: tx.retransmits,
            bytes_sent: tx.una.earlier(tx.queue.end()).since(Pos::DATA),
            bytes_received: self.rx.queue.next().since(Pos::DATA),
            bytes_held: held,
            soft_error: self.soft_error,
        }
    }
}
