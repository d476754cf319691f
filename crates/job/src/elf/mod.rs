//! The segments of an ELF file, and the mappings that the loader makes of them.

mod error;

use std::ops::Range;

use filemap_core::units::{PageCount, PageIndex};
use object::elf::{ET_DYN, ET_EXEC, FileHeader32, FileHeader64, PF_W, PF_X, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind};
use serde::{Deserialize, Serialize};

pub use self::error::ElfError;
use crate::Error;
use crate::bounds::{MAX_ADDRESS, MAX_PIECES};
use crate::size::{format_size, shorten};

/// A program or a shared library, as far as its loader maps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elf {
    /// Size of the file in bytes.
    pub size_bytes: u64,
    /// Linked to run where its addresses say, not anywhere.
    pub fixed: bool,
    /// What is loaded from the file, in the file's order: at least one.
    pub loads: Vec<Load>,
}

/// A segment that is loaded: the part of it that comes from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Its number among the program headers, from 0.
    pub number: usize,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes in the file: at least 1.
    pub file_bytes: u64,
    /// First byte in memory.
    pub address: u64,
    /// Mapped with PROT_EXEC.
    pub executable: bool,
    /// Mapped with PROT_WRITE.
    pub writable: bool,
}

/// A segment on pages: one VMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// First page of the file.
    pub offset: PageIndex,
    /// Its length: at least 1.
    pub pages: PageCount,
    /// Where it begins, in pages from a page-table page's first entry.
    pub start: PageCount,
    /// Mapped with PROT_EXEC.
    pub executable: bool,
    /// Mapped with PROT_WRITE.
    pub writable: bool,
}

impl Segment {
    /// Its pages in the file.
    pub fn range(&self) -> Range<PageIndex> {
        self.offset..self.offset + self.pages
    }

    fn is_continued_by(&self, next: &Segment) -> bool {
        let end = (self.range().end, self.start + self.pages);
        end == (next.offset, next.start)
            && (self.executable, self.writable) == (next.executable, next.writable)
    }
}

impl Elf {
    /// Reads the headers of an ELF file, all of whose bytes these are.
    ///
    /// # Errors
    /// For bytes that are no program or shared library, and for segments that cannot be mapped:
    /// beyond the file, beyond the address space, or none at all.
    pub fn parse(bytes: &[u8]) -> Result<Elf, Error> {
        let kind = FileKind::parse(bytes).map_err(|_| no_elf("it does not begin as one"))?;
        let elf = match kind {
            FileKind::Elf32 => load::<FileHeader32<Endianness>>(bytes),
            FileKind::Elf64 => load::<FileHeader64<Endianness>>(bytes),
            _ => Err(no_elf("it is an object file of another kind")),
        };
        Ok(elf?)
    }

    /// The VMAs that the loader makes with pages of `page_size` bytes, in the file's order.
    ///
    /// Segments that go on where the one before ends, in file and memory, with the same
    /// protection, are one VMA: the kernel merges them (`vma_merge_new_range`).
    ///
    /// As the loader places it: a program that may run anywhere begins at a page-table page's
    /// first entry, any other where its addresses lie within theirs.
    ///
    /// # Errors
    /// For segments that share a page of memory, or lie in file and memory at different offsets
    /// into their page.
    pub fn segments(&self, page_size: u64) -> Result<Vec<Segment>, Error> {
        let lowest = self.loads.iter().map(|load| load.address).min().unwrap_or(0) / page_size;
        let base = if self.fixed { lowest - lowest % (page_size / 8) } else { lowest };
        let segments: Result<Vec<_>, ElfError> = self
            .loads
            .iter()
            .map(|load| {
                let into_page = load.address % page_size;
                if load.offset % page_size != into_page {
                    return Err(ElfError::Unaligned {
                        number: load.number,
                        offset: load.offset,
                        address: load.address,
                        page_size: format_size(page_size),
                    });
                }
                Ok(Segment {
                    offset: PageIndex(load.offset / page_size),
                    pages: PageCount((into_page + load.file_bytes).div_ceil(page_size)),
                    start: PageCount(load.address / page_size - base),
                    executable: load.executable,
                    writable: load.writable,
                })
            })
            .collect();
        let segments = segments?;
        self.check_overlap(&segments)?;
        Ok(merged(segments))
    }

    fn check_overlap(&self, segments: &[Segment]) -> Result<(), ElfError> {
        let mut by_address: Vec<usize> = (0..segments.len()).collect();
        by_address.sort_by_key(|&position| segments[position].start);
        for pair in by_address.windows(2) {
            let (low, high) = (segments[pair[0]], segments[pair[1]]);
            if low.start + low.pages > high.start {
                return Err(ElfError::Overlap {
                    first: self.loads[pair[0]].number,
                    second: self.loads[pair[1]].number,
                });
            }
        }
        Ok(())
    }
}

/// `segments` with each that continues the one before joined to it. In an ELF file they are in the
/// order of their addresses.
fn merged(segments: Vec<Segment>) -> Vec<Segment> {
    let mut vmas: Vec<Segment> = Vec::with_capacity(segments.len());
    for segment in segments {
        match vmas.last_mut().filter(|last| last.is_continued_by(&segment)) {
            Some(last) => last.pages += segment.pages,
            None => vmas.push(segment),
        }
    }
    vmas
}

fn load<H: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Result<Elf, ElfError> {
    let broken = |error: object::read::Error| no_elf(&error.to_string());
    let header = H::parse(bytes).map_err(broken)?;
    let endian = header.endian().map_err(broken)?;
    let kind = header.e_type(endian);
    if kind != ET_EXEC && kind != ET_DYN {
        return Err(no_elf("it is not linked: no program and no shared library"));
    }
    let size_bytes = bytes.len() as u64;
    let mut loads = Vec::new();
    let headers = header.program_headers(endian, bytes).map_err(broken)?;
    for (number, header) in headers.iter().enumerate() {
        if header.p_type(endian) != PT_LOAD {
            continue;
        }
        let (offset, file_bytes) = (header.p_offset(endian).into(), header.p_filesz(endian).into());
        let (address, memory) = (header.p_vaddr(endian).into(), header.p_memsz(endian).into());
        let end = u64::checked_add(address, u64::max(memory, file_bytes));
        if end.is_none_or(|end| end > MAX_ADDRESS) {
            return Err(ElfError::TooLarge { number, address, bytes: memory });
        }
        if u64::checked_add(offset, file_bytes).is_none_or(|end| end > size_bytes) {
            return Err(ElfError::BeyondFile { number, offset, bytes: file_bytes, size_bytes });
        }
        if file_bytes > memory {
            return Err(ElfError::LargerThanMemory { number, file_bytes, memory_bytes: memory });
        }
        if file_bytes > 0 {
            let flags = header.p_flags(endian);
            let (executable, writable) = (flags & PF_X != 0, flags & PF_W != 0);
            loads.push(Load { number, offset, file_bytes, address, executable, writable });
        }
    }
    if loads.is_empty() || loads.len() as u64 > MAX_PIECES {
        return Err(no_elf(&format!("{} of its segments are loaded", loads.len())));
    }
    Ok(Elf { size_bytes, fixed: kind == ET_EXEC, loads })
}

fn no_elf(reason: &str) -> ElfError {
    ElfError::NotLoadable { reason: shorten(reason) }
}
