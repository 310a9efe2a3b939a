//! A TFTP server for the simulated link: options, windows, retransmission, as real servers do it, and ways to misbehave.

use super::link::Peer;
use super::packets::{self, Station};
use crate::storage::time::{Duration, Instant};
use crate::wire::ethernet::EtherType;
use crate::wire::ipv4::Protocol;
use crate::wire::tftp::{Access, Builder, ErrorCode, Options, Packet, emit_ack, emit_data_head, emit_error, option};
use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

/// What the server knows and how it behaves.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// Options at all (RFC 2347).
    pub options: bool,
    /// Largest block size; 0: does not know the option.
    pub blksize: u16,
    /// Largest window; 0: does not know the option.
    pub windowsize: u16,
    /// Knows `tsize`.
    pub tsize: bool,
    /// Time after which it repeats, unless the `timeout` option is taken.
    pub timeout: Duration,
    /// Knows `timeout`.
    pub timeout_option: bool,
    /// Repetitions before it gives up.
    pub retries: u32,
    /// Answers an acknowledgement it has had before by sending again (as tftpd-hpa does).
    pub eager: bool,
    /// Answers from this port instead of a fresh one.
    pub fixed_port: Option<u16>,
}

impl Default for Behaviour {
    fn default() -> Self {
        Behaviour {
            options: true,
            blksize: 65_464,
            windowsize: 65_535,
            tsize: true,
            timeout: Duration::from_secs(5),
            timeout_option: true,
            retries: 5,
            eager: true,
            fixed_port: None,
        }
    }
}

#[derive(Clone, Debug)]
struct Transfer {
    client: Station,
    client_port: u16,
    port: u16,
    name: Vec<u8>,
    /// A client that sends (WRQ): what has come.
    upload: Option<Vec<u8>>,
    blksize: usize,
    window: u64,
    /// Last block acknowledged, by the client or, of an upload, to it.
    acked: u64,
    /// Last block received in order, of an upload.
    received: u64,
    /// The OACK waits for its answer.
    oack: Option<Vec<u8>>,
    timeout: Duration,
    deadline: Instant,
    tries: u32,
    gap_told: u64,
    done: bool,
}

/// A request seen: name, and options with their names in lower case.
pub type Seen = (Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>);

/// The server.
#[derive(Debug)]
pub struct TftpServer {
    /// Who it is.
    pub station: Station,
    /// How it behaves.
    pub behaviour: Behaviour,
    /// Its files.
    pub files: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Requests seen: name and options.
    pub requests: Vec<Seen>,
    /// DATA blocks sent, or, of uploads, received.
    pub data_frames: u64,
    /// Acknowledgements received or sent.
    pub acks: u64,
    /// ERROR packets received: code and text.
    pub errors: Vec<(u16, Vec<u8>)>,
    transfers: Vec<Transfer>,
    next_port: u16,
    idents: core::cell::Cell<u16>,
}

impl TftpServer {
    /// A server with one file.
    pub fn new(station: Station, behaviour: Behaviour, name: &[u8], file: Vec<u8>) -> Self {
        TftpServer {
            station,
            behaviour,
            files: BTreeMap::from([(name.to_vec(), file)]),
            requests: Vec::new(),
            data_frames: 0,
            acks: 0,
            errors: Vec::new(),
            transfers: Vec::new(),
            next_port: 30_000,
            idents: core::cell::Cell::new(0),
        }
    }

    /// Transfers it believes to be under way.
    pub fn active(&self) -> usize {
        self.transfers.len()
    }

    /// Forgets every transfer, as after a restart.
    pub fn restart(&mut self) {
        self.transfers.clear();
    }

    fn send(&self, t: &Transfer, payload: &[u8], out: &mut Vec<Vec<u8>>) {
        let datagram = packets::udp_datagram((self.station.ip, t.port), (t.client.ip, t.client_port), payload);
        // Fragments of 1480 bytes where it does not fit a frame, each datagram with an identification of its own.
        let id = self.idents.get().wrapping_add(1);
        self.idents.set(id);
        let mut at = 0;
        for piece in datagram.chunks(1480) {
            let packet = packets::ipv4_with(self.station.ip, t.client.ip, Protocol::UDP, piece, |ip| {
                ip.identification = id;
                ip.fragment_offset = at as u16;
                ip.more_fragments = at + piece.len() < datagram.len();
            });
            at += piece.len();
            out.push(packets::ethernet(t.client.mac, self.station.mac, EtherType::IPV4, &packet));
        }
    }

