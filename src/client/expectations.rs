//! The operations as landing sees them: where a datagram belongs whose checksum is not known yet.

use super::engine::Shared;
use super::operation::Operation;
use super::ops::{Client, Ops, each_client};
use crate::stack::landing::{Expect, Flow, Place, Spot};
use crate::storage::host::Host;
use crate::storage::time::Duration;
use crate::udp::Udp;
use core::net::Ipv4Addr;

/// The operations as landing sees them.
pub(super) struct Expectations<'e, 'a, H: Host> {
    pub(super) ops: &'e Ops<'a, H>,
    pub(super) udp: &'e Udp<'a>,
    /// A DHCP client takes what comes to its port.
    pub(super) dhcp: bool,
    pub(super) shared: &'e Shared<'a>,
}

impl<H: Host> Expect for Expectations<'_, '_, H> {
    type Memory = H::Memory;

    fn place(&self, flow: &Flow, head: &[u8], len: usize) -> (Place<H::Memory>, u8) {
        let Some(op) = self.udp.client_at(flow.dst_port) else {
            // A socket of the host's gets the whole datagram; the socket table decides which.
            let dhcp = self.dhcp && flow.dst_port == crate::wire::dhcp::CLIENT_PORT;
            return (if dhcp || self.udp.is_bound(flow.dst_port) { Place::Stage } else { Place::NotMine }, 0);
        };
        let place = match self.ops.at(op) {
            Some(o) if o.is_running() => o.client.place(self.shared, flow, head, len),
            _ => Place::NotMine,
        };
        (place, op)
    }

    fn guess(&self, src: Ipv4Addr, nth: usize) -> Option<(Spot<H::Memory>, u8, Duration)> {
        let mut left = nth;
        for op in 0..self.ops.used() {
            let Some(o) = self.ops.at(op).filter(|o| o.is_running()) else { continue };
            // Ranges are few: as many as landing has slots, and one.
            for i in 0..=left {
                match each_client!(&o.client, c => Operation::<H>::guess(c, self.shared, src, i)) {
                    Some(spot) if i == left => return Some((spot, op, self.patience(op))),
                    Some(_) => {}
                    None => {
                        left = left.saturating_sub(i);
                        break;
                    }
                }
            }
        }
        None
    }

    fn patience(&self, claimant: u8) -> Duration {
        match self.ops.at(claimant) {
            Some(o) => each_client!(&o.client, c => Operation::<H>::patience(c, self.shared)),
            None => Duration::ZERO,
        }
    }
}
