//! Landing: received payload goes straight to its last place, summed on the way. A client says where a datagram would
//! belong; this room stores it there and tells whether its checksum holds. It knows no protocol, and clients know no
//! fragments.
//!
//! The rules that keep early writes honest:
//! - (a) Only unconfirmed bytes are stored: a client gives a confirmed block a spot of length 0, so that it is summed
//!   and never written.
//! - (b) A range has one claimant. A datagram whose header names the range takes it over; the loser's later pieces are
//!   discarded.
//! - (c) A fragment that comes before its first fragment binds by guess to the lowest unclaimed range that is expected
//!   from its sender. A guess yields to a header: the bytes move once, or are dropped.
//! - (d) Bytes beyond the range are summed, never stored.
//! - (e) Nothing is written once an operation has ended: every first use asks for the place anew, and
//!   [`Landing::end_claims`] ends the rest.
//! - (f) A landing slot lives until confirmation or a short deadline from its first fragment (RFC 4963: identifications
//!   repeat); staged datagrams live as long as RFC 1122 §3.3.2 wants.

use super::coverage::Piece;
use super::ingress::Packet;
use super::interface::NicId;
use super::relocate::{move_pieces, swap_ranges};
pub use super::slot::Slot;
use super::slot::{Key, State, quote_header};
pub use super::staging::{HEADROOM, StagedDatagram, Staging};
use super::stats::Counter;
use super::trail;
use crate::storage::checksum::Sum;
use crate::storage::host::Memory;
use crate::storage::time::{Duration, Instant};
use crate::wire::ethernet::{self, Address, EtherType};
use crate::wire::ipv4::{self, Protocol};
use crate::wire::udp;
use core::net::Ipv4Addr;

/// Most bytes of a datagram's front a client is shown to say where the datagram belongs.
pub const HEAD: usize = 256;
/// Most bytes of a client's header that are kept of a fragmented datagram, its UDP header aside.
pub const KEPT_HEADER: usize = 160;
/// A place in a region for the payload of one datagram.
#[derive(Clone, Debug)]
pub struct Spot<M> {
    /// The region.
    pub memory: M,
    /// Offset in the region of the first payload byte.
    pub at: usize,
    /// Bytes the range holds; what the datagram has beyond is summed, not stored. 0 for what was confirmed before.
    pub len: usize,
    /// Bytes of the transport payload that come before: the client's own header.
    pub header: usize,
}

/// Where a datagram belongs.
#[derive(Clone, Debug)]
pub enum Place<M> {
    /// To a region.
    Region(Spot<M>),
    /// To the client as a whole.
    Stage,
    /// To nobody.
    NotMine,
}

/// Who sent a datagram to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Source address.
    pub src: Ipv4Addr,
    /// Source port, in host order.
    pub src_port: u16,
    /// Port of ours, in host order.
    pub dst_port: u16,
}

/// Those who expect datagrams: every client with its expected ranges.
pub trait Expect {
    /// The caller's memory.
    type Memory: Memory;
    /// Says where a datagram belongs whose UDP payload begins with `head` and is `len` bytes long, and who claims it.
    /// Changes nothing: the datagram may yet turn out corrupt.
    fn place(&self, flow: &Flow, head: &[u8], len: usize) -> (Place<Self::Memory>, u8);
    /// The `nth` lowest range expected from `src`, who expects it, and how long its pieces may take; `None` when there
    /// are no more.
    fn guess(&self, src: Ipv4Addr, nth: usize) -> Option<(Spot<Self::Memory>, u8, Duration)>;
    /// How long the pieces of a datagram for `claimant` may take.
    fn patience(&self, claimant: u8) -> Duration;
}

/// What landed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landed {
    /// Offset in the region of the first byte.
    pub at: usize,
    /// Bytes stored.
    pub len: usize,
}

/// Stores an unfragmented datagram's `payload` at `spot`, where `before` is the sum of all that the checksum covers
/// ahead of it (an even number of bytes). `None`: the checksum does not hold, or the spot is no part of its region; what
/// was stored is unconfirmed. `verified`: the checksum is known to hold.
#[inline]
pub fn land<M: Memory>(spot: &Spot<M>, payload: &[u8], before: Sum, verified: bool) -> Option<Landed> {
    let (header, data) = payload.split_at_checked(spot.header)?;
    let (stored, beyond) = data.split_at(data.len().min(spot.len));
    if verified {
        spot.memory.write(spot.at, stored).ok()?;
    } else {
        let mut sum = before + Sum::of(header);
        sum += spot.memory.copy_sum(spot.at, stored).ok()?.at(header.len());
        if !beyond.is_empty() {
            sum += Sum::of(beyond).at(header.len().wrapping_add(stored.len()));
        }
        if !sum.holds() {
            return None;
        }
    }
    Some(Landed { at: spot.at, len: stored.len() })
}

