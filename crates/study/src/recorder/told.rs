//! What is said of a recording that was made.

use std::collections::BTreeSet;

use filemap_attach::MOST_OPEN;
use filemap_job::format_size;
use filemap_recording::Totals;

use super::asked::Asked;
use super::{Recorded, drop_cached};

impl<W> Recorded<W> {
    /// Why the recording that is in the file `name`, with these totals, may not be whole; `None`
    /// where it is. What came too early is dropped, for the next try.
    pub fn lacks(&self, name: &str, totals: Totals) -> Option<String> {
        let lost = totals.lost + self.unknown;
        let (late, late_pages) = self.followed.late();
        let (stayed, not_taken) = self.followed.stayed();
        Some(if lost > 0 {
            format!(
                "the recording in '{name}' is not whole, as {lost} events or more were lost; run \
                 it again on a machine that does less"
            )
        } else if !self.is_whole {
            format!(
                "the recording in '{name}' may lack touches, as somebody has changed fault-around \
                 meanwhile; run it again alone"
            )
        } else if let Some(refused) = self.followed.refused() {
            format!(
                "the recording in '{name}' lacks touches of pages that came with others, as a \
                 process was not made to read single pages: {refused}"
            )
        } else if late > 0 {
            self.files.iter().for_each(drop_cached);
            let pages = match late_pages {
                0 => "pages".to_string(),
                1 => "a page".to_string(),
                pages => format!("{pages} pages"),
            };
            format!(
                "the recording in '{name}' may lack touches: {pages} of {late} of its mappings came \
                 with others before they could be read one at a time; run it again"
            )
        } else if let Some(error) = not_taken {
            format!(
                "the recording in '{name}' lacks touches of pages that were touched before: {error}"
            )
        } else if stayed > 0 {
            format!(
                "the recording in '{name}' may lack touches: {stayed} times a page stayed in its \
                 process while more than {MOST_OPEN} others were touched, as another mapping has \
                 it, it was written to or locked, or the machine is too busy"
            )
        } else {
            return None;
        })
    }

    /// Which mappings have not got their advice back, where there are some.
    pub fn left_advised(&self) -> Option<String> {
        let pids: BTreeSet<u32> = self.left.iter().map(|(pid, _)| *pid).collect();
        let flags: String = pids.iter().map(|pid| format!(" --pid {pid}")).collect();
        (!pids.is_empty()).then(|| {
            format!(
                "{} mappings stay advised MADV_RANDOM, as no thread of their process could be \
                 held; run filemap govern --release{flags}",
                self.left.len()
            )
        })
    }
}

impl Asked {
    /// What is said where no touch was recorded.
    pub fn found_nothing(&self) -> String {
        let least = format_size(self.wanted.min_bytes);
        let files =
            if self.wanted.patterns.is_empty() { "" } else { " whose path matches --files" };
        format!(
            "no touch of a mapped page was recorded; files of {least} (--min-size) or more{files} \
             are, on a disk, and pages that nobody else has in use"
        )
    }
}
