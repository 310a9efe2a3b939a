//! The state machine (RFC 2131 §4.4, figure 5): what time and messages do to it.

use super::message::Kind;
use super::{Client, Heard, Request, State, Terms, bind, pxe, terms};
use crate::client::dns::Resolver;
use crate::stack::Stack;
use crate::stack::egress::TxError;
use crate::stack::interface::NicId;
use crate::stack::stats::Counter;
use crate::storage::error::{Error, Result};
use crate::storage::host::{Host, LogEvent, random_below};
use crate::storage::time::{Duration, Instant};
use crate::wire::dhcp::{Message, MessageType, Op, code};
use core::net::Ipv4Addr;

/// First wait for an answer. RFC 2131 §4.1 proposes 4 s; a bootloader that waits that long for a lost frame is watched.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Longest wait for an answer while an operation waits: a port that opens is found soon after.
const LONGEST_WAIT: Duration = Duration::from_secs(16);
/// Longest wait for an answer while nobody waits (RFC 2131 §4.1).
const LONGEST_IDLE_WAIT: Duration = Duration::from_secs(64);
/// Shortest wait between two requests for more time (RFC 2131 §4.4.5).
const EXTEND_WAIT: Duration = Duration::from_secs(60);
/// Requests to one server before others are looked for.
const SELECT_TRIES: u8 = 4;
/// Requests for the address of before, before servers are looked for.
const REBOOT_TRIES: u8 = 2;
/// Requests for boot data before the lease is used without.
const BOOT_TRIES: u8 = 3;
/// How long an ARP probe's answer is waited for. A host on the link answers within a millisecond or two; RFC 5227's seconds are
/// for hosts that nobody waits for.
const PROBE_WAIT: Duration = Duration::from_millis(50);
/// Wait after an address was declined (RFC 2131 §3.1 (5)).
const DECLINE_WAIT: Duration = Duration::from_secs(10);
/// How long a RELEASE waits for the server's hardware address.
const RELEASE_WAIT: Duration = Duration::from_secs(1);
/// Wait until a message that could not leave is tried again, if nothing wakes it.
const UNSENT_WAIT: Duration = Duration::from_millis(100);

/// What a client works with.
pub struct Env<'c, 'a, H: Host> {
    /// The stack.
    pub stack: &'c mut Stack<'a, H>,
    /// The name servers.
    pub resolver: &'c mut Resolver<'a>,
    /// Its interface.
    pub nic: NicId,
}

/// What is to be sent.
enum Due {
    Nothing,
    /// What the state calls for.
    Message,
    /// A DECLINE of this address, to this server.
    Decline(Ipv4Addr, Ipv4Addr),
}

impl Client {
    /// Starts for the operation in slot `op`. A lease from before is given up without telling its server; its address is
    /// asked for again.
    ///
    /// # Errors
    /// [`Error::InUse`] while another operation waits, and for an INFORM while there is a lease; [`Error::Invalid`] for
    /// options that do not parse or are the client's own, an INFORM without an address, a reboot without one;
    /// [`Error::NameTooLong`] for options that do not fit; [`Error::NetworkDown`]: no such interface.
    pub(super) fn start<H: Host, T: AsRef<[u8]>>(
        &mut self,
        env: &mut Env<'_, '_, H>,
        op: u8,
        request: &Request<T>,
    ) -> Result<()> {
        if self.op.is_some() || (request.inform && self.lease.is_some()) {
            return Err(Error::InUse);
        }
        let interface = env.stack.interface(env.nic).ok_or(Error::NetworkDown)?;
        request.check()?;
        let now = env.stack.now;
        let state = if request.inform {
            State::Informing { addr: interface.addresses().first().ok_or(Error::Invalid)?.addr }
        } else if request.reboot {
            State::Rebooting { addr: request.address.ok_or(Error::Invalid)?, since: now }
        } else {
            State::Init
        };
        self.link_ups = interface.link_ups;
        let before = self.lease.map(|l| l.addr);
        self.unbind(env);
        self.config.set(request);
        self.config.address = self.config.address.or(before);
        self.lost = None;
        self.failure = None;
        self.setbacks = 0;
        self.started = now;
        self.secs = 0;
        self.op = Some(op);
        self.enter(env, state);
        Ok(())
    }