/// What became of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Kept; the datagram is not whole yet.
    Kept,
    /// Dropped, for this reason.
    Dropped(Counter),
    /// With it a datagram is whole that lies in its region, its checksum right: see [`Landing::landed`].
    Landed(usize),
    /// With it a datagram is whole that lies in a staging buffer: see [`Landing::take_staged`].
    Staged(usize),
}

/// A datagram that has landed whole.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'l> {
    /// Who claimed it.
    pub claimant: u8,
    /// Source and ports.
    pub flow: Flow,
    /// Address it was sent to.
    pub dst: Ipv4Addr,
    /// Interface it came in on.
    pub nic: NicId,
    /// The client's header: the front of the UDP payload.
    pub header: &'l [u8],
    /// Length of the UDP payload.
    pub len: usize,
    /// What lies in the region.
    pub landed: Landed,
}

/// What the end of a deadline means for others: a datagram whose first fragment had come was given up.
#[derive(Clone, Copy, Debug)]
pub struct Expired {
    /// Interface.
    pub nic: NicId,
    /// Its sender.
    pub src: Ipv4Addr,
    /// Its destination.
    pub dst: Ipv4Addr,
    /// The IPv4 header and the first 8 bytes of payload, to quote.
    pub quote: Option<[u8; ipv4::HEADER_LEN + 8]>,
}

/// The datagrams being put together.
#[derive(Debug)]
pub struct Landing<'a, M> {
    slots: &'a mut [Slot<M>],
    staging: &'a mut [Staging<'a>],
    staging_timeout: Duration,
    active: usize,
    moves: u32,
    next: Instant,
    /// The slot of the last fragment that was taken the long way.
    pub last: usize,
    /// How often slots have changed their datagrams; wraps.
    changes: u32,
}

impl<'a, M: Memory> Landing<'a, M> {
    /// As many datagrams at once as there are slots, as many staged ones as there are buffers.
    pub fn new(slots: &'a mut [Slot<M>], staging: &'a mut [Staging<'a>], staging_timeout: Duration) -> Self {
        Landing { slots, staging, staging_timeout, active: 0, moves: 0, next: Instant::NEVER, last: 0, changes: 0 }
    }

    /// How many datagrams can land in a region at once.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// The longest payload that can be staged, transport header included, in bytes; 0 without staging.
    pub fn staging_room(&self) -> usize {
        let longest = self.staging.iter().map(|s| s.bytes.len().saturating_sub(HEADROOM)).max();
        if self.slots.is_empty() { 0 } else { longest.unwrap_or(0) }
    }

    /// The earliest time at which [`Self::expire`] has something to do.
    pub fn deadline(&self) -> Instant {
        self.next
    }

    /// Whether no datagram is being put together.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.active == 0
    }

    /// A number that is another whenever a slot has got another datagram, or none. Wraps.
    #[inline]
    pub fn version(&self) -> u32 {
        self.changes
    }

    /// Takes a fragment.
    pub fn fragment(&mut self, now: Instant, packet: &Packet<'_>, expect: &impl Expect<Memory = M>) -> Verdict {
        let ip = &packet.ip;
        let key = Key {
            nic: packet.nic,
            src: packet.src,
            dst: packet.dst,
            protocol: packet.protocol,
            id: ip.identification(),
        };
        let start = usize::from(ip.fragment_offset());
        let index = match self.slots.iter().position(|s| s.key == key && !matches!(s.state, State::Free)) {
            Some(index) => index,
            None => match self.open(now, key, packet, start, expect) {
                Ok(index) => index,
                Err(counter) => return Verdict::Dropped(counter),
            },
        };
        self.last = index;
        if let Err(counter) = self.add(index, start, packet.payload.len(), ip.more_fragments()) {
            return Verdict::Dropped(counter);
        }
        let Some(slot) = self.slots.get_mut(index) else { return Verdict::Dropped(Counter::DropFragmentRoom) };
        if start == 0 {
            slot.ttl = ip.ttl();
            if let Err(counter) = self.name(index, packet, expect) {
                self.give_up(index);
                return Verdict::Dropped(counter);
            }
        }
        self.keep(index, start, packet.payload)
    }

