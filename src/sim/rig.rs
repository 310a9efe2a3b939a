//! An engine with one NIC and a clock in a test's hand: frames go in and come out one by one.

use super::host::{NicState, SimHost, SimNic};
use super::packets::{self, Station, UdpSeen};
use crate::client::engine::{Engine, EngineMemory, Outcome};
use crate::stack::StackMemory;
use crate::stack::frames::{TxSlot, WaitSlot};
use crate::stack::interface::{Cidr, Interface, NicId};
use crate::stack::landing::{Slot as LandingSlot, Staging};
use crate::stack::neighbour::Entry;
use crate::storage::host::{Host, NicCaps, RxFlags};
use crate::storage::ring::PacketRing;
use crate::storage::slots::Slot;
use crate::storage::time::{Duration, Instant};
use crate::wire::ethernet::Address;
use core::net::Ipv4Addr;
use std::boxed::Box;
use std::cell::RefCell;
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

/// Limits of a rig.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// NICs.
    pub nics: usize,
    /// Neighbour entries.
    pub neighbours: usize,
    /// Routes.
    pub routes: usize,
    /// Raw hooks.
    pub hooks: usize,
    /// Frames being sent.
    pub tx: usize,
    /// Frames waiting for neighbours.
    pub wait: usize,
    /// UDP sockets.
    pub sockets: usize,
    /// Bytes of each socket's queue.
    pub queue: usize,
    /// Operations.
    pub ops: usize,
    /// Datagrams landing at once.
    pub landing: usize,
    /// Staging buffers.
    pub staging: usize,
    /// Bytes of each, headroom included.
    pub staging_bytes: usize,
    /// Names remembered.
    pub names: usize,
    /// TCP connections.
    pub tcp: usize,
    /// Bytes of each of their rings.
    pub tcp_ring: usize,
    /// MTU.
    pub mtu: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            nics: 2,
            neighbours: 8,
            routes: 8,
            hooks: 2,
            tx: 4,
            wait: 2,
            sockets: 8,
            queue: 4096,
            ops: 8,
            landing: 8,
            staging: 2,
            staging_bytes: 65_535 + 14,
            names: 4,
            tcp: 2,
            tcp_ring: 4096,
            mtu: 1500,
        }
    }
}

fn leak<T>(n: usize, mut make: impl FnMut() -> T) -> &'static mut [T] {
    Box::leak((0..n).map(|_| make()).collect::<Vec<T>>().into_boxed_slice())
}

fn bytes(n: usize) -> &'static mut [u8] {
    Box::leak(vec![0u8; n].into_boxed_slice())
}

/// The memory of an engine with these limits. It is never freed: for tests and benchmarks.
pub fn memory<H: Host>(limits: &Limits) -> EngineMemory<'static, H> {
    let frame = usize::from(limits.mtu) + 18;
    EngineMemory {
        stack: StackMemory {
            interfaces: leak(limits.nics, || None),
            neighbours: leak(limits.neighbours, || Entry::FREE),
            routes: leak(limits.routes, || None),
            hooks: leak(limits.hooks, || None),
            tx: leak(limits.tx, || TxSlot::new(bytes(frame))),
            wait: leak(limits.wait, || WaitSlot::new(bytes(frame))),
            landing: leak(limits.landing, LandingSlot::new),
            staging: leak(limits.staging, || Staging::new(bytes(limits.staging_bytes))),
            staging_timeout: Duration::from_secs(30),
        },
        sockets: leak(limits.sockets, || Slot::EMPTY),
        queues: leak(limits.sockets, || PacketRing::new(bytes(limits.queue))),
        ops: leak(limits.ops, || Slot::EMPTY),
        #[cfg(feature = "dhcp")]
        dhcp: leak(limits.nics, crate::client::dhcp::Client::new),
        names: leak(limits.names, || crate::client::dns::Cached::FREE),
        #[cfg(feature = "tcp")]
        tcp: crate::tcp::TcpMemory {
            slots: leak(limits.tcp, || {
                crate::tcp::TcpSlot::new(crate::tcp::SlotMemory {
                    receive: bytes(limits.tcp_ring),
                    send: bytes(limits.tcp_ring),
                    sent: leak(64, || crate::tcp::scoreboard::Sent::EMPTY),
                    held: leak(32, Default::default),
                })
            }),
            chains: leak(usize::from(crate::tcp::Link::chains(limits.tcp as u16)).max(1), || crate::tcp::Link::END),
            links: leak(limits.tcp.max(1), || crate::tcp::Link::END),
            listeners: leak(limits.tcp, || Slot::EMPTY),
            pages: leak(32, || crate::tcp::PageSlot::EMPTY),
        },
        #[cfg(feature = "http")]
        http: leak(limits.ops, crate::client::http::Job::new),
        #[cfg(feature = "nfs")]
        nfs: leak(limits.ops, crate::client::nfs::Job::new),
    }
}

