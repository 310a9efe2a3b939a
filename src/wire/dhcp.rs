//! DHCP and BOOTP messages (RFC 2131, RFC 951) and the form of their options (RFC 2132): overload, long options in pieces
//! (RFC 3396), encapsulated vendor options, classless routes (RFC 3442). What the options mean is left to the client.

use super::cursor::Writer;
use super::ethernet;
use super::{Error, Result};
use core::net::Ipv4Addr;

/// Length of the fixed part, without the magic cookie, in bytes.
pub const FIXED_LEN: usize = 236;
/// Least length of a message as emitted: BOOTP relays and servers may drop shorter ones (RFC 951 §3, RFC 1542 §2.1).
pub const MIN_LEN: usize = 300;
/// Port servers listen on.
pub const SERVER_PORT: u16 = 67;
/// Port clients listen on.
pub const CLIENT_PORT: u16 = 68;

const COOKIE: [u8; 4] = [99, 130, 83, 99];

/// Option codes (RFC 2132 where nothing else is said).
pub mod code {
    /// Subnet mask.
    pub const SUBNET_MASK: u8 = 1;
    /// Routers: a list of addresses.
    pub const ROUTER: u8 = 3;
    /// Name servers: a list of addresses.
    pub const DNS_SERVER: u8 = 6;
    /// Host name.
    pub const HOST_NAME: u8 = 12;
    /// Domain name.
    pub const DOMAIN_NAME: u8 = 15;
    /// Root path.
    pub const ROOT_PATH: u8 = 17;
    /// Interface MTU.
    pub const INTERFACE_MTU: u8 = 26;
    /// Broadcast address.
    pub const BROADCAST: u8 = 28;
    /// Vendor specific information, often encapsulated options.
    pub const VENDOR_SPECIFIC: u8 = 43;
    /// Requested IP address.
    pub const REQUESTED_IP: u8 = 50;
    /// Lease time in seconds.
    pub const LEASE_TIME: u8 = 51;
    /// `file` or `sname` or both hold options.
    pub const OVERLOAD: u8 = 52;
    /// Message type.
    pub const MESSAGE_TYPE: u8 = 53;
    /// Server identifier.
    pub const SERVER_ID: u8 = 54;
    /// Parameter request list.
    pub const PARAMETER_LIST: u8 = 55;
    /// Error message.
    pub const MESSAGE: u8 = 56;
    /// Longest message the sender takes.
    pub const MAX_MESSAGE_SIZE: u8 = 57;
    /// Renewal time T1 in seconds.
    pub const RENEWAL_TIME: u8 = 58;
    /// Rebinding time T2 in seconds.
    pub const REBINDING_TIME: u8 = 59;
    /// Vendor class identifier.
    pub const VENDOR_CLASS: u8 = 60;
    /// Client identifier.
    pub const CLIENT_ID: u8 = 61;
    /// TFTP server name.
    pub const TFTP_SERVER_NAME: u8 = 66;
    /// Boot file name.
    pub const BOOT_FILE: u8 = 67;
    /// User class (RFC 3004).
    pub const USER_CLASS: u8 = 77;
    /// Client system architecture (RFC 4578 §2.1).
    pub const CLIENT_ARCH: u8 = 93;
    /// Client network interface identifier (RFC 4578 §2.2).
    pub const CLIENT_NDI: u8 = 94;
    /// Client machine identifier (RFC 4578 §2.3).
    pub const CLIENT_UUID: u8 = 97;
    /// Domain search list (RFC 3397).
    pub const DOMAIN_SEARCH: u8 = 119;
    /// Classless static routes (RFC 3442).
    pub const CLASSLESS_ROUTES: u8 = 121;
    /// TFTP server addresses (RFC 5859).
    pub const TFTP_SERVER_ADDRESS: u8 = 150;
}

