//! The group `tlb` of the benchmarks: how many entries of a small TLB a bulk transfer needs. A program that receives or
//! sends over 64 connections among many idle ones (`ffi-tests/bare/tlb_child.c`) runs under a memory trace (valgrind's
//! lackey), instructions included; what the stack touches goes through a TLB of 62 entries with 4 KiB pages and
//! round-robin replacement, that of the board in the report this answers. What the peer and the card of the program do is
//! left out.
//!
//! `tlb [--case CASE] [--lib ARCHIVE] [--out FILE]`; with `--lib` another build of the library than the one that ships.

use bootlace_benches::table::{self, Row};
use bootlace_lab::programs;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const ENTRIES: usize = 62;
const PAGE_BITS: u32 = 12;
const SIZES: [u32; 4] = [32, 64, 128, 256];
/// Where the program puts things.
const MARKS: u64 = 0x1_0000_0000;
const RING: Range<u64> = 0x1_1000_0000..0x1_2000_0000;
const DATA: Range<u64> = 0x2_0000_0000..0x3_0000_0000;
const ARENA: Range<u64> = 0x3_0000_0000..0x4_0000_0000;
/// Where the program's own code and variables are linked to.
const PROGRAM: Range<u64> = 0x2000_0000..0x3000_0000;
const LINK: [&str; 4] = [
    "-no-pie",
    "-fno-pie",
    "-Wl,--section-start=tlb_child=0x20000000",
    "-Wl,--section-start=tlb_child_data=0x28000000",
];

/// A TLB.
struct Tlb {
    entries: [u64; ENTRIES],
    next: usize,
    /// The page looked up last, which is there.
    last: u64,
    misses: u64,
}

impl Tlb {
    fn new() -> Tlb {
        Tlb { entries: [u64::MAX; ENTRIES], next: 0, last: u64::MAX, misses: 0 }
    }

    fn look_up(&mut self, page: u64) {
        if page == self.last {
            return;
        }
        self.last = page;
        if !self.entries.contains(&page) {
            self.misses += 1;
            self.entries[self.next] = page;
            self.next = (self.next + 1) % ENTRIES;
        }
    }
}

/// What a trace comes to.
struct Seen {
    all: Tlb,
    /// The same without the stack's own pages: what cannot be avoided.
    bare: Tlb,
    /// Pages of the stack's own that each pass touched: all, and those of code.
    passes: Vec<(usize, usize)>,
    own: HashSet<u64>,
    code: HashSet<u64>,
    measuring: bool,
    inside: bool,
    /// Own pages by kind: code, arena, the rest (stack, constants).
    total: [HashSet<u64>; 3],
}

impl Seen {
    fn new() -> Seen {
        Seen {
            all: Tlb::new(),
            bare: Tlb::new(),
            passes: Vec::new(),
            own: HashSet::new(),
            code: HashSet::new(),
            measuring: false,
            inside: false,
            total: Default::default(),
        }
    }

    /// One access.
    fn access(&mut self, code: bool, address: u64, len: u64) {
        if !code && address >> PAGE_BITS == MARKS >> PAGE_BITS {
            match (address - MARKS) / 64 {
                0 => self.measuring = true,
                1 => self.measuring = false,
                4 => self.pass(),
                mark => self.inside = mark == 2,
            }
            return;
        }
        if !self.measuring || !self.inside || PROGRAM.contains(&address) {
            return;
        }
        for page in address >> PAGE_BITS..=(address + len.max(1) - 1) >> PAGE_BITS {
            if page == self.all.last && page == self.bare.last {
                continue;
            }
            self.all.look_up(page);
            if RING.contains(&address) || DATA.contains(&address) {
                self.bare.look_up(page);
                continue;
            }
            self.own.insert(page);
            if code {
                self.code.insert(page);
            }
            let kind = if code { 0 } else { 1 + usize::from(!ARENA.contains(&address)) };
            self.total[kind].insert(page);
        }
    }

