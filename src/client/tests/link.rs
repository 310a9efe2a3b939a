//! Field cases of Ethernet, ARP, ICMP and UDP as packet scripts against the whole engine.

use crate::client::engine::Received;
use crate::sim::packets::{self, Station};
use crate::sim::rig::{Limits, Rig};
use crate::stack::egress::TxError;
use crate::stack::interface::Cidr;
use crate::stack::stats::Counter;
use crate::storage::host::{Endpoint, NicCaps, RxFlags, Span};
use crate::storage::slots::Key;
use crate::storage::time::{Duration, Instant};
use crate::udp::Owner;
use crate::wire::arp::{Operation as ArpOperation, Repr as ArpRepr};
use crate::wire::ethernet::{Address, EtherType};
use crate::wire::icmpv4::Message;
use crate::wire::ipv4::Protocol;
use core::net::Ipv4Addr;
use std::vec;
use std::vec::Vec;

const OTHER_MAC: Address = Address([2, 0, 0, 0, 0, 0x99]);

fn socket(rig: &mut Rig) -> (Key, u16) {
    let engine = &mut rig.engine;
    let key = engine.udp.open(&mut engine.stack, Owner::Handler).unwrap();
    (key, engine.udp.get(key).unwrap().local.port)
}

fn send(rig: &mut Rig, key: Key, addr: Ipv4Addr) -> Result<(), TxError> {
    let engine = &mut rig.engine;
    let dst = Endpoint { addr, port: 69 };
    engine.udp.send(&mut engine.stack, key, Some(dst), &[Span::Bytes(b"x")], false)
}

fn arp_from(ip: Ipv4Addr, mac: Address, operation: ArpOperation, to: Station, target: Ipv4Addr) -> Vec<u8> {
    let repr = ArpRepr { operation, sender_mac: mac, sender_ip: ip, target_mac: to.mac, target_ip: target };
    packets::ethernet(to.mac, OTHER_MAC, EtherType::ARP, &repr.emit())
}

#[test]
fn case_a01_the_cache_learns_only_what_was_asked_or_asks_us() {
    let (server, us) = (Station::new(1), Station::new(9));
    let poison: Vec<(&str, Vec<u8>)> = vec![
        ("an IP packet from .1 with another MAC", {
            let datagram = packets::udp_datagram((server.ip, 7), (us.ip, 9), b"x");
            let packet = packets::ipv4_with(server.ip, us.ip, Protocol::UDP, &datagram, |_| ());
            packets::ethernet(us.mac, OTHER_MAC, EtherType::IPV4, &packet)
        }),
        ("an unsolicited reply", arp_from(server.ip, OTHER_MAC, ArpOperation::Reply, us, us.ip)),
        (
            "a reply from another network",
            arp_from(Ipv4Addr::new(8, 8, 8, 8), OTHER_MAC, ArpOperation::Reply, us, us.ip),
        ),
        (
            "a request from another network",
            arp_from(Ipv4Addr::new(8, 8, 8, 8), OTHER_MAC, ArpOperation::Request, us, us.ip),
        ),
        ("a multicast sender", arp_from(server.ip, Address([3, 0, 0, 0, 0, 1]), ArpOperation::Reply, us, us.ip)),
        ("a zero sender", arp_from(server.ip, Address::ZERO, ArpOperation::Reply, us, us.ip)),
        (
            "a gratuitous announcement of the unknown",
            arp_from(server.ip, OTHER_MAC, ArpOperation::Request, us, server.ip),
        ),
    ];
    for (what, frame) in &poison {
        // Nothing known: nothing is learned, the next packet asks.
        let mut rig = Rig::new(1);
        let (key, _) = socket(&mut rig);
        rig.input(frame);
        assert_eq!(send(&mut rig, key, server.ip), Err(TxError::Resolving), "{what}");
        let mut asked: Vec<ArpRepr> = rig.sent().iter().filter_map(|f| packets::parse_arp(f)).collect();
        asked.retain(|a| a.operation == ArpOperation::Request);
        assert_eq!((asked.len(), asked[0].target_ip), (1, server.ip), "{what}");
        // Known: nothing but a gratuitous announcement changes it.
        let mut rig = Rig::new(1);
        let (key, _) = socket(&mut rig);
        rig.know(server);
        rig.input(frame);
        rig.sent();
        send(&mut rig, key, server.ip).unwrap();
        let expected = if what.starts_with("a gratuitous") { OTHER_MAC } else { server.mac };
        assert_eq!(rig.sent_udp()[0].mac, expected, "{what}");
    }
    // The valid ones: an awaited reply, and a request for us.
    let mut rig = Rig::new(1);
    let (key, _) = socket(&mut rig);
    assert_eq!(send(&mut rig, key, server.ip), Err(TxError::Resolving));
    rig.answer_arp(server);
    send(&mut rig, key, server.ip).unwrap();
    assert_eq!(rig.sent_udp()[0].mac, server.mac);
    let mut rig = Rig::new(1);
    let (key, _) = socket(&mut rig);
    rig.input(&packets::arp_request(server, us.ip));
    let answer = packets::parse_arp(&rig.sent()[0]).unwrap();
    assert_eq!((answer.operation, answer.sender_mac, answer.target_ip), (ArpOperation::Reply, us.mac, server.ip));
    send(&mut rig, key, server.ip).unwrap();
    assert_eq!(rig.sent_udp()[0].mac, server.mac);
}

