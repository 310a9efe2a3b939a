//! Files read in pieces.

use super::*;
use crate::client::reader::tests::read_untold;
use crate::sim::http_server::Style;
use crate::storage::error::Error;

impl Lab {
    fn open(&mut self, change: impl FnOnce(&mut Req)) -> Key {
        let mut request = Lab::request("/f", Sink::Discard);
        change(&mut request);
        self.rig.engine.start(Client::HttpFile(super::super::File::new(request).unwrap())).unwrap()
    }

    fn read(&mut self, file: Key, len: usize) -> Result<Vec<u8>> {
        let memory = SimMemory::new(len);
        self.rig.engine.file(file, |f| f.read(memory.clone()))??;
        let mut result = None;
        let ended = self.link.run(&mut self.rig, &mut self.server, Duration::from_secs(60), |rig| {
            let op = rig.engine.ops.get_mut(file).unwrap();
            result = op.client.reader().and_then(|mut f| f.take_result());
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
}

#[test]
fn reads_of_any_size_give_the_file() {
    let file = bytes(200_001);
    for style in [Style::Length, Style::Chunks(5000), Style::UntilEnd] {
        for piece in [100, 700, 8192, 30_000, 200_001, 300_000] {
            let mut lab = Lab::new();
            lab.server.add("/f", &file, "\"a\"");
            lab.server.style = style;
            let f = lab.open(|_| ());
            let mut all = Vec::new();
            loop {
                let part = lab.read(f, piece).unwrap();
                if part.is_empty() {
                    break;
                }
                assert!(part.len() == piece || all.len() + part.len() == file.len(), "short only at the end");
                all.extend(part);
            }
            assert!(all == file, "{style:?} {piece}");
            assert_eq!(lab.rig.engine.file(f, |f| (f.size(), f.position())).unwrap(), (Some(200_001), 200_001));
            assert_eq!(lab.read(f, 10).unwrap(), b"");
            assert_eq!(lab.server.requests.len(), 1, "{style:?} {piece}");
            lab.rig.engine.close(f).unwrap();
        }
    }
}

#[test]
fn seeking_asks_for_what_lies_there() {
    let file = bytes(150_000);
    for ranges in [true, false] {
        let mut lab = Lab::new();
        lab.server.add("/f", &file, "\"a\"");
        lab.server.ranges = ranges;
        let f = lab.open(|r| r.offset = 100);
        assert!(lab.read(f, 100).unwrap() == file[100..200]);
        assert_eq!(lab.rig.engine.file(f, |f| f.size()).unwrap(), Some(150_000));
        for at in [90_001, 90_001, 5, 149_990, 0] {
            lab.seek(f, at);
            let want = &file[at as usize..(at as usize + 4096).min(150_000)];
            assert!(lab.read(f, 4096).unwrap() == want, "{ranges} {at}");
        }
        assert_eq!(lab.server.requests.len(), 6);
        let last = lab.server.requests.last().unwrap();
        assert_eq!((last.field("Range"), last.field("If-Range")), (None, None), "from the beginning");
        assert_eq!(lab.server.requests[1].field("Range"), Some("bytes=90001-"));
        assert_eq!(lab.server.requests[1].field("If-Range"), Some("\"a\""));
        // There and back costs nothing, nor does what lies beyond the end.
        lab.seek(f, 7);
        lab.seek(f, 4096);
        assert!(lab.read(f, 10).unwrap() == file[4096..4106]);
        lab.seek(f, 1 << 40);
        assert_eq!(lab.read(f, 10).unwrap(), b"");
        assert_eq!(lab.server.requests.len(), 6);
    }
}

#[test]
fn a_file_that_changed_is_noticed_by_whoever_reads_on() {
    for (ranges, to) in [(true, 50_000), (false, 50_000), (true, 0), (false, 0)] {
        let mut lab = Lab::new();
        lab.server.add("/f", &bytes(100_000), "\"a\"");
        lab.server.ranges = ranges;
        let f = lab.open(|_| ());
        lab.read(f, 10).unwrap();
        lab.server.add("/f", &bytes(100_000), "\"b\"");
        lab.seek(f, to);
        assert_eq!(lab.read(f, 10), Err(Error::Changed), "{ranges} {to}");
        assert_eq!(lab.read(f, 10), Err(Error::Changed), "and stays");
        lab.rig.engine.close(f).unwrap();
    }
    let mut lab = Lab::new();
    let f = lab.open(|_| ());
    assert_eq!(lab.read(f, 10), Err(Error::NotFound));
}

#[test]
fn a_reader_that_takes_its_time_and_stops_loses_nothing() {
    let file = bytes(100_000);
    let mut lab = Lab::new();
    lab.server.add("/f", &file, "\"a\"");
    lab.server.cuts = std::vec![30_000];
    let f = lab.open(|_| ());
    assert!(lab.read(f, 5000).unwrap() == file[..5000]);
    lab.wait(Duration::from_secs(10));
    // The connection breaks during this one.
    assert!(lab.read(f, 50_000).unwrap() == file[5000..55_000]);
    let memory = SimMemory::new(40_000);
    lab.rig.engine.file(f, |f| f.read(memory.clone())).unwrap().unwrap();
    assert_eq!(lab.rig.engine.file(f, |f| f.read(memory.clone())).unwrap(), Err(Error::Again));
    lab.link.run(&mut lab.rig, &mut lab.server, Duration::from_micros(150), |_| false);
    lab.rig.engine.file(f, |f| f.stop_reading()).unwrap();
    let guard = memory.to_vec();
    assert!(lab.read(f, 45_000).unwrap() == file[55_000..100_000]);
    assert!(memory.to_vec() == guard, "nothing lands where a read was stopped");
}

/// A read that has ended when it is stopped, but whose result nobody was told, is as if it had not been: the next begins
/// where it began.
#[test]
fn a_read_whose_result_was_not_taken_is_taken_back() {
    let file = bytes(100_001);
    let mut lab = Lab::new();
    lab.server.add("/f", &file, "\"a\"");
    let f = lab.open(|_| ());
    assert!(lab.read(f, 700).unwrap() == file[..700]);
    for (len, whole) in [(5000, false), (100_001 - 700, true)] {
        read_untold(&mut lab.rig, &mut lab.link, &mut lab.server, f, 700, &file[700..700 + len]);
        assert!(
            lab.read(f, if whole { 2 * 100_001 } else { 100 }).unwrap() == file[700..if whole { 100_001 } else { 800 }]
        );
        lab.seek(f, 700);
    }
}
