//! The lane of a connection: of the segments behind the first, Ethernet and IPv4 look at lengths, identification and checksum
//! only, and nobody looks for their connection. What [`crate::udp::lane`] is for datagrams.
//!
//! A lane holds until anything changes that decided whom its frames are for: see [`crate::stack::Stack::version`].

use crate::stack::front::Front;
use crate::storage::slots::Key;

/// The lane of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) front: Front,
    pub(super) key: Key,
}
