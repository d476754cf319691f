//! Processes that are started.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use filemap_attach::{Event, FaultKind, Follower, What};

use crate::bench::{Bench, PAGE};
use crate::program::{Program, order};

/// All that is told until nothing is for a while.
pub fn all(follower: &mut Follower, events: &mut Vec<Event>) {
    while follower.wait(Duration::from_millis(60)).expect("events") {
        follower.read(&mut |event| events.push(event)).expect("events");
    }
}

/// The pages that a thread touched, of those behind `address`.
pub fn touched(events: &[Event], tid: u64, address: u64, pages: u64) -> Vec<(u64, FaultKind)> {
    let of_thread = events.iter().filter(|event| u64::from(event.tid) == tid);
    let page = |event: &Event| match event.what {
        What::Fault { address: at, kind } if at >= address => {
            Some(((at - address) / PAGE, kind)).filter(|(page, _)| *page < pages)
        }
        _ => None,
    };
    of_thread.filter_map(page).collect()
}

pub fn first_touches(bench: &Bench) {
    let (pages, threads, seed) = (2000, 3, 41);
    let path = bench.cold_file("touched", pages);
    let inode = path.metadata().expect("a file").ino();
    let mut follower = Follower::of_children().expect("perf events");
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

    let begins = events.iter().position(|event| matches!(event.what, What::Begin { .. }));
    assert_eq!((begins, events[0].pid), (Some(0), pid));
    assert_eq!(events[1].what, What::Exec);
    let mapped = events.iter().find_map(|event| match &event.what {
        What::Map(range) if range.address == address => Some(range),
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
        assert!(events.iter().any(|event| event.what == What::Begin { parent: pid }));
    }
    assert!(events.windows(2).all(|two| two[0].at_ns <= two[1].at_ns));
    let ends = events.iter().filter(|event| event.what == What::End).count();
    assert_eq!(ends as u64, threads + 1);
}
