//! HTTP with nginx: files whole and in parts, however their ends are told, over wires that lose frames and break.

mod common;
use bootlace_lab::{CLIENT, End, Finished, Forwarder, Lab, Process, SERVER, TestFile, Way, files, servers};
use common::*;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(300);
const NEEDS: [&str; 2] = ["nginx", "gcc"];
const TAP: &str = "--tap tap0";
const MIB: u64 = 1 << 20;

struct Site {
    lab: Lab,
    root: PathBuf,
    _server: Process,
}

impl Site {
    /// nginx on the TAP. Below /chunked files come in chunks, below /plain to the end of the stream.
    fn new(name: &str, needs: &[&str]) -> Option<Site> {
        let lab = Lab::new(name, needs)?;
        lab.tap("tap0", "10.77.0.1/24");
        let root = lab.folder("root");
        let at = root.display().to_string();
        let mut server = servers::Nginx::new(&root);
        server.extra = format!(
            "location /chunked/ {{ alias {at}/; ssi on; ssi_types *; }}\n\
             location /plain/ {{ alias {at}/; ssi on; ssi_types *; chunked_transfer_encoding off; }}\n\
             location /whole/ {{ alias {at}/; max_ranges 0; }}\n\
             location /moved/ {{ rewrite ^/moved/(.*)$ /$1 redirect; }}\n\
             location /round/ {{ return 302 /round/; }}\n\
             location /closed/ {{ alias {at}/; auth_basic x; auth_basic_user_file {at}/users; }}\n\
             location /slow/ {{ alias {at}/; limit_rate 2m; }}\n"
        );
        let process = server.start(&lab);
        Some(Site { lab, root, _server: process })
    }

    fn make(&self, len: u64) -> TestFile {
        files::make(&self.root, &format!("f{len}"), len, len).expect("the lab folder is writable")
    }

    /// `lace CARD http ARGS http://SERVER/PATH`.
    fn http(&self, card: &str, args: &str, path: &str, limit: Duration) -> Finished {
        self.lab.run(with(lace(card), &format!("http {args} http://{SERVER}/{path}")), limit)
    }

    /// Fetches `file` from below `folder`; its hash must be right. Returns what the tool said.
    #[track_caller]
    fn get(&self, card: &str, args: &str, folder: &str, file: &TestFile, limit: Duration) -> Finished {
        let path = format!("{folder}{}", file.name);
        let done = self.http(card, &format!("get --sha256 {args}"), &path, limit).ok();
        assert!(done.stdout.contains(&format!("{} bytes in ", file.len)), "{path}: {}", done.stdout);
        assert!(done.stdout.contains(&format!("sha256 {}", file.sha256)), "{path}: {}", done.stdout);
        eprintln!("{card} {args} {path}: {}", done.stdout.lines().next().unwrap_or(""));
        done
    }
}

/// The hash of a part of a file.
fn hash_of(file: &TestFile, range: std::ops::Range<usize>) -> String {
    files::sha256_of(&std::fs::read(&file.path).expect("readable")[range])
}

#[test]
fn sixteen_mebibytes_whole_in_parts_and_in_chunks() {
    let Some(site) = Site::new("sixteen_mebibytes_whole_in_parts_and_in_chunks", &NEEDS) else { return };
    let file = site.make(16 * MIB);
    for folder in ["", "chunked/", "plain/", "whole/", "moved/"] {
        site.get(TAP, "", folder, &file, LIMIT);
    }
    for card in ["--tap tap0 --push", "--tap tap0 --copy", "--tap tap0 --busy"] {
        site.get(card, "", "", &file, LIMIT);
    }
    let (first, last) = (5 * MIB as usize + 1, 9 * MIB as usize);
    for folder in ["", "whole/"] {
        for (range, part) in [
            (format!("{first}-{last}"), first..last + 1),
            (format!("{first}-"), first..file.len as usize),
            ("0-0".into(), 0..1),
        ] {
            let len = part.len();
            let done =
                site.http(TAP, &format!("get --sha256 --range {range}"), &format!("{folder}{}", file.name), LIMIT);
            let text = done.ok().stdout;
            assert!(text.contains(&format!("{len} bytes in ")), "{text}");
            assert!(text.contains(&format!("sha256 {}", hash_of(&file, part))), "{folder} {range}: {text}");
        }
    }
    for len in [0, 1, 1447, 1448, 1449, 8191, 8192, 8193, 65_536] {
        let file = site.make(len);
        for folder in ["", "chunked/", "plain/"] {
            site.get(TAP, "", folder, &file, LIMIT);
        }
    }
}

