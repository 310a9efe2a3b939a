//! The scheduler of operations: starts them, polls those that have something to do, keeps results until they are
//! closed, and notes what the host is to be told.

use super::engine::Shared;
use super::operation::{Cx, Datagram, Detail, Operation, Progress, Step};
use crate::stack::Stack;
use crate::stack::icmp::IcmpError;
use crate::stack::landing::{Flow, Place};
use crate::storage::error::{Error, Result};
use crate::storage::host::Host;
use crate::storage::slots::{Key, Slot, Slots};
use crate::storage::time::Instant;
use crate::udp::Udp;
use crate::udp::lane::Arrived;

/// The clients, one variant a protocol.
#[allow(clippy::large_enum_variant)] // There is no heap to move the large ones to.
pub enum Client<H: Host> {
    /// DHCP.
    #[cfg(feature = "dhcp")]
    Dhcp(super::dhcp::op::Dhcp<H>),
    /// DNS.
    #[cfg(feature = "dns")]
    Dns(super::dns::op::Dns<H>),
    /// HTTP.
    #[cfg(feature = "http")]
    Http(super::http::Get<H>),
    /// A file at an HTTP server that is read in pieces.
    #[cfg(feature = "http")]
    HttpFile(super::http::File<H>),
    /// Ping.
    #[cfg(feature = "ping")]
    Ping(super::ping::Ping<H>),
    /// A state machine of a test's or benchmark's own.
    #[cfg(any(test, feature = "sim"))]
    Sim(std::boxed::Box<dyn Operation<H>>),
    /// NFS: mounting, unmounting, lists of exports.
    #[cfg(feature = "nfs")]
    NfsAttach(super::nfs::Attach<H>),
    /// NFS: questions about files, and directories.
    #[cfg(feature = "nfs")]
    NfsQuery(super::nfs::Query<H>),
    /// NFS: reading files.
    #[cfg(feature = "nfs")]
    NfsGet(super::nfs::Get<H>),
    /// TCP: opening a connection.
    #[cfg(feature = "tcp")]
    Connect(super::stream::Connect<H>),
    /// TCP: sending a file.
    #[cfg(feature = "tcp")]
    Sendfile(super::stream::Sendfile<H>),
    /// TFTP, receiving.
    #[cfg(feature = "tftp")]
    TftpGet(super::tftp::Get<H>),
    /// TFTP, sending.
    #[cfg(feature = "put")]
    TftpPut(super::tftp::Put<H>),
    /// A file that is read in pieces.
    #[cfg(feature = "file")]
    File(super::file::File<H>),
    /// A file on an NFS export that is read in pieces.
    #[cfg(feature = "nfs")]
    NfsFile(super::nfs::File<H>),
    /// No client at all: what is left when every feature is off.
    Nothing(super::operation::Nothing, core::marker::PhantomData<H>),
}

/// Calls the same method on whichever client it is.
macro_rules! each_client {
    ($client:expr, $c:ident => $call:expr) => {
        match $client {
            #[cfg(feature = "dhcp")]
            Client::Dhcp($c) => $call,
            #[cfg(feature = "dns")]
            Client::Dns($c) => $call,
            #[cfg(feature = "http")]
            Client::Http($c) => $call,
            #[cfg(feature = "http")]
            Client::HttpFile($c) => $call,
            #[cfg(feature = "ping")]
            Client::Ping($c) => $call,
            #[cfg(any(test, feature = "sim"))]
            Client::Sim($c) => $call,
            #[cfg(feature = "nfs")]
            Client::NfsAttach($c) => $call,
            #[cfg(feature = "nfs")]
            Client::NfsQuery($c) => $call,
            #[cfg(feature = "nfs")]
            Client::NfsGet($c) => $call,
            #[cfg(feature = "tcp")]
            Client::Connect($c) => $call,
            #[cfg(feature = "tcp")]
            Client::Sendfile($c) => $call,
            #[cfg(feature = "tftp")]
            Client::TftpGet($c) => $call,
            #[cfg(feature = "put")]
            Client::TftpPut($c) => $call,
            #[cfg(feature = "file")]
            Client::File($c) => $call,
            #[cfg(feature = "nfs")]
            Client::NfsFile($c) => $call,
            Client::Nothing($c, _) => $call,
        }
    };
}
pub(super) use each_client;

