//! # NFS
//!
//! Reading from servers of NFS version 3 (RFC 1813). A mount is a value that the host holds: `lace_nfs_mount_start`
//! fills it in, everything else works with it. Paths are those below the export's root; symbolic links on the way are
//! followed. Stacks of `lace_config_init` have no memory for NFS (`LACE_EMFILE`): set `nfs_jobs`, for TCP
//! `tcp_connections` too, to two more than are to be open at a time, or take `lace_config_full`.

use super::addr::{lace_ip, lace_peer, text};
use super::file::lace_file;
use super::guard::{enter, lace_stack};
use super::op::{Asks, Notify, begin, lace_done, lace_op, lace_progress, start};
use super::region::Region;
use super::results::{LACE_EAGAIN, LACE_EBADF, LACE_EINVAL, code, status};
use super::sink::{CText, lace_sink, sink_at};
use super::structs::{Sized32, init, read, writable, write};
use crate::client::nfs::attach::{Request as AttachRequest, Task};
use crate::client::nfs::file::Request as FileRequest;
use crate::client::nfs::get::Request as GetRequest;
use crate::client::nfs::query::{Ask, RECORD, Request as QueryRequest};
use crate::client::nfs::{Attach, File, Get, MAX_PATH, Mount, Query, Transport, Tuning};
use crate::client::ops::Client;
use crate::client::rpc::User;
use crate::storage::time::Duration;
use crate::wire::nfs3::{Attributes, FileHandle};
use core::ffi::{c_char, c_int, c_void};

/// `lace_nfs.transport`: whatever the server offers.
pub const LACE_NFS_AUTO: u32 = 0;
/// `lace_nfs.transport`: UDP.
pub const LACE_NFS_UDP: u32 = 1;
/// `lace_nfs.transport`: TCP.
pub const LACE_NFS_TCP: u32 = 2;

/// A server and one of its exports. Set up by `lace_nfs_init`; copied at start; the texts must live until the
/// operation has ended, the path as long as the mount is used.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_nfs {
    /// Size of this struct.
    pub size: u32,
    /// `LACE_NFS_...`: how calls travel.
    pub transport: u32,
    /// The server; its port is the port mapper's, 0: 111.
    pub server: lace_peer,
    /// Path of the export, NUL-terminated, at most 1024 bytes. Not needed to list exports.
    pub path: *const c_char,
    /// As whom files are read: user.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// 1: without any credentials (`AUTH_NONE`).
    pub nobody: u32,
    /// How long the server may say nothing, in milliseconds; 0: as long as suits most.
    pub timeout_ms: u32,
    /// Port of the NFS program; 0: the port mapper is asked.
    pub nfs_port: u16,
    /// Port of the MOUNT program; 0: the port mapper is asked.
    pub mount_port: u16,
    /// 0.
    pub reserved: u32,
    /// Optional.
    pub done: lace_done,
    /// Passed to it.
    pub ctx: *mut c_void,
}

// SAFETY: integers, pointers and optional functions; the size is in front.
unsafe impl Sized32 for lace_nfs {
    const MIN: usize = size_of::<lace_nfs>();
}

impl Asks for lace_nfs {
    fn notify(&self) -> Notify {
        Notify { progress: None, done: self.done, ctx: self.ctx }
    }
}

/// A mounted export. Set up by `lace_mount_init`, filled in by `lace_nfs_mount_result`. It may be copied; nothing of
/// the stack's is held for it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_mount {
    /// Size of this struct.
    pub size: u32,
    /// How calls travel.
    pub transport: u32,
    /// The server.
    pub server: lace_ip,
    /// Port of the NFS program.
    pub nfs_port: u16,
    /// Port of the MOUNT program; 0: not known.
    pub mount_port: u16,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// 1: without credentials.
    pub nobody: u32,
    /// Most bytes of a READ that the server gives; 0: not known.
    pub read_max: u32,
    /// Bytes of a part of a directory that the server likes; 0: not known.
    pub dir_preferred: u32,
    /// Bytes of `root`.
    pub root_len: u32,
    /// Handle of the export.
    pub root: [u8; 64],
    /// Path of the export; must live as long as the mount is used.
    pub path: *const c_char,
}

