//! The head of a stack's memory: what callbacks may look at while the stack works. It knows whether the core is
//! borrowed, whether a pass or an upcall runs, and what callbacks have asked for that has to wait. Every call of C's
//! goes through here, so that the core is never borrowed twice.

use super::arena::{ALIGN, Core};
use super::config::lace_config;
use super::handle::{Table, request};
use super::results::{LACE_EBADF, LACE_EBUSY, LACE_EFAULT, LACE_ENETDOWN};
use crate::stack::interface::NicId;
use crate::storage::error::Error;
use core::cell::Cell;
use core::ops::Range;

const RUNNING: u32 = 0x4c41_4345;
const STOPPED: u32 = 0x4c41_4300;

/// The upcall that runs, the innermost if one was made from within another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upcall {
    /// None.
    None,
    /// `nic.pump`.
    Pump,
    /// `host.poll`.
    HostPoll,
    /// Any other.
    Other,
}

/// How far a stop has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// None was asked for.
    No,
    /// A callback asked for it.
    Wanted,
    /// Operations are ended, but NICs still hold frames.
    Ending,
}

/// A stack. Its memory is that which was given to `lace_stack_init`.
pub struct lace_stack {
    magic: Cell<u32>,
    core: *mut Core,
    /// Addresses of the whole block.
    pub(super) arena: Range<usize>,
    /// The limits it was made with.
    pub(super) config: lace_config,
    busy: Cell<bool>,
    pass: Cell<bool>,
    upcall: Cell<Upcall>,
    asked: Cell<bool>,
    stop: Cell<Stop>,
    /// Frames that came by `lace_input`, modulo 2³².
    pub(super) inputs: Cell<u32>,
    /// NICs.
    pub(super) nics: Table,
    /// Operations.
    pub(super) ops: Table,
    /// UDP sockets.
    pub(super) udp: Table,
    /// Raw hooks.
    pub(super) hooks: Table,
    /// TCP connections.
    pub(super) tcp: Table,
    /// TCP listeners.
    pub(super) listeners: Table,
}

impl lace_stack {
    /// A head for the core at `core`.
    pub(super) fn new(core: *mut Core, arena: Range<usize>, config: lace_config, tables: [Table; 6]) -> Self {
        let [nics, ops, udp, hooks, tcp, listeners] = tables;
        lace_stack {
            magic: Cell::new(RUNNING),
            core,
            arena,
            config,
            busy: Cell::new(false),
            pass: Cell::new(false),
            upcall: Cell::new(Upcall::None),
            asked: Cell::new(false),
            stop: Cell::new(Stop::No),
            inputs: Cell::new(0),
            nics,
            ops,
            udp,
            hooks,
            tcp,
            listeners,
        }
    }

    /// The core, alone; for callers that know it is not borrowed.
    fn borrow<R>(&self, f: impl FnOnce(&mut Core) -> R) -> R {
        debug_assert!(!self.busy.get());
        self.busy.set(true);
        // SAFETY: `busy` was clear, and everything that reaches the core sets it first; the core lives as long as the
        // head, which is what this method was called on.
        let result = f(unsafe { &mut *self.core });
        self.busy.set(false);
        result
    }

    /// Works on the core within a pass or an upcall's call. Not to be called while the core is borrowed.
    pub(super) fn access<R>(&self, f: impl FnOnce(&mut Core) -> R) -> R {
        let result = self.borrow(f);
        self.serve();
        result
    }

    /// A call of C's that does not block. Outside a pass it reads the clock first, because the last pass may be long
    /// ago.
    ///
    /// # Errors
    /// `LACE_EBUSY` from a leaf callback; `LACE_ENETDOWN` while the stack is being stopped.
    pub(super) fn call<R>(&self, f: impl FnOnce(&mut Core) -> Result<R, i32>) -> Result<R, i32> {
        let result = f(self.open(true)?);
        self.shut();
        result
    }

    /// The same for calls that work while the stack is being stopped, too.
    pub(super) fn call_always<R>(&self, f: impl FnOnce(&mut Core) -> Result<R, i32>) -> Result<R, i32> {
        let result = f(self.open(false)?);
        self.shut();
        result
    }

    /// Lends the core until `shut`. What every function of the C interface does first and last is out of line: it
    /// would be most of the text of the small ones.
    #[inline(never)]
    #[allow(clippy::mut_from_ref)]
    fn open(&self, running: bool) -> Result<&mut Core, i32> {
        if self.busy.get() {
            return Err(LACE_EBUSY);
        }
        if running && self.stop.get() != Stop::No {
            return Err(LACE_ENETDOWN);
        }
        self.busy.set(true);
        // SAFETY: `busy` was clear, and everything that reaches the core sets it first; the core lives as long as the
        // head, which is what this method was called on.
        let core = unsafe { &mut *self.core };
        if !self.pass.get() {
            core.read_clock();
        }
        Ok(core)
    }

    /// Ends what `open` began: what callbacks have asked for meanwhile is done.
    #[inline(never)]
    fn shut(&self) {
        self.busy.set(false);
        self.serve();
        self.unwind();
    }

