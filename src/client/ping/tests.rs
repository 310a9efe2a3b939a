//! Packet scripts: a host that answers as the test has it.

use super::*;
use crate::client::ops::Client;
use crate::sim::blocks;
use crate::sim::packets::{self, Station};
use crate::sim::rig::Rig;
use crate::stack::stats::Counter;
use crate::storage::slots::Key;
use crate::wire::dns::{Data, Kind, Message as DnsMessage, Rcode, ReplyBuilder};
use crate::wire::ethernet::Frame;
use crate::wire::icmpv4::Unreachable;
use crate::wire::ipv4;
use std::vec::Vec;

const HOST: Station = Station::new(1);

fn request() -> Request {
    Request {
        dst: HOST.ip,
        count: 1,
        size: 56,
        interval: Duration::from_secs(1),
        timeout: Duration::from_secs(2),
        dont_fragment: false,
        ttl: 64,
        until_answer: false,
    }
}

fn start(rig: &mut Rig, change: impl FnOnce(&mut Request)) -> Key {
    let mut request = request();
    change(&mut request);
    rig.know(HOST);
    rig.engine.start(Client::Ping(Ping::new(request).unwrap())).unwrap()
}

fn step(rig: &Rig, op: Key) -> Step {
    rig.engine.ops.get(op).unwrap().step
}

fn statistics(rig: &Rig, op: Key) -> Statistics {
    match &rig.engine.ops.get(op).unwrap().client {
        Client::Ping(ping) => ping.statistics(),
        _ => panic!("a ping"),
    }
}

/// IPv4 packets of the ICMP messages sent since the last look.
fn sent(rig: &mut Rig) -> Vec<Vec<u8>> {
    let frames = rig.sent();
    let packets = frames.iter().filter_map(|f| {
        ipv4::Packet::parse(Frame::parse(f).ok()?.payload()).ok().map(|p| {
            let mut bytes = p.header_bytes().to_vec();
            bytes.extend_from_slice(p.payload());
            bytes
        })
    });
    packets.filter(|p| p[9] == 1).collect()
}

/// The answer to a request.
fn answer(request: &[u8]) -> Vec<u8> {
    let mut message = request[20..].to_vec();
    message[0] = 0;
    message
}

fn input(rig: &mut Rig, from: Station, message: &[u8]) {
    let us = rig.us;
    rig.input(&packets::icmp(from, us, message));
}

#[test]
fn round_trips_are_measured_and_duplicates_counted() {
    let mut rig = Rig::new(1);
    let op = start(&mut rig, |r| r.count = 3);
    for ms in [7, 3, 20] {
        let requests = sent(&mut rig);
        assert_eq!(requests.len(), 1);
        rig.advance(ms);
        let reply = answer(&requests[0]);
        input(&mut rig, HOST, &reply);
        if ms == 3 {
            input(&mut rig, HOST, &reply);
        }
        rig.advance(1000 - ms);
    }
    let ms = Duration::from_millis;
    let expected =
        Statistics { sent: 3, received: 3, duplicates: 1, errors: 0, min: ms(3), max: ms(20), total: ms(30) };
    assert_eq!((step(&rig, op), statistics(&rig, op)), (Step::Done(Ok(3)), expected));
}

#[test]
fn what_is_no_answer_to_a_request_of_ours_is_ignored() {
    let mut rig = Rig::new(1);
    let op = start(&mut rig, |_| ());
    let reply = answer(&sent(&mut rig)[0]);
    let spoiled = |change: fn(&mut Vec<u8>)| {
        let mut bytes = reply.clone();
        change(&mut bytes);
        bytes
    };
    let wrong: [fn(&mut Vec<u8>); 5] =
        [|b| b[5] ^= 1, |b| b[7] ^= 1, |b| b[20] ^= 1, |b| b.truncate(40), |b| b.push(0)];
    for (n, change) in wrong.iter().enumerate() {
        input(&mut rig, HOST, &spoiled(*change));
        assert_eq!((statistics(&rig, op).received, rig.count(Counter::DropPingIgnored)), (0, n as u32 + 1));
    }
    input(&mut rig, Station::new(2), &reply);
    assert_eq!((statistics(&rig, op).received, rig.count(Counter::DropPingIgnored)), (0, 6));
    input(&mut rig, HOST, &reply);
    assert_eq!(step(&rig, op), Step::Done(Ok(1)));
}

