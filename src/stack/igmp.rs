//! Membership of multicast groups (RFC 2236): reports when a group is joined and when a router asks, leaves when it is
//! left. Which groups an interface has is kept in `interface`; the format is `wire::igmp`'s.

use super::Stack;
use super::egress::TxError;
use super::ingress::Packet;
use super::interface::NicId;
use super::stats::Counter;
use crate::storage::checksum::Sum;
use crate::storage::error::{Error, Result};
use crate::storage::host::{Host, random_below};
use crate::storage::time::{Duration, Instant};
use crate::wire::ethernet::{self, Address, EtherType, MIN_FRAME_LEN, Tag};
use crate::wire::igmp::{ALL_HOSTS, ALL_ROUTERS, MESSAGE_LEN, Message};
use crate::wire::ipv4::{self, Protocol};
use core::net::Ipv4Addr;

/// Longest time between the reports of a group just joined (RFC 2236 §8.10).
const UNSOLICITED_INTERVAL: Duration = Duration::from_secs(10);

impl<'a, H: Host> Stack<'a, H> {
    /// Joins a group on an interface and reports it. 224.0.0.1 is every host's and is never reported (RFC 2236 §6).
    ///
    /// # Errors
    /// [`Error::Invalid`]: not a group; [`Error::NetworkDown`]: no such interface; [`Error::NoSlot`]: it is in as many
    /// groups as it can be.
    pub fn join(&mut self, nic: NicId, group: Ipv4Addr) -> Result<()> {
        if !group.is_multicast() {
            return Err(Error::Invalid);
        }
        let now = self.now;
        let interface = self.interface_mut(nic).ok_or(Error::NetworkDown)?;
        if group == ALL_HOSTS {
            return Ok(());
        }
        if !interface.join(group, now) {
            return Err(Error::NoSlot);
        }
        self.igmp_next = now;
        self.tick_igmp();
        Ok(())
    }

    /// Leaves a group and says so.
    ///
    /// # Errors
    /// [`Error::NetworkDown`]: no such interface; [`Error::NotConnected`]: it is not in that group.
    pub fn leave(&mut self, nic: NicId, group: Ipv4Addr) -> Result<()> {
        if !self.interface_mut(nic).ok_or(Error::NetworkDown)?.leave(group) {
            return Err(Error::NotConnected);
        }
        // A leave that is lost costs the router one query.
        let _ = self.send_igmp(nic, ALL_ROUTERS, Message::Leave { group });
        Ok(())
    }

    /// Notes when the next report is due.
    fn plan_igmp(&mut self) {
        let reports = self.each_interface().flat_map(|(_, i)| i.groups()).map(|g| g.report);
        self.igmp_next = reports.min().unwrap_or(Instant::NEVER);
    }

    /// Sends the reports that are due.
    pub(super) fn tick_igmp(&mut self) {
        let now = self.now;
        if now < self.igmp_next {
            return;
        }
        for index in 0..=u8::MAX {
            let nic = NicId(index);
            let Some(interface) = self.interface(nic) else {
                if usize::from(index) >= self.interfaces.len() {
                    break;
                }
                continue;
            };
            let due: Option<Ipv4Addr> = interface.groups().iter().find(|g| g.report <= now).map(|g| g.addr);
            let Some(group) = due else { continue };
            let sent = self.send_igmp(nic, group, Message::Report { group });
            let wait = random_below(&mut self.host, UNSOLICITED_INTERVAL.as_micros() as u32);
            let Some(member) = self.interface_mut(nic).and_then(|i| i.group_mut(group)) else { continue };
            if sent == Err(TxError::Busy) {
                // In the next pass, when `blocked` wakes it.
                continue;
            }
            member.reports = member.reports.saturating_sub(1);
            member.report = match member.reports {
                0 => Instant::NEVER,
                _ => now + Duration::from_micros(u64::from(wait)),
            };
        }
        self.plan_igmp();
    }

    /// Takes a received IGMP message.
    #[inline(never)]
    pub fn receive_igmp(&mut self, packet: &Packet<'_>) {
        let Ok(message) = Message::parse(packet.payload) else { return self.stats.count(Counter::DropIgmpIgnored) };
        if !Sum::of(packet.payload).holds() {
            return self.stats.count(Counter::DropIgmpIgnored);
        }
        let (now, nic) = (self.now, packet.nic);
        let wait = self.host.random();
        let Some(interface) = self.interface_mut(nic) else { return };
        match message {
            // RFC 2236 §3: an answer after a random time, unless one is due before anyway.
            Message::Query { group: asked, max_response_ds } => {
                let most = Duration::from_millis(u64::from(max_response_ds).saturating_mul(100));
                let wait = u64::from(wait).wrapping_mul(most.as_micros()) >> 32;
                for group in interface.each_group().filter(|g| asked.is_unspecified() || g.addr == asked) {
                    group.report = group.report.min(now + Duration::from_micros(wait));
                    group.reports = group.reports.max(1);
                }
            }
            // Another member has answered.
            Message::Report { group } => {
                if let Some(member) = interface.group_mut(group) {
                    member.report = Instant::NEVER;
                    member.reports = 0;
                }
            }
            Message::Leave { .. } => self.stats.count(Counter::DropIgmpIgnored),
        }
        self.plan_igmp();
    }

