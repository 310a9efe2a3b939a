//! # DHCP
//!
//! A NIC gets its address from a server (RFC 2131), or by BOOTP. The operation ends when the address is set; closing
//! it leaves the lease with the NIC, where it takes neither an operation nor a socket: `lace_poll` renews it until it
//! is released, until the host sets an address of its own, or until it is lost.

use super::addr::{lace_ip, lace_peer};
use super::guard::{Upcall, enter, lace_stack};
use super::nic::{lace_nic_id, nic_at};
use super::op::{Notify, begin, lace_done, lace_op};
use super::region::Region;
use super::results::{LACE_EFAULT, LACE_EINVAL, LACE_ENOENT, code, status, value};
use super::sink::CText;
use super::structs::{Sized32, init, with, writable};
use super::udp::Handler;
use crate::client::dhcp::op::Dhcp;
use crate::client::dhcp::{DEFAULT_TIMEOUT, Request};
use crate::client::dns::literal;
use crate::client::ops::Client;
use crate::stack::interface::{NicId, is_host_address};
use crate::storage::host::{LeasePart, LeaseStore};
use crate::storage::time::Duration;
use crate::wire::dhcp::{Message, code as option};
use core::ffi::{c_char, c_int, c_void};
use core::net::Ipv4Addr;

/// For `lace_dhcp.timeout_ms`: try for ever.
pub const LACE_FOREVER: u32 = 0xffff_ffff;

/// What to ask for. Set up by `lace_dhcp_init`; copied at start. The texts and lists are *borrowed for the call* that
/// starts the operation; together they hold at most 232 bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_dhcp {
    /// Size of this struct.
    pub size: u32,
    /// How long to try, in milliseconds; 0: 90000; `LACE_FOREVER`.
    pub timeout_ms: u32,
    /// Address to ask for again; none: any.
    pub ip: lace_ip,
    /// 1: ask for `ip` straight away, without looking for servers first (INIT-REBOOT).
    pub reboot: u8,
    /// 1: keep the NIC's address and ask for the other parameters alone (DHCPINFORM).
    pub inform: u8,
    /// 1, the default: ask for answers by broadcast.
    pub broadcast: u8,
    /// 1, the default: take BOOTP replies.
    pub bootp: u8,
    /// 1, the default: ask by ARP whether another host has the address before it is used.
    pub probe: u8,
    /// 1, the default: take classless routes (option 121).
    pub classless_routes: u8,
    /// 1: say that this is a PXE client, and take boot data from a proxyDHCP server.
    pub pxe: u8,
    /// 1: send `arch` (option 93).
    pub has_arch: u8,
    /// Client system architecture (RFC 4578).
    pub arch: u16,
    /// 1: send `ndi` (option 94).
    pub has_ndi: u8,
    /// Network interface identifier: type, major, minor.
    pub ndi: [u8; 3],
    /// 0.
    pub reserved: [u8; 2],
    /// How long to wait for a proxyDHCP server, in milliseconds; 0: 1000 for a PXE client, else not at all.
    pub proxy_wait_ms: u32,
    /// Lease time to ask for, in seconds; 0: leave it to the server.
    pub lease_s: u32,
    /// Host name (option 12), NUL-terminated, or NULL.
    pub host_name: *const c_char,
    /// Vendor class (option 60), NUL-terminated, or NULL.
    pub vendor_class: *const c_char,
    /// User class (option 77), NUL-terminated, sent as it is, or NULL.
    pub user_class: *const c_char,
    /// Client identifier (option 61), its type byte in front, or NULL.
    pub client_id: *const u8,
    /// Machine identifier (option 97): 16 bytes, or NULL.
    pub uuid: *const u8,
    /// Codes of options to ask for beside the usual ones, at most 16.
    pub parameters: *const u8,
    /// Options to send with every message, each as code, length and value.
    pub options: *const u8,
    /// Bytes of `client_id`.
    pub client_id_len: u32,
    /// Bytes of `parameters`.
    pub parameters_len: u32,
    /// Bytes of `options`.
    pub options_len: u32,
    /// 0.
    pub reserved2: u32,
    /// Optional.
    pub done: lace_done,
    /// Passed to it.
    pub ctx: *mut c_void,
}

