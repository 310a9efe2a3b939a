//! The engine: stack, sockets and operations together. A frame goes in, what is to be done with it comes back from the
//! stack as a disposition, and here it is led to a socket, an operation or the host. One call does one thing and calls
//! nothing of the host's but leaf callbacks; what the host is to be told is returned or noted.

#[cfg(feature = "dhcp")]
use super::dhcp;
use super::dns::{Cached, Resolver};
use super::expectations::Expectations;
pub use super::found::{Found, Outcome, Received};
use super::operation::{Cx, Datagram as ClientDatagram, Operation};
use super::ops::{Client, Op, Ops, Surroundings, each_client};
use crate::FAST;
use crate::stack::icmp::{EchoReply, ErrorKind, IcmpError};
use crate::stack::ingress::{Action, Hit, Ingress, Packet};
use crate::stack::interface::NicId;
use crate::stack::landing::{self, Flow, HEAD, KEPT_HEADER, Landed, Place, StagedDatagram, Verdict};
use crate::stack::stats::Counter;
use crate::stack::trail::Trail;
use crate::stack::{Stack, StackMemory};
use crate::storage::error::Result;
use crate::storage::host::{Endpoint, Host, RxFlags, Token};
use crate::storage::ring::PacketRing;
use crate::storage::slots::{Key, Slot};
use crate::storage::time::Instant;
#[cfg(feature = "tcp")]
use crate::tcp::{Tcp, TcpMemory};
use crate::udp::lane::{Arrived, Lane};
use crate::udp::{META_LEN, Meta, Owner, Socket, Target, Udp, verify};
use crate::wire::ethernet::Address;
use crate::wire::icmpv4::Unreachable;
use crate::wire::ipv4::Protocol;
use crate::wire::udp::Datagram;

/// The memory an engine works in.
pub struct EngineMemory<'a, H: Host> {
    /// The stack's.
    pub stack: StackMemory<'a, H>,
    /// UDP sockets.
    pub sockets: &'a mut [Slot<Socket>],
    /// Receive queues, one for each socket that can have one.
    pub queues: &'a mut [PacketRing<'a, META_LEN>],
    /// Operations.
    pub ops: &'a mut [Slot<Op<H>>],
    /// DHCP clients, one for each NIC.
    #[cfg(feature = "dhcp")]
    pub dhcp: &'a mut [dhcp::Client],
    /// Names remembered: none yet, [`Cached::FREE`].
    pub names: &'a mut [Cached],
    /// TCP's.
    #[cfg(feature = "tcp")]
    pub tcp: TcpMemory<'a, H>,
    /// What HTTP operations work in, one for each until it is closed.
    #[cfg(feature = "http")]
    pub http: &'a mut [super::http::Job],
    /// What NFS operations work in, one for each that runs.
    #[cfg(feature = "nfs")]
    pub nfs: &'a mut [super::nfs::Job],
}

/// What operations share: what outlives each of them.
#[derive(Debug)]
pub struct Shared<'a> {
    /// DHCP clients.
    #[cfg(feature = "dhcp")]
    pub dhcp: dhcp::Clients<'a>,
    /// Name servers and names.
    pub resolver: Resolver<'a>,
    /// HTTP's.
    #[cfg(feature = "http")]
    pub http: super::http::Shared<'a>,
    /// NFS's.
    #[cfg(feature = "nfs")]
    pub nfs: super::nfs::Shared<'a>,
    /// TFTP's.
    #[cfg(feature = "tftp")]
    pub tftp: super::tftp::Shared,
}

/// What operations are called with.
macro_rules! around {
    ($engine:expr) => {
        Surroundings {
            stack: &mut $engine.stack,
            udp: &mut $engine.udp,
            #[cfg(feature = "tcp")]
            tcp: &mut $engine.tcp,
            shared: &mut $engine.shared,
        }
    };
}

/// Stack, sockets and operations.
pub struct Engine<'a, H: Host> {
    /// The stack.
    pub stack: Stack<'a, H>,
    /// The sockets.
    pub udp: Udp<'a>,
    /// The connections.
    #[cfg(feature = "tcp")]
    pub tcp: Tcp<'a, H>,
    /// The operations.
    pub ops: Ops<'a, H>,
    /// What operations share.
    pub shared: Shared<'a>,
    /// Someone was told something by a frame, and is to act in [`Self::follow`].
    pub(super) marked: bool,
    /// The flow of the last datagram: the next is likely to be one of it.
    lane: Option<Lane>,
    /// The datagram of the last fragment.
    trail: Option<Trail>,
}

