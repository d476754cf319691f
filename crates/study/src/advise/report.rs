//! Report of advice: the answer for each file, the code to write, all trials, and the conditions
//! that would change the answer.

use super::record::{AdviceCondition, AdviceTrial};
use super::{AdviseRecord, TrialOutcome, check};
use crate::json::to_json;
use filemap_report::units::{bytes, number, time};
use filemap_report::{
    Card, Column, DotCell, DotColumn, DotTable, Head, Mark, Part, Report, Scale, Table, Unit,
    csv_table, figure_column, fold_cell, text_column, text_table,
};

/// Maximum widths of the columns, so that tables fit into 80 columns.
const LABEL_COLUMNS: usize = 17;
const VERDICT_COLUMNS: usize = 7;
const CONDITION_COLUMNS: usize = 18;
const BEST_COLUMNS: usize = 17;

/// Verdicts from best to worst, with the class of their marks and its meaning.
const VERDICTS: [(&str, &str, &str); 6] = [
    ("best", "u4", "the answer"),
    ("tied", "tied", "tied with the answer in time"),
    ("helps", "u3", "helps less"),
    ("no change", "none", "no change"),
    ("slower", "u1", "slower"),
    ("reads more", "u0", "reads more"),
];

/// Caption of the picture.
const HOW_TO_READ: &str = "Dashed lines mark what the program reads and takes as it is. A bar \
    with a tip extends beyond its scale. A dot is the time that is predicted, and the line through \
    it reaches from half of the device's latency to double.";

/// Amounts beyond this multiple of the unchanged program's are off the scale.
const MAX_SCALE: f64 = 3.0;

/// Columns of a trial.
const COLUMNS: [Column<AdviceTrial>; 7] = {
    use Unit::{Count, Nanoseconds, Text};
    [
        Column::new("tried", "tried", Text, |row| row.label().into()),
        Column::new("pages_read", "pages\nread", Count, |row| row.outcome.data_pages_read.into()),
        Column::new("major_faults", "major\nfaults", Count, |row| row.outcome.major_faults.into()),
        Column::new("elapsed_ns", "time", Nanoseconds, |row| row.outcome.elapsed_ns.into()),
        Column::new("elapsed_ns_at_half_latency", "at half\nlatency", Nanoseconds, |row| {
            row.outcome.elapsed_ns_at_half_latency.into()
        }),
        Column::new("elapsed_ns_at_double_latency", "at double\nlatency", Nanoseconds, |row| {
            row.outcome.elapsed_ns_at_double_latency.into()
        }),
        Column::new("verdict", "verdict", Text, |row| row.verdict.as_str().into()),
    ]
};

impl AdviceTrial {
    /// Index in [`VERDICTS`].
    fn rank(&self) -> usize {
        let known = VERDICTS.iter().position(|(name, ..)| *name == self.verdict);
        known.unwrap_or(VERDICTS.len())
    }

    /// Class of its marks.
    fn class(&self) -> &'static str {
        VERDICTS.get(self.rank()).map_or("u2", |(_, class, _)| class)
    }
}

impl AdviseRecord {
    /// The report.
    pub fn report(&self) -> Report {
        let mut parts = vec![Part::Heading(match self.name.as_str() {
            "" => "What would help a program".to_string(),
            name => format!("What would help {name}"),
        })];
        parts.extend(self.words.iter().cloned().map(Part::Lead));
        parts.push(Part::Cards(self.cards()));
        parts.extend(self.governed.clone().map(Part::Paragraph));
        parts.extend(Part::warnings(&self.warnings));
        for written in &self.to_write {
            parts.push(Part::Heading(format!("What to write for {}", written.change)));
            let facts = written.lines.iter().map(|line| (line.place.clone(), line.text.clone()));
            parts.push(Part::Facts(facts.collect()));
        }
        parts.extend(self.check.iter().flat_map(|check| check::parts(self, check)));
        let maps = self.accesses.iter().filter_map(|map| map.plot(self.page_bytes));
        parts.extend(maps.map(Part::Plot));
        parts.push(Part::Heading("What was tried in the model".to_string()));
        parts.push(Part::Dots(self.picture()));
        let mut as_it_is = AdviceTrial::new(Vec::new(), self.now.clone());
        as_it_is.changes.push("as it is".to_string());
        let rows: Vec<AdviceTrial> =
            [as_it_is].into_iter().chain(self.tried.iter().cloned()).collect();
        parts.push(Part::Table(self.tried_table(&rows)));
        parts.push(Part::Paragraph(self.note()));
        if !self.conditions.is_empty() {
            parts.push(Part::Heading("What would break it".to_string()));
            parts.push(Part::Table(text_table("", &CONDITIONS, &self.conditions)));
        }
        let footer = self.footer.footer();
        Report { parts, rows: csv_table(&COLUMNS, &rows), footer, record_json: to_json(self) }
    }

