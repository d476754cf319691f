//! Resident size of mappings, from `/proc/PID/smaps`.

use std::fs;

/// The VMAs of a process with their resident sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Smaps(Vec<SmapsEntry>);

/// One VMA.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SmapsEntry {
    start: u64,
    end: u64,
    /// File offset of the first byte.
    offset_bytes: u64,
    mapped_bytes: u64,
}

impl Smaps {
    /// Reads the smaps of process `pid`; `None` if it is gone or access is denied.
    pub fn read(pid: u32) -> Option<Smaps> {
        // Paths need not be UTF-8.
        let bytes = fs::read(format!("/proc/{pid}/smaps")).ok()?;
        Some(Smaps::parse(&String::from_utf8_lossy(&bytes)))
    }

    fn parse(text: &str) -> Smaps {
        let mut areas: Vec<SmapsEntry> = Vec::new();
        for line in text.lines() {
            if let Some(area) = SmapsEntry::parse_header(line) {
                areas.push(area);
            } else if let Some(rest) = line.strip_prefix("Rss:")
                && let Some(area) = areas.last_mut()
            {
                let kib = rest.trim().trim_end_matches(" kB").parse::<u64>();
                area.mapped_bytes = kib.unwrap_or(0) * 1024;
            }
        }
        Smaps(areas)
    }

    /// Resident bytes of the mapping of `bytes` bytes at `start` with file offset `offset_bytes`.
    /// It may have been split into several VMAs; VMAs at other offsets, mapped there since, do not
    /// count.
    pub fn mapped_bytes(&self, start: u64, bytes: u64, offset_bytes: u64) -> u64 {
        let is_of = |area: &&SmapsEntry| {
            area.start >= start
                && area.end <= start.saturating_add(bytes)
                && area.offset_bytes == offset_bytes.saturating_add(area.start - start)
        };
        self.0.iter().filter(is_of).map(|area| area.mapped_bytes).sum()
    }
}

impl SmapsEntry {
    /// Parses the header line of a VMA: `START-END PERMISSIONS OFFSET DEVICE INODE PATH`.
    fn parse_header(line: &str) -> Option<SmapsEntry> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let hex = |word: &str| u64::from_str_radix(word, 16).ok();
        let (start, end, offset) = (hex(start)?, hex(end)?, hex(words.nth(1)?)?);
        Some(SmapsEntry { start, end, offset_bytes: offset, mapped_bytes: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
1000-3000 r--s 00000000 fe:00 12 /data/a-b file
Size:                  8 kB
Rss:                   4 kB
3000-5000 rw-s 00002000 fe:00 12 /data/a-b file
Rss:                   8 kB
5000-9000 r--s 00000000 fe:00 13 /other
Rss:                  16 kB
VmFlags: rd mr
";

    #[test]
    fn a_mapping_may_be_in_several_areas() {
        let smaps = Smaps::parse(TEXT);
        assert_eq!(smaps.0.len(), 3);
        assert_eq!(smaps.mapped_bytes(0x1000, 0x8000, 0), 12 << 10, "the other file is left out");
        assert_eq!(smaps.mapped_bytes(0x3000, 0x2000, 0x2000), 8 << 10);
        assert_eq!(smaps.mapped_bytes(0x3000, 0x2000, 0), 0);
        assert_eq!(smaps.mapped_bytes(0xf000, 0x2000, 0), 0);
    }
}
