//! The locks of single VMAs.

/// The locks of the VMAs of one address space. Each VMA has a number that it keeps, and that no
/// other one has meanwhile.
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
    /// By number.
    vmas: Vec<(u64, VmaLock)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct VmaLock {
    readers: u32,
    /// The sequence number with which a writer marked it last.
    marked: u64,
}

impl VmaLocks {
    /// None of them is locked.
    pub fn new() -> VmaLocks {
        VmaLocks { sequence: 1, vmas: Vec::new() }
    }

    /// A fault asks for the lock of `vma`: refused where a writer has marked it.
    pub fn read(&mut self, vma: u64) -> bool {
        let sequence = self.sequence;
        let lock = self.of(vma);
        let is_free = lock.marked != sequence;
        lock.readers += u32::from(is_free);
        is_free
    }

    /// A fault is done with `vma`. Whether it was the last inside of one that a writer has marked,
    /// and waits for.
    ///
    /// # Panics
    /// When no fault is inside.
    pub fn release(&mut self, vma: u64) -> bool {
        let sequence = self.sequence;
        let lock = self.of(vma);
        lock.readers = lock.readers.checked_sub(1).expect("a fault has the lock");
        lock.readers == 0 && lock.marked == sequence
    }

    /// The task that has `mmap_lock` to write marks `vma`. Whether no fault is inside: otherwise it
    /// waits for the last of them.
    pub fn mark(&mut self, vma: u64) -> bool {
        let sequence = self.sequence;
        let lock = self.of(vma);
        lock.marked = sequence;
        lock.readers == 0
    }

    /// `mmap_lock` is given up or downgraded by its writer.
    pub fn end_write(&mut self) {
        self.sequence += 1;
    }

    /// Faults inside of `vma`.
    pub fn readers(&self, vma: u64) -> u32 {
        let position = self.vmas.binary_search_by_key(&vma, |(number, _)| *number);
        position.map_or(0, |position| self.vmas[position].1.readers)
    }

    /// The lock of `vma`, which is made where there is none yet.
    #[inline]
    fn of(&mut self, vma: u64) -> &mut VmaLock {
        // Numbers that count from 0 are positions as well.
        let position = match self.vmas.get(vma as usize) {
            Some((number, _)) if *number == vma => vma as usize,
            _ => self.vmas.binary_search_by_key(&vma, |(number, _)| *number).unwrap_or_else(|at| {
                self.vmas.insert(at, (vma, VmaLock::default()));
                at
            }),
        };
        &mut self.vmas[position].1
    }
}

impl Default for VmaLocks {
    fn default() -> VmaLocks {
        VmaLocks::new()
    }
}