#[test]
fn case_a02_next_hop_by_mask_each_destination_resolved_by_itself() {
    let (gateway, near) = (Station::new(1), Station::new(7));
    let far = Ipv4Addr::new(10, 1, 0, 5);
    let mut rig = Rig::new(1);
    let (key, _) = socket(&mut rig);
    rig.default_route(gateway.ip);
    assert_eq!(send(&mut rig, key, far), Err(TxError::Resolving));
    assert_eq!(packets::parse_arp(&rig.sent()[0]).unwrap().target_ip, gateway.ip, "who-has the gateway");
    rig.input(&packets::arp_reply(gateway, rig.us));
    send(&mut rig, key, far).unwrap();
    let seen = &rig.sent_udp()[0];
    assert_eq!((seen.mac, seen.dst), (gateway.mac, far));
    assert_eq!(send(&mut rig, key, near.ip), Err(TxError::Resolving));
    assert_eq!(packets::parse_arp(&rig.sent()[0]).unwrap().target_ip, near.ip, "a new request");
    // Gateways that are none: fails at once, without a frame.
    for gateway in [None, Some(Ipv4Addr::new(192, 168, 9, 1))] {
        let mut rig = Rig::new(1);
        let (key, _) = socket(&mut rig);
        if let Some(gateway) = gateway {
            rig.default_route(gateway);
        }
        assert_eq!(send(&mut rig, key, far), Err(TxError::NetworkUnreachable));
        assert!(rig.sent().is_empty());
        assert_eq!(rig.count(Counter::NoRoute), 1);
    }
    // 0.0.0.0 as gateway of everything says that all is on the link (RFC 3442): the host itself is asked for.
    let mut rig = Rig::new(1);
    let (key, _) = socket(&mut rig);
    rig.default_route(Ipv4Addr::UNSPECIFIED);
    assert_eq!(send(&mut rig, key, far), Err(TxError::Resolving));
    assert_eq!(packets::parse_arp(&rig.sent()[0]).unwrap().target_ip, far);
    // Masks of 31 and 32 bits.
    for (prefix, other, on_link) in [(31, 8, true), (31, 10, false), (32, 8, false)] {
        let mut rig = Rig::bare(1, Limits::default(), NicCaps::empty(), true);
        rig.engine.stack.interface_mut(rig.nic).unwrap().add_address(Cidr { addr: rig.us.ip, prefix });
        let (key, _) = socket(&mut rig);
        let expected = if on_link { TxError::Resolving } else { TxError::NetworkUnreachable };
        assert_eq!(send(&mut rig, key, Station::new(other).ip), Err(expected), "/{prefix} to .{other}");
    }
    // A gateway that does not answer is an error, after at most one request a second.
    let mut rig = Rig::new(1);
    let (key, _) = socket(&mut rig);
    rig.default_route(gateway.ip);
    let _ = send(&mut rig, key, far);
    rig.advance(4500);
    assert_eq!(rig.sent().len(), 4);
    assert_eq!(send(&mut rig, key, far), Err(TxError::HostUnreachable));
}

