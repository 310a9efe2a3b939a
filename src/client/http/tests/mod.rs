//! HTTP over the simulated link, and over scripted streams.

mod files;
mod hostile;
mod transfers;

use super::{Get, Method, Request, Tuning};
use crate::client::operation::Step;
use crate::client::ops::Client;
use crate::sim::host::{SimHost, SimMemory, SimWriter};
use crate::sim::http_server::{Answer, HttpServer, Seen};
use crate::sim::link::{Conditions, Link};
use crate::sim::packets::Station;
use crate::sim::rig::{Limits, Rig};
use crate::stack::interface::Cidr;
use crate::storage::error::Result;
use crate::storage::host::{NicCaps, Sink};
use crate::storage::slots::Key;
use crate::storage::time::Duration;
use std::boxed::Box;
use std::string::{String, ToString};
use std::vec::Vec;

const SERVER: Station = Station::new(1);

fn bytes(len: usize) -> Vec<u8> {
    let mut seed = 7;
    (0..len.div_ceil(8)).flat_map(|_| crate::sim::host::splitmix(&mut seed).to_le_bytes()).take(len).collect()
}

struct Lab {
    rig: Rig,
    link: Link,
    server: HttpServer,
    last: Option<Key>,
}

type Req = Request<SimHost>;

impl Lab {
    fn new() -> Self {
        Lab::over(Conditions::default(), 1)
    }

    fn over(conditions: Conditions, seed: u64) -> Self {
        let limits = Limits { tcp: 4, tcp_ring: 8192, ..Default::default() };
        let mut rig = Rig::bare(seed, limits, NicCaps::empty(), true);
        let cidr = Cidr { addr: rig.us.ip, prefix: 24 };
        rig.engine.stack.interface_mut(rig.nic).unwrap().add_address(cidr);
        rig.know(SERVER);
        let server = HttpServer::new(SERVER, rig.us);
        Lab { rig, link: Link::new(conditions, seed), server, last: None }
    }

    /// Answers every request so.
    fn answer(&mut self, mut with: impl FnMut(&Seen) -> Answer + 'static) {
        self.server.hook = Some(Box::new(move |seen| Some(with(seen))));
    }

    fn url(path: &str) -> Vec<u8> {
        std::format!("http://{}{path}", SERVER.ip).into_bytes()
    }

    fn request(path: &str, sink: Sink<SimMemory, SimWriter>) -> Req {
        Request {
            url: Lab::url(path),
            method: Method::Get,
            sink,
            user: None,
            fields: None,
            if_range: None,
            offset: 0,
            len: u64::MAX,
            tuning: Tuning { redirects: 8, retries: 8, ..Tuning::default() },
        }
    }

    fn start(&mut self, request: Req) -> Result<Key> {
        self.rig.engine.start(Client::Http(Get::new(request)?))
    }

    fn finish(&mut self, op: Key) -> Result<u64> {
        let done = |rig: &mut Rig| !rig.engine.ops.get(op).unwrap().is_running();
        assert!(self.link.run(&mut self.rig, &mut self.server, Duration::from_secs(600), done), "the operation ends");
        match self.rig.engine.ops.get(op).unwrap().step {
            Step::Done(result) => result,
            Step::Pending(_) => unreachable!(),
        }
    }

    /// Runs for a while.
    fn wait(&mut self, time: Duration) {
        assert!(!self.link.run(&mut self.rig, &mut self.server, time, |_| false));
        self.rig.engine.set_now(self.rig.now() + time);
        self.rig.engine.tick();
    }

    /// Closes the operation that was looked at last.
    fn close(&mut self) {
        if let Some(op) = self.last.take() {
            self.rig.engine.close(op).unwrap();
        }
    }

    /// Fetches what a request asks for into memory of `room` bytes: the result and the memory. The operation stays open
    /// until the next.
    fn run(&mut self, room: usize, change: impl FnOnce(&mut Req)) -> (Result<u64>, Vec<u8>) {
        self.close();
        let memory = SimMemory::new(room);
        let mut request = Lab::request("/f", Sink::Memory(memory.clone()));
        change(&mut request);
        let op = self.start(request).unwrap();
        self.last = Some(op);
        let result = self.finish(op);
        (result, memory.to_vec())
    }

    fn get(&self) -> &Get<SimHost> {
        match &self.rig.engine.ops.get(self.last.unwrap()).unwrap().client {
            Client::Http(get) => get,
            _ => unreachable!(),
        }
    }

    fn field(&self, name: &str) -> Option<String> {
        let head = self.get().head(&self.rig.engine.shared);
        super::head::field(head, name.as_bytes()).map(|v| String::from_utf8_lossy(v).to_string())
    }

    /// What the detail of the last operation says.
    fn detail(&self) -> (u32, String) {
        let detail = &self.rig.engine.ops.get(self.last.unwrap()).unwrap().detail;
        (detail.code, String::from_utf8_lossy(&detail.text).to_string())
    }

    /// Fetches all of "/f", `file`, into memory with a guard behind it.
    fn whole(&mut self, file: &[u8]) {
        let (result, memory) = self.run(file.len() + 16, |_| ());
        assert_eq!(result, Ok(file.len() as u64));
        assert!(memory[..file.len()] == *file, "bytes are equal");
        assert_eq!(memory[file.len()..], [0xa5; 16], "the guard is intact");
    }
}
