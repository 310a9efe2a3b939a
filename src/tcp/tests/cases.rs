//! Field cases of TCP by id: each as a packet script, the hostile input beside the nearest valid one.

use super::rig::*;
use crate::sim::host::splitmix;
use crate::sim::packets;
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::Endpoint;
use crate::storage::time::Duration;
use crate::tcp::{Events, Keepalive, Options, State};
use crate::wire::icmpv4::{Message, Unreachable};
use crate::wire::tcp::{self as wire, SeqNumber, Timestamps};
use core::net::Ipv4Addr;
use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

#[test]
fn case_c01_late_segments_of_an_old_peer_do_not_touch_a_new_connection() {
    let mut rig = Rig::with(Limits { slots: 1, ..Limits::default() });
    let first = rig.open(Options { timestamps: false, ..quiet() }, full(700, Some(7), true));
    assert_eq!(rig.node.tcp.info(first).unwrap().segment_size, 700);
    rig.send(PA, 1, 1, b"old");
    rig.sent();
    let old = rig.peer;
    rig.node.tcp.abort(&mut rig.node.stack, first).unwrap();
    assert_eq!(rig.sent()[0].flags, RA);
    // The same object, another peer port.
    rig.peer.port = 81;
    rig.peer.iss = SeqNumber(9_000);
    let second = rig.open_plain();
    assert_eq!(first.index, second.index, "the same slot");
    let info = rig.node.tcp.info(second).unwrap();
    assert_eq!((info.segment_size, info.bytes_received, info.retransmits), (1000, 0, 0));
    let conn = rig.node.tcp.table.get(second).unwrap();
    assert_eq!((conn.tx.shift, conn.rx.shift, conn.tx.sack), (0, 0, false), "neither scale nor SACK is inherited");
    let new = rig.peer;
    let before = (info.send_window, info.state);
    for (flags, seq, payload) in [(PA, 4, &b"DATA"[..]), (A, 4, b""), (R, 4, b""), (FA, 4, b"")] {
        rig.peer = old;
        rig.peer.window = 1;
        rig.send(flags, seq, 1, payload);
        rig.peer = new;
        let answers = rig.sent();
        match flags {
            R => assert!(answers.is_empty(), "a reset gets no answer"),
            _ => assert!(answers.len() == 1 && answers[0].flags == R, "the old peer learns that it is gone"),
        }
    }
    let info = rig.node.tcp.info(second).unwrap();
    assert_eq!((info.send_window, info.state), before);
    rig.send(PA, 1, 1, b"new");
    assert_eq!(rig.read(second, 10).unwrap(), b"new", "the valid twin passes");
}

#[test]
fn case_c02_windows_in_syns_are_not_scaled() {
    let mut rig = Rig::new();
    rig.peer.window = 1000;
    let key = rig.open(Options { timestamps: false, nagle: false, ..quiet() }, full(500, Some(7), false));
    rig.write(key, &pattern(0, 5000));
    let first: usize = rig.sent().iter().map(|s| s.payload.len()).sum();
    assert_eq!(first, 1000, "the SYN-ACK's window is 1000 bytes");
    rig.peer.window = 10;
    rig.send(A, 1, 1001, &[]);
    assert_eq!(rig.node.tcp.info(key).unwrap().send_window, 1280, "10 × 2^7");
    let second: usize = rig.sent().iter().map(|s| s.payload.len()).sum();
    assert_eq!(second, 1000, "two whole segments fit");
}

#[test]
fn case_c02_without_the_peers_option_nothing_is_scaled() {
    let mut rig = Rig::with(Limits { receive: 65_566, ..Limits::default() });
    let (key, syn) = rig.connect(Options { timestamps: false, recv_max: 1 << 20, ..quiet() });
    assert_eq!((syn.options.window_scale, syn.window), (Some(5), 65_535), "ours is offered, the SYN's window as it is");
    rig.send_with(SA, 0, 1, &[], full(1000, None, false));
    assert_eq!(rig.sent_ack().1, 65_535, "our later window is not scaled");
    rig.peer.window = 700;
    rig.send(A, 1, 1, &[]);
    rig.write(key, &pattern(0, 2000));
    rig.advance(250);
    let out: usize = rig.sent().iter().map(|s| s.payload.len()).sum();
    assert_eq!(out, 700, "nor is the peer's");
    // The valid twin: with the option both are.
    let mut rig = Rig::with(Limits { receive: 65_566, ..Limits::default() });
    rig.connect(Options { timestamps: false, recv_max: 1 << 20, ..quiet() });
    rig.send_with(SA, 0, 1, &[], full(1000, Some(0), false));
    // Rounded up: the SYN has told of 65,535 bytes, and an edge never moves left.
    assert_eq!(rig.sent_ack().1, (65_535 >> 5) + 1);
}

