use super::*;
use crate::sim::host::{SimMemory, splitmix};
use std::vec;
use std::vec::Vec;

type Queue = ReceiveQueue<'static, SimMemory>;

fn queue(ring: usize, held: usize) -> Queue {
    let ring: &'static mut [u8] = std::boxed::Box::leak(vec![0xee; ring].into_boxed_slice());
    let held: &'static mut [Interval<Pos>] = std::boxed::Box::leak(vec![Interval::default(); held].into_boxed_slice());
    ReceiveQueue::new(ring, held)
}

fn data(from: u64, len: u64) -> Vec<u8> {
    (from..from + len).map(|n| (n * 7 + n / 251) as u8).collect()
}

fn pos(n: u64) -> Pos {
    Pos::DATA + n
}

/// A segment whose checksum holds.
fn arrive(q: &mut Queue, at: u64, len: u64) -> Confirmed {
    let bytes = data(at, len);
    let limit = q.end_of_room(0);
    let stored = q.store(pos(at), &bytes, limit);
    assert_eq!(stored.sum, Sum::of(&bytes), "all of it is summed");
    if stored.start < stored.end { q.confirm(stored.start, stored.end) } else { Confirmed::Duplicate }
}

fn read_all(q: &mut Queue) -> Vec<u8> {
    let mut out = vec![0u8; 100_000];
    let n = q.read(&mut out);
    out.truncate(n);
    out
}

#[test]
fn a_header_through_the_ring_and_a_body_into_a_region() {
    let mut q = queue(64, 8);
    let memory = SimMemory::new(1000);
    q.queue_ring(10);
    assert!(q.queue_region(memory.clone()));
    assert_eq!(q.end_of_room(0), pos(10 + 1000 + 54));
    assert_eq!(arrive(&mut q, 0, 200), Confirmed::InOrder(200));
    assert_eq!(read_all(&mut q), data(0, 10));
    assert_eq!(q.front(), Some(RegionState { filled: 190, len: 1000 }));
    assert_eq!(arrive(&mut q, 200, 850), Confirmed::InOrder(850));
    assert_eq!(q.front(), Some(RegionState { filled: 1000, len: 1000 }));
    assert_eq!(q.readable(), 0, "what follows the region waits for it");
    assert_eq!(q.finish_front(), Some(RegionState { filled: 1000, len: 1000 }));
    assert_eq!(memory.to_vec(), data(10, 1000));
    assert_eq!(read_all(&mut q), data(1010, 40));
}

#[test]
fn ring_bytes_move_to_a_new_region_those_out_of_order_too() {
    let mut q = queue(400, 8);
    arrive(&mut q, 0, 100);
    arrive(&mut q, 150, 50);
    arrive(&mut q, 290, 60);
    let mut head = [0u8; 30];
    assert_eq!(q.read(&mut head), 30);
    let memory = SimMemory::new(280);
    assert!(q.queue_region(memory.clone()));
    assert_eq!(q.front(), Some(RegionState { filled: 70, len: 280 }));
    // 290..310 lies in the region, the rest must come again.
    assert_eq!(q.held(), [Interval::new(pos(150), pos(200)), Interval::new(pos(290), pos(310))]);
    assert_eq!(arrive(&mut q, 100, 50), Confirmed::InOrder(100));
    assert_eq!(arrive(&mut q, 200, 90), Confirmed::InOrder(110));
    assert_eq!(memory.to_vec(), data(30, 280));
    arrive(&mut q, 310, 40);
    q.finish_front();
    assert_eq!(read_all(&mut q), data(310, 40));
}

#[test]
fn a_region_smaller_than_what_the_ring_holds_takes_the_first_of_it() {
    for header in [0u64, 5] {
        let mut q = queue(300, 8);
        q.queue_ring(header);
        arrive(&mut q, 0, 100);
        arrive(&mut q, 120, 30);
        let memory = SimMemory::new(40);
        assert!(q.queue_region(memory.clone()));
        assert!(q.front().unwrap().is_full());
        assert_eq!(memory.to_vec(), data(header, 40));
        assert_eq!(read_all(&mut q), data(0, header));
        q.finish_front();
        arrive(&mut q, 100, 20);
        assert_eq!(read_all(&mut q), data(header + 40, 110 - header));
    }
}

#[test]
fn a_finished_region_with_unread_bytes_before_it_leaves_them_readable() {
    let mut q = queue(100, 8);
    q.queue_ring(8);
    let memory = SimMemory::new(20);
    q.queue_region(memory.clone());
    arrive(&mut q, 0, 48);
    assert!(q.finish_front().unwrap().is_full());
    let mut out = read_all(&mut q);
    let tail = out.split_off(8);
    assert_eq!((out, tail, memory.to_vec()), (data(0, 8), data(28, 20), data(8, 20)));
}

