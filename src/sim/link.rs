//! A link on virtual time between the engine and a scripted peer: delay, rate, loss, reordering and duplication, all
//! from one seed.

use super::host::splitmix;
use super::rig::Rig;
use crate::storage::host::RxFlags;
use crate::storage::time::{Duration, Instant};
use std::collections::BTreeMap;
use std::vec::Vec;

/// What a link does to frames, each way.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Time from one end to the other.
    pub delay: Duration,
    /// Bits a second; 0: without limit.
    pub bits_per_second: u64,
    /// Frames lost, in parts per million.
    pub loss_ppm: u32,
    /// Frames delivered twice, in parts per million.
    pub duplicate_ppm: u32,
    /// Frames held back by up to `reorder_by`, in parts per million.
    pub reorder_ppm: u32,
    /// How long reordered frames are held back at most.
    pub reorder_by: Duration,
    /// Frames that can wait for the rate limit; more are lost. 0: without limit.
    pub queue: usize,
    /// Frames the engine's NIC can hold between two passes; more are lost. 0: without limit.
    pub ring: usize,
    /// Time between two passes of the engine while frames wait for it: 0 for at once.
    pub pass_every: Duration,
}

impl Default for Conditions {
    fn default() -> Self {
        Conditions {
            delay: Duration::from_micros(50),
            bits_per_second: 0,
            loss_ppm: 0,
            duplicate_ppm: 0,
            reorder_ppm: 0,
            reorder_by: Duration::from_millis(1),
            queue: 0,
            ring: 0,
            pass_every: Duration::ZERO,
        }
    }
}

/// What sits at the other end.
pub trait Peer {
    /// Takes a frame; what it answers goes to `out`.
    fn receive(&mut self, now: Instant, frame: &[u8], out: &mut Vec<Vec<u8>>);
    /// Does what is due at `now`.
    fn tick(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        let _ = (now, out);
    }
    /// When it next has something to do by itself.
    fn deadline(&self) -> Instant {
        Instant::NEVER
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Towards {
    Engine,
    Peer,
}

/// The link, its frames in flight, and both ends' state of the rate limit.
#[derive(Debug)]
pub struct Link {
    /// What it does.
    pub conditions: Conditions,
    seed: u64,
    order: u64,
    flight: BTreeMap<(Instant, u64), (Towards, Vec<u8>)>,
    free_at: [Instant; 2],
    ring: std::collections::VecDeque<Vec<u8>>,
    next_pass: Instant,
    /// Frames lost to the ring's size.
    pub ring_drops: u64,
    /// Frames lost on the link.
    pub lost: u64,
    /// Frames delivered to the engine.
    pub delivered: u64,
}

impl Link {
    /// A link under these conditions.
    pub fn new(conditions: Conditions, seed: u64) -> Self {
        Link {
            conditions,
            seed,
            order: 0,
            flight: BTreeMap::new(),
            free_at: [Instant::ZERO; 2],
            ring: std::collections::VecDeque::new(),
            next_pass: Instant::ZERO,
            ring_drops: 0,
            lost: 0,
            delivered: 0,
        }
    }

    fn chance(&mut self, ppm: u32) -> bool {
        ppm > 0 && splitmix(&mut self.seed) % 1_000_000 < u64::from(ppm)
    }

    fn put(&mut self, now: Instant, towards: Towards, frame: Vec<u8>) {
        let c = self.conditions;
        let copies = if self.chance(c.duplicate_ppm) { 2 } else { 1 };
        for _ in 0..copies {
            let waiting = self.flight.values().filter(|(t, _)| *t == towards).count();
            if self.chance(c.loss_ppm) || (c.queue > 0 && waiting >= c.queue) {
                self.lost += 1;
                continue;
            }
            let free = &mut self.free_at[towards as usize];
            let start = now.max(*free);
            // Preamble, check sequence and gap count as on a wire: 24 bytes a frame.
            let bits = (frame.len() as u64 + 24) * 8;
            let time = match c.bits_per_second {
                0 => Duration::ZERO,
                rate => Duration::from_micros(bits * 1_000_000 / rate),
            };
            *free = start + time;
            let mut at = start + time + c.delay;
            if self.chance(c.reorder_ppm) {
                at += Duration::from_micros(splitmix(&mut self.seed) % c.reorder_by.as_micros().max(1));
            }
            self.order += 1;
            self.flight.insert((at, self.order), (towards, frame.clone()));
        }
    }

    /// Runs engine and peer until `done` says so or `limit` of virtual time has passed; whether `done` did.
    pub fn run(
        &mut self,
        rig: &mut Rig,
        peer: &mut dyn Peer,
        limit: Duration,
        mut done: impl FnMut(&mut Rig) -> bool,
    ) -> bool {
        let end = rig.now() + limit;
        loop {
            if done(rig) {
                return true;
            }
            let now = rig.now();
            for frame in rig.sent() {
                self.put(now, Towards::Peer, frame);
            }
            let in_flight = self.flight.first_key_value().map_or(Instant::NEVER, |((at, _), _)| *at);
            let pass = if self.ring.is_empty() { Instant::NEVER } else { self.next_pass };
            // The engine acts at its passes only.
            let timer = rig.engine.deadline().max(self.next_pass);
            let next = in_flight.min(pass).min(peer.deadline()).min(timer).max(now);
            if next > end || next == Instant::NEVER {
                return false;
            }
            rig.engine.set_now(next);
            let mut out = Vec::new();
            peer.tick(next, &mut out);
            while let Some(entry) = self.flight.first_entry() {
                if entry.key().0 > next {
                    break;
                }
                let (towards, frame) = entry.remove();
                match towards {
                    Towards::Peer => peer.receive(next, &frame, &mut out),
                    Towards::Engine if self.conditions.ring > 0 && self.ring.len() >= self.conditions.ring => {
                        self.ring_drops += 1;
                    }
                    Towards::Engine => self.ring.push_back(frame),
                }
            }
            for frame in out {
                self.put(next, Towards::Engine, frame);
            }
            if next >= self.next_pass {
                self.next_pass = next + self.conditions.pass_every;
                while let Some(frame) = self.ring.pop_front() {
                    self.delivered += 1;
                    let _ = rig.engine.receive(rig.nic, &frame, RxFlags::empty());
                }
                rig.engine.tick();
                #[cfg(feature = "tcp")]
                while rig.engine.next_tcp_event().is_some() {}
            }
            if rig.engine.deadline() <= next && rig.wire.borrow().sent.is_empty() && self.flight.is_empty() {
                // Nothing moves but the engine wants to go on: let time pass.
                rig.engine.set_now(next + Duration::from_micros(10));
            }
        }
    }
}
