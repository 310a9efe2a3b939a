//! An NFS server for the simulated link: port mapper, MOUNT and NFS version 3 over UDP with a tree in memory, and hooks
//! to misbehave.

use super::link::Peer;
use super::packets::{self, Station};
use crate::storage::time::{Duration, Instant};
use crate::wire::ethernet::{EtherType, Frame};
use crate::wire::icmpv4::{Message, Unreachable};
use crate::wire::ipv4::{self, Protocol};
use crate::wire::nfs3::{
    self, Args, Attributes, DirList, Entry, FileHandle, FileType, Found, FsInfo, FsStat, Link, ReadHead, Status, Time,
    emit_dir_end, emit_failure,
};
use crate::wire::rpc::{self, ReceivedCall};
use crate::wire::xdr::{Decoder, Encoder};
use crate::wire::{arp, mount, portmap};
use std::boxed::Box;
use std::collections::{BTreeMap, BTreeSet};
use std::vec;
use std::vec::Vec;

/// Port of the MOUNT program.
pub const MOUNT_PORT: u16 = 20048;

/// What a file is.
#[derive(Clone, Debug)]
pub enum Node {
    /// A file with these bytes.
    File(Vec<u8>),
    /// A file of this size whose bytes follow from their offsets: see [`sparse_byte`].
    Sparse(u64),
    /// A directory: names and numbers of nodes.
    Dir(BTreeMap<Vec<u8>, usize>),
    /// A link.
    Link(Vec<u8>),
}

/// The byte at `offset` of a [`Node::Sparse`] file.
pub fn sparse_byte(offset: u64) -> u8 {
    (offset ^ (offset >> 8) ^ (offset >> 20) ^ (offset >> 33)) as u8
}

/// What the server knows and how it behaves.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// Port of MOUNT that the port mapper tells; `None`: it does not answer.
    pub mount_port: Option<u32>,
    /// Port of NFS that it tells for UDP and TCP.
    pub nfs_ports: (u32, u32),
    /// Attributes in replies where they may be left out.
    pub attributes: bool,
    /// Most bytes of a READ.
    pub read_max: u32,
    /// Replies of this many bytes and more are never seen.
    pub vanish: usize,
    /// Entries of a directory in a reply, at most.
    pub page: usize,
    /// After this many entries the listing begins anew, for ever.
    pub circle: Option<usize>,
    /// Knows READDIRPLUS.
    pub plus: bool,
    /// Time from a call to its reply.
    pub delay: Duration,
    /// Neither answers nor hears.
    pub down: bool,
    /// The same from one time to another.
    pub outage: Option<(Instant, Instant)>,
    /// Refuses with port unreachable while it is down.
    pub unreachable: bool,
    /// MTU of its interface.
    pub mtu: usize,
}

impl Default for Behaviour {
    fn default() -> Self {
        Behaviour {
            mount_port: Some(u32::from(MOUNT_PORT)),
            nfs_ports: (u32::from(nfs3::PORT), u32::from(nfs3::PORT)),
            attributes: true,
            read_max: 65_536,
            vanish: 65_400,
            page: usize::MAX,
            circle: None,
            plus: true,
            delay: Duration::ZERO,
            down: false,
            outage: None,
            unreachable: false,
            mtu: 1500,
        }
    }
}

/// A call that the server has had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When.
    pub at: Instant,
    /// Port it came from.
    pub from: u16,
    /// Port it came to.
    pub to: u16,
    /// Transaction.
    pub xid: u32,
    /// Program.
    pub program: u32,
    /// Procedure.
    pub procedure: u32,
    /// Flavor of its credentials.
    pub flavor: u32,
    /// The whole call.
    pub bytes: Vec<u8>,
}

/// A reply as it is sent.
#[derive(Clone, Debug)]
pub struct Answer {
    /// How much later than it could be.
    pub after: Duration,
    /// What it says.
    pub bytes: Vec<u8>,
    /// From whom, if not from the server.
    pub station: Option<Station>,
    /// From which port, if not from the one that was called.
    pub port: Option<u16>,
}

impl Answer {
    /// A reply as it should be.
    pub fn new(bytes: Vec<u8>) -> Self {
        Answer { after: Duration::ZERO, bytes, station: None, port: None }
    }

    /// The same, later.
    pub fn after(self, ms: u64) -> Self {
        Answer { after: Duration::from_millis(ms), ..self }
    }
}

