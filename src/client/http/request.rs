//! Heads of requests (RFC 9112 §3), and what a user may add to them.

use super::url::{Url, decoded};
use super::{MAX_FIELD_TEXT, MAX_HEAD, Method, digits, same};
use crate::storage::error::{Error, Result};

/// What a request says beside what it is for.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'r> {
    /// What is asked for.
    pub method: Method,
    /// User name and password for Basic authorisation (RFC 7617), as they are.
    pub basic: Option<(&'r [u8], &'r [u8])>,
    /// Fields of the user's own, checked by [`check_fields`].
    pub fields: &'r [u8],
    /// First and last byte that is asked for, if not all are (RFC 9110 §14.2).
    pub range: Option<(u64, Option<u64>)>,
    /// What the range is asked of: of anything else all is wanted (RFC 9110 §13.1.5).
    pub if_range: &'r [u8],
    /// The connection is not to be used again.
    pub close: bool,
}

type Head = heapless::Vec<u8, MAX_HEAD>;

#[inline(never)]
fn put(to: &mut Head, parts: &[&[u8]]) -> Result<()> {
    parts.iter().try_for_each(|part| to.extend_from_slice(part).map_err(|_| Error::MessageSize))
}

/// Writes a path or query; what may not stand there, as a percent sign and two digits.
fn put_target(to: &mut Head, text: &[u8]) -> Result<()> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |n: u8| HEX.get(usize::from(n & 15)).copied().unwrap_or(b'0');
    text.iter().try_for_each(|byte| match byte {
        b'!'..=b'~' => put(to, &[&[*byte]]),
        _ => put(to, &[&[b'%', digit(byte >> 4), digit(*byte)]]),
    })
}

/// Writes bytes in base 64 (RFC 4648 §4).
fn put_base64(to: &mut Head, mut bytes: impl Iterator<Item = u8>) -> Result<()> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = |n: u32| ALPHABET.get((n & 63) as usize).copied().unwrap_or(b'=');
    while let Some(a) = bytes.next() {
        let (b, c) = (bytes.next(), bytes.next());
        let n = u32::from(a) << 16 | u32::from(b.unwrap_or(0)) << 8 | u32::from(c.unwrap_or(0));
        let third = b.map_or(b'=', |_| letter(n >> 6));
        let fourth = c.map_or(b'=', |_| letter(n));
        put(to, &[&[letter(n >> 18), letter(n >> 12), third, fourth]])?;
    }
    Ok(())
}

/// The lines of a user's fields, without empty ones.
fn lines(fields: &[u8]) -> impl Iterator<Item = &[u8]> {
    let bare = |line: &'_ [u8]| -> usize { line.len().saturating_sub(usize::from(line.ends_with(b"\r"))) };
    fields
        .split(|b| *b == b'\n')
        .map(move |line| line.get(..bare(line)).unwrap_or(line))
        .filter(|line| !line.is_empty())
}

fn name(line: &[u8]) -> &[u8] {
    line.split(|b| *b == b':').next().unwrap_or(&[])
}

/// Fields that say where a message ends or what it is about: they are not the user's.
const OURS: [&[u8]; 8] = [
    b"Host",
    b"Connection",
    b"Content-Length",
    b"Transfer-Encoding",
    b"Range",
    b"If-Range",
    b"Accept-Encoding",
    b"Expect",
];

/// Whether the user's fields can be sent: lines of a name, a colon and a value (RFC 9112 §5).
///
/// # Errors
/// [`Error::Invalid`]: they cannot, or one of them is not the user's to choose; [`Error::MessageSize`]: more than
/// [`MAX_FIELD_TEXT`] bytes.
pub fn check_fields(fields: &[u8]) -> Result<()> {
    if fields.len() > MAX_FIELD_TEXT {
        return Err(Error::MessageSize);
    }
    for line in lines(fields) {
        let name = name(line);
        let value = line.get(name.len()..).and_then(|rest| rest.strip_prefix(b":")).ok_or(Error::Invalid)?;
        let sound = !name.is_empty()
            && name.iter().all(super::head::is_token)
            && !value.iter().any(|b| b.is_ascii_control() && *b != b'\t')
            && !OURS.iter().any(|ours| same(ours, name));
        if !sound {
            return Err(Error::Invalid);
        }
    }
    Ok(())
}

