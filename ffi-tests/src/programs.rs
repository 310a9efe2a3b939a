//! The project's C programs: where they are and how the tests get them built.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

/// Root of the source tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("ffi-tests lies in the tree").to_path_buf()
}

/// The folder for everything built.
pub fn target() -> PathBuf {
    root().join("target")
}

/// Runs a build step; fails the test with its output.
#[track_caller]
fn step(command: &mut Command) {
    let out = command.current_dir(root()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{command:?}\n{stdout}{stderr}");
}

/// Builds one thing at a time, also between test processes.
fn locked<T>(build: impl FnOnce() -> T) -> T {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    fs::create_dir_all(target().join("lab")).expect("target is writable");
    let file = File::create(target().join("lab/lock")).expect("target is writable");
    // SAFETY: a live descriptor; the lock ends with it.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) };
    build()
}

/// `libbootlace.a` for this machine, as shipped: built once per test process.
pub fn library() -> PathBuf {
    static DONE: OnceLock<PathBuf> = OnceLock::new();
    DONE.get_or_init(|| {
        locked(|| step(Command::new("sh").arg("scripts/lib.sh").arg("host").env_remove("RUSTFLAGS")));
        target().join("dist/host/libbootlace.a")
    })
    .clone()
}

/// Compiles a C program from `sources` (relative to the root), the Linux card and [`library`] to `target/lab/name`.
#[track_caller]
pub fn with_card(name: &str, sources: &[&str]) -> PathBuf {
    let library = library();
    let mut all = sources.to_vec();
    all.push("c-examples/linux_nic.c");
    compile(name, &all, &["-DWITH_SLIRP", library.to_str().expect("UTF-8"), "-lslirp"])
}

/// Compiles a C program from `sources` (relative to the root) to `target/lab/name`; `args` follow the sources.
#[track_caller]
pub fn compile(name: &str, sources: &[&str], args: &[&str]) -> PathBuf {
    locked(|| {
        let (path, new) = (target().join("lab").join(name), target().join("lab").join(format!("{name}.new")));
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=c99", "-O3", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Iinclude", "-Ic-examples"]);
        gcc.args(sources).args(args).arg("-o").arg(&new);
        step(&mut gcc);
        // A program that runs at this moment keeps its file.
        fs::rename(&new, &path).expect("target is writable");
        path
    })
}

/// The floor program `bare_tftp`: lock-step and windowed TFTP with no stack.
pub fn bare_tftp() -> PathBuf {
    static DONE: OnceLock<PathBuf> = OnceLock::new();
    DONE.get_or_init(|| with_card("bare_tftp", &["ffi-tests/bare/bare_tftp.c"])).clone()
}

/// The floor program `bare_nfs`: pipelined READs over UDP with no stack.
pub fn bare_nfs() -> PathBuf {
    static DONE: OnceLock<PathBuf> = OnceLock::new();
    DONE.get_or_init(|| with_card("bare_nfs", &["ffi-tests/bare/bare_nfs.c"])).clone()
}

/// The `lace` tool, linked with [`library`]. Built once per test process.
pub fn lace() -> PathBuf {
    static DONE: OnceLock<PathBuf> = OnceLock::new();
    DONE.get_or_init(|| {
        let mut sources = vec!["c-examples/sha256.c".to_string()];
        // Each subcommand has its own file.
        let mut names: Vec<_> = fs::read_dir(root().join("c-examples"))
            .expect("the tree is readable")
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .filter(|n| n.starts_with("lace") && n.ends_with(".c"))
            .collect();
        names.sort();
        sources.extend(names.iter().map(|n| format!("c-examples/{n}")));
        let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
        with_card("lace", &sources)
    })
    .clone()
}
