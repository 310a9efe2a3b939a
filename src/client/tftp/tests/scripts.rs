//! Packet scripts: every packet in and out is written here. The ids are those of the field cases.

use crate::client::operation::{DetailKind, Server, Step};
use crate::client::ops::Client;
use crate::client::tftp::{Get, Mode, Request, Tuning};
use crate::sim::host::{SimHost, SimMemory, SimWriter};
use crate::sim::packets::{self, Station, UdpSeen};
use crate::sim::rig::Rig;
use crate::sim::tftp_server::sample;
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::Sink;
use crate::storage::slots::Key;
use crate::storage::time::Duration;
use crate::wire::icmpv4::{Message, Unreachable};
use std::collections::{BTreeMap, BTreeSet};
use std::vec;
use std::vec::Vec;

const SERVER: Station = Station::new(1);
const TID: u16 = 3000;

/// A script: the rig, an operation, and the two ports.
struct Script {
    rig: Rig,
    op: Key,
    memory: SimMemory,
    /// Port of the client, from its last request.
    port: u16,
    /// Options of the last request.
    options: BTreeMap<Vec<u8>, Vec<u8>>,
}

fn request(memory: &SimMemory, blksize: u16, windowsize: u16) -> Request<SimHost> {
    Request {
        server: Server { name: None, addr: SERVER.ip, port: 0 },
        path: b"file".to_vec(),
        mode: Mode::Octet,
        sink: Sink::Memory(memory.clone()),
        tuning: Tuning { blksize, windowsize, ..Tuning::default() },
        sink_stall: Duration::ZERO,
    }
}

impl Script {
    fn new(room: usize, blksize: u16, windowsize: u16) -> Self {
        let mut rig = Rig::new(7);
        rig.know(SERVER);
        Script::on(rig, room, blksize, windowsize)
    }

    fn on(rig: Rig, room: usize, blksize: u16, windowsize: u16) -> Self {
        let memory = SimMemory::new(room);
        let request = request(&memory, blksize, windowsize);
        Script::with(rig, request, memory)
    }

    fn with(mut rig: Rig, request: Request<SimHost>, memory: SimMemory) -> Self {
        let op = rig.engine.start(Client::TftpGet(Get::new(request).unwrap())).unwrap();
        let mut script = Script { rig, op, memory, port: 0, options: BTreeMap::new() };
        script.expect_request();
        script
    }

    /// The one datagram sent must be a read request.
    fn expect_request(&mut self) {
        let sent = self.rig.sent_udp();
        assert_eq!(sent.len(), 1, "one request: {sent:?}");
        let UdpSeen { dst, dst_port, src_port, payload, .. } = &sent[0];
        assert_eq!((*dst, *dst_port), (SERVER.ip, 69));
        use crate::wire::tftp::{Access, Packet};
        let Ok(Packet::Request { access: Access::Read, file, options, .. }) = Packet::parse(payload) else {
            panic!("a read request: {payload:?}");
        };
        assert_eq!(file, b"file");
        self.options = options.map(|(n, v)| (n.to_vec(), v.to_vec())).collect();
        self.port = *src_port;
    }

    fn from(&mut self, port: u16, payload: &[u8]) {
        let frame = packets::udp(SERVER, port, self.rig.us, self.port, payload);
        self.rig.input(&frame);
    }

    fn give(&mut self, payload: &[u8]) {
        self.from(TID, payload);
    }

    fn oack(&mut self, options: &[(&str, &str)]) {
        self.give(&oack(options));
    }

    fn data(&mut self, block: u16, bytes: &[u8]) {
        self.give(&data(block, bytes));
    }

    /// What was sent to the server's end since the last call.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        let sent = self.rig.sent_udp();
        sent.into_iter()
            .map(|s| {
                assert_eq!((s.dst, s.dst_port, s.src_port), (SERVER.ip, TID, self.port));
                s.payload
            })
            .collect()
    }

    fn expect_acks(&mut self, blocks: &[u16]) {
        let acks: Vec<Vec<u8>> = blocks.iter().map(|b| ack(*b)).collect();
        assert_eq!(self.sent(), acks);
    }

    fn expect_error(&mut self, code: u16) {
        let sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        assert_eq!(sent[0][..4], [0, 5, (code >> 8) as u8, code as u8]);
        assert_eq!(sent[0].last(), Some(&0));
    }

    fn step(&self) -> Step {
        self.rig.engine.ops.get(self.op).unwrap().step
    }

    fn result(&self) -> Option<Result<u64, Error>> {
        match self.step() {
            Step::Done(result) => Some(result),
            Step::Pending(_) => None,
        }
    }

    fn detail(&self) -> (DetailKind, u32, Vec<u8>) {
        let detail = &self.rig.engine.ops.get(self.op).unwrap().detail;
        (detail.kind, detail.code, detail.text.to_vec())
    }
}

fn oack(options: &[(&str, &str)]) -> Vec<u8> {
    let mut packet = vec![0, 6];
    for (name, value) in options {
        packet.extend_from_slice(name.as_bytes());
        packet.push(0);
        packet.extend_from_slice(value.as_bytes());
        packet.push(0);
    }
    packet
}

fn data(block: u16, bytes: &[u8]) -> Vec<u8> {
    let mut packet = vec![0, 3];
    packet.extend_from_slice(&block.to_be_bytes());
    packet.extend_from_slice(bytes);
    packet
}

fn ack(block: u16) -> Vec<u8> {
    let [a, b] = block.to_be_bytes();
    vec![0, 4, a, b]
}

fn error(code: u8, text: &[u8]) -> Vec<u8> {
    let mut packet = vec![0, 5, 0, code];
    packet.extend_from_slice(text);
    packet.push(0);
    packet
}

#[test]
fn the_request_asks_for_what_works_best() {
    let s = Script::new(100_000, 0, 0);
    let number = |name: &str| s.options.get(name.as_bytes()).map(|v| std::str::from_utf8(v).unwrap());
    assert_eq!(number("blksize"), Some("1468"), "what fits the MTU");
    assert_eq!(number("windowsize"), Some("32"));
    assert_eq!(number("tsize"), Some("0"));
    assert_eq!(number("timeout"), Some("1"));
}

#[test]
fn case_t02_a_server_that_knows_no_options() {
    for (blksize, windowsize) in [(1468, 4), (512, 1)] {
        let mut s = Script::new(2000, blksize, windowsize);
        let asked = s.options.contains_key(&b"windowsize"[..]);
        assert_eq!(asked, windowsize == 4);
        assert!(s.options.contains_key(&b"tsize"[..]));
        let file = sample(1034);
        s.data(1, &file[..512]);
        s.expect_acks(&[1]);
        assert_eq!(s.result(), None, "512 bytes are not short");
        assert_eq!(s.rig.engine.ops.get(s.op).unwrap().progress.total, None, "size unknown");
        s.data(2, &file[512..1024]);
        s.expect_acks(&[2]);
        s.data(3, &file[1024..]);
        s.expect_acks(&[3]);
        assert_eq!(s.result(), Some(Ok(1034)));
        assert!(s.memory.to_vec()[..1034] == file);
        assert!(s.memory.to_vec()[1034..].iter().all(|b| *b == 0xa5));
    }
    // The nearest server that does know them.
    let mut s = Script::new(2000, 1468, 4);
    s.oack(&[("blksize", "1468"), ("windowsize", "4"), ("tsize", "1034")]);
    s.expect_acks(&[0]);
    s.data(1, &sample(1034));
    s.expect_acks(&[1]);
    assert_eq!(s.result(), Some(Ok(1034)));
}

