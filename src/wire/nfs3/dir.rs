//! Lists of directory entries: the results of READDIR (RFC 1813 §3.3.16) and READDIRPLUS (§3.3.17).

use super::{Attributes, FileHandle, MAX_HANDLE, Outcome, Status};
use crate::wire::Result;
use crate::wire::xdr::{Decoder, Encoder};

/// An entry. Of what READDIRPLUS gives beyond READDIR, the handle is passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry<'a> {
    /// File number.
    pub fileid: u64,
    /// Name; any bytes, of any length that fits the reply.
    pub name: &'a [u8],
    /// Where to go on after this entry.
    pub cookie: u64,
    /// Attributes; READDIR gives none.
    pub attributes: Option<Attributes>,
}

impl<'a> Entry<'a> {
    /// Appends the entry and the mark in front of it, as READDIR gives it.
    pub fn emit(&self, e: &mut Encoder<'_>) -> Result<()> {
        e.bool(true)?;
        e.u64(self.fileid)?;
        e.opaque(self.name)?;
        e.u64(self.cookie)
    }

    /// The same as READDIRPLUS gives it, with a handle.
    pub fn emit_plus(&self, file: Option<&FileHandle>, e: &mut Encoder<'_>) -> Result<()> {
        self.emit(e)?;
        Attributes::emit_optional(self.attributes.as_ref(), e)?;
        e.bool(file.is_some())?;
        file.map_or(Ok(()), |file| file.emit(e))
    }

    /// Reads what follows the mark in front of an entry to where it lies: it is large for a machine with 2 KiB of stack. On an
    /// error it may be anything.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn read(&mut self, d: &mut Decoder<'a>, plus: bool) -> Result<()> {
        self.fileid = d.u64()?;
        self.name = d.opaque(usize::MAX)?;
        self.cookie = d.u64()?;
        if plus {
            Attributes::read_optional(&mut self.attributes, d)?;
            if d.bool()? {
                d.opaque(MAX_HANDLE)?;
            }
        }
        Ok(())
    }
}

/// Appends the end of a list of entries. `eof`: the directory has no more.
pub fn emit_dir_end(e: &mut Encoder<'_>, eof: bool) -> Result<()> {
    e.bool(false)?;
    e.bool(eof)
}

/// Part of a directory; iterates over its entries. It is checked to its end beforehand.
#[derive(Clone, Debug)]
pub struct DirList<'a> {
    /// To be given back with a cookie of this reply.
    pub verifier: [u8; 8],
    /// The directory has no more entries.
    pub eof: bool,
    /// The cookie of the last entry.
    pub last: Option<u64>,
    plus: bool,
    entries: Decoder<'a>,
}

impl<'a> DirList<'a> {
    /// Reads the result of READDIR, or READDIRPLUS.
    pub fn parse(d: &mut Decoder<'a>, plus: bool) -> Result<Outcome<DirList<'a>>> {
        let status = Status(d.u32()?);
        if status != Status::OK {
            return Ok(Err(status));
        }
        Attributes::pass_optional(d)?;
        let verifier = *d.array()?;
        let (entries, mut last) = (*d, None);
        // Each turn takes 24 bytes at least.
        let mut entry = Entry::default();
        while d.bool()? {
            entry.read(d, plus)?;
            last = Some(entry.cookie);
        }
        let eof = d.bool()?;
        Ok(Ok(DirList { verifier, eof, last, plus, entries }))
    }

    /// Appends what precedes the entries.
    pub fn emit_head(e: &mut Encoder<'_>, attributes: Option<&Attributes>, verifier: &[u8; 8]) -> Result<()> {
        e.u32(Status::OK.0)?;
        Attributes::emit_optional(attributes, e)?;
        e.fixed(verifier)
    }

    /// Reads the next entry to `entry`; `false`: there are no more.
    pub fn next_into(&mut self, entry: &mut Entry<'a>) -> bool {
        let mut d = self.entries;
        if !matches!(d.bool(), Ok(true)) || entry.read(&mut d, self.plus).is_err() {
            return false; // and stays there
        }
        self.entries = d;
        true
    }
}

impl<'a> Iterator for DirList<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let mut entry = Entry::default();
        self.next_into(&mut entry).then_some(entry)
    }
}
