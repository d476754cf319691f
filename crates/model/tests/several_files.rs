//! Programs: several files, opens and mappings in one memory.

use crate::support::both_caches::agreed;
use crate::support::program::{
    random_program, random_program_with, random_threads, random_threads_with,
};
use crate::support::{Accesses, described, random_spec};
use filemap_job::Run;
use filemap_job::program::{Job, JobSpec};
use filemap_model::{Digest, Error, Profile, trace};

const JOBS: u64 = 1_000;

/// The error of a job of one file whose memory is too small, as a program reports it.
fn out_of_memory(error: &Error) -> Error {
    match error {
        Error::ProgramOutOfMemory { index, .. } => Error::OutOfMemory { index: *index },
        other => panic!("{other}"),
    }
}

/// A program of one file equals the job of that file: the same decisions, and the same counters.
#[test]
fn a_program_of_one_file_is_the_job_of_that_file() {
    let mut same = 0;
    for seed in 1..=JOBS {
        let spec = random_spec(seed, Accesses::Any);
        let Ok(job) = spec.clone().validate(None) else { continue };
        // With another name for its file it is reported as a program.
        let mut tables = job.spec.clone();
        (tables.file[0].name, tables.open[0].file) = ("data".into(), "data".into());
        let program = tables.validate(None).unwrap();
        let (mut of_job, mut of_program) = (Digest::default(), Digest::default());
        let run = trace(&job, &Profile::DEFAULT, &mut of_job);
        let found = trace(&program, &Profile::DEFAULT, &mut of_program);
        assert_eq!(of_program, of_job, "seed {seed}\n{}", described(&spec));
        match (run, found) {
            (Ok(run), Ok(found)) => {
                let counters = filemap_job::Counters { mmap_miss: None, ..run.counters };
                assert_eq!((found.elapsed_ns, found.counters), (run.elapsed_ns, counters));
                assert_eq!(found.files[0].cached, run.cached.pages());
                assert_eq!(found.files[0].evicted_pages, run.counters.evicted_pages);
                same += 1;
            }
            (Err(of_job), Err(of_program)) => assert_eq!(out_of_memory(&of_program), of_job),
            (of_job, of_program) => panic!("seed {seed}: {of_job:?}, {of_program:?}"),
        }
    }
    assert!(same > JOBS / 2, "{same} of {JOBS} jobs");
}

#[test]
#[ignore = "sweeps 2,000 random programs: 10 s of a processor"]
fn caches_agree_on_random_programs() {
    let (mut ran, mut evicted, mut shared) = (0, 0, 0);
    for seed in 1..=2 * JOBS {
        // Every second one gives advice between accesses.
        let spec = random_program_with(seed, if seed % 2 == 0 { 40 } else { 0 });
        let program = valid(&spec, seed);
        let case = format!("seed {seed}\n{}", toml::to_string(&spec).unwrap());
        let found = agreed(&program, &Profile::DEFAULT, &case);
        if let Ok(run) = &found.1 {
            ran += 1;
            evicted += u32::from(run.counters.evicted_pages > Some(0));
            let read = run.files.iter().filter(|file| file.data_pages_read > Some(0)).count();
            shared += u32::from(read > 1 && run.counters.evicted_pages > Some(0));
        }
    }
    assert!(ran > 1800 && evicted > 500 && shared > 400, "{ran} {evicted} {shared}");
}

/// The same with threads that meet each other's pages in flight. Some programs run twice: only the
/// program decides which thread runs.
#[test]
fn caches_agree_on_random_threads() {
    let (mut ran, mut threads, mut evicted, mut bound) = (0, 0, 0, 0);
    for seed in 1..=JOBS / 4 {
        let spec = random_threads_with(seed, if seed % 2 == 0 { 30 } else { 0 });
        let program = valid(&spec, seed);
        let case = format!("seed {seed}\n{}", toml::to_string(&spec).unwrap());
        let found = agreed(&program, &Profile::DEFAULT, &case);
        if seed % 4 == 0 {
            assert_eq!(found, agreed(&program, &Profile::DEFAULT, &case), "{case}");
        }
        if let Ok(run) = &found.1 {
            ran += 1;
            threads += run.threads.len();
            evicted += u32::from(run.counters.evicted_pages > Some(0));
            bound += u32::from(spec.cpus.is_some_and(|cpus| (cpus as usize) < run.threads.len()));
        }
    }
    assert!(ran > 200 && evicted > 100 && bound > 20, "{ran} {evicted} {bound}");
    assert!(threads > 4 * ran, "{threads} threads in {ran} programs");
}

