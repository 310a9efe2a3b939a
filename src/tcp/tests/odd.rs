//! What is rare and legal: data in a SYN, segments in fragments, and streams in any order.

use super::rig::*;
use crate::sim::host::{SimMemory, splitmix};
use crate::sim::packets;
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::Endpoint;
use crate::storage::time::{Duration, Instant};
use crate::tcp::{Options, State};
use crate::wire::ethernet::EtherType;
use crate::wire::ipv4::Protocol;
use crate::wire::tcp::Options as WireOptions;
use core::net::Ipv4Addr;
use std::vec;
use std::vec::Vec;

fn listening(rig: &mut Rig) -> crate::storage::slots::Key {
    let local = Endpoint { addr: Ipv4Addr::UNSPECIFIED, port: 4000 };
    rig.peer.to = 4000;
    rig.node.tcp.listen(local, 4, Options { timestamps: false, ..quiet() }).unwrap()
}

/// RFC 9293 §3.10.7.2: data in a SYN is kept until the connection is established, and is not acknowledged twice.
#[test]
fn data_in_a_syn_is_given_up_once_the_connection_stands() {
    let mut rig = Rig::new();
    let listener = listening(&mut rig);
    rig.send_with(S, 0, 0, &pattern(0, 100), full(1000, None, false));
    let answer = rig.sent().pop().unwrap();
    rig.peer.irs = answer.seq;
    assert_eq!((answer.flags, answer.ack.since(rig.peer.iss)), (SA, 101), "the data is acknowledged");
    assert!(rig.node.tcp.accept(listener).is_err(), "nobody is told before the handshake is done");
    // Our answer is lost: the SYN comes again, with its data.
    rig.send_with(S, 0, 0, &pattern(0, 100), full(1000, None, false));
    let answer = rig.sent().pop().unwrap();
    assert_eq!((answer.flags, answer.ack.since(rig.peer.iss)), (SA, 101));
    rig.send(A, 101, 1, &pattern(100, 50));
    let key = rig.node.tcp.accept(listener).unwrap();
    assert_eq!(rig.read(key, 1000).unwrap(), pattern(0, 150));
    // The nearest twin: a peer that does not believe in it sends the data again.
    let mut rig = Rig::new();
    let listener = listening(&mut rig);
    rig.send_with(S, 0, 0, &pattern(0, 100), full(1000, None, false));
    rig.peer.irs = rig.sent().pop().unwrap().seq;
    rig.send(A, 1, 1, &pattern(0, 100));
    let key = rig.node.tcp.accept(listener).unwrap();
    assert_eq!(rig.read(key, 1000).unwrap(), pattern(0, 100));
}

#[test]
fn data_in_a_syn_beyond_the_ring_is_not_acknowledged() {
    let mut rig = Rig::with(Limits { receive: 500, ..Limits::default() });
    listening(&mut rig);
    rig.send_with(S, 0, 0, &pattern(0, 1000), full(1000, None, false));
    let answer = rig.sent().pop().unwrap();
    assert!(answer.ack.since(rig.peer.iss) <= 501, "{answer:?}");
    // Without room for any of it the SYN is answered as if it were bare, also when it comes again.
    let mut rig = Rig::with(Limits { receive: 0, ..Limits::default() });
    listening(&mut rig);
    for _ in 0..2 {
        rig.send_with(S, 0, 0, &pattern(0, 1000), full(1000, None, false));
        let answer = rig.sent().pop().unwrap();
        assert_eq!((answer.flags, answer.ack.since(rig.peer.iss)), (SA, 1));
    }
}

#[test]
fn data_in_a_syn_ack_is_taken() {
    let mut rig = Rig::new();
    let (key, _) = rig.connect(Options { timestamps: false, ..quiet() });
    rig.send_with(SA, 0, 1, &pattern(0, 300), full(1000, None, false));
    assert_eq!(rig.sent_ack().0, 301);
    assert_eq!(rig.read(key, 1000).unwrap(), pattern(0, 300));
    rig.send(A, 301, 1, &pattern(300, 20));
    assert_eq!(rig.read(key, 1000).unwrap(), pattern(300, 20));
}

/// A host that is asked for while an acknowledgement waits must not be polled without end.
#[test]
fn an_acknowledgement_that_waits_for_a_neighbour_lets_time_pass() {
    let mut rig = Rig::with(Limits { knows: false, ..Limits::default() });
    let now = rig.now();
    rig.node.stack.learn_for_test(now, rig.node.nic, rig.peer.station.ip, rig.peer.station.mac);
    rig.open(Options { timestamps: false, ..quiet() }, full(1000, None, false));
    // Long enough for the neighbour to be forgotten.
    rig.advance(130_000);
    rig.node.sent_frames();
    rig.send(A, 1, 1, &pattern(0, 10));
    assert!(rig.sent().is_empty(), "the neighbour is not known");
    assert!(rig.node.deadline() > rig.now(), "{:?} at {:?}", rig.node.deadline(), rig.now());
    let now = rig.now();
    rig.node.stack.learn_for_test(now, rig.node.nic, rig.peer.station.ip, rig.peer.station.mac);
    rig.node.stack.wake = true;
    rig.node.pass();
    assert_eq!(rig.sent_ack().0, 11);
}

