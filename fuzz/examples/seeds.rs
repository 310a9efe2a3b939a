//! Writes the corpus from the emitters: `cargo run --example seeds` in this folder. Run it again when a format changes.

use bootlace::wire::cursor::Writer;
use bootlace::wire::xdr::Encoder;
use bootlace::wire::{arp, dhcp, dns, ethernet, icmpv4, igmp, ipv4, mount, nfs3, portmap, rpc, tcp, tftp, udp};
use core::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const MAC: ethernet::Address = ethernet::Address([2, 0, 0, 0, 0, 2]);

fn save(target: &str, name: &str, bytes: &[u8]) {
    let (_, run) = bootlace_fuzz::TARGETS.into_iter().find(|(have, _)| *have == target).expect("a target");
    assert!(run(bytes), "{target}/{name} stops half way");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), bytes).unwrap();
}

fn main() {
    link();
    icmp();
    tcp();
    dhcp();
    dns();
    tftp();
    rpc();
    nfs();
    engine();
    clients();
    nfs_client();
    streams();
}

fn ip(protocol: ipv4::Protocol, payload_len: usize) -> ipv4::Repr {
    ipv4::Repr {
        source: SERVER,
        destination: OURS,
        protocol,
        payload_len: payload_len as u16,
        tos: 0,
        ttl: 64,
        identification: 1,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
    }
}

fn datagram() -> Vec<u8> {
    let udp = udp::Repr { source_port: 69, destination_port: 40000, payload_len: 5 };
    [&udp.emit([0x12, 0x34])[..], b"hello"].concat()
}

fn link() {
    let eth = ethernet::Repr { destination: MAC, source: MAC, ether_type: ethernet::EtherType::IPV4 };
    let udp = datagram();
    let header = ip(ipv4::Protocol::UDP, udp.len());
    let frame = [&eth.emit()[..], &header.emit([0; 2]), &udp].concat();
    save("eth_ip_udp", "plain", &frame);
    save("eth_ip_udp", "padded", &[&frame[..], &[0; 18]].concat());
    let tag = ethernet::Tag::new(5);
    save("eth_ip_udp", "vlan", &[&eth.emit_tagged(tag)[..], &header.emit([0; 2]), &udp].concat());
    save("eth_ip_udp", "options", &[&eth.emit()[..], &header.emit_router_alert([0; 2]), &udp].concat());
    let first = ipv4::Repr { more_fragments: true, dont_fragment: false, ..header };
    save("eth_ip_udp", "first_fragment", &[&eth.emit()[..], &first.emit([0; 2]), &udp].concat());
    let group = Ipv4Addr::new(239, 1, 2, 3);
    for (name, message) in [
        ("igmp_query", igmp::Message::Query { group, max_response_ds: 100 }),
        ("igmp_report", igmp::Message::Report { group }),
        ("igmp_leave", igmp::Message::Leave { group }),
    ] {
        let header = ip(ipv4::Protocol::IGMP, igmp::MESSAGE_LEN).emit_router_alert([0; 2]);
        save("eth_ip_udp", name, &[&eth.emit()[..], &header, &message.emit([0; 2])].concat());
    }
    for (name, operation) in [("request", arp::Operation::Request), ("reply", arp::Operation::Reply)] {
        let (sender_ip, target_ip) = (SERVER, OURS);
        let repr = arp::Repr { operation, sender_mac: MAC, sender_ip, target_mac: ethernet::Address::ZERO, target_ip };
        save("arp", name, &repr.emit());
        save("arp", &format!("{name}_padded"), &[&repr.emit()[..], &[0; 18]].concat());
    }
}

