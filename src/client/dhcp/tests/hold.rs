//! From BOUND to the end of the lease.

use super::*;

fn seconds(option: u8, s: u32) -> impl Fn(Reply) -> Reply {
    move |reply| reply.with(option, &s.to_be_bytes())
}

/// Bound for `lease` seconds since second 1, with these T1 and T2.
fn lease(lease: u32, t1: Option<u32>, t2: Option<u32>) -> Script {
    bound(
        |_| (),
        |a| {
            let mut a = seconds(code::LEASE_TIME, lease)(a).with(code::ROUTER, &[10, 0, 0, 254]);
            if let Some(t1) = t1 {
                a = seconds(code::RENEWAL_TIME, t1)(a);
            }
            if let Some(t2) = t2 {
                a = seconds(code::REBINDING_TIME, t2)(a);
            }
            a
        },
    )
}

/// Runs to the time `ms` after the request.
fn run_to(s: &mut Script, ms: u64) {
    let at = Instant::from_micros(1_000_000) + Duration::from_millis(ms);
    s.rig.advance(at.since(s.rig.now()).as_millis().saturating_sub(1));
    s.know_server();
    s.rig.advance(at.since(s.rig.now()).as_millis());
    assert_eq!(s.rig.now(), at);
}

#[test]
fn case_d14_times_out_of_order_give_way_to_half_and_seven_eighths() {
    for (lease_s, t1, t2, renew_ms, rebind_ms) in [
        (100, Some(80), Some(40), 50_000, 87_500),
        (100, None, Some(200), 50_000, 87_500),
        (100, Some(0), None, 50_000, 87_500),
        (100, Some(50), Some(50), 50_000, 87_500),
        (100, Some(100), Some(100), 50_000, 87_500),
        (100, Some(90), None, 50_000, 87_500),
        (1, None, None, 500, 875),
        (1, Some(1), Some(1), 500, 875),
        // The nearest that is in order.
        (100, Some(39), Some(40), 39_000, 40_000),
        (100, Some(30), None, 30_000, 87_500),
        (100, None, Some(99), 50_000, 99_000),
    ] {
        let mut s = lease(lease_s, t1, t2);
        let what = std::format!("lease {lease_s}, T1 {t1:?}, T2 {t2:?}");
        run_to(&mut s, renew_ms - 1);
        assert_eq!((s.phase(), s.all().len()), (Phase::Bound, 0), "{what}");
        run_to(&mut s, renew_ms);
        let renew = s.asked();
        assert_eq!(
            (s.phase(), renew.kind, renew.udp.dst),
            (Phase::Renewing, MessageType::Request, SERVER.ip),
            "{what}"
        );
        run_to(&mut s, rebind_ms - 1);
        assert_eq!((s.phase(), s.all().len()), (Phase::Renewing, 0), "{what}");
        run_to(&mut s, rebind_ms);
        let rebind = s.asked();
        assert_eq!((s.phase(), rebind.udp.dst), (Phase::Rebinding, Ipv4Addr::BROADCAST), "{what}");
    }
    let mut s = bound(|_| (), |a| a.with(code::LEASE_TIME, &[0xff; 4]).with(code::RENEWAL_TIME, &[0, 0, 0, 9]));
    s.rig.advance(1000 * 86_400_000);
    assert_eq!((s.phase(), s.all().len()), (Phase::Bound, 0), "without end");
}

