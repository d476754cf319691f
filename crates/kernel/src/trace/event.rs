//! Trace events, as printed by tracepoints.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use filemap_core::decision::ReadaheadSnapshot;
use filemap_core::units::{Order, PageCount, PageIndex};

use crate::{Error, page_size};

/// A file as identified in tracepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inode {
    /// Major number of its filesystem's device; 0 if it has no device.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Inode number.
    pub number: u64,
}

impl Inode {
    /// The file with this metadata.
    pub fn from_metadata(metadata: &Metadata) -> Self {
        let device = metadata.dev();
        Inode {
            major: rustix::fs::major(device),
            minor: rustix::fs::minor(device),
            number: metadata.ino(),
        }
    }

    /// Whether an event refers to this file. A filesystem without its own device (Btrfs) shows
    /// programs another device number than tracepoints, so the inode number has to suffice. A
    /// kprobe shows no device.
    pub(super) fn is_named(&self, named: FileRef) -> bool {
        let is_there = |device| self.major == 0 || (self.major, self.minor) == device;
        self.number == named.number && named.device.is_none_or(is_there)
    }
}

/// A file as an event refers to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileRef {
    /// Major and minor number.
    device: Option<(u32, u32)>,
    number: u64,
}

/// A trace event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// Time in nanoseconds of the monotonic clock, with microsecond resolution.
    pub at_ns: u64,
    /// CPU on which it occurred.
    pub cpu: u32,
    /// Thread that caused it: not always the one under test.
    pub pid: u32,
    /// Index of the watched file. For a [`Tracepoint::UserFault`] the address determines it.
    pub file: usize,
    /// The tracepoint and its fields.
    pub tracepoint: Tracepoint,
}

/// A tracepoint with its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracepoint {
    /// On-demand readahead after a miss (`page_cache_sync_ra`). Not shown for read-around, or for
    /// faults in executable and HUGEPAGE mappings.
    SyncReadahead(ReadaheadSnapshot),
    /// Readahead after a hit on a marked folio (`page_cache_async_ra`).
    AsyncReadahead(ReadaheadSnapshot),
    /// A window is laid out (`page_cache_ra_order`), possibly one wholly beyond the end of file.
    Window {
        /// First page.
        start: PageIndex,
        /// Requested folio order.
        order: Order,
        /// Number of pages before clipping.
        size: PageCount,
        /// Number of pages after the mark.
        async_size: PageCount,
        /// Maximum window size.
        ra_pages: PageCount,
    },
    /// A single read, or the rest of a window, is laid out in base pages
    /// (`page_cache_ra_unbounded`).
    BasePages {
        /// First page.
        start: PageIndex,
        /// Number of pages, clipped to the end of the file.
        size: PageCount,
        /// Number of pages after the mark, as requested.
        async_size: PageCount,
    },
    /// A folio entered the page cache.
    Added {
        /// Its first page.
        start: PageIndex,
        /// Its order.
        order: Order,
    },
    /// A folio left the page cache.
    Removed {
        /// Its first page.
        start: PageIndex,
        /// Its order.
        order: Order,
    },
    /// A fault looked up its page: once per try that fault-around did not serve.
    Fault {
        /// The page.
        index: PageIndex,
    },
    /// Fault-around looked at a window. Mapping a folio by one PMD entry is not shown.
    MapPages {
        /// First page.
        from: PageIndex,
        /// Last page.
        last: PageIndex,
    },
    /// `read(2)` looked for pages.
    Read {
        /// First page.
        from: PageIndex,
        /// Last page.
        last: PageIndex,
    },
    /// A thread under test faulted, on any address.
    UserFault {
        /// The address.
        address: u64,
    },
}

/// Parses a line of a trace. `None`: a comment, another event, or another file's.
///
/// # Errors
/// A known event has an unknown format.
pub fn parse(line: &str, files: &[Inode]) -> Result<Option<TraceEvent>, Error> {
    let Some((head, name, fields)) = split(line) else { return Ok(None) };
    let fields = Fields(fields);
    let format = || Error::TraceFormat { line: line.trim().to_owned() };
    let mut file = 0;
    if name != USER_FAULT {
        let named = fields.file().ok_or_else(format)?;
        let Some(known) = files.iter().position(|file| file.is_named(named)) else {
            return Ok(None);
        };
        file = known;
    }
    // A kprobe also shows the call when there is no readahead; the tracepoint does not.
    if name == ASYNC && fields.number("ra_pages") == Some(0) {
        return Ok(None);
    }
    let Some(kind) = KINDS.iter().find(|(known, _)| *known == name) else { return Ok(None) };
    let tracepoint = kind.1(&fields).ok_or_else(format)?;
    let (at_ns, cpu, pid) = origin(head).ok_or_else(format)?;
    Ok(Some(TraceEvent { at_ns, cpu, pid, file, tracepoint }))
}

