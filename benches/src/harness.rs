//! Runs stacks in turn, takes medians, counts instructions. A run of one stack is followed by a run of the next, so that
//! what disturbs the machine disturbs all of them.

use crate::case::Case;
use crate::nic::Nic;
use crate::table::Row;
use std::process::Command;

/// A stack set up for one case.
pub trait Bench {
    /// Makes `rounds` rounds: so many datagrams, frames or transfers, by the case.
    fn run(&mut self, rounds: u64);
    /// The NIC, for its counters.
    fn nic(&mut self) -> &mut Nic;
    /// The destination's memory; empty where nothing is received.
    fn received(&self) -> &[u8];
    /// What the first `rounds` rounds put there, where the peer speaks another protocol than the case's own: the frames
    /// sent are then not counted either.
    fn expected(&self, rounds: u64) -> Option<Vec<u8>> {
        let _ = rounds;
        None
    }
}

/// A stack that can be measured.
#[derive(Clone, Copy)]
pub struct Stack {
    /// Its name in `bench.tsv`.
    pub name: &'static str,
    /// Sets it up for a case; `None` when it does not take part.
    pub open: fn(Case) -> Option<Box<dyn Bench>>,
    /// Whether it does the whole work, so that what it received and sent can be checked.
    pub whole: bool,
}

/// Every stack of the group `memory`.
pub const STACKS: [Stack; 7] = [
    Stack { name: "floor_copysum", open: crate::floor::copysum, whole: true },
    Stack { name: "floor_memcpy", open: crate::floor::memcpy, whole: false },
    Stack { name: "floor_sum", open: crate::floor::sum, whole: false },
    Stack { name: "smoltcp", open: crate::smol::open, whole: true },
    Stack { name: "smoltcp_16", open: crate::smol::open_ring, whole: true },
    Stack { name: "bootlace", open: crate::shipped::open, whole: true },
    Stack { name: "bootlace_rust", open: crate::bootlace::open, whole: true },
];

/// Opens `stack` and runs it once with the NIC's eyes open: what it sends is verified, and so is what it received.
pub fn open_checked(stack: Stack, case: Case) -> Result<Option<Box<dyn Bench>>, String> {
    let Some(mut bench) = (stack.open)(case) else {
        return Ok(None);
    };
    let rounds = (100 / case.packets_per_round()).max(2);
    bench.run(rounds);
    let other = bench.expected(rounds);
    let nic = bench.nic();
    let fault = nic.close_eyes();
    if stack.whole {
        if let Some(fault) = fault {
            return Err(format!("{} {}: the peer got a bad frame: {fault}", case.name(), stack.name));
        }
        if let Some(sent) = case.sent(rounds)
            && other.is_none()
            && nic.sent() != sent
        {
            return Err(format!("{} {}: sent {} frames, not {sent}", case.name(), stack.name, nic.sent()));
        }
        if case.is_tcp() && nic.transfers() != rounds {
            return Err(format!("{} {}: {} transfers, not {rounds}", case.name(), stack.name, nic.transfers()));
        }
        let expected = other.unwrap_or_else(|| case.expected(rounds as usize));
        if !bench.received().starts_with(&expected) {
            return Err(format!("{} {}: the destination does not hold what was sent", case.name(), stack.name));
        }
    }
    Ok(Some(bench))
}

/// Times all of `stacks` on `case`, `runs` runs each, in turn. One row a stack.
pub fn time(case: Case, stacks: &[Stack], runs: usize) -> Result<Vec<Row>, String> {
    let mut benches = Vec::new();
    for stack in stacks {
        if let Some(mut bench) = open_checked(*stack, case)? {
            bench.run(case.rounds());
            benches.push((stack.name, bench, Vec::with_capacity(runs)));
        }
    }
    let rounds = case.rounds();
    let packets = (rounds * case.packets_per_round()) as f64;
    for _ in 0..runs {
        for (_, bench, times) in &mut benches {
            let start = processor_time();
            bench.run(rounds);
            times.push((processor_time() - start) / packets);
        }
    }
    let rows = benches.into_iter().map(|(stack, _, mut times)| {
        times.sort_by(f64::total_cmp);
        Row::new(case.name(), stack, "ns_per_packet", &times, "ns")
    });
    Ok(rows.collect())
}

