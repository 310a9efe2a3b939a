//! Names (RFC 1035): which servers are asked and which domains are tried, what is remembered of their answers, and
//! looking a name up, alone or as a part of another client.

use crate::stack::interface::NicId;
use core::net::Ipv4Addr;

/// Name servers that can be set.
pub const SERVERS: usize = 6;
/// Bytes of the search list.
pub const SEARCH: usize = 128;

/// A name server and who named it: the host, or the lease of a NIC.
type Named = (Ipv4Addr, Option<NicId>);

/// What lookups share.
#[derive(Debug)]
pub struct Resolver<'a> {
    servers: heapless::Vec<Named, SERVERS>,
    search: heapless::Vec<u8, SEARCH>,
    /// The NIC whose lease gave the search list.
    search_of: Option<NicId>,
    #[allow(dead_code)]
    cache: &'a mut [Cached],
}

/// A name that was looked up.
#[derive(Clone, Copy, Debug)]
pub struct Cached {}

impl Cached {
    /// An unused entry.
    pub const FREE: Cached = Cached {};
}

impl<'a> Resolver<'a> {
    /// A resolver without servers that remembers as many names as `cache` has entries.
    pub fn new(cache: &'a mut [Cached]) -> Self {
        Resolver { servers: heapless::Vec::new(), search: heapless::Vec::new(), search_of: None, cache }
    }

    /// Sets the servers that the host itself names; they are asked before those of leases. As many as fit are taken.
    pub fn set_servers(&mut self, servers: &[Ipv4Addr]) {
        self.replace(None, servers);
    }

    /// Sets the domains that are tried for names without a dot, with spaces between them; `false` if they do not fit.
    /// They count before those of leases.
    pub fn set_search(&mut self, domains: &[u8]) -> bool {
        self.search.clear();
        self.search_of = None;
        self.search.extend_from_slice(domains).is_ok()
    }

    /// The servers, in the order in which they are asked.
    pub fn servers(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.servers.iter().map(|(addr, _)| *addr)
    }

    /// The search list.
    pub fn search(&self) -> &[u8] {
        &self.search
    }

    fn replace(&mut self, of: Option<NicId>, servers: &[Ipv4Addr]) {
        let mut rest: heapless::Vec<Named, SERVERS> = heapless::Vec::new();
        core::mem::swap(&mut rest, &mut self.servers);
        let new = servers.iter().map(|addr| (*addr, of));
        let host = rest.iter().copied().filter(|(_, o)| o.is_none() && of.is_some());
        let leases = rest.iter().copied().filter(|(_, o)| o.is_some() && *o != of);
        // The host's own first; what does not fit is left out.
        for server in host.chain(new).chain(leases) {
            let _ = self.servers.push(server);
        }
    }

    /// Sets the servers that the lease of `nic` names.
    #[cfg(feature = "dhcp")]
    pub(super) fn set_lease_servers(&mut self, nic: NicId, servers: &[Ipv4Addr]) {
        self.replace(Some(nic), servers);
    }

    /// Sets the search list that the lease of `nic` names, unless the host has set one.
    #[cfg(feature = "dhcp")]
    pub(super) fn set_lease_search(&mut self, nic: NicId, domains: &[u8]) {
        if self.search.is_empty() || self.search_of.is_some() {
            self.set_search(domains);
            self.search_of = Some(nic);
        }
    }

    /// Forgets what the lease of `nic` named.
    #[cfg(feature = "dhcp")]
    pub(super) fn remove_lease(&mut self, nic: NicId) {
        self.servers.retain(|(_, of)| *of != Some(nic));
        if self.search_of == Some(nic) {
            self.search.clear();
            self.search_of = None;
        }
    }
}
