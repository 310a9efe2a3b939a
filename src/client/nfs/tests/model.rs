//! Transfers over a modelled link: loss, reordering, small rings, long ways.

use super::*;

const MIB: usize = 1 << 20;

fn slow() -> Conditions {
    Conditions { delay: Duration::from_millis(20), bits_per_second: 10_000_000, ..Conditions::default() }
}

/// How long `len` bytes take, in milliseconds.
fn transfer(conditions: Conditions, seed: u64, len: usize, tuning: Tuning) -> u64 {
    let mut lab = Lab::over(conditions, seed);
    let data = bytes(len);
    lab.server.add("Image", Node::File(data.clone()));
    let memory = SimMemory::new(len + 8);
    let begin = lab.rig.now();
    let op = lab.start_get("Image", Sink::Memory(memory.clone()), |r| r.tuning = tuning).unwrap();
    assert_eq!(lab.finish(op), Ok(len as u64), "seed {seed}");
    let ms = lab.rig.now().since(begin).as_millis();
    let got = memory.to_vec();
    assert!(got[..len] == data[..], "seed {seed}: bytes are equal");
    assert_eq!(got[len..], [0xa5; 8], "the guard is intact");
    ms
}

/// The modelled link with 1 % loss and 2 % reordering, against the clean one.
fn poor_against_clean(len: usize, seeds: u64) {
    let clean = transfer(slow(), 1, len, Tuning::default());
    let wire = (len / 1480 * 1538 * 8 / 10_000) as u64;
    assert!(clean < wire * 11 / 10 + 500, "{clean} ms for what takes the wire {wire}");
    let poor = Conditions { loss_ppm: 10_000, reorder_ppm: 20_000, reorder_by: Duration::from_millis(10), ..slow() };
    for seed in 1..=seeds {
        let ms = transfer(poor, seed, len, Tuning::default());
        assert!(ms < 3 * clean, "seed {seed}: {ms} ms, clean {clean}");
    }
}

#[test]
fn loss_and_reordering_cost_less_than_three_times_the_clean_time() {
    poor_against_clean(2 * MIB, 4);
}

#[test]
#[ignore = "long: 250 MiB over the model"]
fn loss_and_reordering_cost_less_than_three_times_the_clean_time_long() {
    poor_against_clean(12 * MIB, 20);
}

#[test]
fn a_long_way_is_fifty_times_faster_than_one_small_read_at_a_time() {
    let long = Conditions { delay: Duration::from_millis(50), ..Conditions::default() };
    let piece = MIB / 4;
    let single = Tuning { read_size: 1024, depth: 1, ..Tuning::default() };
    let one = transfer(long, 1, piece, single) * (12 * MIB / piece) as u64;
    let many = transfer(long, 1, 12 * MIB, Tuning::default());
    assert!(many * 50 < one, "{many} ms against {one}");
}

#[test]
fn a_ring_of_four_frames_is_learned() {
    let small = Conditions {
        bits_per_second: 1_000_000_000,
        ring: 4,
        pass_every: Duration::from_micros(100),
        ..Conditions::default()
    };
    let best =
        (12..14).map(|n| transfer(small, 1, 4 * MIB, Tuning { read_size: 1 << n, depth: 1, ..Tuning::default() }));
    let best = best.min().unwrap();
    let learned = transfer(small, 1, 4 * MIB, Tuning::default());
    assert!(learned <= 2 * best, "{learned} ms, best fixed {best}");
}
