//! NFS against the server of the simulation: field cases, hostile replies, runs over a modelled link.

use super::attach::{self, Attach};
use super::get::{self, Get};
use super::query::{self, Ask, Query};
use super::{Mount, Transport, Tuning};
use crate::client::operation::{Detail, Server, Step};
use crate::client::ops::Client;
use crate::client::rpc::User;
use crate::sim::host::{SimHost, SimMemory};
use crate::sim::link::{Conditions, Link};
use crate::sim::nfs_server::{NfsServer, Node};
use crate::sim::rig::Rig;
use crate::storage::error::Error;
use crate::storage::host::SinkOf;
use crate::storage::slots::Key;
use crate::storage::time::Duration;
use std::vec::Vec;

mod basic;
mod cases;
mod files;
mod hostile;
#[cfg(feature = "tcp")]
mod hostile_tcp;
mod model;
#[cfg(feature = "tcp")]
mod tcp;
mod walks;

type Sink = SinkOf<SimHost>;
type Result<T> = core::result::Result<T, Error>;

/// A rig, a server and the link between them.
struct Lab {
    rig: Rig,
    server: NfsServer,
    link: Link,
}

impl Lab {
    fn new() -> Self {
        Lab::over(Conditions::default(), 1)
    }

    fn over(conditions: Conditions, seed: u64) -> Self {
        let mut rig = Rig::new(seed);
        let server = NfsServer::new();
        rig.know(server.station);
        Lab { rig, server, link: Link::new(conditions, seed) }
    }

    fn run(&mut self, op: Key, limit: Duration) -> bool {
        let done = |rig: &mut Rig| !rig.engine.ops.get(op).unwrap().is_running();
        self.link.run(&mut self.rig, &mut self.server, limit, done)
    }

    /// Runs an operation to its end; its result.
    fn finish(&mut self, op: Key) -> Result<u64> {
        assert!(self.run(op, Duration::from_secs(600)), "the operation ends");
        match self.rig.engine.ops.get(op).unwrap().step {
            Step::Done(result) => result,
            Step::Pending(_) => unreachable!(),
        }
    }

    fn detail(&self, op: Key) -> Detail {
        self.rig.engine.ops.get(op).unwrap().detail.clone()
    }

    fn attach(&mut self, change: impl FnOnce(&mut attach::Request<SimHost>)) -> Result<Key> {
        let mut request = attach::Request {
            server: Server { name: None, addr: self.server.station.ip, port: 0 },
            task: attach::Task::Mount(b"/srv".to_vec()),
            transport: Transport::Auto,
            nfs_port: 0,
            mount_port: 0,
            user: User::default(),
            tuning: Tuning::default(),
        };
        change(&mut request);
        Ok(self.rig.engine.start(Client::NfsAttach(Attach::new(request)?)).unwrap())
    }

    fn mount(&mut self) -> Mount<Vec<u8>> {
        let op = self.attach(|_| ()).unwrap();
        self.finish(op).unwrap();
        let Client::NfsAttach(attach) = &self.rig.engine.ops.get(op).unwrap().client else { unreachable!() };
        let mount = attach.mount().unwrap();
        let mount = Mount {
            server: mount.server,
            transport: mount.transport,
            nfs_port: mount.nfs_port,
            mount_port: mount.mount_port,
            user: mount.user,
            root: mount.root,
            read_max: mount.read_max,
            dir_preferred: mount.dir_preferred,
            path: mount.path.clone(),
        };
        self.rig.engine.close(op).unwrap();
        mount
    }

    /// The mount without asking the server.
    fn known(&self) -> Mount<Vec<u8>> {
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

    fn start_get(&mut self, path: &str, sink: Sink, change: impl FnOnce(&mut get::Request<SimHost>)) -> Result<Key> {
        let mut request = get::Request {
            mount: self.known(),
            path: path.as_bytes().to_vec(),
            offset: 0,
            len: u64::MAX,
            sink,
            tuning: Tuning::default(),
        };
        change(&mut request);
        Ok(self.rig.engine.start(Client::NfsGet(Get::new(request)?)).unwrap())
    }

    fn ask(&mut self, path: &[u8], ask: Ask<SimHost>) -> Result<Key> {
        let request = query::Request { mount: self.known(), path: path.to_vec(), ask, tuning: Tuning::default() };
        Ok(self.rig.engine.start(Client::NfsQuery(Query::new(request)?)).unwrap())
    }

    fn close(&mut self, op: Key) {
        self.rig.engine.close(op).unwrap();
    }
}

/// Bytes that show where they belong.
fn bytes(len: usize) -> Vec<u8> {
    (0..len as u64).map(crate::sim::nfs_server::sparse_byte).collect()
}

/// An entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    name: Vec<u8>,
    fileid: u64,
    size: u64,
    kind: u32,
}

/// Takes the records of a listing apart.
fn records(bytes: &[u8], count: u64) -> Vec<Listed> {
    let mut list = Vec::new();
    let mut at = 0;
    for _ in 0..count {
        let record = &bytes[at..];
        let word = |n: usize| u32::from_ne_bytes(record[n..n + 4].try_into().unwrap());
        let long = |n: usize| u64::from_ne_bytes(record[n..n + 8].try_into().unwrap());
        let (len, name_len) = (word(32) as usize, word(36) as usize);
        let name = record[query::RECORD..query::RECORD + name_len].to_vec();
        assert_eq!((len % 8, record[query::RECORD + name_len]), (0, 0));
        list.push(Listed { name, fileid: long(0), size: long(8), kind: word(28) });
        at += len;
    }
    list
}
