//! Mappings that are governed: what a governor outside of the program does for it, in virtual time.

use filemap_core::address::advice::{AdviceFlag, ReadHint};
use filemap_core::address::mapping::Mapping;
use filemap_core::decision::Log;
use filemap_core::governor::{Bounds, Costs, Pages, State, Touch, Window};
use filemap_core::page_cache::PageCache;
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::program::Madvise;

use crate::open::OpenFile;
use crate::process::Area;
use crate::profile::Profile;
use crate::task::Task;

/// Bytes of the largest window.
const LARGEST_WINDOW_BYTES: u64 = 16 << 20;

/// Bytes that one call asks for at the most: the kernel cuts a longer one.
const CALL_BYTES: u64 = 512 << 10;

/// A mapping that is governed.
#[derive(Clone, Copy, Debug)]
pub struct Governed {
    /// Its pages of the file.
    pages: Pages,
    /// Its advice was restored, since the kernel's own readahead costs less.
    is_left: bool,
}

impl Governed {
    /// Governs a mapping from its beginning: it is advised RANDOM.
    pub fn advise(mapping: &mut Mapping) -> Governed {
        let (first, end) = (mapping.whole.pgoff, mapping.whole.end());
        mapping.advise(first, end, AdviceFlag::Read(ReadHint::Random));
        Governed { pages: Pages { first: first.0, end: end.0 }, is_left: false }
    }
}

/// What is known of one file.
#[derive(Clone, Debug)]
pub struct Governor {
    state: State,
    page_ns: u64,
    /// The limit of the cache.
    limit: Option<PageCount>,
}

impl Governor {
    /// Knows nothing yet of a file with pages of `page_size` bytes.
    pub fn new(profile: &Profile, page_size: u64, limit: Option<PageCount>) -> Governor {
        let costs = costs(profile, page_size);
        let state = State::new(LARGEST_WINDOW_BYTES / page_size, costs);
        Governor { state, page_ns: costs.page_ns, limit }
    }

    /// After a fault of the task on a page of `open` through `area`: asks for what the policy says,
    /// and restores the advice where that costs less.
    pub fn fault<C: PageCache, L: Log>(
        &mut self,
        (index, touch): (PageIndex, Touch),
        governed: &mut Governed,
        area: &mut Area,
        open: &mut OpenFile,
        task: &mut Task<'_, '_, C, L>,
    ) {
        let (first, end) = area.mapping.mapped_part(index);
        let mapping =
            Pages { first: governed.pages.first.max(first.0), end: governed.pages.end.min(end.0) };
        let bounds = Bounds { mapping, file_pages: open.limits.file_pages.0 };
        let is_short = self.limit.is_some_and(|limit| limit < open.limits.file_pages);
        self.state.set_memory_short(is_short);
        self.state.set_thread(task.world.task as u64);
        // What is to be left reads single pages until its advice is restored.
        let may_be_left = governed.is_left || !self.state.is_left_to_kernel();
        let window = Window { pages: open.device_ra_pages.0, page_ns: self.page_ns };
        self.state.set_window(if may_be_left { window } else { Window::NONE });
        let reads = self.state.fault(index.0, touch, bounds);
        // It reads through an open file of its own, which the program's advice does not change.
        let most = open.limits.io_pages.max(open.device_ra_pages);
        let call = PageCount(CALL_BYTES / open.limits.arch.page_size);
        for pages in reads.pieces(most.min(call).0) {
            task.govern(PageIndex(pages.first), PageCount(pages.count()), open);
        }
        if touch == Touch::Major && self.state.is_left_to_kernel() && !governed.is_left {
            let normal = Madvise::Flag(AdviceFlag::Read(ReadHint::Normal));
            task.madvise(area, normal, (PageCount(0), area.mapping.whole.pages), open);
            governed.is_left = true;
        }
    }
}

/// What reads cost on the machine of `profile`.
fn costs(profile: &Profile, page_size: u64) -> Costs {
    let Profile { device, cost, .. } = profile;
    let bytes_ns = u128::from(page_size) * 1_000_000_000 / u128::from(device.bandwidth_bytes);
    let transfer_ns = u64::try_from(bytes_ns).unwrap_or(u64::MAX);
    let page_ns = transfer_ns.saturating_add(device.segment_ns).saturating_add(cost.add_page_ns);
    let fault_ns = device.latency_ns.saturating_add(page_ns).saturating_add(cost.fault_ns);
    Costs { fault_ns, page_ns }
}
