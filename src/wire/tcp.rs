//! TCP segments (RFC 9293 §3.1) and their options: MSS, window scale and timestamps (RFC 7323), SACK (RFC 2018). What a
//! segment means to a connection is left to `tcp`; the checksum is left to the stack.

use super::cursor::Writer;
use super::{Error, Result};
use core::cmp::Ordering;
use core::ops::{Add, AddAssign, Sub, SubAssign};

/// Length of a header without options, in bytes.
pub const HEADER_LEN: usize = 20;
/// Longest header, with 40 bytes of options.
pub const MAX_HEADER_LEN: usize = 60;
/// Largest shift of the window scale option (RFC 7323 §2.3).
pub const MAX_WINDOW_SCALE: u8 = 14;

/// A sequence number. Sums wrap; comparison is modular (RFC 9293 §3.4), so it holds for numbers less than 2³¹ apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// How far this lies beyond `earlier`, modulo 2³².
    #[inline]
    pub const fn since(self, earlier: SeqNumber) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// How far this lies beyond `other`; negative if before it.
    #[inline]
    pub const fn offset_from(self, other: SeqNumber) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// Whether this is one of the `len` numbers from `start` on.
    #[inline]
    pub const fn is_within(self, start: SeqNumber, len: u32) -> bool {
        self.since(start) < len
    }

    /// The later of two.
    #[inline]
    pub fn max(self, other: SeqNumber) -> SeqNumber {
        if other > self { other } else { self }
    }

    /// The earlier of two.
    #[inline]
    pub fn min(self, other: SeqNumber) -> SeqNumber {
        if other < self { other } else { self }
    }
}

impl PartialOrd for SeqNumber {
    #[inline]
    fn partial_cmp(&self, other: &SeqNumber) -> Option<Ordering> {
        Some(self.offset_from(*other).cmp(&0))
    }
}

impl Add<u32> for SeqNumber {
    type Output = SeqNumber;
    #[inline]
    fn add(self, n: u32) -> SeqNumber {
        SeqNumber(self.0.wrapping_add(n))
    }
}

impl Sub<u32> for SeqNumber {
    type Output = SeqNumber;
    #[inline]
    fn sub(self, n: u32) -> SeqNumber {
        SeqNumber(self.0.wrapping_sub(n))
    }
}

impl AddAssign<u32> for SeqNumber {
    #[inline]
    fn add_assign(&mut self, n: u32) {
        *self = *self + n;
    }
}

impl SubAssign<u32> for SeqNumber {
    #[inline]
    fn sub_assign(&mut self, n: u32) {
        *self = *self - n;
    }
}

bitflags::bitflags! {
    /// Control bits (RFC 9293 §3.1).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Flags: u8 {
        /// No more data from the sender.
        const FIN = 0x01;
        /// Synchronises sequence numbers.
        const SYN = 0x02;
        /// Resets the connection.
        const RST = 0x04;
        /// Push.
        const PSH = 0x08;
        /// The acknowledgement field counts.
        const ACK = 0x10;
        /// The urgent pointer counts.
        const URG = 0x20;
        /// ECN echo (RFC 3168).
        const ECE = 0x40;
        /// Congestion window reduced (RFC 3168).
        const CWR = 0x80;
    }
}

/// The timestamps option (RFC 7323 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the last value received by the sender; counts only with ACK.
    pub echo: u32,
}

/// A range of received bytes: from `left` up to, not including, `right` (RFC 2018 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub left: SeqNumber,
    /// The sequence number that follows the last of the block.
    pub right: SeqNumber,
}

/// Up to four SACK blocks, in the order of the option. Edges are as received: they may be out of order or of no meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [SackBlock; 4],
    len: u8,
}

