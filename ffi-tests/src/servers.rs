//! Real servers. Each struct holds what a test may set, [`start`](TftpdHpa::start) writes the configuration below
//! [`Lab::dir`] and returns when the server answers its port. All listen on [`SERVER`] in the lab's namespace.

use crate::lab::which;
use crate::{Lab, Process, SERVER};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const READY: Duration = Duration::from_secs(15);

fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(which(program).unwrap_or_else(|| program.into()));
    command.args(args);
    command
}

fn text(path: &Path) -> &str {
    path.to_str().expect("lab paths are UTF-8")
}

#[track_caller]
fn bound(lab: &Lab, name: &str, command: Command, protocol: &str, port: u16) -> Process {
    let mut process = lab.spawn(name, command);
    process.wait_ready(READY, |_| lab.bound(protocol, port));
    process
}

/// tftpd-hpa: blksize to 65464, tsize, timeout; no windowsize. Writable with `create`.
#[derive(Debug)]
pub struct TftpdHpa {
    /// Folder served.
    pub root: PathBuf,
    /// More arguments, such as `["-B", "1024"]`.
    pub args: Vec<String>,
}

impl TftpdHpa {
    /// Serves `root` for reading and writing.
    pub fn new(root: &Path) -> Self {
        TftpdHpa { root: root.into(), args: Vec::new() }
    }

    /// Starts it on UDP port 69.
    #[track_caller]
    pub fn start(&self, lab: &Lab) -> Process {
        let mut c = command("in.tftpd", &["-L", "-4", "-a", &format!("{SERVER}:69"), "-s", "-c", "-u", "root"]);
        c.args(&self.args).arg(&self.root);
        bound(lab, "tftpd-hpa", c, "udp", 69)
    }
}

/// atftpd: windowsize 2 to 65535, blksize to 65464, tsize, timeout; writable.
#[derive(Debug)]
pub struct Atftpd {
    /// Folder served.
    pub root: PathBuf,
    /// More arguments, such as `["--no-blksize"]`.
    pub args: Vec<String>,
}

impl Atftpd {
    /// Serves `root`.
    pub fn new(root: &Path) -> Self {
        Atftpd { root: root.into(), args: Vec::new() }
    }

    /// Starts it on UDP port 69.
    #[track_caller]
    pub fn start(&self, lab: &Lab) -> Process {
        let args = ["--daemon", "--no-fork", "--bind-address", SERVER, "--user", "root.root", "--logfile", "-"];
        let mut c = command("atftpd", &args);
        c.args(&self.args).arg(&self.root);
        bound(lab, "atftpd", c, "udp", 69)
    }
}

/// dnsmasq: DHCP, DNS and TFTP in one. blksize is cut to 1468, no windowsize. The boot file comes as options 66 and 67.
#[derive(Debug)]
pub struct Dnsmasq {
    /// Interface with [`SERVER`] on it.
    pub interface: String,
    /// Folder served by TFTP, if any.
    pub tftp_root: Option<PathBuf>,
    /// Lease time in seconds (at least 120).
    pub lease_s: u32,
    /// More lines of configuration.
    pub extra: Vec<String>,
}

impl Dnsmasq {
    /// Leases of an hour and names of `lab.test` on `interface`.
    pub fn new(interface: &str) -> Self {
        Dnsmasq { interface: interface.into(), tftp_root: None, lease_s: 3600, extra: Vec::new() }
    }

