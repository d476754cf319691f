//! The workload `thrash` as a program: threads that each map, read and unmap a file of their own.

use super::JobSpec;
use super::spec::{FileSpec, MappingSpec, OpenSpec, ThreadPhaseSpec, ThreadSpec};
use crate::Error;
use crate::bounds::{MAX_RUN_NS, MAX_THREADS};
use crate::flags::{FlagScope, JobFlags};
use crate::limits::{duration, pages, within};
use crate::size::SizeText;
use crate::workload::THRASH;

/// Default number of threads.
const DEFAULT_THREADS: u64 = 64;

/// Default size of each file, in bytes.
const DEFAULT_FILE_BYTES: u64 = 16 << 20;

/// Default run time.
const DEFAULT_DURATION: &str = "10s";

/// Default machine profile: one with the costs of reclaim.
const MACHINE: &str = "server";

/// The mapping whose protection writers change: its name, its size, and the sleep after each
/// change.
const WRITTEN: &str = "written";
const WRITER_BYTES: u64 = 1 << 20;
const WRITER_SLEEPS_NS: u64 = 1_000_000;

impl JobFlags {
    /// Whether the workload is `thrash`, which [`JobFlags::thrash`] converts to a program.
    pub fn is_thrash(&self) -> bool {
        self.workload.as_deref() == Some(THRASH)
    }

    /// The program equivalent to the workload `thrash`.
    ///
    /// # Errors
    /// A flag that the workload does not accept; a number of threads, size or time out of range.
    pub fn thrash(&self) -> Result<JobSpec, Error> {
        self.check_of_thrash()?;
        let arch = self.valid_arch()?;
        let most = MAX_THREADS as u64;
        let threads = within("threads", self.threads.unwrap_or(DEFAULT_THREADS), 1, most)?;
        let writers = within("writers", self.writers.unwrap_or(0), 0, most - threads.min(most))?;
        let file_pages = pages("file-size", &self.file_size, 1, arch.page_size)?;
        let file_pages = file_pages.unwrap_or(DEFAULT_FILE_BYTES / arch.page_size);
        duration("duration", &self.duration, 1, MAX_RUN_NS)?;
        duration("stagger", &self.stagger, 0, MAX_RUN_NS)?;
        let lasts = Some(self.duration.clone().unwrap_or(DEFAULT_DURATION.to_string()));
        let group = |name: &str, count, bytes, sparse| {
            let name = name.to_string();
            let file = FileSpec {
                name: name.clone(),
                size: Some(SizeText::from_bytes(bytes)),
                sparse,
                count: Some(count),
                ..FileSpec::default()
            };
            let open = OpenSpec { name: name.clone(), file: name.clone(), direct: false };
            (file, open, MappingSpec { name: name.clone(), open: name, ..MappingSpec::default() })
        };
        let bytes = file_pages * arch.page_size;
        let (file, open, mapping) = group(THRASH, threads, bytes, self.sparse.unwrap_or(false));
        let reader = ThreadSpec {
            name: Some("reader".to_string()),
            count: Some(threads),
            stagger: self.stagger.clone(),
            lasts: lasts.clone(),
            phase: read_all(file_pages),
            ..ThreadSpec::default()
        };
        let mut program = JobSpec {
            machine: Some(MACHINE.to_string()),
            file: vec![file],
            open: vec![open],
            mapping: vec![mapping],
            thread: vec![reader],
            ..JobSpec::default()
        };
        if writers > 0 {
            let (file, open, mapping) = group(WRITTEN, writers, WRITER_BYTES, true);
            program.file.push(file);
            program.open.push(open);
            program.mapping.push(MappingSpec { private: true, ..mapping });
            program.thread.push(ThreadSpec {
                name: Some("writer".to_string()),
                count: Some(writers),
                lasts,
                phase: change_written(),
                ..ThreadSpec::default()
            });
        }
        Ok(program.overlay(self))
    }

