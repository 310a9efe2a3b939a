//! One NIC as the stack sees it: hardware address, MTU, link, addresses and groups.

use crate::storage::host::{Nic, NicCaps};
use crate::storage::time::Instant;
use crate::wire::ethernet::Address;
use core::net::Ipv4Addr;

/// Index of an interface in the stack's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicId(pub u8);

/// Addresses an interface can hold.
pub const ADDRESSES: usize = 4;
/// Reports sent for a group just joined: the first may be lost (RFC 2236 §3).
const UNSOLICITED_REPORTS: u8 = 2;
/// Multicast groups an interface can be a member of, beside 224.0.0.1.
pub const GROUPS: usize = 4;

/// An address with the length of its network prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// The address.
    pub addr: Ipv4Addr,
    /// Length of the network prefix in bits, 0 to 32.
    pub prefix: u8,
}

impl Cidr {
    /// The network mask as a number.
    pub fn mask(&self) -> u32 {
        mask(self.prefix)
    }

    /// Whether `addr` lies in the same network.
    pub fn contains(&self, addr: Ipv4Addr) -> bool {
        (addr.to_bits() ^ self.addr.to_bits()) & self.mask() == 0
    }

    /// The directed broadcast address; networks of one or two addresses have none (RFC 3021).
    pub fn broadcast(&self) -> Option<Ipv4Addr> {
        (self.prefix <= 30).then(|| Ipv4Addr::from_bits(self.addr.to_bits() | !self.mask()))
    }
}

/// The mask of a prefix of `prefix` bits; more than 32 counts as 32.
pub fn mask(prefix: u8) -> u32 {
    match 32u32.checked_sub(u32::from(prefix)) {
        Some(shift) => u32::MAX.checked_shl(shift).unwrap_or(0),
        None => u32::MAX,
    }
}

/// Whether `addr` can be the address of one host: not unspecified, loopback, multicast, reserved or broadcast.
pub fn is_host_address(addr: Ipv4Addr) -> bool {
    let [first, ..] = addr.octets();
    first != 0 && first != 127 && first < 224
}

/// Where a received packet was sent to, seen from one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// An address of ours, or any while the interface has none.
    Unicast,
    /// Limited or directed broadcast.
    Broadcast,
    /// A group the interface is a member of.
    Multicast,
}

/// A watch for another host that claims an address (RFC 5227).
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// The address watched.
    pub addr: Ipv4Addr,
    /// Whether another host has answered for it.
    pub conflict: bool,
}

/// A multicast group joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The group.
    pub addr: Ipv4Addr,
    /// When the next report is due.
    pub report: Instant,
    /// Reports still to be sent.
    pub reports: u8,
}

/// A NIC and what is configured on it.
#[derive(Debug)]
pub struct Interface<N> {
    /// The driver.
    pub nic: N,
    /// What the driver can do.
    pub caps: NicCaps,
    /// Hardware address.
    pub mac: Address,
    /// Largest IP packet sent, in bytes.
    pub mtu: u16,
    /// Largest IP packet that the NIC takes, in bytes; at least `mtu`.
    pub frame_mtu: u16,
    /// Whether the link is up.
    pub link: bool,
    /// How often the link has come up; wraps.
    pub link_ups: u8,
    /// VLAN id that frames are tagged with (IEEE 802.1Q), none for untagged.
    pub vlan: Option<u16>,
    /// Set while an address is being probed.
    pub probe: Option<Probe>,
    addresses: heapless::Vec<Cidr, ADDRESSES>,
    groups: heapless::Vec<Group, GROUPS>,
}

impl<N: Nic> Interface<N> {
    /// An interface without addresses, link up.
    pub fn new(nic: N, mac: Address, mtu: u16, vlan: Option<u16>) -> Self {
        let caps = nic.caps();
        Interface {
            nic,
            caps,
            mac,
            mtu,
            frame_mtu: mtu,
            link: true,
            link_ups: 0,
            vlan,
            probe: None,
            addresses: heapless::Vec::new(),
            groups: heapless::Vec::new(),
        }
    }