#[test]
fn cancelling_returns_what_is_in_order_and_reneges_the_rest() {
    let mut q = queue(50, 8);
    let memory = SimMemory::new(500);
    q.queue_region(memory.clone());
    let edge = q.end_of_room(0);
    assert_eq!(edge, pos(550));
    arrive(&mut q, 0, 100);
    arrive(&mut q, 200, 100);
    assert_eq!(q.finish_front(), Some(RegionState { filled: 100, len: 500 }));
    assert!(q.held().is_empty());
    let before = memory.to_vec();
    // The announced edge stands, but only the ring has places now.
    let stored = q.store(pos(100), &data(100, 80), edge);
    assert_eq!((stored.start, stored.end), (pos(100), pos(150)));
    q.confirm(stored.start, stored.end);
    let stored = q.store(pos(150), &data(150, 10), edge);
    assert_eq!(stored.start, stored.end);
    assert_eq!(memory.to_vec(), before, "nothing is written to it again");
    let next = SimMemory::new(300);
    q.queue_region(next.clone());
    assert_eq!(q.front(), Some(RegionState { filled: 50, len: 300 }));
    arrive(&mut q, 150, 250);
    assert_eq!(next.to_vec(), data(100, 300));
}

#[test]
fn corrupt_bytes_over_confirmed_ones_change_nothing() {
    let mut q = queue(0, 8);
    let memory = SimMemory::new(1000);
    q.queue_region(memory.clone());
    arrive(&mut q, 100, 100);
    arrive(&mut q, 400, 100);
    let edge = q.end_of_room(0);
    let bad = vec![0x55u8; 600];
    let stored = q.store(pos(50), &bad, edge);
    assert_eq!(stored.sum, Sum::of(&bad));
    let held = memory.to_vec();
    assert_eq!(held[100..200], data(100, 100));
    assert_eq!(held[400..500], data(400, 100));
    // Where nothing was confirmed, anything may stand until the right bytes come.
    arrive(&mut q, 0, 1000);
    assert_eq!(memory.to_vec(), data(0, 1000));
}

#[test]
fn without_places_for_ranges_nothing_is_kept_out_of_order() {
    let mut q = queue(100, 0);
    assert_eq!(arrive(&mut q, 10, 10), Confirmed::NoRoom);
    assert_eq!(arrive(&mut q, 0, 10), Confirmed::InOrder(10));
    assert_eq!(arrive(&mut q, 10, 10), Confirmed::InOrder(10));
}

/// Random segments, regions, reads and cancels: what comes out is the stream.
#[test]
fn a_ring_part_without_end_stays_behind_what_was_queued() {
    for count in [u64::MAX, u64::MAX - 500, 1 << 63, i64::MAX as u64] {
        let mut q = queue(400, 8);
        let memory = SimMemory::new(100);
        assert!(q.queue_region(memory.clone()));
        q.queue_ring(count);
        q.queue_ring(count);
        assert!(!q.queue_region(SimMemory::new(10)), "nothing follows");
        assert_eq!(arrive(&mut q, 0, 300), Confirmed::InOrder(300));
        assert_eq!(q.finish_front(), Some(RegionState { filled: 100, len: 100 }));
        assert_eq!(memory.to_vec(), data(0, 100));
        assert_eq!(read_all(&mut q), data(100, 200));
    }
}

#[test]
fn any_order_of_segments_regions_and_reads_gives_the_stream() {
    let total = 1500u64;
    let stream = data(0, total);
    for seed in 0..1500u64 {
        let mut state = seed;
        let mut random = |bound: u64| splitmix(&mut state) % bound.max(1);
        let mut q = queue(random(200) as usize + 20, 8);
        // Pieces in the order of the stream: from the ring, or regions with their length.
        let mut got: Vec<u8> = Vec::new();
        let mut edge = q.end_of_room(0);
        let mut queued: std::collections::VecDeque<SimMemory> = Default::default();
        for _ in 0..20_000 {
            if q.next() == pos(total) && got.len() as u64 == total {
                break;
            }
            edge = edge.later(q.end_of_room(0));
            match random(12) {
                0..=6 => {
                    let next = q.next().since(Pos::DATA);
                    let at = next.saturating_sub(random(60)) + random(100);
                    let len = (random(90) + 1).min(total.saturating_sub(at));
                    if len > 0 {
                        let bytes = &stream[at as usize..(at + len) as usize];
                        let corrupt = random(5) == 0;
                        let mut sent = bytes.to_vec();
                        if corrupt {
                            sent.iter_mut().for_each(|b| *b ^= 0xff);
                        }
                        let stored = q.store(pos(at), &sent, edge);
                        assert_eq!(stored.sum, Sum::of(&sent));
                        if !corrupt && stored.start < stored.end {
                            q.confirm(stored.start, stored.end);
                        }
                    }
                }
                7 | 8 => {
                    let mut out = vec![0u8; random(80) as usize];
                    let n = q.read(&mut out);
                    got.extend_from_slice(&out[..n]);
                }
                9 => {
                    if random(2) == 0 {
                        q.queue_ring(random(30));
                    }
                    let memory = SimMemory::new(random(150) as usize + 1);
                    if q.queue_region(memory.clone()) {
                        queued.push_back(memory);
                    }
                }
                _ => {
                    let done = q.front().is_some_and(|f| f.is_full() || q.next() == pos(total) || random(20) == 0);
                    if done && q.readable() == 0 {
                        // Everything before it was read.
                        let state = q.finish_front().unwrap();
                        got.extend_from_slice(&queued.pop_front().unwrap().to_vec()[..state.filled]);
                    }
                }
            }
        }
        assert_eq!(got, stream, "seed {seed}");
    }
}
