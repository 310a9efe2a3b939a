//! Opening, data in order, closing.

use super::rig::*;
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::time::Duration;
use crate::tcp::{Events, Options, State};
use crate::wire::tcp::Options as WireOptions;
use std::vec::Vec;

#[test]
fn the_handshake_offers_everything_and_agrees_on_what_both_want() {
    let mut rig = Rig::new();
    let (key, syn) = rig.connect(Options::default());
    assert_eq!(syn.options.max_segment_size, Some(1460));
    assert_eq!(syn.options.window_scale, Some(6)); // 2 MiB
    assert!(syn.options.sack_permitted && syn.options.timestamps.is_some());
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::SynSent);
    rig.send_with(SA, 0, 1, &[], full(1000, Some(3), false));
    let sent = rig.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].flags, sent[0].options), (A, WireOptions::default()));
    let info = rig.node.tcp.info(key).unwrap();
    assert_eq!((info.state, info.segment_size), (State::Established, 1000));
    assert!(rig.events(key).contains(Events::CONNECTED | Events::WRITABLE));
}

#[test]
fn a_lost_syn_is_sent_again_and_given_up_after_the_timeout() {
    let mut rig = Rig::new();
    let options = Options { connect_timeout: Duration::from_secs(20), ..Options::default() };
    let (key, syn) = rig.connect(options);
    rig.advance(999);
    assert!(rig.sent().is_empty());
    rig.advance(1);
    let again = rig.sent();
    assert_eq!((again.len(), again[0].seq, again[0].flags), (1, syn.seq, S));
    rig.advance(2_000);
    rig.advance(4_000);
    rig.advance(8_000);
    assert_eq!(rig.sent().len(), 3);
    rig.advance(5_000);
    assert_eq!(rig.node.tcp.error(key).unwrap(), Some(Error::Timeout));
    assert!(rig.events(key).contains(Events::CLOSED));
    assert!(rig.sent().is_empty(), "no reset for what was never there");
    assert_eq!(rig.node.tcp.send(key, b"x"), Err(Error::Timeout));
    rig.node.tcp.close(&mut rig.node.stack, key).unwrap();
    assert_eq!(rig.node.tcp.info(key), Err(Error::BadHandle));
}

#[test]
fn a_refused_connection_says_so() {
    let mut rig = Rig::new();
    let (key, _) = rig.connect(Options::default());
    rig.send(RA, 0, 2, &[]);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::SynSent, "a reset for another SYN is ignored");
    rig.send(R, 0, 0, &[]);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::SynSent, "so is one without acknowledgement");
    rig.send(RA, 0, 1, &[]);
    assert_eq!(rig.node.tcp.error(key).unwrap(), Some(Error::Refused));
}

#[test]
fn a_half_open_peer_is_reset() {
    let mut rig = Rig::new();
    let (key, syn) = rig.connect(Options::default());
    // RFC 9293 §3.5.1, figure 9: the peer acknowledges something old.
    rig.send(A, 300, 100, &[]);
    let sent = rig.sent();
    assert_eq!((sent[0].flags, sent[0].seq), (R, syn.seq + 100));
    // The old connection is gone: the SYN goes again at once.
    assert_eq!((sent.len(), sent[1].flags, sent[1].seq), (2, S, syn.seq));
    // Whoever goes on so gets a reset each time, but no more SYNs than the timer sends.
    rig.send(A, 300, 100, &[]);
    assert_eq!(rig.sent().iter().map(|s| s.flags).collect::<Vec<_>>(), [R]);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::SynSent);
    rig.send_with(SA, 0, 1, &[], full(1000, None, false));
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::Established);
}

#[test]
fn both_ends_may_open_at_once() {
    let mut rig = Rig::new();
    let (key, syn) = rig.connect(Options::default());
    rig.send_with(S, 0, 0, &[], full(1000, Some(2), true));
    let sent = rig.sent();
    assert_eq!((sent.len(), sent[0].flags, sent[0].seq), (1, SA, syn.seq));
    assert_eq!(sent[0].ack, rig.peer.iss + 1);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::SynReceived);
    rig.send(A, 1, 1, &[]);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::Established);
    rig.write(key, b"hello");
    assert_eq!(rig.sent_short(), [(1, 5, PA)]);
}

