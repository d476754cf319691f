//! A job of the workload `thrash` back as text that repeats it.

use filemap_core::rules::Family;
use filemap_core::units::PageCount;

use super::{THRASH, Thrash, Until};
use crate::accesses::DEFAULT_SEED;
use crate::flags::JobSpec;
use crate::job::{EngineKind, Filesystem};
use crate::replay::drop_if;
use crate::size::{SizeText, format_duration};
use crate::validate::{DEFAULT_FAULT_AROUND_BYTES, DEFAULT_READ_AHEAD_KB};

impl Thrash {
    /// The job as written, with everything said that decides what it does, defaults included:
    /// [`JobSpec::validate_thrash`] makes the same job of it.
    pub fn to_spec(&self) -> JobSpec {
        let machine = &self.machine;
        let bytes = |pages: PageCount| SizeText::of(pages.bytes(self.page_size()));
        JobSpec {
            on: Some(self.engine.to_string()),
            kernel: Some(self.rules.kernel.name().to_string()),
            image: self.image.as_ref().map(|image| image.path.clone()),
            modules: self.image.as_ref().and_then(|image| image.modules.clone()),
            with: Some(self.rules.series.to_string()),
            runs: Some(self.runs),
            machine: machine.profile.clone(),
            workload: Some(THRASH.to_string()),
            seed: Some(self.seed),
            seed_text: Some(self.seed.to_string()),
            file_size: Some(bytes(self.file_pages)),
            sparse: Some(self.sparse),
            ram: machine.ram_bytes.map(SizeText::of),
            memory_high: machine.memory_high_bytes.map(SizeText::of),
            memory_max: machine.memory_max_bytes.map(SizeText::of),
            read_ahead_kb: Some(machine.read_ahead.bytes(self.page_size()) / 1024),
            fault_around: Some(bytes(machine.fault_around)),
            arch: Some(machine.arch.family.name().to_string()),
            page_size: Some(SizeText::of(self.page_size())),
            fs: Some(machine.fs.to_string()),
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
            ..JobSpec::default()
        }
    }

    /// The command line that repeats it, without what is default.
    pub fn command(&self) -> String {
        let mut spec = self.to_spec();
        drop_if(&mut spec.on, EngineKind::Model.to_string());
        drop_if(&mut spec.with, "baseline".to_string());
        drop_if(&mut spec.runs, 1);
        drop_if(&mut spec.seed, DEFAULT_SEED);
        drop_if(&mut spec.read_ahead_kb, DEFAULT_READ_AHEAD_KB);
        let fault_around = DEFAULT_FAULT_AROUND_BYTES.max(self.page_size());
        drop_if(&mut spec.fault_around, SizeText::of(fault_around));
        drop_if(&mut spec.arch, Family::X86_64.name().to_string());
        drop_if(&mut spec.page_size, SizeText::of(4096));
        drop_if(&mut spec.fs, Filesystem::Ext4.to_string());
        drop_if(&mut spec.warm_up, format_duration(0));
        drop_if(&mut spec.stagger, format_duration(0));
        drop_if(&mut spec.writers, 0);
        drop_if(&mut spec.noise_threads, 0);
        let words = ["filemap".to_string(), "run".to_string()].into_iter();
        words.chain(spec.flags()).collect::<Vec<_>>().join(" ")
    }
}
