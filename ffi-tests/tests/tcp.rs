//! TCP with the Linux kernel as the other end: client and server, both ways, over clean wires and bad ones; and nginx.

mod common;
use bootlace_lab::{CLIENT, End, Finished, Forwarder, Lab, SERVER, TestFile, Way, files, servers};
use common::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const NEEDS: [&str; 1] = ["gcc"];
const TAP: &str = "--tap tap0";
/// The client's end of the wire of [`wire`].
const CARD: &str = "--packet c0";
const PORT: u16 = 7777;

/// Who opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opens {
    Lace,
    Kernel,
}

fn make(lab: &Lab, name: &str, len: u64) -> TestFile {
    files::make(lab.dir(), name, len, len + name.len() as u64).expect("the lab folder is writable")
}

/// The kernel's half of a conversation: sends `data`, if any, and its end; receives all that comes.
fn converse(mut stream: TcpStream, data: Option<Vec<u8>>) -> Vec<u8> {
    let mut to = stream.try_clone().expect("a descriptor");
    let sender = thread::spawn(move || {
        if let Some(data) = data {
            to.write_all(&data).expect("the peer takes everything");
        }
        to.shutdown(Shutdown::Write).expect("connected");
    });
    let mut got = Vec::new();
    stream.read_to_end(&mut got).expect("the stream ends in good order");
    sender.join().expect("all is sent");
    got
}

/// One connection between `lace tcp` and the kernel: `up` goes from lace to the kernel, `down` the other way. Both must
/// arrive as they were. Returns what lace said.
#[track_caller]
fn talk(
    lab: &Lab,
    card: &str,
    opens: Opens,
    options: &str,
    (up, down): (Option<&TestFile>, Option<&TestFile>),
    limit: Duration,
) -> Finished {
    let out = lab.dir().join("got");
    let _ = std::fs::remove_file(&out);
    let data = down.map(|file| std::fs::read(&file.path).expect("readable"));
    let mut args = format!("tcp --info {options}");
    if let Some(file) = up {
        args += &format!(" --send {}", file.path.display());
    }
    if down.is_some() {
        args += &format!(" --recv {}", out.display());
    }
    let (done, got) = match opens {
        Opens::Lace => {
            let listener = TcpListener::bind((SERVER, PORT)).expect("the lab has the address");
            let kernel = thread::spawn(move || converse(listener.accept().expect("a connection").0, data));
            let done = lab.run(with(lace(card), &format!("{args} {SERVER} {PORT}")), limit).ok();
            (done, kernel.join().expect("the kernel's half"))
        }
        Opens::Kernel => {
            let start = Instant::now();
            let mut child = lab.spawn("lace", with(lace(card), &format!("{args} -l {PORT}")));
            child.wait_ready(LIMIT, |p| p.log().contains("listening"));
            let kernel = thread::spawn(move || converse(TcpStream::connect((CLIENT, PORT)).expect("it listens"), data));
            let code = child.wait(limit).unwrap_or_else(|| panic!("not done after {limit:?}:\n{}", child.log()));
            let done = Finished {
                code: code.code().unwrap_or(-1),
                stdout: String::new(),
                stderr: child.log(),
                took: start.elapsed(),
            };
            (done.ok(), kernel.join().expect("the kernel's half"))
        }
    };
    let what = format!("{opens:?} {options}");
    match up {
        Some(file) => assert_eq!((got.len() as u64, files::sha256_of(&got)), (file.len, file.sha256.clone()), "{what}"),
        None => assert!(got.is_empty(), "{what}"),
    }
    if let Some(file) = down {
        same(&out, file, &what);
    }
    eprintln!("{what}: {}", done.stderr.trim().replace('\n', "\n    "));
    done
}

/// A wire between the kernel's interface `tap0` and lace's `c0`.
fn wire(lab: &Lab) {
    lab.tap("tap0", "10.77.0.1/24");
    lab.veth("c0", "", "c1");
    lab.mute("c0");
}

