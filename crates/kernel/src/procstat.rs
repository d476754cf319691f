//! Counters of this process and of the machine, and other text in procfs and sysfs.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Sub;
use std::path::Path;

use crate::Error;

/// Page faults of a thread, as counted by `getrusage`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Served without waiting for I/O.
    pub minor: u64,
    /// Faults that waited for I/O.
    pub major: u64,
}

impl Faults {
    /// Faults of the calling thread so far.
    pub fn current_thread() -> Self {
        // SAFETY: the structure is plain integers, for which all zeros is a value; it is filled
        // by a call that cannot fail for RUSAGE_THREAD.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
            usage
        };
        Faults { minor: usage.ru_minflt as u64, major: usage.ru_majflt as u64 }
    }
}

impl Sub for Faults {
    type Output = Faults;
    fn sub(self, earlier: Faults) -> Faults {
        Faults { minor: self.minor - earlier.minor, major: self.major - earlier.major }
    }
}

/// `read_bytes` in the text of `/proc/PID/io`: bytes read from storage on behalf of the process.
pub fn read_bytes(io: &str) -> Option<u64> {
    io.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.trim().parse().ok())
}

/// A snapshot of the machine's event and page counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmStat(BTreeMap<String, i64>);

impl VmStat {
    /// Reads `/proc/vmstat`.
    pub fn now() -> Result<Self, Error> {
        VmStat::read(Path::new("/proc/vmstat"))
    }

    /// Reads a file of lines `name value`, such as a memory cgroup's `memory.stat`.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(|error| Error::os("read", path, error))?;
        Ok(VmStat::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.trim().parse().ok()?))
        });
        VmStat(pairs.collect())
    }

    /// The value of a counter, if this kernel has it.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }

    /// Changes since `earlier`: the counters that differ, and by how much.
    pub fn since(&self, earlier: &VmStat) -> VmStat {
        let changes = self.0.iter().filter_map(|(name, value)| {
            let change = value - earlier.get(name)?;
            (change != 0).then(|| (name.clone(), change))
        });
        VmStat(changes.collect())
    }

    /// All counters by name.
    pub fn into_map(self) -> BTreeMap<String, i64> {
        self.0
    }
}

/// The word in brackets, which is the current setting.
pub(crate) fn selected_word(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_has_changed_counters() {
        let before = VmStat::parse("pgfault 10\npgmajfault 3\nnr_free_pages 50\nodd\n");
        let after = VmStat::parse("pgfault 12\npgmajfault 3\nnr_free_pages 40\nnew 1\n");
        let change = after.since(&before);
        let expected = [("nr_free_pages".to_owned(), -10), ("pgfault".to_owned(), 2)];
        assert_eq!(change.into_map(), expected.into());
        assert_eq!(after.get("pgmajfault"), Some(3));
    }

    #[test]
    fn parses_read_bytes() {
        assert_eq!(read_bytes("rchar: 1\nread_bytes: 4096\nwrite_bytes: 0\n"), Some(4096));
        assert_eq!(read_bytes("rchar: 1\n"), None);
    }

    #[test]
    fn counts_faults_of_this_thread() {
        let before = Faults::current_thread();
        // More than the allocator keeps of memory that other tests have used and freed.
        let pages = std::hint::black_box(vec![1u8; 40 << 20]);
        assert!((Faults::current_thread() - before).minor > 0, "{}", pages.len());
    }

    #[test]
    fn finds_word_in_brackets() {
        assert_eq!(selected_word("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(selected_word("nothing"), None);
    }
}
