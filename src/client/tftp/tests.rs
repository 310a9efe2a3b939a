//! TFTP as packet scripts, and over the simulated link.

mod scripts;
#[cfg(feature = "put")]
mod sending;
mod simulated;