fn icmp() {
    let emit = |message: icmpv4::Message<'_>| [&message.emit_head([0; 2])[..], message.data()].concat();
    save("icmp", "echo_request", &emit(icmpv4::Message::EchoRequest { id: 1, seq: 2, data: b"abcdefgh" }));
    save("icmp", "echo_reply", &emit(icmpv4::Message::EchoReply { id: 1, seq: 2, data: b"abcdefgh" }));
    let udp = datagram();
    let quoted = &[&ip(ipv4::Protocol::UDP, udp.len()).emit([0; 2])[..], &udp[..8]].concat()[..];
    let segment = segment(tcp::Options::default(), tcp::Flags::ACK, b"");
    let quoted_tcp = &[&ip(ipv4::Protocol::TCP, 1000).emit([0; 2])[..], &segment[..8]].concat()[..];
    let (needed, port) = (icmpv4::Unreachable::FRAGMENTATION_NEEDED, icmpv4::Unreachable::PORT);
    save("icmp", "port", &emit(icmpv4::Message::Unreachable { code: port, next_hop_mtu: 0, quoted }));
    let message = icmpv4::Message::Unreachable { code: needed, next_hop_mtu: 1400, quoted: quoted_tcp };
    save("icmp", "fragmentation_needed", &emit(message));
    save("icmp", "time_exceeded", &emit(icmpv4::Message::TimeExceeded { code: 1, quoted }));
    save("icmp", "redirect", &emit(icmpv4::Message::Redirect { code: 1, gateway: SERVER, quoted }));
    save("icmp", "parameter_problem", &emit(icmpv4::Message::ParameterProblem { code: 0, pointer: 20, quoted }));
}

fn segment(options: tcp::Options, flags: tcp::Flags, payload: &[u8]) -> Vec<u8> {
    let (seq, ack) = (tcp::SeqNumber(0xffff_ff00), tcp::SeqNumber(7));
    let repr = tcp::Repr { source_port: 80, destination_port: 50000, seq, ack, flags, window: 65535, options };
    let mut buf = [0; tcp::MAX_HEADER_LEN];
    let len = repr.emit([0; 2], &mut buf).unwrap();
    [&buf[..len], payload].concat()
}

fn tcp() {
    let timestamps = Some(tcp::Timestamps { value: 1, echo: 2 });
    let syn = tcp::Options {
        max_segment_size: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps,
        ..tcp::Options::default()
    };
    let mut sack = tcp::SackBlocks::default();
    for left in [100, 300, 500] {
        sack.push(tcp::SackBlock { left: tcp::SeqNumber(left), right: tcp::SeqNumber(left + 100) });
    }
    save("tcp", "syn_ack", &segment(syn, tcp::Flags::SYN | tcp::Flags::ACK, b""));
    save("tcp", "data", &segment(tcp::Options::default(), tcp::Flags::ACK | tcp::Flags::PSH, b"data"));
    save("tcp", "timestamps", &segment(tcp::Options { timestamps, ..Default::default() }, tcp::Flags::ACK, b"data"));
    save("tcp", "sack", &segment(tcp::Options { sack, ..Default::default() }, tcp::Flags::ACK, b""));
    save(
        "tcp",
        "sack_timestamps",
        &segment(tcp::Options { sack, timestamps, ..Default::default() }, tcp::Flags::ACK, b""),
    );
    save("tcp", "fin", &segment(tcp::Options::default(), tcp::Flags::FIN | tcp::Flags::ACK, b""));
}