    /// Starts it.
    #[track_caller]
    pub fn start(&self, lab: &Lab) -> Process {
        let run = lab.folder("dnsmasq");
        let mut conf = format!(
            "keep-in-foreground\nlog-facility=-\nno-resolv\nno-hosts\nno-poll\nbind-interfaces\ninterface={}\n\
             except-interface=lo\nuser=root\npid-file={run}/pid\ndhcp-leasefile={run}/leases\n\
             dhcp-range=10.77.0.100,10.77.0.150,255.255.255.0,{}\ndhcp-option=option:router,{SERVER}\n\
             dhcp-option=option:dns-server,{SERVER}\ndhcp-option=option:domain-name,lab.test\n\
             dhcp-option=option:ntp-server,{SERVER}\ndhcp-option=option:root-path,\"{SERVER}:/export/root\"\n\
             dhcp-boot=big.bin,bootsrv,{SERVER}\ndhcp-authoritative\nno-ping\nlog-dhcp\nlocal=/lab.test/\n\
             address=/host1.lab.test/10.77.0.11\nhost-record=host2.lab.test,10.77.0.12,fd00:77::12\n\
             cname=alias.lab.test,host2.lab.test\ntxt-record=txt.lab.test,\"hello\"\n",
            self.interface,
            self.lease_s,
            run = run.display(),
        );
        if let Some(root) = &self.tftp_root {
            conf += &format!("enable-tftp\ntftp-root={}\n", root.display());
        }
        for line in &self.extra {
            conf += &format!("{line}\n");
        }
        let conf = lab.write("dnsmasq.conf", &conf);
        bound(lab, "dnsmasq", command("dnsmasq", &[&format!("--conf-file={}", conf.display())]), "udp", 67)
    }
}

/// isc-dhcp-server: fills the `file` and `sname` fields.
#[derive(Debug)]
pub struct IscDhcpd {
    /// Interface with [`SERVER`] on it.
    pub interface: String,
    /// Lease time in seconds.
    pub lease_s: u32,
    /// More statements inside the subnet.
    pub extra: String,
}

impl IscDhcpd {
    /// Leases of an hour on `interface`.
    pub fn new(interface: &str) -> Self {
        IscDhcpd { interface: interface.into(), lease_s: 3600, extra: String::new() }
    }

    /// Starts it.
    #[track_caller]
    pub fn start(&self, lab: &Lab) -> Process {
        let conf = format!(
            "authoritative;\nping-check off;\ndefault-lease-time {s};\nmax-lease-time {s};\nmin-lease-time {s};\n\
             subnet 10.77.0.0 netmask 255.255.255.0 {{\n range 10.77.0.100 10.77.0.150;\n option routers {SERVER};\n \
             option domain-name-servers {SERVER};\n option domain-name \"lab.test\";\n next-server {SERVER};\n \
             server-name \"bootsrv\";\n filename \"big.bin\";\n{}\n}}\n",
            self.extra,
            s = self.lease_s,
        );
        let conf = lab.write("dhcpd.conf", &conf);
        let leases = lab.write("dhcpd.leases", "");
        let args = ["-4", "-f", "-d", "-cf", text(&conf), "-lf", text(&leases), "--no-pid", &self.interface];
        let mut process = lab.spawn("dhcpd", command("dhcpd", &args));
        process.wait_ready(READY, |p| p.log().contains("Server starting service"));
        process
    }
}

/// kea: fills the `file` and `sname` fields. Its interface must have a carrier: a veth, or a TAP somebody holds.
#[derive(Debug)]
pub struct Kea {
    /// Interface with [`SERVER`] on it.
    pub interface: String,
    /// Lease time in seconds.
    pub lease_s: u32,
}

impl Kea {
    /// Leases of an hour on `interface`.
    pub fn new(interface: &str) -> Self {
        Kea { interface: interface.into(), lease_s: 3600 }
    }

