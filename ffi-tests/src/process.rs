//! Children that cannot outlive the test: each has its own process group and log file, is killed by the kernel when
//! the thread that started it ends, and is waited for with a limit.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A running child: a server, or a client that takes its time. Ended on drop; its log is shown when the test fails.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    status: Option<ExitStatus>,
}

/// What a child that ended left behind.
#[derive(Debug)]
pub struct Finished {
    /// Exit status; 128 + signal where a signal ended it.
    pub code: i32,
    /// Everything it wrote to standard output.
    pub stdout: String,
    /// Everything it wrote to standard error.
    pub stderr: String,
    /// From start to end.
    pub took: Duration,
}

impl Finished {
    /// Fails the test with the output unless the exit status is 0.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert!(self.code == 0, "exit status {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr);
        self
    }
}

fn guard(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec only async-signal-safe system calls are made.
    unsafe {
        command.pre_exec(|| {
            if libc::setpgid(0, 0) != 0 || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        })
    }
}

impl Process {
    /// Starts `command` with both outputs in `dir/name.log`.
    pub fn spawn(dir: &Path, name: &str, mut command: Command) -> io::Result<Process> {
        let log = dir.join(format!("{name}.log"));
        let out = File::create(&log)?;
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let child = guard(&mut command).spawn()?;
        Ok(Process { name: name.to_string(), child, log, status: None })
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has written so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Whether it still runs.
    pub fn running(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_none()
    }

    /// Waits until `ready` holds; fails the test when the child ends first or `limit` passes.
    #[track_caller]
    pub fn wait_ready(&mut self, limit: Duration, mut ready: impl FnMut(&Process) -> bool) {
        let start = Instant::now();
        while !ready(self) {
            assert!(self.running(), "{} ended early:\n{}", self.name, self.log());
            assert!(start.elapsed() < limit, "{} is not ready after {limit:?}:\n{}", self.name, self.log());
            sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end; `None` when `limit` passes first.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        while self.running() {
            if start.elapsed() > limit {
                return None;
            }
            sleep(Duration::from_millis(2));
        }
        self.status
    }

    /// Sends a signal to the child alone.
    pub fn signal(&mut self, signal: i32) {
        if self.running() {
            // SAFETY: the child has not been waited for, so the id is still its own.
            unsafe { libc::kill(self.child.id() as i32, signal) };
        }
    }

    /// Ends it: SIGTERM, and SIGKILL to its group 2 s later.
    pub fn stop(&mut self) {
        self.signal(libc::SIGTERM);
        self.wait(Duration::from_secs(2));
        self.kill();
    }

    /// Ends it and its group at once.
    pub fn kill(&mut self) {
        // SAFETY: the group was made by this child; a group whose members are all gone gives ESRCH.
        unsafe { libc::killpg(self.child.id() as i32, libc::SIGKILL) };
        if self.status.is_none() {
            self.status = self.child.wait().ok();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(60).collect();
            eprintln!("--- log of {}", self.name);
            for line in tail.iter().rev() {
                eprintln!("{line}");
            }
        }
    }
}

/// Runs `command` to its end; fails the test when `limit` passes first.
#[track_caller]
pub fn run(dir: &Path, mut command: Command, limit: Duration) -> Finished {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let n = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let (out, err) = (dir.join(format!("run{n}.out")), dir.join(format!("run{n}.err")));
    let text = format!("{command:?}");
    command.stdin(Stdio::null());
    command.stdout(File::create(&out).expect("the lab folder is writable"));
    command.stderr(File::create(&err).expect("the lab folder is writable"));
    let start = Instant::now();
    let mut child = guard(&mut command).spawn().unwrap_or_else(|e| panic!("{text}: {e}"));
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if start.elapsed() > limit => {
                // SAFETY: the child has not been waited for, so the group id is still its own.
                unsafe { libc::killpg(child.id() as i32, libc::SIGKILL) };
                let _ = child.wait();
                break None;
            }
            _ => sleep(Duration::from_millis(1)),
        }
    };
    let took = start.elapsed();
    let read = |p: &Path| String::from_utf8_lossy(&fs::read(p).unwrap_or_default()).into_owned();
    let (stdout, stderr) = (read(&out), read(&err));
    let _ = (fs::remove_file(&out), fs::remove_file(&err));
    let Some(status) = status else {
        panic!("{text}: not done after {limit:?}\n--- stdout\n{stdout}--- stderr\n{stderr}");
    };
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Finished { code, stdout, stderr, took }
}
