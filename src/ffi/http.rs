//! # HTTP
//!
//! Files by HTTP/1.1 (RFC 9110, RFC 9112), whole or in part. A body goes straight to its sink, without a buffer between.
//! A connection that breaks is opened again, and the transfer goes on where it was if the server says that the file is
//! still the same; so a result is never a mixture of two files, nor a part of one taken for the whole. A connection
//! waits 4 s for the next operation with the same server. Stacks of `lace_config_init` have no memory for HTTP
//! (`LACE_EMFILE`): set `http_jobs`, and `tcp_connections` to two more than are to be open at a time, or take
//! `lace_config_full`.

use super::file::lace_file;
use super::guard::{enter, lace_stack};
use super::op::{Asks, Notify, lace_done, lace_op, lace_progress, start};
use super::results::{LACE_EAGAIN, LACE_EBADF, LACE_EFAULT, LACE_EINVAL, LACE_EMSGSIZE, LACE_ENOENT, code};
use super::sink::{CText, lace_sink, sink_at};
use super::structs::{Sized32, init};
use crate::client::engine::Shared;
use crate::client::http::head::field;
use crate::client::http::{File, Get, MAX_FIELD_TEXT, MAX_SECRET, MAX_URL, MAX_VALIDATOR, Method, Request, Tuning};
use crate::client::ops::Client;
use crate::storage::host::Sink;
use crate::storage::time::Duration;
use core::ffi::{c_char, c_int, c_void};

/// What to fetch. Set up by `lace_http_init`; copied at start; the texts must live until the operation has ended.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_http {
    /// Size of this struct.
    pub size: u32,
    /// Redirects that are followed, 0 to 255; default: 8.
    pub redirects: u32,
    /// Mandatory: `http://HOST[:PORT][/PATH][?QUERY]`, NUL-terminated, at most 1024 bytes. `USER:PASSWORD@` before the
    /// host counts unless `user` is given.
    pub url: *const c_char,
    /// Optional: user name for Basic authorisation (RFC 7617), NUL-terminated, at most 255 bytes, without a colon. It
    /// is told to the host and port of `url` only, wherever redirects lead.
    pub user: *const c_char,
    /// Its password; NULL: an empty one.
    pub password: *const c_char,
    /// Optional: further fields of the request, NUL-terminated, at most 2048 bytes: lines "Name: value" with a line
    /// feed, or CR and LF, between them. They are told to the host and port of `url` only.
    pub fields: *const c_char,
    /// Optional: what `lace_http_validator` told when the bytes before `offset` came. If the file is another one by
    /// now, the operation fails with `LACE_ESTALE` and the sink gets nothing.
    pub if_range: *const c_char,
    /// First byte; the sink's first byte is that one.
    pub offset: u64,
    /// Most bytes; default: all that follow.
    pub len: u64,
    /// How long the server may say nothing, in milliseconds; 0: 30000.
    pub timeout_ms: u32,
    /// Connections that may break before the transfer fails, 0 to 255; each mebibyte that comes makes up for all
    /// before; default: 8.
    pub retries: u32,
    /// How long a `write` sink may take nothing before the transfer fails, in milliseconds; 0: 120000.
    pub sink_stall_ms: u32,
    /// 1: the connection is not kept for the next operation.
    pub close: u32,
    /// Largest receive window in bytes, as in `lace_tcp_options`; 0: 2 MiB. More than the NIC's ring of frames holds only
    /// makes frames drop. It counts for connections that are opened, not for one that is kept.
    pub receive_max: u32,
    /// 0.
    pub reserved: u32,
    /// Optional: bytes that have come, of those that will, if the server tells it.
    pub progress: lace_progress,
    /// Optional.
    pub done: lace_done,
    /// Passed to both.
    pub ctx: *mut c_void,
}

// SAFETY: integers, pointers and optional functions; the size is in front.
unsafe impl Sized32 for lace_http {
    const MIN: usize = size_of::<lace_http>();
    const PRESET: Option<fn(&mut Self)> = Some(|http| (http.redirects, http.len, http.retries) = (8, u64::MAX, 8));
}

impl Asks for lace_http {
    fn notify(&self) -> Notify {
        Notify { progress: self.progress, done: self.done, ctx: self.ctx }
    }
}

fn optional(text: *const c_char, max: usize) -> Result<Option<CText>, i32> {
    if text.is_null() { Ok(None) } else { Ok(Some(CText::new(super::addr::text(text, max)?))) }
}

