//! The path's MTU: found by ICMP (RFC 1191) and, where routers are silent, by timeouts of full segments (RFC 2923 §2.1, RFC
//! 4821 §7.7). Which errors are about which connection is for `demux`.

use crate::storage::time::{Duration, Instant};

/// IPv4 and TCP headers without options.
const HEADERS: u16 = 40;
/// No path MTU below this is believed: 576 less what tunnels take, as other stacks have it. RFC 791 promises 68 only, but
/// forged errors that say so would make each segment a burden.
const LEAST: u16 = 552;
/// The MTUs that are common, for routers that do not tell (RFC 1191 §7).
const PLATEAUS: [u16; 8] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, LEAST];
/// What a path takes on which longer segments vanish without a word.
const BLACK_HOLE: [u16; 2] = [1_280, LEAST];
/// How long a lowered MTU is kept before the interface's is tried again (RFC 1191 §6.3).
const RAISE_AFTER: Duration = Duration::from_secs(600);
/// Timeouts in a row of a full segment that mean a black hole.
const SUSPECT: u8 = 3;

/// What is known of a path.
#[derive(Clone, Debug)]
pub struct Path {
    mtu: u16,
    /// MTU of the interface.
    link: u16,
    lowered_at: Instant,
}

impl Path {
    /// A path through an interface of MTU `link`.
    pub const fn new(link: u16) -> Path {
        Path { mtu: link, link, lowered_at: Instant::NEVER }
    }

    /// The MTU in bytes.
    #[cfg(test)]
    pub const fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Largest segment, options included, in bytes.
    #[inline]
    pub const fn mss(&self) -> u32 {
        self.mtu.saturating_sub(HEADERS) as u32
    }

    /// Lowers the MTU; whether it did.
    fn lower(&mut self, mtu: u16, now: Instant) -> bool {
        let mtu = mtu.max(LEAST.min(self.link));
        if mtu >= self.mtu {
            return false;
        }
        self.mtu = mtu;
        self.lowered_at = now;
        true
    }

    /// A router says that a packet of ours is too long: for a link of MTU `told`, 0 where it does not tell.
    pub fn too_big(&mut self, told: u16, now: Instant) -> bool {
        let mtu = match told {
            0 => PLATEAUS.into_iter().find(|p| *p < self.mtu).unwrap_or(LEAST),
            told => told,
        };
        self.lower(mtu, now)
    }

    /// The interface takes packets of `mtu` bytes only.
    pub fn limit(&mut self, mtu: u16) -> bool {
        self.link = self.link.min(mtu);
        let lower = mtu < self.mtu;
        self.mtu = self.mtu.min(mtu);
        lower
    }

    /// A segment of `len` bytes timed out for the `times`th time in a row: whether shorter ones are to be tried.
    pub fn timed_out(&mut self, len: u32, times: u8, now: Instant) -> bool {
        if times < SUSPECT || !times.is_multiple_of(SUSPECT) {
            return false;
        }
        let packet = len.saturating_add(u32::from(HEADERS));
        match BLACK_HOLE.into_iter().find(|p| u32::from(*p) < packet) {
            Some(mtu) => self.lower(mtu, now),
            None => false,
        }
    }

    /// Tries the interface's MTU again after a while; whether it does.
    pub fn raise_if_old(&mut self, now: Instant) -> bool {
        let old = self.mtu < self.link && now.since(self.lowered_at) >= RAISE_AFTER;
        if old {
            self.mtu = self.link;
            self.lowered_at = Instant::NEVER;
        }
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routers_are_believed_within_reason() {
        let mut path = Path::new(1500);
        assert_eq!(path.mss(), 1460);
        assert!(!path.too_big(1500, Instant::ZERO) && !path.too_big(9000, Instant::ZERO));
        assert!(path.too_big(1400, Instant::ZERO));
        assert_eq!(path.mtu(), 1400);
        assert!(path.too_big(0, Instant::ZERO));
        assert_eq!(path.mtu(), 1006);
        assert!(path.too_big(68, Instant::ZERO));
        assert_eq!(path.mtu(), LEAST);
        assert!(!path.too_big(0, Instant::ZERO));
        assert!(!path.raise_if_old(Instant::ZERO + Duration::from_secs(599)));
        assert!(path.raise_if_old(Instant::ZERO + Duration::from_secs(600)));
        assert_eq!(path.mtu(), 1500);
    }

    #[test]
    fn silent_paths_get_shorter_segments() {
        let mut path = Path::new(1500);
        assert!(!path.timed_out(1460, 2, Instant::ZERO));
        assert!(path.timed_out(1460, 3, Instant::ZERO));
        assert_eq!(path.mtu(), 1280);
        assert!(!path.timed_out(1240, 4, Instant::ZERO));
        assert!(path.timed_out(1240, 6, Instant::ZERO));
        assert_eq!(path.mtu(), LEAST);
        assert!(!path.timed_out(512, 9, Instant::ZERO));
    }
}
