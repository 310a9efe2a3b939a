//! The call graph of a prelinked object, sections for functions, relocations for calls.

use object::read::elf::{ElfFile32, ElfFile64};
use object::{
    Architecture, FileKind, Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionFlags, SectionKind, elf,
};
use std::collections::{BTreeMap, BTreeSet};

/// A section's number in the object.
type At = usize;

/// What an object tells about sizes and calls.
#[derive(Debug, Default)]
pub struct Graph {
    /// Bytes of text (all that is loaded and not written), data and bss, as `size` counts them.
    pub sizes: (u64, u64, u64),
    names: BTreeMap<At, String>,
    /// Frame in bytes of each function's section, the return address included where a call pushes it.
    frames: BTreeMap<At, u64>,
    /// Sections each section refers to.
    edges: BTreeMap<At, BTreeSet<At>>,
    entries: BTreeMap<String, At>,
    code: BTreeSet<At>,
}

/// Frame assumed for a function whose frame is not recorded: hand-written assembly, which saves two registers.
const UNRECORDED: u64 = 16;

impl Graph {
    /// Reads an ELF object of any machine and byte order.
    pub fn read(bytes: &[u8]) -> Result<Graph, String> {
        match FileKind::parse(bytes).map_err(|e| e.to_string())? {
            FileKind::Elf32 => Self::build(&ElfFile32::<object::Endianness>::parse(bytes).map_err(|e| e.to_string())?),
            FileKind::Elf64 => Self::build(&ElfFile64::<object::Endianness>::parse(bytes).map_err(|e| e.to_string())?),
            kind => Err(format!("not a relocatable object: {kind:?}")),
        }
    }

    fn build<'a, O: Object<'a>>(object: &O) -> Result<Graph, String> {
        let mut graph = Graph::default();
        let pushed = match object.architecture() {
            Architecture::X86_64 => 8,
            Architecture::I386 => 4,
            _ => 0,
        };
        let target = |place: RelocationTarget| match place {
            RelocationTarget::Symbol(index) => {
                object.symbol_by_index(index).ok().and_then(|s| s.section_index()).map(|i| i.0)
            }
            RelocationTarget::Section(index) => Some(index.0),
            _ => None,
        };
        for symbol in object.symbols() {
            if let (Ok(name), Some(section)) = (symbol.name(), symbol.section_index())
                && name.starts_with("lace_")
            {
                graph.entries.insert(name.into(), section.0);
            }
        }
        for section in object.sections() {
            let name = section.name().unwrap_or("?").to_string();
            let index = section.index().0;
            if let SectionFlags::Elf { sh_flags } = section.flags()
                && sh_flags & u64::from(elf::SHF_ALLOC) != 0
            {
                let written = sh_flags & u64::from(elf::SHF_WRITE) != 0;
                match section.kind() {
                    SectionKind::UninitializedData => graph.sizes.2 += section.size(),
                    _ if written => graph.sizes.1 += section.size(),
                    _ => graph.sizes.0 += section.size(),
                }
                if section.kind() == SectionKind::Text {
                    graph.code.insert(index);
                }
                if name != ".eh_frame" {
                    let edges = graph.edges.entry(index).or_default();
                    edges.extend(
                        section.relocations().filter_map(|(_, r)| target(r.target())).filter(|to| *to != index),
                    );
                }
            }
            if name.starts_with(".stack_sizes") {
                Self::read_frames(object, &section, &target, pushed, &mut graph.frames)?;
            }
            graph.names.insert(index, name);
        }
        Ok(graph)
    }

