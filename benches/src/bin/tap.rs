//! The group `tap` of the benchmarks: 16 MiB from a real server over a TAP, by the `lace` tool and by a loop that has no
//! stack at all, in turn. Same card, same way of waiting. Then U-Boot's sandbox on Bootlace and on its own stack. Needs root.
//!
//! `tap [--case CASE] [--runs N] [--out FILE] [--uboot NAME=FOLDER …]`
//!
//! `--uboot`: sandboxes of the user's own (`u-boot` and `u-boot.dtb` in FOLDER) in place of Debian's; rows `uboot_NAME`. The first
//! must master every case, others are left out of what they cannot do.

use bootlace_benches::table::{self, Row};
use bootlace_lab::forward::{End, Forwarder, Way};
use bootlace_lab::servers::{Atftpd, Ganesha, Nginx, TftpdHpa, Vsftpd};
use bootlace_lab::u_boot::{self, Board};
use bootlace_lab::{CLIENT, Lab, SERVER, TestFile, files, programs};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const SIZE: u64 = 16 << 20;

/// One program on one case.
struct Runner {
    stack: &'static str,
    command: Box<dyn Fn() -> Command>,
    ms: Vec<f64>,
}

fn bare(file: &TestFile, window: u32) -> Runner {
    let name = file.name.clone();
    let command = move || {
        let mut c = Command::new(programs::bare_tftp());
        c.args(["tap0", CLIENT, SERVER, &name, "1468", &window.to_string()]);
        c
    };
    Runner { stack: "bare_loop", command: Box::new(command), ms: Vec::new() }
}

fn lace(file: &TestFile, args: &'static str) -> Runner {
    let name = file.name.clone();
    let command = move || {
        let mut c = Command::new(programs::lace());
        c.args(["--tap", "tap0", "--ip", &format!("{CLIENT}/24")]);
        c.args(args.split_whitespace()).args([SERVER, &name]);
        c
    };
    Runner { stack: "bootlace", command: Box::new(command), ms: Vec::new() }
}

/// The loop without a stack over UDP.
fn bare_nfs(root: &Path, file: &TestFile, size: u32, depth: u32) -> Runner {
    let (root, name) = (root.to_path_buf(), file.name.clone());
    let command = move || {
        let mut c = Command::new(programs::bare_nfs());
        c.args(["tap0", CLIENT, SERVER]).arg(&root).args([&name, &size.to_string(), &depth.to_string()]);
        c
    };
    Runner { stack: "bare_loop", command: Box::new(command), ms: Vec::new() }
}

fn lace_nfs(root: &Path, file: &TestFile, stack: &'static str, args: &'static str) -> Runner {
    let (export, name) = (format!("{SERVER}:{}", root.display()), file.name.clone());
    let command = move || {
        let mut c = Command::new(programs::lace());
        c.args(["--tap", "tap0", "--ip", &format!("{CLIENT}/24"), "nfs", "get"]);
        c.args(args.split_whitespace()).args([&export, &name]);
        c
    };
    Runner { stack, command: Box::new(command), ms: Vec::new() }
}

/// The body straight to memory.
fn lace_http(file: &TestFile) -> Runner {
    let url = format!("http://{SERVER}/{}", file.name);
    let command = move || {
        let mut c = Command::new(programs::lace());
        c.args(["--tap", "tap0", "--ip", &format!("{CLIENT}/24"), "http", "get", &url]);
        c
    };
    Runner { stack: "bootlace", command: Box::new(command), ms: Vec::new() }
}

/// NFS: whole files against the loop, and what one small READ at a time and a file system's reads of 4 KiB take.
fn nfs_cases(root: &Path, file: &TestFile) -> Vec<(&'static str, Vec<Runner>)> {
    vec![
        (
            "nfs_udp",
            vec![
                lace_nfs(root, file, "bootlace", "--udp"),
                lace_nfs(root, file, "bootlace_file_4k", "--udp --piece 4096 --readahead 524288"),
                bare_nfs(root, file, 32_768, 16),
            ],
        ),
        (
            "nfs_tcp",
            vec![
                lace_nfs(root, file, "bootlace", "--tcp"),
                lace_nfs(root, file, "bootlace_file_4k", "--tcp --piece 4096 --readahead 524288"),
                bare_nfs(root, file, 32_768, 16),
            ],
        ),
        ("nfs_1k_single", vec![lace_nfs(root, file, "bootlace", "--udp -r 1024 -d 1"), bare_nfs(root, file, 1024, 1)]),
    ]
}