/// Writes the head of a request for `url` to `to`.
///
/// # Errors
/// [`Error::MessageSize`]: it is longer than [`MAX_HEAD`].
pub fn write(to: &mut Head, url: &Url<'_>, terms: &Terms<'_>) -> Result<()> {
    to.clear();
    put(to, &[if terms.method == Method::Head { b"HEAD " } else { b"GET " }])?;
    if url.path.is_empty() {
        put(to, &[b"/"])?;
    }
    put_target(to, url.path)?;
    put_target(to, url.query)?;
    put(to, &[b" HTTP/1.1\r\nHost: ", url.authority, b"\r\n"])?;
    let has = |field: &[u8]| lines(terms.fields).any(|line| same(name(line), field));
    if !has(b"User-Agent") {
        put(to, &[b"User-Agent: bootlace/", env!("CARGO_PKG_VERSION").as_bytes(), b"\r\n"])?;
    }
    if !has(b"Accept") {
        put(to, &[b"Accept: */*\r\n"])?;
    }
    // Bytes are wanted as they lie in the file.
    put(to, &[b"Accept-Encoding: identity\r\n"])?;
    if !has(b"Authorization") {
        let basic = b"Authorization: Basic ";
        if let Some((user, password)) = terms.basic {
            put(to, &[basic])?;
            put_base64(to, user.iter().chain(b":").chain(password).copied())?;
            put(to, &[b"\r\n"])?;
        } else if let Some(userinfo) = url.userinfo {
            put(to, &[basic])?;
            let colon: &[u8] = if userinfo.contains(&b':') { b"" } else { b":" };
            put_base64(to, decoded(userinfo).chain(colon.iter().copied()))?;
            put(to, &[b"\r\n"])?;
        }
    }
    if let Some((first, last)) = terms.range {
        put(to, &[b"Range: bytes=", digits(first, &mut [0; 20]), b"-"])?;
        if let Some(last) = last {
            put(to, &[digits(last, &mut [0; 20])])?;
        }
        put(to, &[b"\r\n"])?;
        if !terms.if_range.is_empty() {
            put(to, &[b"If-Range: ", terms.if_range, b"\r\n"])?;
        }
    }
    if terms.close {
        put(to, &[b"Connection: close\r\n"])?;
    }
    lines(terms.fields).try_for_each(|line| put(to, &[line, b"\r\n"]))?;
    put(to, &[b"\r\n"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    fn text(url: &str, terms: Terms<'_>) -> Result<String> {
        let mut head = Head::new();
        write(&mut head, &Url::parse(url.as_bytes()).unwrap(), &terms)?;
        Ok(String::from_utf8(head.to_vec()).unwrap())
    }

    const PLAIN: Terms<'static> =
        Terms { method: Method::Get, basic: None, fields: b"", range: None, if_range: b"", close: false };

    #[test]
    fn requests_say_what_is_wanted() {
        assert_eq!(
            text("http://a:81/b c?d\u{e9}#e", PLAIN).unwrap(),
            "GET /b%20c?d%C3%A9 HTTP/1.1\r\nHost: a:81\r\nUser-Agent: bootlace/0.1.0\r\nAccept: */*\r\n\
             Accept-Encoding: identity\r\n\r\n"
        );
        let terms = Terms {
            method: Method::Head,
            basic: Some((b"Aladdin", b"open sesame")),
            fields: b"X-A: b\r\nuser-agent:  z\n\naccept: q",
            range: Some((7, Some(u64::MAX))),
            if_range: b"\"x\"",
            close: true,
        };
        assert_eq!(
            text("http://a", terms).unwrap(),
            "HEAD / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: identity\r\n\
             Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\nRange: bytes=7-18446744073709551615\r\n\
             If-Range: \"x\"\r\nConnection: close\r\nX-A: b\r\nuser-agent:  z\r\naccept: q\r\n\r\n"
        );
        let range = Terms { range: Some((0, None)), ..PLAIN };
        assert!(text("http://a", range).unwrap().contains("Range: bytes=0-\r\n"));
    }

    #[test]
    fn credentials_may_stand_in_the_url() {
        // RFC 7617 §2, and what curl sends for these.
        for (info, want) in
            [("u:p", "dTpw"), ("u", "dTo="), ("test:123%C2%A3", "dGVzdDoxMjPCow=="), ("a:b:c", "YTpiOmM=")]
        {
            let head = text(&std::format!("http://{info}@h/"), PLAIN).unwrap();
            assert!(head.contains(&std::format!("Authorization: Basic {want}\r\n")), "{head}");
            assert!(head.contains("Host: h\r\n"));
        }
        let own = Terms { fields: b"Authorization: Bearer t", basic: Some((b"u", b"p")), ..PLAIN };
        assert_eq!(text("http://u:p@h/", own).unwrap().matches("Authorization").count(), 1);
    }

    #[test]
    fn fields_that_would_break_a_head_are_refused() {
        for good in ["", "A: b", "A:b\r\nC: d\te\r\n", "A:", "x-y_z: \u{e9}"] {
            assert_eq!(check_fields(good.as_bytes()), Ok(()), "{good}");
        }
        for bad in [
            "A",
            ": b",
            "A : b",
            " A: b",
            "A: b\rC: d",
            "A: \0",
            "host: x",
            "Content-length: 1",
            "TRANSFER-ENCODING: x",
            "Range: bytes=0-",
            "A: b\r\n C: d",
        ] {
            assert_eq!(check_fields(bad.as_bytes()), Err(Error::Invalid), "{bad}");
        }
        assert_eq!(check_fields(&[b'a'; MAX_FIELD_TEXT + 1]), Err(Error::MessageSize));
        let long = std::format!("A: {}", "b".repeat(MAX_FIELD_TEXT - 3));
        let url = std::format!("http://a/{}", " ".repeat(super::super::MAX_URL - 9));
        assert_eq!(text(&url, Terms { fields: long.as_bytes(), ..PLAIN }), Err(Error::MessageSize));
        assert!(text("http://a/", Terms { fields: long.as_bytes(), ..PLAIN }).is_ok());
    }
}