impl<'a, H: Host> Engine<'a, H> {
    /// An engine without interfaces.
    pub fn new(host: H, memory: EngineMemory<'a, H>) -> Self {
        #[cfg_attr(not(feature = "tcp"), expect(unused_mut))]
        let mut stack = Stack::new(host, memory.stack);
        Engine {
            udp: Udp::new(memory.sockets, memory.queues),
            #[cfg(feature = "tcp")]
            tcp: Tcp::new(&mut stack.host, memory.tcp),
            stack,
            ops: Ops::new(memory.ops),
            marked: false,
            lane: None,
            trail: None,
            shared: Shared {
                #[cfg(feature = "dhcp")]
                dhcp: dhcp::Clients::new(memory.dhcp),
                resolver: Resolver::new(memory.names),
                #[cfg(feature = "http")]
                http: super::http::Shared::new(memory.http),
                #[cfg(feature = "nfs")]
                nfs: super::nfs::Shared::new(memory.nfs),
                #[cfg(feature = "tftp")]
                tftp: super::tftp::Shared::default(),
            },
        }
    }

    /// Sets the time of this pass; it never goes back.
    pub fn set_now(&mut self, now: Instant) {
        self.stack.now = self.stack.now.max(now);
    }

    /// The earliest time at which [`Self::tick`] has something to do.
    pub fn deadline(&self) -> Instant {
        if self.stack.wake || self.stack.blocked || self.marked {
            return Instant::ZERO;
        }
        self.stack.deadline().min(self.ops.deadline()).min(self.dhcp_deadline()).min(self.tcp_deadline())
    }

    /// Does what is due at this time. To be called once a pass, after the frames (design §3: a pass drains frames
    /// before it fires timers).
    #[inline]
    pub fn tick(&mut self) {
        // Most passes of a transfer have nothing due. A lease looks after its interface in each.
        if self.stack.now >= self.deadline() {
            self.fire();
        } else if self.watches_lease() {
            self.tick_dhcp(false);
            self.follow();
        }
    }

    #[cfg(feature = "tcp")]
    #[inline]
    fn tcp_deadline(&self) -> Instant {
        #[cfg(feature = "http")]
        return self.tcp.deadline().min(self.shared.http.deadline());
        #[cfg(not(feature = "http"))]
        self.tcp.deadline()
    }

    #[cfg(not(feature = "tcp"))]
    fn tcp_deadline(&self) -> Instant {
        Instant::NEVER
    }

    /// An asynchronous NIC is done with the frame of `token`. `false`: no such token is out with it.
    pub fn tx_done(&mut self, nic: NicId, token: Token) -> bool {
        match self.stack.tx_done(nic, token) {
            None => false,
            Some(own) => {
                self.release(own);
                true
            }
        }
    }

    /// A NIC holds no frame any more: all its tokens are done.
    pub fn reset_interface(&mut self, nic: NicId) {
        #[cfg(feature = "tcp")]
        {
            let Engine { stack, tcp, .. } = self;
            stack.reset_interface(nic, |own| {
                tcp.tx_done(own);
            });
        }
        #[cfg(not(feature = "tcp"))]
        self.stack.reset_interface(nic, |_| ());
    }

    /// What happened on a connection or listener since the last call; each call tells of another until there is none.
    /// Operations that wait for it are polled before.
    #[cfg(feature = "tcp")]
    pub fn next_tcp_event(&mut self) -> Option<crate::tcp::Event> {
        let event = self.tcp.next_event()?;
        if let crate::tcp::Event::Connection(key, _) = event {
            for op in 0..self.ops.used() {
                let waits =
                    self.ops.at(op).is_some_and(|o| o.is_running() && o.client.connection(&self.shared) == Some(key));
                if waits {
                    self.poll(op);
                }
            }
        }
        Some(event)
    }

    /// Whether there may be something to tell the host: of operations, connections or leases.
    #[inline]
    pub fn has_news(&self) -> bool {
        #[cfg(feature = "tcp")]
        if self.tcp.has_events() {
            return true;
        }
        #[cfg(feature = "dhcp")]
        if self.shared.dhcp.has_lost() {
            return true;
        }
        self.ops.has_news()
    }