    /// Headline figures: unchanged, and with the answer.
    fn cards(&self) -> Vec<Card> {
        let used = bytes(self.pages_used as f64 * self.page_bytes as f64);
        let used = format!("the program uses {used}");
        let two = |of: &TrialOutcome, how: &str, [read, took]: [String; 2]| {
            [
                Card::new(format!("read {how}"), bytes(self.bytes_read(of)), read),
                Card::new(format!("time {how}"), time(of.elapsed_ns as f64), took),
            ]
        };
        let start = if self.start.is_empty() { "cold" } else { &self.start };
        let predicted = format!("predicted; the page cache is {start} at the beginning");
        let with_answer = self.best().map(|best| {
            let (least, most) = best.outcome.range_ns();
            let range = format!("from {} to {} with the latency", time(least), time(most));
            two(&best.outcome, "with the answer", [best.label(), range])
        });
        two(&self.now, "as it is", [used, predicted])
            .into_iter()
            .chain(with_answer.into_iter().flatten())
            .collect()
    }

    /// Table of all trials, after the unchanged program.
    fn tried_table(&self, rows: &[AdviceTrial]) -> Table {
        let in_lines = |row: &AdviceTrial| AdviceTrial {
            changes: vec![fold_cell(&row.label(), LABEL_COLUMNS)],
            verdict: fold_cell(&row.verdict, VERDICT_COLUMNS),
            ..row.clone()
        };
        text_table("", &COLUMNS, &rows.iter().map(in_lines).collect::<Vec<_>>())
    }

    /// Note on the source of the times.
    fn note(&self) -> String {
        let machine = match self.machine.as_str() {
            "" => "the machine profile",
            machine => machine,
        };
        format!(
            "Times are predicted by {machine}, whose device has a latency of {}, and \
             with half and double of that, as a device's latency varies from hour to hour. An \
             order that this can reverse is a tie. The readahead size is {} KiB unless stated \
             otherwise. A verdict is on the whole program.{}",
            time(self.latency_ns as f64),
            self.read_ahead_kb,
            self.known_error
        )
    }

    /// Dot plot of bytes and time: the unchanged program, then all trials, best verdict and fastest
    /// first.
    fn picture(&self) -> DotTable {
        let mut tried: Vec<&AdviceTrial> = self.tried.iter().collect();
        tried.sort_by_key(|row| (row.rank(), row.outcome.elapsed_ns));
        let in_bytes = |trial_outcome: &TrialOutcome| self.bytes_read(trial_outcome);
        let all = || [&self.now].into_iter().chain(self.tried.iter().map(|trial| &trial.outcome));
        // A far larger amount would compress all others.
        let (now, most) = (in_bytes(&self.now), in_bytes(&self.now) * MAX_SCALE);
        let near = all().map(in_bytes).filter(|read| *read <= most);
        let mut read = Scale::from_values("bytes read", Unit::Bytes, near);
        let ends = all().map(TrialOutcome::range_ns).flat_map(|(least, most)| [least, most]);
        let mut times = Scale::from_values("time", Unit::Nanoseconds, ends);
        (read.threshold, times.threshold) = (Some(now), Some(self.now.elapsed_ns as f64));
        let as_it_is = self.draw_pictures("as it is".to_string(), &self.now, "u2", "");
        let rows = tried.iter().map(|trial| {
            self.draw_pictures(trial.label(), &trial.outcome, trial.class(), &trial.verdict)
        });
        let known =
            VERDICTS.iter().filter(|(name, ..)| tried.iter().any(|trial| trial.verdict == *name));
        let meanings = known.map(|(_, class, meaning)| (*class, *meaning));
        let legend = [("threshold-key", "as it is")].into_iter().chain(meanings);
        let right = |name: &str| DotColumn::Text(Head::number(name));
        DotTable {
            title: String::new(),
            note: HOW_TO_READ.to_string(),
            legend: legend.map(|(class, text)| (class.to_string(), text.to_string())).collect(),
            columns: vec![
                DotColumn::Text(Head::text("tried")),
                right("bytes read"),
                DotColumn::Drawn(read),
                right("major faults"),
                right("time"),
                DotColumn::Drawn(times),
                DotColumn::Text(Head::text("verdict")),
            ],
            rows: [as_it_is].into_iter().chain(rows).collect(),
        }
    }

