//! TCP: a connection whose peer sends what the input says, and two stacks with a link between them that does what the
//! input says. No byte may be wrong, nothing may get stuck, and what comes after must work.

use bootlace::sim::host::{SimMemory, splitmix};
use bootlace::sim::packets::{self, Station};
use bootlace::sim::rig::{Limits, Rig};
use bootlace::stack::egress::pseudo_header;
use bootlace::stack::interface::Cidr;
use bootlace::storage::checksum::Sum;
use bootlace::storage::host::{Endpoint, NicCaps, Source};
use bootlace::storage::slots::Key;
use bootlace::storage::time::{Duration, Instant};
use bootlace::tcp::{Algorithm, Options, State};
use bootlace::wire::ethernet::{EtherType, Frame};
use bootlace::wire::ipv4::{self, Protocol};
use bootlace::wire::tcp::{Flags, Options as WireOptions, Repr, SackBlock, Segment, SeqNumber, Timestamps};
use core::net::Ipv4Addr;
use std::cell::RefCell;
use std::collections::BTreeMap;

const PEER: Station = Station::new(1);
const PORT: u16 = 7;
const REGION: usize = 6000;
const GUARD: usize = 64;
/// How long a hostile link is one.
const HOSTILE: Duration = Duration::from_secs(300);

/// The byte at a place of every stream.
fn byte(at: u32) -> u8 {
    let mut state = u64::from(at / 8);
    (splitmix(&mut state) >> (at % 8 * 8)) as u8
}

fn pattern(from: u32, len: usize) -> Vec<u8> {
    (0..len as u32).map(|n| byte(from.wrapping_add(n))).collect()
}

fn rig(seed: u64) -> Rig {
    let limits = Limits { nics: 1, ops: 1, sockets: 1, tcp: 2, tcp_ring: 4096, staging: 1, ..Limits::default() };
    Rig::bare(seed, limits, NicCaps::empty(), true)
}

/// Whether one of ours has ended.
fn over(rig: &Rig, key: Key) -> bool {
    rig.engine.tcp.info(key).map_or(true, |i| matches!(i.state, State::Closed | State::TimeWait))
}

/// The peer of [`tcp_segments`]: knows both initial sequence numbers.
struct Script {
    rig: Rig,
    port: u16,
    iss: u32,
    /// Of the stack's.
    irs: u32,
    /// Acknowledged so far by the stack.
    acked: u32,
    /// One beyond what the stack has sent.
    seen: u32,
}

impl Script {
    fn new() -> Self {
        let mut rig = rig(3);
        let cidr = Cidr { addr: rig.us.ip, prefix: 24 };
        rig.engine.stack.interface_mut(rig.nic).expect("added").add_address(cidr);
        Script { rig, port: PORT, iss: 0, irs: 0, acked: 0, seen: 0 }
    }

    /// Looks at what the stack sent; a SYN tells its initial sequence number.
    fn look(&mut self) {
        for frame in self.rig.sent() {
            let Ok(frame) = Frame::parse(&frame) else { continue };
            let Ok(packet) = ipv4::Packet::parse(frame.payload()) else { continue };
            if packet.protocol() != Protocol::TCP {
                continue;
            }
            let segment = Segment::parse(packet.payload()).expect("the stack sends whole segments");
            let pseudo = pseudo_header(self.rig.us.ip, PEER.ip, Protocol::TCP, packet.payload().len());
            assert!((pseudo + Sum::of(packet.payload())).holds(), "with the right sum");
            if segment.flags().contains(Flags::SYN) {
                self.irs = segment.seq().0;
                self.port = segment.source_port();
            }
            let end = segment.seq().0.wrapping_sub(self.irs).wrapping_add(segment.payload().len() as u32);
            if end < 1 << 24 {
                self.seen = self.seen.max(end);
            }
            if segment.flags().contains(Flags::ACK) {
                self.acked = segment.ack().0.wrapping_sub(self.iss);
            }
            if !segment.payload().is_empty() && !segment.flags().intersects(Flags::RST) {
                let at = segment.seq().0.wrapping_sub(self.irs).wrapping_sub(1);
                assert_eq!(
                    segment.payload(),
                    pattern(at, segment.payload().len()),
                    "the stack sends the stream's bytes"
                );
            }
        }
    }