/// Changes replies: given the call and the proper reply, it gives those that are sent instead.
pub type Hook = Box<dyn FnMut(&Seen, Vec<u8>) -> Vec<Answer>>;
/// Changes the order and number of the frames of a reply.
pub type FrameHook = Box<dyn FnMut(Vec<Vec<u8>>) -> Vec<Vec<u8>>>;

/// The server.
pub struct NfsServer {
    /// Who it is.
    pub station: Station,
    /// How it behaves.
    pub behaviour: Behaviour,
    /// Its nodes; number 0 is the root of the export.
    pub nodes: Vec<Node>,
    /// Path of the export.
    pub export: Vec<u8>,
    /// Calls it has had.
    pub calls: Vec<Seen>,
    /// Changes replies.
    pub hook: Option<Hook>,
    /// Changes frames.
    pub frame_hook: Option<FrameHook>,
    /// Length of handles in bytes, 4 to 64.
    pub handle_len: usize,
    client: Option<Station>,
    pending: BTreeMap<(Instant, u64), Vec<Vec<u8>>>,
    order: u64,
    ident: u16,
}

impl NfsServer {
    /// The server 10.0.0.1 that exports an empty directory as `/srv`.
    pub fn new() -> Self {
        NfsServer {
            station: Station::new(1),
            behaviour: Behaviour::default(),
            nodes: vec![Node::Dir(BTreeMap::new())],
            export: b"/srv".to_vec(),
            calls: Vec::new(),
            hook: None,
            frame_hook: None,
            handle_len: 32,
            client: None,
            pending: BTreeMap::new(),
            order: 0,
            ident: 0,
        }
    }

    /// Adds a node at `path` below the export, and the directories above it; its number.
    pub fn add(&mut self, path: &str, node: Node) -> usize {
        let mut dir = 0;
        let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
        for (n, part) in parts.iter().enumerate() {
            let new = self.nodes.len();
            let Node::Dir(entries) = &mut self.nodes[dir] else { panic!("{path}: not a directory") };
            let last = n + 1 == parts.len();
            match entries.get(part.as_bytes()) {
                Some(at) if !last => dir = *at,
                _ => {
                    entries.insert(part.as_bytes().to_vec(), new);
                    self.nodes.push(if last { node.clone() } else { Node::Dir(BTreeMap::new()) });
                    dir = new;
                }
            }
        }
        dir
    }

    /// The handle of a node.
    pub fn handle(&self, node: usize) -> FileHandle {
        let mut bytes = vec![0x5a; self.handle_len];
        bytes[..4].copy_from_slice(&(node as u32).to_be_bytes());
        FileHandle::new(&bytes).unwrap()
    }

    fn node(&self, handle: &FileHandle) -> Option<usize> {
        let bytes = handle.as_bytes();
        let node = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        (node < self.nodes.len() && self.handle(node) == *handle).then_some(node)
    }

    fn parent(&self, node: usize) -> usize {
        let holds = |n: &Node| matches!(n, Node::Dir(entries) if entries.values().any(|e| *e == node));
        self.nodes.iter().position(holds).unwrap_or(0)
    }

    /// Attributes of a node.
    pub fn attributes(&self, node: usize) -> Attributes {
        let (kind, size) = match &self.nodes[node] {
            Node::File(bytes) => (FileType::Regular, bytes.len() as u64),
            Node::Sparse(size) => (FileType::Regular, *size),
            Node::Dir(entries) => (FileType::Directory, entries.len() as u64 * 32),
            Node::Link(target) => (FileType::Symlink, target.len() as u64),
        };
        Attributes {
            kind,
            mode: 0o755,
            links: 1,
            uid: 0,
            gid: 0,
            size,
            used: size,
            rdev: [0; 2],
            fsid: 7,
            fileid: node as u64 + 100,
            accessed: Time::default(),
            modified: Time { seconds: 1_700_000_000, nanoseconds: 5 },
            changed: Time::default(),
        }
    }

    fn optional(&self, node: usize) -> Option<Attributes> {
        self.behaviour.attributes.then(|| self.attributes(node))
    }

    /// How often `procedure` of NFS was called.
    pub fn count(&self, procedure: u32) -> usize {
        self.calls.iter().filter(|c| c.program == nfs3::PROGRAM && c.procedure == procedure).count()
    }

