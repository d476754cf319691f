//! Lists and queries mappings of processes.

use std::time::{Duration, Instant};

use filemap_attach::process::{ReadaheadMode, VmaAdvice};
use filemap_attach::{EventKind, FollowMethod, Follower, process};

use crate::bench::{Bench, PAGE};
use crate::program::{Program, advise, map};
use crate::skip::skip;

pub fn lists_many_mappings(bench: &Bench) {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    let count = limit.trim().parse::<u64>().unwrap_or(65_530).min(100_500) - 500;
    if count < 100_000 {
        skip(format!("the kernel permits {count} mappings, which are used"));
    }
    let path = bench.file("many", 2);
    let mut program = Program::start("map", &[&count.to_string(), path.to_str().unwrap()]);
    assert_eq!(program.says(), [count]);
    let begin = Instant::now();
    let found = process::maps(program.pid()).expect("it runs");
    let took = begin.elapsed();
    println!("{} mappings are listed in {took:?}", found.len());
    assert!(found.len() as u64 >= count && took < Duration::from_secs(1));
    let is_file = |range: &&filemap_attach::MappedRange| {
        range.file.as_ref().is_some_and(|file| file.path == path)
    };
    assert_eq!(found.iter().filter(is_file).count() as u64, count);
    for way in [FollowMethod::PerfEvents, FollowMethod::PageTables] {
        let mut follower = Follower::for_processes_with(way).expect("events");
        follower.add(program.pid()).expect("it runs");
        let mut mappings = 0;
        let mut take = |event: filemap_attach::Event| {
            mappings += usize::from(matches!(event.kind, EventKind::Map(_)));
        };
        follower.read_events(&mut take).expect("events");
        assert_eq!(mappings, found.len());
    }
    program.end();
}

pub fn queries_mappings(bench: &Bench) {
    let pages = 64;
    let path = bench.file("queried", pages);
    let address = map(&path, pages) as u64;
    let pid = std::process::id();
    let found = || {
        let all = process::maps_with_advice(pid).expect("own mappings");
        all.into_iter().filter(|(range, _)| range.file.as_ref().is_some_and(|f| f.path == path))
    };
    let (range, advice) = found().next().expect("it is mapped");
    assert_eq!((range.address, range.length_bytes), (address, pages * PAGE));
    assert_eq!(advice, VmaAdvice::default());
    assert!(process::is_mapped(pid, &range));
    advise(address as usize + 16 * PAGE as usize, 8, libc::MADV_RANDOM);
    // madvise(2) has split the VMA into three.
    assert!(process::is_mapped(pid, &range));
    let advice: Vec<_> = found().map(|(_, advice)| advice.readahead).collect();
    assert_eq!(advice, [ReadaheadMode::Normal, ReadaheadMode::Random, ReadaheadMode::Normal]);
    let before = |end: u64| {
        let some = process::maps_with_advice_before(pid, end).expect("own mappings");
        let is_it = |range: &filemap_attach::MappedRange| {
            range.file.as_ref().is_some_and(|f| f.path == path)
        };
        some.into_iter().filter(|(range, _)| is_it(range)).collect::<Vec<_>>()
    };
    assert_eq!(before(range.end()), found().collect::<Vec<_>>());
    assert_eq!(before(address + 16 * PAGE).len(), 1);
    let part = |change: fn(&mut filemap_attach::MappedRange)| {
        let mut other = range.clone();
        change(&mut other);
        process::is_mapped(pid, &other)
    };
    assert!(part(|range| range.length_bytes -= PAGE));
    assert!(!part(|range| range.length_bytes += PAGE << 20));
    assert!(!part(|range| range.offset_bytes += PAGE));
    assert!(!part(|range| range.protection = 3));
    assert!(!part(|range| range.is_shared = false));
    assert!(!part(|range| range.file = None));
    assert!(!part(|range| range.file.as_mut().expect("a file").id.inode += 1));
    // SAFETY: no reference into the mapping exists.
    unsafe { libc::munmap(address as *mut _, (pages * PAGE) as usize) };
    assert!(!process::is_mapped(pid, &range));
}
