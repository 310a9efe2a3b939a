//! DHCP (RFC 2131) and BOOTP replies: one state machine for each NIC, which lives with the NIC and needs neither an
//! operation nor a socket. The engine leads datagrams to port 68 to it and drives its timers; an operation
//! ([`op::Dhcp`]) only starts it and waits. What a lease brings goes to the interface, the routing table and the list
//! of name servers in `bind`; which messages are believed is decided in `terms`; what is sent is built in `message`;
//! boot data that another server gives is fetched in `pxe`.

mod bind;
mod clients;
mod engine;
mod machine;
mod message;
pub mod op;
mod pxe;
mod terms;
#[cfg(test)]
mod tests;

use crate::stack::interface::NicId;
use crate::storage::error::{Error, Result};
use crate::storage::time::{Duration, Instant};
use crate::wire::dhcp::{SubOptions, code};
pub use clients::Clients;
use core::net::Ipv4Addr;
pub use machine::Env;
use pxe::Boot;
pub use terms::{Terms, Times};

/// Bytes of options, their codes and lengths included, that the host can have sent with every message.
pub const KEPT: usize = 232;
/// Option codes that the host can ask for beside the usual ones.
pub const MORE_PARAMETERS: usize = 16;
/// How long an operation waits for a lease if nothing else is asked for: longer than a switch port that has come up stays
/// blocked by its spanning tree (30 s and more).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(90);
/// How long boot data of a proxyDHCP server is waited for after the first offer, if nothing else is asked for.
pub const DEFAULT_PROXY_WAIT: Duration = Duration::from_secs(1);

/// What to ask for. Texts are bytes as they go into the option.
#[derive(Clone, Debug)]
pub struct Request<T> {
    /// Interface to configure.
    pub nic: NicId,
    /// Address to ask for again.
    pub address: Option<Ipv4Addr>,
    /// Ask for `address` straight away, without looking for servers first (INIT-REBOOT, RFC 2131 §3.2).
    pub reboot: bool,
    /// Keep the address the interface has and ask for parameters alone (DHCPINFORM, RFC 2131 §3.4).
    pub inform: bool,
    /// Ask for answers by broadcast (RFC 2131 §4.1): some NICs and relays lose unicasts to an address not yet set.
    pub broadcast: bool,
    /// Take a BOOTP reply (RFC 1534 §2), as a lease without end.
    pub bootp: bool,
    /// Ask by ARP whether another host has the address before it is used (RFC 2131 §4.4.1).
    pub probe: bool,
    /// Take the routes of option 121 (RFC 3442); a host on a network it does not trust may refuse them.
    pub classless_routes: bool,
    /// How long to try; `None`: for ever.
    pub timeout: Option<Duration>,
    /// Say that we are a PXE client (PXE 2.1 §2.2.1), and take boot data from a proxyDHCP server.
    pub pxe: bool,
    /// How long to wait for a proxyDHCP server after the first offer; `None`: [`DEFAULT_PROXY_WAIT`] for a PXE client,
    /// else not at all.
    pub proxy_wait: Option<Duration>,
    /// Lease time to ask for, in seconds.
    pub lease_s: Option<u32>,
    /// Host name (option 12).
    pub host_name: Option<T>,
    /// Client identifier with its type byte in front (option 61).
    pub client_id: Option<T>,
    /// Vendor class (option 60); instead of the one that `pxe` makes.
    pub vendor_class: Option<T>,
    /// User class (option 77), sent as it is: most servers compare the text, some want RFC 3004's length bytes, which the
    /// host then gives itself.
    pub user_class: Option<T>,
    /// Architecture (option 93, RFC 4578 §2.1).
    pub arch: Option<u16>,
    /// Network interface identifier: type, major and minor number (option 94, RFC 4578 §2.2).
    pub ndi: Option<[u8; 3]>,
    /// Machine identifier (option 97, RFC 4578 §2.3).
    pub uuid: Option<[u8; 16]>,
    /// Further option codes to ask for (option 55).
    pub parameters: Option<T>,
    /// Further options to send, each with its code and length.
    pub options: Option<T>,
}

