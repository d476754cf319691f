//! The answer in words: a line for each file, and the code to write.

use super::answer::Answer;
use super::record::{AdviceTrial, FileAdvice};
use super::source_changes::{self, SourceChange};
use super::{AdviceChange, AdviseRecord, FileContents, TrialOutcome};
use filemap_report::units::{number, time};

/// Maximum number of ties named.
const MAX_NAMED_TIES: usize = 3;

/// Ratio of pages read to pages used up to which there is nothing to gain.
const USES_WHAT_IT_READS: f64 = 1.10;

impl AdviseRecord {
    /// Adds the answers that follow from the trials. `name` is the recording, `program` the shell
    /// command of the program if known.
    pub(super) fn with_conclusions(mut self, name: &str, program: Option<&str>) -> Self {
        self.name = name.to_string();
        self.answer = self.answer_among(|_| true);
        let answers: Vec<Answer> =
            self.files.iter().map(|file| self.file_answer(file.number)).collect();
        self.files.iter_mut().zip(answers).for_each(|(file, answer)| file.answer = answer);
        for (at, tried) in self.tried.iter_mut().enumerate() {
            let (own, now) = (tried.outcome.figures(), self.now.figures());
            tried.verdict = self.answer.verdict(at, own, now).to_string();
        }
        self.words = lines(&self);
        self.to_write = source_changes(&self);
        self.governed = governed(&self, program.unwrap_or("PROGRAM"));
        self
    }
}

/// The answer for each file, and for the program.
fn lines(advice: &AdviseRecord) -> Vec<String> {
    let mut lines: Vec<String> = advice.files.iter().map(|file| line(advice, file)).collect();
    let rest = advice.now.files.len() - advice.files.len();
    if rest > 0 {
        let plural = if rest == 1 { "file reads" } else { "files read" };
        lines.push(format!("{rest} more {plural} next to nothing."));
    }
    // A single change is already named by the file's line.
    lines.extend(advice.best().filter(|best| best.does.len() > 1).map(|best| {
        let pages = number(best.outcome.data_pages_read as f64);
        let times = change_text(&best.outcome, &advice.now);
        let price = price(best.outcome.data_pages_read, advice.now.data_pages_read);
        format!("Together: {}: {pages} pages, {times}{price}.", best.label())
    }));
    lines
}

fn line(advice: &AdviseRecord, file_advice: &FileAdvice) -> String {
    let (read, used) = (file_advice.pages_read, file_advice.pages_used);
    let now = format!(
        "{} reads {} pages for {} touched ({}).",
        file_advice.name,
        number(read as f64),
        number(used as f64),
        times(read, used)
    );
    let Some(best) = file_advice.answer.best else {
        let uses = read as f64 <= used as f64 * USES_WHAT_IT_READS;
        let why = if uses {
            "Nothing helps: it uses what it reads."
        } else {
            "Nothing that was tried is faster, or reads less without taking longer."
        };
        return format!("{now} {why}");
    };
    let best = &advice.tried[best];
    let pages = best.outcome.files[file_advice.number];
    let mut line = format!(
        "{now} {}: {} pages ({}), {}{}.",
        best.does[0].call(),
        number(pages as f64),
        times(pages, used),
        change_text(&best.outcome, &advice.now),
        price(pages, read)
    );
    line += &tie(advice, &file_advice.answer);
    line += &frugal(advice, file_advice);
    line += &for_this_program(advice, file_advice.number, best);
    line
}

