//! Names that were looked up, for as long as their records may be kept (RFC 1035 §3.2.1).

use crate::storage::time::{Duration, Instant};
use core::net::Ipv4Addr;

/// Addresses kept of one name.
pub const ADDRESSES: usize = 4;
/// Longest time a name is kept, whatever its records say: a week's record must not outlive a change of the network.
pub const LONGEST_S: u32 = 86_400;

/// The hash of a name, by which it is found again. The names are the host's own, nobody can make two collide; by chance it
/// happens once in 2⁶⁴ pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameHash(u64);

impl NameHash {
    /// The hash of a name in text form, in parts; case does not matter (FNV-1a).
    pub(super) fn of(parts: &[&[u8]]) -> NameHash {
        let mut hash = 0xcbf2_9ce4_8422_2325;
        for byte in parts.iter().copied().flatten() {
            hash = (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0000_0100_0000_01b3);
        }
        NameHash(hash)
    }
}

/// A name that was looked up.
#[derive(Clone, Debug)]
pub struct Cached {
    name: NameHash,
    /// When it must be forgotten; [`Instant::ZERO`] for an unused entry.
    until: Instant,
    addrs: heapless::Vec<Ipv4Addr, ADDRESSES>,
}

impl Cached {
    /// An unused entry.
    pub const FREE: Cached = Cached { name: NameHash(0), until: Instant::ZERO, addrs: heapless::Vec::new() };
}

/// The table.
#[derive(Debug)]
pub(super) struct Cache<'a> {
    entries: &'a mut [Cached],
}

impl<'a> Cache<'a> {
    /// A table of unused entries.
    pub(super) fn new(entries: &'a mut [Cached]) -> Self {
        Cache { entries }
    }

    pub(super) fn clear(&mut self) {
        for entry in self.entries.iter_mut() {
            entry.until = Instant::ZERO;
        }
    }

    /// The addresses of a name, if they are known and may still be used.
    pub(super) fn get(&self, now: Instant, name: NameHash) -> Option<&[Ipv4Addr]> {
        self.entries.iter().find(|e| e.name == name && now < e.until).map(|e| e.addrs.as_slice())
    }

    /// Keeps a name for `ttl_s` seconds, in place of the entry that ends first. 0 seconds: for this lookup only.
    pub(super) fn put(&mut self, now: Instant, name: NameHash, ttl_s: u32, addrs: &[Ipv4Addr]) {
        if ttl_s == 0 {
            return;
        }
        let same = self.entries.iter().position(|e| e.name == name);
        let oldest = || self.entries.iter().enumerate().min_by_key(|(_, e)| e.until).map(|(at, _)| at);
        let Some(entry) = same.or_else(oldest).and_then(|at| self.entries.get_mut(at)) else { return };
        entry.name = name;
        entry.until = now + Duration::from_secs(u64::from(ttl_s.min(LONGEST_S)));
        entry.addrs.clear();
        // No more are taken than fit.
        let _ = entry.addrs.extend_from_slice(addrs.get(..ADDRESSES).unwrap_or(addrs));
    }
}