/// The counts of a run by file, by mapping, by thread and by phase add up.
#[test]
fn parts_add_up() {
    for seed in 1..=400 {
        let spec = if seed % 2 == 0 { random_program(seed) } else { random_threads(seed) };
        let program = valid(&spec, seed);
        let Ok(run) = trace(&program, &Profile::DEFAULT, &mut ()) else { continue };
        let of_files = |count: fn(&filemap_job::FileRun) -> Option<u64>| {
            run.files.iter().map(count).sum::<Option<u64>>()
        };
        assert_eq!(of_files(|file| file.data_pages_read), run.counters.data_pages_read);
        assert_eq!(of_files(|file| file.major_faults), run.counters.major_faults);
        assert_eq!(of_files(|file| file.evicted_pages), run.counters.evicted_pages);
        let phases = run.phases.iter().map(|phase| phase.counters.minor_faults.unwrap());
        assert_eq!(Some(phases.sum::<u64>()), run.counters.minor_faults);
        let of_threads = run.threads.iter().map(|thread| thread.counters);
        for (at, (name, &whole)) in run.counters.iter().enumerate() {
            let values = of_threads.clone().filter_map(|counters| *counters.iter().nth(at)?.1);
            let add = |a: u64, b: u64| if name == "mmap_miss_max" { a.max(b) } else { a + b };
            assert_eq!(values.reduce(add), whole, "{name}");
        }
        assert_eq!(
            run.elapsed_ns,
            run.threads.iter().map(|thread| thread.elapsed_ns).max().unwrap()
        );
        for file in &run.files {
            let read_less_evicted =
                file.data_pages_read.zip(file.evicted_pages).map(|(read, evicted)| read - evicted);
            assert_eq!(file.cached, read_less_evicted, "{}", file.name);
        }
    }
}

fn valid(spec: &JobSpec, seed: u64) -> Job {
    let valid = spec.validate(None);
    valid.unwrap_or_else(|error| panic!("{seed}: {error}\n{}", toml::to_string(spec).unwrap()))
}

/// Runs the program of `tables`, with two files of 4096 pages each: `a` opened as `a` and `again`,
/// `b` as `b`.
fn run_of(tables: &str) -> Result<Run, String> {
    let text = format!(
        "{tables}\n[[file]]\nname = 'a'\nsize = '16m'\n[[file]]\nname = 'b'\nsize = '16m'\n\
         [[open]]\nname = 'a'\nfile = 'a'\n[[open]]\nname = 'again'\nfile = 'a'\n\
         [[open]]\nname = 'b'\nfile = 'b'\n"
    );
    let program = JobSpec::from_toml(&text).and_then(|spec| spec.validate(None));
    let program = program.map_err(|error| error.to_string())?;
    trace(&program, &Profile::DEFAULT, &mut ()).map_err(|error| error.to_string())
}

fn majors(run: &Run) -> Vec<u64> {
    run.phases.iter().map(|phase| phase.counters.major_faults.unwrap()).collect()
}

#[test]
fn readahead_belongs_to_the_open_file() {
    // A counter above its threshold stops readahead of that open file only.
    let tables = |second: &str| {
        format!(
            "with = 'mmap-miss'\nread_ahead_kb = 16\n\
             [[mapping]]\nname = 'first'\nopen = 'a'\nlen = '8m'\n\
             [[mapping]]\nname = 'second'\nopen = '{second}'\noffset = '8m'\n\
             [[thread]]\n[[thread.phase]]\nmapping = 'first'\nworkload = 'stride:37'\n\
             accesses = 300\n[[thread.phase]]\nmapping = 'second'\nworkload = 'sequential'\n\
             accesses = 2048\n"
        )
    };
    let (shared, own) = (run_of(&tables("a")).unwrap(), run_of(&tables("again")).unwrap());
    assert_eq!(majors(&shared)[0], majors(&own)[0]);
    assert!(majors(&shared)[1] > 10 * majors(&own)[1], "{:?} {:?}", majors(&shared), majors(&own));
}

#[test]
fn files_compete_for_one_memory() {
    let run = run_of(
        "cache_limit = '20m'\n[[mapping]]\nname = 'a'\nopen = 'a'\n\
         [[mapping]]\nname = 'b'\nopen = 'b'\n[[thread]]\n\
         [[thread.phase]]\nmapping = 'a'\nworkload = 'sequential'\naccesses = 4096\n\
         [[thread.phase]]\nmapping = 'b'\nworkload = 'sequential'\naccesses = 4096\n",
    );
    let run = run.unwrap();
    assert_eq!(run.phases[0].counters.evicted_pages, Some(0));
    assert_eq!(run.files[0].evicted_pages, run.counters.evicted_pages);
    assert!((3072..3200).contains(&run.files[0].evicted_pages.unwrap()), "{:?}", run.files);
    assert!(run.files[0].cached.unwrap() + run.files[1].cached.unwrap() <= 5120);
}

