//! The memory of a probe's process beside the mappings of its program.

use std::fs::File;
use std::io::Read;
use std::ops::Range;

use rustix::mm::{Advice, madvise, mlock};

use crate::Error;

/// Room for the list of what is mapped: reading it must not map more.
const LIST_BYTES: usize = 256 << 10;

/// What this process has mapped outside of the rooms of mappings.
pub(super) struct ProcessMemory<'r> {
    list: String,
    reserved: &'r [Range<usize>],
}

impl ProcessMemory<'_> {
    /// What is mapped now outside of `rooms`.
    pub(super) fn outside(rooms: &[Range<usize>]) -> Result<ProcessMemory<'_>, Error> {
        let mut list = String::with_capacity(LIST_BYTES);
        let read = File::open("/proc/self/maps").and_then(|mut of| of.read_to_string(&mut list));
        read.map_err(|error| Error::call("read what the probe has mapped", error))?;
        Ok(ProcessMemory { list, reserved: rooms })
    }

    /// Locks it. Returns whether all of it is locked. Memory that is mapped later is not, and the
    /// files must not be.
    pub(super) fn lock(&self) -> bool {
        let lock = |(range, _): (Range<usize>, bool)| {
            // SAFETY: locking changes nothing but where pages are.
            unsafe { mlock(range.start as *mut _, range.len()) }.is_ok()
        };
        // Each of them is tried, whatever became of the others.
        self.ranges().filter(|part| !lock(part.clone())).count() == 0
    }

    /// Leaves what may be written of it out of children that are forked from now on. What they
    /// would share until somebody writes would be a fault of whoever does.
    pub(super) fn exclude_from_forks(&self) {
        for (range, _) in self.ranges().filter(|(_, is_private)| *is_private) {
            // SAFETY: nothing changes for this process. No child of it looks there, as
            // `fork_step::fork` says.
            let _ = unsafe { madvise(range.start as *mut _, range.len(), Advice::LinuxDontFork) };
        }
    }

    /// Its parts that can be accessed, with whether each is private and may be written.
    fn ranges(&self) -> impl Iterator<Item = (Range<usize>, bool)> {
        let parts = self.list.lines().filter_map(parse_range);
        parts.filter(|(range, _)| {
            !self.reserved.iter().any(|room| room.start < range.end && range.start < room.end)
        })
    }
}

/// What a line of `/proc/PID/maps` says.
fn parse_range(line: &str) -> Option<(Range<usize>, bool)> {
    let (addresses, rest) = line.split_once(' ')?;
    let (start, end) = addresses.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    // What the kernel maps itself is not memory of the process.
    let is_own = !rest.starts_with("---") && !rest.contains("[v");
    let is_private = rest.starts_with("rw") && rest.as_bytes().get(3) == Some(&b'p');
    is_own.then_some((address(start)?..address(end)?, is_private))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_and_what_the_kernel_maps_are_left_out() {
        let list = "1000-2000 rw-p 00000000 00:00 0   [heap]\n\
                    3000-5000 r--s 00000000 fe:00 12  /a file\n\
                    5000-6000 ---p 00000000 00:00 0\n\
                    6000-8000 rw-s 00000000 00:01 7   /dev/zero (deleted)\n\
                    9000-a000 r-xp 00000000 00:00 0   [vdso]\n";
        let room = 0x2000..0x5000;
        let rooms = std::slice::from_ref(&room);
        let own = ProcessMemory { list: list.to_string(), reserved: rooms };
        let parts: Vec<_> = own.ranges().collect();
        assert_eq!(parts, [(0x1000..0x2000, true), (0x6000..0x8000, false)]);
    }
}