    /// Takes a fragment that is not the first of the datagram in its slot.
    #[inline]
    pub fn more(&mut self, piece: &trail::Piece<'_>) -> Verdict {
        match self.slots.get_mut(piece.index).map(|slot| slot.more(piece)) {
            Some(Some(Ok(false))) => Verdict::Kept,
            Some(Some(Ok(true))) => self.verdict(piece.index),
            Some(Some(Err(counter))) => {
                self.give_up(piece.index);
                Verdict::Dropped(counter)
            }
            _ => self.more_unusual(piece),
        }
    }

    /// The same, the long way.
    #[inline(never)]
    fn more_unusual(&mut self, piece: &trail::Piece<'_>) -> Verdict {
        match self.add(piece.index, piece.start, piece.payload.len(), piece.more) {
            Ok(()) => self.keep(piece.index, piece.start, piece.payload),
            Err(counter) => Verdict::Dropped(counter),
        }
    }

    /// Notes that a piece has come. An error: it is to be dropped.
    fn add(&mut self, index: usize, start: usize, len: usize, more: bool) -> Result<(), Counter> {
        let slot = self.slots.get_mut(index).ok_or(Counter::DropFragmentRoom)?;
        if matches!(slot.state, State::Over | State::Pinned { .. }) {
            return Err(Counter::DropLandingClaim);
        }
        let counter = match slot.coverage.add(start as u32, len as u32, more) {
            Piece::New => return Ok(()),
            Piece::Duplicate => return Err(Counter::DropFragmentDuplicate),
            Piece::Overlap => Counter::DropFragmentOverlap,
            Piece::Malformed => Counter::DropFragmentMalformed,
            Piece::Full => Counter::DropFragmentRoom,
        };
        self.give_up(index);
        Err(counter)
    }

    /// Stores a piece, and sees whether the datagram is whole now.
    fn keep(&mut self, index: usize, start: usize, bytes: &[u8]) -> Verdict {
        match self.store(index, start, bytes) {
            Ok(()) => self.verdict(index),
            Err(counter) => {
                self.give_up(index);
                Verdict::Dropped(counter)
            }
        }
    }

    /// Finds a slot for a datagram of which nothing has come yet, and says where its pieces go.
    fn open(
        &mut self,
        now: Instant,
        key: Key,
        packet: &Packet<'_>,
        start: usize,
        expect: &impl Expect<Memory = M>,
    ) -> Result<usize, Counter> {
        let udp = key.protocol == Protocol::UDP;
        let (state, patience) = if udp && start == 0 {
            match place_of(packet, expect) {
                (Place::Region(spot), claimant) => {
                    (State::Region { claimant, spot, named: true }, expect.patience(claimant))
                }
                (Place::Stage, _) => (self.stage()?, self.staging_timeout),
                (Place::NotMine, _) => return Err(Counter::DropLandingClaim),
            }
        } else {
            match if udp { self.guess(key.src, expect) } else { Guess::Unexpected } {
                Guess::Range(spot, claimant, patience) => (State::Region { claimant, spot, named: false }, patience),
                // Everything expected is claimed: a piece of a second copy, whose other pieces are of no use then.
                Guess::AllClaimed(patience) => (State::Over, patience),
                Guess::Unexpected => (self.stage()?, self.staging_timeout),
            }
        };
        let staged = matches!(state, State::Staged { .. });
        let Some(index) = self.vacate(staged) else {
            self.unstage(&state);
            return Err(Counter::DropFragmentRoom);
        };
        let deadline = now + patience;
        if let Some(slot) = self.slots.get_mut(index) {
            slot.begin(state, key, deadline);
            self.changes = self.changes.wrapping_add(1);
            self.active = self.active.saturating_add(1);
            self.next = self.next.min(deadline);
        }
        Ok(index)
    }

