//! Listening, floods, path MTU, regions through the whole of TCP, and options of a connection.

use super::rig::*;
use crate::sim::host::SimMemory;
use crate::sim::packets;
use crate::stack::stats::Counter;
use crate::storage::checksum::Sum;
use crate::storage::error::Error;
use crate::storage::host::Endpoint;
use crate::storage::slots::Key;
use crate::storage::time::Duration;
use crate::tcp::{Events, Options, RegionState, State};
use crate::wire::icmpv4::{Message, Unreachable};
use crate::wire::ipv4::Protocol;
use crate::wire::tcp::{Options as WireOptions, SeqNumber, Timestamps};
use core::net::Ipv4Addr;
use std::vec;
use std::vec::Vec;

fn listen(rig: &mut Rig, backlog: u16) -> Key {
    let here = Endpoint { addr: Ipv4Addr::UNSPECIFIED, port: 80 };
    let listener = rig.node.tcp.listen(here, backlog, Options { timestamps: false, ..quiet() }).unwrap();
    rig.peer.to = 80;
    listener
}

/// A SYN from another port of the peer; what came back.
fn syn(rig: &mut Rig, port: u16) -> Vec<Seen> {
    rig.peer.port = port;
    rig.send_with(S, 0, 0, &[], full(1000, Some(2), true));
    let sent = rig.sent();
    if let Some(answer) = sent.first() {
        rig.peer.irs = answer.seq;
    }
    sent
}

#[test]
fn a_connection_comes_in_is_accepted_and_serves() {
    let mut rig = Rig::new();
    let listener = listen(&mut rig, 2);
    assert_eq!(rig.node.tcp.accept(listener), Err(Error::Again));
    let answer = syn(&mut rig, 4000);
    assert_eq!((answer.len(), answer[0].flags, answer[0].ack), (1, SA, rig.peer.iss + 1));
    let options = answer[0].options;
    assert_eq!((options.max_segment_size, options.window_scale), (Some(1460), Some(6)));
    assert!(options.sack_permitted && options.timestamps.is_none());
    assert_eq!(rig.node.tcp.accept(listener), Err(Error::Again), "half open");
    rig.send(PA, 1, 1, b"request");
    assert_eq!(rig.node.events(), [(listener, Events::ACCEPT)]);
    let key = rig.node.tcp.accept(listener).unwrap();
    assert_eq!(rig.node.tcp.accept(listener), Err(Error::Again));
    assert_eq!(rig.read(key, 100).unwrap(), b"request", "data that came before it was accepted");
    assert!(rig.events(key).contains(Events::READABLE));
    rig.sent();
    rig.write(key, b"response");
    assert_eq!(rig.sent_short(), [(1, 8, PA)]);
    assert_eq!(rig.node.tcp.info(key).unwrap().remote, Endpoint { addr: rig.peer.station.ip, port: 4000 });
}

#[test]
fn the_syn_ack_offers_only_what_was_offered() {
    let mut rig = Rig::new();
    listen(&mut rig, 2);
    rig.send_with(S, 0, 0, &[], WireOptions::default());
    let answer = rig.sent().pop().unwrap();
    let options = answer.options;
    assert_eq!((options.window_scale, options.sack_permitted, options.timestamps), (None, false, None));
    assert_eq!(options.max_segment_size, Some(1460));
}

#[test]
fn a_lost_syn_ack_is_sent_again_by_the_timer_and_for_another_syn() {
    let mut rig = Rig::new();
    let listener = listen(&mut rig, 2);
    let first = syn(&mut rig, 4000);
    let again = syn(&mut rig, 4000);
    assert_eq!((again.len(), again[0].flags, again[0].seq), (1, SA, first[0].seq));
    rig.advance(1_000);
    assert_eq!(rig.sent().pop().unwrap().flags, SA);
    rig.send(A, 1, 1, &[]);
    assert!(rig.node.tcp.accept(listener).is_ok());
}