// On small machines out of line: one copy for all that call, and no frame of these is to lie under a poll.
impl<H: Host> Client<H> {
    /// See [`Operation::place`].
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    pub fn place(&self, shared: &Shared<'_>, flow: &Flow, head: &[u8], len: usize) -> Place<H::Memory> {
        each_client!(self, c => Operation::<H>::place(c, shared, flow, head, len))
    }

    /// See [`Operation::datagram`].
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    pub fn datagram(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>) {
        // The frame of one client is not to be on the stack of another.
        #[cfg_attr(target_pointer_width = "32", inline(never))]
        #[cfg_attr(not(target_pointer_width = "32"), inline)]
        fn tell<H: Host, C: Operation<H>>(client: &mut C, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>) {
            client.datagram(cx, datagram);
        }
        each_client!(self, c => tell(c, cx, datagram));
    }

    /// See [`Operation::icmp_error`].
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    pub fn icmp_error(&mut self, cx: &mut Cx<'_, '_, H>, error: &IcmpError) {
        each_client!(self, c => c.icmp_error(cx, error));
    }
}

#[cfg(feature = "tcp")]
impl<H: Host> Client<H> {
    /// The connection it waits for.
    pub fn connection(&self, shared: &Shared<'_>) -> Option<Key> {
        // Without NFS and HTTP nothing of what is shared is needed.
        let _ = shared;
        match self {
            #[cfg(feature = "http")]
            Client::Http(c) => c.connection(shared),
            #[cfg(feature = "http")]
            Client::HttpFile(c) => c.connection(shared),
            #[cfg(feature = "nfs")]
            Client::NfsAttach(c) => c.connection(shared),
            #[cfg(feature = "nfs")]
            Client::NfsQuery(c) => c.connection(shared),
            #[cfg(feature = "nfs")]
            Client::NfsGet(c) => c.connection(shared),
            #[cfg(feature = "nfs")]
            Client::NfsFile(c) => c.connection(shared),
            Client::Connect(c) => c.connection(),
            Client::Sendfile(c) => Some(c.connection()),
            _ => None,
        }
    }
}

#[cfg(any(feature = "file", feature = "nfs", feature = "http"))]
impl<H: Host> Client<H> {
    /// The open file that it is, if it is one.
    pub fn reader(&mut self) -> Option<super::reader::Reader<'_, H>> {
        match self {
            #[cfg(feature = "file")]
            Client::File(file) => Some(super::reader::Reader::Tftp(file)),
            #[cfg(feature = "nfs")]
            Client::NfsFile(file) => Some(super::reader::Reader::Nfs(file)),
            #[cfg(feature = "http")]
            Client::HttpFile(file) => Some(super::reader::Reader::Http(file)),
            _ => None,
        }
    }
}

/// An operation in its slot.
pub struct Op<H: Host> {
    /// The state machine.
    pub client: Client<H>,
    /// What it said last.
    pub step: Step,
    /// How far it is.
    pub progress: Progress,
    /// Why it failed.
    pub detail: Detail,
    /// It is to be polled whatever the time.
    pub due: bool,
    /// It was told something, and is to be polled as soon as what told it has returned.
    told: bool,
    /// The host wants to be told of the progress.
    pub wants_progress: bool,
    /// The host has not yet been told of the progress.
    pub progress_news: bool,
    /// The host has not yet been told of the end.
    pub done_news: bool,
}

impl<H: Host> Op<H> {
    /// Whether it goes on.
    pub fn is_running(&self) -> bool {
        matches!(self.step, Step::Pending(_))
    }

