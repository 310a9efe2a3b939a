//! Reading a file, whole or in part: the walk to it, then READs in a pipeline. Says where replies land before they are
//! known to be whole, so that fragments go straight to their places (design §2).

use super::dest::Dest;
use super::pipeline::{DEPTH, Limits, Pipeline};
use super::walk::{Walk, request};
use super::{JobState, Mount, Room, Seat, Transport, Tuning, Work, check_path, refused};
use crate::client::engine::Shared;
use crate::client::operation::{Cx, Datagram, Operation, Step};
use crate::client::rpc::channel::{self, Arguments};
use crate::client::rpc::{Incoming, MAX_MALFORMED, Net, REPLY_HEADER, User, note_refusal};
use crate::stack::icmp::IcmpError;
use crate::stack::landing::{Flow, KEPT_HEADER, Place, Spot};
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host, Memory, SinkOf};
use crate::storage::saturating::{add, sub};
use crate::storage::time::{Duration, Instant};
use crate::udp::Meta;
use crate::wire::nfs3::{Args, Attributes, FileType, ReadHead, Status};
use crate::wire::rpc::{Body, Reply};
use crate::wire::udp;
use crate::wire::xdr::padding;
use core::net::Ipv4Addr;

/// Length of what comes before the data in a reply to READ, in bytes: RPC, status, attributes left out, count, end of
/// file, length.
pub const HEADER: usize = REPLY_HEADER + 20;
/// The same with attributes.
pub const HEADER_WITH_ATTRIBUTES: usize = HEADER + Attributes::LEN;
/// Size of READs when none is given: what servers were seen to answer reliably over UDP.
const DEFAULT_SIZE: u32 = 32 * 1024;
/// The same over TCP, and the most that is asked for.
const DEFAULT_STREAM_SIZE: u32 = 64 * 1024;
const MAX_STREAM_SIZE: u32 = 1 << 20;
/// Pieces kept for a sink in order.
const KEPT: usize = 8;
/// How soon a sink that refused is asked again.
const SINK_RETRY: Duration = Duration::from_millis(1);
/// How soon what a sink refused, and nothing keeps, is read again.
const READ_AGAIN: Duration = Duration::from_millis(20);
/// Most calls of a sink that takes little, in one pass.
const SINK_CALLS: u32 = 64;
/// How long a busy server is left alone, and how often.
const BUSY: Duration = Duration::from_millis(300);
const MAX_BUSY: u8 = 100;

/// What to read.
pub struct Request<H: Host> {
    /// The export.
    pub mount: Mount<H::Text>,
    /// Path below its root, at most [`super::MAX_PATH`] bytes.
    pub path: H::Text,
    /// First byte.
    pub offset: u64,
    /// Most bytes; [`u64::MAX`]: all that follow.
    pub len: u64,
    /// Where to.
    pub sink: SinkOf<H>,
    /// Numbers.
    pub tuning: Tuning,
}

/// What came for a sink in order: pieces that the socket's queue keeps until their turn.
#[derive(Debug)]
pub struct Kept {
    /// Offset in the file and length of each.
    pieces: heapless::Deque<(u64, u32), KEPT>,
}

impl Default for Kept {
    fn default() -> Self {
        Self::new()
    }
}

impl Kept {
    /// Nothing.
    pub const fn new() -> Self {
        Kept { pieces: heapless::Deque::new() }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.pieces.clear();
    }
}

/// A sink that has refused.
#[derive(Clone, Copy, Debug)]
struct Refused {
    since: Instant,
    retry: Instant,
    /// What it refused is kept.
    kept: bool,
}

/// The operation; its result is the number of bytes read. Fewer than asked for only where the file ended when it was
/// found; [`Error::Changed`] if it ended earlier than that.
pub struct Get<H: Host> {
    mount: Mount<H::Text>,
    path: H::Text,
    start: u64,
    len: u64,
    dest: Dest<H>,
    tuning: Tuning,
    seat: Seat,
    /// The file was found.
    found: bool,
    /// Offset in the file of what a sink in order takes next.
    delivered: u64,
    /// A piece came ahead of its turn and could not be kept: only what is next is asked for.
    only_next: bool,
    refused: Option<Refused>,
    not_before: Instant,
    busy: u8,
    malformed: u8,
    /// Size of READs when it was last looked at.
    size: u32,
    /// There was nothing to ask for.
    idle: bool,
}

