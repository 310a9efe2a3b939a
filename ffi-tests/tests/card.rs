//! The Linux card of the examples by itself.

use bootlace_lab::{Lab, SERVER, programs};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

fn program() -> PathBuf {
    static DONE: OnceLock<PathBuf> = OnceLock::new();
    DONE.get_or_init(|| programs::with_card("nic_test", &["ffi-tests/bare/nic_test.c"])).clone()
}

#[test]
fn resolves_through_each_kind_and_writes_pcap() {
    let Some(lab) = Lab::new("resolves_through_each_kind_and_writes_pcap", &["gcc", "tcpdump"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    lab.veth("s0", "", "c0");
    for kind in ["slirp", "tap tap0", "packet c0"] {
        if kind.starts_with("packet") {
            lab.ip("addr flush dev tap0");
            lab.ip("addr add 10.77.0.1/24 dev s0");
        }
        let pcap = lab.dir().join("frames.pcap");
        let mut c = Command::new(program());
        c.args(kind.split_whitespace()).arg(&pcap);
        assert!(lab.run(c, LIMIT).ok().stdout.starts_with("resolved "), "{kind}");
        let text = lab.sh("tcpdump", &format!("-n -r {}", pcap.display()));
        let asked = text.lines().position(|l| l.contains("Request who-has"));
        let told = text.lines().position(|l| l.contains("Reply") && l.contains("is-at"));
        assert!(asked.is_some() && asked < told, "{kind}: {text}");
    }
}

#[test]
fn a_ring_of_four_keeps_four() {
    let Some(lab) = Lab::new("a_ring_of_four_keeps_four", &["gcc"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let mut c = Command::new(program());
    c.args(["ring", "tap0"]);
    let mut card = lab.spawn("card", c);
    card.wait_ready(LIMIT, |p| p.log().contains("ready"));
    lab.ip("neigh replace 10.77.0.2 lladdr 02:b1:00:00:00:01 nud permanent dev tap0");
    let socket = UdpSocket::bind((SERVER, 0)).expect("the lab has the address");
    for _ in 0..10 {
        socket.send_to(b"frame", "10.77.0.2:9").expect("sent");
    }
    assert!(card.wait(LIMIT).is_some_and(|s| s.success()));
    assert!(card.log().contains("kept 4 dropped 6"), "{}", card.log());
}
