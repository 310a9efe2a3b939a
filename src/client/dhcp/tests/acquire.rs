//! From DISCOVER to BOUND, or not.

use super::*;

/// Routes of option 121 and their gateways, as the table has them.
fn route(rig: &Rig, network: [u8; 4], prefix: u8, gateway: Ipv4Addr) -> Route {
    Route { network: Ipv4Addr::from(network), prefix, gateway, nic: rig.nic, origin: RouteOrigin::Dhcp }
}

#[test]
fn case_d03_options_in_pieces() {
    let mut s = Script::new(|_| ());
    let discover = s.asked();
    let offer = Reply::new(MessageType::Offer, &discover);
    let server = SERVER.ip.octets().to_vec();
    // The identifier comes twice: the first is the one.
    let mut twice = offer.clone();
    twice.options.push((code::SERVER_ID, server.clone()));
    s.input(&twice);
    let request = s.asked();
    assert_eq!(request.option(code::SERVER_ID), Some(&server[..]));
    let mut ack = Reply::new(MessageType::Ack, &request);
    ack.options.push((code::SERVER_ID, server));
    // One route in two pieces, one name in two pieces, each with another option between.
    ack.options.push((121, vec![24, 10, 5, 7, 10]));
    ack.options.push((67, b"boot/".to_vec()));
    ack.options.push((code::ROUTER, vec![10, 0, 0, 254]));
    ack.options.push((121, vec![0, 0, 2]));
    ack.options.push((67, b"img.bin".to_vec()));
    ack.options.push((43, vec![7; 275]));
    s.input(&ack);
    s.assert_bound();
    assert_eq!(s.routes(), [route(&s.rig, [10, 5, 7, 0], 24, ip(2))], "and option 3 does not count");
    let stored = s.stored()[0].1.clone();
    let message = Message::parse(&stored).unwrap();
    assert_eq!(message.text(67, &mut [0; 64]), Some(&b"boot/img.bin"[..]));
    let mut vendor = [0; 300];
    assert_eq!(message.copy_option(43, &mut vendor), Some(275));
    assert_eq!(vendor[..275], [7; 275]);
}

#[test]
fn case_d03_pieces_across_overloaded_fields() {
    let mut s = Script::new(|_| ());
    let request = {
        let discover = s.asked();
        s.input(&Reply::new(MessageType::Offer, &discover));
        s.asked()
    };
    // The route begins in the options and ends in `file`; `sname` has the router, which does not count.
    let mut ack = Reply::new(MessageType::Ack, &request).with(code::OVERLOAD, &[3]);
    ack.options.push((121, vec![24, 10, 5, 7, 10]));
    ack.file = vec![121, 3, 0, 0, 2, 255];
    ack.sname = vec![3, 4, 10, 0, 0, 254, 255];
    s.input(&ack);
    s.assert_bound();
    assert_eq!(s.routes(), [route(&s.rig, [10, 5, 7, 0], 24, ip(2))]);
}

#[test]
fn case_d04_a_nak_counts_from_the_selected_server_alone() {
    let mut s = Script::new(|_| ());
    let discover = s.asked();
    s.input(&Reply::new(MessageType::Offer, &discover));
    let request = s.asked();
    let mut rogue = Reply::nak(&request, Some(ROGUE.ip));
    rogue.from = ROGUE;
    s.input(&rogue);
    assert_eq!((s.phase(), s.count(Counter::DropDhcpIgnored)), (Phase::Requesting, 1));
    // The same identifier, from another host or with another transaction; none at all.
    let mut stale = Reply::nak(&request, Some(SERVER.ip));
    stale.xid ^= 1;
    s.input(&stale);
    s.input(&Reply::nak(&request, None));
    assert_eq!((s.phase(), s.count(Counter::DropDhcpIgnored)), (Phase::Requesting, 3));
    assert!(s.all().is_empty());
    s.input(&Reply::new(MessageType::Ack, &request));
    s.assert_bound();
    // Renewal is refused by the selected server: the address goes, and servers are looked for.
    s.rig.advance(499_900);
    s.know_server();
    s.rig.advance(100);
    let renewal = s.asked();
    assert_eq!((renewal.kind, s.phase()), (MessageType::Request, Phase::Renewing));
    let mut rogue = Reply::nak(&renewal, Some(ROGUE.ip));
    rogue.from = ROGUE;
    s.input(&rogue);
    assert_eq!((s.phase(), s.bound_to()), (Phase::Renewing, Some(ip(9))));
    s.input(&Reply::nak(&renewal, Some(SERVER.ip)));
    assert_eq!((s.phase(), s.bound_to()), (Phase::Selecting, None));
    assert_eq!(s.asked().kind, MessageType::Discover);
}

#[test]
fn case_d04_a_nak_to_us_restarts_after_a_delay_that_grows() {
    let mut s = Script::new(|_| ());
    let mut delays = vec![];
    for _ in 0..3 {
        let discover = s.asked();
        assert_eq!(discover.kind, MessageType::Discover);
        s.input(&Reply::new(MessageType::Offer, &discover));
        let request = s.asked();
        s.input(&Reply::nak(&request, Some(SERVER.ip)));
        assert_eq!((s.phase(), s.all().len()), (Phase::Init, 0));
        let start = s.rig.now();
        while s.phase() == Phase::Init {
            s.rig.advance(100);
        }
        delays.push(s.rig.now().since(start).as_secs());
    }
    assert_eq!(delays, [1, 2, 4]);
    let detail = &s.rig.engine.ops.get(s.op).unwrap().detail;
    assert_eq!(
        (detail.kind, detail.from, detail.text.as_slice()),
        (DetailKind::Dhcp, Some(SERVER.ip), &b"no? lease"[..])
    );
    s.negotiate(|o| o, |a| a);
    s.assert_bound();
}

