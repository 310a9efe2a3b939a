//! TCP's goodput over a wire that loses frames by chance, beside that of the Linux kernel over the same wire. Times are
//! those of the receiver: from the connection's beginning to the end of the stream.

mod common;
use bootlace_lab::{End, Forwarder, Lab, Peer, SERVER, TestFile, Way, files};
use common::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);
const PORT: u16 = 7777;
/// The kernel's address in the other namespace.
const KERNEL: &str = "10.77.0.3/24";

/// Receives to the end: how long it took, and what came.
fn receive(mut stream: TcpStream) -> (Duration, Vec<u8>) {
    let (start, mut got) = (Instant::now(), Vec::new());
    stream.read_to_end(&mut got).expect("the stream ends in good order");
    (start.elapsed(), got)
}

/// Sends with the kernel's congestion control of that name.
fn send(mut stream: TcpStream, data: &[u8], congestion: &str) {
    // SAFETY: a live descriptor and a live buffer.
    let rc = unsafe {
        let (value, len) = (congestion.as_ptr().cast(), congestion.len() as libc::socklen_t);
        libc::setsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, value, len)
    };
    assert_eq!(rc, 0, "{congestion}: {}", std::io::Error::last_os_error());
    stream.write_all(data).expect("the peer takes everything");
    stream.shutdown(Shutdown::Write).expect("connected");
    let _ = stream.read_to_end(&mut Vec::new());
}

/// A wire from `near` to the kernel's interface `tap0`.
fn join(near: &str, way: &Way) -> Forwarder {
    let back = Way { seed: way.seed ^ 0xffff, ..way.clone() };
    Forwarder::start(&End::Packet(near.into()), &End::Tap("tap0".into()), way.clone(), back).expect("both ends exist")
}

struct Bench {
    lab: Lab,
    peer: Peer,
    file: TestFile,
    data: Vec<u8>,
    congestion: &'static str,
}

impl Bench {
    fn new(name: &str, len: u64, congestion: &'static str) -> Option<Bench> {
        let lab = Lab::new(name, &["gcc"])?;
        lab.tap("tap0", "10.77.0.1/24");
        lab.veth("c0", "", "c1");
        lab.mute("c0");
        lab.veth("k0", "", "k1");
        let peer = lab.peer("peer");
        peer.take(&lab, "k0", KERNEL);
        let file = files::make(lab.dir(), "file", len, len).expect("the lab folder is writable");
        let data = std::fs::read(&file.path).expect("readable");
        // Each connection must find out for itself.
        let set = "-qw net.ipv4.tcp_no_metrics_save=1";
        lab.sh("sysctl", set);
        peer.run(peer.command("sysctl", set), LIMIT).ok();
        Some(Bench { lab, peer, file, data, congestion })
    }

    fn rate(&self, took: Duration) -> f64 {
        self.file.len as f64 * 8.0 / 1e6 / took.as_secs_f64()
    }

    fn listen(&self) -> TcpListener {
        TcpListener::bind((SERVER, PORT)).expect("the lab has the address")
    }

    /// Mbit/s from the kernel to the kernel; `up` is from the other namespace to this one.
    fn kernel(&self, way: &Way, up: bool) -> f64 {
        let _wire = join("k1", way);
        let listener = self.listen();
        let took = thread::scope(|s| {
            let far = s.spawn(|| {
                self.peer.enter();
                let stream = TcpStream::connect((SERVER, PORT)).expect("it listens");
                if up {
                    send(stream, &self.data, self.congestion);
                    return None;
                }
                Some(receive(stream))
            });
            let near = listener.accept().expect("a connection").0;
            let here = if up {
                Some(receive(near))
            } else {
                send(near, &self.data, self.congestion);
                None
            };
            far.join().expect("the far end").or(here).expect("one end receives")
        });
        assert!(took.1 == self.data, "every byte is right");
        self.rate(took.0)
    }

