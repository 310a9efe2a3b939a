//! Fetching a file, whole or in part, or only what would be said of it: the operation. It looks the name up, opens a
//! connection or takes one that waits, follows redirects, and goes on where a connection broke if the file is still the
//! same. Where bytes go is `exchange`'s.

use super::body::{Chunk, Framing};
use super::dest::Dest;
use super::exchange::{Exchange, Trouble, Turn};
use super::head::{Head, field, reason};
use super::range::{is_same, is_validator, validator};
use super::request::{Terms, check_fields, write};
use super::url::{Url, resolve};
use super::{Fault, Job, MAX_SECRET, Method, Tuning, same};
use crate::client::dns::Resolve;
use crate::client::engine::Shared;
use crate::client::operation::{Cx, Datagram, DetailKind, Operation, Step};
use crate::stack::icmp::IcmpError;
use crate::storage::error::{Error, Result};
use crate::storage::host::{Host, SinkOf};
use crate::storage::slots::Key;
use crate::storage::time::{Duration, Instant};
use crate::tcp::stream::{ByteStream, TcpStream};

mod dial;

/// Longest name of a host in bytes.
pub const MAX_NAME: usize = 253;
/// Steps in one call.
const TURNS: u32 = 256;
/// How often it is looked how far a body has come.
const LOOK: Duration = Duration::from_millis(100);
/// How soon a sink that refused is asked again.
const SINK_RETRY: Duration = Duration::from_millis(1);
/// First wait before a connection that broke is opened again; it doubles.
const BACKOFF: Duration = Duration::from_millis(100);
/// Bytes after which a lost connection no longer counts.
const AMENDS: u64 = 1 << 20;
/// Interim responses to one request (RFC 9110 §15.2).
const MAX_INTERIM: u8 = 8;
/// Bytes of the body of a redirect that are read so that the connection can be used again.
const DRAIN: u64 = 4096;

/// What to fetch.
pub struct Request<H: Host> {
    /// Where it is: an `http` URL.
    pub url: H::Text,
    /// What of it.
    pub method: Method,
    /// Where to.
    pub sink: SinkOf<H>,
    /// User name, without a colon, and password for Basic authorisation (RFC 7617). They are told to the URL's own host and
    /// port only, whatever redirects say; so are `fields`.
    pub user: Option<(H::Text, H::Text)>,
    /// Fields to be sent, a line each: name, colon, value.
    pub fields: Option<H::Text>,
    /// What the first part of the file was a part of: its strong entity tag, or when it was modified last.
    pub if_range: Option<H::Text>,
    /// First byte.
    pub offset: u64,
    /// Most bytes; [`u64::MAX`]: all that follow.
    pub len: u64,
    /// Numbers.
    pub tuning: Tuning,
}

type Name = heapless::Vec<u8, MAX_NAME>;

#[derive(Debug)]
enum Stage {
    /// The URL is yet to be looked at.
    Start,
    /// The name is looked up.
    Resolve(Resolve),
    /// The connection is being opened.
    Connect,
    /// The connection is in use.
    Talk(Exchange),
    /// A connection broke; the next is opened then.
    Wait(Instant),
}

/// How it goes on.
enum Go {
    /// At once.
    On,
    /// Then, or when something happens on the connection.
    At(Instant),
    /// Not: this is the result.
    Done(u64),
}

/// The operation. The result of [`Method::Get`] is the number of bytes: fewer than asked for only where the file ends. That of
/// [`Method::Head`] is the file's length, 0 if it was not told.
pub struct Get<H: Host> {
    url: H::Text,
    method: Method,
    user: Option<(H::Text, H::Text)>,
    fields: Option<H::Text>,
    if_range: Option<H::Text>,
    start: u64,
    len: u64,
    tuning: Tuning,
    dest: Dest<H>,
    job: Option<u8>,
    stage: Stage,
    /// The URL is the job's.
    redirected: bool,
    /// It leads to another host or port than the request's.
    away: bool,
    redirects: u8,
    retries: u8,
    /// Bytes that had come when retries were counted anew.
    amended: u64,
    /// The connection served another request before.
    reused: bool,
    /// It may serve another.
    reusable: bool,
    interim: u8,
    /// A range was asked for.
    asked: bool,
    /// The body is that of a redirect.
    drains: bool,
    /// Bytes where they belong, from `start` on.
    delivered: u64,
    /// Bytes of the file, if known.
    total: Option<u64>,
    status: u16,
    /// Bytes of the response when it last said something, and when that was.
    heard: (u64, Instant),
    /// Since when the sink refuses.
    refused: Option<Instant>,
    /// A response about the file has come.
    found: bool,
}