#[test]
fn heads_redirects_and_refusals() {
    let Some(site) = Site::new("heads_redirects_and_refusals", &NEEDS) else { return };
    let file = site.make(12_345);
    std::fs::write(site.root.join("users"), "Aladdin:{PLAIN}opensesame\n").expect("the lab folder is writable");
    let head = site.http(TAP, "head", &file.name, LIMIT).ok().stdout;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("Content-Length: 12345\r\n"), "{head}");
    assert!(head.contains("ETag: \"") && head.ends_with("\r\n\r\n"), "{head}");
    site.get(TAP, "-u Aladdin:opensesame", "closed/", &file, LIMIT);
    let fails = |args: &str, path: &str, code: &str, says: &str| {
        let done = site.http(TAP, args, path, LIMIT);
        assert!(done.code == 1 && done.stderr.contains(code) && done.stderr.contains(says), "{path}: {done:?}");
    };
    fails("get", "missing", "(-2)", "404");
    fails("head", "missing", "(-2)", "404");
    fails("get", &format!("closed/{}", file.name), "(-13)", "401");
    fails("get -u Aladdin:sesame", &format!("closed/{}", file.name), "(-13)", "401");
    fails("get", "round/", "(-40)", "302");
    fails("get --redirects 0", &format!("moved/{}", file.name), "(-40)", "302");
    fails("get --room 12344", &file.name, "(-27)", "");
    fails("get --range 12346-", &file.name, "(-61)", "416");
    for (url, code) in [("https://a/", "(-95)"), ("http://[::1]/", "(-97)"), ("ftp://a/", "(-22)")] {
        let done = site.lab.run(with(lace(TAP), &format!("http get {url}")), LIMIT);
        assert!(done.code == 1 && done.stderr.contains(code), "{done:?}");
    }
}

/// Names in URLs are looked up, and told to the server as they are, whatever a redirect leads to.
#[test]
fn a_site_by_name() {
    let Some(site) = Site::new("a_site_by_name", &["nginx", "dnsmasq", "gcc"]) else { return };
    let file = site.make(100_000);
    let mut names = servers::Dnsmasq::new("tap0");
    names.extra.push(format!("host-record=boot.lab.test,{SERVER}"));
    let _names = names.start(&site.lab);
    let card = format!("{TAP} --dns {SERVER}");
    for (path, code) in [("", 0), ("moved/", 0), ("none/", 1)] {
        let url = format!("http://boot.lab.test/{path}{}", file.name);
        let done = site.lab.run(with(lace(&card), &format!("http get --sha256 {url}")), LIMIT);
        assert_eq!(done.code, code, "{done:?}");
        assert!(code == 1 || done.stdout.contains(&format!("sha256 {}", file.sha256)), "{done:?}");
    }
    let done = site.lab.run(with(lace(&card), "http get http://nobody.lab.test/x"), LIMIT);
    assert!(done.code == 1 && done.stderr.contains("(-2)") && done.stderr.contains("DNS"), "{done:?}");
}

/// A wire between the kernel's interface `tap0` and `near`.
fn join(near: &str, way: &Way) -> Forwarder {
    let back = Way { seed: way.seed ^ 0xffff, ..way.clone() };
    Forwarder::start(&End::Packet(near.into()), &End::Tap("tap0".into()), way.clone(), back).expect("both ends exist")
}

#[test]
fn four_mebibytes_through_loss() {
    let Some(site) = Site::new("four_mebibytes_through_loss", &NEEDS) else { return };
    site.lab.veth("c0", "", "c1");
    site.lab.mute("c0");
    let file = site.make(4 * MIB);
    let way = Way { delay: Duration::from_millis(10), loss_ppm: 10_000, seed: 3, ..Way::clean() };
    let wire = join("c1", &way);
    site.get("--packet c0", "", "", &file, LIMIT);
    let lost = wire.counts[1].lost.load(std::sync::atomic::Ordering::Relaxed);
    assert!(lost > 10, "{lost} frames were lost");
}

