//! Segments that leave behind each other, and acknowledgements that come so: what is worked out once for many must be worked
//! out again when anything it came from has changed.

use super::rig::*;
use crate::sim::packets::{self, Station};
use crate::stack::interface::Cidr;
use crate::stack::stats::Counter;
use crate::storage::host::{HostError, NicCaps, SendError};
use crate::storage::slots::Key;
use crate::storage::time::Duration;
use crate::tcp::seq::Pos;
use crate::tcp::{Options, State};
use crate::wire::tcp::{SeqNumber, Timestamps};
use std::vec;
use std::vec::Vec;

/// A rig that knows its peer's hardware address by what was learned once.
fn learned_once(limits: Limits) -> Rig {
    let mut rig = Rig::with(Limits { knows: false, ..limits });
    let (now, nic, peer) = (rig.now(), rig.node.nic, rig.peer.station);
    rig.node.stack.learn_for_test(now, nic, peer.ip, peer.mac);
    rig
}

fn stream(rig: &mut Rig, key: Key, from: usize, len: usize) {
    assert_eq!(rig.node.tcp.send(key, &pattern(from, len)).unwrap(), len);
    rig.node.pass();
}

/// What the frames sent carry, which must be the stream from `at` on, and their lengths.
fn carried(rig: &mut Rig, at: usize) -> Vec<usize> {
    let mut next = at;
    let mut lengths = Vec::new();
    for seen in rig.sent().iter().filter(|s| !s.payload.is_empty()) {
        assert_eq!(seen.seq, rig.peer.irs + 1 + next as u32);
        assert_eq!(seen.payload, pattern(next, seen.payload.len()));
        next += seen.payload.len();
        lengths.push(seen.payload.len());
    }
    lengths
}

#[test]
fn full_segments_leave_behind_each_other_and_the_last_is_pushed() {
    for (stamped, offset) in [(false, 0usize), (true, 12)] {
        let mut rig = Rig::new();
        rig.peer.timestamps = stamped.then_some(Timestamps { value: 77, echo: 0 });
        let key = rig.open(Options { timestamps: stamped, ..quiet() }, full(1000, Some(0), true));
        rig.write(key, &pattern(0, 5500));
        let sent = rig.sent();
        let size = 1000 - offset;
        let lens: Vec<usize> = sent.iter().map(|s| s.payload.len()).collect();
        assert_eq!(lens[..5], [size; 5]);
        let all: Vec<u8> = sent.iter().flat_map(|s| s.payload.clone()).collect();
        assert!(pattern(0, 5500).starts_with(&all));
        for (n, seen) in sent.iter().take(5).enumerate() {
            assert_eq!(seen.seq, rig.peer.irs + 1 + (n * size) as u32);
            assert_eq!((seen.flags, seen.ack), (A, rig.peer.iss + 1), "only the last is pushed");
            assert_eq!(seen.options.timestamps.map(|t| t.echo), stamped.then_some(77));
            assert_eq!((seen.window, seen.options.timestamps), (sent[0].window, sent[0].options.timestamps));
        }
        // Both change with time and with what comes.
        let first = sent[0].options.timestamps;
        rig.node.stack.now += Duration::from_millis(50);
        rig.peer.timestamps = first.map(|first| Timestamps { value: 99, echo: first.value });
        rig.send(A, 1, 1 + all.len() as u32, &pattern(0, 10));
        rig.sent();
        rig.write(key, &pattern(5500, 9000));
        for seen in rig.sent().iter().filter(|s| s.payload.len() == size) {
            assert_eq!(seen.ack, rig.peer.iss + 11);
            if let (Some(first), Some(now)) = (first, seen.options.timestamps) {
                assert_eq!((now.value.wrapping_sub(first.value), now.echo), (50, 99));
            }
        }
    }
}

#[test]
fn another_hardware_address_of_the_peer_counts_from_the_next_segment_on() {
    let mut rig = learned_once(Limits::default());
    let key = rig.open_sack();
    let to = |frames: &[Vec<u8>], mac: crate::wire::ethernet::Address| {
        assert!(frames.len() >= 3 && frames.iter().all(|f| f[..6] == mac.0), "{frames:02x?}");
    };
    stream(&mut rig, key, 0, 4500);
    to(&rig.node.sent_frames(), rig.peer.station.mac);
    let moved = Station { mac: Station::new(7).mac, ..rig.peer.station };
    rig.node.receive(&packets::arp_request(moved, moved.ip));
    let frame = rig.frame(A, 1, 4001, &[], Default::default());
    rig.node.receive(&frame);
    stream(&mut rig, key, 4500, 4500);
    to(&rig.node.sent_frames(), moved.mac);
}