#[test]
fn case_c02_shifts_over_14_and_options_of_wrong_length() {
    // SYN-ACK with raw options: kind 3, length and shift as given, padded by NOPs.
    for (bytes, shift) in [
        (vec![3u8, 3, 15, 1], Some(14)),
        (vec![3, 3, 14, 1], Some(14)),
        (vec![3, 2, 1, 1], None),
        (vec![3, 4, 7, 1], None),
    ] {
        let mut rig = Rig::new();
        let (key, _) = rig.connect(Options { timestamps: false, sack: false, ..quiet() });
        let mut frame = rig.frame(SA, 0, 1, &[], wire::Options::default());
        let mut segment = frame.split_off(34);
        segment.truncate(20);
        segment[12] = 6 << 4;
        segment.extend_from_slice(&bytes);
        let frame = finish(rig.peer.station, rig.node.us, segment);
        rig.node.receive(&frame);
        rig.node.pass();
        assert_eq!(rig.node.tcp.info(key).unwrap().state, State::Established, "{bytes:?}");
        rig.sent();
        rig.peer.window = 2;
        rig.send(A, 1, 1, &[]);
        let window = rig.node.tcp.info(key).unwrap().send_window;
        assert_eq!(window, 2 << shift.unwrap_or(0), "{bytes:?}");
    }
}

#[test]
fn case_c04_each_data_segment_outside_the_window_gets_the_current_ack() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    for n in 0..10 {
        rig.send(A, 1 + n * 100, 1, &pattern(n as usize * 100, 100));
    }
    rig.sent();
    // Our acknowledgements were lost: the peer sends an old segment five times, 10 ms apart.
    for _ in 0..5 {
        rig.send(A, 1, 1, &pattern(0, 100));
        assert_eq!(rig.sent_ack().0, 1001);
        rig.advance(10);
    }
    // And fifty times at once: a limit would leave a lossy link at one exchange a second.
    for _ in 0..50 {
        rig.send(A, 901, 1, &pattern(900, 100));
        assert_eq!(rig.sent_ack().0, 1001);
    }
    assert_eq!(rig.read(key, 5000).unwrap(), pattern(0, 1000));
    rig.send(A, 1001, 1, b"next");
    assert_eq!(rig.read(key, 100).unwrap(), b"next");
}

#[test]
fn case_c04_a_window_probe_is_answered_and_its_byte_not_taken() {
    let mut rig = Rig::with(Limits { receive: 2000, ..Limits::default() });
    let key = rig.open_plain();
    rig.send(A, 1, 1, &pattern(0, 1000));
    rig.send(A, 1001, 1, &pattern(1000, 1000));
    let last = rig.sent().pop().unwrap();
    assert_eq!((last.ack.since(rig.peer.iss), last.window), (2001, 0));
    for _ in 0..3 {
        rig.send(A, 2001, 1, &[0xee]);
        assert_eq!(rig.sent_ack(), (2001, 0));
        rig.advance(1_000);
    }
    assert_eq!(rig.read(key, 5000).unwrap(), pattern(0, 2000));
    assert_eq!(rig.sent_ack(), (2001, 2000), "reading opens the window at once");
    rig.send(A, 2001, 1, &pattern(2000, 1));
    assert_eq!(rig.read(key, 10).unwrap(), pattern(2000, 1), "now the byte is taken");
}

#[test]
fn case_c07_sack_blocks_sent_across_the_wrap() {
    let mut rig = Rig::new();
    rig.peer.iss = SeqNumber(0xffff_fc00 - 1);
    let key = rig.open_sack();
    let at = |n: u32| 1 + (n - 1) * 512;
    let block = |rig: &Rig, from: u32, to: u32| (rig.peer.iss + at(from), rig.peer.iss + at(to));
    let send = |rig: &mut Rig, n: u32| {
        rig.send(A, at(n), 1, &pattern((n as usize - 1) * 512, 512));
        let ack = rig.sent().pop().unwrap();
        ack.options.sack.as_slice().iter().map(|b| (b.left, b.right)).collect::<Vec<_>>()
    };
    assert_eq!(send(&mut rig, 1), []);
    assert_eq!(send(&mut rig, 3), [block(&rig, 3, 4)]);
    assert_eq!(send(&mut rig, 5), [block(&rig, 5, 6), block(&rig, 3, 4)], "the newest first");
    // Edges lie on both sides of the wrap: segment 3 begins at 0xffffffff + 1.
    assert_eq!(rig.peer.iss + at(3), SeqNumber(0));
    assert_eq!(send(&mut rig, 4), [block(&rig, 3, 6)], "true ranges");
    assert_eq!(send(&mut rig, 2), []);
    assert_eq!(rig.read(key, 5000).unwrap(), pattern(0, 5 * 512));
}

#[test]
fn case_c07_no_sack_without_agreement_in_both_syns() {
    for (ours, theirs) in [(true, false), (false, true), (false, false)] {
        let mut rig = Rig::new();
        rig.open(Options { sack: ours, timestamps: false, ..quiet() }, full(1000, Some(0), theirs));
        rig.send(A, 1001, 1, &pattern(1000, 1000));
        let ack = rig.sent().pop().unwrap();
        assert!(ack.options.sack.is_empty(), "{ours} {theirs}");
        // Nor are blocks that come all the same believed.
        let key = rig.node.tcp.table.key(0).unwrap();
        rig.write(key, &pattern(0, 5000));
        rig.sent();
        rig.send_sack(1, &[(1001, 5001)]);
        rig.send_sack(1, &[(1001, 5001)]);
        let conn = rig.node.tcp.table.get(key).unwrap();
        assert_eq!(conn.tx.board.sacked(), 0);
    }
}

