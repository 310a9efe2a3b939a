//! Bootlace as it ships: `libbootlace.a`, loaded as a shared object, driven through its C functions. Received payload
//! comes as a TFTP transfer into memory, which is what the library is for.

use crate::case::{self, Case, DESTINATION, FRAGMENTS, RING};
use crate::frames::{FRAGMENT, OUR_IP, OUR_MAC, PEER_IP, UDP};
use crate::harness::Bench;
use crate::nic::tftp::{File, Tftp};
use crate::nic::{Nic, Order, Peer};
use crate::region::{Region, destination};
use bootlace::ffi::addr::{LACE_IP_V4, lace_ip};
use bootlace::ffi::config::lace_config;
use bootlace::ffi::host::lace_host;
use bootlace::ffi::nic::{lace_frame, lace_nic, lace_span};
use bootlace::ffi::sink::lace_sink;
use bootlace::ffi::tftp::lace_tftp_get;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Frames offered before a pass, and the budget of one: the pass ends when the NIC is empty.
const BURST: usize = 16;
const BUDGET: u32 = 32;
/// Bytes of the block of memory a stack works in.
const ARENA: usize = 1 << 20;
const AGAIN: i64 = -11;

type Init<T> = unsafe extern "C" fn(*mut T, usize) -> c_int;
type Stack = *mut c_void;

/// The functions used.
struct Library {
    config_init: Init<lace_config>,
    host_init: Init<lace_host>,
    nic_init: Init<lace_nic>,
    get_init: Init<lace_tftp_get>,
    sink_memory: unsafe extern "C" fn(*mut lace_sink, usize, *mut c_void, usize) -> c_int,
    stack_init: unsafe extern "C" fn(*mut c_void, usize, *const lace_config, *const lace_host, *mut Stack) -> c_int,
    nic_add: unsafe extern "C" fn(Stack, *const lace_nic) -> i32,
    addr_add: unsafe extern "C" fn(Stack, i32, *const lace_ip, u32) -> c_int,
    get_start: unsafe extern "C" fn(Stack, *const lace_tftp_get, *const lace_sink) -> i32,
    op_status: unsafe extern "C" fn(Stack, i32) -> i64,
    op_close: unsafe extern "C" fn(Stack, i32) -> c_int,
    poll: unsafe extern "C" fn(Stack, u32) -> c_int,
}

/// Where `scripts/bench.sh` puts the shared object.
fn path() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    std::env::var_os("LACE_SHIPPED").map_or_else(|| here.join("../target/bench/libbootlace.so"), PathBuf::from)
}

/// The library, `None` where it was not built.
fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    LIBRARY.get_or_init(load).as_ref()
}

fn load() -> Option<Library> {
    let path = CString::new(path().into_os_string().into_encoded_bytes()).ok()?;
    // SAFETY: a path that ends in zero; loading runs no code of the library's.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return None;
    }
    Some(Library {
        config_init: function(handle, c"lace_config_init"),
        host_init: function(handle, c"lace_host_init"),
        nic_init: function(handle, c"lace_nic_init"),
        get_init: function(handle, c"lace_tftp_get_init"),
        sink_memory: function(handle, c"lace_sink_memory"),
        stack_init: function(handle, c"lace_stack_init"),
        nic_add: function(handle, c"lace_nic_add"),
        addr_add: function(handle, c"lace_addr_add"),
        get_start: function(handle, c"lace_tftp_get_start"),
        op_status: function(handle, c"lace_op_status"),
        op_close: function(handle, c"lace_op_close"),
        poll: function(handle, c"lace_poll"),
    })
}

/// The function `name`, of the type that the same sources declare.
fn function<F: Copy>(library: *mut c_void, name: &CStr) -> F {
    assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
    // SAFETY: an open library, a name that ends in zero, a function pointer.
    unsafe {
        let function = libc::dlsym(library, name.as_ptr());
        assert!(!function.is_null(), "the library has no {name:?}");
        core::mem::transmute_copy(&function)
    }
}

/// A struct as its `init` function leaves it.
fn fresh<T>(init: Init<T>) -> T {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: the function fills in a struct of this size; all of these are plain numbers and pointers, for which
    // zeros are a value.
    unsafe {
        assert_eq!(init(value.as_mut_ptr(), size_of::<T>()), 0);
        value.assume_init()
    }
}

/// What the callbacks reach. It stays where it is, and is reached through raw pointers only.
struct Board {
    nic: Nic,
    now: u64,
    random: u32,
}

