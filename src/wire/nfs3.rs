//! NFS version 3 (RFC 1813): the procedures that reading files needs, their arguments and results. Walking paths, retrying and what status
//! means are left to the client. Results have an `emit` for servers in tests and simulations.

use super::xdr::{Decoder, Encoder};
use super::{Error, Result};

mod dir;
pub use dir::{DirList, Entry, emit_dir_end};

/// Program number.
pub const PROGRAM: u32 = 100_003;
/// Version.
pub const VERSION: u32 = 3;
/// Port servers usually listen on.
pub const PORT: u16 = 2049;
/// Longest file handle in bytes (NFS3_FHSIZE).
pub const MAX_HANDLE: usize = 64;
/// Longest component of a path that is sent, in bytes.
pub const MAX_NAME: usize = 255;
/// Longest path of a symbolic link that is taken, in bytes.
pub const MAX_LINK: usize = 1024;

/// Procedure numbers (§3.3).
pub mod procedure {
    /// Do nothing.
    pub const NULL: u32 = 0;
    /// Get attributes.
    pub const GETATTR: u32 = 1;
    /// Find a name in a directory.
    pub const LOOKUP: u32 = 3;
    /// Ask what is allowed.
    pub const ACCESS: u32 = 4;
    /// Read a symbolic link.
    pub const READLINK: u32 = 5;
    /// Read a file.
    pub const READ: u32 = 6;
    /// Read a directory.
    pub const READDIR: u32 = 16;
    /// Read a directory with attributes and handles.
    pub const READDIRPLUS: u32 = 17;
    /// Get space and number of files.
    pub const FSSTAT: u32 = 18;
    /// Get limits.
    pub const FSINFO: u32 = 19;
}

/// Status of a procedure (`nfsstat3`, §2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    /// Done.
    pub const OK: Status = Status(0);
    /// Not owner.
    pub const PERM: Status = Status(1);
    /// No such file or directory.
    pub const NOENT: Status = Status(2);
    /// I/O error.
    pub const IO: Status = Status(5);
    /// No such device or address.
    pub const NXIO: Status = Status(6);
    /// Permission denied.
    pub const ACCES: Status = Status(13);
    /// Exists already.
    pub const EXIST: Status = Status(17);
    /// Not a directory.
    pub const NOTDIR: Status = Status(20);
    /// A directory.
    pub const ISDIR: Status = Status(21);
    /// Invalid argument.
    pub const INVAL: Status = Status(22);
    /// File too large.
    pub const FBIG: Status = Status(27);
    /// Name too long.
    pub const NAMETOOLONG: Status = Status(63);
    /// The handle's file is no more.
    pub const STALE: Status = Status(70);
    /// Illegal handle.
    pub const BADHANDLE: Status = Status(10001);
    /// The cookie is no longer valid.
    pub const BAD_COOKIE: Status = Status(10003);
    /// Operation not supported.
    pub const NOTSUPP: Status = Status(10004);
    /// Buffer or request too small.
    pub const TOOSMALL: Status = Status(10005);
    /// Server fault.
    pub const SERVERFAULT: Status = Status(10006);
    /// The server is busy: try again later.
    pub const JUKEBOX: Status = Status(10008);
}

/// What a server answers: results, or why there are none.
pub type Outcome<T> = core::result::Result<T, Status>;

/// Reads the status; what follows one other than OK is of no interest.
fn outcome<T>(d: &mut Decoder<'_>, ok: impl FnOnce(&mut Decoder<'_>) -> Result<T>) -> Result<Outcome<T>> {
    match Status(d.u32()?) {
        Status::OK => ok(d).map(Ok),
        status => Ok(Err(status)),
    }
}

/// Reads numbers, as many as `out` has.
#[inline(never)]
fn words(d: &mut Decoder<'_>, out: &mut [u32]) -> Result<()> {
    let (bytes, _) = d.fixed(out.len().wrapping_mul(4))?.as_chunks::<4>();
    for (word, bytes) in out.iter_mut().zip(bytes) {
        *word = u32::from_be_bytes(*bytes);
    }
    Ok(())
}