    fn send(&mut self, repr: &Repr, payload: &[u8], spoil: bool) {
        let mut head = [0; 60];
        let len = repr.emit([0; 2], &mut head).expect("60 bytes hold any header");
        let mut segment = [&head[..len], payload].concat();
        self.seal(&mut segment);
        if spoil {
            let last = segment.len() - 1;
            segment[last] ^= 0x40;
        }
        self.input(&segment);
    }

    fn seal(&self, segment: &mut [u8]) {
        segment[16..18].fill(0);
        let pseudo = pseudo_header(PEER.ip, self.rig.us.ip, Protocol::TCP, segment.len());
        let field = (pseudo + Sum::of(segment)).to_field();
        segment[16..18].copy_from_slice(&field);
    }

    fn input(&mut self, segment: &[u8]) {
        let ip = packets::ipv4_with(PEER.ip, self.rig.us.ip, Protocol::TCP, segment, |_| ());
        let frame = packets::ethernet(self.rig.us.mac, PEER.mac, EtherType::IPV4, &ip);
        self.rig.input(&frame);
        self.look();
    }

    fn repr(&self, seq: u32, ack: u32, flags: Flags, window: u16, options: WireOptions) -> Repr {
        Repr {
            source_port: PORT,
            destination_port: self.port,
            seq: SeqNumber(self.iss.wrapping_add(seq)),
            ack: SeqNumber(self.irs.wrapping_add(ack)),
            flags,
            window,
            options,
        }
    }

    /// Opens a connection from either end. With `region` it receives into a region first.
    fn open(&mut self, active: bool, options: &Options, answer: WireOptions) -> Key {
        self.iss = self.iss.wrapping_add(0x1234_5678);
        (self.acked, self.seen) = (0, 0);
        let now = self.rig.now();
        let at = |addr, port| Endpoint { addr, port };
        self.rig.engine.stack.learn_for_test(now, self.rig.nic, PEER.ip, PEER.mac);
        let engine = &mut self.rig.engine;
        if active {
            let to = at(PEER.ip, PORT);
            let key = engine.tcp.connect(&mut engine.stack, at(Ipv4Addr::UNSPECIFIED, 0), to, *options);
            let key = key.expect("a free connection");
            engine.tick();
            self.look();
            self.send(&self.repr(0, 1, Flags::SYN | Flags::ACK, 8000, answer), &[], false);
            return key;
        }
        let listener = engine.tcp.listen(at(Ipv4Addr::UNSPECIFIED, PORT), 2, *options).expect("a free listener");
        self.port = PORT;
        self.send(&self.repr(0, 0, Flags::SYN, 8000, answer), &[], false);
        self.send(&self.repr(1, 1, Flags::ACK, 8000, stamped(answer)), &[], false);
        let engine = &mut self.rig.engine;
        let key = engine.tcp.accept(listener).expect("the handshake is done");
        engine.tcp.unlisten(&mut engine.stack, listener).expect("it listens");
        key
    }

    /// Ends what is left, and sees that a plain conversation works.
    fn twin(&mut self) {
        let key =
            self.open(true, &Options { delayed_ack: Duration::ZERO, ..Options::default() }, WireOptions::default());
        self.send(&self.repr(1, 1, Flags::ACK | Flags::PSH, 8000, WireOptions::default()), &pattern(0, 100), false);
        let mut out = [0; 200];
        let engine = &mut self.rig.engine;
        assert_eq!(engine.tcp.recv(&mut engine.stack, key, &mut out), Ok(100), "a valid segment is taken");
        assert_eq!(out[..100], pattern(0, 100));
        let engine = &mut self.rig.engine;
        engine.tcp.abort(&mut engine.stack, key).expect("open");
        self.rig.advance(1);
        self.look();
    }
}

