//! Files as sources: memory, pages and readers, whole, short and failing; what is lent comes back once, and not too early.

use super::pair::{Pair, Wire};
use super::rig::*;
use crate::sim::host::{SimMemory, SimPager, SimReader, splitmix};
use crate::storage::error::Error;
use crate::storage::host::{HostError, NicCaps, Source, SourceOf};
use crate::storage::slots::Key;
use crate::storage::time::Duration;
use crate::tcp::{Events, Options, State, Ticket};
use std::rc::Rc;
use std::vec::Vec;

type FileSource = SourceOf<crate::sim::host::SimHost>;

fn reader(bytes: &[u8]) -> (SimReader, FileSource) {
    let reader = SimReader::default();
    reader.0.borrow_mut().bytes = bytes.to_vec();
    (reader.clone(), Source::Reader(reader))
}

fn pager(bytes: &[u8], page: usize) -> (SimPager, FileSource) {
    let pager = SimPager { file: SimMemory::from(bytes.to_vec()), page, lent: Rc::default(), released: Rc::default() };
    (pager.clone(), Source::Pager(pager))
}

/// Every kind of source over the same bytes.
fn sources(bytes: &[u8]) -> Vec<FileSource> {
    let memory = Source::Memory(SimMemory::from(bytes.to_vec()));
    std::vec![memory, reader(bytes).1, pager(bytes, 4096).1, pager(bytes, 700).1]
}

/// Acknowledges all that is sent until nothing more comes; the bytes of the stream from `from` on.
fn drain(rig: &mut Rig, from: u32) -> Vec<u8> {
    let mut got = Vec::new();
    for _ in 0..2000 {
        let mut news = false;
        for segment in rig.sent() {
            let at = segment.seq.since(rig.peer.irs);
            if at == from + got.len() as u32 && !segment.payload.is_empty() {
                got.extend_from_slice(&segment.payload);
                news = true;
            }
        }
        rig.node.tokens_done();
        if !news {
            break;
        }
        rig.send(A, 1, from + got.len() as u32, &[]);
    }
    got
}

fn finished(rig: &Rig, key: Key, ticket: Ticket) -> Option<Result<(), Error>> {
    rig.node.tcp.file(key, ticket).unwrap().result
}

#[test]
fn each_source_by_each_kind_of_nic() {
    let data = pattern(5, 20_000);
    for caps in [NicCaps::empty(), NicCaps::GATHER, NicCaps::GATHER | NicCaps::ASYNC, NicCaps::ASYNC] {
        for source in sources(&data) {
            let mut rig =
                Rig::with(Limits { caps, lends: !caps.contains(NicCaps::ASYNC), tx: 64, ..Limits::default() });
            let key = rig.open_plain();
            rig.node.tokens_done();
            let ticket = rig.node.tcp.sendfile(key, source, 100, 15_001).unwrap();
            rig.node.pass();
            assert_eq!(finished(&rig, key, ticket), None);
            let got = drain(&mut rig, 1);
            assert!(got == data[100..15_101], "{caps:?}");
            assert_eq!(finished(&rig, key, ticket), Some(Ok(())));
            assert!(rig.events(key).contains(Events::FILE | Events::SENT));
            assert!(rig.node.tcp.take_file(key, ticket).is_ok());
            assert!(!rig.node.tcp.is_lending());
        }
    }
}