#[test]
fn case_d14_what_renewal_and_rebinding_send() {
    let mut s = bound(
        |r| (r.client_id, r.host_name) = (Some(b"\0id".to_vec()), Some(b"board".to_vec())),
        |mut a| {
            a.siaddr = ip(99);
            seconds(code::LEASE_TIME, 100)(a)
        },
    );
    run_to(&mut s, 50_000);
    let renew = s.asked();
    assert_eq!((renew.udp.mac, renew.udp.src, renew.udp.dst, renew.udp.dst_port), (SERVER.mac, ip(9), SERVER.ip, 67));
    run_to(&mut s, 87_500);
    let rebind = s.asked();
    assert_eq!((rebind.udp.mac, rebind.udp.src, rebind.udp.dst), (Address::BROADCAST, ip(9), Ipv4Addr::BROADCAST));
    assert_ne!(renew.xid, rebind.xid);
    for asked in [renew, rebind] {
        assert_eq!((asked.kind, asked.ciaddr, asked.flags), (MessageType::Request, ip(9), [0, 0]));
        assert_eq!((asked.option(50), asked.option(54)), (None, None));
        assert_eq!((asked.option(61), asked.option(12)), (Some(&b"\0id"[..]), Some(&b"board"[..])));
        assert!(asked.option(55).is_some());
    }
}

#[test]
fn case_d14_unanswered_the_address_goes_at_the_second() {
    let mut s = lease(100, None, None);
    run_to(&mut s, 99_999);
    assert_eq!((s.bound_to(), s.client().lease().unwrap().expires()), (Some(ip(9)), Instant::from_micros(101_000_000)));
    assert_eq!(s.rig.engine.deadline(), Instant::from_micros(101_000_000));
    s.all();
    run_to(&mut s, 100_000);
    assert_eq!((s.bound_to(), s.routes().len(), s.phase()), (None, 0, Phase::Selecting));
    let discover = s.asked();
    assert_eq!((discover.kind, discover.udp.src), (MessageType::Discover, Ipv4Addr::UNSPECIFIED));
    let nic = usize::from(s.rig.nic.0);
    assert_eq!(s.rig.engine.shared.dhcp.take_lost(nic), Some(ip(9)));
    assert_eq!(s.rig.engine.shared.dhcp.take_lost(nic), None, "told once");
    let log = s.rig.engine.stack.host.log.borrow().clone();
    assert_eq!(log.last(), Some(&(LogEvent::DhcpLost, 0, u64::from(ip(9).to_bits()))));
    // It goes on looking, and finds.
    s.input(&Reply::new(MessageType::Offer, &discover));
    let request = s.asked();
    s.input(&Reply::new(MessageType::Ack, &request));
    s.rig.advance(60);
    assert_eq!((s.phase(), s.bound_to()), (Phase::Bound, Some(ip(9))));
}

