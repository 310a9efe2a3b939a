//! Raw hooks: who wants frames of an EtherType or packets of an IP protocol that the stack does not handle itself.

use crate::wire::ethernet::EtherType;
use crate::wire::ipv4::Protocol;

/// What a hook takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Frames of an EtherType, VLAN tag aside.
    EtherType(EtherType),
    /// IPv4 packets of a protocol, headers included. ICMP is handled by the stack as well.
    Protocol(Protocol),
}

/// The table.
#[derive(Debug)]
pub struct Hooks<'a> {
    slots: &'a mut [Option<Hook>],
}

impl<'a> Hooks<'a> {
    /// An empty table.
    pub fn new(slots: &'a mut [Option<Hook>]) -> Self {
        slots.fill(None);
        Hooks { slots }
    }

    /// Adds a hook; returns its index. `Err(true)`: there is one for that already; `Err(false)`: no slot.
    pub fn add(&mut self, hook: Hook) -> Result<usize, bool> {
        if self.find(hook).is_some() {
            return Err(true);
        }
        let at = self.slots.iter().position(Option::is_none).ok_or(false)?;
        *self.slots.get_mut(at).ok_or(false)? = Some(hook);
        Ok(at)
    }

    /// Removes the hook at `index`.
    pub fn remove(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = None;
        }
    }

    /// The index of a hook.
    #[inline]
    pub fn find(&self, hook: Hook) -> Option<usize> {
        self.slots.iter().position(|s| *s == Some(hook))
    }
}
