//! Validation of a job: from tables as written to a job that can run.

use std::ops::Range;
use std::sync::Arc;

use filemap_core::address::mapping::{Split, SplitProt};
use filemap_core::units::{PageCount, PageIndex};

use super::error::ProgramError;
use super::names::{Names, table_error, with_key_error};
use super::spec::{FileSpec, MappingSpec, OpenSpec};
use super::threads;
use super::{Job, JobSpec, NamedFile, NamedMapping, Open, ProgramStep};
use crate::Error;
use crate::advice;
use crate::bounds::{
    MAX_ADDRESS, MAX_BYTES, MAX_CPUS, MAX_FILES, MAX_MAPPINGS, MAX_PHASE_RUNS, MAX_RUNS,
};
use crate::limits::{check_one_of, name, out_of_range, pages, size, split_pages, within};
use crate::parts::{EngineKind, File, Machine, Mapping};
use crate::seed;
use crate::size::{SizeText, format_size, shorten};
use crate::start::Start;
use crate::xorshift::DEFAULT_SEED;

impl JobSpec {
    /// Validates the job and resolves names and defaults. `host_release` is as for
    /// [`crate::JobFlags::validate`].
    ///
    /// # Errors
    /// One line that names the first missing, invalid, out-of-range ([`crate::bounds`]) or
    /// conflicting key or table, with the remedy.
    pub fn validate(&self, host_release: Option<&str>) -> Result<Job, Error> {
        self.checked(host_release).map_err(|error| self.origins.name_flags(error))
    }

    fn checked(&self, host_release: Option<&str>) -> Result<Job, Error> {
        let (rules, machine, seed) = self.resolve_machine(host_release)?;
        let page_size = machine.arch.page_size;
        let counted = self.expand_counts()?;
        let tables = &*counted.spec;
        let files = Names::new("file", tables.file.iter().map(|file| &file.name), MAX_FILES)?;
        let opens = Names::new("open", tables.open.iter().map(|open| &open.name), MAX_MAPPINGS)?;
        let names = tables.mapping.iter().map(|mapping| &mapping.name);
        let mappings = Names::new("mapping", names, MAX_MAPPINGS)?;
        let anonymous =
            pages("anonymous", &self.anonymous, 0, page_size).map_err(with_key_error)?;
        let cpus = self.cpus.map(|cpus| within("cpus", cpus, 1, MAX_CPUS)).transpose();
        let cpus = cpus.map_err(with_key_error)?.map(|cpus| cpus as u32);
        let start = name("start", &self.start, Start::Cold).map_err(with_key_error)?;
        if start == Start::Recorded && self.file.iter().all(|file| file.cached.is_none()) {
            return Err(ProgramError::NothingRecorded.into());
        }
        let start = FileStart { cold: self.cold.unwrap_or(false), start, page_size };
        let engine = name("on", &self.on, EngineKind::Model).map_err(with_key_error)?;
        let mut program = Job {
            spec: self.clone(),
            engine,
            image: self.shared().valid_image(engine).map_err(with_key_error)?,
            runs: within("runs", self.runs.unwrap_or(1), 1, MAX_RUNS).map_err(with_key_error)?,
            rules,
            machine,
            seed,
            anonymous: PageCount(anonymous.unwrap_or(0)),
            files: tables.file.iter().map(|file| file.validate(start)).collect::<Result<_, _>>()?,
            opens: tables
                .open
                .iter()
                .map(|open| open.validate(&files))
                .collect::<Result<_, _>>()?,
            mappings: Vec::with_capacity(tables.mapping.len()),
            cpus,
            processes: Vec::new(),
            barriers: Vec::new(),
            threads: Vec::with_capacity(tables.thread.len()),
            tables: counted.tables,
        };
        for mapping in &tables.mapping {
            let valid = mapping
                .validate(&opens, &program, tables)
                .map_err(|error| table_error("mapping", &mapping.name, error))?;
            program.mappings.push(valid);
        }
        program.check_sizes()?;
        threads::take(&tables.thread, &opens, &mappings, &mut program)?;
        let has_blocks = program.machine.block_bytes > program.page_size();
        if has_blocks && program.steps().any(ProgramStep::splits_folios) {
            return Err(ProgramError::AdvisedBlocks.into());
        }
        // The record of a job with a single mapping has phases only.
        let parts = if program.is_single_mapping() {
            program.steps().count()
        } else {
            program.steps().count() + program.files.len() + program.mappings.len()
        };
        let most_runs = (MAX_PHASE_RUNS / parts as u64).clamp(1, MAX_RUNS);
        within("runs", program.runs, 1, most_runs).map_err(with_key_error)?;
        program.resolve_spec();
        Ok(program)
    }

