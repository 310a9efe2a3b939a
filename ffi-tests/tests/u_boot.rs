//! Debian's U-Boot on Bootlace (`scripts/u-boot.sh`), its sandbox between real servers: what a user types, and checksums that
//! U-Boot itself has taken of what came.

use bootlace_lab::forward::{End, Forwarder, Way};
use bootlace_lab::servers::*;
use bootlace_lab::u_boot::{Board, plain};
use bootlace_lab::{Lab, Process, SERVER, TestFile, files};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const NEEDS: [&str; 7] = ["in.tftpd", "atftpd", "dnsmasq", "ganesha.nfsd", "nginx", "script", "gcc"];
const LIMIT: Duration = Duration::from_secs(100);

/// The folder with U-Boot on Bootlace, built once.
fn u_boot() -> PathBuf {
    static DONE: OnceLock<PathBuf> = OnceLock::new();
    DONE.get_or_init(|| bootlace_lab::u_boot::build("bootlace")).clone()
}

/// CRC-32 as U-Boot's `crc32` has it (ISO 3309).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 })
    })
}

/// Runs `commands`, each of which loads the file beside it to 0x1000000, and compares lengths and checksums.
#[track_caller]
fn loads(board: &Board, what: &str, steps: &[(String, &TestFile)]) -> String {
    // Memory between the two, so that nothing is left over from the load before.
    let script: Vec<_> = steps
        .iter()
        .map(|(load, _)| format!("setenv filesize; mw.b 0x1000000 a5 400000; {load}; crc32 0x1000000 0x$filesize"))
        .collect();
    let said = board.says(&script.join("; "));
    let sums: Vec<_> = said.lines().filter_map(|l| l.split(" ==> ").nth(1)).collect();
    let want: Vec<_> = steps
        .iter()
        .filter(|(_, file)| file.len > 0)
        .map(|(_, file)| format!("{:08x}", crc32(&fs::read(&file.path).expect("readable"))))
        .collect();
    assert_eq!(sums, want, "{what}: {steps:?}\n{said}");
    said
}
fn make(root: &Path, len: u64) -> TestFile {
    files::make(root, &format!("f{len}"), len, len).expect("the lab folder is writable")
}

fn tftp(options: &str, file: &TestFile) -> (String, TestFile) {
    let mut script = String::from("setenv tftpblocksize; setenv tftpwindowsize");
    for (name, value) in ["blocksize", "windowsize"].iter().zip(options.split_whitespace()) {
        script += &format!("; setenv tftp{name} {value}");
    }
    (format!("{script}; tftpboot 0x1000000 {}", file.name), file.clone())
}

fn borrowed(steps: &[(String, TestFile)]) -> Vec<(String, &TestFile)> {
    steps.iter().map(|(load, file)| (load.clone(), file)).collect()
}

#[test]
#[ignore = "ports: builds U-Boot"]
fn u_boot_gets_an_address_a_name_and_a_file() {
    let Some(lab) = Lab::new("u_boot_gets_an_address_a_name_and_a_file", &NEEDS) else { return };
    let board = Board::wired(&lab, u_boot());
    let root = lab.folder("root");
    let big = files::make(&root, "big.bin", 1_000_003, 3).expect("writable");
    let _server = Dnsmasq { tftp_root: Some(root), ..Dnsmasq::new("sv") }.start(&lab);
    let said = board.says(
        "setenv ipaddr; setenv serverip; setenv autoload yes; dhcp 0x1000000; crc32 0x1000000 $filesize; \
         printenv ipaddr serverip netmask gatewayip dnsip bootfile rootpath filesize fileaddr; \
         ping 10.77.0.1 && echo pinged; ping 10.77.0.77 || echo nobody there; \
         dns host1.lab.test found; printenv found; dns alias.lab.test; dns nothing.lab.test || echo no such name; \
         setenv autoload no; dhcp && echo no file",
    );
    let sum = format!("==> {:08x}", crc32(&fs::read(&big.path).expect("readable")));
    for want in [
        "DHCP client bound to address 10.77.0.1",
        &sum,
        "\nserverip=10.77.0.1\n",
        "\nnetmask=255.255.255.0\n",
        "\ngatewayip=10.77.0.1\n",
        "\ndnsip=10.77.0.1\n",
        "\nbootfile=big.bin\n",
        "\nrootpath=10.77.0.1:/export/root\n",
        "\nfilesize=f4243\n",
        "\nfileaddr=1000000\n",
        "\nhost 10.77.0.1 is alive\npinged\n",
        "\nping failed; host 10.77.0.77 is not alive\nnobody there\n",
        "\n10.77.0.11\nfound=10.77.0.11\n",
        "\n10.77.0.12\n",
        "\nDNS: host not found\n",
        "\nno such name\n",
        "\nno file\n",
    ] {
        assert!(said.contains(want), "{want:?} is not in\n{said}");
    }
}

