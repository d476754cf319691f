//! Kernels with other series than expected, played by the model.

use filemap_core::series::Series;
use filemap_job::{JobFlags, JobSpec, ShownKinds};
use filemap_model::Timing;
use filemap_report::Format;

use super::bench::ConformBench;
use super::compared_kernel::ComparedKernel;
use super::jobs::on_bench;
use super::record::{ConformRecord, Finding};
use crate::engine::mock::Mock;

/// Decisions that 6.12 shows.
fn seen_of_6_12() -> ShownKinds {
    ShownKinds::from_fn(|kind| !kind.tracepoint().starts_with("readahead/"))
}

/// Finding for a 6.12 that has the series `has` and should have `with`.
fn found(has: &str, with: Option<&str>, jobs: &[&str], stops_at_first: bool) -> ConformRecord {
    let on = ComparedKernel {
        release: "6.12.117".to_string(),
        image: Some(("patched".to_string(), None)),
        rules: None,
        with: with.map(String::from),
    };
    let named = jobs
        .iter()
        .enumerate()
        .map(|(number, text)| (format!("job {number}"), JobSpec::read(text).unwrap()));
    let named: Vec<(String, JobSpec)> = named.collect();
    let series: Series = has.parse().unwrap();
    let mut bench = ConformBench::modelled(series, Timing::Settled, seen_of_6_12());
    on_bench(&named, &on, stops_at_first, &mut bench, &Mock::default()).unwrap()
}

/// The window of the last access is credited by fault-around if it has arrived by then, without a
/// fault more or less.
#[test]
fn prompt_device_is_no_mismatch() {
    const JOB: &str = "seed = 311986281292\nfile_size = '17416k'\nmap_shift = 372\n\
                       read_ahead_kb = 16\nfs = 'xfs'\n[[phase]]\nworkload = 'stride:56'\n\
                       accesses = 126\n[[phase]]\nworkload = 'stride:3'\naccesses = 5";
    let spec: JobFlags = toml::from_str(JOB).unwrap();
    let spec = JobFlags { kernel: Some("6.1".to_string()), ..spec };
    let job = spec.validate(None).unwrap();
    // Decisions that kprobes and tracepoints show of 6.1.
    let hidden = ["filemap/mm_filemap_fault", "filemap/mm_filemap_map_pages"];
    let seen = ShownKinds::from_fn(|kind| !hidden.contains(&kind.tracepoint()));
    let found = |timing| {
        let mut bench = ConformBench::modelled(Series::default(), timing, seen);
        let [Finding::Compared(found)] = &bench.compare(&job).unwrap()[..] else { panic!() };
        (found.mismatches, found.excluded, found.unexplained)
    };
    assert_eq!(found(Timing::Settled), (0, 0, 0));
    assert_eq!(found(Timing::Prompt), (0, 1, 0));
}

/// mmap_miss exceeds its threshold only if a miss's own retry credits nothing.
const STRIDE: &str = "workload = 'stride:73'\naccesses = 150\nfile_size = '256m'";

/// Likewise, but only with both patches.
const RANDOM: &str = "fs = 'xfs'\nfile_size = '32m'\n[[phase]]\nworkload = 'reverse'\n\
                      accesses = 3\n[[phase]]\nworkload = 'random'\naccesses = 700";

/// Independent of every series.
const ONCE: &str = "workload = 'first'\nfile_size = '1m'";

fn text(found: &ConformRecord) -> String {
    found.report().render(Format::Table).replace('\n', " ")
}

fn names(found: &ConformRecord) -> Vec<&str> {
    found.likeness.iter().flat_map(|own| &own.does).map(String::as_str).collect()
}

