//! NFS with a server that nobody here wrote.

mod common;
use bootlace_lab::servers::Ganesha;
use bootlace_lab::{Finished, Lab, SERVER, TestFile, files};
use common::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const NEEDS: [&str; 3] = ["rpcbind", "ganesha.nfsd", "gcc"];
const MIB: u64 = 1 << 20;

/// A lab with a TAP and a folder to export.
fn lab(name: &str) -> Option<(Lab, PathBuf)> {
    let lab = Lab::new(name, &NEEDS)?;
    lab.tap("tap0", "10.77.0.1/24");
    let root = lab.folder("root");
    Some((lab, root))
}

fn make(root: &Path, len: u64) -> TestFile {
    files::make(root, &format!("f{len}"), len, len).expect("the lab folder is writable")
}

/// `lace nfs COMMAND OPTIONS HOST:ROOT PATH`.
fn nfs(lab: &Lab, root: &Path, command: &str, path: &str, limit: Duration) -> Finished {
    let c = with(lace("--tap tap0 --stats"), &format!("nfs {command} {SERVER}:{} {path}", root.display()));
    lab.run(c, limit)
}

/// Reads `file` whole and compares it; options such as "--tcp". Returns what the tool said.
#[track_caller]
fn get(lab: &Lab, root: &Path, options: &str, file: &TestFile, limit: Duration) -> Finished {
    let done = nfs(lab, root, &format!("get --sha256 {options}"), &file.name, limit).ok();
    assert!(done.stdout.contains(&format!("{} bytes in ", file.len)), "{options}: {}", done.stdout);
    assert!(done.stdout.contains(&format!("sha256 {}", file.sha256)), "{options}: {}", done.stdout);
    eprintln!("{options} {}: {}", file.name, done.stdout.lines().next().unwrap_or(""));
    done
}

#[test]
fn sixteen_mebibytes_over_udp_and_tcp() {
    let Some((lab, root)) = lab("sixteen_mebibytes_over_udp_and_tcp") else { return };
    let file = make(&root, 16 * MIB);
    let small: Vec<_> = [0, 1, 3, 1023, 32768, 32769, 100_000].iter().map(|n| make(&root, *n)).collect();
    let _server = Ganesha::new(&root).start(&lab);
    for (options, transport) in [("", "udp"), ("--udp", "udp"), ("--tcp", "tcp")] {
        let done = get(&lab, &root, options, &file, LIMIT);
        assert!(done.stdout.contains(&format!("transport {transport}")), "{options}: {}", done.stdout);
        for file in &small {
            get(&lab, &root, options, file, LIMIT);
        }
        for size in ["1024", "8192", "65536"] {
            get(&lab, &root, &format!("{options} -r {size}"), &small[6], LIMIT);
        }
    }
}

fn list(lab: &Lab, root: &Path, options: &str, path: &str) -> Vec<String> {
    let done = nfs(lab, root, &format!("ls {options}"), path, LIMIT).ok();
    let mut names: Vec<_> =
        done.stdout.lines().map(|l| l.split_whitespace().nth(3).expect("a name").to_string()).collect();
    names.sort();
    names
}

#[test]
fn ten_thousand_names_are_listed_whole() {
    let Some((lab, root)) = lab("ten_thousand_names_are_listed_whole") else { return };
    let folder = lab.folder("root/many");
    let mut names: Vec<_> = (0..10_000).map(|n| format!("{n:05}-{}", "x".repeat(n % 60))).collect();
    for name in &names {
        fs::write(folder.join(name), "").expect("the lab folder is writable");
    }
    names.sort();
    lab.folder("root/none");
    let _server = Ganesha::new(&root).start(&lab);
    for options in ["--udp", "--tcp"] {
        assert!(list(&lab, &root, options, "many") == names, "{options}");
        assert_eq!(list(&lab, &root, options, "none"), [""; 0], "{options}");
        assert_eq!(list(&lab, &root, options, "."), ["many", "none"], "{options}");
    }
}

