//! The rig: one stack with TCP, and a scripted peer.

use crate::sim::host::{NicState, SimHost, SimNic};
use crate::sim::packets::{self, Station};
use crate::stack::frames::{TxSlot, WaitSlot};
use crate::stack::ingress::{Action, Ingress};
use crate::stack::interface::{Cidr, Interface, NicId};
use crate::stack::neighbour::Entry;
use crate::stack::stats::Counter;
use crate::stack::{Stack, StackMemory};
use crate::storage::checksum::Sum;
use crate::storage::error::Result;
use crate::storage::host::{Endpoint, NicCaps, RxFlags};
use crate::storage::slots::{Key, Slot};
use crate::storage::time::{Duration, Instant};
use crate::tcp::pages::PageSlot;
use crate::tcp::scoreboard::Sent;
use crate::tcp::{Event, Events, Link, Options, SlotMemory, Tcp, TcpMemory, TcpSlot};
use crate::wire::ethernet::{EtherType, Frame};
use crate::wire::ipv4::{self, Protocol};
use crate::wire::tcp::{self as wire, Flags, Repr, SackBlock, Segment, SeqNumber, Timestamps};
use std::boxed::Box;
use std::cell::RefCell;
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

pub const S: Flags = Flags::SYN;
pub const A: Flags = Flags::ACK;
pub const F: Flags = Flags::FIN;
pub const R: Flags = Flags::RST;

pub const P: Flags = Flags::PSH;
pub const U: Flags = Flags::URG;
pub const SA: Flags = Flags::SYN.union(Flags::ACK);
pub const FA: Flags = Flags::FIN.union(Flags::ACK);
pub const PA: Flags = Flags::PSH.union(Flags::ACK);
pub const RA: Flags = Flags::RST.union(Flags::ACK);

fn leak<T>(n: usize, mut make: impl FnMut() -> T) -> &'static mut [T] {
    Box::leak((0..n).map(|_| make()).collect::<Vec<T>>().into_boxed_slice())
}

fn bytes(n: usize) -> &'static mut [u8] {
    Box::leak(vec![0u8; n].into_boxed_slice())
}

/// Limits of a rig.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub seed: u64,
    pub slots: usize,
    pub receive: usize,
    pub send: usize,
    pub sent: usize,
    pub held: usize,
    pub pages: usize,
    pub mtu: u16,
    pub caps: NicCaps,
    pub lends: bool,
    pub tx: usize,
    pub start_us: u64,
    /// Whether the peer's hardware address is known from the start.
    pub knows: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            seed: 1,
            slots: 4,
            receive: 65_535,
            send: 65_535,
            sent: 64,
            held: 32,
            pages: 64,
            mtu: 1500,
            caps: NicCaps::empty(),
            lends: true,
            tx: 8,
            start_us: 1_000_000,
            knows: true,
        }
    }
}

/// Stack and TCP of one host.
pub struct Node {
    pub stack: Stack<'static, SimHost>,
    pub tcp: Tcp<'static, SimHost>,
    pub nic: NicId,
    pub wire: Rc<RefCell<NicState>>,
    pub us: Station,
    known: Vec<Station>,
    learned: Option<Instant>,
    /// Whether frames go by lanes where there are, as an engine leads them.
    pub lanes: bool,
}

impl Node {
    pub fn new(us: Station, others: &[Station], limits: Limits) -> Self {
        let frame = usize::from(limits.mtu) + 18;
        let memory = StackMemory {
            interfaces: leak(1, || None),
            neighbours: leak(8, || Entry::FREE),
            routes: leak(2, || None),
            hooks: leak(0, || None),
            tx: leak(limits.tx, || TxSlot::new(bytes(frame))),
            wait: leak(2, || WaitSlot::new(bytes(frame))),
            landing: leak(0, crate::stack::landing::Slot::new),
            staging: leak(0, || crate::stack::landing::Staging::new(bytes(64))),
            staging_timeout: Duration::from_secs(30),
        };
        let mut stack = Stack::new(SimHost::new(limits.seed), memory);
        let nic = SimNic::new(limits.caps, limits.lends);
        let wire = nic.state.clone();
        let nic = stack.add_interface(Interface::new(nic, us.mac, limits.mtu, None)).unwrap();
        stack.interface_mut(nic).unwrap().add_address(Cidr { addr: us.ip, prefix: 24 });
        stack.now = Instant::from_micros(limits.start_us);
        let known = if limits.knows { others.to_vec() } else { Vec::new() };
        let slot = || {
            TcpSlot::new(SlotMemory {
                receive: bytes(limits.receive),
                send: bytes(limits.send),
                sent: leak(limits.sent, || Sent::EMPTY),
                held: leak(limits.held, Default::default),
            })
        };
        let memory = TcpMemory {
            slots: leak(limits.slots, slot),
            chains: leak(Link::chains(limits.slots as u16).into(), || Link::END),
            links: leak(limits.slots, || Link::END),
            listeners: leak(4, || Slot::EMPTY),
            pages: leak(limits.pages, || PageSlot::EMPTY),
        };
        let tcp = Tcp::new(&mut stack.host, memory);
        let mut node = Node { stack, tcp, nic, wire, us, known, learned: None, lanes: true };
        node.pass();
        node
    }

