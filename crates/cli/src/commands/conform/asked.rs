//! What may be asked of a comparison.

use filemap_job::JobSpec;

use crate::error::Error;

/// Refuses what a comparison of the model with the running kernel, once, leaves no choice of.
pub fn check_asked(flags: &JobSpec, spec: &JobSpec) -> Result<(), Error> {
    if spec.image.is_some() {
        let message = "--image: a booted kernel gives no decision log; leave it out";
        return Err(Error::CannotRun(message.to_string()));
    }
    // A job file says which engine it was written for.
    if flags.on.is_some() {
        let message = "--on does not go with conform, which is of both engines; remove it";
        return Err(Error::Usage(message.to_string()));
    }
    if spec.runs.is_some_and(|runs| runs != 1) {
        let message = "--runs does not go with conform, which reads one log; remove it";
        return Err(Error::Usage(message.to_string()));
    }
    if spec.seed == Some(0) {
        let message = format!("--seed: 0 is out of range; give 1 to {}", u64::MAX);
        return Err(Error::Usage(message));
    }
    match spec.with.as_deref() {
        None | Some("baseline") => Ok(()),
        Some(series) => Err(Error::CannotRun(format!(
            "--with {series}: no series is in the running kernel; leave it out"
        ))),
    }
}