#[test]
fn case_a05_stunted_late_and_foreign_arp() {
    let (server, us) = (Station::new(1), Station::new(9));
    let whole = packets::arp_request(server, us.ip);
    for len in 14..42 {
        let mut rig = Rig::new(1);
        rig.input(&whole[..len]);
        assert!(rig.sent().is_empty(), "{len} bytes");
        assert_eq!(rig.count(Counter::DropArpMalformed), 1, "{len} bytes");
    }
    // Hardware type, hardware length, protocol length, operation.
    for (at, value) in [(15, 6), (18, 255), (19, 16), (21, 0), (21, 3), (21, 9)] {
        let mut rig = Rig::new(1);
        let mut frame = whole.clone();
        frame[at] = value;
        rig.input(&frame);
        assert!(rig.sent().is_empty(), "byte {at} = {value}");
        assert_eq!(rig.count(Counter::DropArpMalformed), 1, "byte {at} = {value}");
    }
    let mut rig = Rig::new(1);
    rig.input(&whole[..42]);
    assert_eq!(rig.sent().len(), 1, "42 bytes are enough");
    // A resolution times out and its socket is closed; then the reply comes.
    let mut rig = Rig::new(1);
    let (key, _) = socket(&mut rig);
    let _ = send(&mut rig, key, server.ip);
    rig.advance(20_000);
    rig.engine.udp.close(key);
    rig.sent();
    rig.input(&packets::arp_reply(server, us));
    assert!(rig.sent().is_empty());
    assert_eq!(rig.count(Counter::DropArpIgnored), 1);
}

#[test]
fn case_a06_broadcast_load_does_not_starve_resolution() {
    let (server, us) = (Station::new(1), Station::new(9));
    let mut rig = Rig::new(1);
    let (key, port) = socket(&mut rig);
    let _ = send(&mut rig, key, server.ip);
    rig.sent();
    let mut asked = Vec::new();
    let (mut answered, mut delivered) = (false, 0);
    // 150 s with 500 requests a second from as many hosts, half of them for us; a datagram to the server every 100 ms.
    for tick in 0..150_000u32 {
        rig.engine.set_now(Instant::from_micros(1_000_000 + u64::from(tick) * 1000));
        if tick % 2 == 0 {
            let n = tick / 2 % 500;
            let sender = Station {
                mac: Address([2, 1, 0, 0, (n >> 8) as u8, n as u8]),
                ip: Ipv4Addr::from([10, 0, 0, 20 + (n % 200) as u8]),
            };
            let target = if n % 2 == 0 { us.ip } else { Ipv4Addr::new(10, 0, 0, 250) };
            rig.input(&packets::arp_request(sender, target));
        }
        if tick % 100 == 50 {
            if send(&mut rig, key, server.ip).is_ok() {
                delivered += 1;
            }
            rig.input(&packets::udp(server, 69, us, port, b"data"));
        }
        rig.engine.tick();
        for frame in rig.sent() {
            match packets::parse_arp(&frame) {
                Some(a) if a.operation == ArpOperation::Request && a.target_ip == server.ip => {
                    asked.push(tick);
                    // The first request is lost.
                    if asked.len() > 1 {
                        answered = true;
                        rig.input(&packets::arp_reply(server, us));
                    }
                }
                _ => {}
            }
        }
    }
    assert!(answered);
    assert!(asked.windows(2).all(|w| w[1] - w[0] >= 1000), "at most one request a second: {asked:?}");
    assert!(asked.len() >= 3, "the entry was confirmed when it became old: {asked:?}");
    assert!(delivered >= 1480, "of 1500 datagrams {delivered} left");
}

