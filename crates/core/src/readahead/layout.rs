//! Laying out a window as folios.

use std::borrow::Borrow;
use std::ops::Range;

use super::forced::CHUNK_BYTES;
use super::{Limits, ReadaheadState, Window};
use crate::cache::{FileCache, FolioRun};
use crate::decision::{Decision, Log};
use crate::rules::OrderGrowth;
use crate::units::{Order, PageCount, PageIndex};

/// The layout of one window, run by run. Each run is added before the next is requested.
///
/// Mirrors `page_cache_ra_order`, `do_page_cache_ra` and `page_cache_ra_unbounded`, 6.1, 6.12,
/// 6.18 and 7.2. Test: `tests/layout.rs`.
#[derive(Debug)]
pub struct Layout<W> {
    window: W,
    next: PageIndex,
    fallback_reads_remainder: bool,
    marks_file_end: bool,
    two_page_folios: bool,
    early_marks_count: bool,
    /// Minimum folio order (`mapping_min_folio_order`).
    smallest: Order,
    /// Forced readahead is laid out in chunks of this size.
    chunk: PageCount,
    /// Pages of a forced window in chunks started so far.
    begun: PageCount,
    stage: LayoutStage,
}

#[derive(Debug)]
enum LayoutStage {
    /// In folios of at most this order, up to this page; the folio that contains `mark` gets the
    /// mark.
    Folios {
        order: Order,
        end: PageIndex,
        mark: Option<PageIndex>,
    },
    /// In base pages, skipping cached ones.
    BasePages {
        end: PageIndex,
        mark: Option<PageIndex>,
    },
    Done,
}

impl<W: Borrow<Window>> Layout<W> {
    /// Starts the layout of `window`, and updates `ra` for the rest of the stream. A layout that is
    /// resumed later has to own its window.
    pub fn new(
        window: W,
        limits: &Limits,
        ra: &mut ReadaheadState,
        log: &mut impl Log,
    ) -> Layout<W> {
        let Window { start, size, async_size, order, base_pages, last, .. } = *window.borrow();
        log.record(Decision::Readahead {
            cause: window.borrow().cause,
            index: window.borrow().index,
            order,
            start,
            size,
            async_size,
            mmap_miss: ra.mmap_miss,
        });
        let rules = &limits.rules;
        let mut layout = Layout {
            window,
            next: start,
            fallback_reads_remainder: rules.fallback_reads_remainder,
            marks_file_end: rules.marks_file_end,
            two_page_folios: rules.two_page_folios,
            early_marks_count: rules.early_marks_count,
            smallest: limits.min_folio,
            chunk: PageCount((CHUNK_BYTES / limits.arch.page_size).max(1)),
            begun: PageCount(0),
            stage: LayoutStage::Done,
        };
        let largest = match limits.max_folio {
            _ if base_pages => None,
            Some(largest) if size >= smallest_window(limits) => Some(largest),
            Some(_) => None,
            None => {
                ra.order = Order(0);
                None
            }
        };
        match largest {
            None => layout.begin_base_pages(log),
            Some(largest) => {
                let mut order = order;
                if rules.order_growth == OrderGrowth::EveryWindow && order < largest {
                    order.0 += 2;
                }
                order = order.min(largest).min(Order::fitting(size)).max(limits.min_folio);
                if rules.order_growth == OrderGrowth::AsyncWindow {
                    ra.order = order;
                }
                if rules.windows_beyond_end_grow && start > last {
                    let beyond = start - (last + PageCount(1));
                    ra.size += beyond;
                    ra.async_size += beyond;
                }
                let end = (start + size).min(last + PageCount(1));
                let is_marked = rules.marks_file_end || end <= last;
                let mark = is_marked.then(|| start + size - async_size);
                layout.next = start.align_down(limits.min_folio);
                layout.stage = LayoutStage::Folios { order, end, mark };
            }
        }
        layout
    }

    /// The next folios to be added, or `None` when the window is complete.
    pub fn next(&mut self, cache: &impl FileCache, log: &mut impl Log) -> Option<FolioRun> {
        loop {
            match self.stage {
                LayoutStage::Done => return None,
                LayoutStage::Folios { end, .. } if self.next >= end => {
                    self.stage = LayoutStage::Done
                }
                LayoutStage::BasePages { end, .. } if self.next >= end => self.end_base_pages(log),
                LayoutStage::Folios { order, end, mark } => {
                    match self.folios(order, end, mark, cache) {
                        Some(run) => {
                            self.next = run.end();
                            return Some(run);
                        }
                        None => self.begin_base_pages(log),
                    }
                }
                LayoutStage::BasePages { end, mark } => {
                    let Range { start, end: stop } = cache.gap(self.next, end);
                    if start < end {
                        self.next = stop;
                        let marked = mark.filter(|&mark| start <= mark && mark < stop);
                        let order = self.smallest;
                        let folios = (stop - start).0 >> order.0;
                        return Some(FolioRun { start, order, folios, marked });
                    }
                    self.next = end;
                }
            }
        }
    }

