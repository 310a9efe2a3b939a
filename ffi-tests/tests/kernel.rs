//! The Linux kernel as the other end: ARP, ICMP and UDP.

mod common;
use bootlace_lab::{CLIENT, Lab, SERVER};
use common::*;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn ping_the_kernel() {
    let Some(lab) = Lab::new("ping_the_kernel", &["gcc"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    for size in [0, 1, 56, 1001, 1472] {
        let done = lab.run(with(lace("--tap tap0"), &format!("ping -c 3 -i 10 -s {size} {SERVER}")), LIMIT).ok();
        assert!(done.stdout.contains("3 sent, 3 received"), "{}", done.stdout);
    }
    // Nobody there.
    let done = lab.run(with(lace("--tap tap0"), "ping -c 2 -i 10 -W 300 10.77.0.9"), LIMIT);
    assert!(
        done.code == 1 && done.stdout.contains(" 0 received") && done.stderr.contains("host unreachable"),
        "{done:?}"
    );
}

#[test]
fn the_kernel_pings_us() {
    let Some(lab) = Lab::new("the_kernel_pings_us", &["gcc", "ping"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    // Stays on the wire by pinging for a long time itself.
    let _lace = lab.spawn("lace", with(lace("--tap tap0"), &format!("ping -c 100000 -i 50 {SERVER}")));
    let start = Instant::now();
    let ping = |args: &str| {
        let mut c = std::process::Command::new("ping");
        c.args(["-n"]).args(args.split_whitespace()).arg(CLIENT);
        lab.run(c, LIMIT)
    };
    while ping("-c 1 -W 1").code != 0 {
        assert!(start.elapsed() < LIMIT, "no answer at all");
    }
    for size in [0, 16, 57, 1472] {
        let done = ping(&format!("-c 5 -i 0.01 -s {size} -p a5")).ok();
        assert!(done.stdout.contains(" 0% packet loss") && !done.stdout.contains("wrong data"), "{}", done.stdout);
    }
    // A port nobody listens on: the kernel's socket is told.
    let socket = UdpSocket::bind((SERVER, 0)).expect("the lab has the address");
    socket.connect((CLIENT, 9)).expect("a route");
    socket.set_read_timeout(Some(Duration::from_secs(3))).expect("not zero");
    socket.send(b"anybody?").expect("sent");
    let error = socket.recv(&mut [0; 16]).expect_err("nobody listens");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
    // The kernel learned our hardware address by ARP.
    let table = lab.sh("ip", "neigh show dev tap0");
    assert!(table.contains(CLIENT) && table.contains("lladdr 02:b1:"), "{table}");
}