// SAFETY: integers and pointers; the size is in front.
unsafe impl Sized32 for lace_mount {
    const MIN: usize = size_of::<lace_mount>();
    const PRESET: Option<fn(&mut Self)> = Some(|mount| mount.transport = LACE_NFS_UDP);
}

/// Longest path of an export in bytes.
const MAX_EXPORT: usize = 1024;

fn mount_at(mount: *const lace_mount) -> Result<Mount<CText>, i32> {
    let m = read(mount)?;
    let root = m.root.get(..m.root_len as usize).ok_or(LACE_EINVAL)?;
    let path = if m.path.is_null() { &[] } else { text(m.path, MAX_EXPORT)? };
    if m.nfs_port == 0 || root.is_empty() {
        return Err(LACE_EINVAL);
    }
    Ok(Mount {
        server: m.server.v4()?,
        transport: if m.transport == LACE_NFS_TCP { Transport::Tcp } else { Transport::Udp },
        nfs_port: m.nfs_port,
        mount_port: m.mount_port,
        user: User { nobody: m.nobody != 0, uid: m.uid, gid: m.gid },
        root: FileHandle::new(root).map_err(|_| LACE_EINVAL)?,
        read_max: m.read_max,
        dir_preferred: m.dir_preferred,
        path: CText::new(path),
    })
}

/// Sets up `*nfs`, `size` being `sizeof *nfs`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_init(nfs: *mut lace_nfs, size: usize) -> c_int {
    init(nfs, size)
}

/// Sets up `*mount`, `size` being `sizeof *mount`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_mount_init(mount: *mut lace_mount, size: usize) -> c_int {
    init(mount, size)
}

fn attach(
    net: *mut lace_stack,
    nfs: *const lace_nfs,
    task: impl FnOnce(&lace_stack, &lace_nfs) -> Result<Task<super::host::CHost>, i32>,
) -> lace_op {
    start(net, nfs, |nfs, net| {
        let transport = match nfs.transport {
            LACE_NFS_AUTO => Transport::Auto,
            LACE_NFS_UDP => Transport::Udp,
            LACE_NFS_TCP => Transport::Tcp,
            _ => return Err(LACE_EINVAL),
        };
        if nfs.reserved != 0 {
            return Err(LACE_EINVAL);
        }
        let request = AttachRequest {
            server: nfs.server.to_server()?,
            task: task(net, nfs)?,
            transport,
            nfs_port: nfs.nfs_port,
            mount_port: nfs.mount_port,
            user: User { nobody: nfs.nobody != 0, uid: nfs.uid, gid: nfs.gid },
            tuning: Tuning { timeout: Duration::from_millis(u64::from(nfs.timeout_ms)), ..Tuning::default() },
        };
        Attach::new(request).map(Client::NfsAttach).map_err(code)
    })
}

/// Starts to mount an export. The operation's result is 0; `lace_nfs_mount_result` then gives the mount.
///
/// Returns the operation; `LACE_EINVAL`, `LACE_EFAULT`, `LACE_ENAMETOOLONG`, `LACE_EOPNOTSUPP` for a transport that
/// is not built in, `LACE_EMFILE`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with
/// `LACE_EACCES`, `LACE_ENOENT` and others for what the server says (see its detail); `LACE_EOPNOTSUPP`: it has no
/// such program; `LACE_ETIMEDOUT`; `LACE_ECONNREFUSED`; `LACE_EMFILE`: `lace_config.nfs_jobs` is reached.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_mount_start(net: *mut lace_stack, nfs: *const lace_nfs) -> lace_op {
    attach(net, nfs, |_, nfs| Ok(Task::Mount(CText::new(text(nfs.path, MAX_EXPORT)?))))
}

