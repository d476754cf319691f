//! Formats decisions of the model in words, with details that tracepoints do not show.

use filemap_core::decision::{Decision, ReadaheadSnapshot};
use filemap_core::units::{PageCount, PageIndex};

/// Formats `decision`; `None` if it concerns neither reading nor mapping.
pub(super) fn describe_decision(decision: &Decision) -> Option<String> {
    Some(match decision {
        Decision::Entered { cause, found } => {
            let ReadaheadSnapshot { index, req, order, size, async_size, mmap_miss, previous_end } =
                found;
            let end =
                previous_end.map_or(String::new(), |end| format!(", last read ended at {end}"));
            format!(
                "{}: entered at {index} for {req} pages, order {}; last window {size} pages, {} \
                 after its mark; mmap_miss {mmap_miss}{end}",
                cause.name(),
                order.0,
                async_size.0
            )
        }
        Decision::Readahead { cause, order, start, size, async_size, mmap_miss, .. } => format!(
            "{}: window of {size} pages from {start}, {}, order {}; mmap_miss {mmap_miss}",
            cause.name(),
            mark(*start, *size, *async_size),
            order.0
        ),
        Decision::BasePages { start, size, .. } => {
            format!("laid out in base pages: {size} from {start}")
        }
        Decision::NothingAbsent { index } => {
            format!("mark at {index}: nothing absent within a window after it")
        }
        Decision::NoReadahead { index, mmap_miss } => {
            format!("no window for {index}; mmap_miss {mmap_miss}")
        }
        Decision::Added { start, order, folios, marked } => {
            let marked = marked.map_or(String::new(), |page| format!(", mark on {page}"));
            format!("added {folios} folios of order {} from {start}{marked}", order.0)
        }
        Decision::MapPages { from, last, mapped, credit } => {
            format!("fault-around over {from}-{last} mapped {mapped} pages, credit {credit}")
        }
        Decision::MapHuge { start } => format!("mapped by one PMD entry from {start}"),
        Decision::Lookup { index, hit, tried, mmap_miss } => {
            let which = if *tried { "retry on" } else { "fault on" };
            let found = if *hit { "found" } else { "missed" };
            format!("{which} {index}: {found}, mmap_miss {mmap_miss}")
        }
        Decision::Copied { index } => format!("copied {index}"),
        Decision::Evicted { start, pages } => format!("evicted {pages} pages from {start}"),
        Decision::Locked { .. }
        | Decision::Dropped { .. }
        | Decision::Waited { .. }
        | Decision::Served { .. }
        | Decision::Faulted { .. }
        | Decision::File { .. } => return None,
    })
}

/// Position of a window's mark.
fn mark(start: PageIndex, size: PageCount, async_size: PageCount) -> String {
    if async_size == PageCount(0) {
        return "no mark".to_string();
    }
    format!("mark at {}", start + size.saturating_sub(async_size))
}
