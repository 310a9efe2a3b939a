//! Frames for NICs that gather: the spans of head, body and padding, and the stack's own bytes kept where the NIC works
//! on after the call.

use super::egress::{MAX_BODY, TxError};
use super::frames::TxFrames;
use super::interface::{Interface, NicId};
use crate::storage::host::{Nic, NicCaps, Span, Token};
use crate::wire::ethernet::MIN_FRAME_LEN;

static PADDING: [u8; MIN_FRAME_LEN] = [0; MIN_FRAME_LEN];

type Spans<'s, M> = heapless::Vec<Span<'s, M>, { MAX_BODY + 2 }>;

/// Hands a frame to a gathering NIC as spans: `head`, the body, and `pad` zeros.
pub(super) fn send_gathered<N: Nic>(
    iface: &mut Interface<N>,
    frames: &mut TxFrames<'_>,
    nic: NicId,
    head: &[u8],
    body: &[Span<'_, N::Memory>],
    pad: usize,
    token: Token,
) -> Result<(), TxError> {
    let padding = PADDING.get(..pad).unwrap_or(&[]);
    if iface.caps.contains(NicCaps::ASYNC) {
        return send_kept(iface, frames, nic, head, body, padding, token);
    }
    send_lent(iface, head, body, padding, token)
}

/// The same for a NIC that is done with the spans when it returns.
#[cfg_attr(target_pointer_width = "32", inline(never))]
#[cfg_attr(not(target_pointer_width = "32"), inline)]
fn send_lent<N: Nic>(
    iface: &mut Interface<N>,
    head: &[u8],
    body: &[Span<'_, N::Memory>],
    padding: &[u8],
    token: Token,
) -> Result<(), TxError> {
    let mut spans = Spans::new();
    push(&mut spans, Span::Bytes(head))?;
    for span in body {
        push(&mut spans, *span)?;
    }
    if !padding.is_empty() {
        push(&mut spans, Span::Bytes(padding))?;
    }
    iface.nic.send(&spans, token).map_err(TxError::from)
}

/// The same for an asynchronous NIC.
#[inline(never)]
fn send_kept<N: Nic>(
    iface: &mut Interface<N>,
    frames: &mut TxFrames<'_>,
    nic: NicId,
    head: &[u8],
    body: &[Span<'_, N::Memory>],
    padding: &[u8],
    token: Token,
) -> Result<(), TxError> {
    let (slot, own_token) = frames.claim(nic, token).ok_or(TxError::Busy)?;
    let sent = gather_kept(iface, slot, head, body, padding, own_token);
    if sent.is_err() {
        frames.done(own_token);
    }
    sent
}

/// Gathers for an asynchronous NIC: the stack's own bytes must stay until the token is done, so they move to a frame
/// slot; lent memory stays where it is.
fn gather_kept<N: Nic>(
    iface: &mut Interface<N>,
    slot: &mut [u8],
    headers: &[u8],
    body: &[Span<'_, N::Memory>],
    padding: &[u8],
    token: Token,
) -> Result<(), TxError> {
    let (head, mut rest) = slot.split_at_mut_checked(headers.len()).ok_or(TxError::Invalid)?;
    head.copy_from_slice(headers);
    let mut spans = Spans::new();
    push(&mut spans, Span::Bytes(head))?;
    for span in body {
        let span = match *span {
            lent @ Span::Memory { .. } => lent,
            Span::Bytes(bytes) => {
                let (own, more) = rest.split_at_mut_checked(bytes.len()).ok_or(TxError::Invalid)?;
                own.copy_from_slice(bytes);
                rest = more;
                Span::Bytes(own)
            }
        };
        push(&mut spans, span)?;
    }
    if !padding.is_empty() {
        push(&mut spans, Span::Bytes(padding))?;
    }
    iface.nic.send(&spans, token).map_err(TxError::from)
}

#[inline]
fn push<'s, M>(spans: &mut Spans<'s, M>, span: Span<'s, M>) -> Result<(), TxError> {
    spans.push(span).map_err(|_| TxError::Invalid)
}
