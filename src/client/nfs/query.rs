//! Questions about a file: attributes, what is allowed, where a link leads, how full its file system is, and what a
//! directory holds.

use super::feed::Feed;
use super::walk::{Walk, request};
use super::{JobState, Mount, Room, Seat, Transport, Tuning, Work, check_path, refused};
use crate::client::operation::{Cx, Datagram, Detail, Operation, Step};
use crate::client::rpc::Incoming;
use crate::client::rpc::channel::Arguments;
use crate::stack::icmp::IcmpError;
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host, SinkOf};
use crate::storage::time::{Duration, Instant};
use crate::wire::nfs3::{Allowed, Args, Attributes, DirList, Entry, FileType, FsStat, Link, Outcome, Status};
use crate::wire::udp;

/// How soon a sink that refused is asked again.
const SINK_RETRY: Duration = Duration::from_millis(10);
/// Most bytes of a part of a directory that are asked for.
const MAX_PART: u32 = 16 * 1024;
/// Fewest.
const MIN_PART: u32 = 1024;
/// Longest reply that is taken over TCP.
#[cfg(feature = "tcp")]
const STREAM_ROOM: usize = crate::client::rpc::tape::ROOM;
#[cfg(not(feature = "tcp"))]
const STREAM_ROOM: usize = 0;
/// Bytes of a reply beside the part of the directory, with room for a verifier.
const AROUND_PART: usize = 128;
/// Repetitions after which less is asked for: long replies may be what does not get through.
const TRIES: u8 = 3;

/// Length of what precedes the name in a record of a listing, in bytes.
pub const RECORD: usize = 40;

/// What to ask.
pub enum Ask<H: Host> {
    /// Attributes; the result is the size in bytes. `true`: of what a link leads to.
    Attributes(bool),
    /// Which of these bits ([`crate::wire::nfs3::access`]) are allowed; the result is those bits.
    Access(u32),
    /// How full the file system is; the result is the bytes that the user may still have.
    FsStat,
    /// Where a link leads, to the sink; the result is the length in bytes.
    Link(SinkOf<H>),
    /// What a directory holds, without "." and "..", to the sink; the result is the number of entries. Each is a record
    /// in the byte order of this machine: file number (u64), size (u64), time of the last change in seconds and
    /// nanoseconds (u32 each), permissions (u32), type (u32; 0 where the server does not tell, and then only the file
    /// number and the name count), length of the record (u32, a multiple of 8), length of the name (u32), the name, NUL,
    /// padding.
    List(SinkOf<H>),
}

/// What to ask about which file.
pub struct Request<H: Host> {
    /// The export.
    pub mount: Mount<H::Text>,
    /// Path below its root, at most [`super::MAX_PATH`] bytes.
    pub path: H::Text,
    /// What to ask.
    pub ask: Ask<H>,
    /// Numbers.
    pub tuning: Tuning,
}

/// A listing that is under way.
struct Listing<H: Host> {
    feed: Feed<H>,
    cookie: u64,
    verifier: [u8; 8],
    /// READDIRPLUS is known, for all that was seen.
    plus: bool,
    /// Bytes asked for at once; 0: not decided yet.
    part: u32,
    count: u64,
    parts: u32,
    /// The last cookie of an earlier part: one that comes again means a server that goes in a circle.
    mark: Option<u64>,
}

enum What<H: Host> {
    Attributes(Option<Attributes>),
    Access(u32),
    FsStat(Option<FsStat>),
    Link(Feed<H>),
    List(Listing<H>),
}

/// The operation.
pub struct Query<H: Host> {
    mount: Mount<H::Text>,
    path: H::Text,
    what: What<H>,
    seat: Seat,
    follow: bool,
    /// What the path leads to was found.
    found: bool,
    /// When a reply is asked for again, because the sink did not take all of it.
    retry: Option<Instant>,
    stalled: Instant,
    sink_stall: Duration,
}

impl<H: Host> Query<H> {
    /// The connection that it waits for.
    #[cfg(feature = "tcp")]
    pub fn connection(&self, shared: &crate::client::engine::Shared<'_>) -> Option<crate::storage::slots::Key> {
        self.seat.connection(shared)
    }

