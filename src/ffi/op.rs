//! # Operations
//!
//! Whatever takes time is an operation: `lace_..._start` gives a handle at once, `lace_poll` does the work. A result
//! stays until the operation is closed. Every blocking form in `bootlace_sync.h` is start, wait and close, nothing
//! more.

use super::addr::lace_ip;
use super::arena::Core;
use super::guard::{enter, lace_stack};
use super::handle::{Kind, request};
use super::results::{LACE_EAGAIN, LACE_EBADF, LACE_EINTR, code, status, value};
use super::run::{block, op_result};
use super::structs::{Sized32, init, with, write};
use crate::client::operation::DETAIL_TEXT;
use crate::client::ops::Client;
use crate::storage::error::Error;
use core::ffi::{c_char, c_int, c_void};

/// Names an operation: positive.
pub type lace_op = i32;

/// Called when an operation has come further, at most once a pass. `done` and `total` in bytes, or in what the
/// operation counts; `total` 0: not known. Upcall.
pub type lace_progress = Option<unsafe extern "C" fn(ctx: *mut c_void, op: lace_op, done: u64, total: u64)>;

/// Called once when an operation has ended, with its result. Upcall: it may close the operation and start others.
pub type lace_done = Option<unsafe extern "C" fn(ctx: *mut c_void, op: lace_op, result: i64)>;

/// Whom an operation tells.
#[derive(Clone, Copy, Debug)]
pub struct Notify {
    /// How far it is.
    pub progress: lace_progress,
    /// That it has ended.
    pub done: lace_done,
    /// Passed to both.
    pub ctx: *mut c_void,
}

impl Default for Notify {
    fn default() -> Self {
        Notify { progress: None, done: None, ctx: core::ptr::null_mut() }
    }
}

/// `lace_detail.kind`: nothing is known.
pub const LACE_DETAIL_NONE: u32 = 0;
/// `lace_detail.kind`: `code` is a TFTP error code; the server's text comes with it.
pub const LACE_DETAIL_TFTP: u32 = 1;
/// `lace_detail.kind`: `code` is an ICMP type * 256 + code; `from` sent it.
pub const LACE_DETAIL_ICMP: u32 = 2;
/// `lace_detail.kind`: `code` is a DNS response code.
pub const LACE_DETAIL_DNS: u32 = 3;
/// `lace_detail.kind`: a DHCP server's text.
pub const LACE_DETAIL_DHCP: u32 = 4;
/// `lace_detail.kind`: `code` is an NFS or MOUNT status.
pub const LACE_DETAIL_NFS: u32 = 5;
/// `lace_detail.kind`: `code` is an RPC reply status.
pub const LACE_DETAIL_RPC: u32 = 6;
/// `lace_detail.kind`: `code` is an HTTP status.
pub const LACE_DETAIL_HTTP: u32 = 7;

/// Why an operation failed, in the words of who made it fail. Set up by `lace_detail_init`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_detail {
    /// Size of this struct.
    pub size: u32,
    /// `LACE_DETAIL_...`.
    pub kind: u32,
    /// A code of that kind.
    pub code: u32,
    /// Who said so; none if not known.
    pub from: lace_ip,
    /// Text that came with it, NUL-terminated, cut to fit; control characters are '?'.
    pub text: [c_char; 68],
}

// SAFETY: integers only, the size in front.
unsafe impl Sized32 for lace_detail {
    const MIN: usize = size_of::<lace_detail>();
}

const _: () = assert!(DETAIL_TEXT < 68, "the text and its NUL fit");

/// Sets up `*detail`, `size` being `sizeof *detail`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_detail_init(detail: *mut lace_detail, size: usize) -> c_int {
    init(detail, size)
}

/// A struct that says what to start, and whom to tell.
#[allow(dead_code)] // Not without any client.
pub(super) trait Asks: Sized32 {
    /// Whom to tell.
    fn notify(&self) -> Notify;
}

/// Starts the operation that `asked` asks for.
#[allow(dead_code)] // Not without any client.
pub(super) fn start<T: Asks>(
    net: *mut lace_stack,
    asked: *const T,
    make: impl FnOnce(&T, &lace_stack) -> Result<Client<super::host::CHost>, i32>,
) -> lace_op {
    value(with(asked, |asked| Ok(begin(net, &asked.notify(), |net| make(asked, net)))))
}

/// Starts an operation for C.
#[allow(dead_code)] // Not without any client.
pub(super) fn begin(
    net: *mut lace_stack,
    notify: &Notify,
    make: impl FnOnce(&lace_stack) -> Result<Client<super::host::CHost>, i32>,
) -> lace_op {
    value(enter(net).and_then(|net| launch(net, notify, make(net))))
}

/// What is the same for every kind of operation.
#[inline(never)]
fn launch(net: &lace_stack, notify: &Notify, client: Result<Client<super::host::CHost>, i32>) -> Result<lace_op, i32> {
    let client = client?;
    net.call(|core| {
        let key = core.engine.start(client).map_err(code)?;
        // It was started just now: there is a place.
        let _ = core.set_notify(key, *notify);
        Ok(net.ops.open(key))
    })
}

