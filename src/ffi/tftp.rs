//! # TFTP
//!
//! Receiving a file, and sending one (below) (RFC 1350) with options (RFC 2347 to 2349) and windows (RFC 7440). What is left at 0 is
//! negotiated: the largest block that fits the link, a window of 32 blocks, less where that does not arrive. Servers
//! that know no options are served as well.

use super::addr::lace_peer;
use super::guard::{enter, lace_stack};
use super::op::{Asks, Notify, lace_done, lace_op, lace_progress, start};
use super::results::{LACE_EBADF, LACE_EINVAL, code, status};
use super::sink::{CText, lace_sink, sink_at};
use super::structs::{Sized32, init};
use crate::client::ops::Client;
use crate::client::tftp::{Get, Mode, Request, Tuning};
use crate::storage::time::Duration;
use core::ffi::{c_char, c_int, c_void};
use core::mem::offset_of;

/// What to receive. Set up by `lace_tftp_get_init`; copied at start; the texts must live until the operation has
/// ended.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_tftp_get {
    /// Size of this struct.
    pub size: u32,
    /// Block size in bytes, 8 to 65464; 0: what fits one packet of the link. The server may choose less.
    pub blksize: u16,
    /// Blocks that come without being acknowledged one by one, 1 to 32767; 0: 32. The server may choose less.
    pub windowsize: u16,
    /// The server; port 0: 69.
    pub server: lace_peer,
    /// Mandatory: name of the file, as the server knows it.
    pub path: *const c_char,
    /// Longest wait before a packet is repeated, in milliseconds, up to 255000; 0: 1000. The server is asked for the
    /// same.
    pub timeout_ms: u32,
    /// Waits for the whole timeout in a row, without an answer, before the transfer fails, up to 255; 0: 8. Waits for the
    /// first answer are short at first and double, up to 4 s: with 8, a silent server is given up after half a minute, a
    /// host that does not answer ARP after one.
    pub retries: u32,
    /// How long a `write` sink may take nothing before the transfer fails, in milliseconds; 0: 120000.
    pub sink_stall_ms: u32,
    /// 1: convert line ends (mode netascii); 0: bytes as they are (mode octet).
    pub netascii: u32,
    /// Optional: bytes confirmed, of the file's size if the server tells it.
    pub progress: lace_progress,
    /// Optional.
    pub done: lace_done,
    /// Passed to both.
    pub ctx: *mut c_void,
    /// UDP port of the client, for firewalls that let only that one through; 0: one that nobody can guess, another for
    /// each transfer (RFC 1350 section 4), which is safer. The operation fails with `LACE_EADDRINUSE` while a socket or
    /// another transfer has the port.
    pub local_port: u16,
    /// 0.
    pub reserved: [u16; 3],
}

// SAFETY: integers, pointers and optional functions; the size is in front.
unsafe impl Sized32 for lace_tftp_get {
    const MIN: usize = offset_of!(lace_tftp_get, local_port);
}

impl Asks for lace_tftp_get {
    fn notify(&self) -> Notify {
        Notify { progress: self.progress, done: self.done, ctx: self.ctx }
    }
}

impl lace_tftp_get {
    /// The numbers as the core has them.
    pub(super) fn tuning(&self) -> Result<Tuning, i32> {
        if self.reserved != [0; 3] {
            return Err(LACE_EINVAL);
        }
        Ok(Tuning {
            blksize: self.blksize,
            windowsize: self.windowsize,
            timeout: Duration::from_millis(u64::from(self.timeout_ms)),
            retries: u8::try_from(self.retries).map_err(|_| LACE_EINVAL)?,
            local_port: self.local_port,
        })
    }
}

/// Sets up `*get`, `size` being `sizeof *get`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tftp_get_init(get: *mut lace_tftp_get, size: usize) -> c_int {
    init(get, size)
}

/// Longest name of a file in bytes.
pub(super) const MAX_PATH: usize = 450;

/// Starts to receive a file into `*sink`. The operation's result is the number of bytes; bytes of a memory sink
/// beyond what was confirmed (see its progress) are undefined.
///
/// Returns the operation; `LACE_EFAULT`, also for memory of the sink that contains address 0, wraps, or overlaps the
/// stack's; `LACE_EINVAL`: no server, an empty path, numbers out of range; `LACE_ENAMETOOLONG`; `LACE_EMFILE`;
/// `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_ENOENT`, `LACE_EACCES`,
/// `LACE_EREMOTEIO` and others for what the server says (see its detail); `LACE_ETIMEDOUT`: no answer;
/// `LACE_EHOSTUNREACH`, `LACE_ENETUNREACH`: no such host, no way to it; `LACE_ECONNREFUSED`: nothing listens there;
/// `LACE_EFBIG`: the sink is too small; `LACE_EPROTO`; `LACE_ETIME`: the sink stalled; what the sink said, or looking the
/// name up fails with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tftp_get_start(
    net: *mut lace_stack,
    get: *const lace_tftp_get,
    sink: *const lace_sink,
) -> lace_op {
    start(net, get, |get, net| {
        let request = Request {
            server: get.server.to_server()?,
            path: CText::new(super::addr::text(get.path, MAX_PATH)?),
            mode: if get.netascii != 0 { Mode::Netascii } else { Mode::Octet },
            sink: sink_at(sink, &net.arena)?,
            tuning: get.tuning()?,
            sink_stall: Duration::from_millis(u64::from(get.sink_stall_ms)),
        };
        Get::new(request).map(Client::TftpGet).map_err(code)
    })
}

/// What was agreed with the server: the block size in bytes and the window in blocks. Either pointer may be NULL.
///
/// Returns 0; `LACE_EINVAL` for an operation that is no TFTP transfer; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tftp_agreed(
    net: *mut lace_stack,
    op: lace_op,
    blksize: *mut u16,
    windowsize: *mut u16,
) -> c_int {
    status(enter(net).and_then(|net| {
        let (key, _) = net.ops.find(op)?;
        let (block, window) = net.call_always(|core| match &core.engine.ops.get(key).ok_or(LACE_EBADF)?.client {
            Client::TftpGet(get) => Ok(get.agreed()),
            #[cfg(feature = "put")]
            Client::TftpPut(put) => Ok(put.agreed()),
            _ => Err(LACE_EINVAL),
        })?;
        for (to, value) in [(blksize, block), (windowsize, window)] {
            if !to.is_null() {
                // SAFETY: not null, and the caller vouches for it.
                unsafe { to.write_unaligned(value) };
            }
        }
        Ok(())
    }))
}
