//! The group `tap` of `make bench`: 16 MiB from a real server over a TAP, by the `lace` tool and by the bare loop, in turn.
//! Prints the rows of `bench.tsv` (without the header line) on standard output; what is measured now, on standard error.
//!
//! `bench-tap [ROUNDS] [CASE…]`: all cases, 9 rounds by default.

use bootlace_lab::servers::*;
use bootlace_lab::{CLIENT, Lab, SERVER, TestFile, files, programs};
use std::process::{Command, ExitCode};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const SIZE: u64 = 16 << 20;

/// One program on one case.
struct Runner {
    stack: &'static str,
    command: Box<dyn Fn() -> Command>,
    seconds: Vec<f64>,
}

fn bare(file: &TestFile, window: &'static str) -> Runner {
    let name = file.name.clone();
    let command = move || {
        let mut c = Command::new(programs::bare_tftp());
        c.args(["tap0", CLIENT, SERVER, &name, "1468", window]);
        c
    };
    Runner { stack: "bare_loop", command: Box::new(command), seconds: Vec::new() }
}

fn lace(file: &TestFile, args: &'static [&'static str]) -> Runner {
    let name = file.name.clone();
    let command = move || {
        let mut c = Command::new(programs::lace());
        c.args(["--tap", "tap0", "--ip", &format!("{CLIENT}/24")]).args(args).args([SERVER, &name]);
        c
    };
    Runner { stack: "bootlace", command: Box::new(command), seconds: Vec::new() }
}

/// Seconds from the program's last line: `N bytes in S s …` or `N bytes U us`.
fn seconds(output: &str) -> Option<f64> {
    let words: Vec<&str> = output.lines().rev().find(|l| l.contains(" bytes "))?.split_whitespace().collect();
    assert_eq!(words.first()?.parse::<u64>().ok()?, SIZE, "{output}");
    match words.get(2)? {
        &"in" => words.get(3)?.parse().ok(),
        us => Some(us.parse::<f64>().ok()? / 1e6),
    }
}

fn rows(case: &str, runners: &mut [Runner], rounds: usize, lab: &Lab) {
    for round in 0..=rounds {
        for runner in runners.iter_mut() {
            let text = lab.run((runner.command)(), LIMIT).ok().stdout;
            let s = seconds(&text).unwrap_or_else(|| panic!("{}: no time in {text}", runner.stack));
            // The first round warms the caches.
            if round > 0 {
                runner.seconds.push(s);
            }
        }
    }
    for runner in runners.iter_mut() {
        let v = &mut runner.seconds;
        v.sort_by(f64::total_cmp);
        let (min, max) = (v.first().copied().unwrap_or(0.0), v.last().copied().unwrap_or(0.0));
        let median = v.get(v.len() / 2).copied().unwrap_or(0.0);
        println!("tap\t{case}\t{}\tseconds\t{median:.6}\t{min:.6}\t{max:.6}\ts", runner.stack);
        let rate = |s: f64| SIZE as f64 * 8.0 / s / 1e6;
        println!(
            "tap\t{case}\t{}\tmbit_s\t{:.1}\t{:.1}\t{:.1}\tMbit/s",
            runner.stack,
            rate(median),
            rate(max),
            rate(min)
        );
        eprintln!("{case:16} {:10} {median:.4} s ({min:.4} to {max:.4})", runner.stack);
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rounds = args.first().and_then(|a| a.parse().ok()).unwrap_or(9);
    let names: Vec<&String> = args.iter().filter(|a| a.parse::<usize>().is_err()).collect();
    let wanted = |case: &str| names.is_empty() || names.iter().any(|a| *a == case);
    programs::lace();
    programs::bare_tftp();
    let Some(lab) = Lab::new("bench-tap", &["atftpd"]) else { return ExitCode::FAILURE };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let file = files::make(&root, "f16m", SIZE, 16).expect("the lab folder is writable");
    let _server = Atftpd::new(&root).start(&lab);
    let tftp: [(&str, &'static str, &'static [&'static str]); 2] = [
        ("tftp_1468_w1", "1", &["tftp", "get", "-b", "1468", "-w", "1"]),
        ("tftp_1468_w16", "16", &["tftp", "get", "-b", "1468", "-w", "16"]),
    ];
    for (case, window, args) in tftp {
        if wanted(case) {
            rows(case, &mut [lace(&file, args), bare(&file, window)], rounds, &lab);
        }
    }
    ExitCode::SUCCESS
}
