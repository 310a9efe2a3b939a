//! The way of a transfer that both directions share: the server's address, the request, what the server agrees to, and
//! the end. What happens between is the direction's.

use super::Mode;
use super::session::{Agreement, Room, Session, error_meaning};
use crate::client::dns::{Resolve, Resolved};
use crate::client::operation::{Cx, Datagram, DetailKind, Step};
use crate::stack::icmp::IcmpError;
use crate::stack::interface::is_host_address;
use crate::stack::stats::Counter;
use crate::storage::error::Error;
use crate::storage::host::{Endpoint, Host};
use crate::storage::time::Instant;
use crate::wire::tftp::{Access, ErrorCode, Packet};

/// What is to be done after a call of a direction.
#[derive(Clone, Copy, Debug)]
pub enum Turn {
    /// Nothing but what the next poll does.
    Stay,
    /// Poll again at this time.
    At(Instant),
    /// Begin anew with the plan as it is.
    Again,
    /// The server's agreement is impossible: it is told so, and the transfer begins anew without options.
    Refuse,
    /// End with an error; the server is told the code and the text.
    Fail(Error, ErrorCode, &'static [u8]),
    /// All is done: the result, and the last block.
    Done(u64, u64),
}

/// One of the two directions.
pub trait Direction<H: Host> {
    /// The state of one attempt, once the server takes part in it.
    type Course;
    /// What is requested.
    const ACCESS: Access;
    /// What the blocks go to or come from. `keeps`: bytes that the socket's queue can keep.
    fn room(&self, cx: &Cx<'_, '_, H>, keeps: Option<usize>) -> Room;
    /// The value of the option `tsize`.
    fn size(&self) -> Option<u64>;
    /// The server takes part: the attempt begins.
    fn start(&mut self, now: Instant, session: &Session) -> Self::Course;
    /// The server has agreed to options, and told a size or not.
    fn agreed(
        &mut self,
        course: &mut Self::Course,
        session: &mut Session,
        cx: &mut Cx<'_, '_, H>,
        size: Option<u64>,
    ) -> Turn;
    /// The server's agreement has come again.
    fn agreed_again(&mut self, course: &mut Self::Course, session: &Session, now: Instant);
    /// Whether a packet is what a server sends that knows no options (RFC 2347).
    fn is_plain_answer(packet: &Packet<'_>) -> bool;
    /// Takes a packet of the server's, neither an error nor an agreement.
    fn packet(
        &mut self,
        course: &mut Self::Course,
        session: &mut Session,
        cx: &mut Cx<'_, '_, H>,
        datagram: &Datagram<'_>,
        packet: &Packet<'_>,
    ) -> Turn;
    /// When to poll again, if there is certainly nothing to do now.
    #[inline]
    fn rests(_: &Self::Course, _: &Session, _: Instant) -> Option<Instant> {
        None
    }
    /// Does what is due.
    fn poll(&mut self, course: &mut Self::Course, session: &mut Session, cx: &mut Cx<'_, '_, H>) -> Turn;
}

/// How far a transfer is.
#[derive(Debug)]
pub enum Stage<C> {
    /// The name of the server is being looked up.
    Lookup(Resolve),
    /// A port is to be opened.
    Begin,
    /// The request is out.
    Asking,
    /// Blocks go over.
    Open(C),
    /// The attempt has come to its end by a datagram; the next poll does what is to be done then.
    Turned(Turn),
    /// It has failed.
    Failed(Error),
    /// All is done; the result.
    Done(u64),
}

/// A transfer.
pub struct Transfer<H: Host, D: Direction<H>> {
    name: Option<H::Text>,
    path: H::Text,
    mode: Mode,
    planned: bool,
    /// The dealings with the server.
    pub session: Session,
    /// The direction, and what lasts over all attempts.
    pub way: D,
    /// How far it is.
    pub stage: Stage<D::Course>,
}

impl<H: Host, D: Direction<H>> Transfer<H, D> {
    /// A transfer that is yet to begin, with the server by `name`, or the session's.
    ///
    /// # Errors
    /// [`Error::Invalid`]: an empty path, or an address that is no host's.
    pub fn new(name: Option<H::Text>, path: H::Text, mode: Mode, session: Session, way: D) -> Result<Self, Error> {
        if path.as_ref().is_empty() || (name.is_none() && !is_host_address(session.peer.addr)) {
            return Err(Error::Invalid);
        }
        let stage = if name.is_some() { Stage::Lookup(Resolve::new()) } else { Stage::Begin };
        Ok(Transfer { name, path, mode, planned: false, session, way, stage })
    }