/// The fastest change limited to this program, if `best` affects every program.
fn for_this_program(advice: &AdviseRecord, file: usize, best: &AdviceTrial) -> String {
    let is_own =
        |advice_trial: &AdviceTrial| advice_trial.does.iter().all(|change| !change.is_for_all());
    if is_own(best) {
        return String::new();
    }
    let now = advice.now.file_figures(file);
    let helps = |advice_trial: &&AdviceTrial| {
        is_own(advice_trial)
            && advice_trial.is_about(file)
            && advice_trial.outcome.file_figures(file).helps(now)
    };
    let own = advice.tried.iter().filter(helps).min_by_key(|trial| trial.outcome.elapsed_ns);
    own.map_or(String::new(), |own| {
        format!(
            " That is a setting for every program. For this one alone: {}: {} pages, {}.",
            own.label(),
            number(own.outcome.files[file] as f64),
            time(own.outcome.elapsed_ns as f64)
        )
    })
}

/// The ties, and whether doing nothing ties.
fn tie(advice: &AdviseRecord, Answer { ties, ties_with_now, .. }: &Answer) -> String {
    let mut text = String::new();
    if *ties_with_now {
        text += " It is a tie with doing nothing: at half or double the device's latency it \
                 gains nothing worth the change.";
    }
    if !ties.is_empty() {
        let named = ties.iter().take(MAX_NAMED_TIES).map(|tie| advice.tried[*tie].label());
        let named = named.collect::<Vec<_>>().join(", ");
        let more = match ties.len().saturating_sub(MAX_NAMED_TIES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        text += &format!(" Tied with it in time: {named}{more}.");
    }
    text
}

/// What a faster change costs in pages, if it reads more than the program does now.
fn price(pages: u64, now: u64) -> String {
    if pages <= now {
        return String::new();
    }
    match pages as f64 / now.max(1) as f64 {
        large if large >= 2.0 => format!(", for {large:.1} times the pages"),
        small => format!(", for {:.0} % more pages", ((small - 1.0) * 100.0).ceil()),
    }
}

/// The change that reads least, if that is another one than the fastest.
fn frugal(advice: &AdviseRecord, file_advice: &FileAdvice) -> String {
    let least = file_advice.answer.reads_least.map(|least| &advice.tried[least]);
    least.map_or(String::new(), |least| {
        format!(
            " {} reads least: {} pages, {}.",
            least.label(),
            number(least.outcome.files[file_advice.number] as f64),
            time(least.outcome.elapsed_ns as f64)
        )
    })
}

/// `0.4 s instead of 1.6 s`.
fn change_text(own: &TrialOutcome, now: &TrialOutcome) -> String {
    format!("{} instead of {}", time(own.elapsed_ns as f64), time(now.elapsed_ns as f64))
}

/// `150x`.
fn times(read: u64, used: u64) -> String {
    match read as f64 / used.max(1) as f64 {
        large if large >= 9.95 => format!("{large:.0}x"),
        small => format!("{small:.1}x"),
    }
}

/// Code for the answers, each once.
fn source_changes(advice: &AdviseRecord) -> Vec<SourceChange> {
    let mut changes: Vec<&AdviceChange> = Vec::new();
    for answer in advice.files.iter().map(|file| &file.answer).chain([&advice.answer]) {
        let best = answer.best.iter().flat_map(|best| &advice.tried[*best].does);
        // A machine-wide setting is not worth a tie with doing nothing.
        for change in best.filter(|change| !(answer.ties_with_now && change.is_for_all())) {
            if !changes.contains(&change) {
                changes.push(change);
            }
        }
    }
    let of_change = |change: &AdviceChange| {
        let file = advice.files.iter().find(|file| change.file() == Some(file.number));
        let contents = file.map_or(FileContents::Other, |file| file.contents);
        SourceChange { change: change.label(), lines: source_changes::lines(change, contents) }
    };
    let written = changes.into_iter().map(of_change);
    written.filter(|written| !written.lines.is_empty()).collect()
}

/// Effect of the governor for a program that cannot be changed, if it helps.
fn governed(advice: &AdviseRecord, program: &str) -> Option<String> {
    let own = &advice.tried.iter().find(|change| change.does == [AdviceChange::Governor])?.outcome;
    own.figures().helps(advice.now.figures()).then(|| {
        format!(
            "Where the program cannot be changed: filemap govern -- {program}: {} instead of {} \
             pages, {}.",
            number(own.data_pages_read as f64),
            number(advice.now.data_pages_read as f64),
            change_text(own, &advice.now)
        )
    })
}

#[cfg(test)]
mod tests {
    use filemap_core::address::vma::ReadHint;

    use super::super::tests::{on, outcome, tried};
    use super::*;

    /// The words for a database with `used_pages` used: lines, places of code, the governor's
    /// effect.
    fn words_for(
        now: TrialOutcome,
        used_pages: u64,
        trials: Vec<(AdviceChange, TrialOutcome)>,
    ) -> Vec<String> {
        let mut advice = tried(now, trials);
        advice.files[0].pages_used = used_pages;
        advice.files[0].contents = FileContents::Lmdb;
        let advice = advice.with_conclusions("lookups", Some("./lookups data.mdb"));
        let written = advice.to_write.into_iter().flat_map(|SourceChange { change, lines }| {
            let places: Vec<String> = lines.into_iter().map(|line| line.place).collect();
            [format!("What to write for {change}:"), places.join(" ")]
        });
        advice.words.into_iter().chain(written).chain(advice.governed).collect()
    }

    #[test]
    fn answer_has_summary_and_source_line() {
        let trials = vec![
            (AdviceChange::ReadAhead(0), outcome(3624, 420)),
            (AdviceChange::Madvise(on("data.mdb"), ReadHint::Random), outcome(3624, 430)),
            (AdviceChange::Madvise(on("data.mdb"), ReadHint::Sequential), outcome(700_000, 1700)),
            (AdviceChange::Governor, outcome(3700, 440)),
        ];
        assert_eq!(
            words_for(outcome(545_166, 1600), 3624, trials),
            [
                "data.mdb reads 545 166 pages for 3624 touched (150x). madvise(MADV_RANDOM) on \
                 data.mdb: 3624 pages (1.0x), 430 ms instead of 1.60 s. Tied with it in time: \
                 read_ahead_kb=0, filemap govern.",
                "What to write for MADV_RANDOM on data.mdb:",
                "LMDB C Python Rust",
                "Where the program cannot be changed: filemap govern -- ./lookups data.mdb: 3700 \
                 instead of 545 166 pages, 440 ms instead of 1.60 s.",
            ]
        );
    }

    #[test]
    fn names_machine_wide_settings() {
        let trials = vec![
            (AdviceChange::ReadAhead(64), outcome(4000, 100)),
            (AdviceChange::Governor, outcome(3900, 150)),
        ];
        let words = words_for(outcome(545_166, 1600), 3624, trials);
        assert!(words[0].ends_with("For this one alone: filemap govern: 3900 pages, 150 ms."));
    }

    #[test]
    fn explains_if_nothing_helps() {
        let slower = || vec![(AdviceChange::ReadAhead(0), outcome(1000, 900))];
        let scan = words_for(outcome(1010, 100), 1000, slower());
        let expected = "data.mdb reads 1010 pages for 1000 touched (1.0x). Nothing helps: it uses \
                        what it reads.";
        assert_eq!(scan, [expected]);
        let dense = words_for(outcome(5000, 100), 1000, slower());
        assert!(dense[0].ends_with("reads less without taking longer."), "{dense:?}");
    }

    #[test]
    fn latency_dependent_answer_is_a_tie() {
        let mut random = outcome(10, 90);
        random.elapsed_ns_at_double_latency = 190_000_000;
        let mut now = outcome(1000, 100);
        now.elapsed_ns_at_half_latency = 95_000_000;
        now.elapsed_ns_at_double_latency = 110_000_000;
        let trials = vec![(AdviceChange::Madvise(on("data.mdb"), ReadHint::Random), random)];
        let words = words_for(now, 10, trials);
        assert!(words[0].contains("a tie with doing nothing"), "{words:?}");
    }
}
