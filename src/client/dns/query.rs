//! Looking a name up: queries to one server after the other until one answers (RFC 1035 §7). What is not the answer to the
//! query that is out is dropped (RFC 5452 §9).

use super::{ALIAS, Alias, Candidate, Found, Resolved, Resolver, literal};
use crate::client::operation::{Cx, Datagram, DetailKind, icmp_meaning};
use crate::stack::egress::TxError;
use crate::stack::icmp::IcmpError;
use crate::stack::interface::is_host_address;
use crate::stack::stats::Counter;
use crate::storage::checksum::Sum;
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host};
use crate::storage::slots::Key;
use crate::storage::time::{Duration, Instant};
use crate::wire::cursor::Writer;
use crate::wire::dns::{CLASS_IN, Data, HEADER_LEN, Kind, Message, Name, PORT, Rcode, Section, put_query_header};
use core::net::Ipv4Addr;

/// Addresses kept of an answer.
pub const ADDRESSES: usize = 8;
/// How often each server is asked.
const ROUNDS: u8 = 4;
/// How long an answer is waited for in the first round; twice as long in each that follows.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Wait until a query that could not leave is tried again, if nothing wakes it.
const UNSENT_WAIT: Duration = Duration::from_millis(100);
/// Aliases followed, within one message and over all of them.
const MAX_ALIASES: u8 = 8;

/// Looks up the addresses of a name. Part of an operation, which hands it what comes for it.
#[derive(Clone, Debug, Default)]
pub struct Resolve {
    state: State,
    /// Of the query that is out.
    socket: Option<Key>,
    id: u16,
    server: Option<Endpoint>,
    /// The next query to this question: round × servers + server.
    attempt: u8,
    /// Servers, by position, that need not be asked again.
    useless: u8,
    /// Which of the names that the search list makes of the name is asked for.
    candidate: u8,
    /// An alias is asked for instead, which the resolver holds.
    aliased: bool,
    aliases: u8,
    /// Least time to live of all records that led here, in seconds.
    ttl_s: u32,
    /// When the query that is out is given up.
    deadline: Instant,
    unsent: bool,
    /// What the last server that failed made fail.
    failure: Option<Error>,
    addr: Option<Ipv4Addr>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    New,
    Asking,
    Done(core::result::Result<(), Error>),
}

/// What an answer is worth.
enum Answer {
    /// Not the answer.
    Dropped(Counter),
    /// An answer that cannot be used now: the query is repeated.
    Later,
    /// These addresses.
    Addresses,
    /// The name stands for another, whose address was not told.
    Alias,
    /// There is no such name, or it has no address.
    Negative,
    /// This server cannot tell.
    Useless(Error),
    /// Nobody can.
    Failed(Error),
}

impl Resolve {
    /// A lookup that has not begun.
    pub fn new() -> Self {
        Resolve::default()
    }