#[test]
fn a_sparse_file_beyond_four_gibibytes() {
    let Some((lab, root)) = lab("a_sparse_file_beyond_four_gibibytes") else { return };
    let end = make(&root, 100_000);
    let len: u64 = (5 << 30) + 12_345;
    let sparse = fs::File::create(root.join("sparse")).expect("the lab folder is writable");
    sparse.set_len(len).expect("sparse files work");
    let at = len - end.len;
    std::os::unix::fs::FileExt::write_all_at(&sparse, &fs::read(&end.path).expect("just made"), at).expect("room");
    let _server = Ganesha::new(&root).start(&lab);
    for options in ["--udp", "--tcp"] {
        let stat = nfs(&lab, &root, &format!("stat {options}"), "sparse", LIMIT).ok();
        assert!(stat.stdout.contains(&format!(" {len} ")), "{}", stat.stdout);
        for args in [format!("--offset {at}"), format!("--offset {at} --length {}", end.len)] {
            let done = nfs(&lab, &root, &format!("get --sha256 {options} {args}"), "sparse", LIMIT).ok();
            assert!(done.stdout.contains(&format!("sha256 {}", end.sha256)), "{args}: {}", done.stdout);
        }
        // Across the edge of 4 GiB, and from the end of the file on.
        let done =
            nfs(&lab, &root, &format!("get {options} --offset {} --length 8192", (4u64 << 30) - 4096), "sparse", LIMIT);
        assert!(done.ok().stdout.contains("8192 bytes in "));
        let done = nfs(&lab, &root, &format!("get {options} --offset {len}"), "sparse", LIMIT);
        assert!(done.ok().stdout.contains("0 bytes in "));
        // The whole of it has no place.
        let done = nfs(&lab, &root, &format!("get {options}"), "sparse", LIMIT);
        assert!(done.code == 1 && done.stderr.contains("(-27)"), "{done:?}");
    }
}

#[test]
fn symbolic_links_and_errors() {
    let Some((lab, root)) = lab("symbolic_links_and_errors") else { return };
    let file = make(&root, 5000);
    let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, root.join(at)).expect("the lab folder is writable");
    lab.folder("root/a/b");
    link("../../f5000", "a/b/up");
    link(&format!("{}/a/b/up", root.display()), "absolute");
    link("a/./b//up", "c0");
    for n in 1..14 {
        link(&format!("c{}", n - 1), &format!("c{n}"));
    }
    link("loop2", "loop1");
    link("loop1", "loop2");
    link("nowhere", "dangling");
    fs::write(root.join("secret"), "x").expect("the lab folder is writable");
    let long = "n".repeat(255);
    fs::copy(&file.path, root.join(&long)).expect("the lab folder is writable");
    let server = Ganesha::new(&root).start(&lab);
    for options in ["--udp", "--tcp"] {
        for path in ["f5000", "a/b/up", "absolute", "c0", "c13", "a/../a/b/../../f5000", "../../f5000", "/f5000", &long]
        {
            get(&lab, &root, options, &TestFile { name: path.into(), ..file.clone() }, LIMIT);
        }
        let cat = nfs(&lab, &root, &format!("cat {options}"), "secret", LIMIT).ok();
        assert_eq!(cat.stdout, "x");
        let stat = nfs(&lab, &root, &format!("stat {options}"), "a/b/up", LIMIT).ok();
        assert!(stat.stdout.starts_with('l') && stat.stdout.contains("a/b/up -> ../../f5000"), "{}", stat.stdout);
        for (path, code) in [("loop1", -40), ("dangling", -2), ("none/x", -2), ("f5000/x", -20), ("a", -21)] {
            let done = nfs(&lab, &root, &format!("get {options}"), path, LIMIT);
            assert!(done.code == 1 && done.stderr.contains(&format!("({code})")), "{path}: {done:?}");
        }
    }
    let text = lab.run(with(lace("--tap tap0"), &format!("nfs exports {SERVER}")), LIMIT).ok().stdout;
    assert!(text.starts_with(root.to_str().expect("UTF-8")), "{text}");
    let done = nfs(&lab, Path::new("/not/exported"), "get", "x", LIMIT);
    assert!(done.code == 1 && done.stderr.contains("NFS error 13"), "{done:?}");
    drop(server);
    // The host is there, and nobody listens.
    let done = nfs(&lab, &root, "get", "x", LIMIT);
    assert!(done.code == 1 && done.stderr.contains("(-111)") && done.took < Duration::from_secs(2), "{done:?}");
}

