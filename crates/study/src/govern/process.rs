//! What was done for one process, and for several.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What tells of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "their names say it")]
pub enum Observer {
    PerfEvent,
    /// Looks at the page tables.
    Pagemap,
}

/// What became of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "their names say it")]
pub enum State {
    Governed,
    /// The program has advised it RANDOM itself.
    OwnAdvice,
    /// It ended, or its process.
    Ended,
    /// Its advice was restored.
    GivenBack,
}

/// What was done for one image of a process: each exec begins another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Process {
    /// Its number.
    pub pid: u64,
    /// Which of its images, from 0 on: those that had something to tell.
    pub image: u32,
    /// Whether it still ran this image when it was looked at.
    pub running: bool,
    pub observer: Observer,
    /// Why a mapping of it is not governed; the last reason.
    pub reason: Option<String>,
    /// Major faults that were told, in whatever mapping.
    pub faults_reported: u64,
    /// Major faults in governed mappings before they were governed.
    pub faults_missed: u64,
    /// Mappings that were left alone, since more are governed than there is room for.
    pub mappings_left_alone: u64,
    /// Its mappings, the governed ones and the largest first.
    pub mappings: Vec<Mapping>,
}

/// What was done for one mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Mapping {
    /// Its file; null where this stands for several mappings that have ended.
    pub path: Option<String>,
    /// How many mappings it stands for.
    pub mappings: u64,
    pub state: State,
    /// Its address.
    pub start: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Where it begins in its file, in bytes.
    pub offset_bytes: u64,
    /// Major faults in it.
    pub faults: u64,
    /// Bytes that the kernel was asked for beside the pages that faulted.
    pub advised_bytes: u64,
    /// Calls that asked.
    pub calls: u64,
    /// How long a thread of the program was stopped to advise it.
    pub stopped_ns: u64,
    /// Bytes of it that are mapped, or were when it ended; null where nobody could look.
    pub mapped_bytes: Option<u64>,
    /// Bytes that were asked for and are not mapped.
    pub wasted_bytes: Option<u64>,
}

/// What was done for several processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Mappings that were governed, for some time at least.
    pub mappings: u64,
    /// Major faults in them.
    pub faults: u64,
    /// Bytes that the kernel was asked for beside the pages that faulted.
    pub advised_bytes: u64,
    /// How long threads were stopped.
    pub stopped_ns: u64,
    /// Bytes that were asked for and not mapped, of those mappings of which it is known.
    pub wasted_bytes: u64,
    /// Major faults in them before they were governed.
    pub faults_missed: u64,
}

impl State {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            State::Governed => "governed",
            State::OwnAdvice => "own-advice",
            State::Ended => "ended",
            State::GivenBack => "given-back",
        }
    }
}

impl Mapping {
    /// Sets what is mapped of it, and with that what was asked for in vain, for pages of
    /// `page_bytes`: each fault brought one page beside the advice.
    pub fn with_mapped(mut self, mapped_bytes: Option<u64>, page_bytes: u64) -> Self {
        let asked = self.advised_bytes.saturating_add(self.faults.saturating_mul(page_bytes));
        self.mapped_bytes = mapped_bytes;
        self.wasted_bytes = mapped_bytes.map(|mapped| asked.saturating_sub(mapped));
        self
    }
}

impl Process {
    /// Puts the governed mappings first, and the larger before the smaller.
    pub fn sort(&mut self) {
        self.mappings.sort_by_key(|mapping| {
            let ended = mapping.state != State::Governed;
            (mapping.path.is_none(), ended, u64::MAX - mapping.bytes, mapping.start)
        });
    }
}

impl Totals {
    /// Those of `processes`.
    pub fn of(processes: &[Process]) -> Totals {
        let mut totals = Totals::default();
        for process in processes {
            totals.faults_missed += process.faults_missed;
            for mapping in &process.mappings {
                totals.mappings += mapping.mappings;
                totals.faults += mapping.faults;
                totals.stopped_ns += mapping.stopped_ns;
                totals.advised_bytes += mapping.advised_bytes;
                totals.wasted_bytes += mapping.wasted_bytes.unwrap_or(0);
            }
        }
        totals
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn mapping(path: &str, state: State, bytes: u64) -> Mapping {
        Mapping {
            path: Some(path.to_string()),
            mappings: 1,
            state,
            start: 0x7f00_0000_0000,
            bytes,
            offset_bytes: 0,
            faults: 3,
            advised_bytes: 40960,
            calls: 2,
            stopped_ns: 1,
            mapped_bytes: None,
            wasted_bytes: None,
        }
    }

    pub fn process(mappings: Vec<Mapping>) -> Process {
        Process {
            pid: 7,
            image: 0,
            running: true,
            observer: Observer::PerfEvent,
            reason: None,
            faults_reported: 9,
            faults_missed: 1,
            mappings_left_alone: 0,
            mappings,
        }
    }

    #[test]
    fn what_is_not_mapped_was_asked_for_in_vain() {
        let wasted =
            |mapped| mapping("a", State::Ended, 1 << 24).with_mapped(mapped, 4096).wasted_bytes;
        assert_eq!(wasted(None), None);
        assert_eq!(wasted(Some(0)), Some(13 * 4096));
        assert_eq!(wasted(Some(12 * 4096)), Some(4096));
        assert_eq!(wasted(Some(1 << 24)), Some(0), "faults map pages around them too");
    }

    #[test]
    fn large_governed_mappings_come_first() {
        let of = |path, state, bytes| mapping(path, state, bytes).with_mapped(Some(4096), 4096);
        let mut others = of("", State::Ended, 0);
        others.path = None;
        let mut process = process(vec![
            others,
            of("ended", State::Ended, 9 << 20),
            of("small", State::Governed, 1 << 20),
            of("large", State::Governed, 2 << 20),
        ]);
        process.sort();
        let paths: Vec<_> = process.mappings.iter().map(|of| of.path.as_deref()).collect();
        assert_eq!(paths, [Some("large"), Some("small"), Some("ended"), None]);
        let totals = Totals::of(&[process.clone(), process]);
        assert_eq!((totals.mappings, totals.faults, totals.faults_missed), (8, 24, 2));
        assert_eq!((totals.advised_bytes, totals.wasted_bytes), (8 * 40960, 8 * 12 * 4096));
    }
}
