//! Transfers over the simulated link, against a server that behaves.

use crate::client::operation::{Server, Step};
use crate::client::ops::Client;
use crate::client::tftp::{Get, Mode, Request, Tuning};
use crate::sim::host::SimMemory;
use crate::sim::link::{Conditions, Link};
use crate::sim::packets::Station;
use crate::sim::rig::{Limits, Rig};
use crate::sim::tftp_server::{Behaviour, TftpServer, sample};
use crate::stack::interface::Cidr;
use crate::storage::host::{NicCaps, Sink};
use crate::storage::time::Duration;
use std::vec::Vec;

const SERVER: Station = Station::new(1);

struct Outcome {
    time: Duration,
    bytes: Vec<u8>,
    server: TftpServer,
}

fn get(rig: &mut Rig, memory: &SimMemory, tuning: Tuning) -> crate::storage::slots::Key {
    let request = Request {
        server: Server { name: None, addr: SERVER.ip, port: 0 },
        path: b"file".to_vec(),
        mode: Mode::Octet,
        sink: Sink::Memory(memory.clone()),
        tuning,
        sink_stall: Duration::ZERO,
    };
    rig.engine.start(Client::TftpGet(Get::new(request).unwrap())).unwrap()
}

fn run(file: &[u8], tuning: Tuning, behaviour: Behaviour, conditions: Conditions, seed: u64) -> Outcome {
    let mut rig = Rig::new(seed);
    let mut server = TftpServer::new(SERVER, behaviour, b"file", file.to_vec());
    let mut link = Link::new(conditions, seed);
    let memory = SimMemory::new(file.len());
    let op = get(&mut rig, &memory, tuning);
    let start = rig.now();
    let done = |rig: &mut Rig| matches!(rig.engine.ops.get(op).unwrap().step, Step::Done(_));
    assert!(link.run(&mut rig, &mut server, Duration::from_secs(600), done), "seed {seed}: ends");
    assert_eq!(rig.engine.ops.get(op).unwrap().step, Step::Done(Ok(file.len() as u64)), "seed {seed}");
    let time = rig.now().since(start);
    // The last acknowledgement is still under way.
    link.run(&mut rig, &mut server, Duration::from_millis(100), |_| false);
    let bytes = memory.to_vec();
    assert!(bytes == file, "seed {seed}: every byte");
    Outcome { time, bytes, server }
}

#[test]
fn sizes_around_blocks_and_windows() {
    for blksize in [512, 1024, 1428, 1468] {
        let b = usize::from(blksize);
        for len in [0, 1, 511, 512, 513, 1467, 1468, 1469, b * 32 - 1, b * 32, b * 32 + 1, b * 100] {
            let file = sample(len);
            for windowsize in [1, 2, 32] {
                let tuning = Tuning { blksize, windowsize, ..Tuning::default() };
                let o = run(&file, tuning, Behaviour::default(), Conditions::default(), 1);
                assert_eq!(o.bytes.len(), len);
                let blocks = (len / b + 1) as u64;
                assert_eq!(o.server.data_frames, blocks, "each block once");
                assert_eq!(o.server.acks, 1 + blocks.div_ceil(u64::from(windowsize)), "one answer a window");
                assert_eq!(o.server.active(), 0, "the server knows that it is over");
            }
        }
    }
}

#[test]
fn block_numbers_wrap() {
    let file = sample(512 * 66_000 + 7);
    for windowsize in [1, 16] {
        let tuning = Tuning { blksize: 512, windowsize, ..Tuning::default() };
        let o = run(&file, tuning, Behaviour::default(), Conditions::default(), 1);
        assert_eq!(o.server.data_frames, 66_001);
        assert!(o.time < Duration::from_secs(10), "no stall: {:?}", o.time);
    }
}

#[test]
fn ten_thousand_small_files_with_one_operation_and_one_socket() {
    let limits = Limits { sockets: 1, ops: 1, ..Limits::default() };
    let mut rig = Rig::bare(1, limits, NicCaps::empty(), true);
    rig.engine.stack.interface_mut(rig.nic).unwrap().add_address(Cidr { addr: rig.us.ip, prefix: 24 });
    let file = sample(700);
    let mut server = TftpServer::new(SERVER, Behaviour::default(), b"file", file.clone());
    let mut link = Link::new(Conditions::default(), 1);
    let memory = SimMemory::new(700);
    for _ in 0..10_000 {
        let op = get(&mut rig, &memory, Tuning { blksize: 512, ..Tuning::default() });
        let done = |rig: &mut Rig| matches!(rig.engine.ops.get(op).unwrap().step, Step::Done(_));
        assert!(link.run(&mut rig, &mut server, Duration::from_secs(5), done));
        assert_eq!(rig.engine.ops.get(op).unwrap().step, Step::Done(Ok(700)));
        rig.engine.close(op).unwrap();
    }
    assert_eq!(memory.to_vec(), file);
    assert_eq!(rig.engine.stack.outstanding(), 0);
}
