//! A hash of a decision log.

use std::hash::{Hash, Hasher};

use filemap_core::decision::{Decision, Log};

/// Hashes decisions as they come (64-bit FNV-1a over the fields' 64-bit values), the same on
/// every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    state: u64,
    decisions: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Digest { state: 0xcbf2_9ce4_8422_2325, decisions: 0 }
    }
}

impl Digest {
    /// The hash of the decisions so far.
    pub fn value(&self) -> u64 {
        self.state
    }

    /// How many decisions there were.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }
}

impl Log for Digest {
    fn record(&mut self, decision: Decision) {
        self.decisions += 1;
        decision.hash(self);
    }
}

impl Hasher for Digest {
    fn finish(&self) -> u64 {
        self.state
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.state = (self.state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.write(&value.to_le_bytes());
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}
