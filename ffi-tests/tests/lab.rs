//! The laboratory itself: each server answers an ordinary client, and the wire does what it is told.

use bootlace_lab::servers::*;
use bootlace_lab::{End, Forwarder, Lab, SERVER, TestFile, Way, files};
use std::fs;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(20);

fn with_file(lab: &Lab, len: u64) -> (std::path::PathBuf, TestFile) {
    let root = lab.folder("root");
    let file = files::make(&root, "a.bin", len, 7).expect("the lab folder is writable");
    (root, file)
}

/// Fetches the file with curl and compares.
#[track_caller]
fn curl(lab: &Lab, args: &str, url: &str, file: &TestFile) {
    let out = lab.dir().join("got");
    let _ = fs::remove_file(&out);
    lab.sh("curl", &format!("-sS --max-time 15 --noproxy * {args} -o {} {url}", out.display()));
    assert_eq!(files::sha256(&out).expect("curl wrote it"), file.sha256);
}

/// Gets a lease on `interface` with busybox's client; returns what its script was told.
#[track_caller]
fn udhcpc(lab: &Lab, interface: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let script = lab.write("udhcpc.sh", "#!/bin/sh\n[ \"$1\" = bound ] && env\nexit 0\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("own file");
    lab.sh("busybox", &format!("udhcpc -i {interface} -f -n -q -t 5 -T 1 -s {}", script.display()))
}

#[test]
fn known_contents() {
    let dir = std::env::temp_dir().join(format!("bootlace-files.{}", std::process::id()));
    fs::create_dir_all(&dir).expect("the temporary folder is writable");
    let empty = files::make(&dir, "empty", 0, 1).expect("written");
    assert_eq!(empty.sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    let (a, b) =
        (files::make(&dir, "a", 70_001, 1).expect("written"), files::make(&dir, "b", 70_001, 1).expect("written"));
    assert_eq!(a.sha256, b.sha256);
    assert_eq!(files::sha256(&a.path).expect("read"), a.sha256);
    assert_eq!(fs::metadata(&a.path).expect("there").len(), 70_001);
    assert_ne!(a.sha256, files::make(&dir, "c", 70_001, 2).expect("written").sha256);
    fs::remove_dir_all(&dir).expect("own folder");
}

#[test]
fn tftp_servers() {
    let Some(lab) = Lab::new("tftp_servers", &["curl", "in.tftpd", "dnsmasq", "atftpd"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let (root, file) = with_file(&lab, 100_000);
    let url = format!("tftp://{SERVER}/a.bin");
    let server = TftpdHpa::new(&root).start(&lab);
    curl(&lab, "--tftp-blksize 1468", &url, &file);
    drop(server);
    let server = Dnsmasq { tftp_root: Some(root.clone()), ..Dnsmasq::new("tap0") }.start(&lab);
    curl(&lab, "--tftp-blksize 1024", &url, &file);
    drop(server);
    let _server = Atftpd::new(&root).start(&lab);
    curl(&lab, "--tftp-blksize 512", &url, &file);
}

#[test]
fn http_and_ftp() {
    let Some(lab) = Lab::new("http_and_ftp", &["curl", "nginx", "vsftpd"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let (root, file) = with_file(&lab, 300_001);
    let _nginx = Nginx::new(&root).start(&lab);
    curl(&lab, "", &format!("http://{SERVER}/a.bin"), &file);
    let _vsftpd = Vsftpd::new(&root).start(&lab);
    curl(&lab, "", &format!("ftp://{SERVER}/a.bin"), &file);
    lab.sh("curl", &format!("-sS --max-time 15 -T {} ftp://{SERVER}/up/b.bin", file.path.display()));
    assert_eq!(files::sha256(&root.join("up/b.bin")).expect("uploaded"), file.sha256);
}

#[test]
fn dns_servers() {
    let Some(lab) = Lab::new("dns_servers", &["dig", "named", "unbound", "dnsmasq"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let dig = |name: &str| {
        let text = lab.sh("dig", &format!("@{SERVER} +time=3 +tries=2 +noedns +ignore {name}.lab.test A"));
        assert!(text.contains("status: NOERROR"), "{text}");
        text
    };
    let server = Named::default().start(&lab);
    assert!(dig("alias").contains("10.77.0.12"));
    assert!(dig("chain1").contains("10.77.0.11"));
    let many = dig("many");
    assert!(many.lines().any(|l| l.contains("flags:") && l.contains(" tc")), "{many}");
    drop(server);
    let server = Unbound::default().start(&lab);
    assert!(dig("host2").contains("10.77.0.12"));
    assert!(!dig("alias").contains("10.77.0.12"), "unbound gives no target of a local CNAME");
    drop(server);
    let _server = Dnsmasq::new("tap0").start(&lab);
    assert!(dig("alias").contains("10.77.0.12"));
}

#[test]
fn dhcp_servers() {
    let Some(lab) = Lab::new("dhcp_servers", &["busybox", "dnsmasq", "dhcpd", "kea-dhcp4"]) else { return };
    lab.veth("s0", "10.77.0.1/24", "c0");
    let lease = |text: String, boot: &str| {
        assert!(text.lines().any(|l| l.starts_with("ip=10.77.0.1")), "{text}");
        assert!(text.contains("router=10.77.0.1") && text.contains(boot), "{text}");
    };
    let server = Dnsmasq::new("s0").start(&lab);
    lease(udhcpc(&lab, "c0"), "big.bin");
    drop(server);
    let server = IscDhcpd::new("s0").start(&lab);
    lease(udhcpc(&lab, "c0"), "boot_file=big.bin");
    drop(server);
    let _server = Kea::new("s0").start(&lab);
    lease(udhcpc(&lab, "c0"), "boot_file=big.bin");
}

#[test]
fn nfs_and_iperf() {
    let Some(lab) = Lab::new("nfs_and_iperf", &["rpcbind", "rpcinfo", "ganesha.nfsd", "iperf"]) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let (root, _) = with_file(&lab, 1000);
    let _nfs = Ganesha::new(&root).start(&lab);
    for transport in ["udp", "tcp"] {
        let text = lab.sh("rpcinfo", &format!("-T {transport} {SERVER} nfs 3"));
        assert!(text.contains("ready and waiting"), "{text}");
        lab.sh("rpcinfo", &format!("-T {transport} {SERVER} mountd 3"));
    }
    let _iperf = Iperf::default().start(&lab);
    let text = lab.sh("iperf", &format!("-c {SERVER} -t 0.1 -B {SERVER}"));
    assert!(text.contains("bits/sec"), "{text}");
}

/// Two kernels with the wire between them.
fn joined(lab: &Lab, there: Way, back: Way) -> (bootlace_lab::Peer, Forwarder) {
    lab.tap("tap0", "10.77.0.1/24");
    lab.veth("c0", "", "c1");
    let peer = lab.peer("peer");
    peer.take(lab, "c0", "10.77.0.2/24");
    let wire = Forwarder::start(&End::Packet("c1".into()), &End::Tap("tap0".into()), there, back);
    (peer, wire.expect("both ends exist"))
}

fn ping(peer: &bootlace_lab::Peer, args: &str) -> String {
    peer.run(peer.command("ping", &format!("-n {args} {SERVER}")), LIMIT).stdout
}

#[test]
fn wire_delays_and_limits() {
    let Some(lab) = Lab::new("wire_delays_and_limits", &["ping", "nsenter"]) else { return };
    let way = Way { delay: Duration::from_millis(15), rate: 1_000_000, ..Way::clean() };
    let (peer, _wire) = joined(&lab, way, Way::clean());
    ping(&peer, "-c 1 -W 2");
    let text = ping(&peer, "-c 3 -i 0.1 -s 1000");
    assert!(text.contains(" 0% packet loss"), "{text}");
    let min = text.split("= ").nth(1).and_then(|t| t.split('/').next()).and_then(|t| t.parse::<f64>().ok());
    // 15 ms of delay and 1066 bytes at 1 Mbit/s: 8.5 ms, one way.
    let min = min.expect("ping prints its times");
    assert!((23.0..200.0).contains(&min), "{text}");
}

#[test]
fn wire_faults_replay_from_the_seed() {
    let Some(lab) = Lab::new("wire_faults_replay_from_the_seed", &["ping", "nsenter"]) else { return };
    let way = Way { loss_ppm: 200_000, reorder_ppm: 100_000, dup_ppm: 100_000, seed: 5, ..Way::clean() };
    let (peer, wire) = joined(&lab, way.clone(), Way::clean());
    let neighbour = format!("neigh replace {SERVER} lladdr {} nud permanent dev c0", lab.mac("tap0"));
    peer.run(peer.command("ip", &neighbour), LIMIT).ok();
    lab.ip(&format!("neigh replace 10.77.0.2 lladdr {} nud permanent dev tap0", peer.mac("c0")));
    let text = ping(&peer, "-c 100 -i 0.002 -W 1");
    assert_eq!(wire.counts[0].frames.load(Relaxed), 100);
    // The fate of every frame is known beforehand.
    let mut rng = bootlace_lab::Rng::new(5);
    let (mut lost, mut late, mut twice) = (0, 0, 0);
    for _ in 0..100 {
        let [l, r, d] = [way.loss_ppm, way.reorder_ppm, way.dup_ppm].map(|p| rng.chance(p));
        lost += u64::from(l);
        late += u64::from(!l && r);
        twice += u64::from(!l && !r && d);
    }
    let count = |c: &std::sync::atomic::AtomicU64| c.load(Relaxed);
    assert_eq!(count(&wire.counts[0].lost), lost);
    assert_eq!(count(&wire.counts[0].reordered), late);
    assert_eq!(count(&wire.counts[0].duplicated), twice);
    assert!(text.contains(&format!("{} received", 100 - lost)), "{lost} lost: {text}");
    assert!(twice > 0 && late > 0 && text.contains(&format!("+{twice} duplicates")), "{text}");
}

#[test]
fn children_end_with_the_lab() {
    let Some(lab) = Lab::new("children_end_with_the_lab", &["sh"]) else { return };
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 600 & echo $!; wait"]);
    let mut shell = lab.spawn("shell", command);
    shell.wait_ready(LIMIT, |p| p.log().contains('\n'));
    let grandchild = shell.log().trim().to_string();
    assert!(fs::metadata(format!("/proc/{grandchild}")).is_ok());
    let dir = lab.dir().to_path_buf();
    drop(shell);
    drop(lab);
    // SIGKILL is sent at once and taken when the kernel next runs the process: on a busy machine a moment later.
    let start = Instant::now();
    loop {
        let state = fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z ") {
            break;
        }
        assert!(start.elapsed() < LIMIT, "still there: {state}");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(!dir.exists());
}
