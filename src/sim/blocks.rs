//! A client that takes numbered blocks, as simple as one can be that uses landing to the full: two bytes of type, two of
//! number, then the block. For tests of fragments, fuzzing and benchmarks.

use super::host::{SimHost, SimMemory};
use super::packets::{self, Station};
use super::rig::{Limits, Rig};
use crate::client::engine::Shared;
use crate::client::operation::{Cx, Datagram, Operation, Step};
use crate::client::ops::Client;
use crate::stack::interface::Cidr;
use crate::stack::landing::{Flow, Place, Spot};
use crate::storage::host::{Memory, NicCaps};
use crate::storage::slots::Key;
use crate::storage::time::Instant;
use crate::wire::ethernet::EtherType;
use crate::wire::ipv4::Protocol;
use core::net::Ipv4Addr;
use std::boxed::Box;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

/// The port blocks come from.
pub const PORT: u16 = 3000;
/// Bytes after the region proper that nothing may touch.
pub const GUARD: usize = 64;

/// The client.
#[derive(Debug)]
pub struct Blocks {
    region: SimMemory,
    size: usize,
    window: usize,
    blocks: usize,
    socket: Option<Key>,
    seen: Rc<RefCell<Seen>>,
}

/// What the client has seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// Its port.
    pub port: u16,
    /// Blocks confirmed.
    pub confirmed: BTreeSet<usize>,
    /// Numbers and lengths of the datagrams delivered.
    pub delivered: Vec<(usize, usize)>,
}

impl Blocks {
    fn next(&self) -> usize {
        let seen = self.seen.borrow();
        (0..self.blocks).find(|n| !seen.confirmed.contains(n)).unwrap_or(self.blocks)
    }

    fn spot(&self, number: usize) -> Spot<SimMemory> {
        let len = if self.seen.borrow().confirmed.contains(&number) { 0 } else { self.size };
        Spot { memory: self.region.clone(), at: number * self.size, len, header: 4 }
    }
}

impl Operation<SimHost> for Blocks {
    fn poll(&mut self, cx: &mut Cx<'_, '_, SimHost>) -> Step {
        if self.socket.is_none() {
            let socket = cx.open().expect("a free socket");
            self.seen.borrow_mut().port = cx.udp.get(socket).expect("just opened").local.port;
            self.socket = Some(socket);
        }
        Step::Pending(Instant::NEVER)
    }

    fn place(&self, _: &Shared<'_>, _flow: &Flow, head: &[u8], _len: usize) -> Place<SimMemory> {
        match *head {
            [0, 3, a, b, ..] => {
                let number = usize::from(u16::from_be_bytes([a, b]));
                let end = (self.next() + self.window).min(self.blocks);
                if number >= end { Place::NotMine } else { Place::Region(self.spot(number)) }
            }
            _ => Place::Stage,
        }
    }

    fn guess(&self, _: &Shared<'_>, _src: Ipv4Addr, nth: usize) -> Option<Spot<SimMemory>> {
        let next = self.next();
        let seen = self.seen.borrow();
        let end = (next + self.window).min(self.blocks);
        let number = (next..end).filter(|n| !seen.confirmed.contains(n)).nth(nth)?;
        drop(seen);
        Some(self.spot(number))
    }

    fn datagram(&mut self, _cx: &mut Cx<'_, '_, SimHost>, datagram: &Datagram<'_>) {
        if datagram.landed.is_none() {
            return;
        }
        let number = usize::from(u16::from_be_bytes([datagram.payload[2], datagram.payload[3]]));
        let mut seen = self.seen.borrow_mut();
        seen.delivered.push((number, datagram.len));
        // Only a whole block confirms its range.
        if datagram.len == self.size + 4 {
            seen.confirmed.insert(number);
        }
    }
}

/// A rig with the client in it, and the server's side.
pub struct BlocksRig {
    /// The rig.
    pub rig: Rig,
    /// The region and its guard bytes.
    pub region: SimMemory,
    /// What the client has seen.
    pub seen: Rc<RefCell<Seen>>,
    /// The server.
    pub server: Station,
    /// Bytes of a block.
    pub size: usize,
}

