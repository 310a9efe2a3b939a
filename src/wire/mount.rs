//! MOUNT version 3 (RFC 1813 appendix I): from the path of an export to its file handle, and the list of exports.

use super::nfs3::FileHandle;
use super::rpc::flavor;
use super::xdr::{Decoder, Encoder};
use super::{Error, Result};

/// Program number.
pub const PROGRAM: u32 = 100_005;
/// Version.
pub const VERSION: u32 = 3;
/// Longest path, in bytes (MNTPATHLEN).
pub const MAX_PATH: usize = 1024;
/// Longest name of a host or group, in bytes (MNTNAMLEN).
pub const MAX_NAME: usize = 255;
/// Most flavors read of a reply.
const MAX_FLAVORS: usize = 64;

/// Procedure numbers.
pub mod procedure {
    /// Do nothing.
    pub const NULL: u32 = 0;
    /// Mount a path.
    pub const MNT: u32 = 1;
    /// Unmount a path.
    pub const UMNT: u32 = 3;
    /// List exports.
    pub const EXPORT: u32 = 5;
}

/// Status of a mount (`mountstat3`).
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
    /// Permission denied.
    pub const ACCES: Status = Status(13);
    /// Not a directory.
    pub const NOTDIR: Status = Status(20);
    /// Invalid argument.
    pub const INVAL: Status = Status(22);
    /// Name too long.
    pub const NAMETOOLONG: Status = Status(63);
    /// Operation not supported.
    pub const NOTSUPP: Status = Status(10004);
    /// Server fault.
    pub const SERVERFAULT: Status = Status(10006);
}

/// Appends the path that MNT and UMNT take; [`Error::Malformed`] above [`MAX_PATH`] bytes.
pub fn emit_path(e: &mut Encoder<'_>, path: &[u8]) -> Result<()> {
    if path.len() > MAX_PATH {
        return Err(Error::Malformed);
    }
    e.opaque(path)
}

/// Reads the path that MNT and UMNT take, as a server does.
pub fn parse_path<'a>(d: &mut Decoder<'a>) -> Result<&'a [u8]> {
    d.opaque(MAX_PATH)
}

/// What a successful MNT gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// Handle of the export.
    pub root: FileHandle,
    /// The server takes AUTH_NONE.
    pub takes_none: bool,
    /// The server takes AUTH_SYS.
    pub takes_sys: bool,
}

impl Mounted {
    /// Reads the result of MNT: the handle, or why there is none. An empty list of flavors says nothing: AUTH_SYS is taken then.
    pub fn parse(d: &mut Decoder<'_>) -> Result<core::result::Result<Mounted, Status>> {
        let mut root = FileHandle::EMPTY;
        let taken = Mounted::read(d, &mut root)?;
        Ok(taken.map(|(takes_none, takes_sys)| Mounted { root, takes_none, takes_sys }))
    }

    /// The same, the handle to where it belongs: it is large for a machine with 2 KiB of stack. Gives whether AUTH_NONE and AUTH_SYS
    /// are taken. On an error `root` may be anything.
    pub fn read(d: &mut Decoder<'_>, root: &mut FileHandle) -> Result<core::result::Result<(bool, bool), Status>> {
        let status = Status(d.u32()?);
        if status != Status::OK {
            return Ok(Err(status));
        }
        root.read(d)?;
        let count = d.len(MAX_FLAVORS)?;
        let (mut none, mut sys) = (false, count == 0);
        for _ in 0..count {
            match d.u32()? {
                flavor::NONE => none = true,
                flavor::SYS => sys = true,
                _ => {}
            }
        }
        Ok(Ok((none, sys)))
    }

    /// Appends the result of MNT, as a server does.
    pub fn emit(&self, e: &mut Encoder<'_>) -> Result<()> {
        e.u32(Status::OK.0)?;
        self.root.emit(e)?;
        e.u32(u32::from(self.takes_none).wrapping_add(u32::from(self.takes_sys)))?;
        if self.takes_none {
            e.u32(flavor::NONE)?;
        }
        if self.takes_sys {
            e.u32(flavor::SYS)?;
        }
        Ok(())
    }
}

/// An export.
#[derive(Clone, Debug)]
pub struct Export<'a> {
    /// Its path.
    pub path: &'a [u8],
    /// Hosts and groups that may mount it; none means all.
    pub groups: Groups<'a>,
}

/// Iterates over the exports in the result of EXPORT. What is not whole gives one error and ends them.
#[derive(Clone, Debug)]
pub struct Exports<'a> {
    d: Option<Decoder<'a>>,
}

impl<'a> Exports<'a> {
    /// The result that `d` reads.
    pub fn new(d: Decoder<'a>) -> Exports<'a> {
        Exports { d: Some(d) }
    }
}

impl<'a> Iterator for Exports<'a> {
    type Item = Result<Export<'a>>;

