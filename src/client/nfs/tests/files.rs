//! Files read in pieces.

use super::*;
use crate::client::nfs::file::{File, Request};
use crate::client::reader::tests::read_untold;
use crate::sim::link::Peer;
use crate::wire::nfs3::procedure as nfs;
use std::vec;

const LEN: usize = 300_001;

/// A rig and a peer, whichever transport.
struct Reader<P> {
    rig: Rig,
    peer: P,
    link: Link,
    mount: Mount<Vec<u8>>,
}

fn udp(conditions: Conditions, change: impl FnOnce(&mut NfsServer)) -> Reader<NfsServer> {
    let Lab { rig, mut server, link } = Lab::over(conditions, 1);
    change(&mut server);
    let mount = Lab { rig: Rig::new(1), server: NfsServer::new(), link: Link::new(conditions, 1) }.known();
    Reader { rig, peer: server, link, mount }
}

#[cfg(feature = "tcp")]
fn tcp(conditions: Conditions, change: impl FnOnce(&mut NfsServer)) -> Reader<crate::sim::nfs_stream::NfsStream> {
    let mut stream = super::tcp::Stream::over(conditions, 1);
    change(&mut stream.peer.server);
    let mount = stream.known();
    let super::tcp::Stream { rig, peer, link } = stream;
    Reader { rig, peer, link, mount }
}

impl<P: Peer> Reader<P> {
    fn open(&mut self, path: &str, ring: &SimMemory) -> Key {
        self.open_with(path, ring, Tuning::default())
    }

    fn open_with(&mut self, path: &str, ring: &SimMemory, tuning: Tuning) -> Key {
        let request = Request {
            mount: self.mount.clone(),
            path: path.as_bytes().to_vec(),
            position: 0,
            tuning,
            readahead: ring.clone(),
        };
        self.rig.engine.start(Client::NfsFile(File::new(request).unwrap())).unwrap()
    }

    fn begin(&mut self, file: Key, len: usize) -> Result<SimMemory> {
        let memory = SimMemory::new(len);
        self.rig.engine.file(file, |f| f.read(memory.clone()))??;
        Ok(memory)
    }

    fn end(&mut self, file: Key, memory: &SimMemory) -> Result<Vec<u8>> {
        let mut result = None;
        let ended = self.link.run(&mut self.rig, &mut self.peer, Duration::from_secs(60), |rig| {
            result = rig.engine.ops.get_mut(file).and_then(|op| op.client.reader()).and_then(|mut f| f.take_result());
            result.is_some()
        });
        assert!(ended, "the read ends");
        let count = result.unwrap()?;
        let bytes = memory.to_vec();
        assert!(bytes[count..].iter().all(|b| *b == 0xa5), "nothing behind what was read");
        Ok(bytes[..count].to_vec())
    }

    fn read(&mut self, file: Key, len: usize) -> Result<Vec<u8>> {
        let memory = self.begin(file, len)?;
        self.end(file, &memory)
    }

    fn seek(&mut self, file: Key, to: u64) {
        self.rig.engine.file(file, |f| f.seek(to)).unwrap().unwrap();
    }

    fn wait(&mut self, ms: u64) {
        self.link.run(&mut self.rig, &mut self.peer, Duration::from_millis(ms), |_| false);
    }

    /// Reads `all` in pieces.
    fn in_order(&mut self, file: Key, all: &[u8], piece: usize) {
        let mut got = Vec::new();
        loop {
            let part = self.read(file, piece).unwrap();
            if part.is_empty() {
                break;
            }
            assert!(part.len() == piece || got.len() + part.len() == all.len(), "short only at the end");
            got.extend_from_slice(&part);
        }
        assert!(got == all);
        let len = all.len() as u64;
        assert_eq!(self.rig.engine.file(file, |f| (f.size(), f.position())).unwrap(), (Some(len), len));
    }

    /// Reads anywhere, by a generator of its own.
    fn anywhere(&mut self, file: Key, all: &[u8], reads: usize) {
        let mut state = 7;
        for _ in 0..reads {
            let at = crate::sim::host::splitmix(&mut state) as usize % (all.len() + 1000);
            let len = [1, 100, 4096, 20_000, 90_000][crate::sim::host::splitmix(&mut state) as usize % 5];
            self.seek(file, at as u64);
            for at in [at, at + len] {
                let right = &all[at.min(all.len())..(at + len).min(all.len())];
                assert!(self.read(file, len).unwrap() == right, "{len} bytes at {at}");
            }
        }
    }
}

