//! Heads of responses (RFC 9112 §4, §5): where one ends, and what its fields say about the body (RFC 9112 §6).

use super::range::ContentRange;
use super::{Fault, MAX_FIELDS, decimal, same};

/// Finds the empty line that ends a head in bytes that come in any pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The line so far is not empty.
    filled: bool,
}

impl Scan {
    /// How many of `bytes` belong to the head, and whether it ends there.
    pub fn feed(&mut self, bytes: &[u8]) -> (usize, bool) {
        for (count, byte) in (1usize..).zip(bytes) {
            match byte {
                b'\n' if !self.filled => return (count, true),
                b'\n' => self.filled = false,
                b'\r' => {}
                _ => self.filled = true,
            }
        }
        (bytes.len(), false)
    }
}

/// What a head says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Status code (RFC 9110 §15).
    pub status: u16,
    /// Bytes of the body, if they are told.
    pub length: Option<u64>,
    /// The body comes in chunks.
    pub chunked: bool,
    /// The connection ends with the response.
    pub close: bool,
    /// Which part of the file this is.
    pub range: Option<ContentRange>,
}

/// What the first line of a head says (RFC 9112 §4).
struct Status {
    /// It is of HTTP/1.0.
    old: bool,
    code: u16,
}

/// A field's name and value.
type Field<'h> = (&'h [u8], &'h [u8]);

/// The fields of a head, one by one (RFC 9112 §5).
struct Fields<'h> {
    rest: &'h [u8],
    /// How many there may be yet.
    left: usize,
}

/// Takes a line off the front of `rest`, and gives it without its end.
fn line<'h>(rest: &mut &'h [u8]) -> Result<&'h [u8], Fault> {
    let end = rest.iter().position(|b| *b == b'\n').ok_or(Fault::NotHttp)?;
    let (line, after) = rest.split_at_checked(end).ok_or(Fault::NotHttp)?;
    *rest = after.get(1..).unwrap_or(&[]);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // RFC 9110 §5.5: no control character but the tabulator.
    if line.iter().any(|b| b.is_ascii_control() && *b != b'\t') { Err(Fault::NotHttp) } else { Ok(line) }
}

/// Whether a byte may stand in a name (RFC 9110 §5.6.2).
pub fn is_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}

/// Opens a head.
fn open(mut head: &[u8]) -> Result<(Status, Fields<'_>), Fault> {
    let (old, code) = match line(&mut head)?.strip_prefix(b"HTTP/1.") {
        Some([minor @ (b'0' | b'1'), b' ', a, b, c]) | Some([minor @ (b'0' | b'1'), b' ', a, b, c, b' ', ..]) => {
            (*minor == b'0', decimal(&[*a, *b, *c]).flatten())
        }
        _ => return Err(Fault::NotHttp),
    };
    let code = code.and_then(|code| u16::try_from(code).ok()).ok_or(Fault::NotHttp)?;
    Ok((Status { old, code }, Fields { rest: head, left: MAX_FIELDS }))
}

impl<'h> Fields<'h> {
    /// The next field's name and value; `None` behind the last.
    fn next(&mut self) -> Result<Option<Field<'h>>, Fault> {
        let line = line(&mut self.rest)?;
        if line.is_empty() {
            return Ok(None);
        }
        self.left = self.left.checked_sub(1).ok_or(Fault::TooManyFields)?;
        let colon = line.iter().position(|b| !is_token(b)).filter(|end| *end > 0).ok_or(Fault::NotHttp)?;
        match line.split_at_checked(colon) {
            Some((name, [b':', value @ ..])) => Ok(Some((name, value.trim_ascii()))),
            _ => Err(Fault::NotHttp),
        }
    }
}

/// The value of the first field `name` of a head, as it came.
pub fn field<'h>(head: &'h [u8], name: &[u8]) -> Option<&'h [u8]> {
    let (_, mut fields) = open(head).ok()?;
    while let Ok(Some((other, value))) = fields.next() {
        if same(other, name) {
            return Some(value);
        }
    }
    None
}

