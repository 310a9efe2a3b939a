//! Field cases of NFS.

use super::*;
use crate::client::operation::DetailKind;
use crate::sim::nfs_server::{Answer, Seen};
use crate::sim::packets::Station;
use crate::stack::stats::Counter;
use crate::storage::time::Instant;
use crate::wire::nfs3::{Attributes, ReadHead, procedure};
use crate::wire::rpc;
use crate::wire::xdr::Encoder;
use std::boxed::Box;
use std::cell::RefCell;
use std::format;
use std::rc::Rc;
use std::vec;

const SMALL: Tuning = Tuning { timeout: Duration::ZERO, read_size: 1024, depth: 1, sink_stall: Duration::ZERO };

fn is_read(call: &Seen) -> bool {
    call.program == 100_003 && call.procedure == procedure::READ
}

/// A reply to a READ; `count` is the first of its two lengths.
fn read_reply(xid: u32, attributes: Option<Attributes>, count: u32, eof: bool, data: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0; data.len() + 256];
    let mut e = Encoder::new(&mut buffer);
    rpc::emit_success(&mut e, xid).unwrap();
    ReadHead { len: data.len() as u32, eof }.emit(attributes.as_ref(), &mut e).unwrap();
    e.fixed(data).unwrap();
    let mut wire = e.finish().to_vec();
    let at = 28 + 4 + if attributes.is_some() { Attributes::LEN } else { 0 };
    wire[at..at + 4].copy_from_slice(&count.to_be_bytes());
    wire
}

/// Offset and count that a READ asks for.
fn asked(call: &Seen) -> (u64, u32) {
    let mut args = rpc::ReceivedCall::parse(&call.bytes).unwrap().args;
    match crate::wire::nfs3::Args::parse(procedure::READ, &mut args) {
        Ok(crate::wire::nfs3::Args::Read { offset, count, .. }) => (offset, count),
        _ => panic!("a READ"),
    }
}

