//! What is lost, and how fast to repair it: RACK and tail loss probes (RFC 8985) over the SACK scoreboard (RFC 6675),
//! NewReno (RFC 6582) with peers that do not send SACK, proportional rate reduction (RFC 6937, but for the least of two
//! segments), limited transmit (RFC 3042), and taking back a timeout that was none (RFC 3522). Which bytes go into a
//! segment is for `send`.

use super::congestion::Congestion;
use super::rtt::Rtt;
use super::scoreboard::{Mark, Range, Scoreboard};
use super::seq::Pos;
use crate::storage::saturating::{add, mul, sub};
use crate::storage::time::{Duration, Instant};

/// Duplicate acknowledgements, or segments' worth of SACKed bytes, that mean a loss (RFC 5681 §3.2).
const DUP_THRESHOLD: u32 = 3;
/// A receiver's longest delayed acknowledgement that is reckoned with (RFC 8985 §7.2, WCDelAckT).
const WORST_DELAYED_ACK: Duration = Duration::from_millis(200);
/// Added to the probe's timer: the host's clock may tick in milliseconds, and a peer that is busy is no loss.
const GRAIN: Duration = Duration::from_millis(2);
/// Recoveries for which a wider reordering window is kept (RFC 8985 §6.2).
const WIDE_FOR: u8 = 16;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is known to be lost.
    Open,
    /// A loss found by acknowledgements is being repaired, until this position is acknowledged.
    Repair(Pos),
    /// The retransmission timer expired; until this position is acknowledged.
    Timeout(Pos),
}

/// RACK's variables (RFC 8985 §6.1).
#[derive(Clone, Debug)]
struct Rack {
    /// When the latest delivered segment had been sent, and where it ended.
    time: Instant,
    end: Pos,
    rtt: Duration,
    /// The highest position delivered.
    highest: Pos,
    reordering: bool,
    wide: u8,
    wide_left: u8,
    /// A D-SACK widens the window once a round trip: until this is acknowledged.
    wide_round: Pos,
}

/// A tail loss probe that is out.
#[derive(Clone, Copy, Debug)]
struct Probe {
    end: Pos,
    again: bool,
}

/// What to go back to if a timeout was none.
#[derive(Clone, Copy, Debug)]
struct Undo {
    window: u32,
    threshold: u32,
    /// The timestamp of the first retransmission.
    stamp: u32,
}

/// The variables of one connection.
#[derive(Clone, Debug)]
pub struct Recovery {
    phase: Phase,
    rack: Rack,
    probe: Option<Probe>,
    undo: Option<Undo>,
    duplicates: u32,
    /// Bytes that duplicate acknowledgements without SACK say have left the network.
    left: u64,
    prr_delivered: u64,
    prr_out: u64,
    prr_base: u64,
}

/// What an acknowledgement delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivered {
    /// Bytes acknowledged in order.
    pub acked: u64,
    /// Bytes delivered that were not known to be, in order or selectively.
    pub bytes: u64,
    /// Time since the last of them that was sent once was sent; zero where there is none.
    pub rtt: Duration,
}

impl Recovery {
    /// Nothing lost.
    pub fn new() -> Recovery {
        Recovery {
            phase: Phase::Open,
            rack: Rack {
                time: Instant::ZERO,
                end: Pos::SYN,
                rtt: Duration::ZERO,
                highest: Pos::SYN,
                reordering: false,
                wide: 1,
                wide_left: 0,
                wide_round: Pos::SYN,
            },
            probe: None,
            undo: None,
            duplicates: 0,
            left: 0,
            prr_delivered: 0,
            prr_out: 0,
            prr_base: 1,
        }
    }

    /// Where the connection stands.
    #[inline]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether nothing is being repaired and no duplicate was counted: acknowledgements need no second look.
    #[inline]
    pub fn is_calm(&self) -> bool {
        self.phase == Phase::Open && self.probe.is_none() && self.duplicates == 0
    }

    /// Bytes that have left the network by duplicate acknowledgements alone.
    #[inline]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// A range was delivered: in order or selectively, not known before (RFC 8985 §6.2, steps 1 to 3).
    #[inline]
    pub fn delivered(&mut self, range: &Range, now: Instant, smallest: Option<Duration>, passed: Option<Duration>) {
        let rack = &mut self.rack;
        if range.end > rack.highest {
            rack.highest = range.end;
        } else if range.end < rack.highest && !range.again {
            rack.reordering = true;
        }
        let rtt = now.since(range.time);
        // What was sent again and came back sooner than any round trip answers the first sending; so does what echoes an
        // older timestamp, with its grain of a millisecond.
        if range.again
            && (smallest.is_some_and(|least| rtt < least)
                || passed.is_some_and(|passed| passed > rtt + Duration::from_millis(1)))
        {
            return;
        }
        if (range.time, range.end) > (rack.time, rack.end) {
            rack.time = range.time;
            rack.end = range.end;
            rack.rtt = rtt;
        }
    }

