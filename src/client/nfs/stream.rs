//! Replies over TCP: records are led to the operation whole, but for the data of READs, which goes straight to its sink.

use super::get::Head;
use super::{Job, JobState, Room, Work};
use crate::client::operation::Cx;
use crate::client::rpc::tape::{Pulled, ROOM, Tape};
use crate::client::rpc::{Incoming, Net, REPLY_HEADER};
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::{Host, Memory};
use crate::storage::slots::Key;

/// Steps in one call.
const TURNS: u32 = 256;
/// Bytes gathered at first of a reply that may be one to a READ: as many as the shortest header has.
const FIRST: usize = REPLY_HEADER + 20;

/// The data of a READ that is being led to its sink.
#[derive(Clone, Copy, Debug)]
struct Data {
    xid: u32,
    header: usize,
    eof: bool,
    /// Offset in the file of the next byte.
    offset: u64,
    /// Bytes of data in all, and still to come.
    len: u32,
    left: u32,
    /// It has no place: it is passed over.
    lost: bool,
    /// Bytes of it that a region was queued for; 0: none is.
    queued: usize,
}

impl Data {
    /// So many bytes more have come.
    fn took(&mut self, count: usize) {
        self.offset = self.offset.wrapping_add(count as u64);
        self.left = self.left.saturating_sub(count as u32);
    }
}

/// What a job's connection is at.
#[derive(Debug)]
pub struct Intake {
    tape: Tape,
    /// Bytes of the front that are wanted.
    want: usize,
    data: Option<Data>,
    /// What is left of the record is passed over.
    skip: bool,
    /// Number of the connection.
    line: u16,
}

impl Intake {
    /// Nothing has come.
    pub const fn new() -> Self {
        Intake { tape: Tape::new(), want: FIRST, data: None, skip: false, line: 0 }
    }

    /// Begins anew, on connection number `line`; 0: none yet.
    pub fn rewind(&mut self, line: u16) {
        self.line = line;
        self.data = None;
        self.tape.rewind();
        self.next();
    }

    /// Has all of a record gathered.
    ///
    /// # Errors
    /// [`Error::MessageSize`]: it is longer than anything that was asked for.
    fn gather(&mut self) -> Result<Go, Error> {
        if self.want >= ROOM {
            return Err(Error::MessageSize);
        }
        self.want = ROOM;
        Ok(Go::On)
    }

    /// The record has been dealt with.
    fn next(&mut self) {
        self.tape.next();
        self.want = FIRST;
        self.skip = false;
    }
}

impl Default for Intake {
    fn default() -> Self {
        Self::new()
    }
}

/// Takes what has come over the connection of `work`'s job.
///
/// # Errors
/// What ends the operation.
#[cfg_attr(target_pointer_width = "32", inline(never))]
pub fn pump<H: Host, W: Work<H>>(work: &mut W, cx: &mut Cx<'_, '_, H>) -> Result<(), Error> {
    let Some(index) = work.seat().job else { return Ok(()) };
    let (mut net, shared) = Net::split(cx);
    let Some(Job { state, intake, .. }) = shared.nfs.jobs.get_mut(usize::from(index)) else { return Ok(()) };
    for _ in 0..TURNS {
        if work.seat().done.is_some() {
            return Ok(());
        }
        let goes_on = match turn(&mut net, state, intake) {
            Turn::Went(goes_on) => goes_on,
            Turn::Whole => {
                let bytes = intake.tape.front();
                let incoming = Incoming { payload: bytes, len: bytes.len(), landed: None, meta: None };
                let mut room = Room { net: net.again(), job: state };
                let result = work.take(&mut room, &incoming);
                intake.next();
                result?;
                Go::On
            }
            Turn::Front if W::READS => front(work, &mut net, state, intake)?,
            Turn::Data(key) if W::READS => data(work, &mut net, state, intake, key)?,
            Turn::Front | Turn::Data(_) => intake.gather()?,
        };
        if !goes_on.settle(&mut net, state) {
            return Ok(());
        }
    }
    // More has come than one pass should take.
    net.stack.wake = true;
    Ok(())
}

/// How it goes on.
enum Go {
    /// At once.
    On,
    /// When more has come, or the sink takes more.
    Wait,
    /// Not on this connection.
    Broken,
}

impl Go {
    /// Whether it goes on at once.
    #[inline(never)]
    fn settle<H: Host>(self, net: &mut Net<'_, '_, H>, state: &mut JobState) -> bool {
        if matches!(self, Go::Broken) {
            net.stack.stats.count(Counter::DropRpcMalformed);
            state.caller.channel.lost(net, Error::Protocol);
            state.caller.silence.trouble = Some(Error::Protocol);
        }
        matches!(self, Go::On)
    }
}

/// What has come.
enum Turn {
    /// Nothing for the operation.
    Went(Go),
    /// A whole record.
    Whole,
    /// As much of the front of a record as is wanted.
    Front,
    /// Data, perhaps.
    Data(Key),
}

