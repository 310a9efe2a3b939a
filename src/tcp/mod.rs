//! TCP (RFC 9293): connections in memory given at start, received straight into the memory of their users and sent from
//! it. No I/O besides [`Stack::send`]; time and chance are the stack's. What the ends of a stream mean is for whoever is
//! above.
//!
//! One pass: [`Tcp::receive`] for each segment, then [`Tcp::poll`] once, which runs timers that are due and sends what may
//! be sent; then [`Tcp::next_event`] until it has nothing to tell. Acknowledgements leave as soon as they are due, data
//! leaves in `poll`, full segments also as they are given ([`Tcp::send_now`]). Nothing here costs more with idle connections about.

#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

mod congestion;
mod conn;
mod demux;
mod files;
mod lane;
mod listen;
pub mod options;
pub mod pages;
mod pass;
mod pmtu;
mod receive;
mod recovery;
mod rtt;
pub mod scoreboard;
mod secret;
mod send;
mod sender;
pub mod seq;
pub mod source;
pub mod spans;
mod state;
pub mod stream;
mod table;
mod timers;
mod train;

pub use conn::{Events, Info, SlotMemory, State};
pub use listen::Listener;
pub use options::{Algorithm, Keepalive, Options};
pub use pages::PageSlot;
pub use source::{FileState, Ticket};
pub use spans::RegionState;
pub use table::{Link, TcpSlot};

use crate::stack::Stack;
use crate::stack::stats::Counter;
use crate::storage::error::{Error, Result};
use crate::storage::host::{Endpoint, Host, Memory, SourceOf};
use crate::storage::slots::{Key, Slot, Slots};
use crate::storage::time::{Duration, Instant};
use conn::{Connection, Context, Due, Limit};
use options::Stamps;
use pages::Pages;
use pmtu::Path;
use secret::Secret;
use table::{List, Table};

/// The memory TCP works in; each slice's length is a limit.
pub struct TcpMemory<'a, H: Host> {
    /// Connections.
    pub slots: &'a mut [TcpSlot<'a, H>],
    /// Where the chains begin by which connections are looked up: [`Link::chains`].
    pub chains: &'a mut [Link],
    /// Their links: as many as connections.
    pub links: &'a mut [Link],
    /// Listeners.
    pub listeners: &'a mut [Slot<Listener>],
    /// Pages lent to NICs at one time, of all connections; a memory source takes one.
    pub pages: &'a mut [PageSlot<H::Memory>],
}

/// What can be told of next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something happened on a connection.
    Connection(Key, Events),
    /// A listener has a connection to accept.
    Listener(Key),
}

/// TCP.
pub struct Tcp<'a, H: Host> {
    /// How long a connection rests after both ends closed it: 2 MSL. Also how long a peer has to finish when nobody reads
    /// any more.
    pub time_wait: Duration,
    table: Table<'a, H>,
    listeners: Slots<'a, Listener>,
    fresh_listeners: bool,
    pages: Pages<'a, H::Memory>,
    secret: Secret,
    resets: Limit,
    /// The lane of the connection that the last segments were for.
    lane: Option<lane::Lane>,
    /// The connection that the last segment without a lane was for.
    candidate: Option<Key>,
    /// No timer is due before this.
    earliest: Instant,
    /// Some connection's output waits for a neighbour or a page.
    blocked: bool,
}

/// Segment size we offer towards a NIC of this MTU.
fn mss_for(mtu: u16) -> u16 {
    mtu.saturating_sub(40)
}

impl<'a, H: Host> Tcp<'a, H> {
    /// TCP without connections. Its secret is drawn from the host's randomness now.
    pub fn new(host: &mut H, memory: TcpMemory<'a, H>) -> Self {
        Tcp {
            time_wait: Duration::from_secs(60),
            table: Table::new(memory.slots, memory.chains, memory.links),
            listeners: Slots::new(memory.listeners),
            fresh_listeners: false,
            pages: Pages::new(memory.pages),
            secret: Secret::new(host),
            resets: Limit::new(50, Duration::from_millis(10)),
            lane: None,
            candidate: None,
            earliest: Instant::NEVER,
            blocked: false,
        }
    }

    /// Number of connections that there is memory for.
    pub fn capacity(&self) -> usize {
        self.table.capacity()
    }

