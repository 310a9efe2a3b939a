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
    cbindgen::Builder::new()
        .with_crate(&root)
        .with_config(config)
        .generate()
        .expect("the ABI types are expressible in C")
        .write_to_file(out);
}
