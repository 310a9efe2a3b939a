//! Boot data from another server than the one that gives the address.

use super::*;

const PROXY: Station = Station::new(3);
const BOOT: Station = Station::new(4);

/// A proxyDHCP server's offer: class, no address, and a boot file unless `menu` sends the client to a boot server.
fn proxy(asked: &Asked, file: &[u8], vendor: &[u8]) -> Reply {
    let mut reply = Reply::new(MessageType::Offer, asked).without(code::LEASE_TIME).without(code::SUBNET_MASK);
    reply.yiaddr = Ipv4Addr::UNSPECIFIED;
    reply.siaddr = PROXY.ip;
    reply.from = PROXY;
    reply.file = file.to_vec();
    reply.with(code::SERVER_ID, &PROXY.ip.octets()).with(code::VENDOR_CLASS, b"PXEClient").with(43, vendor)
}

/// Discovery control: use the file of the offer.
const USE_FILE: [u8; 4] = [6, 1, 8, 255];

fn pxe(r: &mut Wanted) {
    r.pxe = true;
    r.arch = Some(7);
    r.ndi = Some([1, 3, 16]);
    r.uuid = Some([9; 16]);
}

#[test]
fn a_pxe_client_says_what_it_is() {
    let mut s = Script::new(pxe);
    let discover = s.asked();
    assert_eq!(discover.option(60), Some(&b"PXEClient:Arch:00007:UNDI:003016"[..]));
    assert_eq!((discover.option(93), discover.option(94)), (Some(&[0, 7][..]), Some(&[1, 3, 16][..])));
    assert_eq!(discover.option(97).map(<[u8]>::len), Some(17));
    let mut s = Script::new(|r| (r.pxe, r.arch) = (true, Some(65_535)));
    assert_eq!(s.asked().option(60), Some(&b"PXEClient:Arch:65535:UNDI:002001"[..]));
}

#[test]
fn case_d07_proxy_first_then_the_address_server() {
    let mut s = Script::new(pxe);
    let discover = s.asked();
    let boot = proxy(&discover, b"boot.efi", &USE_FILE);
    s.input(&boot);
    assert_eq!((s.phase(), s.all().len()), (Phase::Selecting, 0), "no lease is taken from it");
    s.input(&Reply::new(MessageType::Offer, &discover));
    let request = s.asked();
    assert_eq!((request.address(54), request.address(50)), (Some(SERVER.ip), Some(ip(9))));
    let ack = Reply::new(MessageType::Ack, &request);
    s.input(&ack);
    s.assert_bound();
    assert_eq!(s.stored(), [(LeasePart::Boot, boot.message()), (LeasePart::Address, ack.message())]);
    assert!(s.all().is_empty(), "the boot file is known: nothing is asked on port 4011");
    assert_eq!(s.client().lease().unwrap().server, SERVER.ip);
}

#[test]
fn case_d07_the_address_server_first() {
    let mut s = Script::new(pxe);
    let discover = s.asked();
    s.input(&Reply::new(MessageType::Offer, &discover));
    assert_eq!((s.phase(), s.all().len()), (Phase::Selecting, 0), "a proxy is waited for");
    s.rig.advance(400);
    // Offers that come meanwhile change nothing.
    let second = Reply::new(MessageType::Offer, &discover).with(code::SERVER_ID, &ROGUE.ip.octets());
    s.input(&second);
    s.input(&proxy(&discover, b"boot.efi", &USE_FILE));
    let request = s.asked();
    assert_eq!(request.address(54), Some(SERVER.ip), "both have answered: at once");
    s.input(&Reply::new(MessageType::Ack, &request));
    s.assert_bound();
    let parts: Vec<LeasePart> = s.stored().iter().map(|(p, _)| *p).collect();
    assert_eq!(parts, [LeasePart::Boot, LeasePart::Address]);
}