    /// Ends whatever it does; an address it had set goes, and its server is not told.
    pub fn stop<H: Host>(&mut self, env: &mut Env<'_, '_, H>) {
        self.unbind(env);
        self.state = State::Off;
        self.next = Instant::NEVER;
    }

    /// Gives the address back (RFC 2131 §4.4.6). It goes once the message has left, or after a second; until then the
    /// client is [`super::Phase::Releasing`].
    ///
    /// # Errors
    /// [`Error::AddressNotOurs`]: there is no lease.
    pub fn release<H: Host>(&mut self, env: &mut Env<'_, '_, H>) -> Result<()> {
        let lease = self.lease.ok_or(Error::AddressNotOurs)?;
        if lease.server.is_unspecified() {
            // BOOTP knows no release.
            self.stop(env);
            return Ok(());
        }
        let until = env.stack.now + RELEASE_WAIT;
        self.enter(env, State::Releasing { until });
        self.tick(env, false);
        Ok(())
    }

    /// Does what is due. `wake`: what could not be sent may go now. Whether the waiting operation is to be polled.
    pub fn tick<H: Host>(&mut self, env: &mut Env<'_, '_, H>, wake: bool) -> bool {
        if !self.is_active() {
            return false;
        }
        let before = self.phase();
        self.watch(env);
        // No state leads back to itself at the same time, except by a message sent.
        for _ in 0..4 {
            let due = env.stack.now >= self.next || (wake && self.unsent);
            if !due {
                break;
            }
            match self.step(env) {
                Due::Nothing => {}
                Due::Message => self.transmit(env),
                Due::Decline(addr, server) => {
                    // One that is lost is found out by the server's own probe.
                    let _ = self.send(env, Kind::Decline { addr, server });
                }
            }
            if let State::Releasing { .. } = self.state
                && !self.unsent
            {
                self.stop(env);
            }
            if self.unsent {
                break;
            }
        }
        self.phase() != before
    }

    /// Notices what the host did to the interface: the link came up again, the address or the interface went.
    fn watch<H: Host>(&mut self, env: &mut Env<'_, '_, H>) {
        let now = env.stack.now;
        let Some(interface) = env.stack.interface(env.nic) else {
            self.lease = None;
            self.failure = Some(Error::NetworkDown);
            self.state = State::Off;
            self.next = Instant::NEVER;
            return;
        };
        let link_ups = interface.link_ups;
        if let Some(lease) = self.lease
            && !interface.owns(lease.addr)
        {
            self.stop(env);
            return;
        }
        if link_ups == self.link_ups {
            return;
        }
        self.link_ups = link_ups;
        match self.state {
            State::Off | State::Informed | State::Releasing { .. } => {}
            // The switch port begins anew, and so do the delays.
            State::Init | State::Selecting { .. } | State::Requesting { .. } | State::Probing { .. } => {
                self.forget_probe(env);
                self.started = now;
                self.enter(env, State::Init);
            }
            State::Rebooting { addr, .. } => self.enter(env, State::Rebooting { addr, since: now }),
            State::Informing { addr } => self.enter(env, State::Informing { addr }),
            // It may be another network (RFC 2131 §3.7): ask everybody whether the address still holds.
            State::Booting | State::Bound | State::Renewing { .. } | State::Rebinding { .. } => {
                if self.lease.is_some_and(|l| l.lease.is_some()) {
                    self.enter(env, State::Rebinding { since: now });
                }
            }
        }
    }

    fn enter<H: Host>(&mut self, env: &mut Env<'_, '_, H>, state: State) {
        let transaction = match state {
            State::Selecting { offer } => offer.is_none(),
            State::Rebooting { .. } | State::Renewing { .. } | State::Rebinding { .. } => true,
            State::Informing { .. } | State::Releasing { .. } => true,
            _ => false,
        };
        if transaction {
            self.xid = env.stack.host.random();
        }
        if matches!(state, State::Selecting { offer: None } | State::Rebooting { .. } | State::Informing { .. }) {
            self.boot = pxe::Boot::default();
        }
        self.state = state;
        self.tries = 0;
        self.unsent = false;
        self.next = env.stack.now;
    }

