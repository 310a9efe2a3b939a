//! What happens on a panic in the shipped library. Nothing a frame, a server or a callback does reaches it; were there a
//! fault in the library itself, the machine stops here instead of running on with broken state. It says nothing and calls
//! nothing: the host owns console and reset, and its watchdog ends the loop.

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
