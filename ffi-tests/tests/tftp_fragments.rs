//! TFTP blocks larger than the MTU from servers that nobody here wrote: the Linux kernel makes the fragments. Over a TAP,
//! and over a wire with faults.

mod common;
use bootlace_lab::forward::{End, Forwarder, Order, Way};
use bootlace_lab::servers::*;
use bootlace_lab::{Lab, Process, TestFile, files};
use common::*;
use std::path::Path;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const NEEDS: [&str; 3] = ["in.tftpd", "atftpd", "gcc"];
const BLOCKS: [u32; 3] = [8192, 16_268, 65_464];
const WINDOWS: [u32; 3] = [1, 8, 16];

fn each_server(lab: &Lab, root: &Path, mut test: impl FnMut(&str)) {
    let starts: [(&str, &dyn Fn() -> Process); 2] =
        [("tftpd-hpa", &|| TftpdHpa::new(root).start(lab)), ("atftpd", &|| Atftpd::new(root).start(lab))];
    for (name, start) in starts {
        let _server = start();
        test(name);
    }
}

fn make(root: &Path, len: u64) -> TestFile {
    files::make(root, &format!("f{len}"), len, len).expect("the lab folder is writable")
}

fn get(lab: &Lab, server: &str, card: &str, (block, window): (u32, u32), file: &TestFile, what: &str) {
    let start = Instant::now();
    let options = format!("-b {block} -w {window}");
    tftp_get(lab, card, &options, file, LIMIT);
    eprintln!("{server} {what} {options} {}: {:?}", file.name, start.elapsed());
}

/// Every block size and window, files that end in a whole block and in fragments of every kind: equal bytes.
#[test]
fn fragments_of_the_kernel() {
    let Some(lab) = Lab::new("fragments_of_the_kernel", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let made: Vec<_> = [65_464 * 20, 65_464 * 17 + 1475, 3 << 20].iter().map(|n| make(&root, *n)).collect();
    each_server(&lab, &root, |server| {
        for block in BLOCKS {
            for window in WINDOWS {
                for file in &made {
                    get(&lab, server, "--tap tap0", (block, window), file, "tap");
                }
            }
        }
    });
}

/// Over a wire that loses, overtakes and doubles fragments. A block of 45 fragments is lost with each of them.
fn faulty(lab: &Lab, blocks: &[u32], windows: &[u32], seeds: u64) {
    lab.tap("tap0", "10.77.0.1/24");
    lab.tap("tap1", "");
    lab.mute("tap1");
    let root = lab.folder("root");
    let (file, lossy) = (make(&root, 1_000_003), make(&root, 200_003));
    let faults = [
        ("loss", Way { loss_ppm: 2_000, ..Way::clean() }),
        ("reordering", Way { reorder_ppm: 100_000, ..Way::clean() }),
        ("duplication", Way { dup_ppm: 20_000, ..Way::clean() }),
    ];
    each_server(lab, &root, |server| {
        for (fault, way) in &faults {
            for seed in 1..=seeds {
                let back = Way { seed, ..way.clone() };
                let _wire = Forwarder::start(
                    &End::Packet("tap1".into()),
                    &End::Tap("tap0".into()),
                    Way { seed: seed ^ 0xff, ..way.clone() },
                    back,
                )
                .expect("both ends are there");
                // Servers wait a second and more for each loss.
                let file = if *fault == "loss" { &lossy } else { &file };
                for block in blocks {
                    for window in windows {
                        get(lab, server, "--tap tap1", (*block, *window), file, fault);
                    }
                }
            }
        }
    });
}

#[test]
fn fragments_over_a_wire_with_faults() {
    let Some(lab) = Lab::new("fragments_over_a_wire_with_faults", &NEEDS) else { return };
    faulty(&lab, &[8192, 65_464], &[8], 1);
}

#[test]
#[ignore = "long: every block size and window"]
fn fragments_over_a_wire_with_faults_whole() {
    let Some(lab) = Lab::new("fragments_over_a_wire_with_faults_whole", &NEEDS) else { return };
    faulty(&lab, &BLOCKS, &WINDOWS, 3);
}

/// Shuffled fragments against the same in order, over the same forwarder in turn: equal bytes, and the medians of the times.
#[test]
#[ignore = "long, and timed: for a quiet machine"]
fn shuffled_fragments_as_fast_as_in_order() {
    let Some(lab) = Lab::new("shuffled_fragments_as_fast_as_in_order", &["in.tftpd", "gcc"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    lab.tap("tap1", "");
    lab.mute("tap1");
    let root = lab.folder("root");
    let file = make(&root, 16 << 20);
    let _server = TftpdHpa::new(&root).start(&lab);
    let ways = [
        ("in order", Way::clean()),
        ("shuffled", Way { order: Order::Shuffled, ..Way::clean() }),
        ("reversed", Way { order: Order::Reversed, ..Way::clean() }),
        ("shuffled, a tenth doubled", Way { order: Order::Shuffled, dup_ppm: 100_000, ..Way::clean() }),
    ];
    for block in BLOCKS {
        let mut times: [Vec<Duration>; 4] = Default::default();
        for seed in 1..=9 {
            for ((_, way), times) in ways.iter().zip(&mut times) {
                let to_us = Way { seed, spare_below: 200, ..way.clone() };
                let ends = (End::Packet("tap1".into()), End::Tap("tap0".into()));
                let _wire = Forwarder::start(&ends.0, &ends.1, Way::clean(), to_us).expect("both ends are there");
                let start = Instant::now();
                tftp_get(&lab, "--tap tap1", &format!("-b {block} -w 8"), &file, LIMIT);
                times.push(start.elapsed());
            }
        }
        let mut medians = times.iter_mut().map(|times| {
            times.sort();
            times[times.len() / 2].as_secs_f64() * 1e3
        });
        let straight = medians.next().expect("four ways");
        eprintln!("blksize {block}: in order {straight:.1} ms");
        for ((what, _), median) in ways.iter().skip(1).zip(medians) {
            eprintln!("blksize {block}: {what} {median:.1} ms, {:.2} of in order", median / straight);
        }
    }
}
