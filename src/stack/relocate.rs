//! Moving what landed by guess: within a region, once, when a header says where it belongs. When to move is decided in
//! `landing`.

use super::coverage::Coverage;
use super::landing::Spot;
use super::stats::Counter;
use crate::storage::host::Memory;
use crate::wire::udp;

/// Exchanges two ranges of a region, a little at a time.
pub(super) fn swap_ranges<M: Memory>(memory: &M, a: usize, b: usize, len: usize) -> Option<()> {
    let mut at = 0usize;
    while at < len {
        let n = len.saturating_sub(at).min(128);
        let (mut x, mut y) = ([0u8; 128], [0u8; 128]);
        let (x, y) = (x.get_mut(..n)?, y.get_mut(..n)?);
        memory.read_sum(a.checked_add(at)?, x).ok()?;
        memory.read_sum(b.checked_add(at)?, y).ok()?;
        memory.write(a.checked_add(at)?, y).ok()?;
        memory.write(b.checked_add(at)?, x).ok()?;
        at = at.saturating_add(n);
    }
    Some(())
}

/// Moves what was stored by guess to where the header says it belongs, once.
pub(super) fn move_pieces<M: Memory>(coverage: &Coverage, from: &Spot<M>, to: &Spot<M>) -> Result<(), Counter> {
    // Pieces lie in the region in the order of the datagram, so one move of the whole span moves them all.
    let (mut low, mut high) = (usize::MAX, 0usize);
    coverage.each(|start, len| {
        // The first fragment has just come and is stored afterwards.
        if start > 0 {
            low = low.min(start as usize);
            high = high.max((start as usize).saturating_add(len as usize));
        }
    });
    if low >= high {
        return Ok(());
    }
    let place = |spot: &Spot<M>| {
        let first_data = udp::HEADER_LEN.saturating_add(spot.header);
        let start = low.checked_sub(first_data)?;
        let end = high.checked_sub(first_data)?.min(spot.len);
        (start <= end).then(|| (spot.at.saturating_add(start), end.saturating_sub(start)))
    };
    let (Some((source, held)), Some((target, room))) = (place(from), place(to)) else {
        return Err(Counter::DropLandingClaim);
    };
    from.memory.move_within(source, target, held.min(room)).map_err(|_| Counter::DropLandingClaim)
}
