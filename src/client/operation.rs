//! What every client is: an operation that is polled, is given the datagrams of its sockets, and ends with a result.

use super::engine::Shared;
use crate::stack::Stack;
use crate::stack::egress::TxError;
use crate::stack::icmp::{EchoReply, IcmpError};
use crate::stack::landing::{Flow, Landed, Place, Spot};
use crate::storage::error::{Error, Result};
use crate::storage::host::{Endpoint, Host, Span};
use crate::storage::slots::Key;
use crate::storage::time::{Duration, Instant};
use crate::udp::lane::Arrived;
use crate::udp::{Meta, Owner, Udp};
use core::net::Ipv4Addr;

/// What an operation says when it was polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It goes on; poll it at this time, or when something came for it, or when what it could not send may go.
    Pending(Instant),
    /// It has ended, with the count that is its result: bytes, or what its kind says.
    Done(Result<u64>),
}

/// How far a transfer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes confirmed.
    pub done: u64,
    /// Bytes expected, if known.
    pub total: Option<u64>,
}

/// What kind of code a detail holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum DetailKind {
    /// Nothing.
    #[default]
    None = 0,
    /// A TFTP error code with the server's text (RFC 1350 §5).
    Tftp = 1,
    /// An ICMP error: type × 256 + code, and who sent it.
    Icmp = 2,
    /// A DNS response code (RFC 1035 §4.1.1).
    Dns = 3,
    /// A DHCP message with text (option 56).
    Dhcp = 4,
    /// An NFS or MOUNT status (RFC 1813 §2.6).
    Nfs = 5,
    /// An RPC reply status (RFC 5531 §9).
    Rpc = 6,
    /// An HTTP status.
    Http = 7,
}

/// Bytes of text a detail can hold.
pub const DETAIL_TEXT: usize = 64;

/// Why an operation failed, in the words of who made it fail.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    /// What the code is.
    pub kind: DetailKind,
    /// The code.
    pub code: u32,
    /// Who said so, if known.
    pub from: Option<Ipv4Addr>,
    /// Text that came with it, cut to fit.
    pub text: heapless::Vec<u8, DETAIL_TEXT>,
}

impl Detail {
    /// Notes a code with its text; control characters become '?'.
    #[inline(never)]
    pub fn set(&mut self, kind: DetailKind, code: u32, from: Option<Ipv4Addr>, text: &[u8]) {
        self.kind = kind;
        self.code = code;
        self.from = from;
        self.text.clear();
        for byte in text.iter().take(DETAIL_TEXT) {
            // No more are taken than fit.
            let _ = self.text.push(if byte.is_ascii_control() { b'?' } else { *byte });
        }
    }
}

/// A server: a name to look up, or an address.
#[derive(Clone, Debug)]
pub struct Server<T> {
    /// Name or dotted address; `None`: `addr` counts.
    pub name: Option<T>,
    /// Address.
    pub addr: Ipv4Addr,
    /// Port in host order; 0 for the protocol's own.
    pub port: u16,
}

/// A datagram for an operation, its checksum verified.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'d> {
    /// The socket it came to.
    pub socket: Key,
    /// Where from and where to.
    pub meta: Meta,
    /// Its payload. If it landed, only the header that `place` named is sure to be here.
    pub payload: &'d [u8],
    /// Length of the whole payload in bytes.
    pub len: usize,
    /// What part of it went straight to the region that `place` named.
    pub landed: Option<Landed>,
}

/// What an operation works with while it is called.
pub struct Cx<'c, 'a, H: Host> {
    /// The stack.
    pub stack: &'c mut Stack<'a, H>,
    /// The sockets.
    pub udp: &'c mut Udp<'a>,
    /// The connections.
    #[cfg(feature = "tcp")]
    pub tcp: &'c mut crate::tcp::Tcp<'a, H>,
    /// What operations share.
    pub shared: &'c mut super::engine::Shared<'a>,
    /// Slot of the operation.
    pub op: u8,
    /// How far it is.
    pub progress: &'c mut Progress,
    /// Why it failed.
    pub detail: &'c mut Detail,
}

impl<'a, H: Host> Cx<'_, 'a, H> {
    /// The time of this pass.
    pub fn now(&self) -> Instant {
        self.stack.now
    }

    /// 32 random bits.
    pub fn random(&mut self) -> u32 {
        self.stack.host.random()
    }

    /// Opens a socket on an unpredictable port.
    pub fn open(&mut self) -> Result<Key> {
        self.udp.open(self.stack, Owner::Client(self.op))
    }

    /// Sends a datagram. Transient errors ([`TxError::is_transient`]) mean: poll again, which happens by itself.
    pub fn send(
        &mut self,
        socket: Key,
        dst: Endpoint,
        body: &[Span<'_, H::Memory>],
    ) -> core::result::Result<(), TxError> {
        self.udp.send(self.stack, socket, Some(dst), body, false)
    }
}

/// A client's state machine. After every call but `place`, `cancel` and `forget` it is polled, in the same pass and before
/// the next frame; what `datagram`, `icmp_error`, `echo_reply` and `dhcp` are told they only note: sending is `poll`'s.
pub trait Operation<H: Host> {
    /// Does what is due: sends, times out, ends.
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step;

