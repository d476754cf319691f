//! Arrays of numpy that are mapped files.

use std::process::Command;

use crate::support::bench::Bench;
use crate::support::data::{ARRAYS, python_with, script};
use crate::support::skip::skip;

pub fn numpy(bench: &Bench) {
    let Some(python) = python_with("numpy") else {
        return skip("there is no numpy for Python (python3-numpy)");
    };
    let script = script(&bench.directory, "arrays.py", ARRAYS);
    let data = bench.data();
    // How many bytes are read of which one is read when governed; 0 where all are read.
    for (name, count, divisor) in [("gather", "100", 4), ("batches", "20", 1), ("scan", "0", 0)] {
        let command = || {
            let mut command = Command::new(&python);
            command.arg(&script).arg(name).arg(&data).arg(count);
            command
        };
        let both = bench.both(16 << 20, &[&data], command).alike().well().governs(&data);
        match divisor {
            0 => both.reads_as_much(),
            divisor => both.reads_less(divisor),
        };
    }
}
