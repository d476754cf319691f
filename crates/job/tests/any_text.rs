//! Any text is a valid job or is rejected in one line.

use filemap_job::program::ProgramStep;
use filemap_job::{Error, Job, JobFlags};
use proptest::prelude::*;

/// Validates a job file with a short list of accesses.
fn job_of(toml: &str) -> Result<Job, Error> {
    let mut spec = JobFlags::from_toml(toml)?;
    for (_, text) in spec.accesses_files() {
        *text = Some("3\n1\n".to_string());
    }
    spec.validate(None)
}

/// Plausible keys and values, so that a good share of them reach validation.
fn toml_line() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("file_size"),
        Just("workload"),
        Just("accesses"),
        Just("fraction"),
        Just("seed"),
        Just("map_offset"),
        Just("map_len"),
        Just("map_shift"),
        Just("split"),
        Just("ram"),
        Just("cache_limit"),
        Just("read_ahead_kb"),
        Just("fault_around"),
        Just("page_size"),
        Just("arch"),
        Just("bs"),
        Just("with"),
    ];
    let value = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:?}")),
        "'[0-9]{1,3}[kmgtpx]?'",
        "'(stride|interleave):[0-9]{1,20}'",
        Just("'random'".to_string()),
        Just("'read-random'".to_string()),
        Just("'arm64'".to_string()),
        Just("'64k'".to_string()),
        "'\\PC{0,20}'",
        "\\PC{0,20}",
    ];
    (key, value).prop_map(|(key, value)| format!("{key} = {value}\n"))
}

fn one_line_or_job(text: &str) {
    match job_of(text) {
        Ok(job) => match job.steps().next().unwrap() {
            ProgramStep::Read { len_bytes, accesses, .. } => {
                for read in job.reads(*len_bytes, accesses).take(100) {
                    assert!(read.len_bytes > 0);
                    assert!(read.offset_bytes + read.len_bytes <= *len_bytes);
                }
            }
            ProgramStep::Touch { accesses, .. } => {
                for page in job.touches(0, accesses).take(100) {
                    assert!(page < job.mappings[0].mapping.pages.0);
                }
            }
            other => panic!("{other:?}"),
        },
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn arbitrary_text_is_a_job_or_one_line_error(text in "[\\PC\n]{0,200}") {
        one_line_or_job(&text);
    }

    #[test]
    fn arbitrary_keys_never_panic(lines in prop::collection::vec(toml_line(), 0..6)) {
        one_line_or_job(&lines.concat());
        // The same with the required keys, unless a line sets them.
        let has_key = |key: &str| lines.iter().any(|line| line.starts_with(key));
        let mut text = lines.concat();
        for (key, line) in [("file_size", "file_size = '1g'\n"), ("workload", "workload = 'random'\n")] {
            if !has_key(key) {
                text.push_str(line);
            }
        }
        one_line_or_job(&text);
    }
}