impl lace_http {
    /// The request as the core has it.
    pub(super) fn request(
        &self,
        method: Method,
        sink: Sink<super::region::Region, super::sink::CWriter>,
    ) -> Result<Request<super::host::CHost>, i32> {
        let small = |number: u32| u8::try_from(number).map_err(|_| LACE_EINVAL);
        if self.close > 1 {
            return Err(LACE_EINVAL);
        }
        let user = match optional(self.user, MAX_SECRET)? {
            Some(user) => Some((user, optional(self.password, MAX_SECRET)?.unwrap_or(CText::new(&[])))),
            None => None,
        };
        Ok(Request {
            url: CText::new(super::addr::text(self.url, MAX_URL)?),
            method,
            sink,
            user,
            fields: optional(self.fields, MAX_FIELD_TEXT)?,
            if_range: optional(self.if_range, MAX_VALIDATOR)?,
            offset: self.offset,
            len: self.len,
            tuning: Tuning {
                timeout: Duration::from_millis(u64::from(self.timeout_ms)),
                sink_stall: Duration::from_millis(u64::from(self.sink_stall_ms)),
                redirects: small(self.redirects)?,
                retries: small(self.retries)?,
                close: self.close != 0,
                receive_max: self.receive_max,
            },
        })
    }
}

/// Sets up `*http`, `size` being `sizeof *http`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_http_init(http: *mut lace_http, size: usize) -> c_int {
    init(http, size)
}

fn begin(net: *mut lace_stack, http: *const lace_http, method: Method, sink: Option<*const lace_sink>) -> lace_op {
    start(net, http, |http, net| {
        let sink = match sink {
            Some(sink) => sink_at(sink, &net.arena)?,
            None => Sink::Discard,
        };
        Get::new(http.request(method, sink)?).map(Client::Http).map_err(code)
    })
}

/// Starts to fetch a file, or a part of it, into `*sink`. The operation's result is the number of bytes: fewer than
/// `len` only where the file ends. When it failed, as many bytes of a memory sink as its progress says are those of the
/// file; the others are undefined.
///
/// Returns the operation; `LACE_EFAULT`, also for memory of the sink that contains address 0, wraps, or overlaps the
/// stack's; `LACE_EINVAL`: a URL that is none, fields or a validator that cannot be, numbers out of range;
/// `LACE_ENAMETOOLONG`; `LACE_EMSGSIZE`: too many fields; `LACE_EOPNOTSUPP`: an `https` URL; `LACE_EAFNOSUPPORT`: an IPv6 address;
/// `LACE_EMFILE`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_ENOENT`, `LACE_EACCES`,
/// `LACE_EREMOTEIO` and others for the status that the server gives (see its detail, `lace_http_status` and
/// `lace_http_field`); with what looking the name up and opening the connection fail with; `LACE_EMFILE`:
/// `lace_config.http_jobs` or `tcp_connections` is reached; `LACE_ETIMEDOUT`; `LACE_ENODATA`: the body ended before the
/// length that was promised, or the file before `offset`; `LACE_ESTALE`: the file changed between two parts;
/// `LACE_ELOOP`: too many redirects; `LACE_EFBIG`: the sink is too small, or the length is no file's; `LACE_EMSGSIZE`:
/// the response's head is longer than 4096 bytes or has more than 64 fields; `LACE_EOPNOTSUPP`: the body is compressed,
/// or a redirect leads to another scheme; `LACE_EPROTO`: the detail says how the server broke the protocol;
/// `LACE_ECONNRESET`; `LACE_ETIME`: the sink stalled; what the sink said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_http_get_start(
    net: *mut lace_stack,
    http: *const lace_http,
    sink: *const lace_sink,
) -> lace_op {
    begin(net, http, Method::Get, Some(sink))
}

/// Starts to ask what would be said of a file, without its bytes (method HEAD); `offset`, `len` and `if_range` do not
/// count. The operation's result is the file's length, 0 if the server does not tell; see `lace_http_field` too.
///
/// Returns as `lace_http_get_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_http_head_start(net: *mut lace_stack, http: *const lace_http) -> lace_op {
    begin(net, http, Method::Head, None)
}

/// Opens the file that `*http` names, to be read in pieces by `lace_file_read_start` and its kin. The position is
/// `offset` at first; `len` and `sink_stall_ms` do not count. Bytes land in the buffers they are read into; between
/// reads the server is held back. To read elsewhere is another request, for what lies there; servers that give no parts
/// send the file from its beginning, which is passed over. `progress` and `done` are called as for a transfer; `done`
/// when it was closed by an error. Each open file takes one of `lace_config.http_jobs` and a connection.
///
/// Returns the file, which is open when `lace_file_wait` or `lace_file_status` says so; else as `lace_http_get_start`.
/// Reads fail as that does, with `LACE_ESTALE` when the file at the server is no longer the one that was opened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_http_open_start(net: *mut lace_stack, http: *const lace_http) -> lace_file {
    start(net, http, |http, _| File::new(http.request(Method::Get, Sink::Discard)?).map(Client::HttpFile).map_err(code))
}