    /// Starts it.
    #[track_caller]
    pub fn start(&self, lab: &Lab) -> Process {
        let run = lab.folder("kea");
        let conf = format!(
            r#"{{ "Dhcp4": {{
 "interfaces-config": {{ "interfaces": [ "{}" ], "dhcp-socket-type": "raw" }},
 "lease-database": {{ "type": "memfile", "persist": false }},
 "valid-lifetime": {}, "authoritative": true,
 "loggers": [ {{ "name": "kea-dhcp4", "severity": "INFO", "output_options": [ {{ "output": "stdout" }} ] }} ],
 "subnet4": [ {{ "subnet": "10.77.0.0/24", "pools": [ {{ "pool": "10.77.0.100 - 10.77.0.150" }} ],
  "next-server": "{SERVER}", "server-hostname": "bootsrv", "boot-file-name": "big.bin",
  "option-data": [ {{ "name": "routers", "data": "{SERVER}" }}, {{ "name": "domain-name-servers", "data": "{SERVER}" }},
   {{ "name": "domain-name", "data": "lab.test" }} ] }} ] }} }}"#,
            self.interface, self.lease_s
        );
        let conf = lab.write("kea.conf", &conf);
        let mut c = command("kea-dhcp4", &["-c", text(&conf)]);
        c.env("KEA_PIDFILE_DIR", &run).env("KEA_LOCKFILE_DIR", "none");
        let mut process = lab.spawn("kea", c);
        process.wait_ready(READY, |p| p.log().contains("DHCP4_STARTED") && lab.bound("udp", 67));
        process
    }
}

/// bind9: full CNAME chains, TC bit, EDNS. `host1`, `host2` (A and AAAA), `alias` and `chain1` … `chain8` (CNAMEs),
/// `many` (80 A records: too long for UDP without EDNS), all below `lab.test`.
#[derive(Debug, Default)]
pub struct Named {
    /// More lines of the zone.
    pub records: String,
}

impl Named {
    /// Starts it on UDP and TCP port 53.
    #[track_caller]
    pub fn start(&self, lab: &Lab) -> Process {
        let run = lab.folder("named");
        let mut zone = format!(
            "$TTL 300\n@ IN SOA ns.lab.test. root.lab.test. 1 3600 600 86400 60\n@ IN NS ns\nns A {SERVER}\n\
             host1 A 10.77.0.11\nhost2 A 10.77.0.12\nhost2 AAAA fd00:77::12\nalias CNAME host2\nchain8 CNAME host1\n"
        );
        for i in 1..8 {
            zone += &format!("chain{i} CNAME chain{}\n", i + 1);
        }
        for i in 1..=80 {
            zone += &format!("many A 10.77.1.{i}\n");
        }
        zone += &self.records;
        let zone = lab.write("named/lab.test.zone", &zone);
        let conf = format!(
            "options {{ directory \"{run}\"; pid-file none; session-keyfile none; listen-on {{ {SERVER}; }}; \
             listen-on-v6 {{ none; }}; recursion no; dnssec-validation no; minimal-responses no; }};\n\
             controls {{ }};\nzone \"lab.test\" {{ type primary; file \"{}\"; }};\n",
            zone.display(),
            run = run.display(),
        );
        let conf = lab.write("named.conf", &conf);
        let mut process = lab.spawn("named", command("named", &["-g", "-n", "1", "-4", "-c", text(&conf)]));
        process.wait_ready(READY, |p| p.log().contains("running"));
        process
    }
}

/// unbound: a CNAME in local data comes without its target. `host1`, `host2`, `alias` below `lab.test`.
#[derive(Debug, Default)]
pub struct Unbound {
    /// More lines of the `server:` clause.
    pub extra: String,
}

impl Unbound {
    /// Starts it on UDP and TCP port 53.
    #[track_caller]
    pub fn start(&self, lab: &Lab) -> Process {
        let conf = format!(
            "server:\n interface: {SERVER}\n access-control: 10.77.0.0/24 allow\n do-daemonize: no\n username: \"\"\n \
             chroot: \"\"\n directory: \"{}\"\n pidfile: \"\"\n use-syslog: no\n verbosity: 1\n num-threads: 1\n \
             do-ip6: no\n module-config: \"iterator\"\n local-zone: \"lab.test.\" static\n \
             local-data: \"host1.lab.test. 300 IN A 10.77.0.11\"\n local-data: \"host2.lab.test. 300 IN A 10.77.0.12\"\n \
             local-data: \"alias.lab.test. 300 IN CNAME host2.lab.test.\"\n{}\nremote-control:\n control-enable: no\n",
            lab.dir().display(),
            self.extra
        );
        let conf = lab.write("unbound.conf", &conf);
        let mut process = lab.spawn("unbound", command("unbound", &["-d", "-p", "-c", text(&conf)]));
        process.wait_ready(READY, |p| p.log().contains("start of service") && lab.bound("udp", 53));
        process
    }
}