/// Looks at what has come; what is not for the operation is done with.
#[inline(never)]
fn turn<H: Host>(net: &mut Net<'_, '_, H>, state: &mut JobState, intake: &mut Intake) -> Turn {
    let channel = &state.caller.channel;
    let Some(key) = channel.connection().filter(|_| channel.is_stream()) else { return Turn::Went(Go::Wait) };
    if intake.line != channel.number() {
        intake.rewind(channel.number());
    }
    if intake.data.is_some() {
        return Turn::Data(key);
    }
    if intake.skip {
        return Turn::Went(skip(net, intake, key));
    }
    match intake.tape.pull(net, key, intake.want) {
        Pulled::Little => Turn::Went(Go::Wait),
        Pulled::Later => Turn::Went(Go::On),
        Pulled::Broken => Turn::Went(Go::Broken),
        Pulled::Front => Turn::Front,
        // A reply to nobody: what else comes is not to be trusted.
        Pulled::Whole if intake.tape.front().len() < 4 => Turn::Went(Go::Broken),
        Pulled::Whole => Turn::Whole,
    }
}

/// Takes the front of a reply that may be one to a READ.
fn front<H: Host>(
    work: &mut impl Work<H>,
    net: &mut Net<'_, '_, H>,
    state: &mut JobState,
    intake: &mut Intake,
) -> Result<Go, Error> {
    match work.head(state, intake.tape.front()) {
        Head::More if intake.want < ROOM => {
            // The usual header with attributes, then a word at a time.
            let usual = super::get::HEADER_WITH_ATTRIBUTES;
            intake.want = if intake.want < usual { usual } else { intake.want.saturating_add(4) };
        }
        Head::Whole | Head::More => return intake.gather(),
        Head::Skip => {
            net.stack.stats.count(Counter::DropRpcStale);
            intake.skip = true;
        }
        Head::Bad(xid) => {
            let mut room = Room { net: net.again(), job: state };
            work.bad(&mut room, xid)?;
            intake.skip = true;
        }
        Head::Data { xid, header, offset, len, eof } => {
            let early = intake.tape.front().get(header..).unwrap_or(&[]);
            let early = early.get(..len as usize).unwrap_or(early);
            let place = work.place_data(offset, len);
            // The header is gathered word by word, so that data is here only if it is as short as that.
            let put = if place.is_none() { early.len() } else { work.put_data(offset, early)? };
            let lost = place.is_none() || put < early.len();
            let got = early.len() as u32;
            intake.data = Some(Data {
                xid,
                header,
                eof,
                offset: offset.saturating_add(u64::from(got)),
                len,
                left: len.saturating_sub(got),
                lost,
                queued: 0,
            });
        }
    }
    Ok(Go::On)
}

/// Leads data to its sink.
fn data<H: Host>(
    work: &mut impl Work<H>,
    net: &mut Net<'_, '_, H>,
    state: &mut JobState,
    intake: &mut Intake,
    key: Key,
) -> Result<Go, Error> {
    let Some(data) = &mut intake.data else { return Ok(Go::Wait) };
    if data.left == 0 {
        let done = *data;
        intake.data = None;
        intake.skip = true;
        let mut room = Room { net: net.again(), job: state };
        let count = if done.lost { 0 } else { done.len };
        work.data_done(&mut room, done.xid, done.len, count, done.header, done.eof)?;
        return Ok(Go::On);
    }
    match intake.tape.open(net, key) {
        Pulled::Front => {}
        Pulled::Little => return Ok(Go::Wait),
        Pulled::Later => return Ok(Go::On),
        // The record ends within its data.
        Pulled::Whole | Pulled::Broken => return Ok(Go::Broken),
    }
    let most = data.left.min(intake.tape.left()) as usize;
    let count = if data.queued > 0 {
        match net.tcp.region(key) {
            Ok(Some(region)) if region.is_full() => {
                let _ = net.tcp.finish_region(net.stack, key);
                intake.tape.passed(region.len);
                core::mem::take(&mut data.queued)
            }
            _ => return Ok(Go::Wait),
        }
    } else if data.lost {
        match intake.tape.skip(net, key, most) {
            0 => return Ok(Go::Wait),
            count => count,
        }
    } else if let Some(Some((memory, at))) = work.place_data(data.offset, most as u32) {
        if at.checked_add(most).is_none_or(|end| end > memory.len()) {
            return Err(Error::TooBig);
        }
        match net.tcp.recv_into(net.stack, key, &memory, at, most) {
            Ok(()) => data.queued = most,
            Err(_) => return Ok(Go::Wait),
        }
        return Ok(Go::On);
    } else {
        let (front, back) = net.tcp.peek(key).unwrap_or((&[], &[]));
        let part = if front.is_empty() { back } else { front };
        let part = part.get(..most).unwrap_or(part);
        if part.is_empty() {
            return Ok(Go::Wait);
        }
        let offered = part.len();
        let count = work.put_data(data.offset, part)?;
        intake.tape.skip(net, key, count);
        data.took(count);
        let mut room = Room { net: net.again(), job: state };
        work.data_put(&mut room, count, count < offered)?;
        return Ok(if count < offered { Go::Wait } else { Go::On });
    };
    data.took(count);
    // Bytes are a sign of life, however long the reply.
    state.caller.silence.broken(net.now());
    Ok(Go::On)
}

/// Passes over what is left of a record: padding, or all of one that nobody waits for.
fn skip<H: Host>(net: &mut Net<'_, '_, H>, intake: &mut Intake, key: Key) -> Go {
    match intake.tape.open(net, key) {
        Pulled::Little => Go::Wait,
        Pulled::Later => Go::On,
        Pulled::Broken => Go::Broken,
        Pulled::Whole => {
            intake.next();
            Go::On
        }
        Pulled::Front => match intake.tape.skip(net, key, usize::MAX) {
            0 => Go::Wait,
            _ => Go::On,
        },
    }
}