#[test]
fn buffered_bytes_before_between_and_after_files() {
    let data = pattern(0, 9_000);
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.node.tcp.send(key, b"before").unwrap();
    let first = rig.node.tcp.sendfile(key, Source::Memory(SimMemory::from(data.clone())), 0, 3000).unwrap();
    rig.node.tcp.send(key, b"between").unwrap();
    let second = rig.node.tcp.sendfile(key, reader(&data).1, 3000, 3000).unwrap();
    let third = rig.node.tcp.sendfile(key, pager(&data, 512).1, 6000, 3000).unwrap();
    rig.node.tcp.send(key, b"after").unwrap();
    rig.node.tcp.shutdown(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    let want = [b"before", &data[..3000], b"between", &data[3000..], b"after"].concat();
    let got = drain(&mut rig, 1);
    assert!(got == want, "{} of {}", got.len(), want.len());
    for ticket in [first, second, third] {
        assert_eq!(finished(&rig, key, ticket), Some(Ok(())));
    }
    rig.node.pass();
    // The FIN stands behind the last byte.
    rig.send(A, 1, 2 + want.len() as u32, &[]);
    assert_eq!(rig.node.tcp.info(key).unwrap().state, State::FinWait2);
}

#[test]
fn a_count_of_zero_is_done_at_once_and_four_files_are_the_most() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    let memory = || Source::Memory(SimMemory::new(10));
    let ticket = rig.node.tcp.sendfile(key, memory(), 10, 0).unwrap();
    assert!(rig.events(key).contains(Events::FILE));
    assert_eq!(finished(&rig, key, ticket), Some(Ok(())));
    for _ in 0..3 {
        rig.node.tcp.sendfile(key, memory(), 0, 10).unwrap();
    }
    assert_eq!(rig.node.tcp.sendfile(key, memory(), 0, 10), Err(Error::Again));
    assert!(rig.node.tcp.take_file(key, ticket).is_ok());
    assert!(rig.node.tcp.take_file(key, ticket).is_err());
    assert!(rig.node.tcp.sendfile(key, memory(), 0, 10).is_ok());
    assert_eq!(rig.node.tcp.sendfile(key, memory(), 5, 6), Err(Error::Invalid), "outside the memory");
    assert_eq!(rig.node.tcp.sendfile(key, memory(), u64::MAX, 2), Err(Error::Invalid));
}

/// A file of 20,000 bytes in segments of 1000, of which 1, 3 and the last are lost at first.
#[test]
fn case_s01_lost_segments_are_read_again_at_their_own_offset() {
    let data = pattern(0, 20_000);
    for sack in [true, false] {
        for which in 0..4 {
            let mut rig = Rig::new();
            let (log, source) = reader(&data);
            let source = if which == 1 { source } else { sources(&data).swap_remove(which) };
            let options = Options { timestamps: false, sack, ..quiet() };
            let key = rig.open(options, full(1000, None, sack));
            let base = 0;
            let ticket = rig.node.tcp.sendfile(key, source, base, 20_000).unwrap();
            rig.node.pass();
            // The peer: a plain receiver of what comes, with cumulative and selective acknowledgements.
            let mut have = std::vec![false; 20_000];
            let mut lost = [1u32, 2001, 19_001].to_vec();
            let mut una = 0usize;
            let mut half = true;
            for _ in 0..4000 {
                let sent = rig.sent();
                if una == 20_000 {
                    break;
                }
                if sent.is_empty() {
                    rig.advance(50);
                    continue;
                }
                for segment in sent {
                    let at = segment.seq.since(rig.peer.irs);
                    let from = at as usize - 1;
                    assert!(segment.payload == data[from..from + segment.payload.len()], "byte {from} of the file");
                    let covers = |l: &u32| at <= *l && *l < at + segment.payload.len() as u32;
                    if let Some(n) = lost.iter().position(covers) {
                        lost.remove(n);
                        continue;
                    }
                    have[from..from + segment.payload.len()].fill(true);
                    let before = una;
                    una = have.iter().position(|h| !h).unwrap_or(20_000);
                    if una > before && half && una > 5_000 {
                        // A partial acknowledgement in the middle of a segment.
                        half = false;
                        have[before + 700..].fill(false);
                        una = before + 700;
                    }
                    let top = have[una..].iter().position(|h| *h).map(|n| una + n);
                    match top.filter(|_| sack) {
                        Some(left) => {
                            let len = have[left..].iter().position(|h| !h).unwrap_or(20_000 - left);
                            rig.send_sack(1 + una as u32, &[(1 + left as u32, 1 + (left + len) as u32)]);
                        }
                        None => rig.send(A, 1, 1 + una as u32, &[]),
                    }
                }
            }
            assert_eq!((una, half), (20_000, false), "source {which}, SACK {sack}");
            assert!(lost.is_empty());
            assert_eq!(finished(&rig, key, ticket), Some(Ok(())));
            if which == 1 {
                let log = &log.0.borrow().log;
                assert!(log.len() > 20, "reads, some of them again");
                assert!(log.iter().all(|(at, len)| at + *len as u64 <= 20_000));
            }
        }
    }
}