#[test]
fn what_is_sent_from_an_address_that_was_lost_does_not_leave() {
    let mut rig = learned_once(Limits::default());
    let key = rig.open_sack();
    stream(&mut rig, key, 0, 4500);
    assert_eq!(carried(&mut rig, 0), [1000; 4]);
    let nic = rig.node.nic;
    let ours = rig.node.us.ip;
    assert!(rig.node.stack.interface_mut(nic).unwrap().remove_address(ours));
    stream(&mut rig, key, 4500, 4500);
    assert!(rig.node.sent_frames().is_empty(), "no way leads there");
    // With the address the way is back, and everything comes.
    rig.node.stack.interface_mut(nic).unwrap().add_address(Cidr { addr: ours, prefix: 24 });
    let mut got = 4000u32;
    for _ in 0..40 {
        rig.send(A, 1, 1 + got, &[]);
        rig.advance(300);
        for seen in rig.sent() {
            let at = seen.seq.since(rig.peer.irs) - 1;
            assert_eq!(seen.payload, pattern(at as usize, seen.payload.len()));
            if at == got {
                got += seen.payload.len() as u32;
            }
        }
    }
    assert_eq!(got, 9000);
}

#[test]
fn a_smaller_mtu_of_the_interface_makes_smaller_segments_at_once() {
    let mut rig = learned_once(Limits::default());
    let key = rig.open(Options { timestamps: false, ..quiet() }, full(1460, Some(0), true));
    stream(&mut rig, key, 0, 6000);
    assert_eq!(carried(&mut rig, 0), [1460; 4]);
    let nic = rig.node.nic;
    rig.node.stack.interface_mut(nic).unwrap().mtu = 1040;
    rig.send(A, 1, 5841, &[]);
    stream(&mut rig, key, 6000, 6000);
    let lens = carried(&mut rig, 5840);
    assert!(lens.len() >= 3 && lens[0] == 160 && lens[1..].iter().all(|len| *len == 1000), "{lens:?}");
}

#[test]
fn windows_and_shifts_bound_a_train() {
    for (shift, window, want) in [(0u8, 3500u16, 3usize), (2, 1000, 4), (4, 250, 4), (3, 1000, 8)] {
        let mut rig = Rig::new();
        rig.peer.window = 65_535;
        let key = rig.open(Options { timestamps: false, ..quiet() }, full(1000, Some(shift), true));
        rig.peer.window = window;
        rig.send(A, 1, 1, &pattern(0, 1));
        rig.sent();
        rig.write(key, &pattern(0, 20_000));
        let sent = rig.sent();
        let full: Vec<_> = sent.iter().filter(|s| s.payload.len() == 1000).collect();
        assert_eq!(full.len(), want, "shift {shift}");
        let end = sent.iter().map(|s| s.seq.since(rig.peer.irs) as usize - 1 + s.payload.len()).max().unwrap();
        assert!(end <= usize::from(window) << shift);
    }
}

/// A NIC that has room for two frames, then none, and loses one, changes nothing about what comes in the end.
#[test]
fn a_train_that_the_nic_cuts_goes_on_where_it_was_cut() {
    for caps in [NicCaps::empty(), NicCaps::GATHER, NicCaps::GATHER | NicCaps::ASYNC] {
        let mut rig = Rig::with(Limits { caps, tx: 16, ..Limits::default() });
        let key = rig.open_sack();
        rig.node.tokens_done();
        rig.node.wire.borrow_mut().script = [None, None, Some(SendError::Busy)].into();
        stream(&mut rig, key, 0, 7500);
        assert_eq!(carried(&mut rig, 0), [1000; 2]);
        assert_eq!(rig.node.tcp.info(key).unwrap().in_flight, 2000, "what was not sent is not in flight");
        rig.node.wire.borrow_mut().script = [None, Some(SendError::Failed(HostError(-5)))].into();
        rig.node.tokens_done();
        rig.node.pass();
        let sent = rig.sent_short();
        assert_eq!(sent.iter().map(|s| s.0).collect::<Vec<_>>(), [2001, 4001, 5001, 6001], "3001 was lost on the way");
        assert_eq!(rig.node.tcp.info(key).unwrap().in_flight, 7000);
        rig.node.tokens_done();
        rig.send_sack(3001, &[(4001, 7001)]);
        assert!(rig.sent_short().iter().any(|s| s.0 == 3001), "sent again");
    }
}

