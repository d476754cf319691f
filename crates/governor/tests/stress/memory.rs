//! What the program does with its memory and its files.

use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::ptr;

use libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_FIXED, MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE};

use crate::program::{Area, FILE_BYTES, Program};
use crate::support::mapping::PAGE_BYTES;

const FILE_PAGES: usize = FILE_BYTES as usize / PAGE_BYTES;

/// The program has no more areas at once.
const MOST_AREAS: usize = 40;

impl Area {
    fn bytes(&self) -> usize {
        self.pages * PAGE_BYTES
    }

    /// Pages of it from `first` on.
    fn part(self, first: usize, pages: usize) -> Area {
        Area { start: self.start.wrapping_add(first * PAGE_BYTES), pages, ..self }
    }
}

impl Program {
    fn any_file(&mut self) -> RawFd {
        match self.below(self.files.len() + 2) {
            number if number < self.files.len() => self.files[number].as_raw_fd(),
            _ => self.kept.as_raw_fd(),
        }
    }

    /// Maps a part of a file, at `place` if there is one.
    fn mapped(&mut self, place: Option<Area>) -> Option<Area> {
        let descriptor = self.any_file();
        let offset = self.below(FILE_PAGES - 1);
        let most = if self.below(3) == 0 { 12 } else { FILE_PAGES - offset };
        let pages = place.map_or(1 + self.below(most), |place| place.pages);
        let is_private = self.below(3) == 0;
        let flags = if is_private { MAP_PRIVATE } else { MAP_SHARED };
        let fixed = if place.is_some() { MAP_FIXED } else { 0 };
        let at = place.map_or(ptr::null_mut(), |place| place.start);
        let offset_bytes = (offset * PAGE_BYTES) as i64;
        // SAFETY: the place is the program's own, or the kernel chooses a free one.
        let start = unsafe {
            let bytes = pages * PAGE_BYTES;
            libc::mmap(at.cast(), bytes, PROT_READ, flags | fixed, descriptor, offset_bytes)
        };
        self.told(if start == MAP_FAILED { -1 } else { 0 });
        let start = start.cast();
        let area = Area { start, pages, is_writable: false, is_readable: true };
        (start.cast() != MAP_FAILED).then_some(area)
    }

    pub fn map(&mut self) {
        if self.areas.len() < MOST_AREAS
            && let Some(area) = self.mapped(None)
        {
            self.areas.push(area);
        }
    }

    /// Maps something in the place of an area.
    pub fn map_over(&mut self) {
        if let Some(number) = self.any_area()
            && let Some(area) = self.mapped(Some(self.areas[number]))
        {
            self.areas[number] = area;
        }
    }

    fn munmap(&mut self, area: Area) {
        // SAFETY: the area is the program's, and forgotten.
        let result = unsafe { libc::munmap(area.start.cast(), area.bytes()) };
        self.told(result.into());
    }

    pub fn unmap(&mut self) {
        if let Some(number) = self.any_area() {
            let area = self.areas.swap_remove(number);
            self.munmap(area);
        }
    }

    /// Unmaps a part. What is before and behind it stays.
    pub fn unmap_middle(&mut self) {
        let Some(number) = self.any_area() else { return };
        let area = self.areas[number];
        let first = self.below(area.pages);
        let pages = 1 + self.below(area.pages - first);
        self.areas.swap_remove(number);
        self.munmap(area.part(first, pages));
        let behind = first + pages;
        let parts = [area.part(0, first), area.part(behind, area.pages - behind)];
        self.areas.extend(parts.into_iter().filter(|part| part.pages > 0));
    }

    /// Makes an area longer or shorter. It may move.
    pub fn grow(&mut self) {
        let Some(number) = self.any_area() else { return };
        let area = self.areas[number];
        let pages = 1 + self.below(2 * area.pages);
        // SAFETY: the area is the program's; what is returned replaces it.
        let moved = unsafe {
            let (from, to) = (area.bytes(), pages * PAGE_BYTES);
            libc::mremap(area.start.cast(), from, to, libc::MREMAP_MAYMOVE)
        };
        self.told(if moved == MAP_FAILED { -1 } else { 0 });
        if moved != MAP_FAILED {
            self.areas[number] = Area { start: moved.cast(), pages, ..area };
        }
    }

    /// Moves a part of an area, or all of it, to a place that was reserved.
    pub fn relocate(&mut self) {
        let Some(number) = self.any_area() else { return };
        let area = self.areas[number];
        let first = self.below(area.pages);
        let part = area.part(first, 1 + self.below(area.pages - first));
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: the kernel chooses the place, and the part is the program's.
        let moved = unsafe {
            let reserved = MAP_PRIVATE | MAP_ANONYMOUS;
            let place = libc::mmap(ptr::null_mut(), part.bytes(), 0, reserved, -1, 0);
            let moved = libc::mremap(part.start.cast(), part.bytes(), part.bytes(), flags, place);
            if moved == MAP_FAILED {
                libc::munmap(place, part.bytes());
            }
            moved
        };
        self.told(if moved == MAP_FAILED { -1 } else { 0 });
        if moved == MAP_FAILED {
            return;
        }
        self.areas.swap_remove(number);
        let behind = first + part.pages;
        let parts = [area.part(0, first), area.part(behind, area.pages - behind)];
        self.areas.extend(parts.into_iter().filter(|part| part.pages > 0));
        self.areas.push(Area { start: moved.cast(), ..part });
    }

    fn mprotect(&mut self, number: usize, protection: i32) -> bool {
        let area = self.areas[number];
        // SAFETY: the area is the program's.
        let result = unsafe { libc::mprotect(area.start.cast(), area.bytes(), protection) };
        self.told(result.into());
        result == 0
    }