/// Milliseconds from the program's last line: `N bytes in S s …` or `N bytes U us`.
fn ms(output: &str) -> Option<f64> {
    let words: Vec<&str> = output.lines().rev().find(|l| l.contains(" bytes "))?.split_whitespace().collect();
    assert_eq!(words.first()?.parse::<u64>().ok()?, SIZE, "{output}");
    match *words.get(2)? {
        "in" => Some(words.get(3)?.parse::<f64>().ok()? * 1e3),
        us => Some(us.parse::<f64>().ok()? / 1e3),
    }
}

/// Runs every runner `runs` times, in turn and in turned order, and gives their rows.
fn measure(lab: &Lab, case: &str, mut runners: Vec<Runner>, runs: usize) -> Vec<Row> {
    for round in 0..=runs {
        for runner in &mut runners {
            let text = lab.run((runner.command)(), LIMIT).ok().stdout;
            let took = ms(&text).unwrap_or_else(|| panic!("{}: no time in {text}", runner.stack));
            // The first round warms the caches.
            if round > 0 {
                runner.ms.push(took);
            }
        }
        runners.reverse();
    }
    let mut rows = Vec::new();
    runners.sort_by_key(|r| r.stack);
    for Runner { stack, ms, .. } in &mut runners {
        ms.sort_by(f64::total_cmp);
        let mut rates: Vec<f64> = ms.iter().map(|ms| SIZE as f64 * 8.0 / ms / 1e3).collect();
        rates.reverse();
        rows.push(Row::new(case, stack, "ms", ms, "ms"));
        rows.push(Row::new(case, stack, "mbit_s", &rates, "Mbit/s"));
    }
    rows
}

/// U-Boots to compare, each by the name of its stack and the folder it was built in.
type Boots = Vec<(String, PathBuf)>;

/// Processor time of all children that were waited for, in milliseconds.
fn children_ms() -> f64 {
    // SAFETY: all bytes zero are a value, and the call fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    [usage.ru_utime, usage.ru_stime].iter().map(|t| t.tv_sec as f64 * 1e3 + t.tv_usec as f64 / 1e3).sum()
}

/// What U-Boot's command `time` has said, in milliseconds.
fn said_ms(output: &str) -> Option<f64> {
    let said = output.split("\ntime:").nth(1)?.split(" seconds").next()?;
    let (minutes, seconds) = said.split_once(" minutes,").unwrap_or(("0", said));
    Some(minutes.trim().parse::<f64>().ok()? * 6e4 + seconds.trim().parse::<f64>().ok()? * 1e3)
}

/// U-Boots with the same command that loads `len` bytes, in turn: milliseconds, and processor time, of the process beyond those of
/// one that loads nothing, and what U-Boot's own clock says. One that cannot load at all is left out, with its last words.
fn u_boots(board: &mut Board, boots: &Boots, case: &str, script: &str, len: u64, runs: usize) -> Vec<Row> {
    let mut took = |dir: &PathBuf, script: &str| {
        board.dir.clone_from(dir);
        let before = children_ms();
        // One that waits for ever (the NFS client of 2023.01 for what no server says) is left out, too.
        let (mut limited, command) = (Command::new("timeout"), board.command(&format!("time {script}")));
        limited.args(["-s", "KILL", "60"]).arg(command.get_program()).args(command.get_args());
        let done = board.peer.run(limited, LIMIT);
        let cpu = children_ms() - before;
        let said = u_boot::plain(&done.stdout);
        if script == "true" || said.contains(&format!("Bytes transferred = {len} ")) {
            return Ok([done.took.as_secs_f64() * 1e3, cpu, said_ms(&said).unwrap_or(f64::NAN)]);
        }
        Err(said.lines().rev().take(5).collect::<Vec<_>>().join(" / "))
    };
    let mut figures: Vec<[Vec<f64>; 3]> = vec![Default::default(); boots.len()];
    let mut able = vec![true; boots.len()];
    for round in 0..=runs {
        for turn in 0..boots.len() {
            let which = (round + turn) % boots.len();
            let (stack, dir) = &boots[which];
            if !able[which] {
                continue;
            }
            match (took(dir, "true"), took(dir, script)) {
                // The first round warms the caches.
                (Ok(_), Ok(_)) if round == 0 && runs > 1 => {}
                (Ok(null), Ok(full)) => (0..3).for_each(|n| figures[which][n].push(full[n] - null[n])),
                (null, full) => {
                    assert!(which > 0, "{stack}: {case}: {null:?} {full:?}");
                    eprintln!("{case}: {stack} left out: {}", full.err().unwrap_or_default());
                    able[which] = false;
                }
            }
        }
    }
    let mut rows = Vec::new();
    for (((stack, _), mut figures), _) in boots.iter().zip(figures).zip(able).filter(|(_, able)| *able) {
        for (metric, sorted) in ["ms", "cpu_ms", "time_ms"].iter().zip(&mut figures) {
            sorted.sort_by(f64::total_cmp);
            rows.push(Row::new(case, &format!("uboot_{stack}"), metric, sorted, "ms"));
        }
    }
    rows
}

