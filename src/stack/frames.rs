//! Frame memory of the stack's own: slots in which frames are built for NICs that lend no buffer, kept until an
//! asynchronous NIC is done with them, and the queue of frames that wait for a neighbour (RFC 1122 §2.3.2.2) or for room
//! in the NIC.

use super::interface::NicId;
use crate::storage::host::Token;
use core::net::Ipv4Addr;

/// One frame being sent.
#[derive(Debug)]
pub struct TxSlot<'a> {
    bytes: &'a mut [u8],
    busy: bool,
    nic: NicId,
    owner: Token,
    /// Changes at each use, so that a late token frees nothing.
    generation: u16,
}

impl<'a> TxSlot<'a> {
    /// A free slot over `bytes`, as long as the longest frame.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        TxSlot { bytes, busy: false, nic: NicId(0), owner: Token(0), generation: 0 }
    }
}

/// The slots for frames being sent. At least one where any NIC lends no buffer; more let an asynchronous NIC work ahead.
#[derive(Debug)]
pub struct TxFrames<'a> {
    slots: &'a mut [TxSlot<'a>],
}

impl<'a> TxFrames<'a> {
    /// Manages `slots`, at most 65,535.
    pub fn new(slots: &'a mut [TxSlot<'a>]) -> Self {
        TxFrames { slots }
    }

    /// Takes a free slot for a frame through `nic`; `owner` is given back by [`Self::done`]. The token is never 0.
    pub fn claim(&mut self, nic: NicId, owner: Token) -> Option<(&mut [u8], Token)> {
        let (index, slot) = self.slots.iter_mut().enumerate().find(|(_, s)| !s.busy)?;
        slot.busy = true;
        slot.nic = nic;
        slot.owner = owner;
        slot.generation = slot.generation.wrapping_add(1);
        let number = u32::try_from(index).ok()?.wrapping_add(1);
        Some((slot.bytes, Token((u32::from(slot.generation) << 16) | number)))
    }

    /// Frees the slot of `token`; returns what its sender waits for, or `None` for a token that is not out with `nic`.
    pub fn done(&mut self, nic: NicId, token: Token) -> Option<Token> {
        let index = (token.0 & 0xffff).checked_sub(1)?;
        let slot = self.slots.get_mut(usize::try_from(index).ok()?)?;
        if !slot.busy || slot.nic != nic || u32::from(slot.generation) != token.0 >> 16 {
            return None;
        }
        slot.busy = false;
        Some(slot.owner)
    }

    /// Frees every slot of `nic`, telling `each` its owner: the NIC was reset.
    pub fn reset(&mut self, nic: NicId, mut each: impl FnMut(Token)) {
        for slot in self.slots.iter_mut().filter(|s| s.busy && s.nic == nic) {
            slot.busy = false;
            each(slot.owner);
        }
    }

    /// How many frames are with a NIC.
    pub fn outstanding(&self) -> usize {
        self.slots.iter().filter(|s| s.busy).count()
    }

    /// How many slots there are.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }
}

/// One frame that waits for a neighbour's hardware address, or, once that is in it, for room in the NIC.
#[derive(Debug)]
pub struct WaitSlot<'a> {
    bytes: &'a mut [u8],
    len: usize,
    nic: NicId,
    next: Ipv4Addr,
    age: u32,
    /// Its destination is filled in.
    ready: bool,
}

impl<'a> WaitSlot<'a> {
    /// A free slot over `bytes`.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        WaitSlot { bytes, len: 0, nic: NicId(0), next: Ipv4Addr::UNSPECIFIED, age: 0, ready: false }
    }
}

/// What became of a frame given to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The frame is in the queue.
    pub stored: bool,
    /// Another frame was dropped for it.
    pub displaced: bool,
}

/// The queue: at most one frame for each neighbour, the newest (RFC 1122 §2.3.2.2).
#[derive(Debug)]
pub struct WaitQueue<'a> {
    slots: &'a mut [WaitSlot<'a>],
    clock: u32,
}

impl<'a> WaitQueue<'a> {
    /// Manages `slots`.
    pub fn new(slots: &'a mut [WaitSlot<'a>]) -> Self {
        WaitQueue { slots, clock: 0 }
    }

    /// Whether there is any slot at all.
    pub fn has_slots(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Whether one more frame can be kept without another being dropped, and none waits for `next` already.
    pub fn has_room(&self, nic: NicId, next: Ipv4Addr) -> bool {
        let waits = |s: &WaitSlot<'_>| s.len != 0 && s.nic == nic && s.next == next;
        self.slots.iter().any(|s| s.len == 0) && !self.slots.iter().any(waits)
    }

    /// The frame that waits for `next` goes to `mac`, as soon as the NIC has room: see [`Self::flush`].
    pub fn resolve(&mut self, nic: NicId, next: Ipv4Addr, mac: [u8; 6]) {
        for slot in self.slots.iter_mut().filter(|s| s.len != 0 && s.nic == nic && s.next == next) {
            if let Some(destination) = slot.bytes.first_chunk_mut::<6>()
                && !slot.ready
            {
                *destination = mac;
                slot.ready = true;
            }
        }
    }

    /// Offers every frame whose destination is known to `send`, which says whether it is done with it.
    pub fn flush(&mut self, mut send: impl FnMut(NicId, &[u8]) -> bool) {
        for slot in self.slots.iter_mut().filter(|s| s.len != 0 && s.ready) {
            let frame = slot.bytes.get(..slot.len).unwrap_or(&[]);
            if send(slot.nic, frame) {
                slot.len = 0;
            }
        }
    }

    /// Keeps a frame of `len` bytes, written by `fill`, for `next`; replaces an older one for the same neighbour, else
    /// the oldest of all. `ready`: its destination is filled in.
    pub fn store(
        &mut self,
        nic: NicId,
        next: Ipv4Addr,
        len: usize,
        ready: bool,
        fill: impl FnOnce(&mut [u8]) -> Option<()>,
    ) -> Stored {
        let none = Stored { stored: false, displaced: false };
        self.clock = self.clock.wrapping_add(1);
        let clock = self.clock;
        let rank = |s: &WaitSlot<'_>| match (s.len, s.nic == nic && s.next == next) {
            (0, _) => 1,
            (_, true) => 0,
            _ => u32::MAX.wrapping_sub(clock.wrapping_sub(s.age)).max(2),
        };
        let Some(slot) = self.slots.iter_mut().min_by_key(|s| rank(s)) else { return none };
        let displaced = slot.len != 0;
        let Some(out) = slot.bytes.get_mut(..len) else { return none };
        out.fill(0);
        if fill(out).is_none() {
            slot.len = 0;
            return Stored { stored: false, displaced };
        }
        slot.len = len;
        slot.nic = nic;
        slot.next = next;
        slot.age = clock;
        slot.ready = ready;
        Stored { stored: true, displaced }
    }

    /// Drops the frame that waits for `next`'s address; whether there was one.
    pub fn give_up(&mut self, nic: NicId, next: Ipv4Addr) -> bool {
        let waits = |s: &&mut WaitSlot<'_>| s.len != 0 && !s.ready && s.nic == nic && s.next == next;
        match self.slots.iter_mut().find(waits) {
            Some(slot) => {
                slot.len = 0;
                true
            }
            None => false,
        }
    }

    /// Drops everything that waits to leave through `nic`; how many frames that were.
    pub fn forget(&mut self, nic: NicId) -> usize {
        let mut gone: usize = 0;
        for slot in self.slots.iter_mut().filter(|s| s.len != 0 && s.nic == nic) {
            slot.len = 0;
            gone = gone.saturating_add(1);
        }
        gone
    }
}
