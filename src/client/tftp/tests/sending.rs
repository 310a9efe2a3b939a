//! Sending files: packet scripts, and over the simulated link.

use crate::client::operation::{DetailKind, Server, Step};
use crate::client::ops::Client;
use crate::client::tftp::put::{Put, Request};
use crate::client::tftp::{Mode, Tuning};
use crate::sim::host::{ReaderState, SimHost, SimMemory, SimPager, SimReader};
use crate::sim::link::{Conditions, Link};
use crate::sim::packets::{self, Station};
use crate::sim::rig::{Limits, Rig};
use crate::sim::tftp_server::{Behaviour, TftpServer, sample};
use crate::stack::interface::Cidr;
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::{HostError, NicCaps, Source};
use crate::storage::slots::Key;
use crate::storage::time::Duration;
use std::cell::RefCell;
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

const SERVER: Station = Station::new(1);
const TID: u16 = 3000;

type AnySource = Source<SimMemory, SimReader, SimPager>;

fn memory(file: &[u8]) -> AnySource {
    Source::Memory(SimMemory::from(file.to_vec()))
}

fn reader(file: &[u8], piece: usize) -> (AnySource, SimReader) {
    let reader = SimReader(Rc::new(RefCell::new(ReaderState { bytes: file.to_vec(), piece, ..Default::default() })));
    (Source::Reader(reader.clone()), reader)
}

fn pager(file: &[u8]) -> (AnySource, SimPager) {
    let pager =
        SimPager { file: SimMemory::from(file.to_vec()), page: 1000, lent: Rc::default(), released: Rc::default() };
    (Source::Pager(pager.clone()), pager)
}

fn request(source: AnySource, size: Option<u64>, tuning: Tuning) -> Request<SimHost> {
    Request {
        server: Server { name: None, addr: SERVER.ip, port: 0 },
        path: b"up".to_vec(),
        mode: Mode::Octet,
        source,
        size,
        tuning,
    }
}

fn sizes(blksize: u16, windowsize: u16) -> Tuning {
    Tuning { blksize, windowsize, ..Tuning::default() }
}

struct Outcome {
    result: Result<u64, Error>,
    stored: Option<Vec<u8>>,
    server: TftpServer,
    time: Duration,
}

fn run(r: Request<SimHost>, caps: NicCaps, behaviour: Behaviour, conditions: Conditions, seed: u64) -> Outcome {
    let mut rig = Rig::bare(seed, Limits::default(), caps, true);
    rig.engine.stack.interface_mut(rig.nic).unwrap().add_address(Cidr { addr: rig.us.ip, prefix: 24 });
    let mut server = TftpServer::new(SERVER, behaviour, b"other", Vec::new());
    let mut link = Link::new(conditions, seed);
    let op = rig.engine.start(Client::TftpPut(Put::new(r).unwrap())).unwrap();
    let start = rig.now();
    let done = |rig: &mut Rig| matches!(rig.engine.ops.get(op).unwrap().step, Step::Done(_));
    assert!(link.run(&mut rig, &mut server, Duration::from_secs(600), done), "ends");
    let Step::Done(result) = rig.engine.ops.get(op).unwrap().step else { panic!() };
    let time = rig.now().since(start);
    link.run(&mut rig, &mut server, Duration::from_millis(10), |_| false);
    Outcome { result, stored: server.files.get(&b"up"[..]).cloned(), server, time }
}

#[test]
fn every_source_arrives() {
    for len in [0, 1, 511, 512, 513, 1468, 1469, 5120, 100_001] {
        let file = sample(len);
        for windowsize in [1, 8, 64] {
            let sources = [memory(&file), reader(&file, 0).0, reader(&file, 700).0, pager(&file).0, reader(&file, 0).0];
            for (kind, source) in sources.into_iter().enumerate() {
                // The last reader's size is not told.
                let size = (kind < 4).then_some(len as u64);
                for caps in [NicCaps::empty(), NicCaps::GATHER] {
                    let r = request(source.clone(), size, sizes(512, windowsize));
                    let o = run(r, caps, Behaviour::default(), Conditions::default(), 1);
                    assert_eq!(o.result, Ok(len as u64), "{kind} {len}");
                    assert!(o.stored.as_ref() == Some(&file), "{kind} {len}");
                    let blocks = (len / 512 + 1) as u64;
                    assert_eq!(o.server.data_frames, blocks, "each block once");
                    assert_eq!(o.server.acks, blocks.div_ceil(u64::from(windowsize)));
                }
            }
        }
    }
    let (source, pager) = pager(&sample(5000));
    run(request(source, Some(5000), sizes(0, 4)), NicCaps::empty(), Behaviour::default(), Conditions::default(), 1);
    assert!(pager.lent.borrow().is_empty(), "every page is given back");
}

#[test]
fn a_server_that_knows_no_options_gets_it_in_lock_step() {
    let file = sample(3000);
    let plain = Behaviour { options: false, ..Behaviour::default() };
    let o = run(request(memory(&file), None, sizes(0, 0)), NicCaps::empty(), plain, Conditions::default(), 1);
    assert_eq!(o.result, Ok(3000));
    assert!(o.stored == Some(file));
    assert_eq!((o.server.data_frames, o.server.acks), (6, 7));
}

