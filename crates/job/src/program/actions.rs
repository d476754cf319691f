//! Advice as a step of a program: `madvise` for a range of a mapping, `fadvise` for one of a file.

use filemap_core::units::PageCount;

use super::advice::{Fadvise, Madvise};
use super::error::ProgramError;
use super::names::keyed;
use super::spec::ThreadPhaseSpec;
use super::{Program, ProgramStep};
use crate::Error;
use crate::limits::{one_of, pages, size};
use crate::size::shorten;

impl ThreadPhaseSpec {
    /// Refuses advice beside accesses, and both kinds at once.
    pub(super) fn check_advice(&self) -> Result<(), Error> {
        let conflict = |key, other, remedy| Err(Error::KeyConflict { key, other, remedy });
        match (&self.madvise, &self.fadvise) {
            (None, None) => return Ok(()),
            (Some(_), Some(_)) => {
                return conflict("madvise", "'fadvise'", "give each a phase of its own");
            }
            (Some(_), None) if self.mapping.is_none() => {
                let remedy = "name the mapping that it is about with 'mapping'";
                return conflict("madvise", "a phase without a mapping", remedy);
            }
            (None, Some(_)) if self.open.is_none() => {
                let remedy = "name the open file that it is about with 'open'";
                return conflict("fadvise", "a phase without an open file", remedy);
            }
            _ => {}
        }
        let advice = ThreadPhaseSpec {
            mapping: self.mapping.clone(),
            open: self.open.clone(),
            madvise: self.madvise.clone(),
            fadvise: self.fadvise.clone(),
            offset: self.offset.clone(),
            len: self.len.clone(),
            after: self.after.clone(),
            ..ThreadPhaseSpec::default()
        };
        if *self == advice {
            return Ok(());
        }
        let key = if self.madvise.is_some() { "madvise" } else { "fadvise" };
        conflict(key, "accesses", "a phase of advice takes an offset and a len, and nothing else")
    }

    /// The step of `madvise` for a mapping.
    pub(super) fn madvise(&self, mapping: usize, program: &Program) -> Result<ProgramStep, Error> {
        let known = Madvise::ALL;
        let advice = one_of("madvise", "advice", &self.madvise, known[0], known, Madvise::name);
        let of = &program.mappings[mapping];
        let page_size = program.page_size();
        let first = pages("offset", &self.offset, 0, page_size).map_err(keyed)?.unwrap_or(0);
        let beyond = |page: u64| {
            let (name, last) = (shorten(&of.name), of.mapping.pages.0 - 1);
            Error::from(ProgramError::BeyondMapping { page, name, last })
        };
        if first >= of.mapping.pages.0 {
            return Err(beyond(first));
        }
        let rest = of.mapping.pages.0 - first;
        let len = pages("len", &self.len, 1, page_size).map_err(keyed)?.unwrap_or(rest);
        if len > rest {
            return Err(beyond(first + len - 1));
        }
        let advice = advice.map_err(keyed)?;
        let behind = program.beyond_file(mapping).filter(|behind| first + len > behind.0);
        if let Some(behind) = behind.filter(|_| advice == Madvise::PopulateRead) {
            let (name, page) = (shorten(&of.name), behind.0.max(first));
            return Err(ProgramError::PopulatesBeyond { page, name }.into());
        }
        let (first, pages) = (PageCount(first), PageCount(len));
        Ok(ProgramStep::Madvise { mapping, advice, first, pages })
    }

    /// The step of `fadvise` for an open file.
    pub(super) fn fadvise(&self, open: usize, program: &Program) -> Result<ProgramStep, Error> {
        let known = Fadvise::ALL;
        let advice = one_of("fadvise", "advice", &self.fadvise, known[0], known, Fadvise::name);
        let advice = advice.map_err(keyed)?;
        if !advice.has_range() && (self.offset.is_some() || self.len.is_some()) {
            return Err(Error::KeyConflict {
                key: "offset or len",
                other: "advice for an open file",
                remedy: "only willneed and dontneed are about a range; leave both out",
            });
        }
        let file_bytes = program.files[program.opens[open].file].file.size_bytes;
        let offset = size("offset", &self.offset, 0, file_bytes - 1).map_err(keyed)?;
        let offset_bytes = offset.unwrap_or(0);
        let rest = file_bytes - offset_bytes;
        let len_bytes = size("len", &self.len, 1, rest).map_err(keyed)?;
        Ok(ProgramStep::Fadvise { open, advice, offset_bytes, len_bytes })
    }
}