/// Fills in `*mount` from the operation that has mounted it.
///
/// Returns 0; `LACE_EAGAIN` while it goes on; `LACE_EINVAL`: it is another kind of operation, it failed, or `*mount`
/// was not set up; `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_mount_result(net: *mut lace_stack, op: lace_op, mount: *mut lace_mount) -> c_int {
    status(enter(net).and_then(|net| {
        let (key, _) = net.ops.find(op)?;
        writable(mount)?;
        let value = net.call_always(|core| {
            let op = core.engine.ops.get(key).ok_or(LACE_EBADF)?;
            if op.is_running() {
                return Err(LACE_EAGAIN);
            }
            let Client::NfsAttach(attach) = &op.client else { return Err(LACE_EINVAL) };
            let m = attach.mount().ok_or(LACE_EINVAL)?;
            let root = m.root.as_bytes();
            let mut value = lace_mount {
                transport: if m.transport == Transport::Tcp { LACE_NFS_TCP } else { LACE_NFS_UDP },
                server: m.server.into(),
                nfs_port: m.nfs_port,
                mount_port: m.mount_port,
                uid: m.user.uid,
                gid: m.user.gid,
                nobody: u32::from(m.user.nobody),
                read_max: m.read_max,
                dir_preferred: m.dir_preferred,
                root_len: root.len() as u32,
                path: m.path.as_ref().as_ptr().cast(),
                ..lace_mount::fresh()
            };
            for (to, from) in value.root.iter_mut().zip(root) {
                *to = *from;
            }
            Ok(value)
        })?;
        write(mount, &value)
    }))
}

/// Starts to tell a server that an export is no longer in use. The operation's result is 0.
///
/// Returns as `lace_nfs_mount_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_unmount_start(net: *mut lace_stack, nfs: *const lace_nfs) -> lace_op {
    attach(net, nfs, |_, nfs| Ok(Task::Unmount(CText::new(text(nfs.path, MAX_EXPORT)?))))
}

/// Starts to list the exports of a server into `*sink`: a line each, the path, then the hosts and groups that may
/// mount it, with tabs between. The operation's result is their number.
///
/// Returns as `lace_nfs_mount_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_exports_start(
    net: *mut lace_stack,
    nfs: *const lace_nfs,
    sink: *const lace_sink,
) -> lace_op {
    attach(net, nfs, |net, _| Ok(Task::Exports(sink_at(sink, &net.arena)?)))
}

/// What to read. Set up by `lace_nfs_get_init`; copied at start; the mount is *borrowed for the call*; the path must
/// live until the operation has ended.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_nfs_get {
    /// Size of this struct.
    pub size: u32,
    /// Bytes of a READ; 0: what works best, remembered per server.
    pub read_size: u32,
    /// Mandatory: the export.
    pub mount: *const lace_mount,
    /// Mandatory: path below its root, NUL-terminated.
    pub path: *const c_char,
    /// First byte.
    pub offset: u64,
    /// Most bytes; default: all that follow.
    pub len: u64,
    /// READs in flight; 0: as many as work.
    pub depth: u32,
    /// How long the server may say nothing, in milliseconds; 0: as long as suits most.
    pub timeout_ms: u32,
    /// How long a `write` sink may take nothing before the transfer fails, in milliseconds; 0: 120000.
    pub sink_stall_ms: u32,
    /// 0.
    pub reserved: u32,
    /// Optional: bytes confirmed.
    pub progress: lace_progress,
    /// Optional.
    pub done: lace_done,
    /// Passed to both.
    pub ctx: *mut c_void,
}

// SAFETY: integers, pointers and optional functions; the size is in front.
unsafe impl Sized32 for lace_nfs_get {
    const MIN: usize = size_of::<lace_nfs_get>();
    const PRESET: Option<fn(&mut Self)> = Some(|get| get.len = u64::MAX);
}

impl Asks for lace_nfs_get {
    fn notify(&self) -> Notify {
        Notify { progress: self.progress, done: self.done, ctx: self.ctx }
    }
}

impl lace_nfs_get {
    fn tuning(&self) -> Result<Tuning, i32> {
        if self.reserved != 0 {
            return Err(LACE_EINVAL);
        }
        Ok(Tuning {
            timeout: Duration::from_millis(u64::from(self.timeout_ms)),
            read_size: self.read_size,
            depth: u8::try_from(self.depth).map_err(|_| LACE_EINVAL)?,
            sink_stall: Duration::from_millis(u64::from(self.sink_stall_ms)),
        })
    }
}

/// Sets up `*get`, `size` being `sizeof *get`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_get_init(get: *mut lace_nfs_get, size: usize) -> c_int {
    init(get, size)
}

