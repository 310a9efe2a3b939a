//! Reading from and writing to byte slices front to back, with every length checked.

use super::{Error, Result};

/// What is left to read of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the front of `bytes`.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// Takes `len` bytes; [`Error::Truncated`], and nothing taken, if fewer are left.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(len).ok_or(Error::Truncated)?;
        self.0 = rest;
        Ok(front)
    }

    /// Takes `N` bytes; [`Error::Truncated`], and nothing taken, if fewer are left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>().ok_or(Error::Truncated)?;
        self.0 = rest;
        Ok(front)
    }

    /// Takes one byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|&[byte]| byte)
    }

    /// Takes a 16-bit number in network order.
    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(|&b| u16::from_be_bytes(b))
    }

    /// Takes a 32-bit number in network order.
    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(|&b| u32::from_be_bytes(b))
    }

    /// Takes a 64-bit number in network order.
    #[inline]
    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(|&b| u64::from_be_bytes(b))
    }

    /// What is left.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }
}

/// Room for a packet being built, and how much of it is used.
#[derive(Debug)]
pub struct Writer<'b> {
    buf: &'b mut [u8],
    len: usize,
}

impl<'b> Writer<'b> {
    /// Writes to the front of `buf`.
    #[inline]
    pub const fn new(buf: &'b mut [u8]) -> Writer<'b> {
        Writer { buf, len: 0 }
    }

    /// Lends the next `len` bytes to fill in; [`Error::NoRoom`], and nothing used, if fewer are left.
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Result<&mut [u8]> {
        let room = self.buf.get_mut(self.len..).and_then(|rest| rest.get_mut(..len)).ok_or(Error::NoRoom)?;
        self.len = self.len.wrapping_add(len);
        Ok(room)
    }

    /// Appends `bytes`; [`Error::NoRoom`], and nothing written, if they do not fit.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let room = self.reserve(bytes.len())?;
        for (to, from) in room.iter_mut().zip(bytes) {
            *to = *from;
        }
        Ok(())
    }

    /// Appends `len` times `byte`.
    pub fn fill(&mut self, byte: u8, len: usize) -> Result<()> {
        self.reserve(len)?.fill(byte);
        Ok(())
    }

    /// Appends one byte.
    #[inline]
    pub fn u8(&mut self, value: u8) -> Result<()> {
        self.put(&[value])
    }

    /// Appends a 16-bit number in network order.
    #[inline]
    pub fn u16(&mut self, value: u16) -> Result<()> {
        self.put(&value.to_be_bytes())
    }

    /// Appends a 32-bit number in network order.
    #[inline]
    pub fn u32(&mut self, value: u32) -> Result<()> {
        self.put(&value.to_be_bytes())
    }

    /// Appends a 64-bit number in network order.
    #[inline]
    pub fn u64(&mut self, value: u64) -> Result<()> {
        self.put(&value.to_be_bytes())
    }

    /// How many bytes were written.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// How many bytes yet fit.
    #[inline]
    pub const fn room(&self) -> usize {
        self.buf.len().saturating_sub(self.len)
    }

    /// What was written.
    #[inline]
    pub fn finish(self) -> &'b mut [u8] {
        self.buf.get_mut(..self.len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let mut buf = [0xaa; 20];
        let mut w = Writer::new(&mut buf);
        w.u8(1).unwrap();
        w.u16(0x0203).unwrap();
        w.u32(0x0405_0607).unwrap();
        w.u64(0x0809_0a0b_0c0d_0e0f).unwrap();
        w.fill(7, 2).unwrap();
        assert_eq!((w.len(), w.room()), (17, 3));
        assert_eq!(w.u32(9), Err(Error::NoRoom));
        assert_eq!((w.len(), w.room()), (17, 3));
        let bytes = w.finish();
        let mut r = Reader::new(bytes);
        assert_eq!(r.u8(), Ok(1));
        assert_eq!(r.u16(), Ok(0x0203));
        assert_eq!(r.u32(), Ok(0x0405_0607));
        assert_eq!(r.u64(), Ok(0x0809_0a0b_0c0d_0e0f));
        assert_eq!(r.take(3), Err(Error::Truncated));
        assert_eq!(r.take(2), Ok(&[7, 7][..]));
        assert_eq!(r.u8(), Err(Error::Truncated));
        assert_eq!(buf[17..], [0xaa; 3]);
    }
}
