//! The operation that looks a name up.

use super::{ADDRESSES, Resolve, Resolved};
use crate::client::operation::{Cx, Datagram, Operation, Step};
use crate::stack::icmp::IcmpError;
use crate::storage::error::Error;
use crate::storage::host::Host;
use crate::storage::time::{Duration, Instant};
use core::net::Ipv4Addr;

/// What to look up.
#[derive(Clone, Debug)]
pub struct Request<T> {
    /// A name, or a dotted address.
    pub name: T,
    /// How long to try; `None`: until every server was asked four times, with waits of 1, 2, 4 and 8 s.
    pub timeout: Option<Duration>,
}

/// The operation; its result is the number of addresses kept.
#[derive(Debug)]
pub struct Dns<H: Host> {
    request: Request<H::Text>,
    resolve: Resolve,
    deadline: Option<Instant>,
    addrs: heapless::Vec<Ipv4Addr, ADDRESSES>,
}

impl<H: Host> Dns<H> {
    /// A lookup that has not begun.
    pub fn new(request: Request<H::Text>) -> Self {
        Dns { request, resolve: Resolve::new(), deadline: None, addrs: heapless::Vec::new() }
    }

    /// The addresses found, in the server's order.
    pub fn addresses(&self) -> &[Ipv4Addr] {
        &self.addrs
    }
}

impl<H: Host> Operation<H> for Dns<H> {
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        let now = cx.now();
        let timeout = self.request.timeout;
        let deadline = *self.deadline.get_or_insert_with(|| timeout.map_or(Instant::NEVER, |t| now + t));
        match self.resolve.poll(cx, self.request.name.as_ref()) {
            Resolved::Ready(_) => {
                self.addrs = cx.shared.resolver.found.clone();
                Step::Done(Ok(self.addrs.len() as u64))
            }
            Resolved::Failed(e) => Step::Done(Err(e)),
            Resolved::Pending(_) if now >= deadline => {
                self.resolve.cancel(cx);
                Step::Done(Err(Error::Timeout))
            }
            Resolved::Pending(at) => Step::Pending(at.min(deadline)),
        }
    }

    fn datagram(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>) {
        self.resolve.datagram(cx, self.request.name.as_ref(), datagram);
    }

    fn icmp_error(&mut self, cx: &mut Cx<'_, '_, H>, error: &IcmpError) {
        self.resolve.icmp_error(cx, error);
    }

    fn cancel(&mut self, cx: &mut Cx<'_, '_, H>) {
        self.resolve.cancel(cx);
    }
}
