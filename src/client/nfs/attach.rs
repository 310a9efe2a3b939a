//! From a server's name to a mount: the port mapper says where the programs listen (RFC 1833 §3), MOUNT gives the handle
//! of the export (RFC 1813 appendix I), FSINFO the sizes that the server likes. Also unmounts, and lists exports.

use super::feed::Feed;
use super::{Mount, Room, Seat, Transport, Tuning, Work, refused, walk};
use crate::client::dns::{Resolve, Resolved};
use crate::client::operation::{Cx, Datagram, DetailKind, Operation, Server, Step};
use crate::client::rpc::Incoming;
use crate::client::rpc::User;
use crate::client::rpc::channel::Arguments;
use crate::stack::icmp::IcmpError;
use crate::stack::interface::is_host_address;
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host, SinkOf};
use crate::storage::time::{Duration, Instant};
use crate::wire::mount::{self, Exports, Mounted};
use crate::wire::nfs3::{self, Args, FileHandle, FsInfo, Outcome, Status};
use crate::wire::portmap::{self, GetPort};
use crate::wire::rpc::Call;
use crate::wire::xdr::Decoder;

/// Protocol numbers as the port mapper knows them.
const IPPROTO_TCP: u32 = 6;
const IPPROTO_UDP: u32 = 17;
const HAS_TCP: bool = cfg!(feature = "tcp");
/// How soon a sink that refused is asked again.
const SINK_RETRY: Duration = Duration::from_millis(10);

/// What to do at a server.
pub enum Task<H: Host> {
    /// Mount the export with this path, at most 1024 bytes.
    Mount(H::Text),
    /// Tell the server that the export with this path is no longer in use.
    Unmount(H::Text),
    /// List the exports: a line each, the path, then the hosts and groups that may mount it, with tabs between.
    Exports(SinkOf<H>),
}

/// What to do, and where.
pub struct Request<H: Host> {
    /// The server; its port is the port mapper's, 0 for 111.
    pub server: Server<H::Text>,
    /// What to do.
    pub task: Task<H>,
    /// How calls are to travel.
    pub transport: Transport,
    /// Port of the NFS program; 0: the port mapper is asked.
    pub nfs_port: u16,
    /// Port of the MOUNT program; 0: the port mapper is asked.
    pub mount_port: u16,
    /// As whom calls are made.
    pub user: User,
    /// Numbers.
    pub tuning: Tuning,
}

enum What<H: Host> {
    Mount(H::Text),
    Unmount(H::Text),
    Exports(Feed<H>),
}

/// The call that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Resolve,
    MountPort,
    NfsPort,
    Call,
    Info,
}

/// Which programs are asked over TCP.
#[derive(Clone, Copy, Debug)]
struct OverTcp {
    map: bool,
    mount: bool,
    nfs: bool,
}

/// The operation. Its result is 0; of a list of exports their number.
pub struct Attach<H: Host> {
    server: Server<H::Text>,
    what: What<H>,
    user: User,
    lookup: Resolve,
    seat: Seat,
    phase: Phase,
    transport: Transport,
    /// The port mapper, MOUNT and NFS are asked over TCP.
    over_tcp: OverTcp,
    mount_port: u16,
    nfs_port: u16,
    root: FileHandle,
    read_max: u32,
    dir_preferred: u32,
    /// When the list of exports is asked for again, because the sink did not take all of it.
    retry: Option<Instant>,
    stalled: Instant,
    sink_stall: Duration,
}

impl<H: Host> Attach<H> {
    /// The connection that it waits for.
    #[cfg(feature = "tcp")]
    pub fn connection(&self, shared: &crate::client::engine::Shared<'_>) -> Option<crate::storage::slots::Key> {
        self.seat.connection(shared)
    }

    /// An operation that has yet to begin.
    ///
    /// # Errors
    /// [`Error::NameTooLong`]: the path is longer than 1024 bytes; [`Error::Invalid`]: an empty path, or a server that is
    /// no host; [`Error::NotSupported`]: a transport that is not built in.
    pub fn new(request: Request<H>) -> Result<Self, Error> {
        let Request { server, task, transport, nfs_port, mount_port, user, tuning } = request;
        if server.name.is_none() && !is_host_address(server.addr) {
            return Err(Error::Invalid);
        }
        if transport == Transport::Tcp && !HAS_TCP {
            return Err(Error::NotSupported);
        }
        let what = match task {
            Task::Mount(path) => What::Mount(checked::<H>(path)?),
            Task::Unmount(path) => What::Unmount(checked::<H>(path)?),
            Task::Exports(sink) => What::Exports(Feed::new(sink)),
        };
        Ok(Attach {
            server,
            what,
            user,
            lookup: Resolve::new(),
            seat: Seat::new(tuning.patience()),
            phase: Phase::Resolve,
            transport,
            over_tcp: OverTcp { map: false, mount: transport == Transport::Tcp, nfs: transport == Transport::Tcp },
            mount_port,
            nfs_port,
            root: FileHandle::EMPTY,
            read_max: 0,
            dir_preferred: 0,
            retry: None,
            stalled: Instant::ZERO,
            sink_stall: tuning.sink_stall(),
        })
    }