#[test]
fn case_c07_senseless_blocks_are_ignored() {
    let mut rig = Rig::new();
    let key = rig.open(Options { timestamps: false, nagle: false, ..quiet() }, full(1000, Some(0), true));
    rig.write(key, &pattern(0, 10_000));
    rig.sent();
    rig.send(A, 1, 2001, &[]);
    rig.sent();
    let sacked = |rig: &Rig| rig.node.tcp.table.get(key).unwrap().tx.board.sacked();
    // left ≥ right, below una, above nxt.
    for blocks in [
        &[(5001, 5001)][..],
        &[(6001, 5001)],
        &[(1, 1001)],
        &[(501, 2001)],
        &[(9001, 99_001)],
        &[(20_001, 30_001)],
        &[(0x8000_0000, 0x8000_1000)],
    ] {
        rig.send_sack(2001, blocks);
        assert_eq!(sacked(&rig), 0, "{blocks:?}");
    }
    // A D-SACK and three more blocks, one of them senseless: the good ones count.
    rig.send_sack(2001, &[(1, 1001), (5001, 6001), (8001, 8001), (7001, 8001)]);
    assert_eq!(sacked(&rig), 2000);
    rig.send_sack(2001, &[(5001, 6001), (5501, 5601)]);
    assert_eq!(sacked(&rig), 2000);
    rig.send(A, 1, 10_001, &[]);
    assert_eq!(rig.node.tcp.info(key).unwrap().in_flight, 0);
}

#[test]
fn case_c08_disorder_overlap_and_wrap_give_the_stream() {
    let mut rig = Rig::new();
    rig.peer.iss = SeqNumber(0xffff_ffff);
    let key = rig.open_plain();
    let mut last = 0;
    let mut send = |rig: &mut Rig, from: usize, to: usize| {
        rig.send(A, 1 + from as u32, 1, &pattern(from, to - from));
        let sent = rig.sent();
        for ack in &sent {
            let at = ack.ack.since(rig.peer.iss);
            assert!(at >= last, "acknowledgements never go back");
            last = at;
        }
        (sent.len(), last)
    };
    assert_eq!(send(&mut rig, 1024, 2048), (1, 1), "a duplicate acknowledgement for the gap");
    assert_eq!(send(&mut rig, 0, 1024), (1, 2049));
    assert_eq!(send(&mut rig, 3072, 4096), (1, 2049));
    assert_eq!(send(&mut rig, 2048, 3072), (1, 4097));
    assert_eq!(send(&mut rig, 1000, 2400), (1, 4097), "spanning what has come");
    assert_eq!(send(&mut rig, 4000, 5120), (1, 5121), "partly old");
    for _ in 0..3 {
        assert_eq!(send(&mut rig, 4096, 5120), (1, 5121));
    }
    send(&mut rig, 6144, 7168);
    send(&mut rig, 7168, 8192);
    send(&mut rig, 5120, 6144);
    assert_eq!(rig.read(key, 10_000).unwrap(), pattern(0, 8192));
    // First-received bytes are kept: another version of bytes that are held changes nothing.
    rig.send(A, 1 + 9000, 1, &pattern(9000, 100));
    rig.send(A, 1 + 8900, 1, &vec![0u8; 300]);
    rig.send(A, 1 + 8192, 1, &pattern(8192, 708));
    let got = rig.read(key, 5000).unwrap();
    assert_eq!(got[..708], pattern(8192, 708)[..]);
    assert_eq!(got[708..808], [0u8; 100]);
    assert_eq!(got[808..908], pattern(9000, 100)[..]);
    assert_eq!(got[908..], [0u8; 100]);
}

#[test]
fn case_c08_our_own_stream_across_the_wrap() {
    // The initial sequence number is what a host's chance makes of it: take one near the wrap.
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.node.tcp.table.get_mut(key).unwrap().iss = SeqNumber(0xffff_ffff);
    rig.peer.irs = SeqNumber(0xffff_ffff);
    let mut got = Vec::new();
    let mut given = 0;
    while got.len() < 8192 {
        given += rig.write(key, &pattern(given, 8192 - given));
        for segment in rig.sent() {
            assert_eq!(segment.seq.since(rig.peer.irs) as usize, 1 + got.len());
            got.extend_from_slice(&segment.payload);
        }
        rig.send(A, 1, 1 + got.len() as u32, &[]);
    }
    assert_eq!(got, pattern(0, 8192));
    assert_eq!(rig.node.tcp.info(key).unwrap().in_flight, 0);
}