    /// Opens a connection to `remote` (RFC 9293 §3.10.1). `local` may leave address and port open. The SYN leaves in the
    /// next [`Self::poll`].
    ///
    /// # Errors
    /// [`Error::Invalid`]: an address no host can have, or port 0. [`Error::InUse`]: the same connection exists.
    /// [`Error::NoSlot`]: all are in use. [`Error::NetworkUnreachable`], [`Error::NetworkDown`]: no way there.
    pub fn connect(
        &mut self,
        stack: &mut Stack<'a, H>,
        local: Endpoint,
        remote: Endpoint,
        options: Options,
    ) -> Result<Key> {
        if !crate::stack::interface::is_host_address(remote.addr) || remote.port == 0 {
            return Err(Error::Invalid);
        }
        let hop = stack.route(local.addr, remote.addr, None)?;
        if hop.src.is_unspecified() {
            return Err(Error::NetworkUnreachable);
        }
        let port = match local.port {
            0 => self.free_port(stack, remote)?,
            port if self.table.uses(port, remote) => return Err(Error::InUse),
            port => port,
        };
        let local = Endpoint { addr: hop.src, port };
        if let (None, Some(index)) = (self.table.free(), self.table.parting()) {
            stack.stats.count(Counter::TcpEvicted);
            self.drop_connection(stack, index);
        }
        let key = self.open(stack, local, remote, hop.nic, options)?;
        let now = stack.now;
        if let Some(conn) = self.table.get_mut(key) {
            conn.state = State::SynSent;
            conn.due = Due::Syn;
            conn.ready = true;
            conn.tx.give_up_at = now + conn.options.connect_timeout;
        }
        self.settle(stack, key.index);
        Ok(key)
    }

    fn free_port(&mut self, stack: &mut Stack<'a, H>, remote: Endpoint) -> Result<u16> {
        // Fewer connections than ports: one of so many tries is free.
        for _ in 0..=self.table.capacity() {
            let port = stack.ports.next(&mut stack.host);
            if !self.table.uses(port, remote) {
                return Ok(port);
            }
        }
        Err(Error::InUse)
    }

    /// A fresh connection between two ends, in no state yet.
    fn open(
        &mut self,
        stack: &mut Stack<'a, H>,
        local: Endpoint,
        remote: Endpoint,
        nic: crate::stack::interface::NicId,
        options: Options,
    ) -> Result<Key> {
        let mtu = stack.interface(nic).ok_or(Error::NetworkDown)?.mtu;
        let (index, evicted) = self.table.free().ok_or(Error::NoSlot)?;
        if evicted {
            stack.stats.count(Counter::TcpEvicted);
        }
        let stamped = options.timestamps;
        let key = self.table.renew(&self.secret, index, options).ok_or(Error::NoSlot)?;
        let now = stack.now;
        let iss = self.secret.initial(now, local, remote);
        let offset = self.secret.timestamp_offset(local, remote);
        let conn = self.table.get_mut_even_closed(key).ok_or(Error::NoSlot)?;
        conn.orphan = false;
        conn.local = local;
        conn.remote = remote;
        conn.nic = nic;
        conn.pseudo = crate::stack::egress::pseudo_header(remote.addr, local.addr, crate::wire::ipv4::Protocol::TCP, 0);
        conn.iss = iss;
        conn.path = Path::new(mtu);
        conn.rx.mss = u32::from(mss_for(mtu));
        conn.stamps = stamped.then_some(Stamps { offset, recent: 0, recent_at: Instant::ZERO });
        self.table.chain(&self.secret, index);
        Ok(key)
    }

    /// Listens at `local`; an unspecified address takes connections to any of ours.
    ///
    /// # Errors
    /// [`Error::Invalid`]: port 0. [`Error::InUse`]: something listens there. [`Error::NoSlot`]: all listeners are in use.
    pub fn listen(&mut self, local: Endpoint, backlog: u16, options: Options) -> Result<Key> {
        if local.port == 0 {
            return Err(Error::Invalid);
        }
        if self.listeners.iter().any(|(_, l)| l.local == local) {
            return Err(Error::InUse);
        }
        let listener = Listener { local, backlog: backlog.max(1), options, fresh: false };
        self.listeners.insert(listener).map_err(|_| Error::NoSlot)
    }

    /// Stops listening; connections that were not accepted are reset.
    pub fn unlisten(&mut self, stack: &mut Stack<'a, H>, listener: Key) -> Result<()> {
        self.listeners.remove(listener).ok_or(Error::BadHandle)?;
        for at in 0..self.table.capacity() {
            let Some(index) = u16::try_from(at).ok() else { break };
            let Some(slot) = self.table.at(index) else { break };
            if slot.conn.parent == Some(listener) && !slot.conn.is_free() {
                self.drop_connection(stack, index);
            }
        }
        Ok(())
    }

