//! The readahead policy for a file.

use crate::account::ReadBudget;
use crate::costs::{Costs, KernelWindow, TouchKind};
use crate::costs::{WindowComparison, WindowCost};
use crate::lengths::Overread;
use crate::lengths::RunLengths;
use crate::reads::ReadPlan;
use crate::reads::{Bounds, PageRange};
use crate::region::Regions;
use crate::region::{BuySize, Region};
use crate::stream::StreamTable;
use crate::stream::{Elements, Stream, StreamContext};
use crate::stride::RecentFaults;
use crate::stride::Stride;

/// Kernel windows up to this size are short.
const SHORT_WINDOW_PAGES: u64 = BuySize::Group.pages();

/// Maximum number of regions read before the program reaches them.
const MAX_AHEAD_REGIONS: u64 = 8;

/// The policy's state for one file, across all of its mappings.
#[derive(Clone, Debug)]
pub struct FilePolicy {
    largest_window: u64,
    thread: u64,
    is_memory_short: bool,
    /// Runs are followed by the file's touch histories, and no unit is bought.
    follows_only: bool,
    window: KernelWindow,
    comparison: WindowComparison,
    /// Number of faults that read a page that was not requested.
    faults: u64,
    /// Number of streams begun.
    streams_begun: u64,
    table: StreamTable,
    recent: RecentFaults,
    lengths: RunLengths,
    overread: Overread,
    regions: Regions,
    budget: ReadBudget,
}

impl FilePolicy {
    /// A new file. Streams and regions read at most `largest_window_pages` at a time; 0 disables
    /// the policy.
    #[must_use]
    pub fn new(largest_window_pages: u64, costs: Costs) -> FilePolicy {
        FilePolicy {
            largest_window: largest_window_pages,
            thread: 0,
            is_memory_short: false,
            follows_only: false,
            window: KernelWindow::NONE,
            comparison: WindowComparison::default(),
            faults: 0,
            streams_begun: 0,
            table: StreamTable::NEW,
            recent: RecentFaults::default(),
            lengths: RunLengths::NEW,
            overread: Overread::default(),
            regions: Regions::default(),
            budget: ReadBudget::new(costs),
        }
    }

    /// A file whose runs had these lengths before, and that is expected to be faulted on this
    /// often: runs are followed accordingly, and nothing else is read. The kernel's own windows of
    /// any size are the alternative.
    #[must_use]
    pub fn following(
        largest_window_pages: u64,
        costs: Costs,
        run_lengths: impl IntoIterator<Item = u64>,
        expected_faults: u64,
    ) -> FilePolicy {
        let mut policy = FilePolicy::new(largest_window_pages, costs);
        policy.follows_only = true;
        policy.comparison = WindowComparison::expecting(expected_faults);
        run_lengths.into_iter().for_each(|pages| policy.lengths.count(pages));
        policy
    }

    /// Number of streams begun, including single faults.
    #[must_use]
    pub const fn streams_begun(&self) -> u64 {
        self.streams_begun
    }

    /// Sets the read costs.
    pub const fn set_costs(&mut self, costs: Costs) {
        self.budget.set_costs(costs);
    }

    /// Sets the thread of the following faults. By default there is a single one.
    pub const fn set_thread(&mut self, thread: u64) {
        self.thread = thread;
    }

    /// Sets whether memory is short. If it is, only streams are read ahead, with windows limited to
    /// a small fraction of their length.
    pub const fn set_memory_short(&mut self, is_short: bool) {
        self.is_memory_short = is_short;
    }

    /// Sets the kernel's own window in the mapping of the following faults.
    pub const fn set_window(&mut self, window: KernelWindow) {
        self.window = window;
    }

    /// Whether the kernel's own windows are cheaper than single pages. If they are, the caller has
    /// to restore the advice of mappings with a known window, so that the kernel reads its windows.
    #[must_use]
    pub const fn is_left_to_kernel(&self) -> bool {
        self.comparison.is_lost()
    }

    /// Handles an access to `page` of the file. Returns the pages worth reading now, within
    /// `bounds`. Pages outside of the bounds are ignored.
    pub fn on_fault(&mut self, page: u64, touch: TouchKind, bounds: Bounds) -> ReadPlan {
        let inside = bounds.readable();
        let is_left = self.compares_windows() && self.comparison.is_lost();
        if !inside.contains(page) || self.largest_window == 0 || is_left {
            return ReadPlan::NONE;
        }
        let is_known = self.regions.update(page, |region| region.knows(page));
        // The kernel's window would have included a page that a stream requested too late.
        let is_late = |state: &mut FilePolicy| is_known && state.table.find_asking(page).is_some();
        if self.compares_windows() && touch == TouchKind::Major && (!is_known || is_late(self)) {
            let cost = self.kernel_window_cost(page, inside);
            let all_ns = inside.count().saturating_mul(self.window.page_ns);
            self.comparison.record_fault(cost, self.budget.fault_ns(), inside.count(), all_ns);
        }
        match (is_known, touch) {
            (true, _) => self.on_known_page(page, touch, inside),
            (false, TouchKind::Minor) => {
                self.add(PageRange { first: page, end: page + 1 });
                ReadPlan::NONE
            }
            (false, TouchKind::Major | TouchKind::Mapped) => self.on_miss(page, inside),
        }
    }

