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
        TcpSlot { generation: 1, conn, in_chain: false, links: [NONE; 2], listed: [false; 2], age: 0 }
    }
}

/// The chains, apart from the slots: who looks for a connection touches no other one's slot. The place that a connection's
/// addresses and ports hash to names the first of its chain, the place of its slot the next.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    first: u16,
    next: u16,
    /// More bits of the hash of the connection in this slot.
    mark: u16,
}

impl Chain {
    /// A place of no chain.
    pub const EMPTY: Chain = Chain { first: NONE, next: NONE, mark: 0 };
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
    chains: &'a mut [Chain],
    lists: [Ends; 2],
    /// The slot of the last segment: most come for the same connection.
    last: u16,
    ages: u32,
}

impl<'a, H: Host> Table<'a, H> {
    /// An empty table, of as many slots as there are places for chains. At most 65,535 are used.
    pub(super) fn new(slots: &'a mut [TcpSlot<'a, H>], chains: &'a mut [Chain]) -> Self {
        let most = slots.len().min(chains.len()).min(usize::from(NONE));
        let slots = slots.get_mut(..most).unwrap_or_default();
        for (index, slot) in (0..).zip(slots.iter_mut()) {
            slot.conn.index = index;
        }
        chains.fill(Chain::EMPTY);
        Table { slots, chains, lists: [Ends { head: NONE, tail: NONE }; 2], last: NONE, ages: 0 }
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
        let (place, mark) = secret.place(remote.to_bits(), remote_port, local_port, self.chains.len());
        let mut index = self.chains.get(place)?.first;
        for _ in 0..self.slots.len() {
            let link = self.chains.get(usize::from(index))?;
            if link.mark == mark && self.at(index).is_some_and(is_it) {
                self.last = index;
                return Some(index);
            }
            index = link.next;
        }
        None
    }

    /// Puts the connection at `index` into its chain.
    pub(super) fn chain(&mut self, secret: &Secret, index: u16) {
        let places = self.chains.len();
        let Some(slot) = self.at_mut(index) else { return };
        slot.in_chain = true;
        let (local, remote) = (slot.conn.local, slot.conn.remote);
        let (place, mark) = secret.place(remote.addr.to_bits(), remote.port, local.port, places);
        let Some(place) = self.chains.get_mut(place) else { return };
        let next = core::mem::replace(&mut place.first, index);
        if let Some(link) = self.chains.get_mut(usize::from(index)) {
            (link.next, link.mark) = (next, mark);
        }
    }

    /// Takes the connection at `index` out of its chain: no segment finds it any more.
    pub(super) fn unchain(&mut self, secret: &Secret, index: u16) {
        let places = self.chains.len();
        let Some(slot) = self.at_mut(index).filter(|slot| slot.in_chain) else { return };
        slot.in_chain = false;
        let (local, remote) = (slot.conn.local, slot.conn.remote);
        let (place, _) = secret.place(remote.addr.to_bits(), remote.port, local.port, places);
        let Some(link) = self.chains.get_mut(usize::from(index)) else { return };
        let next = core::mem::replace(&mut link.next, NONE);
        let Some(place) = self.chains.get_mut(place) else { return };
        if place.first == index {
            place.first = next;
            return;
        }
        let mut before = place.first;
        for _ in 0..self.slots.len() {
            let Some(link) = self.chains.get_mut(usize::from(before)) else { return };
            if link.next == index {
                link.next = next;
                return;
            }
            before = link.next;
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
