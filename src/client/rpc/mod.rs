//! ONC RPC (RFC 5531) as clients use it: `channel` sends calls over UDP and TCP, `tape` reads the records that come over
//! TCP, `rtt` sets the timer, `caller` drives one call at a time to its reply. What procedures there are, and what their results mean, is left to the
//! protocols above; several calls at once are kept by `nfs::pipeline`.
//!
//! A reply counts only if it comes from the address and port that the call went to, and carries the transaction number
//! of a call that waits. Everything else is counted, and neither resets a timer nor ends anything.

pub mod caller;
pub mod channel;
pub mod rtt;
#[cfg(feature = "tcp")]
pub mod tape;

use crate::client::engine::Shared;
use crate::client::operation::{Cx, Detail, DetailKind, Progress};
use crate::stack::Stack;
use crate::stack::egress::TxError;
use crate::stack::landing::Landed;
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host, Span};
use crate::storage::slots::Key;
use crate::storage::time::Duration;
use crate::storage::time::Instant;
use crate::udp::{Meta, Owner, Udp};
use crate::wire::rpc::{Auth, Body};
use core::net::Ipv4Addr;

/// Longest header of a call with the credentials that are sent here, in bytes.
pub const CALL_HEADER: usize = 80;
/// Length of the header of a successful reply whose verifier is empty, in bytes.
pub const REPLY_HEADER: usize = 24;
/// How long a server may say nothing when nothing is given.
pub const DEFAULT_PATIENCE: Duration = Duration::from_secs(30);
/// How long a server may say nothing that has not said anything yet, at most.
pub const FIRST_PATIENCE: Duration = Duration::from_secs(10);
/// Replies to one call that do not parse before it fails.
pub const MAX_MALFORMED: u8 = 8;

/// What an operation works with while it is called, but for what operations share: that is borrowed beside it.
pub struct Net<'n, 'a, H: Host> {
    /// The stack.
    pub stack: &'n mut Stack<'a, H>,
    /// The sockets.
    pub udp: &'n mut Udp<'a>,
    /// The connections.
    #[cfg(feature = "tcp")]
    pub tcp: &'n mut crate::tcp::Tcp<'a, H>,
    /// Slot of the operation.
    pub op: u8,
    /// How far it is.
    pub progress: &'n mut Progress,
    /// Why it failed.
    pub detail: &'n mut Detail,
}

impl<'n, 'a, H: Host> Net<'n, 'a, H> {
    /// The two parts of `cx`.
    pub fn split(cx: &'n mut Cx<'_, 'a, H>) -> (Self, &'n mut Shared<'a>) {
        let net = Net {
            stack: cx.stack,
            udp: cx.udp,
            #[cfg(feature = "tcp")]
            tcp: cx.tcp,
            op: cx.op,
            progress: cx.progress,
            detail: cx.detail,
        };
        (net, cx.shared)
    }

    /// The same for a shorter time.
    pub fn again(&mut self) -> Net<'_, 'a, H> {
        Net {
            stack: self.stack,
            udp: self.udp,
            #[cfg(feature = "tcp")]
            tcp: self.tcp,
            op: self.op,
            progress: self.progress,
            detail: self.detail,
        }
    }

    /// Connections there is memory for.
    pub fn connections(&self) -> usize {
        #[cfg(feature = "tcp")]
        return self.tcp.capacity();
        #[cfg(not(feature = "tcp"))]
        0
    }

    /// The time of this pass.
    pub fn now(&self) -> Instant {
        self.stack.now
    }

    /// 32 random bits.
    pub fn random(&mut self) -> u32 {
        self.stack.host.random()
    }

    fn open(&mut self) -> Result<Key, Error> {
        self.udp.open(self.stack, Owner::Client(self.op))
    }

    fn send(&mut self, socket: Key, dst: Endpoint, body: &[Span<'_, H::Memory>]) -> Result<(), TxError> {
        self.udp.send(self.stack, socket, Some(dst), body, false)
    }
}

/// A reply.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'d> {
    /// Its bytes. If its data landed, only what comes before that is sure to be here.
    pub payload: &'d [u8],
    /// Its length.
    pub len: usize,
    /// What of its data went straight to a region.
    pub landed: Option<Landed>,
    /// The datagram it came in, unless over TCP.
    pub meta: Option<Meta>,
}

/// As whom calls are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Send no credentials (`AUTH_NONE`).
    pub nobody: bool,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl User {
    /// The credentials that go into calls.
    pub fn auth(&self) -> Auth<'static> {
        if self.nobody {
            return Auth::Null;
        }
        Auth::Unix { stamp: 0, machine: b"bootlace", uid: self.uid, gid: self.gid, groups: &[] }
    }
}

/// What it means that a server did not carry a call out (RFC 5531 §9): the error, the code and the text of its detail.
/// Codes: `accept_stat`; 256 for another version of RPC; 512 + `auth_stat` for refused credentials.
pub fn refusal(body: &Body<'_>) -> Option<(Error, u32, &'static [u8])> {
    Some(match body {
        Body::Success(_) => return None,
        Body::ProgramUnavailable => (Error::NotSupported, 1, b"program unavailable"),
        Body::ProgramMismatch { .. } => (Error::NotSupported, 2, b"program version mismatch"),
        Body::ProcedureUnavailable => (Error::NotSupported, 3, b"procedure unavailable"),
        Body::GarbageArgs => (Error::Protocol, 4, b"garbage arguments"),
        Body::SystemError => (Error::Remote, 5, b"system error"),
        Body::RpcMismatch { .. } => (Error::NotSupported, 0x100, b"RPC version mismatch"),
        Body::AuthError { reason } => (Error::Denied, 0x200_u32.saturating_add(*reason), auth_text(*reason)),
    })
}

/// The text of an `auth_stat`.
fn auth_text(reason: u32) -> &'static [u8] {
    match reason {
        1 | 2 => b"credentials rejected",
        3 | 4 => b"verifier rejected",
        5 => b"credentials too weak",
        _ => b"authentication failed",
    }
}

/// Notes a refusal; returns its error.
pub fn note_refusal(detail: &mut Detail, from: Ipv4Addr, body: &Body<'_>) -> Option<Error> {
    let (error, code, text) = refusal(body)?;
    detail.set(DetailKind::Rpc, code, Some(from), text);
    Some(error)
}
