//! A scan of 4096 pages through VMAs of a few pages each: the cost of the bound of each VMA.

use filemap_job::{JobFlags, SizeText};
use filemap_model::{Profile, trace};

/// Major faults, and pages read.
fn scan(kernel: &str, with: &str, kb: u64, pages: u64, prot: &str) -> (u64, u64) {
    let text = |text: &str| Some(text.to_string());
    let spec = JobFlags {
        kernel: text(kernel),
        with: text(with),
        workload: text("sequential"),
        accesses: Some(4096),
        file_size: Some(SizeText("1g".into())),
        read_ahead_kb: Some(kb),
        split: Some(pages),
        split_prot: text(prot),
        ..JobFlags::default()
    };
    let job = spec.validate(None).unwrap();
    let counters = trace(&job, &Profile::DEFAULT, &mut ()).unwrap().counters;
    (counters.major_faults.unwrap(), counters.data_pages_read.unwrap())
}

/// Rules, readahead in KiB, protection of every second piece, pages of each: without the bound, and
/// with it. Those of 6.12 with 8 MiB and `exec` are as measured on that kernel. Executable pieces
/// stay in their VMA on 6.18 without the bound too, and are never marked.
type Case = (&'static str, u64, &'static str, u64, (u64, u64), (u64, u64));

const CASES: &[Case] = &[
    ("6.12", 8192, "write", 16, (1, 6144), (256, 4096)),
    ("6.12", 8192, "write", 64, (1, 6144), (64, 4096)),
    ("6.12", 8192, "write", 512, (1, 6144), (8, 4096)),
    ("6.12", 8192, "exec", 16, (1, 6144), (256, 4096)),
    ("6.12", 8192, "exec", 64, (1, 6144), (64, 4096)),
    ("6.12", 8192, "exec", 512, (1, 6144), (8, 4096)),
    ("6.12", 128, "write", 16, (1, 4128), (256, 4096)),
    ("6.12", 128, "write", 64, (1, 4128), (64, 4096)),
    ("6.12", 128, "write", 512, (1, 4128), (8, 4096)),
    ("6.12", 128, "exec", 16, (1, 4128), (256, 4096)),
    ("6.12", 128, "exec", 64, (1, 4128), (64, 4096)),
    ("6.12", 128, "exec", 512, (1, 4128), (8, 4096)),
    ("6.18", 8192, "write", 16, (1, 6144), (256, 4096)),
    ("6.18", 8192, "write", 64, (1, 6144), (64, 4096)),
    ("6.18", 8192, "write", 512, (1, 6144), (8, 4096)),
    ("6.18", 8192, "exec", 16, (1, 6144), (256, 4096)),
    ("6.18", 8192, "exec", 64, (1, 6144), (64, 4096)),
    ("6.18", 8192, "exec", 512, (1, 6144), (8, 4096)),
    ("6.18", 128, "write", 16, (1, 4128), (256, 4096)),
    ("6.18", 128, "write", 64, (1, 4128), (64, 4096)),
    ("6.18", 128, "write", 512, (1, 4128), (8, 4096)),
    ("6.18", 128, "exec", 16, (1, 4128), (256, 4096)),
    ("6.18", 128, "exec", 64, (1, 4128), (96, 4096)),
    ("6.18", 128, "exec", 512, (1, 4128), (68, 4096)),
];

#[test]
fn each_piece_is_read_for_itself_with_the_bound() {
    for &(kernel, kb, prot, pages, before, after) in CASES {
        let found = |with| scan(kernel, with, kb, pages, prot);
        let case = format!("{kernel} {kb} {prot} {pages}");
        assert_eq!((found("baseline"), found("vma-bound")), (before, after), "{case}");
    }
}
