//! Files with governed mappings.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use filemap_policy::{
    Bounds, Costs, FilePolicy, KernelWindow, PageRange, REGION_PAGES, TouchCollector, TouchHistory,
    TouchKind,
};
use rustix::fs::{Advice, FileType, fadvise, fstat, fstatfs};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::costs::CostEstimator;
use crate::decision::{FileDecision, FileWay};
use crate::history_format::FileIdentity;
use crate::history_store::HistoryStore;
use crate::requested_pages::RequestedPages;
use crate::statistics::FileStatistics;

/// `f_type` of statfs(2) for tmpfs, ramfs and hugetlbfs (`linux/magic.h`), which have no readahead.
const MEMORY_FILESYSTEMS: [i64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

/// `f_type` for NFS, SMB (three values) and FUSE, where a read may block on a server for an
/// unbounded time.
const NETWORK_FILESYSTEMS: [i64; 5] = [0x6969, 0xff53_4d42, 0xfe53_4d42, 0x517b, 0x6573_5546];

/// Maximum size of one readahead call.
const MAX_CALL_BYTES: u64 = 512 << 10;

/// Maximum size of one speculative readahead call. A demand fault queues behind at most two of
/// them.
const MAX_SPECULATIVE_CALL_BYTES: u64 = 256 << 10;

/// Sampling of read times: candidate positions spread evenly over the mapping, the number of
/// intervals between them, and the maximum number of pages read.
const SAMPLE_POSITIONS: u64 = 16;
const FRACTIONS: u64 = SAMPLE_POSITIONS + 1;
const MAX_SAMPLES: usize = 4;

/// Lower bound for one readahead call, also used if the device reports no limits.
const MIN_CALL_BYTES: u64 = 128 << 10;

/// A file opened by this process, with the readahead limits of its device.
#[derive(Debug)]
pub struct OpenFile {
    pub file: File,
    /// Size of the kernel's read-around window without advice, in pages; 0 if unknown.
    pub window_pages: u64,
    /// Maximum pages that the kernel reads for one fadvise(POSIX_FADV_WILLNEED) call.
    pub call_pages: u64,
    /// Maximum pages of one speculative call.
    pub speculative_call_pages: u64,
    /// All pages that were looked at were cached when it was opened.
    pub was_cached: bool,
}

impl OpenFile {
    /// Checks that `file` can be read ahead, and reads the limits of its device. The error says why
    /// the file is not governed.
    pub fn new(file: File, page_bytes: u64) -> Result<OpenFile, &'static str> {
        let stat = fstat(&file).map_err(|_| "its file cannot be examined")?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err("it is no regular file");
        }
        let kind = fstatfs(&file).map_err(|_| "its filesystem is unknown")?.f_type;
        if MEMORY_FILESYSTEMS.contains(&kind) {
            return Err("its file is in memory only");
        }
        if NETWORK_FILESYSTEMS.contains(&kind) {
            return Err("its file is a server's");
        }
        // No readahead of the kernel's own on this descriptor: only requested pages are read.
        fadvise(&file, 0, None, Advice::Random).map_err(|_| "its file cannot be advised")?;
        let read_ahead_bytes = read_ahead_bytes(stat.st_dev);
        let call_bytes = call_bytes(stat.st_dev, read_ahead_bytes);
        let pages = |bytes: u64| (bytes / page_bytes).max(1);
        let file_pages = stat.st_size.cast_unsigned().div_ceil(page_bytes);
        let mut places = sample_positions(PageRange { first: 0, end: file_pages });
        let was_cached = file_pages > 0 && places.all(|page| is_cached(&file, page, page_bytes));
        Ok(OpenFile {
            file,
            was_cached,
            window_pages: read_ahead_bytes / page_bytes,
            call_pages: pages(call_bytes),
            speculative_call_pages: pages(call_bytes.min(MAX_SPECULATIVE_CALL_BYTES)),
        })
    }

    /// The time to read one uncached page, in nanoseconds: the minimum over a few pages spread over
    /// `pages`. `None` if all sampled pages are cached.
    pub fn read_page_ns(&self, pages: PageRange, page_bytes: u64) -> Option<u64> {
        let places = sample_positions(pages);
        let uncached = places.filter(|page| !is_cached(&self.file, *page, page_bytes));
        let mut buffer = vec![0; page_bytes as usize];
        let took_ns = |page: u64| -> Option<u64> {
            let start = Instant::now();
            self.file.read_at(&mut buffer, page * page_bytes).ok()?;
            Some(start.elapsed().as_nanos() as u64)
        };
        uncached.take(MAX_SAMPLES).map_while(took_ns).min()
    }

    /// The current size of the file in pages.
    pub fn pages(&self, page_bytes: u64) -> io::Result<u64> {
        Ok(self.file.metadata()?.size().div_ceil(page_bytes))
    }
}