impl<T> Request<T> {
    /// The usual request for an address of `nic`.
    pub const fn new(nic: NicId) -> Self {
        Request {
            nic,
            address: None,
            reboot: false,
            inform: false,
            broadcast: true,
            bootp: true,
            probe: true,
            classless_routes: true,
            timeout: Some(DEFAULT_TIMEOUT),
            pxe: false,
            proxy_wait: None,
            lease_s: None,
            host_name: None,
            client_id: None,
            vendor_class: None,
            user_class: None,
            arch: None,
            ndi: None,
            uuid: None,
            parameters: None,
            options: None,
        }
    }
}

/// Where a client is in RFC 2131 §4.4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Not in use.
    #[default]
    Off = 0,
    /// Waits before it looks for servers.
    Init = 1,
    /// Looks for servers.
    Selecting = 2,
    /// Has asked one server.
    Requesting = 3,
    /// Has asked for the address it had before.
    Rebooting = 4,
    /// Asks whether another host has the address.
    Probing = 5,
    /// Has its address; asks for boot data.
    Booting = 6,
    /// Has its address.
    Bound = 7,
    /// Has its address; asks its server for more time.
    Renewing = 8,
    /// Has its address; asks any server for more time.
    Rebinding = 9,
    /// Asks for parameters alone.
    Informing = 10,
    /// Has the parameters it asked for.
    Informed = 11,
    /// Gives its address back.
    Releasing = 12,
}

/// What the host asked for, as far as it is needed again after the operation.
#[derive(Clone, Debug, Default)]
struct Config {
    /// To be asked for, or, by an INFORM, asked about.
    address: Option<Ipv4Addr>,
    broadcast: bool,
    bootp: bool,
    probe: bool,
    classless_routes: bool,
    pxe: bool,
    proxy_wait: Duration,
    lease_s: Option<u32>,
    parameters: heapless::Vec<u8, MORE_PARAMETERS>,
    /// Options sent with every message.
    kept: heapless::Vec<u8, KEPT>,
}

/// Codes whose values the client itself decides.
const OWN: [u8; 9] = [
    code::REQUESTED_IP,
    code::LEASE_TIME,
    code::OVERLOAD,
    code::MESSAGE_TYPE,
    code::SERVER_ID,
    code::PARAMETER_LIST,
    code::MAX_MESSAGE_SIZE,
    0,
    255,
];

impl<T: AsRef<[u8]>> Request<T> {
    /// Calls `each` on every option to be sent with all messages: code and value.
    fn options(&self, each: &mut dyn FnMut(u8, &[u8]) -> Result<()>) -> Result<()> {
        let texts = [
            (code::CLIENT_ID, &self.client_id),
            (code::HOST_NAME, &self.host_name),
            (code::VENDOR_CLASS, &self.vendor_class),
            (code::USER_CLASS, &self.user_class),
        ];
        for (code, text) in texts {
            if let Some(text) = text {
                each(code, text.as_ref())?;
            }
        }
        if self.pxe && self.vendor_class.is_none() {
            each(code::VENDOR_CLASS, &pxe::class(self.arch.unwrap_or(0), self.ndi))?;
        }
        if let Some(arch) = self.arch {
            each(code::CLIENT_ARCH, &arch.to_be_bytes())?;
        }
        if let Some(ndi) = self.ndi {
            each(code::CLIENT_NDI, &ndi)?;
        }
        if let Some(uuid) = self.uuid {
            let mut value = [0; 17];
            value.iter_mut().skip(1).zip(uuid).for_each(|(to, from)| *to = from);
            each(code::CLIENT_UUID, &value)?;
        }
        let Some(options) = &self.options else { return Ok(()) };
        for (code, value) in SubOptions::parse(options.as_ref()).map_err(|_| Error::Invalid)? {
            if OWN.contains(&code) {
                return Err(Error::Invalid);
            }
            each(code, value)?;
        }
        Ok(())
    }

    fn parameters(&self) -> &[u8] {
        self.parameters.as_ref().map_or(&[], |codes| codes.as_ref())
    }

    /// Whether everything fits.
    ///
    /// # Errors
    /// [`Error::Invalid`]: options that do not parse, or are the client's own; [`Error::NameTooLong`].
    fn check(&self) -> Result<()> {
        let mut len = 0usize;
        self.options(&mut |_, value| {
            len = len.saturating_add(value.len()).saturating_add(2);
            if value.len() > 255 || len > KEPT { Err(Error::NameTooLong) } else { Ok(()) }
        })?;
        if self.parameters().len() > MORE_PARAMETERS { Err(Error::NameTooLong) } else { Ok(()) }
    }
}

