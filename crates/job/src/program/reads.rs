//! Phases that read an open file, by a pattern or a list of offsets.

use std::sync::Arc;

use filemap_core::units::PageCount;

use super::error::ProgramError;
use super::names::with_key_error;
use super::spec::ThreadPhaseSpec;
use super::{Job, ProgramStep};
use crate::Error;
use crate::bounds::MAX_READ_BYTES;
use crate::limits::size;
use crate::parts::Phase;
use crate::size::{format_size, shorten};

/// Alignment of direct I/O in bytes, except at the end of the file. The kernel requires the logical
/// block size of the device, 512 bytes or 4 KiB; this satisfies both.
pub const DIRECT_BLOCK_BYTES: u64 = 4096;

/// Valid patterns of reads.
const READS: &str = "read-random, read-sequential";

impl ThreadPhaseSpec {
    /// The reads listed inline in the phase: blocks of one size, cut off at the end of a file of
    /// `file_bytes`.
    fn listed_reads(
        &self,
        list: &Arc<Vec<u64>>,
        file_bytes: u64,
        seed: u64,
    ) -> Result<Phase, Error> {
        self.check_list("offsets")?;
        if self.offset.is_some() || self.len.is_some() {
            let (key, other) = ("offset or len", "offsets");
            let remedy = "the list alone says what is read";
            return Err(Error::KeyConflict { key, other, remedy });
        }
        if list.is_empty() {
            return Err(Error::Zero { remedy: "one offset or more in 'offsets'" });
        }
        if let Some(&offset) = list.iter().find(|&&offset| offset >= file_bytes) {
            return Err(ProgramError::BeyondFile { offset, last: file_bytes - 1 }.into());
        }
        let missing = || Error::MissingKey {
            key: "bs".to_string(),
            remedy: "how many bytes are read at each offset, such as 4k",
        };
        let bs_bytes = size("bs", &self.bs, 1, MAX_READ_BYTES).map_err(with_key_error)?;
        Ok(Phase::from_list(list.clone(), seed, bs_bytes.ok_or_else(missing)?))
    }

    /// The step that reads an open file.
    pub(super) fn read(
        &self,
        open: usize,
        think_ns: u64,
        program: &Job,
    ) -> Result<ProgramStep, Error> {
        let step = self.buffered_read(open, think_ns, program)?;
        if let (true, ProgramStep::Read { offset_bytes, len_bytes, accesses, .. }) =
            (program.opens[open].direct, &step)
        {
            let end = offset_bytes + len_bytes;
            let file_bytes = program.files[program.opens[open].file].file.size_bytes;
            let ends = if end == file_bytes { 0 } else { *len_bytes };
            let listed = self.offsets.iter().flat_map(|list| list.iter());
            let keys = [("offset", *offset_bytes), ("len", ends), ("bs", accesses.bs_bytes)];
            let all = keys.into_iter().chain(listed.map(|offset| ("offsets", *offset)));
            let mut uneven = all.filter(|(_, bytes)| !bytes.is_multiple_of(DIRECT_BLOCK_BYTES));
            if let Some((key, bytes)) = uneven.next() {
                let open = shorten(&program.opens[open].name);
                return Err(ProgramError::NotDirect { key, bytes: format_size(bytes), open }.into());
            }
        }
        Ok(step)
    }

    fn buffered_read(
        &self,
        open: usize,
        think_ns: u64,
        program: &Job,
    ) -> Result<ProgramStep, Error> {
        if self.write || self.pages.is_some() || self.accesses_file.is_some() {
            let (key, other) = ("write, pages or accesses_file", "an open file");
            let remedy = "they say what is done through a mapping";
            return Err(Error::KeyConflict { key, other, remedy });
        }
        let file_bytes = program.files[program.opens[open].file].file.size_bytes;
        if let Some(list) = &self.offsets {
            let accesses = self.listed_reads(list, file_bytes, program.seed)?;
            let (offset_bytes, len_bytes) = (0, file_bytes);
            return Ok(ProgramStep::Read { open, offset_bytes, len_bytes, accesses, think_ns });
        }
        let offset_bytes =
            size("offset", &self.offset, 0, file_bytes - 1).map_err(with_key_error)?;
        let offset_bytes = offset_bytes.unwrap_or(0);
        let rest = file_bytes - offset_bytes;
        // Whole pages may be given up to the last page of the file.
        let most = rest.next_multiple_of(program.page_size());
        let len_bytes = size("len", &self.len, 1, most).map_err(with_key_error)?;
        let len_bytes = len_bytes.map_or(rest, |len_bytes| len_bytes.min(rest));
        let pages = PageCount(len_bytes.div_ceil(program.page_size()));
        let remedy =
            "read-random or read-sequential, a list of 'offsets', or advice with 'fadvise'";
        let extent = (pages, len_bytes);
        let accesses = self.generated(program.seed, extent, remedy, READS)?;
        if !accesses.is_read() {
            let (key, other) = ("workload", "an open file");
            let remedy = "give read-random or read-sequential";
            return Err(Error::KeyConflict { key, other, remedy });
        }
        Ok(ProgramStep::Read { open, offset_bytes, len_bytes, accesses, think_ns })
    }
}
