//! Replies that are wrong in every word and at every length: no harm is done, and the next good reply counts.

use super::*;
use crate::sim::nfs_server::{Answer, Seen};
use crate::stack::stats::Counter;
use crate::wire::nfs3::procedure as nfs;
use std::boxed::Box;
use std::cell::RefCell;
use std::rc::Rc;
use std::vec;

/// An operation that makes a certain call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Mount,
    Exports,
    Unmount,
    Attributes,
    Access,
    FsStat,
    Link,
    List,
    ListPlain,
    Get(u32),
    GetInOrder,
}

/// Every operation with the calls it makes: program and procedure.
pub(super) const ALL: [(Kind, u32, u32); 16] = [
    (Kind::Mount, 100_000, 3),
    (Kind::Mount, 100_005, 1),
    (Kind::Mount, 100_003, nfs::FSINFO),
    (Kind::Exports, 100_005, 5),
    (Kind::Unmount, 100_005, 3),
    (Kind::Attributes, 100_003, nfs::LOOKUP),
    (Kind::Attributes, 100_003, nfs::READLINK),
    (Kind::Attributes, 100_003, nfs::GETATTR),
    (Kind::Access, 100_003, nfs::ACCESS),
    (Kind::FsStat, 100_003, nfs::FSSTAT),
    (Kind::Link, 100_003, nfs::READLINK),
    (Kind::List, 100_003, nfs::READDIRPLUS),
    (Kind::ListPlain, 100_003, nfs::READDIR),
    (Kind::Get(512), 100_003, nfs::READ),
    (Kind::Get(4096), 100_003, nfs::READ),
    (Kind::GetInOrder, 100_003, nfs::READ),
];

const GUARD: usize = 256;
const SIZE: usize = 4099;

/// How the first reply to a call is changed.
pub(super) type Change = Rc<RefCell<Option<Box<dyn FnOnce(&mut Vec<u8>)>>>>;

struct Target {
    lab: Lab,
    change: Change,
}

impl Target {
    fn new(kind: Kind, program: u32, procedure: u32) -> Self {
        let mut lab = Lab::new();
        lab.server.add("d/file", Node::File(bytes(SIZE)));
        lab.server.add("d/link", Node::Link(b"file".to_vec()));
        lab.server.behaviour.plus = kind != Kind::ListPlain;
        // So that GETATTR is called.
        lab.server.behaviour.attributes = procedure != nfs::GETATTR;
        let change: Change = Rc::default();
        let changes = change.clone();
        lab.server.hook = Some(Box::new(move |call: &Seen, mut reply| {
            if (call.program, call.procedure) == (program, procedure)
                && let Some(change) = changes.borrow_mut().take()
            {
                change(&mut reply);
            }
            vec![Answer::new(reply)]
        }));
        Target { lab, change }
    }

    /// Runs the operation; its result, and the region it wrote to, whose guard is intact.
    fn run(&mut self, kind: Kind) -> (Result<u64>, Vec<u8>) {
        let memory = SimMemory::new(SIZE + GUARD);
        let part = {
            use crate::storage::host::Memory;
            memory.slice(0, SIZE).unwrap()
        };
        let writer = crate::sim::host::SimWriter::default();
        let lab = &mut self.lab;
        lab.server.calls.clear();
        let task = |task| move |r: &mut attach::Request<SimHost>| r.task = task;
        let tuning = |size| move |r: &mut get::Request<SimHost>| r.tuning.read_size = size;
        let op = match kind {
            Kind::Mount => lab.attach(|_| ()),
            Kind::Exports => lab.attach(task(attach::Task::Exports(Sink::Memory(part)))),
            Kind::Unmount => lab.attach(task(attach::Task::Unmount(b"/srv".to_vec()))),
            Kind::Attributes => lab.ask(b"d/link", Ask::Attributes(true)),
            Kind::Access => lab.ask(b"d", Ask::Access(0x3f)),
            Kind::FsStat => lab.ask(b"", Ask::FsStat),
            Kind::Link => lab.ask(b"d/link", Ask::Link(Sink::Memory(part))),
            Kind::List | Kind::ListPlain => lab.ask(b"d", Ask::List(Sink::Memory(part))),
            Kind::Get(size) => lab.start_get("d/file", Sink::Memory(part), tuning(size)),
            Kind::GetInOrder => lab.start_get("d/file", Sink::Writer(writer.clone()), tuning(2048)),
        };
        let op = op.unwrap();
        let result = lab.finish(op);
        lab.close(op);
        let mut bytes = memory.to_vec();
        assert!(bytes[SIZE..].iter().all(|b| *b == 0xa5), "{kind:?}: the guard is intact");
        bytes.truncate(SIZE);
        if kind == Kind::GetInOrder {
            bytes = writer.0.borrow().taken.clone();
        }
        (result, bytes)
    }

