//! Differences between a job and the recording that it was converted from.

use std::fmt;

use super::gather::RecordedMemory;
use crate::event::GapKind;
use crate::header::{Header, NO_CLOCK, RecordingMode};
use crate::reader::Truncated;

/// A difference between a job and its recording, as a sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approximation(String);

impl fmt::Display for Approximation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Counts and names of everything that the conversion approximates.
#[derive(Debug, Default)]
pub struct ApproximationCounts {
    pub moves: u64,
    /// Pages of [`crate::EventKind::Unseen`].
    pub unseen_pages: u64,
    pub protections: u64,
    pub parts: u64,
    pub truncations: u64,
    pub other_advice: u64,
    pub shared_writes: u64,
    pub shared_mappings: u64,
    pub inherited_mappings: u64,
    pub processes: usize,
    pub threads: usize,
    pub has_think_times: bool,
    pub grown: Vec<String>,
    pub gone: Vec<String>,
    pub unnamed: Vec<String>,
    pub changed: Vec<String>,
    pub twins: Vec<String>,
    /// What the recorder could not see, and how much of it at least.
    pub gaps: Vec<(GapKind, u64)>,
    /// Pages touched and read, with repetitions.
    pub used_pages: u64,
    mode: Option<RecordingMode>,
    has_no_waits: bool,
    resolution_ns: u64,
    open_pages: u64,
    /// The program's own memory, as a sentence.
    memory: Option<String>,
    lost: u64,
    truncated: Option<Truncated>,
}

/// A gap of fewer pages than one in this many that were used is not reported.
const MIN_GAP_PART: u64 = 100;

/// Maximum names listed in a sentence.
const MAX_NAMES: usize = 3;

impl ApproximationCounts {
    pub fn set_header(&mut self, header: &Header) {
        self.mode = Some(header.mode);
        self.resolution_ns = header.resolution_ns;
        self.open_pages = header.open_pages;
        self.has_no_waits = header.clock == NO_CLOCK;
    }

    pub fn set_lost(&mut self, events: u64) {
        self.lost = events;
    }

    pub fn set_truncated(&mut self, truncated: Option<Truncated>) {
        self.truncated = truncated;
    }

    pub fn set_memory(&mut self, memory: &RecordedMemory, page_size: u64) {
        let size = |pages: u64| shown_bytes(pages.saturating_mul(page_size));
        self.memory = Some(format!(
            "a memory limit charges the program's own memory too, which grew to {}; its resident \
             set was {} at most",
            size(memory.most_pages),
            shown_bytes(memory.peak_bytes())
        ));
    }

    /// The number of pages that may have been touched unseen, or 0 if it is too small to change
    /// an answer.
    pub fn unseen_pages_that_matter(&self) -> u64 {
        let matters = GapKind::TouchedPages.matters(self.unseen_pages, self.used_pages);
        if matters { self.unseen_pages } else { 0 }
    }

    /// The number of pages that may have been touched and are not known, by the gaps of the
    /// recording.
    pub fn unknown_pages(&self) -> u64 {
        let touched = self.gaps.iter().filter(|(kind, _)| *kind == GapKind::TouchedPages);
        let counted = touched.fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        let unknown = counted.saturating_sub(self.unseen_pages);
        if GapKind::TouchedPages.matters(unknown, self.used_pages) { unknown } else { 0 }
    }

    /// All differences, most important first.
    pub fn approximations(&self) -> Vec<Approximation> {
        let texts =
            self.recording_texts().into_iter().chain(self.file_texts()).chain(self.call_texts());
        let texts = texts.flatten().chain(self.memory.clone());
        self.gap_texts().chain(texts).map(Approximation).collect()
    }

    /// Limits of the recording itself.
    fn recording_texts(&self) -> [Option<String>; 8] {
        let cut = |Truncated { at, events }| {
            let events = plural(events, "event");
            format!("the recording is cut off at byte {at}; it has {events} until then")
        };
        let has = |is_so: bool, text: &str| is_so.then(|| format!("the recording {text}"));
        let is = |mode: RecordingMode| self.mode == Some(mode);
        [
            self.truncated.map(cut),
            (self.lost > 0)
                .then(|| format!("{} were lost while recording", plural(self.lost, "event"))),
            has(
                is(RecordingMode::Import),
                "was imported and shows faults only: what fault-around mapped, reads, advice, \
                 think times, and what was cached before are not in it; with major faults only, a \
                 scan has few touches",
            ),
            has(
                is(RecordingMode::Faults),
                "shows faults only: pages that fault-around or a large folio mapped with them are \
                 not in it",
            ),
            has(self.has_no_waits, "has no think times"),
            has(
                is(RecordingMode::FirstTouches) || is(RecordingMode::Faults),
                "has the first touch of each page only, so that pages which a memory limit evicts \
                 are not read again",
            ),
            (is(RecordingMode::Changes) && self.open_pages > 0).then(|| {
                format!(
                    "the recording has each change of page, but may lack the touch of a page that \
                     is among the last {} that its process touched",
                    self.open_pages
                )
            }),
            (self.resolution_ns > 0)
                .then(|| format!("touches were sampled only every {} ns", self.resolution_ns)),
        ]
    }