    /// `.stack_sizes`: an address as wide as a pointer, told by a relocation, then the frame as unsigned LEB128.
    fn read_frames<'a, O: Object<'a>>(
        object: &O,
        section: &impl ObjectSection<'a>,
        target: &impl Fn(RelocationTarget) -> Option<At>,
        pushed: u64,
        frames: &mut BTreeMap<At, u64>,
    ) -> Result<(), String> {
        let width = if object.is_64() { 8 } else { 4 };
        let data = section.data().map_err(|e| e.to_string())?;
        let places: BTreeMap<u64, At> =
            section.relocations().filter_map(|(at, r)| target(r.target()).map(|to| (at, to))).collect();
        let mut at = 0;
        while at < data.len() {
            let function = places.get(&(at as u64)).ok_or(format!(".stack_sizes names no function at {at}"))?;
            at += width;
            let (mut frame, mut shift) = (0u64, 0);
            loop {
                let byte = *data.get(at).ok_or("a frame in .stack_sizes is cut off")?;
                at += 1;
                frame |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            let slot = frames.entry(*function).or_default();
            *slot = (*slot).max(frame + pushed);
        }
        Ok(())
    }

    /// The largest single frame.
    pub fn largest_frame(&self) -> Option<(&str, u64)> {
        self.frames.iter().max_by_key(|(_, frame)| **frame).map(|(at, frame)| (self.name(*at), *frame))
    }

    /// The worst depth under `entry` in bytes and the path to it; none without such a function or without frames.
    ///
    /// # Errors
    /// A cycle of calls, which makes the depth unknowable.
    #[allow(clippy::type_complexity)]
    pub fn depth(&self, entry: &str) -> Result<Option<(u64, Vec<(&str, u64)>)>, String> {
        let Some((start, order)) = self.below(entry)? else { return Ok(None) };
        let known: BTreeMap<At, (u64, Option<At>)> = order.into_iter().map(|(at, d, next)| (at, (d, next))).collect();
        let mut path = Vec::new();
        let mut next = Some(start);
        while let Some(at) = next {
            path.push((self.name(at), self.frame(at)));
            next = known.get(&at).and_then(|(_, below)| *below);
        }
        Ok(known.get(&start).map(|(depth, _)| (*depth, path)))
    }

    /// Everything `entry` may lead to, callees before callers: each with its worst depth and the callee that leads there.
    #[allow(clippy::type_complexity)]
    fn below(&self, entry: &str) -> Result<Option<(At, Vec<(At, u64, Option<At>)>)>, String> {
        let Some(start) = self.entries.get(entry).filter(|_| !self.frames.is_empty()) else {
            return Ok(None);
        };
        let mut known: BTreeMap<At, u64> = BTreeMap::new();
        let mut order = Vec::new();
        let mut open = BTreeSet::from([*start]);
        let mut stack = vec![(*start, self.callees(*start))];
        while let Some((at, todo)) = stack.last_mut() {
            match todo.pop() {
                Some(next) if known.contains_key(&next) => {}
                Some(next) if !open.insert(next) => {
                    let names: Vec<_> =
                        stack.iter().map(|(at, _)| self.name(*at)).skip_while(|n| *n != self.name(next)).collect();
                    return Err(format!("a cycle of calls: {}", names.join(" -> ")));
                }
                Some(next) => {
                    let callees = self.callees(next);
                    stack.push((next, callees));
                }
                None => {
                    let at = *at;
                    let deepest = self.callees(at).into_iter().filter_map(|c| known.get(&c).map(|d| (*d, c))).max();
                    let depth = self.frame(at) + deepest.map_or(0, |(d, _)| d);
                    known.insert(at, depth);
                    order.push((at, depth, deepest.map(|(_, c)| c)));
                    open.remove(&at);
                    stack.pop();
                }
            }
        }
        Ok(Some((*start, order)))
    }

    /// What `entry` may lead to that has a frame of at least `least` bytes, largest first, each with the worst depth of a
    /// path through it.
    ///
    /// # Errors
    /// As for [`Self::depth`].
    pub fn frames(&self, entry: &str, least: u64) -> Result<Vec<(&str, u64, u64)>, String> {
        let Some((_, order)) = self.below(entry)? else { return Ok(Vec::new()) };
        // Callees come before their callers, so that above a function everything is known when it is looked at in reverse.
        let mut above: BTreeMap<At, u64> = BTreeMap::new();
        let below: BTreeMap<At, u64> = order.iter().map(|(at, depth, _)| (*at, *depth)).collect();
        let mut frames = Vec::new();
        for (at, depth, _) in order.iter().rev() {
            let over = above.get(at).copied().unwrap_or(0);
            for callee in self.callees(*at).into_iter().filter(|callee| below.contains_key(callee)) {
                let known = above.entry(callee).or_default();
                *known = (*known).max(over + self.frame(*at));
            }
            if self.frame(*at) >= least {
                frames.push((self.name(*at), self.frame(*at), over + depth));
            }
        }
        frames.sort_by_key(|(_, frame, _)| std::cmp::Reverse(*frame));
        Ok(frames)
    }

    /// Functions a function may call: those it names, and those named by the tables it names.
    fn callees(&self, at: At) -> Vec<At> {
        let mut seen = BTreeSet::new();
        let mut todo: Vec<_> = self.edges.get(&at).into_iter().flatten().copied().collect();
        let mut callees = BTreeSet::new();
        while let Some(to) = todo.pop() {
            if !seen.insert(to) {
                continue;
            }
            if self.code.contains(&to) {
                callees.insert(to);
            } else {
                todo.extend(self.edges.get(&to).into_iter().flatten());
            }
        }
        callees.remove(&at); // a jump table names the function that owns it
        callees.into_iter().collect()
    }

    fn frame(&self, at: At) -> u64 {
        self.frames.get(&at).copied().unwrap_or(UNRECORDED)
    }

    fn name(&self, at: At) -> &str {
        self.names.get(&at).map_or("?", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(usize, &[usize])], frames: &[(usize, u64)], code: &[usize]) -> Graph {
        Graph {
            names: (0..10).map(|n| (n, n.to_string())).collect(),
            frames: frames.iter().map(|(n, f)| (*n, *f)).collect(),
            edges: edges.iter().map(|(n, to)| (*n, to.iter().copied().collect())).collect(),
            entries: BTreeMap::from([("lace_poll".into(), 0)]),
            code: code.iter().copied().collect(),
            ..Graph::default()
        }
    }

    #[test]
    fn the_deepest_path_wins() {
        let g = graph(&[(0, &[1, 2]), (1, &[3]), (2, &[3])], &[(0, 10), (1, 5), (2, 100), (3, 7)], &[0, 1, 2, 3]);
        let (depth, path) = g.depth("lace_poll").unwrap().unwrap();
        assert_eq!(depth, 117);
        assert_eq!(path.iter().map(|p| p.0).collect::<Vec<_>>(), ["0", "2", "3"]);
    }

    #[test]
    fn large_frames_are_listed_with_the_path_through_them() {
        let g = graph(&[(0, &[1, 2]), (1, &[3]), (2, &[3])], &[(0, 10), (1, 50), (2, 100), (3, 70)], &[0, 1, 2, 3]);
        assert_eq!(g.frames("lace_poll", 50).unwrap(), [("2", 100, 180), ("3", 70, 180), ("1", 50, 130)]);
    }

    #[test]
    fn a_table_counts_as_calls_to_all_it_names() {
        // 5 is data: a vtable that names 1 and, through another table, 2.
        let g = graph(&[(0, &[5]), (5, &[1, 6]), (6, &[2])], &[(0, 10), (1, 5), (2, 50)], &[0, 1, 2]);
        assert_eq!(g.depth("lace_poll").unwrap().unwrap().0, 60);
    }

    #[test]
    fn a_function_without_a_record_counts_too() {
        let g = graph(&[(0, &[1])], &[(0, 10)], &[0, 1]);
        assert_eq!(g.depth("lace_poll").unwrap().unwrap().0, 10 + UNRECORDED);
    }

    #[test]
    fn a_cycle_is_an_error_and_a_jump_table_is_none() {
        let g = graph(&[(0, &[1]), (1, &[2]), (2, &[1])], &[(0, 1)], &[0, 1, 2]);
        assert!(g.depth("lace_poll").unwrap_err().contains("1 -> 2"));
        let g = graph(&[(0, &[5]), (5, &[0])], &[(0, 1)], &[0]);
        assert_eq!(g.depth("lace_poll").unwrap().unwrap().0, 1);
    }

    #[test]
    fn without_frames_there_is_no_depth() {
        assert_eq!(graph(&[], &[], &[0]).depth("lace_poll").unwrap(), None);
        assert_eq!(graph(&[], &[(0, 1)], &[0]).depth("other").unwrap(), None);
    }
}