/// An upload by FTP: from where the file lies, or by read and send with rings as large as a window.
fn ftp_put(file: &TestFile, how: &'static str) -> Runner {
    let path = file.path.clone();
    let command = move || {
        let mut c = Command::new(programs::lace());
        c.args(["--tap", "tap0", "--ip", &format!("{CLIENT}/24"), "--rings", "262144", "ftp", "put"]);
        c.args(how.split_whitespace()).arg(&path).args([SERVER, "up/f16m"]);
        c
    };
    Runner { stack: "bootlace", command: Box::new(command), ms: Vec::new() }
}

/// 16 MiB over a cable, by each protocol as it is without settings; sockets of the kernel stand for the cards.
fn u_boots_near(boots: &Boots, only: Option<&str>, runs: usize) -> Vec<Row> {
    let wanted = |case: &str| only.is_none_or(|only| only == case);
    let Some(lab) = Lab::new("uboot", &["atftpd", "in.tftpd", "ganesha.nfsd", "nginx"]) else { return Vec::new() };
    lab.hurry();
    let mut board = Board::wired(&lab, boots[0].1.clone());
    let root = lab.folder("root");
    files::make(&root, "f16m", SIZE, 16).expect("the lab folder is writable");
    let _servers = (Ganesha::new(&root).start(&lab), Nginx::new(&root).start(&lab));
    let mut rows = Vec::new();
    let mut measure = |case: &str, script: &str| {
        if wanted(case) {
            rows.extend(u_boots(&mut board, boots, case, script, SIZE, runs));
        }
    };
    measure("uboot_nfs", &format!("nfs 0x1000000 {SERVER}:{}/f16m", root.display()));
    measure("uboot_wget", &format!("wget 0x1000000 {SERVER}:/f16m"));
    let server = Atftpd::new(&root).start(&lab);
    measure("uboot_tftp_default", "tftpboot 0x1000000 f16m");
    drop(server);
    // A server without windows.
    let _server = TftpdHpa::new(&root).start(&lab);
    measure("uboot_tftp_hpa", "tftpboot 0x1000000 f16m");
    rows
}

/// 214 KB by TFTP from a server 100 ms away, as in the field report of 2009.
fn u_boots_far(boots: &Boots) -> Vec<Row> {
    let Some(lab) = Lab::new("uboot_far", &["atftpd"]) else { return Vec::new() };
    lab.hurry();
    lab.tap("tap0", "10.77.0.1/24");
    lab.ip("link add far type veth peer name ub");
    lab.mute("far");
    let mut board = Board::behind(&lab, "far", boots[0].1.clone());
    let way = Way { delay: Duration::from_millis(50), ..Way::clean() };
    let ends = (End::Packet("far".into()), End::Tap("tap0".into()));
    let _wire = Forwarder::start(&ends.0, &ends.1, way.clone(), way).expect("both ends are there");
    let root = lab.folder("root");
    files::make(&root, "f214k", 214_000, 16).expect("the lab folder is writable");
    let _server = Atftpd::new(&root).start(&lab);
    u_boots(&mut board, boots, "uboot_far_214k", "tftpboot 0x1000000 f214k", 214_000, 1)
}

