//! Round-trip time: smoothed estimate and retransmission timeout (RFC 6298), and the smallest time seen lately, which
//! RACK needs (RFC 8985 §6.2). Which segments are timed is left to the sender.

use crate::storage::time::{Duration, Instant};

/// Timeout before a round trip was measured (RFC 6298 §2.1).
pub const INITIAL_RTO: Duration = Duration::from_secs(1);
/// Timeout after a SYN was lost (RFC 6298 §5.7).
pub const AFTER_SYN_LOSS: Duration = Duration::from_secs(3);
/// Longest timeout (RFC 6298 §2.4).
pub const MAX_RTO: Duration = Duration::from_secs(60);
/// Clock granularity G of RFC 6298: the host's clock may tick in milliseconds.
const GRANULARITY_US: u64 = 1_000;
/// How long a smallest time counts before it must be seen again.
const MIN_WINDOW: Duration = Duration::from_secs(10);

/// The estimator.
#[derive(Clone, Debug)]
pub struct Rtt {
    /// Smoothed, in microseconds; 0 before the first measurement.
    srtt_us: u64,
    var_us: u64,
    floor: Duration,
    base: Duration,
    /// Smallest of the current and of the previous span of `MIN_WINDOW`.
    min_now: Duration,
    min_before: Duration,
    min_since: Instant,
}

impl Rtt {
    /// Nothing measured; no timeout is shorter than the round trip and `floor`.
    pub const fn new(floor: Duration) -> Rtt {
        Rtt {
            srtt_us: 0,
            var_us: 0,
            floor,
            base: INITIAL_RTO,
            min_now: Duration::MAX,
            min_before: Duration::MAX,
            min_since: Instant::ZERO,
        }
    }

    /// Takes a measurement made at `now` (RFC 6298 §2.2, §2.3).
    pub fn sample(&mut self, now: Instant, measured: Duration) {
        // A clock that stands still measures nothing; a microsecond keeps "measured" apart from "not yet".
        let r = measured.as_micros().max(1);
        if self.srtt_us == 0 {
            self.srtt_us = r;
            self.var_us = r >> 1;
        } else {
            // Parts of wholes: none of these sums overflows.
            let off = self.srtt_us.abs_diff(r);
            self.var_us = self.var_us.wrapping_sub(self.var_us >> 2).wrapping_add(off >> 2);
            self.srtt_us = self.srtt_us.wrapping_sub(self.srtt_us >> 3).wrapping_add(r >> 3).max(1);
        }
        // The floor is put under the deviation, not under the sum: a long steady path keeps room for a late
        // acknowledgement.
        let least = Duration::from_micros(GRANULARITY_US).max(self.floor);
        let span = self.deviation().times(4).max(least);
        self.base = (Duration::from_micros(self.srtt_us) + span).min(MAX_RTO);
        if now.since(self.min_since) > MIN_WINDOW {
            self.min_before = self.min_now;
            self.min_now = Duration::MAX;
            self.min_since = now;
        }
        self.min_now = self.min_now.min(Duration::from_micros(r));
    }

    /// A SYN was lost, so nothing is known of the path but that one second was too short.
    pub fn syn_lost(&mut self) {
        if self.srtt_us == 0 {
            self.base = AFTER_SYN_LOSS.max(self.floor);
        }
    }

    /// The timeout, not backed off.
    pub const fn rto(&self) -> Duration {
        self.base
    }

    /// The timeout doubled `times` times, up to a minute.
    pub fn backed_off(&self, times: u8) -> Duration {
        self.base.times(1u64 << times.min(16)).min(MAX_RTO)
    }

    /// The smoothed round-trip time; `None` before the first measurement.
    pub fn smoothed(&self) -> Option<Duration> {
        (self.srtt_us != 0).then_some(Duration::from_micros(self.srtt_us))
    }

    /// Its mean deviation.
    pub const fn deviation(&self) -> Duration {
        Duration::from_micros(self.var_us)
    }

    /// The smallest time seen lately; `None` before the first measurement.
    pub fn smallest(&self) -> Option<Duration> {
        let least = self.min_now.min(self.min_before);
        (least != Duration::MAX).then_some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn timeouts_follow_rfc_6298() {
        let mut rtt = Rtt::new(ms(200));
        assert_eq!((rtt.rto(), rtt.smoothed()), (ms(1000), None));
        rtt.sample(Instant::ZERO, ms(100));
        assert_eq!(rtt.rto(), ms(300)); // 100 + 4 × 50
        rtt.sample(Instant::ZERO, ms(200));
        // var = 50 − 12.5 + 25 = 62.5, srtt = 87.5 + 25 = 112.5
        assert_eq!(rtt.rto(), Duration::from_micros(362_500));
        for _ in 0..200 {
            rtt.sample(Instant::ZERO, ms(1));
        }
        // The floor, plus a round trip that has come down to 1 ms but for rounding.
        assert_eq!(rtt.rto().as_millis(), 201);
        assert_eq!(rtt.backed_off(3).as_millis(), 1608);
        assert_eq!(rtt.backed_off(255), MAX_RTO);
    }

    #[test]
    fn a_lost_syn_leaves_three_seconds() {
        let mut rtt = Rtt::new(ms(200));
        rtt.syn_lost();
        assert_eq!(rtt.rto(), ms(3000));
        rtt.sample(Instant::ZERO, ms(80));
        rtt.syn_lost();
        assert_eq!(rtt.rto(), ms(280));
    }

    #[test]
    fn the_smallest_time_is_forgotten_after_two_windows() {
        let mut rtt = Rtt::new(ms(200));
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        assert_eq!(rtt.smallest(), None);
        rtt.sample(at(1), ms(5));
        rtt.sample(at(2), ms(50));
        assert_eq!(rtt.smallest(), Some(ms(5)));
        rtt.sample(at(13), ms(40));
        assert_eq!(rtt.smallest(), Some(ms(5)));
        rtt.sample(at(25), ms(45));
        assert_eq!(rtt.smallest(), Some(ms(40)));
    }
}
