//! What works: all kinds of bodies and sinks, parts, redirects, credentials, connections used again.

use super::*;
use crate::client::operation::DetailKind;
use crate::sim::host::splitmix;
use crate::sim::http_server::{Style, Then};
use crate::storage::error::Error;
use std::format;
use std::vec;

#[test]
fn files_come_whole_however_their_ends_are_told() {
    for style in [Style::Length, Style::Chunks(1), Style::Chunks(1000), Style::Chunks(70_000), Style::UntilEnd] {
        for len in [0, 1, 255, 256, 257, 8191, 8193, 300_001] {
            if style == Style::Chunks(1) && len > 10_000 {
                continue;
            }
            let file = bytes(len);
            let mut lab = Lab::new();
            lab.server.add("/f", &file, "\"a\"");
            lab.server.style = style;
            lab.whole(&file);
            assert_eq!(lab.server.requests.len(), 1, "{style:?} {len}");
            let op = lab.rig.engine.ops.get(lab.last.unwrap()).unwrap();
            assert_eq!(op.progress.done, len as u64);
            assert_eq!(op.progress.total, Some(len as u64));
            assert_eq!((lab.get().status(), lab.field("etag").as_deref()), (Some(200), Some("\"a\"")));
        }
    }
}

#[test]
fn a_head_tells_the_length_and_brings_no_bytes() {
    let mut lab = Lab::new();
    lab.server.add("/f", &bytes(12_345), "\"a\"");
    let (result, memory) = lab.run(4, |r| r.method = Method::Head);
    assert_eq!((result, memory), (Ok(12_345), vec![0xa5; 4]));
    assert_eq!(lab.server.requests[0].line(), ["HEAD", "/f", "HTTP/1.1"]);
    assert_eq!(lab.field("Content-Length").as_deref(), Some("12345"));
    // The connection serves the next request.
    lab.run(4, |r| r.method = Method::Head).0.unwrap();
    assert_eq!((lab.server.accepted, lab.server.requests.len()), (1, 2));
    lab.server.style = Style::Chunks(10);
    assert_eq!(lab.run(4, |r| r.method = Method::Head).0, Ok(0), "not told");
}