    /// Does the one thing that is due in this state, but for sending.
    #[inline(never)]
    fn step<H: Host>(&mut self, env: &mut Env<'_, '_, H>) -> Due {
        let now = env.stack.now;
        match self.state {
            State::Off | State::Informed => self.next = Instant::NEVER,
            State::Init => {
                self.enter(env, State::Selecting { offer: None });
                return Due::Message;
            }
            State::Selecting { offer: None } => return Due::Message,
            State::Selecting { offer: Some((offer, _)) } => self.select(env, offer),
            State::Requesting { .. } if self.tries >= SELECT_TRIES => self.enter(env, State::Init),
            State::Rebooting { .. } if self.tries >= REBOOT_TRIES => self.enter(env, State::Init),
            State::Requesting { .. } | State::Rebooting { .. } | State::Informing { .. } => return Due::Message,
            State::Probing { terms, until } => return self.probe(env, terms, until),
            State::Booting if self.tries >= BOOT_TRIES => self.settle(env),
            State::Booting => return Due::Message,
            State::Bound => self.enter(env, State::Renewing { since: now }),
            State::Renewing { .. } if self.lease.is_some_and(|l| now >= l.rebinds()) => {
                self.enter(env, State::Rebinding { since: now });
            }
            State::Rebinding { .. } if self.lease.is_some_and(|l| now >= l.expires()) => {
                self.lose(env);
                self.enter(env, State::Init);
            }
            State::Renewing { .. } | State::Rebinding { .. } => return Due::Message,
            State::Releasing { until } if now >= until => self.stop(env),
            State::Releasing { .. } => return Due::Message,
        }
        Due::Nothing
    }

    /// Sends what the state calls for, and sets the time of the next.
    #[inline(never)]
    fn transmit<H: Host>(&mut self, env: &mut Env<'_, '_, H>) {
        let now = env.stack.now;
        if let State::Selecting { .. } = self.state {
            self.secs = u16::try_from(now.since(self.started).as_secs()).unwrap_or(u16::MAX);
        }
        let Some(kind) = self.due_message() else { return self.stop(env) };
        match self.send(env, kind) {
            Ok(()) => {
                self.unsent = false;
                self.tries = self.tries.saturating_add(1);
                self.next = now + self.wait(env);
            }
            Err(e) => {
                self.unsent = true;
                let wait = if e == TxError::NetworkDown { FIRST_WAIT } else { UNSENT_WAIT };
                self.next = now + wait;
            }
        }
        // No wait reaches over the next of the lease's own times.
        match (self.state, &self.lease) {
            (State::Renewing { .. }, Some(lease)) => self.next = self.next.min(lease.rebinds()),
            (State::Rebinding { .. }, Some(lease)) => self.next = self.next.min(lease.expires()),
            _ => {}
        }
    }

    /// How long to wait for an answer.
    fn wait<H: Host>(&mut self, env: &mut Env<'_, '_, H>) -> Duration {
        let now = env.stack.now;
        // RFC 2131 §4.4.5: half of what is left, but no less than a minute.
        match (self.state, &self.lease) {
            (State::Renewing { .. }, Some(lease)) => {
                return lease.rebinds().since(now).divided_by(2).max(EXTEND_WAIT);
            }
            (State::Rebinding { .. }, Some(lease)) => {
                return lease.expires().since(now).divided_by(2).max(EXTEND_WAIT);
            }
            _ => {}
        }
        let longest = if self.op.is_some() { LONGEST_WAIT } else { LONGEST_IDLE_WAIT };
        let doubled = FIRST_WAIT.times(1u64.checked_shl(u32::from(self.tries.saturating_sub(1))).unwrap_or(u64::MAX));
        let wait = doubled.min(longest);
        // RFC 2131 §4.1: up to a second more or less, so that hosts that start together do not stay together.
        let spread = wait.divided_by(4).min(Duration::from_secs(1));
        let spread_us = u32::try_from(spread.as_micros().saturating_mul(2)).unwrap_or(u32::MAX);
        let chance = random_below(&mut env.stack.host, spread_us);
        wait.saturating_sub(spread) + Duration::from_micros(u64::from(chance))
    }

