//! What the core asks of its host: memory, sinks, sources, a NIC, chance and a log. `ffi` implements these traits over
//! C pointers, `sim` over slices. Every method here is a *leaf callback*: it runs inside the stack and calls nothing back.

use super::checksum::Sum;
use core::net::Ipv4Addr;

/// A range given to a [`Memory`] lies outside it. Nothing was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBounds;

/// A region of the caller's memory, such as the load address. A handle: clones name the same bytes. It is reached only
/// through these methods, because the caller may look at it at any time and no Rust reference to it may live.
pub trait Memory: Clone {
    /// Length of the region in bytes.
    fn len(&self) -> usize;
    /// Whether the region has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Copies `src` to `at` and sums it in the same pass.
    fn copy_sum(&self, at: usize, src: &[u8]) -> Result<Sum, OutOfBounds>;
    /// Copies `src` to `at`.
    fn write(&self, at: usize, src: &[u8]) -> Result<(), OutOfBounds>;
    /// Copies `dst.len()` bytes from `at` into `dst` and sums them in the same pass.
    fn read_sum(&self, at: usize, dst: &mut [u8]) -> Result<Sum, OutOfBounds>;
    /// Sums `len` bytes from `at` without moving them.
    fn sum(&self, at: usize, len: usize) -> Result<Sum, OutOfBounds>;
    /// Copies `len` bytes from `at` to `to` in `dst`, another region.
    fn copy_to(&self, at: usize, dst: &Self, to: usize, len: usize) -> Result<(), OutOfBounds> {
        let mut buffer = [0; 256];
        let mut done = 0usize;
        while done < len {
            let piece = buffer.len().min(len.saturating_sub(done));
            let part = buffer.get_mut(..piece).ok_or(OutOfBounds)?;
            self.read_sum(at.saturating_add(done), part)?;
            dst.write(to.saturating_add(done), part)?;
            done = done.saturating_add(piece);
        }
        Ok(())
    }
    /// Moves `len` bytes within the region; the ranges may overlap.
    fn move_within(&self, from: usize, to: usize, len: usize) -> Result<(), OutOfBounds>;
    /// Hints that the range, as far as it lies in the region, is soon to be written: its cache lines may be fetched
    /// meanwhile. Changes no byte, and may do nothing.
    fn prefetch(&self, at: usize, len: usize) {
        let _ = (at, len);
    }
    /// A handle of the sub-range `at .. at + len`.
    fn slice(&self, at: usize, len: usize) -> Result<Self, OutOfBounds>;
}

/// An error code of the host's own, handed through unchanged: negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostError(pub i32);

/// A sink that takes bytes by call, in ascending order of offset: flash, a file system.
pub trait Writer {
    /// Offers `data`, whose first byte is byte `offset` of the stream. Returns how many bytes were taken, 0 to
    /// `data.len()`; the rest is offered again later.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<usize, HostError>;
}

/// A source that fills a buffer.
pub trait Reader {
    /// Fills `buf` from byte `offset` of the file. Returns how many bytes were given, 0 only at the end of the file.
    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, HostError>;
}

/// A source that lends pages of the file's own memory.
pub trait Pager {
    /// What is lent.
    type Memory: Memory;
    /// Lends memory that holds at least one and at most `len` bytes from `offset` of the file; an empty one only at the
    /// end of the file. What is lent stays unchanged until released.
    fn map(&mut self, offset: u64, len: usize) -> Result<Self::Memory, HostError>;
    /// Gives back what `map` lent for `offset`.
    fn release(&mut self, offset: u64, page: &Self::Memory);
}

/// Where received bytes go.
#[derive(Clone, Debug)]
pub enum Sink<M, W> {
    /// A memory region: bytes land at their final place.
    Memory(M),
    /// A writer: bytes are offered in order.
    Writer(W),
    /// Bytes are checked, counted and thrown away.
    Discard,
}

/// Where sent bytes come from.
#[derive(Clone, Debug)]
pub enum Source<M, R, P> {
    /// A memory region.
    Memory(M),
    /// A reader: bytes are fetched into the frame being built.
    Reader(R),
    /// A pager: pages are lent to the NIC.
    Pager(P),
}