/// The words that follow the status code of a head.
pub fn reason(head: &[u8]) -> &[u8] {
    let line = head.split(|b| matches!(b, b'\r' | b'\n')).next().unwrap_or(&[]);
    line.splitn(3, |b| *b == b' ').nth(2).unwrap_or(&[])
}

/// The elements of a list of tokens.
fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|b| *b == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

impl Head {
    /// Reads a whole head.
    ///
    /// # Errors
    /// What is wrong with it.
    #[inline(never)]
    pub fn parse(bytes: &[u8]) -> Result<Head, Fault> {
        let (status, mut fields) = open(bytes)?;
        let mut head = Head { status: status.code, close: status.old, ..Head::default() };
        while let Some((name, value)) = fields.next()? {
            head.take(name, value)?;
        }
        if head.chunked {
            // RFC 9112 §6.1: HTTP/1.0 knows no chunks.
            if status.old {
                return Err(Fault::TransferCoding);
            }
            // RFC 9112 §6.3: chunks count, and such a message is suspicious.
            head.close |= head.length.take().is_some();
        }
        Ok(head)
    }

    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        if same(name, b"Content-Length") {
            // RFC 9110 §8.6: a list of equal numbers counts as one.
            for number in value.split(|b| *b == b',') {
                let number = decimal(number.trim_ascii()).ok_or(Fault::Length)?;
                let number = number.filter(|n| i64::try_from(*n).is_ok()).ok_or(Fault::LengthTooLarge)?;
                if self.length.is_some_and(|before| before != number) {
                    return Err(Fault::Lengths);
                }
                self.length = Some(number);
            }
        } else if same(name, b"Transfer-Encoding") {
            for coding in tokens(value) {
                match same(coding, b"chunked") {
                    true if !self.chunked => self.chunked = true,
                    _ => return Err(Fault::TransferCoding),
                }
            }
        } else if same(name, b"Content-Encoding") {
            if tokens(value).any(|coding| !same(coding, b"identity")) {
                return Err(Fault::ContentCoding);
            }
        } else if same(name, b"Connection") {
            for option in tokens(value) {
                if same(option, b"close") {
                    self.close = true;
                } else if same(option, b"keep-alive") {
                    self.close = false;
                }
            }
        } else if same(name, b"Content-Range") {
            let range = ContentRange::parse(value).ok_or(Fault::Range)?;
            if self.range.is_some_and(|before| before != range) {
                return Err(Fault::Range);
            }
            self.range = Some(range);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    fn parse(fields: &str) -> Result<Head, Fault> {
        Head::parse(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes())
    }

    #[test]
    fn the_end_of_a_head_is_found_in_any_pieces() {
        let head = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n";
        let bytes = [&head[..], b"\r\n\r\nbody"].concat();
        for first in 0..bytes.len() {
            let mut scan = Scan::default();
            let (count, ended) = scan.feed(&bytes[..first]);
            assert_eq!((count, ended), (first.min(head.len()), first >= head.len()));
            if !ended {
                assert_eq!(scan.feed(&bytes[first..]), (head.len() - first, true));
            }
        }
        assert_eq!(Scan::default().feed(b"x\n\ny"), (3, true));
        assert_eq!(Scan::default().feed(b"x\n\r\ny"), (4, true));
        assert_eq!(Scan::default().feed(b"\r\n"), (2, true), "which is no head");
        assert_eq!(Head::parse(b"\r\n"), Err(Fault::NotHttp));
    }

    #[test]
    fn fields_say_where_the_body_ends() {
        let plain = Head { status: 200, ..Head::default() };
        assert_eq!(parse(""), Ok(plain));
        assert_eq!(parse("content-LENGTH:  12 \r\n"), Ok(Head { length: Some(12), ..plain }));
        assert_eq!(parse("Content-Length: 12, 12\r\nContent-Length: 12\r\n"), Ok(Head { length: Some(12), ..plain }));
        assert_eq!(parse("Transfer-Encoding: Chunked\r\n"), Ok(Head { chunked: true, ..plain }));
        let both = parse("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n");
        assert_eq!(both, Ok(Head { chunked: true, close: true, ..plain }));
        assert_eq!(parse("Connection: x, Close\r\n"), Ok(Head { close: true, ..plain }));
        assert_eq!(parse("Content-Encoding: identity\r\n"), Ok(plain));
        let old = |fields: &str| Head::parse(format!("HTTP/1.0 200 OK\r\n{fields}\r\n").as_bytes());
        assert_eq!(old(""), Ok(Head { close: true, ..plain }));
        assert_eq!(old("Connection: keep-alive\r\n"), Ok(plain));
        assert_eq!(old("Transfer-Encoding: chunked\r\n"), Err(Fault::TransferCoding));
        assert_eq!(Head::parse(b"HTTP/1.1 404\r\n\r\n").map(|h| h.status), Ok(404), "no reason");
    }

    #[test]
    fn lengths_that_are_none_are_told_apart() {
        for (value, fault) in [
            ("-1", Fault::Length),
            ("+1", Fault::Length),
            ("", Fault::Length),
            ("1 2", Fault::Length),
            ("0x10", Fault::Length),
            ("1,", Fault::Length),
            ("1.0", Fault::Length),
            ("1, 2", Fault::Lengths),
            ("1\r\nContent-Length: 2", Fault::Lengths),
            ("9223372036854775808", Fault::LengthTooLarge),
            ("18446744073709551616", Fault::LengthTooLarge),
            ("99999999999999999999999999", Fault::LengthTooLarge),
        ] {
            assert_eq!(parse(&format!("Content-Length: {value}\r\n")), Err(fault), "{value}");
        }
        assert_eq!(parse("Content-Length: 9223372036854775807\r\n").map(|h| h.length), Ok(Some(i64::MAX as u64)));
        assert_eq!(parse("Content-Length: 007\r\n").map(|h| h.length), Ok(Some(7)));
    }

    #[test]
    fn what_cannot_be_undone_is_refused() {
        for (fields, fault) in [
            ("Transfer-Encoding: gzip, chunked", Fault::TransferCoding),
            ("Transfer-Encoding: chunked, chunked", Fault::TransferCoding),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", Fault::TransferCoding),
            ("Content-Encoding: gzip", Fault::ContentCoding),
            ("Content-Range: bytes 1-0/5", Fault::Range),
            ("Content-Range: bytes 0-1/5\r\nContent-Range: bytes 0-2/5", Fault::Range),
            ("A b", Fault::NotHttp),
            ("A: b\r\n c: d", Fault::NotHttp),
        ] {
            assert_eq!(parse(&format!("{fields}\r\n")), Err(fault), "{fields}");
        }
        for head in ["HTTP/2 200 OK\r\n\r\n", "SSH-2.0-x\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2x0\r\n\r\n", ""]
        {
            assert_eq!(Head::parse(head.as_bytes()), Err(Fault::NotHttp), "{head}");
        }
        let many = |n| "A: b\r\n".repeat(n);
        assert_eq!(parse(&many(MAX_FIELDS)).map(|h| h.status), Ok(200));
        assert_eq!(parse(&many(MAX_FIELDS + 1)), Err(Fault::TooManyFields));
    }

    #[test]
    fn fields_and_reasons_can_be_asked_for() {
        let head = b"HTTP/1.1 404 Not here\r\nETag: \"x\"\r\netag: y\r\nE: \r\n\r\n";
        assert_eq!(field(head, b"etag"), Some(&b"\"x\""[..]));
        assert_eq!((field(head, b"e"), field(head, b"Location")), (Some(&b""[..]), None));
        assert_eq!(field(b"rubbish", b"a"), None);
        assert_eq!((reason(head), reason(b"HTTP/1.1 404\r\n"), reason(b"")), (&b"Not here"[..], &b""[..], &b""[..]));
    }
}
