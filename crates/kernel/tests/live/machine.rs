//! Changes of the machine are undone.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use filemap_core::address::vma::Advice;
use filemap_kernel::cgroup::{CgroupLimits, MemoryCgroup, Version};
use filemap_kernel::cold_cache::drop_file;

use filemap_kernel::journal::{Journal, recover};
use filemap_kernel::page_size;
use filemap_kernel::probe::Probe;
use filemap_kernel::residency::CacheStat;
use filemap_kernel::scratch::{Scratch, ScratchFilesystem, ScratchSize};
use filemap_kernel::trace::{Inode, Trace, TraceFs, Tracepoint};

use crate::probing::{process, touch};
use crate::skip::skip;
use crate::tracing::{trace, tracefs};
use crate::{Bench, HOLD};

pub(crate) fn scratch_filesystem_has_own_readahead(bench: &Bench) {
    let Some(tracefs) = tracefs(bench) else { return };
    for (filesystem, kib) in
        [(ScratchFilesystem::Ext4, 64), (ScratchFilesystem::Xfs { block_bytes: 4096 }, 512)]
    {
        let scratch = match Scratch::create(
            &bench.journal,
            &bench.directory,
            filesystem,
            ScratchSize { files: 1, bytes: 32 << 20, disk_bytes: 32 << 20 },
            kib,
        ) {
            Ok(scratch) => scratch,
            Err(error) if error.cannot_run_here() => {
                skip(error);
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let root = scratch.root().to_owned();
        let path = root.join("file");
        fs::write(&path, vec![3; 32 << 20]).unwrap();
        let seen = trace(bench, &tracefs, &process(&path, 2048, vec![touch([1000])]));
        let pages = kib * 1024 / page_size();
        let added: Vec<u64> = seen
            .iter()
            .filter_map(|seen| match seen {
                Tracepoint::Added { start, .. } => Some(start.0),
                _ => None,
            })
            .collect();
        assert_eq!(added.first(), Some(&(1000 - pages / 2)), "{}", filesystem.name());
        assert_eq!(CacheStat::query(&File::open(&path).unwrap(), ..).unwrap().cached, pages);
        let device = scratch.device().to_owned();
        drop(scratch);
        assert!(!root.exists(), "the mount point stays");
        assert!(!backed(&device), "{} stays attached", device.display());
    }
    assert_eq!(bench.leftovers(), 0);
}

pub(crate) fn backed(device: &Path) -> bool {
    let sysfs = Path::new("/sys/block").join(device.file_name().unwrap()).join("loop/backing_file");
    fs::read_to_string(sysfs).is_ok_and(|file| file.contains("filemap-test-"))
}

impl Bench {
    /// Number of scratch images and mount points that are left.
    fn leftovers(&self) -> usize {
        let entries = fs::read_dir(&self.directory).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("scratch")).count()
    }
}

pub(crate) fn memory_cgroup_limits_child(bench: &Bench) {
    if !bench.needs_root() {
        return;
    }
    let limits = CgroupLimits { max_bytes: Some(16 << 20), high_bytes: None };
    let cgroup = match MemoryCgroup::create(&bench.journal, limits) {
        Ok(cgroup) => cgroup,
        Err(error) => return skip(error),
    };
    let (path, _guard) = bench.file("limited", 8192);
    let mut process = process(&path, 8192, vec![touch((0..8192).rev())]);
    process.mappings[0].mapping.advice = Advice::RANDOM;
    process.settle = false;
    let probe = Probe::start(&process).unwrap();
    cgroup.add(probe.pid()).unwrap();
    drop_file(&path).unwrap();
    let ended = probe.run().unwrap();
    assert_eq!(ended.threads[0].steps[0].major, 8192);
    let stat = CacheStat::query(&File::open(&path).unwrap(), ..).unwrap();
    assert!(stat.cached * page_size() <= 16 << 20, "{stat:?}");
    assert_eq!(stat.cached + stat.evicted, 8192, "{stat:?}");
    assert!(cgroup.usage_bytes().unwrap() <= 16 << 20);
    assert!(cgroup.stat().unwrap().get("pgmajfault") >= Some(8192));
    if cgroup.version() == Version::V1 {
        let high = CgroupLimits { max_bytes: None, high_bytes: Some(1 << 20) };
        let refused = MemoryCgroup::create(&bench.journal, high);
        assert!(refused.is_err_and(|error| error.cannot_run_here()));
    }
    let directory = cgroup.path().to_owned();
    drop(cgroup);
    assert!(!directory.exists());
}

/// Makes every possible change, reports it, and waits to be killed.
pub(crate) fn hold(directory: &Path) -> ! {
    let journal = Journal::open_in(directory).unwrap();
    let scratch = Scratch::create(
        &journal,
        directory,
        ScratchFilesystem::Ext4,
        ScratchSize { files: 1, bytes: 8 << 20, disk_bytes: 8 << 20 },
        64,
    );
    let scratch = scratch.unwrap();
    let tracefs = TraceFs::open(&journal).unwrap();
    let trace = Trace::create(&tracefs, &journal, &[Inode { major: 1, minor: 1, number: 1 }], 1);
    let limits = CgroupLimits { max_bytes: Some(8 << 20), high_bytes: None };
    let cgroup = MemoryCgroup::create(&journal, limits);
    let places = [
        scratch.device().to_owned(),
        scratch.root().to_owned(),
        tracefs.root().to_owned(),
        cgroup.as_ref().map_or(PathBuf::new(), |cgroup| cgroup.path().to_owned()),
    ];
    let places: Vec<String> = places.iter().map(|path| path.display().to_string()).collect();
    println!("{}", places.join("\t"));
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_exact(&mut [0]).unwrap();
    drop((trace, cgroup));
    std::process::exit(0);
}

pub(crate) fn killed_process_is_recovered(bench: &Bench) {
    if tracefs(bench).is_none() {
        return;
    }
    let directory = bench.directory.join("held");
    let mut child = Command::new("/proc/self/exe")
        .args([HOLD, directory.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let output = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
    let places: Vec<&str> = line.trim_end_matches('\n').split('\t').collect();
    assert_eq!(places.len(), 4, "{line:?}");
    assert!(recover(&directory).unwrap().undone.is_empty(), "its owner lives");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(backed(Path::new(places[0])));

    let recovery = recover(&directory).unwrap();
    assert!(recovery.failed.is_empty(), "{:?}", recovery.failed);
    assert!(recovery.undone.len() >= 5, "{:?}", recovery.undone);
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(directory.to_str().unwrap()));
    assert!(!backed(Path::new(places[0])), "{} stays attached", places[0]);
    assert!(places[3].is_empty() || !Path::new(places[3]).exists());
    assert!(fs::read_dir(&directory).unwrap().next().is_none(), "files stay");
}
