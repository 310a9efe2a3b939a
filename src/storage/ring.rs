//! Rings over memory the caller gives: one of bytes, for streams, and one of datagrams, for sockets that are polled. Both
//! copy in one pass with the checksum. Which bytes belong where in a stream, and what a full ring means, is for the
//! layer above.

#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

use super::checksum::Sum;

/// A ring of bytes of any size. Readable bytes begin at the head; free space follows them, and may be written out of
/// order before it is made readable. Offsets of the readable part count from the head, those of the free part from the
/// first free byte.
#[derive(Debug)]
pub struct ByteRing<'b> {
    buf: &'b mut [u8],
    /// Position of the first readable byte; below `buf.len()`, or 0 when that is 0.
    head: usize,
    /// Number of readable bytes.
    len: usize,
}

impl<'b> ByteRing<'b> {
    /// An empty ring over `buf`.
    pub const fn new(buf: &'b mut [u8]) -> Self {
        ByteRing { buf, head: 0, len: 0 }
    }

    /// Bytes it can hold.
    pub const fn capacity(&self) -> usize {
        self.buf.len()
    }

    /// Readable bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is readable.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that may be written.
    pub const fn free(&self) -> usize {
        self.buf.len().saturating_sub(self.len)
    }

    /// Forgets all bytes, written ahead or readable.
    pub const fn clear(&mut self) {
        self.head = 0;
        self.len = 0;
    }

    /// Writes `bytes` at `offset` of the free part and sums them in the same pass; nothing becomes readable. `None`, and
    /// nothing written, when they do not fit.
    pub fn write_ahead(&mut self, offset: usize, bytes: &[u8]) -> Option<Sum> {
        let (first, second) = self.spare_mut(offset, bytes.len())?;
        let split = first.len();
        let (to_first, to_second) = bytes.split_at_checked(split)?;
        let sum = Sum::copy(first, to_first)?;
        if second.is_empty() {
            return Some(sum);
        }
        Some(sum + Sum::copy(second, to_second)?.at(split))
    }

    /// Makes the first `count` free bytes readable, at most all of them. Returns how many.
    pub fn advance(&mut self, count: usize) -> usize {
        let count = count.min(self.free());
        self.len = self.len.saturating_add(count);
        count
    }