fn add(server: &mut NfsServer) {
    server.add("f", Node::File(bytes(LEN)));
    server.add("g", Node::File(bytes(LEN).into_iter().map(|b| b ^ 0x5a).collect()));
}

fn lossy() -> Conditions {
    Conditions {
        loss_ppm: 10_000,
        duplicate_ppm: 10_000,
        reorder_ppm: 20_000,
        reorder_by: Duration::from_millis(2),
        delay: Duration::from_micros(300),
        bits_per_second: 1_000_000_000,
        ..Conditions::default()
    }
}

/// A ring with guards on both sides.
fn ring(len: usize) -> (SimMemory, SimMemory) {
    let all = SimMemory::new(len + 64);
    use crate::storage::host::Memory;
    let part = all.slice(32, len).unwrap();
    (all, part)
}

fn intact(all: &SimMemory) {
    let bytes = all.to_vec();
    let guards = bytes[..32].iter().chain(&bytes[bytes.len() - 32..]);
    assert!(guards.into_iter().all(|b| *b == 0xa5), "the ring's neighbours are intact");
}

/// The same over both transports.
macro_rules! both {
    ($conditions:expr, $change:expr, $reader:ident => $body:block) => {{
        let mut $reader = udp($conditions, $change);
        $body
        #[cfg(feature = "tcp")]
        {
            let mut $reader = tcp($conditions, $change);
            $body
        }
    }};
}

#[test]
fn reads_of_any_size_give_the_file() {
    for conditions in [Conditions::default(), lossy()] {
        for (len, pieces) in
            [(512, [700, 5000]), (5000, [4096, 50_000]), (65_536, [4096, 400_000]), (262_144, [4096, 400_000])]
        {
            for piece in pieces {
                both!(conditions, add, reader => {
                    let (all, ring) = ring(len);
                    let file = reader.open("f", &ring);
                    reader.in_order(file, &bytes(LEN), piece);
                    assert_eq!(reader.read(file, 10).unwrap(), b"", "still at the end");
                    reader.rig.engine.close(file).unwrap();
                    intact(&all);
                });
            }
        }
    }
}

#[test]
fn reads_anywhere_and_two_files_at_once() {
    for conditions in [Conditions::default(), lossy()] {
        for len in [2000, 65_536, 1 << 20] {
            both!(conditions, add, reader => {
                let (all, one) = ring(len);
                let (others, other) = ring(len);
                let f = reader.open("f", &one);
                let g = reader.open("g", &other);
                let data = bytes(LEN);
                let inverse: Vec<u8> = data.iter().map(|b| b ^ 0x5a).collect();
                reader.anywhere(f, &data, 30);
                reader.anywhere(g, &inverse, 30);
                // In turn, with both reads under way.
                reader.seek(f, 1000);
                reader.seek(g, 200_000);
                for n in 0..20 {
                    let (a, b) = (reader.begin(f, 3000).unwrap(), reader.begin(g, 5000).unwrap());
                    assert!(reader.end(f, &a).unwrap() == data[1000 + n * 3000..][..3000]);
                    assert!(reader.end(g, &b).unwrap() == inverse[200_000 + n * 5000..LEN.min(205_000 + n * 5000)]);
                }
                let mut state = 9;
                let mut at = [0, 0];
                for _ in 0..40 {
                    let mut chance = |n: usize| crate::sim::host::splitmix(&mut state) as usize % n;
                    let mut reads = Vec::new();
                    for n in 0..2 {
                        let file = [f, g][n];
                        if chance(3) == 0 {
                            at[n] = chance(LEN + 100);
                        }
                        reader.seek(file, at[n] as u64);
                        let len = [1, 512, 4096, 70_000, 300_000][chance(5)];
                        reads.push((len, reader.begin(file, len).unwrap()));
                    }
                    for n in [1, 0] {
                        let (len, memory) = &reads[n];
                        let right = &[&data, &inverse][n][at[n].min(LEN)..LEN.min(at[n] + len)];
                        let got = reader.end([f, g][n], memory).unwrap();
                        assert_eq!(got.len(), right.len(), "{len} bytes at {}", at[n]);
                        assert!(got == right);
                        at[n] += got.len();
                    }
                }
                intact(&all);
                intact(&others);
                reader.rig.engine.close(f).unwrap();
                reader.rig.engine.close(g).unwrap();
            });
        }
    }
}

