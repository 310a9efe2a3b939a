//! NFS version 3 (RFC 1813): `attach` finds the programs of a server and the handle of an export, `query` asks about
//! files and lists directories, `get` reads them, `file` reads one in pieces. `walk` goes from a path to a handle, `pipeline` keeps several READs in
//! flight, `feed` and `dest` lead what comes to its sink, `status` says what the server's codes mean.
//!
//! A mount is a value that the host holds, not a state of the stack: handles outlive operations, and servers that
//! restart keep them. What outlives an operation here is only which size of READ worked, in its [`Job`].

pub mod attach;
mod dest;
mod feed;
pub mod file;
pub mod get;
mod pipeline;
pub mod query;
pub mod status;
#[cfg(feature = "tcp")]
mod stream;
mod walk;

#[cfg(test)]
mod tests;

use crate::client::engine;
use crate::client::operation::{Cx, Datagram, Step};
use crate::client::rpc::caller::Caller;
use crate::client::rpc::{DEFAULT_PATIENCE, Incoming, Net, User};
use crate::stack::icmp::IcmpError;
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host};
#[cfg(feature = "tcp")]
use crate::storage::slots::Key;
use crate::storage::time::{Duration, Instant};
use crate::wire::nfs3::{FileHandle, Status};
use core::net::Ipv4Addr;
use get::Kept;
use pipeline::Pipeline;
use walk::Walk;

pub use attach::Attach;
pub use file::File;
pub use get::Get;
pub use query::Query;
pub use walk::{MAX_LINKS, MAX_PATH};

/// How calls travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Whatever the server offers.
    #[default]
    Auto,
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
}

/// An export of a server: everything that operations on its files need. It is a value of the host's, valid until the
/// server no longer knows its handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mount<T> {
    /// The server.
    pub server: Ipv4Addr,
    /// How calls travel: never [`Transport::Auto`].
    pub transport: Transport,
    /// Port of the NFS program.
    pub nfs_port: u16,
    /// Port of the MOUNT program; 0: not known.
    pub mount_port: u16,
    /// As whom calls are made.
    pub user: User,
    /// Handle of the export.
    pub root: FileHandle,
    /// Most bytes of a READ the server gives; 0: not known.
    pub read_max: u32,
    /// Most bytes of a READDIR the server likes to give; 0: not known.
    pub dir_preferred: u32,
    /// Path of the export at the server. What it names must stay as long as the mount is used.
    pub path: T,
}

impl<T> Mount<T> {
    /// Where NFS calls go.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint { addr: self.server, port: self.nfs_port }
    }
}

/// Numbers of an operation; 0 means: the best that works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// How long the server may say nothing.
    pub timeout: Duration,
    /// Bytes of a READ.
    pub read_size: u32,
    /// READs in flight at once.
    pub depth: u8,
    /// How long a sink may take nothing.
    pub sink_stall: Duration,
}

impl Tuning {
    fn patience(&self) -> Duration {
        if self.timeout == Duration::ZERO { DEFAULT_PATIENCE } else { self.timeout }
    }

    fn sink_stall(&self) -> Duration {
        if self.sink_stall == Duration::ZERO { Duration::from_secs(120) } else { self.sink_stall }
    }
}

/// What worked with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    addr: Ipv4Addr,
    read_size: u32,
}

/// What an operation works in while it runs: more than operations of other protocols need, so that it has a place of
/// its own, of which there are fewer.
#[derive(Debug)]
pub struct Job {
    taken: bool,
    state: JobState,
    #[cfg(feature = "tcp")]
    intake: stream::Intake,
}

/// What an operation is at.
#[derive(Debug)]
struct JobState {
    /// One call at a time.
    caller: Caller,
    walk: Walk,
    pipeline: Pipeline,
    kept: Kept,
    servers: Servers,
}

impl Job {
    /// A free place.
    pub const fn new() -> Self {
        Job {
            taken: false,
            state: JobState {
                caller: Caller::new(DEFAULT_PATIENCE),
                walk: Walk::new(),
                pipeline: Pipeline::new(),
                kept: Kept::new(),
                servers: Servers::new(),
            },
            #[cfg(feature = "tcp")]
            intake: stream::Intake::new(),
        }
    }
}

impl Default for Job {
    fn default() -> Self {
        Self::new()
    }
}

/// What worked with the servers that a job was used with last.
#[derive(Debug)]
struct Servers {
    /// The one noted last comes first.
    known: [Option<Known>; 2],
}

impl Servers {
    const fn new() -> Self {
        Servers { known: [None; 2] }
    }

    /// The size of READ that worked with `addr`.
    fn read_size(&self, addr: Ipv4Addr) -> Option<u32> {
        self.known.iter().flatten().find(|k| k.addr == addr).map(|k| k.read_size)
    }

