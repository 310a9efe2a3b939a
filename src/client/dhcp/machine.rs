//! The state machine (RFC 2131 §4.4, figure 5): what time and messages do to it.

use super::message::Outgoing;
use super::{Client, Heard, Phase, Request, Terms, bind, pxe, terms};
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
    /// What the phase calls for.
    Message,
    /// A DECLINE of what was granted.
    Decline,
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
        let (phase, address) = if request.inform {
            (Phase::Informing, Some(interface.addresses().first().ok_or(Error::Invalid)?.addr))
        } else if request.reboot {
            (Phase::Rebooting, Some(request.address.ok_or(Error::Invalid)?))
        } else {
            (Phase::Init, request.address)
        };
        self.link_ups = interface.link_ups;
        let before = self.lease.map(|l| l.addr);
        self.unbind(env);
        self.config.set(request, address.or(before));
        self.lost = None;
        self.failure = None;
        self.setbacks = 0;
        self.started = env.stack.now;
        self.secs = 0;
        self.op = Some(op);
        self.enter(env, phase);
        Ok(())
    }

    /// Ends whatever it does; an address it had set goes, and its server is not told.
    pub fn stop<H: Host>(&mut self, env: &mut Env<'_, '_, H>) {
        self.unbind(env);
        self.phase = Phase::Off;
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
        self.enter(env, Phase::Releasing);
        self.tick(env, false);
        Ok(())
    }

    /// Does what is due. `wake`: what could not be sent may go now. Whether the waiting operation is to be polled.
    pub fn tick<H: Host>(&mut self, env: &mut Env<'_, '_, H>, wake: bool) -> bool {
        if !self.is_active() {
            return false;
        }
        let before = self.phase;
        self.watch(env);
        // No phase leads back to itself at the same time, except by a message sent.
        for _ in 0..4 {
            let due = env.stack.now >= self.next || (wake && self.unsent);
            if !due {
                break;
            }
            match self.step(env) {
                Due::Nothing => {}
                Due::Message => self.transmit(env),
                Due::Decline => {
                    if let Some(terms) = self.offer {
                        // One that is lost is found out by the server's own probe.
                        let _ = self.send(env, &Outgoing::decline(&terms));
                    }
                }
            }
            if self.unsent {
                break;
            }
        }
        self.phase != before
    }

    /// Notices what the host did to the interface: the link came up again, the address or the interface went.
    fn watch<H: Host>(&mut self, env: &mut Env<'_, '_, H>) {
        let now = env.stack.now;
        let Some(interface) = env.stack.interface(env.nic) else {
            self.lease = None;
            self.failure = Some(Error::NetworkDown);
            self.phase = Phase::Off;
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
        match self.phase {
            Phase::Off | Phase::Informed | Phase::Releasing => {}
            // The switch port begins anew, and so do the delays.
            Phase::Init | Phase::Selecting | Phase::Requesting | Phase::Probing => {
                self.forget_probe(env);
                self.started = now;
                self.enter(env, Phase::Init);
            }
            Phase::Rebooting | Phase::Informing => self.enter(env, self.phase),
            // It may be another network (RFC 2131 §3.7): ask everybody whether the address still holds.
            Phase::Booting | Phase::Bound | Phase::Renewing | Phase::Rebinding => {
                if self.lease.is_some_and(|l| l.lease.is_some()) {
                    self.enter(env, Phase::Rebinding);
                }
            }
        }
    }

    #[inline(never)]
    fn enter<H: Host>(&mut self, env: &mut Env<'_, '_, H>, phase: Phase) {
        // A transaction of its own.
        if matches!(
            phase,
            Phase::Selecting
                | Phase::Rebooting
                | Phase::Renewing
                | Phase::Rebinding
                | Phase::Informing
                | Phase::Releasing
        ) {
            self.xid = env.stack.host.random();
        }
        if matches!(phase, Phase::Selecting | Phase::Rebooting | Phase::Informing) {
            self.boot = pxe::Boot::default();
            self.offer = None;
        }
        self.phase = phase;
        self.since = env.stack.now;
        self.tries = 0;
        self.unsent = false;
        self.next = env.stack.now;
    }

    /// Does the one thing that is due in this phase, but for sending.
    #[inline(never)]
    fn step<H: Host>(&mut self, env: &mut Env<'_, '_, H>) -> Due {
        let now = env.stack.now;
        match self.phase {
            Phase::Off | Phase::Informed => self.next = Instant::NEVER,
            Phase::Init => {
                self.enter(env, Phase::Selecting);
                return Due::Message;
            }
            // No proxy has answered for as long as one is waited for.
            Phase::Selecting if self.offer.is_some() => self.enter(env, Phase::Requesting),
            Phase::Requesting if self.tries >= SELECT_TRIES => self.enter(env, Phase::Init),
            Phase::Rebooting if self.tries >= REBOOT_TRIES => self.enter(env, Phase::Init),
            Phase::Probing => return self.probe(env),
            Phase::Booting if self.tries >= BOOT_TRIES => self.settle(env),
            Phase::Bound => self.enter(env, Phase::Renewing),
            Phase::Renewing if now >= self.limit() => self.enter(env, Phase::Rebinding),
            Phase::Rebinding if now >= self.limit() => {
                self.lose(env);
                self.enter(env, Phase::Init);
            }
            // The message has left, or has waited long enough.
            Phase::Releasing if self.tries > 0 || now.since(self.since) >= RELEASE_WAIT => self.stop(env),
            Phase::Selecting | Phase::Requesting | Phase::Rebooting | Phase::Booting => return Due::Message,
            Phase::Renewing | Phase::Rebinding | Phase::Informing | Phase::Releasing => return Due::Message,
        }
        Due::Nothing
    }

    /// When the lease's own times end the phase.
    fn limit(&self) -> Instant {
        match (self.phase, &self.lease) {
            (Phase::Renewing, Some(lease)) => lease.rebinds(),
            (Phase::Rebinding, Some(lease)) => lease.expires(),
            _ => Instant::NEVER,
        }
    }

    /// Sends what the phase calls for, and sets the time of the next.
    #[inline(never)]
    fn transmit<H: Host>(&mut self, env: &mut Env<'_, '_, H>) {
        let now = env.stack.now;
        if self.phase == Phase::Selecting {
            self.secs = u16::try_from(now.since(self.started).as_secs()).unwrap_or(u16::MAX);
        }
        let Some(message) = self.due_message() else { return self.stop(env) };
        let sent = self.send(env, &message);
        self.unsent = sent.is_err();
        let wait = match sent {
            Ok(()) => {
                self.tries = self.tries.saturating_add(1);
                self.wait(env)
            }
            Err(TxError::NetworkDown) => FIRST_WAIT,
            Err(_) => UNSENT_WAIT,
        };
        // No wait reaches over the next of the lease's own times.
        self.next = (now + wait).min(self.limit());
    }

    /// How long to wait for an answer.
    fn wait<H: Host>(&mut self, env: &mut Env<'_, '_, H>) -> Duration {
        if let Phase::Renewing | Phase::Rebinding = self.phase {
            // RFC 2131 §4.4.5: half of what is left, but no less than a minute.
            return self.limit().since(env.stack.now).divided_by(2).max(EXTEND_WAIT);
        }
        if self.phase == Phase::Releasing {
            // There is none.
            return Duration::ZERO;
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
        if self.phase != Phase::Selecting {
            return Err(Counter::DropDhcpIgnored);
        }
        let now = env.stack.now;
        let wait = self.config.proxy_wait;
        if message.yiaddr().is_unspecified() && wait > Duration::ZERO && pxe::is_pxe(message) {
            // PXE 2.1 §2.2.3: an offer without an address comes from a proxyDHCP server.
            if !self.boot.take_offer(message, src) {
                return Err(Counter::DropDhcpIgnored);
            }
            if self.offer.is_some() {
                self.enter(env, Phase::Requesting);
            }
            return Ok(Heard::Boot);
        }
        let terms = Terms::read(message, now, None).ok_or(Counter::DropDhcpUnusable)?;
        if self.offer.is_some() {
            return Err(Counter::DropDhcpIgnored);
        }
        self.offer = Some(terms);
        let complete = self.boot.is_known() || (pxe::is_pxe(message) && pxe::has_file(message));
        if complete || wait == Duration::ZERO {
            self.enter(env, Phase::Requesting);
        } else {
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
        match self.phase {
            Phase::Requesting => {
                let offer = self.offer.filter(|offer| server == Some(offer.server)).ok_or(Counter::DropDhcpIgnored)?;
                self.accept(env, message, offer.addr)?;
            }
            Phase::Rebooting => {
                let addr = self.config.address.ok_or(Counter::DropDhcpIgnored)?;
                self.accept(env, message, addr)?;
            }
            Phase::Renewing | Phase::Rebinding => self.prolonged(env, message, server)?,
            Phase::Booting => {
                if !self.boot.is_answer(message, src) {
                    return Err(Counter::DropDhcpIgnored);
                }
                self.settle(env);
                return Ok(Heard::Boot);
            }
            Phase::Informing => {
                bind::apply_names(env, message, false);
                self.enter(env, Phase::Informed);
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
    ) -> core::result::Result<(), Counter> {
        let old = self.lease.ok_or(Counter::DropDhcpIgnored)?;
        if self.phase == Phase::Renewing && server != Some(old.server) {
            return Err(Counter::DropDhcpIgnored);
        }
        let terms = Terms::read(message, self.since, Some(&old)).filter(|t| t.addr == old.addr);
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
        if self.phase != Phase::Selecting || self.offer.is_some() || !self.config.bootp {
            return Err(Counter::DropDhcpIgnored);
        }
        self.accept(env, message, message.yiaddr())?;
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
        let asked = match self.phase {
            Phase::Requesting => self.offer.is_some_and(|offer| offer.server == server),
            Phase::Renewing => self.lease.is_some_and(|l| l.server == server),
            Phase::Rebooting | Phase::Rebinding => true,
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
        let again = self.phase == Phase::Requesting;
        self.enter(env, Phase::Init);
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
    ) -> core::result::Result<(), Counter> {
        // A server that grants another address than it was asked for is not believed.
        let terms =
            Terms::read(message, self.since, None).filter(|t| t.addr == addr).ok_or(Counter::DropDhcpUnusable)?;
        bind::apply(env, message, &terms, &self.config, false);
        if self.config.pxe && !self.boot.is_known() && pxe::is_pxe(message) {
            self.boot.take_lease(message, terms.server);
        }
        self.offer = Some(terms);
        self.enter(env, Phase::Probing);
        Ok(())
    }

    /// Asks whether another host has the address that was granted, if that is wanted, and takes what was heard.
    fn probe<H: Host>(&mut self, env: &mut Env<'_, '_, H>) -> Due {
        let Some(terms) = self.offer else { return Due::Nothing };
        if self.config.probe && self.tries == 0 {
            let asked = env.stack.probe(env.nic, terms.addr);
            let wait = match asked {
                Ok(()) => PROBE_WAIT,
                Err(e) if e.is_transient() || e == TxError::NetworkDown => UNSENT_WAIT,
                // It cannot be asked.
                Err(_) => Duration::ZERO,
            };
            self.unsent = asked.is_err();
            self.tries = u8::from(asked.is_ok());
            if wait > Duration::ZERO {
                self.next = env.stack.now + wait;
                return Due::Nothing;
            }
        }
        let conflict = env.stack.probe_result(env.nic);
        if !(self.config.probe && conflict) {
            self.bind(env, terms);
            return Due::Nothing;
        }
        // RFC 2131 §3.1 (5): tell the server, then begin anew.
        env.stack.stats.count(Counter::DropDhcpUnusable);
        env.stack.host.log(LogEvent::AddressConflict, u64::from(env.nic.0), u64::from(terms.addr.to_bits()));
        bind::remove(env, None);
        self.config.address = None;
        self.enter(env, Phase::Init);
        self.next = env.stack.now + DECLINE_WAIT;
        if terms.server.is_unspecified() { Due::Nothing } else { Due::Decline }
    }

    fn forget_probe<H: Host>(&mut self, env: &mut Env<'_, '_, H>) {
        if self.phase == Phase::Probing {
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
            self.enter(env, Phase::Booting);
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
        self.enter(env, Phase::Bound);
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
        } else if self.phase == Phase::Informed {
            bind::remove(env, None);
        }
    }
}
