//! What is sent: one stream made of files, each by its own source, and of the ring for everything between and behind
//! them. A byte is asked for by its position, whether it is sent for the first time or again, so one sender serves all
//! sources (design §1, idea 3). When and how much is sent is for `send`.

use super::pages::{Page, PageId, PageList, Pages};
use super::seq::Pos;
use crate::stack::egress::MAX_BODY;
use crate::storage::checksum::Sum;
use crate::storage::error::{Error, Result};
use crate::storage::host::{Host, Memory, Pager, Reader, Source, SourceOf, Span, Token};
use crate::storage::ring::ByteRing;
use crate::storage::saturating;
use heapless::Vec;

/// Most files of a connection that are being sent or whose result was not taken.
pub const FILES: usize = 4;

/// Names a file of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u32);

/// How far a file has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Bytes acknowledged.
    pub acknowledged: u64,
    /// `None` while it goes on. `Ok`: all bytes were acknowledged and all memory was given back. `Err`: only
    /// `acknowledged` bytes were sent, and why.
    pub result: Option<Result<()>>,
}

struct File<H: Host> {
    source: SourceOf<H>,
    ticket: Ticket,
    start: Pos,
    end: Pos,
    /// Offset in the file of its first byte.
    offset: u64,
    pages: PageList,
    /// Why it ends early.
    error: Option<Error>,
    /// Somebody will take its result, also when the connection was closed.
    kept: bool,
}

/// What stands in the way of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// No place for another lent page: some must be given back first.
    NoPage,
    /// The file ends at this position, before its count, or its source failed there.
    Ended(Pos, Error),
}

/// How a segment's payload is had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// How many bytes; at most as many as asked for.
    pub len: usize,
    /// They must be written into the frame by [`SendQueue::fill`]: a reader is among their sources.
    pub fill: bool,
}

/// The spans of a payload.
pub type Body<'q, M> = Vec<Span<'q, M>, MAX_BODY>;

/// The queue of one connection.
pub struct SendQueue<'a, H: Host> {
    ring: ByteRing<'a>,
    files: Vec<File<H>, FILES>,
    /// The first position not acknowledged.
    una: Pos,
    /// One beyond the last byte.
    end: Pos,
    tickets: u32,
    /// The page that bytes were last taken from: most come from there.
    recent: Option<Recent>,
}

/// What of a file lies in one lent page.
#[derive(Clone, Copy)]
struct Recent {
    id: PageId,
    /// Where the page begins; its bytes that are the file's go from `start` to `end`.
    page: Pos,
    start: Pos,
    end: Pos,
}

impl Recent {
    #[inline]
    fn holds(&self, pos: Pos, len: usize) -> bool {
        self.start <= pos && pos + len as u64 <= self.end
    }
}

/// A piece of the stream with one source.
enum Piece {
    /// Offset in the ring.
    Ring(usize),
    /// Index of a file.
    File(usize),
}

