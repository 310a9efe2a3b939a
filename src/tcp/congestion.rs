//! The congestion window: NewReno (RFC 5681) and CUBIC (RFC 9438), in integers, with a slow start that ends when delay
//! grows (HyStart++, RFC 9406). When something was lost, and how much is
//! in flight, is for `recovery`; this only answers how large the window is.
//!
//! Slow start counts bytes without a limit per acknowledgement (RFC 3465 with L unbounded): receivers that merge segments
//! acknowledge many at once.

use super::seq::Pos;
use crate::storage::saturating::mul;
use crate::storage::time::{Duration, Instant};

/// How the window grows and shrinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 5681: one segment per round trip, half at a loss.
    NewReno,
    /// RFC 9438: by the time since the last loss, 0.7 of it at a loss.
    #[default]
    Cubic,
}

/// No window grows beyond this, in bytes.
const MAX_WINDOW: u32 = 1 << 30;

/// The window of one connection.
#[derive(Clone, Debug)]
pub struct Congestion {
    algorithm: Algorithm,
    mss: u32,
    window: u32,
    threshold: u32,
    /// Bytes acknowledged that have not yet grown the window, scaled by it.
    carry: u64,
    cubic: Cubic,
    start: SlowStart,
}

/// HyStart++ (RFC 9406 §4.2): what the round trips of each round in slow start say of the queue.
#[derive(Clone, Debug)]
struct SlowStart {
    /// The round ends when this is acknowledged.
    round_end: Pos,
    last: Duration,
    current: Duration,
    samples: u8,
    /// Rounds left of conservative slow start, and the round trip that began it; 0 outside.
    conservative: u8,
    baseline: Duration,
    /// When the round began, and when the last of its acknowledgements came that followed closely.
    began: Instant,
    closely: Instant,
}

/// Samples of a round before it is judged.
const SAMPLES: u8 = 8;
/// Growth of the round trip that ends slow start: an eighth, between these.
const GROWTH: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));
/// Rounds of conservative slow start, in which the window grows by a quarter each.
const CONSERVATIVE: u8 = 5;

/// Acknowledgements that follow within this belong to one train.
const CLOSELY: Duration = Duration::from_millis(2);
/// Segments of the window below which trains say nothing.
const TRAIN_FROM: u32 = 16;

#[derive(Clone, Debug, Default)]
struct Cubic {
    /// W_max: the window before the last reduction, or less by fast convergence.
    max: u32,
    /// When this period of growth began.
    epoch: Option<Instant>,
    /// K: milliseconds until the window is `origin` again.
    k_ms: u64,
    origin: u32,
    /// W_est, the window NewReno would have.
    reno: u32,
    reno_carry: u64,
    /// The window before the last reduction: beyond it NewReno's estimate grows as NewReno does.
    prior: u32,
    /// The target computed for `target_at`, so that it is computed once a millisecond.
    target: u32,
    target_at: u64,
}

impl Congestion {
    /// The window at the start (RFC 6928): ten segments, or one when a SYN was lost (RFC 5681 §3.1).
    pub fn new(algorithm: Algorithm, mss: u32) -> Congestion {
        let mut c = Congestion {
            algorithm,
            mss: mss.max(1),
            window: 0,
            threshold: MAX_WINDOW,
            carry: 0,
            cubic: Cubic::default(),
            start: SlowStart {
                round_end: Pos::SYN,
                last: Duration::MAX,
                current: Duration::MAX,
                samples: 0,
                conservative: 0,
                baseline: Duration::MAX,
                began: Instant::ZERO,
                closely: Instant::ZERO,
            },
        };
        c.window = c.initial();
        c
    }

    /// The initial window of RFC 6928, in bytes.
    pub fn initial(&self) -> u32 {
        self.mss.saturating_mul(10).min(self.mss.saturating_mul(2).max(14_600))
    }

    /// The window in bytes.
    #[inline]
    pub const fn window(&self) -> u32 {
        self.window
    }

    /// The slow start threshold in bytes.
    pub const fn threshold(&self) -> u32 {
        self.threshold
    }

    /// Whether the window grows exponentially.
    #[inline]
    pub const fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// A SYN was lost: the first window is one segment.
    pub fn syn_lost(&mut self) {
        self.window = self.mss;
    }

    /// The segment size changed, by a smaller path MTU say.
    pub fn set_mss(&mut self, mss: u32) {
        self.mss = mss.max(1);
        self.window = self.window.max(self.mss);
    }

