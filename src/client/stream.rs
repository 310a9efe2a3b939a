//! TCP as operations: opening a connection, by name or address, and sending a file over one. What a connection is and
//! does is `tcp`'s.

use super::dns::{Resolve, Resolved};
use super::operation::{Cx, Operation, Server, Step};
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host, SourceOf};
use crate::storage::slots::Key;
use crate::storage::time::{Duration, Instant};
use crate::tcp::{Events, Options, Ticket};

/// How often it is looked how far a file has come.
const LOOK: Duration = Duration::from_millis(100);

/// The number that is the result of [`Connect`].
pub fn number(key: Key) -> u64 {
    (u64::from(key.generation) << 16) | u64::from(key.index)
}

/// The connection that such a number names.
pub fn named(number: u64) -> Key {
    Key { index: number as u16, generation: (number >> 16) as u16 }
}

/// Opens a connection. The result is its [`number`]; it is the host's then, whatever becomes of the operation.
pub struct Connect<H: Host> {
    server: Server<H::Text>,
    resolve: Option<Resolve>,
    local: Endpoint,
    options: Options,
    key: Option<Key>,
    /// The host knows of the connection.
    told: bool,
}

impl<H: Host> Connect<H> {
    /// A connection to `server` that is yet to be opened, from `local`, which may leave address and port open.
    ///
    /// # Errors
    /// [`Error::Invalid`]: port 0.
    pub fn new(server: Server<H::Text>, local: Endpoint, options: Options) -> Result<Self, Error> {
        if server.port == 0 {
            return Err(Error::Invalid);
        }
        let resolve = server.name.is_some().then(Resolve::new);
        Ok(Connect { server, resolve, local, options, key: None, told: false })
    }

    /// The connection, once its SYN is due.
    pub fn connection(&self) -> Option<Key> {
        self.key
    }

    /// Notes that the host is told of the connection; whether that is the first time.
    pub fn tell(&mut self) -> bool {
        !core::mem::replace(&mut self.told, true)
    }

    /// The connection, if the host has never been told of it.
    pub fn untold(&self) -> Option<Key> {
        self.key.filter(|_| !self.told)
    }
}

impl<H: Host> Operation<H> for Connect<H> {
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        if let (Some(resolve), Some(name)) = (&mut self.resolve, &self.server.name) {
            match resolve.poll(cx, name.as_ref()) {
                Resolved::Pending(at) => return Step::Pending(at),
                Resolved::Failed(e) => return Step::Done(Err(e)),
                Resolved::Ready(addr) => {
                    self.server.addr = addr;
                    self.resolve = None;
                }
            }
        }
        let Some(key) = self.key else {
            let remote = Endpoint { addr: self.server.addr, port: self.server.port };
            return match cx.tcp.connect(cx.stack, self.local, remote, self.options) {
                Ok(key) => {
                    self.key = Some(key);
                    // The connection's own timer ends it.
                    Step::Pending(Instant::NEVER)
                }
                Err(e) => Step::Done(Err(e)),
            };
        };
        match cx.tcp.readiness(key) {
            Ok(now) if now.contains(Events::CLOSED) => {
                let why = cx.tcp.error(key).ok().flatten().unwrap_or(Error::ConnectionReset);
                // Nobody else knows of it.
                let _ = cx.tcp.close(cx.stack, key);
                Step::Done(Err(why))
            }
            Ok(now) if now.contains(Events::CONNECTED) => Step::Done(Ok(number(key))),
            Ok(_) => Step::Pending(Instant::NEVER),
            Err(e) => Step::Done(Err(e)),
        }
    }

    fn datagram(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &super::operation::Datagram<'_>) {
        if let (Some(resolve), Some(name)) = (&mut self.resolve, &self.server.name) {
            resolve.datagram(cx, name.as_ref(), datagram);
        }
    }

    fn icmp_error(&mut self, cx: &mut Cx<'_, '_, H>, error: &crate::stack::icmp::IcmpError) {
        if let Some(resolve) = &mut self.resolve {
            resolve.icmp_error(cx, error);
        }
    }

    fn cancel(&mut self, cx: &mut Cx<'_, '_, H>) {
        if let Some(key) = self.key {
            // Should it be gone already, nothing is left to do.
            let _ = cx.tcp.abort(cx.stack, key);
        }
    }
}

/// Sends a file. The result is its bytes, all of them acknowledged; progress counts those that are.
pub struct Sendfile<H: Host> {
    connection: Key,
    source: Option<SourceOf<H>>,
    offset: u64,
    count: u64,
    ticket: Option<Ticket>,
}

impl<H: Host> Sendfile<H> {
    /// `count` bytes of `source` from `offset` on, behind what was given to the connection before.
    pub fn new(connection: Key, source: SourceOf<H>, offset: u64, count: u64) -> Self {
        Sendfile { connection, source: Some(source), offset, count, ticket: None }
    }

    /// The connection.
    pub fn connection(&self) -> Key {
        self.connection
    }
}

impl<H: Host> Operation<H> for Sendfile<H> {
    fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        if let Some(source) = self.source.take() {
            match cx.tcp.sendfile(self.connection, source, self.offset, self.count) {
                Ok(ticket) => {
                    cx.tcp.keep_file(self.connection, ticket);
                    self.ticket = Some(ticket);
                }
                // As many files as a connection can have.
                Err(Error::Again) => return Step::Done(Err(Error::NoSlot)),
                Err(e) => return Step::Done(Err(e)),
            }
        }
        cx.progress.total = Some(self.count);
        let Some(ticket) = self.ticket else { return Step::Done(Err(Error::Invalid)) };
        let Ok(state) = cx.tcp.file(self.connection, ticket) else {
            // A kept file outlives its connection; only one that another has taken is gone.
            return Step::Done(Err(Error::ConnectionAborted));
        };
        cx.progress.done = state.acknowledged;
        match state.result {
            None => Step::Pending(cx.now() + LOOK),
            Some(result) => {
                // Its source is the host's again.
                let _ = cx.tcp.take_file(self.connection, ticket);
                Step::Done(result.map(|()| state.acknowledged))
            }
        }
    }

    fn cancel(&mut self, cx: &mut Cx<'_, '_, H>) {
        if let Some(ticket) = self.ticket {
            // Sent bytes must still be acknowledged, and lent pages given back: at once means an end of the connection.
            cx.tcp.drop_file(cx.stack, self.connection, ticket);
        }
    }
}
