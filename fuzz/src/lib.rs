//! What the fuzz targets do, one function a parser. Each takes any bytes and returns whether it got to the end of the way that a valid
//! packet takes; on the way it asserts that what was parsed survives being written and parsed again. `examples/seeds.rs` writes the corpus,
//! `tests/corpus.rs` holds that each seed goes the whole way.

use bootlace::wire::cursor::Writer;
use bootlace::wire::xdr::{Decoder, Encoder};
use bootlace::wire::{Error, arp, dhcp, dns, ethernet, icmpv4, igmp, ipv4, mount, nfs3, portmap, rpc, tcp, tftp, udp};

pub mod clients;
pub mod engine;
pub mod http;
pub mod nfs;
pub mod streams;

/// A function that is a fuzz target.
pub type Target = fn(&[u8]) -> bool;

/// The targets, by the names of their binaries and folders of seeds.
pub const TARGETS: [(&str, Target); 16] = [
    ("eth_ip_udp", eth_ip_udp),
    ("arp", arp),
    ("icmp", icmp),
    ("tcp", tcp),
    ("dhcp", dhcp),
    ("dns", dns),
    ("http", http::response),
    ("tftp", tftp),
    ("rpc_nfs", rpc_nfs),
    ("fragments", engine::fragments),
    ("frames", engine::frames),
    ("dhcp_client", clients::dhcp_client),
    ("dns_client", clients::dns_client),
    ("nfs_client", nfs::nfs_client),
    ("tcp_segments", streams::tcp_segments),
    ("tcp_pair", streams::tcp_pair),
];

/// An Ethernet frame with an IPv4 packet with a UDP datagram or an IGMP message.
pub fn eth_ip_udp(data: &[u8]) -> bool {
    let Ok(frame) = ethernet::Frame::parse(data) else { return false };
    let repr = ethernet::Repr::parse(&frame);
    let header = match frame.tag() {
        Some(tag) => repr.emit_tagged(tag).to_vec(),
        None => repr.emit().to_vec(),
    };
    assert_eq!([&header[..], frame.payload()].concat(), data);
    if frame.protocol() != ethernet::Protocol::Ipv4 {
        return false;
    }
    let whole = ipv4::Packet::parse(frame.payload());
    let quoted = ipv4::Packet::parse_quoted(frame.payload());
    let Ok(packet) = whole else { return false };
    assert_eq!(quoted.expect("what is whole can be quoted").payload(), packet.payload());
    assert_eq!(packet.header_len() + packet.payload().len(), usize::from(packet.total_len()));
    packet.has_source_route();
    let repr = ipv4::Repr::parse(&packet);
    let bytes = [&repr.emit(packet.checksum())[..], packet.payload()].concat();
    let again = ipv4::Packet::parse(&bytes).expect("what is emitted is whole");
    assert_eq!((ipv4::Repr::parse(&again), again.payload()), (repr, packet.payload()));
    if packet.protocol() == ipv4::Protocol::IGMP {
        let Ok(message) = igmp::Message::parse(packet.payload()) else { return false };
        let again = igmp::Message::parse(&message.emit([0; 2])).expect("what is emitted is whole");
        // A version 3 query can ask for longer than one of version 2 can say.
        assert!(again == message || matches!(message, igmp::Message::Query { .. }));
        return true;
    }
    if packet.protocol() != ipv4::Protocol::UDP {
        return false;
    }
    let partial = udp::Datagram::parse_partial(packet.payload());
    let Ok(datagram) = udp::Datagram::parse(packet.payload()) else { return false };
    let partial = partial.expect("what is whole has a front");
    assert_eq!((partial.payload(), partial.bytes()), (datagram.payload(), datagram.bytes()));
    let bytes = [&udp::Repr::parse(&datagram).emit(datagram.checksum())[..], datagram.payload()].concat();
    assert_eq!(bytes, datagram.bytes());
    true
}

/// An ARP packet.
pub fn arp(data: &[u8]) -> bool {
    let Ok(packet) = arp::Packet::parse(data) else { return false };
    packet.is_gratuitous();
    assert_eq!(arp::Repr::parse(&packet).emit(), data[..arp::PACKET_LEN]);
    true
}