#[test]
fn case_t04_an_oddly_formatted_oack() {
    // Each with the block size that it comes to.
    let cases: [(&[u8], usize); 5] = [
        (b"\x00\x06BlkSize\x001024\x00", 1024),
        (b"\x00\x06blksize\x001024\x00\xffAB", 1024),
        (b"\x00\x06blksize\x00", 512),
        (b"\x00\x06blksize\x001024", 512),
        (b"\x00\x06blksize\x001024\x00", 1024),
    ];
    for (packet, blksize) in cases {
        let mut s = Script::new(4000, 1024, 1);
        s.give(packet);
        s.expect_acks(&[0]);
        let file = sample(blksize + 1);
        s.data(1, &file[..blksize]);
        s.expect_acks(&[1]);
        assert_eq!(s.result(), None);
        s.data(2, &file[blksize..]);
        s.expect_acks(&[2]);
        assert_eq!(s.result(), Some(Ok(blksize as u64 + 1)));
        assert!(s.memory.to_vec()[..=blksize] == file);
    }
    // The opcode alone is no packet; the real answer that follows is taken.
    let mut s = Script::new(4000, 1024, 1);
    s.give(b"\x00\x06");
    assert_eq!(s.sent(), Vec::<Vec<u8>>::new());
    assert_eq!(s.rig.count(Counter::DropTftpMalformed), 1);
    s.give(b"\x00\x06BLKSIZE\x001024\x00");
    s.expect_acks(&[0]);
}

#[test]
fn options_that_cannot_be_are_refused_and_asked_for_no_more() {
    for wrong in [
        [("blksize", "1469")],
        [("blksize", "7")],
        [("blksize", "0")],
        [("blksize", "x")],
        [("blksize", "66000")],
        [("windowsize", "0")],
        [("windowsize", "5")],
        [("windowsize", "65537")],
    ] {
        let mut s = Script::new(4000, 1468, 4);
        let port = s.port;
        s.oack(&wrong);
        let sent = s.rig.sent_udp();
        assert_eq!(sent.len(), 2, "{wrong:?}");
        assert_eq!((sent[0].dst_port, &sent[0].payload[..4]), (TID, &[0, 5, 0, 8][..]));
        assert_eq!(sent[1].payload, b"\x00\x01file\x00octet\x00", "asked again without options");
        assert_ne!(sent[1].src_port, port);
        s.port = sent[1].src_port;
        s.data(1, b"x");
        s.expect_acks(&[1]);
        assert_eq!(s.result(), Some(Ok(1)));
    }
    // Windows never asked for.
    let mut s = Script::new(4000, 1468, 1);
    s.oack(&[("windowsize", "1")]);
    assert_eq!(s.rig.sent_udp().len(), 2);
    // The nearest that can be.
    let mut s = Script::new(4000, 1468, 4);
    s.oack(&[("blksize", "8"), ("windowsize", "1")]);
    s.expect_acks(&[0]);
    s.data(1, b"12345678");
    s.expect_acks(&[1]);
    s.data(2, b"");
    s.expect_acks(&[2]);
    assert_eq!(s.result(), Some(Ok(8)));
}

#[test]
fn a_server_that_refuses_options_is_asked_without() {
    let mut s = Script::new(4000, 1468, 4);
    s.give(&error(8, b"no options"));
    let sent = s.rig.sent_udp();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].payload, b"\x00\x01file\x00octet\x00");
    s.port = sent[0].src_port;
    s.give(&error(8, b"still no"));
    assert_eq!(s.result(), Some(Err(Error::NotSupported)));
    assert_eq!(s.detail(), (DetailKind::Tftp, 8, b"still no".to_vec()));
}

#[test]
fn case_t05_every_block_arrives_twice() {
    let file = sample(512 * 5 + 100);
    let mut s = Script::new(4000, 512, 1);
    let mut packets = 0;
    for n in 1..=6u16 {
        let start = (usize::from(n) - 1) * 512;
        let bytes = &file[start..file.len().min(start + 512)];
        let mut acks = Vec::new();
        for copy in 0..2 {
            s.data(n, bytes);
            packets += 1;
            let sent = s.sent();
            packets += sent.len();
            assert!(sent.len() <= 1, "at most one answer for each copy");
            assert!(copy == 1 || sent == [ack(n)]);
            acks.extend(sent);
        }
        assert!(acks.iter().all(|a| *a == ack(n)), "asks for nothing new");
        if n == 4 {
            let before = s.rig.engine.ops.get(s.op).unwrap().progress;
            s.data(3, &file[1024..1536]);
            packets += 1 + s.sent().len();
            assert_eq!(s.rig.engine.ops.get(s.op).unwrap().progress, before, "the counter does not move back");
        }
    }
    assert!(packets <= 4 * 6, "{packets} packets for 6 blocks");
    assert_eq!(s.result(), Some(Ok(file.len() as u64)));
    assert!(s.memory.to_vec()[..file.len()] == file);
    // Written once: a spoilt copy of a confirmed block changes nothing.
    let mut s = Script::new(4000, 512, 1);
    s.data(1, &file[..512]);
    s.data(1, &[0xee; 512]);
    assert!(s.memory.to_vec()[..512] == file[..512]);
    assert_eq!(s.rig.count(Counter::TftpDuplicate), 1);
    // A copy after a silence: the acknowledgement was lost, and is sent again, once.
    s.sent();
    s.rig.advance(15);
    s.sent();
    s.rig.advance(15);
    s.data(1, &file[..512]);
    s.expect_acks(&[1]);
}

#[test]
fn case_t07_a_window_with_a_lost_or_reordered_block() {
    let file = sample(512 * 9 + 1);
    let block = |n: u16| &file[(usize::from(n) - 1) * 512..file.len().min(usize::from(n) * 512)];
    let mut s = Script::new(6000, 512, 4);
    s.oack(&[("windowsize", "4")]);
    s.expect_acks(&[0]);
    for n in [1, 3, 4] {
        s.data(n, block(n));
    }
    s.expect_acks(&[1]);
    for n in [2, 3, 4, 5] {
        s.data(n, block(n));
    }
    s.expect_acks(&[5]);
    // The server did not hear it.
    s.rig.advance(5);
    for n in [2, 3, 4, 5] {
        s.data(n, block(n));
    }
    s.rig.advance(5);
    s.expect_acks(&[5]);
    for n in [7, 6, 8, 9] {
        s.data(n, block(n));
    }
    s.expect_acks(&[9]);
    assert_eq!(s.rig.engine.ops.get(s.op).unwrap().progress.done, 9 * 512);
    // An old block never counts as a new one.
    s.data(2, block(3));
    assert_eq!(s.rig.engine.ops.get(s.op).unwrap().progress.done, 9 * 512);
    s.data(10, block(10));
    s.expect_acks(&[10]);
    assert_eq!(s.result(), Some(Ok(file.len() as u64)));
    assert!(s.memory.to_vec()[..file.len()] == file);
    // The nearest clean window.
    let mut s = Script::new(6000, 512, 4);
    s.oack(&[("windowsize", "4")]);
    s.expect_acks(&[0]);
    for n in 1..=8 {
        s.data(n, block(n));
    }
    s.expect_acks(&[4, 8]);
}

