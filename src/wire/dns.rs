//! DNS messages (RFC 1035) with A, AAAA (RFC 3596), CNAME and OPT (RFC 6891) records. Whether a reply belongs to a query,
//! and following CNAMEs, are left to the client.

use super::cursor::{Reader, Writer};
use super::{Error, Result};
use core::net::{Ipv4Addr, Ipv6Addr};

/// Length of a header in bytes.
pub const HEADER_LEN: usize = 12;
/// Longest name on the wire, with the length bytes and the root, in bytes (RFC 1035 §2.3.4).
pub const MAX_NAME_LEN: usize = 255;
/// Longest label in bytes (RFC 1035 §2.3.4).
pub const MAX_LABEL_LEN: usize = 63;
/// Port servers listen on.
pub const PORT: u16 = 53;
/// How many compression pointers one name may follow. Servers use one or two.
const MAX_HOPS: u8 = 32;

/// Type of a record or question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub u16);

impl Kind {
    /// IPv4 address.
    pub const A: Kind = Kind(1);
    /// Name server.
    pub const NS: Kind = Kind(2);
    /// Canonical name.
    pub const CNAME: Kind = Kind(5);
    /// Start of authority: comes with negative answers (RFC 2308).
    pub const SOA: Kind = Kind(6);
    /// IPv6 address.
    pub const AAAA: Kind = Kind(28);
    /// EDNS pseudo record.
    pub const OPT: Kind = Kind(41);
}

/// Class of a record or question: the Internet.
pub const CLASS_IN: u16 = 1;

/// Response code (RFC 1035 §4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rcode(pub u8);

impl Rcode {
    /// No error.
    pub const NO_ERROR: Rcode = Rcode(0);
    /// The server did not understand.
    pub const FORMAT_ERROR: Rcode = Rcode(1);
    /// The server failed.
    pub const SERVER_FAILURE: Rcode = Rcode(2);
    /// There is no such name.
    pub const NAME_ERROR: Rcode = Rcode(3);
    /// The server does not do that.
    pub const NOT_IMPLEMENTED: Rcode = Rcode(4);
    /// The server will not.
    pub const REFUSED: Rcode = Rcode(5);
}

/// A name within a message; checked to its end, so that its labels can be walked.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Name<'a> {
    /// The name at `at` of `message`, and the offset of what follows it. Compression pointers must lead strictly backwards,
    /// each before the place the last one led to, so a name cannot loop (RFC 1035 §4.1.4: "a prior occurrence").
    /// [`Error::Truncated`] if it runs over the end; [`Error::Malformed`] for pointers forward or in place, too many pointers, unknown label types and names above 255 bytes.
    pub fn parse(message: &'a [u8], at: usize) -> Result<(Name<'a>, usize)> {
        let name = Name { message, at };
        let (mut pos, mut limit, mut hops, mut len) = (at, at, 0u8, 1usize);
        let mut end = None;
        // Each turn adds to `len`, at most 255, or to `hops`.
        loop {
            let rest = message.get(pos..).ok_or(Error::Truncated)?;
            match *rest {
                [0, ..] => return Ok((name, end.unwrap_or(pos.saturating_add(1)))),
                [n @ 1..=63, ref tail @ ..] => {
                    let step = usize::from(n).wrapping_add(1);
                    len = len.wrapping_add(step);
                    if tail.len() < usize::from(n) {
                        return Err(Error::Truncated);
                    }
                    if len > MAX_NAME_LEN {
                        return Err(Error::Malformed);
                    }
                    pos = pos.saturating_add(step);
                }
                [hi @ 0xc0..=0xff, lo, ..] => {
                    let target = usize::from(u16::from_be_bytes([hi & 0x3f, lo]));
                    hops = hops.wrapping_add(1);
                    if target >= limit || hops > MAX_HOPS {
                        return Err(Error::Malformed);
                    }
                    end = end.or(Some(pos.saturating_add(2)));
                    (pos, limit) = (target, target);
                }
                [] | [0xc0..=0xff] => return Err(Error::Truncated),
                _ => return Err(Error::Malformed),
            }
        }
    }

    /// Writes `text`, labels with dots between them and perhaps a dot at the end, to the front of `buf` as a name.
    /// [`Error::Malformed`] for an empty name or label, a label above 63 bytes or a name above 255; [`Error::NoRoom`] if `buf` is too short: 255 bytes always suffice.
    pub fn from_text(text: &[u8], buf: &'a mut [u8]) -> Result<Name<'a>> {
        let text = text.strip_suffix(b".").unwrap_or(text);
        // Each label's length takes the place of a dot, the first and the root are beside that.
        if text.len() > MAX_NAME_LEN - 2 {
            return Err(Error::Malformed);
        }
        let mut w = Writer::new(buf);
        for label in text.split(|&byte| byte == b'.') {
            if label.is_empty() || label.len() > MAX_LABEL_LEN {
                return Err(Error::Malformed);
            }
            w.u8(label.len() as u8)?;
            w.put(label)?;
        }
        w.u8(0)?;
        Ok(Name { message: w.finish(), at: 0 })
    }

    /// Iterates over the labels, the root left out.
    pub fn labels(&self) -> Labels<'a> {
        Labels { message: self.message, at: self.at, hops: 0 }
    }

    /// Whether this is the same name as `other`; case does not matter (RFC 4343).
    pub fn matches(&self, other: &Name<'_>) -> bool {
        self.compare(other, |a, b| a.eq_ignore_ascii_case(b))
    }

    /// Whether this is the same name as `other` in the same case, for clients that mix case at random against forgery.
    pub fn matches_case(&self, other: &Name<'_>) -> bool {
        self.compare(other, |a, b| a == b)
    }

    fn compare(&self, other: &Name<'_>, same: fn(&[u8], &[u8]) -> bool) -> bool {
        let (mut left, mut right) = (self.labels(), other.labels());
        loop {
            match (left.next(), right.next()) {
                (Some(a), Some(b)) if same(a, b) => {}
                (None, None) => return true,
                _ => return false,
            }
        }
    }

    /// Appends the name to `w`, without compression.
    pub fn emit(&self, w: &mut Writer<'_>) -> Result<()> {
        for label in self.labels() {
            w.u8(label.len() as u8)?;
            w.put(label)?;
        }
        w.u8(0)
    }
}