#[test]
fn case_c08_ten_thousand_shuffles() {
    let whole = pattern(0, 8192);
    let mut rig = Rig::with(Limits { receive: 8192, ..Limits::default() });
    for seed in 0..10_000u64 {
        let mut state = seed;
        let mut random = |bound: usize| (splitmix(&mut state) % bound as u64) as usize;
        // Pieces that cover the stream, with overlaps and duplicates, in any order.
        let mut pieces: Vec<(usize, usize)> = Vec::new();
        let mut at = 0;
        while at < 8192 {
            let len = (random(1400) + 1).min(8192 - at);
            pieces.push((at, len));
            at += len - random(len / 4 + 1).min(len - 1);
        }
        for _ in 0..random(4) {
            let copy = pieces[random(pieces.len())];
            pieces.push(copy);
        }
        for n in (1..pieces.len()).rev() {
            pieces.swap(n, random(n + 1));
        }
        rig.peer.iss = SeqNumber(0xffff_ffff_u32.wrapping_sub(random(10_000) as u32));
        let key = rig.open_plain();
        // What finds no place among the ranges out of order comes again, as a sender would.
        let mut acked = 0;
        for _ in 0..20 {
            for &(from, len) in &pieces {
                rig.send(A, 1 + from as u32, 1, &whole[from..from + len]);
                for ack in rig.sent() {
                    let at = ack.ack.since(rig.peer.iss) as usize;
                    assert!(at > acked, "seed {seed}");
                    acked = at - 1;
                }
            }
            if acked == 8192 {
                break;
            }
        }
        let got = rig.read(key, 10_000).unwrap();
        assert!(got == whole, "seed {seed}");
        rig.node.tcp.abort(&mut rig.node.stack, key).unwrap();
        rig.sent();
        rig.node.events();
    }
}

#[test]
fn case_c11_first_ports_and_numbers_follow_the_seed() {
    let first = |seed, start_us| {
        let mut rig = Rig::with(Limits { seed, start_us, ..Limits::default() });
        let (_, syn) = rig.connect(Options::default());
        (syn.ports.0, syn.seq)
    };
    assert_ne!(first(1, 0).0, first(2, 0).0, "different seeds, different ports at time 0");
    assert_ne!(first(1, 0).1, first(2, 0).1);
    assert_eq!(first(1, 0), first(1, 0), "one seed, one run");
    // The initial sequence number rises by one each 4 µs for one pair of ends (RFC 9293 §3.4.1).
    let (a, b) = (first(1, 0).1, first(1, 4_000_000).1);
    assert_eq!(b.since(a), 1_000_000);
    let mut rig = Rig::new();
    let ports: Vec<u16> = (0..100)
        .map(|_| {
            let (key, syn) = rig.connect(Options::default());
            rig.node.tcp.abort(&mut rig.node.stack, key).unwrap();
            syn.ports.0
        })
        .collect();
    assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 100, "none comes twice in 100 connections");
    assert!(ports.iter().max().unwrap() - ports.iter().min().unwrap() >= 10_000);
}

#[test]
fn case_c16_the_urgent_pointer_is_of_no_account() {
    let urgent = |rig: &mut Rig, flags, seq: u32, pointer: u16, payload: &[u8]| {
        let mut segment = rig.frame(flags, seq, 1, payload, wire::Options::default()).split_off(34);
        segment.truncate(20 + payload.len());
        segment[18..20].copy_from_slice(&pointer.to_be_bytes());
        let frame = finish(rig.peer.station, rig.node.us, segment);
        rig.node.receive(&frame);
        rig.node.pass();
    };
    let mut rig = Rig::new();
    let key = rig.open_plain();
    let mut seq = 1;
    let mut want = Vec::new();
    for pointer in [0, 1, 10, 11, 65_535] {
        for flags in [PA | U, PA] {
            urgent(&mut rig, flags, seq, pointer, &pattern(seq as usize, 10));
            want.extend(pattern(seq as usize, 10));
            seq += 10;
            assert_eq!(rig.sent_ack().0, seq, "URG {flags:?} pointer {pointer}");
        }
    }
    // Across two segments: the pointer of the first names a byte of the second.
    urgent(&mut rig, A | U, seq, 15, &pattern(seq as usize, 10));
    urgent(&mut rig, A, seq + 10, 0, &pattern(seq as usize + 10, 10));
    want.extend(pattern(seq as usize, 20));
    assert_eq!(rig.read(key, 1000).unwrap(), want);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::Established);
    rig.sent();
    urgent(&mut rig, FA | U, seq + 20, 5, b"end");
    assert_eq!(rig.read(key, 10).unwrap(), b"end");
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::CloseWait);
    // URG in a SYN-ACK.
    let mut rig = Rig::new();
    let (key, _) = rig.connect(quiet());
    urgent(&mut rig, SA | U, 0, 3, &[]);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::Established);
}