    /// Cost of an access to `page` with the kernel's own windows.
    fn kernel_window_cost(&mut self, page: u64, inside: PageRange) -> WindowCost {
        let number = self.comparison.number();
        let mut is_around =
            |page| self.regions.update(page, |region| region.is_around(page, number));
        if is_around(page) {
            return WindowCost::default();
        }
        // Right after a window the next one is already being read.
        let is_behind = page.checked_sub(1).is_some_and(is_around);
        let (first, fault_ns) = if is_behind {
            (page, 0)
        } else {
            (page.saturating_sub(self.window.pages / 2), self.budget.fault_ns())
        };
        let end = first.saturating_add(self.window.pages).min(inside.end);
        let fresh: u64 = by_region(PageRange { first: first.max(inside.first), end })
            .map(|part| self.regions.update(part.first, |region| region.add_around(part, number)))
            .sum();
        let ns = fresh.saturating_mul(self.window.page_ns).saturating_add(fault_ns);
        WindowCost { ns, pages: fresh }
    }

    /// Handles an access to a page that was requested or read before.
    fn on_known_page(&mut self, page: u64, touch: TouchKind, inside: PageRange) -> ReadPlan {
        let is_wait = touch == TouchKind::Major;
        if is_wait {
            self.on_wait(page);
        }
        if let Some(size) = self.regions.update(page, |region| region.use_bought(page)) {
            self.budget.count_use(size);
        }
        let mut reads = ReadPlan::NONE;
        let (table, mut around) = self.stream_context(inside, false);
        if let Some((stream, number)) = table.find_asking(page) {
            let elements = stream.on_known_element(number, is_wait, &mut around);
            add(stream, elements, &mut reads);
            self.record_reads(&reads);
        }
        let ahead = self.regions.update(page, |region| std::mem::take(&mut region.ahead));
        if ahead > 0 && !self.is_memory_short {
            self.buy_ahead(BuySize::Region.around(page).end, ahead * 2, inside, &mut reads);
        }
        reads
    }

    /// Records a wait for `page`. If waits are frequent, the requested pages were evicted, and the
    /// region starts over.
    fn on_wait(&mut self, page: u64) {
        self.budget.count_fault(self.thread);
        let fault_ns = self.budget.fault_ns();
        let price = self.budget.price_ns(BuySize::Region.pages());
        self.regions.update(page, |region| {
            region.count_fault(page);
            region.waits = region.waits.saturating_add(1);
            if u64::from(region.waits).saturating_mul(fault_ns) >= price {
                *region = Region::NEW;
                region.add(PageRange { first: page, end: page + 1 });
            }
        });
    }

    /// Handles a fault that read a page that was not requested.
    fn on_miss(&mut self, page: u64, inside: PageRange) -> ReadPlan {
        self.faults = self.faults.saturating_add(1);
        self.budget.count_fault(self.thread);
        self.regions.update(page, |region| {
            region.add(PageRange { first: page, end: page + 1 });
            region.count_fault(page);
        });
        let mut reads = self.follow_stream(page, inside);
        self.record_reads(&reads);
        if !self.is_memory_short && !self.compares_windows() && !self.follows_only {
            self.buy(page, inside, &mut reads);
        }
        reads
    }

    /// Whether the kernel's windows are short: they are then the alternative to single pages, and
    /// nothing is read ahead in units.
    const fn has_short_window(&self) -> bool {
        self.window.pages > 0 && self.window.pages <= SHORT_WINDOW_PAGES
    }

    /// Whether single pages are compared with the kernel's windows.
    const fn compares_windows(&self) -> bool {
        self.has_short_window() || self.follows_only && self.window.pages > 0
    }

