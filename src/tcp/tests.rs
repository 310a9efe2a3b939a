//! Packet scripts for TCP: the stack and TCP with one NIC and a clock in the test's hand, and a peer that is written out
//! segment by segment.

mod basic;
mod cases;
mod files;
mod odd;
mod pair;
mod recovery;
mod rig;
mod server;
mod streams;
mod trains;