#[test]
fn acknowledgements_of_one_pass_count_as_one() {
    let mut rig = Rig::new();
    let key = rig.open_sack();
    rig.write(key, &pattern(0, 20_000));
    assert_eq!(carried(&mut rig, 0), [1000; 10], "the congestion window holds the rest back");
    let before = rig.node.tcp.info(key).unwrap();
    rig.node.stack.now += Duration::from_millis(20);
    rig.events(key);
    for end in [2001u32, 4001, 6001, 8001] {
        let frame = rig.frame(A, 1, end, &[], Default::default());
        rig.node.receive(&frame);
        // What the host asks meanwhile is answered as of now.
        assert_eq!(rig.node.tcp.unsent(key).unwrap(), u64::from(20_001 - end));
    }
    // The ring has room for them at once, too.
    rig.node.tcp.set_user_timeout(key, Duration::from_secs(9)).unwrap();
    assert_eq!(rig.node.tcp.info(key).unwrap().bytes_sent, 8000);
    let frame = rig.frame(A, 1, 9001, &[], Default::default());
    rig.node.receive(&frame);
    rig.node.pass();
    let after = rig.node.tcp.info(key).unwrap();
    assert_eq!((after.bytes_sent, after.in_flight), (9000, 11_000));
    assert_eq!(after.congestion_window, before.congestion_window + 9000, "slow start counts bytes");
    assert!(after.rtt > Duration::ZERO);
    assert!(rig.events(key).contains(crate::tcp::Events::WRITABLE));
    // One that acknowledges less than another came first is none.
    for end in [10_001u32, 9001] {
        let frame = rig.frame(A, 1, end, &[], Default::default());
        rig.node.receive(&frame);
    }
    rig.node.pass();
    assert_eq!(rig.node.tcp.unsent(key).unwrap(), 10_000);
    assert_eq!(rig.node.tcp.info(key).unwrap().retransmits, 0);
}

/// A reset, a FIN, a timeout and a close that come behind acknowledgements in one pass find them taken in.
#[test]
fn what_follows_acknowledgements_in_one_pass_finds_them_taken_in() {
    let mut rig = Rig::new();
    let key = rig.open_sack();
    rig.write(key, &pattern(0, 3000));
    rig.sent();
    let frame = rig.frame(A, 1, 3001, &[], Default::default());
    rig.node.receive(&frame);
    let frame = rig.frame(FA, 1, 3001, &[], Default::default());
    rig.node.receive(&frame);
    assert_eq!(rig.node.tcp.info(key).unwrap().bytes_sent, 3000);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::CloseWait);
    rig.node.pass();
    let mut rig = Rig::new();
    let key = rig.open_sack();
    rig.write(key, &pattern(0, 3000));
    rig.sent();
    let frame = rig.frame(A, 1, 3001, &[], Default::default());
    rig.node.receive(&frame);
    // The retransmission timer would have expired before the next pass.
    rig.node.stack.now += Duration::from_secs(2);
    rig.node.pass();
    assert!(rig.sent().is_empty());
    assert_eq!(rig.node.tcp.info(key).unwrap().retransmits, 0);
    let frame = rig.frame(A, 1, 3001, &pattern(0, 5), Default::default());
    rig.node.receive(&frame);
    rig.node.tcp.abort(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    assert_eq!(rig.sent().last().unwrap().flags, RA);
}

