//! The mappings of one process.

use std::collections::BTreeMap;

use filemap_attach::MappedRange;

use crate::range::{GovernedRange, RangeState};
use crate::request::AdviceOrigin;
use crate::statistics::{MappingState, MappingStatistics, ProcessStatistics};

/// Ended mappings of one process reported individually; the rest are summed up.
const MAX_REPORTED_MAPPINGS: usize = 64;

/// A process with mappings that are governed or requested.
#[derive(Debug)]
pub struct GovernedProcess {
    /// Known mappings by address, without overlaps.
    ranges: BTreeMap<u64, GovernedRange>,
    pub statistics: ProcessStatistics,
    /// `/proc/PID/maps` is not read again before this time.
    pub no_maps_until_ns: u64,
    /// When mappings that could not be advised are retried; `None` without such mappings.
    pub retry_at_ns: Option<u64>,
    /// Faults on pending mappings trigger no attempt before this time.
    pub no_retry_until_ns: u64,
    /// The process was forked, and its inherited mappings are not in the journal yet.
    pub is_new_copy: bool,
}

impl GovernedProcess {
    /// Image number `image` of process `pid`, without mappings.
    pub fn new(pid: u32, image: u32) -> GovernedProcess {
        let statistics = ProcessStatistics { pid, image, is_running: true, ..Default::default() };
        GovernedProcess {
            ranges: BTreeMap::new(),
            statistics,
            no_maps_until_ns: 0,
            retry_at_ns: None,
            no_retry_until_ns: 0,
            is_new_copy: false,
        }
    }

    pub fn ranges(&self) -> impl Iterator<Item = &GovernedRange> {
        self.ranges.values()
    }

    pub fn ranges_mut(&mut self) -> impl Iterator<Item = &mut GovernedRange> {
        self.ranges.values_mut()
    }

    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The mapping that contains `address`.
    pub fn range_at(&mut self, address: u64) -> Option<&mut GovernedRange> {
        let (_, range) = self.ranges.range_mut(..=address).next_back()?;
        (address < range.mapped.end()).then_some(range)
    }

    /// Whether a known mapping overlaps `mapped`.
    pub fn overlaps(&self, mapped: &MappedRange) -> bool {
        let before_end = self.ranges.range(..mapped.end()).next_back();
        before_end.is_some_and(|(_, range)| range.mapped.end() > mapped.address)
    }

    /// The mappings whose advice has to be restored.
    pub fn restorable(&self) -> impl Iterator<Item = &MappedRange> {
        let is_given = |range: &&GovernedRange| match range.state {
            RangeState::Governed(origin) => origin.is_restored(),
            _ => false,
        };
        self.ranges.values().filter(is_given).map(|range| &range.mapped)
    }

    /// Adds a mapping. No known mapping overlaps it.
    pub fn insert(&mut self, range: GovernedRange) {
        self.ranges.insert(range.mapped.address, range);
    }

    /// Removes the mapping that begins at `address`.
    pub fn remove(&mut self, address: u64) -> Option<GovernedRange> {
        let range = self.ranges.remove(&address)?;
        self.report_ended(&range);
        Some(range)
    }

    /// Removes the address range `start..end`, as mmap(2) over it does. Returns the affected
    /// mappings with their remaining parts.
    pub fn cut(&mut self, start: u64, end: u64) -> Vec<CutRange> {
        let is_hit = |range: &GovernedRange| range.mapped.end() > start;
        let hit = self.ranges.range(..end).rev().map(|(_, range)| range);
        let hit: Vec<u64> = hit.take_while(|r| is_hit(r)).map(|r| r.mapped.address).collect();
        let mut cuts = Vec::new();
        for address in hit {
            let Some(range) = self.ranges.remove(&address) else { continue };
            let whole = range.clone();
            let left: Vec<GovernedRange> =
                range.without(start, end).into_iter().flatten().collect();
            if left.is_empty() {
                self.report_ended(&whole);
            }
            left.iter().for_each(|piece| self.insert(piece.clone()));
            cuts.push(CutRange { whole, left });
        }
        cuts
    }

