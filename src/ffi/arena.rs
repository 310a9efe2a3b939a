//! The stack's one block of memory: which part lies where, computed once for the size that is asked for and once for
//! carving. The head, with all that callbacks may look at while the stack works, comes first; then the core, which is
//! borrowed as a whole; then the places of every table and the frames.

use super::config::lace_config;
use super::guard::lace_stack;
use super::handle::{Entry, Kind, Table};
use super::host::{CHost, Clock, lace_host};
use super::nic::{CNic, NicState};
use super::op::Notify;
use super::region::Region;
use super::udp::Handler;
use crate::client::dns::Cached;
use crate::client::engine::{Engine, EngineMemory};
use crate::client::ops::Op;
use crate::stack::StackMemory;
use crate::stack::frames::{TxSlot, WaitSlot};
use crate::stack::hooks::Hook;
use crate::stack::interface::Interface;
use crate::stack::landing;
use crate::stack::neighbour;
use crate::stack::route::Route;
use crate::storage::ring::PacketRing;
use crate::storage::slots::Slot;
use crate::storage::time::Duration;
#[cfg(feature = "tcp")]
use crate::tcp::{Link, Listener, PageSlot, SlotMemory, TcpMemory, TcpSlot, scoreboard::Sent, seq::Pos};
use crate::udp::{META_LEN, Socket};

/// Alignment of the block in bytes.
pub const ALIGN: usize = 16;

/// What is borrowed while the stack works.
pub struct Core {
    /// Stack, sockets and operations.
    pub engine: Engine<'static, CHost>,
    /// The host's callbacks.
    pub host: lace_host,
    /// Its clock.
    pub clock: Clock,
    /// What the engine does not know of NICs.
    pub nics: &'static mut [NicState],
    /// Handlers of sockets.
    pub sockets: &'static mut [Handler<super::udp::lace_udp_handler>],
    /// Handlers of raw hooks.
    pub hooks: &'static mut [Handler<super::hook::lace_hook_handler>],
    /// Handlers of connections, then of listeners.
    #[cfg(feature = "tcp")]
    pub tcp: &'static mut [Handler<super::tcp::lace_tcp_handler>],
    /// How many of them are set.
    #[cfg(feature = "tcp")]
    pub tcp_handlers: u32,
    /// Whom operations tell.
    pub ops: &'static mut [Notify],
    /// The NIC whose turn it is.
    pub turn: usize,
    /// Passes in a row that ended with the budget spent.
    pub starved: u8,
}

/// Where everything lies: offsets from the start of the block.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    core: usize,
    nic_entries: usize,
    op_entries: usize,
    udp_entries: usize,
    hook_entries: usize,
    nics: usize,
    sockets: usize,
    hooks: usize,
    ops: usize,
    interfaces: usize,
    neighbours: usize,
    routes: usize,
    hook_slots: usize,
    tx: usize,
    wait: usize,
    socket_slots: usize,
    queues: usize,
    op_slots: usize,
    landing: usize,
    staging: usize,
    names: usize,
    #[cfg(feature = "dhcp")]
    dhcp: usize,
    #[cfg(feature = "tcp")]
    tcp: TcpLayout,
    #[cfg(feature = "http")]
    http: usize,
    #[cfg(feature = "nfs")]
    nfs: usize,
    staging_bytes: usize,
    queue_bytes: usize,
    frames: usize,
    stride: usize,
    /// Bytes of the whole; `usize::MAX` when that is too much to say.
    pub total: usize,
}

/// Bytes of one reassembly buffer, rounded so that the next is aligned.
const fn staging_len(c: &lace_config) -> usize {
    (c.reassembly_bytes as usize + landing::HEADROOM).next_multiple_of(8)
}

/// Hands out places one behind the other.
struct Ruler {
    at: usize,
}

impl Ruler {
    /// A place for `n` values of type `T`.
    const fn take<T>(&mut self, n: u16) -> usize {
        assert!(align_of::<T>() <= ALIGN, "no type needs more");
        self.bytes((n as usize).saturating_mul(size_of::<T>()), align_of::<T>())
    }

    const fn bytes(&mut self, len: usize, align: usize) -> usize {
        let start = self.at.saturating_add(align - 1) & !(align - 1);
        self.at = start.saturating_add(len);
        start
    }
}