#[test]
fn a_transfer_that_was_interrupted_is_resumed() {
    let Some(site) = Site::new("a_transfer_that_was_interrupted_is_resumed", &NEEDS) else { return };
    let file = site.make(8 * MIB);
    let out = site.lab.dir().join("got");
    let tag = site.lab.dir().join("got.tag");
    let args = format!("get --resume -o {}", out.display());
    let path = format!("slow/{}", file.name);
    let cut = |site: &Site| {
        let mut c = std::process::Command::new("timeout");
        let url = format!("http://{SERVER}/{path}");
        c.args(["-s", "INT", "1.5"]).arg(bootlace_lab::programs::lace());
        let args = format!("--tap tap0 --ip {CLIENT}/24 http {args} {url}");
        site.lab.run(with(c, &args), LIMIT)
    };
    let done = cut(&site);
    assert!(done.code != 0 && tag.exists(), "{done:?}");
    let have = std::fs::metadata(&out).expect("a part").len();
    assert!(have > MIB && have < file.len, "{have}");
    let done = site.http(TAP, &args, &file.name, LIMIT).ok();
    assert!(done.stdout.contains(&format!("{} bytes in ", file.len - have)), "only the rest: {}", done.stdout);
    same(&out, &file, "resumed");
    assert!(!tag.exists());
    // The file changes between the parts: all of the new one comes.
    cut(&site);
    assert!(tag.exists());
    let other = files::make(&site.root, &file.name, file.len, 99).expect("the lab folder is writable");
    std::fs::File::options()
        .append(true)
        .open(&other.path)
        .and_then(|f| f.set_modified(std::time::SystemTime::now() + Duration::from_secs(100)))
        .expect("own file");
    let done = site.http(TAP, &args, &file.name, LIMIT).ok();
    assert!(done.stderr.contains("(-116)") && done.stdout.contains(&format!("{} bytes in ", file.len)), "{done:?}");
    same(&out, &other, "anew");
}

/// The server goes away in the middle and comes back: the transfer goes on.
#[test]
fn a_server_that_restarts_is_asked_for_the_rest() {
    let Some(mut site) = Site::new("a_server_that_restarts_is_asked_for_the_rest", &NEEDS) else { return };
    let file = site.make(8 * MIB);
    let out = site.lab.dir().join("got");
    let args = format!("http get -o {} http://{SERVER}/slow/{}", out.display(), file.name);
    let mut child = site.lab.spawn("lace", with(lace(TAP), &args));
    std::thread::sleep(Duration::from_millis(1500));
    let root: &Path = &site.root;
    let mut again = servers::Nginx::new(root);
    again.extra = format!("location /slow/ {{ alias {}/; }}\n", root.display());
    site._server.stop();
    site._server = again.start(&site.lab);
    let code = child.wait(LIMIT).unwrap_or_else(|| panic!("not done:\n{}", child.log()));
    assert!(code.success(), "{}", child.log());
    same(&out, &file, "over two servers");
}

#[test]
#[ignore = "long: 300 MiB, three times"]
fn three_hundred_mebibytes() {
    let Some(site) = Site::new("three_hundred_mebibytes", &NEEDS) else { return };
    let file = site.make(300 * MIB);
    for folder in ["", "chunked/"] {
        site.get(TAP, "", folder, &file, LONG);
    }
    let first = 100 * MIB as usize + 7;
    let done = site.http(TAP, &format!("get --sha256 --range {first}-"), &file.name, LONG).ok();
    assert!(done.stdout.contains(&format!("sha256 {}", hash_of(&file, first..file.len as usize))), "{}", done.stdout);
}

/// Milliseconds that a program says it took: `N bytes in S s`.
fn ms(text: &str) -> f64 {
    let line = text.lines().find(|l| l.contains(" bytes in ")).unwrap_or_else(|| panic!("no time in {text}"));
    line.split_whitespace().nth(3).and_then(|s| s.parse::<f64>().ok()).expect("seconds") * 1e3
}

#[test]
#[ignore = "timed: for quiet machines"]
fn as_fast_as_curl_through_a_forwarder() {
    let Some(site) = Site::new("as_fast_as_curl_through_a_forwarder", &["nginx", "gcc", "curl"]) else { return };
    site.lab.veth("c0", "", "c1");
    site.lab.mute("c0");
    site.lab.veth("k0", "", "k1");
    let peer = site.lab.peer("peer");
    peer.take(&site.lab, "k0", "10.77.0.3/24");
    let file = site.make(64 * MIB);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..6 {
        let wire = join("k1", &Way::clean());
        let mut curl = peer.command("curl", &format!("-s -o /dev/null http://{SERVER}/{}", file.name));
        curl.args(["-w", "%{size_download} bytes in %{time_total} s\n"]);
        let text = site.lab.run(curl, LIMIT).ok().stdout;
        assert!(text.starts_with(&format!("{} bytes", file.len)), "{text}");
        drop(wire);
        let _wire = join("c1", &Way::clean());
        let done = site.http("--packet c0", "get", &file.name, LIMIT).ok();
        if round > 0 {
            theirs.push(ms(&text));
            ours.push(ms(&done.stdout));
        }
    }
    for times in [&mut ours, &mut theirs] {
        times.sort_by(f64::total_cmp);
    }
    let ratio = ours[2] / theirs[2];
    eprintln!("lace {:.0} ms, curl {:.0} ms: {ratio:.2}; {ours:.0?} {theirs:.0?}", ours[2], theirs[2]);
    assert!(ratio <= 1.15, "{ratio:.2} times curl's time");
}
