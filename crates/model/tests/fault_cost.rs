//! The cost of a fault, against a real processor: `data/measured-6.18-faults.json`.

use crate::support::measurements::measurements;
use filemap_job::JobFlags;
use filemap_model::{Profile, trace};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Measured {
    faults: u64,
    ns_each: Vec<u64>,
}

/// The default profile describes no particular machine: its prediction may be off by this factor.
const FACTOR: u64 = 2;

/// Predicted time and minor faults of the measured job, with these touches or none.
fn predicted(touches: u64) -> (u64, u64) {
    // In base pages, as on the machine: a fault maps the 16 around it.
    let mut text = "file_size = '16m'\nsparse = true\nkernel = '6.18'\nfs = 'base-pages'\n\
        [[phase]]\nworkload = 'read-sequential'\naccesses = 16\nbs = '1m'\n"
        .to_string();
    if touches > 0 {
        text += &format!("[[phase]]\nworkload = 'stride:16'\naccesses = {touches}\n");
    }
    let job = JobFlags::from_toml(&text).unwrap().validate(None).unwrap();
    let run = trace(&job, &Profile::DEFAULT, &mut ()).unwrap();
    (run.elapsed_ns.unwrap(), run.counters.minor_faults.unwrap())
}

#[test]
fn a_fault_takes_about_as_long_as_on_a_processor() {
    let text = include_str!("../../../data/measured-6.18-faults.json");
    let measured: Measured = measurements(text);
    assert!(measured.ns_each.len() >= 5 && measured.faults >= 256);
    let fastest = *measured.ns_each.iter().min().unwrap();
    let ((with_ns, faults), (without_ns, none)) = (predicted(measured.faults), predicted(0));
    assert_eq!((faults, none), (measured.faults, 0), "each touch is a fault");
    let each_ns = (with_ns - without_ns) / faults;
    assert!(each_ns <= fastest * FACTOR, "{each_ns} ns a fault, measured {fastest}");
    assert!(each_ns * FACTOR >= fastest, "{each_ns} ns a fault, measured {fastest}");
}
