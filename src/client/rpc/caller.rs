//! One call at a time: sent, repeated with the same transaction number and growing waits until its reply comes
//! (RFC 5531 §9), given up when the server says nothing for too long.

use super::channel::{Arguments, Channel, Ready};
use super::rtt::{INITIAL, Rtt};
use super::{FIRST_PATIENCE, MAX_MALFORMED, Net, note_refusal};
use crate::client::operation::{DetailKind, icmp_meaning};
use crate::stack::egress::TxError;
use crate::stack::icmp::{ErrorKind, IcmpError};
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host};
use crate::storage::time::{Duration, Instant};
use crate::wire::rpc::Body;
use crate::wire::xdr::Decoder;
use core::net::Ipv4Addr;

/// How long what could not be sent waits when nothing wakes it.
const RETRY: Duration = Duration::from_millis(100);
/// How long another way is tried where nobody listens on the first.
const MOMENT: Duration = Duration::from_millis(500);
/// How long a server that is busy is left alone, and how often.
const BUSY: Duration = Duration::from_millis(300);
const MAX_BUSY: u8 = 100;

/// How long a server has been silent, and how long it may be.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    limit: Duration,
    /// The same before it was heard.
    first: Duration,
    /// When something was last heard; before that, when the first call was made.
    since: Option<Instant>,
    heard: bool,
    /// Why the last call could not be sent, or came back.
    pub trouble: Option<Error>,
}

impl Silence {
    /// A server that may be silent for `limit`.
    pub const fn new(limit: Duration) -> Self {
        Silence { limit, first: FIRST_PATIENCE, since: None, heard: false, trouble: None }
    }

    /// The server was heard.
    pub fn broken(&mut self, now: Instant) {
        self.since = Some(now);
        self.heard = true;
        self.trouble = None;
    }

    /// The time before now does not count.
    pub fn begin(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// Another program is asked, or the same one anew.
    pub fn restart(&mut self) {
        *self = Silence::new(self.limit);
    }

    /// Another way is tried because of `why`: for as long as the first, or, if the host has said that nobody listens
    /// there, for a moment, after which that stands.
    pub fn another_way(&mut self, why: Error) {
        self.restart();
        if why == Error::Refused {
            self.first = MOMENT;
            self.trouble = Some(why);
        }
    }

    /// When it has been silent for too long.
    pub fn end(&mut self, now: Instant) -> Instant {
        let since = *self.since.get_or_insert(now);
        since + if self.heard { self.limit } else { self.limit.min(self.first) }
    }

    /// Ends the operation if the server has been silent for too long.
    ///
    /// # Errors
    /// The last trouble, else [`Error::Timeout`].
    pub fn check(&mut self, now: Instant) -> Result<Instant, Error> {
        let end = self.end(now);
        if now >= end { Err(self.trouble.unwrap_or(Error::Timeout)) } else { Ok(end) }
    }

    /// What sending came to: the time at which to try again if it was put off, `None` if the timer counts from now.
    ///
    /// # Errors
    /// What trying again cannot help.
    pub fn sent(&mut self, now: Instant, result: Result<(), TxError>) -> Result<Option<Instant>, Error> {
        match result {
            Ok(()) => Ok(None),
            // Woken when the neighbour is known or the NIC has room.
            Err(e) if e.is_transient() => Ok(Some(now + RETRY)),
            // The next hop or the link may come back in time.
            Err(e @ (TxError::HostUnreachable | TxError::NetworkDown | TxError::Failed(_))) => {
                self.trouble = Some(e.into());
                Ok(None)
            }
            Err(e) => Err(e.into()),
        }
    }

    /// When half the time has passed in which something must be heard on a connection opened at `since`.
    pub fn half(&self, since: Instant) -> Instant {
        let limit = if self.heard { self.limit } else { self.limit.min(self.first) };
        self.since.map_or(since, |s| s.max(since)) + limit.divided_by(2)
    }

    /// A connection has ended, or could not be opened: when to try again. Fatal if nobody listens there and the server was
    /// never heard.
    ///
    /// # Errors
    /// `why`.
    pub fn lost(&mut self, now: Instant, why: Error) -> Result<Instant, Error> {
        self.trouble = Some(why);
        match why {
            Error::Refused if !self.heard => Err(why),
            _ => Ok(now + RETRY),
        }
    }

    /// An ICMP error about one of our calls to `to`: fatal before the server was heard (RFC 1122 §4.1.3.3); afterwards it
    /// may be restarting, and the error is what is said if it does not come back.
    pub fn icmp<H: Host>(&mut self, net: &mut Net<'_, '_, H>, to: Endpoint, error: &IcmpError) -> Option<Error> {
        if error.dst != to.addr || error.dst_port != to.port {
            return None;
        }
        let meaning = icmp_meaning(error)?;
        if let ErrorKind::Unreachable(code) = error.kind {
            net.detail.set(DetailKind::Icmp, 0x300 | u32::from(code.0), Some(error.from), &[]);
        }
        self.trouble = Some(meaning);
        if self.heard { None } else { Some(meaning) }
    }
}

/// Makes the call with a transaction number.
pub type Build<'b, 't> = dyn FnMut(u32, &mut Arguments<'t>) -> Result<(), Error> + 'b;

/// The call that waits for its reply.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    xid: u32,
    sent: Instant,
    deadline: Instant,
    tries: u8,
    malformed: u8,
    /// Number of the connection it was sent on.
    line: u16,
}

/// Makes one call at a time.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The way to the server.
    pub channel: Channel,
    /// Round trips of small calls.
    pub rtt: Rtt,
    /// How long the server has been silent.
    pub silence: Silence,
    waiting: Option<Waiting>,
    /// When the next call may be made.
    not_before: Instant,
    busy: u8,
}

