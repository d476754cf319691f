//! What would have helped a job: settings that a user can change, tried in the model.

use filemap_job::Run;
use serde_json::{Value, json};

use filemap_report::Part;
use filemap_report::units::{bytes_instead, number, time};

/// A setting helps that takes away more than this share of what is read or of the time.
pub(crate) const LEAST_SHARE: f64 = 0.05;

/// Settings that are named where more help.
const MOST_NAMED: usize = 4;

/// What was tried.
#[derive(Clone, Debug, PartialEq)]
pub enum Remedies {
    /// The job in the model as it is, and with each setting.
    Tried {
        /// By whose rules the model went: `Linux 6.12, baseline`.
        rules: String,
        /// As it is.
        now: Box<Run>,
        /// With other settings.
        trials: Vec<Trial>,
    },
    /// Nothing: it would take too long.
    TooLarge,
}

/// A setting, and what the model does with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// What a user does, such as `MADV_RANDOM`.
    pub label: String,
    /// The setting as a variant of `compare`, such as `advice=random`.
    pub setting: String,
    /// What came out.
    pub run: Run,
}

/// A run by what counts here.
#[derive(Clone, Copy)]
struct Cost {
    read: f64,
    ns: f64,
    major_faults: f64,
}

impl Cost {
    fn of(run: &Run, page_bytes: f64) -> Self {
        let count = |value: Option<u64>| value.unwrap_or(0) as f64;
        Cost {
            read: count(run.counters.data_pages_read) * page_bytes,
            ns: count(run.elapsed_ns),
            major_faults: count(run.counters.major_faults),
        }
    }

    /// Bytes read and time as shares of those of `now`.
    fn shares(self, now: Cost) -> [f64; 2] {
        [(self.read, now.read), (self.ns, now.ns)].map(|(own, now)| match now {
            0.0 if own == 0.0 => 1.0,
            now => own / now,
        })
    }

    /// How good it is beside `now`: below 1 is better. Half the bytes weigh as much as half the
    /// time, so what takes longer than it saves in bytes is no help.
    fn score(self, now: Cost) -> f64 {
        self.shares(now).iter().product()
    }

    fn helps(self, now: Cost) -> bool {
        let least = 1.0 - LEAST_SHARE;
        self.shares(now).iter().any(|share| *share < least) && self.score(now) < least
    }
}

impl Remedies {
    /// The trials that help, the best first.
    pub fn helping(&self, page_bytes: u64) -> Vec<&Trial> {
        let Remedies::Tried { now, trials, .. } = self else { return Vec::new() };
        let page_bytes = page_bytes as f64;
        let now = Cost::of(now, page_bytes);
        let cost = |trial: &Trial| Cost::of(&trial.run, page_bytes);
        let mut helping: Vec<_> = trials.iter().filter(|trial| cost(trial).helps(now)).collect();
        helping.sort_by(|a, b| cost(a).score(now).total_cmp(&cost(b).score(now)));
        helping
    }

    pub(super) fn parts(&self, page_bytes: u64) -> Vec<Part> {
        let mut parts = vec![Part::Heading("What would help".to_string())];
        let Remedies::Tried { rules, now, trials } = self else {
            let text = "Nothing was tried, because the job is too large to run several times. \
                        filemap compare takes settings as variants, such as \
                        --variants baseline,advice=random,read_ahead_kb=128.";
            parts.push(Part::Paragraph(text.to_string()));
            return parts;
        };
        let labels: Vec<&str> = trials.iter().map(|trial| trial.label.as_str()).collect();
        let tried = labels.join(", ");
        let helping = self.helping(page_bytes);
        if helping.is_empty() {
            let text = format!(
                "None of the settings that were tried in the model, by the rules of {rules}: \
                 {tried}."
            );
            parts.push(Part::Paragraph(text));
            return parts;
        }
        let page_bytes = page_bytes as f64;
        let now = Cost::of(now, page_bytes);
        let named = helping.iter().take(MOST_NAMED);
        let line = |trial: &&Trial| line(&trial.label, Cost::of(&trial.run, page_bytes), now);
        parts.push(Part::List(named.map(line).collect()));
        parts.push(Part::Paragraph(format!(
            "Tried in the model on the same accesses, by the rules of {rules}: {tried}."
        )));
        parts
    }