    /// Is to ask the server of `offer` for what it offers.
    fn select<H: Host>(&mut self, env: &mut Env<'_, '_, H>, offer: Terms) {
        let since = env.stack.now;
        self.enter(env, State::Requesting { offer, since });
    }

    /// Takes what came to port 68 of its interface, the checksum verified. What follows is left to [`Self::tick`], which is to
    /// be called next.
    pub fn receive<H: Host>(&mut self, env: &mut Env<'_, '_, H>, src: Ipv4Addr, payload: &[u8]) -> Heard {
        let Ok(message) = Message::parse(payload) else {
            env.stack.stats.count(Counter::DropDhcpMalformed);
            return Heard::Nothing;
        };
        let mac = env.stack.interface(env.nic).map(|i| i.mac);
        // RFC 2131 §4.4.1: other transactions' messages are silently discarded.
        let ours = message.op() == Op::Reply && message.xid() == self.xid && Some(message.chaddr()) == mac;
        let heard = if !ours {
            Err(Counter::DropDhcpIgnored)
        } else {
            match message.message_type() {
                Some(MessageType::Offer) => self.offered(env, &message, src),
                Some(MessageType::Ack) => self.acknowledged(env, &message, src),
                Some(MessageType::Nak) => self.refused(env, &message),
                None if !message.has_option(code::MESSAGE_TYPE) => self.replied(env, &message),
                _ => Err(Counter::DropDhcpIgnored),
            }
        };
        heard.unwrap_or_else(|counter| {
            env.stack.stats.count(counter);
            Heard::Nothing
        })
    }

    #[inline(never)]
    fn offered<H: Host>(
        &mut self,
        env: &mut Env<'_, '_, H>,
        message: &Message<'_>,
        src: Ipv4Addr,
    ) -> core::result::Result<Heard, Counter> {
        let State::Selecting { offer } = self.state else { return Err(Counter::DropDhcpIgnored) };
        let now = env.stack.now;
        let wait = self.config.proxy_wait;
        if message.yiaddr().is_unspecified() && wait > Duration::ZERO && pxe::is_pxe(message) {
            // PXE 2.1 §2.2.3: an offer without an address comes from a proxyDHCP server.
            if !self.boot.take_offer(message, src) {
                return Err(Counter::DropDhcpIgnored);
            }
            if let Some((offer, _)) = offer {
                self.select(env, offer);
            }
            return Ok(Heard::Boot);
        }
        let terms = Terms::read(message, now, None).ok_or(Counter::DropDhcpUnusable)?;
        if offer.is_some() {
            return Err(Counter::DropDhcpIgnored);
        }
        let complete = self.boot.is_known() || (pxe::is_pxe(message) && pxe::has_file(message));
        if complete || wait == Duration::ZERO {
            self.select(env, terms);
        } else {
            self.state = State::Selecting { offer: Some((terms, now + wait)) };
            self.unsent = false;
            self.next = now + wait;
        }
        Ok(Heard::Nothing)
    }

    #[inline(never)]
    fn acknowledged<H: Host>(
        &mut self,
        env: &mut Env<'_, '_, H>,
        message: &Message<'_>,
        src: Ipv4Addr,
    ) -> core::result::Result<Heard, Counter> {
        let server = terms::server(message);
        match self.state {
            State::Requesting { offer, since } => {
                if server != Some(offer.server) {
                    return Err(Counter::DropDhcpIgnored);
                }
                self.accept(env, message, offer.addr, since)?;
            }
            State::Rebooting { addr, since } => self.accept(env, message, addr, since)?,
            State::Renewing { since } | State::Rebinding { since } => self.prolonged(env, message, server, since)?,
            State::Booting => {
                if !self.boot.is_answer(message, src) {
                    return Err(Counter::DropDhcpIgnored);
                }
                self.settle(env);
                return Ok(Heard::Boot);
            }
            State::Informing { .. } => {
                bind::apply_names(env, message, false);
                self.enter(env, State::Informed);
                self.next = Instant::NEVER;
            }
            _ => return Err(Counter::DropDhcpIgnored),
        }
        Ok(Heard::Lease)
    }

