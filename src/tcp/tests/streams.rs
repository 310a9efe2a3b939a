//! A client over the byte stream: a request, a header through the ring, a body into memory.

use super::rig::*;
use crate::sim::host::{SimHost, SimMemory};
use crate::storage::error::Error;
use crate::storage::slots::Key;
use crate::tcp::stream::{ByteStream, TcpStream};

fn over<R>(rig: &mut Rig, key: Key, with: impl FnOnce(&mut dyn ByteStream<SimHost>) -> R) -> R {
    let Node { tcp, stack, .. } = &mut rig.node;
    let result = with(&mut TcpStream { tcp, stack, key });
    rig.node.pass();
    result
}

#[test]
fn a_client_needs_no_more_than_a_byte_stream() {
    let mut rig = Rig::new();
    let (key, _) = rig.connect(quiet());
    assert_eq!(over(&mut rig, key, |s| s.is_open()), Ok(false));
    rig.send_with(SA, 0, 1, &[], full(1000, None, false));
    assert_eq!(over(&mut rig, key, |s| s.is_open()), Ok(true));
    rig.sent();
    assert_eq!(over(&mut rig, key, |s| s.send(b"GET /")), Ok(5));
    assert_eq!(rig.sent().pop().unwrap().payload, b"GET /");
    rig.send(PA, 1, 6, b"length 6\nabc");
    let line = over(&mut rig, key, |s| s.peek().map(|(a, b)| [a, b].concat())).unwrap();
    assert_eq!(line, b"length 6\nabc");
    assert_eq!(over(&mut rig, key, |s| s.consume(9)), Ok(9));
    let memory = SimMemory::new(6);
    over(&mut rig, key, |s| s.receive_into(&memory, 0, 6)).unwrap();
    assert_eq!(over(&mut rig, key, |s| s.received()), Ok(Some(3)));
    rig.send(FA, 13, 6, b"def");
    assert_eq!(over(&mut rig, key, |s| s.received()), Ok(Some(6)));
    assert_eq!(over(&mut rig, key, |s| s.is_finished()), Ok(false), "the region is still queued");
    assert_eq!(over(&mut rig, key, |s| s.take_back()), Ok(6));
    assert_eq!(memory.to_vec(), b"abcdef");
    assert_eq!(over(&mut rig, key, |s| s.is_finished()), Ok(true));
    over(&mut rig, key, |s| s.finish()).unwrap();
    assert_eq!(over(&mut rig, key, |s| s.send(b"x")), Err(Error::NotConnected));
}

#[test]
fn a_reset_is_told_and_is_no_end() {
    let mut rig = Rig::new();
    let key = rig.open_plain();
    rig.send(PA, 1, 1, b"half");
    rig.send(R, 5, 0, &[]);
    assert_eq!(over(&mut rig, key, |s| s.is_open()), Err(Error::ConnectionReset));
    assert_eq!(over(&mut rig, key, |s| s.is_finished()), Ok(false), "bytes are left");
    assert_eq!(over(&mut rig, key, |s| s.consume(4)), Ok(4));
    assert_eq!(over(&mut rig, key, |s| s.is_finished()), Err(Error::ConnectionReset));
}
