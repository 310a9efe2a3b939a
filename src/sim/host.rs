//! The host traits over memory of the test's own.

use crate::storage::checksum::Sum;
use crate::storage::host::{
    Host, HostError, LeasePart, LeaseStore, LogEvent, Memory, Nic, NicCaps, OutOfBounds, Pager, Pieces, Reader,
    SendError, Span, Token, Writer,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

/// A region; clones share the bytes.
#[derive(Clone, Debug)]
pub struct SimMemory {
    bytes: Rc<RefCell<Vec<u8>>>,
    start: usize,
    len: usize,
}

impl SimMemory {
    /// A region of `len` bytes, each 0xa5.
    pub fn new(len: usize) -> Self {
        SimMemory::from(vec![0xa5; len])
    }

    /// A copy of what it holds.
    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes.borrow()[self.start..self.start + self.len].to_vec()
    }

    fn range(&self, at: usize, len: usize) -> Result<core::ops::Range<usize>, OutOfBounds> {
        let end = at.checked_add(len).filter(|end| *end <= self.len).ok_or(OutOfBounds)?;
        Ok(self.start + at..self.start + end)
    }
}

impl From<Vec<u8>> for SimMemory {
    fn from(bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        SimMemory { bytes: Rc::new(RefCell::new(bytes)), start: 0, len }
    }
}

impl Memory for SimMemory {
    fn len(&self) -> usize {
        self.len
    }

    fn copy_sum(&self, at: usize, src: &[u8]) -> Result<Sum, OutOfBounds> {
        let range = self.range(at, src.len())?;
        Sum::copy(&mut self.bytes.borrow_mut()[range], src).ok_or(OutOfBounds)
    }

    fn write(&self, at: usize, src: &[u8]) -> Result<(), OutOfBounds> {
        let range = self.range(at, src.len())?;
        self.bytes.borrow_mut()[range].copy_from_slice(src);
        Ok(())
    }

    fn read_sum(&self, at: usize, dst: &mut [u8]) -> Result<Sum, OutOfBounds> {
        let range = self.range(at, dst.len())?;
        Sum::copy(dst, &self.bytes.borrow()[range]).ok_or(OutOfBounds)
    }

    fn sum(&self, at: usize, len: usize) -> Result<Sum, OutOfBounds> {
        Ok(Sum::of(&self.bytes.borrow()[self.range(at, len)?]))
    }

    fn move_within(&self, from: usize, to: usize, len: usize) -> Result<(), OutOfBounds> {
        let (from, to) = (self.range(from, len)?, self.range(to, len)?);
        self.bytes.borrow_mut().copy_within(from, to.start);
        Ok(())
    }

    fn slice(&self, at: usize, len: usize) -> Result<Self, OutOfBounds> {
        let range = self.range(at, len)?;
        Ok(SimMemory { bytes: self.bytes.clone(), start: range.start, len })
    }
}

/// A sink whose appetite the test sets.
#[derive(Clone, Debug, Default)]
pub struct SimWriter(pub Rc<RefCell<WriterState>>);

/// What a [`SimWriter`] has taken and how it goes on.
#[derive(Debug, Default)]
pub struct WriterState {
    /// What was taken.
    pub taken: Vec<u8>,
    /// Most bytes taken by each of the next calls; when used up, everything is taken.
    pub appetite: VecDeque<usize>,
    /// Error given once this many bytes were taken.
    pub fail_at: Option<(usize, i32)>,
    /// Calls so far.
    pub calls: usize,
}

impl Writer for SimWriter {
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<usize, HostError> {
        let mut state = self.0.borrow_mut();
        state.calls += 1;
        assert_eq!(offset, state.taken.len() as u64, "bytes are offered in order");
        if let Some((at, code)) = state.fail_at
            && state.taken.len() >= at
        {
            return Err(HostError(code));
        }
        let n = state.appetite.pop_front().unwrap_or(data.len()).min(data.len());
        state.taken.extend_from_slice(&data[..n]);
        Ok(n)
    }
}

/// A source over bytes that the test can change.
#[derive(Clone, Debug, Default)]
pub struct SimReader(pub Rc<RefCell<ReaderState>>);

/// What a [`SimReader`] gives.
#[derive(Debug, Default)]
pub struct ReaderState {
    /// The file.
    pub bytes: Vec<u8>,
    /// Most bytes given by one call; 0: as many as asked for.
    pub piece: usize,
    /// Error given by the next calls, by number of call.
    pub errors: VecDeque<Option<i32>>,
    /// Offsets and lengths asked for.
    pub log: Vec<(u64, usize)>,
}

impl Reader for SimReader {
    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, HostError> {
        let mut state = self.0.borrow_mut();
        state.log.push((offset, buf.len()));
        if let Some(Some(code)) = state.errors.pop_front() {
            return Err(HostError(code));
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(state.bytes.len());
        let mut n = buf.len().min(state.bytes.len() - start);
        if state.piece > 0 {
            n = n.min(state.piece);
        }
        buf[..n].copy_from_slice(&state.bytes[start..start + n]);
        Ok(n)
    }
}

/// A pager over one region; counts what is lent.
#[derive(Clone, Debug)]
pub struct SimPager {
    /// The file.
    pub file: SimMemory,
    /// Bytes of a page.
    pub page: usize,
    /// Offsets lent and not yet released.
    pub lent: Rc<RefCell<Vec<u64>>>,
    /// How often a page was released.
    pub released: Rc<RefCell<Vec<u64>>>,
}

impl Pager for SimPager {
    type Memory = SimMemory;