impl<H: Host> Get<H> {
    /// The connection that it waits for.
    #[cfg(feature = "tcp")]
    pub fn connection(&self, shared: &crate::client::engine::Shared<'_>) -> Option<crate::storage::slots::Key> {
        self.seat.connection(shared)
    }

    /// A transfer that has yet to begin.
    ///
    /// # Errors
    /// As [`check_path`].
    pub fn new(request: Request<H>) -> Result<Self, Error> {
        let Request { mount, path, offset, len, sink, tuning } = request;
        check_path(path.as_ref())?;
        Ok(Get {
            mount,
            path,
            start: offset,
            len,
            dest: Dest::new(sink),
            tuning,
            seat: Seat::new(tuning.patience()),
            found: false,
            delivered: offset,
            only_next: false,
            refused: None,
            not_before: Instant::ZERO,
            busy: 0,
            malformed: 0,
            size: 0,
            idle: false,
        })
    }

    /// A file that passes through a ring, whose reader says how far: see [`super::file`]. It ends only with an error.
    ///
    /// # Errors
    /// As [`check_path`].
    pub(super) fn pulled(mount: Mount<H::Text>, path: H::Text, ring: H::Memory, tuning: Tuning) -> Result<Self, Error> {
        let request = Request { mount, path, offset: 0, len: u64::MAX, sink: SinkOf::<H>::Discard, tuning };
        Ok(Get { dest: Dest::Ring { len: ring.len(), memory: ring }, ..Get::new(request)? })
    }

    /// Whether the file was found.
    pub(super) fn is_found(&self) -> bool {
        self.found
    }

    /// The ring, and its bytes that are used.
    pub(super) fn ring(&self) -> Option<(&H::Memory, usize)> {
        match &self.dest {
            Dest::Ring { memory, len } => Some((memory, *len)),
            _ => None,
        }
    }

    /// What it works in.
    pub(super) fn pipeline<'n>(&self, shared: &'n mut Shared<'_>) -> Option<&'n mut Pipeline> {
        let job = shared.nfs.jobs.get_mut(usize::from(self.seat.job?))?;
        Some(&mut job.state.pipeline)
    }

    /// Goes from the walk to the READs if the file has been reached.
    fn arrive(&mut self, room: &mut Room<'_, '_, H>) -> Result<(), Error> {
        let Some((_, attributes)) = room.job.walk.arrived(self.path.as_ref())? else { return Ok(()) };
        match attributes.kind {
            FileType::Regular => {}
            FileType::Directory => return Err(Error::IsDirectory),
            _ => return Err(Error::Invalid),
        }
        let len = sub(attributes.size, self.start).min(self.len);
        room.net.progress.total = Some(len);
        if self.dest.capacity().is_some_and(|capacity| len > capacity) {
            return Err(Error::TooBig);
        }
        let limits = self.limits(room)?;
        room.job.pipeline.begin(self.start, add(self.start, len), &limits);
        self.found = true;
        Ok(())
    }

    /// What sizes and how many READs are possible.
    fn limits(&mut self, room: &mut Room<'_, '_, H>) -> Result<Limits, Error> {
        let around = HEADER_WITH_ATTRIBUTES.saturating_add(udp::HEADER_LEN).saturating_add(4);
        let frame = room.net.stack.path_room(self.mount.server, None)?.saturating_sub(around);
        let lands = self.dest.spot(0).is_some();
        let slots = room.net.stack.landing.capacity();
        let longest = room.net.stack.receive_room(self.mount.server, None, lands)?.saturating_sub(around);
        let longest = u32::try_from(longest).unwrap_or(DEFAULT_SIZE);
        let stream = self.mount.transport == Transport::Tcp;
        let longest = if stream { MAX_STREAM_SIZE } else { longest };
        let usual = if stream { DEFAULT_STREAM_SIZE } else { DEFAULT_SIZE };
        // Eight READs fill a ring.
        let eighth = self.ring().and_then(|(_, len)| (len / 8).checked_ilog2()).unwrap_or(31);
        let usual = usual.min(1u32.unbounded_shl(eighth));
        let asked = if self.tuning.read_size == 0 { usual } else { self.tuning.read_size };
        let asked = asked.min(self.ring().map_or(u32::MAX, |(_, len)| u32::try_from(len / 2).unwrap_or(u32::MAX)));
        let server = if self.mount.read_max == 0 { u32::MAX } else { self.mount.read_max };
        let largest = asked.min(longest).min(server).max(64) & !3;
        // One that needs no fragments.
        let smallest = u32::try_from(frame).ok().and_then(u32::checked_ilog2).map_or(64, |n| 1u32.unbounded_shl(n));
        let smallest = smallest.min(largest).max(64);
        let known = room.job.servers.read_size(self.mount.server).filter(|_| !stream).unwrap_or(largest);
        let depth = if self.tuning.depth == 0 { DEPTH as u16 } else { u16::from(self.tuning.depth) };
        let fragments = largest as usize > frame && !stream;
        let depths = (if fragments { depth.min(slots.max(2) as u16) } else { depth }, depth);
        let small = room.job.caller.rtt.smoothed().unwrap_or(Duration::from_millis(100));
        let initial = small.times(8).max(Duration::from_millis(20)).min(Duration::from_secs(2));
        let mut ring = 0;
        if let Dest::Ring { len, .. } = &mut self.dest {
            // So that most READs end where the ring does.
            *len = len.saturating_sub(len.checked_rem(largest as usize).unwrap_or(0));
            ring = *len as u64;
        }
        Ok(Limits {
            ring,
            size: known.clamp(smallest, largest),
            sizes: (smallest, largest),
            depths,
            initial,
            reliable: stream,
        })
    }

