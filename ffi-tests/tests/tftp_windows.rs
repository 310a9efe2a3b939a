//! TFTP windows with servers that nobody here wrote, over a wire with faults and a card with a small ring.

mod common;
use bootlace_lab::forward::{End, Forwarder, Way};
use bootlace_lab::servers::*;
use bootlace_lab::{Lab, Process, TestFile, files};
use common::*;
use std::path::Path;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const NEEDS: [&str; 4] = ["in.tftpd", "atftpd", "dnsmasq", "gcc"];

fn each_server(lab: &Lab, root: &Path, mut test: impl FnMut(&str)) {
    let starts: [(&str, &dyn Fn() -> Process); 3] = [
        ("tftpd-hpa", &|| TftpdHpa::new(root).start(lab)),
        ("atftpd", &|| Atftpd::new(root).start(lab)),
        ("dnsmasq", &|| Dnsmasq { tftp_root: Some(root.into()), ..Dnsmasq::new("tap0") }.start(lab)),
    ];
    for (name, start) in starts {
        let _server = start();
        test(name);
    }
}

fn make(root: &Path, len: u64) -> TestFile {
    files::make(root, &format!("f{len}"), len, len).expect("the lab folder is writable")
}

/// A lab whose client, on `tap1`, is joined to the servers' `tap0` by a wire that does `there` to what the client sends
/// and `back` to what it gets.
fn wired(there: Way, back: Way) -> Forwarder {
    Forwarder::start(&End::Packet("tap1".into()), &End::Tap("tap0".into()), there, back).expect("both ends are there")
}

#[test]
fn windows_over_a_wire_with_faults() {
    let Some(lab) = Lab::new("windows_over_a_wire_with_faults", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    lab.tap("tap1", "");
    lab.mute("tap1");
    let root = lab.folder("root");
    let (short, long) = (make(&root, 1468 * 16), make(&root, 256 << 10));
    // Two of the servers do not answer an acknowledgement that comes again: each loss waits for their timers.
    let lossy = make(&root, 96 << 10);
    let faults = [
        ("clean", Way::clean()),
        ("loss", Way { loss_ppm: 10_000, ..Way::clean() }),
        ("reordering", Way { reorder_ppm: 20_000, ..Way::clean() }),
        ("duplication", Way { dup_ppm: 10_000, ..Way::clean() }),
    ];
    each_server(&lab, &root, |server| {
        for (fault, way) in &faults {
            let _wire = wired(Way { seed: 2, ..way.clone() }, way.clone());
            let long = if *fault == "loss" && server != "atftpd" { &lossy } else { &long };
            for options in ["", "-b 512 -w 1", "-b 1024 -w 8", "-b 1468 -w 64"] {
                for file in [&short, long] {
                    let start = Instant::now();
                    tftp_get(&lab, "--tap tap1", options, file, LIMIT);
                    eprintln!("{server} {fault} {options:?} {}: {:?}", file.name, start.elapsed());
                }
            }
        }
    });
}

/// The time in a line such as "4194304 bytes in 0.25 s (16 MiB/s)".
fn seconds(said: &str) -> f64 {
    let word = said.split(" bytes in ").nth(1).and_then(|rest| rest.split(' ').next());
    word.and_then(|w| w.parse().ok()).expect("the tool says how long it took")
}

/// A card that holds four frames: the windows shrink to what arrives.
#[test]
fn a_ring_of_four_frames() {
    let Some(lab) = Lab::new("a_ring_of_four_frames", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let file = make(&root, 4 << 20);
    each_server(&lab, &root, |server| {
        for options in ["", "-w 1", "-w 2", "-w 4", "-w 8", "-w 16", "-w 64", "-b 16000 -w 8"] {
            let done = tftp_get(&lab, "--tap tap0 --ring 4", options, &file, LIMIT);
            eprintln!("{server} {options:?}: {} {}", done.stdout.trim(), done.stderr.trim());
            assert!(seconds(&done.stdout) < 5.0, "{server} {options}: no stall of the server's timer for each window");
        }
    });
}