    #[inline(never)] // Once a transfer: not in the frame of what each block does.
    fn begin(&mut self, cx: &mut Cx<'_, '_, H>) -> Result<(), Error> {
        self.session.begin(cx)?;
        if !self.planned {
            let room = self.way.room(cx, self.session.staging(cx));
            self.session.plan(cx, room)?;
            self.planned = true;
        }
        cx.progress.done = 0;
        Ok(())
    }

    /// Ends the attempt under way, if there is one, and begins again with the next poll.
    pub fn again(&mut self, cx: &mut Cx<'_, '_, H>) {
        match self.stage {
            Stage::Lookup(_) => return,
            Stage::Open(_) | Stage::Turned(_) => self.session.tell(cx, ErrorCode::NOT_DEFINED, b"asking again"),
            _ => {}
        }
        self.stage = Stage::Begin;
    }

    /// Notes what a datagram has led to: the next poll follows.
    #[inline]
    fn turn(&mut self, turn: Turn) {
        if !matches!(turn, Turn::Stay | Turn::At(_)) {
            self.stage = Stage::Turned(turn);
        }
    }

    /// Does what a direction says.
    #[inline]
    fn follow(&mut self, cx: &mut Cx<'_, '_, H>, turn: Turn) {
        match turn {
            Turn::Stay | Turn::At(_) => {}
            Turn::Again => self.again(cx),
            Turn::Refuse => {
                self.session.tell(cx, ErrorCode::OPTION_REFUSED, b"option refused");
                self.without_options(Error::Protocol);
            }
            Turn::Fail(why, code, text) => {
                self.session.give_up(cx, code, text);
                self.stage = Stage::Failed(why);
            }
            Turn::Done(result, last) => {
                self.session.finish(cx, last);
                self.stage = Stage::Done(result);
            }
        }
    }

    /// Begins anew without options, or ends if that was so already.
    fn without_options(&mut self, why: Error) {
        if self.session.plan.options {
            self.session.plan.options = false;
            self.stage = Stage::Begin;
        } else {
            self.stage = Stage::Failed(why);
        }
    }

    /// The server takes part.
    fn open(&mut self, now: Instant) {
        self.stage = Stage::Open(self.way.start(now, &self.session));
    }

    #[inline(never)]
    fn answer(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>, packet: &Packet<'_>) {
        let (now, from) = (cx.now(), datagram.meta.src);
        match packet {
            Packet::Error { code: ErrorCode::OPTION_REFUSED, .. } if self.session.plan.options => {
                self.without_options(Error::NotSupported);
            }
            Packet::Error { code, message } => self.fail_as_told(cx, from, *code, message),
            Packet::Oack(options) => {
                let agreement = self.session.agree(*options);
                self.session.bind(now, from);
                let Agreement::Holds(size) = agreement else { return self.turn(Turn::Refuse) };
                self.open(now);
                self.with_course(cx, |way, course, session, cx| way.agreed(course, session, cx, size));
            }
            Packet::Data { block, .. } if cx.shared.tftp.finished.is_last(now, self.session.port, from, *block) => {
                cx.stack.stats.count(Counter::DropDally);
            }
            // RFC 2347: a server that knows no options answers as if none had been asked for.
            packet if D::is_plain_answer(packet) => {
                self.session.bind(now, from);
                self.open(now);
                self.with_course(cx, |way, course, session, cx| way.packet(course, session, cx, datagram, packet));
            }
            _ => cx.stack.stats.count(Counter::DropTftpBlock),
        }
    }

    fn fail_as_told(&mut self, cx: &mut Cx<'_, '_, H>, from: Endpoint, code: ErrorCode, message: &[u8]) {
        cx.detail.set(DetailKind::Tftp, u32::from(code.0), Some(from.addr), message);
        self.stage = Stage::Failed(error_meaning(code));
    }

    /// See [`crate::client::operation::Operation::poll`].
    #[inline]
    pub fn poll(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        match self.rests(cx) {
            Some(at) => Step::Pending(at),
            None => self.work(cx),
        }
    }

    /// The same after a usual block: it is acknowledged, and anything else is left to the next poll.
    #[inline]
    pub fn poll_usual(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        match self.rests(cx) {
            Some(at) => Step::Pending(at),
            None => self.advance(cx).unwrap_or(Step::Pending(cx.now())),
        }
    }

    /// When to poll again, if there is certainly nothing to do now: most blocks of a window need no answer.
    #[inline]
    fn rests(&self, cx: &Cx<'_, '_, H>) -> Option<Instant> {
        match &self.stage {
            Stage::Open(course) if !self.session.has_stranger() => D::rests(course, &self.session, cx.now()),
            _ => None,
        }
    }