impl Caller {
    /// No call yet; the server may be silent for `patience`.
    pub const fn new(patience: Duration) -> Self {
        Caller {
            channel: Channel::new(false),
            rtt: Rtt::new(INITIAL),
            silence: Silence::new(patience),
            waiting: None,
            not_before: Instant::ZERO,
            busy: 0,
        }
    }

    /// Gives up the call that waits, if any: its reply will be stale.
    pub fn forget(&mut self) {
        self.waiting = None;
    }

    /// How often the call that waits was sent.
    pub fn tries(&self) -> u8 {
        self.waiting.map_or(0, |w| w.tries)
    }

    /// Opens the way to `to`. `waits`: replies are expected from there. Says whether calls can be sent, and when to ask
    /// again.
    ///
    /// # Errors
    /// There is no way.
    pub fn ready<H: Host>(
        &mut self,
        net: &mut Net<'_, '_, H>,
        to: Endpoint,
        waits: bool,
    ) -> Result<(bool, Instant), Error> {
        let now = net.now();
        let why = match self.channel.ready(net, to) {
            Ok(Ready::Yes) if waits && self.channel.is_stream() => {
                // A connection that brings nothing for half the time may be one of which the server knows nothing.
                let stale = self.silence.half(self.channel.since());
                if now < stale {
                    return Ok((true, stale));
                }
                self.channel.lost(net, Error::Timeout)
            }
            Ok(Ready::Yes) => return Ok((true, Instant::NEVER)),
            Ok(Ready::At(at)) => return Ok((false, at)),
            Err(why @ Error::NoSlot) => return Err(why),
            Err(why) => why,
        };
        Ok((false, self.silence.lost(now, why)?))
    }

