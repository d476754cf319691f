//! What is run for the series, and how long.

use filemap_job::folio_ops::PMD_BYTES;
use filemap_job::{DEFAULT_SEED, EngineKind, FolioOps};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Sizes of folios: the control, then those that were published.
const SIZES: [u64; 9] =
    [4 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, PMD_BYTES];

/// Those of a brief form.
const FEW_SIZES: [u64; 3] = [16 * KIB, 128 * KIB, PMD_BYTES];

/// How long the report is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Among all series: a second or two. Times are not judged.
    Brief,
    /// By name: an eighth of the published memory.
    Short,
    /// As published.
    Full,
}

impl Form {
    /// The form of a report that `is_named`, and is in full or not.
    pub fn of(full: bool, is_named: bool) -> Form {
        match (full, is_named) {
            (true, _) => Form::Full,
            (false, true) => Form::Short,
            (false, false) => Form::Brief,
        }
    }

    /// What is run.
    pub(super) fn job(self) -> FolioOps {
        let (bytes, runs) = match self {
            Form::Brief => (16 * MIB, 5),
            Form::Short => (128 * MIB, 7),
            Form::Full => (1024 * MIB, 9),
        };
        let sizes: &[u64] = if self == Form::Brief { &FEW_SIZES } else { &SIZES };
        FolioOps {
            engine: EngineKind::Model,
            runs,
            seed: DEFAULT_SEED,
            bytes,
            folio_bytes: sizes.to_vec(),
        }
    }

    /// Whether times are judged: those of a brief form are too few and too short.
    pub(super) fn judges_times(self) -> bool {
        self != Form::Brief
    }
}