// SAFETY: integers, pointers and optional functions; the size is in front.
unsafe impl Sized32 for lace_dhcp {
    const MIN: usize = size_of::<lace_dhcp>();
    const PRESET: Option<fn(&mut Self)> =
        Some(|dhcp| (dhcp.broadcast, dhcp.bootp, dhcp.probe, dhcp.classless_routes) = (1, 1, 1, 1));
}

/// What the servers granted. Set up by `lace_lease_init`; filled in while the operation runs, complete when it has
/// ended with 0. It holds its texts itself, and `boot_server.name` points into it: do not copy it. It must live until
/// the operation was closed.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_lease {
    /// Size of this struct.
    pub size: u32,
    /// Length of the network's prefix in bits.
    pub prefix: u32,
    /// The address.
    pub ip: lace_ip,
    /// The DHCP server; none for BOOTP.
    pub server: lace_ip,
    /// The first router; none if none was named.
    pub gateway: lace_ip,
    /// Name servers; the first none ends the list.
    pub dns: [lace_ip; 3],
    /// Seconds the lease lasts from the request on; 0xffffffff: for ever.
    pub lease_s: u32,
    /// MTU of the link in bytes; 0: not told.
    pub mtu: u32,
    /// Where to boot from: the address of option 150, of option 66, or of `siaddr`; else the name of option 66 or
    /// `sname`; else the DHCP server. A proxyDHCP or boot server's word counts before that.
    pub boot_server: lace_peer,
    /// What to boot: option 67 or `file`; NUL-terminated, "" if not told.
    pub boot_file: [c_char; 256],
    /// Name of the boot server, if one was told.
    pub boot_server_name: [c_char; 128],
    /// Host name (option 12), or "".
    pub host_name: [c_char; 64],
    /// Domain (option 15), or "".
    pub domain: [c_char; 128],
    /// Root path (option 17), or "".
    pub root_path: [c_char; 256],
    /// Bytes of `options` in use.
    pub options_len: u32,
    /// 1: not all options had room.
    pub options_cut: u32,
    /// All options that came, for `lace_lease_option`.
    pub options: [u8; 1024],
}

// SAFETY: integers and pointers; the size is in front.
unsafe impl Sized32 for lace_lease {
    const MIN: usize = size_of::<lace_lease>();
}

/// Sets up `*dhcp`, `size` being `sizeof *dhcp`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_dhcp_init(dhcp: *mut lace_dhcp, size: usize) -> c_int {
    init(dhcp, size)
}

/// Sets up `*lease`, `size` being `sizeof *lease`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_lease_init(lease: *mut lace_lease, size: usize) -> c_int {
    init(lease, size)
}

/// Starts DHCP on a NIC; `dhcp` NULL: the usual request; `lease` NULL: nobody wants to know more than that the
/// address is set. What ran on that NIC before is ended. The operation's result is 0.
///
/// Returns the operation; `LACE_EFAULT`, also for a lease that overlaps the stack's own memory; `LACE_EINVAL` for
/// options that do not parse, or that the client sets itself; `LACE_ENAMETOOLONG` for more texts than fit;
/// `LACE_EMFILE`, `LACE_EBADF`, `LACE_EBUSY`, `LACE_ENETDOWN`. The operation fails with `LACE_ETIMEDOUT`: no usable
/// answer; its detail has the text of the last refusal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_dhcp_start(
    net: *mut lace_stack,
    nic: lace_nic_id,
    dhcp: *const lace_dhcp,
    lease: *mut lace_lease,
) -> lace_op {
    let lease = CLease { to: lease };
    if !lease.to.is_null()
        && let Err(code) = writable(lease.to)
    {
        return code;
    }
    let begin = |given: &lace_dhcp| {
        begin(net, &Notify { progress: None, done: given.done, ctx: given.ctx }, |net| {
            if !lease.to.is_null() {
                Region::new(lease.to.cast(), size_of::<lace_lease>(), &net.arena)?;
            }
            let request = request(given, nic_at(net, nic)?)?;
            Ok(Client::Dhcp(Dhcp::new(request, lease)))
        })
    };
    if dhcp.is_null() { begin(&lace_dhcp::fresh()) } else { value(with(dhcp, |given| Ok(begin(given)))) }
}