#[test]
fn case_d14_an_answer_prolongs_and_takes_nothing_away_that_it_does_not_name() {
    let mut s = Script::new(|_| ());
    s.negotiate(
        |o| o,
        |a| {
            seconds(code::LEASE_TIME, 100)(a)
                .with(121, &[24, 10, 7, 7, 10, 0, 0, 3, 0, 10, 0, 0, 254])
                .with(code::DNS_SERVER, &[10, 0, 0, 53])
                .with(code::DOMAIN_NAME, b"lan")
                .with(code::INTERFACE_MTU, &1400u16.to_be_bytes())
        },
    );
    s.assert_bound();
    s.all();
    let before = (s.routes(), s.rig.engine.stack.interface(s.rig.nic).unwrap().addresses().to_vec());
    assert_eq!(before.0.len(), 2);
    run_to(&mut s, 50_000);
    let renew = s.asked();
    let bare = seconds(code::LEASE_TIME, 100)(Reply::new(MessageType::Ack, &renew).without(code::SUBNET_MASK));
    // Not from our server; of another address; of another transaction.
    s.input(&bare.clone().with(code::SERVER_ID, &ROGUE.ip.octets()));
    let mut other = bare.clone();
    other.yiaddr = ip(10);
    s.input(&other);
    let mut stale = bare.clone();
    stale.xid ^= 1;
    s.input(&stale);
    assert_eq!(s.phase(), Phase::Renewing);
    s.input(&bare);
    let after = (s.routes(), s.rig.engine.stack.interface(s.rig.nic).unwrap().addresses().to_vec());
    assert_eq!((s.phase(), &after), (Phase::Bound, &before));
    assert_eq!(s.rig.engine.stack.interface(s.rig.nic).unwrap().mtu, 1400);
    assert_eq!(s.rig.engine.shared.resolver.servers().collect::<Vec<_>>(), [ip(53)]);
    assert_eq!(s.rig.engine.shared.resolver.search(), b"lan");
    assert_eq!(s.client().lease().unwrap().expires(), Instant::from_micros(1_000_000) + Duration::from_secs(150));
    // What it does name counts: other routes, another server while rebinding.
    run_to(&mut s, 137_500);
    let rebind = s.all().pop().unwrap();
    assert_eq!((s.phase(), rebind.udp.dst), (Phase::Rebinding, Ipv4Addr::BROADCAST));
    let ack = Reply::new(MessageType::Ack, &rebind)
        .with(code::SERVER_ID, &ROGUE.ip.octets())
        .with(code::ROUTER, &[10, 0, 0, 200])
        .with(code::SUBNET_MASK, &[255, 255, 0, 0]);
    s.input(&ack);
    assert_eq!(s.phase(), Phase::Bound);
    assert_eq!(s.routes().iter().map(|r| r.gateway).collect::<Vec<_>>(), [ip(200)]);
    let interface = s.rig.engine.stack.interface(s.rig.nic).unwrap();
    assert_eq!(interface.addresses(), &[Cidr { addr: ip(9), prefix: 16 }]);
    let lease = s.client().lease().unwrap();
    assert_eq!((lease.server, lease.expires().since(s.rig.now()).as_secs()), (ROGUE.ip, 1000));
    assert_eq!(s.stored().len(), 1, "the operation's store has the first acknowledgement alone");
}

#[test]
fn renewal_repeats_at_half_of_what_is_left_but_no_sooner_than_a_minute() {
    let mut s = lease(1000, None, None);
    let mut at = vec![];
    while s.bound_to().is_some() {
        s.know_server();
        s.rig.advance(100);
        let ms = s.rig.now().since(Instant::from_micros(1_000_000)).as_millis() / 100 * 100;
        at.extend(s.all().iter().filter(|a| a.kind == MessageType::Request).map(|a| (ms, a.udp.dst == SERVER.ip)));
    }
    let (unicast, broadcast) = (true, false);
    let expected = [
        (500_000, unicast),
        (687_500, unicast),
        (781_200, unicast),
        (841_200, unicast),
        (875_000, broadcast),
        (937_500, broadcast),
        (997_500, broadcast),
    ];
    let near: Vec<(u64, bool)> = at.iter().map(|(ms, u)| (*ms / 1000, *u)).collect();
    let wanted: Vec<(u64, bool)> = expected.iter().map(|(ms, u)| (*ms / 1000, *u)).collect();
    assert_eq!(near, wanted);
}

#[test]
fn the_lease_outlives_its_operation_and_needs_no_slot_and_no_socket() {
    let limits = Limits { ops: 1, sockets: 0, ..Limits::default() };
    let mut s = Script::on(Rig::bare(1, limits, NicCaps::empty(), true), |r| r.client_id = Some(b"\0id".to_vec()));
    s.negotiate(|o| o, seconds(code::LEASE_TIME, 100));
    s.assert_bound();
    s.rig.engine.close(s.op).unwrap();
    assert_eq!((s.phase(), s.bound_to()), (Phase::Bound, Some(ip(9))));
    s.all();
    for n in 1..20 {
        run_to(&mut s, n * 50_000);
        let renew = s.asked();
        assert_eq!(renew.option(61), Some(&b"\0id"[..]));
        s.input(&seconds(code::LEASE_TIME, 100)(Reply::new(MessageType::Ack, &renew)));
    }
    assert_eq!((s.phase(), s.bound_to()), (Phase::Bound, Some(ip(9))));
}

