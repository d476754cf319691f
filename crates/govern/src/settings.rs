//! Settings of the governor.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use filemap_attach::MappedRange;
use filemap_attach::file::matches_any;
use filemap_policy::Costs;

use crate::costs;
use crate::history_store::HistoryStore;
use crate::metrics::MetricsFile;
use crate::recorded::GivenPlans;

/// Which mappings are governed, and how.
#[derive(Clone, Debug)]
pub struct GovernSettings {
    /// Minimum size of a governed mapping, in bytes.
    pub min_bytes: u64,
    /// Maximum readahead window of a stream, in bytes; 0 disables readahead.
    pub max_window_bytes: u64,
    /// Patterns of paths to govern, as for fnmatch(3); empty for all files.
    pub include: Vec<OsString>,
    /// Patterns of paths to leave alone; they override `include`.
    pub exclude: Vec<OsString>,
    /// Follow and count only: advise and read nothing.
    pub observe_only: bool,
    /// Where touches are remembered; without it, files are governed from the first touch.
    pub memory: Option<HistoryStore>,
    /// Plans for files that replace their touch histories.
    pub given: Option<Arc<GivenPlans>>,
    /// Time after which a watched file is governed by its touches so far.
    pub watch_time: Duration,
    /// File for metrics, replaced every few seconds.
    pub metrics: Option<MetricsFile>,
    /// Read costs to assume until they are measured.
    pub costs: Costs,
}

impl Default for GovernSettings {
    fn default() -> GovernSettings {
        GovernSettings {
            min_bytes: 16 << 20,
            max_window_bytes: 16 << 20,
            include: Vec::new(),
            exclude: Vec::new(),
            observe_only: false,
            memory: None,
            given: None,
            metrics: None,
            watch_time: Duration::from_secs(60),
            costs: costs::DEFAULT_COSTS,
        }
    }
}

impl GovernSettings {
    /// Whether `range` is eligible by its size, protection and path. The file itself is checked
    /// later.
    pub fn accepts(&self, range: &MappedRange) -> bool {
        let prot = |bit: i32| range.protection & bit.cast_unsigned() != 0;
        let is_read_only =
            prot(libc::PROT_READ) && !prot(libc::PROT_WRITE) && !prot(libc::PROT_EXEC);
        is_read_only
            && range.length_bytes >= self.min_bytes.max(1)
            && range.file.as_ref().is_some_and(|file| self.matches(&file.path))
    }

    fn matches(&self, path: &Path) -> bool {
        let is_included = self.include.is_empty() || matches_any(&self.include, path);
        is_included && !matches_any(&self.exclude, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::tests::mapped;

    #[test]
    fn takes_large_read_only_mappings_of_chosen_files() {
        let mut settings = GovernSettings { min_bytes: 8192, ..GovernSettings::default() };
        let range = |protection: i32| {
            let mut range = mapped(0x10000, 0x2000, 7);
            range.protection = protection.cast_unsigned();
            range
        };
        let (read, write, exec) = (libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC);
        for (protection, taken) in
            [(read, true), (0, false), (read | write, false), (read | exec, false), (write, false)]
        {
            assert_eq!(settings.accepts(&range(protection)), taken, "{protection}");
        }
        assert!(!settings.accepts(&mapped(0x10000, 0x1000, 7)), "it is small");
        assert!(!settings.accepts(&MappedRange { file: None, ..range(read) }));
        for (include, exclude, taken) in [
            ("/data/7", "", true),
            ("/data/*", "*.idx", true),
            ("*", "/data/?", false),
            ("*.idx", "", false),
        ] {
            let list =
                |text: &str| [text].iter().filter(|t| !t.is_empty()).map(OsString::from).collect();
            (settings.include, settings.exclude) = (list(include), list(exclude));
            assert_eq!(settings.accepts(&range(read)), taken, "{include} {exclude}");
        }
    }
}
