//! TFTP packets (RFC 1350) and options (RFC 2347). What the options mean, and netascii, are left to the client.

use super::cursor::Writer;
use super::{Error, Result};

/// Port servers listen on.
pub const PORT: u16 = 69;
/// Length of what precedes the data of a DATA packet, in bytes.
pub const DATA_HEADER_LEN: usize = 4;

/// Names of options, in the case they are sent in.
pub mod option {
    /// Block size (RFC 2348).
    pub const BLKSIZE: &[u8] = b"blksize";
    /// Timeout in seconds (RFC 2349).
    pub const TIMEOUT: &[u8] = b"timeout";
    /// Transfer size in bytes (RFC 2349).
    pub const TSIZE: &[u8] = b"tsize";
    /// Window size in blocks (RFC 7440).
    pub const WINDOWSIZE: &[u8] = b"windowsize";
}

/// Code of an ERROR packet (RFC 1350 §5, RFC 2347).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub u16);

impl ErrorCode {
    /// See the message.
    pub const NOT_DEFINED: ErrorCode = ErrorCode(0);
    /// File not found.
    pub const FILE_NOT_FOUND: ErrorCode = ErrorCode(1);
    /// Access violation.
    pub const ACCESS_VIOLATION: ErrorCode = ErrorCode(2);
    /// Disk full or allocation exceeded.
    pub const DISK_FULL: ErrorCode = ErrorCode(3);
    /// Illegal TFTP operation.
    pub const ILLEGAL_OPERATION: ErrorCode = ErrorCode(4);
    /// Unknown transfer ID.
    pub const UNKNOWN_TID: ErrorCode = ErrorCode(5);
    /// File already exists.
    pub const FILE_EXISTS: ErrorCode = ErrorCode(6);
    /// No such user.
    pub const NO_SUCH_USER: ErrorCode = ErrorCode(7);
    /// The options were refused (RFC 2347).
    pub const OPTION_REFUSED: ErrorCode = ErrorCode(8);
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// RRQ: the server sends the file.
    Read,
    /// WRQ: the server takes the file.
    Write,
}

impl Access {
    /// How a request begins.
    pub const fn opcode(self) -> [u8; 2] {
        match self {
            Access::Read => [0, 1],
            Access::Write => [0, 2],
        }
    }
}

/// How bytes are represented (RFC 1350 §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As they are.
    Octet,
    /// As lines of text.
    Netascii,
}

impl Mode {
    /// Its name on the wire.
    pub const fn name(self) -> &'static [u8] {
        match self {
            Mode::Octet => b"octet",
            Mode::Netascii => b"netascii",
        }
    }
}

/// A packet.
#[derive(Clone, Copy, Debug)]
pub enum Packet<'a> {
    /// RRQ or WRQ.
    Request {
        /// Read or write.
        access: Access,
        /// File name.
        file: &'a [u8],
        /// Mode.
        mode: Mode,
        /// Options.
        options: Options<'a>,
    },
    /// A block of the file.
    Data {
        /// Block number, modulo 65536.
        block: u16,
        /// Its bytes.
        data: &'a [u8],
    },
    /// Acknowledges a block.
    Ack {
        /// Block number, modulo 65536.
        block: u16,
    },
    /// Ends the transfer.
    Error {
        /// Code.
        code: ErrorCode,
        /// Text up to its NUL, or, where that is missing, to the end of the packet; not always ASCII.
        message: &'a [u8],
    },
    /// Acknowledges options.
    Oack(Options<'a>),
}

impl<'a> Packet<'a> {
    /// Takes `bytes`, a UDP payload, apart. [`Error::Truncated`] below 4 bytes (2 for an OACK) and for requests without
    /// both strings; [`Error::Malformed`] for an unknown opcode or mode, and an empty file name.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Packet<'a>> {
        match *bytes {
            [0, 3, a, b, ref data @ ..] => Ok(Packet::Data { block: u16::from_be_bytes([a, b]), data }),
            [0, 4, a, b, ..] => Ok(Packet::Ack { block: u16::from_be_bytes([a, b]) }),
            [0, 5, a, b, ref text @ ..] => {
                let message = text.split(|&byte| byte == 0).next().unwrap_or_default();
                Ok(Packet::Error { code: ErrorCode(u16::from_be_bytes([a, b])), message })
            }
            [0, 6, ref options @ ..] => Ok(Packet::Oack(Options(options))),
            [0, op @ (1 | 2), ref rest @ ..] => {
                let mut rest = rest;
                let file = take_string(&mut rest).ok_or(Error::Truncated)?;
                let mode = take_string(&mut rest).ok_or(Error::Truncated)?;
                let mode = if mode.eq_ignore_ascii_case(Mode::Octet.name()) {
                    Mode::Octet
                } else if mode.eq_ignore_ascii_case(Mode::Netascii.name()) {
                    Mode::Netascii
                } else {
                    return Err(Error::Malformed);
                };
                if file.is_empty() {
                    return Err(Error::Malformed);
                }
                let access = if op == 1 { Access::Read } else { Access::Write };
                Ok(Packet::Request { access, file, mode, options: Options(rest) })
            }
            [] | [0] | [0, 3..=5, ..] => Err(Error::Truncated),
            _ => Err(Error::Malformed),
        }
    }
}

/// Takes a string and its NUL off the front of `rest`; `None`, and nothing taken, if the NUL is missing.
fn take_string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let at = rest.iter().position(|&byte| byte == 0)?;
    let (text, tail) = rest.split_at_checked(at)?;
    *rest = tail.get(1..)?;
    Some(text)
}

/// The options of a packet: pairs of name and value. Iteration ends at what is not a whole pair: a name without a value, a
/// string without its NUL; both are ignored. An empty name, such as padding makes, is passed over.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a>(&'a [u8]);