    /// The addresses, in order of their adding.
    pub fn addresses(&self) -> &[Cidr] {
        &self.addresses
    }

    /// The groups joined.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Adds an address or changes the prefix of one that is there; `false` when the list is full.
    pub fn add_address(&mut self, cidr: Cidr) -> bool {
        if let Some(old) = self.addresses.iter_mut().find(|c| c.addr == cidr.addr) {
            *old = cidr;
            return true;
        }
        self.addresses.push(cidr).is_ok()
    }

    /// Removes an address; `false` when it was not there.
    pub fn remove_address(&mut self, addr: Ipv4Addr) -> bool {
        let before = self.addresses.len();
        self.addresses.retain(|c| c.addr != addr);
        self.addresses.len() != before
    }

    /// The groups joined.
    pub fn each_group(&mut self) -> impl Iterator<Item = &mut Group> {
        self.groups.iter_mut()
    }

    /// A group joined.
    pub fn group_mut(&mut self, addr: Ipv4Addr) -> Option<&mut Group> {
        self.groups.iter_mut().find(|g| g.addr == addr)
    }

    /// Joins a group, whose first report is due at `now`; `false` when the list is full.
    pub fn join(&mut self, addr: Ipv4Addr, now: Instant) -> bool {
        if self.group_mut(addr).is_some() {
            return true;
        }
        let joined = self.groups.push(Group { addr, report: now, reports: UNSOLICITED_REPORTS }).is_ok();
        self.update_filter();
        joined
    }

    /// Leaves a group; `false` when it was not joined.
    pub fn leave(&mut self, addr: Ipv4Addr) -> bool {
        let before = self.groups.len();
        self.groups.retain(|g| g.addr != addr);
        self.update_filter();
        self.groups.len() != before
    }

    fn update_filter(&mut self) {
        let mut macs: heapless::Vec<[u8; 6], GROUPS> = heapless::Vec::new();
        for group in &self.groups {
            // As many as there are groups: the push cannot fail.
            let _ = macs.push(Address::for_group(group.addr).0);
        }
        self.nic.set_rx_filter(&macs);
    }

    /// Whether `addr` is one of ours.
    #[inline]
    pub fn owns(&self, addr: Ipv4Addr) -> bool {
        self.addresses.iter().any(|c| c.addr == addr)
    }

    /// Whether `addr` is one of ours, or the broadcast address of a network of ours.
    #[inline]
    pub fn owns_or_broadcasts(&self, addr: Ipv4Addr) -> bool {
        self.addresses.iter().any(|c| c.addr == addr || c.broadcast() == Some(addr))
    }

    /// What kind of destination `dst` is for this interface; `None`: not for us.
    #[inline]
    pub fn cast(&self, dst: Ipv4Addr) -> Option<Cast> {
        if self.owns(dst) {
            return Some(Cast::Unicast);
        }
        if dst == Ipv4Addr::BROADCAST || self.addresses.iter().any(|c| c.broadcast() == Some(dst)) {
            return Some(Cast::Broadcast);
        }
        if dst.is_multicast() {
            let member = dst == Ipv4Addr::new(224, 0, 0, 1) || self.groups.iter().any(|g| g.addr == dst);
            return member.then_some(Cast::Multicast);
        }
        // RFC 1542 §3.1.1: before an address is known, replies come by unicast to the address being offered.
        self.addresses.is_empty().then_some(Cast::Unicast)
    }

    /// The address to send from towards `dst`: the one in its network, else the first; unspecified if there is none.
    pub fn source_for(&self, dst: Ipv4Addr) -> Ipv4Addr {
        let near = self.addresses.iter().find(|c| c.contains(dst)).or_else(|| self.addresses.first());
        near.map_or(Ipv4Addr::UNSPECIFIED, |c| c.addr)
    }
}