    fn blocks(file: &[u8], blksize: usize) -> u64 {
        (file.len() / blksize + 1) as u64
    }

    fn send_window(&mut self, t: &Transfer, out: &mut Vec<Vec<u8>>) {
        let file = &self.files[&t.name];
        let last = Self::blocks(file, t.blksize);
        let mut frames = Vec::new();
        for block in t.acked + 1..=(t.acked + t.window).min(last) {
            let start = (block as usize - 1) * t.blksize;
            let data = &file[start..(start + t.blksize).min(file.len())];
            let mut packet = emit_data_head(block as u16).to_vec();
            packet.extend_from_slice(data);
            frames.push(packet);
        }
        for packet in frames {
            self.data_frames += 1;
            self.send(t, &packet, out);
        }
    }

    fn request(
        &mut self,
        now: Instant,
        access: Access,
        from: (Station, u16),
        name: &[u8],
        options: Options<'_>,
        out: &mut Vec<Vec<u8>>,
    ) {
        let asked: BTreeMap<Vec<u8>, Vec<u8>> = options.map(|(n, v)| (n.to_ascii_lowercase(), v.to_vec())).collect();
        self.requests.push((name.to_vec(), asked));
        self.next_port += 1;
        let b = self.behaviour.clone();
        let mut t = Transfer {
            client: from.0,
            client_port: from.1,
            port: b.fixed_port.unwrap_or(self.next_port),
            name: name.to_vec(),
            upload: (access == Access::Write).then(Vec::new),
            blksize: 512,
            window: 1,
            acked: 0,
            received: 0,
            oack: None,
            timeout: b.timeout,
            deadline: Instant::NEVER,
            tries: 0,
            gap_told: 0,
            done: false,
        };
        let Some(len) = self.files.get(name).map(Vec::len).or((access == Access::Write).then_some(0)) else {
            let mut buf = [0; 64];
            let n = emit_error(ErrorCode::FILE_NOT_FOUND, b"File not found", &mut buf).unwrap();
            self.send(&t, &buf[..n], out);
            return;
        };
        let mut buf = vec![0; 512];
        let mut oack = Builder::oack(&mut buf).unwrap();
        let mut any = false;
        if b.options {
            if let Some(n) = options.number(option::BLKSIZE).filter(|_| b.blksize > 0) {
                t.blksize = (n as usize).min(usize::from(b.blksize));
                oack.number(option::BLKSIZE, t.blksize as u64).unwrap();
                any = true;
            }
            if let Some(n) = options.number(option::WINDOWSIZE).filter(|_| b.windowsize > 0) {
                t.window = n.min(u64::from(b.windowsize));
                oack.number(option::WINDOWSIZE, t.window).unwrap();
                any = true;
            }
            if let Some(n) = options.number(option::TSIZE).filter(|_| b.tsize) {
                oack.number(option::TSIZE, if access == Access::Read { len as u64 } else { n }).unwrap();
                any = true;
            }
            if let Some(n) = options.number(option::TIMEOUT).filter(|_| b.timeout_option) {
                t.timeout = Duration::from_secs(n);
                oack.number(option::TIMEOUT, n).unwrap();
                any = true;
            }
        }
        let oack = oack.finish().to_vec();
        // The same client asking again: a server that has but one port forgets what was before.
        self.transfers.retain(|old| (old.client, old.client_port, old.port) != (from.0, from.1, t.port));
        t.deadline = now + t.timeout;
        if any {
            self.send(&t, &oack, out);
            t.oack = Some(oack);
        } else if access == Access::Read {
            self.send_window(&t, out);
        } else {
            self.acks += 1;
            self.send(&t, &emit_ack(0), out);
        }
        self.transfers.push(t);
    }

