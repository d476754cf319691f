//! Jobs under a trace.

use filemap_core::decision::Decision;
use filemap_core::decision::Log;
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::{JobFlags, ShownLog, SizeText};
use filemap_kernel::trace::Observer;

use crate::Bench;
use crate::skip::skip;
use crate::tracing::tracefs;

fn spec(pages: u64, list: &str) -> JobFlags {
    JobFlags {
        kernel: Some("host".to_string()),
        file_size: Some(SizeText((pages * 4096).to_string())),
        accesses_file: Some("list".to_string()),
        accesses_text: Some(list.to_string()),
        read_ahead_kb: Some(64),
        ..JobFlags::default()
    }
}

pub(crate) fn observes_job_in_comparable_form(bench: &Bench) {
    if tracefs(bench).is_none() {
        return;
    }
    let mut observer = Observer::open(&bench.journal).unwrap();
    let job = spec(256, "100\n101\n").validate(Some("6.18.1")).unwrap();
    let subject = match observer.create_files(&job) {
        Ok(subject) => subject,
        Err(error) if error.cannot_run_here() => return skip(error),
        Err(error) => panic!("{error}"),
    };
    assert!(subject.io_bytes() >= 4096);
    let observed = observer.observe_settled(&job, &subject, 100).unwrap();
    let mut log = ShownLog::default();
    observed.decisions.iter().for_each(|decision| log.record(*decision));
    let log = log.into_lines();
    let lines: Vec<String> = log.iter().map(Decision::to_string).collect();
    assert_eq!(lines[..2], ["access 100", "fault 100"]);
    assert!(
        matches!(log[2], Decision::Readahead { start: PageIndex(92), size: PageCount(16), .. }),
        "{log:?}"
    );
    assert_eq!(lines[4..], ["map_pages 96-111"], "the second access faults no more");

    let limited = JobFlags { memory_max: Some(SizeText("1m".to_string())), ..spec(256, "1\n") };
    let limited = limited.validate(Some("6.18.1")).unwrap();
    assert!(observer.create_files(&limited).is_err_and(|error| error.cannot_run_here()));
}
