//! What is left of lookups when the `dns` feature is off: dotted addresses.

use super::{Resolved, literal};
use crate::client::operation::{Cx, Datagram};
use crate::stack::icmp::IcmpError;
use crate::storage::error::Error;
use crate::storage::host::Host;

/// Reads dotted addresses; names are [`Error::NotSupported`].
#[derive(Clone, Debug, Default)]
pub struct Resolve;

impl Resolve {
    /// A lookup that has not begun.
    pub fn new() -> Self {
        Resolve
    }

    /// Reads the address.
    pub fn poll<H: Host>(&mut self, _: &mut Cx<'_, '_, H>, name: &[u8]) -> Resolved {
        literal(name).map_or(Resolved::Failed(Error::NotSupported), Resolved::Ready)
    }

    /// Does nothing.
    pub fn datagram<H: Host>(&mut self, _: &mut Cx<'_, '_, H>, _: &[u8], _: &Datagram<'_>) {}

    /// Does nothing.
    pub fn icmp_error<H: Host>(&mut self, _: &mut Cx<'_, '_, H>, _: &IcmpError) {}

    /// Does nothing.
    pub fn cancel<H: Host>(&mut self, _: &mut Cx<'_, '_, H>) {}
}