#[test]
fn reports_unpatched_kernel() {
    let found = found("baseline", Some("mmap-miss"), &[ONCE, STRIDE, RANDOM], false);
    assert!(!found.agrees().unwrap());
    assert_eq!(names(&found), ["baseline"]);
    let switched = found.switched.as_ref().unwrap();
    assert_eq!((switched.jobs, switched.changed), (3, 2));
    let changed: Vec<u64> = switched.parts.iter().map(|part| part.changed).collect();
    assert_eq!(changed, [1, 2]);
    let text = text(&found);
    for words in [
        "mmap-miss changes the decisions of 2 of 3 jobs.",
        "This kernel does what it does without mmap-miss: the model without any series decides 3",
        "Its job file:",
        "filemap explain job.toml --kernel 6.12 --with mmap-miss",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// STRIDE with an idle mapping and with advice that changes nothing.
const TABLES: &str = "[[file]]\nname = 'f'\nsize = '256m'\n[[open]]\nname = 'o'\nfile = 'f'\n\
                      [[mapping]]\nname = 'm'\nopen = 'o'\n[[mapping]]\nname = 'idle'\n\
                      open = 'o'\n[[thread]]\nname = 't'\nphase = [\
                      { mapping = 'idle', madvise = 'pageout' },\
                      { mapping = 'm', workload = 'stride:73', accesses = 150 },\
                      { open = 'o', workload = 'read-random', accesses = 9 }]";

#[test]
fn shrinks_jobs_with_tables() {
    let found = found("baseline", Some("mmap-miss"), &[TABLES], false);
    let [difference] = found.differences.as_slice() else { panic!("{:?}", found.differences) };
    assert!(difference.is_smallest);
    let job = JobSpec::from_toml(&difference.job).unwrap();
    assert_eq!((job.mapping.len(), job.thread[0].phase.len()), (1, 1), "{}", difference.job);
    assert_eq!(job.thread[0].phase[0].accesses, Some(101), "{}", difference.job);
    assert_eq!(found.commands.len(), 4, "{:?}", found.commands);
    assert!(found.commands[1].starts_with("filemap run job.toml"), "{:?}", found.commands);
}

/// Of similar differences one is shown, shrunk, with the model's decisions.
#[test]
fn difference_has_model_decisions() {
    let found = found("baseline", Some("mmap-miss"), &[STRIDE, RANDOM], false);
    let [difference] = found.differences.as_slice() else { panic!("{:?}", found.differences) };
    assert_eq!(difference.patterns, ["job 0", "job 1"]);
    assert!(difference.is_smallest);
    let first = &difference.first;
    let accessed = first.accessed.as_ref().unwrap();
    assert_eq!((first.access, accessed.step, accessed.pages), (Some(100), 1, 1));
    assert!(accessed.does.ends_with("stride:73"), "{accessed:?}");
    assert_eq!(first.rule.as_ref().unwrap().ours, "readahead::miss::reads_window");
    let page = accessed.page;
    for line in [
        format!("fault on {page}: missed, mmap_miss 100"),
        format!("no window for {page}; mmap_miss 101"),
    ] {
        assert!(first.reason.contains(&line), "{line}: {:?}", first.reason);
    }
    let text = text(&found);
    let place = format!("'job 0', as the job file below, differs in access 100, to page {page} (");
    for words in [place.as_str(), "Others that differ alike: 'job 1'.", "do_sync_mmap_readahead)."]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// The printed job file works for any engine, kernel and series.
#[test]
fn job_file_has_only_job_keys() {
    let found = found("baseline", Some("mmap-miss"), &[RANDOM], false);
    let job = JobSpec::read(&found.differences[0].job).unwrap();
    assert!(job.is_single_mapping(), "{}", found.differences[0].job);
    assert_eq!((job.on, job.kernel, job.with, job.runs, job.image), (None, None, None, None, None));
    assert!(job.fs.is_none(), "{}", found.differences[0].job);
    let small = found.differences[0].job.lines().count();
    assert!(small <= 4 && job.read_ahead_kb == Some(128), "{small} lines");
    let printed = found.report().render(Format::Table);
    assert!(printed.contains(&format!("\n{}\n", found.differences[0].job.trim_end())), "{printed}");
}

#[test]
fn jobs_that_the_series_does_not_change_show_nothing() {
    for has in ["baseline", "mmap-miss"] {
        let found = found(has, Some("mmap-miss"), &[ONCE], false);
        assert!(found.patterns.iter().all(|pattern| pattern.ok == Some(true)));
        assert!(!found.agrees().unwrap());
        let text = text(&found);
        assert!(text.contains("This shows nothing about mmap-miss: "), "{text}");
    }
}

#[test]
fn reports_partly_patched_kernel() {
    let found = found("p2", Some("mmap-miss"), &[ONCE, STRIDE, RANDOM], false);
    assert!(!found.agrees().unwrap());
    assert_eq!(names(&found), ["miss-no-retry (p2)"]);
    let text = text(&found);
    assert!(text.contains("This kernel does what miss-no-retry (p2) alone does: "), "{text}");
}

#[test]
fn reports_unnamed_series() {
    let found = found("mmap-miss", None, &[ONCE, STRIDE, RANDOM], false);
    assert!(!found.agrees().unwrap() && found.switched.is_none());
    assert_eq!(names(&found), ["miss-fault-address+miss-no-retry (mmap-miss)"]);
}

#[test]
fn patched_kernel_agrees_and_untested_rules_are_listed() {
    let both = found("mmap-miss", Some("mmap-miss"), &[STRIDE, RANDOM], false);
    assert!(both.agrees().unwrap() && both.likeness.is_none() && both.differences.is_empty());
    assert!(!text(&both).contains("No job tells"));
    let one = found("mmap-miss", Some("mmap-miss"), &[STRIDE], false);
    assert!(!one.agrees().unwrap() && one.differences.is_empty());
    let report = text(&one);
    assert!(report.contains("the kernel has miss-fault-address. Give more jobs."), "{report}");
}

#[test]
fn a_part_that_the_model_has_no_rule_for_is_named_and_leaves_nothing_open() {
    let with = Some("mmap-miss+no-retry-uptodate");
    let found = found("mmap-miss", with, &[STRIDE, RANDOM], false);
    let report = text(&found);
    assert!(report.contains("No job tells whether the kernel has no-retry-uptodate."), "{report}");
    assert!(found.agrees().unwrap() && !report.contains("Give more jobs"), "{report}");
}

#[test]
fn the_first_difference_may_be_the_last_pattern() {
    let found = found("baseline", Some("mmap-miss"), &[ONCE, STRIDE, RANDOM], true);
    let names: Vec<&str> = found.patterns.iter().map(|pattern| pattern.name.as_str()).collect();
    assert_eq!(names, ["job 0", "job 1"]);
    assert_eq!(found.differences[0].patterns, ["job 1"]);
}
