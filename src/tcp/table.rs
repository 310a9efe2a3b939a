//! The table of connections: slots, their names, chains by address and port, and the lists of those that have something to
//! send or to tell. Looking up a connection costs the same with one as with a hundred; lists are walked only where there
//! is something in them.

use super::conn::{Connection, SlotMemory, State};
use super::options::Options;
use super::secret::Secret;
use crate::storage::host::{Endpoint, Host};
use crate::storage::slots::Key;

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
/// addresses and ports hash to is the first link of its chain, the links of the others are those of the slots before them. Who
/// was looked for last comes first, so among many connections those in use are found where chains begin.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    to: u16,
    /// More bits of the hash of the connection in that slot.
    mark: u16,
}

impl Link {
    /// The end of a chain.
    pub const END: Link = Link { to: NONE, mark: 0 };

    /// How many chains there are for so many connections: half as many, which a small TLB needs few pages for.
    pub const fn chains(connections: u16) -> u16 {
        connections.div_ceil(2)
    }
}

/// Who a connection is between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Between {
    pub local: Endpoint,
    pub remote: Endpoint,
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
    chains: &'a mut [Link],
    /// Behind each slot, the next of its chain.
    links: &'a mut [Link],
    lists: [Ends; 2],
    /// The slot of the last segment, and between whom that connection is: most come for the same one.
    last: Option<(Between, u16)>,
    ages: u32,
}

impl<'a, H: Host> Table<'a, H> {
    /// An empty table, of as many slots as there are links. At most 65,535 are used.
    pub(super) fn new(slots: &'a mut [TcpSlot<'a, H>], chains: &'a mut [Link], links: &'a mut [Link]) -> Self {
        let most = slots.len().min(links.len()).min(usize::from(NONE));
        let slots = slots.get_mut(..most).unwrap_or_default();
        for (index, slot) in (0..).zip(slots.iter_mut()) {
            slot.conn.index = index;
        }
        chains.fill(Link::END);
        links.fill(Link::END);
        Table { slots, chains, links, lists: [Ends { head: NONE, tail: NONE }; 2], last: None, ages: 0 }
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
    pub(super) fn find(&mut self, secret: &Secret, between: Between) -> Option<u16> {
        match self.last {
            Some((last, index)) if last == between => Some(index),
            _ => self.find_other(secret, between),
        }
    }

    fn find_other(&mut self, secret: &Secret, between: Between) -> Option<u16> {
        let is_it = |slot: &TcpSlot<'a, H>| slot.conn.remote == between.remote && slot.conn.local == between.local;
        let (place, mark) = self.place(secret, between);
        let mut link = *self.chains.get(place)?;
        let mut before = NONE;
        for _ in 0..self.slots.len() {
            if link.mark == mark && self.at(link.to).is_some_and(is_it) {
                if before != NONE {
                    self.bring_forward(place, before, link);
                }
                self.last = Some((between, link.to));
                return Some(link.to);
            }
            before = link.to;
            link = *self.links.get(usize::from(before))?;
        }
        None
    }

    /// Puts the slot behind `before` first in its chain.
    fn bring_forward(&mut self, place: usize, before: u16, link: Link) {
        let Some(behind) = self.links.get(usize::from(link.to)).copied() else { return };
        if let Some(at) = self.links.get_mut(usize::from(before)) {
            *at = behind;
        }
        self.put_first(place, link);
    }

    fn put_first(&mut self, place: usize, link: Link) {
        let Some(first) = self.chains.get_mut(place) else { return };
        let behind = core::mem::replace(first, link);
        if let Some(at) = self.links.get_mut(usize::from(link.to)) {
            *at = behind;
        }
    }

    fn place(&self, secret: &Secret, between: Between) -> (usize, u16) {
        secret.place(between.remote.addr.to_bits(), between.remote.port, between.local.port, self.chains.len())
    }

    /// Puts the connection at `index` into its chain.
    pub(super) fn chain(&mut self, secret: &Secret, index: u16) {
        let Some(slot) = self.at_mut(index) else { return };
        slot.in_chain = true;
        let between = Between { local: slot.conn.local, remote: slot.conn.remote };
        let (place, mark) = self.place(secret, between);
        self.put_first(place, Link { to: index, mark });
    }

    /// Takes the connection at `index` out of its chain: no segment finds it any more.
    pub(super) fn unchain(&mut self, secret: &Secret, index: u16) {
        let Some(slot) = self.at_mut(index).filter(|slot| slot.in_chain) else { return };
        slot.in_chain = false;
        let between = Between { local: slot.conn.local, remote: slot.conn.remote };
        if self.last.is_some_and(|(_, last)| last == index) {
            self.last = None;
        }
        let (place, _) = self.place(secret, between);
        let Some(behind) = self.links.get(usize::from(index)).copied() else { return };
        let mut link = self.chains.get_mut(place);
        for _ in 0..self.slots.len() {
            let Some(here) = link else { return };
            if here.to == index {
                *here = behind;
                return;
            }
            let next = usize::from(here.to);
            link = self.links.get_mut(next);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::host::SimHost;
    use core::net::Ipv4Addr;
    use std::vec;
    use std::vec::Vec;

    fn table(n: usize) -> Table<'static, SimHost> {
        let memory = || SlotMemory { receive: &mut [], send: &mut [], sent: &mut [], held: &mut [] };
        let slots: Vec<_> = (0..n).map(|_| TcpSlot::new(memory())).collect();
        let chains = usize::from(Link::chains(n as u16));
        Table::new(slots.leak(), vec![Link::END; chains].leak(), vec![Link::END; n].leak())
    }

    fn between(n: u16) -> Between {
        let end = |last, port| Endpoint { addr: Ipv4Addr::new(10, 0, 0, last), port };
        Between { local: end(1, 80), remote: end(2, 10_000 + n) }
    }

    /// Each connection in a chain is found in its slot, and no other one, whatever was looked for, opened and closed before.
    #[test]
    fn a_connection_is_found_while_it_is_in_a_chain() {
        for n in [1u16, 2, 3, 64] {
            let mut host = SimHost::new(u64::from(n));
            let secret = Secret::new(&mut host);
            let mut table = table(usize::from(n));
            let mut inside = vec![false; usize::from(n)];
            for _ in 0..4000 {
                let who = (host.random() % u32::from(n)) as u16;
                let at = usize::from(who);
                match host.random() % 4 {
                    0 if !inside[at] => {
                        let slot = table.at_mut(who).unwrap();
                        (slot.conn.local, slot.conn.remote) = (between(who).local, between(who).remote);
                        table.chain(&secret, who);
                        inside[at] = true;
                    }
                    1 => {
                        table.unchain(&secret, who);
                        inside[at] = false;
                    }
                    _ => assert_eq!(table.find(&secret, between(who)), inside[at].then_some(who)),
                }
                assert_eq!(table.find(&secret, between(n + who)), None);
            }
            for who in 0..n {
                assert_eq!(table.find(&secret, between(who)), inside[usize::from(who)].then_some(who));
            }
        }
    }

    #[test]
    fn who_was_found_is_first_in_its_chain() {
        let mut host = SimHost::new(7);
        let secret = Secret::new(&mut host);
        let mut table = table(64);
        for who in 0..64 {
            let slot = table.at_mut(who).unwrap();
            (slot.conn.local, slot.conn.remote) = (between(who).local, between(who).remote);
            table.chain(&secret, who);
        }
        for who in 0..64 {
            assert_eq!(table.find(&secret, between(who)), Some(who));
            let (place, _) = table.place(&secret, between(who));
            assert_eq!(table.chains[place].to, who);
        }
    }
}
