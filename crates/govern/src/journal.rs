//! The journal of advised mappings, a text file with one line per mapping. A killed governor leaves
//! it behind, and `release` restores the mappings that it lists.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use filemap_attach::{FileId, MappedFile, MappedRange};

/// Prefix of the file names: `advised-PID-STARTTICKS`.
const FILE_PREFIX: &str = "advised-";

/// The file is compacted when it has more lines than twice its live entries plus this.
const SPARE_LINES: usize = 1000;

/// An advised mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    pub pid: u32,
    /// Start time of the process, in clock ticks since boot; guards against PID reuse.
    pub start_ticks: u64,
    /// The mapping. The path of its file is not stored.
    pub range: MappedRange,
}

/// The journal of this process, append-only until it is compacted.
#[derive(Debug)]
pub struct AdviceJournal {
    path: PathBuf,
    file: File,
    /// Live entries by PID, as lines of the file.
    entries: HashMap<u32, Vec<String>>,
    lines: usize,
}

impl AdviceJournal {
    /// Creates the journal of this process in `directory`.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(directory: &Path) -> io::Result<AdviceJournal> {
        let own = std::process::id();
        let name = format!("{FILE_PREFIX}{own}-{}", start_ticks(own).unwrap_or(0));
        let path = directory.join(name);
        let file = File::options().create(true).truncate(true).write(true).open(&path)?;
        Ok(AdviceJournal { path, file, entries: HashMap::new(), lines: 0 })
    }

    /// Adds a mapping, before it is advised. Without effect if the process has exited.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, pid: u32, range: &MappedRange) -> io::Result<()> {
        let Some(line) = JournalEntry::to_line(pid, start_ticks(pid), range) else { return Ok(()) };
        let entries = self.entries.entry(pid).or_default();
        if entries.contains(&line) {
            return Ok(());
        }
        self.file.write_all(line.as_bytes())?;
        entries.push(line);
        self.lines += 1;
        let needed: usize = self.entries.values().map(Vec::len).sum();
        if self.lines > 2 * needed + SPARE_LINES { self.rewrite() } else { Ok(()) }
    }

    /// Removes a mapping that was not advised after all, or whose advice was restored. Its line
    /// stays in the file until the next compaction.
    pub fn remove(&mut self, pid: u32, range: &MappedRange) {
        let line = JournalEntry::to_line(pid, start_ticks(pid), range);
        if let Some(entries) = self.entries.get_mut(&pid) {
            entries.retain(|own| Some(own) != line.as_ref());
        }
    }

    /// Removes the processes for which `kept` is false.
    pub fn retain_processes(&mut self, kept: impl Fn(u32) -> bool) {
        self.entries.retain(|pid, _| kept(*pid));
    }

    /// Reduces the file to the mappings in `left`, or removes it if `left` is empty.
    ///
    /// # Errors
    /// The file can be neither written nor removed.
    pub fn finish(mut self, left: &[(u32, MappedRange)]) -> io::Result<()> {
        self.entries.clear();
        for (pid, range) in left {
            let line = JournalEntry::to_line(*pid, start_ticks(*pid), range);
            self.entries.entry(*pid).or_default().extend(line);
        }
        if self.entries.is_empty() { fs::remove_file(&self.path) } else { self.rewrite() }
    }

    fn rewrite(&mut self) -> io::Result<()> {
        let lines: Vec<&str> = self.entries.values().flatten().map(String::as_str).collect();
        self.lines = lines.len();
        replace_file(&self.path, lines.concat().as_bytes(), 0o600)?;
        self.file = File::options().append(true).open(&self.path)?;
        Ok(())
    }
}

impl JournalEntry {
    fn to_line(pid: u32, start_ticks: Option<u64>, range: &MappedRange) -> Option<String> {
        let MappedRange { address, length_bytes, offset_bytes, protection, is_shared, .. } = range;
        let FileId { major, minor, inode } = range.file.as_ref()?.id;
        let (start_ticks, is_shared) = (start_ticks?, u8::from(*is_shared));
        Some(format!(
            "{pid} {start_ticks} {address} {length_bytes} {offset_bytes} {major} {minor} {inode} \
             {protection} {is_shared}\n"
        ))
    }

    fn parse(line: &str) -> Option<JournalEntry> {
        let words: Vec<u64> = line.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [pid, start_ticks, address, length_bytes, offset_bytes, rest @ ..] = &words[..] else {
            return None;
        };
        let [major, minor, inode, protection, is_shared] = *rest else { return None };
        let word = |value: u64| u32::try_from(value).ok();
        let id = FileId { major: word(major)?, minor: word(minor)?, inode };
        Some(JournalEntry {
            pid: word(*pid)?,
            start_ticks: *start_ticks,
            range: MappedRange {
                address: *address,
                length_bytes: *length_bytes,
                offset_bytes: *offset_bytes,
                file: Some(MappedFile { id, path: PathBuf::new() }),
                protection: word(protection)?,
                is_shared: is_shared != 0,
            },
        })
    }