#[test]
fn case_c17_timestamps_are_echoed_and_old_ones_refused() {
    let mut rig = Rig::new();
    let (key, syn) = rig.connect(quiet());
    let ours = syn.options.timestamps.expect("timestamps are offered");
    rig.peer.timestamps = Some(Timestamps { value: 0xffff_fff0, echo: ours.value });
    let stamps = rig.peer.timestamps;
    rig.send_with(SA, 0, 1, &[], wire::Options { timestamps: stamps, ..full(1012, Some(0), true) });
    let ack = rig.sent().pop().unwrap();
    assert_eq!(ack.options.timestamps.unwrap().echo, 0xffff_fff0, "the SYN-ACK's value is echoed");
    let say = |rig: &mut Rig, value: u32| rig.peer.timestamps = Some(Timestamps { value, echo: ours.value });
    say(&mut rig, 5);
    rig.send(PA, 1, 1, b"one");
    let ack = rig.sent().pop().unwrap();
    assert_eq!((ack.ack.since(rig.peer.iss), ack.options.timestamps.unwrap().echo), (4, 5), "5 follows 0xfffffff0");
    say(&mut rig, 0xffff_fff8);
    rig.send(PA, 4, 1, b"old");
    let ack = rig.sent().pop().unwrap();
    assert_eq!(ack.ack.since(rig.peer.iss), 4, "dropped, with an acknowledgement");
    assert_eq!(rig.node.count(Counter::DropTcpStamp), 1);
    say(&mut rig, 6);
    rig.send(PA, 4, 1, b"two");
    assert_eq!(rig.read(key, 10).unwrap(), b"onetwo");
    // Every segment of ours carries the option.
    rig.write(key, b"data");
    assert!(rig.sent().iter().all(|s| s.options.timestamps.is_some()));
    // A reset without it is processed.
    rig.peer.timestamps = None;
    rig.send(R, 7, 0, &[]);
    assert_eq!(rig.node.tcp.error(key).unwrap(), Some(Error::ConnectionReset));
}

#[test]
fn case_c17_after_24_days_any_value_is_new() {
    let mut rig = Rig::new();
    rig.peer.timestamps = Some(Timestamps { value: 1000, echo: 0 });
    let key = rig.open(quiet(), full(1012, Some(0), true));
    rig.peer.timestamps = Some(Timestamps { value: 999, echo: 0 });
    rig.advance(23 * 86_400_000);
    rig.send(PA, 1, 1, b"x");
    assert_eq!(rig.read(key, 1), Err(Error::Again));
    rig.advance(2 * 86_400_000);
    rig.send(PA, 1, 1, b"x");
    assert_eq!(rig.read(key, 1).unwrap(), b"x");
}

#[test]
fn case_c18_probes_are_answered_and_count_as_nothing() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.send(PA, 1, 1, b"data");
    rig.sent();
    for payload in [&b""[..], b"?"] {
        for _ in 0..100 {
            rig.send(A, 4, 1, payload);
            assert_eq!(rig.sent_ack().0, 5, "probe of {} bytes", payload.len());
        }
    }
    assert_eq!(rig.read(key, 100).unwrap(), b"data");
    assert_eq!(rig.read(key, 100), Err(Error::Again));
}

#[test]
fn case_c18_own_probes_count_unanswered_ones_only() {
    assert_eq!(Options::default().keepalive, None, "off by default");
    assert!(Keepalive::default().idle >= Duration::from_secs(7_200));
    let second = Duration::from_secs(1);
    let keepalive = Keepalive { idle: second.times(10), interval: second.times(10), count: 3 };
    let options = || Options { keepalive: Some(keepalive), timestamps: false, ..quiet() };
    let mut rig = Rig::new();
    let key = rig.open(options(), full(1000, None, false));
    rig.advance(9_999);
    assert!(rig.sent().is_empty());
    for n in 0..3 {
        rig.advance(if n == 0 { 1 } else { 10_000 });
        assert_eq!(rig.sent_short(), [(0, 0, A)], "SND.NXT − 1, no data");
    }
    rig.advance(9_999);
    assert_eq!(rig.node.tcp.error(key).unwrap(), None);
    rig.advance(1);
    assert_eq!(rig.node.tcp.error(key).unwrap(), Some(Error::Timeout), "at 40 s");
    // Answers keep it alive.
    let mut rig = Rig::new();
    let key = rig.open(options(), full(1000, None, false));
    for _ in 0..20 {
        rig.advance(10_000);
        assert_eq!(rig.sent().len(), 1);
        rig.send(A, 1, 1, &[]);
    }
    assert_eq!(rig.node.tcp.error(key).unwrap(), None);
    // So do two lost answers in a row.
    rig.advance(20_000);
    assert_eq!(rig.sent().len(), 2);
    rig.send(A, 1, 1, &[]);
    rig.advance(30_000);
    assert_eq!(rig.node.tcp.error(key).unwrap(), None);
}