    /// New data of `acked` bytes was acknowledged outside recovery, while the window was what held the sender back.
    #[inline]
    pub fn on_ack(&mut self, now: Instant, acked: u32, rtt: Option<Duration>) {
        if self.in_slow_start() {
            let by = if self.start.conservative > 0 { acked >> 2 } else { acked };
            self.grow(by.min(self.threshold.saturating_sub(self.window).max(self.mss)));
            return;
        }
        match self.algorithm {
            Algorithm::NewReno => {
                self.carry = self.carry.saturating_add(u64::from(acked));
                let window = u64::from(self.window);
                if self.carry >= window {
                    self.carry = self.carry.saturating_sub(window);
                    self.grow(self.mss);
                }
            }
            Algorithm::Cubic => self.on_ack_cubic(now, acked, rtt.unwrap_or_default()),
        }
    }

    /// A round trip was measured in slow start, `una` being acknowledged and `nxt` sent next. Two signs tell that the path
    /// is nearly full: acknowledgements that follow closely over half a round trip (the train of HyStart, as Linux has it),
    /// and a round whose shortest time has grown (RFC 9406 §4.2). One makes growth conservative, both end slow start.
    #[inline]
    pub fn on_sample(&mut self, now: Instant, sample: Duration, smallest: Duration, una: Pos, nxt: Pos, times: u8) {
        if !self.in_slow_start() {
            return;
        }
        let start = &mut self.start;
        // The round begins with the first acknowledgement of what was sent in it, not with the last of the one before:
        // the segments of a flight wait behind each other, and only the first tell of the queue that stays.
        if una > start.round_end {
            start.round_end = nxt;
            start.last = start.current;
            start.current = Duration::MAX;
            start.samples = 0;
            start.began = now;
            start.closely = now;
            if start.conservative > 0 {
                start.conservative = start.conservative.saturating_sub(1);
                if start.conservative == 0 {
                    self.threshold = self.window;
                    return;
                }
            }
        }
        if now.since(start.closely) <= CLOSELY {
            start.closely = now;
            let train = now.since(start.began) > smallest.divided_by(2);
            if train && start.conservative == 0 && self.window >= self.mss.saturating_mul(TRAIN_FROM) {
                start.conservative = CONSERVATIVE;
                // Not to be taken back by a short round trip.
                start.baseline = Duration::ZERO;
            }
        }
        start.current = start.current.min(sample);
        start.samples = start.samples.saturating_add(times);
        if start.samples < SAMPLES || start.last == Duration::MAX {
            return;
        }
        if start.conservative > 0 && start.current < start.baseline {
            // It was a passing delay.
            start.conservative = 0;
        }
        let growth = start.last.divided_by(8).max(GROWTH.0).min(GROWTH.1);
        if start.current >= start.last + growth {
            if start.conservative > 0 && start.baseline == Duration::ZERO {
                self.threshold = self.window;
            } else if start.conservative == 0 {
                start.conservative = CONSERVATIVE;
                start.baseline = start.current;
            }
        }
    }

    fn grow(&mut self, by: u32) {
        self.window = self.window.saturating_add(by).min(MAX_WINDOW);
    }

    /// A loss was found by acknowledgements while `flight` bytes were out: lowers the threshold. The window itself comes
    /// down to it as recovery goes on (RFC 6937).
    pub fn on_loss(&mut self, flight: u32) {
        let base = flight.min(self.window).max(self.mss);
        self.threshold = match self.algorithm {
            Algorithm::NewReno => base >> 1,
            Algorithm::Cubic => {
                let cubic = &mut self.cubic;
                // RFC 9438 §4.7: a window that did not reach the last maximum gives room to others.
                cubic.max = if base < cubic.max { tenths(base, 17, 20) } else { base };
                cubic.prior = base;
                cubic.epoch = None;
                tenths(base, 7, 10)
            }
        }
        .max(self.mss.saturating_mul(2));
        self.carry = 0;
    }

    /// The retransmission timer expired (RFC 5681 §3.1).
    pub fn on_timeout(&mut self) {
        // RFC 9406 §4.3: only the first slow start needs to find the path's capacity.
        self.start.conservative = 0;
        self.start.last = Duration::MAX;
        self.start.current = Duration::MAX;
        self.window = self.mss;
        self.carry = 0;
    }

    /// Sets the window, as recovery goes on or ends.
    pub fn set_window(&mut self, window: u32) {
        self.window = window.clamp(self.mss, MAX_WINDOW);
    }

    /// Sets both back to what they were before a loss that was none.
    pub fn undo(&mut self, window: u32, threshold: u32) {
        self.window = self.window.max(window);
        self.threshold = self.threshold.max(threshold);
        self.cubic.epoch = None;
    }

    /// Nothing was sent for a timeout: the window says nothing of the path any more (RFC 5681 §4.1).
    pub fn restart_after_idle(&mut self) {
        self.window = self.window.min(self.initial());
        self.cubic.epoch = None;
    }