    /// The page that is laid out next.
    pub fn position(&self) -> PageIndex {
        self.next
    }

    /// Goes back to page `to`: runs returned from there on were not added, and others may have
    /// added pages since.
    pub fn rewind(&mut self, to: PageIndex) {
        self.next = to;
    }

    /// The same layout with an owned window, to be resumed later.
    pub fn into_owned(self) -> Layout<Window> {
        Layout {
            window: *self.window.borrow(),
            next: self.next,
            fallback_reads_remainder: self.fallback_reads_remainder,
            marks_file_end: self.marks_file_end,
            two_page_folios: self.two_page_folios,
            early_marks_count: self.early_marks_count,
            smallest: self.smallest,
            chunk: self.chunk,
            begun: self.begun,
            stage: self.stage,
        }
    }

    /// As many folios of one order as fit from here; `None` if a cached page is in the way. A folio
    /// of the smallest order may extend past the window and the file.
    fn folios(
        &self,
        largest: Order,
        end: PageIndex,
        mark: Option<PageIndex>,
        cache: &impl FileCache,
    ) -> Option<FolioRun> {
        let start = self.next;
        let room = end - start;
        let mut order = largest.min(Order::alignment_of(start)).min(Order::fitting(room));
        order = order.max(self.smallest);
        if order == Order(1) && !self.two_page_folios {
            order = Order(0);
        }
        let wanted = if order == largest { (room.0 >> order.0).max(1) } else { 1 };
        let stop = cache.next_present(start, start + PageCount(wanted << order.0));
        let folios = (stop - start).0 >> order.0;
        if folios == 0 {
            return None;
        }
        let end = start + PageCount(folios << order.0);
        let marked = mark.filter(|&mark| start <= mark && mark < end);
        let marked = marked.map(|mark| mark.align_down(order));
        Some(FolioRun { start, order, folios, marked })
    }

    // Out of line: called once per window, and inlining would cost registers in the loop.
    #[inline(never)]
    fn begin_base_pages(&mut self, log: &mut impl Log) {
        let Window { cause, start, size, async_size, last, .. } = *self.window.borrow();
        let first = self.next;
        // The kernel computes this from the original start, unsigned.
        let is_before = self.fallback_reads_remainder && first < start;
        if first > last || is_before && !cause.is_forced() {
            self.stage = LayoutStage::Done;
            return;
        }
        let laid_out = if cause.is_forced() {
            self.begun
        } else if self.fallback_reads_remainder {
            first - start
        } else {
            PageCount(0)
        };
        let mut left = size - laid_out;
        if cause.is_forced() {
            left = left.min(self.chunk);
            self.begun += left;
        }
        let size = left.min(last - first + PageCount(1));
        let end = first + size;
        let async_size = if self.marks_file_end || end <= last { async_size } else { PageCount(0) };
        log.record(Decision::BasePages { start: first, size, async_size });
        let has_mark = async_size <= size || self.early_marks_count;
        let mark = has_mark.then(|| self.mark_before(end, async_size));
        self.next = first.align_down(self.smallest);
        self.stage = LayoutStage::BasePages { end: end.align_up(self.smallest), mark };
    }

    /// The page of the mark: `async_size` before `end`, rounded up to a folio. It is unsigned: a
    /// mark before the start of the file wraps far past its end, or rounds up to its first page.
    fn mark_before(&self, end: PageIndex, async_size: PageCount) -> PageIndex {
        let mark = end.0.wrapping_sub(async_size.0);
        PageIndex((mark.wrapping_sub(1) | (self.smallest.pages() - 1)).wrapping_add(1))
    }

    /// Continues with the next chunk of forced readahead, if any.
    #[inline(never)]
    fn end_base_pages(&mut self, log: &mut impl Log) {
        self.stage = LayoutStage::Done;
        let Window { cause, size, .. } = *self.window.borrow();
        if cause.is_forced() && self.begun < size {
            self.begin_base_pages(log);
        }
    }
}

/// Smaller windows are laid out in the smallest folios. Before 6.18 that is below 4 pages or one
/// block; since then there is no minimum.
fn smallest_window(limits: &Limits) -> PageCount {
    match limits.rules.large_folio_min_window {
        PageCount(1) => PageCount(1),
        pages => pages.max(PageCount(limits.min_folio.pages())),
    }
}
