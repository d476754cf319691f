//! Handles mmap, mremap and mprotect events of tracked processes.

use filemap_attach::tracepoints::{TraceEvent, TraceEventKind};
use filemap_attach::{MappedFile, MappedRange};
use filemap_recording::assembly::{Action, ObservedFile};

use super::process::TrackedMapping;
use super::{LOCKED, POPULATING_FLAGS, ProcessTracker};
use crate::recorder::file_filter::ProcessFile;

/// Flags of mlockall(2).
const MCL_CURRENT: u64 = libc::MCL_CURRENT.cast_unsigned() as u64;
const MCL_FUTURE: u64 = libc::MCL_FUTURE.cast_unsigned() as u64;
const MCL_ONFAULT: u64 = libc::MCL_ONFAULT.cast_unsigned() as u64;

impl ProcessTracker {
    /// mlock(2) reads the pages of a range as MADV_POPULATE_READ does. It also keeps them mapped,
    /// so that later touches are no faults. Without `populates` they are: only touches of pages
    /// that were evicted before are missing.
    pub(super) fn on_lock(
        &mut self,
        event: &TraceEvent,
        (address, length): (u64, u64),
        populates: bool,
    ) {
        if !populates {
            return;
        }
        let end = address.saturating_add(length);
        let maps = self.process(event.pid).maps.clone();
        let is_recorded =
            |map: &&TrackedMapping| matches!(self.files.get(&map.file), Some(Some(_)));
        let bytes =
            |map: &TrackedMapping| end.min(map.end).saturating_sub(address.max(map.address));
        let locked: u64 = maps.iter().filter(is_recorded).map(bytes).sum();
        self.locked_pages += locked.div_ceil(self.page_bytes);
        let advice = libc::MADV_POPULATE_READ.cast_unsigned();
        self.add_if_recorded(event, Action::Madvise { address, length, advice });
    }

    pub(super) fn on_lock_all(&mut self, event: &TraceEvent, flags: u64) {
        let populates = flags & MCL_ONFAULT == 0;
        if flags & MCL_CURRENT != 0 {
            self.on_lock(event, (0, u64::MAX), populates);
        }
        self.process(event.pid).locks_future = flags & MCL_FUTURE != 0 && populates;
    }

    pub(super) fn on_map(&mut self, event: &TraceEvent, map: &MappedRange) {
        let call = self.calls.remove(&event.tid);
        let MappedRange { address, length_bytes: length, offset_bytes, protection, .. } = *map;
        if self.is_mprotect(event, map) {
            return self.add_if_recorded(event, Action::Protect { address, length, protection });
        }
        self.add_if_recorded(event, Action::Unmap { address, length });
        let Some(MappedFile { id: file, path }) = &map.file else { return };
        if !self.files.contains_key(file) {
            self.add_file(*file, &ProcessFile::find(event.pid, *file, path, Some(address)));
        }
        self.add_deferred_reads(event.pid, *file);
        let Some(stored) = self.files.get(file).cloned().flatten() else { return };
        let open = self.open_number(event, &stored);
        if let Some(size_bytes) = self.sizes.remove(&(event.tid, event.at_ns)) {
            let resized = ObservedFile { size_bytes, ..stored };
            self.files.insert(*file, Some(resized.clone()));
            self.add(event, Action::Resize { file: resized });
        }
        let shared = if map.is_shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
        let mut flags = shared.cast_unsigned();
        if let Some(TraceEventKind::MmapCall { flags: call_flags }) = call {
            flags |= (call_flags & POPULATING_FLAGS) as u32;
        }
        if self.process(event.pid).locks_future {
            flags |= LOCKED;
        }
        if flags & LOCKED != 0 {
            self.locked_pages += length.div_ceil(self.page_bytes);
        }
        self.add(event, Action::Map { open, address, length, offset_bytes, protection, flags });
        if let Some(advice) = self.single.take_previous_advice(event.pid, address) {
            self.add(event, Action::Madvise { address, length, advice });
        }
    }

    /// Whether a mapping event is mprotect(2) of a known mapping, which the kernel reports in the
    /// same way as mmap(2).
    fn is_mprotect(&mut self, event: &TraceEvent, map: &MappedRange) -> bool {
        let MappedRange { address, length_bytes, offset_bytes, protection, .. } = *map;
        let file = map.file.as_ref().map(|file| file.id);
        let maps = &mut self.process(event.pid).maps;
        let end = address.saturating_add(length_bytes);
        let known = maps.iter().find(|known| known.address <= address && end <= known.end);
        let is_same_mapping = |known: &TrackedMapping| {
            Some(known.file) == file
                && known.protection != protection
                && known.offset_bytes + (address - known.address) == offset_bytes
        };
        if let Some(known) = known.copied().filter(is_same_mapping) {
            // mprotect(2) of a part leaves the entry of the whole mapping unchanged.
            if (known.address, known.end) == (address, end) {
                maps.retain(|other| other.address != address);
                maps.push(TrackedMapping { protection, ..known });
            }
            return true;
        }
        maps.retain(|other| other.end <= address || end <= other.address);
        maps.extend(file.map(|file| TrackedMapping {
            address,
            end,
            offset_bytes,
            file,
            protection,
        }));
        false
    }

    pub(super) fn on_mremap_return(&mut self, event: &TraceEvent, result: i64) {
        let call = self.calls.remove(&event.tid);
        if let Some(TraceEventKind::MremapCall { address, length_bytes, new_length_bytes }) = call
            && let Ok(to) = u64::try_from(result)
        {
            let (from, to) = ((address, length_bytes), (to, new_length_bytes));
            self.add_if_recorded(event, Action::Move { from, to });
        }
    }
}