    /// Appends as much of `bytes` as fits and makes it readable. Returns how much.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.free());
        let copied = bytes.get(..count).and_then(|bytes| {
            let (first, second) = self.spare_mut(0, count)?;
            let (to_first, to_second) = bytes.split_at_checked(first.len())?;
            Sum::copy_only(first, to_first)?;
            Sum::copy_only(second, to_second)
        });
        match copied {
            Some(()) => self.advance(count),
            None => 0,
        }
    }

    /// `count` readable bytes from `offset` on, as two spans, the second empty where they do not wrap. `None` when there
    /// are not so many.
    pub fn peek(&self, offset: usize, count: usize) -> Option<(&[u8], &[u8])> {
        if offset.checked_add(count)? > self.len {
            return None;
        }
        self.spans(offset, count)
    }

    /// `count` free bytes from `offset` on, which [`write_ahead`](Self::write_ahead) may have filled, as two spans.
    pub fn peek_ahead(&self, offset: usize, count: usize) -> Option<(&[u8], &[u8])> {
        if offset.checked_add(count)? > self.free() {
            return None;
        }
        self.spans(self.len.checked_add(offset)?, count)
    }

    /// The same to be filled in place, by a reader say.
    pub fn spare_mut(&mut self, offset: usize, count: usize) -> Option<(&mut [u8], &mut [u8])> {
        if offset.checked_add(count)? > self.free() {
            return None;
        }
        let (start, first, second) = self.place(self.len.checked_add(offset)?, count)?;
        let (low, high) = self.buf.split_at_mut_checked(start)?;
        Some((high.get_mut(..first)?, low.get_mut(..second)?))
    }

    /// Copies readable bytes from `offset` on into the whole of `dst` and sums them in the same pass. `None`, and
    /// nothing copied, when there are not so many.
    pub fn copy_out(&self, offset: usize, dst: &mut [u8]) -> Option<Sum> {
        let (first, second) = self.peek(offset, dst.len())?;
        let (to_first, to_second) = dst.split_at_mut_checked(first.len())?;
        let sum = Sum::copy(to_first, first)?;
        if second.is_empty() {
            return Some(sum);
        }
        Some(sum + Sum::copy(to_second, second)?.at(first.len()))
    }

    /// The sum of `count` readable bytes from `offset` on. `None` when there are not so many.
    pub fn sum(&self, offset: usize, count: usize) -> Option<Sum> {
        let (first, second) = self.peek(offset, count)?;
        Some(Sum::of(first) + Sum::of(second).at(first.len()))
    }

    /// Drops the first `count` readable bytes, at most all of them. Returns how many. Bytes written ahead stay.
    pub fn consume(&mut self, count: usize) -> usize {
        let count = count.min(self.len);
        self.skip(count);
        self.len = self.len.saturating_sub(count);
        count
    }

    /// Drops the last readable bytes until `len` are left. Bytes written ahead are lost with them.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Takes `count` bytes out of the readable part at `offset`, moving the ones before them up; bytes behind them, also
    /// those written ahead, stay where they are. Returns whether there were so many.
    pub fn remove(&mut self, offset: usize, count: usize) -> bool {
        if offset.checked_add(count).is_none_or(|end| end > self.len) {
            return false;
        }
        for at in (0..offset).rev() {
            let (Some((from, ..)), Some((to, ..))) = (self.place(at, 1), self.place(at.saturating_add(count), 1))
            else {
                return false;
            };
            self.buf.copy_within(from..from.saturating_add(1), to);
        }
        self.consume(count);
        true
    }

    /// Moves the beginning of the free part over `count` bytes written ahead that went elsewhere, and drops nothing:
    /// only an empty ring can do so. Returns whether it did.
    pub fn skip_ahead(&mut self, count: usize) -> bool {
        let may = self.len == 0 && count <= self.buf.len();
        if may {
            self.skip(count);
        }
        may
    }

    /// Moves readable bytes into `dst`, as many as there are and as fit. Returns how many.
    pub fn read(&mut self, dst: &mut [u8]) -> usize {
        let count = dst.len().min(self.len);
        match dst.get_mut(..count).and_then(|dst| self.copy_out(0, dst)) {
            Some(_) => self.consume(count),
            None => 0,
        }
    }

    /// Moves the head by at most the capacity.
    fn skip(&mut self, count: usize) {
        let left = self.buf.len().saturating_sub(self.head);
        self.head = match count.checked_sub(left) {
            Some(past) => past,
            None => self.head.saturating_add(count),
        };
    }

    /// Position of the byte at `offset` from the head, and how many of `count` bytes lie before and after the wrap.
    fn place(&self, offset: usize, count: usize) -> Option<(usize, usize, usize)> {
        let left = self.buf.len().checked_sub(self.head)?;
        let start = match offset.checked_sub(left) {
            Some(past) => past,
            None => self.head.checked_add(offset)?,
        };
        let first = count.min(self.buf.len().checked_sub(start)?);
        Some((start, first, count.checked_sub(first)?))
    }

    fn spans(&self, offset: usize, count: usize) -> Option<(&[u8], &[u8])> {
        let (start, first, second) = self.place(offset, count)?;
        let (low, high) = self.buf.split_at_checked(start)?;
        Some((high.get(..first)?, low.get(..second)?))
    }
}

/// Bytes before each datagram for its length.
const LENGTH: usize = 2;

/// A queue of datagrams in a ring of bytes, each with `M` bytes of the caller's own: where it came from, say. A datagram
/// takes 2 + `M` bytes besides its payload.
#[derive(Debug)]
pub struct PacketRing<'b, const M: usize> {
    bytes: ByteRing<'b>,
    count: usize,
    /// Bytes of the datagram written but not yet in the queue; 0 when there is none.
    pending: usize,
}

/// What [`PacketRing::pop`] took out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Popped<const M: usize> {
    /// The caller's own bytes.
    pub meta: [u8; M],
    /// Length of the datagram's payload.
    pub len: usize,
    /// How many of them were copied; fewer when the buffer was too short, and then the rest is lost.
    pub copied: usize,
}