    pub(super) fn json(&self, page_bytes: u64) -> Value {
        let Remedies::Tried { now, trials, .. } = self else { return Value::Null };
        let helping = self.helping(page_bytes);
        let figures = |run: &Run| {
            json!({
                "data_pages_read": run.counters.data_pages_read,
                "bytes_read": run.counters.bytes_read,
                "major_faults": run.counters.major_faults,
                "elapsed_ns": run.elapsed_ns,
            })
        };
        let trial = |trial: &Trial| {
            let rank = helping.iter().position(|helping| *helping == trial);
            json!({
                "setting": trial.setting,
                "rank": rank.map(|rank| rank + 1),
                "figures": figures(&trial.run),
            })
        };
        let trials: Vec<Value> = trials.iter().map(trial).collect();
        json!({ "now": figures(now), "tried": trials })
    }
}

/// `MADV_RANDOM: 13.5 instead of 766.7 MiB read, ...`
fn line(label: &str, own: Cost, now: Cost) -> String {
    let [read, ns] = own.shares(now);
    let price = match () {
        () if ns > 1.0 + LEAST_SHARE => " It takes longer.",
        () if read > 1.0 + LEAST_SHARE => " It reads more.",
        () => "",
    };
    format!(
        "{label}: {}, {} instead of {} major faults, {} instead of {}.{price}",
        bytes_instead(own.read, now.read),
        number(own.major_faults),
        number(now.major_faults),
        time(own.ns),
        time(now.ns),
    )
}

#[cfg(test)]
mod tests {
    use filemap_job::Counters;

    use super::*;

    const RULES: &str = "Linux 6.18, baseline";

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

    fn trial(label: &str, run: Run) -> Trial {
        Trial { label: label.to_string(), setting: label.to_lowercase(), run }
    }

    fn labels(now: Run, trials: Vec<Trial>) -> Vec<String> {
        let remedies = Remedies::Tried { rules: RULES.to_string(), now: Box::new(now), trials };
        remedies.helping(4096).iter().map(|trial| trial.label.clone()).collect()
    }

    #[test]
    fn the_best_is_first_and_what_costs_more_than_it_saves_is_left_out() {
        let trials = vec![
            trial("HALF", run(5000, 100, 100)),
            trial("SAME", run(9999, 100, 100)),
            trial("TENTH", run(1000, 900, 200)),
            trial("SLOW", run(9000, 9000, 6000)),
            trial("FASTER", run(10_500, 50, 50)),
        ];
        assert_eq!(labels(run(10_000, 100, 100), trials), ["TENTH", "HALF", "FASTER"]);
        assert_eq!(labels(run(0, 0, 0), vec![trial("A", run(0, 0, 0))]), ["A"; 0]);
    }

    #[test]
    fn what_it_brings_and_costs_is_said() {
        let [own, now] =
            [run(3456, 3456, 250), run(196_275, 207, 190)].map(|r| Cost::of(&r, 4096.0));
        assert_eq!(
            line("MADV_RANDOM", own, now),
            "MADV_RANDOM: 13.5 instead of 766.7 MiB, 3456 instead of 207 major faults, 250 ms \
             instead of 190 ms. It takes longer."
        );
    }

    #[test]
    fn where_nothing_helps_it_says_so() {
        let remedies = Remedies::Tried {
            rules: RULES.to_string(),
            now: Box::new(run(10, 10, 10)),
            trials: vec![trial("MADV_RANDOM", run(10, 10, 10))],
        };
        let [_, Part::Paragraph(text)] = &remedies.parts(4096)[..] else { panic!("a sentence") };
        assert_eq!(
            text,
            "None of the settings that were tried in the model, by the rules of Linux 6.18, \
             baseline: MADV_RANDOM."
        );
    }
}
