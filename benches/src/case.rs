//! What each case of the group `memory` is: the frames its peer sends, and what must have arrived in the end.

use crate::frames::{self, FRAGMENT, UDP};
use crate::nic::{Nic, Order, Peer};
use crate::region::{self, Region};

/// Frames in the NIC's ring; the peer repeats them.
pub const RING: usize = 48;
/// Fragments of a datagram in the fragment cases.
pub const FRAGMENTS: usize = 12;
/// Length of the destination, through which received payloads walk.
pub const DESTINATION: usize = 16 << 20;
/// Bytes of a TCP transfer, whatever the window: so many that opening and closing does not count.
pub const TRANSFER: usize = 4 << 20;
/// Payload of a full TCP segment.
pub const MSS: usize = 1460;

/// A case of the group `memory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// UDP datagrams of 1468 bytes into memory.
    UdpRx,
    /// Datagrams of twelve full fragments into memory.
    Fragments(Order),
    /// A TCP download of [`TRANSFER`] bytes into memory over a window of so many: connect, receive, close.
    TcpRx(usize),
    /// A TCP upload of [`TRANSFER`] bytes from memory through the stack's usual send call, its buffer and the peer's window
    /// being of so many: connect, send, close.
    TcpTx(usize),
    /// The same from memory that is lent to the stack. Stacks that cannot do this sit it out.
    Sendfile(usize),
    /// The same, the NIC gathering spans and filling in the checksums; in segments of so many bytes.
    SendfileOffload(usize, usize),
    /// [`Case::TcpTx`] with a NIC that gathers spans: the stack's own buffer is where they lie.
    TcpTxGather(usize),
    /// TFTP's lock-step: four bytes of header and 1468 of data come, an acknowledgement of four bytes goes.
    Lockstep,
    /// ICMP echo requests with 56 bytes of data, 64 of ICMP, answered.
    Echo,
}

/// All cases.
pub const ALL: [Case; 16] = [
    Case::UdpRx,
    Case::Fragments(Order::Forward),
    Case::Fragments(Order::Reversed),
    Case::Fragments(Order::Shuffled),
    Case::TcpRx(64 << 10),
    Case::TcpRx(256 << 10),
    Case::TcpRx(4 << 20),
    Case::TcpTx(64 << 10),
    Case::TcpTx(256 << 10),
    Case::TcpTx(4 << 20),
    Case::Sendfile(64 << 10),
    Case::SendfileOffload(64 << 10, MSS),
    Case::SendfileOffload(64 << 10, 536),
    Case::TcpTxGather(64 << 10),
    Case::Lockstep,
    Case::Echo,
];

/// Payload bytes of the datagrams that arrive, header included.
fn payload_len(case: Case) -> usize {
    match case {
        Case::UdpRx => 1468,
        Case::Fragments(_) => FRAGMENTS * FRAGMENT - UDP,
        Case::Lockstep => 4 + 1468,
        Case::Echo => 56,
        Case::TcpRx(_) | Case::TcpTx(_) | Case::Sendfile(_) | Case::SendfileOffload(..) | Case::TcpTxGather(_) => MSS,
    }
}

/// Bytes in front of the data that do not belong into the destination.
pub const fn header_len(case: Case) -> usize {
    match case {
        Case::Lockstep => 4,
        _ => 0,
    }
}

/// Payload `i` of those the peer repeats.
pub fn payload(case: Case, i: usize) -> Vec<u8> {
    let mut payload = frames::pattern(i as u64 + 1, payload_len(case));
    if case == Case::Lockstep {
        payload[..4].copy_from_slice(&[0, 3, 0, i as u8]);
    }
    payload
}

