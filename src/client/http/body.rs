//! Where a body ends (RFC 9112 §6.3): by its length, by its last chunk (RFC 9112 §7.1), or with the stream. Tells data from
//! what is between; where data goes is for `exchange`.

use super::{Fault, MAX_HEAD};

/// Most bytes of the line before a chunk, its extensions included.
const MAX_LINE: u16 = 512;

/// How far into a body it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// So many bytes are to come; none at the end.
    Length(u64),
    /// All that comes is data.
    UntilEnd,
    /// Chunks.
    Chunked(Chunk),
}

/// How far into its chunks a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// In the line that begins one.
    Line {
        /// Its size so far.
        size: u64,
        /// What is read of the line, in bytes.
        len: u16,
        /// The size has ended: an extension, or the end of the line.
        ended: bool,
    },
    /// So many bytes of its data are to come.
    Data(u64),
    /// At its end: whether the CR has come.
    End(bool),
    /// In the lines behind the last: bytes of all of them, and whether the current one is empty.
    Trailer {
        /// Bytes of all lines.
        len: u16,
        /// The current line has no bytes yet.
        empty: bool,
    },
    /// The body has ended.
    Over,
}

impl Chunk {
    /// At the line that begins a chunk.
    pub const FIRST: Chunk = Chunk::Line { size: 0, len: 0, ended: false };

    /// Takes a byte that is no data.
    fn step(self, byte: u8) -> Result<Chunk, Fault> {
        match self {
            Chunk::Line { size, len, ended } => {
                let some = len > 0;
                let len = len.saturating_add(1);
                if len > MAX_LINE {
                    return Err(Fault::Chunk);
                }
                let digit = (byte as char).to_digit(16).map(u64::from);
                match (byte, digit) {
                    (b'\n', _) if some => Ok(match size {
                        0 => Chunk::Trailer { len: 0, empty: true },
                        size => Chunk::Data(size),
                    }),
                    (_, Some(digit)) if !ended => {
                        let size = size.checked_mul(16).and_then(|size| size.checked_add(digit));
                        let size = size.filter(|size| i64::try_from(*size).is_ok()).ok_or(Fault::ChunkTooLarge)?;
                        Ok(Chunk::Line { size, len, ended })
                    }
                    (b';' | b' ' | b'\t' | b'\r', _) if some => Ok(Chunk::Line { size, len, ended: true }),
                    _ if ended && !byte.is_ascii_control() => Ok(Chunk::Line { size, len, ended }),
                    _ => Err(Fault::Chunk),
                }
            }
            Chunk::End(false) if byte == b'\r' => Ok(Chunk::End(true)),
            Chunk::End(_) if byte == b'\n' => Ok(Chunk::FIRST),
            Chunk::Trailer { len, .. } if usize::from(len) >= MAX_HEAD => Err(Fault::TrailerTooLong),
            Chunk::Trailer { len, empty } => Ok(match byte {
                b'\n' if empty => Chunk::Over,
                b'\r' => Chunk::Trailer { len: len.saturating_add(1), empty },
                _ => Chunk::Trailer { len: len.saturating_add(1), empty: byte == b'\n' },
            }),
            Chunk::End(_) | Chunk::Data(_) | Chunk::Over => Err(Fault::Chunk),
        }
    }
}

impl Framing {
    /// Bytes of data that come next, before anything else; [`u64::MAX`] if only the stream's end ends them.
    pub fn data(&self) -> u64 {
        match self {
            Framing::Length(left) | Framing::Chunked(Chunk::Data(left)) => *left,
            Framing::UntilEnd => u64::MAX,
            Framing::Chunked(_) => 0,
        }
    }

    /// So many bytes of data have come, at most [`Self::data`].
    pub fn took(&mut self, count: u64) {
        match self {
            Framing::Length(left) => *left = left.saturating_sub(count),
            Framing::Chunked(chunk) => {
                if let Chunk::Data(left) = *chunk {
                    *chunk = match left.saturating_sub(count) {
                        0 => Chunk::End(false),
                        left => Chunk::Data(left),
                    };
                }
            }
            Framing::UntilEnd => {}
        }
    }

    /// Whether the body has ended.
    pub fn is_over(&self) -> bool {
        matches!(self, Framing::Length(0) | Framing::Chunked(Chunk::Over))
    }

