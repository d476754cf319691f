//! What else evicts page cache on this machine, behind the back of a run.

use std::fs;
use std::path::{Path, PathBuf};

/// The DAMON thread that pages out memory which it finds cold, if one is on. It evicts clean pages
/// that no process maps, also with free memory. A file that fits in memory was disturbed when
/// [`evicted`](crate::residency::CacheStat::evicted) is not 0 in the end, or when more was read
/// than is cached (what returns is no longer counted as evicted): repeat such a run.
pub fn damon_pageout() -> Option<PathBuf> {
    damon_pageout_in(Path::new("/sys/kernel/mm/damon/admin/kdamonds"))
}

fn damon_pageout_in(kdamonds: &Path) -> Option<PathBuf> {
    let reads = |path: PathBuf, text: &str| {
        fs::read_to_string(path).is_ok_and(|content| content.trim() == text)
    };
    children(kdamonds).into_iter().find(|kdamond| {
        let schemes = children(&kdamond.join("contexts"))
            .into_iter()
            .flat_map(|context| children(&context.join("schemes")));
        reads(kdamond.join("state"), "on")
            && schemes.into_iter().any(|scheme| reads(scheme.join("action"), "pageout"))
    })
}

fn children(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_running_thread_that_pages_out_counts() {
        let root = std::env::temp_dir().join(format!("filemap-damon-{}", std::process::id()));
        let scheme = root.join("0/contexts/0/schemes/0");
        fs::create_dir_all(&scheme).unwrap();
        let set = |state: &str, action: &str| {
            fs::write(root.join("0/state"), state).unwrap();
            fs::write(scheme.join("action"), action).unwrap();
            damon_pageout_in(&root)
        };
        assert_eq!(set("on\n", "pageout\n"), Some(root.join("0")));
        assert_eq!(set("off\n", "pageout\n"), None);
        assert_eq!(set("on\n", "stat\n"), None);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(damon_pageout_in(&root), None);
    }
}