    /// An operation that has yet to begin.
    ///
    /// # Errors
    /// As [`check_path`].
    pub fn new(request: Request<H>) -> Result<Self, Error> {
        let Request { mount, path, ask, tuning } = request;
        check_path(path.as_ref())?;
        let (what, follow) = match ask {
            Ask::Attributes(follow) => (What::Attributes(None), follow),
            Ask::Access(bits) => (What::Access(bits), true),
            Ask::FsStat => (What::FsStat(None), true),
            Ask::Link(sink) => (What::Link(Feed::new(sink)), false),
            Ask::List(sink) => {
                let listing = Listing {
                    feed: Feed::new(sink),
                    cookie: 0,
                    verifier: [0; 8],
                    plus: true,
                    part: 0,
                    count: 0,
                    parts: 0,
                    mark: None,
                };
                (What::List(listing), true)
            }
        };
        Ok(Query {
            mount,
            path,
            what,
            seat: Seat::new(tuning.patience()),
            follow,
            found: false,
            retry: None,
            stalled: Instant::ZERO,
            sink_stall: tuning.sink_stall(),
        })
    }

    /// Attributes of what the path names, once they are known and nothing else was asked for.
    pub fn attributes(&self) -> Option<&Attributes> {
        match &self.what {
            What::Attributes(attributes) => attributes.as_ref(),
            _ => None,
        }
    }

    /// How full the file system is, once that is known.
    pub fn fs_stat(&self) -> Option<&FsStat> {
        match &self.what {
            What::FsStat(fs_stat) => fs_stat.as_ref(),
            _ => None,
        }
    }

    fn end(&mut self, result: u64) -> Result<(), Error> {
        self.seat.done = Some(Ok(result));
        Ok(())
    }

    /// Goes from the walk to the question if the file has been reached.
    fn arrive(&mut self, room: &mut Room<'_, '_, H>) -> Result<(), Error> {
        let Some((_, attributes)) = room.job.walk.arrived(self.path.as_ref())? else { return Ok(()) };
        match &mut self.what {
            What::Attributes(known) => {
                *known = Some(attributes);
                return self.end(attributes.size);
            }
            What::Link(_) if attributes.kind != FileType::Symlink => return Err(Error::Invalid),
            What::List(_) if attributes.kind != FileType::Directory => return Err(Error::NotDirectory),
            _ => {}
        }
        self.found = true;
        Ok(())
    }

    /// Decides how much of a directory to ask for at once.
    fn plan(&mut self, room: &mut Room<'_, '_, H>) -> Result<(), Error> {
        let What::List(list) = &mut self.what else { return Ok(()) };
        if list.part == 0 {
            let longest = match self.mount.transport {
                Transport::Tcp => STREAM_ROOM,
                _ => room.net.stack.receive_room(self.mount.server, None, false)?.saturating_sub(udp::HEADER_LEN),
            };
            let longest = longest.saturating_sub(AROUND_PART);
            let likes = if self.mount.dir_preferred >= MIN_PART { self.mount.dir_preferred } else { MAX_PART };
            list.part = likes.min(MAX_PART).min(u32::try_from(longest).unwrap_or(MAX_PART)) & !3;
        }
        if room.job.caller.tries() >= TRIES && list.part > MIN_PART {
            list.part = (list.part / 2).max(MIN_PART) & !3;
            room.job.caller.forget();
        }
        Ok(())
    }

    #[inline(never)]
    fn call<'t>(&'t self, walk: &'t Walk, xid: u32, out: &mut Arguments<'t>) -> Result<(), Error> {
        if !self.found {
            return walk.call(self.path.as_ref(), xid, self.mount.user, out);
        }
        let file = walk.end();
        let args = match &self.what {
            What::Attributes(_) => Args::GetAttr(file),
            What::Access(bits) => Args::Access { file, bits: *bits },
            What::FsStat(_) => Args::FsStat(file),
            What::Link(_) => Args::ReadLink(file),
            What::List(Listing { cookie, verifier, plus: true, part, .. }) => Args::ReadDirPlus {
                dir: file,
                cookie: *cookie,
                verifier: *verifier,
                dir_count: *part,
                max_count: *part,
            },
            What::List(Listing { cookie, verifier, part, .. }) => {
                Args::ReadDir { dir: file, cookie: *cookie, verifier: *verifier, count: *part }
            }
        };
        request(xid, &args, self.mount.user, out)
    }

    /// A reply was fed to the sink: goes on, ends, or waits until the sink takes the rest.
    fn fed(&mut self, room: &mut Room<'_, '_, H>, before: u64, taken: u64, fed: Fed) -> Result<(), Error> {
        let now = room.net.now();
        room.net.progress.done = taken;
        if taken > before || self.retry.is_none() {
            self.stalled = now;
        }
        self.retry = None;
        match fed {
            Fed::More => {}
            Fed::End(count) => return self.end(count),
            Fed::Full if now.since(self.stalled) >= self.sink_stall => return Err(Error::SinkStalled),
            Fed::Full => self.retry = Some(now + SINK_RETRY),
        }
        Ok(())
    }
}

/// What became of a reply for the sink.
enum Fed {
    /// The sink took it, and there is more to ask for.
    More,
    /// The sink took the last, with this result.
    End(u64),
    /// The sink did not take all.
    Full,
}

