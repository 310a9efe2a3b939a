//! # Sending files by TFTP
//!
//! Feature `put`.

use super::addr::lace_peer;
use super::guard::lace_stack;
use super::op::{Asks, Notify, lace_done, lace_op, lace_progress, start};
use super::results::{LACE_EINVAL, code};
use super::sink::{CText, lace_source, source_at};
use super::structs::{Sized32, init};
use super::tftp::MAX_PATH;
use crate::client::ops::Client;
use crate::client::tftp::{Mode, Put, PutRequest, Tuning};
use crate::storage::time::Duration;
use core::ffi::{c_char, c_int, c_void};

/// What to send. Set up by `lace_tftp_put_init`; copied at start; the texts must live until the operation has ended.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_tftp_put {
    /// Size of this struct.
    pub size: u32,
    /// Block size in bytes, 8 to 65464; 0: what fits one packet of the link. The server may choose less. Blocks of a
    /// source that is not memory, and those of mode netascii, are never larger than one packet.
    pub blksize: u16,
    /// Blocks that are sent before one acknowledgement is waited for, 1 to 32767; 0: 32. The server may choose less.
    pub windowsize: u16,
    /// The server; port 0: 69.
    pub server: lace_peer,
    /// Mandatory: name of the file, as the server is to know it.
    pub path: *const c_char,
    /// Bytes to send; default: the whole memory, or until `read` or `map` says that the file ends. The server is told
    /// beforehand (RFC 2349).
    pub len: u64,
    /// Longest wait before packets are repeated, in milliseconds, up to 255000; 0: 1000. The server is asked for the
    /// same.
    pub timeout_ms: u32,
    /// Waits for the whole timeout in a row, without an answer, before the transfer fails, up to 255; 0: 8. Waits for the
    /// first answer are short at first and double, up to 4 s: with 8, a silent server is given up after half a minute, a
    /// host that does not answer ARP after one.
    pub retries: u32,
    /// 1: convert line ends (mode netascii); 0: bytes as they are (mode octet).
    pub netascii: u32,
    /// UDP port of the client; 0: one that nobody can guess. See `lace_tftp_get`.
    pub local_port: u16,
    /// 0.
    pub reserved: u16,
    /// Optional: bytes the server has acknowledged, of `len` if that is known.
    pub progress: lace_progress,
    /// Optional.
    pub done: lace_done,
    /// Passed to both.
    pub ctx: *mut c_void,
}

// SAFETY: integers, pointers and optional functions; the size is in front.
unsafe impl Sized32 for lace_tftp_put {
    const MIN: usize = size_of::<lace_tftp_put>();
    const PRESET: Option<fn(&mut Self)> = Some(|put| put.len = u64::MAX);
}

impl Asks for lace_tftp_put {
    fn notify(&self) -> Notify {
        Notify { progress: self.progress, done: self.done, ctx: self.ctx }
    }
}

/// Sets up `*put`, `size` being `sizeof *put`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tftp_put_init(put: *mut lace_tftp_put, size: usize) -> c_int {
    init(put, size)
}

/// Starts to send a file from `*source` (RFC 1350 section 4, RFC 7440). The operation's result is the number of bytes
/// of the file. What the source names must live, and must not change, until the operation has ended; `read` and `map`
/// are asked for the same bytes again when packets were lost.
///
/// Returns the operation; `LACE_EFAULT`, also for memory of the source that contains address 0, wraps, or overlaps the
/// stack's; `LACE_EINVAL`: no server, an empty path, numbers out of range; `LACE_ENAMETOOLONG`; `LACE_EMFILE`;
/// `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_EACCES`, `LACE_EEXIST`, `LACE_ENOSPC`,
/// `LACE_EREMOTEIO` and others for what the server says (see its detail); `LACE_ENODATA`: the source ended before
/// `len`; `LACE_ETIMEDOUT`: no answer; `LACE_EHOSTUNREACH`, `LACE_ENETUNREACH`: no such host, no way to it;
/// `LACE_ECONNREFUSED`: nothing listens there; `LACE_EPROTO`; what the source said, or looking the name up fails with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_tftp_put_start(
    net: *mut lace_stack,
    put: *const lace_tftp_put,
    source: *const lace_source,
) -> lace_op {
    start(net, put, |put, net| {
        if put.reserved != 0 {
            return Err(LACE_EINVAL);
        }
        let request = PutRequest {
            server: put.server.to_server()?,
            path: CText::new(super::addr::text(put.path, MAX_PATH)?),
            mode: if put.netascii != 0 { Mode::Netascii } else { Mode::Octet },
            source: source_at(source, &net.arena)?,
            size: (put.len != u64::MAX).then_some(put.len),
            tuning: Tuning {
                blksize: put.blksize,
                windowsize: put.windowsize,
                timeout: Duration::from_millis(u64::from(put.timeout_ms)),
                retries: u8::try_from(put.retries).map_err(|_| LACE_EINVAL)?,
                local_port: put.local_port,
            },
        };
        Put::new(request).map(Client::TftpPut).map_err(code)
    })
}
