//! Conversion of the keys of a phase to a step.

use std::sync::Arc;

use filemap_core::units::PageCount;

use super::error::ProgramError;
use super::mapping_tracker::PageRanges;
use super::names::{Names, with_key_error};
use super::spec::ThreadPhaseSpec;
use super::{Access, Job, NamedMapping, ProgramStep};
use crate::Error;
use crate::bounds::MAX_THINK_NS;
use crate::limits::{pages, within};
use crate::parts::{Pattern, Phase};
use crate::phase_spec::PhaseSpec;
use crate::phases::Extent;
use crate::size::shorten;
use crate::workload::Workload;

impl ThreadPhaseSpec {
    pub(super) fn validate(
        &self,
        opens: &Names<'_>,
        mappings: &Names<'_>,
        mapped: &[PageRanges],
        program: &Job,
    ) -> Result<ProgramStep, Error> {
        self.check_call()?;
        let subjects = [&self.map, &self.unmap, &self.mapping, &self.open, &self.barrier];
        let subjects = subjects.iter().filter(|subject| subject.is_some()).count();
        let alone =
            [self.fork, self.sleep_ns.is_some(), self.allocate.is_some(), self.free.is_some()];
        let alone = alone.into_iter().filter(|is_given| *is_given).count();
        if subjects + alone != 1 {
            return Err(ProgramError::NoSubject.into());
        }
        if let Some(step) = self.single_step(program)? {
            return Ok(step);
        }
        let mapping_state = |name: &String, wanted: bool| -> Result<usize, Error> {
            let mapping = mappings.find(name)?;
            if mapped[mapping].is_mapped() == wanted {
                return Ok(mapping);
            }
            let name = shorten(name);
            Err(if wanted {
                ProgramError::NotMapped { name }.into()
            } else {
                ProgramError::AlreadyMapped { name }.into()
            })
        };
        if let Some(name) = self.map.as_ref().or(self.unmap.as_ref()) {
            // Only `unmap` accepts a range; `map` creates the whole mapping.
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
            let mapping = mapping_state(name, self.unmap.is_some())?;
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
            let mapping = mapping_state(name, true)?;
            check_one_part(&program.mappings[mapping], "madvise")?;
            return self.madvise(mapping, program);
        }
        if let (Some(_), Some(name)) = (&self.mprotect, &self.mapping) {
            let mapping = mapping_state(name, true)?;
            check_one_part(&program.mappings[mapping], "mprotect")?;
            return self.mprotect(mapping, program);
        }
        if let (Some(_), Some(name)) = (&self.fadvise, &self.open) {
            return self.fadvise(opens.find(name)?, program);
        }
        let think_ns = within("think_ns", self.think_ns.unwrap_or(0), 0, MAX_THINK_NS);
        let think_ns = think_ns.map_err(with_key_error)?;
        match (&self.mapping, &self.open) {
            (Some(name), _) => self.touch(mapping_state(name, true)?, think_ns, program),
            (None, open) => {
                let open = opens.find(open.as_deref().expect("one subject is given"))?;
                self.read(open, think_ns, program)
            }
        }
    }

    /// A step that involves no mapping and no open file.
    fn single_step(&self, program: &Job) -> Result<Option<ProgramStep>, Error> {
        let page_size = program.page_size();
        let size = |key, size| pages(key, size, 0, page_size).map_err(with_key_error);
        let memory = [size("allocate", &self.allocate)?, size("free", &self.free)?];
        let step = match (&self.barrier, self.fork, self.sleep_ns) {
            _ if memory[0].is_some() => {
                ProgramStep::Allocate { pages: PageCount(memory[0].unwrap_or(0)) }
            }
            _ if memory[1].is_some() => {
                ProgramStep::Free { pages: PageCount(memory[1].unwrap_or(0)) }
            }
            (Some(name), ..) => {
                let barrier = program.barriers.iter().position(|barrier| barrier.name == *name);
                ProgramStep::Barrier { barrier: barrier.expect("all were found before") }
            }
            (None, true, _) => ProgramStep::Fork,
            (None, false, Some(ns)) => {
                let ns = within("sleep_ns", ns, 1, MAX_THINK_NS).map_err(with_key_error)?;
                ProgramStep::Sleep { ns }
            }
            (None, false, None) => return Ok(None),
        };
        let alone = ThreadPhaseSpec {
            barrier: self.barrier.clone(),
            fork: self.fork,
            sleep_ns: self.sleep_ns,
            allocate: self.allocate.clone(),
            free: self.free.clone(),
            after: self.after.clone(),
            ..Default::default()
        };
        if *self != alone {
            return Err(ProgramError::NoSubject.into());
        }
        Ok(Some(step))
    }

