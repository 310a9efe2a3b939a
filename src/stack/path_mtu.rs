//! Path MTUs learned from "fragmentation needed" (RFC 1191). Few are ever needed, so few are kept.

use crate::storage::time::{Duration, Instant};
use core::net::Ipv4Addr;

/// Destinations remembered.
const KEPT: usize = 4;
/// How long a path MTU is believed (RFC 1191 §6.3).
const AGE: Duration = Duration::from_secs(600);
/// The smallest MTU a link may have (RFC 791 §3.2); smaller claims are taken as this.
pub const MIN_MTU: u16 = 68;
/// MTUs of usual links, for routers that do not tell theirs (RFC 1191 §7).
const PLATEAUS: [u16; 8] = [17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296];

/// The path MTUs known.
#[derive(Debug, Default)]
pub struct PathMtus {
    known: heapless::Vec<(Ipv4Addr, u16, Instant), KEPT>,
    changes: u32,
}

impl PathMtus {
    /// The path MTU to `dst`, if it is less than the link's.
    #[inline]
    pub fn get(&self, now: Instant, dst: Ipv4Addr) -> Option<u16> {
        if self.known.is_empty() {
            return None;
        }
        self.known.iter().find(|(d, _, until)| *d == dst && now < *until).map(|(_, mtu, _)| *mtu)
    }

    /// How often something was learned; wraps.
    #[inline]
    pub fn changes(&self) -> u32 {
        self.changes
    }

    /// Learns from an ICMP error that a packet of `len` bytes to `dst` was too long for a link of `mtu` (0: the router
    /// does not tell). Only ever lowers what is known. To be called for errors whose quotation was seen to be ours.
    pub fn learn(&mut self, now: Instant, dst: Ipv4Addr, mtu: u16, len: u16) {
        let told =
            if mtu == 0 || mtu >= len { PLATEAUS.iter().copied().find(|p| *p < len).unwrap_or(MIN_MTU) } else { mtu };
        let mtu = told.max(MIN_MTU);
        if self.get(now, dst).is_some_and(|known| known <= mtu) {
            return;
        }
        self.changes = self.changes.wrapping_add(1);
        self.known.retain(|(d, _, until)| *d != dst && now < *until);
        if self.known.is_full() {
            self.known.remove(0);
        }
        // There is room now.
        let _ = self.known.push((dst, mtu, now + AGE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lowers_and_forgets() {
        let (t, dst) = (Instant::from_micros(1), Ipv4Addr::new(10, 0, 0, 1));
        let mut known = PathMtus::default();
        assert_eq!(known.get(t, dst), None);
        known.learn(t, dst, 1400, 1500);
        known.learn(t, dst, 1450, 1500);
        assert_eq!(known.get(t, dst), Some(1400));
        known.learn(t, dst, 0, 1400);
        assert_eq!(known.get(t, dst), Some(1006));
        known.learn(t, dst, 1, 1006);
        assert_eq!(known.get(t, dst), Some(MIN_MTU));
        for n in 2..7 {
            known.learn(t, Ipv4Addr::new(10, 0, 0, n), 1300, 1500);
        }
        assert_eq!((known.get(t, dst), known.get(t, Ipv4Addr::new(10, 0, 0, 6))), (None, Some(1300)));
        assert_eq!(known.get(t + AGE, Ipv4Addr::new(10, 0, 0, 6)), None);
    }
}