const USER_FAULT: &str = "page_fault_user";
const ASYNC: &str = "page_cache_async_ra";

type FieldParser = fn(&Fields) -> Option<Tracepoint>;

/// All parsed events, and their parsers.
const KINDS: [(&str, FieldParser); 10] = [
    ("page_cache_sync_ra", |f| Some(Tracepoint::SyncReadahead(f.readahead_snapshot()?))),
    (ASYNC, |f| Some(Tracepoint::AsyncReadahead(f.readahead_snapshot()?))),
    ("page_cache_ra_order", |f| {
        Some(Tracepoint::Window {
            start: PageIndex(f.number("index")?),
            order: f.order()?,
            size: PageCount(f.number("size")?),
            async_size: PageCount(f.number("async_size")?),
            ra_pages: PageCount(f.number("ra_pages")?),
        })
    }),
    ("page_cache_ra_unbounded", |f| {
        Some(Tracepoint::BasePages {
            start: PageIndex(f.number("index")?),
            size: PageCount(f.number("nr_to_read")?),
            async_size: PageCount(f.number("lookahead_size")?),
        })
    }),
    ("mm_filemap_add_to_page_cache", |f| {
        Some(Tracepoint::Added { start: f.page()?, order: f.order()? })
    }),
    ("mm_filemap_delete_from_page_cache", |f| {
        Some(Tracepoint::Removed { start: f.page()?, order: f.order()? })
    }),
    ("mm_filemap_fault", |f| Some(Tracepoint::Fault { index: f.page()? })),
    ("mm_filemap_map_pages", |f| f.pages().map(|(from, last)| Tracepoint::MapPages { from, last })),
    ("mm_filemap_get_pages", |f| f.pages().map(|(from, last)| Tracepoint::Read { from, last })),
    (USER_FAULT, |f| {
        let address = f.text("address")?.trim_start_matches("0x");
        u64::from_str_radix(address, 16).ok().map(|address| Tracepoint::UserFault { address })
    }),
];

/// Splits `task-pid [cpu] time: name: fields`. The task name may contain any characters, including
/// blanks.
fn split(line: &str) -> Option<(&str, &str, &str)> {
    let prefixes = [": page_cache_", ": mm_filemap_", ": page_fault_user"];
    let at = prefixes.iter().filter_map(|prefix| line.find(prefix)).min()?;
    let (name, fields) = line[at + 2..].split_once(": ")?;
    Some((&line[..at], name, fields))
}

/// Time in ns, CPU and thread, from the text before an event's name.
pub(super) fn origin(head: &str) -> Option<(u64, u32, u32)> {
    let (head, time) = head.rsplit_once(' ')?;
    let (seconds, micros) = time.split_once('.')?;
    let at_us = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
    let open = head.rfind('[')?;
    let cpu = head[open + 1..].split(']').next()?.parse().ok()?;
    let pid = head[..open].trim_end().rsplit_once('-')?.1.parse().ok()?;
    Some((at_us * 1000, cpu, pid))
}

/// The fields of an event: `name=value`, or in some events `name value`.
pub(super) struct Fields<'a>(pub(super) &'a str);

impl<'a> Fields<'a> {
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        let mut words = self.0.split_ascii_whitespace();
        while let Some(word) = words.next() {
            match word.split_once('=') {
                Some((known, value)) if known == name => return Some(value),
                None if word == name => return words.next(),
                _ => {}
            }
        }
        None
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    fn order(&self) -> Option<Order> {
        Some(Order(self.text("order")?.parse().ok()?))
    }

    pub(super) fn file(&self) -> Option<FileRef> {
        if let Some(number) = self.number("i_ino") {
            return Some(FileRef { device: None, number });
        }
        let (major, minor) = self.text("dev")?.split_once(':')?;
        let number = u64::from_str_radix(self.text("ino")?, 16).ok()?;
        Some(FileRef { device: Some((major.parse().ok()?, minor.parse().ok()?)), number })
    }

    pub(super) fn page(&self) -> Option<PageIndex> {
        Some(PageIndex(self.number("ofs")? / page_size()))
    }

    fn pages(&self) -> Option<(PageIndex, PageIndex)> {
        let (from, last) = self.text("ofs")?.split_once('-')?;
        let page = |bytes: &str| Some(PageIndex(bytes.parse::<u64>().ok()? / page_size()));
        Some((page(from)?, page(last)?))
    }

