//! Packet scripts against the whole engine: what belongs to no single client.

mod fragments;
#[cfg(feature = "fast")]
mod lanes;
mod link;

use crate::client::engine::Received;
use crate::client::operation::Step;
use crate::client::ops::Client;
use crate::client::ping::{Ping, Request};
use crate::sim::packets::{self, Station};
use crate::sim::rig::Rig;
use crate::stack::stats::Counter;
use crate::storage::host::{Endpoint, Span};
use crate::storage::time::Duration;
use crate::udp::Owner;
use crate::wire::ethernet::Frame;
use crate::wire::icmpv4::Message;
use crate::wire::ipv4;

fn ping(rig: &mut Rig, to: Station) -> crate::storage::slots::Key {
    let request = Request {
        dst: to.ip,
        count: 1,
        size: 56,
        interval: Duration::from_secs(1),
        timeout: Duration::from_secs(1),
        dont_fragment: false,
        ttl: 64,
        until_answer: false,
    };
    rig.engine.start(Client::Ping(Ping::new(request).unwrap())).unwrap()
}

#[test]
fn ping_resolves_the_neighbour_and_counts_the_answer() {
    let mut rig = Rig::new(1);
    let server = Station::new(1);
    let op = ping(&mut rig, server);
    rig.answer_arp(server);
    let sent = rig.sent();
    let frame = Frame::parse(&sent[0]).unwrap();
    assert_eq!(frame.destination(), server.mac);
    let ip = ipv4::Packet::parse(frame.payload()).unwrap();
    let Message::EchoRequest { id, seq, data } = Message::parse(ip.payload()).unwrap() else { panic!("a request") };
    assert_eq!(data.len(), 56);
    let mut answer = Message::EchoReply { id, seq, data }.emit_head([0; 2]).to_vec();
    answer.extend_from_slice(data);
    rig.advance(7);
    rig.input(&packets::icmp(server, rig.us, &answer));
    assert_eq!(rig.engine.ops.get(op).unwrap().step, Step::Done(Ok(1)));
}

#[test]
fn ping_that_nobody_answers_times_out() {
    let mut rig = Rig::new(1);
    let server = Station::new(1);
    rig.know(server);
    let op = ping(&mut rig, server);
    rig.advance(1100);
    let step = rig.engine.ops.get(op).unwrap().step;
    assert_eq!(step, Step::Done(Err(crate::storage::error::Error::Timeout)));
}

#[test]
fn echo_requests_are_answered() {
    let mut rig = Rig::new(1);
    let other = Station::new(3);
    rig.know(other);
    let mut request = Message::EchoRequest { id: 5, seq: 6, data: &[] }.emit_head([0; 2]).to_vec();
    request.extend_from_slice(b"payload");
    rig.input(&packets::icmp(other, rig.us, &request));
    let sent = rig.sent();
    let ip = ipv4::Packet::parse(Frame::parse(&sent[0]).unwrap().payload()).unwrap();
    assert_eq!(Message::parse(ip.payload()).unwrap(), Message::EchoReply { id: 5, seq: 6, data: b"payload" });
    assert_eq!(rig.count(Counter::IcmpEchoAnswered), 1);
}

#[test]
fn a_handler_gets_the_datagram_and_a_send_waits_for_the_neighbour() {
    let mut rig = Rig::new(1);
    let other = Station::new(3);
    let engine = &mut rig.engine;
    let socket = engine.udp.open(&mut engine.stack, Owner::Handler).unwrap();
    let port = engine.udp.get(socket).unwrap().local.port;
    let frame = packets::udp(other, 7, rig.us, port, b"hello");
    match rig.receive(&frame).received {
        Received::Datagram { socket: s, meta, payload } => {
            assert_eq!((s, meta.src.port, payload), (socket, 7, &b"hello"[..]));
        }
        other => panic!("the datagram is for the socket: {other:?}"),
    }
    let engine = &mut rig.engine;
    let dst = Endpoint { addr: other.ip, port: 7 };
    engine.udp.send(&mut engine.stack, socket, Some(dst), &[Span::Bytes(b"answer")], true).unwrap();
    rig.answer_arp(other);
    let sent = rig.sent_udp();
    assert_eq!((sent[0].payload.as_slice(), sent[0].mac), (&b"answer"[..], other.mac));
}

#[test]
fn a_datagram_for_nobody_is_answered_with_port_unreachable() {
    let mut rig = Rig::new(1);
    let other = Station::new(3);
    rig.know(other);
    rig.input(&packets::udp(other, 7, rig.us, 4000, b"x"));
    let sent = rig.sent();
    let ip = ipv4::Packet::parse(Frame::parse(&sent[0]).unwrap().payload()).unwrap();
    assert!(matches!(Message::parse(ip.payload()).unwrap(), Message::Unreachable { .. }));
    assert_eq!(rig.count(Counter::DropUdpNoSocket), 1);
}

#[test]
fn one_port_on_two_interfaces_is_two_ports() {
    let mut rig = Rig::new(1);
    let engine = &mut rig.engine;
    let any = |port| Endpoint { addr: core::net::Ipv4Addr::UNSPECIFIED, port };
    let (one, two) = (Some(crate::stack::interface::NicId(0)), Some(crate::stack::interface::NicId(1)));
    let a = engine.udp.open(&mut engine.stack, Owner::Handler).unwrap();
    let b = engine.udp.open(&mut engine.stack, Owner::Handler).unwrap();
    engine.udp.bind(a, one, any(68)).unwrap();
    assert_eq!(engine.udp.bind(b, one, any(68)), Err(crate::storage::error::Error::InUse));
    assert_eq!(engine.udp.bind(b, None, any(68)), Err(crate::storage::error::Error::InUse));
    engine.udp.bind(b, two, any(68)).unwrap();
    // Nor can one be widened over the other afterwards.
    assert_eq!(engine.udp.bind(b, None, any(0)), Err(crate::storage::error::Error::InUse));
}
