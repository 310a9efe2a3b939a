//! Landing: received payload goes straight to its last place, summed on the way. A client says where a datagram would
//! belong; this room stores it there and tells whether its checksum holds. It knows no protocol.
//!
//! Rules kept here: only unconfirmed bytes are stored, what overlaps confirmed bytes is summed and never written (a);
//! bytes beyond the range are summed and never stored (d); nothing is written once the claim has ended (e), because
//! every write asks for the place anew.

use crate::storage::checksum::Sum;
use crate::storage::host::Memory;
use core::net::Ipv4Addr;

/// Most bytes of a datagram's front a client is shown to say where the datagram belongs.
pub const HEAD: usize = 256;

/// A place in a region for the payload of one datagram.
#[derive(Clone, Debug)]
pub struct Spot<M> {
    /// The region.
    pub memory: M,
    /// Offset in the region of the first payload byte.
    pub at: usize,
    /// Bytes the range holds; what the datagram has beyond is summed, not stored.
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

/// Who sent a datagram to whom, as far as a fragment tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Source address.
    pub src: Ipv4Addr,
    /// Source port, in host order.
    pub src_port: u16,
    /// Port of ours, in host order.
    pub dst_port: u16,
}

/// A client that expects datagrams.
pub trait Expect {
    /// The caller's memory.
    type Memory: Memory;
    /// Says where a datagram belongs whose transport payload begins with `head` and is `len` bytes long. Changes
    /// nothing: the datagram may yet turn out corrupt.
    fn place(&self, flow: &Flow, head: &[u8], len: usize) -> Place<Self::Memory>;
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
