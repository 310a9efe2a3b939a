//! Trains: packets that leave one way behind each other and differ in identification, in one field of the transport
//! header and in what they carry, but not in its length: the full segments of a stream. Everything else is worked out
//! once, of headers a few words are written for each.

use super::Stack;
use super::egress::{self, MAX_HEADERS, TxError, copy_out};
use super::gather::send_lent;
use super::interface::NicId;
use super::way::Way;
use crate::storage::checksum::Sum;
use crate::storage::host::{Host, Memory, Nic, NicCaps, Span, Token};
use crate::wire::ethernet::MIN_FRAME_LEN;
use crate::wire::ipv4;

/// A train. It is used at once, in the pass that made it.
#[derive(Debug)]
pub struct Train {
    head: [u8; MAX_HEADERS],
    marks: Marks,
}

/// What of a train's headers differs from packet to packet, and what is known of it.
#[derive(Clone, Copy, Debug)]
struct Marks {
    nic: NicId,
    /// Length of all headers, and of the whole frame, in bytes.
    head_len: usize,
    len: usize,
    /// Where in the frame things lie: IPv4, the field that differs, the transport checksum.
    ip_at: usize,
    field_at: usize,
    sum_at: usize,
    /// Sum of the IPv4 header without identification and checksum.
    ip: Sum,
    /// Sum of pseudo header and transport header without the field that differs and the checksum.
    l4: Sum,
    /// What a checksum of zero is sent as.
    zero: [u8; 2],
    caps: NicCaps,
}

/// What a packet of a train carries.
#[derive(Debug)]
pub enum Carried<'b, M> {
    /// Bytes where they lie.
    Span(Span<'b, M>),
    /// Bytes, and where to keep a copy of them: as long as they are. They are read while the caches have them.
    Through(&'b [u8], &'b mut [u8]),
}

/// Writes `part` at `at`.
#[inline]
fn put<const N: usize>(out: &mut [u8], at: usize, part: [u8; N]) -> Option<()> {
    *out.get_mut(at..)?.first_chunk_mut::<N>()? = part;
    Some(())
}

impl Marks {
    /// Writes what differs to the headers in `out`. `body`: its sum, unless hardware sums.
    #[inline]
    fn mark(&self, out: &mut [u8], ident: u16, field: [u8; 4], body: Option<Sum>) -> Option<()> {
        let ip = out.get_mut(self.ip_at..)?.first_chunk_mut::<{ ipv4::HEADER_LEN }>()?;
        [ip[4], ip[5]] = ident.to_be_bytes();
        if !self.caps.contains(NicCaps::TX_IP_SUM) {
            [ip[10], ip[11]] = (self.ip + Sum::of_u16(ident)).to_field();
        }
        put(out, self.field_at, field)?;
        let Some(body) = body else { return Some(()) };
        let sum = match (self.l4 + Sum::of_array(&field) + body).to_field() {
            [0, 0] => self.zero,
            sum => sum,
        };
        put(out, self.sum_at, sum)
    }

    /// Writes what differs over what the packet before had; the headers.
    #[inline]
    fn mark_in<'h>(
        &self,
        head: &'h mut [u8; MAX_HEADERS],
        ident: u16,
        field: [u8; 4],
        body: Option<Sum>,
    ) -> Option<&'h [u8]> {
        let head = head.get_mut(..self.head_len)?;
        self.mark(head, ident, field, body)?;
        Some(head)
    }

    /// Writes all headers to `out`, which is as long as they are.
    #[inline]
    fn write(
        &self,
        out: &mut [u8],
        head: &[u8; MAX_HEADERS],
        ident: u16,
        field: [u8; 4],
        body: Option<Sum>,
    ) -> Option<()> {
        // The two lengths that nearly every segment has are a few moves.
        if let Ok(out) = <&mut [u8; 54]>::try_from(&mut *out) {
            *out = *head.first_chunk()?;
        } else if let Ok(out) = <&mut [u8; 66]>::try_from(&mut *out) {
            *out = *head.first_chunk()?;
        } else {
            Sum::copy_only(out, head.get(..self.head_len)?)?;
        }
        self.mark(out, ident, field, body)
    }
}

