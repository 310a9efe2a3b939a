//! # Looking names up
//!
//! Addresses of names (RFC 1035). Every client takes a name for its server and looks it up itself; answers are
//! remembered for as long as they say.

use super::addr::lace_ip;
use super::guard::{enter, lace_stack};
use super::op::{Asks, Notify, lace_done, lace_op, start};
use super::results::{LACE_EADDRNOTAVAIL, LACE_EBADF, LACE_EFAULT, LACE_EINVAL, status};
use super::sink::CText;
use super::structs::{Sized32, init};
use crate::client::dns::op::{Dns, Request};
use crate::client::ops::Client;
use crate::storage::time::Duration;
use core::ffi::{c_char, c_int, c_void};

/// What to look up. Set up by `lace_dns_init`; copied at start; the name must live until the operation has ended.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_dns {
    /// Size of this struct.
    pub size: u32,
    /// How long to try, in milliseconds; 0: until every server was asked four times.
    pub timeout_ms: u32,
    /// Mandatory: the name, or an address as text, NUL-terminated.
    pub name: *const c_char,
    /// Optional.
    pub done: lace_done,
    /// Passed to it.
    pub ctx: *mut c_void,
}

// SAFETY: integers, pointers and optional functions; the size is in front.
unsafe impl Sized32 for lace_dns {
    const MIN: usize = size_of::<lace_dns>();
}

impl Asks for lace_dns {
    fn notify(&self) -> Notify {
        Notify { progress: None, done: self.done, ctx: self.ctx }
    }
}

/// Longest name as text: 253 characters and a final dot (RFC 1035 §2.3.4).
const MAX_NAME: usize = 254;

/// Sets up `*dns`, `size` being `sizeof *dns`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_dns_init(dns: *mut lace_dns, size: usize) -> c_int {
    init(dns, size)
}

/// Starts to look a name up. The operation's result is the number of addresses found, at least 1: see
/// `lace_dns_address`.
///
/// Returns the operation; `LACE_EFAULT` without a name; `LACE_EINVAL` for an empty one; `LACE_ENAMETOOLONG`;
/// `LACE_EMFILE`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_ENOENT`: there is no
/// such name, or it has no address; `LACE_EINVAL`: no name can be like that; `LACE_ENETUNREACH`: there is no server
/// to ask; `LACE_ETIMEDOUT`: nobody answered; `LACE_ECONNREFUSED`, `LACE_EACCES`, `LACE_EREMOTEIO`: every server
/// failed, the last one so (see the detail); `LACE_ELOOP`: too many aliases; `LACE_EOPNOTSUPP`: the answer does not
/// fit a datagram.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_dns_start(net: *mut lace_stack, dns: *const lace_dns) -> lace_op {
    start(net, dns, |dns, _| {
        let name = super::addr::text(dns.name, MAX_NAME)?;
        if name.is_empty() {
            return Err(LACE_EINVAL);
        }
        let timeout = (dns.timeout_ms != 0).then(|| Duration::from_millis(u64::from(dns.timeout_ms)));
        Ok(Client::Dns(Dns::new(Request { name: CText::new(name), timeout })))
    })
}

/// Address number `index`, from 0, that a lookup has found, in the server's order: into `*ip`.
///
/// Returns 0; `LACE_EADDRNOTAVAIL`: there are no more; `LACE_EINVAL` for an operation that is no lookup;
/// `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_dns_address(net: *mut lace_stack, op: lace_op, index: u32, ip: *mut lace_ip) -> c_int {
    status(enter(net).and_then(|net| {
        let (key, _) = net.ops.find(op)?;
        if ip.is_null() {
            return Err(LACE_EFAULT);
        }
        let addr = net.call_always(|core| match &core.engine.ops.get(key).ok_or(LACE_EBADF)?.client {
            Client::Dns(dns) => dns.addresses().get(index as usize).copied().ok_or(LACE_EADDRNOTAVAIL),
            _ => Err(LACE_EINVAL),
        })?;
        // SAFETY: not null, and the caller vouches for it.
        unsafe { ip.write_unaligned(addr.into()) };
        Ok(())
    }))
}
