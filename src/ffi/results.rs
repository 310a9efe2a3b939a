//! # Results
//!
//! Every function that can fail returns `int` or `int64_t`: 0 or a count on success, one of the negative codes below
//! otherwise. The numbers are those of Linux where Linux has one, never taken from the host's own headers.
//! `LACE_EAGAIN` is not a failure: nothing was done, or nothing is finished yet; poll and ask again. A callback of
//! the host's that fails may return any negative number; what ends because of it has that number as its result.

use crate::storage::error::Error;
use core::ffi::{c_char, c_int};

/// Version of this header: `major << 16 | minor << 8 | patch`.
pub const LACE_VERSION: u32 = 0x000100;

/// Done.
pub const LACE_OK: i32 = 0;
/// The server has no such file, directory or name.
pub const LACE_ENOENT: i32 = -2;
/// `host.poll` asked to stop; the operation was cancelled and its server told.
pub const LACE_EINTR: i32 = -4;
/// A callback of the host's failed without a code of its own.
pub const LACE_EIO: i32 = -5;
/// A handle that is stale or of another kind, or a stack that is not running.
pub const LACE_EBADF: i32 = -9;
/// Not now: poll and ask again.
pub const LACE_EAGAIN: i32 = -11;
/// The block of memory is too small for the configuration.
pub const LACE_ENOMEM: i32 = -12;
/// The server denies access.
pub const LACE_EACCES: i32 = -13;
/// A pointer that must not be null is, or memory contains address 0, wraps, or overlaps memory it must not overlap.
pub const LACE_EFAULT: i32 = -14;
/// Called from a callback from which this call is not allowed.
pub const LACE_EBUSY: i32 = -16;
/// The file exists already.
pub const LACE_EEXIST: i32 = -17;
/// No such NIC.
pub const LACE_ENODEV: i32 = -19;
/// A part of the path is not a directory.
pub const LACE_ENOTDIR: i32 = -20;
/// What was named is a directory.
pub const LACE_EISDIR: i32 = -21;
/// An argument has a value that is not allowed.
pub const LACE_EINVAL: i32 = -22;
/// Every place of the kind needed is in use: a limit of the configuration.
pub const LACE_EMFILE: i32 = -24;
/// The data is larger than the sink, or than a limit.
pub const LACE_EFBIG: i32 = -27;
/// The server has no room.
pub const LACE_ENOSPC: i32 = -28;
/// A name or path is longer than its protocol, or this library, allows.
pub const LACE_ENAMETOOLONG: i32 = -36;
/// Too many links or redirects.
pub const LACE_ELOOP: i32 = -40;
/// The file ended before the count that was promised.
pub const LACE_ENODATA: i32 = -61;
/// The sink took nothing for too long.
pub const LACE_ETIME: i32 = -62;
/// The peer broke its protocol.
pub const LACE_EPROTO: i32 = -71;
/// A datagram is larger than what can be sent, or than the room given for it.
pub const LACE_EMSGSIZE: i32 = -90;
/// Not offered by the server, or not built into this library.
pub const LACE_EOPNOTSUPP: i32 = -95;
/// An address of a family that is not supported.
pub const LACE_EAFNOSUPPORT: i32 = -97;
/// The port or the hook is taken.
pub const LACE_EADDRINUSE: i32 = -98;
/// The address is not one of the stack's.
pub const LACE_EADDRNOTAVAIL: i32 = -99;
/// The NIC is down or gone, or the stack is being stopped.
pub const LACE_ENETDOWN: i32 = -100;
/// No route leads to the destination.
pub const LACE_ENETUNREACH: i32 = -101;
/// The connection was ended here.
pub const LACE_ECONNABORTED: i32 = -103;
/// The peer ended the connection.
pub const LACE_ECONNRESET: i32 = -104;
/// The socket has a peer already.
pub const LACE_EISCONN: i32 = -106;
/// The socket has no peer.
pub const LACE_ENOTCONN: i32 = -107;
/// Nothing came in time.
pub const LACE_ETIMEDOUT: i32 = -110;
/// The peer said that nothing listens there.
pub const LACE_ECONNREFUSED: i32 = -111;
/// The next hop does not answer, or a router said that the host cannot be reached.
pub const LACE_EHOSTUNREACH: i32 = -113;
/// The file at the server changed between two parts of a transfer.
pub const LACE_ESTALE: i32 = -116;
/// The server failed.
pub const LACE_EREMOTEIO: i32 = -121;
/// The operation was cancelled.
pub const LACE_ECANCELED: i32 = -125;

