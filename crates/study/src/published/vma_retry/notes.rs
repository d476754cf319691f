//! What the tables of the series say, in words.

use filemap_report::units::time;

use super::cells::published_ratios;
use super::plan::{PUBLISHED_CPUS, baselines, published_miss_percent};
use super::tables::{Tried, read_ahead_pages, span};
use super::{LEAST_SEEDS, PAGE_KIB, plan};
use crate::published::cell::Cell;
use crate::published::data::PUBLISHED;
use crate::spread::over_seeds;

/// From so many misses of 100 drops on there is an effect.
const EFFECT_PERCENT: f64 = 1.0;

/// Rounds with the series for each without it, below which the job hardly goes on.
const STALLS: f64 = 0.1;

/// Windows of the default readahead size.
const DEFAULT_PAGES: u64 = 32;

fn note(name: &str, values: &[(&str, String)]) -> String {
    PUBLISHED.vma_retry.about.note(name, values)
}

/// The note of that name as it is.
pub fn plain(name: &str) -> String {
    note(name, &[])
}

/// What the runs are.
pub fn form(cells: &[Cell]) -> String {
    let seconds =
        |cell: Option<&Cell>| cell.map_or(0, |cell| cell.condition("seconds")).to_string();
    let find = |experiment: &str| cells.iter().find(|cell| cell.is_of(experiment));
    let variants = Cell::variants(cells);
    let (cpus, sensitivity) = (find(plan::CPUS), find(plan::SENSITIVITY));
    let length = match (sensitivity, cpus) {
        (Some(_), _) => "full",
        (None, Some(_)) => "short",
        (None, None) => "brief",
    };
    let experiments = cpus.map_or(String::new(), |cpus| {
        format!(" {}", note("experiments", &[("seconds", seconds(Some(cpus)))]))
    });
    let seeds = variants.first().map_or(0, |cell| cell.count("seeds"));
    note(
        "form",
        &[
            ("seconds", seconds(variants.first().copied())),
            ("seeds", over_seeds(seeds as usize)),
            ("sweep", seconds(find(plan::READ_AHEAD))),
            ("experiments", experiments),
            ("length", plain(length)),
        ],
    )
}

/// The readahead size and how it is known.
pub fn read_ahead(sweep: &[Tried], pages: u64) -> String {
    let file = sweep.first().map_or(0, |of| of.before.condition("file_pages"));
    let before = || baselines().map(|row| row.drops_per_round());
    let of_pages = |of: &&Tried| of.before.condition("read_ahead_pages") == pages;
    let goes_on = sweep.iter().find(of_pages).filter(|of| !of.before.jams());
    let percent = goes_on.and_then(|of| of.before.number("misses_per_100_drops"));
    let size = [("pages", pages.to_string()), ("kib", (pages * PAGE_KIB).to_string())];
    let inferred = match percent {
        Some(percent) => {
            let published = ("published", format!("{:.1}", published_miss_percent()));
            let model = ("model", format!("{percent:.1}"));
            note("inferred", &[&size[..], &[published, model]].concat())
        }
        None => note("not_inferred", &size),
    };
    note(
        "read_ahead",
        &[
            ("inferred", inferred),
            ("default", (DEFAULT_PAGES * PAGE_KIB).to_string()),
            ("file", file.to_string()),
            ("window", DEFAULT_PAGES.to_string()),
            ("drops", (file / DEFAULT_PAGES + 1).to_string()),
            ("least", format!("{:.1}", before().fold(f64::MAX, f64::min))),
            ("most", format!("{:.1}", before().fold(0.0, f64::max))),
        ],
    )
}