/// A hyper integer of its halves.
fn hyper(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// A file handle: up to 64 bytes that only the server understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHandle {
    bytes: [u8; MAX_HANDLE],
    len: u8,
}

impl FileHandle {
    /// The handle without bytes.
    pub const EMPTY: FileHandle = FileHandle { bytes: [0; MAX_HANDLE], len: 0 };

    /// The handle `bytes`; [`Error::Malformed`] above 64 bytes.
    pub fn new(bytes: &[u8]) -> Result<FileHandle> {
        let mut handle = FileHandle::EMPTY;
        handle.set(bytes)?;
        Ok(handle)
    }

    fn set(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() > MAX_HANDLE {
            return Err(Error::Malformed);
        }
        self.bytes.fill(0);
        for (to, from) in self.bytes.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.len = bytes.len() as u8;
        Ok(())
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Reads a handle.
    pub fn parse(d: &mut Decoder<'_>) -> Result<FileHandle> {
        FileHandle::new(d.opaque(MAX_HANDLE)?)
    }

    /// Reads a handle to where it belongs.
    pub fn read(&mut self, d: &mut Decoder<'_>) -> Result<()> {
        self.set(d.opaque(MAX_HANDLE)?)
    }

    /// Appends the handle.
    pub fn emit(&self, e: &mut Encoder<'_>) -> Result<()> {
        e.opaque(self.as_bytes())
    }
}

/// Type of a file (`ftype3`, §2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FileType {
    /// Regular file.
    Regular = 1,
    /// Directory.
    Directory = 2,
    /// Block device.
    Block = 3,
    /// Character device.
    Character = 4,
    /// Symbolic link.
    Symlink = 5,
    /// Socket.
    Socket = 6,
    /// Named pipe.
    Fifo = 7,
}

/// A point in time of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: u32,
    /// Nanoseconds.
    pub nanoseconds: u32,
}

/// Attributes of a file (`fattr3`, §2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Type.
    pub kind: FileType,
    /// Permissions.
    pub mode: u32,
    /// Hard links.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Bytes of disk used.
    pub used: u64,
    /// Device number, major and minor.
    pub rdev: [u32; 2],
    /// File system.
    pub fsid: u64,
    /// File number.
    pub fileid: u64,
    /// Last access.
    pub accessed: Time,
    /// Last change of the contents.
    pub modified: Time,
    /// Last change of the attributes.
    pub changed: Time,
}

impl Attributes {
    /// Length on the wire in bytes.
    pub const LEN: usize = 84;

    /// Reads attributes; [`Error::Malformed`] for an unknown type.
    pub fn parse(d: &mut Decoder<'_>) -> Result<Attributes> {
        let mut all = [0u32; Attributes::LEN / 4];
        words(d, &mut all)?;
        let [kind, mode, links, uid, gid, size_high, size, used_high, used, major, minor, rest @ ..] = all;
        let [fsid_high, fsid, fileid_high, fileid, accessed @ .., modified_s, modified_ns, changed_s, changed_ns] =
            rest;
        let [accessed_s, accessed_ns] = accessed;
        let kind = match kind {
            1 => FileType::Regular,
            2 => FileType::Directory,
            3 => FileType::Block,
            4 => FileType::Character,
            5 => FileType::Symlink,
            6 => FileType::Socket,
            7 => FileType::Fifo,
            _ => return Err(Error::Malformed),
        };
        Ok(Attributes {
            kind,
            mode,
            links,
            uid,
            gid,
            size: hyper(size_high, size),
            used: hyper(used_high, used),
            rdev: [major, minor],
            fsid: hyper(fsid_high, fsid),
            fileid: hyper(fileid_high, fileid),
            accessed: Time { seconds: accessed_s, nanoseconds: accessed_ns },
            modified: Time { seconds: modified_s, nanoseconds: modified_ns },
            changed: Time { seconds: changed_s, nanoseconds: changed_ns },
        })
    }