/// READs called, and the bytes they asked for.
fn asked(server: &NfsServer) -> (usize, u64) {
    let reads = server.reads();
    (reads.len(), reads.iter().map(|r| u64::from(r.2)).sum())
}

#[test]
fn what_is_read_ahead_grows_with_reading_in_order() {
    let mut reader = udp(Conditions::default(), add);
    let (_, ring) = ring(262_144);
    let f = reader.open("f", &ring);
    reader.wait(100);
    assert_eq!(reader.rig.engine.file(f, |f| (f.is_open(), f.size())).unwrap(), (true, Some(LEN as u64)));
    assert_eq!(asked(&reader.peer).0, 0, "nothing is read before somebody reads");
    // Here and there: one READ each, and no more.
    for (n, at) in [(1, 100_000u64), (2, 200_000), (3, 10)] {
        reader.seek(f, at);
        reader.read(f, 4096).unwrap();
        reader.wait(100);
        assert_eq!(asked(&reader.peer).0, n);
    }
    // What is still in the ring is not asked for again.
    reader.seek(f, 5000);
    assert!(reader.read(f, 4096).unwrap() == bytes(LEN)[5000..9096]);
    assert_eq!(asked(&reader.peer).0, 3);
    // In order everything is asked for once.
    reader.seek(f, 0);
    reader.peer.calls.clear();
    reader.in_order(f, &bytes(LEN), 4096);
    let (reads, sum) = asked(&reader.peer);
    assert_eq!(sum, LEN as u64);
    assert!(reads <= LEN / 32_768 + 2, "{reads}");
}

#[test]
fn a_file_may_lie_open_and_the_server_restart() {
    both!(Conditions::default(), add, reader => {
        let (_, ring) = ring(65_536);
        let f = reader.open("f", &ring);
        assert!(reader.read(f, 5000).unwrap() == bytes(LEN)[..5000]);
        // Longer than a server may be silent.
        reader.wait(300_000);
        assert!(reader.read(f, 5000).unwrap() == bytes(LEN)[5000..10_000]);
        let now = reader.rig.now();
        down(&mut reader, now, 5000);
        reader.seek(f, 200_000);
        assert!(reader.read(f, 5000).unwrap() == bytes(LEN)[200_000..205_000]);
    });
}

trait HasServer {
    fn server(&mut self) -> &mut NfsServer;
}

impl HasServer for NfsServer {
    fn server(&mut self) -> &mut NfsServer {
        self
    }
}

#[cfg(feature = "tcp")]
impl HasServer for crate::sim::nfs_stream::NfsStream {
    fn server(&mut self) -> &mut NfsServer {
        &mut self.server
    }
}

fn down<P: HasServer>(reader: &mut Reader<P>, from: crate::storage::time::Instant, ms: u64) {
    reader.peer.server().behaviour.outage = Some((from, from + Duration::from_millis(ms)));
}