impl<'a> Options<'a> {
    /// The value of option `name`, whose case does not matter (RFC 2347). The first counts if there are several.
    pub fn get(&self, name: &[u8]) -> Option<&'a [u8]> {
        let mut options = *self;
        options.find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The value of option `name` as a number; `None` if it is missing or not a number.
    pub fn number(&self, name: &[u8]) -> Option<u64> {
        parse_number(self.get(name)?)
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        while let [0, rest @ ..] = self.0 {
            self.0 = rest;
        }
        let pair = take_string(&mut self.0).and_then(|name| Some((name, take_string(&mut self.0)?)));
        if pair.is_none() {
            self.0 = &[];
        }
        pair
    }
}

/// The number that `text` is: decimal digits and nothing else, below 2⁶⁴.
pub fn parse_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Builds a request or an OACK.
#[derive(Debug)]
pub struct Builder<'b> {
    writer: Writer<'b>,
}

impl<'b> Builder<'b> {
    /// Begins a request in `buf`. The file name is the pieces of `file` one behind the other. [`Error::NoRoom`] if it does not fit,
    /// [`Error::Malformed`] if the name is empty or has a NUL in it.
    pub fn request(buf: &'b mut [u8], access: Access, file: &[&[u8]], mode: Mode) -> Result<Builder<'b>> {
        if file.iter().all(|piece| piece.is_empty()) {
            return Err(Error::Malformed);
        }
        let mut writer = Writer::new(buf);
        writer.put(&access.opcode())?;
        for piece in file {
            put_text(&mut writer, piece)?;
        }
        put_mode(&mut writer, mode)?;
        Ok(Builder { writer })
    }

    /// Begins what follows the file name of a request in `buf`: the request is [`Access::opcode`], the name, and this.
    pub fn after_name(buf: &'b mut [u8], mode: Mode) -> Result<Builder<'b>> {
        let mut writer = Writer::new(buf);
        put_mode(&mut writer, mode)?;
        Ok(Builder { writer })
    }

    /// Begins an OACK in `buf`.
    pub fn oack(buf: &'b mut [u8]) -> Result<Builder<'b>> {
        let mut writer = Writer::new(buf);
        writer.u16(6)?;
        Ok(Builder { writer })
    }

    /// Appends an option whose value is a number. After an error the packet is of no use.
    pub fn number(&mut self, name: &[u8], value: u64) -> Result<()> {
        let mut digits = [0; 20];
        self.text(name, decimal(value, &mut digits))
    }

    /// Appends an option. [`Error::Malformed`] for an empty name and for a NUL in name or value. After an error the packet is of no use.
    pub fn text(&mut self, name: &[u8], value: &[u8]) -> Result<()> {
        if name.is_empty() {
            return Err(Error::Malformed);
        }
        for text in [name, value] {
            put_text(&mut self.writer, text)?;
            self.writer.u8(0)?;
        }
        Ok(())
    }

    /// The packet.
    pub fn finish(self) -> &'b mut [u8] {
        self.writer.finish()
    }
}

/// Ends the file name, and appends the mode.
fn put_mode(w: &mut Writer<'_>, mode: Mode) -> Result<()> {
    w.u8(0)?;
    w.put(mode.name())?;
    w.u8(0)
}

/// Whether `text` can stand in a request, whose texts end with a NUL.
pub fn is_text(text: &[u8]) -> bool {
    #[expect(clippy::manual_contains, reason = "`contains` brings in core's search routine, names are short")]
    let has_nul = text.iter().any(|&byte| byte == 0);
    !has_nul
}

fn put_text(w: &mut Writer<'_>, text: &[u8]) -> Result<()> {
    if is_text(text) { w.put(text) } else { Err(Error::Malformed) }
}

/// Writes `value` in decimal to the end of `digits` and returns what it wrote.
fn decimal(value: u64, digits: &mut [u8; 20]) -> &[u8] {
    // Divided byte by byte, from above: 64-bit division is half a kilobyte on a 32-bit machine.
    let mut parts = value.to_be_bytes();
    let mut used = 0usize;
    for slot in digits.iter_mut().rev() {
        let mut rest = 0u8;
        for part in &mut parts {
            let value = u16::from_be_bytes([rest, *part]);
            *part = (value / 10) as u8;
            rest = (value % 10) as u8;
        }
        *slot = b'0'.wrapping_add(rest);
        used = used.wrapping_add(1);
        if parts == [0; 8] {
            break;
        }
    }
    digits.get(20usize.wrapping_sub(used)..).unwrap_or_default()
}

/// The header of DATA packet `block`.
#[inline]
pub fn emit_data_head(block: u16) -> [u8; DATA_HEADER_LEN] {
    let [a, b] = block.to_be_bytes();
    [0, 3, a, b]
}

/// The acknowledgement of `block`.
#[inline]
pub fn emit_ack(block: u16) -> [u8; 4] {
    (0x0004_0000 | u32::from(block)).to_be_bytes()
}

/// Writes an ERROR packet to the front of `buf` and returns its length; `message` is cut at its first NUL and to the room there is.
/// [`Error::NoRoom`] below 5 bytes.
pub fn emit_error(code: ErrorCode, message: &[u8], buf: &mut [u8]) -> Result<usize> {
    let mut w = Writer::new(buf);
    w.u16(5)?;
    w.u16(code.0)?;
    let message = message.split(|&byte| byte == 0).next().unwrap_or_default();
    let room = w.room().checked_sub(1).ok_or(Error::NoRoom)?;
    w.put(message.get(..room).unwrap_or(message))?;
    w.u8(0)?;
    Ok(w.len())
}

#[cfg(test)]
mod tests;
