//! From a program as written to one that can be run.

use std::sync::Arc;

use filemap_core::address::mapping::{Split, SplitProt};
use filemap_core::units::{PageCount, PageIndex};

use super::error::ProgramError;
use super::names::{Names, in_table, keyed};
use super::spec::{FileSpec, MappingSpec, OpenSpec, ThreadPhaseSpec};
use super::there::Parts;
use super::threads;
use super::{Access, Job, NamedFile, NamedMapping, Open, ProgramSpec, ProgramStep};
use crate::Error;
use crate::advice;
use crate::bounds::{
    MAX_ADDRESS, MAX_BYTES, MAX_CPUS, MAX_FILES, MAX_MAPPINGS, MAX_PHASE_RUNS, MAX_RUNS,
    MAX_THINK_NS,
};
use crate::job::{EngineKind, File, Machine, Mapping, Pattern, Phase};
use crate::limits::{name, one_of, out_of_range, pages, size, split_pages, within};
use crate::phases::Extent;
use crate::size::{SizeText, format_size, shorten};
use crate::workload::Workload;
use crate::xorshift::DEFAULT_SEED;

impl ProgramSpec {
    /// Checks every value, and resolves names and what was not given. `host_release` is as for
    /// [`crate::JobSpec::validate`].
    ///
    /// # Errors
    /// In one line: the first table or key that is missing, wrong, beyond [`crate::bounds`] or does
    /// not go with the others, and the remedy.
    pub fn validate(&self, host_release: Option<&str>) -> Result<Job, Error> {
        let (rules, machine, seed) = self.of_machine(host_release)?;
        let page_size = machine.arch.page_size;
        let counted = self.counted()?;
        let tables = &*counted.spec;
        let files = Names::new("file", tables.file.iter().map(|file| &file.name), MAX_FILES)?;
        let opens = Names::new("open", tables.open.iter().map(|open| &open.name), MAX_MAPPINGS)?;
        let names = tables.mapping.iter().map(|mapping| &mapping.name);
        let mappings = Names::new("mapping", names, MAX_MAPPINGS)?;
        let anonymous = pages("anonymous", &self.anonymous, 0, page_size).map_err(keyed)?;
        let cpus = self.cpus.map(|cpus| within("cpus", cpus, 1, MAX_CPUS)).transpose();
        let cpus = cpus.map_err(keyed)?.map(|cpus| cpus as u32);
        let cold = self.cold.unwrap_or(false);
        let engine = name("on", &self.on, EngineKind::Model).map_err(keyed)?;
        let mut program = Job {
            spec: ProgramSpec {
                kernel: Some(rules.kernel.name().to_string()),
                read_ahead_kb: Some(machine.read_ahead.bytes(page_size) / 1024),
                fault_around: Some(SizeText::of(machine.fault_around.bytes(page_size))),
                ..self.clone()
            },
            of_flags: None,
            engine,
            image: self.shared().valid_image(engine).map_err(keyed)?,
            runs: within("runs", self.runs.unwrap_or(1), 1, MAX_RUNS).map_err(keyed)?,
            rules,
            machine,
            seed,
            anonymous: PageCount(anonymous.unwrap_or(0)),
            files: tables.file.iter().map(|file| file.validate(cold)).collect::<Result<_, _>>()?,
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
                .map_err(|error| in_table("mapping", &mapping.name, error))?;
            program.mappings.push(valid);
        }
        program.check_sizes()?;
        threads::take(&tables.thread, &opens, &mappings, &mut program)?;
        let parts = program.steps().count() + program.files.len() + program.mappings.len();
        let most_runs = (MAX_PHASE_RUNS / parts as u64).clamp(1, MAX_RUNS);
        within("runs", program.runs, 1, most_runs).map_err(keyed)?;
        Ok(program)
    }

    /// The kernel's rules, the machine and the seed: keys that jobs of one file have as well.
    fn of_machine(
        &self,
        host_release: Option<&str>,
    ) -> Result<(filemap_core::rules::Rules, Machine, u64), Error> {
        let spec = self.shared();
        let arch = spec.valid_arch().map_err(keyed)?;
        let rules = spec.valid_rules(host_release).map_err(keyed)?;
        let machine = spec.valid_machine(arch).map_err(keyed)?;
        let seed = within("seed", self.seed.unwrap_or(DEFAULT_SEED), 1, u64::MAX);
        Ok((rules, machine, seed.map_err(keyed)?))
    }
}

