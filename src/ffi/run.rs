//! A pass over a stack: one reading of the clock, the frames that have come, then the timers, then what the host is
//! to be told. Blocking calls are passes in a row. Upcalls are made here, while the core is not borrowed.

use super::arena::Core;
use super::guard::{Stop, Upcall, lace_stack};
use super::handle::Kind;
use super::hook::lace_packet;
use super::host::CHost;
use super::nic::{handle_of, lace_frame};
use super::op::Notify;
use super::region::overlaps;
use super::results::{LACE_EBADF, LACE_ECANCELED, LACE_EINTR, LACE_OK, code};
use super::udp::{Handler, lace_datagram, lace_udp_handler};
use crate::client::engine::{Found, Received};
use crate::client::operation::Step;
#[cfg(feature = "tcp")]
use crate::client::ops::Client;
use crate::client::ops::Op;
use crate::stack::interface::NicId;
use crate::stack::landing::HEADROOM;
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::RxFlags;
use crate::storage::slots::Key;
use crate::storage::time::{Duration, Instant};
use crate::udp::Meta;
use core::ffi::c_void;

/// Frames a blocking call takes in one pass.
const BUDGET: u32 = 32;
/// Frames of one NIC before it is another's turn.
const TURN: u32 = 8;
/// A frame longer than this is none.
const MAX_FRAME: usize = 65_535 + 22;
/// Longest time between two looks at the host in blocking calls.
const LOOK_LATEST: Duration = Duration::from_millis(10);
/// Shortest time between two looks while frames flow.
const LOOK_EARLIEST: Duration = Duration::from_millis(1);
/// Passes after which the host is looked at even if its clock stands still.
const LOOK_PASSES: u32 = 1024;

/// What a pass did.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Frames taken.
    pub frames: u32,
    /// The NICs had no more.
    pub empty: bool,
}

/// What a frame that was taken means for the host: for as long as the driver lends it.
struct Told {
    nic: NicId,
    start: *const u8,
    len: usize,
    found: Found<'static>,
}

impl Told {
    const NOTHING: Told = Told { nic: NicId(0), start: core::ptr::null(), len: 0, found: Found::Nothing };

    /// Makes the upcalls. Out of line: what is told has a large frame on the machine's stack, and is not to lie above what
    /// takes frames.
    #[inline(never)]
    fn make(&self, net: &lace_stack) {
        let mut delivery = Delivery::NOTHING;
        net.access(|core| core.deliver(net, self, &mut delivery));
        delivery.make(net);
    }
}

/// What is to be told of one frame. Filled in where it lies: a copy of it would cost a host whose `memcpy` goes byte by byte
/// a thousand instructions a frame.
struct Delivery {
    /// Names a reassembled datagram that is kept until it was told of.
    staged: Option<usize>,
    datagram: Option<(Handler<lace_udp_handler>, lace_datagram)>,
    hook: Option<(Handler<super::hook::lace_hook_handler>, lace_packet)>,
}

impl Delivery {
    const NOTHING: Delivery = Delivery { staged: None, datagram: None, hook: None };

    /// Makes the upcalls.
    fn make(&self, net: &lace_stack) {
        if let Some((handler, datagram)) = &self.datagram
            && let Some(call) = handler.call
            // The handler of a datagram that is to be told next may close the socket or the hook of the other.
            && net.udp.find(datagram.socket).is_ok()
        {
            // SAFETY: the host vouches for its callback; what the datagram names lives until it returns.
            net.upcall(Upcall::Other, || unsafe { call(handler.ctx, &raw const *datagram) });
        }
        if let Some(index) = self.staged {
            net.access(|core| core.engine.release_staged(index));
        }
        if let Some((handler, packet)) = &self.hook
            && let Some(call) = handler.call
            && net.hooks.find(packet.hook).is_ok()
        {
            // SAFETY: as above.
            net.upcall(Upcall::Other, || unsafe { call(handler.ctx, &raw const *packet) });
        }
    }
}

impl Core {
    /// Reads the clock.
    pub(super) fn read_clock(&mut self) {
        let Some(now_us) = self.host.now_us else { return };
        // SAFETY: the host vouches for its callback.
        let raw = unsafe { now_us(self.host.ctx) };
        let now = self.clock.read(raw);
        self.engine.set_now(now);
    }

