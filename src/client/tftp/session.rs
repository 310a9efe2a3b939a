//! One transfer's dealings with its server: socket and ports, the request and its repetition, options, errors both
//! ways. Blocks and their acknowledgement are left to `get` and `put`.

use super::Tuning;
use super::rtt::Rtt;
use crate::client::operation::{Cx, Detail, DetailKind, icmp_meaning};
use crate::stack::egress::TxError;
use crate::stack::icmp::{ErrorKind, IcmpError};
use crate::stack::stats::{Counter, Stats};
use crate::storage::checksum::Sum;
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host, LogEvent, Span};
use crate::storage::saturating;
use crate::storage::slots::Key;
use crate::storage::time::{Duration, Instant};
use crate::wire::tftp::{
    Access, Builder, DATA_HEADER_LEN, ErrorCode, Mode, Options, PORT, emit_error, is_text, option,
};
use crate::wire::udp::HEADER_LEN as UDP_HEADER_LEN;
use core::net::Ipv4Addr;

/// Block size without negotiation (RFC 1350 §2).
pub const PLAIN_BLOCK: u16 = 512;
/// Smallest and largest block size (RFC 2348).
const BLOCK_RANGE: core::ops::RangeInclusive<u64> = 8..=65_464;
/// Longest request, in bytes: what every path carries (RFC 2347).
const MAX_REQUEST: usize = 512;
/// Most bytes of what follows the file name in it: the mode, and four options with the longest numbers.
const MAX_OPTIONS: usize = 96;
/// A transfer that would take longer than this at one window a round trip is asked for anew with more in flight.
const SLOW: Duration = Duration::from_secs(2);
/// The same for a server that is [`FAR`]: asking anew costs one more round trip, and saves several.
const SLOW_FAR: Duration = Duration::from_millis(300);
/// Round trip time of a server beyond the local network.
const FAR: Duration = Duration::from_millis(20);
/// The window then.
const WIDE: u16 = 256;
/// Fragments of a block that the receive rings of most cards hold.
const RING_FRAGMENTS: u16 = 16;
/// First wait for the answer to a request while no round trip is known, and shortest wait when one is.
const REQUEST_FIRST: Duration = Duration::from_millis(500);
const REQUEST_FLOOR: Duration = Duration::from_millis(50);
/// How long a NIC may have no room for a request, or to ask for the next hop, before that counts as one that was lost:
/// longer than a next hop that does not answer is asked for.
const STUCK: Duration = Duration::from_secs(5);
/// Wait until a request that could not leave is tried again, if nothing wakes it.
pub const UNSENT_WAIT: Duration = Duration::from_millis(100);
/// How long the pieces of a datagram may take before a round trip is known, and at least.
const PATIENCE: Duration = Duration::from_secs(1);
const LEAST_PATIENCE: Duration = Duration::from_millis(250);
/// Longest wait between two requests.
const REQUEST_CAP: Duration = Duration::from_secs(4);

/// What to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Options at all.
    pub options: bool,
    /// Block size.
    pub blksize: u16,
    /// Window.
    pub window: u16,
}

/// What the blocks go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// A region that holds the whole file: fragments land in it.
    Region,
    /// Something that takes every block at once.
    Passing,
    /// A sink that may refuse a block, of which so many bytes can be kept for it.
    Kept(usize),
    /// A ring of so many bytes.
    Ring(usize),
    /// They come from a source; `true`: as spans, which can be fragmented.
    Source(bool),
}

/// What an option acknowledgement came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// It holds; the file's size, if the server told it.
    Holds(Option<u64>),
    /// It holds what cannot be.
    Impossible,
}

