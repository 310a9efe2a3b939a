//! ARP (RFC 826): answering for our addresses, asking for others', and noticing who else claims ours (RFC 5227). What to
//! learn is decided in `neighbour`.

use super::Stack;
use super::egress::TxError;
use super::interface::{NicId, Probe, is_host_address};
use super::stats::Counter;
use crate::storage::host::{Host, LogEvent};
use crate::wire::arp::{self, Operation};
use crate::wire::ethernet::{self, Address, EtherType, HEADER_LEN, MIN_FRAME_LEN, TAGGED_HEADER_LEN, Tag};
use core::net::Ipv4Addr;

impl<'a, H: Host> Stack<'a, H> {
    /// Takes a received ARP packet.
    pub(super) fn receive_arp(&mut self, nic: NicId, payload: &[u8]) {
        let Ok(packet) = arp::Packet::parse(payload) else {
            self.stats.count(Counter::DropArpMalformed);
            return;
        };
        let (sender, mac, target) = (packet.sender_ip(), packet.sender_mac(), packet.target_ip());
        let now = self.now;
        let Some(interface) = self.interface_mut(nic) else { return };
        if !mac.is_unicast() || mac == interface.mac {
            self.stats.count(Counter::DropArpIgnored);
            return;
        }
        // RFC 5227 §2.1.1: while we probe, whoever sends from the address, or probes for it too, has it.
        if let Some(probe) = &mut interface.probe
            && (probe.addr == sender || (sender.is_unspecified() && probe.addr == target))
        {
            probe.conflict = true;
        }
        let (ours, own_mac) = (interface.owns(target), interface.mac);
        if interface.owns(sender) {
            self.stats.count(Counter::DropArpIgnored);
            self.host.log(LogEvent::AddressConflict, u64::from(nic.0), u64::from(sender.to_bits()));
            return;
        }
        let on_link = self.is_on_link(nic, sender);
        match packet.operation() {
            Operation::Request if ours => {
                if on_link && is_host_address(sender) {
                    self.neighbours.asked_by(now, nic, sender, mac);
                    self.neighbour_known(nic, sender, mac);
                }
                let answer = arp::Repr {
                    operation: Operation::Reply,
                    sender_mac: own_mac,
                    sender_ip: target,
                    target_mac: mac,
                    target_ip: sender,
                };
                // An answer that is lost is asked for again.
                let _ = self.send_arp(nic, mac, &answer);
            }
            _ if !is_host_address(sender) || !on_link => self.stats.count(Counter::DropArpIgnored),
            _ if packet.is_gratuitous() => {
                if self.neighbours.announced(now, nic, sender, mac) {
                    self.neighbour_known(nic, sender, mac);
                } else {
                    self.stats.count(Counter::DropArpIgnored);
                }
            }
            Operation::Reply if ours => {
                if self.neighbours.reply(now, nic, sender, mac) {
                    self.neighbour_known(nic, sender, mac);
                } else {
                    self.stats.count(Counter::DropArpIgnored);
                }
            }
            _ => self.stats.count(Counter::DropArpIgnored),
        }
    }

    /// Whether `addr` is a host we reach without a gateway through `nic`.
    fn is_on_link(&self, nic: NicId, addr: Ipv4Addr) -> bool {
        let connected = self.interface(nic).is_some_and(|i| i.addresses().iter().any(|c| c.contains(addr)));
        connected || self.routes.iter().any(|r| r.nic == nic && r.gateway.is_unspecified() && r.covers(addr))
    }

    /// Sends the frame that waited for a neighbour, and wakes those who try themselves.
    fn neighbour_known(&mut self, nic: NicId, addr: Ipv4Addr, mac: Address) {
        self.wake = true;
        self.queue.resolve(nic, addr, mac.0);
        self.flush_waiting();
    }

    /// Asks for a neighbour's hardware address: everybody, or `known` alone to confirm it (RFC 1122 §2.3.2.1).
    pub(super) fn ask_neighbour(&mut self, nic: NicId, addr: Ipv4Addr, known: Option<Address>) -> Result<(), TxError> {
        let interface = self.interface(nic).ok_or(TxError::NetworkDown)?;
        let request = arp::Repr {
            operation: Operation::Request,
            sender_mac: interface.mac,
            sender_ip: interface.source_for(addr),
            target_mac: Address::ZERO,
            target_ip: addr,
        };
        self.send_arp(nic, known.unwrap_or(Address::BROADCAST), &request)
    }

    /// Starts to watch for another host that has `addr`, and asks for it from no address (RFC 5227 §2.1.1).
    pub fn probe(&mut self, nic: NicId, addr: Ipv4Addr) -> Result<(), TxError> {
        let interface = self.interface_mut(nic).ok_or(TxError::NetworkDown)?;
        let fresh = interface.probe.is_none_or(|p| p.addr != addr);
        if fresh {
            interface.probe = Some(Probe { addr, conflict: false });
        }
        let request = arp::Repr {
            operation: Operation::Request,
            sender_mac: interface.mac,
            sender_ip: Ipv4Addr::UNSPECIFIED,
            target_mac: Address::ZERO,
            target_ip: addr,
        };
        self.send_arp(nic, Address::BROADCAST, &request)
    }

    /// Ends the watch; whether another host has the address.
    pub fn probe_result(&mut self, nic: NicId) -> bool {
        self.interface_mut(nic).and_then(|i| i.probe.take()).is_some_and(|p| p.conflict)
    }

    /// Announces an address of ours, so that others update what they know (RFC 5227 §2.3).
    pub fn announce(&mut self, nic: NicId, addr: Ipv4Addr) -> Result<(), TxError> {
        let mac = self.interface(nic).ok_or(TxError::NetworkDown)?.mac;
        let announcement = arp::Repr {
            operation: Operation::Request,
            sender_mac: mac,
            sender_ip: addr,
            target_mac: Address::ZERO,
            target_ip: addr,
        };
        self.send_arp(nic, Address::BROADCAST, &announcement)
    }

    fn send_arp(&mut self, nic: NicId, to: Address, packet: &arp::Repr) -> Result<(), TxError> {
        let interface = self.interface(nic).ok_or(TxError::NetworkDown)?;
        let link = ethernet::Repr { destination: to, source: interface.mac, ether_type: EtherType::ARP };
        let mut frame = [0u8; MIN_FRAME_LEN];
        let body = match interface.vlan {
            None => {
                let (head, body) = frame.split_first_chunk_mut::<HEADER_LEN>().ok_or(TxError::Invalid)?;
                *head = link.emit();
                body
            }
            Some(vlan) => {
                let (head, body) = frame.split_first_chunk_mut::<TAGGED_HEADER_LEN>().ok_or(TxError::Invalid)?;
                *head = link.emit_tagged(Tag::new(vlan));
                body
            }
        };
        *body.first_chunk_mut::<{ arp::PACKET_LEN }>().ok_or(TxError::Invalid)? = packet.emit();
        let sent = self.send_frame(nic, &frame);
        if sent == Err(TxError::Busy) && self.queue.has_room(nic, packet.target_ip) {
            let stored = self.queue.store(nic, packet.target_ip, frame.len(), true, |out| {
                out.copy_from_slice(&frame);
                Some(())
            });
            return if stored.stored { Ok(()) } else { sent };
        }
        sent
    }
}