#[test]
#[ignore = "ports: builds U-Boot"]
fn u_boot_loads_by_tftp_with_every_block_size_and_window() {
    let Some(lab) = Lab::new("u_boot_loads_by_tftp_with_every_block_size_and_window", &NEEDS) else { return };
    let board = Board::wired(&lab, u_boot());
    let root = lab.folder("root");
    let lengths = [1, 511, 512, 513, 1468, 1469, 65_464, 65_465, 1_234_567];
    let made: Vec<_> = lengths.map(|len| make(&root, len)).into();
    let large = &made[lengths.len() - 1];
    let windows = |server: &str, sizes: &[u32]| {
        let mut steps: Vec<_> = made.iter().map(|file| tftp("", file)).collect();
        for block in [512, 1024, 1468, 1469, 4096, 8192, 16_384, 65_464] {
            for window in sizes {
                steps.push(tftp(&format!("{block} {window}"), large));
            }
        }
        let said = loads(&board, server, &borrowed(&steps));
        assert_eq!(said.matches("\ndone\n").count(), steps.len(), "{said}");
    };
    let hpa = TftpdHpa::new(&root).start(&lab);
    windows("tftpd-hpa", &[1]);
    let said =
        board.says("tftpboot 0x1000000 nothing || echo refused; tftpboot 0x1000000 10.77.0.1:f513 && echo named");
    assert!(said.contains("TFTP error: 'File not found' (1)") && said.contains("\nrefused\n"), "{said}");
    assert!(said.contains("\nnamed\n"), "{said}");
    // One port of ours for all of them.
    let fixed: Vec<_> =
        made.iter().map(|f| (format!("setenv tftpsrcp 4711; tftpboot 0x1000000 {}", f.name), f)).collect();
    loads(&board, "tftpsrcp", &fixed);
    drop(hpa);
    let _atftpd = Atftpd::new(&root).start(&lab);
    windows("atftpd", &[1, 4, 8, 64]);
}

/// A server that says nothing of sizes: an empty file is there, too.
#[test]
#[ignore = "ports: builds U-Boot"]
fn u_boot_loads_from_a_server_without_options() {
    let Some(lab) = Lab::new("u_boot_loads_from_a_server_without_options", &NEEDS) else { return };
    let board = Board::wired(&lab, u_boot());
    let root = lab.folder("root");
    let file = make(&root, 700_001);
    let refuse = ["-r", "blksize", "-r", "tsize", "-r", "timeout"].map(String::from).to_vec();
    let _server = TftpdHpa { args: refuse, ..TftpdHpa::new(&root) }.start(&lab);
    let said = loads(&board, "no options", &borrowed(&[tftp("", &file)]));
    // A mark for each ten blocks of 1468, in lines.
    assert!(said.contains("Loading: *\u{8}####") && said.contains("Bytes transferred = 700001 (aae61 hex)"), "{said}");
}

#[test]
#[ignore = "ports: builds U-Boot"]
fn u_boot_loads_by_nfs() {
    let Some(lab) = Lab::new("u_boot_loads_by_nfs", &NEEDS) else { return };
    let board = Board::wired(&lab, u_boot());
    let root = lab.folder("root");
    let made: Vec<_> = [1, 1023, 1024, 65_537, 3_000_001].iter().map(|len| make(&root, *len)).collect();
    std::os::unix::fs::symlink("f3000001", root.join("link")).expect("writable");
    let _server = Ganesha::new(&root).start(&lab);
    let path = |name: &str| format!("nfs 0x1000000 {SERVER}:{}/{name}", root.display());
    let mut steps: Vec<_> = made.iter().map(|file| (path(&file.name), file)).collect();
    steps.push((path("link"), &made[4]));
    loads(&board, "nfs", &steps);
    let said =
        board.says(&format!("{} || echo refused; nfs 0x1000000 {SERVER}:/no/where || echo no mount", path("nothing")));
    assert!(said.contains("\nrefused\n") && said.contains("Cannot mount") && said.contains("\nno mount\n"), "{said}");
}

