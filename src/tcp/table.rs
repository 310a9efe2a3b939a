//! The table of connections: slots, their names, chains by address and port, and the lists of those that have something to
//! send or to tell. Looking up a connection costs the same with one as with a hundred; lists are walked only where there
//! is something in them.

use super::conn::{Connection, SlotMemory, State};
use super::options::Options;
use super::secret::Secret;
use crate::storage::host::{Endpoint, Host};
use crate::storage::slots::Key;
use core::net::Ipv4Addr;

/// No slot.
const NONE: u16 = u16::MAX;

/// The place of one connection.
pub struct TcpSlot<'a, H: Host> {
    generation: u16,
    pub(super) conn: Connection<'a, H>,
    /// The next of its chain.
    chained: u16,
    in_chain: bool,
    /// The next of each list.
    links: [u16; 2],
    listed: [bool; 2],
    /// Ascends with each connection: which came first.
    pub(super) age: u32,
}

impl<'a, H: Host> TcpSlot<'a, H> {
    /// A free slot with memory of its own.
    pub fn new(memory: SlotMemory<'a>) -> Self {
        let mut conn = Connection::new(0, memory);
        conn.orphan = true;
        TcpSlot { generation: 1, conn, chained: NONE, in_chain: false, links: [NONE; 2], listed: [false; 2], age: 0 }
    }
}

/// A list of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// Those with something to send.
    Ready = 0,
    /// Those with something to tell.
    Events = 1,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    head: u16,
    tail: u16,
}

/// The table.
pub(super) struct Table<'a, H: Host> {
    slots: &'a mut [TcpSlot<'a, H>],
    buckets: &'a mut [u16],
    lists: [Ends; 2],
    /// The slot of the last segment: most come for the same connection.
    last: u16,
    ages: u32,
}