#[test]
fn resets_and_bad_acknowledgements_of_half_open_connections() {
    let mut rig = Rig::new();
    let listener = listen(&mut rig, 1);
    syn(&mut rig, 4000);
    rig.send(A, 1, 5, &[]);
    let reset = rig.sent().pop().unwrap();
    assert_eq!((reset.flags, reset.seq), (R, rig.peer.irs + 5), "RFC 9293 §3.10.7.4");
    rig.send(R, 1, 0, &[]);
    assert!(rig.sent().is_empty());
    // It is as if it had never come: the backlog of one has room.
    assert_eq!(syn(&mut rig, 4001)[0].flags, SA);
    rig.send(A, 1, 1, &[]);
    assert!(rig.node.tcp.accept(listener).is_ok());
}

#[test]
fn the_backlog_is_a_limit_and_floods_do_not_keep_others_out() {
    let mut rig = Rig::with(Limits { slots: 8, ..Limits::default() });
    let listener = listen(&mut rig, 3);
    for port in 0..3 {
        assert_eq!(syn(&mut rig, 4000 + port).len(), 1);
    }
    assert!(syn(&mut rig, 5000).is_empty(), "silence: the SYN will come again");
    assert_eq!(rig.node.count(Counter::DropTcpBacklog), 1);
    for port in 0..1000 {
        syn(&mut rig, 10_000 + port);
    }
    let used = rig.node.tcp.table.iter().filter(|s| !s.conn.is_free()).count();
    assert_eq!(used, 3, "memory is bounded");
    rig.advance(1_000);
    rig.sent();
    // A second later an honest peer displaces the oldest that never answered.
    let answer = syn(&mut rig, 5000);
    assert_eq!(answer[0].flags, SA);
    rig.send(A, 1, 1, &[]);
    assert!(rig.node.tcp.accept(listener).is_ok());
}

#[test]
fn established_connections_are_not_displaced() {
    let mut rig = Rig::with(Limits { slots: 2, ..Limits::default() });
    let listener = listen(&mut rig, 8);
    for port in 0..2 {
        syn(&mut rig, 4000 + port);
        rig.send(A, 1, 1, &[]);
    }
    rig.advance(5_000);
    assert!(syn(&mut rig, 4002).is_empty(), "no slot");
    let first = rig.node.tcp.accept(listener).unwrap();
    let second = rig.node.tcp.accept(listener).unwrap();
    assert_eq!(rig.node.tcp.info(first).unwrap().remote.port, 4000, "the oldest first");
    assert_eq!(rig.node.tcp.info(second).unwrap().remote.port, 4001);
}

#[test]
fn what_is_for_nobody_is_reset_within_a_limit() {
    let mut rig = Rig::new();
    rig.peer.to = 99;
    rig.send_with(S, 7, 0, &[], full(1000, None, false));
    let reset = rig.sent().pop().unwrap();
    assert_eq!((reset.flags, reset.seq, reset.ack), (RA, SeqNumber(0), rig.peer.iss + 8));
    rig.send(A, 100, 50, b"data");
    let reset = rig.sent().pop().unwrap();
    assert_eq!((reset.flags, reset.seq), (R, rig.peer.irs + 50));
    rig.send(R, 100, 50, &[]);
    rig.send(RA, 100, 50, &[]);
    assert!(rig.sent().is_empty(), "never a reset for a reset");
    for _ in 0..1000 {
        rig.send(A, 1, 1, &[]);
    }
    assert!(rig.sent().len() <= 50);
    // A wrong checksum is no reason to answer, nor is a broadcast.
    rig.advance(5_000);
    let mut frame = rig.frame(A, 1, 1, b"x", WireOptions::default());
    frame[54] ^= 1;
    rig.node.receive(&frame);
    let frame = rig.frame(S, 1, 0, &[], WireOptions::default());
    let ip = packets::ipv4_with(rig.peer.station.ip, Ipv4Addr::BROADCAST, Protocol::TCP, &frame[34..54], |_| ());
    let broadcast =
        packets::ethernet(rig.node.us.mac, rig.peer.station.mac, crate::wire::ethernet::EtherType::IPV4, &ip);
    rig.node.receive(&broadcast);
    rig.node.pass();
    assert!(rig.sent().is_empty());
    assert_eq!(rig.node.count(Counter::DropTcpChecksum), 1);
    assert_eq!(rig.node.count(Counter::DropTcpAddress), 1);
}