#[test]
fn case_d05_the_request_repeats_the_server_identifier() {
    let mut s = Script::new(|r| r.client_id = Some(b"\0board-7".to_vec()));
    let discover = s.asked();
    assert_eq!(discover.option(code::CLIENT_ID), Some(&b"\0board-7"[..]));
    // Through a relay, with another boot server: neither counts.
    let mut offer = Reply::new(MessageType::Offer, &discover);
    offer.from = Station::new(254);
    offer.siaddr = ip(99);
    // Without the identifier an offer cannot be taken, nor with one that no host can have.
    s.input(&offer.clone().without(code::SERVER_ID));
    s.input(&offer.clone().with(code::SERVER_ID, &[0; 4]));
    s.input(&offer.clone().with(code::SERVER_ID, &[10, 0, 0]));
    assert_eq!((s.phase(), s.all().len(), s.count(Counter::DropDhcpUnusable)), (Phase::Selecting, 0, 3));
    s.input(&offer);
    let request = s.asked();
    assert_eq!((request.address(54), request.address(50)), (Some(SERVER.ip), Some(ip(9))));
    assert_eq!((request.ciaddr, request.udp.dst), (Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST));
    assert_eq!(request.option(code::CLIENT_ID), Some(&b"\0board-7"[..]));
    // An acknowledgement of another server, or of none, is not the one.
    let ack = Reply::new(MessageType::Ack, &request);
    s.input(&ack.clone().with(code::SERVER_ID, &ROGUE.ip.octets()));
    s.input(&ack.clone().without(code::SERVER_ID));
    assert_eq!((s.phase(), s.count(Counter::DropDhcpIgnored)), (Phase::Requesting, 2));
    s.input(&ack);
    s.assert_bound();
}

#[test]
fn case_d08_unusable_offers_are_passed_over() {
    type Change = fn(&mut Reply);
    let unusable: [(&str, Change); 13] = [
        ("0.0.0.0", |o| o.yiaddr = Ipv4Addr::UNSPECIFIED),
        ("255.255.255.255", |o| o.yiaddr = Ipv4Addr::BROADCAST),
        ("224.0.0.1", |o| o.yiaddr = Ipv4Addr::new(224, 0, 0, 1)),
        ("127.0.0.1", |o| o.yiaddr = Ipv4Addr::new(127, 0, 0, 1)),
        ("240.0.0.1", |o| o.yiaddr = Ipv4Addr::new(240, 0, 0, 1)),
        ("0.0.0.9", |o| o.yiaddr = Ipv4Addr::new(0, 0, 0, 9)),
        ("the network itself", |o| o.yiaddr = ip(0)),
        ("its broadcast address", |o| o.yiaddr = ip(255)),
        ("mask 255.0.255.0", |o| *o = o.clone().with(code::SUBNET_MASK, &[255, 0, 255, 0])),
        ("mask 0", |o| *o = o.clone().with(code::SUBNET_MASK, &[0; 4])),
        ("mask of 3 bytes", |o| *o = o.clone().with(code::SUBNET_MASK, &[255; 3])),
        ("mask 0.255.255.255", |o| *o = o.clone().with(code::SUBNET_MASK, &[0, 255, 255, 255])),
        ("lease 0", |o| *o = o.clone().with(code::LEASE_TIME, &[0; 4])),
    ];
    for (what, change) in unusable {
        let mut s = Script::new(|_| ());
        let discover = s.asked();
        let mut bad = Reply::new(MessageType::Offer, &discover).with(code::SERVER_ID, &ROGUE.ip.octets());
        bad.from = ROGUE;
        change(&mut bad);
        s.input(&bad);
        assert_eq!((s.phase(), s.all().len()), (Phase::Selecting, 0), "{what}");
        assert_eq!(s.count(Counter::DropDhcpUnusable), 1, "{what} is counted");
        s.input(&Reply::new(MessageType::Offer, &discover));
        let request = s.asked();
        assert_eq!(request.address(54), Some(SERVER.ip), "{what}: the good offer is taken");
        // The same in the acknowledgement: it is passed over.
        let mut bad = Reply::new(MessageType::Ack, &request);
        change(&mut bad);
        s.input(&bad);
        assert_eq!((s.phase(), s.count(Counter::DropDhcpUnusable)), (Phase::Requesting, 2), "{what}");
        s.input(&Reply::new(MessageType::Ack, &request));
        s.assert_bound();
    }
}