/// The state of one transfer towards its server.
#[derive(Debug)]
pub struct Session {
    tuning: Tuning,
    socket: Option<Key>,
    /// A stranger that is to be told that it is one.
    stranger: Option<Endpoint>,
    /// The server; its port is its end of this transfer once `bound`.
    pub peer: Endpoint,
    /// Whether the server has chosen its port (RFC 1350 §4).
    pub bound: bool,
    /// Port of ours.
    pub port: u16,
    server: Endpoint,
    /// What is asked for.
    pub plan: Plan,
    /// Largest block that needs no fragments.
    whole: u16,
    /// Block size agreed.
    pub blksize: u16,
    /// Window agreed.
    pub window: u16,
    /// Round trips.
    pub rtt: Rtt,
    /// Requests sent since the last answer of any kind, or timers expired at full length.
    failures: u8,
    interval: Duration,
    /// When to act next without an answer.
    pub deadline: Instant,
    last_error: Option<Error>,
    /// Since when the NIC has had no room for the request.
    stuck: Option<Instant>,
    shrunk: u8,
    /// More was asked for than at first.
    grown: bool,
    /// Largest block that can be received.
    limit: u16,
}

impl Session {
    /// A session that has yet to begin, with the server at `addr`; port 0: 69.
    ///
    /// # Errors
    /// As [`Tuning::check`].
    pub fn new(tuning: Tuning, addr: Ipv4Addr, port: u16) -> Result<Self, Error> {
        tuning.check()?;
        let server = Endpoint { addr, port: if port == 0 { PORT } else { port } };
        Ok(Session {
            tuning: tuning.settled(),
            socket: None,
            stranger: None,
            peer: server,
            bound: false,
            port: 0,
            server,
            plan: Plan { options: true, blksize: 0, window: 0 },
            whole: 0,
            blksize: PLAIN_BLOCK,
            window: 1,
            rtt: Rtt::new(),
            failures: 0,
            interval: Duration::ZERO,
            deadline: Instant::ZERO,
            last_error: None,
            stuck: None,
            shrunk: 0,
            grown: false,
            limit: 0,
        })
    }

    /// Offset in the file of a block, 1 or above. Numbers are those of blocks that came or may come next: no product overflows.
    #[inline]
    pub fn offset(&self, block: u64) -> u64 {
        block.wrapping_sub(1).wrapping_mul(u64::from(self.blksize))
    }

    /// How long the pieces of a datagram may take: see [`crate::client::operation::Operation::patience`].
    pub fn patience(&self) -> Duration {
        match self.rtt.smoothed() {
            None => PATIENCE,
            Some(rtt) => rtt.times(4).max(LEAST_PATIENCE),
        }
    }

    /// The server's timeout, as asked for.
    pub fn timeout(&self) -> Duration {
        self.tuning.timeout
    }

    /// Names the server once its address is known.
    pub fn set_server(&mut self, addr: Ipv4Addr) {
        self.server.addr = addr;
        self.peer = self.server;
    }

    /// Decides what to ask for.
    ///
    /// # Errors
    /// No route to the server.
    pub fn plan<H: Host>(&mut self, cx: &Cx<'_, '_, H>, room: Room) -> Result<(), Error> {
        let addr = self.server.addr;
        let overhead = UDP_HEADER_LEN.saturating_add(DATA_HEADER_LEN);
        let most = match room {
            Room::Region | Room::Passing | Room::Source(_) => usize::MAX,
            Room::Kept(bytes) | Room::Ring(bytes) => bytes,
        };
        let clamp = |bytes: usize| bytes.min(most).clamp(8, 65_464) as u16;
        self.whole = clamp(cx.stack.path_room(addr, None)?.saturating_sub(overhead));
        let limit = match room {
            Room::Ring(_) | Room::Source(false) => self.whole,
            Room::Source(true) => clamp(usize::MAX),
            _ => clamp(cx.stack.receive_room(addr, None, room == Room::Region)?.saturating_sub(overhead)),
        };
        let known = cx.shared.tftp.servers.get(addr);
        let (window, block) = known.map_or((u16::MAX, u16::MAX), |k| (k.window, k.block));
        self.limit = limit.min(block.max(self.whole));
        let grown = known.filter(|k| k.grown);
        self.grown = known.is_some();
        self.plan.blksize = match (self.tuning.blksize, grown) {
            (0, Some(k)) => k.block.min(self.limit),
            (0, None) => self.whole,
            (asked, _) => asked.min(self.limit),
        };
        self.plan.window = match (self.tuning.windowsize, grown) {
            (0, Some(k)) => k.window,
            (0, None) => super::DEFAULT_WINDOW.min(window),
            (asked, _) => asked.min(super::MAX_WINDOW).min(window),
        };
        if let Room::Ring(bytes) = room {
            // While one window is read, the next can come.
            let half = bytes.checked_div(usize::from(self.plan.blksize).max(1)).unwrap_or(0) / 2;
            self.plan.window = self.plan.window.min(u16::try_from(half).unwrap_or(u16::MAX)).max(1);
        }
        Ok(())
    }

