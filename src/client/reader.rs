//! Open files of whatever protocol, for those who read them without caring which.

use crate::storage::error::Result;
use crate::storage::host::Host;

/// Takes a read back that has ended, but whose result nobody was told: whoever stops it did not get those bytes, and reads on
/// where it was.
pub fn take_back(result: &mut Option<Result<usize>>, cursor: &mut u64) {
    if let Some(Ok(count)) = result.take() {
        *cursor = cursor.saturating_sub(count as u64);
    }
}

/// An open file.
pub enum Reader<'f, H: Host> {
    /// At a TFTP server.
    #[cfg(feature = "file")]
    Tftp(&'f mut super::file::File<H>),
    /// On an NFS export.
    #[cfg(feature = "nfs")]
    Nfs(&'f mut super::nfs::File<H>),
    /// At an HTTP server.
    #[cfg(feature = "http")]
    Http(&'f mut super::http::File<H>),
}

macro_rules! each_file {
    ($reader:expr, $f:ident => $call:expr) => {
        match $reader {
            #[cfg(feature = "file")]
            Reader::Tftp($f) => $call,
            #[cfg(feature = "nfs")]
            Reader::Nfs($f) => $call,
            #[cfg(feature = "http")]
            Reader::Http($f) => $call,
        }
    };
}

impl<H: Host> Reader<'_, H> {
    /// Begins a read of `memory.len()` bytes from the position on; the memory is lent until [`Self::take_result`] has
    /// something, or [`Self::stop_reading`].
    ///
    /// # Errors
    /// [`crate::storage::error::Error::Again`]: a read is under way.
    pub fn read(&mut self, memory: H::Memory) -> Result<()> {
        each_file!(self, f => f.read(memory))
    }

    /// Whether a read is under way.
    pub fn is_reading(&self) -> bool {
        each_file!(self, f => f.is_reading())
    }

    /// What the read came to, once it has ended: told once.
    pub fn take_result(&mut self) -> Option<Result<usize>> {
        each_file!(self, f => f.take_result())
    }

    /// Ends the read under way without a result, or one that has ended without its result being taken; the position is where
    /// it was before.
    pub fn stop_reading(&mut self) {
        each_file!(self, f => f.stop_reading());
    }

    /// Where the next read begins.
    pub fn position(&self) -> u64 {
        each_file!(self, f => f.position())
    }

    /// Moves that.
    ///
    /// # Errors
    /// [`crate::storage::error::Error::Again`]: a read is under way.
    pub fn seek(&mut self, position: u64) -> Result<()> {
        each_file!(self, f => f.seek(position))
    }

    /// Bytes of the file, where they are known.
    pub fn size(&self) -> Option<u64> {
        each_file!(self, f => f.size())
    }

    /// Whether the file is open.
    pub fn is_open(&self) -> bool {
        each_file!(self, f => f.is_open())
    }
}

/// What the readers' tests have in common.
#[cfg(test)]
pub(super) mod tests {
    use crate::sim::host::SimMemory;
    use crate::sim::link::{Link, Peer};
    use crate::sim::rig::Rig;
    use crate::storage::slots::Key;
    use crate::storage::time::Duration;

    /// Reads what has to be `expected` from `position`, where the reader is, and stops when it has come, but nobody was told:
    /// that is as if it had not been read.
    pub fn read_untold(rig: &mut Rig, link: &mut Link, peer: &mut dyn Peer, f: Key, position: u64, expected: &[u8]) {
        let memory = SimMemory::new(expected.len());
        rig.engine.file(f, |f| f.read(memory.clone())).unwrap().unwrap();
        let ended =
            link.run(rig, peer, Duration::from_secs(60), |rig| !rig.engine.file(f, |f| f.is_reading()).unwrap());
        assert!(ended && memory.to_vec() == expected);
        rig.engine.file(f, |f| f.stop_reading()).unwrap();
        assert_eq!(rig.engine.file(f, |f| (f.take_result(), f.position())).unwrap(), (None, position));
    }
}
