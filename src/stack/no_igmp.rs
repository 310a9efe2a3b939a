//! What stands for [`super::igmp`] where no groups are joined (feature `mcast`).

use super::Stack;
use super::ingress::Packet;
use super::stats::Counter;
use crate::storage::host::Host;

impl<H: Host> Stack<'_, H> {
    pub(super) fn tick_igmp(&mut self) {}

    /// Counts a received IGMP message.
    pub fn receive_igmp(&mut self, _: &Packet<'_>) {
        self.stats.count(Counter::DropIgmpIgnored);
    }
}