#[test]
#[ignore = "ports: builds U-Boot"]
fn u_boot_loads_by_http() {
    let Some(lab) = Lab::new("u_boot_loads_by_http", &NEEDS) else { return };
    let board = Board::wired(&lab, u_boot());
    let root = lab.folder("root");
    let made: Vec<_> = [1, 1448, 65_537, 3_000_001].iter().map(|len| make(&root, *len)).collect();
    let extra = "location /moved/ { rewrite ^/moved/(.*)$ http://10.77.0.1/$1 redirect; }".to_string();
    let _server = Nginx { extra, ..Nginx::new(&root) }.start(&lab);
    let mut steps: Vec<_> = made.iter().map(|file| (format!("wget 0x1000000 {SERVER}:/{}", file.name), file)).collect();
    for form in ["", "/", "http://10.77.0.1/", "http://10.77.0.1/moved/"] {
        steps.push((format!("wget 0x1000000 {form}{}", made[3].name), &made[3]));
    }
    let other = "setenv httpserverip 10.77.0.1; setenv serverip 10.77.0.77";
    steps.push((format!("{other}; wget 0x1000000 /{}", made[3].name), &made[3]));
    loads(&board, "wget", &steps);
    let said = board.says(&format!(
        "wget 0x1000000 {SERVER}:/nothing || echo refused; setenv httpdstp 81; \
                                    wget 0x1000000 /f1 || echo nobody there"
    ));
    assert!(said.contains("'Not Found' (404)") && said.contains("\nrefused\n"), "{said}");
    assert!(said.contains("\nnobody there\n"), "{said}");
}

#[test]
#[ignore = "ports: builds U-Boot"]
fn u_boot_saves_by_tftp() {
    let Some(lab) = Lab::new("u_boot_saves_by_tftp", &NEEDS) else { return };
    let board = Board::wired(&lab, u_boot());
    let root = lab.folder("root");
    let file = make(&root, 400_001);
    let bytes = fs::read(&file.path).expect("readable");
    let servers: [(&str, &dyn Fn() -> Process); 2] =
        [("tftpd-hpa", &|| TftpdHpa::new(&root).start(&lab)), ("atftpd", &|| Atftpd::new(&root).start(&lab))];
    for (name, start) in servers {
        let _server = start();
        let lengths = [1usize, 511, 512, 1468, 1469, 400_001];
        let mut script = format!("tftpboot 0x1000000 {}", file.name);
        for window in [1, 8] {
            for len in lengths {
                script +=
                    &format!("; setenv tftpwindowsize {window}; tftpput 0x1000000 {len:x} {SERVER}:put.{window}.{len}");
            }
        }
        let said = board.says(&script);
        for window in [1, 8] {
            for len in lengths {
                let stored = root.join(format!("put.{window}.{len}"));
                let got = fs::read(&stored).unwrap_or_else(|e| panic!("{name} {window} {len}: {e}\n{said}"));
                assert!(got == bytes[..len], "{name} window {window}: {len} bytes, stored {}", got.len());
                fs::remove_file(&stored).expect("writable");
            }
        }
    }
}

