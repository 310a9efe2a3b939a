//! # Statistics
//!
//! One counter for each kind of drop and for each event worth counting, numbered from 0. They wrap at 2^32. Numbers
//! keep their meaning; new ones are added at the end.

use super::guard::{enter, lace_stack};
use super::results::{LACE_EINVAL, nth_text};
use crate::stack::stats::{COUNTERS, NAMES};
use core::ffi::c_char;

/// How many counters there are.
#[unsafe(no_mangle)]
pub extern "C" fn lace_stat_count() -> u32 {
    COUNTERS as u32
}

/// The name of counter `id`, such as "drop_udp_checksum"; static. NULL for a number that no counter has.
#[unsafe(no_mangle)]
pub extern "C" fn lace_stat_name(id: u32) -> *const c_char {
    if id < COUNTERS as u32 { nth_text(NAMES, id as usize) } else { core::ptr::null() }
}

/// The value of counter `id`.
///
/// Returns it; `LACE_EINVAL` for a number that no counter has; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_stat_get(net: *mut lace_stack, id: u32) -> i64 {
    let value =
        enter(net).and_then(|net| net.call_always(|core| core.engine.stack.stats.at(id as usize).ok_or(LACE_EINVAL)));
    match value {
        Ok(value) => i64::from(value),
        Err(code) => i64::from(code),
    }
}
