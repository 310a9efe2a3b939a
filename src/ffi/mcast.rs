//! # Multicast groups
//!
//! Feature `mcast`.

use super::addr::{lace_ip, v4_at};
use super::guard::{enter, lace_stack};
use super::nic::{lace_nic_id, nic_at};
use super::results::{code, status};
use core::ffi::c_int;

/// Joins a multicast group on a NIC: the NIC's filter lets it in, and routers are told (IGMP version 2). Sockets then
/// receive what is sent to it.
///
/// Returns 0; `LACE_EINVAL`: not a group; `LACE_EMFILE`: the NIC is in 4 groups; `LACE_EBADF`, `LACE_EAFNOSUPPORT`,
/// `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_mcast_join(net: *mut lace_stack, nic: lace_nic_id, group: *const lace_ip) -> c_int {
    status(enter(net).and_then(|net| {
        let id = nic_at(net, nic)?;
        let group = v4_at(group)?;
        net.call(|core| core.engine.stack.join(id, group).map_err(code))
    }))
}

/// Leaves a multicast group.
///
/// Returns 0; `LACE_ENOTCONN`: the NIC is not in it; `LACE_EBADF`, `LACE_EAFNOSUPPORT`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_mcast_leave(net: *mut lace_stack, nic: lace_nic_id, group: *const lace_ip) -> c_int {
    status(enter(net).and_then(|net| {
        let id = nic_at(net, nic)?;
        let group = v4_at(group)?;
        net.call(|core| core.engine.stack.leave(id, group).map_err(code))
    }))
}