#[test]
fn case_e02_lengths_of_every_kind() {
    let other = Station::new(3);
    let lengths = [0usize, 1, 13, 14, 59, 60, 1514, 1518, 1519, 9018, 65_518, 65_535];
    for len in lengths {
        let mut rig = Rig::new(1);
        rig.know(other);
        let (_, port) = socket(&mut rig);
        // As much of a good datagram as the length allows, trailing bytes beyond it.
        let payload = vec![7u8; len.saturating_sub(42).min(1472)];
        let mut frame = packets::udp(other, 7, rig.us, port, &payload);
        frame.resize(len, 0xee);
        let delivered = match rig.receive(&frame).received {
            Received::Datagram { payload: got, .. } => {
                assert_eq!(got, &payload[..]);
                true
            }
            _ => false,
        };
        let fits = (42..=1518).contains(&len);
        assert_eq!(delivered, fits, "{len} bytes");
        if !fits {
            let drops = [Counter::DropShort, Counter::DropOversize, Counter::DropIpMalformed];
            assert_eq!(drops.iter().map(|c| rig.count(*c)).sum::<u32>(), 1, "{len} bytes");
        }
        let next = packets::udp(other, 7, rig.us, port, b"next");
        assert!(matches!(rig.receive(&next).received, Received::Datagram { .. }), "after {len} bytes");
    }
}

#[test]
fn case_e05_frames_at_every_alignment() {
    let other = Station::new(3);
    let mut rig = Rig::new(1);
    rig.know(other);
    let (_, port) = socket(&mut rig);
    let mut echo = Message::EchoRequest { id: 1, seq: 2, data: &[] }.emit_head([0; 2]).to_vec();
    echo.extend_from_slice(&[9; 33]);
    // An ICMP error that quotes a packet at an odd offset of the frame.
    let quoted = {
        let datagram = packets::udp_datagram((rig.us.ip, port), (other.ip, 69), b"q");
        packets::ipv4_with(rig.us.ip, other.ip, Protocol::UDP, &datagram, |_| ())
    };
    let mut error = Message::Unreachable { code: crate::wire::icmpv4::Unreachable::PORT, next_hop_mtu: 0, quoted: &[] }
        .emit_head([0; 2])
        .to_vec();
    error.extend_from_slice(&quoted);
    let frames = [
        packets::udp(other, 7, rig.us, port, &[5; 301]),
        packets::icmp(other, rig.us, &echo),
        packets::icmp(other, rig.us, &error),
        packets::arp_request(other, rig.us.ip),
    ];
    for offset in 0..8 {
        for frame in &frames {
            let mut store = vec![0u64; frame.len() / 8 + 2];
            let bytes: &mut [u8] = {
                // A buffer whose alignment is known, as bytes.
                let mut aligned = Vec::with_capacity(store.len() * 8);
                store.drain(..).for_each(|w: u64| aligned.extend_from_slice(&w.to_ne_bytes()));
                std::boxed::Box::leak(aligned.into_boxed_slice())
            };
            let base = bytes.as_ptr().addr().wrapping_neg() & 7;
            let at = (base + offset) % 8;
            bytes[at..at + frame.len()].copy_from_slice(frame);
            let _ = rig.engine.receive(rig.nic, &bytes[at..at + frame.len()], RxFlags::empty());
        }
    }
    assert_eq!(rig.count(Counter::IcmpEchoAnswered), 8);
    assert_eq!(rig.count(Counter::RxFrames), 32);
    let drops =
        [Counter::DropIpMalformed, Counter::DropUdpChecksum, Counter::DropIcmpChecksum, Counter::DropArpMalformed];
    assert_eq!(drops.iter().map(|c| rig.count(*c)).sum::<u32>(), 0);
}

