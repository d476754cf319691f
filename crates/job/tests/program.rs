//! Jobs with tables, and their errors.

use filemap_job::program::{FoundFile, Job, JobSpec};
use filemap_job::random::{Rng, elf};

/// A job with a file of 16 pages, opened as `o` and mapped as `m`, and additional tables.
fn program(more: &str) -> Result<Job, String> {
    let text = format!(
        "[[file]]\nname = 'f'\nsize = '64k'\n[[open]]\nname = 'o'\nfile = 'f'\n\
         [[mapping]]\nname = 'm'\nopen = 'o'\n{more}"
    );
    valid(&text)
}

fn valid(text: &str) -> Result<Job, String> {
    let valid = JobSpec::from_toml(text).and_then(|spec| spec.validate(None));
    valid.map_err(|error| error.to_string())
}

/// The same with a thread of one phase with these keys.
fn phase(keys: &str) -> Result<Job, String> {
    program(&format!("[[thread]]\n[[thread.phase]]\n{keys}\n"))
}

#[track_caller]
fn refused(found: Result<Job, String>, words: &str) {
    let error = found.expect_err(words);
    assert!(error.contains(words), "{error}\nwanted: {words}");
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn tables_determine_the_form() {
    for text in ["[[file]]\nname = 'f'", "[[thread]]", "[file]\nname = 'f'"] {
        assert!(JobSpec::is_meant(text), "{text}");
    }
    for text in ["file = 'f'\nworkload = 'random'", "[[phase]]\nworkload = 'random'", "= no", ""] {
        assert!(!JobSpec::is_meant(text), "{text}");
    }
}

#[test]
fn invalid_toml_is_reported_with_its_line() {
    let text = |think: &str| format!("[[file]]\nname = 'f'\n[[thread]]\n[[thread.phase]]\n{think}");
    let most = text("think_ns = 18446744073709551615");
    assert!(JobSpec::is_meant(&most) && JobSpec::from_toml(&most).is_ok());
    let wrong = text("think_ns = no");
    assert!(JobSpec::is_meant(&wrong));
    let error = JobSpec::from_toml(&wrong).unwrap_err().to_string();
    assert!(error.starts_with("line 5 ('think_ns = no')"), "{error}");
    refused(phase("mapping = 'm'\npages = [1]\nthink_ns = 18446744073709551615"), "think_ns");
    assert!(!JobSpec::is_meant("seed = 18446744073709551615\n[[phase]]"));
}

#[test]
fn existing_files_are_dropped_if_requested() {
    for cold in [false, true] {
        let text = format!(
            "cold = {cold}\n[[file]]\nname = 'f'\npath = '/data'\n[[file]]\nname = 'g'\n\
             size = '4k'\n[[open]]\nname = 'o'\nfile = 'f'\n[[thread]]\n[[thread.phase]]\n\
             open = 'o'\nfadvise = 'willneed'"
        );
        let mut spec = JobSpec::from_toml(&text).unwrap();
        let found = FoundFile { size_bytes: 4096, sparse: false, holes: Vec::new(), elf: None };
        spec.existing_files().for_each(|file| *file.found = Some(found.clone()));
        let files = spec.validate(None).unwrap().files;
        assert_eq!([files[0].file.cold, files[1].file.cold], [cold, false]);
    }
}

#[test]
fn program_is_not_a_single_file_job() {
    let error = filemap_job::JobFlags::from_toml("seed = 1\n[[file]]\nname = 'f'").unwrap_err();
    assert!(error.to_string().contains("so it is a program; give it as a file"), "{error}");
}

#[test]
fn accepts_valid_programs() {
    let valid = phase("mapping = 'm'\nworkload = 'sequential'\naccesses = 3").unwrap();
    assert_eq!((valid.files.len(), valid.opens.len(), valid.mappings.len()), (1, 1, 1));
    assert_eq!(valid.mappings[0].mapping.pages.0, 16, "up to the end of the file");
    assert!(phase("open = 'o'\nworkload = 'read-random'\naccesses = 3\noffset = '5000'").is_ok());
    assert!(phase("mapping = 'm'\npages = [0, 15, 3]\nthink_ns = 1000").is_ok());
    assert!(phase("unmap = 'm'").is_ok());
    let mapped_later = phase("map = 'm'\n[[thread.phase]]\nmapping = 'm'\npages = [1]").unwrap();
    assert!(!mapped_later.mappings[0].at_start);
}

#[test]
fn refuses_unknown_names() {
    refused(phase("mapping = 'n'\npages = [1]"), "phase 1: unknown mapping 'n'; known: m");
    refused(phase("open = 'x'\nworkload = 'read-random'"), "phase 1: unknown open 'x'; known: o");
    refused(program("[[open]]\nname = 'p'\nfile = 'g'"), "open 'p': unknown file 'g'; known: f");
    refused(program("[[mapping]]\nname = 'n'\nopen = 'f'"), "mapping 'n': unknown open 'f'");
    refused(program("[[mapping]]\nname = 'm'\nopen = 'o'"), "two [[mapping]] tables are named 'm'");
    refused(program("[[open]]\nfile = 'f'"), "[[open]] number 2 has no name");
    refused(program("[[open]]\nname = ' '\nfile = 'f'"), "[[open]] number 2 has no name");
    let open = |name: &str| program(&format!("[[open]]\nname = \"{name}\"\nfile = 'f'"));
    for garbled in [r"p\nq", r"p\u001bq", r"p\u2028q"] {
        refused(open(garbled), "one of the [[open]] tables is named 'p q' with line");
    }
    refused(open("日本 p|q"), "0 [[thread]] tables");
}

#[test]
fn refuses_use_of_unmapped_mappings() {
    let unmap = "unmap = 'm'\n[[thread.phase]]\n";
    refused(phase(&format!("{unmap}unmap = 'm'")), "phase 2: mapping 'm' does not exist");
    refused(phase(&format!("{unmap}mapping = 'm'\npages = [1]")), "phase 2: mapping 'm' does not");
    let map = "map = 'm'\n[[thread.phase]]\n";
    refused(phase(&format!("{map}map = 'm'")), "phase 2: mapping 'm' exists already");
}

#[test]
fn refuses_invalid_accesses() {
    refused(
        phase("mapping = 'm'\npages = [3, 16]"),
        "page 16 is beyond mapping 'm'; its last page is 15",
    );
    refused(phase("mapping = 'm'\npages = []"), "give one page or more in 'pages'");
    refused(phase("mapping = 'm'\npages = [1]\naccesses = 2"), "the list alone says");
    refused(phase("mapping = 'm'\npages = [1]\nwrite = true"), "'write' does not go with a shared");
    refused(
        phase("mapping = 'm'\nworkload = 'read-random'\naccesses = 1"),
        "'workload' does not go with a mapping",
    );
    refused(
        phase("mapping = 'm'\nworkload = 'elf'\naccesses = 1"),
        "'workload' does not go with a mapping",
    );
    refused(
        phase("mapping = 'm'\nworkload = 'randm'\naccesses = 1"),
        "'workload': unknown workload 'randm'",
    );
    refused(phase("mapping = 'm'\nworkload = 'random'\nbs = '4k'"), "does not go with");
    refused(
        phase("open = 'o'\nworkload = 'random'\naccesses = 1"),
        "give read-random or read-sequential",
    );
    refused(
        phase("open = 'o'\nworkload = 'read-random'\noffset = '64k'"),
        "'offset': 64k is out of range",
    );
    refused(
        phase("open = 'o'\nworkload = 'read-random'\nlen = '65k'"),
        "'len': 65k is out of range",
    );
    refused(
        phase("mapping = 'm'\nworkload = 'random'\naccesses = 0"),
        "'accesses': 0 is out of range",
    );
    refused(phase("mapping = 'm'\nopen = 'o'\nworkload = 'random'"), "a phase does one thing");
    refused(phase("mapping = 'm'\nworkload = 'random'"), "0.01 of a mapping of 16 pages is less");
    refused(phase("workload = 'random'"), "a phase does one thing");
    refused(phase("map = 'm'\nworkload = 'random'"), "a phase does one thing");
}

#[test]
fn reads_past_the_page_cache_are_of_whole_blocks() {
    let program = |file: &str, phase: &str| {
        let text = format!(
            "[[file]]\nname = 'f'\nsize = '{file}'\n[[open]]\nname = 'o'\nfile = 'f'\n\
             direct = true\n[[thread]]\n[[thread.phase]]\nopen = 'o'\n{phase}"
        );
        valid(&text)
    };
    let random = "workload = 'read-random'\naccesses = 3\nbs = '8k'";
    let valid = program("100k", random).unwrap();
    let step = &valid.threads[0].steps[0];
    assert_eq!(valid.describe_step(step), "read o directly: read-random");
    assert!(valid.is_direct(step) && valid.opens[0].direct);
    program("100001", &format!("{random}\noffset = '4k'")).unwrap();
    program("100k", "offsets = [0, 8192]\nbs = '4k'").unwrap();
    for (phase, refusal) in [
        ("workload = 'read-random'\naccesses = 3\nbs = '6k'", "'bs': 6k is not a multiple of 4k"),
        ("offsets = [0, 512]\nbs = '4k'", "'offsets': 512b is not a multiple of 4k"),
        (&format!("{random}\noffset = '1k'"), "'offset': 1k is not a multiple of 4k"),
        (&format!("{random}\nlen = '10k'"), "'len': 10k is not a multiple of 4k"),
    ] {
        refused(program("100k", phase), refusal);
    }
    // The last block is cut off at the end of the file.
    program("10k", "workload = 'read-sequential'\naccesses = 2\nbs = '8k'\nlen = '10k'").unwrap();
    // Mappings and advice of it are not restricted.
    program("100k", "fadvise = 'dontneed'\noffset = '5b'").unwrap();
}

#[test]
fn advice_as_steps() {
    let valid = phase("mapping = 'm'\nmadvise = 'dontneed'\noffset = '8k'\nlen = '12k'").unwrap();
    let step = &valid.threads[0].steps[0];
    assert_eq!(valid.describe_step(step), "madvise m: dontneed of 12k from 8k");
    let valid = phase("open = 'o'\nfadvise = 'willneed'\noffset = '5b'").unwrap();
    assert_eq!(valid.describe_step(&valid.threads[0].steps[0]), "fadvise o: willneed from 5b");
    for advice in ["cold", "pageout"] {
        let valid = phase(&format!("mapping = 'm'\nmadvise = '{advice}'\nlen = '8k'")).unwrap();
        let step = &valid.threads[0].steps[0];
        assert_eq!(valid.describe_step(step), format!("madvise m: {advice} of 8k from 0"));
        assert_eq!(
            (step.pages_out(), step.drops_pages()),
            (advice == "pageout", advice == "pageout")
        );
        assert!(!step.changes_mappings(), "it only reads what is mapped");
    }
    let whole = phase("mapping = 'm'\nmadvise = 'hugepage'").unwrap();
    assert_eq!(whole.describe_step(&whole.threads[0].steps[0]), "madvise m: hugepage");
    assert!(whole.wants_huge_pages() && !valid.wants_huge_pages());

    let map = |keys: &str| phase(&format!("mapping = 'm'\n{keys}"));
    let open = |keys: &str| phase(&format!("open = 'o'\n{keys}"));
    refused(map("madvise = 'free'"), "'madvise': unknown advice 'free'; known: normal, random");
    refused(open("fadvise = 'hugepage'"), "'fadvise': unknown advice 'hugepage'; known: normal");
    refused(map("madvise = 'random'\noffset = '1000b'"), "'offset': 1000b is not a multiple of");
    refused(map("madvise = 'random'\nlen = '1000b'"), "'len': 1000b is out of range");
    refused(map("madvise = 'random'\noffset = '64k'"), "page 16 is beyond mapping 'm'");
    refused(map("madvise = 'random'\nlen = '68k'"), "page 16 is beyond mapping 'm'");
    refused(open("fadvise = 'dontneed'\noffset = '64k'"), "'offset': 64k is out of range");
    refused(open("fadvise = 'dontneed'\nlen = '65k'"), "'len': 65k is out of range");
    refused(open("fadvise = 'random'\nlen = '4k'"), "only willneed and dontneed are about a range");
    refused(map("madvise = 'random'\nfadvise = 'random'"), "give each a phase of its own");
    refused(open("madvise = 'random'"), "'madvise' does not go with a phase without a mapping");
    refused(map("fadvise = 'random'"), "'fadvise' does not go with a phase without an open file");
    refused(phase("madvise = 'random'"), "'madvise' does not go with a phase without a mapping");
    refused(map("madvise = 'random'\npages = [1]"), "'madvise' does not go with accesses");
    refused(map("madvise = 'willneed'\nthink_ns = 5"), "'madvise' does not go with accesses");
    refused(open("fadvise = 'normal'\naccesses = 5"), "'fadvise' does not go with accesses");
    refused(
        program(
            "[[mapping]]\nname = 'long'\nopen = 'o'\nlen = '1m'\n[[thread]]\n[[thread.phase]]\n\
             mapping = 'long'\nmadvise = 'populate-read'\noffset = '60k'",
        ),
        "page 16 of mapping 'long' lies beyond the last page of its file, where populate-read",
    );
}

#[test]
fn advice_of_a_mapping_is_a_set() {
    let more = |keys: &str| {
        program(&format!(
            "[[mapping]]\nname = 'n'\nopen = 'o'\nadvice = '{keys}'\n[[thread]]\n\
             [[thread.phase]]\nmapping = 'n'\npages = [1]"
        ))
    };
    for (text, name) in [
        ("random", "random"),
        ("random,hugepage", "random,hugepage"),
        ("hugepage, sequential", "sequential,hugepage"),
        ("normal,hugepage", "hugepage"),
    ] {
        let valid = more(text).unwrap();
        assert_eq!(valid.mappings.last().unwrap().mapping.advice.name(), name);
    }
    refused(more("random,sequential"), "'advice': 'sequential' does not go with 'random'");
    refused(more("hugepage,hugepage"), "'hugepage' does not go with 'hugepage'");
    refused(more("random,"), "unknown advice ''");
    refused(more("nohugepage"), "unknown advice 'nohugepage'; known: normal, random, sequential");
}

#[test]
fn an_existing_file_says_its_size_itself() {
    let spec = |keys: &str| {
        let text = format!(
            "[[file]]\nname = 'f'\npath = '/x/f'\n{keys}[[open]]\nname = 'o'\nfile = 'f'\n\
             [[thread]]\n[[thread.phase]]\nopen = 'o'\nworkload = 'read-sequential'\naccesses = 1"
        );
        JobSpec::from_toml(&text).unwrap()
    };
    let found = FoundFile { size_bytes: 5000, sparse: true, holes: Vec::new(), elf: None };
    let valid = |keys: &str| {
        let mut spec = spec(keys);
        spec.existing_files().for_each(|file| *file.found = Some(found.clone()));
        spec.validate(None).map_err(|error| error.to_string())
    };
    let file = &valid("").unwrap().files[0].file;
    assert_eq!((file.size_bytes, file.sparse, file.path.as_deref()), (5000, true, Some("/x/f")));
    refused(valid("size = '4k'\n"), "--file-size 4k is not the size of '/x/f', 5000");
    assert!(valid("size = '5000'\nsparse = true\n").is_ok());
    let unread = spec("").validate(None).map_err(|error| error.to_string());
    refused(unread, "'/x/f' was not looked at");
}

#[test]
fn refuses_invalid_tables() {
    refused(program(""), "a number of 0 [[thread]] tables is out of range; give 1 to 1024");
    refused(program("[[thread]]"), "a number of 0 phases is out of range");
    refused(
        program("[[file]]\nname = 'g'"),
        "file 'g': 'size' is missing; give a size such as 1g, or",
    );
    refused(program("[[file]]\nname = 'g'\nsize = '0'"), "file 'g': 'size': 0 is out of range");
    let more = |keys: &str| program(&format!("[[mapping]]\nname = 'n'\nopen = 'o'\n{keys}"));
    refused(more("offset = '1000b'"), "mapping 'n': 'offset': 1000b is not a multiple of");
    refused(more("offset = '64k'"), "mapping 'n': it begins at page 16 of a file of 16 pages");
    refused(more("shift = 512"), "mapping 'n': 'shift': 512 is out of range; give 0 to 511");
    refused(more("advice = 'rnd'"), "mapping 'n': 'advice': unknown advice 'rnd'");
    refused(more("split_prot = 'exec'"), "mapping 'n': 'split' is missing");
    refused(more("len = '128t'"), "mapping 'n': with it more than 128 TiB would be mapped");
    refused(more("split = 0"), "mapping 'n': 'split': 0 is not allowed; give the pages of each");
    refused(program("[[mapping]]\nname = 'n'"), "mapping 'n': 'open' is missing; give the name");
}

/// A job with these phases in an unnamed thread and in a thread named `other`.
fn threads(first: &str, second: &str) -> Result<Job, String> {
    let thread = |name: &str, keys: &str| format!("[[thread]]\n{name}[[thread.phase]]\n{keys}\n");
    program(&(thread("", first) + &thread("name = 'other'\n", second)))
}

#[test]
fn several_threads() {
    let touch = "mapping = 'm'\npages = [1]";
    let valid = threads(touch, &format!("{touch}\n[[thread.phase]]\n{touch}")).unwrap();
    let steps = |thread: usize| valid.threads[thread].steps.len();
    assert_eq!((steps(0), steps(1), valid.steps().count()), (1, 2, 3));
    let names = valid.threads.iter().map(|thread| thread.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["1", "other"]);
    assert_eq!(valid.cpus, None);
    refused(threads(touch, "mapping = 'n'\npages = [1]"), "thread 'other': phase 1: unknown");
    let same = "[[thread]]\nname = 'a'\n[[thread]]\nname = 'a'";
    refused(program(same), "two [[thread]] tables are named 'a'");
    refused(program("[[thread]]\nname = ''"), "[[thread]] number 1 has no name");
    refused(program("[[thread]]\n[[thread]]"), "thread '1': a number of 0 phases is out of range");
}

#[test]
fn changing_mapping_belongs_to_one_thread() {
    let touch = "mapping = 'm'\npages = [1]";
    let unmap = &format!("{touch}\n[[thread.phase]]\nunmap = 'm'");
    let words = "phase 1: mapping 'm' is mapped or unmapped by thread";
    refused(threads(unmap, touch), &format!("thread 'other': {words} '1', so no other"));
    refused(threads(touch, unmap), &format!("thread '1': {words} 'other', so no other"));
    refused(threads(touch, "map = 'm'"), &format!("thread '1': {words} 'other', so no other"));
    refused(threads("map = 'm'", "unmap = 'm'"), &format!("thread 'other': {words} '1'"));
    let read = "open = 'o'\nworkload = 'read-sequential'\naccesses = 1";
    assert!(threads(unmap, read).is_ok());
}

#[test]
fn cpus_are_those_of_a_machine() {
    let with = |cpus: &str| {
        let text = format!(
            "cpus = {cpus}\n[[file]]\nname = 'f'\nsize = '64k'\n[[open]]\nname = 'o'\n\
             file = 'f'\n[[thread]]\n[[thread.phase]]\nopen = 'o'\n\
             workload = 'read-sequential'\naccesses = 1\n"
        );
        valid(&text)
    };
    assert_eq!(with("2").unwrap().cpus, Some(2));
    refused(with("0"), "'cpus': 0 is out of range; give 1 to 8192");
    refused(with("8193"), "'cpus': 8193 is out of range");
}

#[test]
fn a_mapping_may_be_longer_than_its_file() {
    let valid = program(
        "[[mapping]]\nname = 'n'\nopen = 'o'\nlen = '2g'\n[[thread]]\n[[thread.phase]]\n\
         mapping = 'n'\npages = [15]",
    );
    let valid = valid.unwrap();
    assert_eq!(valid.beyond_file(1).map(|page| page.0), Some(16));
    assert_eq!(valid.beyond_file(0), None);
}

#[test]
fn refuses_memory_without_room_for_files() {
    let with = |anonymous: &str| {
        let text = format!(
            "anonymous = '{anonymous}'\nmemory_max = '1m'\n[[file]]\nname = 'f'\nsize = '64k'\n\
             [[open]]\nname = 'o'\nfile = 'f'\n[[thread]]\n[[thread.phase]]\nopen = 'o'\n\
             workload = 'read-sequential'\naccesses = 1\n"
        );
        valid(&text)
    };
    assert_eq!(with("512k").unwrap().anonymous.0, 128);
    refused(
        with("1m"),
        "'anonymous': 1m fill the memory limit of 1m that 'memory_max' sets, and without swap",
    );
    refused(with("5000"), "'anonymous': 5000 is not a multiple of the page size 4k");
}

#[test]
fn memory_is_allocated_and_freed_by_phases() {
    let with = |keys: &str, phases: &str| {
        let text = format!(
            "{keys}\n[[file]]\nname = 'f'\nsize = '64k'\n[[open]]\nname = 'o'\nfile = 'f'\n\
             [[thread]]\n{phases}"
        );
        valid(&text)
    };
    let phase = |keys: &str| format!("[[thread.phase]]\n{keys}\n");
    let phases = phase("allocate = '8k'") + &phase("free = '4k'") + &phase("allocate = '12k'");
    let job = with("anonymous = '16k'\nmemory_max = '1m'", &phases).unwrap();
    assert_eq!(job.max_anonymous().0, 4 + 4);
    assert_eq!(job.limited_anonymous(job.max_anonymous()).0, 8);
    let job = with("anonymous = '16k'", &phases).unwrap();
    assert_eq!(job.limited_anonymous(job.max_anonymous()).0, 0);
    refused(with("", &phase("allocate = '5000'")), "is not a multiple of the page size 4k");
    refused(with("", &phase("allocate = '4k'\nfree = '4k'")), "a phase does one thing");
    refused(with("", &format!("repeat = 2\n{phases}")), "a round allocates more memory than it");
    let even = phase("allocate = '8k'") + &phase("free = '8k'");
    assert_eq!(with("", &format!("repeat = 2\n{even}")).unwrap().max_anonymous().0, 2);
}

#[test]
fn invalid_program_names_table_and_key() {
    let phase = |keys: &str| format!("[[thread]]\n[[thread.phase]]\n{keys}");
    let other = |keys: &str| format!("[[thread]]\n{}[[thread]]\nname = 'b'\n{keys}", phase(""));
    let cases = [
        (
            "[[file]]\nname = 'g'\nsise = 1",
            "file 'g': unknown key 'sise'; [[file]] takes name, size",
        ),
        (
            "[[file]]\nsparse = 'yes'",
            "[[file]] number 2: 'sparse': invalid type: string \"yes\"; give true",
        ),
        ("[[open]]\nname = 3", "'name': invalid type: integer `3`; give a text in quotes"),
        (
            "[[mapping]]\nname = 'n'\nlen = [1]",
            "mapping 'n': 'len': invalid type: sequence; give a size",
        ),
        ("[[mapping]]\ncpus = 2", "; 'cpus' is a key of the program, and belongs before its first"),
        (
            "[[maping]]\nname = 'n'",
            "unknown key 'maping'; a program takes the tables [[file]], [[open]], [[mapping]] and [[thread]], and on, runs",
        ),
        (
            "[[thread]]\n[[thread.phases]]",
            "unknown key 'phases'; [[thread]] takes name, process, count, stagger, repeat, for, phase",
        ),
        ("[[thread]]\n[thread.phase]", "'phase': invalid type: map; give [[thread.phase]] tables"),
        (
            "[[thread]]\nphase = [3]",
            "'phase': invalid type: integer `3`; give [[thread.phase]] tables",
        ),
    ];
    let cases = cases.map(|(text, words)| (text.to_string(), words));
    let of_phases = [
        (phase("pages = 3"), "phase 1: 'pages': invalid type: integer `3`; give a list such as"),
        (phase("accesses = -1"), "phase 1: 'accesses': invalid value: integer `-1`; give a whole"),
        (phase("split = 5"), "phase 1: unknown key 'split'; [[thread.phase]] takes map"),
        (other(&phase("colour = 1")), "thread '4': phase 1: unknown key 'colour'"),
        (other("phase = [{ colour = 1 }]"), "thread 'b': phase 1: unknown key 'colour'"),
        (phase("mapping = 'm'"), "phase 1: 'workload' is missing; give a pattern such as random"),
        (phase("mapping = 'm'\nworkload = 'rnd'\naccesses = 1"), "interleave:K"),
        (phase("open = 'o'\nworkload = 'rnd'\naccesses = 1"), "known: read-random, read-seq"),
        (
            phase("mapping = 'm'\nworkload = 'random'"),
            "phase 1: 'fraction': 0.01 of a mapping of 16",
        ),
    ];
    for (text, words) in cases.into_iter().chain(of_phases) {
        let parsed = program(&text);
        assert!(!parsed.as_ref().is_err_and(|error| error.contains('\n')), "{parsed:?}");
        refused(parsed, words);
    }
}

#[test]
fn phases_wait_for_phases_of_other_threads() {
    let two = |first: &str, second: &str| {
        program(&format!(
            "[[thread]]\nname = 'a'\n[[thread.phase]]\nmapping = 'm'\npages = [1]\n\
             [[thread.phase]]\nmapping = 'm'\npages = [2]\n{first}\n\
             [[thread]]\nname = 'b'\n[[thread.phase]]\nmapping = 'm'\nmadvise = 'random'\n{second}\n"
        ))
    };
    let after =
        |thread: &str, phase: u64| format!("after = [{{ thread = '{thread}', phase = {phase} }}]");
    let valid = two(&after("b", 1), &after("a", 1)).expect("first a, then b, then a");
    let waits = |thread: usize| valid.threads[thread].after.clone();
    let step = |thread, step| filemap_job::program::ThreadStep { thread, step };
    assert_eq!(waits(0), [(1, vec![step(1, 0)])]);
    assert_eq!(waits(1), [(0, vec![step(0, 0)])]);
    let text = toml::to_string(&valid.spec).expect("it can be written");
    let again = JobSpec::from_toml(&text).and_then(|spec| spec.validate(None));
    assert_eq!(again.expect("it is the same").threads, valid.threads);
    refused(two(&after("b", 1), &after("a", 2)), "wait for each other in a cycle");
    refused(two(&after("a", 1), ""), "its own thread 'a'");
    refused(two(&after("b", 2), ""), "no phase 2; give one from 1 to 1");
    refused(two(&after("b", 0), ""), "no phase 0");
    refused(two(&after("c", 1), ""), "unknown thread 'c'");
}

#[test]
fn code_is_called_through_an_executable_mapping_of_one_part() {
    let calls = |keys: &str| {
        program(&format!(
            "{keys}\n[[thread]]\n[[thread.phase]]\nmapping = 'm'\nworkload = 'exec:random'\n\
             accesses = 3"
        ))
    };
    assert!(calls("exec = true").unwrap().threads[0].steps[0].calls());
    refused(calls(""), "set exec = true in the mapping's table");
    refused(calls("exec = true\nprivate = true"), "calls do not write");
}

#[test]
fn segments_are_mapped_as_the_loader_maps_them() {
    let valid = |keys: &str, phase: &str| {
        let text = format!(
            "[[file]]\nname = 'f'\npath = '/x/f'\n[[open]]\nname = 'o'\nfile = 'f'\n\
             [[mapping]]\nname = 'm'\nopen = 'o'\nelf = true\n{keys}\n[[thread]]\n\
             [[thread.phase]]\nmapping = 'm'\n{phase}"
        );
        let mut spec = JobSpec::from_toml(&text).unwrap();
        let elf = elf(&mut Rng(3), 64, 4096);
        let size_bytes = elf.size_bytes;
        for file in spec.existing_files() {
            assert!(file.is_elf, "its headers are wanted");
            *file.found = Some(FoundFile {
                size_bytes,
                sparse: false,
                holes: Vec::new(),
                elf: Some(elf.clone()),
            });
        }
        spec.validate(None).map_err(|error| error.to_string())
    };
    let touch = "workload = 'elf'\naccesses = 3";
    let mapping = &valid("", touch).unwrap().mappings[0];
    let pages: u64 = mapping.segments.iter().map(|segment| segment.pages.0).sum();
    assert_eq!((mapping.mapping.pages.0, mapping.segments.is_empty()), (pages, false));
    refused(valid("len = '4k'", touch), "'len' does not go with 'elf'");
    refused(
        valid("", "madvise = 'random'"),
        "'madvise' does not go with a mapping with elf = true",
    );
    refused(valid("", "workload = 'exec:cold'\naccesses = 1"), "code of others is not called");
    refused(phase(&format!("mapping = 'm'\n{touch}")), "set elf = true in the mapping's table");
}

#[test]
fn refuses_use_of_unmapped_parts() {
    let phases = |phases: &str| program(&format!("[[thread]]\nphase = [{phases}]\n"));
    let part = "{ unmap = 'm', offset = '16k', len = '8k' }";
    assert!(phases(&format!("{part}, {{ mapping = 'm', pages = [3, 6] }}")).is_ok());
    let shown = phases(part).unwrap();
    assert_eq!(shown.describe_step(shown.steps().next().unwrap()), "unmap m of 8k from 16k");
    // The whole mapping may be unmapped and mapped again, if another step maps it first.
    let again = format!(
        "{{ map = 'm' }}, {part}, {{ unmap = 'm' }}, {{ map = 'm' }}, {{ mapping = 'm', pages = [4] }}"
    );
    assert!(phases(&again).is_ok());
    for (then, words) in [
        ("{ mapping = 'm', pages = [3, 4] }", "page 4 of mapping 'm' was unmapped"),
        ("{ mapping = 'm', workload = 'random', accesses = 1 }", "page 4 of mapping 'm' was"),
        ("{ mapping = 'm', madvise = 'random' }", "page 4 of mapping 'm' was unmapped"),
        ("{ mapping = 'm', mprotect = 'exec', offset = '20k', len = '4k' }", "page 5 of mapping"),
        (part, "page 4 of mapping 'm' was unmapped"),
        (
            "{ unmap = 'm', offset = '0', len = '16k' }, { unmap = 'm', offset = '24k' }",
            "leave nothing of it mapped",
        ),
    ] {
        refused(phases(&format!("{part}, {then}")), words);
    }
    refused(phases("{ unmap = 'm', offset = '2k' }"), "offset");
    refused(phases("{ map = 'm', offset = '4k' }"), "one of");
    let rounds = program(&format!("[[thread]]\nrepeat = 2\nphase = [{part}]\n"));
    refused(rounds, "a part of mapping 'm' is unmapped at the end of a round");
}