/// The programs of a server that serves less than all of them over UDP.
#[test]
fn the_transport_is_chosen_or_given() {
    let Some((lab, root)) = lab("the_transport_is_chosen_or_given") else { return };
    let file = make(&root, 100_000);
    for udp in ["Mount", "False"] {
        let _server = Ganesha { udp, ..Ganesha::new(&root) }.start(&lab);
        for options in ["", "--tcp"] {
            let done = get(&lab, &root, options, &file, LIMIT);
            assert!(done.stdout.contains("transport tcp"), "{udp} {options}: {}", done.stdout);
        }
        let done = nfs(&lab, &root, "get --udp", &file.name, LIMIT);
        assert!(done.code == 1 && done.stderr.contains("not registered for UDP"), "{done:?}");
    }
}

/// The server ends without warning in mid-transfer, stays away for a while and comes back.
#[test]
fn a_server_that_restarts_in_mid_transfer() {
    let Some((lab, root)) = lab("a_server_that_restarts_in_mid_transfer") else { return };
    if bootlace_lab::lab::which("tc").is_none() {
        return bootlace_lab::lab::skip(lab.name(), "tc is not installed");
    }
    lab.sh("tc", "qdisc add dev tap0 root tbf rate 120mbit burst 64kb limit 4mb");
    let file = make(&root, 16 * MIB);
    let mut server = Ganesha::new(&root).start(&lab);
    for options in ["--udp", "--tcp"] {
        let command = with(
            lace("--tap tap0 --stats"),
            &format!("nfs get --sha256 {options} {SERVER}:{} {}", root.display(), file.name),
        );
        let mut client = lab.spawn("client", command);
        std::thread::sleep(Duration::from_millis(400));
        server.kill();
        assert!(client.running(), "{options}: it was over before: {}", client.log());
        std::thread::sleep(Duration::from_millis(500));
        server.restart(&lab);
        let status = client.wait(LIMIT).unwrap_or_else(|| panic!("{options}: no end: {}", client.log()));
        let log = client.log();
        assert!(status.success() && log.contains(&format!("sha256 {}", file.sha256)), "{options}: {log}");
        let again = log.lines().find_map(|l| l.strip_prefix("rpc_retransmit ")).unwrap_or("0");
        assert!(options == "--tcp" || again.parse::<u32>().is_ok_and(|n| n > 0), "{options}: {log}");
        eprintln!(
            "{options}: {}, {again} calls repeated",
            log.lines().find(|l| l.contains(" bytes in ")).unwrap_or("")
        );
    }
}

#[test]
#[ignore = "long: 300 MiB twice"]
fn three_hundred_mebibytes_over_udp_and_tcp() {
    let Some((lab, root)) = lab("three_hundred_mebibytes_over_udp_and_tcp") else { return };
    let file = make(&root, 300 * MIB);
    let _server = Ganesha::new(&root).start(&lab);
    for options in ["--udp", "--tcp"] {
        get(&lab, &root, options, &file, 2 * LIMIT);
    }
}

/// Two files open at once, read here and there by `ffi-tests/lab/nfs_files.c`.
#[test]
fn files_read_in_pieces() {
    let Some((lab, root)) = lab("files_read_in_pieces") else { return };
    let files = [make(&root, 5_000_001), make(&root, 777_777)];
    let large = make(&root, 16 * MIB);
    let _server = Ganesha::new(&root).start(&lab);
    let program = bootlace_lab::programs::with_card("nfs_files", &["ffi-tests/lab/nfs_files.c"]);
    for transport in ["udp", "tcp"] {
        let mut c = std::process::Command::new(&program);
        c.args(["tap0", bootlace_lab::CLIENT, SERVER]).arg(&root);
        c.args([&files[0].name, &files[1].name, transport]);
        let done = lab.run(c, LIMIT).ok();
        assert!(done.stdout.contains("800 reads of two files"), "{}", done.stdout);
        for options in
            ["--piece 4096", "--piece 4096 --readahead 16384", "--piece 100000 --readahead 512", "--piece 1000000"]
        {
            let file = if options.contains("512") { &files[1] } else { &large };
            get(&lab, &root, &format!("--{transport} {options}"), file, LIMIT);
        }
    }
}
