//! # Addresses of NICs, routes, groups
//!
//! A NIC has up to 4 addresses, each with the length of its network prefix, up to 4 multicast groups, and any number
//! of routes within the configuration's limit. DHCP adds and removes what its lease says by the same rules.

use super::addr::{lace_ip, v4_at};
use super::guard::{enter, lace_stack};
use super::nic::{handle_of, lace_nic_id, nic_at, nic_or_any};
use super::results::{
    LACE_EADDRNOTAVAIL, LACE_EBADF, LACE_EFAULT, LACE_EINVAL, LACE_EMFILE, LACE_ENETUNREACH, status, value,
};
use super::structs::{Sized32, init, write};
use super::udp::tx_code;
use crate::stack::interface::{Cidr, is_host_address};
use crate::stack::route::{Route, RouteOrigin};
use core::ffi::c_int;
use core::net::Ipv4Addr;

/// Gives a NIC the address `ip` in a network whose prefix has `prefix` bits, 0 to 32; changes the prefix of one it
/// has. An address that DHCP had set goes.
///
/// Returns 0; `LACE_EINVAL` for an address that no host can have; `LACE_EMFILE`: it has 4; `LACE_EBADF`,
/// `LACE_EAFNOSUPPORT`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_addr_add(
    net: *mut lace_stack,
    nic: lace_nic_id,
    ip: *const lace_ip,
    prefix: u32,
) -> c_int {
    status(enter(net).and_then(|net| {
        let id = nic_at(net, nic)?;
        let addr = v4_at(ip)?;
        let prefix = u8::try_from(prefix).ok().filter(|p| *p <= 32).ok_or(LACE_EINVAL)?;
        let cidr = Cidr { addr, prefix };
        if !is_host_address(addr) || (prefix > 0 && cidr.broadcast() == Some(addr)) {
            return Err(LACE_EINVAL);
        }
        net.call(|core| {
            #[cfg(feature = "dhcp")]
            {
                core.engine.dhcp_stop(id);
                core.engine.follow();
            }
            let interface = core.engine.stack.interface_mut(id).ok_or(LACE_EBADF)?;
            if interface.add_address(cidr) { Ok(()) } else { Err(LACE_EMFILE) }
        })
    }))
}

/// Takes an address from a NIC.
///
/// Returns 0; `LACE_EADDRNOTAVAIL`: it does not have it; `LACE_EBADF`, `LACE_EAFNOSUPPORT`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_addr_remove(net: *mut lace_stack, nic: lace_nic_id, ip: *const lace_ip) -> c_int {
    status(enter(net).and_then(|net| {
        let id = nic_at(net, nic)?;
        let addr = v4_at(ip)?;
        net.call(|core| {
            let interface = core.engine.stack.interface_mut(id).ok_or(LACE_EBADF)?;
            if interface.remove_address(addr) { Ok(()) } else { Err(LACE_EADDRNOTAVAIL) }
        })
    }))
}

/// The address number `index`, from 0, of a NIC: into `*ip`, and the length of its prefix into `*prefix` unless that
/// is NULL.
///
/// Returns 0; `LACE_EADDRNOTAVAIL`: it has no more; `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_addr_get(
    net: *mut lace_stack,
    nic: lace_nic_id,
    index: u32,
    ip: *mut lace_ip,
    prefix: *mut u32,
) -> c_int {
    status(enter(net).and_then(|net| {
        let id = nic_at(net, nic)?;
        if ip.is_null() {
            return Err(LACE_EFAULT);
        }
        let cidr = net.call_always(|core| {
            let interface = core.engine.stack.interface(id).ok_or(LACE_EBADF)?;
            interface.addresses().get(index as usize).copied().ok_or(LACE_EADDRNOTAVAIL)
        })?;
        // SAFETY: not null, and the caller vouches for both.
        unsafe {
            ip.write_unaligned(cidr.addr.into());
            if !prefix.is_null() {
                prefix.write_unaligned(u32::from(cidr.prefix));
            }
        }
        Ok(())
    }))
}

/// A route. Set up by `lace_route_init`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_route {
    /// Size of this struct.
    pub size: u32,
    /// The NIC it leads through.
    pub nic: lace_nic_id,
    /// The network; none, or 0.0.0.0 with a prefix of 0: everything.
    pub network: lace_ip,
    /// Length of the network's prefix in bits.
    pub prefix: u32,
    /// 1 if a DHCP lease added it; set by `lace_route_get`.
    pub dhcp: u32,
    /// The next hop; none: the network is on the link itself.
    pub gateway: lace_ip,
}

// SAFETY: integers only, the size in front.
unsafe impl Sized32 for lace_route {
    const MIN: usize = size_of::<lace_route>();
}

/// Sets up `*route`, `size` being `sizeof *route`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_route_init(route: *mut lace_route, size: usize) -> c_int {
    init(route, size)
}

/// Adds a route, in place of one to the same network through the same NIC.
///
/// Returns 0; `LACE_EINVAL` for a prefix above 32 bits or a gateway that no host can be; `LACE_EMFILE`:
/// `lace_config.routes` is reached; `LACE_EBADF`, `LACE_EFAULT`, `LACE_EAFNOSUPPORT`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_route_add(net: *mut lace_stack, route: *const lace_route) -> c_int {
    status(enter(net).and_then(|net| {
        let route = route_at(net, route)?;
        net.call(|core| if core.engine.stack.routes.add(route) { Ok(()) } else { Err(LACE_EMFILE) })
    }))
}

