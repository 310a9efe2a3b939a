//! Frames as the peer sends them, and the few header bytes that peer and floor need. Built once, outside the timing.

use bootlace::storage::checksum::Sum;

/// Hardware address of the stack under test.
pub const OUR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Address of the stack under test, in a network of 24 bits.
pub const OUR_IP: [u8; 4] = [10, 0, 0, 2];
/// Hardware address of the peer.
pub const PEER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Address of the peer.
pub const PEER_IP: [u8; 4] = [10, 0, 0, 1];
/// UDP port of the stack under test.
pub const OUR_PORT: u16 = 2000;
/// UDP and TCP port of the peer.
pub const PEER_PORT: u16 = 4000;

/// Length of an Ethernet header.
pub const ETHERNET: usize = 14;
/// Length of an IPv4 header without options.
pub const IPV4: usize = 20;
/// Length of a UDP header.
pub const UDP: usize = 8;
/// Length of a TCP header without options.
pub const TCP: usize = 20;
/// IPv4 payload of a full fragment at an MTU of 1500.
pub const FRAGMENT: usize = 1480;

/// `len` bytes that differ with `seed` and do not repeat soon.
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

/// Ethernet and IPv4 headers in front of `body`; `fragment` is the flags and offset field.
pub fn ipv4(protocol: u8, ident: u16, fragment: u16, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(ETHERNET + IPV4 + body.len());
    frame.extend(OUR_MAC);
    frame.extend(PEER_MAC);
    frame.extend([8, 0]);
    let mut header = [0u8; IPV4];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&((IPV4 + body.len()) as u16).to_be_bytes());
    header[4..6].copy_from_slice(&ident.to_be_bytes());
    header[6..8].copy_from_slice(&fragment.to_be_bytes());
    header[8] = 64;
    header[9] = protocol;
    header[12..16].copy_from_slice(&PEER_IP);
    header[16..20].copy_from_slice(&OUR_IP);
    let sum = Sum::of_header(&header).to_field();
    header[10..12].copy_from_slice(&sum);
    frame.extend(header);
    frame.extend(body);
    frame
}

/// The sum of the pseudo header for `len` bytes of `protocol` between the two hosts, either way.
pub fn pseudo(protocol: u8, len: usize) -> Sum {
    Sum::of_array(&OUR_IP) + Sum::of_array(&PEER_IP) + Sum::of_u16(u16::from(protocol)) + Sum::of_u16(len as u16)
}

/// A UDP datagram, from the peer's port to ours.
pub fn udp(payload: &[u8]) -> Vec<u8> {
    let len = UDP + payload.len();
    let mut datagram = Vec::with_capacity(len);
    datagram.extend(PEER_PORT.to_be_bytes());
    datagram.extend(OUR_PORT.to_be_bytes());
    datagram.extend((len as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    let field = (Sum::of(&datagram) + pseudo(17, len)).to_field();
    datagram[6..8].copy_from_slice(if field == [0, 0] { &[0xff, 0xff] } else { &field });
    datagram
}

/// An ICMP echo request.
pub fn echo_request(sequence: u16, payload: &[u8]) -> Vec<u8> {
    let mut message = vec![8, 0, 0, 0, 0x12, 0x34];
    message.extend(sequence.to_be_bytes());
    message.extend(payload);
    let field = Sum::of(&message).to_field();
    message[2..4].copy_from_slice(&field);
    message
}

/// The frames of one datagram, cut into full fragments.
pub fn fragments(protocol: u8, ident: u16, datagram: &[u8]) -> Vec<Vec<u8>> {
    let pieces = datagram.len().div_ceil(FRAGMENT);
    datagram
        .chunks(FRAGMENT)
        .enumerate()
        .map(|(i, piece)| {
            let more = if i + 1 < pieces { 0x2000 } else { 0 };
            ipv4(protocol, ident, more | (i * FRAGMENT / 8) as u16, piece)
        })
        .collect()
}

/// An ARP request (1) or reply (2) that says where the peer is.
pub fn arp(operation: u8) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(OUR_MAC);
    frame.extend(PEER_MAC);
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, operation]);
    frame.extend(PEER_MAC);
    frame.extend(PEER_IP);
    frame.extend(OUR_MAC);
    frame.extend(OUR_IP);
    frame.resize(60, 0);
    frame
}

/// The 16-bit big-endian word at `at`; zero where there is none.
pub fn word(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]))
}

/// The 32-bit big-endian word at `at`; zero where there is none.
pub fn long(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}
