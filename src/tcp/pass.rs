//! A pass: timers that are due, each connection's turn to send, and what a change of a connection calls for. What it sends
//! is for `send`, what it does when a timer is due for `timers`.

use super::Tcp;
use super::conn::{Context, Events, State};
use super::pages::Pages;
use super::send::Flow;
use super::table::List;
use crate::stack::Stack;
use crate::storage::host::{Host, Token};
use crate::storage::time::Instant;

impl<'a, H: Host> Tcp<'a, H> {
    /// The earliest time at which [`Self::poll`] has something to do; it may be early, never late.
    pub fn deadline(&self) -> Instant {
        if self.table.has(List::Ready) { Instant::ZERO } else { self.earliest }
    }

    /// Runs timers that are due and sends what may be sent: once a pass, after all frames. `wake`: what waited for a
    /// neighbour or a NIC may go now.
    #[inline(never)]
    pub fn poll(&mut self, stack: &mut Stack<'a, H>, wake: bool) {
        if stack.now >= self.earliest {
            self.run_timers(stack);
        }
        if self.blocked && (self.pages.take_returned() | wake) {
            self.unblock();
        }
        // One turn each: a connection that has more goes to the end, and is looked at again next pass.
        for _ in 0..self.table.capacity() {
            let Some(index) = self.table.unlist(List::Ready) else { break };
            if !self.output(stack, index) {
                break;
            }
        }
    }

    /// Gives a connection its turn; `false` when the NIC has no room for anybody.
    #[inline(never)]
    fn output(&mut self, stack: &mut Stack<'a, H>, index: u16) -> bool {
        let Some(slot) = self.table.at_mut(index) else { return true };
        let conn = &mut slot.conn;
        conn.ready = false;
        conn.blocked = false;
        let mut cx = Context { stack, pages: &mut self.pages, time_wait: self.time_wait };
        let mut again = false;
        let mut room = true;
        let flow = match conn.output_asked(&mut cx) {
            Err(flow) => flow,
            Ok(()) if conn.only_acknowledges() => conn.acknowledge(&mut cx),
            Ok(()) => conn.output(&mut cx),
        };
        match flow {
            Flow::Idle => {}
            Flow::More => again = true,
            Flow::Busy => (again, room) = (true, false),
            Flow::Blocked => {
                conn.blocked = true;
                self.blocked = true;
            }
            Flow::Fatal(error) => conn.break_off(&mut cx, error),
        }
        self.settle(stack, index);
        if again {
            self.table.enlist(List::Ready, index);
        }
        room
    }

    #[cold]
    #[inline(never)]
    fn unblock(&mut self) {
        self.blocked = false;
        for at in 0..self.table.capacity() {
            let Some(index) = u16::try_from(at).ok() else { break };
            if self.table.at_mut(index).is_some_and(|slot| core::mem::take(&mut slot.conn.blocked)) {
                self.table.enlist(List::Ready, index);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn run_timers(&mut self, stack: &mut Stack<'a, H>) {
        let now = stack.now;
        self.earliest = Instant::NEVER;
        for at in 0..self.table.capacity() {
            let Some(index) = u16::try_from(at).ok() else { break };
            let Some(slot) = self.table.at_mut(index) else { break };
            let conn = &mut slot.conn;
            if conn.deadline() <= now {
                let mut cx = Context { stack, pages: &mut self.pages, time_wait: self.time_wait };
                conn.on_time(&mut cx);
                self.settle(stack, index);
            } else {
                self.earliest = self.earliest.min(conn.deadline());
            }
        }
    }

    /// Does what a change of a connection calls for: sends an acknowledgement that is due, lists it where it belongs, and
    /// keeps the earliest deadline.
    #[inline]
    pub(super) fn settle(&mut self, stack: &mut Stack<'a, H>, index: u16) {
        let Some(slot) = self.table.at_mut(index) else { return };
        let conn = &mut slot.conn;
        // While a neighbour is asked for, only what comes, a timer or the answer brings an acknowledgement back.
        if conn.rx.ack_now && !conn.ready && !conn.blocked {
            let mut cx = Context { stack, pages: &mut self.pages, time_wait: self.time_wait };
            if !conn.try_ack(&mut cx) {
                conn.ready = true;
            }
        }
        conn.attention = false;
        let (ready, told) =
            (core::mem::take(&mut conn.ready) | (conn.rx.ack_soon && !conn.blocked), !conn.events.is_empty());
        self.earliest = self.earliest.min(conn.deadline());
        let closed = conn.state == State::Closed;
        if told || closed {
            self.settle_rare(index, closed, told);
        }
        if ready && !closed {
            self.table.enlist(List::Ready, index);
        }
    }

    fn settle_rare(&mut self, index: u16, closed: bool, told: bool) {
        let Some(slot) = self.table.at_mut(index) else { return };
        let conn = &mut slot.conn;
        if closed {
            self.settle_closed(index);
        } else if conn.orphan {
            conn.tx.queue.forget_done_files();
        } else if let Some(parent) = conn.parent
            && conn.events.contains(Events::CONNECTED)
            && let Some(listener) = self.listeners.get_mut(parent)
        {
            listener.fresh = true;
            self.fresh_listeners = true;
            conn.events.remove(Events::CONNECTED);
        }
        if told {
            self.table.enlist(List::Events, index);
        }
    }

    #[cold]
    #[inline(never)]
    fn settle_closed(&mut self, index: u16) {
        let Some(slot) = self.table.at_mut(index) else { return };
        let conn = &mut slot.conn;
        // A connection nobody has accepted goes as if it had never come.
        conn.orphan |= conn.parent.take().is_some();
        if conn.orphan {
            conn.tx.queue.forget_done_files();
        }
        self.table.unchain(&self.secret, index);
    }

    /// A NIC is done with a frame; `token` is the sender's own. Whether it was one of these.
    pub fn tx_done(&mut self, token: Token) -> bool {
        if !Pages::<H::Memory>::is_ours(token) {
            return false;
        }
        let Tcp { pages, table, .. } = self;
        pages.done(token, |page| {
            let owner = page.owner;
            if let Some(slot) = table.at_mut(owner) {
                slot.conn.tx.queue.page_back(page);
                if slot.conn.tx.queue.any_file_done() {
                    slot.conn.raise(Events::FILE);
                    table.enlist(List::Events, owner);
                }
            }
        });
        true
    }

    /// Whether any memory is lent to a NIC.
    pub fn is_lending(&self) -> bool {
        self.pages.any()
    }
}