/// Removes the route to that network through that NIC; the gateway is not looked at.
///
/// Returns 0; `LACE_ENETUNREACH`: there is none; `LACE_EBADF`, `LACE_EINVAL`, `LACE_EFAULT`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_route_remove(net: *mut lace_stack, route: *const lace_route) -> c_int {
    status(enter(net).and_then(|net| {
        let gone = route_at(net, route)?;
        let same = |r: &Route| r.network == gone.network && r.prefix == gone.prefix && r.nic == gone.nic;
        net.call(|core| if core.engine.stack.routes.remove(same) > 0 { Ok(()) } else { Err(LACE_ENETUNREACH) })
    }))
}

/// Route number `index`, from 0, into `*route`.
///
/// Returns 0; `LACE_ENETUNREACH`: there are no more; `LACE_EFAULT`, `LACE_EINVAL`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_route_get(net: *mut lace_stack, index: u32, route: *mut lace_route) -> c_int {
    status(enter(net).and_then(|net| {
        super::structs::writable(route)?;
        let found = net
            .call_always(|core| core.engine.stack.routes.iter().nth(index as usize).copied().ok_or(LACE_ENETUNREACH))?;
        let value = lace_route {
            nic: handle_of(net, found.nic),
            network: found.network.into(),
            prefix: u32::from(found.prefix),
            dhcp: u32::from(found.origin == RouteOrigin::Dhcp),
            gateway: lace_ip::or_none(found.gateway),
            ..lace_route::fresh()
        };
        write(route, &value)
    }))
}

fn route_at(net: &lace_stack, route: *const lace_route) -> Result<Route, i32> {
    let route = super::structs::read(route)?;
    let nic = nic_at(net, route.nic)?;
    let gateway = route.gateway.v4()?;
    let prefix = u8::try_from(route.prefix).ok().filter(|p| *p <= 32).ok_or(LACE_EINVAL)?;
    if !gateway.is_unspecified() && !is_host_address(gateway) {
        return Err(LACE_EINVAL);
    }
    let network = Ipv4Addr::from_bits(route.network.v4()?.to_bits() & crate::stack::interface::mask(prefix));
    Ok(Route { network, prefix, gateway, nic, origin: RouteOrigin::Static })
}

/// Sends what no other route leads to through `gateway` on `nic`; NULL or none: no longer.
///
/// Returns as `lace_route_add`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_gateway_set(net: *mut lace_stack, nic: lace_nic_id, gateway: *const lace_ip) -> c_int {
    status(enter(net).and_then(|net| {
        let id = nic_at(net, nic)?;
        let gateway = v4_at(gateway)?;
        if !gateway.is_unspecified() && !is_host_address(gateway) {
            return Err(LACE_EINVAL);
        }
        net.call(|core| {
            let routes = &mut core.engine.stack.routes;
            if gateway.is_unspecified() {
                routes.remove(|r| r.nic == id && r.prefix == 0);
                return Ok(());
            }
            let network = Ipv4Addr::UNSPECIFIED;
            let route = Route { network, prefix: 0, gateway, nic: id, origin: RouteOrigin::Static };
            if routes.add(route) { Ok(()) } else { Err(LACE_EMFILE) }
        })
    }))
}

/// The hardware address to which a packet for `ip` is sent: the host's own, its gateway's, or the one of a group or
/// broadcast; into the 6 bytes at `mac` unless that is NULL. `nic` 0: the one the route says. What is not known is
/// asked for: once a second, four times.
///
/// Returns the id of the NIC it is sent over; `LACE_EAGAIN` while it is asked for: poll and call again;
/// `LACE_EHOSTUNREACH`: the next hop does not answer; `LACE_ENETUNREACH`, `LACE_ENETDOWN`, `LACE_EAFNOSUPPORT`,
/// `LACE_EINVAL` for no address, `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_neighbour_get(
    net: *mut lace_stack,
    nic: lace_nic_id,
    ip: *const lace_ip,
    mac: *mut u8,
) -> lace_nic_id {
    value(enter(net).and_then(|net| {
        let id = nic_or_any(net, nic)?;
        let dst = v4_at(ip)?;
        if dst.is_unspecified() {
            return Err(LACE_EINVAL);
        }
        let (via, address) = net.call(|core| core.engine.stack.resolve(dst, id).map_err(tx_code))?;
        if !mac.is_null() {
            // SAFETY: not null, and the caller vouches for six bytes.
            unsafe { mac.cast::<[u8; 6]>().write(address.0) };
        }
        Ok(handle_of(net, via))
    }))
}

/// How many NICs there are, and, when `index` is below that, the id of that one into `*nic` unless it is NULL.
///
/// Returns the number; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nic_list(net: *mut lace_stack, index: u32, nic: *mut lace_nic_id) -> c_int {
    value(enter(net).map(|net| {
        let live = || net.nics.entries.iter().map(|e| e.handle()).filter(|h| *h != 0);
        if let Some(handle) = live().nth(index as usize)
            && !nic.is_null()
        {
            // SAFETY: not null, and the caller vouches for it.
            unsafe { nic.write_unaligned(handle) };
        }
        live().count() as i32
    }))
}
