//! Fragments against the whole engine: landing in a region by the rules of `stack::landing`, staging, and sending.

use crate::client::engine::Received;
use crate::client::operation::Step;
use crate::client::ops::Client;
use crate::sim::blocks::{BlocksRig, PORT, fragments, piece};
use crate::sim::host::{SimMemory, splitmix};
use crate::sim::packets::{self, Station};
use crate::sim::rig::{Limits, Rig};
use crate::stack::interface::Cidr;
use crate::stack::stats::Counter;
use crate::storage::host::{Endpoint, NicCaps, Span};
use crate::udp::Owner;
use crate::wire::ethernet::{EtherType, Frame};
use crate::wire::icmpv4::Message;
use crate::wire::ipv4::{self, Protocol};
use std::vec;
use std::vec::Vec;

fn bench_of(size: usize, window: usize, blocks: usize) -> BlocksRig {
    BlocksRig::new(size, window, blocks, Limits::default())
}

fn shuffle<T>(items: &mut [T], seed: &mut u64) {
    for i in (1..items.len()).rev() {
        items.swap(i, (splitmix(seed) % (i as u64 + 1)) as usize);
    }
}

#[test]
fn every_order_of_four_lands() {
    for first in 0..4 {
        for second in (0..4).filter(|b| *b != first) {
            for third in (0..4).filter(|c| *c != first && *c != second) {
                let mut bench = bench_of(5000, 1, 1);
                let pieces = bench.fragments(0, 7, 1480);
                assert_eq!(pieces.len(), 4);
                for i in [first, second, third, 6 - first - second - third] {
                    assert!(bench.confirmed().is_empty());
                    bench.rig.input(&pieces[i]);
                }
                assert_eq!(bench.confirmed(), [0]);
                bench.check();
            }
        }
    }
}

#[test]
fn largest_blocks_in_any_order_many_in_flight() {
    let mut seed = 5;
    for round in 0..20 {
        let mut bench = bench_of(65_464, 4, 4);
        let mut pieces: Vec<Vec<u8>> = (0..4).flat_map(|n| bench.fragments(n, 100 + n as u16, 1480)).collect();
        assert_eq!(pieces.len(), 4 * 45);
        shuffle(&mut pieces, &mut seed);
        for piece in &pieces {
            bench.rig.input(piece);
        }
        assert_eq!(bench.confirmed(), [0, 1, 2, 3], "round {round}");
        bench.check();
        assert_eq!(bench.rig.count(Counter::Reassembled), 4);
    }
}

#[test]
fn lengths_and_units_of_every_kind() {
    let mut seed = 11;
    for size in [1, 7, 8, 256, 512, 1472, 1473, 1476, 2944, 4096, 16_268, 16_384, 65_464] {
        for unit in [552, 1480, 8952] {
            let mut bench = BlocksRig::new(size, 1, 1, Limits { mtu: 9000, ..Limits::default() });
            let mut pieces = bench.fragments(0, 3, unit);
            shuffle(&mut pieces, &mut seed);
            for piece in &pieces {
                bench.rig.input(piece);
            }
            assert_eq!(bench.confirmed(), [0], "size {size} unit {unit}");
            bench.check();
        }
    }
}

#[test]
fn one_missing_is_never_delivered() {
    for missing in 0..4 {
        let mut bench = bench_of(5000, 1, 1);
        for (i, piece) in bench.fragments(0, 7, 1480).iter().enumerate() {
            if i != missing {
                bench.rig.input(piece);
            }
        }
        bench.rig.advance(2000);
        assert!(bench.confirmed().is_empty());
        assert_eq!(bench.rig.count(Counter::DropReassemblyTimeout), 1);
        // The next copy is taken whole.
        for piece in bench.fragments(0, 8, 1480) {
            bench.rig.input(&piece);
        }
        assert_eq!(bench.confirmed(), [0]);
        bench.check();
    }
}

#[test]
fn two_copies_one_corrupt_in_every_interleaving() {
    // Which of the six pieces come from copy A: each choice of three places, in each order within a copy.
    let orders: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let mut delivered = 0;
    for mask in 0u32..64 {
        if mask.count_ones() != 3 {
            continue;
        }
        for a in orders {
            for b in orders {
                for corrupt in 0..3 {
                    let mut bench = bench_of(4000, 2, 2);
                    let good = bench.fragments(0, 1, 1480);
                    let mut bad = bench.fragments(0, 2, 1480);
                    let last = bad[corrupt].len() - 1;
                    bad[corrupt][last] ^= 0x40;
                    let (mut from_good, mut from_bad) = (a.iter(), b.iter());
                    for place in 0..6 {
                        let frame = if mask & (1 << place) != 0 {
                            &good[*from_good.next().unwrap()]
                        } else {
                            &bad[*from_bad.next().unwrap()]
                        };
                        bench.rig.input(frame);
                        bench.check();
                    }
                    delivered += bench.confirmed().len();
                    // Whatever became of the two, a third copy is taken.
                    for piece in bench.fragments(0, 3, 1480) {
                        bench.rig.input(&piece);
                    }
                    assert_eq!(bench.confirmed(), [0]);
                    bench.check();
                }
            }
        }
    }
    assert!(delivered > 500, "the good copy often gets through: {delivered}");
}

