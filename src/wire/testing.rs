//! What the tests of several formats share.

use std::vec::Vec;

/// Calls `f` with every proper prefix of `bytes`, each in an allocation of exactly its length, so that a sanitizer sees
/// any read beyond it.
pub fn each_cut(bytes: &[u8], mut f: impl FnMut(&[u8])) {
    for n in 0..bytes.len() {
        let cut: Vec<u8> = bytes[..n].to_vec();
        f(&cut);
    }
}

/// Calls `f` with `bytes` with each single byte replaced by several hostile values.
pub fn each_mutation(bytes: &[u8], mut f: impl FnMut(&[u8])) {
    for at in 0..bytes.len() {
        for value in [0x00, 0x01, 0x7f, 0x80, 0xc0, 0xfe, 0xff] {
            let mut copy: Vec<u8> = bytes.to_vec();
            copy[at] = value;
            f(&copy);
        }
    }
}