    /// Closes, cancels, resets or removes what `handle` names: now, or when the stack is left.
    pub(super) fn ask(
        &self,
        table: &Table,
        handle: i32,
        what: u8,
        now: impl FnOnce(&mut Core, NicId) -> Result<(), i32>,
    ) -> Result<(), i32> {
        let (key, entry) = table.find(handle)?;
        let waits = what & (request::RESET | request::REMOVE) != 0 && self.upcall.get() != Upcall::None;
        if self.busy.get() || waits {
            entry.request(what);
            self.asked.set(true);
            return Ok(());
        }
        self.call_always(|core| now(core, NicId(key.index as u8)))
    }

    /// Begins a pass.
    ///
    /// # Errors
    /// `LACE_EBUSY` when one runs already, or from a callback.
    pub(super) fn begin(&self) -> Result<(), i32> {
        if self.busy.get() || self.pass.get() || self.upcall.get() != Upcall::None {
            return Err(LACE_EBUSY);
        }
        self.pass.set(true);
        Ok(())
    }

    /// Ends it.
    pub(super) fn end(&self) {
        self.pass.set(false);
        self.unwind();
    }

    /// Whether a pass runs.
    pub(super) fn in_pass(&self) -> bool {
        self.pass.get()
    }

    /// Whether the core is borrowed: the caller is a leaf callback.
    pub(super) fn is_busy(&self) -> bool {
        self.busy.get()
    }

    /// The upcall that runs.
    pub(super) fn running(&self) -> Upcall {
        self.upcall.get()
    }

    /// Makes an upcall, at rest.
    pub(super) fn upcall<R>(&self, kind: Upcall, f: impl FnOnce() -> R) -> R {
        debug_assert!(!self.busy.get());
        let outer = self.upcall.replace(kind);
        let result = f();
        self.upcall.set(outer);
        if outer == Upcall::None {
            self.serve();
        }
        result
    }

    /// How far a stop has come.
    pub(super) fn stopping(&self) -> Stop {
        self.stop.get()
    }

    /// Asks for a stop.
    pub(super) fn want_stop(&self) {
        if self.stop.get() == Stop::No {
            self.stop.set(Stop::Wanted);
        }
    }

    /// Whether a callback has asked for something that is not done yet.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.get()
    }

    /// Does what callbacks have asked for, as far as it may be done here.
    #[inline]
    fn serve(&self) {
        if self.asked.get() {
            self.serve_asked();
        }
    }

    #[cold]
    #[inline(never)]
    fn serve_asked(&self) {
        // What is done here calls the NIC, which may ask again; it has no more to ask for than there are places.
        for _ in 0..8 {
            if !self.asked.replace(false) {
                break;
            }
            for table in self.closable() {
                for entry in table.entries {
                    let handle = entry.handle();
                    let asked = entry.take_requests();
                    if asked & request::CANCEL != 0 {
                        let _ = self.borrow(|core| core.cancel(self, handle, Error::Cancelled));
                    }
                    if asked & request::ABORT != 0 {
                        let _ = self.borrow(|core| core.abort(self, handle));
                    }
                    if asked & request::CLOSE != 0 {
                        // It was alive when it was asked for, and nothing else has run since.
                        let _ = self.borrow(|core| core.close(self, table.kind, handle));
                    }
                }
            }
            if self.upcall.get() == Upcall::None {
                for entry in self.nics.entries {
                    let handle = entry.handle();
                    let asked = entry.take_requests();
                    if asked & request::RESET != 0 {
                        self.borrow(|core| core.reset_nic(self, handle));
                    }
                    if asked & request::REMOVE != 0 {
                        self.borrow(|core| core.remove_nic(self, handle));
                    }
                }
            } else if self.nics.entries.iter().any(|e| e.has_requests()) {
                // For the outermost upcall's end.
                self.asked.set(true);
                return;
            }
        }
    }

    /// Everything that can be closed, in the order in which that is done at the end.
    pub(super) fn closable(&self) -> [&Table; 5] {
        [&self.ops, &self.udp, &self.hooks, &self.listeners, &self.tcp]
    }

    /// The stack is left: a stop that was asked for happens now.
    fn unwind(&self) {
        if !self.pass.get() && self.upcall.get() == Upcall::None && self.stop.get() == Stop::Wanted {
            self.stop_now();
        }
    }

    /// Ends everything; `true` when no NIC holds a frame any more. Then nothing works on this stack any longer.
    pub(super) fn stop_now(&self) -> bool {
        self.stop.set(Stop::Ending);
        let idle = self.borrow(|core| core.end_all(self));
        if idle {
            self.magic.set(STOPPED);
        }
        idle
    }
}

/// The stack behind a pointer of C's.
///
/// # Errors
/// `LACE_EFAULT` for NULL; `LACE_EBADF` for anything that is no running stack.
#[inline(never)]
pub(super) fn enter<'s>(stack: *mut lace_stack) -> Result<&'s lace_stack, i32> {
    if stack.is_null() {
        return Err(LACE_EFAULT);
    }
    if !stack.addr().is_multiple_of(ALIGN) {
        return Err(LACE_EBADF);
    }
    // SAFETY: the caller of the C function vouches that this is what `lace_stack_init` gave; aligned as that is. Only
    // cells change in it.
    let stack = unsafe { &*stack };
    if stack.magic.get() == RUNNING { Ok(stack) } else { Err(LACE_EBADF) }
}

/// Whether the pointer names a stack that was stopped.
pub(super) fn is_stopped(stack: *mut lace_stack) -> bool {
    // SAFETY: as in `enter`.
    !stack.is_null() && stack.addr().is_multiple_of(ALIGN) && unsafe { (*stack).magic.get() } == STOPPED
}
