//! Addresses of files: `http` URLs (RFC 9110 §4.2.1, RFC 3986 §3), and where a redirect leads from one (RFC 3986 §5.2).
//! Names are looked up elsewhere.

use super::{MAX_URL, PORT, decimal, same};
use crate::storage::error::{Error, Result};

/// The parts of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Url<'u> {
    /// User name and password as they stand there, with a colon between.
    pub userinfo: Option<&'u [u8]>,
    /// Name or dotted address.
    pub host: &'u [u8],
    /// Port.
    pub port: u16,
    /// Host and port as they stand there: what the field Host says.
    pub authority: &'u [u8],
    /// Path; empty for "/".
    pub path: &'u [u8],
    /// What follows the path: a question mark and a query, or nothing.
    pub query: &'u [u8],
}

/// Whether the bytes could be an IPv6 address between brackets (RFC 3986 §3.2.2).
fn is_ipv6(text: &[u8]) -> bool {
    let allowed = |b: &u8| b.is_ascii_hexdigit() || matches!(b, b':' | b'.');
    let address = text.split(|b| *b == b'%').next().unwrap_or(&[]);
    address.len() >= 2 && address.iter().all(allowed) && address.iter().filter(|b| **b == b':').count() >= 2
}

fn cut(text: &[u8], at: impl Fn(&u8) -> bool) -> (&[u8], &[u8]) {
    let end = text.iter().position(at).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, &[]))
}

/// The scheme of a URL that has one, and what follows its colon.
fn scheme(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (scheme, rest) = cut(text, |b| !b.is_ascii_alphanumeric() && !matches!(b, b'+' | b'-' | b'.'));
    let rest = rest.strip_prefix(b":")?;
    scheme.first().is_some_and(u8::is_ascii_alphabetic).then_some((scheme, rest))
}

impl<'u> Url<'u> {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// [`Error::Invalid`]: it is none; [`Error::NameTooLong`]: it has more than [`MAX_URL`] bytes; [`Error::NotSupported`]:
    /// its scheme is `https`; [`Error::AddressFamily`]: its host is an IPv6 address.
    pub fn parse(text: &'u [u8]) -> Result<Self> {
        if text.len() > MAX_URL {
            return Err(Error::NameTooLong);
        }
        if text.iter().any(u8::is_ascii_control) {
            return Err(Error::Invalid);
        }
        let (scheme, rest) = scheme(text).ok_or(Error::Invalid)?;
        if same(scheme, b"https") {
            return Err(Error::NotSupported);
        }
        let rest = rest.strip_prefix(b"//").filter(|_| same(scheme, b"http")).ok_or(Error::Invalid)?;
        let (authority, rest) = cut(rest, |b| matches!(b, b'/' | b'?' | b'#'));
        let (rest, _) = cut(rest, |b| *b == b'#');
        let (path, query) = cut(rest, |b| *b == b'?');
        let (userinfo, authority) = match authority.iter().rposition(|b| *b == b'@') {
            Some(at) => (authority.get(..at), authority.get(at.saturating_add(1)..).unwrap_or(&[])),
            None => (None, authority),
        };
        if let Some(rest) = authority.strip_prefix(b"[") {
            let (address, end) = cut(rest, |b| *b == b']');
            let port = end.strip_prefix(b"]").ok_or(Error::Invalid)?;
            Self::port(port)?;
            return Err(if is_ipv6(address) { Error::AddressFamily } else { Error::Invalid });
        }
        let (host, port) = cut(authority, |b| *b == b':');
        let port = Self::port(port)?;
        let allowed = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
        if host.is_empty() || !host.iter().all(allowed) {
            return Err(Error::Invalid);
        }
        if host.len() > super::get::MAX_NAME {
            return Err(Error::NameTooLong);
        }
        Ok(Url { userinfo, host, port, authority, path, query })
    }

    /// The port behind a host: empty, or a colon and perhaps a number.
    fn port(text: &[u8]) -> Result<u16> {
        match text.split_first() {
            None | Some((b':', [])) => Ok(PORT),
            Some((b':', digits)) => {
                let number = decimal(digits).flatten().and_then(|n| u16::try_from(n).ok());
                number.filter(|port| *port != 0).ok_or(Error::Invalid)
            }
            _ => Err(Error::Invalid),
        }
    }
}

/// A URL that is being put together.
pub type Text = heapless::Vec<u8, MAX_URL>;

fn put(to: &mut Text, part: &[u8]) -> Result<()> {
    to.extend_from_slice(part).map_err(|_| Error::NameTooLong)
}

/// Moves `len` bytes of `text` from `from` down to `to`.
fn move_down(text: &mut Text, from: usize, to: usize, len: usize) {
    for n in 0..len {
        let byte = text.get(from.wrapping_add(n)).copied();
        if let (Some(byte), Some(place)) = (byte, text.get_mut(to.wrapping_add(n))) {
            *place = byte;
        }
    }
}