    /// Takes a staging buffer, if need be from the oldest datagram that is not whole.
    fn stage(&mut self) -> Result<State<M>, Counter> {
        if self.staging.is_empty() {
            return Err(Counter::DropFragmentRoom);
        }
        if self.staging.iter().all(|s| s.busy) {
            let staged = |s: &Slot<M>| matches!(s.state, State::Staged { .. });
            let oldest = self.slots.iter().enumerate().filter(|(_, s)| staged(s)).min_by_key(|(_, s)| s.deadline);
            let oldest = oldest.map(|(index, _)| index).ok_or(Counter::DropFragmentRoom)?;
            self.free(oldest);
        }
        let buffer = self.staging.iter().position(|s| !s.busy).ok_or(Counter::DropFragmentRoom)?;
        if let Some(s) = self.staging.get_mut(buffer) {
            s.busy = true;
        }
        Ok(State::Staged { buffer })
    }

    fn unstage(&mut self, state: &State<M>) {
        if let State::Staged { buffer } | State::Pinned { buffer } = state
            && let Some(s) = self.staging.get_mut(*buffer)
        {
            s.busy = false;
        }
    }

    /// A free slot, if need be by giving up the one worth least: what is over, then staged pieces, then guesses, then
    /// what a header has named; among equals the oldest.
    fn vacate(&mut self, for_staging: bool) -> Option<usize> {
        let rank = |s: &Slot<M>| match s.state {
            State::Free => 0,
            State::Over => 1,
            State::Staged { .. } => 2,
            State::Region { named: false, .. } => 3,
            State::Region { .. } => 4,
            State::Pinned { .. } => 5,
        };
        let (index, slot) = self.slots.iter().enumerate().min_by_key(|(_, s)| (rank(s), s.deadline))?;
        // What nobody expects never displaces what somebody does.
        if rank(slot) >= if for_staging { 3 } else { 5 } {
            return None;
        }
        self.free(index);
        Some(index)
    }

    fn free(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if matches!(slot.state, State::Free) {
            return;
        }
        let old = core::mem::replace(&mut slot.state, State::Free);
        self.changes = self.changes.wrapping_add(1);
        self.active = self.active.saturating_sub(1);
        self.unstage(&old);
    }

    /// Gives a datagram up, but remembers it, so that its later pieces claim nothing.
    fn give_up(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let old = core::mem::replace(&mut slot.state, State::Over);
        self.unstage(&old);
    }

    /// The lowest expected range that no datagram has claimed (rule c).
    fn guess(&self, src: Ipv4Addr, expect: &impl Expect<Memory = M>) -> Guess<M> {
        let mut patience = None;
        // With every slot's claim passed over, the next range is free.
        for nth in 0..=self.slots.len() {
            let Some((spot, claimant, wait)) = expect.guess(src, nth) else { break };
            patience = Some(wait);
            if !self.is_claimed(claimant, spot.at) {
                return Guess::Range(spot, claimant, wait);
            }
        }
        patience.map_or(Guess::Unexpected, Guess::AllClaimed)
    }

    /// Whether pieces of a datagram have come for the range of `owner` at `at`.
    pub fn is_claimed(&self, owner: u8, at: usize) -> bool {
        self.slots
            .iter()
            .any(|s| matches!(&s.state, State::Region { claimant, spot, .. } if *claimant == owner && spot.at == at))
    }

    /// The first fragment has come: its header says where the datagram belongs (rules b and c).
    fn name(&mut self, index: usize, packet: &Packet<'_>, expect: &impl Expect<Memory = M>) -> Result<(), Counter> {
        if let Some(State::Region { named: false, .. }) = self.slots.get(index).map(|s| &s.state) {
            self.correct(index, packet, expect)?;
        }
        let Some(slot) = self.slots.get_mut(index) else { return Err(Counter::DropFragmentRoom) };
        let (region, header, claim) = match &slot.state {
            State::Region { claimant, spot, .. } => (true, spot.header, (spot.len > 0).then_some((*claimant, spot.at))),
            _ => (false, 0, None),
        };
        let kept = packet.payload.get(..udp::HEADER_LEN.saturating_add(header)).filter(|_| header <= KEPT_HEADER);
        if region && kept.is_none() {
            // RFC 1858: a first fragment too small to hold the headers is an attack.
            return Err(Counter::DropFragmentMalformed);
        }
        slot.head.clear();
        // No longer than the capacity: it fits.
        let _ = slot.head.extend_from_slice(kept.unwrap_or(&[]));
        if let Some((claimant, at)) = claim {
            self.take_over(claimant, at, Some(index));
        }
        Ok(())
    }

