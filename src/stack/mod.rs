//! The stack below the sockets: Ethernet, ARP, IPv4, ICMP and routing; fragments and landing. Knows no socket and no
//! client: what comes in is handed up as a disposition, and whoever is above acts on it.

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

pub mod arp;
pub mod coverage;
pub mod egress;
mod fragment;
pub mod frames;
pub mod front;
mod gather;
pub mod hooks;
pub mod icmp;
#[cfg(feature = "mcast")]
pub mod igmp;
pub mod ingress;
pub mod interface;
pub mod landing;
pub mod neighbour;
#[cfg(not(feature = "mcast"))]
mod no_igmp;
pub mod path_mtu;
pub mod ports;
mod relocate;
pub mod route;
mod slot;
mod staging;
pub mod stats;
pub mod trail;
pub mod train;
pub mod way;

use crate::storage::host::{Host, LogEvent};
use crate::storage::time::{Duration, Instant};
use core::net::Ipv4Addr;
use frames::{TxFrames, TxSlot, WaitQueue, WaitSlot};
use hooks::{Hook, Hooks};
use icmp::ErrorLimit;
use interface::{Interface, NicId};
use neighbour::{Due, Entry, Neighbours};
use route::{Route, RouteOrigin, Routes};
use stats::{Counter, Stats};

/// The memory a stack works in; each slice's length is a limit.
pub struct StackMemory<'a, H: Host> {
    /// NICs.
    pub interfaces: &'a mut [Option<Interface<H::Nic>>],
    /// Neighbour cache entries.
    pub neighbours: &'a mut [Entry],
    /// Routes.
    pub routes: &'a mut [Option<Route>],
    /// Raw hooks.
    pub hooks: &'a mut [Option<Hook>],
    /// Frames being sent.
    pub tx: &'a mut [TxSlot<'a>],
    /// Frames that wait for a neighbour.
    pub wait: &'a mut [WaitSlot<'a>],
    /// Fragmented datagrams being put together.
    pub landing: &'a mut [landing::Slot<H::Memory>],
    /// Buffers for those that do not land in a region.
    pub staging: &'a mut [landing::Staging<'a>],
    /// How long a staged datagram may take: RFC 1122 §3.3.2 says 60 to 120 s, hosts take 30.
    pub staging_timeout: Duration,
}

/// The stack.
pub struct Stack<'a, H: Host> {
    /// The host.
    pub host: H,
    /// The time of this pass.
    pub now: Instant,
    /// Counters.
    pub stats: Stats,
    /// Routes.
    pub routes: Routes<'a>,
    /// Raw hooks.
    pub hooks: Hooks<'a>,
    /// Fragmented datagrams being put together.
    pub landing: landing::Landing<'a, H::Memory>,
    /// Path MTUs learned.
    pub path_mtu: path_mtu::PathMtus,
    /// Ephemeral ports.
    pub ports: ports::Ports,
    /// Set when something that could not be sent may go now: a neighbour was resolved or failed, a NIC has room again.
    /// Whoever retries clears it.
    pub wake: bool,
    /// Set when the NIC had no room for something: it is tried again in the next pass.
    pub blocked: bool,
    interfaces: &'a mut [Option<Interface<H::Nic>>],
    neighbours: Neighbours<'a>,
    frames: TxFrames<'a>,
    queue: WaitQueue<'a>,
    ident: u16,
    /// How often interfaces may have changed; wraps.
    changes: u32,
    icmp_errors: ErrorLimit,
    /// When a report of a multicast group is due.
    igmp_next: Instant,
}

