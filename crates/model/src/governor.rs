//! The readahead governor in virtual time: it observes faults and issues readahead from outside the
//! program.

use filemap_core::address::advice::{AdviceFlag, ReadHint};
use filemap_core::address::mapping::FileMapping;
use filemap_core::governor::{Bounds, Costs, FilePolicy, KernelWindow, PageRange, TouchKind};
use filemap_core::page_cache::PageCache;
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::program::Madvise;

use crate::open::OpenFile;
use crate::process::MappedArea;
use crate::profile::Profile;
use crate::task::Task;

/// Largest window in bytes.
const MAX_WINDOW_BYTES: u64 = 16 << 20;

/// Maximum bytes per call; the kernel truncates longer requests.
const MAX_CALL_BYTES: u64 = 512 << 10;

/// A governed mapping.
#[derive(Clone, Copy, Debug)]
pub struct GovernedMapping {
    /// The file pages that it maps.
    pages: PageRange,
    /// The original advice was restored because the kernel's own readahead is cheaper.
    is_left_to_kernel: bool,
    /// The program itself has advised it MADV_RANDOM before the governor could: then no other
    /// advice is restored.
    is_random_by_program: bool,
    has_faulted: bool,
}

impl GovernedMapping {
    /// Starts governing a new mapping by advising it RANDOM, if the program has not done so.
    pub fn begin(mapping: &mut FileMapping, own: ReadHint) -> GovernedMapping {
        let (first, end) = (mapping.whole.pgoff, mapping.whole.end());
        mapping.advise(first, end, AdviceFlag::Read(ReadHint::Random));
        GovernedMapping {
            pages: PageRange { first: first.0, end: end.0 },
            is_left_to_kernel: false,
            is_random_by_program: own == ReadHint::Random,
            has_faulted: false,
        }
    }

    /// Whether it stays governed when the program gives `advice` to a part of it: `is_whole` says
    /// that this is all of it.
    pub fn stays_governed(&mut self, advice: Madvise, is_whole: bool) -> bool {
        match advice {
            Madvise::WillNeed | Madvise::DontNeed | Madvise::Cold | Madvise::PageOut => true,
            // The governor finds this advice there, or has given it itself.
            Madvise::Flag(AdviceFlag::Read(ReadHint::Random)) => {
                self.is_random_by_program |= is_whole && !self.has_faulted;
                true
            }
            _ => false,
        }
    }
}

/// The governor's state for one file.
#[derive(Clone, Debug)]
pub struct FileGovernor {
    state: FilePolicy,
    page_ns: u64,
    /// Page-cache limit.
    limit: Option<PageCount>,
}

impl FileGovernor {
    /// A governor for a file with pages of `page_size` bytes.
    pub fn new(profile: &Profile, page_size: u64, limit: Option<PageCount>) -> FileGovernor {
        let costs = costs(profile, page_size);
        let state = FilePolicy::new(MAX_WINDOW_BYTES / page_size, costs);
        FileGovernor { state, page_ns: costs.page_ns, limit }
    }

    /// Handles a fault on a page of `open` through `area`: reads the pages that the policy returns,
    /// or restores the advice if the kernel's own readahead is cheaper.
    pub fn on_fault<C: PageCache>(
        &mut self,
        (index, touch): (PageIndex, TouchKind),
        governed: &mut GovernedMapping,
        area: &mut MappedArea,
        open: &mut OpenFile,
        task: &mut Task<'_, '_, C>,
    ) {
        governed.has_faulted = true;
        let (first, end) = area.mapping.mapped_part(index);
        let mapping = PageRange {
            first: governed.pages.first.max(first.0),
            end: governed.pages.end.min(end.0),
        };
        let bounds = Bounds { mapping, file_pages: open.limits.file_pages.0 };
        let is_short = self.limit.is_some_and(|limit| limit < open.limits.file_pages);
        self.state.set_memory_short(is_short);
        self.state.set_thread(task.world.task as u64);
        // Until its advice is restored, the kernel reads single pages in the mapping.
        let may_be_left = governed.is_left_to_kernel
            || !governed.is_random_by_program && !self.state.is_left_to_kernel();
        let window = KernelWindow { pages: open.device_ra_pages.0, page_ns: self.page_ns };
        self.state.set_window(if may_be_left { window } else { KernelWindow::NONE });
        let reads = self.state.on_fault(index.0, touch, bounds);
        // The governor reads through its own open file, which the program's advice does not affect.
        let most = open.limits.io_pages.max(open.device_ra_pages);
        let call = PageCount(MAX_CALL_BYTES / open.limits.arch.page_size);
        for pages in reads.pieces(most.min(call).0) {
            task.read_ahead(PageIndex(pages.first), PageCount(pages.count()), open);
        }
        if touch == TouchKind::Major
            && self.state.is_left_to_kernel()
            && !governed.is_left_to_kernel
            && !governed.is_random_by_program
        {
            let normal = Madvise::Flag(AdviceFlag::Read(ReadHint::Normal));
            task.madvise(area, normal, (PageCount(0), area.mapping.whole.pages), open);
            governed.is_left_to_kernel = true;
        }
    }
}

/// Read costs of the machine of `profile`.
fn costs(profile: &Profile, page_size: u64) -> Costs {
    let Profile { device, cost, .. } = profile;
    let bytes_ns = u128::from(page_size) * 1_000_000_000 / u128::from(device.bandwidth_bytes);
    let transfer_ns = u64::try_from(bytes_ns).unwrap_or(u64::MAX);
    let page_ns = transfer_ns.saturating_add(device.segment_ns).saturating_add(cost.add_page_ns);
    let request_ns = device.latency_ns.saturating_add(device.request_ns);
    let fault_ns = request_ns.saturating_add(page_ns).saturating_add(cost.fault_ns);
    Costs { fault_ns, page_ns }
}