bitflags::bitflags! {
    /// What a NIC can do.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct NicCaps: u32 {
        /// Verifies the IPv4 header checksum of received frames and says so per frame.
        const RX_IP_SUM = 1;
        /// Verifies UDP, TCP and ICMP checksums of received frames and says so per frame.
        const RX_L4_SUM = 2;
        /// Fills in the IPv4 header checksum.
        const TX_IP_SUM = 4;
        /// Fills in the UDP or TCP checksum; the field holds the folded pseudo header sum.
        const TX_L4_SUM = 8;
        /// Takes a frame as several spans.
        const GATHER = 16;
        /// Keeps what it was given until the frame's token is done.
        const ASYNC = 32;
    }

    /// What the driver says of one received frame.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct RxFlags: u32 {
        /// The IPv4 header checksum was verified.
        const IP_SUM_OK = 1;
        /// The UDP, TCP or ICMP checksum was verified.
        const L4_SUM_OK = 2;
        /// A VLAN tag was stripped by the hardware.
        const VLAN_STRIPPED = 4;
    }
}

/// A piece of a frame to send.
#[derive(Debug)]
pub enum Span<'s, M> {
    /// Bytes of the stack's own.
    Bytes(&'s [u8]),
    /// Bytes of lent memory.
    Memory {
        /// The memory they lie in.
        memory: &'s M,
        /// Offset of the first byte.
        at: usize,
        /// Number of bytes.
        len: usize,
    },
}

// Derived, these would want the memory itself to be copied.
impl<M> Clone for Span<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Span<'_, M> {}

impl<M> Span<'_, M> {
    /// Its length in bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // Nobody asks.
    pub fn len(&self) -> usize {
        match self {
            Span::Bytes(bytes) => bytes.len(),
            Span::Memory { len, .. } => *len,
        }
    }

    /// Its `len` bytes from `from` on, which it has.
    #[inline]
    #[must_use]
    pub fn part(self, from: usize, len: usize) -> Self {
        match self {
            Span::Bytes(bytes) => Span::Bytes(bytes.get(from..).and_then(|b| b.get(..len)).unwrap_or(&[])),
            Span::Memory { memory, at, .. } => Span::Memory { memory, at: at.wrapping_add(from), len },
        }
    }
}

/// A stretch of what spans hold: the parts of them that lie in it, one after the other, none empty.
#[derive(Debug)]
pub struct Stretch<'p, M> {
    spans: &'p [Span<'p, M>],
    from: usize,
    len: usize,
}

impl<M> Clone for Stretch<'_, M> {
    fn clone(&self) -> Self {
        Stretch { ..*self }
    }
}

impl<'p, M> Stretch<'p, M> {
    /// `len` bytes of `spans` from `from` on; all the rest if they have less.
    #[inline]
    pub fn new(spans: &'p [Span<'p, M>], from: usize, len: usize) -> Self {
        Stretch { spans, from, len }
    }
}

impl<'p, M> Iterator for Stretch<'p, M> {
    type Item = Span<'p, M>;

    #[inline(always)] // Without a frame of its own: it is what lies deepest.
    fn next(&mut self) -> Option<Span<'p, M>> {
        while let Some((span, rest)) = self.spans.split_first() {
            self.spans = rest;
            let start = self.from.min(span.len());
            self.from -= start;
            let len = (span.len() - start).min(self.len);
            if len > 0 {
                self.len -= len;
                return Some(span.part(start, len));
            }
        }
        None
    }
}

/// A frame to send, in the pieces it is made of; a NIC puts them together. An array of them would have to be made, on the way
/// of every frame, above what the NIC makes of it.
#[derive(Debug)]
pub struct Pieces<'p, M> {
    /// What comes first: all headers, or the whole frame.
    pub head: Option<&'p [u8]>,
    /// What follows.
    pub body: Stretch<'p, M>,
    /// Where copies of what is [`Span::Bytes`] of it lie one behind the other, which are to be sent in place of them.
    pub copies: Option<&'p [u8]>,
    /// Zeros behind it.
    pub padding: &'p [u8],
}

impl<'p, M> Pieces<'p, M> {
    /// A frame of `head` and `body`.
    #[inline]
    pub fn new(head: &'p [u8], body: &'p [Span<'p, M>]) -> Self {
        Pieces { head: Some(head), body: Stretch::new(body, 0, usize::MAX), copies: None, padding: &[] }
    }

    /// The next piece. What was taken is no longer in the fields: a NIC's frame on the machine's stack need not hold it too.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    pub fn take(&mut self) -> Option<Span<'p, M>> {
        if let Some(head) = self.head.take() {
            return Some(Span::Bytes(head));
        }
        if let Some(span) = self.body.next() {
            return Some(match (&span, &mut self.copies) {
                (Span::Bytes(bytes), Some(rest)) => {
                    let (copy, behind) = rest.split_at_checked(bytes.len()).unwrap_or((rest, &[]));
                    *rest = behind;
                    Span::Bytes(copy)
                }
                _ => span,
            });
        }
        let padding = core::mem::take(&mut self.padding);
        (!padding.is_empty()).then_some(Span::Bytes(padding))
    }
}

