//! # NICs
//!
//! A driver lends received frames when it is asked (`recv`, `release`), or pushes them (`lace_input`, and `pump`,
//! which asks it to); it may do both. It sends frames it is given (`send`), gathered from several spans if it can,
//! else from one buffer: its own (`tx_buffer`) or the stack's. A driver that keeps what it was given after `send` has
//! returned is *asynchronous*: it sets `LACE_NIC_ASYNC` and says `lace_nic_tx_done` later.

use super::arena::Core;
use super::guard::{enter, lace_stack};
use super::handle::request;
use super::region::{Region, overlaps};
use super::results::{LACE_EAGAIN, LACE_EBADF, LACE_EINVAL, LACE_EIO, LACE_EMFILE, status, value};
use super::structs::{Sized32, init, read};
use crate::stack::egress::MAX_BODY;
use crate::stack::interface::{Interface, NicId};
use crate::storage::host::{HostError, Nic, NicCaps, Pieces, SendError, Span, Token};
use crate::storage::time::Instant;
use crate::wire::ethernet::Address;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ops::Range;

/// Names a NIC: positive. 0 where any NIC will do.
pub type lace_nic_id = i32;

/// `lace_nic.caps`: verifies the IPv4 header checksum of received frames and says so per frame.
pub const LACE_NIC_RX_IP_SUM: u32 = 1;
/// `lace_nic.caps`: verifies UDP, TCP and ICMP checksums of received frames and says so per frame.
pub const LACE_NIC_RX_L4_SUM: u32 = 2;
/// `lace_nic.caps`: fills in the IPv4 header checksum of sent frames.
pub const LACE_NIC_TX_IP_SUM: u32 = 4;
/// `lace_nic.caps`: fills in the UDP or TCP checksum of sent frames; the field holds the sum of the pseudo header.
pub const LACE_NIC_TX_L4_SUM: u32 = 8;
/// `lace_nic.caps`: takes a frame as several spans, at most 6.
pub const LACE_NIC_GATHER: u32 = 16;
/// `lace_nic.caps`: keeps the spans of a frame until `lace_nic_tx_done`.
pub const LACE_NIC_ASYNC: u32 = 32;

/// `lace_frame.flags`: the NIC has verified the IPv4 header checksum.
pub const LACE_FRAME_IP_SUM_OK: u32 = 1;
/// `lace_frame.flags`: the NIC has verified the UDP, TCP or ICMP checksum.
pub const LACE_FRAME_L4_SUM_OK: u32 = 2;
/// `lace_frame.flags`: the NIC has taken the VLAN tag, the one of `lace_nic.vlan`, out of the frame.
pub const LACE_FRAME_VLAN_STRIPPED: u32 = 4;

/// A received frame. The layout is frozen.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_frame {
    /// The Ethernet frame from the destination address on, with or without its check sequence, at any alignment.
    /// *Lent until release*; never written to.
    pub data: *const c_void,
    /// Bytes.
    pub len: u32,
    /// `LACE_FRAME_...`.
    pub flags: u32,
    /// For the driver's own use: it finds it unchanged in `release`.
    pub cookie: usize,
}

/// A piece of a frame to send, or of a datagram. The layout is frozen.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_span {
    /// The bytes.
    pub data: *const c_void,
    /// How many.
    pub len: u32,
    /// 0.
    pub reserved: u32,
}

impl lace_span {
    fn of(span: &Span<'_, Region>) -> lace_span {
        let (data, len) = match *span {
            Span::Bytes(bytes) => (bytes.as_ptr(), bytes.len()),
            Span::Memory { memory, at, len } => (memory.as_ptr().wrapping_add(at).cast_const(), len),
        };
        lace_span { data: data.cast(), len: len as u32, reserved: 0 }
    }
}

