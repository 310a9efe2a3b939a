//! Packet scripts: a server of the test's own against the client.

use super::{Client as Dhcp, KEPT, Phase, Request};
use crate::client::operation::{DetailKind, Step};
use crate::client::ops::Client;
use crate::sim::host::{SimLease, StoredParts};
use crate::sim::packets::{self, Station, UdpSeen};
use crate::sim::rig::{Limits, Rig};
use crate::stack::interface::Cidr;
use crate::stack::route::{Route, RouteOrigin};
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::{LeasePart, LogEvent, NicCaps};
use crate::storage::slots::Key;
use crate::storage::time::{Duration, Instant};
use crate::wire::dhcp::{Builder, Message, MessageType, Op, Repr, code};
use crate::wire::ethernet::Address;
use crate::wire::ipv4::Protocol;
use core::net::Ipv4Addr;
use std::vec;
use std::vec::Vec;

const SERVER: Station = Station::new(1);
const ROGUE: Station = Station::new(2);
const MASK: [u8; 4] = [255, 255, 255, 0];

const fn ip(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n)
}

/// A message of a server: what a test changes, beside the options.
#[derive(Clone, Debug)]
struct Reply {
    xid: u32,
    kind: Option<MessageType>,
    yiaddr: Ipv4Addr,
    siaddr: Ipv4Addr,
    chaddr: Address,
    file: Vec<u8>,
    sname: Vec<u8>,
    options: Vec<(u8, Vec<u8>)>,
    from: Station,
    mac: Address,
    dst: Ipv4Addr,
}

impl Reply {
    /// The usual offer to, or acknowledgement of, `asked`: 10.0.0.9/24 for 1000 s from 10.0.0.1.
    fn new(kind: MessageType, asked: &Asked) -> Reply {
        Reply {
            xid: asked.xid,
            kind: Some(kind),
            yiaddr: ip(9),
            siaddr: Ipv4Addr::UNSPECIFIED,
            chaddr: Station::new(9).mac,
            file: vec![],
            sname: vec![],
            options: vec![
                (code::SERVER_ID, SERVER.ip.octets().to_vec()),
                (code::LEASE_TIME, 1000u32.to_be_bytes().to_vec()),
                (code::SUBNET_MASK, MASK.to_vec()),
            ],
            from: SERVER,
            mac: Address::BROADCAST,
            dst: Ipv4Addr::BROADCAST,
        }
    }

    fn nak(asked: &Asked, server: Option<Ipv4Addr>) -> Reply {
        let mut nak = Reply::new(MessageType::Nak, asked);
        nak.yiaddr = Ipv4Addr::UNSPECIFIED;
        nak.options = server.map(|s| (code::SERVER_ID, s.octets().to_vec())).into_iter().collect();
        nak.options.push((code::MESSAGE, b"no\x07 lease".to_vec()));
        nak
    }

    fn without(mut self, code: u8) -> Reply {
        self.options.retain(|(c, _)| *c != code);
        self
    }

    /// With one option more, or another value.
    fn with(self, code: u8, value: &[u8]) -> Reply {
        let mut reply = self.without(code);
        reply.options.push((code, value.to_vec()));
        reply
    }

    fn message(&self) -> Vec<u8> {
        let mut buf = [0u8; 1400];
        let repr = Repr {
            op: Op::Reply,
            xid: self.xid,
            secs: 0,
            broadcast: false,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            yiaddr: self.yiaddr,
            siaddr: self.siaddr,
            giaddr: Ipv4Addr::UNSPECIFIED,
            chaddr: self.chaddr,
            sname: &self.sname,
            file: &self.file,
        };
        let mut b = Builder::new(&mut buf, &repr).unwrap();
        if let Some(kind) = self.kind {
            b.message_type(kind).unwrap();
        }
        for (code, value) in &self.options {
            b.option(*code, value).unwrap();
        }
        b.finish().to_vec()
    }

    fn frame(&self) -> Vec<u8> {
        packets::udp(self.from, 67, Station { mac: self.mac, ip: self.dst }, 68, &self.message())
    }
}