#[test]
fn case_t08_a_short_block_in_mid_window() {
    let file = sample(1124);
    let mut s = Script::new(4000, 512, 8);
    s.oack(&[("windowsize", "8")]);
    s.expect_acks(&[0]);
    s.data(1, &file[..512]);
    s.data(2, &file[512..1024]);
    s.expect_acks(&[]);
    let before = s.rig.now();
    s.data(3, &file[1024..]);
    s.expect_acks(&[3]);
    assert_eq!(s.rig.now(), before, "without a clock step");
    assert_eq!(s.result(), Some(Ok(1124)));
    assert!(s.memory.to_vec()[..1124] == file);
    s.rig.advance(5_000);
    s.expect_acks(&[]);
}

#[test]
fn case_t11_errors_without_nul_and_stunted_packets() {
    let stunted: [&[u8]; 5] = [b"", b"\x00", b"\x00\x05", b"\x00\x05\x00", b"\x00\x03\x00"];
    for started in [false, true] {
        let mut s = Script::new(4000, 512, 1);
        if started {
            s.data(1, &sample(512));
            s.expect_acks(&[1]);
        }
        for (n, packet) in stunted.iter().enumerate() {
            s.give(packet);
            assert_eq!(s.rig.count(Counter::DropTftpMalformed), n as u32 + 1);
        }
        s.expect_acks(&[]);
        assert_eq!(s.result(), None, "ignored");
        // Each valid error of its own transfer.
        let mut long = b"\x00\x05\x00\x01".to_vec();
        long.resize(1472, b'a');
        for (packet, text) in
            [(&b"\x00\x05\x00\x01"[..], &b""[..]), (b"\x00\x05\x00\x01abc", b"abc"), (&long, &[b'a'; 64])]
        {
            let mut s = Script::new(4000, 512, 1);
            if started {
                s.data(1, &sample(512));
                s.expect_acks(&[1]);
            }
            s.give(packet);
            assert_eq!(s.result(), Some(Err(Error::NotFound)));
            assert_eq!(s.detail(), (DetailKind::Tftp, 1, text.to_vec()));
            s.expect_acks(&[]);
        }
    }
}

#[test]
fn case_t11_an_error_of_65000_bytes() {
    use crate::wire::ethernet::EtherType;
    use crate::wire::ipv4::Protocol;
    let mut s = Script::new(4000, 512, 1);
    let mut error = b"\x00\x05\x00\x01".to_vec();
    error.resize(65_000, b'a');
    let datagram = packets::udp_datagram((SERVER.ip, TID), (s.rig.us.ip, s.port), &error);
    let mut at = 0;
    for piece in datagram.chunks(1480) {
        assert_eq!(s.result(), None);
        let packet = packets::ipv4_with(SERVER.ip, s.rig.us.ip, Protocol::UDP, piece, |ip| {
            ip.fragment_offset = at as u16;
            ip.more_fragments = at + piece.len() < datagram.len();
        });
        at += piece.len();
        s.rig.input(&packets::ethernet(s.rig.us.mac, SERVER.mac, EtherType::IPV4, &packet));
    }
    assert_eq!(s.result(), Some(Err(Error::NotFound)));
    assert_eq!(s.detail(), (DetailKind::Tftp, 1, vec![b'a'; 64]));
}

/// A port of the caller's choice is the client's in every attempt, so that only the server's end tells them apart.
#[test]
fn a_port_that_is_asked_for_serves_every_attempt() {
    let (old, new) = (sample(512 * 2), sample(700));
    let memory = SimMemory::new(4000);
    let at = |memory: &SimMemory| {
        let mut request = request(memory, 512, 1);
        request.tuning.local_port = 4711;
        request
    };
    let mut rig = Rig::new(7);
    rig.know(SERVER);
    let mut s = Script::with(rig, at(&memory), memory.clone());
    assert_eq!(s.port, 4711);
    // One socket has it: not another, and not for long.
    let second = s.rig.engine.start(Client::TftpGet(Get::new(at(&memory)).unwrap())).unwrap();
    s.rig.advance(1);
    assert_eq!(s.rig.engine.ops.get(second).unwrap().step, Step::Done(Err(Error::InUse)));
    s.rig.engine.close(second).unwrap();
    assert_eq!(s.rig.sent_udp(), []);
    // Asked again without options, from the same port: what the first attempt's end still sends is not of this one.
    s.oack(&[("windowsize", "3")]);
    let sent = s.rig.sent_udp();
    assert_eq!(sent[1].payload, b"\x00\x01file\x00octet\x00");
    assert_eq!(sent[1].src_port, 4711);
    s.data(1, &old[..512]);
    assert_eq!(s.rig.sent_udp(), [], "of the attempt before");
    s.from(3001, &data(1, &new[..512]));
    s.from(3001, &data(2, &new[512..]));
    assert_eq!(s.result(), Some(Ok(700)));
    assert!(s.memory.to_vec()[..700] == new);
    s.rig.sent_udp();
    s.rig.engine.close(s.op).unwrap();
    // A file of one block, whose acknowledgement was lost; then another file: its end repeats the block in vain.
    let one = |mut s: Script, tid: u16, text: &[u8]| {
        s.from(tid, &data(1, text));
        assert_eq!(s.result(), Some(Ok(text.len() as u64)));
        assert_eq!(s.memory.to_vec()[..text.len()], *text);
        s.rig.sent_udp();
        s.rig.engine.close(s.op).unwrap();
        s.rig
    };
    let rig = one(Script::with(s.rig, at(&memory), memory.clone()), 3002, b"first");
    let mut s = Script::with(rig, at(&memory), memory.clone());
    s.from(3002, &data(1, b"first"));
    assert_eq!((s.result(), s.rig.sent_udp()), (None, vec![]));
    assert_eq!(s.rig.count(Counter::DropDally), 1);
    let rig = one(s, 3003, b"second");
    // A server with one port for all: options tell the transfers apart at once, and time does.
    let mut s = Script::with(rig, at(&memory), memory.clone());
    s.from(3003, &oack(&[("tsize", "5")]));
    let rig = one(s, 3003, b"third");
    let mut s = Script::with(rig, at(&memory), memory.clone());
    s.rig.advance(2000);
    one(s, 3003, b"fourth");
}

