//! A job of the workload `thrash` back as text that repeats it.

use super::{THRASH, Thrash, Until};
use crate::flags::JobSpec;
use crate::replay::{drop_defaults, drop_if, spec_of};
use crate::size::{SizeText, format_duration};

impl Thrash {
    /// The job as written, with everything said that decides what it does, defaults included:
    /// [`JobSpec::validate_thrash`] makes the same job of it.
    pub fn to_spec(&self) -> JobSpec {
        JobSpec {
            workload: Some(THRASH.to_string()),
            file_size: Some(SizeText::of(self.file_pages.bytes(self.page_size()))),
            sparse: Some(self.sparse),
            cpus: self.cpus,
            threads: Some(self.threads),
            duration: match self.until {
                Until::Elapsed(ns) => Some(format_duration(ns)),
                Until::Rounds(_) => None,
            },
            rounds: match self.until {
                Until::Elapsed(_) => None,
                Until::Rounds(rounds) => Some(rounds),
            },
            warm_up: Some(format_duration(self.warm_up_ns)),
            stagger: Some(format_duration(self.stagger_ns)),
            writers: Some(self.writers),
            noise_threads: Some(self.noise_threads),
            counters: self.counters.clone(),
            ..spec_of(self)
        }
    }

    /// The command line that repeats it, without what is default.
    pub fn command(&self) -> String {
        let mut spec = self.to_spec();
        drop_defaults(&mut spec, self.page_size());
        drop_if(&mut spec.warm_up, format_duration(0));
        drop_if(&mut spec.stagger, format_duration(0));
        drop_if(&mut spec.writers, 0);
        drop_if(&mut spec.noise_threads, 0);
        spec.run_command()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_comes_back_from_what_it_says() {
        for keys in [
            "",
            "threads = 500\nfile_size = '1m'\nsparse = true\nmemory_high = '1g'\nwriters = 2",
            "rounds = 70\nwarm_up = '1500ms'\nstagger = '7us'\ncpus = 4\nnoise_threads = 3",
            "duration = '60s'\nwith = 'vma-retry'\nread_ahead_kb = 2048\nmemory_max = '128m'",
            "on = 'kernel'\ncounters = '/proc/vmstat'\nruns = 3\nseed = 7",
        ] {
            let spec = JobSpec::from_toml(&format!("workload = 'thrash'\n{keys}")).unwrap();
            let job = spec.validate_thrash(None).unwrap();
            assert_eq!(job.to_spec().validate_thrash(None).unwrap(), job, "{keys}");
        }
        let job = JobSpec { workload: Some(THRASH.to_string()), ..JobSpec::default() };
        let command = job.validate_thrash(None).unwrap().command();
        let expected = "filemap run --kernel 6.18 --workload thrash --file-size 16m --threads 64 \
            --duration 10s";
        assert_eq!(command, expected);
    }
}
