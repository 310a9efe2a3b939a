//! An HTTP server on virtual time: a stack of its own that serves files, or answers as a test wants, byte for byte.

use super::host::{NicState, SimHost, SimNic};
use super::link::Peer;
use super::packets::Station;
use super::rig::{Limits, memory};
use crate::client::engine::Engine;
use crate::stack::interface::{Cidr, Interface, NicId};
use crate::storage::host::{Endpoint, NicCaps, RxFlags};
use crate::storage::slots::Key;
use crate::storage::time::{Duration, Instant};
use crate::tcp::{Events, Options};
use core::net::Ipv4Addr;
use std::boxed::Box;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

/// A request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When.
    pub at: Instant,
    /// Which connection in turn it came on, from 1.
    pub connection: usize,
    /// The port of the server it came to.
    pub port: u16,
    /// All of it.
    pub text: String,
}

impl Seen {
    /// The words of its first line.
    pub fn line(&self) -> Vec<&str> {
        self.text.lines().next().unwrap_or("").split(' ').collect()
    }

    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let split = |line: &'_ str| line.split_once(": ").map(|(n, _)| n.eq_ignore_ascii_case(name));
        self.text.lines().find(|line| split(line) == Some(true)).and_then(|line| Some(line.split_once(": ")?.1))
    }
}

/// What follows the bytes of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Then {
    /// Another request is waited for.
    #[default]
    Keep,
    /// The end of the stream.
    Close,
    /// A reset.
    Reset,
    /// Nothing at all, not even to other requests.
    Silence,
}

/// What a request is answered with.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Bytes, sent in pieces of `piece` (0: as many as fit), each as a segment of its own.
    pub bytes: Vec<u8>,
    /// See `bytes`.
    pub piece: usize,
    /// And then.
    pub then: Then,
}

impl Answer {
    /// These bytes, after which another request is waited for.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Answer { bytes: bytes.into(), ..Answer::default() }
    }
}

/// A file.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// Its bytes.
    pub data: Vec<u8>,
    /// Its entity tag, quotes included; empty: none.
    pub tag: String,
    /// When it was modified last; empty: not told.
    pub modified: String,
}

/// How files are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// With Content-Length.
    #[default]
    Length,
    /// In chunks of this size.
    Chunks(usize),
    /// Up to the end of the stream.
    UntilEnd,
}

#[derive(Debug)]
struct Connection {
    key: Key,
    number: usize,
    port: u16,
    input: Vec<u8>,
    output: Vec<u8>,
    piece: usize,
    next: Instant,
    then: Then,
    /// Bytes of answers sent.
    sent: u64,
}

/// Answers a request in the server's stead.
pub type Hook = Box<dyn FnMut(&Seen) -> Option<Answer>>;

/// The server.
pub struct HttpServer {
    /// Where it is.
    pub station: Station,
    /// What it serves, by path.
    pub files: BTreeMap<String, File>,
    /// How.
    pub style: Style,
    /// It gives parts of files.
    pub ranges: bool,
    /// It ends a connection after so many bytes, by a reset; each once.
    pub cuts: Vec<u64>,
    /// Asked first.
    pub hook: Option<Hook>,
    /// Requests so far.
    pub requests: Vec<Seen>,
    /// Connections accepted so far.
    pub accepted: usize,
    engine: Engine<'static, SimHost>,
    nic: NicId,
    wire: Rc<RefCell<NicState>>,
    listeners: Vec<(Key, u16)>,
    connections: Vec<Connection>,
}

/// Time between pieces.
const PACE: Duration = Duration::from_micros(200);

impl HttpServer {
    /// A server on ports 80 and 8080, to which `client` is known.
    pub fn new(station: Station, client: Station) -> Self {
        Self::with_ring(station, client, 1 << 18)
    }

