//! What it costs that pages of a mapping that is read at random are not seen to be used: some pages
//! are read often, others seldom, and memory is short.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::time::Duration;

use filemap_kernel::cgroup::{CgroupLimits, MemoryCgroup};
use filemap_kernel::cold;
use filemap_kernel::journal::Journal;
use filemap_kernel::scratch::Scratch;

use crate::samples::Samples;
use crate::support::bench::{Bench, write};
use crate::support::outcome::run;
use crate::support::skip::skip;

const FILE_BYTES: u64 = 1 << 30;

/// Twice what the pages take that are read often.
const LIMIT_BYTES: u64 = 256 << 20;

const LOOKS: u64 = 200_000;

const LIMIT: Duration = Duration::from_secs(600);

/// Who advises, and the filesystem's readahead in KiB meanwhile.
const COLUMNS: [(&str, &str, u64); 4] = [
    ("NORMAL, 128 KiB", "none", 128),
    ("NORMAL, page by page", "none", 0),
    ("RANDOM", "random", 128),
    ("Governed", "none", 128),
];

pub fn measure(bench: &Bench, scratch: &Scratch, repeats: usize) {
    let path = scratch.root().join("recency");
    write(&path, FILE_BYTES);
    let journal = Journal::open_in(&bench.directory.join("state")).expect("a journal");
    let limits = CgroupLimits { max_bytes: Some(LIMIT_BYTES), high_bytes: None };
    let mut cells = [const { (Vec::new(), Vec::new()) }; COLUMNS.len()];
    for _ in 0..repeats {
        for (column, (seconds, gib)) in COLUMNS.iter().zip(&mut cells) {
            let (name, advice, kib) = column;
            // A new one each time: nothing is charged to it yet.
            let cgroup = match MemoryCgroup::create(&journal, limits) {
                Ok(cgroup) => cgroup,
                Err(error) => return skip(error),
            };
            scratch.set_read_ahead(*kib).expect("the readahead can be set");
            cold::drop_file(&path).expect("the file can be dropped");
            let file = path.to_str().expect("a plain name");
            let mut command = bench.own("reader", &[file, &format!("hot-cold:{LOOKS}"), advice]);
            if *name == "Governed" {
                bench.library.govern(&mut command, 16 << 20, &bench.directory.join("recency"));
            }
            let mut members = std::fs::OpenOptions::new()
                .write(true)
                .open(cgroup.path().join("cgroup.procs"))
                .expect("the cgroup is ours");
            // SAFETY: only a write happens between fork and exec.
            unsafe { command.pre_exec(move || members.write_all(b"0")) };
            let outcome = run(&mut command, &bench.directory, LIMIT).well(name);
            seconds.push(outcome.elapsed.as_secs_f64());
            gib.push(outcome.read_bytes as f64 / (1_u64 << 30) as f64);
            cold::drop_file(&path).expect("the file can be dropped");
        }
    }
    println!("\n## Recency\n\n{LOOKS} looks at pages of 1 GiB, nine in ten of them at 128 MiB, in");
    println!("a cgroup of 256 MiB; {repeats} runs of each, in turn.\n");
    println!("| Who advises | Seconds | GiB read |\n|---|---|---|");
    for ((name, ..), (seconds, gib)) in COLUMNS.iter().zip(cells) {
        let [seconds, gib] = [seconds, gib].map(|of| of.into_iter().collect::<Samples>());
        let (spread, gib_spread) = (seconds.spread(), gib.spread());
        let (seconds, gib) = (seconds.median(), gib.median());
        println!("| {name} | {seconds:.2} ± {spread:.2} | {gib:.3} ± {gib_spread:.3} |");
    }
    std::fs::remove_file(&path).expect("it is ours");
}
