//! How calls get to a server and replies back: a UDP socket or a TCP connection on a privileged port. Over TCP each call is
//! a record of one fragment (RFC 5531 §11); a connection that ends is opened again, and calls that wait are to be sent
//! again on it.

use super::{CALL_HEADER, Net};
use crate::client::operation::Datagram;
use crate::stack::egress::TxError;
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host, Span, random_below};
use crate::storage::slots::Key;
#[cfg(feature = "tcp")]
use crate::storage::time::Duration;
use crate::storage::time::Instant;
#[cfg(feature = "tcp")]
use crate::tcp::{Events, Options};
#[cfg(feature = "tcp")]
use crate::wire::rpc::RecordMark;
use crate::wire::rpc::{Call, Reply};
use crate::wire::xdr::Encoder;
use core::net::Ipv4Addr;

/// Privileged ports that calls are sent from: those that servers trust, without those that have names.
const PORTS: core::ops::RangeInclusive<u16> = 665..=1023;
/// How long a connection may take to be established.
#[cfg(feature = "tcp")]
const CONNECT: Duration = Duration::from_secs(10);
/// Longest arguments of a call but for a path or name, in bytes.
const ARGUMENTS: usize = 112;

/// What a call carries: fixed arguments, then perhaps a path or name of any length as the last.
pub struct Arguments<'t> {
    buffer: [u8; CALL_HEADER + ARGUMENTS],
    len: usize,
    text: Option<&'t [u8]>,
}

impl<'t> Arguments<'t> {
    /// No call yet. It is made where it lies: it is large for a machine with 2 KiB of stack.
    pub const fn new() -> Self {
        Arguments { buffer: [0; CALL_HEADER + ARGUMENTS], len: 0, text: None }
    }

    /// Makes it a call with these arguments, after which `text` follows as opaque data.
    ///
    /// # Errors
    /// [`Error::Invalid`] if they are longer than any call's.
    pub fn set(
        &mut self,
        call: &Call<'_>,
        text: Option<&'t [u8]>,
        emit: impl FnOnce(&mut Encoder<'_>) -> crate::wire::Result<()>,
    ) -> Result<(), Error> {
        let mut e = Encoder::new(&mut self.buffer);
        let build = || {
            call.emit(&mut e)?;
            emit(&mut e)?;
            match text {
                Some(text) => e.u32(u32::try_from(text.len()).map_err(|_| crate::wire::Error::NoRoom)?),
                None => Ok(()),
            }
        };
        build().map_err(|_| Error::Invalid)?;
        self.len = e.len();
        self.text = text;
        Ok(())
    }
}

impl Default for Arguments<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether calls can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// They can.
    Yes,
    /// Not before this time, or before something comes.
    At(Instant),
}

/// The way to the programs of one server.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    /// Calls travel over TCP.
    stream: bool,
    socket: Option<Key>,
    /// Where the connection leads.
    #[cfg(feature = "tcp")]
    line: Line,
}

/// A connection.
#[cfg(feature = "tcp")]
#[derive(Clone, Copy, Debug)]
struct Line {
    key: Option<Key>,
    to: Endpoint,
    open: bool,
    /// Connections opened so far, and when the last was.
    opened: u16,
    since: Instant,
    retry: Instant,
    failures: u8,
}

/// First wait before a connection is opened again; it doubles.
#[cfg(feature = "tcp")]
const RECONNECT: Duration = Duration::from_millis(100);
/// Most doublings.
#[cfg(feature = "tcp")]
const MAX_DOUBLINGS: u8 = 5;

/// A privileged port to begin with, and how to go on.
fn ports<H: Host>(net: &mut Net<'_, '_, H>) -> impl Iterator<Item = u16> + use<H> {
    let (first, last) = (*PORTS.start(), *PORTS.end());
    let count = last.wrapping_sub(first).wrapping_add(1);
    let offset = random_below(&mut net.stack.host, u32::from(count)) as u16;
    // A port of ours that is in use is passed over; sockets are few, so one of the first few is free.
    (0..32u16).map(move |n| first.wrapping_add(offset.wrapping_add(n).checked_rem(count).unwrap_or(0)))
}

