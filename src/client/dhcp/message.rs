//! What the client sends: which fields and options each message has (RFC 2131 §4.4.1, table 5).

use super::machine::Env;
use super::{Client, State};
use crate::stack::egress::TxError;
use crate::storage::host::{Endpoint, Host, Span};
use crate::udp::{self, Owner, Socket};
use crate::wire;
use crate::wire::dhcp::{Builder, CLIENT_PORT, HEAD_LEN, MessageType, NO_NAMES, Op, Repr, SERVER_PORT, code};
use crate::wire::ethernet::Address;
use core::net::Ipv4Addr;

/// Longest message sent: what fits the smallest datagram everybody takes (RFC 2131 §2), without its headers.
const MAX_LEN: usize = 548;
/// Bytes of that for options.
const MAX_OPTIONS: usize = MAX_LEN - HEAD_LEN - NO_NAMES.len();
/// What is asked for by default. RFC 3442 wants option 121 ahead of 3.
const PARAMETERS: [u8; 19] = [
    code::SUBNET_MASK,
    code::CLASSLESS_ROUTES,
    code::ROUTER,
    code::DNS_SERVER,
    code::HOST_NAME,
    code::DOMAIN_NAME,
    code::ROOT_PATH,
    code::INTERFACE_MTU,
    code::BROADCAST,
    NTP_SERVER,
    code::VENDOR_SPECIFIC,
    code::LEASE_TIME,
    code::SERVER_ID,
    code::RENEWAL_TIME,
    code::REBINDING_TIME,
    code::TFTP_SERVER_NAME,
    code::BOOT_FILE,
    code::DOMAIN_SEARCH,
    code::TFTP_SERVER_ADDRESS,
];
/// Network time servers (RFC 2132 §8.3).
const NTP_SERVER: u8 = 42;
/// PXE boot item (PXE 2.1 table 2-1), encapsulated in option 43.
const PXE_BOOT_ITEM: u8 = 71;

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Discover,
    /// REQUEST for an offer.
    Select {
        addr: Ipv4Addr,
        server: Ipv4Addr,
    },
    /// REQUEST for the address of before.
    Reboot(Ipv4Addr),
    /// REQUEST for more time, to the server or to all.
    Extend {
        addr: Ipv4Addr,
        server: Option<Ipv4Addr>,
    },
    Inform(Ipv4Addr),
    Decline {
        addr: Ipv4Addr,
        server: Ipv4Addr,
    },
    Release {
        addr: Ipv4Addr,
        server: Ipv4Addr,
    },
    /// REQUEST for boot data (PXE 2.1 §2.2.4).
    Boot {
        addr: Ipv4Addr,
        server: Endpoint,
        item: Option<u16>,
    },
}

impl Client {
    /// Sends a message. `Err` only for what may go later.
    #[inline(never)]
    pub(super) fn send<H: Host>(&mut self, env: &mut Env<'_, '_, H>, kind: Kind) -> Result<(), TxError> {
        let Some(interface) = env.stack.interface(env.nic) else { return Ok(()) };
        let (mac, mtu) = (interface.mac, interface.frame_mtu);
        let head = self.head(kind, mac);
        let mut buf = [0u8; MAX_OPTIONS];
        // `KEPT` is chosen so that everything fits.
        let Ok(options) = self.build(&mut buf, kind, mtu) else { return Ok(()) };
        let message = [Span::Bytes(&head), Span::Bytes(&NO_NAMES), Span::Bytes(options)];
        let (src, dst, port) = match kind {
            Kind::Discover | Kind::Select { .. } | Kind::Reboot(_) | Kind::Decline { .. } => {
                (Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, SERVER_PORT)
            }
            Kind::Extend { addr, server } => (addr, server.unwrap_or(Ipv4Addr::BROADCAST), SERVER_PORT),
            Kind::Inform(addr) => (addr, Ipv4Addr::BROADCAST, SERVER_PORT),
            Kind::Release { addr, server } => (addr, server, SERVER_PORT),
            Kind::Boot { addr, server, .. } => (addr, server.addr, server.port),
        };
        let socket = Socket {
            local: Endpoint { addr: src, port: CLIENT_PORT },
            peer: None,
            nic: Some(env.nic),
            owner: Owner::Handler,
            queue: None,
            ttl: 64,
            tos: 0,
            dont_fragment: false,
        };
        // The queue forgets what waits when the address goes.
        let queue = !matches!(kind, Kind::Release { .. });
        let sent = udp::send(env.stack, &socket, Endpoint { addr: dst, port }, &message, queue);
        match sent {
            Err(e) if e.is_transient() || e == TxError::NetworkDown => Err(e),
            // Lost, as a frame on the wire can be lost: the timer repeats it.
            _ => Ok(()),
        }
    }

