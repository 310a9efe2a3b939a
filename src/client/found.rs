//! How far a received frame is, and what it means for the host. Whose it is, is for [`super::engine`].

use crate::stack::ingress::Hit;
use crate::storage::slots::Key;
use crate::udp::Meta;
use crate::udp::lane::Arrived;

/// What a received frame means for the host.
#[derive(Debug)]
pub enum Received<'f> {
    /// Nothing to tell.
    Nothing,
    /// A datagram for a socket's handler.
    Datagram {
        /// The socket.
        socket: Key,
        /// Where from and where to.
        meta: Meta,
        /// The payload, a part of the frame.
        payload: &'f [u8],
    },
    /// A datagram for a socket's handler that came in fragments: see [`staged`](super::engine::Engine::staged). To be ended
    /// by [`release_staged`](super::engine::Engine::release_staged).
    Staged {
        /// The socket.
        socket: Key,
        /// Where from and where to.
        meta: Meta,
        /// Names the datagram.
        index: usize,
    },
}

/// What a received frame means for the host, and which raw hook wants to see it.
#[derive(Debug)]
pub struct Outcome<'f> {
    /// What it means.
    pub received: Received<'f>,
    /// Who wants to see it.
    pub hit: Option<Hit>,
}

/// How far a received frame is: filled in where it lies, step by step, so that no step lies on the machine's stack under what
/// the next leads to.
#[derive(Debug)]
pub enum Found<'f> {
    /// Dealt with, or dropped and counted.
    Nothing,
    /// For the host: see [`Received`].
    Told(Received<'f>),
    /// For a raw hook of the host's.
    Hooked(Hit),
    /// A frame of which nothing is known.
    New,
    /// A datagram that has found its socket, and goes the long way.
    Arrived(Arrived<'f>),
    /// A datagram for the DHCP client of its NIC, which is active.
    #[cfg(feature = "dhcp")]
    Dhcp(Arrived<'f>),
    /// A datagram whose pieces lie whole in their region.
    Landed(usize),
    /// A packet whose pieces lie whole in a staging buffer.
    Staged(usize),
}
