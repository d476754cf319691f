//! Mappings that are governed: what a governor outside of the program does for it, in virtual time.

use filemap_core::address::advice::{AdviceFlag, ReadHint};
use filemap_core::address::mapping::Mapping;
use filemap_core::decision::Log;
use filemap_core::governor::{Bounds, Costs, Pages, State, Touch};
use filemap_core::page_cache::PageCache;
use filemap_core::units::{PageCount, PageIndex};

use crate::open::OpenFile;
use crate::profile::Profile;
use crate::task::Task;

/// Bytes of the largest window.
const LARGEST_WINDOW_BYTES: u64 = 16 << 20;

/// Bytes that one call asks for at the most: the kernel cuts a longer one.
const CALL_BYTES: u64 = 512 << 10;

/// What is known of one file.
#[derive(Clone, Debug)]
pub struct Governor {
    state: State,
    /// The limit of the cache.
    limit: Option<PageCount>,
}

impl Governor {
    /// Knows nothing yet of a file with pages of `page_size` bytes.
    pub fn new(profile: &Profile, page_size: u64, limit: Option<PageCount>) -> Governor {
        let state = State::new(LARGEST_WINDOW_BYTES / page_size, costs(profile, page_size));
        Governor { state, limit }
    }

    /// After a fault of the task on a page of `open`, through a mapping of `pages`: asks for what
    /// the policy says.
    pub fn fault<C: PageCache, L: Log>(
        &mut self,
        (index, touch): (PageIndex, Touch),
        pages: Pages,
        open: &mut OpenFile,
        task: &mut Task<'_, '_, C, L>,
    ) {
        let bounds = Bounds { mapping: pages, file_pages: open.limits.file_pages.0 };
        let is_short = self.limit.is_some_and(|limit| limit < open.limits.file_pages);
        self.state.set_memory_short(is_short);
        self.state.set_thread(task.world.task as u64);
        let reads = self.state.fault(index.0, touch, bounds);
        // It reads through an open file of its own, which the program's advice does not change.
        let most = open.limits.io_pages.max(open.device_ra_pages);
        let call = PageCount(CALL_BYTES / open.limits.arch.page_size);
        for pages in reads.pieces(most.min(call).0) {
            task.govern(PageIndex(pages.first), PageCount(pages.count()), open);
        }
    }
}

/// Governs a mapping from its beginning: it is advised RANDOM. Returns its pages of the file.
pub fn advise(mapping: &mut Mapping) -> Pages {
    let (first, end) = (mapping.whole.pgoff, mapping.whole.end());
    mapping.advise(first, end, AdviceFlag::Read(ReadHint::Random));
    Pages { first: first.0, end: end.0 }
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
