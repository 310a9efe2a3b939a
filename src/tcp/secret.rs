//! What an attacker must not guess: initial sequence numbers (RFC 9293 §3.4.1), timestamps, and which connections share a
//! chain of the table; made from a secret drawn at start. One seed gives one run. Local ports are for `stack::ports`.

use crate::storage::host::{Endpoint, Host};
use crate::storage::time::Instant;
use crate::wire::tcp::SeqNumber;

/// The secret.
#[derive(Clone, Debug)]
pub struct Secret {
    key: [u64; 2],
}

impl Secret {
    /// A secret from the host's randomness.
    pub fn new<H: Host>(host: &mut H) -> Secret {
        let mut word = || u64::from(host.random()) << 32 | u64::from(host.random());
        Secret { key: [word(), word()] }
    }

    /// The initial sequence number of a connection (RFC 6528): a clock that ticks every 4 µs plus a keyed hash of the
    /// addresses, so that numbers of one pair rise and tell nothing of those of another.
    pub fn initial(&self, now: Instant, local: Endpoint, remote: Endpoint) -> SeqNumber {
        let ports = u64::from(local.port) << 16 | u64::from(remote.port);
        let addrs = u64::from(local.addr.to_bits()) << 32 | u64::from(remote.addr.to_bits());
        let hash = self.hash([addrs, ports]);
        SeqNumber((hash as u32).wrapping_add((now.as_micros() >> 2) as u32))
    }

    /// What a connection adds to its timestamps, so that they do not tell how long the machine has been up.
    pub fn timestamp_offset(&self, local: Endpoint, remote: Endpoint) -> u32 {
        let addrs = u64::from(local.addr.to_bits()) << 32 | u64::from(remote.addr.to_bits());
        (self.hash([addrs, 1 << 40]) >> 32) as u32
    }

    /// At which of so many `places` a connection's chain begins, and a mark that tells it from most others of the chain.
    #[inline]
    pub fn place(&self, remote_addr: u32, remote_port: u16, local_port: u16, places: usize) -> (usize, u16) {
        let [a, b] = self.key;
        let ports = u64::from(local_port) << 16 | u64::from(remote_port);
        let mixed = (u64::from(remote_addr) ^ a).wrapping_mul(ports.wrapping_add(b) | 1);
        let fold = (mixed >> 32) ^ mixed;
        // A multiplication instead of a division maps 32 bits onto the places.
        (((fold & 0xffff_ffff).wrapping_mul(places as u64) >> 32) as usize, fold as u16)
    }

    /// SipHash-2-4 of two words.
    fn hash(&self, words: [u64; 2]) -> u64 {
        let [k0, k1] = self.key;
        let mut v = [
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        for word in [words[0], words[1], 16 << 56] {
            v[3] ^= word;
            rounds(&mut v, 2);
            v[0] ^= word;
        }
        v[2] ^= 0xff;
        rounds(&mut v, 4);
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }
}

fn rounds(v: &mut [u64; 4], count: usize) {
    let [mut a, mut b, mut c, mut d] = *v;
    for _ in 0..count {
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32).wrapping_add(d);
        c = c.wrapping_add(b);
        d = d.rotate_left(21) ^ a;
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
    }
    *v = [a, b, c, d];
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn the_hash_is_siphash_2_4() {
        // The vector of the SipHash paper for 16 bytes 00..0f under key 00..0f is that of length 16.
        let secret = Secret { key: [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908] };
        assert_eq!(secret.hash([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]), 0x3f2a_cc7f_57c2_9bdb_u64);
    }

    #[test]
    fn numbers_rise_with_time_and_differ_between_pairs() {
        let secret = Secret { key: [3, 4] };
        let end = |last, port| Endpoint { addr: Ipv4Addr::new(10, 0, 0, last), port };
        let first = secret.initial(Instant::ZERO, end(1, 50_000), end(2, 80));
        let later = secret.initial(Instant::from_micros(4_000_000), end(1, 50_000), end(2, 80));
        assert_eq!(later.since(first), 1_000_000);
        assert_ne!(secret.initial(Instant::ZERO, end(1, 50_001), end(2, 80)), first);
        assert!((0..1000).all(|p| secret.place(0x0a00_0001, p, 80, 7).0 < 7));
    }
}
