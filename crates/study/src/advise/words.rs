//! The answer in words: a line for each file, and the code to write.

use super::answer::Answer;
use super::record::{AdviceTrial, FileAdvice};
use super::source_changes::{self, SourceChange, SourceContext};
use super::{AdviceChange, AdviseRecord, FileContents, TrialOutcome, for_all};
use filemap_report::units::{number, time};

/// Maximum number of ties named.
const MAX_NAMED_TIES: usize = 3;

/// Maximum number of files without an answer that are named.
const MAX_NAMED_FILES: usize = 3;

/// Files without an answer are not named below one page in this many.
const MIN_NAMED_PART: u64 = 100;

/// Ratio of pages read to pages used up to which there is nothing to gain.
const USES_WHAT_IT_READS: f64 = 1.10;

impl AdviseRecord {
    /// Adds the answers that follow from the trials. `name` is the recording, `program` the shell
    /// command of the program if known.
    pub(super) fn with_conclusions(mut self, name: &str, program: Option<&str>) -> Self {
        self.name = name.to_string();
        self.answer = self.whole_answer();
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

/// The answer for each file, for the program, and for the machine.
fn lines(advice: &AdviseRecord) -> Vec<String> {
    let mut lines: Vec<String> = advice.files.iter().map(|file| line(advice, file)).collect();
    lines.extend(left_out(advice));
    // A single change is already named by the file's line.
    let own = advice.own_answer().best.map(|best| &advice.tried[best]);
    lines.extend(own.filter(|best| best.does.len() > 1).map(|best| together(advice, best)));
    lines.extend(for_all::lines(advice));
    lines
}

/// The line for `best`, several changes.
pub(super) fn together(advice: &AdviseRecord, best: &AdviceTrial) -> String {
    let pages = number(best.outcome.data_pages_read as f64);
    let times = change_text(&best.outcome, &advice.now);
    let price = price(best.outcome.data_pages_read, advice.now.data_pages_read);
    format!("Together: {}: {pages} pages, {times}{price}.", best.label())
}

/// The files that get no answer.
fn left_out(advice: &AdviseRecord) -> Option<String> {
    let least = advice.now.data_pages_read / MIN_NAMED_PART;
    let pages: u64 = advice.left_out.iter().map(|file| file.pages_read).sum();
    if pages == 0 || pages < least {
        return None;
    }
    let named = advice.left_out.iter().take(MAX_NAMED_FILES).map(|file| file.name.as_str());
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match advice.left_out.len().saturating_sub(MAX_NAMED_FILES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let is_system = advice.left_out.iter().all(|file| file.contents.is_of_system());
    let why = if is_system { "files of the system" } else { "files that --files does not match" };
    Some(format!(
        "No advice for {named}{more}: {why}, with {} of {} pages; --files '*' is about all.",
        number(pages as f64),
        number(advice.now.data_pages_read as f64)
    ))
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
    line
}

/// The sentence for an answer that is no better than doing nothing at another latency.
pub(super) const TIES_WITH_NOW: &str = " It is a tie with doing nothing: at half or double the \
                                        device's latency it gains nothing worth the change.";

/// The ties, and whether doing nothing ties.
fn tie(advice: &AdviseRecord, Answer { ties, ties_with_now, .. }: &Answer) -> String {
    let mut text = String::new();
    if *ties_with_now {
        text += TIES_WITH_NOW;
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
pub(super) fn change_text(own: &TrialOutcome, now: &TrialOutcome) -> String {
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
    let of_files = advice.files.iter().filter_map(|file| file.answer.best);
    let best = of_files.chain(advice.own_answer().best).chain(for_all::named(advice));
    for change in best.flat_map(|best| &advice.tried[best].does) {
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    let of_change = |change: &AdviceChange| {
        let file = advice.files.iter().find(|file| change.file() == Some(file.number));
        let contents = file.map_or(FileContents::Other, |file| file.contents);
        let devices = &advice.read_ahead_devices;
        let context = SourceContext { contents, program: advice.program.as_ref(), devices };
        SourceChange { change: change.label(), lines: source_changes::lines(change, context) }
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

    use super::super::record::{LeftOutFile, ReadAheadDevice};
    use super::super::tests::{on, outcome, tried};
    use super::super::{AdviceTarget, ProgramFacts};
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
        advice.program = Some(ProgramFacts::default());
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
                 filemap govern.",
                "The readahead size of its device, a setting of every program there, is best as 0 \
                 KiB (8192 KiB now): 3624 pages, 420 ms instead of 1.60 s.",
                "What to write for MADV_RANDOM on data.mdb:",
                "LMDB C",
                "What to write for read_ahead_kb=0:",
                "As root",
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
        assert!(words[0].ends_with("filemap govern: 3900 pages (1.1x), 150 ms instead of 1.60 s."));
        assert!(words[1].contains("is best as 64 KiB (8192 KiB now): 4000 pages"), "{words:?}");
    }

    /// Each file is best read with another size, and the device has one.
    #[test]
    fn a_device_has_one_readahead_size_which_is_named_last() {
        let of_two = |files: [u64; 2], ms: u64| TrialOutcome {
            data_pages_read: files.iter().sum(),
            files: files.to_vec(),
            ..outcome(0, ms)
        };
        let random = |file: usize, name: &str| {
            AdviceChange::Madvise(AdviceTarget { file, ..on(name) }, ReadHint::Random)
        };
        let mut advice = tried(
            of_two([30_000, 10_000], 400),
            vec![
                (AdviceChange::ReadAhead(64), of_two([2000, 9000], 150)),
                (AdviceChange::ReadAhead(512), of_two([12_000, 3000], 200)),
                (random(0, "index"), of_two([1000, 10_000], 180)),
                (random(1, "log"), of_two([30_000, 9960], 399)),
            ],
        );
        let mut both = AdviceTrial::new(
            vec![AdviceChange::ReadAhead(64), random(0, "index")],
            of_two([1000, 9000], 110),
        );
        both.changes.reverse();
        advice.tried.push(both);
        let second = FileAdvice { name: "log".to_string(), number: 1, ..advice.files[0].clone() };
        advice.files[0].name = "index".to_string();
        advice.files.push(second);
        let (device, setting) =
            ("vda".to_string(), "/sys/block/vda/queue/read_ahead_kb".to_string());
        advice.read_ahead_devices = vec![ReadAheadDevice { device, setting, files: 2 }];
        let advice = advice.with_conclusions("", None);
        let words = &advice.words;
        assert!(words[0].contains("madvise(MADV_RANDOM) on index"), "{words:?}");
        // Worth 40 of 40 000 pages and no time.
        assert!(words[1].contains("Nothing that was tried"), "{words:?}");
        assert_eq!(
            words[2..],
            ["The readahead size of vda, a setting of every program there, is best as 64 KiB for \
              the 2 files on it (8192 KiB now): 11 000 pages, 150 ms instead of 400 ms. Together \
              with MADV_RANDOM on index: 10 000 pages, 110 ms."]
        );
        let sizes = words.iter().filter(|line| line.contains("read_ahead_kb=")).count();
        assert_eq!(sizes, 0, "{words:?}");
        let written = advice.to_write.last().unwrap();
        assert!(written.lines[0].text.starts_with("echo 64 > /sys/block/vda/queue/read_ahead_kb"));
    }

    #[test]
    fn files_without_an_answer_are_counted() {
        let mut advice = tried(outcome(1000, 100), Vec::new());
        let file = |name: &str, pages_read| LeftOutFile {
            name: name.to_string(),
            contents: FileContents::Program,
            pages_read,
        };
        advice.left_out = vec![file("libjvm.so", 300), file("libc.so.6", 100)];
        let words = advice.clone().with_conclusions("", None).words;
        let expected = "No advice for libjvm.so, libc.so.6: files of the system, with 400 of 1000 \
                        pages; --files '*' is about all.";
        assert_eq!(words[1], expected);
        advice.left_out = vec![file("LC_CTYPE", 9)];
        assert_eq!(advice.with_conclusions("", None).words.len(), 1);
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
