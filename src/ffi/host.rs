//! # Host
//!
//! What the stack asks of the program around it: the time, chance, and in blocking calls a look at the watchdog and
//! the keyboard. Callbacks are of two kinds.
//!
//! *Leaf callbacks* run inside the stack: `now_us`, `random`, `log`, all of the NIC's but `pump`, and the `write`,
//! `read`, `map` and `release` of sinks and sources. In one of them, closing, cancelling and `lace_stack_stop` return
//! 0 and take effect when the stack is left; every other call that takes the stack returns `LACE_EBUSY`.
//!
//! *Upcalls* run while the stack is at rest: `poll`, `idle`, the NIC's `pump`, handlers of datagrams and raw hooks,
//! `progress`, `done`. In one of them every call that does not block works; `lace_poll` and whatever waits return
//! `LACE_EBUSY`. Closing and cancelling take effect at once, but memory lent to the upcall stays valid until it
//! returns. `lace_stack_stop`, `lace_nic_reset` and `lace_nic_remove` return 0 and wait until the outermost upcall
//! has returned. `lace_input` is accepted from `pump`, from `poll` and from outside only.
//!
//! Each stack is used by one thread at a time; different stacks have nothing in common. Interrupt handlers call
//! nothing.

use super::nic::CNic;
use super::region::Region;
use super::sink::{CPager, CReader, CText, CWriter};
use super::structs::{Sized32, init};
use crate::storage::host::{Host, LogEvent};
use crate::storage::time::{Duration, Instant};
use core::ffi::{c_int, c_void};

/// The host's callbacks. Set up by `lace_host_init`; copied by `lace_stack_init`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_host {
    /// Size of this struct, set by `lace_host_init`.
    pub size: u32,
    /// Bits of `now_us` that count, 32 or 64; default 64. A clock of 32 bits wraps after 71 minutes, and the stack
    /// must be polled more often than that while anything is going on.
    pub clock_bits: u32,
    /// Passed to every callback here. Must live as long as the stack.
    pub ctx: *mut c_void,
    /// Mandatory, leaf. Microseconds since any moment. May stand still for a while and step back by less than a
    /// second: time then stands still for the stack.
    pub now_us: Option<unsafe extern "C" fn(ctx: *mut c_void) -> u64>,
    /// Mandatory, leaf. 32 random bits: ports and identifiers that strangers must not guess are made of them.
    pub random: Option<unsafe extern "C" fn(ctx: *mut c_void) -> u32>,
    /// Optional, upcall. Called from blocking calls: feeds the watchdog, looks at the keyboard. A return other than 0
    /// ends the blocking call with `LACE_EINTR` after the operation was cancelled and its server told. It is called
    /// when the NICs are empty, at most once a millisecond while frames flow, and at latest every 10 ms.
    pub poll: Option<unsafe extern "C" fn(ctx: *mut c_void) -> c_int>,
    /// Optional, upcall. Called from blocking calls when nothing is to be done for `max_us` microseconds: may sleep
    /// as long, or until a frame comes. It need not sleep at all.
    pub idle: Option<unsafe extern "C" fn(ctx: *mut c_void, max_us: u32)>,
    /// Optional, leaf. `event` is one of `LACE_LOG_...`, which say what `a` and `b` are.
    pub log: Option<unsafe extern "C" fn(ctx: *mut c_void, event: u32, a: u64, b: u64)>,
}

// SAFETY: integers, pointers and optional functions; the size is in front.
unsafe impl Sized32 for lace_host {
    const MIN: usize = size_of::<lace_host>();
    const PRESET: Option<fn(&mut Self)> = Some(|host| host.clock_bits = 64);
}

/// Log event: an address was bound by DHCP. a: index of the NIC, b: IPv4 address.
pub const LACE_LOG_DHCP_BOUND: u32 = 1;
/// Log event: a lease was lost. a: index of the NIC, b: IPv4 address.
pub const LACE_LOG_DHCP_LOST: u32 = 2;
/// Log event: another host answers for an address of ours. a: index of the NIC, b: IPv4 address.
pub const LACE_LOG_ADDRESS_CONFLICT: u32 = 3;
/// Log event: a transfer was restarted with smaller windows or blocks. a: block size, b: window size.
pub const LACE_LOG_TRANSFER_SHRUNK: u32 = 4;
/// Log event: a server's answer was refused. a: kind of operation, b: reason.
pub const LACE_LOG_BAD_REPLY: u32 = 5;
/// Log event: a neighbour did not answer. a: IPv4 address, b: tries.
pub const LACE_LOG_NEIGHBOUR_FAILED: u32 = 6;