/// The one place where an error of the core becomes a code.
pub(super) const fn code(error: Error) -> i32 {
    match error {
        Error::Host(code) if code.0 < 0 => code.0,
        error => -(number(error) as i32),
    }
}

/// The code, negated. On its own, all values small and constant, the compiler makes a table of it.
#[inline(never)]
const fn number(error: Error) -> u8 {
    match error {
        Error::Invalid => -LACE_EINVAL as u8,
        Error::Again => -LACE_EAGAIN as u8,
        Error::AddressFamily => -LACE_EAFNOSUPPORT as u8,
        Error::NoSlot => -LACE_EMFILE as u8,
        Error::NoMemory => -LACE_ENOMEM as u8,
        Error::InUse => -LACE_EADDRINUSE as u8,
        Error::AddressNotOurs => -LACE_EADDRNOTAVAIL as u8,
        Error::NetworkUnreachable => -LACE_ENETUNREACH as u8,
        Error::HostUnreachable => -LACE_EHOSTUNREACH as u8,
        Error::Refused => -LACE_ECONNREFUSED as u8,
        Error::Timeout => -LACE_ETIMEDOUT as u8,
        Error::Cancelled => -LACE_ECANCELED as u8,
        Error::Interrupted => -LACE_EINTR as u8,
        Error::Protocol => -LACE_EPROTO as u8,
        Error::NotFound => -LACE_ENOENT as u8,
        Error::Denied => -LACE_EACCES as u8,
        Error::NoSpace => -LACE_ENOSPC as u8,
        Error::Exists => -LACE_EEXIST as u8,
        Error::TooBig => -LACE_EFBIG as u8,
        Error::MessageSize => -LACE_EMSGSIZE as u8,
        Error::NameTooLong => -LACE_ENAMETOOLONG as u8,
        Error::NetworkDown => -LACE_ENETDOWN as u8,
        Error::ConnectionReset => -LACE_ECONNRESET as u8,
        Error::ConnectionAborted => -LACE_ECONNABORTED as u8,
        Error::NotConnected => -LACE_ENOTCONN as u8,
        Error::AlreadyConnected => -LACE_EISCONN as u8,
        Error::BadHandle => -LACE_EBADF as u8,
        Error::SinkStalled => -LACE_ETIME as u8,
        Error::NotSupported => -LACE_EOPNOTSUPP as u8,
        Error::EndOfFile => -LACE_ENODATA as u8,
        Error::Changed => -LACE_ESTALE as u8,
        Error::Loop => -LACE_ELOOP as u8,
        Error::NotDirectory => -LACE_ENOTDIR as u8,
        Error::IsDirectory => -LACE_EISDIR as u8,
        Error::Remote => -LACE_EREMOTEIO as u8,
        Error::Host(_) => -LACE_EIO as u8,
    }
}

/// What a function that returns nothing but success gives.
pub(super) fn status(result: Result<(), i32>) -> i32 {
    match result {
        Ok(()) => LACE_OK,
        Err(code) => code,
    }
}

/// What a function that returns a handle or a count gives.
pub(super) fn value(result: Result<i32, i32>) -> i32 {
    result.unwrap_or_else(|code| code)
}

/// A table of texts by code. The texts lie one behind the other: a pointer to each would be larger than most of them.
macro_rules! texts {
    ($first:literal; $($code:ident = $text:literal;)*) => {
        /// The codes, negated.
        const CODES: &[u8] = &[$((-$code) as u8),*];
        /// The text of success, those of the codes in the same order, and that of any other number; a NUL behind each.
        const TEXTS: &str = concat!($first, "\0", $($text, "\0",)* "error of the host\0");
    };
}

