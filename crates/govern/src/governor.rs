//! Decides which mappings are governed and what is read ahead: events go in, requests come out, and
//! nothing here blocks.
//!
//! All processes that map a file share its policy state, so the workers of a prefork server learn
//! together. A forked child inherits its parent's advice. The kernel reports neither mremap(2) nor
//! munmap(2): a major fault outside the known mappings triggers a read of `/proc/PID/maps`, at most
//! every 50 ms. The number of mappings is bounded per process and in total, so that a hostile
//! program costs bounded memory. A process none of whose threads can be held, since all are in
//! system calls, is retried with exponential backoff.

use std::collections::HashMap;
use std::sync::Arc;

use filemap_attach::{Event, EventKind, FaultKind, FileId, MappedRange};
use filemap_policy::{PageRange, TouchKind};

use crate::costs::CostEstimator;
use crate::file::{GovernedFile, OpenFile, TouchedFile};
use crate::process::{CutRange, GovernedProcess, page_bytes};
use crate::range::{GovernedRange, RangeState};
use crate::request::{
    AdviceOrigin, AdvisorReply, AdvisorTask, ReleaseMapping, Request, TakeMapping, TakeResult,
};
use crate::settings::GovernSettings;
use crate::statistics::{GovernStatistics, MappingState, ProcessStatistics};

/// Maximum governed mappings per process.
pub(crate) const MAX_RANGES_PER_PROCESS: usize = 1024;

/// Maximum governed mappings in total.
const MAX_RANGES: usize = 4096;

/// Maximum number of ended process images reported individually.
const MAX_REPORTED_IMAGES: usize = 4096;

/// Maximum number of touches of a mapping that are kept until it is governed.
const MAX_EARLY_TOUCHES: usize = 1 << 14;

/// Maximum number of files whose treatment is reported.
const MAX_REPORTED_FILES: usize = 4096;

/// Attempts to advise a mapping while its process is idle. Later attempts wait for an event that
/// shows a running thread.
const MAX_IDLE_TRIES: u32 = 10;

/// Attempts within which a mapping is expected to be advised: a running thread is in a system call
/// only now and then.
const MAX_FIRST_TRIES: u32 = 4;

/// The backoff after the nth failed attempt is 2^n ms, with n limited to this.
const MAX_BACKOFF_DOUBLINGS: u32 = 10;

/// After this many major faults on a watched mapping its advice is looked at again: programs give
/// their own after mmap(2), and before they read much.
const CHECK_FAULTS: u64 = 16;

/// Minimum interval between attempts that are triggered by faults on a pending mapping.
const MIN_RETRY_NS: u64 = 20_000_000;

/// Minimum interval between two reads of `/proc/PID/maps` of one process.
const MAPS_INTERVAL_NS: u64 = 50_000_000;

/// The interval is also at least this multiple of how long the last read took, which limits reading
/// to 5 % of the time.
const MAPS_IDLE_FACTOR: u64 = 20;

/// The state of all governed processes and files.
#[derive(Debug)]
pub struct Governor {
    settings: GovernSettings,
    page_bytes: u64,
    processes: HashMap<u32, GovernedProcess>,
    files: HashMap<FileId, GovernedFile>,
    /// Number of mappings of all processes.
    ranges: usize,
    next_id: u64,
    requests: Vec<Request>,
    costs: CostEstimator,
    /// The event source reports each fault and whether it was major.
    has_fault_events: bool,
    statistics: GovernStatistics,
    /// Closed files that are not remembered yet.
    touched: Vec<TouchedFile>,
    /// By PID: how many of its images were reported.
    images: HashMap<u32, u32>,
}

impl Governor {
    /// A governor without processes. `hears_of_faults` says that the event source reports each
    /// fault and whether it was major; otherwise mappings are never left to the kernel.
    pub fn new(settings: GovernSettings, hears_of_faults: bool) -> Governor {
        Governor {
            has_fault_events: hears_of_faults,
            page_bytes: page_bytes(),
            processes: HashMap::new(),
            files: HashMap::new(),
            ranges: 0,
            next_id: 0,
            requests: Vec::new(),
            costs: CostEstimator::new(settings.costs),
            statistics: GovernStatistics::default(),
            touched: Vec::new(),
            images: HashMap::new(),
            settings,
        }
    }