    /// The peer reported bytes that came twice (RFC 2883): what was thought lost was only late.
    pub fn duplicate_reported(&mut self, una: Pos, nxt: Pos) {
        let rack = &mut self.rack;
        if una >= rack.wide_round {
            rack.wide_round = nxt;
            rack.wide = rack.wide.saturating_add(1);
            rack.wide_left = WIDE_FOR;
        }
        if self.probe.is_some_and(|probe| probe.again) {
            self.probe = None;
        }
    }

    /// How much later than expected a segment may come (RFC 8985 §6.2, step 4).
    fn reordering_window(&self, board: &Scoreboard<'_>, rtt: &Rtt, mss: u32) -> Duration {
        if !self.rack.reordering
            && (self.phase != Phase::Open || board.sacked() >= u64::from(mss).saturating_mul(u64::from(DUP_THRESHOLD)))
        {
            return Duration::ZERO;
        }
        let least = rtt.smallest().unwrap_or(Duration::ZERO);
        let most = rtt.smoothed().unwrap_or(Duration::ZERO);
        least.times(u64::from(self.rack.wide)).divided_by(4).min(most)
    }

    /// Marks what must be lost, because something sent later was delivered (RFC 8985 §6.2, step 5). Returns how many bytes
    /// are, and when to look again.
    pub fn find_losses(&mut self, board: &mut Scoreboard<'_>, rtt: &Rtt, mss: u32, now: Instant) -> (u64, Instant) {
        let window = self.reordering_window(board, rtt, mss);
        let (latest, patience) = ((self.rack.time, self.rack.end), self.rack.rtt + window);
        let mut again = Instant::NEVER;
        let lost = board.mark_lost(|range| {
            if (range.time, range.end) >= latest {
                return false;
            }
            let due = range.time + patience;
            if due <= now {
                return true;
            }
            // RFC 8985 waits for the last of them; the first is as right, and sooner.
            again = again.min(due);
            false
        });
        (lost, again)
    }

    /// A duplicate acknowledgement without SACK came while `flight` bytes were out. Returns whether it says that
    /// the first segment is lost.
    pub fn duplicate(&mut self, flight: u64, mss: u32) -> bool {
        self.duplicates = self.duplicates.saturating_add(1);
        self.left = add(self.left, u64::from(mss)).min(sub(flight, u64::from(mss)));
        self.duplicates == DUP_THRESHOLD && self.phase == Phase::Open
    }

    /// Begins to repair what acknowledgements show to be lost; `flight` bytes were out before they came.
    pub fn begin(&mut self, congestion: &mut Congestion, flight: u64, una: Pos, nxt: Pos) {
        congestion.on_loss(u32::try_from(flight).unwrap_or(u32::MAX));
        self.phase = Phase::Repair(nxt);
        // What was delivered together with what shows the loss makes room too (RFC 9937 §6.2).
        self.prr_delivered = sub(flight, nxt.since(una));
        self.prr_out = 0;
        self.prr_base = flight.max(1);
        self.probe = None;
    }

    /// The retransmission timer expired at `now` (RFC 5681 §3.1, RFC 8985 §6.3). `stamp` is the timestamp the first
    /// retransmission will carry.
    #[expect(clippy::too_many_arguments, reason = "the state of the sender, read once on a rare path")]
    pub fn timeout(
        &mut self,
        board: &mut Scoreboard<'_>,
        congestion: &mut Congestion,
        rtt: &Rtt,
        una: Pos,
        nxt: Pos,
        now: Instant,
        stamp: Option<u32>,
    ) {
        // A second expiry for the same data lowers no threshold (RFC 5681 §3.1).
        if !matches!(self.phase, Phase::Timeout(_)) {
            self.undo = match (stamp, self.phase) {
                (Some(stamp), Phase::Open) => {
                    Some(Undo { window: congestion.window(), threshold: congestion.threshold(), stamp })
                }
                _ => None,
            };
            congestion.on_loss(u32::try_from(nxt.since(una)).unwrap_or(u32::MAX));
        }
        congestion.on_timeout();
        // RFC 2018 §8: a receiver that had the first bytes would have acknowledged them.
        if board.first().is_some_and(|first| first.mark == Mark::Sacked) {
            board.forget_sacks();
        }
        let patience = self.rack.rtt.max(rtt.smoothed().unwrap_or_default());
        board.mark_lost(|range| range.start <= una || range.time + patience <= now);
        self.phase = Phase::Timeout(nxt);
        self.probe = None;
        self.duplicates = 0;
        self.left = 0;
    }

    /// Whether the timeout was none: the first acknowledgement after it answers what was sent before it (RFC 3522).
    pub fn was_spurious(&mut self, echo: Option<u32>) -> Option<(u32, u32)> {
        let undo = self.undo.take()?;
        let early = echo.is_some_and(|echo| (echo.wrapping_sub(undo.stamp) as i32) < 0);
        if !early || !matches!(self.phase, Phase::Timeout(_)) {
            return None;
        }
        self.phase = Phase::Open;
        Some((undo.window, undo.threshold))
    }