/// Starts to read a file, or a part of it, into `*sink`. The operation's result is the number of bytes: fewer than
/// asked for only where the file ends.
///
/// Returns the operation; `LACE_EFAULT`, also for memory of the sink that contains address 0, wraps, or overlaps the
/// stack's; `LACE_EINVAL`: a mount that is none, numbers out of range; `LACE_ENAMETOOLONG`; `LACE_EMFILE`;
/// `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_ENOENT`, `LACE_EACCES`, `LACE_EISDIR`,
/// `LACE_ENOTDIR`, `LACE_ESTALE`, `LACE_EREMOTEIO` and others for what the server says (see its detail);
/// `LACE_ELOOP`: too many links; `LACE_ETIMEDOUT`; `LACE_EFBIG`: the sink is too small; `LACE_ETIME`: the sink
/// stalled; what the sink said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_get_start(
    net: *mut lace_stack,
    get: *const lace_nfs_get,
    sink: *const lace_sink,
) -> lace_op {
    start(net, get, |get, net| {
        let request = GetRequest {
            mount: mount_at(get.mount)?,
            path: CText::new(text(get.path, MAX_PATH)?),
            offset: get.offset,
            len: get.len,
            sink: sink_at(sink, &net.arena)?,
            tuning: get.tuning()?,
        };
        Get::new(request).map(Client::NfsGet).map_err(code)
    })
}

/// Opens the file that `*get` names on an NFS export. The position is `offset` at first; `get->len` and
/// `sink_stall_ms` do not matter. `progress` and `done` are called as for a transfer; `done` when it was closed by an
/// error. The `len` bytes at `readahead`, at least 512, are *lent until* the file is closed; 256 KiB make reading in order
/// run at full speed, less does elsewhere. Each open file takes one of `lace_config.nfs_jobs`, and over TCP a
/// connection.
///
/// Returns the file, which is open when `lace_file_wait` or `lace_file_status` says so; `LACE_ENOMEM`: too little
/// memory; else as `lace_nfs_get_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_open_start(
    net: *mut lace_stack,
    get: *const lace_nfs_get,
    readahead: *mut c_void,
    len: usize,
) -> lace_file {
    start(net, get, |get, net| {
        let request = FileRequest {
            mount: mount_at(get.mount)?,
            path: CText::new(text(get.path, MAX_PATH)?),
            position: get.offset,
            tuning: get.tuning()?,
            readahead: Region::new(readahead, len, &net.arena)?,
        };
        File::new(request).map(Client::NfsFile).map_err(code)
    })
}

fn ask(
    net: *mut lace_stack,
    mount: *const lace_mount,
    path: *const c_char,
    done: lace_done,
    ctx: *mut c_void,
    what: impl FnOnce(&lace_stack) -> Result<Ask<super::host::CHost>, i32>,
) -> lace_op {
    begin(net, &Notify { progress: None, done, ctx }, |net| {
        let request = QueryRequest {
            mount: mount_at(mount)?,
            path: CText::new(text(path, MAX_PATH)?),
            ask: what(net)?,
            tuning: Tuning::default(),
        };
        Query::new(request).map(Client::NfsQuery).map_err(code)
    })
}

/// Starts to ask for the attributes of a file, or, with `follow` 0, of the link that the path may name. The
/// operation's result is the file's size in bytes; `lace_nfs_attributes` gives the rest. The path must live until the
/// operation has ended; so it is with the other questions.
///
/// Returns and fails as `lace_nfs_get_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_getattr_start(
    net: *mut lace_stack,
    mount: *const lace_mount,
    path: *const c_char,
    follow: c_int,
    done: lace_done,
    ctx: *mut c_void,
) -> lace_op {
    ask(net, mount, path, done, ctx, |_| Ok(Ask::Attributes(follow != 0)))
}

/// `lace_nfs_access_start`: read a file or directory.
pub const LACE_NFS_READ: u32 = 1;
/// `lace_nfs_access_start`: find a name in a directory.
pub const LACE_NFS_LOOKUP: u32 = 2;
/// `lace_nfs_access_start`: rewrite or change.
pub const LACE_NFS_MODIFY: u32 = 4;
/// `lace_nfs_access_start`: add data or names.
pub const LACE_NFS_EXTEND: u32 = 8;
/// `lace_nfs_access_start`: remove names.
pub const LACE_NFS_DELETE: u32 = 16;
/// `lace_nfs_access_start`: execute a file.
pub const LACE_NFS_EXECUTE: u32 = 32;

