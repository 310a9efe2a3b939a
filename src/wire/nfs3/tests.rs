use super::*;
use crate::wire::testing::{each_cut, each_mutation};
use std::vec;
use std::vec::Vec;

const ATTRIBUTES: Attributes = Attributes {
    kind: FileType::Regular,
    mode: 0o644,
    links: 1,
    uid: 1000,
    gid: 100,
    size: 0x1_0000_0001,
    used: 8192,
    rdev: [1, 2],
    fsid: 3,
    fileid: 4,
    accessed: Time { seconds: 5, nanoseconds: 6 },
    modified: Time { seconds: 7, nanoseconds: 8 },
    changed: Time { seconds: 9, nanoseconds: 10 },
};

fn handle(len: usize) -> FileHandle {
    FileHandle::new(&vec![0x5a; len]).unwrap()
}

fn emitted(emit: impl FnOnce(&mut Encoder<'_>) -> Result<()>) -> Vec<u8> {
    let mut buf = vec![0; 4096];
    let mut e = Encoder::new(&mut buf);
    emit(&mut e).unwrap();
    e.finish().to_vec()
}

/// Every result is whole to its last byte: cut anywhere it is `Truncated`; a failure is its status whatever follows.
fn check<T: PartialEq + core::fmt::Debug>(
    wire: &[u8],
    parse: impl Fn(&mut Decoder<'_>) -> Result<Outcome<T>>,
    expect: &T,
) {
    let mut d = Decoder::new(wire);
    assert_eq!(parse(&mut d), Ok(Ok(parse(&mut Decoder::new(wire)).unwrap().unwrap())));
    assert_eq!(parse(&mut Decoder::new(wire)).unwrap().as_ref(), Ok(expect));
    assert_eq!(d.rest(), []);
    each_cut(wire, |cut| assert_eq!(parse(&mut Decoder::new(cut)), Err(Error::Truncated)));
    each_mutation(wire, |bytes| drop(parse(&mut Decoder::new(bytes))));
    for status in [Status::NOENT, Status::STALE, Status::JUKEBOX, Status(12345)] {
        let failure = emitted(|e| emit_failure(e, status));
        assert_eq!(parse(&mut Decoder::new(&failure)), Ok(Err(status)));
        assert_eq!(parse(&mut Decoder::new(&failure[..4])), Ok(Err(status)));
    }
}

#[test]
fn arguments_round_trip() {
    let file = handle(32);
    for args in [
        Args::Null,
        Args::GetAttr(file),
        Args::Lookup { dir: file, name: b"Image" },
        Args::Access { file, bits: access::READ | access::LOOKUP },
        Args::ReadLink(handle(64)),
        Args::Read { file, offset: 1 << 33, count: 32768 },
        Args::ReadDir { dir: file, cookie: 7, verifier: *b"verifier", count: 4096 },
        Args::ReadDirPlus { dir: file, cookie: 7, verifier: *b"verifier", dir_count: 512, max_count: 4096 },
        Args::FsStat(file),
        Args::FsInfo(handle(0)),
    ] {
        let wire = emitted(|e| args.emit(e));
        let mut d = Decoder::new(&wire);
        assert_eq!(Args::parse(args.procedure(), &mut d), Ok(args));
        assert_eq!(d.rest(), []);
        each_cut(&wire, |cut| assert_eq!(Args::parse(args.procedure(), &mut Decoder::new(cut)), Err(Error::Truncated)));
        for short in 0..wire.len() {
            assert_eq!(args.emit(&mut Encoder::new(&mut vec![0; short])), Err(Error::NoRoom));
        }
    }
    assert_eq!(Args::parse(7, &mut Decoder::new(&emitted(|e| file.emit(e)))), Err(Error::Malformed)); // WRITE
}

#[test]
fn case_n12_wire_component_lengths() {
    let emit =
        |len: usize| Args::Lookup { dir: handle(8), name: &vec![b'n'; len] }.emit(&mut Encoder::new(&mut [0; 512]));
    assert_eq!((emit(255), emit(256)), (Ok(()), Err(Error::Malformed)));
}

#[test]
fn handles() {
    assert_eq!(FileHandle::new(&[1; 65]), Err(Error::Malformed));
    assert_eq!(FileHandle::new(&[1; 300]), Err(Error::Malformed));
    for len in 0..=64 {
        let wire = emitted(|e| handle(len).emit(e));
        assert_eq!(FileHandle::parse(&mut Decoder::new(&wire)), Ok(handle(len)));
        assert_eq!(handle(len).as_bytes(), vec![0x5a; len]);
    }
}

#[test]
fn attributes_round_trip() {
    for kind in [
        FileType::Regular,
        FileType::Directory,
        FileType::Block,
        FileType::Character,
        FileType::Symlink,
        FileType::Socket,
        FileType::Fifo,
    ] {
        let attributes = Attributes { kind, ..ATTRIBUTES };
        let wire = emitted(|e| {
            e.u32(0)?;
            attributes.emit(e)
        });
        assert_eq!(wire.len(), 4 + Attributes::LEN);
        check(&wire, parse_getattr, &attributes);
    }
    for bad in [0, 8, 255] {
        let mut wire = emitted(|e| ATTRIBUTES.emit(e));
        wire[3] = bad;
        assert_eq!(Attributes::parse(&mut Decoder::new(&wire)), Err(Error::Malformed));
    }
}

#[test]
fn results_round_trip() {
    for attributes in [None, Some(ATTRIBUTES)] {
        let (found, given) = (Found { file: handle(20), attributes }, attributes.as_ref());
        check(&emitted(|e| found.emit(given, e)), Found::parse, &found);
        let allowed = Allowed { bits: access::READ };
        check(&emitted(|e| allowed.emit(given, e)), Allowed::parse, &allowed);
        let info = FsInfo {
            read_max: 65536,
            read_preferred: 32768,
            read_multiple: 512,
            write_max: 1,
            write_preferred: 2,
            write_multiple: 3,
            dir_preferred: 4096,
            max_file_size: u64::MAX,
            time_delta: Time { seconds: 0, nanoseconds: 1 },
            properties: 0x1b,
        };
        check(&emitted(|e| info.emit(given, e)), FsInfo::parse, &info);
        let stat = FsStat {
            total_bytes: 1,
            free_bytes: 2,
            available_bytes: 3,
            total_files: 4,
            free_files: 5,
            available_files: 6,
            invariant_s: 7,
        };
        check(&emitted(|e| stat.emit(given, e)), FsStat::parse, &stat);
    }
}

#[test]
fn read_round_trip() {
    for (data, attributes) in [(&b"five!"[..], Some(ATTRIBUTES)), (b"", None), (b"four", None)] {
        let head = ReadHead { len: data.len() as u32, eof: true };
        let wire = emitted(|e| {
            head.emit(attributes.as_ref(), e)?;
            e.fixed(data)
        });
        let mut d = Decoder::new(&wire);
        assert_eq!(ReadHead::parse(&mut d, 5), Ok(Ok(head)));
        assert_eq!(&wire[d.position()..][..data.len()], data);
        let mut d = Decoder::new(&wire);
        assert_eq!(ReadHead::parse_whole(&mut d, 5), Ok(Ok((head, data))));
        assert_eq!(d.rest(), []);
    }
    let failure = emitted(|e| emit_failure(e, Status::IO));
    assert_eq!(ReadHead::parse_whole(&mut Decoder::new(&failure), 5), Ok(Err(Status::IO)));
}

#[test]
fn case_n03_wire_read_lengths() {
    let data = vec![0x77; 1024];
    let reply = |count: u32, len: u32| {
        emitted(|e| {
            e.u32(0)?;
            Attributes::emit_optional(Some(&ATTRIBUTES), e)?;
            e.u32(count)?;
            e.bool(false)?;
            e.u32(len)?;
            e.fixed(&data)
        })
    };
    let valid = reply(1024, 1024);
    let head = |wire: &[u8]| ReadHead::parse(&mut Decoder::new(wire), 1024);
    let whole =
        |wire: &[u8]| ReadHead::parse_whole(&mut Decoder::new(wire), 1024).map(|o| o.map(|(_, data)| data.len()));
    assert_eq!(whole(&valid), Ok(Ok(1024)));
    for bad in [1025, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
        for (count, len) in [(bad, bad), (bad, 1024), (1024, bad)] {
            assert_eq!(head(&reply(count, len)), Err(Error::Malformed));
            assert_eq!(whole(&reply(count, len)), Err(Error::Malformed));
        }
    }
    // Lengths right, packet cut at every byte.
    each_cut(&valid, |cut| assert_eq!(whole(cut), Err(Error::Truncated)));
    let header = valid.len() - 1024;
    each_cut(&valid, |cut| assert_eq!(head(cut).is_ok(), cut.len() >= header));
}

#[test]
fn case_n03_wire_readlink_and_lookup_lengths() {
    let link = Link { path: b"../boot/Image" };
    let wire = emitted(|e| link.emit(Some(&ATTRIBUTES), e));
    assert_eq!(Link::parse(&mut Decoder::new(&wire)), Ok(Ok(link)));
    each_cut(&wire, |cut| assert_eq!(Link::parse(&mut Decoder::new(cut)), Err(Error::Truncated)));
    let found = Found { file: handle(64), attributes: None };
    let lookup = emitted(|e| found.emit(None, e));
    for len in [1025u32, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
        let mut bad = wire.clone();
        bad[92..96].copy_from_slice(&len.to_be_bytes());
        assert_eq!(Link::parse(&mut Decoder::new(&bad)), Err(Error::Malformed));
        let mut bad = lookup.clone();
        bad[4..8].copy_from_slice(&len.to_be_bytes());
        assert_eq!(Found::parse(&mut Decoder::new(&bad)), Err(Error::Malformed));
    }
    let mut bad = wire.clone();
    bad[95] = 17; // padding included, one more than there is
    assert_eq!(Link::parse(&mut Decoder::new(&bad)), Err(Error::Truncated));
    let longest = vec![b'l'; MAX_LINK];
    let link = Link { path: &longest };
    assert_eq!(Link::parse(&mut Decoder::new(&emitted(|e| link.emit(None, e)))), Ok(Ok(link)));
    let failure = emitted(|e| emit_failure(e, Status::INVAL));
    assert_eq!(Link::parse(&mut Decoder::new(&failure)), Ok(Err(Status::INVAL)));
}

fn entries() -> [Entry<'static>; 3] {
    let entry = |fileid, name, cookie| Entry { fileid, name, cookie, attributes: None };
    [entry(1, &b"."[..], 10), entry(2, b"..", 20), entry(3, b"Image", u64::MAX)]
}

#[test]
fn readdir_round_trip() {
    for (list, eof) in [(&entries()[..], true), (&entries()[..1], false), (&[], true)] {
        let wire = emitted(|e| {
            DirList::emit_head(e, Some(&ATTRIBUTES), b"verifier")?;
            list.iter().try_for_each(|entry| entry.emit(e))?;
            emit_dir_end(e, eof)
        });
        let mut d = Decoder::new(&wire);
        let mut got = DirList::parse(&mut d, false).unwrap().unwrap();
        assert_eq!((got.verifier, got.eof, d.rest()), (*b"verifier", eof, &[][..]));
        assert_eq!(got.last, list.last().map(|entry| entry.cookie));
        assert_eq!(got.by_ref().collect::<Vec<_>>(), list);
        assert_eq!(got.next(), None);
        each_cut(&wire, |cut| {
            assert_eq!(DirList::parse(&mut Decoder::new(cut), false).unwrap_err(), Error::Truncated);
        });
        each_mutation(&wire, |bytes| {
            if let Ok(Ok(list)) = DirList::parse(&mut Decoder::new(bytes), false) {
                assert!(list.count() <= bytes.len() / 24);
            }
        });
    }
    let failure = emitted(|e| emit_failure(e, Status::BAD_COOKIE));
    let status = DirList::parse(&mut Decoder::new(&failure), false).unwrap().unwrap_err();
    assert_eq!(status, Status::BAD_COOKIE);
}

#[test]
fn readdirplus_round_trip() {
    let [a, b, c] = entries();
    let list = [
        (Entry { attributes: Some(ATTRIBUTES), ..a }, Some(handle(28))),
        (b, None),
        (Entry { attributes: Some(ATTRIBUTES), ..c }, Some(handle(64))),
        (c, Some(handle(0))),
    ];
    let wire = emitted(|e| {
        DirList::emit_head(e, None, b"verifier")?;
        list.iter().try_for_each(|(entry, file)| entry.emit_plus(file.as_ref(), e))?;
        emit_dir_end(e, false)
    });
    let got = DirList::parse(&mut Decoder::new(&wire), true).unwrap().unwrap();
    assert_eq!((got.eof, got.last), (false, Some(u64::MAX)));
    assert_eq!(got.collect::<Vec<_>>(), list.map(|(entry, _)| entry));
    each_cut(&wire, |cut| {
        assert_eq!(DirList::parse(&mut Decoder::new(cut), true).unwrap_err(), Error::Truncated);
    });
    each_mutation(&wire, |bytes| {
        if let Ok(Ok(list)) = DirList::parse(&mut Decoder::new(bytes), true) {
            assert!(list.count() <= bytes.len() / 32);
        }
    });
}