    /// The kernel rules, machine and seed, from the shared keys.
    fn resolve_machine(
        &self,
        host_release: Option<&str>,
    ) -> Result<(filemap_core::rules::Rules, Machine, u64), Error> {
        let spec = self.shared();
        let arch = spec.valid_arch().map_err(with_key_error)?;
        let rules = spec.valid_rules(host_release).map_err(with_key_error)?;
        let machine = spec.valid_machine(arch, &rules).map_err(with_key_error)?;
        let seed = seed::resolve_seed(self.seed, self.seed_text.as_deref())?;
        let seed = within("seed", seed.unwrap_or(DEFAULT_SEED), 1, u64::MAX);
        Ok((rules, machine, seed.map_err(with_key_error)?))
    }
}

impl Job {
    /// Writes resolved values of kernel, machine, seed, files and accesses back to the spec.
    fn resolve_spec(&mut self) {
        let (page_size, machine, spec) = (self.page_size(), &self.machine, &mut self.spec);
        spec.kernel = Some(self.rules.kernel.name().to_string());
        spec.with = Some(self.rules.series.to_string());
        (spec.seed, spec.seed_text) = (Some(self.seed), Some(self.seed.to_string()));
        spec.read_ahead_kb = Some(machine.read_ahead.bytes(page_size) / 1024);
        spec.fault_around = Some(SizeText::from_bytes(machine.fault_around.bytes(page_size)));
        spec.arch = Some(machine.arch.family.name().to_string());
        spec.page_size = Some(SizeText::from_bytes(page_size));
        spec.fs = Some(machine.fs.to_string());
        for (table, named) in self.tables.files.iter().zip(&self.files) {
            let file = &mut spec.file[*table];
            file.size = Some(SizeText::from_bytes(named.file.size_bytes));
            file.sparse = named.file.sparse;
        }
        for (table, thread) in self.tables.threads.iter().zip(&self.threads) {
            for (phase, step) in spec.thread[*table].phase.iter_mut().zip(&thread.steps) {
                if let Some(accesses) = step.phase().filter(|_| phase.workload.is_some()) {
                    (phase.accesses, phase.fraction) = (Some(accesses.accesses), None);
                    let own = accesses.has_own_seed.then_some(accesses.seed);
                    (phase.seed, phase.seed_text) = (own, own.map(|seed| seed.to_string()));
                }
            }
        }
    }

    /// Checks that mappings fit the address space and anonymous memory fits in RAM.
    fn check_sizes(&self) -> Result<(), Error> {
        let mut bytes = 0u64;
        for mapping in &self.mappings {
            bytes = bytes
                .saturating_add((mapping.mapping.shift + mapping.span()).bytes(self.page_size()));
            if bytes > MAX_ADDRESS && !self.is_single_mapping() {
                return Err(ProgramError::TooMuchMapped { name: shorten(&mapping.name) }.into());
            }
        }
        match self.machine.cache_limit.zip(self.machine.limit_key()) {
            Some((limit, key)) if self.anonymous >= limit => {
                let shown = |pages: PageCount| format_size(pages.bytes(self.page_size()));
                let (anonymous, limit) = (shown(self.anonymous), shown(limit));
                Err(ProgramError::NoRoomForFiles { anonymous, limit, key }.into())
            }
            _ => Ok(()),
        }
    }
}

/// How the files of a job begin.
#[derive(Clone, Copy)]
struct FileStart {
    /// Existing files may be dropped from the page cache even if much of them is there.
    cold: bool,
    start: Start,
    page_size: u64,
}