    /// A call of `lace_poll` is over.
    fn pass(&mut self) {
        if !self.own.is_empty() {
            self.passes.push((self.own.len(), self.code.len()));
            self.own.clear();
            self.code.clear();
        }
    }
}

/// One line of lackey's: "I  ADDRESS,LEN", " L ADDRESS,LEN", " S …", " M …"; `None` for others.
fn parse(line: &[u8]) -> Option<(bool, u64, u64)> {
    let code = match line {
        [b'I', b' ', b' ', ..] => true,
        [b' ', b'L' | b'S' | b'M', b' ', ..] => false,
        _ => return None,
    };
    let (mut address, mut len, mut comma) = (0u64, 0u64, false);
    for c in &line[3..] {
        match c {
            b',' => comma = true,
            b'0'..=b'9' if comma => len = len * 10 + u64::from(c - b'0'),
            b'0'..=b'9' => address = address << 4 | u64::from(c - b'0'),
            b'a'..=b'f' if !comma => address = address << 4 | u64::from(c - b'a' + 10),
            b'\n' => break,
            _ => return None,
        }
    }
    comma.then_some((code, address, len))
}

/// Traces one run: what was seen, and the bytes that were carried.
fn trace(program: &Path, way: &str, megabytes: u32) -> Result<(Seen, f64, String), String> {
    // As `rep stosb`, which lackey shows byte by byte, the arena's first clearing would be most of the trace.
    let mut child = Command::new("valgrind")
        .env("GLIBC_TUNABLES", "glibc.cpu.x86_rep_stosb_threshold=1073741824")
        .args(["--tool=lackey", "--basic-counts=no", "--trace-mem=yes", "--log-fd=2"])
        .arg(program)
        .args([way, &megabytes.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("valgrind does not run: {e}"))?;
    let mut seen = Seen::new();
    let mut lines = BufReader::with_capacity(1 << 20, child.stderr.take().ok_or("no trace")?);
    let (mut line, mut other) = (Vec::new(), String::new());
    while lines.read_until(b'\n', &mut line).map_err(|e| e.to_string())? > 0 {
        match parse(&line) {
            Some((code, address, len)) => seen.access(code, address, len),
            None => other += &String::from_utf8_lossy(&line),
        }
        line.clear();
    }
    let mut text = String::new();
    child.stdout.take().ok_or("no output")?.read_to_string(&mut text).map_err(|e| e.to_string())?;
    let status = child.wait().map_err(|e| e.to_string())?;
    let bytes = text.lines().find_map(|l| l.strip_prefix("bytes ")?.parse().ok());
    match bytes {
        Some(bytes) if status.success() => Ok((seen, bytes, text)),
        _ => Err(format!("{way} {megabytes}: {status}: {other}")),
    }
}

fn median(values: impl Iterator<Item = usize>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.map(|n| n as f64).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn run(only: Option<&str>, library: Option<PathBuf>, out: &Path) -> Result<(), String> {
    let library = library.unwrap_or_else(programs::library);
    let library = library.to_str().ok_or("a path that is no text")?;
    let args: Vec<&str> = [library].into_iter().chain(LINK).collect();
    let program = programs::compile("tlb_child", &["ffi-tests/bare/tlb_child.c"], &args);
    println!("{}", table::HEADER);
    let mut rows = Vec::new();
    for way in ["rx", "tx"] {
        let mut bare = Vec::new();
        for size in SIZES {
            let case = format!("{way}_{size}m");
            if only.is_some_and(|only| only != case) {
                continue;
            }
            let (seen, bytes, text) = trace(&program, way, size)?;
            let per_mb = |misses: u64| misses as f64 / (bytes / 1e6);
            let pages = median(seen.passes.iter().map(|p| p.0));
            let code = median(seen.passes.iter().map(|p| p.1));
            rows.push(Row::new(&case, "bootlace", "misses_per_mb", &[per_mb(seen.all.misses)], "misses"));
            rows.push(Row::new(&case, "bootlace", "pages", &pages, "pages"));
            rows.push(Row::new(&case, "bootlace", "code_pages", &code, "pages"));
            bare.push(per_mb(seen.bare.misses));
            let [code, arena, rest] = seen.total.map(|pages| pages.len());
            eprintln!(
                "{case}: {}; own pages: {code} of code, {arena} of the arena, {rest} others",
                text.replace('\n', ", ")
            );
        }
        bare.sort_by(f64::total_cmp);
        if !bare.is_empty() {
            let case = if way == "rx" { "unavoidable" } else { "tx_unavoidable" };
            rows.push(Row::new(case, "bootlace", "misses_per_mb", &bare, "misses"));
        }
    }
    for row in &rows {
        println!("{}", row.line("tlb"));
    }
    table::update(out, "tlb", &rows).map_err(|e| format!("{}: {e}", out.display()))
}

fn main() -> ExitCode {
    let (mut only, mut library, mut out) = (None, None::<PathBuf>, PathBuf::from("target/bench.tsv"));
    let mut args = std::env::args().skip(1);
    while let (Some(arg), value) = (args.next(), args.next()) {
        match (arg.as_str(), value) {
            ("--case", Some(value)) => only = Some(value),
            ("--lib", Some(value)) => match std::path::absolute(&value) {
                Ok(archive) => library = Some(archive),
                Err(why) => {
                    eprintln!("tlb: {value}: {why}");
                    return ExitCode::FAILURE;
                }
            },
            ("--out", Some(value)) => out = value.into(),
            _ => {
                eprintln!("usage: tlb [--case CASE] [--lib ARCHIVE] [--out FILE]");
                return ExitCode::FAILURE;
            }
        }
    }
    match run(only.as_deref(), library, &out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("tlb: {why}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_two_pages_fit_and_the_oldest_goes_first() {
        let mut tlb = Tlb::new();
        for _ in 0..3 {
            (0..62).for_each(|page| tlb.look_up(page));
        }
        assert_eq!(tlb.misses, 62);
        tlb.look_up(62);
        tlb.look_up(1);
        assert_eq!(tlb.misses, 63);
        tlb.look_up(0);
        assert_eq!(tlb.misses, 64);
    }

    #[test]
    fn lines_of_a_trace() {
        assert_eq!(parse(b"I  0400d7d4,8\n"), Some((true, 0x400d7d4, 8)));
        assert_eq!(parse(b" L 1ffeffe7e0,4\n"), Some((false, 0x1f_feff_e7e0, 4)));
        assert_eq!(parse(b" M 0421c7cc,16\n"), Some((false, 0x421c7cc, 16)));
        assert_eq!(parse(b"==12== lackey\n"), None);
        assert_eq!(parse(b" X 1,2\n"), None);
    }

    /// Only what happens between the marks counts, and pages of data and ring are nobody's fault.
    #[test]
    fn what_is_counted() {
        let mut seen = Seen::new();
        let mark = |seen: &mut Seen, n: u64| seen.access(false, MARKS + 64 * n, 4);
        seen.access(true, 0x1000, 4);
        mark(&mut seen, 0);
        seen.access(true, 0x1000, 4);
        mark(&mut seen, 2);
        seen.access(true, 0x5000, 4);
        seen.access(false, ARENA.start + 0xffe, 4);
        seen.access(false, DATA.start, 4);
        seen.access(false, RING.start, 4);
        seen.access(true, PROGRAM.start, 4);
        mark(&mut seen, 3);
        mark(&mut seen, 4);
        mark(&mut seen, 1);
        assert_eq!((seen.all.misses, seen.bare.misses), (5, 2));
        assert_eq!(seen.passes, [(3, 1)]);
    }
}
