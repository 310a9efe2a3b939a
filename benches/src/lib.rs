//! Benchmarks that set Bootlace beside other stacks and beside the floor: the bare copy-and-checksum loop over the same
//! frames, from the same NIC, into the same memory.
//!
//! `frames` builds packets, `nic` hands them out and answers as the peer would, `region` is
//! the memory payload lands in, `case` says what each case is and what
//! must have arrived, `floor`, `smol` and `bootlace` are the stacks, `harness` runs them in turn, and `table` keeps
//! `bench.tsv`. A stack is one function from [`case::Case`] to a [`harness::Bench`].

pub mod bootlace;
pub mod case;
pub mod floor;
pub mod frames;
pub mod harness;
pub mod nic;
pub mod region;
pub mod shipped;
pub mod smol;
pub mod table;