impl Layout {
    /// The layout for these limits.
    pub const fn of(c: &lace_config) -> Layout {
        let mut r = Ruler { at: 0 };
        r.take::<lace_stack>(1);
        // What every frame of a transfer touches comes first and close together: on a machine with a small TLB each page
        // more is a miss more. Then what each connection needs, then what is seldom looked at.
        let core = r.take::<Core>(1);
        let nic_entries = r.take::<Entry>(c.nics);
        let nics = r.take::<NicState>(c.nics);
        let op_entries = r.take::<Entry>(c.operations);
        let udp_entries = r.take::<Entry>(c.udp_sockets);
        let interfaces = r.take::<Option<Interface<CNic>>>(c.nics);
        let tx = r.take::<TxSlot<'static>>(c.tx_frames);
        let ops = r.take::<Notify>(c.operations);
        let sockets = r.take::<Handler<super::udp::lace_udp_handler>>(c.udp_sockets);
        let socket_slots = r.take::<Slot<Socket>>(c.udp_sockets);
        let neighbours = r.take::<neighbour::Entry>(c.neighbours);
        let op_slots = r.take::<Slot<Op<CHost>>>(c.operations);
        let landing = r.take::<landing::Slot<Region>>(c.reassembly_slots);
        #[cfg(feature = "tcp")]
        let tcp = TcpLayout::of(&mut r, c);
        let hook_entries = r.take::<Entry>(c.hooks);
        let hooks = r.take::<Handler<super::hook::lace_hook_handler>>(c.hooks);
        let routes = r.take::<Option<Route>>(c.routes);
        let hook_slots = r.take::<Option<Hook>>(c.hooks);
        let wait = r.take::<WaitSlot<'static>>(c.wait_frames);
        let queues = r.take::<PacketRing<'static, META_LEN>>(c.udp_queues);
        let staging = r.take::<landing::Staging<'static>>(c.reassembly_buffers);
        let names = r.take::<Cached>(c.dns_names);
        #[cfg(feature = "dhcp")]
        let dhcp = r.take::<crate::client::dhcp::Client>(c.nics);
        #[cfg(feature = "http")]
        let http = r.take::<crate::client::http::Job>(c.http_jobs);
        #[cfg(feature = "nfs")]
        let nfs = r.take::<crate::client::nfs::Job>(c.nfs_jobs);
        let staging_bytes = r.bytes((c.reassembly_buffers as usize).saturating_mul(staging_len(c)), 8);
        let queue_bytes = r.bytes((c.udp_queues as usize).saturating_mul(c.udp_queue_bytes as usize), 8);
        // Ethernet header, VLAN tag, then the packet.
        let align = if c.tx_align < 8 { 8 } else { c.tx_align as usize };
        let stride = (c.mtu as usize + 18 + align - 1) & !(align - 1);
        let frames = r.at;
        let n = c.tx_frames as usize + c.wait_frames as usize;
        // The block is aligned less than a frame may have to be.
        let slack = if n == 0 || align <= ALIGN { align - 1 } else { align };
        r.at = r.at.saturating_add(n.saturating_mul(stride)).saturating_add(if n == 0 { 0 } else { slack });
        let total = r.at.saturating_add(ALIGN - 1) & !(ALIGN - 1);
        Layout {
            core,
            nic_entries,
            op_entries,
            udp_entries,
            hook_entries,
            nics,
            sockets,
            hooks,
            ops,
            interfaces,
            neighbours,
            routes,
            hook_slots,
            tx,
            wait,
            socket_slots,
            queues,
            op_slots,
            landing,
            staging,
            names,
            #[cfg(feature = "dhcp")]
            dhcp,
            #[cfg(feature = "tcp")]
            tcp,
            #[cfg(feature = "http")]
            http,
            #[cfg(feature = "nfs")]
            nfs,
            staging_bytes,
            queue_bytes,
            frames,
            stride,
            total,
        }
    }
}

/// The part of TCP.
#[cfg(feature = "tcp")]
#[derive(Clone, Copy, Debug)]
struct TcpLayout {
    entries: usize,
    listener_entries: usize,
    handlers: usize,
    slots: usize,
    chains: usize,
    links: usize,
    listeners: usize,
    pages: usize,
    sent: usize,
    held: usize,
    rings: usize,
}