    /// Takes a frame of the driver's; [`Engine::follow`] is to be called next. Whether anything is to be told of it: what, is
    /// in `told`.
    ///
    /// [`Engine::follow`]: crate::client::engine::Engine::follow
    #[inline(always)] // As it is the next two.
    fn take(&mut self, net: &lace_stack, nic: NicId, frame: &lace_frame, told: &mut Told) -> bool {
        self.take_usual(net, nic, frame, told) && self.lead(frame, told)
    }

    /// Does what the usual frame needs. `true`: there is more to do with this one.
    #[inline(never)]
    fn take_usual(&mut self, net: &lace_stack, nic: NicId, frame: &lace_frame, told: &mut Told) -> bool {
        let (start, len) = (frame.data.cast::<u8>(), frame.len as usize);
        let at = start.addr();
        let end = at.saturating_add(len);
        let wrong = if at == 0 || len == 0 {
            Some(Counter::DropShort)
        } else if len > MAX_FRAME || end == usize::MAX || overlaps(&(at..end), &net.arena) {
            Some(Counter::DropOversize)
        } else {
            None
        };
        if let Some(counter) = wrong {
            self.engine.stack.stats.count(Counter::RxFrames);
            self.engine.stack.stats.count(counter);
            return false;
        }
        if net.stopping() == Stop::Ending {
            return false;
        }
        // SAFETY: the driver lends `len` bytes until they are released, and leaves them unchanged until then.
        let bytes = unsafe { core::slice::from_raw_parts(start, len) };
        if !self.engine.take(nic, bytes, RxFlags::from_bits_truncate(frame.flags), &mut told.found) {
            return false;
        }
        (told.nic, told.start, told.len) = (nic, start, len);
        true
    }

    /// Does the rest. Apart, so that the frame of what every frame needs does not lie on the machine's stack under this.
    #[inline(never)]
    fn lead(&mut self, frame: &lace_frame, told: &mut Told) -> bool {
        // SAFETY: as in `take_usual`, which has looked at it.
        let bytes = unsafe { core::slice::from_raw_parts(told.start, told.len) };
        self.engine.lead(told.nic, bytes, RxFlags::from_bits_truncate(frame.flags), &mut told.found);
        !matches!(told.found, Found::Nothing)
    }

    /// Works out whom to tell what of a frame.
    #[inline(never)]
    fn deliver(&self, net: &lace_stack, told: &Told, delivery: &mut Delivery) {
        let Told { nic, start, len, found } = told;
        let (nic, frame) = (*nic, (*start, *len));
        match found {
            Found::Told(Received::Datagram { socket, meta, payload }) => {
                let offset = payload.as_ptr().addr().wrapping_sub(frame.0.addr());
                self.deliver_datagram(net, *socket, meta, frame, (offset, payload.len()), delivery);
            }
            Found::Told(Received::Staged { socket, meta, index }) => {
                delivery.staged = Some(*index);
                if let Some(frame) = self.engine.staged(*index) {
                    let offset = HEADROOM + crate::wire::udp::HEADER_LEN;
                    let payload = (offset, frame.len().saturating_sub(offset));
                    self.deliver_datagram(net, *socket, meta, (frame.as_ptr(), frame.len()), payload, delivery);
                }
            }
            Found::Hooked(hit) => {
                if let Some(handler) = self.hooks.get(hit.hook)
                    && let Some(entry) = net.hooks.entries.get(hit.hook)
                {
                    let packet = lace_packet::of(entry.handle(), handle_of(net, nic), frame, (hit.at, hit.len));
                    delivery.hook = Some((*handler, packet));
                }
            }
            _ => {}
        }
    }

    /// The datagram whose payload lies at `payload` (offset and length) of `frame`, with whom to tell.
    #[inline]
    fn deliver_datagram(
        &self,
        net: &lace_stack,
        socket: Key,
        meta: &Meta,
        frame: (*const u8, usize),
        payload: (usize, usize),
        delivery: &mut Delivery,
    ) {
        if let Some(handler) = self.sockets.get(usize::from(socket.index))
            && let Some(known) = self.engine.udp.get(socket)
        {
            let handle = super::handle::pack(Kind::Udp, socket);
            let datagram = lace_datagram::of(net, handle, meta, known.local.port, frame, payload);
            delivery.datagram = Some((*handler, datagram));
        }
    }

    /// Cancels the operation a handle names.
    pub(super) fn cancel(&mut self, net: &lace_stack, handle: i32, why: Error) -> Result<(), i32> {
        let (key, _) = net.ops.find(handle)?;
        self.engine.cancel(key, why).map_err(code)
    }