/// Type of a DHCP message (RFC 2132 §9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MessageType {
    /// A client looks for servers.
    Discover = 1,
    /// A server offers an address.
    Offer = 2,
    /// A client asks for, or keeps, an address.
    Request = 3,
    /// A client refuses an address that is in use.
    Decline = 4,
    /// A server grants.
    Ack = 5,
    /// A server refuses.
    Nak = 6,
    /// A client gives its address up.
    Release = 7,
    /// A client asks for parameters only.
    Inform = 8,
}

impl MessageType {
    /// The type that `value` stands for.
    pub fn from_u8(value: u8) -> Option<MessageType> {
        Some(match value {
            1 => MessageType::Discover,
            2 => MessageType::Offer,
            3 => MessageType::Request,
            4 => MessageType::Decline,
            5 => MessageType::Ack,
            6 => MessageType::Nak,
            7 => MessageType::Release,
            8 => MessageType::Inform,
            _ => return None,
        })
    }
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A client.
    Request,
    /// A server.
    Reply,
}

/// A view of a message.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    fixed: &'a [u8; FIXED_LEN],
    op: Op,
    options: Option<&'a [u8]>,
    overload: u8,
}

impl<'a> Message<'a> {
    /// Views `bytes`, a UDP payload, as a message. [`Error::Truncated`] if the fixed part is not whole;
    /// [`Error::Malformed`] unless it is a request or a reply for Ethernet addresses of 6 bytes. Without the magic cookie it is a plain BOOTP message that
    /// has no options.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>> {
        let (fixed, rest) = bytes.split_first_chunk::<FIXED_LEN>().ok_or(Error::Truncated)?;
        let op = match fixed[0] {
            1 => Op::Request,
            2 => Op::Reply,
            _ => return Err(Error::Malformed),
        };
        if fixed[1] != 1 || fixed[2] != 6 {
            return Err(Error::Malformed);
        }
        let options = rest.strip_prefix(&COOKIE[..]);
        let mut message = Message { fixed, op, options, overload: 0 };
        // Overload is looked for in the options field alone (RFC 2131 §4.1).
        message.overload = message.u8(code::OVERLOAD).filter(|value| (1..=3).contains(value)).unwrap_or(0);
        Ok(message)
    }

    /// Who speaks.
    pub fn op(&self) -> Op {
        self.op
    }

    /// Transaction.
    pub fn xid(&self) -> u32 {
        u32::from_be_bytes([self.fixed[4], self.fixed[5], self.fixed[6], self.fixed[7]])
    }

    /// Seconds since the client began.
    pub fn secs(&self) -> u16 {
        u16::from_be_bytes([self.fixed[8], self.fixed[9]])
    }

    /// Whether the client wants answers by broadcast (RFC 2131 §4.1).
    pub fn broadcast(&self) -> bool {
        self.fixed[10] & 0x80 != 0
    }

    /// Address the client has.
    pub fn ciaddr(&self) -> Ipv4Addr {
        let b = self.fixed;
        Ipv4Addr::new(b[12], b[13], b[14], b[15])
    }

    /// Address the client is given.
    pub fn yiaddr(&self) -> Ipv4Addr {
        let b = self.fixed;
        Ipv4Addr::new(b[16], b[17], b[18], b[19])
    }

    /// Server to boot from next.
    pub fn siaddr(&self) -> Ipv4Addr {
        let b = self.fixed;
        Ipv4Addr::new(b[20], b[21], b[22], b[23])
    }

    /// Relay agent.
    pub fn giaddr(&self) -> Ipv4Addr {
        let b = self.fixed;
        Ipv4Addr::new(b[24], b[25], b[26], b[27])
    }

    /// MAC address of the client.
    pub fn chaddr(&self) -> ethernet::Address {
        let b = self.fixed;
        ethernet::Address([b[28], b[29], b[30], b[31], b[32], b[33]])
    }

    /// The `sname` field up to its first NUL; empty if it holds options.
    pub fn sname(&self) -> &'a [u8] {
        if self.overload & 2 != 0 { &[] } else { until_nul(self.sname_field()) }
    }

    /// The `file` field up to its first NUL; empty if it holds options.
    pub fn file(&self) -> &'a [u8] {
        if self.overload & 1 != 0 { &[] } else { until_nul(self.file_field()) }
    }

    /// Whether the message has options at all: a BOOTP message may have none.
    pub fn has_options(&self) -> bool {
        self.options.is_some()
    }

    /// Message type; `None` in a BOOTP message, and where it is of no known value.
    pub fn message_type(&self) -> Option<MessageType> {
        self.u8(code::MESSAGE_TYPE).and_then(MessageType::from_u8)
    }

    /// The options in order: of the options field, then of `file`, then of `sname` (RFC 2131 §4.1). An option that runs over
    /// the end of its field ends that field.
    pub fn options(&self) -> OptionIter<'a> {
        OptionIter {
            field: self.options.unwrap_or_default(),
            file: if self.overload & 1 != 0 { self.file_field() } else { &[] },
            sname: if self.overload & 2 != 0 { self.sname_field() } else { &[] },
        }
    }

    /// The pieces of option `code`, in order: together they are the option (RFC 3396 §7). None if it is missing.
    pub fn option(&self, code: u8) -> OptionParts<'a> {
        OptionParts { options: self.options(), code }
    }

    /// Whether option `code` is there, be it empty.
    pub fn has_option(&self, code: u8) -> bool {
        self.option(code).next().is_some()
    }

    /// The bytes of option `code`, over all its pieces.
    pub fn option_bytes(&self, code: u8) -> OptionBytes<'a> {
        OptionBytes { parts: self.option(code), part: &[] }
    }

    /// Copies option `code`, put together, to the front of `buf`, as much as fits, and returns its whole length; `None` if
    /// it is missing. A length above `buf.len()` says that the end was left out.
    pub fn copy_option(&self, code: u8, buf: &mut [u8]) -> Option<usize> {
        if !self.has_option(code) {
            return None;
        }
        let mut len = 0usize;
        let mut room = buf.iter_mut();
        for byte in self.option_bytes(code) {
            if let Some(to) = room.next() {
                *to = byte;
            }
            len = len.saturating_add(1);
        }
        Some(len)
    }

    /// Option `code` as text, put together in `buf`, trailing NULs removed (RFC 2132 §2). `None` if it is missing, empty or does
    /// not fit.
    pub fn text<'b>(&self, code: u8, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let len = self.copy_option(code, buf)?;
        let text = buf.get(..len)?;
        let end = text.iter().rposition(|&byte| byte != 0)?;
        text.get(..=end)
    }

    /// Option `code` if it has `N` bytes. A server may send such an option twice rather than in pieces; so, if the pieces
    /// together are longer and the first alone has `N` bytes, the first counts.
    pub fn fixed<const N: usize>(&self, code: u8) -> Option<[u8; N]> {
        let mut value = [0; N];
        let len = self.copy_option(code, &mut value)?;
        let first_is_whole = || self.option(code).next().is_some_and(|part| part.len() == N);
        (len == N || first_is_whole()).then_some(value)
    }

    /// Option `code` if it has one byte.
    pub fn u8(&self, code: u8) -> Option<u8> {
        self.fixed::<1>(code).map(|[value]| value)
    }

    /// Option `code` if it has two bytes.
    pub fn u16(&self, code: u8) -> Option<u16> {
        self.fixed(code).map(u16::from_be_bytes)
    }

    /// Option `code` if it has four bytes.
    pub fn u32(&self, code: u8) -> Option<u32> {
        self.fixed(code).map(u32::from_be_bytes)
    }

    /// Option `code` if it is one address.
    pub fn ipv4(&self, code: u8) -> Option<Ipv4Addr> {
        self.fixed::<4>(code).map(Ipv4Addr::from)
    }

    /// The addresses of option `code`, a list; bytes left over at its end are ignored.
    pub fn ipv4_list(&self, code: u8) -> impl Iterator<Item = Ipv4Addr> + use<'a> {
        let mut bytes = self.option_bytes(code);
        core::iter::from_fn(move || Some(Ipv4Addr::new(bytes.next()?, bytes.next()?, bytes.next()?, bytes.next()?)))
    }

    /// The routes of option `code` ([`code::CLASSLESS_ROUTES`], or 249 of old Windows servers).
    pub fn routes(&self, code: u8) -> Routes<'a> {
        Routes { bytes: self.option_bytes(code) }
    }

    fn sname_field(&self) -> &'a [u8] {
        self.fixed.get(44..108).unwrap_or_default()
    }

    fn file_field(&self) -> &'a [u8] {
        self.fixed.get(108..236).unwrap_or_default()
    }
}

