//! The errors an operation or a call can end with. `ffi` maps each to its C code in one place.

use super::host::HostError;

/// Why something was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// An argument has a value that is not allowed.
    Invalid,
    /// Nothing can be done now; try again after the next pass.
    Again,
    /// Every slot of the kind needed is in use: the configuration's limit.
    NoSlot,
    /// The stack's memory is too small.
    NoMemory,
    /// The port or hook is taken.
    InUse,
    /// The address is not one of ours.
    AddressNotOurs,
    /// No route leads to the destination.
    NetworkUnreachable,
    /// An address of a family that is not supported.
    AddressFamily,
    /// The next hop does not answer, or a router said that the host cannot be reached.
    HostUnreachable,
    /// The peer said that nothing listens there.
    Refused,
    /// Nothing came in time.
    Timeout,
    /// The operation was cancelled.
    Cancelled,
    /// The host's poll asked to stop.
    Interrupted,
    /// The peer broke its protocol.
    Protocol,
    /// The server has no such file or name.
    NotFound,
    /// The server denies access.
    Denied,
    /// The server has no room.
    NoSpace,
    /// The file exists already.
    Exists,
    /// The data is larger than the sink, or would be larger than a limit.
    TooBig,
    /// A datagram is larger than what can be sent or was given room for.
    MessageSize,
    /// A name or path is longer than its protocol allows.
    NameTooLong,
    /// The NIC is down or gone.
    NetworkDown,
    /// The peer ended the connection.
    ConnectionReset,
    /// The connection was ended here.
    ConnectionAborted,
    /// The socket has no peer.
    NotConnected,
    /// The socket has a peer already.
    AlreadyConnected,
    /// A stale handle, or one of another kind.
    BadHandle,
    /// The sink took nothing for too long.
    SinkStalled,
    /// The server does not offer what was asked.
    NotSupported,
    /// The file ended before the count that was promised.
    EndOfFile,
    /// The file at the server changed between two parts of a transfer.
    Changed,
    /// A path resolved through too many links or redirects.
    Loop,
    /// What was named is not a directory.
    NotDirectory,
    /// What was named is a directory.
    IsDirectory,
    /// The server failed.
    Remote,
    /// A sink, source or NIC of the host failed with this code.
    Host(HostError),
}

/// Result of a call into the stack.
pub type Result<T> = core::result::Result<T, Error>;