    #[inline(never)]
    fn prolonged<H: Host>(
        &mut self,
        env: &mut Env<'_, '_, H>,
        message: &Message<'_>,
        server: Option<Ipv4Addr>,
        since: Instant,
    ) -> core::result::Result<(), Counter> {
        let old = self.lease.ok_or(Counter::DropDhcpIgnored)?;
        if matches!(self.state, State::Renewing { .. }) && server != Some(old.server) {
            return Err(Counter::DropDhcpIgnored);
        }
        let terms = Terms::read(message, since, Some(&old)).filter(|t| t.addr == old.addr);
        let terms = terms.ok_or(Counter::DropDhcpUnusable)?;
        bind::apply(env, message, &terms, &self.config, true);
        self.configure(env, terms);
        self.settle(env);
        Ok(())
    }

    /// A message without a type: a BOOTP server's (RFC 1534 §2).
    fn replied<H: Host>(
        &mut self,
        env: &mut Env<'_, '_, H>,
        message: &Message<'_>,
    ) -> core::result::Result<Heard, Counter> {
        let State::Selecting { offer: None } = self.state else { return Err(Counter::DropDhcpIgnored) };
        if !self.config.bootp {
            return Err(Counter::DropDhcpIgnored);
        }
        let since = env.stack.now;
        self.accept(env, message, message.yiaddr(), since)?;
        Ok(Heard::Lease)
    }

    #[inline(never)]
    fn refused<H: Host>(
        &mut self,
        env: &mut Env<'_, '_, H>,
        message: &Message<'_>,
    ) -> core::result::Result<Heard, Counter> {
        // RFC 2131 §3.1 (4), table 3: a NAK names its server. One that does not, or that comes from a server we did not ask, says nothing.
        let server = terms::server(message).ok_or(Counter::DropDhcpIgnored)?;
        let asked = match self.state {
            State::Requesting { offer, .. } => offer.server == server,
            State::Renewing { .. } => self.lease.is_some_and(|l| l.server == server),
            State::Rebooting { .. } | State::Rebinding { .. } => true,
            _ => false,
        };
        if !asked {
            return Err(Counter::DropDhcpIgnored);
        }
        let now = env.stack.now;
        self.config.address = None;
        if self.lease.is_some() {
            self.lose(env);
        }
        // RFC 2131 §4.4.1, §4.4.5: back to INIT. Not at once if it was a server's own offer: it might refuse for ever.
        let again = matches!(self.state, State::Requesting { .. });
        self.enter(env, State::Init);
        if again {
            self.next = now + self.setback(FIRST_WAIT);
        }
        Ok(Heard::Refusal)
    }

    /// The wait after one more failure: doubled with each in a row.
    fn setback(&mut self, first: Duration) -> Duration {
        let times = 1u64.checked_shl(u32::from(self.setbacks)).unwrap_or(u64::MAX);
        self.setbacks = self.setbacks.saturating_add(1);
        first.times(times).min(LONGEST_WAIT)
    }

    /// Takes the acknowledgement of `addr`.
    #[inline(never)]
    fn accept<H: Host>(
        &mut self,
        env: &mut Env<'_, '_, H>,
        message: &Message<'_>,
        addr: Ipv4Addr,
        since: Instant,
    ) -> core::result::Result<(), Counter> {
        // A server that grants another address than it was asked for is not believed.
        let terms = Terms::read(message, since, None).filter(|t| t.addr == addr).ok_or(Counter::DropDhcpUnusable)?;
        bind::apply(env, message, &terms, &self.config, false);
        if self.config.pxe && !self.boot.is_known() && pxe::is_pxe(message) {
            self.boot.take_lease(message, terms.server);
        }
        if self.config.probe {
            // The watch starts when the probe has left.
            self.enter(env, State::Probing { terms, until: Instant::NEVER });
        } else {
            // Without a probe nothing was heard against it.
            let until = env.stack.now;
            self.enter(env, State::Probing { terms, until });
        }
        Ok(())
    }

