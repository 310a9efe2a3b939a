//! UDP (RFC 768): sockets, who a datagram is for, and sending. Receive queues serve sockets that are polled; what goes
//! to a handler or a client is handed up by reference.

#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

pub mod lane;

use crate::FAST;
use crate::stack::Stack;
use crate::stack::egress::{Fill, Hop, L4Header, L4Sum, Packet as Outgoing, TxError, pseudo_header};
use crate::stack::icmp::IcmpError;
use crate::stack::ingress::Packet;
use crate::stack::interface::NicId;
use crate::stack::way::{Flow, Load, Way};
use crate::storage::checksum::Sum;
use crate::storage::error::{Error, Result};
use crate::storage::host::{Endpoint, Host, Span, Token};
use crate::storage::ring::PacketRing;
use crate::storage::slots::{Key, Slot, Slots};
use crate::wire::ethernet::Address;
use crate::wire::ipv4::Protocol;
use crate::wire::udp::{self, Datagram};
use core::net::Ipv4Addr;

/// Bytes of [`Meta`] in a receive queue.
pub const META_LEN: usize = 12;

/// Who takes what a socket receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The host's handler, called for each datagram.
    Handler,
    /// The host, which polls the socket's queue.
    Queue,
    /// The operation in this slot.
    Client(u8),
}

/// What travels with a received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Who sent it.
    pub src: Endpoint,
    /// The address it was sent to.
    pub dst: Ipv4Addr,
    /// Interface it came in on.
    pub nic: NicId,
}

impl Meta {
    fn to_bytes(self) -> [u8; META_LEN] {
        let [a, b, c, d] = self.src.addr.octets();
        let [e, f, g, h] = self.dst.octets();
        let [p, q] = self.src.port.to_be_bytes();
        [a, b, c, d, e, f, g, h, p, q, self.nic.0, 0]
    }

    fn from_bytes([a, b, c, d, e, f, g, h, p, q, nic, _]: [u8; META_LEN]) -> Meta {
        Meta {
            src: Endpoint { addr: Ipv4Addr::new(a, b, c, d), port: u16::from_be_bytes([p, q]) },
            dst: Ipv4Addr::new(e, f, g, h),
            nic: NicId(nic),
        }
    }
}

/// A socket.
#[derive(Clone, Copy, Debug)]
pub struct Socket {
    /// Port and, where not unspecified, the only address it receives on and sends from.
    pub local: Endpoint,
    /// The only peer, if connected.
    pub peer: Option<Endpoint>,
    /// The only interface, if restricted to one.
    pub nic: Option<NicId>,
    /// Who takes what comes.
    pub owner: Owner,
    /// The queue it has.
    pub queue: Option<u16>,
    /// Time to live of what it sends.
    pub ttl: u8,
    /// Type of service of what it sends.
    pub tos: u8,
    /// Don't-fragment flag of what it sends.
    pub dont_fragment: bool,
}

/// Whom a datagram is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This socket, and who takes what it receives.
    Socket(Key, Owner),
    /// The port is open, but not for this peer.
    WrongPeer,
    /// Nobody.
    None,
}

/// A datagram taken from a queue.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Where it came from.
    pub meta: Meta,
    /// Its whole length.
    pub len: usize,
    /// Bytes copied; less than `len` when the buffer was too small.
    pub copied: usize,
}

/// The sockets.
#[derive(Debug)]
pub struct Udp<'a> {
    sockets: Slots<'a, Socket>,
    queues: &'a mut [PacketRing<'a, META_LEN>],
    /// How often sockets may have changed; wraps.
    changes: u32,
    sent: Option<Sent>,
}

/// Where the last datagram went: the next is likely to go there too.
#[derive(Debug)]
struct Sent {
    socket: Key,
    dst: Endpoint,
    /// Found when a second one goes there, and what [`Udp::changes`] was.
    way: Option<(Way, u32)>,
}