/// A zero timestamp where the peer offered them: PAWS wants one.
fn stamped(options: WireOptions) -> WireOptions {
    WireOptions { timestamps: options.timestamps, ..WireOptions::default() }
}

/// Numbers from the front of the input; zeros at its end.
struct Input<'d>(&'d [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }
}

thread_local! {
    // Memory of a rig is never freed, so there is one of each.
    static SCRIPT: RefCell<Script> = RefCell::new(Script::new());
    static PAIR: RefCell<Pair> = RefCell::new(Pair::new());
}

fn options_of(bits: u8) -> Options {
    Options {
        sack: bits & 1 == 0,
        timestamps: bits & 2 == 0,
        window_scaling: bits & 4 == 0,
        nagle: bits & 8 == 0,
        congestion: if bits & 16 == 0 { Algorithm::Cubic } else { Algorithm::NewReno },
        user_timeout: Duration::from_secs(3_600),
        connect_timeout: Duration::from_secs(3_600),
        ..Options::default()
    }
}

/// Two bytes of options, then steps: segments around what the stack expects, bytes that are hardly one, time, and what
/// the host does meanwhile.
pub fn tcp_segments(data: &[u8]) -> bool {
    SCRIPT.with_borrow_mut(|script| {
        let mut input = Input(data);
        let bits = input.byte();
        let options = Options { user_timeout: Duration::from_secs(30), ..options_of(bits) };
        let answer = input.byte();
        let answer = WireOptions {
            max_segment_size: (answer & 1 == 0).then_some(500),
            window_scale: (answer & 2 == 0).then_some(answer >> 6),
            sack_permitted: answer & 4 == 0,
            timestamps: (answer & 8 == 0).then_some(Timestamps { value: 1, echo: 0 }),
            ..WireOptions::default()
        };
        let key = script.open(bits & 32 == 0, &options, answer);
        let received = steps(script, key, &mut input, answer);
        let engine = &mut script.rig.engine;
        let _ = engine.tcp.abort(&mut engine.stack, key);
        script.rig.advance(130_000);
        script.look();
        script.twin();
        received > 0
    })
}