    /// The statistics so far, with the state of all current mappings set to `state` if given.
    pub fn statistics(&self, page_bytes: u64, state: Option<MappingState>) -> ProcessStatistics {
        let mut statistics = self.statistics.clone();
        for range in self.ranges.values() {
            let own = match range.state {
                RangeState::Governed(AdviceOrigin::Program) => MappingState::OwnAdvice,
                RangeState::Governed(AdviceOrigin::Watched) => MappingState::Watched,
                RangeState::Governed(AdviceOrigin::Left) => MappingState::Restored,
                RangeState::Governed(_) => MappingState::Governed,
                _ => continue,
            };
            statistics.mappings.push(mapping_statistics(range, state.unwrap_or(own), page_bytes));
        }
        statistics
    }

    fn report_ended(&mut self, range: &GovernedRange) {
        if !matches!(range.state, RangeState::Governed(_)) {
            return;
        }
        let one = mapping_statistics(range, MappingState::Ended, page_bytes());
        if self.statistics.mappings.len() < MAX_REPORTED_MAPPINGS {
            self.statistics.mappings.push(one);
            return;
        }
        match self.statistics.mappings.last_mut().filter(|last| last.path.is_none()) {
            Some(sum) => sum.add(&one),
            None => self.statistics.mappings.push(one.without_place()),
        }
    }
}

/// A mapping that was replaced, in whole or in part.
#[derive(Debug)]
pub struct CutRange {
    pub whole: GovernedRange,
    /// Its remaining parts.
    pub left: Vec<GovernedRange>,
}

fn mapping_statistics(
    range: &GovernedRange,
    state: MappingState,
    page_bytes: u64,
) -> MappingStatistics {
    let path = range.mapped.file.as_ref().map(|file| file.path.clone());
    MappingStatistics {
        path: Some(path.unwrap_or_default()),
        mappings: 1,
        state,
        address: range.mapped.address,
        length_bytes: range.mapped.length_bytes,
        offset_bytes: range.mapped.offset_bytes,
        major_faults: range.counts.major_faults,
        early_faults: range.counts.early_faults,
        asked_bytes: range.counts.pages * page_bytes,
        calls: range.counts.calls,
        stopped_ns: range.counts.stopped_ns,
    }
}

/// The page size of this machine.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::tests::mapped;

    fn governed(address: u64, length: u64) -> GovernedRange {
        let mut range = GovernedRange::new(mapped(address, length, 1), 1);
        range.state = RangeState::Governed(AdviceOrigin::Governor { stopped_ns: 0 });
        range
    }

    #[test]
    fn new_mapping_cuts_older_ones() {
        let mut process = GovernedProcess::new(7, 0);
        for start in [0x10000, 0x20000, 0x30000] {
            process.insert(governed(start, 0x8000));
        }
        assert!(process.range_at(0x17fff).is_some() && process.range_at(0x18000).is_none());
        let cuts = process.cut(0x14000, 0x22000);
        assert_eq!(cuts.len(), 2);
        let all: Vec<_> =
            process.ranges().map(|own| (own.mapped.address, own.mapped.end())).collect();
        assert_eq!(all, [(0x10000, 0x14000), (0x22000, 0x28000), (0x30000, 0x38000)]);
        process.cut(0, u64::MAX);
        assert_eq!((process.len(), process.statistics.mappings.len()), (0, 3));
    }

    #[test]
    fn many_ended_mappings_are_summed() {
        let mut process = GovernedProcess::new(7, 0);
        for _ in 0..MAX_REPORTED_MAPPINGS + 10 {
            process.insert(governed(0x10000, 0x8000));
            process.cut(0x10000, 0x18000);
        }
        let mappings = process.statistics(4096, None).mappings;
        assert_eq!(mappings.len(), MAX_REPORTED_MAPPINGS + 1);
        assert_eq!(
            mappings.iter().map(|own| own.mappings).sum::<u64>(),
            MAX_REPORTED_MAPPINGS as u64 + 10
        );
    }
}
