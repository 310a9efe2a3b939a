//! The floor programs of the benchmarks do the work they are measured by.

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