/// A driver. Set up by `lace_nic_init`; copied by `lace_nic_add`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_nic {
    /// Size of this struct, set by `lace_nic_init`.
    pub size: u32,
    /// `LACE_NIC_...`: what it can do.
    pub caps: u32,
    /// Passed to every callback here. Must live until `lace_nic_remove` or the end of the stack.
    pub ctx: *mut c_void,
    /// Mandatory, leaf. Sends one frame, the `n` spans one behind the other: one, unless `LACE_NIC_GATHER`. At least
    /// 60 bytes; the check sequence is the NIC's. The spans are *borrowed for the call*; with `LACE_NIC_ASYNC` and a
    /// `token` other than 0 they are *lent until* `lace_nic_tx_done` of that token.
    ///
    /// A buffer lent by `tx_buffer` is given back by the next `send`, whatever that returns; `n` of 0 gives it back
    /// unused.
    ///
    /// Returns 0; `LACE_EAGAIN`: nothing was sent, the stack tries again in the next pass or at `lace_nic_tx_done`;
    /// any other negative number: the frame is lost, as on the wire.
    pub send: Option<unsafe extern "C" fn(ctx: *mut c_void, spans: *const lace_span, n: u32, token: u32) -> c_int>,
    /// Optional, leaf. Lends one received frame by filling in `*frame`. No second one is asked for before the first
    /// was released.
    ///
    /// Returns 1 if there is one; 0 if not; negative: none, because of an error.
    pub recv: Option<unsafe extern "C" fn(ctx: *mut c_void, frame: *mut lace_frame) -> c_int>,
    /// Optional, leaf. Takes a frame that `recv` lent back.
    pub release: Option<unsafe extern "C" fn(ctx: *mut c_void, frame: *const lace_frame)>,
    /// Optional, upcall. Asks the driver to hand over received frames by `lace_input`, as many as it likes, and to
    /// report what it has sent and how its link is. Called again in the same pass as long as frames come.
    pub pump: Option<unsafe extern "C" fn(ctx: *mut c_void)>,
    /// Optional, leaf. Lends a buffer of at least `len` bytes, aligned as the hardware wants it, for the next `send`;
    /// the stack writes the frame into it. NULL: no room now, as `LACE_EAGAIN` from `send`. Not used with
    /// `LACE_NIC_GATHER` and `LACE_NIC_ASYNC` together when file pages are sent.
    pub tx_buffer: Option<unsafe extern "C" fn(ctx: *mut c_void, len: u32) -> *mut c_void>,
    /// Optional, leaf. Returns 1 if the link is up, 0 if not. Asked when the NIC is added and about twice a second;
    /// without it the link is up until `lace_nic_link` says otherwise.
    pub link: Option<unsafe extern "C" fn(ctx: *mut c_void) -> c_int>,
    /// Optional, leaf. Says which multicast addresses are wanted: `n` of 6 bytes each, one behind the other,
    /// *borrowed for the call*. `promisc` 1: more than that, receive everything. Without it the NIC must receive all
    /// multicast frames.
    pub set_rx_filter: Option<unsafe extern "C" fn(ctx: *mut c_void, macs: *const u8, n: u32, promisc: c_int)>,
    /// Hardware address: not zero, not a multicast one.
    pub mac: [u8; 6],
    /// Largest IP packet in bytes, 68 to `lace_config.mtu`; default 1500.
    pub mtu: u16,
    /// VLAN that frames are tagged with, 1 to 4094; 0: untagged.
    pub vlan: u16,
    /// Alignment in bytes that the stack's own frames need, a power of two up to `lace_config.tx_align`; 0: none.
    pub tx_align: u16,
    /// 0.
    pub reserved: u32,
}

// SAFETY: integers, pointers and optional functions; the size is in front.
unsafe impl Sized32 for lace_nic {
    const MIN: usize = size_of::<lace_nic>();
    const PRESET: Option<fn(&mut Self)> = Some(|nic| nic.mtu = 1500);
}

/// Sets up `*nic`, `size` being `sizeof *nic`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nic_init(nic: *mut lace_nic, size: usize) -> c_int {
    init(nic, size)
}