    /// Rejects flags that only jobs with a single file accept.
    fn check_of_thrash(&self) -> Result<(), Error> {
        if !self.phase.is_empty() {
            let remedy = "give it without phases";
            return Err(Error::Conflict { flag: "workload thrash", other: "[[phase]]", remedy });
        }
        match self.present().find(|flag| flag.scope == FlagScope::OneFile) {
            Some(flag) => Err(Error::Conflict {
                flag: flag.name,
                other: "--workload thrash",
                remedy: "leave it out, or give another --workload",
            }),
            None => Ok(()),
        }
    }
}

/// A round of a reader thread.
fn read_all(file_pages: u64) -> Vec<ThreadPhaseSpec> {
    let none = ThreadPhaseSpec::default;
    vec![
        ThreadPhaseSpec { map: Some(THRASH.to_string()), ..none() },
        ThreadPhaseSpec {
            mapping: Some(THRASH.to_string()),
            workload: Some("sequential".to_string()),
            accesses: Some(file_pages),
            ..none()
        },
        ThreadPhaseSpec { unmap: Some(THRASH.to_string()), ..none() },
    ]
}

/// A round of a writer thread, whose pages are already mapped.
fn change_written() -> Vec<ThreadPhaseSpec> {
    let populate = ThreadPhaseSpec {
        mapping: Some(WRITTEN.to_string()),
        madvise: Some("populate-read".to_string()),
        ..ThreadPhaseSpec::default()
    };
    [populate].into_iter().chain(change_protection(WRITTEN)).collect()
}

/// Phases of a writer: two changes of the protection of `mapping`, each followed by a sleep.
pub fn change_protection(mapping: &str) -> Vec<ThreadPhaseSpec> {
    let none = ThreadPhaseSpec::default;
    let sleep = || ThreadPhaseSpec { sleep_ns: Some(WRITER_SLEEPS_NS), ..none() };
    let protect = |protection: &str| ThreadPhaseSpec {
        mapping: Some(mapping.to_string()),
        mprotect: Some(protection.to_string()),
        ..none()
    };
    vec![protect("exec"), sleep(), protect("as-mapped"), sleep()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thrash(text: &str) -> Result<JobSpec, Error> {
        JobFlags::from_toml(&format!("workload = \"thrash\"\n{text}")).unwrap().thrash()
    }

    #[test]
    fn thrash_has_a_file_per_thread() {
        let text = "threads = 3\nwriters = 2\nfile_size = \"1m\"\nduration = \"2s\"\ncpus = 2";
        let program = thrash(text).unwrap().validate(None).unwrap();
        assert_eq!((program.files.len(), program.mappings.len()), (5, 5));
        let names: Vec<&str> = program.threads.iter().map(|thread| thread.name.as_str()).collect();
        assert_eq!(names, ["reader-1", "reader-2", "reader-3", "writer-1", "writer-2"]);
        assert_eq!(program.files[1].name, "thrash-2");
        assert_eq!(program.tables.threads, [0, 0, 0, 1, 1]);
        assert_eq!(program.threads[4].steps[0].mapping(), Some(4));
        assert_eq!((program.cpus, program.machine.profile.as_deref()), (Some(2), Some("server")));
    }

    #[test]
    fn thrash_round_trips_through_job_file() {
        let spec = thrash("threads = 3\nstagger = \"1ms\"\nmemory_max = \"64m\"").unwrap();
        let again = JobSpec::from_toml(&toml::to_string(&spec).unwrap()).unwrap();
        assert_eq!(spec, again);
    }

    #[test]
    fn thread_start_depends_on_seed() {
        let program = thrash("threads = 9\nstagger = \"1ms\"").unwrap().validate(None).unwrap();
        let begins = |program: &super::super::Job| -> Vec<u64> {
            let threads = program.threads.iter().enumerate();
            threads.map(|(number, thread)| thread.begins_ns(number, program.seed)).collect()
        };
        assert!(begins(&program).iter().all(|ns| *ns < 1_000_000));
        assert_ne!(begins(&program), begins(&program.with_seed(7)));
        assert!(program.seed_warnings(2).is_empty());
    }

    #[test]
    fn refuses_keys_thrash_does_not_have() {
        for (text, words) in [
            ("split = 3", "--split does not go with --workload thrash"),
            ("threads = 0", "--threads"),
            ("threads = 1000\nwriters = 25", "--writers"),
            ("duration = \"2x\"", "--duration"),
        ] {
            let error = thrash(text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