    /// The mount, once the operation has ended well.
    pub fn mount(&self) -> Option<Mount<&H::Text>> {
        let (Some(Ok(_)), What::Mount(path)) = (self.seat.done, &self.what) else { return None };
        Some(Mount {
            server: self.server.addr,
            transport: if self.over_tcp.nfs { Transport::Tcp } else { Transport::Udp },
            nfs_port: self.nfs_port,
            mount_port: self.mount_port,
            user: self.user,
            root: self.root,
            read_max: self.read_max,
            dir_preferred: self.dir_preferred,
            path,
        })
    }

    /// The first call from `phase` on whose result is not known beforehand.
    fn go(&mut self, phase: Phase) {
        let nfs = matches!(self.what, What::Mount(_)) && self.nfs_port == 0;
        self.phase = match phase {
            Phase::MountPort if self.mount_port == 0 => Phase::MountPort,
            Phase::MountPort | Phase::NfsPort if nfs => Phase::NfsPort,
            Phase::Info => Phase::Info,
            _ => Phase::Call,
        };
    }

    /// Looks the name of the server up; when to go on, if that is not done yet.
    fn resolve(&mut self, cx: &mut Cx<'_, '_, H>) -> Option<Instant> {
        if let Some(name) = self.server.name.as_ref() {
            match self.lookup.poll(cx, name.as_ref()) {
                Resolved::Pending(at) => return Some(at),
                Resolved::Ready(addr) if is_host_address(addr) => self.server.addr = addr,
                Resolved::Ready(_) => self.seat.done = Some(Err(Error::Invalid)),
                Resolved::Failed(why) => self.seat.done = Some(Err(why)),
            }
        }
        self.go(Phase::MountPort);
        None
    }

