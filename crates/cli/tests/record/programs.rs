//! Fills in `data/measured-6.12-programs.json`: one guest for each program.

use std::fs;

use filemap_job::Filesystem;
use filemap_job::program::{Job, JobSpec};
use filemap_kernel::image::{self, KernelImage};

use crate::recorded::Recorded;
use crate::recorded_programs::{Counts, Recording};
use crate::{REPEATS, booted, kernel_of_guest, release, set_read_ahead};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/measured-6.12-programs.json");

/// Runs every program of the file that has no repeats yet, and writes the file after each.
pub fn fill_in(_: &()) {
    // The current file, not that of the build.
    let text = fs::read_to_string(DATA).expect("a file of programs");
    let mut recorded: Recorded<Recording> =
        serde_json::from_str(&text).expect("these keys and no more");
    while let Some(missing) = recorded.runs.iter_mut().find(|run| run.repeats.is_empty()) {
        missing.repeats = measured(missing);
        println!("{}: {:?}", missing.name, missing.repeats);
        let text = serde_json::to_string_pretty(&recorded).expect("it is an object");
        fs::write(DATA, text + "\n").expect("a place for the record");
    }
}

fn measured(recording: &Recording) -> Vec<Counts> {
    let program = recording.program("6.12", None);
    let limit = program.machine.cache_limit.map_or(0, |pages| pages.bytes(4096));
    let image = KernelImage {
        ram_bytes: (512 << 20) + limit * 9 / 8,
        filesystem: match program.machine.fs {
            Filesystem::Xfs => image::DiskFilesystem::Xfs { block_bytes: 4096 },
            _ => image::DiskFilesystem::Ext4,
        },
        ..booted()
    };
    let payload = serde_json::to_string(&recording.program).expect("an object");
    let outcome = image.run(&payload).expect("a guest that answers");
    serde_json::from_str(&outcome.record).expect("counts")
}

/// In the guest: runs the program of `text`, if it is one.
pub fn in_guest(text: &str) -> Option<Result<String, String>> {
    let mut spec: JobSpec = serde_json::from_str(text).ok()?;
    (spec.on, spec.kernel) = (Some("kernel".into()), Some("host".into()));
    let program = spec.validate(Some(&release())).map_err(|error| error.to_string());
    Some(program.and_then(|program| measure(&program)))
}

fn measure(program: &Job) -> Result<String, String> {
    set_read_ahead(program.machine.read_ahead.bytes(4096) >> 10)?;
    let mut prepared = kernel_of_guest()?.prepare(program).map_err(|error| error.to_string())?;
    let mut counts = Vec::new();
    for _ in 0..REPEATS {
        counts.push(Counts::of(&prepared.run().map_err(|error| error.to_string())?));
    }
    serde_json::to_string(&counts).map_err(|error| error.to_string())
}
