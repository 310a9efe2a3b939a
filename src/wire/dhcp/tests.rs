use super::*;
use crate::wire::testing::{each_cut, each_mutation};
use std::vec;
use std::vec::Vec;

const REPR: Repr<'static> = Repr {
    op: Op::Reply,
    xid: 0xdead_beef,
    secs: 3,
    broadcast: true,
    ciaddr: Ipv4Addr::UNSPECIFIED,
    yiaddr: Ipv4Addr::new(10, 0, 0, 9),
    siaddr: Ipv4Addr::new(10, 0, 0, 1),
    giaddr: Ipv4Addr::new(10, 0, 1, 1),
    chaddr: ethernet::Address([2, 0, 0, 0, 0, 9]),
    sname: b"server",
    file: b"boot/image",
};

fn build(options: &[(u8, &[u8])]) -> Vec<u8> {
    let mut buf = vec![0; 2000];
    let mut builder = Builder::new(&mut buf, &REPR).unwrap();
    for (code, data) in options {
        builder.option(*code, data).unwrap();
    }
    builder.finish().to_vec()
}

/// A message whose options field, `file` and `sname` hold exactly these bytes.
fn raw(options: &[u8], file: &[u8], sname: &[u8]) -> Vec<u8> {
    let mut bytes = build(&[]);
    bytes.truncate(FIXED_LEN + 4);
    bytes.extend_from_slice(options);
    bytes[44..236].fill(0);
    bytes[44..44 + sname.len()].copy_from_slice(sname);
    bytes[108..108 + file.len()].copy_from_slice(file);
    bytes
}

fn copied(message: &Message<'_>, code: u8) -> Option<Vec<u8>> {
    let mut buf = vec![0; 1000];
    let len = message.copy_option(code, &mut buf)?;
    buf.truncate(len);
    Some(buf)
}

#[test]
fn round_trip() {
    let bytes = build(&[
        (code::MESSAGE_TYPE, &[2]),
        (code::LEASE_TIME, &[0, 0, 0x0e, 0x10]),
        (code::INTERFACE_MTU, &[5, 0xdc]),
    ]);
    assert_eq!(bytes.len(), MIN_LEN);
    let message = Message::parse(&bytes).unwrap();
    assert_eq!(Repr::parse(&message), REPR);
    assert!(message.has_options());
    assert_eq!(message.message_type(), Some(MessageType::Offer));
    assert_eq!((message.u32(code::LEASE_TIME), message.u16(code::INTERFACE_MTU)), (Some(3600), Some(1500)));
    assert_eq!(message.options().map(|(code, _)| code).collect::<Vec<_>>(), [53, 51, 26]);
}

#[test]
fn every_message_type() {
    for value in 0..=255 {
        assert_eq!(MessageType::from_u8(value).map(|t| t as u8), (1..=8).contains(&value).then_some(value));
    }
}

#[test]
fn builder_keeps_its_bounds() {
    for n in 0..FIXED_LEN + 5 {
        assert_eq!(Builder::new(&mut vec![0; n], &REPR).unwrap_err(), Error::NoRoom);
    }
    let mut buf = [0; FIXED_LEN + 4 + 7];
    let mut builder = Builder::new(&mut buf, &REPR).unwrap();
    assert_eq!(builder.option(1, &[1; 5]), Err(Error::NoRoom));
    assert_eq!(builder.option(0, &[]), Err(Error::Malformed));
    assert_eq!(builder.option(255, &[]), Err(Error::Malformed));
    assert_eq!(builder.ipv4(1, Ipv4Addr::BROADCAST), Ok(()));
    assert_eq!(builder.u8(2, 1), Err(Error::NoRoom));
    let bytes = builder.finish();
    assert_eq!(bytes[FIXED_LEN + 4..], [1, 4, 255, 255, 255, 255, 255]);
    let long = [b'x'; 129];
    let repr = Repr { file: &long, ..REPR };
    assert_eq!(Builder::new(&mut [0; 500], &repr).unwrap_err(), Error::Malformed);
    let repr = Repr { file: &long[..128], sname: &long[..64], ..REPR };
    let mut buf = [0; 500];
    let message = Builder::new(&mut buf, &repr).unwrap().finish();
    assert_eq!(Repr::parse(&Message::parse(message).unwrap()), repr);
}

