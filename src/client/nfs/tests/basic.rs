//! What works when everything works.

use super::*;
use crate::client::operation::DetailKind;
use crate::sim::host::SimWriter;
use crate::sim::nfs_server::sparse_byte;
use crate::wire::nfs3::FileType;

#[test]
fn a_mount_finds_the_ports_and_the_handle() {
    let mut lab = Lab::new();
    let mount = lab.mount();
    assert_eq!(mount, lab.known());
    assert!(lab.server.calls.iter().all(|c| (665..=1023).contains(&c.from)), "a privileged port");
}

#[test]
fn a_file_comes_whole() {
    for len in [0, 1, 3, 4, 1023, 1024, 32_768, 32_769, 1_000_003] {
        let mut lab = Lab::new();
        lab.server.add("boot/Image", Node::File(bytes(len)));
        let memory = SimMemory::new(len + 16);
        let op = lab.start_get("boot/Image", Sink::Memory(memory.clone()), |_| ()).unwrap();
        assert_eq!(lab.finish(op), Ok(len as u64));
        assert!(memory.to_vec()[..len] == bytes(len)[..], "{len} bytes are equal");
        assert_eq!(memory.to_vec()[len..], [0xa5; 16]);
    }
}

#[test]
fn a_file_comes_in_order_to_a_writer() {
    for (len, appetite) in [(0usize, None), (5000, None), (300_003, None), (50_001, Some(1000)), (7000, Some(7))] {
        let mut lab = Lab::new();
        lab.server.add("Image", Node::File(bytes(len)));
        let writer = SimWriter::default();
        if let Some(n) = appetite {
            // Every other time nothing.
            let calls = (0..4 * len / n).map(|i| if i % 2 == 0 { n } else { 0 });
            writer.0.borrow_mut().appetite = calls.collect();
        }
        let op = lab.start_get("Image", Sink::Writer(writer.clone()), |_| ()).unwrap();
        assert_eq!(lab.finish(op), Ok(len as u64));
        assert!(writer.0.borrow().taken == bytes(len), "{len} bytes are equal");
        let progress = lab.rig.engine.ops.get(op).unwrap().progress;
        assert_eq!((progress.done, progress.total), (len as u64, Some(len as u64)));
    }
}

#[test]
fn a_part_of_a_file_beyond_4_gib() {
    let mut lab = Lab::new();
    lab.server.add("big", Node::Sparse((5 << 30) + 100));
    for (offset, len, expect) in [((5u64 << 30) - 50_000, u64::MAX, 50_100), (1 << 32, 1000, 1000), (6 << 30, 5, 0)] {
        let memory = SimMemory::new(60_000);
        let change = |r: &mut get::Request<SimHost>| (r.offset, r.len) = (offset, len);
        let op = lab.start_get("big", Sink::Memory(memory.clone()), change).unwrap();
        assert_eq!(lab.finish(op), Ok(expect));
        let right: Vec<u8> = (offset..offset + expect).map(sparse_byte).collect();
        assert!(memory.to_vec()[..expect as usize] == right[..]);
        lab.close(op);
    }
    let op = lab.start_get("big", Sink::Memory(SimMemory::new(60_000)), |_| ()).unwrap();
    assert_eq!(lab.finish(op), Err(Error::TooBig));
    assert_eq!(lab.server.reads().len(), 3, "nothing is read of what does not fit");
}

#[test]
fn questions_are_answered() {
    let mut lab = Lab::new();
    lab.server.add("dir/file", Node::File(bytes(77)));
    lab.server.add("dir/link", Node::Link(b"file".to_vec()));
    for (path, follow, size, kind) in [
        (&b"dir/file"[..], true, 77, FileType::Regular),
        (b"/dir//link", true, 77, FileType::Regular),
        (b"dir/link", false, 4, FileType::Symlink),
        (b"dir", false, 64, FileType::Directory),
        (b"", true, 32, FileType::Directory),
        (b"/", true, 32, FileType::Directory),
    ] {
        let op = lab.ask(path, Ask::Attributes(follow)).unwrap();
        assert_eq!(lab.finish(op), Ok(size));
        let Client::NfsQuery(query) = &lab.rig.engine.ops.get(op).unwrap().client else { unreachable!() };
        assert_eq!(query.attributes().unwrap().kind, kind);
        lab.close(op);
    }
    let op = lab.ask(b"dir/file", Ask::Access(0x3f)).unwrap();
    assert_eq!(lab.finish(op), Ok(0x23));
    lab.close(op);
    let op = lab.ask(b"", Ask::FsStat).unwrap();
    assert_eq!(lab.finish(op), Ok((1 << 39) - 1));
    let Client::NfsQuery(query) = &lab.rig.engine.ops.get(op).unwrap().client else { unreachable!() };
    assert_eq!(query.fs_stat().unwrap().total_files, 1000);
    lab.close(op);
    let memory = SimMemory::new(10);
    let op = lab.ask(b"dir/link", Ask::Link(Sink::Memory(memory.clone()))).unwrap();
    assert_eq!(lab.finish(op), Ok(4));
    assert_eq!(memory.to_vec(), b"file\xa5\xa5\xa5\xa5\xa5\xa5");
    lab.close(op);
    let op = lab.ask(b"dir/file", Ask::Link(Sink::Discard)).unwrap();
    assert_eq!(lab.finish(op), Err(Error::Invalid), "no link");
}