#[test]
fn case_d07_no_proxy_within_the_window() {
    let mut s = Script::new(pxe);
    let discover = s.asked();
    s.input(&Reply::new(MessageType::Offer, &discover));
    s.rig.advance(999);
    assert!(s.all().is_empty());
    s.rig.advance(1);
    let request = s.asked();
    assert_eq!((request.kind, request.address(54)), (MessageType::Request, Some(SERVER.ip)));
    // Too late: it is not an answer to anything.
    s.input(&proxy(&discover, b"boot.efi", &USE_FILE));
    assert_eq!(s.count(Counter::DropDhcpIgnored), 1);
    s.input(&Reply::new(MessageType::Ack, &request));
    s.assert_bound();
    assert_eq!(s.stored().len(), 1);
    // An offer that has everything in it is taken at once; a window can be had without PXE, and of another length.
    let mut s = Script::new(pxe);
    let discover = s.asked();
    let mut offer = Reply::new(MessageType::Offer, &discover).with(code::VENDOR_CLASS, b"PXEClient");
    offer.file = b"boot.efi".to_vec();
    s.input(&offer);
    assert_eq!(s.asked().kind, MessageType::Request);
    let mut s = Script::new(|r| r.proxy_wait = Some(Duration::from_millis(300)));
    let discover = s.asked();
    s.input(&Reply::new(MessageType::Offer, &discover));
    s.rig.advance(299);
    assert!(s.all().is_empty());
    s.rig.advance(1);
    assert_eq!(s.asked().kind, MessageType::Request);
}

#[test]
fn case_d07_a_proxy_alone_is_no_lease() {
    let mut s = Script::new(pxe);
    let discover = s.asked();
    s.input(&proxy(&discover, b"boot.efi", &USE_FILE));
    s.rig.advance(10_000);
    let all = s.all();
    assert!(all.len() >= 3 && all.iter().all(|a| a.kind == MessageType::Discover), "it keeps discovering");
    assert_eq!((s.phase(), s.bound_to()), (Phase::Selecting, None));
    // Its server comes late: all the same.
    let last = all.last().unwrap();
    s.input(&Reply::new(MessageType::Offer, last));
    let request = s.asked();
    s.input(&Reply::new(MessageType::Ack, &request));
    s.assert_bound();
    assert_eq!(s.stored().len(), 2);
    // A host that is no PXE client has no use for it.
    let mut s = Script::new(|_| ());
    let discover = s.asked();
    s.input(&proxy(&discover, b"boot.efi", &USE_FILE));
    assert_eq!((s.stored().len(), s.count(Counter::DropDhcpUnusable)), (0, 1));
    s.negotiate_after(&discover);
}

impl Script {
    fn negotiate_after(&mut self, discover: &Asked) {
        self.input(&Reply::new(MessageType::Offer, discover));
        let request = self.asked();
        self.input(&Reply::new(MessageType::Ack, &request));
        self.assert_bound();
    }
}

/// A menu with one boot server: type 0x8001 at BOOT.
const MENU: [u8; 26] =
    [6, 1, 7, 8, 7, 0x80, 1, 1, 10, 0, 0, 4, 9, 8, 0x80, 1, 5, b'L', b'i', b'n', b'u', b'x', 10, 1, 0, 255];

