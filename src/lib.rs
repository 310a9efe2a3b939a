//! Bootlace: a network stack for code that runs before, or without, an operating system.

#![no_std]

#[cfg(any(test, feature = "sim"))]
extern crate std;

pub mod ffi;
pub mod stack;
pub mod storage;
pub mod wire;