#[test]
fn case_i05_redirects_are_ignored() {
    let (gateway, rogue) = (Station::new(1), Station::new(50));
    let far = Ipv4Addr::new(10, 9, 9, 9);
    let mut rig = Rig::new(1);
    let (key, port) = socket(&mut rig);
    rig.default_route(gateway.ip);
    rig.know(gateway);
    send(&mut rig, key, far).unwrap();
    rig.sent();
    let datagram = packets::udp_datagram((rig.us.ip, port), (far, 69), b"x");
    let quoted = packets::ipv4_with(rig.us.ip, far, Protocol::UDP, &datagram, |_| ());
    let redirects = [
        (rogue, Ipv4Addr::new(10, 0, 0, 66), &quoted[..]),
        (gateway, Ipv4Addr::new(8, 8, 8, 8), &quoted[..]),
        (gateway, rig.us.ip, &quoted[..]),
        (gateway, Ipv4Addr::BROADCAST, &quoted[..]),
        (gateway, Ipv4Addr::new(10, 0, 0, 66), &[][..]),
        // Even a proper one: policy is to ignore them all.
        (gateway, Ipv4Addr::new(10, 0, 0, 66), &quoted[..]),
    ];
    for (n, (from, to, quoted)) in redirects.into_iter().enumerate() {
        let mut message = Message::Redirect { code: 1, gateway: to, quoted: &[] }.emit_head([0; 2]).to_vec();
        message.extend_from_slice(quoted);
        rig.input(&packets::icmp(from, rig.us, &message));
        assert_eq!(rig.count(Counter::DropIcmpRedirect), n as u32 + 1);
        send(&mut rig, key, far).unwrap();
        let seen = &rig.sent_udp()[0];
        assert_eq!((seen.mac, seen.dst), (gateway.mac, far));
    }
}

#[test]
fn case_u02_zero_ones_odd_and_wrong_checksums() {
    let other = Station::new(3);
    let mut rig = Rig::new(1);
    rig.know(other);
    let (key, port) = socket(&mut rig);
    // A payload for which the sum comes out as zero: two bytes make up the difference.
    let plain = packets::udp_datagram((other.ip, 7), (rig.us.ip, port), &[0, 0, 1, 2, 3]);
    let field = u16::from_be_bytes([plain[6], plain[7]]);
    let mut payload = vec![0, 0, 1, 2, 3];
    payload[..2].copy_from_slice(&field.to_be_bytes());
    let datagram = packets::udp_datagram((other.ip, 7), (rig.us.ip, port), &payload);
    assert_eq!(datagram[6..8], [0xff, 0xff], "the sum is zero, sent as ones");
    let frame = |datagram: &[u8]| {
        let packet = packets::ipv4_with(other.ip, Station::new(9).ip, Protocol::UDP, datagram, |_| ());
        packets::ethernet(Station::new(9).mac, other.mac, EtherType::IPV4, &packet)
    };
    let mut arrives = |datagram: &[u8]| matches!(rig.receive(&frame(datagram)).received, Received::Datagram { .. });
    assert!(arrives(&datagram), "0xffff received");
    let mut none = datagram.clone();
    none[6..8].fill(0);
    assert!(arrives(&none), "zero means none");
    for byte in 8..datagram.len() {
        for bit in 0..8 {
            let mut flipped = datagram.clone();
            flipped[byte] ^= 1 << bit;
            assert!(!arrives(&flipped), "byte {byte} bit {bit}");
        }
    }
    assert_eq!(rig.count(Counter::DropUdpChecksum), 40);
    // Ours: the same trick in the other direction.
    let engine = &mut rig.engine;
    let dst = Endpoint { addr: other.ip, port: 7 };
    engine.udp.send(&mut engine.stack, key, Some(dst), &[Span::Bytes(&[0, 0, 1, 2, 3])], false).unwrap();
    let sent = rig.sent();
    let field = [sent[0][40], sent[0][41]];
    let engine = &mut rig.engine;
    let body = [field[0], field[1], 1, 2, 3];
    engine.udp.send(&mut engine.stack, key, Some(dst), &[Span::Bytes(&body)], false).unwrap();
    let sent = rig.sent();
    assert_eq!(sent[0][40..42], [0xff, 0xff], "computed zero goes as ones");
    assert_eq!(packets::parse_udp(&sent[0]).unwrap().payload, body);
}