    /// Remembers what worked, in place of what was remembered longest.
    fn note(&mut self, addr: Ipv4Addr, read_size: u32) {
        let [last, before] = &mut self.known;
        if last.is_some_and(|last| last.addr != addr) {
            *before = *last;
        }
        *last = Some(Known { addr, read_size });
    }
}

/// What NFS keeps beside its operations: what they work in.
#[derive(Debug)]
pub struct Shared<'a> {
    jobs: &'a mut [Job],
}

impl<'a> Shared<'a> {
    /// As many operations can run as there are jobs, at most 255.
    pub fn new(jobs: &'a mut [Job]) -> Self {
        Shared { jobs }
    }
}

/// What an operation has at hand while it is called.
struct Room<'n, 'a, H: Host> {
    net: Net<'n, 'a, H>,
    job: &'n mut JobState,
}

/// The job that an operation has taken, and what came of it.
#[derive(Debug)]
struct Seat {
    job: Option<u8>,
    patience: Duration,
    done: Option<Result<u64, Error>>,
}

impl Seat {
    fn new(patience: Duration) -> Self {
        Seat { job: None, patience, done: None }
    }

    /// The job, if one is taken.
    fn job<'s>(&self, shared: &'s engine::Shared<'_>) -> Option<&'s JobState> {
        shared.nfs.jobs.get(usize::from(self.job?)).map(|job| &job.state)
    }

    /// The connection that the operation waits for.
    #[cfg(feature = "tcp")]
    fn connection(&self, shared: &engine::Shared<'_>) -> Option<Key> {
        self.job(shared).and_then(|job| job.caller.channel.connecting())
    }

    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn room<'n, 'a, H: Host>(&self, cx: &'n mut Cx<'_, 'a, H>) -> Option<Room<'n, 'a, H>> {
        let (net, shared) = Net::split(cx);
        let job = shared.nfs.jobs.get_mut(usize::from(self.job?))?;
        Some(Room { net, job: &mut job.state })
    }

    /// Takes a free job.
    fn sit<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>) -> Result<(), Error> {
        let free = cx.shared.nfs.jobs.iter_mut().zip(0u8..).find(|(job, _)| !job.taken);
        let (job, index) = free.ok_or(Error::NoSlot)?;
        job.taken = true;
        job.state.caller = Caller::new(self.patience);
        job.state.kept.clear();
        #[cfg(feature = "tcp")]
        {
            // The operation before may have ended in the middle of a record.
            job.intake.rewind(0);
        }
        self.job = Some(index);
        Ok(())
    }

    fn leave<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>) {
        #[cfg(feature = "tcp")]
        if let Some(Room { mut net, job }) = self.room(cx) {
            job.caller.channel.close(&mut net);
        }
        if let Some(index) = self.job.take()
            && let Some(job) = cx.shared.nfs.jobs.get_mut(usize::from(index))
        {
            job.taken = false;
        }
    }
}