// Out of line: two dozen fields would be loaded before the stack is looked at, and kept until it was.
#[inline(never)]
fn request(d: &lace_dhcp, nic: NicId) -> Result<Request<CText>, i32> {
    let text = |text: *const c_char| {
        if text.is_null() { Ok(None) } else { super::addr::text(text, 255).map(|t| Some(CText::new(t))) }
    };
    let list = |start: *const u8, len: u32| {
        if start.is_null() {
            return if len == 0 { Ok(None) } else { Err(LACE_EFAULT) };
        }
        if len > 1024 {
            return Err(LACE_EINVAL);
        }
        // SAFETY: the caller gives `len` bytes, and they are looked at during the call that starts the operation only.
        Ok(Some(CText::new(unsafe { core::slice::from_raw_parts(start, len as usize) })))
    };
    if d.reserved != [0; 2] || d.reserved2 != 0 {
        return Err(LACE_EINVAL);
    }
    let address = d.ip.v4()?;
    Ok(Request {
        address: (!address.is_unspecified()).then_some(address),
        reboot: d.reboot != 0,
        inform: d.inform != 0,
        broadcast: d.broadcast != 0,
        bootp: d.bootp != 0,
        probe: d.probe != 0,
        classless_routes: d.classless_routes != 0,
        timeout: match d.timeout_ms {
            0 => Some(DEFAULT_TIMEOUT),
            LACE_FOREVER => None,
            ms => Some(Duration::from_millis(u64::from(ms))),
        },
        pxe: d.pxe != 0,
        proxy_wait: (d.proxy_wait_ms != 0).then(|| Duration::from_millis(u64::from(d.proxy_wait_ms))),
        lease_s: (d.lease_s != 0).then_some(d.lease_s),
        host_name: text(d.host_name)?,
        client_id: list(d.client_id, d.client_id_len)?,
        vendor_class: text(d.vendor_class)?,
        user_class: text(d.user_class)?,
        arch: (d.has_arch != 0).then_some(d.arch),
        ndi: (d.has_ndi != 0).then_some(d.ndi),
        // SAFETY: not null, and the caller gives 16 bytes.
        uuid: (!d.uuid.is_null()).then(|| unsafe { d.uuid.cast::<[u8; 16]>().read() }),
        parameters: list(d.parameters, d.parameters_len)?,
        options: list(d.options, d.options_len)?,
        ..Request::new(nic)
    })
}

