//! UDP datagrams (RFC 768). The checksum, a sum over [`Datagram::bytes`] and a pseudo header, is left to the stack.

use super::{Error, Result};

/// Length of a header in bytes.
pub const HEADER_LEN: usize = 8;

/// A view of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    head: &'a [u8; HEADER_LEN],
    bytes: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Views `bytes` as a datagram; what lies beyond its length field is cut off. [`Error::Truncated`] if the header or
    /// the datagram is not whole, [`Error::Malformed`] if the length field is below 8.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Datagram<'a>> {
        let head = bytes.first_chunk::<HEADER_LEN>().ok_or(Error::Truncated)?;
        let len = usize::from(u16::from_be_bytes([head[4], head[5]]));
        let bytes = bytes.get(..len).ok_or(Error::Truncated)?;
        let payload = bytes.get(HEADER_LEN..).ok_or(Error::Malformed)?;
        Ok(Datagram { head, bytes, payload })
    }

    /// Views the front of a datagram: a first fragment, or what an ICMP error quotes. Only the header must be whole.
    #[inline]
    pub fn parse_partial(bytes: &'a [u8]) -> Result<Datagram<'a>> {
        let (head, rest) = bytes.split_first_chunk::<HEADER_LEN>().ok_or(Error::Truncated)?;
        let len = usize::from(u16::from_be_bytes([head[4], head[5]]));
        let len = len.checked_sub(HEADER_LEN).ok_or(Error::Malformed)?;
        let bytes = bytes.get(..len.saturating_add(HEADER_LEN)).unwrap_or(bytes);
        Ok(Datagram { head, bytes, payload: rest.get(..len).unwrap_or(rest) })
    }

    /// Source port; 0 if the sender wants no answer.
    #[inline]
    pub fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.head[0], self.head[1]])
    }

    /// Destination port.
    #[inline]
    pub fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.head[2], self.head[3]])
    }

    /// The length field: header and payload, in bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a datagram has a header at least")]
    pub fn len(&self) -> u16 {
        u16::from_be_bytes([self.head[4], self.head[5]])
    }

    /// The checksum as it lies in the datagram.
    #[inline]
    pub fn checksum(&self) -> [u8; 2] {
        [self.head[6], self.head[7]]
    }

    /// Whether the sender summed the datagram: a field of zero says that it did not (RFC 768, RFC 1122 §4.1.3.4).
    #[inline]
    pub fn has_checksum(&self) -> bool {
        self.checksum() != [0, 0]
    }

    /// The header.
    #[inline]
    pub fn head(&self) -> &'a [u8; HEADER_LEN] {
        self.head
    }

    /// Header and payload: what the checksum covers beside the pseudo header.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The payload.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// The values of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Length of the payload in bytes, at most 65527; larger values are emitted as if they were that.
    pub payload_len: u16,
}

impl Repr {
    /// The values of a datagram's header.
    pub fn parse(datagram: &Datagram<'_>) -> Repr {
        Repr {
            source_port: datagram.source_port(),
            destination_port: datagram.destination_port(),
            payload_len: datagram.len().saturating_sub(HEADER_LEN as u16),
        }
    }

    /// The length field: payload and header, in bytes.
    #[inline]
    pub fn datagram_len(&self) -> u16 {
        self.payload_len.saturating_add(HEADER_LEN as u16)
    }

    /// The header with `checksum` in its field. A sum that comes out as zero must be given as `[0xff, 0xff]` (RFC 768).
    #[inline]
    pub fn emit(&self, checksum: [u8; 2]) -> [u8; HEADER_LEN] {
        let (source, destination) = (u64::from(self.source_port), u64::from(self.destination_port));
        let (len, checksum) = (u64::from(self.datagram_len()), u64::from(u16::from_be_bytes(checksum)));
        // One word, one store: what is stored in parts and loaded as a whole waits for all stores before it.
        (source << 48 | destination << 32 | len << 16 | checksum).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::each_cut;
    use std::vec::Vec;

    const REPR: Repr = Repr { source_port: 1069, destination_port: 69, payload_len: 4 };

    fn datagram() -> Vec<u8> {
        let mut bytes = REPR.emit([0xab, 0xcd]).to_vec();
        bytes.extend_from_slice(b"data");
        bytes
    }

    #[test]
    fn round_trip() {
        let mut bytes = datagram();
        let view = Datagram::parse(&bytes).unwrap();
        assert_eq!(Repr::parse(&view), REPR);
        assert_eq!((view.checksum(), view.has_checksum(), view.len()), ([0xab, 0xcd], true, 12));
        assert_eq!((view.payload(), view.bytes()), (&b"data"[..], &bytes[..]));
        bytes[6..8].copy_from_slice(&[0, 0]);
        assert!(!Datagram::parse(&bytes).unwrap().has_checksum());
    }

    #[test]
    fn trailing_bytes_are_cut_off() {
        let mut bytes = datagram();
        bytes.extend_from_slice(b"trailer");
        for view in [Datagram::parse(&bytes).unwrap(), Datagram::parse_partial(&bytes).unwrap()] {
            assert_eq!((view.payload(), view.bytes().len()), (&b"data"[..], 12));
        }
    }

    #[test]
    fn empty_payload_is_valid() {
        let bytes = Repr { payload_len: 0, ..REPR }.emit([0; 2]);
        assert!(Datagram::parse(&bytes).unwrap().payload().is_empty());
    }

    #[test]
    fn lengths_are_checked() {
        each_cut(&datagram(), |cut| assert_eq!(Datagram::parse(cut).unwrap_err(), Error::Truncated));
        for (len, expect) in
            [(0, Error::Malformed), (7, Error::Malformed), (13, Error::Truncated), (0xff, Error::Truncated)]
        {
            let mut bytes = datagram();
            bytes[5] = len;
            assert_eq!(Datagram::parse(&bytes).unwrap_err(), expect);
        }
    }

    #[test]
    fn partial_needs_the_header_only() {
        let bytes = datagram();
        each_cut(&bytes, |cut| match Datagram::parse_partial(cut) {
            Ok(view) => assert_eq!(view.payload(), &bytes[8..cut.len()]),
            Err(e) => assert!(e == Error::Truncated && cut.len() < 8),
        });
        let mut short = bytes.clone();
        short[5] = 7;
        assert_eq!(Datagram::parse_partial(&short).unwrap_err(), Error::Malformed);
    }
}