/// nginx: HTTP on port 80, ranges, keep-alive.
#[derive(Debug)]
pub struct Nginx {
    /// Folder served.
    pub root: PathBuf,
    /// More directives inside the `server` block.
    pub extra: String,
}

impl Nginx {
    /// Serves `root`.
    pub fn new(root: &Path) -> Self {
        Nginx { root: root.into(), extra: String::new() }
    }

    /// Starts it on TCP port 80.
    #[track_caller]
    pub fn start(&self, lab: &Lab) -> Process {
        let run = lab.folder("nginx");
        let conf = format!(
            "daemon off; master_process off; user root; error_log stderr; pid {run}/pid;\n\
             events {{ worker_connections 256; }}\nhttp {{ access_log off; sendfile on; \
             client_body_temp_path {run}/body; proxy_temp_path {run}/proxy; fastcgi_temp_path {run}/fcgi; \
             uwsgi_temp_path {run}/uwsgi; scgi_temp_path {run}/scgi;\n\
             server {{ listen {SERVER}:80; root {root};\n{extra}\n}} }}\n",
            run = run.display(),
            root = self.root.display(),
            extra = self.extra,
        );
        let conf = lab.write("nginx.conf", &conf);
        bound(lab, "nginx", command("nginx", &["-e", "stderr", "-c", text(&conf)]), "tcp", 80)
    }
}

/// vsftpd: anonymous FTP, upload below `root/up`.
#[derive(Debug)]
pub struct Vsftpd {
    /// Folder served.
    pub root: PathBuf,
}

impl Vsftpd {
    /// Serves `root` and makes `root/up`, where anyone may write.
    pub fn new(root: &Path) -> Self {
        Vsftpd { root: root.into() }
    }

    /// Starts it on TCP port 21.
    #[track_caller]
    pub fn start(&self, lab: &Lab) -> Process {
        let up = self.root.join("up");
        fs::create_dir_all(&up).expect("the lab folder is writable");
        fs::set_permissions(&up, fs::Permissions::from_mode(0o777)).expect("own folder");
        let empty = lab.folder("vsftpd-empty");
        let conf = format!(
            "listen=YES\nlisten_ipv6=NO\nlisten_address={SERVER}\nbackground=NO\nanonymous_enable=YES\n\
             local_enable=NO\nwrite_enable=YES\nanon_upload_enable=YES\nanon_other_write_enable=YES\nanon_umask=022\n\
             no_anon_password=YES\nanon_root={}\nsecure_chroot_dir={}\nftp_username=daemon\nnopriv_user=nobody\n\
             seccomp_sandbox=NO\nxferlog_enable=NO\nsyslog_enable=NO\npasv_enable=YES\npasv_address={SERVER}\n\
             connect_from_port_20=NO\n",
            self.root.display(),
            empty.display()
        );
        let conf = lab.write("vsftpd.conf", &conf);
        bound(lab, "vsftpd", command("vsftpd", &[text(&conf)]), "tcp", 21)
    }
}

/// iperf 2 as a server.
#[derive(Debug, Default)]
pub struct Iperf {
    /// Serve UDP instead of TCP.
    pub udp: bool,
}

