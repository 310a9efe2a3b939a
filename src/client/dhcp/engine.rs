//! The engine's side of DHCP: which datagrams the clients get, when they are polled, and what the host can ask of them.

use super::machine::Env;
use super::{Client as NicClient, Heard};
use crate::client::engine::{Engine, Shared};
use crate::client::operation::Operation;
use crate::client::ops::Client;
use crate::stack::interface::NicId;
use crate::stack::stats::Counter;
use crate::storage::error::{Error, Result};
use crate::storage::host::Host;
use crate::storage::time::Instant;
use crate::udp::lane::Arrived;

impl<'a, H: Host> Engine<'a, H> {
    pub(crate) fn dhcp_deadline(&self) -> Instant {
        self.shared.dhcp.awake().map(NicClient::deadline).min().unwrap_or(Instant::NEVER)
    }

    /// Whether any DHCP client is at work.
    pub(crate) fn watches_lease(&self) -> bool {
        self.shared.dhcp.awake().any(NicClient::is_active)
    }

    /// Whether the DHCP client of `nic` takes what comes to its port.
    pub(crate) fn is_dhcp_active(&self, nic: NicId) -> bool {
        self.shared.dhcp.get(usize::from(nic.0)).is_some_and(NicClient::is_active)
    }

    /// Lets the DHCP clients do what is due. The operations that wait for them act in [`Self::follow`].
    #[inline(never)]
    pub(crate) fn tick_dhcp(&mut self, wake: bool) {
        for index in 0..self.shared.dhcp.awake_len().min(usize::from(u8::MAX)) {
            let nic = NicId(index as u8);
            let news = self.with_dhcp(nic, |client, env| client.tick(env, wake).then_some(client.waiting()));
            if let Some(Some(Some(op))) = news {
                self.marked = true;
                self.ops.mark(op);
            }
        }
        self.shared.dhcp.rest();
    }

    /// Lets the DHCP clients act that have heard something.
    pub(crate) fn follow_dhcp(&mut self) {
        if core::mem::take(&mut self.shared.dhcp.heard) {
            self.tick_dhcp(false);
        }
    }

    /// Calls `work` on the DHCP client of a NIC.
    fn with_dhcp<R>(&mut self, nic: NicId, work: impl FnOnce(&mut NicClient, &mut Env<'_, 'a, H>) -> R) -> Option<R> {
        let Shared { dhcp, resolver, .. } = &mut self.shared;
        let client = dhcp.get_mut(usize::from(nic.0))?;
        Some(work(client, &mut Env { stack: &mut self.stack, resolver, nic }))
    }

    /// Gives a datagram to the DHCP client of its NIC, which is active, and tells the operation that waits for it what it
    /// has heard.
    #[cold]
    #[inline(never)]
    pub(crate) fn hear_dhcp(&mut self, arrived: &Arrived<'_>) {
        if !arrived.holds() {
            return self.stack.stats.count(Counter::DropUdpChecksum);
        }
        self.marked = true;
        self.shared.dhcp.heard = true;
        let (src, message) = (arrived.meta.src.addr, arrived.payload);
        let heard = self.with_dhcp(arrived.meta.nic, |c, env| (c.receive(env, src, message), c.waiting()));
        if let Some((heard, Some(op))) = heard {
            self.tell_heard(op, heard, message);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_heard(&mut self, op: u8, heard: Heard, message: &[u8]) {
        self.tell(op, |client, cx| {
            if let Client::Dhcp(client) = client {
                client.dhcp(cx, heard, message);
            }
        });
    }

    /// Ends what DHCP does on a NIC: an address it has set goes, and its server is not told. To be called before the host
    /// sets an address of its own. An operation that waits fails in [`Self::follow`].
    pub fn dhcp_stop(&mut self, nic: NicId) {
        let op = self.with_dhcp(nic, |client, env| {
            client.stop(env);
            client.waiting()
        });
        if let Some(Some(op)) = op {
            self.marked = true;
            self.ops.mark(op);
        }
    }

    /// Gives the address of a NIC back to its DHCP server. It goes when the message has left, at latest after a second:
    /// then the client is no longer [`NicClient::is_active`].
    ///
    /// # Errors
    /// [`Error::AddressNotOurs`]: the NIC has no lease.
    pub fn dhcp_release(&mut self, nic: NicId) -> Result<()> {
        self.with_dhcp(nic, |client, env| client.release(env)).unwrap_or(Err(Error::AddressNotOurs))
    }
}
