use super::*;
use crate::wire::testing::{each_cut, each_mutation};
use std::vec;
use std::vec::Vec;

fn name<'a>(text: &str, buf: &'a mut [u8; 255]) -> Name<'a> {
    Name::from_text(text.as_bytes(), buf).unwrap()
}

fn text(name: &Name<'_>) -> Vec<u8> {
    name.labels().collect::<Vec<_>>().join(&b'.')
}

/// A reply as servers send it: compressed, CNAME and A, 2 answers.
fn reply() -> Vec<u8> {
    let mut m = b"\x12\x34\x81\x80\x00\x01\x00\x02\x00\x00\x00\x00".to_vec();
    m.extend_from_slice(b"\x04boot\x03lan\x00\x00\x01\x00\x01"); // at 12; lan at 17
    m.extend_from_slice(b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c\x00\x07\x04tftp\xc0\x11"); // target at 38
    m.extend_from_slice(b"\xc0\x26\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x0a\x00\x00\x01");
    m
}

/// `Ok` with the addresses if every record is whole.
fn addresses(bytes: &[u8]) -> Result<Vec<Ipv4Addr>> {
    let mut list = Vec::new();
    for record in Message::parse(bytes)?.records()? {
        if let Data::A(addr) = record?.data {
            list.push(addr);
        }
    }
    Ok(list)
}

#[test]
fn query_round_trip() {
    for udp_size in [None, Some(1232)] {
        let (mut nb, mut buf) = ([0; 255], [0; 512]);
        let query = Query { id: 0xabcd, name: name("boot.Lan", &mut nb), kind: Kind::AAAA, udp_size };
        let n = query.emit(&mut buf).unwrap();
        let message = Message::parse(&buf[..n]).unwrap();
        assert_eq!(
            (message.id(), message.is_response(), message.opcode(), message.question_count()),
            (0xabcd, false, 0, 1)
        );
        assert_eq!(buf[2], 0x01); // recursion desired
        let question = message.question().unwrap();
        assert_eq!((text(&question.name), question.kind, question.class), (b"boot.Lan".to_vec(), Kind::AAAA, CLASS_IN));
        let extra: Vec<_> = message.records().unwrap().map(|r| r.unwrap()).collect();
        assert_eq!(extra.len(), usize::from(udp_size.is_some()));
        if let Some(size) = udp_size {
            assert!(matches!(extra[0].data, Data::Opt { udp_size } if udp_size == size));
            assert_eq!(extra[0].section, Section::Additional);
        }
        for short in 0..n {
            assert_eq!(query.emit(&mut vec![0; short]), Err(Error::NoRoom));
        }
    }
}

#[test]
fn reply_round_trip() {
    let (mut a, mut b, mut buf) = ([0; 255], [0; 255], [0; 512]);
    let (asked, target) = (name("boot.lan", &mut a), name("tftp.lan.", &mut b));
    let question = Question { name: asked, kind: Kind::A, class: CLASS_IN };
    let mut builder = ReplyBuilder::new(&mut buf, 7, Rcode::NO_ERROR, true, &question).unwrap();
    let v6 = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    builder.answer(&asked, Kind::A, 60, &Data::Cname(target)).unwrap();
    builder.answer(&target, Kind::A, u32::MAX, &Data::A(Ipv4Addr::LOCALHOST)).unwrap();
    builder.answer(&target, Kind::A, 1, &Data::Aaaa(v6)).unwrap();
    builder.answer(&target, Kind(16), 1, &Data::Other(b"\x02hi")).unwrap();
    let wire = builder.finish();
    let message = Message::parse(wire).unwrap();
    assert!(message.is_response() && message.is_truncated() && message.recursion_available());
    assert_eq!((message.rcode(), message.answer_count()), (Rcode::NO_ERROR, 4));
    let records: Vec<_> = message.records().unwrap().map(|r| r.unwrap()).collect();
    assert!(matches!(records[0].data, Data::Cname(got) if got.matches(&target)));
    assert!(matches!(records[1].data, Data::A(Ipv4Addr::LOCALHOST)));
    assert!(matches!(records[2].data, Data::Aaaa(got) if got == v6));
    assert!(matches!(records[3].data, Data::Other(b"\x02hi")));
    assert_eq!(records.iter().map(|r| (r.ttl_s, r.kind.0)).collect::<Vec<_>>(), [(60, 5), (0, 1), (1, 28), (1, 16)]);
    assert!(records.iter().all(|r| r.section == Section::Answer && r.class == CLASS_IN));
}

#[test]
fn compressed_names_are_followed() {
    let wire = reply();
    let records: Vec<_> = Message::parse(&wire).unwrap().records().unwrap().map(|r| r.unwrap()).collect();
    assert_eq!(text(&records[0].name), b"boot.lan");
    let Data::Cname(target) = records[0].data else { panic!() };
    assert_eq!(text(&target), b"tftp.lan");
    assert!(target.matches(&records[1].name));
    assert_eq!(addresses(&wire), Ok(vec![Ipv4Addr::new(10, 0, 0, 1)]));
    // What is decompressed can be asked for again.
    let mut buf = [0; 255];
    let mut w = Writer::new(&mut buf);
    target.emit(&mut w).unwrap();
    assert_eq!(w.finish(), b"\x04tftp\x03lan\x00");
}

#[test]
fn case_x07_wire_counts_larger_than_the_packet() {
    let valid = reply();
    each_cut(&valid, |cut| assert_eq!(addresses(cut).unwrap_err(), Error::Truncated));
    for at in [4, 6] {
        // QDCOUNT, ANCOUNT
        let mut wire = valid.clone();
        wire[at..at + 2].copy_from_slice(&[0xff, 0xff]);
        assert!(addresses(&wire).is_err());
    }
    for (hi, lo) in [(0, 0), (0, 5), (0, 3), (0xff, 0xff)] {
        let mut wire = valid.clone();
        let at = wire.len() - 6;
        wire[at..at + 2].copy_from_slice(&[hi, lo]);
        assert!(addresses(&wire).is_err(), "RDLENGTH {hi} {lo}");
    }
    // RDLENGTH of the CNAME too long or too short for its name.
    for len in [5, 6, 8, 9] {
        let mut wire = valid.clone();
        wire[37] = len;
        assert!(addresses(&wire).is_err());
    }
    let none = b"\x12\x34\x81\x80\x00\x00\x00\x00\x00\x00\x00\x00";
    assert_eq!(addresses(none), Ok(vec![]));
    assert_eq!(addresses(&none[..11]), Err(Error::Truncated));
    assert!(Message::parse(none).unwrap().question().is_none());
    assert_eq!(addresses(&valid), Ok(vec![Ipv4Addr::new(10, 0, 0, 1)]));
}

#[test]
fn an_error_ends_the_records() {
    let mut wire = reply();
    wire[37] = 8;
    let mut records = Message::parse(&wire).unwrap().records().unwrap();
    assert!(records.next().unwrap().is_err());
    assert!(records.next().is_none());
}

#[test]
fn case_x03_wire_names_compare_without_case() {
    let (mut a, mut b) = ([0; 255], [0; 255]);
    let asked = name("boot.Lan", &mut a);
    for (other, same) in
        [("BOOT.LAN", true), ("boot.lan.", true), ("other.lan", false), ("boot", false), ("boot.lan.x", false)]
    {
        assert_eq!(asked.matches(&name(other, &mut b)), same);
        assert!(!asked.matches_case(&name(other, &mut b)));
    }
    assert!(asked.matches_case(&name("boot.Lan", &mut b)));
    // A dot within a label is not a dot between labels.
    let (dotted, _) = Name::parse(b"\x08boot.Lan\x00", 0).unwrap();
    assert!(!asked.matches(&dotted) && !dotted.matches(&asked));
}

#[test]
fn names_from_text_keep_their_limits() {
    let mut buf = [0; 255];
    let label63 = [b'a'; 63];
    let long = [&label63[..], b".", &label63, b".", &label63, b".", &[b'b'; 61]].concat();
    assert_eq!(long.len(), 253);
    assert_eq!(text(&Name::from_text(&long, &mut buf).unwrap()), long);
    assert_eq!(text(&Name::from_text(&[&long[..], b"."].concat(), &mut buf).unwrap()), long);
    for bad in [&b""[..], b".", b"..", b".a", b"a..b", b"a..", &[b'a'; 64], &[&long[..], b"b"].concat(), &[b'a'; 5000]]
    {
        assert_eq!(Name::from_text(bad, &mut buf).unwrap_err(), Error::Malformed);
    }
    assert_eq!(Name::from_text(b"boot", &mut [0; 5]).unwrap_err(), Error::NoRoom);
    assert_eq!(text(&Name::from_text(b"boot", &mut [0; 6]).unwrap()), b"boot");
}

#[test]
fn pointers_cannot_loop() {
    let parse = |bytes: &[u8], at| Name::parse(bytes, at).map(|(name, end)| (text(&name), end));
    assert_eq!(parse(b"\x01a\x00\x01b\xc0\x00", 3), Ok((b"b.a".to_vec(), 7)));
    assert_eq!(parse(b"\xc0\x00", 0), Err(Error::Malformed)); // itself
    assert_eq!(parse(b"\xc0\x02\xc0\x00", 2), Err(Error::Malformed)); // each other
    assert_eq!(parse(b"\xc0\x02\x01a\x00", 0), Err(Error::Malformed)); // forward
    assert_eq!(parse(b"\x01a\xc0\x00", 0), Err(Error::Malformed)); // into its own name
    assert_eq!(parse(b"\x01a\xc0\x00\xc0\x00", 4), Err(Error::Malformed)); // ditto, one hop later
    assert_eq!(parse(b"\x40a\x00", 0), Err(Error::Malformed));
    assert_eq!(parse(b"\x80a\x00", 0), Err(Error::Malformed));
    assert_eq!(parse(b"\xc0", 0), Err(Error::Truncated));
    assert_eq!(parse(b"\xff\xff", 0), Err(Error::Malformed));
    assert_eq!(parse(b"", 0), Err(Error::Truncated));
    assert_eq!(parse(b"\x00", 1), Err(Error::Truncated));
    assert_eq!(parse(b"\x00", 0), Ok((vec![], 1)));

    // A chain of pointers: the budget is 32.
    let mut chain = b"\x01a\x00".to_vec();
    let mut last = 0u16;
    for hops in 1..=33 {
        let at = chain.len();
        chain.extend_from_slice(&(0xc000 | last).to_be_bytes());
        let got = parse(&chain, at);
        assert_eq!(got, if hops <= 32 { Ok((b"a".to_vec(), at + 2)) } else { Err(Error::Malformed) });
        last = at as u16;
    }

    // 255 bytes in all, however they are pieced together.
    let mut wire = Vec::new();
    for _ in 0..3 {
        wire.push(63);
        wire.extend_from_slice(&[b'a'; 63]);
    }
    wire.push(61 - 1);
    wire.extend_from_slice(&[b'b'; 60]);
    wire.push(0);
    assert_eq!(wire.len(), 254);
    let at = wire.len();
    wire.extend_from_slice(b"\x01c\xc0\x00");
    assert_eq!(parse(&wire, at), Err(Error::Malformed)); // 256
    wire[3 * 64] = 59;
    wire[3 * 64 + 60] = 0; // the root, one earlier
    assert_eq!(parse(&wire, at).unwrap().0.len(), 253); // 255
}

#[test]
fn mutations_do_no_harm() {
    each_mutation(&reply(), |bytes| {
        if let Ok(message) = Message::parse(bytes)
            && let Ok(records) = message.records()
        {
            for record in records.flatten() {
                assert!(text(&record.name).len() <= 253);
                if let Data::Cname(target) = record.data {
                    assert!(text(&target).len() <= 253);
                }
            }
        }
    });
}