    /// The transactions of the READs called, in order.
    pub fn reads(&self) -> Vec<(u32, u64, u32)> {
        let reads = self.calls.iter().filter(|c| c.program == nfs3::PROGRAM && c.procedure == nfs3::procedure::READ);
        reads
            .map(|c| {
                let mut args = ReceivedCall::parse(&c.bytes).unwrap().args;
                match Args::parse(nfs3::procedure::READ, &mut args) {
                    Ok(Args::Read { offset, count, .. }) => (c.xid, offset, count),
                    _ => panic!("a READ"),
                }
            })
            .collect()
    }

    /// The proper reply to a call; `None` for what is none, or has no answer.
    pub fn reply(&self, to: u16, call: &[u8]) -> Option<Vec<u8>> {
        let call = ReceivedCall::parse(call).ok()?;
        let mut buffer = vec![0; 70_000];
        let mut e = Encoder::new(&mut buffer);
        rpc::emit_success(&mut e, call.xid).unwrap();
        let mut args = call.args;
        match (call.program, to) {
            (portmap::PROGRAM, portmap::PORT) => {
                let asked = portmap::GetPort::parse(&mut args).ok()?;
                let udp = asked.protocol == 17;
                let port = match asked.program {
                    mount::PROGRAM => self.behaviour.mount_port?,
                    nfs3::PROGRAM if udp => self.behaviour.nfs_ports.0,
                    nfs3::PROGRAM => self.behaviour.nfs_ports.1,
                    _ => 0,
                };
                e.u32(port).unwrap();
            }
            (mount::PROGRAM, MOUNT_PORT) => self.mount(call.procedure, &mut args, &mut e)?,
            (nfs3::PROGRAM, nfs3::PORT) => {
                let known = self.behaviour.plus || call.procedure != nfs3::procedure::READDIRPLUS;
                match Args::parse(call.procedure, &mut args) {
                    Ok(args) if known => self.nfs(&args, &mut e),
                    _ => {
                        let mut e = Encoder::new(&mut buffer);
                        // Accepted, no verifier, procedure unavailable.
                        for word in [call.xid, 1, 0, 0, 0, 3] {
                            e.u32(word).unwrap();
                        }
                        return Some(e.finish().to_vec());
                    }
                }
            }
            _ => return None,
        }
        Some(e.finish().to_vec())
    }

    fn mount(&self, procedure: u32, args: &mut Decoder<'_>, e: &mut Encoder<'_>) -> Option<()> {
        match procedure {
            mount::procedure::MNT => {
                let path = mount::parse_path(args).ok()?;
                if path == self.export {
                    mount::Mounted { root: self.handle(0), takes_none: false, takes_sys: true }.emit(e).unwrap();
                } else {
                    e.u32(mount::Status::ACCES.0).unwrap();
                }
            }
            mount::procedure::EXPORT => {
                for (path, groups) in [(&self.export[..], &[&b"10.0.0.0/8"[..], b"lab"][..]), (b"/pub", &[])] {
                    e.bool(true).unwrap();
                    e.opaque(path).unwrap();
                    for group in groups {
                        e.bool(true).unwrap();
                        e.opaque(group).unwrap();
                    }
                    e.bool(false).unwrap();
                }
                e.bool(false).unwrap();
            }
            _ => {}
        }
        Some(())
    }