    // Out of line, as in `Query`: what makes a call is not to lie under what waits for names and channels.
    #[inline(never)]
    fn call<'t>(&'t self, xid: u32, out: &mut Arguments<'t>) -> Result<(), Error> {
        let getport = |program, version, tcp, out: &mut Arguments<'_>| {
            let protocol = if tcp { IPPROTO_TCP } else { IPPROTO_UDP };
            let auth = User { nobody: true, ..User::default() }.auth();
            let (map, number) = (portmap::PROGRAM, portmap::GETPORT);
            let call = Call { xid, program: map, version: portmap::VERSION, procedure: number, auth };
            out.set(&call, None, |e| GetPort { program, version, protocol }.emit(e))
        };
        let auth = self.user.auth();
        let (map, nfs) = ((mount::PROGRAM, mount::VERSION), (nfs3::PROGRAM, nfs3::VERSION));
        let (procedure, path) = match (self.phase, &self.what) {
            (Phase::MountPort, _) => return getport(map.0, map.1, self.over_tcp.mount, out),
            (Phase::NfsPort, _) => return getport(nfs.0, nfs.1, self.over_tcp.nfs, out),
            (Phase::Info, _) => return walk::request(xid, &Args::FsInfo(self.root), self.user, out),
            (_, What::Mount(path)) => (mount::procedure::MNT, Some(path.as_ref())),
            (_, What::Unmount(path)) => (mount::procedure::UMNT, Some(path.as_ref())),
            (_, What::Exports(_)) => (mount::procedure::EXPORT, None),
        };
        let call = Call { xid, program: mount::PROGRAM, version: mount::VERSION, procedure, auth };
        out.set(&call, path, |_| Ok(()))
    }

    fn end(&mut self, result: u64) -> Result<(), Error> {
        self.seat.done = Some(Ok(result));
        Ok(())
    }

    /// Whether calls may travel over TCP.
    fn may_tcp(&self, room: &Room<'_, '_, H>) -> bool {
        HAS_TCP && self.transport != Transport::Udp && room.net.connections() > 0
    }

    /// The port mapper has answered.
    fn port(&mut self, room: &mut Room<'_, '_, H>, port: u16) -> Result<(), Error> {
        // Another program may be silent for another reason.
        room.job.caller.silence.restart();
        if port == 0 {
            // RFC 1833 §3.2: the program is not registered; perhaps it is for the other transport.
            let may_tcp = self.may_tcp(room);
            let (over_tcp, text): (&mut bool, [&[u8]; 2]) = match self.phase {
                Phase::MountPort => (
                    &mut self.over_tcp.mount,
                    [b"MOUNT version 3 is not registered for UDP", b"MOUNT version 3 is not registered"],
                ),
                _ => (
                    &mut self.over_tcp.nfs,
                    [b"NFS version 3 is not registered for UDP", b"NFS version 3 is not registered"],
                ),
            };
            if may_tcp && !*over_tcp {
                *over_tcp = true;
                return Ok(());
            }
            let [for_udp, at_all] = text;
            let text = if may_tcp { at_all } else { for_udp };
            room.net.detail.set(DetailKind::Rpc, 1, Some(self.server.addr), text);
            return Err(Error::NotSupported);
        }
        match self.phase {
            Phase::MountPort => {
                self.mount_port = port;
                self.go(Phase::NfsPort);
            }
            _ => {
                self.nfs_port = port;
                self.go(Phase::Call);
            }
        }
        Ok(())
    }

    /// MOUNT has answered: whether the server takes AUTH_NONE and AUTH_SYS. The handle is where it belongs.
    fn mounted(
        &mut self,
        room: &mut Room<'_, '_, H>,
        result: Result<(bool, bool), mount::Status>,
    ) -> Result<(), Error> {
        let (none, sys) = result.map_err(|status| refused(room, self.server.addr, Status(status.0)))?;
        if !sys && !none {
            room.net.detail.set(DetailKind::Rpc, 0x205, Some(self.server.addr), b"no authentication in common");
            return Err(Error::Denied);
        }
        self.user.nobody = !sys || (self.user.nobody && none);
        self.phase = Phase::Info;
        room.job.caller.silence.restart();
        Ok(())
    }

    fn info(&mut self, room: &mut Room<'_, '_, H>, result: Outcome<FsInfo>) -> Result<(), Error> {
        match result {
            Ok(info) => {
                self.read_max = info.read_max;
                self.dir_preferred = info.dir_preferred;
            }
            Err(Status::JUKEBOX) if room.job.caller.put_off(room.net.now()) => return Ok(()),
            Err(status @ (Status::STALE | Status::BADHANDLE | Status::JUKEBOX)) => {
                return Err(refused(room, self.server.addr, status));
            }
            // The sizes are only advice.
            Err(_) => {}
        }
        self.end(0)
    }

    /// Feeds the list of exports to the sink; how many there are.
    fn feed(feed: &mut Feed<H>, exports: Exports<'_>) -> Result<Option<u64>, Error> {
        feed.begin();
        let mut count = 0u64;
        for export in exports.flatten() {
            count = count.saturating_add(1);
            put_name(feed, export.path)?;
            for group in export.groups {
                feed.put(b"\t")?;
                put_name(feed, group)?;
            }
            feed.put(b"\n")?;
        }
        Ok(feed.end().then_some(count))
    }

    fn listed(&mut self, room: &mut Room<'_, '_, H>, exports: Exports<'_>) -> Result<(), Error> {
        let now = room.net.now();
        let What::Exports(feed) = &mut self.what else { return Ok(()) };
        let before = feed.taken();
        let count = Self::feed(feed, exports)?;
        room.net.progress.done = feed.taken();
        if feed.taken() > before || self.retry.is_none() {
            self.stalled = now;
        }
        match count {
            Some(count) => return self.end(count),
            None if now.since(self.stalled) >= self.sink_stall => return Err(Error::SinkStalled),
            None => self.retry = Some(now + SINK_RETRY),
        }
        Ok(())
    }
}

/// Writes a name without the characters that lines are made with.
fn put_name<H: Host>(feed: &mut Feed<H>, name: &[u8]) -> Result<(), Error> {
    for part in name.split_inclusive(u8::is_ascii_control) {
        match part.split_last() {
            Some((last, front)) if last.is_ascii_control() => {
                feed.put(front)?;
                feed.put(b"?")?;
            }
            _ => feed.put(part)?,
        }
    }
    Ok(())
}

fn checked<H: Host>(path: H::Text) -> Result<H::Text, Error> {
    match path.as_ref().len() {
        0 => Err(Error::Invalid),
        len if len > mount::MAX_PATH => Err(Error::NameTooLong),
        _ => Ok(path),
    }
}

/// What a reply can be.
enum Answer<'d> {
    Port(u16),
    Mounted(Result<(bool, bool), mount::Status>),
    Nothing,
    Exports(Exports<'d>),
    Info(Outcome<FsInfo>),
}

