//! The same over TCP: records that are wrong in every word and at every length.

use super::hostile::{ALL, Change, Kind};
use super::tcp::Stream;
use super::*;
use crate::sim::nfs_server::{Answer, Seen};
use crate::storage::host::Memory;
use crate::wire::nfs3::procedure as nfs;
use std::boxed::Box;
use std::cell::RefCell;
use std::rc::Rc;
use std::vec;

const GUARD: usize = 256;
const SIZE: usize = 4099;

struct Target {
    stream: Stream,
    change: Change,
}

impl Target {
    fn new(kind: Kind, program: u32, procedure: u32) -> Self {
        let mut stream = Stream::over(Conditions::default(), 1);
        let server = &mut stream.peer.server;
        server.add("d/file", Node::File(bytes(SIZE)));
        server.add("d/link", Node::Link(b"file".to_vec()));
        server.behaviour.plus = kind != Kind::ListPlain;
        server.behaviour.attributes = procedure != nfs::GETATTR;
        let change: Change = Rc::default();
        let changes = change.clone();
        server.hook = Some(Box::new(move |call: &Seen, mut reply| {
            if (call.program, call.procedure) == (program, procedure)
                && let Some(change) = changes.borrow_mut().take()
            {
                change(&mut reply);
            }
            vec![Answer::new(reply)]
        }));
        Target { stream, change }
    }

    /// Runs the operation; its result, and what it wrote, whose guard is intact.
    fn run(&mut self, kind: Kind) -> (Result<u64>, Vec<u8>) {
        let memory = SimMemory::new(SIZE + GUARD);
        let part = memory.slice(0, SIZE).unwrap();
        let writer = crate::sim::host::SimWriter::default();
        let stream = &mut self.stream;
        stream.peer.server.calls.clear();
        let tuning = |read_size| Tuning { read_size, timeout: Duration::from_secs(4), ..Tuning::default() };
        let task = |task| {
            move |r: &mut attach::Request<SimHost>| {
                (r.task, r.transport) = (task, Transport::Tcp);
                r.tuning.timeout = Duration::from_secs(4);
            }
        };
        let get = |stream: &mut Stream, sink, size| {
            stream.start_get(sink, |r| (r.path, r.tuning) = (b"d/file".to_vec(), tuning(size)))
        };
        let op = match kind {
            Kind::Mount => stream.attach(task(attach::Task::Mount(b"/srv".to_vec()))),
            Kind::Exports => stream.attach(task(attach::Task::Exports(Sink::Memory(part)))),
            Kind::Unmount => stream.attach(task(attach::Task::Unmount(b"/srv".to_vec()))),
            Kind::Attributes => stream.ask(b"d/link", Ask::Attributes(true)),
            Kind::Access => stream.ask(b"d", Ask::Access(0x3f)),
            Kind::FsStat => stream.ask(b"", Ask::FsStat),
            Kind::Link => stream.ask(b"d/link", Ask::Link(Sink::Memory(part))),
            Kind::List | Kind::ListPlain => stream.ask(b"d", Ask::List(Sink::Memory(part))),
            Kind::Get(size) => get(stream, Sink::Memory(part), size),
            Kind::GetInOrder => get(stream, Sink::Writer(writer.clone()), 2048),
        };
        let result = stream.finish(op);
        stream.close(op);
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

/// Procedures whose calls travel over TCP; the port mapper is asked over UDP.
fn over_tcp() -> impl Iterator<Item = (Kind, u32, u32)> {
    ALL.into_iter().filter(|(_, program, _)| *program != 100_000)
}

#[test]
fn every_word_of_every_reply_over_tcp() {
    for (kind, program, procedure) in over_tcp() {
        let mut target = Target::new(kind, program, procedure);
        let len = target.reply_len(kind);
        let (good, whole) = target.run(kind);
        let words = if matches!(kind, Kind::Get(_) | Kind::GetInOrder) { 128 / 4 + 1 } else { len / 4 };
        for word in 0..words {
            for value in [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff] {
                let at = word * 4;
                *target.change.borrow_mut() = Some(Box::new(move |reply| {
                    let old = u32::from_be_bytes(reply[at..at + 4].try_into().unwrap());
                    // "Just over" in the place of one of the values.
                    let value = if value == u32::MAX - 1 { old.wrapping_add(1) } else { value };
                    reply[at..at + 4].copy_from_slice(&value.to_be_bytes());
                }));
                let _ = target.run(kind);
                *target.change.borrow_mut() = None;
                let (result, bytes) = target.run(kind);
                assert_eq!(result, good, "{kind:?} {procedure} after word {word} was {value:#x}");
                assert!(bytes == whole, "{kind:?} {procedure} after word {word} was {value:#x}");
            }
        }
    }
}

#[test]
fn every_reply_over_tcp_cut_at_every_byte() {
    for (kind, program, procedure) in over_tcp() {
        let mut target = Target::new(kind, program, procedure);
        let len = target.reply_len(kind);
        let (good, whole) = target.run(kind);
        let step = if len > 600 { 7 } else { 1 };
        for cut in (0..len).step_by(step).chain([len - 1]) {
            *target.change.borrow_mut() = Some(Box::new(move |reply| reply.truncate(cut)));
            let (result, bytes) = target.run(kind);
            assert_eq!(result, good, "{kind:?} {procedure} cut at {cut} of {len}");
            assert!(bytes == whole, "{kind:?} {procedure} cut at {cut} of {len}");
        }
    }
}