fn look(core: &mut Core, net: &lace_stack, op: lace_op) -> Result<Option<i64>, i32> {
    let (key, _) = net.ops.find(op)?;
    Ok(op_result(net, core.engine.ops.get_mut(key).ok_or(LACE_EBADF)?))
}

/// What has become of an operation.
///
/// Returns `LACE_EAGAIN` while it runs; its result once it has ended: 0 or a count of what its kind says, or why it
/// failed; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_op_status(net: *mut lace_stack, op: lace_op) -> i64 {
    let result = enter(net).and_then(|net| {
        net.ops.find(op)?;
        net.call_always(|core| look(core, net, op))
    });
    match result {
        Ok(Some(result)) => result,
        Ok(None) => i64::from(LACE_EAGAIN),
        Err(code) => i64::from(code),
    }
}

/// How far an operation is: `*done` of `*total`, in bytes or in what it counts; `*total` is 0 while it is not known.
/// Either pointer may be NULL.
///
/// Returns 0; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_op_progress(net: *mut lace_stack, op: lace_op, done: *mut u64, total: *mut u64) -> c_int {
    status(enter(net).and_then(|net| {
        let (key, _) = net.ops.find(op)?;
        let progress = net.call_always(|core| Ok(core.engine.ops.get(key).ok_or(LACE_EBADF)?.progress))?;
        for (to, value) in [(done, progress.done), (total, progress.total.unwrap_or(0))] {
            if !to.is_null() {
                // SAFETY: not null, and the caller vouches for it.
                unsafe { to.write_unaligned(value) };
            }
        }
        Ok(())
    }))
}

/// Why an operation failed: fills in `*detail`.
///
/// Returns 0; `LACE_EFAULT`, `LACE_EINVAL` for a `*detail` that was not set up; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_op_detail(net: *mut lace_stack, op: lace_op, detail: *mut lace_detail) -> c_int {
    status(enter(net).and_then(|net| {
        let (key, _) = net.ops.find(op)?;
        super::structs::writable(detail)?;
        let value = net.call_always(|core| {
            let d = &core.engine.ops.get(key).ok_or(LACE_EBADF)?.detail;
            let mut value = lace_detail { kind: d.kind as u32, code: d.code, ..lace_detail::fresh() };
            value.from = d.from.map(lace_ip::from).unwrap_or_default();
            for (to, from) in value.text.iter_mut().zip(&d.text) {
                *to = *from as c_char;
            }
            Ok(value)
        })?;
        write(detail, &value)
    }))
}

/// Has an operation call `progress` and `done` (either may be NULL) with `ctx`, instead of those it was started with.
/// If it has ended and no `done` was called, this one is called in the next pass.
///
/// Returns 0; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_op_notify(
    net: *mut lace_stack,
    op: lace_op,
    progress: lace_progress,
    done: lace_done,
    ctx: *mut c_void,
) -> c_int {
    status(enter(net).and_then(|net| {
        let (key, _) = net.ops.find(op)?;
        net.call(|core| core.set_notify(key, Notify { progress, done, ctx }).ok_or(LACE_EBADF))
    }))
}

/// Cancels an operation: its peer is told, its result is `LACE_ECANCELED`. Nothing happens to one that has ended. Its
/// handle stays until it is closed; nothing is written to its sink any more.
///
/// Returns 0; `LACE_EBADF`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_op_cancel(net: *mut lace_stack, op: lace_op) -> c_int {
    status(
        enter(net)
            .and_then(|net| net.ask(&net.ops, op, request::CANCEL, |core, _| core.cancel(net, op, Error::Cancelled))),
    )
}

/// Closes an operation, after cancelling it if it still runs. Its handle is stale from now on, and no callback of its
/// is called any more.
///
/// Returns 0; `LACE_EBADF`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_op_close(net: *mut lace_stack, op: lace_op) -> c_int {
    status(enter(net).and_then(|net| net.ask(&net.ops, op, request::CLOSE, |core, _| core.close(net, Kind::Op, op))))
}

/// Polls until an operation has ended, looking at `host.poll` meanwhile.
///
/// Returns its result; `LACE_EINTR` when `host.poll` ended it: it is cancelled then, and yet to be closed;
/// `LACE_ECANCELED` when the stack was stopped; `LACE_EBADF`, also when a callback closed it; `LACE_EBUSY` from a
/// callback. A negative `op`, such as a failed start gives, is returned as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_op_wait(net: *mut lace_stack, op: lace_op) -> i64 {
    if op < 0 {
        return i64::from(op);
    }
    let result = enter(net).and_then(|net| {
        net.ops.find(op)?;
        let waited = block(net, |core| match look(core, net, op) {
            Ok(None) => None,
            Ok(Some(result)) => Some(Ok(result)),
            Err(code) => Some(Err(code)),
        });
        if waited == Err(LACE_EINTR) {
            net.call_always(|core| core.cancel(net, op, Error::Interrupted))?;
        }
        waited?
    });
    result.unwrap_or_else(i64::from)
}