    fn touch(&self, mapping: usize, think_ns: u64, program: &Job) -> Result<ProgramStep, Error> {
        let named = &program.mappings[mapping];
        if self.offset.is_some() || self.len.is_some() || self.bs.is_some() {
            return Err(Error::KeyConflict {
                key: "offset, len or bs",
                other: "a mapping",
                remedy: "they say what of an open file is read",
            });
        }
        if self.write && !named.segments.is_empty() {
            return Err(Error::KeyConflict {
                key: "write",
                other: "a mapping with elf = true",
                remedy: "the segments of a program are only read here; map a part of a file with \
                         private = true",
            });
        }
        if self.write && !named.mapping.private {
            return Err(Error::KeyConflict {
                key: "write",
                other: "a shared mapping",
                remedy: "writes to shared mappings are not modelled; set private = true there",
            });
        }
        let accesses = match &self.pages {
            None => {
                let pages = named.mapping.pages;
                let extent = (pages, pages.bytes(program.page_size()));
                let remedy = "a pattern such as random or stride:1021, or a list of 'pages'";
                self.generated(program.seed, extent, remedy, TOUCHES)?
            }
            Some(list) => self.list_phase(list, named, program.seed)?,
        };
        let access = match &accesses.pattern {
            Pattern::Generated(workload) => self.access(*workload, named)?,
            _ if self.write => Access::Write,
            _ => Access::Read,
        };
        Ok(ProgramStep::Touch { mapping, accesses, access, think_ns })
    }

    /// The kind of access that `workload` makes through the mapping `named`.
    fn access(&self, workload: Workload, named: &NamedMapping) -> Result<Access, Error> {
        let conflict = |other, remedy| Err(Error::KeyConflict { key: "workload", other, remedy });
        let is_elf = !named.segments.is_empty();
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
            _ if named.mapping.private => {
                conflict("a private mapping", "calls do not write; remove private = true there")
            }
            _ if !named.mapping.exec => conflict(
                "a mapping that is not executable",
                "set exec = true in the mapping's table",
            ),
            _ => Ok(Access::Call),
        }
    }

    /// Accesses of a pattern over the given pages or bytes. `remedy` and `known` list the valid
    /// patterns for error messages.
    pub(super) fn generated(
        &self,
        seed: u64,
        (pages, bytes): (PageCount, u64),
        remedy: &'static str,
        known: &str,
    ) -> Result<Phase, Error> {
        let missing = |key: &str, remedy| Error::MissingKey { key: key.to_string(), remedy };
        if self.workload.is_none() && self.accesses_file.is_none() {
            return Err(missing("workload", remedy));
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
            other => with_key_error(other),
        })
    }

    /// The accesses listed inline in the phase.
    fn list_phase(
        &self,
        list: &Arc<Vec<u64>>,
        named_mapping: &NamedMapping,
        seed: u64,
    ) -> Result<Phase, Error> {
        self.check_list("pages")?;
        if self.offsets.is_some() {
            let (key, other) = ("offsets", "a mapping");
            let remedy = "they say where an open file is read; give 'pages'";
            return Err(Error::KeyConflict { key, other, remedy });
        }
        if let Some(&page) = list.iter().find(|&&page| page >= named_mapping.mapping.pages.0) {
            let (name, last) = (shorten(&named_mapping.name), named_mapping.mapping.pages.0 - 1);
            return Err(ProgramError::BeyondMapping { page, name, last }.into());
        }
        if list.is_empty() {
            return Err(Error::Zero { remedy: "one page or more in 'pages'" });
        }
        Ok(Phase::from_list(list.clone(), seed, 1))
    }

    /// Rejects keys that conflict with an inline list.
    pub(super) fn check_list(&self, other: &'static str) -> Result<(), Error> {
        let accesses = ThreadPhaseSpec { bs: None, ..self.clone() }.accesses();
        if accesses == PhaseSpec::default() {
            return Ok(());
        }
        let (key, remedy) = ("workload, accesses or seed", "the list alone says what is accessed");
        Err(Error::KeyConflict { key, other, remedy })
    }
}

/// Rejects calls on the segments of a program, which stay as its loader maps them.
fn check_one_part(named: &NamedMapping, key: &'static str) -> Result<(), Error> {
    if named.segments.is_empty() {
        return Ok(());
    }
    let remedy = "what the loader maps stays as it is; give a mapping of one part of the file";
    Err(Error::KeyConflict { key, other: "a mapping with elf = true", remedy })
}

/// Valid patterns of touches through a mapping.
const TOUCHES: &str = "random, stride:N, sequential, reverse, first, interleave:K, zipf:S, hot:P/Q, \
    runs:N, records:SIZE, elf, exec:cold, exec:random";
