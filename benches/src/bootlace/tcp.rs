//! Bootlace's TCP in the benchmarks: downloads into memory by a region, uploads through the send ring or from memory that
//! is lent.

use super::host::{Bare, Port};
use crate::case::{Case, Destination, Source as Bytes, TRANSFER};
use crate::frames::{OUR_IP, OUR_MAC, PEER_IP, PEER_PORT};
use crate::harness::Bench;
use crate::nic::Nic;
use bootlace::client::engine::Engine;
use bootlace::sim::rig::{Limits, memory};
use bootlace::stack::interface::{Cidr, Interface, NicId};
use bootlace::storage::host::{Endpoint, NicCaps, RxFlags, Source};
use bootlace::storage::slots::Key;
use bootlace::storage::time::Instant;
use bootlace::tcp::{Event, Events, Options};
use bootlace::wire::ethernet::Address;
use core::net::Ipv4Addr;

/// Frames taken from the NIC in a pass.
const BURST: usize = 32;

struct Streams {
    nic: Nic,
    engine: Engine<'static, Bare>,
    id: NicId,
    now: u64,
    destination: Destination,
    source: Bytes,
    case: Case,
}

/// Sets Bootlace up for `case`.
pub fn open(case: Case) -> Option<Box<dyn Bench>> {
    let caps = match case {
        Case::Sendfile(_) | Case::TcpTxGather(_) => NicCaps::GATHER,
        Case::SendfileOffload(..) => NicCaps::GATHER | NicCaps::TX_L4_SUM | NicCaps::TX_IP_SUM,
        _ => NicCaps::empty(),
    };
    // As large as smoltcp's buffers; what is received goes to a region and needs none.
    let ring = match case {
        Case::TcpTx(n) | Case::TcpTxGather(n) => n,
        _ => 65_535,
    };
    let idle = std::env::var("LACE_IDLE").ok().and_then(|n| n.parse().ok()).unwrap_or(0usize);
    let limits = Limits { tcp: 2 + idle, tcp_ring: ring, ..Limits::default() };
    let mut engine = Engine::new(Bare(1), memory(&limits));
    let mut interface = Interface::new(Port::new(caps), Address(OUR_MAC), 1500, None);
    interface.add_address(Cidr { addr: Ipv4Addr::from(OUR_IP), prefix: 24 });
    let id = engine.stack.add_interface(interface)?;
    let mut streams = Streams {
        nic: case.nic(),
        engine,
        id,
        now: 1_000_000,
        destination: Destination::new(),
        source: Bytes::new(case),
        case,
    };
    streams.nic.announce();
    streams.pass(0);
    Some(Box::new(streams))
}

impl Streams {
    /// One pass: the time, up to `frames` frames, then what is due.
    #[inline]
    fn pass(&mut self, frames: usize) {
        self.now += 1;
        self.engine.set_now(Instant::from_micros(self.now));
        self.nic.offer(frames);
        if let Some(driver) = self.engine.stack.driver(self.id) {
            driver.attach(self.nic.line());
        }
        while let Some((frame, line)) = self.nic.receive() {
            if let Some(driver) = self.engine.stack.driver(self.id) {
                driver.attach(line);
            }
            self.engine.receive(self.id, frame, RxFlags::empty());
        }
        if let Some(driver) = self.engine.stack.driver(self.id) {
            driver.attach(self.nic.line());
        }
        self.engine.tick();
    }

    fn connect(&mut self) -> Key {
        let local = Endpoint { addr: Ipv4Addr::UNSPECIFIED, port: 0 };
        let remote = Endpoint { addr: Ipv4Addr::from(PEER_IP), port: PEER_PORT };
        // As smoltcp has it: no timestamps, full segments of 1460 bytes.
        let window = if self.case.window() == 64 << 10 { 65_535 } else { self.case.window() };
        let options = Options { timestamps: false, recv_max: window as u32, ..Options::default() };
        let Engine { tcp, stack, .. } = &mut self.engine;
        tcp.connect(stack, local, remote, options).expect("a free connection")
    }

    /// What happened on the connection in a pass.
    #[inline]
    fn events(&mut self) -> Events {
        let mut all = Events::empty();
        while let Some(event) = self.engine.tcp.next_event() {
            if let Event::Connection(_, events) = event {
                all |= events;
            }
        }
        all
    }

    fn receive(&mut self, total: usize) {
        let key = self.connect();
        let at = self.destination.next(total);
        let memory = self.destination.memory;
        {
            let Engine { tcp, stack, .. } = &mut self.engine;
            tcp.recv_into(stack, key, &memory, at, total).expect("a free region");
        }
        for idle in 0.. {
            assert!(idle < 100_000, "the transfer hangs");
            self.pass(BURST);
            let events = self.events();
            let Engine { tcp, stack, .. } = &mut self.engine;
            if events.contains(Events::FINISHED) {
                let region = tcp.finish_region(stack, key).expect("open").expect("a region");
                assert_eq!(region.filled, total, "the connection closed early");
                tcp.close(stack, key).expect("open");
                self.pass(BURST);
                self.pass(BURST);
                return;
            }
            self.wait(idle);
        }
    }

    fn transmit(&mut self, total: usize) {
        let key = self.connect();
        let at = self.source.next(total);
        let memory = self.source.memory;
        let mut given = 0;
        if matches!(self.case, Case::Sendfile(_) | Case::SendfileOffload(..)) {
            let source = Source::Memory(memory);
            self.engine.tcp.sendfile(key, source, at as u64, total as u64).expect("a free place");
            given = total;
        }
        let mut closed = false;
        for idle in 0.. {
            assert!(idle < 100_000, "the transfer hangs");
            if given < total {
                let data = memory.bytes(at + given, total - given).expect("a part of the source");
                if let Some(driver) = self.engine.stack.driver(self.id) {
                    driver.attach(self.nic.line());
                }
                let Engine { tcp, stack, .. } = &mut self.engine;
                given += tcp.send_now(stack, key, data).expect("open");
            }
            let Engine { tcp, stack, .. } = &mut self.engine;
            if given == total && !closed {
                tcp.shutdown(stack, key).expect("open");
                closed = true;
            }
            self.pass(BURST);
            if self.events().contains(Events::CLOSED) {
                let Engine { tcp, stack, .. } = &mut self.engine;
                tcp.close(stack, key).expect("open");
                return;
            }
            self.wait(idle);
        }
    }

    /// Lets time pass for a delayed acknowledgement when a transfer takes long.
    fn wait(&mut self, idle: u32) {
        if idle > 20_000 {
            self.now += 20_000;
        }
    }
}

impl Bench for Streams {
    fn run(&mut self, rounds: u64) {
        for _ in 0..rounds {
            match self.case {
                Case::TcpRx(_) => self.receive(TRANSFER),
                Case::TcpTx(_) | Case::Sendfile(_) | Case::SendfileOffload(..) | Case::TcpTxGather(_) => {
                    self.transmit(TRANSFER)
                }
                _ => {}
            }
        }
    }

    fn nic(&mut self) -> &mut Nic {
        &mut self.nic
    }

    fn received(&self) -> &[u8] {
        self.destination.all()
    }
}
