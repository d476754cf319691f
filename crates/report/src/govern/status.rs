//! What is done for a process that runs.

use filemap_job::record::SCHEMA;
use serde::Serialize;

use super::process::{Mapping, Process};
use super::shown::shown;
use crate::footer::Footer;
use crate::report::{Part, Report, to_json};
use crate::table::{Column, Table};
use crate::units::{bytes, number};

/// What is done for a process.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// Its number.
    pub pid: u32,
    /// What it runs.
    pub program: String,
    /// Its images, in order.
    pub images: Vec<Process>,
}

/// The report as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "GovernStatus"))]
pub(crate) struct Json<'a> {
    schema: u32,
    #[serde(flatten)]
    footer: &'a Footer,
    pid: u32,
    /// What it runs.
    program: &'a str,
    /// Its images, in order: each exec begins another.
    images: &'a [Process],
}

/// The report on `status`.
pub fn status(status: &Status, footer: Footer) -> Report {
    let Status { pid, program, images } = status;
    let json = to_json(&Json { schema: SCHEMA, footer: &footer, pid: *pid, program, images });
    let mut parts = vec![
        Part::Heading(format!("Governed: process {pid}")),
        Part::Facts(vec![("Program".to_string(), shown(program))]),
    ];
    let several = images.len() > 1;
    images.iter().for_each(|image| parts.extend(of_image(image, several)));
    parts.push(Part::Paragraph(NOTE.to_string()));
    Report { parts, rows: rows(images), footer, json }
}

/// What the figures of the tables mean.
const NOTE: &str = "On advice: what was read ahead, or was in the page cache already. Mapped: what \
                    the process has mapped now. It touched that much at most, since the kernel \
                    also maps cached pages around a fault. Wasted: what was read ahead or faulted \
                    and is not mapped. That much at least was not touched, unless reclaim has \
                    unmapped pages meanwhile.";

fn of_image(image: &Process, several: bool) -> Vec<Part> {
    let observer = match image.observer {
        "perf-event" => "a perf event reports each major fault".to_string(),
        "pagemap" => "a thread scans the page tables".to_string(),
        _ => "none".to_string(),
    };
    let reported = number(image.faults_reported as f64);
    let missed = number(image.faults_missed as f64);
    let mut facts = vec![
        ("Observer", observer),
        ("Faults", format!("{reported} reported, of which {missed} did not reach the policy")),
    ];
    if let Some(reason) = image.reason {
        facts.push(("Governed", format!("nothing: {reason}")));
    }
    if image.mappings_left_alone > 0 {
        let left = number(image.mappings_left_alone as f64);
        facts.push(("Left alone", format!("{left} mappings, for which there was no room")));
    }
    let facts = facts.into_iter().map(|(label, text)| (label.to_string(), text)).collect();
    let mut parts = Vec::new();
    if several {
        let state = if image.running { "running" } else { "replaced by another program" };
        parts.push(Part::Paragraph(format!("Image {}, {state}:", image.image)));
    }
    parts.push(Part::Facts(facts));
    if !image.mappings.is_empty() {
        parts.push(Part::Table(table(&image.mappings)));
        let files = image.mappings.iter().enumerate();
        parts.push(Part::List(files.map(|(at, of)| format!("{}: {}", at + 1, file(of))).collect()));
    }
    parts
}

fn table(mappings: &[Mapping]) -> Table {
    let size = |bytes_of: Option<u64>| bytes_of.map_or("-".to_string(), |b| bytes(b as f64));
    let row = |(at, of): (usize, &Mapping)| {
        vec![
            (at + 1).to_string(),
            of.state.replace('-', " "),
            size(Some(of.bytes)),
            number(of.faults as f64),
            size(Some(of.advised_bytes)),
            size(of.mapped_bytes),
            size(of.wasted_bytes),
            number(of.streams as f64),
        ]
    };
    let right = ["size", "faults", "on\nadvice", "mapped\nat most", "wasted\nat least", "streams"];
    let left = ["", "state"].into_iter().map(Column::left);
    Table {
        title: String::new(),
        columns: left.chain(right.into_iter().map(Column::right)).collect(),
        rows: mappings.iter().enumerate().map(row).collect(),
    }
}