#[test]
fn case_s01_nothing_below_the_acknowledged_offset_is_read() {
    let data = pattern(0, 30_000);
    let mut rig = Rig::new();
    let (log, source) = reader(&data);
    let key = rig.open_plain();
    rig.node.tcp.sendfile(key, source, 0, 30_000).unwrap();
    rig.node.pass();
    let mut acked = 0u32;
    let mut seed = 3;
    for _ in 0..300 {
        let sent = rig.sent();
        for (at, _) in log.0.borrow_mut().log.drain(..) {
            assert!(at >= u64::from(acked), "{at} read, {acked} acknowledged");
        }
        let top = sent.iter().map(|s| s.seq.since(rig.peer.irs) - 1 + s.payload.len() as u32).max();
        // Sometimes nothing comes back, so that the timer runs.
        if splitmix(&mut seed).is_multiple_of(4) {
            rig.advance(400);
            continue;
        }
        if let Some(top) = top {
            acked = acked.max(top - (splitmix(&mut seed) % 700) as u32 % (top - acked).max(1));
            rig.send(A, 1, 1 + acked, &[]);
        } else {
            rig.advance(100);
        }
    }
    assert!(acked > 20_000, "{acked}");
}

#[test]
fn case_s02_a_file_that_ends_early_is_told_and_nothing_is_made_up() {
    let data = pattern(0, 4096);
    for piece in [0, 1, 300, 4096] {
        let mut rig = Rig::new();
        let (state, source) = reader(&data);
        state.0.borrow_mut().piece = piece;
        let key = rig.open_plain();
        let ticket = rig.node.tcp.sendfile(key, source, 0, 10_000).unwrap();
        rig.node.tcp.send(key, b"what follows").unwrap();
        rig.node.pass();
        let got = drain(&mut rig, 1);
        assert!(got == data, "{} bytes", got.len());
        let file = rig.node.tcp.file(key, ticket).unwrap();
        assert_eq!((file.acknowledged, file.result), (4096, Some(Err(Error::EndOfFile))));
        assert!(rig.events(key).contains(Events::FILE));
        assert_eq!(rig.node.tcp.info(key).unwrap().state, State::Established, "left to the caller");
        // What was queued behind is gone; the caller decides what comes now.
        assert_eq!(rig.node.tcp.unsent(key).unwrap(), 0);
        rig.write(key, b"sorry");
        assert_eq!(rig.sent().pop().unwrap().payload, b"sorry");
        let calls = state.0.borrow().log.len();
        rig.advance(60_000);
        assert_eq!(state.0.borrow().log.len(), calls, "no polling");
    }
}

#[test]
fn case_s02_an_error_of_the_source_is_handed_through() {
    let data = pattern(0, 10_000);
    // Calls 1 to 4 read 1000 bytes each, the fifth fails.
    let mut rig = Rig::new();
    let (state, source) = reader(&data);
    state.0.borrow_mut().errors.extend([None, None, None, None, Some(-5)]);
    let key = rig.open_plain();
    let ticket = rig.node.tcp.sendfile(key, source, 0, 10_000).unwrap();
    rig.node.pass();
    let got = drain(&mut rig, 1);
    assert!(got == data[..4000], "{}", got.len());
    let file = rig.node.tcp.file(key, ticket).unwrap();
    assert_eq!((file.acknowledged, file.result), (4000, Some(Err(Error::Host(HostError(-5))))));
    // The first read fails: nothing leaves.
    let mut rig = Rig::new();
    let (state, source) = reader(&data);
    state.0.borrow_mut().errors.push_back(Some(-7));
    let key = rig.open_plain();
    let ticket = rig.node.tcp.sendfile(key, source, 0, 10_000).unwrap();
    rig.node.pass();
    assert!(rig.sent().is_empty());
    assert_eq!(finished(&rig, key, ticket), Some(Err(Error::Host(HostError(-7)))));
    // The twin without errors passes whole, in reads of one byte.
    let mut rig = Rig::new();
    let (state, source) = reader(&data);
    state.0.borrow_mut().piece = 1;
    let key = rig.open_plain();
    let ticket = rig.node.tcp.sendfile(key, source, 0, 10_000).unwrap();
    rig.node.pass();
    assert!(drain(&mut rig, 1) == data);
    assert_eq!(finished(&rig, key, ticket), Some(Ok(())));
}

