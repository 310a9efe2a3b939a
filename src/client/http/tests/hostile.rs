//! Servers that lie: each lie has an error of its own, and takes no more work than a true answer.

use super::*;
use crate::sim::http_server::Then;
use crate::storage::error::Error;
use std::{format, vec};

/// What an answer to every request comes to, in memory of 1000 bytes.
fn answered(bytes: impl Into<Vec<u8>>, then: Then) -> (Result<u64>, String, Lab) {
    let answer = Answer { bytes: bytes.into(), piece: 0, then };
    let mut lab = Lab::new();
    lab.answer(move |_| answer.clone());
    let (result, _) = lab.run(1000, |_| ());
    let text = lab.detail().1;
    (result, text, lab)
}

fn with_fields(fields: &str, body: &str) -> (Result<u64>, String) {
    let (result, text, _) = answered(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}"), Then::Keep);
    (result, text)
}

#[test]
fn a_head_of_a_megabyte_is_given_up_after_four_kilobytes() {
    let mut head = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
    head.resize(1 << 20, b'x');
    let (result, text, lab) = answered(head, Then::Keep);
    assert_eq!((result, text.as_str()), (Err(Error::MessageSize), "head too long"));
    assert!(lab.link.delivered < 30, "{} frames", lab.link.delivered);
    let lines = |n| format!("HTTP/1.1 200 OK\r\n{}Content-Length: 1\r\n\r\nx", "A: b\r\n".repeat(n));
    assert_eq!(answered(lines(64), Then::Keep).1, "too many fields in the head");
    assert_eq!(answered(lines(63), Then::Keep).0, Ok(1));
    let field = |n| format!("HTTP/1.1 200 OK\r\nA: {}\r\nContent-Length: 1\r\n\r\nx", "b".repeat(n));
    assert_eq!(answered(field(super::super::MAX_HEAD - 43), Then::Keep).0, Ok(1));
    assert_eq!(answered(field(super::super::MAX_HEAD - 42), Then::Keep).0, Err(Error::MessageSize));
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    let result = |fields| with_fields(fields, "abc");
    assert_eq!(result("Content-Length: 3"), (Ok(3), String::new()));
    assert_eq!(result("Content-Length: -3"), (Err(Error::Protocol), "Content-Length is no number".into()));
    let two = "Content-Length has two values";
    assert_eq!(result("Content-Length: 3\r\nContent-Length: 4"), (Err(Error::Protocol), two.into()));
    assert_eq!(result("Content-Length: 3\r\nContent-Length: 3"), (Ok(3), String::new()));
    let large = "Content-Length too large";
    assert_eq!(result("Content-Length: 18446744073709551616"), (Err(Error::TooBig), large.into()));
    assert_eq!(result("Content-Length: 9223372036854775807"), (Err(Error::TooBig), String::new()), "than the sink");
    assert_eq!(result("Content-Encoding: gzip"), (Err(Error::NotSupported), "content is coded".into()));
    assert_eq!(result("Transfer-Encoding: gzip"), (Err(Error::NotSupported), "unknown transfer coding".into()));
}

#[test]
fn chunks_that_cannot_be_are_refused() {
    let result = |body| with_fields("Transfer-Encoding: chunked", body);
    assert_eq!(result("3\r\nabc\r\n0\r\n\r\n"), (Ok(3), String::new()));
    let large = "chunk too large";
    assert_eq!(result("10000000000000000\r\nabc"), (Err(Error::TooBig), large.into()));
    assert_eq!(result("ffffffffffffffff\r\nabc"), (Err(Error::TooBig), large.into()));
    assert_eq!(result("7fffffffffffffff\r\nabc"), (Err(Error::TooBig), String::new()), "than the sink");
    assert_eq!(result("-1\r\nabc"), (Err(Error::Protocol), "malformed chunk".into()));
    assert_eq!(result("3\r\nabcd\r\n0\r\n\r\n"), (Err(Error::Protocol), "malformed chunk".into()));
    let trailer = format!("0\r\nA: {}\r\n\r\n", "b".repeat(5000));
    assert_eq!(result(&trailer), (Err(Error::MessageSize), "trailer too long".into()));
    let (result, text, _) = answered(
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}", "1;".to_string() + &"x".repeat(10_000)),
        Then::Keep,
    );
    assert_eq!((result, text.as_str()), (Err(Error::Protocol), "malformed chunk"));
}