/// # Safety
/// `ctx` is a board that nobody else has a reference to during the call: true of every callback below.
unsafe fn board<'b>(ctx: *mut c_void) -> &'b mut Board {
    // SAFETY: as above.
    unsafe { &mut *ctx.cast::<Board>() }
}

unsafe extern "C" fn now_us(ctx: *mut c_void) -> u64 {
    // SAFETY: see `board`.
    unsafe { board(ctx) }.now
}

unsafe extern "C" fn random(ctx: *mut c_void) -> u32 {
    // SAFETY: see `board`.
    let board = unsafe { board(ctx) };
    board.random = board.random.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
    board.random ^ (board.random >> 15)
}

unsafe extern "C" fn recv(ctx: *mut c_void, frame: *mut lace_frame) -> c_int {
    // SAFETY: see `board`.
    match unsafe { board(ctx) }.nic.receive() {
        Some((bytes, _)) => {
            let lent = lace_frame { data: bytes.as_ptr().cast(), len: bytes.len() as u32, flags: 0, cookie: 0 };
            // SAFETY: the stack lends the struct.
            unsafe { frame.write(lent) };
            1
        }
        None => 0,
    }
}

unsafe extern "C" fn release(_: *mut c_void, _: *const lace_frame) {}

unsafe extern "C" fn tx_buffer(ctx: *mut c_void, len: u32) -> *mut c_void {
    // SAFETY: see `board`.
    unsafe { board(ctx) }.nic.line().buffer(len as usize).as_mut_ptr().cast()
}

unsafe extern "C" fn send(ctx: *mut c_void, spans: *const lace_span, n: u32, _: u32) -> c_int {
    if n > 0 {
        // SAFETY: see `board`; `n` spans are lent, the first of which is the buffer.
        unsafe { board(ctx).nic.line().send((*spans).len as usize) };
    }
    0
}

struct Shipped {
    library: &'static Library,
    board: *mut Board,
    net: Stack,
    destination: Region,
    burst: usize,
    /// The transfer, where the case has one.
    op: Option<i32>,
    get: lace_tftp_get,
    case: Case,
}

/// The file that a case receives. Data and TFTP header of a block make the case's payload.
fn file(case: Case) -> Option<File> {
    let (blksize, window) = match case {
        Case::UdpRx => (1464, 64),
        Case::Lockstep => (1468, 1),
        Case::Fragments(_) => (FRAGMENTS * FRAGMENT - UDP - 4, 8),
        _ => return None,
    };
    Some(File { blksize, window, blocks: (DESTINATION / blksize - 1) as u64 })
}

fn order(case: Case) -> Order {
    match case {
        Case::Fragments(order) => order,
        _ => Order::Forward,
    }
}

/// The blocks the server repeats.
fn blocks(case: Case, file: File) -> Vec<Vec<u8>> {
    let prepared = RING / file.frames_per_block();
    (0..prepared).map(|i| case::payload(case, i)[case::header_len(case)..][..file.blksize].to_vec()).collect()
}

/// Sets the library up for `case`; `None` for cases it does not take part in, or where it was not built.
pub fn open(case: Case) -> Option<Box<dyn Bench>> {
    let file = file(case);
    if file.is_none() && case != Case::Echo {
        return None;
    }
    let library = library()?;
    let nic = match file {
        Some(file) => {
            let (tftp, frames) = Tftp::new(file, &blocks(case, file), order(case));
            Nic::new(frames, Peer::Tftp(tftp))
        }
        None => case.nic(),
    };
    let board = Box::into_raw(Box::new(Board { nic, now: 1_000_000, random: 1 }));
    let ctx: *mut c_void = board.cast();
    let mut host: lace_host = fresh(library.host_init);
    host.ctx = ctx;
    host.now_us = Some(now_us);
    host.random = Some(random);
    let mut driver: lace_nic = fresh(library.nic_init);
    driver.ctx = ctx;
    driver.send = Some(send);
    driver.recv = Some(recv);
    driver.release = Some(release);
    driver.tx_buffer = Some(tx_buffer);
    driver.mac = OUR_MAC;
    let mut config: lace_config = fresh(library.config_init);
    config.reassembly_slots = 8;
    let arena = vec![0u64; ARENA / 8].leak();
    let mut net: Stack = core::ptr::null_mut();
    // SAFETY: what is handed over lasts as long as the program, or is copied.
    unsafe {
        let result = (library.stack_init)(arena.as_mut_ptr().cast(), ARENA, &config, &host, &mut net);
        assert_eq!(result, 0, "lace_stack_init");
        let id = (library.nic_add)(net, &driver);
        assert!(id > 0, "lace_nic_add: {id}");
        assert_eq!((library.addr_add)(net, id, &ip(OUR_IP), 24), 0, "lace_addr_add");
    }
    let mut get: lace_tftp_get = fresh(library.get_init);
    if let Some(file) = file {
        (get.blksize, get.windowsize) = (file.blksize as u16, file.window);
        get.server.ip = ip(PEER_IP);
        get.path = c"file".as_ptr().cast::<c_char>();
    }
    let burst = match case {
        Case::Lockstep => 1,
        Case::Fragments(_) => FRAGMENTS,
        _ => BURST,
    };
    let mut shipped = Shipped { library, board, net, destination: destination(), burst, op: None, get, case };
    shipped.nic().announce();
    shipped.pass(0);
    Some(Box::new(shipped))
}