/// An engine, its NIC and the time.
pub struct Rig {
    /// The engine.
    pub engine: Engine<'static, SimHost>,
    /// Its NIC.
    pub nic: NicId,
    /// What the NIC did.
    pub wire: Rc<RefCell<NicState>>,
    /// Who it is.
    pub us: Station,
}

impl Rig {
    /// Host 10.0.0.9/24 with an address, time 1 s.
    pub fn new(seed: u64) -> Self {
        let mut rig = Rig::bare(seed, Limits::default(), NicCaps::empty(), true);
        rig.engine.stack.interface_mut(rig.nic).unwrap().add_address(Cidr { addr: rig.us.ip, prefix: 24 });
        rig
    }

    /// The same without an address, with a NIC of the test's choice.
    pub fn bare(seed: u64, limits: Limits, caps: NicCaps, lends: bool) -> Self {
        let us = Station::new(9);
        let mut engine = Engine::new(SimHost::new(seed), memory(&limits));
        let nic = SimNic::new(caps, lends);
        let wire = nic.state.clone();
        let nic = engine.stack.add_interface(Interface::new(nic, us.mac, limits.mtu, None)).unwrap();
        engine.set_now(Instant::from_micros(1_000_000));
        Rig { engine, nic, wire, us }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.engine.stack.now
    }

    /// Gives a frame to the engine, then runs what is due.
    pub fn input(&mut self, frame: &[u8]) {
        let _ = self.engine.receive(self.nic, frame, RxFlags::empty());
        self.engine.tick();
    }

    /// Gives a frame to the engine and shows what it means for the host; nothing else runs.
    pub fn receive<'f>(&mut self, frame: &'f [u8]) -> Outcome<'f> {
        self.engine.receive(self.nic, frame, RxFlags::empty())
    }

    /// Moves time on by `ms` milliseconds, stopping at every deadline on the way.
    pub fn advance(&mut self, ms: u64) {
        let end = self.now() + Duration::from_millis(ms);
        // More stops than any operation makes: a storm of timers is a fault.
        for _ in 0..100_000 {
            let next = self.engine.deadline().max(self.now());
            if next > end {
                break;
            }
            self.engine.set_now(next);
            self.engine.tick();
            if self.engine.deadline() <= self.now() {
                // What cannot be sent yet waits for a frame; time goes on all the same.
                self.engine.set_now(self.now() + Duration::from_micros(100));
            }
        }
        self.engine.set_now(end);
        self.engine.tick();
    }

    /// Frames sent since the last call.
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        self.wire.borrow_mut().sent.drain(..).collect()
    }

    /// UDP datagrams sent since the last call; everything else sent is dropped.
    pub fn sent_udp(&mut self) -> Vec<UdpSeen> {
        self.sent().iter().filter_map(|f| packets::parse_udp(f)).collect()
    }

    /// Answers the ARP request that must be the last frame sent, as `host`.
    pub fn answer_arp(&mut self, host: Station) {
        let sent = self.sent();
        let asked = sent.iter().filter_map(|f| packets::parse_arp(f)).any(|a| a.target_ip == host.ip);
        assert!(asked, "an ARP request for {} was sent", host.ip);
        self.input(&packets::arp_reply(host, self.us));
    }

    /// Makes `host` known without a frame being sent.
    pub fn know(&mut self, host: Station) {
        let (nic, now) = (self.nic, self.now());
        self.engine.stack.learn_for_test(now, nic, host.ip, host.mac);
    }

    /// A counter's value.
    pub fn count(&self, counter: crate::stack::stats::Counter) -> u32 {
        self.engine.stack.stats.get(counter)
    }

    /// Adds a route through `gateway` for everything.
    pub fn default_route(&mut self, gateway: Ipv4Addr) {
        use crate::stack::route::{Route, RouteOrigin};
        let route =
            Route { network: Ipv4Addr::UNSPECIFIED, prefix: 0, gateway, nic: self.nic, origin: RouteOrigin::Static };
        assert!(self.engine.stack.routes.add(route));
    }

    /// The hardware address the next frames of ours must carry as source.
    pub fn mac(&self) -> Address {
        self.us.mac
    }
}
