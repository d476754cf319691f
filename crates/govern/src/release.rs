//! Restores the advice of governed mappings.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_attach::process::{ReadaheadMode, VmaAdvice, maps_with_advice};
use filemap_attach::{MappedRange, MemoryAdvice, Refusal, advise_any};

use crate::journal::StaleJournal;
use crate::range::GovernedRange;

/// How long restoring is retried.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause after an attempt in which no thread could be held.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// A mapping whose advice could not be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrestoredMapping {
    /// Its PID.
    pub pid: u32,
    /// The mapping.
    pub range: MappedRange,
    /// Why the last attempt failed, as the end of a sentence.
    pub reason: String,
}

/// Sets `ranges` (PID and mapping) back to MADV_NORMAL, where they are still MADV_RANDOM and map
/// the same file. Returns those where that failed.
pub fn restore(ranges: Vec<(u32, MappedRange)>) -> Vec<UnrestoredMapping> {
    let mut pids: Vec<u32> = ranges.iter().map(|(pid, _)| *pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let mut left: Vec<UnrestoredMapping> = Vec::new();
    for pid in pids {
        let own = ranges.iter().filter(|(owner, _)| *owner == pid);
        left.extend(own.map(|(pid, range)| UnrestoredMapping {
            pid: *pid,
            range: range.clone(),
            reason: String::new(),
        }));
    }
    let deadline = Instant::now() + RESTORE_TIMEOUT;
    loop {
        left = try_restore(left, deadline);
        if left.is_empty() || Instant::now() >= deadline {
            return left;
        }
        sleep(RETRY_INTERVAL);
    }
}

/// Tries each of `left` once; they are grouped by process, so that smaps is read once per process.
/// Returns those that failed.
fn try_restore(left: Vec<UnrestoredMapping>, deadline: Instant) -> Vec<UnrestoredMapping> {
    let mut still = Vec::new();
    let mut maps: Option<(u32, Vec<(MappedRange, VmaAdvice)>)> = None;
    for mut own in left {
        if own.reason.is_empty() || Instant::now() < deadline {
            if maps.as_ref().is_none_or(|(pid, _)| *pid != own.pid) {
                maps = Some((own.pid, maps_with_advice(own.pid).unwrap_or_default()));
            }
            let of_process = maps.as_ref().map_or(&[][..], |(_, maps)| maps);
            match restore_mapping(own.pid, &own.range, of_process) {
                Ok(()) => continue,
                Err(reason) => own.reason = reason,
            }
        }
        still.push(own);
    }
    still
}

/// Restores the parts of `range` that are MADV_RANDOM according to `maps`.
fn restore_mapping(
    pid: u32,
    range: &MappedRange,
    maps: &[(MappedRange, VmaAdvice)],
) -> Result<(), String> {
    let whole = GovernedRange::new(range.clone(), 0);
    let random = maps.iter().filter(|(_, kept)| kept.readahead == ReadaheadMode::Random);
    for part in random.filter_map(|(mapped, _)| whole.overlap(mapped)) {
        match advise_any(pid, pid, &part, MemoryAdvice::Normal) {
            Ok(_) | Err(Refusal::Unfinished { .. } | Refusal::Gone { .. }) => {}
            // The retry reads the mappings again: they may have been restored or replaced
            // meanwhile.
            Err(refusal) => return Err(refusal.to_string()),
        }
    }
    Ok(())
}

/// Restores the mappings of `pids` that are listed in stale journals in `directory`. Returns how
/// many were listed, and those that could not be restored; these stay in their journals.
pub fn release(directory: &Path, pids: &[u32]) -> (usize, Vec<UnrestoredMapping>) {
    let (mut found, mut left) = (0, Vec::new());
    for mut journal in StaleJournal::find(directory) {
        let (own, others) = journal.entries.into_iter().partition(|own| pids.contains(&own.pid));
        let own: Vec<crate::journal::JournalEntry> = own;
        journal.entries = others;
        found += own.len();
        let ranges = own.iter().map(|own| (own.pid, own.range.clone())).collect();
        let still = restore(ranges);
        let is_left = |entry: &crate::journal::JournalEntry| {
            still.iter().any(|own| own.pid == entry.pid && own.range == entry.range)
        };
        journal.entries.extend(own.into_iter().filter(is_left));
        // If the journal cannot be rewritten, the next release tries its entries again.
        let _ = journal.write();
        left.extend(still);
    }
    (found, left)
}