    fn offset_in_sink(&self, offset: u64) -> u64 {
        sub(offset, self.start)
    }

    /// The region that bytes at `offset` of the file belong to, and where in it.
    #[inline]
    fn spot(&self, offset: u64) -> Option<(&H::Memory, usize)> {
        self.dest.spot(self.offset_in_sink(offset))
    }

    fn read(&mut self, room: &mut Room<'_, '_, H>) -> Result<Instant, Error> {
        let now = room.net.now();
        if self.dest.is_ordered() {
            self.drain(room)?;
        }
        let to = self.mount.endpoint();
        let JobState { pipeline, caller, kept, servers, .. } = &mut *room.job;
        let is_ring = matches!(self.dest, Dest::Ring { .. });
        if !is_ring && pipeline.is_complete() && kept.pieces.is_empty() {
            let size = pipeline.size();
            let stream = self.mount.transport == Transport::Tcp;
            if stream {
                // Nothing was learned of what gets through in fragments.
            } else if size != DEFAULT_SIZE || servers.read_size(self.mount.server).is_some() {
                servers.note(self.mount.server, size);
            }
            self.seat.done = Some(Ok(sub(pipeline.end(), self.start)));
            return Ok(now);
        }
        let op = room.net.op;
        let landing = &mut room.net.stack.landing;
        pipeline.expire(now, |read| self.spot(read.offset).is_some_and(|(_, at)| landing.is_claimed(op, at)));
        if is_ring && pipeline.size() != self.size {
            // Pieces of longer replies would reach into places that others will have.
            landing.end_claims(op);
            self.size = pipeline.size();
        }
        if is_ring && pipeline.in_flight() == 0 && !pipeline.is_due() {
            self.idle = true;
            return Ok(Instant::NEVER);
        }
        if core::mem::take(&mut self.idle) {
            // A server that is not asked is not silent.
            caller.silence.begin(now);
        }
        let held_back = match self.refused {
            Some(refused) if now < refused.retry || refused.kept => Some(refused.retry),
            _ => Some(self.not_before).filter(|at| now < *at),
        };
        if held_back.is_some() && pipeline.in_flight() == 0 {
            // A server that is not asked is not silent.
            caller.silence.begin(now);
        }
        let mut next = caller.silence.check(now)?;
        if let Some(at) = held_back {
            return Ok(next.min(at).min(pipeline.deadline()));
        }
        let (ready, again) = caller.ready(&mut room.net, to, pipeline.in_flight() > 0)?;
        next = next.min(again);
        if !ready {
            return Ok(next);
        }
        pipeline.on_line(caller.channel.number());
        self.send(room, next)
    }