/// Names a frame given to an asynchronous NIC until it is done with it; 0 where nothing waits for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Token(pub u32);

/// Why a frame was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The NIC has no room now: nothing was sent, try again later.
    Busy,
    /// The frame is lost.
    Failed(HostError),
}

/// A network interface controller, as the core drives it. Receiving is not here: frames are an input of the core.
pub trait Nic {
    /// Lent memory that may be gathered.
    type Memory: Memory;
    /// What the NIC can do; constant over its life.
    fn caps(&self) -> NicCaps;
    /// Sends one frame made of `pieces`: of a head alone unless [`NicCaps::GATHER`].
    fn send(&mut self, pieces: &mut Pieces<'_, Self::Memory>, token: Token) -> Result<(), SendError>;
    /// The same for a frame in one piece.
    fn send_whole(&mut self, frame: &[u8], token: Token) -> Result<(), SendError> {
        self.send(&mut Pieces::new(frame, &[]), token)
    }
    /// The same for a frame of two pieces, as those of a train are.
    #[inline]
    fn send_pair(&mut self, head: &[u8], body: Span<'_, Self::Memory>, token: Token) -> Result<(), SendError> {
        self.send(&mut Pieces::new(head, &[body]), token)
    }
    /// Whether the NIC lends its own transmit buffers.
    fn has_tx_buffer(&self) -> bool;
    /// Lends a buffer of exactly `len` bytes for one frame, until `send_buffer`. `None`: no room now.
    fn tx_buffer(&mut self, len: usize) -> Option<&mut [u8]>;
    /// Sends the first `len` bytes of the buffer last lent; 0 gives it back unused.
    fn send_buffer(&mut self, len: usize, token: Token) -> Result<(), SendError>;
    /// Tells the NIC which multicast groups are wanted.
    fn set_rx_filter(&mut self, groups: &[[u8; 6]]);
}

/// What happened, for the host's log: a code and two numbers, never text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum LogEvent {
    /// An address was bound by DHCP: NIC index, address.
    DhcpBound = 1,
    /// A lease was lost: NIC index, address.
    DhcpLost = 2,
    /// Another host answers for an address of ours: NIC index, address.
    AddressConflict = 3,
    /// A transfer was restarted with smaller windows or blocks: block size, window size.
    TransferShrunk = 4,
    /// A server's answer was refused: operation kind, reason.
    BadReply = 5,
    /// A neighbour did not answer: address, tries.
    NeighbourFailed = 6,
}

/// What a DHCP message is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeasePart {
    /// The acknowledgement of the lease itself.
    Address,
    /// Boot data from a proxyDHCP or boot server (PXE 2.1). It may come before the address, and counts instead of what
    /// the address's message says of booting; of two, the later counts.
    Boot,
}

/// Where a DHCP client keeps what it was told, for as long as its operation lives.
pub trait LeaseStore {
    /// Forgets what was stored: another transaction begins.
    fn clear(&mut self);
    /// Keeps what is wanted of `message`, a BOOTP or DHCP message that was checked and accepted.
    fn store(&mut self, part: LeasePart, message: &[u8]);
}

/// The host: everything that is not a NIC or a region.
pub trait Host {
    /// Regions of the caller's memory.
    type Memory: Memory;
    /// NICs.
    type Nic: Nic<Memory = Self::Memory>;
    /// Sinks that take bytes by call.
    type Writer: Writer;
    /// Sources that give bytes by call.
    type Reader: Reader;
    /// Sources that lend pages.
    type Pager: Pager<Memory = Self::Memory>;
    /// Names and paths that outlive the call they were given in.
    type Text: AsRef<[u8]>;
    /// Where a DHCP client keeps what it was told.
    type Lease: LeaseStore;
    /// 32 random bits.
    fn random(&mut self) -> u32;
    /// Tells the host's log.
    fn log(&mut self, event: LogEvent, a: u64, b: u64);
}

/// The sink type of a host.
pub type SinkOf<H> = Sink<<H as Host>::Memory, <H as Host>::Writer>;
/// The source type of a host.
pub type SourceOf<H> = Source<<H as Host>::Memory, <H as Host>::Reader, <H as Host>::Pager>;

/// A random number below `bound` (0 when `bound` is 0), with a bias too small to matter for ports and delays.
pub fn random_below<H: Host>(host: &mut H, bound: u32) -> u32 {
    (u64::from(host.random()).wrapping_mul(u64::from(bound)) >> 32) as u32
}

/// An IPv4 address and a UDP or TCP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Address; unspecified where any will do.
    pub addr: Ipv4Addr,
    /// Port in host order; 0 where any will do.
    pub port: u16,
}