#[test]
fn case_c20_data_and_fin_are_trimmed_together() {
    let mut rig = Rig::with(Limits { receive: 100, ..Limits::default() });
    let key = rig.open_plain();
    rig.send(FA, 1, 1, &pattern(0, 150));
    assert_eq!(rig.sent_ack(), (101, 0), "100 bytes taken, the FIN not");
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::Established);
    assert_eq!(rig.read(key, 200).unwrap(), pattern(0, 100));
    rig.sent();
    rig.send(FA, 101, 1, &pattern(100, 50));
    assert_eq!(rig.sent().pop().unwrap().ack.since(rig.peer.iss), 152);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::CloseWait);
    assert_eq!(rig.read(key, 200).unwrap(), pattern(100, 50));
    assert_eq!(rig.read(key, 200).unwrap(), b"", "the end comes after all bytes");
}

#[test]
fn case_c20_a_fin_before_missing_data_waits_for_it() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.send(FA, 101, 1, &pattern(100, 50));
    assert_eq!(rig.sent_ack().0, 1);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::Established);
    assert!(!rig.events(key).contains(Events::FINISHED));
    assert_eq!(rig.read(key, 10), Err(Error::Again));
    rig.send(A, 1, 1, &pattern(0, 100));
    assert_eq!(rig.sent_ack().0, 152);
    assert!(rig.events(key).contains(Events::FINISHED));
    assert_eq!(rig.read(key, 500).unwrap(), pattern(0, 150));
    assert_eq!(rig.read(key, 500).unwrap(), b"");
    assert!(!rig.events(key).contains(Events::FINISHED), "told once");
}

#[test]
fn case_c20_a_bare_fin_is_taken_at_a_closed_window() {
    let mut rig = Rig::with(Limits { receive: 100, ..Limits::default() });
    let key = rig.open_plain();
    rig.send(A, 1, 1, &pattern(0, 100));
    assert_eq!(rig.sent_ack(), (101, 0));
    rig.send(FA, 101, 1, &[]);
    assert_eq!(rig.sent_ack().0, 102);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::CloseWait);
    assert_eq!(rig.read(key, 200).unwrap(), pattern(0, 100));
    assert_eq!(rig.read(key, 200).unwrap(), b"");
}

#[test]
fn case_c21_the_peer_closes_first_and_our_queue_still_goes_out() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.write(key, &pattern(0, 20_000));
    rig.send(FA, 1, 1, &[]);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::CloseWait);
    rig.node.tcp.close(&mut rig.node.stack, key).unwrap();
    let mut got = Vec::new();
    let mut fin = false;
    for _ in 0..100 {
        rig.node.pass();
        for segment in rig.sent() {
            if segment.seq.since(rig.peer.irs) as usize == 1 + got.len() {
                got.extend_from_slice(&segment.payload);
            }
            fin |= segment.flags.contains(F);
        }
        if fin {
            break;
        }
        rig.send(A, 2, 1 + got.len() as u32, &[]);
    }
    assert!(got == pattern(0, 20_000) && fin);
    let conn = &rig.node.tcp.table.at(key.index).unwrap().conn;
    assert_eq!(conn.state, State::LastAck);
    rig.send(A, 2, 20_002, &[]);
    assert!(rig.node.tcp.table.at(key.index).unwrap().conn.is_free());
}

#[test]
fn case_c21_we_close_first_and_the_peers_bytes_still_come() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.node.tcp.shutdown(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    assert_eq!(rig.sent_short(), [(1, 0, FA)]);
    rig.send(A, 1, 2, &[]);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::FinWait2);
    let mut got = Vec::new();
    for n in 0..50u32 {
        rig.send(A, 1 + n * 1000, 2, &pattern(n as usize * 1000, 1000));
        assert_eq!(rig.sent().pop().unwrap().ack.since(rig.peer.iss), 1001 + n * 1000);
        got.extend(rig.read(key, 5000).unwrap());
        rig.sent();
    }
    rig.send(FA, 50_001, 2, &[]);
    assert_eq!(rig.sent_ack().0, 50_002);
    assert!(got == pattern(0, 50_000));
    assert_eq!(rig.read(key, 1).unwrap(), b"");
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::TimeWait);
}

