//! The Linux kernel as the other end: ARP, ICMP and UDP.

mod common;
use bootlace_lab::{CLIENT, Lab, SERVER, programs};
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

#[test]
fn the_kernels_sockets_and_ours() {
    let Some(lab) = Lab::new("the_kernels_sockets_and_ours", &["gcc"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let mut c = std::process::Command::new(programs::with_card("udp_echo", &["ffi-tests/lab/udp_echo.c"]));
    c.args(["tap0", CLIENT]);
    let mut echo = lab.spawn("udp_echo", c);
    echo.wait_ready(LIMIT, |p| p.log().contains("ready"));
    let socket = UdpSocket::bind((SERVER, 0)).expect("the lab has the address");
    socket.set_read_timeout(Some(Duration::from_secs(3))).expect("not zero");
    socket.set_broadcast(true).expect("allowed");
    let mut count = 0;
    let mut exchange = |to: &str, port: u16, len: usize| {
        let sent: Vec<u8> = (0..len).map(|i| (i * 7 + len) as u8).collect();
        let mut got = [0u8; 2000];
        socket.send_to(&sent, (to, port)).expect("sent");
        let (n, from) = socket.recv_from(&mut got).unwrap_or_else(|e| panic!("{to}:{port} {len} bytes: {e}"));
        assert_eq!((from.ip().to_string().as_str(), from.port()), (CLIENT, port));
        assert_eq!(got[..n], sent);
        count += usize::from(port == 7);
    };
    for len in [0, 1, 2, 17, 18, 19, 511, 1471, 1472] {
        exchange(CLIENT, 7, len);
        exchange(CLIENT, 8, len);
    }
    exchange("10.77.0.255", 7, 33);
    exchange("255.255.255.255", 7, 34);
    for len in 100..600 {
        exchange(CLIENT, 7, len);
    }
    exchange(CLIENT, 7, 3);
    socket.send_to(b"quit", (CLIENT, 7)).expect("sent");
    assert!(echo.wait(LIMIT).is_some_and(|s| s.success()), "{}", echo.log());
    assert!(echo.log().contains(&format!("{} upcalls", count + 1)), "{}", echo.log());
}