/// Pages spread evenly over `pages`.
fn sample_positions(pages: PageRange) -> impl Iterator<Item = u64> {
    (1..=SAMPLE_POSITIONS).map(move |n| pages.first + pages.count() * n / FRACTIONS)
}

/// Whether a page is cached. May begin to read it if not.
fn is_cached(file: &File, page: u64, page_bytes: u64) -> bool {
    let mut byte = [0];
    let offset = page * page_bytes;
    let flags = ReadWriteFlags::NOWAIT;
    let read = preadv2(file, &mut [IoSliceMut::new(&mut byte)], offset, flags);
    read != Err(Errno::AGAIN)
}

/// `read_ahead_kb` of `device`, in bytes; 0 if it cannot be read.
fn read_ahead_bytes(device: u64) -> u64 {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    read_kib(&format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb")).unwrap_or(0)
}

/// The maximum bytes that the kernel reads for one call on a file of `device`: the larger of
/// `read_ahead_kb` and `max_sectors_kb`, as in `force_page_cache_ra()`.
fn call_bytes(device: u64, read_ahead_bytes: u64) -> u64 {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let block = format!("/sys/dev/block/{major}:{minor}");
    let request = read_kib(&format!("{block}/queue/max_sectors_kb"))
        .or_else(|| read_kib(&format!("{block}/../queue/max_sectors_kb")));
    read_ahead_bytes.max(request.unwrap_or(0)).clamp(MIN_CALL_BYTES, MAX_CALL_BYTES)
}

fn read_kib(path: &str) -> Option<u64> {
    let kib: u64 = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
    Some(kib.saturating_mul(1 << 10))
}

/// A prefetch is judged after this many touches.
const MIN_PREFETCH_TOUCHES: u64 = 64;

/// A file with governed mappings, shared by all processes that map it.
#[derive(Debug)]
pub struct GovernedFile {
    pub open: Arc<OpenFile>,
    path: PathBuf,
    /// Size of the file in pages, refreshed on every tick.
    pub pages: u64,
    decision: Arc<FileDecision>,
    /// The policy's state of this file; `None` if nothing is read ahead.
    state: Option<Box<FilePolicy>>,
    /// The touches of this run, for the history.
    collector: Option<TouchCollector>,
    prefetch: PrefetchGuard,
    requested: RequestedPages,
    /// Cost of one page of the kernel's read-around window.
    window_page_ns: u64,
    /// Number of governed mappings of the file.
    pub users: usize,
    met_at: Instant,
}

/// Compares the touches with the regions that are read before.
#[derive(Debug, Default)]
struct PrefetchGuard {
    /// The regions that are read, by number.
    regions: HashSet<u64>,
    touches: u64,
    touches_inside: u64,
    is_wrong: bool,
}

impl PrefetchGuard {
    /// Counts a touch. Returns whether it shows that the program goes elsewhere: fewer than a
    /// quarter of its first touches are in the regions.
    fn on_touch(&mut self, page: u64) -> bool {
        if self.regions.is_empty() || self.touches >= MIN_PREFETCH_TOUCHES {
            return false;
        }
        self.touches += 1;
        self.touches_inside += u64::from(self.regions.contains(&(page / REGION_PAGES)));
        self.is_wrong =
            self.touches == MIN_PREFETCH_TOUCHES && self.touches_inside < MIN_PREFETCH_TOUCHES / 4;
        self.is_wrong
    }
}

/// What a touch gives rise to.
#[derive(Debug, Default)]
pub struct TouchReply {
    /// Ranges to read ahead, one per call and in order of expected use.
    pub reads: Vec<PageRange>,
    /// These reads are speculative.
    pub is_for_later: bool,
    /// Reads that are queued for the file are in vain.
    pub cancels_reads: bool,
}

impl GovernedFile {
    /// A file without governed mappings yet, governed by `decision`. The windows of streams are
    /// limited to `largest` pages. `is_random`: the program advises it MADV_RANDOM itself.
    pub fn new(
        (open, path): (Arc<OpenFile>, PathBuf),
        pages: u64,
        largest: u64,
        cost: &CostEstimator,
        (decision, is_random): (Arc<FileDecision>, bool),
    ) -> GovernedFile {
        let mut file = GovernedFile {
            open,
            path,
            pages,
            state: None,
            collector: None,
            prefetch: PrefetchGuard::default(),
            requested: RequestedPages::default(),
            window_page_ns: window_page_ns(&decision, cost),
            users: 0,
            met_at: Instant::now(),
            decision: Arc::clone(&decision),
        };
        file.set_decision(decision, largest, cost);
        if file.decision.way != FileWay::RentOrBuy {
            let is_exact = is_random || file.decision.advises_random();
            file.collector = Some(TouchCollector::new(is_exact, is_random));
        }
        file
    }

    fn set_decision(&mut self, decision: Arc<FileDecision>, largest: u64, cost: &CostEstimator) {
        let costs = decision.costs.unwrap_or_else(|| cost.costs());
        self.window_page_ns = window_page_ns(&decision, cost);
        self.state = match &decision.way {
            FileWay::RentOrBuy => Some(Box::new(FilePolicy::new(largest, cost.costs()))),
            FileWay::Plan(plan) if plan.follows_runs => {
                let lengths = plan.run_lengths.iter().copied();
                Some(Box::new(FilePolicy::following(largest, costs, lengths, plan.expected_faults)))
            }
            FileWay::Watch | FileWay::Plan(_) => None,
        };
        self.decision = decision;
    }

    /// How the file is governed.
    pub fn decision(&self) -> &Arc<FileDecision> {
        &self.decision
    }

    /// Decides by what was touched so far, if the file was only watched and for at least
    /// `watch_time`. Returns whether its mappings are to be advised now.
    pub fn decide_late(
        &mut self,
        watch_time: Duration,
        largest: u64,
        cost: &CostEstimator,
        measured: impl FnOnce(&OpenFile) -> Option<Costs>,
    ) -> bool {
        let Some(collector) = &self.collector else { return false };
        let is_due = self.decision.way == FileWay::Watch && self.met_at.elapsed() >= watch_time;
        if !is_due || collector.touches() == 0 {
            return false;
        }
        let history = self.history(collector);
        let window_pages = self.open.window_pages;
        let costs = (measured(&self.open), cost.costs());
        let mut decision =
            FileDecision::from_histories(&[history], costs, window_pages, self.pages);
        decision.reason = format!("{}, after {} s", decision.reason, watch_time.as_secs());
        let advises = decision.advises_random();
        self.set_decision(Arc::new(decision), largest, cost);
        advises
    }

    /// Ranges to read before they are touched, one per call. To be called once.
    pub fn begin_prefetch(&mut self, now_ns: u64) -> Vec<PageRange> {
        let FileWay::Plan(plan) = &self.decision.way else { return Vec::new() };
        let mut pieces = Vec::new();
        for pages in &plan.prefetch {
            let regions = pages.first / REGION_PAGES..pages.end.div_ceil(REGION_PAGES);
            self.prefetch.regions.extend(regions);
            let step = self.open.speculative_call_pages.max(1);
            let firsts = (pages.first..pages.end).step_by(step as usize);
            let piece = |first| PageRange { first, end: pages.end.min(first + step) };
            pieces.extend(firsts.map(piece));
        }
        pieces.into_iter().flat_map(|piece| self.requested.request(piece, now_ns)).collect()
    }

    /// The program advises a mapping MADV_RANDOM itself.
    pub fn set_random(&mut self) {
        if let Some(collector) = &mut self.collector {
            collector.set_random();
        }
    }

    /// Records that thread `tid` touched `page` before its mapping was governed.
    pub fn on_early_touch(&mut self, tid: u32, page: u64) {
        if let Some(collector) = &mut self.collector {
            collector.on_touch(page, tid.into());
        }
    }

    /// Whether it is only watched.
    pub fn is_watched(&self) -> bool {
        self.state.is_none()
    }

    /// Records that thread `tid` touched `page` at `now_ns`. `may_be_left` lets the policy weigh
    /// the kernel's own read-around window; it is also set once the mapping was left to the kernel.
    pub fn on_touch(
        &mut self,
        tid: u32,
        (page, touch): (u64, TouchKind),
        mapping: PageRange,
        may_be_left: bool,
        now_ns: u64,
    ) -> TouchReply {
        if let Some(collector) = &mut self.collector {
            collector.on_touch(page, tid.into());
        }
        let cancels_reads = self.prefetch.on_touch(page);
        let Some(state) = &mut self.state else {
            return TouchReply { cancels_reads, ..TouchReply::default() };
        };
        if touch == TouchKind::Major {
            self.requested.on_major_fault(page, now_ns);
        }
        let bounds = Bounds { mapping, file_pages: self.pages };
        state.set_thread(tid.into());
        let window = KernelWindow { pages: self.open.window_pages, page_ns: self.window_page_ns };
        state.set_window(if may_be_left { window } else { KernelWindow::NONE });
        let reads = state.on_fault(page, touch, bounds);
        let most = if reads.is_for_later {
            self.open.speculative_call_pages
        } else {
            self.open.call_pages
        };
        let pieces = reads.pieces(most);
        let fresh = pieces.flat_map(|piece| self.requested.request(piece, now_ns)).collect();
        TouchReply { reads: fresh, is_for_later: reads.is_for_later, cancels_reads }
    }

    /// Whether the policy prefers the kernel's own readahead to MADV_RANDOM for this file.
    pub fn is_left_to_kernel(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.is_left_to_kernel())
    }

    /// A request for `pages` was dropped from the queue.
    pub fn on_dropped_read(&mut self, pages: PageRange) {
        self.requested.forget(pages);
    }

    pub fn set_costs(&mut self, cost: &CostEstimator) {
        if self.decision.costs.is_some() {
            return;
        }
        if let Some(state) = &mut self.state {
            state.set_costs(cost.costs());
        }
        self.window_page_ns = cost.window_page_ns();
    }

    pub fn set_memory_short(&mut self, is_short: bool) {
        if let Some(state) = &mut self.state {
            state.set_memory_short(is_short);
        }
    }

    /// The action taken, and its reason.
    pub fn statistics(&self) -> FileStatistics {
        let reason = &self.decision.reason;
        let done = if self.is_left_to_kernel() && self.decision.way != FileWay::RentOrBuy {
            format!("handed back: the program went elsewhere, after {reason}")
        } else if self.prefetch.is_wrong {
            format!("{reason}; reading stopped: the program went elsewhere")
        } else {
            reason.clone()
        };
        FileStatistics { path: self.path.clone(), done }
    }

    /// Its touch history, if a page was touched.
    pub fn touched(&self) -> Option<TouchedFile> {
        let collector = self.collector.as_ref().filter(|own| own.touches() > 0)?;
        let (open, path) = (Arc::clone(&self.open), self.path.clone());
        Some(TouchedFile { open, path, history: self.history(collector) })
    }

    fn history(&self, collector: &TouchCollector) -> TouchHistory {
        TouchHistory { is_cached: self.open.was_cached, ..collector.history() }
    }
}

