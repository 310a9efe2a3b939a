//! The floors: what is left of each case when there is no stack, only the frames, the payload and the few header words
//! that the peer must get. `floor_copysum` copies and sums each payload byte in one pass, with Bootlace's own routine,
//! and checks what it received; `floor_memcpy` only copies, `floor_sum` only sums. None of them can lose, reorder,
//! retransmit or demultiplex anything.

use crate::case::{Case, Destination, FRAGMENTS, MSS, Source};
use crate::frames::{self, ETHERNET, FRAGMENT, IPV4, TCP, UDP};
use crate::harness::Bench;
use crate::nic::{Line, Nic};
use bootlace::storage::checksum::Sum;

/// Frames taken from the NIC between two looks at anything else.
const BURST: usize = 16;
const L4: usize = ETHERNET + IPV4;
const BODY: usize = L4 + TCP;

/// What is done with payload.
trait Pass: 'static {
    /// Whether sums are real and worth checking.
    const SUMS: bool;
    fn pass(to: &mut [u8], from: &[u8]) -> Sum;
}

struct CopySum;
struct Memcpy;
struct SumOnly;

impl Pass for CopySum {
    const SUMS: bool = true;
    #[inline]
    fn pass(to: &mut [u8], from: &[u8]) -> Sum {
        Sum::copy(to, from).expect("one length")
    }
}

impl Pass for Memcpy {
    const SUMS: bool = false;
    #[inline]
    fn pass(to: &mut [u8], from: &[u8]) -> Sum {
        to.copy_from_slice(from);
        Sum::ZERO
    }
}

impl Pass for SumOnly {
    const SUMS: bool = true;
    #[inline]
    fn pass(_: &mut [u8], from: &[u8]) -> Sum {
        Sum::of(from)
    }
}

/// `floor_copysum`.
pub fn copysum(case: Case) -> Option<Box<dyn Bench>> {
    open::<CopySum>(case)
}

/// `floor_memcpy`.
pub fn memcpy(case: Case) -> Option<Box<dyn Bench>> {
    open::<Memcpy>(case)
}

/// `floor_sum`.
pub fn sum(case: Case) -> Option<Box<dyn Bench>> {
    open::<SumOnly>(case)
}

fn open<P: Pass>(case: Case) -> Option<Box<dyn Bench>> {
    let round = match case {
        Case::UdpRx => Floor::<P>::udp,
        Case::Lockstep => Floor::<P>::lockstep,
        Case::Fragments(_) => Floor::<P>::fragments,
        Case::Echo => Floor::<P>::echo,
        Case::TcpRx(_) => Floor::<P>::receive,
        Case::TcpTx(_) | Case::Sendfile(_) | Case::TcpTxGather(_) => Floor::<P>::transmit,
        Case::SendfileOffload(..) => return None,
    };
    let total = match case {
        Case::TcpRx(_) | Case::TcpTx(_) | Case::Sendfile(_) | Case::TcpTxGather(_) => crate::case::TRANSFER,
        _ => 0,
    };
    Some(Box::new(Floor {
        nic: case.nic(),
        destination: Destination::new(),
        source: Source::new(case),
        total,
        port: 50_000,
        faults: 0,
        round,
        passes: core::marker::PhantomData,
    }))
}

struct Floor<P: Pass> {
    nic: Nic,
    destination: Destination,
    source: Source,
    total: usize,
    port: u16,
    faults: u64,
    round: fn(&mut Self, u64),
    passes: core::marker::PhantomData<P>,
}

impl<P: Pass> Bench for Floor<P> {
    fn run(&mut self, rounds: u64) {
        (self.round)(self, rounds);
        assert_eq!(self.faults, 0, "frames failed their checks");
    }

    fn nic(&mut self) -> &mut Nic {
        &mut self.nic
    }

    fn received(&self) -> &[u8] {
        self.destination.all()
    }
}

/// The fixed headers of a frame and what follows them.
#[inline]
fn split<const N: usize>(frame: &[u8]) -> (&[u8; IPV4], &[u8; N], &[u8]) {
    let (_, rest) = frame.split_first_chunk::<ETHERNET>().expect("an Ethernet header");
    let (ip, rest) = rest.split_first_chunk::<IPV4>().expect("an IPv4 header");
    let end = usize::from(u16::from_be_bytes([ip[2], ip[3]])) - IPV4;
    let (l4, body) = rest[..end].split_first_chunk::<N>().expect("a transport header");
    (ip, l4, body)
}

impl<P: Pass> Floor<P> {
    #[inline]
    fn check(&mut self, holds: bool) {
        self.faults += u64::from(P::SUMS && !holds);
    }