fn dhcp() {
    use dhcp::code;
    let repr = dhcp::Repr {
        op: dhcp::Op::Reply,
        xid: 0x1234_5678,
        secs: 1,
        broadcast: true,
        ciaddr: Ipv4Addr::UNSPECIFIED,
        yiaddr: OURS,
        siaddr: SERVER,
        giaddr: Ipv4Addr::UNSPECIFIED,
        chaddr: MAC,
        sname: b"server",
        file: b"boot/Image",
    };
    let mut buf = [0; 1500];
    let mut b = dhcp::Builder::new(&mut buf, &dhcp::Repr { op: dhcp::Op::Request, ..repr }).unwrap();
    b.message_type(dhcp::MessageType::Discover).unwrap();
    b.option(code::PARAMETER_LIST, &[1, 3, 6, 43, 66, 67, 121, 150]).unwrap();
    b.u16(code::MAX_MESSAGE_SIZE, 1472).unwrap();
    save("dhcp", "discover", b.finish());

    let mut buf = [0; 1500];
    let mut b = dhcp::Builder::new(&mut buf, &repr).unwrap();
    b.message_type(dhcp::MessageType::Ack).unwrap();
    b.ipv4(code::SERVER_ID, SERVER).unwrap();
    b.ipv4(code::SUBNET_MASK, Ipv4Addr::new(255, 255, 255, 0)).unwrap();
    b.u32(code::LEASE_TIME, 3600).unwrap();
    b.option(code::DNS_SERVER, &[10, 0, 0, 1, 10, 0, 0, 3]).unwrap();
    b.option(code::VENDOR_SPECIFIC, b"\x06\x01\x08\x00\x0a\x04\x00PXE\xff").unwrap();
    let mut routes = [0; 13];
    let mut w = Writer::new(&mut routes);
    let net = Ipv4Addr::new(192, 168, 5, 0);
    dhcp::put_route(&mut w, &dhcp::Route { prefix: Ipv4Addr::UNSPECIFIED, prefix_len: 0, router: SERVER }).unwrap();
    dhcp::put_route(&mut w, &dhcp::Route { prefix: net, prefix_len: 24, router: SERVER }).unwrap();
    b.option(code::CLASSLESS_ROUTES, &routes).unwrap();
    b.option(code::BOOT_FILE, &[b'x'; 300]).unwrap();
    let ack = b.finish().to_vec();
    save("dhcp", "ack", &ack);

    // Options in `file` and `sname` too, one of them in pieces.
    let mut buf = [0; 1500];
    let bare = dhcp::Repr { sname: b"\x43\x03bin\xff", file: b"\x43\x04img.\xff", ..repr };
    let mut b = dhcp::Builder::new(&mut buf, &bare).unwrap();
    b.u8(code::OVERLOAD, 3).unwrap();
    b.message_type(dhcp::MessageType::Offer).unwrap();
    b.option(code::BOOT_FILE, b"boot/").unwrap();
    save("dhcp", "overload", b.finish());
}

