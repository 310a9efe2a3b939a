//! Names (RFC 1035): which servers are asked and which domains are tried, what is remembered of their answers, and
//! looking a name up, alone or as a part of another client.

// Without lookups nothing is remembered.
#[cfg_attr(not(feature = "dns"), allow(dead_code))]
mod cache;
#[cfg(not(feature = "dns"))]
mod literal_only;
#[cfg(feature = "dns")]
pub mod op;
#[cfg(feature = "dns")]
mod query;
#[cfg(all(test, feature = "dns"))]
mod tests;

use crate::stack::interface::NicId;
use crate::storage::error::Error;
use crate::storage::time::Instant;
use cache::Cache;
pub use cache::Cached;
use core::net::Ipv4Addr;
#[cfg(not(feature = "dns"))]
pub use literal_only::Resolve;
#[cfg(feature = "dns")]
pub use query::{ADDRESSES, Resolve};

/// Name servers that can be set.
pub const SERVERS: usize = 6;
/// Bytes of the search list.
pub const SEARCH: usize = 96;
/// Longest alias that is asked for, in bytes as on the wire; DNS allows 255.
#[cfg(feature = "dns")]
const ALIAS: usize = 128;

/// A name server and who named it: the host, or the lease of a NIC.
type Named = (Ipv4Addr, Option<NicId>);

/// What lookups share.
#[derive(Debug)]
pub struct Resolver<'a> {
    servers: heapless::Vec<Named, SERVERS>,
    search: heapless::Vec<u8, SEARCH>,
    /// The NIC whose lease gave the search list.
    search_of: Option<NicId>,
    cache: Cache<'a>,
    #[cfg(feature = "dns")]
    alias: Option<Alias>,
    /// What the lookup that was the last to end has found.
    #[cfg(feature = "dns")]
    found: Found,
}

/// How far a lookup is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// Not ended; poll again at this time, or when something came for it, or when what could not be sent may go.
    Pending(Instant),
    /// The first address.
    Ready(Ipv4Addr),
    /// [`Error::Invalid`] or [`Error::NameTooLong`]: no name can be like that. [`Error::NetworkUnreachable`]: no server is
    /// set. [`Error::NotFound`]: there is no such name, or it has no address. [`Error::Loop`]: too many aliases;
    /// [`Error::NameTooLong`] also for an alias of more than 128 bytes that is to be asked for.
    /// [`Error::Refused`], [`Error::Denied`], [`Error::Remote`] and errors of sending: every server failed, the last one so.
    /// [`Error::NotSupported`]: the answer does not fit a datagram. [`Error::Timeout`]: nobody answered.
    Failed(Error),
}

/// Addresses that were found.
#[cfg(feature = "dns")]
type Found = heapless::Vec<Ipv4Addr, ADDRESSES>;

/// The alias that a lookup asks for: one at a time, so that not every lookup has room for a name.
#[cfg(feature = "dns")]
#[derive(Debug)]
struct Alias {
    /// Slot of the operation.
    op: u8,
    /// When another may take its place, whatever became of the lookup.
    until: Instant,
    /// As on the wire, without compression.
    name: heapless::Vec<u8, ALIAS>,
}

#[cfg(feature = "dns")]
impl Alias {
    /// Longer than the servers are asked for one name.
    const KEEP: crate::storage::time::Duration = crate::storage::time::Duration::from_secs(60);
}