/// A driver as the core sees it.
#[derive(Debug)]
pub struct CNic {
    pub(super) calls: lace_nic,
    arena: Range<usize>,
    lent: *mut u8,
    lent_len: usize,
}

impl CNic {
    fn give(&self, spans: &[lace_span], token: Token) -> Result<(), SendError> {
        let Some(send) = self.calls.send else { return Err(SendError::Failed(HostError(LACE_EIO))) };
        // SAFETY: the host vouches for its callback; the spans and what they name live as long as the contract says.
        match unsafe { send(self.calls.ctx, spans.as_ptr(), spans.len() as u32, token.0) } {
            LACE_EAGAIN => Err(SendError::Busy),
            code if code < 0 => Err(SendError::Failed(HostError(code))),
            _ => Ok(()),
        }
    }
}

impl Nic for CNic {
    type Memory = Region;

    fn caps(&self) -> NicCaps {
        NicCaps::from_bits_truncate(self.calls.caps)
    }

    fn send(&mut self, pieces: &mut Pieces<'_, Region>, token: Token) -> Result<(), SendError> {
        let mut out = [const { MaybeUninit::<lace_span>::uninit() }; MAX_BODY + 2];
        let mut count = 0;
        while let Some(span) = pieces.take() {
            if let Some(to) = out.get_mut(count) {
                to.write(lace_span::of(&span));
            }
            count += 1;
        }
        if count > out.len() {
            return Err(SendError::Failed(HostError(LACE_EINVAL)));
        }
        // SAFETY: so many were written.
        self.give(unsafe { core::slice::from_raw_parts(out.as_ptr().cast(), count) }, token)
    }

    fn send_whole(&mut self, frame: &[u8], token: Token) -> Result<(), SendError> {
        self.give(&[lace_span::of(&Span::Bytes(frame))], token)
    }

    fn send_pair(&mut self, head: &[u8], body: Span<'_, Region>, token: Token) -> Result<(), SendError> {
        self.give(&[lace_span::of(&Span::Bytes(head)), lace_span::of(&body)], token)
    }

    fn has_tx_buffer(&self) -> bool {
        self.calls.tx_buffer.is_some()
    }

    fn tx_buffer(&mut self, len: usize) -> Option<&mut [u8]> {
        let tx_buffer = self.calls.tx_buffer?;
        // SAFETY: the host vouches for its callback.
        let start = unsafe { tx_buffer(self.calls.ctx, u32::try_from(len).ok()?) }.cast::<u8>();
        let at = start.addr();
        if at == 0 || overlaps(&(at..at.checked_add(len)?), &self.arena) {
            return None;
        }
        self.lent = start;
        self.lent_len = len;
        // SAFETY: the driver lends at least `len` bytes, to the stack alone, until the next `send`.
        Some(unsafe { core::slice::from_raw_parts_mut(start, len) })
    }

    fn send_buffer(&mut self, len: usize, token: Token) -> Result<(), SendError> {
        if len == 0 {
            return self.give(&[], token);
        }
        let span = lace_span { data: self.lent.cast_const().cast(), len: len.min(self.lent_len) as u32, reserved: 0 };
        self.give(&[span], token)
    }

    fn set_rx_filter(&mut self, groups: &[[u8; 6]]) {
        if let Some(set) = self.calls.set_rx_filter {
            // SAFETY: the host vouches for its callback; the addresses live during the call.
            unsafe { set(self.calls.ctx, groups.as_flattened().as_ptr(), groups.len() as u32, 0) };
        }
    }
}

/// What the engine does not know of a NIC.
#[derive(Clone, Copy, Debug, Default)]
pub struct NicState {
    /// When to ask for the link again.
    pub next_link: Instant,
    /// Whom to tell of a lost lease.
    #[cfg(feature = "dhcp")]
    pub lost: super::udp::Handler<super::dhcp::lace_dhcp_lost>,
}