impl<const M: usize> Popped<M> {
    /// Whether the buffer was too short.
    pub const fn truncated(&self) -> bool {
        self.copied < self.len
    }
}

impl<'b, const M: usize> PacketRing<'b, M> {
    /// An empty queue over `buf`.
    pub const fn new(buf: &'b mut [u8]) -> Self {
        PacketRing { bytes: ByteRing::new(buf), count: 0, pending: 0 }
    }

    /// Number of datagrams.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no datagram.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Longest payload that fits now; `None` when not even an empty datagram does.
    pub fn room(&self) -> Option<usize> {
        Some(self.bytes.free().checked_sub(LENGTH)?.checked_sub(M)?.min(usize::from(u16::MAX)))
    }

    /// Longest payload that fits when nothing is in it.
    pub fn empty_room(&self) -> Option<usize> {
        Some(self.bytes.capacity().checked_sub(LENGTH)?.checked_sub(M)?.min(usize::from(u16::MAX)))
    }

    /// Writes a datagram into free space, over one that was not committed, and sums its payload in the same pass. Only
    /// [`commit`](Self::commit) puts it into the queue. `None` when it does not fit.
    pub fn write(&mut self, meta: &[u8; M], payload: &[u8]) -> Option<Sum> {
        self.pending = 0;
        if payload.len() > self.room()? {
            return None;
        }
        let len = u16::try_from(payload.len()).ok()?;
        let head = LENGTH.checked_add(M)?;
        self.bytes.write_ahead(0, &len.to_ne_bytes())?;
        self.bytes.write_ahead(LENGTH, meta)?;
        let sum = self.bytes.write_ahead(head, payload)?;
        self.pending = head.checked_add(payload.len())?;
        Some(sum)
    }

    /// Puts the datagram last written into the queue. Returns whether there was one.
    pub fn commit(&mut self) -> bool {
        let written = self.pending > 0;
        self.bytes.advance(self.pending);
        self.count = self.count.saturating_add(usize::from(written));
        self.pending = 0;
        written
    }

    /// Queues a datagram. `false` when it does not fit: it is dropped, and the caller counts it.
    pub fn push(&mut self, meta: &[u8; M], payload: &[u8]) -> bool {
        self.write(meta, payload).is_some() && self.commit()
    }

    /// The caller's bytes and the payload length of the first datagram.
    pub fn peek(&self) -> Option<([u8; M], usize)> {
        let mut len = [0; LENGTH];
        let mut meta = [0; M];
        self.bytes.copy_out(0, &mut len)?;
        self.bytes.copy_out(LENGTH, &mut meta)?;
        Some((meta, usize::from(u16::from_ne_bytes(len))))
    }

    /// The payload of the first datagram, as two spans.
    pub fn payload(&self) -> Option<(&[u8], &[u8])> {
        let (_, len) = self.peek()?;
        self.bytes.peek(LENGTH.checked_add(M)?, len)
    }

    /// Takes the first datagram out and copies as much of it as fits into `dst`.
    pub fn pop(&mut self, dst: &mut [u8]) -> Option<Popped<M>> {
        let (meta, len) = self.peek()?;
        let copied = len.min(dst.len());
        self.bytes.copy_out(LENGTH.checked_add(M)?, dst.get_mut(..copied)?)?;
        self.drop_first();
        Some(Popped { meta, len, copied })
    }

    /// Takes the first datagram out unread. Returns whether there was one.
    pub fn drop_first(&mut self) -> bool {
        let Some((_, len)) = self.peek() else {
            return false;
        };
        self.bytes.consume(LENGTH.saturating_add(M).saturating_add(len));
        self.count = self.count.saturating_sub(1);
        true
    }

    /// Forgets all datagrams.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.pending = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::vec::Vec;

