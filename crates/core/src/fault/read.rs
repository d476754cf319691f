//! One `read(2)`, as a state machine without I/O.

use super::step::Step;
use crate::cache::{FileCache, Folio};
use crate::decision::{Cause, Decision, Log};
use crate::readahead::{Limits, ReadaheadState, Request, Window, marked, on_demand};
use crate::units::{Order, PageCount, PageIndex};

/// The state that a step of a read uses. The caller owns it between steps.
#[derive(Debug)]
pub struct ReadView<'a, C, L> {
    /// Bounds of readahead.
    pub limits: &'a Limits,
    /// Readahead state of the open file.
    pub ra: &'a mut ReadaheadState,
    /// The page cache of the file.
    pub cache: &'a mut C,
    /// The decision log.
    pub log: &'a mut L,
}

/// One `read(2)`. [`ReadCall::step`] is called until it returns `None`; it never asks for a lock.
///
/// Mirrors `filemap_read` and `filemap_get_pages`, 6.12 and 6.18. Test: `tests/read.rs`.
#[derive(Debug)]
pub struct ReadCall {
    /// Next page to copy to the user.
    next: PageIndex,
    /// The page after the last one requested, even past the end of the file.
    request_end: PageIndex,
    /// The page after the last one requested inside the file.
    end: PageIndex,
    /// The byte after the last one read.
    end_byte: u64,
    /// Nothing was copied yet.
    is_first: bool,
    /// The window that [`Step::Read`] asks for.
    window: Option<Window>,
    state: ReadState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadState {
    Look,
    /// Readahead for an empty batch is done.
    Missed,
    /// Copy the folios from `next` up to this page.
    Copy(PageIndex),
}

impl ReadCall {
    /// A read of `bytes` bytes, at least 1, at byte `offset` of a file of `file_bytes` bytes.
    pub fn new(offset: u64, bytes: u64, file_bytes: u64, limits: &Limits) -> ReadCall {
        let page_size = limits.arch.page_size;
        let end_byte = (offset + bytes).min(file_bytes).max(offset);
        let next = PageIndex(offset / page_size);
        let end = PageIndex(end_byte.div_ceil(page_size)).max(next);
        let asked_end = PageIndex((offset + bytes).div_ceil(page_size));
        let whole = if limits.rules.reads_whole_blocks { limits.min_folio } else { Order(0) };
        ReadCall {
            next,
            request_end: asked_end.align_up(whole),
            end,
            end_byte,
            is_first: true,
            window: None,
            state: ReadState::Look,
        }
    }

    /// Next page to copy to the user.
    pub fn position(&self) -> PageIndex {
        self.next
    }

    /// The window that [`Step::Read`] asks for.
    ///
    /// # Panics
    /// If there was no such step yet.
    pub fn window(&self) -> &Window {
        self.window.as_ref().expect("a miss or a mark made it")
    }

    /// Continues until the caller has to act. [`Step::Done`] is never returned.
    pub fn step<C: FileCache, L: Log>(&mut self, view: &mut ReadView<'_, C, L>) -> Option<Step> {
        // No other task runs within a step, and copying does not change these folios.
        let mut ready_end = self.next;
        loop {
            match self.state {
                ReadState::Look | ReadState::Missed if self.next >= self.end => {
                    view.ra.previous_end = Some(self.end_byte);
                    return None;
                }
                ReadState::Look => {
                    if ready_end <= self.next {
                        ready_end = view.cache.ready_end(self.next, self.end);
                    }
                    let batches_end = self.ready_batches(ready_end, view);
                    if batches_end > self.next {
                        self.copy(batches_end, view);
                        continue;
                    }
                    let Some(batch) = self.batch(view.limits, view.cache) else {
                        return Some(self.miss(view));
                    };
                    self.state = ReadState::Copy(batch.last.end());
                    if let Some(step) = self.hit(batch.last, view) {
                        return Some(step);
                    }
                }
                ReadState::Missed => match self.batch(view.limits, view.cache) {
                    None => return Some(Step::ReadPage(self.next)),
                    Some(_) => self.state = ReadState::Look,
                },
                ReadState::Copy(end) => {
                    let last = view.cache.folio(end - PageCount(1));
                    if last.is_some_and(|folio| folio.locked) {
                        view.log.record(Decision::Waited { index: end - PageCount(1) });
                        return Some(Step::Wait(end - PageCount(1)));
                    }
                    self.copy(end, view);
                    self.state = ReadState::Look;
                }
            }
        }
    }