fn check(nic: &lace_nic, net: &lace_stack) -> Result<(), i32> {
    let config = &net.config;
    let mac = Address(nic.mac);
    let own_frames = nic.tx_buffer.is_none() && nic.caps & LACE_NIC_GATHER == 0
        || nic.caps & (LACE_NIC_GATHER | LACE_NIC_ASYNC) == LACE_NIC_GATHER | LACE_NIC_ASYNC;
    let align = nic.tx_align;
    let sound = nic.send.is_some()
        && NicCaps::from_bits(nic.caps).is_some()
        && !mac.is_multicast()
        && nic.mac != [0; 6]
        && (68..=config.mtu).contains(&nic.mtu)
        && nic.vlan <= 4094
        && (align == 0 || align.is_power_of_two())
        && nic.reserved == 0
        && (!own_frames || (align <= config.tx_align && config.tx_frames > 0));
    if sound { Ok(()) } else { Err(LACE_EINVAL) }
}

/// Adds a NIC; no frame leaves it before it has an address, DHCP runs on it, or something is sent over it by name.
///
/// Returns its id; `LACE_EFAULT`, `LACE_EINVAL`: see the fields of `lace_nic`, and `lace_config.tx_frames` is at
/// least 1 for a NIC without `tx_buffer`; `LACE_EMFILE`: `lace_config.nics` is reached; `LACE_EBUSY`;
/// `LACE_ENETDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nic_add(net: *mut lace_stack, nic: *const lace_nic) -> lace_nic_id {
    value(enter(net).and_then(|net| {
        let calls = read(nic)?;
        check(&calls, net)?;
        net.call(|core| {
            let vlan = (calls.vlan != 0).then_some(calls.vlan);
            let driver = CNic { calls, arena: net.arena.clone(), lent: core::ptr::null_mut(), lent_len: 0 };
            let interface = Interface::new(driver, Address(calls.mac), calls.mtu, vlan);
            let id = core.engine.stack.add_interface(interface).ok_or(LACE_EMFILE)?;
            if let Some(state) = core.nics.get_mut(usize::from(id.0)) {
                *state = NicState::default();
            }
            let handle = net.nics.open_next(usize::from(id.0));
            core.ask_link(id);
            Ok(handle)
        })
    }))
}

/// Takes a NIC out with its addresses, routes and neighbours. Frames it still holds count as done: it must be halted
/// before. From an upcall it takes effect when the outermost upcall has returned.
///
/// Returns 0; `LACE_EBADF`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nic_remove(net: *mut lace_stack, nic: lace_nic_id) -> c_int {
    status(enter(net).and_then(|net| {
        net.ask(&net.nics, nic, request::REMOVE, |core, _| {
            core.remove_nic(net, nic);
            core.engine.follow();
            Ok(())
        })
    }))
}

/// Says that the NIC was reset and holds no frame any more: all its tokens are done. From an upcall it takes effect
/// when the outermost upcall has returned.
///
/// Returns 0; `LACE_EBADF`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nic_reset(net: *mut lace_stack, nic: lace_nic_id) -> c_int {
    status(enter(net).and_then(|net| {
        net.ask(&net.nics, nic, request::RESET, |core, _| {
            core.reset_nic(net, nic);
            Ok(())
        })
    }))
}

/// Says that an asynchronous NIC is done with the frame of `token`.
///
/// Returns 0; `LACE_EBADF`; `LACE_EINVAL` for a token that is not out with that NIC; `LACE_EBUSY` from a leaf callback:
/// report from `pump`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nic_tx_done(net: *mut lace_stack, nic: lace_nic_id, token: u32) -> c_int {
    status(enter(net).and_then(|net| {
        let id = nic_at(net, nic)?;
        net.call_always(|core| if core.engine.tx_done(id, Token(token)) { Ok(()) } else { Err(LACE_EINVAL) })
    }))
}

