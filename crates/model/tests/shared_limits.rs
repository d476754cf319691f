//! Programs whose files share one memory limit, against a real kernel:
//! `data/measured-6.12-programs.json`.

use crate::support::emulated::in_time;
use crate::support::recorded::Recorded;
use crate::support::recorded_programs::{Counts, Recording};
use filemap_job::Engine;
use filemap_job::program::Job;
use filemap_model::ModelEngine;

const TEXT: &str = include_str!("../../../data/measured-6.12-programs.json");

/// Minimum number of programs, and runs of each.
const PROGRAMS: usize = 16;
const REPEATS: usize = 2;

/// Maximum error of the model, as a fraction of the kernel's count: in pages read, and in pages
/// read of each file.
const PAGES_ERROR: f64 = 0.01;
const FILE_ERROR: f64 = 0.03;

/// The counts of the model on a machine that takes as long for the program as the kernel did.
fn modelled(program: &Job, elapsed_ns: u64) -> Counts {
    let run = |profile| Counts::of(&ModelEngine { profile }.run(program).unwrap().runs[0]);
    in_time(elapsed_ns, run, |counts| counts.elapsed_ns)
}

fn error(model: u64, kernel: u64) -> f64 {
    model as f64 / kernel as f64 - 1.0
}

/// Whether pages read, in total and of each file, match the kernel's.
fn agrees(model: &Counts, kernel: &Counts) -> bool {
    let files = model.files.iter().zip(&kernel.files);
    let mut errors = files.map(|(model, kernel)| {
        error(model.data_pages_read.unwrap(), kernel.data_pages_read.unwrap()).abs()
    });
    error(model.data_pages_read, kernel.data_pages_read).abs() <= PAGES_ERROR
        && errors.all(|error| error <= FILE_ERROR)
}

/// Both results of one run, in a line.
fn shown(name: &str, model: &Counts, kernel: &Counts) -> String {
    let files = model.files.iter().zip(&kernel.files).map(|(model, kernel)| {
        let (ours, theirs) = (model.data_pages_read.unwrap(), kernel.data_pages_read.unwrap());
        format!(
            "; {} {ours}/{theirs} ({:+.2} %) cached {:?}/{:?}",
            model.name,
            error(ours, theirs) * 100.0,
            model.cached.unwrap(),
            kernel.cached.unwrap(),
        )
    });
    format!(
        "{name}: read {}/{} ({:+.2} %), major {}/{}, {:.1} s{}",
        model.data_pages_read,
        kernel.data_pages_read,
        error(model.data_pages_read, kernel.data_pages_read) * 100.0,
        model.major_faults,
        kernel.major_faults,
        kernel.elapsed_ns as f64 / 1e9,
        files.collect::<String>(),
    )
}

#[test]
fn files_under_one_limit_are_those_of_linux_6_12() {
    let recorded: Recorded<Recording> = serde_json::from_str(TEXT).expect("these keys and no more");
    assert!(recorded.kernel.starts_with("6.12."), "{}", recorded.kernel);
    assert!(recorded.runs.len() >= PROGRAMS, "{} programs", recorded.runs.len());
    let mut found = Vec::new();
    for recording in &recorded.runs {
        assert!(recording.repeats.len() >= REPEATS, "{}", recording.name);
        let program = recording.program("6.12", None);
        for kernel in &recording.repeats {
            let model = modelled(&program, kernel.elapsed_ns);
            let shown = shown(&recording.name, &model, kernel);
            println!("{shown}");
            if !agrees(&model, kernel) {
                found.push(shown);
            }
        }
    }
    assert!(found.is_empty(), "not as the kernel\n{}", found.join("\n"));
}
