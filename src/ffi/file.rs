//! # Files
//!
//! A file at a TFTP server, on an NFS export (`lace_nfs_open_start`) or at an HTTP server (`lace_http_open_start`), read in
//! pieces, as a file system driver wants it. From TFTP and NFS the transfer runs ahead of the reader into memory that the
//! reader lends. From TFTP, what fits the reader's own buffer lands there directly. An open file is an operation:
//! `lace_op_detail` says why it failed, `lace_op_close` closes it.

use super::guard::{enter, lace_stack};
use super::op::lace_op;
use super::region::Region;
use super::results::{LACE_EAGAIN, LACE_EBADF, LACE_EINTR, LACE_EINVAL, LACE_ENODATA, code, status};
use super::run::block;
use crate::client::reader::Reader;
use core::ffi::{c_int, c_void};
#[cfg(feature = "file")]
use {
    super::addr::text,
    super::op::start,
    super::sink::CText,
    super::tftp::{MAX_PATH, lace_tftp_get},
    crate::client::file::{File, Request},
    crate::client::ops::Client,
};

/// Names an open file: an operation.
pub type lace_file = lace_op;

/// Opens the file that `*get` names (feature `file`). `progress` and `done` are called as for a transfer; `done` when it was closed by
/// an error. The `len` bytes at `readahead`, at least 512, are *lent until* the file is closed; a few blocks more
/// than the window make the transfer run at full speed.
///
/// Returns the file, which is open when `lace_file_wait` or `lace_file_status` says so; `LACE_ENOMEM`: too little
/// memory; else as `lace_tftp_get_start`.
#[cfg(feature = "file")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_file_open_start(
    net: *mut lace_stack,
    get: *const lace_tftp_get,
    readahead: *mut c_void,
    len: usize,
) -> lace_file {
    start(net, get, |get, net| {
        let request = Request {
            server: get.server.to_server()?,
            path: CText::new(text(get.path, MAX_PATH)?),
            tuning: get.tuning()?,
            readahead: Region::new(readahead, len, &net.arena)?,
        };
        File::new(request).map(Client::File).map_err(code)
    })
}

/// Begins to read `len` bytes from the file's position on into the memory at `buffer`, *lent until* the read has
/// ended. What lies behind the bytes that `lace_file_status` counts may have changed too.
///
/// Returns 0; `LACE_EAGAIN`: a read is under way; `LACE_EFAULT`; `LACE_EBADF`; `LACE_EBUSY`; what the file ended
/// with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_file_read_start(
    net: *mut lace_stack,
    file: lace_file,
    buffer: *mut c_void,
    len: usize,
) -> c_int {
    status(enter(net).and_then(|net| {
        let (key, _) = net.ops.find(file)?;
        let region = Region::new(buffer, len, &net.arena)?;
        net.call(|core| core.engine.file(key, |f| f.read(region)).and_then(|r| r).map_err(code))
    }))
}

fn look(core: &mut super::arena::Core, net: &lace_stack, file: lace_file) -> Result<Option<i64>, i32> {
    let (key, _) = net.ops.find(file)?;
    let state = core.engine.file(key, |f| match f.take_result() {
        Some(result) => Some(result.map(|n| n as i64)),
        None if f.is_reading() || !f.is_open() => None,
        None => Some(Ok(0)),
    });
    state.map_err(code)?.transpose().map_err(code)
}

/// What has become of the read that was begun last: told once.
///
/// Returns the number of bytes read, less than asked for only at the end of the file, where it is 0; `LACE_EAGAIN`
/// while it goes on, or the file is still being opened; 0 also when the file is open and nothing was asked for;
/// `LACE_EBADF`; `LACE_EBUSY`; what the file ended with, as from `lace_tftp_get_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_file_status(net: *mut lace_stack, file: lace_file) -> i64 {
    let result = enter(net).and_then(|net| {
        net.ops.find(file)?;
        net.call_always(|core| look(core, net, file))
    });
    result.map(|r| r.unwrap_or(i64::from(LACE_EAGAIN))).unwrap_or_else(i64::from)
}

/// Polls until the read that was begun last has ended, or else the file is open, looking at `host.poll` meanwhile.
///
/// Returns as `lace_file_status`; `LACE_EINTR` when `host.poll` ended it: the read is given up, the file stays open
/// at the position where it was; `LACE_ECANCELED` when the stack was stopped; `LACE_EBUSY` from a callback. A
/// negative `file`, such as a failed open gives, is returned as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_file_wait(net: *mut lace_stack, file: lace_file) -> i64 {
    if file < 0 {
        return i64::from(file);
    }
    let result = enter(net).and_then(|net| {
        net.ops.find(file)?;
        let waited = block(net, |core| look(core, net, file).transpose());
        if waited == Err(LACE_EINTR)
            && let Ok((key, _)) = net.ops.find(file)
        {
            // A file that has just ended has nothing left to give up.
            let _ = net.call_always(|core| core.engine.file(key, |f| f.stop_reading()).map_err(code));
        }
        waited?
    });
    result.unwrap_or_else(i64::from)
}

/// Moves the position at which the next read begins; beyond the end reads get nothing. From TFTP, which knows no
/// offsets, what lies between is passed over forwards; backwards, the file is asked for again.
///
/// Returns 0; `LACE_EAGAIN`: a read is under way; `LACE_EBADF`; `LACE_EBUSY`; what the file ended with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_file_seek(net: *mut lace_stack, file: lace_file, position: u64) -> c_int {
    status(enter(net).and_then(|net| {
        let (key, _) = net.ops.find(file)?;
        net.call(|core| core.engine.file(key, |f| f.seek(position)).and_then(|r| r).map_err(code))
    }))
}

/// Where the next read begins.
///
/// Returns that; `LACE_EBADF`; `LACE_EBUSY`; what the file ended with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_file_position(net: *mut lace_stack, file: lace_file) -> i64 {
    ask(net, file, |f| Ok(f.position()))
}

/// Bytes of the file.
///
/// Returns that; `LACE_ENODATA` while it is not known: some servers do not tell before the end; `LACE_EBADF`;
/// `LACE_EBUSY`; what the file ended with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_file_size(net: *mut lace_stack, file: lace_file) -> i64 {
    ask(net, file, |f| f.size().ok_or(LACE_ENODATA))
}

fn ask(
    net: *mut lace_stack,
    file: lace_file,
    what: impl FnOnce(&mut Reader<'_, super::host::CHost>) -> Result<u64, i32>,
) -> i64 {
    let value = enter(net).and_then(|net| {
        let (key, _) = net.ops.find(file)?;
        net.call_always(|core| match core.engine.ops.get_mut(key) {
            Some(op) if !op.is_running() => match op.step {
                crate::client::operation::Step::Done(Err(why)) => Err(code(why)),
                _ => Err(LACE_EBADF),
            },
            Some(op) => op.client.reader().ok_or(LACE_EINVAL).and_then(|mut file| what(&mut file)),
            None => Err(LACE_EBADF),
        })
    });
    match value {
        Ok(value) => i64::try_from(value).unwrap_or(i64::MAX),
        Err(code) => i64::from(code),
    }
}
