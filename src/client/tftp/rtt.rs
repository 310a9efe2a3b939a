//! The round trip time, and the timer that follows from it (RFC 1123 §4.2.3.2: adaptive, with exponential backoff).

use crate::storage::time::{Duration, Instant};

/// Shortest time after which an answer counts as lost.
const FLOOR: Duration = Duration::from_millis(10);

/// Measures round trips and sets the timer.
#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    /// `Duration::MAX` before the first sample.
    smoothed: Duration,
    /// When what is to be a sample was sent; `NEVER` where nothing is.
    probe: Instant,
    backoff: u8,
}

impl Rtt {
    /// Nothing is known yet.
    pub const fn new() -> Self {
        Rtt { smoothed: Duration::MAX, probe: Instant::NEVER, backoff: 0 }
    }

    /// Something was sent for the first time whose answer will be a sample.
    pub fn start(&mut self, now: Instant) {
        self.probe = now;
    }

    /// Something was sent again: its answer tells nothing (Karn's rule, RFC 6298 §3).
    pub fn spoil(&mut self) {
        self.probe = Instant::NEVER;
    }

    /// The answer has come.
    #[inline]
    pub fn answer(&mut self, now: Instant) {
        self.backoff = 0;
        if self.probe == Instant::NEVER {
            return;
        }
        let sample = now.since(core::mem::replace(&mut self.probe, Instant::NEVER));
        self.smoothed = match self.smoothed() {
            None => sample,
            Some(old) => (old.times(7) + sample).divided_by(8),
        };
    }

    /// Forgets everything but the backoff's absence.
    pub fn restart(&mut self) {
        self.probe = Instant::NEVER;
        self.backoff = 0;
    }

    /// The smoothed round trip time, if one was measured.
    pub fn smoothed(&self) -> Option<Duration> {
        (self.smoothed != Duration::MAX).then_some(self.smoothed)
    }

    /// Time after which what is expected counts as lost, before any backoff: max(3 × RTT, 10 ms) (design §5.1); `cap`
    /// while no round trip was measured.
    #[inline]
    pub fn tail(&self, cap: Duration) -> Duration {
        match self.smoothed() {
            None => cap,
            Some(rtt) => rtt.times(3).max(FLOOR),
        }
    }

    /// The timer as it is now: doubled with each expiry, up to `cap`.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    pub fn timer(&self, cap: Duration) -> Duration {
        let tail = self.tail(cap);
        tail.times(1u64.unbounded_shl(u32::from(self.backoff))).min(cap.max(tail))
    }

    /// The timer has expired: the next one runs twice as long. Returns whether it had reached `cap` already.
    pub fn expire(&mut self, cap: Duration) -> bool {
        let full = self.timer(cap) >= cap;
        self.backoff = self.backoff.saturating_add(1).min(32);
        self.spoil();
        full
    }
}

impl Default for Rtt {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_follows_the_round_trips_and_backs_off() {
        let cap = Duration::from_secs(1);
        let at = |ms: u64| Instant::from_micros(ms * 1000);
        let mut rtt = Rtt::new();
        assert_eq!(rtt.timer(cap), cap);
        rtt.start(at(0));
        rtt.answer(at(1));
        assert_eq!(rtt.timer(cap), Duration::from_millis(10));
        for (ms, full) in [
            (20, false),
            (40, false),
            (80, false),
            (160, false),
            (320, false),
            (640, false),
            (1000, false),
            (1000, true),
        ] {
            assert_eq!(rtt.expire(cap), full);
            assert_eq!(rtt.timer(cap), Duration::from_millis(ms));
        }
        rtt.start(at(100));
        rtt.spoil();
        rtt.answer(at(900));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(1)), "an answer to what was sent again tells nothing");
        assert_eq!(rtt.timer(cap), Duration::from_millis(10));
        rtt.start(at(1000));
        rtt.answer(at(1009));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(2)));
    }
}