/// An ICMP message and what it quotes.
pub fn icmp(data: &[u8]) -> bool {
    let Ok(message) = icmpv4::Message::parse(data) else { return false };
    let bytes = [&message.emit_head([data[2], data[3]])[..], message.data()].concat();
    assert_eq!(icmpv4::Message::parse(&bytes), Ok(message));
    if matches!(message, icmpv4::Message::EchoRequest { .. } | icmpv4::Message::EchoReply { .. }) {
        assert_eq!(bytes, data);
        return true;
    }
    let Some(packet) = message.quoted() else { return false };
    assert!(packet.header_len() + packet.payload().len() <= message.data().len());
    match packet.protocol() {
        ipv4::Protocol::UDP => udp::Datagram::parse_partial(packet.payload()).is_ok(),
        ipv4::Protocol::TCP => tcp::Quoted::parse(packet.payload()).is_ok(),
        ipv4::Protocol::ICMP => icmpv4::Message::parse(packet.payload()).is_ok(),
        _ => false,
    }
}

/// A TCP segment.
pub fn tcp(data: &[u8]) -> bool {
    let Ok(segment) = tcp::Segment::parse(data) else { return false };
    assert_eq!(segment.header_len() + segment.payload().len(), data.len());
    let options = segment.options();
    assert_eq!(options, tcp::Options::parse(segment.option_bytes()));
    assert!(options.window_scale.is_none_or(|shift| shift <= tcp::MAX_WINDOW_SCALE));
    assert!(segment.option_iter().count() <= 20);
    let repr = tcp::Repr::parse(&segment);
    let mut buf = [0; tcp::MAX_HEADER_LEN];
    let len = repr.emit(segment.checksum(), &mut buf).expect("the longest header fits");
    let again = tcp::Segment::parse(&buf[..len]).expect("what is emitted is whole");
    let mut got = tcp::Repr::parse(&again);
    // All blocks of an option list need not fit once the others are padded as we pad them.
    let (sent, kept) = (repr.options.sack.as_slice(), got.options.sack.as_slice().len());
    assert_eq!(got.options.sack.as_slice(), &sent[..kept]);
    got.options.sack = repr.options.sack;
    assert_eq!(got, repr);
    let sum = segment.seq() + segment.seq_len();
    assert_eq!(sum.since(segment.seq()), segment.seq_len());
    true
}

/// A DHCP message.
pub fn dhcp(data: &[u8]) -> bool {
    let Ok(message) = dhcp::Message::parse(data) else { return false };
    let repr = dhcp::Repr::parse(&message);
    let mut buf = vec![0; 4096];
    let mut builder = dhcp::Builder::new(&mut buf, &repr).expect("fields fit themselves");
    let mut copied = Vec::new();
    let mut codes: Vec<u8> = message.options().map(|(code, _)| code).collect();
    codes.sort_unstable();
    codes.dedup();
    for code in codes {
        let mut value = vec![0; data.len()];
        let len = message.copy_option(code, &mut value).expect("it is listed");
        value.truncate(len);
        assert_eq!(message.option(code).map(<[u8]>::len).sum::<usize>(), len);
        if code != dhcp::code::OVERLOAD && builder.option(code, &value).is_ok() {
            copied.push((code, value));
        }
    }
    let bytes = builder.finish();
    let again = dhcp::Message::parse(bytes).expect("what is emitted is whole");
    assert_eq!(dhcp::Repr::parse(&again), repr);
    for (code, value) in copied {
        let mut got = vec![0; value.len()];
        assert_eq!(again.copy_option(code, &mut got), Some(value.len()));
        assert_eq!(got, value);
    }
    for part in message.option(dhcp::code::VENDOR_SPECIFIC) {
        if let Ok(subs) = dhcp::SubOptions::parse(part) {
            assert!(subs.map(|(_, data)| data.len() + 2).sum::<usize>() <= part.len());
        }
    }
    for route in message.routes(dhcp::code::CLASSLESS_ROUTES) {
        let Ok(route) = route else { break };
        let mut buf = [0; 9];
        let mut w = Writer::new(&mut buf);
        dhcp::put_route(&mut w, &route).expect("the longest route fits");
        let mut message = vec![0; 300];
        let mut builder = dhcp::Builder::new(&mut message, &repr).expect("fields fit themselves");
        builder.option(dhcp::code::CLASSLESS_ROUTES, w.finish()).expect("there is room");
        let again = dhcp::Message::parse(builder.finish()).expect("what is emitted is whole");
        assert!(again.routes(dhcp::code::CLASSLESS_ROUTES).eq([Ok(route)]));
    }
    message.ipv4_list(dhcp::code::DNS_SERVER).count();
    message.message_type().is_some()
}

