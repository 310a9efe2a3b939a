//! What the status codes of NFS (RFC 1813 §2.6) and MOUNT (appendix I) mean here, and their text.

use crate::client::operation::{Detail, DetailKind};
use crate::storage::error::Error;
use crate::wire::nfs3::Status;
use core::net::Ipv4Addr;

/// The error that a status means.
pub fn meaning(status: Status) -> Error {
    match status {
        Status::PERM | Status::ACCES => Error::Denied,
        Status::NOENT => Error::NotFound,
        Status::EXIST => Error::Exists,
        Status::NOTDIR => Error::NotDirectory,
        Status::ISDIR => Error::IsDirectory,
        Status::INVAL => Error::Invalid,
        Status::FBIG => Error::TooBig,
        Status::NAMETOOLONG => Error::NameTooLong,
        // What the handle or cookie stood for is no more.
        Status::STALE | Status::BADHANDLE | Status::BAD_COOKIE => Error::Changed,
        Status::NOTSUPP => Error::NotSupported,
        _ => Error::Remote,
    }
}

/// The text of a status; the same numbers mean the same in both protocols.
pub fn text(status: Status) -> &'static [u8] {
    match status {
        Status::OK => b"no error",
        Status::PERM => b"not owner",
        Status::NOENT => b"no such file or directory",
        Status::IO => b"I/O error",
        Status::NXIO => b"no such device",
        Status::ACCES => b"permission denied",
        Status::EXIST => b"file exists",
        Status::NOTDIR => b"not a directory",
        Status::ISDIR => b"is a directory",
        Status::INVAL => b"invalid argument",
        Status::FBIG => b"file too large",
        Status::NAMETOOLONG => b"name too long",
        Status::STALE => b"stale file handle",
        Status::BADHANDLE => b"illegal file handle",
        Status::BAD_COOKIE => b"stale directory cookie",
        Status::NOTSUPP => b"operation not supported",
        Status::TOOSMALL => b"buffer too small",
        Status::SERVERFAULT => b"server fault",
        Status::JUKEBOX => b"server busy",
        _ => b"unknown status",
    }
}

/// Notes a status as the operation's detail; returns the error that it means.
pub fn note(detail: &mut Detail, from: Ipv4Addr, status: Status) -> Error {
    detail.set(DetailKind::Nfs, status.0, Some(from), text(status));
    meaning(status)
}
