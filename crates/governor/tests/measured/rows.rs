//! Programs that read cold files: not advised, with their own advice, and governed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use filemap_kernel::cold;

use crate::samples::Samples;
use crate::support::bench::{Bench, write};
use crate::support::data::{ARRAYS, DATABASES, is_there, lookups, python_with, script, sqlite};
use crate::support::mapping::PAGE_BYTES;
use crate::support::outcome::run;
use crate::support::skip::skip;

const DATA_BYTES: u64 = 2 << 30;
const DATABASE_BYTES: u64 = 3 << 29;
/// Of all files, with what the databases take beside their rows.
pub const BYTES: u64 = DATA_BYTES + 2 * DATABASE_BYTES + (1 << 29);

/// A program takes a minute where every page of a scan is read alone.
const LIMIT: Duration = Duration::from_secs(600);

/// Who advises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Nobody.
    Normal,
    /// The program: MADV_SEQUENTIAL.
    Sequential,
    /// The program: MADV_RANDOM.
    Random,
    Governed,
}

/// The files that are read.
pub struct Files {
    directory: PathBuf,
    data: PathBuf,
    lmdb: Option<(PathBuf, PathBuf)>,
    /// With its rows.
    sqlite: Option<(PathBuf, u64)>,
    numpy: Option<PathBuf>,
}

impl Files {
    /// Makes them in `directory`.
    pub fn make(directory: &Path) -> Files {
        let data = directory.join("data");
        write(&data, DATA_BYTES);
        let lmdb = python_with("lmdb").map(|python| {
            let path = directory.join("lmdb");
            // Two entries of 2000 bytes share a page.
            let entries = (DATABASE_BYTES / 2048).to_string();
            let script = script(directory, "databases.py", DATABASES);
            let mut command = Command::new(&python);
            let made = command.arg(&script).arg("make").arg(&path).arg(entries).status();
            assert!(made.expect("Python starts").success());
            (python, path)
        });
        let sqlite = is_there("sqlite3", "--version").then(|| {
            let path = directory.join("sqlite");
            let rows = sqlite(&path, DATABASE_BYTES);
            fs::write(directory.join("lookups.sql"), lookups(rows, 5000)).expect("there is room");
            (path, rows)
        });
        let numpy = python_with("numpy");
        script(directory, "arrays.py", ARRAYS);
        for (is_missing, what) in
            [(lmdb.is_none(), "lmdb"), (sqlite.is_none(), "sqlite3"), (numpy.is_none(), "numpy")]
        {
            if is_missing {
                skip(format!("there is no {what}: its rows are left out"));
            }
        }
        Files { directory: directory.to_owned(), data, lmdb, sqlite, numpy }
    }

    pub fn remove(self) {
        let entries = fs::read_dir(&self.directory).expect("it is ours");
        for entry in entries {
            let _ = fs::remove_file(entry.expect("an entry of the directory").path());
        }
    }
}

/// A program that is measured.
struct Row {
    name: &'static str,
    file: PathBuf,
    columns: Vec<Column>,
    command: Box<dyn Fn(Column) -> Command>,
    /// It prints how long it took, behind what it found.
    is_timed: bool,
}

/// What a program took.
#[derive(Clone, Debug, Default)]
struct Cell {
    seconds: Samples,
    gib: Samples,
}

fn rows(bench: &Bench, files: &Files) -> Vec<Row> {
    let pages = DATA_BYTES / PAGE_BYTES as u64;
    let few = pages / 100;
    let own = [Column::Normal, Column::Random, Column::Governed];
    let scan = [Column::Normal, Column::Sequential, Column::Governed];
    let patterns = [
        ("random 1 %", format!("random:{few}"), own),
        ("1 % by a stride of 1021 pages", format!("stride:1021:{few}"), own),
        ("1 % by a stride of 4099 pages", format!("stride:4099:{few}"), own),
        ("sequential 1 %", format!("first:{few}"), own),
        ("clusters of 16 pages", format!("clusters:{}:16", few / 16), own),
        ("scan and random mixed", format!("mix:{}:64", pages / 8), own),
        ("full scan", "scan".to_string(), scan),
    ];
    let mut rows: Vec<Row> = Vec::new();
    for (name, pattern, columns) in patterns {
        let path = files.data.to_str().expect("a plain name").to_string();
        let command = bench.own("reader", &[&path, &pattern]);
        let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let program = command.get_program().to_owned();
        let command = move |column: Column| {
            let mut command = Command::new(&program);
            command.args(&words).arg(match column {
                Column::Normal | Column::Governed => "none",
                Column::Sequential => "sequential",
                Column::Random => "random",
            });
            command
        };
        let (file, command) = (files.data.clone(), Box::new(command));
        rows.push(Row { name, file, columns: columns.to_vec(), command, is_timed: true });
    }
    rows.extend(databases(files));
    rows
}