#[test]
fn case_s02_sent_bytes_that_cannot_be_read_again_end_the_connection() {
    let data = pattern(0, 10_000);
    for shrinks in [true, false] {
        let mut rig = Rig::new();
        let (state, source) = reader(&data);
        let key = rig.open_plain();
        let ticket = rig.node.tcp.sendfile(key, source, 0, 10_000).unwrap();
        rig.node.pass();
        assert_eq!(rig.sent().len(), 10);
        if shrinks {
            state.0.borrow_mut().bytes.truncate(500);
        } else {
            state.0.borrow_mut().errors.push_back(Some(-5));
        }
        rig.advance(300);
        let sent = rig.sent();
        assert_eq!(sent.last().unwrap().flags, RA, "never stale or zero filler");
        assert!(sent.iter().all(|s| s.payload.is_empty()));
        let want = if shrinks { Error::EndOfFile } else { Error::Host(HostError(-5)) };
        assert_eq!(rig.node.tcp.error(key).unwrap(), Some(want));
        let file = rig.node.tcp.file(key, ticket).unwrap();
        assert_eq!((file.acknowledged, file.result), (0, Some(Err(want))));
    }
}

#[test]
fn case_s02_a_short_file_before_a_fin_gets_a_reset() {
    let mut rig = Rig::new();
    let (_, source) = reader(&pattern(0, 1500));
    let key = rig.open_plain();
    rig.node.tcp.sendfile(key, source, 0, 5000).unwrap();
    rig.node.tcp.close(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    let sent = rig.sent();
    assert_eq!(sent.last().unwrap().flags, RA, "a FIN would tell the peer that this was all");
    assert!(sent.iter().all(|s| !s.flags.contains(F)));
    // The twin whose file is as long as promised ends with a FIN.
    let mut rig = Rig::new();
    let (_, source) = reader(&pattern(0, 5000));
    let key = rig.open_plain();
    rig.node.tcp.sendfile(key, source, 0, 5000).unwrap();
    rig.node.tcp.close(&mut rig.node.stack, key).unwrap();
    rig.node.pass();
    let sent = rig.sent();
    assert!(sent.last().unwrap().flags.contains(F));
}

#[test]
fn a_pager_that_ends_or_fails_is_a_file_that_ends_or_fails() {
    let data = pattern(0, 6_000);
    let mut rig = Rig::new();
    let (state, source) = pager(&data, 4096);
    let key = rig.open_plain();
    let ticket = rig.node.tcp.sendfile(key, source, 0, 9_000).unwrap();
    rig.node.pass();
    assert!(drain(&mut rig, 1) == data);
    assert_eq!(finished(&rig, key, ticket), Some(Err(Error::EndOfFile)));
    assert!(state.lent.borrow().is_empty());
    assert_eq!(state.released.borrow().len(), 2);
}

#[test]
fn pages_come_back_once_acknowledged_and_their_frames_are_done() {
    let data = pattern(0, 8_192);
    let caps = NicCaps::GATHER | NicCaps::ASYNC;
    let mut rig = Rig::with(Limits { caps, lends: false, tx: 64, ..Limits::default() });
    let (state, source) = pager(&data, 4096);
    let key = rig.open_plain();
    rig.node.tcp.set_nagle(key, false).unwrap();
    rig.node.tokens_done();
    let ticket = rig.node.tcp.sendfile(key, source, 0, 8_192).unwrap();
    rig.node.pass();
    assert_eq!(rig.sent().len(), 9);
    assert_eq!(state.lent.borrow().len(), 2);
    rig.send(A, 1, 8_193, &[]);
    assert!(state.released.borrow().is_empty(), "acknowledged, but the NIC has them");
    assert_eq!(finished(&rig, key, ticket), None, "so the file is not done");
    rig.node.tokens_done();
    assert_eq!(*state.released.borrow(), [0, 4096]);
    assert_eq!(finished(&rig, key, ticket), Some(Ok(())));
    assert!(rig.events(key).contains(Events::FILE));
    // The other order: frames are done, then acknowledged.
    let (state, source) = pager(&data, 4096);
    rig.node.tcp.sendfile(key, source, 0, 8_192).unwrap();
    rig.node.pass();
    rig.sent();
    rig.node.tokens_done();
    assert!(state.released.borrow().is_empty());
    rig.send(A, 1, 8_193 + 4_096, &[]);
    assert_eq!(*state.released.borrow(), [0]);
    rig.send(A, 1, 8_193 + 8_192, &[]);
    assert_eq!(*state.released.borrow(), [0, 4096]);
}

#[test]
fn an_aborted_connection_gives_pages_back_when_the_nic_does() {
    let data = pattern(0, 8_192);
    let caps = NicCaps::GATHER | NicCaps::ASYNC;
    let mut rig = Rig::with(Limits { caps, lends: false, tx: 64, slots: 1, ..Limits::default() });
    let (state, source) = pager(&data, 4096);
    let key = rig.open_plain();
    rig.node.tokens_done();
    rig.node.tcp.sendfile(key, source, 0, 8_192).unwrap();
    rig.node.pass();
    rig.sent();
    rig.node.tcp.abort(&mut rig.node.stack, key).unwrap();
    assert!(state.released.borrow().is_empty() && rig.node.tcp.is_lending());
    assert_eq!(rig.try_connect(quiet()), Err(Error::NoSlot), "the slot waits for them too");
    rig.node.tokens_done();
    assert_eq!(state.released.borrow().len(), 2);
    assert!(!rig.node.tcp.is_lending());
    assert!(rig.try_connect(quiet()).is_ok());
}

#[test]
fn few_places_for_pages_slow_a_file_down_but_do_not_stop_it() {
    let data = pattern(0, 40_000);
    let mut rig = Rig::with(Limits { pages: 2, ..Limits::default() });
    let (state, source) = pager(&data, 1024);
    let key = rig.open_plain();
    let ticket = rig.node.tcp.sendfile(key, source, 0, 40_000).unwrap();
    rig.node.pass();
    assert_eq!(state.lent.borrow().len(), 2);
    assert!(drain(&mut rig, 1) == data);
    assert_eq!(finished(&rig, key, ticket), Some(Ok(())));
    assert_eq!(state.released.borrow().len(), 40);
}

#[test]
fn a_cancelled_file_ends_with_what_was_sent() {
    let data = pattern(0, 50_000);
    let mut rig = Rig::new();
    let key = rig.open_plain();
    let ticket = rig.node.tcp.sendfile(key, reader(&data).1, 0, 50_000).unwrap();
    rig.node.tcp.send(key, b"never").unwrap();
    rig.node.pass();
    assert_eq!(rig.sent().len(), 10);
    rig.node.tcp.cancel_file(key, ticket).unwrap();
    assert_eq!(finished(&rig, key, ticket), None);
    rig.send(A, 1, 10_001, &[]);
    let file = rig.node.tcp.file(key, ticket).unwrap();
    assert_eq!((file.acknowledged, file.result), (10_000, Some(Err(Error::Cancelled))));
    assert!(rig.sent().is_empty());
}

#[test]
fn a_count_beyond_4_gib_goes_on_at_the_right_offset() {
    // The stream is moved close to the 2³² mark.
    let data = pattern(0, 30_000);
    let mut rig = Rig::new();
    let key = rig.open_plain();
    let (state, source) = reader(&data);
    let count = (1u64 << 32) + 30_000;
    let ticket = rig.node.tcp.sendfile(key, source, 0, count).unwrap();
    let conn = rig.node.tcp.table.get_mut(key).unwrap();
    let skip = (1u64 << 32) - 5_000;
    conn.tx.queue.skip_for_test(skip);
    let at = crate::tcp::seq::Pos::DATA + skip;
    (conn.tx.una, conn.tx.nxt) = (at, at);
    conn.tx.edge = at + 65_535;
    conn.tx.window_from.1 = at;
    conn.tx.board.reset(at);
    rig.node.pass();
    let first = state.0.borrow().log[0];
    assert_eq!(first.0, skip, "the offset has more than 32 bits");
    // The file ends long before; what was acknowledged is counted in 64 bits.
    let file = rig.node.tcp.file(key, ticket).unwrap();
    assert_eq!((file.acknowledged, file.result), (skip, Some(Err(Error::EndOfFile))));
}

/// Loss, reordering and refused sends with lent pages: the peer gets the file, each page comes back exactly once.
#[test]
fn pages_over_a_hostile_link_come_back_exactly_once() {
    for seed in 0..12u64 {
        let wire = Wire {
            delay_us: 3_000,
            loss_ppm: 40_000,
            reorder_ppm: 100_000,
            reorder_by_us: 8_000,
            duplicate_ppm: 20_000,
            ..Wire::default()
        };
        let caps = if seed % 2 == 0 { NicCaps::GATHER | NicCaps::ASYNC } else { NicCaps::empty() };
        let limits = Limits { caps, lends: seed % 2 == 1, tx: 16, ..Limits::default() };
        let mut pair = Pair::new(wire, limits, seed + 1);
        let options = Options { user_timeout: Duration::from_secs(3600), ..Options::default() };
        let (client, server) = pair.open(&options);
        let data = pattern(seed as usize, 150_000);
        let (state, source) = pager(&data, 1024 + 512 * seed as usize);
        let ticket = pair.ends[0].tcp.sendfile(client, source, 0, 150_000).unwrap();
        let memory = SimMemory::new(150_000);
        let end = &mut pair.ends[1];
        end.tcp.recv_into(&mut end.stack, server, &memory, 0, 150_000).unwrap();
        let mut busy = seed;
        let done = pair.run(600_000, |p| {
            // The NIC refuses now and then.
            if splitmix(&mut busy).is_multiple_of(5) {
                p.ends[0].wire.borrow_mut().script.push_back(Some(crate::storage::host::SendError::Busy));
            }
            p.ends[0].tcp.file(client, ticket).unwrap().result.is_some()
        });
        assert!(done, "seed {seed}");
        assert_eq!(pair.ends[0].tcp.file(client, ticket).unwrap().result, Some(Ok(())));
        assert!(memory.to_vec() == data, "seed {seed}");
        assert!(state.lent.borrow().is_empty());
        let mut released = state.released.borrow().clone();
        let count = released.len();
        released.sort_unstable();
        released.dedup();
        assert_eq!(released.len(), count, "once each");
    }
}

/// A file that somebody keeps ends with its result, though its connection was closed and is over; only then is the slot free.
#[test]
fn a_kept_file_outlives_its_connection() {
    let data = pattern(0, 5_000);
    for ends in [true, false] {
        let mut rig = Rig::with(Limits { slots: 1, ..Limits::default() });
        let key = rig.open_plain();
        let ticket = rig.node.tcp.sendfile(key, reader(&data).1, 0, 5_000).unwrap();
        rig.node.tcp.keep_file(key, ticket);
        rig.node.tcp.close(&mut rig.node.stack, key).unwrap();
        rig.node.pass();
        assert_eq!(rig.sent().len(), 5);
        assert_eq!(finished(&rig, key, ticket), None);
        if ends {
            // All is acknowledged, the FIN too; then the peer resets, so that nothing of the connection is left.
            rig.send(A, 1, 5_002, &[]);
            rig.send(R, 1, 5_002, &[]);
            assert_eq!(rig.try_connect(quiet()), Err(Error::NoSlot));
            let file = rig.node.tcp.file(key, ticket).unwrap();
            assert_eq!((file.acknowledged, file.result), (5_000, Some(Ok(()))));
            assert!(rig.node.tcp.take_file(key, ticket).is_ok());
        } else {
            // Nobody waits for it any more: the source must not be asked again.
            let Rig { node, .. } = &mut rig;
            node.tcp.drop_file(&mut node.stack, key, ticket);
            assert_eq!(rig.sent().pop().unwrap().flags, RA);
            assert!(rig.node.tcp.file(key, ticket).is_err());
        }
        assert!(rig.try_connect(quiet()).is_ok());
    }
}