    fn ack(&mut self, now: Instant, t: &mut Transfer, wire: u16, out: &mut Vec<Vec<u8>>) {
        self.acks += 1;
        let last = Self::blocks(&self.files[&t.name], t.blksize);
        let ahead = u64::from(wire.wrapping_sub(t.acked as u16));
        let new = ahead <= t.window && (ahead > 0 || t.oack.is_some());
        if !new {
            if ahead == 0 && self.behaviour.eager {
                t.deadline = now + t.timeout;
                self.send_window(t, out);
            }
            return;
        }
        t.oack = None;
        t.acked += ahead;
        t.tries = 0;
        t.deadline = now + t.timeout;
        if t.acked >= last {
            t.done = true;
        } else {
            self.send_window(t, out);
        }
    }

    fn upload(&mut self, now: Instant, t: &mut Transfer, wire: u16, data: &[u8], out: &mut Vec<Vec<u8>>) {
        self.data_frames += 1;
        t.oack = None;
        let distance = wire.wrapping_sub((t.received + 1) as u16);
        t.tries = 0;
        t.deadline = now + t.timeout;
        if distance != 0 {
            // A gap is told once; the last block again means that its acknowledgement was lost.
            let gap = distance < 0x8000 && t.gap_told != t.received + 1;
            if gap || wire == t.received as u16 {
                t.gap_told = t.received + 1;
                t.acked = t.received;
                self.acks += 1;
                self.send(t, &emit_ack(t.received as u16), out);
            }
            return;
        }
        t.received += 1;
        let Some(bytes) = &mut t.upload else { return };
        bytes.extend_from_slice(data);
        let last = data.len() < t.blksize;
        if last {
            self.files.insert(t.name.clone(), bytes.clone());
        }
        if last || t.received >= t.acked + t.window {
            t.acked = t.received;
            self.acks += 1;
            self.send(t, &emit_ack(t.received as u16), out);
        }
    }
}

impl Peer for TftpServer {
    fn receive(&mut self, now: Instant, frame: &[u8], out: &mut Vec<Vec<u8>>) {
        if let Some(arp) = packets::parse_arp(frame) {
            if arp.target_ip == self.station.ip {
                let asker = Station { mac: arp.sender_mac, ip: arp.sender_ip };
                out.push(packets::arp_reply(self.station, asker));
            }
            return;
        }
        let Some(seen) = packets::parse_udp(frame) else { return };
        if seen.dst != self.station.ip {
            return;
        }
        let source = crate::wire::ethernet::Frame::parse(frame).unwrap().source();
        let client = Station { mac: source, ip: seen.src };
        let Ok(packet) = Packet::parse(&seen.payload) else { return };
        if let Packet::Request { access, file, options, .. } = packet {
            self.request(now, access, (client, seen.src_port), file, options, out);
            return;
        }
        let ours = |t: &Transfer| t.port == seen.dst_port && t.client_port == seen.src_port && t.client == client;
        let Some(at) = self.transfers.iter().position(ours) else {
            if let Packet::Error { code, message } = packet {
                self.errors.push((code.0, message.to_vec()));
            }
            return;
        };
        let mut t = self.transfers.remove(at);
        match packet {
            Packet::Ack { block } if t.upload.is_none() => self.ack(now, &mut t, block, out),
            Packet::Data { block, data } if t.upload.is_some() => self.upload(now, &mut t, block, data, out),
            Packet::Error { code, message } => {
                self.errors.push((code.0, message.to_vec()));
                t.done = true;
            }
            _ => {}
        }
        if !t.done {
            self.transfers.insert(at, t);
        }
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        let mut all = core::mem::take(&mut self.transfers);
        for t in &mut all {
            if now < t.deadline {
                continue;
            }
            t.tries += 1;
            t.deadline = now + t.timeout;
            if t.tries > self.behaviour.retries {
                t.done = true;
            } else if let Some(oack) = t.oack.clone() {
                self.send(t, &oack, out);
            } else if t.upload.is_none() {
                self.send_window(t, out);
            } else {
                self.acks += 1;
                t.acked = t.received;
                self.send(t, &emit_ack(t.received as u16), out);
            }
        }
        all.retain(|t| !t.done);
        self.transfers = all;
    }

    fn deadline(&self) -> Instant {
        self.transfers.iter().map(|t| t.deadline).min().unwrap_or(Instant::NEVER)
    }
}

/// A file of `len` bytes that repeats at no length a block has.
pub fn sample(len: usize) -> Vec<u8> {
    let mut state = len as u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&super::host::splitmix(&mut state).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
