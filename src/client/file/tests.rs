//! Files read in pieces, over the simulated link.

use super::{File, Request};
use crate::client::operation::{Server, Step};
use crate::client::ops::Client;
use crate::client::reader::tests::read_untold;
use crate::client::tftp::Tuning;
use crate::sim::host::SimMemory;
use crate::sim::link::{Conditions, Link};
use crate::sim::packets::Station;
use crate::sim::rig::Rig;
use crate::sim::tftp_server::{Behaviour, TftpServer, sample};
use crate::stack::stats::Counter;
use crate::storage::error::{Error, Result};
use crate::storage::slots::Key;
use crate::storage::time::Duration;
use std::vec::Vec;

const SERVER: Station = Station::new(1);

struct Lab {
    rig: Rig,
    link: Link,
    server: TftpServer,
}

impl Lab {
    fn new(file: Vec<u8>, behaviour: Behaviour, conditions: Conditions) -> Self {
        Lab {
            rig: Rig::new(3),
            link: Link::new(conditions, 3),
            server: TftpServer::new(SERVER, behaviour, b"file", file),
        }
    }

    fn open(&mut self, path: &[u8], readahead: usize, tuning: Tuning) -> Key {
        let request = Request {
            server: Server { name: None, addr: SERVER.ip, port: 0 },
            path: path.to_vec(),
            tuning,
            readahead: SimMemory::new(readahead),
        };
        self.rig.engine.start(Client::File(File::new(request).unwrap())).unwrap()
    }

    fn read(&mut self, file: Key, len: usize) -> Result<Vec<u8>> {
        let memory = SimMemory::new(len);
        self.rig.engine.file(file, |f| f.read(memory.clone()))??;
        let mut result = None;
        let ended = self.link.run(&mut self.rig, &mut self.server, Duration::from_secs(60), |rig| {
            result = match rig.engine.ops.get_mut(file).map(|op| &mut op.client) {
                Some(Client::File(f)) => f.take_result(),
                _ => None,
            };
            result.is_some()
        });
        assert!(ended, "the read ends");
        let count = result.unwrap()?;
        let bytes = memory.to_vec();
        assert!(bytes[count..].iter().all(|b| *b == 0xa5), "nothing behind what was read");
        Ok(bytes[..count].to_vec())
    }

    fn seek(&mut self, file: Key, to: u64) {
        self.rig.engine.file(file, |f| f.seek(to)).unwrap().unwrap();
    }

    fn wait(&mut self, ms: u64) {
        self.link.run(&mut self.rig, &mut self.server, Duration::from_millis(ms), |_| false);
    }
}

#[test]
fn reads_of_any_size_give_the_file() {
    let file = sample(200_001);
    let lossy = Conditions { loss_ppm: 10_000, bits_per_second: 1_000_000_000, ..Conditions::default() };
    for conditions in [Conditions::default(), lossy] {
        for readahead in [600, 8192, 65_536] {
            for piece in [700, 4096, 30_000, 100_000, 300_000] {
                let mut lab = Lab::new(file.clone(), Behaviour::default(), conditions);
                let f = lab.open(b"file", readahead, Tuning::default());
                let mut all = Vec::new();
                loop {
                    let part = lab.read(f, piece).unwrap();
                    if part.is_empty() {
                        break;
                    }
                    assert!(part.len() == piece || all.len() + part.len() == file.len(), "short only at the end");
                    all.extend_from_slice(&part);
                }
                assert!(all == file, "{readahead} {piece}");
                assert_eq!(lab.rig.engine.file(f, |f| (f.size(), f.position())).unwrap(), (Some(200_001), 200_001));
                assert_eq!(lab.read(f, 10).unwrap(), b"", "still at the end");
                if conditions.loss_ppm == 0 {
                    let b = 1468.min(readahead) as u64;
                    assert_eq!(lab.server.data_frames, 200_001 / b + 1, "each block once: {readahead} {piece}");
                }
                lab.rig.engine.close(f).unwrap();
            }
        }
    }
}