/// A message of the client, taken apart.
#[derive(Clone, Debug)]
struct Asked {
    xid: u32,
    kind: MessageType,
    secs: u16,
    flags: [u8; 2],
    ciaddr: Ipv4Addr,
    chaddr: Address,
    options: Vec<(u8, Vec<u8>)>,
    udp: UdpSeen,
}

impl Asked {
    fn new(udp: UdpSeen) -> Asked {
        let m = Message::parse(&udp.payload).unwrap();
        assert_eq!((m.op(), udp.src_port), (Op::Request, 68));
        assert!(udp.payload.len() >= 300, "as long as BOOTP messages are");
        Asked {
            xid: m.xid(),
            kind: m.message_type().unwrap(),
            secs: m.secs(),
            flags: [udp.payload[10], udp.payload[11]],
            ciaddr: m.ciaddr(),
            chaddr: m.chaddr(),
            options: m.options().map(|(c, v)| (c, v.to_vec())).collect(),
            udp: udp.clone(),
        }
    }

    fn option(&self, code: u8) -> Option<&[u8]> {
        let mut found = self.options.iter().filter(|(c, _)| *c == code);
        let value = found.next().map(|(_, v)| v.as_slice());
        assert!(found.next().is_none(), "option {code} is sent once");
        value
    }

    fn address(&self, code: u8) -> Option<Ipv4Addr> {
        self.option(code).map(|v| Ipv4Addr::from(<[u8; 4]>::try_from(v).unwrap()))
    }
}

/// A rig whose NIC asks for an address.
struct Script {
    rig: Rig,
    op: Key,
    lease: SimLease,
}

type Wanted = Request<Vec<u8>>;

impl Script {
    fn new(change: impl FnOnce(&mut Wanted)) -> Script {
        Script::on(Rig::bare(1, Limits::default(), NicCaps::empty(), true), change)
    }

    fn on(mut rig: Rig, change: impl FnOnce(&mut Wanted)) -> Script {
        let mut request = Request::new(rig.nic);
        change(&mut request);
        let lease = SimLease::default();
        let op = rig.engine.start(Client::Dhcp(super::op::Dhcp::new(request, lease.clone()))).unwrap();
        Script { rig, op, lease }
    }

    fn client(&self) -> &Dhcp {
        self.rig.engine.shared.dhcp.get(usize::from(self.rig.nic.0)).unwrap()
    }

    fn phase(&self) -> Phase {
        self.client().phase()
    }

    fn step(&self) -> Step {
        self.rig.engine.ops.get(self.op).unwrap().step
    }

    fn input(&mut self, reply: &Reply) {
        self.rig.input(&reply.frame());
    }

    /// The server's hardware address is known for the next minute.
    fn know_server(&mut self) {
        let nic = self.rig.nic;
        self.rig.engine.stack.forget(nic);
        self.rig.know(SERVER);
    }

    /// DHCP messages sent since the last look; ARP and others are dropped.
    fn all(&mut self) -> Vec<Asked> {
        self.rig.sent_udp().into_iter().filter(|u| u.src_port == 68).map(Asked::new).collect()
    }

    /// The one DHCP message sent since the last look.
    fn asked(&mut self) -> Asked {
        let mut all = self.all();
        assert_eq!(all.len(), 1, "one message");
        all.remove(0)
    }

    /// Answers DISCOVER and REQUEST as the server of `offer` and `ack`.
    fn negotiate(&mut self, offer: impl Fn(Reply) -> Reply, ack: impl Fn(Reply) -> Reply) -> Asked {
        let discover = self.asked();
        assert_eq!(discover.kind, MessageType::Discover);
        self.input(&offer(Reply::new(MessageType::Offer, &discover)));
        let request = self.asked();
        assert_eq!(request.kind, MessageType::Request);
        self.input(&ack(Reply::new(MessageType::Ack, &request)));
        request
    }

    fn bound_to(&self) -> Option<Ipv4Addr> {
        self.rig.engine.stack.interface(self.rig.nic).unwrap().addresses().first().map(|c| c.addr)
    }

    fn assert_bound(&mut self) {
        self.rig.advance(60);
        assert_eq!((self.step(), self.phase(), self.bound_to()), (Step::Done(Ok(0)), Phase::Bound, Some(ip(9))));
    }

