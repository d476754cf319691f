//! Follows processes started by the test.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use filemap_attach::{Event, EventKind, FaultKind, FollowMethod, Follower};

use crate::bench::{Bench, PAGE};
use crate::program::{Program, order};

/// Collects events until none arrive for 60 ms.
pub fn all(follower: &mut Follower, events: &mut Vec<Event>) {
    while follower.wait(Duration::from_millis(60)).expect("events") {
        follower.read_events(&mut |event| events.push(event)).expect("events");
    }
}

/// The pages of the mapping of `pages` pages at `address` that a thread faulted on, in order.
pub fn touched(events: &[Event], tid: u64, address: u64, pages: u64) -> Vec<(u64, FaultKind)> {
    let of_thread = events.iter().filter(|event| u64::from(event.tid) == tid);
    let page = |event: &Event| match event.kind {
        EventKind::Fault { address: at, kind } if at >= address => {
            Some(((at - address) / PAGE, kind)).filter(|(page, _)| *page < pages)
        }
        _ => None,
    };
    of_thread.filter_map(page).collect()
}

pub fn reports_each_first_touch_once_in_order(bench: &Bench) {
    let (pages, threads, seed) = (2000, 3, 41);
    let path = bench.cold_file("touched", pages);
    let inode = path.metadata().expect("a file").ino();
    let mut follower = Follower::for_children().expect("perf events");
    let text = [path.to_str().unwrap(), &threads.to_string(), &seed.to_string()];
    let mut program = Program::start("touch", &text);
    let [address] = program.says()[..] else { panic!("no address") };
    program.go();
    let tids = program.says();
    let mut events = Vec::new();
    all(&mut follower, &mut events);
    let pid = program.pid();
    program.end();
    all(&mut follower, &mut events);

    let begins = events.iter().position(|event| matches!(event.kind, EventKind::Fork { .. }));
    assert_eq!((begins, events[0].pid), (Some(0), pid));
    assert_eq!(events[1].kind, EventKind::Exec);
    let mapped = events.iter().find_map(|event| match &event.kind {
        EventKind::Map(range) if range.address == address => Some(range),
        _ => None,
    });
    let mapped = mapped.expect("the mapping is told");
    let file = mapped.file.as_ref().expect("a file's");
    assert_eq!((mapped.length_bytes, mapped.offset_bytes), (pages * PAGE, 0));
    assert_eq!((file.id.inode, &file.path), (inode, &path));
    assert_eq!((mapped.protection, mapped.is_shared), (1, true));
    for (thread, tid) in tids.iter().enumerate() {
        let expected = order(pages, threads, thread as u64, seed);
        let expected: Vec<_> = expected.into_iter().map(|page| (page, FaultKind::Major)).collect();
        assert_eq!(touched(&events, *tid, address, pages), expected, "thread {thread}");
        assert!(events.iter().any(|event| event.kind == EventKind::Fork { parent: pid }));
    }
    assert!(events.windows(2).all(|two| two[0].at_ns <= two[1].at_ns));
    let ends = events.iter().filter(|event| event.kind == EventKind::Exit).count();
    assert_eq!(ends as u64, threads + 1);
}

/// The set of pages that page table scans reported for a process; such events have the PID as TID.
fn seen(events: &[Event], pid: u32, address: u64, pages: u64) -> BTreeSet<u64> {
    touched(events, pid.into(), address, pages).into_iter().map(|(page, _)| page).collect()
}

pub fn page_tables_show_the_same_pages(bench: &Bench) {
    let (pages, seed) = (1500, 7);
    let path = bench.cold_file("scanned", pages);
    let mut follower = Follower::for_children_with(FollowMethod::PageTables).expect("page tables");
    assert_eq!(follower.method(), FollowMethod::PageTables);
    let mut program = Program::start("touch", &[path.to_str().unwrap(), "2", &seed.to_string()]);
    let pid = program.pid();
    let [address] = program.says()[..] else { panic!("no address") };
    let mut events = Vec::new();
    let range = until(&mut follower, &mut events, |event| match &event.kind {
        EventKind::Map(range) if range.address == address => Some(range.clone()),
        _ => None,
    });
    assert_eq!(range.file.as_ref().map(|file| &file.path), Some(&path));
    follower.watch(pid, &range);
    program.go();
    program.says();
    for_a_while(&mut follower, &mut events);
    let found = touched(&events, pid.into(), address, pages);
    assert_eq!(found.len() as u64, pages, "each once");
    assert!(found.iter().all(|(_, kind)| *kind == FaultKind::Scanned));
    assert_eq!(seen(&events, pid, address, pages), (0..pages).collect());
    program.end();
    until(&mut follower, &mut events, |event| (event.kind == EventKind::Exit).then_some(()));
    assert_eq!(
        (&events[0].kind, events[0].pid),
        (&EventKind::Fork { parent: std::process::id() }, pid)
    );
}

/// Collects events until `found` returns a value for one, and returns that value.
pub fn until<T>(
    follower: &mut Follower,
    events: &mut Vec<Event>,
    mut found: impl FnMut(&Event) -> Option<T>,
) -> T {
    let begin = Instant::now();
    loop {
        assert!(begin.elapsed() < Duration::from_secs(20), "it is told");
        follower.wait(Duration::from_millis(100)).expect("events");
        let mut first = None;
        let mut take = |event: Event| {
            first = first.take().or_else(|| found(&event));
            events.push(event);
        };
        follower.read_events(&mut take).expect("events");
        if let Some(first) = first {
            return first;
        }
    }
}

/// Collects events for longer than any poll interval.
pub fn for_a_while(follower: &mut Follower, events: &mut Vec<Event>) {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(400) {
        follower.wait(Duration::from_millis(20)).expect("events");
        follower.read_events(&mut |event| events.push(event)).expect("events");
    }
}

pub fn follows_descendants(bench: &Bench) {
    let pages = 64;
    let path = bench.cold_file("descended", pages);
    let file = path.to_str().unwrap();
    for way in [FollowMethod::PerfEvents, FollowMethod::PageTables] {
        let mut follower = Follower::for_children_with(way).expect("events");
        let mut program = Program::start("start", &["start", "touch", file, "1", "3"]);
        let [address] = program.says()[..] else { panic!("no address") };
        let mut events = Vec::new();
        let mut is_it = |event: &Event| match &event.kind {
            EventKind::Map(range) if range.address == address => range
                .file
                .as_ref()
                .is_some_and(|f| f.path == path)
                .then(|| (event.pid, range.clone())),
            _ => None,
        };
        let (pid, range) = until(&mut follower, &mut events, &mut is_it);
        follower.watch(pid, &range);
        program.go();
        let [tid] = program.says()[..] else { panic!("no thread") };
        for_a_while(&mut follower, &mut events);
        let tid = if way == FollowMethod::PerfEvents { tid } else { pid.into() };
        assert_eq!(touched(&events, tid, address, pages).len() as u64, pages, "{way:?}");
        let parents = |pid: u32| {
            events.iter().find_map(|event| match event.kind {
                EventKind::Fork { parent } if event.pid == pid && parent != pid => Some(parent),
                _ => None,
            })
        };
        let grandparent = parents(pid).and_then(parents);
        assert_eq!(grandparent, Some(program.pid()), "{way:?}");
        program.go();
        program.end();
    }
}