#[test]
fn case_c21_a_reset_in_fin_wait_2_is_an_error_once_and_orphans_time_out() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.node.tcp.shutdown(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    rig.send(A, 1, 2, &[]);
    rig.events(key);
    rig.send(R, 1, 0, &[]);
    assert!(rig.events(key).contains(Events::CLOSED));
    assert_eq!(rig.node.tcp.error(key).unwrap(), Some(Error::ConnectionReset));
    assert!(rig.events(key).is_empty(), "told once");
    rig.sent();
    let key = rig.open_plain();
    rig.node.tcp.close(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    rig.send(A, 1, 2, &[]);
    rig.advance(59_999);
    assert!(!rig.node.tcp.table.at(key.index).unwrap().conn.is_free());
    rig.advance(1);
    assert!(rig.node.tcp.table.at(key.index).unwrap().conn.is_free());
    assert_eq!(rig.sent().pop().unwrap().flags, RA);
    // Not so where somebody still reads.
    let key = rig.open_plain();
    rig.node.tcp.shutdown(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    rig.send(A, 1, 2, &[]);
    rig.advance(600_000);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::FinWait2);
}

/// A listener at port 80 and a connection of the peer's to it, which then closes from our side into TIME-WAIT.
fn resting(rig: &mut Rig, timestamps: bool) {
    let here = Endpoint { addr: Ipv4Addr::UNSPECIFIED, port: 80 };
    if rig.node.tcp.listeners.is_empty() {
        rig.node.tcp.listen(here, 4, Options { timestamps, ..quiet() }).unwrap();
    }
    rig.peer.to = 80;
    rig.peer.port = 4000;
    let stamps = rig.peer.timestamps;
    rig.send_with(S, 0, 0, &[], wire::Options { timestamps: stamps, ..full(1000, None, false) });
    let syn = rig.sent().pop().unwrap();
    assert_eq!(syn.flags, SA);
    rig.peer.irs = syn.seq;
    rig.send(A, 1, 1, &[]);
    let listener = rig.node.tcp.listeners.iter().next().unwrap().0;
    let key = rig.node.tcp.accept(listener).unwrap();
    rig.node.tcp.close(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    rig.send(FA, 1, 2, &[]);
    rig.sent();
}

#[test]
fn case_c22_a_repeated_fin_is_acknowledged_and_restarts_the_wait() {
    let mut rig = Rig::new();
    resting(&mut rig, false);
    rig.advance(1_000);
    rig.send(FA, 1, 2, &[]);
    assert_eq!(rig.sent_ack().0, 2, "not a reset");
    rig.advance(59_999);
    rig.send(FA, 1, 2, &[]);
    assert_eq!(rig.sent_ack().0, 2, "2 MSL began anew");
    rig.advance(60_000);
    rig.send(FA, 1, 2, &[]);
    assert_eq!(rig.sent().pop().unwrap().flags, R, "then it is over");
}

#[test]
fn case_c22_a_higher_syn_reopens_a_lower_one_does_not() {
    let mut rig = Rig::new();
    resting(&mut rig, false);
    let old = rig.peer.iss;
    rig.peer.iss = old - 1000;
    rig.send_with(S, 0, 0, &[], full(1000, None, false));
    let answer = rig.sent().pop().unwrap();
    assert_eq!((answer.flags, answer.ack), (A, old + 2), "an acknowledgement of the old connection");
    rig.peer.iss = old + 1000;
    rig.send_with(S, 0, 0, &[], full(1000, None, false));
    let answer = rig.sent().pop().unwrap();
    assert_eq!((answer.flags, answer.ack), (SA, rig.peer.iss + 1));
    // By timestamps, the number does not matter (RFC 6191).
    let mut rig = Rig::new();
    rig.peer.timestamps = Some(Timestamps { value: 500, echo: 0 });
    resting(&mut rig, true);
    rig.peer.iss -= 1000;
    rig.peer.timestamps = Some(Timestamps { value: 499, echo: 0 });
    let stamps = rig.peer.timestamps;
    rig.send_with(S, 0, 0, &[], wire::Options { timestamps: stamps, ..full(1000, None, false) });
    assert_eq!(rig.sent().pop().unwrap().flags, A);
    rig.peer.timestamps = Some(Timestamps { value: 501, echo: 0 });
    let stamps = rig.peer.timestamps;
    rig.send_with(S, 0, 0, &[], wire::Options { timestamps: stamps, ..full(1000, None, false) });
    assert_eq!(rig.sent().pop().unwrap().flags, SA);
}

#[test]
fn case_c22_a_reset_does_not_end_the_wait() {
    let mut rig = Rig::new();
    resting(&mut rig, false);
    rig.send(R, 2, 0, &[]);
    assert!(rig.sent().is_empty());
    rig.send(FA, 1, 2, &[]);
    assert_eq!(rig.sent_ack().0, 2, "RFC 1337: still there");
}

#[test]
fn case_c22_fifty_short_connections_with_four_slots() {
    let mut rig = Rig::with(Limits { slots: 4, ..Limits::default() });
    for n in 0..50 {
        let key = rig.open_plain();
        rig.write(key, b"hello");
        assert_eq!(rig.sent().len(), 1, "connection {n}");
        rig.send(PA, 1, 6, b"world");
        assert_eq!(rig.read(key, 10).unwrap(), b"world");
        rig.node.tcp.close(&mut rig.node.stack, key).unwrap();
        rig.node.pass();
        rig.send(FA, 6, 7, &[]);
        rig.sent();
    }
    assert!(rig.node.count(Counter::TcpEvicted) >= 46);
}

#[test]
fn case_i03_port_unreachable_refuses_a_syn_and_soft_errors_stop_nothing() {
    let icmp = |rig: &mut Rig, code, src_port: u16, seq: SeqNumber, cut: usize| {
        let mut quoted = packets::ipv4_with(
            rig.node.us.ip,
            rig.peer.station.ip,
            crate::wire::ipv4::Protocol::TCP,
            &{
                let mut bytes = vec![0u8; 20];
                bytes[..2].copy_from_slice(&src_port.to_be_bytes());
                bytes[2..4].copy_from_slice(&rig.peer.port.to_be_bytes());
                bytes[4..8].copy_from_slice(&seq.0.to_be_bytes());
                bytes
            },
            |_| (),
        );
        quoted.truncate(cut);
        let message = Message::Unreachable { code, next_hop_mtu: 0, quoted: &quoted };
        let mut bytes = message.emit_head([0; 2]).to_vec();
        bytes.extend_from_slice(&quoted);
        let sum = crate::storage::checksum::Sum::of(&bytes).to_field();
        bytes[2..4].copy_from_slice(&sum);
        let frame = packets::icmp(rig.peer.station, rig.node.us, &bytes);
        rig.node.receive(&frame);
        rig.node.pass();
    };
    let mut rig = Rig::new();
    let (key, syn) = rig.connect(Options::default());
    let port = syn.ports.0;
    icmp(&mut rig, Unreachable::PORT, port ^ 1, syn.seq, 28);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::SynSent, "another local port");
    icmp(&mut rig, Unreachable::PORT, port, syn.seq, 27);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::SynSent, "too little quoted");
    icmp(&mut rig, Unreachable::PORT, port, syn.seq + 5000, 28);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::SynSent, "a number that is not in flight");
    icmp(&mut rig, Unreachable::HOST, port, syn.seq, 28);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::SynSent, "a router may be wrong");
    icmp(&mut rig, Unreachable::PORT, port, syn.seq, 28);
    assert_eq!(rig.node.tcp.error(key).unwrap(), Some(Error::Refused), "at once");
    // Established: nothing ends it, and the error can be asked for.
    let key = rig.open_plain();
    rig.write(key, b"data");
    let seq = rig.sent()[0].seq;
    for code in [Unreachable::HOST, Unreachable::NET, Unreachable::PORT, Unreachable::PROTOCOL] {
        let port = rig.peer.to;
        icmp(&mut rig, code, port, seq, 28);
    }
    let info = rig.node.tcp.info(key).unwrap();
    assert_eq!((info.state, info.soft_error), (State::Established, Some(Error::Refused)));
    rig.send(PA, 1, 5, b"still here");
    assert_eq!(rig.read(key, 20).unwrap(), b"still here");
}

