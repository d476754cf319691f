//! Mappings are given back to the kernel: their advice is restored.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_attach::process::{ReadaheadMode, VmaAdvice, maps_with_advice};
use filemap_attach::{MappedRange, MemoryAdvice, Refusal, advise_any};

use crate::journal::StaleJournal;
use crate::range::GovernedRange;

/// How long it is tried.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long nothing is tried after all threads were where they cannot be held.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// A mapping whose advice could not be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrestoredMapping {
    /// The process.
    pub pid: u32,
    /// What is mapped.
    pub range: MappedRange,
    /// Why, as the end of a sentence.
    pub reason: String,
}

/// Restores the advice of `ranges`, where it is RANDOM and the same file is mapped yet. Returns
/// those of which it could not be.
pub fn restore(ranges: Vec<(u32, MappedRange)>) -> Vec<UnrestoredMapping> {
    let mut pids: Vec<u32> = ranges.iter().map(|(pid, _)| *pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let mut left: Vec<UnrestoredMapping> = Vec::new();
    for pid in pids {
        let own = ranges.iter().filter(|(of, _)| *of == pid);
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

/// Tries once for each of `left`, which are in order of processes. Returns what is left then.
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

/// Restores what `maps` say of `range` that is RANDOM.
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
            // It is looked at again: it may have been given back, or mapped anew.
            Err(refusal) => return Err(refusal.to_string()),
        }
    }
    Ok(())
}

/// Restores the advice of mappings of the processes `pids` that governors have left which have
/// ended, by what `directory` has of them. Returns how many there were, and those of which it could
/// not be restored.
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
        // What cannot be written is tried again the next time.
        let _ = journal.write();
        left.extend(still);
    }
    (found, left)
}
