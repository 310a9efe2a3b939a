//! Files with deterministic contents that do not compress or repeat, and their SHA-256.

use crate::Rng;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// A file made by [`make`].
#[derive(Clone, Debug)]
pub struct TestFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Its name without the folder: what a client asks the server for.
    pub name: String,
    /// Length in bytes.
    pub len: u64,
    /// SHA-256, lower-case hexadecimal.
    pub sha256: String,
}

/// Writes `len` bytes fixed by `seed` to `dir/name`.
pub fn make(dir: &Path, name: &str, len: u64, seed: u64) -> io::Result<TestFile> {
    let path = dir.join(name);
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&path)?);
    let mut rng = Rng::new(seed);
    let mut hash = Sha256::new();
    let mut block = vec![0u8; 1 << 16];
    let mut left = len;
    while left > 0 {
        for word in block.chunks_exact_mut(8) {
            word.copy_from_slice(&rng.next_u64().to_le_bytes());
        }
        let n = left.min(block.len() as u64) as usize;
        hash.update(&block[..n]);
        out.write_all(&block[..n])?;
        left -= n as u64;
    }
    out.flush()?;
    Ok(TestFile { path, name: name.to_string(), len, sha256: hex(&hash.finalize()) })
}

/// SHA-256 of a file, lower-case hexadecimal.
pub fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut block = vec![0u8; 1 << 16];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hex(&hash.finalize())),
            n => hash.update(&block[..n]),
        }
    }
}

/// SHA-256 of bytes, lower-case hexadecimal.
pub fn sha256_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
