//! The NIC that all stacks share, and the peer at the other end of its line. Receiving hands out a frame where it lies;
//! sending takes a frame from the NIC's own buffer, or as spans of which only the first is looked at. The peer answers
//! at once and never loses anything; it changes a few header words of prepared frames and touches no payload, so that
//! it costs every stack the same little.

use crate::case::{self, Case, MSS, RING};
use crate::frames::{self, ETHERNET, IPV4, OUR_IP, OUR_MAC, PEER_IP, PEER_PORT, TCP, UDP};
use bootlace::storage::checksum::Sum;
use std::collections::VecDeque;

pub mod tftp;

use tftp::Tftp;

/// Where TCP begins in a frame, and where its payload does.
const L4: usize = ETHERNET + IPV4;
const BODY: usize = L4 + TCP;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;

/// In which order the fragments of a datagram arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First to last.
    Forward,
    /// Last to first.
    Reversed,
    /// Mixed, each datagram in its own way.
    Shuffled,
}

/// A buffer of the NIC.
#[repr(align(64))]
#[derive(Clone)]
struct Buffer([u8; 2048]);

struct Frame {
    buffer: Buffer,
    len: usize,
}

impl Frame {
    fn new(bytes: &[u8]) -> Frame {
        let mut buffer = Buffer([0; 2048]);
        buffer.0[..bytes.len()].copy_from_slice(bytes);
        Frame { buffer, len: bytes.len() }
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer.0[..self.len]
    }

    /// Adds `step` to the identification, and takes it off the header checksum (RFC 1624).
    #[inline]
    fn identify(&mut self, step: u16) {
        let Some(part) = self.buffer.0[18..].first_chunk_mut::<8>() else { return };
        let [a, b, c, d, e, f, g, h] = *part;
        let next = u16::from_be_bytes([a, b]).wrapping_add(step).to_be_bytes();
        let sum = Sum::of_array(&[!g, !h]) + Sum::of_array(&[!a, !b]) + Sum::of_array(&next);
        let ([a, b], [g, h]) = (next, sum.to_field());
        // One store, as a device makes it: see `tftp::Tftp::address`.
        *part = std::hint::black_box(u64::from_ne_bytes([a, b, c, d, e, f, g, h])).to_ne_bytes();
    }
}

/// The NIC: received frames on one side, the [`Line`] on the other.
pub struct Nic {
    frames: Vec<Frame>,
    line: Line,
}

/// The sending side, and the peer.
pub struct Line {
    peer: Peer,
    /// Frames the peer may still send before the next [`Nic::offer`]: the NIC's ring.
    credit: usize,
    buffers: Vec<Buffer>,
    next_buffer: usize,
    sent: u64,
    /// The ARP packet the peer sends next.
    arp: Option<Arp>,
    /// Looks into every sent frame.
    eyes: Option<Eyes>,
}

/// An ARP packet, by its position from the end of the frames.
#[derive(Clone, Copy)]
enum Arp {
    Reply = 1,
    Request = 2,
}

/// What sent frames must be, and the first that was not.
struct Eyes {
    /// By index of the received frame: what the answer's IPv4 payload holds, UDP header or ICMP checksum apart.
    answers: Vec<Vec<u8>>,
    /// What TCP must carry.
    stream: Vec<u8>,
    fault: Option<String>,
}

/// The peer.
pub enum Peer {
    /// Sends its frames over and over.
    Replay(Replay),
    /// Serves a file by TFTP.
    Tftp(Tftp),
    /// Accepts TCP connections and sends on them.
    Sender(Tcp),
    /// Accepts TCP connections and acknowledges what comes, every second segment.
    Receiver(Tcp),
}

/// Frames sent over and over.
pub struct Replay {
    order: Vec<usize>,
    next: usize,
    answered: usize,
    /// By how much a frame's identification grows each time it is sent: as many datagrams as there are. 0 where nobody
    /// looks at it. A datagram that comes in fragments must not have the identification of one just seen.
    idents: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Listen,
    Open,
    /// Both have sent FIN; ours is not acknowledged.
    Closing,
}

