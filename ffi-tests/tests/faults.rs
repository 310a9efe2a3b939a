//! TFTP from real servers through a wire with faults, and into a card with few receive buffers (design §5.1).

mod common;
use bootlace_lab::servers::*;
use bootlace_lab::{End, Forwarder, Lab, Process, TestFile, Way, files};
use common::*;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(90);
const NEEDS: [&str; 4] = ["in.tftpd", "atftpd", "dnsmasq", "gcc"];
/// The client's end of the wire of [`wire`].
const CARD: &str = "--packet c0";

fn make(root: &Path, len: u64) -> TestFile {
    files::make(root, &format!("f{len}"), len, len).expect("the lab folder is writable")
}

/// A wire between the servers' interface `tap0` and the client's `c0`.
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

fn faults() -> [(&'static str, Way); 4] {
    [
        ("clean", Way::clean()),
        ("1 % loss", Way { loss_ppm: 10_000, ..Way::clean() }),
        ("2 % reordering", Way { reorder_ppm: 20_000, ..Way::clean() }),
        ("1 % duplication", Way { dup_ppm: 10_000, ..Way::clean() }),
    ]
}

type Start<'l> = &'l dyn Fn() -> Process;

fn matrix(lab: &Lab, blocks: &[u32], windows: &[u32], sizes: &[u64], seeds: &[u64]) {
    wire(lab);
    let root = lab.folder("root");
    let made: Vec<_> = sizes.iter().map(|n| make(&root, *n)).collect();
    let servers: [(&str, bool, Start<'_>); 3] = [
        ("tftpd-hpa", false, &|| TftpdHpa::new(&root).start(lab)),
        ("atftpd", true, &|| Atftpd::new(&root).start(lab)),
        ("dnsmasq", false, &|| Dnsmasq { tftp_root: Some(root.clone()), ..Dnsmasq::new("tap0") }.start(lab)),
    ];
    for (server, windowed, start) in servers {
        let _server = start();
        for (fault, way) in faults() {
            for seed in seeds {
                let _wire = join(&Way { seed: *seed, ..way.clone() });
                for b in blocks {
                    // The others answer every window with 1.
                    for w in windows.iter().filter(|w| windowed || **w == windows[0]) {
                        for file in &made {
                            let options = format!("-b {b} -w {w}");
                            let what = format!("{server}, {fault}, seed {seed}, {options}, {} bytes", file.len);
                            eprintln!("{what}");
                            let done = tftp_get(lab, CARD, &options, file, LIMIT);
                            eprintln!("  {}", done.stdout.trim());
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn real_servers_over_a_wire_with_faults() {
    let Some(lab) = Lab::new("real_servers_over_a_wire_with_faults", &NEEDS) else { return };
    matrix(&lab, &[1468], &[8], &[256 << 10], &[1]);
}

#[test]
#[ignore = "long: every cell"]
fn real_servers_over_a_wire_with_faults_whole() {
    let Some(lab) = Lab::new("real_servers_over_a_wire_with_faults_whole", &NEEDS) else { return };
    matrix(&lab, &[512, 1428, 1468], &[1, 8, 16, 64], &[0, 1467, 1468 * 16, 256 << 10], &[1, 2]);
}

/// No silence of a second at any loss up to 1 %: the time over the clean one is bounded by the number of losses.
fn lossy(lab: &Lab, seeds: u64) {
    wire(lab);
    lab.hurry();
    let root = lab.folder("root");
    let file = make(&root, 2 << 20);
    let _server = Atftpd::new(&root).start(lab);
    for ppm in [2_000, 10_000] {
        for seed in 1..=seeds {
            let wire = join(&Way { loss_ppm: ppm, seed, ..Way::clean() });
            let pcap = lab.dir().join("frames.pcap");
            let done = tftp_get(lab, &format!("{CARD} --pcap {}", pcap.display()), "", &file, LIMIT);
            let gap = longest_gap(&pcap);
            let lost: u64 = wire.counts.iter().map(|c| c.lost.load(std::sync::atomic::Ordering::Relaxed)).sum();
            eprintln!("loss {ppm} ppm, seed {seed}: {lost} lost, longest gap {gap:?}, {}", done.stdout.trim());
            assert!(gap < Duration::from_secs(1), "seed {seed}: silent for {gap:?}");
        }
    }
}

/// The longest time without a frame in a pcap file.
fn longest_gap(pcap: &Path) -> Duration {
    let bytes = std::fs::read(pcap).expect("lace wrote it");
    let mut rest = bytes.get(24..).unwrap_or(&[]);
    let (mut last, mut gap) = (None, Duration::ZERO);
    while let Some((head, more)) = rest.split_at_checked(16) {
        let field = |i: usize| u32::from_ne_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
        let at = Duration::new(field(0).into(), field(4) * 1000);
        gap = gap.max(last.map_or(Duration::ZERO, |l| at.saturating_sub(l)));
        last = Some(at);
        rest = more.get(field(8) as usize..).unwrap_or(&[]);
    }
    gap
}

#[test]
fn no_silence_of_a_second_at_one_percent_loss() {
    let Some(lab) = Lab::new("no_silence_of_a_second_at_one_percent_loss", &NEEDS) else { return };
    lossy(&lab, 4);
}

#[test]
#[ignore = "long: twenty seeds"]
fn no_silence_of_a_second_at_one_percent_loss_twenty_seeds() {
    let Some(lab) = Lab::new("no_silence_of_a_second_at_one_percent_loss_twenty_seeds", &NEEDS) else { return };
    lossy(&lab, 20);
}

/// Seconds from the tool's last line.
fn seconds(stdout: &str) -> f64 {
    let words: Vec<&str> = stdout.split_whitespace().collect();
    words.get(3).and_then(|w| w.parse().ok()).unwrap_or_else(|| panic!("{stdout}"))
}

#[test]
fn a_ring_of_four_takes_every_window() {
    let Some(lab) = Lab::new("a_ring_of_four_takes_every_window", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let file = make(&root, 16 << 20);
    let _server = Atftpd::new(&root).start(&lab);
    for asked in ["-w 2", "-w 4", "-w 16", "-w 64", ""] {
        let took = seconds(&tftp_get(&lab, "--tap tap0 --ring 4", asked, &file, LIMIT).stdout);
        eprintln!("ring of 4: `{asked}` {took:.3} s");
    }
}

#[test]
#[ignore = "compares times: for a quiet machine"]
fn a_ring_of_four_and_the_best_window_for_it() {
    let Some(lab) = Lab::new("a_ring_of_four_and_the_best_window_for_it", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    lab.hurry();
    let root = lab.folder("root");
    let file = make(&root, 16 << 20);
    let _server = Atftpd::new(&root).start(&lab);
    let ring = "--tap tap0 --ring 4";
    let best_of = |options: &str| {
        let times = (0..5).map(|_| seconds(&tftp_get(&lab, ring, options, &file, LIMIT).stdout));
        times.fold(f64::INFINITY, f64::min)
    };
    let best = [2, 3, 4].map(|w| best_of(&format!("-w {w}"))).into_iter().fold(f64::INFINITY, f64::min);
    for asked in ["-w 16", "-w 64", ""] {
        let took = best_of(asked);
        eprintln!("ring of 4: best fixed window {best:.3} s, `{asked}` {took:.3} s");
        assert!(took <= 2.0 * best, "`{asked}`: {took:.3} s, more than twice {best:.3} s");
    }
}