/// Runs the steps; how many bytes were received.
fn steps(script: &mut Script, key: Key, input: &mut Input<'_>, answer: WireOptions) -> u32 {
    let memory = SimMemory::new(REGION + GUARD);
    let (mut taken, mut given, mut region, mut queued) = (0u32, 0u32, None, false);
    let mut stamp = 1;
    for _ in 0..200 {
        if input.0.is_empty() {
            break;
        }
        match input.byte() % 12 {
            0..=4 => {
                // A segment: where it stands beside what is expected, its control bits, window, length.
                let seq = script.acked.wrapping_add(i32::from(input.word() as i16) as u32);
                let ack = script.seen.wrapping_add((i32::from(input.byte() as i8) * 16) as u32).max(1);
                let flags = Flags::from_bits_truncate(input.byte());
                let window = input.word();
                let len = usize::from(input.byte()) * 4;
                stamp += u32::from(input.byte() & 3);
                let mut options = stamped(answer);
                if let Some(stamps) = &mut options.timestamps {
                    stamps.value = stamp;
                }
                if flags.contains(Flags::URG) {
                    let left = SeqNumber(script.irs.wrapping_add(u32::from(input.word())));
                    options
                        .sack
                        .push(SackBlock { left, right: SeqNumber(left.0.wrapping_add(u32::from(input.word()))) });
                }
                let payload = pattern(seq.wrapping_sub(1), len);
                script.send(&script.repr(seq, ack, flags, window, options), &payload, false);
            }
            5 => {
                // The next bytes, as they should be, or with a wrong sum.
                let spoil = input.byte() & 1 == 1;
                let len = 1 + usize::from(input.byte()) * 4;
                let (seq, ack) = (script.acked.max(1), script.seen.max(1));
                let mut options = stamped(answer);
                if let Some(stamps) = &mut options.timestamps {
                    stamps.value = stamp;
                }
                let payload = pattern(seq.wrapping_sub(1), len);
                script.send(&script.repr(seq, ack, Flags::ACK, 8000, options), &payload, spoil);
            }
            6 => {
                // Any bytes behind the right ports, the sum right.
                let len = 16 + usize::from(input.byte());
                let mut segment: Vec<u8> = (0..len).map(|_| input.byte()).collect();
                segment = [&PORT.to_be_bytes()[..], &script.port.to_be_bytes(), &segment].concat();
                // What lies inside the window must be the stream's bytes: a length that is not looks like it.
                segment[12] = 0xf0 | segment[12] & 0x0f;
                script.seal(&mut segment);
                script.input(&segment);
            }
            7 => {
                let ms = u64::from(input.byte()) * 20;
                script.rig.advance(ms);
                script.look();
            }
            8 => {
                let count = usize::from(input.byte()) * 8;
                given += script.rig.engine.tcp.send(key, &pattern(given, count)).unwrap_or(0) as u32;
                script.rig.engine.tick();
                script.look();
            }
            9 => {
                let mut out = vec![0; 1 + usize::from(input.byte()) * 8];
                let engine = &mut script.rig.engine;
                if let Ok(count) = engine.tcp.recv(&mut engine.stack, key, &mut out) {
                    assert_eq!(out[..count], pattern(taken, count), "the bytes of the stream");
                    taken += count as u32;
                }
            }
            10 if !queued => {
                let engine = &mut script.rig.engine;
                let unread = engine.tcp.peek(key).map_or(0, |(a, b)| a.len() + b.len());
                if engine.tcp.recv_into(&mut engine.stack, key, &memory, 0, REGION).is_ok() {
                    (queued, region) = (true, Some((taken, unread)));
                }
            }
            10 => {
                let engine = &mut script.rig.engine;
                let done = engine.tcp.finish_region(&mut engine.stack, key).ok().flatten();
                if let (Some(state), Some((at, _))) = (done, region.take()) {
                    assert_eq!(memory.to_vec()[..state.filled], pattern(at, state.filled), "the bytes of the stream");
                    taken += state.filled as u32;
                }
            }
            _ => {
                let engine = &mut script.rig.engine;
                let _ = match input.byte() % 4 {
                    0 => engine.tcp.shutdown(&mut engine.stack, key),
                    1 => engine.tcp.close(&mut engine.stack, key),
                    _ => engine.tcp.set_nagle(key, false),
                };
                engine.tick();
                script.look();
            }
        }
        if script.rig.engine.tcp.info(key).is_ok_and(|i| i.state == State::Closed) && input.byte() & 1 == 0 {
            break;
        }
    }
    if let (Some((at, _)), Ok(Some(state))) = (region, script.rig.engine.tcp.region(key)) {
        assert_eq!(memory.to_vec()[..state.filled], pattern(at, state.filled), "the bytes of the stream");
        taken += state.filled as u32;
    }
    assert!(memory.to_vec()[REGION..].iter().all(|b| *b == 0xa5), "nothing beyond the region is written");
    let engine = &mut script.rig.engine;
    let mut out = [0; 4096];
    if let Ok(count) = engine.tcp.recv(&mut engine.stack, key, &mut out) {
        assert_eq!(out[..count], pattern(taken, count), "the bytes of the stream");
        taken += count as u32;
    }
    taken
}

/// Two stacks.
struct Pair {
    rigs: [Rig; 2],
    flight: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    order: u64,
    /// When the conversation began.
    begun: Instant,
}