/// Starts to ask which of `bits` (`LACE_NFS_READ` to `LACE_NFS_EXECUTE`) are allowed. The operation's result is those
/// bits.
///
/// Returns and fails as `lace_nfs_get_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_access_start(
    net: *mut lace_stack,
    mount: *const lace_mount,
    path: *const c_char,
    bits: u32,
    done: lace_done,
    ctx: *mut c_void,
) -> lace_op {
    ask(net, mount, path, done, ctx, |_| Ok(Ask::Access(bits)))
}

/// Starts to ask where a symbolic link leads, into `*sink`. The operation's result is the length in bytes.
///
/// Returns and fails as `lace_nfs_get_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_readlink_start(
    net: *mut lace_stack,
    mount: *const lace_mount,
    path: *const c_char,
    sink: *const lace_sink,
    done: lace_done,
    ctx: *mut c_void,
) -> lace_op {
    ask(net, mount, path, done, ctx, |net| Ok(Ask::Link(sink_at(sink, &net.arena)?)))
}

/// Starts to list a directory, without "." and "..", into `*sink`: a `struct lace_nfs_entry` for each name. The
/// operation's result is their number.
///
/// Returns and fails as `lace_nfs_get_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_list_start(
    net: *mut lace_stack,
    mount: *const lace_mount,
    path: *const c_char,
    sink: *const lace_sink,
    done: lace_done,
    ctx: *mut c_void,
) -> lace_op {
    ask(net, mount, path, done, ctx, |net| Ok(Ask::List(sink_at(sink, &net.arena)?)))
}

/// Starts to ask how full the file system of a path is. The operation's result is the bytes that the user may still
/// have; `lace_nfs_fsstat` gives the rest.
///
/// Returns and fails as `lace_nfs_get_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_fsstat_start(
    net: *mut lace_stack,
    mount: *const lace_mount,
    path: *const c_char,
    done: lace_done,
    ctx: *mut c_void,
) -> lace_op {
    ask(net, mount, path, done, ctx, |_| Ok(Ask::FsStat))
}

/// One name of a listing, followed by the name itself, a NUL, and padding: the next one begins `record_len` bytes
/// after this. In the byte order of this machine. The layout is frozen.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_nfs_entry {
    /// File number.
    pub fileid: u64,
    /// Size in bytes.
    pub size: u64,
    /// Last change of the contents: seconds since 1970.
    pub mtime_s: u32,
    /// And nanoseconds.
    pub mtime_ns: u32,
    /// Permissions.
    pub mode: u32,
    /// `LACE_NFS_FILE` and so on; 0: the server does not tell, and only file number and name count.
    pub kind: u32,
    /// Bytes of this record, name and padding included: a multiple of 8.
    pub record_len: u32,
    /// Bytes of the name.
    pub name_len: u32,
}

const _: () = assert!(size_of::<lace_nfs_entry>() == RECORD);

/// Type: regular file.
pub const LACE_NFS_FILE: u32 = 1;
/// Type: directory.
pub const LACE_NFS_DIRECTORY: u32 = 2;
/// Type: block device.
pub const LACE_NFS_BLOCK: u32 = 3;
/// Type: character device.
pub const LACE_NFS_CHARACTER: u32 = 4;
/// Type: symbolic link.
pub const LACE_NFS_LINK: u32 = 5;
/// Type: socket.
pub const LACE_NFS_SOCKET: u32 = 6;
/// Type: named pipe.
pub const LACE_NFS_FIFO: u32 = 7;

/// Attributes of a file. Set up by `lace_nfs_attr_init`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_nfs_attr {
    /// Size of this struct.
    pub size: u32,
    /// Type.
    pub kind: u32,
    /// Permissions.
    pub mode: u32,
    /// Hard links.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size of the file in bytes.
    pub file_size: u64,
    /// Bytes of disk used.
    pub used: u64,
    /// File system.
    pub fsid: u64,
    /// File number.
    pub fileid: u64,
    /// Device number: major.
    pub rdev_major: u32,
    /// Minor.
    pub rdev_minor: u32,
    /// Last access: seconds since 1970.
    pub atime_s: u32,
    /// And nanoseconds.
    pub atime_ns: u32,
    /// Last change of the contents.
    pub mtime_s: u32,
    /// And nanoseconds.
    pub mtime_ns: u32,
    /// Last change of the attributes.
    pub ctime_s: u32,
    /// And nanoseconds.
    pub ctime_ns: u32,
}