/// Option `code` as it came, all its parts put together: as much as fits into the `size` bytes at `buffer`, which may
/// be NULL when `size` is 0. Options that have to do with booting are a proxyDHCP or boot server's, if one had them.
///
/// Returns the option's whole length; `LACE_ENOENT`: it did not come; `LACE_EFAULT`, `LACE_EINVAL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_lease_option(
    lease: *const lace_lease,
    code: u8,
    buffer: *mut c_void,
    size: usize,
) -> c_int {
    if let Err(code) = writable(lease.cast_mut()) {
        return code;
    }
    if buffer.is_null() && size > 0 {
        return LACE_EFAULT;
    }
    // SAFETY: set up, and the caller vouches for it.
    let lease = unsafe { &*lease };
    let has = |part| Parts(lease.stored()).any(|(p, c, _)| (p, c) == (part, code));
    let boots = is_boot_option(code) && has(LeasePart::Boot);
    let from = if boots || !has(LeasePart::Address) { LeasePart::Boot } else { LeasePart::Address };
    let mut len = None;
    for (part, c, value) in Parts(lease.stored()) {
        if (part, c) != (from, code) {
            continue;
        }
        let at = len.unwrap_or(0);
        let fits = value.len().min(size.saturating_sub(at));
        // SAFETY: below `size`, for which the caller says there is room; of no bytes there are none.
        unsafe { core::ptr::copy_nonoverlapping(value.as_ptr(), buffer.cast::<u8>().wrapping_add(at), fits) };
        len = Some(at + value.len());
    }
    len.map_or(LACE_ENOENT, |len| len as c_int)
}

/// Options that say how to boot.
fn is_boot_option(code: u8) -> bool {
    matches!(code, option::VENDOR_SPECIFIC | option::VENDOR_CLASS | option::TFTP_SERVER_NAME | option::BOOT_FILE)
        || matches!(code, 97 | 128..=135 | option::TFTP_SERVER_ADDRESS | 209..=210)
}

/// Gives a NIC's address back to its server. The address goes when the message has left, at latest after a second.
///
/// Returns 0; `LACE_EADDRNOTAVAIL`: it has none from DHCP; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_dhcp_release(net: *mut lace_stack, nic: lace_nic_id) -> c_int {
    status(enter(net).and_then(|net| {
        let nic = nic_at(net, nic)?;
        net.call(|core| core.engine.dhcp_release(nic).map_err(code))
    }))
}

/// Ends DHCP on a NIC without a word to the server: an address that it has set goes.
///
/// Returns 0; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_dhcp_stop(net: *mut lace_stack, nic: lace_nic_id) -> c_int {
    status(enter(net).and_then(|net| {
        let nic = nic_at(net, nic)?;
        net.call(|core| {
            core.engine.dhcp_stop(nic);
            core.engine.follow();
            Ok(())
        })
    }))
}

/// `lace_dhcp_state`: DHCP does not run.
pub const LACE_DHCP_OFF: i32 = 0;
/// `lace_dhcp_state`: the NIC has its address; while it is renewed, too.
pub const LACE_DHCP_BOUND: i32 = 1;
/// `lace_dhcp_state`: on its way there, or giving it back.
pub const LACE_DHCP_BUSY: i32 = 2;

/// What DHCP does on a NIC.
///
/// Returns `LACE_DHCP_OFF`, `LACE_DHCP_BOUND` or `LACE_DHCP_BUSY`; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_dhcp_state(net: *mut lace_stack, nic: lace_nic_id) -> c_int {
    value(enter(net).and_then(|net| {
        let nic = nic_at(net, nic)?;
        net.call_always(|core| {
            let client = core.engine.shared.dhcp.get(usize::from(nic.0));
            Ok(match client {
                Some(c) if c.lease().is_some() && c.is_settled() => LACE_DHCP_BOUND,
                Some(c) if c.is_active() => LACE_DHCP_BUSY,
                _ => LACE_DHCP_OFF,
            })
        })
    }))
}

/// Called when a NIC has lost its address: it expired, the server refused to prolong it, or another host has it. DHCP
/// goes on looking for another. Upcall.
pub type lace_dhcp_lost = Option<unsafe extern "C" fn(ctx: *mut c_void, nic: lace_nic_id, ip: *const lace_ip)>;

/// Has `lost` (NULL: nobody) called with `ctx` when a NIC loses an address that DHCP had set.
///
/// Returns 0; `LACE_EBADF`, `LACE_EBUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_dhcp_on_lost(
    net: *mut lace_stack,
    nic: lace_nic_id,
    lost: lace_dhcp_lost,
    ctx: *mut c_void,
) -> c_int {
    status(enter(net).and_then(|net| {
        let nic = nic_at(net, nic)?;
        net.call(|core| {
            if let Some(state) = core.nics.get_mut(usize::from(nic.0)) {
                state.lost = Handler { call: lost, ctx };
            }
            Ok(())
        })
    }))
}

