//! Mappings are given back to the kernel: their advice is restored.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_attach::process::{KeptAdvice, Readahead, advised_maps};
use filemap_attach::{Advice, MappedRange, Refusal, advise_any};

use crate::journal::LeftJournal;
use crate::range::Range;

/// How long it is tried.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long nothing is tried after all threads were where they cannot be held.
const PAUSE: Duration = Duration::from_millis(10);

/// A mapping whose advice could not be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The process.
    pub pid: u32,
    /// What is mapped.
    pub range: MappedRange,
    /// Why, as the end of a sentence.
    pub reason: String,
}

/// Restores the advice of `ranges`, where it is RANDOM and the same file is mapped yet. Returns
/// those of which it could not be.
pub fn restore(ranges: Vec<(u32, MappedRange)>) -> Vec<Left> {
    let mut pids: Vec<u32> = ranges.iter().map(|(pid, _)| *pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let mut left: Vec<Left> = Vec::new();
    for pid in pids {
        let own = ranges.iter().filter(|(of, _)| *of == pid);
        left.extend(own.map(|(pid, range)| Left {
            pid: *pid,
            range: range.clone(),
            reason: String::new(),
        }));
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        left = round(left, deadline);
        if left.is_empty() || Instant::now() >= deadline {
            return left;
        }
        sleep(PAUSE);
    }
}

/// Tries once for each of `left`, which are in order of processes. Returns what is left then.
fn round(left: Vec<Left>, deadline: Instant) -> Vec<Left> {
    let mut still = Vec::new();
    let mut maps: Option<(u32, Vec<(MappedRange, KeptAdvice)>)> = None;
    for mut own in left {
        if own.reason.is_empty() || Instant::now() < deadline {
            if maps.as_ref().is_none_or(|(pid, _)| *pid != own.pid) {
                maps = Some((own.pid, advised_maps(own.pid).unwrap_or_default()));
            }
            let of_process = maps.as_ref().map_or(&[][..], |(_, maps)| maps);
            match give_back(own.pid, &own.range, of_process) {
                Ok(()) => continue,
                Err(reason) => own.reason = reason,
            }
        }
        still.push(own);
    }
    still
}

/// Restores what `maps` say of `range` that is RANDOM.
fn give_back(
    pid: u32,
    range: &MappedRange,
    maps: &[(MappedRange, KeptAdvice)],
) -> Result<(), String> {
    let whole = Range::new(range.clone(), 0);
    let random = maps.iter().filter(|(_, kept)| kept.readahead == Readahead::Random);
    for part in random.filter_map(|(mapped, _)| whole.overlap(mapped)) {
        match advise_any(pid, pid, &part, Advice::Normal) {
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
pub fn release(directory: &Path, pids: &[u32]) -> (usize, Vec<Left>) {
    let (mut found, mut left) = (0, Vec::new());
    for mut journal in LeftJournal::all(directory) {
        let (own, others) = journal.entries.into_iter().partition(|own| pids.contains(&own.pid));
        let own: Vec<crate::journal::Entry> = own;
        journal.entries = others;
        found += own.len();
        let ranges = own.iter().map(|own| (own.pid, own.range.clone())).collect();
        let still = restore(ranges);
        let is_left = |entry: &crate::journal::Entry| {
            still.iter().any(|own| own.pid == entry.pid && own.range == entry.range)
        };
        journal.entries.extend(own.into_iter().filter(is_left));
        // What cannot be written is tried again the next time.
        let _ = journal.write();
        left.extend(still);
    }
    (found, left)
}
