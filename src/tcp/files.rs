//! Files whose results somebody waits for: they outlive the closing of their connection. What files are, and how their
//! bytes are had, is for `source`.

use super::source::Ticket;
use super::{State, Tcp};
use crate::stack::Stack;
use crate::storage::host::Host;
use crate::storage::slots::Key;

impl<'a, H: Host> Tcp<'a, H> {
    /// Keeps a file's result until [`Self::take_file`] or [`Self::drop_file`], also when its connection is closed
    /// meanwhile. Until then the connection's slot is not free.
    pub fn keep_file(&mut self, key: Key, ticket: Ticket) {
        if let Some(conn) = self.table.get_mut(key) {
            conn.tx.queue.keep_file(ticket, true);
        }
    }

    /// Ends a file that is kept: its source is not asked again. If bytes of it were sent and not acknowledged, that is
    /// the end of the connection, closed or not.
    pub fn drop_file(&mut self, stack: &mut Stack<'a, H>, key: Key, ticket: Ticket) {
        let runs = |tcp: &Self| tcp.file(key, ticket).is_ok_and(|state| state.result.is_none());
        if runs(self) {
            let _ = self.cancel_file(key, ticket);
        }
        if runs(self) && self.table.get(key).is_some_and(|conn| conn.state != State::Closed) {
            self.drop_connection(stack, key.index);
        }
        if let Some(conn) = self.table.get_mut(key) {
            conn.tx.queue.keep_file(ticket, false);
            if conn.orphan {
                conn.tx.queue.forget_done_files();
            }
        }
    }
}