#[test]
fn cut_everywhere() {
    let bytes = build(&[(code::MESSAGE_TYPE, &[5]), (code::ROUTER, &[10, 0, 0, 1])]);
    each_cut(&bytes, |cut| match Message::parse(cut) {
        Ok(message) => {
            assert!(cut.len() >= FIXED_LEN);
            assert_eq!(message.has_options(), cut.len() >= FIXED_LEN + 4);
            assert_eq!(message.message_type().is_some(), cut.len() >= FIXED_LEN + 7);
            assert_eq!(message.ipv4(code::ROUTER).is_some(), cut.len() >= FIXED_LEN + 13);
        }
        Err(e) => assert!(e == Error::Truncated && cut.len() < FIXED_LEN),
    });
}

#[test]
fn not_for_ethernet_or_neither_request_nor_reply() {
    for (at, value) in [(0, 0), (0, 3), (1, 6), (2, 0), (2, 16)] {
        let mut bytes = build(&[]);
        bytes[at] = value;
        assert_eq!(Message::parse(&bytes).unwrap_err(), Error::Malformed);
    }
}

#[test]
fn bootp_without_cookie_has_no_options() {
    let mut bytes = build(&[(code::MESSAGE_TYPE, &[5])]);
    bytes[FIXED_LEN] = 0;
    let message = Message::parse(&bytes).unwrap();
    assert!(!message.has_options() && message.message_type().is_none());
    assert_eq!((message.yiaddr(), message.file()), (REPR.yiaddr, &b"boot/image"[..]));
}

#[test]
fn case_d03_wire_pieces_are_put_together() {
    let bytes = build(&[(67, b"boot/"), (51, &[0, 0, 0, 60]), (67, b"img.bin")]);
    let message = Message::parse(&bytes).unwrap();
    assert_eq!(copied(&message, 67).unwrap(), b"boot/img.bin");
    assert_eq!(message.option(67).collect::<Vec<_>>(), [&b"boot/"[..], b"img.bin"]);
    assert_eq!(message.text(67, &mut [0; 12]), Some(&b"boot/img.bin"[..]));

    // 121 split inside one route.
    let bytes = build(&[(121, &[24, 192, 168]), (1, &[255, 255, 255, 0]), (121, &[5, 10, 0, 0, 2])]);
    let route = Route { prefix: Ipv4Addr::new(192, 168, 5, 0), prefix_len: 24, router: Ipv4Addr::new(10, 0, 0, 2) };
    assert_eq!(Message::parse(&bytes).unwrap().routes(121).collect::<Vec<_>>(), [Ok(route)]);

    // 43 of 255 + 20 bytes, as the builder splits it.
    let long: Vec<u8> = (0..275).map(|i| i as u8).collect();
    let bytes = build(&[(43, &long)]);
    let message = Message::parse(&bytes).unwrap();
    assert_eq!(message.option(43).map(<[u8]>::len).collect::<Vec<_>>(), [255, 20]);
    assert_eq!(copied(&message, 43).unwrap(), long);

    // 54 twice with the same value: the first counts; in pieces: together.
    for pieces in [&[&[10u8, 0, 0, 1][..], &[10, 0, 0, 1]][..], &[&[10, 0], &[0, 1]], &[&[10, 0, 0, 1]]] {
        let options: Vec<_> = pieces.iter().map(|&piece| (54, piece)).collect();
        let bytes = build(&options);
        assert_eq!(Message::parse(&bytes).unwrap().ipv4(54), Some(Ipv4Addr::new(10, 0, 0, 1)));
    }
    for pieces in [&[&[10u8, 0, 0][..]][..], &[&[10, 0, 0, 1, 5]], &[&[10, 0, 0], &[1, 5]], &[&[]]] {
        let options: Vec<_> = pieces.iter().map(|&piece| (54, piece)).collect();
        let bytes = build(&options);
        assert_eq!(Message::parse(&bytes).unwrap().ipv4(54), None);
    }
}

