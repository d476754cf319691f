//! The command that compares the same again.

use filemap_job::{JobSpec, Written, shell_word};

use crate::compare::booted::{self, Booted};
use crate::given::Given;
use crate::input;
use crate::machine_profile;
use crate::variants::Variant;

/// The command that compares `given`, which came to `written`, again.
pub fn of(given: &Given, written: &Written, variants: &[Variant], images: &[Booted]) -> String {
    let file = given.path.as_deref().filter(|_| !given.is_thrash);
    let (file, flags, on) = match written {
        Written::Flags(spec) if file.is_none() || spec.phase.is_empty() => {
            (None, JobSpec { on: None, ..all_flags(given, spec) }, spec.on.clone())
        }
        Written::Flags(spec) => {
            (file, JobSpec { on: None, with: None, ..given.flags.clone() }, spec.on.clone())
        }
        Written::Tables(_) => (file, given.flags.clone(), None),
    };
    let mut words = vec!["filemap compare".to_string()];
    words.extend(file.map(shell_word));
    words.extend(JobSpec { image: None, modules: None, ..flags }.flags());
    words.extend(on.iter().filter(|on| *on != "model").map(|on| format!("--on {on}")));
    let names: Vec<String> = variants.iter().map(Variant::name).collect();
    words.push(format!("--variants {}", shell_word(&names.join(","))));
    let has_modules = images.iter().any(|image| image.modules.is_some());
    for image in images {
        words.push(format!("--image {}", shell_word(&image.path)));
        let modules = image.modules.as_deref().or(has_modules.then_some(booted::NONE));
        words.extend(modules.map(|path| format!("--modules {}", shell_word(path))));
    }
    words.join(" ")
}

/// The flags of a job of one file. What variants may change is said as it was asked for: a number
/// of accesses that follows from the size of the file follows from that of each variant.
fn all_flags(given: &Given, spec: &JobSpec) -> JobSpec {
    let mut shown = JobSpec { with: None, ..spec.clone() };
    let of_model = JobSpec { on: None, image: None, modules: None, ..spec.clone() };
    if let Ok(job) = of_model.validate(input::host_release().as_deref()) {
        shown.kernel = Some(match given.kernel().as_deref() {
            // More than the rules is this machine's.
            Some("host") => "host".to_string(),
            _ => job.rules.kernel.name().to_string(),
        });
    }
    // Where no flag says otherwise, the machine is the same again.
    shown.machine = shown.machine.filter(|name| machine_profile::needs_said(name));
    shown
}