    fn probe<H: Host>(&mut self, env: &mut Env<'_, '_, H>, terms: Terms, until: Instant) -> Due {
        let now = env.stack.now;
        if until == Instant::NEVER {
            match env.stack.probe(env.nic, terms.addr) {
                Ok(()) => {
                    self.unsent = false;
                    self.next = now + PROBE_WAIT;
                    self.state = State::Probing { terms, until: self.next };
                }
                Err(e) if e.is_transient() || e == TxError::NetworkDown => {
                    self.unsent = true;
                    self.next = now + UNSENT_WAIT;
                }
                Err(_) => self.bind(env, terms),
            }
            return Due::Nothing;
        }
        if now < until {
            self.next = until;
            return Due::Nothing;
        }
        if !env.stack.probe_result(env.nic) {
            self.bind(env, terms);
            return Due::Nothing;
        }
        // RFC 2131 §3.1 (5): tell the server, then begin anew.
        env.stack.stats.count(Counter::DropDhcpUnusable);
        env.stack.host.log(LogEvent::AddressConflict, u64::from(env.nic.0), u64::from(terms.addr.to_bits()));
        bind::remove(env, None);
        self.config.address = None;
        self.enter(env, State::Init);
        self.next = now + DECLINE_WAIT;
        if terms.server.is_unspecified() { Due::Nothing } else { Due::Decline(terms.addr, terms.server) }
    }

    fn forget_probe<H: Host>(&mut self, env: &mut Env<'_, '_, H>) {
        if let State::Probing { .. } = self.state {
            env.stack.probe_result(env.nic);
            bind::remove(env, None);
        }
    }

    /// Gives the interface its address.
    fn bind<H: Host>(&mut self, env: &mut Env<'_, '_, H>, terms: Terms) {
        self.setbacks = 0;
        if !self.configure(env, terms) {
            // The interface has as many addresses as it can hold.
            bind::remove(env, None);
            self.failure = Some(Error::NoSlot);
            return self.stop(env);
        }
        // Lost announcements do no harm.
        let _ = env.stack.announce(env.nic, terms.addr);
        env.stack.host.log(LogEvent::DhcpBound, u64::from(env.nic.0), u64::from(terms.addr.to_bits()));
        if self.boot.wants_request() {
            self.enter(env, State::Booting);
        } else {
            self.settle(env);
        }
    }

    fn configure<H: Host>(&mut self, env: &mut Env<'_, '_, H>, terms: Terms) -> bool {
        let set = bind::set_address(env, &terms);
        if set {
            self.lease = Some(terms);
        }
        set
    }

    /// Everything is there: waits for T1.
    fn settle<H: Host>(&mut self, env: &mut Env<'_, '_, H>) {
        self.enter(env, State::Bound);
        self.next = self.lease.map_or(Instant::NEVER, |l| l.renews());
    }

    /// The lease is over without the host's doing.
    fn lose<H: Host>(&mut self, env: &mut Env<'_, '_, H>) {
        if let Some(lease) = self.lease {
            env.stack.host.log(LogEvent::DhcpLost, u64::from(env.nic.0), u64::from(lease.addr.to_bits()));
            self.lost = Some(lease.addr);
            self.started = env.stack.now;
        }
        self.unbind(env);
    }

    fn unbind<H: Host>(&mut self, env: &mut Env<'_, '_, H>) {
        self.forget_probe(env);
        if let Some(lease) = self.lease.take() {
            bind::remove(env, Some(lease.addr));
        } else if matches!(self.state, State::Informed) {
            bind::remove(env, None);
        }
    }
}