fn file(mapping: &Mapping) -> String {
    match (&mapping.path, mapping.offset_bytes) {
        (None, _) => format!("{} mappings that have ended", number(mapping.mappings as f64)),
        (Some(path), 0) => shown(path),
        (Some(path), offset) => format!("{}, from {} on", shown(path), bytes(offset as f64)),
    }
}

/// One row for each mapping.
fn rows(images: &[Process]) -> Table {
    let names = [
        "pid",
        "image",
        "path",
        "mappings",
        "state",
        "start",
        "bytes",
        "offset_bytes",
        "faults",
        "advised_bytes",
        "calls",
        "streams",
        "mapped_bytes",
        "wasted_bytes",
    ];
    let optional = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let row = |image: &Process, of: &Mapping| {
        vec![
            image.pid.to_string(),
            image.image.to_string(),
            of.path.clone().unwrap_or_default(),
            of.mappings.to_string(),
            of.state.to_string(),
            of.start.to_string(),
            of.bytes.to_string(),
            of.offset_bytes.to_string(),
            of.faults.to_string(),
            of.advised_bytes.to_string(),
            of.calls.to_string(),
            of.streams.to_string(),
            optional(of.mapped_bytes),
            optional(of.wasted_bytes),
        ]
    };
    let of_image =
        |image: &Process| image.mappings.iter().map(|of| row(image, of)).collect::<Vec<_>>();
    Table {
        title: String::new(),
        columns: names.into_iter().map(Column::left).collect(),
        rows: images.iter().flat_map(of_image).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::super::process::tests::{mapping, process};
    use super::*;
    use crate::report::{Format, TEXT_COLUMNS};

    fn report(images: Vec<Process>) -> Report {
        let footer = Footer {
            scope: "one process".to_string(),
            command: "filemap govern --status 7".to_string(),
            environment: Map::new(),
        };
        status(&Status { pid: 7, program: "rg x".to_string(), images }, footer)
    }

    #[test]
    fn each_mapping_has_a_row_and_its_file() {
        let mut large = mapping("/data/a", "governed", 1023 << 30);
        large.faults = 123_456;
        large = large.with_mapped(Some(8192), 4096);
        large.offset_bytes = 1 << 20;
        let mut others = mapping("", "ended", 0).with_mapped(Some(0), 4096);
        (others.path, others.mappings) = (None, 12_000);
        let of = process(vec![large, mapping("/data/b", "given-back", 1 << 24), others]);
        let report = report(vec![of]);
        let text = report.render(Format::Table);
        for line in ["1: /data/a, from 1 MiB on", "2: /data/b\n", "3: 12 000 mappings that have"] {
            assert!(text.contains(line), "{text}");
        }
        assert!(text.contains("123 456") && text.contains("given back"), "{text}");
        let table = report.parts.iter().find_map(|part| match part {
            Part::Table(table) => Some(table.text()),
            _ => None,
        });
        assert!(table.unwrap().lines().all(|line| line.chars().count() <= TEXT_COLUMNS), "{text}");
        assert_eq!(report.rows.rows.len(), 3);
        let json: Value = serde_json::from_str(&report.json).unwrap();
        assert_eq!(json["images"][0]["mappings"][0]["wasted_bytes"], 40960 + 123_456 * 4096 - 8192);
        assert_eq!(json["images"][0]["mappings"][2]["path"], Value::Null);
    }

    #[test]
    fn names_do_nothing_to_a_terminal() {
        let report = report(vec![process(vec![mapping("/a\x1b[2J\nb", "governed", 1 << 24)])]);
        let text = report.render(Format::Table);
        assert!(text.contains("1: /a\\u{1b}[2J\\nb\n"), "{text}");
        let json: Value = serde_json::from_str(&report.json).unwrap();
        assert_eq!(json["images"][0]["mappings"][0]["path"], "/a\x1b[2J\nb");
    }

    #[test]
    fn images_and_reasons_are_named() {
        let mut of = process(Vec::new());
        of.reason = Some("a debugger or tracer is attached");
        of.mappings_left_alone = 3;
        let mut before = of.clone();
        (before.running, of.image) = (false, 1);
        let text = report(vec![before, of]).render(Format::Table);
        for words in [
            "Image 0, replaced by another program:",
            "Image 1, running:",
            "nothing: a debugger or tracer is attached",
            "3 mappings, for which there was no room",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }
}