    /// Notes what it has said when it was polled. `before`: how far it was, if the host wants to be told of its progress.
    /// Where every instruction counts there is one copy of this for the dozen places that call.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    fn conclude(
        &mut self,
        agenda: &mut Agenda,
        index: u8,
        around: &mut Surroundings<'_, '_, H>,
        step: &Step,
        before: &Option<Progress>,
    ) {
        let moved = before.is_some_and(|before| before != self.progress);
        self.settle(agenda, index, around, step, moved);
    }

    /// The frame of one client is not to be on the stack of another.
    #[inline(never)]
    fn poll_client(client: &mut Client<H>, cx: &mut Cx<'_, '_, H>) -> Step {
        #[inline(never)]
        fn poll<H: Host, C: Operation<H>>(client: &mut C, cx: &mut Cx<'_, '_, H>) -> Step {
            client.poll(cx)
        }
        each_client!(client, c => poll(c, cx))
    }

    /// Notes what an operation has said. `moved`: the host is to be told of its progress.
    #[inline]
    fn settle(
        &mut self,
        agenda: &mut Agenda,
        index: u8,
        around: &mut Surroundings<'_, '_, H>,
        step: &Step,
        moved: bool,
    ) {
        if moved {
            self.progress_news = true;
            agenda.news = true;
        }
        // Stored part by part: as a whole it would be loaded before its parts have reached the cache, and wait for them.
        match *step {
            Step::Pending(at) => {
                self.step = Step::Pending(at);
                agenda.next = agenda.next.min(at);
            }
            Step::Done(end) => {
                self.step = Step::Done(end);
                self.done_news = true;
                agenda.news = true;
                around.udp.close_client(index);
                around.stack.landing.end_claims(index);
            }
        }
    }
}

/// What is to be done with operations, and when.
struct Agenda {
    /// The earliest time at which one is to be polled.
    next: Instant,
    /// One is to be polled whatever the time.
    due: bool,
    /// One has news for the host.
    news: bool,
}

/// The operation in slot `index`, if it runs.
#[inline]
fn running<'s, H: Host>(slots: &'s mut Slots<'_, Op<H>>, index: u8) -> Option<&'s mut Op<H>> {
    slots.at_mut(usize::from(index)).map(|(_, op)| op).filter(|op| op.is_running())
}

/// The operations.
pub struct Ops<'a, H: Host> {
    slots: Slots<'a, Op<H>>,
    agenda: Agenda,
}

/// What operations are called with, beside their own state.
pub struct Surroundings<'c, 'a, H: Host> {
    /// The stack.
    pub stack: &'c mut Stack<'a, H>,
    /// The sockets.
    pub udp: &'c mut Udp<'a>,
    /// The connections.
    #[cfg(feature = "tcp")]
    pub tcp: &'c mut crate::tcp::Tcp<'a, H>,
    /// What operations share.
    pub shared: &'c mut Shared<'a>,
}

impl<'a, H: Host> Surroundings<'_, 'a, H> {
    /// The same, with what is the operation's own.
    #[inline]
    fn cx<'c>(&'c mut self, op: u8, progress: &'c mut Progress, detail: &'c mut Detail) -> Cx<'c, 'a, H> {
        Cx {
            stack: self.stack,
            udp: self.udp,
            #[cfg(feature = "tcp")]
            tcp: self.tcp,
            shared: self.shared,
            op,
            progress,
            detail,
        }
    }
}

impl<'a, H: Host> Ops<'a, H> {
    /// No operations; as many can run as there are slots, at most 255.
    pub fn new(slots: &'a mut [Slot<Op<H>>]) -> Self {
        Ops { slots: Slots::new(slots), agenda: Agenda { next: Instant::NEVER, due: false, news: false } }
    }

    /// Starts an operation; it is first polled in the pass that follows.
    ///
    /// # Errors
    /// [`Error::NoSlot`]: as many run, or wait to be closed, as the configuration allows.
    pub fn start(&mut self, client: Client<H>) -> Result<Key> {
        let op = Op {
            client,
            step: Step::Pending(Instant::ZERO),
            progress: Progress::default(),
            detail: Detail::default(),
            due: true,
            told: false,
            wants_progress: false,
            progress_news: false,
            done_news: false,
        };
        self.agenda.due = true;
        self.slots.insert(op).map_err(|_| Error::NoSlot)
    }