#[test]
fn the_request_says_what_it_must() {
    let mut lab = Lab::new();
    lab.server.add("/f?x=1", b"abc", "");
    let change = |r: &mut Req| {
        r.url = format!("http://{}:8080/f?x=1#part", SERVER.ip).into_bytes();
        r.user = Some((b"Aladdin".to_vec(), b"open sesame".to_vec()));
        r.fields = Some(b"X-Serial: 7\r\n".to_vec());
    };
    assert_eq!(lab.run(3, change), (Ok(3), b"abc".to_vec()));
    let seen = &lab.server.requests[0];
    assert_eq!((seen.port, seen.line()), (8080, vec!["GET", "/f?x=1", "HTTP/1.1"]));
    assert_eq!(seen.field("host"), Some(format!("{}:8080", SERVER.ip).as_str()));
    assert_eq!(seen.field("authorization"), Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
    assert_eq!((seen.field("x-serial"), seen.field("accept-encoding")), (Some("7"), Some("identity")));
    assert_eq!((seen.field("range"), seen.field("connection")), (None, None));
}

#[test]
fn requests_that_cannot_be_made_are_refused_at_once() {
    let new = |change: &dyn Fn(&mut Req)| {
        let mut request = Lab::request("/f", Sink::Discard);
        change(&mut request);
        Get::new(request).err()
    };
    assert_eq!(new(&|_| ()), None);
    assert_eq!(new(&|r| r.url = b"https://a/".to_vec()), Some(Error::NotSupported));
    assert_eq!(new(&|r| r.url = b"http://[::1]/".to_vec()), Some(Error::AddressFamily));
    assert_eq!(new(&|r| r.fields = Some(b"Host: x".to_vec())), Some(Error::Invalid));
    assert_eq!(new(&|r| r.user = Some((b"a:b".to_vec(), vec![]))), Some(Error::Invalid));
    assert_eq!(new(&|r| r.user = Some((b"a".to_vec(), vec![b'x'; 256]))), Some(Error::NameTooLong));
    assert_eq!(new(&|r| r.if_range = Some(b"W/\"a\"".to_vec())), Some(Error::Invalid));
    assert_eq!(new(&|r| r.if_range = Some(b"\"a\"\r\nX: y".to_vec())), Some(Error::Invalid));
}

#[test]
fn parts_are_asked_for_and_taken_out_where_none_are_given() {
    let file = bytes(50_000);
    for (ranges, style) in
        [(true, Style::Length), (true, Style::Chunks(777)), (false, Style::Length), (false, Style::Chunks(777))]
    {
        let mut lab = Lab::new();
        lab.server.add("/f", &file, "\"a\"");
        (lab.server.ranges, lab.server.style) = (ranges, style);
        for (offset, len) in [
            (0u64, 1),
            (0, 50_000),
            (1, 49_999),
            (30_000, u64::MAX),
            (49_999, 1),
            (49_999, 50),
            (10_000, 20_000),
            (0, 0),
            (7, 0),
        ] {
            let want = &file[offset as usize..(offset.saturating_add(len) as usize).min(file.len())];
            let (result, memory) = lab.run(want.len(), |r| (r.offset, r.len) = (offset, len));
            assert_eq!(result, Ok(want.len() as u64), "{ranges} {offset} {len}");
            assert!(memory == want, "{ranges} {style:?} {offset} {len}");
            assert_eq!(lab.get().status(), Some(if ranges { 206 } else { 200 }));
        }
        // At the end there is nothing, and beyond it that is an error.
        assert_eq!(lab.run(10, |r| r.offset = 50_000).0, Ok(0), "{ranges} {style:?}");
        assert_eq!(lab.run(10, |r| r.offset = 50_001).0, Err(Error::EndOfFile), "{ranges} {style:?}");
    }
}

#[test]
fn a_rest_is_fetched_later_if_the_file_is_the_same() {
    let file = bytes(10_000);
    let mut lab = Lab::new();
    lab.server.add("/f", &file, "\"a\"");
    lab.run(4000, |r| r.len = 4000).0.unwrap();
    assert_eq!(lab.get().validator(&lab.rig.engine.shared), b"\"a\"");
    let resume = |r: &mut Req| (r.offset, r.if_range) = (4000, Some(b"\"a\"".to_vec()));
    let (result, memory) = lab.run(6000, resume);
    assert!(result == Ok(6000) && memory == file[4000..]);
    assert_eq!(lab.server.requests.last().unwrap().field("If-Range"), Some("\"a\""));
    // A server without parts gives the whole, whose beginning is passed over.
    lab.server.ranges = false;
    let (result, memory) = lab.run(6000, resume);
    assert!(result == Ok(6000) && memory == file[4000..]);
    // Everything was there already.
    lab.server.ranges = true;
    let all = |r: &mut Req| (r.offset, r.if_range) = (10_000, Some(b"\"a\"".to_vec()));
    assert_eq!(lab.run(10, all).0, Ok(0));
    // Another file: the sink gets nothing.
    lab.server.add("/f", &bytes(12_000), "\"b\"");
    for ranges in [true, false] {
        lab.server.ranges = ranges;
        assert_eq!(lab.run(8000, resume), (Err(Error::Changed), vec![0xa5; 8000]));
    }
    // One without a tag of its own may be any.
    lab.server.add("/f", &file, "");
    assert_eq!(lab.run(6000, resume).0, Err(Error::Changed));
    // With a date it goes as well.
    let file = crate::sim::http_server::File {
        data: bytes(9000),
        tag: "W/\"x\"".into(),
        modified: "Tue, 15 Nov 1994 12:45:26 GMT".into(),
    };
    lab.server.files.insert("/g".into(), file);
    lab.server.ranges = true;
    lab.run(9000, |r| r.url = Lab::url("/g")).0.unwrap();
    let date = lab.get().validator(&lab.rig.engine.shared).to_vec();
    assert_eq!(date, b"Tue, 15 Nov 1994 12:45:26 GMT");
    let (result, memory) = lab.run(8999, |r| (r.url, r.offset, r.if_range) = (Lab::url("/g"), 1, Some(date)));
    assert!(result == Ok(8999) && memory == bytes(9000)[1..]);
}

#[test]
fn a_broken_connection_is_taken_up_where_it_broke() {
    let file = bytes(60_000);
    let mut seed = 5;
    for style in [Style::Length, Style::Chunks(3000)] {
        for _ in 0..50 {
            let cut = splitmix(&mut seed) % 60_200;
            let mut lab = Lab::new();
            lab.server.add("/f", &file, "\"a\"");
            lab.server.style = style;
            lab.server.cuts = vec![cut];
            lab.whole(&file);
            assert_eq!(lab.server.requests.len(), 2, "{style:?} cut after {cut} bytes");
            let again = &lab.server.requests[1];
            if let Some(range) = again.field("Range") {
                assert_eq!(again.field("If-Range"), Some("\"a\""));
                let from: u64 = range.strip_prefix("bytes=").unwrap().trim_end_matches('-').parse().unwrap();
                assert!(from <= cut && from + 200 + cut / 400 >= cut, "{range} after {cut}: nothing comes twice");
            }
        }
    }
    // Several in a row, at a writer that takes little.
    let mut lab = Lab::new();
    lab.server.add("/f", &file, "\"a\"");
    lab.server.cuts = vec![500, 9000, 20_000, 1, 3000];
    let writer = SimWriter::default();
    writer.0.borrow_mut().appetite = vec![700; 50].into();
    let op = lab.start(Lab::request("/f", Sink::Writer(writer.clone()))).unwrap();
    assert_eq!(lab.finish(op), Ok(60_000));
    assert!(writer.0.borrow().taken == file);
    assert_eq!(lab.server.requests.len(), 6);
}

#[test]
fn a_server_that_breaks_for_ever_is_left_after_the_retries() {
    let file = bytes(60_000);
    let mut lab = Lab::new();
    lab.server.add("/f", &file, "\"a\"");
    lab.server.cuts = vec![1000; 100];
    assert_eq!(lab.run(60_000, |r| r.tuning.retries = 5).0, Err(Error::ConnectionReset));
    assert_eq!(lab.server.requests.len(), 6);
    // None are wanted.
    lab.server.requests.clear();
    assert_eq!(lab.run(60_000, |r| r.tuning.retries = 0).0, Err(Error::ConnectionReset));
    assert_eq!(lab.server.requests.len(), 1);
    // Without a validator parts cannot be put together.
    lab.server.requests.clear();
    lab.server.add("/f", &file, "");
    let (result, memory) = lab.run(60_000, |_| ());
    assert_eq!((result, lab.server.requests.len()), (Err(Error::ConnectionReset), 1));
    let done = lab.rig.engine.ops.get(lab.last.unwrap()).unwrap().progress.done as usize;
    assert!(done > 800 && memory[..done] == file[..done], "what progress says is right");
}

#[test]
fn redirects_are_followed() {
    let mut lab = Lab::new();
    lab.server.add("/new/f", b"moved", "");
    lab.answer(|seen| match seen.line()[1] {
        "/f" => Answer::new("HTTP/1.1 301 Moved\r\nLocation: /x/../new/g?a\r\nContent-Length: 3\r\n\r\nxyz"),
        "/new/g?a" => {
            Answer::new("HTTP/1.1 302 Found\r\nLocation: f#x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n")
        }
        "/new/f" => Answer::new("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nmoved"),
        _ => unreachable!(),
    });
    assert_eq!(lab.run(5, |_| ()), (Ok(5), b"moved".to_vec()));
    assert_eq!((lab.server.requests.len(), lab.server.accepted), (3, 1), "on one connection");
    assert_eq!(lab.run(5, |r| r.tuning.redirects = 2).0, Ok(5));
    assert_eq!(lab.run(5, |r| r.tuning.redirects = 1).0, Err(Error::Loop));
    assert_eq!(lab.run(5, |r| r.tuning.redirects = 0).0, Err(Error::Loop));
    assert_eq!((lab.get().status(), lab.field("location").as_deref()), (Some(301), Some("/x/../new/g?a")));
}

#[test]
fn credentials_stay_with_their_server() {
    let mut lab = Lab::new();
    let away = format!("http://{}:8080/g", SERVER.ip);
    let back = format!("http://{}/h", SERVER.ip);
    lab.answer(move |seen| match seen.line()[1] {
        "/f" => Answer::new(format!("HTTP/1.1 307 Away\r\nLocation: {away}\r\nContent-Length: 0\r\n\r\n")),
        "/g" => Answer::new(format!("HTTP/1.1 308 Back\r\nLocation: {back}\r\nContent-Length: 0\r\n\r\n")),
        _ => Answer::new("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    });
    let change = |r: &mut Req| {
        r.user = Some((b"u".to_vec(), b"p".to_vec()));
        r.fields = Some(b"Cookie: secret".to_vec());
    };
    assert_eq!(lab.run(0, change).0, Ok(0));
    let told = |n: usize| {
        let seen = &lab.server.requests[n];
        (seen.port, seen.field("Authorization").is_some(), seen.field("Cookie").is_some())
    };
    assert_eq!([told(0), told(1), told(2)], [(80, true, true), (8080, false, false), (80, true, true)]);
}

#[test]
fn refusals_are_told_apart() {
    for (status, error) in [
        (400, Error::Remote),
        (401, Error::Denied),
        (403, Error::Denied),
        (404, Error::NotFound),
        (405, Error::NotSupported),
        (410, Error::NotFound),
        (414, Error::NameTooLong),
        (416, Error::Remote),
        (429, Error::Remote),
        (500, Error::Remote),
        (503, Error::Remote),
        (201, Error::Protocol),
        (300, Error::Protocol),
        (304, Error::Protocol),
        (999, Error::Remote),
    ] {
        let mut lab = Lab::new();
        lab.answer(move |_| Answer::new(format!("HTTP/1.1 {status} So it is\r\nContent-Length: 4\r\n\r\nbody")));
        assert_eq!(lab.run(4, |_| ()), (Err(error), vec![0xa5; 4]), "{status}");
        assert_eq!(lab.detail(), (status, "So it is".into()));
        assert_eq!(lab.rig.engine.ops.get(lab.last.unwrap()).unwrap().detail.kind, DetailKind::Http);
        assert_eq!(lab.get().status(), Some(status as u16));
    }
}

#[test]
fn interim_responses_are_passed_over() {
    let mut lab = Lab::new();
    lab.answer(|_| {
        let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        Answer::new(format!("HTTP/1.1 100 Continue\r\n\r\n{hint}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"))
    });
    assert_eq!(lab.run(2, |_| ()), (Ok(2), b"ab".to_vec()));
    assert_eq!(lab.field("link"), None);
}

#[test]
fn connections_are_used_again_and_closed_in_time() {
    let mut lab = Lab::new();
    lab.server.add("/f", &bytes(5000), "");
    for _ in 0..5 {
        lab.whole(&bytes(5000));
    }
    assert_eq!((lab.server.accepted, lab.server.requests.len()), (1, 5));
    // Another port is another connection.
    lab.run(5000, |r| r.url = format!("http://{}:8080/f", SERVER.ip).into_bytes()).0.unwrap();
    assert_eq!(lab.server.accepted, 2);
    lab.whole(&bytes(5000));
    assert_eq!(lab.server.accepted, 2, "the first still waits");
    lab.wait(Duration::from_secs(5));
    lab.wait(Duration::from_secs(1));
    assert_eq!(lab.server.open(), 0, "closed when nobody came");
    lab.whole(&bytes(5000));
    assert_eq!(lab.server.accepted, 3);
    // None is kept if that is not wanted, or not offered.
    lab.wait(Duration::from_secs(5));
    lab.run(5000, |r| r.tuning.close = true).0.unwrap();
    assert_eq!(lab.server.requests.last().unwrap().field("Connection"), Some("close"));
    lab.wait(Duration::from_millis(100));
    assert_eq!(lab.server.open(), 0);
    lab.answer(|_| Answer::new("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
    lab.run(0, |_| ()).0.unwrap();
    lab.wait(Duration::from_millis(100));
    assert_eq!(lab.server.open(), 0);
}

#[test]
fn a_connection_that_ended_while_it_waited_costs_nothing_but_another() {
    for then in [Then::Close, Then::Reset] {
        let mut lab = Lab::new();
        let mut count = 0;
        lab.answer(move |_| {
            count += 1;
            Answer {
                then: if count == 1 { then } else { Then::Keep },
                ..Answer::new("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
            }
        });
        assert_eq!(lab.run(1, |_| ()).0, Ok(1));
        lab.wait(Duration::from_millis(10));
        assert_eq!(lab.run(1, |r| r.tuning.retries = 0).0, Ok(1));
        assert_eq!(lab.server.accepted, 2);
    }
    // It ends just when the request comes.
    let mut lab = Lab::new();
    lab.answer(|seen| match seen.connection {
        1 if seen.line()[1] == "/g" => Answer { then: Then::Reset, ..Answer::default() },
        _ => Answer::new("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
    });
    assert_eq!(lab.run(1, |_| ()).0, Ok(1));
    assert_eq!(lab.run(1, |r| (r.url, r.tuning.retries) = (Lab::url("/g"), 0)).0, Ok(1));
    assert_eq!((lab.server.accepted, lab.server.requests.len()), (2, 3));
}

#[test]
fn operations_have_jobs_until_they_are_closed() {
    let mut lab = Lab::new();
    lab.server.add("/f", b"abc", "");
    let ops: Vec<Key> = (0..8).map(|_| lab.start(Lab::request("/f", Sink::Discard)).unwrap()).collect();
    // Four connections at a time.
    let results: Vec<_> = ops.iter().map(|op| lab.finish(*op)).collect();
    assert_eq!(results.iter().filter(|r| **r == Ok(3)).count(), 4);
    assert_eq!(results.iter().filter(|r| **r == Err(Error::NoSlot)).count(), 4);
    for op in ops {
        lab.rig.engine.close(op).unwrap();
    }
    // Connections that wait make room for others.
    assert_eq!(lab.run(3, |r| r.url = format!("http://{}:8080/f", SERVER.ip).into_bytes()).0, Ok(3));
}

#[test]
fn a_sink_that_is_too_small_is_told_before_a_byte_is_written() {
    let mut lab = Lab::new();
    lab.server.add("/f", &bytes(1000), "");
    assert_eq!(lab.run(999, |_| ()), (Err(Error::TooBig), vec![0xa5; 999]));
    for style in [Style::Chunks(100), Style::UntilEnd] {
        lab.server.style = style;
        assert_eq!(lab.run(999, |_| ()).0, Err(Error::TooBig));
        assert_eq!(lab.run(1000, |_| ()), (Ok(1000), bytes(1000)), "the nearest that fits");
    }
}

#[test]
fn a_writer_holds_the_server_back_and_may_fail_or_stall() {
    let file = bytes(100_000);
    let mut lab = Lab::new();
    lab.server.add("/f", &file, "");
    let writer = SimWriter::default();
    writer.0.borrow_mut().appetite = vec![100; 500].into();
    let op = lab.start(Lab::request("/f", Sink::Writer(writer.clone()))).unwrap();
    assert_eq!(lab.finish(op), Ok(100_000));
    assert!(writer.0.borrow().taken == file);
    let stuck = SimWriter::default();
    stuck.0.borrow_mut().appetite = vec![0; 1_000_000].into();
    let op = lab.start(Lab::request("/f", Sink::Writer(stuck.clone()))).unwrap();
    let begin = lab.rig.now();
    assert_eq!(lab.finish(op), Err(Error::SinkStalled));
    assert_eq!(lab.rig.now().since(begin).as_secs(), 120);
    let broken = SimWriter::default();
    broken.0.borrow_mut().fail_at = Some((50_000, -5));
    let op = lab.start(Lab::request("/f", Sink::Writer(broken))).unwrap();
    assert!(matches!(lab.finish(op), Err(Error::Host(_))));
    let op = lab.start(Lab::request("/f", Sink::Discard)).unwrap();
    assert_eq!(lab.finish(op), Ok(100_000));
}

#[test]
fn a_cancelled_transfer_writes_nothing_more() {
    let mut lab = Lab::new();
    lab.server.add("/f", &bytes(1_000_000), "");
    lab.link = Link::new(Conditions { bits_per_second: 10_000_000, ..Conditions::default() }, 1);
    let memory = SimMemory::new(1_000_000);
    let op = lab.start(Lab::request("/f", Sink::Memory(memory.clone()))).unwrap();
    let half = |rig: &mut Rig| rig.engine.ops.get(op).unwrap().progress.done > 300_000;
    assert!(lab.link.run(&mut lab.rig, &mut lab.server, Duration::from_secs(10), half));
    lab.rig.engine.cancel(op, Error::Cancelled).unwrap();
    let then = memory.to_vec();
    lab.wait(Duration::from_secs(1));
    assert!(memory.to_vec() == then);
    assert_eq!(lab.server.open(), 0, "the server was told");
    lab.rig.engine.close(op).unwrap();
}

#[test]
fn a_silent_server_is_left_in_time() {
    let mut lab = Lab::new();
    lab.answer(|_| Answer { then: Then::Silence, ..Answer::default() });
    let begin = lab.rig.now();
    assert_eq!(lab.run(1, |_| ()).0, Err(Error::Timeout));
    assert_eq!(lab.rig.now().since(begin).as_secs(), 30);
    let begin = lab.rig.now();
    assert_eq!(lab.run(1, |r| r.tuning.timeout = Duration::from_secs(3)).0, Err(Error::Timeout));
    assert_eq!(lab.rig.now().since(begin).as_secs(), 3);
    // Nothing listens there.
    assert_eq!(lab.run(1, |r| r.url = format!("http://{}:81/", SERVER.ip).into_bytes()).0, Err(Error::Refused));
}

#[test]
fn a_lossy_way_brings_every_byte() {
    let poor = Conditions {
        delay: Duration::from_millis(10),
        bits_per_second: 100_000_000,
        loss_ppm: 10_000,
        reorder_ppm: 10_000,
        ..Conditions::default()
    };
    let file = bytes(400_000);
    for seed in 1..4 {
        for style in [Style::Length, Style::Chunks(20_000), Style::UntilEnd] {
            let mut lab = Lab::over(poor, seed);
            lab.server.add("/f", &file, "\"a\"");
            lab.server.style = style;
            lab.whole(&file);
        }
    }
}

#[test]
fn names_are_looked_up_once_and_host_says_them() {
    let mut lab = Lab::new();
    lab.server.add("/f", b"abc", "");
    // No name server is set.
    assert_eq!(lab.run(3, |r| r.url = b"http://boot.example/f".to_vec()).0, Err(Error::NetworkUnreachable));
    assert_eq!(lab.run(3, |r| r.url = b"http://a..b/f".to_vec()).0, Err(Error::Invalid));
}