#[test]
fn case_d08_usable_terms_at_the_edge() {
    // An acknowledgement of another address than the one offered is not taken.
    let mut s = Script::new(|_| ());
    let discover = s.asked();
    s.input(&Reply::new(MessageType::Offer, &discover));
    let request = s.asked();
    let mut ack = Reply::new(MessageType::Ack, &request);
    ack.yiaddr = ip(10);
    s.input(&ack);
    assert_eq!((s.phase(), s.count(Counter::DropDhcpUnusable)), (Phase::Requesting, 1));
    s.input(&Reply::new(MessageType::Ack, &request));
    s.assert_bound();
    // A router outside the subnet is not used; the lease is. The next one may be inside.
    let s = bound(|_| (), |a| a.with(code::ROUTER, &[10, 9, 9, 1]));
    assert_eq!((s.routes().len(), s.count(Counter::DropDhcpUnusable)), (0, 1));
    let s = bound(|_| (), |a| a.with(code::ROUTER, &[10, 9, 9, 1, 10, 0, 0, 254]));
    assert_eq!(s.routes(), [route(&s.rig, [0; 4], 0, ip(254))]);
    // A lease without end: nothing is due any more.
    let mut s = bound(|_| (), |a| a.with(code::LEASE_TIME, &[0xff; 4]));
    assert_eq!((s.client().lease().unwrap().lease, s.client().deadline()), (None, Instant::NEVER));
    s.rig.advance(400 * 86_400_000);
    assert_eq!((s.all().len(), s.bound_to()), (0, Some(ip(9))));
    // Masks at the edge, and none: the address's class counts.
    for (mask, prefix) in [(&[255, 255, 255, 255][..], 32), (&[255, 255, 255, 254], 31), (&[128, 0, 0, 0], 1)] {
        let s = bound(|_| (), |a| a.with(code::SUBNET_MASK, mask));
        assert_eq!(s.client().lease().unwrap().prefix, prefix);
    }
    let s = bound(|_| (), |a| a.without(code::SUBNET_MASK));
    assert_eq!(s.client().lease().unwrap().prefix, 8);
    // A network of one address: the router is on the link all the same.
    let s = bound(|_| (), |a| a.with(code::SUBNET_MASK, &[255; 4]).with(code::ROUTER, &[10, 9, 9, 1]));
    let router = Ipv4Addr::new(10, 9, 9, 1);
    let on_link = route(&s.rig, [10, 9, 9, 1], 32, Ipv4Addr::UNSPECIFIED);
    assert_eq!(s.routes(), [on_link, route(&s.rig, [0; 4], 0, router)]);
    assert_eq!(s.rig.engine.stack.route(Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(8, 8, 8, 8), None).unwrap().next, router);
}

#[test]
fn case_d11_the_flag_and_every_way_of_delivery() {
    let mut s = Script::new(|_| ());
    assert_eq!(s.asked().flags, [0x80, 0]);
    let mut s = Script::new(|r| r.broadcast = false);
    assert_eq!(s.asked().flags, [0, 0]);
    let own = s.rig.us.mac;
    let ways = [
        ("broadcast", Address::BROADCAST, Ipv4Addr::BROADCAST),
        ("own MAC, the address offered", own, ip(9)),
        ("own MAC, limited broadcast", own, Ipv4Addr::BROADCAST),
        ("own MAC, broadcast of the subnet", own, ip(255)),
    ];
    for broadcast in [true, false] {
        for (what, mac, dst) in ways {
            let mut s = Script::new(|r| r.broadcast = broadcast);
            let deliver = |mut reply: Reply| {
                (reply.mac, reply.dst) = (mac, dst);
                reply
            };
            let request = s.negotiate(deliver, deliver);
            assert_eq!(request.flags, [if broadcast { 0x80 } else { 0 }, 0], "{what}");
            s.assert_bound();
        }
    }
    // Frames to others, messages for others and requests of other clients are dropped.
    let mut s = Script::new(|_| ());
    let discover = s.asked();
    let mut offer = Reply::new(MessageType::Offer, &discover);
    (offer.mac, offer.dst) = (Address([2, 0, 0, 0, 0, 77]), ip(9));
    s.input(&offer);
    assert_eq!((s.all().len(), s.count(Counter::DropNotOurs)), (0, 1));
    offer.mac = Address::BROADCAST;
    offer.chaddr = Address([2, 0, 0, 0, 0, 77]);
    s.input(&offer);
    let mut other = Reply::new(MessageType::Offer, &discover);
    other.xid = other.xid.wrapping_add(1);
    s.input(&other);
    let request = packets::udp(
        SERVER,
        68,
        Station { mac: Address::BROADCAST, ip: Ipv4Addr::BROADCAST },
        68,
        &discover.udp.payload,
    );
    s.rig.input(&request);
    assert_eq!((s.all().len(), s.count(Counter::DropDhcpIgnored)), (0, 3));
    s.input(&Reply::new(MessageType::Offer, &discover));
    assert_eq!(s.asked().kind, MessageType::Request);
}