    /// Whether the process is still running.
    pub fn is_alive(&self) -> bool {
        start_ticks(self.pid) == Some(self.start_ticks)
    }
}

/// The journal of a governor that no longer runs.
#[derive(Debug)]
pub struct StaleJournal {
    path: PathBuf,
    pub entries: Vec<JournalEntry>,
}

impl StaleJournal {
    /// Finds the stale journals in `directory`. Entries of exited processes are left out, and files
    /// without other entries are removed.
    pub fn find(directory: &Path) -> Vec<StaleJournal> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let owner =
                name.to_str().and_then(|name| name.strip_prefix(FILE_PREFIX)?.split_once('-'));
            let owner =
                owner.and_then(|(pid, ticks)| Some((pid.parse().ok()?, ticks.parse().ok()?)));
            let Some((pid, ticks)) = owner else { continue };
            if start_ticks(pid) == Some(ticks) {
                continue;
            }
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            // A mapping that was tried several times has as many lines.
            let lines: BTreeSet<&str> = text.lines().collect();
            let entries =
                lines.into_iter().filter_map(JournalEntry::parse).filter(JournalEntry::is_alive);
            let journal = StaleJournal { path: entry.path(), entries: entries.collect() };
            if journal.entries.is_empty() {
                let _ = fs::remove_file(&journal.path);
            } else {
                found.push(journal);
            }
        }
        found
    }

    /// Rewrites the file with the current entries, or removes it if there are no entries.
    pub fn write(&self) -> io::Result<()> {
        let line =
            |own: &JournalEntry| JournalEntry::to_line(own.pid, Some(own.start_ticks), &own.range);
        let lines: Vec<String> = self.entries.iter().filter_map(line).collect();
        if lines.is_empty() {
            return fs::remove_file(&self.path);
        }
        replace_file(&self.path, lines.concat().as_bytes(), 0o600)
    }
}

/// Replaces the contents of the file at `path` atomically, by rename(2): a reader sees the old or
/// the new ones. The new file has `mode`, less the umask. A link that somebody else
/// put in the place of the draft is not followed.
pub(crate) fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    name.push(format!(".{}", std::process::id()));
    let draft = path.with_file_name(name);
    let _ = fs::remove_file(&draft);
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&draft)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

/// Start time of process `pid` in clock ticks since boot (`starttime` in proc_pid_stat(5)); `None`
/// if there is no such process, or it is a zombie.
pub fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // Field 2, the program name in parentheses, may contain spaces and parentheses itself.
    let behind = stat.iter().rposition(|&byte| byte == b')')?;
    let mut fields = stat.get(behind + 2..)?.split(|&byte| byte == b' ');
    // Field 3, the state, is next; `starttime` is field 22.
    if matches!(fields.next()?, b"Z" | b"X") {
        return None;
    }
    str::from_utf8(fields.nth(18)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::tests::mapped;

    #[test]
    fn finds_journal_of_killed_governor() {
        let scratch = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let ranges = [1, 2].map(|inode| mapped(inode << 24, 1 << 20, inode));
        let mut journal = AdviceJournal::create(scratch.path()).unwrap();
        ranges.iter().for_each(|range| journal.add(own, range).unwrap());
        for turn in 0..5000 {
            let range = mapped(turn << 30, 1 << 20, 3);
            journal.add(own, &range).unwrap();
            journal.remove(own, &range);
        }
        assert!(journal.lines < 3000, "it is written anew: {}", journal.lines);
        assert!(StaleJournal::find(scratch.path()).is_empty(), "its owner lives");
        journal.rewrite().unwrap();
        // 4294967295 is never a PID.
        let text = fs::read_to_string(&journal.path).unwrap();
        let gone = text.replace(&format!("{own} "), "4294967295 ");
        fs::write(scratch.path().join("advised-4294967295-1"), text + &gone).unwrap();
        fs::write(scratch.path().join("advised-4294967295-2"), gone).unwrap();
        let [mut left] = <[StaleJournal; 1]>::try_from(StaleJournal::find(scratch.path())).unwrap();
        let mut found: Vec<MappedRange> = left.entries.iter().map(|e| e.range.clone()).collect();
        found.sort_by_key(|range| range.address);
        for (found, range) in found.iter().zip(&ranges) {
            let is_same = |a: &MappedRange, b: &MappedRange| {
                a.file.as_ref().unwrap().id == b.file.as_ref().unwrap().id
                    && (a.address, a.length_bytes, a.protection)
                        == (b.address, b.length_bytes, b.protection)
            };
            assert!(is_same(found, range));
        }
        left.entries.clear();
        left.write().unwrap();
        journal.finish(&[]).unwrap();
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn reads_process_start_time() {
        assert!(start_ticks(std::process::id()).is_some_and(|ticks| ticks > 0));
        assert_eq!(start_ticks(u32::MAX), None);
    }
}