#[test]
fn malformed_segments_are_counted_and_harmless() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    let good = rig.frame(PA, 1, 1, b"fine", WireOptions::default());
    for cut in 34..54 {
        let ip = packets::ipv4_with(rig.peer.station.ip, rig.node.us.ip, Protocol::TCP, &good[34..cut], |_| ());
        let short =
            packets::ethernet(rig.node.us.mac, rig.peer.station.mac, crate::wire::ethernet::EtherType::IPV4, &ip);
        rig.node.receive(&short);
    }
    for offset in [0u8, 1, 4, 7, 15] {
        let mut segment = good[34..58].to_vec();
        segment[12] = offset << 4;
        let bad = finish(rig.peer.station, rig.node.us, segment);
        rig.node.receive(&bad);
    }
    rig.node.pass();
    assert_eq!(rig.node.count(Counter::DropTcpMalformed), 25);
    assert_eq!(rig.node.tcp.info(key).unwrap().bytes_received, 0);
    rig.node.receive(&good);
    assert_eq!(rig.read(key, 10).unwrap(), b"fine");
    // MSS 0 and other senseless sizes are raised to what can be borne.
    for (mss, want) in [(0, 64), (1, 64), (64, 64), (65_535, 1460)] {
        let mut rig = Rig::new();
        let key = rig.open(Options { timestamps: false, ..quiet() }, full(mss, None, false));
        assert_eq!(rig.node.tcp.info(key).unwrap().segment_size, want);
    }
}

#[test]
fn segments_without_acknowledgement_are_dropped() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.send(P, 1, 0, b"data");
    assert!(rig.sent().is_empty());
    assert_eq!(rig.read(key, 10), Err(Error::Again));
    rig.send(PA, 1, 1, b"data");
    assert_eq!(rig.read(key, 10).unwrap(), b"data");
}

#[test]
fn acknowledgements_of_what_was_not_sent_or_long_ago_are_challenged() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.send(PA, 1, 2, b"forged");
    assert_eq!(rig.sent_ack().0, 1, "RFC 5961 §5");
    rig.send(PA, 1, 0u32.wrapping_sub(100_000), b"forged");
    assert_eq!(rig.sent_ack().0, 1);
    assert_eq!(rig.read(key, 10), Err(Error::Again));
    assert_eq!(rig.node.count(Counter::TcpChallengeAck), 2);
}

/// "Fragmentation needed" about a segment of ours at `seq`.
fn too_big(rig: &mut Rig, seq: SeqNumber, len: u16, mtu: u16) {
    let mut bytes = vec![0u8; 20];
    bytes[..2].copy_from_slice(&rig.peer.to.to_be_bytes());
    bytes[2..4].copy_from_slice(&rig.peer.port.to_be_bytes());
    bytes[4..8].copy_from_slice(&seq.0.to_be_bytes());
    let mut quoted = packets::ipv4_with(rig.node.us.ip, rig.peer.station.ip, Protocol::TCP, &bytes, |repr| {
        repr.payload_len = len - 20;
    });
    quoted.truncate(28);
    let message = Message::Unreachable { code: Unreachable::FRAGMENTATION_NEEDED, next_hop_mtu: mtu, quoted: &quoted };
    let mut bytes = message.emit_head([0; 2]).to_vec();
    bytes.extend_from_slice(&quoted);
    let sum = Sum::of(&bytes).to_field();
    bytes[2..4].copy_from_slice(&sum);
    let frame = packets::icmp(rig.peer.station, rig.node.us, &bytes);
    rig.node.receive(&frame);
    rig.node.pass();
}

