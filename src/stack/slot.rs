//! One datagram of which fragments have come: who sent it, what has come, and where it goes. Whose slot it is, and what becomes
//! of the whole, is for [`super::landing`].

use super::coverage::Coverage;
use super::interface::NicId;
use super::landing::{KEPT_HEADER, Spot};
use super::stats::Counter;
use super::trail;
use crate::storage::checksum::Sum;
use crate::storage::host::Memory;
use crate::storage::time::Instant;
use crate::wire::ipv4::{self, Protocol};
use crate::wire::udp;
use core::net::Ipv4Addr;

/// Names a datagram among its fragments (RFC 791 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub nic: NicId,
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
    pub protocol: Protocol,
    pub id: u16,
}

/// What is done with the pieces of a datagram.
#[derive(Clone, Debug)]
pub(super) enum State<M> {
    Free,
    /// Pieces go to a region. `named`: the first fragment has said so; until then it is a guess.
    Region {
        claimant: u8,
        spot: Spot<M>,
        named: bool,
    },
    /// Pieces go to a staging buffer.
    Staged {
        buffer: usize,
    },
    /// A whole staged datagram is being looked at by its receiver.
    Pinned {
        buffer: usize,
    },
    /// Pieces that still come belong to a datagram already given up, or confirmed.
    Over,
}

/// A datagram of which fragments have come.
#[derive(Debug)]
pub struct Slot<M> {
    pub(super) state: State<M>,
    pub(super) key: Key,
    pub(super) deadline: Instant,
    pub(super) coverage: Coverage,
    pub(super) sum: Sum,
    pub(super) head: heapless::Vec<u8, { udp::HEADER_LEN + KEPT_HEADER }>,
    pub(super) ttl: u8,
    /// Some bytes were beyond the guessed range and are stored nowhere.
    pub(super) trimmed: bool,
}

impl<M> Slot<M> {
    const NO_KEY: Key =
        Key { nic: NicId(0), src: Ipv4Addr::UNSPECIFIED, dst: Ipv4Addr::UNSPECIFIED, protocol: Protocol(0), id: 0 };

    /// A free slot.
    pub const fn new() -> Self {
        Slot {
            state: State::Free,
            key: Self::NO_KEY,
            deadline: Instant::NEVER,
            coverage: Coverage::new(),
            sum: Sum::ZERO,
            head: heapless::Vec::new(),
            ttl: 0,
            trimmed: false,
        }
    }
}

impl<M: Memory> Slot<M> {
    /// Begins a datagram.
    #[inline]
    pub(super) fn begin(&mut self, state: State<M>, key: Key, deadline: Instant) {
        self.state = state;
        self.key = key;
        self.deadline = deadline;
        self.coverage = Coverage::new();
        self.sum = Sum::ZERO;
        self.head.clear();
        self.trimmed = false;
    }

    /// Stores a piece that is as nearly all are, not the first nor the last, to its place in a region; whether the datagram
    /// is whole now. `None`, and nothing is noted of it: it is to go the long way.
    #[inline]
    pub(super) fn more(&mut self, piece: &trail::Piece<'_>) -> Option<Result<bool, Counter>> {
        let State::Region { spot, .. } = &self.state else { return None };
        let len = piece.payload.len();
        let from = piece.start.checked_sub(udp::HEADER_LEN)?.checked_sub(spot.header)?;
        // Neither can wrap: a datagram has 64 KiB.
        let (at, end) = (spot.at.checked_add(from)?, from.wrapping_add(len));
        if !piece.more || end > spot.len || !self.coverage.add_usual(piece.start as u32, len as u32) {
            return None;
        }
        let Ok(sum) = spot.memory.copy_sum(at, piece.payload) else { return Some(Err(Counter::DropFragmentMalformed)) };
        self.sum += sum;
        // Where the same piece of the next datagram is likely to land.
        spot.memory.prefetch(at.wrapping_add(spot.len), len);
        Some(Ok(self.coverage.is_complete()))
    }
}

impl<M> Default for Slot<M> {
    fn default() -> Self {
        Self::new()
    }
}

/// The IPv4 header of a datagram, to quote or to hand up.
pub(super) fn quote_header(key: &Key, ttl: u8, payload_len: usize) -> [u8; ipv4::HEADER_LEN] {
    let ip = ipv4::Repr {
        source: key.src,
        destination: key.dst,
        protocol: key.protocol,
        payload_len: u16::try_from(payload_len).unwrap_or(u16::MAX),
        tos: 0,
        ttl,
        identification: key.id,
        dont_fragment: false,
        more_fragments: false,
        fragment_offset: 0,
    };
    ip.emit(Sum::of(&ip.emit([0; 2])).to_field())
}
