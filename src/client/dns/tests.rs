//! Packet scripts: name servers of the test's own against lookups.

use super::literal;
use super::op::{Dns, Request};
use crate::client::operation::{DetailKind, Step};
use crate::client::ops::Client;
use crate::sim::packets::{self, Station, UdpSeen};
use crate::sim::rig::{Limits, Rig};
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::NicCaps;
use crate::storage::slots::Key;
use crate::storage::time::Duration;
use crate::wire::dns::{Data, Kind, Message, Name, Question, Rcode, ReplyBuilder};
use crate::wire::icmpv4::{self, Unreachable};
use core::net::Ipv4Addr;
use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

const SERVER: Station = Station::new(53);
const OTHER: Station = Station::new(54);

const fn ip(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n)
}

/// A record of a reply: its name, seconds to live, data.
#[derive(Clone, Debug)]
enum Record {
    A(&'static str, u32, Ipv4Addr),
    Cname(&'static str, u32, &'static str),
    Other(&'static str, u16, Vec<u8>),
}

/// A query taken apart.
#[derive(Clone, Debug)]
struct Asked {
    id: u16,
    name: Vec<u8>,
    kind: Kind,
    udp: UdpSeen,
}

fn text(name: &Name<'_>) -> Vec<u8> {
    name.labels().collect::<Vec<_>>().join(&b'.')
}

impl Asked {
    fn new(udp: UdpSeen) -> Asked {
        let m = Message::parse(&udp.payload).unwrap();
        assert!(!m.is_response());
        assert_eq!((udp.dst_port, m.question_count(), m.records().unwrap().count()), (53, 1, 0));
        let q = m.question().unwrap();
        Asked { id: m.id(), name: text(&q.name), kind: q.kind, udp: udp.clone() }
    }

    /// A reply's bytes.
    fn reply(&self, rcode: Rcode, cut: bool, records: &[Record]) -> Vec<u8> {
        let mut buf = [0u8; 1400];
        let mut name = [0u8; 255];
        let name = Name::from_text(&self.name, &mut name).unwrap();
        let question = Question { name, kind: self.kind, class: 1 };
        let mut b = ReplyBuilder::new(&mut buf, self.id, rcode, cut, &question).unwrap();
        for record in records {
            let (mut n, mut t) = ([0u8; 255], [0u8; 255]);
            let (Record::A(owner, ..) | Record::Cname(owner, ..) | Record::Other(owner, ..)) = record;
            let owner = Name::from_text(owner.as_bytes(), &mut n).unwrap();
            match record {
                Record::A(_, ttl, addr) => b.answer(&owner, Kind::A, *ttl, &Data::A(*addr)),
                Record::Cname(_, ttl, target) => {
                    let target = Name::from_text(target.as_bytes(), &mut t).unwrap();
                    b.answer(&owner, Kind::CNAME, *ttl, &Data::Cname(target))
                }
                Record::Other(_, kind, data) => b.answer(&owner, Kind(*kind), 60, &Data::Other(data)),
            }
            .unwrap();
        }
        b.finish().to_vec()
    }

    fn addresses(&self, addrs: &[Ipv4Addr]) -> Vec<u8> {
        let name: &'static str = std::string::String::from_utf8(self.name.clone()).unwrap().leak();
        let records: Vec<Record> = addrs.iter().map(|a| Record::A(name, 60, *a)).collect();
        self.reply(Rcode::NO_ERROR, false, &records)
    }
}

/// A host with name servers.
struct Script {
    rig: Rig,
}

impl Script {
    fn new(servers: &[Station]) -> Script {
        Script::on(Rig::new(7), servers)
    }

    fn on(mut rig: Rig, servers: &[Station]) -> Script {
        servers.iter().for_each(|s| rig.know(*s));
        let addrs: Vec<Ipv4Addr> = servers.iter().map(|s| s.ip).collect();
        rig.engine.shared.resolver.set_servers(&addrs);
        Script { rig }
    }

    fn start(&mut self, name: &str) -> Key {
        let request = Request { name: name.as_bytes().to_vec(), timeout: None };
        self.rig.engine.start(Client::Dns(Dns::new(request))).unwrap()
    }

    /// The one query sent since the last look.
    fn asked(&mut self) -> Asked {
        let mut all = self.rig.sent_udp();
        assert_eq!(all.len(), 1, "one query");
        Asked::new(all.remove(0))
    }

    fn silent(&mut self) {
        assert!(self.rig.sent_udp().is_empty(), "nothing is asked");
    }

    fn answer(&mut self, from: Station, asked: &Asked, bytes: &[u8]) {
        let us = self.rig.us;
        self.rig.input(&packets::udp(from, 53, us, asked.udp.src_port, bytes));
    }

    fn step(&self, op: Key) -> Step {
        self.rig.engine.ops.get(op).unwrap().step
    }

    fn running(&self, op: Key) -> bool {
        matches!(self.step(op), Step::Pending(_))
    }

    fn found(&self, op: Key) -> Vec<Ipv4Addr> {
        match &self.rig.engine.ops.get(op).unwrap().client {
            Client::Dns(dns) => dns.addresses().to_vec(),
            _ => panic!("a lookup"),
        }
    }

    fn rcode(&self, op: Key) -> u32 {
        let detail = &self.rig.engine.ops.get(op).unwrap().detail;
        assert_eq!(detail.kind, DetailKind::Dns);
        detail.code
    }

    fn close(&mut self, op: Key) {
        self.rig.engine.close(op).unwrap();
    }

    /// Looks a name up that is answered with `addrs`.
    fn lookup(&mut self, name: &str, addrs: &[Ipv4Addr]) -> Asked {
        let op = self.start(name);
        let asked = self.asked();
        self.answer(SERVER, &asked, &asked.addresses(addrs));
        assert_eq!((self.step(op), self.found(op)), (Step::Done(Ok(addrs.len() as u64)), addrs.to_vec()));
        self.close(op);
        asked
    }

    fn sockets(&self) -> usize {
        (0..=u16::MAX).filter(|p| self.rig.engine.udp.is_bound(*p)).count()
    }
}

#[test]
fn a_name_is_looked_up_and_the_socket_given_back() {
    let mut s = Script::new(&[SERVER]);
    let op = s.start("boot.lan.");
    let asked = s.asked();
    assert_eq!((asked.name.as_slice(), asked.kind, asked.udp.dst), (&b"boot.lan"[..], Kind::A, SERVER.ip));
    s.answer(SERVER, &asked, &asked.addresses(&[ip(1), ip(2)]));
    assert_eq!((s.step(op), s.found(op), s.sockets()), (Step::Done(Ok(2)), vec![ip(1), ip(2)], 0));
}

#[test]
fn dotted_addresses_are_not_asked_for() {
    let mut s = Script::new(&[]);
    let op = s.start("10.0.0.77");
    assert_eq!((s.step(op), s.found(op)), (Step::Done(Ok(1)), vec![ip(77)]));
    s.silent();
    for bad in ["10.0.0", "10.0.0.256", "10.0.0.1.", "10.0.0.01", "10.0..1", "a.0.0.1", "10.0.0.1000", ""] {
        assert_eq!(literal(bad.as_bytes()), None, "{bad}");
    }
    assert_eq!(literal(b"255.255.255.255"), Some(Ipv4Addr::BROADCAST));
    assert_eq!(literal(b"0.0.0.0"), Some(Ipv4Addr::UNSPECIFIED));
}

#[test]
fn names_that_cannot_be_and_servers_that_are_not() {
    let mut s = Script::new(&[SERVER]);
    for (name, error) in [
        ("", Error::Invalid),
        ("a..b", Error::Invalid),
        (&"a".repeat(64), Error::Invalid),
        (&"a.".repeat(130), Error::NameTooLong),
    ] {
        let op = s.start(name);
        assert_eq!(s.step(op), Step::Done(Err(error)), "{name}");
        s.close(op);
    }
    let mut s = Script::new(&[]);
    let op = s.start("boot.lan");
    assert_eq!(s.step(op), Step::Done(Err(Error::NetworkUnreachable)));
}

#[test]
fn case_x03_only_the_answer_to_the_query_counts() {
    let mut s = Script::new(&[SERVER]);
    let op = s.start("boot.Lan");
    let asked = s.asked();
    let good = asked.addresses(&[ip(1)]);
    let forged = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    let mut other = asked.clone();
    other.name = b"other.lan".to_vec();
    let mut aaaa = asked.clone();
    aaaa.kind = Kind::AAAA;
    let replies = [
        ("id + 1", forged(&|b| b[..2].copy_from_slice(&asked.id.wrapping_add(1).to_be_bytes()))),
        ("id - 1", forged(&|b| b[..2].copy_from_slice(&asked.id.wrapping_sub(1).to_be_bytes()))),
        ("QR 0", forged(&|b| b[2] &= 0x7f)),
        ("QDCOUNT 0", forged(&|b| b[5] = 0)),
        ("another question", other.addresses(&[ip(66)])),
        ("type 28", aaaa.addresses(&[ip(66)])),
        ("class 3", forged(&|b| b[12 + 10 + 3] = 3)),
        ("opcode 2", forged(&|b| b[2] |= 0x10)),
    ];
    for (n, (what, bytes)) in replies.iter().enumerate() {
        s.answer(SERVER, &asked, bytes);
        assert!(s.running(op), "{what}");
        assert_eq!(s.rig.count(Counter::DropDnsForged), n as u32 + 1, "{what} is counted");
    }
    // Another host, and the server from another port.
    s.answer(OTHER, &asked, &good);
    let us = s.rig.us;
    s.rig.input(&packets::udp(SERVER, 54, us, asked.udp.src_port, &good));
    assert_eq!((s.running(op), s.rig.count(Counter::DropUdpPeer)), (true, 2));
    // The case of the question does not matter.
    let mut upper = asked.clone();
    upper.name = b"BOOT.LAN".to_vec();
    s.answer(SERVER, &asked, &upper.addresses(&[ip(1)]));
    assert_eq!((s.step(op), s.found(op)), (Step::Done(Ok(1)), vec![ip(1)]));
    s.silent();
}

#[test]
fn case_x03_ids_and_ports_of_a_thousand_queries_are_not_sequential() {
    let mut s = Script::on(Rig::bare(7, Limits { names: 0, ..Limits::default() }, NicCaps::empty(), true), &[]);
    let us = s.rig.us;
    let (nic, cidr) = (s.rig.nic, crate::stack::interface::Cidr { addr: us.ip, prefix: 24 });
    s.rig.engine.stack.interface_mut(nic).unwrap().add_address(cidr);
    s.rig.know(SERVER);
    s.rig.engine.shared.resolver.set_servers(&[SERVER.ip]);
    let asked: Vec<Asked> = (0..1000).map(|_| s.lookup("boot.lan", &[ip(1)])).collect();
    let steps = |of: &dyn Fn(&Asked) -> u16| {
        asked.windows(2).map(|w| of(&w[1]).wrapping_sub(of(&w[0]))).collect::<BTreeSet<u16>>().len()
    };
    assert!(steps(&|a| a.id) > 950, "ids");
    assert!(steps(&|a| a.udp.src_port) > 900, "ports");
    let ports: BTreeSet<u16> = asked.iter().map(|a| a.udp.src_port).collect();
    assert_eq!(ports.len(), 1000, "no port comes again");
    let ids: BTreeSet<u16> = asked.iter().map(|a| a.id).collect();
    assert!(ids.len() > 970, "ids repeat by chance alone");
}

#[test]
fn case_x04_truncated_answers_give_what_is_whole_in_them_or_a_clear_error() {
    let mut s = Script::new(&[SERVER]);
    let op = s.start("boot.lan");
    let asked = s.asked();
    s.answer(SERVER, &asked, &asked.reply(Rcode::NO_ERROR, true, &[]));
    assert_eq!((s.step(op), s.rcode(op)), (Step::Done(Err(Error::NotSupported)), 0));
    s.rig.advance(20_000);
    s.silent();
    // Two records, the second cut in the middle: the first is good. Cut within the first: nothing is.
    let two = [Record::A("boot.lan", 60, ip(1)), Record::A("boot.lan", 60, ip(2))];
    for (cut, end) in [(7, Ok(1)), (14 + 10 + 5, Err(Error::NotSupported)), (0, Ok(2))] {
        let op = s.start("boot.lan");
        let asked = s.asked();
        let bytes = asked.reply(Rcode::NO_ERROR, true, &two);
        s.answer(SERVER, &asked, &bytes[..bytes.len() - cut]);
        assert_eq!(s.step(op), Step::Done(end), "cut by {cut}");
        s.close(op);
        s.rig.engine.shared.resolver.set_servers(&[SERVER.ip]);
    }
    // Without the flag half a record is malformed, and the query is repeated.
    let op = s.start("boot.lan");
    let asked = s.asked();
    let bytes = asked.reply(Rcode::NO_ERROR, false, &two);
    s.answer(SERVER, &asked, &bytes[..bytes.len() - 7]);
    assert_eq!((s.running(op), s.rig.count(Counter::DropDnsMalformed)), (true, 1));
    s.rig.advance(1000);
    let again = s.asked();
    s.answer(SERVER, &again, &again.addresses(&[ip(1)]));
    assert_eq!(s.step(op), Step::Done(Ok(1)));
}

#[test]
fn case_x04_all_addresses_are_kept_and_other_types_skipped() {
    let mut s = Script::new(&[SERVER]);
    // Twelve A records, two of them with data that is no address: eight of the ten good ones are kept.
    let op = s.start("boot.lan");
    let asked = s.asked();
    let mut records: Vec<Record> = (1..=10).map(|n| Record::A("boot.lan", 60, ip(n))).collect();
    records.insert(0, Record::Other("boot.lan", 1, vec![10, 0, 0]));
    records.insert(5, Record::Other("boot.lan", 1, vec![7; 16]));
    s.answer(SERVER, &asked, &asked.reply(Rcode::NO_ERROR, false, &records));
    assert_eq!((s.step(op), s.found(op)), (Step::Done(Ok(8)), (1..=8).map(ip).collect::<Vec<_>>()));
    s.close(op);
    s.rig.engine.shared.resolver.set_servers(&[SERVER.ip]);
    // AAAA, RRSIG and OPT ahead of the address; an A record of another name; addresses no host can have.
    let op = s.start("boot.lan");
    let asked = s.asked();
    let records = [
        Record::Other("boot.lan", 28, vec![0xfd; 16]),
        Record::Other("boot.lan", 46, vec![1; 30]),
        Record::Other("boot.lan", 41, vec![]),
        Record::A("other.lan", 60, ip(66)),
        Record::A("boot.lan", 60, Ipv4Addr::new(127, 0, 0, 1)),
        Record::A("boot.lan", 60, Ipv4Addr::BROADCAST),
        Record::A("boot.lan", 60, ip(1)),
    ];
    s.answer(SERVER, &asked, &asked.reply(Rcode::NO_ERROR, false, &records));
    assert_eq!((s.step(op), s.found(op)), (Step::Done(Ok(1)), vec![ip(1)]));
}

#[test]
fn case_x04_time_to_live_0_and_beyond_2_31_are_for_this_lookup_only() {
    let mut s = Script::new(&[SERVER]);
    for ttl in [0, 0xffff_ffff, 0x8000_0000] {
        for _ in 0..2 {
            let op = s.start("boot.lan");
            let asked = s.asked();
            s.answer(SERVER, &asked, &asked.reply(Rcode::NO_ERROR, false, &[Record::A("boot.lan", ttl, ip(1))]));
            assert_eq!(s.step(op), Step::Done(Ok(1)), "{ttl}: asked each time");
            s.close(op);
        }
    }
    // 60 s are kept for 60 s, 2³¹ − 1 for a day.
    for (ttl, kept_s) in [(60u32, 60u64), (0x7fff_ffff, 86_400)] {
        let op = s.start("boot.lan");
        let asked = s.asked();
        s.answer(SERVER, &asked, &asked.reply(Rcode::NO_ERROR, false, &[Record::A("boot.lan", ttl, ip(1))]));
        s.close(op);
        s.rig.advance(kept_s * 1000 - 1);
        let op = s.start("BOOT.lan");
        assert_eq!((s.step(op), s.found(op)), (Step::Done(Ok(1)), vec![ip(1)]), "{ttl}: remembered");
        s.silent();
        s.close(op);
        s.rig.advance(1);
        s.rig.know(SERVER);
        let op = s.start("boot.lan");
        assert!(s.running(op), "{ttl}: forgotten");
        s.asked();
        s.close(op);
    }
}

#[test]
fn case_x07_counts_larger_than_the_packet() {
    let mut s = Script::new(&[SERVER]);
    let op = s.start("boot.lan");
    let asked = s.asked();
    let two = [Record::A("boot.lan", 60, ip(1)), Record::A("boot.lan", 60, ip(2))];
    let valid = asked.reply(Rcode::NO_ERROR, false, &two);
    let mut bad: Vec<Vec<u8>> = (0..valid.len()).map(|n| valid[..n].to_vec()).collect();
    assert_eq!((bad[11].len(), bad[12].len()), (11, 12));
    let set = |at: usize, value: [u8; 2]| {
        let mut bytes = valid.clone();
        bytes[at..at + 2].copy_from_slice(&value);
        bytes
    };
    bad.extend([set(4, [0xff; 2]), set(6, [0xff; 2]), set(8, [0xff; 2]), set(10, [0xff; 2])]);
    // Where the lengths of the two records stand: 4 bytes of data each at their end.
    let (second, first) = (valid.len() - 6, valid.len() - 6 - 24);
    assert_eq!((&valid[first..first + 2], &valid[second..second + 2]), (&[0, 4][..], &[0, 4][..]));
    for at in [first, second] {
        bad.extend([set(at, [0, 0]), set(at, [0, 5]), set(at, [0xff, 0xff])]);
    }
    bad.push([&valid[..], b"x"].concat());
    for (n, bytes) in bad.iter().enumerate() {
        s.answer(SERVER, &asked, bytes);
        assert!(s.running(op) && s.found(op).is_empty(), "{n}: nothing is believed");
        let dropped = s.rig.count(Counter::DropDnsMalformed) + s.rig.count(Counter::DropDnsForged);
        assert_eq!(dropped, n as u32 + 1, "{n} is counted");
    }
    assert!(s.rig.count(Counter::DropDnsForged) <= 2, "ANCOUNT aside, all are malformed");
    // Dropped and asked again: then the valid reply counts.
    s.rig.advance(1000);
    let again = s.asked();
    s.answer(SERVER, &again, &again.reply(Rcode::NO_ERROR, false, &two));
    assert_eq!((s.step(op), s.found(op)), (Step::Done(Ok(2)), vec![ip(1), ip(2)]));
}

/// Type 3 that quotes the query as it was sent, changed by `change`.
fn unreachable(s: &Script, asked: &Asked, code: Unreachable, change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let datagram = packets::udp_datagram((s.rig.us.ip, asked.udp.src_port), (asked.udp.dst, 53), &asked.udp.payload);
    let packet = packets::ipv4_with(s.rig.us.ip, asked.udp.dst, crate::wire::ipv4::Protocol::UDP, &datagram, |_| ());
    let mut quoted = packet[..28].to_vec();
    change(&mut quoted);
    let mut message = icmpv4::Message::Unreachable { code, next_hop_mtu: 0, quoted: &[] }.emit_head([0; 2]).to_vec();
    message.extend_from_slice(&quoted);
    packets::icmp(SERVER, s.rig.us, &message)
}

#[test]
fn case_i03_a_name_server_that_is_not_there_is_reported_at_once() {
    let mut s = Script::new(&[SERVER]);
    let op = s.start("boot.lan");
    let asked = s.asked();
    // Another local port, a truncated quote, a quoted header longer than the quote: not about our query.
    let foreign: [fn(&mut Vec<u8>); 3] = [|q| q[21] ^= 1, |q| q.truncate(27), |q| q[0] = 0x4f];
    for change in foreign {
        let error = unreachable(&s, &asked, Unreachable::PORT, change);
        s.rig.input(&error);
        assert!(s.running(op));
    }
    let before = s.rig.now();
    let error = unreachable(&s, &asked, Unreachable::PORT, |_| ());
    s.rig.input(&error);
    assert_eq!(s.step(op), Step::Done(Err(Error::Refused)));
    assert!(s.rig.now().since(before) < Duration::from_secs(1));
    assert_eq!(s.sockets(), 0);
    s.rig.advance(20_000);
    s.silent();
    // With a second server, that one is asked at once.
    let mut s = Script::new(&[SERVER, OTHER]);
    let op = s.start("boot.lan");
    let asked = s.asked();
    let error = unreachable(&s, &asked, Unreachable::PORT, |_| ());
    s.rig.input(&error);
    let second = s.asked();
    assert_eq!((second.udp.dst, second.udp.src_port == asked.udp.src_port), (OTHER.ip, false));
    s.answer(OTHER, &second, &second.addresses(&[ip(1)]));
    assert_eq!(s.step(op), Step::Done(Ok(1)));
}

#[test]
fn servers_are_asked_in_turn_with_growing_waits_until_all_were_asked_four_times() {
    let mut s = Script::new(&[SERVER, OTHER]);
    let op = s.start("boot.lan");
    let start = s.rig.now();
    let mut asked = vec![];
    while s.running(op) && asked.len() < 20 {
        s.rig.know(SERVER);
        s.rig.know(OTHER);
        for udp in s.rig.sent_udp() {
            asked.push((s.rig.now().since(start).as_millis(), Asked::new(udp)));
        }
        s.rig.advance(100);
    }
    let when: Vec<(u64, Ipv4Addr)> = asked.iter().map(|(ms, a)| (*ms, a.udp.dst)).collect();
    let (a, b) = (SERVER.ip, OTHER.ip);
    let expected = [(0, a), (1000, b), (2000, a), (4000, b), (6000, a), (10_000, b), (14_000, a), (22_000, b)];
    assert_eq!(when, expected);
    assert_eq!(s.step(op), Step::Done(Err(Error::Timeout)));
    let ids: BTreeSet<u16> = asked.iter().map(|(_, a)| a.id).collect();
    let ports: BTreeSet<u16> = asked.iter().map(|(_, a)| a.udp.src_port).collect();
    assert_eq!((ids.len(), ports.len()), (8, 8), "another id and port for each");
    assert_eq!(s.sockets(), 0);
}

#[test]
fn the_only_servers_late_answer_counts() {
    let mut s = Script::new(&[SERVER]);
    let op = s.start("boot.lan");
    let first = s.asked();
    s.rig.advance(1000);
    let second = s.asked();
    assert_eq!((second.id, second.udp.src_port), (first.id, first.udp.src_port), "the same query again");
    s.answer(SERVER, &first, &first.addresses(&[ip(1)]));
    assert_eq!(s.step(op), Step::Done(Ok(1)));
}

#[test]
fn the_callers_budget_ends_a_lookup() {
    let mut s = Script::new(&[SERVER]);
    let request = Request { name: b"boot.lan".to_vec(), timeout: Some(Duration::from_millis(1500)) };
    let op = s.rig.engine.start(Client::Dns(Dns::new(request))).unwrap();
    s.rig.advance(1499);
    assert!(s.running(op));
    s.rig.advance(1);
    assert_eq!((s.step(op), s.sockets()), (Step::Done(Err(Error::Timeout)), 0));
}

#[test]
fn servers_that_fail_give_way_and_the_last_failure_is_told() {
    let mut s = Script::new(&[SERVER, OTHER]);
    let op = s.start("boot.lan");
    let first = s.asked();
    s.answer(SERVER, &first, &first.reply(Rcode::SERVER_FAILURE, false, &[]));
    let second = s.asked();
    assert_eq!(second.udp.dst, OTHER.ip);
    s.answer(OTHER, &second, &second.reply(Rcode::REFUSED, false, &[]));
    assert_eq!((s.step(op), s.rcode(op)), (Step::Done(Err(Error::Denied)), 5));
    // One failed for good: the other alone is asked from then on.
    let op = s.start("boot.lan");
    let first = s.asked();
    s.answer(SERVER, &first, &first.reply(Rcode::SERVER_FAILURE, false, &[]));
    s.asked();
    s.rig.advance(1000);
    let again = s.asked();
    assert_eq!(again.udp.dst, OTHER.ip);
    s.answer(OTHER, &again, &again.addresses(&[ip(1)]));
    assert_eq!(s.step(op), Step::Done(Ok(1)));
}

#[test]
fn names_that_are_not_there() {
    let mut s = Script::new(&[SERVER]);
    for (rcode, records) in [(Rcode::NAME_ERROR, vec![]), (Rcode::NO_ERROR, vec![])] {
        let op = s.start("no.lan");
        let asked = s.asked();
        s.answer(SERVER, &asked, &asked.reply(rcode, false, &records));
        assert_eq!((s.step(op), s.rcode(op)), (Step::Done(Err(Error::NotFound)), u32::from(rcode.0)));
        s.close(op);
    }
    s.silent();
}

#[test]
fn names_without_a_dot_are_tried_in_the_domains_of_the_search_list() {
    let mut s = Script::new(&[SERVER]);
    assert!(s.rig.engine.shared.resolver.set_search(b"a.example b.example"));
    let op = s.start("boot");
    for name in ["boot.a.example", "boot.b.example", "boot"] {
        let asked = s.asked();
        assert_eq!(asked.name, name.as_bytes());
        s.answer(SERVER, &asked, &asked.reply(Rcode::NAME_ERROR, false, &[]));
    }
    assert_eq!((s.step(op), s.rcode(op)), (Step::Done(Err(Error::NotFound)), 3));
    let op = s.start("boot");
    let first = s.asked();
    s.answer(SERVER, &first, &first.reply(Rcode::NAME_ERROR, false, &[]));
    let second = s.asked();
    s.answer(SERVER, &second, &second.addresses(&[ip(1)]));
    assert_eq!(s.step(op), Step::Done(Ok(1)));
    // A dot, be it at the end, makes a name whole.
    for (name, asked_for) in [("boot.", "boot"), ("boot.x", "boot.x")] {
        s.start(name);
        assert_eq!(s.asked().name, asked_for.as_bytes());
    }
}

#[test]
fn aliases_are_followed_within_the_answer() {
    let mut s = Script::new(&[SERVER]);
    let op = s.start("boot.lan");
    let asked = s.asked();
    // In any order; the least time to live of all counts.
    let records = [
        Record::A("c.lan", 600, ip(1)),
        Record::Cname("b.lan", 5, "C.lan"),
        Record::Cname("boot.lan", 600, "b.lan"),
        Record::A("x.lan", 600, ip(66)),
    ];
    s.answer(SERVER, &asked, &asked.reply(Rcode::NO_ERROR, false, &records));
    assert_eq!((s.step(op), s.found(op)), (Step::Done(Ok(1)), vec![ip(1)]));
    s.close(op);
    s.rig.advance(4999);
    let op = s.start("boot.lan");
    assert_eq!(s.step(op), Step::Done(Ok(1)));
    s.close(op);
    s.rig.advance(1);
    let op = s.start("boot.lan");
    assert!(s.running(op));
}

#[test]
fn an_alias_without_its_address_is_asked_for() {
    let mut s = Script::new(&[SERVER]);
    let op = s.start("boot.lan");
    let asked = s.asked();
    s.answer(SERVER, &asked, &asked.reply(Rcode::NO_ERROR, false, &[Record::Cname("boot.lan", 60, "Tftp.lan")]));
    let second = s.asked();
    assert_eq!((second.name.as_slice(), second.udp.src_port == asked.udp.src_port), (&b"Tftp.lan"[..], false));
    // Another lookup that meets an alias meanwhile waits until this one is done.
    let other = s.start("nfs.lan");
    let theirs = s.asked();
    let alias = theirs.reply(Rcode::NO_ERROR, false, &[Record::Cname("nfs.lan", 60, "files.lan")]);
    s.answer(SERVER, &theirs, &alias);
    s.silent();
    assert_eq!(s.rig.count(Counter::DropDnsForged), 0);
    s.answer(SERVER, &second, &second.addresses(&[ip(1)]));
    assert_eq!((s.step(op), s.found(op)), (Step::Done(Ok(1)), vec![ip(1)]));
    s.rig.advance(1000);
    let theirs = s.asked();
    assert_eq!(theirs.name, b"nfs.lan");
    let alias = theirs.reply(Rcode::NO_ERROR, false, &[Record::Cname("nfs.lan", 60, "files.lan")]);
    s.answer(SERVER, &theirs, &alias);
    let last = s.asked();
    assert_eq!(last.name, b"files.lan");
    s.answer(SERVER, &last, &last.addresses(&[ip(2)]));
    assert_eq!((s.step(other), s.found(other)), (Step::Done(Ok(1)), vec![ip(2)]));
    // The name that was asked for is remembered, with its alias's address.
    let op = s.start("boot.lan");
    assert_eq!(s.found(op), [ip(1)]);
    s.silent();
}

#[test]
fn aliases_that_lead_round_or_nowhere_end() {
    let mut s = Script::new(&[SERVER]);
    let round = [Record::Cname("boot.lan", 60, "b.lan"), Record::Cname("b.lan", 60, "boot.lan")];
    let op = s.start("boot.lan");
    let asked = s.asked();
    s.answer(SERVER, &asked, &asked.reply(Rcode::NO_ERROR, false, &round));
    assert_eq!((s.step(op), s.sockets()), (Step::Done(Err(Error::Loop)), 0));
    s.close(op);
    // One alias in each answer: eight are followed.
    let op = s.start("boot.lan");
    let mut queries = 0;
    while s.running(op) {
        let asked = s.asked();
        queries += 1;
        let name: &'static str = std::string::String::from_utf8(asked.name.clone()).unwrap().leak();
        let target = if name == "boot.lan" { "b.lan" } else { "boot.lan" };
        s.answer(SERVER, &asked, &asked.reply(Rcode::NO_ERROR, false, &[Record::Cname(name, 60, target)]));
    }
    assert_eq!((queries, s.step(op)), (9, Step::Done(Err(Error::Loop))));
    s.close(op);
    // An alias of a name that is not there.
    let op = s.start("boot.lan");
    let asked = s.asked();
    s.answer(SERVER, &asked, &asked.reply(Rcode::NO_ERROR, false, &[Record::Cname("boot.lan", 60, "b.lan")]));
    let second = s.asked();
    s.answer(SERVER, &second, &second.reply(Rcode::NAME_ERROR, false, &[]));
    assert_eq!((s.step(op), s.rcode(op)), (Step::Done(Err(Error::NotFound)), 3));
}

#[test]
fn a_cancelled_lookup_leaves_nothing() {
    let mut s = Script::new(&[SERVER]);
    let op = s.start("boot.lan");
    let asked = s.asked();
    s.answer(SERVER, &asked, &asked.reply(Rcode::NO_ERROR, false, &[Record::Cname("boot.lan", 60, "b.lan")]));
    s.asked();
    s.close(op);
    assert_eq!(s.sockets(), 0);
    let op = s.start("nfs.lan");
    let asked = s.asked();
    s.answer(SERVER, &asked, &asked.reply(Rcode::NO_ERROR, false, &[Record::Cname("nfs.lan", 60, "b.lan")]));
    assert_eq!(s.asked().name, b"b.lan", "the place of the alias is free");
    assert!(s.running(op));
}

#[test]
fn a_server_that_does_not_answer_arp_gives_way() {
    let mut s = Script::new(&[]);
    s.rig.know(OTHER);
    s.rig.engine.shared.resolver.set_servers(&[SERVER.ip, OTHER.ip]);
    let op = s.start("boot.lan");
    s.silent();
    s.rig.advance(1000);
    let asked = s.asked();
    assert_eq!(asked.udp.dst, OTHER.ip);
    s.answer(OTHER, &asked, &asked.addresses(&[ip(1)]));
    assert_eq!(s.step(op), Step::Done(Ok(1)));
}

#[test]
fn other_servers_make_the_cache_forget() {
    let mut s = Script::new(&[SERVER]);
    s.lookup("boot.lan", &[ip(1)]);
    s.rig.engine.shared.resolver.set_servers(&[SERVER.ip]);
    s.lookup("boot.lan", &[ip(2)]);
    // More names than there is room for: the newest are there.
    for n in ["a.lan", "b.lan", "c.lan", "d.lan"] {
        s.rig.advance(10);
        s.lookup(n, &[ip(3)]);
    }
    for (name, known) in [("boot.lan", false), ("a.lan", true), ("d.lan", true)] {
        let op = s.start(name);
        assert_eq!(s.step(op) == Step::Done(Ok(1)), known, "{name}");
        s.close(op);
    }
}

#[test]
fn a_lookup_says_when_it_has_something_to_do() {
    let mut s = Script::new(&[SERVER]);
    let op = s.start("boot.lan");
    s.rig.engine.tick();
    let at = s.rig.now() + Duration::from_secs(1);
    assert_eq!((s.step(op), s.rig.engine.deadline()), (Step::Pending(at), at));
}
