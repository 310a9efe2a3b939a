//! Records as they come over TCP (RFC 5531 §11): any number of fragments, cut into segments anywhere. The front of a
//! record is gathered here; what its user wants elsewhere, the data of a READ, is led there piece by piece without being
//! gathered.

use super::Net;
use crate::storage::host::Host;
use crate::storage::slots::Key;
use crate::wire::rpc::RecordMark;

/// Longest record that is gathered whole, in bytes.
pub const ROOM: usize = 4096;
/// Longest fragment that is believed, in bytes.
const MAX_FRAGMENT: u32 = 1 << 24;
/// Marks and pieces looked at in one call.
const TURNS: u32 = 64;

/// What has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulled {
    /// Not as much as was wanted.
    Little,
    /// Not as much as was wanted yet, in so many pieces that others should have their turn.
    Later,
    /// As much as was wanted of a record that goes on.
    Front,
    /// A record, to its end.
    Whole,
    /// What is no record: the connection is of no use.
    Broken,
}

/// Reads records.
#[derive(Debug)]
pub struct Tape {
    buffer: [u8; ROOM],
    len: usize,
    mark: [u8; RecordMark::LEN],
    mark_len: usize,
    /// Bytes left of the fragment.
    left: u32,
    last: bool,
    /// A mark was read since the record began.
    begun: bool,
}

impl Tape {
    /// Nothing has come.
    pub const fn new() -> Self {
        Tape { buffer: [0; ROOM], len: 0, mark: [0; RecordMark::LEN], mark_len: 0, left: 0, last: false, begun: false }
    }

    /// Another connection begins.
    pub fn rewind(&mut self) {
        self.len = 0;
        self.mark_len = 0;
        self.next();
    }

    /// The record has been dealt with, of which nothing is left to come.
    pub fn next(&mut self) {
        self.len = 0;
        self.left = 0;
        self.last = false;
        self.begun = false;
    }

    /// What was gathered of the record.
    pub fn front(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or(&[])
    }

    /// Bytes left of the fragment.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Reads on in the connection `key` until `want` bytes of the record are gathered, at most [`ROOM`], or it ends.
    pub fn pull<H: Host>(&mut self, net: &mut Net<'_, '_, H>, key: Key, want: usize) -> Pulled {
        let want = want.min(ROOM);
        for _ in 0..TURNS {
            match self.open(net, key) {
                Pulled::Front => {}
                other => return other,
            }
            if self.len >= want {
                return Pulled::Front;
            }
            let room = want.saturating_sub(self.len).min(self.left as usize);
            let end = self.len.saturating_add(room);
            let Some(place) = self.buffer.get_mut(self.len..end) else { return Pulled::Broken };
            // An end of the stream, or its error, is seen by whoever owns the connection.
            let count = net.tcp.recv(net.stack, key, place).unwrap_or(0);
            if count == 0 {
                return Pulled::Little;
            }
            self.len = self.len.saturating_add(count);
            self.passed(count);
        }
        Pulled::Later
    }

    /// Reads marks until bytes of the record follow: [`Pulled::Front`]; or it ends.
    pub fn open<H: Host>(&mut self, net: &mut Net<'_, '_, H>, key: Key) -> Pulled {
        for _ in 0..TURNS {
            if self.left > 0 {
                return Pulled::Front;
            }
            if self.begun && self.last {
                return Pulled::Whole;
            }
            let Some(place) = self.mark.get_mut(self.mark_len..) else { return Pulled::Broken };
            let count = net.tcp.recv(net.stack, key, place).unwrap_or(0);
            if count == 0 {
                return Pulled::Little;
            }
            self.mark_len = self.mark_len.saturating_add(count);
            if self.mark_len < RecordMark::LEN {
                continue;
            }
            self.mark_len = 0;
            let mark = RecordMark::parse(self.mark);
            if mark.len > MAX_FRAGMENT {
                return Pulled::Broken;
            }
            (self.left, self.last, self.begun) = (mark.len, mark.last, true);
        }
        Pulled::Later
    }

    /// `count` bytes of the fragment were read.
    pub fn passed(&mut self, count: usize) {
        self.left = self.left.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Passes over at most `most` bytes of the fragment that have come; how many.
    pub fn skip<H: Host>(&mut self, net: &mut Net<'_, '_, H>, key: Key, most: usize) -> usize {
        let count = net.tcp.consume(net.stack, key, most.min(self.left as usize)).unwrap_or(0);
        self.passed(count);
        count
    }
}

impl Default for Tape {
    fn default() -> Self {
        Self::new()
    }
}
