//! What would have helped a job: settings that a user can change, tried in the model.

use filemap_job::{Run, Written};
use filemap_report::units::{bytes, bytes_instead, number, time};
use filemap_report::{Bar, Bars, Part};
use serde::{Deserialize, Serialize};

/// A setting helps that takes away more than this share of what is read or of the time.
pub(crate) const LEAST_SHARE: f64 = 0.05;

/// Settings that are named where more help.
const MOST_NAMED: usize = 4;

/// The job in the model as it is, and with each setting that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Remedies {
    /// The job as it is.
    now: Figures,
    tried: Vec<Remedy>,
}

/// A setting that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct Remedy {
    /// As a variant of `compare`, such as `advice=random`.
    setting: String,
    /// From 1 for the best; null where it does not help.
    rank: Option<u64>,
    figures: Figures,
}

/// What a job costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct Figures {
    #[serde(default)]
    data_pages_read: Option<u64>,
    bytes_read: Option<u64>,
    major_faults: Option<u64>,
    elapsed_ns: Option<u64>,
}

impl Figures {
    fn of(run: &Run) -> Self {
        Figures {
            data_pages_read: run.counters.data_pages_read,
            bytes_read: run.counters.bytes_read,
            major_faults: run.counters.major_faults,
            elapsed_ns: run.elapsed_ns,
        }
    }

    /// Bytes read and time as shares of those of `now`.
    fn shares(&self, now: &Figures) -> [f64; 2] {
        let count = |value: Option<u64>| value.unwrap_or(0) as f64;
        let pairs =
            [(self.data_pages_read, now.data_pages_read), (self.elapsed_ns, now.elapsed_ns)];
        pairs.map(|(own, now)| match (count(own), count(now)) {
            (0.0, 0.0) => 1.0,
            (own, now) => own / now,
        })
    }

    /// How good it is beside `now`: below 1 is better. Half the bytes weigh as much as half the
    /// time, so what takes longer than it saves in bytes is no help.
    fn score(&self, now: &Figures) -> f64 {
        self.shares(now).iter().product()
    }

    fn helps(&self, now: &Figures) -> bool {
        let least = 1.0 - LEAST_SHARE;
        self.shares(now).iter().any(|share| *share < least) && self.score(now) < least
    }
}

impl Remedy {
    /// What a user does, such as `MADV_RANDOM`.
    fn label(&self) -> String {
        match self.setting.strip_prefix("advice=") {
            Some(advice) => format!("MADV_{}", advice.to_uppercase()),
            None => self.setting.clone(),
        }
    }

    /// `MADV_RANDOM: 13.5 instead of 766.7 MiB read, ...`
    fn line(&self, now: &Figures, page_bytes: u64) -> String {
        let count = |value: Option<u64>| value.unwrap_or(0) as f64;
        let own = &self.figures;
        let [read, ns] = own.shares(now);
        let price = match () {
            () if ns > 1.0 + LEAST_SHARE => " It takes longer.",
            () if read > 1.0 + LEAST_SHARE => " It reads more.",
            () => "",
        };
        let bytes = |of: &Figures| count(of.data_pages_read) * page_bytes as f64;
        format!(
            "{}: {}, {} instead of {} major faults, {} instead of {}.{price}",
            self.label(),
            bytes_instead(bytes(own), bytes(now)),
            number(count(own.major_faults)),
            number(count(now.major_faults)),
            time(count(own.elapsed_ns)),
            time(count(now.elapsed_ns)),
        )
    }

    /// It as a bar of the bytes that it reads.
    fn bar(name: &str, of: &Figures, rank: Option<u64>, class: &'static str) -> Bar {
        let text = |value: Option<u64>, unit: fn(f64) -> String| {
            value.map_or("-".to_string(), |value| unit(value as f64))
        };
        Bar {
            name: name.to_string(),
            value: of.bytes_read.map(|read| read as f64),
            class,
            texts: vec![
                text(of.bytes_read, bytes),
                text(of.major_faults, number),
                text(of.elapsed_ns, time),
                rank.map_or("-".to_string(), |rank| rank.to_string()),
            ],
        }
    }
}

impl Remedies {
    /// A job that came to `now`, and what it came to with each setting. Those that help have a
    /// rank.
    pub(super) fn new(now: &Run, tried: Vec<(String, Run)>) -> Self {
        let now = Figures::of(now);
        let remedy = |(setting, run): (String, Run)| Remedy {
            setting,
            rank: None,
            figures: Figures::of(&run),
        };
        let mut tried: Vec<Remedy> = tried.into_iter().map(remedy).collect();
        let mut helping: Vec<&mut Remedy> =
            tried.iter_mut().filter(|own| own.figures.helps(&now)).collect();
        helping.sort_by(|a, b| a.figures.score(&now).total_cmp(&b.figures.score(&now)));
        for (rank, remedy) in (1..).zip(helping) {
            remedy.rank = Some(rank);
        }
        Remedies { now, tried }
    }

