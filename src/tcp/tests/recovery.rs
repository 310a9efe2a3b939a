//! Loss and what is done about it, segment by segment.

use super::rig::*;
use crate::stack::stats::Counter;
use crate::storage::slots::Key;
use crate::storage::time::Duration;
use crate::tcp::Options;
use std::vec::Vec;

/// A connection with SACK on which `count` segments of 1000 bytes are out, sent 20 ms round trips apart.
fn flying(rig: &mut Rig, options: Options, sack: bool, count: usize) -> Key {
    rig.peer.window = 60_000;
    let options = Options { timestamps: false, nagle: false, ..options };
    let (key, _) = rig.connect(options);
    rig.advance(20);
    rig.send_with(SA, 0, 1, &[], full(1000, Some(0), sack));
    rig.write(key, &pattern(0, 1000));
    rig.sent();
    rig.advance(20);
    rig.send(A, 1, 1001, &[]);
    rig.write(key, &pattern(1000, count * 1000));
    let sent = rig.sent();
    assert_eq!(sent.len(), count);
    rig.advance(20);
    assert!(rig.sent().is_empty());
    key
}

fn starts(rig: &mut Rig) -> Vec<u32> {
    rig.sent_short().iter().map(|(at, ..)| *at).collect()
}

#[test]
fn three_sacked_segments_show_the_one_before_them_lost() {
    let mut rig = Rig::new();
    let key = flying(&mut rig, quiet(), true, 8);
    rig.send_sack(1001, &[(2001, 3001)]);
    rig.send_sack(1001, &[(2001, 4001)]);
    assert!(starts(&mut rig).is_empty());
    rig.send_sack(1001, &[(2001, 5001)]);
    assert_eq!(starts(&mut rig), [1001]);
    // RFC 9438 §4.6: down to 0.7 of the flight.
    assert_eq!(rig.node.tcp.info(key).unwrap().slow_start_threshold, 5_600);
    rig.send(A, 1, 9001, &[]);
    assert_eq!(rig.node.tcp.info(key).unwrap().congestion_window, 5_600);
    assert_eq!(rig.node.tcp.info(key).unwrap().retransmits, 1);
}

/// Acknowledgements that come together are taken in one after the other: the last of them must not find that next to
/// nothing was out.
#[test]
fn a_loss_is_judged_by_what_was_out_before_the_pass() {
    let mut rig = Rig::new();
    let key = flying(&mut rig, quiet(), true, 8);
    let first = rig.frame(A, 1, 7001, &[], Default::default());
    rig.node.receive(&first);
    rig.send_sack(7001, &[(8001, 9001)]);
    rig.advance(6);
    assert_eq!(starts(&mut rig), [7001]);
    assert_eq!(rig.node.tcp.info(key).unwrap().slow_start_threshold, 5_600, "0.7 of eight segments, not of two");
}

/// What they delivered makes room for as much, up to the threshold.
#[test]
fn what_came_with_the_sign_of_a_loss_makes_room() {
    let mut rig = Rig::new();
    let key = flying(&mut rig, quiet(), true, 8);
    rig.peer.window = 8_000;
    rig.send(A, 1, 1001, &[]);
    rig.write(key, &pattern(9000, 10_000));
    assert!(rig.sent().is_empty(), "the peer has no room");
    rig.peer.window = 60_000;
    let first = rig.frame(A, 1, 5001, &[], Default::default());
    rig.node.receive(&first);
    rig.send_sack(5001, &[(6001, 9001)]);
    assert_eq!(starts(&mut rig), [5001, 9001, 10_001, 11_001, 12_001]);
}

