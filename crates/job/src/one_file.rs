//! A job of one file as its flags say it, before it becomes a program.

use filemap_core::rules::Rules;

use crate::elf::{Elf, Segment};
use crate::parts::{EngineKind, File, Image, Machine, Mapping, Phase};

/// A job that flags say, every value resolved: the program that it is follows from it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OneFile {
    /// The engine that is to run it.
    pub engine: EngineKind,
    /// The kernel that is booted for it, instead of the running one.
    pub image: Option<Image>,
    /// The kernel's rules with the patch series on top.
    pub rules: Rules,
    /// How many times it runs: 1 or more.
    pub runs: u64,
    /// Seed of the phases that name none: not 0.
    pub seed: u64,
    /// The accesses, one phase after the other: at least one.
    pub phases: Vec<Phase>,
    /// The file.
    pub file: File,
    /// The mapping of it. Of an ELF file only length, advice and shift count: the length is that
    /// of all segments together.
    pub mapping: Mapping,
    /// The file as a program that is loaded: each of its segments is mapped.
    pub elf: Option<Elf>,
    /// Memory, readahead and architecture.
    pub machine: Machine,
}

impl OneFile {
    /// Base page size in bytes.
    pub(crate) fn page_size(&self) -> u64 {
        self.machine.arch.page_size
    }

    /// The segments that are mapped of an ELF file, in its order; none of any other file.
    pub(crate) fn segments(&self) -> Vec<Segment> {
        let segments = self.elf.as_ref().map(|elf| elf.segments(self.page_size()));
        segments.map_or(Vec::new(), |valid| valid.expect("the job was validated"))
    }

    /// Bytes of the file that are mapped: the mapping's length up to the end of the file. Of an
    /// ELF file all, as reads know no segments.
    pub(crate) fn mapped_bytes(&self) -> u64 {
        match self.elf {
            Some(_) => self.file.size_bytes,
            None => self.mapping.bytes_of(&self.file, self.page_size()),
        }
    }
}
