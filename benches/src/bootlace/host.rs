//! The host that Bootlace is measured on: memory by address, and a NIC that is the shared line.

use crate::nic::Line;
use crate::region::Region;
use bootlace::sim::host::{SimLease, SimReader, SimWriter};
use bootlace::stack::egress::MAX_BODY;
use bootlace::storage::host::{Host, HostError, LogEvent, Nic, NicCaps, Pager, Pieces, SendError, Span, Token};
use core::ptr::NonNull;

/// The NIC's sending side. It is told where the line is before anything is sent.
#[derive(Debug)]
pub struct Port {
    line: Option<NonNull<Line>>,
    caps: NicCaps,
}

impl Port {
    /// A port that can do so much.
    pub fn new(caps: NicCaps) -> Port {
        Port { line: None, caps }
    }

    /// Sends go to `line` from now on. The line must stay where it is, untouched by others, until the next call.
    #[inline]
    pub fn attach(&mut self, line: &mut Line) {
        self.line = Some(NonNull::from(line));
    }

    #[inline]
    fn line(&mut self) -> Result<&mut Line, SendError> {
        match &mut self.line {
            // SAFETY: as `attach` demands.
            Some(line) => Ok(unsafe { line.as_mut() }),
            None => Err(SendError::Busy),
        }
    }
}

/// The bytes of a span.
#[inline]
fn piece<'s>(span: &Span<'s, Region>) -> Result<&'s [u8], SendError> {
    match span {
        Span::Bytes(bytes) => Ok(bytes),
        Span::Memory { memory, at, len } => memory.bytes(*at, *len).map_err(|_| SendError::Failed(HostError(-14))),
    }
}

impl Nic for Port {
    type Memory = Region;

    fn caps(&self) -> NicCaps {
        self.caps
    }

    #[inline]
    fn send(&mut self, pieces: &mut Pieces<'_, Region>, _: Token) -> Result<(), SendError> {
        let summed = !self.caps.contains(NicCaps::TX_L4_SUM);
        // Where each span is and how long, as a device is told.
        let mut spans = heapless::Vec::<&[u8], { MAX_BODY + 2 }>::new();
        let mut len = 0;
        while let Some(span) = pieces.take() {
            let bytes = piece(&span)?;
            len += bytes.len();
            spans.push(bytes).map_err(|_| SendError::Failed(HostError(-22)))?;
        }
        let head = spans.first().copied().unwrap_or_default();
        self.line()?.send_spans(head, len, summed, || spans.concat());
        Ok(())
    }

    #[inline]
    fn send_pair(&mut self, head: &[u8], body: Span<'_, Region>, _: Token) -> Result<(), SendError> {
        let summed = !self.caps.contains(NicCaps::TX_L4_SUM);
        let spans = core::hint::black_box([head, piece(&body)?]);
        self.line()?.send_spans(head, head.len() + spans[1].len(), summed, || spans.concat());
        Ok(())
    }

    #[inline]
    fn has_tx_buffer(&self) -> bool {
        !self.caps.contains(NicCaps::GATHER)
    }

    #[inline]
    fn tx_buffer(&mut self, len: usize) -> Option<&mut [u8]> {
        self.line().ok().map(|line| line.buffer(len))
    }

    #[inline]
    fn send_buffer(&mut self, len: usize, _: Token) -> Result<(), SendError> {
        if len > 0 {
            self.line()?.send(len);
        }
        Ok(())
    }

    fn set_rx_filter(&mut self, _: &[[u8; 6]]) {}
}

/// Lends no pages.
#[derive(Clone, Copy, Debug)]
pub struct NoPager;

impl Pager for NoPager {
    type Memory = Region;
    fn map(&mut self, _: u64, _: usize) -> Result<Region, HostError> {
        Err(HostError(-5))
    }
    fn release(&mut self, _: u64, _: &Region) {}
}

/// The host.
#[derive(Debug)]
pub struct Bare(pub u32);

impl Host for Bare {
    type Memory = Region;
    type Nic = Port;
    type Writer = SimWriter;
    type Reader = SimReader;
    type Pager = NoPager;
    type Text = &'static [u8];
    type Lease = SimLease;

    fn random(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
        self.0 ^ (self.0 >> 15)
    }

    fn log(&mut self, _: LogEvent, _: u64, _: u64) {}
}