impl Case {
    /// The name in `bench.tsv`.
    pub fn name(self) -> &'static str {
        match self {
            Case::UdpRx => "udp_rx_1468",
            Case::Fragments(Order::Forward) => "frag12_in_order",
            Case::Fragments(Order::Reversed) => "frag12_reversed",
            Case::Fragments(Order::Shuffled) => "frag12_shuffled",
            Case::TcpRx(n) if n == 64 << 10 => "tcp_rx_64k",
            Case::TcpRx(n) if n == 256 << 10 => "tcp_rx_256k",
            Case::TcpRx(_) => "tcp_rx_4m",
            Case::TcpTx(n) if n == 64 << 10 => "tcp_tx_64k",
            Case::TcpTx(n) if n == 256 << 10 => "tcp_tx_256k",
            Case::TcpTx(_) => "tcp_tx_4m",
            Case::Sendfile(_) => "sendfile_64k",
            Case::SendfileOffload(_, MSS) => "sendfile_offload",
            Case::SendfileOffload(..) => "sendfile_offload_536",
            Case::TcpTxGather(_) => "tcp_tx_64k_gather",
            Case::Lockstep => "lockstep",
            Case::Echo => "echo_64",
        }
    }

    /// Frames that carry payload for each round a [`crate::harness::Bench`] makes: a transfer, a datagram, a frame.
    pub fn packets_per_round(self) -> u64 {
        match self {
            Case::TcpRx(_) | Case::TcpTx(_) | Case::Sendfile(_) | Case::SendfileOffload(..) | Case::TcpTxGather(_) => {
                TRANSFER.div_ceil(self.mss()) as u64
            }
            Case::Fragments(_) => FRAGMENTS as u64,
            _ => 1,
        }
    }

    /// Rounds of one timed run: about one walk through the destination.
    pub fn rounds(self) -> u64 {
        match self {
            Case::TcpRx(_) | Case::TcpTx(_) | Case::Sendfile(_) | Case::SendfileOffload(..) | Case::TcpTxGather(_) => {
                (DESTINATION / TRANSFER) as u64
            }
            Case::Fragments(_) => (DESTINATION / (FRAGMENTS * FRAGMENT)) as u64,
            _ => (DESTINATION / 1468) as u64,
        }
    }

    /// Rounds whose instructions are counted.
    pub fn counted_rounds(self) -> u64 {
        match self {
            Case::TcpRx(_) | Case::TcpTx(_) | Case::Sendfile(_) | Case::SendfileOffload(..) | Case::TcpTxGather(_) => 1,
            Case::Fragments(_) => 80,
            _ => 960,
        }
    }

    /// A NIC with this case's peer at the other end of the line.
    pub fn nic(self) -> Nic {
        match self {
            Case::UdpRx | Case::Lockstep => {
                let frames = (0..RING).map(|i| frames::ipv4(17, i as u16, 0x4000, &frames::udp(&payload(self, i))));
                Nic::new(frames.collect(), Peer::replay(Order::Forward, 1))
            }
            Case::Fragments(order) => {
                let frames = (0..RING / FRAGMENTS)
                    .flat_map(|i| frames::fragments(17, 0x100 + i as u16, &frames::udp(&payload(self, i))));
                Nic::new(frames.collect(), Peer::replay(order, FRAGMENTS))
            }
            Case::Echo => {
                let requests = (0..RING)
                    .map(|i| frames::ipv4(1, i as u16, 0x4000, &frames::echo_request(i as u16, &payload(self, i))));
                Nic::new(requests.collect(), Peer::replay(Order::Forward, 1))
            }
            Case::TcpRx(n) => Nic::new(crate::nic::segments(self), Peer::sender(TRANSFER, n)),
            Case::TcpTx(n) | Case::Sendfile(n) | Case::SendfileOffload(n, _) | Case::TcpTxGather(n) => {
                Nic::new(crate::nic::segments(self), Peer::receiver(TRANSFER, n, self.mss()))
            }
        }
    }

    /// Payload of a full segment of a TCP case.
    pub fn mss(self) -> usize {
        match self {
            Case::SendfileOffload(_, mss) => mss,
            _ => MSS,
        }
    }

    /// Bytes of a TCP case's window.
    pub fn window(self) -> usize {
        match self {
            Case::TcpRx(n)
            | Case::TcpTx(n)
            | Case::Sendfile(n)
            | Case::SendfileOffload(n, _)
            | Case::TcpTxGather(n) => n,
            _ => 0,
        }
    }

    /// Whether rounds are TCP connections.
    pub fn is_tcp(self) -> bool {
        matches!(
            self,
            Case::TcpRx(_) | Case::TcpTx(_) | Case::Sendfile(_) | Case::SendfileOffload(..) | Case::TcpTxGather(_)
        )
    }

    /// What the first `rounds` rounds, which fit, put into the destination.
    pub fn expected(self, rounds: usize) -> Vec<u8> {
        let mut all = Vec::new();
        match self {
            Case::TcpRx(_) => {
                for _ in 0..rounds {
                    all.extend(stream(self, TRANSFER));
                }
            }
            Case::UdpRx | Case::Lockstep => {
                for i in 0..rounds {
                    all.extend(&payload(self, i % RING)[header_len(self)..]);
                }
            }
            Case::Fragments(_) => {
                for i in 0..rounds {
                    all.extend(payload(self, i % (RING / FRAGMENTS)));
                }
            }
            Case::Echo | Case::TcpTx(_) | Case::Sendfile(_) | Case::SendfileOffload(..) | Case::TcpTxGather(_) => {}
        }
        all
    }

    /// Frames the stack must have sent by `rounds` rounds, where that is certain.
    pub fn sent(self, rounds: u64) -> Option<u64> {
        match self {
            Case::UdpRx | Case::Fragments(_) => Some(0),
            Case::Lockstep | Case::Echo => Some(rounds),
            _ => None,
        }
    }
}

