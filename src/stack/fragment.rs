//! Sending what does not fit a frame: a packet's body is cut into fragments (RFC 791 §3.2), whether it lies in spans or is
//! written piece by piece. Headers and the way into the NIC are left to `egress`.

use super::Stack;
use super::egress::{
    Fill, Hop, Packet, Part, Transmission, TxError, build_headers, count_tx, sum_spans, transmit, transmit_filled,
};
use crate::storage::checksum::Sum;
use crate::storage::host::Host;
use crate::wire::ethernet::Address;

/// A body that is written where it leaves from.
pub(super) struct Filled<'f> {
    /// Its bytes.
    pub(super) len: usize,
    /// Whether `fill` writes piece after piece when it is called again, and all of them anew after the last.
    pub(super) pieces: bool,
    pub(super) fill: &'f mut Fill<'f>,
}

impl Filled<'_> {
    /// The sum over the whole. Its buffer is not to lie under the fragments.
    #[cold]
    #[inline(never)]
    fn sum(&mut self) -> Result<Sum, TxError> {
        let mut buffer = [0; 64];
        let mut sum = Sum::ZERO;
        let mut at = 0usize;
        while at < self.len {
            let piece = buffer.len().min(self.len.saturating_sub(at));
            sum += (self.fill)(buffer.get_mut(..piece).unwrap_or(&mut []))?.at(at);
            at = at.saturating_add(piece);
        }
        Ok(sum)
    }
}

impl<H: Host> Stack<'_, H> {
    /// Sends a packet in fragments of at most `unit` bytes (RFC 791 §3.2). The transport checksum is computed over the whole first; each frame
    /// then carries its part of the spans, which a gathering NIC takes from where they lie, or of what is filled in.
    #[cold]
    #[inline(never)]
    pub(super) fn send_fragments(
        &mut self,
        packet: &Packet<'_, H::Memory>,
        hop: &Hop,
        dst_mac: Address,
        l4_len: usize,
        unit: usize,
        mut fill: Option<&mut Filled<'_>>,
    ) -> Result<(), TxError> {
        let id = self.next_ident();
        let body_sum = match &mut fill {
            None => sum_spans(packet.body)?,
            Some(filled) => filled.sum()?,
        };
        let mut offset = 0usize;
        while offset < l4_len {
            let len = unit.min(l4_len.saturating_sub(offset));
            let end = offset.saturating_add(len);
            let part = Part { len, id, more: end < l4_len, offset: offset as u16 };
            let fill = fill.as_mut().map(|filled| &mut *filled.fill);
            self.send_fragment(packet, hop, dst_mac, part, l4_len, body_sum, fill)?;
            offset = end;
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    #[allow(clippy::too_many_arguments)] // What all fragments share.
    fn send_fragment(
        &mut self,
        packet: &Packet<'_, H::Memory>,
        hop: &Hop,
        dst_mac: Address,
        part: Part,
        l4_len: usize,
        body_sum: Sum,
        fill: Option<&mut Fill<'_>>,
    ) -> Result<(), TxError> {
        let iface = self.interfaces.get_mut(usize::from(hop.nic.0)).and_then(Option::as_mut);
        let iface = iface.ok_or(TxError::NetworkDown)?;
        let headers = &build_headers(iface, hop, dst_mac, packet, part, l4_len);
        let from = usize::from(part.offset).saturating_sub(packet.header.len());
        let (body, sum, nic, token) = (packet.body, Some(body_sum), hop.nic, packet.token);
        let mut out = Transmission { iface, frames: &mut self.frames, nic, headers, body, from, sum, token };
        let sent = match fill {
            Some(fill) => transmit_filled(&mut out, fill),
            None => transmit(&mut out),
        };
        count_tx(&mut self.stats, &sent);
        self.blocked |= sent == Err(TxError::Busy);
        sent
    }
}
