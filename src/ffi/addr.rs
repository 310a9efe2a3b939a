//! # Addresses
//!
//! Addresses are in network order, ports in host order. A server is a `lace_peer`: a name to look up, or an address.

use super::results::{LACE_EAFNOSUPPORT, LACE_EFAULT, LACE_EINVAL, LACE_EMSGSIZE, LACE_ENAMETOOLONG, LACE_OK};
use super::sink::CText;
use crate::client::dns::literal;
use crate::client::operation::Server;
use core::ffi::{c_char, c_int};
use core::net::Ipv4Addr;

/// `lace_ip.family`: no address. Where an address may be left out, this leaves it out.
pub const LACE_IP_NONE: u8 = 0;
/// `lace_ip.family`: IPv4; the first four bytes count.
pub const LACE_IP_V4: u8 = 4;
/// `lace_ip.family`: IPv6; not supported yet (`LACE_EAFNOSUPPORT`).
pub const LACE_IP_V6: u8 = 6;

/// An IP address. All bytes zero is "no address". The layout is frozen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct lace_ip {
    /// `LACE_IP_NONE`, `LACE_IP_V4` or `LACE_IP_V6`.
    pub family: u8,
    /// For IPv6 later: the interface of a link-local address. 0.
    pub zone: u8,
    /// 0.
    pub reserved: [u8; 2],
    /// The address in network order: 4 or 16 bytes.
    pub bytes: [u8; 16],
}

impl From<Ipv4Addr> for lace_ip {
    fn from(addr: Ipv4Addr) -> Self {
        let [a, b, c, d] = addr.octets();
        let mut ip = lace_ip { family: LACE_IP_V4, ..lace_ip::default() };
        [ip.bytes[0], ip.bytes[1], ip.bytes[2], ip.bytes[3]] = [a, b, c, d];
        ip
    }
}

impl lace_ip {
    /// No address.
    #[allow(dead_code)] // Not without any client.
    pub(super) const NONE: lace_ip = lace_ip { family: LACE_IP_NONE, zone: 0, reserved: [0; 2], bytes: [0; 16] };

    /// The address as the core has it; unspecified for none.
    #[inline(never)]
    pub(super) fn v4(&self) -> Result<Ipv4Addr, i32> {
        let [a, b, c, d, ..] = self.bytes;
        match self.family {
            LACE_IP_V4 => Ok(Ipv4Addr::new(a, b, c, d)),
            LACE_IP_NONE => Ok(Ipv4Addr::UNSPECIFIED),
            _ => Err(LACE_EAFNOSUPPORT),
        }
    }

    /// Makes it the core's address; none for the unspecified one.
    #[allow(dead_code)] // Not without DHCP.
    #[inline(never)]
    pub(super) fn set(&mut self, addr: Ipv4Addr) {
        *self = lace_ip::or_none(addr);
    }

    /// How the core's address looks here: none for the unspecified one.
    pub(super) fn or_none(addr: Ipv4Addr) -> lace_ip {
        if addr.is_unspecified() { lace_ip::default() } else { addr.into() }
    }
}

/// The address behind a pointer of C's; unspecified for NULL.
#[inline(never)]
pub(super) fn v4_at(ip: *const lace_ip) -> Result<Ipv4Addr, i32> {
    if ip.is_null() {
        return Ok(Ipv4Addr::UNSPECIFIED);
    }
    // SAFETY: not null; the caller of the C function vouches for it.
    unsafe { ip.read_unaligned() }.v4()
}

/// A server. The layout is frozen.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct lace_peer {
    /// Name, or address as text, NUL-terminated; NULL: `ip` counts. Must live until the operation that was given it
    /// has ended.
    pub name: *const c_char,
    /// Address, when there is no name.
    pub ip: lace_ip,
    /// Port in host order; 0: the protocol's own.
    pub port: u16,
    /// 0.
    pub reserved: u16,
}

impl lace_peer {
    /// Nobody.
    #[allow(dead_code)] // Not without any client.
    pub(super) const NONE: lace_peer = lace_peer { name: core::ptr::null(), ip: lace_ip::NONE, port: 0, reserved: 0 };

    /// The server as the core has it; an address as text is read here.
    #[allow(dead_code)] // Not without a client that has a server.
    pub(super) fn to_server(self) -> Result<Server<CText>, i32> {
        if self.reserved != 0 {
            return Err(LACE_EINVAL);
        }
        if self.name.is_null() {
            return Ok(Server { name: None, addr: self.ip.v4()?, port: self.port });
        }
        let name = text(self.name, MAX_NAME)?;
        match literal(name) {
            Some(addr) => Ok(Server { name: None, addr, port: self.port }),
            None if name.is_empty() => Err(LACE_EINVAL),
            None => Ok(Server { name: Some(CText::new(name)), addr: Ipv4Addr::UNSPECIFIED, port: self.port }),
        }
    }
}

/// Longest name of a host in bytes (RFC 1035 §2.3.4).
const MAX_NAME: usize = 254;