    /// Does what is due to look up `name`, which is the same at every call: a name, or a dotted address, which is not asked
    /// for.
    pub fn poll<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>, name: &[u8]) -> Resolved {
        if self.state == State::New {
            self.state = match self.begin(cx, name) {
                None => State::Asking,
                Some(end) => State::Done(end),
            };
        }
        let now = cx.now();
        // Each turn ends, or asks another server once: at most every server in every round, for every candidate.
        for _ in 0..=u8::MAX {
            if let State::Done(end) = self.state {
                return self.end(cx, end);
            }
            if self.socket.is_some() && !self.unsent && now < self.deadline {
                return Resolved::Pending(self.deadline);
            }
            if !self.ask(cx, name) {
                let at = if self.unsent { self.deadline.min(now + UNSENT_WAIT) } else { self.deadline };
                return Resolved::Pending(at);
            }
        }
        self.end(cx, Err(Error::Timeout))
    }

    /// What needs no query: `Some` of the end.
    fn begin<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>, name: &[u8]) -> Option<core::result::Result<(), Error>> {
        if let Some(addr) = literal(name) {
            return Some(self.take(&mut cx.shared.resolver.found, &[addr]));
        }
        let whole = Candidate { name: name.strip_suffix(b".").unwrap_or(name), domain: &[] };
        if whole.labels(&mut |_| Ok(())).is_err() {
            return Some(Err(if name.len() > 253 { Error::NameTooLong } else { Error::Invalid }));
        }
        if cx.shared.resolver.servers().next().is_none() {
            return Some(Err(Error::NetworkUnreachable));
        }
        self.question(cx, name)
    }

    /// Begins with the candidate that is next: from memory if it is there, else every server may be asked. `Some` of the
    /// end.
    fn question<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>, name: &[u8]) -> Option<core::result::Result<(), Error>> {
        let now = cx.now();
        self.restart();
        self.ttl_s = u32::MAX;
        let resolver = &mut cx.shared.resolver;
        let hash = resolver.candidate(name, self.candidate)?.hash();
        let known = resolver.cache.get(now, hash)?;
        Some(self.take(&mut resolver.found, known))
    }

    /// Notes what was found, for whoever polls.
    fn take(&mut self, found: &mut Found, addrs: &[Ipv4Addr]) -> core::result::Result<(), Error> {
        found.clear();
        // There is room for as many as a lookup keeps.
        let _ = found.extend_from_slice(addrs);
        self.addr = addrs.first().copied();
        Ok(())
    }

    fn restart(&mut self) {
        self.attempt = 0;
        self.useless = 0;
        self.unsent = false;
        self.deadline = Instant::ZERO;
    }

    fn end<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>, end: core::result::Result<(), Error>) -> Resolved {
        self.state = State::Done(end);
        self.close(cx);
        if self.aliased {
            self.aliased = false;
            cx.shared.resolver.alias = None;
        }
        match (end, self.addr) {
            (Ok(()), Some(addr)) => Resolved::Ready(addr),
            (Ok(()), None) => Resolved::Failed(Error::NotFound),
            (Err(e), _) => Resolved::Failed(e),
        }
    }

    fn close<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>) {
        if let Some(socket) = self.socket.take() {
            cx.udp.close(socket);
        }
    }

    /// Sends the query that is next; `true` if another turn is due at once: it ended, or this server cannot be asked.
    fn ask<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>, name: &[u8]) -> bool {
        let now = cx.now();
        if self.unsent && now >= self.deadline {
            self.unsent = false;
            self.attempt = self.attempt.saturating_add(1);
        }
        let servers = cx.shared.resolver.servers().count().max(1) as u8;
        let Some((at, round)) = self.next_server(servers) else {
            self.state = State::Done(Err(self.failure.unwrap_or(Error::Timeout)));
            return true;
        };
        let Some(addr) = cx.shared.resolver.servers().nth(usize::from(at)) else {
            self.state = State::Done(Err(Error::NetworkUnreachable));
            return true;
        };
        if !self.unsent {
            let server = Endpoint { addr, port: PORT };
            // RFC 5452 §9.2: another id and port for each query. The only server's late answer is still good.
            if self.socket.is_none() || self.server != Some(server) || servers > 1 {
                self.close(cx);
                match cx.open() {
                    Ok(key) => self.socket = Some(key),
                    Err(e) => {
                        self.state = State::Done(Err(e));
                        return true;
                    }
                }
                self.id = cx.random() as u16;
                self.server = Some(server);
            }
            if let Some(socket) = self.socket.and_then(|key| cx.udp.get_mut(key)) {
                socket.peer = Some(server);
            }
            self.deadline = now + FIRST_WAIT.times(1u64.checked_shl(u32::from(round)).unwrap_or(1));
        }
        match self.send(cx, name) {
            Ok(()) => {
                self.unsent = false;
                self.attempt = self.attempt.saturating_add(1);
                false
            }
            Err(e) if e.is_transient() => {
                self.unsent = true;
                false
            }
            Err(e) => {
                self.unsent = false;
                self.give_up(at, e.into());
                true
            }
        }
    }

    /// Position and round of the next server that may be asked.
    fn next_server(&mut self, servers: u8) -> Option<(u8, u8)> {
        let (mut at, mut round) = (self.attempt.checked_rem(servers)?, self.attempt.checked_div(servers)?);
        for _ in 0..servers {
            if round >= ROUNDS {
                return None;
            }
            if self.useless & 1u8.checked_shl(u32::from(at)).unwrap_or(0) == 0 {
                return Some((at, round));
            }
            self.attempt = self.attempt.saturating_add(1);
            at = self.attempt.checked_rem(servers)?;
            round = self.attempt.checked_div(servers)?;
        }
        None
    }

    /// Notes that the server at this position need not be asked again.
    fn give_up(&mut self, at: u8, why: Error) {
        self.useless |= 1u8.checked_shl(u32::from(at)).unwrap_or(0);
        self.failure = Some(why);
        self.deadline = Instant::ZERO;
    }

    /// The server that was asked last cannot tell.
    fn give_up_current<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>, why: Error) {
        let asked = self.server.map(|s| s.addr);
        let at = cx.shared.resolver.servers().position(|addr| Some(addr) == asked);
        self.give_up(at.unwrap_or(0) as u8, why);
        self.close(cx);
    }

    /// Sends the query; it is written where it leaves from, and not in fragments: it has 271 bytes at most.
    #[inline(never)]
    fn send<H: Host>(&self, cx: &mut Cx<'_, '_, H>, name: &[u8]) -> core::result::Result<(), TxError> {
        let (Some(socket), Some(server)) = (self.socket, self.server) else { return Err(TxError::Invalid) };
        let resolver = &cx.shared.resolver;
        let len = self.query_len(resolver, name).ok_or(TxError::Invalid)?;
        cx.udp.send_filled(cx.stack, socket, server, len, &mut |out| {
            let mut w = Writer::new(out);
            put_query_header(&mut w, self.id, false).map_err(|_| TxError::Invalid)?;
            self.put_question(resolver, name, &mut w).ok_or(TxError::Invalid)?;
            Ok(Sum::of(w.finish()))
        })
    }

    /// Bytes of the query for the name that is asked for now.
    fn query_len(&self, resolver: &Resolver<'_>, name: &[u8]) -> Option<usize> {
        let name = if self.aliased {
            resolver.alias.as_ref()?.name.len()
        } else {
            // Lengths of labels take the places of the dots; the first and the root are beside that.
            resolver.candidate(name, self.candidate)?.len().saturating_add(2)
        };
        // Type and class follow.
        Some(name.saturating_add(HEADER_LEN + 4))
    }

    /// Appends the question for the name that is asked for now.
    fn put_question(&self, resolver: &Resolver<'_>, name: &[u8], w: &mut Writer<'_>) -> Option<()> {
        if self.aliased {
            w.put(&resolver.alias.as_ref()?.name).ok()?;
        } else {
            resolver.candidate(name, self.candidate)?.emit(w).ok()?;
        }
        w.u16(Kind::A.0).and_then(|()| w.u16(CLASS_IN)).ok()
    }

    /// Whether `asked` is the name that is asked for now.
    fn is_current(&self, resolver: &Resolver<'_>, name: &[u8], asked: &Name<'_>) -> bool {
        if self.aliased {
            let alias = resolver.alias.as_ref().and_then(|alias| Name::parse(&alias.name, 0).ok());
            return alias.is_some_and(|(alias, _)| alias.matches(asked));
        }
        resolver.candidate(name, self.candidate).is_some_and(|candidate| candidate.is(asked))
    }

    /// Takes a datagram that came to a socket of the operation.
    pub fn datagram<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>, name: &[u8], datagram: &Datagram<'_>) {
        if self.state != State::Asking || self.socket != Some(datagram.socket) {
            return;
        }
        let answer = match Message::parse(datagram.payload) {
            Ok(message) if Some(datagram.meta.src) == self.server => self.read(cx, &message, name),
            Ok(_) => Answer::Dropped(Counter::DropDnsForged),
            Err(_) => Answer::Dropped(Counter::DropDnsMalformed),
        };
        match answer {
            Answer::Dropped(counter) => cx.stack.stats.count(counter),
            Answer::Later => {}
            Answer::Addresses => {
                let now = cx.now();
                let resolver = &mut cx.shared.resolver;
                if let Some(hash) = resolver.candidate(name, self.candidate).map(Candidate::hash) {
                    resolver.cache.put(now, hash, self.ttl_s, &resolver.found);
                }
                self.state = State::Done(Ok(()));
            }
            Answer::Alias => {
                self.close(cx);
                self.restart();
            }
            Answer::Negative => {
                self.close(cx);
                self.candidate = self.candidate.saturating_add(1);
                if self.aliased || cx.shared.resolver.candidate(name, self.candidate).is_none() {
                    self.state = State::Done(Err(Error::NotFound));
                } else if let Some(end) = self.question(cx, name) {
                    self.state = State::Done(end);
                }
            }
            Answer::Useless(why) => self.give_up_current(cx, why),
            Answer::Failed(why) => self.state = State::Done(Err(why)),
        }
    }

    /// What `message` says to the question that is out when `name` is looked up.
    #[inline(never)]
    fn read<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>, message: &Message<'_>, name: &[u8]) -> Answer {
        // RFC 5452 §9.1: id and question must be those of the query. RFC 4343: case does not matter.
        if message.id() != self.id || !message.is_response() || message.opcode() != 0 || message.question_count() != 1 {
            return Answer::Dropped(Counter::DropDnsForged);
        }
        let Some(question) = message.question() else { return Answer::Dropped(Counter::DropDnsMalformed) };
        let ours = question.kind == Kind::A && question.class == CLASS_IN;
        if !ours || !self.is_current(&cx.shared.resolver, name, &question.name) {
            return Answer::Dropped(Counter::DropDnsForged);
        }
        // What was cut off may end in the middle of a record; nothing else may.
        let cut = message.is_truncated();
        let Ok(records) = message.records() else { return Answer::Dropped(Counter::DropDnsMalformed) };
        if !cut && records.clone().any(|r| r.is_err()) {
            return Answer::Dropped(Counter::DropDnsMalformed);
        }
        let from = self.server.map(|s| s.addr);
        let rcode = message.rcode();
        if rcode != Rcode::NO_ERROR {
            cx.detail.set(DetailKind::Dns, u32::from(rcode.0), from, &[]);
            return match rcode {
                Rcode::NAME_ERROR => Answer::Negative,
                Rcode::REFUSED => Answer::Useless(Error::Denied),
                _ => Answer::Useless(Error::Remote),
            };
        }
        let mut name = question.name;
        let mut ttl_s = self.ttl_s;
        let mut followed = self.aliases;
        let mut addrs: heapless::Vec<Ipv4Addr, ADDRESSES> = heapless::Vec::new();
        // RFC 1034 §3.6.2: from alias to alias until there is an address. Loops end at the limit.
        loop {
            let mut alias = None;
            for record in records.clone() {
                let Ok(record) = record else { break };
                if record.section != Section::Answer || !record.name.matches(&name) {
                    continue;
                }
                match record.data {
                    Data::A(addr) if is_host_address(addr) => {
                        ttl_s = ttl_s.min(record.ttl_s);
                        // The first ones count.
                        let _ = addrs.push(addr);
                    }
                    Data::Cname(target) if alias.is_none() => alias = Some((target, record.ttl_s)),
                    _ => {}
                }
            }
            if !addrs.is_empty() {
                self.ttl_s = ttl_s;
                // What was found is there: it cannot fail.
                let _ = self.take(&mut cx.shared.resolver.found, &addrs);
                return Answer::Addresses;
            }
            let Some((target, ttl)) = alias else { break };
            followed = followed.saturating_add(1);
            if followed > MAX_ALIASES {
                return Answer::Failed(Error::Loop);
            }
            ttl_s = ttl_s.min(ttl);
            name = target;
        }
        if followed > self.aliases {
            // The server told the alias alone, as one does that has it from its own configuration.
            return self.follow(cx, &name, followed, ttl_s);
        }
        cx.detail.set(DetailKind::Dns, 0, from, &[]);
        if cut {
            // RFC 7766 §5: the answer is to be asked for again over TCP. Over UDP there is no more to be had.
            return Answer::Failed(Error::NotSupported);
        }
        Answer::Negative
    }

    /// Asks for an alias next.
    fn follow<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>, name: &Name<'_>, followed: u8, ttl_s: u32) -> Answer {
        let now = cx.now();
        let resolver = &mut cx.shared.resolver;
        let taken = resolver.alias.as_ref().is_some_and(|a| a.op != cx.op && now < a.until);
        if taken {
            // Another lookup follows an alias.
            return Answer::Later;
        }
        if name.labels().map(|label| label.len().saturating_add(1)).sum::<usize>() >= ALIAS {
            return Answer::Failed(Error::NameTooLong);
        }
        let alias = resolver.alias.insert(Alias { op: cx.op, until: now + Alias::KEEP, name: heapless::Vec::new() });
        // There is room, for the root, too.
        for label in name.labels() {
            let _ = alias.name.push(label.len() as u8);
            let _ = alias.name.extend_from_slice(label);
        }
        let _ = alias.name.push(0);
        self.aliased = true;
        self.aliases = followed;
        self.ttl_s = ttl_s;
        Answer::Alias
    }

    /// Takes an ICMP error about a query: this server need not be waited for (RFC 1122 §4.1.3.3).
    pub fn icmp_error<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>, error: &IcmpError) {
        let about = self.server.is_some_and(|s| s.addr == error.dst && s.port == error.dst_port);
        let ours = self.socket.and_then(|key| cx.udp.get(key)).is_some_and(|s| s.local.port == error.src_port);
        if self.state == State::Asking
            && about
            && ours
            && let Some(why) = icmp_meaning(error)
        {
            self.give_up_current(cx, why);
        }
    }

    /// Ends the lookup.
    pub fn cancel<H: Host>(&mut self, cx: &mut Cx<'_, '_, H>) {
        self.end(cx, Err(Error::Cancelled));
    }
}