#[test]
fn answers_to_one_of_the_last_eight_requests_count() {
    let mut rig = Rig::new(1);
    let op = start(&mut rig, |r| (r.count, r.interval) = (10, Duration::from_millis(10)));
    rig.advance(100);
    let requests = sent(&mut rig);
    assert_eq!(requests.len(), 10);
    for (n, request) in requests.iter().enumerate() {
        input(&mut rig, HOST, &answer(request));
        assert_eq!(statistics(&rig, op).received as usize, (n + 1).saturating_sub(2), "{n}");
    }
    rig.advance(2000);
    assert_eq!(step(&rig, op), Step::Done(Ok(8)));
}

#[test]
fn flags_sizes_and_limits() {
    let mut rig = Rig::new(1);
    start(&mut rig, |r| (r.dont_fragment, r.ttl, r.size) = (true, 3, 1472));
    let packet = &sent(&mut rig)[0];
    assert_eq!((packet[6] & 0x40, packet[8], packet.len()), (0x40, 3, 1500));
    // One byte more does not fit, and may not be fragmented.
    let op = start(&mut rig, |r| (r.dont_fragment, r.size) = (true, 1473));
    assert_eq!(step(&rig, op), Step::Done(Err(Error::MessageSize)));
    let op = start(&mut rig, |r| r.size = 0);
    let reply = answer(&sent(&mut rig)[0]);
    input(&mut rig, HOST, &reply);
    assert_eq!(step(&rig, op), Step::Done(Ok(1)));
    let refused = |change: fn(&mut Request)| {
        let mut request = request();
        change(&mut request);
        Ping::<crate::sim::host::SimHost>::new(request).err()
    };
    assert_eq!(refused(|r| r.count = 0), Some(Error::Invalid));
    assert_eq!(refused(|r| r.dst = Ipv4Addr::UNSPECIFIED), Some(Error::Invalid));
    assert_eq!(refused(|r| r.dst = Ipv4Addr::new(224, 0, 0, 1)), Some(Error::Invalid));
    assert_eq!(refused(|r| r.size = MAX_SIZE + 1), Some(Error::MessageSize));
    assert_eq!(refused(|r| r.size = MAX_SIZE), None);
}

#[test]
fn a_large_request_goes_in_fragments_whose_payload_is_that_of_the_whole() {
    let mut rig = Rig::new(1);
    let op = start(&mut rig, |r| r.size = 5001);
    let fragments = sent(&mut rig);
    assert_eq!(fragments.iter().map(Vec::len).collect::<Vec<_>>(), [1500, 1500, 1500, 589]);
    let message: Vec<u8> = fragments.iter().flat_map(|f| &f[20..]).copied().collect();
    assert!(Sum::of(&message).holds());
    assert!(message[8..].iter().enumerate().all(|(i, byte)| *byte == i as u8));
    // An answer that differs in one byte, also beyond those that repeat, is none; it comes in fragments as well.
    for (change, received) in [(8, 0), (308, 0), (5008, 0), (5009, 1)] {
        let mut reply = message.clone();
        reply[..4].fill(0);
        if let Some(byte) = reply.get_mut(change) {
            *byte ^= 0x80;
        }
        let sum = Sum::of(&reply).to_field();
        reply[2..4].copy_from_slice(&sum);
        for frame in blocks::fragments(HOST, rig.us, Protocol::ICMP, &reply, change as u16, 1480) {
            rig.input(&frame);
        }
        assert_eq!(statistics(&rig, op).received, received, "{change}");
    }
    assert_eq!((step(&rig, op), rig.count(Counter::DropPingIgnored)), (Step::Done(Ok(1)), 3));
}

#[test]
fn the_first_answer_can_be_the_end() {
    let mut rig = Rig::new(1);
    let op = start(&mut rig, |r| (r.count, r.until_answer) = (5, true));
    rig.advance(1000);
    let requests = sent(&mut rig);
    assert_eq!(requests.len(), 2);
    input(&mut rig, HOST, &answer(&requests[1]));
    assert_eq!(step(&rig, op), Step::Done(Ok(1)));
    rig.advance(5000);
    assert!(sent(&mut rig).is_empty());
}