    /// An operation.
    #[inline(never)]
    pub fn get(&self, key: Key) -> Option<&Op<H>> {
        self.slots.get(key)
    }

    /// An operation.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut Op<H>> {
        self.slots.get_mut(key)
    }

    /// The operation in slot `index`.
    #[inline]
    pub fn at(&self, index: u8) -> Option<&Op<H>> {
        self.slots.at(usize::from(index)).map(|(_, op)| op)
    }

    /// Whether the host has not been told everything of some operation, since this was asked last.
    #[inline]
    pub fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.agenda.news)
    }

    /// The same, to look at.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.agenda.news
    }

    /// Notes whether the host wants to be told of an operation's progress; its end is told anew if it has not been.
    pub fn wants(&mut self, key: Key, progress: bool) -> Option<()> {
        let op = self.slots.get_mut(key)?;
        op.wants_progress = progress;
        self.agenda.news |= op.done_news;
        Some(())
    }

    /// The operation in slot `index`, if the host has not been told everything of it.
    #[inline]
    pub fn news(&mut self, index: usize) -> Option<(Key, &mut Op<H>)> {
        self.slots.at_mut(index).filter(|(_, op)| op.progress_news || op.done_news)
    }

    /// Slots from this one on hold no operation.
    pub fn used(&self) -> u8 {
        u8::try_from(self.slots.used()).unwrap_or(u8::MAX)
    }

    /// Every operation.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut Op<H>)> {
        self.slots.iter_mut()
    }

    /// Every operation.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &Op<H>)> {
        self.slots.iter()
    }

    /// The earliest time at which an operation is to be polled.
    pub fn deadline(&self) -> Instant {
        if self.agenda.due { Instant::ZERO } else { self.agenda.next }
    }

    /// Calls `handler` on the operation in slot `index` if it runs, and notes whether that has moved it on.
    #[inline]
    fn give<R>(
        &mut self,
        index: u8,
        around: &mut Surroundings<'_, 'a, H>,
        handler: impl FnOnce(&mut Client<H>, &mut Cx<'_, 'a, H>) -> R,
    ) -> Option<(R, &mut Op<H>)> {
        let Ops { slots, agenda } = self;
        let op = running(slots, index)?;
        let before = op.wants_progress.then_some(op.progress);
        let result = handler(&mut op.client, &mut around.cx(index, &mut op.progress, &mut op.detail));
        if before.is_some_and(|before| before != op.progress) {
            op.progress_news = true;
            agenda.news = true;
        }
        Some((result, op))
    }

    /// Calls `handler` on the operation in slot `index` if it runs, then polls it. `None` if it does not run.
    #[cfg(any(feature = "file", feature = "nfs", feature = "http"))]
    #[inline]
    pub fn call<R>(
        &mut self,
        index: u8,
        around: &mut Surroundings<'_, 'a, H>,
        handler: impl FnOnce(&mut Client<H>, &mut Cx<'_, 'a, H>) -> R,
    ) -> Option<R> {
        let (result, _) = self.give(index, around, handler)?;
        self.poll(index, around);
        Some(result)
    }

    /// Polls the operation in slot `index` if it runs.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub fn poll(&mut self, index: u8, around: &mut Surroundings<'_, 'a, H>) {
        let Ops { slots, agenda } = self;
        let Some(op) = running(slots, index) else { return };
        let before = op.wants_progress.then_some(op.progress);
        let step = Op::poll_client(&mut op.client, &mut around.cx(index, &mut op.progress, &mut op.detail));
        op.conclude(agenda, index, around, &step, &before);
    }

    /// Calls `handler` on the operation in slot `index` if it runs, which is then polled by [`Self::follow`]. `None` if it
    /// does not run.
    #[inline]
    pub fn tell<R>(
        &mut self,
        index: u8,
        around: &mut Surroundings<'_, 'a, H>,
        handler: impl FnOnce(&mut Client<H>, &mut Cx<'_, 'a, H>) -> R,
    ) -> Option<R> {
        let (result, op) = self.give(index, around, handler)?;
        op.told = true;
        Some(result)
    }

    /// Has the operation in slot `index` polled by [`Self::follow`].
    pub fn mark(&mut self, index: u8) {
        if let Some(op) = running(&mut self.slots, index) {
            op.told = true;
        }
    }

    /// Polls the operations that were told something.
    pub fn follow(&mut self, around: &mut Surroundings<'_, 'a, H>) {
        for index in 0..self.used() {
            if let Some((_, op)) = self.slots.at_mut(usize::from(index))
                && core::mem::take(&mut op.told)
            {
                self.poll(index, around);
            }
        }
    }

    /// Gives the operation in slot `index` a datagram that came whole, for the short way that some clients have. `false`:
    /// it is to go the long way.
    #[inline]
    pub fn usual(&mut self, index: u8, around: &mut Surroundings<'_, 'a, H>, arrived: &Arrived<'_>) -> bool {
        let Ops { slots, agenda } = self;
        let Some(op) = running(slots, index) else { return false };
        let mut cx = around.cx(index, &mut op.progress, &mut op.detail);
        let Some(step) = each_client!(&mut op.client, c => c.usual(&mut cx, arrived)) else { return false };
        // A usual datagram is one that moves the transfer on.
        let moved = op.wants_progress;
        op.settle(agenda, index, around, &step, moved);
        true
    }

    /// Polls every operation for which it is time, or all of them when what could not be sent may go now. To be called when
    /// [`Self::deadline`] has come, or for all.
    #[inline(never)]
    pub fn tick(&mut self, around: &mut Surroundings<'_, 'a, H>, all: bool) {
        let now = around.stack.now;
        self.agenda.due = false;
        self.agenda.next = Instant::NEVER;
        for index in 0..self.slots.used().min(255) {
            let Some((_, op)) = self.slots.at_mut(index) else { continue };
            let Step::Pending(at) = op.step else { continue };
            if all || op.due || now >= at {
                op.due = false;
                self.poll(index as u8, around);
            } else {
                self.agenda.next = self.agenda.next.min(at);
            }
        }
    }

    /// Cancels an operation: its peer is told, its result is [`Error::Cancelled`]. Nothing happens to one that is done.
    ///
    /// # Errors
    /// [`Error::BadHandle`].
    pub fn cancel(&mut self, key: Key, why: Error, around: &mut Surroundings<'_, 'a, H>) -> Result<()> {
        let op = self.slots.get(key).ok_or(Error::BadHandle)?;
        if matches!(op.step, Step::Done(_)) {
            return Ok(());
        }
        let index = key.index as u8;
        self.with(key, around, |client, cx| each_client!(client, c => c.cancel(cx)));
        if let Some(op) = self.slots.get_mut(key) {
            op.step = Step::Done(Err(why));
            op.done_news = true;
        }
        self.agenda.news = true;
        around.udp.close_client(index);
        around.stack.landing.end_claims(index);
        Ok(())
    }

    /// Calls `handler` on an operation, running or not.
    fn with(
        &mut self,
        key: Key,
        around: &mut Surroundings<'_, 'a, H>,
        handler: impl FnOnce(&mut Client<H>, &mut Cx<'_, 'a, H>),
    ) {
        let Some(op) = self.slots.get_mut(key) else { return };
        handler(&mut op.client, &mut around.cx(key.index as u8, &mut op.progress, &mut op.detail));
    }

    /// Closes an operation, cancelling it first if it still runs; its handle is stale from now on.
    ///
    /// # Errors
    /// [`Error::BadHandle`].
    pub fn close(&mut self, key: Key, around: &mut Surroundings<'_, 'a, H>) -> Result<()> {
        self.cancel(key, Error::Cancelled, around)?;
        self.with(key, around, |client, cx| each_client!(client, c => c.forget(cx)));
        self.slots.remove(key);
        Ok(())
    }
}
