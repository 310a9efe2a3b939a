//! 64-bit arithmetic that saturates. It takes a dozen instructions on a 32-bit machine: there is one copy of each there.

/// `a` + `b`, at most [`u64::MAX`].
#[cfg_attr(target_pointer_width = "32", inline(never))]
#[cfg_attr(not(target_pointer_width = "32"), inline)]
pub const fn add(a: u64, b: u64) -> u64 {
    a.saturating_add(b)
}

/// `a` - `b`, at least 0.
#[cfg_attr(target_pointer_width = "32", inline(never))]
#[cfg_attr(not(target_pointer_width = "32"), inline)]
pub const fn sub(a: u64, b: u64) -> u64 {
    a.saturating_sub(b)
}

/// `a` times `b`, at most [`u64::MAX`].
#[cfg_attr(target_pointer_width = "32", inline(never))]
#[cfg_attr(not(target_pointer_width = "32"), inline)]
pub const fn mul(a: u64, b: u64) -> u64 {
    a.saturating_mul(b)
}
