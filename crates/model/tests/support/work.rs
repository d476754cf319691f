//! The amount of work in a job, independent of its cache.

use filemap_core::decision::{Decision, Log};

/// Counts what a job did that no model could do for many pages at once.
///
/// Each of these counts one:
///
/// - an access, of a page by a mapping or of any number of bytes by `read(2)`;
/// - a window that was asked for, of any number of pages;
/// - a run of folios of one size that entered the cache, and a run of pages that left it: a window
///   is several where pages that are cached lie in it, and its pages leave as several where some
///   stay since they went another way than their neighbours;
/// - a fault that mapped a range around its page, a huge page, and a page that was copied;
/// - a wait for a page that is being read: a window arrives request by request, and who reads all
///   of it waits for each.
///
/// These are in the log, which does not depend on how a cache stores pages. Not in it, and so not
/// counted, is what happens to pages that stay: that they become active, are mapped, are used, or
/// go round a list because they are used, held or locked. Accesses and mapped ranges pay for most
/// of this, as a page is in use only once for each of them. What goes round the list because it is
/// being read, and no access pays for, is out of proportion by this measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    accesses: u64,
    windows: u64,
    runs: u64,
    mapped: u64,
    waits: u64,
}

impl Work {
    /// All of it.
    pub fn units(&self) -> u64 {
        self.accesses + self.windows + self.runs + self.mapped + self.waits
    }
}

impl Log for Work {
    fn record(&mut self, decision: Decision) {
        match decision {
            Decision::Readahead { .. } => self.windows += 1,
            Decision::Added { .. } | Decision::Evicted { .. } => self.runs += 1,
            Decision::MapPages { .. } | Decision::MapHuge { .. } | Decision::Copied { .. } => {
                self.mapped += 1;
            }
            Decision::Waited { .. } => self.waits += 1,
            _ => {}
        }
    }

    fn access(&mut self, number: u64) {
        // Threads come back to an access that they started before.
        self.accesses = self.accesses.max(number + 1);
    }
}