#[test]
fn case_t13_stale_packets_of_the_previous_transfer() {
    let a = sample(512 * 8);
    let b = sample(1000);
    for early in [true, false] {
        let mut s = Script::new(8000, 512, 1);
        let old_port = s.port;
        for n in 1..=5u16 {
            s.data(n, &a[usize::from(n - 1) * 512..usize::from(n) * 512]);
        }
        s.expect_acks(&[1, 2, 3, 4, 5]);
        s.rig.engine.cancel(s.op, Error::Cancelled).unwrap();
        s.expect_error(0);
        assert_eq!(s.result(), Some(Err(Error::Cancelled)));
        let guard = s.memory.to_vec();
        let first = s.memory.clone();
        s.rig.engine.close(s.op).unwrap();
        let mut s = Script::on(s.rig, 4000, 512, 1);
        assert_ne!(s.port, old_port);
        let stale = data(1, &a[..512]);
        let to_b = s.port;
        let inject = |s: &mut Script| {
            for port in [old_port, to_b] {
                let frame = packets::udp(SERVER, TID, s.rig.us, port, &stale);
                s.rig.input(&frame);
            }
            s.port = to_b;
        };
        if early {
            inject(&mut s);
            assert_eq!(s.rig.sent_udp(), [], "no answer that could start anything");
        }
        let give = |s: &mut Script, payload: &[u8]| s.from(3001, payload);
        give(&mut s, &oack(&[("blksize", "512"), ("tsize", "1000")][1..]));
        if !early {
            inject(&mut s);
        }
        give(&mut s, &data(1, &b[..512]));
        give(&mut s, &data(2, &b[512..]));
        let to_peer: Vec<Vec<u8>> =
            s.rig.sent_udp().into_iter().filter(|d| d.dst_port == 3001).map(|d| d.payload).collect();
        assert_eq!(to_peer, [ack(0), ack(1), ack(2)]);
        assert_eq!(s.result(), Some(Ok(1000)));
        assert!(s.memory.to_vec()[..1000] == b);
        assert_eq!(first.to_vec(), guard, "nothing was written to the first destination after its end");
    }
    // 100 transfers: no port comes again soon.
    let mut rig = Rig::new(3);
    rig.know(SERVER);
    let mut ports = BTreeSet::new();
    for _ in 0..100 {
        let mut s = Script::on(rig, 4000, 512, 1);
        assert!(ports.insert(s.port));
        s.data(1, b"short");
        s.expect_acks(&[1]);
        assert_eq!(s.result(), Some(Ok(5)));
        s.rig.engine.close(s.op).unwrap();
        rig = s.rig;
    }
}

#[test]
fn a_stranger_is_told_and_disturbs_nothing() {
    let file = sample(600);
    let mut s = Script::new(4000, 512, 1);
    s.data(1, &file[..512]);
    s.expect_acks(&[1]);
    s.from(4444, &data(2, &[0; 88]));
    let sent = s.rig.sent_udp();
    assert_eq!((sent.len(), sent[0].dst_port), (1, 4444));
    assert_eq!(sent[0].payload[..4], [0, 5, 0, 5]);
    assert_eq!(s.rig.count(Counter::DropTftpTid), 1);
    // An error from a stranger is not answered, and ends nothing; nor does another host's.
    s.from(4444, &error(1, b"no"));
    let other = Station::new(2);
    let frame = packets::udp(other, TID, s.rig.us, s.port, &error(1, b"no"));
    s.rig.input(&frame);
    assert_eq!(s.rig.sent_udp(), []);
    s.data(2, &file[512..]);
    s.expect_acks(&[2]);
    assert_eq!(s.result(), Some(Ok(600)));
    assert!(s.memory.to_vec()[..600] == file);
}

#[test]
fn case_t17_a_file_larger_than_the_destination() {
    let file = sample(1024);
    let mut s = Script::new(1000 + 64, 512, 1);
    // 1000 bytes with guards behind.
    let whole = s.memory.clone();
    s.rig.engine.close(s.op).unwrap();
    use crate::storage::host::Memory;
    let mut s = {
        s.rig.sent();
        let memory = whole.slice(0, 1000).unwrap();
        let request = request(&memory, 512, 1);
        Script::with(s.rig, request, memory)
    };
    s.data(1, &file[..512]);
    s.expect_acks(&[1]);
    s.data(2, &file[512..]);
    s.expect_error(3);
    assert_eq!(s.result(), Some(Err(Error::TooBig)));
    assert!(whole.to_vec()[1000..].iter().all(|b| *b == 0xa5), "guard bytes");
    // One that just fits.
    let mut s = Script::new(1000, 512, 1);
    s.data(1, &file[..512]);
    s.data(2, &file[512..1000]);
    assert_eq!(s.result(), Some(Ok(1000)));
    assert!(s.memory.to_vec() == file[..1000]);
}

#[test]
fn case_t17_sizes_told_beforehand() {
    for (tsize, total, refused) in [
        ("3221225472", Some(3_221_225_472), true),
        ("4294967296", Some(1 << 32), true),
        ("4294967297", Some((1 << 32) + 1), true),
        ("1001", Some(1001), true),
        ("1000", Some(1000), false),
        ("18446744073709551616", None, false),
        ("abc", None, false),
        ("-1", None, false),
        ("", None, false),
    ] {
        let mut s = Script::new(1000, 512, 1);
        s.oack(&[("tsize", tsize)]);
        assert_eq!(s.rig.engine.ops.get(s.op).unwrap().progress.total, total, "{tsize}");
        if refused {
            s.expect_error(3);
            assert_eq!(s.result(), Some(Err(Error::TooBig)), "{tsize}");
            assert!(s.memory.to_vec().iter().all(|b| *b == 0xa5));
        } else {
            s.expect_acks(&[0]);
            s.data(1, b"abc");
            assert_eq!(s.result(), Some(Ok(3)), "{tsize}");
        }
    }
    // Where there is room, three gigabytes are begun.
    let mut rig = Rig::new(1);
    rig.know(SERVER);
    let memory = SimMemory::new(0);
    let request = Request { sink: Sink::Discard, ..request(&memory, 512, 1) };
    let mut s = Script::with(rig, request, memory);
    s.oack(&[("tsize", "3221225472")]);
    s.expect_acks(&[0]);
    assert_eq!(s.rig.engine.ops.get(s.op).unwrap().progress.total, Some(3_221_225_472));
}

#[test]
fn case_t18_an_error_in_mid_transfer_is_no_short_file() {
    let file = sample(1024);
    let mut s = Script::new(4000, 512, 1);
    s.data(1, &file[..512]);
    s.data(2, &file[512..]);
    s.expect_acks(&[1, 2]);
    s.give(&error(0, b"disk"));
    assert_eq!(s.result(), Some(Err(Error::Remote)), "not 1024 bytes");
    assert_eq!(s.detail(), (DetailKind::Tftp, 0, b"disk".to_vec()));
    s.expect_acks(&[]);
    // Right after our first acknowledgement.
    let mut s = Script::new(4000, 512, 1);
    s.oack(&[("tsize", "1024")]);
    s.expect_acks(&[0]);
    let before = s.rig.now();
    s.give(&error(1, b"gone"));
    assert_eq!(s.result(), Some(Err(Error::NotFound)));
    assert_eq!(s.rig.now(), before, "at once");
    // The same path again fails, then succeeds; sockets and operations all come back.
    s.rig.engine.close(s.op).unwrap();
    let mut s = Script::on(s.rig, 4000, 512, 1);
    s.give(&error(1, b"no such file"));
    assert_eq!(s.result(), Some(Err(Error::NotFound)));
    s.rig.engine.close(s.op).unwrap();
    assert!(s.rig.engine.close(s.op).is_err(), "only once");
    let mut s = Script::on(s.rig, 4000, 512, 1);
    s.data(1, b"here");
    assert_eq!(s.result(), Some(Ok(4)));
    assert!(!s.rig.engine.udp.is_bound(s.port), "the socket is free");
    s.rig.engine.close(s.op).unwrap();
    assert_eq!(s.rig.engine.ops.iter().count(), 0);
}