impl Job {
    /// Whether all mappings fit the address space, and what is held beside files the memory.
    fn check_sizes(&self) -> Result<(), Error> {
        let mut bytes = 0u64;
        for of in &self.mappings {
            bytes = bytes.saturating_add((of.mapping.shift + of.span()).bytes(self.page_size()));
            if bytes > MAX_ADDRESS {
                return Err(ProgramError::TooMuchMapped { name: shorten(&of.name) }.into());
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

impl FileSpec {
    fn validate(&self, cold: bool) -> Result<NamedFile, Error> {
        let of_this = |error| in_table("file", &self.name, error);
        let size_bytes = size("size", &self.size, 1, MAX_BYTES).map_err(of_this)?;
        let file = match (&self.path, size_bytes) {
            (None, Some(size_bytes)) => {
                File { size_bytes, path: None, sparse: self.sparse, cold: false }
            }
            (None, None) => {
                let remedy = "a size such as 1g, or the 'path' of an existing file";
                return Err(of_this(Error::Missing { flag: "size", remedy }));
            }
            (Some(path), given) => self.existing(path, given, cold).map_err(of_this)?,
        };
        Ok(NamedFile { name: self.name.clone(), file })
    }

    fn existing(&self, path: &str, size_bytes: Option<u64>, cold: bool) -> Result<File, Error> {
        let conflict = |key| Error::KeyConflict {
            key,
            other: "'path'",
            remedy: "the file that exists says that itself; leave it out",
        };
        if size_bytes.is_some() {
            return Err(conflict("size"));
        }
        if self.sparse {
            return Err(conflict("sparse"));
        }
        let found =
            self.found.as_ref().ok_or_else(|| Error::FileNotRead { path: shorten(path) })?;
        let size_bytes = found.size_bytes;
        if !(1..=MAX_BYTES).contains(&size_bytes) {
            let value = format!("the size of '{}'", shorten(path));
            return Err(out_of_range(value, "1 byte", format_size(MAX_BYTES)));
        }
        let path = Some(path.to_string());
        Ok(File { size_bytes, path, sparse: found.sparse, cold })
    }
}

impl OpenSpec {
    fn validate(&self, files: &Names<'_>) -> Result<Open, Error> {
        let file = files.find(&self.file).map_err(|error| in_table("open", &self.name, error))?;
        Ok(Open { name: self.name.clone(), file, direct: self.direct })
    }
}

impl MappingSpec {
    fn validate(
        &self,
        opens: &Names<'_>,
        program: &Job,
        tables: &ProgramSpec,
    ) -> Result<NamedMapping, Error> {
        let open = opens.find(&self.open)?;
        let arch = &program.machine.arch;
        if self.elf {
            return self.of_segments(open, program, tables);
        }
        let file_pages = program.file_pages(program.opens[open].file);
        let offset = pages("offset", &self.offset, 0, arch.page_size)?.unwrap_or(0);
        let rest = file_pages.saturating_sub(PageCount(offset)).0;
        let len = pages("len", &self.len, 1, arch.page_size)?.unwrap_or(rest);
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
    fn of_segments(
        &self,
        open: usize,
        program: &Job,
        tables: &ProgramSpec,
    ) -> Result<NamedMapping, Error> {
        let given = [
            ("offset", self.offset.is_some()),
            ("len", self.len.is_some()),
            ("exec", self.exec),
            ("private", self.private),
            ("split", self.split.is_some() || self.split_prot.is_some()),
        ];
        if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
            let remedy = "remove it: the file's segments say what is mapped";
            return Err(Error::KeyConflict { key, other: "'elf'", remedy });
        }
        let file = &tables.file[program.opens[open].file];
        let Some(path) = &file.path else {
            let remedy = "that of a program or shared library, for mappings with elf = true";
            return Err(in_table(
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
        let prot =
            one_of("split_prot", "split_prot", &self.split_prot, default, known, SplitProt::name)?;
        let Some(pages) = self.split else {
            let remedy = "the pages of each piece with 'split_prot', or neither";
            let missing = Error::Missing { flag: "split", remedy };
            return if self.split_prot.is_some() { Err(missing) } else { Ok(None) };
        };
        let pages = split_pages(pages, len)?;
        Ok(Some(Split { pages, prot }))
    }
}

impl ThreadPhaseSpec {
    pub(super) fn validate(
        &self,
        opens: &Names<'_>,
        mappings: &Names<'_>,
        mapped: &[Parts],
        program: &Job,
    ) -> Result<ProgramStep, Error> {
        self.check_call()?;
        let subjects = [&self.map, &self.unmap, &self.mapping, &self.open, &self.barrier];
        let subjects = subjects.iter().filter(|subject| subject.is_some()).count();
        let alone = usize::from(self.fork) + usize::from(self.sleep_ns.is_some());
        if subjects + alone != 1 {
            return Err(ProgramError::NoSubject.into());
        }
        if let Some(step) = self.alone(program)? {
            return Ok(step);
        }
        let there = |name: &String, wanted: bool| -> Result<usize, Error> {
            let mapping = mappings.find(name)?;
            if mapped[mapping].is_there() == wanted {
                return Ok(mapping);
            }
            let name = shorten(name);
            Err(match wanted {
                true => ProgramError::NotMapped { name }.into(),
                false => ProgramError::AlreadyMapped { name }.into(),
            })
        };
        if let Some(name) = self.map.as_ref().or(self.unmap.as_ref()) {
            // Only a part can be taken away; what is made is whole.
            let part = self.unmap.as_ref();
            let other = ThreadPhaseSpec {
                map: self.map.clone(),
                unmap: self.unmap.clone(),
                offset: part.and_then(|_| self.offset.clone()),
                len: part.and_then(|_| self.len.clone()),
                after: self.after.clone(),
                ..Default::default()
            };
            if *self != other {
                return Err(ProgramError::NoSubject.into());
            }
            let mapping = there(name, self.unmap.is_some())?;
            check_one_part(
                &program.mappings[mapping],
                if self.map.is_some() { "map" } else { "unmap" },
            )?;
            return match self.map {
                Some(_) => Ok(ProgramStep::Map { mapping }),
                None => self.unmaps(mapping, program),
            };
        }
        if let (Some(_), Some(name)) = (&self.madvise, &self.mapping) {
            let mapping = there(name, true)?;
            check_one_part(&program.mappings[mapping], "madvise")?;
            return self.madvise(mapping, program);
        }
        if let (Some(_), Some(name)) = (&self.mprotect, &self.mapping) {
            let mapping = there(name, true)?;
            check_one_part(&program.mappings[mapping], "mprotect")?;
            return self.mprotect(mapping, program);
        }
        if let (Some(_), Some(name)) = (&self.fadvise, &self.open) {
            return self.fadvise(opens.find(name)?, program);
        }
        let think_ns = within("think_ns", self.think_ns.unwrap_or(0), 0, MAX_THINK_NS);
        let think_ns = think_ns.map_err(keyed)?;
        match (&self.mapping, &self.open) {
            (Some(name), _) => self.touch(there(name, true)?, think_ns, program),
            (None, open) => {
                let open = opens.find(open.as_deref().expect("one subject is given"))?;
                self.read(open, think_ns, program)
            }
        }
    }

    /// The step where it is about no mapping and no open file.
    fn alone(&self, program: &Job) -> Result<Option<ProgramStep>, Error> {
        let step = match (&self.barrier, self.fork, self.sleep_ns) {
            (Some(name), ..) => {
                let barrier = program.barriers.iter().position(|barrier| barrier.name == *name);
                ProgramStep::Barrier { barrier: barrier.expect("all were found before") }
            }
            (None, true, _) => ProgramStep::Fork,
            (None, false, Some(ns)) => {
                let ns = within("sleep_ns", ns, 1, MAX_THINK_NS).map_err(keyed)?;
                ProgramStep::Sleep { ns }
            }
            (None, false, None) => return Ok(None),
        };
        let alone = ThreadPhaseSpec {
            barrier: self.barrier.clone(),
            fork: self.fork,
            sleep_ns: self.sleep_ns,
            after: self.after.clone(),
            ..Default::default()
        };
        if *self != alone {
            return Err(ProgramError::NoSubject.into());
        }
        Ok(Some(step))
    }

    fn touch(&self, mapping: usize, think_ns: u64, program: &Job) -> Result<ProgramStep, Error> {
        let of = &program.mappings[mapping];
        if self.offset.is_some() || self.len.is_some() || self.bs.is_some() {
            return Err(Error::KeyConflict {
                key: "offset, len or bs",
                other: "a mapping",
                remedy: "they say what of an open file is read",
            });
        }
        if self.write && !of.segments.is_empty() {
            return Err(Error::KeyConflict {
                key: "write",
                other: "a mapping with elf = true",
                remedy: "the segments of a program are only read here; map a part of a file with \
                         private = true",
            });
        }
        if self.write && !of.mapping.private {
            return Err(Error::KeyConflict {
                key: "write",
                other: "a shared mapping",
                remedy: "writes to shared mappings are not modelled; set private = true there",
            });
        }
        let accesses = match &self.pages {
            None => {
                let pages = of.mapping.pages;
                // All segments once, where nothing else is said.
                let is_elf = self.workload.as_deref() == Some(Workload::Elf.to_string().as_str());
                let accesses = self.accesses.or(is_elf.then_some(pages.0));
                let all = ThreadPhaseSpec { accesses, ..self.clone() };
                let extent = (pages, pages.bytes(program.page_size()));
                let remedy = "a pattern such as random or stride:1021, or a list of 'pages'";
                all.generated(program.seed, extent, remedy, TOUCHES)?
            }
            Some(list) => self.listed(list, of, program.seed)?,
        };
        let access = match &accesses.pattern {
            Pattern::Generated(workload) => self.access(*workload, of)?,
            _ if self.write => Access::Write,
            _ => Access::Read,
        };
        Ok(ProgramStep::Touch { mapping, accesses, access, think_ns })
    }

    /// What accesses of `workload` do through the mapping `of`.
    fn access(&self, workload: Workload, of: &NamedMapping) -> Result<Access, Error> {
        let conflict = |other, remedy| Err(Error::KeyConflict { key: "workload", other, remedy });
        let is_elf = !of.segments.is_empty();
        match workload {
            _ if workload.is_read() => {
                let remedy = "give a pattern that touches pages, such as random or sequential";
                conflict("a mapping", remedy)
            }
            Workload::Elf if !is_elf => conflict(
                "a mapping of one part of a file",
                "set elf = true in the mapping's table, or give another pattern",
            ),
            _ if !workload.is_exec() => Ok(if self.write { Access::Write } else { Access::Read }),
            _ if is_elf => conflict(
                "a mapping with elf = true",
                "code of others is not called; give a pattern such as elf or random",
            ),
            _ if of.mapping.private => {
                conflict("a private mapping", "calls do not write; remove private = true there")
            }
            _ if !of.mapping.exec => conflict(
                "a mapping that is not executable",
                "set exec = true in the mapping's table",
            ),
            _ => Ok(Access::Call),
        }
    }

    /// The accesses of a pattern over so many pages. `remedy` and `known` say which patterns there
    /// are.
    pub(super) fn generated(
        &self,
        seed: u64,
        (pages, bytes): (PageCount, u64),
        remedy: &'static str,
        known: &str,
    ) -> Result<Phase, Error> {
        let missing = |key: &str, remedy| Error::MissingKey { key: key.to_string(), remedy };
        if self.workload.is_none() {
            return Err(missing("workload", remedy));
        }
        if self.accesses.is_none() {
            return Err(missing("accesses", "how many, such as 1000"));
        }
        let valid = self.accesses().validate_one(seed, Extent { pages, bytes });
        valid.map_err(|error| match error {
            Error::Flag { flag: "workload", error } => Error::Key {
                key: "workload".to_string(),
                error: Box::new(match *error {
                    Error::UnknownName { what, text, .. } => {
                        Error::UnknownName { what, text, known: known.to_string() }
                    }
                    other => other,
                }),
            },
            other => keyed(other),
        })
    }

    /// The pages that are listed in the phase itself.
    fn listed(&self, list: &Arc<Vec<u64>>, of: &NamedMapping, seed: u64) -> Result<Phase, Error> {
        self.check_list("pages")?;
        if self.offsets.is_some() {
            let (key, other) = ("offsets", "a mapping");
            let remedy = "they say where an open file is read; give 'pages'";
            return Err(Error::KeyConflict { key, other, remedy });
        }
        if let Some(&page) = list.iter().find(|&&page| page >= of.mapping.pages.0) {
            let (name, last) = (shorten(&of.name), of.mapping.pages.0 - 1);
            return Err(ProgramError::BeyondMapping { page, name, last }.into());
        }
        if list.is_empty() {
            return Err(Error::Zero { remedy: "one page or more in 'pages'" });
        }
        Ok(Phase::listed(list.clone(), seed, 1))
    }

    /// Refuses what a list says itself.
    pub(super) fn check_list(&self, other: &'static str) -> Result<(), Error> {
        if self.workload.is_none() && self.accesses.is_none() && self.seed.is_none() {
            return Ok(());
        }
        let (key, remedy) = ("workload, accesses or seed", "the list alone says what is accessed");
        Err(Error::KeyConflict { key, other, remedy })
    }
}

/// Refuses a call about the segments of a program, which stay as its loader maps them.
fn check_one_part(of: &NamedMapping, key: &'static str) -> Result<(), Error> {
    if of.segments.is_empty() {
        return Ok(());
    }
    let remedy = "what the loader maps stays as it is; give a mapping of one part of the file";
    Err(Error::KeyConflict { key, other: "a mapping with elf = true", remedy })
}

/// The patterns of pages through a mapping.
const TOUCHES: &str = "random, stride:N, sequential, reverse, first, interleave:K, zipf:S, hot:P/Q, \
    elf, exec:cold, exec:random";