texts! {
    "success";
    LACE_ENOENT = "no such file or name";
    LACE_EINTR = "interrupted";
    LACE_EIO = "input or output error";
    LACE_EBADF = "bad handle";
    LACE_EAGAIN = "try again";
    LACE_ENOMEM = "not enough memory";
    LACE_EACCES = "access denied";
    LACE_EFAULT = "bad address";
    LACE_EBUSY = "not allowed in this callback";
    LACE_EEXIST = "file exists";
    LACE_ENODEV = "no such NIC";
    LACE_ENOTDIR = "not a directory";
    LACE_EISDIR = "is a directory";
    LACE_EINVAL = "invalid argument";
    LACE_EMFILE = "limit of the configuration reached";
    LACE_EFBIG = "data too large";
    LACE_ENOSPC = "no space at the server";
    LACE_ENAMETOOLONG = "name too long";
    LACE_ELOOP = "too many links or redirects";
    LACE_ENODATA = "file ended early";
    LACE_ETIME = "sink stalled";
    LACE_EPROTO = "protocol error";
    LACE_EMSGSIZE = "message too long";
    LACE_EOPNOTSUPP = "not supported";
    LACE_EAFNOSUPPORT = "address family not supported";
    LACE_EADDRINUSE = "address in use";
    LACE_EADDRNOTAVAIL = "not an address of this host";
    LACE_ENETDOWN = "network down";
    LACE_ENETUNREACH = "no route";
    LACE_ECONNABORTED = "connection aborted";
    LACE_ECONNRESET = "connection reset";
    LACE_EISCONN = "already connected";
    LACE_ENOTCONN = "not connected";
    LACE_ETIMEDOUT = "timed out";
    LACE_ECONNREFUSED = "refused";
    LACE_EHOSTUNREACH = "host unreachable";
    LACE_ESTALE = "file changed";
    LACE_EREMOTEIO = "server failed";
    LACE_ECANCELED = "cancelled";
}

/// Text `n` of `texts`, each of which has a NUL behind it; `n` is below their number.
pub(super) fn nth_text(texts: &'static str, n: usize) -> *const c_char {
    let mut rest = texts.as_bytes().iter();
    for _ in 0..n {
        let _ = rest.position(|byte| *byte == 0);
    }
    rest.as_slice().as_ptr().cast()
}

/// The text of a result, in English, without punctuation: never NULL, static. A positive result is "success"; a
/// number that is no `LACE_E...` code is "error of the host".
#[unsafe(no_mangle)]
pub extern "C" fn lace_strerror(result: i64) -> *const c_char {
    let n = if result >= 0 {
        0
    } else {
        1 + CODES.iter().position(|code| i64::from(*code) == result.wrapping_neg()).unwrap_or(CODES.len())
    };
    nth_text(TEXTS, n)
}

/// The version of the library that is linked in, as `major << 16 | minor << 8 | patch`.
#[unsafe(no_mangle)]
pub extern "C" fn lace_version() -> u32 {
    LACE_VERSION
}

/// Whether a program compiled against the header of version `header` (pass `LACE_VERSION`) works with this library:
/// the major numbers must agree (before 1.0 the minor ones too), and the library must not be the older one.
///
/// Returns 0, or `LACE_EOPNOTSUPP`.
#[unsafe(no_mangle)]
pub extern "C" fn lace_abi_check(header: u32) -> c_int {
    let series = |v: u32| if v >> 16 == 0 { v >> 8 } else { (v >> 16) << 8 };
    if series(header) == series(LACE_VERSION) && header <= LACE_VERSION { LACE_OK } else { LACE_EOPNOTSUPP }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: i64) -> &'static str {
        // SAFETY: a static text with a NUL behind it.
        unsafe { core::ffi::CStr::from_ptr(lace_strerror(result)) }.to_str().unwrap()
    }

    #[test]
    fn every_code_has_its_text() {
        for (result, expected) in [
            (0, "success"),
            (i64::MAX, "success"),
            (LACE_ENOENT.into(), "no such file or name"),
            (LACE_EINTR.into(), "interrupted"),
            (LACE_ETIME.into(), "sink stalled"),
            (LACE_ECANCELED.into(), "cancelled"),
            (-1, "error of the host"),
            (-126, "error of the host"),
            (-2 - (1 << 32), "error of the host"),
            (i64::MIN, "error of the host"),
        ] {
            assert_eq!(text(result), expected, "{result}");
        }
        let known = (1..=200i64).filter(|code| text(-code) != "error of the host").count();
        assert_eq!(known, CODES.len());
    }

    #[test]
    fn the_header_has_the_version_of_the_crate() {
        let number = |text: &str| text.parse::<u32>().unwrap();
        let version = number(env!("CARGO_PKG_VERSION_MAJOR")) << 16
            | number(env!("CARGO_PKG_VERSION_MINOR")) << 8
            | number(env!("CARGO_PKG_VERSION_PATCH"));
        assert_eq!(LACE_VERSION, version);
        assert_eq!(lace_abi_check(LACE_VERSION), 0);
        assert_eq!(lace_abi_check(LACE_VERSION + 1), LACE_EOPNOTSUPP);
        assert_eq!(lace_abi_check(LACE_VERSION + (1 << 16)), LACE_EOPNOTSUPP);
        assert_eq!(lace_abi_check(0), LACE_EOPNOTSUPP);
    }
}