#[cfg(feature = "tcp")]
impl TcpLayout {
    const fn of(r: &mut Ruler, c: &lace_config) -> TcpLayout {
        let n = c.tcp_connections;
        TcpLayout {
            listeners: r.take::<Slot<Listener>>(c.tcp_listeners),
            listener_entries: r.take::<Entry>(c.tcp_listeners),
            chains: r.take::<Link>(Link::chains(n)),
            links: r.take::<Link>(n),
            entries: r.take::<Entry>(n),
            handlers: r.take::<Handler<super::tcp::lace_tcp_handler>>(n.saturating_add(c.tcp_listeners)),
            slots: r.take::<TcpSlot<'static, CHost>>(n),
            pages: r.take::<PageSlot<Region>>(c.tcp_pages),
            sent: r.bytes((n as usize).saturating_mul(c.tcp_segments as usize * size_of::<Sent>()), align_of::<Sent>()),
            held: r.bytes((n as usize).saturating_mul(c.tcp_ranges as usize * size_of::<Held>()), align_of::<Held>()),
            rings: r.bytes((n as usize).saturating_mul(ring_bytes(c)), 8),
        }
    }

    /// # Safety
    /// As for [`carve`]: the layout is that of `config`, and this is called once.
    unsafe fn carve(&self, block: &Block, config: &lace_config) -> TcpMemory<'static, CHost> {
        let (receive, send) = (ring(config.tcp_receive_bytes), ring(config.tcp_send_bytes));
        // SAFETY: every place is the layout's, of its type, and named here once; what belongs to one connection is counted
        // within its part.
        unsafe {
            let connection = |i: u16| {
                let i = usize::from(i);
                let sent = self.sent + i * usize::from(config.tcp_segments) * size_of::<Sent>();
                let held = self.held + i * usize::from(config.tcp_ranges) * size_of::<Held>();
                let rings = self.rings + i * (receive + send);
                TcpSlot::new(SlotMemory {
                    receive: block.bytes(rings, config.tcp_receive_bytes as usize),
                    send: block.bytes(rings + receive, config.tcp_send_bytes as usize),
                    sent: block.values(sent, config.tcp_segments, |_| Sent::EMPTY),
                    held: block.values(held, config.tcp_ranges, |_| Held { start: Pos::DATA, end: Pos::DATA }),
                })
            };
            TcpMemory {
                slots: block.values(self.slots, config.tcp_connections, connection),
                chains: block.values(self.chains, Link::chains(config.tcp_connections), |_| Link::END),
                links: block.values(self.links, config.tcp_connections, |_| Link::END),
                listeners: block.values(self.listeners, config.tcp_listeners, |_| Slot::empty()),
                pages: block.values(self.pages, config.tcp_pages, |_| PageSlot::EMPTY),
            }
        }
    }
}

#[cfg(feature = "tcp")]
type Held = crate::storage::ranges::Interval<Pos>;

/// Bytes of a ring, rounded so that the next is aligned.
#[cfg(feature = "tcp")]
const fn ring(bytes: u32) -> usize {
    (bytes as usize).saturating_add(7) & !7
}

#[cfg(feature = "tcp")]
const fn ring_bytes(c: &lace_config) -> usize {
    ring(c.tcp_receive_bytes).saturating_add(ring(c.tcp_send_bytes))
}

/// The block while it is carved.
struct Block {
    start: *mut u8,
}

impl Block {
    /// The `n` values at `offset`, made by `make`.
    ///
    /// # Safety
    /// The place is one of the layout's for values of this type, and is taken once.
    unsafe fn values<T>(&self, offset: usize, n: u16, mut make: impl FnMut(u16) -> T) -> &'static mut [T] {
        let n_values = usize::from(n);
        // SAFETY: by the contract the place holds `n` aligned values that nobody else names; each is written before the
        // slice is made.
        unsafe {
            let place = self.start.add(offset).cast::<T>();
            for i in 0..n {
                place.add(usize::from(i)).write(make(i));
            }
            core::slice::from_raw_parts_mut(place, n_values)
        }
    }

    /// The `len` bytes at `offset`, zero.
    ///
    /// # Safety
    /// As for [`Self::values`].
    unsafe fn bytes(&self, offset: usize, len: usize) -> &'static mut [u8] {
        // SAFETY: as in `values`.
        unsafe {
            let place = self.start.add(offset);
            place.write_bytes(0, len);
            core::slice::from_raw_parts_mut(place, len)
        }
    }
}

