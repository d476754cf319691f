//! The readahead state of an open file, and requests and windows.

use super::rent::Rent;
use super::{Limits, bound, miss};
use crate::address::vma::Vma;
use crate::decision::{Cause, Decision, ReadaheadSnapshot};
use crate::series::{Series, Switch};
use crate::units::{Order, PageCount, PageIndex};

/// The readahead state of an open file (`struct file_ra_state`).
// The field order keeps `mmap_miss` from starting four aligned bytes: it would be loaded together
// with its neighbours right after being stored, which stalls store forwarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ReadaheadState {
    /// First page of the last window.
    pub start: PageIndex,
    /// Pages of the last window.
    pub size: PageCount,
    /// Pages of the last window after its mark.
    pub async_size: PageCount,
    /// The byte at which the last `read(2)` ended.
    pub previous_end: Option<u64>,
    /// Folio order of the stream.
    pub order: Order,
    /// POSIX_FADV_RANDOM is in effect (`FMODE_RANDOM`): on-demand readahead reads exactly what is
    /// requested.
    pub is_random: bool,
    /// The miss counter.
    pub mmap_miss: u16,
    /// Replaces `mmap_miss` with rent-or-buy.
    pub rent: Rent,
}

impl ReadaheadState {
    /// The state of a file that was just opened.
    pub const NEW: ReadaheadState = ReadaheadState {
        start: PageIndex(0),
        size: PageCount(0),
        async_size: PageCount(0),
        order: Order(0),
        mmap_miss: 0,
        rent: Rent::NEW,
        previous_end: None,
        is_random: false,
    };

    /// Counts `hits` hits in favour of windows.
    pub fn record_hits(&mut self, hits: u32, series: Series) {
        if !series.has(Switch::RentOrBuy) {
            self.mmap_miss = miss::after_hits(self.mmap_miss, hits);
        } else if hits > 0 {
            self.rent.record_hit();
        }
    }

    /// Whether a request at `index` continues where the last `read(2)` ended, or in the page after.
    pub(super) fn follows_read(&self, index: PageIndex, limits: &Limits) -> bool {
        self.previous_end.is_some_and(|end| {
            let previous = PageIndex(end / limits.arch.page_size);
            index >= previous && (index - previous).0 <= 1
        })
    }

    /// The page at which the stream expects its mark to be hit, in folios of `order`. It may be
    /// before the start of a stream that has moved.
    pub(super) fn due_mark(&self, order: Order) -> PageIndex {
        let mark = (self.start.0 + self.size.0).wrapping_sub(self.async_size.0);
        PageIndex(mark & !(order.pages() - 1))
    }

    /// The window that the state describes, for `request`, in folios of `order`.
    pub(super) fn window(&self, request: &Request, order: Order) -> Window {
        Window {
            cause: request.cause,
            index: request.index,
            start: self.start,
            size: self.size,
            async_size: self.async_size,
            order,
            base_pages: false,
            last: request.last,
        }
    }

    /// The log entry for entering readahead with this state.
    pub fn entered_decision(&self, request: &Request) -> Decision {
        let found = ReadaheadSnapshot {
            index: request.index,
            req: request.pages,
            order: self.order,
            size: self.size,
            async_size: self.async_size,
            mmap_miss: self.mmap_miss,
            previous_end: self.previous_end,
        };
        Decision::Entered { cause: request.cause, found }
    }
}

/// A request for readahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The cause.
    pub cause: Cause,
    /// The page that was accessed.
    pub index: PageIndex,
    /// Requested pages.
    pub pages: PageCount,
    /// The last page that may be read.
    pub last: PageIndex,
}

impl Request {
    /// The request of a fault on page `index`: a full readahead size.
    pub(super) fn for_fault(cause: Cause, index: PageIndex, vma: &Vma, limits: &Limits) -> Request {
        Request { cause, index, pages: limits.ra_pages, last: bound::last(vma, limits) }
    }
}

/// A window to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The cause.
    pub cause: Cause,
    /// The page that was accessed.
    pub index: PageIndex,
    /// First page.
    pub start: PageIndex,
    /// Pages, before they are clipped.
    pub size: PageCount,
    /// Pages after the mark.
    pub async_size: PageCount,
    /// Requested folio order.
    pub order: Order,
    /// Laid out in base pages, whatever the filesystem supports.
    pub base_pages: bool,
    /// The last page that may be read.
    pub last: PageIndex,
}