/// One end of a TCP connection that works because nothing is ever lost. Counts are bytes of the stream, SYN and FIN apart.
pub struct Tcp {
    total: usize,
    /// Largest segment we take.
    mss: usize,
    /// Shift of the window field we send.
    own_shift: u8,
    phase: Phase,
    port: u16,
    first: u32,
    other_first: u32,
    shift: u8,
    scaled: bool,
    sent: usize,
    acked: usize,
    window: usize,
    fin_sent: bool,
    received: usize,
    fin_received: bool,
    /// Segments not acknowledged yet.
    unanswered: usize,
    /// What is to be sent besides data.
    replies: VecDeque<Reply>,
    transfers: u64,
    sums: Vec<Sum>,
    last_sum: Sum,
}

#[derive(Clone, Copy)]
struct Reply {
    flags: u8,
    sequence: usize,
    received: usize,
}

impl Peer {
    /// A peer that repeats its frames; groups of `group` frames come in `order`.
    pub fn replay(order: Order, group: usize) -> Peer {
        let mut all: Vec<usize> = (0..RING).collect();
        arrange(&mut all, order, group);
        let idents = if group > 1 { (RING / group) as u16 } else { 0 };
        Peer::Replay(Replay { order: all, next: 0, answered: 0, idents })
    }

    /// A TCP server that sends `total` bytes and closes; its own window is `window`.
    pub fn sender(total: usize, window: usize) -> Peer {
        Peer::Sender(Tcp::new(total, window))
    }

    /// A TCP server that takes what comes, `total` bytes a connection, with a window of `window`, in
    /// segments of `mss`.
    pub fn receiver(total: usize, window: usize, mss: usize) -> Peer {
        Peer::Receiver(Tcp { mss, ..Tcp::new(total, window) })
    }
}

/// Puts each `group` of frames into `order`.
fn arrange(all: &mut [usize], order: Order, group: usize) {
    let mut seed = 1u64;
    for group in all.chunks_mut(group) {
        match order {
            Order::Forward => {}
            Order::Reversed => group.reverse(),
            Order::Shuffled => {
                for i in (1..group.len()).rev() {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    group.swap(i, (seed >> 33) as usize % (i + 1));
                }
            }
        }
    }
}

/// The frames a TCP peer uses: full segments whose headers it completes, and one without payload.
pub fn segments(case: Case) -> Vec<Vec<u8>> {
    let mut header = [0u8; TCP];
    header[0..2].copy_from_slice(&PEER_PORT.to_be_bytes());
    header[12] = 0x50;
    let full = (0..RING).map(|i| frames::ipv4(6, 0, 0x4000, &[&header[..], &case::payload(case, i)].concat()));
    full.chain([frames::ipv4(6, 0, 0x4000, &header)]).collect()
}

impl Nic {
    /// A NIC whose peer is `peer` and has `frames`.
    pub fn new(frames: Vec<Vec<u8>>, mut peer: Peer) -> Nic {
        let mut stream = Vec::new();
        if let Peer::Sender(tcp) | Peer::Receiver(tcp) = &mut peer {
            let payloads: Vec<&[u8]> = frames.iter().filter(|f| f.len() > BODY).map(|f| &f[BODY..]).collect();
            tcp.sums = payloads.iter().map(|p| Sum::of(p)).collect();
            let last = tcp.total.div_ceil(MSS) - 1;
            tcp.last_sum = Sum::of(&payloads[last % RING][..tcp.total - last * MSS]);
            stream = payloads.iter().copied().cycle().flatten().copied().take(tcp.total).collect();
        }
        let answers = frames.iter().map(|frame| answer(frame)).collect();
        let mut frames: Vec<Frame> = frames.iter().map(|frame| Frame::new(frame)).collect();
        frames.extend([Frame::new(&frames::arp(1)), Frame::new(&frames::arp(2))]);
        Nic {
            frames,
            line: Line {
                peer,
                credit: 0,
                buffers: vec![Buffer([0; 2048]); 32],
                next_buffer: 0,
                sent: 0,
                arp: None,
                eyes: Some(Eyes { answers, stream, fault: None }),
            },
        }
    }