    /// Length of the reply that is changed.
    fn reply_len(&mut self, kind: Kind) -> usize {
        let len = Rc::new(RefCell::new(0));
        let seen = len.clone();
        *self.change.borrow_mut() = Some(Box::new(move |reply| *seen.borrow_mut() = reply.len()));
        self.run(kind).0.unwrap();
        let len = *len.borrow();
        assert!(len > 0 && self.change.borrow().is_none(), "{kind:?}: the call is made");
        len
    }
}

#[test]
fn every_word_of_every_reply() {
    for (kind, program, procedure) in ALL {
        let mut target = Target::new(kind, program, procedure);
        let len = target.reply_len(kind);
        let (good, whole) = target.run(kind);
        // The data of a READ may be anything.
        let words = if matches!(kind, Kind::Get(_) | Kind::GetInOrder) { 128 / 4 + 1 } else { len / 4 };
        for word in 0..words {
            for value in [0, 1, u32::MAX, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff] {
                let at = word * 4;
                *target.change.borrow_mut() = Some(Box::new(move |reply| {
                    let old = u32::from_be_bytes(reply[at..at + 4].try_into().unwrap());
                    // "Just over" in the place of one of the values.
                    let value = if value == u32::MAX - 1 { old.wrapping_add(1) } else { value };
                    reply[at..at + 4].copy_from_slice(&value.to_be_bytes());
                }));
                // Whatever came of that, it ended, and the next operation works.
                let _ = target.run(kind);
                *target.change.borrow_mut() = None;
                let (result, bytes) = target.run(kind);
                assert_eq!(result, good, "{kind:?} after word {word} was {value:#x}");
                assert!(bytes == whole, "{kind:?} after word {word} was {value:#x}");
            }
        }
    }
}

#[test]
fn every_reply_cut_at_every_byte_is_discarded_and_the_next_counts() {
    for (kind, program, procedure) in ALL {
        let mut target = Target::new(kind, program, procedure);
        let len = target.reply_len(kind);
        let (good, whole) = target.run(kind);
        let step = if len > 1400 { 7 } else { 1 };
        for cut in (0..len).step_by(step).chain([len - 1]) {
            // What remains of the results of UMNT, of FSINFO with another status, and of RPC headers is whole.
            *target.change.borrow_mut() = Some(Box::new(move |reply| reply.truncate(cut)));
            let before = target.lab.rig.count(Counter::DropRpcMalformed);
            let (result, bytes) = target.run(kind);
            assert_eq!(result, good, "{kind:?} {procedure} cut at {cut} of {len}");
            assert!(bytes == whole, "{kind:?} {procedure} cut at {cut} of {len}");
            assert_eq!(target.lab.rig.count(Counter::DropRpcMalformed) - before, 1, "{kind:?} cut at {cut} of {len}");
        }
    }
}

