//! An explanation of a program as a report.

use filemap_core::readahead::miss::THRESHOLD;
use filemap_job::program::Job;
use filemap_job::record::SCHEMA;
use filemap_job::{Counters, Record, Written};
use serde::Serialize;
use serde_json::{Value, json};

use super::ProgramExplanation;
use super::origin::{Amount, Brought, Origin, PerOrigin};
use crate::footer::Footer;
use crate::json::to_json;
use crate::record::{MAX_ROWS, title};
use filemap_report::units::{bytes, number};
use filemap_report::{Head, Table};
use filemap_report::{Part, Report};

/// The report on `explanation`, which is of the first run of `record`, of `program`; `command`
/// repeats it.
pub fn of_program(
    explanation: &ProgramExplanation,
    program: &Job,
    record: &Record,
    command: String,
) -> Report {
    let footer = Footer::new(std::slice::from_ref(record), command);
    let answer = answer(program, record);
    let mut parts = vec![
        Part::Heading(format!("{}: bytes by file and cause", title(record))),
        Part::Table(limited(by_file(explanation, program))),
        Part::Paragraph(note(explanation, record)),
    ];
    let through = limited(through(explanation, program));
    if !through.rows.is_empty() {
        parts.push(Part::Table(through));
    }
    parts.push(Part::Heading("mmap_miss".to_string()));
    parts.push(Part::Paragraph(answer.clone()));
    parts.extend(Part::warnings(&record.warnings));
    let json = to_json(&Json::new(explanation, program, record, &answer, &footer));
    Report { parts, rows: rows(explanation, program, record), footer: footer.footer(), json }
}

/// The rows that a page has room for.
fn limited(mut table: Table) -> Table {
    let left_out = table.rows.len().saturating_sub(MAX_ROWS);
    if left_out > 0 {
        table.rows.truncate(MAX_ROWS);
        let mut last = vec![String::new(); table.columns.len()];
        last[0] = format!("and {left_out} more (in JSON)");
        table.rows.push(last);
    }
    table
}

/// Each file with its causes.
fn by_file(explanation: &ProgramExplanation, program: &Job) -> Table {
    let total = explanation.pages_read();
    let page_size = program.page_size();
    let mut rows = Vec::new();
    let named = program.files.iter().zip(&explanation.files);
    for (file, amounts) in named {
        let some = amounts.iter().filter(|(_, amount)| amount.pages > 0);
        for (number_of, (origin, amount)) in some.enumerate() {
            let Amount { pages, again } = *amount;
            let share = 100.0 * pages as f64 / total.max(1) as f64;
            rows.push(vec![
                if number_of == 0 { file.name.clone() } else { String::new() },
                origin.name().to_string(),
                number(pages as f64),
                bytes((pages * page_size) as f64),
                format!("{share:.1}"),
                number(again as f64),
            ]);
        }
    }
    let columns = vec![
        Head::left("file"),
        Head::left("cause"),
        Head::right("pages"),
        Head::right("bytes"),
        Head::right("%"),
        Head::right("again"),
    ];
    Table { title: String::new(), columns, rows }
}

fn note(explanation: &ProgramExplanation, record: &Record) -> String {
    let sum = explanation.pages_read();
    let counted = match record.runs[0].counters.data_pages_read {
        Some(counted) if counted == sum => {
            format!(
                " They add up to the {} pages that the {} counts.",
                number(sum as f64),
                record.engine
            )
        }
        Some(counted) => format!(
            " They add up to {} pages; the {} counts {}.",
            number(sum as f64),
            record.engine,
            number(counted as f64)
        ),
        None => String::new(),
    };
    let what = match explanation.knows_accesses {
        true => {
            "Each page that entered the cache is counted once, when it left or at the end; 'again' \
             are pages that had been in before."
        }
        false => {
            "Each page that entered the cache is counted by what brought it in, accessed or not: \
             the log of several threads does not say which access it belongs to."
        }
    };
    format!("{what}{counted}")
}

/// What each mapping and open file brought in.
fn through(explanation: &ProgramExplanation, program: &Job) -> Table {
    let mut rows = Vec::new();
    for (what, name, brought) in all_through(explanation, program) {
        let some = brought.iter().filter(|(_, brought)| brought.calls + brought.pages > 0);
        for (number_of, (origin, Brought { calls, pages, .. })) in some.enumerate() {
            rows.push(vec![
                if number_of == 0 { format!("{what} {name}") } else { String::new() },
                origin.name().to_string(),
                number(*calls as f64),
                number(*pages as f64),
            ]);
        }
    }
    let columns = vec![
        Head::left("through"),
        Head::left("by"),
        Head::right("calls"),
        Head::right("pages added"),
    ];
    Table { title: String::new(), columns, rows }
}

