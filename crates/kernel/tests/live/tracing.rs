//! Traces of the kernel's decisions.

use std::fs;

use filemap_core::address::vma::Advice;
use filemap_core::units::{Order, PageCount, PageIndex};
use filemap_job::ShownKinds;
use filemap_kernel::cold_cache::drop_file;
use filemap_kernel::probe::{Probe, ProbeProcess};
use filemap_kernel::trace::{Inode, Trace, TraceEvent, TraceFs, Tracepoint};
use filemap_kernel::{Error, page_size};

use crate::Bench;
use crate::probing::{process, read, touch};
use crate::skip::skip;

/// Runs a process on a cold file under a trace. Returns the child's decisions, without faults on
/// other addresses.
pub(crate) fn trace(bench: &Bench, tracefs: &TraceFs, process: &ProbeProcess) -> Vec<Tracepoint> {
    let file = Inode::from_metadata(&fs::metadata(&process.files[0]).unwrap());
    let trace = Trace::create(tracefs, &bench.journal, &[file], 20_000).unwrap();
    let probe = Probe::start(process).unwrap();
    let pid = probe.pid();
    drop_file(&process.files[0]).unwrap();
    trace.start().unwrap();
    probe.run().unwrap();
    let mut events = Vec::new();
    trace.stop(|event: TraceEvent| events.push(event)).unwrap();
    let ours = events.iter().filter(|event| event.pid == pid);
    ours.map(|event| event.tracepoint).collect()
}

pub(crate) fn tracefs(bench: &Bench) -> Option<TraceFs> {
    if !bench.needs_root() {
        return None;
    }
    match TraceFs::open(&bench.journal) {
        Ok(tracefs) if tracefs.shown_kinds() == ShownKinds::ALL => Some(tracefs),
        Ok(tracefs) => {
            skip(format!(
                "this kernel lacks {:?}",
                tracefs.shown_kinds().missing().collect::<Vec<_>>()
            ));
            None
        }
        Err(error) => {
            skip(error);
            None
        }
    }
}

pub(crate) fn traces_decisions(bench: &Bench) {
    let Some(tracefs) = tracefs(bench) else { return };
    let (path, _guard) = bench.file("traced", 4096);
    let mut process = process(&path, 4096, vec![touch([2000, 2001, 2000 + 16])]);
    let seen = trace(bench, &tracefs, &process);
    let window = seen.iter().find_map(|seen| match *seen {
        Tracepoint::Window { start, order, size, async_size, ra_pages } => {
            Some((start.0, order, size, async_size, ra_pages))
        }
        _ => None,
    });
    let (start, order, size, async_size, ra_pages) = window.expect("a miss reads a window");
    assert_eq!((order, size, async_size.0), (Order(0), ra_pages, ra_pages.0 / 4));
    assert_eq!(start, 2000u64.saturating_sub(ra_pages.0 / 2));
    let added = seen.iter().filter(|seen| matches!(seen, Tracepoint::Added { .. })).count() as u64;
    assert_eq!(added, (start + size.0).min(4096) - start);
    assert_eq!(seen[0], Tracepoint::Fault { index: PageIndex(2000) });
    let around =
        |from: u64| Tracepoint::MapPages { from: PageIndex(from), last: PageIndex(from + 15) };
    assert_eq!(seen[seen.len() - 2..], [around(2000), around(2016)]);

    process.threads[0].steps = vec![read(0, page_size(), 1)];
    let seen = trace(bench, &tracefs, &process);
    match seen[0] {
        Tracepoint::SyncReadahead(found) => {
            assert_eq!((found.index, found.req), (PageIndex(0), PageCount(1)));
            assert_eq!((found.mmap_miss, found.previous_end), (0, None));
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) fn overflowing_trace_is_an_error(bench: &Bench) {
    let Some(tracefs) = tracefs(bench) else { return };
    let (path, _guard) = bench.file("overflow", 32768);
    let file = Inode::from_metadata(&fs::metadata(&path).unwrap());
    let trace = Trace::create(&tracefs, &bench.journal, &[file], 1).unwrap();
    let mut process = process(&path, 32768, vec![touch(0..32768)]);
    process.mappings[0].mapping.advice = Advice::RANDOM;
    process.settle = false;
    let probe = Probe::start(&process).unwrap();
    drop_file(&path).unwrap();
    trace.start().unwrap();
    probe.run().unwrap();
    assert!(matches!(trace.stop(drop), Err(Error::LostEvents { .. })));
}