    /// The requests since the last call, in order.
    pub fn take_requests(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.requests)
    }

    /// Handles an event.
    pub fn on_event(&mut self, event: &Event) {
        let Event { at_ns, pid, tid, .. } = *event;
        let mut has_faulted = false;
        match &event.kind {
            EventKind::Fault { address, kind } => {
                has_faulted = self.on_fault(event, *address, *kind)
            }
            EventKind::Map(mapped) => self.on_mapping(pid, tid, mapped),
            EventKind::Fork { parent } if *parent != pid => self.on_fork(*parent, pid),
            EventKind::Exec => self.on_exit(pid),
            EventKind::Lost { records } => self.statistics.lost_records += records,
            EventKind::Fork { .. } | EventKind::Exit => {}
        }
        if let Some(process) = self.processes.get_mut(&pid)
            && (has_faulted || process.retry_at_ns.is_some_and(|due_ns| due_ns <= at_ns))
        {
            self.retry(pid, tid, has_faulted);
        }
    }

    /// Returns whether this was a major fault on a mapping that is due for another attempt: the
    /// thread is running, so it can probably be held, and every such fault reads a whole window.
    fn on_fault(&mut self, event: &Event, address: u64, kind: FaultKind) -> bool {
        let Event { at_ns, pid, tid, .. } = *event;
        let is_major = kind == FaultKind::Major;
        let Some(process) = self.processes.get_mut(&pid) else { return false };
        process.statistics.major_faults += u64::from(is_major);
        let page_bytes = self.page_bytes;
        let Some(range) = process.range_at(address) else {
            // Minor faults here are mostly on anonymous memory and reveal nothing.
            if is_major && at_ns >= process.no_maps_until_ns {
                process.no_maps_until_ns = at_ns.saturating_add(MAPS_INTERVAL_NS);
                self.requests
                    .push(Request::Task(AdvisorTask::ReadMaps { pid, before: self.next_id }));
            }
            return false;
        };
        range.counts.major_faults += u64::from(is_major);
        range.counts.other_faults += u64::from(!is_major);
        let RangeState::Governed(origin) = range.state else {
            range.counts.early_faults += u64::from(is_major);
            if range.early_touches.len() < MAX_EARLY_TOUCHES && kind != FaultKind::Scanned {
                let page = range.page(address, page_bytes);
                range.early_touches.push((tid, page));
            }
            let is_due = matches!(range.state, RangeState::Requested { is_due: true, .. });
            return is_major && is_due && at_ns >= process.no_retry_until_ns;
        };
        if is_major {
            self.costs.on_major_fault(tid, at_ns);
        }
        let id = range.mapped.file.as_ref().map(|file| file.id);
        let Some((id, file)) = id.and_then(|id| Some((id, self.files.get_mut(&id)?))) else {
            return false;
        };
        let touch = match kind {
            FaultKind::Major => TouchKind::Major,
            FaultKind::Minor => TouchKind::Minor,
            FaultKind::Scanned => TouchKind::Mapped,
        };
        // A mapping about to be left to the kernel reads single pages until its advice is restored.
        let may_be_left = self.has_fault_events
            && (origin == AdviceOrigin::Left || origin.is_restored() && !file.is_left_to_kernel());
        let (page, pages) = (range.page(address, page_bytes), range.pages(page_bytes));
        let reply = file.on_touch(tid, (page, touch), pages, may_be_left, at_ns);
        if reply.cancels_reads {
            self.requests.push(Request::CancelReads { id });
        }
        let is_to_leave = is_major && origin.is_restored() && file.is_left_to_kernel();
        if is_to_leave && range.leave_at_ns.is_some_and(|due_ns| due_ns <= at_ns) {
            range.leave_at_ns = None;
            let (leave_id, range) = (range.id, range.mapped.clone());
            self.requests.push(Request::Task(AdvisorTask::Leave(ReleaseMapping {
                id: leave_id,
                pid,
                tid,
                range,
            })));
        }
        let is_for_later = reply.is_for_later;
        for pages in reply.reads {
            range.counts.pages += pages.count();
            range.counts.calls += 1;
            if !self.settings.observe_only {
                let file = Arc::clone(&file.open);
                self.requests.push(Request::Read { id, file, pages, is_for_later });
            }
        }
        let is_check_due = is_major && range.counts.major_faults >= CHECK_FAULTS;
        if is_check_due && origin == AdviceOrigin::Watched && !range.is_checked {
            range.is_checked = true;
            let (id, range) = (range.id, range.mapped.clone());
            self.requests.push(Request::Task(AdvisorTask::Check { id, pid, range }));
        }
        false
    }

    fn on_mapping(&mut self, pid: u32, tid: u32, mapped: &MappedRange) {
        let takes = self.settings.accepts(mapped);
        let cuts = match self.processes.get_mut(&pid) {
            Some(process) => process.cut(mapped.address, mapped.end()),
            None => Vec::new(),
        };
        let mut may_be_inherited = false;
        for cut in cuts {
            self.on_cut(pid, &cut);
            let is_restored = match cut.whole.state {
                RangeState::Governed(is_restored) => is_restored.is_restored(),
                RangeState::Requested { .. } => true,
                RangeState::Ignored => false,
            };
            // The same file range at the same address may be mprotect(2) of the same mapping, which
            // keeps its advice.
            let of_both = cut.whole.overlap(mapped);
            if is_restored && let Some(both) = of_both {
                may_be_inherited = true;
                if !takes {
                    self.requests.push(Request::Task(AdvisorTask::Restore { pid, range: both }));
                }
            }
        }
        if takes {
            self.request_take(pid, tid, mapped.clone(), may_be_inherited);
        }
    }

    /// Requests to govern a mapping. No known mapping overlaps it.
    fn request_take(&mut self, pid: u32, tid: u32, mapped: MappedRange, may_be_inherited: bool) {
        let images = &self.images;
        let process = self
            .processes
            .entry(pid)
            .or_insert_with(|| GovernedProcess::new(pid, images.get(&pid).copied().unwrap_or(0)));
        if process.len() >= MAX_RANGES_PER_PROCESS || self.ranges >= MAX_RANGES {
            process.statistics.mappings_left_alone += 1;
            return;
        }
        self.next_id += 1;
        let mut range = GovernedRange::new(mapped, self.next_id);
        range.may_be_inherited = may_be_inherited;
        self.requests.push(take_request(&self.files, &range, (pid, tid), false));
        process.insert(range);
        self.ranges += 1;
    }

    /// Retries the due mappings of a process through thread `tid`, which has just run; with
    /// `has_faulted`, on such a mapping.
    fn retry(&mut self, pid: u32, tid: u32, has_faulted: bool) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.retry_at_ns = None;
        for range in process.ranges_mut() {
            if let RangeState::Requested { tries, is_due: true } = range.state {
                range.state = RangeState::Requested { tries: tries + 1, is_due: false };
                self.requests.push(take_request(&self.files, range, (pid, tid), has_faulted));
            }
        }
    }

    /// A child inherits the mappings of its parent with their advice.
    fn on_fork(&mut self, parent: u32, pid: u32) {
        self.on_exit(pid);
        let Some(of_parent) = self.processes.get(&parent) else { return };
        let mut process = GovernedProcess::new(pid, self.images.get(&pid).copied().unwrap_or(0));
        process.is_new_copy = true;
        for range in of_parent.ranges().filter(|own| own.state != RangeState::Ignored) {
            if self.ranges >= MAX_RANGES {
                process.statistics.mappings_left_alone += 1;
                continue;
            }
            self.ranges += 1;
            let mut copy = range.copy_uncounted();
            match copy.state {
                RangeState::Governed(origin) => {
                    if origin.is_restored() {
                        copy.state = RangeState::Governed(AdviceOrigin::Inherited);
                    }
                    if let Some(file) = governed_file(&mut self.files, &copy.mapped) {
                        file.users += 1;
                    }
                    let range = copy.mapped.clone();
                    self.requests.push(Request::Watch { pid, range });
                }
                // The parent's request is under way: the fork may have copied the mapping before or
                // after it was advised.
                _ => {
                    self.next_id += 1;
                    (copy.id, copy.may_be_inherited) = (self.next_id, true);
                    copy.state = RangeState::Requested { tries: 1, is_due: false };
                    self.requests.push(take_request(&self.files, &copy, (pid, pid), false));
                }
            }
            process.insert(copy);
        }
        self.processes.insert(pid, process);
    }

    /// Handles the reply to a request, at `now_ns`.
    pub fn on_reply(&mut self, answer: AdvisorReply, now_ns: u64) {
        match answer {
            AdvisorReply::Took { id, pid, took } => self.on_take_result(id, pid, took, now_ns),
            AdvisorReply::Maps { pid, before, maps, elapsed_ns } => {
                if let Some(process) = self.processes.get_mut(&pid) {
                    let pause = MAPS_INTERVAL_NS.max(elapsed_ns.saturating_mul(MAPS_IDLE_FACTOR));
                    process.no_maps_until_ns = now_ns.saturating_add(pause);
                    self.reconcile(pid, before, maps);
                }
            }
            AdvisorReply::Checked { id, pid, is_random: true } => self.on_own_advice(id, pid),
            AdvisorReply::Checked { .. } | AdvisorReply::NoMaps { .. } => {}
            AdvisorReply::PageReadTime { took_ns } => {
                self.costs.on_page_read(took_ns);
                self.files.values_mut().for_each(|file| file.set_costs(&self.costs));
            }
            AdvisorReply::Released { leave, stopped_ns } => {
                self.on_release_reply(&leave, stopped_ns, now_ns)
            }
        }
    }

    /// The program has advised the watched mappings of request `id` MADV_RANDOM itself.
    fn on_own_advice(&mut self, id: u64, pid: u32) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let is_watched = RangeState::Governed(AdviceOrigin::Watched);
        for range in process.ranges_mut().filter(|own| own.id == id && own.state == is_watched) {
            range.state = RangeState::Governed(AdviceOrigin::Program);
            if let Some(file) = governed_file(&mut self.files, &range.mapped) {
                file.set_random();
            }
        }
    }

    fn on_release_reply(&mut self, leave: &ReleaseMapping, stopped_ns: Option<u64>, now_ns: u64) {
        let Some(process) = self.processes.get_mut(&leave.pid) else { return };
        for range in process.ranges_mut().filter(|own| own.id == leave.id) {
            if range.leave_at_ns.is_some() || !range.is_within(&leave.range) {
                continue;
            }
            range.leave_at_ns = Some(now_ns.saturating_add(MIN_RETRY_NS));
            if let (Some(stopped_ns), RangeState::Governed(_)) = (stopped_ns, range.state) {
                range.state = RangeState::Governed(AdviceOrigin::Left);
                range.counts.stopped_ns += stopped_ns;
            }
        }
    }

    fn on_take_result(&mut self, id: u64, pid: u32, took: TakeResult, now_ns: u64) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        match &took {
            TakeResult::Ignored(reason)
            | TakeResult::Refused(reason)
            | TakeResult::Retry(reason) => {
                process.statistics.reason = Some(reason.clone());
            }
            // The obstacle is gone.
            TakeResult::Governed { .. } => process.statistics.reason = None,
            TakeResult::Gone => {}
        }
        let mut again_ns = None;
        let mut gone = Vec::new();
        for range in process.ranges_mut().filter(|range| range.id == id) {
            let RangeState::Requested { tries, .. } = range.state else { continue };
            match &took {
                TakeResult::Governed { file, pages, origin, decision } => {
                    range.state = RangeState::Governed(*origin);
                    if let AdviceOrigin::Governor { stopped_ns } = origin {
                        range.counts.stopped_ns += stopped_ns;
                    }
                    let Some(id) = range.mapped.file.as_ref().map(|file| file.id) else { continue };
                    let largest = self.settings.max_window_bytes / self.page_bytes;
                    let is_new = !self.files.contains_key(&id);
                    let governed = self.files.entry(id).or_insert_with(|| {
                        let path = range.mapped.file.as_ref().map(|file| file.path.clone());
                        let is_random = *origin == AdviceOrigin::Program;
                        GovernedFile::new(
                            (Arc::clone(file), path.unwrap_or_default()),
                            *pages,
                            largest,
                            &self.costs,
                            (Arc::clone(decision), is_random),
                        )
                    });
                    for (tid, page) in std::mem::take(&mut range.early_touches) {
                        governed.on_early_touch(tid, page);
                    }
                    if is_new && !self.settings.observe_only {
                        for pages in governed.begin_prefetch(now_ns) {
                            range.counts.pages += pages.count();
                            range.counts.calls += 1;
                            let (file, is_for_later) = (Arc::clone(file), true);
                            self.requests.push(Request::Read { id, file, pages, is_for_later });
                        }
                    }
                    if !range.is_counted {
                        range.is_counted = true;
                        governed.users += 1;
                        let range = range.mapped.clone();
                        self.requests.push(Request::Watch { pid, range });
                    }
                }
                TakeResult::Retry(_) => {
                    range.state = RangeState::Requested { tries, is_due: true };
                    let pause_ns = 1_000_000 << tries.min(MAX_BACKOFF_DOUBLINGS);
                    again_ns = Some(now_ns.saturating_add(pause_ns));
                }
                // Advice came late and was refused: it stays watched.
                TakeResult::Ignored(_) | TakeResult::Refused(_) if range.is_counted => {
                    range.state = RangeState::Governed(AdviceOrigin::Watched)
                }
                TakeResult::Ignored(_) | TakeResult::Refused(_) => {
                    range.state = RangeState::Ignored
                }
                TakeResult::Gone => gone.push(range.mapped.address),
            }
        }
        if again_ns.is_some() {
            process.no_retry_until_ns = now_ns.saturating_add(MIN_RETRY_NS);
        }
        process.retry_at_ns = process.retry_at_ns.or(again_ns);
        for address in &gone {
            if let Some(range) = process.remove(*address).filter(|range| range.is_counted)
                && let Some(file) = governed_file(&mut self.files, &range.mapped)
            {
                file.users -= 1;
            }
            self.ranges -= 1;
        }
        if !gone.is_empty() {
            self.requests.push(Request::Task(AdvisorTask::ReadMaps { pid, before: self.next_id }));
        }
    }

    /// Updates the known mappings of a process to `maps`. Those with an ID above `before` were
    /// added after the read was requested, and stay.
    fn reconcile(&mut self, pid: u32, before: u64, maps: Vec<MappedRange>) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let stale = process
            .ranges()
            .filter(|own| own.id <= before && !maps.iter().any(|mapped| own.is_within(mapped)));
        let stale: Vec<(u64, u64)> =
            stale.map(|own| (own.mapped.address, own.mapped.end())).collect();
        // A moved mapping (mremap) keeps its advice.
        let ids = process.ranges().filter(|own| own.state != RangeState::Ignored);
        let known: Vec<FileId> =
            ids.filter_map(|own| own.mapped.file.as_ref().map(|file| file.id)).collect();
        for (start, end) in stale {
            let cuts = self.processes.get_mut(&pid).map(|process| process.cut(start, end));
            cuts.into_iter().flatten().for_each(|cut| self.on_cut(pid, &cut));
        }
        let settings = self.settings.clone();
        for mapped in maps.into_iter().filter(|mapped| settings.accepts(mapped)) {
            let has_place =
                self.processes.get(&pid).is_some_and(|process| process.overlaps(&mapped));
            let inherits = mapped.file.as_ref().is_some_and(|file| known.contains(&file.id));
            if !has_place {
                self.request_take(pid, pid, mapped, inherits);
            }
        }
    }

    /// Updates the counts and watches after a mapping was cut.
    fn on_cut(&mut self, pid: u32, cut: &CutRange) {
        self.ranges = self.ranges + cut.left.len() - 1;
        if !cut.whole.is_counted {
            return;
        }
        let range = cut.whole.mapped.clone();
        self.requests.push(Request::Unwatch { pid, range });
        for left in &cut.left {
            self.requests.push(Request::Watch { pid, range: left.mapped.clone() });
        }
        if let Some(file) = governed_file(&mut self.files, &cut.whole.mapped) {
            file.users = file.users + cut.left.len() - 1;
        }
    }

    /// Process `pid` has exited or called execve(2).
    pub fn on_exit(&mut self, pid: u32) {
        let Some(process) = self.processes.remove(&pid) else { return };
        self.ranges -= process.len();
        for range in process.ranges() {
            if range.is_counted {
                if let Some(file) = governed_file(&mut self.files, &range.mapped) {
                    file.users -= 1;
                }
                let range = range.mapped.clone();
                self.requests.push(Request::Unwatch { pid, range });
            }
        }
        let mut statistics = process.statistics(self.page_bytes, Some(MappingState::Ended));
        statistics.is_running = false;
        self.report_exited(statistics);
    }

    /// Keeps the statistics of an image that has ended.
    fn report_exited(&mut self, statistics: ProcessStatistics) {
        if statistics.is_empty() {
            return;
        }
        if self.statistics.processes.len() >= MAX_REPORTED_IMAGES {
            self.statistics.unreported_processes += 1;
            for own in &statistics.mappings {
                match &mut self.statistics.unreported {
                    Some(sum) => sum.add(own),
                    none => *none = Some(own.without_place()),
                }
            }
            return;
        }
        self.images.insert(statistics.pid, statistics.image + 1);
        self.statistics.processes.push(statistics);
    }

    /// Retries the mappings that are due at `now_ns`, even in idle processes.
    pub fn retry_idle(&mut self, now_ns: u64) {
        let is_due = |process: &GovernedProcess| {
            let is_idle = |own: &GovernedRange| match own.state {
                RangeState::Requested { tries, is_due } => is_due && tries < MAX_IDLE_TRIES,
                _ => false,
            };
            process.retry_at_ns.is_some_and(|due_ns| due_ns <= now_ns)
                && process.ranges().any(is_idle)
        };
        let due = self.processes.iter().filter(|(_, process)| is_due(process));
        let due: Vec<u32> = due.map(|(pid, _)| *pid).collect();
        due.into_iter().for_each(|pid| self.retry(pid, pid, false));
    }

    /// Whether no touch needs an answer.
    pub fn only_watches(&self) -> bool {
        self.files.values().all(GovernedFile::is_watched)
    }

    /// Whether a mapping is likely to be advised soon: it was tried fewer than `MAX_FIRST_TRIES`
    /// times.
    pub fn expects_more(&self) -> bool {
        let is_expected = |own: &GovernedRange| match own.state {
            RangeState::Requested { tries, .. } => tries < MAX_FIRST_TRIES,
            RangeState::Governed(_) | RangeState::Ignored => false,
        };
        self.processes.values().flat_map(GovernedProcess::ranges).any(is_expected)
    }

    /// Periodic work: closes files without governed mappings, refreshes file sizes and costs, and
    /// journals the mappings that forked processes inherited.
    pub fn tick(&mut self) {
        self.costs.update();
        self.close_files(false);
        self.decide_late();
        for file in self.files.values_mut() {
            file.pages = file.open.pages(self.page_bytes).unwrap_or(file.pages);
            file.set_costs(&self.costs);
        }
        for (pid, process) in self.processes.iter_mut().filter(|(_, own)| own.is_new_copy) {
            process.is_new_copy = false;
            let inherited = process.restorable().cloned().collect::<Vec<_>>();
            if !inherited.is_empty() {
                self.requests.push(Request::Task(AdvisorTask::NoteInherited {
                    pid: *pid,
                    ranges: inherited,
                }));
            }
        }
    }

    /// Closes the files without governed mappings, or all of them. What was touched of them is
    /// kept until [`Governor::take_touched_files`].
    pub fn close_files(&mut self, all: bool) {
        let (files, touched) = (&mut self.statistics.files, &mut self.touched);
        self.files.retain(|_, file| {
            let is_kept = file.users > 0 && !all;
            if !is_kept {
                touched.extend(file.touched());
                if files.len() < MAX_REPORTED_FILES {
                    files.push(file.statistics());
                }
            }
            is_kept
        });
    }

    /// The touch histories of files that were closed since the last call.
    pub fn take_touched_files(&mut self) -> Vec<TouchedFile> {
        std::mem::take(&mut self.touched)
    }

    /// Governs the files that were watched for long enough by what was touched until then.
    fn decide_late(&mut self) {
        let largest = self.settings.max_window_bytes / self.page_bytes;
        let (watch_time, costs) = (self.settings.watch_time, &self.costs);
        let (files, memory) = (self.files.iter_mut(), &self.settings.memory);
        let measured = |file: &OpenFile| memory.as_ref()?.measured_costs(&file.file);
        let is_due =
            |file: &mut GovernedFile| file.decide_late(watch_time, largest, costs, measured);
        let due: Vec<FileId> = files.filter_map(|(id, file)| is_due(file).then_some(*id)).collect();
        if due.is_empty() {
            return;
        }
        for (pid, process) in &mut self.processes {
            for range in process.ranges_mut() {
                let is_due = range.mapped.file.as_ref().is_some_and(|file| due.contains(&file.id));
                if is_due && range.state == RangeState::Governed(AdviceOrigin::Watched) {
                    range.state = RangeState::Requested { tries: 1, is_due: false };
                    self.requests.push(take_request(&self.files, range, (*pid, *pid), false));
                }
            }
        }
    }

    /// Marks the files of processes under memory pressure.
    pub fn set_memory_short(&mut self, is_short: impl Fn(u32) -> bool) {
        let mut short: Vec<FileId> = Vec::new();
        for (pid, process) in &self.processes {
            if is_short(*pid) {
                let files = process.ranges().filter_map(|own| own.mapped.file.as_ref());
                short.extend(files.map(|file| file.id));
            }
        }
        for (id, file) in &mut self.files {
            file.set_memory_short(short.contains(id));
        }
    }

    /// A request for `pages` of a file was dropped from the queue.
    pub fn on_dropped_read(&mut self, id: FileId, pages: PageRange) {
        self.statistics.dropped_pages += pages.count();
        if let Some(file) = self.files.get_mut(&id) {
            file.on_dropped_read(pages);
        }
    }

    /// PIDs of the processes with known mappings.
    pub fn pids(&self) -> Vec<u32> {
        self.processes.keys().copied().collect()
    }

    /// PID and range of each mapping whose advice has to be restored.
    pub fn restorable(&self) -> Vec<(u32, MappedRange)> {
        let record = |(pid, process): (&u32, &GovernedProcess)| {
            process.restorable().map(|range| (*pid, range.clone())).collect::<Vec<_>>()
        };
        self.processes.iter().flat_map(record).collect()
    }

    /// The statistics so far.
    pub fn statistics(&self) -> GovernStatistics {
        let mut statistics = self.statistics.clone();
        let running = self.processes.values().map(|own| own.statistics(self.page_bytes, None));
        statistics.processes.extend(running.filter(|own| !own.is_empty()));
        statistics.files.extend(self.files.values().map(GovernedFile::statistics));
        statistics
            .files
            .sort_by(|one, other| (&one.path, &one.done).cmp(&(&other.path, &other.done)));
        statistics.files.dedup();
        statistics.processes.sort_by_key(|own| (own.pid, own.image));
        statistics
    }
}

