//! A wire with faults: a thread that carries frames between two interfaces and delays, limits, drops, reorders and
//! duplicates them. Each frame draws the same number of random values whatever befalls it, so the fate of the n-th frame
//! of a direction depends on the seed and n alone.

use crate::Rng;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One end of the wire.
#[derive(Clone, Debug)]
pub enum End {
    /// The program's side of a TAP: what the kernel sends on the interface enters the wire here.
    Tap(String),
    /// An AF_PACKET socket: what arrives at the interface enters the wire, what leaves the wire is sent from it.
    Packet(String),
}

/// Most frames that change places: with blocks of 8192 bytes, the fragments of four.
pub const BURST: usize = 16;

/// In which order the frames of a burst go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they came.
    Straight,
    /// Last to first.
    Reversed,
    /// Mixed.
    Shuffled,
}

/// What one direction of the wire does to frames.
#[derive(Clone, Debug)]
pub struct Way {
    /// One-way delay.
    pub delay: Duration,
    /// Bits per second; 0 for no limit. Counts 24 bytes a frame for preamble, gap and check sequence.
    pub rate: u64,
    /// Bytes that may wait for the rate limit; what does not fit is dropped.
    pub queue: usize,
    /// Frames lost, parts in a million.
    pub loss_ppm: u32,
    /// Frames held back so that later ones overtake them, parts in a million.
    pub reorder_ppm: u32,
    /// How many frames overtake one held back; it goes after 20 ms in any case.
    pub reorder_by: u32,
    /// Frames sent twice, parts in a million.
    pub dup_ppm: u32,
    /// In which order frames go that are found waiting together, [`BURST`] at most: nothing is held back for it.
    pub order: Order,
    /// A receiver's ring: at most `.0` frames are delivered in each period `.1`, the rest is dropped.
    pub ring: Option<(u32, Duration)>,
    /// Frames shorter than this are spared loss, reordering and duplication (0: none are).
    pub spare_below: usize,
    /// Fixes the fate of every frame.
    pub seed: u64,
}

impl Way {
    /// A direction without faults.
    pub fn clean() -> Self {
        Way {
            delay: Duration::ZERO,
            rate: 0,
            queue: 1 << 20,
            loss_ppm: 0,
            reorder_ppm: 0,
            reorder_by: 3,
            dup_ppm: 0,
            order: Order::Straight,
            ring: None,
            spare_below: 0,
            seed: 1,
        }
    }
}

/// Frames counted in one direction.
#[derive(Debug, Default)]
pub struct Counts {
    /// Entered the wire.
    pub frames: AtomicU64,
    /// Lost by chance.
    pub lost: AtomicU64,
    /// Dropped because the rate limit's queue or the ring was full.
    pub overflowed: AtomicU64,
    /// Held back.
    pub reordered: AtomicU64,
    /// Sent twice.
    pub duplicated: AtomicU64,
}

/// A running wire; it ends on drop.
#[derive(Debug)]
pub struct Forwarder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Counts from the first end to the second, and back.
    pub counts: Arc<[Counts; 2]>,
}

impl Forwarder {
    /// Joins two ends in the calling thread's namespace: frames from `a` suffer `there`, frames from `b` suffer `back`.
    pub fn start(a: &End, b: &End, there: Way, back: Way) -> io::Result<Forwarder> {
        let ports = [Port::open(a)?, Port::open(b)?];
        let stop = Arc::new(AtomicBool::new(false));
        let counts = Arc::new([Counts::default(), Counts::default()]);
        let (halt, tally) = (stop.clone(), counts.clone());
        let thread = std::thread::Builder::new()
            .name("wire".into())
            .spawn(move || carry(&ports, [there, back], &halt, &tally))?;
        Ok(Forwarder { stop, thread: Some(thread), counts })
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Port {
    fd: OwnedFd,
}

fn check(rc: i32) -> io::Result<i32> {
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(rc) }
}

fn if_name(name: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    let mut out = [0; libc::IFNAMSIZ];
    if name.len() >= out.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "interface name too long"));
    }
    for (to, from) in out.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(out)
}

