//! How calls get to a server and replies back: a UDP socket on a privileged port.

use super::{CALL_HEADER, Net};
use crate::client::operation::Datagram;
use crate::stack::egress::TxError;
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host, Span, random_below};
use crate::storage::slots::Key;
use crate::wire::rpc::{Call, Reply};
use crate::wire::xdr::Encoder;
use core::net::Ipv4Addr;

/// Privileged ports that calls are sent from: those that servers trust, without those that have names.
const PORTS: core::ops::RangeInclusive<u16> = 665..=1023;
/// Longest arguments of a call but for a path or name, in bytes.
const ARGUMENTS: usize = 112;

/// What a call carries: fixed arguments, then perhaps a path or name of any length as the last.
pub struct Arguments<'t> {
    buffer: [u8; CALL_HEADER + ARGUMENTS],
    len: usize,
    text: Option<&'t [u8]>,
}

impl<'t> Arguments<'t> {
    /// A call with these arguments, after which `text` follows as opaque data.
    ///
    /// # Errors
    /// [`Error::Invalid`] if they are longer than any call's.
    pub fn new(
        call: &Call<'_>,
        text: Option<&'t [u8]>,
        emit: impl FnOnce(&mut Encoder<'_>) -> crate::wire::Result<()>,
    ) -> Result<Self, Error> {
        let mut buffer = [0; CALL_HEADER + ARGUMENTS];
        let mut e = Encoder::new(&mut buffer);
        let build = || {
            call.emit(&mut e)?;
            emit(&mut e)?;
            match text {
                Some(text) => e.u32(u32::try_from(text.len()).map_err(|_| crate::wire::Error::NoRoom)?),
                None => Ok(()),
            }
        };
        build().map_err(|_| Error::Invalid)?;
        let len = e.len();
        Ok(Arguments { buffer, len, text })
    }
}

/// The way to the programs of one server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Channel {
    socket: Option<Key>,
}

impl Channel {
    /// No way yet.
    pub const fn new() -> Self {
        Channel { socket: None }
    }

    /// Opens the socket if that has not been done: on a privileged port if one is free, else on another.
    ///
    /// # Errors
    /// [`Error::NoSlot`]: all sockets are in use.
    pub fn open<H: Host>(&mut self, net: &mut Net<'_, '_, H>) -> Result<(), Error> {
        if self.socket.is_some() {
            return Ok(());
        }
        let socket = net.open()?;
        self.socket = Some(socket);
        let (first, last) = (*PORTS.start(), *PORTS.end());
        let count = last.wrapping_sub(first).wrapping_add(1);
        let offset = random_below(&mut net.stack.host, u32::from(count)) as u16;
        // A port of ours that is in use is passed over; sockets are few, so one of the first few is free.
        for n in 0..32u16 {
            let step = offset.wrapping_add(n).checked_rem(count).unwrap_or(0);
            let port = first.wrapping_add(step);
            if net.udp.bind(socket, None, Endpoint { addr: Ipv4Addr::UNSPECIFIED, port }).is_ok() {
                break;
            }
        }
        Ok(())
    }

    /// The socket, once it is open.
    pub fn socket(&self) -> Option<Key> {
        self.socket
    }

    /// Sends a call.
    ///
    /// # Errors
    /// As [`crate::stack::Stack::send`].
    pub fn send<H: Host>(&self, net: &mut Net<'_, '_, H>, to: Endpoint, call: &Arguments<'_>) -> Result<(), TxError> {
        let socket = self.socket.ok_or(TxError::Invalid)?;
        let head = call.buffer.get(..call.len).unwrap_or(&[]);
        match call.text {
            None => net.send(socket, to, &[Span::Bytes(head)]),
            Some(text) => {
                let padding = [0u8; 3];
                let padding = padding.get(..crate::wire::xdr::padding(text.len())).unwrap_or(&[]);
                net.send(socket, to, &[Span::Bytes(head), Span::Bytes(text), Span::Bytes(padding)])
            }
        }
    }

    /// Takes the reply in a datagram apart, if it comes from `from`; what does not parse is `Err` with its transaction
    /// number, `None` is nothing of ours.
    pub fn reply<'d, H: Host>(
        &self,
        net: &mut Net<'_, '_, H>,
        from: Endpoint,
        datagram: &Datagram<'d>,
    ) -> Option<Result<Reply<'d>, u32>> {
        if Some(datagram.socket) != self.socket || datagram.meta.src != from {
            net.stack.stats.count(Counter::DropRpcStale);
            return None;
        }
        match Reply::parse(datagram.payload) {
            Ok(reply) => Some(Ok(reply)),
            Err(_) => match datagram.payload.first_chunk::<4>() {
                Some(xid) => Some(Err(u32::from_be_bytes(*xid))),
                None => {
                    net.stack.stats.count(Counter::DropRpcMalformed);
                    None
                }
            },
        }
    }
}