#[test]
fn blocks_that_need_fragments_and_numbers_that_wrap() {
    let file = sample(600_000);
    let o = run(
        request(memory(&file), None, sizes(16_268, 4)),
        NicCaps::empty(),
        Behaviour::default(),
        Conditions::default(),
        1,
    );
    // The simulated server puts no fragments together: it hears nothing, and the transfer ends.
    assert_eq!(o.result, Err(Error::Timeout));
    let file = sample(8 * 66_000 + 3);
    let o = run(
        request(memory(&file), None, sizes(8, 16)),
        NicCaps::empty(),
        Behaviour::default(),
        Conditions::default(),
        1,
    );
    assert_eq!(o.result, Ok(file.len() as u64));
    assert!(o.stored == Some(file));
}

#[test]
fn losses_reordering_and_duplicates_on_the_way_up() {
    let file = sample(120_000);
    let gigabit = Conditions { bits_per_second: 1_000_000_000, ..Conditions::default() };
    let kinds = [
        Conditions { loss_ppm: 10_000, ..gigabit },
        Conditions { loss_ppm: 50_000, ..gigabit },
        Conditions { duplicate_ppm: 50_000, ..gigabit },
        Conditions { reorder_ppm: 20_000, reorder_by: Duration::from_micros(100), ..gigabit },
    ];
    for c in kinds {
        for windowsize in [1, 8, 64] {
            for seed in 0..5 {
                let (source, reader) = reader(&file, 0);
                let r = request(source, Some(file.len() as u64), sizes(0, windowsize));
                let o = run(r, NicCaps::empty(), Behaviour::default(), c, seed);
                // The last acknowledgement may be lost, and the server gone: then it cannot be known.
                assert!(o.result == Ok(file.len() as u64) || o.result == Err(Error::Timeout), "{:?}", o.result);
                assert!(o.stored.as_ref() == Some(&file), "seed {seed} {c:?}");
                assert!(o.time < Duration::from_secs(30), "{:?}", o.time);
                let state = reader.0.borrow();
                assert!(state.log.iter().all(|(at, len)| *at as usize + len <= file.len()), "no byte beyond the end");
            }
        }
    }
}

/// A put as a packet script.
struct Script {
    rig: Rig,
    op: Key,
    port: u16,
}

impl Script {
    fn new(r: Request<SimHost>) -> Self {
        let mut rig = Rig::new(7);
        rig.know(SERVER);
        let op = rig.engine.start(Client::TftpPut(Put::new(r).unwrap())).unwrap();
        let sent = rig.sent_udp();
        assert_eq!((sent.len(), sent[0].dst_port), (1, 69));
        assert!(sent[0].payload.starts_with(b"\x00\x02up\x00"));
        let port = sent[0].src_port;
        Script { rig, op, port }
    }

    fn give(&mut self, payload: &[u8]) {
        let frame = packets::udp(SERVER, TID, self.rig.us, self.port, payload);
        self.rig.input(&frame);
    }

    fn ack(&mut self, block: u16) {
        let [a, b] = block.to_be_bytes();
        self.give(&[0, 4, a, b]);
    }

    /// Numbers of the DATA packets sent since the last call, and everything else whole.
    fn blocks(&mut self) -> Vec<u16> {
        let sent = self.rig.sent_udp();
        sent.iter()
            .map(|d| {
                assert_eq!(d.dst_port, TID);
                assert_eq!(d.payload[..2], [0, 3], "{:?}", d.payload);
                u16::from_be_bytes([d.payload[2], d.payload[3]])
            })
            .collect()
    }

    fn step(&self) -> Step {
        self.rig.engine.ops.get(self.op).unwrap().step
    }

    fn expect_error(&mut self, code: u8) {
        let sent = self.rig.sent_udp();
        assert_eq!(sent.last().map(|d| d.payload[..4].to_vec()), Some(vec![0, 5, 0, code]));
    }
}

#[test]
fn windows_go_on_from_what_is_acknowledged_and_never_for_a_duplicate() {
    let mut s = Script::new(request(memory(&sample(512 * 9 + 5)), None, sizes(512, 4)));
    s.give(b"\x00\x06windowsize\x004\x00");
    assert_eq!(s.blocks(), [1, 2, 3, 4]);
    s.ack(4);
    assert_eq!(s.blocks(), [5, 6, 7, 8]);
    for _ in 0..5 {
        s.ack(4);
    }
    assert_eq!(s.blocks(), [0u16; 0], "a duplicate acknowledgement sends nothing (RFC 1123 §4.2.3.1)");
    assert_eq!(s.rig.count(Counter::TftpDuplicate), 5);
    s.ack(6);
    assert_eq!(s.blocks(), [7, 8, 9, 10], "from the gap on");
    // Of what was never sent, and of long ago: nothing.
    s.ack(11);
    s.ack(3);
    assert_eq!(s.blocks(), [0u16; 0]);
    // Silence: the window again.
    s.rig.advance(15);
    assert_eq!(s.blocks(), [7, 8, 9, 10]);
    s.ack(10);
    assert_eq!(s.step(), Step::Done(Ok(512 * 9 + 5)));
    s.rig.advance(5000);
    assert_eq!(s.blocks(), [0u16; 0]);
}

