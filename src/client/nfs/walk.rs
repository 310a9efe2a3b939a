//! From a path to a file handle: one LOOKUP a component (RFC 1813 §3.3.3), links followed. What has to be called is said
//! here; calling is for the operation.
//!
//! - Empty components and '.' are passed over; '..' in the root of the export stays there.
//! - A relative link is walked from its directory; an absolute one from the root of the export, without the path of the
//!   export itself if it begins with that: links are made to be read at the server or below a mount point.
//! - The last component is followed if that is asked for, or if a slash follows it.

use crate::client::rpc::User;
use crate::client::rpc::channel::Arguments;
use crate::storage::error::Error;
use crate::wire::nfs3::{self, Args, Attributes, FileHandle, FileType, Found, Link, MAX_LINK, MAX_NAME, Outcome};
use crate::wire::rpc::Call;
use crate::wire::xdr::Decoder;

/// Most links that one walk follows.
pub const MAX_LINKS: u8 = 16;
/// Longest path that is walked, in bytes.
pub const MAX_PATH: usize = 1024;

/// What is to be called next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// To be found out.
    Next,
    /// LOOKUP of the component at `start` of the link's text, or of the path.
    Lookup { in_link: bool, start: u16, len: u16, last: bool, slash: bool },
    /// GETATTR of a file found without attributes.
    Ask { last: bool, slash: bool },
    /// READLINK of a link found.
    Follow,
    /// Nothing: it has arrived.
    Done,
}

/// A walk.
#[derive(Debug)]
pub struct Walk {
    root: FileHandle,
    /// The directory that has been reached.
    at: FileHandle,
    /// What was found in it.
    found: FileHandle,
    attributes: Option<Attributes>,
    depth: u16,
    links: u8,
    follow: bool,
    step: Step,
    position: u16,
    /// What is left to walk of links, from `link_position` to `link_end`; comes before the rest of the path.
    link: [u8; MAX_LINK],
    link_position: u16,
    link_end: u16,
}

impl Walk {
    /// No walk.
    pub const fn new() -> Self {
        Walk {
            root: FileHandle::EMPTY,
            at: FileHandle::EMPTY,
            found: FileHandle::EMPTY,
            attributes: None,
            depth: 0,
            links: 0,
            follow: false,
            step: Step::Next,
            position: 0,
            link: [0; MAX_LINK],
            link_position: 0,
            link_end: 0,
        }
    }

    /// Starts from the root of an export; `follow`: the last component too.
    pub fn begin(&mut self, root: FileHandle, follow: bool) {
        self.root = root;
        self.at = root;
        self.attributes = None;
        self.depth = 0;
        self.links = 0;
        self.follow = follow;
        self.step = Step::Next;
        self.position = 0;
        self.link_position = 0;
        self.link_end = 0;
    }

    /// The handle of where it has arrived.
    pub fn end(&self) -> FileHandle {
        self.at
    }

    fn link(&self) -> &[u8] {
        self.link.get(..usize::from(self.link_end)).unwrap_or(&[])
    }