    /// Closes what a handle names.
    pub(super) fn close(&mut self, net: &lace_stack, kind: Kind, handle: i32) -> Result<(), i32> {
        let table = match kind {
            Kind::Op => &net.ops,
            Kind::Udp => &net.udp,
            Kind::Hook => &net.hooks,
            Kind::Tcp => &net.tcp,
            Kind::Listener => &net.listeners,
            Kind::Nic => return Err(LACE_EBADF),
        };
        let (key, entry) = table.find(handle)?;
        entry.clear();
        #[cfg(feature = "tcp")]
        if matches!(kind, Kind::Tcp | Kind::Listener) {
            self.handle_tcp(net, kind, key, Handler::default());
        }
        match kind {
            Kind::Op => {
                #[cfg(feature = "tcp")]
                self.abort_untold(key);
                self.engine.close(key).map_err(code)?;
            }
            Kind::Udp => {
                self.engine.udp.close(key);
            }
            #[cfg(feature = "tcp")]
            Kind::Tcp => self.engine.tcp.close(&mut self.engine.stack, key).map_err(code)?,
            #[cfg(feature = "tcp")]
            Kind::Listener => self.engine.tcp.unlisten(&mut self.engine.stack, key).map_err(code)?,
            _ => self.engine.stack.hooks.remove(usize::from(key.index)),
        }
        Ok(())
    }

    /// Ends the connection that an operation has opened if the host never heard of it: nobody could close it.
    #[cfg(feature = "tcp")]
    fn abort_untold(&mut self, op: Key) {
        let engine = &mut self.engine;
        if let Some(Client::Connect(connect)) = engine.ops.get(op).map(|op| &op.client)
            && let Some(connection) = connect.untold()
        {
            // Should it be gone already, nothing is left to do.
            let _ = engine.tcp.abort(&mut engine.stack, connection);
        }
    }

    /// Ends a connection at once.
    pub(super) fn abort(&mut self, net: &lace_stack, handle: i32) -> Result<(), i32> {
        let (key, entry) = net.tcp.find(handle)?;
        entry.clear();
        #[cfg(feature = "tcp")]
        {
            self.handle_tcp(net, Kind::Tcp, key, Handler::default());
            self.engine.tcp.abort(&mut self.engine.stack, key).map_err(code)?;
        }
        let _ = key;
        Ok(())
    }

    /// Ends every operation, closes every socket and hook. Whether no NIC holds a frame.
    pub(super) fn end_all(&mut self, net: &lace_stack) -> bool {
        for table in net.closable() {
            for entry in table.entries {
                let handle = entry.handle();
                if handle == 0 {
                    continue;
                }
                // It is alive: there is a handle. A connection has no time to end in good order.
                let _ = match table.kind {
                    Kind::Tcp => self.abort(net, handle),
                    kind => self.close(net, kind, handle),
                };
            }
        }
        #[cfg(feature = "http")]
        self.engine.end_waiting();
        #[cfg(feature = "tcp")]
        if self.engine.tcp.is_lending() {
            return false;
        }
        self.engine.stack.outstanding() == 0
    }

    /// Notes whom to tell of an operation.
    pub(super) fn set_notify(&mut self, key: Key, notify: Notify) -> Option<()> {
        self.engine.ops.wants(key, notify.progress.is_some())?;
        *place(self.ops, key)? = notify;
        Some(())
    }

    /// What the host is to be told of the next operation from slot `index` on, which moves past those without news.
    fn news(&mut self, net: &lace_stack, index: &mut usize) -> Option<(Notify, i32, News)> {
        while let Some(notify) = self.ops.get(*index).copied() {
            if let Some((handle, news)) = self.news_of(net, *index, &notify) {
                return Some((notify, handle, news));
            }
            *index += 1;
        }
        None
    }

    /// What is new of the operation in slot `index`: progress first, where that is wanted, then the end.
    fn news_of(&mut self, net: &lace_stack, index: usize, notify: &Notify) -> Option<(i32, News)> {
        let (key, op) = self.engine.ops.news(index)?;
        let handle = net.ops.entries.get(index)?.handle();
        if net.ops.find(handle).ok()?.0 != key {
            return None;
        }
        if core::mem::take(&mut op.progress_news) && notify.progress.is_some() {
            let total = op.progress.total.unwrap_or(0);
            return Some((handle, News::Progress { done: op.progress.done, total }));
        }
        // Whoever asks to be told later is told then.
        if notify.done.is_none() || !core::mem::take(&mut op.done_news) {
            return None;
        }
        Some((handle, News::Done(op_result(net, op)?)))
    }
}

