//! HTTP/1.1 (RFC 9110, RFC 9112): files fetched over a byte stream, straight to where they belong. `url` reads addresses and
//! follows redirects, `request` writes heads, `head` reads them, `body` says where data ends, `exchange` is one request and
//! its response over any [`ByteStream`](crate::tcp::stream::ByteStream), `range` says whether a part belongs to what came
//! before, `get` is the operation: names, connections, redirects and resuming. Encryption is for a stream that has it.
//!
//! What an operation works in, and a connection that waits for the next, is a [`Job`]: larger than what operations of other
//! protocols need, and kept until the operation is closed, so that the response's fields can be read.

pub mod body;
mod dest;
mod exchange;
pub mod file;
pub mod get;
pub mod head;
pub mod range;
pub mod request;
pub mod url;

#[cfg(test)]
mod tests;

use crate::stack::Stack;
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host};
use crate::storage::slots::Key;
use crate::storage::time::{Duration, Instant};
use crate::tcp::Tcp;
use core::net::Ipv4Addr;

pub use file::File;
pub use get::{Get, Request};

/// Most bytes of a request's or a response's head.
pub const MAX_HEAD: usize = 4096;
/// Most fields of a response's head.
pub const MAX_FIELDS: usize = 64;
/// Most bytes of a URL.
pub const MAX_URL: usize = 1024;
/// Most bytes of the user's own fields.
pub const MAX_FIELD_TEXT: usize = 2048;
/// Most bytes of a user name or a password.
pub const MAX_SECRET: usize = 255;
/// Longest validator kept: an entity tag or a date.
pub const MAX_VALIDATOR: usize = 128;
/// The port of `http` URLs.
pub const PORT: u16 = 80;
/// How long a connection that is no longer used waits for the next operation: less than servers wait.
const IDLE: Duration = Duration::from_secs(4);

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The file.
    #[default]
    Get,
    /// The head of what `Get` would give.
    Head,
}

/// Numbers of an operation; 0 means: what suits most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// How long the server may say nothing; 0: 30 s.
    pub timeout: Duration,
    /// How long a sink may take nothing; 0: 120 s.
    pub sink_stall: Duration,
    /// Redirects followed.
    pub redirects: u8,
    /// Connections lost before the transfer fails, while less than a mebibyte came in between; none if 0.
    pub retries: u8,
    /// The connection is not to be kept for the next operation.
    pub close: bool,
    /// Largest receive window in bytes of connections that are opened; 0: as TCP has it.
    pub receive_max: u32,
}

impl Tuning {
    fn timeout(&self) -> Duration {
        if self.timeout == Duration::ZERO { Duration::from_secs(30) } else { self.timeout }
    }

    fn sink_stall(&self) -> Duration {
        if self.sink_stall == Duration::ZERO { Duration::from_secs(120) } else { self.sink_stall }
    }
}

/// How a server broke the protocol, or went beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No head of HTTP/1: what came is something else.
    NotHttp,
    /// The head is longer than [`MAX_HEAD`].
    HeadTooLong,
    /// The head has more fields than [`MAX_FIELDS`].
    TooManyFields,
    /// Content-Length is not a number.
    Length,
    /// Content-Length has two values.
    Lengths,
    /// The length is larger than any file.
    LengthTooLarge,
    /// A transfer coding other than chunked.
    TransferCoding,
    /// The body is compressed, or coded otherwise, although that was not asked for.
    ContentCoding,
    /// Content-Range does not parse, or is not what was asked for.
    Range,
    /// The beginning or the end of a chunk is not what it must be.
    Chunk,
    /// A chunk is larger than any file.
    ChunkTooLarge,
    /// What follows the last chunk is longer than [`MAX_HEAD`].
    TrailerTooLong,
    /// More came than was promised.
    Longer,
    /// Another version of the protocol was switched to, or too many interim responses came.
    Interim,
    /// A redirect leads nowhere.
    Location,
}

impl Fault {
    /// What an operation fails with.
    pub fn error(self) -> Error {
        match self {
            Fault::HeadTooLong | Fault::TooManyFields | Fault::TrailerTooLong => Error::MessageSize,
            Fault::LengthTooLarge | Fault::ChunkTooLarge => Error::TooBig,
            Fault::TransferCoding | Fault::ContentCoding => Error::NotSupported,
            _ => Error::Protocol,
        }
    }

    /// The same in words, for an operation's detail.
    pub fn text(self) -> &'static [u8] {
        match self {
            Fault::NotHttp => b"not an HTTP/1 response",
            Fault::HeadTooLong => b"head too long",
            Fault::TooManyFields => b"too many fields in the head",
            Fault::Length => b"Content-Length is no number",
            Fault::Lengths => b"Content-Length has two values",
            Fault::LengthTooLarge => b"Content-Length too large",
            Fault::TransferCoding => b"unknown transfer coding",
            Fault::ContentCoding => b"content is coded",
            Fault::Range => b"not the range asked for",
            Fault::Chunk => b"malformed chunk",
            Fault::ChunkTooLarge => b"chunk too large",
            Fault::TrailerTooLong => b"trailer too long",
            Fault::Longer => b"body longer than promised",
            Fault::Interim => b"unexpected interim response",
            Fault::Location => b"redirect to no usable address",
        }
    }
}

