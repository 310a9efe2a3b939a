//! The NFS server of the simulation over TCP too: a stack of its own that listens on the server's ports, and records cut
//! as a test wants.

use super::host::{NicState, SimHost, SimNic};
use super::link::Peer;
use super::nfs_server::{Answer, MOUNT_PORT, NfsServer, Seen};
use super::packets::Station;
use super::rig::{Limits, memory};
use crate::client::engine::Engine;
use crate::stack::interface::{Cidr, Interface, NicId};
use crate::storage::host::{Endpoint, NicCaps, RxFlags};
use crate::storage::slots::Key;
use crate::storage::time::Instant;
use crate::tcp::{Events, Options};
use crate::wire::ethernet::{EtherType, Frame};
use crate::wire::ipv4::{self, Protocol};
use crate::wire::rpc::{ReceivedCall, RecordMark};
use crate::wire::{nfs3, portmap};
use core::net::Ipv4Addr;
use std::boxed::Box;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::vec::Vec;

#[derive(Debug)]
struct Connection {
    key: Key,
    port: u16,
    from: u16,
    input: Vec<u8>,
    output: Vec<u8>,
    pending: BTreeMap<(Instant, u64), Vec<u8>>,
}

/// Cuts a record, given without its mark, into the bytes that are sent for it.
pub type Cutter = Box<dyn FnMut(Vec<u8>) -> Vec<u8>>;

/// The server.
pub struct NfsStream {
    /// What it answers, and all that comes over UDP.
    pub server: NfsServer,
    /// Cuts records.
    pub cutter: Option<Cutter>,
    /// Connections accepted so far.
    pub accepted: usize,
    engine: Engine<'static, SimHost>,
    nic: NicId,
    wire: Rc<RefCell<NicState>>,
    listeners: Vec<(Key, u16)>,
    connections: Vec<Connection>,
    order: u64,
}

/// A record as one fragment.
pub fn one_fragment(record: &[u8]) -> Vec<u8> {
    fragments(record, usize::MAX)
}

/// A record in fragments of `size` bytes.
pub fn fragments(record: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let count = record.len().div_ceil(size).max(1);
    for (n, part) in record.chunks(size.min(record.len().max(1))).enumerate() {
        bytes.extend(RecordMark { last: n + 1 == count, len: part.len() as u32 }.emit());
        bytes.extend_from_slice(part);
    }
    bytes
}

impl NfsStream {
    /// `server`, to which `client` is known.
    pub fn new(server: NfsServer, client: Station) -> Self {
        let limits = Limits { tcp: 8, tcp_ring: 1 << 18, ops: 1, sockets: 1, ..Limits::default() };
        let mut engine = Engine::new(SimHost::new(77), memory(&limits));
        let nic = SimNic::new(NicCaps::empty(), true);
        let wire = nic.state.clone();
        let mut interface = Interface::new(nic, server.station.mac, limits.mtu, None);
        interface.add_address(Cidr { addr: server.station.ip, prefix: 24 });
        let nic = engine.stack.add_interface(interface).unwrap();
        engine.stack.learn_for_test(Instant::ZERO, nic, client.ip, client.mac);
        NfsStream {
            server,
            cutter: None,
            accepted: 0,
            engine,
            nic,
            wire,
            listeners: Vec::new(),
            connections: Vec::new(),
            order: 0,
        }
    }

    fn listen(&mut self, now: Instant) {
        let behaviour = &self.server.behaviour;
        let down = behaviour.down || behaviour.outage.is_some_and(|(from, to)| now >= from && now < to);
        if down {
            for (listener, _) in self.listeners.drain(..) {
                self.engine.tcp.unlisten(&mut self.engine.stack, listener).unwrap();
            }
            for connection in self.connections.drain(..) {
                let _ = self.engine.tcp.abort(&mut self.engine.stack, connection.key);
            }
        } else if self.listeners.is_empty() {
            for port in [portmap::PORT, MOUNT_PORT, nfs3::PORT] {
                let local = Endpoint { addr: Ipv4Addr::UNSPECIFIED, port };
                let options = Options { nagle: false, ..Options::default() };
                self.listeners.push((self.engine.tcp.listen(local, 4, options).unwrap(), port));
            }
        }
    }