fn all_through<'a>(
    explanation: &'a ProgramExplanation,
    program: &'a Job,
) -> impl Iterator<Item = (&'static str, &'a str, &'a PerOrigin<Brought>)> {
    let mappings = program.mappings.iter().zip(&explanation.mappings);
    let mappings = mappings.map(|(of, brought)| ("mapping", of.name.as_str(), brought));
    let opens = program.opens.iter().zip(&explanation.opens);
    mappings.chain(opens.map(|(of, brought)| ("open", of.name.as_str(), brought)))
}

/// Why readahead stopped, or did not.
fn answer(program: &Job, record: &Record) -> String {
    let highest = |counters: &Counters| counters.mmap_miss_max.unwrap_or(0);
    // One table can stand for several mappings, of which the record has the sum.
    let named = record.runs[0].mappings.iter().zip(&program.spec.mapping);
    let stopped = named.filter(|(run, _)| highest(&run.counters) > THRESHOLD.into());
    let texts = stopped.map(|(run, of)| {
        format!(
            "Readahead of open file {} stopped through mapping {}: mmap_miss rose to {}, and above \
             {THRESHOLD} a miss reads a single page.",
            of.open,
            run.name,
            highest(&run.counters)
        )
    });
    let texts: Vec<String> = texts.take(MAX_ROWS).collect();
    if !texts.is_empty() {
        return texts.join(" ");
    }
    format!(
        "Readahead did not stop: a miss reads a single page only when the mmap_miss of its open file \
         is above {THRESHOLD}, and none rose above {}.",
        highest(&record.runs[0].counters)
    )
}

fn rows(explanation: &ProgramExplanation, program: &Job, record: &Record) -> Table {
    let page_size = program.page_size();
    let of_file = |(file, amounts): (&filemap_job::program::NamedFile, &PerOrigin<Amount>)| {
        let row = |((_, _, key), (_, amount)): (&(Origin, &str, &str), (Origin, &Amount))| {
            vec![
                record.engine.clone(),
                file.name.clone(),
                key.to_string(),
                amount.pages.to_string(),
                (amount.pages * page_size).to_string(),
                amount.again.to_string(),
            ]
        };
        Origin::ALL.iter().zip(amounts.iter()).map(row).collect::<Vec<_>>()
    };
    let names = ["engine", "file", "cause", "pages", "bytes", "again"];
    Table {
        title: String::new(),
        columns: names.map(Head::left).into(),
        rows: program.files.iter().zip(&explanation.files).flat_map(of_file).collect(),
    }
}

/// The report as JSON.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Json<'a> {
    schema: u32,
    job: &'a Written,
    engine: &'a str,
    pages_read: u64,
    bytes_read: u64,
    files: Vec<OfFile<'a>>,
    /// Through each mapping and open file; of a program of one thread.
    through: Vec<OfThrough<'a>>,
    counters: &'a Counters,
    answer: &'a str,
    warnings: &'a [String],
    #[serde(flatten)]
    footer: &'a Footer,
}

#[derive(Serialize, schemars::JsonSchema)]
struct OfFile<'a> {
    name: &'a str,
    /// By origin; the sums are those of the whole.
    #[schemars(with = "Vec<crate::forms::CauseEntry>")]
    causes: Vec<Value>,
}

#[derive(Serialize, schemars::JsonSchema)]
struct OfThrough<'a> {
    /// `mapping` or `open`.
    what: &'a str,
    name: &'a str,
    #[schemars(with = "Vec<crate::forms::AddedEntry>")]
    brought_in: Vec<Value>,
}

impl<'a> Json<'a> {
    fn new(
        explanation: &'a ProgramExplanation,
        program: &'a Job,
        record: &'a Record,
        answer: &'a str,
        footer: &'a Footer,
    ) -> Self {
        let page_size = program.page_size();
        let named = program.files.iter().zip(&explanation.files);
        let files = named.map(|(file, amounts)| OfFile {
            name: &file.name,
            causes: amounts
                .iter()
                .zip(Origin::ALL)
                .map(|(of, (.., key))| cause(key, of.1, page_size))
                .collect(),
        });
        let through = all_through(explanation, program).filter(|_| explanation.knows_accesses);
        let through = through.map(|(what, name, brought)| OfThrough {
            what,
            name,
            brought_in: brought
                .iter()
                .zip(Origin::ALL)
                .map(|(of, (.., key))| added(key, of.1))
                .collect(),
        });
        Json {
            schema: SCHEMA,
            job: &record.job,
            engine: &record.engine,
            pages_read: explanation.pages_read(),
            bytes_read: explanation.pages_read() * page_size,
            files: files.collect(),
            through: through.collect(),
            counters: &record.runs[0].counters,
            answer,
            warnings: &record.warnings,
            footer,
        }
    }
}

fn cause(key: &str, amount: &Amount, page_size: u64) -> Value {
    let Amount { pages, again } = *amount;
    json!({ "cause": key, "pages": pages, "bytes": pages * page_size, "again": again })
}

fn added(key: &str, brought: &Brought) -> Value {
    let Brought { calls, pages, .. } = *brought;
    json!({ "by": key, "calls": calls, "pages": pages })
}