#[test]
fn case_d15_classless_routes_instead_of_the_router() {
    // '00 0a000001 18 c0a805 0a000002', and another router in option 3.
    let list = [0, 10, 0, 0, 1, 24, 192, 168, 5, 10, 0, 0, 2];
    let both = |a: Reply| a.with(121, &list).with(code::ROUTER, &[10, 0, 0, 254]);
    let s = bound(|_| (), both);
    assert_eq!(s.routes(), [route(&s.rig, [0; 4], 0, ip(1)), route(&s.rig, [192, 168, 5, 0], 24, ip(2))]);
    // A host that does not trust them takes option 3.
    let s = bound(|r| r.classless_routes = false, both);
    assert_eq!(s.routes(), [route(&s.rig, [0; 4], 0, ip(254))]);
    // Width 33, a route cut short, no route at all: as if the option were not there.
    for bad in [&[33, 10, 0, 0, 1, 10, 0, 0, 2][..], &list[..12], &[0, 10, 0, 0], &[]] {
        let s = bound(|_| (), |a| a.with(121, bad).with(code::ROUTER, &[10, 0, 0, 254]));
        assert_eq!(s.routes(), [route(&s.rig, [0; 4], 0, ip(254))], "{bad:?}");
        assert_eq!(s.count(Counter::DropDhcpUnusable), 1, "{bad:?}");
    }
    // Significant octets only, the bits beyond the width masked off.
    let s = bound(|_| (), |a| a.with(121, &[20, 172, 16, 0xff, 10, 0, 0, 2]));
    assert_eq!(s.routes(), [route(&s.rig, [172, 16, 0xf0, 0], 20, ip(2))]);
    // Router 0.0.0.0: on the link.
    let s = bound(|_| (), |a| a.with(121, &[24, 192, 168, 5, 0, 0, 0, 0]));
    let far = Ipv4Addr::new(192, 168, 5, 77);
    assert_eq!(s.routes(), [route(&s.rig, [192, 168, 5, 0], 24, Ipv4Addr::UNSPECIFIED)]);
    assert_eq!(s.rig.engine.stack.route(Ipv4Addr::UNSPECIFIED, far, None).unwrap().next, far);
    // Neither option: no gateway is made up, and what is not on the link fails at once.
    let mut s = bound(|_| (), |a| a);
    assert_eq!(s.routes(), []);
    let engine = &mut s.rig.engine;
    let socket = engine.udp.open(&mut engine.stack, crate::udp::Owner::Queue).unwrap();
    let dst = crate::storage::host::Endpoint { addr: far, port: 7 };
    let sent = engine.udp.send(&mut engine.stack, socket, Some(dst), &[crate::storage::host::Span::Bytes(b"x")], true);
    assert_eq!(sent, Err(crate::stack::egress::TxError::NetworkUnreachable));
    assert!(s.rig.sent().is_empty(), "nothing is asked by ARP");
}

/// What a switch port sends while it is blocked: a spanning tree frame (IEEE 802.1D §9.3.1) in LLC form.
fn bpdu() -> Vec<u8> {
    let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 0x99, 0, 38, 0x42, 0x42, 3];
    frame.resize(60, 0);
    frame
}

#[test]
fn case_d17_discovers_for_longer_than_a_switch_port_is_blocked() {
    for seed in 0..20 {
        let mut s = Script::on(Rig::bare(seed, Limits::default(), NicCaps::empty(), true), |_| ());
        let start = s.rig.now();
        let ms = |s: &Script| s.rig.now().since(start).as_millis();
        let mut frames = 0;
        let mut bound_at = None;
        while bound_at.is_none() && ms(&s) < 64_000 {
            for asked in s.all() {
                frames += 1;
                if ms(&s) < 30_000 {
                    continue;
                }
                let kind = if asked.kind == MessageType::Discover { MessageType::Offer } else { MessageType::Ack };
                s.input(&Reply::new(kind, &asked));
            }
            if ms(&s) < 30_000 && ms(&s).is_multiple_of(2000) {
                s.rig.input(&bpdu());
            }
            s.rig.advance(10);
            bound_at = (s.phase() == Phase::Bound).then(|| ms(&s));
        }
        assert!(bound_at.is_some(), "bound within 64 s");
        assert!(frames <= 12, "{frames} frames");
        assert_eq!(s.count(Counter::DropLlc), 15);
        assert_eq!(s.step(), Step::Done(Ok(0)));
    }
}

#[test]
fn case_d17_a_link_that_comes_up_again_begins_anew() {
    let mut s = Script::new(|_| ());
    s.rig.advance(31_000);
    let old = s.all();
    let gap = old.len();
    assert!((5..=8).contains(&gap), "{gap} frames in 31 s");
    let nic = s.rig.nic;
    s.rig.engine.stack.set_link(nic, false);
    s.rig.advance(500);
    assert!(s.all().is_empty());
    s.rig.engine.stack.set_link(nic, true);
    s.rig.engine.tick();
    let first = s.asked();
    assert_eq!((first.kind, first.secs), (MessageType::Discover, 0));
    assert_ne!(first.xid, old[0].xid);
    s.rig.advance(1250);
    s.asked();
    s.rig.advance(2500);
    s.asked();
    // So does a flap too short to be seen down.
    s.rig.engine.stack.set_link(nic, false);
    s.rig.engine.stack.set_link(nic, true);
    s.rig.engine.tick();
    s.negotiate(|o| o, |a| a);
    s.assert_bound();
}

#[test]
fn case_d17_the_caller_sets_the_budget() {
    let mut s = Script::new(|r| r.timeout = Some(Duration::from_millis(2500)));
    s.rig.advance(2499);
    assert!(matches!(s.step(), Step::Pending(_)));
    s.rig.advance(1);
    assert_eq!((s.step(), s.phase()), (Step::Done(Err(Error::Timeout)), Phase::Off));
    s.all();
    s.rig.advance(60_000);
    assert!(s.all().is_empty(), "and nothing goes on");
    // No budget: for ever, at most every 16 s or so.
    let mut s = Script::new(|r| r.timeout = None);
    s.rig.advance(3_600_000);
    let frames = s.all().len();
    assert!(matches!(s.step(), Step::Pending(_)) && (200..=260).contains(&frames), "{frames} in an hour");
}