    fn on_ack_cubic(&mut self, now: Instant, acked: u32, rtt: Duration) {
        let (window, mss) = (self.window, self.mss);
        let cubic = &mut self.cubic;
        let epoch = match cubic.epoch {
            Some(epoch) => epoch,
            None => {
                cubic.epoch = Some(now);
                cubic.target_at = u64::MAX;
                cubic.reno = window;
                cubic.reno_carry = 0;
                if window < cubic.max {
                    // K = ∛((W_max − cwnd) / C), C = 0.4 segments a second cubed; here in milliseconds. Windows have
                    // 30 bits, so none of these products overflows.
                    let lack = u64::from(cubic.max.saturating_sub(window));
                    let cubed = lack.wrapping_mul(2_500_000_000).checked_div(u64::from(mss)).unwrap_or(0);
                    cubic.k_ms = cube_root(cubed);
                    cubic.origin = cubic.max;
                } else {
                    cubic.k_ms = 0;
                    cubic.origin = window;
                }
                now
            }
        };
        // RFC 9438 §4.2: the target is the window one round trip ahead.
        let t_ms = (now.since(epoch) + rtt).as_millis();
        if cubic.target_at != t_ms {
            cubic.target_at = t_ms;
            cubic.target = cubic.at(t_ms, mss).clamp(window, window.saturating_add(window >> 1));
        }
        // RFC 9438 §4.3: at least what NewReno would have; α = 3 (1 − β) / (1 + β) = 9/17 until the old window.
        let (num, den) = if cubic.reno < cubic.prior { (9, 17) } else { (1, 1) };
        let step = u64::from(acked).wrapping_mul(u64::from(mss)).wrapping_mul(num);
        cubic.reno_carry = cubic.reno_carry.wrapping_add(step);
        let unit = u64::from(cubic.reno.max(1)).wrapping_mul(den);
        let (whole, rest) = divide(cubic.reno_carry, unit);
        cubic.reno = cubic.reno.saturating_add(u32::try_from(whole).unwrap_or(u32::MAX)).min(MAX_WINDOW);
        cubic.reno_carry = rest;
        let (reno, target) = (cubic.reno, cubic.target);
        if reno > target {
            self.window = self.window.max(reno);
            return;
        }
        // RFC 9438 §4.4, §4.5: (target − cwnd) / cwnd for each segment acknowledged.
        let lack = u64::from(target.saturating_sub(window));
        self.carry = self.carry.wrapping_add(lack.wrapping_mul(u64::from(acked)));
        let (whole, rest) = divide(self.carry, u64::from(window.max(1)));
        self.carry = rest;
        self.grow(u32::try_from(whole).unwrap_or(u32::MAX));
    }
}

impl Cubic {
    /// W_cubic(t) = C (t − K)³ + W_max, in bytes.
    fn at(&self, t_ms: u64, mss: u32) -> u32 {
        let off = t_ms.abs_diff(self.k_ms).min(100_000);
        // 0.4 mss (ms / 1000)³, in an order that stays below 2⁶⁴.
        let cubed = off.wrapping_mul(off).wrapping_mul(off) / 1_000;
        let grown = cubed.wrapping_mul(u64::from(mss)) / 2_500_000;
        let grown = u32::try_from(grown).unwrap_or(u32::MAX);
        let size =
            if t_ms >= self.k_ms { self.origin.saturating_add(grown) } else { self.origin.saturating_sub(grown) };
        size.min(MAX_WINDOW)
    }
}

fn divide(n: u64, d: u64) -> (u64, u64) {
    (n.checked_div(d).unwrap_or(0), n.checked_rem(d).unwrap_or(0))
}

/// `value` × `num` / `den`.
fn tenths(value: u32, num: u64, den: u64) -> u32 {
    let part = u64::from(value).saturating_mul(num).checked_div(den).unwrap_or(0);
    u32::try_from(part).unwrap_or(u32::MAX)
}