    fn nfs(&self, args: &Args<'_>, e: &mut Encoder<'_>) {
        let handle = match args {
            Args::Null => return,
            Args::GetAttr(h) | Args::ReadLink(h) | Args::FsStat(h) | Args::FsInfo(h) => h,
            Args::Lookup { dir, .. } | Args::ReadDir { dir, .. } | Args::ReadDirPlus { dir, .. } => dir,
            Args::Access { file, .. } | Args::Read { file, .. } => file,
        };
        let Some(node) = self.node(handle) else {
            return emit_failure(e, Status::STALE).unwrap();
        };
        match args {
            Args::GetAttr(_) => {
                e.u32(0).unwrap();
                self.attributes(node).emit(e).unwrap();
            }
            Args::Lookup { name, .. } => self.lookup(node, name, e),
            Args::Access { bits, .. } => {
                nfs3::Allowed { bits: bits & 0x23 }.emit(self.optional(node).as_ref(), e).unwrap();
            }
            Args::ReadLink(_) => match &self.nodes[node] {
                Node::Link(path) => Link { path }.emit(self.optional(node).as_ref(), e).unwrap(),
                _ => emit_failure(e, Status::INVAL).unwrap(),
            },
            Args::Read { offset, count, .. } => self.read(node, *offset, *count, e),
            Args::ReadDir { cookie, verifier, count, .. } => {
                self.list(node, *cookie, *verifier, *count, false, e);
            }
            Args::ReadDirPlus { cookie, verifier, max_count, .. } => {
                self.list(node, *cookie, *verifier, *max_count, true, e);
            }
            Args::FsInfo(_) => FsInfo {
                read_max: self.behaviour.read_max,
                read_preferred: self.behaviour.read_max,
                read_multiple: 512,
                write_max: 65_536,
                write_preferred: 65_536,
                write_multiple: 512,
                dir_preferred: 16_384,
                max_file_size: u64::MAX >> 1,
                time_delta: Time::default(),
                properties: 0x1b,
            }
            .emit(self.optional(node).as_ref(), e)
            .unwrap(),
            Args::FsStat(_) => FsStat {
                total_bytes: 1 << 40,
                free_bytes: 1 << 39,
                available_bytes: (1 << 39) - 1,
                total_files: 1000,
                free_files: 900,
                available_files: 899,
                invariant_s: 0,
            }
            .emit(self.optional(node).as_ref(), e)
            .unwrap(),
            Args::Null => {}
        }
    }

    fn lookup(&self, node: usize, name: &[u8], e: &mut Encoder<'_>) {
        let Node::Dir(entries) = &self.nodes[node] else { return emit_failure(e, Status::NOTDIR).unwrap() };
        let found = match name {
            b"." => Some(node),
            b".." => Some(self.parent(node)),
            name => entries.get(name).copied(),
        };
        match found {
            Some(found) => Found { file: self.handle(found), attributes: self.optional(found) }
                .emit(self.optional(node).as_ref(), e)
                .unwrap(),
            None => emit_failure(e, Status::NOENT).unwrap(),
        }
    }

    fn read(&self, node: usize, offset: u64, count: u32, e: &mut Encoder<'_>) {
        let size = self.attributes(node).size;
        let count = u64::from(count.min(self.behaviour.read_max)).min(size.saturating_sub(offset));
        let data: Vec<u8> = match &self.nodes[node] {
            Node::File(bytes) if count > 0 => bytes[offset as usize..(offset + count) as usize].to_vec(),
            Node::Sparse(_) => (offset..offset + count).map(sparse_byte).collect(),
            Node::File(_) => Vec::new(),
            _ => return emit_failure(e, Status::ISDIR).unwrap(),
        };
        let head = ReadHead { len: count as u32, eof: offset + count >= size };
        head.emit(self.optional(node).as_ref(), e).unwrap();
        e.fixed(&data).unwrap();
    }

    fn list(&self, node: usize, cookie: u64, verifier: [u8; 8], max: u32, plus: bool, e: &mut Encoder<'_>) {
        let Node::Dir(entries) = &self.nodes[node] else { return emit_failure(e, Status::NOTDIR).unwrap() };
        if verifier != if cookie == 0 { [0; 8] } else { *b"verifier" } {
            return emit_failure(e, Status::BAD_COOKIE).unwrap();
        }
        DirList::emit_head(e, self.optional(node).as_ref(), b"verifier").unwrap();
        let dots: [(&[u8], usize); 2] = [(b".", node), (b"..", self.parent(node))];
        let names = dots.into_iter().chain(entries.iter().map(|(name, n)| (&name[..], *n)));
        // Cookies use all 64 bits.
        let first = if cookie == 0 { 0 } else { (cookie - (1 << 63)) as usize };
        let first = self.behaviour.circle.map_or(first, |circle| first % circle);
        let end = self.behaviour.circle.unwrap_or(usize::MAX);
        let (mut room, mut eof) = (max as usize - 120, true);
        for (place, (name, n)) in names.enumerate().skip(first) {
            let long = 24 + name.len().next_multiple_of(4) + if plus { 92 + self.handle_len } else { 0 };
            if long > room || place - first >= self.behaviour.page || place >= end {
                eof = false;
                break;
            }
            room -= long;
            let attributes = plus.then(|| self.attributes(n));
            let entry = Entry { fileid: n as u64 + 100, name, cookie: (1 << 63) + place as u64 + 1, attributes };
            if plus {
                entry.emit_plus(Some(&self.handle(n)), e).unwrap();
            } else {
                entry.emit(e).unwrap();
            }
        }
        emit_dir_end(e, eof).unwrap();
    }