    fn random(seed: &mut u64, bound: usize) -> usize {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((*seed >> 32) * bound as u64) >> 32) as usize
    }

    fn bytes(seed: &mut u64, len: usize) -> Vec<u8> {
        (0..len).map(|_| random(seed, 256) as u8).collect()
    }

    #[test]
    fn a_stream_pushed_and_read_in_pieces_is_the_same_stream() {
        for size in [1, 2, 7, 64, 100] {
            let mut store = std::vec![0u8; size];
            let mut ring = ByteRing::new(&mut store);
            let mut model: VecDeque<u8> = VecDeque::new();
            let mut seed = size as u64;
            for _ in 0..3000 {
                let len = random(&mut seed, size + 5);
                let piece = bytes(&mut seed, len);
                let fits = piece.len().min(size - model.len());
                assert_eq!(ring.push(&piece), fits);
                model.extend(&piece[..fits]);
                assert_eq!(
                    (ring.len(), ring.free(), ring.is_empty()),
                    (model.len(), size - model.len(), model.is_empty())
                );

                let at = random(&mut seed, model.len() + 1);
                let count = model.len() - at;
                let (a, b) = ring.peek(at, count).unwrap();
                assert!(a.iter().chain(b).eq(model.range(at..)));
                let flat: Vec<u8> = model.range(at..).copied().collect();
                assert_eq!(ring.sum(at, count), Some(Sum::of(&flat)));
                assert_eq!(ring.peek(at, count + 1), None);

                let mut out = std::vec![0u8; random(&mut seed, size + 5)];
                let got = ring.read(&mut out);
                assert_eq!(got, out.len().min(model.len()));
                assert!(out[..got].iter().copied().eq(model.drain(..got)));
            }
        }
    }

    #[test]
    fn bytes_written_ahead_in_any_order_become_readable_in_place() {
        let mut seed = 9u64;
        for size in [3usize, 10, 61] {
            let mut store = std::vec![0u8; size];
            let mut ring = ByteRing::new(&mut store);
            for _ in 0..500 {
                let data = bytes(&mut seed, size);
                let half = random(&mut seed, size);
                let late = ring.write_ahead(half, &data[half..]).unwrap();
                assert_eq!(late, Sum::of(&data[half..]));
                assert!(ring.is_empty());
                let (a, b) = ring.peek_ahead(half, size - half).unwrap();
                assert!(a.iter().chain(b).eq(&data[half..]));
                let early = ring.write_ahead(0, &data[..half]).unwrap();
                assert_eq!(early + late.at(half), Sum::of(&data));
                assert_eq!(ring.advance(size + 1), size);
                let keep = random(&mut seed, size);
                let mut out = std::vec![0u8; size - keep];
                assert_eq!(ring.copy_out(keep, &mut out), Some(Sum::of(&data[keep..])));
                assert_eq!(out, &data[keep..]);
                assert_eq!(ring.consume(size + 9), size);
                assert!(ring.skip_ahead(random(&mut seed, size + 1)));
            }
        }
    }

    #[test]
    fn bytes_go_from_the_end_and_from_the_middle() {
        for start in 0..8 {
            let mut store = [0u8; 8];
            let mut ring = ByteRing::new(&mut store);
            assert!(ring.skip_ahead(start));
            ring.push(b"abcdef");
            ring.write_ahead(0, b"gh");
            assert!(!ring.remove(5, 2));
            assert!(ring.remove(2, 3));
            assert_eq!(ring.advance(2), 2);
            let mut out = [0u8; 5];
            assert!(ring.copy_out(0, &mut out).is_some());
            assert_eq!(&out, b"abfgh");
            ring.truncate(2);
            ring.truncate(9);
            assert_eq!(ring.push(b"xyz"), 3);
            assert_eq!(ring.read(&mut out), 5);
            assert_eq!(&out, b"abxyz");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_whole() {
        let mut store = [0u8; 8];
        let mut ring = ByteRing::new(&mut store);
        assert_eq!(ring.push(b"abc"), 3);
        assert_eq!(ring.write_ahead(3, b"xyz"), None);
        assert_eq!(ring.write_ahead(6, b""), None);
        assert_eq!(ring.write_ahead(usize::MAX, b"z"), None);
        assert_eq!(ring.write_ahead(3, b"yz"), Some(Sum::of(b"yz")));
        assert_eq!(ring.peek(usize::MAX, 2), None);
        assert_eq!(ring.peek_ahead(usize::MAX, 2), None);
        assert!(ring.spare_mut(0, 6).is_none());
        assert!(!ring.skip_ahead(1));
        let mut out = [0u8; 4];
        assert_eq!(ring.copy_out(0, &mut out), None);
        assert_eq!(out, [0; 4]);
        assert_eq!(ring.peek(0, 3), Some((&b"abc"[..], &b""[..])));
        ring.clear();
        assert_eq!((ring.len(), ring.free()), (0, 8));
    }

    #[test]
    fn a_ring_without_room_is_harmless() {
        let mut ring = ByteRing::new(&mut []);
        assert_eq!(ring.push(b"a"), 0);
        assert_eq!(ring.read(&mut [0; 3]), 0);
        assert_eq!(ring.advance(1), 0);
        assert_eq!(ring.consume(1), 0);
        assert_eq!(ring.write_ahead(0, b""), Some(Sum::ZERO));
        assert_eq!(ring.peek(0, 0), Some((&b""[..], &b""[..])));
        let mut packets: PacketRing<'_, 6> = PacketRing::new(&mut []);
        assert!(!packets.push(&[0; 6], b""));
        assert_eq!(packets.pop(&mut []), None);
    }

    #[test]
    fn datagrams_come_out_as_they_went_in() {
        let mut store = [0u8; 97];
        let mut ring: PacketRing<'_, 6> = PacketRing::new(&mut store);
        let mut model: VecDeque<([u8; 6], Vec<u8>)> = VecDeque::new();
        let mut seed = 5u64;
        let (mut dropped, mut cut) = (0, 0);
        for _ in 0..5000 {
            if random(&mut seed, 2) == 0 {
                let len = random(&mut seed, 40);
                let payload = bytes(&mut seed, len);
                let meta: [u8; 6] = bytes(&mut seed, 6).try_into().unwrap();
                let used: usize = model.iter().map(|(_, payload)| payload.len() + 8).sum();
                let fits = used + len + 8 <= 97;
                assert_eq!(ring.room(), (97 - used).checked_sub(8));
                assert_eq!(ring.push(&meta, &payload), fits);
                if fits { model.push_back((meta, payload)) } else { dropped += 1 }
            } else {
                let mut out = std::vec![0xeeu8; random(&mut seed, 60)];
                let got = ring.pop(&mut out);
                let want = model.pop_front();
                assert_eq!(got.is_some(), want.is_some());
                if let (Some(got), Some((meta, payload))) = (got, want) {
                    assert_eq!((got.meta, got.len, got.copied), (meta, payload.len(), payload.len().min(out.len())));
                    assert_eq!(got.truncated(), payload.len() > out.len());
                    assert_eq!(out[..got.copied], payload[..got.copied]);
                    assert!(out[got.copied..].iter().all(|b| *b == 0xee));
                    cut += usize::from(got.truncated());
                }
            }
            assert_eq!(ring.len(), model.len());
            let first = ring.payload().map(|(a, b)| [a, b].concat());
            assert_eq!(first.as_ref(), model.front().map(|(_, payload)| payload));
        }
        assert!(dropped > 100 && cut > 100);
    }

    #[test]
    fn a_datagram_whose_checksum_fails_is_never_queued() {
        let mut store = [0u8; 64];
        let mut ring: PacketRing<'_, 2> = PacketRing::new(&mut store);
        assert!(ring.push(&[1, 1], b"first"));
        assert_eq!(ring.write(&[2, 2], b"corrupt!"), Some(Sum::of(b"corrupt!")));
        assert_eq!(ring.len(), 1);
        assert_eq!(ring.write(&[3, 3], b"good"), Some(Sum::of(b"good")));
        assert!(ring.commit());
        assert!(!ring.commit());
        let mut out = [0u8; 16];
        assert_eq!(ring.pop(&mut out), Some(Popped { meta: [1, 1], len: 5, copied: 5 }));
        assert_eq!(ring.pop(&mut out), Some(Popped { meta: [3, 3], len: 4, copied: 4 }));
        assert_eq!(&out[..4], b"good");
        assert_eq!(ring.pop(&mut out), None);
        assert!(!ring.drop_first());
    }
}
