//! Bootlace in the benchmarks: its engine as a Rust library, with an operation that names the next place of the
//! destination for every datagram, as a transfer into memory does.

mod host;
mod tcp;

use crate::case::{Case, DESTINATION, FRAGMENTS, header_len};
use crate::frames::{FRAGMENT, OUR_IP, OUR_MAC, OUR_PORT, UDP};
use crate::harness::Bench;
use crate::nic::Nic;
use crate::region::{Region, destination};
use bootlace::client::engine::{Engine, Shared};
use bootlace::client::operation::{Cx, Datagram, Operation, Step};
use bootlace::client::ops::Client;
use bootlace::sim::rig::{Limits, memory};
use bootlace::stack::interface::{Cidr, Interface, NicId};
use bootlace::stack::landing::{Flow, Place, Spot};
use bootlace::storage::host::{Endpoint, NicCaps, RxFlags, Span};
use bootlace::storage::slots::Key;
use bootlace::storage::time::Instant;
use bootlace::wire::ethernet::Address;
use core::net::Ipv4Addr;
use host::{Bare, Port};

/// Frames taken from the NIC between two passes over timers.
const BURST: usize = 16;
/// Datagrams that may be under way at once, as far as the client knows.
const WINDOW: usize = 4;

/// A client that takes datagrams of one size from anybody on one port: each lands behind the last.
struct Download {
    memory: Region,
    /// Where the next datagram's data goes.
    at: usize,
    /// Bytes of data in a datagram, and of header before them.
    len: usize,
    header: usize,
    socket: Option<Key>,
    /// Whether each is acknowledged.
    answers: bool,
}

impl Download {
    fn spot(&self, at: usize) -> Spot<Region> {
        Spot { memory: self.memory, at, len: self.len, header: self.header }
    }

    /// The place behind the one at `at`.
    fn after(&self, at: usize) -> usize {
        let next = at + self.len;
        if next + self.len > DESTINATION { 0 } else { next }
    }
}

impl Operation<Bare> for Download {
    fn poll(&mut self, cx: &mut Cx<'_, '_, Bare>) -> Step {
        if self.socket.is_none() {
            let socket = cx.open().expect("a socket");
            let local = Endpoint { addr: Ipv4Addr::UNSPECIFIED, port: OUR_PORT };
            cx.udp.bind(socket, None, local).expect("the port is free");
            self.socket = Some(socket);
        }
        Step::Pending(Instant::NEVER)
    }

    fn place(&self, _: &Shared<'_>, _: &Flow, _: &[u8], _: usize) -> Place<Region> {
        Place::Region(self.spot(self.at))
    }

    fn guess(&self, _: &Shared<'_>, _: Ipv4Addr, nth: usize) -> Option<Spot<Region>> {
        if nth >= WINDOW {
            return None;
        }
        let at = (0..nth).fold(self.at, |at, _| self.after(at));
        Some(self.spot(at))
    }

    fn datagram(&mut self, cx: &mut Cx<'_, '_, Bare>, datagram: &Datagram<'_>) {
        self.at = self.after(self.at);
        cx.progress.done += self.len as u64;
        if self.answers
            && let [_, _, hi, lo, ..] = *datagram.payload
        {
            let sent = cx.send(datagram.socket, datagram.meta.src, &[Span::Bytes(&[0, 4, hi, lo])]);
            sent.expect("the peer is known and the NIC has room");
        }
    }
}

struct Lace {
    nic: Nic,
    engine: Engine<'static, Bare>,
    id: NicId,
    destination: Region,
    now: u64,
    burst: usize,
    frames: u64,
}

/// Sets Bootlace up for `case`; `None` for cases it does not take part in.
pub fn open(case: Case) -> Option<Box<dyn Bench>> {
    let len = match case {
        Case::UdpRx | Case::Lockstep => 1468,
        Case::Fragments(_) => FRAGMENTS * FRAGMENT - UDP,
        Case::Echo => 0,
        Case::TcpRx(_) | Case::TcpTx(_) | Case::Sendfile(_) | Case::SendfileOffload(..) | Case::TcpTxGather(_) => {
            return tcp::open(case);
        }
    };
    let mut engine = Engine::new(Bare(1), memory(&Limits::default()));
    let mut interface = Interface::new(Port::new(NicCaps::empty()), Address(OUR_MAC), 1500, None);
    interface.add_address(Cidr { addr: Ipv4Addr::from(OUR_IP), prefix: 24 });
    let id = engine.stack.add_interface(interface)?;
    let destination = destination();
    if len > 0 {
        let answers = case == Case::Lockstep;
        let client = Download { memory: destination, at: 0, len, header: header_len(case), socket: None, answers };
        engine.start(Client::Sim(Box::new(client))).expect("a free slot");
    }
    let burst = match case {
        Case::Lockstep => 1,
        Case::Fragments(_) => FRAGMENTS,
        _ => BURST,
    };
    let mut lace =
        Lace { nic: case.nic(), engine, id, destination, now: 1_000_000, burst, frames: case.packets_per_round() };
    lace.nic.announce();
    lace.pass(0);
    Some(Box::new(lace))
}

impl Lace {
    /// One pass: the time, up to `frames` frames, then what is due.
    #[inline]
    fn pass(&mut self, frames: usize) {
        self.now += 1;
        self.engine.set_now(Instant::from_micros(self.now));
        self.nic.offer(frames);
        while let Some((frame, line)) = self.nic.receive() {
            if let Some(driver) = self.engine.stack.driver(self.id) {
                driver.attach(line);
            }
            self.engine.receive(self.id, frame, RxFlags::empty());
        }
        self.engine.tick();
    }
}

impl Bench for Lace {
    fn run(&mut self, rounds: u64) {
        let mut left = rounds * self.frames;
        while left > 0 {
            let burst = left.min(self.burst as u64);
            left -= burst;
            self.pass(burst as usize);
        }
    }

    fn nic(&mut self) -> &mut Nic {
        &mut self.nic
    }

    fn received(&self) -> &[u8] {
        self.destination.bytes(0, DESTINATION).expect("all of the destination")
    }
}
