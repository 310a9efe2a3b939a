//! Paths and links.

use super::*;
use crate::client::operation::DetailKind;
use crate::sim::nfs_server::Answer;
use crate::wire::nfs3::procedure;
use std::boxed::Box;
use std::format;
use std::string::String;

fn tree() -> Lab {
    let mut lab = Lab::new();
    for (path, node) in [
        ("boot/Image", Node::File(bytes(10))),
        ("boot/v2/Image", Node::File(bytes(20))),
        ("boot/current", Node::Link(b"v2".to_vec())),
        ("boot/v2/back", Node::Link(b"../Image".to_vec())),
        ("abs", Node::Link(b"/boot/v2/Image".to_vec())),
        ("full", Node::Link(b"/srv/boot/v2/Image".to_vec())),
        ("top", Node::Link(b"/srv".to_vec())),
        ("slash", Node::Link(b"/".to_vec())),
        ("other", Node::Link(b"/srvx/Image".to_vec())),
        ("up", Node::Link(b"../../boot/Image".to_vec())),
        ("self", Node::Link(b"self".to_vec())),
        ("two", Node::Link(b"boot/current/".to_vec())),
        ("empty", Node::Link(b"".to_vec())),
        ("dangling", Node::Link(b"nowhere/x".to_vec())),
        ("dots", Node::Link(b"./boot/../boot//./v2".to_vec())),
    ] {
        lab.server.add(path, node);
    }
    lab
}

fn size(lab: &mut Lab, path: &str) -> Result<u64> {
    let op = lab.ask(path.as_bytes(), Ask::Attributes(true))?;
    let result = lab.finish(op);
    lab.close(op);
    result
}

#[test]
fn links_are_followed_relative_and_absolute() {
    for attributes in [true, false] {
        let mut lab = tree();
        lab.server.behaviour.attributes = attributes;
        for (path, expect) in [
            ("boot/Image", Ok(10)),
            ("/boot/current/Image", Ok(20)),
            ("boot/current/back", Ok(10)),
            ("boot/v2/../Image", Ok(10)),
            ("boot/v2/./../v2/Image", Ok(20)),
            ("abs", Ok(20)),
            ("full", Ok(20)),
            ("top/boot/Image", Ok(10)),
            ("slash/boot/Image", Ok(10)),
            ("other", Err(Error::NotFound)),
            ("up", Ok(10)),
            ("../../boot/Image", Ok(10)),
            ("two/Image", Ok(20)),
            ("dots/Image", Ok(20)),
            ("dots/../current/Image", Ok(20)),
            ("boot/current/", Ok(64)),
            ("boot/current/.", Ok(64)),
            ("boot/v2/..", Ok(96)),
            ("self", Err(Error::Loop)),
            ("self/x", Err(Error::Loop)),
            ("empty", Err(Error::NotFound)),
            ("dangling", Err(Error::NotFound)),
            ("boot/Image/x", Err(Error::NotDirectory)),
            ("boot/Image/", Err(Error::NotDirectory)),
            ("abs/", Err(Error::NotDirectory)),
            ("boot/none", Err(Error::NotFound)),
        ] {
            assert_eq!(size(&mut lab, path), expect, "{path}");
        }
    }
}

#[test]
fn sixteen_links_are_followed_and_no_more() {
    let mut lab = Lab::new();
    lab.server.add("l0", Node::File(bytes(5)));
    for n in 1..=17 {
        lab.server.add(&format!("l{n}"), Node::Link(format!("l{}", n - 1).into_bytes()));
    }
    assert_eq!(size(&mut lab, "l16"), Ok(5));
    assert_eq!(size(&mut lab, "l17"), Err(Error::Loop));
    assert_eq!(lab.server.count(procedure::READLINK), 16 + 16);
}