fn to_usize(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

impl<'a, H: Host> SendQueue<'a, H> {
    /// An empty queue over a ring's bytes.
    pub fn new(ring: &'a mut [u8]) -> Self {
        SendQueue {
            ring: ByteRing::new(ring),
            files: Vec::new(),
            una: Pos::DATA,
            end: Pos::DATA,
            tickets: 0,
            recent: None,
        }
    }

    /// Forgets everything, for another connection. No page may be out.
    pub fn reset(&mut self) {
        self.ring.clear();
        self.files.clear();
        self.recent = None;
        self.una = Pos::DATA;
        self.end = Pos::DATA;
    }

    /// Pretends that everything up to `count` bytes was acknowledged.
    #[cfg(test)]
    pub fn skip_for_test(&mut self, count: u64) {
        self.una += count;
    }

    /// Pretends that an empty stream ends at `pos`.
    #[cfg(test)]
    pub fn end_for_test(&mut self, pos: Pos) {
        self.end = pos;
    }

    /// One beyond the last byte.
    #[inline]
    pub fn end(&self) -> Pos {
        self.end
    }

    /// Free bytes of the ring.
    pub fn free(&self) -> usize {
        self.ring.free()
    }

    /// Appends bytes to the ring; how many fit.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let count = self.ring.push(bytes);
        self.end += count as u64;
        count
    }

    /// The next `len` free bytes of the ring, where they are in one piece and what is appended comes behind all else.
    #[inline]
    pub fn ahead(&mut self, len: usize) -> Option<&mut [u8]> {
        let (first, second) = self.ring.spare_mut(0, len)?;
        second.is_empty().then_some(first)
    }

    /// Appends the `len` bytes that were written there.
    #[inline]
    pub fn take_ahead(&mut self, len: usize) {
        self.end += self.ring.advance(len) as u64;
    }

    /// Appends `count` bytes of a file from `offset` on.
    ///
    /// # Errors
    /// [`Error::Again`]: there are [`FILES`] files already. [`Error::Invalid`]: the range lies outside a memory source, or is
    /// longer than any stream.
    pub fn push_file(&mut self, source: SourceOf<H>, offset: u64, count: u64) -> Result<Ticket> {
        if let Source::Memory(memory) = &source {
            let end = offset.checked_add(count).ok_or(Error::Invalid)?;
            if end > memory.len() as u64 {
                return Err(Error::Invalid);
            }
        }
        offset.checked_add(count).ok_or(Error::Invalid)?;
        let ticket = Ticket(self.tickets);
        let (start, end) = (self.end, self.end.ahead(count).ok_or(Error::Invalid)?);
        let file = File { source, ticket, start, end, offset, pages: PageList::EMPTY, error: None, kept: false };
        self.files.push(file).map_err(|_| Error::Again)?;
        self.tickets = self.tickets.wrapping_add(1);
        self.end = end;
        Ok(ticket)
    }

    /// Bytes from the first one not acknowledged to `to` that come from the ring: all that come from no file.
    #[inline]
    fn in_ring(&self, to: Pos) -> usize {
        let all = to.since(self.una);
        to_usize(
            self.files.iter().fold(all, |rest, f| {
                saturating::sub(rest, f.end.earlier(to).since(f.start.later(self.una).earlier(to)))
            }),
        )
    }

    /// The source of the byte at `pos`, and how many bytes from there on it has.
    #[inline]
    fn piece(&self, pos: Pos) -> (Piece, u64) {
        let mut stop = self.end;
        for (index, file) in self.files.iter().enumerate() {
            if pos < file.start {
                stop = file.start;
                break;
            }
            if pos < file.end {
                return (Piece::File(index), file.end.since(pos));
            }
        }
        (Piece::Ring(self.in_ring(pos)), stop.since(pos))
    }

    /// Makes `len` bytes from `pos` on ready to be sent, and says how many are and how they are had.
    #[inline]
    pub fn prepare(
        &mut self,
        pages: &mut Pages<'_, H::Memory>,
        owner: u16,
        pos: Pos,
        len: usize,
    ) -> core::result::Result<Prepared, Obstacle> {
        if self.files.is_empty() {
            return Ok(Prepared { len, fill: false });
        }
        if self.recent.is_some_and(|recent| recent.holds(pos, len)) {
            return Ok(Prepared { len, fill: false });
        }
        self.prepare_pieces(pages, owner, pos, len)
    }

    fn prepare_pieces(
        &mut self,
        pages: &mut Pages<'_, H::Memory>,
        owner: u16,
        pos: Pos,
        len: usize,
    ) -> core::result::Result<Prepared, Obstacle> {
        let mut ready = 0u64;
        let mut spans = 0usize;
        let mut lent = 0usize;
        let mut fill = false;
        // A ring piece takes two spans, a page one; a frame has room for `MAX_BODY`, a token for two pages.
        while ready < len as u64 && (fill || (spans < MAX_BODY.saturating_sub(1) && lent < 2)) {
            let at = pos + ready;
            let (piece, room) = self.piece(at);
            let wanted = (len as u64).wrapping_sub(ready).min(room);
            if wanted == 0 {
                break;
            }
            let got = match piece {
                Piece::Ring(_) => {
                    spans = spans.wrapping_add(2);
                    Ok(wanted)
                }
                Piece::File(index) => {
                    spans = spans.wrapping_add(1);
                    match self.files.get(index).map(|f| &f.source) {
                        Some(Source::Reader(_)) => {
                            fill = true;
                            Ok(wanted)
                        }
                        _ => {
                            lent = lent.wrapping_add(1);
                            self.page_at(pages, owner, index, at).map(|page| page.min(wanted))
                        }
                    }
                }
            };
            match got {
                Ok(got) => ready = ready.wrapping_add(got),
                Err(obstacle) if ready == 0 => return Err(obstacle),
                Err(_) => break,
            }
        }
        Ok(Prepared { len: to_usize(ready), fill })
    }

    /// Sees to it that the page that `pos` lies in is lent; how many bytes it has from there on.
    fn page_at(
        &mut self,
        pages: &mut Pages<'_, H::Memory>,
        owner: u16,
        index: usize,
        pos: Pos,
    ) -> core::result::Result<u64, Obstacle> {
        let Some(file) = self.files.get_mut(index) else { return Err(Obstacle::Ended(pos, Error::Invalid)) };
        let (from, to) = (file.start, file.end);
        let recent = |id, start: Pos, len: u64| Recent {
            id,
            page: start,
            start: start.later(from),
            end: (start + len).earlier(to),
        };
        if let Some(id) = pages.find(&file.pages, pos)
            && let Some(page) = pages.get(id)
        {
            self.recent = Some(recent(id, page.start, page.len));
            return Ok(saturating::sub(page.len, pos.since(page.start)));
        }
        if !pages.has_room() {
            return Err(Obstacle::NoPage);
        }
        let offset = saturating::add(file.offset, pos.since(file.start));
        let asked = file.end.since(pos);
        let (memory, start, offset, len) = match &mut file.source {
            Source::Memory(memory) => {
                let (at, all) = (to_usize(file.offset), to_usize(file.end.since(file.start)));
                let whole = memory.slice(at, all).map_err(|_| Obstacle::Ended(pos, Error::Invalid))?;
                (whole, file.start, file.offset, all as u64)
            }
            Source::Pager(pager) => {
                let memory = pager.map(offset, to_usize(asked)).map_err(|e| Obstacle::Ended(pos, Error::Host(e)))?;
                let len = (memory.len() as u64).min(asked);
                if len == 0 {
                    // Nothing was lent.
                    return Err(Obstacle::Ended(pos, Error::EndOfFile));
                }
                (memory, pos, offset, len)
            }
            Source::Reader(_) => return Err(Obstacle::Ended(pos, Error::Invalid)),
        };
        let ticket = file.ticket.0;
        pages.add(&mut file.pages, memory, start, len, offset, owner, ticket);
        self.recent = pages.find(&file.pages, pos).map(|id| recent(id, start, len));
        Ok(saturating::sub(len, pos.since(start)))
    }

    /// `len` bytes from `pos` on, if they are new to nobody and lie in one piece: in the ring, or in the page that was used
    /// last. And the token that names that page.
    #[inline]
    pub fn span<'q>(
        &'q self,
        pages: &'q Pages<'_, H::Memory>,
        pos: Pos,
        len: usize,
    ) -> Option<(Span<'q, H::Memory>, Token)> {
        if self.files.is_empty() {
            let (first, second) = self.ring.peek(to_usize(pos.since(self.una)), len)?;
            return second.is_empty().then_some((Span::Bytes(first), Token(0)));
        }
        let recent = self.recent.filter(|recent| recent.holds(pos, len))?;
        let page = pages.get(recent.id)?;
        let at = to_usize(pos.since(recent.page));
        Some((Span::Memory { memory: &page.memory, at, len }, Pages::<H::Memory>::token(recent.id, PageId::NONE)))
    }

    /// The spans of bytes that were prepared without [`Prepared::fill`], and the token that names their pages.
    #[inline]
    pub fn spans<'q>(
        &'q self,
        pages: &'q Pages<'_, H::Memory>,
        pos: Pos,
        len: usize,
        body: &mut Body<'q, H::Memory>,
    ) -> Option<Token> {
        if let Some((span, token)) = self.span(pages, pos, len) {
            body.push(span).ok()?;
            return Some(token);
        }
        let mut lent = [PageId::NONE; 2];
        let mut done = 0u64;
        while done < len as u64 {
            let at = pos + done;
            let (piece, room) = self.piece(at);
            let wanted = (len as u64).wrapping_sub(done).min(room);
            let got = match piece {
                Piece::Ring(offset) => {
                    let (first, second) = self.ring.peek(offset, to_usize(wanted))?;
                    body.push(Span::Bytes(first)).ok()?;
                    if !second.is_empty() {
                        body.push(Span::Bytes(second)).ok()?;
                    }
                    wanted
                }
                Piece::File(index) => {
                    let id = pages.find(&self.files.get(index)?.pages, at)?;
                    let page = pages.get(id)?;
                    let from = at.since(page.start);
                    let got = saturating::sub(page.len, from).min(wanted);
                    body.push(Span::Memory { memory: &page.memory, at: to_usize(from), len: to_usize(got) }).ok()?;
                    let [first, second] = &mut lent;
                    *(if *first == PageId::NONE { first } else { second }) = id;
                    got
                }
            };
            if got == 0 {
                return None;
            }
            done = done.wrapping_add(got);
        }
        let [first, second] = lent;
        Some(Pages::<H::Memory>::token(first, second))
    }

    /// Writes bytes from `pos` on into the whole of `out` and sums them.
    ///
    /// # Errors
    /// [`Obstacle::Ended`]: the bytes end earlier; `out` is of no use.
    pub fn fill(
        &mut self,
        pages: &Pages<'_, H::Memory>,
        pos: Pos,
        out: &mut [u8],
    ) -> core::result::Result<Sum, Obstacle> {
        let mut sum = Sum::ZERO;
        let mut done = 0usize;
        let mut rest = out;
        while !rest.is_empty() {
            let at = pos + done as u64;
            let broken = Obstacle::Ended(at, Error::Invalid);
            let (piece, room) = self.piece(at);
            let wanted = rest.len().min(to_usize(room));
            let mut page = None;
            if let Piece::File(index) = piece {
                let list = self.files.get(index).map(|file| file.pages).unwrap_or(PageList::EMPTY);
                page = pages.find(&list, at).and_then(|id| pages.get(id));
            }
            let inside = page.map_or(0, |page| at.since(page.start));
            let len = page.map_or(wanted, |page| to_usize(saturating::sub(page.len, inside)).min(wanted));
            let (part, tail) = rest.split_at_mut_checked(len).filter(|(part, _)| !part.is_empty()).ok_or(broken)?;
            let part_sum = match (piece, page) {
                (Piece::Ring(offset), _) => self.ring.copy_out(offset, part).ok_or(broken)?,
                (Piece::File(_), Some(page)) => page.memory.read_sum(to_usize(inside), part).map_err(|_| broken)?,
                (Piece::File(index), None) => {
                    let file = self.files.get_mut(index).ok_or(broken)?;
                    let Source::Reader(reader) = &mut file.source else { return Err(broken) };
                    let offset = saturating::add(file.offset, at.since(file.start));
                    read_all(reader, offset, part).map_err(|(got, e)| Obstacle::Ended(at + got as u64, e))?;
                    Sum::of(part)
                }
            };
            sum += part_sum.at(done);
            done = done.saturating_add(len);
            rest = tail;
        }
        Ok(sum)
    }

    /// Everything before `to` is acknowledged.
    #[inline]
    pub fn acknowledge(&mut self, pages: &mut Pages<'_, H::Memory>, to: Pos) {
        let to = to.earlier(self.end);
        if to <= self.una {
            return;
        }
        self.ring.consume(self.in_ring(to));
        self.una = to;
        // The page may be given back now, and another take its place.
        self.recent = self.recent.filter(|recent| to < recent.end);
        for file in &mut self.files {
            give_back(file, pages, to);
        }
    }

    /// The stream ends at `pos`, where a file ended or failed. What is queued behind is dropped.
    pub fn fail(&mut self, pages: &mut Pages<'_, H::Memory>, pos: Pos, error: Error) {
        if pos >= self.end {
            return;
        }
        self.recent = None;
        let pos = pos.later(self.una);
        self.ring.truncate(self.in_ring(pos));
        for file in &mut self.files {
            if file.end > pos {
                file.error = file.error.or(Some(error));
                file.start = file.start.earlier(pos);
                file.end = pos;
                give_back(file, pages, self.una);
            }
        }
        self.end = pos;
    }

    /// Ends a file where `sent` ends, if it goes farther, with [`Error::Cancelled`]; what is queued behind is dropped.
    /// `false`: no such file.
    pub fn cancel(&mut self, pages: &mut Pages<'_, H::Memory>, ticket: Ticket, sent: Pos) -> bool {
        let Some(file) = self.files.iter().find(|f| f.ticket == ticket) else { return false };
        if file.end > sent {
            let at = file.start.later(sent);
            self.fail(pages, at, Error::Cancelled);
        }
        true
    }

    /// The connection is gone: nothing is sent again. Pages that frames carry come back when those are done.
    pub fn abort(&mut self, pages: &mut Pages<'_, H::Memory>, error: Error) {
        let una = self.una;
        self.recent = None;
        for file in &mut self.files {
            if file.end > una {
                file.error = file.error.or(Some(error));
                // What was acknowledged is what lies before `una`.
                file.start = file.start.earlier(una);
                file.end = una;
            }
            give_back(file, pages, Pos::DATA + u64::MAX.wrapping_shr(1));
        }
        self.ring.clear();
        self.end = una;
    }

    /// A page of this connection came back from the NIC.
    pub fn page_back(&mut self, page: Page<H::Memory>) {
        if let Some(file) = self.files.iter_mut().find(|f| f.ticket.0 == page.ticket) {
            file.pages.out = file.pages.out.saturating_sub(1);
            release(&mut file.source, &page);
        }
    }

    /// Whether any page is out.
    pub fn has_pages(&self) -> bool {
        self.files.iter().any(|f| f.pages.out > 0)
    }

    /// How far a file has come; `None`: no such file.
    pub fn file(&self, ticket: Ticket) -> Option<FileState> {
        let file = self.files.iter().find(|f| f.ticket == ticket)?;
        let done = self.una >= file.end && file.pages.out == 0;
        let result = done.then(|| file.error.map_or(Ok(()), Err));
        Some(FileState { acknowledged: self.una.earlier(file.end).since(file.start), result })
    }

    /// Whether a file's result can be taken.
    pub fn any_file_done(&self) -> bool {
        self.files.iter().any(|f| self.una >= f.end && f.pages.out == 0)
    }

    /// Takes a file that is done out of the queue; its source comes back. `None`: no such file, or it goes on.
    pub fn take_file(&mut self, ticket: Ticket) -> Option<SourceOf<H>> {
        let una = self.una;
        let index = self.files.iter().position(|f| f.ticket == ticket && una >= f.end && f.pages.out == 0)?;
        // At most four files: taking one out moves three.
        Some(self.files.remove(index).source)
    }

    /// Forgets files that are done and that nobody will ask for.
    pub fn forget_done_files(&mut self) {
        let una = self.una;
        self.files.retain(|f| f.kept || una < f.end || f.pages.out > 0);
    }

    /// Says whether somebody will take a file's result.
    pub fn keep_file(&mut self, ticket: Ticket, kept: bool) {
        if let Some(file) = self.files.iter_mut().find(|f| f.ticket == ticket) {
            file.kept = kept;
        }
    }

    /// Whether something of it is still wanted when its connection is over: a frame carries a lent page, or the result of
    /// a file will be taken.
    #[inline(never)]
    pub fn is_held(&self) -> bool {
        self.has_pages() || self.files.iter().any(|f| f.kept)
    }
}

