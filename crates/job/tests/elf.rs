//! ELF files: mappings of valid files, and errors of invalid ones.

use std::ops::Range;

use filemap_core::units::{PageCount, PageIndex};
use filemap_job::elf::{Elf, Segment};
use filemap_job::{Cached, Job, JobFlags, Pattern, Phase, Workload};
use proptest::prelude::*;

/// A loaded segment: file offset, file length, address, memory length, executable.
type Written = (u64, u64, u64, u64, bool);

/// A 64-bit little-endian ELF file of `size` bytes with these segments.
fn file(kind: u16, size: usize, loads: &[Written]) -> Vec<u8> {
    let mut bytes = vec![0; size];
    bytes[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(16, &kind.to_le_bytes());
    put(18, &62u16.to_le_bytes());
    put(20, &1u32.to_le_bytes());
    put(32, &64u64.to_le_bytes());
    put(52, &64u16.to_le_bytes());
    put(54, &56u16.to_le_bytes());
    put(56, &(loads.len() as u16).to_le_bytes());
    for (number, &(offset, file_bytes, address, memory, executable)) in loads.iter().enumerate() {
        let at = 64 + 56 * number;
        put(at, &1u32.to_le_bytes());
        put(at + 4, &(4 + u32::from(executable)).to_le_bytes());
        for (field, value) in [(8, offset), (16, address), (32, file_bytes), (40, memory)] {
            put(at + field, &value.to_le_bytes());
        }
    }
    bytes
}

const DYNAMIC: u16 = 3;
const FIXED: u16 = 2;

fn segment(offset: u64, pages: u64, start: u64, executable: bool) -> Segment {
    let (offset, pages, start) = (PageIndex(offset), PageCount(pages), PageCount(start));
    Segment { offset, pages, start, executable, writable: false }
}

/// As produced by linkers: headers, code, constants, and data that shares a file page with the
/// constants.
const TYPICAL: &[Written] = &[
    (0, 0x36c0, 0, 0x36c0, false),
    (0x4000, 0x15759, 0x4000, 0x15759, true),
    (0x1a000, 0x8ed0, 0x1a000, 0x8ed0, false),
    (0x22fb0, 0x1310, 0x23fb0, 0x25f8, false),
];

/// The accesses of the first phase.
fn phase(job: &Job) -> &Phase {
    job.accesses().next().unwrap()
}

#[test]
fn segments_are_mapped_as_the_loader_does() {
    let elf = Elf::parse(&file(DYNAMIC, 0x30000, TYPICAL)).unwrap();
    assert_eq!((elf.size_bytes, elf.fixed), (0x30000, false));
    let expected = [
        segment(0, 4, 0, false),
        segment(4, 22, 4, true),
        segment(26, 9, 26, false),
        segment(34, 3, 35, false),
    ];
    assert_eq!(elf.segments(4096).unwrap(), expected);
}

#[test]
fn segments_that_continue_each_other_are_one_vma() {
    let loads = &[
        (0, 0x2800, 0x10000, 0x2800, false),
        (0x3000, 0x1000, 0x13000, 0x1000, false),
        // Different protection, a gap in memory, a skipped file page, and a file page mapped twice.
        (0x4000, 0x1000, 0x14000, 0x1000, true),
        (0x5000, 0x1000, 0x16000, 0x1000, true),
        (0x7000, 0x1000, 0x17000, 0x1000, true),
        (0x7800, 0x800, 0x18800, 0x800, true),
        (0x8000, 0x1000, 0x19000, 0x1000, true),
    ];
    let expected = [
        segment(0, 4, 0, false),
        segment(4, 1, 4, true),
        segment(5, 1, 6, true),
        segment(7, 1, 7, true),
        segment(7, 2, 8, true),
    ];
    assert_eq!(
        Elf::parse(&file(DYNAMIC, 0x9000, loads)).unwrap().segments(4096).unwrap(),
        expected
    );
}

#[test]
fn addresses_count_from_a_page_table_page() {
    // Position-independent: relative to the first segment. Fixed: the position of the address in
    // its page table.
    let loads = &[(0x1000, 0x1000, 0x40_3000, 0x1000, true)];
    let start =
        |kind| Elf::parse(&file(kind, 0x2000, loads)).unwrap().segments(4096).unwrap()[0].start;
    assert_eq!(start(DYNAMIC), PageCount(0));
    assert_eq!(start(FIXED), PageCount(3));
}

#[test]
fn the_part_of_a_segment_that_is_not_in_the_file_is_not_mapped() {
    let loads = &[(0, 0x1000, 0, 0x1000, false), (0x1000, 0, 0x1000, 0x8000, false)];
    let elf = Elf::parse(&file(DYNAMIC, 0x2000, loads)).unwrap();
    assert_eq!(elf.segments(4096).unwrap(), [segment(0, 1, 0, false)]);
}

#[test]
fn invalid_files_have_a_remedy() {
    let one = |load: Written| file(DYNAMIC, 0x4000, &[load]);
    let mut truncated = file(DYNAMIC, 0x30000, TYPICAL);
    truncated.truncate(0x20000);
    let mut headers = file(DYNAMIC, 0x30000, TYPICAL);
    headers.truncate(100);
    let cases: &[(&[u8], &str)] = &[
        (b"", "no ELF file to load"),
        (b"#!/bin/sh\n", "no ELF file to load: it does not begin as one; give a program"),
        (b"\x7fELF", "no ELF file to load"),
        (&file(1, 0x1000, &[]), "it is not linked"),
        (&file(DYNAMIC, 0x1000, &[]), "0 of its segments are loaded"),
        (&headers, "no ELF file to load"),
        (&truncated, "segment 2 of 36560 bytes at 106496 ends beyond the file of 131072 bytes"),
        (&one((0, u64::MAX, 0, u64::MAX, false)), "reaches beyond the address space of 128 TiB"),
        (&one((0, 1, 1 << 47, 1, false)), "segment 0 of 1 bytes at address 0x800000000000"),
        (&one((0, 1, u64::MAX, 1, false)), "reaches beyond the address space"),
        (&one((u64::MAX, 2, 0, 2, false)), "ends beyond the file of 16384 bytes"),
        (&one((0x3000, 0x1001, 0x3000, 0x1001, false)), "ends beyond the file"),
        (&one((0, 0x1000, 0, 0x10, false)), "4096 bytes in the file and 16 in memory"),
    ];
    for (bytes, words) in cases {
        let error = Elf::parse(bytes).expect_err(words).to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{words}: {error}");
        assert!(error.contains("give"), "{error}");
    }
}

#[test]
fn invalid_mappings_have_a_remedy() {
    let typical = Elf::parse(&file(DYNAMIC, 0x30000, TYPICAL)).unwrap();
    // Linked for 4 KiB pages: with larger pages the data would lie at another offset in its page.
    let error = typical.segments(65536).unwrap_err().to_string();
    assert!(error.contains("segment 3 lies at 0x22fb0"), "{error}");
    assert!(error.contains("in a page of 64k; give a smaller --page-size"), "{error}");
    let overlapping = &[(0, 0x2000, 0x1000, 0x2000, false), (0, 0x1000, 0x2000, 0x1000, true)];
    let elf = Elf::parse(&file(DYNAMIC, 0x4000, overlapping)).unwrap();
    let error = elf.segments(4096).unwrap_err().to_string();
    assert!(error.contains("segments 0 and 1 overlap in memory; give"), "{error}");
}

/// A job that maps `elf`, with additional keys.
fn job(more: &str, elf: Option<&[u8]>) -> Result<Job, filemap_job::Error> {
    let mut spec = JobFlags::from_toml(&format!("workload = 'elf'\nfile = '/bin/x'\n{more}"))?;
    for (_, text) in spec.accesses_files() {
        *text = Some("36\n0\n".to_string());
    }
    spec.elf = elf.map(Elf::parse).transpose()?;
    spec.validate(None)
}

#[test]
fn jobs_touch_the_pages_of_all_segments_in_order() {
    let bytes = file(DYNAMIC, 0x30000, TYPICAL);
    let job = job("", Some(&bytes)).unwrap();
    assert_eq!(phase(&job).pattern, Pattern::Generated(Workload::Elf));
    assert_eq!(job.mappings[0].mapping.pages, PageCount(38));
    assert_eq!(job.touches(0, phase(&job)).collect::<Vec<_>>(), (0..38).collect::<Vec<_>>());
    assert_eq!((job.files[0].file.size_bytes, job.mappings[0].segments.len()), (0x30000, 4));
    assert_eq!(job.spec.validate(None).as_ref(), Ok(&job));
}

#[test]
fn cached_pages_are_counted_by_segment() {
    // Pages 10 to 14, and 20 to 25 in two segments that share page 22.
    let loads = &[
        (0xa000, 0x4800, 0, 0x4800, false),
        (0x14000, 0x2800, 0x14000, 0x2800, true),
        (0x16800, 0x2800, 0x20800, 0x2800, false),
    ];
    let job = job("", Some(&file(DYNAMIC, 0x30000, loads))).unwrap();
    let range = |start, end| PageIndex(start)..PageIndex(end);
    let mapped = job.mapped_parts().remove(0);
    assert_eq!(mapped.ranges, [range(10, 15), range(20, 25)]);
    let all = |pages: Range<PageIndex>| Ok::<_, ()>(pages.end.0 - pages.start.0);
    let cached = Cached::count_pages(&mapped, all).unwrap();
    let expected = Cached { inside: Some(10), between: Some(5), before: Some(10), after: Some(23) };
    assert_eq!(cached, expected);
    assert_eq!(Cached::count_pages(&mapped, |_| Err("no count")), Err("no count"));
}

#[test]
fn jobs_touch_the_pages_of_a_list() {
    let bytes = file(DYNAMIC, 0x30000, TYPICAL);
    let job = job("accesses_file = 'list'", Some(&bytes)).unwrap();
    assert_eq!(job.touches(0, phase(&job)).collect::<Vec<_>>(), [36, 0]);
    assert!(job.spec.mapping[0].elf);
    assert_eq!(job.spec.validate(None), Ok(job));
}

#[test]
fn refuses_keys_that_conflict_with_segments() {
    let bytes = file(DYNAMIC, 0x30000, TYPICAL);
    for flag in [
        "file_size = '1m'",
        "map_offset = '4k'",
        "map_len = '4k'",
        "split = 4",
        "exec = true",
        "private = true",
        "sparse = true",
    ] {
        let error = job(flag, Some(&bytes)).unwrap_err().to_string();
        let name = flag.split(' ').next().unwrap().replace('_', "-");
        let expected = format!("--{name} does not go with --workload elf; remove it");
        assert!(error.starts_with(&expected), "{error}");
    }
    let error = job("", None).unwrap_err().to_string();
    assert!(error.contains("'/bin/x' was not"), "{error}");
    let error = JobFlags::from_toml("workload = 'elf'").unwrap().validate(None).unwrap_err();
    assert_eq!(error.to_string(), "--file is missing; give the program or shared library to map");
}

#[test]
fn a_program_of_this_host_is_read() {
    let path = std::env::current_exe().unwrap();
    let bytes = std::fs::read(path).unwrap();
    let elf = Elf::parse(&bytes).unwrap();
    let segments = elf.segments(4096).unwrap();
    assert!(segments.iter().any(|segment| segment.executable), "{segments:?}");
}

fn one_line_or_segments(bytes: &[u8]) {
    match Elf::parse(bytes) {
        Ok(elf) => {
            for page_size in [4096, 16384, 65536] {
                match elf.segments(page_size) {
                    Ok(segments) => {
                        let pages = elf.size_bytes.div_ceil(page_size);
                        assert!(segments.iter().all(|s| s.offset.0 + s.pages.0 <= pages));
                    }
                    Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
                }
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        one_line_or_segments(&bytes);
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.extend(bytes);
        one_line_or_segments(&elf);
    }

    #[test]
    fn damaged_elf_is_segments_or_one_line_error(
        damage in prop::collection::vec((0usize..400, any::<u8>()), 0..8),
        length in 0usize..0x1000,
        word in (0usize..50, any::<u64>()),
    ) {
        let mut bytes = file(DYNAMIC, 0x1000, TYPICAL);
        bytes[8 * word.0..8 * word.0 + 8].copy_from_slice(&word.1.to_le_bytes());
        for (at, value) in damage {
            bytes[at] = value;
        }
        one_line_or_segments(&bytes);
        bytes.truncate(length);
        one_line_or_segments(&bytes);
    }

    #[test]
    fn arbitrary_segments_are_mapped_or_one_line_error(
        loads in prop::collection::vec(
            (0u64..0x5000, 0u64..0x5000, 0u64..0x20000, 0u64..0x9000, any::<bool>()), 0..6),
    ) {
        one_line_or_segments(&file(FIXED, 0x4000, &loads));
    }
}
