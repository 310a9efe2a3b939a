//! Files by FTP, to and from vsftpd, and from servers that misbehave.

mod common;
use bootlace_lab::servers::Vsftpd;
use bootlace_lab::{End, Finished, Forwarder, Lab, SERVER, TestFile, Way, files};
use common::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const NEEDS: [&str; 2] = ["gcc", "vsftpd"];
const TAP: &str = "--tap tap0";
/// The report that asked for sendfile sent so much.
const REPORTED: u64 = 50_000 * 1024;

fn make(dir: &Path, len: u64) -> TestFile {
    files::make(dir, &format!("f{len}"), len, len + 1).expect("the lab folder is writable")
}

/// Sends `file` and compares what the server has stored.
#[track_caller]
fn put(lab: &Lab, root: &Path, card: &str, options: &str, file: &TestFile) -> Finished {
    let stored = root.join("up/stored");
    let _ = std::fs::remove_file(&stored);
    let args = format!("ftp put {options} {} {SERVER} up/stored", file.path.display());
    let done = lab.run(with(lace(card), &args), LIMIT).ok();
    assert!(done.stdout.contains(&format!("{} bytes in ", file.len)), "{options}: {}", done.stdout);
    same(&stored, file, options);
    done
}

/// Fetches `file` and compares it.
#[track_caller]
fn get(lab: &Lab, card: &str, options: &str, file: &TestFile) -> Finished {
    let out = lab.dir().join("got");
    let _ = std::fs::remove_file(&out);
    let args = format!("ftp get {options} -o {} {SERVER} {}", out.display(), file.name);
    let done = lab.run(with(lace(card), &args), LIMIT).ok();
    assert!(done.stdout.contains(&format!("{} bytes in ", file.len)), "{options}: {}", done.stdout);
    same(&out, file, options);
    done
}

/// Root of a server, files of `lens` in it.
fn root(lab: &Lab, lens: &[u64]) -> (PathBuf, Vec<TestFile>) {
    let root = lab.folder("root");
    let made = lens.iter().map(|len| make(&root, *len)).collect();
    (root, made)
}