/// An operation that works in a job.
trait Work<H: Host> {
    /// Whether it reads files: over TCP, data goes straight to its sink.
    #[cfg(feature = "tcp")]
    const READS: bool = false;
    /// Its job and result.
    fn seat(&mut self) -> &mut Seat;
    /// Where the calls go that wait for replies now.
    fn endpoint(&self) -> Endpoint;
    /// A job has been taken.
    fn begin(&mut self, room: &mut Room<'_, '_, H>);
    /// Does what is due; when to ask next. The end is noted in the seat.
    fn step(&mut self, room: &mut Room<'_, '_, H>) -> Result<Instant, Error>;
    /// Takes a reply that has come whole.
    fn take(&mut self, room: &mut Room<'_, '_, H>, incoming: &Incoming<'_>) -> Result<(), Error>;
    /// What the front of a reply over TCP is.
    #[cfg(feature = "tcp")]
    fn head(&self, job: &JobState, front: &[u8]) -> get::Head {
        let _ = (job, front);
        get::Head::Whole
    }
    /// Where `len` bytes of data from `offset` of the file on go: a region, or `put_data` (`None` within). `None`:
    /// nowhere, they are to be passed over.
    #[cfg(feature = "tcp")]
    fn place_data(&self, offset: u64, len: u32) -> Option<Option<(H::Memory, usize)>> {
        let _ = (offset, len);
        None
    }
    /// Takes data; how many bytes.
    #[cfg(feature = "tcp")]
    fn put_data(&mut self, offset: u64, bytes: &[u8]) -> Result<usize, Error> {
        let _ = offset;
        Ok(bytes.len())
    }
    /// `put_data` took `count` bytes; `refused`: not all.
    #[cfg(feature = "tcp")]
    fn data_put(&mut self, room: &mut Room<'_, '_, H>, count: usize, refused: bool) -> Result<(), Error> {
        let _ = (room, count, refused);
        Ok(())
    }
    /// The data of a reply has come to its end: `len` bytes, of which `count` are where they belong.
    #[cfg(feature = "tcp")]
    fn data_done(
        &mut self,
        room: &mut Room<'_, '_, H>,
        xid: u32,
        len: u32,
        count: u32,
        header: usize,
        eof: bool,
    ) -> Result<(), Error> {
        let _ = (room, xid, len, count, header, eof);
        Ok(())
    }
    /// The reply to transaction `xid` is impossible.
    #[cfg(feature = "tcp")]
    fn bad(&mut self, room: &mut Room<'_, '_, H>, xid: u32) -> Result<(), Error> {
        let _ = (room, xid);
        Ok(())
    }
    /// Whether there is another way after `why`.
    fn recover(&mut self, room: &mut Room<'_, '_, H>, why: Error) -> bool {
        let _ = (room, why);
        false
    }
}

/// [`Operation::poll`] of an operation that works in a job.
fn poll<H: Host>(work: &mut impl Work<H>, cx: &mut Cx<'_, '_, H>) -> Step {
    if work.seat().done.is_none() && work.seat().job.is_none() {
        begin(work, cx);
    }
    #[cfg(feature = "tcp")]
    if let Err(why) = stream::pump(work, cx) {
        fail(work, cx, why);
    }
    let next = steps(work, cx);
    match work.seat().done {
        Some(result) => {
            work.seat().leave(cx);
            Step::Done(result)
        }
        None => Step::Pending(next),
    }
}

/// Takes a job. Out of line as what follows: what is done once is not to have room in the frame of what is done each time.
#[cfg_attr(target_pointer_width = "32", inline(never))]
fn begin<H: Host>(work: &mut impl Work<H>, cx: &mut Cx<'_, '_, H>) {
    match work.seat().sit(cx) {
        Ok(()) => {
            if let Some(mut room) = work.seat().room(cx) {
                work.begin(&mut room);
            }
        }
        Err(why) => work.seat().done = Some(Err(why)),
    }
}

/// Does what is due; when to ask next.
#[cfg_attr(target_pointer_width = "32", inline(never))]
fn steps<H: Host>(work: &mut impl Work<H>, cx: &mut Cx<'_, '_, H>) -> Instant {
    let mut next = Instant::NEVER;
    // Twice where there is another way.
    for _ in 0..2 {
        let Some(mut room) = work.seat().room(cx) else { break };
        if work.seat().done.is_some() {
            break;
        }
        match work.step(&mut room) {
            Ok(at) => {
                next = at;
                break;
            }
            Err(why) if work.recover(&mut room, why) => next = room.net.now(),
            Err(why) => work.seat().done = Some(Err(why)),
        }
    }
    next
}

/// Ends an operation with an error, unless there is another way.
#[cfg_attr(target_pointer_width = "32", inline(never))]
fn fail<H: Host>(work: &mut impl Work<H>, cx: &mut Cx<'_, '_, H>, why: Error) {
    let Some(mut room) = work.seat().room(cx) else { return };
    if !work.recover(&mut room, why) {
        work.seat().done = Some(Err(why));
    }
}

/// [`Operation::datagram`] of an operation that works in a job.
fn datagram<H: Host>(work: &mut impl Work<H>, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>) {
    let from = work.endpoint();
    let Some(mut room) = work.seat().room(cx) else { return };
    if work.seat().done.is_some() {
        return;
    }
    if !room.job.caller.channel.accepts(from, datagram) {
        room.net.stack.stats.count(Counter::DropRpcStale);
        return;
    }
    let Datagram { payload, len, landed, meta, .. } = *datagram;
    if let Err(why) = work.take(&mut room, &Incoming { payload, len, landed, meta: Some(meta) }) {
        fail(work, cx, why);
    }
}

/// [`Operation::icmp_error`] of an operation that works in a job.
fn icmp_error<H: Host>(work: &mut impl Work<H>, cx: &mut Cx<'_, '_, H>, error: &IcmpError) {
    let to = work.endpoint();
    let Some(Room { net: mut n, job }) = work.seat().room(cx) else { return };
    let Some(why) = job.caller.silence.icmp(&mut n, to, error) else { return };
    fail(work, cx, why);
}

/// Notes a status as the operation's detail; returns the error that it means.
#[inline(never)]
fn refused<H: Host>(room: &mut Room<'_, '_, H>, from: Ipv4Addr, status: Status) -> Error {
    status::note(room.net.detail, from, status)
}

/// Whether a path is one that can be walked, before anything is sent.
///
/// # Errors
/// [`Error::NameTooLong`]: longer than [`MAX_PATH`], or with a component longer than 255 bytes.
pub fn check_path(path: &[u8]) -> Result<(), Error> {
    let long = |component: &[u8]| component.len() > crate::wire::nfs3::MAX_NAME;
    if path.len() > MAX_PATH || path.split(|b| *b == b'/').any(long) { Err(Error::NameTooLong) } else { Ok(()) }
}