fn until_nul(field: &[u8]) -> &[u8] {
    field.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Takes one option off the front of `field`; `None` at End and at the end of the field. [`Error::Truncated`] where an option
/// runs over it.
fn next_option<'a>(field: &mut &'a [u8]) -> Result<Option<(u8, &'a [u8])>> {
    while let Some((&code, tail)) = field.split_first() {
        *field = tail;
        match code {
            0 => {}                 // Pad
            255 => return Ok(None), // End
            _ => {
                let (&len, tail) = tail.split_first().ok_or(Error::Truncated)?;
                let (data, rest) = tail.split_at_checked(usize::from(len)).ok_or(Error::Truncated)?;
                *field = rest;
                return Ok(Some((code, data)));
            }
        }
    }
    Ok(None)
}

/// Iterates over the options of a message, as pieces: code and bytes.
#[derive(Clone, Debug)]
pub struct OptionIter<'a> {
    field: &'a [u8],
    file: &'a [u8],
    sname: &'a [u8],
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        for _ in 0..3 {
            if let Ok(Some(option)) = next_option(&mut self.field) {
                return Some(option);
            }
            self.field = core::mem::replace(&mut self.file, core::mem::take(&mut self.sname));
        }
        None
    }
}

/// Iterates over the pieces of one option.
#[derive(Clone, Debug)]
pub struct OptionParts<'a> {
    options: OptionIter<'a>,
    code: u8,
}