    /// Lets the peer send up to `frames` frames; a TCP peer whose acknowledgement was delayed sends it now.
    #[inline]
    pub fn offer(&mut self, frames: usize) {
        self.line.credit = frames;
        if let Peer::Receiver(tcp) = &mut self.line.peer
            && tcp.unanswered > 0
        {
            tcp.acknowledge(ACK);
        }
    }

    /// The peer asks for the stack's hardware address, which tells the stack the peer's. For stacks that drop an answer
    /// for want of it.
    pub fn announce(&mut self) {
        self.line.arp = Some(Arp::Request);
    }

    /// The next received frame, and the line to answer on.
    #[inline]
    pub fn receive(&mut self) -> Option<(&[u8], &mut Line)> {
        let index = self.next()?;
        Some((self.frames.get(index)?.bytes(), &mut self.line))
    }

    /// The line.
    #[inline]
    pub fn line(&mut self) -> &mut Line {
        &mut self.line
    }

    /// IPv4 frames sent.
    pub fn sent(&self) -> u64 {
        self.line.sent
    }

    /// TCP connections carried through to the end.
    pub fn transfers(&self) -> u64 {
        match &self.line.peer {
            Peer::Sender(tcp) | Peer::Receiver(tcp) => tcp.transfers,
            Peer::Replay(_) | Peer::Tftp(_) => 0,
        }
    }

    /// The TFTP server, where the peer is one.
    pub fn tftp(&self) -> Option<&Tftp> {
        match &self.line.peer {
            Peer::Tftp(tftp) => Some(tftp),
            _ => None,
        }
    }

    /// Stops looking into sent frames. Returns what was wrong with them.
    pub fn close_eyes(&mut self) -> Option<String> {
        self.line.eyes.take()?.fault
    }

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if let Some(arp) = self.line.arp.take() {
            return self.frames.len().checked_sub(arp as usize);
        }
        let left = self.line.credit.checked_sub(1)?;
        let index = match &mut self.line.peer {
            Peer::Replay(replay) => {
                let index = replay.order.get(replay.next).copied();
                replay.next = if replay.next + 1 < replay.order.len() { replay.next + 1 } else { 0 };
                if replay.idents > 0
                    && let Some(frame) = index.and_then(|index| self.frames.get_mut(index))
                {
                    frame.identify(replay.idents);
                }
                index
            }
            Peer::Tftp(tftp) => tftp.next(&mut self.frames),
            Peer::Sender(tcp) if tcp.replies.is_empty() => tcp.data(&mut self.frames),
            Peer::Sender(tcp) | Peer::Receiver(tcp) => tcp.reply(&mut self.frames[RING]).then_some(RING),
        }?;
        self.line.credit = left;
        Some(index)
    }
}

impl Line {
    /// The NIC's buffer for the next frame to send, `len` bytes of it.
    #[inline]
    pub fn buffer(&mut self, len: usize) -> &mut [u8] {
        &mut self.buffers[self.next_buffer].0[..len]
    }

    /// Sends the first `len` bytes of the buffer.
    #[inline]
    pub fn send(&mut self, len: usize) {
        let buffer = self.next_buffer;
        self.next_buffer = (buffer + 1) % self.buffers.len();
        if let Some(eyes) = &mut self.eyes {
            eyes.look(&self.buffers[buffer].0[..len], &self.peer, true);
        }
        let Line { buffers, peer, sent, arp, .. } = self;
        hear(&buffers[buffer].0[..len], len, peer, sent, arp);
    }

