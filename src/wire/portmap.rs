//! Port mapper version 2 (RFC 1833 §3): asks which port a program listens on.

use super::xdr::{Decoder, Encoder};
use super::{Error, Result};

/// Program number.
pub const PROGRAM: u32 = 100_000;
/// Version.
pub const VERSION: u32 = 2;
/// Port it listens on itself.
pub const PORT: u16 = 111;
/// Procedure that gives a port.
pub const GETPORT: u32 = 3;

/// What GETPORT asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetPort {
    /// Program.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// 6 for TCP, 17 for UDP.
    pub protocol: u32,
}

impl GetPort {
    /// Appends the arguments.
    pub fn emit(&self, e: &mut Encoder<'_>) -> Result<()> {
        for word in [self.program, self.version, self.protocol, 0] {
            e.u32(word)?;
        }
        Ok(())
    }

    /// Reads the arguments, as a server does.
    pub fn parse(d: &mut Decoder<'_>) -> Result<GetPort> {
        let args = GetPort { program: d.u32()?, version: d.u32()?, protocol: d.u32()? };
        d.u32()?;
        Ok(args)
    }
}

/// Reads the result of GETPORT: the port, 0 if the program does not listen. [`Error::Malformed`] above 65535.
pub fn parse_port(d: &mut Decoder<'_>) -> Result<u16> {
    u16::try_from(d.u32()?).map_err(|_| Error::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::each_cut;

    #[test]
    fn round_trip() {
        let args = GetPort { program: 100_003, version: 3, protocol: 17 };
        let mut buf = [0; 16];
        args.emit(&mut Encoder::new(&mut buf)).unwrap();
        assert_eq!(GetPort::parse(&mut Decoder::new(&buf)), Ok(args));
        each_cut(&buf, |cut| assert_eq!(GetPort::parse(&mut Decoder::new(cut)), Err(Error::Truncated)));
        assert_eq!(args.emit(&mut Encoder::new(&mut [0; 15])), Err(Error::NoRoom));
    }

    #[test]
    fn ports() {
        let port = |bytes: &[u8]| parse_port(&mut Decoder::new(bytes));
        assert_eq!(port(&[0, 0, 8, 1]), Ok(2049));
        assert_eq!(port(&[0, 0, 0, 0]), Ok(0));
        assert_eq!(port(&[0, 0, 0xff, 0xff]), Ok(65535));
        assert_eq!(port(&[0, 1, 0, 0]), Err(Error::Malformed));
        assert_eq!(port(&[0xff; 4]), Err(Error::Malformed));
        assert_eq!(port(&[0, 0, 8]), Err(Error::Truncated));
    }
}
