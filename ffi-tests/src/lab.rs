//! The test host: namespaces, interfaces, and the processes in them.

use crate::process::{self, Finished, Process};
use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A test host. Made for the calling thread: interfaces are seen by this thread, by threads it starts later and by
/// processes it starts. Files in [`Lab::dir`] vanish with it.
#[derive(Debug)]
pub struct Lab {
    name: String,
    dir: PathBuf,
}

/// A second network namespace inside a lab, for tests that need the kernel on both ends of a wire.
#[derive(Debug)]
pub struct Peer {
    holder: Process,
    dir: PathBuf,
}

/// Says on the real standard error that a test is skipped, also where the test runner captures output. Fails the test
/// when `CI=true`.
pub fn skip(name: &str, why: &str) {
    let line = format!("{name} ... skipped: {why}\n");
    let _ = io::stderr().lock().flush();
    // SAFETY: a plain write of a live buffer to descriptor 2.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{name} may not be skipped in CI: {why}");
}

fn cstr(text: &str) -> CString {
    CString::new(text).expect("no NUL in a path")
}

fn mount(source: &str, target: &str, fstype: &str, flags: libc::c_ulong, data: &str) -> io::Result<()> {
    let (source, target, fstype, data) = (cstr(source), cstr(target), cstr(fstype), cstr(data));
    // SAFETY: four live NUL-terminated strings.
    let rc = unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), fstype.as_ptr(), flags, data.as_ptr().cast::<libc::c_void>())
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn enter(dir: &Path) -> Result<(), String> {
    // SAFETY: no memory is passed.
    if unsafe { libc::geteuid() } != 0 {
        return Err("needs root".into());
    }
    // SAFETY: both namespaces are properties of this thread alone.
    if unsafe { libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS) } != 0 {
        return Err(format!("no new namespaces: {}", io::Error::last_os_error()));
    }
    let at = |what: &str, r: io::Result<()>| r.map_err(|e| format!("{what}: {e}"));
    at("private mounts", mount("none", "/", "none", libc::MS_REC | libc::MS_PRIVATE, ""))?;
    // Servers leave sockets and pid files in /run; each lab has its own.
    at("tmpfs on /run", mount("lab", "/run", "tmpfs", 0, "mode=0755"))?;
    let dir = dir.to_str().ok_or("the temporary folder's name is not UTF-8")?;
    at("tmpfs for files", mount("lab", dir, "tmpfs", 0, "mode=0755"))
}

/// Where a program is: in `PATH`, in the system's folders, or among the servers that `scripts/setup-test.sh` unpacks
/// because their packages conflict.
pub fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let unpacked = crate::programs::target().join("servers/usr/sbin");
    path.split(':')
        .chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"])
        .map(PathBuf::from)
        .chain([unpacked])
        .map(|d| d.join(program))
        .find(|p| p.is_file())
}

