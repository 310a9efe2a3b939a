//! A second Rust library without std, as another firmware author would build it: it brings a panic handler and core of
//! its own, and must share one image with Bootlace.
#![no_std]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Divides and indexes, so that core's panics and helpers come along.
#[no_mangle]
pub extern "C" fn other_sum(values: &[u32; 4], index: u32, divisor: u64) -> u64 {
    u64::from(values[index as usize]) / divisor
}
