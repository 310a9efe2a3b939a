//! From a URL's name to a connection: the server's address is looked up, and a connection that waits is taken or one opened.

use super::{Get, Go, Stage};
use crate::client::dns::Resolved;
use crate::client::http::url::Url;
use crate::client::operation::Cx;
use crate::storage::error::{Error, Result};
use crate::storage::host::{Endpoint, Host};
use crate::storage::slots::Key;
use crate::tcp::Options;
use core::net::Ipv4Addr;

impl<H: Host> Get<H> {
    #[inline(never)]
    pub(super) fn look_up(&mut self, cx: &mut Cx<'_, '_, H>) -> Result<Go> {
        match self.resolve(cx) {
            None => Ok(Go::On),
            Some(Resolved::Pending(at)) => Ok(Go::At(at)),
            Some(Resolved::Failed(why)) => Err(why),
            Some(Resolved::Ready(addr)) => {
                let port = Url::parse(self.place(cx.shared)).map_or(0, |url| url.port);
                self.dial(cx, Endpoint { addr, port })?;
                Ok(Go::On)
            }
        }
    }

    /// The name lies in this frame alone.
    #[inline(never)]
    fn resolve(&mut self, cx: &mut Cx<'_, '_, H>) -> Option<Resolved> {
        let name = self.name(cx.shared);
        let Stage::Resolve(lookup) = &mut self.stage else { return None };
        Some(lookup.poll(cx, &name))
    }

    /// Takes a connection that waits, or opens one.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn dial(&mut self, cx: &mut Cx<'_, '_, H>, to: Endpoint) -> Result<()> {
        self.heard = (0, cx.stack.now);
        self.stage = Stage::Connect;
        self.reused = cx.shared.http.reuse(self.job, to);
        if !self.reused { self.open(cx, to) } else { Ok(()) }
    }

    #[inline(never)]
    pub(super) fn open(&mut self, cx: &mut Cx<'_, '_, H>, to: Endpoint) -> Result<()> {
        self.hang_up(cx, true);
        self.reused = false;
        let mut opened = self.open_line(cx, to);
        if opened == Err(Error::NoSlot) {
            // What only waits makes room.
            cx.shared.http.make_room(cx.tcp, cx.stack);
            opened = self.open_line(cx, to);
        }
        let key = opened?;
        if let Some(job) = cx.shared.http.job_mut(self.job) {
            job.line = Some(key);
            job.to = to;
        }
        Ok(())
    }

    #[inline(never)]
    fn open_line(&self, cx: &mut Cx<'_, '_, H>, to: Endpoint) -> Result<Key> {
        let local = Endpoint { addr: Ipv4Addr::UNSPECIFIED, port: 0 };
        let mut options = Options { nagle: false, connect_timeout: self.tuning.timeout(), ..Options::default() };
        if self.tuning.receive_max != 0 {
            options.recv_max = self.tuning.receive_max;
        }
        cx.tcp.connect(cx.stack, local, to, options)
    }
}