/// Removes the segments "." and ".." of the path that `text` ends with, from `root` on (RFC 3986 §5.2.4). What is kept never
/// moves up, so that it can be done in place.
fn remove_dots(text: &mut Text, root: usize) {
    let (mut to, mut from) = (root, root);
    while let Some((b'/', rest)) = text.get(from..).and_then(<[u8]>::split_first) {
        let (segment, after) = cut(rest, |b| *b == b'/');
        let (len, ends) = (segment.len().saturating_add(1), after.is_empty());
        let (dot, dots) = (segment == b".", segment == b"..");
        if dots {
            let kept = text.get(root..to).and_then(|path| path.iter().rposition(|b| *b == b'/')).unwrap_or(0);
            to = root.saturating_add(kept);
        }
        // A path that ends with such a segment ends with a slash.
        let keeps = if !dot && !dots { len } else { usize::from(ends) };
        move_down(text, from, to, keeps);
        to = to.saturating_add(keeps);
        from = from.saturating_add(len);
    }
    text.truncate(to);
}

/// Turns `url` into what `location` leads to from there (RFC 3986 §5.2.2), without a fragment.
///
/// # Errors
/// [`Error::NameTooLong`]; as [`Url::parse`] for what it leads to; [`Error::NotSupported`]: another scheme. Then `url` is of
/// no use.
pub fn resolve(url: &mut Text, location: &[u8]) -> Result<()> {
    let (location, _) = cut(location, |b| *b == b'#');
    if let Some((scheme, _)) = scheme(location) {
        if !same(scheme, b"http") {
            return Err(Error::NotSupported);
        }
        url.clear();
    } else if location.starts_with(b"//") {
        url.clear();
        put(url, b"http:")?;
    } else {
        return resolve_path(url, location);
    }
    put(url, location)?;
    Url::parse(url).map(|_| ())
}

/// The same for a location on the same host.
fn resolve_path(url: &mut Text, location: &[u8]) -> Result<()> {
    let base = Url::parse(url)?;
    // Who is to be told the user name and the password is decided elsewhere.
    let front = b"http://".len();
    let user = base.userinfo.map_or(0, |user| user.len().saturating_add(1));
    let root = front.saturating_add(base.authority.len());
    let path_end = root.saturating_add(base.path.len());
    let query_end = path_end.saturating_add(base.query.len());
    let folder = base.path.iter().rposition(|b| *b == b'/').map_or(0, |end| end.saturating_add(1));
    let len = url.len().saturating_sub(user);
    move_down(url, front.saturating_add(user), front, len);
    url.truncate(len);
    if location.is_empty() {
        url.truncate(query_end);
        return Ok(());
    }
    let (path, query) = cut(location, |b| *b == b'?');
    if path.is_empty() {
        url.truncate(path_end);
    } else {
        url.truncate(root.saturating_add(if path.starts_with(b"/") { 0 } else { folder }));
        if url.len() == root && !path.starts_with(b"/") {
            put(url, b"/")?;
        }
        put(url, path)?;
        remove_dots(url, root);
    }
    put(url, query)?;
    Url::parse(url).map(|_| ())
}