/// Says whether the link is up (`up` not 0) or down. While it is down nothing is sent, and what was learned of the
/// neighbours is forgotten.
///
/// Returns 0; `LACE_EBADF`; `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nic_link(net: *mut lace_stack, nic: lace_nic_id, up: c_int) -> c_int {
    status(enter(net).and_then(|net| {
        let id = nic_at(net, nic)?;
        net.call(|core| {
            core.set_link(id, up != 0);
            Ok(())
        })
    }))
}

/// Changes the hardware address to the 6 bytes at `mac`. Peers learn it with the next frame.
///
/// Returns 0; `LACE_EBADF`; `LACE_EINVAL` for an address that no host can have; `LACE_EFAULT`; `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_nic_set_mac(net: *mut lace_stack, nic: lace_nic_id, mac: *const u8) -> c_int {
    status(enter(net).and_then(|net| {
        let id = nic_at(net, nic)?;
        if mac.is_null() {
            return Err(super::results::LACE_EFAULT);
        }
        // SAFETY: the caller gives 6 bytes.
        let mac = Address(unsafe { mac.cast::<[u8; 6]>().read() });
        if mac.is_multicast() || mac == Address::ZERO {
            return Err(LACE_EINVAL);
        }
        net.call(|core| {
            let interface = core.engine.stack.interface_mut(id).ok_or(LACE_EBADF)?;
            interface.mac = mac;
            Ok(())
        })
    }))
}

/// The NIC a handle names.
pub(super) fn nic_at(net: &lace_stack, nic: lace_nic_id) -> Result<NicId, i32> {
    let (key, _) = net.nics.find(nic)?;
    u8::try_from(key.index).map(NicId).map_err(|_| LACE_EBADF)
}

/// The same where 0 stands for any.
pub(super) fn nic_or_any(net: &lace_stack, nic: lace_nic_id) -> Result<Option<NicId>, i32> {
    if nic == 0 { Ok(None) } else { nic_at(net, nic).map(Some) }
}

/// The handle of a NIC; 0 for one that is gone.
pub(super) fn handle_of(net: &lace_stack, nic: NicId) -> lace_nic_id {
    net.nics.entries.get(usize::from(nic.0)).map_or(0, |e| e.handle())
}

impl Core {
    /// Sets the link state if it changed.
    pub(super) fn set_link(&mut self, nic: NicId, up: bool) {
        let stack = &mut self.engine.stack;
        if stack.interface(nic).is_some_and(|i| i.link != up) {
            stack.set_link(nic, up);
        }
    }

    /// Asks the driver for its link, if it is time.
    pub(super) fn ask_link(&mut self, nic: NicId) {
        let now = self.engine.stack.now;
        let Some(state) = self.nics.get_mut(usize::from(nic.0)) else { return };
        if now < state.next_link {
            return;
        }
        let Some(calls) = self.engine.stack.interface(nic).map(|i| i.nic.calls) else { return };
        let Some(link) = calls.link else {
            state.next_link = Instant::NEVER;
            return;
        };
        state.next_link = now + crate::storage::time::Duration::from_millis(500);
        // SAFETY: the host vouches for its callback.
        let up = unsafe { link(calls.ctx) } != 0;
        self.set_link(nic, up);
    }

    /// A NIC holds no frame any more.
    pub(super) fn reset_nic(&mut self, net: &lace_stack, handle: i32) {
        if let Ok(nic) = nic_at(net, handle) {
            self.engine.reset_interface(nic);
        }
    }

    /// Takes a NIC out.
    pub(super) fn remove_nic(&mut self, net: &lace_stack, handle: i32) {
        let Ok(nic) = nic_at(net, handle) else { return };
        self.engine.reset_interface(nic);
        #[cfg(feature = "dhcp")]
        self.engine.dhcp_stop(nic);
        self.engine.stack.remove_interface(nic);
        if let Some(entry) = net.nics.entries.get(usize::from(nic.0)) {
            entry.clear();
        }
    }
}