/// What a connection sends, by time since its start: a SYN that is lost once, data that is lost once, a lost FIN.
fn trace(start_us: u64) -> Vec<(u64, u32, usize, u8)> {
    let mut rig = Rig::with(Limits { start_us, ..Limits::default() });
    let start = rig.now();
    let mut out = Vec::new();
    let mut note = |rig: &mut Rig| {
        let at = rig.now().since(start).as_micros();
        for (seq, len, flags) in rig.sent_short() {
            out.push((at, seq, len, flags.bits()));
        }
    };
    let options = Options { timestamps: false, ..Options::default() };
    let (key, _) = rig.connect(options);
    for _ in 0..30 {
        rig.advance(50);
        note(&mut rig);
    }
    rig.send_with(SA, 0, 1, &[], full(1000, None, false));
    rig.write(key, &pattern(0, 3000));
    note(&mut rig);
    for _ in 0..100 {
        rig.advance(50);
        note(&mut rig);
    }
    rig.send(A, 1, 1001, &[]);
    note(&mut rig);
    rig.send(PA, 1, 3001, b"data");
    rig.advance(100);
    note(&mut rig);
    rig.node.tcp.shutdown(&mut rig.node.stack, key).unwrap();
    for _ in 0..100 {
        rig.advance(50);
        note(&mut rig);
    }
    out
}

#[test]
fn case_k01_a_wrapping_millisecond_clock_gives_the_same_trace() {
    // The host's 32-bit clocks are extended before they come here; what is left that could wrap are timestamps.
    let at_zero = trace(0);
    assert!(at_zero.len() > 8, "{at_zero:?}");
    for start_ms in [0xffff_ff00u64, 0x7fff_ff00, 0x1_0000_0000 - 3_000] {
        assert_eq!(trace(start_ms * 1000), at_zero, "start at {start_ms:#x} ms");
    }
    for start_us in [0xffff_ff00u64, u64::from(u32::MAX)] {
        assert_eq!(trace(start_us), at_zero, "start at {start_us:#x} µs");
    }
}

#[test]
fn case_k01_a_clock_that_stands_or_steps_back_causes_no_storm() {
    let mut rig = Rig::new();
    let key = rig.open(Options::default(), full(1000, None, false));
    rig.write(key, b"data");
    rig.sent();
    for _ in 0..1000 {
        rig.node.pass();
    }
    assert!(rig.sent().is_empty(), "standing still");
    let now = rig.now();
    rig.node.stack.now = now - Duration::from_millis(5);
    for _ in 0..1000 {
        rig.node.pass();
    }
    assert!(rig.sent().is_empty(), "5 ms back");
    rig.send(PA, 1, 5, b"x");
    rig.advance(300);
    assert!(rig.sent().len() <= 2);
    assert_eq!(rig.node.tcp.info(key).unwrap().in_flight, 0);
}
