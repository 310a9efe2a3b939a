//! Ephemeral ports (RFC 6056): unpredictable, and none comes again before all others were used.

use crate::storage::host::Host;

/// First ephemeral port (RFC 6335 §6).
pub const FIRST: u16 = 49152;
/// How many there are: a power of four, so that the permutation's halves are equal.
pub const COUNT: u16 = 16384;

/// A keyed permutation of the ephemeral ports, walked by a counter.
#[derive(Debug)]
pub struct Ports {
    key: [u32; 2],
    counter: u16,
}

impl Ports {
    /// A sequence with a key of its own.
    pub fn new<H: Host>(host: &mut H) -> Self {
        Ports { key: [host.random(), host.random()], counter: 0 }
    }

    /// The next port; takes a new key when all have been used.
    pub fn next<H: Host>(&mut self, host: &mut H) -> u16 {
        if self.counter >= COUNT {
            *self = Ports::new(host);
        }
        let n = self.counter;
        self.counter = self.counter.wrapping_add(1);
        // A Feistel network over two halves of 7 bits: whatever the round function, it is a permutation.
        let (mut left, mut right) = (n >> 7, n & 0x7f);
        for round in 0u32..6 {
            let [a, b] = self.key;
            let key = if round & 1 == 0 { a } else { b };
            let mixed = u32::from(right)
                .wrapping_add(round << 7)
                .wrapping_mul(0x9e37_79b1)
                .wrapping_add(key.rotate_left(round.wrapping_mul(5)))
                .wrapping_mul(0x85eb_ca6b);
            let f = ((mixed ^ (mixed >> 15)).wrapping_mul(0xc2b2_ae35) >> 25) as u16;
            (left, right) = (right, left ^ f);
        }
        FIRST.wrapping_add((left << 7) | right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::host::SimHost;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    #[test]
    fn case_c11_ports_are_a_permutation_that_depends_on_the_seed() {
        let mut host = SimHost::new(1);
        let mut ports = Ports::new(&mut host);
        let all: BTreeSet<u16> = (0..COUNT).map(|_| ports.next(&mut host)).collect();
        assert_eq!(all.len(), usize::from(COUNT));
        assert!(all.iter().all(|p| *p >= FIRST));
        let firsts: BTreeSet<u16> = (0..50u64)
            .map(|seed| {
                let mut host = SimHost::new(seed);
                Ports::new(&mut host).next(&mut host)
            })
            .collect();
        assert!(firsts.len() > 45, "first ports differ with the seed: {}", firsts.len());
        let run = |seed| {
            let mut host = SimHost::new(seed);
            let mut ports = Ports::new(&mut host);
            (0..100).map(|_| ports.next(&mut host)).collect::<Vec<u16>>()
        };
        assert_eq!(run(7), run(7), "a seed replays");
        let steps: BTreeSet<u16> = run(7).windows(2).map(|w| w[1].wrapping_sub(w[0])).collect();
        assert!(steps.len() > 90, "not sequential: {} different steps", steps.len());
    }
}