    /// Sends a frame of `len` bytes that lies in pieces, the first of which, `head`, holds the headers; `summed` unless the
    /// NIC is to fill in the transport checksum. `frame`: all of it, for who wants to look.
    #[inline]
    pub fn send_spans(&mut self, head: &[u8], len: usize, summed: bool, frame: impl FnOnce() -> Vec<u8>) {
        if let Some(eyes) = &mut self.eyes {
            eyes.look(&frame(), &self.peer, summed);
        }
        let Line { peer, sent, arp, .. } = self;
        hear(head, len, peer, sent, arp);
    }
}

/// What the peer makes of a frame of `len` bytes that begins with `head`.
#[inline]
fn hear(head: &[u8], len: usize, peer: &mut Peer, sent: &mut u64, arp: &mut Option<Arp>) {
    if frames::word(head, 12) == 0x0806 {
        let asked = frames::word(head, 20) == 1 && head.get(38..42) == Some(&PEER_IP[..]);
        *arp = if asked { Some(Arp::Reply) } else { None };
        return;
    }
    *sent += 1;
    match peer {
        Peer::Replay(replay) => replay.answered += 1,
        Peer::Tftp(tftp) => tftp.hear(head),
        Peer::Sender(tcp) | Peer::Receiver(tcp) => {
            let body = L4 + usize::from(head.get(46).map_or(0, |b| b >> 4)) * 4;
            let end = ETHERNET + usize::from(frames::word(head, 16));
            tcp.hear(head, end.min(len).saturating_sub(body));
        }
    }
}

impl Tcp {
    fn new(total: usize, window: usize) -> Tcp {
        Tcp {
            total,
            mss: MSS,
            // The window field is always full.
            own_shift: (window >> 16).max(1).ilog2() as u8,
            phase: Phase::Listen,
            port: 0,
            first: 1000,
            other_first: 0,
            shift: 0,
            scaled: false,
            sent: 0,
            acked: 0,
            window: 0,
            fin_sent: false,
            received: 0,
            fin_received: false,
            unanswered: 0,
            replies: VecDeque::with_capacity(1024),
            transfers: 0,
            sums: Vec::new(),
            last_sum: Sum::ZERO,
        }
    }

    /// A segment has come, with `len` bytes of payload.
    #[inline]
    fn hear(&mut self, frame: &[u8], len: usize) {
        let flags = frame[47];
        if flags & RST != 0 {
            self.phase = Phase::Listen;
            self.replies.clear();
            return;
        }
        if flags & SYN != 0 {
            self.open(frame);
            return;
        }
        if self.phase == Phase::Listen {
            return;
        }
        let ack = frames::long(frame, 42).wrapping_sub(self.first).wrapping_sub(1) as usize;
        self.window = usize::from(frames::word(frame, 48)) << self.shift;
        self.acked = ack;
        let sent = self.sent + usize::from(self.fin_sent);
        if self.phase == Phase::Closing && ack == sent {
            self.transfers += 1;
            self.phase = Phase::Listen;
            if flags & FIN == 0 {
                return;
            }
        }
        let at = frames::long(frame, 38).wrapping_sub(self.other_first).wrapping_sub(1) as usize;
        if at != self.received || self.fin_received {
            return;
        }
        self.received += len;
        if flags & FIN != 0 {
            self.fin_received = true;
            // A sender has closed before; a receiver closes now.
            let fin = if self.fin_sent { 0 } else { FIN };
            self.acknowledge(ACK | fin);
            self.fin_sent = true;
            if fin != 0 {
                self.phase = Phase::Closing;
            } else if ack == sent {
                self.transfers += 1;
                self.phase = Phase::Listen;
            } else {
                self.phase = Phase::Closing;
            }
        } else if len > 0 {
            self.unanswered += 1;
            if self.unanswered == 2 {
                self.acknowledge(ACK);
            }
        }
    }