#[test]
fn waits_double_and_differ_with_the_seed() {
    let times = |seed| {
        let mut s = Script::on(Rig::bare(seed, Limits::default(), NicCaps::empty(), true), |_| ());
        let start = s.rig.now();
        let mut at = vec![];
        while at.len() < 7 {
            at.extend(s.all().iter().map(|_| s.rig.now().since(start).as_millis()));
            s.rig.advance(1);
        }
        at
    };
    let one = times(1);
    let waits: Vec<u64> = one.windows(2).map(|w| w[1] - w[0]).collect();
    for (wait, (least, most)) in
        waits.iter().zip([(750, 1260), (1500, 2510), (3000, 5010), (7000, 9010), (15_000, 17_010), (15_000, 17_010)])
    {
        assert!((least..=most).contains(wait), "{waits:?}");
    }
    assert_ne!(one, times(2));
    assert_eq!(one, times(1), "a seed replays");
}

#[test]
fn case_d19_vendor_options_of_any_kind_do_not_disturb_the_lease() {
    let raspberry = b"\x06\x01\x08\x09\x14\x00\x00\x11Raspberry-Pi-Boot\x0a\x04\x00PXE\xff".to_vec();
    let without_end = raspberry[..raspberry.len() - 1].to_vec();
    let mut long = raspberry.clone();
    long[1] = 200;
    let mut end_first = raspberry.clone();
    end_first.insert(0, 255);
    let mut padded = raspberry.clone();
    padded.splice(3..3, [0, 0, 0]);
    let text = b"Raspberry Pi Boot".to_vec();
    for vendor in [raspberry, without_end, long, end_first, padded, text, vec![]] {
        for pxe in [false, true] {
            let s = bound(
                |r| (r.pxe, r.proxy_wait) = (pxe, Some(Duration::ZERO)),
                |a| a.with(code::VENDOR_SPECIFIC, &vendor).with(code::VENDOR_CLASS, b"PXEClient"),
            );
            let stored = s.stored();
            let message = Message::parse(&stored[0].1).unwrap();
            let mut raw = [0; 64];
            assert_eq!(message.copy_option(43, &mut raw), Some(vendor.len()), "raw bytes can be read back");
            assert_eq!(raw[..vendor.len()], vendor);
        }
    }
    let s = bound(|_| (), |a| a.without(code::VENDOR_SPECIFIC));
    assert!(!Message::parse(&s.stored()[0].1).unwrap().has_option(43));
}

#[test]
fn an_address_in_use_is_declined_and_another_one_asked_for() {
    let mut s = Script::new(|r| r.client_id = Some(b"\0id".to_vec()));
    let ack = |a: Reply| a.with(code::ROUTER, &[10, 0, 0, 254]).with(code::DNS_SERVER, &[10, 0, 0, 53]);
    let request = s.negotiate(|o| o, ack);
    let other = Station { mac: Address([2, 0, 0, 0, 0, 0x77]), ip: ip(9) };
    s.rig.input(&packets::arp_reply(other, Station { mac: s.rig.us.mac, ip: Ipv4Addr::UNSPECIFIED }));
    s.rig.sent();
    s.rig.advance(60);
    let decline = s.asked();
    assert_eq!((decline.kind, decline.xid, decline.ciaddr), (MessageType::Decline, request.xid, Ipv4Addr::UNSPECIFIED));
    assert_eq!((decline.address(50), decline.address(54)), (Some(ip(9)), Some(SERVER.ip)));
    let mut codes: Vec<u8> = decline.options.iter().map(|(c, _)| *c).collect();
    codes.sort_unstable();
    assert_eq!(codes, [50, 53, 54, 61], "and nothing else");
    assert_eq!((s.bound_to(), s.routes().len(), s.rig.engine.shared.resolver.servers().count()), (None, 0, 0));
    let log = s.rig.engine.stack.host.log.borrow().clone();
    assert_eq!(log.last(), Some(&(LogEvent::AddressConflict, 0, u64::from(ip(9).to_bits()))));
    // RFC 2131 §3.1 (5): ten seconds.
    s.rig.advance(9930);
    assert!(s.all().is_empty());
    s.rig.advance(100);
    let discover = s.asked();
    assert_eq!((discover.kind, discover.address(50)), (MessageType::Discover, None));
    let offer = |mut o: Reply| {
        o.yiaddr = ip(10);
        o
    };
    s.input(&offer(Reply::new(MessageType::Offer, &discover)));
    let request = s.asked();
    s.input(&offer(Reply::new(MessageType::Ack, &request)));
    s.rig.advance(60);
    assert_eq!((s.step(), s.bound_to()), (Step::Done(Ok(0)), Some(ip(10))));
    assert_eq!(s.stored().len(), 1, "what the declined lease said is forgotten");
}

#[test]
fn without_a_probe_the_lease_counts_at_once() {
    let mut s = Script::new(|r| r.probe = false);
    s.negotiate(|o| o, |a| a);
    assert_eq!((s.step(), s.bound_to()), (Step::Done(Ok(0)), Some(ip(9))));
    // Nobody was asked, so what a watch of somebody else's has heard says nothing.
    let mut s = Script::new(|r| r.probe = false);
    let nic = s.rig.nic;
    s.rig.engine.stack.probe(nic, ip(9)).unwrap();
    let other = Station { mac: Address([2, 0, 0, 0, 0, 0x77]), ip: ip(9) };
    s.rig.input(&packets::arp_reply(other, Station { mac: s.rig.us.mac, ip: Ipv4Addr::UNSPECIFIED }));
    assert!(s.rig.engine.stack.interface(nic).unwrap().probe.is_some_and(|p| p.conflict));
    s.negotiate(|o| o, |a| a);
    assert_eq!((s.step(), s.bound_to()), (Step::Done(Ok(0)), Some(ip(9))));
}

