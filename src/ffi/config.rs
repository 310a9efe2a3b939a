//! # Configuration
//!
//! Limits are numbers of the configuration, not of the library: a stack takes one block of memory from its caller, as
//! large as `lace_stack_size` says for them, and no other. All knobs of a stack:
//!
//! | field | default | full | what |
//! |---|---|---|---|
//! | `nics` | 1 | 4 | NICs |
//! | `operations` | 2 | 8 | operations that run, or wait to be closed, at a time |
//! | `udp_sockets` | 4 | 16 | UDP sockets; an operation takes one or two while it runs |
//! | `udp_queues` | 0 | 4 | queues: of sockets that are polled (`lace_udp_open_queue`), and for a block that a `write` sink refuses |
//! | `udp_queue_bytes` | 2048 | 4096 | bytes for what waits in each of them; 16 bytes a datagram are for its sender |
//! | `hooks` | 0 | 4 | raw hooks |
//! | `routes` | 4 | 16 | routes beside the networks of the NICs' own addresses |
//! | `neighbours` | 4 | 16 | hosts on the links whose hardware addresses are remembered |
//! | `mtu` | 1500 | 1500 | largest MTU of any NIC; 9000 for jumbo frames |
//! | `tx_frames` | 1 | 8 | frames of the stack's own for NICs without `tx_buffer`: 1 unless asynchronous; 0 when every NIC has it |
//! | `wait_frames` | 1 | 4 | frames kept while a hardware address is asked for; with 0, sending says `LACE_EAGAIN` instead |
//! | `reassembly_slots` | 2 | 16 | fragmented datagrams that are put together at a time |
//! | `reassembly_buffers` | 0 | 2 | buffers for those whose bytes have no place in a sink's memory |
//! | `reassembly_bytes` | 9216 | 9216 | bytes of payload that each buffer holds, up to 65535 |
//! | `reassembly_timeout_ms` | 30000 | 30000 | how long a datagram in a buffer may be incomplete |
//! | `dns_names` | 2 | 16 | names remembered |
//! | `tcp_connections` | 0 | 4 | TCP connections; one that is being closed keeps its place until the peer has answered |
//! | `tcp_listeners` | 0 | 2 | TCP listeners |
//! | `tcp_receive_bytes` | 8192 | 8192 | bytes of each connection's receive ring: its window beside the regions queued |
//! | `tcp_send_bytes` | 8192 | 8192 | bytes of each connection's send ring; files need none |
//! | `tcp_segments` | 64 | 64 | segments in flight of each connection that are told apart; 8 do for short paths |
//! | `tcp_ranges` | 8 | 32 | ranges received out of order that each connection keeps; 0: none is kept |
//! | `tcp_pages` | 0 | 16 | pages of files lent to NICs at a time, of all connections; a file in memory takes one |
//! | `nfs_jobs` | 0 | 3 | NFS operations that run at a time, open files among them |
//! | `http_jobs` | 0 | 3 | HTTP operations that run, or wait to be closed, at a time |
//! | `tx_align` | 64 | 64 | alignment of the stack's own frames: a power of two, 1 to 4096 |
//!
//! Each operation has its own knobs in the struct that starts it; 0 there stands for the default, unless the field's
//! text says "default:", which is what its `lace_..._init` puts there.

use super::arena::Layout;
use super::handle::MAX_PLACES;
use super::results::{LACE_EFAULT, LACE_EINVAL};
use super::structs::{Sized32, init, read, write};
use core::ffi::c_int;