    /// Mbit/s between lace and the kernel; `up` is from lace.
    fn lace(&self, way: &Way, up: bool, options: &str) -> f64 {
        let _wire = join("c1", way);
        let listener = self.listen();
        let out = self.lab.dir().join("got");
        let args = match up {
            true => format!("tcp --info {options} --send {} {SERVER} {PORT}", self.file.path.display()),
            false => format!("tcp --info {options} --recv {} {SERVER} {PORT}", out.display()),
        };
        thread::scope(|s| {
            let kernel = s.spawn(|| {
                let near = listener.accept().expect("a connection").0;
                if up {
                    return Some(receive(near));
                }
                send(near, &self.data, self.congestion);
                None
            });
            let done = self.lab.run(with(lace("--packet c0 --stats"), &args), LIMIT).ok();
            let took = match kernel.join().expect("the kernel's half") {
                Some((took, got)) => {
                    assert!(got == self.data, "every byte is right");
                    took
                }
                None => {
                    same(&out, &self.file, options);
                    let line = done.stderr.lines().find_map(|l| l.strip_prefix("the peer's end came after "));
                    let seconds = line.and_then(|l| l.strip_suffix(" s")?.parse().ok()).expect("lace tells");
                    Duration::from_secs_f64(seconds)
                }
            };
            if std::env::var_os("LACE_VERBOSE").is_some() {
                eprintln!("{}", done.stderr);
            }
            self.rate(took)
        })
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    (low + high) / 2.0
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// The environment may ask for another wire, or another congestion control of the kernel's: see [`compare`].
///
/// One direction over `seeds` seeds: the medians of ours and the kernel's.
fn compare(up: bool, congestion: &'static str) -> (f64, f64) {
    bootlace_lab::programs::lace();
    let loss_ppm = number("LACE_LOSS_PPM", 10_000) as u32;
    let delay = Duration::from_micros(number("LACE_DELAY_US", 10_000));
    let (len, seeds, workers) = (number("LACE_BYTES", 4 << 20), number("LACE_SEEDS", 10), number("LACE_WORKERS", 2));
    let options = std::env::var("LACE_OPTIONS").unwrap_or_default();
    let congestion: &'static str = std::env::var("LACE_CONGESTION").map_or(congestion, |name| name.leak());
    let threads: Vec<_> = (0..workers)
        .map(|worker| {
            let options = options.clone();
            thread::spawn(move || {
                let Some(bench) = Bench::new("goodput", len, congestion) else { return Vec::new() };
                let mut rates = Vec::new();
                for seed in (1 + worker..=seeds).step_by(workers as usize) {
                    let way = Way { loss_ppm, delay, seed, ..Way::clean() };
                    rates.push((bench.lace(&way, up, &options), bench.kernel(&way, up)));
                }
                rates
            })
        })
        .collect();
    let rates: Vec<_> = threads.into_iter().flat_map(|t| t.join().expect("a worker")).collect();
    let (mut ours, mut kernels): (Vec<_>, Vec<_>) = rates.into_iter().unzip();
    if ours.is_empty() {
        return (1.0, 1.0);
    }
    let medians = (median(&mut ours), median(&mut kernels));
    eprintln!("{} {congestion}: ours {ours:.1?}, the kernel's {kernels:.1?} Mbit/s", if up { "up" } else { "down" });
    eprintln!("  medians {:.2} and {:.2}: {:.3}", medians.0, medians.1, medians.0 / medians.1);
    medians
}

#[test]
#[ignore = "long: a comparison of times"]
fn sending_through_chance_loss() {
    let (ours, kernels) = compare(true, "cubic");
    assert!(ours >= 0.95 * kernels, "{ours} against {kernels} Mbit/s");
}

#[test]
#[ignore = "long: a comparison of times"]
fn receiving_through_chance_loss() {
    let (ours, kernels) = compare(false, "cubic");
    assert!(ours >= 0.95 * kernels, "{ours} against {kernels} Mbit/s");
}
