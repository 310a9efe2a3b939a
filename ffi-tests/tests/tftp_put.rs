//! Sending files by TFTP to servers that nobody here wrote.

mod common;
use bootlace_lab::forward::{End, Forwarder, Way};
use bootlace_lab::servers::*;
use bootlace_lab::{Lab, Process, SERVER, TestFile, files};
use common::*;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const NEEDS: [&str; 3] = ["in.tftpd", "atftpd", "gcc"];

fn each_server(lab: &Lab, root: &Path, mut test: impl FnMut(&str)) {
    let starts: [(&str, &dyn Fn() -> Process); 2] = [
        ("tftpd-hpa", &|| TftpdHpa::new(root).start(lab)),
        ("atftpd", &|| Atftpd { args: vec!["--trace".into(), "--verbose=7".into()], ..Atftpd::new(root) }.start(lab)),
    ];
    for (name, start) in starts {
        let _server = start();
        test(name);
    }
}

/// Sends `file` and compares what the server has stored.
#[track_caller]
fn put(lab: &Lab, root: &Path, card: &str, options: &str, file: &TestFile, what: &str) {
    let stored = root.join("stored");
    let _ = std::fs::remove_file(&stored);
    let c = with(lace(card), &format!("tftp put {options} {} {SERVER} stored", file.path.display()));
    let done = lab.run(c, LIMIT).ok();
    assert!(done.stdout.contains(&format!("{} bytes in ", file.len)), "{what} {options}: {}", done.stdout);
    // A server writes its last block when it has acknowledged it.
    for _ in 0..100 {
        if std::fs::metadata(&stored).is_ok_and(|m| m.len() == file.len) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    same(&stored, file, &format!("{what} {options}"));
}

#[test]
fn files_of_odd_sizes_to_every_server() {
    let Some(lab) = Lab::new("files_of_odd_sizes_to_every_server", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let (root, own) = (lab.folder("root"), lab.folder("own"));
    let sizes = [0, 1, 511, 512, 513, 1467, 1468, 1469, 8 * 1468, 64 * 1468 + 1, 1_000_001];
    let made: Vec<_> = sizes.map(|n| files::make(&own, &format!("f{n}"), n, n).expect("writable")).into();
    each_server(&lab, &root, |server| {
        for window in [1, 8, 64] {
            for file in &made {
                put(&lab, &root, "--tap tap0", &format!("-w {window}"), file, server);
            }
            put(&lab, &root, "--tap tap0", &format!("-w {window} --stream"), &made[10], server);
            put(&lab, &root, "--tap tap0", &format!("-w {window} -b 512"), &made[9], server);
            put(&lab, &root, "--tap tap0", &format!("-w {window} -b 8192"), &made[10], server);
        }
        put(&lab, &root, "--tap tap0", "", &made[10], server);
        put(&lab, &root, "--tap tap0", "-b 65464", &made[10], server);
    });
}

/// One frame in a hundred is lost, in each direction.
#[test]
fn files_over_a_wire_that_loses_frames() {
    let Some(lab) = Lab::new("files_over_a_wire_that_loses_frames", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    lab.tap("tap1", "");
    lab.mute("tap1");
    let (root, own) = (lab.folder("root"), lab.folder("own"));
    let file = files::make(&own, "f", 200_001, 5).expect("writable");
    each_server(&lab, &root, |server| {
        for window in [1, 8, 64] {
            let way = Way { loss_ppm: 10_000, seed: 7, ..Way::clean() };
            let back = Way { seed: 8, ..way.clone() };
            let ends = (End::Packet("tap1".into()), End::Tap("tap0".into()));
            let wire = Forwarder::start(&ends.0, &ends.1, way, back).expect("both ends are there");
            put(&lab, &root, "--tap tap1", &format!("-w {window}"), &file, server);
            let lost = wire.counts.iter().map(|c| c.lost.load(std::sync::atomic::Ordering::Relaxed)).sum::<u64>();
            assert!(lost > 0, "{server} window {window}: nothing was lost");
        }
    });
}