    /// Says where a datagram belongs before its checksum is known: see [`crate::stack::landing::Expect`]. `head` is the
    /// front of the UDP payload, at most [`crate::stack::landing::HEAD`] bytes, `len` the payload's whole length.
    fn place(&self, shared: &Shared<'_>, flow: &Flow, head: &[u8], len: usize) -> Place<H::Memory> {
        let _ = (shared, flow, head, len);
        Place::Stage
    }

    /// The `nth` lowest range that is expected from `src` and not confirmed, for fragments that come before their first:
    /// only ranges with the client's usual header length. `None` when there are no more.
    fn guess(&self, shared: &Shared<'_>, src: Ipv4Addr, nth: usize) -> Option<Spot<H::Memory>> {
        let _ = (shared, src, nth);
        None
    }

    /// How long the pieces of one datagram may take: max(4 × RTT, 250 ms), 1 s before an RTT is known.
    fn patience(&self, shared: &Shared<'_>) -> Duration {
        let _ = shared;
        Duration::from_secs(1)
    }

    /// Takes a datagram that came whole and is just what was expected next: the short way of `place`, landing, `datagram`
    /// and `poll` in one call. Its checksum has not been looked at. `None`, and nothing has changed but unconfirmed bytes
    /// of a region: it is to go the long way.
    #[inline]
    fn usual(&mut self, cx: &mut Cx<'_, '_, H>, arrived: &Arrived<'_>) -> Option<Step> {
        let _ = (cx, arrived);
        None
    }

    /// Takes a datagram that came to one of its sockets.
    fn datagram(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>) {
        let _ = (cx, datagram);
    }

    /// Takes an ICMP error about a datagram of one of its sockets, or about an echo request.
    fn icmp_error(&mut self, cx: &mut Cx<'_, '_, H>, error: &IcmpError) {
        let _ = (cx, error);
    }

    /// Takes an echo reply; `true` if it was for this operation.
    fn echo_reply(&mut self, cx: &mut Cx<'_, '_, H>, reply: &EchoReply<'_>) -> bool {
        let _ = (cx, reply);
        false
    }

    /// Takes what the DHCP client it waits for has heard.
    #[cfg(feature = "dhcp")]
    fn dhcp(&mut self, cx: &mut Cx<'_, '_, H>, heard: super::dhcp::Heard, message: &[u8]) {
        let _ = (cx, heard, message);
    }

    /// Tells the peer that the operation is cancelled, as far as one frame can.
    fn cancel(&mut self, cx: &mut Cx<'_, '_, H>) {
        let _ = cx;
    }

    /// The operation has ended, and its result is no longer wanted: gives back what was kept for it.
    fn forget(&mut self, cx: &mut Cx<'_, '_, H>) {
        let _ = cx;
    }
}

/// A client that does nothing and fails at once.
#[derive(Debug)]
pub struct Nothing;

impl<H: Host> Operation<H> for Nothing {
    fn poll(&mut self, _: &mut Cx<'_, '_, H>) -> Step {
        Step::Done(Err(Error::NotSupported))
    }
}

#[cfg(any(test, feature = "sim"))]
impl<H: Host> Operation<H> for std::boxed::Box<dyn Operation<H>> {
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        (**self).poll(cx)
    }

    fn place(&self, shared: &Shared<'_>, flow: &Flow, head: &[u8], len: usize) -> Place<H::Memory> {
        (**self).place(shared, flow, head, len)
    }

    fn guess(&self, shared: &Shared<'_>, src: Ipv4Addr, nth: usize) -> Option<Spot<H::Memory>> {
        (**self).guess(shared, src, nth)
    }

    fn patience(&self, shared: &Shared<'_>) -> Duration {
        (**self).patience(shared)
    }

    fn datagram(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>) {
        (**self).datagram(cx, datagram);
    }

    fn icmp_error(&mut self, cx: &mut Cx<'_, '_, H>, error: &IcmpError) {
        (**self).icmp_error(cx, error);
    }

    fn echo_reply(&mut self, cx: &mut Cx<'_, '_, H>, reply: &EchoReply<'_>) -> bool {
        (**self).echo_reply(cx, reply)
    }

    fn cancel(&mut self, cx: &mut Cx<'_, '_, H>) {
        (**self).cancel(cx);
    }

    fn forget(&mut self, cx: &mut Cx<'_, '_, H>) {
        (**self).forget(cx);
    }
}

/// The error that an ICMP error means for an operation whose request it is about; `None` where it means nothing yet.
pub fn icmp_meaning(error: &IcmpError) -> Option<Error> {
    use crate::stack::icmp::ErrorKind;
    use crate::wire::icmpv4::Unreachable;
    match error.kind {
        // RFC 1122 §4.1.3.3, §3.2.2.1.
        ErrorKind::Unreachable(Unreachable::PORT | Unreachable::PROTOCOL) => Some(Error::Refused),
        ErrorKind::Unreachable(Unreachable::NET) => Some(Error::NetworkUnreachable),
        ErrorKind::Unreachable(_) => Some(Error::HostUnreachable),
        _ => None,
    }
}
