//! The neighbour cache: hardware addresses of hosts on the link, learned by ARP (RFC 826, RFC 1122 §2.3.2).
//! Decides what to learn and when to ask; the frames are built in `arp`.

use super::interface::NicId;
use crate::storage::time::{Duration, Instant};
use crate::wire::ethernet::Address;
use core::net::Ipv4Addr;

/// How long a learned address is used without asking again.
pub const REACHABLE: Duration = Duration::from_secs(60);
/// Time between two requests for one address: at most one a second (RFC 1122 §2.3.2.1).
pub const RETRY: Duration = Duration::from_secs(1);
/// Requests before an address counts as unreachable.
pub const TRIES: u8 = 4;
/// How long an unreachable address is not asked for again.
pub const FAILED: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// Asked, not answered; nothing is known.
    Incomplete {
        tries: u8,
    },
    /// Known. `probes` counts the requests since it became old; it is used meanwhile.
    Known {
        mac: Address,
        probes: u8,
    },
    Failed,
}

/// One cache entry.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    addr: Ipv4Addr,
    nic: NicId,
    state: State,
    /// When to ask again, or when the entry becomes old or may be tried anew.
    timer: Instant,
    /// When it was last sent to; `None` for what was learned and never needed.
    used: Option<Instant>,
}

impl Entry {
    /// An unused entry.
    pub const FREE: Entry =
        Entry { addr: Ipv4Addr::UNSPECIFIED, nic: NicId(0), state: State::Free, timer: Instant::NEVER, used: None };
}

/// What the cache knows of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Its hardware address.
    Known(Address),
    /// Asked; wait. `ask`: a request is due now.
    Resolving {
        /// Whether to send a request now.
        ask: bool,
    },
    /// It does not answer.
    Failed,
}

/// What a timer pass wants done for one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Ask for this address; to one host if its hardware address is known (RFC 1122 §2.3.2.1).
    Ask(NicId, Ipv4Addr, Option<Address>),
    /// This address was given up.
    Failed(NicId, Ipv4Addr),
}

/// The cache, in memory given at start.
#[derive(Debug)]
pub struct Neighbours<'a> {
    entries: &'a mut [Entry],
    next: Instant,
    changes: u32,
}

impl<'a> Neighbours<'a> {
    /// A cache over `entries`, which are free.
    pub fn new(entries: &'a mut [Entry]) -> Self {
        Neighbours { entries, next: Instant::NEVER, changes: 0 }
    }

    /// The earliest time at which [`Self::due`] has something to say.
    pub fn deadline(&self) -> Instant {
        self.next
    }

    /// How often what is known of a neighbour may have changed; wraps.
    #[inline]
    pub fn changes(&self) -> u32 {
        self.changes
    }

    fn changed(&mut self) {
        self.changes = self.changes.wrapping_add(1);
    }