    fn readahead_snapshot(&self) -> Option<ReadaheadSnapshot> {
        Some(ReadaheadSnapshot {
            index: PageIndex(self.number("index")?),
            req: PageCount(self.number("req_count")?),
            // Kernels without the tracepoint do not store a stream's order.
            order: self.order().unwrap_or_default(),
            size: PageCount(self.number("size")?),
            async_size: PageCount(self.number("async_size")?),
            // A patched kernel may use the field for something else.
            mmap_miss: u16::try_from(self.number("mmap_miss")?).unwrap_or(u16::MAX),
            // Negative before the first read.
            previous_end: u64::try_from(self.text("prev_pos")?.parse::<i64>().ok()?).ok(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Inode = Inode { major: 254, minor: 0, number: 0xc0581 };

    fn parse_event(event: &str) -> Option<Tracepoint> {
        let line = format!("   my task [1]-24490   [001] d..2.  2616.303942: {event}");
        let event = parse(&line, &[FILE]).unwrap()?;
        assert_eq!((event.at_ns, event.cpu, event.pid), (2_616_303_942_000, 1, 24490));
        Some(event.tracepoint)
    }

    #[test]
    fn parses_each_event() {
        let page_bytes = page_size();
        let at = |page: u64| page * page_bytes;
        let ra = "dev=254:0 ino=c0581 index=512 req_count=2048 order=9 size=1024 async_size=512 \
                  ra_pages=2048 mmap_miss=3 prev_pos=-1";
        let found = ReadaheadSnapshot {
            index: PageIndex(512),
            req: PageCount(2048),
            order: Order(9),
            size: PageCount(1024),
            async_size: PageCount(512),
            mmap_miss: 3,
            previous_end: None,
        };
        assert_eq!(
            parse_event(&format!("page_cache_async_ra: {ra}")),
            Some(Tracepoint::AsyncReadahead(found))
        );
        assert_eq!(
            parse_event(&format!("page_cache_sync_ra: {ra}")),
            Some(Tracepoint::SyncReadahead(found))
        );
        assert_eq!(
            parse_event(&format!(
                "mm_filemap_add_to_page_cache: dev 254:0 ino c0581 pfn=0x1 ofs={} order=6",
                at(896)
            )),
            Some(Tracepoint::Added { start: PageIndex(896), order: Order(6) })
        );
        assert_eq!(
            parse_event(&format!(
                "mm_filemap_map_pages: dev=254:0 ino=c0581 ofs={}-{}",
                at(896),
                at(912) - 1
            )),
            Some(Tracepoint::MapPages { from: PageIndex(896), last: PageIndex(911) })
        );
        assert_eq!(
            parse_event(
                "page_fault_user: address=0x7fb6bb6774e0 ip=0x7fb6bb6774e0 error_code=0x14"
            ),
            Some(Tracepoint::UserFault { address: 0x7fb6_bb67_74e0 })
        );
    }

    #[test]
    fn parses_windows() {
        assert_eq!(
            parse_event(
                "page_cache_ra_order: dev=254:0 ino=c0581 index=0 order=9 size=1024 \
                  async_size=512 ra_pages=2048"
            ),
            Some(Tracepoint::Window {
                start: PageIndex(0),
                order: Order(9),
                size: PageCount(1024),
                async_size: PageCount(512),
                ra_pages: PageCount(2048)
            })
        );
        assert_eq!(
            parse_event(
                "page_cache_ra_unbounded: dev=254:0 ino=c0581 index=7 nr_to_read=16 \
                  lookahead_size=0"
            ),
            Some(Tracepoint::BasePages {
                start: PageIndex(7),
                size: PageCount(16),
                async_size: PageCount(0)
            })
        );
    }

    #[test]
    fn parses_kprobe_like_tracepoint() {
        let text = "page_cache_async_ra: (page_cache_async_ra+0x0/0x2b0) i_ino=787841 req_count=32 \
                    size=32 async_size=16 ra_pages=32 mmap_miss=40 prev_pos=-1 index=16";
        let found = ReadaheadSnapshot {
            index: PageIndex(16),
            req: PageCount(32),
            order: Order(0),
            size: PageCount(32),
            async_size: PageCount(16),
            mmap_miss: 40,
            previous_end: None,
        };
        assert_eq!(parse_event(text), Some(Tracepoint::AsyncReadahead(found)));
        assert_eq!(parse_event(&text.replace("787841", "787842")), None);
        assert_eq!(parse_event(&text.replace("ra_pages=32", "ra_pages=0")), None);
    }

    #[test]
    fn skips_foreign_events() {
        assert_eq!(parse_event("mm_filemap_fault: dev=254:0 ino=c0582 ofs=0"), None);
        assert_eq!(parse_event("mm_filemap_fault: dev=254:1 ino=c0581 ofs=0"), None);
        assert_eq!(parse_event("sched_switch: prev_comm=a"), None);
        assert_eq!(parse("# tracer: nop", &[FILE]).unwrap(), None);
        assert_eq!(parse("", &[FILE]).unwrap(), None);
    }

    #[test]
    fn rejects_unknown_format() {
        let line = "x-1 [000] 1.5: mm_filemap_fault: dev=254:0 ino=c0581 offset=0";
        assert!(matches!(parse(line, &[FILE]), Err(Error::TraceFormat { .. })));
    }
}