impl SackBlocks {
    /// Adds a block behind the others; returns whether there was room.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.len)) else { return false };
        *slot = block;
        self.len = self.len.wrapping_add(1);
        true
    }

    /// The blocks.
    #[inline]
    pub fn as_slice(&self) -> &[SackBlock] {
        self.blocks.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// One option of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// Largest segment the sender takes, in bytes of payload (RFC 9293 §3.7.1).
    MaxSegmentSize(u16),
    /// Shift of the window field, capped at 14 (RFC 7323 §2.2–2.3).
    WindowScale(u8),
    /// SACK may be sent (RFC 2018 §2).
    SackPermitted,
    /// Ranges received (RFC 2018 §3).
    Sack(SackBlocks),
    /// Timestamps (RFC 7323 §3.2).
    Timestamps(Timestamps),
}

/// Iterates over the options that are known and have their right length; others are passed over by their own length. A
/// length below 2, or beyond the header, ends the options (RFC 9293 §3.2, MUST-7).
#[derive(Clone, Debug)]
pub struct OptionIter<'a>(&'a [u8]);

impl Iterator for OptionIter<'_> {
    type Item = TcpOption;

    fn next(&mut self) -> Option<TcpOption> {
        // Every turn takes at least one of at most 40 bytes.
        loop {
            let (&kind, tail) = self.0.split_first()?;
            if kind == 1 {
                self.0 = tail;
                continue;
            }
            let split = tail.first().filter(|&&len| kind != 0 && len >= 2);
            let split = split.and_then(|&len| self.0.split_at_checked(usize::from(len)));
            let Some((option, rest)) = split else {
                self.0 = &[];
                return None;
            };
            self.0 = rest;
            match *option {
                [2, 4, a, b] => return Some(TcpOption::MaxSegmentSize(u16::from_be_bytes([a, b]))),
                [3, 3, shift] => return Some(TcpOption::WindowScale(shift.min(MAX_WINDOW_SCALE))),
                [4, 2] => return Some(TcpOption::SackPermitted),
                [5, 10 | 18 | 26 | 34, ref edges @ ..] => {
                    let mut blocks = SackBlocks::default();
                    for &[a, b, c, d, e, f, g, h] in edges.as_chunks::<8>().0 {
                        let left = SeqNumber(u32::from_be_bytes([a, b, c, d]));
                        let right = SeqNumber(u32::from_be_bytes([e, f, g, h]));
                        blocks.push(SackBlock { left, right });
                    }
                    return Some(TcpOption::Sack(blocks));
                }
                [8, 10, a, b, c, d, e, f, g, h] => {
                    let (value, echo) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
                    return Some(TcpOption::Timestamps(Timestamps { value, echo }));
                }
                _ => {}
            }
        }
    }
}

/// The options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Largest segment the sender takes, in bytes of payload; of meaning in a SYN only.
    pub max_segment_size: Option<u16>,
    /// Shift of the window field, 0 to 14; of meaning in a SYN only.
    pub window_scale: Option<u8>,
    /// SACK may be sent; of meaning in a SYN only.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Ranges received. [`Repr::emit`] leaves out the last ones if 40 bytes of options do not hold them.
    pub sack: SackBlocks,
}

impl Options {
    /// The known options among `bytes`; the last of a kind counts.
    pub fn parse(bytes: &[u8]) -> Options {
        let mut options = Options::default();
        for option in OptionIter(bytes) {
            match option {
                TcpOption::MaxSegmentSize(size) => options.max_segment_size = Some(size),
                TcpOption::WindowScale(shift) => options.window_scale = Some(shift),
                TcpOption::SackPermitted => options.sack_permitted = true,
                TcpOption::Sack(blocks) => options.sack = blocks,
                TcpOption::Timestamps(timestamps) => options.timestamps = Some(timestamps),
            }
        }
        options
    }

    /// Length of the options as emitted, padding included, in bytes: a multiple of 4 up to 40.
    #[inline]
    pub fn emitted_len(&self) -> usize {
        let fixed = self.fixed_len();
        match self.sack_fitting(fixed) {
            0 => fixed,
            n => fixed.saturating_add(4).saturating_add(n << 3),
        }
    }

    fn fixed_len(&self) -> usize {
        let syn =
            usize::from(self.max_segment_size.is_some()).wrapping_add(usize::from(self.window_scale.is_some())) << 2;
        let rest = match (self.sack_permitted, self.timestamps) {
            (_, Some(_)) => 12, // SACK-permitted takes the place of the padding before the timestamps
            (true, None) => 4,
            (false, None) => 0,
        };
        syn.wrapping_add(rest)
    }

