//! The DHCP clients of all NICs, and which of them a pass has to look at: on most machines one, on many none.

use super::Client;
use crate::storage::time::Instant;
use core::net::Ipv4Addr;

/// The clients, by index of their NIC.
#[derive(Debug)]
pub struct Clients<'a> {
    clients: &'a mut [Client],
    /// Clients from here on have nothing to do and nothing to tell.
    awake: usize,
    /// One has heard something, and is to act.
    pub(super) heard: bool,
}

impl<'a> Clients<'a> {
    /// Clients that have done nothing yet.
    pub fn new(clients: &'a mut [Client]) -> Self {
        Clients { clients, awake: 0, heard: false }
    }

    /// The client of the NIC with this index.
    pub fn get(&self, index: usize) -> Option<&Client> {
        self.clients.get(index)
    }

    /// The same, to be put to work.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut Client> {
        let client = self.clients.get_mut(index)?;
        self.awake = self.awake.max(index.saturating_add(1));
        Some(client)
    }

    /// Those that may have something to do or to tell.
    pub(super) fn awake(&self) -> impl Iterator<Item = &Client> {
        self.clients.iter().take(self.awake)
    }

    /// As many as [`Self::awake`] goes through.
    pub(super) fn awake_len(&self) -> usize {
        self.awake
    }

    /// Lets those rest that have nothing to do any more.
    pub(super) fn rest(&mut self) {
        let busy = |c: &Client| c.is_active() || c.has_lost() || c.deadline() != Instant::NEVER;
        self.awake = self.clients.iter().take(self.awake).rposition(busy).map_or(0, |last| last.saturating_add(1));
    }

    /// Whether one has lost an address, and nobody was told.
    pub fn has_lost(&self) -> bool {
        self.awake().any(Client::has_lost)
    }

    /// The address that the client of a NIC has lost since the last call, if it has.
    pub fn take_lost(&mut self, index: usize) -> Option<Ipv4Addr> {
        self.clients.iter_mut().take(self.awake).nth(index)?.take_lost()
    }
}
