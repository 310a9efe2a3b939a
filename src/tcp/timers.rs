//! Timers of a connection: what each does when it is due. When they are set is for those whose timers they are.

use super::conn::{Connection, Context, Due, State};
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::Host;
use crate::storage::time::Instant;

impl<'a, H: Host> Connection<'a, H> {
    /// Does what is due at the time of this pass.
    pub(super) fn on_time(&mut self, cx: &mut Context<'_, 'a, H>) {
        self.take_acks(cx.pages);
        let now = cx.stack.now;
        if self.state_at <= now {
            self.state_at = Instant::NEVER;
            match self.state {
                State::TimeWait => self.end(cx.pages, None),
                State::FinWait2 => {
                    self.send_reset(cx);
                    self.end(cx.pages, Some(Error::Timeout));
                }
                _ => {}
            }
        }
        if self.state == State::Closed {
            return;
        }
        if self.path.raise_if_old(now) {
            self.resize();
        }
        if self.tx.give_up_at <= now {
            self.give_up(cx);
            return;
        }
        if self.rx.ack_at <= now {
            self.rx.ack_at = Instant::NEVER;
            self.rx.ack_now = true;
        }
        if self.tx.reorder_at <= now {
            self.tx.reorder_at = Instant::NEVER;
            self.tx.on_reorder_timer(now);
            self.ready = true;
        }
        if self.tx.probe_at <= now {
            self.tx.probe_at = Instant::NEVER;
            self.ask_for(Due::Tail);
        }
        if self.tx.persist_at <= now {
            self.tx.persist_at = Instant::NEVER;
            self.ask_for(Due::Persist);
        }
        if self.tx.rto_at <= now {
            self.tx.rto_at = Instant::NEVER;
            self.on_retransmission_timer(cx);
        }
        if self.keep_at <= now {
            self.on_keepalive_timer(cx);
        }
    }

    fn ask_for(&mut self, due: Due) {
        if self.due == Due::Nothing {
            self.due = due;
        }
        self.ready = true;
    }

    /// The peer did not answer in time.
    fn give_up(&mut self, cx: &mut Context<'_, 'a, H>) {
        cx.stack.stats.count(Counter::TcpTimeout);
        if self.state.is_synchronized() {
            self.send_reset(cx);
        }
        // What a router said on the way says more than that the time is up (RFC 9293 §3.9.2.2).
        let error = self.soft_error.unwrap_or(Error::Timeout);
        self.end(cx.pages, Some(error));
    }

    fn on_retransmission_timer(&mut self, cx: &mut Context<'_, 'a, H>) {
        let now = cx.stack.now;
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.tx.backoff = self.tx.backoff.saturating_add(1);
            self.tx.rto_at = now + self.tx.rtt.backed_off(self.tx.backoff);
            cx.stack.stats.count(Counter::TcpRetransmit);
            self.ask_for(Due::Syn);
            return;
        }
        if self.tx.una == self.tx.nxt {
            return;
        }
        if self.tx.edge <= self.tx.una {
            // The window closed over what is out: a matter of the window, not of the path.
            self.ask_for(Due::Persist);
            return;
        }
        cx.stack.stats.count(Counter::TcpRetransmit);
        self.way = None;
        let first = self.tx.board.first().map_or(0, |range| range.bytes());
        let longest = first.min(u64::from(self.room(self.stamp_len())));
        let stamp = self.stamps.map(|stamps| stamps.value(now));
        self.tx.on_timeout(now, stamp);
        let segment = u32::try_from(longest).unwrap_or(u32::MAX).saturating_add(self.stamp_len() as u32);
        if self.path.timed_out(segment, self.tx.backoff, now) {
            cx.stack.stats.count(Counter::TcpBlackHole);
            self.resize();
        }
        self.ready = true;
    }

    fn on_keepalive_timer(&mut self, cx: &mut Context<'_, 'a, H>) {
        let now = cx.stack.now;
        let Some(keepalive) = self.options.keepalive.filter(|_| self.state.is_synchronized()) else {
            self.keep_at = Instant::NEVER;
            return;
        };
        if self.keep_missed == 0 && now.since(self.last_heard) < keepalive.idle {
            self.keep_at = self.last_heard + keepalive.idle;
            return;
        }
        if self.keep_missed >= keepalive.count {
            self.give_up(cx);
            return;
        }
        self.keep_missed = self.keep_missed.saturating_add(1);
        self.keep_at = now + keepalive.interval;
        self.ask_for(Due::Keepalive);
    }
}