#[test]
fn seeking_forwards_passes_over_and_backwards_asks_again() {
    let file = sample(150_000);
    let mut lab = Lab::new(file.clone(), Behaviour::default(), Conditions::default());
    let f = lab.open(b"file", 16_384, Tuning::default());
    assert!(lab.read(f, 100).unwrap() == file[..100]);
    assert_eq!(lab.rig.engine.file(f, |f| f.size()).unwrap(), Some(150_000), "told by the server");
    lab.seek(f, 90_001);
    assert!(lab.read(f, 4096).unwrap() == file[90_001..94_097]);
    assert_eq!(lab.server.requests.len(), 1);
    // A little backwards, within the block: it is still here.
    lab.seek(f, 94_090);
    assert!(lab.read(f, 7).unwrap() == file[94_090..94_097]);
    assert_eq!(lab.server.requests.len(), 1);
    // There and back without a read costs nothing.
    lab.seek(f, 0);
    lab.seek(f, 94_097);
    assert!(lab.read(f, 3).unwrap() == file[94_097..94_100]);
    assert_eq!(lab.server.requests.len(), 1);
    lab.seek(f, 512);
    assert!(lab.read(f, 70_000).unwrap() == file[512..70_512]);
    assert_eq!(lab.server.requests.len(), 2);
    assert_eq!(lab.server.errors.len(), 1, "the first transfer was ended");
    lab.seek(f, 149_999);
    assert!(lab.read(f, 10).unwrap() == file[149_999..]);
    // After the end of the transfer as well.
    lab.seek(f, 0);
    assert!(lab.read(f, 200_000).unwrap() == file);
    assert_eq!(lab.server.requests.len(), 3);
    lab.seek(f, 1 << 40);
    assert_eq!(lab.read(f, 10).unwrap(), b"");
    assert_eq!(lab.server.requests.len(), 3);
}

/// What a read has had straight from the server is nowhere else: whoever asks for it again gets it from the server again, and
/// never what lies in the memory for reading ahead.
#[test]
fn a_short_last_block_can_be_read_again() {
    for len in [1usize, 511, 1467, 1469, 3000, 100_001] {
        let file = sample(len);
        let tail = len / 1468 * 1468;
        for (piece, again) in [(len + 4000, 0), (len + 4000, tail), (len + 4000, len - 1), (1468, tail), (700, len - 1)]
        {
            for moves in [&[][..], &[u64::MAX], &[1 << 60, len as u64], &[len as u64 + 1, 0, len as u64]] {
                let mut lab = Lab::new(file.clone(), Behaviour::default(), Conditions::default());
                let f = lab.open(b"file", 8192, Tuning::default());
                // Read before, or passed over.
                for begin in (0..=len).step_by(piece).take(if moves.len() == 2 { 0 } else { usize::MAX }) {
                    assert!(lab.read(f, piece).unwrap() == file[begin..len.min(begin + piece)]);
                }
                for to in moves {
                    lab.seek(f, *to);
                    assert_eq!(lab.read(f, usize::from(*to > 0)).unwrap(), b"");
                }
                lab.seek(f, again as u64);
                assert!(
                    lab.read(f, 2 * len).unwrap() == file[again..],
                    "{len} by {piece}, again from {again}, {moves:?}"
                );
            }
        }
    }
}

#[test]
fn two_files_at_once() {
    let (a, b) = (sample(60_000), sample(70_000));
    let mut lab = Lab::new(a.clone(), Behaviour::default(), Conditions::default());
    lab.server.files.insert(b"other".to_vec(), b.clone());
    let f = lab.open(b"file", 8192, Tuning::default());
    let g = lab.open(b"other", 8192, Tuning::default());
    let (mut from_a, mut from_b) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        from_a.extend(lab.read(f, 1500).unwrap());
        from_b.extend(lab.read(g, 1750).unwrap());
    }
    assert!(from_a == a && from_b == b);
    assert_eq!(lab.read(f, 1).unwrap(), b"");
}

