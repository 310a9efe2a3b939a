//! What an offer or acknowledgement grants, and whether it can be used at all.

use crate::stack::interface::is_host_address;
use crate::storage::time::{Duration, Instant};
use crate::wire::dhcp::{Message, code};
use core::net::Ipv4Addr;

/// An address and how long it may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The address.
    pub addr: Ipv4Addr,
    /// Length of its network prefix in bits.
    pub prefix: u8,
    /// The server's identifier (option 54); unspecified in a BOOTP reply.
    pub server: Ipv4Addr,
    /// When the time began to run: when the request was sent (RFC 2131 §4.4.1).
    pub since: Instant,
    /// How long it may be used; `None`: for ever.
    pub lease: Option<Times>,
}

/// The three times of a lease, from its beginning (RFC 2131 §4.4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// T1: when the server is asked for more time.
    pub renew: Duration,
    /// T2: when any server is.
    pub rebind: Duration,
    /// When the address must no longer be used.
    pub expire: Duration,
}

impl Terms {
    /// When the address must no longer be used.
    pub fn expires(&self) -> Instant {
        self.lease.map_or(Instant::NEVER, |l| self.since + l.expire)
    }

    /// When the server is asked for more time.
    pub fn renews(&self) -> Instant {
        self.lease.map_or(Instant::NEVER, |l| self.since + l.renew)
    }

    /// When any server is asked for more time.
    pub fn rebinds(&self) -> Instant {
        self.lease.map_or(Instant::NEVER, |l| self.since + l.rebind)
    }

    /// What `message` grants; `None` if it cannot be used. A BOOTP reply (no message type) grants for ever. `known`: the
    /// lease that it prolongs, whose mask counts where the message has none.
    #[inline(never)]
    pub fn read(message: &Message<'_>, since: Instant, known: Option<&Terms>) -> Option<Terms> {
        let addr = message.yiaddr();
        if !is_host_address(addr) {
            return None;
        }
        let known = known.filter(|_| !message.has_option(code::SUBNET_MASK));
        let prefix = known.map_or_else(|| prefix(message, addr), |k| Some(k.prefix))?;
        // Neither the network itself nor its broadcast address is a host's (RFC 1122 §3.2.1.3).
        let host_bits = !crate::stack::interface::mask(prefix);
        let host = addr.to_bits() & host_bits;
        if prefix <= 30 && (host == 0 || host == host_bits) {
            return None;
        }
        if !message.has_option(code::MESSAGE_TYPE) {
            return Some(Terms { addr, prefix, server: Ipv4Addr::UNSPECIFIED, since, lease: None });
        }
        let server = server(message)?;
        let lease = times(message)?;
        Some(Terms { addr, prefix, server, since, lease })
    }
}

/// The server identifier, if it can be one. Without it an offer cannot be taken (RFC 2131 §4.3.1, table 3).
pub fn server(message: &Message<'_>) -> Option<Ipv4Addr> {
    message.ipv4(code::SERVER_ID).filter(|id| is_host_address(*id))
}

/// The prefix length: of the mask, or of the address's class where there is none. `None` for a mask with holes or none set.
fn prefix(message: &Message<'_>, addr: Ipv4Addr) -> Option<u8> {
    if message.has_option(code::SUBNET_MASK) {
        let mask = message.u32(code::SUBNET_MASK)?;
        let ones = mask.leading_ones();
        let whole = ones > 0 && ones.saturating_add(mask.trailing_zeros()) == u32::BITS;
        return whole.then_some(ones as u8);
    }
    let [first, ..] = addr.octets();
    Some(match first {
        0..=127 => 8,
        128..=191 => 16,
        _ => 24,
    })
}

/// The times of the lease: `Some(None)` is a lease without end, `None` one that has ended already.
fn times(message: &Message<'_>) -> Option<Option<Times>> {
    let seconds = match message.u32(code::LEASE_TIME) {
        Some(0) => return None,
        // RFC 2131 §3.3: all ones is infinity. A server that names no time never ends the lease.
        Some(u32::MAX) | None => return Some(None),
        Some(s) => u64::from(s),
    };
    let expire = Duration::from_secs(seconds);
    let defaults = Times { renew: expire.divided_by(2), rebind: expire.times(7).divided_by(8), expire };
    let given = |code, default| message.u32(code).map_or(default, |s| Duration::from_secs(u64::from(s)));
    let times = Times {
        renew: given(code::RENEWAL_TIME, defaults.renew),
        rebind: given(code::REBINDING_TIME, defaults.rebind),
        expire,
    };
    // RFC 2131 §4.4.5: T1 must be earlier than T2, T2 earlier than the end.
    let ordered = Duration::ZERO < times.renew && times.renew < times.rebind && times.rebind < expire;
    Some(Some(if ordered { times } else { defaults }))
}