impl<H: Host> Get<H> {
    /// A file that is yet to be asked for.
    ///
    /// # Errors
    /// As [`Url::parse`] and [`check_fields`]; [`Error::Invalid`]: a user name with a colon, a validator that is none;
    /// [`Error::NameTooLong`]: user name or password.
    pub fn new(request: Request<H>) -> Result<Self> {
        let dest = Dest::new(request.sink);
        let Request { url, method, user, fields, if_range, offset: start, len, tuning, .. } = request;
        Url::parse(url.as_ref())?;
        if let Some(fields) = &fields {
            check_fields(fields.as_ref())?;
        }
        if let Some((name, password)) = &user {
            if name.as_ref().contains(&b':') {
                return Err(Error::Invalid);
            }
            if name.as_ref().len() > MAX_SECRET || password.as_ref().len() > MAX_SECRET {
                return Err(Error::NameTooLong);
            }
        }
        if if_range.as_ref().is_some_and(|text| !is_validator(text.as_ref())) {
            return Err(Error::Invalid);
        }
        Ok(Get {
            url,
            method,
            user,
            fields,
            if_range,
            start,
            len,
            tuning,
            dest,
            job: None,
            stage: Stage::Start,
            redirected: false,
            away: false,
            redirects: tuning.redirects,
            retries: tuning.retries,
            amended: 0,
            reused: false,
            reusable: false,
            interim: 0,
            asked: false,
            drains: false,
            delivered: 0,
            total: None,
            status: 0,
            heard: (0, Instant::ZERO),
            refused: None,
            found: false,
        })
    }

    /// A file that is read in pieces: bytes go where [`Self::set_window`] says.
    pub(super) fn pulled(request: Request<H>) -> Result<Self> {
        let request = Request { method: Method::Get, sink: SinkOf::<H>::Discard, len: u64::MAX, ..request };
        let mut get = Get::new(request)?;
        get.dest = Dest::Window(None, 0);
        Ok(get)
    }

    /// Has the bytes that follow go to `memory`, or nowhere for now.
    pub(super) fn set_window(&mut self, now: Instant, memory: Option<H::Memory>) {
        if memory.is_some() {
            // Nobody has waited for the server since.
            self.heard.1 = now;
            self.retries = self.tuning.retries;
        }
        self.dest = Dest::Window(memory, self.delivered);
    }

    /// Asks for the file again, from `position` on.
    pub(super) fn restart(&mut self, cx: &mut Cx<'_, '_, H>, position: u64) {
        if matches!(self.stage, Stage::Talk(_))
            && cx.shared.http.job(self.job).is_some_and(|j| j.until == Instant::NEVER)
        {
            self.hang_up(cx, false);
        }
        (self.start, self.delivered, self.amended) = (position, 0, 0);
        self.drains = false;
        self.stage = Stage::Start;
    }

    /// Position in the file of the next byte.
    #[inline(never)]
    pub(super) fn position(&self) -> u64 {
        self.start.saturating_add(self.delivered)
    }

    /// Whether the server has begun to give the file.
    pub fn is_found(&self) -> bool {
        self.found
    }

    /// The connection that it waits for.
    pub fn connection(&self, shared: &Shared<'_>) -> Option<Key> {
        shared.http.job(self.job).and_then(|job| job.line)
    }

    /// The status code of the response that came last; `None` before one came.
    pub fn status(&self) -> Option<u16> {
        (self.status != 0).then_some(self.status)
    }