    /// Reads attributes that may be missing (`post_op_attr`), to where they belong. On an error `to` may be anything.
    #[inline(never)]
    pub fn read_optional(to: &mut Option<Attributes>, d: &mut Decoder<'_>) -> Result<()> {
        *to = None;
        if d.bool()? {
            *to = Some(Attributes::parse(d)?);
        }
        Ok(())
    }

    /// Passes over attributes that may be missing.
    #[inline(never)]
    fn pass_optional(d: &mut Decoder<'_>) -> Result<()> {
        if d.bool()? { d.skip(Attributes::LEN) } else { Ok(()) }
    }

    /// Appends the attributes.
    pub fn emit(&self, e: &mut Encoder<'_>) -> Result<()> {
        for word in [self.kind as u32, self.mode, self.links, self.uid, self.gid] {
            e.u32(word)?;
        }
        e.u64(self.size)?;
        e.u64(self.used)?;
        let [major, minor] = self.rdev;
        e.u32(major)?;
        e.u32(minor)?;
        e.u64(self.fsid)?;
        e.u64(self.fileid)?;
        for time in [self.accessed, self.modified, self.changed] {
            e.u32(time.seconds)?;
            e.u32(time.nanoseconds)?;
        }
        Ok(())
    }

    /// Appends attributes that may be missing.
    pub fn emit_optional(attributes: Option<&Attributes>, e: &mut Encoder<'_>) -> Result<()> {
        e.bool(attributes.is_some())?;
        attributes.map_or(Ok(()), |attributes| attributes.emit(e))
    }
}

/// Bits that ACCESS asks for and gives (§3.3.4).
pub mod access {
    /// Read a file or directory.
    pub const READ: u32 = 0x01;
    /// Find a name in a directory.
    pub const LOOKUP: u32 = 0x02;
    /// Rewrite or change.
    pub const MODIFY: u32 = 0x04;
    /// Add data or names.
    pub const EXTEND: u32 = 0x08;
    /// Remove names.
    pub const DELETE: u32 = 0x10;
    /// Execute a file.
    pub const EXECUTE: u32 = 0x20;
}

/// Arguments of a procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Args<'a> {
    /// None.
    Null,
    /// Handle.
    GetAttr(FileHandle),
    /// Directory and name, which is at most [`MAX_NAME`] bytes.
    Lookup {
        /// Directory.
        dir: FileHandle,
        /// Name.
        name: &'a [u8],
    },
    /// Handle and the bits asked for.
    Access {
        /// File or directory.
        file: FileHandle,
        /// Bits of [`access`].
        bits: u32,
    },
    /// Handle.
    ReadLink(FileHandle),
    /// Part of a file.
    Read {
        /// File.
        file: FileHandle,
        /// First byte.
        offset: u64,
        /// Most bytes to give.
        count: u32,
    },
    /// Part of a directory.
    ReadDir {
        /// Directory.
        dir: FileHandle,
        /// Where to go on; 0 at first.
        cookie: u64,
        /// Of the reply that gave the cookie; zeros at first.
        verifier: [u8; 8],
        /// Longest reply in bytes.
        count: u32,
    },
    /// Part of a directory with attributes and handles.
    ReadDirPlus {
        /// Directory.
        dir: FileHandle,
        /// Where to go on; 0 at first.
        cookie: u64,
        /// Of the reply that gave the cookie; zeros at first.
        verifier: [u8; 8],
        /// Most bytes of names and cookies.
        dir_count: u32,
        /// Longest reply in bytes.
        max_count: u32,
    },
    /// Handle of the root of a file system.
    FsStat(FileHandle),
    /// Handle of the root of a file system.
    FsInfo(FileHandle),
}

impl<'a> Args<'a> {
    /// Number of the procedure.
    pub fn procedure(&self) -> u32 {
        match self {
            Args::Null => procedure::NULL,
            Args::GetAttr(_) => procedure::GETATTR,
            Args::Lookup { .. } => procedure::LOOKUP,
            Args::Access { .. } => procedure::ACCESS,
            Args::ReadLink(_) => procedure::READLINK,
            Args::Read { .. } => procedure::READ,
            Args::ReadDir { .. } => procedure::READDIR,
            Args::ReadDirPlus { .. } => procedure::READDIRPLUS,
            Args::FsStat(_) => procedure::FSSTAT,
            Args::FsInfo(_) => procedure::FSINFO,
        }
    }

