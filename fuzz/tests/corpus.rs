//! Each seed must go the whole way through its target; cut short by a byte at a time it must do no harm.

use std::path::Path;

#[test]
fn every_seed_goes_the_whole_way() {
    for (name, target) in bootlace_fuzz::TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        let mut seeds = 0;
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            assert!(target(&bytes), "{} stops half way", path.display());
            for n in 0..bytes.len() {
                target(&bytes[..n]);
            }
            seeds += 1;
        }
        assert!(seeds >= 2, "{name} has {seeds} seeds");
    }
}
