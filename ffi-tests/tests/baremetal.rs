//! The firmware of `c-examples/baremetal` on a board of qemu's, booted by servers that nobody here wrote over a wire with
//! losses. `ffi-tests/suite-baremetal.sh` boots it over a wire without, on all three machines.

use bootlace_lab::forward::{End, Forwarder, Way};
use bootlace_lab::servers::*;
use bootlace_lab::{Lab, files, programs, skip};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The function of `scripts/baremetal.sh` with these arguments.
fn shell(words: &str) -> Command {
    let mut c = Command::new("sh");
    c.current_dir(programs::root()).args(["-c", &format!(". scripts/baremetal.sh; {words}")]);
    c
}

#[test]
fn firmware_boots_16_mib_over_a_lossy_wire() {
    boot_over_a_lossy_wire("firmware_boots_16_mib_over_a_lossy_wire", "armv7", "armv7-uboot", "qemu-system-arm");
}

#[test]
#[ignore = "make test-long: builds a library of its own"]
fn firmware_boots_16_mib_over_a_lossy_wire_on_aarch64() {
    let name = "firmware_boots_16_mib_over_a_lossy_wire_on_aarch64";
    boot_over_a_lossy_wire(name, "aarch64", "aarch64", "qemu-system-aarch64");
}

#[test]
#[ignore = "make test-long: builds a library of its own"]
fn firmware_boots_16_mib_over_a_lossy_wire_on_riscv64() {
    let name = "firmware_boots_16_mib_over_a_lossy_wire_on_riscv64";
    boot_over_a_lossy_wire(name, "riscv64", "riscv64", "qemu-system-riscv64");
}

/// Machine `arch` of `emulator`, with the library of a target that suits.
fn boot_over_a_lossy_wire(name: &str, arch: &str, library: &str, emulator: &str) {
    if !Path::new("/usr/bin/rustc").exists() {
        return skip(name, "rustc-web is missing");
    }
    let gcc = match arch {
        "armv7" => "arm-linux-gnueabihf-gcc".to_string(),
        _ => format!("{arch}-linux-gnu-gcc"),
    };
    let needs = ["atftpd", "dnsmasq", emulator, &gcc];
    let Some(lab) = Lab::new(name, &needs) else { return };
    let built = shell(&format!("firmware {arch} {library}")).output().expect("a shell");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    lab.tap("tap0", "10.77.0.1/24");
    lab.tap("tap1", "");
    lab.mute("tap1");
    let root = lab.folder("root");
    let file = files::make(&root, "big.bin", 16 << 20, 5).expect("the lab folder is writable");
    let _tftp = Atftpd::new(&root).start(&lab);
    let _dhcp = Dnsmasq::new("tap0").start(&lab);
    let way = Way { loss_ppm: 5_000, ..Way::clean() };
    let wire =
        Forwarder::start(&End::Packet("tap1".into()), &End::Tap("tap0".into()), Way { seed: 2, ..way.clone() }, way)
            .expect("both ends are there");
    let start = Instant::now();
    let run = shell(&format!("board {arch} -netdev tap,id=n0,ifname=tap1,script=no,downscript=no"));
    let said = lab.run(run, Duration::from_secs(110)).ok().stdout;
    eprintln!("{:?}\n{said}", start.elapsed());
    let last = said.lines().last().unwrap_or_default().trim_end();
    assert_eq!(last, format!("boot: OK {} bytes sha256 {}", file.len, file.sha256), "{said}");
    let lost: u64 = wire.counts.iter().map(|c| c.lost.load(Relaxed)).sum();
    assert!(lost > 20, "{lost} frames were lost");
}
