//! Receiving a file: the operation.

use super::dest::{Dest, Target};
use super::receive::Receiving;
use super::session::Session;
use super::transfer::{Stage, Transfer};
use super::{Mode, Tuning};
use crate::client::engine::Shared;
#[cfg(feature = "file")]
use crate::client::file::pull::Pull;
use crate::client::operation::{Cx, Datagram, Operation, Server, Step};
use crate::stack::icmp::IcmpError;
use crate::stack::landing::{Flow, Place, Spot};
use crate::storage::error::Error;
use crate::storage::host::{Host, SinkOf};
use crate::storage::time::Duration;
use crate::udp::lane::Arrived;
use core::net::Ipv4Addr;

/// What to receive.
pub struct Request<H: Host> {
    /// From whom; port 0: 69.
    pub server: Server<H::Text>,
    /// File name as the server knows it, without NUL, at most about 450 bytes.
    pub path: H::Text,
    /// Octet, or netascii.
    pub mode: Mode,
    /// Where to.
    pub sink: SinkOf<H>,
    /// Numbers.
    pub tuning: Tuning,
    /// How long the sink may take nothing; zero: [`super::DEFAULT_SINK_STALL`].
    pub sink_stall: Duration,
}

/// The operation; its result is the number of bytes of the file.
pub struct Get<H: Host>(Transfer<H, Receiving<H>>);

impl<H: Host> Get<H> {
    /// A transfer that has yet to begin.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a server that is no host, an empty path or impossible numbers.
    pub fn new(request: Request<H>) -> Result<Self, Error> {
        let Request { server, path, mode, sink, tuning, sink_stall } = request;
        let dest = Dest::new(Target::Sink(sink), mode);
        Get::with(server, path, mode, dest, tuning, sink_stall)
    }

    fn with(
        server: Server<H::Text>,
        path: H::Text,
        mode: Mode,
        dest: Dest<H>,
        tuning: Tuning,
        sink_stall: Duration,
    ) -> Result<Self, Error> {
        let Server { name, addr, port } = server;
        let session = Session::new(tuning, addr, port)?;
        Ok(Get(Transfer::new(name, path, mode, session, Receiving::new(dest, sink_stall))?))
    }

    /// Block size and window agreed with the server.
    pub fn agreed(&self) -> (u16, u16) {
        (self.0.session.blksize, self.0.session.window)
    }
}

/// What an open file asks of its transfer.
#[cfg(feature = "file")]
impl<H: Host> Get<H> {
    /// A transfer to a reader, of octets.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn pulled(
        server: Server<H::Text>,
        path: H::Text,
        pull: Pull<H::Memory>,
        tuning: Tuning,
    ) -> Result<Self, Error> {
        let dest = Dest::new(Target::Pull(pull), Mode::Octet);
        Get::with(server, path, Mode::Octet, dest, tuning, Duration::ZERO)
    }

    /// Ends the attempt under way, if there is one, and begins again with the next poll.
    pub(crate) fn again(&mut self, cx: &mut Cx<'_, '_, H>) {
        self.0.again(cx);
    }

    /// Closes the port of a transfer that has ended.
    pub(crate) fn close(&mut self, cx: &mut Cx<'_, '_, H>) {
        self.0.session.close(cx);
    }

    /// The reader the blocks go to.
    pub(crate) fn pull(&mut self) -> Option<&mut Pull<H::Memory>> {
        match &mut self.0.way.dest.target {
            Target::Pull(pull) => Some(pull),
            Target::Sink(_) => None,
        }
    }

    /// The same, to look at.
    pub(crate) fn reader(&self) -> Option<&Pull<H::Memory>> {
        match &self.0.way.dest.target {
            Target::Pull(pull) => Some(pull),
            Target::Sink(_) => None,
        }
    }

    /// Position up to which all bytes have come, and the first block of which nothing has.
    pub(crate) fn edges(&self) -> (u64, u64) {
        match &self.0.stage {
            Stage::Open(course) => course.edges(&self.0.session),
            Stage::Done(length) => (*length, u64::MAX),
            _ => (0, 0),
        }
    }

    /// Whether the server has agreed to send.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.0.stage, Stage::Open(_) | Stage::Done(_))
    }

    /// Bytes of the file, once all have come.
    pub(crate) fn finished(&self) -> Option<u64> {
        match self.0.stage {
            Stage::Done(length) => Some(length),
            _ => None,
        }
    }

    /// Whether an acknowledgement waits for the reader.
    pub(crate) fn is_held(&self) -> bool {
        matches!(&self.0.stage, Stage::Open(course) if course.is_held())
    }
}

impl<H: Host> Operation<H> for Get<H> {
    #[inline]
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        self.0.poll(cx)
    }

    #[inline]
    fn place(&self, _: &Shared<'_>, flow: &Flow, head: &[u8], len: usize) -> Place<H::Memory> {
        match &self.0.stage {
            Stage::Open(course) => self.0.way.place(course, &self.0.session, flow, head, len),
            _ => Place::Stage,
        }
    }

    fn guess(&self, _: &Shared<'_>, src: Ipv4Addr, nth: usize) -> Option<Spot<H::Memory>> {
        match &self.0.stage {
            Stage::Open(course) => self.0.way.guess(course, &self.0.session, src, nth),
            _ => None,
        }
    }

    fn patience(&self, _: &Shared<'_>) -> Duration {
        self.0.session.patience()
    }

    #[inline]
    fn usual(&mut self, cx: &mut Cx<'_, '_, H>, arrived: &Arrived<'_>) -> Option<Step> {
        let Stage::Open(course) = &mut self.0.stage else { return None };
        self.0.way.usual(course, &mut self.0.session, cx, arrived)?;
        Some(self.0.poll_usual(cx))
    }

    #[inline]
    fn datagram(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>) {
        if let (Some(_), &[_, _, a, b, ..]) = (datagram.landed, datagram.payload) {
            let wire = u16::from_be_bytes([a, b]);
            return self.0.with_course(cx, |way, course, session, cx| way.block(course, session, cx, datagram, wire));
        }
        self.0.datagram(cx, datagram);
    }

    fn icmp_error(&mut self, cx: &mut Cx<'_, '_, H>, error: &IcmpError) {
        self.0.icmp_error(cx, error);
    }

    fn cancel(&mut self, cx: &mut Cx<'_, '_, H>) {
        self.0.cancel(cx);
    }
}