impl<H: Host> Listing<H> {
    /// Takes a part of a directory.
    ///
    /// # Errors
    /// [`Error::Loop`]: the server goes in a circle; [`Error::Protocol`]: it gives nothing, or names that cannot be; of
    /// the sink.
    fn part(&mut self, list: DirList<'_>) -> Result<Fed, Error> {
        let DirList { eof, last, verifier, .. } = list;
        if !eof {
            let Some(last) = last else { return Err(Error::Protocol) };
            if last == self.cookie || Some(last) == self.mark {
                return Err(Error::Loop);
            }
        }
        self.feed.begin();
        let count = self.records(list)?;
        if !self.feed.end() {
            return Ok(Fed::Full);
        }
        self.count = self.count.saturating_add(count);
        if eof {
            return Ok(Fed::End(self.count));
        }
        self.verifier = verifier;
        self.cookie = last.unwrap_or(self.cookie);
        // Brent: with the mark set anew after 1, 2, 4 … parts, a circle is noticed before it was walked three times.
        self.parts = self.parts.saturating_add(1);
        if self.parts.is_power_of_two() {
            self.mark = Some(self.cookie);
        }
        Ok(Fed::More)
    }

    /// Offers the records of entries to the sink; how many entries those were.
    #[inline(never)]
    fn records(&mut self, mut list: DirList<'_>) -> Result<u64, Error> {
        let (mut entry, mut count) = (Entry::default(), 0u64);
        while list.next_into(&mut entry) {
            if entry.name == b"." || entry.name == b".." {
                continue;
            }
            if entry.name.is_empty() || entry.name.iter().any(|b| matches!(b, 0 | b'/')) {
                return Err(Error::Protocol);
            }
            self.record(&entry)?;
            count = count.saturating_add(1);
        }
        Ok(count)
    }

    #[inline(never)]
    fn record(&mut self, entry: &Entry<'_>) -> Result<(), Error> {
        let attributes = entry.attributes.as_ref();
        let (size, mode, kind) = attributes.map_or((0, 0, 0), |a| (a.size, a.mode, a.kind as u32));
        let modified = attributes.map(|a| a.modified).unwrap_or_default();
        let plain = RECORD.saturating_add(entry.name.len()).saturating_add(1);
        let len = plain.checked_next_multiple_of(8).unwrap_or(plain);
        let words: [&[u8]; 8] = [
            &entry.fileid.to_ne_bytes(),
            &size.to_ne_bytes(),
            &modified.seconds.to_ne_bytes(),
            &modified.nanoseconds.to_ne_bytes(),
            &mode.to_ne_bytes(),
            &kind.to_ne_bytes(),
            &(len as u32).to_ne_bytes(),
            &(entry.name.len() as u32).to_ne_bytes(),
        ];
        let mut head: heapless::Vec<u8, RECORD> = heapless::Vec::new();
        for word in words {
            // As long as all of them together.
            let _ = head.extend_from_slice(word);
        }
        self.feed.put(&head)?;
        self.feed.put(entry.name)?;
        let padding = len.saturating_sub(plain).saturating_add(1);
        self.feed.put([0u8; 8].get(..padding).unwrap_or(&[]))
    }
}

/// What came of a reply: nothing if it was not the one that is waited for; else an error of the call, a status of the
/// server's, or what was done with the results.
type Taken = Option<Result<Outcome<Result<(), Error>>, Error>>;

/// Does something with the results of a reply.
fn then<T>(taken: Option<Result<Outcome<T>, Error>>, work: impl FnOnce(T) -> Result<(), Error>) -> Taken {
    Some(match taken? {
        Ok(Ok(value)) => Ok(Ok(work(value))),
        Ok(Err(status)) => Ok(Err(status)),
        Err(why) => Err(why),
    })
}

// Each kind of reply has a function of its own: the results of one are not to have room in the frame of another.
impl<H: Host> Query<H> {
    #[inline(never)]
    fn take_step(&mut self, room: &mut Room<'_, '_, H>, incoming: &Incoming<'_>) -> Taken {
        let (path, export) = (self.path.as_ref(), self.mount.path.as_ref());
        let JobState { caller, walk, .. } = &mut *room.job;
        let server = self.mount.server;
        let taken = caller.take(&mut room.net, server, incoming.payload, |d| walk.take(path, export, d));
        then(taken, |result| result.and_then(|()| self.arrive(room)))
    }

    #[inline(never)]
    fn take_allowed(&mut self, room: &mut Room<'_, '_, H>, incoming: &Incoming<'_>) -> Taken {
        let caller = &mut room.job.caller;
        let taken = caller.take(&mut room.net, self.mount.server, incoming.payload, |d| {
            Ok(Allowed::parse(d)?.map(|allowed| allowed.bits))
        });
        then(taken, |bits| self.end(u64::from(bits)))
    }