enum News {
    Progress { done: u64, total: u64 },
    Done(i64),
}

/// The number that C gets for a result.
pub(super) fn result_code(result: Result<u64, Error>) -> i64 {
    match result {
        Ok(count) => i64::try_from(count).unwrap_or(i64::MAX),
        Err(error) => i64::from(code(error)),
    }
}

/// The number that C gets for the result of an operation; `None` while it goes on.
pub(super) fn op_result(net: &lace_stack, op: &mut Op<CHost>) -> Option<i64> {
    let Step::Done(result) = op.step else { return None };
    #[cfg(feature = "tcp")]
    if let (Client::Connect(connect), Ok(number)) = (&mut op.client, result) {
        let key = crate::client::stream::named(number);
        return Some(i64::from(super::tcp::opened(net, key, connect.tell())));
    }
    let _ = net;
    Some(result_code(result))
}

/// Tells the host what has become of its operations.
#[inline]
pub(super) fn tell(net: &lace_stack) {
    if net.access(|core| core.engine.has_news()) {
        tell_news(net);
    }
}

#[inline(never)]
fn tell_news(net: &lace_stack) {
    #[cfg(feature = "tcp")]
    super::tcp::tell_events(net);
    // Most often a connection had something to tell, and no operation: theirs need not be looked through.
    if net.access(|core| core.engine.ops.take_news()) {
        tell_ops(net);
    }
    #[cfg(feature = "dhcp")]
    if net.access(|core| core.engine.shared.dhcp.has_lost()) {
        super::dhcp::tell_lost(net);
    }
}

#[inline(never)]
fn tell_ops(net: &lace_stack) {
    let mut index = 0;
    // Each tells of progress, then of its end.
    for _ in 0..2 * net.ops.entries.len() {
        let Some((notify, op, news)) = net.access(|core| core.news(net, &mut index)) else { break };
        match news {
            News::Progress { done, total } => {
                if let Some(progress) = notify.progress {
                    // SAFETY: the host vouches for its callback.
                    net.upcall(Upcall::Other, || unsafe { progress(notify.ctx, op, done, total) });
                }
            }
            News::Done(result) => {
                if let Some(done) = notify.done {
                    // SAFETY: as above.
                    net.upcall(Upcall::Other, || unsafe { done(notify.ctx, op, result) });
                }
            }
        }
    }
}

/// Hands a frame to the stack at rest and makes the upcalls it leads to.
pub(super) fn deliver(net: &lace_stack, nic: NicId, frame: &lace_frame) {
    take_one(net, nic, frame);
    net.access(|core| core.engine.follow());
}

/// Out of line: what follows from a frame is not to lie above what is to be told of it.
#[inline(never)]
fn take_one(net: &lace_stack, nic: NicId, frame: &lace_frame) {
    let mut told = Told::NOTHING;
    if net.access(|core| core.take(net, nic, frame, &mut told)) {
        told.make(net);
    }
}

/// How far a pass is.
struct Round {
    /// Frames that may still be taken.
    left: u32,
    /// Index of the NIC whose turn it is.
    at: usize,
    /// NICs in a row that had no more.
    idle: usize,
    stage: Stage,
}

/// Where a pass goes on.
enum Stage {
    /// At its beginning.
    Begin,
    /// With the next NIC's turn.
    Turn,
    /// With the frames of a NIC that has pushed so many.
    Pushed(u32),
    /// With a frame that is to be given back.
    Lent(lace_frame, NicCalls),
}

/// What a pass calls of a NIC: the NIC may be gone before a frame is given back.
#[derive(Clone, Copy)]
struct NicCalls {
    ctx: *mut c_void,
    release: Option<unsafe extern "C" fn(ctx: *mut c_void, frame: *const lace_frame)>,
}

impl NicCalls {
    #[inline]
    fn give_back(&self, frame: &lace_frame) {
        if let Some(release) = self.release {
            // SAFETY: the host vouches for its callback; nothing of the frame is used any more.
            unsafe { release(self.ctx, frame) };
        }
    }
}

