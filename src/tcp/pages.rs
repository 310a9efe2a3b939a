//! Memory that is lent to NICs: pages of files being sent. A page is given back when its bytes are acknowledged *and*
//! every frame that carried them is done, exactly once (design §3, "NIC").

use super::seq::Pos;
use crate::storage::host::{Memory, Token};

/// One page, or a free place for one.
#[derive(Debug)]
pub struct PageSlot<M>(Option<Page<M>>);

impl<M> PageSlot<M> {
    /// A free place.
    pub const EMPTY: PageSlot<M> = PageSlot(None);
}

impl<M> Default for PageSlot<M> {
    fn default() -> Self {
        PageSlot::EMPTY
    }
}

/// A lent page.
#[derive(Debug)]
pub struct Page<M> {
    /// What was lent.
    pub memory: M,
    /// Where in the stream its first byte stands.
    pub start: Pos,
    /// Its length in bytes.
    pub len: u64,
    /// Offset in the file for which it was lent.
    pub offset: u64,
    /// Connection it belongs to.
    pub owner: u16,
    /// File of that connection it belongs to.
    pub ticket: u32,
    /// Frames that carry bytes of it and are not done.
    tokens: u32,
    /// Nothing of it will be sent again.
    finished: bool,
    next: PageId,
}

/// Names a page; [`PageId::NONE`] names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageId(u16);

impl PageId {
    /// No page.
    pub const NONE: PageId = PageId(u16::MAX);
}

/// Marks tokens of TCP among those of other layers.
const TAG: u32 = 1 << 30;
const PAGE_BITS: u32 = 15;
const PAGE_MASK: u32 = (1 << PAGE_BITS) - 1;

/// Pages of one file that are in use, in order of their positions.
#[derive(Clone, Copy, Debug)]
pub struct PageList {
    head: PageId,
    tail: PageId,
    /// Pages not yet given back, whether in the list or only waiting for tokens.
    pub out: u16,
}

impl PageList {
    /// No pages.
    pub const EMPTY: PageList = PageList { head: PageId::NONE, tail: PageId::NONE, out: 0 };
}

/// All pages of all connections.
#[derive(Debug)]
pub struct Pages<'a, M> {
    slots: &'a mut [PageSlot<M>],
    used: usize,
    /// Where to look for a free place first: behind the one found last.
    cursor: usize,
    /// A place has become free.
    returned: bool,
}

impl<'a, M: Memory> Pages<'a, M> {
    /// Manages `slots`; 32,766 are used at most.
    pub fn new(slots: &'a mut [PageSlot<M>]) -> Self {
        let most = slots.len().min(PAGE_MASK.saturating_sub(1) as usize);
        Pages { slots: slots.get_mut(..most).unwrap_or_default(), used: 0, cursor: 0, returned: false }
    }

    /// The page named `id`.
    pub fn get(&self, id: PageId) -> Option<&Page<M>> {
        self.slots.get(usize::from(id.0))?.0.as_ref()
    }

    fn get_mut(&mut self, id: PageId) -> Option<&mut Page<M>> {
        self.slots.get_mut(usize::from(id.0))?.0.as_mut()
    }

    fn take(&mut self, id: PageId) -> Option<Page<M>> {
        let page = self.slots.get_mut(usize::from(id.0))?.0.take()?;
        self.used = self.used.saturating_sub(1);
        self.returned = true;
        Some(page)
    }

    /// Whether a place has become free since the last call.
    pub fn take_returned(&mut self) -> bool {
        core::mem::take(&mut self.returned)
    }

    /// Whether any page is in use.
    pub fn any(&self) -> bool {
        self.used > 0
    }

    /// Whether another page can be taken in.
    pub fn has_room(&self) -> bool {
        self.used < self.slots.len()
    }