/// The largest integer whose cube is not above `n`.
fn cube_root(n: u64) -> u64 {
    let mut root = 0u64;
    // Bit by bit from 2²¹, whose cube is 2⁶³.
    for bit in (0..22).rev() {
        let tried = root | 1 << bit;
        if mul(mul(tried, tried), tried) <= n {
            root = tried;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn cube_roots_are_exact() {
        for n in [0u64, 1, 7, 8, 26, 27, 28, 999_999_999, 1_000_000_000, u64::MAX >> 1] {
            let r = cube_root(n);
            assert!(r.pow(3) <= n && (r + 1).checked_pow(3).is_none_or(|c| c > n), "{n}: {r}");
        }
    }

    #[test]
    fn the_first_window_is_that_of_rfc_6928() {
        assert_eq!(Congestion::new(Algorithm::Cubic, 1460).window(), 14_600);
        assert_eq!(Congestion::new(Algorithm::Cubic, 536).window(), 5_360);
        assert_eq!(Congestion::new(Algorithm::Cubic, 8960).window(), 17_920);
        let mut c = Congestion::new(Algorithm::Cubic, 1460);
        c.syn_lost();
        assert_eq!(c.window(), 1460);
    }

    #[test]
    fn slow_start_doubles_and_newreno_then_adds_one_segment_a_round() {
        let mut c = Congestion::new(Algorithm::NewReno, MSS);
        assert_eq!(c.window(), 10_000);
        c.on_ack(at(0), 10_000, None);
        assert_eq!(c.window(), 20_000);
        c.on_loss(20_000);
        c.set_window(c.threshold());
        assert_eq!(c.window(), 10_000);
        for _ in 0..10 {
            c.on_ack(at(0), MSS, None);
        }
        assert_eq!(c.window(), 11_000);
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_no_threshold_is_below_two() {
        let mut c = Congestion::new(Algorithm::NewReno, MSS);
        c.on_loss(MSS);
        c.on_timeout();
        assert_eq!((c.window(), c.threshold()), (MSS, 2 * MSS));
    }

    /// One round trip: everything in the window is acknowledged, two segments an acknowledgement.
    fn round(c: &mut Congestion, now_ms: u64, rtt_ms: u64) {
        let acks = c.window() / (2 * MSS);
        for _ in 0..acks.max(1) {
            c.on_ack(at(now_ms), 2 * MSS, Some(Duration::from_millis(rtt_ms)));
        }
    }

    #[test]
    fn cubic_is_back_at_its_maximum_after_k_and_then_probes() {
        let mut c = Congestion::new(Algorithm::Cubic, MSS);
        c.set_window(1_000_000);
        c.on_loss(1_000_000);
        c.set_window(c.threshold());
        assert_eq!(c.window(), 700_000);
        // K = ∛(300 segments / 0.4) = 9.085 s
        let mut t = 0;
        while t < 9_085 {
            round(&mut c, t, 100);
            t += 100;
        }
        assert!((950_000..=1_005_000).contains(&c.window()), "{}", c.window());
        let plateau = c.window();
        for _ in 0..60 {
            round(&mut c, t, 100);
            t += 100;
        }
        // 0.4 × 6³ = 86 segments more, within a round trip's slack.
        assert!(c.window() > plateau + 60_000 && c.window() < plateau + 150_000, "{}", c.window());
    }

    #[test]
    fn cubic_gives_way_when_it_did_not_reach_its_old_maximum() {
        let mut c = Congestion::new(Algorithm::Cubic, MSS);
        c.set_window(100_000);
        c.on_loss(100_000);
        c.set_window(c.threshold());
        c.on_loss(c.window());
        assert_eq!(c.cubic.max, 59_500); // 70,000 × 0.85
    }

    #[test]
    fn cubic_is_never_slower_than_newreno_on_short_paths() {
        let mut c = Congestion::new(Algorithm::Cubic, MSS);
        c.set_window(20_000);
        c.on_loss(20_000);
        c.set_window(c.threshold());
        for n in 0..100 {
            round(&mut c, n, 1);
        }
        // NewReno with β = 0.7 adds about 9/17 of a segment a round at first, then a whole one.
        assert!(c.window() > 14_000 + 60 * MSS, "{}", c.window());
    }

    #[test]
    fn slow_start_gives_way_to_a_growing_queue() {
        let mut c = Congestion::new(Algorithm::Cubic, MSS);
        let mut una = Pos::DATA;
        let mut rounds = 0;
        let (mut delay, mut now) = (100u64, 0);
        while c.in_slow_start() && rounds < 30 {
            let nxt = una + u64::from(c.window());
            for _ in 0..c.window() / MSS {
                una += u64::from(MSS);
                c.on_sample(at(now), Duration::from_millis(delay), Duration::from_millis(100), una, nxt, 1);
                now += 3;
                c.on_ack(at(0), MSS, None);
            }
            rounds += 1;
            // From 160 segments on, each more waits.
            delay = 100 + u64::from((c.window() / MSS).saturating_sub(160));
        }
        assert!(!c.in_slow_start());
        // Seen at twice that, and then five rounds of a quarter more each.
        assert!(c.window() < 320_000 * 4, "{}", c.window());
        let mut c = Congestion::new(Algorithm::Cubic, MSS);
        for n in 0..10_000u64 {
            let sample = Duration::from_millis(100 + n % 3);
            c.on_sample(
                at(n * 3),
                sample,
                Duration::from_millis(100),
                Pos::DATA + n * 1000,
                Pos::DATA + (n + 100) * 1000,
                1,
            );
        }
        assert!(c.in_slow_start() && c.start.conservative == 0, "jitter does not end it");
    }

    #[test]
    fn idleness_brings_the_first_window_back() {
        let mut c = Congestion::new(Algorithm::Cubic, MSS);
        c.set_window(500_000);
        c.restart_after_idle();
        assert_eq!(c.window(), 10_000);
    }
}
