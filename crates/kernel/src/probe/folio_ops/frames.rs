//! Page frames, and the folios that they belong to.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::memory::Memory;
use crate::Error;

/// Frames of this process's pages.
const PAGEMAP: &str = "/proc/self/pagemap";
/// Flags of each frame.
const KPAGEFLAGS: &str = "/proc/kpageflags";

/// Bit of a pagemap entry: the page is present.
const PRESENT: u64 = 1 << 63;
/// Frame number in a pagemap entry; 0 without the privilege to see it.
const FRAME: u64 = (1 << 55) - 1;

/// KPF_COMPOUND_HEAD: the first frame of a large folio.
const HEAD: u64 = 1 << 15;
/// KPF_COMPOUND_TAIL: another frame of a large folio.
const TAIL: u64 = 1 << 16;

/// The frame of each page; `None` for pages without one.
pub(super) struct Frames(Vec<Option<u64>>);

impl Frames {
    /// Reads the current frames of `memory`; `None` if the kernel does not show them to this
    /// process.
    ///
    /// # Errors
    /// The files cannot be read.
    pub(super) fn read(memory: &Memory) -> Result<Option<Frames>, Error> {
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

    /// Number of aligned folios of `folio_pages` pages; `None` if the kernel does not show folios.
    pub(super) fn folios(&self, folio_pages: usize) -> Option<u64> {
        let flags = File::open(KPAGEFLAGS).ok()?;
        let mut bytes = vec![0u8; (folio_pages + 1) * 8];
        let mut count = 0;
        for pages in self.0.chunks_exact(folio_pages) {
            let Some(first) = pages[0] else { continue };
            let in_a_row = (first..).zip(pages).all(|(frame, page)| *page == Some(frame));
            // Shorter at the last frame.
            let read = flags.read_at(&mut bytes, first * 8).ok()?;
            let words = bytes[..read].as_chunks::<8>().0.iter();
            let words: Vec<u64> = words.map(|word| u64::from_ne_bytes(*word)).collect();
            count += u64::from(in_a_row && is_folio(&words, folio_pages));
        }
        Some(count)
    }

    /// Number of pages with another frame in `later`, and with the same one. Pages without a frame
    /// there count as neither.
    pub(super) fn copied_and_kept(&self, later: &Frames) -> (u64, u64) {
        let (mut copied, mut kept) = (0, 0);
        for (before, after) in self.0.iter().zip(&later.0) {
            copied += u64::from(after.is_some() && before != after);
            kept += u64::from(after.is_some() && before == after);
        }
        (copied, kept)
    }
}

/// Whether the flags of `pages` frames and of the following frame show one folio of `pages` pages.
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
    fn recognizes_folios_by_their_tails() {
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
    fn counts_moved_pages_as_copied() {
        let before = Frames(vec![Some(5), Some(6), Some(7), None]);
        let after = Frames(vec![Some(5), Some(9), None, Some(8)]);
        assert_eq!(before.copied_and_kept(&after), (2, 1));
        assert_eq!(before.copied_and_kept(&before), (0, 3), "no frame is not the same frame");
    }
}
