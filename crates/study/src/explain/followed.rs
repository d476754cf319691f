//! What is known of one file while a log goes on.

use filemap_core::decision::Decision;
use filemap_core::units::PageIndex;
use filemap_job::Job;
use filemap_job::program::ProgramStep;

use super::pages::Pages;
use super::parts::Parts;
use super::recorder::Recorder;
use super::window::LastWindow;

/// Pages of the largest folio that may reach over the end of a mapping.
const LARGEST_FOLIO_PAGES: u64 = 512;

/// What is known of one file.
pub(super) struct Followed {
    pub(super) pages: Pages,
    pub(super) window: Option<LastWindow>,
}

impl Followed {
    /// What concerns its pages alone.
    pub(super) fn apply(&mut self, decision: Decision) {
        match decision {
            Decision::BasePages { start, size, .. } => {
                if let Some(window) = &mut self.window {
                    window.reach(start, size);
                    self.pages.recorder.iter_mut().for_each(|of| of.reach(start, start + size));
                }
            }
            Decision::Copied { index } => self.pages.touch(index),
            Decision::Evicted { start, pages } => self.pages.evict(start, start + pages),
            _ => {}
        }
    }
}

/// The course of a file, of which these parts are read: windows may reach over their ends, by one
/// window or a folio each.
pub(super) fn recorder(job: &Job, file: usize, parts: &Parts, most_windows: usize) -> Recorder {
    let accesses = job.steps().map(ProgramStep::accesses).fold(0, u64::saturating_add);
    let (from, to) = parts.bounds();
    let slack = job.machine.read_ahead.0.saturating_mul(2) + LARGEST_FOLIO_PAGES;
    let from = PageIndex(from.0.saturating_sub(slack));
    let to = PageIndex(to.0.saturating_add(slack).min(job.file_pages(file).0).max(to.0));
    Recorder::new(accesses, most_windows, from, to)
}
