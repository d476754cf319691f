//! Jobs and their records.
//!
//! A [`JobFlags`] is a job given by flags, or by a job file without tables; a [`JobSpec`] is a
//! job file with tables. [`JobFlags::validate`] and [`JobSpec::validate`] turn them into a
//! [`Job`], whose values are resolved, aligned and within [`bounds`]. An [`Engine`] runs jobs, and
//! [`Record::from_job_runs`] makes a record of the result.
//!
//! This crate does no I/O and makes no system calls: the caller reads files and passes in their
//! contents.
#![forbid(unsafe_code)]

pub mod accesses;
pub mod advice;
pub mod bounds;
mod command;
pub mod elf;
pub mod engine;
mod error;
pub mod file_contents;
pub mod flags;
pub mod flushes;
pub mod folio_ops;
mod governed;
pub mod job;
mod job_file;
mod job_flags;
mod limits;
mod log_line;
mod lowering;
mod name;
mod origins;
pub mod parts;
mod phase_spec;
mod phases;
pub mod program;
pub mod random;
pub mod record;
pub mod schema;
mod seed;
pub mod size;
mod skewed;
mod spread;
mod start;
mod trace_kinds;
pub mod trace_view;
mod validate;
mod value;
pub mod waits;
pub mod workload;
mod xorshift;

pub use accesses::{Accesses, Read, Reads, parse_accesses};
pub use elf::{Elf, Segment};
pub use engine::{Engine, ReadyJob};
pub use error::Error;
pub use filemap_core::address::mapping::{Split, SplitProt};
pub use filemap_core::address::vma::{Advice, HugeHint, ReadHint};
pub use flags::{Flag, FlagScope, Group, JobFlags};
pub use folio_ops::{FolioOps, FolioOpsRecord, FolioOpsRun, FolioOpsSpec};
pub use job::Job;
pub use log_line::{LogLine, TracedLine};
pub use origins::{KeyLines, Origins};
pub use parts::{
    AccessList, EngineKind, File, Filesystem, Image, Machine, Mapping, Pattern, Phase, merge_ranges,
};
pub use phase_spec::PhaseSpec;
pub use program::JobSpec;
pub use record::{
    Cached, CachedSummary, Counters, FileRun, FileSummary, JobRuns, MappingRun, PerCounter,
    PhaseRun, Record, Run, Summary, ThreadRun,
};
pub use size::{SizeText, format_size, parse_count, parse_duration_ns, parse_size};
pub use spread::Spread;
pub use start::Start;
pub use trace_kinds::{ShownKind, ShownKinds};
pub use trace_view::{ShownByFile, ShownLog};
pub use value::{ValueKind, shell_word};
pub use waits::Wait;
pub use workload::Workload;
pub use xorshift::{DEFAULT_SEED, seeds, xorshift64};
