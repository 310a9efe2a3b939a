//! What is left of a finished transfer. The operation is done when it sends its last acknowledgement; should that one be
//! lost, the server sends the last block again, and a small record answers it (RFC 1350 §6: dallying). A record takes no
//! socket and no operation, and is given up when a newer one needs the room.

use crate::stack::Stack;
use crate::stack::stats::Counter;
use crate::storage::host::{Endpoint, Host, Span};
use crate::storage::time::{Duration, Instant};
use crate::udp::{self, Meta, Owner, Socket};
use crate::wire::tftp::{Packet, emit_ack};
use core::net::Ipv4Addr;

/// How long a late block is answered: as long as servers repeat it.
const DALLY: Duration = Duration::from_secs(30);
/// How long the packets of a transfer given up may still come.
const STALE: Duration = Duration::from_secs(2);
/// Finished transfers remembered.
const RECORDS: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Record {
    port: u16,
    peer: Endpoint,
    last: u16,
    until: Instant,
}

/// The finished transfers.
#[derive(Debug, Default)]
pub struct Finished {
    records: [Option<Record>; RECORDS],
    /// The server's end of the last transfer that was given up.
    stale: Option<(Endpoint, Instant)>,
}

impl Finished {
    /// Remembers a transfer that came to its end with block `last`, in place of the one that would be forgotten first.
    pub fn note(&mut self, now: Instant, port: u16, peer: Endpoint, last: u16) {
        let record = Record { port, peer, last, until: now + DALLY };
        let until = |r: &Option<Record>| r.map_or(Instant::ZERO, |r| r.until);
        if let Some(slot) = self.records.iter_mut().min_by_key(|r| until(r)) {
            *slot = Some(record);
        }
    }

    /// Remembers the server's end of a transfer that was given up.
    pub fn note_stale(&mut self, now: Instant, peer: Endpoint) {
        self.stale = Some((peer, now + STALE));
    }

    /// Whether `peer` is the end of a transfer given up a moment ago.
    pub fn is_stale(&self, now: Instant, peer: Endpoint) -> bool {
        self.stale.is_some_and(|(end, until)| end == peer && now < until)
    }

    /// Whether `block` from `peer` to `port` is the last one of a transfer that ended a moment ago, once more. The next
    /// transfer can have both ports only where they are fixed.
    pub fn is_last(&self, now: Instant, port: u16, peer: Endpoint, block: u16) -> bool {
        let late = |r: &Record| r.port == port && r.peer == peer && r.last == block;
        self.records.iter().flatten().any(|r| late(r) && now + DALLY < r.until + STALE)
    }

    /// Answers a datagram to a port of ours without a socket if it belongs to a finished transfer; `false` if not.
    pub fn answer<H: Host>(&self, stack: &mut Stack<'_, H>, meta: &Meta, port: u16, payload: &[u8]) -> bool {
        let now = stack.now;
        let same = |r: &&Record| r.port == port && r.peer == meta.src && now < r.until;
        let Some(record) = self.records.iter().flatten().find(same) else { return false };
        match Packet::parse(payload) {
            Ok(Packet::Data { block, .. }) if block == record.last => {
                let socket = Socket {
                    local: Endpoint { addr: meta.dst, port },
                    peer: None,
                    nic: None,
                    owner: Owner::Client(0),
                    queue: None,
                    ttl: 64,
                    tos: 0,
                    dont_fragment: false,
                };
                // A block that gets no answer comes again.
                let _ = udp::send(stack, &socket, record.peer, &[Span::Bytes(&emit_ack(block))], false);
                stack.stats.count(Counter::TftpRetransmit);
            }
            _ => stack.stats.count(Counter::DropDally),
        }
        true
    }
}

/// Servers remembered.
const SERVERS: usize = 4;

/// What worked with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The server.
    pub addr: Ipv4Addr,
    /// Largest window that arrives whole, in blocks.
    pub window: u16,
    /// Largest block that arrives, in bytes.
    pub block: u16,
    /// These are what is asked for by default, not only the most.
    pub grown: bool,
}

/// What worked with the servers used last (design §5.1).
#[derive(Debug, Default)]
pub struct Memory {
    servers: heapless::Deque<Known, SERVERS>,
}

impl Memory {
    /// What worked with `addr`.
    pub fn get(&self, addr: Ipv4Addr) -> Option<Known> {
        self.servers.iter().find(|k| k.addr == addr).copied()
    }

    /// Remembers what worked, in place of what was remembered longest.
    pub fn note(&mut self, known: Known) {
        if let Some(old) = self.servers.iter_mut().find(|k| k.addr == known.addr) {
            *old = known;
            return;
        }
        if self.servers.is_full() {
            let _ = self.servers.pop_front();
        }
        // There is room now.
        let _ = self.servers.push_back(known);
    }
}

/// What TFTP keeps beside its operations.
#[derive(Debug, Default)]
pub struct Shared {
    /// Finished transfers.
    pub finished: Finished,
    /// Servers.
    pub servers: Memory,
}
