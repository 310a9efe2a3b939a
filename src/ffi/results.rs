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
        Error::Invalid => LACE_EINVAL,
        Error::Again => LACE_EAGAIN,
        Error::AddressFamily => LACE_EAFNOSUPPORT,
        Error::NoSlot => LACE_EMFILE,
        Error::NoMemory => LACE_ENOMEM,
        Error::InUse => LACE_EADDRINUSE,
        Error::AddressNotOurs => LACE_EADDRNOTAVAIL,
        Error::NetworkUnreachable => LACE_ENETUNREACH,
        Error::HostUnreachable => LACE_EHOSTUNREACH,
        Error::Refused => LACE_ECONNREFUSED,
        Error::Timeout => LACE_ETIMEDOUT,
        Error::Cancelled => LACE_ECANCELED,
        Error::Interrupted => LACE_EINTR,
        Error::Protocol => LACE_EPROTO,
        Error::NotFound => LACE_ENOENT,
        Error::Denied => LACE_EACCES,
        Error::NoSpace => LACE_ENOSPC,
        Error::Exists => LACE_EEXIST,
        Error::TooBig => LACE_EFBIG,
        Error::MessageSize => LACE_EMSGSIZE,
        Error::NameTooLong => LACE_ENAMETOOLONG,
        Error::NetworkDown => LACE_ENETDOWN,
        Error::ConnectionReset => LACE_ECONNRESET,
        Error::ConnectionAborted => LACE_ECONNABORTED,
        Error::NotConnected => LACE_ENOTCONN,
        Error::AlreadyConnected => LACE_EISCONN,
        Error::BadHandle => LACE_EBADF,
        Error::SinkStalled => LACE_ETIME,
        Error::NotSupported => LACE_EOPNOTSUPP,
        Error::EndOfFile => LACE_ENODATA,
        Error::Changed => LACE_ESTALE,
        Error::Loop => LACE_ELOOP,
        Error::NotDirectory => LACE_ENOTDIR,
        Error::IsDirectory => LACE_EISDIR,
        Error::Remote => LACE_EREMOTEIO,
        Error::Host(code) if code.0 < 0 => code.0,
        Error::Host(_) => LACE_EIO,
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

/// The text of a result, in English, without punctuation: never NULL, static. A positive result is "success"; a
/// number that is no `LACE_E...` code is "error of the host".
#[unsafe(no_mangle)]
pub extern "C" fn lace_strerror(result: i64) -> *const c_char {
    let text = match i32::try_from(result) {
        _ if result >= 0 => c"success",
        Ok(LACE_ENOENT) => c"no such file or name",
        Ok(LACE_EINTR) => c"interrupted",
        Ok(LACE_EIO) => c"input or output error",
        Ok(LACE_EBADF) => c"bad handle",
        Ok(LACE_EAGAIN) => c"try again",
        Ok(LACE_ENOMEM) => c"not enough memory",
        Ok(LACE_EACCES) => c"access denied",
        Ok(LACE_EFAULT) => c"bad address",
        Ok(LACE_EBUSY) => c"not allowed in this callback",
        Ok(LACE_EEXIST) => c"file exists",
        Ok(LACE_ENODEV) => c"no such NIC",
        Ok(LACE_ENOTDIR) => c"not a directory",
        Ok(LACE_EISDIR) => c"is a directory",
        Ok(LACE_EINVAL) => c"invalid argument",
        Ok(LACE_EMFILE) => c"limit of the configuration reached",
        Ok(LACE_EFBIG) => c"data too large",
        Ok(LACE_ENOSPC) => c"no space at the server",
        Ok(LACE_ENAMETOOLONG) => c"name too long",
        Ok(LACE_ELOOP) => c"too many links or redirects",
        Ok(LACE_ENODATA) => c"file ended early",
        Ok(LACE_ETIME) => c"sink stalled",
        Ok(LACE_EPROTO) => c"protocol error",
        Ok(LACE_EMSGSIZE) => c"message too long",
        Ok(LACE_EOPNOTSUPP) => c"not supported",
        Ok(LACE_EAFNOSUPPORT) => c"address family not supported",
        Ok(LACE_EADDRINUSE) => c"address in use",
        Ok(LACE_EADDRNOTAVAIL) => c"not an address of this host",
        Ok(LACE_ENETDOWN) => c"network down",
        Ok(LACE_ENETUNREACH) => c"no route",
        Ok(LACE_ECONNABORTED) => c"connection aborted",
        Ok(LACE_ECONNRESET) => c"connection reset",
        Ok(LACE_EISCONN) => c"already connected",
        Ok(LACE_ENOTCONN) => c"not connected",
        Ok(LACE_ETIMEDOUT) => c"timed out",
        Ok(LACE_ECONNREFUSED) => c"refused",
        Ok(LACE_EHOSTUNREACH) => c"host unreachable",
        Ok(LACE_ESTALE) => c"file changed",
        Ok(LACE_EREMOTEIO) => c"server failed",
        Ok(LACE_ECANCELED) => c"cancelled",
        _ => c"error of the host",
    };
    text.as_ptr()
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