    /// A tail loss probe was sent: new data, or the last segment again.
    pub fn probe_sent(&mut self, end: Pos, again: bool) {
        self.probe = Some(Probe { end, again });
    }

    /// Whether a probe is out.
    pub fn is_probing(&self) -> bool {
        self.probe.is_some()
    }

    /// How long to wait for an acknowledgement before a probe (RFC 8985 §7.2).
    #[inline]
    pub fn probe_timeout(rtt: &Rtt, one_segment: bool) -> Duration {
        let twice = rtt.smoothed().map_or(Duration::from_secs(1), |srtt| srtt.times(2)) + GRAIN;
        if one_segment { twice + WORST_DELAYED_ACK } else { twice }
    }

    /// An acknowledgement up to `una` came while a probe was out (RFC 8985 §7.4). Returns whether the probe repaired a
    /// loss that nothing else has told of.
    pub fn probe_answered(&mut self, una: Pos, delivered: Delivered) -> bool {
        let Some(probe) = self.probe else { return false };
        if una < probe.end {
            return false;
        }
        if !probe.again {
            self.probe = None;
            return false;
        }
        if una > probe.end {
            self.probe = None;
            return true;
        }
        // A duplicate: the peer had both copies.
        if delivered.bytes == 0 {
            self.probe = None;
        }
        false
    }

    /// Something was delivered: a probe that was sent in the midst of a repair has done what it was for, and the window has
    /// come down already.
    pub fn probe_in_repair_answered(&mut self) {
        if matches!(self.phase, Phase::Repair(_)) {
            self.probe = None;
        }
    }

    /// Bytes were acknowledged in order: without SACK, duplicates begin anew, and what they said is partly used up.
    pub fn advanced(&mut self, acked: u64, mss: u32) {
        self.duplicates = 0;
        self.left = sub(self.left, sub(acked, u64::from(mss)));
        if self.phase == Phase::Open {
            self.left = 0;
        }
    }

    /// Ends a repair that `una` has completed. Returns whether it ended one.
    pub fn end_if_done(&mut self, congestion: &mut Congestion, una: Pos) -> bool {
        let until = match self.phase {
            Phase::Open => return false,
            Phase::Repair(until) | Phase::Timeout(until) => until,
        };
        if una < until {
            return false;
        }
        if matches!(self.phase, Phase::Repair(_)) {
            congestion.set_window(congestion.threshold());
            self.rack.wide_left = self.rack.wide_left.saturating_sub(1);
            if self.rack.wide_left == 0 {
                self.rack.wide = 1;
            }
        }
        self.phase = Phase::Open;
        self.left = 0;
        self.undo = None;
        true
    }

    /// Sets the window while a repair goes on (RFC 6937 §3), `pipe` bytes being in flight.
    pub fn pace(&mut self, congestion: &mut Congestion, delivered: Delivered, pipe: u64, lost_more: bool, mss: u32) {
        if !matches!(self.phase, Phase::Repair(_)) {
            return;
        }
        self.prr_delivered = self.prr_delivered.wrapping_add(delivered.bytes);
        let threshold = u64::from(congestion.threshold());
        let mss = u64::from(mss);
        let mut send = if pipe > threshold {
            let due = mul(self.prr_delivered, threshold).div_ceil(self.prr_base);
            sub(due, self.prr_out)
        } else {
            let mut limit = sub(self.prr_delivered, self.prr_out).max(delivered.bytes);
            // Slow start back to the threshold, while the repair makes progress and finds no further loss.
            if delivered.acked > 0 && !lost_more {
                limit = limit.wrapping_add(mss);
            }
            sub(threshold, pipe).min(limit)
        };
        // What the peer's window or the NIC held back does not add up to a burst.
        let fresh = if self.prr_out == 0 { self.prr_delivered } else { delivered.bytes };
        let pair = mss << 1;
        send = send.min(fresh.wrapping_add(pair));
        if self.prr_out == 0 {
            // The first retransmission is not held back.
            send = send.max(mss);
        }
        // Two segments may always be out, as many as the smallest threshold has: one alone, where nothing is missing any
        // more, is acknowledged late, and if it is lost, nothing sent after it tells.
        send = send.max(sub(pair, pipe));
        congestion.set_window(u32::try_from(add(pipe, send)).unwrap_or(u32::MAX));
    }

    /// Bytes were sent, new or again.
    #[inline]
    pub fn sent(&mut self, bytes: u64) {
        if matches!(self.phase, Phase::Repair(_)) {
            self.prr_out = self.prr_out.wrapping_add(bytes);
        }
    }
}

impl Default for Recovery {
    fn default() -> Self {
        Recovery::new()
    }
}