#[test]
fn case_d03_wire_pieces_across_overloaded_fields() {
    // Order: options, file, sname (RFC 2131 §4.1).
    let bytes = raw(
        &[52, 1, 3, 67, 5, b'b', b'o', b'o', b't', b'/', 255, 67, 1, b'x'],
        &[0, 67, 4, b'i', b'm', b'g', b'.', 255, 67, 1, b'x'],
        &[67, 3, b'b', b'i', b'n', 53, 1, 5, 255],
    );
    let message = Message::parse(&bytes).unwrap();
    assert_eq!(copied(&message, 67).unwrap(), b"boot/img.bin");
    assert_eq!(message.message_type(), Some(MessageType::Ack));
    assert!(message.file().is_empty() && message.sname().is_empty());
    // Without the overload option, and with values it does not have, the fields are text.
    for options in [&[67, 1, b'b'][..], &[52, 1, 0, 67, 1, b'b'], &[52, 1, 4, 67, 1, b'b'], &[52, 2, 3, 3, 67, 1, b'b']]
    {
        let bytes = raw(options, b"file", b"name");
        let message = Message::parse(&bytes).unwrap();
        assert_eq!((message.file(), message.sname()), (&b"file"[..], &b"name"[..]));
        assert_eq!(copied(&message, 67).unwrap(), b"b");
    }
    // One field only.
    let bytes = raw(&[52, 1, 1], &[67, 1, b'f'], b"name");
    let message = Message::parse(&bytes).unwrap();
    assert_eq!((copied(&message, 67).unwrap(), message.sname()), (b"f".to_vec(), &b"name"[..]));
    let bytes = raw(&[52, 1, 2], b"file", &[67, 1, b's']);
    let message = Message::parse(&bytes).unwrap();
    assert_eq!((copied(&message, 67).unwrap(), message.file()), (b"s".to_vec(), &b"file"[..]));
    // Overload found in an overloaded field does not count.
    let bytes = raw(&[52, 1, 1], &[52, 1, 3, 255], &[67, 1, b's']);
    assert_eq!(copied(&Message::parse(&bytes).unwrap(), 67), None);
}

#[test]
fn options_that_run_over_end_their_field() {
    let bytes = raw(&[52, 1, 1, 53, 1, 5, 67, 200, b'x'], &[67, 2, b'o', b'k'], &[]);
    let message = Message::parse(&bytes).unwrap();
    assert_eq!(message.message_type(), Some(MessageType::Ack));
    assert_eq!(copied(&message, 67).unwrap(), b"ok");
    let bytes = raw(&[53, 1, 5, 67], &[], &[]);
    assert_eq!(Message::parse(&bytes).unwrap().options().count(), 1);
}

#[test]
fn copy_is_bounded_and_says_the_whole_length() {
    let bytes = build(&[(67, b"boot/"), (67, b"img.bin"), (66, b""), (12, b"name\0\0"), (15, b"\0")]);
    let message = Message::parse(&bytes).unwrap();
    let mut buf = [0; 8];
    assert_eq!(message.copy_option(67, &mut buf), Some(12));
    assert_eq!(&buf, b"boot/img");
    assert_eq!(message.copy_option(66, &mut buf), Some(0));
    assert_eq!(message.copy_option(68, &mut buf), None);
    assert_eq!(message.text(67, &mut [0; 11]), None);
    assert_eq!(message.text(66, &mut buf), None);
    assert_eq!(message.text(15, &mut buf), None);
    assert_eq!(message.text(12, &mut [0; 6]), Some(&b"name"[..]));
}

#[test]
fn address_lists() {
    let bytes = build(&[(6, &[10, 0, 0, 1, 10, 0]), (6, &[0, 2, 10, 0])]);
    let list: Vec<_> = Message::parse(&bytes).unwrap().ipv4_list(6).collect();
    assert_eq!(list, [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)]);
    assert_eq!(Message::parse(&bytes).unwrap().ipv4_list(3).count(), 0);
}

