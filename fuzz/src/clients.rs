//! Targets that talk to a client as its server: whatever is answered, the client must come to an end that its terms allow.

use bootlace::client::dhcp::op::Dhcp;
use bootlace::client::dhcp::{Phase, Request};
use bootlace::client::dns::op::Dns;
use bootlace::client::operation::Step;
use bootlace::client::ops::Client;
use bootlace::sim::host::SimLease;
use bootlace::sim::packets::{self, Station};
use bootlace::sim::rig::{Limits, Rig};
use bootlace::stack::interface::is_host_address;
use bootlace::storage::host::NicCaps;
use bootlace::storage::slots::Key;
use bootlace::storage::time::Duration;
use bootlace::wire::dhcp;
use bootlace::wire::ethernet::Address;
use core::net::Ipv4Addr;

const SERVER: Station = Station::new(1);

fn limits() -> Limits {
    Limits { nics: 1, tx: 0, wait: 1, sockets: 1, queue: 64, ops: 1, landing: 0, staging: 0, ..Limits::default() }
}

fn step(rig: &Rig, op: Key) -> Step {
    rig.engine.ops.get(op).expect("not closed").step
}

/// Takes the next answer off `data`: tens of milliseconds to wait first, length, bytes.
fn answer<'d>(data: &mut &'d [u8]) -> Option<(u64, &'d [u8])> {
    let (&[wait, a, b], tail) = data.split_first_chunk::<3>()?;
    let len = usize::from(u16::from_be_bytes([a, b])).min(tail.len());
    let (message, rest) = tail.split_at(len);
    *data = rest;
    Some((u64::from(wait) * 10, message))
}

/// A byte of switches, then answers (see [`answer`]) to a DHCP client, which get the transaction and hardware address
/// of what it sent last. An address that is set must be one, and go when its time is over.
pub fn dhcp_client(data: &[u8]) -> bool {
    let Some((&switches, mut data)) = data.split_first() else { return false };
    let mut rig = Rig::bare(1, limits(), NicCaps::empty(), true);
    let mut request = Request::<Vec<u8>>::new(rig.nic);
    request.pxe = switches & 1 != 0;
    request.bootp = switches & 2 == 0;
    request.probe = switches & 4 == 0;
    request.timeout = Some(Duration::from_secs(30));
    let lease = SimLease::default();
    let op = rig.engine.start(Client::Dhcp(Dhcp::new(request, lease.clone()))).expect("a free slot");
    let mut bound = false;
    let mut xid = [0; 4];
    let everybody = Station { mac: Address::BROADCAST, ip: Ipv4Addr::BROADCAST };
    while let Some((wait, message)) = answer(&mut data) {
        rig.advance(wait);
        for sent in rig.sent_udp() {
            let message = dhcp::Message::parse(&sent.payload).expect("ours parse");
            assert!(message.message_type().is_some() && sent.payload.len() <= 548);
            xid = message.xid().to_be_bytes();
        }
        let mut message = message.to_vec();
        if let Some(head) = message.get_mut(..34) {
            head[..3].copy_from_slice(&[2, 1, 6]);
            head[4..8].copy_from_slice(&xid);
            head[28..].copy_from_slice(&rig.us.mac.0);
        }
        rig.input(&packets::udp(SERVER, 67, everybody, 68, &message));
        let client = rig.engine.shared.dhcp.get(0).expect("one for each NIC");
        let addresses = rig.engine.stack.interface(rig.nic).expect("added").addresses();
        assert_eq!(addresses.first().map(|c| c.addr), client.lease().map(|l| l.addr));
        if let Some(lease) = client.lease() {
            assert!(is_host_address(lease.addr) && (1..=32).contains(&lease.prefix));
            assert!(
                lease.since <= rig.now() && lease.renews() <= lease.rebinds() && lease.rebinds() <= lease.expires()
            );
            bound |= client.phase() == Phase::Bound && !lease.server.is_unspecified();
        }
    }
    rig.advance(120_000);
    assert!(matches!(step(&rig, op), Step::Done(_)), "it ends");
    if let Some(lease) = rig.engine.shared.dhcp.get(0).and_then(|client| client.lease()) {
        assert!(rig.now() < lease.expires());
    }
    rig.sent();
    bound
}

/// Answers (see [`answer`]) to a lookup, which get the id of its last query. What is found must be hosts' addresses.
pub fn dns_client(mut data: &[u8]) -> bool {
    let mut rig = Rig::bare(1, limits(), NicCaps::empty(), true);
    let cidr = bootlace::stack::interface::Cidr { addr: rig.us.ip, prefix: 24 };
    rig.engine.stack.interface_mut(rig.nic).expect("added").add_address(cidr);
    rig.engine.shared.resolver.set_servers(&[SERVER.ip]);
    assert!(rig.engine.shared.resolver.set_search(b"lan"));
    rig.know(SERVER);
    let request = bootlace::client::dns::op::Request { name: b"boot".to_vec(), timeout: None };
    let op = rig.engine.start(Client::Dns(Dns::new(request))).expect("a free slot");
    let mut last = ([0; 2], 0);
    while let Some((wait, message)) = answer(&mut data) {
        rig.advance(wait);
        for sent in rig.sent_udp() {
            last = ([sent.payload[0], sent.payload[1]], sent.src_port);
        }
        let mut message = message.to_vec();
        if let Some(id) = message.get_mut(..2) {
            id.copy_from_slice(&last.0);
        }
        let us = rig.us;
        rig.input(&packets::udp(SERVER, 53, us, last.1, &message));
    }
    rig.advance(60_000);
    let Step::Done(end) = step(&rig, op) else { panic!("it ends") };
    let Client::Dns(lookup) = &rig.engine.ops.get(op).expect("not closed").client else { panic!("a lookup") };
    assert!(lookup.addresses().iter().all(|a| is_host_address(*a)));
    assert!(end.is_err() || end == Ok(lookup.addresses().len() as u64));
    assert!((0..=u16::MAX).all(|port| !rig.engine.udp.is_bound(port)), "no socket is left");
    end.is_ok()
}