#[test]
fn a_directory_of_ten_thousand_lists_whole() {
    for plus in [true, false] {
        let mut lab = Lab::new();
        lab.server.behaviour.plus = plus;
        for n in 0..10_000 {
            lab.server.add(&std::format!("d/file-{n:05}"), Node::Sparse(n));
        }
        let memory = SimMemory::new(1 << 20);
        let op = lab.ask(b"d", Ask::List(Sink::Memory(memory.clone()))).unwrap();
        assert_eq!(lab.finish(op), Ok(10_000));
        assert_eq!(lab.detail(op).kind, DetailKind::None);
        let list = records(&memory.to_vec(), 10_000);
        for (n, entry) in list.iter().enumerate() {
            assert_eq!(entry.name, std::format!("file-{n:05}").as_bytes());
            assert_eq!((entry.size, entry.kind), if plus { (n as u64, 1) } else { (0, 0) });
        }
        let progress = lab.rig.engine.ops.get(op).unwrap().progress.done;
        assert_eq!(progress, 10_000 * 56);
    }
}

#[test]
fn a_listing_waits_for_a_writer_and_repeats_nothing() {
    let mut lab = Lab::new();
    for n in 0..300 {
        lab.server.add(&std::format!("d/{n}"), Node::Sparse(n));
    }
    let memory = SimMemory::new(1 << 16);
    let op = lab.ask(b"d", Ask::List(Sink::Memory(memory.clone()))).unwrap();
    assert_eq!(lab.finish(op), Ok(300));
    let whole = lab.rig.engine.ops.get(op).unwrap().progress.done as usize;
    lab.close(op);
    let writer = SimWriter::default();
    writer.0.borrow_mut().appetite = (0..400).map(|n| [48, 5, 0, 17][n % 4]).collect();
    let op = lab.ask(b"d", Ask::List(Sink::Writer(writer.clone()))).unwrap();
    assert_eq!(lab.finish(op), Ok(300));
    assert!(writer.0.borrow().taken == memory.to_vec()[..whole]);
    lab.close(op);
    let op = lab.ask(b"d", Ask::List(Sink::Memory(SimMemory::new(whole - 1)))).unwrap();
    assert_eq!(lab.finish(op), Err(Error::TooBig));
    lab.close(op);
    let op = lab.ask(b"d/7", Ask::List(Sink::Discard)).unwrap();
    assert_eq!(lab.finish(op), Err(Error::NotDirectory));
}

#[test]
fn exports_are_listed_and_mounts_undone() {
    let mut lab = Lab::new();
    let memory = SimMemory::new(64);
    let op = lab.attach(|r| r.task = attach::Task::Exports(Sink::Memory(memory.clone()))).unwrap();
    assert_eq!(lab.finish(op), Ok(2));
    let text = b"/srv\t10.0.0.0/8\tlab\n/pub\n";
    assert_eq!(&memory.to_vec()[..text.len()], text);
    lab.close(op);
    let op = lab.attach(|r| r.task = attach::Task::Unmount(b"/srv".to_vec())).unwrap();
    assert_eq!(lab.finish(op), Ok(0));
    let last = lab.server.calls.last().unwrap();
    assert_eq!((last.program, last.procedure), (100_005, 3));
    lab.close(op);
    let op = lab.attach(|r| r.task = attach::Task::Mount(b"/other".to_vec())).unwrap();
    assert_eq!(lab.finish(op), Err(Error::Denied));
    let detail = lab.detail(op);
    assert_eq!((detail.kind, detail.code, &detail.text[..]), (DetailKind::Nfs, 13, &b"permission denied"[..]));
}

#[test]
fn as_many_operations_as_there_are_jobs() {
    let mut lab = Lab::new();
    lab.server.add("f", Node::File(bytes(100)));
    lab.server.behaviour.down = true;
    let ops: Vec<Key> = (0..8).map(|_| lab.ask(b"f", Ask::Attributes(true)).unwrap()).collect();
    lab.rig.engine.cancel(ops[3], Error::Cancelled).unwrap();
    lab.close(ops[3]);
    lab.server.behaviour.down = false;
    let again = lab.ask(b"f", Ask::Attributes(true)).unwrap();
    for op in ops.iter().enumerate().filter(|(n, _)| *n != 3).map(|(_, op)| *op).chain([again]) {
        assert_eq!(lab.finish(op), Ok(100));
        lab.close(op);
    }
}