#[test]
fn bootp_replies_are_leases_without_end_if_they_are_wanted() {
    let reply = |asked: &Asked| {
        let mut reply = Reply::new(MessageType::Offer, asked).without(code::SERVER_ID).without(code::LEASE_TIME);
        reply.kind = None;
        reply.file = b"boot.img".to_vec();
        reply
    };
    let mut s = Script::new(|_| ());
    let discover = s.asked();
    let mut nobody = reply(&discover);
    nobody.yiaddr = Ipv4Addr::UNSPECIFIED;
    s.input(&nobody);
    assert_eq!((s.phase(), s.count(Counter::DropDhcpUnusable)), (Phase::Selecting, 1));
    s.input(&reply(&discover));
    assert!(s.all().is_empty(), "nothing is to be requested");
    s.assert_bound();
    assert_eq!(s.client().lease().unwrap().lease, None);
    assert_eq!(s.stored(), [(LeasePart::Address, reply(&discover).message())]);
    s.rig.advance(100 * 86_400_000);
    assert_eq!((s.all().len(), s.bound_to()), (0, Some(ip(9))));
    // It has nobody to be given back to.
    let nic = s.rig.nic;
    s.rig.engine.dhcp_release(nic).unwrap();
    assert_eq!((s.all().len(), s.bound_to(), s.phase()), (0, None, Phase::Off));

    let mut s = Script::new(|r| r.bootp = false);
    let discover = s.asked();
    s.input(&reply(&discover));
    assert_eq!((s.phase(), s.count(Counter::DropDhcpIgnored)), (Phase::Selecting, 1));
}

#[test]
fn the_address_of_before_is_asked_for_straight_away() {
    let wanted = |r: &mut Wanted| (r.reboot, r.address) = (true, Some(ip(9)));
    let mut s = Script::new(wanted);
    let request = s.asked();
    assert_eq!(
        (request.kind, request.ciaddr, request.address(50)),
        (MessageType::Request, Ipv4Addr::UNSPECIFIED, Some(ip(9)))
    );
    assert_eq!((request.option(54), request.udp.dst), (None, Ipv4Addr::BROADCAST));
    s.input(&Reply::new(MessageType::Ack, &request));
    s.assert_bound();
    // Refused: from the beginning, at once, and without asking for it.
    let mut s = Script::new(wanted);
    let request = s.asked();
    s.input(&Reply::nak(&request, Some(ROGUE.ip)));
    let discover = s.asked();
    assert_eq!((discover.kind, discover.address(50)), (MessageType::Discover, None));
    // Not answered: from the beginning, asking for it.
    let mut s = Script::new(wanted);
    s.rig.advance(3800);
    let kinds: Vec<MessageType> = s.all().iter().map(|a| a.kind).collect();
    assert_eq!(kinds, [MessageType::Request, MessageType::Request, MessageType::Discover]);
    s.rig.advance(1300);
    let discover = s.asked();
    assert_eq!((discover.kind, discover.address(50)), (MessageType::Discover, Some(ip(9))));
    // Without an address it makes no sense.
    let s = Script::new(|r| r.reboot = true);
    assert_eq!(s.step(), Step::Done(Err(Error::Invalid)));
}

#[test]
fn parameters_alone() {
    let mut s = Script::on(Rig::new(1), |r| r.inform = true);
    let inform = s.asked();
    assert_eq!((inform.kind, inform.ciaddr, inform.udp.src), (MessageType::Inform, ip(9), ip(9)));
    assert_eq!((inform.option(50), inform.option(54), inform.option(51)), (None, None, None));
    let mut ack =
        Reply::new(MessageType::Ack, &inform).without(code::LEASE_TIME).with(code::DNS_SERVER, &[10, 0, 0, 53]);
    ack.yiaddr = Ipv4Addr::UNSPECIFIED;
    (ack.mac, ack.dst) = (s.rig.us.mac, ip(9));
    s.input(&ack);
    assert_eq!((s.step(), s.phase()), (Step::Done(Ok(0)), Phase::Informed));
    assert_eq!(s.rig.engine.shared.resolver.servers().collect::<Vec<_>>(), [ip(53)]);
    assert_eq!(s.stored(), [(LeasePart::Address, ack.message())]);
    s.rig.advance(100_000);
    assert!(s.all().is_empty());
    assert_eq!(s.bound_to(), Some(ip(9)), "the host's own address stays");
    // Without an address it cannot be.
    let s = Script::new(|r| r.inform = true);
    assert_eq!(s.step(), Step::Done(Err(Error::Invalid)));
}

