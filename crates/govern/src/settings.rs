//! What is governed.

use std::ffi::OsString;
use std::path::Path;

use filemap_attach::MappedRange;
use filemap_attach::file::matches_any;
use filemap_policy::Costs;

use crate::costs;

/// What is governed, and how.
#[derive(Clone, Debug)]
pub struct GovernSettings {
    /// Bytes of the smallest mapping that is governed.
    pub min_bytes: u64,
    /// Bytes of the largest window that a stream reads ahead; with 0 nothing is read ahead.
    pub max_window_bytes: u64,
    /// Patterns of paths, as for fnmatch(3). Empty: all files.
    pub include: Vec<OsString>,
    /// Patterns of paths that are left alone.
    pub exclude: Vec<OsString>,
    /// Nothing is advised and nothing read.
    pub observe_only: bool,
    /// What reads cost, until it is measured.
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
            costs: costs::DEFAULT_COSTS,
        }
    }
}

impl GovernSettings {
    /// Whether `range` can be governed, as far as its own words tell: its file is not looked at.
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
    fn large_read_only_mappings_of_chosen_files_are_taken() {
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