/// Sets up `*host`, `size` being `sizeof *host`: no callbacks, a clock of 64 bits.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_host_init(host: *mut lace_host, size: usize) -> c_int {
    init(host, size)
}

/// The host as the core sees it.
#[derive(Debug)]
pub struct CHost {
    pub(super) calls: lace_host,
}

impl Host for CHost {
    type Memory = Region;
    type Nic = CNic;
    type Writer = CWriter;
    type Reader = CReader;
    type Pager = CPager;
    type Text = CText;
    #[cfg(feature = "dhcp")]
    type Lease = super::dhcp::CLease;
    #[cfg(not(feature = "dhcp"))]
    type Lease = super::sink::NoLease;

    fn random(&mut self) -> u32 {
        match self.calls.random {
            // SAFETY: the host vouches for its callback.
            Some(random) => unsafe { random(self.calls.ctx) },
            None => 0,
        }
    }

    fn log(&mut self, event: LogEvent, a: u64, b: u64) {
        if let Some(log) = self.calls.log {
            // SAFETY: the host vouches for its callback.
            unsafe { log(self.calls.ctx, event as u32, a, b) };
        }
    }
}

/// How far a clock may step back without being taken for one that has gone round.
const BACKSTEP: u64 = 1_000_000;
/// Where the stack's own time line begins, so that times before the first reading can be told.
const BEGIN: Instant = Instant::from_micros(1_000_000);

/// The stack's time line over the host's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    mask: u64,
    last: u64,
    now: Instant,
}

impl Clock {
    /// A time line that begins with the reading `first` of a clock of 32 or 64 bits.
    pub fn new(bits: u32, first: u64) -> Self {
        let mask = if bits == 32 { u64::from(u32::MAX) } else { u64::MAX };
        Clock { mask, last: first & mask, now: BEGIN }
    }

    /// The time of the last reading.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The time that belongs to the reading `raw`. A clock that stands still, or stepped back, makes time stand
    /// still; one that went round goes on.
    pub fn read(&mut self, raw: u64) -> Instant {
        let raw = raw & self.mask;
        let passed = raw.wrapping_sub(self.last) & self.mask;
        let back = self.last.wrapping_sub(raw) & self.mask;
        if back < BACKSTEP {
            return self.now;
        }
        self.last = raw;
        // Half of 64 bits never pass: such a clock was set back, and the time line goes on from there.
        if self.mask != u64::MAX || passed < 1 << 63 {
            self.now += Duration::from_micros(passed);
        }
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_k01_a_clock_of_32_bits_wraps_without_a_jump() {
        let trace = |bits, start: u64| {
            let mut clock = Clock::new(bits, start);
            let mut raw = start;
            (0..2000u64)
                .map(|i| {
                    raw = raw.wrapping_add(i * 1000);
                    let shown = if bits == 32 { raw & 0xffff_ffff } else { raw };
                    clock.read(shown).since(BEGIN).as_micros()
                })
                .collect::<std::vec::Vec<u64>>()
        };
        let zero = trace(64, 0);
        assert_eq!(zero.last(), Some(&(1000 * 1999 * 2000 / 2)));
        assert_eq!(trace(32, 0xffff_ff00), zero);
        assert_eq!(trace(32, 0), zero);
        assert_eq!(trace(64, u64::MAX - 5000), zero);
        // What stands above the 32 bits does not count.
        let mut clock = Clock::new(32, 0xdead_0000_0010);
        assert_eq!(clock.read(0x1_0000_0020).since(BEGIN).as_micros(), 16);
    }

    #[test]
    fn case_k01_a_clock_that_stands_or_steps_back_stops_time() {
        for bits in [32, 64] {
            let mut clock = Clock::new(bits, 0xffff_ff00);
            let t = clock.read(0xffff_ff00 + 10_000);
            assert_eq!(t.since(BEGIN).as_micros(), 10_000);
            assert_eq!(clock.read(0xffff_ff00 + 10_000), t);
            assert_eq!(clock.read(0xffff_ff00 + 5_000), t);
            assert_eq!(clock.read(0xffff_ff00 + 9_999), t);
            assert_eq!(clock.read(0xffff_ff00 + 10_001).since(t).as_micros(), 1);
        }
        let mut clock = Clock::new(64, 10_000_000_000);
        let t = clock.read(10_000_000_001);
        assert_eq!(clock.read(5), t, "a clock of 64 bits that is set back does not wrap");
        assert_eq!(clock.read(7).since(t).as_micros(), 2);
    }
}