/// Reads a dotted address: four decimal numbers without leading zeros, which some read as octal.
#[inline(never)]
pub fn literal(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0u8; 4];
    let mut parts = text.split(|byte| *byte == b'.');
    for octet in &mut octets {
        let part = parts.next()?;
        let leads = part.len() > 1 && part.first() == Some(&b'0');
        if part.is_empty() || part.len() > 3 || leads {
            return None;
        }
        let mut value = 0u16;
        for digit in part {
            let digit = digit.checked_sub(b'0').filter(|d| *d <= 9)?;
            value = value.wrapping_mul(10).wrapping_add(u16::from(digit));
        }
        *octet = u8::try_from(value).ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

impl<'a> Resolver<'a> {
    /// A resolver without servers that remembers as many names as `cache` has entries.
    pub fn new(cache: &'a mut [Cached]) -> Self {
        Resolver {
            servers: heapless::Vec::new(),
            search: heapless::Vec::new(),
            search_of: None,
            cache: Cache::new(cache),
            #[cfg(feature = "dns")]
            alias: None,
            #[cfg(feature = "dns")]
            found: heapless::Vec::new(),
        }
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
        self.remove(of);
        // The host's own first, then these, then those of other leases; what does not fit is left out.
        let first = self.servers.iter().filter(|(_, of)| of.is_none()).count();
        for (at, addr) in (first..SERVERS).zip(servers) {
            if self.servers.is_full() {
                self.servers.pop();
            }
            // There is a place, and no gap before it.
            let _ = self.servers.insert(at, (*addr, of));
        }
    }

    /// Forgets the servers that the host named, or the lease of a NIC.
    fn remove(&mut self, of: Option<NicId>) {
        self.servers.retain(|(_, o)| *o != of);
        // Other servers may say otherwise.
        self.cache.clear();
    }

    /// Sets the servers that the lease of `nic` names.
    #[cfg(feature = "dhcp")]
    pub(super) fn set_lease_servers(&mut self, nic: NicId, servers: &[Ipv4Addr]) {
        self.replace(Some(nic), servers);
    }

    /// The search list, for the lease of `nic` to name it anew, unless the host has set one.
    #[cfg(feature = "dhcp")]
    pub(super) fn lease_search(&mut self, nic: NicId) -> Option<&mut heapless::Vec<u8, SEARCH>> {
        if !self.search.is_empty() && self.search_of.is_none() {
            return None;
        }
        self.search_of = Some(nic);
        Some(&mut self.search)
    }

    /// Forgets what the lease of `nic` named.
    #[cfg(feature = "dhcp")]
    pub(super) fn remove_lease(&mut self, nic: NicId) {
        self.remove(Some(nic));
        if self.search_of == Some(nic) {
            self.search.clear();
            self.search_of = None;
        }
    }

    /// The name that is asked for as number `index` when `name` is looked up: a name with a dot in it as it is, one without
    /// first in each domain of the search list (RFC 1123 §6.1.4.3). `None` when there are no more.
    #[cfg(feature = "dns")]
    fn candidate<'n>(&'n self, name: &'n [u8], index: u8) -> Option<Candidate<'n>> {
        let domains = if name.contains(&b'.') { &[][..] } else { self.search() };
        let mut left = index;
        for domain in domains.split(|byte| *byte == b' ').filter(|domain| !domain.is_empty()) {
            if left == 0 {
                return Some(Candidate { name, domain: domain.strip_suffix(b".").unwrap_or(domain) });
            }
            left = left.saturating_sub(1);
        }
        (left == 0).then_some(Candidate { name: name.strip_suffix(b".").unwrap_or(name), domain: &[] })
    }
}

/// A name in text form, in two parts, so that nowhere the whole need be put together.
#[cfg(feature = "dns")]
#[derive(Clone, Copy, Debug)]
struct Candidate<'n> {
    name: &'n [u8],
    /// Empty where the name is whole.
    domain: &'n [u8],
}

#[cfg(feature = "dns")]
impl<'n> Candidate<'n> {
    /// The text, in parts.
    fn parts(self) -> [&'n [u8]; 3] {
        [self.name, if self.domain.is_empty() { &[] } else { b"." }, self.domain]
    }

    /// Its length in bytes.
    fn len(self) -> usize {
        let dot = usize::from(!self.domain.is_empty());
        self.name.len().wrapping_add(dot).wrapping_add(self.domain.len())
    }

    /// By which it is remembered.
    #[inline(never)]
    fn hash(self) -> cache::NameHash {
        cache::NameHash::of(&self.parts())
    }

    /// Calls `each` on its labels, from the left.
    ///
    /// # Errors
    /// The first of `each`'s; [`crate::wire::Error::Malformed`]: no name is like that.
    fn labels(self, each: &mut dyn FnMut(&[u8]) -> crate::wire::Result<()>) -> crate::wire::Result<()> {
        use crate::wire::dns::{MAX_LABEL_LEN, MAX_NAME_LEN};
        // Each label's length takes the place of a dot; the first and the root are beside that.
        if self.len() > MAX_NAME_LEN - 2 {
            return Err(crate::wire::Error::Malformed);
        }
        for part in [self.name, self.domain].into_iter().take(if self.domain.is_empty() { 1 } else { 2 }) {
            for label in part.split(|byte| *byte == b'.') {
                if label.is_empty() || label.len() > MAX_LABEL_LEN {
                    return Err(crate::wire::Error::Malformed);
                }
                each(label)?;
            }
        }
        Ok(())
    }

    /// Whether this is `other`; case does not matter (RFC 4343).
    fn is(self, other: &crate::wire::dns::Name<'_>) -> bool {
        let mut labels = other.labels();
        let same = self.labels(&mut |label| match labels.next() {
            Some(theirs) if theirs.eq_ignore_ascii_case(label) => Ok(()),
            _ => Err(crate::wire::Error::Malformed),
        });
        same.is_ok() && labels.next().is_none()
    }

    /// Appends it to `w` as it is on the wire.
    fn emit(self, w: &mut crate::wire::cursor::Writer<'_>) -> crate::wire::Result<()> {
        self.labels(&mut |label| {
            w.u8(label.len() as u8)?;
            w.put(label)
        })?;
        w.u8(0)
    }
}
