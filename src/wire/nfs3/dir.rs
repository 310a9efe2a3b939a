//! Lists of directory entries: the results of READDIR (RFC 1813 §3.3.16) and READDIRPLUS (§3.3.17).

use super::{Attributes, FileHandle, Outcome, Status};
use crate::wire::Result;
use crate::wire::xdr::{Decoder, Encoder};
use core::marker::PhantomData;

/// An entry as READDIR gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry<'a> {
    /// File number.
    pub fileid: u64,
    /// Name; any bytes, of any length that fits the reply.
    pub name: &'a [u8],
    /// Where to go on after this entry.
    pub cookie: u64,
}

impl<'a> Entry<'a> {
    /// Appends the entry and the mark in front of it.
    pub fn emit(&self, e: &mut Encoder<'_>) -> Result<()> {
        e.bool(true)?;
        e.u64(self.fileid)?;
        e.opaque(self.name)?;
        e.u64(self.cookie)
    }
}

/// An entry as READDIRPLUS gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlusEntry<'a> {
    /// What READDIR gives too.
    pub entry: Entry<'a>,
    /// Attributes.
    pub attributes: Option<Attributes>,
    /// Handle.
    pub file: Option<FileHandle>,
}

impl PlusEntry<'_> {
    /// Appends the entry and the mark in front of it.
    pub fn emit(&self, e: &mut Encoder<'_>) -> Result<()> {
        self.entry.emit(e)?;
        Attributes::emit_optional(self.attributes.as_ref(), e)?;
        e.bool(self.file.is_some())?;
        self.file.map_or(Ok(()), |file| file.emit(e))
    }
}

/// Appends the end of a list of entries. `eof`: the directory has no more.
pub fn emit_dir_end(e: &mut Encoder<'_>, eof: bool) -> Result<()> {
    e.bool(false)?;
    e.bool(eof)
}

/// Reads what follows the mark in front of an entry.
pub trait ParseEntry<'a>: Default {
    /// Reads one entry to where it lies: it is large for a machine with 2 KiB of stack. On an error it may be anything.
    fn read(&mut self, d: &mut Decoder<'a>) -> Result<()>;
}

impl<'a> ParseEntry<'a> for Entry<'a> {
    fn read(&mut self, d: &mut Decoder<'a>) -> Result<()> {
        self.fileid = d.u64()?;
        self.name = d.opaque(usize::MAX)?;
        self.cookie = d.u64()?;
        Ok(())
    }
}

impl<'a> ParseEntry<'a> for PlusEntry<'a> {
    fn read(&mut self, d: &mut Decoder<'a>) -> Result<()> {
        self.entry.read(d)?;
        Attributes::read_optional(&mut self.attributes, d)?;
        self.file = None;
        if d.bool()? {
            self.file.insert(FileHandle::EMPTY).read(d)?;
        }
        Ok(())
    }
}

/// Part of a directory; iterates over its entries, of type `T`: [`Entry`] or [`PlusEntry`]. It is checked to its end beforehand.
#[derive(Clone, Debug)]
pub struct DirList<'a, T> {
    /// Attributes of the directory.
    pub attributes: Option<Attributes>,
    /// To be given back with a cookie of this reply.
    pub verifier: [u8; 8],
    /// The directory has no more entries.
    pub eof: bool,
    entries: Decoder<'a>,
    kind: PhantomData<T>,
}

impl<'a, T: ParseEntry<'a>> DirList<'a, T> {
    /// Reads the result of READDIR or READDIRPLUS.
    pub fn parse(d: &mut Decoder<'a>) -> Result<Outcome<DirList<'a, T>>> {
        let status = Status(d.u32()?);
        if status != Status::OK {
            return Ok(Err(status));
        }
        let (attributes, verifier) = (Attributes::parse_optional(d)?, *d.array()?);
        let entries = *d;
        // Each turn takes 24 bytes at least.
        let mut entry = T::default();
        while d.bool()? {
            entry.read(d)?;
        }
        let eof = d.bool()?;
        Ok(Ok(DirList { attributes, verifier, eof, entries, kind: PhantomData }))
    }
}

impl<T> DirList<'_, T> {
    /// Appends what precedes the entries.
    pub fn emit_head(e: &mut Encoder<'_>, attributes: Option<&Attributes>, verifier: &[u8; 8]) -> Result<()> {
        e.u32(Status::OK.0)?;
        Attributes::emit_optional(attributes, e)?;
        e.fixed(verifier)
    }
}

impl<'a, T: ParseEntry<'a>> DirList<'a, T> {
    /// Reads the next entry to `entry`; `false`: there are no more.
    pub fn next_into(&mut self, entry: &mut T) -> bool {
        let mut d = self.entries;
        if !matches!(d.bool(), Ok(true)) || entry.read(&mut d).is_err() {
            return false; // and stays there
        }
        self.entries = d;
        true
    }
}

impl<'a, T: ParseEntry<'a>> Iterator for DirList<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let mut entry = T::default();
        self.next_into(&mut entry).then_some(entry)
    }
}
