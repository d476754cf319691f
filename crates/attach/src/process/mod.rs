//! What `/proc` tells of a process.

use crate::{Error, MappedRange};

/// What a mapping is advised, as far as the kernel keeps that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptAdvice {
    pub readahead: Readahead,
    /// `MADV_HUGEPAGE` or `MADV_NOHUGEPAGE`.
    pub huge_pages: Option<bool>,
}

/// How the kernel reads ahead in a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readahead {
    #[default]
    Normal,
    /// `MADV_RANDOM`
    Random,
    /// `MADV_SEQUENTIAL`
    Sequential,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// It runs or could, in user mode or for a short time in the kernel.
    Running,
    /// It waits in this system call.
    InCall { number: i64 },
    /// It waits in the kernel, but in no system call: a fault.
    Blocked,
    /// It is stopped or traced.
    Stopped,
    /// It has ended.
    Ended,
}

/// All that is mapped, in order of addresses.
pub fn maps(_pid: u32) -> Result<Vec<MappedRange>, Error> {
    todo!()
}

/// All that is mapped of files, with the advice that it has now.
pub fn advised_maps(_pid: u32) -> Result<Vec<(MappedRange, KeptAdvice)>, Error> {
    todo!()
}

/// Whether a process has `range` mapped now, whole and in this way: the same file at the same
/// offset, with the same protection. Several mappings that adjoin are one.
pub fn is_mapped(_pid: u32, _range: &MappedRange) -> bool {
    todo!()
}

/// The threads of a process.
pub fn threads(_pid: u32) -> Result<Vec<u32>, Error> {
    todo!()
}

pub fn thread_state(_pid: u32, _tid: u32) -> Result<ThreadState, Error> {
    todo!()
}

/// Whether it is a 32-bit program.
pub fn is_32_bit(_pid: u32) -> Result<bool, Error> {
    todo!()
}

/// The seccomp mode of a process: 0 none, 1 strict, 2 filter.
pub fn seccomp_mode(_pid: u32) -> Result<u32, Error> {
    todo!()
}

/// The type of the filesystem of a device, as the mounts that the process sees name it.
pub fn filesystem_type(_pid: u32, _major: u32, _minor: u32) -> Result<Option<String>, Error> {
    todo!()
}