    /// The head of that response; empty before one came, and while a request is on its way.
    pub fn head<'s>(&self, shared: &'s Shared<'_>) -> &'s [u8] {
        let head = shared.http.job(self.job).map_or(&[][..], |job| &job.head);
        if head.starts_with(b"HTTP/") { head } else { &[] }
    }

    /// What tells the state of the file that is fetched from others; empty if the server does not tell.
    pub fn validator<'s>(&self, shared: &'s Shared<'_>) -> &'s [u8] {
        shared.http.job(self.job).map_or(&[], |job| &job.validator)
    }

    /// Bytes of the file, if known.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// The URL that the file is at, as far as is known.
    fn place<'s>(&'s self, shared: &'s Shared<'_>) -> &'s [u8] {
        match shared.http.job(self.job) {
            Some(job) if self.redirected => &job.url,
            _ => self.url.as_ref(),
        }
    }

    #[inline(never)]
    fn name(&self, shared: &Shared<'_>) -> Name {
        let mut name = Name::new();
        if let Ok(url) = Url::parse(self.place(shared)) {
            // A host that parses is no longer.
            let _ = name.extend_from_slice(url.host);
        }
        name
    }

    /// Bytes that are to come in all, if known.
    #[inline(never)]
    fn want(&self) -> Option<u64> {
        self.total.map(|total| total.saturating_sub(self.start).min(self.len))
    }

    /// Bytes that are asked for: a range has at least one (RFC 9110 §14.1.2), also when none is wanted.
    fn ranged(&self) -> u64 {
        self.len.max(1)
    }

    /// Gives the connection up; `kindly`: nothing is missing.
    #[inline(never)]
    fn hang_up(&mut self, cx: &mut Cx<'_, '_, H>, kindly: bool) {
        let Some(job) = cx.shared.http.job_mut(self.job) else { return };
        job.until = Instant::NEVER;
        if let Some(key) = job.line.take() {
            // Should it be gone already, nothing is left to do.
            let _ = if kindly { cx.tcp.close(cx.stack, key) } else { cx.tcp.abort(cx.stack, key) };
        }
    }

    // The stages are out of line: none is to stand on the stack of another.
    fn step(&mut self, cx: &mut Cx<'_, '_, H>) -> Result<Go> {
        match &mut self.stage {
            Stage::Start => {
                self.stage = Stage::Resolve(Resolve::new());
                Ok(Go::On)
            }
            Stage::Resolve(_) => self.look_up(cx),
            Stage::Connect => self.connect(cx),
            Stage::Talk(_) => self.talk(cx),
            Stage::Wait(at) if cx.stack.now < *at => Ok(Go::At(*at)),
            Stage::Wait(_) => {
                self.stage = Stage::Start;
                Ok(Go::On)
            }
        }
    }

    #[inline(never)]
    fn connect(&mut self, cx: &mut Cx<'_, '_, H>) -> Result<Go> {
        let Some((key, to)) = cx.shared.http.job(self.job).and_then(|job| Some((job.line?, job.to))) else {
            return Err(Error::NotConnected);
        };
        let stream = TcpStream { tcp: &mut *cx.tcp, stack: &mut *cx.stack, key };
        let open = stream.is_open();
        // On a connection that waited nothing may have come, the end included.
        let stale = self.reused
            && (open != Ok(true)
                || stream.ended().is_some()
                || stream.peek().map_or(true, |(part, _)| !part.is_empty()));
        if stale {
            self.open(cx, to)?;
            return Ok(Go::On);
        }
        match open {
            Ok(false) => Ok(Go::At(Instant::NEVER)),
            Ok(true) => {
                self.ask(cx)?;
                Ok(Go::On)
            }
            Err(why) => self.broken(cx, why),
        }
    }

    /// Writes the request.
    #[inline(never)]
    fn ask(&mut self, cx: &mut Cx<'_, '_, H>) -> Result<()> {
        let Some(Job { head, url, validator, .. }) = cx.shared.http.job_mut(self.job) else { return Ok(()) };
        let place = if self.redirected { &url[..] } else { self.url.as_ref() };
        let url = Url::parse(place)?;
        let first = self.position();
        let end = self.start.checked_add(self.ranged()).filter(|_| self.len != u64::MAX);
        let last = end.map(|end| end.saturating_sub(1));
        self.asked = self.method == Method::Get && (first > 0 || last.is_some());
        let known = match &self.if_range {
            Some(text) if validator.is_empty() => text.as_ref(),
            _ => &validator[..],
        };
        let basic = self.user.as_ref().map(|(user, password)| (user.as_ref(), password.as_ref()));
        let fields = self.fields.as_ref().map_or(&[][..], |fields| fields.as_ref());
        let terms = Terms {
            method: self.method,
            basic: basic.filter(|_| !self.away),
            fields: if self.away { &[] } else { fields },
            range: self.asked.then_some((first, last)),
            if_range: known,
            close: self.tuning.close,
        };
        write(head, &url, &terms)?;
        self.interim = 0;
        self.stage = Stage::Talk(Exchange::new());
        Ok(())
    }

    #[inline(never)]
    fn talk(&mut self, cx: &mut Cx<'_, '_, H>) -> Result<Go> {
        let now = cx.stack.now;
        let Stage::Talk(exchange) = &mut self.stage else { return Ok(Go::On) };
        let Some((job, key)) = cx.shared.http.job_mut(self.job).and_then(|job| job.line.map(|key| (job, key))) else {
            return Err(Error::NotConnected);
        };
        let mut stream = TcpStream { tcp: &mut *cx.tcp, stack: &mut *cx.stack, key };
        let mut nowhere = Dest::Discard;
        let dest = if self.drains { &mut nowhere } else { &mut self.dest };
        let turn = exchange.turn(&mut stream, &mut job.head, dest);
        let (heard, edge) = (exchange.heard(), exchange.edge());
        if heard != self.heard.0 {
            self.heard = (heard, now);
        }
        if exchange.has_body() && !self.drains && edge != self.delivered {
            self.delivered = edge;
            cx.progress.done = edge;
            self.refused = None;
        }
        match turn {
            Ok(Turn::On) => Ok(Go::On),
            Ok(Turn::Wait) => {
                let end = self.heard.1 + self.tuning.timeout();
                if now >= end { self.broken(cx, Error::Timeout) } else { Ok(Go::At(end.min(now + LOOK))) }
            }
            Ok(Turn::Refused) => {
                // It is not the server that is silent.
                self.heard.1 = now;
                if matches!(self.dest, Dest::Window(..)) {
                    return Ok(Go::At(Instant::NEVER));
                }
                let since = *self.refused.get_or_insert(now);
                if now.since(since) >= self.tuning.sink_stall() {
                    return Err(Error::SinkStalled);
                }
                Ok(Go::At(now + SINK_RETRY))
            }
            Ok(Turn::Head) => self.response(cx),
            Ok(Turn::Over) => self.over(cx),
            Err(Trouble::Broken(why)) => self.broken(cx, why),
            Err(Trouble::Fault(fault)) => Err(self.fault(cx, fault)),
            Err(Trouble::Failed(why)) => Err(why),
        }
    }

    fn fault(&self, cx: &mut Cx<'_, '_, H>, fault: Fault) -> Error {
        let from = cx.shared.http.job(self.job).map(|job| job.to.addr);
        cx.detail.set(DetailKind::Http, u32::from(self.status), from, fault.text());
        fault.error()
    }

    /// A head has come.
    #[inline(never)]
    fn response(&mut self, cx: &mut Cx<'_, '_, H>) -> Result<Go> {
        let Some(job) = cx.shared.http.job_mut(self.job) else { return Err(Error::NotConnected) };
        let Stage::Talk(exchange) = &mut self.stage else { return Ok(Go::On) };
        let head = match Head::parse(&job.head) {
            Ok(head) => head,
            Err(fault) => return Err(self.fault(cx, fault)),
        };
        if head.status < 200 {
            self.interim = self.interim.saturating_add(1);
            // RFC 9110 §15.2.2: nobody asked for another protocol.
            if head.status == 101 || self.interim > MAX_INTERIM {
                return Err(self.fault(cx, Fault::Interim));
            }
            job.head.clear();
            exchange.again();
            return Ok(Go::On);
        }
        self.status = head.status;
        // RFC 9112 §6.3.
        let framing = match head.length {
            _ if self.method == Method::Head || matches!(head.status, 204 | 304) => Framing::Length(0),
            _ if head.chunked => Framing::Chunked(Chunk::FIRST),
            Some(length) => Framing::Length(length),
            None => Framing::UntilEnd,
        };
        self.reusable = !head.close && !self.tuning.close && framing != Framing::UntilEnd;
        match head.status {
            200 | 203 | 204 => self.whole(cx, &head, framing),
            206 => self.part(cx, &head, framing),
            301 | 302 | 303 | 307 | 308 => self.redirect(cx, framing),
            416 if self.asked => self.unsatisfied(cx, &head),
            status => Err(self.refuse(cx, status)),
        }
    }

    /// The server's refusal.
    fn refuse(&self, cx: &mut Cx<'_, '_, H>, status: u16) -> Error {
        if let Some(job) = cx.shared.http.job(self.job) {
            cx.detail.set(DetailKind::Http, u32::from(status), Some(job.to.addr), reason(&job.head));
        }
        match status {
            401 | 403 | 407 => Error::Denied,
            404 | 410 => Error::NotFound,
            405 | 501 | 505 => Error::NotSupported,
            412 => Error::Changed,
            414 => Error::NameTooLong,
            200..=399 => Error::Protocol,
            _ => Error::Remote,
        }
    }

    /// Whether the response is about the file that parts have come of, or should have come of; `None`: there are none, or
    /// it does not say.
    fn is_same_file(&self, job: &Job) -> Option<bool> {
        let known = match &self.if_range {
            Some(text) if job.validator.is_empty() => text.as_ref(),
            _ => &job.validator[..],
        };
        if known.is_empty() { None } else { Some(is_same(&job.head, known).unwrap_or(false)) }
    }

    /// What the file is is known now.
    #[inline(never)]
    fn found(&mut self, cx: &mut Cx<'_, '_, H>, total: Option<u64>) -> Result<()> {
        if let (Some(before), Some(now)) = (self.total, total)
            && before != now
        {
            return Err(Error::Changed);
        }
        self.total = self.total.or(total);
        self.found = true;
        let want = self.want();
        cx.progress.total = want;
        if let (Some(want), Some(capacity)) = (want, self.dest.capacity())
            && want > capacity
            && self.method == Method::Get
        {
            return Err(Error::TooBig);
        }
        if let Some(job) = cx.shared.http.job_mut(self.job)
            && job.validator.is_empty()
        {
            job.validator = validator(&job.head);
        }
        Ok(())
    }

    /// The whole file comes, or its head is all that was wanted.
    #[inline(never)]
    fn whole(&mut self, cx: &mut Cx<'_, '_, H>, head: &Head, framing: Framing) -> Result<Go> {
        let Some(job) = cx.shared.http.job(self.job) else { return Err(Error::NotConnected) };
        let skip = self.position();
        // RFC 9110 §13.1.5: the whole comes where the file is another one, and where the server gives no parts.
        if (skip > 0 || self.found) && self.is_same_file(job) == Some(false) {
            return Err(Error::Changed);
        }
        self.found(cx, head.length)?;
        if self.total.is_some_and(|total| skip > total) && self.method == Method::Get {
            return Err(Error::EndOfFile);
        }
        let end = self.want().unwrap_or(self.len);
        if let Stage::Talk(exchange) = &mut self.stage {
            exchange.body(framing, skip, self.delivered, end);
        }
        Ok(Go::On)
    }

    /// A part of the file comes.
    #[inline(never)]
    fn part(&mut self, cx: &mut Cx<'_, '_, H>, head: &Head, framing: Framing) -> Result<Go> {
        let Some(job) = cx.shared.http.job(self.job) else { return Err(Error::NotConnected) };
        let position = self.position();
        let range = head.range.and_then(|range| Some((range.part?, range)));
        let Some(((first, last), range)) = range.filter(|_| self.asked) else {
            return Err(self.fault(cx, Fault::Range));
        };
        let end = self.start.saturating_add(self.ranged());
        let within = self.len == u64::MAX || last < end;
        let whole = !matches!(framing, Framing::Length(length) if length != range.len());
        // Less than was asked for can be told from the end of the file only by its length.
        let bounded = range.total.or(self.total).is_some() || last.checked_add(1) == Some(end);
        if first != position || !within || !whole || !bounded {
            return Err(self.fault(cx, Fault::Range));
        }
        if self.is_same_file(job) == Some(false) && (field(&job.head, b"ETag").is_some() || self.is_dated(job)) {
            return Err(Error::Changed);
        }
        self.found(cx, range.total)?;
        let end = self.delivered.saturating_add(range.len()).min(self.len);
        if let Stage::Talk(exchange) = &mut self.stage {
            exchange.body(framing, 0, self.delivered, end);
        }
        Ok(Go::On)
    }

    /// Whether the file is known by its date, and the response has one: then they must be the same.
    fn is_dated(&self, job: &Job) -> bool {
        !job.validator.starts_with(b"\"") && field(&job.head, b"Last-Modified").is_some()
    }

    /// Nothing of the file lies where it was asked for (RFC 9110 §15.5.17).
    #[inline(never)]
    fn unsatisfied(&mut self, cx: &mut Cx<'_, '_, H>, head: &Head) -> Result<Go> {
        let position = self.position();
        let known = self.delivered > 0 || self.if_range.is_some();
        match head.range.and_then(|range| range.total) {
            Some(total) if total == position && self.total.is_none_or(|before| before == total) => {
                self.total = Some(total);
                self.hang_up(cx, true);
                Ok(Go::Done(self.delivered))
            }
            Some(_) if known => Err(Error::Changed),
            _ => {
                self.refuse(cx, head.status);
                Err(Error::EndOfFile)
            }
        }
    }

    /// The file is elsewhere (RFC 9110 §15.4).
    #[inline(never)]
    fn redirect(&mut self, cx: &mut Cx<'_, '_, H>, framing: Framing) -> Result<Go> {
        let Some(left) = self.redirects.checked_sub(1) else {
            self.refuse(cx, self.status);
            return Err(Error::Loop);
        };
        self.redirects = left;
        let Some(Job { head, url, .. }) = cx.shared.http.job_mut(self.job) else { return Err(Error::NotConnected) };
        if !self.redirected {
            // One that parses fits.
            url.clear();
            let _ = url.extend_from_slice(self.url.as_ref());
        }
        let location = field(head, b"Location").filter(|location| !location.is_empty());
        let other = match location.map(|location| resolve(url, location)) {
            Some(Ok(())) => Url::parse(url)?,
            Some(Err(why @ (Error::NotSupported | Error::AddressFamily))) => {
                self.fault(cx, Fault::Location);
                return Err(why);
            }
            _ => return Err(self.fault(cx, Fault::Location)),
        };
        let own = Url::parse(self.url.as_ref())?;
        self.away = !same(own.host, other.host) || own.port != other.port;
        self.redirected = true;
        self.drains = true;
        if let Stage::Talk(exchange) = &mut self.stage {
            exchange.body(framing, 0, 0, DRAIN);
        }
        Ok(Go::On)
    }

    /// The body has come.
    fn over(&mut self, cx: &mut Cx<'_, '_, H>) -> Result<Go> {
        let Stage::Talk(exchange) = &self.stage else { return Ok(Go::On) };
        let (ended, missing) = (exchange.is_over(), exchange.is_short());
        let now = cx.stack.now;
        if ended && self.reusable {
            cx.shared.http.keep(self.job, now);
        } else {
            self.hang_up(cx, ended);
        }
        if core::mem::take(&mut self.drains) {
            self.stage = Stage::Start;
            return Ok(Go::On);
        }
        if missing {
            // It ended before the part that was wanted.
            return Err(Error::EndOfFile);
        }
        if self.method == Method::Head {
            return Ok(Go::Done(self.total.unwrap_or(0)));
        }
        match self.want() {
            // A server may give less than it was asked for (RFC 9110 §15.3.7), but not for ever.
            Some(want) if self.delivered < want => self.again(cx, Error::EndOfFile, Duration::ZERO),
            want => {
                cx.progress.total = want.or(Some(self.delivered));
                self.total = self.total.or(Some(self.position()));
                Ok(Go::Done(self.delivered))
            }
        }
    }

    /// The connection has ended too early.
    #[inline(never)]
    fn broken(&mut self, cx: &mut Cx<'_, '_, H>, why: Error) -> Result<Go> {
        let mut silent = true;
        if let Stage::Talk(exchange) = &mut self.stage {
            if let Some(key) = cx.shared.http.job(self.job).and_then(|job| job.line) {
                let mut stream = TcpStream { tcp: &mut *cx.tcp, stack: &mut *cx.stack, key };
                exchange.abandon::<H, _>(&mut stream);
            }
            silent = exchange.heard() == 0;
            if exchange.has_body() && !self.drains {
                self.delivered = exchange.edge();
                cx.progress.done = self.delivered;
            }
        }
        self.hang_up(cx, false);
        if core::mem::take(&mut self.drains) || (self.reused && silent) {
            // RFC 9112 §9.3.1: it had ended before the request came.
            self.stage = Stage::Start;
            return Ok(Go::On);
        }
        let validated = cx.shared.http.job(self.job).is_some_and(|job| !job.validator.is_empty());
        let first = self.delivered == 0;
        // One that was never there will not be there at once either.
        let absent = silent && first && why != Error::ConnectionReset;
        if absent || (!first && !validated) {
            return Err(why);
        }
        self.again(cx, why, BACKOFF)
    }

    /// Asks for what is missing, if that has not been done too often.
    fn again(&mut self, cx: &mut Cx<'_, '_, H>, why: Error, wait: Duration) -> Result<Go> {
        if self.delivered.saturating_sub(self.amended) >= AMENDS {
            self.amended = self.delivered;
            self.retries = self.tuning.retries;
        }
        let used = self.tuning.retries.saturating_sub(self.retries).min(6);
        self.retries = self.retries.checked_sub(1).ok_or(why)?;
        self.stage = Stage::Wait(cx.stack.now + wait.times(1 << used));
        Ok(Go::On)
    }

    fn release(&mut self, cx: &mut Cx<'_, '_, H>) {
        if let Some(job) = cx.shared.http.job_mut(self.job) {
            job.taken = false;
        }
        self.job = None;
    }
}

