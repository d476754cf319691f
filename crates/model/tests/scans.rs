//! Scans of files larger than their memory, with and without think time, against a Linux 6.18:
//! `data/measured-6.18-scans.json`. The kernel's runs differ; the model has to match one of them.

use filemap_job::program::JobSpec;
use filemap_model::{Profile, trace};
use serde::Deserialize;

#[derive(Deserialize)]
struct Recorded {
    kernel: String,
    /// The machine, as measured by `filemap calibrate`.
    profile: String,
    scans: Vec<Scan>,
}

#[derive(Deserialize)]
struct Scan {
    program: JobSpec,
    /// Pages read and major faults of each run.
    runs: Vec<(u64, u64)>,
    /// The result of the model if it is known to differ, and why.
    deviation: Option<(u64, u64, String)>,
}

#[test]
fn scans_are_inside_the_kernels_own_spread() {
    let recorded: Recorded =
        serde_json::from_str(include_str!("../../../data/measured-6.18-scans.json")).unwrap();
    assert!(recorded.kernel.starts_with("6.18."), "{}", recorded.kernel);
    let profile = Profile::parse(&recorded.profile).unwrap();
    let mut wrong = String::new();
    for scan in &recorded.scans {
        assert!(scan.runs.len() >= 10);
        let program = scan.program.clone().validate(None).unwrap();
        let counters = trace(&program, &profile, &mut ()).unwrap().counters;
        let model = (counters.data_pages_read.unwrap(), counters.major_faults.unwrap());
        let spread = |field: fn(&(u64, u64)) -> u64| {
            let all = scan.runs.iter().map(field);
            all.clone().min().unwrap()..=all.max().unwrap()
        };
        let (pages, faults) = (spread(|run| run.0), spread(|run| run.1));
        let inside = pages.contains(&model.0) && faults.contains(&model.1);
        let expected = match &scan.deviation {
            None => inside,
            Some((pages, faults, _)) => !inside && model == (*pages, *faults),
        };
        let think = scan.program.thread[0].phase[0].think_ns;
        let memory = scan.program.memory_max.as_ref().map(|size| &size.0);
        let readahead = scan.program.read_ahead_kb;
        let line = format!(
            "{memory:?} {think:?} {readahead:?}: model {model:?}, kernel {pages:?} {faults:?}\n"
        );
        print!("{line}");
        wrong += if expected { "" } else { &line };
    }
    assert!(wrong.is_empty(), "{wrong}");
}