    /// Sends what may be in flight; when to ask next, `next` at latest.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn send(&mut self, room: &mut Room<'_, '_, H>, mut next: Instant) -> Result<Instant, Error> {
        let (now, to) = (room.net.now(), self.mount.endpoint());
        let JobState { pipeline, caller, walk, .. } = &mut *room.job;
        let only = self.only_next.then_some(self.delivered);
        let mut call = Arguments::new();
        // Each turn sends one, and there are no more.
        for _ in 0..DEPTH {
            if pipeline.in_flight() >= pipeline.window() {
                break;
            }
            let Some((index, read)) = pipeline.pick(only) else { break };
            let xid = if read.tries > 0 { read.xid } else { fresh(&mut room.net, pipeline) };
            ask(xid, walk, (read.offset, read.asked), self.mount.user, &mut call)?;
            let tries = read.tries;
            let result = caller.channel.send(&mut room.net, to, &call);
            if let Some(again) = caller.silence.sent(now, result)? {
                next = next.min(again);
                break;
            }
            if tries > 0 {
                room.net.stack.stats.count(Counter::RpcRetransmit);
            }
            pipeline.sent(index, xid, now);
        }
        Ok(next.min(pipeline.deadline()))
    }

    /// Offers what is kept to a sink in order.
    fn drain(&mut self, room: &mut Room<'_, '_, H>) -> Result<(), Error> {
        let now = room.net.now();
        let Some(socket) = room.job.caller.channel.socket() else { return Ok(()) };
        if self.refused.is_some_and(|r| now < r.retry) {
            return Ok(());
        }
        // Each turn takes bytes off the queue, or ends.
        for _ in 0..SINK_CALLS {
            let Some((offset, len)) = room.job.kept.pieces.front().copied() else { break };
            if offset > self.delivered {
                break;
            }
            let skip = usize::try_from(sub(self.delivered, offset)).unwrap_or(usize::MAX);
            let end = offset.wrapping_add(u64::from(len));
            let Some((front, back)) = room.net.udp.front(socket) else { break };
            let part = match front.get(skip..) {
                Some(part) if !part.is_empty() => part,
                _ => back.get(skip.saturating_sub(front.len())..).unwrap_or(&[]),
            };
            let offered = part.len();
            let count = self.dest.put(self.offset_in_sink(self.delivered), part)?;
            self.advance(room, count);
            if self.delivered >= end {
                room.net.udp.drop_front(socket);
                room.job.kept.pieces.pop_front();
            } else if count < offered {
                return self.refuse(now, count > 0, true);
            }
        }
        if room.job.kept.pieces.front().is_none_or(|(offset, _)| *offset > self.delivered)
            && self.refused.is_some_and(|r| r.kept)
        {
            self.refused = None;
        }
        Ok(())
    }

    fn advance(&mut self, room: &mut Room<'_, '_, H>, count: usize) {
        self.delivered = self.delivered.wrapping_add(count as u64);
        room.net.progress.done = self.offset_in_sink(self.delivered);
        if count > 0 {
            self.only_next = false;
        }
    }

    /// The sink has not taken all that it was offered.
    fn refuse(&mut self, now: Instant, some: bool, kept: bool) -> Result<(), Error> {
        let since = self.refused.filter(|_| !some).map_or(now, |r| r.since);
        if now.since(since) >= self.tuning.sink_stall() {
            return Err(Error::SinkStalled);
        }
        let retry = now + if kept { SINK_RETRY } else { READ_AGAIN };
        self.refused = Some(Refused { since, retry, kept });
        Ok(())
    }

    /// Leads data that did not land to the sink; says how much of it is taken or kept.
    fn put(
        &mut self,
        room: &mut Room<'_, '_, H>,
        meta: Option<&Meta>,
        offset: u64,
        data: &[u8],
    ) -> Result<usize, Error> {
        let at = self.offset_in_sink(offset);
        if !self.dest.is_ordered() {
            return self.dest.put(at, data);
        }
        let mut taken = 0;
        if offset == self.delivered && self.refused.is_none_or(|r| !r.kept) {
            taken = self.dest.put(at, data)?;
            self.advance(room, taken);
            if taken == data.len() {
                self.refused = None;
                return Ok(taken);
            }
        }
        let rest = data.get(taken..).unwrap_or(&[]);
        let from = offset.wrapping_add(taken as u64);
        let JobState { pipeline, caller, kept: Kept { pieces }, .. } = &mut *room.job;
        let in_turn = pieces.back().is_none_or(|(offset, len)| offset.wrapping_add(u64::from(*len)) <= from);
        let socket = caller.channel.socket();
        let kept = in_turn
            && !pieces.is_full()
            && socket.zip(meta).is_some_and(|(socket, meta)| room.net.udp.enqueue(socket, *meta, rest));
        if kept {
            // There is room.
            let _ = pieces.push_back((from, rest.len() as u32));
        }
        if from == self.delivered {
            if !kept {
                // From now on no more at once than could be kept.
                let room = socket.and_then(|socket| room.net.udp.queue_room(socket)).unwrap_or(0);
                pipeline.limit(u32::try_from(room).unwrap_or(u32::MAX));
            }
            self.refuse(room.net.now(), taken > 0, kept)?;
        } else if !kept {
            self.only_next = true;
        }
        Ok(if kept { data.len() } else { taken })
    }

    /// A reply to a READ.
    fn read_reply(&mut self, room: &mut Room<'_, '_, H>, incoming: &Incoming<'_>) -> Result<(), Error> {
        let Some(reply) = channel::parse(&mut room.net, incoming.payload) else { return Ok(()) };
        let xid = match &reply {
            Ok(reply) => reply.xid,
            Err(xid) => *xid,
        };
        let Some((index, read)) = room.job.pipeline.find(xid).map(|(index, read)| (index, *read)) else {
            room.net.stack.stats.count(Counter::DropRpcStale);
            return Ok(());
        };
        let Ok(Reply { body, .. }) = reply else { return self.is_malformed(room, index) };
        let Body::Success(mut d) = body else {
            return Err(note_refusal(room.net.detail, self.mount.server, &body).unwrap_or(Error::Protocol));
        };
        let head = match ReadHead::parse(&mut d, read.asked) {
            Err(_) => return self.is_malformed(room, index),
            Ok(Err(Status::JUKEBOX)) => return self.is_busy(room, index),
            Ok(Err(status)) => return Err(refused(room, self.mount.server, status)),
            Ok(Ok(head)) => head,
        };
        let (header, len) = (d.position(), head.len as usize);
        if incoming.len < header.saturating_add(len).saturating_add(padding(len)) {
            return self.is_malformed(room, index);
        }
        let count = match incoming.landed {
            Some(landed) if landed.len == len => len,
            Some(_) => return self.is_malformed(room, index),
            None => match d.rest().get(..len) {
                None => return self.is_malformed(room, index),
                Some(data) => self.put(room, incoming.meta.as_ref(), read.offset, data)?,
            },
        };
        self.came(room, index, len, count, header, head.eof)
    }

    /// READ `index` brought `len` bytes behind a header of `header`, of which `count` are where they belong.
    fn came(
        &mut self,
        room: &mut Room<'_, '_, H>,
        index: usize,
        len: usize,
        count: usize,
        header: usize,
        eof: bool,
    ) -> Result<(), Error> {
        self.malformed = 0;
        self.busy = 0;
        let now = room.net.now();
        room.job.caller.silence.broken(now);
        room.job.caller.channel.heard();
        if !self.dest.is_ordered() {
            room.net.progress.done = room.net.progress.done.wrapping_add(count as u64);
        }
        if count == 0 && len > 0 {
            room.job.pipeline.again(index, now);
            return Ok(());
        }
        let left = room.job.pipeline.answered(index, count as u32, header, now);
        // RFC 1813 §3.3.6: the file is shorter than it was when it was found, or the server gives nothing and does not
        // say that there is no more.
        match (eof, len) {
            _ if left == 0 || count < len => Ok(()),
            (true, _) => Err(Error::Changed),
            (false, 0) => Err(Error::Protocol),
            _ => Ok(()),
        }
    }

    fn is_busy(&mut self, room: &mut Room<'_, '_, H>, index: usize) -> Result<(), Error> {
        let now = room.net.now();
        room.job.caller.silence.broken(now);
        self.busy = self.busy.saturating_add(1);
        if self.busy > MAX_BUSY {
            return Err(refused(room, self.mount.server, Status::JUKEBOX));
        }
        room.job.pipeline.again(index, now);
        self.not_before = now + BUSY;
        Ok(())
    }

    /// A reply that is impossible is discarded; its READ still waits, or is sent again.
    fn is_malformed(&mut self, room: &mut Room<'_, '_, H>, index: usize) -> Result<(), Error> {
        room.net.stack.stats.count(Counter::DropRpcMalformed);
        self.malformed = self.malformed.saturating_add(1);
        room.job.caller.silence.trouble = Some(Error::Protocol);
        if room.job.caller.channel.is_stream() {
            // No timer will repeat the call.
            room.job.pipeline.again(index, room.net.now());
        }
        if self.malformed >= MAX_MALFORMED { Err(Error::Protocol) } else { Ok(()) }
    }

    fn walk_reply(&mut self, room: &mut Room<'_, '_, H>, incoming: &Incoming<'_>) -> Result<(), Error> {
        let (path, export) = (self.path.as_ref(), self.mount.path.as_ref());
        let JobState { caller, walk, .. } = &mut *room.job;
        match caller.take(&mut room.net, self.mount.server, incoming.payload, |d| walk.take(path, export, d)) {
            None => Ok(()),
            Some(Ok(Ok(result))) => result.and_then(|()| self.arrive(room)),
            Some(Ok(Err(Status::JUKEBOX))) if room.job.caller.put_off(room.net.now()) => Ok(()),
            Some(Ok(Err(status))) => Err(refused(room, self.mount.server, status)),
            Some(Err(why)) => Err(why),
        }
    }
}