    fn map(&mut self, offset: u64, len: usize) -> Result<SimMemory, HostError> {
        let at = usize::try_from(offset).unwrap_or(usize::MAX).min(self.file.len());
        let in_page = self.page - at % self.page;
        let n = len.min(in_page).min(self.file.len() - at);
        if n > 0 {
            self.lent.borrow_mut().push(offset);
        }
        self.file.slice(at, n).map_err(|_| HostError(-5))
    }

    fn release(&mut self, offset: u64, _page: &SimMemory) {
        let mut lent = self.lent.borrow_mut();
        let at = lent.iter().position(|o| *o == offset).expect("only what is lent is released");
        lent.remove(at);
        self.released.borrow_mut().push(offset);
    }
}

/// Keeps lease messages.
#[derive(Clone, Debug, Default)]
pub struct SimLease(pub Rc<RefCell<StoredParts>>);

/// The messages a lease was given.
pub type StoredParts = Vec<(LeasePart, Vec<u8>)>;

impl LeaseStore for SimLease {
    fn clear(&mut self) {
        self.0.borrow_mut().clear();
    }

    fn store(&mut self, part: LeasePart, message: &[u8]) {
        self.0.borrow_mut().push((part, message.to_vec()));
    }
}

/// A NIC whose sent frames the test collects.
#[derive(Clone, Debug)]
pub struct SimNic {
    /// What the test looks at and sets.
    pub state: Rc<RefCell<NicState>>,
    buffer: Vec<u8>,
}

/// State of a [`SimNic`].
#[derive(Debug)]
pub struct NicState {
    /// What the NIC can do.
    pub caps: NicCaps,
    /// Whether it lends transmit buffers.
    pub lends: bool,
    /// Frames sent.
    pub sent: VecDeque<Vec<u8>>,
    /// Tokens of frames sent, of an asynchronous NIC.
    pub tokens: VecDeque<Token>,
    /// What the next sends answer: `Some` of an error. Empty: sent.
    pub script: VecDeque<Option<SendError>>,
    /// Groups last asked for.
    pub groups: Vec<[u8; 6]>,
}

impl SimNic {
    /// A NIC that copies into a buffer it lends, or into the stack's when `lends` is not set.
    pub fn new(caps: NicCaps, lends: bool) -> Self {
        let state = NicState {
            caps,
            lends,
            sent: VecDeque::new(),
            tokens: VecDeque::new(),
            script: VecDeque::new(),
            groups: Vec::new(),
        };
        SimNic { state: Rc::new(RefCell::new(state)), buffer: Vec::new() }
    }

    fn accept(&mut self, frame: Vec<u8>, token: Token) -> Result<(), SendError> {
        let mut state = self.state.borrow_mut();
        if let Some(Some(error)) = state.script.pop_front() {
            return Err(error);
        }
        assert!(frame.len() >= 60, "frames are padded");
        state.sent.push_back(frame);
        if state.caps.contains(NicCaps::ASYNC) {
            state.tokens.push_back(token);
        }
        Ok(())
    }
}

impl Nic for SimNic {
    type Memory = SimMemory;

    fn caps(&self) -> NicCaps {
        self.state.borrow().caps
    }

    fn send(&mut self, pieces: &mut Pieces<'_, SimMemory>, token: Token) -> Result<(), SendError> {
        let mut frame = Vec::new();
        let mut count = 0;
        while let Some(span) = pieces.take() {
            count += 1;
            match span {
                Span::Bytes(bytes) => frame.extend_from_slice(bytes),
                Span::Memory { memory, at, len } => frame.extend_from_slice(&memory.to_vec()[at..at + len]),
            }
        }
        assert!(count == 1 || self.caps().contains(NicCaps::GATHER));
        self.accept(frame, token)
    }

    fn has_tx_buffer(&self) -> bool {
        self.state.borrow().lends
    }

    fn tx_buffer(&mut self, len: usize) -> Option<&mut [u8]> {
        self.buffer.resize(len, 0x5a);
        Some(&mut self.buffer)
    }

    fn send_buffer(&mut self, len: usize, token: Token) -> Result<(), SendError> {
        if len == 0 {
            return Ok(());
        }
        let frame = self.buffer[..len].to_vec();
        self.accept(frame, token)
    }

    fn set_rx_filter(&mut self, groups: &[[u8; 6]]) {
        self.state.borrow_mut().groups = groups.to_vec();
    }
}

/// The host of a test: chance from a seed, a log that is kept.
#[derive(Clone, Debug)]
pub struct SimHost {
    state: u64,
    /// What was logged.
    pub log: Rc<RefCell<Vec<(LogEvent, u64, u64)>>>,
}

impl SimHost {
    /// A host whose chance follows from `seed`.
    pub fn new(seed: u64) -> Self {
        SimHost { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678), log: Rc::default() }
    }
}

/// The next number of a splitmix64 generator.
pub fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Host for SimHost {
    type Memory = SimMemory;
    type Nic = SimNic;
    type Writer = SimWriter;
    type Reader = SimReader;
    type Pager = SimPager;
    type Text = Vec<u8>;
    type Lease = SimLease;

    fn random(&mut self) -> u32 {
        (splitmix(&mut self.state) >> 32) as u32
    }

    fn log(&mut self, event: LogEvent, a: u64, b: u64) {
        self.log.borrow_mut().push((event, a, b));
    }
}