impl Channel {
    /// No way yet; over TCP if `stream`.
    pub const fn new(stream: bool) -> Self {
        Channel {
            stream,
            socket: None,
            #[cfg(feature = "tcp")]
            line: Line {
                key: None,
                to: Endpoint { addr: Ipv4Addr::UNSPECIFIED, port: 0 },
                open: false,
                opened: 0,
                since: Instant::ZERO,
                retry: Instant::ZERO,
                failures: 0,
            },
        }
    }

    /// Whether calls travel over TCP: nothing is lost then but whole connections.
    pub fn is_stream(&self) -> bool {
        self.stream
    }

    /// Has the next calls travel over TCP, or UDP.
    pub fn set_stream(&mut self, stream: bool) {
        self.stream = stream;
    }

    /// Opens the way to `to` if that has not been done: from a privileged port if one is free, else from another.
    ///
    /// # Errors
    /// [`Error::NoSlot`]: all sockets, or connections, are in use. Over TCP also why the connection has ended, or could
    /// not be opened: what waits is to be sent again when there is another.
    pub fn ready<H: Host>(&mut self, net: &mut Net<'_, '_, H>, to: Endpoint) -> Result<Ready, Error> {
        #[cfg(feature = "tcp")]
        if self.stream {
            return self.connect(net, to);
        }
        let _ = to;
        if self.socket.is_none() {
            let socket = net.open()?;
            self.socket = Some(socket);
            for port in ports(net) {
                if net.udp.bind(socket, None, Endpoint { addr: Ipv4Addr::UNSPECIFIED, port }).is_ok() {
                    break;
                }
            }
        }
        Ok(Ready::Yes)
    }

    /// The socket, once it is open.
    pub fn socket(&self) -> Option<Key> {
        self.socket
    }

    /// Whether a datagram is a reply from `from`.
    pub fn accepts(&self, from: Endpoint, datagram: &Datagram<'_>) -> bool {
        !self.stream && Some(datagram.socket) == self.socket && datagram.meta.src == from
    }

    /// Sends a call.
    ///
    /// # Errors
    /// As [`crate::stack::Stack::send`]; over TCP [`TxError::Busy`]: there is no room.
    pub fn send<H: Host>(&self, net: &mut Net<'_, '_, H>, to: Endpoint, call: &Arguments<'_>) -> Result<(), TxError> {
        let head = call.buffer.get(..call.len).unwrap_or(&[]);
        let text = call.text.unwrap_or(&[]);
        let padding = [0u8; 3];
        let padding = padding.get(..crate::wire::xdr::padding(text.len())).unwrap_or(&[]);
        #[cfg(feature = "tcp")]
        if self.stream {
            return self.send_record(net, &[head, text, padding]);
        }
        let socket = self.socket.ok_or(TxError::Invalid)?;
        if text.is_empty() {
            return net.send(socket, to, &[Span::Bytes(head)]);
        }
        net.send(socket, to, &[Span::Bytes(head), Span::Bytes(text), Span::Bytes(padding)])
    }
}

#[cfg(feature = "tcp")]
impl Channel {
    fn connect<H: Host>(&mut self, net: &mut Net<'_, '_, H>, to: Endpoint) -> Result<Ready, Error> {
        if self.line.to != to {
            self.close(net);
            self.line = Line { to, retry: Instant::ZERO, failures: 0, ..self.line };
        }
        let now = net.now();
        let Some(key) = self.line.key else {
            if now < self.line.retry {
                return Ok(Ready::At(self.line.retry));
            }
            let options = Options { nagle: false, connect_timeout: CONNECT, ..Options::default() };
            let mut result = Err(Error::InUse);
            for port in ports(net).chain([0]) {
                let local = Endpoint { addr: Ipv4Addr::UNSPECIFIED, port };
                result = net.tcp.connect(net.stack, local, to, options);
                if result != Err(Error::InUse) {
                    break;
                }
            }
            match result {
                Ok(key) => self.line.key = Some(key),
                Err(why @ (Error::NetworkDown | Error::NetworkUnreachable)) => return Err(self.lost(net, why)),
                Err(why) => return Err(why),
            }
            self.line.open = false;
            return Ok(Ready::At(Instant::NEVER));
        };
        let state = net.tcp.readiness(key).unwrap_or(Events::CLOSED);
        if state.intersects(Events::CLOSED | Events::FINISHED) {
            let why = net.tcp.error(key).ok().flatten().unwrap_or(Error::ConnectionReset);
            return Err(self.lost(net, why));
        }
        if !state.contains(Events::CONNECTED) {
            return Ok(Ready::At(Instant::NEVER));
        }
        if !self.line.open {
            self.line.open = true;
            self.line.opened = self.line.opened.wrapping_add(1);
            self.line.since = now;
        }
        Ok(Ready::Yes)
    }

