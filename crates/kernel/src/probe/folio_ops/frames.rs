//! Which frames hold pages, and what folios these are of.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::memory::Memory;
use crate::Error;

/// Where the kernel tells the frame of each page of this process, and the flags of each frame.
const PAGEMAP: &str = "/proc/self/pagemap";
const FLAGS: &str = "/proc/kpageflags";

/// A page has a frame.
const PRESENT: u64 = 1 << 63;
/// The number of the frame; 0 for who may not know.
const FRAME: u64 = (1 << 55) - 1;

/// The first frame of a folio of several, and the others.
const HEAD: u64 = 1 << 15;
const TAIL: u64 = 1 << 16;

/// The frame of each page of a memory; none where a page has none.
pub(super) struct Frames(Vec<Option<u64>>);

impl Frames {
    /// Those of `memory` now; nothing where the kernel does not tell them, or not this process.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn of(memory: &Memory) -> Result<Option<Frames>, Error> {
        let path = Path::new(PAGEMAP);
        let failed = |error| Error::os("read", path, error);
        let mut bytes = vec![0u8; memory.pages() * 8];
        let pagemap = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            pagemap => pagemap.map_err(failed)?,
        };
        pagemap.read_exact_at(&mut bytes, memory.first_page() * 8).map_err(failed)?;
        let entries = bytes.as_chunks::<8>().0.iter().map(|entry| u64::from_ne_bytes(*entry));
        let frame = |entry: u64| (entry & PRESENT != 0).then_some(entry & FRAME);
        let frames: Vec<Option<u64>> = entries.map(frame).collect();
        let hidden = frames.iter().all(|&frame| frame.is_none_or(|frame| frame == 0));
        Ok((!hidden).then_some(Frames(frames)))
    }

    /// How many folios of `folio_pages` pages it has, each at a place of its own; nothing where
    /// the kernel does not tell what folios there are.
    pub(super) fn folios(&self, folio_pages: usize) -> Option<u64> {
        let flags = File::open(FLAGS).ok()?;
        let mut bytes = vec![0u8; (folio_pages + 1) * 8];
        let mut count = 0;
        for pages in self.0.chunks_exact(folio_pages) {
            let Some(first) = pages[0] else { continue };
            let in_a_row = (first..).zip(pages).all(|(frame, page)| *page == Some(frame));
            // After the last frame there is nothing.
            let read = flags.read_at(&mut bytes, first * 8).ok()?;
            let words = bytes[..read].as_chunks::<8>().0.iter();
            let words: Vec<u64> = words.map(|word| u64::from_ne_bytes(*word)).collect();
            count += u64::from(in_a_row && is_folio(&words, folio_pages));
        }
        Some(count)
    }

    /// How many pages have another frame in `later`, and how many the same. A page that has none
    /// there is neither.
    pub(super) fn copied_and_kept(&self, later: &Frames) -> (u64, u64) {
        let (mut copied, mut kept) = (0, 0);
        for (before, after) in self.0.iter().zip(&later.0) {
            copied += u64::from(after.is_some() && before != after);
            kept += u64::from(after.is_some() && before == after);
        }
        (copied, kept)
    }
}

/// Whether the flags are those of one folio of `pages` pages, and of the frame after it.
fn is_folio(flags: &[u64], pages: usize) -> bool {
    let Some((&first, others)) = flags.split_first() else { return false };
    if pages == 1 {
        return first & (HEAD | TAIL) == 0;
    }
    let tails = others.iter().take_while(|&&flags| flags & TAIL != 0).count();
    first & HEAD != 0 && tails + 1 == pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folio_is_as_long_as_its_tails_go() {
        assert!(is_folio(&[0, HEAD], 1) && is_folio(&[0], 1));
        assert!(!is_folio(&[HEAD, TAIL], 1) && !is_folio(&[TAIL, 0], 1));
        assert!(is_folio(&[HEAD, TAIL, TAIL, TAIL, HEAD], 4));
        assert!(is_folio(&[HEAD, TAIL, TAIL, TAIL], 4), "the last frame of the machine");
        assert!(!is_folio(&[HEAD, TAIL, TAIL, TAIL, TAIL], 4), "a larger one");
        assert!(!is_folio(&[HEAD, TAIL, 0, TAIL, 0], 4), "smaller ones");
        assert!(!is_folio(&[TAIL, TAIL, TAIL, TAIL, 0], 4), "the middle of one");
        assert!(!is_folio(&[], 4));
    }

    #[test]
    fn what_moved_was_copied() {
        let before = Frames(vec![Some(5), Some(6), Some(7), None]);
        let after = Frames(vec![Some(5), Some(9), None, Some(8)]);
        assert_eq!(before.copied_and_kept(&after), (2, 1));
        assert_eq!(before.copied_and_kept(&before), (0, 3), "no frame is not the same frame");
    }
}
