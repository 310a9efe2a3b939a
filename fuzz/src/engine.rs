//! Targets that feed the whole engine: sequences of fragments against a model of what may be confirmed, and any frames.

use bootlace::sim::blocks::BlocksRig;
use bootlace::sim::packets::{self, Station};
use bootlace::sim::rig::{Limits, Rig};
use bootlace::stack::egress::pseudo_header;
use bootlace::stack::stats::Counter;
use bootlace::storage::checksum::Sum;
use bootlace::wire::icmpv4::Message;
use bootlace::wire::ipv4::Protocol;
use std::collections::BTreeMap;

/// Bytes of a block: with its headers three fragments of 24.
const SIZE: usize = 60;
const BLOCKS: usize = 2;

/// What may be made of the fragments of one identification: the bytes of the first copy of each piece, unless one
/// overlapped (then nothing).
#[derive(Default)]
struct Model {
    pieces: Vec<(usize, Vec<u8>, bool)>,
    dead: bool,
}

impl Model {
    fn add(&mut self, start: usize, bytes: &[u8], more: bool) {
        let end = start + bytes.len();
        let impossible = bytes.is_empty() || (more && bytes.len() % 8 != 0);
        if self.dead || impossible {
            self.dead |= impossible;
            return;
        }
        if self.pieces.iter().any(|(s, b, m)| (*s, b.len(), *m) == (start, bytes.len(), more)) {
            return;
        }
        let total = self.pieces.iter().find(|(_, _, m)| !m).map(|(s, b, _)| s + b.len());
        let overlaps = self.pieces.iter().any(|(s, b, _)| *s < end && start < s + b.len());
        let beyond =
            total.is_some_and(|t| end > t || !more) || (!more && self.pieces.iter().any(|(s, b, _)| s + b.len() > end));
        self.dead |= overlaps || beyond;
        self.pieces.push((start, bytes.to_vec(), more));
    }

    /// The datagram, if it is whole.
    fn datagram(&self) -> Option<Vec<u8>> {
        if self.dead {
            return None;
        }
        let total = self.pieces.iter().find(|(_, _, m)| !m).map(|(s, b, _)| s + b.len())?;
        let mut sorted: Vec<_> = self.pieces.iter().collect();
        sorted.sort_by_key(|(s, _, _)| *s);
        let joined: Vec<u8> = sorted.iter().flat_map(|(_, b, _)| b.iter().copied()).collect();
        (joined.len() == total).then_some(joined)
    }
}

/// Fragments of two blocks, four bytes each: bit 0 the block, bits 2 and 3 the copy (an identification of its own); the
/// offset in units of 8; the length in units of 4, its top bit set for the last fragment; a byte to spoil, if inside.
/// Whatever is confirmed must be a datagram that the model allows, its checksum right.
pub fn fragments(data: &[u8]) -> bool {
    let limits =
        Limits { landing: 4, staging: 0, nics: 1, wait: 0, tx: 0, queue: 0, ops: 1, sockets: 1, ..Limits::default() };
    let mut bench = BlocksRig::new(SIZE, BLOCKS, BLOCKS, limits);
    let mut models: BTreeMap<u16, Model> = BTreeMap::new();
    let mut allowed: BTreeMap<usize, Vec<Vec<u8>>> = BTreeMap::new();
    let (server, us) = (bench.server.ip, bench.rig.us.ip);
    for &[which, offset, len, spoil] in data.as_chunks::<4>().0.iter().take(64) {
        let block = usize::from(which & 1);
        let id = u16::from(which & 0x0d) + 1;
        let datagram = bench.datagram(block);
        let start = usize::from(offset % 16) * 8;
        let end = (start + usize::from(len & 0x3f) * 4).min(datagram.len());
        let more = len & 0x80 == 0;
        let mut bytes = datagram.get(start..end).unwrap_or(&[]).to_vec();
        if let Some(byte) = bytes.get_mut(usize::from(spoil)) {
            *byte ^= 0x55;
        }
        if bytes.is_empty() {
            continue;
        }
        let whole = if start == 0 && !more {
            // No fragment at all.
            Some(bytes.clone())
        } else {
            let model = models.entry(id).or_default();
            model.add(start, &bytes, more);
            model.datagram()
        };
        if let Some(whole) = whole {
            let sum = pseudo_header(server, us, Protocol::UDP, whole.len()) + Sum::of(&whole);
            if whole.len() == SIZE + 12 && sum.holds() {
                allowed.entry(usize::from(whole[11])).or_default().push(whole[12..].to_vec());
            }
        }
        let before = bench.confirmed();
        bench.rig.input(&bench.piece(id, start, more, &bytes));
        for number in bench.confirmed() {
            if !before.contains(&number) {
                let held = bench.at(number);
                // What was discarded is forgotten when its slot is needed: the true bytes may then come with its number.
                assert!(
                    held == bench.block(number) || allowed.get(&number).is_some_and(|a| a.contains(&held)),
                    "block {number} was confirmed with bytes nobody sent"
                );
                // From now on these are the bytes.
                allowed.insert(number, vec![held]);
            } else {
                assert!(allowed[&number].contains(&bench.at(number)), "block {number} changed after it was confirmed");
            }
        }
        bench.check_guard();
    }
    !bench.confirmed().is_empty()
}

/// Any frames: two bytes of length in front of each. Nothing may panic, and a good frame after them is still taken.
pub fn frames(data: &[u8]) -> bool {
    let small = Limits {
        nics: 1,
        tx: 0,
        wait: 1,
        sockets: 2,
        queue: 64,
        ops: 1,
        staging: 1,
        staging_bytes: 1600,
        ..Limits::default()
    };
    let mut bench = BlocksRig::new(64, 2, 8, small);
    let other = Station::new(3);
    let mut rest = data;
    while let Some((&[a, b], tail)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_be_bytes([a, b])).min(tail.len());
        let (frame, more) = tail.split_at(len);
        bench.rig.input(frame);
        bench.rig.advance(1);
        bench.rig.sent();
        rest = more;
    }
    let answered = bench.rig.count(Counter::IcmpEchoAnswered);
    let went_through = answered > 0 || !bench.confirmed().is_empty();
    bench.check_guard();
    bench.rig.advance(120_000);
    bench.rig.know(other);
    bench.rig.sent();
    bench.rig.input(&echo(&bench.rig, other));
    assert!(bench.rig.count(Counter::IcmpEchoAnswered) > answered, "a good frame is taken after anything");
    went_through
}

fn echo(rig: &Rig, from: Station) -> Vec<u8> {
    let mut message = Message::EchoRequest { id: 1, seq: 2, data: &[] }.emit_head([0; 2]).to_vec();
    message.extend_from_slice(b"seed");
    packets::icmp(from, rig.us, &message)
}

/// Seeds for [`frames`].
pub fn conversations() -> Vec<(&'static str, Vec<u8>)> {
    let bench = BlocksRig::new(64, 2, 8, Limits::default());
    let other = Station::new(3);
    let pack = |frames: &[Vec<u8>]| -> Vec<u8> {
        frames.iter().flat_map(|f| [&(f.len() as u16).to_be_bytes()[..], f].concat()).collect()
    };
    let ask = packets::arp_request(other, bench.rig.us.ip);
    vec![
        ("ping", pack(&[ask.clone(), echo(&bench.rig, other)])),
        (
            "blocks",
            pack(&[
                ask,
                bench.fragments(0, 1, 1480).concat(),
                bench.fragments(1, 2, 40)[1].clone(),
                bench.fragments(1, 2, 40)[0].clone(),
            ]),
        ),
    ]
}