    /// How many SACK blocks fit beside `fixed` bytes of other options.
    fn sack_fitting(&self, fixed: usize) -> usize {
        self.sack.as_slice().len().min(36usize.saturating_sub(fixed) >> 3)
    }

    fn emit(&self, w: &mut Writer<'_>) -> Result<()> {
        if let Some(size) = self.max_segment_size {
            let [a, b] = size.to_be_bytes();
            w.put(&[2, 4, a, b])?;
        }
        if let Some(shift) = self.window_scale {
            w.put(&[1, 3, 3, shift.min(MAX_WINDOW_SCALE)])?;
        }
        let permitted = if self.sack_permitted { [4, 2] } else { [1, 1] };
        if let Some(Timestamps { value, echo }) = self.timestamps {
            let ([a, b, c, d], [e, f, g, h], [p, q]) = (value.to_be_bytes(), echo.to_be_bytes(), permitted);
            w.put(&[p, q, 8, 10, a, b, c, d, e, f, g, h])?;
        } else if self.sack_permitted {
            w.put(&[4, 2, 1, 1])?;
        }
        let n = self.sack_fitting(self.fixed_len());
        if n > 0 {
            w.put(&[1, 1, 5, (n as u8).wrapping_mul(8).wrapping_add(2)])?;
            for block in self.sack.as_slice().iter().take(n) {
                w.u32(block.left.0)?;
                w.u32(block.right.0)?;
            }
        }
        Ok(())
    }
}

/// A view of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    head: &'a [u8; HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Views `bytes`, the whole payload of an IP packet, as a segment. [`Error::Truncated`] if the header is not whole,
    /// [`Error::Malformed`] if its length field is below 20.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Segment<'a>> {
        let (head, rest) = bytes.split_first_chunk::<HEADER_LEN>().ok_or(Error::Truncated)?;
        let header_len = usize::from(head[12] >> 4) << 2;
        let options_len = header_len.checked_sub(HEADER_LEN).ok_or(Error::Malformed)?;
        let (options, payload) = rest.split_at_checked(options_len).ok_or(Error::Truncated)?;
        Ok(Segment { head, options, payload })
    }

    /// Source port.
    #[inline]
    pub fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.head[0], self.head[1]])
    }

    /// Destination port.
    #[inline]
    pub fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.head[2], self.head[3]])
    }

    /// Sequence number of the first byte of the payload, or of the SYN.
    #[inline]
    pub fn seq(&self) -> SeqNumber {
        SeqNumber(u32::from_be_bytes([self.head[4], self.head[5], self.head[6], self.head[7]]))
    }

    /// The acknowledgement field; of meaning only with [`Flags::ACK`].
    #[inline]
    pub fn ack(&self) -> SeqNumber {
        SeqNumber(u32::from_be_bytes([self.head[8], self.head[9], self.head[10], self.head[11]]))
    }

    /// Control bits.
    #[inline]
    pub fn flags(&self) -> Flags {
        Flags::from_bits_retain(self.head[13])
    }

    /// The window field, not scaled.
    #[inline]
    pub fn window(&self) -> u16 {
        u16::from_be_bytes([self.head[14], self.head[15]])
    }

    /// The checksum as it lies in the segment.
    #[inline]
    pub fn checksum(&self) -> [u8; 2] {
        [self.head[16], self.head[17]]
    }

    /// Length of the header in bytes, 20 to 60.
    #[inline]
    pub fn header_len(&self) -> usize {
        HEADER_LEN.saturating_add(self.options.len())
    }

    /// The header without its options.
    #[inline]
    pub fn head(&self) -> &'a [u8; HEADER_LEN] {
        self.head
    }

    /// The options as they lie in the segment.
    #[inline]
    pub fn option_bytes(&self) -> &'a [u8] {
        self.options
    }

    /// Iterates over the options.
    #[inline]
    pub fn option_iter(&self) -> OptionIter<'a> {
        OptionIter(self.options)
    }

    /// The options.
    #[inline]
    pub fn options(&self) -> Options {
        match *self.options {
            [] => Options::default(),
            // What nearly every segment between peers with timestamps carries (RFC 7323 appendix A).
            [1, 1, 8, 10, a, b, c, d, e, f, g, h] => {
                let (value, echo) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
                Options { timestamps: Some(Timestamps { value, echo }), ..Options::default() }
            }
            _ => Options::parse(self.options),
        }
    }

    /// The payload.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// How much of the sequence space the segment takes: payload, SYN and FIN (RFC 9293 §3.4).
    #[inline]
    pub fn seq_len(&self) -> u32 {
        let flags = self.flags();
        let control = u32::from(flags.contains(Flags::SYN)).wrapping_add(u32::from(flags.contains(Flags::FIN)));
        (self.payload.len() as u32).wrapping_add(control)
    }
}

