//! A conversation with smoltcp's TCP in memory, on virtual time: either end opens it, both send at the same time, over a
//! link that is clean or loses and reorders.

use bootlace::sim::packets::Station;
use bootlace::sim::rig::{Limits, Rig};
use bootlace::storage::host::{Endpoint, NicCaps};
use bootlace::storage::slots::Key;
use bootlace::storage::time::Duration;
use bootlace::tcp::{Algorithm, Options, State};
use bootlace_lab::Rng;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet, SocketStorage};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr, IpEndpoint};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

const THEM: Station = Station::new(1);
const PORT: u16 = 7;

#[derive(Default)]
struct Port {
    input: VecDeque<Vec<u8>>,
    output: Vec<Vec<u8>>,
}

struct Rx(Vec<u8>);
struct Tx<'p>(&'p mut Vec<Vec<u8>>);

impl phy::RxToken for Rx {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl phy::TxToken for Tx<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = vec![0; len];
        let result = f(&mut frame);
        self.0.push(frame);
        result
    }
}

impl Device for Port {
    type RxToken<'p> = Rx;
    type TxToken<'p> = Tx<'p>;

    fn receive(&mut self, _: Instant) -> Option<(Rx, Tx<'_>)> {
        self.input.pop_front().map(|frame| (Rx(frame), Tx(&mut self.output)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Tx<'_>> {
        Some(Tx(&mut self.output))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut caps = DeviceCapabilities::default();
        caps.medium = Medium::Ethernet;
        caps.max_transmission_unit = 1514;
        caps
    }
}

/// What the link does, each way.
#[derive(Clone, Copy, Debug)]
struct Link {
    delay_us: u64,
    loss_ppm: u32,
    reorder_ppm: u32,
}

/// Both stacks and the frames between them.
struct Pair {
    rig: Rig,
    port: Port,
    iface: Interface,
    sockets: SocketSet<'static>,
    link: Link,
    rng: Rng,
    order: u64,
    flight: BTreeMap<(u64, u64), (bool, Vec<u8>)>,
    at_us: u64,
}

impl Pair {
    fn new(link: Link, seed: u64) -> Pair {
        let limits = Limits { tcp_ring: 65_536, ..Limits::default() };
        let mut rig = Rig::bare(seed, limits, NicCaps::empty(), true);
        let us = rig.us;
        rig.engine
            .stack
            .interface_mut(rig.nic)
            .expect("a NIC")
            .add_address(bootlace::stack::interface::Cidr { addr: us.ip, prefix: 24 });
        let mut port = Port::default();
        let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(THEM.mac.0)));
        config.random_seed = seed;
        let at_us = rig.now().as_micros();
        let mut iface = Interface::new(config, &mut port, Instant::from_micros(at_us as i64));
        iface.update_ip_addrs(|addrs| addrs.push(IpCidr::new(IpAddress::Ipv4(THEM.ip), 24)).expect("room"));
        let sockets = SocketSet::new(vec![SocketStorage::EMPTY].leak());
        Pair { rig, port, iface, sockets, link, rng: Rng::new(seed), order: 0, flight: BTreeMap::new(), at_us }
    }

    fn put(&mut self, to_us: bool, frame: Vec<u8>) {
        let (lost, late) = (self.rng.chance(self.link.loss_ppm), self.rng.chance(self.link.reorder_ppm));
        if lost {
            return;
        }
        let extra = if late { self.rng.next_u64() % 3_000 } else { 0 };
        self.order += 1;
        self.flight.insert((self.at_us + self.link.delay_us + extra, self.order), (to_us, frame));
    }

    /// Both stacks do what they can now, then time goes on to what comes next.
    fn step(&mut self) {
        let now = Instant::from_micros(self.at_us as i64);
        self.iface.poll(now, &mut self.port, &mut self.sockets);
        for frame in std::mem::take(&mut self.port.output) {
            self.put(true, frame);
        }
        self.rig.engine.tick();
        for frame in self.rig.sent() {
            self.put(false, frame);
        }
        let mut next = self.flight.first_key_value().map_or(u64::MAX, |((at, _), _)| *at);
        next = next.min(self.rig.engine.deadline().as_micros());
        if let Some(at) = self.iface.poll_at(now, &self.sockets) {
            next = next.min(at.total_micros() as u64);
        }
        self.at_us = next.clamp(self.at_us + 1, self.at_us + 1_000_000);
        self.rig.engine.set_now(bootlace::storage::time::Instant::from_micros(self.at_us));
        while let Some(entry) = self.flight.first_entry() {
            if entry.key().0 > self.at_us {
                break;
            }
            let (to_us, frame) = entry.remove();
            if to_us {
                self.rig.input(&frame);
            } else {
                self.port.input.push_back(frame);
            }
        }
    }
}

fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

/// One connection on which `ours` goes to smoltcp and `theirs` comes back.
fn converse(link: Link, we_open: bool, seed: u64, len: usize) {
    let (ours, theirs) = (pattern(len, seed), pattern(len + 77, !seed));
    let mut pair = Pair::new(link, seed);
    let buffer = || tcp::SocketBuffer::new(vec![0; 60_000].leak());
    let mut socket = tcp::Socket::new(buffer(), buffer());
    let options =
        Options { congestion: Algorithm::Cubic, user_timeout: Duration::from_secs(600), ..Options::default() };
    let at = |addr, port| Endpoint { addr, port };
    let (handle, mut key): (SocketHandle, Option<Key>);
    let mut listener = None;
    if we_open {
        socket.listen(PORT).expect("a closed socket listens");
        handle = pair.sockets.add(socket);
        let engine = &mut pair.rig.engine;
        let to = at(THEM.ip, PORT);
        key = Some(
            engine.tcp.connect(&mut engine.stack, at(Ipv4Addr::UNSPECIFIED, 0), to, options).expect("a connection"),
        );
    } else {
        let engine = &mut pair.rig.engine;
        listener = Some(engine.tcp.listen(at(Ipv4Addr::UNSPECIFIED, PORT), 4, options).expect("a listener"));
        key = None;
        let us = IpEndpoint::new(IpAddress::Ipv4(pair.rig.us.ip), PORT);
        socket.connect(pair.iface.context(), us, 50_000).expect("a closed socket connects");
        handle = pair.sockets.add(socket);
    }
    let (mut given, mut got, mut shut) = (0, Vec::new(), false);
    let (mut their_given, mut their_got, mut their_shut) = (0, Vec::new(), false);
    for turn in 0.. {
        assert!(turn < 2_000_000 && pair.at_us < 900_000_000, "stuck: {got}, {}", their_got.len(), got = got.len());
        pair.step();
        let engine = &mut pair.rig.engine;
        if let Some(listener) = listener {
            key = key.or_else(|| engine.tcp.accept(listener).ok());
        }
        let Some(key) = key else { continue };
        assert_eq!(engine.tcp.error(key), Ok(None));
        given += engine.tcp.send(key, &ours[given..]).unwrap_or(0);
        if given == ours.len() && !shut {
            engine.tcp.shutdown(&mut engine.stack, key).expect("connected");
            shut = true;
        }
        let mut out = [0; 4_000];
        while let Ok(n @ 1..) = engine.tcp.recv(&mut engine.stack, key, &mut out) {
            got.extend_from_slice(&out[..n]);
        }
        let socket = pair.sockets.get_mut::<tcp::Socket>(handle);
        if socket.may_send() {
            their_given += socket.send_slice(&theirs[their_given..]).unwrap_or(0);
            if their_given == theirs.len() && !their_shut {
                socket.close();
                their_shut = true;
            }
        }
        while socket.can_recv() {
            let _ = socket.recv(|data| {
                their_got.extend_from_slice(data);
                (data.len(), ())
            });
        }
        let rested = |state| matches!(state, tcp::State::TimeWait | tcp::State::Closed);
        let ours_over = engine.tcp.info(key).is_ok_and(|i| matches!(i.state, State::TimeWait | State::Closed));
        if ours_over && rested(socket.state()) {
            break;
        }
    }
    assert!(got == theirs, "{link:?} {we_open}: {} of {} bytes came to us", got.len(), theirs.len());
    assert!(their_got == ours, "{link:?} {we_open}: {} of {} bytes came to smoltcp", their_got.len(), ours.len());
}

#[test]
fn a_clean_link() {
    let link = Link { delay_us: 500, loss_ppm: 0, reorder_ppm: 0 };
    for we_open in [true, false] {
        for len in [0, 1, 1460, 70_000, 1_000_000] {
            converse(link, we_open, 1 + len as u64, len);
        }
    }
}

#[test]
fn a_link_that_loses_and_reorders() {
    for (seed, loss_ppm) in [(1, 1_000), (2, 10_000), (3, 50_000)] {
        for reorder_ppm in [0, 50_000] {
            for we_open in [true, false] {
                let link = Link { delay_us: 5_000, loss_ppm, reorder_ppm };
                converse(link, we_open, seed, 200_000);
            }
        }
    }
}