    /// The end of the batches from here on without a marked or locked folio, given that none is
    /// before `ready_end`. No rule decides anything between these batches.
    fn ready_batches<C: FileCache, L>(
        &self,
        ready_end: PageIndex,
        view: &ReadView<'_, C, L>,
    ) -> PageIndex {
        if ready_end == self.end {
            return self.end;
        }
        let batch = u64::from(view.limits.rules.read_batch_folios);
        let plain = view.cache.plain_end(self.next, self.end) - self.next;
        self.next + PageCount(plain.0 / batch * batch)
    }

    /// The last folio of the next batch: cached folios up to the first marked or locked one.
    fn batch(&self, limits: &Limits, cache: &impl FileCache) -> Option<Batch> {
        let mut next = self.next;
        let mut last = None;
        let mut left = u64::from(limits.rules.read_batch_folios);
        while left > 0 && next < self.end {
            let plain_end = cache.plain_end(next, self.end.min(next + PageCount(left)));
            if plain_end > next {
                left -= (plain_end - next).0;
                next = plain_end;
                let (head, order) = (plain_end - PageCount(1), Order(0));
                last = Some(Folio { head, order, locked: false, marked: false });
                continue;
            }
            let Some(folio) = cache.folio(next) else { break };
            left -= 1;
            next = folio.end();
            last = Some(folio);
            if folio.locked || folio.marked {
                break;
            }
        }
        last.map(|last| Batch { last })
    }

    /// The readahead request for the rest of the read, from `index` on.
    fn request(&self, cause: Cause, index: PageIndex, limits: &Limits) -> Request {
        Request { cause, index, pages: self.request_end - index, last: limits.last_page() }
    }

    fn miss<C: FileCache, L: Log>(&mut self, view: &mut ReadView<'_, C, L>) -> Step {
        self.state = ReadState::Missed;
        let ReadView { limits, ra, cache, log } = view;
        let request = self.request(Cause::ReadStream, self.next, limits);
        log.record(ra.entered_decision(&request));
        self.window = Some(on_demand::on_miss(request, limits, ra, *cache));
        Step::Read
    }

    fn hit<C: FileCache, L: Log>(
        &mut self,
        folio: Folio,
        view: &mut ReadView<'_, C, L>,
    ) -> Option<Step> {
        if !folio.marked || view.limits.ra_pages == PageCount(0) {
            return None;
        }
        let ReadView { limits, ra, cache, log } = view;
        let request = self.request(Cause::AsyncRead, folio.head, limits);
        log.record(ra.entered_decision(&request));
        let window = marked::next_window(request, folio, limits, ra, *cache);
        if window.is_none() {
            log.record(Decision::NothingAbsent { index: folio.head });
            return None;
        }
        self.window = window;
        Some(Step::Read)
    }

    /// Marks the copied folios accessed, except the first one if the previous read ended in it.
    fn copy<C: FileCache, L>(&mut self, end: PageIndex, view: &mut ReadView<'_, C, L>) {
        let page_size = view.limits.arch.page_size;
        let (first, end) = (self.next, end.min(self.end));
        if self.is_first {
            let Some(folio) = view.cache.folio(first) else { return };
            let again = view.ra.previous_end.filter(|&end| end > 0).is_some_and(|end| {
                let page = PageIndex((end - 1) / page_size);
                folio.head <= page && page < folio.end()
            });
            if !again {
                view.cache.mark_accessed(first);
            }
            self.is_first = false;
            self.next = folio.end().min(end);
        }
        self.next = view.cache.mark_accessed_until(self.next, end);
        if view.limits.rules.read_notes_each_folio && self.next > first {
            view.ra.previous_end = Some(self.end_byte.min(self.next.0 * page_size));
        }
    }
}

struct Batch {
    /// Its last folio.
    last: Folio,
}