#[test]
fn case_i03_port_unreachable_from_the_server() {
    // The quote: IPv4 header, ports, as `tweak` leaves it, cut to `len`.
    let unreachable = |s: &Script, quoted_port: u16, len: usize, ihl: u8| {
        let us = s.rig.us;
        let datagram = packets::udp_datagram((us.ip, quoted_port), (SERVER.ip, 69), b"request");
        let protocol = crate::wire::ipv4::Protocol::UDP;
        let mut quote = packets::ipv4_with(us.ip, SERVER.ip, protocol, &datagram, |_| ());
        quote[0] = 0x40 | ihl;
        quote.truncate(len);
        let head = Message::Unreachable { code: Unreachable::PORT, next_hop_mtu: 0, quoted: &quote }.emit_head([0; 2]);
        let mut message = head.to_vec();
        message.extend_from_slice(&quote);
        packets::icmp(SERVER, us, &message)
    };
    let mut s = Script::new(4000, 512, 1);
    for (port, len, ihl) in [(s.port.wrapping_add(1), 28, 5), (s.port, 27, 5), (s.port, 28, 15)] {
        let frame = unreachable(&s, port, len, ihl);
        s.rig.input(&frame);
        assert_eq!(s.result(), None, "ignored");
    }
    let start = s.rig.now();
    let frame = unreachable(&s, s.port, 28, 5);
    s.rig.input(&frame);
    assert_eq!(s.result(), Some(Err(Error::Refused)));
    assert!(s.rig.now().since(start) < Duration::from_secs(1));
    assert_eq!(s.detail().0, DetailKind::Icmp);
    assert_eq!(s.detail().1, 0x303);
}

#[test]
fn case_k01_the_same_trace_wherever_the_clock_starts() {
    let trace = |start_us: u64| {
        let mut rig = Rig::new(5);
        rig.engine.set_now(crate::storage::time::Instant::from_micros(start_us));
        rig.know(SERVER);
        let base = rig.now();
        let mut s = Script::on(rig, 4000, 512, 1);
        let mut seen = Vec::new();
        s.data(1, &sample(512));
        for _ in 0..200_000 {
            for d in s.rig.sent_udp() {
                seen.push((s.rig.now().since(base).as_micros(), d.payload));
            }
            if s.result().is_some() {
                break;
            }
            s.rig.advance(1);
        }
        assert_eq!(s.result(), Some(Err(Error::Timeout)));
        seen
    };
    let first = trace(1_000_000);
    assert!(first.len() > 8, "acknowledgements were repeated: {}", first.len());
    for start in [0xffff_ff00, 0xffff_ff00 * 1000] {
        assert_eq!(trace(start), first);
    }
    // A clock that stands still or steps back makes no storm.
    let mut s = Script::new(4000, 512, 1);
    s.data(1, &sample(512));
    s.expect_acks(&[1]);
    let now = s.rig.now();
    for _ in 0..100 {
        s.rig.engine.set_now(now - Duration::from_millis(5));
        s.rig.engine.tick();
    }
    s.expect_acks(&[]);
}

#[test]
fn the_request_is_repeated_with_backoff_until_the_budget_is_spent() {
    let mut s = Script::new(4000, 0, 0);
    let start = s.rig.now();
    let mut at = Vec::new();
    while s.result().is_none() {
        s.rig.advance(100);
        for d in s.rig.sent_udp() {
            assert_eq!((d.dst_port, d.src_port), (69, s.port), "the same port each time");
            at.push(s.rig.now().since(start).as_millis());
        }
        assert!(s.rig.now().since(start) < Duration::from_secs(60));
    }
    assert_eq!(s.result(), Some(Err(Error::Timeout)));
    assert_eq!(at, [500, 1500, 3500, 7500, 11500, 15500, 19500, 23500]);
}

#[test]
fn a_late_last_block_is_acknowledged_after_the_end() {
    let mut s = Script::new(4000, 512, 1);
    s.data(1, b"all of it");
    s.expect_acks(&[1]);
    assert_eq!(s.result(), Some(Ok(9)));
    s.rig.engine.close(s.op).unwrap();
    s.rig.advance(3000);
    s.data(1, b"all of it");
    s.expect_acks(&[1]);
    // Nobody else is answered so, nor another block.
    s.data(2, b"x");
    assert_eq!(s.rig.sent().len(), 0);
    assert_eq!(s.rig.count(Counter::DropDally), 1);
    s.from(TID + 1, &data(1, b"all of it"));
    assert_eq!(s.rig.count(Counter::DropUdpNoSocket), 1);
    // Not for ever.
    s.rig.advance(31_000);
    s.rig.sent();
    s.data(1, b"all of it");
    assert_eq!(s.rig.count(Counter::DropUdpNoSocket), 2);
}

#[test]
fn an_acknowledgement_the_nic_refuses_is_sent_as_soon_as_it_can() {
    use crate::storage::host::SendError;
    let file = sample(600);
    let mut s = Script::new(4000, 512, 1);
    s.rig.engine.tick();
    s.rig.wire.borrow_mut().script.push_back(Some(SendError::Busy));
    s.data(1, &file[..512]);
    s.expect_acks(&[]);
    s.rig.engine.stack.wake = true;
    s.rig.engine.tick();
    s.expect_acks(&[1]);
    s.rig.wire.borrow_mut().script.push_back(Some(SendError::Busy));
    s.data(2, &file[512..]);
    s.expect_acks(&[]);
    assert_eq!(s.result(), None, "not done before the last acknowledgement is out");
    s.rig.advance(200);
    s.expect_acks(&[2]);
    assert_eq!(s.result(), Some(Ok(600)));
}

#[test]
fn a_corrupt_block_is_not_confirmed() {
    let file = sample(600);
    let mut s = Script::new(4000, 512, 1);
    s.data(1, &file[..512]);
    s.expect_acks(&[1]);
    let mut frame = packets::udp(SERVER, TID, s.rig.us, s.port, &data(2, &file[512..]));
    frame[60] ^= 1;
    s.rig.input(&frame);
    s.expect_acks(&[]);
    assert_eq!(s.rig.count(Counter::DropUdpChecksum), 1);
    s.data(2, &file[512..]);
    s.expect_acks(&[2]);
    assert!(s.memory.to_vec()[..600] == file);
}