/// Why a pass leaves the core.
enum Leave {
    /// To ask a NIC to push.
    Pump(*mut c_void, unsafe extern "C" fn(ctx: *mut c_void)),
    /// To make upcalls for a frame.
    Tell,
    /// To do what its taking has led to.
    Act,
}

impl Core {
    /// Goes on with a pass, as far as no upcall is to be made. `None`: it is over.
    fn go_on(&mut self, net: &lace_stack, round: &mut Round, told: &mut Told) -> Option<Leave> {
        let nics = net.nics.entries.len();
        let mut pushed = None;
        // No table of jumps, which would lie among the constants, on a page more.
        let stage = core::mem::replace(&mut round.stage, Stage::Turn);
        if let Stage::Lent(frame, calls) = stage {
            calls.give_back(&frame);
        } else if let Stage::Begin = stage {
            self.read_clock();
            for index in 0..nics {
                self.ask_link(NicId(index as u8));
            }
            round.at = self.turn;
        } else if let Stage::Pushed(frames) = stage {
            pushed = Some(frames);
        }
        while round.left > 0 && round.idle < nics {
            let nic = NicId(round.at as u8);
            let calls = self.engine.stack.iface(nic).map(|interface| &interface.nic.calls);
            let Some(calls) = calls else {
                round.next(nics, 0, true);
                continue;
            };
            if let (Some(pump), None) = (calls.pump, pushed) {
                return Some(Leave::Pump(calls.ctx, pump));
            }
            let (recv, calls) = (calls.recv, NicCalls { ctx: calls.ctx, release: calls.release });
            let given = pushed.take().unwrap_or(0);
            let Some(recv) = recv else {
                round.next(nics, given, given == 0);
                continue;
            };
            // Others get their turn, too.
            let most = if nics == 1 { round.left } else { round.left.min(TURN) };
            let mut frame = lace_frame { data: core::ptr::null(), len: 0, flags: 0, cookie: 0 };
            let mut taken = 0;
            let mut empty = false;
            // Frames of which nobody is to be told are taken one behind the other.
            while taken < most {
                // SAFETY: the host vouches for its callback; it fills in the frame.
                if unsafe { recv(calls.ctx, &raw mut frame) } <= 0 {
                    // Not asked again in this pass: on many boards that is dear.
                    empty = given == 0;
                    break;
                }
                taken += 1;
                let tells = self.take(net, nic, &frame, told);
                if tells || self.engine.is_marked() || net.is_asked() {
                    round.next(nics, given.saturating_add(taken), false);
                    round.stage = Stage::Lent(frame, calls);
                    return Some(if tells { Leave::Tell } else { Leave::Act });
                }
                calls.give_back(&frame);
            }
            round.next(nics, given.saturating_add(taken), empty);
        }
        None
    }

    /// Fires the timers at the end of a pass.
    #[inline]
    fn finish(&mut self, net: &lace_stack, round: &Round) {
        self.turn = round.at;
        let empty = round.idle >= net.nics.entries.len();
        // What has come in time may still wait in the NIC: no timer fires before that was looked at, or the budget was
        // spent twice.
        self.starved = if empty { 0 } else { self.starved + 1 };
        if empty || self.starved >= 2 {
            self.starved = 0;
            if net.stopping() != Stop::Ending {
                self.engine.tick();
            }
        }
    }
}

impl Round {
    /// The NIC has had its turn, and given so many frames.
    #[inline]
    fn next(&mut self, nics: usize, frames: u32, empty: bool) {
        self.left = self.left.saturating_sub(frames);
        self.idle = if empty { self.idle + 1 } else { 0 };
        self.at = if self.at + 1 < nics { self.at + 1 } else { 0 };
    }
}

/// One pass, between `begin` and `end`. At most `budget` frames, but whatever a `pump` pushes at once.
pub(super) fn pass(net: &lace_stack, budget: u32) -> Pass {
    let most = budget.max(1);
    let mut round = Round { left: most, at: 0, idle: 0, stage: Stage::Begin };
    // Clients act here, and not where frames are taken: that has a large frame of its own on the machine's stack.
    while take_frames(net, &mut round) {
        net.access(|core| core.engine.follow());
    }
    net.access(|core| core.finish(net, &round));
    tell(net);
    Pass { frames: most.saturating_sub(round.left), empty: round.idle >= net.nics.entries.len() }
}

