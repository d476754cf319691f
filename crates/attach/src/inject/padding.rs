//! Allocates stubs in the padding after the ELF image of a vDSO.

use std::fs;
use std::ops::Range;

use super::Refusal;
use super::areas::MappedArea;
use super::machine::{STUB_BYTES, thread_of_stub};
use super::status::ThreadStatus;
use super::tracee::Tracee;

/// Sanity limit on the size of a vDSO.
const MAX_VDSO_BYTES: u64 = 1 << 20;

/// Bytes above the stack pointer to search for return addresses into a stub.
const SEARCHED_STACK_BYTES: usize = 64 * 1024;

/// Maximum number of threads of a process to match with the owners of stubs left behind.
const MAX_THREADS: usize = 1024;

/// A slot for one stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StubSlot {
    pub address: u64,
}

/// A thread held in a ptrace stop.
#[derive(Clone, Copy)]
pub struct HeldThread<'a> {
    pub tracee: &'a Tracee,
    pub pid: u32,
    /// Thread ID in the innermost PID namespace of the target.
    pub inner_tid: u32,
    pub instruction: u64,
    pub stack: u64,
}

impl StubSlot {
    /// Finds a slot, in order of preference: one with an earlier stub of this thread that it is no
    /// longer in, one that is all zero, one whose owner has exited.
    pub fn find(held: &HeldThread<'_>, vdso: &MappedArea) -> Result<StubSlot, Refusal> {
        let no_place = Refusal::NoRoom { pid: held.pid, needed_bytes: STUB_BYTES };
        let length = vdso.end - vdso.begin;
        if length > MAX_VDSO_BYTES {
            return Err(no_place);
        }
        let mut image = vec![0; length as usize];
        held.tracee.read(vdso.begin, &mut image).map_err(|_| no_place.clone())?;
        let begin = contents_end(&image).ok_or(no_place.clone())?.next_multiple_of(8);
        let padding = image.get(begin..).unwrap_or(&[]);
        if padding.len() < STUB_BYTES {
            return Err(no_place);
        }
        let slots = padding.chunks_exact(STUB_BYTES).enumerate().map(|(index, bytes)| {
            let address = vdso.begin + (begin + index * STUB_BYTES) as u64;
            (StubSlot { address }, bytes)
        });
        let left = slots.clone().filter_map(|(slot, bytes)| Some((slot, thread_of_stub(bytes)?)));
        let is_own = |(slot, thread): &(StubSlot, u32)| {
            *thread == held.inner_tid
                && held.is_outside(slot)
                && !slots
                    .clone()
                    .any(|(other, bytes)| other != *slot && slot.is_referenced_in(bytes))
        };
        if let Some((slot, _)) = left.clone().find(is_own) {
            return Ok(slot);
        }
        if let Some((slot, _)) =
            slots.clone().find(|(_, bytes)| bytes.iter().all(|byte| *byte == 0))
        {
            return Ok(slot);
        }
        let threads = inner_tids(held.pid);
        left.clone()
            .find(|(_, thread)| threads.as_ref().is_some_and(|threads| !threads.contains(thread)))
            .map(|(slot, _)| slot)
            .ok_or(Refusal::Busy {
                tid: held.tracee.tid(),
                place: "a vDSO full of stubs of others",
            })
    }

    /// Reads the stub in this slot, if it belongs to the held thread.
    pub fn stub(&self, held: &HeldThread<'_>, vdso: &MappedArea) -> Option<[u8; STUB_BYTES]> {
        let mut stub = [0; STUB_BYTES];
        let is_inside = vdso.begin <= self.address && self.addresses().end <= vdso.end;
        held.tracee.read(self.address, &mut stub).ok().filter(|()| is_inside)?;
        (thread_of_stub(&stub) == Some(held.inner_tid)).then_some(stub)
    }

    /// Writes the stub backwards: the last word, which marks a stub, is written first and cleared
    /// last.
    pub fn write(&self, tracee: &Tracee, stub: &[u64; STUB_BYTES / 8]) -> rustix::io::Result<()> {
        for (index, word) in stub.iter().enumerate().rev() {
            tracee.write_word(self.address + 8 * index as u64, *word)?;
        }
        Ok(())
    }

    pub fn clear(&self, tracee: &Tracee) -> rustix::io::Result<()> {
        for index in 0..STUB_BYTES / 8 {
            tracee.write_word(self.address + 8 * index as u64, 0)?;
        }
        Ok(())
    }

    /// Whether `stub` returns into this slot: a thread interrupted in one stub can be given
    /// another.
    fn is_referenced_in(&self, stub: &[u8]) -> bool {
        stub.windows(8).any(|word| {
            let word = u64::from_le_bytes(word.try_into().expect("a window of eight bytes"));
            self.addresses().contains(&word)
        })
    }

    fn addresses(&self) -> Range<u64> {
        self.address..self.address + STUB_BYTES as u64
    }
}

impl HeldThread<'_> {
    /// Whether the thread is neither in the stub nor in a signal handler that returns to it. The
    /// handler's frame would be above the stack pointer.
    fn is_outside(&self, slot: &StubSlot) -> bool {
        let mut stack = vec![0; SEARCHED_STACK_BYTES];
        let mut searched = 0;
        while searched < stack.len() {
            let address = self.stack + searched as u64;
            // Read page by page, since the stack can end at any page boundary.
            let length = (4096 - address % 4096) as usize;
            let length = length.min(stack.len() - searched);
            if self.tracee.read(address, &mut stack[searched..searched + length]).is_err() {
                break;
            }
            searched += length;
        }
        let addresses = slot.addresses();
        let mut words = stack[..searched]
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("a chunk of eight bytes")));
        !addresses.contains(&self.instruction) && !words.any(|word| addresses.contains(&word))
    }
}

/// End offset of the segments and section headers of an ELF image.
fn contents_end(image: &[u8]) -> Option<usize> {
    let word = |at: usize| Some(u64::from_le_bytes(image.get(at..at + 8)?.try_into().ok()?));
    let half = |at: usize| Some(u16::from_le_bytes(image.get(at..at + 2)?.try_into().ok()?));
    if !image.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let sections = (word(0x28)?, half(0x3a)?, half(0x3c)?);
    let mut end = sections.0.checked_add(u64::from(sections.1) * u64::from(sections.2))?;
    let (segments, size, count) = (word(0x20)?, half(0x36)?, half(0x38)?);
    for index in 0..u64::from(count) {
        let header = usize::try_from(segments.checked_add(index * u64::from(size))?).ok()?;
        let header_end = header.checked_add(56)?;
        image.get(header..header_end)?;
        let memory_bytes = word(header + 0x28)?.max(word(header + 0x20)?);
        end = end.max(word(header + 0x08)?.checked_add(memory_bytes)?);
    }
    usize::try_from(end).ok().filter(|end| *end <= image.len())
}

/// IDs of the threads of a process in its own PID namespace; `None` if there are too many.
fn inner_tids(pid: u32) -> Option<Vec<u32>> {
    let mut tids = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let tid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        if tids.len() == MAX_THREADS {
            return None;
        }
        if let Ok(status) = ThreadStatus::read(pid, tid) {
            tids.push(status.inner_tid);
        }
    }
    Some(tids)
}
