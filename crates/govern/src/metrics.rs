//! Metrics of a governor as OpenMetrics text in a file, such as node_exporter's textfile collector
//! reads.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use crate::journal::replace_file;
use crate::statistics::{GovernStatistics, MappingState, MappingStatistics};

/// The file with the metrics of a governor.
#[derive(Clone, Debug)]
pub struct MetricsFile {
    path: PathBuf,
}

impl MetricsFile {
    /// Creates the file at `path` with the metrics of a governor that has done nothing.
    ///
    /// # Errors
    /// If it cannot be written, or is not a regular file.
    pub fn create(path: &Path) -> io::Result<MetricsFile> {
        if fs::metadata(path).is_ok_and(|data| !data.is_file()) {
            return Err(io::Error::other("it is no regular file"));
        }
        let file = MetricsFile { path: path.to_path_buf() };
        file.replace(&GovernStatistics::default(), true)?;
        Ok(file)
    }

    fn replace(&self, statistics: &GovernStatistics, is_running: bool) -> io::Result<()> {
        replace_file(&self.path, open_metrics(statistics, is_running).as_bytes(), 0o666)
    }
}

/// Writes metrics, so that the governor need not wait for the disk.
#[derive(Debug)]
pub(crate) struct MetricsThread {
    statistics: SyncSender<GovernStatistics>,
    thread: JoinHandle<Option<io::Error>>,
    file: MetricsFile,
}

impl MetricsThread {
    /// Starts a thread that writes to `file`.
    ///
    /// # Errors
    /// If no thread can be created.
    pub fn start(file: MetricsFile) -> io::Result<MetricsThread> {
        let (statistics, received) = sync_channel::<GovernStatistics>(1);
        let own = file.clone();
        let write_all = move || {
            // The last result counts: a full disk may have room again.
            received.iter().fold(None, |_, statistics| own.replace(&statistics, true).err())
        };
        let builder = thread::Builder::new().name("metrics".to_string());
        Ok(MetricsThread { statistics, thread: builder.spawn(write_all)?, file })
    }

    /// Writes `statistics`, unless earlier ones are still being written.
    pub fn write(&self, statistics: GovernStatistics) {
        let _ = self.statistics.try_send(statistics);
    }

    /// Writes the `statistics` of a governor that has ended. Returns why that fails, if it does.
    pub fn end(self, statistics: &GovernStatistics) -> Option<io::Error> {
        drop(self.statistics);
        let _ = self.thread.join();
        self.file.replace(statistics, false).err()
    }
}

/// The metrics as OpenMetrics text.
fn open_metrics(statistics: &GovernStatistics, is_running: bool) -> String {
    let mut text = String::new();
    let running = statistics.processes.iter().filter(|process| process.is_running).count();
    family(&mut text, "running", "gauge", "Whether the governor is running.");
    sample(&mut text, "running", &[], u64::from(is_running));
    family(&mut text, "processes", "gauge", "Running processes with mappings to govern.");
    sample(&mut text, "processes", &[], running as u64);
    family(&mut text, "mappings", "gauge", "Mappings by state.");
    let mappings = || statistics.processes.iter().flat_map(|process| &process.mappings);
    for state in [MappingState::Governed, MappingState::OwnAdvice, MappingState::Watched] {
        let count = mappings().filter(|own| own.state == state).map(|own| own.mappings).sum();
        sample(&mut text, "mappings", &[("state", state.name())], count);
    }
    let sum = |count: fn(&MappingStatistics) -> u64| {
        statistics.unreported.iter().chain(mappings()).map(count).sum::<u64>()
    };
    for (name, help, count) in [
        ("major_faults", "Major faults in governed mappings.", sum(|own| own.major_faults)),
        ("readahead_bytes", "Bytes requested by readahead.", sum(|own| own.asked_bytes)),
        ("readahead_calls", "Calls of readahead.", sum(|own| own.calls)),
        (
            "stopped_nanoseconds",
            "How long threads were stopped to advise their mappings.",
            sum(|own| own.stopped_ns),
        ),
        ("lost_records", "Records of faults that the kernel dropped.", statistics.lost_records),
        ("dropped_pages", "Pages of requests that were dropped.", statistics.dropped_pages),
    ] {
        family(&mut text, name, "counter", help);
        sample(&mut text, &format!("{name}_total"), &[], count);
    }
    family(&mut text, "file", "info", "What is done with a file, and why.");
    // A set of labels must be unique.
    let files = statistics.files.iter();
    let files: std::collections::BTreeSet<(String, &str)> =
        files.map(|file| (file.path.display().to_string(), file.done.as_str())).collect();
    for (path, done) in &files {
        sample(&mut text, "file_info", &[("file", path), ("done", done)], 1);
    }
    text.push_str("# EOF\n");
    text
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# TYPE filemap_govern_{name} {kind}");
    let _ = writeln!(text, "# HELP filemap_govern_{name} {help}");
}

fn sample(text: &mut String, name: &str, labels: &[(&str, &str)], value: u64) {
    let _ = write!(text, "filemap_govern_{name}");
    let mut separator = '{';
    for (label, content) in labels {
        let content = content.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(text, "{separator}{label}=\"{content}\"");
        separator = ',';
    }
    let end = if labels.is_empty() { "" } else { "}" };
    let _ = writeln!(text, "{end} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::FileStatistics;

    #[test]
    fn links_in_place_of_the_draft_are_not_followed() {
        let scratch = tempfile::tempdir().unwrap();
        let (path, victim) = (scratch.path().join("m.prom"), scratch.path().join("victim"));
        fs::write(&victim, "mine").unwrap();
        let draft = format!(".m.prom.{}", std::process::id());
        std::os::unix::fs::symlink(&victim, scratch.path().join(draft)).unwrap();
        MetricsFile::create(&path).unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"mine");
        assert!(fs::read_to_string(&path).unwrap().ends_with("# EOF\n"));
    }

    #[test]
    fn labels_are_escaped() {
        let file = |done: &str| FileStatistics { path: "/a \"b\"\\\n".into(), done: done.into() };
        let files = vec![file("watched"), file("watched"), file("read")];
        let statistics = GovernStatistics { files, ..GovernStatistics::default() };
        let text = open_metrics(&statistics, true);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("file_info")).collect();
        assert_eq!(
            lines,
            [
                r#"filemap_govern_file_info{file="/a \"b\"\\\n",done="read"} 1"#,
                r#"filemap_govern_file_info{file="/a \"b\"\\\n",done="watched"} 1"#,
            ]
        );
        assert!(text.ends_with("\n# EOF\n"));
    }
}