#[test]
fn case_n03_lengths_are_never_more_than_what_is_there_and_was_asked() {
    // Which of the two lengths, and what is in it. The nearest valid reply is the last.
    let values = [1025u32, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
    let mut variants: Vec<(&str, u32)> = Vec::new();
    for value in values {
        variants.extend([("count", value), ("length", value), ("both", value)]);
    }
    variants.push(("neither", 1024));
    for (which, value) in variants {
        let mut lab = Lab::new();
        let data = bytes(3000);
        lab.server.add("f", Node::File(data.clone()));
        let mut first = true;
        lab.server.hook = Some(Box::new(move |call, reply| {
            let mut reply = reply;
            if is_read(call) && core::mem::take(&mut first) {
                // Header, status, attributes.
                let at = 24 + 4 + 4 + Attributes::LEN;
                if matches!(which, "count" | "both") {
                    reply[at..at + 4].copy_from_slice(&value.to_be_bytes());
                }
                if matches!(which, "length" | "both") {
                    reply[at + 8..at + 12].copy_from_slice(&value.to_be_bytes());
                }
                if which != "neither" && value == 1025 {
                    // So that the bytes are there, but not asked for.
                    reply.extend_from_slice(&[0xee; 4]);
                }
            }
            vec![Answer::new(reply)]
        }));
        let memory = SimMemory::new(3000 + 4096);
        let op = lab.start_get("f", Sink::Memory(memory.clone()), |r| r.tuning = SMALL).unwrap();
        assert_eq!(lab.finish(op), Ok(3000), "{which} {value:#x}");
        assert!(memory.to_vec()[..3000] == data[..]);
        assert!(memory.to_vec()[3000..].iter().all(|b| *b == 0xa5), "the guard is intact");
        let discarded = u32::from(which != "neither");
        assert_eq!(lab.rig.count(Counter::DropRpcMalformed), discarded, "{which} {value:#x}");
        assert_eq!(lab.server.reads().len() as u32, 3 + discarded);
    }
}

#[test]
fn case_n03_cut_at_every_byte() {
    let mut lab = Lab::new();
    let data = bytes(1024);
    lab.server.add("f", Node::File(data.clone()));
    let whole = 24 + 4 + 4 + Attributes::LEN + 12 + 1024;
    let cut = Rc::new(RefCell::new(Some(0)));
    let next = cut.clone();
    lab.server.hook = Some(Box::new(move |call, mut reply| {
        if is_read(call)
            && let Some(n) = next.borrow_mut().take()
        {
            assert!(n <= reply.len());
            reply.truncate(n);
        }
        vec![Answer::new(reply)]
    }));
    for n in 0..=whole {
        *cut.borrow_mut() = Some(n);
        let memory = SimMemory::new(1024 + 1024);
        lab.server.calls.clear();
        let op = lab.start_get("f", Sink::Memory(memory.clone()), |r| r.tuning = SMALL).unwrap();
        assert_eq!(lab.finish(op), Ok(1024), "cut at {n}");
        assert!(memory.to_vec()[..1024] == data[..], "cut at {n}");
        assert!(memory.to_vec()[1024..].iter().all(|b| *b == 0xa5), "the guard is intact");
        assert_eq!(lab.server.reads().len(), if n == whole { 1 } else { 2 });
        lab.close(op);
    }
    assert_eq!(lab.rig.count(Counter::DropRpcMalformed), whole as u32);
}

#[test]
fn case_n03_readlink_and_lookup() {
    for (at, procedure, valid) in
        [(24 + 4, procedure::LOOKUP, 32u32), (24 + 4 + 4 + Attributes::LEN, procedure::READLINK, 6)]
    {
        for value in [valid, valid + 4, 1025, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
            let mut lab = Lab::new();
            lab.server.add("link", Node::Link(b"target".to_vec()));
            lab.server.add("target", Node::File(bytes(5)));
            let mut first = true;
            lab.server.hook = Some(Box::new(move |call, mut reply| {
                if call.procedure == procedure && core::mem::take(&mut first) {
                    assert_eq!(reply[at..at + 4], valid.to_be_bytes());
                    if procedure == self::procedure::LOOKUP && value == valid + 4 {
                        // A handle that is too long, with its bytes.
                        reply.truncate(at + 4);
                        reply.extend_from_slice(&[1; 512]);
                        reply[at..at + 4].copy_from_slice(&68u32.to_be_bytes());
                    } else {
                        reply[at..at + 4].copy_from_slice(&value.to_be_bytes());
                    }
                }
                vec![Answer::new(reply)]
            }));
            let op = lab.ask(b"link", Ask::Attributes(true)).unwrap();
            assert_eq!(lab.finish(op), Ok(5), "{procedure} {value:#x}");
            let discarded = u32::from(value != valid);
            assert_eq!(lab.rig.count(Counter::DropRpcMalformed), discarded, "{procedure} {value:#x}");
        }
    }
}

#[test]
fn case_n04_late_and_repeated_replies() {
    let mut lab = Lab::new();
    let data = bytes(3 * 1024);
    lab.server.add("f", Node::File(data.clone()));
    let (mut first, mut held) = (None, None);
    lab.server.hook = Some(Box::new(move |call, reply| {
        if !is_read(call) {
            return vec![Answer::new(reply)];
        }
        match asked(call).0 {
            0 if first.is_none() => {
                // Past the timeout, and while the second READ waits.
                first = Some(call.xid);
                held = Some(reply.clone());
                vec![Answer::new(reply).after(700)]
            }
            0 => {
                assert_eq!(first, Some(call.xid), "RFC 5531 §9: a call sent again keeps its transaction");
                // Wrong bytes, which a client that took the late copy for new data would store.
                let mut late = held.clone().unwrap();
                let end = late.len();
                late[end - 1024..].fill(0xbb);
                vec![Answer::new(reply), Answer::new(late).after(200)]
            }
            1024 => vec![Answer::new(reply).after(1000)],
            _ => vec![Answer::new(reply)],
        }
    }));
    let memory = SimMemory::new(3 * 1024);
    let op = lab.start_get("f", Sink::Memory(memory.clone()), |r| r.tuning = SMALL).unwrap();
    assert_eq!(lab.finish(op), Ok(3 * 1024));
    assert!(memory.to_vec() == data, "the data is exact");
    let reads = lab.server.reads();
    assert!(reads.len() >= 4 && reads[0] == reads[1] && reads[2].0 != reads[0].0);
    let late = lab.rig.count(Counter::DropUdpPeer) + lab.rig.count(Counter::DropRpcStale);
    assert!(late >= 2, "both late replies are counted: {late}");
}

/// When the calls of one READ come that is answered at its third sending only, while `noise` goes on.
fn sendings(noise: impl Fn(&Seen, &[u8]) -> Vec<Answer> + 'static) -> (Vec<Instant>, Vec<u8>) {
    let mut lab = Lab::new();
    lab.server.add("f", Node::File(bytes(1024)));
    lab.rig.know(Station::new(2));
    let mut count = 0;
    lab.server.hook = Some(Box::new(move |call, reply| {
        if !is_read(call) {
            return vec![Answer::new(reply)];
        }
        count += 1;
        let mut answers = if count < 3 { noise(call, &reply) } else { Vec::new() };
        if count == 3 {
            answers.push(Answer::new(reply));
        }
        answers
    }));
    let memory = SimMemory::new(1024);
    let op = lab.start_get("f", Sink::Memory(memory.clone()), |r| r.tuning = SMALL).unwrap();
    assert_eq!(lab.finish(op), Ok(1024));
    let times = lab.server.calls.iter().filter(|c| is_read(c)).map(|c| c.at).collect();
    (times, memory.to_vec())
}

#[test]
fn case_n04_foreign_replies_reset_no_timer() {
    let spoiled = |reply: &[u8]| {
        let mut reply = reply.to_vec();
        let end = reply.len();
        reply[end - 1024..].fill(0xbb);
        reply
    };
    let (quiet, data) = sendings(|_, _| Vec::new());
    assert_eq!((quiet.len(), &data), (3, &bytes(1024)));
    let foreign = move |_: &Seen, reply: &[u8]| {
        let mut reply = spoiled(reply);
        reply[3] ^= 1;
        (1..4).map(|n| Answer::new(reply.clone()).after(n * 10)).collect()
    };
    assert_eq!(sendings(foreign), (quiet.clone(), bytes(1024)), "another transaction");
    let elsewhere = move |_: &Seen, reply: &[u8]| {
        vec![Answer { station: Some(Station::new(2)), ..Answer::new(spoiled(reply)) }.after(10)]
    };
    assert_eq!(sendings(elsewhere), (quiet.clone(), bytes(1024)), "the same transaction from another address");
    let port = move |_: &Seen, reply: &[u8]| vec![Answer { port: Some(2048), ..Answer::new(spoiled(reply)) }.after(10)];
    assert_eq!(sendings(port), (quiet.clone(), bytes(1024)), "the same transaction from another port");
    // The nearest valid one.
    let (times, data) = sendings(|_, reply| vec![Answer::new(reply.to_vec()).after(10)]);
    assert_eq!((times.len(), data), (1, bytes(1024)));
}

#[test]
fn case_n05_port_zero_means_not_registered() {
    let mut lab = Lab::new();
    lab.server.behaviour.nfs_ports = (0, 2049);
    let op = lab.attach(|r| r.transport = Transport::Udp).unwrap();
    assert_eq!(lab.finish(op), Err(Error::NotSupported));
    let detail = lab.detail(op);
    assert_eq!(detail.kind, DetailKind::Rpc);
    assert!(detail.text.windows(14).any(|w| w == b"not registered"));
    assert!(!lab.server.ports().contains(&0), "no frame to port 0");
    assert_eq!(lab.server.ports().into_iter().collect::<Vec<_>>(), [111]);
    lab.close(op);

    lab.server.behaviour.nfs_ports = (2049, 2049);
    lab.server.behaviour.mount_port = Some(0);
    let op = lab.attach(|_| ()).unwrap();
    assert_eq!(lab.finish(op), Err(Error::NotSupported));
    assert!(lab.detail(op).text.starts_with(b"MOUNT version 3 is not registered"));
    lab.close(op);

    // The nearest valid server.
    lab.server.behaviour.mount_port = Some(20048);
    let op = lab.attach(|_| ()).unwrap();
    assert_eq!(lab.finish(op), Ok(0));
}

#[test]
fn case_n05_impossible_ports_and_a_silent_port_mapper() {
    let mut lab = Lab::new();
    lab.server.behaviour.mount_port = Some(65_536);
    let op = lab.attach(|_| ()).unwrap();
    assert_eq!(lab.finish(op), Err(Error::Protocol), "65536 is no port");
    assert_eq!(lab.server.ports().into_iter().collect::<Vec<_>>(), [111], "and nothing is sent to it");
    lab.close(op);

    lab.server.behaviour.mount_port = None;
    for (transport, most) in [(Transport::Udp, 11), (Transport::Auto, 21)] {
        let op = lab.attach(|r| r.transport = transport).unwrap();
        let begin = lab.rig.now();
        assert_eq!(lab.finish(op), Err(Error::Timeout));
        assert!(lab.rig.now().since(begin) <= Duration::from_secs(most));
        lab.close(op);
    }

    lab.server.calls.clear();
    let op = lab.attach(|r| (r.mount_port, r.nfs_port) = (20048, 2049)).unwrap();
    assert_eq!(lab.finish(op), Ok(0), "both ports are preset");
    assert_eq!(lab.server.ports().into_iter().collect::<Vec<_>>(), [2049, 20048]);
    lab.close(op);

    // Only the port of MOUNT is: NFS has one of its own.
    lab.server.hook =
        Some(Box::new(|call, reply| if call.program == 100_000 { Vec::new() } else { vec![Answer::new(reply)] }));
    let op = lab.attach(|r| r.mount_port = 20048).unwrap();
    assert_eq!(lab.finish(op), Ok(0));
}

/// What came of it: the result, the bytes, offsets and counts asked for, replies discarded.
type Odd = (Result<u64>, Vec<u8>, Vec<(u64, u32)>, u32);

/// Reads a file of 2500 bytes from a server that answers READs as `answer` says: given offset, count and the file, it
/// gives the first length, end of file, and the data.
fn odd_server(size: u64, mut answer: impl FnMut(u64, u32, &[u8]) -> (u32, bool, Vec<u8>) + 'static) -> Odd {
    let mut lab = Lab::new();
    let data = bytes(2500);
    let node = lab.server.add("f", Node::Sparse(size));
    let attributes = lab.server.attributes(node);
    let file = data.clone();
    lab.server.hook = Some(Box::new(move |call, reply| {
        if !is_read(call) {
            return vec![Answer::new(reply)];
        }
        let (offset, count) = asked(call);
        let (count, eof, data) = answer(offset, count, &file);
        vec![Answer::new(read_reply(call.xid, Some(attributes), count, eof, &data))]
    }));
    let memory = SimMemory::new(4096);
    let op = lab.start_get("f", Sink::Memory(memory.clone()), |r| r.tuning = SMALL).unwrap();
    let result = lab.finish(op);
    let got = memory.to_vec();
    assert!(got[size as usize..].iter().all(|b| *b == 0xa5), "nothing beyond the file is written");
    let reads = lab.server.reads().iter().map(|r| (r.1, r.2)).collect();
    (result, got[..2500].to_vec(), reads, lab.rig.count(Counter::DropRpcMalformed))
}

fn part(file: &[u8], offset: u64, count: usize) -> Vec<u8> {
    let at = (offset as usize).min(file.len());
    file[at..(at + count).min(file.len())].to_vec()
}

#[test]
fn case_n09_short_reads_advance_by_what_came() {
    let (result, data, reads, _) = odd_server(2500, |offset, count, file| {
        let most = if offset == 1024 { 700 } else { count as usize };
        let data = part(file, offset, most);
        (data.len() as u32, offset + data.len() as u64 == 2500, data)
    });
    assert_eq!((result, data), (Ok(2500), bytes(2500)));
    assert_eq!(reads, [(0, 1024), (1024, 1024), (1724, 324), (2048, 452)]);
}

#[test]
fn case_n09_the_end_is_where_the_size_says() {
    // The server never says that the file ends, or says so in a reply of its own.
    let (result, data, reads, _) = odd_server(2500, |offset, count, file| {
        let data = part(file, offset, count as usize);
        (data.len() as u32, data.is_empty(), data)
    });
    assert_eq!((result, data, reads.len()), (Ok(2500), bytes(2500), 3));
}

#[test]
fn case_n09_nothing_and_no_end_is_an_error() {
    let (result, _, reads, _) = odd_server(2500, |offset, count, file| {
        let data = if offset == 0 { part(file, 0, count as usize) } else { Vec::new() };
        (data.len() as u32, false, data)
    });
    assert_eq!((result, reads.len()), (Err(Error::Protocol), 2));
    // The file has become shorter than it was when it was found: what came is not all of it.
    let (result, _, reads, _) = odd_server(2600, |offset, count, file| {
        let data = part(file, offset, count as usize);
        (data.len() as u32, offset + data.len() as u64 >= 2500, data)
    });
    assert_eq!((result, reads.len()), (Err(Error::Changed), 3));
}

#[test]
fn case_n09_two_lengths_that_differ() {
    let mut times = 1;
    let (result, data, reads, malformed) = odd_server(2500, move |offset, count, file| {
        if offset == 1024 && times > 0 {
            times -= 1;
            return (100, false, part(file, offset, 104));
        }
        let data = part(file, offset, count as usize);
        (data.len() as u32, offset + data.len() as u64 == 2500, data)
    });
    assert_eq!((result, data, reads.len(), malformed), (Ok(2500), bytes(2500), 4, 1));
    let (result, _, reads, _) = odd_server(2500, |offset, _, file| (100, false, part(file, offset, 104)));
    assert_eq!(result, Err(Error::Protocol));
    assert!(reads.len() <= 8, "bounded: {}", reads.len());
}

#[test]
fn case_n11_cookies_and_verifiers_are_given_back() {
    let mut lab = Lab::new();
    for n in 0..7 {
        lab.server.add(&format!("d/{n}"), Node::Sparse(n));
    }
    for plus in [true, false] {
        lab.server.behaviour.plus = plus;
        lab.server.behaviour.page = 5;
        lab.server.calls.clear();
        let memory = SimMemory::new(1024);
        let op = lab.ask(b"d", Ask::List(Sink::Memory(memory.clone()))).unwrap();
        // The server refuses a verifier other than zero at first, and another than its own later; cookies begin at 2^63.
        assert_eq!(lab.finish(op), Ok(7));
        let names: Vec<Vec<u8>> = records(&memory.to_vec(), 7).into_iter().map(|e| e.name).collect();
        assert_eq!(names, (0..7).map(|n| format!("{n}").into_bytes()).collect::<Vec<_>>());
        let pages = lab.server.count(if plus { procedure::READDIRPLUS } else { procedure::READDIR });
        assert_eq!(pages, 2);
        lab.close(op);
    }
}

#[test]
fn case_n11_no_progress_is_noticed() {
    for (entries, page, circle, most) in [(7, 3, 3, 2), (7, 2, 6, 12), (300, 4, 200, 150)] {
        let mut lab = Lab::new();
        for n in 0..entries {
            lab.server.add(&format!("d/{n}"), Node::Sparse(n));
        }
        lab.server.behaviour.page = page;
        lab.server.behaviour.circle = Some(circle);
        let op = lab.ask(b"d", Ask::List(Sink::Discard)).unwrap();
        assert_eq!(lab.finish(op), Err(Error::Loop));
        let calls = lab.server.count(procedure::READDIRPLUS);
        assert!(calls <= most, "{calls} calls for a circle of {circle} entries by {page}");
    }
    let mut lab = Lab::new();
    lab.server.add("d/x", Node::Sparse(1));
    lab.server.behaviour.page = 0;
    let op = lab.ask(b"d", Ask::List(Sink::Discard)).unwrap();
    assert_eq!(lab.finish(op), Err(Error::Protocol), "no entries and no end");
    assert_eq!(lab.server.count(procedure::READDIRPLUS), 1);
}

#[test]
fn case_n11_cookies_gone_bad_and_impossible_names() {
    let mut lab = Lab::new();
    for n in 0..7 {
        lab.server.add(&format!("d/{n}"), Node::Sparse(n));
    }
    lab.server.behaviour.page = 5;
    let mut pages = 0;
    lab.server.hook = Some(Box::new(move |call, mut reply| {
        if call.procedure == procedure::READDIRPLUS {
            pages += 1;
            if pages == 2 {
                reply[24..28].copy_from_slice(&10003u32.to_be_bytes());
            }
        }
        vec![Answer::new(reply)]
    }));
    let op = lab.ask(b"d", Ask::List(Sink::Discard)).unwrap();
    assert_eq!(lab.finish(op), Err(Error::Changed));
    assert_eq!((lab.detail(op).kind, lab.detail(op).code), (DetailKind::Nfs, 10003));
    lab.close(op);

    // The length of the first name; in front of it header, status, attributes, verifier, mark, file number.
    let at = 24 + 4 + 4 + Attributes::LEN + 8 + 4 + 8;
    for value in [1u32, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
        let mut first = true;
        lab.server.hook = Some(Box::new(move |call, mut reply| {
            if call.procedure == procedure::READDIRPLUS && core::mem::take(&mut first) {
                assert_eq!(reply[at..at + 5], [0, 0, 0, 1, b'.']);
                reply[at..at + 4].copy_from_slice(&value.to_be_bytes());
            }
            vec![Answer::new(reply)]
        }));
        let before = lab.rig.count(Counter::DropRpcMalformed);
        let op = lab.ask(b"d", Ask::List(Sink::Discard)).unwrap();
        assert_eq!(lab.finish(op), Ok(7));
        let discarded = u32::from(value != 1);
        assert_eq!(lab.rig.count(Counter::DropRpcMalformed) - before, discarded, "{value:#x}");
        lab.close(op);
    }

    // Names that a host could take for a path.
    for name in [&b"a/b"[..], b"a\0b"] {
        let mut lab = Lab::new();
        let Node::Dir(root) = &mut lab.server.nodes[0] else { unreachable!() };
        root.insert(name.to_vec(), 0);
        let op = lab.ask(b"", Ask::List(Sink::Discard)).unwrap();
        assert_eq!(lab.finish(op), Err(Error::Protocol));
    }
}

#[test]
fn case_n12_paths_of_every_length() {
    let mut lab = Lab::new();
    for (len, fits) in [(1023, true), (1024, true), (1025, false), (1424, false), (5000, false)] {
        let export = vec![b'e'; len];
        lab.server.export = export.clone();
        let op = lab.attach(|r| r.task = attach::Task::Mount(export.clone()));
        match op {
            Ok(op) => {
                assert!(fits, "{len}");
                assert_eq!(lab.finish(op), Ok(0));
                lab.close(op);
            }
            Err(why) => assert_eq!((why, fits), (Error::NameTooLong, false)),
        }
        // A file: many short components.
        let path: Vec<u8> = (0..len).map(|i| if i % 2 == 0 { b'a' } else { b'/' }).collect();
        match lab.ask(&path, Ask::Attributes(true)) {
            Ok(op) => {
                assert!(fits, "{len}");
                assert_eq!(lab.finish(op), Err(Error::NotFound));
                lab.close(op);
            }
            Err(why) => assert_eq!((why, fits), (Error::NameTooLong, false)),
        }
    }
    let frames = lab.link.delivered;
    assert!(frames > 0);
    for call in &lab.server.calls {
        assert!(call.bytes.len() <= 1024 + 128, "no over-long frame leaves: {}", call.bytes.len());
    }
}

#[test]
fn case_n12_components() {
    let mut lab = Lab::new();
    let name = "c".repeat(255);
    lab.server.add(&name, Node::File(bytes(3)));
    let op = lab.ask(name.as_bytes(), Ask::Attributes(true)).unwrap();
    assert_eq!(lab.finish(op), Ok(3));
    lab.close(op);
    let sent = lab.server.calls.len();
    assert_eq!(lab.ask("c".repeat(256).as_bytes(), Ask::Attributes(true)).err(), Some(Error::NameTooLong));
    let long = format!("x/{}", "c".repeat(256));
    let get = lab.start_get(&long, Sink::Discard, |_| ());
    assert_eq!((get.err(), lab.server.calls.len()), (Some(Error::NameTooLong), sent), "nothing was sent");

    let deep = vec!["d"; 300].join("/");
    lab.server.add(&format!("{deep}/f"), Node::File(bytes(4)));
    for path in [format!("{deep}/f"), format!("/{deep}//f"), format!("{deep}/../d/./f"), format!("../.././{deep}/f")] {
        let op = lab.ask(path.as_bytes(), Ask::Attributes(true)).unwrap();
        assert_eq!(lab.finish(op), Ok(4), "{path}");
        lab.close(op);
    }
    for path in [&b"."[..], b"..", b"/", b"//", b"./", b"../", b"../..", b""] {
        let op = lab.ask(path, Ask::Attributes(true)).unwrap();
        assert_eq!(lab.finish(op), Ok(64), "the root");
        lab.close(op);
    }
    let op = lab.ask(b"d/", Ask::List(Sink::Discard)).unwrap();
    assert_eq!(lab.finish(op), Ok(1), "a trailing slash");
}

#[test]
fn case_i03_nobody_listens() {
    let mut lab = Lab::new();
    lab.server.add("f", Node::File(bytes(100_000)));
    lab.server.behaviour.down = true;
    lab.server.behaviour.unreachable = true;
    let begin = lab.rig.now();
    let op = lab.attach(|_| ()).unwrap();
    assert_eq!(lab.finish(op), Err(Error::Refused));
    let detail = lab.detail(op);
    assert_eq!((detail.kind, detail.code, detail.from), (DetailKind::Icmp, 0x303, Some(lab.server.station.ip)));
    let get = lab.start_get("f", Sink::Discard, |_| ()).unwrap();
    assert_eq!(lab.finish(get), Err(Error::Refused));
    assert!(lab.rig.now().since(begin) < Duration::from_secs(1));
}

#[test]
fn case_i03_quotes_that_are_not_ours() {
    let mut lab = Lab::new();
    lab.server.add("f", Node::File(bytes(10)));
    let op = lab.start_get("f", Sink::Discard, |_| ()).unwrap();
    let sent = lab.rig.sent();
    let quoted = crate::wire::ethernet::Frame::parse(&sent[0]).unwrap().payload()[..28].to_vec();
    let mut other_port = quoted.clone();
    other_port[21] ^= 1;
    let mut other_server = quoted.clone();
    other_server[19] ^= 7;
    let mut long_header = quoted.clone();
    long_header[0] = 0x4f;
    for quote in [&other_port[..], &other_server, &quoted[..27], &long_header] {
        let frame = lab.server.port_unreachable(lab.rig.us, quote);
        lab.rig.input(&frame);
        assert!(lab.rig.engine.ops.get(op).unwrap().is_running());
    }
    let frame = lab.server.port_unreachable(lab.rig.us, &quoted);
    lab.rig.input(&frame);
    assert_eq!(lab.finish(op), Err(Error::Refused));
}

#[test]
fn a_server_that_restarts_in_the_middle_is_waited_for() {
    for unreachable in [true, false] {
        let conditions = Conditions { bits_per_second: 100_000_000, ..Conditions::default() };
        let mut lab = Lab::over(conditions, 1);
        let data = bytes(2_000_000);
        lab.server.add("f", Node::File(data.clone()));
        let begin = lab.rig.now();
        lab.server.behaviour.unreachable = unreachable;
        lab.server.behaviour.outage = Some((begin + Duration::from_millis(50), begin + Duration::from_millis(8050)));
        let memory = SimMemory::new(2_000_000);
        let op = lab.start_get("f", Sink::Memory(memory.clone()), |_| ()).unwrap();
        assert_eq!(lab.finish(op), Ok(2_000_000));
        assert!(memory.to_vec() == data);
        let ms = lab.rig.now().since(begin).as_millis();
        assert!((8050..20_000).contains(&ms), "{ms} ms");
        lab.close(op);

        // One that does not come back.
        let now = lab.rig.now();
        lab.server.behaviour.outage = Some((now + Duration::from_millis(50), now + Duration::from_secs(10_000)));
        let op = lab.start_get("f", Sink::Memory(memory.clone()), |_| ()).unwrap();
        let expect = if unreachable { Error::Refused } else { Error::Timeout };
        assert_eq!(lab.finish(op), Err(expect));
        let waited = lab.rig.now().since(now).as_millis();
        assert!((30_000..32_000).contains(&waited), "{waited} ms");
    }
}
