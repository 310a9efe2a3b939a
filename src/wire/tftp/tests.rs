use super::*;
use crate::wire::testing::{each_cut, each_mutation};
use std::vec;
use std::vec::Vec;

fn oack(bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let whole = [&[0, 6], bytes].concat(); // an allocation of its exact length
    match Packet::parse(&whole).unwrap() {
        Packet::Oack(options) => options.map(|(name, value)| (name.to_vec(), value.to_vec())).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn request_round_trip() {
    for (access, mode) in [(Access::Read, Mode::Octet), (Access::Write, Mode::Netascii)] {
        let mut buf = [0; 512];
        let mut builder = Builder::request(&mut buf, access, &[b"boot/", b"", b"Image"], mode).unwrap();
        builder.number(option::BLKSIZE, 1468).unwrap();
        builder.number(option::TSIZE, 0).unwrap();
        builder.number(b"big", u64::MAX).unwrap();
        builder.text(b"empty", b"").unwrap();
        let wire = builder.finish();
        let Packet::Request { access: a, file, mode: m, options } = Packet::parse(wire).unwrap() else { panic!() };
        assert_eq!((a, file, m), (access, &b"boot/Image"[..], mode));
        assert_eq!(options.number(option::BLKSIZE), Some(1468));
        assert_eq!(options.number(option::TSIZE), Some(0));
        assert_eq!(options.number(b"BIG"), Some(u64::MAX));
        assert_eq!(options.get(b"empty"), Some(&b""[..]));
        assert_eq!(options.number(b"empty"), None);
        assert_eq!(options.get(option::WINDOWSIZE), None);
        assert_eq!(options.count(), 4);
    }
}

#[test]
fn request_bytes_are_those_of_the_rfc() {
    let mut buf = [0; 64];
    let wire = Builder::request(&mut buf, Access::Read, &[b"f"], Mode::Octet).unwrap().finish();
    assert_eq!(wire, b"\x00\x01f\x00octet\x00");
}

#[test]
fn bad_requests() {
    let mut buf = [0; 64];
    for file in [&[][..], &[&b""[..]], &[b"a\0b"], &[b"ok", b"\0"]] {
        assert_eq!(Builder::request(&mut buf, Access::Read, file, Mode::Octet).unwrap_err(), Error::Malformed);
    }
    let mut builder = Builder::request(&mut buf, Access::Read, &[b"ok"], Mode::Octet).unwrap();
    assert_eq!(builder.text(b"", b"x"), Err(Error::Malformed));
    assert_eq!(builder.text(b"x", b"\0"), Err(Error::Malformed));
    for n in 0..11 {
        assert_eq!(Builder::request(&mut vec![0; n], Access::Read, &[b"ok"], Mode::Octet).unwrap_err(), Error::NoRoom);
    }
    assert_eq!(Builder::request(&mut [0; 11], Access::Read, &[b"ok"], Mode::Octet).unwrap().finish().len(), 11);
    for (wire, expect) in [
        (&b"\x00\x01f\x00mail\x00"[..], Error::Malformed),
        (b"\x00\x01\x00octet\x00", Error::Malformed),
        (b"\x00\x01f\x00octet", Error::Truncated),
        (b"\x00\x02f", Error::Truncated),
        (b"\x00\x07ab", Error::Malformed),
        (b"\x00\x00ab", Error::Malformed),
        (b"\x01\x03ab", Error::Malformed),
    ] {
        assert_eq!(Packet::parse(wire).unwrap_err(), expect);
    }
    assert!(Packet::parse(b"\x00\x01f\x00OcTeT\x00").is_ok());
}

#[test]
fn data_and_ack_round_trip() {
    let wire = [&emit_data_head(0xfffe)[..], b"bytes"].concat();
    assert!(matches!(Packet::parse(&wire).unwrap(), Packet::Data { block: 0xfffe, data: b"bytes" }));
    assert!(matches!(Packet::parse(&emit_data_head(1)).unwrap(), Packet::Data { block: 1, data: b"" }));
    assert!(matches!(Packet::parse(&emit_ack(0x1234)).unwrap(), Packet::Ack { block: 0x1234 }));
    each_cut(&emit_ack(1), |cut| assert_eq!(Packet::parse(cut).unwrap_err(), Error::Truncated));
    each_cut(&emit_data_head(1), |cut| assert_eq!(Packet::parse(cut).unwrap_err(), Error::Truncated));
}

#[test]
fn error_round_trip() {
    let mut buf = [0xaa; 32];
    let n = emit_error(ErrorCode::DISK_FULL, b"no room", &mut buf).unwrap();
    assert_eq!(&buf[..n], b"\x00\x05\x00\x03no room\x00");
    let Packet::Error { code, message } = Packet::parse(&buf[..n]).unwrap() else { panic!() };
    assert_eq!((code, message), (ErrorCode::DISK_FULL, &b"no room"[..]));
    assert_eq!(emit_error(ErrorCode(0), b"cut\0off", &mut buf), Ok(8));
    assert_eq!(emit_error(ErrorCode(0), b"too long", &mut buf[..8]), Ok(8));
    assert_eq!(&buf[..8], b"\x00\x05\x00\x00too\x00");
    assert_eq!(emit_error(ErrorCode(0), b"", &mut [0; 5]), Ok(5));
    assert_eq!(emit_error(ErrorCode(0), b"", &mut [0; 4]), Err(Error::NoRoom));
}

#[test]
fn case_t04_wire_oddly_formatted_oack() {
    let pair = |name: &[u8], value: &[u8]| (name.to_vec(), value.to_vec());
    assert_eq!(oack(b"BlkSize\x001024\x00"), [pair(b"BlkSize", b"1024")]);
    assert_eq!(oack(b"blksize\x001024\x00\xff\x41\x42"), [pair(b"blksize", b"1024")]);
    assert_eq!(oack(b"blksize\x00"), []);
    assert_eq!(oack(b"blksize\x001024"), []);
    assert_eq!(oack(b""), []); // opcode only
    assert_eq!(
        oack(b"blksize\x001024\x00\x00\x00tsize\x0010\x00\x00"),
        [pair(b"blksize", b"1024"), pair(b"tsize", b"10")]
    );
    let Packet::Oack(options) = Packet::parse(b"\x00\x06BlkSize\x001024\x00BLKSIZE\x008\x00").unwrap() else {
        panic!()
    };
    assert_eq!(options.number(option::BLKSIZE), Some(1024)); // the first counts
    let whole = b"\x00\x06blksize\x001024\x00tsize\x0010\x00";
    each_cut(whole, |cut| match Packet::parse(cut) {
        Ok(Packet::Oack(options)) => {
            assert_eq!(options.count(), usize::from(cut.len() >= 15));
            assert_eq!(options.number(option::BLKSIZE), (cut.len() >= 15).then_some(1024));
        }
        Ok(other) => panic!("{other:?}"),
        Err(e) => assert!(e == Error::Truncated && cut.len() < 2),
    });
}

#[test]
fn case_t11_wire_error_without_nul_and_stunted_packets() {
    for stunted in [&b""[..], b"\x00", b"\x00\x05", b"\x00\x05\x00", b"\x00\x03\x00", b"\x00\x03", b"\x00\x04\x00"] {
        assert_eq!(Packet::parse(stunted).unwrap_err(), Error::Truncated);
    }
    let long = [b"\x00\x05\x00\x01", &[b'x'; 64_996][..]].concat();
    assert_eq!(long.len(), 65_000);
    for (wire, text) in [
        (&b"\x00\x05\x00\x01"[..], &b""[..]),
        (b"\x00\x05\x00\x01abc", b"abc"),
        (b"\x00\x05\x00\x01abc\x00", b"abc"),
        (b"\x00\x05\x00\x01abc\x00junk", b"abc"),
        (&long, &long[4..]),
    ] {
        let Packet::Error { code, message } = Packet::parse(wire).unwrap() else { panic!() };
        assert_eq!((code, message), (ErrorCode::FILE_NOT_FOUND, text));
    }
}

#[test]
fn numbers() {
    for (text, value) in
        [("0", 0), ("007", 7), ("65464", 65464), ("4294967296", 1 << 32), ("18446744073709551615", u64::MAX)]
    {
        assert_eq!(parse_number(text.as_bytes()), Some(value));
    }
    for junk in
        ["", " 1", "1 ", "-1", "+1", "0x10", "1.0", "18446744073709551616", "99999999999999999999999", "1\0", "１"]
    {
        assert_eq!(parse_number(junk.as_bytes()), None, "{junk:?}");
    }
    let mut value = 1u64;
    for _ in 0..20 {
        for value in [value, value - 1, value.wrapping_mul(9)] {
            assert_eq!(parse_number(decimal(value, &mut [0; 20])), Some(value));
        }
        value = value.wrapping_mul(10);
    }
    assert_eq!(decimal(0, &mut [0; 20]), b"0");
}

#[test]
fn mutations_do_no_harm() {
    for wire in [
        &b"\x00\x01file\x00octet\x00blksize\x001024\x00"[..],
        b"\x00\x06blksize\x001024\x00",
        b"\x00\x05\x00\x01text\x00",
    ] {
        each_mutation(wire, |bytes| match Packet::parse(bytes) {
            Ok(Packet::Request { options, .. } | Packet::Oack(options)) => assert!(options.count() <= bytes.len()),
            Ok(Packet::Error { message, .. }) => assert!(message.len() <= bytes.len() - 4),
            _ => {}
        });
    }
}