#[test]
fn a_page_that_was_read_is_copied_by_a_write() {
    let run = run_of(
        "fault_around = '4k'\n[[mapping]]\nname = 'm'\nopen = 'a'\nprivate = true\n[[thread]]\n\
         [[thread.phase]]\nmapping = 'm'\npages = [7, 8]\n\
         [[thread.phase]]\nmapping = 'm'\npages = [7, 7, 8]\nwrite = true\n\
         [[thread.phase]]\nmapping = 'm'\npages = [7, 8]\n",
    );
    let minor = |phase: usize| run.as_ref().unwrap().phases[phase].counters.minor_faults;
    assert_eq!([minor(1), minor(2)], [Some(2), Some(0)]);
}

#[test]
fn what_was_unmapped_faults_again_and_stays_cached() {
    let run = run_of(
        "[[mapping]]\nname = 'm'\nopen = 'a'\nlen = '64k'\n[[thread]]\n\
         [[thread.phase]]\nmap = 'm'\n\
         [[thread.phase]]\nmapping = 'm'\npages = [3]\n[[thread.phase]]\nunmap = 'm'\n\
         [[thread.phase]]\nmap = 'm'\n[[thread.phase]]\nmapping = 'm'\npages = [3]\n",
    );
    let run = run.unwrap();
    assert_eq!(majors(&run), [0, 1, 0, 0, 0]);
    assert_eq!(run.phases[4].counters.minor_faults, Some(1));
    assert_eq!(run.files[0].cached, Some(32));
}

#[test]
fn a_touch_behind_the_end_of_the_file_is_sigbus() {
    let tables = |page: u64| {
        format!(
            "[[mapping]]\nname = 'm'\nopen = 'a'\nlen = '2g'\n[[thread]]\n\
             [[thread.phase]]\nmapping = 'm'\npages = [0, {page}]\n"
        )
    };
    assert!(run_of(&tables(4095)).is_ok());
    let error = run_of(&tables(4096)).unwrap_err();
    assert_eq!(
        error,
        "phase 1: page 4096 of mapping 'm' lies beyond the last page of file 'a'; a program that \
         touches it gets SIGBUS: shorten the mapping, or access less of it"
    );
}

#[test]
fn ten_thousand_files() {
    let mut text = "cache_limit = '64m'\n".to_string();
    let mut phases = "[[thread]]\n".to_string();
    for file in 0..10_000 {
        text += &format!(
            "[[file]]\nname = '{file}'\nsize = '64k'\n[[open]]\nname = '{file}'\nfile = '{file}'\n\
             [[mapping]]\nname = '{file}'\nopen = '{file}'\n"
        );
        if file % 10 == 0 {
            phases += &format!("[[thread.phase]]\nmapping = '{file}'\npages = [1]\n");
        }
    }
    let program = JobSpec::from_toml(&(text + &phases)).unwrap().validate(None).unwrap();
    let run = trace(&program, &Profile::DEFAULT, &mut ()).unwrap();
    assert_eq!(run.counters.major_faults, Some(1_000));
    assert_eq!(run.files.len(), 10_000);
}

/// Writes to pages of a private mapping, with all memory held except what readahead fills.
fn copies(accesses: u64) -> Result<Run, Error> {
    let text = format!(
        "memory_max = '4m'\nanonymous = '3m'\nread_ahead_kb = 8192\n\
         [[file]]\nname = 'f'\nsize = '64m'\n[[open]]\nname = 'o'\nfile = 'f'\n\
         [[mapping]]\nname = 'm'\nopen = 'o'\nprivate = true\nadvice = 'sequential'\n\
         [[thread]]\n[[thread.phase]]\nmapping = 'm'\nworkload = 'sequential'\nwrite = true\n\
         accesses = {accesses}\n"
    );
    let program = JobSpec::from_toml(&text).unwrap().validate(None).unwrap();
    trace(&program, &Profile::DEFAULT, &mut ())
}

#[test]
fn a_copy_waits_for_room_that_is_being_read_into() {
    // A Linux 6.18 in a cgroup of its own makes 220 copies, and runs out of memory with 230: the
    // process and its page tables take the other pages of the 256.
    assert!(copies(220).is_ok());
    let error = copies(300).unwrap_err();
    assert!(matches!(error, Error::ProgramOutOfMemory { key: "memory_max", .. }), "{error}");
}