    /// Takes the right to read away, or gives it back.
    pub fn protect(&mut self) {
        let Some(number) = self.any_area() else { return };
        let is_readable = self.areas[number].is_readable;
        if self.mprotect(number, if is_readable { libc::PROT_NONE } else { PROT_READ }) {
            let area = &mut self.areas[number];
            (area.is_readable, area.is_writable) = (!is_readable, false);
        }
    }

    pub fn protect_for_writing(&mut self) {
        let Some(number) = self.any_area() else { return };
        if self.mprotect(number, PROT_READ | PROT_WRITE) {
            let area = &mut self.areas[number];
            (area.is_readable, area.is_writable) = (true, true);
        }
    }

    /// Writes to a page that may be written.
    pub fn write(&mut self) {
        let Some(area) = self.areas.iter().copied().find(|area| area.is_writable) else { return };
        for _ in 0..4 {
            let (page, word) = (self.below(area.pages), self.draws.next());
            // SAFETY: the page is the program's, and SIGBUS is handled.
            unsafe {
                let place = area.start.add(page * PAGE_BYTES);
                // A page behind the end of a file becomes one that cannot be written.
                if place.cast::<u64>().read_volatile() != 0 {
                    place.cast::<u64>().write_volatile(word | 1);
                }
            }
        }
    }

    pub fn advise(&mut self) {
        let Some(number) = self.any_area() else { return };
        let area = self.areas[number];
        let advice = [
            libc::MADV_NORMAL,
            libc::MADV_RANDOM,
            libc::MADV_SEQUENTIAL,
            libc::MADV_WILLNEED,
            libc::MADV_DONTNEED,
            libc::MADV_COLD,
            libc::MADV_PAGEOUT,
            libc::MADV_DONTFORK,
            libc::MADV_DOFORK,
        ];
        let advice = advice[self.below(advice.len())];
        // A child that forks later is not to miss an area.
        let advice = if advice == libc::MADV_DONTFORK { libc::MADV_DOFORK } else { advice };
        let first = self.below(area.pages);
        let part = area.part(first, area.pages - first);
        // SAFETY: it is the program's; what MADV_DONTNEED loses is lost each time.
        let result = unsafe { libc::madvise(part.start.cast(), part.bytes(), advice) };
        self.told(result.into());
    }

    pub fn lock(&mut self) {
        let Some(number) = self.any_area() else { return };
        let part = self.areas[number];
        let part = part.part(0, part.pages.min(16));
        // SAFETY: the part is the program's.
        let results = unsafe {
            let locked = libc::mlock(part.start.cast(), part.bytes());
            [locked, libc::munlock(part.start.cast(), part.bytes())]
        };
        results.into_iter().for_each(|result| self.told(result.into()));
    }

    /// Writes an area to a pipe, from where it is.
    pub fn send(&mut self) {
        let Some(number) = self.any_area() else { return };
        let area = self.areas[number];
        let mut pipe = [0; 2];
        let mut copy = vec![0_u8; 40_000];
        // SAFETY: there is room for two descriptors and for what is read.
        let results = unsafe {
            libc::pipe(pipe.as_mut_ptr());
            let bytes = area.bytes().min(copy.len());
            let written = libc::write(pipe[1], area.start.cast(), bytes);
            let read = libc::fcntl(pipe[0], libc::F_SETFL, libc::O_NONBLOCK);
            let got = libc::read(pipe[0], copy.as_mut_ptr().cast(), copy.len());
            pipe.iter().for_each(|&end| assert_eq!(libc::close(end), 0));
            [written as i64, i64::from(read), got as i64]
        };
        self.digest.add(results[0].cast_unsigned());
        self.digest.add(results[2].cast_unsigned());
        copy.chunks_exact(512).for_each(|part| self.digest.add(part[0].into()));
    }

    fn any_own_file(&mut self) -> usize {
        self.below(self.files.len())
    }

    pub fn truncate(&mut self) {
        let number = self.any_own_file();
        let bytes = self.draws.below(FILE_BYTES);
        self.files[number].set_len(bytes).expect("a file can shrink");
    }

    pub fn lengthen(&mut self) {
        let number = self.any_own_file();
        let bytes = FILE_BYTES + self.draws.below(FILE_BYTES / 4);
        self.files[number].set_len(bytes).expect("a file can grow");
    }

    pub fn overwrite(&mut self) {
        let number = self.any_own_file();
        let offset = self.draws.below(FILE_BYTES);
        let text = self.draws.next().to_ne_bytes().repeat(600);
        let written = self.files[number].write_at(&text, offset).expect("a file can be written");
        self.digest.add(written as u64);
    }

    /// Opens a file again, or a new one of the same name.
    pub fn reopen(&mut self) {
        let number = self.any_own_file();
        let path = self.directory.join(number.to_string());
        if self.below(2) == 0 {
            let _ = std::fs::remove_file(&path);
            std::fs::write(&path, vec![number as u8 + 1; 1 << 20]).expect("there is room");
        }
        self.files[number] = crate::program::open(&path);
        self.digest.add(self.files[number].as_raw_fd() as u64);
    }

    /// Numbers of new descriptors, and what closing says of all that are not open.
    pub fn descriptors(&mut self) {
        // SAFETY: the copies are closed again, and what is not open cannot be closed.
        let closed = unsafe {
            let copy = libc::dup(0);
            self.digest.add(copy as u64);
            libc::close(copy);
            (200..1024).filter(|&number| libc::close(number) == 0).count()
        };
        self.digest.add(closed as u64);
    }
}
