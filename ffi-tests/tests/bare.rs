//! Programs without an operating system: the floor programs of the benchmarks do the work they are measured by, and the
//! frame suite runs in an emulator.

use bootlace_lab::servers::*;
use bootlace_lab::{CLIENT, Lab, SERVER, files, programs};
use std::process::Command;
use std::time::Duration;

#[test]
fn bare_loop_fetches_whole_files() {
    let Some(lab) = Lab::new("bare_loop_fetches_whole_files", &["in.tftpd", "atftpd", "gcc"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let sizes = [0, 1, 1467, 1468, 1469, 4 << 20];
    let made: Vec<_> = sizes
        .iter()
        .map(|n| files::make(&root, &format!("f{n}"), *n, *n).expect("the lab folder is writable"))
        .collect();
    let get = |file: &bootlace_lab::TestFile, window: &str| {
        let out = lab.dir().join("out");
        let mut c = Command::new(programs::bare_tftp());
        c.args(["tap0", CLIENT, SERVER, &file.name, "1468", window]).arg(&out);
        let text = lab.run(c, Duration::from_secs(30)).ok().stdout;
        assert!(text.starts_with(&format!("{} bytes ", file.len)), "{text}");
        assert_eq!(files::sha256(&out).expect("written"), file.sha256, "{} window {window}", file.name);
    };
    let server = TftpdHpa::new(&root).start(&lab);
    made.iter().for_each(|f| get(f, "1"));
    drop(server);
    let _server = Atftpd::new(&root).start(&lab);
    made.iter().for_each(|f| get(f, "16"));
}

#[test]
fn case_e05_the_frame_suite_in_an_emulator() {
    let name = "case_e05_the_frame_suite_in_an_emulator";
    let tools = ["mips-linux-gnu-gcc", "qemu-mips", "/usr/bin/rustc"];
    let has = |tool: &str| Command::new(tool).arg("--version").output().is_ok_and(|o| o.status.success());
    if let Some(missing) = tools.into_iter().find(|t| !has(t)) {
        return bootlace_lab::skip(name, &format!("{missing} is missing"));
    }
    let run = |args: &[&str]| {
        let out = Command::new("sh").args(args).current_dir(programs::root()).output().expect("a shell");
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        (out.status.code(), format!("{said}{}", String::from_utf8_lossy(&out.stderr)))
    };
    let (status, said) = run(&["scripts/lib.sh", "mips32be"]);
    assert_eq!(status, Some(0), "{said}");
    // A machine of the other byte order that traps what is not aligned.
    let (status, said) = run(&["scripts/bare.sh", "mips32be", "ffi-tests/machines/unaligned.c"]);
    assert_ne!(status, Some(0), "an unaligned load goes through: {said}");
    assert!(!said.contains("went through") && !said.contains("error:"), "{said}");
    let (status, said) = run(&["scripts/bare.sh", "mips32be", "ffi-tests/machines/frames.c"]);
    assert!(status == Some(0) && said.starts_with("ok "), "{said}");
}

#[test]
fn bare_loop_reads_whole_files_of_an_export() {
    let needs = ["rpcbind", "ganesha.nfsd", "gcc"];
    let Some(lab) = Lab::new("bare_loop_reads_whole_files_of_an_export", &needs) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let _server = Ganesha::new(&root).start(&lab);
    for len in [1024, 100_000, 4 << 20] {
        let file = files::make(&root, &format!("f{len}"), len, len).expect("the lab folder is writable");
        for (size, depth) in [("1024", "1"), ("32768", "1"), ("32768", "8"), ("8192", "16")] {
            let out = lab.dir().join("out");
            let mut c = Command::new(programs::bare_nfs());
            c.args(["tap0", CLIENT, SERVER]).arg(&root).args([&file.name, size, depth]).arg(&out);
            let text = lab.run(c, Duration::from_secs(30)).ok().stdout;
            assert!(text.starts_with(&format!("{len} bytes ")), "{text}");
            assert_eq!(
                files::sha256(&out).expect("written"),
                file.sha256,
                "{len} bytes, READs of {size}, {depth} at once"
            );
        }
    }
}
