//! The recorded mappings of a process by address.

use std::collections::{BTreeMap, HashMap};

use crate::event::MappingPages;

/// A mapping, or a remaining part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MappedPart {
    pub address: u64,
    pub length: u64,
    /// Index of the mapping in the recording.
    pub index: u32,
    /// The page of that mapping at `address`.
    pub first_page: u64,
    /// File offset of `address`, in bytes.
    pub offset_bytes: u64,
    pub open: u32,
    pub protection: u32,
    pub flags: u32,
}

impl MappedPart {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.length)
    }

    /// The part within `start..end`, if any.
    fn cut(&self, start: u64, end: u64, page_bytes: u64) -> Option<MappedPart> {
        let (start, end) = (start.max(self.address), end.min(self.end()));
        let skipped = start.saturating_sub(self.address);
        (start < end).then(|| MappedPart {
            address: start,
            length: end - start,
            first_page: self.first_page + skipped / page_bytes,
            offset_bytes: self.offset_bytes + skipped,
            ..*self
        })
    }
}

/// Parts of mappings, without overlaps.
#[derive(Clone, Debug, Default)]
pub struct MappedSpace {
    by_address: BTreeMap<u64, MappedPart>,
    /// Number of remaining parts of each mapping; a mapping without an entry has one.
    parts: HashMap<u32, usize>,
}

impl MappedSpace {
    /// All parts, by address.
    pub fn all(&self) -> impl Iterator<Item = &MappedPart> {
        self.by_address.values()
    }

    /// Adds a part. No other part overlaps it.
    pub fn add(&mut self, mapped: MappedPart) {
        self.by_address.insert(mapped.address, mapped);
    }

    /// The number of remaining parts of a mapping, which has at least one.
    fn count_parts(&self, index: u32) -> usize {
        self.parts.get(&index).copied().unwrap_or(1)
    }

    /// The part that contains `address`.
    pub fn part_at(&self, address: u64) -> Option<&MappedPart> {
        let (_, mapped) = self.by_address.range(..=address).next_back()?;
        (address < mapped.end()).then_some(mapped)
    }

    /// The index of the mapping at `address`, and the page within the mapping.
    pub fn page_at(&self, address: u64, page_bytes: u64) -> Option<(u32, u64)> {
        let mapped = self.part_at(address)?;
        Some((mapped.index, mapped.first_page + (address - mapped.address) / page_bytes))
    }

    fn overlapping(&self, address: u64, length: u64) -> Vec<MappedPart> {
        let end = address.saturating_add(length);
        let all = self.by_address.range(..end).rev().map(|(_, mapped)| *mapped);
        let mut found: Vec<MappedPart> = all.take_while(|mapped| mapped.end() > address).collect();
        found.reverse();
        found
    }

    /// The pages of each mapping in a range, rounded outwards to whole pages.
    pub fn parts(&self, address: u64, length: u64, page_bytes: u64) -> Vec<(u32, MappingPages)> {
        let start = address / page_bytes * page_bytes;
        let end = address.saturating_add(length);
        let end = end.checked_next_multiple_of(page_bytes).unwrap_or(u64::MAX);
        let found = self.overlapping(start, end - start);
        let cut = found.iter().filter_map(|mapped| mapped.cut(start, end, page_bytes));
        cut.map(|part| {
            let pages = part.length.div_ceil(page_bytes);
            (part.index, MappingPages { first: part.first_page, pages })
        })
        .collect()
    }

    /// Removes a range. Calls `gone` with the index of each mapping without a remaining part.
    pub fn remove(
        &mut self,
        address: u64,
        length: u64,
        page_bytes: u64,
        mut gone: impl FnMut(u32),
    ) {
        let end = address.saturating_add(length);
        for mapped in self.overlapping(address, length) {
            let mut parts = self.count_parts(mapped.index) - 1;
            self.by_address.remove(&mapped.address);
            let before = mapped.cut(mapped.address, address, page_bytes);
            let behind = mapped.cut(end, mapped.end(), page_bytes);
            for left in before.into_iter().chain(behind) {
                parts += 1;
                self.add(left);
            }
            if parts > 1 {
                self.parts.insert(mapped.index, parts);
            } else {
                self.parts.remove(&mapped.index);
            }
            if parts == 0 {
                gone(mapped.index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const PAGE: u64 = 4096;

    /// The mappings with at least one page in the array.
    fn present_mappings(array: &[Option<(u32, u64)>]) -> impl Iterator<Item = u32> {
        array.iter().flatten().map(|(index, _)| *index)
    }

    /// The reference model is an array with the mapping and its page at each address.
    #[test]
    fn random_ranges_are_as_in_an_array() {
        let mut seed = 88_172_645_463_325_252_u64;
        let mut draw = |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % below
        };
        let mut space = MappedSpace::default();
        let mut array: Vec<Option<(u32, u64)>> = vec![None; 64];
        for index in 0..2000 {
            let (first, pages) = (draw(64), 1 + draw(16));
            let pages = pages.min(64 - first);
            let (address, length) = (first * PAGE, pages * PAGE);
            let mut gone = Vec::new();
            space.remove(address, length, PAGE, |index| gone.push(index));
            let was: HashSet<u32> = present_mappings(&array).collect();
            array[first as usize..(first + pages) as usize].fill(None);
            let left: HashSet<u32> = present_mappings(&array).collect();
            assert_eq!(HashSet::from_iter(gone), &was - &left, "step {index}");
            let is_mapped = draw(2) == 0;
            if is_mapped {
                space.add(MappedPart { address, length, index, ..MappedPart::default() });
            }
            for page in first..first + pages {
                array[page as usize] = is_mapped.then_some((index, page - first));
            }
            for (page, expected) in array.iter().enumerate() {
                let address = page as u64 * PAGE + draw(PAGE);
                assert_eq!(space.page_at(address, PAGE), *expected, "step {index}, page {page}");
            }
            let (first, pages) = (draw(60), 1 + draw(4));
            let parts = space.parts(first * PAGE + 1, pages * PAGE - 1, PAGE);
            let found: Vec<(u32, u64)> = parts
                .iter()
                .flat_map(|(index, part)| {
                    (part.first..part.first + part.pages).map(|page| (*index, page))
                })
                .collect();
            let expected: Vec<(u32, u64)> =
                array[first as usize..(first + pages) as usize].iter().copied().flatten().collect();
            assert_eq!(found, expected, "step {index}");
        }
    }
}