    #[inline]
    fn find(&mut self, nic: NicId, addr: Ipv4Addr) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|e| e.addr == addr && e.nic == nic && e.state != State::Free)
    }

    /// The hardware address of `addr`, if it is known, in order to send to it now.
    #[inline]
    pub fn known(&mut self, now: Instant, nic: NicId, addr: Ipv4Addr) -> Option<Address> {
        let e = self.find(nic, addr)?;
        let State::Known { mac, .. } = e.state else { return None };
        e.used = Some(now);
        Some(mac)
    }

    /// Looks up `addr` in order to send to it now; starts to resolve it when unknown. The second value says whether
    /// another entry was given up for it.
    #[inline]
    pub fn lookup(&mut self, now: Instant, nic: NicId, addr: Ipv4Addr) -> (Lookup, bool) {
        if let Some(e) = self.find(nic, addr) {
            e.used = Some(now);
            match e.state {
                State::Known { mac, .. } => return (Lookup::Known(mac), false),
                State::Incomplete { .. } => return (Lookup::Resolving { ask: false }, false),
                State::Failed if now < e.timer => return (Lookup::Failed, false),
                State::Failed | State::Free => {
                    e.state = State::Incomplete { tries: 1 };
                    e.timer = now + RETRY;
                    self.next = self.next.min(now + RETRY);
                    return (Lookup::Resolving { ask: true }, false);
                }
            }
        }
        self.changed();
        let Some(slot) = self.victim(true) else { return (Lookup::Failed, false) };
        let evicted = slot.state != State::Free;
        *slot = Entry { addr, nic, state: State::Incomplete { tries: 1 }, timer: now + RETRY, used: Some(now) };
        self.next = self.next.min(now + RETRY);
        (Lookup::Resolving { ask: true }, evicted)
    }

    /// The entry to reuse: a free one, else one never needed, else (when `needed`) the one not used for longest.
    fn victim(&mut self, needed: bool) -> Option<&mut Entry> {
        let rank = |e: &Entry| match (e.state, e.used) {
            (State::Free, _) => (0, Instant::ZERO),
            (State::Failed, _) => (1, Instant::ZERO),
            (_, None) => (2, e.timer),
            (_, Some(used)) => (3, used),
        };
        let best = self.entries.iter_mut().min_by_key(|e| rank(e))?;
        (needed || rank(best).0 < 3).then_some(best)
    }

    /// Whether `addr` is being asked for: a reply is awaited.
    fn awaited(e: &Entry) -> bool {
        matches!(e.state, State::Incomplete { .. }) || matches!(e.state, State::Known { probes, .. } if probes > 0)
    }

    /// Learns from an ARP reply to us: only what was asked for. `true` if it was.
    pub fn reply(&mut self, now: Instant, nic: NicId, addr: Ipv4Addr, mac: Address) -> bool {
        self.changed();
        match self.find(nic, addr) {
            Some(e) if Self::awaited(e) => {
                e.state = State::Known { mac, probes: 0 };
                e.timer = now + REACHABLE;
                self.next = self.next.min(now + REACHABLE);
                true
            }
            _ => false,
        }
    }

    /// Learns from a gratuitous announcement: updates what is there, adds nothing. `true` if it was there.
    pub fn announced(&mut self, now: Instant, nic: NicId, addr: Ipv4Addr, mac: Address) -> bool {
        self.changed();
        match self.find(nic, addr) {
            Some(e) if e.state != State::Failed => {
                e.state = State::Known { mac, probes: 0 };
                e.timer = now + REACHABLE;
                self.next = self.next.min(now + REACHABLE);
                true
            }
            _ => false,
        }
    }

    /// Learns from a request for our address, whose sender will want an answer; never displaces an entry in use.
    pub fn asked_by(&mut self, now: Instant, nic: NicId, addr: Ipv4Addr, mac: Address) {
        self.changed();
        let known = Entry { addr, nic, state: State::Known { mac, probes: 0 }, timer: now + REACHABLE, used: None };
        if let Some(e) = self.find(nic, addr) {
            let used = e.used;
            *e = Entry { used, ..known };
        } else if let Some(slot) = self.victim(false) {
            *slot = known;
        } else {
            return;
        }
        self.next = self.next.min(now + REACHABLE);
    }

    /// One thing to do at `now`, if any; call until `None`.
    pub fn due(&mut self, now: Instant) -> Option<Due> {
        if now < self.next {
            return None;
        }
        self.changed();
        for e in self.entries.iter_mut() {
            if now < e.timer {
                continue;
            }
            match e.state {
                State::Free => e.timer = Instant::NEVER,
                State::Incomplete { tries } if tries < TRIES => {
                    e.state = State::Incomplete { tries: tries.saturating_add(1) };
                    e.timer = now + RETRY;
                    return Some(Due::Ask(e.nic, e.addr, None));
                }
                State::Incomplete { .. } => {
                    e.state = State::Failed;
                    e.timer = now + FAILED;
                    return Some(Due::Failed(e.nic, e.addr));
                }
                State::Failed => *e = Entry::FREE,
                // Not needed since it was learned or last confirmed: forget it.
                State::Known { probes: 0, .. } if e.used.is_none_or(|used| now.since(used) >= REACHABLE) => {
                    *e = Entry::FREE;
                }
                State::Known { mac, probes } if probes < TRIES => {
                    e.state = State::Known { mac, probes: probes.saturating_add(1) };
                    e.timer = now + RETRY;
                    // RFC 1122 §2.3.2.1 (2): first ask the host itself, then everybody.
                    return Some(Due::Ask(e.nic, e.addr, (probes < 2).then_some(mac)));
                }
                State::Known { .. } => {
                    e.state = State::Failed;
                    e.timer = now + FAILED;
                    return Some(Due::Failed(e.nic, e.addr));
                }
            }
        }
        self.next = self.entries.iter().map(|e| e.timer).min().unwrap_or(Instant::NEVER);
        None
    }

    /// The request that was due did not leave: the NIC had no room. It is due again at once.
    pub fn unasked(&mut self, now: Instant, nic: NicId, addr: Ipv4Addr) {
        let Some(e) = self.find(nic, addr) else { return };
        match &mut e.state {
            State::Incomplete { tries: n } | State::Known { probes: n, .. } => *n = n.saturating_sub(1),
            State::Free | State::Failed => return,
        }
        e.timer = now;
        self.next = now;
    }

    /// Forgets everything learned through `nic`.
    pub fn forget(&mut self, nic: NicId) {
        self.changed();
        for e in self.entries.iter_mut().filter(|e| e.nic == nic) {
            *e = Entry::FREE;
        }
    }

    /// The hardware address of `addr`, without starting to resolve it.
    pub fn peek(&self, nic: NicId, addr: Ipv4Addr) -> Option<Address> {
        self.entries.iter().find(|e| e.addr == addr && e.nic == nic).and_then(|e| match e.state {
            State::Known { mac, .. } => Some(mac),
            _ => None,
        })
    }
}