impl<'a> Iterator for OptionParts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let code = self.code;
        self.options.find(|option| option.0 == code).map(|(_, part)| part)
    }
}

/// Iterates over the bytes of one option, over all its pieces.
#[derive(Clone, Debug)]
pub struct OptionBytes<'a> {
    parts: OptionParts<'a>,
    part: &'a [u8],
}

impl Iterator for OptionBytes<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        loop {
            if let Some((&byte, rest)) = self.part.split_first() {
                self.part = rest;
                return Some(byte);
            }
            self.part = self.parts.next()?;
        }
    }
}

/// A classless route (RFC 3442).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destination, its host bits zero.
    pub prefix: Ipv4Addr,
    /// Length of the prefix in bits, 0 to 32; 0 is the default route.
    pub prefix_len: u8,
    /// Next hop; 0.0.0.0 says that the destination is on the link.
    pub router: Ipv4Addr,
}

/// Iterates over classless routes. A width above 32, or a route that is not whole, gives one error and ends.
#[derive(Clone, Debug)]
pub struct Routes<'a> {
    bytes: OptionBytes<'a>,
}

impl Iterator for Routes<'_> {
    type Item = Result<Route>;

    fn next(&mut self) -> Option<Result<Route>> {
        let prefix_len = self.bytes.next()?;
        let route = self.route(prefix_len);
        if route.is_err() {
            self.bytes = OptionBytes { parts: OptionParts { options: OptionIter::EMPTY, code: 0 }, part: &[] };
        }
        Some(route)
    }
}

