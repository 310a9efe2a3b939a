//! # Ping
//!
//! Echo requests (RFC 792) to one host.

use super::addr::lace_peer;
use super::guard::{enter, lace_stack};
use super::op::{Asks, Notify, lace_done, lace_op, lace_progress, start};
use super::results::{LACE_EBADF, LACE_EINVAL, code, status};
use super::structs::{Sized32, init, writable, write};
use crate::client::ops::Client;
use crate::client::ping::{Ping, Request};
use crate::storage::time::Duration;
use core::ffi::{c_int, c_void};

/// What to ask. Set up by `lace_ping_init`; copied at start.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_ping {
    /// Size of this struct.
    pub size: u32,
    /// How often; 0: once.
    pub count: u32,
    /// Whom; its name is looked up, and must live until the operation has ended.
    pub peer: lace_peer,
    /// Bytes of payload; default 56. Answers that come in fragments need `lace_config.reassembly_buffers`, of
    /// `reassembly_bytes` that hold them.
    pub payload: u32,
    /// Time between requests in milliseconds; 0: 1000.
    pub interval_ms: u32,
    /// Time to wait for the last answer in milliseconds; 0: 1000.
    pub timeout_ms: u32,
    /// Time to live; 0: 64.
    pub ttl: u8,
    /// 1: don't-fragment flag.
    pub dont_fragment: u8,
    /// 1: end with the first answer.
    pub until_answer: u8,
    /// 0.
    pub reserved: u8,
    /// Optional: counts answers.
    pub progress: lace_progress,
    /// Optional.
    pub done: lace_done,
    /// Passed to both.
    pub ctx: *mut c_void,
}

// SAFETY: integers, pointers and optional functions; the size is in front.
unsafe impl Sized32 for lace_ping {
    const MIN: usize = size_of::<lace_ping>();
    const PRESET: Option<fn(&mut Self)> = Some(|ping| (ping.count, ping.payload) = (1, 56));
}

impl Asks for lace_ping {
    fn notify(&self) -> Notify {
        Notify { progress: self.progress, done: self.done, ctx: self.ctx }
    }
}

/// Sets up `*ping`, `size` being `sizeof *ping`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_ping_init(ping: *mut lace_ping, size: usize) -> c_int {
    init(ping, size)
}

/// Starts to ping. The operation's result is the number of answers, at least 1.
///
/// Returns the operation; `LACE_EINVAL`, `LACE_EMSGSIZE` for a payload above 65507 bytes; `LACE_EMFILE`,
/// `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_ETIMEDOUT`: no answer;
/// `LACE_ENOENT`: there is no such name; `LACE_ENETUNREACH`; `LACE_EHOSTUNREACH` and `LACE_ECONNREFUSED`, also by
/// ICMP (see its detail); `LACE_EMSGSIZE`: more than fits where fragmenting is not allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_ping_start(net: *mut lace_stack, ping: *const lace_ping) -> lace_op {
    let or = |value, default| Duration::from_millis(u64::from(if value == 0 { default } else { value }));
    start(net, ping, |ping, _| {
        let peer = ping.peer.to_server()?;
        let request = Request {
            dst: peer.addr,
            count: ping.count.max(1),
            size: ping.payload as usize,
            interval: or(ping.interval_ms, 1000),
            timeout: or(ping.timeout_ms, 1000),
            dont_fragment: ping.dont_fragment != 0,
            ttl: if ping.ttl == 0 { 64 } else { ping.ttl },
            until_answer: ping.until_answer != 0,
        };
        match peer.name {
            Some(name) => Ping::named(name, request),
            None => Ping::new(request),
        }
        .map(Client::Ping)
        .map_err(code)
    })
}

/// What came of it so far. Set up by `lace_ping_stats_init`. Times in microseconds.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_ping_stats {
    /// Size of this struct.
    pub size: u32,
    /// Requests sent.
    pub sent: u32,
    /// Requests answered.
    pub received: u32,
    /// Further answers to the same request.
    pub duplicates: u32,
    /// ICMP errors.
    pub errors: u32,
    /// Shortest round trip.
    pub min_us: u32,
    /// Mean of all round trips.
    pub mean_us: u32,
    /// Longest round trip.
    pub max_us: u32,
}

// SAFETY: integers only, the size in front.
unsafe impl Sized32 for lace_ping_stats {
    const MIN: usize = size_of::<lace_ping_stats>();
}

/// Sets up `*stats`, `size` being `sizeof *stats`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_ping_stats_init(stats: *mut lace_ping_stats, size: usize) -> c_int {
    init(stats, size)
}

/// What came of a ping so far: fills in `*stats`.
///
/// Returns 0; `LACE_EINVAL` for an operation that is no ping, or `*stats` that was not set up; `LACE_EFAULT`,
/// `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_ping_result(net: *mut lace_stack, op: lace_op, stats: *mut lace_ping_stats) -> c_int {
    status(enter(net).and_then(|net| {
        let (key, _) = net.ops.find(op)?;
        writable(stats)?;
        let s = net.call_always(|core| match &core.engine.ops.get(key).ok_or(LACE_EBADF)?.client {
            Client::Ping(ping) => Ok(ping.statistics()),
            _ => Err(LACE_EINVAL),
        })?;
        let us = |d: Duration| u32::try_from(d.as_micros()).unwrap_or(u32::MAX);
        let value = lace_ping_stats {
            size: 0,
            sent: s.sent,
            received: s.received,
            duplicates: s.duplicates,
            errors: s.errors,
            min_us: us(s.min),
            mean_us: if s.received == 0 { 0 } else { us(s.total.divided_by(u64::from(s.received))) },
            max_us: us(s.max),
        };
        write(stats, &value)
    }))
}