#[test]
fn data_flows_both_ways_and_the_connection_closes_from_here() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.send(PA, 1, 1, b"hello ");
    assert_eq!(rig.sent_ack().0, 7);
    rig.send(PA, 7, 1, b"world");
    assert_eq!(rig.sent_ack().0, 12);
    assert!(rig.events(key).contains(Events::READABLE));
    assert_eq!(rig.read(key, 100).unwrap(), b"hello world");
    assert_eq!(rig.read(key, 100), Err(Error::Again));
    assert_eq!(rig.write(key, &pattern(0, 2500)), 2500);
    let sent = rig.sent();
    assert_eq!(sent.iter().map(|s| s.payload.len()).collect::<Vec<_>>(), [1000, 1000], "Nagle holds the rest");
    rig.send(A, 12, 2001, &[]);
    let rest = rig.sent();
    assert_eq!((rest.len(), rest[0].payload.len(), rest[0].flags), (1, 500, PA));
    let all: Vec<u8> = sent.iter().chain(&rest).flat_map(|s| s.payload.clone()).collect();
    assert_eq!(all, pattern(0, 2500));
    rig.send(A, 12, 2501, &[]);
    assert!(rig.events(key).contains(Events::SENT));
    rig.node.tcp.close(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    assert_eq!(rig.sent_short(), [(2501, 0, FA)]);
    rig.send(A, 12, 2502, &[]);
    rig.send(FA, 12, 2502, &[]);
    assert_eq!(rig.sent_ack().0, 13);
    // TIME-WAIT is left after a minute, and the slot is free.
    rig.advance(60_000);
    assert_eq!(rig.node.tcp.table.iter().filter(|s| s.conn.is_free()).count(), 4);
}

#[test]
fn the_peer_may_close_first() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.send(PA | F, 1, 1, b"bye");
    assert_eq!(rig.sent_ack().0, 5);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::CloseWait);
    assert!(rig.events(key).contains(Events::FINISHED | Events::READABLE));
    assert_eq!(rig.read(key, 10).unwrap(), b"bye");
    assert_eq!(rig.read(key, 10).unwrap(), b"");
    assert_eq!(rig.read(key, 10).unwrap(), b"");
    rig.write(key, b"and thanks");
    assert_eq!(rig.sent_short(), [(1, 10, PA)]);
    rig.node.tcp.shutdown(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    assert_eq!(rig.sent_short(), [(11, 0, FA)]);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::LastAck);
    assert_eq!(rig.node.tcp.send(key, b"x"), Err(Error::NotConnected));
    rig.send(A, 5, 12, &[]);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::Closed);
    assert_eq!(rig.node.tcp.error(key).unwrap(), None);
    assert!(rig.events(key).contains(Events::CLOSED));
}

#[test]
fn both_may_close_at_once() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.node.tcp.shutdown(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    assert_eq!(rig.sent_short(), [(1, 0, FA)]);
    rig.send(FA, 1, 1, &[]);
    assert_eq!(rig.sent_ack().0, 2);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::Closing);
    rig.send(A, 2, 2, &[]);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::TimeWait);
}

#[test]
fn lost_data_and_a_lost_fin_are_sent_again() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.write(key, b"important");
    rig.node.tcp.shutdown(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    assert_eq!(rig.sent_short(), [(1, 9, PA), (10, 0, FA)]);
    rig.advance(300);
    assert_eq!(rig.sent_short(), [(1, 9, PA | F)], "together this time");
    rig.advance(700);
    assert_eq!(rig.sent_short(), [(1, 9, PA | F)]);
    rig.send(A, 1, 10, &[]);
    rig.advance(300);
    assert_eq!(rig.sent_short(), [(10, 0, FA)]);
    rig.send(A, 1, 11, &[]);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::FinWait2);
    rig.advance(10_000);
    assert!(rig.sent().is_empty());
}

#[test]
fn a_silent_peer_is_given_up() {
    let mut rig = Rig::new();
    let options = Options { user_timeout: Duration::from_secs(30), ..quiet() };
    let key = rig.open(options, full(1000, None, false));
    rig.write(key, b"anyone?");
    rig.advance(29_999);
    let tries = rig.sent().len();
    assert!((6..=9).contains(&tries), "{tries}");
    assert_eq!(rig.node.tcp.error(key).unwrap(), None);
    rig.advance(1);
    assert_eq!(rig.node.tcp.error(key).unwrap(), Some(Error::Timeout));
    assert_eq!(rig.sent_short(), [(8, 0, RA)]);
    assert_eq!(rig.node.count(Counter::TcpTimeout), 1);
}

#[test]
fn unread_data_at_close_and_late_data_get_a_reset() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.send(PA, 1, 1, b"unread");
    rig.sent();
    rig.node.tcp.close(&mut rig.node.stack, key).unwrap();
    assert_eq!(rig.sent_short(), [(1, 0, RA)]);
    let key = rig.open_plain();
    rig.node.tcp.close(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    assert_eq!(rig.sent_short(), [(1, 0, FA)]);
    rig.send(PA, 1, 1, b"late");
    // It stands behind our FIN.
    assert_eq!(rig.sent_short(), [(2, 0, R)]);
}