/// Two scans of a file in a memory cgroup that just holds it, with `keys` of the job, and phases
/// `between` the scans.
fn two_scans(keys: &str, between: &str) -> Result<Run, Error> {
    let scan = "[[thread.phase]]\nopen = 'o'\nworkload = 'read-sequential'\nbs = '64k'\n\
                accesses = 512\n";
    let text = format!(
        "memory_max = '40m'\n{keys}\n[[file]]\nname = 'f'\nsize = '32m'\n\
         [[open]]\nname = 'o'\nfile = 'f'\n[[thread]]\n{scan}{between}{scan}"
    );
    let program = JobSpec::from_toml(&text).unwrap().validate(None).unwrap();
    trace(&program, &Profile::DEFAULT, &mut ())
}

#[test]
fn memory_that_is_allocated_between_accesses_is_charged_from_then_on() {
    let pages = |run: &Run| run.counters.data_pages_read.unwrap();
    let phase = |keys: &str| format!("[[thread.phase]]\n{keys}\n");
    let plain = two_scans("", "").unwrap();
    assert_eq!(pages(&plain), 8192);
    // The second scan finds what is left, which its own reads then evict.
    let grown = two_scans("", &phase("allocate = '20m'")).unwrap();
    assert!(pages(&grown) > 3 * 8192 / 2, "{}", pages(&grown));
    let held = two_scans("anonymous = '20m'", "").unwrap();
    assert_eq!(pages(&held), 2 * 8192);
    // What is freed leaves room again.
    let freed = phase("allocate = '8m'") + &phase("free = '8m'");
    let freed = two_scans("anonymous = '4m'", &(freed + &phase("free = '1g'"))).unwrap();
    assert!(pages(&freed) < 8192 + 8192 / 2, "{}", pages(&freed));
    let killed = two_scans("anonymous = '8m'", &phase("allocate = '33m'")).unwrap_err();
    assert!(matches!(killed, Error::OomKill { key: "memory_max", .. }), "{killed}");
    assert!(killed.to_string().contains("phase 2: the program is killed (OOM)"), "{killed}");
}

/// Two threads write to the same pages of a private mapping, and two others free all copies again
/// and again, also between a copy and its charge.
#[test]
fn copies_are_uncharged_as_often_as_they_are_charged() {
    let write = "[[thread]]\nrepeat = 3\n[[thread.phase]]\nmapping = 'm'\nwrite = true\n\
                 workload = 'sequential'\naccesses = 256\n";
    let free = "[[thread]]\nrepeat = 300\n[[thread.phase]]\nmapping = 'm'\n\
                madvise = 'dontneed'\n[[thread.phase]]\nmapping = 'm'\nworkload = 'random'\n\
                accesses = 2\n";
    for (limit, cpus) in [("2m", 4), ("2m", 2), ("8m", 4)] {
        let text = format!(
            "memory_max = '{limit}'\ncpus = {cpus}\n[[file]]\nname = 'f'\nsize = '1m'\n\
             [[open]]\nname = 'o'\nfile = 'f'\n\
             [[mapping]]\nname = 'm'\nopen = 'o'\nprivate = true\n{write}{write}{free}{free}"
        );
        let program = JobSpec::from_toml(&text).unwrap().validate(None).unwrap();
        trace(&program, &Profile::DEFAULT, &mut ()).unwrap();
    }
}

/// A random job of one file of 16 MiB, with `keys`.
fn started(keys: &str) -> Run {
    let text = format!("workload = 'random'\nfile_size = '16m'\naccesses = 3000\n{keys}");
    let job = filemap_job::JobFlags::from_toml(&text).unwrap().validate(None).unwrap();
    trace(&job, &Profile::DEFAULT, &mut ()).unwrap()
}

#[test]
fn what_is_cached_at_the_beginning_is_not_read_again() {
    let [cold, warm, half] = ["", "start = 'warm'", "start = '0.5'"]
        .map(|keys| started(&format!("advice = 'random'\n{keys}")));
    assert_eq!(warm.counters.data_pages_read, Some(0));
    assert_eq!((warm.counters.major_faults, warm.cached.pages()), (Some(0), Some(4096)));
    let read = |run: &Run| run.counters.data_pages_read.unwrap();
    assert!(
        read(&half).abs_diff(read(&cold) / 2) < read(&cold) / 20,
        "{} {}",
        read(&half),
        read(&cold)
    );
    assert!(warm.elapsed_ns < half.elapsed_ns && half.elapsed_ns < cold.elapsed_ns);
    // More than fits: reclaim has evicted the first pages before the job begins.
    let tight = started("start = 'warm'\nmemory_max = '8m'");
    assert!(tight.counters.data_pages_read.unwrap() > 0 && tight.cached.pages().unwrap() <= 2048);
}
