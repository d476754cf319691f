//! Other processes that evict page cache on this machine during a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const KDAMONDS: &str = "/sys/kernel/mm/damon/admin/kdamonds";

/// Margin between an eviction and the next run, since an eviction takes a while.
const MARGIN: Duration = Duration::from_millis(300);

/// The DAMON thread that pages out cold memory, if enabled. It evicts clean pages that no process
/// maps, even with free memory. A file that fits in memory was disturbed if
/// [`evicted`](crate::residency::CacheStat::evicted) is not 0 at the end, or if more was read than
/// is cached (a page that returns no longer counts as evicted): repeat such a run.
pub fn damon_pageout() -> Option<PathBuf> {
    damon_pageout_in(Path::new(KDAMONDS))
}

/// How often DAMON's page-out scheme runs, if enabled.
pub fn pageout_interval() -> Option<Duration> {
    pageout_interval_in(Path::new(KDAMONDS))
}

/// How long to wait at `now_ns` so that a run of length `run` ends before the next eviction: the
/// last was at `taken_ns`, and they occur every `interval`. Zero if the run fits in before.
pub fn pause_before(run: Duration, taken_ns: u64, now_ns: u64, interval: Duration) -> Duration {
    let since = Duration::from_nanos(now_ns.saturating_sub(taken_ns));
    let into = Duration::from_nanos((since.as_nanos() % interval.as_nanos().max(1)) as u64);
    if into >= MARGIN && into + run + MARGIN <= interval {
        return Duration::ZERO;
    }
    if into < MARGIN { MARGIN - into } else { interval - into + MARGIN }
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

fn pageout_interval_in(kdamonds: &Path) -> Option<Duration> {
    let context = damon_pageout_in(kdamonds)?.join("contexts/0");
    let us = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(context.join(name)).ok()?;
        text.trim().parse().ok().filter(|&us| us > 0)
    };
    let own = us("schemes/0/apply_interval_us");
    own.or_else(|| us("monitoring_attrs/intervals/aggr_us")).map(Duration::from_micros)
}

fn children(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_running_pageout_scheme() {
        let root = std::env::temp_dir().join(format!("filemap-damon-{}", std::process::id()));
        let scheme = root.join("0/contexts/0/schemes/0");
        fs::create_dir_all(&scheme).unwrap();
        let set = |state: &str, action: &str| {
            fs::write(root.join("0/state"), state).unwrap();
            fs::write(scheme.join("action"), action).unwrap();
            damon_pageout_in(&root)
        };
        assert_eq!(set("on\n", "pageout\n"), Some(root.join("0")));
        let interval = || pageout_interval_in(&root);
        assert_eq!(interval(), None);
        let intervals = root.join("0/contexts/0/monitoring_attrs/intervals");
        fs::create_dir_all(&intervals).unwrap();
        fs::write(intervals.join("aggr_us"), "5000000\n").unwrap();
        fs::write(scheme.join("apply_interval_us"), "0\n").unwrap();
        assert_eq!(interval(), Some(Duration::from_secs(5)));
        fs::write(scheme.join("apply_interval_us"), "70000\n").unwrap();
        assert_eq!(interval(), Some(Duration::from_millis(70)));
        assert_eq!(set("off\n", "pageout\n"), None);
        assert_eq!(interval(), None);
        assert_eq!(set("on\n", "stat\n"), None);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(damon_pageout_in(&root), None);
    }

    #[test]
    fn pauses_until_run_fits_between_pageouts() {
        let ms = Duration::from_millis;
        let pause = |run, now: u64| pause_before(ms(run), 7_000_000_000, now * 1_000_000, ms(5000));
        assert_eq!(pause(1000, 8000), Duration::ZERO);
        assert_eq!(pause(3700, 8000), Duration::ZERO, "it fits in just so");
        assert_eq!(pause(3701, 8000), ms(4300), "until behind the next time");
        assert_eq!(pause(1000, 7100), ms(200), "the last time may not be over");
        assert_eq!(pause(1000, 13_000), Duration::ZERO, "several times later");
        assert_eq!(pause(9000, 8000), ms(4300), "what fits nowhere begins with a gap");
    }
}