    /// Appends the arguments; [`Error::Malformed`] for a name above [`MAX_NAME`] bytes.
    pub fn emit(&self, e: &mut Encoder<'_>) -> Result<()> {
        match self {
            Args::Null => Ok(()),
            Args::GetAttr(file) | Args::ReadLink(file) | Args::FsStat(file) | Args::FsInfo(file) => file.emit(e),
            Args::Lookup { dir, name } => {
                if name.len() > MAX_NAME {
                    return Err(Error::Malformed);
                }
                dir.emit(e)?;
                e.opaque(name)
            }
            Args::Access { file, bits } => {
                file.emit(e)?;
                e.u32(*bits)
            }
            Args::Read { file, offset, count } => {
                file.emit(e)?;
                e.u64(*offset)?;
                e.u32(*count)
            }
            Args::ReadDir { dir, cookie, verifier, count } => {
                dir.emit(e)?;
                e.u64(*cookie)?;
                e.fixed(verifier)?;
                e.u32(*count)
            }
            Args::ReadDirPlus { dir, cookie, verifier, dir_count, max_count } => {
                dir.emit(e)?;
                e.u64(*cookie)?;
                e.fixed(verifier)?;
                e.u32(*dir_count)?;
                e.u32(*max_count)
            }
        }
    }

    /// Reads the arguments of procedure `number`, as a server does; [`Error::Malformed`] for one that is not here.
    pub fn parse(number: u32, d: &mut Decoder<'a>) -> Result<Args<'a>> {
        if number == procedure::NULL {
            return Ok(Args::Null);
        }
        let file = FileHandle::parse(d)?;
        Ok(match number {
            procedure::GETATTR => Args::GetAttr(file),
            procedure::LOOKUP => Args::Lookup { dir: file, name: d.opaque(MAX_NAME)? },
            procedure::ACCESS => Args::Access { file, bits: d.u32()? },
            procedure::READLINK => Args::ReadLink(file),
            procedure::READ => Args::Read { file, offset: d.u64()?, count: d.u32()? },
            procedure::READDIR => Args::ReadDir { dir: file, cookie: d.u64()?, verifier: *d.array()?, count: d.u32()? },
            procedure::READDIRPLUS => Args::ReadDirPlus {
                dir: file,
                cookie: d.u64()?,
                verifier: *d.array()?,
                dir_count: d.u32()?,
                max_count: d.u32()?,
            },
            procedure::FSSTAT => Args::FsStat(file),
            procedure::FSINFO => Args::FsInfo(file),
            _ => return Err(Error::Malformed),
        })
    }
}

/// Reads the result of GETATTR (§3.3.1).
pub fn parse_getattr(d: &mut Decoder<'_>) -> Result<Outcome<Attributes>> {
    outcome(d, Attributes::parse)
}

/// Appends a status other than OK and the attributes, left out, that follow it in the results of most procedures.
pub fn emit_failure(e: &mut Encoder<'_>, status: Status) -> Result<()> {
    e.u32(status.0)?;
    e.bool(false)
}

/// What LOOKUP gives (§3.3.3). The attributes of the directory, as those in the results below, are passed over: nothing here
/// asks for them, and they are large for a machine with 2 KiB of stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The handle of what has the name.
    pub file: FileHandle,
    /// Its attributes.
    pub attributes: Option<Attributes>,
}

impl Found {
    /// Reads the result.
    pub fn parse(d: &mut Decoder<'_>) -> Result<Outcome<Found>> {
        let mut found = Found { file: FileHandle::EMPTY, attributes: None };
        Ok(Found::read(d, &mut found.file, &mut found.attributes)?.map(|()| found))
    }

    /// The same, to where it belongs. On an error `file` and `attributes` may be anything.
    pub fn read(
        d: &mut Decoder<'_>,
        file: &mut FileHandle,
        attributes: &mut Option<Attributes>,
    ) -> Result<Outcome<()>> {
        outcome(d, |d| {
            file.read(d)?;
            Attributes::read_optional(attributes, d)?;
            Attributes::pass_optional(d)
        })
    }

