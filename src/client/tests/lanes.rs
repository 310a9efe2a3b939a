//! Flows seen before: datagrams on a lane and along a way mean what they would mean without.

use crate::client::engine::Received;
use crate::sim::blocks::fragments;
use crate::sim::host::splitmix;
use crate::sim::packets::{self, Station};
use crate::sim::rig::Rig;
use crate::stack::stats::Counter;
use crate::storage::checksum::Sum;
use crate::storage::host::{Endpoint, RxFlags, Span};
use crate::storage::slots::Key;
use crate::udp::Owner;
use crate::wire::ethernet::{Address, Frame};
use crate::wire::ipv4::Protocol;
use std::vec::Vec;

const THEM: Station = Station::new(2);

fn rig() -> (Rig, Key) {
    let mut rig = Rig::new(1);
    let engine = &mut rig.engine;
    let key = engine.udp.open(&mut engine.stack, Owner::Handler).unwrap();
    engine.udp.bind(key, None, Endpoint { addr: core::net::Ipv4Addr::UNSPECIFIED, port: 700 }).unwrap();
    (rig, key)
}

type Told = Option<(Key, Endpoint, Vec<u8>)>;

/// What a frame comes to: who is told of what, and the counters that moved.
fn meaning(rig: &mut Rig, frame: &[u8], flags: RxFlags) -> (Told, Vec<u32>) {
    let told = match rig.engine.receive(rig.nic, frame, flags).received {
        Received::Datagram { socket, meta, payload } => Some((socket, meta.src, payload.to_vec())),
        Received::Staged { socket, meta, index } => {
            let whole = rig.engine.staged(index).map(<[u8]>::to_vec).unwrap_or_default();
            rig.engine.release_staged(index);
            Some((socket, meta.src, whole))
        }
        Received::Nothing => None,
    };
    let counters = (0..).map_while(|n| rig.engine.stack.stats.at(n)).collect();
    (told, counters)
}

/// Makes the IPv4 header checksum right again.
fn sum_ip(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let field = Sum::of(&frame[14..34]).to_field();
    frame[24..26].copy_from_slice(&field);
}

/// Every byte of the headers changed in turn, alone and with the sums put right, in frames of every length: a lane says
/// the same as the long way.
#[test]
fn whatever_is_odd_is_seen_on_a_lane_too() {
    let (mut with, _) = rig();
    let (mut without, _) = rig();
    let mut seed = 3;
    let mut taken = 0;
    let good = packets::udp(THEM, 69, with.us, 700, &[7u8; 100]);
    for round in 0..20_000u32 {
        let mut frame = good.clone();
        for _ in 0..splitmix(&mut seed) % 3 {
            let at = (splitmix(&mut seed) % 50) as usize;
            frame[at] ^= 1 << (splitmix(&mut seed) % 8);
        }
        if splitmix(&mut seed).is_multiple_of(2) {
            sum_ip(&mut frame);
        }
        match splitmix(&mut seed) % 6 {
            0 => frame.truncate((splitmix(&mut seed) % 143) as usize),
            1 => frame.resize(142 + (splitmix(&mut seed) % 1500) as usize, 0),
            2 => frame[40..42].fill(0),
            _ => {}
        }
        let flags = RxFlags::from_bits_truncate(splitmix(&mut seed) as u32 & 7);
        // The one has a lane of the flow, the other never.
        meaning(&mut with, &good, RxFlags::empty());
        meaning(&mut without, &good, RxFlags::empty());
        let _ = without.engine.stack.interface_mut(without.nic);
        let a = meaning(&mut with, &frame, flags);
        let b = meaning(&mut without, &frame, flags);
        taken += u32::from(a.0.is_some());
        assert_eq!(a, b, "round {round}: {frame:?}");
        assert_eq!(with.sent().len(), without.sent().len());
        with.advance(1000);
        without.advance(1000);
    }
    assert!(taken > 2000, "{taken}");
}

