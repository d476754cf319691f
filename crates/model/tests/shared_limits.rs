//! Programs whose files share one memory limit, against a real kernel:
//! `data/measured-6.12-programs.json`.

mod support {
    pub mod emulated;
    pub mod recorded_programs;
}

use filemap_job::Engine;
use filemap_job::program::Program;
use filemap_model::Model;
use support::emulated::profile;
use support::recorded_programs::{Counts, Recorded, Recording};

/// Programs that there are at least, and runs of each.
const PROGRAMS: usize = 16;
const REPEATS: usize = 2;

/// By how much the model may be off, as a part of what the kernel counted: in pages read, and in
/// pages read of each file.
const PAGES_ERROR: f64 = 0.01;
const FILE_ERROR: f64 = 0.03;

/// By how much the model may move from what it is known to count where it deviates.
const KNOWN_ERROR: f64 = 0.005;

/// What the model counts on a machine that takes as long for the program as the kernel's did, since
/// when statistics are flushed depends on it.
fn modelled(program: &Program, elapsed_ns: u64) -> Counts {
    let run =
        |factor: f64| Counts::of(&Model { profile: profile(factor) }.run(program).unwrap().run);
    let took_ns = run(1.0).elapsed_ns;
    run(elapsed_ns as f64 / took_ns as f64)
}

fn error(model: u64, kernel: u64) -> f64 {
    model as f64 / kernel as f64 - 1.0
}

/// Whether pages read, in all and of each file, are the kernel's.
fn agrees(model: &Counts, kernel: &Counts) -> bool {
    let files = model.files.iter().zip(&kernel.files);
    let mut errors = files.map(|(model, kernel)| {
        error(model.data_pages_read.unwrap(), kernel.data_pages_read.unwrap()).abs()
    });
    error(model.data_pages_read, kernel.data_pages_read).abs() <= PAGES_ERROR
        && errors.all(|error| error <= FILE_ERROR)
}

/// Both sides of one run, in a line.
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

/// What is wrong with the model's counts of one program, if anything.
fn wrong(recording: &Recording, model: &[Counts]) -> Option<&'static str> {
    let mut runs = model.iter().zip(&recording.repeats);
    let agrees = runs.all(|(model, kernel)| agrees(model, kernel));
    match &recording.deviation {
        None if agrees => None,
        None => Some("it differs from the kernel"),
        Some(_) if agrees => Some("it agrees with the kernel now: remove its deviation"),
        Some(known) => {
            let mut pairs = known.model.iter().zip(model);
            let is_known = known.model.len() == model.len()
                && pairs.all(|(&known, model)| {
                    error(model.data_pages_read, known).abs() <= KNOWN_ERROR
                });
            (!is_known).then_some("it differs from the kernel, but not as it was known to")
        }
    }
}

#[test]
fn files_under_one_limit_are_those_of_linux_6_12() {
    let recorded = Recorded::load();
    assert!(recorded.kernel.starts_with("6.12."), "{}", recorded.kernel);
    assert!(recorded.programs.len() >= PROGRAMS, "{} programs", recorded.programs.len());
    let mut found = Vec::new();
    for recording in &recorded.programs {
        assert!(recording.repeats.len() >= REPEATS, "{}", recording.name);
        let program = recording.program("6.12", None);
        let model = recording.repeats.iter().map(|run| modelled(&program, run.elapsed_ns));
        let model: Vec<Counts> = model.collect();
        for (model, kernel) in model.iter().zip(&recording.repeats) {
            println!("{}", shown(&recording.name, model, kernel));
        }
        found.extend(wrong(recording, &model).map(|what| format!("{}: {what}", recording.name)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
