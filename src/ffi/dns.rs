//! # Names
//!
//! Which name servers are asked. Those that the host names come before those of DHCP leases.

use super::addr::lace_ip;
use super::guard::{enter, lace_stack};
use super::results::{LACE_EADDRNOTAVAIL, LACE_EFAULT, LACE_EINVAL, LACE_ENAMETOOLONG, status};
use crate::client::dns::{SEARCH, SERVERS};
use crate::stack::interface::is_host_address;
use core::ffi::{c_char, c_int};
use core::net::Ipv4Addr;

/// Sets the name servers that the host names, in the order in which they are asked: `n` addresses at `servers`, at
/// most 6; 0 for none.
///
/// Returns 0; `LACE_EINVAL` for too many or an address that no host can have; `LACE_EFAULT`, `LACE_EAFNOSUPPORT`,
/// `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_dns_set(net: *mut lace_stack, servers: *const lace_ip, n: u32) -> c_int {
    status(enter(net).and_then(|net| {
        if n > SERVERS as u32 {
            return Err(LACE_EINVAL);
        }
        if servers.is_null() && n > 0 {
            return Err(LACE_EFAULT);
        }
        let mut list: heapless::Vec<Ipv4Addr, SERVERS> = heapless::Vec::new();
        for i in 0..n {
            // SAFETY: the caller gives `n` addresses.
            let addr = unsafe { servers.add(i as usize).read_unaligned() }.v4()?;
            if !is_host_address(addr) || list.push(addr).is_err() {
                return Err(LACE_EINVAL);
            }
        }
        net.call(|core| {
            core.engine.shared.resolver.set_servers(&list);
            Ok(())
        })
    }))
}

/// Name server number `index`, from 0, in the order in which they are asked: into `*server`.
///
/// Returns 0; `LACE_EADDRNOTAVAIL`: there are no more; `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_dns_get(net: *mut lace_stack, index: u32, server: *mut lace_ip) -> c_int {
    status(enter(net).and_then(|net| {
        if server.is_null() {
            return Err(LACE_EFAULT);
        }
        let addr = net
            .call_always(|core| core.engine.shared.resolver.servers().nth(index as usize).ok_or(LACE_EADDRNOTAVAIL))?;
        // SAFETY: not null, and the caller vouches for it.
        unsafe { server.write_unaligned(addr.into()) };
        Ok(())
    }))
}

/// Sets the domains that are tried for names without a dot: `domains`, NUL-terminated, with spaces between, at most
/// 128 bytes; "" or NULL for none, and then those of leases count.
///
/// Returns 0; `LACE_ENAMETOOLONG`, `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_dns_set_search(net: *mut lace_stack, domains: *const c_char) -> c_int {
    status(enter(net).and_then(|net| {
        let text = if domains.is_null() { &[] } else { super::addr::text(domains, SEARCH)? };
        net.call(|core| if core.engine.shared.resolver.set_search(text) { Ok(()) } else { Err(LACE_ENAMETOOLONG) })
    }))
}