#[test]
fn abort_resets_and_a_reset_of_the_peer_ends() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.node.tcp.abort(&mut rig.node.stack, key).unwrap();
    assert_eq!(rig.sent_short(), [(1, 0, RA)]);
    assert_eq!(rig.node.tcp.abort(&mut rig.node.stack, key), Err(Error::BadHandle));
    let key = rig.open_plain();
    rig.send(R, 1, 0, &[]);
    assert_eq!(rig.node.tcp.error(key).unwrap(), Some(Error::ConnectionReset));
    assert_eq!(rig.read(key, 1), Err(Error::ConnectionReset));
    assert!(rig.sent().is_empty());
}

#[test]
fn a_reset_beside_the_next_byte_is_challenged() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.send(R, 2, 0, &[]);
    assert_eq!(rig.sent_ack().0, 1);
    rig.send(S, 1, 0, &[]);
    assert_eq!(rig.sent_ack().0, 1);
    rig.send(R, 70_000, 0, &[]);
    assert!(rig.sent().is_empty(), "outside the window");
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::Established);
    for _ in 0..100 {
        rig.send(R, 3, 0, &[]);
    }
    assert!(rig.sent().len() <= 10, "within a limit");
}

#[test]
fn a_busy_nic_moves_neither_numbers_nor_timers() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    let busy = Some(crate::storage::host::SendError::Busy);
    rig.node.wire.borrow_mut().script.extend([busy; 3]);
    rig.write(key, b"patience");
    assert!(rig.sent().is_empty());
    assert_eq!(rig.node.tcp.info(key).unwrap().in_flight, 0);
    rig.node.pass();
    rig.node.pass();
    assert!(rig.sent().is_empty());
    rig.node.pass();
    assert_eq!(rig.sent_short(), [(1, 8, PA)]);
    assert_eq!(rig.node.tcp.info(key).unwrap().retransmits, 0);
}

#[test]
fn an_unknown_neighbour_is_asked_for_and_the_syn_waits() {
    let mut rig = Rig::with(Limits { knows: false, ..Limits::default() });
    let key = rig.try_connect(Options::default()).unwrap();
    rig.node.pass();
    assert!(rig.sent().is_empty(), "only an ARP request");
    let reply = crate::sim::packets::arp_reply(rig.peer.station, rig.node.us);
    rig.node.receive(&reply);
    rig.node.pass();
    let sent = rig.sent();
    assert_eq!((sent.len(), sent[0].flags), (1, S));
    assert_eq!(rig.node.tcp.info(key).unwrap().retransmits, 0);
}

#[test]
fn a_neighbour_that_does_not_answer_fails_the_attempt() {
    let mut rig = Rig::with(Limits { knows: false, ..Limits::default() });
    let key = rig.try_connect(Options::default()).unwrap();
    rig.advance(10_000);
    assert_eq!(rig.node.tcp.error(key).unwrap(), Some(Error::HostUnreachable));
}

#[test]
fn delayed_acknowledgements_come_for_each_second_segment_or_after_a_while() {
    let mut rig = Rig::new();
    let options = Options { timestamps: false, ..Options::default() };
    let key = rig.open(options, full(1000, None, false));
    let mut seq = 1;
    for _ in 0..4 {
        rig.send(A, seq, 1, &pattern(0, 1000));
        seq += 1000;
        assert_eq!(rig.sent().len(), 1, "at first each segment");
    }
    let mut acks = 0;
    for _ in 0..10 {
        rig.send(A, seq, 1, &pattern(0, 1000));
        seq += 1000;
        acks += rig.sent().len();
    }
    assert_eq!(acks, 5);
    rig.send(A, seq, 1, &pattern(0, 1000));
    rig.advance(39);
    assert!(rig.sent().is_empty());
    rig.advance(1);
    assert_eq!(rig.sent_ack().0, seq + 1000);
    assert_eq!(rig.read(key, 100_000).unwrap().len(), 15_000);
}

#[test]
fn segments_of_one_pass_are_acknowledged_together() {
    let mut rig = Rig::new();
    let options = Options { timestamps: false, ..Options::default() };
    rig.open(options, full(1000, None, false));
    let mut seq = 1;
    let mut burst = |rig: &mut Rig, count| {
        for _ in 0..count {
            let frame = rig.frame(A, seq, 1, &pattern(0, 1000), WireOptions::default());
            rig.node.receive(&frame);
            seq += 1000;
        }
        rig.node.pass();
        let acks: Vec<u32> = rig.sent().iter().map(|s| s.ack.since(rig.peer.iss)).collect();
        (acks.len(), acks.last() == Some(&seq))
    };
    assert_eq!(burst(&mut rig, 20), (12, true), "a young connection counts in ones and pairs");
    assert_eq!(burst(&mut rig, 8), (1, true));
    assert_eq!(burst(&mut rig, 16), (1, true));
    assert_eq!(burst(&mut rig, 18), (2, true), "but one for sixteen at most");
}