/// A DNS message.
pub fn dns(data: &[u8]) -> bool {
    let Ok(message) = dns::Message::parse(data) else { return false };
    let Some(question) = message.question() else { return false };
    emit_name(&question.name);
    let query = dns::Query { id: message.id(), name: question.name, kind: question.kind, udp_size: Some(1232) };
    let mut buf = [0; 512];
    let len = query.emit(&mut buf).expect("the longest name fits");
    let again = dns::Message::parse(&buf[..len]).expect("what is emitted is whole");
    let asked = again.question().expect("there is a question");
    assert!(asked.name.matches_case(&question.name) && asked.kind == question.kind);
    let Ok(records) = message.records() else { return false };
    for record in records {
        let Ok(record) = record else { return false };
        emit_name(&record.name);
        if let dns::Data::Cname(target) = record.data {
            emit_name(&target);
        }
    }
    true
}

fn emit_name(name: &dns::Name<'_>) {
    let mut buf = [0; dns::MAX_NAME_LEN];
    let mut w = Writer::new(&mut buf);
    name.emit(&mut w).expect("no name is longer");
    let wire = w.finish();
    let (again, end) = dns::Name::parse(wire, 0).expect("what is emitted is whole");
    assert_eq!(end, wire.len());
    assert!(again.matches_case(name) && name.matches(&again));
}

/// A TFTP packet.
pub fn tftp(data: &[u8]) -> bool {
    let mut buf = vec![0; data.len() + 64];
    let Ok(packet) = tftp::Packet::parse(data) else { return false };
    match packet {
        tftp::Packet::Data { block, data: bytes } => {
            assert_eq!([&tftp::emit_data_head(block)[..], bytes].concat(), data);
        }
        tftp::Packet::Ack { block } => assert_eq!(tftp::emit_ack(block), data[..4]),
        tftp::Packet::Error { code, message } => {
            let len = tftp::emit_error(code, message, &mut buf).expect("there is room");
            let Ok(tftp::Packet::Error { code: c, message: m }) = tftp::Packet::parse(&buf[..len]) else { panic!() };
            assert_eq!((c, m), (code, message));
        }
        tftp::Packet::Oack(options) => {
            let builder = tftp::Builder::oack(&mut buf).expect("there is room");
            let wire = emit_options(builder, options);
            let Ok(tftp::Packet::Oack(again)) = tftp::Packet::parse(wire) else { panic!() };
            assert!(again.eq(options));
        }
        tftp::Packet::Request { access, file, mode, options } => {
            let builder = tftp::Builder::request(&mut buf, access, &[file], mode).expect("there is room");
            let wire = emit_options(builder, options);
            let Ok(tftp::Packet::Request { access: a, file: f, mode: m, options: again }) = tftp::Packet::parse(wire)
            else {
                panic!()
            };
            assert_eq!((a, f, m), (access, file, mode));
            assert!(again.eq(options));
        }
    }
    true
}

fn emit_options<'b>(mut builder: tftp::Builder<'b>, options: tftp::Options<'_>) -> &'b [u8] {
    for (name, value) in options {
        match tftp::parse_number(value) {
            Some(number) if !value.starts_with(b"0") => builder.number(name, number),
            _ => builder.text(name, value),
        }
        .expect("there is room");
        assert!(options.get(name).is_some());
    }
    builder.finish()
}

