//! MADV_COLD and MADV_PAGEOUT in programs.

use crate::support::both_caches::{agreed_on_random, valid};
use filemap_job::program::Job;
use filemap_job::random::Rng;
use filemap_model::{Profile, trace};

/// A program whose thread takes `phases` through the mapping `m` of a file of 256 pages, which is
/// mapped again as `other`.
fn of_one(keys: &str, phases: &[&str]) -> Job {
    valid(&format!(
        "{keys}\n[[file]]\nname = 'f'\nsize = '1m'\n[[open]]\nname = 'o'\nfile = 'f'\n[[mapping]]\n\
         name = 'm'\nopen = 'o'\n[[mapping]]\nname = 'other'\nopen = 'o'\nprivate = true\n\
         [[thread]]\nphase = [{}]\n",
        phases.join(", ")
    ))
}

/// The pages that each phase evicts, and those cached at the end.
fn evicted(keys: &str, phases: &[&str]) -> (Vec<u64>, u64) {
    let program = of_one(keys, phases);
    let run = trace(&program, &Profile::DEFAULT, &mut ()).unwrap();
    let evicted = run.phases.iter().map(|phase| phase.counters.evicted_pages.unwrap());
    (evicted.collect(), run.files[0].cached.unwrap())
}

const READ: &str = "{ open = 'o', workload = 'read-sequential', accesses = 1, bs = '1m' }";
const TOUCH: &str = "{ mapping = 'm', workload = 'sequential', accesses = 256 }";
const BASE: &str = "fs = 'base-pages'";

#[test]
fn what_is_mapped_is_paged_out_and_nothing_else() {
    let out = "{ mapping = 'm', madvise = 'pageout', offset = '40k', len = '80k' }";
    assert_eq!(evicted(BASE, &[READ, out]), (vec![0, 0], 256), "nothing is mapped");
    assert_eq!(evicted(BASE, &[READ, TOUCH, out, out]), (vec![0, 0, 20, 0], 236));
    let all = "{ mapping = 'm', madvise = 'pageout' }";
    assert_eq!(evicted(BASE, &[READ, TOUCH, all, TOUCH]), (vec![0, 0, 256, 0], 256));
    // A page that is mapped twice stays; a private copy is not a page of the file.
    let other = "{ mapping = 'other', pages = [0] }";
    assert_eq!(evicted(BASE, &[READ, TOUCH, other, all]), (vec![0, 0, 0, 240], 16));
    let write = "{ mapping = 'other', pages = [0], write = true }";
    assert_eq!(evicted(BASE, &[READ, TOUCH, write, all]), (vec![0, 0, 0, 256], 0));
    let copied = "{ mapping = 'other', madvise = 'pageout' }";
    assert_eq!(evicted(BASE, &[READ, write, copied]), (vec![0, 0, 0], 256));
}

#[test]
fn a_folio_of_which_a_part_is_meant_stays_as_base_pages() {
    let part = "{ mapping = 'm', madvise = 'pageout', offset = '404k', len = '4k' }";
    let keys = "read_ahead_kb = 4096\nfs = 'xfs'";
    let sequential = "{ open = 'o', workload = 'read-sequential', accesses = 64, bs = '16k' }";
    let again = [sequential, TOUCH, part, TOUCH, part];
    let (evicted_pages, cached) = evicted(keys, &again);
    assert_eq!(evicted_pages[2], 0, "it is split first");
    assert_eq!((evicted_pages[4], cached), (1, 255), "then the page goes by itself");
}

/// A folio of 2 MiB that one PMD entry maps and of which another mapping has touched a page: seen
/// on a booted 6.1.192, where MADV_PAGEOUT left it cached. 6.12 keeps it by the count of its
/// entries.
#[test]
fn what_others_have_accessed_stays_before_6_18() {
    let left = |kernel: &str, other: &str| {
        let text = format!(
            "kernel = '{kernel}'\nfs = 'xfs'\nread_ahead_kb = 128\n[[file]]\nname = 'f'\n\
             size = '2m'\n[[open]]\nname = 'o'\nfile = 'f'\n[[mapping]]\nname = 'm'\n\
             open = 'o'\nadvice = 'hugepage'\n[[mapping]]\nname = 'other'\nopen = 'o'\n\
             shift = 3\n[[thread]]\nphase = [{{ mapping = 'm', pages = [0] }}, {other} \
             {{ mapping = 'm', madvise = 'pageout' }}]"
        );
        let program = valid(&text);
        trace(&program, &Profile::DEFAULT, &mut ()).unwrap().files[0].cached.unwrap()
    };
    let touched = "{ mapping = 'other', pages = [447] },";
    for (kernel, with_other) in [("6.1", 512), ("6.6", 512), ("6.12", 512), ("6.18", 0)] {
        assert_eq!((left(kernel, ""), left(kernel, touched)), (0, with_other), "{kernel}");
    }
}