/// The offsets of lengths and counts in replies, and whether the reply stays whole when they are 0 or 1.
#[test]
fn lengths_that_are_wrong_are_discarded_and_the_next_counts() {
    // Verifier of the RPC header; then what follows header, status and attributes.
    let attributes = 24 + 4 + 4 + 84;
    let lengths = [
        (Kind::Mount, 100_005, 1, 24 + 4),
        (Kind::Mount, 100_005, 1, 24 + 4 + 4 + 32),
        (Kind::Exports, 100_005, 5, 24 + 4),
        (Kind::Attributes, 100_003, nfs::LOOKUP, 24 + 4),
        (Kind::Attributes, 100_003, nfs::READLINK, attributes),
        (Kind::Link, 100_003, nfs::READLINK, attributes),
        (Kind::List, 100_003, nfs::READDIRPLUS, attributes + 8 + 4 + 8),
        (Kind::ListPlain, 100_003, nfs::READDIR, attributes + 8 + 4 + 8),
        (Kind::Get(512), 100_003, nfs::READ, attributes),
        (Kind::Get(512), 100_003, nfs::READ, attributes + 8),
        (Kind::Get(4096), 100_003, nfs::READ, attributes),
        (Kind::Get(4096), 100_003, nfs::READ, attributes + 8),
        (Kind::GetInOrder, 100_003, nfs::READ, attributes),
        (Kind::GetInOrder, 100_003, nfs::READ, attributes + 8),
    ];
    for (kind, program, procedure, at) in lengths {
        for at in [16, at] {
            let mut target = Target::new(kind, program, procedure);
            let (good, whole) = target.run(kind);
            for value in [0x7fff_ffffu32, 0x8000_0000, 0xffff_ffff, 401, 70_000] {
                *target.change.borrow_mut() =
                    Some(Box::new(move |reply| reply[at..at + 4].copy_from_slice(&value.to_be_bytes())));
                let before = target.lab.rig.count(Counter::DropRpcMalformed);
                let (result, bytes) = target.run(kind);
                if at == 24 + 4 + 4 + 32 && value == 401 {
                    continue;
                }
                assert_eq!(result, good, "{kind:?} {procedure} {value:#x} at {at}");
                assert!(bytes == whole, "{kind:?} {procedure} {value:#x} at {at}");
                let discarded = target.lab.rig.count(Counter::DropRpcMalformed) - before;
                assert_eq!(discarded, 1, "{kind:?} {procedure} {value:#x} at {at}");
            }
        }
    }
}

#[test]
fn fragments_in_any_order_and_copies_of_which_one_is_corrupt() {
    type Frames = Vec<Vec<u8>>;
    let keep: fn(Frames) -> Frames = |frames| frames;
    let reverse: fn(Frames) -> Frames = |frames| frames.into_iter().rev().collect();
    let exchange: fn(Frames) -> Frames = |mut frames| {
        let end = frames.len() - 1;
        frames.swap(0, end);
        frames
    };
    let second_first: fn(Frames) -> Frames = |mut frames| {
        let n = frames.len().min(2) - 1;
        frames.swap(0, n);
        frames
    };
    // How many copies of each reply come, and which of them is corrupt.
    for (copies, corrupt) in [(1, None), (2, None), (2, Some(0)), (2, Some(1))] {
        for order in [keep, reverse, exchange, second_first] {
            for attributes in [true, false] {
                let mut lab = Lab::new();
                lab.server.behaviour.attributes = attributes;
                lab.server.add("f", Node::File(bytes(40_001)));
                lab.server.hook = Some(Box::new(move |call: &Seen, reply| {
                    let copies = if call.procedure == nfs::READ { copies } else { 1 };
                    vec![Answer::new(reply); copies]
                }));
                let mut count = 0;
                lab.server.frame_hook = Some(Box::new(move |mut frames| {
                    if frames.len() > 1 {
                        if corrupt == Some(count % copies) {
                            // A byte of the data, in the second fragment.
                            frames[1][100] ^= 0xff;
                        }
                        count += 1;
                    }
                    order(frames)
                }));
                let memory = SimMemory::new(40_001 + GUARD);
                let op = lab.start_get("f", Sink::Memory(memory.clone()), |r| r.tuning.read_size = 4096).unwrap();
                assert_eq!(lab.finish(op), Ok(40_001));
                assert!(memory.to_vec()[..40_001] == bytes(40_001)[..], "{copies} copies, {corrupt:?} corrupt");
                assert!(memory.to_vec()[40_001..].iter().all(|b| *b == 0xa5), "the guard is intact");
            }
        }
    }
}
