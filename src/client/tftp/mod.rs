//! TFTP (RFC 1350) with options (RFC 2347, 2348, 2349) and windows (RFC 7440): `get` receives a file, `put` sends one.
//! `transfer` is the way of both from the server's name to the end, `session` their dealings with the server, `receive`
//! and `send` what happens between. Beside them, `window` holds which blocks have come, `dest` where they go, `supply`
//! where they come from, `netascii` converts lines, `rtt` sets the timer, `dally` keeps what outlives a transfer.

// What the other direction or an open file asks for.
#![cfg_attr(not(all(feature = "file", feature = "put")), allow(dead_code))]

pub mod dally;
mod dest;
pub mod get;
mod netascii;
#[cfg(not(feature = "file"))]
mod no_pull;
#[cfg(feature = "put")]
pub mod put;
mod receive;
mod rtt;
#[cfg(feature = "put")]
mod send;
mod session;
#[cfg(feature = "put")]
mod supply;
mod transfer;
mod window;

#[cfg(test)]
mod tests;

#[cfg(feature = "file")]
use crate::client::file::pull::Pull;
use crate::storage::error::Error;
use crate::storage::time::Duration;

pub use crate::wire::tftp::Mode;
pub use dally::Shared;
pub(crate) use dest::Taken;
pub use get::{Get, Request};
#[cfg(not(feature = "file"))]
use no_pull::Pull;
#[cfg(feature = "put")]
pub use put::{Put, Request as PutRequest};

/// Window asked for when none is given, in blocks.
pub const DEFAULT_WINDOW: u16 = 32;
/// Largest window asked for: beyond it a block number of 16 bits could mean two blocks.
pub const MAX_WINDOW: u16 = 32_767;
/// Timeout asked for when none is given.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest timeout that can be asked for (RFC 2349).
const LONGEST_TIMEOUT: Duration = Duration::from_secs(255);
/// Failures in a row that are borne when no number is given.
pub const DEFAULT_RETRIES: u8 = 8;
/// How long a sink may take nothing when nothing is given.
pub const DEFAULT_SINK_STALL: Duration = Duration::from_secs(120);

/// Numbers of a transfer; 0 means: the best that works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Block size in bytes, 8 to 65464 (RFC 2348); never more than what can be received.
    pub blksize: u16,
    /// Window in blocks (RFC 7440); at most [`MAX_WINDOW`] is asked for.
    pub windowsize: u16,
    /// How long the server is to wait before it repeats (RFC 2349), at most 255 s; the longest wait here, too.
    pub timeout: Duration,
    /// How many requests in a row, or waits for the whole timeout, may go unanswered.
    pub retries: u8,
    /// Port of ours; 0: one that nobody can guess (RFC 1350 §4).
    pub local_port: u16,
}

impl Tuning {
    /// Whether the numbers are possible.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check(&self) -> Result<(), Error> {
        let block = self.blksize == 0 || (8..=65_464).contains(&self.blksize);
        if block && self.timeout <= LONGEST_TIMEOUT { Ok(()) } else { Err(Error::Invalid) }
    }

    /// The same with what is waited for and borne when nothing was given.
    fn settled(mut self) -> Tuning {
        if self.timeout == Duration::ZERO {
            self.timeout = DEFAULT_TIMEOUT;
        }
        if self.retries == 0 {
            self.retries = DEFAULT_RETRIES;
        }
        self
    }

    /// The timeout in whole seconds, at least one (RFC 2349).
    fn seconds(&self) -> u64 {
        (self.timeout + Duration::from_micros(999_999)).as_secs().max(1)
    }
}