    /// Where the pieces of the datagram in a slot go was a guess so far: moves them to where its first fragment says.
    #[inline(never)]
    fn correct(&mut self, index: usize, packet: &Packet<'_>, expect: &impl Expect<Memory = M>) -> Result<(), Counter> {
        let Some(slot) = self.slots.get_mut(index) else { return Err(Counter::DropFragmentRoom) };
        let State::Region { claimant: guessed_by, spot: guessed, .. } = &slot.state else { return Ok(()) };
        let (Place::Region(spot), claimant) = place_of(packet, expect) else {
            return Err(Counter::DropLandingClaim);
        };
        let same = *guessed_by == claimant && guessed.at == spot.at && guessed.header == spot.header;
        if !same && spot.len > 0 {
            if slot.trimmed {
                return Err(Counter::DropLandingClaim);
            }
            let (guessed, moved) = (guessed.clone(), spot.clone());
            if !self.exchange(index, claimant, &guessed, &moved) {
                let slot = self.slots.get(index).ok_or(Counter::DropFragmentRoom)?;
                move_pieces(&slot.coverage, &guessed, &moved)?;
            }
            self.moves = self.moves.saturating_add(1);
        }
        let slot = self.slots.get_mut(index).ok_or(Counter::DropFragmentRoom)?;
        slot.state = State::Region { claimant, spot, named: true };
        Ok(())
    }

    /// Where another datagram holds the range `to` by guess alone, the two change places, bytes and all: neither is
    /// lost. `false`: there is none, or the ranges are not alike.
    fn exchange(&mut self, index: usize, owner: u8, from: &Spot<M>, to: &Spot<M>) -> bool {
        let holds = |s: &Slot<M>| {
            matches!(&s.state, State::Region { claimant, spot, named: false }
                if *claimant == owner && spot.at == to.at && spot.len == to.len && spot.header == to.header)
        };
        if from.len != to.len || from.header != to.header {
            return false;
        }
        let other = self.slots.iter_mut().enumerate().find(|(i, s)| *i != index && holds(s)).map(|(_, s)| s);
        let Some(other) = other else { return false };
        if swap_ranges(&to.memory, from.at, to.at, to.len).is_none() {
            return false;
        }
        other.state = State::Region { claimant: owner, spot: from.clone(), named: false };
        true
    }

    /// How many datagrams had to move since the last call, because a header disagreed with a guess.
    pub fn take_moves(&mut self) -> u32 {
        core::mem::take(&mut self.moves)
    }