/// Rows of programs that others have written.
fn databases(files: &Files) -> Vec<Row> {
    let mut rows = Vec::new();
    let python = |python: &Path, script: &str, words: &[&str], file: &Path| {
        let (python, script) = (python.to_owned(), files.directory.join(script));
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let file = file.to_owned();
        Box::new(move |column: Column| {
            let mut command = Command::new(&python);
            command.arg(&script).arg(&words[0]).arg(&file).args(&words[1..]).arg("timed");
            if column == Column::Random {
                command.arg("random");
            }
            command
        })
    };
    let own = vec![Column::Normal, Column::Random, Column::Governed];
    if let Some((program, file)) = &files.lmdb {
        for (name, words) in [
            ("lmdb, 5000 gets", &["gets", "5000"][..]),
            ("lmdb, 100 ranges of 800 KiB", &["ranges", "100", "819200"]),
        ] {
            let command = python(program, "databases.py", words, file);
            let (file, columns) = (file.clone(), own.clone());
            rows.push(Row { name, file, columns, command, is_timed: true });
        }
    }
    if let Some((file, _)) = &files.sqlite {
        let (path, query) = (file.clone(), files.directory.join("lookups.sql"));
        let command = Box::new(move |_| {
            let mut command = Command::new("sqlite3");
            command.arg(&path).arg(format!(".read {}", query.display()));
            command
        });
        let columns = vec![Column::Normal, Column::Governed];
        let (name, file) = ("sqlite, 5000 lookups", file.clone());
        rows.push(Row { name, file, columns, command, is_timed: false });
    }
    if let Some(program) = &files.numpy {
        for (name, words) in [
            ("numpy, 5000 rows gathered", &["gather", "5000"]),
            ("numpy, shuffled batches of 256 KiB", &["batches", "800"]),
        ] {
            let command = python(program, "arrays.py", words, &files.data);
            let (file, columns) = (files.data.clone(), own.clone());
            rows.push(Row { name, file, columns, command, is_timed: true });
        }
    }
    rows
}

/// Measures all rows, and prints a table.
pub fn measure(bench: &Bench, files: &Files, repeats: usize) {
    println!("Seconds, with their spread, and GiB read; {repeats} runs of each, in turn, cold.\n");
    println!("| Program | NORMAL | SEQUENTIAL | RANDOM | Governed | NORMAL / governed | To best |");
    println!("|---|---|---|---|---|---|---|");
    for row in rows(bench, files) {
        let cells = row.measure(bench, repeats);
        println!("{}", row.line(&cells));
    }
}

impl Row {
    fn measure(&self, bench: &Bench, repeats: usize) -> Vec<(Column, Cell)> {
        let mut cells: Vec<(Column, Cell)> =
            self.columns.iter().map(|&column| (column, Cell::default())).collect();
        let statistics = bench.directory.join("statistics");
        let mut found = None;
        for _ in 0..repeats {
            for (column, cell) in &mut cells {
                cold::drop_file(&self.file).expect("the file can be dropped");
                let mut command = (self.command)(*column);
                if *column == Column::Governed {
                    bench.library.govern(&mut command, 16 << 20, &statistics);
                }
                let outcome = run(&mut command, &bench.directory, LIMIT).well(self.name);
                let text = outcome.stdout();
                let (result, seconds) = match text.trim_end().rsplit_once('\n') {
                    Some((result, time)) if self.is_timed => {
                        (result.to_string(), time.parse().expect("seconds"))
                    }
                    _ => (text, outcome.elapsed.as_secs_f64()),
                };
                // Whoever advises, the program finds the same.
                assert_eq!(found.get_or_insert(result.clone()), &result, "{}", self.name);
                cell.seconds.add(seconds);
                cell.gib.add(outcome.read_bytes as f64 / (1_u64 << 30) as f64);
            }
        }
        cells
    }

    fn line(&self, cells: &[(Column, Cell)]) -> String {
        let find = |column| cells.iter().find(|(of, _)| *of == column).map(|(_, cell)| cell);
        let show = |column| {
            find(column).map_or("-".to_string(), |cell| {
                let (seconds, spread) = (cell.seconds.median(), cell.seconds.spread());
                format!("{seconds:.3} ± {spread:.3} / {:.3}", cell.gib.median())
            })
        };
        let [normal, governed] =
            [Column::Normal, Column::Governed].map(|of| find(of).expect("each row has it"));
        let faster = normal.seconds.median() / governed.seconds.median();
        let fewer = normal.gib.median() / governed.gib.median();
        let others = cells.iter().filter(|(column, _)| *column != Column::Governed);
        let best = others.map(|(_, cell)| cell.seconds.median()).fold(f64::INFINITY, f64::min);
        format!(
            "| {} | {} | {} | {} | {} | {faster:.1}x, {fewer:.1}x fewer | {:.2} |",
            self.name,
            show(Column::Normal),
            show(Column::Sequential),
            show(Column::Random),
            show(Column::Governed),
            governed.seconds.median() / best
        )
    }
}

/// The readahead of the disk under `path`, in KiB; 0 where nobody says.
pub fn read_ahead_kib(path: &Path) -> u64 {
    let device = fs::metadata(path).expect("it is there").dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let file = format!("/sys/dev/block/{major}:{minor}/bdi/read_ahead_kb");
    fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
