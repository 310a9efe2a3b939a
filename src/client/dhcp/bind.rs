//! What a lease brings to the rest of the stack: address, routes, MTU, name servers; and taking it away again.

use super::machine::Env;
use super::{Config, Terms};
use crate::client::dns::SEARCH;
use crate::stack::interface::{Cidr, is_host_address};
use crate::stack::route::{Route, RouteOrigin};
use crate::stack::stats::Counter;
use crate::storage::host::Host;
use crate::wire::dhcp::{Message, code};
use crate::wire::dns::Name;
use core::net::Ipv4Addr;

/// Least MTU taken from option 26: what every link carries (RFC 791 §3.2). Less would only make transfers slow.
pub const LEAST_MTU: u16 = 576;
/// Name servers taken from a lease.
const SERVERS: usize = 3;

/// Takes routes, MTU and name servers from an acknowledgement. `again`: it prolongs a lease, and what it does not name
/// stays as it is.
pub(super) fn apply<H: Host>(
    env: &mut Env<'_, '_, H>,
    message: &Message<'_>,
    terms: &Terms,
    config: &Config,
    again: bool,
) {
    apply_routes(env, message, terms, config, again);
    if let Some(interface) = env.stack.interface_mut(env.nic) {
        match message.u16(code::INTERFACE_MTU).filter(|mtu| *mtu >= LEAST_MTU) {
            Some(mtu) => interface.mtu = mtu.min(interface.frame_mtu),
            None if again => {}
            None => interface.mtu = interface.frame_mtu,
        }
    }
    apply_names(env, message, again);
}

fn apply_routes<H: Host>(env: &mut Env<'_, '_, H>, message: &Message<'_>, terms: &Terms, config: &Config, again: bool) {
    let nic = env.nic;
    // RFC 3442: with option 121, option 3 is ignored. One that does not parse to its end is as if it were not there.
    let whole = message.routes(code::CLASSLESS_ROUTES).all(|r| r.is_ok());
    let some = message.option_bytes(code::CLASSLESS_ROUTES).next().is_some();
    if message.has_option(code::CLASSLESS_ROUTES) && !(whole && some) {
        env.stack.stats.count(Counter::DropDhcpUnusable);
    }
    let classless = config.classless_routes && whole && some;
    if again && !classless && !message.has_option(code::ROUTER) {
        return;
    }
    env.stack.routes.remove(|r| r.nic == nic && r.origin == RouteOrigin::Dhcp);
    let mut add = |network, prefix, gateway| {
        // A table that is full loses the last of them.
        let _ = env.stack.routes.add(Route { network, prefix, gateway, nic, origin: RouteOrigin::Dhcp });
    };
    if classless {
        for route in message.routes(code::CLASSLESS_ROUTES).flatten() {
            if route.router != terms.addr {
                add(route.prefix, route.prefix_len, route.router);
            }
        }
        return;
    }
    let subnet = Cidr { addr: terms.addr, prefix: terms.prefix };
    let usable = |r: &Ipv4Addr| is_host_address(*r) && *r != terms.addr;
    let mut routers = message.ipv4_list(code::ROUTER).filter(usable);
    if terms.prefix == 32 {
        // A network of one address: its router is on the link all the same, as some providers of servers have it.
        if let Some(router) = routers.next() {
            add(router, 32, Ipv4Addr::UNSPECIFIED);
            add(Ipv4Addr::UNSPECIFIED, 0, router);
        }
        return;
    }
    // RFC 1122 §3.3.1.1: a router must be on the link. The first that is counts; without one there is no way out.
    match routers.find(|r| subnet.contains(*r)) {
        Some(router) => add(Ipv4Addr::UNSPECIFIED, 0, router),
        None if message.has_option(code::ROUTER) => env.stack.stats.count(Counter::DropDhcpUnusable),
        None => {}
    }
}

