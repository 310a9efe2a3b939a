//! Sending a file: the operation.

use super::send::Sending;
use super::session::Session;
use super::transfer::Transfer;
use super::{Mode, Tuning};
use crate::client::operation::{Cx, Datagram, Operation, Server, Step};
use crate::stack::icmp::IcmpError;
use crate::storage::error::Error;
use crate::storage::host::{Host, SourceOf};

/// What to send.
pub struct Request<H: Host> {
    /// To whom; port 0: 69.
    pub server: Server<H::Text>,
    /// File name as the server is to know it, without NUL, at most about 450 bytes.
    pub path: H::Text,
    /// Octet, or netascii.
    pub mode: Mode,
    /// Where from. A region must not change until the operation has ended.
    pub source: SourceOf<H>,
    /// Bytes of the file. `None`: the whole region, or until the source ends.
    pub size: Option<u64>,
    /// Numbers. Blocks of what is no region are never larger than a frame.
    pub tuning: Tuning,
}

/// The operation; its result is the number of bytes of the file. It ends with [`Error::EndOfFile`] when the source ends
/// before the size promised.
pub struct Put<H: Host>(Transfer<H, Sending<H>>);

impl<H: Host> Put<H> {
    /// A transfer that has yet to begin.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a server that is no host, an empty path or impossible numbers.
    pub fn new(request: Request<H>) -> Result<Self, Error> {
        let Request { server: Server { name, addr, port }, path, mode, source, size, tuning } = request;
        let session = Session::new(tuning, addr, port)?;
        let way = Sending::new(source, size, mode == Mode::Netascii);
        Ok(Put(Transfer::new(name, path, mode, session, way)?))
    }

    /// Block size and window agreed with the server.
    pub fn agreed(&self) -> (u16, u16) {
        (self.0.session.blksize, self.0.session.window)
    }
}

impl<H: Host> Operation<H> for Put<H> {
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        self.0.poll(cx)
    }

    fn datagram(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>) {
        self.0.datagram(cx, datagram);
    }

    fn icmp_error(&mut self, cx: &mut Cx<'_, '_, H>, error: &IcmpError) {
        self.0.icmp_error(cx, error);
    }

    fn cancel(&mut self, cx: &mut Cx<'_, '_, H>) {
        self.0.cancel(cx);
    }
}