    fn routes(&self) -> Vec<Route> {
        self.rig.engine.stack.routes.iter().copied().collect()
    }

    fn stored(&self) -> StoredParts {
        self.lease.0.borrow().clone()
    }

    fn count(&self, counter: Counter) -> u32 {
        self.rig.count(counter)
    }
}

fn bound(change: impl FnOnce(&mut Wanted), ack: impl Fn(Reply) -> Reply) -> Script {
    let mut script = Script::new(change);
    script.negotiate(|o| o, ack);
    script.assert_bound();
    script.all();
    script
}

#[test]
fn discover_offer_request_ack_bind() {
    let mut s = Script::new(|r| {
        r.host_name = Some(b"board".to_vec());
        r.client_id = Some(vec![1, 2, 0, 0, 0, 0, 9]);
        r.parameters = Some(vec![224]);
    });
    assert_eq!(s.phase(), Phase::Selecting);
    let discover = s.asked();
    assert_eq!(
        (discover.udp.mac, discover.udp.src, discover.udp.dst, discover.udp.dst_port),
        (Address::BROADCAST, Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, 67)
    );
    assert_eq!((discover.ciaddr, discover.chaddr, discover.secs), (Ipv4Addr::UNSPECIFIED, s.rig.us.mac, 0));
    assert_eq!(discover.option(code::HOST_NAME), Some(&b"board"[..]));
    assert_eq!(discover.option(code::MAX_MESSAGE_SIZE), Some(&1500u16.to_be_bytes()[..]));
    let codes = discover.option(code::PARAMETER_LIST).unwrap();
    let at = |c| codes.iter().position(|x| *x == c).unwrap();
    assert!(at(121) < at(3), "RFC 3442");
    for wanted in [1, 3, 6, 12, 15, 17, 26, 28, 42, 43, 51, 54, 58, 59, 66, 67, 150, 224] {
        assert!(codes.contains(&wanted), "{wanted} is asked for");
    }
    s.input(&Reply::new(MessageType::Offer, &discover));
    let request = s.asked();
    assert_eq!((request.kind, request.xid, request.secs), (MessageType::Request, discover.xid, discover.secs));
    assert_eq!((request.address(50), request.address(54)), (Some(ip(9)), Some(SERVER.ip)));
    assert_eq!(request.option(code::CLIENT_ID), discover.option(code::CLIENT_ID));
    let ack = Reply::new(MessageType::Ack, &request)
        .with(code::ROUTER, &[10, 0, 0, 254])
        .with(code::DNS_SERVER, &[10, 0, 0, 53, 10, 0, 0, 54])
        .with(code::DOMAIN_NAME, b"example.org\0")
        .with(code::INTERFACE_MTU, &1400u16.to_be_bytes());
    s.input(&ack);
    let probe = s.rig.sent().iter().filter_map(|f| packets::parse_arp(f)).next().expect("an ARP probe");
    assert_eq!((probe.sender_ip, probe.target_ip), (Ipv4Addr::UNSPECIFIED, ip(9)));
    assert_eq!((s.phase(), s.bound_to()), (Phase::Probing, None));
    s.assert_bound();
    let interface = s.rig.engine.stack.interface(s.rig.nic).unwrap();
    assert_eq!(interface.addresses(), &[Cidr { addr: ip(9), prefix: 24 }]);
    assert_eq!(interface.mtu, 1400);
    let nic = s.rig.nic;
    let route = Route { network: Ipv4Addr::UNSPECIFIED, prefix: 0, gateway: ip(254), nic, origin: RouteOrigin::Dhcp };
    assert_eq!(s.routes(), [route]);
    assert_eq!(s.rig.engine.shared.resolver.servers().collect::<Vec<_>>(), [ip(53), ip(54)]);
    assert_eq!(s.rig.engine.shared.resolver.search(), b"example.org");
    assert_eq!(s.stored(), [(LeasePart::Address, ack.message())]);
    let log = s.rig.engine.stack.host.log.borrow().clone();
    assert_eq!(log, [(LogEvent::DhcpBound, u64::from(nic.0), u64::from(ip(9).to_bits()))]);
}

mod acquire;
mod hold;
mod pxe;
