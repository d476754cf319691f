//! `filemap doctor`.

mod following;

use filemap_job::EngineKind;
use filemap_kernel::doctor::{COMMANDS, Check, checks};
use filemap_kernel::engine::host_environment;
use filemap_report::{Head, Table};
use filemap_report::{Part, Report};
use filemap_study::{Footer, doctor};

use crate::Outcome;
use crate::args::DoctorArgs;
use crate::error::Error;
use crate::interrupt;
use crate::output::{Inputs, Output};
use filemap_study::provenance;

/// Prints what this machine allows.
pub fn run(args: &DoctorArgs) -> Result<Outcome, Error> {
    let output = Output::open(&args.output, &Inputs::default(), &[])?;
    let (journal, _undoing) = interrupt::journal()?;
    let mut all = checks(&journal);
    all.extend(following::checks());
    output.write(&report(&all))?;
    Ok(Outcome::Done)
}

fn report(checks: &[Check]) -> Report {
    let missing = checks.iter().filter(|check| check.state.is_err()).count();
    let mut environment = host_environment();
    provenance::stamp(&mut environment, EngineKind::Kernel.name());
    let footer = Footer {
        scope: "what commands need on a real kernel; the model needs nothing of it".to_string(),
        command: "filemap doctor".to_string(),
        environment,
    };
    let summary = match missing {
        0 => "Nothing is missing.".to_string(),
        some => format!("{some} of {} are missing or limited.", checks.len()),
    };
    let mut parts = vec![Part::Heading("What this machine allows".to_string())];
    parts.push(Part::Table(table(checks, &["check", "", "here"], short)));
    parts.push(Part::Paragraph(summary));
    parts.push(Part::Heading("What each command lacks here".to_string()));
    parts.push(Part::Table(by_command(checks)));
    for check in checks {
        if let Some(note) = &check.note {
            parts.push(Part::Paragraph(format!("{} ({}): {note}.", check.name, check.used_by)));
        }
    }
    let rows = table(checks, &["check", "used_by", "ok", "here", "note"], |check| {
        vec![
            check.name.to_string(),
            check.used_by.to_string(),
            check.state.is_ok().to_string(),
            here(check).to_string(),
            check.note.clone().unwrap_or_default(),
        ]
    });
    let json = json(checks, &footer);
    Report { parts, rows, footer: footer.footer(), json }
}

fn table(checks: &[Check], names: &[&str], row: impl Fn(&Check) -> Vec<String>) -> Table {
    Table {
        title: String::new(),
        columns: names.iter().copied().map(Head::left).collect(),
        rows: checks.iter().map(row).collect(),
    }
}

/// For each command what it lacks of what it uses, one thing a line.
fn by_command(checks: &[Check]) -> Table {
    let rows = |command: &&str| {
        let lacked = lacked_by(checks, command);
        let Some((first, others)) = lacked.split_first() else {
            return vec![[command, "+", ""].map(str::to_string).to_vec()];
        };
        let other = |name: &&str| ["", "", name].map(str::to_string).to_vec();
        let mut rows = vec![[command, "-", first].map(str::to_string).to_vec()];
        rows.extend(others.iter().map(other));
        rows
    };
    Table {
        title: String::new(),
        columns: ["command or flag", "", "lacks"].into_iter().map(Head::left).collect(),
        rows: COMMANDS.iter().flat_map(rows).collect(),
    }
}

fn lacked_by(checks: &[Check], command: &str) -> Vec<&'static str> {
    let uses = |check: &&Check| check.used_by.split(", ").any(|name| name == command);
    let lacked = checks.iter().filter(uses).filter(|check| check.state.is_err());
    lacked.map(|check| check.name).collect()
}

fn short(check: &Check) -> Vec<String> {
    let sign = if check.state.is_ok() { "+" } else { "-" };
    vec![check.name.to_string(), sign.to_string(), here(check).to_string()]
}

fn here(check: &Check) -> &str {
    check.state.as_ref().unwrap_or_else(|missing| missing)
}

fn json(checks: &[Check], footer: &Footer) -> String {
    let commands: Vec<_> = COMMANDS
        .iter()
        .map(|command| doctor::Command { name: command, lacks: lacked_by(checks, command) })
        .collect();
    let checks: Vec<_> = checks
        .iter()
        .map(|check| doctor::Check {
            name: check.name,
            used_by: check.used_by,
            ok: check.state.is_ok(),
            here: here(check),
            note: check.note.as_deref(),
        })
        .collect();
    doctor::json(&checks, &commands, footer)
}