impl<'a> Udp<'a> {
    /// Sockets in `slots`, and the queues of those that are polled.
    pub fn new(slots: &'a mut [Slot<Socket>], queues: &'a mut [PacketRing<'a, META_LEN>]) -> Self {
        Udp { sockets: Slots::new(slots), queues, changes: 0, sent: None }
    }

    /// A number that is another whenever sockets, or anything else that decides whom a datagram is for, have changed.
    #[inline]
    pub fn version<H: Host>(&self, stack: &Stack<'_, H>) -> u32 {
        self.changes.wrapping_add(stack.version())
    }

    fn changed(&mut self) {
        self.changes = self.changes.wrapping_add(1);
    }

    /// Opens a socket on a free ephemeral port.
    ///
    /// # Errors
    /// [`Error::NoSlot`]: all sockets, or all queues, are in use.
    pub fn open<H: Host>(&mut self, stack: &mut Stack<'_, H>, owner: Owner) -> Result<Key> {
        self.changed();
        let queue = match owner {
            Owner::Queue => Some(self.free_queue().ok_or(Error::NoSlot)?),
            _ => None,
        };
        // More ports than sockets: one of the first few is free.
        let mut port = stack.ports.next(&mut stack.host);
        for _ in 0..=self.sockets.capacity() {
            if !self.is_bound(port) {
                break;
            }
            port = stack.ports.next(&mut stack.host);
        }
        let socket = Socket {
            local: Endpoint { addr: Ipv4Addr::UNSPECIFIED, port },
            peer: None,
            nic: None,
            owner,
            queue,
            ttl: 64,
            tos: 0,
            dont_fragment: false,
        };
        let key = self.sockets.insert(socket).map_err(|_| Error::NoSlot)?;
        if let Some(queue) = self.queue_of(key) {
            queue.clear();
        }
        Ok(key)
    }

    fn free_queue(&self) -> Option<u16> {
        let free = |n: &u16| self.sockets.iter().all(|(_, s)| s.queue != Some(*n));
        (0u16..).take(self.queues.len()).find(free)
    }

    fn queue_of(&mut self, key: Key) -> Option<&mut PacketRing<'a, META_LEN>> {
        let n = self.sockets.get(key)?.queue?;
        self.queues.get_mut(usize::from(n))
    }

    /// Whether a socket has this port.
    pub fn is_bound(&self, port: u16) -> bool {
        self.sockets.iter().any(|(_, s)| s.local.port == port)
    }

    /// The operation that has a socket on `port`.
    pub fn client_at(&self, port: u16) -> Option<u8> {
        self.sockets.iter().find_map(|(_, s)| match s.owner {
            Owner::Client(op) if s.local.port == port => Some(op),
            _ => None,
        })
    }

    /// The socket of operation `op` on `port`.
    pub fn of_client(&self, op: u8, port: u16) -> Option<Key> {
        let theirs = |s: &Socket| s.owner == Owner::Client(op) && s.local.port == port;
        self.sockets.iter().find(|(_, s)| theirs(s)).map(|(key, _)| key)
    }

    /// Closes a socket and drops its queue.
    pub fn close(&mut self, key: Key) -> bool {
        self.changed();
        self.sockets.remove(key).is_some()
    }

    /// Closes every socket of an operation.
    pub fn close_client(&mut self, op: u8) {
        self.changed();
        for index in 0..self.sockets.capacity() {
            let owned = self.sockets.at(index).filter(|(_, s)| s.owner == Owner::Client(op)).map(|(key, _)| key);
            if let Some(key) = owned {
                self.sockets.remove(key);
            }
        }
    }

    /// Gives a socket another local endpoint and restricts it to `nic`; port 0 leaves the port as it is.
    ///
    /// # Errors
    /// [`Error::BadHandle`]; [`Error::InUse`]: another socket has that port on that interface.
    pub fn bind(&mut self, key: Key, nic: Option<NicId>, local: Endpoint) -> Result<()> {
        self.changed();
        let kept = self.get(key).ok_or(Error::BadHandle)?.local.port;
        let port = if local.port == 0 { kept } else { local.port };
        // One port on two interfaces is two ports: DHCP clients of several NICs have the same.
        let meets = |s: &Socket| nic.is_none() || s.nic.is_none() || s.nic == nic;
        if self.sockets.iter().any(|(k, s)| k != key && s.local.port == port && meets(s)) {
            return Err(Error::InUse);
        }
        let socket = self.sockets.get_mut(key).ok_or(Error::BadHandle)?;
        socket.nic = nic;
        socket.local.addr = local.addr;
        if local.port != 0 {
            socket.local.port = local.port;
        }
        Ok(())
    }

