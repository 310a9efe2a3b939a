//! The C ABI, one file for each section of `bootlace.h`. The only place where `unsafe` may stand: everything below works
//! on slices and on the host traits of `storage`.

#![allow(unsafe_code)]

#[cfg(all(feature = "panic-handler", target_arch = "arm"))]
mod aeabi;
#[cfg(all(feature = "panic-handler", not(test)))]
mod panic;

/// The version of the library that is linked in, as `major << 16 | minor << 8 | patch`. A program compiled against
/// another version's header runs as long as the major numbers agree and the library is not the older one.
#[unsafe(no_mangle)]
pub extern "C" fn lace_version() -> u32 {
    const VERSION: u32 = number(env!("CARGO_PKG_VERSION_MAJOR")) << 16
        | number(env!("CARGO_PKG_VERSION_MINOR")) << 8
        | number(env!("CARGO_PKG_VERSION_PATCH"));
    VERSION
}

const fn number(text: &str) -> u32 {
    match u32::from_str_radix(text, 10) {
        Ok(n) => n,
        Err(_) => panic!("cargo gives decimal numbers"),
    }
}
