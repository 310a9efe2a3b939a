//! The sending half of a connection: sequence variables, what an acknowledgement changes, and which bytes go next. Building
//! segments is for `send`; what is lost is for `recovery`.

use super::congestion::Congestion;
use super::options::Options;
use super::recovery::{Delivered, Phase, Recovery};
use super::rtt::Rtt;
use super::scoreboard::{Mark, Range, Scoreboard};
use super::seq::Pos;
use super::source::SendQueue;
use crate::storage::host::Host;
use crate::storage::time::{Duration, Instant};

/// The sending half.
pub struct Sender<'a, H: Host> {
    /// The bytes.
    pub queue: SendQueue<'a, H>,
    /// What is in flight.
    pub board: Scoreboard<'a>,
    /// Round-trip time.
    pub rtt: Rtt,
    /// Congestion window.
    pub congestion: Congestion,
    /// Loss recovery.
    pub recovery: Recovery,
    /// SND.UNA: the first position not acknowledged.
    pub una: Pos,
    /// SND.NXT: the first position not sent.
    pub nxt: Pos,
    /// The right edge of the peer's window, SND.UNA + SND.WND.
    pub edge: Pos,
    /// SND.WL1 and SND.WL2: the segment the window was last taken from.
    pub window_from: (Pos, Pos),
    /// Largest window the peer has shown, in bytes.
    pub max_window: u64,
    /// Shift of the window field we receive.
    pub shift: u8,
    /// Whether the stream ends with a FIN behind the queue's last byte.
    pub fin: bool,
    /// Largest segment the peer takes along this path, options included, in bytes.
    pub mss: u32,
    /// Whether the peer sends SACK.
    pub sack: bool,
    /// When the retransmission timer expires.
    pub rto_at: Instant,
    /// When a tail loss probe is due.
    pub probe_at: Instant,
    /// When to look for losses again.
    pub reorder_at: Instant,
    /// When to probe a closed window, or to send less than a segment into a small one.
    pub persist_at: Instant,
    /// When to give the connection up.
    pub give_up_at: Instant,
    /// How often the timeout was doubled.
    pub backoff: u8,
    /// When something was last sent.
    pub last_sent: Instant,
    /// A position whose acknowledgement measures the round trip, and when it was sent.
    timed: Option<(Pos, Instant)>,
    /// The congestion window was what held the sender back.
    pub limited: bool,
    /// Probes of a closed window are out: the retransmission timer rests.
    pub persisting: bool,
    /// Bytes from SND.UNA to SND.NXT when something was last sent.
    out: u64,
    /// Segments sent again.
    pub retransmits: u32,
    /// Acknowledgements that have come and were not taken in yet.
    heard: Option<Heard>,
}

/// Acknowledgements of new data that came in one pass and told nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// The last one's number.
    pub ack: Pos,
    /// When they came.
    pub at: Instant,
    /// The timestamp that the last one echoed.
    pub echo: Option<u32>,
    /// How many they were.
    pub times: u8,
}

/// What to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Where it begins.
    pub at: Pos,
    /// Bytes of data.
    pub len: usize,
    /// Whether the FIN follows them.
    pub fin: bool,
    /// Whether it was sent before.
    pub again: bool,
}

/// An acknowledgement, decoded.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'s> {
    /// Acknowledgement number.
    pub ack: Pos,
    /// The segment carried nothing else, nor did it change the window: it may count as a duplicate (RFC 5681 §2).
    pub bare: bool,
    /// SACK blocks, as positions of what was sent; empty ones count for nothing. None where the peer was not to send SACK.
    pub blocks: &'s [(Pos, Pos)],
    /// Timestamp echoed, and the time since by it.
    pub echo: Option<(u32, Duration)>,
    /// How many acknowledgements this one stands for.
    pub times: u8,
}