/// What an operation works in.
#[derive(Debug)]
pub struct Job {
    /// An operation has it.
    taken: bool,
    /// The request while it is sent; then the head of the response.
    head: heapless::Vec<u8, MAX_HEAD>,
    /// Where redirects have led.
    url: heapless::Vec<u8, MAX_URL>,
    /// What tells this state of the file from others: a strong entity tag, or a date.
    validator: heapless::Vec<u8, MAX_VALIDATOR>,
    /// The connection.
    line: Option<Key>,
    /// Where it leads.
    to: Endpoint,
    /// Until when it waits for an operation; never while one has it.
    until: Instant,
}

impl Job {
    /// A free place.
    pub const fn new() -> Self {
        Job {
            taken: false,
            head: heapless::Vec::new(),
            url: heapless::Vec::new(),
            validator: heapless::Vec::new(),
            line: None,
            to: Endpoint { addr: Ipv4Addr::UNSPECIFIED, port: 0 },
            until: Instant::NEVER,
        }
    }
}

impl Default for Job {
    fn default() -> Self {
        Self::new()
    }
}

/// What HTTP keeps beside its operations.
#[derive(Debug)]
pub struct Shared<'a> {
    jobs: &'a mut [Job],
    /// When the first connection that waits is to be closed; it may be early, never late.
    until: Instant,
}

impl<'a> Shared<'a> {
    /// As many operations can run, or wait to be closed, as there are jobs.
    pub fn new(jobs: &'a mut [Job]) -> Self {
        Shared { jobs, until: Instant::NEVER }
    }

    /// When [`Self::tick`] has something to do.
    pub fn deadline(&self) -> Instant {
        self.until
    }

    /// Closes connections that have waited long enough.
    pub fn tick<'t, H: Host>(&mut self, tcp: &mut Tcp<'t, H>, stack: &mut Stack<'t, H>) {
        let now = stack.now;
        if now >= self.until {
            self.close_idle(tcp, stack, now);
        }
    }

    /// Ends all connections that wait, at once: others need their places, or the stack ends.
    pub fn make_room<'t, H: Host>(&mut self, tcp: &mut Tcp<'t, H>, stack: &mut Stack<'t, H>) {
        self.until = Instant::NEVER;
        for job in self.jobs.iter_mut().filter(|job| job.until != Instant::NEVER) {
            job.until = Instant::NEVER;
            if let Some(key) = job.line.take() {
                // As below.
                let _ = tcp.abort(stack, key);
            }
        }
    }

    /// Closes connections that wait, and were to do so no longer than `until`.
    fn close_idle<'t, H: Host>(&mut self, tcp: &mut Tcp<'t, H>, stack: &mut Stack<'t, H>, until: Instant) {
        self.until = Instant::NEVER;
        for job in self.jobs.iter_mut().filter(|job| job.until != Instant::NEVER) {
            if job.until > until {
                self.until = self.until.min(job.until);
                continue;
            }
            job.until = Instant::NEVER;
            if let Some(key) = job.line.take() {
                // Should it be gone already, nothing is left to do.
                let _ = tcp.close(stack, key);
            }
        }
    }

    #[inline(never)]
    fn job(&self, index: Option<u8>) -> Option<&Job> {
        self.jobs.get(usize::from(index?))
    }

    #[inline(never)]
    fn job_mut(&mut self, index: Option<u8>) -> Option<&mut Job> {
        self.jobs.get_mut(usize::from(index?))
    }

    /// Takes a job: one without a connection if there is one, so that others keep theirs.
    fn take(&mut self) -> Option<u8> {
        let free = || (0u8..).zip(self.jobs.iter()).filter(|(_, job)| !job.taken);
        let (index, _) = free().min_by_key(|(_, job)| job.line.is_some())?;
        let job = self.jobs.get_mut(usize::from(index))?;
        job.taken = true;
        job.head.clear();
        job.url.clear();
        job.validator.clear();
        Some(index)
    }

    /// Moves a connection to `to` that waits to job `index`; whether there was one.
    fn reuse(&mut self, index: Option<u8>, to: Endpoint) -> bool {
        let waits = |job: &&mut Job| job.line.is_some() && job.to == to && job.until != Instant::NEVER;
        let Some(line) = self.jobs.iter_mut().find(waits).and_then(|job| {
            job.until = Instant::NEVER;
            job.line.take()
        }) else {
            return false;
        };
        let Some(job) = self.job_mut(index) else { return false };
        job.line = Some(line);
        job.to = to;
        true
    }

    /// Has the connection of job `index` wait for another operation.
    fn keep(&mut self, index: Option<u8>, now: Instant) {
        let until = now + IDLE;
        if let Some(job) = self.job_mut(index).filter(|job| job.line.is_some()) {
            job.until = until;
            self.until = self.until.min(until);
        }
    }
}

/// Compares names and codings, in which case does not matter.
#[inline(never)]
fn same(a: &[u8], b: &[u8]) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// Reads a number in decimal digits and nothing else; `None` of the outer: no number, of the inner: too large.
fn decimal(text: &[u8]) -> Option<Option<u64>> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |sum: Option<u64>, digit: &u8| sum?.checked_mul(10)?.checked_add(u64::from(digit.wrapping_sub(b'0')));
    Some(text.iter().fold(Some(0), add))
}

/// The decimal digits of a number, as many as `at` has room for.
fn digits(mut number: u64, at: &mut [u8; 20]) -> &[u8] {
    let mut first = at.len();
    loop {
        first = first.saturating_sub(1);
        if let Some(place) = at.get_mut(first) {
            *place = b'0'.wrapping_add((number % 10) as u8);
        }
        number /= 10;
        if number == 0 || first == 0 {
            return at.get(first..).unwrap_or(&[]);
        }
    }
}