#[test]
fn case_d15_wire_classless_routes() {
    let routes = |data: &[u8]| Message::parse(&build(&[(121, data)])).unwrap().routes(121).collect::<Vec<_>>();
    let default = Route { prefix: Ipv4Addr::UNSPECIFIED, prefix_len: 0, router: Ipv4Addr::new(10, 0, 0, 1) };
    let net = Route { prefix: Ipv4Addr::new(192, 168, 5, 0), prefix_len: 24, router: Ipv4Addr::new(10, 0, 0, 2) };
    let valid = [0, 10, 0, 0, 1, 24, 192, 168, 5, 10, 0, 0, 2];
    assert_eq!(routes(&valid), [Ok(default), Ok(net)]);
    for n in 0..valid.len() {
        let got = routes(&valid[..n]);
        let whole = [0, 5].contains(&n);
        assert_eq!(got.last().is_some_and(|r| *r == Err(Error::Truncated)), !whole, "{n} bytes: {got:?}");
        assert_eq!(got.len(), n.div_ceil(5).min(2));
    }
    assert_eq!(routes(&[33, 1, 2, 3, 4, 5, 10, 0, 0, 1, 0, 10, 0, 0, 1]), [Err(Error::Malformed)]);
    let host = Route { prefix: Ipv4Addr::new(1, 2, 3, 4), prefix_len: 32, router: Ipv4Addr::UNSPECIFIED };
    assert_eq!(routes(&[32, 1, 2, 3, 4, 0, 0, 0, 0]), [Ok(host)]);
    // Bits beyond the width are masked off.
    let masked = Route { prefix: Ipv4Addr::new(10, 16, 0, 0), prefix_len: 12, router: Ipv4Addr::new(10, 0, 0, 1) };
    assert_eq!(routes(&[12, 10, 0x1f, 10, 0, 0, 1]), [Ok(masked)]);
    assert!(Message::parse(&build(&[])).unwrap().routes(121).next().is_none());
    // And back.
    let mut buf = [0; 13];
    let mut w = Writer::new(&mut buf);
    put_route(&mut w, &default).unwrap();
    put_route(&mut w, &net).unwrap();
    assert_eq!(put_route(&mut w, &net), Err(Error::NoRoom));
    assert_eq!(put_route(&mut w, &Route { prefix_len: 33, ..net }), Err(Error::Malformed));
    assert_eq!(buf, valid);
}

#[test]
fn case_d19_wire_vendor_options() {
    fn subs(bytes: &[u8]) -> Result<Vec<(u8, &[u8])>> {
        SubOptions::parse(bytes).map(Iterator::collect)
    }
    let valid = b"\x06\x01\x08\x09\x14\x00\x00\x11Raspberry-Pi-Boot\x0a\x04\x00PXE";
    let expect: &[(u8, &[u8])] = &[(6, &[8]), (9, b"\x00\x00\x11Raspberry-Pi-Boot"), (10, b"\x00PXE")];
    assert_eq!(subs(valid).unwrap(), expect); // without ff
    assert_eq!(subs(&[&valid[..], &[0xff]].concat()).unwrap(), expect);
    assert_eq!(subs(&[&valid[..], &[0xff, 1, 200]].concat()).unwrap(), expect);
    assert_eq!(
        subs(b"\x00\x06\x01\x08\x00\x00\x09\x14\x00\x00\x11Raspberry-Pi-Boot\x0a\x04\x00PXE\x00").unwrap(),
        expect
    );
    assert_eq!(subs(&[&[0xff][..], valid].concat()).unwrap(), []);
    assert_eq!(subs(&[]).unwrap(), []);
    assert_eq!(subs(b"\x06\x01\x08\x09\xc8\x00").unwrap_err(), Error::Malformed); // sub-length 200
    assert_eq!(subs(b"Raspberry Pi Boot").unwrap_err(), Error::Malformed);
    each_cut(valid, |cut| assert_eq!(subs(cut).is_ok(), [0, 3, 25].contains(&cut.len())));
    // Whatever 43 holds, the rest of the message is read.
    for data in [&valid[..], b"Raspberry Pi Boot", b"", &[0xff; 9], &[6, 200]] {
        let bytes = build(&[(43, data), (53, &[5])]);
        let message = Message::parse(&bytes).unwrap();
        assert_eq!((copied(&message, 43).unwrap(), message.message_type()), (data.to_vec(), Some(MessageType::Ack)));
    }
    assert!(!Message::parse(&build(&[])).unwrap().has_option(43));
}

#[test]
fn mutations_do_no_harm() {
    let bytes =
        raw(&[52, 1, 3, 53, 1, 5, 121, 5, 0, 10, 0, 0, 1, 43, 3, 6, 1, 8, 255], &[67, 1, b'f', 255], &[66, 1, b's']);
    each_mutation(&bytes, |bytes| {
        if let Ok(message) = Message::parse(bytes) {
            assert!(message.options().count() < 300);
            assert!(message.routes(121).count() < 300);
            let _ = message.message_type();
            if let Some(data) = copied(&message, 43)
                && let Ok(subs) = SubOptions::parse(&data)
            {
                assert!(subs.count() <= data.len());
            }
        }
    });
}