fn dns() {
    let (mut a, mut b) = ([0; 255], [0; 255]);
    let name = dns::Name::from_text(b"boot.lan", &mut a).unwrap();
    let target = dns::Name::from_text(b"tftp.lan", &mut b).unwrap();
    let mut buf = [0; 512];
    for (file, udp_size) in [("query", None), ("query_edns", Some(1232))] {
        let len = dns::Query { id: 0x1234, name, kind: dns::Kind::A, udp_size }.emit(&mut buf).unwrap();
        save("dns", file, &buf[..len]);
    }
    let question = dns::Question { name, kind: dns::Kind::A, class: dns::CLASS_IN };
    let mut r = dns::ReplyBuilder::new(&mut buf, 0x1234, dns::Rcode::NO_ERROR, false, &question).unwrap();
    r.answer(&name, dns::Kind::CNAME, 60, &dns::Data::Cname(target)).unwrap();
    r.answer(&target, dns::Kind::A, 60, &dns::Data::A(SERVER)).unwrap();
    r.answer(&target, dns::Kind::AAAA, 60, &dns::Data::Aaaa(Ipv6Addr::LOCALHOST)).unwrap();
    save("dns", "reply", r.finish());
    let r = dns::ReplyBuilder::new(&mut buf, 0x1234, dns::Rcode::NAME_ERROR, true, &question).unwrap();
    save("dns", "name_error", r.finish());
    let mut packed = b"\x12\x34\x81\x80\x00\x01\x00\x02\x00\x00\x00\x00\x04boot\x03lan\x00\x00\x01\x00\x01".to_vec();
    packed.extend_from_slice(b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c\x00\x07\x04tftp\xc0\x11");
    packed.extend_from_slice(b"\xc0\x26\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x0a\x00\x00\x01");
    save("dns", "compressed", &packed);
}

fn tftp() {
    let mut buf = [0; 128];
    for (name, access) in [("rrq", tftp::Access::Read), ("wrq", tftp::Access::Write)] {
        let mut b = tftp::Builder::request(&mut buf, access, &[b"boot/", b"Image"], tftp::Mode::Octet).unwrap();
        b.number(tftp::option::BLKSIZE, 1468).unwrap();
        b.number(tftp::option::TSIZE, 0).unwrap();
        b.number(tftp::option::WINDOWSIZE, 16).unwrap();
        save("tftp", name, b.finish());
    }
    let mut b = tftp::Builder::oack(&mut buf).unwrap();
    b.number(tftp::option::BLKSIZE, 1468).unwrap();
    b.text(b"TSize", b"123456").unwrap();
    let oack = b.finish().to_vec();
    save("tftp", "oack", &oack);
    save("tftp", "oack_junk", &[&oack[..], b"\xff\x41\x42"].concat());
    save("tftp", "data", &[&tftp::emit_data_head(1)[..], b"data"].concat());
    save("tftp", "ack", &tftp::emit_ack(65535));
    let len = tftp::emit_error(tftp::ErrorCode::FILE_NOT_FOUND, b"no such file", &mut buf).unwrap();
    save("tftp", "error", &buf[..len]);
    save("tftp", "error_without_nul", &buf[..len - 1]);
}

/// `what`, the header of a reply, and what `emit` adds.
fn reply(what: u8, emit: impl FnOnce(&mut Encoder<'_>) -> bootlace::wire::Result<()>) -> Vec<u8> {
    let mut buf = [0; 1024];
    let mut e = Encoder::new(&mut buf);
    rpc::emit_success(&mut e, 7).unwrap();
    emit(&mut e).unwrap();
    [&[what][..], e.finish()].concat()
}

fn called(
    program: u32,
    version: u32,
    procedure: u32,
    emit: impl FnOnce(&mut Encoder<'_>) -> bootlace::wire::Result<()>,
) -> Vec<u8> {
    let mut buf = [0; 1024];
    let mut e = Encoder::new(&mut buf);
    let auth = rpc::Auth::Unix { stamp: 1, machine: b"board", uid: 0, gid: 0, groups: &[0] };
    rpc::Call { xid: 7, program, version, procedure, auth }.emit(&mut e).unwrap();
    emit(&mut e).unwrap();
    [&[0x80][..], e.finish()].concat()
}

fn rpc() {
    let args = portmap::GetPort { program: nfs3::PROGRAM, version: 3, protocol: 17 };
    let bytes = called(portmap::PROGRAM, portmap::VERSION, portmap::GETPORT, |e| args.emit(e));
    save("rpc_nfs", "call_getport", &bytes);
    save("rpc_nfs", "getport", &reply(0, |e| e.u32(2049)));
    let bytes = called(mount::PROGRAM, mount::VERSION, mount::procedure::MNT, |e| mount::emit_path(e, b"/srv/boot"));
    save("rpc_nfs", "call_mnt", &bytes);
    let mounted = mount::Mounted { root: handle(), takes_none: true, takes_sys: true };
    save("rpc_nfs", "mnt", &reply(1, |e| mounted.emit(e)));
    let exports = reply(2, |e| {
        e.bool(true)?;
        e.opaque(b"/srv/boot")?;
        e.bool(true)?;
        e.opaque(b"10.0.0.0/8")?;
        e.bool(false)?;
        e.bool(false)
    });
    save("rpc_nfs", "export", &exports);
}

fn handle() -> nfs3::FileHandle {
    nfs3::FileHandle::new(&[0x5a; 28]).unwrap()
}

fn nfs() {
    let file = handle();
    let time = nfs3::Time { seconds: 1_700_000_000, nanoseconds: 1 };
    let attributes = nfs3::Attributes {
        kind: nfs3::FileType::Regular,
        mode: 0o644,
        links: 1,
        uid: 0,
        gid: 0,
        size: 12345,
        used: 16384,
        rdev: [0, 0],
        fsid: 1,
        fileid: 2,
        accessed: time,
        modified: time,
        changed: time,
    };
    let some = Some(attributes);
    let verifier = *b"verifier";
    for (name, args) in [
        ("null", nfs3::Args::Null),
        ("getattr", nfs3::Args::GetAttr(file)),
        ("lookup", nfs3::Args::Lookup { dir: file, name: b"Image" }),
        ("access", nfs3::Args::Access { file, bits: 0x3f }),
        ("readlink", nfs3::Args::ReadLink(file)),
        ("read", nfs3::Args::Read { file, offset: 4096, count: 1024 }),
        ("readdir", nfs3::Args::ReadDir { dir: file, cookie: 1, verifier, count: 4096 }),
        ("readdirplus", nfs3::Args::ReadDirPlus { dir: file, cookie: 1, verifier, dir_count: 512, max_count: 4096 }),
        ("fsstat", nfs3::Args::FsStat(file)),
        ("fsinfo", nfs3::Args::FsInfo(file)),
    ] {
        let bytes = called(nfs3::PROGRAM, nfs3::VERSION, args.procedure(), |e| args.emit(e));
        save("rpc_nfs", &format!("call_{name}"), &bytes);
    }
    let getattr = reply(3, |e| {
        e.u32(0)?;
        attributes.emit(e)
    });
    save("rpc_nfs", "getattr", &getattr);
    let found = nfs3::Found { file, attributes: some };
    save("rpc_nfs", "lookup", &reply(4, |e| found.emit(None, e)));
    save("rpc_nfs", "access", &reply(5, |e| nfs3::Allowed { bits: 1 }.emit(some.as_ref(), e)));
    save("rpc_nfs", "readlink", &reply(6, |e| nfs3::Link { path: b"../Image" }.emit(some.as_ref(), e)));
    let read = reply(7, |e| {
        nfs3::ReadHead { len: 5, eof: true }.emit(some.as_ref(), e)?;
        e.fixed(b"bytes")
    });
    save("rpc_nfs", "read", &read);
    let entry = nfs3::Entry { fileid: 3, name: b"Image", cookie: 9, attributes: some };
    let readdir = reply(8, |e| {
        nfs3::DirList::emit_head(e, some.as_ref(), &verifier)?;
        entry.emit(e)?;
        entry.emit(e)?;
        nfs3::emit_dir_end(e, true)
    });
    save("rpc_nfs", "readdir", &readdir);
    let readdirplus = reply(9, |e| {
        nfs3::DirList::emit_head(e, some.as_ref(), &verifier)?;
        entry.emit_plus(Some(&file), e)?;
        nfs3::Entry { attributes: None, ..entry }.emit_plus(None, e)?;
        nfs3::emit_dir_end(e, false)
    });
    save("rpc_nfs", "readdirplus", &readdirplus);
    let info = nfs3::FsInfo {
        read_max: 65536,
        read_preferred: 65536,
        read_multiple: 512,
        write_max: 65536,
        write_preferred: 65536,
        write_multiple: 512,
        dir_preferred: 4096,
        max_file_size: u64::MAX,
        time_delta: time,
        properties: 0x1b,
    };
    save("rpc_nfs", "fsinfo", &reply(10, |e| info.emit(some.as_ref(), e)));
    let stat = nfs3::FsStat {
        total_bytes: 1 << 40,
        free_bytes: 1 << 39,
        available_bytes: 1 << 39,
        total_files: 1000,
        free_files: 500,
        available_files: 500,
        invariant_s: 0,
    };
    save("rpc_nfs", "fsstat", &reply(11, |e| stat.emit(some.as_ref(), e)));
}

fn engine() {
    // Block, copy, offset, length and MF, corruption: see `bootlace_fuzz::engine::fragments`.
    let whole = [[0u8, 0, 6, 0xff], [0, 3, 6, 0xff]];
    let last = [0u8, 6, 0x86, 0xff];
    save("fragments", "in_order", &[whole[0], whole[1], last].concat());
    save("fragments", "reversed", &[last, whole[1], whole[0]].concat());
    let second = |p: [u8; 4]| [p[0] | 1, p[1], p[2], p[3]];
    let bad = |p: [u8; 4]| [p[0] | 4, p[1], p[2], 5];
    save(
        "fragments",
        "two_blocks",
        &[second(last), whole[1], second(whole[0]), last, second(whole[1]), whole[0]].concat(),
    );
    save("fragments", "corrupt_copy", &[bad(whole[0]), whole[0], bad(whole[1]), whole[1], last, bad(last)].concat());
    for (name, frames) in bootlace_fuzz::engine::conversations() {
        save("frames", name, &frames);
    }
}

/// Answers as `bootlace_fuzz::clients` takes them: tens of milliseconds to wait, length, bytes.
fn answers(list: &[(u8, &[u8])]) -> Vec<u8> {
    list.iter().flat_map(|(wait, m)| [&[*wait][..], &(m.len() as u16).to_be_bytes(), m].concat()).collect()
}

fn clients() {
    use dhcp::{MessageType, code};
    let message = |kind, yiaddr, file: &[u8], more: &[(u8, &[u8])]| {
        let repr = dhcp::Repr {
            op: dhcp::Op::Reply,
            xid: 0,
            secs: 0,
            broadcast: false,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            yiaddr,
            siaddr: SERVER,
            giaddr: Ipv4Addr::UNSPECIFIED,
            chaddr: MAC,
            sname: b"",
            file,
        };
        let mut buf = [0; 800];
        let mut b = dhcp::Builder::new(&mut buf, &repr).unwrap();
        b.message_type(kind).unwrap();
        b.ipv4(code::SERVER_ID, SERVER).unwrap();
        for (code, value) in more {
            b.option(*code, value).unwrap();
        }
        b.finish().to_vec()
    };
    let lease = |seconds: &'static [u8]| {
        [
            (code::SUBNET_MASK, &[255, 255, 255, 0][..]),
            (code::LEASE_TIME, seconds),
            (code::ROUTER, &[10, 0, 0, 254]),
            (code::DNS_SERVER, &[10, 0, 0, 1, 10, 0, 0, 3]),
            (code::DOMAIN_SEARCH, b"\x03lab\x07example\0\x02hw\xc0\x04"),
            (code::CLASSLESS_ROUTES, &[0, 10, 0, 0, 1, 24, 192, 168, 5, 10, 0, 0, 2]),
        ]
    };
    let long = lease(&[0, 0, 14, 16]);
    let short = lease(&[0, 0, 0, 2]);
    let offer = message(MessageType::Offer, OURS, b"", &long);
    let ack = message(MessageType::Ack, OURS, b"boot/Image", &long);
    let nak = message(MessageType::Nak, Ipv4Addr::UNSPECIFIED, b"", &[(code::MESSAGE, b"no")]);
    let brief = message(MessageType::Ack, OURS, b"", &short);
    let wait = (10, &[][..]);
    let save_dhcp = |name, switches: u8, list: &[(u8, &[u8])]| {
        save("dhcp_client", name, &[&[switches][..], &answers(list)].concat());
    };
    save_dhcp("bound", 0, &[(0, &offer), (0, &ack), wait]);
    save_dhcp("refused_then_bound", 4, &[(0, &offer), (0, &nak), (200, &offer), (0, &ack)]);
    save_dhcp("renewed", 4, &[(0, &offer), (0, &brief), (120, &brief), (120, &nak), (0, &offer), (0, &brief)]);
    let class = (code::VENDOR_CLASS, &b"PXEClient"[..]);
    let menu = b"\x06\x01\x07\x08\x07\x80\x01\x01\x0a\x00\x00\x01\x09\x08\x80\x01\x05Linux\xff";
    let proxy = message(MessageType::Offer, Ipv4Addr::UNSPECIFIED, b"", &[class, (code::VENDOR_SPECIFIC, menu)]);
    let boot = message(MessageType::Ack, OURS, b"boot.efi", &[class]);
    save_dhcp("proxy", 1, &[(0, &proxy), (0, &offer), (0, &ack), wait, (0, &boot)]);

    let mut buf = [0; 512];
    let mut a = [0; 255];
    let lan = dns::Name::from_text(b"boot.lan", &mut a).unwrap();
    let question = dns::Question { name: lan, kind: dns::Kind::A, class: dns::CLASS_IN };
    let mut r = dns::ReplyBuilder::new(&mut buf, 0, dns::Rcode::NO_ERROR, false, &question).unwrap();
    r.answer(&lan, dns::Kind::A, 60, &dns::Data::A(SERVER)).unwrap();
    let found = r.finish().to_vec();
    let r = dns::ReplyBuilder::new(&mut buf, 0, dns::Rcode::SERVER_FAILURE, false, &question).unwrap();
    let failed = r.finish().to_vec();
    let r = dns::ReplyBuilder::new(&mut buf, 0, dns::Rcode::NAME_ERROR, false, &question).unwrap();
    let no_name = r.finish().to_vec();
    let (mut b, mut c) = ([0; 255], [0; 255]);
    let tftp = dns::Name::from_text(b"tftp.lan", &mut b).unwrap();
    let mut r = dns::ReplyBuilder::new(&mut buf, 0, dns::Rcode::NO_ERROR, false, &question).unwrap();
    r.answer(&lan, dns::Kind::CNAME, 60, &dns::Data::Cname(tftp)).unwrap();
    let alias = r.finish().to_vec();
    let question = dns::Question { name: tftp, ..question };
    let mut r = dns::ReplyBuilder::new(&mut buf, 0, dns::Rcode::NO_ERROR, true, &question).unwrap();
    r.answer(&tftp, dns::Kind::A, 60, &dns::Data::A(SERVER)).unwrap();
    let target = r.finish().to_vec();
    let bare = dns::Name::from_text(b"boot", &mut c).unwrap();
    let question = dns::Question { name: bare, ..question };
    let mut r = dns::ReplyBuilder::new(&mut buf, 0, dns::Rcode::NO_ERROR, false, &question).unwrap();
    r.answer(&bare, dns::Kind::A, 0, &dns::Data::A(SERVER)).unwrap();
    let without_domain = r.finish().to_vec();
    save("dns_client", "found", &answers(&[(0, &found)]));
    save("dns_client", "late", &answers(&[(120, &failed[..12]), (0, &found)]));
    save("dns_client", "alias", &answers(&[(0, &alias), (0, &target)]));
    save("dns_client", "search", &answers(&[(0, &no_name), (0, &without_domain)]));
}

fn nfs_client() {
    let names = ["mount", "unmount", "exports", "attributes", "access", "fs_stat", "link", "list", "in_order", "get"];
    for (kind, name) in (0u8..).zip(names) {
        save("nfs_client", name, &[kind]);
    }
    // A word set to what discards the reply, a cut, a loss, and two copies, of the first replies each.
    let words = [9, 0, 0, 2, 29, 0xff, 0xff, 0xff, 0xff, 0, 0, 2, 29, 0x7f, 0xff, 0xff, 0xff, 2, 31, 0x80, 0, 0, 0];
    save("nfs_client", "get_word", &words);
    save("nfs_client", "get_cut", &[9, 3, 0, 40, 3, 0, 100, 0, 3, 2, 0, 5, 4, 5]);
    save("nfs_client", "list_word", &[7, 0, 2, 33, 0xff, 0xff, 0xff, 0xff]);
    // A reply in whole: accepted, no verifier, program unavailable is refused; a port of 2049 is not.
    let port = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x4e, 0x50];
    save("nfs_client", "mount_port", &[&[0, 1, 0, port.len() as u8][..], &port].concat());
}

fn streams() {
    // Opened from here: two segments in order, one beyond a gap, the gap filled, read.
    let next = |len: u8| [5, 0, len];
    let at = |offset: i16, len: u8| {
        let [a, b] = offset.to_be_bytes();
        [0, a, b, 0, 0x10, 0x20, 0, len, 1]
    };
    let read = [9, 255];
    let in_order = [&[0, 0][..], &next(25), &next(50), &read].concat();
    save("tcp_segments", "in_order", &in_order);
    let gap = [&[0, 0][..], &next(25), &at(100, 25), &at(200, 25), &next(24), &read, &read].concat();
    save("tcp_segments", "gap", &gap);
    let region = [&[0, 0][..], &[10], &at(400, 100), &next(99), &[10], &[8, 200], &[7, 50], &read].concat();
    save("tcp_segments", "region", &region);
    let listening = [&[32, 0][..], &next(25), &[8, 100], &at(0, 0), &[11, 0], &[7, 30], &read].concat();
    save("tcp_segments", "listening", &listening);
    let plain = [&[7, 15][..], &next(25), &[5, 1, 20], &next(20), &read].concat();
    save("tcp_segments", "no_options", &plain);
    save("tcp_pair", "clean", &[0, 0, 200, 200, 0]);
    save("tcp_pair", "file_to_region", &[64, 0, 250, 20, 1]);
    let lossy: Vec<u8> =
        [0u8, 0, 200, 100, 0].into_iter().chain((0..200).map(|n| if n % 9 == 4 { 1 } else { 0 })).collect();
    save("tcp_pair", "lossy", &lossy);
    let shuffled: Vec<u8> =
        [64u8, 1, 250, 50, 1].into_iter().chain((0..400u32).map(|n| (n * 37 % 127) as u8)).collect();
    save("tcp_pair", "shuffled", &shuffled);
    let corrupt: Vec<u8> =
        [31u8, 31, 150, 0, 0].into_iter().chain((0..200).map(|n| if n % 5 == 4 { 95 } else { 0 })).collect();
    save("tcp_pair", "corrupt", &corrupt);
}
