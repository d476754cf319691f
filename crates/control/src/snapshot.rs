//! The statistics of a process, as they are now.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::layout::{
    HEADER_WORDS, MAGIC_WORD, MAPPING_WORDS, MAPPINGS, Observer, Reason, State, UNKNOWN, WORDS,
    header, mapping,
};

/// The statistics of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The process.
    pub pid: u64,
    /// When the process was started, in clock ticks since boot.
    pub start_ticks: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// What observes faults.
    pub observer: Observer,
    /// Why nothing is governed.
    pub reason: Reason,
    /// Major faults that the observer reported, in whatever mapping.
    pub reported: u64,
    /// Faults of which the policy was not asked, since another thread was asking it just then.
    pub missed: u64,
    /// Mappings left alone since the table was full.
    pub table_full: u64,
    /// The mappings, in no order. Those whose records have made room are one without a path.
    pub mappings: Vec<MappingSnapshot>,
    /// How many mappings the one without a path stands for.
    pub others: u64,
}

/// The statistics of one mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingSnapshot {
    /// Its file, or the end of a path of more than [`mapping::PATH_BYTES`] bytes.
    pub path: PathBuf,
    /// What became of it.
    pub state: State,
    /// Its address.
    pub start: u64,
    /// Its length.
    pub bytes: u64,
    /// Where it begins in its file, in bytes.
    pub offset_bytes: u64,
    /// Major faults in it.
    pub faults: u64,
    /// Pages that the kernel was asked for besides those that faulted.
    pub advised_pages: u64,
    /// Calls that asked.
    pub calls: u64,
    /// Streams that began.
    pub streams: u64,
    /// Pages of it that were mapped when it ended; `None` before.
    pub touched_pages: Option<u64>,
}

/// The file has no statistics of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not statistics of this version of filemap")
    }
}

impl std::error::Error for Malformed {}

impl Snapshot {
    /// Reads the bytes of a file.
    pub fn read(bytes: &[u8]) -> Result<Snapshot, Malformed> {
        let (words, rest) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        if words.len() != WORDS || !rest.is_empty() || words[header::MAGIC] != MAGIC_WORD {
            return Err(Malformed);
        }
        let records = words[HEADER_WORDS..].chunks_exact(MAPPING_WORDS).take(MAPPINGS);
        let mut mappings = Vec::new();
        for record in records {
            let state = State::of(record[mapping::STATE]).ok_or(Malformed)?;
            if state != State::Free {
                mappings.push(MappingSnapshot::read(record, state));
            }
        }
        if words[header::OTHERS] > 0 {
            mappings.push(MappingSnapshot {
                path: PathBuf::new(),
                state: State::Ended,
                start: 0,
                bytes: 0,
                offset_bytes: 0,
                faults: words[header::OTHERS_FAULTS],
                advised_pages: words[header::OTHERS_ADVISED_PAGES],
                calls: 0,
                streams: 0,
                touched_pages: Some(words[header::OTHERS_TOUCHED_PAGES]),
            });
        }
        Ok(Snapshot {
            pid: words[header::PID],
            start_ticks: words[header::START_TICKS],
            page_bytes: words[header::PAGE_BYTES],
            observer: Observer::of(words[header::OBSERVER]).ok_or(Malformed)?,
            reason: Reason::of(words[header::REASON]).ok_or(Malformed)?,
            reported: words[header::REPORTED],
            missed: words[header::MISSED],
            table_full: words[header::TABLE_FULL],
            mappings,
            others: words[header::OTHERS],
        })
    }
}

impl MappingSnapshot {
    fn read(record: &[u64], state: State) -> MappingSnapshot {
        let length = (record[mapping::PATH_LENGTH] as usize).min(mapping::PATH_BYTES);
        let mut path: Vec<u8> =
            record[mapping::PATH..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        path.truncate(length);
        let touched = record[mapping::TOUCHED_PAGES];
        MappingSnapshot {
            path: OsString::from_vec(path).into(),
            state,
            start: record[mapping::START],
            bytes: record[mapping::BYTES],
            offset_bytes: record[mapping::OFFSET_BYTES],
            faults: record[mapping::FAULTS],
            advised_pages: record[mapping::ADVISED_PAGES],
            calls: record[mapping::CALLS],
            streams: record[mapping::STREAMS],
            touched_pages: (touched != UNKNOWN).then_some(touched),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn what_was_written_is_read() {
        let mut words = vec![0; WORDS];
        words[header::MAGIC] = MAGIC_WORD;
        words[header::PID] = 7;
        words[header::OBSERVER] = Observer::PerfEvent as u64;
        let record = &mut words[HEADER_WORDS + 3 * MAPPING_WORDS..];
        record[mapping::STATE] = State::Governed as u64;
        record[mapping::FAULTS] = 5;
        record[mapping::TOUCHED_PAGES] = UNKNOWN;
        record[mapping::PATH_LENGTH] = 9;
        record[mapping::PATH] = u64::from_ne_bytes(*b"/data/a.");
        record[mapping::PATH + 1] = u64::from_ne_bytes(*b"x\0\0\0\0\0\0\0");
        let snapshot = Snapshot::read(&bytes(&words)).unwrap();
        assert_eq!((snapshot.pid, snapshot.observer), (7, Observer::PerfEvent));
        let [of] = &snapshot.mappings[..] else { panic!("{snapshot:?}") };
        assert_eq!((of.path.to_str(), of.faults), (Some("/data/a.x"), 5));
        assert_eq!((of.state, of.touched_pages), (State::Governed, None));
    }

    #[test]
    fn what_is_something_else_is_refused() {
        let mut words = vec![0; WORDS];
        assert_eq!(Snapshot::read(&bytes(&words)), Err(Malformed));
        words[header::MAGIC] = MAGIC_WORD;
        assert!(Snapshot::read(&bytes(&words)).is_ok());
        assert_eq!(Snapshot::read(&bytes(&words)[1..]), Err(Malformed));
        words[header::REASON] = 99;
        assert_eq!(Snapshot::read(&bytes(&words)), Err(Malformed));
    }
}
