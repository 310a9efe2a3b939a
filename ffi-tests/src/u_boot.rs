//! Debian's U-Boot, built by `scripts/u-boot.sh` on Bootlace or with its own stack, in a network namespace of its own.

use crate::programs;
use crate::{CLIENT, Lab, Peer, SERVER};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long U-Boot may take for a script of commands.
const LIMIT: Duration = Duration::from_secs(100);

/// The folder with U-Boot, built now if it is not there: `name` is "bootlace" or "legacy".
pub fn build(name: &str) -> PathBuf {
    let mut script = Command::new("scripts/u-boot.sh");
    let out = script.arg(name).current_dir(programs::root()).output().expect("the script starts");
    assert!(out.status.success(), "u-boot.sh {name}:\n{}", String::from_utf8_lossy(&out.stderr));
    PathBuf::from(String::from_utf8_lossy(&out.stdout).trim())
}

/// Output without carriage returns and colours.
pub fn plain(said: &str) -> String {
    let mut parts = said.split('\x1b');
    let first = parts.next().unwrap_or_default().to_string();
    let rest = parts.map(|part| part.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, rest)| rest));
    rest.fold(first, |all, part| all + part).replace('\r', "")
}

/// U-Boot in a namespace of its own, on a cable to the servers'.
#[derive(Debug)]
pub struct Board {
    /// Its namespace.
    pub peer: Peer,
    /// Where it was built.
    pub dir: PathBuf,
}

impl Board {
    /// A cable from the lab, where it is `sv`, to the board.
    #[track_caller]
    pub fn wired(lab: &Lab, dir: PathBuf) -> Board {
        lab.ip("link add sv type veth peer name ub");
        lab.sh("ethtool", "-K sv tx off rx off tso off gso off gro off");
        lab.ip("addr add 10.77.0.1/24 dev sv");
        Board::behind(lab, "sv", dir)
    }

    /// The board at the far end, `ub`, of a cable whose near end is `near`.
    #[track_caller]
    pub fn behind(lab: &Lab, near: &str, dir: PathBuf) -> Board {
        let peer = lab.peer("board");
        // The kernel's address there is nobody's: U-Boot has its own.
        peer.take(lab, "ub", "192.0.2.1/32");
        lab.ip(&format!("link set {near} up"));
        Board { peer, dir }
    }

    /// U-Boot with `commands`, at the address `CLIENT` unless they say otherwise. (Its lwIP wants the card's number with the
    /// names.)
    pub fn command(&self, commands: &str) -> Command {
        let set = format!(
            "setenv ethrotate no; setenv ethact host_ub; setenv eth1addr 02:00:00:00:00:02; setenv ipaddr {CLIENT}; \
             setenv netmask 255.255.255.0; setenv serverip {SERVER}; setenv autoload no; setenv netretry no; \
             setenv ipaddr1 {CLIENT}; setenv netmask1 255.255.255.0; {commands}"
        );
        let program = self.dir.join("u-boot");
        let tree = self.dir.join("u-boot.dtb");
        let mut command = self.peer.command(program.to_str().expect("UTF-8"), "");
        command.arg("-d").arg(tree).arg("-c").arg(set).stdin(Stdio::null());
        command
    }

    /// What it says to them.
    #[track_caller]
    pub fn says(&self, commands: &str) -> String {
        plain(&self.peer.run(self.command(commands), LIMIT).stdout)
    }
}