impl<'a, H: Host> Stack<'a, H> {
    /// A train along a way that is valid, of packets with the transport header `l4` and `body_len` bytes each. In `l4`
    /// the checksum at `sum_at` and the four bytes at `field_at`, both even, are zero.
    ///
    /// # Errors
    /// [`TxError::TooBig`]; [`TxError::NetworkDown`]; [`TxError::Invalid`]: shorter than the shortest frame.
    pub fn train(
        &self,
        way: &Way,
        l4: &[u8],
        sum_at: usize,
        field_at: usize,
        body_len: usize,
    ) -> Result<Train, TxError> {
        let l4_len = l4.len().saturating_add(body_len);
        let room = usize::from(way.room);
        if l4_len > room {
            return Err(TxError::TooBig(room));
        }
        let caps = self.iface(way.nic).ok_or(TxError::NetworkDown)?.caps;
        let mut head = [0u8; MAX_HEADERS];
        let front = way.head();
        let (link_ip, rest) = head.split_at_mut_checked(front.len()).ok_or(TxError::Invalid)?;
        Sum::copy_only(link_ip, front).ok_or(TxError::Invalid)?;
        let total = (l4_len as u16).wrapping_add(ipv4::HEADER_LEN as u16);
        let ip_at = front.len().saturating_sub(ipv4::HEADER_LEN);
        put(link_ip, ip_at.saturating_add(2), total.to_be_bytes()).ok_or(TxError::Invalid)?;
        Sum::copy_only(rest.get_mut(..l4.len()).ok_or(TxError::Invalid)?, l4).ok_or(TxError::Invalid)?;
        let pseudo = way.pseudo + Sum::of_u16(l4_len as u16);
        if caps.contains(NicCaps::TX_L4_SUM) {
            // The hardware adds header and body to what stands in the field.
            put(rest, sum_at, pseudo.fold().to_ne_bytes()).ok_or(TxError::Invalid)?;
        }
        let head_len = front.len().saturating_add(l4.len());
        let len = head_len.saturating_add(body_len);
        if len < MIN_FRAME_LEN {
            return Err(TxError::Invalid);
        }
        let marks = Marks {
            nic: way.nic,
            head_len,
            len,
            ip_at,
            field_at: front.len().saturating_add(field_at),
            sum_at: front.len().saturating_add(sum_at),
            ip: way.ip + Sum::of_u16(total),
            l4: pseudo + Sum::of(l4),
            zero: way.zero,
            caps,
        };
        Ok(Train { head, marks })
    }

