//! ONC RPC version 2 (RFC 5531): calls with AUTH_NONE or AUTH_SYS, replies, and the record marking of calls over TCP. Retransmission and
//! matching of transactions are left to the client.

use super::xdr::{Decoder, Encoder};
use super::{Error, Result};

/// Longest machine name of AUTH_SYS credentials, in bytes (RFC 5531 appendix A).
pub const MAX_MACHINE_NAME: usize = 255;
/// Most groups of AUTH_SYS credentials (RFC 5531 appendix A).
pub const MAX_GROUPS: usize = 16;
/// Longest body of credentials or verifier, in bytes (RFC 5531 §8.2).
const MAX_AUTH: usize = 400;
const VERSION: u32 = 2;

/// Flavors of authentication.
pub mod flavor {
    /// None ("AUTH_NULL").
    pub const NONE: u32 = 0;
    /// User and group numbers ("AUTH_UNIX").
    pub const SYS: u32 = 1;
}

/// Credentials of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth<'a> {
    /// None.
    Null,
    /// User and groups as the client states them.
    Unix {
        /// Any number.
        stamp: u32,
        /// Name of the client, at most 255 bytes.
        machine: &'a [u8],
        /// User.
        uid: u32,
        /// Group.
        gid: u32,
        /// More groups, at most 16.
        groups: &'a [u32],
    },
}

/// The header of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// Transaction.
    pub xid: u32,
    /// Program.
    pub program: u32,
    /// Version of the program.
    pub version: u32,
    /// Procedure.
    pub procedure: u32,
    /// Credentials.
    pub auth: Auth<'a>,
}

impl Call<'_> {
    /// Appends the header to `e`; the arguments follow it. [`Error::Malformed`] if credentials are too long.
    pub fn emit(&self, e: &mut Encoder<'_>) -> Result<()> {
        for word in [self.xid, 0, VERSION, self.program, self.version, self.procedure] {
            e.u32(word)?;
        }
        match self.auth {
            Auth::Null => {
                e.u32(flavor::NONE)?;
                e.u32(0)?;
            }
            Auth::Unix { stamp, machine, uid, gid, groups } => {
                if machine.len() > MAX_MACHINE_NAME || groups.len() > MAX_GROUPS {
                    return Err(Error::Malformed);
                }
                // Stamp, length of the name, user, group and count of groups are 20 bytes.
                let name = machine.len().next_multiple_of(4);
                let body = groups.len().saturating_mul(4).saturating_add(name).saturating_add(20);
                e.u32(flavor::SYS)?;
                e.u32(body as u32)?;
                e.u32(stamp)?;
                e.opaque(machine)?;
                e.u32(uid)?;
                e.u32(gid)?;
                e.u32(groups.len() as u32)?;
                for group in groups {
                    e.u32(*group)?;
                }
            }
        }
        // Verifier.
        e.u32(flavor::NONE)?;
        e.u32(0)
    }
}

/// The header of a call as a server in a test or simulation reads it; credentials are passed over.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedCall<'a> {
    /// Transaction.
    pub xid: u32,
    /// Program.
    pub program: u32,
    /// Version of the program.
    pub version: u32,
    /// Procedure.
    pub procedure: u32,
    /// Flavor of the credentials.
    pub flavor: u32,
    /// Body of the credentials.
    pub credentials: &'a [u8],
    /// Reads the arguments.
    pub args: Decoder<'a>,
}

impl<'a> ReceivedCall<'a> {
    /// Takes a call apart.
    pub fn parse(bytes: &'a [u8]) -> Result<ReceivedCall<'a>> {
        let mut d = Decoder::new(bytes);
        let xid = d.u32()?;
        if (d.u32()?, d.u32()?) != (0, VERSION) {
            return Err(Error::Malformed);
        }
        let (program, version, procedure) = (d.u32()?, d.u32()?, d.u32()?);
        let (flavor, credentials) = (d.u32()?, d.opaque(MAX_AUTH)?);
        let (_, _) = (d.u32()?, d.opaque(MAX_AUTH)?);
        Ok(ReceivedCall { xid, program, version, procedure, flavor, credentials, args: d })
    }
}

/// What a server says to a call.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// It was carried out: reads the results.
    Success(Decoder<'a>),
    /// The server has not that program.
    ProgramUnavailable,
    /// The server has other versions of the program.
    ProgramMismatch {
        /// Lowest.
        low: u32,
        /// Highest.
        high: u32,
    },
    /// The program has not that procedure.
    ProcedureUnavailable,
    /// The server could not decode the arguments.
    GarbageArgs,
    /// The server failed.
    SystemError,
    /// The server speaks other versions of RPC.
    RpcMismatch {
        /// Lowest.
        low: u32,
        /// Highest.
        high: u32,
    },
    /// The server refuses the credentials.
    AuthError {
        /// `auth_stat` (RFC 5531 §9).
        reason: u32,
    },
}

/// A reply.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    /// Transaction.
    pub xid: u32,
    /// What it says.
    pub body: Body<'a>,
}