#[test]
fn a_smaller_path_mtu_makes_smaller_segments_at_once() {
    let mut rig = Rig::new();
    let key = rig.open(Options { timestamps: false, nagle: false, ..quiet() }, full(1460, None, true));
    rig.write(key, &pattern(0, 5000));
    let sent = rig.sent();
    assert_eq!(sent[0].payload.len(), 1460);
    let window = rig.node.tcp.info(key).unwrap().congestion_window;
    // Errors about other numbers are forged or stale (RFC 5927).
    too_big(&mut rig, sent[0].seq + 100_000, 1500, 1200);
    assert!(rig.sent().is_empty());
    too_big(&mut rig, sent[0].seq, 1500, 1200);
    let again = rig.sent();
    assert!(again.iter().all(|s| s.payload.len() <= 1160), "{:?}", again[0].payload.len());
    let all: Vec<u8> = again.iter().flat_map(|s| s.payload.clone()).collect();
    assert!(pattern(0, 5000).starts_with(&all) && all.len() >= 4380);
    assert_eq!(rig.node.tcp.info(key).unwrap().congestion_window, window, "no congestion");
    // An MTU that no link has is not believed beyond what can be borne.
    too_big(&mut rig, sent[0].seq, 1200, 68);
    assert_eq!(rig.node.tcp.info(key).unwrap().segment_size, 512);
    rig.send(A, 1, 5001, &[]);
    // Ten minutes later the path may be better.
    rig.advance(600_000);
    rig.write(key, &pattern(0, 4000));
    rig.advance(400);
    rig.sent();
    assert_eq!(rig.node.tcp.info(key).unwrap().segment_size, 1460);
}

#[test]
fn a_black_hole_is_found_by_its_silence() {
    let mut rig = Rig::new();
    let key = rig.open(Options { timestamps: false, ..quiet() }, full(1460, None, true));
    rig.write(key, &pattern(0, 4000));
    let mut passed = 0u32;
    // Everything longer than 1300 bytes vanishes.
    for _ in 0..200 {
        for segment in rig.sent() {
            let at = segment.seq.since(rig.peer.irs);
            if segment.payload.len() + 40 <= 1300 && at == 1 + passed {
                passed += segment.payload.len() as u32;
                rig.send(A, 1, 1 + passed, &[]);
            }
        }
        rig.advance(100);
    }
    assert_eq!(passed, 4000);
    assert!(rig.node.count(Counter::TcpBlackHole) >= 1);
    assert_eq!(rig.node.tcp.info(key).unwrap().segment_size, 1240);
}

#[test]
fn a_header_through_the_ring_and_the_body_into_memory() {
    let mut rig = Rig::with(Limits { receive: 512, ..Limits::default() });
    let key = rig.open(Options { recv_max: 60_000, timestamps: false, ..quiet() }, full(1000, Some(0), true));
    let body = pattern(100, 40_000);
    let memory = SimMemory::new(40_000);
    let Node { tcp, stack, .. } = &mut rig.node;
    tcp.queue_ring(key, 12).unwrap();
    tcp.recv_into(stack, key, &memory, 0, 40_000).unwrap();
    let told = rig.sent().pop().unwrap();
    assert_eq!(told.window, 40_512, "the window is the region and the ring");
    let stream = [b"HTTP/1.1 OK\n", &body[..], b"trailer"].concat();
    for (n, piece) in stream.chunks(1000).enumerate() {
        rig.send(PA, 1 + n as u32 * 1000, 1, piece);
    }
    assert_eq!(rig.read(key, 100).unwrap(), b"HTTP/1.1 OK\n");
    assert_eq!(rig.read(key, 100), Err(Error::Again), "the region stands before the rest");
    assert_eq!(rig.node.tcp.region(key).unwrap(), Some(RegionState { filled: 40_000, len: 40_000 }));
    assert!(rig.events(key).contains(Events::REGION));
    let Node { tcp, stack, .. } = &mut rig.node;
    tcp.finish_region(stack, key).unwrap();
    assert!(memory.to_vec() == body);
    assert_eq!(rig.read(key, 100).unwrap(), b"trailer");
}