#[test]
fn a_retransmission_that_is_lost_is_probed_for() {
    let lost_again = |rig: &mut Rig| {
        let key = flying(rig, quiet(), true, 8);
        rig.send_sack(1001, &[(2001, 9001)]);
        assert_eq!(starts(rig), [1001]);
        key
    };
    // Two round trips later, once; then it is for the timeout.
    let mut rig = Rig::new();
    let key = lost_again(&mut rig);
    rig.advance(40);
    assert!(starts(&mut rig).is_empty());
    rig.advance(10);
    assert_eq!(starts(&mut rig), [1001]);
    rig.advance(180);
    assert!(starts(&mut rig).is_empty());
    let info = rig.node.tcp.info(key).unwrap();
    assert_eq!((info.slow_start_threshold, info.retransmits), (5_600, 2));
    // Its answer ends the repair, and the window comes down no further.
    rig.send(A, 1, 9001, &[]);
    let info = rig.node.tcp.info(key).unwrap();
    assert_eq!((info.congestion_window, info.slow_start_threshold), (5_600, 5_600));
    rig.advance(1_000);
    assert!(starts(&mut rig).is_empty());
    // New data is the better probe: what tells that it came shows what is lost.
    let mut rig = Rig::new();
    let key = lost_again(&mut rig);
    rig.peer.window = 8_000;
    rig.send_sack(1001, &[(2001, 9001)]);
    rig.write(key, &pattern(9000, 1000));
    assert!(starts(&mut rig).is_empty(), "the peer has no room");
    rig.peer.window = 9_000;
    rig.advance(30);
    rig.send_sack(1001, &[(2001, 9001)]);
    assert_eq!(starts(&mut rig), [9001]);
    rig.advance(20);
    rig.send_sack(1001, &[(2001, 10_001)]);
    assert_eq!(starts(&mut rig), [1001]);
    // In time, nothing is probed for.
    let mut rig = Rig::new();
    lost_again(&mut rig);
    rig.advance(38);
    rig.send(A, 1, 9001, &[]);
    rig.advance(1_000);
    assert!(starts(&mut rig).is_empty());
}

/// A receiver that does not SACK a FIN answers one that comes too early as if it had not come.
#[test]
fn a_fin_alone_is_no_probe() {
    let mut rig = Rig::new();
    let key = flying(&mut rig, quiet(), true, 8);
    let Node { tcp, stack, .. } = &mut rig.node;
    tcp.shutdown(stack, key).unwrap();
    rig.node.pass();
    assert_eq!(rig.sent_short(), [(9001, 0, F | A)]);
    rig.send_sack(1001, &[(2001, 9001)]);
    assert_eq!(starts(&mut rig), [1001]);
    rig.advance(50);
    assert_eq!(starts(&mut rig), [1001]);
    rig.send(A, 1, 9002, &[]);
    rig.advance(1_000);
    assert!(starts(&mut rig).is_empty());
}

#[test]
fn a_late_acknowledgement_of_the_last_segment_of_a_repair_is_waited_for() {
    let mut rig = Rig::new();
    flying(&mut rig, quiet(), true, 8);
    rig.send_sack(1001, &[(2001, 8001)]);
    assert_eq!(starts(&mut rig), [1001]);
    // One segment is out, and nothing is missing before it: the peer may take its time (RFC 8985 §7.2).
    rig.send(A, 1, 8001, &[]);
    rig.advance(150);
    assert!(starts(&mut rig).is_empty());
}

#[test]
fn newreno_repairs_one_hole_a_round_trip() {
    let mut rig = Rig::new();
    flying(&mut rig, Options { sack: false, ..quiet() }, false, 8);
    rig.send(A, 1, 1001, &[]);
    rig.send(A, 1, 1001, &[]);
    assert!(starts(&mut rig).is_empty());
    rig.send(A, 1, 1001, &[]);
    assert_eq!(starts(&mut rig), [1001]);
    rig.send(A, 1, 1001, &[]);
    assert!(starts(&mut rig).is_empty());
    // Partial: the next hole at once (RFC 6582 §3.2).
    rig.send(A, 1, 4001, &[]);
    assert_eq!(starts(&mut rig), [4001]);
    rig.send(A, 1, 9001, &[]);
    assert!(starts(&mut rig).is_empty());
}

#[test]
fn a_duplicate_with_data_or_another_window_is_no_duplicate() {
    let mut rig = Rig::new();
    flying(&mut rig, Options { sack: false, ..quiet() }, false, 8);
    for n in 0..4 {
        rig.send(PA, 1 + n, 1001, b"x");
    }
    for n in 1..5 {
        rig.peer.window = 60_000 - n;
        rig.send(A, 5, 1001, &[]);
    }
    let again = starts(&mut rig);
    assert!(!again.contains(&1001), "{again:?}");
}