/// What it costs to evict a page, and how that was chosen.
pub fn evicting(cells: &[Cell], has_cpus: bool) -> String {
    let pages = read_ahead_pages(cells);
    // A drop reads a window at most, and so does a retry that finds its page gone.
    let windows_s = baselines().map(|row| row.a_second(row.retry_mmap_drop + row.retry_io_miss));
    let windows_s = windows_s.fold(0.0, f64::max);
    let page_us = PUBLISHED_CPUS as f64 * 1e6 / (windows_s * pages as f64);
    let assumed = cells.first().and_then(|cell| cell.assumed.as_ref());
    let cost = assumed.and_then(|costs| costs.get("evict_page_ns")?.as_f64());
    note(
        "evicting",
        &[
            ("cost", cost.map_or(String::new(), |ns| format!(" ({})", time(ns)))),
            ("cpus", PUBLISHED_CPUS.to_string()),
            ("windows", format!("{windows_s:.0}")),
            ("pages", pages.to_string()),
            ("us", format!("{page_us:.0}")),
            ("more", if has_cpus { format!(" {}", plain("more_cpus")) } else { String::new() }),
        ],
    )
}

/// How many of the judged figures hold.
pub fn verdicts(beside: &[Cell], variants: &[&Cell]) -> String {
    let judged: Vec<bool> = beside.iter().filter_map(|cell| cell.ok).collect();
    let hold = judged.iter().filter(|ok| **ok).count();
    let mut said = vec![match judged.len() {
        0 => note("not_judged", &[("seeds", LEAST_SEEDS.to_string())]),
        all => note("judged", &[("hold", hold.to_string()), ("all", all.to_string())]),
    }];
    let rounds: Vec<_> =
        variants.iter().filter_map(|cell| cell.number("rounds_s/median")).collect();
    if let [before, after] = rounds[..]
        && after < before / 2.0
    {
        said.push(plain("stalls"));
    }
    if hold < judged.len() {
        said.push(plain("fails"));
    }
    said.join(" ")
}

/// What the series does to the throughput.
pub fn ratio(cells: &[Cell], cpus: &[Tried]) -> String {
    let (least, most) = published_ratios();
    let published = note(
        "published_ratio",
        &[("least", format!("{least:.1}")), ("most", format!("{most:.1}"))],
    );
    let beside = cells.iter().find(|cell| cell.assumed.is_none() && cell.published.is_some());
    let Some(ratios) = beside.and_then(|cell| cell.sample("distribution")) else {
        return format!("{published} {}", plain("no_ratio"));
    };
    let over_cpus: Vec<f64> = cpus.iter().filter_map(Tried::ratio).collect();
    let low = over_cpus.iter().copied().fold(ratios.min, f64::min);
    let high = over_cpus.iter().copied().fold(ratios.max, f64::max);
    let (seeds, and) = match ratios.samples.len() {
        1 => ("with one seed", "the"),
        _ => ("over the seeds", "seeds and the"),
    };
    let fits = match (ratios.max < least, ratios.min > most) {
        (false, false) => "overlaps what was published",
        (true, _) => "is less than was published",
        (_, true) => "is more than was published",
    };
    let over_cpus = match over_cpus.is_empty() {
        true => String::new(),
        false => format!(", and {low:.2} to {high:.2} over {and} CPUs below"),
    };
    let values = [
        ("ratio", span(&ratios, 1.0, 2)),
        ("seeds", seeds.to_string()),
        ("fits", fits.to_string()),
        ("cpus", over_cpus),
    ];
    format!("{published} {}", note("ratio", &values))
}