    /// A row of the picture.
    fn draw_pictures(
        &self,
        label: String,
        outcome: &TrialOutcome,
        class: &'static str,
        verdict: &str,
    ) -> Vec<DotCell> {
        let (least, most) = outcome.range_ns();
        let (read, ns) = (self.bytes_read(outcome), outcome.elapsed_ns as f64);
        let description = format!(
            "{label}: {} pages read ({}), {} major faults, {}; {} to {} with half and double \
             latency",
            number(outcome.data_pages_read as f64),
            bytes(read),
            number(outcome.major_faults as f64),
            time(ns),
            time(least),
            time(most)
        );
        let bar = vec![Mark::Bar(read, class)];
        let dot = vec![Mark::Range(least, most, class), Mark::Dot(ns, class)];
        vec![
            DotCell::Name(label),
            DotCell::Text(bytes(read)),
            DotCell::Drawn { marks: bar, description: description.clone() },
            DotCell::Text(number(outcome.major_faults as f64)),
            DotCell::Text(time(ns)),
            DotCell::Drawn { marks: dot, description },
            DotCell::Verdict {
                class: (verdict == "best").then_some("good"),
                text: verdict.to_string(),
                more: None,
            },
        ]
    }

    fn bytes_read(&self, outcome: &TrialOutcome) -> f64 {
        outcome.data_pages_read as f64 * self.page_bytes as f64
    }
}

/// The answer under other conditions.
const CONDITIONS: [Column<AdviceCondition>; 4] = [
    text_column("with", |own| fold_cell(&own.name, CONDITION_COLUMNS).into()),
    figure_column("as it is", |own| match &own.now {
        Some(now) => pages_and_time(now).into(),
        None => fold_cell("the program does not run so", BEST_COLUMNS).into(),
    }),
    figure_column("with the answer", |own| {
        own.answer.as_ref().map_or(String::new(), pages_and_time).into()
    }),
    text_column("best there", |own| {
        let nothing = if own.now.is_some() { "nothing" } else { "" };
        fold_cell(own.best.as_deref().unwrap_or(nothing), BEST_COLUMNS).into()
    }),
];

fn pages_and_time(trial_outcome: &TrialOutcome) -> String {
    format!(
        "{}, {}",
        number(trial_outcome.data_pages_read as f64),
        time(trial_outcome.elapsed_ns as f64)
    )
}

#[cfg(test)]
mod tests {
    use filemap_core::address::vma::ReadHint;
    use filemap_job::program::Madvise;

    use super::super::AdviceChange;
    use super::super::tests::{on, outcome, tried};
    use super::*;

    /// Figures of realistic width.
    #[test]
    fn tables_fit_into_80_columns() {
        let on = on("mapping 'data.mdb'");
        let changes = vec![
            AdviceChange::Madvise(on.clone(), ReadHint::Sequential),
            AdviceChange::Ask(on, Madvise::WillNeed, vec![(0, 1)]),
        ];
        let large = TrialOutcome { major_faults: 12_345_678, ..outcome(12_345_678, 123_456) };
        let mut advice = tried(large.clone(), Vec::new());
        advice.tried.push(AdviceTrial::new(changes, outcome(1_545_166, 1000)));
        advice.conditions.push(AdviceCondition {
            name: "page cache of 123456m".to_string(),
            now: Some(large),
            answer: Some(outcome(12_345_678, 1000)),
            best: Some(advice.tried[0].label()),
        });
        let tables = advice.with_conclusions("", None).report().parts.into_iter();
        let tables = tables.filter_map(|part| match part {
            Part::Table(table) => Some(table.text()),
            _ => None,
        });
        for text in tables {
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(80), "{text}");
        }
    }
}
