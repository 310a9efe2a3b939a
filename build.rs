//! Regenerates `include/bootlace.h` when the `header` feature is on; otherwise does nothing, so that a plain build
//! needs no cbindgen.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "header")]
    header();
}

/// The sections of the header: files of src/ffi, each with a `//! # Title` and an introduction.
#[cfg(feature = "header")]
const SECTIONS: &[&str] = &[
    "results", "addr", "config", "host", "nic", "stack", "net", "mcast", "udp", "hook", "op", "sink", "tcp", "dhcp",
    "dns", "lookup", "ping", "tftp", "put", "file", "nfs", "http", "stats",
];

#[cfg(feature = "header")]
fn header() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo:rerun-if-changed=src/ffi");
    println!("cargo:rerun-if-changed=cbindgen.toml");
    println!("cargo:rerun-if-env-changed=LACE_HEADER");
    let out = std::env::var("LACE_HEADER").unwrap_or_else(|_| format!("{root}/include/bootlace.h"));
    let mut header =
        std::fs::read_to_string(format!("{root}/src/ffi/overview.h")).expect("src/ffi/overview.h is there");
    let mut structs = Vec::new();
    for name in SECTIONS {
        let path = format!("{root}/src/ffi/{name}.rs");
        let source = std::fs::read_to_string(&path).expect("src/ffi is readable");
        header.push_str(&introduction(&source));
        header.push_str(&section(&root, &path, &source));
        structs.extend(source.lines().filter_map(|line| named(line, "pub struct ")));
    }
    header.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* BOOTLACE_H */\n");
    let header = tidy(&header);
    let header: String = header.lines().map(|line| tagged(line, &structs) + "\n").collect();
    std::fs::write(out, header).expect("the header's place is writable");
}

/// The name that a line of Rust gives to a type of C.
#[cfg(feature = "header")]
fn named(line: &str, keyword: &str) -> Option<String> {
    let rest = line.strip_prefix(keyword)?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    Some(rest[..end].to_string()).filter(|name| name.starts_with("lace_"))
}

/// The line with `struct` before every struct of another section, which cbindgen does not know for one.
#[cfg(feature = "header")]
fn tagged(line: &str, structs: &[String]) -> String {
    if line.trim_start().starts_with(['/', '*']) {
        return line.to_string();
    }
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(word) {
        let len = rest[start..].find(|c| !word(c)).unwrap_or(rest.len() - start);
        let name = &rest[start..start + len];
        out.push_str(&rest[..start]);
        if structs.iter().any(|s| s == name) && !out.ends_with("struct ") {
            out.push_str("struct ");
        }
        out.push_str(name);
        rest = &rest[start + len..];
    }
    out + rest
}

/// Short comments on one line, constants one below the other, negative ones in parentheses.
#[cfg(feature = "header")]
fn tidy(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.trim().is_empty() {
            // One empty line; none between a constant and the next one's comment, which is settled below.
            if lines.last().is_some_and(|l| !l.is_empty()) {
                lines.push(String::new());
            }
            continue;
        }
        if line.trim() == "*/" && lines.len() >= 2 && lines[lines.len() - 2].trim() == "/**" {
            let text = lines.pop().unwrap_or_default();
            let indent = " ".repeat(text.len() - text.trim_start().len() - 1);
            let short = format!("{indent}/** {} */", text.trim_start_matches([' ', '*']));
            lines.pop();
            let after_constant = lines.len() >= 2 && lines[lines.len() - 2].starts_with("#define");
            if after_constant && lines.last().is_some_and(String::is_empty) {
                lines.pop();
            }
            lines.push(short);
            continue;
        }
        match line.rsplit_once(" -") {
            Some((name, number)) if line.starts_with("#define") => lines.push(format!("{name} (-{number})")),
            _ => lines.push(line.to_string()),
        }
    }
    let mut text = String::new();
    for (i, line) in lines.iter().enumerate() {
        // The comment after a constant is another constant's, or begins something new.
        let next = lines.get(i + 1).map_or("", String::as_str);
        if i > 0 && lines[i - 1].starts_with("#define") && line.starts_with("/**") && !next.starts_with("#define") {
            text.push('\n');
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// The `//!` lines of a file as a comment.
#[cfg(feature = "header")]
fn introduction(source: &str) -> String {
    let mut text = String::from("\n/* ----------------------------------------------------------------------------\n");
    for line in source.lines().map_while(|line| line.strip_prefix("//!")) {
        let line = line.trim_start_matches(" # ").trim_start_matches(' ');
        text.push_str(if line.is_empty() { " *" } else { " * " });
        text.push_str(line);
        text.push('\n');
    }
    text.push_str(" */\n\n");
    text
}

/// What one file of src/ffi gives in C. Types of other sections are names to it.
#[cfg(feature = "header")]
fn section(root: &str, path: &str, source: &str) -> String {
    let mut config = cbindgen::Config::from_file(format!("{root}/cbindgen.toml")).expect("cbindgen.toml is readable");
    let both = |line| named(line, "pub struct ").or_else(|| named(line, "pub type "));
    config.export.include = source.lines().filter_map(both).collect();
    let bindings = cbindgen::Builder::new().with_config(config).with_src(path).generate();
    let mut text = Vec::new();
    bindings.unwrap_or_else(|e| panic!("{path}: {e}")).write(&mut text);
    String::from_utf8(text).expect("the documentation is UTF-8")
}