impl Config {
    /// Takes over what was asked for and checked. In place: it is not to lie on the machine's stack.
    fn set<T: AsRef<[u8]>>(&mut self, request: &Request<T>, address: Option<Ipv4Addr>) {
        self.address = address;
        self.broadcast = request.broadcast;
        self.bootp = request.bootp;
        self.probe = request.probe;
        self.classless_routes = request.classless_routes;
        self.pxe = request.pxe;
        self.proxy_wait = request.proxy_wait.unwrap_or(if request.pxe { DEFAULT_PROXY_WAIT } else { Duration::ZERO });
        self.lease_s = request.lease_s;
        let kept = &mut self.kept;
        kept.clear();
        // It was seen to fit.
        let _ = request.options(&mut |code, value| {
            let whole = kept.extend_from_slice(&[code, value.len() as u8]).and_then(|()| kept.extend_from_slice(value));
            whole.map_err(|_| Error::NameTooLong)
        });
        self.parameters.clear();
        let _ = self.parameters.extend_from_slice(request.parameters());
    }

    /// The kept options, one by one.
    fn kept(&self) -> impl Iterator<Item = (u8, &[u8])> {
        // They were built by `keep`, so they parse.
        SubOptions::parse(&self.kept).into_iter().flatten()
    }
}

/// What an event of a client means for the operation that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing.
    Nothing,
    /// The message is a lease, or the parameters asked for.
    Lease,
    /// The message has boot data.
    Boot,
    /// The message refuses.
    Refusal,
}

/// The DHCP client of one NIC.
#[derive(Debug)]
pub struct Client {
    config: Config,
    phase: Phase,
    /// When it entered the phase: what the times of a lease that is granted in it count from.
    since: Instant,
    /// What is offered, asked for or probed, from [`Phase::Selecting`] to [`Phase::Probing`].
    offer: Option<Terms>,
    /// The operation that waits.
    op: Option<u8>,
    xid: u32,
    /// When the client began to look for an address: what the `secs` field counts from.
    started: Instant,
    /// The `secs` field of the last DISCOVER, which its REQUEST repeats (RFC 2131 §4.4.1).
    secs: u16,
    /// Messages sent in this phase.
    tries: u8,
    /// Refusals and conflicts in a row.
    setbacks: u8,
    /// When this phase has something to do.
    next: Instant,
    /// The message that is due has not left yet: the NIC has no room or the neighbour is being asked for.
    unsent: bool,
    /// How often the link had come up when that was looked at last.
    link_ups: u8,
    /// The lease that the interface is configured by.
    lease: Option<Terms>,
    boot: Boot,
    lost: Option<Ipv4Addr>,
    /// Why it went off by itself.
    failure: Option<Error>,
}

impl Default for Client {
    fn default() -> Self {
        Client::new()
    }
}

impl Client {
    /// A client that is not in use.
    pub fn new() -> Self {
        Client {
            config: Config::default(),
            phase: Phase::Off,
            since: Instant::ZERO,
            offer: None,
            op: None,
            xid: 0,
            started: Instant::ZERO,
            secs: 0,
            tries: 0,
            setbacks: 0,
            next: Instant::NEVER,
            unsent: false,
            link_ups: 0,
            lease: None,
            boot: Boot::default(),
            lost: None,
            failure: None,
        }
    }

    /// Where it is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether it takes what comes to port 68.
    pub fn is_active(&self) -> bool {
        !matches!(self.phase, Phase::Off | Phase::Informed)
    }

    /// Whether what its operation waits for has come.
    pub fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Bound | Phase::Renewing | Phase::Rebinding | Phase::Informed)
    }

    /// The lease that the interface is configured by.
    pub fn lease(&self) -> Option<&Terms> {
        self.lease.as_ref()
    }

    /// Whether [`Self::take_lost`] has something to tell.
    pub fn has_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// The address lost since the last call, if one was: expired, refused, or in use by another host.
    pub fn take_lost(&mut self) -> Option<Ipv4Addr> {
        self.lost.take()
    }

    /// The earliest time at which it has something to do.
    pub fn deadline(&self) -> Instant {
        self.next
    }

    /// The operation that waits for it.
    pub(super) fn waiting(&self) -> Option<u8> {
        self.op
    }

    /// The operation in slot `op` ends and waits no more.
    #[inline(never)]
    pub(super) fn detach(&mut self, op: u8) {
        if self.op == Some(op) {
            self.op = None;
        }
    }
}