    /// Sends the call, or sends it again if it is time; says when to ask next. `build` makes the call with the
    /// transaction number given, the same each time.
    ///
    /// # Errors
    /// The server has been silent for too long, or nothing can be sent to it.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub fn poll<'t, H: Host>(
        &mut self,
        net: &mut Net<'_, '_, H>,
        to: Endpoint,
        build: &mut Build<'_, 't>,
    ) -> Result<Instant, Error> {
        let now = net.now();
        let end = self.silence.check(now)?;
        if now < self.not_before {
            return Ok(self.not_before.min(end));
        }
        let (ready, again) = self.ready(net, to, self.waiting.is_some())?;
        let end = end.min(again);
        if !ready {
            return Ok(end);
        }
        let waiting = match self.waiting {
            Some(waiting) => waiting,
            None => Waiting { xid: net.random(), sent: now, deadline: now, tries: 0, malformed: 0, line: 0 },
        };
        let waiting = self.waiting.insert(waiting);
        let line = self.channel.number();
        if waiting.line != line {
            // It was sent on a connection that is no more, or not at all.
            waiting.deadline = now;
            waiting.line = line;
        }
        if now < waiting.deadline {
            return Ok(waiting.deadline.min(end));
        }
        let xid = waiting.xid;
        let result = self.send(net, to, xid, build)?;
        if let Some(again) = self.silence.sent(now, result)? {
            return Ok(again.min(end));
        }
        let Some(waiting) = &mut self.waiting else { return Ok(end) };
        if waiting.tries > 0 {
            net.stack.stats.count(Counter::RpcRetransmit);
            self.rtt.back_off();
        }
        waiting.sent = now;
        waiting.tries = waiting.tries.saturating_add(1);
        // Over TCP nothing is lost but whole connections.
        waiting.deadline = if self.channel.is_stream() { Instant::NEVER } else { now + self.rtt.timer() };
        Ok(waiting.deadline.min(end))
    }

    /// Sends a call: what came of that. The call lies in this frame alone.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn send<'t, H: Host>(
        &mut self,
        net: &mut Net<'_, '_, H>,
        to: Endpoint,
        xid: u32,
        build: &mut Build<'_, 't>,
    ) -> Result<Result<(), TxError>, Error> {
        let mut call = Arguments::new();
        build(xid, &mut call)?;
        Ok(self.channel.send(net, to, &call))
    }

    /// Takes a reply of `from`: what `parse` reads of the results if it is the reply to the call that waits, which then waits no
    /// more. A reply that does not parse is discarded, and the call still waits.
    ///
    /// # Errors
    /// The server refused the call, which is noted as the operation's detail; or it has sent too many replies that do
    /// not parse: [`Error::Protocol`].
    pub fn take<'d, H: Host, T>(
        &mut self,
        net: &mut Net<'_, '_, H>,
        from: Ipv4Addr,
        payload: &'d [u8],
        parse: impl FnOnce(&mut Decoder<'d>) -> crate::wire::Result<T>,
    ) -> Option<Result<T, Error>> {
        let mut d = match self.open(net, from, payload)? {
            Ok(d) => d,
            Err(why) => return Some(Err(why)),
        };
        match parse(&mut d) {
            Ok(value) => {
                self.answered(net);
                Some(Ok(value))
            }
            Err(_) => self.malformed(net).map(Err),
        }
    }

    /// The results in a reply to the call that waits.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn open<'d, H: Host>(
        &mut self,
        net: &mut Net<'_, '_, H>,
        from: Ipv4Addr,
        payload: &'d [u8],
    ) -> Option<Result<Decoder<'d>, Error>> {
        let reply = super::channel::parse(net, payload)?;
        let xid = match &reply {
            Ok(reply) => reply.xid,
            Err(xid) => *xid,
        };
        if self.waiting.is_none_or(|w| w.xid != xid || w.tries == 0) {
            net.stack.stats.count(Counter::DropRpcStale);
            return None;
        }
        let Ok(reply) = reply else { return self.malformed(net).map(Err) };
        match reply.body {
            Body::Success(d) => Some(Ok(d)),
            body => {
                let why = note_refusal(net.detail, from, &body).unwrap_or(Error::Protocol);
                self.answered(net);
                Some(Err(why))
            }
        }
    }

    /// The call that waited has its reply.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn answered<H: Host>(&mut self, net: &Net<'_, '_, H>) {
        let now = net.now();
        if let Some(waiting) = self.waiting.take()
            && waiting.tries == 1
        {
            self.rtt.sample(waiting.sent, now);
        }
        self.rtt.relax();
        self.channel.heard();
        self.silence.broken(now);
    }

    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn malformed<H: Host>(&mut self, net: &mut Net<'_, '_, H>) -> Option<Error> {
        net.stack.stats.count(Counter::DropRpcMalformed);
        let waiting = self.waiting.as_mut()?;
        waiting.malformed = waiting.malformed.saturating_add(1);
        if self.channel.is_stream() {
            // No timer will repeat the call.
            waiting.deadline = Instant::ZERO;
        }
        self.silence.trouble = Some(Error::Protocol);
        (waiting.malformed >= MAX_MALFORMED).then_some(Error::Protocol)
    }

    /// The server is busy: the next call is made later. `false`: it has been busy too often.
    pub fn put_off(&mut self, now: Instant) -> bool {
        self.waiting = None;
        self.busy = self.busy.saturating_add(1);
        self.not_before = now + BUSY;
        self.busy <= MAX_BUSY
    }

    /// As [`Silence::icmp`].
    pub fn icmp<H: Host>(&mut self, net: &mut Net<'_, '_, H>, to: Endpoint, error: &IcmpError) -> Option<Error> {
        self.silence.icmp(net, to, error)
    }
}
