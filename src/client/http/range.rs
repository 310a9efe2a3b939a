//! Parts of files: Content-Range (RFC 9110 §14.4), and what tells whether a part is one of the same file (RFC 9110 §8.8).

use super::head::field;
use super::{MAX_VALIDATOR, decimal, same};
use crate::storage::saturating::{add, sub};

/// Which part of a file a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// First and last byte; `None`: no part could be given.
    pub part: Option<(u64, u64)>,
    /// Bytes of the whole file, if that is told.
    pub total: Option<u64>,
}

impl ContentRange {
    /// Reads the field's value; `None` if it is none, or of another unit than bytes.
    pub fn parse(value: &[u8]) -> Option<ContentRange> {
        let (unit, rest) = value.split_at_checked(6)?;
        if !same(unit, b"bytes ") {
            return None;
        }
        let mut halves = rest.splitn(2, |b| *b == b'/');
        let (part, total) = (halves.next()?.trim_ascii(), halves.next()?.trim_ascii());
        let total = match total {
            b"*" => None,
            number => Some(decimal(number)??),
        };
        if part == b"*" {
            // RFC 9110 §14.4: then at least the length is told.
            return total.map(|_| ContentRange { part: None, total });
        }
        let mut ends = part.splitn(2, |b| *b == b'-');
        let (first, last) = (decimal(ends.next()?)??, decimal(ends.next()?)??);
        let sound = first <= last && total.is_none_or(|total| last < total);
        sound.then_some(ContentRange { part: Some((first, last)), total })
    }

    /// Bytes of the part.
    #[inline(never)]
    pub fn len(&self) -> u64 {
        self.part.map_or(0, |(first, last)| add(sub(last, first), 1))
    }

    /// Whether there is no part.
    pub fn is_empty(&self) -> bool {
        self.part.is_none()
    }
}

/// A validator: a strong entity tag, or a date.
pub type Validator = heapless::Vec<u8, MAX_VALIDATOR>;

/// Whether an entity tag is a strong one (RFC 9110 §8.8.3): only such a one tells whether bytes are the same.
fn is_strong(tag: &[u8]) -> bool {
    tag.len() >= 2 && tag.starts_with(b"\"") && tag.ends_with(b"\"")
}

/// What tells the state of the file that `head` is about from others: its strong entity tag, else when it was modified
/// last; empty if neither is told, or is longer than is kept.
pub fn validator(head: &[u8]) -> Validator {
    let mut kept = Validator::new();
    let tag = field(head, b"ETag").filter(|tag| is_strong(tag));
    let value = tag.or_else(|| field(head, b"Last-Modified")).unwrap_or(&[]);
    if kept.extend_from_slice(value).is_err() {
        kept.clear();
    }
    kept
}

/// Whether `head` is about the state of the file that `validator` names. `None`: it does not say.
pub fn is_same(head: &[u8], validator: &[u8]) -> Option<bool> {
    let name: &[u8] = if validator.starts_with(b"\"") { b"ETag" } else { b"Last-Modified" };
    Some(field(head, name)? == validator)
}

/// Whether a text can stand in If-Range (RFC 9110 §13.1.5): a strong entity tag or a date.
pub fn is_validator(text: &[u8]) -> bool {
    let date = text.first().is_some_and(u8::is_ascii_alphabetic) && !text.starts_with(b"W/");
    text.len() <= MAX_VALIDATOR && !text.iter().any(u8::is_ascii_control) && (is_strong(text) || date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_parse_or_not() {
        let range = |part, total| Some(ContentRange { part, total });
        assert_eq!(ContentRange::parse(b"bytes 0-0/1"), range(Some((0, 0)), Some(1)));
        assert_eq!(ContentRange::parse(b"Bytes 5-9/*"), range(Some((5, 9)), None));
        assert_eq!(ContentRange::parse(b"bytes */7"), range(None, Some(7)));
        assert_eq!(ContentRange::parse(b"bytes 5-9/10").unwrap().len(), 5);
        for bad in [
            "",
            "bytes",
            "bytes ",
            "bytes 1-0/5",
            "bytes 0-5/5",
            "bytes -5/5",
            "bytes 0-/5",
            "bytes 0-4",
            "bytes */*",
            "lines 0-1/5",
            "bytes=0-1/5",
            "bytes 0-18446744073709551616/*",
            "bytes 0-1/18446744073709551616",
            "bytes 0 - 1/5",
            "bytes 0-1-2/5",
            "bytes 0-1/5/5",
        ] {
            assert_eq!(ContentRange::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn strong_tags_count_before_dates() {
        let head = |fields: &str| std::format!("HTTP/1.1 200 OK\r\n{fields}\r\n").into_bytes();
        let date = "Last-Modified: Tue, 15 Nov 1994 12:45:26 GMT\r\n";
        let both = head(&std::format!("ETag: \"a\"\r\n{date}"));
        assert_eq!(validator(&both), b"\"a\""[..]);
        let weak = head(&std::format!("ETag: W/\"a\"\r\n{date}"));
        assert_eq!(validator(&weak), b"Tue, 15 Nov 1994 12:45:26 GMT"[..]);
        assert_eq!(validator(&head("ETag: W/\"a\"\r\n")), b""[..]);
        assert_eq!(validator(&head(&std::format!("ETag: \"{}\"\r\n", "x".repeat(MAX_VALIDATOR)))), b""[..]);
        assert_eq!(is_same(&both, b"\"a\""), Some(true));
        assert_eq!(is_same(&both, b"\"b\""), Some(false));
        assert_eq!(is_same(&both, b"Tue, 15 Nov 1994 12:45:26 GMT"), Some(true));
        assert_eq!(is_same(&head(""), b"\"a\""), None);
        for (text, good) in
            [("\"a\"", true), ("W/\"a\"", false), ("Tue, 15", true), ("", false), ("\"", false), ("A\n", false)]
        {
            assert_eq!(is_validator(text.as_bytes()), good, "{text}");
        }
    }
}