#[test]
fn limited_transmit_sends_new_data_on_the_first_duplicates() {
    let mut rig = Rig::new();
    let key = flying(&mut rig, Options { sack: false, ..quiet() }, false, 8);
    // Ten segments may be out; four more than that are queued.
    rig.write(key, &pattern(9000, 6000));
    assert_eq!(starts(&mut rig), [9001, 10_001]);
    rig.send(A, 1, 1001, &[]);
    assert_eq!(starts(&mut rig), [11_001]);
    rig.send(A, 1, 1001, &[]);
    assert_eq!(starts(&mut rig), [12_001]);
    rig.send(A, 1, 1001, &[]);
    assert_eq!(starts(&mut rig), [1001]);
}

#[test]
fn a_lost_tail_is_probed_for_before_the_timeout() {
    let mut rig = Rig::new();
    let key = flying(&mut rig, quiet(), true, 4);
    // Two smoothed round trips from the sending; 20 ms have passed.
    rig.advance(15);
    assert!(rig.sent().is_empty());
    rig.advance(10);
    assert_eq!(starts(&mut rig), [4001], "the last segment again");
    rig.advance(20);
    // The probe arrived: everything before it is missing.
    rig.send_sack(1001, &[(4001, 5001)]);
    rig.advance(20);
    let again = starts(&mut rig);
    assert_eq!(again, [1001, 2001], "two may always be out");
    rig.send_sack(2001, &[(4001, 5001)]);
    assert_eq!(starts(&mut rig), [3001]);
    let info = rig.node.tcp.info(key).unwrap();
    assert!(info.congestion_window >= 2000, "no timeout: {}", info.congestion_window);
    assert_eq!(rig.node.count(Counter::TcpTimeout), 0);
}

#[test]
fn a_probe_carries_new_data_where_there_is_some() {
    let mut rig = Rig::new();
    rig.peer.window = 3_000;
    let options = Options { timestamps: false, nagle: false, ..quiet() };
    let (key, _) = rig.connect(options);
    rig.advance(20);
    rig.send_with(SA, 0, 1, &[], full(1000, Some(0), true));
    rig.write(key, &pattern(0, 1000));
    rig.sent();
    rig.advance(20);
    rig.peer.window = 20_000;
    rig.send(A, 1, 1001, &[]);
    rig.write(key, &pattern(1000, 10_000));
    assert_eq!(rig.sent().len(), 10);
    rig.write(key, &pattern(11_000, 3000));
    assert!(rig.sent().is_empty(), "the congestion window is full");
    rig.advance(45);
    assert_eq!(starts(&mut rig), [11_001]);
    rig.advance(20);
    rig.send(A, 1, 12_001, &[]);
    assert_eq!(rig.node.tcp.info(key).unwrap().retransmits, 0);
}

#[test]
fn a_probe_that_repairs_the_loss_lowers_the_window() {
    let mut rig = Rig::new();
    let key = flying(&mut rig, quiet(), true, 4);
    let before = rig.node.tcp.info(key).unwrap().congestion_window;
    rig.advance(25);
    assert_eq!(starts(&mut rig), [4001]);
    rig.write(key, &pattern(5000, 1000));
    rig.sent();
    rig.advance(20);
    // RFC 8985 §7.4.2: acknowledged beyond the probe, and no D-SACK.
    rig.send(A, 1, 6001, &[]);
    assert!(rig.node.tcp.info(key).unwrap().congestion_window < before);
}

#[test]
fn a_probe_that_came_twice_lowers_nothing() {
    let mut rig = Rig::new();
    let key = flying(&mut rig, quiet(), true, 4);
    let before = rig.node.tcp.info(key).unwrap().congestion_window;
    rig.advance(25);
    assert_eq!(starts(&mut rig), [4001]);
    rig.send(A, 1, 5001, &[]);
    rig.send_sack(5001, &[(4001, 5001)]);
    rig.write(key, &pattern(5000, 1000));
    rig.send(A, 1, 6001, &[]);
    assert!(rig.node.tcp.info(key).unwrap().congestion_window >= before);
}

#[test]
fn reordering_is_waited_for_once_it_was_seen() {
    let mut rig = Rig::new();
    flying(&mut rig, quiet(), true, 8);
    rig.send_sack(1001, &[(2001, 3001)]);
    // It was only late: RACK learns that this path reorders.
    rig.send_sack(3001, &[]);
    rig.send_sack(3001, &[(4001, 7001)]);
    assert!(starts(&mut rig).is_empty(), "three segments are no proof any more");
    rig.advance(6);
    assert_eq!(starts(&mut rig), [3001], "a quarter of the smallest round trip later");
}