/// Gives back the pages of `file` that end before `una` and that no frame carries.
fn give_back<H: Host>(file: &mut File<H>, pages: &mut Pages<'_, H::Memory>, una: Pos) {
    if file.pages.out == 0 {
        return;
    }
    let (list, source) = (&mut file.pages, &mut file.source);
    let mut back: u16 = 0;
    // A page that goes beyond a file's end, because the file was cut short, is finished with at that end.
    let una = if una >= file.end { Pos::DATA + u64::MAX.wrapping_shr(1) } else { una };
    pages.finish(list, una, |page| {
        back = back.saturating_add(1);
        release(source, &page);
    });
    list.out = list.out.saturating_sub(back);
}

fn release<M: Memory, R, P: Pager<Memory = M>>(source: &mut Source<M, R, P>, page: &Page<M>) {
    if let Source::Pager(pager) = source {
        pager.release(page.offset, &page.memory);
    }
}

/// Reads until `buf` is full. The error tells how many bytes were had.
fn read_all<R: Reader>(reader: &mut R, offset: u64, buf: &mut [u8]) -> core::result::Result<(), (usize, Error)> {
    let mut done = 0usize;
    // Each turn takes at least one byte, or ends.
    while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let asked = rest.len();
        match reader.read(saturating::add(offset, done as u64), rest) {
            Ok(0) => return Err((done, Error::EndOfFile)),
            Ok(got) => done = done.saturating_add(got.min(asked)),
            Err(e) => return Err((done, Error::Host(e))),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