impl OptionIter<'_> {
    const EMPTY: OptionIter<'static> = OptionIter { field: &[], file: &[], sname: &[] };
}

impl Routes<'_> {
    fn route(&mut self, prefix_len: u8) -> Result<Route> {
        if prefix_len > 32 {
            return Err(Error::Malformed);
        }
        // Significant octets only: as many as the width needs.
        let mut prefix = [0u8; 4];
        for octet in prefix.iter_mut().take(usize::from(prefix_len.div_ceil(8))) {
            *octet = self.bytes.next().ok_or(Error::Truncated)?;
        }
        let mut router = [0u8; 4];
        for octet in &mut router {
            *octet = self.bytes.next().ok_or(Error::Truncated)?;
        }
        // Bits beyond the width are to be masked off (RFC 3442, "Client Behavior").
        let mask = u32::MAX.checked_shl(32u32.wrapping_sub(u32::from(prefix_len))).unwrap_or(0);
        let prefix = Ipv4Addr::from_bits(u32::from_be_bytes(prefix) & mask);
        Ok(Route { prefix, prefix_len, router: Ipv4Addr::from(router) })
    }
}

/// Appends the descriptor of a classless route to `w` (RFC 3442).
pub fn put_route(w: &mut Writer<'_>, route: &Route) -> Result<()> {
    if route.prefix_len > 32 {
        return Err(Error::Malformed);
    }
    w.u8(route.prefix_len)?;
    for octet in route.prefix.octets().iter().take(usize::from(route.prefix_len.div_ceil(8))) {
        w.u8(*octet)?;
    }
    w.put(&route.router.octets())
}

/// Iterates over the options encapsulated in a vendor option (RFC 2132 §8.4): code and bytes.
#[derive(Clone, Debug)]
pub struct SubOptions<'a>(&'a [u8]);

impl<'a> SubOptions<'a> {
    /// The encapsulated options of `bytes`, option 43 put together. [`Error::Malformed`] if one of them runs over the end: then
    /// the bytes are something else, such as text. Pads are skipped; End, which may be missing, ends them.
    pub fn parse(bytes: &'a [u8]) -> Result<SubOptions<'a>> {
        let mut rest = bytes;
        while next_option(&mut rest).map_err(|_| Error::Malformed)?.is_some() {}
        Ok(SubOptions(bytes))
    }
}

impl<'a> Iterator for SubOptions<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let option = next_option(&mut self.0).unwrap_or(None);
        if option.is_none() {
            self.0 = &[];
        }
        option
    }
}

/// The values of the fixed part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr<'a> {
    /// Who speaks.
    pub op: Op,
    /// Transaction.
    pub xid: u32,
    /// Seconds since the client began.
    pub secs: u16,
    /// The client wants answers by broadcast.
    pub broadcast: bool,
    /// Address the client has.
    pub ciaddr: Ipv4Addr,
    /// Address the client is given.
    pub yiaddr: Ipv4Addr,
    /// Server to boot from next.
    pub siaddr: Ipv4Addr,
    /// Relay agent.
    pub giaddr: Ipv4Addr,
    /// MAC address of the client.
    pub chaddr: ethernet::Address,
    /// Server name, at most 64 bytes.
    pub sname: &'a [u8],
    /// Boot file, at most 128 bytes.
    pub file: &'a [u8],
}

impl<'a> Repr<'a> {
    /// The values of a message's fixed part.
    pub fn parse(message: &Message<'a>) -> Repr<'a> {
        Repr {
            op: message.op(),
            xid: message.xid(),
            secs: message.secs(),
            broadcast: message.broadcast(),
            ciaddr: message.ciaddr(),
            yiaddr: message.yiaddr(),
            siaddr: message.siaddr(),
            giaddr: message.giaddr(),
            chaddr: message.chaddr(),
            sname: message.sname(),
            file: message.file(),
        }
    }
}

/// Builds a message: the fixed part and the cookie first, then options one by one.
#[derive(Debug)]
pub struct Builder<'b> {
    writer: Writer<'b>,
}