#[test]
fn files_of_all_sizes_both_ways() {
    let Some(lab) = Lab::new("files_of_all_sizes_both_ways", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let (root, made) = root(&lab, &[0, 1, 1447, 1448, 1449, 16_383, 16_384, 16_385, 1_000_001, (4 << 20) + 3]);
    let _server = Vsftpd::new(&root).start(&lab);
    for file in &made {
        put(&lab, &root, TAP, "", file);
        get(&lab, TAP, "", file);
    }
    let file = &made[8];
    for options in ["--copy", "--pasv"] {
        put(&lab, &root, TAP, options, file);
        get(&lab, TAP, options, file);
    }
    put(&lab, &root, TAP, "--stream", file);
    for mode in ["--push", "--copy", "--busy", "--push --copy --busy", "--ring 8"] {
        let card = format!("{TAP} {mode}");
        put(&lab, &root, &card, "", file);
        put(&lab, &root, &card, "--stream", file);
        get(&lab, &card, "", file);
    }
}

#[test]
fn transfers_begin_where_they_are_told() {
    let Some(lab) = Lab::new("transfers_begin_where_they_are_told", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let (root, made) = root(&lab, &[300_000]);
    let _server = Vsftpd::new(&root).start(&lab);
    let (file, out, stored) = (&made[0], lab.dir().join("got"), root.join("up/stored"));
    let all = std::fs::read(&file.path).expect("readable");
    // What an earlier run left here, and there.
    std::fs::write(&out, &all[..100_001]).expect("writable");
    let args = format!("ftp get --resume -o {} {SERVER} {}", out.display(), file.name);
    let done = lab.run(with(lace(TAP), &args), LIMIT).ok();
    assert!(done.stdout.contains("199999 bytes in "), "{}", done.stdout);
    same(&out, file, "get --resume");
    put(&lab, &root, TAP, "", file);
    let there = std::fs::OpenOptions::new().write(true).open(&stored).expect("writable");
    there.set_len(100_001).expect("writable");
    let args = format!("ftp put --resume {} {SERVER} up/stored", file.path.display());
    let done = lab.run(with(lace(TAP), &args), LIMIT).ok();
    assert!(done.stdout.contains("199999 bytes in "), "{}", done.stdout);
    same(&stored, file, "put --resume");
    let args = format!("ftp get --offset 299999 -o {} {SERVER} {}", out.display(), file.name);
    lab.run(with(lace(TAP), &args), LIMIT).ok();
    assert_eq!(std::fs::read(&out).expect("readable"), all[299_999..]);
}

#[test]
fn lines_end_as_they_should() {
    let Some(lab) = Lab::new("lines_end_as_they_should", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let script = Script::new(&lab);
    let text = "first\n\nthird line\nno end";
    let file = lab.write("text", text);
    let server = script.serve(|c| {
        c.login("A");
        c.store(Ending::Good)
    });
    lab.run(with(lace(TAP), &format!("ftp put --ascii {} {SERVER} x", file.display())), LIMIT).ok();
    assert_eq!(server.join().expect("the server"), text.replace('\n', "\r\n").as_bytes());
    let server = script.serve(|c| {
        c.login("A");
        c.retrieve(b"a\r\nb\rc\r\r\nd\r")
    });
    let out = lab.dir().join("got");
    lab.run(with(lace(TAP), &format!("ftp get --ascii -o {} {SERVER} x", out.display())), LIMIT).ok();
    server.join().expect("the server");
    assert_eq!(std::fs::read(&out).expect("readable"), b"a\nb\rc\r\nd\r");
}

#[test]
fn refusals_are_shown() {
    let Some(lab) = Lab::new("refusals_are_shown", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let (root, made) = root(&lab, &[1000]);
    let _server = Vsftpd::new(&root).start(&lab);
    let file = made[0].path.display();
    for (args, says) in [
        (format!("ftp put {file} {SERVER} not-there/f"), "553"),
        (format!("ftp get {SERVER} not-there"), "550"),
        (format!("ftp get -u nobody:wrong {SERVER} f1000"), "530"),
    ] {
        let done = lab.run(with(lace(TAP), &args), LIMIT);
        assert!(done.code == 1 && done.stderr.contains(&format!("the server says \"{says}")), "{args}: {done:?}");
        assert!(done.took < Duration::from_secs(6), "{args}: {done:?}");
    }
    // A path that would be two commands.
    let mut c = with(lace(TAP), "ftp get");
    c.args([SERVER, "f1000\r\nDELE f1000"]);
    let done = lab.run(c, LIMIT);
    assert!(done.code == 1 && done.stderr.contains("(-22)"), "{done:?}");
    assert!(made[0].path.exists());
}

/// How a scripted server ends an upload.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Takes everything.
    Good,
    /// Resets in the middle, and says why.
    Full,
    /// Takes what comes, whatever that is.
    Any,
}

/// A server's half of a conversation that a test has written down.
struct Script {
    listener: TcpListener,
}

struct Conversation {
    lines: BufReader<TcpStream>,
    data: TcpListener,
}

impl Script {
    fn new(_: &Lab) -> Script {
        Script { listener: TcpListener::bind((SERVER, 21)).expect("the lab has the address") }
    }

    /// Takes one connection and talks as `talk` has it.
    fn serve<R: Send + 'static>(
        &self,
        talk: impl FnOnce(&mut Conversation) -> R + Send + 'static,
    ) -> thread::JoinHandle<R> {
        let listener = self.listener.try_clone().expect("a descriptor");
        let data = TcpListener::bind((SERVER, 0)).expect("the lab has the address");
        thread::spawn(move || {
            let stream = listener.accept().expect("a connection").0;
            stream.set_read_timeout(Some(LIMIT / 6)).expect("a time");
            talk(&mut Conversation { lines: BufReader::new(stream), data })
        })
    }
}

impl Conversation {
    fn say(&mut self, text: &str) {
        self.lines.get_mut().write_all(text.as_bytes()).expect("connected");
    }

    /// The next command; empty when the client has gone.
    fn hear(&mut self) -> String {
        let mut line = String::new();
        let _ = self.lines.read_line(&mut line);
        line.trim_end().to_string()
    }

    #[track_caller]
    fn expect(&mut self, command: &str, answer: &str) {
        assert_eq!(self.hear(), command);
        self.say(answer);
    }

    /// Greets and takes the login, in replies of several lines and in pieces.
    fn login(&mut self, kind: &str) {
        self.say("120 in a minute\r\n220-hello\r\n22 is not\r\nthe end of this\r\n 220 nor this\r\n221 nor\r\n");
        self.say("220-\r\n22");
        thread::sleep(Duration::from_millis(20));
        self.say("0 ready\r\n");
        self.expect("USER anonymous", "331-\r\n331 who?\r\n");
        self.expect("PASS lace@", "230-welcome\n123 \n230-\n230 in\n");
        self.expect(&format!("TYPE {kind}"), "200 yes\r\n");
    }

    /// Tells where data goes: by a 227 that names another host, after a 500 to EPSV.
    fn passive(&mut self) -> TcpStream {
        let port = self.data.local_addr().expect("bound").port();
        self.expect("EPSV", "500 what?\r\n");
        self.expect("PASV", &format!("227 Entering 192,0,2,1,{},{}\r\n", port / 256, port % 256));
        self.data.accept().expect("a connection").0
    }

    fn store(&mut self, ending: Ending) -> Vec<u8> {
        let mut stream = self.passive();
        self.expect("STOR x", "150 go on\r\n");
        let mut got = Vec::new();
        match ending {
            Ending::Full => {
                got.resize(100_000, 0);
                stream.read_exact(&mut got).expect("bytes");
                self.say("452 no space\r\n");
                drop(stream);
            }
            Ending::Good => {
                stream.read_to_end(&mut got).expect("the stream ends in good order");
                self.say("226 done\r\n");
            }
            Ending::Any => {
                let mut block = [0; 65_536];
                while let Ok(n @ 1..) = stream.read(&mut block) {
                    got.extend_from_slice(&block[..n]);
                    // As slow as the test needs it.
                    thread::sleep(Duration::from_millis(2));
                }
                self.say("426 broken off\r\n");
            }
        }
        self.expect("QUIT", "221 bye\r\n");
        got
    }

    fn retrieve(&mut self, data: &[u8]) {
        let mut stream = self.passive();
        self.expect("RETR x", "150 here it comes\r\n");
        stream.write_all(data).expect("the peer takes everything");
        stream.shutdown(Shutdown::Write).expect("connected");
        let _ = stream.read(&mut [0]);
        self.say("226 done\r\n");
        self.expect("QUIT", "221 bye\r\n");
    }
}

#[test]
fn a_server_that_has_had_enough() {
    let Some(lab) = Lab::new("a_server_that_has_had_enough", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let script = Script::new(&lab);
    let file = make(lab.dir(), 16 << 20);
    for options in ["", "--stream", "--copy"] {
        let server = script.serve(|c| {
            c.login("I");
            c.store(Ending::Full)
        });
        let args = format!("ftp put {options} {} {SERVER} x", file.path.display());
        let done = lab.run(with(lace(TAP), &args), LIMIT);
        server.join().expect("the server");
        assert!(done.code == 1 && done.stderr.contains("the server says \"452 no space\""), "{options}: {done:?}");
    }
}

/// The file is cut short while it is sent: the server gets nothing that the file does not hold, and no good end.
#[test]
fn a_file_that_becomes_shorter() {
    let Some(lab) = Lab::new("a_file_that_becomes_shorter", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let script = Script::new(&lab);
    let file = make(lab.dir(), 32 << 20);
    let all = std::fs::read(&file.path).expect("readable");
    for options in ["--stream", "--copy"] {
        let path = file.path.clone();
        std::fs::write(&path, &all).expect("writable");
        let server = script.serve(move |c| {
            c.login("I");
            let cut = thread::spawn(move || {
                thread::sleep(Duration::from_millis(100));
                std::fs::OpenOptions::new()
                    .write(true)
                    .open(path)
                    .expect("writable")
                    .set_len(20 << 20)
                    .expect("writable");
            });
            let got = c.store(Ending::Any);
            cut.join().expect("the cut");
            got
        });
        let args = format!("ftp put {options} {} {SERVER} x", file.path.display());
        let done = lab.run(with(lace(TAP), &args), LIMIT);
        let got = server.join().expect("the server");
        assert!(done.code == 1, "{options}: {done:?}");
        assert!(got.len() <= 20 << 20 && got == all[..got.len()], "{options}: {} bytes", got.len());
    }
}

#[test]
fn replies_that_are_none() {
    let Some(lab) = Lab::new("replies_that_are_none", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    let script = Script::new(&lab);
    let long = format!("220 {}\r\n", "x".repeat(100_000));
    let endless = "220-\r\n".repeat(2000);
    for (greeting, code) in [("hello\r\n", "(-71)"), ("999 no\r\n", "(-71)"), (&endless, "(-71)"), ("", "(-104)")] {
        let greeting = greeting.to_string();
        let server = script.serve(move |c| c.lines.get_mut().write_all(greeting.as_bytes()));
        let done = lab.run(with(lace(TAP), &format!("ftp get {SERVER} x")), LIMIT);
        let _ = server.join().expect("the server");
        assert!(done.code == 1 && done.stderr.contains(code), "{done:?}");
    }
    // A long line is a reply all the same; a server that then says nothing is not waited for.
    let server = script.serve(move |c| {
        c.say(&long);
        assert_eq!(c.hear(), "USER anonymous");
        c.hear()
    });
    let done = lab.run(with(lace(TAP), &format!("ftp get -t 300 {SERVER} x")), LIMIT);
    server.join().expect("the server");
    assert!(done.code == 1 && done.stderr.contains("(-110)") && done.took < Duration::from_secs(5), "{done:?}");
}

/// A wire between the kernel's interface `tap0` and lace's `c0`.
fn join(near: &str, there: &Way, back: &Way) -> Forwarder {
    let ends = (End::Packet(near.into()), End::Tap("tap0".into()));
    Forwarder::start(&ends.0, &ends.1, there.clone(), back.clone()).expect("both ends exist")
}

#[test]
fn the_reported_file_through_a_wire() {
    let Some(lab) = Lab::new("the_reported_file_through_a_wire", &NEEDS) else { return };
    lab.tap("tap0", "10.77.0.1/24");
    lab.veth("c0", "", "c1");
    lab.mute("c0");
    let (root, made) = root(&lab, &[REPORTED]);
    let _server = Vsftpd::new(&root).start(&lab);
    {
        let _wire = join("c1", &Way::clean(), &Way::clean());
        let up = put(&lab, &root, "--packet c0", "", &made[0]);
        let down = get(&lab, "--packet c0", "", &made[0]);
        eprintln!("put: {}\nget: {}", up.stdout.trim(), down.stdout.trim());
    }
    // Two data frames in a hundred are lost.
    let bad = Way { loss_ppm: 20_000, spare_below: 200, ..Way::clean() };
    let _wire = join("c1", &bad, &Way::clean());
    let up = put(&lab, &root, "--packet c0", "", &made[0]);
    eprintln!("put at 2 % loss: {}", up.stdout.trim());
}

/// Mbit/s of a put by lace: what its last line says.
fn rate(done: &Finished) -> f64 {
    let words: Vec<&str> = done.stdout.split_whitespace().collect();
    let (bytes, seconds): (f64, f64) = (words[0].parse().expect("bytes"), words[3].parse().expect("seconds"));
    bytes * 8.0 / 1e6 / seconds
}

fn answer(lines: &mut BufReader<TcpStream>, command: &str, code: &str) -> String {
    if !command.is_empty() {
        lines.get_mut().write_all(format!("{command}\r\n").as_bytes()).expect("connected");
    }
    let mut line = String::new();
    lines.read_line(&mut line).expect("a reply");
    assert!(line.starts_with(code), "{command}: {line}");
    line
}

/// The same put by the Linux kernel and its sendfile(2): Mbit/s, from the opening of the data connection to the 226.
/// `LACE_CONGESTION` names its congestion control, if not the machine's default.
fn kernel_put(file: &TestFile) -> f64 {
    let mut lines = BufReader::new(TcpStream::connect((SERVER, 21)).expect("it listens"));
    answer(&mut lines, "", "220");
    answer(&mut lines, "USER anonymous", "230");
    answer(&mut lines, "TYPE I", "200");
    let start = std::time::Instant::now();
    let line = answer(&mut lines, "EPSV", "229");
    let port = line.split('|').nth(3).and_then(|p| p.parse::<u16>().ok()).expect("a port");
    let data = TcpStream::connect((SERVER, port)).expect("it listens");
    use std::os::fd::AsRawFd;
    if let Ok(name) = std::env::var("LACE_CONGESTION") {
        // SAFETY: a live descriptor and a live buffer.
        let rc = unsafe {
            let (value, len) = (name.as_ptr().cast(), name.len() as libc::socklen_t);
            libc::setsockopt(data.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, value, len)
        };
        assert_eq!(rc, 0, "{name}: {}", std::io::Error::last_os_error());
    }
    answer(&mut lines, "STOR up/stored", "150");
    let from = std::fs::File::open(&file.path).expect("readable");
    let mut left = file.len as usize;
    while left > 0 {
        // SAFETY: live descriptors.
        let n = unsafe { libc::sendfile(data.as_raw_fd(), from.as_raw_fd(), std::ptr::null_mut(), left) };
        assert!(n > 0, "{}", std::io::Error::last_os_error());
        left -= n as usize;
    }
    data.shutdown(Shutdown::Write).expect("connected");
    answer(&mut lines, "", "226");
    file.len as f64 * 8.0 / 1e6 / start.elapsed().as_secs_f64()
}

/// Median rates of lace's sendfile, of its `--copy`, and of the kernel's sendfile(2), in turn over one wire.
fn beside_the_kernel(name: &str, there: &Way) -> Option<[f64; 3]> {
    let lab = Lab::new(name, &NEEDS)?;
    lab.hurry();
    lab.tap("tap0", "10.77.0.1/24");
    lab.veth("c0", "", "c1");
    lab.mute("c0");
    lab.veth("k0", "", "k1");
    let peer = lab.peer("peer");
    peer.take(&lab, "k0", "10.77.0.3/24");
    // Each connection must find out for itself.
    let set = "-qw net.ipv4.tcp_no_metrics_save=1";
    lab.sh("sysctl", set);
    peer.run(peer.command("sysctl", set), LIMIT).ok();
    let (root, made) = root(&lab, &[REPORTED]);
    let _server = Vsftpd::new(&root).start(&lab);
    let file = &made[0];
    let mut rates = [const { Vec::new() }; 3];
    for seed in 1..=number("LACE_SEEDS", 5) {
        let there = Way { seed, ..there.clone() };
        {
            let _wire = join("c1", &there, &Way::clean());
            rates[0].push(rate(&put(&lab, &root, "--packet c0", "", file)));
        }
        {
            let _wire = join("k1", &there, &Way::clean());
            let took = thread::scope(|s| {
                s.spawn(|| {
                    peer.enter();
                    kernel_put(file)
                })
                .join()
            });
            rates[2].push(took.expect("the kernel's put"));
            same(&root.join("up/stored"), file, "the kernel's");
        }
        let _wire = join("c1", &there, &Way::clean());
        rates[1].push(rate(&put(&lab, &root, "--packet c0 --rings 262144", "--copy", file)));
    }
    let medians = rates.map(|mut r| {
        r.sort_by(f64::total_cmp);
        r[r.len() / 2]
    });
    eprintln!(
        "{name}: sendfile {:.1}, --copy {:.1}, the kernel's {:.1} Mbit/s: {:.3} of the kernel's",
        medians[0],
        medians[1],
        medians[2],
        medians[0] / medians[2]
    );
    Some(medians)
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

#[test]
#[ignore = "long: a comparison of times"]
fn as_fast_as_the_kernel() {
    let Some([ours, _, kernels]) = beside_the_kernel("as_fast_as_the_kernel", &Way::clean()) else { return };
    assert!(ours >= 0.9 * kernels, "{ours} against {kernels} Mbit/s");
}

#[test]
#[ignore = "long: a comparison of times"]
fn nearly_as_fast_as_the_kernel_when_frames_are_lost() {
    let way = Way { loss_ppm: 20_000, spare_below: 200, ..Way::clean() };
    let Some([ours, _, kernels]) = beside_the_kernel("nearly_as_fast", &way) else { return };
    assert!(ours >= 0.7 * kernels, "{ours} against {kernels} Mbit/s");
}