    /// Gives the connection up, which has ended because of `why`, or is of no use; another is opened after a while.
    pub fn lost<H: Host>(&mut self, net: &mut Net<'_, '_, H>, why: Error) -> Error {
        if let Some(key) = self.line.key.take() {
            // Should it be gone already, nothing is left to do.
            let _ = net.tcp.abort(net.stack, key);
        }
        let wait = RECONNECT.times(1u64.unbounded_shl(u32::from(self.line.failures)));
        self.line.failures = self.line.failures.saturating_add(1).min(MAX_DOUBLINGS);
        self.line.retry = net.now() + wait;
        why
    }

    /// A reply has come: the connection is of use.
    pub fn heard(&mut self) {
        self.line.failures = 0;
    }

    /// The connection, once it is established.
    pub fn connection(&self) -> Option<Key> {
        self.line.key.filter(|_| self.line.open)
    }

    /// The connection, established or not.
    pub fn connecting(&self) -> Option<Key> {
        self.line.key
    }

    /// Which connection in turn this is: calls sent on an earlier one are lost.
    pub fn number(&self) -> u16 {
        if self.stream { self.line.opened } else { 0 }
    }

    /// When the connection was opened.
    pub fn since(&self) -> Instant {
        self.line.since
    }

    /// Closes the connection, if there is one.
    pub fn close<H: Host>(&mut self, net: &mut Net<'_, '_, H>) {
        if let Some(key) = self.line.key.take() {
            // Should it be gone already, nothing is left to do.
            let _ = net.tcp.close(net.stack, key);
        }
    }

    fn send_record<H: Host>(&self, net: &mut Net<'_, '_, H>, parts: &[&[u8]]) -> Result<(), TxError> {
        let key = self.connection().ok_or(TxError::Busy)?;
        let len: usize = parts.iter().map(|p| p.len()).fold(0, usize::saturating_add);
        let whole = len.saturating_add(RecordMark::LEN);
        if net.tcp.send_room(key).map_err(|_| TxError::Busy)? < whole {
            return Err(TxError::Busy);
        }
        let mark = RecordMark { last: true, len: len as u32 }.emit();
        for part in [&mark[..]].iter().chain(parts) {
            // There is room for all.
            net.tcp.send(key, part).map_err(|_| TxError::Busy)?;
        }
        Ok(())
    }
}

#[cfg(not(feature = "tcp"))]
impl Channel {
    /// Which connection in turn this is: there are none.
    pub fn number(&self) -> u16 {
        0
    }

    /// Does nothing.
    pub fn heard(&mut self) {}

    /// There are no connections.
    pub fn since(&self) -> Instant {
        Instant::ZERO
    }

    /// Does nothing.
    pub fn lost<H: Host>(&mut self, _: &mut Net<'_, '_, H>, why: Error) -> Error {
        why
    }
}

/// Takes a reply apart; what does not parse is `Err` with its transaction number, `None` has none.
pub fn parse<'d, H: Host>(net: &mut Net<'_, '_, H>, payload: &'d [u8]) -> Option<Result<Reply<'d>, u32>> {
    match Reply::parse(payload) {
        Ok(reply) => Some(Ok(reply)),
        Err(_) => match payload.first_chunk::<4>() {
            Some(xid) => Some(Err(u32::from_be_bytes(*xid))),
            None => {
                net.stack.stats.count(Counter::DropRpcMalformed);
                None
            }
        },
    }
}