impl FileStart {
    /// The pages of a file of `size_bytes` that are cached at the beginning.
    fn cached(self, file: &FileSpec, size_bytes: u64) -> Vec<Range<PageIndex>> {
        let recorded = file.cached.as_ref().map_or(&[][..], |cached| cached.as_slice());
        let pages = PageCount(size_bytes.div_ceil(self.page_size));
        self.start.cached_pages(pages, recorded, self.page_size)
    }

    /// The holes of a file of `size_bytes`, in pages that lie in one entirely; with `sparse` all of
    /// it.
    fn holes(self, sparse: bool, found: &[Range<u64>], size_bytes: u64) -> Arc<[Range<PageIndex>]> {
        let end = size_bytes.div_ceil(self.page_size);
        if sparse {
            return Arc::from([PageIndex(0)..PageIndex(end)]);
        }
        let in_pages = |hole: &Range<u64>| {
            // The last page ends with the file.
            let last = if hole.end >= size_bytes { end } else { hole.end / self.page_size };
            PageIndex(hole.start.div_ceil(self.page_size))..PageIndex(last)
        };
        found.iter().map(in_pages).filter(|hole| hole.start < hole.end).collect()
    }
}

impl FileSpec {
    fn validate(&self, start: FileStart) -> Result<NamedFile, Error> {
        let of_this = |error| table_error("file", &self.name, error);
        let size_bytes = size("size", &self.size, 1, MAX_BYTES).map_err(of_this)?;
        let file = match (&self.path, size_bytes) {
            (None, Some(size_bytes)) => {
                let cached = start.cached(self, size_bytes);
                let holes = start.holes(self.sparse, &[], size_bytes);
                File { size_bytes, path: None, sparse: self.sparse, holes, cold: false, cached }
            }
            (None, None) => {
                let remedy = "a size such as 1g, or the 'path' of an existing file";
                return Err(of_this(Error::Missing { flag: "size", remedy }));
            }
            (Some(path), given) => self.existing(path, given, start).map_err(of_this)?,
        };
        Ok(NamedFile { name: self.name.clone(), file })
    }

    fn existing(
        &self,
        path: &str,
        size_bytes: Option<u64>,
        start: FileStart,
    ) -> Result<File, Error> {
        let conflict = |key| Error::KeyConflict {
            key,
            other: "'path'",
            remedy: "the file that exists says that itself; leave it out",
        };
        let found = self.found.as_ref();
        let size_bytes = match (found.map(|found| found.size_bytes), size_bytes) {
            (Some(found), Some(given)) if found != given => {
                let (given, found) = (format_size(given), format_size(found));
                return Err(Error::OtherSize { path: shorten(path), given, found });
            }
            (Some(size_bytes), _) | (None, Some(size_bytes)) => size_bytes,
            (None, None) => return Err(Error::FileNotRead { path: shorten(path) }),
        };
        if self.sparse && found.is_some_and(|found| !found.sparse) {
            return Err(conflict("sparse"));
        }
        if !(1..=MAX_BYTES).contains(&size_bytes) {
            let value = format!("the size of '{}'", shorten(path));
            return Err(out_of_range(value, "1 byte", format_size(MAX_BYTES)));
        }
        let path = Some(path.to_string());
        let sparse = found.map_or(self.sparse, |found| found.sparse);
        let cached = start.cached(self, size_bytes);
        let holes = found.map_or(&[][..], |found| &found.holes);
        let holes = start.holes(sparse, holes, size_bytes);
        Ok(File { size_bytes, path, sparse, holes, cold: start.cold, cached })
    }
}

impl OpenSpec {
    fn validate(&self, files: &Names<'_>) -> Result<Open, Error> {
        let file =
            files.find(&self.file).map_err(|error| table_error("open", &self.name, error))?;
        Ok(Open { name: self.name.clone(), file, direct: self.direct })
    }
}