    /// One frame in; nothing else runs.
    pub fn receive(&mut self, frame: &[u8]) {
        if self.lanes && self.tcp.take(&mut self.stack, self.nic, frame, RxFlags::empty()) {
            return;
        }
        let Ingress::Packet(packet) = self.stack.receive(self.nic, frame, RxFlags::empty()) else { return };
        match packet.protocol {
            Protocol::TCP => self.tcp.receive(&mut self.stack, &packet),
            Protocol::ICMP => {
                if let Action::Error(error) = self.stack.receive_icmp(&packet) {
                    self.tcp.icmp_error(&mut self.stack, &error);
                }
            }
            _ => {}
        }
    }

    /// What a pass does after the frames.
    pub fn pass(&mut self) {
        // Neighbours that are known stay known, however long a script takes.
        let now = self.stack.now;
        let due = self.learned.is_none_or(|learned| now.since(learned) >= Duration::from_secs(1));
        for other in self.known.clone().into_iter().filter(|_| due) {
            self.learned = Some(now);
            self.stack.learn_for_test(self.stack.now, self.nic, other.ip, other.mac);
        }
        self.stack.tick();
        let wake = core::mem::take(&mut self.stack.wake);
        self.tcp.poll(&mut self.stack, wake);
    }

    pub fn deadline(&self) -> Instant {
        let wake = if self.stack.wake { Instant::ZERO } else { Instant::NEVER };
        self.tcp.deadline().min(self.stack.deadline()).min(wake)
    }

    /// Frames sent since the last call.
    pub fn sent_frames(&mut self) -> Vec<Vec<u8>> {
        self.wire.borrow_mut().sent.drain(..).collect()
    }

    /// Gives all tokens that are out back.
    pub fn tokens_done(&mut self) -> usize {
        let tokens: Vec<_> = self.wire.borrow_mut().tokens.drain(..).collect();
        for token in &tokens {
            if let Some(own) = self.stack.tx_done(self.nic, *token) {
                self.tcp.tx_done(own);
            }
        }
        tokens.len()
    }

    /// Everything that happened, by connection.
    pub fn events(&mut self) -> Vec<(Key, Events)> {
        let mut out = Vec::new();
        while let Some(event) = self.tcp.next_event() {
            match event {
                Event::Connection(key, events) => out.push((key, events)),
                Event::Listener(key) => out.push((key, Events::ACCEPT)),
            }
        }
        out
    }

    pub fn count(&self, counter: Counter) -> u32 {
        self.stack.stats.get(counter)
    }
}

/// A segment as the peer sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub seq: SeqNumber,
    pub ack: SeqNumber,
    pub flags: Flags,
    pub window: u16,
    pub options: wire::Options,
    pub payload: Vec<u8>,
    pub ports: (u16, u16),
}

/// Reads a frame as a TCP segment; its checksum must hold.
pub fn parse(frame: &[u8]) -> Option<Seen> {
    let link = Frame::parse(frame).ok()?;
    let ip = ipv4::Packet::parse(link.payload()).ok()?;
    if ip.protocol() != Protocol::TCP {
        return None;
    }
    let sum = crate::stack::egress::pseudo_header(ip.source(), ip.destination(), Protocol::TCP, ip.payload().len());
    assert!((sum + Sum::of(ip.payload())).holds(), "checksum of a sent segment");
    assert!(ip.dont_fragment(), "segments are never fragmented");
    let segment = Segment::parse(ip.payload()).unwrap();
    Some(Seen {
        seq: segment.seq(),
        ack: segment.ack(),
        flags: segment.flags(),
        window: segment.window(),
        options: segment.options(),
        payload: segment.payload().to_vec(),
        ports: (segment.source_port(), segment.destination_port()),
    })
}