#[test]
fn the_timeout_starts_over_with_one_segment_and_doubles() {
    let mut rig = Rig::new();
    let key = flying(&mut rig, Options { sack: false, ..quiet() }, false, 6);
    rig.advance(240);
    assert_eq!(starts(&mut rig), [1001]);
    assert_eq!(rig.node.tcp.info(key).unwrap().congestion_window, 1000);
    rig.advance(300);
    assert!(starts(&mut rig).is_empty());
    rig.advance(200);
    assert_eq!(starts(&mut rig), [1001]);
    rig.send(A, 1, 2001, &[]);
    assert_eq!(starts(&mut rig), [2001, 3001], "slow start");
    rig.send(A, 1, 7001, &[]);
    assert!(rig.node.tcp.info(key).unwrap().in_flight == 0);
}

#[test]
fn what_is_sacked_is_not_sent_after_a_timeout() {
    let mut rig = Rig::new();
    flying(&mut rig, quiet(), true, 5);
    // A retransmission is lost too: only the timer is left.
    rig.send_sack(1001, &[(2001, 3001), (4001, 6001)]);
    rig.advance(1_000);
    let again = starts(&mut rig);
    assert!(again.len() > 2 && again.iter().all(|at| [1001, 3001].contains(at)), "{again:?}");
    rig.send_sack(3001, &[(4001, 6001)]);
    assert_eq!(starts(&mut rig), [3001]);
}

#[test]
fn a_receiver_that_throws_sacked_bytes_away_gets_them_again() {
    let mut rig = Rig::new();
    flying(&mut rig, quiet(), true, 4);
    rig.send_sack(1001, &[(2001, 5001)]);
    rig.advance(1);
    starts(&mut rig);
    // RFC 2018 §8: the hole is filled, but what was SACKed is not acknowledged.
    rig.send_sack(2001, &[]);
    rig.advance(1_000);
    let again = starts(&mut rig);
    assert_eq!(again.first(), Some(&2001), "{again:?}");
}

#[test]
fn a_timeout_that_was_none_is_taken_back() {
    let mut rig = Rig::new();
    rig.peer.timestamps = Some(crate::wire::tcp::Timestamps { value: 1, echo: 0 });
    let (key, syn) = rig.connect(Options { nagle: false, ..quiet() });
    let stamp = |rig: &mut Rig, echo| {
        rig.peer.timestamps = Some(crate::wire::tcp::Timestamps { value: 1, echo });
    };
    stamp(&mut rig, syn.options.timestamps.unwrap().value);
    let stamps = rig.peer.timestamps;
    rig.send_with(SA, 0, 1, &[], crate::wire::tcp::Options { timestamps: stamps, ..full(1012, Some(0), true) });
    rig.sent();
    rig.write(key, &pattern(0, 5000));
    let first = rig.sent();
    let before = rig.node.tcp.info(key).unwrap().congestion_window;
    rig.advance(2_300);
    assert!(rig.sent().len() > 1);
    assert_eq!(rig.node.tcp.info(key).unwrap().congestion_window, 1000);
    // The acknowledgement echoes the first sending (RFC 3522).
    stamp(&mut rig, first[0].options.timestamps.unwrap().value);
    rig.send(A, 1, 1001, &[]);
    let after = rig.node.tcp.info(key).unwrap().congestion_window;
    assert!(after >= before, "{after} {before}");
    assert!(starts(&mut rig).is_empty(), "what is only late is not sent again");
}

#[test]
fn an_idle_connection_starts_over_with_the_first_window() {
    let mut rig = Rig::new();
    let key = rig.open_sack();
    let mut at = 1;
    for _ in 0..5 {
        rig.write(key, &pattern(0, 30_000));
        while !rig.sent().is_empty() {
            let info = rig.node.tcp.info(key).unwrap();
            at += info.in_flight as u32;
            rig.send(A, 1, at, &[]);
        }
    }
    assert!(rig.node.tcp.info(key).unwrap().congestion_window > 20_000);
    rig.advance(5_000);
    rig.write(key, &pattern(0, 60_000));
    assert_eq!(rig.sent().len(), 10);
}