    /// Those that help, the best first.
    fn helping(&self) -> Vec<&Remedy> {
        let mut helping: Vec<&Remedy> =
            self.tried.iter().filter(|own| own.rank.is_some()).collect();
        helping.sort_by_key(|own| own.rank);
        helping
    }

    /// What would help `job`; where nothing was tried, how to.
    pub(super) fn parts(remedies: Option<&Remedies>, job: &Written, page_bytes: u64) -> Vec<Part> {
        let mut parts = vec![Part::Heading("What would help".to_string())];
        let Some(remedies) = remedies else {
            let text = "Nothing was tried, because the job is too large to run several times. \
                        filemap compare takes settings as variants, such as \
                        --variants baseline,advice=random,read_ahead_kb=128.";
            parts.push(Part::Paragraph(text.to_string()));
            return parts;
        };
        let tried: Vec<String> = remedies.tried.iter().map(Remedy::label).collect();
        let (tried, rules) = (tried.join(", "), rules(job));
        parts.push(Part::Bars(remedies.bars()));
        let helping = remedies.helping();
        if helping.is_empty() {
            parts.push(Part::Paragraph(format!(
                "None of the settings that were tried in the model, by the rules of {rules}: \
                 {tried}."
            )));
            return parts;
        }
        let named = helping.iter().take(MOST_NAMED);
        parts.push(Part::List(named.map(|own| own.line(&remedies.now, page_bytes)).collect()));
        parts.push(Part::Paragraph(format!(
            "Tried in the model on the same accesses, by the rules of {rules}: {tried}."
        )));
        parts
    }

    fn bars(&self) -> Bars {
        let now = Remedy::bar("as it is", &self.now, None, "u0");
        let tried = self.tried.iter().map(|own| {
            let class = if own.rank.is_some() { "u4" } else { "none" };
            Remedy::bar(&own.setting, &own.figures, own.rank, class)
        });
        let heads = ["setting", "read", "major faults", "elapsed, predicted", "rank"];
        Bars::new("Bytes read, by setting", &heads, [now].into_iter().chain(tried).collect())
            .with_note(
                "Settings that were tried in the model; the best has rank 1, and those without a \
                 rank do not help.",
            )
    }
}

/// By whose rules the model went: `Linux 6.12, baseline`.
fn rules(job: &Written) -> String {
    let flags = job.flags();
    let kernel = flags.kernel.as_deref().unwrap_or("6.18");
    format!("Linux {kernel}, {}", flags.with.as_deref().unwrap_or("baseline"))
}

#[cfg(test)]
mod tests {
    use filemap_job::Counters;

    use super::*;

    fn run(pages: u64, major: u64, ms: u64) -> Run {
        Run {
            counters: Counters {
                data_pages_read: Some(pages),
                major_faults: Some(major),
                ..Counters::default()
            },
            elapsed_ns: Some(ms * 1_000_000),
            ..Run::default()
        }
    }

    fn settings(now: Run, tried: &[(&str, Run)]) -> Vec<String> {
        let tried = tried.iter().map(|(setting, run)| (setting.to_string(), run.clone()));
        let remedies = Remedies::new(&now, tried.collect());
        remedies.helping().iter().map(|own| own.setting.clone()).collect()
    }

    #[test]
    fn the_best_is_first_and_what_costs_more_than_it_saves_is_left_out() {
        let tried = [
            ("half", run(5000, 100, 100)),
            ("same", run(9999, 100, 100)),
            ("tenth", run(1000, 900, 200)),
            ("slow", run(9000, 9000, 6000)),
            ("faster", run(10_500, 50, 50)),
        ];
        assert_eq!(settings(run(10_000, 100, 100), &tried), ["tenth", "half", "faster"]);
        assert_eq!(settings(run(0, 0, 0), &[("a", run(0, 0, 0))]), ["a"; 0]);
    }

    #[test]
    fn what_it_brings_and_costs_is_said() {
        let tried = vec![("advice=random".to_string(), run(3456, 3456, 250))];
        let remedies = Remedies::new(&run(196_275, 207, 190), tried);
        assert_eq!(
            remedies.tried[0].line(&remedies.now, 4096),
            "MADV_RANDOM: 13.5 instead of 766.7 MiB, 3456 instead of 207 major faults, 250 ms \
             instead of 190 ms. It takes longer."
        );
    }

    #[test]
    fn where_nothing_helps_it_says_so() {
        let tried = vec![("advice=random".to_string(), run(10, 10, 10))];
        let remedies = Remedies::new(&run(10, 10, 10), tried);
        let job = Written::Flags(Box::default());
        let parts = Remedies::parts(Some(&remedies), &job, 4096);
        let [_, _, Part::Paragraph(text)] = &parts[..] else { panic!("a sentence") };
        assert_eq!(
            text,
            "None of the settings that were tried in the model, by the rules of Linux 6.18, \
             baseline: MADV_RANDOM."
        );
    }
}