    /// Gives what a frame carried back to whoever lent it.
    fn release(&mut self, own: Token) {
        #[cfg(feature = "tcp")]
        self.tcp.tx_done(own);
        #[cfg(not(feature = "tcp"))]
        let _ = own;
    }

    /// Out of what may be due, does what is: code and state of the others is not touched, and on a small machine need not be
    /// fetched. Out of line, as what follows from a frame is: neither is to lie under the other.
    #[inline(never)]
    fn fire(&mut self) {
        // What an upcall of the host's has led to.
        self.follow();
        let now = self.stack.now;
        if self.stack.wake || self.stack.blocked || now >= self.stack.deadline() {
            self.stack.tick();
        }
        let wake = core::mem::take(&mut self.stack.wake);
        if wake || now >= self.dhcp_deadline() || self.watches_lease() {
            self.tick_dhcp(wake);
            self.follow();
        }
        #[cfg(feature = "http")]
        self.shared.http.tick(&mut self.tcp, &mut self.stack);
        #[cfg(feature = "tcp")]
        self.tcp.poll(&mut self.stack, wake);
        if wake || now >= self.ops.deadline() {
            let mut around = around!(self);
            self.ops.tick(&mut around, wake);
        }
        // What the NIC had no room for is tried again in the next pass.
        self.stack.wake |= core::mem::take(&mut self.stack.blocked);
    }