#[test]
fn an_address_is_given_back_to_its_server() {
    let mut s = bound(|r| r.client_id = Some(b"\0id".to_vec()), |a| a.with(code::ROUTER, &[10, 0, 0, 254]));
    let nic = s.rig.nic;
    s.rig.engine.dhcp_release(nic).unwrap();
    // The server's hardware address is asked for first.
    assert_eq!(s.phase(), Phase::Releasing);
    s.rig.answer_arp(SERVER);
    let release = s.asked();
    assert_eq!((release.kind, release.ciaddr, release.udp.dst), (MessageType::Release, ip(9), SERVER.ip));
    let mut codes: Vec<u8> = release.options.iter().map(|(c, _)| *c).collect();
    codes.sort_unstable();
    assert_eq!((codes, release.address(54)), (vec![53, 54, 61], Some(SERVER.ip)));
    assert_eq!((s.phase(), s.bound_to(), s.routes().len()), (Phase::Off, None, 0));
    assert_eq!(s.rig.engine.shared.dhcp.take_lost(0), None, "it is not lost");
    assert_eq!(s.rig.engine.dhcp_release(nic), Err(Error::AddressNotOurs));
    // A server that is gone holds it up for a second.
    let mut s = bound(|_| (), |a| a);
    s.rig.engine.dhcp_release(nic).unwrap();
    s.rig.advance(999);
    assert_eq!(s.bound_to(), Some(ip(9)));
    s.rig.advance(1);
    assert_eq!((s.phase(), s.bound_to()), (Phase::Off, None));
}

#[test]
fn an_address_of_the_hosts_own_ends_the_lease() {
    let mut s = bound(|_| (), |a| a.with(code::DNS_SERVER, &[10, 0, 0, 53]));
    let nic = s.rig.nic;
    s.rig.engine.dhcp_stop(nic);
    assert_eq!((s.phase(), s.bound_to(), s.rig.engine.shared.resolver.servers().count()), (Phase::Off, None, 0));
    // Or the host takes the address away behind its back.
    let mut s = bound(|_| (), |a| a.with(code::ROUTER, &[10, 0, 0, 254]));
    s.rig.engine.stack.interface_mut(nic).unwrap().remove_address(ip(9));
    s.rig.engine.tick();
    assert_eq!((s.phase(), s.routes().len()), (Phase::Off, 0));
    s.rig.advance(2_000_000);
    assert!(s.all().is_empty());
    // While an operation waits, it fails.
    let mut s = Script::new(|_| ());
    s.rig.engine.dhcp_stop(nic);
    s.rig.engine.follow();
    assert_eq!(s.step(), Step::Done(Err(Error::Cancelled)));
    let mut s = Script::new(|_| ());
    s.rig.engine.stack.remove_interface(nic);
    s.rig.engine.tick();
    assert_eq!((s.step(), s.phase()), (Step::Done(Err(Error::NetworkDown)), Phase::Off));
}

#[test]
fn an_interface_with_all_its_addresses_takes_no_lease() {
    let mut s = Script::new(|_| ());
    let interface = s.rig.engine.stack.interface_mut(s.rig.nic).unwrap();
    for n in 100..104 {
        assert!(interface.add_address(Cidr { addr: ip(n), prefix: 24 }));
    }
    s.negotiate(|o| o, |a| a);
    s.rig.advance(60);
    assert_eq!((s.step(), s.phase()), (Step::Done(Err(Error::NoSlot)), Phase::Off));
}