/// U-Boots on every case that is wanted.
fn u_boots_all(mut boots: Boots, only: Option<&str>, runs: usize) -> Vec<Row> {
    let near = ["uboot_tftp_default", "uboot_tftp_hpa", "uboot_nfs", "uboot_wget"];
    let (near, far) = (only.is_none_or(|o| near.contains(&o)), only.is_none_or(|o| o == "uboot_far_214k"));
    if (near || far) && boots.is_empty() {
        boots = ["bootlace", "legacy"].map(|name| (name.to_string(), u_boot::build(name))).into();
    }
    // Each in a namespace of its own: the servers have the same address there.
    std::thread::scope(|s| {
        let near = near.then(|| s.spawn(|| u_boots_near(&boots, only, runs)).join());
        let far = far.then(|| s.spawn(|| u_boots_far(&boots)).join());
        let rows = [near, far].into_iter().flatten();
        rows.flat_map(|rows| rows.unwrap_or_else(|why| std::panic::resume_unwind(why))).collect()
    })
}

fn main() -> ExitCode {
    let (mut only, mut runs, mut out) = (None, 11, PathBuf::from("target/bench.tsv"));
    let mut boots = Boots::new();
    let mut args = std::env::args().skip(1);
    while let (Some(arg), value) = (args.next(), args.next()) {
        match (arg.as_str(), value) {
            ("--case", Some(value)) => only = Some(value),
            ("--runs", Some(value)) => runs = value.parse().unwrap_or(runs).max(1),
            ("--out", Some(value)) => out = value.into(),
            ("--uboot", Some(value)) if value.contains('=') => {
                boots.extend(value.split_once('=').map(|(name, folder)| (name.to_string(), PathBuf::from(folder))));
            }
            _ => {
                eprintln!("usage: tap [--case CASE] [--runs N] [--out FILE] [--uboot NAME=FOLDER ...]");
                return ExitCode::FAILURE;
            }
        }
    }
    let wanted = |case: &str| only.as_ref().is_none_or(|o| o == case);
    programs::lace();
    let Some(lab) = Lab::new("tap", &[]) else { return ExitCode::FAILURE };
    lab.hurry();
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let file = files::make(&root, "f16m", SIZE, 16).expect("the lab folder is writable");
    let mut rows = Vec::new();
    let cases = [
        ("tftp_1468_w1", "tftp get -b 1468 -w 1", Some(1)),
        ("tftp_1468_w16", "tftp get -b 1468 -w 16", Some(16)),
        // Blocks in eleven fragments each.
        ("tftp_16268_w8", "tftp get -b 16268 -w 8", None),
        // The bare loop at the window that Bootlace asks for by default.
        ("tftp_default", "tftp get", Some(32)),
        // The same, as a file system reads: to be held against the whole file at once, `tftp_default`.
        ("tftp_file_4k", "tftp get --piece 4096", None),
    ];
    if cases.iter().any(|(case, ..)| wanted(case)) {
        programs::bare_tftp();
        let _server = Atftpd::new(&root).start(&lab);
        for (case, args, window) in cases.into_iter().filter(|(case, ..)| wanted(case)) {
            let mut runners = vec![lace(&file, args)];
            if case == "tftp_file_4k" {
                runners.push(Runner { stack: "bootlace_whole", ..lace(&file, "tftp get") });
            }
            runners.extend(window.map(|w| bare(&file, w)));
            rows.extend(measure(&lab, case, runners, runs));
        }
    }
    let cases = [("ftp_put", ""), ("ftp_put_copy", "--copy")];
    if cases.iter().any(|(case, _)| wanted(case)) {
        let _server = Vsftpd::new(&root).start(&lab);
        for (case, how) in cases.into_iter().filter(|(case, _)| wanted(case)) {
            rows.extend(measure(&lab, case, vec![ftp_put(&file, how)], runs));
        }
    }
    let cases = nfs_cases(&root, &file);
    if cases.iter().any(|(case, _)| wanted(case)) {
        programs::bare_nfs();
        let _server = Ganesha::new(&root).start(&lab);
        for (case, runners) in cases.into_iter().filter(|(case, _)| wanted(case)) {
            rows.extend(measure(&lab, case, runners, runs));
        }
    }
    if wanted("http") {
        let _server = Nginx::new(&root).start(&lab);
        rows.extend(measure(&lab, "http", vec![lace_http(&file)], runs));
    }
    rows.extend(u_boots_all(boots, only.as_deref(), runs.min(5)));
    for row in &rows {
        println!("{}", row.line("tap"));
    }
    match table::update(&out, "tap", &rows) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{}: {e}", out.display());
            ExitCode::FAILURE
        }
    }
}
