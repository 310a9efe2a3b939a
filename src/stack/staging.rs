//! Buffers for datagrams that are put together apart, because they land in no region. Who gets one, and for how long, is
//! for [`super::landing`].

use super::interface::NicId;
use crate::wire::{ethernet, ipv4};

/// Bytes of rebuilt headers in front of a staged datagram: Ethernet and IPv4.
pub const HEADROOM: usize = ethernet::HEADER_LEN + ipv4::HEADER_LEN;

/// Memory for one datagram that is put together apart.
#[derive(Debug)]
pub struct Staging<'a> {
    pub(super) bytes: &'a mut [u8],
    pub(super) busy: bool,
}

impl<'a> Staging<'a> {
    /// A free buffer over `bytes`: [`HEADROOM`] and the longest payload that is to be put together.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Staging { bytes, busy: false }
    }
}

/// A staged datagram on its way to its receiver.
#[derive(Debug)]
pub struct StagedDatagram<'a> {
    /// Its slot.
    pub index: usize,
    /// Interface it came in on.
    pub nic: NicId,
    pub(super) bytes: &'a mut [u8],
    pub(super) len: usize,
    /// Its transport checksum holds.
    pub sum_ok: bool,
}

impl StagedDatagram<'_> {
    /// Ethernet header, IPv4 header, payload.
    pub fn frame(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }
}
