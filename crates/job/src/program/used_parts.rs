//! The parts of its files and mappings that a program uses.

use std::collections::HashMap;

use super::{Job, ProgramStep};

/// Pages per word of a bitmap.
const WORD: u64 = u64::BITS as u64;

/// A sparse bitmap of pages, by word index.
#[derive(Debug, Default)]
struct PageBitmap(HashMap<u64, u64>);

impl PageBitmap {
    fn add(&mut self, page: u64) {
        *self.0.entry(page / WORD).or_default() |= 1 << (page % WORD);
    }

    fn count(&self) -> u64 {
        self.0.values().map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// The first page, and the number of pages up to the last.
    fn range(&self) -> Option<(u64, u64)> {
        let (first, last) = (self.0.keys().min()?, self.0.keys().max()?);
        let start = first * WORD + u64::from(self.0[first].trailing_zeros());
        let end = last * WORD + WORD - u64::from(self.0[last].leading_zeros());
        Some((start, end - start))
    }
}

/// The used part of a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsedPart {
    /// Number of distinct touched pages.
    pub pages: u64,
    /// First touched page, relative to the mapping.
    pub first: u64,
    /// Number of pages from the first to the last touched page.
    pub span: u64,
}

/// The parts of its files and mappings that a program uses.
#[derive(Debug)]
pub struct UsedParts {
    /// Number of distinct pages used of each file.
    pub files: Vec<u64>,
    /// Used part of each mapping; empty if it is not touched.
    pub mappings: Vec<UsedPart>,
}

impl Job {
    /// The used parts of files and mappings, excluding direct reads.
    pub fn used_parts(&self) -> UsedParts {
        let mut files: Vec<PageBitmap> = self.files.iter().map(|_| PageBitmap::default()).collect();
        let mut mappings: Vec<PageBitmap> =
            self.mappings.iter().map(|_| PageBitmap::default()).collect();
        let size = self.page_size();
        for step in self.steps() {
            match step {
                ProgramStep::Touch { mapping, accesses, .. } => {
                    let named = &self.mappings[*mapping];
                    let file = &mut files[self.opens[named.open].file];
                    let in_file = named.file_pages();
                    for page in self.touches(*mapping, accesses) {
                        mappings[*mapping].add(page);
                        file.add(in_file(page).0);
                    }
                }
                ProgramStep::Read { open, offset_bytes, len_bytes, accesses, .. }
                    if !self.opens[*open].direct =>
                {
                    let file = &mut files[self.opens[*open].file];
                    for block in self.reads(*len_bytes, accesses) {
                        let start = offset_bytes + block.offset_bytes;
                        (start / size..(start + block.len_bytes).div_ceil(size))
                            .for_each(|page| file.add(page));
                    }
                }
                _ => {}
            }
        }
        let part = |pages: &PageBitmap| {
            let (first, span) = pages.range().unwrap_or_default();
            UsedPart { pages: pages.count(), first, span }
        };
        UsedParts {
            files: files.iter().map(PageBitmap::count).collect(),
            mappings: mappings.iter().map(part).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobSpec;

    #[test]
    fn counts_each_page_once_with_its_range() {
        let text = "[[file]]\nname = 'a'\nsize = '1m'\n[[open]]\nname = 'a'\nfile = 'a'\n\
                    [[mapping]]\nname = 'm'\nopen = 'a'\noffset = '16k'\n\
                    [[thread]]\n[[thread.phase]]\nmapping = 'm'\npages = [70, 3, 3, 130]\n\
                    [[thread.phase]]\nopen = 'a'\nbs = '6k'\noffsets = [0, 28672]\n";
        let used = JobSpec::from_toml(text).unwrap().validate(None).unwrap().used_parts();
        assert_eq!(used.mappings, [UsedPart { pages: 3, first: 3, span: 128 }]);
        // Page 7 of the file is page 3 of the mapping.
        assert_eq!(used.files, [3 + 2 + 1]);
    }
}