#[test]
fn case_d07_a_proxy_that_names_no_file_is_asked_on_port_4011() {
    for (vendor, asked_of, item) in [(&[255][..], PROXY, None), (&MENU[..], BOOT, Some([71, 4, 0x80, 1, 0, 0, 255]))] {
        let mut s = Script::new(pxe);
        let discover = s.asked();
        s.input(&proxy(&discover, b"", vendor));
        s.input(&Reply::new(MessageType::Offer, &discover));
        let request = s.asked();
        s.input(&Reply::new(MessageType::Ack, &request));
        s.rig.know(asked_of);
        s.rig.advance(60);
        assert_eq!((s.phase(), s.bound_to()), (Phase::Booting, Some(ip(9))));
        assert!(matches!(s.step(), Step::Pending(_)), "the operation waits for it");
        let boot = s.asked();
        assert_eq!((boot.kind, boot.xid, boot.ciaddr), (MessageType::Request, discover.xid, ip(9)));
        assert_eq!((boot.udp.src, boot.udp.dst, boot.udp.dst_port), (ip(9), asked_of.ip, 4011));
        assert_eq!((boot.option(50), boot.option(51)), (None, None));
        assert!(boot.option(60).is_some() && boot.option(93).is_some() && boot.option(97).is_some());
        assert_eq!(boot.option(43), item.as_ref().map(|i| &i[..]));
        // Somebody else's answer is none.
        let mut answer = proxy(&boot, b"boot.efi", &[255]).with(code::SERVER_ID, &asked_of.ip.octets());
        answer.kind = Some(MessageType::Ack);
        (answer.mac, answer.dst) = (s.rig.us.mac, ip(9));
        let mut wrong = answer.clone().with(code::SERVER_ID, &ROGUE.ip.octets());
        wrong.from = ROGUE;
        s.input(&wrong);
        assert_eq!(s.phase(), Phase::Booting);
        answer.from = asked_of;
        s.input(&answer);
        assert_eq!((s.phase(), s.step()), (Phase::Bound, Step::Done(Ok(0))));
        let stored = s.stored();
        assert_eq!(
            stored.iter().map(|(p, _)| *p).collect::<Vec<_>>(),
            [LeasePart::Boot, LeasePart::Address, LeasePart::Boot]
        );
        assert_eq!(stored[2].1, answer.message());
    }
}

#[test]
fn a_boot_server_that_does_not_answer_is_given_up_and_the_lease_kept() {
    let mut s = Script::new(pxe);
    let discover = s.asked();
    s.input(&proxy(&discover, b"", &[255]));
    s.input(&Reply::new(MessageType::Offer, &discover));
    let request = s.asked();
    s.input(&Reply::new(MessageType::Ack, &request));
    s.rig.know(PROXY);
    s.rig.advance(10_000);
    let all = s.all();
    assert_eq!((all.len(), all.iter().all(|a| a.udp.dst_port == 4011)), (3, true));
    assert_eq!((s.phase(), s.step(), s.bound_to()), (Phase::Bound, Step::Done(Ok(0)), Some(ip(9))));
    // Its times still count.
    s.rig.advance(490_000);
    s.rig.answer_arp(SERVER);
    assert_eq!(s.asked().udp.dst, SERVER.ip);
}

#[test]
fn an_address_server_that_has_boot_servers_sends_the_client_there() {
    let mut s = Script::new(pxe);
    let discover = s.asked();
    let combined = |kind, asked: &Asked| Reply::new(kind, asked).with(code::VENDOR_CLASS, b"PXEClient").with(43, &MENU);
    s.input(&combined(MessageType::Offer, &discover));
    s.rig.advance(1000);
    let request = s.asked();
    s.input(&combined(MessageType::Ack, &request));
    s.rig.know(BOOT);
    s.rig.advance(60);
    let boot = s.asked();
    assert_eq!((boot.udp.dst, boot.udp.dst_port), (BOOT.ip, 4011));
    // A file beside the menu counts if the server says so, else the menu does.
    for (control, asks) in [(7, 1), (8, 0)] {
        let mut menu = MENU;
        menu[2] = control;
        let mut s = Script::new(|r| (r.pxe, r.proxy_wait) = (true, Some(Duration::ZERO)));
        s.negotiate(
            |o| o,
            |mut a| {
                a.file = b"boot.efi".to_vec();
                a.with(code::VENDOR_CLASS, b"PXEClient").with(43, &menu)
            },
        );
        s.rig.know(BOOT);
        s.rig.advance(60);
        assert_eq!(s.all().len(), asks, "control {control}");
    }
    // A menu whose first item is the local disk asks nobody.
    let local = [9, 4, 0, 0, 1, b'x', 8, 7, 0x80, 1, 1, 10, 0, 0, 4, 255];
    let mut s = Script::new(|r| (r.pxe, r.proxy_wait) = (true, Some(Duration::ZERO)));
    s.negotiate(|o| o, |a| a.with(code::VENDOR_CLASS, b"PXEClient").with(43, &local));
    s.assert_bound();
    assert!(s.all().is_empty());
}