    /// Adds a page behind the others of `list`. `false` when there is no room.
    #[expect(clippy::too_many_arguments, reason = "a page is made of them, and nobody else makes pages")]
    pub fn add(
        &mut self,
        list: &mut PageList,
        memory: M,
        start: Pos,
        len: u64,
        offset: u64,
        owner: u16,
        ticket: u32,
    ) -> bool {
        let (low, high) = self.slots.split_at(self.cursor.min(self.slots.len()));
        let free = |slots: &[PageSlot<M>]| slots.iter().position(|slot| slot.0.is_none());
        let found = free(high).map(|at| at.saturating_add(low.len())).or_else(|| free(low));
        let Some(index) = found else { return false };
        let Some(id) = u16::try_from(index).ok().map(PageId) else { return false };
        let page = Page { memory, start, len, offset, owner, ticket, tokens: 0, finished: false, next: PageId::NONE };
        if let Some(slot) = self.slots.get_mut(index) {
            slot.0 = Some(page);
        }
        self.cursor = index.saturating_add(1);
        self.used = self.used.saturating_add(1);
        match self.get_mut(list.tail) {
            Some(tail) => tail.next = id,
            None => list.head = id,
        }
        list.tail = id;
        list.out = list.out.saturating_add(1);
        true
    }

    /// The page of `list` that `pos` lies in.
    pub fn find(&self, list: &PageList, pos: Pos) -> Option<PageId> {
        let holds = |page: &Page<M>| page.start <= pos && pos.since(page.start) < page.len;
        // New data lies in the last page; what is sent again lies near the first.
        if self.get(list.tail).is_some_and(holds) {
            return Some(list.tail);
        }
        let mut id = list.head;
        for _ in 0..list.out {
            let page = self.get(id)?;
            if holds(page) {
                return Some(id);
            }
            id = page.next;
        }
        None
    }

    /// One beyond the last position of the pages of `list`.
    pub fn end(&self, list: &PageList) -> Option<Pos> {
        self.get(list.tail).map(|page| page.start + page.len)
    }

    /// The token of a frame that carries one or two pages.
    pub fn token(first: PageId, second: PageId) -> Token {
        let field = |id: PageId| if id == PageId::NONE { 0 } else { u32::from(id.0).wrapping_add(1) & PAGE_MASK };
        let (a, b) = (field(first), field(second));
        if a | b == 0 { Token(0) } else { Token(TAG | b << PAGE_BITS | a) }
    }

    /// Whether a token is one of these.
    pub fn is_ours(token: Token) -> bool {
        token.0 >> 30 == TAG >> 30
    }

    fn named(token: Token) -> [PageId; 2] {
        let id = |field: u32| match field.checked_sub(1) {
            Some(index) => PageId(index as u16),
            None => PageId::NONE,
        };
        if !Self::is_ours(token) {
            return [PageId::NONE; 2];
        }
        [id(token.0 & PAGE_MASK), id(token.0 >> PAGE_BITS & PAGE_MASK)]
    }

    /// A frame that carries the token's pages is with a NIC.
    pub fn lend(&mut self, token: Token) {
        for id in Self::named(token) {
            if let Some(page) = self.get_mut(id) {
                page.tokens = page.tokens.saturating_add(1);
            }
        }
    }

    /// A frame is done: tells `each` the pages that are to be given back now.
    pub fn done(&mut self, token: Token, mut each: impl FnMut(Page<M>)) {
        for id in Self::named(token) {
            let Some(page) = self.get_mut(id) else { continue };
            page.tokens = page.tokens.saturating_sub(1);
            if page.tokens == 0
                && page.finished
                && let Some(page) = self.take(id)
            {
                each(page);
            }
        }
    }

    /// Finishes with the pages of `list` that end at or before `una`; tells `each` those that are to be given back now.
    /// The others are when their last frame is done.
    pub fn finish(&mut self, list: &mut PageList, una: Pos, mut each: impl FnMut(Page<M>)) {
        for _ in 0..list.out {
            let id = list.head;
            let Some(page) = self.get_mut(id) else { break };
            if una < page.start + page.len {
                break;
            }
            let next = page.next;
            page.finished = true;
            list.head = next;
            if next == PageId::NONE {
                list.tail = PageId::NONE;
            }
            if page.tokens == 0
                && let Some(page) = self.take(id)
            {
                each(page);
            }
        }
    }
}