impl BlocksRig {
    /// A client for `blocks` blocks of `size` bytes, `window` of them expected at a time.
    pub fn new(size: usize, window: usize, blocks: usize, limits: Limits) -> Self {
        let mut rig = Rig::bare(1, limits, NicCaps::empty(), true);
        let interface = rig.engine.stack.interface_mut(rig.nic).expect("it was added");
        interface.add_address(Cidr { addr: rig.us.ip, prefix: 24 });
        let server = Station::new(1);
        rig.know(server);
        let whole = SimMemory::new(size * blocks + GUARD);
        let region = whole.slice(0, size * blocks).expect("it lies inside");
        let seen = Rc::new(RefCell::new(Seen::default()));
        let client = Blocks { region, size, window, blocks, socket: None, seen: seen.clone() };
        rig.engine.start(Client::Sim(Box::new(client))).expect("a free slot");
        BlocksRig { rig, region: whole, seen, server, size }
    }

    /// What block `number` holds.
    pub fn block(&self, number: usize) -> Vec<u8> {
        let mut seed = number as u64 + 99;
        (0..self.size).map(|_| super::host::splitmix(&mut seed) as u8).collect()
    }

    /// The UDP datagram with block `number`.
    pub fn datagram(&self, number: usize) -> Vec<u8> {
        let mut payload = vec![0, 3, (number >> 8) as u8, number as u8];
        payload.extend_from_slice(&self.block(number));
        packets::udp_datagram((self.server.ip, PORT), (self.rig.us.ip, self.seen.borrow().port), &payload)
    }

    /// The fragments of block `number`, `unit` bytes each.
    pub fn fragments(&self, number: usize, id: u16, unit: usize) -> Vec<Vec<u8>> {
        fragments(self.server, self.rig.us, Protocol::UDP, &self.datagram(number), id, unit)
    }

    /// One fragment from the server.
    pub fn piece(&self, id: u16, offset: usize, more: bool, bytes: &[u8]) -> Vec<u8> {
        piece(self.server, self.rig.us, Protocol::UDP, id, offset, more, bytes)
    }

    /// Numbers of the blocks confirmed.
    pub fn confirmed(&self) -> Vec<usize> {
        self.seen.borrow().confirmed.iter().copied().collect()
    }

    /// What lies where block `number` belongs.
    pub fn at(&self, number: usize) -> Vec<u8> {
        self.region.to_vec()[number * self.size..(number + 1) * self.size].to_vec()
    }

    /// Panics if the guard bytes were touched.
    pub fn check_guard(&self) {
        let bytes = self.region.to_vec();
        assert!(bytes[bytes.len() - GUARD..].iter().all(|b| *b == 0xa5), "guard bytes");
    }

    /// Panics unless every confirmed block is right and the guard bytes are untouched.
    pub fn check(&self) {
        for number in self.confirmed() {
            assert!(self.at(number) == self.block(number), "block {number}");
        }
        self.check_guard();
    }
}

/// A frame with one fragment.
pub fn piece(
    src: Station,
    dst: Station,
    protocol: Protocol,
    id: u16,
    offset: usize,
    more: bool,
    bytes: &[u8],
) -> Vec<u8> {
    let packet = packets::ipv4_with(src.ip, dst.ip, protocol, bytes, |r| {
        r.identification = id;
        r.fragment_offset = offset as u16;
        r.more_fragments = more;
    });
    packets::ethernet(dst.mac, src.mac, EtherType::IPV4, &packet)
}

/// The fragments of a datagram, `unit` bytes each.
pub fn fragments(src: Station, dst: Station, protocol: Protocol, bytes: &[u8], id: u16, unit: usize) -> Vec<Vec<u8>> {
    let count = bytes.len().div_ceil(unit);
    let part = |(n, part)| piece(src, dst, protocol, id, n * unit, n + 1 < count, part);
    bytes.chunks(unit).enumerate().map(part).collect()
}
