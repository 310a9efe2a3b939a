//! TFTP as packet scripts, and over the simulated link.

mod scripts;
mod sending;
mod simulated;