    /// Reads what stands before the next data or behind the last; how many of `bytes` that is.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn frame(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let Framing::Chunked(chunk) = self else { return Ok(0) };
        for (count, byte) in bytes.iter().enumerate() {
            if matches!(chunk, Chunk::Data(_) | Chunk::Over) {
                return Ok(count);
            }
            *chunk = chunk.step(*byte)?;
        }
        Ok(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// The data of a chunked body that comes in pieces of `piece` bytes, what follows it, and how it ended.
    fn read(body: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool), Fault> {
        let mut framing = Framing::Chunked(Chunk::FIRST);
        let (mut data, mut at) = (Vec::new(), 0);
        while at < body.len() && !framing.is_over() {
            let part = &body[at..(at + piece).min(body.len())];
            let left = framing.data();
            if left > 0 {
                let count = part.len().min(left as usize);
                data.extend_from_slice(&part[..count]);
                framing.took(count as u64);
                at += count;
            } else {
                at += framing.frame(part)?;
            }
        }
        Ok((data, body.len() - at, framing.is_over()))
    }

    #[test]
    fn chunks_are_read_in_any_pieces() {
        for (body, data, after) in [
            (&b"3\r\nabc\r\n0\r\n\r\n"[..], &b"abc"[..], 0),
            (b"1\r\na\r\nA\r\n0123456789\r\n0\r\n\r\nGET", b"a0123456789", 3),
            (b"3;name=\"v;w\" x\r\nabc\r\n000;z\r\nA: b\r\nC: d\r\n\r\n!", b"abc", 1),
            (b"3 \nabc\n0\n\n", b"abc", 0),
            (b"0\r\n\r\n", b"", 0),
            (b"0000000000000000000003\r\nabc\r\n0\r\n\r\n", b"abc", 0),
        ] {
            for piece in 1..=body.len() {
                assert_eq!(read(body, piece), Ok((data.to_vec(), after, true)), "{body:?} {piece}");
            }
            // Cut anywhere before its end, it has not ended.
            for end in 0..body.len() - after {
                assert!(!read(&body[..end], 7).unwrap().2, "{body:?} {end}");
            }
        }
    }

    #[test]
    fn chunks_that_are_none_are_told_apart() {
        for (body, fault) in [
            (&b"\r\n"[..], Fault::Chunk),
            (b"-1\r\n", Fault::Chunk),
            (b"0x3\r\n", Fault::Chunk),
            (b"g\r\n", Fault::Chunk),
            (b" 3\r\nabc", Fault::Chunk),
            (b";x\r\n", Fault::Chunk),
            (b"3\r\nabcd\r\n", Fault::Chunk),
            (b"3\r\nabc0\r\n\r\n", Fault::Chunk),
            (b"3;\0\r\n", Fault::Chunk),
            (b"10000000000000000\r\n", Fault::ChunkTooLarge),
            (b"8000000000000000\r\n", Fault::ChunkTooLarge),
            (b"fffffffffffffffffffffffffffffff\r\n", Fault::ChunkTooLarge),
        ] {
            for piece in 1..=body.len() {
                assert_eq!(read(body, piece), Err(fault), "{body:?}");
            }
        }
        let (data, _, over) = read(b"7fffffffffffffff\r\nabc", 4).unwrap();
        assert_eq!((&data[..], over), (&b"abc"[..], false), "the largest there is");
        let line = |n| [b"1;", &std::vec![b'x'; n][..], b"\r\na\r\n0\r\n\r\n"].concat();
        assert!(read(&line(usize::from(MAX_LINE) - 4), 9).unwrap().2);
        assert_eq!(read(&line(usize::from(MAX_LINE)), 9), Err(Fault::Chunk));
        let trailer = |n| [b"0\r\nA: ", &std::vec![b'x'; n][..], b"\r\n\r\n"].concat();
        assert!(read(&trailer(MAX_HEAD - 10), 9).unwrap().2);
        assert_eq!(read(&trailer(MAX_HEAD), 9), Err(Fault::TrailerTooLong));
    }

    #[test]
    fn lengths_count_down() {
        let mut framing = Framing::Length(5);
        framing.took(3);
        assert_eq!((framing.data(), framing.is_over()), (2, false));
        framing.took(2);
        assert!(framing.is_over());
        assert!(Framing::Length(0).is_over());
        let mut all = Framing::UntilEnd;
        all.took(7);
        assert_eq!((all.data(), all.is_over(), all.frame(b"x")), (u64::MAX, false, Ok(0)));
    }
}