/// An RPC reply or call: the first byte says what of, the rest is the message.
pub fn rpc_nfs(data: &[u8]) -> bool {
    let Some((&what, data)) = data.split_first() else { return false };
    if what & 0x80 != 0 {
        return call(data);
    }
    let Ok(reply) = rpc::Reply::parse(data) else { return false };
    let rpc::Body::Success(d) = reply.body else { return false };
    match what {
        0 => portmap::parse_port(&mut d.clone()).is_ok(),
        1 => match mount::Mounted::parse(&mut d.clone()) {
            // Neither flavor: what `emit` writes then, an empty list, says that both sides know nothing of flavors.
            Ok(Ok(mounted)) if !mounted.takes_none && !mounted.takes_sys => true,
            _ => round(d, mount::Mounted::parse, mount::Mounted::emit),
        },
        2 => {
            let mut all = true;
            for export in mount::Exports::new(d) {
                match export {
                    Ok(export) => assert!(export.groups.count() <= data.len() / 4),
                    Err(_) => all = false,
                }
            }
            all
        }
        3 => round(d, nfs3::parse_getattr, |attributes, e| {
            e.u32(0)?;
            attributes.emit(e)
        }),
        4 => round(d, nfs3::Found::parse, |found, e| found.emit(None, e)),
        5 => round(d, nfs3::Allowed::parse, |allowed, e| allowed.emit(None, e)),
        6 => {
            let Ok(Ok(link)) = nfs3::Link::parse(&mut d.clone()) else { return false };
            assert!(link.path.len() <= nfs3::MAX_LINK);
            true
        }
        7 => {
            const ASKED: u32 = 1024;
            let head = nfs3::ReadHead::parse(&mut d.clone(), ASKED);
            match nfs3::ReadHead::parse_whole(&mut d.clone(), ASKED) {
                Ok(Ok((whole, bytes))) => {
                    assert_eq!(head, Ok(Ok(whole)));
                    assert!(bytes.len() as u32 == whole.len && whole.len <= ASKED);
                    let mut buf = vec![0; data.len() + 8];
                    let mut e = Encoder::new(&mut buf);
                    whole.emit(None, &mut e).and_then(|()| e.fixed(bytes)).expect("there is room");
                    let wire = e.finish();
                    assert_eq!(nfs3::ReadHead::parse_whole(&mut Decoder::new(wire), ASKED), Ok(Ok((whole, bytes))));
                    true
                }
                Ok(Err(_)) => false,
                Err(e) => {
                    assert!(e == Error::Truncated || head.is_err());
                    false
                }
            }
        }
        8 => {
            let Ok(Ok(list)) = nfs3::DirList::parse(&mut d.clone(), false) else { return false };
            let mut buf = vec![0; data.len() + 8];
            let mut e = Encoder::new(&mut buf);
            nfs3::DirList::emit_head(&mut e, None, &list.verifier).expect("there is room");
            list.clone().try_for_each(|entry| entry.emit(&mut e)).expect("there is room");
            nfs3::emit_dir_end(&mut e, list.eof).expect("there is room");
            let wire = e.finish();
            assert!(wire.len() <= data.len());
            let again = nfs3::DirList::parse(&mut Decoder::new(wire), false).unwrap().unwrap();
            assert!(again.eq(list));
            true
        }
        9 => {
            let Ok(Ok(list)) = nfs3::DirList::parse(&mut d.clone(), true) else { return false };
            assert!(list.count() <= data.len() / 32);
            true
        }
        10 => round(d, nfs3::FsInfo::parse, |info, e| info.emit(None, e)),
        11 => round(d, nfs3::FsStat::parse, |stat, e| stat.emit(None, e)),
        _ => false,
    }
}

/// Parses a result; if it is one, writes it and parses it again.
fn round<'a, T: PartialEq + core::fmt::Debug, S: PartialEq + core::fmt::Debug>(
    mut d: Decoder<'a>,
    parse: impl Fn(&mut Decoder<'_>) -> bootlace::wire::Result<Result<T, S>>,
    emit: impl Fn(&T, &mut Encoder<'_>) -> bootlace::wire::Result<()>,
) -> bool {
    let Ok(Ok(value)) = parse(&mut d) else { return false };
    let mut buf = [0; 1024];
    let mut e = Encoder::new(&mut buf);
    emit(&value, &mut e).expect("there is room");
    assert_eq!(parse(&mut Decoder::new(e.finish())), Ok(Ok(value)));
    true
}

fn call(data: &[u8]) -> bool {
    let Ok(call) = rpc::ReceivedCall::parse(data) else { return false };
    let mut args = call.args;
    match call.program {
        portmap::PROGRAM => portmap::GetPort::parse(&mut args).is_ok(),
        mount::PROGRAM => mount::parse_path(&mut args).is_ok_and(|path| path.len() <= mount::MAX_PATH),
        nfs3::PROGRAM => {
            let Ok(args) = nfs3::Args::parse(call.procedure, &mut args) else { return false };
            assert_eq!(args.procedure(), call.procedure);
            let mut buf = [0; 512];
            let mut e = Encoder::new(&mut buf);
            args.emit(&mut e).expect("there is room");
            assert_eq!(nfs3::Args::parse(call.procedure, &mut Decoder::new(e.finish())), Ok(args));
            true
        }
        _ => false,
    }
}