impl<'a, H: Host> Sender<'a, H> {
    /// A fresh half; `queue` and `board` are reset.
    #[inline(always)] // In place, as the connection around it.
    pub fn new(queue: SendQueue<'a, H>, board: Scoreboard<'a>, options: &Options) -> Self {
        Sender {
            queue,
            board,
            rtt: Rtt::new(options.min_rto),
            congestion: Congestion::new(options.congestion, 536),
            recovery: Recovery::new(),
            una: Pos::SYN,
            nxt: Pos::SYN,
            edge: Pos::DATA,
            window_from: (Pos::SYN, Pos::SYN),
            max_window: 0,
            shift: 0,
            fin: false,
            mss: 536,
            sack: false,
            rto_at: Instant::NEVER,
            probe_at: Instant::NEVER,
            reorder_at: Instant::NEVER,
            persist_at: Instant::NEVER,
            give_up_at: Instant::NEVER,
            backoff: 0,
            last_sent: Instant::ZERO,
            timed: None,
            limited: false,
            persisting: false,
            out: 0,
            retransmits: 0,
            heard: None,
        }
    }

    /// One beyond everything there is to send, the FIN included.
    #[inline]
    pub fn end(&self) -> Pos {
        self.queue.end() + u64::from(self.fin)
    }

    /// Whether everything is acknowledged.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.una == self.end()
    }

    /// Whether the FIN was sent.
    pub fn fin_sent(&self) -> bool {
        self.fin && self.nxt > self.queue.end()
    }

    /// Whether the FIN was acknowledged.
    pub fn fin_acked(&self) -> bool {
        self.fin && self.una > self.queue.end()
    }

    /// The highest position acknowledged, taken in or not.
    #[inline]
    pub fn acked(&self) -> Pos {
        self.heard.map_or(self.una, |heard| heard.ack)
    }

    /// Whether acknowledgements wait to be taken in.
    #[inline]
    pub fn has_heard(&self) -> bool {
        self.heard.is_some()
    }

    /// An acknowledgement of new data came that tells nothing else: it is taken in before anything is made of it, with
    /// those that come in the same pass.
    #[inline]
    pub fn hear(&mut self, ack: Pos, at: Instant, echo: Option<u32>) {
        let times = self.heard.map_or(0, |heard| heard.times).saturating_add(1);
        self.heard = Some(Heard { ack, at, echo, times });
    }

    /// The acknowledgements to take in now, as one.
    #[inline]
    pub fn take_heard(&mut self) -> Option<Heard> {
        self.heard.take()
    }

    /// Begins to repair what is lost. FlightSize is then (RFC 5681 §3.2) what was out before the acknowledgements came that
    /// show the loss: they may have come together with others that leave next to nothing in flight.
    #[cold]
    #[inline(never)]
    fn begin_repair(&mut self) {
        let flight = self.nxt.since(self.una).max(self.out);
        self.recovery.begin(&mut self.congestion, flight, self.una, self.nxt);
    }

    /// Bytes in flight.
    #[inline]
    pub fn pipe(&self) -> u64 {
        let out = self.nxt.since(self.una);
        out.saturating_sub(self.board.sacked()).saturating_sub(self.board.lost()).saturating_sub(self.recovery.left())
    }

    /// The window changed by a segment at `seq` that acknowledges `ack` (RFC 9293 §3.10.7.4). Returns whether its edge
    /// moved.
    #[inline]
    pub fn update_window(&mut self, seq: Pos, ack: Pos, window: u64) -> bool {
        let (from_seq, from_ack) = self.window_from;
        if from_seq > seq || (from_seq == seq && from_ack > ack) {
            return false;
        }
        self.window_from = (seq, ack);
        self.max_window = self.max_window.max(window);
        let edge = ack + window;
        let moved = edge != self.edge;
        self.edge = edge;
        moved
    }

    /// The window is open again after probes: what they carried goes as any lost segment does.
    pub fn leave_persist(&mut self, now: Instant, user_timeout: Duration) {
        self.persist_at = Instant::NEVER;
        self.backoff = 0;
        if core::mem::take(&mut self.persisting) && self.nxt > self.una {
            self.board.mark_all_lost();
            self.rto_at = now + self.rtt.rto();
            self.give_up_at = now + user_timeout;
        }
    }

    /// A probe of a closed window was sent: the next follows later and later (RFC 9293 §3.8.6.1).
    pub fn persisted(&mut self, now: Instant, user_timeout: Duration) {
        self.persisting = true;
        if self.give_up_at == Instant::NEVER {
            self.give_up_at = now + user_timeout;
        }
        self.rto_at = Instant::NEVER;
        self.probe_at = Instant::NEVER;
        self.backoff = self.backoff.saturating_add(1);
        self.persist_at = now + self.rtt.backed_off(self.backoff);
    }

    /// Takes an acknowledgement that is not beyond SND.NXT. Returns what it delivered.
    pub fn acknowledge(
        &mut self,
        pages: &mut super::pages::Pages<'_, H::Memory>,
        now: Instant,
        ack: &Ack<'_>,
        user_timeout: Duration,
    ) -> Delivered {
        let smallest = self.rtt.smallest();
        let (delivered, calm) = self.deliver(pages, now, ack, smallest);
        if !calm {
            self.repair(now, ack, delivered);
        }
        if delivered.acked > 0 {
            self.grow(now, ack, delivered, smallest);
            self.restart_timers(now, user_timeout);
        }
        delivered
    }

    /// Notes what an acknowledgement delivers, and whether that was all that was to be expected.
    // On small machines the steps have a frame each.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    fn deliver(
        &mut self,
        pages: &mut super::pages::Pages<'_, H::Memory>,
        now: Instant,
        ack: &Ack<'_>,
        smallest: Option<Duration>,
    ) -> (Delivered, bool) {
        let acked = ack.ack.since(self.una);
        // The common case: nothing lost, nothing selective, bytes in order.
        let calm =
            self.recovery.is_calm() && ack.blocks.is_empty() && self.board.sacked() == 0 && (acked > 0 || self.sack);
        let mut delivered = Delivered { acked, bytes: 0, rtt: Duration::ZERO };
        let passed = ack.echo.map(|(_, passed)| passed);
        let Sender { board, recovery, .. } = self;
        let mut count = |range: &Range| {
            if range.mark != Mark::Sacked {
                delivered.bytes = delivered.bytes.wrapping_add(range.bytes());
                if !range.again {
                    delivered.rtt = now.since(range.time);
                }
                recovery.delivered(range, now, smallest, passed);
            }
        };
        if self.sack && !ack.blocks.is_empty() {
            for &(left, right) in ack.blocks {
                if left >= ack.ack && left < right && right <= self.nxt {
                    board.sack(left, right, |range| count(&range));
                }
            }
        }
        if acked > 0 {
            board.acknowledge(ack.ack, |range| count(&range));
            self.una = ack.ack;
            self.queue.acknowledge(pages, ack.ack);
            self.measure(now, ack);
            self.backoff = 0;
            self.recovery.advanced(acked, self.mss);
        }
        if self.sack && is_duplicate_report(ack) {
            self.recovery.duplicate_reported(self.una, self.nxt);
        }
        (delivered, calm && delivered.bytes <= acked)
    }

    /// Lets the congestion window grow by what was delivered. `smallest`: the smallest round trip before.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    fn grow(&mut self, now: Instant, ack: &Ack<'_>, delivered: Delivered, smallest: Option<Duration>) {
        let sample = ack.echo.map_or(delivered.rtt, |(_, passed)| passed);
        if sample > Duration::ZERO {
            let smallest = smallest.unwrap_or(sample);
            self.congestion.on_sample(now, sample, smallest, self.una, self.nxt, ack.times);
        }
        if self.limited && !matches!(self.recovery.phase(), Phase::Repair(_)) {
            let bytes = u32::try_from(delivered.acked).unwrap_or(u32::MAX);
            self.congestion.on_ack(now, bytes, self.rtt.smoothed());
        }
    }

    /// Measures the round trip: by a segment that was timed, else, while segments are sent again, by timestamps.
    #[inline]
    fn measure(&mut self, now: Instant, ack: &Ack<'_>) {
        match self.timed {
            Some((pos, sent)) if ack.ack >= pos => {
                self.rtt.sample(now, now.since(sent));
                self.timed = None;
            }
            // Karn's rule holds for the timed segment; a timestamp knows which copy is answered (RFC 7323 §4.1).
            None => {
                if let Some((_, passed)) = ack.echo {
                    self.rtt.sample(now, passed);
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn restart_timers(&mut self, now: Instant, user_timeout: Duration) {
        if self.una == self.nxt {
            self.rto_at = Instant::NEVER;
            self.probe_at = Instant::NEVER;
            self.reorder_at = Instant::NEVER;
            self.give_up_at = Instant::NEVER;
            return;
        }
        self.rto_at = now + self.rtt.rto();
        self.give_up_at = now + user_timeout;
        self.arm_probe(now);
    }

    /// Sets the probe timer, where a probe may be sent and would come before the timeout (RFC 8985 §7.2).
    ///
    /// A probe is sent in the midst of a repair too, which RFC 8985 leaves to the timeout: where the last of what was sent
    /// again is lost again, nothing that is delivered later shows it.
    #[inline]
    pub fn arm_probe(&mut self, now: Instant) {
        self.probe_at = Instant::NEVER;
        if !self.sack || self.recovery.is_probing() {
            return;
        }
        let mut one = self.nxt.since(self.una) <= u64::from(self.mss);
        if self.recovery.phase() != Phase::Open || self.board.sacked() > 0 {
            match self.probes_in_repair() {
                Some(alone) => one = alone,
                None => return,
            }
        }
        let at = now + Recovery::probe_timeout(&self.rtt, one);
        if at < self.rto_at {
            self.probe_at = at;
        }
    }

    /// Whether a probe is sent if nothing comes, and if so, whether the peer may take its time for an answer: it answers at
    /// once while bytes are missing before others that it has (RFC 5681 §4.2).
    #[cold]
    #[inline(never)]
    fn probes_in_repair(&self) -> Option<bool> {
        let pipe = self.pipe();
        // While the reordering timer runs, that comes first.
        let repairs = matches!(self.recovery.phase(), Phase::Repair(_));
        let probes = repairs && pipe > 0 && self.reorder_at == Instant::NEVER;
        probes.then(|| self.board.sacked() == 0 && pipe <= u64::from(self.mss))
    }

    /// Finds losses and steers recovery, after an acknowledgement.
    #[cold]
    #[inline(never)]
    fn repair(&mut self, now: Instant, ack: &Ack<'_>, delivered: Delivered) {
        let mut lost = 0;
        if delivered.acked > 0
            && let Some((window, threshold)) = self.recovery.was_spurious(ack.echo.map(|(echo, _)| echo))
        {
            self.board.forget_losses();
            self.congestion.undo(window, threshold);
        }
        if delivered.bytes > 0 {
            self.recovery.probe_in_repair_answered();
        }
        let partial = delivered.acked > 0 && matches!(self.recovery.phase(), Phase::Repair(until) if self.una < until);
        self.recovery.end_if_done(&mut self.congestion, self.una);
        if self.recovery.probe_answered(self.una, delivered) && self.recovery.phase() == Phase::Open {
            // The probe repaired a loss: the window comes down as for any other (RFC 8985 §7.4.2).
            self.begin_repair();
            self.congestion.set_window(self.congestion.threshold());
        }
        if self.sack {
            lost = self.look_for_losses(now);
        } else if self.una < self.nxt {
            let mss = u64::from(self.mss);
            if delivered.acked == 0 && ack.bare {
                if self.recovery.duplicate(self.nxt.since(self.una), self.mss) {
                    lost = self.board.mark_front_lost(mss);
                }
            } else if partial {
                // RFC 6582 §3.2: the next hole is known to be lost too.
                lost = self.board.mark_front_lost(mss);
            }
        }
        if lost > 0 && self.recovery.phase() == Phase::Open {
            self.begin_repair();
        }
        if self.recovery.phase() != Phase::Open || self.board.sacked() > 0 {
            self.arm_probe(now);
        }
        let pipe = self.pipe();
        self.recovery.pace(&mut self.congestion, delivered, pipe, lost > 0, self.mss);
    }

    /// RACK's look at the scoreboard; returns the bytes newly lost.
    fn look_for_losses(&mut self, now: Instant) -> u64 {
        if self.board.is_empty() {
            self.reorder_at = Instant::NEVER;
            return 0;
        }
        let (lost, again) = self.recovery.find_losses(&mut self.board, &self.rtt, self.mss, now);
        self.reorder_at = again;
        if again != Instant::NEVER {
            self.probe_at = Instant::NEVER;
        }
        lost
    }

    /// The reordering timer expired.
    pub fn on_reorder_timer(&mut self, now: Instant) {
        let lost = self.look_for_losses(now);
        if lost > 0 && self.recovery.phase() == Phase::Open {
            self.begin_repair();
            let pipe = self.pipe();
            self.recovery.pace(&mut self.congestion, Delivered::default(), pipe, true, self.mss);
        }
    }

    /// The retransmission timer expired.
    pub fn on_timeout(&mut self, now: Instant, stamp: Option<u32>) {
        let Sender { board, congestion, recovery, rtt, una, nxt, .. } = self;
        recovery.timeout(board, congestion, rtt, *una, *nxt, now, stamp);
        self.timed = None;
        self.backoff = self.backoff.saturating_add(1);
        self.rto_at = now + self.rtt.backed_off(self.backoff);
        self.probe_at = Instant::NEVER;
        self.reorder_at = Instant::NEVER;
    }

    /// What goes next; `room` is the most data a segment takes. `None` when nothing may.
    #[inline]
    pub fn choose(&mut self, now: Instant, nagle: bool, room: u32) -> Option<Choice> {
        let pipe = self.pipe();
        let window = u64::from(self.congestion.window());
        if self.board.lost() > 0 {
            if let Some(choice) = self.choose_lost(pipe, window, room) {
                return Some(choice);
            }
            if pipe >= window {
                self.limited = true;
                return None;
            }
        }
        let end = self.queue.end();
        let (room, left) = (u64::from(room), end.since(self.nxt));
        if left == 0 {
            let fin = self.fin && self.nxt == end;
            return fin.then_some(Choice { at: self.nxt, len: 0, fin: true, again: false });
        }
        let usable = self.edge.since(self.nxt);
        let len = left.min(room).min(usable);
        let whole = len == left;
        if len == 0 {
            self.wait_for_window(now);
            return None;
        }
        if len < room {
            // RFC 9293 §3.8.6.2.1 and §3.7.4: a short segment goes when it is all there is and nothing is out (or Nagle
            // is off), when it ends the stream, or when it is much of what the peer ever takes at once.
            let idle = self.nxt == self.una;
            let last = whole && (idle || !nagle || self.fin);
            if !last && len < self.max_window >> 1 {
                if idle && !whole {
                    self.wait_for_window(now);
                }
                return None;
            }
        }
        if pipe > 0 && pipe.wrapping_add(len) > window {
            self.limited = true;
            return None;
        }
        let fin = self.fin && whole;
        Some(Choice { at: self.nxt, len: usize::try_from(len).unwrap_or(0), fin, again: false })
    }

    /// How many full segments of `room` bytes may go behind each other, at most `most`, of `left` bytes of new data; not
    /// counting one that is the last there is: that one is told apart by its flags. Notes whether the congestion window is
    /// what bounds them.
    #[inline]
    pub fn full_segments(&mut self, left: u64, room: u32, most: usize) -> usize {
        if self.board.lost() > 0 {
            return 0;
        }
        let usable = self.edge.since(self.nxt);
        let free = u64::from(self.congestion.window()).saturating_sub(self.pipe());
        let given = left.saturating_sub(1).min(usable);
        if free < given {
            self.limited = true;
        }
        let bytes = given.min(free);
        let (mut count, mut end) = (0usize, u64::from(room));
        // Fewer turns than a division takes steps.
        while end <= bytes && count < most {
            end = end.saturating_add(u64::from(room));
            count = count.saturating_add(1);
        }
        count
    }

    fn choose_lost(&self, pipe: u64, window: u64, room: u32) -> Option<Choice> {
        let range = self.board.first_lost()?;
        let choice = self.part(range.start, range.end, room);
        // What the window no longer covers waits for it, but the first byte may always go (RFC 9293 §3.8.6).
        let allowed = choice.at == self.una || choice.at < self.edge;
        let fits = pipe == 0 || pipe.wrapping_add(choice.len as u64) <= window;
        (allowed && fits).then_some(choice)
    }

    /// The beginning of a range that was sent before, as one segment.
    pub fn part(&self, start: Pos, end: Pos, room: u32) -> Choice {
        let data_end = self.queue.end();
        let to = end.earlier(data_end).earlier(start + u64::from(room));
        let fin = self.fin && end > data_end && to == data_end.later(start);
        Choice { at: start, len: usize::try_from(to.since(start)).unwrap_or(0), fin, again: true }
    }

    /// What a probe sends again: the last segment (RFC 8985 §7.3), or, where the peer has that or it is but a FIN, of which
    /// not every peer sends SACK, the first.
    pub fn probe_again(&self, room: u32) -> Option<Choice> {
        let last = self.board.last()?;
        if last.mark == Mark::Sacked || last.start >= self.queue.end() {
            let first = self.board.first()?;
            return Some(self.part(first.start, first.end, room));
        }
        let most = u64::from(room).wrapping_add(u64::from(self.fin_sent()));
        let start = last.start.later(last.end - most.min(last.bytes()));
        Some(self.part(start, last.end, room))
    }

    /// Nothing is in flight and the window lets nothing through: a probe must ask for it (RFC 9293 §3.8.6.1).
    fn wait_for_window(&mut self, now: Instant) {
        if self.nxt == self.una && self.persist_at == Instant::NEVER {
            self.persist_at = now + self.rtt.backed_off(self.backoff);
        }
    }

    /// A segment was sent, or several new ones behind each other.
    #[inline]
    pub fn sent(&mut self, now: Instant, choice: &Choice, user_timeout: Duration) {
        let len = (choice.len as u64).wrapping_add(u64::from(choice.fin));
        self.last_sent = now;
        self.recovery.sent(len);
        if choice.again {
            self.board.sent_again(choice.at, choice.at + len, now);
            self.timed = None;
            self.retransmits = self.retransmits.wrapping_add(1);
        } else {
            self.board.push(len, now, self.time_shift());
            self.nxt = choice.at + len;
            if self.timed.is_none() {
                // Of several segments the first is timed.
                self.timed = Some((choice.at + len.min(u64::from(self.mss)), now));
            }
            self.persist_at = Instant::NEVER;
        }
        self.out = self.nxt.since(self.una);
        if self.rto_at == Instant::NEVER {
            self.rto_at = now + self.rtt.backed_off(self.backoff);
            self.give_up_at = now + user_timeout;
        }
        self.arm_probe(now);
    }

    /// The grain in which sending times are kept: about a sixteenth of the round trip, as a power of two.
    #[inline]
    fn time_shift(&self) -> u32 {
        let srtt = self.rtt.smoothed().map_or(1 << 14, |srtt| srtt.as_micros());
        59u32.saturating_sub((srtt | 16).leading_zeros())
    }

    /// The stream was idle for so long that its window says nothing any more (RFC 5681 §4.1).
    pub fn restart_after_idle(&mut self, now: Instant) {
        if self.nxt == self.una && now.since(self.last_sent) > self.rtt.rto() {
            self.congestion.restart_after_idle();
        }
    }
}

/// Whether the first block tells of bytes that came twice (RFC 2883 §4): below the acknowledgement, or inside the second.
fn is_duplicate_report(ack: &Ack<'_>) -> bool {
    let Some(&(left, right)) = ack.blocks.first() else { return false };
    if left >= right {
        return false;
    }
    right <= ack.ack || ack.blocks.get(1).is_some_and(|&(l, r)| l <= left && right <= r)
}
