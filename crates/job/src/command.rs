//! A job back as text that repeats it.

use filemap_core::address::mapping::SplitProt;
use filemap_core::address::vma::Advice;
use filemap_core::rules::Family;
use filemap_core::units::PageCount;

use crate::flags::JobSpec;
use crate::job::Job;
use crate::parts::{EngineKind, Filesystem};
use crate::phases::DEFAULT_READ_BYTES;
use crate::size::SizeText;
use crate::validate::{DEFAULT_FAULT_AROUND_BYTES, DEFAULT_READ_AHEAD_KB};
use crate::xorshift::DEFAULT_SEED;

impl Job {
    /// It as a job file.
    pub fn to_toml(&self) -> String {
        let Some(flags) = &self.of_flags else {
            return toml::to_string(&self.spec).unwrap_or_default();
        };
        let mut spec = flags.clone();
        // TOML does not round the number.
        spec.seed_text = None;
        spec.phase.iter_mut().for_each(|phase| phase.seed_text = None);
        spec.to_toml()
    }

    /// The command line that repeats it, without what is default; for what no flags can say, the
    /// command for the job file of [`Job::to_toml`].
    pub fn command(&self) -> String {
        match &self.of_flags {
            Some(flags) if flags.phase.is_empty() => {
                self.without_defaults(JobSpec::clone(flags)).run_command()
            }
            _ => "filemap run JOB.toml".to_string(),
        }
    }

    fn without_defaults(&self, mut spec: JobSpec) -> JobSpec {
        drop_defaults(&mut spec, self.page_size());
        drop_if(&mut spec.bs, SizeText::of(DEFAULT_READ_BYTES));
        drop_if(&mut spec.map_offset, SizeText::of(0));
        let offset = self.mappings[0].mapping.offset;
        let rest = self.file_pages(0).saturating_sub(PageCount(offset.0));
        drop_if(&mut spec.map_len, SizeText::of(rest.bytes(self.page_size())));
        drop_if(&mut spec.map_shift, 0);
        drop_if(&mut spec.advice, Advice::NORMAL.name().to_string());
        drop_if(&mut spec.split_prot, SplitProt::Write.name().to_string());
        spec
    }
}

/// Takes away what is default of what a job says of engine, kernel and machine.
fn drop_defaults(spec: &mut JobSpec, page_size: u64) {
    drop_if(&mut spec.on, EngineKind::Model.to_string());
    drop_if(&mut spec.with, "baseline".to_string());
    drop_if(&mut spec.runs, 1);
    drop_if(&mut spec.seed, DEFAULT_SEED);
    drop_if(&mut spec.read_ahead_kb, DEFAULT_READ_AHEAD_KB);
    let fault_around = DEFAULT_FAULT_AROUND_BYTES.max(page_size);
    drop_if(&mut spec.fault_around, SizeText::of(fault_around));
    drop_if(&mut spec.arch, Family::X86_64.name().to_string());
    drop_if(&mut spec.page_size, SizeText::of(4096));
    drop_if(&mut spec.fs, Filesystem::Ext4.to_string());
}

impl JobSpec {
    /// The command line that runs what flags can say of it.
    fn run_command(&self) -> String {
        let words = ["filemap".to_string(), "run".to_string()];
        words.into_iter().chain(self.flags()).collect::<Vec<_>>().join(" ")
    }

    /// What the job does, for a heading: `random of 1g`, `accesses of pages.txt of 1g`, `3 phases`.
    pub fn heading(&self) -> String {
        let listed = self.accesses_file.as_ref().map(|path| format!("accesses of {path}"));
        let does = self.workload.clone().or(listed);
        let does = does.unwrap_or_else(|| format!("{} phases", self.phase.len()));
        match &self.file_size {
            Some(size) => format!("{does} of {}", size.0),
            None => does,
        }
    }
}

/// Takes `value` away where it is the default.
fn drop_if<T: PartialEq>(value: &mut Option<T>, default: T) {
    if value.as_ref() == Some(&default) {
        *value = None;
    }
}
