//! Per-VMA locks.

/// The VMA locks of one address space. Each VMA has a unique number that it keeps.
///
/// A writer marks a VMA with the sequence number of the address space (`mm_lock_seq`). Releasing or
/// downgrading `mmap_lock` increments the number, which ends all marks together. A fault that finds
/// the mark is refused immediately. The writer waits for faults that are already inside.
///
/// Mirrors `vma_start_read`, `vma_start_write` and `vma_end_write_all`, 6.12 and 6.18. Test:
/// `tests/vma_lock.rs`.
#[derive(Clone, Debug)]
pub struct VmaLocks {
    sequence: u64,
    /// Sorted by VMA number.
    vmas: Vec<(u64, VmaLock)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct VmaLock {
    readers: u32,
    /// Sequence number of the last writer that marked it (`vm_lock_seq`).
    write_sequence: u64,
}

impl VmaLocks {
    /// No VMA is locked.
    pub fn new() -> VmaLocks {
        VmaLocks { sequence: 1, vmas: Vec::new() }
    }

    /// A fault requests the lock of `vma`. `false` if a writer has marked it.
    pub fn start_read(&mut self, vma: u64) -> bool {
        let sequence = self.sequence;
        let lock = self.lock_mut(vma);
        let is_free = lock.write_sequence != sequence;
        lock.readers += u32::from(is_free);
        is_free
    }

    /// A fault releases `vma`. Returns whether it was the last one inside a marked VMA, so that the
    /// writer can continue.
    ///
    /// # Panics
    /// If no fault holds the lock.
    pub fn end_read(&mut self, vma: u64) -> bool {
        let sequence = self.sequence;
        let lock = self.lock_mut(vma);
        lock.readers = lock.readers.checked_sub(1).expect("a fault has the lock");
        lock.readers == 0 && lock.write_sequence == sequence
    }

    /// The writer of `mmap_lock` marks `vma`. Returns whether no fault is inside; otherwise the
    /// writer waits for the last one.
    pub fn start_write(&mut self, vma: u64) -> bool {
        let sequence = self.sequence;
        let lock = self.lock_mut(vma);
        lock.write_sequence = sequence;
        lock.readers == 0
    }

    /// The writer releases or downgrades `mmap_lock`.
    pub fn end_write_all(&mut self) {
        self.sequence += 1;
    }

    /// Number of faults holding `vma`.
    pub fn readers(&self, vma: u64) -> u32 {
        let position = self.vmas.binary_search_by_key(&vma, |(number, _)| *number);
        position.map_or(0, |position| self.vmas[position].1.readers)
    }

    /// The lock of `vma`, created on first use.
    #[inline]
    fn lock_mut(&mut self, vma: u64) -> &mut VmaLock {
        // Numbers that count from 0 are also positions.
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
