//! What was done for processes.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// What was done for processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GovernStatistics {
    /// Each image of each process that had a mapping to govern, in order of their beginning.
    pub processes: Vec<ProcessStatistics>,
    /// Images that are not among these, since they are too many.
    pub unreported_processes: u64,
    /// Records that the kernel had no room for.
    pub lost_records: u64,
    /// Reads that were asked for and dropped, since the device was too slow for them.
    pub dropped_pages: u64,
}

/// What was done for one image of a process: each exec begins another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessStatistics {
    /// Its number.
    pub pid: u32,
    /// Which of its images that had something to govern, from 0 on.
    pub image: u32,
    /// Whether it ran this image when it was looked at last.
    pub is_running: bool,
    /// Major faults that were told, in whatever mapping.
    pub major_faults: u64,
    /// Mappings for which there was no room.
    pub mappings_left_alone: u64,
    /// Why a mapping could not be governed; the last reason.
    pub reason: Option<String>,
    /// Its mappings that were governed.
    pub mappings: Vec<MappingStatistics>,
}

impl ProcessStatistics {
    /// Whether nothing was done for it, and nothing stood against that.
    pub fn is_empty(&self) -> bool {
        let is_idle = |own: &MappingStatistics| {
            own.major_faults == 0 && own.calls == 0 && own.stopped_ns == 0
        };
        self.mappings_left_alone == 0 && self.reason.is_none() && self.mappings.iter().all(is_idle)
    }
}

/// What became of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "State")]
pub enum MappingState {
    /// It is governed.
    Governed,
    /// Its advice is the program's own, and reads are made for it.
    OwnAdvice,
    /// It was governed until it ended.
    Ended,
    /// It was governed, and its advice was restored.
    Restored,
}

impl MappingState {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            MappingState::Governed => "governed",
            MappingState::OwnAdvice => "own-advice",
            MappingState::Ended => "ended",
            MappingState::Restored => "given-back",
        }
    }
}

/// What was done for a mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MappingStatistics {
    /// Its file; null where this stands for several mappings that have ended.
    #[serde(serialize_with = "path_as_text")]
    pub path: Option<PathBuf>,
    /// How many mappings it stands for.
    pub mappings: u64,
    /// What became of it.
    pub state: MappingState,
    /// Its address.
    #[serde(rename = "start")]
    pub address: u64,
    /// Its length in bytes.
    #[serde(rename = "bytes")]
    pub length_bytes: u64,
    /// Where it begins in its file, in bytes.
    pub offset_bytes: u64,
    /// Major faults in it.
    #[serde(rename = "faults")]
    pub major_faults: u64,
    /// Major faults in it before it was governed.
    #[serde(skip)]
    pub early_faults: u64,
    /// Bytes that the kernel was asked for beside the pages that faulted.
    #[serde(rename = "advised_bytes")]
    pub asked_bytes: u64,
    /// Calls that asked.
    pub calls: u64,
    /// How long a thread of the program was stopped to advise it.
    pub stopped_ns: u64,
}

/// A path that is no text is written as it is shown.
fn path_as_text<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.display().to_string()).serialize(serializer)
}
