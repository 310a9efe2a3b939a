//! What the status codes of NFS (RFC 1813 §2.6) and MOUNT (appendix I) mean here, and their text.

use crate::client::operation::{Detail, DetailKind};
use crate::storage::error::Error;
use crate::wire::nfs3::Status;
use core::net::Ipv4Addr;

/// What a status means, and its text; the same numbers mean the same in both protocols.
fn known(status: Status) -> (Error, &'static str) {
    const KNOWN: [(Status, Error, &str); 19] = [
        (Status::OK, Error::Remote, "no error"),
        (Status::PERM, Error::Denied, "not owner"),
        (Status::NOENT, Error::NotFound, "no such file or directory"),
        (Status::IO, Error::Remote, "I/O error"),
        (Status::NXIO, Error::Remote, "no such device"),
        (Status::ACCES, Error::Denied, "permission denied"),
        (Status::EXIST, Error::Exists, "file exists"),
        (Status::NOTDIR, Error::NotDirectory, "not a directory"),
        (Status::ISDIR, Error::IsDirectory, "is a directory"),
        (Status::INVAL, Error::Invalid, "invalid argument"),
        (Status::FBIG, Error::TooBig, "file too large"),
        (Status::NAMETOOLONG, Error::NameTooLong, "name too long"),
        // What the handle or cookie stood for is no more.
        (Status::STALE, Error::Changed, "stale file handle"),
        (Status::BADHANDLE, Error::Changed, "illegal file handle"),
        (Status::BAD_COOKIE, Error::Changed, "stale directory cookie"),
        (Status::NOTSUPP, Error::NotSupported, "operation not supported"),
        (Status::TOOSMALL, Error::Remote, "buffer too small"),
        (Status::SERVERFAULT, Error::Remote, "server fault"),
        (Status::JUKEBOX, Error::Remote, "server busy"),
    ];
    match KNOWN.iter().find(|known| known.0 == status) {
        Some((_, error, text)) => (*error, text),
        None => (Error::Remote, "unknown status"),
    }
}

/// Notes a status as the operation's detail; returns the error that it means.
pub fn note(detail: &mut Detail, from: Ipv4Addr, status: Status) -> Error {
    let (error, text) = known(status);
    detail.set(DetailKind::Nfs, status.0, Some(from), text.as_bytes());
    error
}
