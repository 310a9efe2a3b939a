//! The routing table: networks beyond the ones our addresses lie in. Longest prefix wins (RFC 1122 §3.3.1).

use super::interface::{NicId, mask};
use core::net::Ipv4Addr;

/// Who put a route into the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteOrigin {
    /// The host.
    Static,
    /// A DHCP lease; goes when the lease goes.
    Dhcp,
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Network address.
    pub network: Ipv4Addr,
    /// Prefix length in bits.
    pub prefix: u8,
    /// Next hop; unspecified when the network is on the link itself (RFC 3442).
    pub gateway: Ipv4Addr,
    /// Interface it leads through.
    pub nic: NicId,
    /// Who added it.
    pub origin: RouteOrigin,
}

impl Route {
    /// Whether `dst` lies in the network.
    pub fn covers(&self, dst: Ipv4Addr) -> bool {
        (dst.to_bits() ^ self.network.to_bits()) & mask(self.prefix) == 0
    }
}

/// The table, in memory given at start.
#[derive(Debug)]
pub struct Routes<'a> {
    slots: &'a mut [Option<Route>],
    changes: u32,
}

impl<'a> Routes<'a> {
    /// An empty table.
    pub fn new(slots: &'a mut [Option<Route>]) -> Self {
        slots.fill(None);
        Routes { slots, changes: 0 }
    }

    /// How often the table may have changed; wraps.
    #[inline]
    pub fn changes(&self) -> u32 {
        self.changes
    }

    /// Adds a route, replacing one to the same network through the same interface; `false` when the table is full.
    pub fn add(&mut self, route: Route) -> bool {
        self.changes = self.changes.wrapping_add(1);
        let same = |r: &Route| r.network == route.network && r.prefix == route.prefix && r.nic == route.nic;
        let at = self
            .slots
            .iter()
            .position(|s| s.as_ref().is_some_and(same))
            .or_else(|| self.slots.iter().position(Option::is_none));
        match at.and_then(|at| self.slots.get_mut(at)) {
            Some(slot) => {
                *slot = Some(route);
                true
            }
            None => false,
        }
    }

    /// Removes the routes for which `which` says so; how many went.
    pub fn remove(&mut self, which: impl Fn(&Route) -> bool) -> usize {
        self.changes = self.changes.wrapping_add(1);
        let mut gone: usize = 0;
        for slot in self.slots.iter_mut() {
            if slot.as_ref().is_some_and(&which) {
                *slot = None;
                gone = gone.saturating_add(1);
            }
        }
        gone
    }

    /// The most specific route to `dst`, restricted to `nic` where one is given.
    pub fn lookup(&self, dst: Ipv4Addr, nic: Option<NicId>) -> Option<&Route> {
        let fits = |r: &&Route| r.covers(dst) && nic.is_none_or(|n| n == r.nic);
        self.slots.iter().flatten().filter(fits).max_by_key(|r| r.prefix)
    }

    /// All routes.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.slots.iter().flatten()
    }
}