/// Takes frames and makes the upcalls they lead to, until clients are to act. Whether there are more.
#[inline(never)]
fn take_frames(net: &lace_stack, round: &mut Round) -> bool {
    let mut told = Told::NOTHING;
    while let Some(leave) = net.access(|core| core.go_on(net, round, &mut told)) {
        match leave {
            Leave::Pump(ctx, pump) => {
                let before = net.inputs.get();
                // SAFETY: the host vouches for its callback.
                net.upcall(Upcall::Pump, || unsafe { pump(ctx) });
                round.stage = Stage::Pushed(net.inputs.get().wrapping_sub(before));
            }
            Leave::Tell => told.make(net),
            Leave::Act => {}
        }
        if net.access(|core| core.engine.is_marked()) {
            return true;
        }
    }
    false
}

/// Microseconds until something is due.
pub(super) fn time_left(core: &Core) -> u64 {
    let deadline = core.engine.deadline();
    if deadline == Instant::NEVER { i64::MAX as u64 } else { deadline.since(core.engine.stack.now).as_micros() }
}

/// Passes until `ready` gives something.
///
/// # Errors
/// `LACE_EBUSY` from a callback; `LACE_EINTR` when `host.poll` said so; `LACE_ECANCELED` when the stack was stopped.
pub(super) fn block<R>(net: &lace_stack, mut ready: impl FnMut(&mut Core) -> Option<R>) -> Result<R, i32> {
    net.begin()?;
    let mut result = None;
    let ended = passes(net, &mut |core| {
        result = ready(core);
        result.is_some()
    });
    net.end();
    result.ok_or(ended)
}

/// Passes until `ready` says so, or something else ends it: what that was. One copy for all that block.
fn passes(net: &lace_stack, ready: &mut dyn FnMut(&mut Core) -> bool) -> i32 {
    let host = net.access(|core| {
        core.read_clock();
        core.host
    });
    let mut looked = net.access(|core| core.engine.stack.now);
    let (mut frames, mut rounds) = (false, 0u32);
    loop {
        if net.stopping() != Stop::No {
            return LACE_ECANCELED;
        }
        if net.access(&mut *ready) {
            return LACE_OK;
        }
        let sent = |core: &mut Core| core.engine.stack.stats.get(Counter::TxFrames);
        let before = net.access(sent);
        let pass = pass(net, BUDGET);
        frames |= pass.frames > 0;
        rounds += 1;
        let (now, left) = net.access(|core| (core.engine.stack.now, time_left(core)));
        let since = now.since(looked);
        let quiet = pass.empty && (!frames || since >= LOOK_EARLIEST);
        if let Some(poll) = host.poll
            && (quiet || since >= LOOK_LATEST || rounds >= LOOK_PASSES)
        {
            // SAFETY: the host vouches for its callback.
            if net.upcall(Upcall::HostPoll, || unsafe { poll(host.ctx) }) != 0 {
                return LACE_EINTR;
            }
            looked = now;
            frames = false;
            rounds = 0;
        }
        if let Some(idle) = host.idle
            && pass.empty
            && left > 0
            // What was just sent may be answered at once.
            && net.access(sent) == before
            && net.stopping() == Stop::No
        {
            let most = left.min(LOOK_LATEST.as_micros()) as u32;
            // An upcall before may have ended what is waited for; what came of it may be told only once.
            if net.access(&mut *ready) {
                return LACE_OK;
            }
            // SAFETY: as above.
            net.upcall(Upcall::Other, || unsafe { idle(host.ctx, most) });
        }
    }
}

/// The place of a key among handlers, cleared for a new one.
pub(super) fn place<T>(handlers: &mut [T], key: Key) -> Option<&mut T> {
    handlers.get_mut(usize::from(key.index))
}

/// What is done with a pointer and a length of C's that are only read during the call.
pub(super) fn borrowed<'b>(net: &lace_stack, data: *const c_void, len: usize) -> Result<&'b [u8], i32> {
    let at = data.addr();
    if len == 0 {
        return Ok(&[]);
    }
    let end = at.checked_add(len).filter(|_| at != 0 && len <= isize::MAX as usize);
    match end {
        Some(end) if !overlaps(&(at..end), &net.arena) => {
            // SAFETY: the caller of the C function vouches for the bytes, and they stay unchanged during the call.
            Ok(unsafe { core::slice::from_raw_parts(data.cast::<u8>(), len) })
        }
        _ => Err(super::results::LACE_EFAULT),
    }
}