#[test]
fn without_a_ring_the_regions_are_the_window() {
    let mut rig = Rig::with(Limits { receive: 0, ..Limits::default() });
    let key = rig.open(Options { timestamps: false, ..quiet() }, full(1000, Some(0), true));
    assert_eq!(rig.node.tcp.info(key).unwrap().receive_window, 0);
    let memory = SimMemory::new(3_000);
    let Node { tcp, stack, .. } = &mut rig.node;
    tcp.recv_into(stack, key, &memory, 500, 2_500).unwrap();
    assert!(rig.node.tcp.info(key).unwrap().receive_window >= 2_500);
    rig.send(A, 1, 1, &pattern(0, 1000));
    rig.send(A, 1001, 1, &pattern(1000, 1000));
    rig.send(FA, 2001, 1, &pattern(2000, 500));
    assert_eq!(memory.to_vec()[500..], pattern(0, 2500));
    assert_eq!(memory.to_vec()[..500], [0xa5; 500]);
    let Node { tcp, stack, .. } = &mut rig.node;
    assert!(tcp.finish_region(stack, key).unwrap().unwrap().is_full());
    assert!(tcp.is_finished(key).unwrap());
    let before = memory.to_vec();
    rig.send(A, 2001, 1, &[0xee; 500]);
    assert!(memory.to_vec() == before, "nothing is written to it again");
}

#[test]
fn a_corrupt_segment_over_a_sacked_range_changes_no_byte() {
    let mut rig = Rig::new();
    let key = rig.open_sack();
    let memory = SimMemory::new(5_000);
    let Node { tcp, stack, .. } = &mut rig.node;
    tcp.recv_into(stack, key, &memory, 0, 5_000).unwrap();
    rig.send(A, 1001, 1, &pattern(1000, 1000));
    let sacked = rig.sent().pop().unwrap();
    assert_eq!(sacked.options.sack.as_slice().len(), 1);
    let mut frame = rig.frame(A, 1001, 1, &[0x66; 1000], WireOptions::default());
    frame[60] ^= 0x40;
    rig.node.receive(&frame);
    rig.node.pass();
    assert_eq!(memory.to_vec()[1000..2000], pattern(1000, 1000)[..]);
    assert!(rig.sent().is_empty());
    assert_eq!(rig.node.count(Counter::DropTcpChecksum), 1);
    // The next valid one passes.
    rig.send(A, 1, 1, &pattern(0, 1000));
    assert_eq!(rig.sent().pop().unwrap().ack, rig.peer.iss + 2001);
    assert_eq!(memory.to_vec()[..2000], pattern(0, 2000)[..]);
}

#[test]
fn a_corrupt_segment_in_order_is_not_taken() {
    for bit in [0usize, 3, 700] {
        let mut rig = Rig::new();
        let key = rig.open_plain();
        let mut frame = rig.frame(PA, 1, 1, &pattern(0, 800), WireOptions::default());
        frame[54 + bit] ^= 1;
        rig.node.receive(&frame);
        rig.node.pass();
        assert!(rig.sent().is_empty());
        assert_eq!(rig.read(key, 10), Err(Error::Again));
        rig.send(PA, 1, 1, &pattern(0, 800));
        assert_eq!(rig.read(key, 1000).unwrap(), pattern(0, 800));
    }
}

