//! Listeners: connections that come from others, kept in a backlog until they are accepted (RFC 9293 §3.10.2, §3.10.7.2).

use super::options::Options;
use crate::storage::host::Endpoint;

/// A listener.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Where it listens: address unspecified for any of ours.
    pub(super) local: Endpoint,
    /// Most connections that are not accepted yet, half open ones included.
    pub(super) backlog: u16,
    /// What its connections begin with.
    pub(super) options: Options,
    /// Whether there is one to accept that its user was not told of.
    pub(super) fresh: bool,
}