/// RFC 9293 §3.8.6.2.1: into a window too small for a segment something goes after a while, whatever comes meanwhile.
#[test]
fn data_that_comes_does_not_end_the_wait_for_a_window() {
    let mut rig = Rig::new();
    rig.peer.window = 4_000;
    let key = rig.open(Options { timestamps: false, sack: false, ..quiet() }, full(1000, None, false));
    rig.write(key, &pattern(0, 6000));
    assert_eq!(rig.sent().len(), 4);
    rig.peer.window = 300;
    rig.send(A, 1, 4001, &[]);
    assert_eq!(rig.sent_short(), [], "less than a segment, and than half of the largest window");
    // Out of order, so that it goes the long way.
    rig.send(A, 501, 4001, &[7; 100]);
    assert_eq!(rig.sent_short(), [(4001, 0, A)]);
    rig.advance(1_000);
    assert_eq!(rig.sent_short().first(), Some(&(4001, 300, A)));
}

#[test]
fn a_closed_window_is_probed_with_a_byte_and_opens_again() {
    let mut rig = Rig::new();
    rig.peer.window = 1_000;
    let options = Options { user_timeout: Duration::from_secs(20), ..quiet() };
    let key = rig.open(Options { timestamps: false, sack: false, ..options }, full(1000, None, false));
    rig.write(key, &pattern(0, 3000));
    assert_eq!(rig.sent_short(), [(1, 1000, A)]);
    rig.peer.window = 0;
    rig.send(A, 1, 1001, &[]);
    let mut probes = 0;
    for _ in 0..100 {
        rig.advance(1_000);
        for probe in rig.sent() {
            assert_eq!((probe.flags, probe.seq.since(rig.peer.irs), probe.payload), (A, 1001, pattern(1000, 1)));
            probes += 1;
            rig.send(A, 1, 1001, &[]);
        }
    }
    assert!((5..=12).contains(&probes), "later and later: {probes}");
    assert_eq!(rig.node.tcp.error(key).unwrap(), None, "a closed window is no silence");
    rig.peer.window = 10_000;
    rig.send(A, 1, 1001, &[]);
    let sent = rig.sent();
    let all: Vec<u8> = sent.iter().flat_map(|s| s.payload.clone()).collect();
    assert_eq!(sent[0].seq.since(rig.peer.irs), 1001);
    assert!(all == pattern(1000, 1001), "Nagle holds the rest");
}

#[test]
fn a_probe_byte_that_is_taken_counts() {
    let mut rig = Rig::new();
    rig.peer.window = 1_000;
    let key = rig.open_plain();
    rig.write(key, &pattern(0, 3000));
    rig.sent();
    rig.peer.window = 0;
    rig.send(A, 1, 1001, &[]);
    rig.advance(1_000);
    assert!(!rig.sent().is_empty());
    rig.peer.window = 5_000;
    rig.send(A, 1, 1002, &[]);
    let sent = rig.sent();
    let all: Vec<u8> = sent.iter().flat_map(|s| s.payload.clone()).collect();
    assert_eq!(sent[0].seq.since(rig.peer.irs), 1002);
    assert!(all == pattern(1001, 1000), "Nagle holds the rest");
}

#[test]
fn a_window_that_shrinks_is_borne() {
    let mut rig = Rig::new();
    let key = flying(&mut rig, quiet(), true, 8);
    rig.peer.window = 2_000;
    rig.send(A, 1, 3001, &[]);
    rig.write(key, &pattern(9000, 4000));
    assert!(rig.sent().is_empty());
    rig.advance(2_000);
    let again = starts(&mut rig);
    assert!(again.iter().all(|at| *at < 5001), "nothing beyond the window is sent again: {again:?}");
    rig.peer.window = 30_000;
    rig.send(A, 1, 9001, &[]);
    assert_eq!(starts(&mut rig).first(), Some(&9001));
}

#[test]
fn small_windows_get_no_small_segments() {
    let mut rig = Rig::new();
    rig.peer.window = 1_000;
    let key = rig.open_plain();
    rig.write(key, &pattern(0, 5000));
    assert_eq!(rig.sent_short(), [(1, 1000, A)]);
    // RFC 9293 §3.8.6.2.1: a little room is not taken, until a while has passed.
    rig.peer.window = 100;
    rig.send(A, 1, 1001, &[]);
    assert!(rig.sent().is_empty());
    rig.advance(250);
    assert_eq!(rig.sent_short(), [(1001, 100, A)]);
    rig.peer.window = 500;
    rig.send(A, 1, 1101, &[]);
    assert_eq!(rig.sent_short(), [(1101, 500, A)], "half of the largest window");
}
