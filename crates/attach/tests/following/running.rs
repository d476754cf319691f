//! Follows processes that are already running.

use filemap_attach::{Error, EventKind, FaultKind, FollowMethod, Follower, process};

use crate::bench::Bench;
use crate::children::{all, for_a_while, touched, until};
use crate::program::{Program, order};
use crate::skip::skip;

pub fn adds_running_process(bench: &Bench) {
    let (pages, threads, seed) = (1200, 4, 5);
    let path = bench.cold_file("added", pages);
    let mut program =
        Program::start("touch", &[path.to_str().unwrap(), &threads.to_string(), &seed.to_string()]);
    let pid = program.pid();
    let [address] = program.says()[..] else { panic!("no address") };
    let mut follower = Follower::for_processes_with(FollowMethod::PerfEvents).expect("perf events");
    follower.add(pid).expect("it runs");
    let mut events = Vec::new();
    all(&mut follower, &mut events);
    let mapped: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Map(range) => Some(range.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(mapped, process::maps(pid).expect("it runs"));
    program.go();
    let tids = program.says();
    all(&mut follower, &mut events);
    for (thread, tid) in tids.iter().enumerate() {
        let expected = order(pages, threads, thread as u64, seed);
        let expected: Vec<_> = expected.into_iter().map(|page| (page, FaultKind::Major)).collect();
        assert_eq!(touched(&events, *tid, address, pages), expected, "thread {thread}");
    }
    program.end();
    until(&mut follower, &mut events, |event| {
        (event.kind == EventKind::Exit && event.tid == pid).then_some(())
    });
}

pub fn adds_running_process_by_page_tables(bench: &Bench) {
    let pages = 500;
    let path = bench.cold_file("added-scanned", pages);
    let mut program = Program::start("touch", &[path.to_str().unwrap(), "2", "9"]);
    let pid = program.pid();
    let [address] = program.says()[..] else { panic!("no address") };
    let mut follower = Follower::for_processes_with(FollowMethod::PageTables).expect("page tables");
    follower.add(pid).expect("it runs");
    let mut events = Vec::new();
    let range = until(&mut follower, &mut events, |event| match &event.kind {
        EventKind::Map(range) if range.address == address => Some(range.clone()),
        _ => None,
    });
    follower.watch(pid, &range);
    for_a_while(&mut follower, &mut events);
    program.go();
    program.says();
    for_a_while(&mut follower, &mut events);
    let mut found = touched(&events, pid.into(), address, pages);
    found.sort_by_key(|(page, _)| *page);
    assert_eq!(found, (0..pages).map(|page| (page, FaultKind::Scanned)).collect::<Vec<_>>());
    follower.unwatch(pid, &range);
    program.end();
    until(&mut follower, &mut events, |event| (event.kind == EventKind::Exit).then_some(()));
}

pub fn names_what_cannot_be_followed(_: &Bench) {
    for way in [FollowMethod::PerfEvents, FollowMethod::PageTables] {
        let mut follower = Follower::for_processes_with(way).expect("events");
        let nobody = follower.add(u32::MAX / 2);
        assert!(matches!(nobody, Err(Error::Gone { .. })), "{nobody:?}");
        // SAFETY: the call takes no arguments.
        let tid = unsafe { libc::gettid() }.unsigned_abs();
        let thread = follower.add(tid).expect_err("it is no process").to_string();
        let own = std::process::id();
        assert_eq!(thread, format!("{tid} is a thread of process {own}; name that process"));
        if rustix::process::geteuid().is_root() {
            skip("nothing is refused to root");
            continue;
        }
        let refused = follower.add(1).expect_err("it is root's").to_string();
        assert!(refused.contains("it is of user 0"), "{refused}");
    }
}

pub fn page_tables_replace_refused_perf_events(_: &Bench) {
    for errno in [libc::EACCES, libc::EPERM, libc::ENOSYS] {
        let program = Program::start("refused", &[&errno.to_string()]);
        program.end();
    }
}

/// Program that is denied perf events, as by Debian's kernel or a container's seccomp profile.
pub fn refused(errno: u32) {
    let filter = [
        // Load the system call number, compare it with perf_event_open, return an action.
        (0x20, 0, 0, 0),
        (0x15, 0, 1, libc::SYS_perf_event_open as u32),
        (0x06, 0, 0, libc::SECCOMP_RET_ERRNO | errno),
        (0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let mut filter = filter.map(|(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k });
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program holds `len` instructions and outlives the calls.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    assert_eq!(done, 0);
    let refused = Follower::for_children_with(FollowMethod::PerfEvents).expect_err("it is refused");
    assert!(refused.to_string().starts_with("perf events: "), "{refused}");
    assert_eq!(Follower::for_children().expect("page tables").method(), FollowMethod::PageTables);
    assert_eq!(Follower::for_processes().expect("page tables").method(), FollowMethod::PageTables);
}