#[test]
fn a_body_is_neither_longer_nor_shorter_than_promised() {
    assert_eq!(with_fields("Content-Length: 3", "abcd"), (Err(Error::Protocol), "body longer than promised".into()));
    let chunked = with_fields("Transfer-Encoding: chunked", "3\r\nabc\r\n0\r\n\r\nd");
    assert_eq!(chunked, (Err(Error::Protocol), "body longer than promised".into()));
    let ok = "HTTP/1.1 200 OK\r\n";
    for (text, then, error) in [
        ("Content-Length: 4\r\n\r\nabc", Then::Close, Error::EndOfFile),
        ("Content-Length: 4\r\n\r\nabc", Then::Reset, Error::ConnectionReset),
        ("Content-Length: 900\r\n\r\nabc", Then::Close, Error::EndOfFile),
        ("Content-Length: 4\r\n\r\n", Then::Close, Error::EndOfFile),
        ("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", Then::Close, Error::EndOfFile),
        ("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", Then::Close, Error::EndOfFile),
        ("Transfer-Encoding: chunked\r\n\r\n300\r\nabc", Then::Reset, Error::ConnectionReset),
        ("\r\nabc", Then::Reset, Error::ConnectionReset),
        ("Content-Length: 4\r\n", Then::Close, Error::ConnectionReset),
        ("", Then::Reset, Error::ConnectionReset),
    ] {
        let (result, _, lab) = answered(format!("{ok}{text}"), then);
        assert_eq!(result, Err(error), "{text}");
        assert!(lab.server.requests.len() <= 9);
    }
    // With a validator it is asked for again, but not for ever.
    let short = format!("{ok}ETag: \"a\"\r\nContent-Length: 4\r\n\r\nabc");
    let (result, _, lab) = answered(short, Then::Close);
    assert_eq!((result, lab.server.requests.len()), (Err(Error::EndOfFile), 9));
    assert_eq!(answered(format!("{ok}\r\nabc"), Then::Close).0, Ok(3), "what ends with the stream is whole");
}

#[test]
fn redirects_end() {
    let mut lab = Lab::new();
    let mut n = 0;
    lab.answer(move |_| {
        n += 1;
        Answer::new(format!("HTTP/1.1 302 Found\r\nLocation: /{n}\r\nContent-Length: 0\r\n\r\n"))
    });
    assert_eq!(lab.run(1, |_| ()).0, Err(Error::Loop));
    assert_eq!(lab.server.requests.len(), 9);
    let to = |fields: &str| {
        let (result, text, _) =
            answered(format!("HTTP/1.1 302 Found\r\n{fields}Content-Length: 0\r\n\r\n"), Then::Keep);
        (result.unwrap_err(), text)
    };
    let nowhere = "redirect to no usable address";
    assert_eq!(to(""), (Error::Protocol, nowhere.into()));
    assert_eq!(to("Location: http://\r\n"), (Error::Protocol, nowhere.into()));
    assert_eq!(to("Location: https://a/\r\n"), (Error::NotSupported, nowhere.into()));
    assert_eq!(to("Location: http://[::1]/\r\n"), (Error::AddressFamily, nowhere.into()));
    assert_eq!(to(&format!("Location: /{}\r\n", "x".repeat(2000))), (Error::Protocol, nowhere.into()));
    // A body that does not end is not waited for.
    let mut lab = Lab::new();
    lab.answer(|seen| match seen.line()[1] {
        "/f" => Answer::new(format!("HTTP/1.1 302 Found\r\nLocation: /g\r\n\r\n{}", "x".repeat(100_000))),
        _ => Answer::new("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny"),
    });
    assert_eq!(lab.run(1, |_| ()), (Ok(1), b"y".to_vec()));
}

