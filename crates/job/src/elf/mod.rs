//! Segments of ELF files, and the mappings that the loader makes of them.

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

/// A program or shared library, reduced to its loaded segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elf {
    /// Size of the file in bytes.
    pub size_bytes: u64,
    /// Linked to a fixed address (not position-independent).
    pub fixed: bool,
    /// Segments with contents in the file, in file order: at least one.
    pub loads: Vec<Load>,
}

/// A `PT_LOAD` segment, limited to the part with contents in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Index of its program header.
    pub number: usize,
    /// Offset in the file.
    pub offset: u64,
    /// Length in the file, in bytes: at least 1.
    pub file_bytes: u64,
    /// Address in memory.
    pub address: u64,
    /// Mapped with PROT_EXEC.
    pub executable: bool,
    /// Mapped with PROT_WRITE.
    pub writable: bool,
}

/// A page-aligned segment: one VMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// First page in the file.
    pub offset: PageIndex,
    /// Length: at least 1.
    pub pages: PageCount,
    /// Start, in pages from the first entry of a page table.
    pub start: PageCount,
    /// Mapped with PROT_EXEC.
    pub executable: bool,
    /// Mapped with PROT_WRITE.
    pub writable: bool,
}

impl Segment {
    /// Its page range in the file.
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
    /// Parses the headers of an ELF file, given the bytes of the whole file.
    ///
    /// # Errors
    /// Bytes that are not a program or shared library, and segments that cannot be mapped: beyond
    /// the end of the file, beyond the address space, or none at all.
    pub fn parse(bytes: &[u8]) -> Result<Elf, Error> {
        let kind = FileKind::parse(bytes).map_err(|_| no_elf("it does not begin as one"))?;
        let elf = match kind {
            FileKind::Elf32 => load::<FileHeader32<Endianness>>(bytes),
            FileKind::Elf64 => load::<FileHeader64<Endianness>>(bytes),
            _ => Err(no_elf("it is an object file of another kind")),
        };
        Ok(elf?)
    }

    /// The VMAs that the loader creates with pages of `page_size` bytes, in file order.
    ///
    /// Adjacent segments, in file and memory, with the same protection become one VMA: the kernel
    /// merges them (`vma_merge_new_range`).
    ///
    /// Addresses are chosen as the loader does: a position-independent program starts at the first
    /// entry of a page table, and any other at its fixed place within one.
    ///
    /// # Errors
    /// Segments that share a page of memory, or whose file offset and address differ modulo the
    /// page size.
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
        Ok(merge_segments(segments))
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

/// Merges each segment into the previous one if it continues it. ELF segments are in address order.
fn merge_segments(segments: Vec<Segment>) -> Vec<Segment> {
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
        return Err(no_elf("it is not linked: neither a program nor a shared library"));
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
