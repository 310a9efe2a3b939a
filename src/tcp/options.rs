//! How a connection is to behave, and what both ends agreed on in their SYNs (RFC 9293 §3.2, RFC 7323 §2, RFC 2018 §2).

pub use super::congestion::Algorithm;
use crate::storage::time::{Duration, Instant};
use crate::wire::tcp::{MAX_WINDOW_SCALE, Options as WireOptions};

/// Smallest segment size that is believed, in bytes: a peer that offers less, or 0, would have us send more headers than
/// data, or nothing.
pub const MIN_MSS: u16 = 64;
/// Segment size of a peer that offers none (RFC 9293 §3.7.1).
pub const DEFAULT_MSS: u16 = 536;

/// Probing of a connection on which nothing comes (RFC 9293 §3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// How long nothing must have come before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// How many probes go unanswered before the connection is given up.
    pub count: u8,
}

impl Default for Keepalive {
    /// Two hours (RFC 9293 §3.8.4), then nine probes 75 s apart.
    fn default() -> Self {
        Keepalive { idle: Duration::from_secs(7_200), interval: Duration::from_secs(75), count: 9 }
    }
}

/// What the user of a connection chooses before its SYN is sent.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Nagle's algorithm (RFC 9293 §3.7.4): hold a short segment back while another is not acknowledged.
    pub nagle: bool,
    /// Longest wait before data is acknowledged (RFC 9293 §3.8.6.3): below 500 ms; zero acknowledges each segment.
    pub delayed_ack: Duration,
    /// Probes when idle; none by default.
    pub keepalive: Option<Keepalive>,
    /// How long sent data may go unacknowledged (RFC 9293 §3.8.3).
    pub user_timeout: Duration,
    /// How long a connection may take to be established.
    pub connect_timeout: Duration,
    /// Largest receive window in bytes; fixes the window scale, so it counts from the SYN on.
    pub recv_max: u32,
    /// Congestion control.
    pub congestion: Algorithm,
    /// Smallest part of the retransmission timeout beyond the round trip.
    pub min_rto: Duration,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer SACK (RFC 2018).
    pub sack: bool,
    /// Offer window scaling (RFC 7323); without it windows stay below 64 KiB.
    pub window_scaling: bool,
    /// Time to live.
    pub ttl: u8,
    /// Type of service byte.
    pub tos: u8,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            nagle: true,
            delayed_ack: Duration::from_millis(40),
            keepalive: None,
            user_timeout: Duration::from_secs(120),
            connect_timeout: Duration::from_secs(180),
            recv_max: 2 << 20,
            congestion: Algorithm::Cubic,
            min_rto: Duration::from_millis(200),
            timestamps: true,
            sack: true,
            window_scaling: true,
            ttl: 64,
            tos: 0,
        }
    }
}

impl Options {
    /// The shift with which the largest window fits 16 bits (RFC 7323 §2.2).
    pub fn window_shift(&self) -> u8 {
        let mut shift = 0u8;
        while shift < MAX_WINDOW_SCALE && self.recv_max >> shift > u32::from(u16::MAX) {
            shift = shift.saturating_add(1);
        }
        shift
    }

    /// What a SYN of ours offers. `answer` is the peer's SYN where ours is a SYN-ACK: only what it offered is.
    pub fn offer(&self, mss: u16, answer: Option<&WireOptions>) -> WireOptions {
        let scaled = answer.is_none_or(|peer| peer.window_scale.is_some());
        WireOptions {
            max_segment_size: Some(mss),
            window_scale: (self.window_scaling && scaled).then(|| self.window_shift()),
            sack_permitted: self.sack && answer.is_none_or(|peer| peer.sack_permitted),
            ..WireOptions::default()
        }
    }
}

/// The timestamps of a connection (RFC 7323).
#[derive(Clone, Copy, Debug)]
pub struct Stamps {
    /// Added to the time in milliseconds.
    pub offset: u32,
    /// TS.Recent: the last value of the peer that counts.
    pub recent: u32,
    /// When it came.
    pub recent_at: Instant,
}

/// How long TS.Recent can be compared with (RFC 7323 §5.5).
const RECENT_VALID: Duration = Duration::from_secs(24 * 86_400);

impl Stamps {
    /// The value of our clock.
    #[inline]
    pub fn value(&self, now: Instant) -> u32 {
        self.offset.wrapping_add(now.since(Instant::ZERO).as_millis() as u32)
    }

    /// Time passed since a segment that carried `echo` was sent, with the clock's grain of a millisecond.
    #[inline]
    pub fn passed(&self, now: Instant, echo: u32) -> Duration {
        Duration::from_millis(u64::from(self.value(now).wrapping_sub(echo)))
    }

    /// Whether a segment with `value` is older than what came before it (PAWS, RFC 7323 §5.3).
    #[inline]
    pub fn is_old(&self, now: Instant, value: u32) -> bool {
        (value.wrapping_sub(self.recent) as i32) < 0 && now.since(self.recent_at) <= RECENT_VALID
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shift_is_the_smallest_that_fits() {
        let with = |recv_max| Options { recv_max, ..Options::default() }.window_shift();
        assert_eq!((with(0), with(65_535), with(65_536), with(1 << 20), with(u32::MAX)), (0, 0, 1, 5, 14));
    }

    #[test]
    fn stamps_compare_modulo_and_age() {
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        let stamps = Stamps { offset: 0xffff_ff00, recent: 0xffff_fff0, recent_at: at(0) };
        assert!(!stamps.is_old(at(1), 5));
        assert!(stamps.is_old(at(1), 0xffff_ffef));
        assert!(!stamps.is_old(at(25 * 86_400), 0xffff_ffef));
        assert_eq!(stamps.passed(at(2), stamps.value(at(1))), Duration::from_secs(1));
    }
}
