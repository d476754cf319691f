//! What reads of the probe read into.

use filemap_job::program::DIRECT_BLOCK_BYTES;

/// Memory that begins at a multiple of the blocks that reads past the page cache read.
pub(super) struct ReadBuffer {
    bytes: Vec<u8>,
    start: usize,
}

impl ReadBuffer {
    /// Room for `bytes` bytes, rounded up to whole blocks. Ones are written, so that the memory is
    /// there.
    pub(super) fn new(bytes: u64) -> ReadBuffer {
        let block = DIRECT_BLOCK_BYTES as usize;
        let bytes = match bytes {
            0 => Vec::new(),
            some => vec![1; (some.next_multiple_of(DIRECT_BLOCK_BYTES)) as usize + block],
        };
        let from = bytes.as_ptr().align_offset(block).min(bytes.len());
        ReadBuffer { bytes, start: from }
    }

    /// The memory.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_with_a_block_and_has_room_for_all_of_them() {
        for bytes in [0, 1, 4095, 4096, 4097, 1 << 20] {
            let mut buffer = ReadBuffer::new(bytes);
            let memory = buffer.bytes();
            assert!(memory.len() as u64 >= bytes.next_multiple_of(DIRECT_BLOCK_BYTES));
            let first = memory.as_ptr() as u64;
            assert!(bytes == 0 || first.is_multiple_of(DIRECT_BLOCK_BYTES));
        }
    }
}
