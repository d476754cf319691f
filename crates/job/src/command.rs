//! Headings that describe what a job does.

use crate::program::{JobSpec, ThreadPhaseSpec};

impl JobSpec {
    /// Heading of a job with a single mapping: `random of 1g`, `accesses of pages.txt of 1g`, `3
    /// phases of 1g`.
    pub fn heading(&self) -> Option<String> {
        let ([file], [thread]) = (&self.file[..], &self.thread[..]) else { return None };
        let size = file.size.as_ref().filter(|_| !self.mapping.iter().any(|mapping| mapping.elf));
        let does = does(&thread.phase);
        Some(size.map_or(does.clone(), |size| format!("{does} of {}", size.0)))
    }
}

fn does(phases: &[ThreadPhaseSpec]) -> String {
    let name = |phase: &ThreadPhaseSpec| {
        let list = phase.accesses_file.as_ref().map(|path| format!("accesses of {path}"));
        phase.workload.clone().or(list)
    };
    match phases {
        [only] => name(only).unwrap_or_else(|| "1 phase".to_string()),
        [cold, random]
            if [cold, random].map(|phase| phase.workload.as_deref())
                == [Some("exec:cold"), Some("exec:random")] =>
        {
            "exec".to_string()
        }
        phases => format!("{} phases", phases.len()),
    }
}