/// Tells of addresses that were lost.
#[inline(never)]
pub(super) fn tell_lost(net: &lace_stack) {
    for index in 0..net.nics.entries.len() {
        let told = net.access(|core| {
            let addr = core.engine.shared.dhcp.take_lost(index)?;
            Some((core.nics.get(index)?.lost, addr))
        });
        if let Some((handler, addr)) = told
            && let Some(call) = handler.call
        {
            let (nic, ip) = (super::nic::handle_of(net, NicId(index as u8)), lace_ip::from(addr));
            // SAFETY: the host vouches for its callback; the address lives until it returns.
            net.upcall(Upcall::Other, || unsafe { call(handler.ctx, nic, &raw const ip) });
        }
    }
}

/// Where a lease is kept for C.
#[derive(Clone, Copy, Debug)]
pub struct CLease {
    to: *mut lace_lease,
}

impl lace_lease {
    /// As it was set up. Field by field: the struct has two kilobytes, which are not to be made on the stack below
    /// `lace_poll` to be copied.
    fn empty(&mut self) {
        (self.prefix, self.lease_s, self.mtu) = (0, 0, 0);
        (self.ip, self.server, self.gateway) = (lace_ip::NONE, lace_ip::NONE, lace_ip::NONE);
        self.dns = [lace_ip::NONE; 3];
        self.boot_server = lace_peer::NONE;
        self.boot_file.fill(0);
        self.boot_server_name.fill(0);
        self.host_name.fill(0);
        self.domain.fill(0);
        self.root_path.fill(0);
        (self.options_len, self.options_cut) = (0, 0);
        self.options.fill(0);
    }
}

impl CLease {
    fn with(&mut self, work: impl FnOnce(&mut lace_lease)) {
        if !self.to.is_null() {
            // SAFETY: set up by `lace_lease_init`, which the start has looked at; the caller keeps it until the operation
            // was closed, and looks at it between calls only.
            work(unsafe { &mut *self.to });
        }
    }
}

impl LeaseStore for CLease {
    fn clear(&mut self) {
        self.with(lace_lease::empty);
    }

    fn store(&mut self, part: LeasePart, message: &[u8]) {
        let Ok(message) = Message::parse(message) else { return };
        self.with(|lease| {
            lease.drop_options(part);
            let booted = part == LeasePart::Address && Parts(lease.stored()).any(|(p, _, _)| p == LeasePart::Boot);
            lease.add_options(part, &message);
            if part == LeasePart::Address {
                lease.set_address(&message);
            }
            if !booted {
                lease.set_boot(&message);
            }
        });
    }
}

/// Bytes in front of each option that is kept: part, code, length.
const KEPT_HEADER: usize = 3;

/// The options kept: part, code, value.
#[derive(Clone, Copy, Debug)]
struct Parts<'o>(&'o [u8]);

impl<'o> Iterator for Parts<'o> {
    type Item = (LeasePart, u8, &'o [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[part, code, len], rest) = self.0.split_first_chunk::<KEPT_HEADER>()?;
        let (value, rest) = rest.split_at_checked(usize::from(len))?;
        self.0 = rest;
        Some((if part == 0 { LeasePart::Address } else { LeasePart::Boot }, code, value))
    }
}

impl lace_lease {
    fn stored(&self) -> &[u8] {
        self.options.get(..self.options_len as usize).unwrap_or(&[])
    }