    fn udp(&mut self, rounds: u64) {
        let mut left = rounds;
        while left > 0 {
            let burst = left.min(BURST as u64);
            self.nic.offer(burst as usize);
            left -= burst;
            while let Some((frame, _)) = self.nic.receive() {
                let (ip, udp, body) = split::<UDP>(frame);
                let sum = P::pass(self.destination.take(body.len()), body)
                    + Sum::of_array(udp)
                    + frames::pseudo(17, UDP + body.len());
                let holds = sum.holds() && Sum::of_header(ip).holds();
                self.check(holds);
            }
        }
    }

    fn lockstep(&mut self, rounds: u64) {
        let ack = frames::ipv4(17, 0, 0x4000, &frames::udp(&[0, 4, 0, 0]));
        let mut answer = [0u8; L4 + UDP + 4];
        answer.copy_from_slice(&ack);
        answer[..12].rotate_left(6);
        answer[26..34].rotate_left(4);
        answer[34..38].rotate_left(2);
        for _ in 0..rounds {
            self.nic.offer(1);
            let Some((frame, line)) = self.nic.receive() else {
                continue;
            };
            let (ip, udp, body) = split::<UDP>(frame);
            let (head, data) = body.split_first_chunk::<4>().expect("a DATA header");
            let sum = P::pass(self.destination.take(data.len()), data)
                + Sum::of_array(head)
                + Sum::of_array(udp)
                + frames::pseudo(17, UDP + body.len());
            let holds = sum.holds() && Sum::of_header(ip).holds();
            let buffer: &mut [u8; L4 + UDP + 4] = line.buffer(answer.len()).try_into().expect("one length");
            *buffer = answer;
            [buffer[44], buffer[45]] = [head[2], head[3]];
            // The template's sum is that of block 0.
            let field = Sum::of_array(&[!answer[40], !answer[41]]) + Sum::of_array(&[head[2], head[3]]);
            [buffer[40], buffer[41]] = field.to_field();
            line.send(answer.len());
            self.check(holds);
        }
    }

    fn fragments(&mut self, rounds: u64) {
        const LEN: usize = FRAGMENTS * FRAGMENT - UDP;
        for _ in 0..rounds {
            self.nic.offer(FRAGMENTS);
            let target = self.destination.take(LEN);
            let mut total = frames::pseudo(17, UDP + LEN);
            let mut holds = true;
            while let Some((frame, _)) = self.nic.receive() {
                let (ip, first, rest) = split::<UDP>(frame);
                holds &= Sum::of_header(ip).holds();
                let at = usize::from(frames::word(ip, 6) & 0x1fff) * 8;
                total += match at.checked_sub(UDP) {
                    None => P::pass(&mut target[..rest.len()], rest) + Sum::of_array(first),
                    Some(at) => {
                        let piece = &frame[L4..];
                        P::pass(&mut target[at..at + piece.len()], piece)
                    }
                };
            }
            self.check(holds && total.holds());
        }
    }

    fn echo(&mut self, rounds: u64) {
        let mut left = rounds;
        while left > 0 {
            let burst = left.min(BURST as u64);
            self.nic.offer(burst as usize);
            left -= burst;
            while let Some((frame, line)) = self.nic.receive() {
                let (ip, icmp, body) = split::<8>(frame);
                let buffer = line.buffer(frame.len());
                let (head, rest) = buffer.split_first_chunk_mut::<{ L4 + 8 }>().expect("the headers");
                let sum = P::pass(rest, body) + Sum::of_array(icmp);
                let holds = sum.holds() && Sum::of_header(ip).holds();
                head[..6].copy_from_slice(&frame[6..12]);
                head[6..12].copy_from_slice(&frame[..6]);
                head[12..26].copy_from_slice(&frame[12..26]);
                head[26..30].copy_from_slice(&frame[30..34]);
                head[30..34].copy_from_slice(&frame[26..30]);
                head[34..].copy_from_slice(icmp);
                head[34] = 0;
                // Type 8 has become 0; the checksum takes it over.
                let field = Sum::of_array(&[icmp[2], icmp[3]]) + Sum::of_u16(0x0800);
                [head[36], head[37]] = field.fold().to_ne_bytes();
                line.send(frame.len());
                self.check(holds);
            }
        }
    }