/// What the peer puts into its next segments beside what the script says.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub station: Station,
    pub port: u16,
    /// Initial sequence number of the peer.
    pub iss: SeqNumber,
    /// Initial sequence number of ours, once seen.
    pub irs: SeqNumber,
    /// Our port, once seen.
    pub to: u16,
    pub window: u16,
    pub timestamps: Option<Timestamps>,
}

/// The rig.
pub struct Rig {
    pub node: Node,
    pub peer: Peer,
}

/// Options of a SYN-ACK with everything.
pub fn full(mss: u16, scale: Option<u8>, sack: bool) -> wire::Options {
    wire::Options { max_segment_size: Some(mss), window_scale: scale, sack_permitted: sack, ..wire::Options::default() }
}

impl Rig {
    pub fn new() -> Self {
        Rig::with(Limits::default())
    }

    pub fn with(limits: Limits) -> Self {
        let station = Station::new(2);
        let node = Node::new(Station::new(9), &[station], limits);
        let peer = Peer {
            station,
            port: 80,
            iss: SeqNumber(5000),
            irs: SeqNumber(0),
            to: 0,
            window: 65_535,
            timestamps: None,
        };
        Rig { node, peer }
    }

    pub fn now(&self) -> Instant {
        self.node.stack.now
    }

    /// Begins to connect; the SYN is returned.
    pub fn connect(&mut self, options: Options) -> (Key, Seen) {
        let key = self.try_connect(options).unwrap();
        self.node.pass();
        let syn = self.sent();
        assert_eq!(syn.len(), 1, "one SYN");
        assert_eq!(syn[0].flags, S);
        self.peer.irs = syn[0].seq;
        self.peer.to = syn[0].ports.0;
        (key, syn[0].clone())
    }

    pub fn try_connect(&mut self, options: Options) -> Result<Key> {
        let local = Endpoint { addr: core::net::Ipv4Addr::UNSPECIFIED, port: 0 };
        let remote = Endpoint { addr: self.peer.station.ip, port: self.peer.port };
        self.node.tcp.connect(&mut self.node.stack, local, remote, options)
    }

    /// A connection that stands, with what the peer's SYN-ACK offers; segment size 1000 unless it says otherwise. Its
    /// last acknowledgement was seen.
    pub fn open(&mut self, options: Options, answer: wire::Options) -> Key {
        let (key, _) = self.connect(options);
        let stamps = self.peer.timestamps;
        self.send_with(SA, 0, 1, &[], wire::Options { timestamps: stamps, ..answer });
        let sent = self.sent();
        assert_eq!(sent.len(), 1, "the SYN-ACK is acknowledged");
        assert_eq!((sent[0].flags, sent[0].seq, sent[0].ack), (A, self.peer.irs + 1, self.peer.iss + 1));
        key
    }

    /// A connection without options but the segment size.
    pub fn open_plain(&mut self) -> Key {
        let options = Options { timestamps: false, sack: false, window_scaling: false, ..quiet() };
        self.open(options, full(1000, None, false))
    }

    /// A connection with SACK and window scaling.
    pub fn open_sack(&mut self) -> Key {
        let options = Options { timestamps: false, ..quiet() };
        self.open(options, full(1000, Some(0), true))
    }

    /// A segment of the peer: `seq` counts from its SYN, `ack` from ours. Then a pass.
    pub fn send(&mut self, flags: Flags, seq: u32, ack: u32, payload: &[u8]) {
        let stamps = self.peer.timestamps;
        self.send_with(flags, seq, ack, payload, wire::Options { timestamps: stamps, ..Default::default() });
    }

    pub fn send_with(&mut self, flags: Flags, seq: u32, ack: u32, payload: &[u8], options: wire::Options) {
        let frame = self.frame(flags, seq, ack, payload, options);
        self.node.receive(&frame);
        self.node.pass();
    }

    /// Selective acknowledgement of ranges that count from our SYN.
    pub fn send_sack(&mut self, ack: u32, blocks: &[(u32, u32)]) {
        let mut options = wire::Options { timestamps: self.peer.timestamps, ..Default::default() };
        for (left, right) in blocks {
            options.sack.push(SackBlock { left: self.peer.irs + *left, right: self.peer.irs + *right });
        }
        self.send_with(A, 1, ack, &[], options);
    }

