//! The locks of single VMAs.

/// The locks of the VMAs of one address space.
///
/// A writer marks a VMA with the sequence number of the address space, which moves on when
/// `mmap_lock` is given up or downgraded: all marks end together. A fault that finds the mark is
/// refused at once. A writer waits for the faults that are inside.
///
/// Mirrors `vma_start_read`, `vma_start_write` and `vma_end_write_all`, 6.12 and 6.18. Test:
/// `tests/vma_lock.rs`.
#[derive(Clone, Debug)]
pub struct VmaLocks {
    sequence: u64,
    vmas: Vec<VmaLock>,
}

#[derive(Clone, Copy, Debug, Default)]
struct VmaLock {
    readers: u32,
    /// The sequence number with which a writer marked it last.
    marked: u64,
}

impl VmaLocks {
    /// Of so many VMAs, none of which is locked.
    pub fn new(vmas: usize) -> VmaLocks {
        VmaLocks { sequence: 1, vmas: vec![VmaLock::default(); vmas] }
    }

    /// A fault asks for the lock of `vma`: refused where a writer has marked it.
    pub fn read(&mut self, vma: usize) -> bool {
        let lock = &mut self.vmas[vma];
        let is_free = lock.marked != self.sequence;
        lock.readers += u32::from(is_free);
        is_free
    }

    /// A fault is done with `vma`. Whether it was the last inside of one that a writer has marked,
    /// and waits for.
    ///
    /// # Panics
    /// When no fault is inside.
    pub fn release(&mut self, vma: usize) -> bool {
        let lock = &mut self.vmas[vma];
        lock.readers = lock.readers.checked_sub(1).expect("a fault has the lock");
        lock.readers == 0 && lock.marked == self.sequence
    }

    /// The task that has `mmap_lock` to write marks `vma`. Whether no fault is inside: otherwise it
    /// waits for the last of them.
    pub fn mark(&mut self, vma: usize) -> bool {
        self.vmas[vma].marked = self.sequence;
        self.vmas[vma].readers == 0
    }

    /// `mmap_lock` is given up or downgraded by its writer.
    pub fn end_write(&mut self) {
        self.sequence += 1;
    }

    /// Faults inside of `vma`.
    pub fn readers(&self, vma: usize) -> u32 {
        self.vmas[vma].readers
    }
}
