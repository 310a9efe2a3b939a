//! What stands for a file's reader where no file is open in pieces (feature `file`): there is none.

use super::Taken;
use core::convert::Infallible;
use core::marker::PhantomData;

/// No reader.
pub struct Pull<M>(Infallible, PhantomData<M>);

impl<M> Pull<M> {
    pub fn ring_len(&self) -> usize {
        match self.0 {}
    }

    pub fn begin(&mut self, _: u16) {
        match self.0 {}
    }

    pub fn spot(&self, _: u64, _: usize) -> Option<(&M, usize)> {
        match self.0 {}
    }

    pub fn has_room(&self, _: u64, _: u64) -> bool {
        match self.0 {}
    }

    pub fn take(&mut self, _: u64, _: &[u8]) -> Taken {
        match self.0 {}
    }
}