    fn next(&mut self) -> Option<Result<Export<'a>>> {
        let mut d = self.d.take()?;
        let mut export = || -> Result<Option<Export<'a>>> {
            if !d.bool()? {
                return Ok(None);
            }
            let path = d.opaque(MAX_PATH)?;
            let groups = Groups { d };
            // Each turn takes 4 bytes at least.
            while d.bool()? {
                d.opaque(MAX_NAME)?;
            }
            Ok(Some(Export { path, groups }))
        };
        let export = export();
        if matches!(export, Ok(Some(_))) {
            self.d = Some(d);
        }
        export.transpose()
    }
}

/// Iterates over the hosts and groups that may mount an export.
#[derive(Clone, Debug)]
pub struct Groups<'a> {
    d: Decoder<'a>,
}

impl<'a> Iterator for Groups<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let mut d = self.d;
        if !d.bool().ok()? {
            return None; // and stays there
        }
        let name = d.opaque(MAX_NAME).ok()?;
        self.d = d;
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::{each_cut, each_mutation};
    use std::vec::Vec;

    #[test]
    fn case_n12_wire_paths() {
        for (len, expect) in [
            (1023, Ok(())),
            (1024, Ok(())),
            (1025, Err(Error::Malformed)),
            (1424, Err(Error::Malformed)),
            (5000, Err(Error::Malformed)),
        ] {
            let path = std::vec![b'p'; len];
            let mut buf = [0; 8192];
            let mut e = Encoder::new(&mut buf);
            assert_eq!(emit_path(&mut e, &path), expect);
            if expect.is_ok() {
                assert_eq!(parse_path(&mut Decoder::new(e.finish())), Ok(&path[..]));
            } else {
                assert_eq!(e.len(), 0);
            }
        }
    }

    #[test]
    fn mounts_round_trip() {
        for (takes_none, takes_sys) in [(true, false), (false, true), (true, true)] {
            let mounted = Mounted { root: FileHandle::new(b"handle of 20 bytes..").unwrap(), takes_none, takes_sys };
            let mut buf = [0; 128];
            let mut e = Encoder::new(&mut buf);
            mounted.emit(&mut e).unwrap();
            let wire = e.finish();
            assert_eq!(Mounted::parse(&mut Decoder::new(wire)), Ok(Ok(mounted)));
            each_cut(wire, |cut| assert_eq!(Mounted::parse(&mut Decoder::new(cut)), Err(Error::Truncated)));
        }
        assert_eq!(Mounted::parse(&mut Decoder::new(&[0, 0, 0, 13])), Ok(Err(Status::ACCES)));
        let no_flavors = [0, 0, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4, 0, 0, 0, 0];
        assert!(matches!(Mounted::parse(&mut Decoder::new(&no_flavors)), Ok(Ok(m)) if m.takes_sys && !m.takes_none));
        let mut many = no_flavors;
        many[12..].copy_from_slice(&[0xff; 4]);
        assert_eq!(Mounted::parse(&mut Decoder::new(&many)), Err(Error::Malformed));
    }

    #[test]
    fn handles_above_64_bytes_are_refused() {
        let mut wire = [&[0, 0, 0, 0, 0, 0, 0, 64][..], &[7; 64], &[0, 0, 0, 0], &[0; 4]].concat();
        assert!(matches!(Mounted::parse(&mut Decoder::new(&wire)), Ok(Ok(m)) if m.root.as_bytes() == [7; 64]));
        wire[7] = 65;
        assert_eq!(Mounted::parse(&mut Decoder::new(&wire)), Err(Error::Malformed));
        wire[4..8].copy_from_slice(&[0x80, 0, 0, 0]);
        assert_eq!(Mounted::parse(&mut Decoder::new(&wire)), Err(Error::Malformed));
    }

    fn exports() -> Vec<u8> {
        let mut buf = [0; 128];
        let mut e = Encoder::new(&mut buf);
        for (path, groups) in [(&b"/srv"[..], &[&b"lab"[..], b"10.0.0.0/8"][..]), (b"/home", &[])] {
            e.bool(true).unwrap();
            e.opaque(path).unwrap();
            for group in groups {
                e.bool(true).unwrap();
                e.opaque(group).unwrap();
            }
            e.bool(false).unwrap();
        }
        e.bool(false).unwrap();
        e.finish().to_vec()
    }

    #[test]
    fn exports_are_listed() {
        let wire = exports();
        let list: Vec<_> = Exports::new(Decoder::new(&wire)).map(|e| e.unwrap()).collect();
        assert_eq!(list.iter().map(|e| e.path).collect::<Vec<_>>(), [&b"/srv"[..], b"/home"]);
        assert_eq!(list[0].groups.clone().collect::<Vec<_>>(), [&b"lab"[..], b"10.0.0.0/8"]);
        assert_eq!(list[1].groups.clone().count(), 0);
        let mut after = list[1].groups.clone();
        assert_eq!((after.next(), after.next()), (None, None));
        each_cut(&wire, |cut| {
            let results: Vec<_> = Exports::new(Decoder::new(cut)).collect();
            assert_eq!(results.last().unwrap().as_ref().unwrap_err(), &Error::Truncated);
            assert!(results.len() <= 3);
        });
        each_mutation(&wire, |bytes| {
            let groups: usize = Exports::new(Decoder::new(bytes)).flatten().map(|e| e.groups.count()).sum();
            assert!(groups < bytes.len());
        });
    }
}