impl<'b> Builder<'b> {
    /// Begins a message in `buf`. [`Error::NoRoom`] if the fixed part and the End option do not fit, [`Error::Malformed`] if `sname` or
    /// `file` is too long for its field.
    pub fn new(buf: &'b mut [u8], repr: &Repr<'_>) -> Result<Builder<'b>> {
        let mut w = Writer::new(buf);
        let op = match repr.op {
            Op::Request => 1,
            Op::Reply => 2,
        };
        let ([s0, s1], flags) = (repr.secs.to_be_bytes(), if repr.broadcast { 0x80 } else { 0 });
        let [m0, m1, m2, m3, m4, m5] = repr.chaddr.0;
        let words = [
            [op, 1, 6, 0],
            repr.xid.to_be_bytes(),
            [s0, s1, flags, 0],
            repr.ciaddr.octets(),
            repr.yiaddr.octets(),
            repr.siaddr.octets(),
            repr.giaddr.octets(),
            [m0, m1, m2, m3],
            [m4, m5, 0, 0],
            [0; 4],
            [0; 4],
        ];
        w.put(words.as_flattened())?;
        for (text, size) in [(repr.sname, 64usize), (repr.file, 128)] {
            let pad = size.checked_sub(text.len()).ok_or(Error::Malformed)?;
            w.put(text)?;
            w.fill(0, pad)?;
        }
        w.put(&COOKIE)?;
        if w.room() == 0 {
            return Err(Error::NoRoom);
        }
        Ok(Builder { writer: w })
    }

    /// Appends option `code`, in pieces if it is longer than 255 bytes (RFC 3396 §5). [`Error::NoRoom`], and nothing written, if it
    /// and the End option do not fit; [`Error::Malformed`] for the codes of Pad and End.
    pub fn option(&mut self, code: u8, data: &[u8]) -> Result<()> {
        if matches!(code, 0 | 255) {
            return Err(Error::Malformed);
        }
        let pieces = data.len().div_ceil(255).max(1);
        let len = data.len().saturating_add(pieces.saturating_mul(2));
        if self.writer.room() <= len {
            return Err(Error::NoRoom);
        }
        let mut rest = data;
        for _ in 0..pieces {
            let (piece, tail) = rest.split_at_checked(255).unwrap_or((rest, &[]));
            self.writer.put(&[code, piece.len() as u8])?;
            self.writer.put(piece)?;
            rest = tail;
        }
        Ok(())
    }

    /// Appends option `code` with one byte.
    pub fn u8(&mut self, code: u8, value: u8) -> Result<()> {
        self.option(code, &[value])
    }

    /// Appends option `code` with two bytes.
    pub fn u16(&mut self, code: u8, value: u16) -> Result<()> {
        self.option(code, &value.to_be_bytes())
    }

    /// Appends option `code` with four bytes.
    pub fn u32(&mut self, code: u8, value: u32) -> Result<()> {
        self.option(code, &value.to_be_bytes())
    }

    /// Appends option `code` with an address.
    pub fn ipv4(&mut self, code: u8, value: Ipv4Addr) -> Result<()> {
        self.option(code, &value.octets())
    }

    /// Appends the message type.
    pub fn message_type(&mut self, value: MessageType) -> Result<()> {
        self.u8(code::MESSAGE_TYPE, value as u8)
    }

    /// Ends the message and pads it to [`MIN_LEN`] as far as the buffer reaches.
    pub fn finish(self) -> &'b mut [u8] {
        let mut w = self.writer;
        // `new` and `option` keep room for End.
        let _ = w.u8(255);
        let pad = MIN_LEN.saturating_sub(w.len()).min(w.room());
        let _ = w.fill(0, pad);
        w.finish()
    }
}

#[cfg(test)]
mod tests;