impl<H: Host> Operation<H> for Get<H> {
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        if self.job.is_none() {
            self.job = cx.shared.http.take();
            if self.job.is_none() {
                return Step::Done(Err(Error::NoSlot));
            }
        }
        for _ in 0..TURNS {
            match self.step(cx) {
                Ok(Go::On) => {}
                Ok(Go::At(at)) => return Step::Pending(at),
                Ok(Go::Done(count)) => return Step::Done(Ok(count)),
                Err(why) => {
                    self.hang_up(cx, false);
                    return Step::Done(Err(why));
                }
            }
        }
        // More has come than one pass should take.
        Step::Pending(cx.stack.now)
    }

    fn datagram(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>) {
        let name = self.name(cx.shared);
        if let Stage::Resolve(lookup) = &mut self.stage {
            lookup.datagram(cx, &name, datagram);
        }
    }

    fn icmp_error(&mut self, cx: &mut Cx<'_, '_, H>, error: &IcmpError) {
        if let Stage::Resolve(lookup) = &mut self.stage {
            lookup.icmp_error(cx, error);
        }
    }

    fn cancel(&mut self, cx: &mut Cx<'_, '_, H>) {
        if let Stage::Resolve(lookup) = &mut self.stage {
            lookup.cancel(cx);
        }
        self.hang_up(cx, false);
    }

    fn forget(&mut self, cx: &mut Cx<'_, '_, H>) {
        self.release(cx);
    }
}
