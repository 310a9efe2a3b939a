//! Clients: protocols that move files, find addresses and ask for them. Each is a state machine without I/O that lives
//! in an operation; `ops` schedules them, `engine` leads received frames to them.

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

#[cfg(feature = "dhcp")]
pub mod dhcp;
pub mod dns;
pub mod engine;
mod expectations;
#[cfg(feature = "file")]
pub mod file;
pub mod found;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "nfs")]
pub mod nfs;
pub mod operation;
pub mod ops;
#[cfg(feature = "ping")]
pub mod ping;
#[cfg(any(feature = "file", feature = "nfs", feature = "http"))]
pub mod reader;
#[cfg(feature = "nfs")]
pub mod rpc;
#[cfg(feature = "tftp")]
pub mod tftp;

#[cfg(feature = "tcp")]
pub mod stream;
#[cfg(test)]
mod tests;
