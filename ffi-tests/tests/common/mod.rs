//! What the tests of the `lace` tool share.
#![allow(dead_code)]

use bootlace_lab::{CLIENT, Finished, Lab, SERVER, TestFile, files, programs};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The tool with the client's static address; `card` such as "--tap tap0".
pub fn lace(card: &str) -> Command {
    let mut c = bare_lace(card);
    c.args(["--ip", &format!("{CLIENT}/24")]);
    c
}

/// The tool without an address.
pub fn bare_lace(card: &str) -> Command {
    let mut c = Command::new(programs::lace());
    c.args(card.split_whitespace());
    c
}

/// Adds arguments separated by blanks.
pub fn with(mut c: Command, args: &str) -> Command {
    c.args(args.split_whitespace());
    c
}

/// Fetches `file` by TFTP and compares it; `options` such as "-b 1468". Returns what the tool said.
#[track_caller]
pub fn tftp_get(lab: &Lab, card: &str, options: &str, file: &TestFile, limit: Duration) -> Finished {
    let out = lab.dir().join("got");
    let _ = std::fs::remove_file(&out);
    let c = with(lace(card), &format!("tftp get {options} -o {} {SERVER} {}", out.display(), file.name));
    let done = lab.run(c, limit).ok();
    assert!(done.stdout.contains(&format!("{} bytes in ", file.len)), "{options}: {}", done.stdout);
    same(&out, file, options);
    done
}

/// Fails unless the file at `path` is `file`.
#[track_caller]
pub fn same(path: &Path, file: &TestFile, what: &str) {
    let got = std::fs::metadata(path).map(|m| m.len()).unwrap_or(0);
    assert_eq!(got, file.len, "{what}: length of {}", file.name);
    assert_eq!(files::sha256(path).expect("readable"), file.sha256, "{what}: contents of {}", file.name);
}
