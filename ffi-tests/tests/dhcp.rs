//! Leases from three real servers.

mod common;
use bootlace_lab::Lab;
use bootlace_lab::servers::*;
use common::*;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

/// What every server is set up to say.
#[track_caller]
fn lease(lab: &Lab, card: &str, more: &[&str]) {
    let done = lab.run(with(bare_lace(card), "dhcp"), LIMIT).ok();
    let text = &done.stdout;
    let line = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)).unwrap_or("").trim().to_string();
    let address = line("address");
    let last: u8 = address
        .strip_prefix("10.77.0.")
        .and_then(|a| a.strip_suffix("/24"))
        .and_then(|a| a.parse().ok())
        .unwrap_or_else(|| panic!("{text}"));
    assert!((100..=150).contains(&last), "{text}");
    for want in
        ["router 10.77.0.1", "dns 10.77.0.1", "domain lab.test", "server 10.77.0.1", "lease 3600 s"].iter().chain(more)
    {
        assert!(text.lines().any(|l| l == *want), "no `{want}` in:\n{text}");
    }
    assert!(done.took < Duration::from_secs(15), "{:?}", done.took);
}

#[test]
fn dnsmasq() {
    let Some(lab) = Lab::new("dnsmasq", &["dnsmasq", "gcc"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let server = Dnsmasq::new("tap0").start(&lab);
    let more = ["boot-file big.bin", "boot-server 10.77.0.1", "ntp 10.77.0.1", "root-path 10.77.0.1:/export/root"];
    lease(&lab, "--tap tap0", &more);
    assert!(server.log().contains("DHCPACK"), "{}", server.log());
}

#[test]
fn isc_dhcpd() {
    let Some(lab) = Lab::new("isc_dhcpd", &["dhcpd", "gcc"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let server = IscDhcpd::new("tap0").start(&lab);
    lease(&lab, "--tap tap0", &["boot-file big.bin", "boot-server 10.77.0.1"]);
    assert!(server.log().contains("DHCPACK"), "{}", server.log());
}

#[test]
fn kea() {
    let Some(lab) = Lab::new("kea", &["kea-dhcp4", "gcc"]) else { return };
    lab.veth("s0", "10.77.0.1/24", "c0");
    let server = Kea::new("s0").start(&lab);
    lease(&lab, "--packet c0", &["boot-file big.bin", "boot-server 10.77.0.1"]);
    assert!(server.log().contains("DHCP4_LEASE_ALLOC"), "{}", server.log());
}

#[test]
fn the_same_address_again() {
    let Some(lab) = Lab::new("the_same_address_again", &["dnsmasq", "gcc"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let _server = Dnsmasq::new("tap0").start(&lab);
    let ask = || lab.run(with(bare_lace("--tap tap0"), "dhcp"), LIMIT).ok().stdout;
    assert_eq!(ask(), ask());
}

#[test]
fn no_server() {
    let Some(lab) = Lab::new("no_server", &["gcc"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let done = lab.run(with(bare_lace("--tap tap0"), "dhcp --timeout 3000"), LIMIT);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.took > Duration::from_secs(2) && done.took < Duration::from_secs(20), "{:?}", done.took);
}

#[test]
fn a_boot_menu_of_dnsmasq() {
    let Some(lab) = Lab::new("a_boot_menu_of_dnsmasq", &["dnsmasq", "gcc"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let extra = ["pxe-prompt=\"which\",5", "pxe-service=x86PC,\"One\",one", "pxe-service=x86PC,\"Two\",two"];
    let server = Dnsmasq { extra: extra.map(String::from).to_vec(), ..Dnsmasq::new("tap0") }.start(&lab);
    let done = lab.run(with(bare_lace("--tap tap0"), "dhcp --pxe 0"), LIMIT).ok();
    assert!(done.stdout.lines().any(|l| l == "boot-file one.0"), "{}\n{}", done.stdout, server.log());
    assert!(done.stdout.lines().any(|l| l == "boot-server 10.77.0.1"), "{}", done.stdout);
    assert!(server.log().contains("PXE(tap0)"), "{}", server.log());
}

/// The address from one server, the boot file from another that gives no addresses.
#[test]
fn a_proxy_beside_the_address_server() {
    let Some(lab) = Lab::new("a_proxy_beside_the_address_server", &["dnsmasq", "dhcpd", "gcc"]) else { return };
    lab.ip("link add br0 type bridge");
    lab.ip("addr add 10.77.0.1/24 dev br0");
    lab.ip("link set br0 up");
    lab.tap("tap0", "");
    lab.ip("link set tap0 master br0");
    lab.ip("link add s0 type veth peer name p0");
    lab.sh("ethtool", "-K s0 tx off");
    lab.sh("ethtool", "-K p0 tx off");
    lab.ip("link set s0 master br0 up");
    let other = lab.peer("elsewhere");
    other.take(&lab, "p0", "10.77.0.2/24");
    let conf = "keep-in-foreground\nlog-facility=-\nport=0\nuser=root\ninterface=p0\nlog-dhcp\n\
                dhcp-range=10.77.0.0,proxy\npxe-service=x86PC,\"One\",one,10.77.0.2\n";
    let conf = lab.write("proxy.conf", conf);
    let mut proxy = lab.spawn("proxy", other.command("dnsmasq", &format!("-C {}", conf.display())));
    proxy.wait_ready(Duration::from_secs(10), |p| p.log().contains("started"));
    let server = IscDhcpd::new("br0").start(&lab);
    let done = lab.run(with(bare_lace("--tap tap0"), "dhcp --pxe 0"), LIMIT).ok();
    let said = |line: &str| done.stdout.lines().any(|l| l == line);
    assert!(said("server 10.77.0.1") && said("lease 3600 s") && said("router 10.77.0.1"), "{}", done.stdout);
    assert!(said("boot-file one.0") && said("boot-server 10.77.0.2"), "{}\n{}", done.stdout, proxy.log());
    assert!(server.log().contains("DHCPACK"), "{}", server.log());
    assert!(proxy.log().contains("PXE(p0)"), "{}", proxy.log());
}