#[test]
fn cancelling_a_region_keeps_the_announced_edge() {
    let mut rig = Rig::with(Limits { receive: 1000, ..Limits::default() });
    let key = rig.open(Options { timestamps: false, ..quiet() }, full(1000, Some(0), true));
    let memory = SimMemory::new(20_000);
    let Node { tcp, stack, .. } = &mut rig.node;
    tcp.recv_into(stack, key, &memory, 0, 20_000).unwrap();
    rig.sent();
    rig.send(A, 1, 1, &pattern(0, 1000));
    rig.send(A, 3001, 1, &pattern(3000, 1000));
    let edge = rig.sent().iter().map(|s| s.ack.since(rig.peer.iss) + (u32::from(s.window) << 6)).max().unwrap();
    let Node { tcp, stack, .. } = &mut rig.node;
    assert_eq!(tcp.finish_region(stack, key).unwrap(), Some(RegionState { filled: 1000, len: 20_000 }));
    rig.send(A, 1001, 1, &pattern(1000, 1000));
    let ack = rig.sent().pop().unwrap();
    assert_eq!(ack.ack.since(rig.peer.iss), 2001, "the ring takes what it can");
    // But for the grain of the window field (RFC 7323 §2.4).
    assert!(2001 + (u32::from(ack.window) << 6) + 63 >= edge, "the edge never moves left");
    assert!(ack.options.sack.is_empty(), "what was out of order is reneged");
    rig.send(A, 2001, 1, &pattern(2000, 1000));
    assert_eq!(rig.sent().pop().unwrap().ack.since(rig.peer.iss), 2001, "no place: not acknowledged");
    assert!(rig.node.count(Counter::DropTcpNoRoom) >= 1);
    let next = SimMemory::new(5_000);
    let Node { tcp, stack, .. } = &mut rig.node;
    tcp.recv_into(stack, key, &next, 0, 5_000).unwrap();
    for n in 2..6u32 {
        rig.send(A, 1 + n * 1000, 1, &pattern(n as usize * 1000, 1000));
    }
    assert!(next.to_vec() == pattern(1000, 5000));
}

/// The edge that is rounded up for each acknowledgement must not creep beyond the ring: what comes there is lost, and a
/// peer that has nothing more to send notices only by its timer.
#[test]
fn roundings_of_the_window_do_not_add_up() {
    let mut rig = Rig::with(Limits { receive: 8192, ..Limits::default() });
    rig.open(Options { timestamps: false, ..quiet() }, full(1000, Some(0), true));
    let mut at = 0;
    while at < 8000 {
        rig.send(A, 1 + at, 1, &pattern(at as usize, 143));
        at += 143;
        for sent in rig.sent() {
            let edge = sent.ack.since(rig.peer.iss) - 1 + (u32::from(sent.window) << 6);
            assert!(edge <= 8192, "{edge} was announced at {at}");
        }
    }
    assert_eq!(rig.node.count(Counter::DropTcpNoRoom), 0);
}

#[test]
fn the_window_reopens_only_by_worthwhile_steps() {
    let mut rig = Rig::with(Limits { receive: 4000, ..Limits::default() });
    let key = rig.open_plain();
    for n in 0..4u32 {
        rig.send(A, 1 + n * 1000, 1, &pattern(n as usize * 1000, 1000));
    }
    assert_eq!(rig.sent().pop().unwrap().window, 0);
    for _ in 0..14 {
        rig.read(key, 100).unwrap();
        assert!(rig.sent().is_empty(), "RFC 9293 §3.8.6.2.2: no silly windows");
    }
    rig.read(key, 100).unwrap();
    assert_eq!(rig.sent_ack(), (4001, 1500), "a segment of ours' worth");
}

#[test]
fn nagle_can_be_switched_off() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.write(key, b"a");
    rig.write(key, b"b");
    assert_eq!(rig.sent_short(), [(1, 1, PA)]);
    rig.node.tcp.set_nagle(key, false).unwrap();
    rig.node.pass();
    assert_eq!(rig.sent_short(), [(2, 1, PA)]);
    rig.write(key, b"c");
    assert_eq!(rig.sent_short(), [(3, 1, PA)]);
}

#[test]
fn stale_names_find_nothing() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.node.tcp.abort(&mut rig.node.stack, key).unwrap();
    rig.sent();
    let next = rig.open_plain();
    assert_eq!(next.index, key.index);
    assert_eq!(rig.node.tcp.info(key), Err(Error::BadHandle));
    assert_eq!(rig.node.tcp.send(key, b"x"), Err(Error::BadHandle));
    assert_eq!(rig.node.tcp.close(&mut rig.node.stack, key), Err(Error::BadHandle));
    assert_eq!(rig.node.tcp.info(next).unwrap().state, State::Established);
}

