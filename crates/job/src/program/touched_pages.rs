//! Number of distinct pages of its files that a program accesses.

use std::ops::Range;

use super::{Job, ProgramStep};

/// Maximum memory for the bitmaps, one bit per page: files up to 2 TiB of 4 KiB pages.
const MAX_BITS_BYTES: u64 = 64 << 20;

/// Pages per word of a bitmap.
const WORD: u64 = u64::BITS as u64;

impl Job {
    /// Number of distinct pages of its files that are accessed. `None` if the files are too large
    /// to keep track, or if a thread is limited by time and may end anywhere in its accesses.
    pub fn used_pages(&self) -> Option<u64> {
        if self.threads.iter().any(|thread| thread.rounds.is_timed()) {
            return None;
        }
        let words = (0..self.files.len()).map(|file| self.file_pages(file).0.div_ceil(WORD));
        let words: Vec<u64> = words.collect();
        if words.iter().sum::<u64>() * WORD / 8 > MAX_BITS_BYTES {
            return None;
        }
        let mut used: Vec<Bits> =
            words.into_iter().map(|words| Bits(vec![0; words as usize])).collect();
        for step in self.steps() {
            if let Some(file) = self.step_file(step) {
                self.add(step, self.file_pages(file).0, &mut used[file]);
            }
        }
        let words = used.iter().flat_map(|bits| &bits.0);
        Some(words.map(|word| u64::from(word.count_ones())).sum())
    }

    /// Marks the pages that `step` accesses in its file of `pages` pages.
    fn add(&self, step: &ProgramStep, pages: u64, used: &mut Bits) {
        match step {
            ProgramStep::Touch { mapping, accesses, .. } => {
                let in_file = self.mappings[*mapping].file_pages();
                for page in self.touches(*mapping, accesses) {
                    let place = in_file(page).0;
                    used.set(place..(place + 1).min(pages));
                }
            }
            ProgramStep::Read { offset_bytes, len_bytes, accesses, .. } => {
                let size = self.page_size();
                for block in self.reads(*len_bytes, accesses) {
                    let start = offset_bytes + block.offset_bytes;
                    let end = (start + block.len_bytes).div_ceil(size);
                    used.set(start / size..end.min(pages));
                }
            }
            _ => {}
        }
    }
}

/// A bitmap of pages.
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, pages: Range<u64>) {
        let mut page = pages.start;
        while page < pages.end {
            let end = pages.end.min((page / WORD + 1) * WORD);
            let mask = u64::MAX >> (WORD - (end - page)) << (page % WORD);
            self.0[(page / WORD) as usize] |= mask;
            page = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::JobFlags;

    fn job(toml: &str) -> Job {
        JobFlags::from_toml(toml).unwrap().validate(None).unwrap()
    }

    #[test]
    fn a_page_counts_once() {
        for (keys, pages) in [
            ("workload = 'first'\naccesses = 9", 1),
            ("workload = 'stride:64'\naccesses = 1000", 4),
            ("workload = 'stride:2'\naccesses = 256", 128),
            ("workload = 'sequential'\naccesses = 1000", 256),
            ("workload = 'read-sequential'\naccesses = 3\nbs = '5000'", 4),
            ("workload = 'read-sequential'\naccesses = 3\nbs = '6k'", 5),
            ("workload = 'read-sequential'\naccesses = 1\nbs = '1m'", 256),
            ("workload = 'sequential'\naccesses = 3\nmap_offset = '512k'", 3),
        ] {
            assert_eq!(
                job(&format!("file_size = '1m'\n{keys}")).used_pages(),
                Some(pages),
                "{keys}"
            );
        }
        let phases = "file_size = '1m'\n[[phase]]\nworkload = 'sequential'\naccesses = 5\n\
                      [[phase]]\nworkload = 'read-sequential'\nbs = '16k'\naccesses = 2\n";
        assert_eq!(job(phases).used_pages(), Some(8));
    }

    #[test]
    fn drawn_pages_are_counted_as_a_set_would() {
        let job = job("workload = 'random'\nfile_size = '8m'\naccesses = 900");
        let phase = job.accesses().next().unwrap();
        let set: BTreeSet<u64> = job.touches(0, phase).collect();
        assert_eq!(job.used_pages(), Some(set.len() as u64));
    }

    #[test]
    fn a_file_of_too_many_pages_is_not_counted() {
        let job = job("workload = 'first'\nfile_size = '1p'\naccesses = 1");
        assert_eq!(job.used_pages(), None);
    }
}
