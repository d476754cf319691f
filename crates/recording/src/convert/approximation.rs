//! What a job says otherwise than the recording that it was made of.

use std::fmt;

use crate::header::{Header, Mode, NO_CLOCK};
use crate::reader::Truncated;

/// Something that the job of a recording leaves out or says otherwise, as a sentence without its
/// full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approximation(String);

impl fmt::Display for Approximation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is to be said of a recording, each thing once with how often it came.
#[derive(Debug, Default)]
pub struct Said {
    pub moves: u64,
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
    mode: Option<Mode>,
    has_no_waits: bool,
    resolution_ns: u64,
    open_pages: u64,
    lost: u64,
    truncated: Option<Truncated>,
}

/// Names of a list that are told.
const MOST_NAMES: usize = 3;

impl Said {
    pub fn header(&mut self, header: &Header) {
        self.mode = Some(header.mode);
        self.resolution_ns = header.resolution_ns;
        self.open_pages = header.open_pages;
        self.has_no_waits = header.clock == NO_CLOCK;
    }

    pub fn lost(&mut self, events: u64) {
        self.lost = events;
    }

    pub fn truncated(&mut self, truncated: Option<Truncated>) {
        self.truncated = truncated;
    }

    /// All of it, what matters most first.
    pub fn all(&self) -> Vec<Approximation> {
        let mut all = Vec::new();
        let mut say = |is_so: bool, text: String| {
            if is_so {
                all.push(Approximation(text));
            }
        };
        if let Some(Truncated { at, events }) = self.truncated {
            let events = many(events, "event");
            say(true, format!("the recording is cut off at byte {at}; it has {events} until then"));
        }
        say(self.lost > 0, format!("{} were lost while recording", many(self.lost, "event")));
        say(
            self.mode == Some(Mode::Import),
            "the recording was imported and shows faults only: what fault-around mapped, reads, \
             advice, think times, and what was cached before are not in it; with major faults \
             only, a scan has few touches"
                .to_string(),
        );
        say(
            self.mode == Some(Mode::Faults),
            "the recording shows faults only: pages that fault-around or a large folio has mapped \
             beside them are not in it"
                .to_string(),
        );
        say(self.has_no_waits, "the recording has no think times".to_string());
        say(
            matches!(self.mode, Some(Mode::FirstTouches | Mode::Faults)),
            "the recording has the first touch of each page only, so that pages which a memory \
             limit evicts are not read again"
                .to_string(),
        );
        say(
            self.mode == Some(Mode::Changes) && self.open_pages > 0,
            format!(
                "the recording has each change of page, but maybe not the touch of a page that is \
                 among the last {} that its process touched",
                self.open_pages
            ),
        );
        say(
            self.resolution_ns > 0,
            format!("touches were looked for every {} ns only", self.resolution_ns),
        );
        say(
            !self.gone.is_empty(),
            format!(
                "the size recorded is taken for {}: not there any more, or not where pages can be \
                 counted",
                names(&self.gone)
            ),
        );
        say(
            !self.unnamed.is_empty(),
            format!(
                "the size recorded is taken for {}: no job can name a path that is not UTF-8",
                names(&self.unnamed)
            ),
        );
        say(
            !self.changed.is_empty(),
            format!("the size recorded is taken for {} of another size now", names(&self.changed)),
        );
        say(
            !self.twins.is_empty(),
            format!(
                "other names of files that the job has are files of their own: {}",
                names(&self.twins)
            ),
        );
        say(
            !self.grown.is_empty(),
            format!("the largest size is taken from the beginning for {}", names(&self.grown)),
        );
        say(
            self.truncations > 0,
            format!(
                "{} of a file {} left out",
                many(self.truncations, "change of the size"),
                is_are(self.truncations)
            ),
        );
        say(
            self.processes > 1,
            format!("its {} processes are threads with mappings of their own", self.processes),
        );
        say(
            self.inherited_mappings > 0,
            format!(
                "{} that a fork handed on {} there from the beginning, without advice from before",
                many(self.inherited_mappings, "mapping"),
                is_are(self.inherited_mappings)
            ),
        );
        say(
            self.shared_mappings > 0,
            format!(
                "{} that several threads use, make or take away {} there from the beginning to \
                 the end",
                many(self.shared_mappings, "mapping"),
                is_are(self.shared_mappings)
            ),
        );
        say(self.threads > 1, format!("its {} threads begin together", self.threads));
        say(self.has_think_times, "think times are the mean of each phase".to_string());
        say(
            self.moves > 0,
            format!(
                "{} of a mapping {} left out; it has its largest length from the beginning",
                many(self.moves, "mremap"),
                is_are(self.moves)
            ),
        );
        say(
            self.protections > 0,
            format!(
                "{} {} left out, with the VMAs that it makes",
                many(self.protections, "mprotect"),
                is_are(self.protections)
            ),
        );
        say(
            self.parts > 0,
            format!(
                "{} of a part of a mapping {} left out",
                many(self.parts, "munmap"),
                is_are(self.parts)
            ),
        );
        say(
            self.other_advice > 0,
            format!(
                "{} of kinds that no job has {} left out",
                many(self.other_advice, "call of madvise or fadvise"),
                is_are(self.other_advice)
            ),
        );
        say(
            self.shared_writes > 0,
            format!(
                "{} to shared mappings {} taken as reads, as such writes are not modelled",
                many(self.shared_writes, "write"),
                is_are(self.shared_writes)
            ),
        );
        all
    }
}

fn is_are(count: u64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn many(count: u64, what: &str) -> String {
    match (count, what.split_once(' ')) {
        (1, _) => format!("1 {what}"),
        (_, Some((first, rest))) => format!("{count} {first}s {rest}"),
        (_, None) => format!("{count} {what}s"),
    }
}

/// How many files, and the first of their names.
fn names(names: &[String]) -> String {
    let shown = names.iter().take(MOST_NAMES).map(|name| format!("'{name}'")).collect::<Vec<_>>();
    let rest = match names.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    format!("{} ({}{rest})", many(names.len() as u64, "file"), shown.join(", "))
}