    /// Appends the result, with the attributes of the directory.
    pub fn emit(&self, dir: Option<&Attributes>, e: &mut Encoder<'_>) -> Result<()> {
        e.u32(Status::OK.0)?;
        self.file.emit(e)?;
        Attributes::emit_optional(self.attributes.as_ref(), e)?;
        Attributes::emit_optional(dir, e)
    }
}

/// What ACCESS gives (§3.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// What of the bits asked for is allowed.
    pub bits: u32,
}

impl Allowed {
    /// Reads the result.
    pub fn parse(d: &mut Decoder<'_>) -> Result<Outcome<Allowed>> {
        outcome(d, |d| {
            Attributes::pass_optional(d)?;
            Ok(Allowed { bits: d.u32()? })
        })
    }

    /// Appends the result, with attributes.
    pub fn emit(&self, attributes: Option<&Attributes>, e: &mut Encoder<'_>) -> Result<()> {
        e.u32(Status::OK.0)?;
        Attributes::emit_optional(attributes, e)?;
        e.u32(self.bits)
    }
}

/// What READLINK gives (§3.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// Where the link leads, at most [`MAX_LINK`] bytes.
    pub path: &'a [u8],
}

impl<'a> Link<'a> {
    /// Reads the result.
    pub fn parse(d: &mut Decoder<'a>) -> Result<Outcome<Link<'a>>> {
        match Status(d.u32()?) {
            Status::OK => {
                Attributes::pass_optional(d)?;
                Ok(Ok(Link { path: d.opaque(MAX_LINK)? }))
            }
            status => Ok(Err(status)),
        }
    }

    /// Appends the result, with attributes.
    pub fn emit(&self, attributes: Option<&Attributes>, e: &mut Encoder<'_>) -> Result<()> {
        e.u32(Status::OK.0)?;
        Attributes::emit_optional(attributes, e)?;
        e.opaque(self.path)
    }
}

/// What READ gives in front of the data (§3.3.6). The decoder's position after it is where the data begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadHead {
    /// Length of the data in bytes; padding to a multiple of 4 follows it.
    pub len: u32,
    /// The data reaches the end of the file.
    pub eof: bool,
}

impl ReadHead {
    /// Reads what precedes the data, of a reply that need not be whole. [`Error::Malformed`] if there is more data than `asked`
    /// bytes, and if the two lengths that the reply has are not the same.
    pub fn parse(d: &mut Decoder<'_>, asked: u32) -> Result<Outcome<ReadHead>> {
        outcome(d, |d| {
            Attributes::pass_optional(d)?;
            let (count, eof, len) = (d.u32()?, d.bool()?, d.u32()?);
            if len != count || len > asked {
                return Err(Error::Malformed);
            }
            Ok(ReadHead { len, eof })
        })
    }

    /// Reads a whole result: what precedes the data, and the data. [`Error::Truncated`] if the data or its padding is not whole.
    pub fn parse_whole<'a>(d: &mut Decoder<'a>, asked: u32) -> Result<Outcome<(ReadHead, &'a [u8])>> {
        let mut at_data = *d;
        match ReadHead::parse(&mut at_data, asked)? {
            Ok(head) => {
                // The length once more, now with its data.
                let back = at_data.position().saturating_sub(d.position()).saturating_sub(4);
                d.skip(back)?;
                Ok(Ok((head, d.opaque(usize::try_from(asked).unwrap_or(usize::MAX))?)))
            }
            Err(status) => Ok(Err(status)),
        }
    }

    /// Appends what precedes the data, with attributes.
    pub fn emit(&self, attributes: Option<&Attributes>, e: &mut Encoder<'_>) -> Result<()> {
        e.u32(Status::OK.0)?;
        Attributes::emit_optional(attributes, e)?;
        e.u32(self.len)?;
        e.bool(self.eof)?;
        e.u32(self.len)
    }
}

