//! Bootlace: a network stack for code that runs before, or without, an operating system.
//!
//! A bootloader gives it one block of memory, a NIC and a clock, and gets files back. It allocates nothing, has no
//! globals, and does no I/O of its own. What ships is a C library (`ffi`, `include/bootlace.h`); this is what is inside.
//!
//! # The rooms
//!
//! | room | what it is responsible for | what it leaves to others |
//! |---|---|---|
//! | [`wire`] | bytes ↔ values of one packet format a file | state, time, checksums |
//! | [`storage`] | memory, rings, ranges, handles, checksums, time; the traits of the host | any protocol |
//! | [`stack`] | Ethernet, ARP, IPv4, ICMP, routes; where a payload lands; how a frame leaves | sockets and clients |
//! | [`udp`], `tcp` | sockets | what is said over them |
//! | [`client`] | operations that move files and find addresses; the [`client::engine`] that leads frames to them | I/O |
//! | [`ffi`] | the C interface; the only code that touches raw pointers | everything else |
//! | `sim` | a host, a NIC and a link on virtual time, for tests | never shipped |
//!
//! Imports point downward only: ffi → client → tcp, udp → stack → storage → wire. A layer hands *dispositions* up (what
//! is to be done with this packet) and the layer above acts on them; nothing calls upward.
//!
//! # The way of a received byte
//!
//! 1. `ffi` lends the engine a frame: [`client::engine::Engine::receive`].
//! 2. [`stack::ingress`] looks at Ethernet, VLAN and IPv4 and returns an [`stack::ingress::Ingress`]. The transport
//!    checksum has not been looked at yet.
//! 3. The engine finds the socket. If it belongs to an operation, the operation says from the first bytes where the
//!    datagram belongs ([`client::operation::Operation::place`]): a range of the caller's memory.
//! 4. [`stack::landing`] copies the payload there and sums it in the same pass ([`storage::checksum::Sum::copy`]). The
//!    byte has been read once, from the NIC's buffer, and written once, at the load address. If the sum is wrong, what
//!    was written is unconfirmed, and will be written again.
//! 5. Only then is the operation told ([`client::operation::Operation::datagram`]); it confirms the range and
//!    acknowledges.
//!
//! Fragments go the same way: a piece that comes before the piece that holds the headers is placed by a guess that a
//! header corrects. There is no staging buffer when the destination is memory.
//!
//! # The way of a sent byte
//!
//! A client names spans of its source; [`stack::egress`] finds route and neighbour, builds the headers, and hands the NIC
//! the spans as they are if it gathers, or copies and sums them in one pass into the NIC's own buffer if it does not.
//!
//! # Rules
//!
//! - Time, randomness and frames are inputs. A pass reads the clock once; a seed replays a run exactly.
//! - *Leaf callbacks* (NIC, sink, source, clock, log) are calls on the traits of [`storage::host`] and call nothing back.
//!   *Upcalls* are returned to `ffi`, which makes them when no borrow of the engine is alive.
//! - Nothing a frame, a server or a callback does causes a panic, an unbounded loop, or a write outside a region. Each
//!   drop has a counter ([`stack::stats`]).
//! - Every loop has a bound; every limit is a number in the configuration, not a feature.

#![no_std]

#[cfg(any(test, feature = "sim"))]
extern crate std;

/// Whether the short ways are built in (feature `fast`) for what is like the packet before: `udp::lane`, `tcp::lane`,
/// `stack::trail`, a client's [`usual`](client::operation::Operation::usual) datagram, the segment that a connection expects,
/// and [`stack::way`] and [`stack::train`] for what is sent. All of it goes the long way without.
pub const FAST: bool = cfg!(feature = "fast");

pub mod client;
pub mod ffi;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
pub mod stack;
pub mod storage;
#[cfg(feature = "tcp")]
pub mod tcp;
pub mod udp;
pub mod wire;
