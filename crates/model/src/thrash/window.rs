//! Reading a window: adding its pages, filling them.

use filemap_core::cache::{FileCache, FolioRun};
use filemap_core::decision::{Decision, Lock, Log};
use filemap_core::page_cache::PageCache;
use filemap_core::readahead::Window;
use filemap_core::readahead::layout::Layout;
use filemap_core::units::{PageCount, PageIndex};

use super::cgroup::BATCH;
use super::machine::Machine;
use super::round::file;
use super::task::{Charge, Flow, WindowStage, WindowUnderWay};
use super::waits::Cause;
use crate::mm::mmap_lock::TaskId;

impl<C: PageCache, L: Log> Machine<'_, C, L> {
    /// Begins to read `window` for the fault of `task`.
    pub fn begin_window(&mut self, task: TaskId, window: Window) {
        let fault = self.tasks[task].fault.as_ref().expect("a fault reads it");
        let under_mmap_lock = fault.held == Some(Lock::Mmap);
        self.counts.windows += 1;
        self.counts.misses_under_lock += u64::from(fault.held.is_some() && fault.has_dropped);
        self.windows_under_lock += u64::from(under_mmap_lock);
        self.windows += 1;
        let held = self.hold(task, &window);
        let open = &mut self.opens[task];
        let layout = Layout::new(window, &open.limits, &mut open.ra, self.log);
        self.tasks[task].window = Some(WindowUnderWay {
            layout,
            left: None,
            added: Vec::new(),
            held,
            stage: WindowStage::Adding,
            under_mmap_lock,
        });
    }

    /// Adds pages of the window, as far as they can be charged, and then fills them. Pages that are
    /// cached already part it: what was added before them is filled first.
    ///
    /// As `page_cache_ra_unbounded`, 6.12 and 6.18. Test: `tests/thrash.rs`.
    pub fn go_on_with_window(&mut self, task: TaskId) -> Flow {
        let mut window = self.tasks[task].window.take().expect("a window is being read");
        let flow = match window.stage {
            WindowStage::Adding => self.add_part(task, &mut window, 0),
            WindowStage::Charging => match self.tasks[task].charged.take() {
                Some(true) => {
                    window.stage = WindowStage::Adding;
                    self.add_part(task, &mut window, 1)
                }
                _ => {
                    self.counts.windows_cut += 1;
                    (window.left, window.stage) = (None, WindowStage::Added);
                    Flow::Goes
                }
            },
            WindowStage::Added => {
                window.stage = WindowStage::Filled;
                let added_pages: u64 = window.added.iter().map(|run| run.pages().0).sum();
                if self.job.sparse {
                    Flow::Takes(self.job.costs.zero_page_ns * added_pages, Cause::Fill)
                } else {
                    // The first requests are under way while the last are made.
                    for run in window.added.drain(..) {
                        self.submit(task, run);
                    }
                    Flow::Takes(self.job.costs.request_page_ns * added_pages, Cause::Fill)
                }
            }
            WindowStage::Filled => {
                for run in window.added.drain(..) {
                    self.unlock_pages(task, run.start, run.pages());
                }
                if window.left.is_none() {
                    self.end_window(task, &window);
                    return Flow::Goes;
                }
                window.stage = WindowStage::Adding;
                Flow::Goes
            }
        };
        self.tasks[task].window = Some(window);
        flow
    }

    /// Adds folios of which `charged` are charged, and those behind them that the CPU has charged
    /// before.
    fn add_part(&mut self, task: TaskId, window: &mut WindowUnderWay, charged: u64) -> Flow {
        let next = || window.layout.next(&self.cache.file(file(task)), self.log);
        let Some(left) = window.left.take().or_else(next) else {
            window.stage = WindowStage::Added;
            return Flow::Goes;
        };
        if window.added.last().is_some_and(|last| last.start + last.pages() != left.start) {
            (window.left, window.stage) = (Some(left), WindowStage::Added);
            return Flow::Goes;
        }
        let each = left.order.pages();
        let cpu = self.tasks[task].cpu.expect("who runs has a CPU");
        let most = (left.folios - charged).min((BATCH / each).max(1)) * each;
        let folios = charged + self.cgroup.take_stock(cpu, most, each) / each;
        if folios == 0 {
            window.left = Some(left);
            window.stage = WindowStage::Charging;
            self.tasks[task].charge = Some(Charge::new(each, true));
            return Flow::Goes;
        }
        self.charged_pages -= charged * each;
        let part = left.first(folios);
        self.add(task, part);
        window.added.push(part);
        window.left = (folios < left.folios).then(|| left.behind(folios));
        let pages = part.pages().0;
        self.listed(pages, 1, self.job.costs.add_page_ns * pages, Cause::Fill)
    }

    /// Adds folios that are charged, locked.
    pub fn add(&mut self, task: TaskId, run: FolioRun) {
        let FolioRun { start, order, folios, marked } = run;
        self.log.record(Decision::Added { start, order, folios, marked });
        self.cache.add(file(task), run);
        let pages = run.pages().0;
        self.locked_pages += pages;
        self.counts.pages_read += pages;
        self.note_added(file(task), run);
    }

    fn end_window(&mut self, task: TaskId, window: &WindowUnderWay) {
        if let Some((start, pages)) = window.held {
            self.unlock_pages(task, start, pages);
        }
        self.windows -= 1;
        self.windows_under_lock -= u64::from(window.under_mmap_lock);
    }

    /// Keeps the folio whose mark was hit from reclaim, while the window behind it is read.
    fn hold(&mut self, task: TaskId, window: &Window) -> Option<(PageIndex, PageCount)> {
        if !window.cause.is_async() {
            return None;
        }
        let folio = self.cache.file(file(task)).folio(window.index);
        let folio = folio.filter(|folio| !folio.locked)?;
        let pages = PageCount(folio.order.pages());
        self.cache.lock(file(task), folio.head, pages);
        self.locked_pages += pages.0;
        Some((folio.head, pages))
    }

    /// The data of pages is there.
    pub fn unlock_pages(&mut self, task: TaskId, start: PageIndex, pages: PageCount) {
        self.cache.unlock(file(task), start, pages);
        self.locked_pages -= pages.0;
    }

    /// Begins to read folios from the device.
    pub fn submit(&mut self, task: TaskId, run: FolioRun) {
        self.device.ask(run);
        self.device.submit(file(task), self.now_ns);
        self.watch_device();
    }

    /// Unlocks what has arrived, and wakes who waits for it.
    ///
    /// The one who waits refers to its folio, which `__remove_mapping` refuses to evict as it
    /// refuses a locked one: so that folio stays locked here until the task runs.
    pub fn arrivals(&mut self) {
        self.arrival_ns = None;
        while let Some((run, _)) = self.device.arrived(self.now_ns, true) {
            let task = run.file.number();
            let (start, end) = (run.start, run.start + run.pages);
            let awaited = self.tasks[task].awaits.filter(|index| (start..end).contains(index));
            let Some(index) = awaited else {
                self.unlock_pages(task, start, run.pages);
                continue;
            };
            let folio = self.cache.file(file(task)).folio(index);
            let folio = folio.expect("who waits for a folio refers to it");
            let pages = PageCount(folio.order.pages());
            let behind = folio.head + pages;
            for (from, to) in [(start, folio.head), (behind, end)] {
                if from < to {
                    self.unlock_pages(task, from, to - from);
                }
            }
            let of = &mut self.tasks[task];
            (of.awaits, of.refers) = (None, Some((folio.head, pages)));
            self.wake_at(self.now_ns, task);
        }
        self.watch_device();
    }

    fn watch_device(&mut self) {
        let Some(done_ns) = self.device.next_done_ns() else { return };
        if self.arrival_ns.is_none_or(|arrival_ns| done_ns < arrival_ns) {
            self.arrive_at(done_ns.max(self.now_ns));
        }
    }
}