#[test]
fn options_of_the_host_go_with_every_message() {
    let mut s = Script::new(|r| {
        r.vendor_class = Some(b"board".to_vec());
        r.user_class = Some(b"recovery".to_vec());
        r.arch = Some(11);
        r.ndi = Some([1, 3, 16]);
        r.uuid = Some([7; 16]);
        r.lease_s = Some(600);
        r.options = Some(vec![224, 2, b'h', b'i', 0, 225, 0, 255]);
    });
    let discover = s.asked();
    s.input(&Reply::new(MessageType::Offer, &discover));
    let request = s.asked();
    for asked in [discover, request] {
        assert_eq!(asked.option(60), Some(&b"board"[..]));
        assert_eq!(asked.option(77), Some(&b"recovery"[..]));
        assert_eq!(asked.option(93), Some(&[0, 11][..]));
        assert_eq!(asked.option(94), Some(&[1, 3, 16][..]));
        assert_eq!(asked.option(97), Some(&[0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7][..]));
        assert_eq!(asked.option(51), Some(&600u32.to_be_bytes()[..]));
        assert_eq!((asked.option(224), asked.option(225)), (Some(&b"hi"[..]), Some(&b""[..])));
    }
    let fails = |change: fn(&mut Wanted)| Script::new(change).step();
    for bad in [&[224, 5, 1][..], &[53, 1, 1], &[50, 4, 1, 2, 3, 4], &[54, 4, 1, 2, 3, 4], &[55, 1, 1], &[57, 2, 9, 9]]
    {
        let mut s = Script::new(|r| r.options = Some(bad.to_vec()));
        assert_eq!((s.step(), s.all().len()), (Step::Done(Err(Error::Invalid)), 0), "{bad:?}");
    }
    assert_eq!(fails(|r| r.host_name = Some(vec![b'a'; 256])), Step::Done(Err(Error::NameTooLong)));
    assert_eq!(fails(|r| r.parameters = Some(vec![200; 17])), Step::Done(Err(Error::NameTooLong)));
    assert_eq!(fails(|r| r.host_name = Some(vec![b'a'; KEPT - 1])), Step::Done(Err(Error::NameTooLong)));
    // As much as fits leaves in one message, with everything else.
    let mut s = Script::new(|r| {
        r.host_name = Some(vec![b'a'; KEPT - 2]);
        r.parameters = Some(vec![200; 16]);
        r.address = Some(ip(9));
        r.lease_s = Some(600);
    });
    let discover = s.asked();
    assert_eq!(discover.option(12).map(<[u8]>::len), Some(KEPT - 2));
    assert!(discover.udp.payload.len() <= 548);
    s.input(&Reply::new(MessageType::Offer, &discover));
    let request = s.asked();
    assert_eq!((request.option(12).map(<[u8]>::len), request.address(54)), (Some(KEPT - 2), Some(SERVER.ip)));
    assert_eq!(request.option(51), Some(&600u32.to_be_bytes()[..]));
}

#[test]
fn one_operation_at_a_time_and_cancel_leaves_nothing() {
    let mut s = Script::new(|_| ());
    let second = s
        .rig
        .engine
        .start(Client::Dhcp(super::super::op::Dhcp::new(Request::new(s.rig.nic), SimLease::default())))
        .unwrap();
    assert_eq!(s.rig.engine.ops.get(second).unwrap().step, Step::Done(Err(Error::InUse)));
    let none = Request::new(crate::stack::interface::NicId(1));
    let nobody = s.rig.engine.start(Client::Dhcp(super::super::op::Dhcp::new(none, SimLease::default()))).unwrap();
    assert_eq!(s.rig.engine.ops.get(nobody).unwrap().step, Step::Done(Err(Error::NetworkDown)));
    let ack = |a: Reply| a.with(code::ROUTER, &[10, 0, 0, 254]);
    s.negotiate(|o| o, ack);
    s.rig.engine.cancel(s.op, Error::Cancelled).unwrap();
    assert_eq!((s.step(), s.phase(), s.routes().len()), (Step::Done(Err(Error::Cancelled)), Phase::Off, 0));
    s.rig.advance(120_000);
    assert_eq!((s.all().len(), s.bound_to()), (0, None));
    // And it can be done again.
    let mut s = Script::on(s.rig, |_| ());
    s.negotiate(|o| o, |a| a);
    s.assert_bound();
}

#[test]
fn a_request_that_is_not_answered_is_given_up_for_another_server() {
    let mut s = Script::new(|_| ());
    let discover = s.asked();
    s.rig.advance(200);
    s.input(&Reply::new(MessageType::Offer, &discover));
    s.rig.advance(18_000);
    let all = s.all();
    let kinds: Vec<MessageType> = all.iter().map(|a| a.kind).collect();
    let requests = [MessageType::Request; 4];
    assert_eq!((&kinds[..4], kinds[4]), (&requests[..], MessageType::Discover));
    assert!(all[..4].iter().all(|a| a.xid == discover.xid && a.secs == discover.secs));
    assert_ne!(all[4].xid, discover.xid);
    assert!(all[4].secs > 10, "counted from the beginning");
}

#[test]
fn a_busy_nic_and_a_clock_that_stands_lose_nothing() {
    use crate::storage::host::SendError;
    let rig = Rig::bare(1, Limits::default(), NicCaps::empty(), true);
    let busy = |rig: &Rig| rig.wire.borrow_mut().script.extend([Some(SendError::Busy), None]);
    busy(&rig);
    let mut s = Script::on(rig, |_| ());
    assert!(s.all().is_empty());
    s.rig.advance(100);
    let discover = s.asked();
    busy(&s.rig);
    s.input(&Reply::new(MessageType::Offer, &discover));
    assert!(s.all().is_empty());
    // Woken: the request leaves at once. A clock that stands or steps back sends nothing twice.
    s.rig.engine.stack.wake = true;
    s.rig.engine.tick();
    let request = s.asked();
    let now = s.rig.now();
    for _ in 0..100 {
        s.rig.engine.set_now(now - Duration::from_millis(5));
        s.rig.engine.tick();
    }
    assert!(s.all().is_empty());
    busy(&s.rig);
    s.input(&Reply::new(MessageType::Ack, &request));
    assert!(s.rig.sent().is_empty());
    s.rig.advance(40);
    assert_eq!(s.phase(), Phase::Probing);
    assert_eq!(s.rig.sent().iter().filter_map(|f| packets::parse_arp(f)).count(), 1, "the probe is sent late");
    s.rig.advance(20);
    s.assert_bound();
}