    /// A datagram's header names the range at `at`: whoever else has claimed it loses it (rule b). To be called for
    /// unfragmented datagrams too.
    #[inline]
    pub fn take_over(&mut self, owner: u8, at: usize, by: Option<usize>) {
        if self.active == 0 {
            return;
        }
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if Some(index) != by
                && matches!(&slot.state, State::Region { claimant, spot, .. } if *claimant == owner && spot.at == at)
            {
                slot.state = State::Over;
            }
        }
    }

    /// Ends all claims of an operation that has ended (rule e).
    pub fn end_claims(&mut self, owner: u8) {
        for slot in self.slots.iter_mut() {
            if matches!(&slot.state, State::Region { claimant, .. } if *claimant == owner) {
                slot.state = State::Over;
            }
        }
    }

    /// Stores one piece and adds its sum.
    fn store(&mut self, index: usize, start: usize, bytes: &[u8]) -> Result<(), Counter> {
        let Some(slot) = self.slots.get_mut(index) else { return Err(Counter::DropFragmentRoom) };
        match &slot.state {
            State::Region { spot, .. } => {
                let first_data = udp::HEADER_LEN.saturating_add(spot.header);
                // Only the first fragment holds headers; smaller ones were refused in `name`.
                let skip = if start == 0 { first_data } else { 0 };
                let Some(from) = start.saturating_add(skip).checked_sub(first_data) else {
                    return Err(Counter::DropFragmentMalformed);
                };
                let (header, data) = bytes.split_at_checked(skip).ok_or(Counter::DropFragmentMalformed)?;
                let room = spot.len.saturating_sub(from).min(data.len());
                let (kept, beyond) = data.split_at(room);
                let mut sum = Sum::of(header);
                if !kept.is_empty() {
                    let at = spot.at.checked_add(from).ok_or(Counter::DropFragmentMalformed)?;
                    let piece = spot.memory.copy_sum(at, kept).map_err(|_| Counter::DropFragmentMalformed)?;
                    sum += piece.at(skip);
                    spot.memory.prefetch(at.wrapping_add(spot.len), kept.len());
                }
                if !beyond.is_empty() {
                    sum += Sum::of(beyond).at(skip.wrapping_add(kept.len()));
                    slot.trimmed = true;
                }
                slot.sum += sum;
            }
            State::Staged { buffer } => {
                let staging = self.staging.get_mut(*buffer).ok_or(Counter::DropFragmentRoom)?;
                let place = staging.bytes.get_mut(HEADROOM.saturating_add(start)..).unwrap_or(&mut []);
                let place = place.get_mut(..bytes.len()).ok_or(Counter::DropFragmentRoom)?;
                slot.sum += Sum::copy(place, bytes).ok_or(Counter::DropFragmentRoom)?;
            }
            State::Free | State::Over | State::Pinned { .. } => return Err(Counter::DropLandingClaim),
        }
        Ok(())
    }

    /// Whether a datagram is whole and right.
    fn verdict(&mut self, index: usize) -> Verdict {
        let Some(slot) = self.slots.get_mut(index) else { return Verdict::Kept };
        if !slot.coverage.is_complete() {
            return Verdict::Kept;
        }
        if !matches!(slot.state, State::Region { .. }) {
            return Verdict::Staged(index);
        }
        let total = slot.coverage.total().unwrap_or(0) as usize;
        let Ok(datagram) = udp::Datagram::parse_partial(&slot.head) else {
            self.give_up(index);
            return Verdict::Dropped(Counter::DropUdpMalformed);
        };
        let pseudo = super::egress::pseudo_header(slot.key.src, slot.key.dst, Protocol::UDP, total);
        if usize::from(datagram.len()) != total {
            self.give_up(index);
            return Verdict::Dropped(Counter::DropUdpMalformed);
        }
        if datagram.has_checksum() && !(pseudo + slot.sum).holds() {
            self.give_up(index);
            return Verdict::Dropped(Counter::DropUdpChecksum);
        }
        Verdict::Landed(index)
    }

    /// The datagram of [`Verdict::Landed`].
    pub fn landed(&self, index: usize) -> Option<Whole<'_>> {
        let slot = self.slots.get(index)?;
        let State::Region { claimant, spot, .. } = &slot.state else { return None };
        let datagram = udp::Datagram::parse_partial(&slot.head).ok()?;
        let total = slot.coverage.total()? as usize;
        let len = total.checked_sub(udp::HEADER_LEN)?;
        let header = slot.head.get(udp::HEADER_LEN..)?;
        let stored = len.saturating_sub(spot.header).min(spot.len);
        Some(Whole {
            claimant: *claimant,
            flow: Flow { src: slot.key.src, src_port: datagram.source_port(), dst_port: datagram.destination_port() },
            dst: slot.key.dst,
            nic: slot.key.nic,
            header: header.get(..spot.header).unwrap_or(header),
            len,
            landed: Landed { at: spot.at, len: stored },
        })
    }

    /// The datagram of [`Verdict::Landed`] has been dealt with: its claim ends, its late pieces are known for a while.
    pub fn confirmed(&mut self, index: usize) {
        self.give_up(index);
    }

    /// The interface a datagram came in on.
    pub fn nic_of(&self, index: usize) -> Option<NicId> {
        self.slots.get(index).map(|s| s.key.nic)
    }

    /// Takes the buffer of [`Verdict::Staged`] out, with rebuilt Ethernet and IPv4 headers in front (total length right,
    /// offset and MF zero). To be given back with [`Self::return_staged`].
    pub fn take_staged(&mut self, index: usize, own_mac: Address) -> Option<StagedDatagram<'a>> {
        let slot = self.slots.get_mut(index)?;
        let State::Staged { buffer } = slot.state else { return None };
        let total = slot.coverage.total()? as usize;
        let bytes = core::mem::take(&mut self.staging.get_mut(buffer)?.bytes);
        slot.state = State::Pinned { buffer };
        let link = ethernet::Repr { destination: own_mac, source: Address::ZERO, ether_type: EtherType::IPV4 };
        let ip = quote_header(&slot.key, slot.ttl, total);
        let (head, _) = bytes.split_first_chunk_mut::<HEADROOM>()?;
        for (to, from) in head.iter_mut().zip(link.emit().iter().chain(&ip)) {
            *to = *from;
        }
        let key = slot.key;
        let payload = bytes.get(HEADROOM..)?.get(..total)?;
        let sum_ok = match key.protocol {
            Protocol::UDP | Protocol::TCP => {
                (super::egress::pseudo_header(key.src, key.dst, key.protocol, payload.len()) + slot.sum).holds()
            }
            _ => slot.sum.holds(),
        };
        Some(StagedDatagram { index, nic: key.nic, bytes, len: HEADROOM.saturating_add(total), sum_ok })
    }

    /// Gives a staged datagram's buffer back. `pinned`: its receiver still looks at it; to be ended by
    /// [`Self::release`].
    pub fn return_staged(&mut self, staged: StagedDatagram<'a>, pinned: bool) {
        let Some(slot) = self.slots.get_mut(staged.index) else { return };
        let State::Pinned { buffer } = slot.state else { return };
        if let Some(place) = self.staging.get_mut(buffer) {
            place.bytes = staged.bytes;
        }
        if !pinned {
            self.release(staged.index);
        }
    }

    /// The bytes of a pinned datagram, headers included.
    pub fn pinned(&self, index: usize) -> Option<&[u8]> {
        let slot = self.slots.get(index)?;
        let State::Pinned { buffer } = slot.state else { return None };
        let total = slot.coverage.total()? as usize;
        self.staging.get(buffer)?.bytes.get(..HEADROOM.saturating_add(total))
    }

    /// Ends the pin of a staged datagram.
    pub fn release(&mut self, index: usize) {
        if self.slots.get(index).is_some_and(|s| matches!(s.state, State::Pinned { .. })) {
            self.give_up(index);
        }
    }

    /// One datagram whose time is over, if any; call until `None`.
    pub fn expire(&mut self, now: Instant) -> Option<Option<Expired>> {
        if now < self.next {
            return None;
        }
        let due = |s: &Slot<M>| !matches!(s.state, State::Free | State::Pinned { .. }) && s.deadline <= now;
        let Some(index) = self.slots.iter().position(due) else {
            let waiting = self.slots.iter().filter(|s| !matches!(s.state, State::Free | State::Pinned { .. }));
            self.next = waiting.map(|s| s.deadline).min().unwrap_or(Instant::NEVER);
            return None;
        };
        let slot = self.slots.get(index)?;
        let report = match slot.state {
            State::Over => None,
            _ => Some(Expired {
                nic: slot.key.nic,
                src: slot.key.src,
                dst: slot.key.dst,
                quote: slot.head.first_chunk::<8>().map(|first| {
                    let mut quote = [0; ipv4::HEADER_LEN + 8];
                    let header = quote_header(&slot.key, slot.ttl, slot.coverage.end() as usize);
                    for (to, from) in quote.iter_mut().zip(header.iter().chain(first)) {
                        *to = *from;
                    }
                    quote
                }),
            }),
        };
        self.free(index);
        Some(report)
    }

    /// Forgets everything that came in on an interface.
    pub fn forget(&mut self, nic: NicId) {
        for index in 0..self.slots.len() {
            let theirs = self.slots.get(index).is_some_and(|s| s.key.nic == nic);
            if theirs && !self.slots.get(index).is_some_and(|s| matches!(s.state, State::Pinned { .. })) {
                self.free(index);
            }
        }
    }
}

enum Guess<M> {
    Range(Spot<M>, u8, Duration),
    AllClaimed(Duration),
    Unexpected,
}

/// Asks where the datagram belongs whose first fragment `packet` is.
fn place_of<E: Expect>(packet: &Packet<'_>, expect: &E) -> (Place<E::Memory>, u8) {
    let Ok(datagram) = udp::Datagram::parse_partial(packet.payload) else { return (Place::NotMine, 0) };
    let flow = Flow { src: packet.src, src_port: datagram.source_port(), dst_port: datagram.destination_port() };
    let payload = packet.payload.get(udp::HEADER_LEN..).unwrap_or(&[]);
    let head = payload.get(..HEAD).unwrap_or(payload);
    let len = usize::from(datagram.len()).saturating_sub(udp::HEADER_LEN);
    expect.place(&flow, head, len)
}
