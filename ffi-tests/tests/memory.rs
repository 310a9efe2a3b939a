//! The C programs under valgrind: nothing read or written that is not theirs, nothing left behind.

mod common;
use bootlace_lab::servers::*;
use bootlace_lab::{CLIENT, Lab, SERVER, files, programs};
use common::*;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// `command` under valgrind, which ends with 99 when it finds something.
fn watched(command: &Command) -> Command {
    let mut c = Command::new("valgrind");
    c.args(["-q", "--error-exitcode=99", "--leak-check=full", "--track-origins=no"]);
    c.arg(command.get_program()).args(command.get_args());
    c
}

#[test]
fn the_demo() {
    let Some(lab) = Lab::new("the_demo", &["gcc", "valgrind"]) else { return };
    let demo = programs::with_card("demo", &["c-examples/demo.c", "c-examples/sha256.c"]);
    let mut c = Command::new(demo);
    c.arg("300001");
    let done = lab.run(watched(&c), LIMIT).ok();
    let last = done.stdout.lines().last().unwrap_or("");
    assert!(last.starts_with("demo: OK 300001 bytes sha256 "), "{}", done.stdout);
}

#[test]
fn the_tool() {
    let Some(lab) = Lab::new("the_tool", &["gcc", "valgrind", "dnsmasq"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    let file = files::make(&root, "file", 300_001, 1).expect("the lab folder is writable");
    let _server = Dnsmasq { tftp_root: Some(root), ..Dnsmasq::new("tap0") }.start(&lab);
    let out = lab.dir().join("got");
    let get = format!("tftp get -o {} {SERVER} file", out.display());
    for (card, rest) in [
        ("--tap tap0", "dhcp"),
        ("--tap tap0", "dns alias.lab.test"),
        ("--tap tap0", "ping -c 3 -i 10 host-that-is-not.lab.test"),
        ("--tap tap0 --push --copy", get.as_str()),
        ("--tap tap0 --ring 4", get.as_str()),
    ] {
        let done = lab.run(watched(&with(bare_lace(card), rest)), LIMIT);
        let want = i32::from(rest.starts_with("ping"));
        assert_eq!(done.code, want, "{card} {rest}: {done:?}");
    }
    same(&out, &file, "under valgrind");
}

#[test]
fn sockets() {
    let Some(lab) = Lab::new("sockets", &["gcc", "valgrind"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let mut c = Command::new(programs::with_card("udp_echo", &["ffi-tests/lab/udp_echo.c"]));
    c.args(["tap0", CLIENT]);
    let mut echo = lab.spawn("udp_echo", watched(&c));
    echo.wait_ready(LIMIT, |p| p.log().contains("ready"));
    let socket = std::net::UdpSocket::bind((SERVER, 0)).expect("the lab has the address");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("not zero");
    for port in [7, 8] {
        socket.send_to(&[7; 1001], (CLIENT, port)).expect("sent");
        assert_eq!(socket.recv(&mut [0; 2000]).expect("an answer"), 1001);
    }
    socket.send_to(b"quit", (CLIENT, 7)).expect("sent");
    assert!(echo.wait(LIMIT).is_some_and(|s| s.success()), "{}", echo.log());
}
