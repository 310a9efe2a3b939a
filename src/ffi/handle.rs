//! Handles: what C holds instead of pointers. A handle is a positive number of four parts that tells its kind, the
//! place in the table and the place's generation, so that a stale one, or one of another kind, is found out.

use super::results::LACE_EBADF;
use crate::storage::slots::Key;
use core::cell::Cell;

/// Kinds of handles; the number goes into the handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A NIC.
    Nic = 1,
    /// An operation.
    Op = 2,
    /// A UDP socket.
    Udp = 3,
    /// A raw hook.
    Hook = 4,
    /// A TCP connection.
    Tcp = 5,
    /// A TCP listener.
    Listener = 6,
}

const INDEX_BITS: u32 = 11;
const GENERATION_BITS: u32 = 16;
/// Most places a table can have.
pub const MAX_PLACES: usize = 1 << INDEX_BITS;

/// Makes a handle. 31 bits are used: it is never negative, and never 0.
pub fn pack(kind: Kind, key: Key) -> i32 {
    let index = u32::from(key.index) & ((1 << INDEX_BITS) - 1);
    ((kind as u32) << (INDEX_BITS + GENERATION_BITS) | u32::from(key.generation) << INDEX_BITS | index) as i32
}

/// Takes a handle apart; `None` for one of another kind.
pub fn unpack(kind: Kind, handle: i32) -> Option<Key> {
    let bits = u32::try_from(handle).ok()?;
    if bits >> (INDEX_BITS + GENERATION_BITS) != kind as u32 {
        return None;
    }
    Some(Key { index: (bits & ((1 << INDEX_BITS) - 1)) as u16, generation: (bits >> INDEX_BITS) as u16 })
}

/// What a callback has asked for while the stack could not do it.
pub mod request {
    /// Close it.
    pub const CLOSE: u8 = 1;
    /// Cancel it.
    pub const CANCEL: u8 = 2;
    /// Forget the frames the NIC was given.
    pub const RESET: u8 = 4;
    /// Remove the NIC.
    pub const REMOVE: u8 = 8;
    /// End the connection at once.
    pub const ABORT: u8 = 16;
}

/// One place of a table, outside of what is borrowed while the stack works: leaf callbacks look at it and leave their
/// requests here.
#[derive(Debug)]
pub struct Entry {
    /// The handle that names what is there; 0: nothing that C may name.
    live: Cell<i32>,
    /// Generation of the last one, for tables whose values have none of their own.
    generation: Cell<u16>,
    requests: Cell<u8>,
}

impl Entry {
    /// A free place.
    pub const fn new() -> Self {
        Entry { live: Cell::new(0), generation: Cell::new(0), requests: Cell::new(0) }
    }

    /// The handle, if something is there.
    pub fn handle(&self) -> i32 {
        self.live.get()
    }

    /// Takes the requests.
    pub fn take_requests(&self) -> u8 {
        self.requests.replace(0)
    }

    /// Whether there are any.
    pub fn has_requests(&self) -> bool {
        self.requests.get() != 0
    }

    /// Adds a request.
    pub fn request(&self, what: u8) {
        self.requests.set(self.requests.get() | what);
    }

    /// Nothing is there any more.
    pub fn clear(&self) {
        self.live.set(0);
        self.requests.set(0);
    }
}

/// The places of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The kind.
    pub kind: Kind,
    /// The places.
    pub entries: &'static [Entry],
}

impl Table {
    /// Notes that C may name what has this key; returns the handle.
    #[inline(never)]
    pub fn open(&self, key: Key) -> i32 {
        let handle = pack(self.kind, key);
        if let Some(entry) = self.entries.get(usize::from(key.index)) {
            entry.live.set(handle);
            entry.generation.set(key.generation);
            entry.requests.set(0);
        }
        handle
    }

    /// The same for a table without generations of its own.
    pub fn open_next(&self, index: usize) -> i32 {
        let Some(entry) = self.entries.get(index) else { return LACE_EBADF };
        let generation = entry.generation.get().wrapping_add(1).max(1);
        entry.generation.set(generation);
        self.open(Key { index: index as u16, generation })
    }

    /// The place a handle names.
    #[inline(never)]
    pub fn find(&self, handle: i32) -> Result<(Key, &'static Entry), i32> {
        let key = unpack(self.kind, handle).ok_or(LACE_EBADF)?;
        let entry = self.entries.get(usize::from(key.index)).ok_or(LACE_EBADF)?;
        if entry.live.get() == handle { Ok((key, entry)) } else { Err(LACE_EBADF) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_tell_kind_place_and_generation() {
        for index in [0u16, 1, 2047] {
            for generation in [1u16, 2, 0x8000, 0xffff] {
                let key = Key { index, generation };
                for kind in [Kind::Nic, Kind::Op, Kind::Udp, Kind::Hook] {
                    let handle = pack(kind, key);
                    assert!(handle > 0);
                    assert_eq!(unpack(kind, handle), Some(key));
                    for other in [Kind::Nic, Kind::Op, Kind::Udp, Kind::Hook] {
                        assert_eq!(unpack(other, handle).is_some(), other == kind);
                    }
                }
            }
        }
        for nonsense in [0, -1, i32::MIN, i32::MAX, 1] {
            assert_eq!(unpack(Kind::Op, nonsense), None);
        }
    }

    #[test]
    fn a_place_given_again_has_another_handle() {
        let entries: &'static [Entry] = std::boxed::Box::leak(std::boxed::Box::new([Entry::new(), Entry::new()]));
        let table = Table { kind: Kind::Hook, entries };
        let first = table.open_next(1);
        assert_eq!(table.find(first).unwrap().0.index, 1);
        entries[1].clear();
        assert_eq!(table.find(first).unwrap_err(), LACE_EBADF);
        let second = table.open_next(1);
        assert_ne!(first, second);
        assert!(table.find(first).is_err() && table.find(second).is_ok());
        for _ in 0..65_535u32 {
            entries[1].clear();
            assert!(table.open_next(1) > 0);
        }
    }
}
