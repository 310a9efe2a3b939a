//! XDR (RFC 4506), as far as RPC and NFS use it. Each length is checked against what is there and against a maximum.

use super::cursor::{Reader, Writer};
use super::{Error, Result};

/// Padding that follows `len` bytes of opaque data, 0 to 3 bytes (RFC 4506 §4.10).
#[inline]
pub const fn padding(len: usize) -> usize {
    len.wrapping_neg() & 3
}

/// Reads XDR front to back.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    reader: Reader<'a>,
    whole: usize,
}

impl<'a> Decoder<'a> {
    /// Reads from the front of `bytes`.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { reader: Reader::new(bytes), whole: bytes.len() }
    }

    /// How many bytes were read since [`Decoder::new`].
    #[inline]
    pub const fn position(&self) -> usize {
        self.whole.saturating_sub(self.reader.rest().len())
    }

    /// What is left.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.reader.rest()
    }

    /// Unsigned integer (§4.2).
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    pub fn u32(&mut self) -> Result<u32> {
        self.reader.u32()
    }

    /// Unsigned hyper integer (§4.5).
    #[inline]
    pub fn u64(&mut self) -> Result<u64> {
        self.reader.u64()
    }

    /// Boolean (§4.4); [`Error::Malformed`] unless 0 or 1.
    #[inline]
    pub fn bool(&mut self) -> Result<bool> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Error::Malformed),
        }
    }

    /// Opaque data of `N` bytes, a multiple of 4 (§4.9).
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N]> {
        self.reader.array()
    }

    /// Length of opaque data or of a list; [`Error::Malformed`] above `max`.
    #[inline]
    pub fn len(&mut self, max: usize) -> Result<usize> {
        usize::try_from(self.u32()?).ok().filter(|&len| len <= max).ok_or(Error::Malformed)
    }

    /// Opaque data of `len` bytes, a multiple of 4 (§4.9).
    #[inline]
    pub fn fixed(&mut self, len: usize) -> Result<&'a [u8]> {
        self.reader.take(len)
    }

    /// Passes over `len` bytes.
    #[inline]
    pub fn skip(&mut self, len: usize) -> Result<()> {
        self.reader.take(len).map(drop)
    }

    /// Opaque data or a string of at most `max` bytes (§4.10–4.11), and the padding after it. [`Error::Malformed`] if it says
    /// that it is longer, [`Error::Truncated`] if it or its padding is not whole.
    #[inline]
    pub fn opaque(&mut self, max: usize) -> Result<&'a [u8]> {
        let len = self.len(max)?;
        let data = self.reader.take(len)?;
        self.reader.take(padding(len))?;
        Ok(data)
    }
}

/// Writes XDR front to back. After an error what was written is of no use.
#[derive(Debug)]
pub struct Encoder<'b> {
    writer: Writer<'b>,
}

impl<'b> Encoder<'b> {
    /// Writes to the front of `buf`.
    pub const fn new(buf: &'b mut [u8]) -> Encoder<'b> {
        Encoder { writer: Writer::new(buf) }
    }

    /// How many bytes were written.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub const fn len(&self) -> usize {
        self.writer.len()
    }

    /// What was written.
    pub fn finish(self) -> &'b mut [u8] {
        self.writer.finish()
    }

    /// Unsigned integer (§4.2).
    pub fn u32(&mut self, value: u32) -> Result<()> {
        self.writer.u32(value)
    }

    /// Unsigned hyper integer (§4.5).
    pub fn u64(&mut self, value: u64) -> Result<()> {
        self.writer.u64(value)
    }

    /// Boolean (§4.4).
    pub fn bool(&mut self, value: bool) -> Result<()> {
        self.u32(u32::from(value))
    }

    /// Opaque data of a length known to both sides (§4.9), padded.
    pub fn fixed(&mut self, data: &[u8]) -> Result<()> {
        self.writer.put(data)?;
        self.writer.fill(0, padding(data.len()))
    }

    /// Opaque data or a string (§4.10–4.11), padded.
    pub fn opaque(&mut self, data: &[u8]) -> Result<()> {
        self.u32(u32::try_from(data.len()).map_err(|_| Error::NoRoom)?)?;
        self.fixed(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::each_cut;

    #[test]
    fn round_trip() {
        let mut buf = [0xaa; 64];
        let mut e = Encoder::new(&mut buf);
        e.u32(7).unwrap();
        e.u64(1 << 40).unwrap();
        e.bool(true).unwrap();
        e.opaque(b"abcde").unwrap();
        e.fixed(b"12345678").unwrap();
        assert_eq!(e.len(), 36);
        let wire = e.finish();
        assert_eq!(wire[16..28], *b"\0\0\0\x05abcde\0\0\0");
        let mut d = Decoder::new(wire);
        assert_eq!((d.u32(), d.u64(), d.bool()), (Ok(7), Ok(1 << 40), Ok(true)));
        assert_eq!(d.position(), 16);
        assert_eq!(d.opaque(5), Ok(&b"abcde"[..]));
        assert_eq!(d.array::<8>(), Ok(b"12345678"));
        assert_eq!((d.position(), d.rest()), (36, &[][..]));
    }

    #[test]
    fn opaque_lengths_are_checked() {
        let wire = b"\0\0\0\x05abcde\0\0\0";
        assert_eq!(Decoder::new(wire).opaque(4), Err(Error::Malformed));
        each_cut(wire, |cut| assert_eq!(Decoder::new(cut).opaque(5), Err(Error::Truncated)));
        for len in [13u32, 0x7fff_ffff, 0x8000_0000, 0xffff_fffc, 0xffff_ffff] {
            let mut long = *wire;
            long[..4].copy_from_slice(&len.to_be_bytes());
            assert_eq!(Decoder::new(&long).opaque(12), Err(Error::Malformed));
            assert_eq!(Decoder::new(&long).opaque(usize::MAX), Err(Error::Truncated));
        }
        assert_eq!(Decoder::new(&[0; 4]).opaque(0), Ok(&[][..]));
    }

    #[test]
    fn booleans_are_0_or_1() {
        assert_eq!(Decoder::new(&[0, 0, 0, 0]).bool(), Ok(false));
        assert_eq!(Decoder::new(&[0, 0, 0, 2]).bool(), Err(Error::Malformed));
        assert_eq!(Decoder::new(&[1, 0, 0, 1]).bool(), Err(Error::Malformed));
    }

    #[test]
    fn paddings() {
        assert_eq!([0, 1, 2, 3, 4, 5].map(padding), [0, 3, 2, 1, 0, 3]);
        assert_eq!(Encoder::new(&mut [0; 11]).opaque(b"abcde"), Err(Error::NoRoom));
        assert_eq!(Encoder::new(&mut [0; 12]).opaque(b"abcde"), Ok(()));
    }
}
