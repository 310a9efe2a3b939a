//! What the client sends: which fields and options each message has (RFC 2131 §4.4.1, table 5).

use super::machine::Env;
use super::{Client, Phase, Terms};
use crate::stack::egress::TxError;
use crate::storage::checksum::Sum;
use crate::storage::host::{Endpoint, Host};
use crate::udp::{self, Owner, Socket};
use crate::wire;
use crate::wire::dhcp::{Builder, CLIENT_PORT, FIXED_LEN, MIN_LEN, MessageType, Op, Repr, SERVER_PORT, code};
use crate::wire::ethernet::Address;
use core::net::Ipv4Addr;

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

/// A message to send: what the kinds of RFC 2131 table 5 differ in.
#[derive(Clone, Copy)]
pub(super) struct Outgoing {
    kind: MessageType,
    /// The address that the client has, and sends from; unspecified: none.
    ciaddr: Ipv4Addr,
    /// Option 50; unspecified: none.
    requested: Ipv4Addr,
    /// Option 54; unspecified: none.
    server: Ipv4Addr,
    dst: Endpoint,
}

impl Outgoing {
    /// To everybody, from nobody.
    const ANYONE: Outgoing = Outgoing {
        kind: MessageType::Request,
        ciaddr: Ipv4Addr::UNSPECIFIED,
        requested: Ipv4Addr::UNSPECIFIED,
        server: Ipv4Addr::UNSPECIFIED,
        dst: Endpoint { addr: Ipv4Addr::BROADCAST, port: SERVER_PORT },
    };

    /// Refuses an address that another host has.
    pub(super) fn decline(terms: &Terms) -> Outgoing {
        Outgoing { kind: MessageType::Decline, requested: terms.addr, server: terms.server, ..Outgoing::ANYONE }
    }

    /// Whether it has no other option than the client identifier (table 5).
    fn is_bare(&self) -> bool {
        matches!(self.kind, MessageType::Decline | MessageType::Release)
    }
}

impl Client {
    /// The message that the phase calls for.
    pub(super) fn due_message(&self) -> Option<Outgoing> {
        let mut message = Outgoing::ANYONE;
        match self.phase {
            Phase::Selecting => {
                message.kind = MessageType::Discover;
                message.requested = self.config.address.unwrap_or(Ipv4Addr::UNSPECIFIED);
            }
            Phase::Requesting => {
                let offer = self.offer.as_ref()?;
                (message.requested, message.server) = (offer.addr, offer.server);
            }
            Phase::Rebooting => message.requested = self.config.address?,
            Phase::Informing => {
                message.kind = MessageType::Inform;
                message.ciaddr = self.config.address?;
            }
            _ => {
                let lease = self.lease.as_ref()?;
                message.ciaddr = lease.addr;
                match self.phase {
                    Phase::Renewing => message.dst.addr = lease.server,
                    Phase::Releasing => {
                        message.kind = MessageType::Release;
                        (message.server, message.dst.addr) = (lease.server, lease.server);
                    }
                    Phase::Booting => message.dst = self.boot.server?,
                    Phase::Rebinding => {}
                    _ => return None,
                }
            }
        }
        Some(message)
    }

    /// Sends a message, written where it leaves from. `Err` only for what may go later.
    #[inline(never)]
    pub(super) fn send<H: Host>(&mut self, env: &mut Env<'_, '_, H>, message: &Outgoing) -> Result<(), TxError> {
        let Some(interface) = env.stack.interface(env.nic) else { return Ok(()) };
        let (mac, mtu) = (interface.mac, interface.frame_mtu);
        let socket = Socket {
            local: Endpoint { addr: message.ciaddr, port: CLIENT_PORT },
            peer: None,
            nic: Some(env.nic),
            owner: Owner::Handler,
            queue: None,
            ttl: 64,
            tos: 0,
            dont_fragment: false,
        };
        // The cookie and the End option are beside the fixed part and the options.
        let mut len = FIXED_LEN + 5;
        // Adding up does not fail. `KEPT` is chosen so that no message is longer than 548 bytes, which fit the smallest
        // datagram everybody takes (RFC 2131 §2).
        let _ = self.options(message, mtu, &mut |_, value| {
            len = len.wrapping_add(value.len()).wrapping_add(2);
            Ok(())
        });
        let sent = udp::send_filled(env.stack, &socket, message.dst, len.max(MIN_LEN), &mut |out| {
            self.write(message, mac, mtu, out).map_err(|_| TxError::Invalid)?;
            Ok(Sum::of(out))
        });
        match sent {
            Err(e) if e.is_transient() || e == TxError::NetworkDown => Err(e),
            // Lost, as a frame on the wire can be lost: the timer repeats it.
            _ => Ok(()),
        }
    }

    fn write(&self, message: &Outgoing, mac: Address, mtu: u16, out: &mut [u8]) -> wire::Result<()> {
        let unconfigured = message.ciaddr.is_unspecified() && message.kind != MessageType::Decline;
        let repr = Repr {
            op: Op::Request,
            xid: self.xid,
            secs: if unconfigured { self.secs } else { 0 },
            broadcast: unconfigured && self.config.broadcast,
            ciaddr: message.ciaddr,
            yiaddr: Ipv4Addr::UNSPECIFIED,
            siaddr: Ipv4Addr::UNSPECIFIED,
            giaddr: Ipv4Addr::UNSPECIFIED,
            chaddr: mac,
            sname: &[],
            file: &[],
        };
        let mut b = Builder::new(out, &repr)?;
        self.options(message, mtu, &mut |code, value| b.option(code, value))?;
        b.finish();
        Ok(())
    }

    /// Calls `put` on every option of a message: code and value.
    ///
    /// # Errors
    /// The first of `put`'s.
    #[inline(never)]
    fn options(
        &self,
        message: &Outgoing,
        mtu: u16,
        put: &mut dyn FnMut(u8, &[u8]) -> wire::Result<()>,
    ) -> wire::Result<()> {
        put(code::MESSAGE_TYPE, &[message.kind as u8])?;
        for (code, addr) in [(code::REQUESTED_IP, message.requested), (code::SERVER_ID, message.server)] {
            if !addr.is_unspecified() {
                put(code, &addr.octets())?;
            }
        }
        let bare = message.is_bare();
        for (code, value) in self.config.kept().filter(|(c, _)| !bare || *c == code::CLIENT_ID) {
            put(code, value)?;
        }
        if bare {
            return Ok(());
        }
        put(code::MAX_MESSAGE_SIZE, &mtu.max(576).to_be_bytes())?;
        if let Some(s) = self.config.lease_s.filter(|_| !matches!(self.phase, Phase::Informing | Phase::Booting)) {
            put(code::LEASE_TIME, &s.to_be_bytes())?;
        }
        let mut codes: heapless::Vec<u8, { PARAMETERS.len() + super::MORE_PARAMETERS }> = heapless::Vec::new();
        // There is room for all of them.
        let _ = codes.extend_from_slice(&PARAMETERS);
        let _ = codes.extend_from_slice(&self.config.parameters);
        put(code::PARAMETER_LIST, &codes)?;
        if let (Phase::Booting, Some(item)) = (self.phase, self.boot.item) {
            // REQUEST for boot data (PXE 2.1 §2.2.4).
            let [hi, lo] = item.to_be_bytes();
            put(code::VENDOR_SPECIFIC, &[PXE_BOOT_ITEM, 4, hi, lo, 0, 0, 255])?;
        }
        Ok(())
    }
}