fn window_page_ns(decision: &FileDecision, cost: &CostEstimator) -> u64 {
    decision.costs.map_or_else(|| cost.window_page_ns(), |costs| costs.page_ns)
}

/// What a session saw of a file.
#[derive(Debug)]
pub struct TouchedFile {
    open: Arc<OpenFile>,
    path: PathBuf,
    history: TouchHistory,
}

impl TouchedFile {
    /// Measures the costs of its device for `store`, if they are not known.
    pub fn measure_device(&self, store: &HistoryStore) {
        let _ = store.measured_costs(&self.open.file);
    }

    /// Remembers it in `store`.
    ///
    /// # Errors
    /// One line.
    pub fn remember(self, store: &HistoryStore) -> Result<(), String> {
        let identity =
            FileIdentity::from_file(&self.open.file).map_err(|error| error.to_string())?;
        store.add(identity, &self.path, self.history)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn says_whether_file_was_cached() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![7; 1 << 20]).unwrap();
        let open = || OpenFile::new(File::open(file.path()).unwrap(), 4096);
        // In memory, there is nothing to govern.
        let Ok(cached) = open() else { return };
        assert!(cached.was_cached);
        file.as_file().sync_all().unwrap();
        // A page that is about to be put on a list stays.
        for _ in 0..20 {
            fadvise(file.as_file(), 0, None, Advice::DontNeed).unwrap();
            if !open().unwrap().was_cached {
                return;
            }
        }
        panic!("it stays cached");
    }
}
