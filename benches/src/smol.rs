//! smoltcp, as lean as it permits: no allocator, a device that hands out frames where they lie, one socket, the
//! cheapest of its poll functions that does the work, and payload copied by slice from the socket's buffer.

use crate::case::{Case, Destination, FRAGMENTS, Source, TRANSFER};
use crate::frames::{OUR_IP, OUR_MAC, OUR_PORT, PEER_IP, PEER_PORT};
use crate::harness::Bench;
use crate::nic::{Line, Nic};
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, SocketHandle, SocketSet, SocketStorage};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::socket::{tcp, udp};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr, IpEndpoint};

/// Frames offered before a poll. Of 1, 4, 8, 16 and 32 smoltcp is at its best with these: UDP payload is copied twice,
/// and one datagram at a time stays in the nearest cache.
const UDP_BURST: usize = 1;
/// What the others get of UDP: a NIC's ring that is emptied at once.
const RING_BURST: usize = 16;
const BURST: usize = 8;

/// The device: a NIC, and nothing else.
struct Port(Nic);

struct Rx<'n>(&'n [u8]);
struct Tx<'n>(&'n mut Line);

impl phy::RxToken for Rx<'_> {
    #[inline]
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

impl phy::TxToken for Tx<'_> {
    #[inline]
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let result = f(self.0.buffer(len));
        self.0.send(len);
        result
    }
}

impl Device for Port {
    type RxToken<'n> = Rx<'n>;
    type TxToken<'n> = Tx<'n>;

    #[inline]
    fn receive(&mut self, _: Instant) -> Option<(Rx<'_>, Tx<'_>)> {
        self.0.receive().map(|(frame, line)| (Rx(frame), Tx(line)))
    }

    #[inline]
    fn transmit(&mut self, _: Instant) -> Option<Tx<'_>> {
        Some(Tx(self.0.line()))
    }

    #[inline]
    fn capabilities(&self) -> DeviceCapabilities {
        let mut caps = DeviceCapabilities::default();
        caps.medium = Medium::Ethernet;
        caps.max_transmission_unit = 1514;
        caps
    }
}

struct Smol {
    port: Port,
    iface: Interface,
    sockets: SocketSet<'static>,
    socket: Option<SocketHandle>,
    now: Instant,
    destination: Destination,
    source: Source,
    local: u16,
    case: Case,
    udp_burst: usize,
}

/// Memory for a socket; a bench lives as long as the program.
fn lasting<T: Clone>(value: T, count: usize) -> &'static mut [T] {
    Box::leak(vec![value; count].into_boxed_slice())
}

/// Sets smoltcp up for `case`.
pub fn open(case: Case) -> Option<Box<dyn Bench>> {
    set_up(case, UDP_BURST)
}

/// Sets smoltcp up for UDP in bursts as the others get it, with a socket that holds one.
pub fn open_ring(case: Case) -> Option<Box<dyn Bench>> {
    if case == Case::UdpRx { set_up(case, RING_BURST) } else { None }
}

fn set_up(case: Case, udp_burst: usize) -> Option<Box<dyn Bench>> {
    if matches!(case, Case::Sendfile(_) | Case::SendfileOffload(..) | Case::TcpTxGather(_)) {
        return None;
    }
    let mut port = Port(case.nic());
    let mac = HardwareAddress::Ethernet(EthernetAddress(OUR_MAC));
    let mut iface = Interface::new(Config::new(mac), &mut port, Instant::ZERO);
    let [a, b, c, d] = OUR_IP;
    iface.update_ip_addrs(|addrs| addrs.push(IpCidr::new(IpAddress::v4(a, b, c, d), 24)).expect("room for an address"));
    let storage: &'static mut [SocketStorage<'static>; 1] = Box::leak(Box::new([SocketStorage::EMPTY]));
    let mut sockets = SocketSet::new(&mut storage[..]);
    let socket = match case {
        Case::UdpRx | Case::Lockstep | Case::Fragments(_) => {
            let (datagrams, bytes) = if let Case::Fragments(_) = case {
                (2, 2 * FRAGMENTS * 1500)
            } else {
                (2 * udp_burst, 2 * udp_burst * 1500)
            };
            let buffer = || udp::PacketBuffer::new(lasting(udp::PacketMetadata::EMPTY, datagrams), lasting(0, bytes));
            let mut socket = udp::Socket::new(buffer(), buffer());
            socket.bind(OUR_PORT).expect("a port");
            Some(sockets.add(socket))
        }
        Case::TcpRx(_) | Case::TcpTx(_) => {
            // The most that needs no window shift, for the smallest.
            let window = if case.window() == 64 << 10 { 65_535 } else { case.window() };
            let buffer = || tcp::SocketBuffer::new(lasting(0, window));
            let mut socket = tcp::Socket::new(buffer(), buffer());
            socket.set_ack_delay(Some(Duration::from_millis(10)));
            Some(sockets.add(socket))
        }
        _ => None,
    };
    port.0.announce();
    iface.poll(Instant::ZERO, &mut port, &mut sockets);
    Some(Box::new(Smol {
        port,
        iface,
        sockets,
        socket,
        now: Instant::from_millis(1),
        destination: Destination::new(),
        source: Source::new(case),
        local: 0x8000,
        case,
        udp_burst,
    }))
}

