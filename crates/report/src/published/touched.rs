//! How much a job touches: the least that it could read.

use std::ops::Range;

use filemap_job::Job;

/// Pages of the mapping that `job` accesses at all, each counted once.
pub fn touched_pages(job: &Job) -> u64 {
    let page_size = job.page_size();
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for phase in &job.phases {
        if phase.is_read() {
            ranges.extend(job.reads(phase).map(|block| {
                let end = block.offset_bytes + block.len_bytes;
                block.offset_bytes / page_size..end.div_ceil(page_size)
            }));
        } else {
            ranges.extend(job.accesses(phase).map(|page| page..page + 1));
        }
    }
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut pages, mut counted) = (0, 0);
    for range in ranges {
        let from = range.start.max(counted);
        pages += range.end.saturating_sub(from);
        counted = counted.max(range.end);
    }
    pages
}

#[cfg(test)]
mod tests {
    use filemap_job::JobSpec;

    use super::*;

    #[test]
    fn each_page_counts_once() {
        for (job, pages) in [
            ("workload = 'sequential'\naccesses = 100", 100),
            ("workload = 'sequential'\naccesses = 1000", 256),
            ("workload = 'first'\naccesses = 9", 1),
            ("workload = 'stride:2'\naccesses = 256", 128),
            ("workload = 'read-sequential'\nbs = '6k'\naccesses = 3", 5),
        ] {
            let spec = JobSpec::from_toml(&format!("file_size = '1m'\n{job}")).unwrap();
            assert_eq!(touched_pages(&spec.validate(None).unwrap()), pages, "{job}");
        }
    }
}