impl Port {
    fn open(end: &End) -> io::Result<Port> {
        match end {
            End::Tap(name) => {
                let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
                // SAFETY: all zero is a valid ifreq.
                let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
                request.ifr_name = if_name(name)?;
                request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
                let start = Instant::now();
                // A child that another test is just starting may still hold the descriptor of the last wire.
                loop {
                    // SAFETY: TUNSETIFF reads and writes one ifreq.
                    let rc = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as libc::Ioctl, &mut request) };
                    match check(rc) {
                        Ok(_) => break,
                        Err(e) if e.raw_os_error() == Some(libc::EBUSY) && start.elapsed() < Duration::from_secs(2) => {
                            std::thread::sleep(Duration::from_millis(2));
                        }
                        Err(e) => return Err(e),
                    }
                }
                let port = Port { fd: file.into() };
                // SAFETY: sets one flag on an own descriptor.
                check(unsafe { libc::fcntl(port.fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
                Ok(port)
            }
            End::Packet(name) => {
                let all = (libc::ETH_P_ALL as u16).to_be();
                // SAFETY: makes a new descriptor.
                let fd = check(unsafe {
                    libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0)
                })?;
                // SAFETY: the descriptor is new and owned by nobody else.
                let port = Port { fd: unsafe { OwnedFd::from_raw_fd(fd) } };
                let c_name = if_name(name)?;
                // SAFETY: a NUL-terminated name.
                let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
                if index == 0 {
                    return Err(io::Error::last_os_error());
                }
                // SAFETY: all zero is a valid packet_mreq.
                let mut member: libc::packet_mreq = unsafe { std::mem::zeroed() };
                member.mr_ifindex = index as i32;
                member.mr_type = libc::PACKET_MR_PROMISC as u16;
                let size = 4i32 << 20;
                for (level, option, value, len) in [
                    (
                        libc::SOL_PACKET,
                        libc::PACKET_ADD_MEMBERSHIP,
                        (&raw const member).cast::<libc::c_void>(),
                        size_of_val(&member),
                    ),
                    (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, (&raw const size).cast(), size_of_val(&size)),
                    (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, (&raw const size).cast(), size_of_val(&size)),
                ] {
                    // SAFETY: `value` points at `len` live bytes.
                    check(unsafe { libc::setsockopt(fd, level, option, value, len as libc::socklen_t) })?;
                }
                // SAFETY: all zero is a valid sockaddr_ll.
                let mut addr: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
                addr.sll_family = libc::AF_PACKET as u16;
                addr.sll_protocol = all;
                addr.sll_ifindex = index as i32;
                // SAFETY: the length is that of the structure.
                check(unsafe {
                    libc::bind(fd, (&raw const addr).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
                })?;
                // 20 (PACKET_IGNORE_OUTGOING since Linux 4.20): what this socket itself sends does not come back.
                let one = 1i32;
                // SAFETY: an int option.
                check(unsafe { libc::setsockopt(fd, libc::SOL_PACKET, 23, (&raw const one).cast(), 4) })?;
                Ok(port)
            }
        }
    }

    fn read(&self, buf: &mut [u8]) -> Option<usize> {
        // SAFETY: the kernel writes at most `buf.len()` bytes.
        let n = unsafe { libc::read(self.fd.as_raw_fd(), buf.as_mut_ptr().cast(), buf.len()) };
        usize::try_from(n).ok().filter(|n| *n > 0)
    }

    fn write(&self, frame: &[u8]) {
        // A frame the interface refuses is a lost frame, as on a real wire.
        // SAFETY: a live buffer.
        unsafe { libc::write(self.fd.as_raw_fd(), frame.as_ptr().cast(), frame.len()) };
    }
}

struct Due {
    at: Instant,
    order: u64,
    to: usize,
    frame: Vec<u8>,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

struct Direction {
    way: Way,
    rng: Rng,
    free_at: Instant,
    held: Vec<(u32, Instant, Vec<u8>)>,
    period: Instant,
    in_period: u32,
}

const HELD: Duration = Duration::from_millis(20);

impl Direction {
    fn new(way: Way) -> Self {
        let (rng, now) = (Rng::new(way.seed), Instant::now());
        Direction { way, rng, free_at: now, held: Vec::new(), period: now, in_period: 0 }
    }

