//! `lace iperf` with Debian's iperf 2 at the other end.

mod common;
use bootlace_lab::servers::Iperf;
use bootlace_lab::{CLIENT, Lab, SERVER};
use common::*;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);
const NEEDS: [&str; 2] = ["gcc", "iperf"];
const TAP: &str = "--tap tap0";

#[test]
fn a_client_of_iperf() {
    let Some(lab) = Lab::new("a_client_of_iperf", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let server = Iperf::default().start(&lab);
    for options in ["-n 10000000", "-n 10000000 --copy", "-n 1000000 -P 3"] {
        let done = lab.run(with(lace(TAP), &format!("iperf -c {SERVER} {options}")), LIMIT).ok();
        let bytes = options.split(' ').nth(1).expect("a number");
        let each = done.stdout.lines().filter(|l| l.contains(&format!("  {bytes} bytes  "))).count();
        assert_eq!(each, if options.contains("-P") { 3 } else { 1 }, "{options}: {done:?}");
    }
    let done = lab.run(with(lace(TAP), &format!("iperf -c {SERVER} -t 1")), LIMIT).ok();
    assert!(done.took > Duration::from_secs(1) && done.took < Duration::from_secs(10), "{done:?}");
    eprintln!("{}", done.stdout.trim());
    // What the server has seen: 1e7 bytes are 9.54 of its megabytes.
    assert!(server.log().matches("9.54 MBytes").count() >= 2, "{}", server.log());
    assert!(server.log().matches("977 KBytes").count() >= 3, "{}", server.log());
}

#[test]
fn a_server_for_iperf() {
    let Some(lab) = Lab::new("a_server_for_iperf", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    for options in ["", "--copy"] {
        let mut server = lab.spawn("lace", with(lace(TAP), &format!("iperf -s {options}")));
        server.wait_ready(LIMIT, |p| p.log().contains("listening"));
        for args in ["-n 10000000", "-n 1000000 -P 3", "-t 1"] {
            let mut c = Command::new("iperf");
            c.args(["-c", CLIENT]).args(args.split(' '));
            let done = lab.run(c, LIMIT).ok();
            assert!(done.stdout.contains("bits/sec"), "{options} {args}: {done:?}");
            assert!(!done.stderr.contains("fail") && !done.stderr.contains("WARN"), "{options} {args}: {done:?}");
        }
        server.signal(libc::SIGTERM);
        assert!(server.wait(LIMIT).is_some(), "{}", server.log());
        // The client sends whole buffers of 128 KiB.
        let counts: Vec<u64> = (server.log().lines())
            .filter_map(|l| l.split_once(" sec  ")?.1.split_once(" bytes")?.0.parse().ok())
            .collect();
        assert_eq!(counts.len(), 5, "{}", server.log());
        assert!((10_000_000..10_200_000).contains(&counts[0]), "{counts:?}");
        assert!(counts[1..4].iter().all(|n| (1_000_000..1_200_000).contains(n)), "{counts:?}");
        assert!(counts[4] > 1_000_000, "{counts:?}");
        eprintln!("{options}: {}", server.log().trim());
    }
}