/// Iterates over the labels of a name.
#[derive(Clone, Debug)]
pub struct Labels<'a> {
    message: &'a [u8],
    at: usize,
    hops: u8,
}

impl<'a> Iterator for Labels<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while self.hops <= MAX_HOPS {
            match *self.message.get(self.at..)? {
                [n @ 1..=63, ref tail @ ..] => {
                    let label = tail.get(..usize::from(n))?;
                    self.at = self.at.saturating_add(label.len()).saturating_add(1);
                    return Some(label);
                }
                [hi @ 0xc0..=0xff, lo, ..] => {
                    self.at = usize::from(u16::from_be_bytes([hi & 0x3f, lo]));
                    self.hops = self.hops.wrapping_add(1);
                }
                _ => return None,
            }
        }
        None
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Name.
    pub name: Name<'a>,
    /// Type asked for.
    pub kind: Kind,
    /// Class asked for.
    pub class: u16,
}

/// Part of a message that records stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Answers.
    Answer,
    /// Authorities.
    Authority,
    /// Additional records.
    Additional,
}

/// Data of a record.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// IPv4 address.
    A(Ipv4Addr),
    /// IPv6 address.
    Aaaa(Ipv6Addr),
    /// The name that the record's name stands for.
    Cname(Name<'a>),
    /// EDNS: longest UDP payload the sender takes, in bytes.
    Opt {
        /// In bytes.
        udp_size: u16,
    },
    /// Any other type or class, and addresses that have not the length of their type.
    Other(&'a [u8]),
}

/// A resource record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Where it stands.
    pub section: Section,
    /// Name.
    pub name: Name<'a>,
    /// Type.
    pub kind: Kind,
    /// Class.
    pub class: u16,
    /// Seconds it may be kept. Values with the top bit set are read as 0 (RFC 2181 §8).
    pub ttl_s: u32,
    /// Data.
    pub data: Data<'a>,
}