    /// A SYN has come: answers it, with a window shift where one was offered.
    fn open(&mut self, frame: &[u8]) {
        let end = L4 + usize::from(frame[46] >> 4) * 4;
        let mut options = frame.get(BODY..end).unwrap_or(&[]);
        let mut shift = None;
        while let [kind, rest @ ..] = options {
            match (kind, rest) {
                (0, _) => break,
                (1, _) => options = rest,
                (3, [3, value, ..]) => {
                    shift = Some(*value);
                    options = &rest[2..];
                }
                (_, [len, ..]) => options = options.get(usize::from(*len).max(2)..).unwrap_or(&[]),
                (_, []) => break,
            }
        }
        self.phase = Phase::Open;
        self.port = frames::word(frame, 34);
        self.other_first = frames::long(frame, 38);
        self.first = self.first.wrapping_add(0x0100_0000);
        self.scaled = shift.is_some();
        self.shift = shift.unwrap_or(0);
        self.window = usize::from(frames::word(frame, 48));
        (self.sent, self.acked, self.received, self.unanswered) = (0, 0, 0, 0);
        (self.fin_sent, self.fin_received) = (false, false);
        self.replies.clear();
        self.replies.push_back(Reply { flags: SYN | ACK, sequence: 0, received: 0 });
    }

    fn acknowledge(&mut self, flags: u8) {
        self.unanswered = 0;
        let (sequence, received) =
            (self.sent + usize::from(self.fin_sent), self.received + usize::from(self.fin_received));
        self.replies.push_back(Reply { flags, sequence, received });
    }

    /// Makes `frame` the next reply.
    fn reply(&mut self, frame: &mut Frame) -> bool {
        let Some(Reply { flags, sequence, received }) = self.replies.pop_front() else {
            return false;
        };
        let options: &[u8] = match (flags & SYN != 0, self.scaled) {
            (true, true) => &[2, 4, (self.mss >> 8) as u8, self.mss as u8, 1, 3, 3, self.own_shift],
            (true, false) => &[2, 4, (self.mss >> 8) as u8, self.mss as u8],
            _ => &[],
        };
        frame.buffer.0[BODY..BODY + options.len()].copy_from_slice(options);
        let at = self.first.wrapping_add(u32::from(flags & SYN == 0)).wrapping_add(sequence as u32);
        self.complete(frame, at, received, flags, options.len(), 0, Sum::of(options));
        true
    }

    /// Makes the next segment of data, if there is one and the window lets it pass. The last carries FIN.
    #[inline]
    fn data(&mut self, frames: &mut [Frame]) -> Option<usize> {
        if self.phase != Phase::Open || self.sums.is_empty() || self.fin_sent {
            return None;
        }
        let len = MSS.min(self.total - self.sent);
        if self.sent + len > self.acked + self.window {
            return None;
        }
        let index = self.sent / MSS % RING;
        let last = self.sent + len == self.total;
        let (flags, sum) = if last { (ACK | PSH | FIN, self.last_sum) } else { (ACK, self.sums[index]) };
        let at = self.first.wrapping_add(1).wrapping_add(self.sent as u32);
        self.complete(&mut frames[index], at, self.received, flags, 0, len, sum);
        self.sent += len;
        self.fin_sent = last;
        Some(index)
    }

    /// Fills in the headers of a segment whose options and payload sum to `sum`.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "they are the fields of a segment")]
    fn complete(&self, frame: &mut Frame, at: u32, received: usize, flags: u8, options: usize, len: usize, sum: Sum) {
        let bytes = &mut frame.buffer.0;
        let other = self.other_first.wrapping_add(1).wrapping_add(received as u32);
        // Whole words, each stored once, as a device does: see `tftp::Tftp::address`.
        let ports = u32::from(PEER_PORT) << 16 | u32::from(self.port);
        let rest = (((TCP + options) / 4) as u32) << 28 | u32::from(flags) << 16 | 0xffff;
        let words = Sum::of_u32(ports) + Sum::of_u32(at) + Sum::of_u32(other) + Sum::of_u32(rest);
        let [a, b] = (words + sum + frames::pseudo(6, TCP + options + len)).to_field();
        for (place, word) in bytes[L4..BODY].as_chunks_mut::<4>().0.iter_mut().zip([
            ports.to_be_bytes(),
            at.to_be_bytes(),
            other.to_be_bytes(),
            rest.to_be_bytes(),
            [a, b, 0, 0],
        ]) {
            *place = std::hint::black_box(u32::from_ne_bytes(word)).to_ne_bytes();
        }
        let total = BODY + options + len;
        if total != frame.len {
            frame.len = total;
            bytes[16..18].copy_from_slice(&((total - ETHERNET) as u16).to_be_bytes());
            bytes[24..26].copy_from_slice(&[0, 0]);
            let header: &[u8; IPV4] = bytes[ETHERNET..L4].try_into().expect("twenty bytes");
            let field = Sum::of_header(header).to_field();
            bytes[24..26].copy_from_slice(&field);
        }
    }
}