/// Calls `what` on an HTTP operation.
fn ask<R>(
    net: *mut lace_stack,
    op: lace_op,
    what: impl FnOnce(&Get<super::host::CHost>, &Shared<'_>) -> Result<R, i32>,
) -> Result<R, i32> {
    enter(net).and_then(|net| {
        let (key, _) = net.ops.find(op)?;
        net.call_always(|core| {
            let engine = &core.engine;
            match &engine.ops.get(key).ok_or(LACE_EBADF)?.client {
                Client::Http(get) => what(get, &engine.shared),
                Client::HttpFile(file) => what(file.get(), &engine.shared),
                _ => Err(LACE_EINVAL),
            }
        })
    })
}

/// The status code of the last response, such as 200; after redirects, of the response that they led to.
///
/// Returns that; `LACE_EAGAIN` before a response came; `LACE_EINVAL` for an operation of another kind; `LACE_EBADF`,
/// `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_http_status(net: *mut lace_stack, op: lace_op) -> c_int {
    let status = ask(net, op, |get, _| get.status().ok_or(LACE_EAGAIN));
    status.map_or_else(|code| code, c_int::from)
}

/// Writes as much of `value` as fits to C's `text`, and a NUL.
fn give(value: &[u8], text: *mut c_char, size: usize) -> Result<i32, i32> {
    if text.is_null() && size > 0 {
        return Err(LACE_EFAULT);
    }
    if size > 0 {
        let count = value.len().min(size - 1);
        // SAFETY: the caller says that there is room for `size` bytes, of which no more are written; the value is the
        // stack's own.
        unsafe {
            core::ptr::copy_nonoverlapping(value.as_ptr(), text.cast::<u8>(), count);
            text.cast::<u8>().add(count).write(0);
        }
    }
    Ok(value.len() as i32)
}

/// Writes the value of the first field `name` of the last response's head, such as "Content-Type", NUL-terminated, to
/// the `size` bytes at `text`, cut to fit. With NULL for `name` the whole head, lines with CR and LF at their ends.
/// `text` may be NULL if `size` is 0. Bytes are as the server sent them. Readable until the operation is closed.
///
/// Returns the length of the whole value without the NUL; `LACE_ENOENT`: there is no such field; `LACE_EAGAIN` before a
/// response came; `LACE_EFAULT`; `LACE_EMSGSIZE`: a name of more than 64 bytes; `LACE_EINVAL` for an operation of
/// another kind; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_http_field(
    net: *mut lace_stack,
    op: lace_op,
    name: *const c_char,
    text: *mut c_char,
    size: usize,
) -> c_int {
    let wanted = match optional(name, 64) {
        Ok(name) => name,
        Err(code) => return if code == LACE_EFAULT { code } else { LACE_EMSGSIZE },
    };
    let result = ask(net, op, |get, shared| {
        let head = get.head(shared);
        if head.is_empty() {
            return Err(LACE_EAGAIN);
        }
        let value = match &wanted {
            Some(name) => field(head, name.as_ref()).ok_or(LACE_ENOENT)?,
            None => head,
        };
        give(value, text, size)
    });
    result.unwrap_or_else(|code| code)
}

/// Writes what tells this state of the file from others, a strong entity tag or a date, NUL-terminated, to the `size`
/// bytes at `text`: what `lace_http.if_range` wants when the rest of the file is fetched later. 129 bytes are always
/// enough. Readable until the operation is closed, also when it failed.
///
/// Returns its length without the NUL; `LACE_ENOENT`: the server told none, or no response came; `LACE_EMSGSIZE`: too
/// little room; `LACE_EFAULT`; `LACE_EINVAL` for an operation of another kind; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_http_validator(
    net: *mut lace_stack,
    op: lace_op,
    text: *mut c_char,
    size: usize,
) -> c_int {
    let result = ask(net, op, |get, shared| match get.validator(shared) {
        [] => Err(LACE_ENOENT),
        value if value.len() >= size => Err(LACE_EMSGSIZE),
        value => give(value, text, size),
    });
    result.unwrap_or_else(|code| code)
}