/// What FSINFO gives (§3.3.19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsInfo {
    /// Most bytes of a READ.
    pub read_max: u32,
    /// Preferred size of a READ.
    pub read_preferred: u32,
    /// Suggested multiple of a READ.
    pub read_multiple: u32,
    /// Most bytes of a WRITE.
    pub write_max: u32,
    /// Preferred size of a WRITE.
    pub write_preferred: u32,
    /// Suggested multiple of a WRITE.
    pub write_multiple: u32,
    /// Preferred size of a READDIR.
    pub dir_preferred: u32,
    /// Largest file in bytes.
    pub max_file_size: u64,
    /// Resolution of times.
    pub time_delta: Time,
    /// Properties.
    pub properties: u32,
}

impl FsInfo {
    /// Reads the result.
    pub fn parse(d: &mut Decoder<'_>) -> Result<Outcome<FsInfo>> {
        outcome(d, |d| {
            Attributes::pass_optional(d)?;
            let mut all = [0u32; 12];
            words(d, &mut all)?;
            let [read_max, read_preferred, read_multiple, write_max, write_preferred, write_multiple, rest @ ..] = all;
            let [dir_preferred, size_high, size, seconds, nanoseconds, properties] = rest;
            Ok(FsInfo {
                read_max,
                read_preferred,
                read_multiple,
                write_max,
                write_preferred,
                write_multiple,
                dir_preferred,
                max_file_size: hyper(size_high, size),
                time_delta: Time { seconds, nanoseconds },
                properties,
            })
        })
    }

    /// Appends the result, with attributes.
    pub fn emit(&self, attributes: Option<&Attributes>, e: &mut Encoder<'_>) -> Result<()> {
        e.u32(Status::OK.0)?;
        Attributes::emit_optional(attributes, e)?;
        let read = [self.read_max, self.read_preferred, self.read_multiple];
        let write = [self.write_max, self.write_preferred, self.write_multiple];
        for word in read.into_iter().chain(write).chain([self.dir_preferred]) {
            e.u32(word)?;
        }
        e.u64(self.max_file_size)?;
        for word in [self.time_delta.seconds, self.time_delta.nanoseconds, self.properties] {
            e.u32(word)?;
        }
        Ok(())
    }
}

/// What FSSTAT gives (§3.3.18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsStat {
    /// Size in bytes.
    pub total_bytes: u64,
    /// Free bytes.
    pub free_bytes: u64,
    /// Free bytes that the user may have.
    pub available_bytes: u64,
    /// Number of files there can be.
    pub total_files: u64,
    /// Number of files there can yet be.
    pub free_files: u64,
    /// Number of files the user can yet make.
    pub available_files: u64,
    /// Seconds for which nothing is expected to change.
    pub invariant_s: u32,
}

impl FsStat {
    /// Reads the result.
    pub fn parse(d: &mut Decoder<'_>) -> Result<Outcome<FsStat>> {
        outcome(d, |d| {
            Attributes::pass_optional(d)?;
            let mut all = [0u32; 13];
            words(d, &mut all)?;
            let [total_high, total, free_high, free, available_high, available, files @ .., invariant_s] = all;
            let [files_high, files, free_files_high, free_files, available_files_high, available_files] = files;
            Ok(FsStat {
                total_bytes: hyper(total_high, total),
                free_bytes: hyper(free_high, free),
                available_bytes: hyper(available_high, available),
                total_files: hyper(files_high, files),
                free_files: hyper(free_files_high, free_files),
                available_files: hyper(available_files_high, available_files),
                invariant_s,
            })
        })
    }

    /// Appends the result, with attributes.
    pub fn emit(&self, attributes: Option<&Attributes>, e: &mut Encoder<'_>) -> Result<()> {
        e.u32(Status::OK.0)?;
        Attributes::emit_optional(attributes, e)?;
        for word in [self.total_bytes, self.free_bytes, self.available_bytes] {
            e.u64(word)?;
        }
        for word in [self.total_files, self.free_files, self.available_files] {
            e.u64(word)?;
        }
        e.u32(self.invariant_s)
    }
}

#[cfg(test)]
mod tests;
