//! Reads off a prelinked object what it costs: bytes of text, data and bss, and the worst stack depth under a function.
//!
//! `bootlace-sizes OBJECT [ENTRY]` prints `text<TAB>data<TAB>bss<TAB>stack_depth<TAB>largest_frame` and, on standard error
//! with `-v`, the deepest path and every frame of 256 bytes or more with the depth of the worst path through it. Depth and frame are `-` where the object holds no `.stack_sizes` or lacks ENTRY.
//!
//! The depth is found without running anything. Frames are those the compiler wrote into `.stack_sizes`. An edge of the
//! call graph is a relocation: every function has a section of its own, so every call leaves one. A function that refers
//! to a table (a vtable) counts as calling everything the table names, which errs on the deep side. A function pointer
//! counts as called by who takes its address. What the host's callbacks use is the host's own. A cycle would make the
//! depth unknowable; it is printed and ends with status 1.

mod graph;

use std::process::ExitCode;

/// Bytes of a frame that is worth a look.
const LARGE: u64 = 256;

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let verbose = args.iter().any(|a| a == "-v");
    args.retain(|a| a != "-v");
    let Some(file) = args.first() else {
        eprintln!("usage: bootlace-sizes [-v] OBJECT [ENTRY]");
        return ExitCode::from(2);
    };
    let entry = args.get(1).map_or("lace_poll", String::as_str);
    match std::fs::read(file).map_err(|e| e.to_string()).and_then(|bytes| report(&bytes, entry, verbose)) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{file}: {why}");
            ExitCode::FAILURE
        }
    }
}

fn report(bytes: &[u8], entry: &str, verbose: bool) -> Result<String, String> {
    let graph = graph::Graph::read(bytes)?;
    let (text, data, bss) = graph.sizes;
    let largest = graph.largest_frame().map_or("-".into(), |(name, frame)| {
        if verbose {
            eprintln!("largest frame: {frame} {name}");
        }
        frame.to_string()
    });
    let depth = match graph.depth(entry)? {
        None => "-".into(),
        Some((depth, path)) => {
            if verbose {
                for (name, frame) in path {
                    eprintln!("{frame:6} {name}");
                }
                for (name, frame, through) in graph.frames(entry, LARGE)? {
                    eprintln!("frame {frame}, path {through}: {name}");
                }
            }
            depth.to_string()
        }
    };
    Ok(format!("{text}\t{data}\t{bss}\t{depth}\t{largest}"))
}