/// Limits of a stack: see the table. Set up by `lace_config_init` or `lace_config_full`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_config {
    /// Size of this struct, set by `lace_config_init`.
    pub size: u32,
    /// NICs, 1 to 255.
    pub nics: u16,
    /// Operations, 0 to 255.
    pub operations: u16,
    /// UDP sockets, 0 to 2048.
    pub udp_sockets: u16,
    /// UDP sockets that can be polled.
    pub udp_queues: u16,
    /// Bytes of each of their queues.
    pub udp_queue_bytes: u32,
    /// Raw hooks.
    pub hooks: u16,
    /// Routes.
    pub routes: u16,
    /// Neighbours, at least 1.
    pub neighbours: u16,
    /// Largest MTU in bytes, 68 to 65535.
    pub mtu: u16,
    /// Frames being sent.
    pub tx_frames: u16,
    /// Frames waiting for a neighbour.
    pub wait_frames: u16,
    /// Alignment of frames in bytes.
    pub tx_align: u16,
    /// Fragmented datagrams at a time.
    pub reassembly_slots: u16,
    /// Buffers for them.
    pub reassembly_buffers: u16,
    /// Names remembered.
    pub dns_names: u16,
    /// Bytes of payload of each buffer.
    pub reassembly_bytes: u32,
    /// Milliseconds.
    pub reassembly_timeout_ms: u32,
    /// NFS operations at a time, open files among them, 0 to 255.
    pub nfs_jobs: u16,
    /// HTTP operations at a time, 0 to 255.
    pub http_jobs: u16,
    /// TCP connections.
    pub tcp_connections: u16,
    /// TCP listeners.
    pub tcp_listeners: u16,
    /// Segments in flight of each connection that are told apart, at least 8.
    pub tcp_segments: u16,
    /// Ranges received out of order of each connection.
    pub tcp_ranges: u16,
    /// Pages lent to NICs at a time, of all connections.
    pub tcp_pages: u16,
    /// 0.
    pub reserved: u16,
    /// Bytes of each connection's receive ring.
    pub tcp_receive_bytes: u32,
    /// Bytes of each connection's send ring.
    pub tcp_send_bytes: u32,
}

impl lace_config {
    /// The default: what DHCP and a TFTP boot need.
    pub(super) const TFTP: lace_config = lace_config {
        size: 0,
        nics: 1,
        operations: 2,
        udp_sockets: 4,
        udp_queues: 0,
        udp_queue_bytes: 2048,
        hooks: 0,
        routes: 4,
        neighbours: 4,
        mtu: 1500,
        tx_frames: 1,
        wait_frames: 1,
        tx_align: 64,
        reassembly_slots: 2,
        reassembly_buffers: 0,
        dns_names: 2,
        reassembly_bytes: 9216,
        reassembly_timeout_ms: 30_000,
        nfs_jobs: 0,
        http_jobs: 0,
        tcp_connections: 0,
        tcp_listeners: 0,
        tcp_segments: 64,
        tcp_ranges: 8,
        tcp_pages: 0,
        reserved: 0,
        tcp_receive_bytes: 8192,
        tcp_send_bytes: 8192,
    };

    /// Everything there is.
    pub(super) const FULL: lace_config = lace_config {
        nics: 4,
        operations: 8,
        udp_sockets: 16,
        udp_queues: 4,
        udp_queue_bytes: 4096,
        hooks: 4,
        routes: 16,
        neighbours: 16,
        tx_frames: 8,
        wait_frames: 4,
        reassembly_slots: 16,
        reassembly_buffers: 2,
        dns_names: 16,
        nfs_jobs: 3,
        http_jobs: 3,
        tcp_connections: 4,
        tcp_listeners: 2,
        tcp_ranges: 32,
        tcp_pages: 16,
        ..lace_config::TFTP
    };

    /// Refuses what no stack can be made of.
    pub(super) fn check(&self) -> Result<(), i32> {
        let places = [self.udp_sockets, self.udp_queues, self.hooks, self.routes, self.neighbours];
        let sound = (1..=255).contains(&self.nics)
            && self.operations <= 255
            && places.iter().all(|n| usize::from(*n) <= MAX_PLACES)
            && self.udp_queues <= self.udp_sockets
            && self.neighbours > 0
            && self.mtu >= 68
            && self.tx_align.is_power_of_two()
            && self.tx_align <= 4096
            && usize::from(self.reassembly_slots) <= MAX_PLACES
            && self.reassembly_buffers <= self.reassembly_slots
            && self.reassembly_bytes <= 65_535
            && usize::from(self.tcp_connections) <= MAX_PLACES
            && usize::from(self.tcp_listeners) <= MAX_PLACES
            && self.nfs_jobs <= 255
            && self.http_jobs <= 255
            && self.tcp_segments >= 8
            && self.reserved == 0;
        if sound { Ok(()) } else { Err(LACE_EINVAL) }
    }
}

// SAFETY: integers only, the size in front.
unsafe impl Sized32 for lace_config {
    const MIN: usize = size_of::<lace_config>();
    const PRESET: Option<fn(&mut Self)> = Some(|config| *config = lace_config::TFTP);
}