impl Pair {
    fn new() -> Self {
        let mut rigs = [rig(5), rig(6)];
        // Both rigs are host 9; one gets another address.
        let other = Station::new(8);
        rigs[1].us = other;
        for rig in &mut rigs {
            let interface = rig.engine.stack.interface_mut(rig.nic).expect("added");
            interface.mac = rig.us.mac;
            interface.add_address(Cidr { addr: rig.us.ip, prefix: 24 });
        }
        Pair { rigs, flight: BTreeMap::new(), order: 0, begun: Instant::ZERO }
    }

    /// Takes what both have sent; each frame's fate is a byte of the input: mostly it arrives after a millisecond.
    fn collect(&mut self, input: &mut Input<'_>) {
        for from in 0..2 {
            let now = self.rigs[from].now();
            for mut frame in self.rigs[from].sent() {
                // Without ARP there is nobody to talk to: it is spared.
                let fate = if frame[12..14] == [8, 0] { input.byte() } else { 0 };
                // A link that lets nothing through for an hour ends any connection: after a while it is clean.
                let fate = if now.since(self.begun) > HOSTILE { 0 } else { fate };
                let (mut copies, mut delay) = (1, 1_000);
                match fate {
                    1..=40 => copies = 0,
                    41..=60 => copies = 2,
                    61..=90 => delay = 1_000 + u64::from(input.byte()) * 200,
                    91..=110 => {
                        let at = 34 + usize::from(input.word()) % (frame.len() - 34);
                        frame[at] ^= 1 << (fate % 8);
                    }
                    _ => {}
                }
                for _ in 0..copies {
                    self.order += 1;
                    let at = now + Duration::from_micros(delay);
                    self.flight.insert((at, self.order), (1 - from, frame.clone()));
                }
            }
        }
    }

    /// Time goes on to what comes next.
    fn step(&mut self, input: &mut Input<'_>) {
        for rig in &mut self.rigs {
            rig.engine.tick();
        }
        self.collect(input);
        let now = self.rigs[0].now();
        let mut next = self.flight.first_key_value().map_or(Instant::NEVER, |((at, _), _)| *at);
        for rig in &self.rigs {
            next = next.min(rig.engine.deadline());
        }
        let next = next.max(now + Duration::from_micros(1)).min(now + Duration::from_secs(1));
        for rig in &mut self.rigs {
            rig.engine.set_now(next);
        }
        while let Some(entry) = self.flight.first_entry() {
            if entry.key().0 > next {
                break;
            }
            let (to, frame) = entry.remove();
            self.rigs[to].input(&frame);
        }
    }
}