impl<'a> Reply<'a> {
    /// Takes `bytes`, or the front of a reply that is not whole, apart. [`Error::Truncated`] if the header is not whole;
    /// [`Error::Malformed`] for calls and for values that RFC 5531 §9 does not have.
    pub fn parse(bytes: &'a [u8]) -> Result<Reply<'a>> {
        let mut d = Decoder::new(bytes);
        let xid = d.u32()?;
        if d.u32()? != 1 {
            return Err(Error::Malformed);
        }
        let body = if d.u32()? == 0 {
            let (_, _) = (d.u32()?, d.opaque(MAX_AUTH)?); // verifier
            match d.u32()? {
                0 => Body::Success(d),
                1 => Body::ProgramUnavailable,
                2 => Body::ProgramMismatch { low: d.u32()?, high: d.u32()? },
                3 => Body::ProcedureUnavailable,
                4 => Body::GarbageArgs,
                5 => Body::SystemError,
                _ => return Err(Error::Malformed),
            }
        } else {
            match d.u32()? {
                0 => Body::RpcMismatch { low: d.u32()?, high: d.u32()? },
                1 => Body::AuthError { reason: d.u32()? },
                _ => return Err(Error::Malformed),
            }
        };
        Ok(Reply { xid, body })
    }
}

/// Appends the header of a reply that carries results, which follow it: for servers in tests and simulations.
pub fn emit_success(e: &mut Encoder<'_>, xid: u32) -> Result<()> {
    // Reply, accepted, no verifier, success.
    for word in [xid, 1, 0, flavor::NONE, 0, 0] {
        e.u32(word)?;
    }
    Ok(())
}

/// The mark in front of each fragment of a record over TCP (RFC 5531 §11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordMark {
    /// The fragment ends its record.
    pub last: bool,
    /// Length of the fragment in bytes, below 2³¹.
    pub len: u32,
}

impl RecordMark {
    /// Length of a mark in bytes.
    pub const LEN: usize = 4;

    /// Reads a mark.
    #[inline]
    pub const fn parse(bytes: [u8; 4]) -> RecordMark {
        let word = u32::from_be_bytes(bytes);
        RecordMark { last: word >> 31 == 1, len: word & 0x7fff_ffff }
    }