    /// Sends a message with a time to live of 1 and the router alert option (RFC 2236 §2).
    fn send_igmp(&mut self, nic: NicId, dst: Ipv4Addr, message: Message) -> core::result::Result<(), TxError> {
        let identification = self.next_ident();
        let interface = self.interface(nic).ok_or(TxError::NetworkDown)?;
        let repr = ipv4::Repr {
            source: interface.source_for(dst),
            destination: dst,
            protocol: Protocol::IGMP,
            payload_len: MESSAGE_LEN as u16,
            tos: 0xc0,
            ttl: 1,
            identification,
            dont_fragment: false,
            more_fragments: false,
            fragment_offset: 0,
        };
        let link =
            ethernet::Repr { destination: Address::for_group(dst), source: interface.mac, ether_type: EtherType::IPV4 };
        let mut frame: heapless::Vec<u8, MIN_FRAME_LEN> = heapless::Vec::new();
        let headed = match interface.vlan {
            None => frame.extend_from_slice(&link.emit()),
            Some(vlan) => frame.extend_from_slice(&link.emit_tagged(Tag::new(vlan))),
        };
        let header = repr.emit_router_alert(Sum::of(&repr.emit_router_alert([0; 2])).to_field());
        let body = message.emit(Sum::of(&message.emit([0; 2])).to_field());
        if headed.and_then(|()| frame.extend_from_slice(&header)).and_then(|()| frame.extend_from_slice(&body)).is_err()
        {
            return Err(TxError::Invalid);
        }
        self.send_frame(nic, &frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::packets::{self, Station};
    use crate::sim::rig::Rig;
    use crate::wire::ethernet::Frame;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 129, 2, 3);

    fn messages(rig: &mut Rig) -> std::vec::Vec<(Address, Ipv4Addr, Message)> {
        let parse = |bytes: std::vec::Vec<u8>| {
            let frame = Frame::parse(&bytes).ok()?;
            let ip = ipv4::Packet::parse(frame.payload()).ok()?;
            if ip.protocol() != Protocol::IGMP {
                return None;
            }
            assert!(Sum::of(ip.header_bytes()).holds() && Sum::of(ip.payload()).holds());
            assert_eq!((ip.ttl(), ip.options()), (1, &[148, 4, 0, 0][..]));
            Some((frame.destination(), ip.destination(), Message::parse(ip.payload()).unwrap()))
        };
        rig.sent().into_iter().filter_map(parse).collect()
    }

    fn from_router(rig: &mut Rig, dst: Ipv4Addr, message: Message) {
        let bytes = message.emit(Sum::of(&message.emit([0; 2])).to_field());
        let packet = packets::ipv4_with(Station::new(1).ip, dst, Protocol::IGMP, &bytes, |r| r.ttl = 1);
        rig.input(&packets::ethernet(Address::for_group(dst), Station::new(1).mac, EtherType::IPV4, &packet));
    }

    #[test]
    fn a_group_is_reported_twice_when_joined_and_left_with_a_word() {
        let mut rig = Rig::new(1);
        let nic = rig.nic;
        let mac = Address([1, 0, 0x5e, 1, 2, 3]);
        rig.engine.stack.join(nic, GROUP).unwrap();
        assert_eq!(messages(&mut rig), [(mac, GROUP, Message::Report { group: GROUP })]);
        assert_eq!(rig.wire.borrow().groups, [mac.0]);
        rig.advance(10_000);
        assert_eq!(messages(&mut rig).len(), 1);
        rig.advance(100_000);
        assert_eq!(messages(&mut rig), []);
        rig.engine.stack.leave(nic, GROUP).unwrap();
        let all_routers = Address([1, 0, 0x5e, 0, 0, 2]);
        assert_eq!(messages(&mut rig), [(all_routers, ALL_ROUTERS, Message::Leave { group: GROUP })]);
        assert!(rig.wire.borrow().groups.is_empty());
        assert_eq!(rig.engine.stack.leave(nic, GROUP), Err(Error::NotConnected));
        assert_eq!(rig.engine.stack.join(nic, Ipv4Addr::new(10, 0, 0, 1)), Err(Error::Invalid));
        for n in 0..4 {
            rig.engine.stack.join(nic, Ipv4Addr::new(239, 0, 0, n)).unwrap();
        }
        assert_eq!(rig.engine.stack.join(nic, GROUP), Err(Error::NoSlot));
    }

    #[test]
    fn a_query_is_answered_in_time_unless_another_member_does() {
        let mut rig = Rig::new(2);
        let nic = rig.nic;
        rig.engine.stack.join(nic, GROUP).unwrap();
        rig.advance(30_000);
        messages(&mut rig);
        let ask = Message::Query { group: Ipv4Addr::UNSPECIFIED, max_response_ds: 20 };
        from_router(&mut rig, ALL_HOSTS, ask);
        rig.advance(2_000);
        assert_eq!(messages(&mut rig).len(), 1);
        rig.advance(20_000);
        assert_eq!(messages(&mut rig), []);
        from_router(&mut rig, ALL_HOSTS, ask);
        from_router(&mut rig, GROUP, Message::Report { group: GROUP });
        rig.advance(20_000);
        assert_eq!(messages(&mut rig), []);
        // For another group.
        from_router(&mut rig, ALL_HOSTS, Message::Query { group: Ipv4Addr::new(239, 9, 9, 9), max_response_ds: 20 });
        rig.advance(20_000);
        assert_eq!(messages(&mut rig), []);
    }

    #[test]
    fn a_busy_nic_gets_the_report_in_the_next_pass() {
        use crate::storage::host::SendError;
        let mut rig = Rig::new(3);
        let nic = rig.nic;
        rig.wire.borrow_mut().script.push_back(Some(SendError::Busy));
        rig.engine.stack.join(nic, GROUP).unwrap();
        assert_eq!(messages(&mut rig), []);
        rig.engine.tick();
        rig.engine.tick();
        assert_eq!(messages(&mut rig).len(), 1);
    }
}
