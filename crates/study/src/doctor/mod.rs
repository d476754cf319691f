//! Checks what filemap can do on this machine.

mod following;

use filemap_job::EngineKind;
use filemap_job::record::{RecordKind, SCHEMA};
use filemap_kernel::doctor::{self, COMMANDS};
use filemap_kernel::engine::host_environment;
use filemap_kernel::journal::Journal;
use filemap_report::{Column, Part, Report, Unit, csv_table, text_table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::footer::Footer;
use crate::json::to_json;
use crate::provenance;

/// The checks of this machine, and the commands that lack something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorRecord {
    schema: u32,
    /// What the record is of.
    kind: RecordKind,
    checks: Vec<DoctorCheck>,
    commands: Vec<CommandNeeds>,
    #[serde(flatten)]
    footer: Footer,
}

/// A capability that commands need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct DoctorCheck {
    /// Its name.
    name: String,
    /// Commands that need it.
    used_by: String,
    /// Whether it is available.
    ok: bool,
    /// The available feature, or the missing one.
    here: String,
    /// The remedy, or the consequence.
    note: Option<String>,
}

/// A command of filemap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct CommandNeeds {
    name: String,
    /// Names of the failed checks that it needs.
    lacks: Vec<String>,
}

/// Columns of a check in CSV.
const COLUMNS: [Column<DoctorCheck>; 5] = [
    NAME,
    Column::new("used_by", "", Unit::Text, |own| own.used_by.as_str().into()),
    Column::new("ok", "", Unit::Text, |own| own.ok.to_string().into()),
    HERE,
    Column::new("note", "", Unit::Text, |own| own.note.clone().unwrap_or_default().into()),
];

/// Columns in text.
const SHOWN: [Column<DoctorCheck>; 3] =
    [NAME, Column::new("", "", Unit::Text, |own| sign(own.ok).into()), HERE];

const NAME: Column<DoctorCheck> =
    Column::new("check", "check", Unit::Text, |own| own.name.as_str().into());

const HERE: Column<DoctorCheck> =
    Column::new("here", "here", Unit::Text, |own| own.here.as_str().into());

/// A missing capability of a command: command (on its first row only), capability, remedy.
type MissingNeed = (String, &'static str, String);

const LACKED: [Column<MissingNeed>; 3] = [
    Column::new("", "command or flag", Unit::Text, |own| own.0.as_str().into()),
    Column::new("", "", Unit::Text, |own| own.1.into()),
    Column::new("", "lacks", Unit::Text, |own| own.2.as_str().into()),
];

fn sign(ok: bool) -> &'static str {
    if ok { "+" } else { "-" }
}

impl DoctorRecord {
    /// Runs all checks. Temporary changes to the machine go through `journal`.
    pub fn examine(journal: &Journal) -> DoctorRecord {
        let mut environment = host_environment();
        provenance::stamp(&mut environment, EngineKind::Kernel.name());
        let found = doctor::checks(journal).into_iter().chain(following::checks());
        let check = |own: doctor::MachineCheck| {
            let ok = own.state.is_ok();
            let here = own.state.unwrap_or_else(|missing| missing);
            let (name, used_by) = (own.name.to_string(), own.used_by.to_string());
            DoctorCheck { name, used_by, ok, here, note: own.note }
        };
        let checks: Vec<DoctorCheck> = found.map(check).collect();
        let command = |name: &&str| {
            let uses = |own: &&DoctorCheck| own.used_by.split(", ").any(|used_by| used_by == *name);
            let lacked = checks.iter().filter(uses).filter(|own| !own.ok);
            CommandNeeds {
                name: name.to_string(),
                lacks: lacked.map(|own| own.name.clone()).collect(),
            }
        };
        DoctorRecord {
            schema: SCHEMA,
            kind: RecordKind::Doctor,
            commands: COMMANDS.iter().map(command).collect(),
            checks,
            footer: Footer {
                scope: "what commands need on a real kernel; the model needs none of it"
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
            Part::Table(text_table("", &SHOWN, checks)),
            Part::Paragraph(summary),
            Part::Heading("What each command lacks here".to_string()),
            Part::Table(text_table("", &LACKED, &self.lacked())),
        ];
        let note = |own: &DoctorCheck| {
            let note = own.note.as_ref()?;
            Some(Part::Paragraph(format!("{} ({}): {note}.", own.name, own.used_by)))
        };
        parts.extend(checks.iter().filter_map(note));
        let (rows, footer) = (csv_table(&COLUMNS, checks), self.footer.footer());
        Report { parts, rows, footer, record_json: to_json(self) }
    }

    fn lacked(&self) -> Vec<MissingNeed> {
        let mut rows = Vec::new();
        for CommandNeeds { name, lacks } in &self.commands {
            let first = lacks.first().cloned().unwrap_or_default();
            rows.push((name.clone(), sign(lacks.is_empty()), first));
            rows.extend(lacks.iter().skip(1).map(|lack| (String::new(), "", lack.clone())));
        }
        rows
    }
}