impl<'a, H: Host> Table<'a, H> {
    /// An empty table; `buckets` should be about as many as `slots`, at least one. At most 65,535 slots are used.
    pub(super) fn new(slots: &'a mut [TcpSlot<'a, H>], buckets: &'a mut [u16]) -> Self {
        let most = slots.len().min(usize::from(NONE));
        let slots = slots.get_mut(..most).unwrap_or_default();
        for (index, slot) in (0..).zip(slots.iter_mut()) {
            slot.conn.index = index;
        }
        buckets.fill(NONE);
        Table { slots, buckets, lists: [Ends { head: NONE, tail: NONE }; 2], last: NONE, ages: 0 }
    }

    /// Number of slots.
    pub(super) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// The slot at `index`.
    #[inline]
    pub(super) fn at(&self, index: u16) -> Option<&TcpSlot<'a, H>> {
        self.slots.get(usize::from(index))
    }

    /// The slot at `index`.
    #[inline]
    pub(super) fn at_mut(&mut self, index: u16) -> Option<&mut TcpSlot<'a, H>> {
        self.slots.get_mut(usize::from(index))
    }

    /// All slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = &TcpSlot<'a, H>> {
        self.slots.iter()
    }

    /// The name of the connection at `index`.
    pub(super) fn key(&self, index: u16) -> Option<Key> {
        self.at(index).map(|slot| Key { index, generation: slot.generation })
    }

    /// The connection named `key`; `None` for a stale name.
    #[inline]
    pub(super) fn get(&self, key: Key) -> Option<&Connection<'a, H>> {
        let slot = self.at(key.index)?;
        (slot.generation == key.generation && !slot.conn.is_free()).then_some(&slot.conn)
    }

    /// The connection named `key`; `None` for a stale name.
    #[inline]
    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut Connection<'a, H>> {
        let slot = self.at_mut(key.index)?;
        (slot.generation == key.generation && !slot.conn.is_free()).then_some(&mut slot.conn)
    }

    /// The connection named `key`, also one that is in no state yet.
    pub(super) fn get_mut_even_closed(&mut self, key: Key) -> Option<&mut Connection<'a, H>> {
        let slot = self.at_mut(key.index)?;
        (slot.generation == key.generation).then_some(&mut slot.conn)
    }

    /// The connection between two ends.
    #[inline]
    pub(super) fn find(
        &mut self,
        secret: &Secret,
        local: Ipv4Addr,
        local_port: u16,
        remote: Ipv4Addr,
        remote_port: u16,
    ) -> Option<u16> {
        let is_it = |slot: &TcpSlot<'a, H>| {
            let conn = &slot.conn;
            conn.remote.port == remote_port
                && conn.local.port == local_port
                && conn.remote.addr == remote
                && conn.local.addr == local
        };
        if self.at(self.last).is_some_and(|slot| slot.in_chain && is_it(slot)) {
            return Some(self.last);
        }
        let bucket = secret.bucket(remote.to_bits(), remote_port, local_port, self.buckets.len());
        let mut index = self.buckets.get(bucket).copied()?;
        for _ in 0..self.slots.len() {
            let slot = self.at(index)?;
            if is_it(slot) {
                self.last = index;
                return Some(index);
            }
            index = slot.chained;
        }
        None
    }

    /// Puts the connection at `index` into its chain.
    pub(super) fn chain(&mut self, secret: &Secret, index: u16) {
        let buckets = self.buckets.len();
        let Some(slot) = self.at(index) else { return };
        let (local, remote) = (slot.conn.local, slot.conn.remote);
        let bucket = secret.bucket(remote.addr.to_bits(), remote.port, local.port, buckets);
        let Some(head) = self.buckets.get_mut(bucket) else { return };
        let next = core::mem::replace(head, index);
        if let Some(slot) = self.at_mut(index) {
            slot.chained = next;
            slot.in_chain = true;
        }
    }

    /// Takes the connection at `index` out of its chain: no segment finds it any more.
    pub(super) fn unchain(&mut self, secret: &Secret, index: u16) {
        let buckets = self.buckets.len();
        let Some(slot) = self.at_mut(index).filter(|slot| slot.in_chain) else { return };
        slot.in_chain = false;
        let next = core::mem::replace(&mut slot.chained, NONE);
        let (local, remote) = (slot.conn.local, slot.conn.remote);
        let bucket = secret.bucket(remote.addr.to_bits(), remote.port, local.port, buckets);
        let Some(head) = self.buckets.get_mut(bucket) else { return };
        if *head == index {
            *head = next;
            return;
        }
        let mut before = *head;
        for _ in 0..self.slots.len() {
            let Some(slot) = self.at_mut(before) else { return };
            if slot.chained == index {
                slot.chained = next;
                return;
            }
            before = slot.chained;
        }
    }

    /// Whether any connection uses a local port towards `remote`.
    pub(super) fn uses(&self, local_port: u16, remote: Endpoint) -> bool {
        self.slots.iter().any(|s| s.in_chain && s.conn.local.port == local_port && s.conn.remote == remote)
    }

    /// A slot for another connection: a free one, else the one that has been in TIME-WAIT longest and that nobody asks for.
    /// Whether it had to be given up is told.
    pub(super) fn free(&self) -> Option<(u16, bool)> {
        let index = |at: usize| u16::try_from(at).ok();
        if let Some(at) = self.slots.iter().position(|slot| slot.conn.is_free()) {
            return Some((index(at)?, false));
        }
        let resting = |slot: &&TcpSlot<'a, H>| {
            let conn = &slot.conn;
            conn.orphan && conn.state == State::TimeWait && !conn.tx.queue.is_held()
        };
        let oldest = self.slots.iter().filter(resting).min_by_key(|slot| slot.conn.state_at)?;
        Some((oldest.conn.index, true))
    }

    /// The connection closed by its host longest ago that has nothing more to tell its peer than the end: it may make
    /// room for one that is wanted.
    pub(super) fn parting(&self) -> Option<u16> {
        let may = |slot: &&TcpSlot<'a, H>| {
            let (conn, queue) = (&slot.conn, &slot.conn.tx.queue);
            let told = conn.tx.una >= queue.end() && !queue.is_held();
            conn.orphan && conn.state != State::Closed && told
        };
        self.slots.iter().filter(may).min_by_key(|slot| (slot.conn.state_at, slot.age)).map(|slot| slot.conn.index)
    }

    /// Makes the slot at `index` another connection's; its name.
    pub(super) fn renew(&mut self, secret: &Secret, index: u16, options: Options) -> Option<Key> {
        self.unchain(secret, index);
        self.ages = self.ages.wrapping_add(1);
        let age = self.ages;
        let slot = self.at_mut(index)?;
        slot.generation = match slot.generation.wrapping_add(1) {
            0 => 1,
            next => next,
        };
        slot.age = age;
        slot.conn.renew(options);
        self.key(index)
    }

    /// Puts a connection at the end of a list, if it is not in it.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    pub(super) fn enlist(&mut self, list: List, index: u16) {
        let at = list as usize;
        let Some(slot) = self.at_mut(index) else { return };
        let (Some(listed), Some(link)) = (slot.listed.get_mut(at), slot.links.get_mut(at)) else { return };
        if core::mem::replace(listed, true) {
            return;
        }
        *link = NONE;
        let Some(tail) = self.lists.get_mut(at).map(|ends| core::mem::replace(&mut ends.tail, index)) else { return };
        match self.at_mut(tail).and_then(|slot| slot.links.get_mut(at)) {
            Some(link) => *link = index,
            None => {
                if let Some(ends) = self.lists.get_mut(at) {
                    ends.head = index;
                }
            }
        }
    }

    /// Takes the first connection out of a list.
    #[inline]
    pub(super) fn unlist(&mut self, list: List) -> Option<u16> {
        let at = list as usize;
        let index = self.lists.get(at)?.head;
        let slot = self.at_mut(index)?;
        *slot.listed.get_mut(at)? = false;
        let next = *slot.links.get(at)?;
        let ends = self.lists.get_mut(at)?;
        ends.head = next;
        if next == NONE {
            ends.tail = NONE;
        }
        Some(index)
    }

    /// Whether a list has anything in it.
    #[inline]
    pub(super) fn has(&self, list: List) -> bool {
        self.lists.get(list as usize).is_some_and(|ends| ends.head != NONE)
    }
}
