//! NFS operations against a server that answers what it is told to: whatever that is, the operation ends, nothing is
//! written outside its region, and the next operation, answered properly, comes to the right end.

use bootlace::client::nfs::attach::{self, Attach};
use bootlace::client::nfs::get::{self, Get};
use bootlace::client::nfs::query::{self, Ask, Query};
use bootlace::client::nfs::{Mount, Transport, Tuning};
use bootlace::client::operation::{Server, Step};
use bootlace::client::ops::Client;
use bootlace::client::rpc::User;
use bootlace::sim::host::{SimHost, SimMemory, SimWriter};
use bootlace::sim::link::{Conditions, Link};
use bootlace::sim::nfs_server::{Answer, NfsServer, Node};
use bootlace::sim::rig::{Limits, Rig};
use bootlace::stack::interface::Cidr;
use bootlace::storage::host::{Memory, NicCaps, SinkOf};
use bootlace::storage::time::Duration;
use std::cell::RefCell;
use std::rc::Rc;

const SIZE: usize = 3000;
const GUARD: usize = 64;

type Result<T> = core::result::Result<T, bootlace::storage::error::Error>;
type Sink = SinkOf<SimHost>;

struct Lab {
    rig: Rig,
    server: NfsServer,
    link: Link,
    /// What is left of the input.
    script: Rc<RefCell<Vec<u8>>>,
}

thread_local! {
    // Memory of a rig is never freed, so there is one.
    static LAB: RefCell<Lab> = RefCell::new(Lab::new());
}

/// Takes `N` bytes off the front of the script.
fn front<const N: usize>(script: &mut Vec<u8>) -> Option<[u8; N]> {
    let head = *script.first_chunk::<N>()?;
    script.drain(..N);
    Some(head)
}

/// What the script makes of a reply.
fn changed(script: &mut Vec<u8>, mut reply: Vec<u8>) -> Vec<Answer> {
    let Some([what]) = front(script) else { return vec![Answer::new(reply)] };
    match what % 6 {
        // Another reply to the same call, in whole: length, bytes.
        1 => {
            let Some([a, b]) = front(script) else { return vec![Answer::new(reply)] };
            let len = usize::from(u16::from_be_bytes([a, b])).min(script.len());
            reply.truncate(4);
            reply.extend(script.drain(..len));
        }
        // A word set: its number, its value.
        2 => {
            let Some([word, a, b, c, d]) = front(script) else { return vec![Answer::new(reply)] };
            if let Some(place) = reply.get_mut(usize::from(word) * 4..).and_then(|r| r.get_mut(..4)) {
                place.copy_from_slice(&[a, b, c, d]);
            }
        }
        3 => {
            let Some([a, b]) = front(script) else { return vec![Answer::new(reply)] };
            reply.truncate(usize::from(u16::from_be_bytes([a, b])));
        }
        4 => return Vec::new(),
        5 => return vec![Answer::new(reply.clone()), Answer::new(reply).after(30)],
        _ => {}
    }
    vec![Answer::new(reply)]
}

impl Lab {
    fn new() -> Self {
        let limits = Limits { nics: 1, ops: 1, sockets: 1, tcp: 0, ..Limits::default() };
        let mut rig = Rig::bare(1, limits, NicCaps::empty(), true);
        let cidr = Cidr { addr: rig.us.ip, prefix: 24 };
        rig.engine.stack.interface_mut(rig.nic).expect("added").add_address(cidr);
        let mut server = NfsServer::new();
        rig.know(server.station);
        server.add("d/file", Node::Sparse(SIZE as u64));
        server.add("d/link", Node::Link(b"./file".to_vec()));
        let script: Rc<RefCell<Vec<u8>>> = Rc::default();
        let calls = script.clone();
        server.hook = Some(Box::new(move |_, reply| changed(&mut calls.borrow_mut(), reply)));
        Lab { rig, server, link: Link::new(Conditions::default(), 1), script }
    }

    fn mount(&self) -> Mount<Vec<u8>> {
        Mount {
            server: self.server.station.ip,
            transport: Transport::Udp,
            nfs_port: 2049,
            mount_port: 20048,
            user: User::default(),
            root: self.server.handle(0),
            read_max: 65_536,
            dir_preferred: 16_384,
            path: self.server.export.clone(),
        }
    }

    /// Runs operation number `kind` of ten.
    fn run(&mut self, kind: u8, script: &[u8]) -> Result<u64> {
        *self.script.borrow_mut() = script.to_vec();
        self.server.calls.clear();
        let memory = SimMemory::new(SIZE + GUARD);
        let part = memory.slice(0, SIZE).expect("a part");
        let sink = Sink::Memory(part);
        let attach = |task| attach::Request {
            server: Server { name: None, addr: self.server.station.ip, port: 0 },
            task,
            transport: Transport::Auto,
            nfs_port: 0,
            mount_port: 0,
            user: User::default(),
            tuning: Tuning::default(),
        };
        let ask = |path: &[u8], ask| {
            let request = query::Request { mount: self.mount(), path: path.to_vec(), ask, tuning: Tuning::default() };
            Client::NfsQuery(Query::new(request).expect("a short path"))
        };
        let get = |sink, read_size| {
            let request = get::Request {
                mount: self.mount(),
                path: b"d/link".to_vec(),
                offset: 0,
                len: u64::MAX,
                sink,
                tuning: Tuning { read_size, ..Tuning::default() },
            };
            Client::NfsGet(Get::new(request).expect("a short path"))
        };
        let task = match kind {
            0 => Some(attach::Task::Mount(b"/srv".to_vec())),
            1 => Some(attach::Task::Unmount(b"/srv".to_vec())),
            2 => Some(attach::Task::Exports(sink.clone())),
            _ => None,
        };
        let client = match (task, kind) {
            (Some(task), _) => Client::NfsAttach(Attach::new(attach(task)).expect("a short path")),
            (_, 3) => ask(b"d/link", Ask::Attributes(true)),
            (_, 4) => ask(b"d", Ask::Access(0x3f)),
            (_, 5) => ask(b"/d/../", Ask::FsStat),
            (_, 6) => ask(b"d/link", Ask::Link(sink)),
            (_, 7) => ask(b"d", Ask::List(sink)),
            (_, 8) => get(Sink::Writer(SimWriter::default()), 1024),
            _ => get(sink, 2048),
        };
        let op = self.rig.engine.start(client).expect("a free slot");
        let done = |rig: &mut Rig| !rig.engine.ops.get(op).expect("not closed").is_running();
        assert!(self.link.run(&mut self.rig, &mut self.server, Duration::from_secs(300), done), "it ends");
        let Step::Done(result) = self.rig.engine.ops.get(op).expect("not closed").step else { unreachable!() };
        self.rig.engine.close(op).expect("not closed");
        assert!(memory.to_vec()[SIZE..].iter().all(|b| *b == 0xa5), "nothing beyond the region is written");
        result
    }
}

/// A byte that chooses the operation, then what becomes of the server's replies, one after the other: see [`changed`].
pub fn nfs_client(data: &[u8]) -> bool {
    let Some((&kind, script)) = data.split_first() else { return false };
    LAB.with_borrow_mut(|lab| {
        let kind = kind % 10;
        let result = lab.run(kind, script);
        assert_eq!(lab.run(9, &[]), Ok(SIZE as u64), "the next operation works");
        result.is_ok()
    })
}