/// Carves the block at `start`; returns the head.
///
/// # Safety
/// `start` is aligned to [`ALIGN`] and begins at least `layout.total` bytes, given over to the stack, where `layout`
/// is that of `config`.
pub unsafe fn carve(
    start: *mut u8,
    config: &lace_config,
    layout: &Layout,
    host: lace_host,
    clock: Clock,
) -> *mut lace_stack {
    let block = Block { start };
    let l = layout;
    let align = usize::from(config.tx_align.max(8));
    let first_frame = l.frames + (start.addr() + l.frames).next_multiple_of(align) - (start.addr() + l.frames);
    let frame = |i: usize| first_frame + i * l.stride;
    let frame_len = usize::from(config.mtu) + 18;
    let queue_len = config.udp_queue_bytes as usize;
    let tx_frames = config.tx_frames;
    // SAFETY: every place is the layout's, of its type, and named here once; frames and queues are counted within their
    // parts.
    unsafe {
        let table = |kind, at, n| Table { kind, entries: block.values(at, n, |_| Entry::new()) };
        let nics = table(Kind::Nic, l.nic_entries, config.nics);
        let ops = table(Kind::Op, l.op_entries, config.operations);
        let udp = table(Kind::Udp, l.udp_entries, config.udp_sockets);
        let hooks = table(Kind::Hook, l.hook_entries, config.hooks);
        let memory = EngineMemory {
            stack: StackMemory {
                interfaces: block.values(l.interfaces, config.nics, |_| None),
                neighbours: block.values(l.neighbours, config.neighbours, |_| neighbour::Entry::FREE),
                routes: block.values(l.routes, config.routes, |_| None),
                hooks: block.values(l.hook_slots, config.hooks, |_| None),
                tx: block.values(l.tx, tx_frames, |i| TxSlot::new(block.bytes(frame(usize::from(i)), frame_len))),
                wait: block.values(l.wait, config.wait_frames, |i| {
                    WaitSlot::new(block.bytes(frame(usize::from(tx_frames) + usize::from(i)), frame_len))
                }),
                landing: block.values(l.landing, config.reassembly_slots, |_| landing::Slot::new()),
                staging: block.values(l.staging, config.reassembly_buffers, |i| {
                    let len = staging_len(config);
                    landing::Staging::new(block.bytes(l.staging_bytes + usize::from(i) * len, len))
                }),
                staging_timeout: Duration::from_millis(u64::from(config.reassembly_timeout_ms)),
            },
            sockets: block.values(l.socket_slots, config.udp_sockets, |_| Slot::empty()),
            queues: block.values(l.queues, config.udp_queues, |i| {
                PacketRing::new(block.bytes(l.queue_bytes + usize::from(i) * queue_len, queue_len))
            }),
            ops: block.values(l.op_slots, config.operations, |_| Slot::empty()),
            #[cfg(feature = "dhcp")]
            dhcp: block.values(l.dhcp, config.nics, |_| crate::client::dhcp::Client::new()),
            names: block.values(l.names, config.dns_names, |_| Cached::FREE),
            #[cfg(feature = "tcp")]
            tcp: l.tcp.carve(&block, config),
            #[cfg(feature = "http")]
            http: block.values(l.http, config.http_jobs, |_| crate::client::http::Job::new()),
            #[cfg(feature = "nfs")]
            nfs: block.values(l.nfs, config.nfs_jobs, |_| crate::client::nfs::Job::new()),
        };
        let mut engine = Engine::new(CHost { calls: host }, memory);
        engine.set_now(clock.now());
        let core = start.add(l.core).cast::<Core>();
        core.write(Core {
            engine,
            host,
            clock,
            nics: block.values(l.nics, config.nics, |_| NicState::default()),
            sockets: block.values(l.sockets, config.udp_sockets, |_| Handler::default()),
            hooks: block.values(l.hooks, config.hooks, |_| Handler::default()),
            #[cfg(feature = "tcp")]
            tcp: block.values(l.tcp.handlers, config.tcp_connections + config.tcp_listeners, |_| Handler::default()),
            #[cfg(feature = "tcp")]
            tcp_handlers: 0,
            ops: block.values(l.ops, config.operations, |_| Notify::default()),
            turn: 0,
            starved: 0,
        });
        let head = start.cast::<lace_stack>();
        #[cfg(feature = "tcp")]
        let (tcp, listeners) = (
            table(Kind::Tcp, l.tcp.entries, config.tcp_connections),
            table(Kind::Listener, l.tcp.listener_entries, config.tcp_listeners),
        );
        #[cfg(not(feature = "tcp"))]
        let (tcp, listeners) = (Table { kind: Kind::Tcp, entries: &[] }, Table { kind: Kind::Listener, entries: &[] });
        let tables = [nics, ops, udp, hooks, tcp, listeners];
        head.write(lace_stack::new(core, start.addr()..start.addr() + l.total, *config, tables));
        head
    }
}
