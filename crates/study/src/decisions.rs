//! Decisions as lines of JSON.

use filemap_core::decision::Decision;
use filemap_job::Seen;
use serde::Serialize;

/// A line of a decision log: a decision with the access that it was made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct NumberedLine {
    /// Number of the access, from 0, over all phases of the job.
    pub access: u64,
    /// The decision.
    #[serde(flatten)]
    pub line: Line,
}

impl NumberedLine {
    /// The line of `decision`, which was made in the access with that number.
    pub fn new(access: u64, decision: Decision) -> Self {
        NumberedLine { access, line: decision.into() }
    }
}

/// A decision as an object of a decision log: `decision` names its kind, the other keys are
/// its values; indexes and sizes count base pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "decision", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the fields are those of Decision")]
pub enum Line {
    /// See [`Decision::Entered`].
    Entered {
        cause: &'static str,
        index: u64,
        req: u64,
        order: u8,
        size: u64,
        async_size: u64,
        mmap_miss: u16,
        previous_end: Option<u64>,
    },
    /// See [`Decision::Readahead`].
    Readahead {
        cause: &'static str,
        index: u64,
        order: u8,
        start: u64,
        size: u64,
        async_size: u64,
        mmap_miss: u16,
    },
    /// See [`Decision::BasePages`].
    BasePages { start: u64, size: u64, async_size: u64 },
    /// See [`Decision::NothingAbsent`].
    NothingAbsent { index: u64 },
    /// See [`Decision::NoReadahead`].
    NoReadahead { index: u64, mmap_miss: u16 },
    /// See [`Decision::Added`].
    Added { start: u64, order: u8, folios: u64, marked: Option<u64> },
    /// See [`Decision::MapPages`].
    MapPages { from: u64, last: u64, mapped: u64, credit: u32 },
    /// See [`Decision::MapHuge`].
    MapHuge { start: u64 },
    /// See [`Decision::Lookup`].
    Lookup { index: u64, hit: bool, tried: bool, mmap_miss: u16 },
    /// See [`Decision::Locked`].
    Locked { lock: &'static str },
    /// See [`Decision::Dropped`].
    Dropped { lock: &'static str },
    /// See [`Decision::Waited`].
    Waited { index: u64 },
    /// See [`Decision::Served`].
    Served { index: u64, major: bool, tries: u32 },
    /// See [`Decision::Copied`].
    Copied { index: u64 },
    /// See [`Decision::Evicted`].
    Evicted { start: u64, pages: u64 },
    /// See [`Decision::File`].
    File { file: u64 },
}

impl From<Decision> for Line {
    fn from(decision: Decision) -> Line {
        match decision {
            Decision::Entered { cause, found } => Line::Entered {
                cause: cause.name(),
                index: found.index.0,
                req: found.req.0,
                order: found.order.0,
                size: found.size.0,
                async_size: found.async_size.0,
                mmap_miss: found.mmap_miss,
                previous_end: found.previous_end,
            },
            Decision::Readahead { cause, index, order, start, size, async_size, mmap_miss } => {
                Line::Readahead {
                    cause: cause.name(),
                    index: index.0,
                    order: order.0,
                    start: start.0,
                    size: size.0,
                    async_size: async_size.0,
                    mmap_miss,
                }
            }
            Decision::BasePages { start, size, async_size } => {
                Line::BasePages { start: start.0, size: size.0, async_size: async_size.0 }
            }
            Decision::NothingAbsent { index } => Line::NothingAbsent { index: index.0 },
            Decision::NoReadahead { index, mmap_miss } => {
                Line::NoReadahead { index: index.0, mmap_miss }
            }
            Decision::Added { start, order, folios, marked } => Line::Added {
                start: start.0,
                order: order.0,
                folios,
                marked: marked.map(|index| index.0),
            },
            Decision::MapPages { from, last, mapped, credit } => {
                Line::MapPages { from: from.0, last: last.0, mapped: mapped.0, credit }
            }
            Decision::MapHuge { start } => Line::MapHuge { start: start.0 },
            Decision::Lookup { index, hit, tried, mmap_miss } => {
                Line::Lookup { index: index.0, hit, tried, mmap_miss }
            }
            Decision::Locked(lock) => Line::Locked { lock: lock.name() },
            Decision::Dropped(lock) => Line::Dropped { lock: lock.name() },
            Decision::Waited { index } => Line::Waited { index: index.0 },
            Decision::Served { index, major, tries } => {
                Line::Served { index: index.0, major, tries }
            }
            Decision::Copied { index } => Line::Copied { index: index.0 },
            Decision::Evicted { start, pages } => Line::Evicted { start: start.0, pages: pages.0 },
            Decision::File(file) => Line::File { file: file.number() as u64 },
        }
    }
}

/// A decision of a kernel, as its tracepoints show it: a [`Line`] without the keys that they do
/// not tell. Nor do they tell the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "decision", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the fields are those of Line")]
pub enum TracedLine {
    /// See [`Decision::Entered`].
    Entered {
        cause: &'static str,
        index: u64,
        req: u64,
        order: u8,
        size: u64,
        async_size: u64,
        mmap_miss: u16,
        previous_end: Option<u64>,
    },
    /// See [`Decision::Readahead`]. The cause follows from what came before.
    Readahead {
        cause: &'static str,
        index: u64,
        order: u8,
        start: u64,
        size: u64,
        /// Null on a kernel that shows windows only by what they add.
        async_size: Option<u64>,
    },
    /// See [`Decision::BasePages`].
    BasePages { start: u64, size: u64, async_size: u64 },
    /// See [`Decision::NoReadahead`].
    NoReadahead { index: u64 },
    /// See [`Decision::Added`].
    Added { start: u64, order: u8, folios: u64 },
    /// See [`Decision::MapPages`].
    MapPages { from: u64, last: u64 },
    /// See [`Decision::Lookup`].
    Lookup { index: u64, hit: bool },
    /// See [`Decision::Served`].
    Served { index: u64 },
    /// See [`Decision::Evicted`].
    Evicted { start: u64, pages: u64 },
    /// See [`Decision::File`].
    File { file: u64 },
}

impl TracedLine {
    /// The line of `decision` of a kernel that shows what is `seen`; `None` where no tracepoint
    /// stands for it.
    pub fn new(decision: Decision, seen: Seen) -> Option<Self> {
        Some(match Line::from(decision) {
            Line::Entered {
                cause,
                index,
                req,
                order,
                size,
                async_size,
                mmap_miss,
                previous_end,
            } => TracedLine::Entered {
                cause,
                index,
                req,
                order,
                size,
                async_size,
                mmap_miss,
                previous_end,
            },
            Line::Readahead { cause, index, order, start, size, async_size, .. } => {
                let async_size = seen.has_readahead().then_some(async_size);
                TracedLine::Readahead { cause, index, order, start, size, async_size }
            }
            Line::BasePages { start, size, async_size } => {
                TracedLine::BasePages { start, size, async_size }
            }
            Line::NoReadahead { index, .. } => TracedLine::NoReadahead { index },
            Line::Added { start, order, folios, .. } => TracedLine::Added { start, order, folios },
            Line::MapPages { from, last, .. } => TracedLine::MapPages { from, last },
            Line::Lookup { index, hit, .. } => TracedLine::Lookup { index, hit },
            Line::Served { index, .. } => TracedLine::Served { index },
            Line::Evicted { start, pages } => TracedLine::Evicted { start, pages },
            Line::File { file } => TracedLine::File { file },
            Line::NothingAbsent { .. }
            | Line::MapHuge { .. }
            | Line::Locked { .. }
            | Line::Dropped { .. }
            | Line::Waited { .. }
            | Line::Copied { .. } => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use filemap_core::decision::{Cause, Lock};
    use filemap_core::units::{Order, PageCount, PageIndex};
    use filemap_job::ShownKind;

    use super::*;

    #[test]
    fn lines() {
        for (decision, expected) in [
            (
                Decision::Readahead {
                    cause: Cause::ReadAround,
                    index: PageIndex(40),
                    order: Order(0),
                    start: PageIndex(24),
                    size: PageCount(32),
                    async_size: PageCount(8),
                    mmap_miss: 1,
                },
                concat!(
                    r#"{"decision":"readahead","cause":"read-around","index":40,"order":0,"#,
                    r#""start":24,"size":32,"async_size":8,"mmap_miss":1}"#
                ),
            ),
            (Decision::Locked(Lock::Mmap), r#"{"decision":"locked","lock":"mmap"}"#),
            (
                Decision::Added { start: PageIndex(0), order: Order(2), folios: 3, marked: None },
                r#"{"decision":"added","start":0,"order":2,"folios":3,"marked":null}"#,
            ),
            (
                Decision::NothingAbsent { index: PageIndex(5) },
                r#"{"decision":"nothing-absent","index":5}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&Line::from(decision)).unwrap(), expected);
            let numbered = serde_json::to_string(&NumberedLine::new(7, decision)).unwrap();
            assert_eq!(numbered, expected.replacen('{', "{\"access\":7,", 1));
        }
    }

    #[test]
    fn a_kernels_lines_say_what_its_tracepoints_show() {
        let window = Decision::Readahead {
            cause: Cause::ReadAround,
            index: PageIndex(40),
            order: Order(0),
            start: PageIndex(24),
            size: PageCount(32),
            async_size: PageCount(8),
            mmap_miss: 0,
        };
        let text = |decision, seen| {
            TracedLine::new(decision, seen).map(|line| serde_json::to_string(&line).unwrap())
        };
        let keys = r#""cause":"read-around","index":40,"order":0,"start":24,"size":32"#;
        let known = format!(r#"{{"decision":"readahead",{keys},"async_size":8}}"#);
        assert_eq!(text(window, Seen::ALL), Some(known));
        let additions = Seen::of(|kind| kind == ShownKind::Added);
        let unknown = format!(r#"{{"decision":"readahead",{keys},"async_size":null}}"#);
        assert_eq!(text(window, additions), Some(unknown));
        assert_eq!(text(Decision::Locked(Lock::Vma), Seen::ALL), None);
        let served = Decision::Served { index: PageIndex(5), major: false, tries: 1 };
        let expected = r#"{"decision":"served","index":5}"#.to_string();
        assert_eq!(text(served, Seen::ALL), Some(expected));
    }
}
