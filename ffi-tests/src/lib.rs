//! The test laboratory: test hosts in network namespaces, real servers, a forwarder that delays, drops, reorders and
//! duplicates, and files with known contents. The tests in `tests/` drive the C programs of the project with it.
//!
//! A [`Lab`] is a network and mount namespace of the calling thread. Every process it starts lives in there and ends
//! with it; nothing reaches the machine's own network. Needs root. Where that is missing a test says `skipped: why` and
//! returns; with `CI=true` in the environment that is a failure.

pub mod files;
pub mod forward;
pub mod lab;
pub mod process;
pub mod programs;
pub mod servers;
pub mod u_boot;

pub use files::TestFile;
pub use forward::{End, Forwarder, Way};
pub use lab::{Lab, Peer, skip};
pub use process::{Finished, Process};

/// Address of the server end in every lab.
pub const SERVER: &str = "10.77.0.1";
/// Address given to the client end where it is set by hand.
pub const CLIENT: &str = "10.77.0.2";

/// SplitMix64: the laboratory's only source of chance, so that a seed replays a run.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator whose sequence is fixed by `seed`.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// True with a probability of `ppm` parts in a million.
    pub fn chance(&mut self, ppm: u32) -> bool {
        self.next_u64() % 1_000_000 < u64::from(ppm)
    }
}
