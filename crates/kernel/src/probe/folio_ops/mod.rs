//! A child process that times one operation over anonymous memory in folios of one size.

pub(super) mod child;
mod family;
mod frames;
mod memory;

use filemap_job::folio_ops::{Operation, PMD_BYTES};
use serde::{Deserialize, Serialize};

use super::folio_sample::FolioSample;

use super::wire::{ChildPipe, Reply, frame};
use crate::{Error, page_size};

/// Hidden first argument of the child.
pub(super) const ARGUMENT: &str = "__filemap-folio-ops";

/// One operation over anonymous memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolioProbe {
    /// Bytes of memory: a multiple of the PMD size.
    pub bytes: u64,
    /// Bytes of each folio. The machine's settings allow this size and no larger one.
    pub folio_bytes: u64,
    /// The operation.
    pub operation: Operation,
    /// Seed for the order of random writes.
    pub seed: u64,
    /// Number of children, for operations with several.
    pub children: u64,
}

impl FolioProbe {
    /// Runs it once in its own process.
    ///
    /// # Errors
    /// A size is invalid, the kernel refuses memory or processes, or it kills one.
    pub fn run(&self) -> Result<FolioSample, Error> {
        self.check()?;
        let mut child = ChildPipe::spawn(ARGUMENT)?;
        child.send(&frame(self));
        match child.receive()? {
            Reply::Folios(sample) => Ok(sample),
            _ => Err(child.protocol_error()),
        }
    }

    fn check(&self) -> Result<(), Error> {
        let &FolioProbe { bytes, folio_bytes, children, .. } = self;
        let sizes = page_size()..=PMD_BYTES;
        if !folio_bytes.is_power_of_two() || !sizes.contains(&folio_bytes) {
            return Err(Error::InvalidProcess(format!(
                "folios of {folio_bytes} bytes: use a power of two from {} to {PMD_BYTES}",
                page_size()
            )));
        }
        if bytes == 0 || !bytes.is_multiple_of(PMD_BYTES) || bytes > MAX_BYTES {
            return Err(Error::InvalidProcess(format!(
                "memory of {bytes} bytes: use a multiple of {PMD_BYTES} up to {MAX_BYTES}"
            )));
        }
        match children {
            0 => Err(Error::InvalidProcess("0 children write nothing: use 1 or more".to_string())),
            _ => Ok(()),
        }
    }
}

/// Half of the address space of a process.
const MAX_BYTES: u64 = 1 << 46;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_invalid_sizes_before_starting_a_process() {
        let operation = Operation::Fork;
        let good =
            FolioProbe { bytes: 4 << 20, folio_bytes: 65_536, operation, seed: 7, children: 1 };
        assert!(good.check().is_ok());
        for (wrong, words) in [
            (FolioProbe { folio_bytes: 0, ..good }, "folios of 0 bytes"),
            (FolioProbe { folio_bytes: 3 << 12, ..good }, "folios of 12288 bytes"),
            (FolioProbe { folio_bytes: 4 << 20, ..good }, "folios of 4194304 bytes"),
            (FolioProbe { bytes: 0, ..good }, "memory of 0 bytes"),
            (FolioProbe { bytes: 3 << 20, ..good }, "memory of 3145728 bytes"),
            (FolioProbe { bytes: 1 << 63, ..good }, "up to 70368744177664"),
            (FolioProbe { children: 0, ..good }, "0 children"),
        ] {
            let error = wrong.run().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