#[test]
fn connecting_to_where_nobody_can_be_is_refused() {
    let mut rig = Rig::new();
    let any = Endpoint { addr: Ipv4Addr::UNSPECIFIED, port: 0 };
    for addr in [Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 1), Ipv4Addr::LOCALHOST] {
        let to = Endpoint { addr, port: 80 };
        assert_eq!(rig.node.tcp.connect(&mut rig.node.stack, any, to, quiet()), Err(Error::Invalid));
    }
    let to = Endpoint { addr: Ipv4Addr::new(192, 168, 9, 9), port: 80 };
    assert_eq!(rig.node.tcp.connect(&mut rig.node.stack, any, to, quiet()), Err(Error::NetworkUnreachable));
    let to = Endpoint { addr: rig.peer.station.ip, port: 0 };
    assert_eq!(rig.node.tcp.connect(&mut rig.node.stack, any, to, quiet()), Err(Error::Invalid));
    let to = Endpoint { addr: rig.peer.station.ip, port: 80 };
    let from = Endpoint { port: 1234, ..any };
    assert!(rig.node.tcp.connect(&mut rig.node.stack, from, to, quiet()).is_ok());
    assert_eq!(rig.node.tcp.connect(&mut rig.node.stack, from, to, quiet()), Err(Error::InUse));
}

#[test]
fn a_hundred_idle_connections_do_nothing_until_their_time() {
    let mut rig = Rig::with(Limits { slots: 101, receive: 64, send: 64, ..Limits::default() });
    for n in 0..100u16 {
        rig.peer.port = 1000 + n;
        rig.open_plain();
    }
    rig.sent();
    // Deadlines may be early: those of the SYNs pass first.
    rig.advance(5_000);
    let deadline = rig.node.tcp.deadline();
    assert!(deadline > rig.now() + Duration::from_secs(3600), "nothing is due");
    rig.advance(3_600_000);
    assert!(rig.sent().is_empty());
}

#[test]
fn a_duplicate_is_reported_by_d_sack() {
    let mut rig = Rig::new();
    rig.open_sack();
    rig.send(A, 1, 1, &pattern(0, 1000));
    rig.sent();
    rig.send(A, 1, 1, &pattern(0, 1000));
    let blocks = |rig: &mut Rig| {
        let iss = rig.peer.iss;
        let ack = rig.sent().pop().unwrap();
        let all: Vec<(u32, u32)> =
            ack.options.sack.as_slice().iter().map(|b| (b.left.since(iss), b.right.since(iss))).collect();
        all
    };
    assert_eq!(blocks(&mut rig), [(1, 1001)], "RFC 2883 §4.1");
    rig.send(A, 2001, 1, &pattern(2000, 1000));
    assert_eq!(blocks(&mut rig), [(2001, 3001)]);
    rig.send(A, 2001, 1, &pattern(2000, 500));
    assert_eq!(blocks(&mut rig), [(2001, 2501), (2001, 3001)], "the block that holds it follows");
    rig.send(A, 4001, 1, &pattern(4000, 1000));
    assert_eq!(blocks(&mut rig), [(4001, 5001), (2001, 3001)], "told once");
}

#[test]
fn timestamps_leave_room_for_three_blocks() {
    let mut rig = Rig::new();
    rig.peer.timestamps = Some(Timestamps { value: 1, echo: 0 });
    rig.open(quiet(), full(1012, Some(0), true));
    for n in [9u32, 7, 5, 3] {
        rig.send(A, 1 + n * 1000, 1, &pattern(n as usize * 1000, 1000));
    }
    let ack = rig.sent().pop().unwrap();
    let lefts: Vec<u32> = ack.options.sack.as_slice().iter().map(|b| b.left.since(rig.peer.iss)).collect();
    assert_eq!(lefts, [3001, 5001, 7001]);
}
