//! The operation that starts a NIC's client and waits until it has a lease.

use super::machine::Env;
use super::{Heard, Request};
use crate::client::engine::Shared;
use crate::client::operation::{Cx, DetailKind, Operation, Step};
use crate::storage::error::Error;
use crate::storage::host::{Host, LeasePart, LeaseStore};
use crate::storage::time::Instant;
use crate::wire::dhcp::{Message, code};

/// The operation; its result is 0. It ends when the address is set and boot data has come or was given up.
///
/// It fails as `Client::start` does, or with [`Error::Timeout`]; [`Error::NoSlot`]: the interface holds no more addresses;
/// [`Error::NetworkDown`]: the interface was removed; [`Error::Cancelled`]: the host ended DHCP on it. The detail holds the
/// text of the last refusal, if a server sent one.
#[derive(Debug)]
pub struct Dhcp<H: Host> {
    request: Request<H::Text>,
    lease: H::Lease,
    started: bool,
    deadline: Instant,
    /// Transaction of the messages stored.
    stored: Option<u32>,
}

impl<H: Host> Dhcp<H> {
    /// A request that is yet to be sent; what the servers grant goes to `lease`.
    pub fn new(request: Request<H::Text>, lease: H::Lease) -> Self {
        Dhcp { request, lease, started: false, deadline: Instant::NEVER, stored: None }
    }
}

impl<H: Host> Operation<H> for Dhcp<H> {
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        let now = cx.now();
        let (op, nic) = (cx.op, self.request.nic);
        let Shared { dhcp, resolver, .. } = &mut *cx.shared;
        let Some(client) = dhcp.get_mut(usize::from(nic.0)) else { return Step::Done(Err(Error::NetworkDown)) };
        let mut env = Env { stack: cx.stack, resolver, nic };
        if !self.started {
            if let Err(e) = client.start(&mut env, op, &self.request) {
                return Step::Done(Err(e));
            }
            self.started = true;
            self.deadline = self.request.timeout.map_or(Instant::NEVER, |t| now + t);
            // The client itself acts when this has returned: what it sends lies in a large frame.
            dhcp.heard = true;
            return Step::Pending(self.deadline);
        }
        if client.is_settled() {
            client.detach(op);
            return Step::Done(Ok(0));
        }
        if !client.is_active() {
            client.detach(op);
            return Step::Done(Err(client.failure.unwrap_or(Error::Cancelled)));
        }
        if now >= self.deadline {
            client.stop(&mut env);
            client.detach(op);
            return Step::Done(Err(Error::Timeout));
        }
        Step::Pending(self.deadline)
    }

    #[inline(never)]
    fn dhcp(&mut self, cx: &mut Cx<'_, '_, H>, heard: Heard, message: &[u8]) {
        let Ok(parsed) = Message::parse(message) else { return };
        let part = match heard {
            Heard::Nothing => return,
            Heard::Lease => LeasePart::Address,
            Heard::Boot => LeasePart::Boot,
            Heard::Refusal => {
                let mut buf = [0; 64];
                let len = parsed.copy_option(code::MESSAGE, &mut buf).unwrap_or(0).min(buf.len());
                let text = buf.get(..len).unwrap_or_default();
                cx.detail.set(DetailKind::Dhcp, NAK, parsed.ipv4(code::SERVER_ID), text);
                return;
            }
        };
        if self.stored != Some(parsed.xid()) {
            self.lease.clear();
            self.stored = Some(parsed.xid());
        }
        self.lease.store(part, message);
    }

    fn cancel(&mut self, cx: &mut Cx<'_, '_, H>) {
        if !self.started {
            return;
        }
        let (op, nic) = (cx.op, self.request.nic);
        let Shared { dhcp, resolver, .. } = &mut *cx.shared;
        if let Some(client) = dhcp.get_mut(usize::from(nic.0)) {
            client.stop(&mut Env { stack: cx.stack, resolver, nic });
            client.detach(op);
        }
    }
}

/// Code of a detail: the message type of a refusal.
const NAK: u32 = 6;
