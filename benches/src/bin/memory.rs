//! The group `memory` of the benchmarks: frames from memory, payload into memory, no system call in between.
//!
//! `memory [--case CASE] [--stack STACK] [--runs N] [--only time|count] [--out FILE]`

use bootlace_benches::case::{self, Case};
use bootlace_benches::harness::{self, STACKS, Stack};
use bootlace_benches::table;
use std::path::PathBuf;
use std::process::ExitCode;

struct Options {
    cases: Vec<Case>,
    stacks: Vec<Stack>,
    runs: usize,
    time: bool,
    count: bool,
    count_here: bool,
    out: PathBuf,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        cases: case::ALL.to_vec(),
        stacks: STACKS.to_vec(),
        runs: 21,
        time: true,
        count: true,
        count_here: false,
        out: "target/bench.tsv".into(),
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--count-here" {
            options.count_here = true;
            continue;
        }
        let value = args.next().ok_or(format!("{arg} wants a value"))?;
        match arg.as_str() {
            "--case" => options.cases.retain(|case| case.name() == value),
            "--stack" => options.stacks.retain(|stack| stack.name == value),
            "--runs" => options.runs = value.parse().map_err(|_| "--runs wants a number")?,
            "--only" => (options.time, options.count) = (value != "count", value != "time"),
            "--out" => options.out = value.into(),
            _ => return Err(format!("unknown option {arg}")),
        }
    }
    if options.cases.is_empty() || options.stacks.is_empty() || options.runs == 0 {
        return Err("no such case or stack, or no runs".into());
    }
    Ok(options)
}

fn run(options: &Options) -> Result<(), String> {
    if options.count_here {
        for case in &options.cases {
            for stack in &options.stacks {
                harness::count_here(*case, *stack)?;
            }
        }
        return Ok(());
    }
    harness::pin();
    println!("{}", table::HEADER);
    for case in &options.cases {
        let mut rows = Vec::new();
        if options.time {
            rows.extend(harness::time(*case, &options.stacks, options.runs)?);
        }
        if options.count {
            for stack in &options.stacks {
                rows.extend(harness::count(*case, *stack)?);
            }
        }
        for row in &rows {
            println!("{}", row.line("memory"));
        }
        table::update(&options.out, "memory", &rows).map_err(|e| format!("{}: {e}", options.out.display()))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("memory: {why}");
            ExitCode::FAILURE
        }
    }
}