    /// The same with rings of so many bytes: what it has in flight on each connection at most.
    pub fn with_ring(station: Station, client: Station, tcp_ring: usize) -> Self {
        let limits = Limits { tcp: 16, tcp_ring, ops: 1, sockets: 1, ..Limits::default() };
        let mut engine = Engine::new(SimHost::new(78), memory(&limits));
        let nic = SimNic::new(NicCaps::empty(), true);
        let wire = nic.state.clone();
        let mut interface = Interface::new(nic, station.mac, limits.mtu, None);
        interface.add_address(Cidr { addr: station.ip, prefix: 24 });
        let nic = engine.stack.add_interface(interface).unwrap();
        engine.stack.learn_for_test(Instant::ZERO, nic, client.ip, client.mac);
        engine.tcp.time_wait = Duration::from_millis(100);
        let listen = |engine: &mut Engine<'static, SimHost>, port| {
            let local = Endpoint { addr: Ipv4Addr::UNSPECIFIED, port };
            (engine.tcp.listen(local, 4, Options { nagle: false, ..Options::default() }).unwrap(), port)
        };
        let listeners = vec![listen(&mut engine, 80), listen(&mut engine, 8080)];
        HttpServer {
            station,
            files: BTreeMap::new(),
            style: Style::Length,
            ranges: true,
            cuts: Vec::new(),
            hook: None,
            requests: Vec::new(),
            accepted: 0,
            engine,
            nic,
            wire,
            listeners,
            connections: Vec::new(),
        }
    }

    /// Adds a file.
    pub fn add(&mut self, path: &str, data: &[u8], tag: &str) {
        let file = File { data: data.to_vec(), tag: tag.to_string(), modified: String::new() };
        self.files.insert(path.to_string(), file);
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.connections.len()
    }

    fn work(&mut self, now: Instant) {
        for (listener, port) in self.listeners.clone() {
            while let Ok(key) = self.engine.tcp.accept(listener) {
                self.accepted += 1;
                self.connections.push(Connection {
                    key,
                    number: self.accepted,
                    port,
                    input: Vec::new(),
                    output: Vec::new(),
                    piece: 0,
                    next: Instant::ZERO,
                    then: Then::Keep,
                    sent: 0,
                });
            }
        }
        let mut connections = core::mem::take(&mut self.connections);
        connections.retain_mut(|connection| self.serve(now, connection));
        self.connections = connections;
    }

    /// Reads and answers; `false` when the connection is over.
    fn serve(&mut self, now: Instant, c: &mut Connection) -> bool {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = self.engine.tcp.recv(&mut self.engine.stack, c.key, &mut buffer) {
            c.input.extend_from_slice(&buffer[..count]);
        }
        while c.then == Then::Keep
            && c.output.is_empty()
            && let Some(end) = c.input.windows(4).position(|w| w == b"\r\n\r\n")
        {
            let text: Vec<u8> = c.input.drain(..end + 4).collect();
            let text = String::from_utf8(text).expect("requests are text");
            let seen = Seen { at: now, connection: c.number, port: c.port, text };
            self.requests.push(seen.clone());
            let answer = match self.hook.as_mut().and_then(|hook| hook(&seen)) {
                Some(answer) => answer,
                None => self.answer(&seen),
            };
            (c.output, c.piece, c.then, c.next) = (answer.bytes, answer.piece, answer.then, now);
        }
        while !c.output.is_empty() && now >= c.next {
            let cut = self.cuts.first().map(|cut| cut.saturating_sub(c.sent) as usize);
            let most = if c.piece == 0 { usize::MAX } else { c.piece }.min(cut.unwrap_or(usize::MAX));
            let part = &c.output[..c.output.len().min(most)];
            let count = self.engine.tcp.send(c.key, part).unwrap_or(0);
            c.output.drain(..count);
            c.sent += count as u64;
            if cut.is_some_and(|cut| count >= cut) {
                if self.engine.tcp.unsent(c.key).is_ok_and(|left| left > 0) {
                    // What comes before the cut is to arrive.
                    break;
                }
                self.cuts.remove(0);
                let _ = self.engine.tcp.abort(&mut self.engine.stack, c.key);
                return false;
            }
            if count == 0 {
                break;
            }
            if c.piece > 0 {
                c.next = now + PACE;
            }
        }
        let readiness = self.engine.tcp.readiness(c.key).unwrap_or(Events::CLOSED);
        let over = readiness.intersects(Events::CLOSED | Events::FINISHED);
        let done = c.output.is_empty() && readiness.contains(Events::SENT);
        match c.then {
            _ if over => {}
            Then::Reset if done => {
                let _ = self.engine.tcp.abort(&mut self.engine.stack, c.key);
                return false;
            }
            Then::Close if c.output.is_empty() => {}
            _ => return true,
        }
        let _ = self.engine.tcp.close(&mut self.engine.stack, c.key);
        false
    }

    /// Serves files as RFC 9110 has it.
    pub fn answer(&self, seen: &Seen) -> Answer {
        let line = seen.line();
        let Some(file) = line.get(1).and_then(|path| self.files.get(*path)) else {
            return Answer::new("HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nnone\n");
        };
        let len = file.data.len() as u64;
        let fresh = seen.field("If-Range").is_none_or(|v| v == file.tag || v == file.modified);
        let range = seen.field("Range").filter(|_| self.ranges && fresh).map(|text| {
            let (first, last) = text.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
            (first.parse::<u64>().unwrap(), last.parse::<u64>().unwrap_or(u64::MAX).min(len.saturating_sub(1)))
        });
        let (status, part, mut fields) = match range {
            Some((first, _)) if first >= len => {
                let text =
                    format!("HTTP/1.1 416 Bad Range\r\nContent-Range: bytes */{len}\r\nContent-Length: 0\r\n\r\n");
                return Answer::new(text);
            }
            Some((first, last)) => (
                "206 Partial Content",
                &file.data[first as usize..=last as usize],
                format!("Content-Range: bytes {first}-{last}/{len}\r\n"),
            ),
            None => ("200 OK", &file.data[..], String::new()),
        };
        for (name, value) in [("ETag", &file.tag), ("Last-Modified", &file.modified)] {
            if !value.is_empty() {
                fields += &format!("{name}: {value}\r\n");
            }
        }
        let (body, then) = match self.style {
            Style::Length => {
                fields += &format!("Content-Length: {}\r\n", part.len());
                (part.to_vec(), Then::Keep)
            }
            Style::Chunks(size) => {
                fields += "Transfer-Encoding: chunked\r\n";
                let mut body = Vec::new();
                for chunk in part.chunks(size) {
                    body.extend(format!("{:x}\r\n", chunk.len()).bytes().chain(chunk.iter().copied()));
                    body.extend(b"\r\n");
                }
                body.extend(b"0\r\n\r\n");
                (body, Then::Keep)
            }
            Style::UntilEnd => (part.to_vec(), Then::Close),
        };
        let mut bytes = format!("HTTP/1.1 {status}\r\n{fields}\r\n").into_bytes();
        if line.first() != Some(&"HEAD") {
            bytes.extend(body);
        }
        Answer { bytes, piece: 0, then }
    }

    fn step(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        self.engine.set_now(now);
        self.engine.tick();
        self.work(now);
        self.engine.tick();
        while self.engine.next_tcp_event().is_some() {}
        out.extend(self.wire.borrow_mut().sent.drain(..));
    }
}

impl Peer for HttpServer {
    fn receive(&mut self, now: Instant, frame: &[u8], out: &mut Vec<Vec<u8>>) {
        self.engine.set_now(now);
        let _ = self.engine.receive(self.nic, frame, RxFlags::empty());
        self.step(now, out);
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        self.step(now, out);
    }

    fn deadline(&self) -> Instant {
        let next = |c: &Connection| if c.output.is_empty() || c.piece == 0 { Instant::NEVER } else { c.next };
        let pieces = self.connections.iter().map(next).min().unwrap_or(Instant::NEVER);
        self.engine.deadline().min(pieces)
    }
}