    /// A socket.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    pub fn get(&self, key: Key) -> Option<&Socket> {
        self.sockets.get(key)
    }

    /// A socket, to change it.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut Socket> {
        self.changed();
        self.sockets.get_mut(key)
    }

    /// Finds the socket for a datagram: one connected to its sender before one that takes all.
    #[inline]
    pub fn target(&self, packet: &Packet<'_>, datagram: &Datagram<'_>) -> Target {
        let mut best = Target::None;
        for (key, s) in self.sockets.iter() {
            let here = s.local.port == datagram.destination_port()
                && (s.local.addr.is_unspecified()
                    || s.local.addr == packet.dst
                    || packet.cast != crate::stack::interface::Cast::Unicast)
                && s.nic.is_none_or(|n| n == packet.nic);
            if !here {
                continue;
            }
            match s.peer {
                Some(p) if p.addr == packet.src && p.port == datagram.source_port() => {
                    return Target::Socket(key, s.owner);
                }
                Some(_) if best == Target::None => best = Target::WrongPeer,
                Some(_) => {}
                None => best = Target::Socket(key, s.owner),
            }
        }
        best
    }

    /// The socket whose datagram an ICMP error is about: local and remote port and both addresses must fit
    /// (RFC 5927 §4, RFC 1122 §4.1.3.3).
    pub fn blamed(&self, error: &IcmpError) -> Option<Key> {
        if error.protocol != Protocol::UDP {
            return None;
        }
        let about = |s: &Socket| {
            s.local.port == error.src_port
                && (s.local.addr.is_unspecified() || s.local.addr == error.src)
                && s.peer.is_none_or(|p| p.addr == error.dst && p.port == error.dst_port)
        };
        self.sockets.iter().find(|(_, s)| about(s)).map(|(k, _)| k)
    }

    /// Sends a datagram: to `dst`, else to the connected peer.
    ///
    /// # Errors
    /// [`TxError::Invalid`] for a socket that is closed or has no destination; else as [`Stack::send`].
    #[inline]
    pub fn send<H: Host>(
        &mut self,
        stack: &mut Stack<'_, H>,
        key: Key,
        dst: Option<Endpoint>,
        body: &[Span<'_, H::Memory>],
        queue: bool,
    ) -> core::result::Result<(), TxError> {
        if FAST && let Some(sent) = self.send_known(stack, key, dst, body, queue) {
            return sent;
        }
        self.send_anew(stack, key, dst, body, queue)
    }

    /// A socket, and where it sends to: `dst`, else its peer.
    #[inline]
    fn addressed(&self, key: Key, dst: Option<Endpoint>) -> Option<(&Socket, Endpoint)> {
        let socket = self.sockets.get(key)?;
        Some((socket, dst.or(socket.peer)?))
    }

    /// Sends a datagram the way of the last, if it is one of the same flow; `None`: it is to go the long way.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    fn send_known<H: Host>(
        &mut self,
        stack: &mut Stack<'_, H>,
        key: Key,
        dst: Option<Endpoint>,
        body: &[Span<'_, H::Memory>],
        queue: bool,
    ) -> Option<core::result::Result<(), TxError>> {
        let (socket, dst) = self.addressed(key, dst)?;
        if let Some(Sent { socket: last, dst: to, way: Some((way, changes)) }) = &self.sent
            && (*last, *to, *changes) == (key, dst, self.changes)
            && stack.is_valid(way)
        {
            let header = match header_of(socket, dst, body.iter().map(Span::len).fold(0, usize::wrapping_add)) {
                Ok(header) => header,
                Err(error) => return Some(Err(error)),
            };
            match stack.send_along(way, &header, L4Sum::Udp.at(), Load::Spans(body), Token(0)) {
                // Fragments and a queue are the long way's.
                Err(TxError::TooBig(_)) => {}
                Err(TxError::Busy) if queue => {}
                Err(TxError::Busy) => {
                    stack.blocked = true;
                    return Some(Err(TxError::Busy));
                }
                sent => return Some(sent),
            }
        }
        None
    }

    /// Sends a datagram the long way, and remembers the way where a second one goes.
    #[inline(never)]
    fn send_anew<H: Host>(
        &mut self,
        stack: &mut Stack<'_, H>,
        key: Key,
        dst: Option<Endpoint>,
        body: &[Span<'_, H::Memory>],
        queue: bool,
    ) -> core::result::Result<(), TxError> {
        let (socket, dst) = self.addressed(key, dst).ok_or(TxError::Invalid)?;
        send(stack, socket, dst, body, queue)?;
        if FAST {
            self.remember(stack, key, dst);
        }
        Ok(())
    }

    /// Finds the way of what was sent, where a second one goes.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn remember<H: Host>(&mut self, stack: &mut Stack<'_, H>, key: Key, dst: Endpoint) {
        let last = self.sent.take();
        let Some(socket) = self.sockets.get(key) else { return };
        if last.is_some_and(|last| (last.socket, last.dst) == (key, dst))
            && let Some(flow) = flow_of(stack, socket, dst)
            && let Ok((hop, mac)) = stack.find_hop(&flow)
        {
            return self.note_way(stack, (key, dst), &flow, &hop, mac);
        }
        self.sent = Some(Sent { socket: key, dst, way: None });
    }

    /// Apart, so that what asks for a neighbour does not lie under it.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    fn note_way<H: Host>(
        &mut self,
        stack: &Stack<'_, H>,
        (socket, dst): (Key, Endpoint),
        flow: &Flow,
        hop: &Hop,
        mac: Address,
    ) {
        let way = stack.way_over(flow, hop, mac).ok().map(|way| (way, self.changes));
        self.sent = Some(Sent { socket, dst, way });
    }

    /// Sends a datagram whose payload, `len` bytes, is written by `fill`: see [`Stack::send_filled`].
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_filled<H: Host>(
        &self,
        stack: &mut Stack<'_, H>,
        key: Key,
        dst: Endpoint,
        len: usize,
        fill: &mut Fill<'_>,
    ) -> core::result::Result<(), TxError> {
        let socket = self.get(key).ok_or(TxError::Invalid)?;
        send_filled(stack, socket, dst, len, fill)
    }

    /// Puts a datagram into its socket's queue; `false` when there is no room. A client's socket gets a free queue when it
    /// first needs one.
    pub fn enqueue(&mut self, key: Key, meta: Meta, payload: &[u8]) -> bool {
        let free = self.free_queue();
        if let Some(socket) = self.sockets.get_mut(key)
            && socket.queue.is_none()
            && matches!(socket.owner, Owner::Client(_))
        {
            socket.queue = free;
            if let Some(queue) = self.queue_of(key) {
                queue.clear();
            }
        }
        match self.queue_of(key) {
            Some(queue) => queue.push(&meta.to_bytes(), payload),
            None => false,
        }
    }

    /// Longest datagram that a socket's queue could take now, in bytes of payload; `None` without a queue.
    pub fn queue_room(&self, key: Key) -> Option<usize> {
        match self.get(key)?.queue {
            Some(n) => self.queues.get(usize::from(n))?.room(),
            None => self.queues.get(usize::from(self.free_queue()?))?.empty_room(),
        }
    }

    /// The oldest datagram of a socket's queue, as two spans.
    pub fn front(&self, key: Key) -> Option<(&[u8], &[u8])> {
        self.queues.get(usize::from(self.get(key)?.queue?))?.payload()
    }

    /// Drops the oldest datagram of a socket's queue.
    pub fn drop_front(&mut self, key: Key) {
        if let Some(queue) = self.queue_of(key) {
            queue.drop_first();
        }
    }

    /// Takes the oldest datagram from a socket's queue.
    ///
    /// # Errors
    /// [`Error::BadHandle`]; [`Error::Again`]: the queue is empty.
    pub fn dequeue(&mut self, key: Key, buffer: &mut [u8]) -> Result<Received> {
        self.sockets.get(key).ok_or(Error::BadHandle)?;
        let queue = self.queue_of(key).ok_or(Error::Again)?;
        let popped = queue.pop(buffer).ok_or(Error::Again)?;
        Ok(Received { meta: Meta::from_bytes(popped.meta), len: popped.len, copied: popped.copied })
    }
}