    /// Frames to put on the wire because `frame` came (`None`: because time passed).
    fn fate(&mut self, now: Instant, frame: Option<&[u8]>, counts: &Counts, out: &mut Vec<Vec<u8>>) {
        if let Some(frame) = frame {
            counts.frames.fetch_add(1, Relaxed);
            let draws = [self.way.loss_ppm, self.way.reorder_ppm, self.way.dup_ppm].map(|p| self.rng.chance(p));
            let [lost, late, twice] = if frame.len() < self.way.spare_below { [false; 3] } else { draws };
            if lost {
                counts.lost.fetch_add(1, Relaxed);
            } else if late {
                counts.reordered.fetch_add(1, Relaxed);
                self.held.push((self.way.reorder_by, now + HELD, frame.to_vec()));
                return;
            } else {
                out.push(frame.to_vec());
                if twice {
                    counts.duplicated.fetch_add(1, Relaxed);
                    out.push(frame.to_vec());
                }
            }
        }
        let passed = u32::from(frame.is_some());
        let mut i = 0;
        while i < self.held.len() {
            let (left, until, _) = &mut self.held[i];
            *left = left.saturating_sub(passed);
            if *left == 0 || *until <= now {
                out.push(self.held.remove(i).2);
            } else {
                i += 1;
            }
        }
    }

    /// Puts the frames of a burst into their order.
    fn arrange(&mut self, burst: &mut [Vec<u8>]) {
        match self.way.order {
            Order::Straight => {}
            Order::Reversed => burst.reverse(),
            Order::Shuffled => {
                for i in (1..burst.len()).rev() {
                    burst.swap(i, self.rng.next_u64() as usize % (i + 1));
                }
            }
        }
    }

    /// When `len` bytes offered now arrive; `None` when they are dropped.
    fn arrival(&mut self, now: Instant, len: usize) -> Option<Instant> {
        let mut at = now;
        if self.way.rate > 0 {
            let ns = |bytes: u64| Duration::from_nanos(bytes * 8 * 1_000_000_000 / self.way.rate);
            let start = self.free_at.max(now);
            if start - now > ns(self.way.queue as u64) {
                return None;
            }
            self.free_at = start + ns(len as u64 + 24);
            at = self.free_at;
        }
        if let Some((frames, period)) = self.way.ring {
            if at >= self.period + period {
                (self.period, self.in_period) = (at, 0);
            }
            self.in_period += 1;
            if self.in_period > frames {
                return None;
            }
        }
        Some(at + self.way.delay)
    }
}

fn carry(ports: &[Port; 2], ways: [Way; 2], stop: &AtomicBool, counts: &[Counts; 2]) {
    let mut directions = ways.map(Direction::new);
    let mut due: BinaryHeap<Reverse<Due>> = BinaryHeap::new();
    let (mut order, mut buf, mut out) = (0u64, vec![0u8; 1 << 16], Vec::new());
    while !stop.load(Relaxed) {
        let mut wait = Duration::from_millis(20);
        let now = Instant::now();
        if let Some(Reverse(first)) = due.peek() {
            wait = wait.min(first.at.saturating_duration_since(now));
        }
        if directions.iter().any(|d| !d.held.is_empty()) {
            wait = wait.min(Duration::from_millis(1));
        }
        let mut polls = [0, 1].map(|i| libc::pollfd { fd: ports[i].fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
        let timeout = libc::timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
        // SAFETY: two live pollfds and a live timespec.
        unsafe { libc::ppoll(polls.as_mut_ptr(), 2, &timeout, std::ptr::null()) };
        let mut send = |burst: &mut Vec<Vec<u8>>, from: usize, now: Instant, directions: &mut [Direction; 2]| {
            for frame in burst.drain(..) {
                match directions[from].arrival(now, frame.len()) {
                    None => drop(counts[from].overflowed.fetch_add(1, Relaxed)),
                    Some(at) if at <= now && due.is_empty() => ports[1 - from].write(&frame),
                    Some(at) => {
                        order += 1;
                        due.push(Reverse(Due { at, order, to: 1 - from, frame }));
                    }
                }
            }
        };
        for from in 0..2 {
            let mut burst = Vec::new();
            for turn in 0..64 {
                let got = ports[from].read(&mut buf);
                let now = Instant::now();
                if got.is_some() || turn == 0 {
                    directions[from].fate(now, got.map(|n| &buf[..n]), &counts[from], &mut out);
                }
                burst.append(&mut out);
                if got.is_none() {
                    break;
                }
                if directions[from].way.order == Order::Straight {
                    send(&mut burst, from, now, &mut directions);
                }
            }
            burst.chunks_mut(BURST).for_each(|part| directions[from].arrange(part));
            send(&mut burst, from, Instant::now(), &mut directions);
        }
        let now = Instant::now();
        while due.peek().is_some_and(|Reverse(first)| first.at <= now) {
            if let Some(Reverse(first)) = due.pop() {
                ports[first.to].write(&first.frame);
            }
        }
    }
}
