//! Bootlace: a network stack for code that runs before, or without, an operating system.

#![no_std]

#[cfg(any(test, feature = "sim"))]
extern crate std;

pub mod client;
pub mod ffi;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
pub mod stack;
pub mod storage;
pub mod udp;
pub mod wire;