/// `LACE_STACK_SIZE_TFTP` of `overview.h` for this machine.
const STACK_SIZE_TFTP: usize = if size_of::<usize>() > 4 { 8960 } else { 8192 };
/// `LACE_STACK_SIZE_FULL` of `overview.h` for this machine.
const STACK_SIZE_FULL: usize = if size_of::<usize>() > 4 { 203_776 } else { 199_168 };
const _: () = assert!(Layout::of(&lace_config::TFTP).total <= STACK_SIZE_TFTP, "LACE_STACK_SIZE_TFTP is enough");
const _: () = assert!(Layout::of(&lace_config::FULL).total <= STACK_SIZE_FULL, "LACE_STACK_SIZE_FULL is enough");

/// Sets up `*config`, `size` being `sizeof *config`, with the defaults: one NIC, DHCP, ping and a TFTP boot.
/// `LACE_STACK_SIZE_TFTP` bytes are enough for it.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_config_init(config: *mut lace_config, size: usize) -> c_int {
    init(config, size)
}

/// The same with the limits of the table's column "full". `LACE_STACK_SIZE_FULL` bytes are enough for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_config_full(config: *mut lace_config, size: usize) -> c_int {
    match init(config, size) {
        0 => super::results::status(write(config, &lace_config::FULL)),
        code => code,
    }
}

/// Bytes of memory that a stack with these limits takes (NULL: the defaults), aligned to 16 bytes. Up to 4 GiB.
///
/// Returns the number of bytes, or `LACE_EINVAL` for limits outside their ranges.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_stack_size(config: *const lace_config) -> i64 {
    let config = match super::structs::read_or_fresh(config) {
        Ok(config) => config,
        Err(code) => return i64::from(code),
    };
    match config.check() {
        Ok(()) => match u32::try_from(Layout::of(&config).total) {
            Ok(total) => i64::from(total),
            Err(_) => i64::from(LACE_EINVAL),
        },
        Err(code) => i64::from(code),
    }
}

/// The configuration behind a pointer of C's.
pub(super) fn config_at(config: *const lace_config) -> Result<lace_config, i32> {
    if config.is_null() {
        return Err(LACE_EFAULT);
    }
    let config = read(config)?;
    config.check()?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    #[cfg(all(feature = "http", feature = "nfs", feature = "tcp"))] // Smaller without: far off then.
    fn sizes_are_upper_bounds_and_not_far_off() {
        for (config, bound) in [(lace_config::TFTP, STACK_SIZE_TFTP), (lace_config::FULL, STACK_SIZE_FULL)] {
            let total = Layout::of(&config).total;
            assert!(total <= bound && total > bound / 2, "{total} of {bound}");
        }
        let header = include_str!("overview.h");
        for (name, size) in [("TFTP", STACK_SIZE_TFTP), ("FULL", STACK_SIZE_FULL)] {
            let line = header.lines().find(|l| l.starts_with(&format!("#define LACE_STACK_SIZE_{name} "))).unwrap();
            let here = if size_of::<usize>() > 4 { format!("? {size}u :") } else { format!(": {size}u)") };
            assert!(line.contains(&here), "{line}: {size}");
        }
    }

    #[test]
    fn limits_out_of_range_are_refused() {
        // SAFETY: live pointers.
        let size = |config: &lace_config| unsafe { lace_stack_size(config) };
        let good = lace_config { size: size_of::<lace_config>() as u32, ..lace_config::TFTP };
        assert_eq!(size(&good), Layout::of(&lace_config::TFTP).total as i64);
        for bad in [
            lace_config { nics: 0, ..good },
            lace_config { nics: 256, ..good },
            lace_config { operations: 256, ..good },
            lace_config { nfs_jobs: 256, ..good },
            lace_config { http_jobs: 256, ..good },
            lace_config { udp_sockets: 2049, ..good },
            lace_config { udp_queues: 5, ..good },
            lace_config { neighbours: 0, ..good },
            lace_config { mtu: 67, ..good },
            lace_config { tx_align: 0, ..good },
            lace_config { tx_align: 48, ..good },
            lace_config { tx_align: 8192, ..good },
            lace_config { reassembly_slots: 2049, ..good },
            lace_config { reassembly_buffers: 3, ..good },
            lace_config { reassembly_bytes: 65_536, ..good },
            lace_config { tcp_connections: 2049, ..good },
            lace_config { tcp_segments: 7, ..good },
            lace_config { reserved: 1, ..good },
            lace_config { size: 4, ..good },
            lace_config { udp_queues: 4, udp_queue_bytes: u32::MAX, ..good },
        ] {
            assert_eq!(size(&bad), i64::from(LACE_EINVAL), "{bad:?}");
        }
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { lace_stack_size(core::ptr::null()) }, size(&good));
    }
}