#[test]
fn servers_and_numbers_that_cannot_be() {
    let memory = SimMemory::new(10);
    let bad = |tweak: &dyn Fn(&mut Request<SimHost>)| {
        let mut r = request(&memory, 0, 0);
        tweak(&mut r);
        Get::new(r).err()
    };
    assert_eq!(bad(&|_| ()), None);
    assert_eq!(bad(&|r| r.path = Vec::new()), Some(Error::Invalid));
    assert_eq!(bad(&|r| r.server.addr = core::net::Ipv4Addr::UNSPECIFIED), Some(Error::Invalid));
    assert_eq!(bad(&|r| r.tuning.blksize = 7), Some(Error::Invalid));
    assert_eq!(bad(&|r| r.tuning.blksize = 8), None);
    assert_eq!(bad(&|r| r.tuning.blksize = 65_465), Some(Error::Invalid));
    assert_eq!(bad(&|r| r.tuning.timeout = Duration::from_secs(256)), Some(Error::Invalid));
    // What does not fit a request ends before anything is sent.
    for (path, expect) in [(vec![b'x'; 600], Error::NameTooLong), (b"a\0b".to_vec(), Error::Invalid)] {
        let mut rig = Rig::new(1);
        rig.know(SERVER);
        let get = Get::new(Request { path, ..request(&memory, 0, 0) }).unwrap();
        let op = rig.engine.start(Client::TftpGet(get)).unwrap();
        assert_eq!(rig.engine.ops.get(op).unwrap().step, Step::Done(Err(expect)));
        assert!(rig.sent().is_empty());
    }
}

/// A script whose sink is a writer.
fn writing(blksize: u16, windowsize: u16, writer: &SimWriter) -> Script {
    let mut rig = Rig::new(7);
    rig.know(SERVER);
    let memory = SimMemory::new(0);
    let request = Request { sink: Sink::Writer(writer.clone()), ..request(&memory, blksize, windowsize) };
    Script::with(rig, request, memory)
}

fn in_netascii(sink: Sink<SimMemory, SimWriter>, blksize: u16) -> Script {
    let mut rig = Rig::new(7);
    rig.know(SERVER);
    let memory = SimMemory::new(0);
    let request = Request { sink, mode: Mode::Netascii, ..request(&memory, blksize, 4) };
    Script::with(rig, request, memory)
}

#[test]
fn case_t16_netascii_across_blocks() {
    let blocks: [&[u8]; 3] = [b"abcdefg\r", b"\nuvwxyz\r", b"\0"];
    let text = b"abcdefg\nuvwxyz\r";
    let memory = SimMemory::new(text.len());
    let mut s = in_netascii(Sink::Memory(memory.clone()), 8);
    s.oack(&[("blksize", "8")]);
    for (n, block) in (1..).zip(blocks) {
        s.data(n, block);
    }
    s.expect_acks(&[0, 1, 2, 3]);
    assert_eq!(s.result(), Some(Ok(text.len() as u64)));
    assert_eq!(memory.to_vec(), text);
    // Through a writer that takes one byte at a time, blocks arriving twice, and a CR at the very end.
    let writer = SimWriter::default();
    writer.0.borrow_mut().appetite = (0..100).map(|n| n % 2).collect();
    let mut s = in_netascii(Sink::Writer(writer.clone()), 8);
    s.oack(&[("blksize", "8")]);
    for (n, block) in (1..).zip([blocks[0], blocks[1], b"\0\r\r\n\r"]) {
        for _ in 0..2 {
            s.data(n, block);
            s.rig.advance(40);
        }
    }
    assert_eq!(s.result(), Some(Ok(text.len() as u64 + 3)));
    assert_eq!(writer.0.borrow().taken, b"abcdefg\nuvwxyz\r\r\n\r");
    // One byte too many.
    let memory = SimMemory::new(text.len() - 1);
    let mut s = in_netascii(Sink::Memory(memory), 8);
    s.oack(&[("blksize", "8"), ("tsize", "1000")]);
    assert_eq!(s.result(), None, "the size of the file at the server says nothing of lines");
    for (n, block) in (1..).zip(blocks) {
        s.data(n, block);
    }
    assert_eq!(s.result(), Some(Err(Error::TooBig)));
    // Octets are not touched.
    let mut s = Script::new(17, 8, 4);
    s.oack(&[("blksize", "8")]);
    for (n, block) in (1..).zip(blocks) {
        s.data(n, block);
    }
    assert_eq!(s.result(), Some(Ok(17)));
    assert_eq!(s.memory.to_vec(), blocks.concat());
    // The mode's name on the wire.
    let mut rig = Rig::new(1);
    rig.know(SERVER);
    let memory = SimMemory::new(0);
    let get = Get::new(Request { mode: Mode::Netascii, ..request(&memory, 0, 0) }).unwrap();
    rig.engine.start(Client::TftpGet(get)).unwrap();
    assert!(rig.sent_udp()[0].payload.starts_with(b"\x00\x01file\x00netascii\x00"));
    use crate::wire::tftp::Packet;
    for name in ["octet", "OcTeT", "NETASCII"] {
        let packet = [&b"\x00\x01file\x00"[..], name.as_bytes(), b"\x00"].concat();
        let Ok(Packet::Request { mode, .. }) = Packet::parse(&packet) else { panic!("{name}") };
        assert_eq!(mode == Mode::Octet, name != "NETASCII");
    }
}

#[test]
fn a_sink_that_takes_one_byte_at_a_time() {
    let file = sample(1100);
    let writer = SimWriter::default();
    writer.0.borrow_mut().appetite = (0..300).map(|_| 1).collect();
    let mut s = writing(512, 1, &writer);
    s.oack(&[("tsize", "1100")]);
    s.expect_acks(&[0]);
    s.data(1, &file[..512]);
    s.expect_acks(&[]);
    assert!(writer.0.borrow().taken.len() < 512);
    s.rig.advance(10);
    s.expect_acks(&[1]);
    assert_eq!(writer.0.borrow().taken.len(), 512);
    s.data(2, &file[512..1024]);
    s.data(3, &file[1024..]);
    s.expect_acks(&[2, 3]);
    assert_eq!(s.result(), Some(Ok(1100)));
    assert!(writer.0.borrow().taken == file);
}

#[test]
fn a_sink_that_takes_nothing_for_a_minute() {
    let file = sample(3000);
    let writer = SimWriter::default();
    writer.0.borrow_mut().appetite = (0..60_000).map(|_| 0).collect();
    let mut s = writing(512, 4, &writer);
    s.oack(&[("windowsize", "4"), ("timeout", "1")]);
    s.expect_acks(&[0]);
    for n in 1..=4u16 {
        s.data(n, &file[usize::from(n - 1) * 512..usize::from(n) * 512]);
    }
    s.expect_acks(&[]);
    for _ in 0..20 {
        // The last block taken is acknowledged again at half the timeout: here none was.
        s.rig.advance(500);
        s.expect_acks(&[0]);
        s.data(1, &file[..512]);
        s.expect_acks(&[]);
    }
    assert_eq!(s.result(), None);
    writer.0.borrow_mut().appetite.clear();
    s.rig.advance(2);
    s.expect_acks(&[1]);
    for n in 2..=5u16 {
        s.data(n, &file[usize::from(n - 1) * 512..usize::from(n) * 512]);
    }
    s.expect_acks(&[5]);
    s.data(6, &file[2560..]);
    s.expect_acks(&[6]);
    assert_eq!(s.result(), Some(Ok(3000)));
    assert!(writer.0.borrow().taken == file);
}