    /// Sends the next packet of a train, with `field` and `body`, which is as long as was said. Unless it was sent, what is
    /// in a copy's place is undefined.
    ///
    /// # Errors
    /// See [`TxError`]; nothing was sent.
    #[inline]
    pub fn send_in_train(
        &mut self,
        train: &mut Train,
        field: [u8; 4],
        body: Carried<'_, H::Memory>,
        token: Token,
    ) -> Result<(), TxError> {
        let Train { head, marks } = train;
        let ident = self.next_ident();
        let iface = self.interfaces.get_mut(usize::from(marks.nic.0)).and_then(Option::as_mut);
        let iface = iface.filter(|iface| iface.link).ok_or(TxError::NetworkDown)?;
        let offload = marks.caps.contains(NicCaps::TX_L4_SUM);
        let asynchronous = marks.caps.contains(NicCaps::ASYNC);
        let gathers = marks.caps.contains(NicCaps::GATHER);
        // Each kind has a closure of its own: see `super::way`.
        let template = &*head;
        let sent = match body {
            Carried::Span(span @ Span::Memory { memory, at, len }) if gathers => {
                let sum = if offload { Ok(None) } else { memory.sum(at, len).map(Some).map_err(|_| TxError::Invalid) };
                match sum {
                    Err(error) => Err(error),
                    Ok(sum) if asynchronous => {
                        let head = marks.mark_in(head, ident, field, sum).ok_or(TxError::Invalid)?;
                        send_lent(iface, &mut self.frames, marks.nic, head, span, token)
                    }
                    Ok(sum) => {
                        let head = marks.mark_in(head, ident, field, sum).ok_or(TxError::Invalid)?;
                        iface.nic.send_pair(head, span, token).map_err(TxError::from)
                    }
                }
            }
            Carried::Span(span @ Span::Bytes(bytes)) if gathers && !asynchronous => {
                let sum = if offload { None } else { Some(Sum::of(bytes)) };
                let head = marks.mark_in(head, ident, field, sum).ok_or(TxError::Invalid)?;
                iface.nic.send_pair(head, span, token).map_err(TxError::from)
            }
            Carried::Through(bytes, copy) if gathers && !asynchronous => {
                let sum =
                    if offload { Sum::copy_only(copy, bytes).map(|()| None) } else { Sum::copy(copy, bytes).map(Some) };
                let sum = sum.ok_or(TxError::Invalid)?;
                let head = marks.mark_in(head, ident, field, sum).ok_or(TxError::Invalid)?;
                iface.nic.send_pair(head, Span::Bytes(copy), token).map_err(TxError::from)
            }
            Carried::Span(Span::Bytes(bytes)) => copy_out(iface, &mut self.frames, marks.nic, marks.len, |out| {
                let (out_head, rest) = out.split_at_mut_checked(marks.head_len).ok_or(TxError::Invalid)?;
                let sum = Sum::copy(rest, bytes).ok_or(TxError::Invalid)?;
                marks
                    .write(out_head, template, ident, field, if offload { None } else { Some(sum) })
                    .ok_or(TxError::Invalid)
            }),
            Carried::Span(Span::Memory { memory, at, .. }) => {
                copy_out(iface, &mut self.frames, marks.nic, marks.len, |out| {
                    let (out_head, rest) = out.split_at_mut_checked(marks.head_len).ok_or(TxError::Invalid)?;
                    let sum = memory.read_sum(at, rest).map_err(|_| TxError::Invalid)?;
                    marks
                        .write(out_head, template, ident, field, if offload { None } else { Some(sum) })
                        .ok_or(TxError::Invalid)
                })
            }
            Carried::Through(bytes, copy) => copy_out(iface, &mut self.frames, marks.nic, marks.len, |out| {
                let (out_head, rest) = out.split_at_mut_checked(marks.head_len).ok_or(TxError::Invalid)?;
                // One pass with two stores for each load takes longer than two passes.
                let sum = Sum::copy(rest, bytes).ok_or(TxError::Invalid)?;
                Sum::copy_only(copy, bytes).ok_or(TxError::Invalid)?;
                marks
                    .write(out_head, template, ident, field, if offload { None } else { Some(sum) })
                    .ok_or(TxError::Invalid)
            }),
        };
        egress::count_tx(&mut self.stats, &sent);
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::host::{SimMemory, SimNic};
    use crate::sim::packets::Station;
    use crate::sim::rig::{Limits, Rig};
    use crate::stack::interface::{Cidr, Interface};
    use crate::stack::way::{Flow, Load};
    use crate::wire::ipv4::Protocol;
    use std::vec::Vec;

    /// The same packets in a train and one by one, for every kind of NIC: the frames are equal but for the identification.
    #[test]
    fn a_train_sends_what_single_packets_are() {
        let data: Vec<u8> = (0..3000u32).map(|n| (n * 31) as u8).collect();
        let memory = SimMemory::from(data.clone());
        let them = Station::new(2);
        for bits in 0..64u32 {
            let caps = NicCaps::from_bits_truncate(bits);
            for (lends, vlan, len, l4_len) in
                [(true, None, 1000, 20), (false, None, 333, 32), (false, Some(7), 64, 20), (true, Some(5), 999, 28)]
            {
                let mut rig = Rig::bare(1, Limits::default(), caps, lends);
                let nic = SimNic::new(caps, lends);
                let wire = nic.state.clone();
                let mut interface = Interface::new(nic, rig.us.mac, 1500, vlan);
                interface.add_address(Cidr { addr: rig.us.ip, prefix: 24 });
                *rig.engine.stack.interface_mut(rig.nic).unwrap() = interface;
                rig.know(them);
                let stack = &mut rig.engine.stack;
                let (src, dst, nic) = (rig.us.ip, them.ip, rig.nic);
                let flow = Flow { src, dst, nic, protocol: Protocol::TCP, ttl: 60, tos: 3, dont_fragment: true };
                let way = stack.find_way(&flow).unwrap();
                let mut header: Vec<u8> = (0..l4_len).map(|n| n as u8 * 7).collect();
                header[4..8].fill(0);
                header[16..18].fill(0);
                let mut train = stack.train(&way, &header, 16, 4, len).unwrap();
                for n in 0..3u32 {
                    let field = (n * 0x4321_0fed).to_be_bytes();
                    header[4..8].copy_from_slice(&field);
                    let at = n as usize * len;
                    let span = || match n {
                        0 => Span::Bytes(&data[..len]),
                        _ => Span::Memory { memory: &memory, at, len },
                    };
                    let mut copy = std::vec![0u8; len];
                    let body = match n {
                        2 => Carried::Through(&data[at..at + len], &mut copy),
                        _ => Carried::Span(span()),
                    };
                    stack.send_in_train(&mut train, field, body, Token(0)).unwrap();
                    assert!(n < 2 || copy == data[at..at + len]);
                    stack.send_along(&way, &header, 16, Load::Spans(&[span()]), Token(0)).unwrap();
                    let mut sent: Vec<Vec<u8>> = wire.borrow_mut().sent.drain(..).collect();
                    assert_eq!(sent.len(), 2);
                    let ip = if vlan.is_some() { 18 } else { 14 };
                    for frame in &mut sent {
                        let checked = Sum::of_header(frame[ip..ip + 20].try_into().unwrap()).holds();
                        assert!(checked || caps.contains(NicCaps::TX_IP_SUM));
                        frame[ip + 4..ip + 6].fill(0);
                        if !caps.contains(NicCaps::TX_IP_SUM) {
                            frame[ip + 10..ip + 12].fill(0);
                        }
                    }
                    assert_eq!(sent[0], sent[1], "{caps:?} {vlan:?} {len}");
                    for token in wire.borrow_mut().tokens.drain(..) {
                        stack.tx_done(nic, token);
                    }
                }
            }
        }
    }

    #[test]
    fn what_makes_no_train_is_refused() {
        let mut rig = Rig::new(1);
        let them = Station::new(2);
        rig.know(them);
        let (src, dst, nic) = (rig.us.ip, them.ip, rig.nic);
        let flow = Flow { src, dst, nic, protocol: Protocol::TCP, ttl: 64, tos: 0, dont_fragment: true };
        let stack = &mut rig.engine.stack;
        let way = stack.find_way(&flow).unwrap();
        assert_eq!(stack.train(&way, &[0; 20], 16, 4, 1461).unwrap_err(), TxError::TooBig(1480));
        assert_eq!(stack.train(&way, &[0; 20], 16, 4, 5).unwrap_err(), TxError::Invalid);
        let mut train = stack.train(&way, &[0; 20], 16, 4, 1460).unwrap();
        stack.set_link(nic, false);
        let down = stack.send_in_train(&mut train, [0; 4], Carried::Span(Span::Bytes(&[0; 1460])), Token(0));
        assert_eq!(down, Err(TxError::NetworkDown));
    }
}