/// Takes name servers and the search list from an acknowledgement.
pub(super) fn apply_names<H: Host>(env: &mut Env<'_, '_, H>, message: &Message<'_>, again: bool) {
    if !again {
        env.resolver.remove_lease(env.nic);
    }
    let mut servers: heapless::Vec<Ipv4Addr, SERVERS> = heapless::Vec::new();
    for server in message.ipv4_list(code::DNS_SERVER).filter(|s| is_host_address(*s)).take(SERVERS) {
        // No more are taken than fit.
        let _ = servers.push(server);
    }
    if !servers.is_empty() {
        env.resolver.set_lease_servers(env.nic, &servers);
    }
    apply_search(env, message);
}

#[inline(never)]
fn apply_search<H: Host>(env: &mut Env<'_, '_, H>, message: &Message<'_>) {
    let mut buf = [0u8; 255];
    if let Some(list) = message.copy_option(code::DOMAIN_SEARCH, &mut buf).and_then(|len| buf.get(..len))
        && names(list).any(|name| fits(&name, SEARCH))
    {
        if let Some(search) = env.resolver.lease_search(env.nic) {
            read_search(list, search);
        }
        return;
    }
    if let Some(domain) = message.text(code::DOMAIN_NAME, &mut buf) {
        let domain = domain.strip_suffix(b".").unwrap_or(domain);
        if is_domain(domain)
            && domain.len() <= SEARCH
            && let Some(search) = env.resolver.lease_search(env.nic)
        {
            search.clear();
            // It fits: see above.
            let _ = search.extend_from_slice(domain);
        }
    }
}

/// The names of a search list (RFC 3397), up to the first that is none.
fn names(list: &[u8]) -> impl Iterator<Item = Name<'_>> {
    let mut at = 0;
    // A name takes at least a byte of the list.
    core::iter::from_fn(move || {
        let (name, next) = Name::parse(list, at).ok().filter(|_| at < list.len())?;
        at = next;
        Some(name)
    })
}

/// Whether `name` is that of a domain and, with dots between its labels, shorter than `room`.
fn fits(name: &Name<'_>, room: usize) -> bool {
    let len = name.labels().map(|label| label.len().saturating_add(1)).sum::<usize>();
    len > 0 && len <= room && name.labels().all(is_domain)
}

/// Writes the names of a search list to `out`, with spaces between. What does not fit is left out.
#[inline(never)]
fn read_search(list: &[u8], out: &mut heapless::Vec<u8, SEARCH>) {
    out.clear();
    for name in names(list) {
        if !fits(&name, out.capacity().saturating_sub(out.len())) {
            continue;
        }
        // There is room for all of it: see `fits`.
        let _ = out.is_empty() || out.push(b' ').is_ok();
        for (n, label) in name.labels().enumerate() {
            let _ = n == 0 || out.push(b'.').is_ok();
            let _ = out.extend_from_slice(label);
        }
    }
}

/// Whether `name` has only the characters that host names have (RFC 1123 §2.1), and underscores.
fn is_domain(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.' | b'_'))
}

/// Sets the address of a lease on its interface; `false` when the interface cannot hold one more.
pub(super) fn set_address<H: Host>(env: &mut Env<'_, '_, H>, terms: &Terms) -> bool {
    let cidr = Cidr { addr: terms.addr, prefix: terms.prefix };
    env.stack.interface_mut(env.nic).is_some_and(|i| i.add_address(cidr))
}

/// Takes away what a lease brought: the address, if it was set, and the rest.
pub(super) fn remove<H: Host>(env: &mut Env<'_, '_, H>, addr: Option<Ipv4Addr>) {
    let nic = env.nic;
    env.stack.routes.remove(|r| r.nic == nic && r.origin == RouteOrigin::Dhcp);
    if let Some(addr) = addr {
        env.stack.drop_lease(nic, addr);
    }
    if let Some(interface) = env.stack.interface_mut(nic) {
        interface.mtu = interface.frame_mtu;
    }
    env.resolver.remove_lease(nic);
}