/// Reads what the reply must be; the handle of an export, to `root`.
fn parse<'d>(
    phase: Phase,
    exports: bool,
    mounts: bool,
    root: &mut FileHandle,
    d: &mut Decoder<'d>,
) -> crate::wire::Result<Answer<'d>> {
    Ok(match phase {
        Phase::MountPort | Phase::NfsPort => Answer::Port(portmap::parse_port(d)?),
        Phase::Info => Answer::Info(FsInfo::parse(d)?),
        _ if exports => {
            let list = Exports::new(*d);
            for export in list.clone() {
                export?;
            }
            Answer::Exports(list)
        }
        _ if mounts => Answer::Mounted(Mounted::read(d, root)?),
        _ => Answer::Nothing,
    })
}

impl<H: Host> Work<H> for Attach<H> {
    fn seat(&mut self) -> &mut Seat {
        &mut self.seat
    }

    fn endpoint(&self) -> Endpoint {
        let port = match self.phase {
            Phase::Call => self.mount_port,
            Phase::Info => self.nfs_port,
            _ if self.server.port == 0 => portmap::PORT,
            _ => self.server.port,
        };
        Endpoint { addr: self.server.addr, port }
    }

    fn begin(&mut self, _: &mut Room<'_, '_, H>) {}

    fn step(&mut self, room: &mut Room<'_, '_, H>) -> Result<Instant, Error> {
        if let Some(at) = self.retry.filter(|at| room.net.now() < *at) {
            return Ok(at);
        }
        let stream = match self.phase {
            Phase::Call => self.over_tcp.mount,
            Phase::Info => self.over_tcp.nfs,
            _ => self.over_tcp.map,
        };
        room.job.caller.channel.set_stream(stream);
        room.job.caller.poll(&mut room.net, self.endpoint(), &mut |xid, out| self.call(xid, out))
    }

    fn take(&mut self, room: &mut Room<'_, '_, H>, incoming: &Incoming<'_>) -> Result<(), Error> {
        let (phase, from) = (self.phase, self.server.addr);
        let (exports, mounts) = (matches!(self.what, What::Exports(_)), matches!(self.what, What::Mount(_)));
        let (caller, root) = (&mut room.job.caller, &mut self.root);
        let taken = caller.take(&mut room.net, from, incoming.payload, |d| parse(phase, exports, mounts, root, d));
        match taken.transpose()? {
            None => Ok(()),
            Some(Answer::Port(port)) => self.port(room, port),
            Some(Answer::Mounted(result)) => self.mounted(room, result),
            Some(Answer::Nothing) => self.end(0),
            Some(Answer::Exports(exports)) => self.listed(room, exports),
            Some(Answer::Info(info)) => self.info(room, info),
        }
    }

    /// The other transport, where the first is not heard; and NFS has a port of its own, which no port mapper need tell.
    fn recover(&mut self, room: &mut Room<'_, '_, H>, why: Error) -> bool {
        if !matches!(why, Error::Timeout | Error::Refused) {
            return false;
        }
        let may_tcp = self.may_tcp(room);
        let over_tcp = match self.phase {
            Phase::Call => &mut self.over_tcp.mount,
            Phase::Info => &mut self.over_tcp.nfs,
            _ => &mut self.over_tcp.map,
        };
        if may_tcp && !*over_tcp {
            *over_tcp = true;
        } else if self.phase == Phase::NfsPort {
            self.nfs_port = nfs3::PORT;
            self.phase = Phase::Call;
        } else {
            return false;
        }
        room.job.caller.forget();
        room.job.caller.silence.another_way(why);
        true
    }
}

impl<H: Host> Operation<H> for Attach<H> {
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        if self.phase == Phase::Resolve
            && let Some(at) = self.resolve(cx)
        {
            return Step::Pending(at);
        }
        super::poll(self, cx)
    }

    fn datagram(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>) {
        match (self.phase, &self.server.name) {
            (Phase::Resolve, Some(name)) => self.lookup.datagram(cx, name.as_ref(), datagram),
            _ => super::datagram(self, cx, datagram),
        }
    }

    fn icmp_error(&mut self, cx: &mut Cx<'_, '_, H>, error: &IcmpError) {
        match self.phase {
            Phase::Resolve => self.lookup.icmp_error(cx, error),
            _ => super::icmp_error(self, cx, error),
        }
    }

    fn cancel(&mut self, cx: &mut Cx<'_, '_, H>) {
        if self.phase == Phase::Resolve {
            self.lookup.cancel(cx);
        }
        self.seat.leave(cx);
    }
}
