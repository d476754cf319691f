//! What several threads charge above `memory.high`, and the time that reclaim takes from them.

use crate::support::both_caches::{agreed, valid};
use crate::support::program::random_writers;
use filemap_job::{Run, SizeText};
use filemap_model::{Profile, trace};

const PAGE: u64 = 4096;

/// The machine on which a thrash runs.
fn server() -> Profile {
    Profile::parse(include_str!("../../../data/machines/server.toml")).unwrap()
}

/// `threads` threads on `cpus` CPUs, each of which maps a sparse file of 4 MiB, reads it and unmaps
/// it for half a second.
fn thrash(limits: &str, threads: u64, cpus: u64, more: &str) -> Run {
    let mut tables = String::new();
    for table in ["file", "open", "mapping"] {
        for number in 0..threads {
            let keys = match table {
                "file" => "size = '4m'\nsparse = true".to_string(),
                "open" => format!("file = 'x{number}'"),
                _ => format!("open = 'x{number}'"),
            };
            tables += &format!("[[{table}]]\nname = 'x{number}'\n{keys}\n");
        }
    }
    for number in 0..threads {
        tables += &format!(
            "[[thread]]\nfor = '500ms'\nphase = [{{ map = 'x{number}' }}, {{ mapping = 'x{number}', \
             workload = 'sequential', accesses = 1024 }}, {{ unmap = 'x{number}' }}]\n"
        );
    }
    let text = format!("cpus = {cpus}\nread_ahead_kb = 512\n{limits}\n{tables}{more}");
    trace(&valid(&text), &server(), &mut ()).unwrap()
}

#[test]
fn what_is_charged_above_high_is_repaid() {
    let high = 16 << 20;
    let run = thrash("memory_high = '16m'", 8, 2, "");
    let cached: u64 = run.files.iter().map(|file| file.cached.unwrap()).sum();
    // Each thread may have a batch that it still owes, and a window that it cannot evict yet.
    assert!(cached * PAGE < high + 8 * (64 * PAGE + (512 << 10)), "{cached} pages");
    assert!(run.counters.evicted_pages.unwrap() > 4 * high / PAGE);
    assert_eq!(run.counters.throttled, None, "reclaim makes progress");
}

/// Memory that cannot be evicted keeps the process above `memory.high`: a thread that charges more
/// then sleeps.
#[test]
fn who_repays_in_vain_sleeps() {
    let more = "[[file]]\nname = 'p'\nsize = '4m'\n[[open]]\nname = 'p'\nfile = 'p'\n\
                [[mapping]]\nname = 'p'\nopen = 'p'\nprivate = true\n[[thread]]\n\
                [[thread.phase]]\nmapping = 'p'\nworkload = 'sequential'\naccesses = 1024\n\
                write = true\n";
    let job = |limits: &str| thrash(limits, 1, 2, more);
    let (owing, free) = (job("memory_high = '2m'"), job("memory_high = '64m'"));
    assert!(owing.counters.throttled > Some(0), "{:?}", owing.counters);
    assert_eq!(free.counters.throttled, None);
    assert!(owing.elapsed_ns > free.elapsed_ns.map(|ns| 2 * ns));
    assert_eq!(owing.threads[1].counters.accesses, Some(1024), "all the same it goes on");
}

/// A retry under `mmap_lock` finds its page gone if others have reclaimed it meanwhile. Under its
/// VMA lock it waits for nobody.
#[test]
fn retries_under_pressure_miss_unless_they_keep_the_lock_of_their_vma() {
    for limits in ["memory_high = '16m'", "memory_max = '16m'"] {
        let baseline = thrash(limits, 64, 8, "");
        let retry = thrash(&format!("{limits}\nwith = 'vma-retry'"), 64, 8, "");
        let misses = |run: &Run| {
            let Some(drops) = run.counters.retry_mmap_drop else { unreachable!("it is counted") };
            run.counters.retry_io_miss.unwrap() as f64 / drops as f64
        };
        let (without, with) = (misses(&baseline), misses(&retry));
        assert!(without > 0.02 && with < without / 5.0, "{limits}: {without:.3} {with:.3}");
    }
}

/// All threads finish and the stores of the page cache agree, while windows are read in parts and
/// overages are repaid.
#[test]
#[ignore = "sweeps 60 random programs under pressure: 12 s of a processor"]
fn random_threads_under_pressure_come_to_their_ends() {
    let (mut ran, mut evicted, mut throttled) = (0, 0, 0);
    for seed in 1..=60 {
        let mut spec = random_writers(seed);
        let limit = SizeText(format!("{}k", 256 + seed % 23 * 200));
        match seed % 3 {
            0 => spec.memory_high = Some(limit),
            1 => spec.memory_max = Some(limit),
            _ => {}
        }
        let text = toml::to_string(&spec).unwrap();
        let Ok(program) = spec.validate(None) else { continue };
        if let Ok(run) = agreed(&program, &server(), &format!("seed {seed}\n{text}")).1 {
            ran += 1;
            evicted += u32::from(run.counters.evicted_pages > Some(100));
            throttled += u32::from(run.counters.throttled.is_some());
        }
    }
    assert!(ran > 40 && evicted > 20 && throttled > 0, "{:?}", (ran, evicted, throttled));
}

/// A thread that has read its page keeps it while it waits for its turn. Otherwise two threads
/// would evict each other's pages forever, as nothing else here can be evicted.
#[test]
fn a_page_that_was_read_is_kept_until_its_fault_goes_on() {
    let phases = |advice: &str| {
        format!(
            "phase = [{{ map = 'x' }}, {advice} {{ mapping = 'x', workload = 'sequential', \
             accesses = 1024 }}, {{ unmap = 'x' }}]"
        )
    };
    let mut text = "memory_max = '6m'\ncpus = 2\nread_ahead_kb = 8192\n".to_string();
    for (name, more) in [("x", 7), ("y", 1)] {
        let (advice, count) = match name {
            "x" => ("", format!("count = {more}")),
            _ => ("{ mapping = 'y', madvise = 'random' },", String::new()),
        };
        text += &format!(
            "[[file]]\nname = '{name}'\nsize = '4m'\n{count}\n[[open]]\nname = '{name}'\nfile = '{name}'\n\
             [[mapping]]\nname = '{name}'\nopen = '{name}'\n[[thread]]\nname = 't{name}'\n{count}\n{}\n",
            phases(advice).replace("'x'", &format!("'{name}'"))
        );
    }
    let run = trace(&valid(&text), &server(), &mut ()).unwrap();
    assert_eq!(run.counters.accesses, Some(8 * 1024));
    assert!(run.counters.evicted_pages > Some(10_000), "{:?}", run.counters.evicted_pages);
}