    fn work(&mut self, now: Instant) {
        for (listener, port) in &self.listeners {
            while let Ok(key) = self.engine.tcp.accept(*listener) {
                self.accepted += 1;
                let from = self.engine.tcp.info(key).unwrap().remote.port;
                self.connections.push(Connection {
                    key,
                    port: *port,
                    from,
                    input: Vec::new(),
                    output: Vec::new(),
                    pending: BTreeMap::new(),
                });
            }
        }
        let mut connections = core::mem::take(&mut self.connections);
        connections.retain_mut(|connection| self.serve(now, connection));
        self.connections = connections;
    }

    /// Reads and answers; `false` when the connection is over.
    fn serve(&mut self, now: Instant, connection: &mut Connection) -> bool {
        let key = connection.key;
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = self.engine.tcp.recv(&mut self.engine.stack, key, &mut buffer) {
            connection.input.extend_from_slice(&buffer[..count]);
        }
        while connection.input.len() >= 4 {
            let mark = RecordMark::parse(connection.input[..4].try_into().unwrap());
            let end = 4 + mark.len as usize;
            if connection.input.len() < end {
                break;
            }
            let call: Vec<u8> = connection.input.drain(..end).skip(4).collect();
            assert!(mark.last, "calls are one fragment");
            self.answer(now, connection, call);
        }
        while let Some(entry) = connection.pending.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let record = entry.remove();
            let bytes = match &mut self.cutter {
                Some(cutter) => cutter(record),
                None => one_fragment(&record),
            };
            connection.output.extend(bytes);
        }
        if !connection.output.is_empty() {
            let count = self.engine.tcp.send(key, &connection.output).unwrap_or(0);
            connection.output.drain(..count);
        }
        let over = Events::CLOSED | Events::FINISHED;
        if self.engine.tcp.readiness(key).is_ok_and(|r| !r.intersects(over)) {
            return true;
        }
        let _ = self.engine.tcp.close(&mut self.engine.stack, key);
        false
    }

    fn answer(&mut self, now: Instant, connection: &mut Connection, bytes: Vec<u8>) {
        let Ok(call) = ReceivedCall::parse(&bytes) else { return };
        let seen = Seen {
            at: now,
            from: connection.from,
            to: connection.port,
            xid: call.xid,
            program: call.program,
            procedure: call.procedure,
            flavor: call.flavor,
            bytes: bytes.clone(),
        };
        self.server.calls.push(seen.clone());
        let Some(reply) = self.server.reply(connection.port, &bytes) else { return };
        let replies = match &mut self.server.hook {
            Some(hook) => hook(&seen, reply),
            None => std::vec![Answer::new(reply)],
        };
        for answer in replies {
            self.order += 1;
            let at = now + self.server.behaviour.delay + answer.after;
            connection.pending.insert((at, self.order), answer.bytes);
        }
    }

    fn step(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        self.engine.set_now(now);
        self.listen(now);
        self.engine.tick();
        self.work(now);
        self.engine.tick();
        while self.engine.next_tcp_event().is_some() {}
        out.extend(self.wire.borrow_mut().sent.drain(..));
    }
}

fn is_tcp(frame: &[u8]) -> bool {
    let Ok(frame) = Frame::parse(frame) else { return false };
    let packet = ipv4::Packet::parse(frame.payload());
    frame.ether_type() == EtherType::IPV4 && packet.is_ok_and(|p| p.protocol() == Protocol::TCP)
}

impl Peer for NfsStream {
    fn receive(&mut self, now: Instant, frame: &[u8], out: &mut Vec<Vec<u8>>) {
        if is_tcp(frame) {
            self.engine.set_now(now);
            self.listen(now);
            let _ = self.engine.receive(self.nic, frame, RxFlags::empty());
            self.step(now, out);
        } else {
            if Frame::parse(frame).is_ok_and(|f| f.ether_type() == EtherType::ARP) {
                // Its stack may have asked.
                self.engine.set_now(now);
                let _ = self.engine.receive(self.nic, frame, RxFlags::empty());
                self.step(now, out);
            }
            self.server.receive(now, frame, out);
        }
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        self.server.tick(now, out);
        self.step(now, out);
    }

    fn deadline(&self) -> Instant {
        let next = |c: &Connection| c.pending.first_key_value().map_or(Instant::NEVER, |((at, _), _)| *at);
        let pending = self.connections.iter().map(next).min().unwrap_or(Instant::NEVER);
        self.server.deadline().min(pending).min(self.engine.deadline())
    }
}