impl<'a, H: Host> Stack<'a, H> {
    /// A stack without interfaces.
    pub fn new(mut host: H, memory: StackMemory<'a, H>) -> Self {
        let ident = host.random() as u16;
        let ports = ports::Ports::new(&mut host);
        Stack {
            host,
            ports,
            path_mtu: path_mtu::PathMtus::default(),
            now: Instant::ZERO,
            stats: Stats::default(),
            routes: Routes::new(memory.routes),
            hooks: Hooks::new(memory.hooks),
            wake: false,
            blocked: false,
            interfaces: memory.interfaces,
            neighbours: Neighbours::new(memory.neighbours),
            frames: TxFrames::new(memory.tx),
            queue: WaitQueue::new(memory.wait),
            landing: landing::Landing::new(memory.landing, memory.staging, memory.staging_timeout),
            ident,
            changes: 0,
            icmp_errors: ErrorLimit::new(),
            igmp_next: Instant::NEVER,
        }
    }

    /// Adds an interface; `None` when all slots are in use.
    pub fn add_interface(&mut self, interface: Interface<H::Nic>) -> Option<NicId> {
        self.changes = self.changes.wrapping_add(1);
        let at = self.interfaces.iter().position(Option::is_none)?;
        *self.interfaces.get_mut(at)? = Some(interface);
        u8::try_from(at).ok().map(NicId)
    }

    /// Removes an interface with its routes, neighbours and waiting frames.
    pub fn remove_interface(&mut self, nic: NicId) -> Option<Interface<H::Nic>> {
        self.changes = self.changes.wrapping_add(1);
        let gone = self.interfaces.get_mut(usize::from(nic.0))?.take();
        self.routes.remove(|r| r.nic == nic);
        self.forget(nic);
        gone
    }

    /// Forgets neighbours learned and frames waiting on an interface: its link was down.
    pub fn forget(&mut self, nic: NicId) {
        self.neighbours.forget(nic);
        self.landing.forget(nic);
        for _ in 0..self.queue.forget(nic) {
            self.stats.count(Counter::DropNeighbourQueue);
        }
    }

    /// An interface. On small machines there is one copy of this, but for what each frame does: [`Self::iface`].
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    pub fn interface(&self, nic: NicId) -> Option<&Interface<H::Nic>> {
        self.iface(nic)
    }

    /// The same, in line.
    #[inline(always)]
    pub(crate) fn iface(&self, nic: NicId) -> Option<&Interface<H::Nic>> {
        self.interfaces.get(usize::from(nic.0)).and_then(Option::as_ref)
    }

    /// An interface, to change it.
    #[inline]
    pub fn interface_mut(&mut self, nic: NicId) -> Option<&mut Interface<H::Nic>> {
        self.changes = self.changes.wrapping_add(1);
        self.interfaces.get_mut(usize::from(nic.0)).and_then(Option::as_mut)
    }

    /// The driver of an interface.
    #[inline]
    pub fn driver(&mut self, nic: NicId) -> Option<&mut H::Nic> {
        Some(&mut self.interfaces.get_mut(usize::from(nic.0))?.as_mut()?.nic)
    }

    /// A number that is another whenever interfaces, addresses, routes, neighbours or path MTUs have changed: what was
    /// worked out from them holds while it stays. Wraps.
    #[inline]
    pub fn version(&self) -> u32 {
        let learned = self.neighbours.changes().wrapping_add(self.path_mtu.changes());
        self.changes.wrapping_add(self.routes.changes()).wrapping_add(learned)
    }

    /// All interfaces.
    pub fn each_interface(&self) -> impl Iterator<Item = (NicId, &Interface<H::Nic>)> {
        self.interfaces.iter().zip(0u8..).filter_map(|(slot, id)| slot.as_ref().map(|i| (NicId(id), i)))
    }

    /// The first interface whose link is up.
    pub fn first_up(&self) -> Option<NicId> {
        self.each_interface().find(|(_, i)| i.link).map(|(id, _)| id)
    }

    /// Sets the link state; what was learned is forgotten when it goes down.
    pub fn set_link(&mut self, nic: NicId, up: bool) {
        if let Some(interface) = self.interface_mut(nic) {
            if up && !interface.link {
                interface.link_ups = interface.link_ups.wrapping_add(1);
            }
            interface.link = up;
            if up {
                self.wake = true;
            } else {
                self.forget(nic);
            }
        }
    }