/// The bytes of a text in which some stand as a percent sign and two digits (RFC 3986 §2.1); what is no such triple stands
/// for itself.
pub fn decoded(text: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|d| d as u8);
    let mut rest = text;
    core::iter::from_fn(move || {
        let (first, tail) = rest.split_first()?;
        if let (b'%', [a, b, after @ ..]) = (first, tail)
            && let (Some(a), Some(b)) = (digit(*a), digit(*b))
        {
            rest = after;
            return Some(a << 4 | b);
        }
        rest = tail;
        Some(*first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn parts(text: &str) -> Result<(&str, u16, &str, &str, &str)> {
        let str = |b| core::str::from_utf8(b).unwrap();
        Url::parse(text.as_bytes()).map(|u| (str(u.host), u.port, str(u.authority), str(u.path), str(u.query)))
    }

    #[test]
    fn urls_are_taken_apart() {
        assert_eq!(parts("http://a/b/c?d#e"), Ok(("a", 80, "a", "/b/c", "?d")));
        assert_eq!(parts("HTTP://10.0.0.1:8080"), Ok(("10.0.0.1", 8080, "10.0.0.1:8080", "", "")));
        assert_eq!(parts("http://a.b-c_d:/x"), Ok(("a.b-c_d", 80, "a.b-c_d:", "/x", "")));
        assert_eq!(parts("http://u:p@a?x=http://y/@z"), Ok(("a", 80, "a", "", "?x=http://y/@z")));
        assert_eq!(parts("http://a#/b?c"), Ok(("a", 80, "a", "", "")));
        assert_eq!(Url::parse(b"http://u%20:p@w@a/").unwrap().userinfo, Some(&b"u%20:p@w"[..]));
        assert_eq!(decoded(b"u%20%3a%4%zz%").collect::<Vec<u8>>(), b"u :%4%zz%");
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for text in [
            "",
            "a",
            "/a",
            "http:",
            "http:/a",
            "http://",
            "http:///a",
            "http://:80/",
            "ftp://a/",
            "http://a:0/",
            "http://a:65536/",
            "http://a:-1/",
            "http://a:+1/",
            "http://a: 80/",
            "http://a b/",
            "http://a:80:80/",
            "http://[::1/",
            "http://[::1]x/",
            "http://[a]/",
            "http://[zz::]/",
            "http://a/\r\nX: y",
            "http://\u{e9}/",
            "http://a,b/",
        ] {
            assert_eq!(parts(text), Err(Error::Invalid), "{text}");
        }
        assert_eq!(parts("https://a/"), Err(Error::NotSupported));
        for text in
            ["http://[::1]/", "http://[2001:db8::1]:8080/x", "http://[::ffff:10.0.0.1]", "http://[fe80::1%25eth0]/"]
        {
            assert_eq!(parts(text), Err(Error::AddressFamily), "{text}");
        }
        let long = std::format!("http://a/{}", "x".repeat(MAX_URL - 9));
        assert_eq!(parts(&long).map(|p| p.0), Ok("a"));
        assert_eq!(parts(&(long + "x")), Err(Error::NameTooLong));
        let name = "x".repeat(254);
        assert_eq!(parts(&std::format!("http://{name}/")), Err(Error::NameTooLong));
        assert!(parts(&std::format!("http://{}/", &name[1..])).is_ok());
    }

    #[test]
    fn redirects_lead_where_rfc_3986_says() {
        let from = |base: &[u8], location: &[u8]| {
            let mut url = Text::from_slice(base).unwrap();
            resolve(&mut url, location).map(|()| std::string::String::from_utf8(url.to_vec()).unwrap())
        };
        let resolve = |location: &[u8]| from(b"http://u@a:81/b/c/d;p?q", location);
        // RFC 3986 §5.4, as far as it is about http.
        for (location, target) in [
            ("http://g", "http://g"),
            ("HTTP://g:8/x#y", "HTTP://g:8/x"),
            ("//g/h", "http://g/h"),
            ("g", "http://a:81/b/c/g"),
            ("./g", "http://a:81/b/c/g"),
            ("g/", "http://a:81/b/c/g/"),
            ("/g", "http://a:81/g"),
            ("?y", "http://a:81/b/c/d;p?y"),
            ("g?y", "http://a:81/b/c/g?y"),
            ("#s", "http://a:81/b/c/d;p?q"),
            ("g#s", "http://a:81/b/c/g"),
            (";x", "http://a:81/b/c/;x"),
            (".", "http://a:81/b/c/"),
            ("./", "http://a:81/b/c/"),
            ("..", "http://a:81/b/"),
            ("../g", "http://a:81/b/g"),
            ("../..", "http://a:81/"),
            ("../../../../g", "http://a:81/g"),
            ("/./g", "http://a:81/g"),
            ("/../g", "http://a:81/g"),
            ("g.", "http://a:81/b/c/g."),
            ("..g", "http://a:81/b/c/..g"),
            ("./g/.", "http://a:81/b/c/g/"),
            ("g/./h", "http://a:81/b/c/g/h"),
            ("g/../h", "http://a:81/b/c/h"),
            ("g?y/../x", "http://a:81/b/c/g?y/../x"),
            ("x:8/y", ""),
        ] {
            let got = resolve(location.as_bytes());
            match target {
                "" => assert_eq!(got, Err(Error::NotSupported), "{location}"),
                _ => assert_eq!(got.as_deref(), Ok(target), "{location}"),
            }
        }
        assert_eq!(resolve(b"https://g/"), Err(Error::NotSupported));
        assert_eq!(resolve(b"http://[::1]/"), Err(Error::AddressFamily));
        assert_eq!(resolve(&[b'x'; MAX_URL]), Err(Error::NameTooLong));
        for (base, location, target) in [
            ("http://a", "g", "http://a/g"),
            ("http://a", "..", "http://a/"),
            ("http://a?q", "", "http://a?q"),
            ("http://a?q", "?r", "http://a?r"),
            ("HTTP://u:p@a:1/b/c?q#f", "", "HTTP://a:1/b/c?q"),
            ("http://u@a/b/c#f", "d/..", "http://a/b/"),
            ("http://a/b/./c/d", "../../../../e/./f//g", "http://a/e/f//g"),
        ] {
            assert_eq!(from(base.as_bytes(), location.as_bytes()).as_deref(), Ok(target), "{base} {location}");
        }
    }
}
