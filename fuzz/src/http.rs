//! Responses of HTTP servers: heads, redirects, and bodies cut in any pieces.

use bootlace::client::http::body::{Chunk, Framing};
use bootlace::client::http::head::{Head, Scan, field, reason};
use bootlace::client::http::url::{Text, Url, resolve};
use bootlace::client::http::{Fault, MAX_HEAD};

/// Where a head ends, read in pieces of `piece` bytes.
fn end_of_head(bytes: &[u8], piece: usize) -> Option<usize> {
    let (mut scan, mut at) = (Scan::default(), 0);
    for part in bytes.chunks(piece) {
        let (count, ended) = scan.feed(part);
        at += count;
        if ended {
            return Some(at);
        }
    }
    None
}

/// The data of a body, what is left behind it, and whether it ended, read in pieces of `piece` bytes.
fn body(mut framing: Framing, bytes: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool), Fault> {
    let (mut data, mut at) = (Vec::new(), 0);
    while at < bytes.len() && !framing.is_over() {
        let part = &bytes[at..at.saturating_add(piece).min(bytes.len())];
        let left = framing.data();
        let count = if left > 0 {
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(part.len());
            data.extend_from_slice(&part[..count]);
            framing.took(count as u64);
            count
        } else {
            framing.frame(part)?
        };
        assert!(count > 0, "it goes on");
        at += count;
    }
    Ok((data, bytes.len() - at, framing.is_over()))
}

/// A response, the size of its pieces before it; `true`: it came whole.
pub fn response(data: &[u8]) -> bool {
    let Some((piece, bytes)) = data.split_first() else { return false };
    let piece = usize::from(*piece).max(1);
    let end = end_of_head(bytes, piece);
    assert_eq!(end, end_of_head(bytes, usize::MAX), "pieces do not matter");
    let Some(end) = end.filter(|end| *end <= MAX_HEAD) else { return false };
    let (text, rest) = bytes.split_at(end);
    let _ = reason(text);
    let mut url = Text::default();
    url.extend_from_slice(b"http://a:81/b/c?d").expect("short enough");
    if let Some(location) = field(text, b"Location")
        && resolve(&mut url, location).is_ok()
    {
        let _ = Url::parse(&url).expect("a redirect leads to a URL");
    }
    let Ok(head) = Head::parse(text) else { return false };
    let framing = match head.length {
        _ if head.chunked => Framing::Chunked(Chunk::FIRST),
        Some(length) => Framing::Length(length),
        None => Framing::UntilEnd,
    };
    let whole = body(framing, rest, usize::MAX);
    assert_eq!(whole, body(framing, rest, piece), "pieces do not matter");
    match whole {
        Ok((data, left, over)) => {
            assert!(data.len() + left <= rest.len());
            over && left == 0
        }
        Err(_) => false,
    }
}