/// The same for fragments: in any order, of two datagrams at once, with bytes of the headers changed.
#[test]
fn whatever_is_odd_is_seen_on_a_trail_too() {
    let (mut with, _) = rig();
    let (mut without, _) = rig();
    let mut seed = 5;
    let (mut whole, mut spoilt) = (0, 0);
    for round in 0..3000u16 {
        let mut frames = Vec::new();
        for id in [2 * round, 2 * round + 1] {
            let payload: Vec<u8> = (0..900).map(|_| splitmix(&mut seed) as u8).collect();
            let datagram = packets::udp_datagram((THEM.ip, 69), (with.us.ip, 700), &payload);
            frames.extend(fragments(THEM, with.us, Protocol::UDP, &datagram, id, 160));
        }
        if !round.is_multiple_of(4) {
            let swaps = splitmix(&mut seed) % 12;
            for _ in 0..swaps {
                let (a, b) = (splitmix(&mut seed) as usize % 12, splitmix(&mut seed) as usize % 12);
                frames.swap(a, b);
            }
        }
        for frame in &mut frames {
            if splitmix(&mut seed).is_multiple_of(16) {
                let at = (splitmix(&mut seed) % 36) as usize;
                frame[at] ^= 1 << (splitmix(&mut seed) % 8);
                spoilt += 1;
                match splitmix(&mut seed) % 4 {
                    0 => {}
                    1 => frame.truncate((splitmix(&mut seed) % 194) as usize),
                    _ => sum_ip(frame),
                }
            }
            let flags = RxFlags::from_bits_truncate((splitmix(&mut seed) as u32 & 15).saturating_sub(8));
            let _ = without.engine.stack.interface_mut(without.nic);
            let a = meaning(&mut with, frame, flags);
            let b = meaning(&mut without, frame, flags);
            whole += u32::from(a.0.is_some());
            assert_eq!(a, b, "round {round}: {frame:?}");
        }
        with.advance(20_000);
        without.advance(20_000);
    }
    assert!(whole > 1000 && spoilt > 1000, "{whole} whole, {spoilt} spoilt");
}

#[test]
fn a_lane_ends_with_its_socket_and_its_address() {
    let (mut rig, key) = rig();
    let frame = packets::udp(THEM, 69, rig.us, 700, b"hello");
    let told = |rig: &mut Rig| matches!(rig.receive(&frame).received, Received::Datagram { .. });
    assert!(told(&mut rig) && told(&mut rig));
    // Another peer than the one it is connected to from now on.
    rig.engine.udp.get_mut(key).unwrap().peer = Some(Endpoint { addr: THEM.ip, port: 70 });
    assert!(!told(&mut rig));
    rig.engine.udp.get_mut(key).unwrap().peer = None;
    assert!(told(&mut rig) && told(&mut rig));
    let us = rig.us.ip;
    rig.engine.stack.interface_mut(rig.nic).unwrap().remove_address(us);
    rig.engine
        .stack
        .interface_mut(rig.nic)
        .unwrap()
        .add_address(crate::stack::interface::Cidr { addr: Station::new(10).ip, prefix: 24 });
    assert!(!told(&mut rig));
    assert_eq!(rig.count(Counter::DropIpNotOurs), 1);
    let other = packets::udp(THEM, 69, Station { ip: Station::new(10).ip, ..rig.us }, 700, b"hello");
    assert!(matches!(rig.receive(&other).received, Received::Datagram { .. }));
    rig.engine.udp.close(key);
    assert!(matches!(rig.receive(&other).received, Received::Nothing));
    assert_eq!(rig.count(Counter::DropUdpNoSocket), 1);
}

#[test]
fn a_neighbour_that_moves_is_followed_at_once() {
    let (mut rig, key) = rig();
    rig.know(THEM);
    let send = |rig: &mut Rig| {
        let dst = Endpoint { addr: THEM.ip, port: 69 };
        let engine = &mut rig.engine;
        engine.udp.send(&mut engine.stack, key, Some(dst), &[Span::Bytes(b"abc")], false).unwrap();
        let sent = rig.sent();
        let [frame] = &sent[..] else { panic!("one frame leaves, not {}", sent.len()) };
        let seen = packets::parse_udp(frame).expect("a datagram whose sums hold");
        assert_eq!((seen.dst_port, &seen.payload[..]), (69, &b"abc"[..]));
        (Frame::parse(frame).unwrap().destination(), frame.clone())
    };
    let first = send(&mut rig);
    // The second finds the way, the third goes along it; they differ by their identification.
    for n in 1..4u8 {
        let (mac, mut frame) = send(&mut rig);
        assert_eq!(mac, THEM.mac);
        frame[19] -= n;
        sum_ip(&mut frame);
        assert_eq!(frame, first.1);
    }
    let moved = Address([2, 0, 0, 0, 0, 77]);
    rig.input(&packets::arp_reply(Station { mac: moved, ..THEM }, Station { mac: Address::BROADCAST, ..THEM }));
    assert_eq!(send(&mut rig).0, moved);
    // Other sockets have their own.
    let engine = &mut rig.engine;
    engine.udp.get_mut(key).unwrap().ttl = 3;
    assert_eq!(send(&mut rig).1[22], 3);
    assert_eq!(send(&mut rig).1[22], 3);
}