impl MappingSpec {
    fn validate(
        &self,
        opens: &Names<'_>,
        program: &Job,
        tables: &JobSpec,
    ) -> Result<NamedMapping, Error> {
        let open = opens.find(&self.open)?;
        let arch = &program.machine.arch;
        if self.elf {
            return self.segment_mapping(open, program, tables);
        }
        let file_pages = program.file_pages(program.opens[open].file);
        let offset = pages("offset", &self.offset, 0, arch.page_size)?.unwrap_or(0);
        let rest = file_pages.saturating_sub(PageCount(offset)).0;
        let len = pages("len", &self.len, 1, arch.page_size)?.unwrap_or(rest);
        let ends_with_file = ["map_offset", "map_len"].map(|key| tables.origins.is_flag(key));
        if ends_with_file.contains(&true) && (len == 0 || offset + len > file_pages.0) {
            let bytes = |pages: u64| format_size(pages.saturating_mul(arch.page_size));
            let size = program.files[program.opens[open].file].file.size_bytes;
            return Err(Error::BeyondFile {
                offset: bytes(offset),
                len: bytes(len),
                size: format_size(size),
            });
        }
        if len == 0 {
            return Err(ProgramError::NothingLeft {
                offset_pages: offset,
                file_pages: file_pages.0,
            }
            .into());
        }
        let advice = advice::valid(&self.advice)?;
        let mapping = Mapping {
            offset: PageIndex(offset),
            pages: PageCount(len),
            shift: PageCount(within("shift", self.shift.unwrap_or(0), 0, arch.pte_entries - 1)?),
            advice,
            exec: self.exec,
            private: self.private,
            split: self.valid_split(len)?,
        };
        let name = self.name.clone();
        Ok(NamedMapping { name, open, mapping, segments: Vec::new(), at_start: true })
    }

    /// A mapping of the segments of a program or library.
    fn segment_mapping(
        &self,
        open: usize,
        program: &Job,
        tables: &JobSpec,
    ) -> Result<NamedMapping, Error> {
        let conflicts = [
            ("offset", self.offset.is_some()),
            ("len", self.len.is_some()),
            ("exec", self.exec),
            ("private", self.private),
            ("split", self.split.is_some() || self.split_prot.is_some()),
        ];
        if let Some((key, _)) = conflicts.into_iter().find(|(_, is_set)| *is_set) {
            let remedy = "remove it: the file's segments say what is mapped";
            return Err(Error::KeyConflict { key, other: "'elf'", remedy });
        }
        let file = &tables.file[program.opens[open].file];
        let Some(path) = &file.path else {
            let remedy = "that of a program or shared library, for mappings with elf = true";
            return Err(table_error(
                "file",
                &file.name,
                Error::MissingKey { key: "path".into(), remedy },
            ));
        };
        let elf = file.found.as_ref().and_then(|found| found.elf.as_ref());
        let elf = elf.ok_or_else(|| Error::ElfNotRead { path: shorten(path) })?;
        let arch = &program.machine.arch;
        let segments = elf.segments(arch.page_size)?;
        let mapping = Mapping {
            offset: PageIndex(0),
            pages: PageCount(segments.iter().map(|segment| segment.pages.0).sum()),
            shift: PageCount(within("shift", self.shift.unwrap_or(0), 0, arch.pte_entries - 1)?),
            advice: advice::valid(&self.advice)?,
            exec: false,
            private: false,
            split: None,
        };
        Ok(NamedMapping { name: self.name.clone(), open, mapping, segments, at_start: true })
    }

    fn valid_split(&self, len: u64) -> Result<Option<Split>, Error> {
        let (default, known) = (SplitProt::Write, SplitProt::ALL);
        let prot = check_one_of(
            "split_prot",
            "split_prot",
            &self.split_prot,
            default,
            known,
            SplitProt::name,
        )?;
        let Some(pages) = self.split else {
            let remedy = "the pages of each piece with 'split_prot', or neither";
            let missing = Error::Missing { flag: "split", remedy };
            return if self.split_prot.is_some() { Err(missing) } else { Ok(None) };
        };
        let pages = split_pages(pages, len)?;
        Ok(Some(Split { pages, prot }))
    }
}