    /// Drops the options of one part.
    fn drop_options(&mut self, part: LeasePart) {
        let (mut from, mut to) = (0usize, 0usize);
        while let Some((p, _, value)) = self.stored().get(from..).and_then(|rest| Parts(rest).next()) {
            let len = value.len() + KEPT_HEADER;
            if p != part {
                self.options.copy_within(from..from + len, to);
                to += len;
            }
            from += len;
        }
        self.options_len = to as u32;
        self.options_cut = 0;
    }

    fn add_options(&mut self, part: LeasePart, message: &Message<'_>) {
        for (code, value) in message.options() {
            let start = self.options_len as usize;
            let end = start + KEPT_HEADER + value.len();
            let Some(place) = self.options.get_mut(start..end) else {
                self.options_cut = 1;
                continue;
            };
            let (head, body) = place.split_at_mut(KEPT_HEADER);
            head.copy_from_slice(&[u8::from(part == LeasePart::Boot), code, value.len() as u8]);
            body.copy_from_slice(value);
            self.options_len = end as u32;
        }
    }

    fn set_address(&mut self, message: &Message<'_>) {
        let addr = if message.yiaddr().is_unspecified() { message.ciaddr() } else { message.yiaddr() };
        self.ip.set(addr);
        let [first, ..] = addr.octets();
        let class = if first < 128 {
            8
        } else if first < 192 {
            16
        } else {
            24
        };
        self.prefix = message.u32(option::SUBNET_MASK).map_or(class, u32::leading_ones);
        self.server.set(server_of(message));
        self.gateway.set(message.ipv4_list(option::ROUTER).next().unwrap_or(Ipv4Addr::UNSPECIFIED));
        self.dns = [lace_ip::NONE; 3];
        let servers = message.ipv4_list(option::DNS_SERVER).filter(|s| is_host_address(*s));
        for (to, server) in self.dns.iter_mut().zip(servers) {
            to.set(server);
        }
        self.lease_s = message.u32(option::LEASE_TIME).unwrap_or(u32::MAX);
        self.mtu = message.u16(option::INTERFACE_MTU).map_or(0, u32::from);
        put(&mut self.host_name, message, option::HOST_NAME, &[]);
        put(&mut self.domain, message, option::DOMAIN_NAME, &[]);
        put(&mut self.root_path, message, option::ROOT_PATH, &[]);
    }

    fn set_boot(&mut self, message: &Message<'_>) {
        put(&mut self.boot_file, message, option::BOOT_FILE, message.file());
        put(&mut self.boot_server_name, message, option::TFTP_SERVER_NAME, message.sname());
        let mut name = [0u8; 128];
        let named = message.text(option::TFTP_SERVER_NAME, &mut name).unwrap_or(message.sname());
        let addr = message
            .ipv4_list(option::TFTP_SERVER_ADDRESS)
            .find(|a| is_host_address(*a))
            .or_else(|| literal(named))
            .or_else(|| Some(message.siaddr()).filter(|a| is_host_address(*a)));
        self.boot_server = lace_peer::NONE;
        match addr {
            None if !named.is_empty() => self.boot_server.name = self.boot_server_name.as_ptr(),
            addr => self.boot_server.ip.set(addr.unwrap_or_else(|| server_of(message))),
        }
    }
}

/// The server that sent a message; unspecified if it does not say.
fn server_of(message: &Message<'_>) -> Ipv4Addr {
    message.ipv4(option::SERVER_ID).unwrap_or(Ipv4Addr::UNSPECIFIED)
}

/// Puts the text of option `code`, else `or`, into `to`, NUL-terminated; "" when it does not fit.
fn put(to: &mut [c_char], message: &Message<'_>, code: u8, or: &[u8]) {
    let mut buf = [0u8; 255];
    let text = message.text(code, &mut buf).unwrap_or(or);
    let text = text.split(|b| *b == 0).next().filter(|t| t.len() < to.len()).unwrap_or(&[]);
    to.fill(0);
    for (to, from) in to.iter_mut().zip(text) {
        *to = *from as c_char;
    }
}
