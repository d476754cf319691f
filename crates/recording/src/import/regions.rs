//! The address space of a process, as far as a trace tells of it.

use std::collections::BTreeMap;

/// Which mapping lies at which addresses.
#[derive(Clone, Debug, Default)]
pub struct Regions {
    /// By its first address: the address after it, and the mapping; none where something else
    /// than a file is mapped.
    regions: BTreeMap<u64, (u64, Option<usize>)>,
}

impl Regions {
    /// Something is mapped from `start` up to `end`, in place of what was there.
    pub fn map(&mut self, start: u64, end: u64, mapping: Option<usize>) {
        let before = self.regions.range(..end).rev();
        let hit: Vec<(u64, u64, Option<usize>)> = before
            .take_while(|(_, (behind, _))| *behind > start)
            .map(|(first, (behind, mapping))| (*first, *behind, *mapping))
            .collect();
        for (first, behind, mapping) in hit {
            self.regions.remove(&first);
            if first < start {
                self.regions.insert(first, (start, mapping));
            }
            if behind > end {
                self.regions.insert(end, (behind, mapping));
            }
        }
        self.regions.insert(start, (end, mapping));
    }

    /// The mapping of a file at `address`.
    pub fn at(&self, address: u64) -> Option<usize> {
        let (_, (end, mapping)) = self.regions.range(..=address).next_back()?;
        mapping.filter(|_| address < *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_later_is_on_top() {
        let mut regions = Regions::default();
        regions.map(10, 50, Some(1));
        regions.map(60, 70, Some(2));
        regions.map(20, 30, Some(3));
        regions.map(45, 65, None);
        let at = |address| regions.at(address);
        assert_eq!(
            [9, 10, 19, 20, 29, 30, 44].map(at),
            [None, Some(1), Some(1), Some(3), Some(3), Some(1), Some(1)]
        );
        assert_eq!([45, 64, 65, 69, 70].map(at), [None, None, Some(2), Some(2), None]);
        regions.map(0, 100, Some(4));
        assert_eq!(
            [0, 25, 99, 100].map(|address| regions.at(address)),
            [Some(4), Some(4), Some(4), None]
        );
    }
}