/// Sends a datagram as `socket` would, which need not be in any table.
///
/// # Errors
/// As [`Stack::send`].
#[inline]
pub fn send<H: Host>(
    stack: &mut Stack<'_, H>,
    socket: &Socket,
    dst: Endpoint,
    body: &[Span<'_, H::Memory>],
    queue: bool,
) -> core::result::Result<(), TxError> {
    let header = header_of(socket, dst, body.iter().map(Span::len).sum())?;
    stack.send(&packet_of(socket, dst, &header, body, queue))
}

/// As [`send`], of a payload of `len` bytes that is written by `fill`: see [`Stack::send_filled`].
///
/// # Errors
/// As [`Stack::send`].
pub fn send_filled<H: Host>(
    stack: &mut Stack<'_, H>,
    socket: &Socket,
    dst: Endpoint,
    len: usize,
    fill: &mut Fill<'_>,
) -> core::result::Result<(), TxError> {
    let header = header_of(socket, dst, len)?;
    stack.send_filled(&packet_of(socket, dst, &header, &[], false), len, fill)
}

/// The flow of what `socket` sends to `dst`; `None` where there is no route.
fn flow_of<H: Host>(stack: &Stack<'_, H>, socket: &Socket, dst: Endpoint) -> Option<Flow> {
    let hop = stack.route(socket.local.addr, dst.addr, socket.nic).ok()?;
    Some(Flow {
        src: socket.local.addr,
        dst: dst.addr,
        nic: hop.nic,
        protocol: Protocol::UDP,
        ttl: socket.ttl,
        tos: socket.tos,
        dont_fragment: socket.dont_fragment,
    })
}

/// The header of a datagram with a payload of `len` bytes, its checksum zero.
#[inline]
fn header_of(socket: &Socket, dst: Endpoint, len: usize) -> core::result::Result<[u8; udp::HEADER_LEN], TxError> {
    let payload_len = u16::try_from(len).map_err(|_| TxError::TooBig(usize::from(u16::MAX)))?;
    let header = udp::Repr { source_port: socket.local.port, destination_port: dst.port, payload_len };
    Ok(header.emit([0; 2]))
}

#[inline]
fn packet_of<'p, M>(
    socket: &Socket,
    dst: Endpoint,
    header: &'p [u8; udp::HEADER_LEN],
    body: &'p [Span<'p, M>],
    queue: bool,
) -> Outgoing<'p, M> {
    Outgoing {
        src: socket.local.addr,
        dst: dst.addr,
        nic: socket.nic,
        protocol: Protocol::UDP,
        ttl: socket.ttl,
        tos: socket.tos,
        dont_fragment: socket.dont_fragment,
        header: L4Header::new(header, L4Sum::Udp),
        body,
        token: Token(0),
        queue,
    }
}

/// The sum of what the checksum of `datagram` covers ahead of its payload.
#[inline]
pub fn sum_before_payload(packet: &Packet<'_>, datagram: &Datagram<'_>) -> Sum {
    pseudo_header(packet.src, packet.dst, Protocol::UDP, usize::from(datagram.len())) + Sum::of_array(datagram.head())
}

/// Whether the checksum of `datagram` holds, or need not be looked at (RFC 768: zero means none).
#[inline]
pub fn verify(packet: &Packet<'_>, datagram: &Datagram<'_>) -> bool {
    packet.sum_ok
        || !datagram.has_checksum()
        || (sum_before_payload(packet, datagram) + Sum::of(datagram.payload())).holds()
}