    /// What the recorder could not see, as far as it can change an answer.
    fn gap_texts(&self) -> impl Iterator<Item = String> {
        let gaps = self.gaps.iter().map(|(kind, count)| match kind {
            // Reports give figures with touches of those that are known.
            GapKind::TouchedPages if self.unseen_pages_that_matter() > 0 => {
                (*kind, self.unknown_pages())
            }
            _ => (*kind, *count),
        });
        let gaps = gaps.filter(|(kind, count)| *count > 0 && kind.matters(*count, self.used_pages));
        gaps.map(|(kind, count)| format!("the recording {}", kind.text(count)))
    }

    /// Differences in files.
    fn file_texts(&self) -> [Option<String>; 5] {
        let recorded = |files: &[String], why: &str| {
            names_text(files).map(|names| format!("the recorded size is used for {names}{why}"))
        };
        [
            recorded(
                &self.gone,
                ": missing, or on a filesystem where pages cannot be counted, and taken to have no holes",
            ),
            recorded(&self.unnamed, ": no job can name a path that is not UTF-8"),
            recorded(&self.changed, " of another size now"),
            names_text(&self.twins).map(|names| {
                format!("other names of files that the job has are files of their own: {names}")
            }),
            names_text(&self.grown)
                .map(|names| format!("the largest size is used from the start for {names}")),
        ]
    }

    /// Differences in processes and their system calls.
    fn call_texts(&self) -> [Option<String>; 11] {
        [
            count_text(self.truncations, "change of the size", "of a file", "left out"),
            (self.processes > 1).then(|| {
                format!(
                    "the job has one process, in which the {} recorded ones are threads, each with \
                     mappings of its own",
                    self.processes
                )
            }),
            count_text(
                self.inherited_mappings,
                "mapping",
                "inherited by a fork",
                "there from the start, without earlier advice",
            ),
            count_text(
                self.shared_mappings,
                "mapping",
                "that several threads use, map or unmap",
                "there throughout",
            ),
            (self.threads > 1).then(|| format!("its {} threads begin together", self.threads)),
            self.has_think_times.then(|| "think times are the mean of each phase".to_string()),
            count_text(
                self.moves,
                "mremap",
                "of a mapping",
                "left out; it has its largest length from the start",
            ),
            count_text(self.protections, "mprotect", "", "left out, with the VMAs that it makes"),
            count_text(self.parts, "munmap", "of a part of a mapping", "left out"),
            count_text(
                self.other_advice,
                "call of madvise or fadvise",
                "of kinds that jobs cannot have",
                "left out",
            ),
            count_text(
                self.shared_writes,
                "write",
                "to shared mappings",
                "taken as reads, as such writes are not modelled",
            ),
        ]
    }
}

impl GapKind {
    /// Whether a gap of `count` can change an answer about a program that uses `used_pages`.
    pub fn matters(self, count: u64, used_pages: u64) -> bool {
        match self {
            GapKind::ReadPages | GapKind::TouchedPages | GapKind::LockedPages => {
                count.saturating_mul(MIN_GAP_PART) >= used_pages
            }
            GapKind::Advice | GapKind::SystemCalls | GapKind::Unknown(_) => true,
        }
    }

    /// A gap of `count`, as the predicate of a sentence about the recording.
    pub fn text(self, count: u64) -> String {
        let closed = "that were closed before they could be identified";
        match self {
            GapKind::Advice => format!(
                "lacks {} of posix_fadvise or readahead on files {closed}, so that these files may \
                 be read differently",
                plural(count, "call")
            ),
            GapKind::ReadPages => {
                format!("lacks {} or more of files {closed}", plural(count, "read"))
            }
            GapKind::TouchedPages => format!(
                "may lack the touches of up to {}, which were mapped together with others",
                plural(count, "page")
            ),
            GapKind::LockedPages => format!(
                "lacks the touches of {} that the program locked in memory (mlock)",
                plural(count, "page")
            ),
            GapKind::SystemCalls => "has no reads, no advice and no munmap of the program, which \
                                     only root can record"
                .to_string(),
            GapKind::Unknown(number) => {
                format!("lacks something of kind {number}, which this version does not know")
            }
        }
    }
}

/// "`count` `noun`s `which` are `became`"; `None` if `count` is 0.
fn count_text(count: u64, noun: &str, which: &str, became: &str) -> Option<String> {
    let which = if which.is_empty() { String::new() } else { format!(" {which}") };
    let is_are = if count == 1 { "is" } else { "are" };
    (count > 0).then(|| format!("{}{which} {is_are} {became}", plural(count, noun)))
}

/// `36.2 MiB`.
fn shown_bytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
}

fn plural(count: u64, noun: &str) -> String {
    match (count, noun.split_once(' ')) {
        (1, _) => format!("1 {noun}"),
        (_, Some((first, rest))) => format!("{count} {first}s {rest}"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// The number of files with the first few names; `None` without files.
fn names_text(names: &[String]) -> Option<String> {
    let shown = names.iter().take(MAX_NAMES).map(|name| format!("'{name}'")).collect::<Vec<_>>();
    let rest = match names.len().saturating_sub(MAX_NAMES) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    let files = plural(names.len() as u64, "file");
    (!names.is_empty()).then(|| format!("{files} ({}{rest})", shown.join(", ")))
}
