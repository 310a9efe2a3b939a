//! TFTP with servers that nobody here wrote.

mod common;
use bootlace_lab::servers::*;
use bootlace_lab::{Lab, Process, TestFile, files};
use common::*;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const NEEDS: [&str; 4] = ["in.tftpd", "atftpd", "dnsmasq", "gcc"];

/// The three servers in turn, each with a name.
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

#[test]
fn every_size_and_block_size_from_every_server() {
    let Some(lab) = Lab::new("every_size_and_block_size_from_every_server", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let blocks = [512u64, 1024, 1428, 1468];
    let mut sizes = vec![0, 1, 511, 512, 513, 1467, 1468, 1469];
    sizes.extend(blocks.iter().flat_map(|b| [*b, 2 * b, 7 * b]));
    sizes.sort_unstable();
    sizes.dedup();
    let made: Vec<_> = sizes.iter().map(|n| make(&root, *n)).collect();
    each_server(&lab, &root, |server| {
        for b in blocks {
            for file in &made {
                eprintln!("{server} blksize {b} {}", file.name);
                tftp_get(&lab, "--tap tap0", &format!("-b {b} -w 1"), file, LIMIT);
            }
        }
    });
}

#[test]
fn sixteen_mebibytes() {
    let Some(lab) = Lab::new("sixteen_mebibytes", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let file = make(&root, 16 << 20);
    each_server(&lab, &root, |server| {
        for b in [512, 1024, 1428, 1468] {
            let done = tftp_get(&lab, "--tap tap0", &format!("-b {b} -w 1"), &file, LIMIT);
            eprintln!("{server} blksize {b}: {}", done.stdout.trim());
        }
        let done = tftp_get(&lab, "--tap tap0", "", &file, LIMIT);
        eprintln!("{server} defaults: {}", done.stdout.trim());
    });
}

fn large(name: &str, blocks: &[u32]) {
    let Some(lab) = Lab::new(name, &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let file = make(&root, 300 << 20);
    each_server(&lab, &root, |server| {
        for b in blocks {
            let done = tftp_get(&lab, "--tap tap0", &format!("-b {b} -w 1"), &file, 4 * LIMIT);
            eprintln!("{server} blksize {b}: {}", done.stdout.trim());
        }
    });
}

/// 214,281 blocks: the number wraps three times.
#[test]
fn three_hundred_mebibytes() {
    large("three_hundred_mebibytes", &[1468]);
}

#[test]
#[ignore = "long: 614,400 round trips and more a server"]
fn three_hundred_mebibytes_at_every_block_size() {
    large("three_hundred_mebibytes_at_every_block_size", &[512, 1024, 1428]);
}

#[test]
fn servers_that_know_no_options() {
    let Some(lab) = Lab::new("servers_that_know_no_options", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let file = make(&root, 100_000);
    let refuse = ["-r", "blksize", "-r", "tsize", "-r", "timeout"].map(String::from).to_vec();
    let server = TftpdHpa { args: refuse, ..TftpdHpa::new(&root) }.start(&lab);
    tftp_get(&lab, "--tap tap0", "-b 1468", &file, LIMIT);
    drop(server);
    // With all of them off it would answer with an OACK of two bytes, which is no packet.
    let refuse = ["--no-blksize", "--no-timeout", "--no-windowsize"].map(String::from).to_vec();
    let _server = Atftpd { args: refuse, ..Atftpd::new(&root) }.start(&lab);
    tftp_get(&lab, "--tap tap0", "-b 1468", &file, LIMIT);
}

/// Frames come only through `pump`, payload leaves only through `tx_buffer`.
#[test]
fn push_only_and_copying_cards() {
    let Some(lab) = Lab::new("push_only_and_copying_cards", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let file = make(&root, 1 << 20);
    let _server = Dnsmasq { tftp_root: Some(root.clone()), ..Dnsmasq::new("tap0") }.start(&lab);
    for card in ["--tap tap0 --push", "--tap tap0 --copy", "--tap tap0 --push --copy"] {
        tftp_get(&lab, card, "", &file, LIMIT);
    }
    // And with DHCP in front.
    let c = with(bare_lace("--tap tap0 --push"), &format!("tftp get {} {}", bootlace_lab::SERVER, file.name));
    assert!(lab.run(c, LIMIT).ok().stdout.contains("1048576 bytes in "));
}

#[test]
fn errors_are_told() {
    let Some(lab) = Lab::new("errors_are_told", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let file = make(&root, 5000);
    let get = |args: &str| lab.run(with(lace("--tap tap0"), &format!("tftp get {args}")), LIMIT);
    // Nobody listens: the kernel's ICMP port unreachable ends it at once.
    let done = get("10.77.0.1 f5000");
    assert!(done.stderr.contains("refused (-111): 10.77.0.1 says ICMP type 3 code 3"), "{done:?}");
    assert!(done.code == 1 && done.took < Duration::from_secs(10), "{done:?}");
    let _server = TftpdHpa::new(&root).start(&lab);
    let done = get("10.77.0.1 none");
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("10.77.0.1 says \"File not found\" (TFTP error 1)"), "{done:?}");
    // Too small a place: an error, and the server is told to stop.
    let done = get("--room 4999 10.77.0.1 f5000");
    assert_eq!(done.code, 1, "{done:?}");
    assert!(get(&format!("--room 5000 10.77.0.1 {}", file.name)).code == 0);
    // No such host: nobody answers ARP.
    let done = get("-r 1 10.77.0.9 f5000");
    assert!(done.code == 1 && done.took < Duration::from_secs(40), "{done:?}");
}

/// Files whose contents `ffi-tests/lab/small_files.c` knows.
fn small_files(root: &Path, count: u32) {
    for i in 0..count {
        let len = i * 37 % 1500;
        let data: Vec<u8> = (0..len).map(|j| (i.wrapping_mul(31) + j * 7) as u8).collect();
        std::fs::write(root.join(format!("s{i}")), data).expect("the lab folder is writable");
    }
}

fn small_files_command(count: u32) -> std::process::Command {
    let program = bootlace_lab::programs::with_card("small_files", &["ffi-tests/lab/small_files.c"]);
    let mut c = std::process::Command::new(program);
    c.args(["tap0", bootlace_lab::CLIENT, bootlace_lab::SERVER, &count.to_string()]);
    c
}

#[test]
fn ten_thousand_small_files_on_one_operation_and_one_socket() {
    let Some(lab) = Lab::new("ten_thousand_small_files_on_one_operation_and_one_socket", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    small_files(&root, 10_000);
    let server = Dnsmasq { tftp_root: Some(root.clone()), ..Dnsmasq::new("tap0") }.start(&lab);
    let done = lab.run(small_files_command(10_000), 2 * LIMIT).ok();
    assert!(done.stdout.contains("10000 files"), "{}", done.stdout);
    eprintln!("10,000 files from dnsmasq in {:?}", done.took);
    drop(server);
    // A server that makes a process for each.
    let _server = TftpdHpa::new(&root).start(&lab);
    let done = lab.run(small_files_command(500), LIMIT).ok();
    eprintln!("500 files from tftpd-hpa in {:?}", done.took);
}

/// Every other frame is refused by the card with `LACE_EAGAIN`.
#[test]
fn a_card_that_has_no_room_every_other_time() {
    let Some(lab) = Lab::new("a_card_that_has_no_room_every_other_time", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let file = make(&root, 1 << 20);
    let _server = Atftpd::new(&root).start(&lab);
    for options in ["-w 1", ""] {
        let done = tftp_get(&lab, "--tap tap0 --stats --busy", options, &file, LIMIT);
        let retransmitted = done.stderr.lines().find(|l| l.starts_with("tftp_retransmit"));
        assert_eq!(retransmitted, None, "{options}");
        assert!(done.took < Duration::from_secs(10), "{:?}", done.took);
    }
}