impl Bench for Smol {
    fn run(&mut self, rounds: u64) {
        match self.case {
            Case::UdpRx => self.udp(rounds, self.udp_burst),
            Case::Fragments(_) => self.udp(rounds * FRAGMENTS as u64, FRAGMENTS),
            Case::Lockstep => self.lockstep(rounds),
            Case::Echo => self.echo(rounds),
            Case::TcpRx(_) => (0..rounds).for_each(|_| self.receive(TRANSFER)),
            Case::TcpTx(_) => (0..rounds).for_each(|_| self.transmit(TRANSFER)),
            Case::Sendfile(_) | Case::SendfileOffload(..) | Case::TcpTxGather(_) => {}
        }
    }

    fn nic(&mut self) -> &mut Nic {
        &mut self.port.0
    }

    fn received(&self) -> &[u8] {
        self.destination.all()
    }
}

impl Smol {
    /// Takes in what the NIC has; nothing is to be sent by a socket.
    #[inline]
    fn ingress(&mut self) {
        while self.iface.poll_ingress_single(self.now, &mut self.port, &mut self.sockets)
            != PollIngressSingleResult::None
        {}
    }

    fn udp(&mut self, frames: u64, burst: usize) {
        let Some(socket) = self.socket else { return };
        let mut left = frames;
        while left > 0 {
            let burst = left.min(burst as u64);
            left -= burst;
            self.port.0.offer(burst as usize);
            self.ingress();
            let socket = self.sockets.get_mut::<udp::Socket>(socket);
            while let Ok((data, _)) = socket.recv() {
                self.destination.take(data.len()).copy_from_slice(data);
            }
        }
    }

    fn lockstep(&mut self, rounds: u64) {
        let Some(handle) = self.socket else { return };
        let [a, b, c, d] = PEER_IP;
        let peer = IpEndpoint::new(IpAddress::v4(a, b, c, d), PEER_PORT);
        for _ in 0..rounds {
            self.port.0.offer(1);
            self.ingress();
            let socket = self.sockets.get_mut::<udp::Socket>(handle);
            let mut block = None;
            if let Ok((datagram, _)) = socket.recv()
                && let Some((head, data)) = datagram.split_first_chunk::<4>()
            {
                self.destination.take(data.len()).copy_from_slice(data);
                block = Some([head[2], head[3]]);
            }
            if let Some([hi, lo]) = block
                && let Ok(buffer) = socket.send(4, peer)
            {
                buffer.copy_from_slice(&[0, 4, hi, lo]);
            }
            self.iface.poll_egress(self.now, &mut self.port, &mut self.sockets);
        }
    }

    fn echo(&mut self, rounds: u64) {
        let mut left = rounds;
        while left > 0 {
            let burst = left.min(BURST as u64);
            left -= burst;
            self.port.0.offer(burst as usize);
            self.ingress();
        }
    }

    /// A new connection from a port not used lately.
    fn connect(&mut self) -> Option<SocketHandle> {
        let handle = self.socket?;
        self.local = self.local.wrapping_add(1) | 0x8000;
        let [a, b, c, d] = PEER_IP;
        let socket = self.sockets.get_mut::<tcp::Socket>(handle);
        socket.abort();
        let peer = (IpAddress::v4(a, b, c, d), PEER_PORT);
        socket.connect(self.iface.context(), peer, self.local).expect("a closed socket connects");
        Some(handle)
    }

    /// One pass over NIC and socket. Time moves a microsecond, and past a delayed acknowledgement when nothing happens.
    fn poll(&mut self) {
        self.port.0.offer(4 * BURST);
        self.now += Duration::from_micros(1);
        self.iface.poll(self.now, &mut self.port, &mut self.sockets);
    }

    fn receive(&mut self, total: usize) {
        let Some(handle) = self.connect() else { return };
        let target = self.destination.next(total);
        let mut at = 0;
        let mut idle = 0;
        loop {
            self.poll();
            let memory = self.destination.memory.slice_mut(target, total).expect("a part of the destination");
            let socket = self.sockets.get_mut::<tcp::Socket>(handle);
            let before = (at, socket.state());
            while socket.can_recv() {
                let taken = socket.recv(|data| {
                    memory[at..at + data.len()].copy_from_slice(data);
                    (data.len(), data.len())
                });
                at += taken.unwrap_or(0);
            }
            if socket.state() == tcp::State::CloseWait {
                socket.close();
            }
            if socket.state() == tcp::State::Closed {
                assert_eq!(at, total, "the connection closed early");
                return;
            }
            idle = if before == (at, socket.state()) { idle + 1 } else { 0 };
            self.wait(idle);
        }
    }

    fn transmit(&mut self, total: usize) {
        let Some(handle) = self.connect() else { return };
        let source = self.source.next(total);
        let mut at = 0;
        let mut idle = 0;
        loop {
            self.poll();
            let data = self.source.memory.bytes(source, total).expect("a part of the source");
            let socket = self.sockets.get_mut::<tcp::Socket>(handle);
            let before = (at, socket.state());
            while at < total && socket.can_send() {
                at += socket.send_slice(&data[at..]).unwrap_or(0);
            }
            if at == total && socket.state() == tcp::State::Established {
                socket.close();
            }
            if matches!(socket.state(), tcp::State::TimeWait | tcp::State::Closed) {
                assert_eq!(at, total, "the connection closed early");
                return;
            }
            idle = if before == (at, socket.state()) { idle + 1 } else { 0 };
            self.wait(idle);
        }
    }

    /// Lets time pass when `idle` polls in a row did nothing.
    fn wait(&mut self, idle: u32) {
        assert!(idle < 1000, "the transfer hangs");
        if idle > 4 {
            self.now += Duration::from_millis(20);
        }
    }
}
