//! Names from real servers.

mod common;
use bootlace_lab::servers::*;
use bootlace_lab::{Lab, SERVER};
use common::*;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

#[track_caller]
fn ask(lab: &Lab, name: &str) -> String {
    lab.run(with(lace("--tap tap0"), &format!("--dns {SERVER} dns {name}")), LIMIT).ok().stdout
}

#[test]
fn bind9() {
    let Some(lab) = Lab::new("bind9", &["named", "gcc"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let _server = Named::default().start(&lab);
    assert_eq!(ask(&lab, "host1.lab.test"), "10.77.0.11\n");
    assert_eq!(ask(&lab, "alias.lab.test"), "10.77.0.12\n");
    assert_eq!(ask(&lab, "ALIAS.Lab.Test."), "10.77.0.12\n");
    // Eight CNAMEs to the address.
    assert_eq!(ask(&lab, "chain1.lab.test"), "10.77.0.11\n");
    let done = lab.run(with(lace("--tap tap0"), &format!("--dns {SERVER} dns none.lab.test")), LIMIT);
    assert!(done.code == 1 && done.stdout.is_empty() && done.stderr.contains("(-2)"), "{done:?}");
}

#[test]
fn unbound() {
    let Some(lab) = Lab::new("unbound", &["unbound", "gcc"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let _server = Unbound::default().start(&lab);
    assert_eq!(ask(&lab, "host1.lab.test"), "10.77.0.11\n");
    // The answer is the CNAME alone: its target must be asked for.
    assert_eq!(ask(&lab, "alias.lab.test"), "10.77.0.12\n");
}

#[test]
fn name_of_the_boot_server() {
    let Some(lab) = Lab::new("name_of_the_boot_server", &["dnsmasq", "gcc"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    std::fs::write(root.join("hello"), "hello").expect("the lab folder is writable");
    let mut server = Dnsmasq { tftp_root: Some(root), ..Dnsmasq::new("tap0") };
    server.extra.push("host-record=boot.lab.test,10.77.0.1".into());
    let _server = server.start(&lab);
    // Address, name server and search domain by DHCP, then the file by name.
    for name in ["boot.lab.test", "boot"] {
        let done = lab.run(with(bare_lace("--tap tap0"), &format!("tftp get {name} hello")), LIMIT).ok();
        assert!(done.stdout.contains("5 bytes in "), "{}", done.stdout);
    }
}

#[test]
fn a_dead_server_before_a_live_one() {
    let Some(lab) = Lab::new("a_dead_server_before_a_live_one", &["unbound", "gcc"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let _server = Unbound::default().start(&lab);
    let c = with(lace("--tap tap0"), &format!("--dns 10.77.0.9 --dns {SERVER} dns host2.lab.test"));
    assert_eq!(lab.run(c, LIMIT).ok().stdout, "10.77.0.12\n");
}