/// What the front of a reply over TCP is.
#[cfg(feature = "tcp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Not to be told yet.
    More,
    /// Of a reply that is to be gathered whole.
    Whole,
    /// Of one that nobody waits for.
    Skip,
    /// Of one that is impossible, to this transaction.
    Bad(u32),
    /// Of a READ, complete: data follows it.
    Data {
        /// Transaction.
        xid: u32,
        /// Length of the header.
        header: usize,
        /// Offset of the data in the file.
        offset: u64,
        /// Length of the data.
        len: u32,
        /// The file ends there.
        eof: bool,
    },
}

#[cfg(feature = "tcp")]
impl Head {
    /// Of the front of a reply to one of the READs in `pipeline`.
    pub fn of(pipeline: &Pipeline, front: &[u8]) -> Head {
        use crate::wire::Error::Truncated;
        let Some(xid) = front.first_chunk::<4>().map(|xid| u32::from_be_bytes(*xid)) else { return Head::More };
        let Some((_, read)) = pipeline.find(xid) else { return Head::Skip };
        let mut d = match Reply::parse(front) {
            Ok(Reply { body: Body::Success(d), .. }) => d,
            Ok(_) => return Head::Whole,
            Err(Truncated) => return Head::More,
            Err(_) => return Head::Bad(xid),
        };
        match ReadHead::parse(&mut d, read.asked) {
            Ok(Ok(head)) => Head::Data { xid, header: d.position(), offset: read.offset, len: head.len, eof: head.eof },
            Ok(Err(_)) => Head::Whole,
            Err(Truncated) => Head::More,
            Err(_) => Head::Bad(xid),
        }
    }
}

