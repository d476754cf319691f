//! A mapping that is governed: what the preloaded library does for it, in virtual time.

use filemap_core::address::advice::{AdviceFlag, ReadHint};
use filemap_core::address::mapping::Mapping;
use filemap_core::decision::Log;
use filemap_core::governor::{Bounds, Costs, Pages, State, Touch};
use filemap_core::page_cache::PageCache;
use filemap_core::units::{PageCount, PageIndex};

use crate::open::OpenFile;
use crate::task::Task;

/// Bytes of the largest window.
const LARGEST_WINDOW_BYTES: u64 = 16 << 20;

/// Bytes that one call asks for at the most: the kernel cuts a longer one.
const CALL_BYTES: u64 = 512 << 10;

/// What is known of a governed mapping.
#[derive(Clone, Debug)]
pub struct Governed {
    state: State,
    pages: Pages,
}

impl Governed {
    /// Governs a mapping from its beginning: it is advised RANDOM.
    pub fn new(mapping: &mut Mapping, page_size: u64) -> Governed {
        let (first, end) = (mapping.whole.pgoff, mapping.whole.end());
        mapping.advise(first, end, AdviceFlag::Read(ReadHint::Random));
        let costs = Costs { fault_ns: 57_000, page_ns: 3_150 };
        let state = State::new(LARGEST_WINDOW_BYTES / page_size, costs);
        Governed { state, pages: Pages { first: first.0, end: end.0 } }
    }

    /// Behind a major fault on page `index` of `open`: asks for what the policy says.
    pub fn fault<C: PageCache, L: Log>(
        &mut self,
        index: PageIndex,
        open: &mut OpenFile,
        task: &mut Task<'_, '_, C, L>,
    ) {
        let bounds = Bounds { mapping: self.pages, file_pages: open.limits.file_pages.0 };
        let reads = self.state.fault(index.0, Touch::Major, bounds);
        // It reads through an open file of its own, which the program's advice does not change.
        let most = open.limits.io_pages.max(open.device_ra_pages);
        let call = PageCount(CALL_BYTES / open.limits.arch.page_size);
        for pages in reads.pieces(most.min(call).0) {
            task.govern(PageIndex(pages.first), PageCount(pages.count()), open);
        }
    }
}