// SAFETY: integers only, the size in front.
unsafe impl Sized32 for lace_nfs_attr {
    const MIN: usize = size_of::<lace_nfs_attr>();
}

/// Sets up `*attr`, `size` being `sizeof *attr`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_attr_init(attr: *mut lace_nfs_attr, size: usize) -> c_int {
    init(attr, size)
}

fn attr(a: &Attributes) -> lace_nfs_attr {
    let [rdev_major, rdev_minor] = a.rdev;
    lace_nfs_attr {
        size: 0,
        kind: a.kind as u32,
        mode: a.mode,
        links: a.links,
        uid: a.uid,
        gid: a.gid,
        file_size: a.size,
        used: a.used,
        fsid: a.fsid,
        fileid: a.fileid,
        rdev_major,
        rdev_minor,
        atime_s: a.accessed.seconds,
        atime_ns: a.accessed.nanoseconds,
        mtime_s: a.modified.seconds,
        mtime_ns: a.modified.nanoseconds,
        ctime_s: a.changed.seconds,
        ctime_ns: a.changed.nanoseconds,
    }
}

/// The query of an operation that has ended.
fn answered<R>(
    net: *mut lace_stack,
    op: lace_op,
    take: impl FnOnce(&Query<super::host::CHost>) -> Option<R>,
) -> Result<R, i32> {
    enter(net).and_then(|net| {
        let (key, _) = net.ops.find(op)?;
        net.call_always(|core| {
            let op = core.engine.ops.get(key).ok_or(LACE_EBADF)?;
            match &op.client {
                Client::NfsQuery(_) if op.is_running() => Err(LACE_EAGAIN),
                Client::NfsQuery(query) => take(query).ok_or(LACE_EINVAL),
                _ => Err(LACE_EINVAL),
            }
        })
    })
}

/// Fills in `*attr` from the operation that has asked for attributes.
///
/// Returns 0; `LACE_EAGAIN` while it goes on; `LACE_EINVAL`: it is another kind of operation, it failed, or `*attr`
/// was not set up; `LACE_EFAULT`, `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_attributes(net: *mut lace_stack, op: lace_op, attr: *mut lace_nfs_attr) -> c_int {
    status(writable(attr).and_then(|()| {
        let value = answered(net, op, |q| q.attributes().map(self::attr))?;
        write(attr, &value)
    }))
}

/// How full a file system is. Set up by `lace_nfs_stat_init`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_nfs_stat {
    /// Size of this struct.
    pub size: u32,
    /// 0.
    pub reserved: u32,
    /// Size in bytes.
    pub total_bytes: u64,
    /// Free bytes.
    pub free_bytes: u64,
    /// Free bytes that the user may have.
    pub available_bytes: u64,
    /// Files there can be.
    pub total_files: u64,
    /// Files there can yet be.
    pub free_files: u64,
    /// Files the user can yet make.
    pub available_files: u64,
}

// SAFETY: integers only, the size in front.
unsafe impl Sized32 for lace_nfs_stat {
    const MIN: usize = size_of::<lace_nfs_stat>();
}

/// Sets up `*stat`, `size` being `sizeof *stat`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_stat_init(stat: *mut lace_nfs_stat, size: usize) -> c_int {
    init(stat, size)
}

/// Fills in `*stat` from the operation that has asked how full a file system is.
///
/// Returns as `lace_nfs_attributes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nfs_fsstat(net: *mut lace_stack, op: lace_op, stat: *mut lace_nfs_stat) -> c_int {
    status(writable(stat).and_then(|()| {
        let value = answered(net, op, |q| {
            q.fs_stat().map(|s| lace_nfs_stat {
                total_bytes: s.total_bytes,
                free_bytes: s.free_bytes,
                available_bytes: s.available_bytes,
                total_files: s.total_files,
                free_files: s.free_files,
                available_files: s.available_files,
                ..lace_nfs_stat::fresh()
            })
        })?;
        write(stat, &value)
    }))
}