#[test]
fn a_sink_that_never_takes_anything_again() {
    for stall in [3, 90] {
        let mut rig = Rig::new(7);
        rig.know(SERVER);
        let writer = SimWriter::default();
        writer.0.borrow_mut().appetite = (0..1_000_000).map(|_| 0).collect();
        let memory = SimMemory::new(0);
        let sink = Sink::Writer(writer.clone());
        let r = Request { sink, sink_stall: Duration::from_secs(stall), ..request(&memory, 512, 1) };
        let mut s = Script::with(rig, r, memory);
        s.data(1, &sample(512));
        let start = s.rig.now();
        while s.result().is_none() {
            s.rig.know(SERVER);
            s.rig.advance(250);
            assert!(s.rig.now().since(start) < Duration::from_secs(stall + 2));
        }
        assert_eq!(s.result(), Some(Err(Error::SinkStalled)));
        assert!(s.rig.now().since(start) >= Duration::from_secs(stall));
        let told = s.sent().pop().unwrap();
        assert_eq!(told[..4], [0, 5, 0, 3], "the server is told");
    }
}

#[test]
fn a_sink_that_fails_in_the_middle() {
    let file = sample(1100);
    let writer = SimWriter::default();
    writer.0.borrow_mut().fail_at = Some((512, -5));
    let mut s = writing(512, 1, &writer);
    s.data(1, &file[..512]);
    s.expect_acks(&[1]);
    s.data(2, &file[512..1024]);
    s.expect_error(3);
    assert_eq!(s.result(), Some(Err(Error::Host(crate::storage::host::HostError(-5)))));
    assert!(writer.0.borrow().taken == file[..512]);
    let calls = writer.0.borrow().calls;
    s.rig.advance(5000);
    s.data(2, &file[512..1024]);
    assert_eq!(writer.0.borrow().calls, calls, "not called again");
}

#[test]
fn case_p08_a_first_fragment_is_no_block() {
    use crate::wire::ethernet::EtherType;
    use crate::wire::ipv4::Protocol;
    let file = sample(4096 + 3);
    let mut s = Script::new(5000, 4096, 1);
    assert_eq!(s.options[&b"blksize"[..]], b"4096");
    s.oack(&[("blksize", "4096")]);
    s.expect_acks(&[0]);
    let datagram = packets::udp_datagram((SERVER.ip, TID), (s.rig.us.ip, s.port), &data(1, &file[..4096]));
    assert_eq!(datagram.len(), 8 + 4 + 4096);
    let fragment = |at: usize, id: u16| {
        let piece = &datagram[at..datagram.len().min(at + 1480)];
        let packet = packets::ipv4_with(SERVER.ip, s.rig.us.ip, Protocol::UDP, piece, |ip| {
            ip.identification = id;
            ip.fragment_offset = at as u16;
            ip.more_fragments = at + piece.len() < datagram.len();
        });
        packets::ethernet(s.rig.us.mac, SERVER.mac, EtherType::IPV4, &packet)
    };
    let pieces: Vec<Vec<Vec<u8>>> = [7, 8].map(|id| [0, 2960, 1480].map(|at| fragment(at, id)).to_vec()).to_vec();
    s.rig.input(&pieces[0][0]);
    s.expect_acks(&[]);
    assert_eq!(s.result(), None, "a first fragment is not short data");
    for piece in &pieces[1] {
        s.rig.input(piece);
    }
    s.expect_acks(&[1]);
    s.data(2, &file[4096..]);
    s.expect_acks(&[2]);
    assert_eq!(s.result(), Some(Ok(4099)));
    assert!(s.memory.to_vec()[..4099] == file);
    // Without reassembly nothing larger than a frame is asked for.
    let limits = crate::sim::rig::Limits { landing: 0, staging: 0, ..Default::default() };
    let mut rig = Rig::bare(1, limits, crate::storage::host::NicCaps::empty(), true);
    let us = crate::stack::interface::Cidr { addr: rig.us.ip, prefix: 24 };
    rig.engine.stack.interface_mut(rig.nic).unwrap().add_address(us);
    rig.know(SERVER);
    let s = Script::on(rig, 5000, 4096, 1);
    assert_eq!(s.options[&b"blksize"[..]], b"1468");
}

#[test]
fn the_servers_name_is_looked_up_first() {
    use crate::wire::dns::{Data, Kind, Message as DnsMessage, Rcode, ReplyBuilder};
    let names = Station::new(53);
    let with_name = |name: &str| {
        let memory = SimMemory::new(2000);
        let server = Server { name: Some(name.as_bytes().to_vec()), addr: core::net::Ipv4Addr::UNSPECIFIED, port: 0 };
        let mut rig = Rig::new(7);
        rig.know(SERVER);
        rig.know(names);
        rig.engine.shared.resolver.set_servers(&[names.ip]);
        let request = Request { server, ..request(&memory, 0, 0) };
        let op = rig.engine.start(Client::TftpGet(Get::new(request).unwrap())).unwrap();
        (rig, op)
    };
    let (mut rig, op) = with_name("tftp.lan");
    let query = rig.sent_udp().remove(0);
    assert_eq!((query.dst, query.dst_port), (names.ip, 53));
    let asked = DnsMessage::parse(&query.payload).unwrap();
    let question = asked.question().unwrap();
    let mut buf = [0; 512];
    let mut reply = ReplyBuilder::new(&mut buf, asked.id(), Rcode::NO_ERROR, false, &question).unwrap();
    reply.answer(&question.name, Kind::A, 60, &Data::A(SERVER.ip)).unwrap();
    let us = rig.us;
    rig.input(&packets::udp(names, 53, us, query.src_port, reply.finish()));
    let request = rig.sent_udp().remove(0);
    assert_eq!((request.dst, request.dst_port), (SERVER.ip, 69));
    assert!(matches!(rig.engine.ops.get(op).unwrap().step, Step::Pending(_)));
    // A dotted address is not asked for; a name server that is not there, or no name at all, ends the transfer.
    let (mut rig, _) = with_name("10.0.0.1");
    assert_eq!(rig.sent_udp().remove(0).dst, SERVER.ip);
    let (mut rig, op) = with_name("tftp.lan");
    let query = rig.sent_udp().remove(0);
    let datagram = packets::udp_datagram((rig.us.ip, query.src_port), (names.ip, 53), &query.payload);
    let quoted = packets::ipv4_with(rig.us.ip, names.ip, crate::wire::ipv4::Protocol::UDP, &datagram, |_| ());
    let mut error =
        Message::Unreachable { code: Unreachable::PORT, next_hop_mtu: 0, quoted: &[] }.emit_head([0; 2]).to_vec();
    error.extend_from_slice(&quoted[..28]);
    let us = rig.us;
    rig.input(&packets::icmp(names, us, &error));
    assert_eq!(rig.engine.ops.get(op).unwrap().step, Step::Done(Err(Error::Refused)));
    let (rig, op) = with_name("");
    assert_eq!(rig.engine.ops.get(op).unwrap().step, Step::Done(Err(Error::Invalid)));
    let (rig, op) = with_name("0.0.0.0");
    assert_eq!(rig.engine.ops.get(op).unwrap().step, Step::Done(Err(Error::Invalid)));
}

