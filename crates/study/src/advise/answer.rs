//! The answer in words: a line for each file, and what to write.

use serde::Serialize;

use super::choice::{Beside, Choice};
use super::contents::Contents;
use super::{Change, Figures, FileUse, Outcome, Study, Trial, among, answer, writing};
use filemap_report::Part;
use filemap_report::units::{number, time};

/// Files of which less than this share of all pages are read get no line of their own.
const LEAST_FILE_SHARE: f64 = 0.01;

/// Most ties that are named.
const MOST_TIES: usize = 3;

/// Up to so many pages for one that is used there is nothing to gain.
const USES_WHAT_IT_READS: f64 = 1.10;

/// What is answered for one file.
pub struct FileAnswer<'a> {
    /// The file, as an index.
    pub file: usize,
    /// What it is.
    pub of: &'a FileUse,
    /// The choice among changes of this file and of everything, as indexes of all trials.
    pub choice: Choice,
}

/// An answer for each file that counts, the one that reads most first.
pub fn files(study: &Study) -> Vec<FileAnswer<'_>> {
    let all: u64 = study.now.pages.iter().sum();
    let mut counting: Vec<usize> = (0..study.files.len())
        .filter(|file| study.now.pages[*file] as f64 >= all as f64 * LEAST_FILE_SHARE)
        .filter(|file| study.now.pages[*file] > 0)
        .collect();
    counting.sort_by_key(|file| std::cmp::Reverse(study.now.pages[*file]));
    counting
        .into_iter()
        .map(|file| {
            let own = |trial: &Trial| {
                matches!(trial.changes.as_slice(), [change]
                    if change.file().is_none_or(|of| of == file))
            };
            let alone: Vec<usize> =
                (0..study.trials.len()).filter(|index| own(&study.trials[*index])).collect();
            let trials: Vec<Trial> =
                alone.iter().map(|index| study.trials[*index].clone()).collect();
            let tried = |trial: &Trial| {
                let mut tried = trial.tried();
                tried.figures = trial.outcome.of_file(file);
                tried
            };
            let choice = match among(study.now.of_file(file), &trials, tried) {
                None | Some(Choice::Nothing) => Choice::Nothing,
                Some(Choice::Best { best, ties, ties_with_now }) => Choice::Best {
                    best: alone[best],
                    ties: ties.into_iter().map(|tie| alone[tie]).collect(),
                    ties_with_now,
                },
            };
            FileAnswer { file, of: &study.files[file], choice }
        })
        .collect()
}

/// The answer as it is told.
pub struct Words {
    /// What helps each file, and what is best together.
    pub lines: Vec<String>,
    /// What to write for that.
    pub written: Vec<Written>,
    /// What the governor does for a program that cannot be changed, where that helps.
    pub governed: Option<String>,
}

/// What to write for a change.
#[derive(Serialize, schemars::JsonSchema)]
pub struct Written {
    /// The change.
    change: String,
    lines: Vec<WrittenLine>,
}

/// What to write in one place.
#[derive(Serialize, schemars::JsonSchema)]
struct WrittenLine {
    /// A language, or a setting.
    place: &'static str,
    text: String,
}

/// The answer for each file, what is best together, and what to write.
pub fn words(study: &Study) -> Words {
    let files = files(study);
    let mut lines: Vec<String> = files.iter().map(|file| line(study, file)).collect();
    let rest = study.files.len() - files.len();
    if rest > 0 {
        let plural = if rest == 1 { "file reads" } else { "files read" };
        lines.push(format!("{rest} more {plural} next to nothing."));
    }
    lines.extend(together(study));
    Words { lines, written: written(study, &files), governed: governed(study) }
}

/// `words` as parts of a report.
pub fn parts(words: &Words) -> Vec<Part> {
    let mut parts = vec![Part::List(words.lines.clone())];
    for Written { change, lines } in &words.written {
        parts.push(Part::Paragraph(format!("What to write for {change}:")));
        let facts = lines.iter().map(|line| (line.place.to_string(), line.text.clone()));
        parts.push(Part::Facts(facts.collect()));
    }
    parts.extend(words.governed.clone().map(Part::Paragraph));
    parts
}

fn line(study: &Study, answer: &FileAnswer) -> String {
    let (read, used) = (study.now.pages[answer.file], answer.of.used_pages);
    let now = format!(
        "{} reads {} pages for {} touched ({}).",
        answer.of.name,
        number(read as f64),
        number(used as f64),
        times(read, used)
    );
    let Choice::Best { best, ties, ties_with_now } = &answer.choice else {
        let uses = read as f64 <= used as f64 * USES_WHAT_IT_READS;
        return match uses {
            true => format!("{now} Nothing helps: it uses what it reads."),
            false => format!("{now} Nothing that was tried helps without taking longer."),
        };
    };
    let trial = &study.trials[*best];
    let pages = trial.outcome.pages[answer.file];
    let named = call(&trial.changes[0]);
    let mut line = format!(
        "{now} {named}: {} pages ({}), {}.",
        number(pages as f64),
        times(pages, used),
        instead(&trial.outcome, &study.now)
    );
    line += &tie(study, ties, *ties_with_now);
    line += &for_this_program(study, answer.file, trial);
    line
}