/// A view of a message.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    head: &'a [u8; HEADER_LEN],
    bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// Views `bytes` as a message; [`Error::Truncated`] below 12 bytes. Questions and records are checked as they are walked.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>> {
        let head = bytes.first_chunk::<HEADER_LEN>().ok_or(Error::Truncated)?;
        Ok(Message { head, bytes })
    }

    /// Names query and reply.
    pub fn id(&self) -> u16 {
        u16::from_be_bytes([self.head[0], self.head[1]])
    }

    /// Whether this is a reply.
    pub fn is_response(&self) -> bool {
        self.head[2] & 0x80 != 0
    }

    /// Kind of query; 0 is a standard query.
    pub fn opcode(&self) -> u8 {
        (self.head[2] >> 3) & 0x0f
    }

    /// Whether the reply was cut to fit a datagram: ask again over TCP.
    pub fn is_truncated(&self) -> bool {
        self.head[2] & 0x02 != 0
    }

    /// Whether the server asks others for us.
    pub fn recursion_available(&self) -> bool {
        self.head[3] & 0x80 != 0
    }

    /// Response code.
    pub fn rcode(&self) -> Rcode {
        Rcode(self.head[3] & 0x0f)
    }

    /// How many questions the message says it has.
    pub fn question_count(&self) -> u16 {
        u16::from_be_bytes([self.head[4], self.head[5]])
    }

    /// How many answers the message says it has.
    pub fn answer_count(&self) -> u16 {
        u16::from_be_bytes([self.head[6], self.head[7]])
    }

    /// The first question; `None` if there is none or it is not whole.
    pub fn question(&self) -> Option<Question<'a>> {
        if self.question_count() == 0 {
            return None;
        }
        self.question_at(HEADER_LEN).ok().map(|(question, _)| question)
    }

    /// Iterates over the records of all sections, in order. An error if the questions before them are not whole.
    pub fn records(&self) -> Result<Records<'a>> {
        let mut at = HEADER_LEN;
        for _ in 0..self.question_count() {
            (_, at) = self.question_at(at)?;
        }
        let count = |a, b| u16::from_be_bytes([a, b]);
        let h = self.head;
        Ok(Records { bytes: self.bytes, at, counts: [count(h[6], h[7]), count(h[8], h[9]), count(h[10], h[11])] })
    }

    fn question_at(&self, at: usize) -> Result<(Question<'a>, usize)> {
        let (name, at) = Name::parse(self.bytes, at)?;
        let mut r = Reader::new(self.bytes.get(at..).unwrap_or_default());
        let question = Question { name, kind: Kind(r.u16()?), class: r.u16()? };
        Ok((question, at.saturating_add(4)))
    }
}

/// Iterates over records. One that is not whole, or a name in it that does not parse, gives one error and ends them: a
/// message is not to be trusted past it. Bytes after the last record are such an error too: some length was wrong.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    counts: [u16; 3],
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>>;

    fn next(&mut self) -> Option<Result<Record<'a>>> {
        let sections = [Section::Answer, Section::Authority, Section::Additional];
        let Some((count, section)) = self.counts.iter_mut().zip(sections).find(|(count, _)| **count > 0) else {
            let trailing = self.at < self.bytes.len();
            self.at = self.bytes.len();
            return trailing.then_some(Err(Error::Malformed));
        };
        *count = count.wrapping_sub(1);
        let record = self.record(section);
        if record.is_err() {
            self.counts = [0; 3];
            self.at = self.bytes.len();
        }
        Some(record)
    }
}

impl<'a> Records<'a> {
    fn record(&mut self, section: Section) -> Result<Record<'a>> {
        let (name, at) = Name::parse(self.bytes, self.at)?;
        let mut r = Reader::new(self.bytes.get(at..).unwrap_or_default());
        let (kind, class, ttl) = (Kind(r.u16()?), r.u16()?, r.u32()?);
        let len = usize::from(r.u16()?);
        let rdata = r.take(len)?;
        let start = at.saturating_add(10);
        let end = start.saturating_add(len);
        let data = match (kind, class) {
            (Kind::OPT, udp_size) => Data::Opt { udp_size },
            (Kind::A, CLASS_IN) => address::<4, Ipv4Addr>(rdata).map_or(Data::Other(rdata), Data::A),
            (Kind::AAAA, CLASS_IN) => address::<16, Ipv6Addr>(rdata).map_or(Data::Other(rdata), Data::Aaaa),
            (Kind::CNAME, CLASS_IN) => {
                let (target, after) = Name::parse(self.bytes, start)?;
                if after != end {
                    return Err(Error::Malformed);
                }
                Data::Cname(target)
            }
            _ => Data::Other(rdata),
        };
        self.at = end;
        let ttl_s = if ttl > i32::MAX as u32 { 0 } else { ttl };
        Ok(Record { section, name, kind, class, ttl_s, data })
    }
}