#[test]
fn errors_end_the_read_and_the_file() {
    both!(Conditions::default(), add, reader => {
        let (_, ring) = ring(8192);
        let f = reader.open("none", &ring);
        assert_eq!(reader.begin(f, 10).and_then(|m| reader.end(f, &m)), Err(Error::NotFound));
        assert_eq!(reader.read(f, 10), Err(Error::NotFound), "the file is no more");
        reader.rig.engine.close(f).unwrap();
        let f = reader.open("", &ring);
        assert_eq!(reader.read(f, 10), Err(Error::IsDirectory));
        reader.rig.engine.close(f).unwrap();

        // It became shorter while it was open.
        let f = reader.open("f", &ring);
        reader.read(f, 10).unwrap();
        let Node::File(data) = &mut reader.peer.server().nodes[1] else { unreachable!() };
        data.truncate(100_000);
        reader.seek(f, 90_000);
        let result = (0..20).find_map(|_| reader.read(f, 1000).err());
        assert_eq!(result, Some(Error::Changed));
        reader.rig.engine.close(f).unwrap();

        // A server that is gone for good.
        let f = reader.open("g", &ring);
        reader.read(f, 10).unwrap();
        let begin = reader.rig.now();
        down(&mut reader, begin, 3_600_000);
        reader.seek(f, 90_000);
        let memory = reader.begin(f, 10).unwrap();
        let error = reader.end(f, &memory).unwrap_err();
        assert!(matches!(error, Error::Timeout | Error::Refused | Error::ConnectionReset), "{error:?}");
        assert!(reader.rig.now().since(begin) < Duration::from_secs(60));
    });
    let mount = Lab::new().known();
    let request = Request::<SimHost> {
        mount,
        path: vec![],
        position: 0,
        tuning: Tuning::default(),
        readahead: SimMemory::new(511),
    };
    assert!(matches!(File::new(request), Err(Error::NoMemory)));
}

#[test]
fn a_read_given_up_can_be_made_again() {
    both!(lossy(), add, reader => {
        let (all, ring) = ring(16_384);
        let f = reader.open("f", &ring);
        let memory = reader.begin(f, 100_000).unwrap();
        assert_eq!(reader.rig.engine.file(f, |f| f.seek(0)).unwrap(), Err(Error::Again), "a read is under way");
        reader.wait(2);
        reader.rig.engine.file(f, |f| f.stop_reading()).unwrap();
        let before = memory.to_vec();
        reader.wait(100);
        assert!(memory.to_vec() == before, "nothing is written to memory that was given back");
        assert_eq!(reader.rig.engine.file(f, |f| f.position()).unwrap(), 0);
        reader.in_order(f, &bytes(LEN), 5000);
        intact(&all);
    });
}

/// Copies of replies come late, when their places in the ring hold other bytes.
#[test]
fn late_and_corrupt_copies_of_replies_do_no_harm() {
    for (fragment, corrupt) in [(false, false), (true, false), (true, true)] {
        let mut reader = udp(Conditions::default(), add);
        let mut count = 0;
        reader.peer.hook = Some(std::boxed::Box::new(move |call: &crate::sim::nfs_server::Seen, reply: Vec<u8>| {
            use crate::sim::nfs_server::Answer;
            if call.procedure != nfs::READ {
                return vec![Answer::new(reply)];
            }
            count += 1;
            vec![Answer::new(reply.clone()), Answer::new(reply.clone()), Answer::new(reply).after(count % 7)]
        }));
        let mut frame = 0u32;
        reader.peer.frame_hook = Some(std::boxed::Box::new(move |mut frames| {
            frame += 1;
            if corrupt && frame.is_multiple_of(3) && frames.len() > 1 {
                let last = frames.len() - 1;
                let at = frames[last].len() - 5;
                frames[last][at] ^= 0xff;
            }
            if fragment && frame.is_multiple_of(2) && frames.len() > 1 {
                // The rest of it never comes.
                frames.truncate(1);
            }
            frames
        }));
        let (all, ring) = ring(20_000);
        let size = if fragment { 4000 } else { 1000 };
        let f = reader.open_with("f", &ring, Tuning { read_size: size, ..Tuning::default() });
        reader.in_order(f, &bytes(LEN), 4096);
        reader.anywhere(f, &bytes(LEN), 20);
        intact(&all);
    }
}

/// A read that has ended when it is stopped, but whose result nobody was told, is as if it had not been: the next begins
/// where it began.
#[test]
fn a_read_whose_result_was_not_taken_is_taken_back() {
    let file = bytes(LEN);
    let mut reader = udp(Conditions::default(), add);
    let f = reader.open("f", &SimMemory::new(20_000));
    assert!(reader.read(f, 700).unwrap() == file[..700]);
    for (len, whole) in [(5000, false), (LEN - 700, true)] {
        read_untold(&mut reader.rig, &mut reader.link, &mut reader.peer, f, 700, &file[700..700 + len]);
        assert!(reader.read(f, if whole { 2 * LEN } else { 100 }).unwrap() == file[700..if whole { LEN } else { 800 }]);
        reader.seek(f, 700);
    }
}
