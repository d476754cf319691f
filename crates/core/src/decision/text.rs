//! Decisions as lines of text, with what tracepoints show of them.

use std::fmt;

use super::{Decision, ReadaheadSnapshot};

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decision::Faulted { index } => write!(f, "access {index}"),
            Decision::Lookup { index, .. } => write!(f, "fault {index}"),
            Decision::MapPages { from, last, .. } => write!(f, "map_pages {from}-{last}"),
            Decision::Entered { cause, found } => {
                state(f, if cause.is_async() { "async_ra" } else { "sync_ra" }, found)
            }
            Decision::Readahead { start, order, size, async_size, .. } => {
                let order = order.0;
                write!(f, "ra_order {start} order={order} size={size} async_size={async_size}")
            }
            Decision::BasePages { start, size, async_size } => {
                write!(f, "ra_unbounded {start} size={size} async_size={async_size}")
            }
            Decision::Added { start, order, folios, .. } => {
                write!(f, "added {start} order={} folios={folios}", order.0)
            }
            Decision::NothingAbsent { index } => write!(f, "nothing_absent {index}"),
            Decision::NoReadahead { index, .. } => write!(f, "no_readahead {index}"),
            Decision::MapHuge { start } => write!(f, "map_huge {start}"),
            Decision::Locked { lock } => write!(f, "locked {}", lock.name()),
            Decision::Dropped { lock } => write!(f, "dropped {}", lock.name()),
            Decision::Waited { index } => write!(f, "waited {index}"),
            Decision::Served { index, .. } => write!(f, "served {index}"),
            Decision::Copied { index } => write!(f, "copied {index}"),
            Decision::Evicted { start, pages } => write!(f, "evicted {start} pages={pages}"),
            Decision::File { file } => write!(f, "file {}", file.number()),
        }
    }
}

fn state(f: &mut fmt::Formatter<'_>, name: &str, found: &ReadaheadSnapshot) -> fmt::Result {
    let ReadaheadSnapshot { index, req, order, size, async_size, mmap_miss, previous_end } = found;
    let order = order.0;
    write!(f, "{name} {index} req={req} order={order} size={size} async_size={async_size}")?;
    write!(f, " mmap_miss={mmap_miss}")?;
    previous_end.map_or(Ok(()), |end| write!(f, " previous_end={end}"))
}
