//! Programs that map segments of ELF files, and call code.

use filemap_job::Run;
use filemap_job::elf::{Elf, Load};
use filemap_job::program::{FoundFile, JobSpec};
use filemap_model::{Profile, trace};

/// Runs the program of `tables`. The file at `/x/p` has two segments of a page, with 4 MiB between
/// them in memory.
fn run(tables: &str) -> Run {
    let load = |number, offset, address| Load {
        number,
        offset,
        file_bytes: 4096,
        address,
        executable: true,
        writable: false,
    };
    let loads = vec![load(0, 0, 0), load(1, 4096, 0x40_0000)];
    let elf = Elf { size_bytes: 8192, fixed: false, loads };
    let text = format!(
        "arch = 'arm64'\n[[file]]\nname = 'p'\npath = '/x/p'\n[[file]]\nname = 'code'\n\
         size = '16m'\n[[open]]\nname = 'p'\nfile = 'p'\n[[open]]\nname = 'code'\nfile = 'code'\n\
         {tables}"
    );
    let mut spec = JobSpec::from_toml(&text).unwrap();
    for file in spec.existing_files() {
        let elf = Some(elf.clone());
        *file.found =
            Some(FoundFile { size_bytes: elf_bytes(&elf), sparse: false, holes: Vec::new(), elf });
    }
    let program = spec.validate(None).unwrap();
    trace(&program, &Profile::DEFAULT, &mut ()).unwrap()
}

fn elf_bytes(elf: &Option<Elf>) -> u64 {
    elf.as_ref().map_or(0, |elf| elf.size_bytes)
}

const SEGMENTS: &str = "[[mapping]]\nname = 'p'\nopen = 'p'\nelf = true\n";
const CODE: &str = "[[mapping]]\nname = 'code'\nopen = 'code'\nexec = true\n";

/// A mapping after segments starts after the last of them: in page-table pages of its own.
#[test]
fn mappings_do_not_share_addresses() {
    let thread = "[[thread]]\n[[thread.phase]]\nmapping = 'p'\nworkload = 'elf'\n\
                  [[thread.phase]]\nmapping = 'code'\nworkload = 'exec:cold'\naccesses = 4096\n\
                  [[thread.phase]]\nmapping = 'p'\nworkload = 'elf'\n";
    let after = run(&format!("{SEGMENTS}{CODE}{thread}")).counters;
    let before = run(&format!("{CODE}{SEGMENTS}{thread}")).counters;
    assert_eq!((after.itlb_misses, after.accesses), (before.itlb_misses, Some(4100)));
    assert_eq!(after.data_pages_read, before.data_pages_read);
}

/// Unmapped pages are in no TLB any more.
#[test]
fn each_round_of_mapping_misses_again() {
    let rounds = |repeat: u64| {
        let thread = format!(
            "[[thread]]\nrepeat = {repeat}\n[[thread.phase]]\nmap = 'code'\n[[thread.phase]]\n\
             mapping = 'code'\nworkload = 'exec:cold'\naccesses = 16\n[[thread.phase]]\n\
             unmap = 'code'\n"
        );
        run(&format!("{CODE}{thread}")).counters.itlb_misses.unwrap()
    };
    assert_eq!((rounds(1) > 0, rounds(10)), (true, 10 * rounds(1)));
}

/// A write to a private copy after a fork is a fault, which is in the log.
#[test]
fn a_copy_that_is_kept_is_a_decision() {
    use filemap_core::decision::Decision;
    let text = "[[file]]\nname = 'f'\nsize = '64k'\n[[open]]\nname = 'o'\nfile = 'f'\n[[mapping]]\n\
                name = 'm'\nopen = 'o'\nprivate = true\n[[thread]]\n[[thread.phase]]\n\
                mapping = 'm'\npages = [3]\nwrite = true\n[[thread.phase]]\nfork = true\n\
                [[thread.phase]]\nmapping = 'm'\npages = [3, 3]\nwrite = true\n";
    let program = JobSpec::from_toml(text).unwrap().validate(None).unwrap();
    let mut log: Vec<Decision> = Vec::new();
    trace(&program, &Profile::DEFAULT, &mut log).unwrap();
    let served = log.iter().filter(|decision| matches!(decision, Decision::Served { .. }));
    assert_eq!(served.count(), 2);
}
