//! Boot data from a server beside the one that gives the address (PXE 2.1, RFC 4578): offers of proxyDHCP servers, and
//! what is asked of boot servers on port 4011 once there is an address.

use super::terms;
use crate::stack::interface::is_host_address;
use crate::storage::host::Endpoint;
use crate::wire::dhcp::{Message, SubOptions, code};
use core::net::Ipv4Addr;

/// Port of proxyDHCP and boot servers (PXE 2.1 §2.2.4).
pub const PORT: u16 = 4011;
/// Discovery control (PXE 2.1 table 2-1): bit 3 says that the boot file of the offer is to be used.
const DISCOVERY_CONTROL: u8 = 6;
/// Boot servers: type, count, addresses.
const BOOT_SERVERS: u8 = 8;
/// Boot menu: type, length, text.
const BOOT_MENU: u8 = 9;
/// Longest option 43 looked into, in bytes.
const VENDOR_LEN: usize = 512;

/// What is known of where boot data comes from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Boot {
    known: bool,
    /// Whom to ask once there is an address, if the offer was not enough.
    pub(super) server: Option<Endpoint>,
    /// For what.
    pub(super) item: Option<u16>,
}

/// The vendor class of a PXE client (RFC 4578 §3.1): "PXEClient:Arch:xxxxx:UNDI:yyyzzz".
pub(super) fn class(arch: u16, ndi: Option<[u8; 3]>) -> [u8; 32] {
    let [_, major, minor] = ndi.unwrap_or([1, 2, 1]);
    let mut class = *b"PXEClient:Arch:00000:UNDI:000000";
    let mut put = |at: usize, len: usize, mut value: u16| {
        for digit in class.iter_mut().skip(at).take(len).rev() {
            *digit = b'0'.wrapping_add((value % 10) as u8);
            value /= 10;
        }
    };
    put(15, 5, arch);
    put(26, 3, u16::from(major));
    put(29, 3, u16::from(minor));
    class
}

/// Whether the sender says that it speaks PXE.
pub(super) fn is_pxe(message: &Message<'_>) -> bool {
    let mut class = [0; 9];
    message.copy_option(code::VENDOR_CLASS, &mut class).is_some_and(|len| len >= 9) && &class == b"PXEClient"
}

/// Whether the message names a boot file.
pub(super) fn has_file(message: &Message<'_>) -> bool {
    !message.file().is_empty() || message.option_bytes(code::BOOT_FILE).any(|b| b != 0)
}

/// What option 43 says of boot servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Vendor {
    /// The offer's file is to be used, whatever else there is.
    use_file: bool,
    /// The first item of the menu, or the type of the first boot server.
    item: Option<u16>,
    /// A server for it.
    server: Option<Ipv4Addr>,
}

impl Vendor {
    /// Whether a boot server is to be asked, even where `message` names a file (PXE 2.1 table 2-1, tag 6).
    fn leads_on(&self, message: &Message<'_>) -> bool {
        self.item.is_some() && !(self.use_file && has_file(message))
    }

    fn read(message: &Message<'_>) -> Vendor {
        let mut buf = [0; VENDOR_LEN];
        let len = message.copy_option(code::VENDOR_SPECIFIC, &mut buf).unwrap_or(0);
        let mut vendor = Vendor::default();
        // Something else than encapsulated options is for the host (RFC 2132 §8.4).
        let Some(options) = buf.get(..len).and_then(|bytes| SubOptions::parse(bytes).ok()) else { return vendor };
        let (mut menu, mut servers): (&[u8], &[u8]) = (&[], &[]);
        for (code, value) in options {
            match code {
                DISCOVERY_CONTROL => vendor.use_file = value.first().is_some_and(|bits| bits & 8 != 0),
                BOOT_MENU => menu = value,
                BOOT_SERVERS => servers = value,
                _ => {}
            }
        }
        let kind = |bytes: &[u8]| bytes.first_chunk::<2>().map(|b| u16::from_be_bytes(*b));
        // Type 0 is the local disk (PXE 2.1 table 2-1).
        vendor.item = kind(menu).or(kind(servers)).filter(|item| *item != 0);
        // Each turn takes three bytes or more.
        while let [hi, lo, count, rest @ ..] = servers {
            let len = usize::from(*count).saturating_mul(4);
            let (list, tail) = rest.split_at_checked(len).unwrap_or((&[], &[]));
            if Some(u16::from_be_bytes([*hi, *lo])) == vendor.item
                && let Some(addr) = list.first_chunk::<4>()
            {
                vendor.server = Some(Ipv4Addr::from(*addr)).filter(|a| is_host_address(*a));
                break;
            }
            servers = tail;
        }
        vendor
    }
}

impl Boot {
    /// Whether boot data has come, or where it comes from is known.
    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    /// Whether a boot server is to be asked.
    pub(super) fn wants_request(&self) -> bool {
        self.server.is_some()
    }

    /// Takes the offer of a proxyDHCP server; the first counts. `false` if it is not taken.
    pub(super) fn take_offer(&mut self, message: &Message<'_>, src: Ipv4Addr) -> bool {
        let proxy = terms::server(message).unwrap_or(src);
        if self.known || !is_host_address(proxy) {
            return false;
        }
        self.known = true;
        let vendor = Vendor::read(message);
        if !has_file(message) || vendor.leads_on(message) {
            self.item = vendor.item;
            self.server = Some(Endpoint { addr: vendor.server.unwrap_or(proxy), port: PORT });
        }
        true
    }

    /// Takes the lease of a server that speaks PXE itself: its boot servers are asked, if it has any.
    pub(super) fn take_lease(&mut self, message: &Message<'_>, server: Ipv4Addr) {
        let vendor = Vendor::read(message);
        if vendor.leads_on(message) {
            self.known = true;
            self.item = vendor.item;
            self.server = Some(Endpoint { addr: vendor.server.unwrap_or(server), port: PORT });
        }
    }

    /// Whether `message` is the answer of the boot server that was asked.
    pub(super) fn is_answer(&self, message: &Message<'_>, src: Ipv4Addr) -> bool {
        self.server.is_some_and(|s| src == s.addr || terms::server(message) == Some(s.addr))
    }
}