    /// Takes the connection that has waited longest at a listener.
    ///
    /// # Errors
    /// [`Error::Again`]: there is none. [`Error::BadHandle`].
    pub fn accept(&mut self, listener: Key) -> Result<Key> {
        self.listeners.get(listener).ok_or(Error::BadHandle)?;
        let waiting = |slot: &&TcpSlot<'a, H>| {
            let conn = &slot.conn;
            conn.parent == Some(listener) && conn.state.is_synchronized()
        };
        let oldest = self.table.iter().filter(waiting).min_by_key(|slot| slot.age).ok_or(Error::Again)?;
        let index = oldest.conn.index;
        let key = self.table.key(index).ok_or(Error::Again)?;
        if let Some(conn) = self.table.get_mut(key) {
            conn.parent = None;
            if !conn.events.is_empty() {
                self.table.enlist(List::Events, index);
            }
        }
        Ok(key)
    }

    fn get(&self, key: Key) -> Result<&Connection<'a, H>> {
        self.table.get(key).filter(|conn| !conn.orphan).ok_or(Error::BadHandle)
    }

    fn get_mut(&mut self, key: Key) -> Result<&mut Connection<'a, H>> {
        let Tcp { table, pages, .. } = self;
        let conn = table.get_mut(key).filter(|conn| !conn.orphan).ok_or(Error::BadHandle)?;
        conn.take_acks(pages);
        Ok(conn)
    }

    /// Why nothing can be sent, if so.
    fn may_send(conn: &Connection<'a, H>) -> Result<()> {
        if let Some(error) = conn.error {
            return Err(error);
        }
        match conn.state {
            State::Closed | State::TimeWait => Err(Error::NotConnected),
            _ if conn.tx.fin => Err(Error::NotConnected),
            _ => Ok(()),
        }
    }

    /// Appends bytes to the send ring; how many fit, 0 when none do. They leave in the next [`Self::poll`].
    ///
    /// # Errors
    /// The connection's own error; [`Error::NotConnected`] after [`Self::shutdown`]; [`Error::BadHandle`].
    pub fn send(&mut self, key: Key, bytes: &[u8]) -> Result<usize> {
        let conn = self.get_mut(key)?;
        Self::may_send(conn)?;
        let count = conn.tx.queue.push(bytes);
        if count > 0 {
            self.table.enlist(List::Ready, key.index);
        }
        Ok(count)
    }

    /// The same, but what fills segments that may be sent leaves at once, if nothing waits before it: its bytes go to
    /// the frame and to the ring while the caches have them.
    ///
    /// # Errors
    /// Those of [`Self::send`].
    pub fn send_now(&mut self, stack: &mut Stack<'a, H>, key: Key, bytes: &[u8]) -> Result<usize> {
        let conn = self.get_mut(key)?;
        Self::may_send(conn)?;
        let mut cx = Context { stack, pages: &mut self.pages, time_wait: self.time_wait };
        let sent = match self.table.get_mut(key) {
            Some(conn) => conn.send_through(&mut cx, bytes),
            None => 0,
        };
        if sent > 0 {
            self.table.enlist(List::Ready, key.index);
        }
        let rest = bytes.get(sent..).unwrap_or_default();
        Ok(sent.saturating_add(self.send(key, rest)?))
    }

    /// Bytes that the send ring has room for.
    pub fn send_room(&self, key: Key) -> Result<usize> {
        Ok(self.get(key)?.tx.queue.free())
    }

    /// Bytes given to be sent and not yet acknowledged.
    pub fn unsent(&self, key: Key) -> Result<u64> {
        let conn = self.get(key)?;
        Ok(conn.tx.queue.end().since(conn.tx.acked()))
    }

    /// Sends `count` bytes of a file from `offset` on, behind what was given before. Its state is asked for by
    /// [`Self::file`], and it is taken out by [`Self::take_file`].
    ///
    /// # Errors
    /// Those of [`Self::send`]; [`Error::Again`]: four files are there already; [`Error::Invalid`]: outside the source.
    pub fn sendfile(&mut self, key: Key, source: SourceOf<H>, offset: u64, count: u64) -> Result<Ticket> {
        let conn = self.get_mut(key)?;
        Self::may_send(conn)?;
        let ticket = conn.tx.queue.push_file(source, offset, count)?;
        if conn.tx.queue.any_file_done() {
            conn.raise(Events::FILE);
            self.table.enlist(List::Events, key.index);
        }
        self.table.enlist(List::Ready, key.index);
        Ok(ticket)
    }

    /// How far a file has come; also after the connection was closed, as long as it goes on.
    ///
    /// # Errors
    /// [`Error::NotFound`]: no such file; [`Error::BadHandle`].
    pub fn file(&self, key: Key, ticket: Ticket) -> Result<FileState> {
        self.table.get(key).ok_or(Error::BadHandle)?.tx.queue.file(ticket).ok_or(Error::NotFound)
    }

    /// Takes a file that is done; its source comes back.
    ///
    /// # Errors
    /// [`Error::Again`]: it goes on, or no such file; [`Error::BadHandle`].
    pub fn take_file(&mut self, key: Key, ticket: Ticket) -> Result<SourceOf<H>> {
        self.table.get_mut(key).ok_or(Error::BadHandle)?.tx.queue.take_file(ticket).ok_or(Error::Again)
    }

    /// Ends a file where its last sent byte ends. What was queued behind it is dropped; what was sent must still be
    /// acknowledged before it is done, with [`Error::Cancelled`]. To be rid of it at once, abort the connection.
    pub fn cancel_file(&mut self, key: Key, ticket: Ticket) -> Result<()> {
        let index = key.index;
        let slot = self.table.get_mut(key).ok_or(Error::BadHandle)?;
        let nxt = slot.tx.nxt;
        if !slot.tx.queue.cancel(&mut self.pages, ticket, nxt) {
            return Err(Error::NotFound);
        }
        slot.raise(Events::FILE);
        self.table.enlist(List::Events, index);
        Ok(())
    }

    /// Moves readable bytes of the ring to `out`. `Ok(0)` for a buffer with room: the peer has finished.
    ///
    /// # Errors
    /// [`Error::Again`]: nothing has come yet, or a region stands before it. The connection's own error, once what had
    /// come is read. [`Error::BadHandle`].
    pub fn recv(&mut self, stack: &mut Stack<'a, H>, key: Key, out: &mut [u8]) -> Result<usize> {
        let conn = self.get_mut(key)?;
        let count = conn.rx.queue.read(out);
        if count == 0 && !out.is_empty() {
            return Self::end_of_stream(conn);
        }
        self.after_reading(stack, key.index);
        Ok(count)
    }

    /// Why nothing is readable: `Ok(0)` at the end of the stream.
    fn end_of_stream(conn: &Connection<'a, H>) -> Result<usize> {
        if conn.rx.queue.readable() > 0 || conn.rx.queue.front().is_some_and(|region| region.is_full()) {
            return Err(Error::Again);
        }
        match (conn.rx.fin_taken, conn.error, conn.state) {
            (true, ..) => Ok(0),
            (_, Some(error), _) => Err(error),
            (_, None, State::Closed) => Err(Error::NotConnected),
            _ => Err(Error::Again),
        }
    }

    /// The readable bytes of the ring where they lie, as two spans.
    pub fn peek(&self, key: Key) -> Result<(&[u8], &[u8])> {
        Ok(self.get(key)?.rx.queue.peek())
    }

    /// Drops the first `count` readable bytes; how many that were.
    pub fn consume(&mut self, stack: &mut Stack<'a, H>, key: Key, count: usize) -> Result<usize> {
        let count = self.get_mut(key)?.rx.queue.consume(count);
        self.after_reading(stack, key.index);
        Ok(count)
    }

    /// Whether the peer has finished and everything it sent was read.
    pub fn is_finished(&self, key: Key) -> Result<bool> {
        let conn = self.get(key)?;
        let empty = conn.rx.queue.readable() == 0 && conn.rx.queue.regions() == 0;
        Ok(empty && (conn.rx.fin_taken || conn.state == State::Closed))
    }

    /// Has the next `count` bytes behind the queue go through the ring, before any region queued later.
    pub fn queue_ring(&mut self, key: Key, count: u64) -> Result<()> {
        self.get_mut(key)?.rx.queue.queue_ring(count);
        Ok(())
    }

    /// Queues a region for the bytes that follow the queue: `len` bytes of `memory` from `at` on. Bytes that have come
    /// already move there.
    ///
    /// # Errors
    /// [`Error::Invalid`]: empty, outside the memory, or behind the end of any stream. [`Error::Again`]: four regions are
    /// queued already.
    /// [`Error::BadHandle`].
    pub fn recv_into(
        &mut self,
        stack: &mut Stack<'a, H>,
        key: Key,
        memory: &H::Memory,
        at: usize,
        len: usize,
    ) -> Result<()> {
        let conn = self.get_mut(key)?;
        if len == 0 {
            return Err(Error::Invalid);
        }
        let region = memory.slice(at, len).map_err(|_| Error::Invalid)?;
        if !conn.rx.queue.queue_region(region) {
            let full = conn.rx.queue.regions() >= spans::REGIONS;
            return Err(if full { Error::Again } else { Error::Invalid });
        }
        if conn.rx.queue.front().is_some_and(|region| region.filled > 0) {
            conn.raise(Events::REGION);
            self.table.enlist(List::Events, key.index);
        }
        self.after_reading(stack, key.index);
        Ok(())
    }

    /// The region at the front of the queue; `None` when there is none. It is to be finished with when it is full, or when
    /// the stream ended before that: what follows becomes readable then.
    pub fn region(&self, key: Key) -> Result<Option<RegionState>> {
        Ok(self.get(key)?.rx.queue.front())
    }

    /// Takes the region at the front out of the queue, full or not: nothing is written to it again. Bytes of it beyond
    /// those filled in order are undefined.
    pub fn finish_region(&mut self, stack: &mut Stack<'a, H>, key: Key) -> Result<Option<RegionState>> {
        let state = self.get_mut(key)?.rx.queue.finish_front();
        self.after_reading(stack, key.index);
        Ok(state)
    }

    /// The reader made room: tells the peer if that is worth it.
    fn after_reading(&mut self, stack: &mut Stack<'a, H>, index: u16) {
        let Some(slot) = self.table.at_mut(index) else { return };
        let conn = &mut slot.conn;
        conn.rx.changed();
        if conn.state.is_synchronized() && conn.state.receives() && conn.rx.should_update() {
            conn.rx.ack_now = true;
            self.settle(stack, index);
        }
    }

    /// Sends a FIN behind everything given so far (RFC 9293 §3.10.4); receiving goes on.
    ///
    /// # Errors
    /// [`Error::NotConnected`]: there is no connection any more; [`Error::BadHandle`].
    pub fn shutdown(&mut self, stack: &mut Stack<'a, H>, key: Key) -> Result<()> {
        let conn = self.get_mut(key)?;
        match conn.state {
            State::Closed | State::TimeWait => return Err(Error::NotConnected),
            _ => conn.tx.fin = true,
        }
        conn.ready = true;
        self.settle(stack, key.index);
        Ok(())
    }

    /// Closes a connection: what was given is sent, then a FIN; the name is no longer valid. If bytes that came were not
    /// read, or more come, the peer gets a reset instead (RFC 9293 §3.10.4, RFC 2525 §2.17).
    pub fn close(&mut self, stack: &mut Stack<'a, H>, key: Key) -> Result<()> {
        let time_wait = self.time_wait;
        let conn = self.get_mut(key)?;
        let now = stack.now;
        let unread = conn.rx.queue.has_unread();
        match conn.state {
            State::SynSent | State::SynReceived | State::Closed => {
                self.drop_connection(stack, key.index);
                return Ok(());
            }
            _ if unread && !conn.rx.fin_taken => {
                self.drop_connection(stack, key.index);
                return Ok(());
            }
            _ => {}
        }
        conn.orphan = true;
        conn.tx.fin = true;
        conn.ready = true;
        // Regions are their owner's again.
        while conn.rx.queue.finish_front().is_some() {}
        conn.rx.changed();
        conn.limit_fin_wait_2(now, time_wait);
        self.settle(stack, key.index);
        Ok(())
    }

    /// Ends a connection at once: the peer gets a reset (RFC 9293 §3.10.5). The name is no longer valid.
    pub fn abort(&mut self, stack: &mut Stack<'a, H>, key: Key) -> Result<()> {
        self.get(key)?;
        self.drop_connection(stack, key.index);
        Ok(())
    }

    fn drop_connection(&mut self, stack: &mut Stack<'a, H>, index: u16) {
        let Some(slot) = self.table.at_mut(index) else { return };
        let conn = &mut slot.conn;
        let mut cx = Context { stack, pages: &mut self.pages, time_wait: self.time_wait };
        conn.take_acks(cx.pages);
        let owes = match conn.state {
            State::Closed | State::SynSent | State::TimeWait => false,
            State::LastAck | State::Closing => !conn.tx.is_done(),
            _ => true,
        };
        if owes {
            conn.send_reset(&mut cx);
        }
        conn.end(cx.pages, Some(Error::ConnectionAborted));
        conn.orphan = true;
        conn.parent = None;
        while conn.rx.queue.finish_front().is_some() {}
        self.settle(stack, index);
    }

    /// How a connection is doing.
    pub fn info(&self, key: Key) -> Result<Info> {
        Ok(self.get(key)?.info())
    }

    /// Why a connection ended, if it did by an error.
    pub fn error(&self, key: Key) -> Result<Option<Error>> {
        Ok(self.get(key)?.error)
    }

    /// Switches Nagle's algorithm.
    pub fn set_nagle(&mut self, key: Key, on: bool) -> Result<()> {
        self.get_mut(key)?.options.nagle = on;
        self.table.enlist(List::Ready, key.index);
        Ok(())
    }

    /// Sets or stops keepalive probes.
    pub fn set_keepalive(&mut self, stack: &Stack<'a, H>, key: Key, keepalive: Option<Keepalive>) -> Result<()> {
        let now = stack.now;
        let conn = self.get_mut(key)?;
        conn.options.keepalive = keepalive;
        conn.keep_missed = 0;
        conn.keep_at = match keepalive {
            Some(keepalive) if conn.state.is_synchronized() => now + keepalive.idle,
            _ => Instant::NEVER,
        };
        self.earliest = self.earliest.min(self.table.get(key).map_or(Instant::NEVER, |c| c.keep_at));
        Ok(())
    }

    /// Sets how long sent data may go unacknowledged.
    pub fn set_user_timeout(&mut self, key: Key, timeout: Duration) -> Result<()> {
        self.get_mut(key)?.options.user_timeout = timeout;
        Ok(())
    }

    /// What happened since the last call, on one connection or listener; each call tells of another until there is none.
    pub fn next_event(&mut self) -> Option<Event> {
        if core::mem::take(&mut self.fresh_listeners) {
            for (key, listener) in self.listeners.iter_mut() {
                if core::mem::take(&mut listener.fresh) {
                    self.fresh_listeners = true;
                    return Some(Event::Listener(key));
                }
            }
        }
        while let Some(index) = self.table.unlist(List::Events) {
            let Some(key) = self.table.key(index) else { continue };
            // What happens before a connection is accepted is told after.
            let Some(conn) = self.table.get_mut(key).filter(|conn| conn.parent.is_none()) else { continue };
            let events = core::mem::take(&mut conn.events);
            if !events.is_empty() && !conn.orphan {
                return Some(Event::Connection(key, events));
            }
        }
        None
    }

    /// Whether [`Self::next_event`] has something to tell.
    #[inline]
    pub fn has_events(&self) -> bool {
        self.fresh_listeners || self.table.has(List::Events)
    }

    /// What is so on a connection now, whatever was told before.
    pub fn readiness(&self, key: Key) -> Result<Events> {
        let conn = self.get(key)?;
        let mut events = Events::empty();
        events.set(Events::CONNECTED, conn.state.is_synchronized());
        events.set(Events::FINISHED, conn.rx.fin_taken);
        events.set(Events::CLOSED, matches!(conn.state, State::Closed | State::TimeWait));
        events.set(Events::READABLE, conn.rx.queue.readable() > 0 || conn.rx.fin_taken || conn.state == State::Closed);
        events.set(Events::WRITABLE, Self::may_send(conn).is_ok() && conn.tx.queue.free() > 0);
        events.set(Events::REGION, conn.rx.queue.front().is_some_and(|region| region.is_full()));
        events.set(Events::SENT, conn.tx.una >= conn.tx.queue.end());
        events.set(Events::FILE, conn.tx.queue.any_file_done());
        Ok(events)
    }

    /// Has [`Self::next_event`] tell what is so on a connection now.
    pub fn tell_again(&mut self, key: Key) {
        let Ok(now) = self.readiness(key) else { return };
        if let Ok(conn) = self.get_mut(key) {
            conn.raise(now);
            self.table.enlist(List::Events, key.index);
        }
    }
}

#[cfg(test)]
mod tests;
