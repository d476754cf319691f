//! `filemap calibrate`.

use filemap_job::{SizeText, parse_size};
use filemap_kernel::calibrate::MIN_BYTES;
use filemap_study::calibrate::{CalibrateOptions, calibrate};
use filemap_study::machine_profile;

use crate::Outcome;
use crate::args::{CalibrateArgs, MAX_ROUNDS};
use crate::engines::RealEngines;
use crate::error::Error;
use crate::output::{Inputs, is_stdout};

/// Default size of the file.
const DEFAULT_BYTES: u64 = 1 << 30;

/// Default number of rounds.
const DEFAULT_ROUNDS: u64 = 5;

/// Measures this machine and how well the model predicts it.
pub fn run(args: &CalibrateArgs) -> Result<Outcome, Error> {
    let bytes = bytes(args)?;
    let rounds = args.runs.unwrap_or(DEFAULT_ROUNDS);
    if !(1..=MAX_ROUNDS).contains(&rounds) {
        return Err(Error::Usage(format!(
            "--runs {rounds} is out of range; give 1 to {MAX_ROUNDS}"
        )));
    }
    let (path, kept) = output_path(args)?;
    let out = (machine_profile::FLAG, Some(path.as_str()));
    let mut output = args.report.open(&Inputs::default(), &[out])?;
    let target = output.take(machine_profile::FLAG).expect("it was opened");
    let command = command(args, rounds);
    let asked = CalibrateOptions { bytes, rounds, path, kept, command };
    let calibration = calibrate(asked, &RealEngines, |profile| target.write(profile.as_bytes()))?;
    output.write(&calibration.report())?;
    Ok(Outcome::Done)
}

/// Path of the profile, and a note about it.
fn output_path(args: &CalibrateArgs) -> Result<(String, String), Error> {
    let Some(path) = &args.output else {
        let path = machine_profile::path()?;
        machine_profile::make_directory(&path)?;
        let kept = format!(
            "The profile is in {path}. The model uses it from now on; --machine default is the \
             built-in profile."
        );
        return Ok((path, kept));
    };
    let kept = if is_stdout(path) {
        "The profile went to stdout.".to_string()
    } else {
        format!("The profile is in {path}. The model uses it with --machine {path}.")
    };
    Ok((path.clone(), kept))
}

fn bytes(args: &CalibrateArgs) -> Result<u64, Error> {
    let Some(size) = &args.file_size else { return Ok(DEFAULT_BYTES) };
    match parse_size(&size.0) {
        Ok(bytes) if bytes >= MIN_BYTES => Ok(bytes),
        Ok(_) => {
            Err(Error::Usage(format!("--file-size {} is too small; give 64m or more", size.0)))
        }
        Err(error) => Err(Error::Usage(format!("--file-size: {error}"))),
    }
}

fn command(args: &CalibrateArgs, rounds: u64) -> String {
    let profile = args.output.iter().map(|path| format!(" --output {path}"));
    let size = args.file_size.iter().map(|SizeText(size)| format!(" --file-size {size}"));
    let rest: String = profile.chain(size).collect();
    format!("filemap calibrate{rest} --runs {rounds}")
}