#[test]
fn case_k01_resolution_across_clock_ends_looks_the_same() {
    // The engine's own time has 64 bits; whatever the start, the trace is the same.
    let trace = |start: u64| {
        let mut rig = Rig::new(1);
        rig.engine.set_now(Instant::from_micros(start));
        let (key, _) = socket(&mut rig);
        let _ = send(&mut rig, key, Station::new(1).ip);
        let mut times = Vec::new();
        for ms in 0..6000u64 {
            rig.engine.set_now(Instant::from_micros(start) + Duration::from_millis(ms));
            rig.engine.tick();
            for frame in rig.sent() {
                times.push((ms, frame));
            }
        }
        times
    };
    let first = trace(2_000_000);
    assert_eq!(first.len(), 4);
    for start in [0xffff_ff00u64 * 1000, 0xffff_ff00, u64::MAX / 2] {
        assert_eq!(trace(start), first);
    }
}

#[test]
fn vlan_tags_are_kept_apart() {
    let other = Station::new(3);
    let tagged = |vid: u16, frame: &[u8]| {
        let mut out = frame[..12].to_vec();
        out.extend_from_slice(&[0x81, 0x00, (vid >> 8) as u8, vid as u8]);
        out.extend_from_slice(&frame[12..]);
        out
    };
    for (ours, sent, taken) in [
        (None, None, true),
        (None, Some(0), true),
        (None, Some(5), false),
        (Some(5), Some(5), true),
        (Some(5), Some(6), false),
        (Some(5), None, false),
    ] {
        let mut rig = Rig::new(1);
        rig.engine.stack.interface_mut(rig.nic).unwrap().vlan = ours;
        rig.know(other);
        let (key, port) = socket(&mut rig);
        let frame = packets::udp(other, 7, rig.us, port, b"x");
        let frame = sent.map_or(frame.clone(), |vid| tagged(vid, &frame));
        assert_eq!(matches!(rig.receive(&frame).received, Received::Datagram { .. }), taken, "{ours:?} {sent:?}");
        assert_eq!(rig.count(Counter::DropVlan), u32::from(!taken));
        send(&mut rig, key, other.ip).unwrap();
        let out = &rig.sent()[0];
        assert_eq!(out[12..14] == [0x81, 0x00], ours.is_some());
    }
}

#[test]
fn sources_that_no_host_has_and_source_routes_are_dropped() {
    let mut rig = Rig::new(1);
    let us = rig.us;
    let (_, port) = socket(&mut rig);
    for src in [[0, 0, 0, 0], [127, 0, 0, 1], [224, 0, 0, 1], [255, 255, 255, 255], [10, 0, 0, 255], [10, 0, 0, 9]] {
        let src = Station { mac: OTHER_MAC, ip: Ipv4Addr::from(src) };
        let frame = packets::udp(src, 7, us, port, b"x");
        assert!(matches!(rig.receive(&frame).received, Received::Nothing), "{}", src.ip);
    }
    assert_eq!(rig.count(Counter::DropIpSource), 6);
    // A header with options: record route passes, loose and strict source routes do not.
    for (option, passes) in [(7u8, true), (131, false), (137, false)] {
        let other = Station::new(3);
        let datagram = packets::udp_datagram((other.ip, 7), (us.ip, port), b"x");
        let mut packet = packets::ipv4_with(other.ip, us.ip, Protocol::UDP, &datagram, |_| ());
        packet.splice(20..20, [option, 7, 4, 0, 0, 0, 0, 0]);
        packet[0] = 0x47;
        let total = packet.len() as u16;
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        packet[10..12].fill(0);
        let sum = crate::storage::checksum::Sum::of(&packet[..28]).to_field();
        packet[10..12].copy_from_slice(&sum);
        let frame = packets::ethernet(us.mac, other.mac, EtherType::IPV4, &packet);
        assert_eq!(matches!(rig.receive(&frame).received, Received::Datagram { .. }), passes, "option {option}");
    }
    assert_eq!(rig.count(Counter::DropIpOptions), 2);
}