    /// The mark.
    #[inline]
    pub const fn emit(self) -> [u8; 4] {
        ((self.len & 0x7fff_ffff) | ((self.last as u32) << 31)).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::each_cut;
    use std::vec::Vec;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn calls_round_trip() {
        let groups = [1, 2, 3];
        for (auth, flavor, body) in [
            (Auth::Null, flavor::NONE, 0),
            (Auth::Unix { stamp: 9, machine: b"board", uid: 1000, gid: 100, groups: &groups }, flavor::SYS, 40),
            (Auth::Unix { stamp: 9, machine: b"", uid: 0, gid: 0, groups: &[] }, flavor::SYS, 20),
        ] {
            let call = Call { xid: 0xfeed, program: 100_003, version: 3, procedure: 6, auth };
            let mut buf = [0; 512];
            let mut e = Encoder::new(&mut buf);
            call.emit(&mut e).unwrap();
            e.u32(0x600d).unwrap();
            let wire = e.finish();
            let mut got = ReceivedCall::parse(wire).unwrap();
            assert_eq!((got.xid, got.program, got.version, got.procedure), (0xfeed, 100_003, 3, 6));
            assert_eq!((got.flavor, got.credentials.len(), got.args.u32()), (flavor, body, Ok(0x600d)));
            let header = wire.len() - 4;
            each_cut(&wire[..header], |cut| assert_eq!(ReceivedCall::parse(cut).unwrap_err(), Error::Truncated));
        }
    }

    #[test]
    fn credentials_keep_their_limits() {
        let call = |machine, groups| Call {
            xid: 1,
            program: 2,
            version: 3,
            procedure: 4,
            auth: Auth::Unix { stamp: 0, machine, uid: 0, gid: 0, groups },
        };
        let emit = |call: Call<'_>| call.emit(&mut Encoder::new(&mut [0; 1024]));
        assert_eq!(emit(call(&[b'm'; 255], &[0; 16])), Ok(()));
        assert_eq!(emit(call(&[b'm'; 256], &[])), Err(Error::Malformed));
        assert_eq!(emit(call(b"m", &[0; 17])), Err(Error::Malformed));
        assert_eq!(call(b"m", &[]).emit(&mut Encoder::new(&mut [0; 40])), Err(Error::NoRoom));
    }

    #[test]
    fn replies() {
        let mut buf = [0; 64];
        let mut e = Encoder::new(&mut buf);
        emit_success(&mut e, 7).unwrap();
        e.u32(42).unwrap();
        let reply = Reply::parse(e.finish()).unwrap();
        let Body::Success(mut d) = reply.body else { panic!("{reply:?}") };
        assert_eq!((reply.xid, d.position(), d.u32()), (7, 24, Ok(42)));

        let body = |w: &[u32]| Reply::parse(&words(w)).map(|reply| std::format!("{:?}", reply.body)).unwrap();
        assert_eq!(body(&[7, 1, 0, 0, 0, 1]), "ProgramUnavailable");
        assert_eq!(body(&[7, 1, 0, 0, 0, 2, 3, 4]), "ProgramMismatch { low: 3, high: 4 }");
        assert_eq!(body(&[7, 1, 0, 0, 0, 3]), "ProcedureUnavailable");
        assert_eq!(body(&[7, 1, 0, 0, 0, 4]), "GarbageArgs");
        assert_eq!(body(&[7, 1, 0, 0, 0, 5]), "SystemError");
        assert_eq!(body(&[7, 1, 1, 0, 2, 2]), "RpcMismatch { low: 2, high: 2 }");
        assert_eq!(body(&[7, 1, 1, 1, 5]), "AuthError { reason: 5 }");
        // A verifier with a body is passed over.
        let wire = words(&[7, 1, 0, 1, 8, 0, 0, 0, 42]);
        assert!(matches!(Reply::parse(&wire).unwrap().body, Body::Success(d) if d.rest() == [0, 0, 0, 42]));
    }

    #[test]
    fn bad_replies() {
        for bad in [
            &[7u32, 0, 0, 0, 0, 0][..],
            &[7, 2, 0, 0, 0, 0],
            &[7, 1, 0, 0, 0, 6],
            &[7, 1, 1, 2, 0],
            &[7, 1, 0, 0, 401, 0],
        ] {
            assert_eq!(Reply::parse(&words(bad)).unwrap_err(), Error::Malformed);
        }
        for whole in [&[7u32, 1, 0, 0, 0, 0][..], &[7, 1, 0, 0, 0, 2, 3, 4], &[7, 1, 1, 0, 2, 2], &[7, 1, 1, 1, 5]] {
            assert!(Reply::parse(&words(whole)).is_ok());
            each_cut(&words(whole), |cut| assert_eq!(Reply::parse(cut).unwrap_err(), Error::Truncated));
        }
        // A verifier whose length says more than there is.
        assert_eq!(Reply::parse(&words(&[7, 1, 0, 0, 400, 0])).unwrap_err(), Error::Truncated);
    }

    #[test]
    fn record_marks() {
        for (mark, wire) in [
            (RecordMark { last: true, len: 0x1234 }, [0x80, 0, 0x12, 0x34]),
            (RecordMark { last: false, len: 0x7fff_ffff }, [0x7f, 0xff, 0xff, 0xff]),
        ] {
            assert_eq!((mark.emit(), RecordMark::parse(wire)), (wire, mark));
        }
    }
}