#[test]
fn malformed_messages_are_counted_and_dropped() {
    let mut s = Script::new(|r| r.bootp = false);
    let discover = s.asked();
    let good = Reply::new(MessageType::Offer, &discover);
    let whole = good.message();
    let send = |s: &mut Script, bytes: &[u8]| {
        let us = Station { mac: Address::BROADCAST, ip: Ipv4Addr::BROADCAST };
        s.rig.input(&packets::udp(SERVER, 67, us, 68, bytes));
    };
    for len in 0..236 {
        send(&mut s, &whole[..len]);
    }
    assert_eq!((s.phase(), s.count(Counter::DropDhcpMalformed)), (Phase::Selecting, 236));
    // Cut within the options it is still a message: the cookie, message type or server identifier is not there.
    for len in 236..whole.iter().rposition(|b| *b == 255).unwrap() - 17 {
        send(&mut s, &whole[..len]);
        assert_eq!((s.phase(), s.all().len()), (Phase::Selecting, 0), "{len}");
    }
    s.input(&good);
    assert_eq!(s.asked().kind, MessageType::Request);
}

#[test]
fn a_bad_checksum_is_dropped_and_other_traffic_goes_its_way() {
    let mut s = Script::new(|_| ());
    let discover = s.asked();
    let mut frame = Reply::new(MessageType::Offer, &discover).frame();
    let last = frame.len() - 1;
    frame[last] ^= 1;
    s.rig.input(&frame);
    assert_eq!((s.phase(), s.count(Counter::DropUdpChecksum)), (Phase::Selecting, 1));
    // While no client is active, port 68 is the host's.
    let mut rig = Rig::new(1);
    let engine = &mut rig.engine;
    let socket = engine.udp.open(&mut engine.stack, crate::udp::Owner::Handler).unwrap();
    let local = crate::storage::host::Endpoint { addr: Ipv4Addr::UNSPECIFIED, port: 68 };
    engine.udp.bind(socket, None, local).unwrap();
    let frame = Reply::new(MessageType::Offer, &discover).frame();
    assert!(matches!(rig.receive(&frame).received, crate::client::engine::Received::Datagram { .. }));
}

#[test]
fn a_reply_in_fragments_counts() {
    let mut s = Script::new(|_| ());
    let discover = s.asked();
    s.input(&Reply::new(MessageType::Offer, &discover));
    let request = s.asked();
    let mut ack = Reply::new(MessageType::Ack, &request);
    ack.options.push((43, vec![1; 700]));
    let message = ack.message();
    let datagram = packets::udp_datagram((SERVER.ip, 67), (Ipv4Addr::BROADCAST, 68), &message);
    let everybody = Station { mac: Address::BROADCAST, ip: Ipv4Addr::BROADCAST };
    for frame in crate::sim::blocks::fragments(SERVER, everybody, Protocol::UDP, &datagram, 5, 552) {
        s.rig.input(&frame);
    }
    s.assert_bound();
    assert_eq!(s.stored(), [(LeasePart::Address, message)]);
}

#[test]
fn names_and_mtu_of_the_lease() {
    let search = b"\x03lab\x07example\0\x02hw\xc0\x04\x04bad \0";
    let s = bound(|_| (), |a| a.with(119, search).with(code::DOMAIN_NAME, b"other.example"));
    assert_eq!(s.rig.engine.shared.resolver.search(), b"lab.example hw.example");
    let s = bound(|_| (), |a| a.with(119, b"\x03lab").with(code::DOMAIN_NAME, b"other.example."));
    assert_eq!(s.rig.engine.shared.resolver.search(), b"other.example");
    let s = bound(|_| (), |a| a.with(code::DOMAIN_NAME, b"not a domain"));
    assert_eq!(s.rig.engine.shared.resolver.search(), b"");
    let s =
        bound(|_| (), |a| a.with(6, &[0, 0, 0, 0, 127, 0, 0, 1, 10, 0, 0, 1, 10, 0, 0, 2, 10, 0, 0, 3, 10, 0, 0, 4]));
    assert_eq!(s.rig.engine.shared.resolver.servers().collect::<Vec<_>>(), [ip(1), ip(2), ip(3)]);
    for (given, mtu) in [(1400u16, 1400), (576, 576), (575, 1500), (0, 1500), (9000, 1500)] {
        let s = bound(|_| (), |a| a.with(code::INTERFACE_MTU, &given.to_be_bytes()));
        let interface = s.rig.engine.stack.interface(s.rig.nic).unwrap();
        assert_eq!((interface.mtu, interface.frame_mtu), (mtu, 1500), "{given}");
    }
    // What the host set itself counts first.
    let mut s = Script::new(|_| ());
    s.rig.engine.shared.resolver.set_servers(&[ip(77)]);
    assert!(s.rig.engine.shared.resolver.set_search(b"host.example"));
    s.negotiate(|o| o, |a| a.with(6, &[10, 0, 0, 1]).with(code::DOMAIN_NAME, b"other.example"));
    s.assert_bound();
    assert_eq!(s.rig.engine.shared.resolver.servers().collect::<Vec<_>>(), [ip(77), ip(1)]);
    assert_eq!(s.rig.engine.shared.resolver.search(), b"host.example");
}