#[test]
fn case_p03_overlaps_discard_exact_duplicates_do_not() {
    type Set = (&'static [(usize, usize, bool)], bool);
    // (offset, length, MF) over one datagram of 40 bytes; whether it arrives.
    let sets: [Set; 8] = [
        (&[(0, 24, true), (8, 8, true), (24, 16, false)], false),
        (&[(0, 16, true), (24, 16, true), (8, 24, true), (16, 8, true), (40, 0, false)], false),
        (&[(8, 16, true), (0, 16, true), (24, 16, false)], false),
        (&[(0, 24, true), (0, 24, true), (24, 16, false)], true),
        (&[(0, 36, false), (24, 4, false)], false),
        (&[(0, 24, true), (24, 16, false), (24, 16, false)], true),
        (&[(24, 16, false), (0, 24, true)], true),
        (&[(0, 32, true), (24, 16, false)], false),
    ];
    for (set, arrives) in sets {
        let mut bench = bench_of(28, 1, 2);
        let mut payload = vec![0, 3, 0, 0];
        payload.extend_from_slice(&bench.block(0));
        let port = bench.seen.borrow().port;
        let datagram = packets::udp_datagram((bench.server.ip, PORT), (bench.rig.us.ip, port), &payload);
        assert_eq!(datagram.len(), 40);
        for (offset, len, more) in set {
            let end = (offset + len).min(40);
            let frame = piece(bench.server, bench.rig.us, Protocol::UDP, 9, *offset, *more, &datagram[*offset..end]);
            bench.rig.input(&frame);
        }
        assert_eq!(!bench.confirmed().is_empty(), arrives, "{set:?}");
        bench.check();
        // A good datagram right after passes: nothing leaked.
        for piece in bench.fragments(0, 10, 24) {
            bench.rig.input(&piece);
        }
        assert_eq!(bench.confirmed(), [0], "{set:?}");
        bench.check();
    }
    // An exact duplicate with other bytes: the first copy stands.
    let mut bench = bench_of(4000, 1, 1);
    let pieces = bench.fragments(0, 1, 1480);
    let mut altered = pieces[1].clone();
    altered[100] ^= 0xff;
    for frame in [&pieces[1], &altered, &pieces[0], &pieces[2]] {
        bench.rig.input(frame);
    }
    assert_eq!(bench.confirmed(), [0]);
    bench.check();
    assert_eq!(bench.rig.count(Counter::DropFragmentDuplicate), 1);
}

#[test]
fn case_p05_ends_beyond_what_a_datagram_or_buffer_holds() {
    let other = Station::new(1);
    for (offset, len, more) in [(65_528, 8, false), (65_528, 8, true), (65_512, 1480, false)] {
        let mut bench = bench_of(4000, 1, 1);
        let bytes = vec![7; len];
        bench.rig.input(&piece(other, bench.rig.us, Protocol::UDP, 5, offset, more, &bytes));
        assert_eq!(bench.rig.count(Counter::DropFragmentMalformed), 1, "{offset} {len} {more}");
        bench.check();
        for piece in bench.fragments(0, 6, 1480) {
            bench.rig.input(&piece);
        }
        assert_eq!(bench.confirmed(), [0]);
    }
    // 65,515 bytes of payload are the most; they arrive, 65,516 cannot.
    let arrives = |total: usize, staging: usize| {
        let limits = Limits { staging_bytes: staging + 34, ..Limits::default() };
        let mut rig = Rig::bare(1, limits, NicCaps::empty(), true);
        rig.engine.stack.interface_mut(rig.nic).unwrap().add_address(Cidr { addr: rig.us.ip, prefix: 24 });
        let engine = &mut rig.engine;
        let socket = engine.udp.open(&mut engine.stack, Owner::Handler).unwrap();
        let port = engine.udp.get(socket).unwrap().local.port;
        let payload = vec![0x5a; total - 8];
        let mut datagram =
            packets::udp_datagram((other.ip, 7), (rig.us.ip, port), &payload[..payload.len().min(65_507)]);
        datagram.resize(total, 0x5a);
        let mut whole = 0;
        for frame in fragments(other, rig.us, Protocol::UDP, &datagram, 3, 1480) {
            let staged = match rig.receive(&frame).received {
                Received::Staged { index, .. } => Some(index),
                _ => None,
            };
            if let Some(index) = staged {
                whole += 1;
                let frame = rig.engine.staged(index).unwrap();
                assert_eq!(frame.len(), 34 + total);
                let ip = ipv4::Packet::parse(Frame::parse(frame).unwrap().payload()).unwrap();
                assert_eq!(usize::from(ip.total_len()), 20 + total);
                assert!(!ip.is_fragment());
                assert!(crate::storage::checksum::Sum::of(ip.header_bytes()).holds());
                assert_eq!(ip.payload(), &datagram[..]);
                rig.engine.release_staged(index);
            }
        }
        whole
    };
    assert_eq!(arrives(65_515, 65_515), 1);
    assert_eq!(arrives(65_516, 65_600), 0);
    // A buffer of 4096 bytes: 4096 fit, 4097 do not, nor does what starts inside and ends outside.
    assert_eq!(arrives(4096, 4096), 1);
    assert_eq!(arrives(4097, 4096), 0);
    assert_eq!(arrives(8192, 4096), 0);
}

#[test]
fn case_p07_floods_interleaving_timeout() {
    let (a, b) = (Station::new(1), Station::new(2));
    let mut rig = Rig::new(1);
    let engine = &mut rig.engine;
    let socket = engine.udp.open(&mut engine.stack, Owner::Handler).unwrap();
    let port = engine.udp.get(socket).unwrap().local.port;
    let make = |from: Station, to: Station, id, fill| {
        let datagram = packets::udp_datagram((from.ip, 7), (to.ip, port), &[fill; 2000]);
        fragments(from, to, Protocol::UDP, &datagram, id, 1480)
    };
    let take = |rig: &mut Rig, frame: &[u8]| match rig.receive(frame).received {
        Received::Staged { index, .. } => {
            let fill = rig.engine.staged(index).unwrap()[34 + 8..].to_vec();
            rig.engine.release_staged(index);
            Some(fill)
        }
        _ => None,
    };
    // Two flows of equal identification, interleaved.
    let (from_a, from_b) = (make(a, rig.us, 77, 1), make(b, rig.us, 77, 2));
    assert_eq!(take(&mut rig, &from_a[0]), None);
    assert_eq!(take(&mut rig, &from_b[0]), None);
    assert_eq!(take(&mut rig, &from_a[1]), Some(vec![1; 2000]));
    assert_eq!(take(&mut rig, &from_b[1]), Some(vec![2; 2000]));
    // A flood of first fragments: a good pair passes at once, in the same memory.
    for id in 0..1000 {
        let flood = make(a, rig.us, 1000 + id, 9);
        assert_eq!(take(&mut rig, &flood[0]), None);
    }
    let pair = make(b, rig.us, 5, 3);
    assert_eq!(take(&mut rig, &pair[0]), None);
    assert_eq!(take(&mut rig, &pair[1]), Some(vec![3; 2000]));
    // Duplicates do not prolong the time: 30 s from the first fragment it is over, and the sender is told.
    rig.advance(40_000);
    rig.sent();
    let late = make(b, rig.us, 6, 4);
    rig.know(b);
    assert_eq!(take(&mut rig, &late[0]), None);
    for _ in 0..29 {
        rig.advance(1000);
        assert_eq!(take(&mut rig, &late[0]), None);
    }
    rig.know(b);
    let before = rig.count(Counter::DropReassemblyTimeout);
    rig.advance(1000);
    assert_eq!(rig.count(Counter::DropReassemblyTimeout), before + 1);
    let told = rig.sent().iter().any(|f| {
        let ip = ipv4::Packet::parse(Frame::parse(f).unwrap().payload());
        ip.is_ok_and(|ip| matches!(Message::parse(ip.payload()), Ok(Message::TimeExceeded { code: 1, .. })))
    });
    assert!(told, "ICMP time exceeded, code 1");
    assert_eq!(take(&mut rig, &late[1]), None);
}

#[test]
fn case_p08_a_first_fragment_is_not_a_datagram() {
    let mut bench = bench_of(4096, 1, 1);
    let pieces = bench.fragments(0, 1, 1480);
    bench.rig.input(&pieces[0]);
    assert!(bench.seen.borrow().delivered.is_empty());
    for piece in &pieces[1..] {
        bench.rig.input(piece);
    }
    assert_eq!(bench.seen.borrow().delivered, [(0, 4096 + 4)]);
    bench.check();
    // Without room for reassembly nothing is delivered, and every piece is counted.
    let mut bench = BlocksRig::new(4096, 1, 1, Limits { landing: 0, staging: 0, ..Limits::default() });
    for piece in &bench.fragments(0, 1, 1480) {
        bench.rig.input(piece);
    }
    assert!(bench.seen.borrow().delivered.is_empty());
    assert_eq!(bench.rig.count(Counter::DropFragmentRoom), 3);
}

#[test]
fn case_p11_padding_and_trailing_bytes_are_trimmed_first() {
    let mut bench = BlocksRig::new(1474, 1, 1, Limits { mtu: 9000, ..Limits::default() });
    let mut pieces = bench.fragments(0, 1, 1480);
    assert_eq!(pieces[1].len(), 60);
    assert_eq!(ipv4::Packet::parse(&pieces[1][14..]).unwrap().payload().len(), 6);
    pieces[1][14 + 20 + 6..].fill(0xaa);
    pieces[0].extend_from_slice(&[0xbb; 100]);
    for piece in &pieces {
        bench.rig.input(piece);
    }
    assert_eq!(bench.seen.borrow().delivered, [(0, 1486 - 8)]);
    bench.check();
    let inner = packets::ipv4_with(bench.server.ip, bench.rig.us.ip, Protocol::UDP, &[0; 16], |_| ());
    let outer = packets::ipv4_with(bench.server.ip, bench.rig.us.ip, Protocol(4), &inner, |_| ());
    bench.rig.input(&packets::ethernet(bench.rig.us.mac, bench.server.mac, EtherType::IPV4, &outer));
    assert_eq!(bench.rig.count(Counter::DropIpProtocol), 1);
}

#[test]
fn case_u02_sums_hold_over_fragments_of_odd_length() {
    for size in [4095, 4097] {
        let mut bench = bench_of(size, 1, 1);
        let pieces = bench.fragments(0, 1, 1480);
        for spoilt in 0..pieces.len() {
            let mut copy = bench.fragments(0, 50 + spoilt as u16, 1480);
            let last = copy[spoilt].len() - 1;
            copy[spoilt][last] ^= 1;
            for piece in copy.iter().rev() {
                bench.rig.input(piece);
            }
        }
        assert!(bench.confirmed().is_empty());
        assert_eq!(bench.rig.count(Counter::DropUdpChecksum), pieces.len() as u32);
        for piece in &pieces {
            bench.rig.input(piece);
        }
        assert_eq!(bench.confirmed(), [0]);
        bench.check();
        // A zero checksum means none.
        let mut bench = bench_of(size, 1, 1);
        let mut payload = vec![0, 3, 0, 0];
        payload.extend_from_slice(&bench.block(0));
        let port = bench.seen.borrow().port;
        let mut datagram = packets::udp_datagram((bench.server.ip, PORT), (bench.rig.us.ip, port), &payload);
        datagram[6..8].fill(0);
        for piece in fragments(bench.server, bench.rig.us, Protocol::UDP, &datagram, 2, 1480) {
            bench.rig.input(&piece);
        }
        assert_eq!(bench.confirmed(), [0]);
        bench.check();
    }
}

#[test]
fn first_fragments_without_the_headers_are_staged_or_dropped() {
    // The UDP header fits the first piece, the client's does not: nobody can say where the bytes belong.
    let mut bench = bench_of(100, 1, 1);
    for piece in bench.fragments(0, 1, 8) {
        bench.rig.input(&piece);
    }
    assert_eq!(bench.confirmed(), [0], "put together apart, then taken whole");
    bench.check();
    let mut bench = BlocksRig::new(100, 1, 1, Limits { staging: 0, ..Limits::default() });
    for piece in bench.fragments(0, 1, 8) {
        bench.rig.input(&piece);
    }
    assert!(bench.confirmed().is_empty());
    for piece in bench.fragments(0, 2, 16) {
        bench.rig.input(&piece);
    }
    assert_eq!(bench.confirmed(), [0]);
    bench.check();
}

#[test]
fn late_duplicates_claim_nothing() {
    let mut bench = bench_of(4000, 2, 4);
    let first = bench.fragments(0, 1, 1480);
    for piece in &first {
        bench.rig.input(piece);
    }
    assert_eq!(bench.confirmed(), [0]);
    // Pieces of what was delivered come again, then the next block in reverse.
    bench.rig.input(&first[2]);
    bench.rig.input(&first[1]);
    for piece in bench.fragments(1, 2, 1480).iter().rev() {
        bench.rig.input(piece);
    }
    assert_eq!(bench.confirmed(), [0, 1]);
    bench.check();
}

#[test]
fn wrong_guesses_move_once() {
    // Block 1 comes before block 0, last piece first: its pieces go to block 0's place and must move.
    let mut bench = bench_of(4000, 2, 4);
    for piece in bench.fragments(1, 2, 1480).iter().rev() {
        bench.rig.input(piece);
    }
    assert_eq!(bench.confirmed(), [1]);
    assert_eq!(bench.rig.count(Counter::LandingMoved), 1);
    for piece in bench.fragments(0, 3, 1480).iter().rev() {
        bench.rig.input(piece);
    }
    assert_eq!(bench.confirmed(), [0, 1]);
    bench.check();
}

#[test]
fn an_ended_operation_is_written_no_more() {
    let mut bench = bench_of(4000, 1, 1);
    let pieces = bench.fragments(0, 1, 1480);
    bench.rig.input(&pieces[0]);
    let key = bench.rig.engine.ops.iter().next().unwrap().0;
    bench.rig.engine.cancel(key, crate::storage::error::Error::Cancelled).unwrap();
    let before = bench.region.to_vec();
    bench.rig.input(&pieces[1]);
    bench.rig.input(&pieces[2]);
    assert_eq!(bench.region.to_vec(), before);
}

#[test]
fn what_is_sent_in_fragments_arrives_whole() {
    for (caps, lends) in [(NicCaps::empty(), true), (NicCaps::empty(), false), (NicCaps::GATHER, false)] {
        for len in [1472, 1473, 2952, 2953, 5001, 65_507] {
            let (mut sender, mut receiver) = (Rig::bare(1, Limits::default(), caps, lends), Rig::new(2));
            let from = Station { mac: sender.us.mac, ip: Station::new(8).ip };
            sender.engine.stack.interface_mut(sender.nic).unwrap().add_address(Cidr { addr: from.ip, prefix: 24 });
            sender.know(receiver.us);
            let engine = &mut receiver.engine;
            let socket = engine.udp.open(&mut engine.stack, Owner::Handler).unwrap();
            let port = engine.udp.get(socket).unwrap().local.port;
            let mut seed = 3;
            let bytes: Vec<u8> = (0..len).map(|_| splitmix(&mut seed) as u8).collect();
            let memory = SimMemory::from(bytes.clone());
            let engine = &mut sender.engine;
            let own = engine.udp.open(&mut engine.stack, Owner::Handler).unwrap();
            let body = [Span::Bytes(&bytes[..10]), Span::Memory { memory: &memory, at: 10, len: len - 10 }];
            let dst = Endpoint { addr: receiver.us.ip, port };
            engine.udp.send(&mut engine.stack, own, Some(dst), &body, false).unwrap();
            let mut got = None;
            for frame in sender.sent() {
                assert!(frame.len() <= 1514);
                match receiver.receive(&frame).received {
                    Received::Staged { index, .. } => {
                        got = Some(receiver.engine.staged(index).unwrap()[42..].to_vec());
                        receiver.engine.release_staged(index);
                    }
                    Received::Datagram { payload, .. } => got = Some(payload.to_vec()),
                    Received::Nothing => {}
                }
            }
            assert_eq!(got.as_deref(), Some(&bytes[..]), "{len} bytes, {caps:?}");
        }
    }
}

#[test]
fn long_pings_go_both_ways() {
    let (mut a, mut b) = (Rig::new(1), Rig::new(2));
    let us = Station { mac: crate::wire::ethernet::Address([2, 0, 0, 0, 0, 8]), ip: Station::new(8).ip };
    {
        let interface = a.engine.stack.interface_mut(a.nic).unwrap();
        interface.remove_address(a.us.ip);
        interface.add_address(Cidr { addr: us.ip, prefix: 24 });
        interface.mac = us.mac;
    }
    a.know(b.us);
    b.know(us);
    let request = crate::client::ping::Request {
        dst: b.us.ip,
        count: 1,
        size: 65_507,
        interval: crate::storage::time::Duration::from_secs(1),
        timeout: crate::storage::time::Duration::from_secs(1),
        dont_fragment: false,
        ttl: 64,
        until_answer: false,
    };
    let ping = crate::client::ping::Ping::new(request).unwrap();
    let op = a.engine.start(Client::Ping(ping)).unwrap();
    for frame in a.sent() {
        b.input(&frame);
    }
    let answer = b.sent();
    assert_eq!(answer.len(), 45);
    for frame in answer {
        a.input(&frame);
    }
    assert_eq!(a.engine.ops.get(op).unwrap().step, Step::Done(Ok(1)));
}