#[test]
fn a_file_that_changed_between_its_parts_is_never_whole() {
    let (old, new) = (bytes(40_000), vec![7; 40_000]);
    let part = |tag: &str, first: usize, file: &[u8]| {
        let len = file.len();
        let mut text = format!(
            "HTTP/1.1 206 Part\r\nContent-Range: bytes {first}-{}/{len}\r\n{tag}Content-Length: {}\r\n\r\n",
            len - 1,
            len - first
        )
        .into_bytes();
        text.extend_from_slice(&file[first..]);
        Answer::new(text)
    };
    let from = |seen: &Seen| -> Option<usize> {
        seen.field("Range").map(|r| r.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap())
    };
    let run = |again: Box<dyn Fn(usize) -> Answer>| {
        let mut lab = Lab::new();
        lab.server.cuts = vec![20_000];
        let first = [&b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 40000\r\n\r\n"[..], &bytes(40_000)].concat();
        lab.answer(move |seen| match from(seen) {
            None => Answer::new(first.clone()),
            Some(at) => again(at),
        });
        let (result, memory) = lab.run(40_000, |_| ());
        (result, memory == bytes(40_000), lab.detail().1)
    };
    // Honest: another file is sent whole, which it cannot be used for.
    let whole = [&b"HTTP/1.1 200 OK\r\nETag: \"b\"\r\nContent-Length: 40000\r\n\r\n"[..], &new].concat();
    assert_eq!(run(Box::new(move |_| Answer::new(whole.clone()))), (Err(Error::Changed), false, String::new()));
    // A server that does not know If-Range.
    let file = new.clone();
    let changed = (Err(Error::Changed), false, String::new());
    assert_eq!(run(Box::new(move |at| part("ETag: \"b\"\r\n", at, &file))), changed);
    // Another length.
    let longer = bytes(40_001);
    assert_eq!(run(Box::new(move |at| part("ETag: \"a\"\r\n", at, &longer))), changed);
    // It became shorter than what came.
    let gone = "HTTP/1.1 416 Gone\r\nContent-Range: bytes */9\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(run(Box::new(move |_| Answer::new(gone))), changed);
    // Parts that are not those asked for.
    let other = (Err(Error::Protocol), false, "not the range asked for".to_string());
    for shift in [-1isize, 1, 100] {
        let file = old.clone();
        let again = move |at: usize| part("ETag: \"a\"\r\n", at.wrapping_add_signed(shift), &file);
        assert_eq!(run(Box::new(again)), other);
    }
    let none = "HTTP/1.1 206 Part\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(run(Box::new(move |_| Answer::new(none))), other);
    let bare = move |at: usize| {
        Answer::new(format!(
            "HTTP/1.1 206 Part\r\nContent-Range: bytes {at}-39999/40000\r\nContent-Length: 3\r\n\r\nabc"
        ))
    };
    assert_eq!(run(Box::new(bare)), other);
    // The twin: the same file, also in small parts.
    let file = old.clone();
    assert_eq!(run(Box::new(move |at| part("ETag: \"a\"\r\n", at, &file))).0, Ok(40_000));
    let file = old.clone();
    let small = move |at: usize| {
        let end = (at + 5000).min(40_000);
        let head = format!(
            "HTTP/1.1 206 Part\r\nContent-Range: bytes {at}-{}/40000\r\nContent-Length: {}\r\n\r\n",
            end - 1,
            end - at
        );
        Answer::new([head.as_bytes(), &file[at..end]].concat())
    };
    let (result, same, _) = run(Box::new(small));
    assert!(result == Ok(40_000) && same);
    // Nobody asked for a part.
    let unasked = "HTTP/1.1 206 Part\r\nContent-Range: bytes 0-2/3\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(answered(unasked, Then::Keep).1, "not the range asked for");
}

#[test]
fn one_byte_per_segment_is_slow_but_right() {
    let file = bytes(700);
    for chunked in [false, true] {
        let mut text = b"HTTP/1.1 200 OK\r\n".to_vec();
        if chunked {
            text.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            file.chunks(300)
                .for_each(|c| text.extend([format!("{:x};e\r\n", c.len()).as_bytes(), c, b"\r\n"].concat()));
            text.extend(b"0\r\nT: x\r\n\r\n");
        } else {
            text.extend(b"Content-Length: 700\r\n\r\n");
            text.extend(&file);
        }
        let frames = text.len() as u64;
        let answer = Answer { bytes: text, piece: 1, then: Then::Keep };
        let mut lab = Lab::new();
        lab.answer(move |_| answer.clone());
        lab.whole(&file);
        assert!(lab.link.delivered >= frames && lab.link.delivered < frames + 20, "a frame for each byte");
    }
}

#[test]
fn what_is_no_http_is_refused() {
    for text in [
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/2 200\r\n\r\n",
        "\r\n\r\n",
        "<html>\n\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
    ] {
        let (result, detail, lab) = answered(text, Then::Keep);
        assert_eq!((result, detail.as_str()), (Err(Error::Protocol), "not an HTTP/1 response"), "{text}");
        assert_eq!(lab.server.requests.len(), 1);
    }
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    let (result, text, _) = answered(interim.repeat(9), Then::Keep);
    assert_eq!((result, text.as_str()), (Err(Error::Protocol), "unexpected interim response"));
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(answered(interim.repeat(8) + ok, Then::Keep).0, Ok(1));
    let switch = "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n";
    assert_eq!(answered(switch, Then::Keep).1, "unexpected interim response");
}