/// Makes a READ of these bytes (offset and count).
#[inline(never)]
fn ask(xid: u32, walk: &Walk, (offset, count): (u64, u32), user: User, call: &mut Arguments<'_>) -> Result<(), Error> {
    request(xid, &Args::Read { file: walk.end(), offset, count }, user, call)
}

/// A transaction number that no READ in flight has.
fn fresh<H: Host>(net: &mut Net<'_, '_, H>, pipeline: &Pipeline) -> u32 {
    let mut xid = net.random();
    for _ in 0..DEPTH {
        if pipeline.find(xid).is_none() {
            break;
        }
        xid = xid.wrapping_add(1);
    }
    xid
}

impl<H: Host> Work<H> for Get<H> {
    #[cfg(feature = "tcp")]
    const READS: bool = true;

    fn seat(&mut self) -> &mut Seat {
        &mut self.seat
    }

    fn endpoint(&self) -> Endpoint {
        self.mount.endpoint()
    }

    fn begin(&mut self, room: &mut Room<'_, '_, H>) {
        room.job.caller.channel.set_stream(self.mount.transport == Transport::Tcp);
        room.job.walk.begin(self.mount.root, true);
    }

    fn step(&mut self, room: &mut Room<'_, '_, H>) -> Result<Instant, Error> {
        if !self.found {
            self.arrive(room)?;
        }
        if self.found {
            return self.read(room);
        }
        let (path, user) = (self.path.as_ref(), self.mount.user);
        let JobState { caller, walk, .. } = &mut *room.job;
        caller.poll(&mut room.net, self.mount.endpoint(), &mut |xid, out| walk.call(path, xid, user, out))
    }

    fn take(&mut self, room: &mut Room<'_, '_, H>, incoming: &Incoming<'_>) -> Result<(), Error> {
        if self.found { self.read_reply(room, incoming) } else { self.walk_reply(room, incoming) }
    }

