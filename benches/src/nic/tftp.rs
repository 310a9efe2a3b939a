//! The peer as a TFTP server (RFC 1350, 2348, 7440) that never loses anything: one file, over and over, its blocks sent
//! whole or in fragments. Blocks are prepared; a few header words of each are filled in when it goes out.

use super::{Frame, L4, Order, arrange};
use crate::frames::{self, FRAGMENT, UDP};
use bootlace::storage::checksum::Sum;
use std::hint::black_box;

/// Port of the server's end of a transfer.
const TID: u16 = 4000;
/// Bytes of a DATA header.
const HEADER: usize = 4;
/// Data bytes of a file's last block.
pub const TAIL: usize = 100;

/// What a server sends.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Bytes of a block.
    pub blksize: usize,
    /// Blocks sent without waiting for an acknowledgement.
    pub window: u16,
    /// Full blocks; one of [`TAIL`] bytes follows.
    pub blocks: u64,
}

impl File {
    /// Frames in which a full block comes.
    pub fn frames_per_block(&self) -> usize {
        (UDP + HEADER + self.blksize).div_ceil(FRAGMENT)
    }
}

/// The server.
pub struct Tftp {
    file: File,
    /// Frames of all blocks, in the order of their sending, and how many blocks are prepared.
    order: Vec<usize>,
    prepared: usize,
    /// Frames of a block, and the first of the next one: no division for each frame.
    group: usize,
    first: usize,
    /// Port of the client; 0 before the first request.
    client: u16,
    /// The answer to the request, to be sent.
    greeting: Option<Vec<u8>>,
    /// Blocks sent in this transfer, frames of the next one sent, blocks acknowledged.
    sent: u64,
    part: usize,
    acked: u64,
    open: bool,
    total: u64,
}

impl Tftp {
    /// A server of `file`, with the frames it has prepared: `prepared` blocks, a last block, and a place for its
    /// greeting. Frames of a block come in `order`.
    pub fn new(file: File, data: &[Vec<u8>], order: Order) -> (Tftp, Vec<Vec<u8>>) {
        let block = |data: &[u8]| frames::udp(&[&[0, 3, 0, 0], data].concat());
        let group = file.frames_per_block();
        let mut all: Vec<Vec<u8>> = Vec::new();
        for (i, data) in data.iter().enumerate() {
            all.extend(frames::fragments(17, 0x100 + i as u16, &block(data)));
        }
        let tail = data.first().map_or(&[][..], |data| &data[..TAIL]);
        all.push(frames::ipv4(17, 0x1000, 0, &block(tail)));
        all.push(Vec::new());
        let mut indexes: Vec<usize> = (0..data.len() * group).collect();
        arrange(&mut indexes, order, group);
        let tftp = Tftp {
            file,
            order: indexes,
            prepared: data.len(),
            group,
            first: 0,
            client: 0,
            greeting: None,
            sent: 0,
            part: 0,
            acked: 0,
            open: false,
            total: 0,
        };
        (tftp, all)
    }

    /// Full blocks sent so far, over all transfers.
    pub fn blocks(&self) -> u64 {
        self.total
    }

    /// Whether no transfer is going on.
    pub fn idle(&self) -> bool {
        !self.open
    }

    /// Bytes of a block, and full blocks in the file.
    pub fn file(&self) -> File {
        self.file
    }

    /// A datagram has come.
    pub(super) fn hear(&mut self, frame: &[u8]) {
        let message = frame.get(L4 + UDP..).unwrap_or(&[]);
        match message {
            [0, 1, request @ ..] => {
                self.client = frames::word(frame, L4);
                (self.sent, self.part, self.acked, self.open) = (0, 0, 0, true);
                let end = usize::from(frames::word(frame, L4 + 4)) - UDP - 2;
                self.greeting = Some(self.greet(&request[..end]));
            }
            [0, 4, hi, lo, ..] => {
                let ahead = u16::from_be_bytes([*hi, *lo]).wrapping_sub(self.acked as u16);
                // Not beyond what was sent: an old acknowledgement.
                if u64::from(ahead) <= self.sent - self.acked {
                    self.acked += u64::from(ahead);
                }
                self.open = self.acked <= self.file.blocks;
            }
            _ => panic!("the client gave up: {:?}", String::from_utf8_lossy(message)),
        }
    }

    /// The OACK: the options asked for that this server knows.
    fn greet(&self, request: &[u8]) -> Vec<u8> {
        let words: Vec<&[u8]> = request.split(|byte| *byte == 0).collect();
        let mut oack = vec![0, 6];
        for (name, value) in [("blksize", self.file.blksize), ("windowsize", usize::from(self.file.window))] {
            if words.iter().any(|word| word.eq_ignore_ascii_case(name.as_bytes())) {
                oack.extend(name.bytes().chain([0]).chain(value.to_string().bytes()).chain([0]));
            }
        }
        frames::udp(&oack)
    }

    /// The next frame, if the window lets one pass.
    #[inline]
    pub(super) fn next(&mut self, all: &mut [Frame]) -> Option<usize> {
        let special = self.order.len();
        if let Some(oack) = self.greeting.take() {
            let mut frame = Frame::new(&frames::ipv4(17, 0, 0x4000, &oack));
            self.address(&mut frame, 0);
            *all.get_mut(special + 1)? = frame;
            return Some(special + 1);
        }
        if !self.open || self.sent > self.file.blocks || self.sent >= self.acked + u64::from(self.file.window) {
            return None;
        }
        let number = self.sent as u16 + 1;
        if self.sent == self.file.blocks {
            self.sent += 1;
            self.address(all.get_mut(special)?, number);
            return Some(special);
        }
        if self.part == 0 {
            self.address(all.get_mut(self.first)?, number);
        }
        let index = *self.order.get(self.first + self.part)?;
        if self.group > 1 {
            all.get_mut(index)?.identify(self.prepared as u16);
        }
        self.part += 1;
        if self.part == self.group {
            self.part = 0;
            self.sent += 1;
            self.total += 1;
            self.first = if self.first + self.group < special { self.first + self.group } else { 0 };
        }
        Some(index)
    }

    /// Fills in ports, and the block number where there is one, and takes what changes into the checksum (RFC 1624).
    #[inline]
    fn address(&self, frame: &mut Frame, number: u16) {
        let Some((udp, rest)) = frame.buffer.0[L4..].split_first_chunk_mut::<UDP>() else { return };
        let Some(data) = rest.first_chunk_mut::<4>() else { return };
        let ([a, b, c, d, len_hi, len_lo, s, t], [zero, kind, hi, lo]) = (*udp, *data);
        let block = if kind == 3 { number } else { u16::from_be_bytes([hi, lo]) };
        let sum = Sum::of_array(&[!s, !t])
            + Sum::of_array(&[!a, !b, !c, !d])
            + Sum::of_array(&[!hi, !lo])
            + Sum::of_u16(TID)
            + Sum::of_u16(self.client)
            + Sum::of_u16(block);
        let ([a, b], [c, d], [hi, lo]) = (TID.to_be_bytes(), self.client.to_be_bytes(), block.to_be_bytes());
        let [s, t] = if sum.to_field() == [0, 0] { [0xff, 0xff] } else { sum.to_field() };
        // A device writes whole lines; stores of two bytes here would make every wider load of the receiver's wait until
        // the payload before has reached the cache.
        *udp = black_box(u64::from_ne_bytes([a, b, c, d, len_hi, len_lo, s, t])).to_ne_bytes();
        *data = black_box(u32::from_ne_bytes([zero, kind, hi, lo])).to_ne_bytes();
    }
}