#[test]
fn a_reader_that_takes_its_time_loses_nothing() {
    let file = sample(100_000);
    let mut lab = Lab::new(file.clone(), Behaviour::default(), Conditions::default());
    let f = lab.open(b"file", 8192, Tuning::default());
    let mut all = lab.read(f, 5000).unwrap();
    lab.wait(60_000);
    assert_eq!(lab.server.active(), 1, "the server still waits");
    assert!(lab.rig.count(Counter::TftpRetransmit) >= 100, "and was told so twice a timeout");
    while all.len() < file.len() {
        all.extend(lab.read(f, 5000).unwrap());
    }
    assert!(all == file);
    assert_eq!(lab.server.requests.len(), 1);
    // A server that gives up all the same is asked again.
    let mut lab = Lab::new(file.clone(), Behaviour::default(), Conditions::default());
    let f = lab.open(b"file", 8192, Tuning::default());
    let mut all = lab.read(f, 5000).unwrap();
    lab.wait(1000);
    lab.server.restart();
    while all.len() < file.len() {
        all.extend(lab.read(f, 5000).unwrap());
    }
    assert!(all == file);
    assert_eq!(lab.server.requests.len(), 2);
}

#[test]
fn case_t18_a_read_returns_the_servers_error() {
    let mut lab = Lab::new(sample(10), Behaviour::default(), Conditions::default());
    let f = lab.open(b"missing", 4096, Tuning::default());
    assert_eq!(lab.read(f, 100), Err(Error::NotFound));
    assert_eq!(lab.read(f, 100), Err(Error::NotFound), "and stays");
    let op = lab.rig.engine.ops.get(f).unwrap();
    assert_eq!((op.step, op.detail.code), (Step::Done(Err(Error::NotFound)), 1));
    lab.rig.engine.close(f).unwrap();
    assert_eq!(lab.rig.engine.file(f, |f| f.position()), Err(Error::BadHandle));
    lab.server.files.insert(b"missing".to_vec(), b"here now".to_vec());
    let f = lab.open(b"missing", 4096, Tuning::default());
    assert_eq!(lab.read(f, 100).unwrap(), b"here now");
    lab.rig.engine.close(f).unwrap();
    assert_eq!(lab.rig.engine.ops.iter().count(), 0);
}

#[test]
fn a_read_that_is_stopped_can_be_made_again() {
    let file = sample(100_000);
    let mut lab = Lab::new(file.clone(), Behaviour::default(), Conditions::default());
    let f = lab.open(b"file", 8192, Tuning::default());
    assert!(lab.read(f, 1000).unwrap() == file[..1000]);
    let memory = SimMemory::new(50_000);
    lab.rig.engine.file(f, |f| f.read(memory.clone())).unwrap().unwrap();
    assert_eq!(lab.rig.engine.file(f, |f| f.read(memory.clone())).unwrap(), Err(Error::Again));
    assert_eq!(lab.rig.engine.file(f, |f| f.seek(0)).unwrap(), Err(Error::Again));
    lab.link.run(&mut lab.rig, &mut lab.server, Duration::from_micros(500), |_| false);
    lab.rig.engine.file(f, |f| f.stop_reading()).unwrap();
    let guard = memory.to_vec();
    assert!(lab.read(f, 90_000).unwrap() == file[1000..91_000]);
    assert!(memory.to_vec() == guard, "nothing lands where a read was stopped");
}

/// A read that has ended when it is stopped, but whose result nobody was told, is as if it had not been: the next begins
/// where it began.
#[test]
fn a_read_whose_result_was_not_taken_is_taken_back() {
    let file = sample(100_001);
    let mut lab = Lab::new(file.clone(), Behaviour::default(), Conditions::default());
    let f = lab.open(b"file", 8192, Tuning::default());
    assert!(lab.read(f, 700).unwrap() == file[..700]);
    for (len, whole) in [(5000, false), (100_001 - 700, true)] {
        read_untold(&mut lab.rig, &mut lab.link, &mut lab.server, f, 700, &file[700..700 + len]);
        assert!(
            lab.read(f, if whole { 2 * 100_001 } else { 100 }).unwrap() == file[700..if whole { 100_001 } else { 800 }]
        );
        lab.seek(f, 700);
    }
}