#[test]
fn case_e04_a_lost_tail_is_acknowledged_and_two_in_a_row_ask_for_less() {
    let file = sample(512 * 64);
    let mut s = Script::new(file.len(), 512, 16);
    s.oack(&[("windowsize", "16"), ("tsize", "32768")]);
    s.expect_acks(&[0]);
    for n in 1..=4u16 {
        s.data(n, &file[usize::from(n - 1) * 512..usize::from(n) * 512]);
    }
    s.expect_acks(&[]);
    s.rig.advance(9);
    s.expect_acks(&[]);
    s.rig.advance(2);
    s.expect_acks(&[4]);
    for n in 5..=8u16 {
        s.data(n, &file[usize::from(n - 1) * 512..usize::from(n) * 512]);
    }
    let port = s.port;
    s.rig.advance(11);
    let sent = s.rig.sent_udp();
    assert_eq!((sent[0].dst_port, &sent[0].payload[..4]), (TID, &[0, 5, 0, 0][..]), "the server is told");
    assert_eq!(sent[1].dst_port, 69);
    assert_ne!(sent[1].src_port, port);
    assert!(sent[1].payload.windows(13).any(|w| w == b"windowsize\x004\x00"), "what arrived at once");
    // One tail, then whole windows: nothing is asked again.
    let mut s = Script::new(file.len(), 512, 16);
    s.oack(&[("windowsize", "16"), ("tsize", "32768")]);
    s.expect_acks(&[0]);
    for n in 1..=4u16 {
        s.data(n, &file[usize::from(n - 1) * 512..usize::from(n) * 512]);
    }
    s.rig.advance(11);
    s.expect_acks(&[4]);
    for n in 5..=52u16 {
        s.data(n, &file[usize::from(n - 1) * 512..usize::from(n) * 512]);
    }
    s.expect_acks(&[20, 36, 52]);
}

#[test]
fn a_gap_of_two_blocks_is_asked_for_at_once() {
    let file = sample(512 * 40);
    let mut s = Script::new(file.len(), 512, 8);
    s.oack(&[("windowsize", "8"), ("tsize", "20480")]);
    s.expect_acks(&[0]);
    for n in [1, 2, 5, 6, 7, 8u16] {
        s.data(n, &file[usize::from(n - 1) * 512..usize::from(n) * 512]);
    }
    s.expect_acks(&[2]);
    for n in 3..=10u16 {
        s.data(n, &file[usize::from(n - 1) * 512..usize::from(n) * 512]);
    }
    s.expect_acks(&[10]);
}

/// qemu's server: it answers every acknowledgement with the next block, whichever number it bears, and sends none again.
#[test]
fn a_server_that_answers_each_repetition_with_a_block() {
    use crate::storage::host::SendError;
    let file = sample(512 * 9 + 300);
    let block = |n: u16| &file[usize::from(n - 1) * 512..(usize::from(n) * 512).min(file.len())];
    for fragments in [false, true] {
        let mut s = Script::new(8000, 512, 1);
        let mut id = 0;
        let mut give = |s: &mut Script, n: u16| match fragments {
            false => s.data(n, block(n)),
            true => {
                let datagram = packets::udp_datagram((SERVER.ip, TID), (s.rig.us.ip, s.port), &data(n, block(n)));
                id += 1;
                for (at, more) in [(0, true), (256, false)] {
                    fragment(s, id, &datagram, at, more);
                }
            }
        };
        give(&mut s, 1);
        s.expect_acks(&[1]);
        s.rig.advance(2000);
        let again = s.sent().len();
        assert!(again > 1, "nothing came");
        // Each was answered. The NIC has no room for three acknowledgements in a row.
        give(&mut s, 2);
        s.rig.wire.borrow_mut().script = [Some(SendError::Busy); 20].into();
        for n in 3..=5 {
            give(&mut s, n);
        }
        s.rig.wire.borrow_mut().script.clear();
        give(&mut s, 6);
        s.expect_acks(if fragments { &[2, 5, 6] } else { &[2, 6] });
        // What is not the next one is beyond the window.
        give(&mut s, 8);
        s.expect_acks(&[]);
        assert_eq!(s.rig.count(Counter::DropTftpBlock), 1);
        for n in 7..=10 {
            give(&mut s, n);
            s.expect_acks(&[n]);
        }
        assert_eq!(s.result(), Some(Ok(file.len() as u64)));
        assert!(s.memory.to_vec()[..file.len()] == file);
    }
}

/// One of the two fragments of a block of 512 bytes.
fn fragment(s: &mut Script, id: u16, datagram: &[u8], at: usize, more: bool) {
    use crate::wire::ethernet::EtherType;
    use crate::wire::ipv4::Protocol;
    let end = if more { 256 } else { datagram.len() };
    let packet = packets::ipv4_with(SERVER.ip, s.rig.us.ip, Protocol::UDP, &datagram[at.min(end)..end], |ip| {
        ip.identification = id;
        ip.fragment_offset = at as u16;
        ip.more_fragments = more;
    });
    s.rig.input(&packets::ethernet(s.rig.us.mac, SERVER.mac, EtherType::IPV4, &packet));
}

/// The first fragment of a block comes while the block is beyond the window, the rest when it is the next one.
#[test]
fn a_block_that_began_to_come_too_early() {
    let file = sample(1500);
    let mut s = Script::new(8000, 512, 1);
    let early = packets::udp_datagram((SERVER.ip, TID), (s.rig.us.ip, s.port), &data(2, &file[512..1024]));
    fragment(&mut s, 2, &early, 0, true);
    s.data(1, &file[..512]);
    s.expect_acks(&[1]);
    fragment(&mut s, 2, &early, 256, false);
    s.expect_acks(&[2]);
    s.data(3, &file[1024..]);
    s.expect_acks(&[3]);
    assert_eq!(s.result(), Some(Ok(1500)));
    assert!(s.memory.to_vec()[..1500] == file);
}

/// A server that has one port for everything is heard at once after a transfer that was given up.
#[test]
fn a_server_with_one_port_is_asked_again_after_a_transfer_given_up() {
    let file = sample(700);
    let mut s = Script::new(4000, 512, 1);
    s.from(69, &data(1, &[0; 512]));
    s.rig.sent_udp();
    s.rig.engine.cancel(s.op, Error::Cancelled).unwrap();
    assert_eq!(s.result(), Some(Err(Error::Cancelled)));
    s.rig.engine.close(s.op).unwrap();
    s.rig.sent_udp();
    let mut s = Script::on(s.rig, 4000, 512, 1);
    s.from(69, &oack(&[("tsize", "700")]));
    s.from(69, &data(1, &file[..512]));
    s.from(69, &data(2, &file[512..]));
    let sent: Vec<_> = s.rig.sent_udp().into_iter().map(|d| (d.dst_port, d.payload)).collect();
    assert_eq!(sent, [(69, ack(0)), (69, ack(1)), (69, ack(2))]);
    assert_eq!(s.result(), Some(Ok(700)));
    assert!(s.memory.to_vec()[..700] == file);
}