/// The request to govern `range` of process `pid` through thread `tid`, which has just faulted in
/// it if `has_faulted`.
fn take_request(
    files: &HashMap<FileId, GovernedFile>,
    range: &GovernedRange,
    (pid, tid): (u32, u32),
    has_faulted: bool,
) -> Request {
    let GovernedRange { id, may_be_inherited, .. } = *range;
    let tries = match range.state {
        RangeState::Requested { tries, .. } => tries,
        RangeState::Governed(_) | RangeState::Ignored => 0,
    };
    let file = range.mapped.file.as_ref().and_then(|file| files.get(&file.id));
    let is_left_to_kernel = file.is_some_and(GovernedFile::is_left_to_kernel);
    let decision = file.map(|file| Arc::clone(file.decision()));
    let range = range.mapped.clone();
    Request::Task(AdvisorTask::Take(TakeMapping {
        id,
        pid,
        tid,
        range,
        may_be_inherited,
        tries,
        has_faulted,
        prefers_kernel: is_left_to_kernel,
        decision,
    }))
}

fn governed_file<'a>(
    files: &'a mut HashMap<FileId, GovernedFile>,
    mapped: &MappedRange,
) -> Option<&'a mut GovernedFile> {
    files.get_mut(&mapped.file.as_ref()?.id)
}

#[cfg(test)]
mod tests;
