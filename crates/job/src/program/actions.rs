//! Phases that are system calls on a range: `madvise`, `mprotect` and `munmap` of a mapping,
//! `fadvise` of a file.

use filemap_core::units::PageCount;

use super::advice::{Fadvise, Madvise};
use super::error::ProgramError;
use super::names::with_key_error;
use super::spec::ThreadPhaseSpec;
use super::{Job, NamedMapping, ProgramStep, Protection};
use crate::Error;
use crate::limits::{check_one_of, pages, size};
use crate::size::shorten;

impl ThreadPhaseSpec {
    /// Rejects a call together with accesses or with another call.
    pub(super) fn check_call(&self) -> Result<(), Error> {
        let conflict = |key, other, remedy| Err(Error::KeyConflict { key, other, remedy });
        let calls = [
            ("madvise", self.madvise.is_some()),
            ("mprotect", self.mprotect.is_some()),
            ("fadvise", self.fadvise.is_some()),
        ];
        let mut keys = calls.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key);
        let Some(key) = keys.next() else { return Ok(()) };
        match keys.next() {
            Some("mprotect") => return conflict(key, "'mprotect'", "give each a phase of its own"),
            Some(_) => return conflict(key, "'fadvise'", "give each a phase of its own"),
            None => {}
        }
        if key == "fadvise" && self.open.is_none() {
            let remedy = "name the open file that it is about with 'open'";
            return conflict(key, "a phase without an open file", remedy);
        }
        if key != "fadvise" && self.mapping.is_none() {
            let remedy = "name the mapping that it is about with 'mapping'";
            return conflict(key, "a phase without a mapping", remedy);
        }
        let call = ThreadPhaseSpec {
            mapping: self.mapping.clone(),
            open: self.open.clone(),
            madvise: self.madvise.clone(),
            mprotect: self.mprotect.clone(),
            fadvise: self.fadvise.clone(),
            offset: self.offset.clone(),
            len: self.len.clone(),
            after: self.after.clone(),
            ..ThreadPhaseSpec::default()
        };
        if *self == call {
            return Ok(());
        }
        let remedy = match key {
            "mprotect" => "a phase of protection takes an offset and a len, and nothing else",
            _ => "a phase of advice takes an offset and a len, and nothing else",
        };
        conflict(key, "accesses", remedy)
    }

    /// The `madvise` step for a mapping.
    pub(super) fn madvise(&self, mapping: usize, program: &Job) -> Result<ProgramStep, Error> {
        let known = Madvise::ALL;
        let advice =
            check_one_of("madvise", "advice", &self.madvise, known[0], known, Madvise::name);
        let target = &program.mappings[mapping];
        let page_size = program.page_size();
        let (first, len) = self.part(target, page_size)?;
        let advice = advice.map_err(with_key_error)?;
        let behind = program.beyond_file(mapping).filter(|behind| first + len > behind.0);
        if let Some(behind) = behind.filter(|_| advice == Madvise::PopulateRead) {
            let (name, page) = (shorten(&target.name), behind.0.max(first));
            return Err(ProgramError::PopulatesBeyond { page, name }.into());
        }
        let (first, pages) = (PageCount(first), PageCount(len));
        Ok(ProgramStep::Madvise { mapping, advice, first, pages })
    }

    /// The range of a mapping that the phase applies to: first page and length.
    fn part(&self, named_mapping: &NamedMapping, page_size: u64) -> Result<(u64, u64), Error> {
        let first =
            pages("offset", &self.offset, 0, page_size).map_err(with_key_error)?.unwrap_or(0);
        let beyond = |page: u64| {
            let (name, last) = (shorten(&named_mapping.name), named_mapping.mapping.pages.0 - 1);
            Error::from(ProgramError::BeyondMapping { page, name, last })
        };
        if first >= named_mapping.mapping.pages.0 {
            return Err(beyond(first));
        }
        let rest = named_mapping.mapping.pages.0 - first;
        let len = pages("len", &self.len, 1, page_size).map_err(with_key_error)?.unwrap_or(rest);
        if len > rest {
            return Err(beyond(first + len - 1));
        }
        Ok((first, len))
    }

    /// The `munmap` step for a mapping or a part of it.
    pub(super) fn unmaps(&self, mapping: usize, program: &Job) -> Result<ProgramStep, Error> {
        let (first, pages) = self.part(&program.mappings[mapping], program.page_size())?;
        let (first, pages) = (PageCount(first), PageCount(pages));
        Ok(ProgramStep::Unmap { mapping, first, pages })
    }

    /// The `mprotect` step for a mapping.
    pub(super) fn mprotect(&self, mapping: usize, program: &Job) -> Result<ProgramStep, Error> {
        let (known, name) = (Protection::ALL, Protection::name);
        let asked = check_one_of("mprotect", "protection", &self.mprotect, known[0], known, name);
        let asked = asked.map_err(with_key_error)?;
        let NamedMapping { mapping: of, .. } = &program.mappings[mapping];
        if of.split.is_some() {
            let (key, other) = ("mprotect", "a mapping with 'split'");
            let remedy = "that has protections of its own; map it without";
            return Err(Error::KeyConflict { key, other, remedy });
        }
        // The original protection is no change.
        let protection = match asked {
            Protection::Write if of.private => Protection::AsMapped,
            Protection::Exec if of.exec => Protection::AsMapped,
            asked => asked,
        };
        let (first, pages) = self.part(&program.mappings[mapping], program.page_size())?;
        let (first, pages) = (PageCount(first), PageCount(pages));
        Ok(ProgramStep::Mprotect { mapping, protection, first, pages })
    }

    /// The `fadvise` step for an open file.
    pub(super) fn fadvise(&self, open: usize, program: &Job) -> Result<ProgramStep, Error> {
        let known = Fadvise::ALL;
        let advice =
            check_one_of("fadvise", "advice", &self.fadvise, known[0], known, Fadvise::name);
        let advice = advice.map_err(with_key_error)?;
        if !advice.has_range() && (self.offset.is_some() || self.len.is_some()) {
            return Err(Error::KeyConflict {
                key: "offset or len",
                other: "advice for an open file",
                remedy: "only willneed and dontneed are about a range; leave both out",
            });
        }
        let file_bytes = program.files[program.opens[open].file].file.size_bytes;
        let offset = size("offset", &self.offset, 0, file_bytes - 1).map_err(with_key_error)?;
        let offset_bytes = offset.unwrap_or(0);
        let rest = file_bytes - offset_bytes;
        let len_bytes = size("len", &self.len, 1, rest).map_err(with_key_error)?;
        Ok(ProgramStep::Fadvise { open, advice, offset_bytes, len_bytes })
    }
}