    fn head(&self, kind: Kind, mac: Address) -> [u8; HEAD_LEN] {
        let ciaddr = match kind {
            Kind::Discover | Kind::Select { .. } | Kind::Reboot(_) | Kind::Decline { .. } => Ipv4Addr::UNSPECIFIED,
            Kind::Extend { addr, .. } | Kind::Inform(addr) | Kind::Release { addr, .. } | Kind::Boot { addr, .. } => {
                addr
            }
        };
        let unconfigured = matches!(kind, Kind::Discover | Kind::Select { .. } | Kind::Reboot(_));
        let repr = Repr {
            op: Op::Request,
            xid: self.xid,
            secs: if unconfigured { self.secs } else { 0 },
            broadcast: unconfigured && self.config.broadcast,
            ciaddr,
            yiaddr: Ipv4Addr::UNSPECIFIED,
            siaddr: Ipv4Addr::UNSPECIFIED,
            giaddr: Ipv4Addr::UNSPECIFIED,
            chaddr: mac,
            sname: &[],
            file: &[],
        };
        repr.head()
    }

    #[inline(never)]
    fn build<'b>(&self, buf: &'b mut [u8], kind: Kind, mtu: u16) -> wire::Result<&'b [u8]> {
        let mut b = Builder::options(buf);
        b.message_type(match kind {
            Kind::Discover => MessageType::Discover,
            Kind::Select { .. } | Kind::Reboot(_) | Kind::Extend { .. } | Kind::Boot { .. } => MessageType::Request,
            Kind::Inform(_) => MessageType::Inform,
            Kind::Decline { .. } => MessageType::Decline,
            Kind::Release { .. } => MessageType::Release,
        })?;
        let (requested, server) = match kind {
            Kind::Discover => (self.config.address, None),
            Kind::Select { addr, server } | Kind::Decline { addr, server } => (Some(addr), Some(server)),
            Kind::Reboot(addr) => (Some(addr), None),
            Kind::Release { server, .. } => (None, Some(server)),
            Kind::Extend { .. } | Kind::Inform(_) | Kind::Boot { .. } => (None, None),
        };
        if let Some(addr) = requested {
            b.ipv4(code::REQUESTED_IP, addr)?;
        }
        if let Some(server) = server.filter(|s| !s.is_unspecified()) {
            b.ipv4(code::SERVER_ID, server)?;
        }
        // Table 5: DECLINE and RELEASE have no other option than the client identifier.
        let bare = matches!(kind, Kind::Decline { .. } | Kind::Release { .. });
        for (code, value) in self.config.kept().filter(|(c, _)| !bare || *c == code::CLIENT_ID) {
            b.option(code, value)?;
        }
        if bare {
            return Ok(b.finish());
        }
        b.u16(code::MAX_MESSAGE_SIZE, mtu.max(576))?;
        if let Some(s) = self.config.lease_s.filter(|_| !matches!(kind, Kind::Inform(_) | Kind::Boot { .. })) {
            b.u32(code::LEASE_TIME, s)?;
        }
        self.put_parameters(&mut b)?;
        if let Kind::Boot { item: Some(item), .. } = kind {
            let [hi, lo] = item.to_be_bytes();
            b.option(code::VENDOR_SPECIFIC, &[PXE_BOOT_ITEM, 4, hi, lo, 0, 0, 255])?;
        }
        Ok(b.finish())
    }

    #[inline(never)]
    fn put_parameters(&self, b: &mut Builder<'_>) -> wire::Result<()> {
        let mut codes: heapless::Vec<u8, { PARAMETERS.len() + super::MORE_PARAMETERS }> = heapless::Vec::new();
        // There is room for all of them.
        let _ = codes.extend_from_slice(&PARAMETERS);
        let _ = codes.extend_from_slice(&self.config.parameters);
        b.option(code::PARAMETER_LIST, &codes)
    }

    /// The message that the state calls for.
    pub(super) fn due_message(&self) -> Option<Kind> {
        let lease = self.lease.as_ref();
        match self.state {
            State::Selecting { offer: None } => Some(Kind::Discover),
            State::Requesting { offer, .. } => Some(Kind::Select { addr: offer.addr, server: offer.server }),
            State::Rebooting { addr, .. } => Some(Kind::Reboot(addr)),
            State::Renewing { .. } => lease.map(|l| Kind::Extend { addr: l.addr, server: Some(l.server) }),
            State::Rebinding { .. } => lease.map(|l| Kind::Extend { addr: l.addr, server: None }),
            State::Informing { addr } => Some(Kind::Inform(addr)),
            State::Releasing { .. } => lease.map(|l| Kind::Release { addr: l.addr, server: l.server }),
            State::Booting => {
                let server = self.boot.server?;
                lease.map(|l| Kind::Boot { addr: l.addr, server, item: self.boot.item })
            }
            _ => None,
        }
    }
}