#[test]
fn what_the_server_says_ends_the_transfer() {
    let mut s = Script::new(request(memory(&sample(5000)), None, sizes(512, 1)));
    s.ack(0);
    assert_eq!(s.blocks(), [1]);
    s.give(b"\x00\x05\x00\x03Disk full\x00");
    assert_eq!(s.step(), Step::Done(Err(Error::NoSpace)));
    let detail = &s.rig.engine.ops.get(s.op).unwrap().detail;
    assert_eq!((detail.kind, detail.code, &detail.text[..]), (DetailKind::Tftp, 3, &b"Disk full"[..]));
    let mut s = Script::new(request(memory(&sample(5000)), None, sizes(512, 1)));
    s.give(b"\x00\x05\x00\x06exists\x00");
    assert_eq!(s.step(), Step::Done(Err(Error::Exists)));
    // Cancelled: the server is told.
    let mut s = Script::new(request(memory(&sample(5000)), None, sizes(512, 1)));
    s.ack(0);
    s.rig.engine.cancel(s.op, Error::Cancelled).unwrap();
    s.expect_error(0);
    // Nobody answers any more.
    let mut s = Script::new(request(memory(&sample(5000)), None, sizes(512, 1)));
    s.ack(0);
    s.rig.advance(40_000);
    assert_eq!(s.step(), Step::Done(Err(Error::Timeout)));
}

#[test]
fn sources_that_end_early_or_fail() {
    let file = sample(2000);
    // Promised more than there is: no byte that the file does not hold.
    let (source, _) = reader(&file, 0);
    let mut s = Script::new(request(source, Some(5000), sizes(512, 1)));
    s.ack(0);
    for n in 1..=3 {
        assert_eq!(s.blocks(), [n]);
        s.ack(n);
    }
    s.expect_error(0);
    assert_eq!(s.step(), Step::Done(Err(Error::EndOfFile)));
    // One byte at a time is enough.
    let (source, state) = reader(&file, 1);
    let mut s = Script::new(request(source, Some(2000), sizes(512, 1)));
    s.ack(0);
    assert_eq!(s.blocks(), [1]);
    assert_eq!(state.0.borrow().log.len(), 512);
    // An error at the first read, and when a block is sent again.
    for good in [0, 1] {
        let (source, state) = reader(&file, 0);
        state.0.borrow_mut().errors = (0..good).map(|_| None).chain([Some(-5)]).collect();
        let mut s = Script::new(request(source, Some(2000), sizes(512, 1)));
        s.ack(0);
        if good > 0 {
            assert_eq!(s.blocks(), [1]);
            s.rig.advance(20);
        }
        s.expect_error(0);
        assert_eq!(s.step(), Step::Done(Err(Error::Host(HostError(-5)))));
    }
    // A region shorter than promised.
    let mut s = Script::new(request(memory(&file[..600]), Some(700), sizes(512, 1)));
    s.ack(0);
    assert_eq!(s.blocks(), [1]);
    s.ack(1);
    s.expect_error(0);
    assert_eq!(s.step(), Step::Done(Err(Error::EndOfFile)));
}

#[test]
fn lines_are_converted_and_sent_again_from_their_place() {
    let text = b"one\ntwo\r\nthree\n\n\rfour\n".repeat(50);
    let wire: Vec<u8> = text
        .iter()
        .flat_map(|b| match b {
            b'\n' => b"\r\n".to_vec(),
            b'\r' => b"\r\0".to_vec(),
            b => vec![*b],
        })
        .collect();
    for (loss_ppm, windowsize) in [(0, 1), (0, 4), (50_000, 1), (50_000, 4)] {
        for source in [memory(&text), reader(&text, 3).0] {
            let mut r = request(source, None, sizes(8, windowsize));
            r.mode = Mode::Netascii;
            let c = Conditions { loss_ppm, ..Conditions::default() };
            let o = run(r, NicCaps::empty(), Behaviour::default(), c, 4);
            assert!(o.stored.as_ref() == Some(&wire));
            assert!(!o.server.requests[0].1.contains_key(&b"tsize"[..]), "the size on the wire is not known");
        }
    }
}

#[test]
fn a_busy_nic_loses_nothing() {
    use crate::storage::host::SendError;
    let mut s = Script::new(request(memory(&sample(512 * 6)), None, sizes(512, 4)));
    s.rig.wire.borrow_mut().script = [None, Some(SendError::Busy), None, Some(SendError::Busy)].into();
    s.give(b"\x00\x06windowsize\x004\x00");
    let mut blocks = s.blocks();
    for _ in 0..4 {
        s.rig.engine.stack.wake = true;
        s.rig.engine.tick();
        blocks.extend(s.blocks());
    }
    assert_eq!(blocks, [1, 2, 3, 4]);
}
