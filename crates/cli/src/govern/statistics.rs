//! The statistics that governed processes leave, as reports have them.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use filemap_control::layout::{Observer, Reason, State, WORDS};
use filemap_control::{MappingSnapshot, Snapshot, Unkept};
use filemap_report::govern::{Mapping, Process, Unknown};

use super::run_directory::{process_of, started};
use super::smaps::Smaps;
use crate::error::reason;

/// Bytes of a file of statistics.
pub const FILE_BYTES: u64 = WORDS as u64 * 8;

/// What the processes that have their statistics in `directory` did, by process and image; of one
/// process where `only` names it.
pub fn processes(directory: &Path, only: Option<u32>) -> Vec<Process> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut found: Vec<(u32, u32, Snapshot)> = Vec::new();
    for entry in entries.flatten() {
        let named = entry.file_name().to_str().and_then(process_of);
        let wanted = named.filter(|(pid, _)| only.is_none_or(|only| only == *pid));
        if let Some((pid, image)) = wanted
            && let Some(snapshot) = read(&entry.path())
        {
            found.push((pid, image, snapshot));
        }
    }
    found.sort_by_key(|(pid, image, _)| (*pid, *image));
    let last = |at: usize| found.get(at + 1).is_none_or(|next| next.0 != found[at].0);
    let all = found.iter().enumerate();
    all.map(|(at, (pid, image, snapshot))| process(*pid, *image, snapshot, last(at))).collect()
}

/// A process of which nothing is known, and why.
pub fn unkept(of: Unkept) -> Unknown {
    let errno = of.errno.cast_signed();
    let why = match errno {
        libc::EACCES | libc::EPERM => NO_PERMISSION.to_string(),
        libc::EFBIG => small_limit(),
        libc::ENOSPC | libc::EDQUOT => NO_ROOM.to_string(),
        _ => format!("its file cannot be made: {}", reason(&io::Error::from_raw_os_error(errno))),
    };
    Unknown { pid: of.pid, reason: why }
}

/// Why a process has no file of statistics, as the end of a sentence.
pub const NO_PERMISSION: &str =
    "it may not write where statistics are kept, such as after a change of its user";
pub const NO_ROOM: &str = "there is no room where statistics are kept";

/// The same, where files may not grow so large.
pub fn small_limit() -> String {
    format!("its limit of file sizes (ulimit -f) is below {} KiB", FILE_BYTES.div_ceil(1024))
}

/// The statistics at `path`, if they are whole.
fn read(path: &Path) -> Option<Snapshot> {
    let mut options = fs::File::options();
    // What another user has put there may be anything.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = options.read(true).custom_flags(flags).open(path).ok()?;
    let data = file.metadata().ok()?;
    if !data.is_file() || data.size() != FILE_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(data.size()).read_to_end(&mut bytes).ok()?;
    Snapshot::read(&bytes).ok()
}

/// What `snapshot` says of an image of `pid`, which is the `last` that has something to tell.
fn process(pid: u32, image: u32, snapshot: &Snapshot, last: bool) -> Process {
    let running = last && started(pid) == Some(snapshot.start_ticks);
    let smaps = if running { Smaps::of(pid) } else { None };
    let observer = match snapshot.observer {
        Observer::PerfEvent => "perf-event",
        Observer::Pagemap => "pagemap",
        Observer::None => "none",
    };
    let of = |own: &MappingSnapshot| mapping(own, snapshot, running, smaps.as_ref());
    let mut process = Process {
        pid: snapshot.pid,
        image,
        running,
        observer,
        reason: (snapshot.reason != Reason::None).then(|| snapshot.reason.text()),
        faults_reported: snapshot.reported,
        faults_missed: snapshot.missed,
        mappings_left_alone: snapshot.table_full,
        mappings: snapshot.mappings.iter().map(of).collect(),
    };
    process.sort();
    process
}

fn mapping(
    own: &MappingSnapshot,
    process: &Snapshot,
    running: bool,
    smaps: Option<&Smaps>,
) -> Mapping {
    let is_sum = own.path.as_os_str().is_empty() && own.bytes == 0;
    let state = match own.state {
        // A process that was killed could not write that its mappings have ended.
        State::Governed if running => "governed",
        State::GivenBack => "given-back",
        _ => "ended",
    };
    let page_bytes = process.page_bytes;
    let mapped = match own.touched_pages {
        Some(pages) => Some(pages * page_bytes),
        None if state == "ended" => None,
        None => smaps.map(|smaps| smaps.mapped_bytes(own.start, own.bytes, own.offset_bytes)),
    };
    let of = Mapping {
        path: (!is_sum).then(|| own.path.display().to_string()),
        mappings: if is_sum { process.others } else { 1 },
        state,
        start: own.start,
        bytes: own.bytes,
        offset_bytes: own.offset_bytes,
        faults: own.faults,
        advised_bytes: own.advised_pages * page_bytes,
        calls: own.calls,
        streams: own.streams,
        mapped_bytes: None,
        wasted_bytes: None,
    };
    of.with_mapped(mapped, page_bytes)
}
