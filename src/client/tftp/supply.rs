//! Where the bytes of sent blocks come from. Every block asks the source at its own offset, again when it is sent again:
//! nothing is kept here.

use super::netascii::Encoder;
use crate::storage::checksum::Sum;
use crate::storage::error::Error;
use crate::storage::host::{Host, Memory, Pager, Reader, Source, SourceOf};

/// Bytes converted at once.
const CHUNK: usize = 64;

/// A place in the file from which lines are converted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    offset: u64,
    encoder: Encoder,
}

/// Reads `out.len()` bytes from `offset` on; how many there were, fewer only at the end of the file.
///
/// # Errors
/// [`Error::Host`]: the source failed.
pub fn read<H: Host>(source: &mut SourceOf<H>, offset: u64, out: &mut [u8]) -> Result<usize, Error> {
    let mut done = 0usize;
    // Each turn takes at least one byte, or ends.
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let at = offset.saturating_add(done as u64);
        let asked = rest.len();
        let got = match source {
            Source::Memory(memory) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                let len = memory.len().saturating_sub(at).min(asked);
                copy(memory, at, rest.get_mut(..len))?;
                len
            }
            Source::Reader(reader) => reader.read(at, rest).map_err(Error::Host)?.min(asked),
            Source::Pager(pager) => {
                let page = pager.map(at, asked).map_err(Error::Host)?;
                let len = page.len().min(asked);
                let copied = copy(&page, 0, rest.get_mut(..len));
                if len > 0 {
                    pager.release(at, &page);
                }
                copied?;
                len
            }
        };
        if got == 0 {
            break;
        }
        done = done.saturating_add(got);
    }
    Ok(done)
}

fn copy<M: Memory>(memory: &M, at: usize, out: Option<&mut [u8]>) -> Result<(), Error> {
    match out {
        Some(out) if !out.is_empty() => memory.read_sum(at, out).map(|_| ()).map_err(|_| Error::Invalid),
        _ => Ok(()),
    }
}

/// Converts lines from `cursor` on until `out` is full or the file ends; how many bytes that made. The cursor moves on.
///
/// # Errors
/// As [`read`].
pub fn encode<H: Host>(source: &mut SourceOf<H>, cursor: &mut Cursor, out: &mut [u8]) -> Result<usize, Error> {
    let mut made = 0usize;
    while let Some(rest) = out.get_mut(made..).filter(|rest| !rest.is_empty()) {
        let mut chunk = [0; CHUNK];
        let len = read::<H>(source, cursor.offset, chunk.get_mut(..rest.len().min(CHUNK)).unwrap_or(&mut []))?;
        let done = cursor.encoder.convert(chunk.get(..len).unwrap_or(&[]), rest);
        if done.made == 0 {
            break;
        }
        cursor.offset = cursor.offset.saturating_add(done.used as u64);
        made = made.saturating_add(done.made);
    }
    Ok(made)
}

/// The same for `len` bytes that go nowhere.
///
/// # Errors
/// As [`read`].
pub fn skip<H: Host>(source: &mut SourceOf<H>, cursor: &mut Cursor, len: usize) -> Result<usize, Error> {
    let mut made = 0usize;
    while made < len {
        let mut scratch = [0; CHUNK];
        let piece = len.saturating_sub(made).min(CHUNK);
        let got = encode::<H>(source, cursor, scratch.get_mut(..piece).unwrap_or(&mut []))?;
        made = made.saturating_add(got);
        if got < piece {
            break;
        }
    }
    Ok(made)
}

/// Writes a block behind its header: `out` is filled from `offset`, or as lines from `cursor`. Its sum; the error tells
/// how many bytes there were.
pub fn fill<H: Host>(
    source: &mut SourceOf<H>,
    offset: u64,
    cursor: Option<&mut Cursor>,
    head: &[u8],
    out: &mut [u8],
) -> Result<Sum, (usize, Error)> {
    let (front, body) = out.split_at_mut_checked(head.len()).ok_or((0, Error::Invalid))?;
    let sum = Sum::copy(front, head).ok_or((0, Error::Invalid))?;
    if let (Source::Memory(memory), None) = (&*source, &cursor) {
        let at = usize::try_from(offset).map_err(|_| (0, Error::Invalid))?;
        let body_sum = memory.read_sum(at, body).map_err(|_| (0, Error::EndOfFile))?;
        return Ok(sum + body_sum.at(head.len()));
    }
    let got = match cursor {
        None => read::<H>(source, offset, body),
        Some(cursor) => encode::<H>(source, cursor, body),
    };
    match got {
        Ok(got) if got == body.len() => Ok(sum + Sum::of(body).at(head.len())),
        Ok(got) => Err((got, Error::EndOfFile)),
        Err(why) => Err((0, why)),
    }
}