#[test]
fn links_as_long_as_they_can_be() {
    let mut lab = Lab::new();
    let name = "n".repeat(255);
    let deep = [&name[..], &name, &name, &"m".repeat(250)].join("/");
    lab.server.add(&deep, Node::File(bytes(5)));
    let long = format!("./{deep}");
    assert_eq!(long.len(), 1020);
    lab.server.add("long", Node::Link(format!("{long}////").into_bytes()));
    lab.server.add("file", Node::Link(long.clone().into_bytes()));
    assert_eq!(size(&mut lab, "file"), Ok(5));
    assert_eq!(size(&mut lab, "long"), Err(Error::NotDirectory), "1024 bytes that end in slashes");
    // A link in a link, the rest of which does not fit behind it.
    lab.server.add("outer", Node::Link(b"inner/rest/of/it".to_vec()));
    lab.server.add("inner", Node::Link(long.clone().into_bytes()));
    assert_eq!(size(&mut lab, "outer"), Err(Error::NameTooLong));
    lab.server.add("wide", Node::Link("w".repeat(256).into_bytes()));
    let before = lab.server.calls.len();
    assert_eq!(size(&mut lab, "wide"), Err(Error::NameTooLong));
    assert_eq!(lab.server.calls.len() - before, 2, "LOOKUP of the link and READLINK: the long name is not sent");
}

#[test]
fn a_status_is_told_with_its_text() {
    for (status, expect, text) in [
        (1u32, Error::Denied, "not owner"),
        (2, Error::NotFound, "no such file or directory"),
        (5, Error::Remote, "I/O error"),
        (13, Error::Denied, "permission denied"),
        (20, Error::NotDirectory, "not a directory"),
        (63, Error::NameTooLong, "name too long"),
        (70, Error::Changed, "stale file handle"),
        (10001, Error::Changed, "illegal file handle"),
        (10006, Error::Remote, "server fault"),
        (777, Error::Remote, "unknown status"),
    ] {
        let mut lab = tree();
        lab.server.hook = Some(Box::new(move |_, reply| {
            let mut bytes = reply[..28].to_vec();
            bytes[24..].copy_from_slice(&status.to_be_bytes());
            bytes.extend_from_slice(&[0; 4]);
            std::vec![Answer::new(bytes)]
        }));
        let op = lab.ask(b"boot", Ask::Attributes(true)).unwrap();
        assert_eq!(lab.finish(op), Err(expect));
        let detail = lab.detail(op);
        assert_eq!((detail.kind, detail.code), (DetailKind::Nfs, status));
        assert_eq!(String::from_utf8_lossy(&detail.text), text);
        assert_eq!(detail.from, Some(lab.server.station.ip));
    }
}

#[test]
fn a_busy_server_is_asked_again_with_another_call() {
    for at in [procedure::LOOKUP, procedure::READ] {
        let mut lab = tree();
        let mut times = 3;
        lab.server.hook = Some(Box::new(move |call, reply| {
            if call.procedure != at || times == 0 {
                return std::vec![Answer::new(reply)];
            }
            times -= 1;
            let mut bytes = reply[..28].to_vec();
            bytes[24..].copy_from_slice(&10008u32.to_be_bytes());
            bytes.extend_from_slice(&[0; 4]);
            std::vec![Answer::new(bytes)]
        }));
        let memory = SimMemory::new(10);
        let op = lab.start_get("boot/Image", Sink::Memory(memory.clone()), |_| ()).unwrap();
        assert_eq!(lab.finish(op), Ok(10));
        assert_eq!(memory.to_vec(), bytes(10));
        let calls: Vec<u32> = lab.server.calls.iter().filter(|c| c.procedure == at).map(|c| c.xid).collect();
        let distinct: std::collections::BTreeSet<u32> = calls.iter().copied().collect();
        assert_eq!(distinct.len(), calls.len());
        assert!(calls.len() >= 4);
    }
    let mut lab = tree();
    lab.server.hook = Some(Box::new(move |_, reply| {
        let mut bytes = reply[..28].to_vec();
        bytes[24..].copy_from_slice(&10008u32.to_be_bytes());
        std::vec![Answer::new(bytes)]
    }));
    assert_eq!(size(&mut lab, "boot"), Err(Error::Remote), "not for ever");
    assert!(lab.server.calls.len() < 200);
}