    fn receive(&mut self, rounds: u64) {
        for _ in 0..rounds {
            self.port = self.port.wrapping_add(1) | 0x8000;
            let mut own = Own::new(self.port);
            own.send::<P>(self.nic.line(), SYN, &[]);
            let target = self.destination.take(self.total);
            let (mut at, mut unanswered, mut bad) = (0, 0, 0u64);
            while !own.over {
                self.nic.offer(2 * BURST);
                while let Some((frame, line)) = self.nic.receive() {
                    let (ip, tcp, body) = split::<TCP>(frame);
                    if !own.hear(tcp) {
                        own.send::<P>(line, ACK, &[]);
                        continue;
                    }
                    let sum = P::pass(&mut target[at..at + body.len()], body)
                        + Sum::of_array(tcp)
                        + frames::pseudo(6, TCP + body.len());
                    bad += u64::from(P::SUMS && !(sum.holds() && Sum::of_header(ip).holds()));
                    at += body.len();
                    own.ack = own.ack.wrapping_add(body.len() as u32);
                    unanswered += 1;
                    if tcp[13] & FIN != 0 {
                        own.ack = own.ack.wrapping_add(1);
                        own.send::<P>(line, FIN | ACK, &[]);
                        own.over = true;
                    } else if unanswered == 2 {
                        own.send::<P>(line, ACK, &[]);
                        unanswered = 0;
                    }
                }
            }
            self.nic.offer(2 * BURST);
            while self.nic.receive().is_some() {}
            self.faults += bad;
        }
    }

    fn transmit(&mut self, rounds: u64) {
        for _ in 0..rounds {
            self.port = self.port.wrapping_add(1) | 0x8000;
            let from = self.source.next(self.total);
            let data = self.source.memory.bytes(from, self.total).expect("a part of the source");
            let mut own = Own::new(self.port);
            own.send::<P>(self.nic.line(), SYN, &[]);
            let first = own.at;
            while !own.over {
                self.nic.offer(2 * BURST);
                while let Some((frame, line)) = self.nic.receive() {
                    let (_, tcp, _) = split::<TCP>(frame);
                    own.hear(tcp);
                    if tcp[13] & FIN != 0 {
                        own.ack = own.ack.wrapping_add(1);
                        own.send::<P>(line, ACK, &[]);
                        own.over = true;
                    }
                }
                loop {
                    let sent = own.at.wrapping_sub(first) as usize;
                    let Some(piece) = data.get(sent..).map(|rest| &rest[..rest.len().min(MSS)]) else {
                        break;
                    };
                    let acked = own.acked.wrapping_sub(first) as usize;
                    if piece.is_empty() || sent + piece.len() > acked + own.window {
                        break;
                    }
                    let last = sent + piece.len() == data.len();
                    own.send::<P>(self.nic.line(), if last { ACK | FIN } else { ACK }, piece);
                }
            }
        }
    }
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// The floor's end of a TCP connection.
struct Own {
    headers: [u8; BODY],
    at: u32,
    ack: u32,
    acked: u32,
    window: usize,
    over: bool,
}

impl Own {
    fn new(port: u16) -> Own {
        let mut headers = [0u8; BODY];
        headers.copy_from_slice(&frames::ipv4(6, 0, 0x4000, &[0; TCP]));
        headers[..12].rotate_left(6);
        headers[26..34].rotate_left(4);
        headers[34..36].copy_from_slice(&port.to_be_bytes());
        headers[36..38].copy_from_slice(&frames::PEER_PORT.to_be_bytes());
        headers[46] = 0x50;
        headers[48..50].copy_from_slice(&[0xff, 0xff]);
        Own { headers, at: 7, ack: 0, acked: 8, window: 0, over: false }
    }

    /// Takes in the header of a segment. Whether it is not the SYN.
    #[inline]
    fn hear(&mut self, tcp: &[u8; TCP]) -> bool {
        self.acked = frames::long(tcp, 8);
        self.window = usize::from(frames::word(tcp, 14));
        if tcp[13] & SYN != 0 {
            self.ack = frames::long(tcp, 4).wrapping_add(1);
        }
        tcp[13] & SYN == 0
    }

    #[inline]
    fn send<P: Pass>(&mut self, line: &mut Line, flags: u8, data: &[u8]) {
        let len = BODY + data.len();
        let buffer = line.buffer(len);
        let (head, body) = buffer.split_first_chunk_mut::<BODY>().expect("the headers");
        *head = self.headers;
        let sum = P::pass(body, data);
        head[16..18].copy_from_slice(&((len - ETHERNET) as u16).to_be_bytes());
        [head[24], head[25]] = [0, 0];
        let ip: &[u8; IPV4] = head[ETHERNET..L4].try_into().expect("twenty bytes");
        [head[24], head[25]] = Sum::of_header(ip).to_field();
        head[38..42].copy_from_slice(&self.at.to_be_bytes());
        head[42..46].copy_from_slice(&self.ack.to_be_bytes());
        head[47] = flags;
        let tcp: &[u8; TCP] = head[L4..].try_into().expect("twenty bytes");
        [head[50], head[51]] = (Sum::of_array(tcp) + sum + frames::pseudo(6, TCP + data.len())).to_field();
        line.send(len);
        self.at = self.at.wrapping_add(data.len() as u32).wrapping_add(u32::from(flags & (SYN | FIN) != 0));
    }
}