/// Segments that come as IP fragments, in any order, are put together before TCP sees them (RFC 791 §3.2).
#[test]
fn segments_in_fragments() {
    use crate::sim::rig::{Limits as EngineLimits, Rig as EngineRig};
    use crate::stack::interface::Cidr;
    use crate::storage::host::NicCaps;
    use crate::wire::tcp::{Flags, Repr, SeqNumber};
    let limits = EngineLimits { tcp_ring: 16_384, ..EngineLimits::default() };
    let mut rig = EngineRig::bare(1, limits, NicCaps::empty(), true);
    let (us, peer) = (rig.us, crate::sim::packets::Station::new(2));
    rig.engine.stack.interface_mut(rig.nic).unwrap().add_address(Cidr { addr: us.ip, prefix: 24 });
    rig.know(peer);
    let engine = &mut rig.engine;
    let local = Endpoint { addr: Ipv4Addr::UNSPECIFIED, port: 0 };
    let remote = Endpoint { addr: peer.ip, port: 80 };
    let options = Options { timestamps: false, ..Options::default() };
    let key = engine.tcp.connect(&mut engine.stack, local, remote, options).unwrap();
    engine.tick();
    let syn = rig.sent().iter().find_map(|f| parse(f)).unwrap();
    let repr = |seq: u32, flags, options| Repr {
        source_port: 80,
        destination_port: syn.ports.0,
        seq: SeqNumber(seq),
        ack: syn.seq + 1,
        flags,
        window: 8000,
        options,
    };
    rig.input(&frame(peer, us, &repr(0, Flags::SYN | Flags::ACK, full(1460, None, false)), &[]));
    let mut id = 1;
    let mut send = |rig: &mut EngineRig, at: usize, len: usize, order: &[usize], spoil: bool| {
        let whole = frame(peer, us, &repr(1 + at as u32, A, WireOptions::default()), &pattern(at, len));
        let mut segment = whole[34..34 + 20 + len].to_vec();
        if spoil {
            segment[500] ^= 1;
        }
        id += 1;
        let pieces: Vec<&[u8]> = segment.chunks(480).collect();
        for n in order {
            let packet = packets::ipv4_with(peer.ip, us.ip, Protocol::TCP, pieces[*n], |ip| {
                ip.identification = id;
                ip.more_fragments = n + 1 < pieces.len();
                ip.fragment_offset = (n * 480) as u16;
            });
            rig.input(&packets::ethernet(us.mac, peer.mac, EtherType::IPV4, &packet));
        }
    };
    let readable = |rig: &EngineRig| rig.engine.tcp.peek(key).map(|(a, b)| a.len() + b.len()).unwrap();
    send(&mut rig, 0, 1400, &[0, 1, 2], false);
    assert_eq!(readable(&rig), 1400);
    send(&mut rig, 1400, 1400, &[2, 1, 0], false);
    assert_eq!(readable(&rig), 2800);
    send(&mut rig, 2800, 1400, &[1, 0, 2], true);
    assert_eq!((readable(&rig), rig.count(Counter::DropTcpChecksum)), (2800, 1), "the checksum covers all pieces");
    send(&mut rig, 2800, 1400, &[0, 1], false);
    assert_eq!(readable(&rig), 2800, "a piece is missing");
    send(&mut rig, 2800, 1400, &[2, 0, 1], false);
    let mut out = vec![0; 8000];
    let engine = &mut rig.engine;
    assert_eq!(engine.tcp.recv(&mut engine.stack, key, &mut out), Ok(4200));
    assert!(out[..4200] == pattern(0, 4200));
}

