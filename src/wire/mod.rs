//! Bytes to values and back, one packet format a file. No state, no time, no checksums (those are sums over slices, in
//! `storage`). Parsing has two steps: a view checks lengths once, then its accessors cannot fail.

#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

pub mod arp;
pub mod cursor;
pub mod dhcp;
pub mod dns;
pub mod ethernet;
pub mod icmpv4;
pub mod igmp;
pub mod ipv4;
pub mod mount;
pub mod nfs3;
pub mod portmap;
pub mod rpc;
pub mod tcp;
pub mod tftp;
pub mod udp;
pub mod xdr;

#[cfg(test)]
mod testing;

/// Why bytes are not a packet of the expected format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A field or the data it announces ends beyond the bytes given.
    Truncated,
    /// A field has a value the format does not allow.
    Malformed,
    /// The buffer to emit into is too small.
    NoRoom,
}

/// Result of parsing or emitting.
pub type Result<T> = core::result::Result<T, Error>;
