//! Memory, time and the traits of the host: what every layer above stands on. Knows no protocol.

pub mod checksum;
pub mod error;
pub mod host;
pub mod ranges;
pub mod ring;
pub mod saturating;
pub mod slots;
pub mod time;