    /// Does what is due in the attempt that is under way, if any. `None`: it is over.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
    fn advance(&mut self, cx: &mut Cx<'_, '_, H>) -> Option<Step> {
        let Stage::Open(course) = &mut self.stage else { return None };
        match self.way.poll(course, &mut self.session, cx) {
            Turn::Stay => Some(Step::Pending(self.session.deadline)),
            Turn::At(at) => Some(Step::Pending(at)),
            turn => {
                self.stage = Stage::Turned(turn);
                None
            }
        }
    }

    fn work(&mut self, cx: &mut Cx<'_, '_, H>) -> Step {
        self.session.refuse_stranger(cx);
        // Each turn but the last goes on to another stage: from `Open` over `Turned` back to `Begin` and on to `Asking` at most.
        for _ in 0..6 {
            match &mut self.stage {
                Stage::Open(_) => {
                    if let Some(step) = self.advance(cx) {
                        return step;
                    }
                }
                Stage::Turned(turn) => {
                    let turn = *turn;
                    self.follow(cx, turn);
                }
                Stage::Lookup(resolve) => {
                    let name = self.name.as_ref().map_or(&[][..], |name| name.as_ref());
                    self.stage = match resolve.poll(cx, name) {
                        Resolved::Pending(at) => return Step::Pending(at),
                        Resolved::Failed(why) => Stage::Failed(why),
                        Resolved::Ready(addr) if is_host_address(addr) => {
                            self.session.set_server(addr);
                            Stage::Begin
                        }
                        Resolved::Ready(_) => Stage::Failed(Error::Invalid),
                    };
                }
                Stage::Begin => {
                    self.stage = match self.begin(cx) {
                        Ok(()) => Stage::Asking,
                        Err(why) => Stage::Failed(why),
                    };
                }
                Stage::Asking => {
                    match self.session.ask(cx, D::ACCESS, self.path.as_ref(), self.mode, self.way.size()) {
                        Ok(at) => return Step::Pending(at),
                        Err(why) => self.stage = Stage::Failed(why),
                    }
                }
                Stage::Failed(why) => return Step::Done(Err(*why)),
                Stage::Done(result) => return Step::Done(Ok(*result)),
            }
        }
        Step::Pending(cx.now())
    }

    /// See [`crate::client::operation::Operation::datagram`].
    pub fn datagram(&mut self, cx: &mut Cx<'_, '_, H>, datagram: &Datagram<'_>) {
        let Datagram { payload, meta, .. } = datagram;
        match &mut self.stage {
            Stage::Lookup(resolve) => {
                let name = self.name.as_ref().map_or(&[][..], |name| name.as_ref());
                return resolve.datagram(cx, name, datagram);
            }
            Stage::Asking | Stage::Open(_) => {}
            _ => return,
        }
        if !self.session.is_peer(cx, meta.src) {
            return self.session.note_stranger(&mut cx.stack.stats, meta.src, payload);
        }
        let packet = match Packet::parse(payload) {
            // Less than four bytes is no packet.
            Ok(packet) if payload.len() >= 4 => packet,
            _ => return cx.stack.stats.count(Counter::DropTftpMalformed),
        };
        let Stage::Open(course) = &mut self.stage else { return self.answer(cx, datagram, &packet) };
        let turn = match packet {
            Packet::Error { code, message } => return self.fail_as_told(cx, meta.src, code, message),
            Packet::Oack(_) => return self.way.agreed_again(course, &self.session, cx.now()),
            packet => self.way.packet(course, &mut self.session, cx, datagram, &packet),
        };
        self.turn(turn);
    }

    /// Lets a direction work on the attempt that is under way.
    #[inline]
    pub fn with_course(
        &mut self,
        cx: &mut Cx<'_, '_, H>,
        work: impl FnOnce(&mut D, &mut D::Course, &mut Session, &mut Cx<'_, '_, H>) -> Turn,
    ) {
        if let Stage::Open(course) = &mut self.stage {
            let turn = work(&mut self.way, course, &mut self.session, cx);
            self.turn(turn);
        }
    }

    /// See [`crate::client::operation::Operation::icmp_error`].
    pub fn icmp_error(&mut self, cx: &mut Cx<'_, '_, H>, error: &IcmpError) {
        match &mut self.stage {
            Stage::Lookup(resolve) => resolve.icmp_error(cx, error),
            Stage::Asking | Stage::Open(_) => {
                if let Some(why) = self.session.icmp_error(cx.detail, error) {
                    self.stage = Stage::Failed(why);
                }
            }
            _ => {}
        }
    }

    /// See [`crate::client::operation::Operation::cancel`].
    pub fn cancel(&mut self, cx: &mut Cx<'_, '_, H>) {
        match &mut self.stage {
            Stage::Lookup(resolve) => resolve.cancel(cx),
            Stage::Open(_) | Stage::Turned(_) => self.session.give_up(cx, ErrorCode::NOT_DEFINED, b"cancelled"),
            _ => {}
        }
    }
}