fn address<const N: usize, T: From<[u8; N]>>(bytes: &[u8]) -> Option<T> {
    bytes.try_into().ok().map(|bytes: [u8; N]| T::from(bytes))
}

/// A query with one question.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Names query and reply.
    pub id: u16,
    /// Name asked for.
    pub name: Name<'a>,
    /// Type asked for.
    pub kind: Kind,
    /// Longest reply taken over UDP, in bytes, said in an OPT record (RFC 6891 §6.2.3); `None` for none, and 512.
    pub udp_size: Option<u16>,
}

impl Query<'_> {
    /// Writes the query, recursion desired, to the front of `buf` and returns its length; [`Error::NoRoom`] if it does not fit.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize> {
        let mut w = Writer::new(buf);
        put_query_header(&mut w, self.id, self.udp_size.is_some())?;
        self.name.emit(&mut w)?;
        w.u16(self.kind.0)?;
        w.u16(CLASS_IN)?;
        if let Some(size) = self.udp_size {
            let [a, b] = size.to_be_bytes();
            w.put(&[0, 0, 41, a, b, 0, 0, 0, 0, 0, 0])?;
        }
        Ok(w.len())
    }
}

/// Appends the header of a query with one question, recursion desired: the question follows, and the OPT record where there is to
/// be one (RFC 6891 §6.1).
pub fn put_query_header(w: &mut Writer<'_>, id: u16, opt: bool) -> Result<()> {
    w.u16(id)?;
    w.put(&[0x01, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(opt)])
}

/// Writes replies, for servers in tests and simulations: names are not compressed, one question, answers only.
#[derive(Debug)]
pub struct ReplyBuilder<'b> {
    writer: Writer<'b>,
    answers: u16,
}

impl<'b> ReplyBuilder<'b> {
    /// Begins a reply to `question`.
    pub fn new(
        buf: &'b mut [u8],
        id: u16,
        rcode: Rcode,
        truncated: bool,
        question: &Question<'_>,
    ) -> Result<ReplyBuilder<'b>> {
        let mut w = Writer::new(buf);
        w.u16(id)?;
        w.put(&[if truncated { 0x83 } else { 0x81 }, 0x80 | (rcode.0 & 0x0f), 0, 1, 0, 0, 0, 0, 0, 0])?;
        question.name.emit(&mut w)?;
        w.u16(question.kind.0)?;
        w.u16(question.class)?;
        Ok(ReplyBuilder { writer: w, answers: 0 })
    }

    /// Appends an answer of class IN. Of [`Data::Other`] it takes the type from `kind`; otherwise from the data.
    pub fn answer(&mut self, name: &Name<'_>, kind: Kind, ttl_s: u32, data: &Data<'_>) -> Result<()> {
        let mut name_buf = [0; MAX_NAME_LEN];
        let mut target_w = Writer::new(&mut name_buf);
        let (v4, v6);
        let (kind, bytes): (Kind, &[u8]) = match *data {
            Data::A(addr) => {
                v4 = addr.octets();
                (Kind::A, &v4)
            }
            Data::Aaaa(addr) => {
                v6 = addr.octets();
                (Kind::AAAA, &v6)
            }
            Data::Cname(target) => {
                target.emit(&mut target_w)?;
                (Kind::CNAME, target_w.finish())
            }
            Data::Other(bytes) => (kind, bytes),
            Data::Opt { .. } => return Err(Error::Malformed),
        };
        let len = u16::try_from(bytes.len()).map_err(|_| Error::NoRoom)?;
        let w = &mut self.writer;
        name.emit(w)?;
        w.u16(kind.0)?;
        w.u16(CLASS_IN)?;
        w.u32(ttl_s)?;
        w.u16(len)?;
        w.put(bytes)?;
        self.answers = self.answers.saturating_add(1);
        Ok(())
    }

    /// The reply.
    pub fn finish(self) -> &'b mut [u8] {
        let bytes = self.writer.finish();
        if let Some(head) = bytes.first_chunk_mut::<HEADER_LEN>() {
            [head[6], head[7]] = self.answers.to_be_bytes();
        }
        bytes
    }
}

#[cfg(test)]
mod tests;