/// Frames lost, overtaken, duplicated, and a ring that holds four of them.
#[test]
#[ignore = "ports: builds U-Boot"]
fn u_boot_loads_over_bad_wires() {
    let Some(lab) = Lab::new("u_boot_loads_over_bad_wires", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    lab.ip("link add far type veth peer name ub");
    lab.mute("far");
    let board = Board::behind(&lab, "far", u_boot());
    let root = lab.folder("root");
    let file = make(&root, 300_001);
    let wires = [
        ("loss", Way { loss_ppm: 10_000, ..Way::clean() }),
        ("reordering", Way { reorder_ppm: 100_000, ..Way::clean() }),
        ("duplication", Way { dup_ppm: 50_000, ..Way::clean() }),
        ("ring", Way { ring: Some((4, Duration::from_micros(300))), ..Way::clean() }),
    ];
    let _nfs = Ganesha::new(&root).start(&lab);
    let _http = Nginx::new(&root).start(&lab);
    let _server = Atftpd::new(&root).start(&lab);
    for (name, back) in wires {
        let there = Way { seed: 2, ring: None, ..back.clone() };
        let ends = (End::Packet("far".into()), End::Tap("tap0".into()));
        let wire = Forwarder::start(&ends.0, &ends.1, there, back).expect("both ends are there");
        let mut steps: Vec<_> =
            ["", "512 1", "1468 16", "1468 64", "8192 1", "16384 2"].iter().map(|o| tftp(o, &file)).collect();
        steps.push((format!("nfs 0x1000000 {SERVER}:{}/{}", root.display(), file.name), file.clone()));
        steps.push((format!("wget 0x1000000 {SERVER}:/{}", file.name), file.clone()));
        loads(&board, name, &borrowed(&steps));
        let c = &wire.counts[1];
        let harm: u64 = [&c.lost, &c.reordered, &c.duplicated, &c.overflowed].iter().map(|n| n.load(Relaxed)).sum();
        assert!(harm > 0, "{name}: the wire did no harm");
    }
}

/// What does not fit, or would overwrite what is reserved, is refused before a byte is stored.
#[test]
#[ignore = "ports: builds U-Boot"]
fn u_boot_stores_nothing_of_what_does_not_fit() {
    let Some(lab) = Lab::new("u_boot_stores_nothing_of_what_does_not_fit", &NEEDS) else { return };
    let board = Board::wired(&lab, u_boot());
    let root = lab.folder("root");
    let file = files::make(&root, "huge", 250 << 20, 1).expect("writable");
    let small = make(&root, 1000);
    let _nfs = Ganesha::new(&root).start(&lab);
    let _http = Nginx::new(&root).start(&lab);
    let _server = TftpdHpa::new(&root).start(&lab);
    let nfs = format!("nfs 0x1000000 {SERVER}:{}/{}", root.display(), file.name);
    let said = board.says(&format!(
        "mw.b 0x1000000 a5 100000; crc32 0x1000000 100000; tftpboot 0x1000000 huge || echo refused 1; \
         crc32 0x1000000 100000; {nfs} || echo refused 2; crc32 0x1000000 100000; \
         wget 0x1000000 {SERVER}:/huge || echo refused 5; crc32 0x1000000 100000; \
         tftpboot 0x10000000 {small} || echo refused 3; tftpboot 0xfffffff0 {small} || echo refused 4; \
         tftpboot 0x1000000 {small} && echo still works",
        small = small.name
    ));
    let sums: Vec<_> = said.lines().filter_map(|l| l.split(" ==> ").nth(1)).collect();
    assert!(sums.len() == 4 && sums.iter().all(|s| s == &sums[0]), "{said}");
    for want in ["refused 1", "refused 2", "refused 3", "refused 4", "refused 5", "still works"] {
        assert!(said.contains(&format!("\n{want}\n")), "{want}: {said}");
    }
    assert!(said.contains("trying to overwrite reserved memory"), "{said}");
}

/// The cable is out for a second in the middle of a transfer.
#[test]
#[ignore = "ports: builds U-Boot"]
fn u_boot_goes_on_when_the_cable_is_back() {
    let Some(lab) = Lab::new("u_boot_goes_on_when_the_cable_is_back", &NEEDS) else { return };
    let board = Board::wired(&lab, u_boot());
    let root = lab.folder("root");
    let file = make(&root, 9_000_001);
    let _server = TftpdHpa::new(&root).start(&lab);
    // Small blocks in lock-step take some seconds.
    let load = format!("setenv tftpblocksize 64; tftpboot 0x1000000 {}; crc32 0x1000000 $filesize", file.name);
    let mut run = lab.spawn("u-boot", board.command(&load));
    run.wait_ready(LIMIT, |p| plain(&p.log()).contains("Loading: *\u{8}###"));
    let cable = |state: &str| board.peer.run(board.peer.command("ip", &format!("link set ub {state}")), LIMIT).ok();
    cable("down");
    std::thread::sleep(Duration::from_secs(1));
    assert!(run.running(), "the transfer was over before the cable was out:\n{}", plain(&run.log()));
    cable("up");
    assert!(run.wait(LIMIT).is_some(), "{}", plain(&run.log()));
    let sum = format!("==> {:08x}", crc32(&fs::read(&file.path).expect("readable")));
    assert!(plain(&run.log()).contains(&sum), "{}", plain(&run.log()));
}

/// Ctrl-C, typed while nobody answers, gives the prompt back; the card works.
#[test]
#[ignore = "ports: builds U-Boot"]
fn u_boot_returns_when_a_key_is_pressed() {
    let Some(lab) = Lab::new("u_boot_returns_when_a_key_is_pressed", &NEEDS) else { return };
    let board = Board::wired(&lab, u_boot());
    let command =
        board.command("setenv serverip 10.77.0.77; tftpboot 0x1000000 f || echo back; ping 10.77.0.1; echo over");
    // A terminal, raw: else the key would be a signal.
    let words: Vec<String> = command.get_args().map(|a| format!("'{}'", a.to_string_lossy())).collect();
    let typed = lab.write(
        "typed.sh",
        &format!(
            "exec {} {}\n",
            command.get_program().to_string_lossy(),
            words.join(" ").replace("'-c'", "'-t' 'raw' '-c'")
        ),
    );
    let mut keys = std::process::Command::new("sh");
    keys.arg("-c").arg(format!("(sleep 2; printf '\\003'; sleep 1) | script -qec 'sh {}' /dev/null", typed.display()));
    let said = plain(&lab.run(keys, LIMIT).stdout);
    for want in ["Loading: ", "\nAbort\n", "\nback\n", "host 10.77.0.1 is alive", "\nover\n"] {
        assert!(said.contains(want), "{want:?} is not in\n{said}");
    }
}
