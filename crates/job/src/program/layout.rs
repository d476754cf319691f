//! Layout of a mapping: from touched pages to pages of the file and of the address range.

use filemap_core::address::vma::Advice;
use filemap_core::units::{PageCount, PageIndex};

use super::NamedMapping;
use crate::accesses::Accesses;
use crate::parts::{Mapping, Phase};

impl NamedMapping {
    /// A shared, read-only mapping of the first `pages` pages of the first open file.
    pub fn from_first_pages(pages: PageCount) -> NamedMapping {
        let mapping = Mapping {
            offset: PageIndex(0),
            pages,
            shift: PageCount(0),
            advice: Advice::NORMAL,
            exec: false,
            private: false,
            split: None,
        };
        let (name, segments) = ("mapping".to_string(), Vec::new());
        NamedMapping { name, open: 0, mapping, segments, at_start: true }
    }

    /// Number of pages from its start to the end of its last part.
    pub fn span(&self) -> PageCount {
        let ends = self.segments.iter().map(|segment| segment.start + segment.pages);
        ends.max().unwrap_or(self.mapping.pages)
    }

    /// Its parts, in the order in which accesses number their pages: first page in the file and
    /// length.
    pub fn parts(&self) -> Vec<(PageIndex, PageCount)> {
        if self.segments.is_empty() {
            return vec![(self.mapping.offset, self.mapping.pages)];
        }
        self.segments.iter().map(|segment| (segment.offset, segment.pages)).collect()
    }

    /// The page of the file at page `page` of the address range; `None` in a gap between segments.
    pub fn file_page(&self, page: PageIndex) -> Option<PageIndex> {
        let within = |start: u64, pages: PageCount, offset: PageIndex| {
            let into = page.0.checked_sub(start).filter(|into| *into < pages.0)?;
            Some(offset + PageCount(into))
        };
        if self.segments.is_empty() {
            return within(0, self.mapping.pages, self.mapping.offset);
        }
        let mut segments = self.segments.iter();
        segments.find_map(|part| within(part.start.0, part.pages, part.offset))
    }

    /// Whether writes stay private to the process.
    pub fn is_private(&self) -> bool {
        self.mapping.private || !self.segments.is_empty()
    }

    /// The touched pages, of `page_size` bytes, in order and numbered consecutively through all
    /// parts.
    pub fn touches<'a>(&self, accesses: &'a Phase, page_size: u64) -> Accesses<'a> {
        accesses.touches(self.mapping.pages, page_size)
    }

    /// Maps a page numbered through all parts to its page in the file.
    pub fn file_pages(&self) -> impl Fn(u64) -> PageIndex + use<> {
        let parts = self.parts().into_iter().map(|(start, pages)| (start.0, pages));
        part_lookup(parts.collect())
    }

    /// Whether page `page` of the address range is executable.
    pub fn is_executable(&self, page: PageIndex) -> bool {
        let mut segments = self.segments.iter();
        let holding = segments
            .find(|segment| (segment.start.0..segment.start.0 + segment.pages.0).contains(&page.0));
        match holding {
            Some(segment) => segment.executable,
            None => {
                let split = self.mapping.effective_split();
                let by_split =
                    split.is_some_and(|split| split.makes_executable(page.0 / split.pages.0));
                self.mapping.exec || by_split
            }
        }
    }

    /// Maps a page numbered through all parts to its page in the address range.
    pub fn from_beginning(&self) -> impl Fn(u64) -> PageIndex + use<> {
        let parts = self.segments.iter().map(|segment| (segment.start.0, segment.pages));
        let whole = self.segments.is_empty().then_some((0, self.mapping.pages));
        part_lookup(parts.chain(whole).collect())
    }
}

/// Maps consecutive numbers to pages, given the start and length of each part.
fn part_lookup(parts: Vec<(u64, PageCount)>) -> impl Fn(u64) -> PageIndex {
    let mut pages = 0;
    // Number of pages before the part, start and length.
    let parts = parts.into_iter().map(|(start, of_part)| {
        pages += of_part.0;
        (pages - of_part.0, start)
    });
    let parts: Vec<(u64, u64)> = parts.collect();
    move |page| {
        let part = match parts.as_slice() {
            [only] => only,
            parts => &parts[parts.partition_point(|part| part.0 <= page) - 1],
        };
        PageIndex(part.1 + page - part.0)
    }
}

#[cfg(test)]
mod tests {
    use filemap_core::address::vma::Advice;

    use super::*;
    use crate::elf::Segment;
    use crate::parts::Mapping;

    fn mapping(segments: &[(u64, u64, u64)]) -> NamedMapping {
        let segment = |&(offset, pages, start): &(u64, u64, u64)| Segment {
            offset: PageIndex(offset),
            pages: PageCount(pages),
            start: PageCount(start),
            executable: false,
            writable: false,
        };
        let mapping = Mapping {
            offset: PageIndex(7),
            pages: PageCount(9),
            shift: PageCount(0),
            advice: Advice::NORMAL,
            exec: false,
            private: false,
            split: None,
        };
        let segments = segments.iter().map(segment).collect();
        NamedMapping { name: "m".to_string(), open: 0, mapping, segments, at_start: true }
    }

    #[test]
    fn pages_of_segments_have_gaps_between_them() {
        let named = mapping(&[(3, 3, 10), (9, 1, 0), (5, 2, 20)]);
        let all = |place: &dyn Fn(u64) -> PageIndex| (0..6).map(|page| place(page).0).collect();
        let places: Vec<u64> = all(&named.from_beginning());
        assert_eq!(places, [10, 11, 12, 0, 20, 21]);
        let pages: Vec<u64> = all(&named.file_pages());
        assert_eq!(pages, [3, 4, 5, 9, 5, 6]);
        assert_eq!(named.span(), PageCount(22));
    }

    #[test]
    fn single_part_keeps_its_mapping() {
        let named = mapping(&[]);
        assert_eq!(
            (named.file_pages()(2), named.from_beginning()(2)),
            (PageIndex(9), PageIndex(2))
        );
        assert_eq!(named.span(), PageCount(9));
    }
}