/// A stream cut, copied, overlapped, spoiled and shuffled by a seed, against a model: the bytes in order. It goes through the
/// ring, through a region, or from one to the other in the middle.
fn shuffle(seed: u64) {
    let mut state = seed;
    let mut random = |bound: u64| splitmix(&mut state) % bound;
    let ring = [2_000, 8_192, 65_535][random(3) as usize];
    let mut rig = Rig::with(Limits { receive: ring, held: [2, 8, 32][random(3) as usize], seed, ..Limits::default() });
    let options = Options { timestamps: false, sack: random(4) > 0, recv_max: 1 << 20, ..quiet() };
    // Sequence numbers that wrap in the middle, for some.
    rig.peer.iss = crate::wire::tcp::SeqNumber([5_000, u32::MAX - 700, u32::MAX][random(3) as usize]);
    let key = rig.open(options, full(1000, Some(3), true));
    let len = 500 + random(3_000) as usize;
    let (at, size) = (random(600) as usize, 1 + random(1_500) as usize);
    let memory = SimMemory::new(size);
    let mut got = Vec::new();
    let regions = random(3) > 0;
    if regions {
        let Node { tcp, stack, .. } = &mut rig.node;
        tcp.queue_ring(key, at as u64).unwrap();
        tcp.recv_into(stack, key, &memory, 0, size).unwrap();
    }
    let mut in_region = regions;
    for turn in 0.. {
        assert!(turn < 60, "seed {seed}: stuck at {} of {len}", got.len());
        // What the peer sends in a round: pieces of all it has not seen acknowledged, some twice, some spoiled.
        let from = rig.node.tcp.info(key).unwrap().bytes_received as usize;
        if from < len {
            let mut pieces = Vec::new();
            let mut pos = from.saturating_sub(random(200) as usize);
            while pos < len {
                let size = (1 + random(400) as usize).min(len - pos);
                for _ in 0..1 + u64::from(random(6) == 0) {
                    pieces.push((pos, size, random(12) == 0));
                }
                let overlap = random(size as u64) as usize / 2;
                pos += if random(8) == 0 { size - overlap } else { size };
            }
            for n in (1..pieces.len()).rev() {
                pieces.swap(n, random(n as u64 + 1) as usize);
            }
            for (pos, size, spoiled) in pieces {
                if random(10) == 0 {
                    continue;
                }
                let mut frame = rig.frame(A, 1 + pos as u32, 1, &pattern(pos, size), WireOptions::default());
                if spoiled {
                    let at = 54 + random(size as u64) as usize;
                    frame[at] ^= 1 << random(8);
                }
                rig.node.receive(&frame);
                if random(3) == 0 {
                    rig.node.pass();
                }
            }
        }
        rig.node.pass();
        let edge = rig.sent().iter().map(|s| s.ack.since(rig.peer.iss)).max();
        assert!(
            edge.is_none_or(|edge| edge as usize <= len + 1),
            "seed {seed}: nothing beyond the end is acknowledged"
        );
        while let Ok(bytes) = rig.read(key, 1 + random(900) as usize) {
            got.extend_from_slice(&bytes);
        }
        if in_region && got.len() == at {
            let state = rig.node.tcp.region(key).unwrap().unwrap();
            let all = rig.node.tcp.info(key).unwrap().bytes_received as usize == len;
            // Some regions are taken out before they are full.
            if state.is_full() || all || random(5) == 0 {
                let Node { tcp, stack, .. } = &mut rig.node;
                let state = tcp.finish_region(stack, key).unwrap().unwrap();
                got.extend_from_slice(&memory.to_vec()[..state.filled]);
                in_region = false;
            }
        }
        assert!(pattern(0, len).starts_with(&got), "seed {seed}: wrong bytes");
        if got.len() == len {
            break;
        }
    }
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::Established);
}

#[test]
fn five_hundred_shuffles() {
    (0..500).for_each(shuffle);
}

#[test]
#[ignore = "long: ten thousand"]
fn ten_thousand_shuffles() {
    (500..10_500).for_each(shuffle);
}

/// The same with two stacks and what is between them: 1,000 seeds.
#[test]
#[ignore = "long: a thousand conversations"]
fn a_thousand_hostile_links() {
    use super::pair::{Pair, Way, Wire, transfer};
    for seed in 0..1_000 {
        let mut state = seed + 1_000_000;
        let mut random = |bound: u64| splitmix(&mut state) % bound;
        let wire = Wire {
            delay_us: random(50_000),
            loss_ppm: random(100_000),
            duplicate_ppm: random(100_000),
            reorder_ppm: random(500_000),
            reorder_by_us: 1 + random(20_000),
            corrupt_ppm: random(20_000),
            ..Wire::default()
        };
        let mut pair = Pair::new(wire, Limits::default(), seed + 1);
        let options = Options { user_timeout: Duration::from_secs(3_600), ..Options::default() };
        let way = [Way::Rings, Way::FileToRegion][random(2) as usize];
        let len = 1 + random(40_000) as usize;
        transfer(&mut pair, &options, way, len, 4_000_000);
        assert!(pair.now() > Instant::ZERO);
    }
}

/// A host with one place opens one connection after the other, whether or not the peers hear the end of those before.
#[test]
fn a_connection_that_only_parts_makes_room_for_the_next() {
    let mut rig = Rig::with(Limits { slots: 1, ..Limits::default() });
    let key = rig.open_plain();
    rig.node.tcp.send(key, b"tail").unwrap();
    rig.node.pass();
    rig.node.tcp.close(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    let (local, remote) =
        (Endpoint { addr: Ipv4Addr::UNSPECIFIED, port: 0 }, Endpoint { addr: rig.peer.station.ip, port: 81 });
    let connect = |rig: &mut Rig| rig.node.tcp.connect(&mut rig.node.stack, local, remote, quiet());
    assert_eq!(connect(&mut rig), Err(Error::NoSlot), "its last bytes were not acknowledged");
    rig.send(A, 1, 5, &[]);
    rig.sent();
    let next = connect(&mut rig).unwrap();
    assert_eq!(rig.sent().pop().unwrap().flags, RA, "in FIN-WAIT-1: nothing is lost but the farewell");
    assert_eq!(rig.node.stack.stats.get(Counter::TcpEvicted), 1);
    rig.node.pass();
    assert_eq!(rig.sent().pop().unwrap().flags, S);
    // One that its host still has stays.
    assert_eq!(connect(&mut rig), Err(Error::NoSlot));
    assert!(rig.node.tcp.info(next).is_ok());
}