/// The fastest that helps this program alone, where `best` is a setting for every program.
fn for_this_program(study: &Study, file: usize, best: &Trial) -> String {
    let is_own = |trial: &&Trial| trial.changes.iter().all(|change| !change.is_for_all());
    if is_own(&best) {
        return String::new();
    }
    let of_file =
        |trial: &&Trial| trial.changes.iter().all(|of| of.file().is_none_or(|of| of == file));
    let now = study.now.of_file(file);
    let helps = |trial: &&Trial| trial.outcome.of_file(file).verdict(now) == Beside::Better;
    let own = study.trials.iter().filter(is_own).filter(of_file).filter(helps);
    let own = own.min_by(|a, b| a.outcome.ns[0].total_cmp(&b.outcome.ns[0]));
    own.map_or(String::new(), |own| {
        format!(
            " That is a setting for every program. For this one alone: {}: {} pages, {}.",
            own.label(),
            number(own.outcome.pages[file] as f64),
            time(own.outcome.ns[0])
        )
    })
}

/// What is as good, and whether doing nothing is.
fn tie(study: &Study, ties: &[usize], ties_with_now: bool) -> String {
    let mut text = String::new();
    if ties_with_now {
        text += " It is a tie with doing nothing: at half or double the device's latency it \
                 gains nothing worth the change.";
    }
    if !ties.is_empty() {
        let named: Vec<String> =
            ties.iter().take(MOST_TIES).map(|tie| study.trials[*tie].label()).collect();
        let more = match ties.len().saturating_sub(MOST_TIES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        text += &format!(" Tied with it in time: {}{more}.", named.join(", "));
    }
    text
}

/// The answer for the whole program, where that is not the one thing that a file's line names.
fn together(study: &Study) -> Option<String> {
    let Choice::Best { best, .. } = answer(&study.now, &study.trials) else { return None };
    let trial = &study.trials[best];
    (trial.changes.len() > 1).then(|| {
        let pages = trial.outcome.figures().pages;
        let times = instead(&trial.outcome, &study.now);
        format!("Together: {}: {} pages, {times}.", trial.label(), number(pages))
    })
}

/// `0.4 s instead of 1.6 s`.
fn instead(own: &Outcome, now: &Outcome) -> String {
    format!("{} instead of {}", time(own.ns[0]), time(now.ns[0]))
}

/// `150x`.
pub fn times(read: u64, used: u64) -> String {
    match read as f64 / used.max(1) as f64 {
        large if large >= 9.95 => format!("{large:.0}x"),
        small => format!("{small:.1}x"),
    }
}

/// What is called or set, as a sentence names it.
fn call(change: &Change) -> String {
    let on = |call: &str, name: &str| format!("{call} on {name}");
    match change {
        Change::Madvise(target, hint) => {
            on(&format!("madvise(MADV_{})", super::change::hint_name(*hint)), &target.name)
        }
        Change::Part(target, hint, (first, pages)) => format!(
            "madvise(MADV_{}) on {} pages of {} from page {}, MADV_NORMAL on the rest",
            super::change::hint_name(*hint),
            number(*pages as f64),
            target.name,
            number(*first as f64)
        ),
        Change::WillNeed(target, _) => {
            on("madvise(MADV_WILLNEED) of what is used, once it is mapped,", &target.name)
        }
        Change::Populate(target, _) => {
            on("madvise(MADV_POPULATE_READ) of what is used, once it is mapped,", &target.name)
        }
        change => change.label(),
    }
}

/// What to write for the answers, each once.
fn written(study: &Study, files: &[FileAnswer]) -> Vec<Written> {
    let mut changes: Vec<(&Change, Contents)> = Vec::new();
    let together = answer(&study.now, &study.trials);
    let chosen = files.iter().map(|file| &file.choice).chain([&together]);
    // Nobody changes the whole machine for a tie with doing nothing.
    let worth = chosen.flat_map(|choice| match choice {
        Choice::Best { best, ties_with_now, .. } => study.trials[*best]
            .changes
            .iter()
            .filter(|change| !(*ties_with_now && change.is_for_all()))
            .collect(),
        Choice::Nothing => Vec::new(),
    });
    for change in worth {
        let contents = change.file().map_or(Contents::Other, |file| study.files[file].contents);
        if !changes.iter().any(|(known, _)| *known == change) {
            changes.push((change, contents));
        }
    }
    let of_change = |(change, contents): (&Change, Contents)| {
        let lines = writing::lines(change, contents).into_iter();
        let lines = lines.map(|(place, text)| WrittenLine { place, text });
        Written { change: change.label(), lines: lines.collect() }
    };
    let written = changes.into_iter().map(of_change);
    written.filter(|written| !written.lines.is_empty()).collect()
}

/// What the governor does for a program that cannot be changed, where that helps.
fn governed(study: &Study) -> Option<String> {
    let trial = study.trials.iter().find(|trial| trial.changes == [Change::Governor])?;
    let now: Figures = study.now.figures();
    let own = trial.outcome.figures();
    (own.verdict(now) == Beside::Better).then(|| {
        let program = study.program.as_deref().unwrap_or("PROGRAM");
        format!(
            "Where the program cannot be changed: filemap govern -- {program}: {} instead of {} \
             pages, {}.",
            number(own.pages),
            number(now.pages),
            instead(&trial.outcome, &study.now)
        )
    })
}

#[cfg(test)]
mod tests {
    use filemap_core::address::vma::ReadHint;

    use super::super::change::Target;
    use super::super::{Contents, Trial};
    use super::*;

    fn outcome(pages: u64, ms: f64) -> Outcome {
        Outcome { pages: vec![pages], major_faults: 0, ns: [ms * 1e6, ms * 5e5, ms * 2e6] }
    }

    fn study(now: Outcome, used_pages: u64, trials: Vec<(Change, Outcome)>) -> Study {
        let (name, contents) = ("data.mdb".to_string(), Contents::Lmdb);
        let trial = |(change, outcome)| Trial { changes: vec![change], outcome };
        Study {
            name: "lookups".to_string(),
            program: Some("./lookups data.mdb".to_string()),
            files: vec![FileUse { name, used_pages, contents }],
            now,
            trials: trials.into_iter().map(trial).collect(),
            conditions: Vec::new(),
            page_bytes: 4096,
            read_ahead_kb: 8192,
            latency_ns: 54_000,
            warnings: Vec::new(),
            check: None,
        }
    }

    fn text(study: &Study) -> Vec<String> {
        let text = |part: Part| match part {
            Part::List(lines) => lines.join("\n"),
            Part::Paragraph(text) => text,
            Part::Facts(facts) => {
                facts.into_iter().map(|fact| fact.0).collect::<Vec<_>>().join(" ")
            }
            other => panic!("{other:?}"),
        };
        parts(&words(study)).into_iter().map(text).collect()
    }

    #[test]
    fn the_answer_is_one_line_and_what_to_write() {
        let on = Target { file: 0, name: "data.mdb".to_string(), numbers: vec![0] };
        let trials = vec![
            (Change::ReadAhead(0), outcome(3624, 420.0)),
            (Change::Madvise(on.clone(), ReadHint::Random), outcome(3624, 430.0)),
            (Change::Madvise(on, ReadHint::Sequential), outcome(700_000, 1700.0)),
            (Change::Governor, outcome(3700, 440.0)),
        ];
        let said = text(&study(outcome(545_166, 1600.0), 3624, trials));
        assert_eq!(
            said,
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
    fn a_setting_for_every_program_is_named_so() {
        let trials = vec![
            (Change::ReadAhead(64), outcome(4000, 100.0)),
            (Change::Governor, outcome(3900, 150.0)),
        ];
        let said = text(&study(outcome(545_166, 1600.0), 3624, trials));
        assert!(said[0].ends_with("For this one alone: filemap govern: 3900 pages, 150 ms."));
    }

    #[test]
    fn where_nothing_helps_it_says_why() {
        let slower = || vec![(Change::ReadAhead(0), outcome(1000, 900.0))];
        let scan = text(&study(outcome(1010, 100.0), 1000, slower()));
        let expected = "data.mdb reads 1010 pages for 1000 touched (1.0x). Nothing helps: it uses \
                        what it reads.";
        assert_eq!(scan, [expected]);
        let dense = text(&study(outcome(5000, 100.0), 1000, slower()));
        assert!(dense[0].ends_with("helps without taking longer."), "{dense:?}");
    }

    #[test]
    fn what_the_latency_turns_around_is_a_tie() {
        let on = Target { file: 0, name: "data.mdb".to_string(), numbers: vec![0] };
        let mut random = outcome(10, 90.0);
        random.ns[2] = 190e6;
        let mut now = outcome(1000, 100.0);
        now.ns = [100e6, 95e6, 110e6];
        let trials = vec![(Change::Madvise(on, ReadHint::Random), random)];
        let said = text(&study(now, 10, trials));
        assert!(said[0].contains("a tie with doing nothing"), "{said:?}");
    }
}
