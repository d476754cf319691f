//! Statistics of a governor by process and mapping.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// Statistics of a governor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GovernStatistics {
    /// Process images with a mapping to govern, by PID and image number.
    pub processes: Vec<ProcessStatistics>,
    /// The action taken for each file, and its reason.
    pub files: Vec<FileStatistics>,
    /// Images beyond the reporting limit.
    pub unreported_processes: u64,
    /// The sum over the mappings of these, if there are any.
    pub unreported: Option<MappingStatistics>,
    /// Records that the kernel dropped because a ring buffer was full.
    pub lost_records: u64,
    /// Pages of readahead requests that were dropped because the device did not keep up.
    pub dropped_pages: u64,
}

/// The action taken for a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FileDone")]
pub struct FileStatistics {
    /// Its path.
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    /// The action and its reason, as a phrase.
    pub done: String,
}

/// Statistics of one process image; each execve(2) begins another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessStatistics {
    /// Its PID.
    pub pid: u32,
    /// Index among the reported images of this PID, from 0.
    pub image: u32,
    /// Whether the process still ran this image at the last check.
    pub is_running: bool,
    /// Reported major faults in any mapping.
    pub major_faults: u64,
    /// Mappings beyond the limit on governed mappings.
    pub mappings_left_alone: u64,
    /// The last reason why a mapping could not be governed.
    pub reason: Option<String>,
    /// Its governed mappings.
    pub mappings: Vec<MappingStatistics>,
}

impl ProcessStatistics {
    /// Whether there is nothing to report: no fault, call or stop, and no obstacle.
    pub fn is_empty(&self) -> bool {
        let is_idle = |own: &MappingStatistics| {
            own.major_faults == 0 && own.calls == 0 && own.stopped_ns == 0
        };
        self.mappings_left_alone == 0 && self.reason.is_none() && self.mappings.iter().all(is_idle)
    }
}

/// State of a mapping in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "State")]
pub enum MappingState {
    /// Governed.
    Governed,
    /// Advised MADV_RANDOM by the program itself, and read ahead by the governor.
    OwnAdvice,
    /// Watched, without advice of the governor.
    Watched,
    /// Governed until it was unmapped or its process ended.
    Ended,
    /// Formerly governed, advice restored.
    #[serde(rename = "given-back")]
    Restored,
}

impl MappingState {
    /// The name of the state in records.
    pub fn name(self) -> &'static str {
        match self {
            MappingState::Governed => "governed",
            MappingState::OwnAdvice => "own-advice",
            MappingState::Watched => "watched",
            MappingState::Ended => "ended",
            MappingState::Restored => "given-back",
        }
    }
}

/// Statistics of a mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MappingStatistics {
    /// Path of its file; null in the sum of several ended mappings.
    #[serde(serialize_with = "path_as_text")]
    pub path: Option<PathBuf>,
    /// Number of mappings in this entry.
    pub mappings: u64,
    /// Its state.
    pub state: MappingState,
    /// Its address.
    #[serde(rename = "start")]
    pub address: u64,
    /// Its length in bytes.
    #[serde(rename = "bytes")]
    pub length_bytes: u64,
    /// Offset in its file, in bytes.
    pub offset_bytes: u64,
    /// Major faults in it.
    #[serde(rename = "faults")]
    pub major_faults: u64,
    /// Major faults in it before it was governed.
    #[serde(skip)]
    pub early_faults: u64,
    /// Bytes requested by readahead, not counting the pages that faulted.
    #[serde(rename = "advised_bytes")]
    pub asked_bytes: u64,
    /// Readahead calls.
    pub calls: u64,
    /// How long threads of the program were stopped to advise it, in nanoseconds.
    pub stopped_ns: u64,
}

impl MappingStatistics {
    /// Adds `other` to this sum, which is of no single mapping.
    pub(crate) fn add(&mut self, other: &MappingStatistics) {
        self.mappings += other.mappings;
        self.major_faults += other.major_faults;
        self.early_faults += other.early_faults;
        self.asked_bytes += other.asked_bytes;
        self.calls += other.calls;
        self.stopped_ns += other.stopped_ns;
    }

    /// The same counts as a sum, without the place of the mapping.
    pub(crate) fn without_place(&self) -> MappingStatistics {
        MappingStatistics {
            path: None,
            address: 0,
            length_bytes: 0,
            offset_bytes: 0,
            ..self.clone()
        }
    }
}

/// Serializes a path as text, with replacement characters for invalid UTF-8.
fn path_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// Likewise for a path that may be missing.
fn path_as_text<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.display().to_string()).serialize(serializer)
}