    /// Returns the request of the stream that `page` continues or starts.
    fn follow_stream(&mut self, page: u64, inside: PageRange) -> ReadPlan {
        let is_direct = self.recent.thread(self.thread).record_fault(page);
        let mut reads = ReadPlan::NONE;
        let (table, mut around) = self.stream_context(inside, is_direct);
        if let Some((stream, meeting)) = table.match_fault(page) {
            let elements = stream.on_miss(meeting, &mut around);
            add(stream, elements, &mut reads);
            return reads;
        }
        let recent = self.recent.thread(self.thread);
        let step = recent.stride(page).unwrap_or(Stride::FORWARD);
        recent.record_unmatched(page);
        self.streams_begun = self.streams_begun.saturating_add(1);
        let (table, mut around) = self.stream_context(inside, is_direct);
        for stream in table.streams() {
            stream.record_if_over(around.begun, around.lengths, around.overread);
        }
        let mut stream = Stream::new(page, step);
        let elements = stream.ask_next_window(&mut around);
        add(&stream, elements, &mut reads);
        table.insert(stream);
        reads
    }

    /// The streams and the context in which they answer a fault.
    fn stream_context(
        &mut self,
        inside: PageRange,
        is_direct: bool,
    ) -> (&mut StreamTable, StreamContext<'_>) {
        let around = StreamContext {
            inside,
            largest: self.largest_window,
            lengths: &mut self.lengths,
            overread: &mut self.overread,
            is_memory_short: self.is_memory_short,
            fault_number: self.faults,
            begun: self.streams_begun,
            is_direct,
        };
        (&mut self.table, around)
    }

    /// Reads the unit around `page` if it is due.
    fn buy(&mut self, page: u64, inside: PageRange, reads: &mut ReadPlan) {
        let is_streaming = reads.pages() > 0;
        let largest = self.largest_window;
        for size in BuySize::ALL.into_iter().filter(|size| size.pages() <= largest) {
            if is_streaming && size != BuySize::Region {
                continue;
            }
            let all = size.around(page);
            let pages =
                PageRange { first: all.first.max(inside.first), end: all.end.min(inside.end) };
            let (faults, rest) = self
                .regions
                .update(page, |region| (region.faults(size, page), region.unknown(pages)));
            let open = self.regions.unbought();
            let is_next = size == BuySize::Region && self.is_beside_bought(all);
            if rest > 0 && self.budget.buys(size, faults, rest, open, is_next) {
                self.regions.update(page, |region| {
                    region.buy(size, page);
                    region.add(pages);
                });
                reads.add(pages, false);
                reads.is_for_later |= size == BuySize::Region;
                if size == BuySize::Region {
                    self.buy_behind(all, inside, reads);
                }
                return;
            }
        }
    }

    /// Whether an adjacent region was read.
    fn is_beside_bought(&mut self, region: PageRange) -> bool {
        let beside = [region.first.checked_sub(1), Some(region.end)];
        let mut pages = beside.into_iter().flatten();
        pages.any(|page| self.regions.update(page, |region| region.is_bought))
    }

    /// After a region was read, or one read ahead was used: if the previous region was read too,
    /// reads the next ones.
    fn buy_behind(&mut self, region: PageRange, inside: PageRange, reads: &mut ReadPlan) {
        let Some(before) = region.first.checked_sub(1) else { return };
        let (was_bought, ahead) =
            self.regions.update(before, |before| (before.is_bought, before.ahead));
        if was_bought {
            self.buy_ahead(region.end, (ahead * 2).max(1), inside, reads);
        }
    }

    fn buy_ahead(&mut self, from: u64, ahead: u64, inside: PageRange, reads: &mut ReadPlan) {
        let ahead = ahead.min(self.largest_window / BuySize::Region.pages()).min(MAX_AHEAD_REGIONS);
        let end = from.saturating_add(ahead * BuySize::Region.pages()).min(inside.end);
        let pages = PageRange { first: from, end };
        let rest: u64 = by_region(pages)
            .map(|part| self.regions.update(part.first, |region| region.unknown(part)))
            .sum();
        if rest == 0 || !self.budget.buys_ahead(rest) {
            return;
        }
        for part in by_region(pages) {
            self.regions.update(part.first, |region| {
                region.buy(BuySize::Region, part.first);
                region.add(part);
                region.ahead = if part.end == end { ahead } else { 0 };
            });
        }
        reads.add(pages, false);
        reads.is_for_later = true;
    }

    fn record_reads(&mut self, reads: &ReadPlan) {
        reads.ranges().for_each(|pages| self.regions.add(pages));
    }

    fn add(&mut self, pages: PageRange) {
        self.regions.add(pages);
    }
}

fn add(stream: &Stream, elements: Elements, reads: &mut ReadPlan) {
    stream.pages(elements).for_each(|pages| reads.add(pages, stream.is_back()));
}

/// Splits `pages` by region.
pub(crate) fn by_region(pages: PageRange) -> impl Iterator<Item = PageRange> {
    let mut first = pages.first;
    std::iter::from_fn(move || {
        let end = BuySize::Region.around(first).end.min(pages.end);
        let part = PageRange { first, end };
        first = end;
        (part.count() > 0).then_some(part)
    })
}