    /// Where it has arrived, with attributes; `None`: it goes on. [`Self::call`] says how.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn arrived(&mut self, path: &[u8]) -> Result<Option<(FileHandle, Attributes)>, Error> {
        // Each turn passes over a component.
        for _ in 0..=2 * MAX_PATH {
            if self.step != Step::Next {
                break;
            }
            self.next(path)?;
        }
        match (self.step, self.attributes) {
            (Step::Done, Some(attributes)) => Ok(Some((self.at, attributes))),
            _ => Ok(None),
        }
    }

    /// The text that components come from now, and how far it is walked.
    fn text<'t>(&'t self, path: &'t [u8]) -> (bool, &'t [u8], usize) {
        let left = self.link().get(usize::from(self.link_position)..).unwrap_or(&[]);
        if left.iter().any(|b| *b != b'/') {
            return (true, self.link(), usize::from(self.link_position));
        }
        (false, path, usize::from(self.position))
    }

    fn next(&mut self, path: &[u8]) -> Result<(), Error> {
        let (in_link, text, position) = self.text(path);
        let rest = text.get(position..).unwrap_or(&[]);
        let slashes = rest.iter().take_while(|b| **b == b'/').count();
        let rest = rest.get(slashes..).unwrap_or(&[]);
        let len = rest.iter().take_while(|b| **b != b'/').count();
        let component = rest.get(..len).unwrap_or(&[]);
        let after = rest.get(len..).unwrap_or(&[]);
        let start = position.saturating_add(slashes);
        let end = start.saturating_add(len) as u16;
        let outer = if in_link { path.get(usize::from(self.position)..).unwrap_or(&[]) } else { &[] };
        let last = after.iter().chain(outer).all(|b| *b == b'/');
        let slash = last && (!after.is_empty() || !outer.is_empty());
        if len > MAX_NAME {
            return Err(Error::NameTooLong);
        }
        let lookup = Step::Lookup { in_link, start: start as u16, len: len as u16, last, slash };
        let step = match component {
            // The end: of the path, or of a path without components.
            b"" => self.arrive(),
            b"." => Step::Next,
            b".." if self.depth == 0 => Step::Next,
            _ => lookup,
        };
        if in_link {
            self.link_position = end;
        } else {
            self.position = end;
        }
        self.step = step;
        Ok(())
    }

    /// The directory reached is the end, if its attributes are known.
    fn arrive(&mut self) -> Step {
        self.found = self.at;
        if self.attributes.is_some() { Step::Done } else { Step::Ask { last: true, slash: false } }
    }

    /// Builds the call that is due, with transaction number `xid`.
    ///
    /// # Errors
    /// [`Error::NameTooLong`]: a component of a link is longer than 255 bytes.
    pub fn call<'t>(&'t self, path: &'t [u8], xid: u32, user: User, out: &mut Arguments<'t>) -> Result<(), Error> {
        match self.step {
            Step::Lookup { in_link, start, len, .. } => {
                let text = if in_link { self.link() } else { path };
                let name = text.get(usize::from(start)..).and_then(|t| t.get(..usize::from(len))).unwrap_or(&[]);
                lookup(xid, &self.at, name, user, out)
            }
            Step::Follow => request(xid, &Args::ReadLink(self.found), user, out),
            _ => request(xid, &Args::GetAttr(self.found), user, out),
        }
    }

    /// Takes the results of the call that was due. Out of line, for each call what it needs: the results of one are not to
    /// have room in the frame of another.
    ///
    /// # Errors
    /// They do not parse: they are to be discarded.
    pub fn take(
        &mut self,
        path: &[u8],
        export: &[u8],
        d: &mut Decoder<'_>,
    ) -> crate::wire::Result<Outcome<Result<(), Error>>> {
        match self.step {
            Step::Lookup { in_link, start, len, last, slash } => {
                let text = if in_link { self.link() } else { path };
                let up = text.get(usize::from(start)..).is_some_and(|t| t.starts_with(b"..")) && len == 2;
                self.take_found(d, up, last, slash)
            }
            Step::Ask { last, slash } => self.take_attributes(d, last, slash),
            Step::Follow => Ok(match Link::parse(d)? {
                Err(status) => Err(status),
                Ok(link) => Ok(self.turn(export, link.path)),
            }),
            Step::Next | Step::Done => Ok(Ok(Ok(()))),
        }
    }

    #[inline(never)]
    fn take_found(
        &mut self,
        d: &mut Decoder<'_>,
        up: bool,
        last: bool,
        slash: bool,
    ) -> crate::wire::Result<Outcome<Result<(), Error>>> {
        let mut attributes = None;
        if let Err(status) = Found::read(d, &mut self.found, &mut attributes)? {
            return Ok(Err(status));
        }
        self.depth = if up { self.depth.saturating_sub(1) } else { self.depth.saturating_add(1) };
        Ok(Ok(match &attributes {
            Some(attributes) => self.reach(attributes, last, slash),
            None => {
                self.step = Step::Ask { last, slash };
                Ok(())
            }
        }))
    }

    #[inline(never)]
    fn take_attributes(
        &mut self,
        d: &mut Decoder<'_>,
        last: bool,
        slash: bool,
    ) -> crate::wire::Result<Outcome<Result<(), Error>>> {
        Ok(match nfs3::parse_getattr(d)? {
            Err(status) => Err(status),
            Ok(attributes) => Ok(self.reach(&attributes, last, slash)),
        })
    }

    /// Something was found with these attributes.
    fn reach(&mut self, attributes: &Attributes, last: bool, slash: bool) -> Result<(), Error> {
        if attributes.kind == FileType::Symlink && (!last || slash || self.follow) {
            // The link itself is no step down.
            self.depth = self.depth.saturating_sub(1);
            self.links = self.links.saturating_add(1);
            if self.links > MAX_LINKS {
                return Err(Error::Loop);
            }
            self.step = Step::Follow;
            return Ok(());
        }
        if attributes.kind != FileType::Directory && (!last || slash) {
            return Err(Error::NotDirectory);
        }
        self.at = self.found;
        self.attributes = Some(*attributes);
        self.step = if last { Step::Done } else { Step::Next };
        Ok(())
    }

    /// Goes on with where a link leads.
    fn turn(&mut self, export: &[u8], target: &[u8]) -> Result<(), Error> {
        if target.is_empty() {
            return Err(Error::NotFound);
        }
        let mut target = target;
        if target.first() == Some(&b'/') {
            self.at = self.root;
            self.depth = 0;
            self.attributes = None;
            let export = export.strip_suffix(b"/").unwrap_or(export);
            if let Some(below) = target.strip_prefix(export)
                && matches!(below.first(), None | Some(b'/'))
            {
                target = below;
            }
        }
        // What is left of an outer link begins with a slash, and goes on after this one.
        let rest = usize::from(self.link_position)..usize::from(self.link_end);
        let end = target.len().saturating_add(rest.len());
        if end > self.link.len() {
            return Err(Error::NameTooLong);
        }
        self.link.copy_within(rest, target.len());
        for (to, from) in self.link.iter_mut().zip(target) {
            *to = *from;
        }
        self.link_end = end as u16;
        self.link_position = 0;
        self.step = Step::Next;
        Ok(())
    }
}

fn header(xid: u32, procedure: u32, user: User) -> Call<'static> {
    Call { xid, program: nfs3::PROGRAM, version: nfs3::VERSION, procedure, auth: user.auth() }
}

/// An NFS call without a name.
///
/// # Errors
/// [`Error::Invalid`]: never, unless arguments are longer than they can be.
#[inline(never)]
pub fn request(xid: u32, args: &Args<'_>, user: User, out: &mut Arguments<'_>) -> Result<(), Error> {
    out.set(&header(xid, args.procedure(), user), None, |e| args.emit(e))
}

#[inline(never)]
fn lookup<'t>(xid: u32, dir: &FileHandle, name: &'t [u8], user: User, out: &mut Arguments<'t>) -> Result<(), Error> {
    out.set(&header(xid, nfs3::procedure::LOOKUP, user), Some(name), |e| dir.emit(e))
}