    /// Takes an address and everything that came with its lease off an interface.
    pub fn drop_lease(&mut self, nic: NicId, addr: Ipv4Addr) {
        if let Some(interface) = self.interface_mut(nic) {
            interface.remove_address(addr);
        }
        self.routes.remove(|r| r.nic == nic && r.origin == RouteOrigin::Dhcp);
        self.forget(nic);
    }

    /// Frames given to asynchronous NICs and not yet done.
    pub fn outstanding(&self) -> usize {
        self.frames.outstanding()
    }

    /// An asynchronous NIC is done with the frame of `token`; returns its sender's own token.
    pub fn tx_done(&mut self, nic: NicId, token: crate::storage::host::Token) -> Option<crate::storage::host::Token> {
        self.wake = true;
        self.frames.done(nic, token)
    }

    /// A NIC forgot all frames it was given; tells `each` the sender's own token of every one.
    pub fn reset_interface(&mut self, nic: NicId, each: impl FnMut(crate::storage::host::Token)) {
        self.frames.reset(nic, each);
        self.wake = true;
    }

    /// The earliest time at which [`Self::tick`] has something to do.
    pub fn deadline(&self) -> Instant {
        self.neighbours.deadline().min(self.landing.deadline()).min(self.igmp_next)
    }

    /// Does what is due.
    #[inline(never)]
    pub fn tick(&mut self) {
        self.tick_landing();
        if self.wake {
            self.flush_waiting();
        }
        self.tick_igmp();
        // Each entry has at most one thing to do at one time.
        for _ in 0..=u8::MAX {
            match self.neighbours.due(self.now) {
                None => break,
                Some(Due::Ask(nic, addr, mac)) => {
                    // A request that is lost is repeated by the next timer.
                    if self.ask_neighbour(nic, addr, mac) == Err(egress::TxError::Busy) {
                        self.neighbours.unasked(self.now, nic, addr);
                        break;
                    }
                }
                Some(Due::Failed(nic, addr)) => {
                    self.stats.count(Counter::NeighbourFailed);
                    self.host.log(LogEvent::NeighbourFailed, u64::from(addr.to_bits()), u64::from(neighbour::TRIES));
                    if self.queue.give_up(nic, addr) {
                        self.stats.count(Counter::DropNeighbourQueue);
                    }
                    self.wake = true;
                }
            }
        }
    }

    /// Gives up datagrams whose missing pieces did not come in time, and tells their senders (RFC 792, RFC 1122 §3.3.2).
    fn tick_landing(&mut self) {
        // Each slot expires at most once in a pass.
        for _ in 0..=self.landing.capacity() {
            let Some(expired) = self.landing.expire(self.now) else { break };
            let Some(expired) = expired else { continue };
            self.stats.count(Counter::DropReassemblyTimeout);
            if let Some(quote) = expired.quote {
                self.send_reassembly_timeout(expired.nic, expired.dst, expired.src, &quote);
            }
        }
    }

    /// An IPv4 identification. Every datagram gets the next number, so that those that are fragmented on the way do
    /// not collide for as long as possible (RFC 6864 §4).
    pub fn next_ident(&mut self) -> u16 {
        self.ident = self.ident.wrapping_add(1);
        self.ident
    }
}

#[cfg(any(test, feature = "sim"))]
impl<H: Host> Stack<'_, H> {
    /// Puts a neighbour into the cache without a frame: for tests and benchmarks that are about something else.
    pub fn learn_for_test(&mut self, now: Instant, nic: NicId, addr: Ipv4Addr, mac: crate::wire::ethernet::Address) {
        let _ = self.neighbours.lookup(now, nic, addr);
        self.neighbours.reply(now, nic, addr, mac);
    }
}