    pub fn frame(&self, flags: Flags, seq: u32, ack: u32, payload: &[u8], options: wire::Options) -> Vec<u8> {
        let repr = Repr {
            source_port: self.peer.port,
            destination_port: self.peer.to,
            seq: self.peer.iss + seq,
            ack: if flags.contains(A) { self.peer.irs + ack } else { SeqNumber(0) },
            flags,
            window: self.peer.window,
            options,
        };
        frame(self.peer.station, self.node.us, &repr, payload)
    }

    /// Segments sent since the last call; everything else is dropped.
    pub fn sent(&mut self) -> Vec<Seen> {
        self.node.sent_frames().iter().filter_map(|f| parse(f)).collect()
    }

    /// The same as distance from our SYN, length and flags.
    pub fn sent_short(&mut self) -> Vec<(u32, usize, Flags)> {
        let irs = self.peer.irs;
        self.sent().iter().map(|s| (s.seq.since(irs), s.payload.len(), s.flags)).collect()
    }

    /// The one segment sent, which must be a bare acknowledgement: distance from the peer's SYN, and the window field.
    pub fn sent_ack(&mut self) -> (u32, u16) {
        let sent = self.sent();
        assert_eq!(sent.len(), 1, "one acknowledgement: {sent:?}");
        assert_eq!((sent[0].flags, sent[0].payload.len()), (A, 0));
        (sent[0].ack.since(self.peer.iss), sent[0].window)
    }

    /// Moves time on by `ms` milliseconds, stopping at each deadline.
    pub fn advance(&mut self, ms: u64) {
        let end = self.now() + Duration::from_millis(ms);
        for _ in 0..100_000 {
            let next = self.node.deadline().max(self.now());
            if next > end {
                break;
            }
            self.node.stack.now = next;
            self.node.pass();
            if self.node.deadline() <= self.now() {
                self.node.stack.now = self.now() + Duration::from_micros(100);
            }
        }
        self.node.stack.now = end;
        self.node.pass();
    }

    pub fn write(&mut self, key: Key, data: &[u8]) -> usize {
        let count = self.node.tcp.send(key, data).unwrap();
        self.node.pass();
        count
    }

    pub fn read(&mut self, key: Key, most: usize) -> Result<Vec<u8>> {
        let mut out = vec![0u8; most];
        let count = self.node.tcp.recv(&mut self.node.stack, key, &mut out)?;
        out.truncate(count);
        Ok(out)
    }

    /// Events of one connection since the last call.
    pub fn events(&mut self, key: Key) -> Events {
        let all = self.node.events();
        all.into_iter().filter(|(k, _)| *k == key).fold(Events::empty(), |sum, (_, e)| sum | e)
    }
}

/// Options with which a script sees each acknowledgement at once.
pub fn quiet() -> Options {
    Options { delayed_ack: Duration::ZERO, ..Options::default() }
}

pub fn frame(from: Station, to: Station, repr: &Repr, payload: &[u8]) -> Vec<u8> {
    let mut head = [0u8; 60];
    let len = repr.emit([0; 2], &mut head).unwrap();
    let mut bytes = head[..len].to_vec();
    bytes.extend_from_slice(payload);
    finish(from, to, bytes)
}

/// An Ethernet frame around a segment whose checksum is filled in.
pub fn finish(from: Station, to: Station, mut segment: Vec<u8>) -> Vec<u8> {
    segment[16..18].fill(0);
    let pseudo = crate::stack::egress::pseudo_header(from.ip, to.ip, Protocol::TCP, segment.len());
    let field = (pseudo + Sum::of(&segment)).to_field();
    segment[16..18].copy_from_slice(&field);
    let ip = packets::ipv4_with(from.ip, to.ip, Protocol::TCP, &segment, |_| ());
    packets::ethernet(to.mac, from.mac, EtherType::IPV4, &ip)
}

/// Bytes that differ from place to place.
pub fn pattern(start: usize, len: usize) -> Vec<u8> {
    (start..start + len)
        .map(|n| {
            let mut state = (n / 8) as u64;
            (crate::sim::host::splitmix(&mut state) >> (n % 8 * 8)) as u8
        })
        .collect()
}