impl Lab {
    /// A lab for the calling thread, or `None` after saying why there can be none (see [`skip`]). `needs` names the
    /// programs the test will run.
    pub fn new(name: &str, needs: &[&str]) -> Option<Lab> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        for program in ["ip", "ethtool"].iter().chain(needs) {
            if which(program).is_none() {
                skip(name, &format!("{program} is not installed"));
                return None;
            }
        }
        let dir = std::env::temp_dir().join(format!("bootlace-lab.{}.{n}", std::process::id()));
        fs::create_dir_all(&dir).expect("the temporary folder is writable");
        if let Err(why) = enter(&dir) {
            let _ = fs::remove_dir(&dir);
            skip(name, &why);
            return None;
        }
        let lab = Lab { name: name.to_string(), dir };
        for file in ["all", "default"] {
            // Absent in a kernel without IPv6.
            let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{file}/disable_ipv6"), "1");
        }
        lab.ip("link set lo up");
        Some(lab)
    }

    /// Has this thread, and what it starts from now on, go before everything else on the machine: for measurements.
    pub fn hurry(&self) {
        // SAFETY: no memory is passed; the priority is that of this thread.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
    }

    /// The test's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A folder in memory, seen by this lab only.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A new folder below [`Lab::dir`].
    pub fn folder(&self, name: &str) -> PathBuf {
        let path = self.dir.join(name);
        fs::create_dir_all(&path).expect("the lab folder is writable");
        path
    }

    /// Writes a file below [`Lab::dir`].
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.join(name);
        fs::write(&path, text).expect("the lab folder is writable");
        path
    }

    /// Runs `ip ARGS`, arguments separated by blanks.
    #[track_caller]
    pub fn ip(&self, args: &str) {
        self.sh("ip", args);
    }

    /// Runs a short command that must succeed; arguments are separated by blanks. Returns its standard output.
    #[track_caller]
    pub fn sh(&self, program: &str, args: &str) -> String {
        let mut command = Command::new(program);
        command.args(args.split_whitespace());
        self.run(command, Duration::from_secs(20)).ok().stdout
    }

    /// Runs `command` to its end; fails the test when `limit` passes first.
    #[track_caller]
    pub fn run(&self, command: Command, limit: Duration) -> Finished {
        process::run(&self.dir, command, limit)
    }

    /// Starts a process that ends with the lab.
    #[track_caller]
    pub fn spawn(&self, name: &str, command: Command) -> Process {
        Process::spawn(&self.dir, name, command).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// A TAP that programs attach to by name, with this host's address on it ("10.77.0.1/24"; empty for none).
    #[track_caller]
    pub fn tap(&self, name: &str, addr: &str) {
        self.ip(&format!("tuntap add dev {name} mode tap"));
        self.up(name, addr);
    }

    /// A pair of virtual Ethernet interfaces with all offloads off; `a` has `addr`, `b` has none and answers nothing.
    #[track_caller]
    pub fn veth(&self, a: &str, addr: &str, b: &str) {
        self.ip(&format!("link add {a} type veth peer name {b}"));
        for name in [a, b] {
            self.sh("ethtool", &format!("-K {name} tx off tso off gso off gro off"));
        }
        self.mute(b);
        self.up(a, addr);
        self.up(b, "");
    }

    /// Keeps the kernel from answering ARP on `name`: it would, for its addresses on other interfaces.
    #[track_caller]
    pub fn mute(&self, name: &str) {
        fs::write(format!("/proc/sys/net/ipv4/conf/{name}/arp_ignore"), "8").expect("arp_ignore is settable");
    }

    #[track_caller]
    fn up(&self, name: &str, addr: &str) {
        if !addr.is_empty() {
            self.ip(&format!("addr add {addr} dev {name}"));
        }
        self.ip(&format!("link set {name} up"));
    }

    /// Hardware address of an interface.
    pub fn mac(&self, name: &str) -> String {
        mac_in(&self.sh("ip", &format!("-o link show dev {name}")))
    }

    /// A second namespace. Move an interface into it with [`Peer::take`].
    #[track_caller]
    pub fn peer(&self, name: &str) -> Peer {
        let mut command = Command::new("unshare");
        let script = "for f in all default; do echo 1 >/proc/sys/net/ipv6/conf/$f/disable_ipv6; done 2>/dev/null; \
                      echo ready; exec sleep 3600";
        command.args(["-n", "sh", "-c", script]);
        let mut holder = self.spawn(name, command);
        holder.wait_ready(Duration::from_secs(5), |p| p.log().contains("ready"));
        Peer { holder, dir: self.dir.clone() }
    }

    /// Whether a socket is bound to `port` in this namespace: protocol "udp" or "tcp" (listening).
    pub fn bound(&self, protocol: &str, port: u16) -> bool {
        let want = format!(":{port:04X}");
        let table = |v: &str| fs::read_to_string(format!("/proc/thread-self/net/{protocol}{v}")).unwrap_or_default();
        // A server may take IPv4 through an IPv6 socket.
        [table(""), table("6")].iter().flat_map(|t| t.lines().skip(1)).any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let local = words.next().unwrap_or("");
            let state = words.nth(1).unwrap_or("");
            local.ends_with(&want) && (protocol == "udp" || state == "0A")
        })
    }
}

fn mac_in(text: &str) -> String {
    let mac = text.split("link/ether ").nth(1).and_then(|t| t.split(' ').next());
    mac.expect("an Ethernet interface").to_string()
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::env::set_current_dir("/");
        if let Some(dir) = self.dir.to_str() {
            let dir = cstr(dir);
            // SAFETY: a live NUL-terminated string.
            unsafe { libc::umount2(dir.as_ptr(), libc::MNT_DETACH) };
        }
        let _ = fs::remove_dir(&self.dir);
    }
}

impl Peer {
    /// Moves interface `name` here, gives it `addr` and puts it up.
    #[track_caller]
    pub fn take(&self, lab: &Lab, name: &str, addr: &str) {
        lab.ip(&format!("link set {name} netns {}", self.holder.id()));
        for args in [format!("addr add {addr} dev {name}"), format!("link set {name} up"), "link set lo up".into()] {
            self.run(self.command("ip", &args), Duration::from_secs(5)).ok();
        }
        let off = format!("-K {name} tx off tso off gso off gro off");
        // A TAP has no such switches.
        self.run(self.command("ethtool", &off), Duration::from_secs(5));
    }

    /// Hardware address of an interface.
    pub fn mac(&self, name: &str) -> String {
        mac_in(&self.run(self.command("ip", &format!("-o link show dev {name}")), Duration::from_secs(5)).ok().stdout)
    }

    /// A command that will run in this namespace; arguments are separated by blanks.
    pub fn command(&self, program: &str, args: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-n", "-t", &self.holder.id().to_string(), "--", program]);
        command.args(args.split_whitespace());
        command
    }

    /// Runs such a command to its end.
    #[track_caller]
    pub fn run(&self, command: Command, limit: Duration) -> Finished {
        process::run(&self.dir, command, limit)
    }

    /// Moves the calling thread into this namespace.
    #[track_caller]
    pub fn enter(&self) {
        let namespace = fs::File::open(format!("/proc/{}/ns/net", self.holder.id())).expect("the holder runs");
        // SAFETY: a live descriptor; the namespace is a property of this thread alone.
        let rc = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
        assert_eq!(rc, 0, "{}", io::Error::last_os_error());
    }
}