    /// Frames that carry `payload` as a UDP datagram from `from`, in fragments if need be.
    fn frames(&mut self, from: (Station, u16), to: Station, to_port: u16, payload: &[u8]) -> Vec<Vec<u8>> {
        self.ident = self.ident.wrapping_add(1);
        let (station, from) = from;
        let datagram = packets::udp_datagram((station.ip, from), (to.ip, to_port), payload);
        let piece = (self.behaviour.mtu - ipv4::HEADER_LEN) & !7;
        let count = datagram.len().div_ceil(piece);
        let fragment = |(n, part): (usize, &[u8])| {
            let packet = packets::ipv4_with(station.ip, to.ip, Protocol::UDP, part, |r| {
                r.identification = self.ident;
                r.more_fragments = n + 1 < count;
                r.fragment_offset = (n * piece) as u16;
            });
            packets::ethernet(to.mac, station.mac, EtherType::IPV4, &packet)
        };
        datagram.chunks(piece).enumerate().map(fragment).collect()
    }

    fn udp(&mut self, now: Instant, frame: &[u8], out: &mut Vec<Vec<u8>>) {
        let Some(seen) = packets::parse_udp(frame) else { return };
        if seen.dst != self.station.ip {
            return;
        }
        let client = Station { mac: Frame::parse(frame).unwrap().source(), ip: seen.src };
        self.client = Some(client);
        let outage = self.behaviour.outage.is_some_and(|(from, to)| now >= from && now < to);
        if self.behaviour.down || outage {
            if self.behaviour.unreachable {
                let ip = Frame::parse(frame).unwrap().payload();
                out.push(self.port_unreachable(client, &ip[..28]));
            }
            return;
        }
        let Ok(call) = ReceivedCall::parse(&seen.payload) else { return };
        let (xid, program, procedure, flavor) = (call.xid, call.program, call.procedure, call.flavor);
        let (from, to) = (seen.src_port, seen.dst_port);
        let call = Seen { at: now, from, to, xid, program, procedure, flavor, bytes: seen.payload.clone() };
        self.calls.push(call.clone());
        let Some(reply) = self.reply(to, &seen.payload) else { return };
        let replies = match &mut self.hook {
            Some(hook) => hook(&call, reply),
            None => vec![Answer::new(reply)],
        };
        for answer in replies {
            if answer.bytes.len() >= self.behaviour.vanish {
                continue;
            }
            let source = (answer.station.unwrap_or(self.station), answer.port.unwrap_or(to));
            let mut frames = self.frames(source, client, from, &answer.bytes);
            if let Some(hook) = &mut self.frame_hook {
                frames = hook(frames);
            }
            self.order += 1;
            self.pending.insert((now + self.behaviour.delay + answer.after, self.order), frames);
        }
    }

    /// An ICMP port unreachable that quotes `quote`.
    pub fn port_unreachable(&self, to: Station, quote: &[u8]) -> Vec<u8> {
        let mut message =
            Message::Unreachable { code: Unreachable::PORT, next_hop_mtu: 0, quoted: quote }.emit_head([0; 2]).to_vec();
        message.extend_from_slice(quote);
        packets::icmp(self.station, to, &message)
    }

    fn due(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        while let Some(entry) = self.pending.first_entry() {
            if entry.key().0 > now {
                break;
            }
            out.extend(entry.remove());
        }
    }

    /// Ports that calls came to.
    pub fn ports(&self) -> BTreeSet<u16> {
        self.calls.iter().map(|c| c.to).collect()
    }
}

impl Default for NfsServer {
    fn default() -> Self {
        NfsServer::new()
    }
}

impl Peer for NfsServer {
    fn receive(&mut self, now: Instant, frame: &[u8], out: &mut Vec<Vec<u8>>) {
        if let Some(asked) = packets::parse_arp(frame) {
            if asked.operation == arp::Operation::Request && asked.target_ip == self.station.ip {
                let asker = Station { mac: asked.sender_mac, ip: asked.sender_ip };
                out.push(packets::arp_reply(self.station, asker));
            }
            return;
        }
        self.udp(now, frame, out);
        self.due(now, out);
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        self.due(now, out);
    }

    fn deadline(&self) -> Instant {
        self.pending.first_key_value().map_or(Instant::NEVER, |((at, _), _)| *at)
    }
}
