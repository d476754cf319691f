//! One access of a probe.

use filemap_core::units::PageIndex;
use filemap_job::program::{self, DIRECT_BLOCK_BYTES, ProgramStep};

use super::process::ProbeProcess;
use crate::page_size;

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeAccess {
    /// Reads a byte of a page of the mapping, counted from its beginning.
    Touch(PageIndex),
    /// Writes a byte of a page of a private mapping.
    Store(PageIndex),
    /// Calls the code at the start of a page of an executable mapping: it has to be [`RETURN_OPCODE`].
    Call(PageIndex),
    /// `read(2)`s from the file, through the same open file as the mapping.
    Read {
        /// Where in the file, in bytes.
        offset: u64,
        /// How much: up to [`super::MAX_READ_BYTES`].
        bytes: u64,
    },
}

/// The accesses of `step`, a step of `process`, in order.
pub(super) fn accesses(process: &ProbeProcess, step: &ProgramStep) -> Vec<ProbeAccess> {
    match step {
        ProgramStep::Touch { mapping, accesses, access, .. } => {
            let access = match access {
                program::Access::Read => ProbeAccess::Touch,
                program::Access::Write => ProbeAccess::Store,
                program::Access::Call => ProbeAccess::Call,
            };
            let of = &process.mappings[*mapping];
            let place = of.from_beginning();
            of.touches(accesses).map(|page| access(place(page))).collect()
        }
        ProgramStep::Read { open, offset_bytes, len_bytes, accesses, .. } => {
            let blocks = accesses.reads(*len_bytes, page_size());
            // Past the page cache the last block of a file is asked for whole, and is short.
            let unit = if process.is_direct(*open) { DIRECT_BLOCK_BYTES } else { 1 };
            let read = blocks.map(|block| ProbeAccess::Read {
                offset: offset_bytes + block.offset_bytes,
                bytes: block.len_bytes.next_multiple_of(unit),
            });
            read.collect()
        }
        _ => Vec::new(),
    }
}

/// The instruction that returns to the caller, one byte long, on x86-64: the only machine on which
/// a probe calls what it maps.
pub const RETURN_OPCODE: u8 = 0xc3;
