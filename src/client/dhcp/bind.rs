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
    let mut buf = [0u8; 255];
    let mut search: heapless::Vec<u8, SEARCH> = heapless::Vec::new();
    let mut domains = 0;
    if let Some(list) = message.copy_option(code::DOMAIN_SEARCH, &mut buf).and_then(|len| buf.get(..len)) {
        domains = read_search(list, &mut search);
    }
    if domains == 0
        && let Some(domain) = message.text(code::DOMAIN_NAME, &mut buf)
    {
        let domain = domain.strip_suffix(b".").unwrap_or(domain);
        if is_domain(domain) && domain.len() <= SEARCH {
            // It fits: see above.
            let _ = search.extend_from_slice(domain);
        }
    }
    if !search.is_empty() {
        env.resolver.set_lease_search(env.nic, &search);
    }
}

/// Writes the names of a search list (RFC 3397) to `out`, with spaces between; how many there were. What does not fit is
/// left out.
fn read_search(list: &[u8], out: &mut heapless::Vec<u8, SEARCH>) -> usize {
    let mut at = 0;
    let mut count = 0usize;
    // A name takes at least a byte of the list.
    while at < list.len() {
        let Ok((name, next)) = Name::parse(list, at) else { break };
        at = next;
        let mut text: heapless::Vec<u8, SEARCH> = heapless::Vec::new();
        let mut fits = true;
        for label in name.labels() {
            fits &= text.is_empty() || text.push(b'.').is_ok();
            fits &= text.extend_from_slice(label).is_ok();
        }
        let room = out.capacity().saturating_sub(out.len());
        if fits && is_domain(&text) && text.len() < room {
            let _ = out.is_empty() || out.push(b' ').is_ok();
            let _ = out.extend_from_slice(&text);
            count = count.saturating_add(1);
        }
    }
    count
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
