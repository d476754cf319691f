//! Decisions as short words, so that a course of events can be written down in a test.
//!
//! | word | decision |
//! | --- | --- |
//! | `vma` `mmap` | a try begins under this lock |
//! | `drop` | the lock is dropped |
//! | `miss:N` `hit:N` | lookup, with the counter before it; `tried-` before it on a TRIED retry |
//! | `around:24+16-4` | window: cause, first page, pages, pages after the mark; `@2` its order |
//! | `base:30+10-4` | the rest in base pages |
//! | `single` | a miss reads one page |
//! | `nothing-absent` | a mark was hit, and there is nothing to read |
//! | `map:32..47=7` | fault-around over a window mapped so many pages; `-7` the hits it credits |
//! | `huge:16` | mapped by one PMD entry |
//! | `wait:32` | waited for the data of this page |
//! | `copy:32` | a private copy |
//! | `evict:0+32` | eviction |
//! | `file:1` | what follows is about this file |
//! | `minor/2` `major/2` | served, after so many tries |

use filemap_core::decision::{Cause, Decision, Lock};

/// The decisions as one line, without what maps show, and without what windows show.
pub fn transcript(log: &[Decision]) -> String {
    log.iter().filter_map(word).collect::<Vec<_>>().join(" ")
}

fn word(decision: &Decision) -> Option<String> {
    Some(match *decision {
        Decision::Added { .. } | Decision::Entered { .. } | Decision::Faulted { .. } => {
            return None;
        }
        Decision::Locked { lock: Lock::Vma } => "vma".into(),
        Decision::Locked { lock: Lock::Mmap } => "mmap".into(),
        Decision::Dropped { .. } => "drop".into(),
        Decision::Lookup { hit, tried, mmap_miss, .. } => {
            let tried = if tried { "tried-" } else { "" };
            let found = if hit { "hit" } else { "miss" };
            format!("{tried}{found}:{mmap_miss}")
        }
        Decision::Readahead { cause, order, start, size, async_size, .. } => {
            let order = if order.0 > 0 { format!("@{}", order.0) } else { String::new() };
            format!("{}:{start}+{size}-{async_size}{order}", short(cause))
        }
        Decision::BasePages { start, size, async_size } => {
            format!("base:{start}+{size}-{async_size}")
        }
        Decision::NoReadahead { .. } => "single".into(),
        Decision::NothingAbsent { .. } => "nothing-absent".into(),
        Decision::MapPages { from, last, mapped, credit } => {
            format!("map:{from}..{last}={mapped}-{credit}")
        }
        Decision::MapHuge { start } => format!("huge:{start}"),
        Decision::Waited { index } => format!("wait:{index}"),
        Decision::Copied { index } => format!("copy:{index}"),
        Decision::Evicted { start, pages } => format!("evict:{start}+{pages}"),
        Decision::File { file } => format!("file:{}", file.number()),
        Decision::Served { major, tries, .. } => {
            format!("{}/{tries}", if major { "major" } else { "minor" })
        }
    })
}

fn short(cause: Cause) -> &'static str {
    match cause {
        Cause::HugePage => "huge",
        Cause::SequentialFault => "seq",
        Cause::SequentialSingle => "seq-single",
        Cause::Executable => "exec",
        Cause::ReadAround => "around",
        Cause::ReadStream => "stream",
        Cause::ReadSingle => "single",
        Cause::SequentialForced => "seq-forced",
        Cause::ReadForced => "forced",
        Cause::WillNeed => "will-need",
        Cause::Governor => "governor",
        Cause::AsyncFault => "async",
        Cause::AsyncRead => "async-read",
    }
}
