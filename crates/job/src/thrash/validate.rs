//! From a job as written to one of the workload `thrash`.

use filemap_core::units::PageCount;

use super::{THRASH, Thrash, Until};
use crate::Error;
use crate::accesses::DEFAULT_SEED;
use crate::bounds::{MAX_ACCESSES, MAX_CPUS, MAX_RUNS, MAX_THRASH_NS, MAX_THRASH_THREADS};
use crate::flags::{JobSpec, Of};
use crate::folio_ops::FOLIO_OPS;
use crate::job::{EngineKind, Machine};
use crate::limits::{duration, name, pages, within};
use crate::seed;
use crate::size::format_size;

/// Threads where no number is given.
const DEFAULT_THREADS: u64 = 64;

/// Size of each file where none is given, in bytes.
const DEFAULT_FILE_BYTES: u64 = 16 << 20;

/// How long it runs where nothing says it.
const DEFAULT_DURATION_NS: u64 = 10_000_000_000;

impl JobSpec {
    /// Whether it is of the workload `thrash`, of which [`JobSpec::validate_thrash`] makes a job.
    pub fn is_thrash(&self) -> bool {
        self.workload.as_deref() == Some(THRASH)
    }

    /// Checks every value of a job of the workload `thrash`, and resolves what was not given.
    /// `host_release` is as for [`JobSpec::validate`].
    ///
    /// # Errors
    /// As for [`JobSpec::validate`].
    pub fn validate_thrash(self, host_release: Option<&str>) -> Result<Thrash, Error> {
        self.check_of_thrash()?;
        let engine = name("on", &self.on, EngineKind::Model)?;
        let image = self.valid_image(engine)?;
        if self.ram.is_some() && image.is_none() {
            let remedy = "give --memory-high or --memory-max; --ram is that of an --image";
            return Err(Error::Conflict { flag: "ram", other: "--workload thrash", remedy });
        }
        let rules = self.valid_rules(host_release)?;
        let arch = self.valid_arch()?;
        let page_size = arch.page_size;
        let given = seed::given(self.seed, self.seed_text.as_deref())?;
        let file_pages = pages("file-size", &self.file_size, 1, page_size)?;
        let threads = |flag, given: Option<u64>, default, least| {
            within(flag, given.unwrap_or(default), least, MAX_THRASH_THREADS)
        };
        let thrash = Thrash {
            engine,
            image,
            rules,
            runs: within("runs", self.runs.unwrap_or(1), 1, MAX_RUNS)?,
            seed: within("seed", given.unwrap_or(DEFAULT_SEED), 1, u64::MAX)?,
            machine: self.valid_machine(arch)?,
            threads: threads("threads", self.threads, DEFAULT_THREADS, 1)?,
            cpus: self.cpus.map(|cpus| within("cpus", cpus, 1, MAX_CPUS)).transpose()?,
            file_pages: PageCount(file_pages.unwrap_or(DEFAULT_FILE_BYTES / page_size)),
            sparse: self.sparse.unwrap_or(false),
            until: self.valid_until()?,
            warm_up_ns: duration("warm-up", &self.warm_up, 0, MAX_THRASH_NS)?.unwrap_or(0),
            stagger_ns: duration("stagger", &self.stagger, 0, MAX_THRASH_NS)?.unwrap_or(0),
            writers: threads("writers", self.writers, 0, 0)?,
            noise_threads: threads("noise-threads", self.noise_threads, 0, 0)?,
            counters: self.counters.clone(),
        };
        check_windows(&thrash.machine)?;
        Ok(thrash)
    }

    /// Refuses flags that jobs of one file only have.
    fn check_of_thrash(&self) -> Result<(), Error> {
        if !self.phase.is_empty() {
            let remedy = "give it without phases";
            return Err(Error::Conflict { flag: "workload thrash", other: "[[phase]]", remedy });
        }
        match self.given().find(|flag| flag.of == Of::OneFile) {
            Some(flag) => Err(Error::Conflict {
                flag: flag.name,
                other: "--workload thrash",
                remedy: "leave it out, or give another --workload",
            }),
            None => Ok(()),
        }
    }

    /// Refuses flags that only the workload `thrash` has, and the workload itself.
    pub(crate) fn check_of_one_file(&self) -> Result<(), Error> {
        if self.is_thrash() {
            return Err(Error::IsThrash);
        }
        if self.workload.as_deref() == Some(FOLIO_OPS) {
            return Err(Error::IsFolioOps);
        }
        match self.given().find(|flag| flag.of == Of::Thrash) {
            Some(flag) => Err(Error::OfThrash { flag: flag.name }),
            None => Ok(()),
        }
    }

    fn valid_until(&self) -> Result<Until, Error> {
        match (self.rounds, duration("duration", &self.duration, 1, MAX_THRASH_NS)?) {
            (Some(_), Some(_)) => {
                let remedy = "give one of them";
                Err(Error::Conflict { flag: "rounds", other: "--duration", remedy })
            }
            (Some(rounds), None) => within("rounds", rounds, 1, MAX_ACCESSES).map(Until::Rounds),
            (None, ns) => Ok(Until::Elapsed(ns.unwrap_or(DEFAULT_DURATION_NS))),
        }
    }
}

/// Refuses limits into which not even one window fits.
fn check_windows(machine: &Machine) -> Result<(), Error> {
    let (high, max) = (machine.memory_high_bytes, machine.memory_max_bytes);
    let window = machine.read_ahead.bytes(machine.arch.page_size);
    for (flag, limit) in [("memory-high", high), ("memory-max", max)] {
        if let Some(limit) = limit.filter(|&limit| limit < window) {
            let (limit, window) = (format_size(limit), format_size(window));
            return Err(Error::BelowWindow { limit, window }.of(flag));
        }
    }
    Ok(())
}
