//! Checks what filemap can do on this machine.

mod following;

use filemap_job::EngineKind;
use filemap_job::record::{RecordKind, SCHEMA};
use filemap_kernel::doctor::{self, COMMANDS};
use filemap_kernel::engine::host_environment;
use filemap_kernel::journal::Journal;
use filemap_report::{Column, Part, Report, Unit, csv, table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::footer::Footer;
use crate::json::to_json;
use crate::provenance;

/// The checks of this machine, and the commands that lack something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Doctor {
    schema: u32,
    /// What the record is of.
    kind: RecordKind,
    checks: Vec<Check>,
    commands: Vec<Command>,
    #[serde(flatten)]
    footer: Footer,
}

/// A capability that commands need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Check {
    /// Its name.
    name: String,
    /// Commands that need it.
    used_by: String,
    /// Whether it is available.
    ok: bool,
    /// The finding: what is available, or what is missing.
    here: String,
    /// The remedy, or the consequence.
    note: Option<String>,
}

/// A command of filemap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Command {
    name: String,
    /// Names of the failed checks that it needs.
    lacks: Vec<String>,
}

/// Columns of a check in CSV.
const COLUMNS: [Column<Check>; 5] = [
    NAME,
    Column::of("used_by", "", Unit::Text, |own| own.used_by.as_str().into()),
    Column::of("ok", "", Unit::Text, |own| own.ok.to_string().into()),
    HERE,
    Column::of("note", "", Unit::Text, |own| own.note.clone().unwrap_or_default().into()),
];

/// Columns in text.
const SHOWN: [Column<Check>; 3] =
    [NAME, Column::of("", "", Unit::Text, |own| sign(own.ok).into()), HERE];

const NAME: Column<Check> =
    Column::of("check", "check", Unit::Text, |own| own.name.as_str().into());

const HERE: Column<Check> = Column::of("here", "here", Unit::Text, |own| own.here.as_str().into());

/// A missing capability of a command: command (on its first row only), capability, remedy.
type Lacked = (String, &'static str, String);

const LACKED: [Column<Lacked>; 3] = [
    Column::of("", "command or flag", Unit::Text, |own| own.0.as_str().into()),
    Column::of("", "", Unit::Text, |own| own.1.into()),
    Column::of("", "lacks", Unit::Text, |own| own.2.as_str().into()),
];

fn sign(ok: bool) -> &'static str {
    if ok { "+" } else { "-" }
}

impl Doctor {
    /// Runs all checks. Temporary changes to the machine go through `journal`.
    pub fn examine(journal: &Journal) -> Doctor {
        let mut environment = host_environment();
        provenance::stamp(&mut environment, EngineKind::Kernel.name());
        let found = doctor::checks(journal).into_iter().chain(following::checks());
        let check = |own: doctor::MachineCheck| {
            let ok = own.state.is_ok();
            let here = own.state.unwrap_or_else(|missing| missing);
            let (name, used_by) = (own.name.to_string(), own.used_by.to_string());
            Check { name, used_by, ok, here, note: own.note }
        };
        let checks: Vec<Check> = found.map(check).collect();
        let command = |name: &&str| {
            let uses = |own: &&Check| own.used_by.split(", ").any(|used_by| used_by == *name);
            let lacked = checks.iter().filter(uses).filter(|own| !own.ok);
            Command { name: name.to_string(), lacks: lacked.map(|own| own.name.clone()).collect() }
        };
        Doctor {
            schema: SCHEMA,
            kind: RecordKind::Doctor,
            commands: COMMANDS.iter().map(command).collect(),
            checks,
            footer: Footer {
                scope: "what commands need on a real kernel; the model needs nothing of it"
                    .to_string(),
                command: "filemap doctor".to_string(),
                environment,
            },
        }
    }

    /// The report.
    pub fn report(&self) -> Report {
        let checks = self.checks.as_slice();
        let summary = match checks.iter().filter(|own| !own.ok).count() {
            0 => "Nothing is missing.".to_string(),
            some => format!("{some} of {} are missing or limited.", checks.len()),
        };
        let mut parts = vec![
            Part::Heading("What this machine allows".to_string()),
            Part::Table(table("", &SHOWN, checks)),
            Part::Paragraph(summary),
            Part::Heading("What each command lacks here".to_string()),
            Part::Table(table("", &LACKED, &self.lacked())),
        ];
        let note = |own: &Check| {
            let note = own.note.as_ref()?;
            Some(Part::Paragraph(format!("{} ({}): {note}.", own.name, own.used_by)))
        };
        parts.extend(checks.iter().filter_map(note));
        let (rows, footer) = (csv(&COLUMNS, checks), self.footer.footer());
        Report { parts, rows, footer, record_json: to_json(self) }
    }

    fn lacked(&self) -> Vec<Lacked> {
        let mut rows = Vec::new();
        for Command { name, lacks } in &self.commands {
            let first = lacks.first().cloned().unwrap_or_default();
            rows.push((name.clone(), sign(lacks.is_empty()), first));
            rows.extend(lacks.iter().skip(1).map(|lack| (String::new(), "", lack.clone())));
        }
        rows
    }
}