/// Where the effect begins, peaks, and where the job jams.
pub fn sweep(sweep: &[Tried]) -> String {
    let (jams, goes): (Vec<&Tried>, Vec<&Tried>) = sweep.iter().partition(|of| of.before.jams());
    let misses = |of: &Tried| of.before.number("misses_per_100_drops").unwrap_or(0.0);
    let mut said = vec!["* is the size that was inferred.".to_string()];
    match goes.iter().find(|of| misses(of) >= EFFECT_PERCENT) {
        Some(first) => said.push(format!(
            "Without the series {EFFECT_PERCENT} of 100 drops or more miss first at x = {}.",
            pressures(&[first])
        )),
        None if goes.is_empty() => {}
        None => said.push(format!(
            "Without the series fewer than {EFFECT_PERCENT} of 100 drops miss wherever the job goes \
             on."
        )),
    }
    let most = goes.iter().max_by(|one, other| misses(one).total_cmp(&misses(other)));
    if let Some(most) = most.filter(|most| misses(most) >= EFFECT_PERCENT) {
        let percent = misses(most);
        said.push(format!("Most miss at x = {}: {percent:.1} of 100.", pressures(&[most])));
    }
    said.push(match jams[..] {
        [] => "Without the series it jams at none of these.".to_string(),
        [first, ..] => {
            let how = match first.before.read::<String>("ended_early") {
                Some(ending) => format!("ends with {ending}"),
                None => "completes no round".to_string(),
            };
            let at = match jams.len() {
                1 => "there it",
                _ => "at the first of these it",
            };
            format!("Without the series the job jams (!) at x = {}: {at} {how}.", pressures(&jams))
        }
    });
    let stalls = |of: &&Tried| of.ratio().is_some_and(|ratio| ratio < STALLS);
    let stalled: Vec<&Tried> = sweep.iter().filter(stalls).collect();
    if !stalled.is_empty() {
        said.push(format!(
            "With the series the job hardly goes on, or not at all, at x = {}.",
            pressures(&stalled)
        ));
    }
    said.join(" ")
}

/// x of experiments, one after the other.
fn pressures(tried: &[&Tried]) -> String {
    let all = tried.iter().map(|of| format!("{:.2}", of.before.pressure()));
    all.collect::<Vec<_>>().join(", ")
}

/// What the costs are.
pub fn costs(has_sensitivity: bool) -> String {
    let more = if has_sensitivity { "has_sensitivity" } else { "no_sensitivity" };
    note("costs", &[("more", plain(more))])
}

#[cfg(test)]
mod tests {
    use super::super::cells::tried;
    use super::super::plan::Form;
    use super::super::trial::{Trial, TrialRun, Trials};
    use super::*;

    /// What is said of the sizes of a sweep, of which each had so many rounds, drops and misses.
    fn said(counts: &[(u64, u64, u64)]) -> (String, String) {
        let mut known = Trials::default();
        let sizes = Form::of(true, true).read_ahead_sweep(1).into_iter().zip(counts);
        let cells = sizes.flat_map(|(experiment, &(rounds, drops, misses))| {
            let run = TrialRun { elapsed_ns: 1_000_000_000, rounds, drops, ..TrialRun::default() };
            let run = TrialRun { retries: drops, misses, ..run };
            let both = |trials: &[Trial]| Ok(vec![run.clone(); trials.len()]);
            known.run(experiment.trials.iter(), &both).unwrap();
            tried(&experiment, &known)
        });
        let cells: Vec<Cell> = cells.collect();
        let tried = Tried::of(&cells, plan::READ_AHEAD);
        let pages = cells[0].condition("read_ahead_pages");
        (sweep(&tried), read_ahead(&tried, pages))
    }

    #[test]
    fn a_sweep_says_where_the_job_jams_and_where_not() {
        let (goes, inferred) = said(&[(2, 200, 1), (2, 100, 40), (2, 100, 30)]);
        assert!(goes.contains("miss first at x = 0.24. Most miss at x = 0.24: 40.0"), "{goes}");
        assert!(goes.ends_with("Without the series it jams at none of these."), "{goes}");
        assert!(inferred.contains("the model has 0.5 there"), "{inferred}");
        let (between, _) = said(&[(2, 200, 1), (0, 100, 0), (2, 100, 30)]);
        assert!(
            between.ends_with("jams (!) at x = 0.24: there it completes no round."),
            "{between}"
        );
        let (all, inferred) = said(&[(0, 5, 0), (0, 5, 0)]);
        assert!(
            all.ends_with("(!) at x = 0.06, 0.24: at the first of these it completes no round.")
        );
        assert!(!all.contains("100 drops"), "{all}");
        assert!(inferred.contains("Nothing can be inferred"), "{inferred}");
    }
}