/// The bytes of a NUL-terminated text of at most `max` bytes; `LACE_ENAMETOOLONG` for a longer one.
#[inline(never)]
pub(super) fn text<'t>(text: *const c_char, max: usize) -> Result<&'t [u8], i32> {
    if text.is_null() {
        return Err(LACE_EFAULT);
    }
    let bytes = text.cast::<u8>();
    for len in 0..=max {
        // SAFETY: no byte behind the NUL is looked at; the caller of the C function vouches that there is one.
        if unsafe { bytes.add(len).read() } == 0 {
            // SAFETY: `len` bytes were just read, and the caller leaves them unchanged while they are in use.
            return Ok(unsafe { core::slice::from_raw_parts(bytes, len) });
        }
    }
    Err(LACE_ENAMETOOLONG)
}

/// Sets `*ip` to the IPv4 address `a.b.c.d`. `ip` must not be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_ip_v4(ip: *mut lace_ip, a: u8, b: u8, c: u8, d: u8) {
    // SAFETY: the caller vouches for the pointer.
    unsafe { ip.write_unaligned(Ipv4Addr::new(a, b, c, d).into()) };
}

/// Reads an address from `text`, NUL-terminated, such as "192.0.2.1", into `*ip`.
///
/// Returns 0; `LACE_EFAULT` for NULL; `LACE_EINVAL` for anything that is no address, in which case `*ip` is
/// unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_ip_parse(text: *const c_char, ip: *mut lace_ip) -> c_int {
    let bytes = match self::text(text, 64) {
        Ok(bytes) => bytes,
        Err(LACE_ENAMETOOLONG) => return LACE_EINVAL,
        Err(code) => return code,
    };
    if ip.is_null() {
        return LACE_EFAULT;
    }
    let Some(addr) = literal(bytes) else { return LACE_EINVAL };
    // SAFETY: not null, and the caller vouches for it.
    unsafe { ip.write_unaligned(addr.into()) };
    LACE_OK
}

/// Room that the text of any address needs, NUL included.
pub const LACE_IP_TEXT: u32 = 46;

/// Writes `*ip` as NUL-terminated text of at most `size` bytes to `text`; no address is written as "".
///
/// Returns the length without the NUL; `LACE_EFAULT` for NULL; `LACE_EMSGSIZE` when it does not fit (`LACE_IP_TEXT`
/// bytes always do); `LACE_EAFNOSUPPORT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lace_ip_format(ip: *const lace_ip, text: *mut c_char, size: usize) -> c_int {
    if ip.is_null() || text.is_null() {
        return LACE_EFAULT;
    }
    // SAFETY: not null, and the caller vouches for it.
    let ip = unsafe { ip.read_unaligned() };
    let addr = match ip.v4() {
        Ok(addr) => addr,
        Err(code) => return code,
    };
    let mut out = [0u8; 16];
    let mut len = 0usize;
    let mut put = |byte| {
        if let Some(place) = out.get_mut(len) {
            *place = byte;
            len += 1;
        }
    };
    if ip.family == LACE_IP_V4 {
        for (i, octet) in addr.octets().into_iter().enumerate() {
            if i > 0 {
                put(b'.');
            }
            for (scale, least) in [(100, 100), (10, 10), (1, 0)] {
                if octet >= least {
                    put(b'0' + octet / scale % 10);
                }
            }
        }
    }
    if len >= size {
        return LACE_EMSGSIZE;
    }
    // SAFETY: `len + 1` is at most `size`, which the caller says there is room for, and at most 16.
    unsafe { core::ptr::copy_nonoverlapping(out.as_ptr(), text.cast::<u8>(), len + 1) };
    len as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::ToOwned;
    use std::ffi::{CStr, CString};

    #[test]
    fn addresses_are_read_and_written() {
        for text in ["0.0.0.0", "1.2.3.4", "10.0.0.255", "192.168.100.20", "255.255.255.255", "100.9.10.99"] {
            let mut ip = lace_ip::default();
            let c = CString::new(text).unwrap();
            // SAFETY: live pointers.
            let (parsed, len, back) = unsafe {
                let parsed = lace_ip_parse(c.as_ptr(), &mut ip);
                let mut out = [1 as c_char; 16];
                let len = lace_ip_format(&ip, out.as_mut_ptr(), out.len());
                (parsed, len, CStr::from_ptr(out.as_ptr()).to_owned())
            };
            assert_eq!((parsed, len as usize, back), (0, text.len(), c));
        }
        for text in [
            "",
            "1",
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.256",
            "1.2.3.",
            ".1.2.3",
            "1..2.3",
            "01.2.3.4",
            "a.b.c.d",
            "1.2.3.4 ",
        ] {
            let mut ip = lace_ip::default();
            let c = CString::new(text).unwrap();
            // SAFETY: live pointers.
            assert_eq!(unsafe { lace_ip_parse(c.as_ptr(), &mut ip) }, LACE_EINVAL, "{text}");
            assert_eq!(ip, lace_ip::default());
        }
        let mut short = [1 as c_char; 8];
        let ip = lace_ip::from(Ipv4Addr::new(10, 0, 0, 99));
        // SAFETY: live pointers.
        unsafe {
            assert_eq!(lace_ip_format(&ip, short.as_mut_ptr(), 9), LACE_EMSGSIZE);
            assert_eq!(lace_ip_format(&lace_ip::default(), short.as_mut_ptr(), 1), 0);
            assert_eq!(lace_ip_format(&lace_ip { family: 6, ..ip }, short.as_mut_ptr(), 8), LACE_EAFNOSUPPORT);
        }
    }
}