/// A byte of options for each end and three for lengths, then the fate of each frame; when that is used up the link is
/// clean. Both streams must come whole and both ends must end.
pub fn tcp_pair(data: &[u8]) -> bool {
    PAIR.with_borrow_mut(|pair| {
        let mut input = Input(data);
        let (one, two) = (input.byte(), input.byte());
        let lens = [usize::from(input.byte()) * 100, usize::from(input.byte()) * 100];
        let region = input.byte();
        let at = |addr, port| Endpoint { addr, port };
        let now = pair.rigs[0].now();
        let stations = [pair.rigs[0].us, pair.rigs[1].us];
        for (rig, other) in pair.rigs.iter_mut().zip([stations[1], stations[0]]) {
            rig.engine.stack.learn_for_test(now, rig.nic, other.ip, other.mac);
        }
        let [a, b] = &mut pair.rigs;
        let listener =
            b.engine.tcp.listen(at(Ipv4Addr::UNSPECIFIED, PORT), 2, options_of(two)).expect("a free listener");
        let to = at(stations[1].ip, PORT);
        let engine = &mut a.engine;
        let key = engine.tcp.connect(&mut engine.stack, at(Ipv4Addr::UNSPECIFIED, 0), to, options_of(one));
        let mut keys = [Some(key.expect("a free connection")), None];
        let memory = SimMemory::new(REGION + GUARD);
        let file = SimMemory::from(pattern(0, lens[0]));
        let sends_file = one & 64 != 0 && lens[0] > 0;
        let mut into_region = region & 1 != 0;
        let (mut given, mut got, mut shut, mut filled) = ([0; 2], [Vec::new(), Vec::new()], [false; 2], 0);
        let mut queued = false;
        let begun = now;
        pair.begun = now;
        let mut ended = false;
        for _ in 0..200_000 {
            pair.step(&mut input);
            if keys[1].is_none() {
                keys[1] = pair.rigs[1].engine.tcp.accept(listener).ok();
            }
            for end in 0..2 {
                let Some(key) = keys[end] else { continue };
                let engine = &mut pair.rigs[end].engine;
                if end == 1 && into_region {
                    if !queued {
                        queued = engine.tcp.recv_into(&mut engine.stack, key, &memory, 0, REGION).is_ok();
                    }
                    let full = engine.tcp.region(key).ok().flatten();
                    let finished = engine.tcp.info(key).is_ok_and(|i| {
                        matches!(i.state, State::CloseWait | State::Closing | State::LastAck | State::TimeWait)
                    });
                    if full.is_some_and(|r| r.is_full()) || (queued && finished) {
                        let state = engine.tcp.finish_region(&mut engine.stack, key).expect("open").expect("queued");
                        got[1].extend_from_slice(&memory.to_vec()[..state.filled]);
                        filled = state.filled;
                        into_region = false;
                    }
                }
                if end == 0 && sends_file && given[0] == 0 && engine.tcp.info(key).is_ok() {
                    let source = Source::Memory(file.clone());
                    if engine.tcp.sendfile(key, source, 0, lens[0] as u64).is_ok() {
                        given[0] = lens[0];
                    }
                }
                if given[end] < lens[end] {
                    let more = pattern(given[end] as u32, lens[end] - given[end]);
                    given[end] += engine.tcp.send(key, &more).unwrap_or(0);
                }
                if given[end] == lens[end] && !shut[end] {
                    shut[end] = engine.tcp.shutdown(&mut engine.stack, key).is_ok();
                }
                let mut out = [0; 1500];
                while let Ok(count @ 1..) = engine.tcp.recv(&mut engine.stack, key, &mut out) {
                    got[end].extend_from_slice(&out[..count]);
                }
                let error = engine.tcp.error(key);
                // Acknowledgements that are lost for longer than the other end waits after its own.
                let late =
                    keys[1 - end].is_some_and(|key| over(&pair.rigs[1 - end], key)) && got[1 - end].len() == lens[end];
                assert!(error == Ok(None) || late, "nothing ends a connection: {error:?}");
            }
            ended = keys.iter().zip(&pair.rigs).all(|(key, rig)| key.is_some_and(|key| over(rig, key)));
            if ended {
                break;
            }
        }
        let infos: Vec<_> = keys.iter().zip(&pair.rigs).map(|(k, r)| k.map(|k| r.engine.tcp.info(k))).collect();
        assert!(
            ended,
            "stuck after {:?}: {infos:#?}, {:?} of {lens:?}",
            pair.rigs[0].now().since(begun),
            [got[1].len(), got[0].len()]
        );
        for end in 0..2 {
            assert!(got[1 - end] == pattern(0, lens[end]), "{} of {} bytes", got[1 - end].len(), lens[end]);
        }
        assert!(
            memory.to_vec()[filled.max(REGION)..].iter().all(|b| *b == 0xa5),
            "nothing beyond the region is written"
        );
        for (key, rig) in keys.iter().zip(&mut pair.rigs) {
            let engine = &mut rig.engine;
            if let Some(key) = key {
                let _ = engine.tcp.abort(&mut engine.stack, *key);
            }
        }
        let engine = &mut pair.rigs[1].engine;
        engine.tcp.unlisten(&mut engine.stack, listener).expect("it listens");
        pair.flight.clear();
        for rig in &mut pair.rigs {
            rig.sent();
        }
        true
    })
}
