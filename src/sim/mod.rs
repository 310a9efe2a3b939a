//! A host, a NIC and a link on virtual time: what tests, fuzzers and the model benchmarks run the engine on. Never part
//! of the shipped library.

pub mod blocks;
pub mod host;
#[cfg(feature = "http")]
pub mod http_server;
pub mod link;
#[cfg(feature = "nfs")]
pub mod nfs_server;
#[cfg(all(feature = "nfs", feature = "tcp"))]
pub mod nfs_stream;
pub mod packets;
pub mod rig;
#[cfg(feature = "tftp")]
pub mod tftp_server;
