//! Regenerates `include/bootlace.h` when the `header` feature is on; otherwise does nothing, so that a plain build
//! needs no cbindgen.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "header")]
    header();
}

#[cfg(feature = "header")]
fn header() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo:rerun-if-changed=src/ffi");
    println!("cargo:rerun-if-changed=cbindgen.toml");
    println!("cargo:rerun-if-env-changed=LACE_HEADER");
    let out = std::env::var("LACE_HEADER").unwrap_or_else(|_| format!("{root}/include/bootlace.h"));
    let config = cbindgen::Config::from_file(format!("{root}/cbindgen.toml")).expect("cbindgen.toml is readable");
    // Only src/ffi speaks C. Its files come in the order in which mod.rs names them, mod.rs itself first.
    let main = format!("{root}/src/ffi/mod.rs");
    let text = std::fs::read_to_string(&main).expect("src/ffi/mod.rs is readable");
    let modules = text.lines().filter_map(|l| l.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    let mut builder = cbindgen::Builder::new().with_config(config).with_src(&main);
    for module in modules {
        builder = builder.with_src(format!("{root}/src/ffi/{module}.rs"));
    }
    let mut header = Vec::new();
    builder.generate().expect("the ABI types are expressible in C").write(&mut header);
    let mut header = String::from_utf8(header).expect("the documentation is UTF-8");
    while header.contains("\n\n\n") {
        header = header.replace("\n\n\n", "\n\n");
    }
    std::fs::write(out, header).expect("the header's place is writable");
}