/// What must come back for `frame`: a TFTP acknowledgement, or the echo; see [`Eyes::answers`].
fn answer(frame: &[u8]) -> Vec<u8> {
    match frame.get(23).copied().unwrap_or(0) {
        17 => vec![0, 4, frame[L4 + UDP + 2], frame[L4 + UDP + 3]],
        1 => frame[L4 + 4..].to_vec(),
        _ => Vec::new(),
    }
}

impl Eyes {
    fn look(&mut self, frame: &[u8], peer: &Peer, summed: bool) {
        if self.fault.is_none()
            && let Err(fault) = self.check(frame, peer, summed)
        {
            self.fault = Some(format!("{fault}: {frame:02x?}"));
        }
    }

    fn check(&self, frame: &[u8], peer: &Peer, summed: bool) -> Result<(), &'static str> {
        let rule = |holds: bool, fault| if holds { Ok(()) } else { Err(fault) };
        rule(frame.len() >= 42, "short frame")?;
        rule(frame[6..12] == OUR_MAC, "wrong source")?;
        if frames::word(frame, 12) == 0x0806 {
            return Ok(());
        }
        let header: &[u8; IPV4] = frame[ETHERNET..L4].try_into().map_err(|_| "short frame")?;
        let total = usize::from(frames::word(frame, 16));
        rule(frames::word(frame, 12) == 0x0800 && header[0] == 0x45, "not plain IPv4")?;
        rule(summed || header[10..12] == [0, 0] || Sum::of_header(header).holds(), "IPv4 checksum")?;
        rule(!summed || Sum::of_header(header).holds(), "IPv4 checksum")?;
        rule(header[12..16] == OUR_IP && header[16..20] == PEER_IP, "wrong address")?;
        let l4 = frame.get(L4..ETHERNET + total).ok_or("length beyond the frame")?;
        let sum = Sum::of(l4) + frames::pseudo(header[9], l4.len());
        match (header[9], peer) {
            (1, Peer::Replay(replay)) => {
                rule(Sum::of(l4).holds() && l4[0] == 0, "not a sound echo reply")?;
                rule(l4[4..] == self.answers[replay.order[replay.answered % RING]], "not what was asked")
            }
            (17, Peer::Tftp(_)) => rule(sum.holds(), "UDP checksum"),
            (17, Peer::Replay(replay)) => {
                rule(sum.holds() || l4[6..8] == [0, 0], "UDP checksum")?;
                rule(l4[8..] == self.answers[replay.order[replay.answered % RING]], "not the acknowledgement due")
            }
            (6, Peer::Sender(tcp) | Peer::Receiver(tcp)) => {
                rule(!summed || sum.holds(), "TCP checksum")?;
                let payload = &l4[usize::from(l4[12] >> 4) * 4..];
                if l4[13] & SYN != 0 || payload.is_empty() {
                    return Ok(());
                }
                let at = frames::long(l4, 4).wrapping_sub(tcp.other_first).wrapping_sub(1) as usize;
                rule(self.stream.get(at..at + payload.len()) == Some(payload), "not the stream's bytes")
            }
            _ => Err("unexpected protocol"),
        }
    }
}