/// Joins the ends; the same faults both ways.
fn join(way: &Way) -> Forwarder {
    let back = Way { seed: way.seed ^ 0xffff, ..way.clone() };
    Forwarder::start(&End::Packet("c1".into()), &End::Tap("tap0".into()), way.clone(), back).expect("both ends exist")
}

/// Both ways one after the other, opened by either end.
fn both_ways(lab: &Lab, card: &str, file: &TestFile, options: &str, limit: Duration) {
    for opens in [Opens::Lace, Opens::Kernel] {
        talk(lab, card, opens, options, (Some(file), None), limit);
        talk(lab, card, opens, options, (None, Some(file)), limit);
    }
}

#[test]
fn sixteen_mebibytes_each_way() {
    let Some(lab) = Lab::new("sixteen_mebibytes_each_way", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let file = make(&lab, "file", 16 << 20);
    both_ways(&lab, TAP, &file, "", LIMIT);
    // At the same time, and through the rings.
    let other = make(&lab, "other", (4 << 20) + 1);
    for options in ["", "--ring", "--no-sack --no-timestamps --new-reno"] {
        talk(&lab, TAP, Opens::Lace, options, (Some(&other), Some(&file)), LIMIT);
    }
    let rings = format!("{TAP} --rings 262144");
    talk(&lab, &rings, Opens::Kernel, "--ring", (Some(&file), Some(&other)), LIMIT);
}

#[test]
fn every_small_length() {
    let Some(lab) = Lab::new("every_small_length", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    for len in [0, 1, 2, 1447, 1448, 1449, 2896, 2897, 8191, 8192, 8193, 65_535, 65_536] {
        let file = make(&lab, &format!("f{len}"), len);
        for (opens, options) in [(Opens::Lace, ""), (Opens::Kernel, "--ring")] {
            talk(&lab, TAP, opens, options, (Some(&file), Some(&file)), LIMIT);
        }
    }
}

/// Cards that push, that lend transmit buffers, that have no room every other time.
#[test]
fn other_cards() {
    let Some(lab) = Lab::new("other_cards", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let file = make(&lab, "file", 1 << 20);
    for mode in ["--push", "--copy", "--busy", "--push --copy --busy", "--ring 8"] {
        let card = format!("{TAP} {mode}");
        talk(&lab, &card, Opens::Lace, "", (Some(&file), Some(&file)), LIMIT);
    }
}

#[test]
fn nobody_listens_and_nobody_is_there() {
    let Some(lab) = Lab::new("nobody_listens_and_nobody_is_there", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let done = lab.run(with(lace(TAP), &format!("tcp {SERVER} {PORT}")), LIMIT);
    assert!(done.code == 1 && done.took < Duration::from_secs(1), "{done:?}");
    assert!(done.stderr.contains("refused (-111)"), "{done:?}");
    let done = lab.run(with(lace(TAP), &format!("tcp 10.77.0.9 {PORT}")), LIMIT);
    assert!(done.code == 1 && done.stderr.contains("host unreachable"), "{done:?}");
}

/// The kernel resets in the middle: an error, and soon.
#[test]
fn the_kernel_gives_up() {
    let Some(lab) = Lab::new("the_kernel_gives_up", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let file = make(&lab, "file", 16 << 20);
    let listener = TcpListener::bind((SERVER, PORT)).expect("the lab has the address");
    let kernel = thread::spawn(move || {
        let mut stream = listener.accept().expect("a connection").0;
        stream.read_exact(&mut [0; 100_000]).expect("bytes");
        // Dropped with bytes unread: the kernel sends a reset (RFC 2525 §2.17).
    });
    let done = lab.run(with(lace(TAP), &format!("tcp --send {} {SERVER} {PORT}", file.path.display())), LIMIT);
    kernel.join().expect("the kernel's half");
    assert!(done.code == 1 && done.took < Duration::from_secs(5), "{done:?}");
    assert!(done.stderr.contains("(-104)"), "{done:?}");
}

#[test]
fn bad_wires() {
    let Some(lab) = Lab::new("bad_wires", &NEEDS) else { return };
    wire(&lab);
    let file = make(&lab, "file", 16 << 20);
    {
        let _wire = join(&Way { loss_ppm: 1_000, delay: Duration::from_micros(500), ..Way::clean() });
        both_ways(&lab, CARD, &file, "", LIMIT);
    }
    let small = make(&lab, "small", 1 << 20);
    let bad = Way {
        loss_ppm: 50_000,
        reorder_ppm: 20_000,
        dup_ppm: 20_000,
        delay: Duration::from_micros(500),
        ..Way::clean()
    };
    let _wire = join(&bad);
    both_ways(&lab, CARD, &small, "", LIMIT);
    talk(&lab, CARD, Opens::Lace, "--no-sack --no-timestamps --new-reno", (Some(&small), None), LIMIT);
}

#[test]
#[ignore = "long: 2 GiB"]
fn quarter_of_a_gibibyte_each_way() {
    let Some(lab) = Lab::new("quarter_of_a_gibibyte_each_way", &NEEDS) else { return };
    wire(&lab);
    let file = make(&lab, "file", 256 << 20);
    for loss_ppm in [0, 1_000] {
        let _wire = join(&Way { loss_ppm, delay: Duration::from_micros(500), ..Way::clean() });
        both_ways(&lab, CARD, &file, "", 10 * LIMIT);
    }
}

#[test]
#[ignore = "long: 256 MiB four times"]
fn quarter_of_a_gibibyte_each_way_over_a_tap() {
    let Some(lab) = Lab::new("quarter_of_a_gibibyte_each_way_over_a_tap", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let file = make(&lab, "file", 256 << 20);
    both_ways(&lab, TAP, &file, "", 5 * LIMIT);
}

/// Every corner of 0.1 to 5 % loss, reordering, duplication, and round trips of 1 to 200 ms, each in a lab of its own.
#[test]
#[ignore = "long: slow wires"]
fn every_corner() {
    programs_first();
    let mut threads = Vec::new();
    for loss_ppm in [1_000, 50_000] {
        for reorder_ppm in [0, 50_000] {
            for dup_ppm in [0, 50_000] {
                for half_rtt in [500, 100_000] {
                    let way = Way {
                        loss_ppm,
                        reorder_ppm,
                        dup_ppm,
                        delay: Duration::from_micros(half_rtt),
                        seed: u64::from(loss_ppm + reorder_ppm + dup_ppm),
                        ..Way::clean()
                    };
                    threads.push(thread::spawn(move || {
                        let Some(lab) = Lab::new("every_corner", &NEEDS) else { return };
                        wire(&lab);
                        let file = make(&lab, "file", 1 << 20);
                        let _wire = join(&way);
                        eprintln!("{way:?}");
                        both_ways(&lab, CARD, &file, "", 10 * LIMIT);
                    }));
                }
            }
        }
    }
    for corner in threads {
        corner.join().expect("every corner");
    }
}

/// Builds the tool before many threads want it.
fn programs_first() {
    bootlace_lab::programs::lace();
}

#[test]
fn a_file_from_nginx() {
    let Some(lab) = Lab::new("a_file_from_nginx", &["gcc", "nginx"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let file = files::make(&root, "file", (8 << 20) + 3, 5).expect("the lab folder is writable");
    let _server = servers::Nginx::new(&root).start(&lab);
    let ask = lab.write("ask", &format!("GET /{} HTTP/1.0\r\nHost: {SERVER}\r\n\r\n", file.name));
    let out = lab.dir().join("got");
    // nginx takes our end as our going away: it is sent after its own.
    let args = format!("tcp --info --keep --send {} --recv {} {SERVER} 80", ask.display(), out.display());
    let done = lab.run(with(lace(TAP), &args), LIMIT).ok();
    let got = std::fs::read(&out).expect("readable");
    let body = got.windows(4).position(|w| w == b"\r\n\r\n").expect("a header") + 4;
    let head = String::from_utf8_lossy(&got[..body]);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", file.len)), "{head}");
    assert_eq!(((got.len() - body) as u64, files::sha256_of(&got[body..])), (file.len, file.sha256));
    eprintln!("{}", done.stderr.trim());
}
