//! `bench.tsv`: group, case, stack, metric, median, min, max, unit; tab-separated, one header line. A run replaces the
//! rows it measured anew and leaves those of other groups alone.

use std::fs;
use std::io;
use std::path::Path;

/// The header line.
pub const HEADER: &str = "group\tcase\tstack\tmetric\tmedian\tmin\tmax\tunit";

/// One line of the table, its group apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    case: String,
    stack: String,
    metric: String,
    median: f64,
    min: f64,
    max: f64,
    unit: String,
}

impl Row {
    /// A row from values sorted ascending, at least one.
    pub fn new(case: &str, stack: &str, metric: &str, sorted: &[f64], unit: &str) -> Row {
        let (min, max) = (sorted.first().copied().unwrap_or(f64::NAN), sorted.last().copied().unwrap_or(f64::NAN));
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN);
        Row { case: case.into(), stack: stack.into(), metric: metric.into(), median, min, max, unit: unit.into() }
    }

    /// The line.
    pub fn line(&self, group: &str) -> String {
        format!(
            "{group}\t{}\t{}\t{}\t{:.1}\t{:.1}\t{:.1}\t{}",
            self.case, self.stack, self.metric, self.median, self.min, self.max, self.unit
        )
    }
}

/// What makes two lines speak of the same measurement: group, case, stack and metric.
fn key(line: &str) -> Vec<&str> {
    line.split('\t').take(4).collect()
}

/// Puts `rows` into the table `file`: each replaces the line of the same group, case, stack and metric, or is appended.
pub fn update(file: &Path, group: &str, rows: &[Row]) -> io::Result<()> {
    let mut lines: Vec<String> = match fs::read_to_string(file) {
        Ok(text) => text.lines().skip(1).map(String::from).collect(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(e),
    };
    for row in rows {
        let new = row.line(group);
        match lines.iter_mut().find(|old| key(old) == key(&new)) {
            Some(old) => *old = new,
            None => lines.push(new),
        }
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    lines.insert(0, HEADER.into());
    fs::write(file, lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_replaces_its_rows_and_keeps_the_rest() {
        let file = std::env::temp_dir().join(format!("bench-{}.tsv", std::process::id()));
        let _ = fs::remove_file(&file);
        update(&file, "tap", &[Row::new("http", "kernel", "ms", &[1.0, 2.0, 9.0], "ms")]).unwrap();
        update(&file, "memory", &[Row::new("echo_64", "smoltcp", "ns_per_packet", &[5.0], "ns")]).unwrap();
        update(&file, "memory", &[Row::new("echo_64", "smoltcp", "ns_per_packet", &[4.0], "ns")]).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(
            text,
            "group\tcase\tstack\tmetric\tmedian\tmin\tmax\tunit\n\
             tap\thttp\tkernel\tms\t2.0\t1.0\t9.0\tms\n\
             memory\techo_64\tsmoltcp\tns_per_packet\t4.0\t4.0\t4.0\tns\n"
        );
    }
}