#[test]
fn a_link_that_comes_up_again_has_the_lease_confirmed() {
    let mut s = bound(|_| (), |a| a);
    let nic = s.rig.nic;
    s.rig.engine.stack.set_link(nic, false);
    s.rig.engine.tick();
    s.rig.engine.stack.set_link(nic, true);
    s.rig.engine.tick();
    let asked = s.asked();
    assert_eq!((s.phase(), asked.udp.dst, asked.ciaddr), (Phase::Rebinding, Ipv4Addr::BROADCAST, ip(9)));
    assert_eq!(s.bound_to(), Some(ip(9)), "it is used meanwhile");
    s.input(&Reply::new(MessageType::Ack, &asked));
    assert_eq!(s.phase(), Phase::Bound);
    // Another network's server refuses: the address goes.
    s.rig.engine.stack.set_link(nic, false);
    s.rig.engine.stack.set_link(nic, true);
    s.rig.engine.tick();
    let asked = s.asked();
    s.input(&Reply::nak(&asked, Some(ROGUE.ip)));
    assert_eq!((s.bound_to(), s.rig.engine.shared.dhcp.take_lost(0)), (None, Some(ip(9))));
    assert_eq!(s.asked().kind, MessageType::Discover);
}

#[test]
fn asking_anew_while_bound_begins_with_the_same_address() {
    let s = bound(|_| (), |a| a.with(code::ROUTER, &[10, 0, 0, 254]));
    let mut s = Script::on(s.rig, |_| ());
    assert_eq!((s.bound_to(), s.routes().len()), (None, 0));
    let discover = s.asked();
    assert_eq!((discover.kind, discover.address(50)), (MessageType::Discover, Some(ip(9))));
}

/// Time since the beginning, in microseconds, and frame.
type Trace = Vec<(u64, Vec<u8>)>;

/// A lease of 60 days whose clock starts at `start_ms`: bound, renewed once, then lost.
fn long_lease(start_ms: u64) -> Trace {
    let mut rig = Rig::bare(3, Limits::default(), NicCaps::empty(), true);
    let start = Instant::from_micros(start_ms * 1000);
    rig.engine.set_now(start);
    let start = rig.now();
    let mut s = Script::on(rig, |_| ());
    let mut trace = Trace::new();
    let mut renewed = 0;
    let mut bound_once = false;
    while trace.len() < 200 {
        let sent = s.rig.sent();
        let at = s.rig.now().since(start).as_micros();
        trace.extend(sent.iter().map(|f| (at, f.clone())));
        for udp in sent.iter().filter_map(|f| packets::parse_udp(f)) {
            let asked = Asked::new(udp);
            let mut reply =
                Reply::new(MessageType::Ack, &asked).with(code::LEASE_TIME, &(60u32 * 86_400).to_be_bytes());
            match (asked.kind, asked.ciaddr.is_unspecified()) {
                (MessageType::Discover, _) if !bound_once => reply.kind = Some(MessageType::Offer),
                (MessageType::Request, true) => {}
                (MessageType::Request, false) if renewed == 0 => renewed += 1,
                _ => continue,
            }
            s.rig.advance(3);
            s.input(&reply);
        }
        if s.rig.wire.borrow().sent.is_empty() {
            if s.phase() == Phase::Selecting && bound_once {
                return trace;
            }
            bound_once |= s.phase() == Phase::Bound;
            let next = s.client().deadline().since(s.rig.now()).as_millis();
            s.rig.advance(next.saturating_sub(1));
            s.know_server();
            s.rig.advance(2);
        }
    }
    trace
}

#[test]
fn case_k01_dhcp_times_across_a_wrap_of_32_bit_milliseconds() {
    // Rigs begin at one second; the other clock is 0xFFFFFF00 ms there.
    let plain = long_lease(1000);
    let wrapped = long_lease(0xffff_ff00);
    assert_eq!(plain, wrapped);
    let days = |us: u64| us / 86_400_000_000;
    let kinds: Vec<(u64, MessageType)> =
        plain.iter().filter_map(|(at, f)| packets::parse_udp(f).map(|u| (days(*at), Asked::new(u).kind))).collect();
    assert_eq!(kinds[0], (0, MessageType::Discover));
    assert_eq!(kinds[2], (30, MessageType::Request), "T1 of 60 days is day 30");
    assert_eq!(kinds.last().unwrap(), &(90, MessageType::Discover), "lost 60 days after the renewal");
    assert!(plain.len() < 120, "{} frames", plain.len());
}