    #[cfg(feature = "tcp")]
    fn head(&self, job: &JobState, front: &[u8]) -> Head {
        if self.found { Head::of(&job.pipeline, front) } else { Head::Whole }
    }

    #[cfg(feature = "tcp")]
    fn place_data(&self, offset: u64, _: u32) -> Option<Option<(H::Memory, usize)>> {
        if let Some((memory, at)) = self.spot(offset) {
            return Some(Some((memory.clone(), at)));
        }
        match &self.dest {
            // What comes ahead of its turn has no place.
            Dest::Writer(_) if offset > self.delivered => None,
            _ => Some(None),
        }
    }

    #[cfg(feature = "tcp")]
    fn put_data(&mut self, offset: u64, bytes: &[u8]) -> Result<usize, Error> {
        if !self.dest.is_ordered() {
            return self.dest.put(self.offset_in_sink(offset), bytes);
        }
        // What was taken of a record that broke off comes again.
        let skip = sub(self.delivered, offset).min(bytes.len() as u64);
        let rest = bytes.get(skip as usize..).unwrap_or(&[]);
        let count = self.dest.put(self.offset_in_sink(self.delivered), rest)?;
        self.delivered = self.delivered.wrapping_add(count as u64);
        Ok(count.saturating_add(skip as usize))
    }

    #[cfg(feature = "tcp")]
    fn data_put(&mut self, room: &mut Room<'_, '_, H>, count: usize, refused: bool) -> Result<(), Error> {
        if !self.dest.is_ordered() {
            return Ok(());
        }
        // `put_data` has counted it.
        self.advance(room, 0);
        self.only_next &= count == 0;
        if refused {
            // The connection keeps what the sink did not take, and holds the server back.
            return self.refuse(room.net.now(), count > 0, true);
        }
        self.refused = None;
        Ok(())
    }

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
        let Some((index, _)) = room.job.pipeline.find(xid) else { return Ok(()) };
        if count == 0 && len > 0 {
            self.only_next = self.dest.is_ordered();
        }
        self.came(room, index, len as usize, count as usize, header, eof)
    }

    #[cfg(feature = "tcp")]
    fn bad(&mut self, room: &mut Room<'_, '_, H>, xid: u32) -> Result<(), Error> {
        match room.job.pipeline.find(xid) {
            Some((index, _)) => self.is_malformed(room, index),
            None => Ok(()),
        }
    }
}

impl<H: Host> Operation<H> for Get<H> {
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        super::poll(self, cx)
    }

    #[inline]
    fn place(&self, shared: &Shared<'_>, flow: &Flow, head: &[u8], len: usize) -> Place<H::Memory> {
        let (true, Some(job)) = (self.found, self.seat.job(shared)) else { return Place::Stage };
        let to = self.mount.endpoint();
        if (flow.src, flow.src_port) != (to.addr, to.port) {
            return Place::NotMine;
        }
        let Some(xid) = head.first_chunk::<4>() else { return Place::Stage };
        let Some((_, read)) = job.pipeline.find(u32::from_be_bytes(*xid)) else { return Place::NotMine };
        let Some((memory, at)) = self.spot(read.offset) else { return Place::Stage };
        let Ok(Reply { body: Body::Success(mut d), .. }) = Reply::parse(head) else { return Place::Stage };
        let Ok(Ok(result)) = ReadHead::parse(&mut d, read.asked) else { return Place::Stage };
        let (header, count) = (d.position(), result.len as usize);
        if header > KEPT_HEADER || len < header.saturating_add(count).saturating_add(padding(count)) {
            return Place::Stage;
        }
        Place::Region(Spot { memory: memory.clone(), at, len: count, header })
    }

    fn guess(&self, shared: &Shared<'_>, src: Ipv4Addr, nth: usize) -> Option<Spot<H::Memory>> {
        let (true, Some(job)) = (self.found, self.seat.job(shared)) else { return None };
        let read = job.pipeline.nth(nth).filter(|_| src == self.mount.server)?;
        let (memory, at) = self.spot(read.offset)?;
        Some(Spot { memory: memory.clone(), at, len: read.asked as usize, header: job.pipeline.header() })
    }

    fn patience(&self, shared: &Shared<'_>) -> Duration {
        self.seat.job(shared).map_or(Duration::from_secs(1), |job| job.pipeline.patience())
    }

    #[inline]
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