/// Processor time of this thread, in nanoseconds: what others run on a shared processor is not counted, though what they
/// do to its caches is.
fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the structure it is given, and nothing else.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// What Callgrind counts: one run, and nothing of its preparation.
#[inline(never)]
pub fn counted_run(bench: &mut dyn Bench, rounds: u64) {
    bench.run(rounds);
    std::hint::black_box(bench);
}

/// Counts the instructions of one stack on one case: this program runs itself under Callgrind. `None` when the stack
/// does not take part.
pub fn count(case: Case, stack: Stack) -> Result<Option<Row>, String> {
    if (stack.open)(case).is_none() {
        return Ok(None);
    }
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    // Callgrind counts each byte of a `rep movsb` as an instruction, and glibc's memcpy uses it for long copies.
    let output = Command::new("valgrind")
        .env("GLIBC_TUNABLES", "glibc.cpu.x86_rep_movsb_threshold=1073741824")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*counted_run*"])
        .arg(program)
        .args(["--count-here", "--case", case.name(), "--stack", stack.name])
        .output()
        .map_err(|e| format!("valgrind does not run: {e}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let total = text.lines().find_map(|line| line.split_once("Collected :")).and_then(|(_, n)| n.trim().parse().ok());
    match total {
        Some(total) if output.status.success() => {
            let total: f64 = total;
            let per_packet = total / (case.counted_rounds() * case.packets_per_round()) as f64;
            Ok(Some(Row::new(case.name(), stack.name, "instructions_per_packet", &[per_packet], "instructions")))
        }
        _ => Err(format!("{} {}: Callgrind failed: {text}", case.name(), stack.name)),
    }
}

/// The part of [`count`] that runs under Callgrind.
pub fn count_here(case: Case, stack: Stack) -> Result<(), String> {
    if let Some(mut bench) = open_checked(stack, case)? {
        counted_run(&mut *bench, case.counted_rounds());
    }
    Ok(())
}

/// Keeps this thread on one processor, the last that it may use.
pub fn pin() {
    // SAFETY: a cpu_set_t is plain bits, for which zero is a value; both calls get its address and its size.
    unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return;
        }
        let Some(last) = (0..libc::CPU_SETSIZE as usize).rev().find(|cpu| libc::CPU_ISSET(*cpu, &set)) else {
            return;
        };
        libc::CPU_ZERO(&mut set);
        libc::CPU_SET(last, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::ALL;
    use crate::frames;

    #[test]
    fn every_stack_does_every_case_right() {
        let mut taken = 0;
        for stack in STACKS {
            for case in ALL {
                match open_checked(stack, case) {
                    Ok(bench) => taken += usize::from(bench.is_some()),
                    Err(why) => panic!("{why}"),
                }
            }
        }
        assert!(taken >= 3 * 13 + 12, "{taken} taken");
    }

    /// A stack that answers every ping with the same echo, and receives nothing.
    struct Wrong(Nic, Vec<u8>);

    impl Bench for Wrong {
        fn run(&mut self, rounds: u64) {
            for _ in 0..rounds {
                self.0.offer(1);
                if let Some((_, line)) = self.0.receive() {
                    line.buffer(self.1.len()).copy_from_slice(&self.1);
                    line.send(self.1.len());
                }
            }
        }
        fn nic(&mut self) -> &mut Nic {
            &mut self.0
        }
        fn received(&self) -> &[u8] {
            &[]
        }
    }

    fn wrong(case: Case) -> Option<Box<dyn Bench>> {
        let mut message = frames::echo_request(0, &crate::case::payload(case, 0));
        message[0] = 0;
        let field = u16::from_be_bytes([message[2], message[3]]) + 0x0800;
        message[2..4].copy_from_slice(&field.to_be_bytes());
        let mut frame = frames::ipv4(1, 0, 0, &message);
        frame[..12].rotate_left(6);
        frame[26..34].rotate_left(4);
        Some(Box::new(Wrong(case.nic(), frame)))
    }

    #[test]
    fn wrong_answers_are_seen() {
        let stack = Stack { name: "wrong", open: wrong, whole: true };
        let why = open_checked(stack, Case::Echo).err().expect("the second echo is wrong");
        assert!(why.contains("not what was asked"), "{why}");
        let why = open_checked(stack, Case::UdpRx).err().expect("nothing was received");
        assert!(!why.is_empty());
    }
}
