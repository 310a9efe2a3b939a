//! Instants and durations in microseconds. The stack keeps one 64-bit time line; `ffi` extends the host's clock, which
//! may have 32 bits, onto it. Both types saturate: no arithmetic on times can wrap or panic.

use super::saturating;
use core::ops::{Add, AddAssign, Sub};

/// A point in time: microseconds on the stack's own time line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(u64);

/// A span of time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(u64);

impl Instant {
    /// The beginning of the time line.
    pub const ZERO: Instant = Instant(0);
    /// A time that never comes: the deadline of what waits for something other than time.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// The instant `us` microseconds after the beginning of the time line.
    pub const fn from_micros(us: u64) -> Self {
        Instant(us)
    }

    /// Microseconds since the beginning of the time line.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Time passed since `earlier`; zero if `earlier` is later than this.
    #[inline]
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(saturating::sub(self.0, earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// Longer than anything that is ever waited for.
    pub const MAX: Duration = Duration(u64::MAX);

    /// `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Duration(us)
    }

    /// `ms` milliseconds.
    #[inline]
    pub const fn from_millis(ms: u64) -> Self {
        // Most are constants: in place, so that the compiler computes them.
        Duration(ms.saturating_mul(1_000))
    }

    /// `s` seconds.
    #[inline]
    pub const fn from_secs(s: u64) -> Self {
        Duration(s.saturating_mul(1_000_000))
    }

    /// Whole microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole seconds, rounded down.
    pub const fn as_secs(self) -> u64 {
        saturating::div(self.0, 1_000_000)
    }

    /// This duration without `d`, at least zero.
    #[inline]
    pub const fn saturating_sub(self, d: Duration) -> Duration {
        Duration(saturating::sub(self.0, d.0))
    }

    /// This duration `n` times.
    #[inline]
    pub const fn times(self, n: u64) -> Duration {
        Duration(saturating::mul(self.0, n))
    }

    /// This duration divided by `n`; division by zero gives the whole.
    #[inline]
    pub const fn divided_by(self, n: u64) -> Duration {
        match n {
            0 => self,
            // Where it is a constant, this is a shift.
            n if n.is_power_of_two() => Duration(self.0 >> n.trailing_zeros()),
            n => Duration(saturating::div(self.0, n)),
        }
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    #[inline]
    fn add(self, d: Duration) -> Instant {
        Instant(saturating::add(self.0, d.0))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    #[inline]
    fn sub(self, d: Duration) -> Instant {
        Instant(saturating::sub(self.0, d.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Add for Duration {
    type Output = Duration;
    #[inline]
    fn add(self, d: Duration) -> Duration {
        Duration(saturating::add(self.0, d.0))
    }
}

impl Sub for Duration {
    type Output = Duration;
    #[inline]
    fn sub(self, d: Duration) -> Duration {
        Duration(saturating::sub(self.0, d.0))
    }
}