#[test]
fn cold_pages_are_evicted_before_others() {
    let keys = "memory_max = '2m'\nkernel = '6.18'\nfs = 'base-pages'\n[[file]]\nname = 'g'\n\
                size = '8m'\n[[open]]\nname = 'og'\nfile = 'g'";
    let read_other = "{ open = 'og', workload = 'read-sequential', accesses = 80, bs = '16k' }";
    let cold = "{ mapping = 'm', madvise = 'cold', len = '512k' }";
    let left = |phases: &[&str]| {
        let program = of_one(keys, phases);
        let run = trace(&program, &Profile::DEFAULT, &mut ()).unwrap();
        run.files.iter().find(|file| file.name == "f").unwrap().cached.unwrap()
    };
    // Pages that were read twice are active.
    assert_eq!(left(&[READ, READ, TOUCH, read_other]), 256);
    assert_eq!(left(&[READ, READ, TOUCH, cold, read_other]), 128);
}

/// A program that gives up parts of its mappings between touches and reads.
fn random(seed: u64) -> String {
    let mut rng = Rng(seed * 2 + 1);
    let pages = rng.pick(&[60, 300, 1500]);
    let mut phases = Vec::new();
    for _ in 0..4 + rng.below(10) {
        let mapping = rng.pick(&["m", "m", "other"]);
        let first = rng.below(pages);
        let most = rng.pick(&[1, 16, 600]);
        let len = (1 + rng.below(most)).min(pages - first);
        let part = format!("offset = '{}k', len = '{}k'", first * 4, len * 4);
        phases.push(match rng.below(10) {
            0..=3 => {
                let touched: Vec<u64> = if rng.chance(50) {
                    (first..pages.min(first + 300)).collect()
                } else {
                    (0..30).map(|_| rng.below(pages)).collect()
                };
                let writes = mapping == "other" && rng.chance(30);
                let write = if writes { ", write = true" } else { "" };
                format!("{{ mapping = '{mapping}', pages = {touched:?}{write} }}")
            }
            4 => "{ open = 'o', workload = 'read-sequential', accesses = 4, bs = '100k' }"
                .to_string(),
            5 => format!("{{ open = 'o', fadvise = 'dontneed', {part} }}"),
            6 | 7 => format!("{{ mapping = '{mapping}', madvise = 'cold', {part} }}"),
            _ => format!("{{ mapping = '{mapping}', madvise = 'pageout', {part} }}"),
        });
    }
    let limit = rng.pick(&["", "", "memory_max = '1m'\n", "cache_limit = '800k'\n"]);
    let advice = rng.pick(&["", "advice = 'hugepage'\n", "advice = 'sequential'\n"]);
    format!(
        "{limit}kernel = '{}'\nfs = '{}'\nread_ahead_kb = {}\n[[file]]\nname = 'f'\n\
         size = '{}k'\n[[open]]\nname = 'o'\nfile = 'f'\n[[mapping]]\nname = 'm'\nopen = 'o'\n\
         shift = {}\n{advice}[[mapping]]\nname = 'other'\nopen = 'o'\nprivate = true\n[[thread]]\n\
         phase = [{}]\n",
        rng.pick(&["6.1", "6.6", "6.12", "6.18"]),
        rng.pick(&["ext4", "xfs", "xfs", "base-pages"]),
        rng.pick(&[16, 128, 2048]),
        pages * 4,
        rng.pick(&[0, 3, 500]),
        phases.join(", ")
    )
}

#[test]
fn caches_agree_on_what_is_given_up() {
    let mut paged_out = 0;
    agreed_on_random(0..600, random, |_, run| {
        let Ok(run) = run else { return };
        let of_advice = run.phases.iter().filter(|phase| phase.does.contains("pageout"));
        paged_out += of_advice.map(|phase| phase.counters.evicted_pages.unwrap_or(0)).sum::<u64>();
    });
    assert!(paged_out > 3_000, "{paged_out} pages are paged out");
}