    #[inline(never)]
    fn take_fs_stat(&mut self, room: &mut Room<'_, '_, H>, incoming: &Incoming<'_>) -> Taken {
        let caller = &mut room.job.caller;
        let taken = caller.take(&mut room.net, self.mount.server, incoming.payload, FsStat::parse);
        then(taken, |fs_stat| {
            let available = fs_stat.available_bytes;
            self.what = What::FsStat(Some(fs_stat));
            self.end(available)
        })
    }

    #[inline(never)]
    fn take_link(&mut self, room: &mut Room<'_, '_, H>, incoming: &Incoming<'_>) -> Taken {
        let caller = &mut room.job.caller;
        let taken = caller
            .take(&mut room.net, self.mount.server, incoming.payload, |d| Ok(Link::parse(d)?.map(|link| link.path)));
        then(taken, |path| {
            let What::Link(feed) = &mut self.what else { return Ok(()) };
            let before = feed.taken();
            feed.begin();
            feed.put(path)?;
            let fed = if feed.end() { Fed::End(path.len() as u64) } else { Fed::Full };
            let taken = feed.taken();
            self.fed(room, before, taken, fed)
        })
    }

    #[inline(never)]
    fn take_list(&mut self, room: &mut Room<'_, '_, H>, incoming: &Incoming<'_>, plus: bool) -> Taken {
        let caller = &mut room.job.caller;
        let taken = caller.take(&mut room.net, self.mount.server, incoming.payload, |d| DirList::parse(d, plus));
        then(taken, |part| {
            let What::List(list) = &mut self.what else { return Ok(()) };
            let before = list.feed.taken();
            let fed = list.part(part)?;
            let taken = list.feed.taken();
            self.fed(room, before, taken, fed)
        })
    }

    /// Goes on with READDIR where READDIRPLUS is not known.
    fn without_plus(&mut self) -> bool {
        match &mut self.what {
            What::List(list) if self.found && list.plus && list.parts == 0 => {
                list.plus = false;
                true
            }
            _ => false,
        }
    }
}

impl<H: Host> Work<H> for Query<H> {
    fn seat(&mut self) -> &mut Seat {
        &mut self.seat
    }

    fn endpoint(&self) -> Endpoint {
        self.mount.endpoint()
    }

    fn begin(&mut self, room: &mut Room<'_, '_, H>) {
        room.job.caller.channel.set_stream(self.mount.transport == Transport::Tcp);
        room.job.walk.begin(self.mount.root, self.follow);
    }

    fn step(&mut self, room: &mut Room<'_, '_, H>) -> Result<Instant, Error> {
        if !self.found {
            self.arrive(room)?;
        }
        if let Some(at) = self.retry.filter(|at| room.net.now() < *at) {
            return Ok(at);
        }
        self.plan(room)?;
        let JobState { caller, walk, .. } = &mut *room.job;
        caller.poll(&mut room.net, self.mount.endpoint(), &mut |xid, out| self.call(walk, xid, out))
    }

    fn take(&mut self, room: &mut Room<'_, '_, H>, incoming: &Incoming<'_>) -> Result<(), Error> {
        let taken = match &self.what {
            _ if !self.found => self.take_step(room, incoming),
            // It ends with the walk.
            What::Attributes(_) => None,
            What::Access(_) => self.take_allowed(room, incoming),
            What::FsStat(_) => self.take_fs_stat(room, incoming),
            What::Link(_) => self.take_link(room, incoming),
            What::List(list) => self.take_list(room, incoming, list.plus),
        };
        match taken {
            None => Ok(()),
            Some(Ok(Ok(result))) => result,
            Some(Ok(Err(Status::NOTSUPP)) | Err(Error::NotSupported)) if self.without_plus() => {
                *room.net.detail = Detail::default();
                Ok(())
            }
            Some(Ok(Err(Status::JUKEBOX))) if room.job.caller.put_off(room.net.now()) => Ok(()),
            Some(Ok(Err(status))) => Err(refused(room, self.mount.server, status)),
            Some(Err(why)) => Err(why),
        }
    }
}

impl<H: Host> Operation<H> for Query<H> {
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        super::poll(self, cx)
    }

    fn datagram(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>) {
        super::datagram(self, cx, datagram);
    }

    fn icmp_error(&mut self, cx: &mut Cx<'_, '_, H>, error: &IcmpError) {
        super::icmp_error(self, cx, error);
    }

    fn cancel(&mut self, cx: &mut Cx<'_, '_, H>) {
        self.seat.leave(cx);
    }
}