/// The stream of `len` bytes that TCP cases carry: the repeated payloads.
pub fn stream(case: Case, len: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(len + MSS);
    let mut i = 0;
    while all.len() < len {
        all.extend(payload(case, i % RING));
        i += 1;
    }
    all.truncate(len);
    all
}

/// Where received payloads go: each behind the last, and from the beginning again when the next would not fit. All stacks
/// have the same memory.
pub struct Destination {
    /// The memory.
    pub memory: Region,
    at: usize,
}

impl Destination {
    /// The usual length, every page of it touched.
    pub fn new() -> Destination {
        Destination { memory: region::destination(), at: 0 }
    }

    /// Where the next `len` bytes go.
    #[inline]
    pub fn next(&mut self, len: usize) -> usize {
        let at = if self.at + len > DESTINATION { 0 } else { self.at };
        self.at = at + len;
        at
    }

    /// The next `len` bytes themselves.
    #[inline]
    pub fn take(&mut self, len: usize) -> &mut [u8] {
        let at = self.next(len);
        self.memory.slice_mut(at, len).expect("a part of the destination")
    }

    /// All of it.
    pub fn all(&self) -> &[u8] {
        self.memory.bytes(0, DESTINATION).expect("all of the destination")
    }
}

impl Default for Destination {
    fn default() -> Self {
        Destination::new()
    }
}

/// Where sent payloads come from: each behind the last, and from the beginning again. All stacks have the same memory.
pub struct Source {
    /// The memory.
    pub memory: Region,
    len: usize,
    at: usize,
}

impl Source {
    /// What `case` sends.
    pub fn new(case: Case) -> Source {
        match case {
            Case::TcpTx(_) | Case::Sendfile(_) | Case::SendfileOffload(..) | Case::TcpTxGather(_) => {
                Source { memory: region::source(case), len: DESTINATION / TRANSFER * TRANSFER, at: 0 }
            }
            _ => Source { memory: region::destination(), len: 0, at: 0 },
        }
    }

    /// Where the next `len` bytes are.
    #[inline]
    pub fn next(&mut self, len: usize) -> usize {
        let at = if self.at + len > self.len { 0 } else { self.at };
        self.at = at + len;
        at
    }
}

/// What a TCP case sends: the stream, over and over, as long as the destination.
pub fn source_bytes(case: Case) -> Vec<u8> {
    match case {
        Case::TcpTx(_) | Case::Sendfile(_) | Case::SendfileOffload(..) | Case::TcpTxGather(_) => {
            let stream = stream(case, TRANSFER);
            stream.iter().copied().cycle().take(DESTINATION / TRANSFER * TRANSFER).collect()
        }
        _ => Vec::new(),
    }
}