#[test]
#[cfg(feature = "fast")]
fn a_lane_takes_only_sound_frames_of_its_connection() {
    let mut rig = learned_once(Limits::default());
    let key = rig.open_plain();
    let stats = |rig: &Rig| {
        let count = |counter| rig.node.count(counter);
        (count(Counter::RxFrames), count(Counter::DropIpChecksum), count(Counter::DropTcpChecksum))
    };
    // Two segments make a lane.
    for n in 0..3u32 {
        rig.send(A, 1 + n * 100, 1, &pattern(n as usize * 100, 100));
    }
    assert!(rig.node.tcp.lane.is_some());
    rig.sent();
    let sound = rig.frame(A, 301, 1, &pattern(300, 100), Default::default());
    let before = stats(&rig);
    let mut bad = sound.clone();
    bad[18] ^= 1; // identification
    rig.node.receive(&bad);
    let mut bad = sound.clone();
    bad[60] ^= 1;
    rig.node.receive(&bad);
    let mut bad = sound.clone();
    bad[0] ^= 4; // another host's
    rig.node.receive(&bad);
    rig.node.receive(&sound[..50]);
    assert_eq!(stats(&rig), (before.0 + 4, before.1 + 1, before.2 + 1));
    rig.node.receive(&sound);
    let mut whole = vec![0; 1000];
    let count = rig.node.tcp.recv(&mut rig.node.stack, key, &mut whole).unwrap();
    assert_eq!(whole[..count], pattern(0, 400));
    // An address that is ours no more makes every frame another's.
    let (nic, ours) = (rig.node.nic, rig.node.us.ip);
    let interface = rig.node.stack.interface_mut(nic).unwrap();
    interface.remove_address(ours);
    interface.add_address(Cidr { addr: Station::new(8).ip, prefix: 24 });
    let next = rig.frame(A, 401, 1, &pattern(400, 100), Default::default());
    rig.node.receive(&next);
    assert_eq!(rig.node.count(Counter::DropIpNotOurs), 1);
    rig.node.stack.interface_mut(nic).unwrap().add_address(Cidr { addr: ours, prefix: 24 });
    // A slot that is another connection's takes nothing by the old one's lane.
    rig.node.tcp.abort(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    rig.sent();
    rig.node.receive(&next);
    rig.node.pass();
    assert_eq!(rig.sent().last().unwrap().flags, R);
}

#[test]
fn sequence_numbers_wrap_inside_a_train() {
    let mut rig = Rig::new();
    let key = rig.open_sack();
    let mut at = 0usize;
    // Not far from the wrap, however the first number was drawn.
    let left = SeqNumber(0).since(rig.peer.irs + 1) as usize;
    let conn = rig.node.tcp.table.get_mut(key).unwrap();
    let pos = Pos::DATA + (left - 5500) as u64;
    conn.tx.queue.skip_for_test((left - 5500) as u64);
    conn.tx.queue.end_for_test(pos);
    (conn.tx.una, conn.tx.nxt) = (pos, pos);
    conn.tx.edge = pos + 65_535;
    conn.tx.window_from.1 = pos;
    conn.tx.board.reset(pos);
    rig.write(key, &pattern(0, 10_000));
    for seen in rig.sent() {
        assert_eq!(seen.seq, rig.peer.irs + 1 + (left - 5500 + at) as u32);
        assert_eq!(seen.payload, pattern(at, seen.payload.len()));
        at += seen.payload.len();
    }
    assert!(at >= 9000);
}

fn send_now(rig: &mut Rig, key: Key, from: usize, len: usize) {
    let Node { tcp, stack, .. } = &mut rig.node;
    assert_eq!(tcp.send_now(stack, key, &pattern(from, len)).unwrap(), len);
}

/// What is given leaves at once and is sent again from the ring; whatever the NIC can do.
#[test]
#[cfg(feature = "fast")]
fn full_segments_leave_as_they_are_given() {
    for caps in [NicCaps::empty(), NicCaps::GATHER, NicCaps::GATHER | NicCaps::ASYNC] {
        for lends in [true, false] {
            let mut rig = Rig::with(Limits { caps, lends, tx: 16, ..Limits::default() });
            let key = rig.open_sack();
            rig.node.tokens_done();
            send_now(&mut rig, key, 0, 5500);
            assert_eq!(carried(&mut rig, 0), [1000; 5], "without a pass");
            rig.node.pass();
            assert!(rig.sent().is_empty(), "what is left waits, as small segments do");
            // What waits is made a segment by what is given behind it.
            send_now(&mut rig, key, 5500, 3000);
            assert_eq!(carried(&mut rig, 5000), [1000; 3]);
            rig.node.pass();
            assert!(rig.sent().is_empty());
            rig.node.tokens_done();
            rig.send_sack(1001, &[(2001, 8001)]);
            let again: Vec<_> = rig.sent().into_iter().filter(|s| s.seq == rig.peer.irs + 1001).collect();
            assert_eq!(again.len(), 1);
            assert_eq!(again[0].payload, pattern(1000, 1000));
            rig.send(A, 1, 8001, &[]);
            assert_eq!(carried(&mut rig, 8000), [500]);
        }
    }
}

#[test]
#[cfg(feature = "fast")]
fn what_the_nic_refuses_while_it_is_given_leaves_in_the_next_pass() {
    for refusal in [SendError::Busy, SendError::Failed(HostError(-5))] {
        for caps in [NicCaps::empty(), NicCaps::GATHER] {
            let mut rig = Rig::with(Limits { caps, ..Limits::default() });
            let key = rig.open_sack();
            rig.node.wire.borrow_mut().script = [None, Some(refusal)].into();
            send_now(&mut rig, key, 0, 4000);
            if refusal == SendError::Busy {
                assert_eq!(carried(&mut rig, 0), [1000]);
                rig.node.pass();
                assert_eq!(carried(&mut rig, 1000), [1000; 3]);
                continue;
            }
            // A lost frame is lost as on the wire: the ring has what it carried.
            assert_eq!(rig.sent_short(), [(1, 1000, A), (2001, 1000, A)]);
            rig.node.pass();
            rig.sent();
            rig.send_sack(1001, &[(2001, 4001)]);
            let again = rig.sent();
            assert_eq!(again[0].seq, rig.peer.irs + 1001);
            assert_eq!(again[0].payload, pattern(1000, 1000));
        }
    }
}

/// A ring that is no multiple of the segments, filled and emptied over and over, in both ways of sending.
#[test]
fn bytes_given_at_once_keep_their_order_around_the_ring() {
    let mut rig = Rig::with(Limits { send: 7333, ..Limits::default() });
    let key = rig.open_sack();
    let (mut given, mut got) = (0usize, 0usize);
    for turn in 0..400usize {
        let len = 1 + turn * 997 % 6000;
        let Node { tcp, stack, .. } = &mut rig.node;
        given += match turn % 3 {
            0 => tcp.send(key, &pattern(given, len)).unwrap(),
            _ => tcp.send_now(stack, key, &pattern(given, len)).unwrap(),
        };
        rig.node.pass();
        for seen in rig.sent() {
            let at = seen.seq.since(rig.peer.irs) as usize - 1;
            assert_eq!(seen.payload, pattern(at, seen.payload.len()), "turn {turn}");
            if at == got {
                got += seen.payload.len();
            }
        }
        rig.node.stack.now += Duration::from_millis(1);
        rig.send(A, 1, 1 + got as u32, &[]);
        for seen in rig.sent() {
            assert_eq!(seen.seq.since(rig.peer.irs) as usize - 1, got);
            got += seen.payload.len();
        }
    }
    assert!(got > 300_000 && given - got <= 7333, "{given} {got}");
}

#[test]
#[cfg(feature = "fast")]
fn nothing_leaves_at_once_before_it_may() {
    let mut rig = Rig::new();
    let (key, _) = rig.connect(quiet());
    send_now(&mut rig, key, 0, 5000);
    assert!(rig.sent().is_empty(), "the connection does not stand yet");
    let mut rig = Rig::new();
    rig.peer.window = 2500;
    let key = rig.open_sack();
    send_now(&mut rig, key, 0, 9000);
    assert_eq!(carried(&mut rig, 0), [1000; 2], "the peer's window");
    let mut rig = Rig::new();
    let key = rig.open_sack();
    send_now(&mut rig, key, 0, 20_000);
    assert_eq!(carried(&mut rig, 0), [1000; 10], "the congestion window");
    // It was what held the sender back, and grows.
    rig.node.stack.now += Duration::from_millis(5);
    let frame = rig.frame(A, 1, 10_001, &[], Default::default());
    rig.node.receive(&frame);
    send_now(&mut rig, key, 20_000, 5000);
    assert_eq!(rig.node.tcp.info(key).unwrap().congestion_window, 20_000);
    rig.node.tcp.shutdown(&mut rig.node.stack, key).unwrap();
    let Node { tcp, stack, .. } = &mut rig.node;
    assert!(tcp.send_now(stack, key, &[1]).is_err());
}