#[test]
fn errors_about_a_request_are_reported_with_their_sender() {
    let router = Station::new(254);
    let error = |packet: &[u8], code| {
        let message = Message::Unreachable { code, next_hop_mtu: 0, quoted: &[] };
        let mut bytes = message.emit_head([0; 2]).to_vec();
        bytes.extend_from_slice(&packet[..28]);
        bytes
    };
    for (code, meaning) in [
        (Unreachable::HOST, Error::HostUnreachable),
        (Unreachable::NET, Error::NetworkUnreachable),
        (Unreachable::PROTOCOL, Error::Refused),
    ] {
        let mut rig = Rig::new(1);
        let op = start(&mut rig, |_| ());
        let packet = sent(&mut rig).remove(0);
        // About another host, another identifier, a request that was never sent.
        for at in [19, 25, 27] {
            let mut other = packet.clone();
            other[at] ^= 1;
            if at == 19 {
                let sum = crate::storage::checksum::Sum::of(&{
                    let mut header = other[..20].to_vec();
                    header[10..12].fill(0);
                    header
                });
                other[10..12].copy_from_slice(&sum.to_field());
            }
            input(&mut rig, router, &error(&other, code));
            assert!(matches!(step(&rig, op), Step::Pending(_)), "{at}");
        }
        input(&mut rig, router, &error(&packet, code));
        assert_eq!((step(&rig, op), statistics(&rig, op).errors), (Step::Done(Err(meaning)), 1));
        let detail = &rig.engine.ops.get(op).unwrap().detail;
        assert_eq!(
            (detail.kind, detail.code, detail.from),
            (DetailKind::Icmp, 0x300 | u32::from(code.0), Some(router.ip))
        );
    }
}

#[test]
fn a_host_that_does_not_answer_arp_is_unreachable() {
    let mut rig = Rig::new(1);
    let op = rig.engine.start(Client::Ping(Ping::new(request()).unwrap())).unwrap();
    rig.advance(5000);
    assert_eq!(step(&rig, op), Step::Done(Err(Error::HostUnreachable)));
}

#[test]
fn names_are_looked_up_first() {
    let mut rig = Rig::new(1);
    let server = Station::new(53);
    rig.know(server);
    rig.know(HOST);
    rig.engine.shared.resolver.set_servers(&[server.ip]);
    let named = |name: &str| {
        let request = Request { dst: Ipv4Addr::UNSPECIFIED, ..request() };
        Client::Ping(Ping::named(name.as_bytes().to_vec(), request).unwrap())
    };
    let op = rig.engine.start(named("host.lan")).unwrap();
    let query = rig.sent_udp().remove(0);
    let asked = DnsMessage::parse(&query.payload).unwrap();
    let question = asked.question().unwrap();
    let mut buf = [0; 512];
    let mut reply = ReplyBuilder::new(&mut buf, asked.id(), Rcode::NO_ERROR, false, &question).unwrap();
    reply.answer(&question.name, Kind::A, 60, &Data::A(HOST.ip)).unwrap();
    let us = rig.us;
    rig.input(&packets::udp(server, 53, us, query.src_port, reply.finish()));
    let reply = answer(&sent(&mut rig)[0]);
    input(&mut rig, HOST, &reply);
    assert_eq!(step(&rig, op), Step::Done(Ok(1)));
    // A dotted address needs no server; one that is no host's is refused; a name that is not answered for fails.
    let op = rig.engine.start(named("10.0.0.1")).unwrap();
    let reply = answer(&sent(&mut rig)[0]);
    input(&mut rig, HOST, &reply);
    assert_eq!(step(&rig, op), Step::Done(Ok(1)));
    let op = rig.engine.start(named("224.0.0.1")).unwrap();
    assert_eq!(step(&rig, op), Step::Done(Err(Error::Invalid)));
    let op = rig.engine.start(named("other.lan")).unwrap();
    rig.advance(16_000);
    assert_eq!((step(&rig, op), sent(&mut rig).len()), (Step::Done(Err(Error::Timeout)), 0));
}