    /// Takes a received frame, and does what follows from it.
    #[inline]
    pub fn receive<'f>(&mut self, nic: NicId, frame: &'f [u8], flags: RxFlags) -> Outcome<'f> {
        let mut found = Found::Nothing;
        let (mut received, mut hit) = (Received::Nothing, None);
        if self.take(nic, frame, flags, &mut found) {
            self.lead(nic, frame, flags, &mut found);
            match found {
                Found::Told(told) => received = told,
                Found::Hooked(hooked) => hit = Some(hooked),
                _ => {}
            }
        }
        self.follow();
        Outcome { received, hit }
    }

    /// Lets those act who were told something by a frame. Receiving marks and this sends, so that on the machine's stack the
    /// one does not lie under the other; to be called after each frame, before the next.
    #[inline]
    pub fn follow(&mut self) {
        if self.marked {
            self.act();
        }
    }

    /// Whether there is something to do in [`Self::follow`].
    #[inline]
    pub fn is_marked(&self) -> bool {
        self.marked
    }

    #[inline(never)]
    fn act(&mut self) {
        self.follow_dhcp();
        self.marked = false;
        let mut around = around!(self);
        self.ops.follow(&mut around);
    }

    /// Takes a received frame: all that is done with most. `true`: there is more to do, which is in `found`; then
    /// [`Self::lead`] is to be called.
    #[inline]
    pub fn take<'f>(&mut self, nic: NicId, frame: &'f [u8], flags: RxFlags, found: &mut Found<'f>) -> bool {
        if FAST
            && let Some(trail) = &self.trail
            && let Some(piece) = trail.take(self.trail_version(), nic, frame, flags)
        {
            self.stack.stats.count(Counter::RxFrames);
            self.stack.stats.count(Counter::RxFragments);
            let verdict = self.stack.landing.more(&piece);
            if matches!(verdict, Verdict::Kept) {
                return false;
            }
            self.receive_verdict(verdict, found);
            return true;
        }
        if FAST
            && let Some(lane) = &self.lane
            && let Some(arrived) = lane.take(self.udp.version(&self.stack), nic, frame, flags)
        {
            self.stack.stats.count(Counter::RxFrames);
            return self.receive_arrived(&arrived, found);
        }
        #[cfg(feature = "tcp")]
        if self.tcp.take(&mut self.stack, nic, frame, flags) {
            return false;
        }
        *found = Found::New;
        true
    }

    /// Does with a frame what [`Self::take`] has left to do: what is for the host, and nothing else, is in `found` then.
    #[inline]
    pub fn lead<'f>(&mut self, nic: NicId, frame: &'f [u8], flags: RxFlags, found: &mut Found<'f>) {
        if let Found::New = found {
            self.receive_any(nic, frame, flags, found);
        }
        match found {
            Found::Arrived(_) => self.receive_long(found),
            #[cfg(feature = "dhcp")]
            Found::Dhcp(arrived) => {
                self.hear_dhcp(arrived);
                *found = Found::Nothing;
            }
            Found::Landed(index) => {
                self.receive_landed(*index);
                *found = Found::Nothing;
            }
            Found::Staged(index) => {
                let index = *index;
                *found = Found::Nothing;
                self.receive_staged(index, found);
            }
            Found::Nothing | Found::Told(_) | Found::Hooked(_) | Found::New => {}
        }
    }

    #[inline]
    fn trail_version(&self) -> u32 {
        self.stack.version().wrapping_add(self.stack.landing.version())
    }

    /// Finds out what a frame is.
    #[inline(never)]
    fn receive_any<'f>(&mut self, nic: NicId, frame: &'f [u8], flags: RxFlags, found: &mut Found<'f>) {
        *found = Found::Nothing;
        match self.stack.receive(nic, frame, flags) {
            Ingress::Done => {}
            Ingress::Hooked(hit) => *found = Found::Hooked(hit),
            Ingress::Packet(packet) if packet.ip.is_fragment() => self.receive_fragment(&packet, found),
            Ingress::Packet(packet) => self.receive_whole(&packet, found),
        }
    }

    /// Leads a whole packet to its protocol. `found` is [`Found::Nothing`] before.
    #[inline]
    fn receive_whole<'f>(&mut self, packet: &Packet<'f>, found: &mut Found<'f>) {
        match packet.protocol {
            Protocol::UDP => self.receive_udp(packet, found),
            #[cfg(feature = "tcp")]
            Protocol::TCP => self.tcp.receive(&mut self.stack, packet),
            _ => {
                if let Some(hit) = self.receive_control(packet) {
                    *found = Found::Hooked(hit);
                }
            }
        }
    }

    // What is rare is out of line: its frame is not to lie under what a datagram leads to.
    #[inline(never)]
    fn receive_control(&mut self, packet: &Packet<'_>) -> Option<Hit> {
        match packet.protocol {
            Protocol::ICMP => match self.stack.receive_icmp(packet) {
                Action::Done => {}
                Action::EchoReply(reply) => self.receive_echo_reply(&reply),
                Action::Error(error) => self.receive_error(&error),
            },
            Protocol::IGMP => self.stack.receive_igmp(packet),
            _ => return self.stack.receive_other(packet),
        }
        self.stack.protocol_hit(packet)
    }

    #[inline(never)]
    fn receive_udp<'f>(&mut self, packet: &Packet<'f>, found: &mut Found<'f>) {
        let Ok(datagram) = Datagram::parse(packet.payload) else {
            return self.stack.stats.count(Counter::DropUdpMalformed);
        };
        #[cfg(feature = "dhcp")]
        if datagram.destination_port() == crate::wire::dhcp::CLIENT_PORT && self.is_dhcp_active(packet.nic) {
            let no_socket = Key { index: 0, generation: 0 };
            *found = Found::Dhcp(Arrived::of(packet, &datagram, no_socket, Owner::Queue));
            return;
        }
        match self.udp.target(packet, &datagram) {
            Target::Socket(socket, owner) => {
                *found = Found::Arrived(Arrived::of(packet, &datagram, socket, owner));
                // What a DHCP client takes while it is at work, no socket gets.
                if FAST
                    && let Found::Arrived(arrived) = found
                    && arrived.port != crate::wire::dhcp::CLIENT_PORT
                    && let Some(interface) = self.stack.interface(packet.nic)
                {
                    Lane::note(&mut self.lane, interface, packet.frame, arrived, self.udp.version(&self.stack));
                }
            }
            Target::WrongPeer => self.stack.stats.count(Counter::DropUdpPeer),
            Target::None => self.receive_unclaimed(packet, &datagram),
        }
    }

    /// A datagram that has found its socket, the first of its flow or an unusual one.
    #[inline]
    fn receive_long(&mut self, found: &mut Found<'_>) {
        let Found::Arrived(arrived) = found else { return };
        match arrived.owner {
            Owner::Client(op) => {
                self.receive_unusual(op, arrived);
                *found = Found::Nothing;
            }
            _ => self.receive_first_for_host(found),
        }
    }

    #[inline(never)]
    fn receive_first_for_host(&mut self, found: &mut Found<'_>) {
        let Found::Arrived(arrived) = *found else { return };
        *found = Found::Nothing;
        self.receive_for_host(&arrived, found);
    }

    /// A datagram that has found its socket by its lane. `true`: there is more to do, which is in `found`.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    fn receive_arrived<'f>(&mut self, arrived: &Arrived<'f>, found: &mut Found<'f>) -> bool {
        if let Owner::Client(op) = arrived.owner {
            let mut around = around!(self);
            if self.ops.usual(op, &mut around, arrived) {
                return false;
            }
            *found = Found::Arrived(*arrived);
            return true;
        }
        self.receive_for_host(arrived, found)
    }

    #[inline]
    fn receive_for_host<'f>(&mut self, arrived: &Arrived<'f>, found: &mut Found<'f>) -> bool {
        let Arrived { socket, meta, payload, .. } = *arrived;
        if !arrived.holds() {
            self.stack.stats.count(Counter::DropUdpChecksum);
            return false;
        }
        if arrived.owner == Owner::Handler {
            *found = Found::Told(Received::Datagram { socket, meta, payload });
            return true;
        }
        if !self.udp.enqueue(socket, meta, payload) {
            self.stack.stats.count(Counter::DropUdpQueue);
        }
        false
    }

    #[cfg(not(feature = "dhcp"))]
    fn dhcp_deadline(&self) -> Instant {
        Instant::NEVER
    }

    #[cfg(not(feature = "dhcp"))]
    fn watches_lease(&self) -> bool {
        false
    }

    #[cfg(not(feature = "dhcp"))]
    fn is_dhcp_active(&self, _: NicId) -> bool {
        false
    }

    #[cfg(not(feature = "dhcp"))]
    fn tick_dhcp(&mut self, _wake: bool) {}

    #[cfg(not(feature = "dhcp"))]
    fn follow_dhcp(&mut self) {}

    /// A datagram to a port without a socket.
    #[inline(never)]
    fn receive_unclaimed(&mut self, packet: &Packet<'_>, datagram: &Datagram<'_>) {
        if !verify(packet, datagram) {
            self.stack.stats.count(Counter::DropUdpChecksum);
            return;
        }
        #[cfg(feature = "tftp")]
        {
            let src = Endpoint { addr: packet.src, port: datagram.source_port() };
            let meta = Meta { src, dst: packet.dst, nic: packet.nic };
            let port = datagram.destination_port();
            if self.shared.tftp.finished.answer(&mut self.stack, &meta, port, datagram.payload()) {
                return;
            }
        }
        self.stack.stats.count(Counter::DropUdpNoSocket);
        self.stack.send_unreachable(packet, Unreachable::PORT);
    }

    /// A datagram for an operation, the long way: to its place if it has one, then to its client.
    #[inline(never)]
    fn receive_unusual(&mut self, op: u8, arrived: &Arrived<'_>) {
        let Arrived { socket, meta, payload, .. } = *arrived;
        let flow = Flow { src: meta.src.addr, src_port: meta.src.port, dst_port: arrived.port };
        let head = payload.get(..HEAD).unwrap_or(payload);
        let place: Place<H::Memory> = match self.ops.at(op) {
            Some(o) => o.client.place(&self.shared, &flow, head, payload.len()),
            None => Place::NotMine,
        };
        let landed: Option<Landed> = match place {
            Place::NotMine => {
                self.stack.stats.count(Counter::DropUdpPeer);
                return;
            }
            Place::Region(spot) => {
                if spot.len > 0 {
                    self.stack.landing.take_over(op, spot.at, None);
                }
                match landing::land(&spot, payload, arrived.before, arrived.verified) {
                    Some(landed) => Some(landed),
                    None => {
                        self.stack.stats.count(Counter::DropUdpChecksum);
                        return;
                    }
                }
            }
            Place::Stage if arrived.holds() => None,
            Place::Stage => {
                self.stack.stats.count(Counter::DropUdpChecksum);
                return;
            }
        };
        let given = ClientDatagram { socket, meta, payload, len: payload.len(), landed };
        self.tell(op, |client, cx| client.datagram(cx, &given));
    }

    /// A fragment: to its place, or to a staging buffer.
    #[inline(never)]
    fn receive_fragment(&mut self, packet: &Packet<'_>, found: &mut Found<'_>) {
        self.stack.stats.count(Counter::RxFragments);
        let dhcp = self.is_dhcp_active(packet.nic);
        let expectations = Expectations { ops: &self.ops, udp: &self.udp, shared: &self.shared, dhcp };
        let verdict = self.stack.landing.fragment(self.stack.now, packet, &expectations);
        for _ in 0..self.stack.landing.take_moves() {
            self.stack.stats.count(Counter::LandingMoved);
        }
        if FAST && matches!(verdict, Verdict::Kept) {
            let version = self.trail_version();
            if let Some(interface) = self.stack.interface(packet.nic) {
                Trail::note(&mut self.trail, interface, packet, self.stack.landing.last, version);
            }
        }
        self.receive_verdict(verdict, found);
    }

    /// Says what the fate of a fragment calls for.
    fn receive_verdict(&mut self, verdict: Verdict, found: &mut Found<'_>) {
        *found = match verdict {
            Verdict::Kept => Found::Nothing,
            Verdict::Dropped(counter) => {
                self.stack.stats.count(counter);
                Found::Nothing
            }
            Verdict::Landed(index) => Found::Landed(index),
            Verdict::Staged(index) => Found::Staged(index),
        };
    }

    #[inline(never)]
    fn receive_landed(&mut self, index: usize) {
        self.stack.stats.count(Counter::Reassembled);
        // The header is copied out, because the client may do anything to the stack.
        let mut header: heapless::Vec<u8, KEPT_HEADER> = heapless::Vec::new();
        let Some(whole) = self.stack.landing.landed(index) else { return };
        let (op, flow, landed, len) = (whole.claimant, whole.flow, whole.landed, whole.len);
        let src = Endpoint { addr: flow.src, port: flow.src_port };
        let meta = Meta { src, dst: whole.dst, nic: whole.nic };
        // As long as what was kept: it fits.
        let _ = header.extend_from_slice(whole.header);
        self.stack.landing.confirmed(index);
        let Some(socket) = self.udp.of_client(op, flow.dst_port) else { return };
        let given = ClientDatagram { socket, meta, payload: &header, len, landed: Some(landed) };
        self.tell(op, |client, cx| client.datagram(cx, &given));
    }

    /// What is in a staging buffer: to whom it is for. What the host is to be told stays until [`Self::release_staged`].
    #[inline(never)]
    fn receive_staged(&mut self, index: usize, told: &mut Found<'_>) {
        self.stack.stats.count(Counter::Reassembled);
        let own_mac = self.stack.landing.nic_of(index).and_then(|nic| self.stack.interface(nic)).map(|i| i.mac);
        let staged = self.stack.landing.take_staged(index, own_mac.unwrap_or(Address::ZERO));
        let Some(staged) = staged else { return };
        let mut found = Found::Nothing;
        self.receive_reassembled(&staged, &mut found);
        match &found {
            Found::Arrived(_) => self.receive_long(&mut found),
            #[cfg(feature = "dhcp")]
            Found::Dhcp(arrived) => self.hear_dhcp(arrived),
            _ => {}
        }
        let mut pinned = false;
        if let Found::Told(Received::Datagram { socket, meta, .. }) = found {
            *told = Found::Told(Received::Staged { socket, meta, index });
            pinned = true;
        }
        self.stack.landing.return_staged(staged, pinned);
    }

    #[inline(never)]
    fn receive_reassembled<'f>(&mut self, staged: &'f StagedDatagram<'_>, found: &mut Found<'f>) {
        let flags = if staged.sum_ok { RxFlags::L4_SUM_OK } else { RxFlags::empty() };
        if let Some(packet) = &self.stack.receive_reassembled(staged.nic, staged.frame(), flags) {
            self.receive_whole(packet, found);
        }
    }

    /// A reassembled datagram that a handler is to see: rebuilt Ethernet and IPv4 headers, UDP header, payload. It stays
    /// until [`Self::release_staged`].
    pub fn staged(&self, index: usize) -> Option<&[u8]> {
        self.stack.landing.pinned(index)
    }

    /// The handler has seen the datagram.
    pub fn release_staged(&mut self, index: usize) {
        self.stack.landing.release(index);
    }

    fn receive_echo_reply(&mut self, reply: &EchoReply<'_>) {
        for op in 0..self.ops.used() {
            if self.tell(op, |client, cx| each_client!(client, c => c.echo_reply(cx, reply))) == Some(true) {
                return;
            }
        }
        self.stack.stats.count(Counter::DropPingIgnored);
    }

    fn receive_error(&mut self, error: &IcmpError) {
        #[cfg(feature = "tcp")]
        if error.protocol == Protocol::TCP && self.tcp.icmp_error(&mut self.stack, error) {
            return;
        }
        if let ErrorKind::FragmentationNeeded(mtu) = error.kind
            && (self.udp.blamed(error).is_some() || error.protocol == Protocol::ICMP)
        {
            self.stack.path_mtu.learn(self.stack.now, error.dst, mtu, error.len);
        }
        if let Some(key) = self.udp.blamed(error) {
            if let Some(Owner::Client(op)) = self.udp.get(key).map(|s| s.owner) {
                self.tell(op, |client, cx| client.icmp_error(cx, error));
            }
            return;
        }
        if error.protocol == Protocol::ICMP {
            for op in 0..self.ops.used() {
                self.tell(op, |client, cx| client.icmp_error(cx, error));
            }
            return;
        }
        self.stack.stats.count(Counter::DropIcmpIgnored);
    }

    /// Polls an operation.
    pub(super) fn poll(&mut self, op: u8) {
        let mut around = around!(self);
        self.ops.poll(op, &mut around);
    }

    /// Calls `handler` on an operation, which is polled in [`Self::follow`].
    pub(super) fn tell<R>(
        &mut self,
        op: u8,
        handler: impl FnOnce(&mut Client<H>, &mut Cx<'_, 'a, H>) -> R,
    ) -> Option<R> {
        self.marked = true;
        let mut around = around!(self);
        self.ops.tell(op, &mut around, handler)
    }

    #[cfg(any(feature = "file", feature = "nfs", feature = "http"))]
    fn call<R>(&mut self, op: u8, handler: impl FnOnce(&mut Client<H>, &mut Cx<'_, 'a, H>) -> R) -> Option<R> {
        let mut around = around!(self);
        self.ops.call(op, &mut around, handler)
    }

    /// Starts an operation and lets it send its first frame at once.
    ///
    /// # Errors
    /// [`crate::storage::error::Error::NoSlot`].
    pub fn start(&mut self, client: Client<H>) -> Result<Key> {
        let key = self.ops.start(client)?;
        self.poll(key.index as u8);
        self.follow_dhcp();
        Ok(key)
    }

    /// Calls `work` on a file that is open and lets it do what follows.
    ///
    /// # Errors
    /// [`crate::storage::error::Error::BadHandle`]: no such operation, or none of this kind; the error the file has
    /// ended with.
    #[cfg(any(feature = "file", feature = "nfs", feature = "http"))]
    pub fn file<R>(&mut self, key: Key, work: impl FnOnce(&mut super::reader::Reader<'_, H>) -> R) -> Result<R> {
        use crate::storage::error::Error;
        let op = self.ops.get_mut(key).ok_or(Error::BadHandle)?;
        op.client.reader().ok_or(Error::BadHandle)?;
        if let super::operation::Step::Done(result) = op.step {
            return Err(result.err().unwrap_or(Error::BadHandle));
        }
        let result = self.call(key.index as u8, |client, _| client.reader().map(|mut file| work(&mut file)));
        result.flatten().ok_or(Error::BadHandle)
    }

    /// Ends the connections that wait for HTTP operations.
    #[cfg(feature = "http")]
    pub fn end_waiting(&mut self) {
        self.shared.http.make_room(&mut self.tcp, &mut self.stack);
    }

    /// Cancels an operation.
    ///
    /// # Errors
    /// As [`Ops::cancel`].
    pub fn cancel(&mut self, key: Key, why: crate::storage::error::Error) -> Result<()> {
        let mut around = around!(self);
        self.ops.cancel(key, why, &mut around)
    }

    /// Closes an operation.
    ///
    /// # Errors
    /// As [`Ops::close`].
    pub fn close(&mut self, key: Key) -> Result<()> {
        let mut around = around!(self);
        self.ops.close(key, &mut around)
    }
}
