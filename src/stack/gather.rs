//! Frames for NICs that gather: head, body and padding, and the stack's own bytes kept where the NIC works
//! on after the call.

use super::egress::{MAX_BODY, TxError};
use super::frames::TxFrames;
use super::interface::{Interface, NicId};
use crate::storage::host::{Nic, NicCaps, Pieces, Span, Stretch, Token};
use crate::wire::ethernet::MIN_FRAME_LEN;

static PADDING: [u8; MIN_FRAME_LEN] = [0; MIN_FRAME_LEN];

/// What follows the head of a frame: `len` bytes of `spans` from `from` on, then `pad` zeros.
pub(super) struct Tail<'t, M> {
    pub spans: &'t [Span<'t, M>],
    pub from: usize,
    pub len: usize,
    pub pad: usize,
}

/// Hands a frame to a gathering NIC as it is: `head` and `tail`.
pub(super) fn send_gathered<N: Nic>(
    iface: &mut Interface<N>,
    frames: &mut TxFrames<'_>,
    nic: NicId,
    head: &[u8],
    tail: &Tail<'_, N::Memory>,
    token: Token,
) -> Result<(), TxError> {
    let Tail { spans, from, len, pad } = *tail;
    if spans.len() > MAX_BODY {
        return Err(TxError::Invalid);
    }
    let (body, padding) = (Stretch::new(spans, from, len), PADDING.get(..pad).unwrap_or(&[]));
    let mut pieces = Pieces { head: Some(head), body, copies: None, padding };
    if !iface.caps.contains(NicCaps::ASYNC) {
        return iface.nic.send(&mut pieces, token).map_err(TxError::from);
    }
    let (slot, token) = frames.claim(nic, token).ok_or(TxError::Busy)?;
    let sent = match keep(slot, &mut pieces) {
        Some(()) => iface.nic.send(&mut pieces, token).map_err(TxError::from),
        None => Err(TxError::Invalid),
    };
    if sent.is_err() {
        frames.done(nic, token);
    }
    sent
}

/// The same for an asynchronous NIC where all that follows `head` is lent memory.
#[inline]
pub(super) fn send_lent<N: Nic>(
    iface: &mut Interface<N>,
    frames: &mut TxFrames<'_>,
    nic: NicId,
    head: &[u8],
    body: Span<'_, N::Memory>,
    token: Token,
) -> Result<(), TxError> {
    let (slot, token) = frames.claim(nic, token).ok_or(TxError::Busy)?;
    let sent = match slot.get_mut(..head.len()) {
        Some(kept) => {
            kept.copy_from_slice(head);
            iface.nic.send_pair(kept, body, token).map_err(TxError::from)
        }
        None => Err(TxError::Invalid),
    };
    if sent.is_err() {
        frames.done(nic, token);
    }
    sent
}

/// For an asynchronous NIC: the stack's own bytes must stay until the token is done, so they move to a frame slot; lent
/// memory stays where it is.
#[cfg_attr(target_pointer_width = "32", inline(never))]
fn keep<'k, M>(slot: &'k mut [u8], pieces: &mut Pieces<'k, M>) -> Option<()> {
    let headers = pieces.head?;
    let (head, copies) = slot.split_at_mut_checked(headers.len())?;
    head.copy_from_slice(headers);
    let mut rest = &mut *copies;
    for part in pieces.body.clone() {
        if let Span::Bytes(bytes) = part {
            let (copy, behind) = rest.split_at_mut_checked(bytes.len())?;
            copy.copy_from_slice(bytes);
            rest = behind;
        }
    }
    pieces.head = Some(head);
    pieces.copies = Some(copies);
    Some(())
}