impl Iperf {
    /// Starts it on port 5001.
    #[track_caller]
    pub fn start(&self, lab: &Lab) -> Process {
        let mut c = command("iperf", &["-s", "-B", SERVER]);
        if self.udp {
            c.arg("-u");
        }
        bound(lab, "iperf", c, if self.udp { "udp" } else { "tcp" }, 5001)
    }
}

/// nfs-ganesha with rpcbind: NFSv3 and mount v3 over UDP and TCP, no kernel export.
#[derive(Debug)]
pub struct Ganesha {
    /// Folder exported, under its own name.
    pub root: PathBuf,
    /// More lines of the `EXPORT` block.
    pub extra: String,
    /// What is served over UDP: "True", "Mount" (all but NFS) or "False".
    pub udp: &'static str,
}

/// A running [`Ganesha`].
#[derive(Debug)]
pub struct Nfs {
    /// ganesha.nfsd.
    pub nfsd: Process,
    /// rpcbind.
    pub rpcbind: Process,
    command: Vec<String>,
}

impl Ganesha {
    /// Exports `root`.
    pub fn new(root: &Path) -> Self {
        Ganesha { root: root.into(), extra: String::new(), udp: "True" }
    }

    /// Starts rpcbind on port 111, nfs on 2049 and mount on 20048.
    #[track_caller]
    pub fn start(&self, lab: &Lab) -> Nfs {
        let run = lab.folder("ganesha");
        let rpcbind = bound(lab, "rpcbind", command("rpcbind", &["-f", "-h", SERVER]), "udp", 111);
        let plugins = ["x86_64", "aarch64", "arm", "riscv64"]
            .iter()
            .flat_map(|m| ["linux-gnu", "linux-gnueabihf"].map(|s| format!("/usr/lib/{m}-{s}/ganesha")))
            .find(|p| Path::new(p).is_dir())
            .unwrap_or_else(|| "/usr/lib/ganesha".into());
        let conf = format!(
            "NFS_CORE_PARAM {{ Protocols = 3; NFS_Port = 2049; MNT_Port = 20048; Bind_addr = {SERVER};\n \
             Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = {udp}; mount_path_pseudo = false;\n \
             Plugins_Dir = {plugins}; }}\nNFSv4 {{ Graceless = true; }}\n\
             EXPORT {{ Export_Id = 1; Path = {root}; Pseudo = /root; Tag = root; Protocols = 3; Transports = UDP, TCP;\n \
             Access_Type = RW; Squash = No_Root_Squash; SecType = sys; MaxRead = 65536; MaxWrite = 65536;\n \
             PrefRead = 65536; PrefWrite = 65536; Disable_ACL = true; FSAL {{ Name = VFS; }}\n{extra}\n}}\n\
             LOG {{ Default_Log_Level = EVENT; }}\n",
            root = self.root.display(),
            udp = self.udp,
            extra = self.extra,
        );
        let conf = lab.write("ganesha.conf", &conf);
        let pid = run.join("pid");
        let args = ["-F", "-f", text(&conf), "-L", "STDERR", "-p", text(&pid)].map(String::from).to_vec();
        Nfs { nfsd: nfsd(lab, &args), rpcbind, command: args }
    }
}

#[track_caller]
fn nfsd(lab: &Lab, args: &[String]) -> Process {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut nfsd = lab.spawn("ganesha", command("ganesha.nfsd", &args));
    nfsd.wait_ready(READY, |p| p.log().contains("NFS SERVER INITIALIZED") && lab.bound("tcp", 20048));
    nfsd
}

impl Nfs {
    /// Ends the server without warning, leaving rpcbind alone.
    pub fn kill(&mut self) {
        self.nfsd.kill();
    }

    /// Starts it again.
    #[track_caller]
    pub fn restart(&mut self, lab: &Lab) {
        self.nfsd = nfsd(lab, &self.command);
    }
}

impl Drop for Nfs {
    fn drop(&mut self) {
        // Its orderly end takes long and leaves nothing behind that the end of the lab would not remove.
        self.nfsd.kill();
    }
}