/// What an ICMP error must quote of a segment (RFC 792: 8 bytes): enough to find the connection and to refuse forgeries
/// by the sequence number (RFC 5927 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub seq: SeqNumber,
}

impl Quoted {
    /// Reads the first 8 bytes of a segment; [`Error::Truncated`] if there are fewer.
    pub fn parse(bytes: &[u8]) -> Result<Quoted> {
        let &[a, b, c, d, e, f, g, h] = bytes.first_chunk::<8>().ok_or(Error::Truncated)?;
        Ok(Quoted {
            source_port: u16::from_be_bytes([a, b]),
            destination_port: u16::from_be_bytes([c, d]),
            seq: SeqNumber(u32::from_be_bytes([e, f, g, h])),
        })
    }
}

/// The values of a header. Its urgent pointer is always 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub seq: SeqNumber,
    /// Acknowledgement number.
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: Flags,
    /// The window field, already scaled down.
    pub window: u16,
    /// Options.
    pub options: Options,
}

impl Repr {
    /// The values of a segment's header.
    #[inline]
    pub fn parse(segment: &Segment<'_>) -> Repr {
        Repr {
            source_port: segment.source_port(),
            destination_port: segment.destination_port(),
            seq: segment.seq(),
            ack: segment.ack(),
            flags: segment.flags(),
            window: segment.window(),
            options: segment.options(),
        }
    }

    /// Length of the header in bytes, options and padding included: 20 to 60.
    #[inline]
    pub fn header_len(&self) -> usize {
        HEADER_LEN.saturating_add(self.options.emitted_len())
    }

    /// The header without its options, its length field saying `len` bytes in all.
    #[inline]
    pub fn emit_fixed(&self, checksum: [u8; 2], len: usize) -> [u8; HEADER_LEN] {
        let [s0, s1] = self.source_port.to_be_bytes();
        let [d0, d1] = self.destination_port.to_be_bytes();
        let [q0, q1, q2, q3] = self.seq.0.to_be_bytes();
        let [a0, a1, a2, a3] = self.ack.0.to_be_bytes();
        let [w0, w1] = self.window.to_be_bytes();
        let [c0, c1] = checksum;
        let (offset, flags) = ((len << 2) as u8, self.flags.bits());
        [s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, offset, flags, w0, w1, c0, c1, 0, 0]
    }

    /// Writes the header, with `checksum` in its field, to the front of `buf` and returns its length;
    /// [`Error::NoRoom`] if it does not fit. 60 bytes always suffice.
    #[inline]
    pub fn emit(&self, checksum: [u8; 2], buf: &mut [u8]) -> Result<usize> {
        let mut w = Writer::new(buf);
        w.put(&self.emit_fixed(checksum, self.header_len()))?;
        self.options.emit(&mut w)?;
        Ok(w.len())
    }
}

impl Timestamps {
    /// The option with the padding before it that most peers send (RFC 7323 appendix A).
    #[inline]
    pub fn emit(&self) -> [u8; 12] {
        let ([a, b, c, d], [e, f, g, h]) = (self.value.to_be_bytes(), self.echo.to_be_bytes());
        [1, 1, 8, 10, a, b, c, d, e, f, g, h]
    }
}

#[cfg(test)]
mod tests;
