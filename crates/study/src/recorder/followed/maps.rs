//! What processes map, move and protect.

use filemap_attach::trace_points::{Event as Seen, What};
use filemap_attach::{MappedFile, MappedRange};
use filemap_recording::assembly::{Did, Stored};

use super::Followed;
use super::files::is_read_of;
use super::process::Known;

impl Followed {
    pub(super) fn map(&mut self, seen: &Seen, map: &MappedRange) {
        let called = self.calls.remove(&seen.tid);
        let MappedRange { address, length_bytes: length, offset_bytes, protection, .. } = *map;
        if self.protects(seen, map) {
            return self.tell_if_begun(seen, Did::Protect { address, length, protection });
        }
        self.tell_if_begun(seen, Did::Unmap { address, length });
        let Some(MappedFile { id: file, path }) = &map.file else { return };
        if !self.files.contains_key(file) {
            self.know(*file, path);
        }
        let held = std::mem::take(&mut self.process(seen.pid).held);
        let (own, others): (Vec<_>, Vec<_>) =
            held.into_iter().partition(|held| is_read_of(held, *file));
        self.process(seen.pid).held = others;
        let Some(stored) = self.files.get(file).cloned().flatten() else { return };
        let open = self.open(seen, *file, &stored);
        for read in own {
            if let What::Read { file, first, last } = read.what {
                self.tell_read(&read, file, first, last);
            }
        }
        if let Some(size_bytes) = self.sizes.remove(&(seen.tid, seen.at_ns)) {
            let resized = Stored { size_bytes, ..stored };
            self.files.insert(*file, Some(resized.clone()));
            self.tell(seen, Did::Resize { file: resized });
        }
        let shared = if map.is_shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
        let mut flags = shared.cast_unsigned();
        if let Some(What::CallsMap { flags: called }) = called {
            let of_call = libc::MAP_POPULATE | libc::MAP_LOCKED;
            flags |= called as u32 & of_call.cast_unsigned();
        }
        self.tell(seen, Did::Map { open, address, length, offset_bytes, protection, flags });
        if let Some(advice) = self.single.taken_over(seen.pid, address) {
            self.tell(seen, Did::Madvise { address, length, advice });
        }
    }

    /// Whether what is told as a mapping is another protection of one that is there.
    pub(super) fn protects(&mut self, seen: &Seen, map: &MappedRange) -> bool {
        let MappedRange { address, length_bytes, offset_bytes, protection, .. } = *map;
        let file = map.file.as_ref().map(|file| file.id);
        let maps = &mut self.process(seen.pid).maps;
        let end = address.saturating_add(length_bytes);
        let before = maps.iter().find(|of| of.address <= address && end <= of.end).copied();
        let is_same = |of: &Known| {
            Some(of.file) == file
                && of.protection != protection
                && of.offset_bytes + (address - of.address) == offset_bytes
        };
        if let Some(before) = before.filter(is_same) {
            // Where a part has another protection, the whole is known as it was.
            if (before.address, before.end) == (address, end) {
                maps.retain(|of| of.address != address);
                maps.push(Known { protection, ..before });
            }
            return true;
        }
        maps.retain(|of| of.end <= address || end <= of.address);
        maps.extend(file.map(|file| Known { address, end, offset_bytes, file, protection }));
        false
    }

    pub(super) fn moved(&mut self, seen: &Seen, result: i64) {
        let called = self.calls.remove(&seen.tid);
        if let Some(What::CallsMove { address, length_bytes, new_length_bytes }) = called
            && let Ok(to) = u64::try_from(result)
        {
            let (from, to) = ((address, length_bytes), (to, new_length_bytes));
            self.tell_if_begun(seen, Did::Move { from, to });
        }
    }
}
