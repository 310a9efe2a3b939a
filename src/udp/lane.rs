//! Lanes: what is the same for every datagram of a flow, checked once. The first datagram of a flow is looked at by
//! Ethernet, IPv4 and the socket table; those that follow have the same header but for lengths, identification and
//! checksums, and only these are looked at. What [`crate::stack::way`] is for sending.
//!
//! A lane holds until anything changes that decided whom its datagrams are for: see [`super::Udp::version`].

use super::{Meta, Owner};
use crate::stack::front::Front;
use crate::stack::ingress::Packet;
use crate::stack::interface::{Interface, NicId};
use crate::storage::checksum::Sum;
use crate::storage::host::{Endpoint, Nic, RxFlags};
use crate::storage::slots::Key;
use crate::wire::udp::{self, Datagram};

/// A datagram that has found its socket. Its checksum has not been looked at yet.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'f> {
    /// The socket.
    pub socket: Key,
    /// Who takes what it receives.
    pub owner: Owner,
    /// Where from and where to.
    pub meta: Meta,
    /// The port it was sent to.
    pub port: u16,
    /// The payload.
    pub payload: &'f [u8],
    /// The sum of what the checksum covers ahead of the payload.
    pub before: Sum,
    /// The checksum holds, or there is none (RFC 768: zero means none).
    pub verified: bool,
}

impl<'f> Arrived<'f> {
    /// What `packet` carries: `datagram`, for `socket`.
    pub fn of(packet: &Packet<'f>, datagram: &Datagram<'f>, socket: Key, owner: Owner) -> Self {
        let src = Endpoint { addr: packet.src, port: datagram.source_port() };
        Arrived {
            socket,
            owner,
            meta: Meta { src, dst: packet.dst, nic: packet.nic },
            port: datagram.destination_port(),
            payload: datagram.payload(),
            before: super::sum_before_payload(packet, datagram),
            verified: packet.sum_ok || !datagram.has_checksum(),
        }
    }

    /// Whether the checksum holds.
    #[inline]
    pub fn holds(&self) -> bool {
        self.verified || (self.before + Sum::of(self.payload)).holds()
    }
}

/// The lane of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    front: Front,
    /// Sum of pseudo header and ports.
    pseudo: Sum,
    socket: Key,
    owner: Owner,
    meta: Meta,
    port: u16,
}

impl Lane {
    /// Notes in `lane` the flow of a datagram that came whole, in one frame, and has found its socket; none where headers
    /// are not the usual ones.
    #[inline(never)]
    pub fn note<N: Nic>(
        lane: &mut Option<Lane>,
        interface: &Interface<N>,
        frame: &[u8],
        arrived: &Arrived<'_>,
        version: u32,
    ) {
        *lane = Front::of(interface, arrived.meta.nic, frame, version).map(|front| Lane {
            front,
            pseudo: front.pseudo(),
            socket: arrived.socket,
            owner: arrived.owner,
            meta: arrived.meta,
            port: arrived.port,
        });
    }

    /// The datagram in `frame`, if it is one of this flow and nothing is odd about it; what is, is looked at the long
    /// way.
    #[inline(always)] // What it returns is taken apart at once.
    pub fn take<'f>(&self, version: u32, nic: NicId, frame: &'f [u8], flags: RxFlags) -> Option<Arrived<'f>> {
        let datagram = self.front.take(version, nic, frame, flags)?;
        let [_, _, _, _, a, b, c, d] = *datagram.first_chunk::<{ udp::HEADER_LEN }>()?;
        let payload = datagram.get(udp::HEADER_LEN..usize::from(u16::from_be_bytes([a, b])))?;
        let (len, checksum) = (Sum::of_array(&[a, b]), [c, d]);
        Some(Arrived {
            socket: self.socket,
            owner: self.owner,
            meta: self.meta,
            port: self.port,
            payload,
            // The length counts twice: in the pseudo header, and in the header.
            before: self.pseudo + len + len + Sum::of_array(&checksum),
            verified: flags.contains(RxFlags::L4_SUM_OK) || checksum == [0, 0],
        })
    }
}
