//! The C ABI, one file for each section of `bootlace.h`; their order is in `build.rs`. The only place where `unsafe`
//! may stand: everything below works on slices and on the host traits of `storage`.
//!
//! What belongs to no section: `guard` (the head of a stack: who may call what when), `arena` (who gets which part of
//! the block), `region` (the caller's memory), `handle`, `structs` (structs that grow), `run` (passes and upcalls).

#![allow(unsafe_code)]
#![allow(non_camel_case_types)] // C's names.
#![allow(clippy::missing_safety_doc)] // What C must keep is said in each function's text, for the header.
#![allow(clippy::too_many_arguments)]

pub mod addr;
pub mod config;
#[cfg(feature = "dhcp")]
pub mod dhcp;
pub mod dns;
#[cfg(any(feature = "file", feature = "nfs", feature = "http"))]
pub mod file;
pub mod hook;
pub mod host;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "dns")]
pub mod lookup;
#[cfg(feature = "mcast")]
pub mod mcast;
pub mod net;
#[cfg(feature = "nfs")]
pub mod nfs;
pub mod nic;
pub mod op;
#[cfg(feature = "ping")]
pub mod ping;
#[cfg(feature = "put")]
pub mod put;
pub mod results;
pub mod sink;
pub mod stack;
pub mod stats;
#[cfg(feature = "tcp")]
pub mod tcp;
#[cfg(feature = "tftp")]
pub mod tftp;
pub mod udp;

mod arena;
mod guard;
mod handle;
mod region;
mod run;
mod structs;

#[cfg(all(feature = "panic-handler", target_arch = "arm"))]
mod aeabi;
#[cfg(all(feature = "panic-handler", not(test)))]
mod panic;