    /// Opens a port and begins anew with the plan as it is: ends the transfer so far without a word.
    ///
    /// # Errors
    /// No socket is free; [`Error::InUse`]: another has the port that was asked for.
    pub fn begin<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>) -> Result<(), Error> {
        if let Some(old) = self.socket.take() {
            cx.udp.close(old);
            // At the same port of ours only the server's tells the attempts apart.
            if self.bound && self.tuning.local_port != 0 && self.peer != self.server {
                cx.shared.tftp.finished.note_stale(cx.now(), self.peer);
            }
        }
        cx.stack.landing.end_claims(cx.op);
        // RFC 1350 §4: a port of its own for each transfer, so that late packets find nothing.
        let socket = cx.open()?;
        self.socket = Some(socket);
        if self.tuning.local_port != 0 {
            let local = Endpoint { addr: Ipv4Addr::UNSPECIFIED, port: self.tuning.local_port };
            cx.udp.bind(socket, None, local)?;
        }
        self.port = cx.udp.get(socket).map_or(0, |s| s.local.port);
        self.peer = self.server;
        self.bound = false;
        self.blksize = PLAIN_BLOCK;
        self.window = 1;
        self.failures = 0;
        self.interval = self.rtt.tail(REQUEST_FIRST).max(REQUEST_FLOOR).min(REQUEST_FIRST);
        self.deadline = Instant::ZERO;
        self.rtt.restart();
        Ok(())
    }

    /// Closes the port: nothing more is to come.
    pub fn close<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>) {
        if let Some(socket) = self.socket.take() {
            cx.udp.close(socket);
        }
    }

    /// Bytes of the blocks that the socket's queue can keep.
    pub fn staging<H: Host>(&self, cx: &Cx<'_, '_, H>) -> Option<usize> {
        self.socket.and_then(|s| cx.udp.queue_room(s)).filter(|room| *room >= usize::from(PLAIN_BLOCK))
    }

    /// The socket, while there is one.
    pub fn socket(&self) -> Option<Key> {
        self.socket
    }

    /// Sends a datagram to the server's end of the transfer.
    #[inline]
    pub fn send<H: Host>(&self, cx: &mut Cx<'_, '_, H>, body: &[Span<'_, H::Memory>]) -> Result<(), TxError> {
        let socket = self.socket.ok_or(TxError::Invalid)?;
        cx.send(socket, self.peer, body)
    }

    /// Sends the request if it is time, or says when. `size`: the value of `tsize`.
    ///
    /// # Errors
    /// The budget is spent, the path does not fit a request, or nothing can be sent to the server.
    #[inline(never)] // Once a transfer: not in the frame of what each block does.
    pub fn ask<H: Host>(
        &mut self,
        cx: &mut Cx<'_, '_, H>,
        access: Access,
        path: &[u8],
        mode: Mode,
        size: Option<u64>,
    ) -> Result<Instant, Error> {
        let now = cx.now();
        if now < self.deadline {
            return Ok(self.deadline);
        }
        if self.failures > self.tuning.retries {
            return Err(self.last_error.unwrap_or(Error::Timeout));
        }
        let mut buffer = [0; MAX_OPTIONS];
        // There is room for every option.
        let rest = self.build(mode, size, &mut buffer).map_err(|_| Error::Invalid)?;
        if path.is_empty() || !is_text(path) {
            return Err(Error::Invalid);
        }
        let front = access.opcode();
        if front.len().saturating_add(path.len()).saturating_add(rest.len()) > MAX_REQUEST {
            return Err(Error::NameTooLong);
        }
        match self.send(cx, &[Span::Bytes(&front), Span::Bytes(path), Span::Bytes(rest)]) {
            Ok(()) => {
                if self.failures == 0 {
                    self.rtt.start(now);
                } else {
                    self.rtt.spoil();
                    cx.stack.stats.count(Counter::TftpRetransmit);
                }
            }
            // A NIC that never has room sends as little as one that fails.
            Err(e) if e.is_transient() && now.since(*self.stuck.get_or_insert(now)) >= STUCK => {}
            // Woken when the neighbour is known or the NIC has room.
            Err(e) if e.is_transient() => return Ok(now + UNSENT_WAIT),
            // The next hop or the link may come back within the budget.
            Err(e @ (TxError::HostUnreachable | TxError::NetworkDown | TxError::Failed(_))) => {
                self.last_error = Some(e.into());
            }
            Err(e) => return Err(e.into()),
        }
        self.stuck = None;
        self.failures = self.failures.saturating_add(1);
        self.deadline = now + self.interval;
        // RFC 1123 §4.2.3.2: exponential backoff.
        self.interval = self.interval.times(2).min(REQUEST_CAP.max(self.timeout()));
        Ok(self.deadline)
    }

    /// What follows the file name in the request.
    fn build<'b>(&self, mode: Mode, size: Option<u64>, buffer: &'b mut [u8]) -> crate::wire::Result<&'b [u8]> {
        let mut request = Builder::after_name(buffer, mode)?;
        if self.plan.options {
            if self.plan.blksize != PLAIN_BLOCK {
                request.number(option::BLKSIZE, u64::from(self.plan.blksize))?;
            }
            if let Some(size) = size {
                request.number(option::TSIZE, size)?;
            }
            request.number(option::TIMEOUT, self.tuning.seconds())?;
            if self.plan.window > 1 {
                request.number(option::WINDOWSIZE, u64::from(self.plan.window))?;
            }
        }
        Ok(request.finish())
    }

    /// Whether a datagram comes from the server's end of this transfer; before that is known, whether it may become it.
    #[inline]
    pub fn is_peer<H: Host>(&self, cx: &Cx<'_, '_, H>, from: Endpoint) -> bool {
        if self.bound {
            return from == self.peer;
        }
        // A server may answer from the port that is asked: then all transfers come from there.
        from == self.server || from.addr == self.server.addr && !cx.shared.tftp.finished.is_stale(cx.now(), from)
    }

    /// Notes that a stranger has sent `payload`: it is told so by [`Self::refuse_stranger`].
    pub fn note_stranger(&mut self, stats: &mut Stats, from: Endpoint, payload: &[u8]) {
        stats.count(Counter::DropTftpTid);
        // Never an error for an error: two hosts could go on for ever.
        if self.bound && matches!(payload, [0, 3 | 4 | 6, _, _, ..]) {
            self.stranger = Some(from);
        }
    }

    /// Whether there is a stranger to be told.
    #[inline]
    pub fn has_stranger(&self) -> bool {
        self.stranger.is_some()
    }

    /// Tells a stranger that it is one, which disturbs nothing here (RFC 1350 §4).
    pub fn refuse_stranger<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>) {
        if let Some(stranger) = self.stranger.take() {
            // A stranger that is not told now comes again.
            self.send_error(cx, stranger, ErrorCode::UNKNOWN_TID, b"unknown transfer ID");
        }
    }

    /// The server has answered from `from`: that is its end of the transfer.
    pub fn bind(&mut self, now: Instant, from: Endpoint) {
        self.peer = from;
        self.bound = true;
        self.failures = 0;
        self.rtt.answer(now);
    }

    /// Takes the options the server agrees to (RFC 2347): each must have been asked for, with a value that its RFC allows.
    /// `tsize` that is no number below 2⁶⁴ counts as not told.
    pub fn agree(&mut self, options: Options<'_>) -> Agreement {
        if let Some(value) = options.get(option::BLKSIZE) {
            let asked = self.plan.options && self.plan.blksize != PLAIN_BLOCK;
            match crate::wire::tftp::parse_number(value) {
                Some(n) if asked && BLOCK_RANGE.contains(&n) && n <= u64::from(self.plan.blksize) => {
                    self.blksize = n as u16;
                }
                _ => return Agreement::Impossible,
            }
        }
        if let Some(value) = options.get(option::WINDOWSIZE) {
            let asked = self.plan.options && self.plan.window > 1;
            match crate::wire::tftp::parse_number(value) {
                Some(n) if asked && n >= 1 && n <= u64::from(self.plan.window) => self.window = n as u16,
                _ => return Agreement::Impossible,
            }
        }
        Agreement::Holds(options.number(option::TSIZE))
    }

    /// Tells the server that the transfer ends here, as far as one frame can.
    pub fn tell<H: Host>(&self, cx: &mut Cx<'_, '_, H>, code: ErrorCode, text: &[u8]) {
        if self.bound {
            // Best effort: a server that does not hear it gives up by itself.
            self.send_error(cx, self.peer, code, text);
        }
    }

    fn send_error<H: Host>(&self, cx: &mut Cx<'_, '_, H>, to: Endpoint, code: ErrorCode, text: &[u8]) {
        let Some(socket) = self.socket else { return };
        // Kind, code and the text's end.
        let len = text.len().saturating_add(5);
        let _ = cx.udp.send_filled(cx.stack, socket, to, len, &mut |out| {
            emit_error(code, text, out).map_err(|_| TxError::Invalid)?;
            Ok(Sum::of(out))
        });
    }

    /// The same, for good: what the server may still send is nobody's.
    pub fn give_up<H: Host>(&self, cx: &mut Cx<'_, '_, H>, code: ErrorCode, text: &[u8]) {
        self.tell(cx, code, text);
        if self.bound {
            cx.shared.tftp.finished.note_stale(cx.now(), self.peer);
        }
    }

    /// The timer for what is expected next has expired. Says whether the budget of failures is spent; only timers that
    /// ran for the whole timeout count.
    pub fn expire(&mut self) -> Result<(), Error> {
        if self.rtt.expire(self.timeout()) {
            self.failures = self.failures.saturating_add(1);
            if self.failures > self.tuning.retries {
                return Err(Error::Timeout);
            }
        }
        Ok(())
    }

    /// Something new has come.
    #[inline]
    pub fn progress(&mut self, now: Instant) {
        self.failures = 0;
        self.rtt.answer(now);
        self.arm(now);
    }

    /// Sets the timer anew.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    pub fn arm(&mut self, now: Instant) {
        self.deadline = now + self.rtt.timer(self.timeout());
    }

    /// Makes the plan larger if what was agreed would take long for a file of `size` bytes because the server is far away:
    /// a wider window, or, where the server knows none, larger blocks, which come in fragments. Only what was left to us
    /// is changed, and once. Whether the plan is another now.
    pub fn grow(&mut self, size: u64) -> bool {
        let Some(rtt) = self.rtt.smoothed() else { return false };
        let rounds = saturating::div(size, u64::from(u32::from(self.blksize).wrapping_mul(u32::from(self.window))));
        let slow = if rtt >= FAR { SLOW_FAR } else { SLOW };
        // What had to be made smaller is not made larger: many rounds are what it came to.
        if self.grown || self.shrunk > 0 || rtt.times(rounds) < slow {
            return false;
        }
        self.grown = true;
        let before = self.plan;
        if self.window > 1 {
            // A server that agreed to less than was asked for agrees to no more.
            if self.tuning.windowsize == 0 && self.window == self.plan.window {
                self.plan.window = WIDE;
            }
        } else if self.tuning.blksize == 0 && self.blksize == self.plan.blksize {
            self.plan.blksize = self.limit;
        }
        self.plan != before
    }

    /// Makes the plan smaller: half the window, or what arrived at once if that is less; the second time, and when there
    /// is no window to halve, blocks that need no fragments (design §5.1). `false`: it cannot be smaller.
    pub fn shrink<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>, arrived: u16) -> bool {
        let fragments = self.blksize > self.whole;
        let narrow = self.window > 1;
        if !narrow && !fragments {
            return false;
        }
        let few = self.whole.saturating_mul(RING_FRAGMENTS);
        if fragments && !narrow && self.grown && self.blksize > few {
            self.plan.blksize = few;
        } else if fragments && (self.shrunk > 0 || !narrow) {
            self.plan.blksize = self.whole;
        } else {
            self.plan.window = (self.window / 2).min(arrived.max(1)).max(1);
        }
        self.shrunk = self.shrunk.saturating_add(1);
        cx.stack.host.log(LogEvent::TransferShrunk, u64::from(self.plan.blksize), u64::from(self.plan.window));
        true
    }

    /// Whether the plan was made smaller.
    pub fn has_shrunk(&self) -> bool {
        self.shrunk > 0
    }

    /// The transfer has come to its end with block `last`: what is left of it, and what worked, is remembered.
    pub fn finish<H: Host>(&self, cx: &mut Cx<'_, '_, H>, last: u64) {
        let now = cx.now();
        cx.shared.tftp.finished.note(now, self.port, self.peer, last as u16);
        let free = self.tuning.blksize == 0 && self.tuning.windowsize == 0;
        let grown = self.grown && free;
        if self.shrunk > 0 || grown {
            let (addr, window, block) = (self.server.addr, self.plan.window, self.plan.blksize);
            cx.shared.tftp.servers.note(super::dally::Known { addr, window, block, grown });
        }
    }

    /// What an ICMP error about a datagram of this session means; `None` if it is about none, or means nothing yet.
    pub fn icmp_error(&self, detail: &mut Detail, error: &IcmpError) -> Option<Error> {
        if error.dst != self.peer.addr || error.dst_port != self.peer.port || error.src_port != self.port {
            return None;
        }
        let meaning = icmp_meaning(error)?;
        // Once the server has answered, a router's word is no news of the server; only its own port is (RFC 1122 §3.2.2.1).
        if self.bound && meaning != Error::Refused {
            return None;
        }
        if let ErrorKind::Unreachable(code) = error.kind {
            detail.set(DetailKind::Icmp, 0x300 | u32::from(code.0), Some(error.from), &[]);
        }
        Some(meaning)
    }
}

/// What a server's ERROR means (RFC 1350 §5, RFC 2347).
pub fn error_meaning(code: ErrorCode) -> Error {
    match code {
        ErrorCode::FILE_NOT_FOUND => Error::NotFound,
        ErrorCode::ACCESS_VIOLATION | ErrorCode::NO_SUCH_USER => Error::Denied,
        ErrorCode::DISK_FULL => Error::NoSpace,
        ErrorCode::ILLEGAL_OPERATION => Error::Protocol,
        ErrorCode::UNKNOWN_TID => Error::ConnectionReset,
        ErrorCode::FILE_EXISTS => Error::Exists,
        ErrorCode::OPTION_REFUSED => Error::NotSupported,
        _ => Error::Remote,
    }
}
