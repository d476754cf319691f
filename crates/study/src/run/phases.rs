//! Counters by phase of a run.

use filemap_job::{Counters, PhaseRun, Record, Run, Spread};

use crate::record::{MAX_ROWS, shorten_name};
use filemap_report::Part;
use filemap_report::Table;
use filemap_report::units::number;

/// Maximum width of a phase's name, in characters.
const NAME_COLUMNS: usize = 18;

/// The counters that are shown for each phase, with their headings.
const SHOWN: [(&str, &str); 5] = [
    ("accesses", "accesses"),
    ("data_pages_read", "pages\nread"),
    ("evicted_pages", "pages\nevicted"),
    ("major_faults", "major\nfaults"),
    ("minor_faults", "minor\nfaults"),
];

/// The phases of `record` as a table of medians over runs; `None` for a job with one phase.
pub(super) fn part(record: &Record) -> Option<Part> {
    let has_phases = |run: &&Run| run.phases.len() > 1 || !run.files.is_empty();
    let first = record.runs.first().filter(has_phases)?;
    let rows = first.phases.iter().enumerate().map(|(index, phase)| {
        let runs = || record.runs.iter().filter_map(move |run| run.phases.get(index));
        let median =
            |value: fn(&PhaseRun) -> Option<u64>| Spread::from_samples(runs().filter_map(value));
        let mut row = vec![(index + 1).to_string(), name(phase, first.threads.len())];
        row.extend(SHOWN.map(|(name, _)| {
            let spread = Spread::from_samples(runs().filter_map(|run| counter(run, name)));
            spread.map_or("-".to_string(), |spread| number(spread.median))
        }));
        let elapsed = median(|run| run.elapsed_ns);
        row.push(elapsed.map_or("-".to_string(), |ns| format!("{:.3}", ns.median / 1e6)));
        row
    });
    let heads = SHOWN.iter().map(|(_, heading)| *heading).chain(["ms"]);
    let mut table = Table::from_parts(["phase", "does"], heads, rows);
    table.columns[0].right = true;
    Some(Part::Table(table.truncate_rows(MAX_ROWS, 1)))
}

/// The row label of a phase, in a job of `threads` threads.
fn name(phase: &PhaseRun, threads: usize) -> String {
    match threads {
        0 => shorten_name(&phase.does, NAME_COLUMNS),
        1 => phase.does.clone(),
        _ => format!("{}: {}", phase.thread, phase.does),
    }
}

/// One row per phase and run, with every counter under its JSON name.
pub(super) fn rows(record: &Record) -> Table {
    let row = |run: &Run, (index, phase): (usize, &PhaseRun)| {
        let values = phase.counters.iter().map(|(_, value)| *value).chain([phase.elapsed_ns]);
        let values = values.map(|value| value.map_or(String::new(), |value| value.to_string()));
        let of_run = [record.engine.clone(), run.seed.to_string()];
        let named = [(index + 1).to_string(), phase.thread.clone(), phase.does.clone()];
        of_run.into_iter().chain(named).chain(values).collect()
    };
    let names = ["engine", "seed", "number", "thread", "phase"].into_iter();
    let names = names.chain(Counters::NAMES.iter().copied()).chain(["elapsed_ns"]);
    let of_run = |run: &'_ Run| -> Vec<_> {
        run.phases.iter().enumerate().map(|phase| row(run, phase)).collect()
    };
    Table::from_parts(names, [""; 0], record.runs.iter().flat_map(of_run))
}

fn counter(run: &PhaseRun, name: &str) -> Option<u64> {
    run.counters.iter().find(|(known, _)| *known == name).and_then(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use filemap_job::JobFlags;
    use serde_json::Map;

    use super::*;

    fn record(runs: &[&[(u64, Option<u64>)]]) -> Record {
        let spec = JobFlags::from_toml("workload = 'first'\naccesses = 3\nfile_size = '1m'");
        let job = spec.unwrap().validate(None).unwrap();
        let phase = |&(ns, pages): &(u64, Option<u64>)| PhaseRun {
            does: "/a/long/path/of/pages-accessed.txt".to_string(),
            elapsed_ns: Some(ns),
            counters: Counters { data_pages_read: pages, ..Counters::default() },
            ..PhaseRun::default()
        };
        let run = |phases: &&[(u64, Option<u64>)]| Run {
            phases: phases.iter().map(phase).collect(),
            ..Run::default()
        };
        Record::new(&job, "model", Map::new(), runs.iter().map(run).collect())
    }

    #[test]
    fn phases_are_rows_and_runs_medians() {
        assert!(part(&record(&[])).is_none());
        assert!(part(&record(&[&[]])).is_none());
        let runs: [&[_]; 3] = [
            &[(1_000_000, Some(10)), (5_000_000, None)],
            &[(3_000_000, Some(2000)), (7_000_000, None)],
            &[(2_000_000, Some(1500)), (6_000_000, None)],
        ];
        let Some(Part::Table(table)) = part(&record(&runs)) else { panic!("there is a table") };
        let name = "...es-accessed.txt";
        assert_eq!(table.rows[0], ["1", name, "-", "1500", "-", "-", "-", "2.000"]);
        assert_eq!(table.rows[1], ["2", name, "-", "-", "-", "-", "-", "6.000"]);
        let longest = table.text().lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(75), "{}", table.text());
    }
}
