//! Where the project's own programs are, and how the tests get them built.

use std::path::{Path, PathBuf};

/// Root of the source tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("ffi-tests lies in the tree").to_path_buf()
}

/// The folder for everything built.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
