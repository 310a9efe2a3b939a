//! The round trip time and the timer that follows from it (RFC 6298). The shortest timer is far below that RFC's second:
//! calls are repeated to servers nearby, and a repeated READ harms nobody.

use crate::storage::time::{Duration, Instant};

/// Timer before a round trip was measured (RFC 6298 §2.1).
pub const INITIAL: Duration = Duration::from_secs(1);
/// Longest timer, backoff included.
pub const LONGEST: Duration = Duration::from_secs(8);
/// What the timer is longer than the smoothed round trip, at least: the clock's and the server's grain.
const SLACK: Duration = Duration::from_millis(10);

/// Measures round trips and sets the timer.
#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    smoothed: Option<Duration>,
    variation: Duration,
    initial: Duration,
    backoff: u8,
}

impl Default for Rtt {
    fn default() -> Self {
        Rtt::new(INITIAL)
    }
}

impl Rtt {
    /// Nothing is known; the timer is `initial` until something is.
    pub const fn new(initial: Duration) -> Self {
        Rtt { smoothed: None, variation: Duration::ZERO, initial, backoff: 0 }
    }

    /// A call that was sent once, at `sent`, was answered (RFC 6298 §2.2, §2.3; §3: never one that was repeated).
    pub fn sample(&mut self, sent: Instant, now: Instant) {
        let sample = now.since(sent);
        match self.smoothed {
            None => {
                self.smoothed = Some(sample);
                self.variation = sample.divided_by(2);
            }
            Some(old) => {
                let (low, high) = (old.min(sample), old.max(sample));
                self.variation = (self.variation.times(3) + (high - low)).divided_by(4);
                self.smoothed = Some((old.times(7) + sample).divided_by(8));
            }
        }
        self.backoff = 0;
    }

    /// The smoothed round trip, if one was measured.
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// Time after which a call counts as lost, backoff included.
    pub fn timer(&self) -> Duration {
        let plain = match self.smoothed {
            None => self.initial,
            Some(smoothed) => smoothed + self.variation.times(4).max(SLACK),
        };
        plain.times(1u64.unbounded_shl(u32::from(self.backoff))).min(LONGEST.max(plain))
    }

    /// A timer has expired: the next one runs twice as long (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1).min(16);
    }

    /// Something was answered: the backoff ends.
    pub fn relax(&mut self) {
        self.backoff = 0;
    }

    /// How long the pieces of one datagram may take (landing rule f): max(4 × RTT, 250 ms), 1 s before one was measured.
    pub fn patience(&self) -> Duration {
        self.smoothed.map_or(Duration::from_secs(1), |rtt| rtt.times(4).max(Duration::from_millis(250)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_follows_rfc_6298() {
        let at = |ms: u64| Instant::from_micros(ms * 1000);
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timer(), Duration::from_secs(1));
        rtt.sample(at(0), at(100));
        assert_eq!((rtt.smoothed(), rtt.timer()), (Some(Duration::from_millis(100)), Duration::from_millis(300)));
        for _ in 0..100 {
            rtt.sample(at(0), at(100));
        }
        assert_eq!(rtt.timer(), Duration::from_millis(110), "the slack is left when nothing varies");
        rtt.back_off();
        assert_eq!(rtt.timer(), Duration::from_millis(220));
        for _ in 0..40 {
            rtt.back_off();
        }
        assert_eq!(rtt.timer(), LONGEST);
        rtt.sample(at(0), at(200));
        assert!(rtt.timer() < Duration::from_millis(300), "an answer ends the backoff");
        assert_eq!(rtt.patience(), Duration::from_millis(450));
    }
}
