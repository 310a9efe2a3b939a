//! # Stack
//!
//! A stack lives in one block of memory of its caller's; any number of stacks may live in one program. It does
//! nothing by itself: `lace_poll` takes what has come and does what is due, blocking calls do so until what they wait
//! for has happened. A program that does not block calls `lace_poll` often, and at latest after `lace_next_deadline`
//! microseconds.

use super::arena::{ALIGN, Layout, carve};
use super::config::{config_at, lace_config};
use super::guard::{Stop, Upcall, enter, is_stopped, lace_stack};
use super::host::{Clock, lace_host};
use super::nic::{lace_frame, lace_nic_id, nic_at};
use super::region::Region;
use super::results::{LACE_EAGAIN, LACE_EBUSY, LACE_EFAULT, LACE_EINVAL, LACE_ENOMEM, LACE_OK, status, value};
use super::run::{deliver, pass, tell, time_left};
use super::structs::read;
use core::ffi::{c_int, c_void};

/// Sets up a stack in the `len` bytes at `memory`, aligned to 16 bytes (`LACE_ALIGNED`), *owned* by the stack until
/// `lace_stack_stop` has returned 0. It needs no other memory. `*config` and `*host` are copied; the clock is read
/// and random numbers are taken.
///
/// Returns 0 and the stack in `*net`; `LACE_EFAULT` for a NULL pointer or memory that wraps; `LACE_EINVAL` for
/// misaligned memory, a wrong size of a struct, limits outside their ranges, a mandatory callback that is missing, or
/// `clock_bits` other than 32 and 64; `LACE_ENOMEM` when `len` is less than `lace_stack_size(config)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_stack_init(
    memory: *mut c_void,
    len: usize,
    config: *const lace_config,
    host: *const lace_host,
    net: *mut *mut lace_stack,
) -> c_int {
    let prepared = || {
        if memory.is_null() || net.is_null() {
            return Err(LACE_EFAULT);
        }
        let config = config_at(config)?;
        let host = read(host)?;
        if !memory.addr().is_multiple_of(ALIGN) {
            return Err(LACE_EINVAL);
        }
        Region::new(memory, len, &(0..0))?;
        let (Some(now_us), Some(_)) = (host.now_us, host.random) else { return Err(LACE_EINVAL) };
        if host.clock_bits != 32 && host.clock_bits != 64 {
            return Err(LACE_EINVAL);
        }
        let layout = Layout::of(&config);
        if layout.total > len {
            return Err(LACE_ENOMEM);
        }
        // SAFETY: the host vouches for its callback.
        let clock = Clock::new(host.clock_bits, unsafe { now_us(host.ctx) });
        // SAFETY: aligned, and long enough for this configuration's layout; the caller gives the memory to the stack.
        Ok(unsafe { carve(memory.cast(), &config, &layout, host, clock) })
    };
    match prepared() {
        Ok(stack) => {
            // SAFETY: not null, and the caller vouches for it.
            unsafe { net.write_unaligned(stack) };
            LACE_OK
        }
        Err(code) => code,
    }
}

/// One pass: reads the clock, takes at most `budget` frames (0 counts as 1; 32 is a good number) from the NICs in
/// turn, then does what is due, then makes the upcalls. What a `pump` pushes at once is taken whole. When the budget
/// ends before the frames do, timers wait for the next pass: nothing expires whose answer may lie in the NIC.
///
/// Returns the number of frames taken; `LACE_EBUSY` from a callback; `LACE_EBADF`, `LACE_EFAULT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_poll(net: *mut lace_stack, budget: u32) -> c_int {
    value(enter(net).and_then(|net| {
        net.begin()?;
        let done = pass(net, budget);
        net.end();
        Ok(i32::try_from(done.frames).unwrap_or(i32::MAX))
    }))
}

/// Microseconds until `lace_poll` has something to do even if no frame comes: 0 when it has now, `INT64_MAX` when
/// never.
///
/// Returns that, or `LACE_EBUSY`, `LACE_EBADF`, `LACE_EFAULT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_next_deadline(net: *mut lace_stack) -> i64 {
    let left = enter(net).and_then(|net| net.call_always(|core| Ok(time_left(core))));
    match left {
        Ok(left) => i64::try_from(left).unwrap_or(i64::MAX),
        Err(code) => i64::from(code),
    }
}

/// Hands over a received frame: the `len` bytes at `bytes`, *borrowed for the call*, `flags` as in `lace_frame`. What
/// belongs to a handler is delivered before this returns. Accepted from `nic.pump`, from `host.poll` and from outside
/// the stack.
///
/// Returns 0, also for a frame that is dropped and counted; `LACE_EFAULT` for a NULL pointer; `LACE_EBADF`;
/// `LACE_EBUSY` from any other callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_input(
    net: *mut lace_stack,
    nic: lace_nic_id,
    bytes: *const c_void,
    len: usize,
    flags: u32,
) -> c_int {
    status(enter(net).and_then(|net| {
        if net.is_busy() || net.running() == Upcall::Other {
            return Err(LACE_EBUSY);
        }
        let id = nic_at(net, nic)?;
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let frame = lace_frame { data: bytes, len, flags, cookie: 0 };
        net.inputs.set(net.inputs.get().wrapping_add(1));
        if net.in_pass() {
            deliver(net, id, &frame);
        } else {
            net.begin()?;
            net.access(|core| core.read_clock());
            deliver(net, id, &frame);
            tell(net);
            net.end();
        }
        if bytes.is_null() { Err(LACE_EFAULT) } else { Ok(()) }
    }))
}

/// Ends the stack: operations are cancelled and their peers told, sockets closed, frames given back; no upcall is
/// made. It never blocks. Only after it has returned 0 may the NICs be halted, their memory be reused and the kernel
/// be started; the block of memory belongs to the caller again, and every handle is stale.
///
/// Returns 0; 0 from a callback, too, where it takes effect when the stack is left: a blocking call then returns
/// `LACE_ECANCELED`; `LACE_EAGAIN` while an asynchronous NIC holds frames: poll and call again, or say
/// `lace_nic_reset`; `LACE_EBADF`, `LACE_EFAULT`. Calling it again after it has returned 0 does no harm.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_stack_stop(net: *mut lace_stack) -> c_int {
    if is_stopped(net) {
        return LACE_OK;
    }
    status(enter(net).and_then(|net| {
        if net.is_busy() || net.in_pass() || net.running() != Upcall::None {
            net.want_stop();
            return Ok(());
        }
        if net.stopping() == Stop::No {
            // The last words to the peers carry the time of now.
            net.access(|core| core.read_clock());
        }
        if net.stop_now() { Ok(()) } else { Err(LACE_EAGAIN) }
    }))
}