fn ip(bytes: [u8; 4]) -> lace_ip {
    let mut ip = lace_ip { family: LACE_IP_V4, ..lace_ip::default() };
    ip.bytes[..4].copy_from_slice(&bytes);
    ip
}

impl Shipped {
    fn board(&mut self) -> &mut Board {
        // SAFETY: it lasts, and no callback is running.
        unsafe { &mut *self.board }
    }

    /// One pass, for which the peer may send up to `frames` frames. How many came.
    fn pass(&mut self, frames: usize) -> u64 {
        let board = self.board();
        board.now += 1;
        board.nic.offer(frames);
        // SAFETY: the stack is alive.
        let took = unsafe { (self.library.poll)(self.net, BUDGET) };
        u64::try_from(took).expect("lace_poll succeeds")
    }

    /// Starts a transfer where none is going on.
    fn start(&mut self) {
        if let Some(op) = self.op.take() {
            // SAFETY: the stack is alive.
            let (result, closed) =
                unsafe { ((self.library.op_status)(self.net, op), (self.library.op_close)(self.net, op)) };
            assert!(result > 0 && closed == 0, "the transfer ended with {result}");
        }
        let mut sink = MaybeUninit::<lace_sink>::zeroed();
        let whole = self.destination.slice_mut(0, DESTINATION).expect("all of the destination").as_mut_ptr();
        // SAFETY: the structs are read now; what they name lasts.
        let op = unsafe {
            let size = size_of::<lace_sink>();
            assert_eq!((self.library.sink_memory)(sink.as_mut_ptr(), size, whole.cast(), DESTINATION), 0);
            (self.library.get_start)(self.net, &self.get, sink.as_ptr())
        };
        assert!(op > 0, "lace_tftp_get_start: {op}");
        self.op = Some(op);
    }

    /// Receives `rounds` blocks.
    fn receive(&mut self, rounds: u64) {
        let blocks = |shipped: &mut Shipped| shipped.nic().tftp().map_or(0, Tftp::blocks);
        let end = blocks(self) + rounds;
        let mut silent = 0;
        while blocks(self) < end {
            if self.nic().tftp().is_some_and(Tftp::idle) {
                self.start();
            }
            silent = if self.pass(self.burst) == 0 { silent + 1 } else { 0 };
            assert!(silent < 100, "the transfer hangs");
        }
    }
}

impl Bench for Shipped {
    fn run(&mut self, rounds: u64) {
        if self.case == Case::Echo {
            let mut left = rounds;
            while left > 0 {
                let burst = left.min(self.burst as u64);
                left -= burst;
                self.pass(burst as usize);
            }
        } else {
            self.receive(rounds);
            // SAFETY: the stack is alive.
            let running = self.op.is_none_or(|op| unsafe { (self.library.op_status)(self.net, op) } == AGAIN);
            assert!(running || self.nic().tftp().is_some_and(Tftp::idle), "the transfer failed");
        }
    }

    fn nic(&mut self) -> &mut Nic {
        &mut self.board().nic
    }

    fn received(&self) -> &[u8] {
        self.destination.bytes(0, DESTINATION).expect("all of the destination")
    }

    fn expected(&self, rounds: u64) -> Option<Vec<u8>> {
        let file = file(self.case)?;
        let blocks = blocks(self.case, file);
        Some((0..rounds as usize).flat_map(|i| blocks[i % blocks.len()].clone()).collect())
    }
}
