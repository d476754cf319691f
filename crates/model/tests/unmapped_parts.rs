//! Unmapped parts of a mapping: the rest are separate VMAs.

use crate::support::both_caches::{agreed_on_random, valid};
use filemap_job::program::Job;
use filemap_job::random::Rng;
use filemap_model::{Profile, trace};

/// A program of one file of 256 pages whose thread takes `phases` through its mapping `m`.
fn of_one(keys: &str, phases: &[&str]) -> Job {
    valid(&format!(
        "{keys}\n[[file]]\nname = 'f'\nsize = '1m'\n[[open]]\nname = 'o'\nfile = 'f'\n[[mapping]]\n\
         name = 'm'\nopen = 'o'\n[[thread]]\nphase = [{}]\n",
        phases.join(", ")
    ))
}

fn minors(program: &Job) -> Vec<u64> {
    let run = trace(program, &Profile::DEFAULT, &mut ()).unwrap();
    run.phases.iter().map(|phase| phase.counters.minor_faults.unwrap()).collect()
}

#[test]
fn a_fault_maps_nothing_across_a_part_that_is_gone() {
    let read = "{ open = 'o', workload = 'read-sequential', accesses = 1, bs = '1m' }";
    let around = ["{ mapping = 'm', pages = [4] }", "{ mapping = 'm', pages = [0, 15] }"];
    assert_eq!(minors(&of_one("", &[read, around[0], around[1]])), [0, 1, 0]);
    let hole = "{ unmap = 'm', offset = '32k', len = '4k' }";
    assert_eq!(minors(&of_one("", &[read, hole, around[0], around[1]])), [0, 0, 1, 1]);
    // What was mapped elsewhere stays mapped.
    let again = [read, around[0], hole, around[1]];
    assert_eq!(minors(&of_one("", &again)), [0, 1, 0, 0]);
}

#[test]
fn bound_readahead_ends_where_a_part_is_gone() {
    let keys = "read_ahead_kb = 128\nkernel = '6.12'";
    let phases =
        ["{ unmap = 'm', offset = '400k', len = '4k' }", "{ mapping = 'm', pages = [96] }"];
    let pages = |with: &str| {
        let program = of_one(&format!("{keys}\n{with}"), &phases);
        trace(&program, &Profile::DEFAULT, &mut ()).unwrap().counters.data_pages_read
    };
    assert_eq!(pages(""), Some(32));
    // Page 100 is gone: the window starts 16 pages before page 96, as without the series.
    assert_eq!(pages("with = 'vma-bound'"), Some(20));
}

/// A program that unmaps parts of its mapping between touches of the rest.
fn random(seed: u64) -> String {
    let mut rng = Rng(seed * 2 + 1);
    let pages = rng.pick(&[60, 300, 1500]);
    let private = rng.chance(30);
    let mut is_mapped = vec![true; pages as usize];
    let mut phases = Vec::new();
    for _ in 0..2 + rng.below(6) {
        let left: Vec<u64> = (0..pages).filter(|page| is_mapped[*page as usize]).collect();
        let touched: Vec<u64> =
            (0..30).map(|_| left[rng.below(left.len() as u64) as usize]).collect();
        let write = if private && rng.chance(40) { ", write = true" } else { "" };
        phases.push(format!("{{ mapping = 'm', pages = {touched:?}{write} }}"));
        let first = rng.below(pages);
        let most = rng.pick(&[1, 16, 600]);
        let end = (first + 1 + rng.below(most)).min(pages);
        let part = &mut is_mapped[first as usize..end as usize];
        let is_last = left.len() as u64 == end - first;
        if part.iter().all(|page| *page) && !is_last {
            part.fill(false);
            let (offset, len) = (first * 4, (end - first) * 4);
            phases.push(format!("{{ unmap = 'm', offset = '{offset}k', len = '{len}k' }}"));
        }
    }
    if rng.chance(20) {
        phases.push("{ unmap = 'm' }".to_string());
    }
    let (limit, shift) = (rng.pick(&["", "memory_max = '1m'\n"]), rng.pick(&[0, 3, 500]));
    format!(
        "{limit}kernel = '{}'\nread_ahead_kb = {}\n[[file]]\nname = 'f'\nsize = '{}k'\n[[open]]\n\
         name = 'o'\nfile = 'f'\n[[mapping]]\nname = 'm'\nopen = 'o'\nshift = {shift}\n\
         private = {private}\n[[thread]]\nphase = [{}]\n",
        rng.pick(&["6.1", "6.6", "6.12", "6.18"]),
        rng.pick(&[16, 128, 2048]),
        pages * 4,
        phases.join(", ")
    )
}

#[test]
fn caches_agree_on_parts_that_are_gone() {
    let mut parts = 0;
    agreed_on_random(0..400, random, |program, _| {
        let shown = program.steps().map(|step| program.describe_step(step));
        parts += shown.filter(|step| step.starts_with("unmap m of")).count();
    });
    assert!(parts > 400, "{parts} parts are taken away");
}
